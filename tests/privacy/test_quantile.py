"""Private quantiles: the loss and how far a neighbor moves it, the law of the choice, and what it guarantees."""

import functools
import itertools
import math
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.saved import reread
from tests.statistics import FALSE_ALARM

from quincunx.errors import TooLargeError
from quincunx.privacy import (
    AddRemove,
    Budget,
    BudgetExceeded,
    DataMetric,
    NoGuarantee,
    PrivacyGuarantee,
    ReplaceOne,
    quantile,
)
from quincunx.privacy.noise import QuantileChoice

LEVELS = [F(0), F(1, 10), F(1, 4), F(1, 3), F(1, 2), F(9, 10), F(1)]


def loss(data, g, q):
    """By how many ranks g misses the quantile, as the definition has it."""
    below, up_to = sum(x < g for x in data), sum(x <= g for x in data)
    return max(below - q * len(data), q * len(data) - up_to, 0)


def bags(values, sizes):
    return [data for size in sizes for data in itertools.combinations_with_replacement(values, size)]


def replaced(data, values):
    return [tuple(sorted((*data[:i], *data[i + 1 :], value))) for i in range(len(data)) for value in values]


def added(data, values):
    return [tuple(sorted((*data, value))) for value in values]


@pytest.mark.parametrize("q", LEVELS, ids=str)
def test_a_neighbor_moves_a_loss_by_at_most_what_is_paid_for_and_by_as_much(q):
    """All data sets of at most five of five values, all outputs: 1 for replaced records, max(q, 1 - q) for others."""
    values = range(5)
    of = functools.cache(lambda data, g: loss(data, g, q))
    for neighbors, most in ((replaced, F(1)), (added, max(q, 1 - q))):
        moved = {
            abs(of(data, g) - of(other, g))
            for data in bags(values, range(5))
            for other in neighbors(data, values)
            for g in values
        }
        assert max(moved) == most


@pytest.mark.parametrize("q", LEVELS, ids=str)
def test_losses_are_those_of_the_definition(q):
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 7, 40):
        whole = QuantileChoice(F(1), q, -3, 9, 2)
        data = rng.integers(-6, 14, size)
        assert whole.losses(data).tolist() == [q.denominator * loss(data, g, q) for g in range(-3, 10, 2)]
        real = QuantileChoice(F(1), q, 0.0, 1.0, 0.125)
        data = rng.choice([0.125, 0.5, -1.0, 2.0, 0.3, 0.75], size)
        assert real.losses(data).tolist() == [q.denominator * loss(data, g, q) for g in np.arange(9) / 8]
    assert whole.grid.dtype == np.int64
    assert real.grid.dtype == np.float64


def probabilities(data, q, grid, epsilon, moved):
    """The law by its formula, in 50 digits."""
    with mpmath.workdps(50):
        weights = [mpmath.exp(-mpmath.mpf(epsilon) * float(loss(data, g, q)) / (2 * float(moved))) for g in grid]
        return [weight / mpmath.fsum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("relation", "q", "data", "bounds"),
    [
        (ReplaceOne(), 0.5, [1, 1, 2, 7, 7, 8, 30, -4], (0, 12, None)),
        (AddRemove(), 0.25, [3, 4, 5, 5, 9], (0, 10, None)),
        (ReplaceOne(2), 0.9, [0.1, 0.25, 0.5, 0.9], (0.0, 1.0, 0.0625)),
    ],
)
def test_draws_follow_the_law(relation, q, data, bounds):
    """A chi-square test of 8000 draws against the formula, false-alarm rate 1e-6 each."""
    lower, upper, step = bounds
    how = {"epsilon": 0.7, "lower": lower, "upper": upper, "step": step, "relation": relation}
    noise = quantile(data, q, **how).noise
    exact, place = noise.grid, F(q).limit_denominator(10**6)
    moved = relation.records * (max(place, 1 - place) if isinstance(relation, AddRemove) else 1)
    law = probabilities(data, place, exact.tolist(), 0.7, moved)
    assert np.exp(noise.log_likelihood(exact, data)).tolist() == pytest.approx([float(p) for p in law], rel=1e-9)
    draws = [quantile(data, q, **how).values.item() for _ in range(8000)]
    counts = np.array([draws.count(g) for g in exact.tolist()])
    assert counts.sum() == len(draws)
    expected = np.array([float(p) for p in law]) * len(draws)
    assert expected.min() > 25
    probability = stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1)
    print(f"p = {probability:.3g} with {len(expected)} bins")
    assert probability > FALSE_ALARM


@pytest.mark.parametrize("q", [0.0, 0.1, 1 / 3, 0.5, 1.0])
@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()])
def test_no_pair_of_neighbors_is_told_apart_better_than_claimed(q, relation):
    """All neighbors among small data sets, in 50 digits; replaced by twice the rate the claim would fail."""
    values, worst = range(4), mpmath.mpf(0)
    noise = quantile([], q, epsilon=1.0, lower=0, upper=3, relation=relation)
    exponent, place = noise.noise.exponent, noise.noise.q
    claim = noise.guarantee
    with mpmath.workdps(50):

        @functools.cache
        def law(data, rate):
            weights = [mpmath.exp(-rate * float(place.denominator * loss(data, g, place))) for g in values]
            return [weight / mpmath.fsum(weights) for weight in weights]

        def furthest(rate):
            found = mpmath.mpf(0)
            for data in bags(values, range(4)):
                p = law(data, rate)
                for other in (replaced if relation == ReplaceOne() else added)(data, values):
                    ratios = [mpmath.log(a / b) for a, b in zip(p, law(other, rate), strict=True)]
                    found = max(found, max(ratios), -min(ratios))
            return found

        rate = mpmath.mpf(exponent.numerator) / exponent.denominator
        worst = furthest(rate)
        assert worst <= claim.epsilon
        assert furthest(4 * rate) > claim.epsilon
    print(f"q = {q:.3g}, {relation}: {float(worst):.4f} of {claim.epsilon}")
    assert claim.epsilon <= 1.0
    assert claim.epsilon == pytest.approx(1.0, rel=1e-9)
    assert claim.range_bounded
    assert claim.zcdp == pytest.approx(1 / 8)


def test_a_median_is_near_where_there_are_many_and_uniform_where_there_is_none():
    rng = np.random.default_rng(3)
    data = rng.normal(50.0, 10.0, 5000)
    true = np.median(data)
    for relation in (ReplaceOne(), AddRemove()):
        # Beyond 200 ranks: 4097 points of weight exp(-100) at most, against one of at least exp(-1).
        found = quantile(data, 0.5, epsilon=1.0, lower=0.0, upper=100.0, relation=relation)
        assert abs((data < found.values).sum() - 2500) < 200
        assert abs(found.values - true) < 2
    low, high = (quantile(data, q, epsilon=1.0, lower=0, upper=100).values for q in (0.05, 0.95))
    assert low < true < high
    empty = quantile([], 0.5, epsilon=1.0, lower=0, upper=3, relation=AddRemove()).noise
    assert np.exp(empty.log_likelihood([0, 1, 2, 3], [])).tolist() == pytest.approx([0.25] * 4)
    outside = quantile([1e300, -1e300, 7.0], 0.5, epsilon=200.0, lower=0, upper=10)
    assert int(outside.values) == 7  # every other number has weight exp(-50) at most


def test_several_quantiles_compose_in_a_budget():
    budget = Budget(1.0, relation=AddRemove())
    each = budget.split([1, 1, 1, 1])[0].epsilon
    for q in (0.25, 0.5, 0.75, 0.9):
        budget.spend(PrivacyGuarantee(each, relation=AddRemove(), range_bounded=True))
        found = quantile(range(50), q, epsilon=float(each), lower=0, upper=60, relation=AddRemove())
        assert found.guarantee.exact_epsilon <= each
    with pytest.raises(BudgetExceeded):
        budget.spend(found)
    many = Budget(1.0, 1e-6, filter="zcdp")
    spent = 0
    try:
        while True:
            many.spend(quantile([1, 2], 0.5, epsilon=0.1, lower=0, upper=3))
            spent += 1
    except BudgetExceeded:
        pass
    assert spent >= 18  # levels of 0.01 / 8 each, where epsilons would end at 10


@pytest.mark.parametrize("form", ["npz", "json"])
@pytest.mark.parametrize("bounds", [(0, 10, 2), (0.0, 1.0, 0.1)])
def test_a_release_keeps_its_law_and_says_what_it_is(form, bounds):
    lower, upper, step = bounds
    release = quantile([3, 0.4, 5], 0.1, epsilon=1.0, lower=lower, upper=upper, step=step, insecure_seed=5)
    again = quantile([3, 0.4, 5], 0.1, epsilon=1.0, lower=lower, upper=upper, step=step, insecure_seed=5)
    assert release == again
    assert release.guarantee.numerics == "insecure"
    assert (release.mechanism, release.noise.q) == ("quantile", F(1, 10))
    assert release.protects == "one record replaced by any other"
    read = reread(release, format=form)
    assert read == release
    assert np.array_equal(read.noise.grid, release.noise.grid)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [1.0, math.nan]}, "`values`"),
        ({"values": [[1.0]]}, "`values` must have one axis"),
        ({"values": ["a"]}, "`values`"),
        ({"q": 1.5}, "`q` must be in"),
        ({"q": -0.1}, "`q`"),
        ({"q": math.nan}, "`q`"),
        ({"epsilon": 0.0}, "`epsilon`"),
        ({"epsilon": 1e-300}, "`epsilon`"),
        ({"lower": 5}, "`lower` must be below"),
        ({"lower": -1e308, "upper": 1e308}, "`lower` must be below `upper` by a float"),
        ({"upper": math.inf}, "`upper`"),
        ({"step": 0}, "`step`"),
        ({"step": 6}, "`step`"),
        ({"lower": 1.0, "upper": 1.0 + 1e-15, "step": 1e-17}, "`step` must lead to different floats"),
        ({"lower": 2**62 + 1, "upper": 2**63}, "`lower`"),
        ({"relation": "all"}, "`relation`"),
        ({"insecure_seed": -1}, "`insecure_seed`"),
    ],
)
def test_bad_arguments_are_refused_by_name(change, message):
    arguments = {"values": [1, 2], "q": 0.5, "epsilon": 1.0, "lower": 0, "upper": 5} | change
    with pytest.raises((ValueError, TypeError), match=message):
        quantile(**arguments)


def test_what_is_not_proved_or_does_not_fit_is_refused():
    for relation in (DataMetric("hamming", 1), DataMetric("l1", 1)):
        with pytest.raises(NoGuarantee, match="no rule is known"):
            quantile([1], 0.5, epsilon=1.0, lower=0, upper=5, relation=relation)
    with pytest.raises(TooLargeError, match="a grid of so many steps"):
        quantile([1], 0.5, epsilon=1.0, lower=0, upper=2**60)
    with pytest.raises(ValueError, match="must lie on the grid"):
        quantile([1], 0.5, epsilon=1.0, lower=0, upper=5).noise.log_likelihood(2.5, [1])
