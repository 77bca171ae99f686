"""Repeated reports: probabilities and levels against enumeration and RAPPOR's theorems, draws, estimates, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from quincunx.graphs import complete
from quincunx.ldp import HistogramModel, estimate_frequencies
from quincunx.leakage import Channel
from quincunx.privacy import Budget, MemoizedUnaryEncoding, Release, ReplaceOne, UnaryEncoding

VARIANTS = ["optimal", "symmetric"]


def rows(k):
    return list(itertools.product((0, 1), repeat=k))


def chances(row, given, one, zero):
    """The probability of a row of bits given another, bit by bit."""
    return math.prod(
        (one if b else zero) if bit else 1 - (one if b else zero) for bit, b in zip(row, given, strict=True)
    )


def enumerated(mechanism, k, reports):
    """The probabilities of all sequences of reports for each category: sums over the permanent rows, in fractions."""
    kept, flip = mechanism.permanent.noise, Fraction(mechanism._again, 2**64)
    table = []
    for x in range(k):
        truth = [int(y == x) for y in range(k)]
        weights = {row: chances(row, truth, kept.one, kept.zero) for row in rows(k)}
        seen = itertools.product(rows(k), repeat=reports)
        table.append(
            [
                sum(w * math.prod(chances(z, row, 1 - flip, flip) for z in zs) for row, w in weights.items())
                for zs in seen
            ]
        )
    return table


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("epsilon", "lifetime"), [(0.5, 1.0), (1.0, 4.0), (0.1, 8.0)])
@pytest.mark.parametrize(("k", "reports"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
def test_levels_are_those_of_all_sequences_of_reports(variant, epsilon, lifetime, k, reports):
    mechanism = MemoizedUnaryEncoding(epsilon, lifetime, k, variant)
    table = enumerated(mechanism, k, reports)
    assert all(sum(row) == 1 for row in table)
    stated = mechanism.guarantee_of_reports(reports)
    largest = max(a / b for one in table for other in table for a, b in zip(one, other, strict=True))
    assert stated.epsilon == pytest.approx(math.log(largest), rel=1e-12)
    assert math.log(largest) <= stated.epsilon * (1 + 1e-15)
    assert Channel(table, exact=True).dp_epsilon(complete(k)) == pytest.approx(stated.epsilon, rel=1e-12)
    if reports == 1:
        assert stated == mechanism.guarantee
        assert stated.epsilon <= epsilon == pytest.approx(stated.epsilon, rel=1e-15)
        found = mechanism.log_likelihood(np.array(rows(k))[:, None], np.arange(k)).T
        assert np.exp(found) == pytest.approx(np.array(table, dtype=float), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "lifetime"), [(0.5, 1.0), (1.0, 4.0), (0.1, 8.0), (7.9, 8.0)])
def test_the_symmetric_variant_has_the_levels_of_rappor(epsilon, lifetime):
    # Erlingsson et al. (2014): theorem 1, of the permanent response, and theorem 2, of one report, for h = 1.
    mechanism = MemoizedUnaryEncoding(epsilon, lifetime, 5, "symmetric")
    f, p, q = 2 * mechanism.permanent.zero_probability, mechanism.flip_probability, 1 - mechanism.flip_probability
    assert 2 * math.log((1 - f / 2) / (f / 2)) == pytest.approx(lifetime, rel=1e-12)
    q_star, p_star = (0.5 * f * (p + q) + (1 - f) * own for own in (q, p))
    assert math.log(q_star * (1 - p_star) / (p_star * (1 - q_star))) == pytest.approx(epsilon, rel=1e-10)
    assert (mechanism.one_probability, mechanism.zero_probability) == pytest.approx((q_star, p_star), rel=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_report_is_unary_encoding_of_the_same_variant(variant):
    mechanism, plain = MemoizedUnaryEncoding(1.0, 3.0, 4, variant), UnaryEncoding(1.0, 4, variant)
    assert mechanism.one_probability == pytest.approx(plain.one_probability, rel=1e-15)
    assert mechanism.zero_probability == pytest.approx(plain.zero_probability, rel=1e-15)
    assert mechanism.noise.zero >= plain.noise.zero


@pytest.mark.parametrize("variant", VARIANTS)
def test_levels_rise_to_the_lifetime_and_are_never_above_it(variant):
    for lifetime in (0.3, 2.0, 9.0):
        mechanism = MemoizedUnaryEncoding(0.2, lifetime, 3, variant)
        levels = [mechanism.guarantee_of_reports(r).epsilon for r in (1, 2, 3, 10, 100, 10**4, 10**9, math.inf)]
        assert levels == sorted(levels)
        assert levels[-2:] == [mechanism.permanent.epsilon] * 2
        assert levels[-1] <= lifetime


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("epsilon", "lifetime"), [(0.1, 8.0), (1.0, 1.5), (2.0, 20.0)])
def test_levels_are_concave_in_the_reports(variant, epsilon, lifetime):
    # With t = r log((1 - f) / f), a = logit(p1) >= 0 and b = -logit(q1) > 0 the slope of the level in t is
    # S(t + a) + S(a - t) - S(t - b) - S(-t - b), S the logistic function; as its own slope is even and falls with the
    # distance from 0, the first sum falls in t > 0, and the second rises.
    mechanism = MemoizedUnaryEncoding(epsilon, lifetime, 3, variant)
    levels = np.array([0.0, *(mechanism.guarantee_of_reports(r).epsilon for r in range(1, 60))])
    steps = np.diff(levels)
    assert (np.diff(steps) <= 1e-12).all()
    assert (levels <= np.arange(60) * epsilon + 1e-12).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_permanent_rows_and_their_reports_have_their_joint_law(variant):
    # Two reports of one permanent row: chi-square of 64 cells with 400,000 users, a false alarm once in 10^6.
    mechanism, n = MemoizedUnaryEncoding(1.0, 2.0, 2, variant), 400_000
    kept = mechanism.memoize(np.zeros(n, dtype=int), insecure_seed=3)
    told = [mechanism.report(kept, insecure_seed=seed) for seed in (3, 4)]
    flip, noise = Fraction(mechanism._again, 2**64), mechanism.permanent.noise
    expected = [
        chances(row, (1, 0), noise.one, noise.zero) * chances(z, row, 1 - flip, flip) * chances(w, row, 1 - flip, flip)
        for row, z, w in itertools.product(rows(2), repeat=3)
    ]
    places = sum(16 // 4**i * (release.values @ [2, 1]) for i, release in enumerate([kept, *told]))
    counts = np.bincount(places, minlength=64)
    assert min(expected) * n > 25
    assert stats.chisquare(counts, np.array(expected, dtype=float) * n).pvalue > 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_release_has_the_law_of_one_report(variant):
    # The same test of four cells.
    mechanism, n = MemoizedUnaryEncoding(1.0, 2.0, 2, variant), 400_000
    counts = np.bincount(mechanism.release(np.ones(n, dtype=int), insecure_seed=5).values @ [2, 1], minlength=4)
    expected = np.exp(mechanism.log_likelihood(np.array(rows(2)), 1)) * n
    assert stats.chisquare(counts, expected).pvalue > 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_estimates_are_unbiased_with_the_variances_stated(variant, reports):
    # One user's estimate in all outcomes, in floats of exact probabilities.
    mechanism, shares = MemoizedUnaryEncoding(0.7, 2.0, 2, variant), np.array([0.3, 0.7])
    table = shares @ np.array(enumerated(mechanism, 2, reports), dtype=float)
    outcomes = np.array(list(itertools.product(rows(2), repeat=reports)))
    found = np.array([mechanism.estimate(outcome) for outcome in outcomes])
    assert table @ found == pytest.approx(shares, rel=1e-10)
    assert table @ (found - shares) ** 2 == pytest.approx(mechanism.variances(shares, 1, reports), rel=1e-10)
    assert mechanism.variances(shares, 500, reports) == pytest.approx(mechanism.variances(shares, 1, reports) / 500)


def test_many_reports_are_worth_a_permanent_row():
    mechanism = MemoizedUnaryEncoding(0.5, 2.0, 3)
    p, q = mechanism.permanent.one_probability, mechanism.permanent.zero_probability
    shares = np.array([0.5, 0.5, 0.0])
    mean = q + (p - q) * shares
    assert mechanism.variances(shares, 100, math.inf) == pytest.approx(mean * (1 - mean) / (100 * (p - q) ** 2))


def test_reports_are_fitted_as_those_of_unary_encoding():
    # 0.04 is above five deviations, sqrt(.0037 / 8) here, of any share: a false alarm below once in 10^5.
    mechanism, x = MemoizedUnaryEncoding(2.0, 4.0, 3), np.repeat([0, 1, 2], [4000, 3000, 1000])
    told = mechanism.report(mechanism.memoize(x, insecure_seed=1), insecure_seed=2)
    shares = np.array([0.5, 0.375, 0.125])
    for method in ("unbiased", "norm-sub", "likelihood"):
        assert np.abs(estimate_frequencies(told, method) - shares).max() < 0.1
    model = HistogramModel(n_chains=1, n_draws=300, random_state=0).fit(told)
    assert np.abs(model.posterior_mean_["theta"] - estimate_frequencies(told, "likelihood")).max() < 0.02


def test_kept_rows_are_saved_spend_once_and_mark_their_reports(tmp_path):
    mechanism = MemoizedUnaryEncoding(1.0, 2.0, ["tea", "coffee"])
    kept = mechanism.memoize(["tea"] * 5)
    kept.save(tmp_path / "kept.npz")
    told = mechanism.report(Release.load(tmp_path / "kept.npz"))
    assert told.columns == ("tea", "coffee")
    assert told.guarantee == kept.guarantee == mechanism.permanent.guarantee
    assert told.noise == mechanism.noise
    told.save(tmp_path / "told.npz")
    assert Release.load(tmp_path / "told.npz").noise == mechanism.noise
    assert mechanism.report(kept[:2]).shape == (2, 2)
    assert mechanism.release(["tea"]).guarantee == mechanism.guarantee
    budget = Budget(2.0)
    budget.spend(mechanism.permanent.guarantee)
    insecure = mechanism.memoize(["tea"], insecure_seed=1)
    assert mechanism.report(insecure).guarantee.numerics == "insecure"
    assert mechanism.report(kept, insecure_seed=1).guarantee.numerics == "insecure"


def test_several_records_share_both_levels():
    three = MemoizedUnaryEncoding(1.5, 3.0, 4, relation=ReplaceOne(3))
    one = MemoizedUnaryEncoding(0.5, 1.0, 4)
    assert three.noise == one.noise
    for reports in (1, 2, 7, math.inf):
        group = three.guarantee_of_reports(reports).epsilon
        assert group == pytest.approx(3 * one.guarantee_of_reports(reports).epsilon, rel=1e-12)
    assert eval(repr(three), {"MemoizedUnaryEncoding": MemoizedUnaryEncoding, "ReplaceOne": ReplaceOne}) == three


def test_wrong_calls_are_refused_in_words():
    mechanism = MemoizedUnaryEncoding(1.0, 2.0, 3)
    for call, words in [
        (lambda: MemoizedUnaryEncoding(1.0, 1.0, 3), "`lifetime` must be above `epsilon` = 1.0, got 1.0"),
        (lambda: MemoizedUnaryEncoding(1.0, math.inf, 3), "`lifetime`"),
        (lambda: MemoizedUnaryEncoding(1.0, 2.0, 3, "threshold"), "`variant`"),
        (lambda: MemoizedUnaryEncoding(50.0, 200.0, 3), "must differ in probabilities of 64 bits"),
        (lambda: mechanism.guarantee_of_reports(0), "`reports`"),
        (lambda: mechanism.variances([1, 0], 5), r"`shares` must have shape \(3,\)"),
        (lambda: mechanism.variances([2, 0, 0], 5), "`shares` must be at least 0 and sum to at most 1, got 0.0 and 2"),
        (lambda: mechanism.variances([-0.1, 0.5, 0.5], 5), "`shares` must be at least 0 and sum to at most 1"),
        (lambda: mechanism.report(mechanism.release([0])), "`kept` must be a Release of `memoize` of this mechanism"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match=r"`reports` must be a whole number, got 1\.5"):
        mechanism.guarantee_of_reports(1.5)
    with pytest.raises(TypeError, match="`kept` must be a Release of `memoize`, got list"):
        mechanism.report([[0, 1, 0]])
