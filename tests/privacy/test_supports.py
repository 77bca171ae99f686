"""Local hashing, subset selection, Hadamard response: laws by enumeration of all reports, draws, bad input."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.statistics import assert_discrete_fit, assert_share

from quincunx.ldp import HistogramModel, LinearRegression
from quincunx.privacy import (
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LocalHashing,
    MemoizedUnaryEncoding,
    ReplaceOne,
    SubsetSelection,
    UnaryEncoding,
)
from quincunx.privacy._supports import PRIME

EPSILONS = [1e-9, 0.01, 0.5, 1.0, 3.0, 20.0, 60.0, 1e4]
#: Mechanisms whose reports can be listed.
SMALL = [
    SubsetSelection(0.8, 4),
    SubsetSelection(0.8, 5, size=2),
    SubsetSelection(0.3, 6, size=4),
    HadamardResponse(0.5, 3),
    HadamardResponse(0.8, 7, blocks=1),
    HadamardResponse(2.0, 10),
    HadamardResponse(3.0, 5, blocks=2),
    HadamardResponse(1.2, 3, blocks=3),
]


def two_of_each(epsilon, k):
    """Mechanisms of each kind, one with the size it chooses and one with another."""
    return [
        SubsetSelection(epsilon, k),
        SubsetSelection(epsilon, k, size=k // 2 + 1),
        LocalHashing(epsilon, k),
        LocalHashing(epsilon, k, buckets=2),
        HadamardResponse(epsilon, k),
        HadamardResponse(epsilon, k, blocks=1),
    ]


def outputs(mechanism):
    """Every report of a mechanism; of local hashing those of one hash function."""
    k = mechanism.categories
    if isinstance(mechanism, SubsetSelection):
        return np.array([row for row in itertools.product((0, 1), repeat=k) if sum(row) == mechanism.size])
    return np.arange(mechanism.blocks * mechanism.noise.columns)


def table(mechanism):
    """The probabilities of all reports, inputs by outputs."""
    return np.exp([mechanism.log_likelihood(outputs(mechanism), x) for x in range(mechanism.categories)])


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_every_report_for_every_pair_of_categories_keeps_the_ratio(mechanism):
    laws = table(mechanism)
    assert laws.sum(axis=1) == pytest.approx(np.ones(mechanism.categories), abs=1e-13)
    worst = np.ptp(np.log(laws), axis=0).max()
    assert worst <= mechanism.epsilon * (1 + 1e-12)
    assert worst == pytest.approx(mechanism.epsilon, rel=1e-12)
    # The whole curve is that of the worst pair of categories.
    for epsilon in (0.0, 0.1, 0.4 * mechanism.epsilon):
        excess = max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in itertools.permutations(laws, 2))
        assert mechanism.guarantee.delta_at(epsilon) == pytest.approx(excess, rel=1e-9)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_supports_and_their_probabilities_are_those_of_the_law(mechanism):
    laws, rows = table(mechanism), mechanism.noise.supports(outputs(mechanism))
    p, q = mechanism.one_probability, mechanism.zero_probability
    held = laws @ rows  # P(the report supports y | x)
    assert np.diag(held) == pytest.approx(np.full(len(held), p), rel=1e-12)
    others = held[~np.eye(len(held), dtype=bool)]
    assert others.min() == pytest.approx(q, rel=1e-12)
    if getattr(mechanism, "blocks", 1) == 1:
        assert others.max() == pytest.approx(q, rel=1e-12)
    assert ((laws > laws.min()) == rows.T.astype(bool)).all()


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_estimates_are_unbiased_and_have_their_variance_by_enumeration(mechanism):
    laws, k = table(mechanism), mechanism.categories
    each = np.array([mechanism.estimate(report[None]) for report in outputs(mechanism)])
    assert laws @ each == pytest.approx(np.eye(k), abs=1e-12)
    shares = np.random.default_rng(0).dirichlet(np.ones(k))
    second = shares @ laws @ each**2
    assert mechanism.noise.variances(shares, 7) == pytest.approx((second - shares**2) / 7, rel=1e-10)


@pytest.mark.parametrize(("k", "buckets"), [(5, 3), (7, 2), (4, 6)])
def test_local_hashing_by_enumeration_of_all_functions_over_a_small_field(monkeypatch, k, buckets):
    prime = 11
    monkeypatch.setattr("quincunx.privacy._local_hashing.PRIME", prime)
    law = LocalHashing(1.1, k, buckets).noise
    law = type(law)(k, buckets, law.miss)
    pairs = np.array(list(itertools.product(range(prime**2), range(buckets))))
    laws = np.exp(law.log_likelihood(pairs[:, None, :], np.arange(k))).T
    assert laws.sum(axis=1) == pytest.approx(np.ones(k), abs=1e-12)
    rows = law.supports(pairs)
    held = laws @ rows
    assert held == pytest.approx(np.where(np.eye(k, dtype=bool), law.one_probability, law.zero_probability), rel=1e-12)
    for x, y in itertools.permutations(range(k), 2):
        assert np.mean(rows[rows[:, x] == 1, y] == 0) == pytest.approx(float(law.apart), rel=1e-12)
    each = (rows - law.zero_probability) / (law.one_probability - law.zero_probability)
    assert laws @ each == pytest.approx(np.eye(k), abs=1e-11)


def test_hashes_of_the_full_field_are_as_said():
    law = LocalHashing(1.0, 1000, 7).noise
    rng = np.random.default_rng(1)
    for function, value in zip(rng.integers(0, PRIME**2, 50).tolist(), rng.integers(0, 7, 50).tolist(), strict=True):
        a, b = divmod(function, PRIME)
        by_hand = [int((a * x + b) % PRIME % 7 == value) for x in range(1000)]
        assert law.supports([function, value]).tolist() == by_hand
    least, most = PRIME // 7, PRIME // 7 + 1
    more = PRIME % 7
    assert law.apart == 1 - Fraction(more * most**2 + (7 - more) * least**2, PRIME**2)
    assert law.zero_probability == pytest.approx(1 / 7, abs=1e-9)
    assert LocalHashing(1.0, [f"label {i}" for i in range(20)]).noise.supports([5, 0]).shape == (20,)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_stated_epsilon_is_that_of_the_probabilities_used(epsilon):
    for mechanism in two_of_each(epsilon, 12):
        share = mechanism.noise.share
        with mpmath.workdps(60):
            word = mpmath.mpf(2) ** 64
            odds = mpmath.mpf((1 - share).numerator * share.denominator) / (share.numerator * (1 - share).denominator)
            loss = mpmath.log((word - mechanism._miss) / mechanism._miss * odds)
            stated = mechanism.guarantee.exact_epsilon
            assert loss <= mpmath.mpf(stated.numerator) / stated.denominator
            assert loss <= epsilon
            assert loss >= mechanism.epsilon * (1 - mpmath.mpf(2) ** -48)
            if 0.01 <= epsilon <= 20:
                assert loss > epsilon * (1 - mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_variances_are_those_of_the_papers(epsilon):
    e, k, n = math.exp(epsilon), 64, 1000
    none = np.zeros(k)
    none[0] = 1.0
    wang = 4 * e / (n * (e - 1) ** 2)  # Wang et al. 2017, equations 10 and 13, at g = e^epsilon + 1
    hashing = LocalHashing(epsilon, k)
    assert hashing.buckets == round(e) + 1
    g = hashing.buckets  # equation 12
    assert hashing.noise.variances(none, n)[1] == pytest.approx(
        (e - 1 + g) ** 2 / (n * (e - 1) ** 2 * (g - 1)), rel=1e-7
    )
    assert hashing.noise.variances(none, n)[1] == pytest.approx(wang, rel=0.02)
    # Ye and Barg 2018: the loss over all categories, of uniform shares.
    subset = SubsetSelection(epsilon, k)
    w = subset.size
    risk = (k - 1) ** 2 / (n * k * (e - 1) ** 2) * (w * e + k - w) ** 2 / (w * (k - w))
    assert subset.noise.variances(np.full(k, 1 / k), n).sum() == pytest.approx(risk, rel=1e-9)
    assert abs(w - k / (e + 1)) < 1
    # Hadamard response with one block: ((e + 1) / (e - 1))^2 / n at share 0.
    one = HadamardResponse(epsilon, k, blocks=1)
    assert one.noise.variances(none, n)[1] == pytest.approx(((e + 1) / (e - 1)) ** 2 / n, rel=1e-9)
    # The chosen number of blocks is nearly the best of the powers of two for uniform shares, too.
    chosen = HadamardResponse(epsilon, k)
    assert chosen.noise.variances(np.full(k, 1 / k), n)[1] <= 1.05 * min(
        HadamardResponse(epsilon, k, blocks=blocks).noise.variances(np.full(k, 1 / k), n)[1]
        for blocks in (1, 2, 4, 8, 16)
    )
    # Subsets are the best of all.
    best = subset.noise.variances(np.full(k, 1 / k), n).sum()
    for other in (hashing, one, HadamardResponse(epsilon, k)):
        assert other.noise.variances(np.full(k, 1 / k), n).sum() >= best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda n: SubsetSelection(1.0, 3).noise.variances([0.1, 0.2, 0.7], n), "users"),
        (lambda n: UnaryEncoding(1.0, 3).estimate_from_counts([1, 2, 3], n), "users"),
        (lambda n: HistogramModel(UnaryEncoding(1.0, 3), data="counts").fit([1, 2, 3], n=n), "n"),
        (lambda n: LinearRegression(kind="statistics").fit([1.0, 2.0, 3.0], n=n), "n"),
    ],
)
def test_more_users_than_doubles_count_are_refused_by_name(call, name):
    with pytest.raises(ValueError, match=rf"`{name}` must be between [01] and {2**53}, got 1000"):
        call(10**400)


def test_more_reports_than_doubles_count_are_the_limit():
    daily = MemoizedUnaryEncoding(1.0, 2.0, 3)
    limit = daily.variances([0.1, 0.2, 0.7], 10, math.inf)
    assert (daily.variances([0.1, 0.2, 0.7], 10, 10**400) == limit).all()


def test_subsets_of_one_are_generalized_randomized_response():
    one, response = SubsetSelection(1.3, 5, size=1), GeneralizedRandomizedResponse(1.3, 5)
    assert one.log_likelihood(np.eye(5, dtype=int), 2) == pytest.approx(response.log_likelihood(range(5), 2), rel=1e-12)
    assert SubsetSelection(3.0, 5).size == 1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_thresholds_are_those_of_laplace_noise(epsilon):
    mechanism = UnaryEncoding(epsilon, 4, "threshold")
    noise = stats.laplace(scale=2 / epsilon)
    assert mechanism.one_probability == pytest.approx(noise.sf(mechanism.threshold - 1), rel=1e-12)
    assert mechanism.zero_probability == pytest.approx(noise.sf(mechanism.threshold), rel=1e-12)
    p, q = mechanism.one_probability, mechanism.zero_probability
    assert mechanism.epsilon == pytest.approx(math.log(p * (1 - q) / (q * (1 - p))), rel=1e-12)
    assert mechanism.epsilon < epsilon
    # Wang et al. 2017, equation 7, which the threshold makes least.
    spread = [
        (2 * math.exp(epsilon * t / 2) - 1) / (1 + math.exp(epsilon * (t - 0.5)) - 2 * math.exp(epsilon * t / 2)) ** 2
        for t in np.linspace(0.5, 1.0, 2001)
    ]
    assert q * (1 - q) / (p - q) ** 2 == pytest.approx(min(spread), rel=1e-6)
    assert eval(repr(mechanism), {"UnaryEncoding": UnaryEncoding}) == mechanism
    assert mechanism != UnaryEncoding(epsilon, 4, "threshold", threshold=0.9)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_reports_fit_their_likelihood(mechanism):
    listed = outputs(mechanism)
    place = {tuple(np.atleast_1d(report).tolist()): i for i, report in enumerate(listed)}
    for x in (0, mechanism.categories - 1):
        drawn = mechanism.release(np.full(50_000, x), insecure_seed=5).values
        found, counts = np.unique(drawn.reshape(len(drawn), -1), axis=0, return_counts=True)
        frequencies = np.zeros(len(listed))
        frequencies[[place[tuple(row)] for row in found.tolist()]] = counts
        assert_discrete_fit(frequencies, np.exp(mechanism.log_likelihood(listed, x)))


@pytest.mark.statistical
def test_hashes_and_thresholds_fit_their_likelihood():
    mechanism = LocalHashing(1.0, 50)
    drawn = mechanism.release(np.full(100_000, 17), insecure_seed=5)
    rows = mechanism.noise.supports(drawn)
    assert_share(rows[:, 17].sum(), len(rows), mechanism.one_probability)
    for y in (0, 18, 49):
        assert_share(rows[:, y].sum(), len(rows), mechanism.zero_probability)
        # Hashes of two categories are independent.
        assert_share((rows[:, 17] & rows[:, y]).sum(), len(rows), mechanism.one_probability / mechanism.buckets)
    functions = drawn.values[:, 0]
    for part in np.divmod(functions, PRIME):
        assert_discrete_fit(np.bincount(part * 64 // PRIME, minlength=64), np.full(64, 1 / 64))
    threshold = UnaryEncoding(1.2, 4, "threshold")
    rows = threshold.release(np.full(100_000, 2), insecure_seed=5).values
    listed = np.array(list(itertools.product((0, 1), repeat=4)))
    assert_discrete_fit(np.bincount(rows @ [8, 4, 2, 1], minlength=16), np.exp(threshold.log_likelihood(listed, 2)))


@pytest.mark.statistical
def test_estimates_find_the_shares():
    # 5.7 standard deviations of the exact variance: 1e-8 for each of 80 coordinates, 1e-6 for all.
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    values = np.repeat(np.arange(5), (shares * 100_000).astype(int))
    for epsilon in (0.5, 2.0):
        for mechanism in (*two_of_each(epsilon, 5), HadamardResponse(epsilon, 5, blocks=2)):
            release = mechanism.release(values, insecure_seed=9)
            deviation = np.sqrt(mechanism.noise.variances(shares, len(values)))
            assert (np.abs(mechanism.estimate(release) - shares) < 5.7 * deviation).all()
            assert mechanism.estimate(release, simplex=True).sum() == pytest.approx(1.0)


def test_several_records_have_their_share_of_epsilon():
    for kind in (SubsetSelection, LocalHashing, HadamardResponse):
        three = kind(3.0, 6, relation=ReplaceOne(3))
        assert three.noise == kind(1.0, 6).noise
        assert three.epsilon == pytest.approx(3.0, rel=1e-12)
        assert repr(three).endswith("relation=ReplaceOne(3))")


def test_empty_and_scalar_inputs_keep_their_shape():
    for mechanism, own in [
        (SubsetSelection(1.0, 4), (4,)),
        (LocalHashing(1.0, 4), (2,)),
        (HadamardResponse(1.0, 4), ()),
    ]:
        assert mechanism.release(2).values.shape == own
        assert mechanism.release(np.zeros((2, 0), dtype=int)).values.shape == (2, 0, *own)
        release = mechanism.release(np.zeros((2, 3), dtype=int))
        assert release.values.shape == (2, 3, *own)
        assert mechanism.noise.supports(release).shape == (2, 3, 4)
        assert mechanism.log_likelihood(release, np.arange(3)).shape == (2, 3)
        assert mechanism.estimate(release).shape == mechanism.estimate(release[0, 0]).shape == (4,)
    labels = SubsetSelection(1.0, ["tea", "coffee", "mate"]).release(["mate", "tea"])
    assert labels.columns == ("tea", "coffee", "mate")


def test_bad_input_is_refused_with_name_rule_and_value():
    for kind in (SubsetSelection, LocalHashing, HadamardResponse):
        for bad in (0, -1.0, math.nan, math.inf, 1e-30):
            with pytest.raises(ValueError, match="`epsilon`"):
                kind(bad, 3)
        with pytest.raises(ValueError, match="`categories` must be between 2"):
            kind(1.0, 1)
        with pytest.raises(ValueError, match=r"`x` must hold whole numbers between 0 and 2, got 3 at index \(1,\)"):
            kind(1.0, 3).release([0, 3, 9])
        with pytest.raises(ValueError, match="at least one report"):
            kind(1.0, 3).estimate(kind(1.0, 3).release([]))
        with pytest.raises(ValueError, match=r"`shares` must have shape \(3,\)"):
            kind(1.0, 3).noise.variances([0.5, 0.5], 10)
    for size in (0, 4):
        with pytest.raises(ValueError, match="`size` must be between 1 and 3"):
            SubsetSelection(1.0, 4, size=size)
    with pytest.raises(ValueError, match="`buckets` must be between 2"):
        LocalHashing(1.0, 4, buckets=1)
    with pytest.raises(ValueError, match="`blocks` must be between 1 and 4"):
        HadamardResponse(1.0, 4, blocks=5)
    with pytest.raises(ValueError, match="rows with 1 ones each, got one with 2"):
        SubsetSelection(1.0, 4).estimate([[1, 0, 1, 0]])
    with pytest.raises(ValueError, match="last axis of length 4"):
        SubsetSelection(1.0, 4).estimate([[1, 0, 0]])
    with pytest.raises(ValueError, match="last axis of length 2"):
        LocalHashing(1.0, 4).estimate([1, 2, 3])
    with pytest.raises(ValueError, match="numbers of values below 4, got 4"):
        LocalHashing(1.0, 4).estimate([[1, 4]])
    with pytest.raises(ValueError, match="numbers of functions below"):
        LocalHashing(1.0, 4).estimate([[PRIME**2, 0]])
    with pytest.raises(ValueError, match="between 0 and 7, got 8"):
        HadamardResponse(0.5, 5).estimate([8])
    with pytest.raises(ValueError, match="`threshold` must be between 1/2 and 1"):
        UnaryEncoding(1.0, 4, "threshold", threshold=0.3)
    with pytest.raises(ValueError, match="`threshold` must be left out"):
        UnaryEncoding(1.0, 4, threshold=0.7)
