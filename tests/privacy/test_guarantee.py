"""Guarantees: laws of composition, exact profiles, known conversions."""

import copy
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from quincunx import _core
from quincunx.privacy import (
    AddRemove,
    DataMetric,
    DiscreteGaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    NoGuarantee,
    PrivacyGuarantee,
    ReplaceOne,
    gaussian_delta,
    gaussian_epsilon,
    subsampled,
)

pure = st.builds(PrivacyGuarantee, st.floats(0.01, 2))
approximate = st.builds(PrivacyGuarantee, st.floats(0.01, 2), st.floats(1e-12, 1e-3))
gaussian = st.builds(PrivacyGuarantee.of_gaussian, st.floats(0.5, 50), st.sampled_from([1e-9, 1e-6, 1e-3]))
bounded = st.builds(lambda e: PrivacyGuarantee(e, range_bounded=True), st.floats(0.01, 2))
guarantees = st.one_of(pure, approximate, gaussian, bounded)
laws = settings(derandomize=True, deadline=None, max_examples=60)


@given(guarantees, guarantees, guarantees)
@laws
def test_composition_is_commutative_and_associative(a, b, c):
    assert a & b == b & a
    assert (a & b) & c == a & (b & c)


@given(st.one_of(pure, gaussian, bounded), st.integers(2, 5))
@laws
def test_a_multiple_is_a_repeated_composition(g, times):
    repeated = g
    for _ in range(times - 1):
        repeated = repeated & g
    assert times * g == repeated == g * times


@given(guarantees, guarantees, st.floats(0, 5), st.floats(0.01, 3))
@laws
def test_the_profile_falls_and_never_passes_the_stated_pair(a, b, epsilon, more):
    both = a & b
    assert both.delta_at(epsilon + more) <= both.delta_at(epsilon)
    assert both.delta_at(both.epsilon) <= both.delta
    assert both.delta_at(epsilon) >= a.delta_at(epsilon) * (1 - 1e-9)
    if both.delta:
        assert both.epsilon_at(both.delta) <= both.epsilon


@given(guarantees, guarantees, st.floats(-25, -1))
@laws
def test_epsilon_and_delta_at_one_another_agree(a, b, log_delta):
    both, delta = a & b, math.exp(log_delta)
    epsilon = both.epsilon_at(delta)
    if math.isfinite(epsilon):
        assert both.delta_at(epsilon * (1 + 1e-9) + 1e-12) <= delta * (1 + 1e-9)


def test_sums_of_fractions_are_exact():
    tenth = PrivacyGuarantee(Fraction(1, 10))
    assert (10 * tenth).exact_epsilon == 1
    assert (10 * tenth).epsilon == 1.0
    third = PrivacyGuarantee(Fraction(1, 3))
    assert Fraction(third.epsilon) > Fraction(1, 3) > Fraction(math.nextafter(third.epsilon, 0))


def test_numbers_are_taken_as_they_are_given():
    assert PrivacyGuarantee(Decimal("0.3"), Decimal("1e-7")).exact_epsilon == Fraction(3, 10)
    assert PrivacyGuarantee(2**53 + 1).exact_epsilon == 2**53 + 1
    third = np.longdouble(1) / 3
    assert PrivacyGuarantee(third).exact_epsilon == Fraction(*third.as_integer_ratio())
    assert DataMetric("l1").chain(np.float32(1.5)) == 2
    for relation in (ReplaceOne(), DataMetric("l1")):
        with pytest.raises(ValueError, match="`distance` must be at least 0"):
            relation.chain(-1)


def test_relations_are_not_mixed():
    relations = [ReplaceOne(), AddRemove(), ReplaceOne(2), DataMetric("l1"), DataMetric("l1", 2), DataMetric("l2")]
    for one in relations:
        for other in relations:
            pair = PrivacyGuarantee(1.0, relation=one), PrivacyGuarantee(1.0, relation=other)
            if one == other:
                assert (pair[0] & pair[1]).relation == one
            else:
                with pytest.raises(TypeError, match="different relations"):
                    pair[0] & pair[1]


def test_numerics_are_as_good_as_the_worst_part():
    exact, rounded = PrivacyGuarantee(1.0), PrivacyGuarantee(1.0, numerics="float64")
    seeded = PrivacyGuarantee(1.0, numerics="insecure")
    assert (exact & exact).numerics == "exact"
    assert (exact & rounded).numerics == "float64"
    assert (rounded & seeded & exact).numerics == "insecure"


def test_pure_guarantees_compose_as_the_exact_binomial_sum():
    with mpmath.workdps(40):
        e, times = mpmath.mpf(0.25), 12
        p = 1 / (1 + mpmath.exp(-e))
        for epsilon in (0, 0.5, 1.3, 2.9):
            exact = sum(
                mpmath.binomial(times, k)
                * p**k
                * (1 - p) ** (times - k)
                * max(1 - mpmath.exp(epsilon - (2 * k - times) * e), 0)
                for k in range(times + 1)
            )
            found = (times * PrivacyGuarantee(0.25)).delta_at(epsilon)
            assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -12)


def test_gaussian_noises_compose_as_one():
    # sigma 3 and 4 at sensitivity 1: u^2 = 1/9 + 1/16 = (5/12)^2.
    both = PrivacyGuarantee.of_gaussian(3.0, 1e-6) & PrivacyGuarantee.of_gaussian(4.0, 1e-6)
    assert both.delta_at(1.0) == pytest.approx(gaussian_delta(1.0, 2.4), rel=1e-11)
    assert both.epsilon_at(1e-6) == pytest.approx(gaussian_epsilon(1e-6, 2.4), rel=1e-11)
    assert both.zcdp == pytest.approx((5 / 12) ** 2 / 2)
    assert both.epsilon_at(1e-6) < both.epsilon


def test_randomized_response_beside_gaussian_noise_is_exact():
    both = PrivacyGuarantee(0.5) & PrivacyGuarantee.of_gaussian(6.80765495085, 1e-5)
    assert both.epsilon_at(1e-5) == pytest.approx(1.0, rel=1e-10)
    assert both.delta_at(1.0) == pytest.approx(1e-5, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "times", "sigma"),
    [(0.02, 200, 4.0), (0.02, 200, 0.25), (0.2, 150, 1.0), (0.5, 70, 20.0), (1e-4, 99, 2.0)],
)
def test_many_responses_beside_gaussian_noise_are_never_below_the_exact_sum(epsilon, times, sigma):
    # Losses are many, so that the core sums profiles by series about the centers of cells.
    u = 1 / mpmath.mpf(sigma)
    level = mpmath.mpf(float(PrivacyGuarantee(epsilon).exact_epsilon))
    keep = 1 / (1 + mpmath.exp(-level))

    def exact(at):
        def profile(e):
            return mpmath.ncdf(u / 2 - e / u) - mpmath.exp(e) * mpmath.ncdf(-u / 2 - e / u)

        return sum(mass * profile(mpmath.mpf(at) - (2 * k - times) * level) for k, mass in masses)

    both = times * PrivacyGuarantee(epsilon) & PrivacyGuarantee.of_gaussian(sigma, 1e-6)
    middle, deviation = (
        times * epsilon * math.tanh(epsilon / 2) + 0.5 / sigma**2,
        math.hypot(1 / sigma, epsilon * times**0.5),
    )
    with mpmath.workdps(30):
        masses = [(k, mpmath.binomial(times, k) * keep**k * (1 - keep) ** (times - k)) for k in range(times + 1)]
        for place in (-9.0, 0.0, 1.0, 4.0, 8.0, 20.0):
            at = max(middle + place * deviation, 0.0)
            delta = exact(at)
            assert delta <= both.delta_at(at) <= delta * (1 + mpmath.mpf(10) ** -11.5) + mpmath.mpf(10) ** -300
        for delta in (0.9, 0.3, 1e-3, 1e-6, 1e-12, 1e-30, 1e-100):
            found = both.epsilon_at(delta)
            assert exact(found) <= delta
            assert (
                not found or found == both.epsilon or exact(found * (1 - 1e-12)) > delta * (1 - mpmath.mpf(10) ** -10)
            )


ALL = AddRemove()
SAMPLED = [
    (3 * subsampled(PrivacyGuarantee.of_gaussian(0.5, 1e-6, relation=ALL), 0.1), 1.0),
    (30 * subsampled(PrivacyGuarantee.of_gaussian(1.0, 1e-6, relation=ALL), 0.01), 3.3),
    (1000 * subsampled(PrivacyGuarantee.of_gaussian(1.0, 1e-6, relation=ALL), 0.01), 10.0),
    (2 * subsampled(PrivacyGuarantee(3.0, relation=ALL), 0.05), 4.0),
]


@pytest.mark.parametrize("place", range(len(SAMPLED)))
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-5, 1e-6, 1e-9, 1e-20])
def test_epsilon_is_found_where_few_losses_are_large(place, delta):
    # Newton's method may start below the root: rare losses far above the mean decide.
    parts, sigma = SAMPLED[place]
    both = parts & PrivacyGuarantee.of_gaussian(sigma, 1e-6, relation=ALL)
    found = both.epsilon_at(delta)
    assert both.delta_at(found) <= delta
    assert found == 0 or both.delta_at(found * (1 - 1e-6)) > delta


@pytest.mark.parametrize("u", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("loss", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("share", [1e-12, 1e-3, 0.1, 0.38, 0.5, 0.9, 1.1, 1.5])
def test_rare_losses_beside_gaussian_noise_have_an_epsilon(u, loss, share):
    rare = 1e-3
    losses = _core.PrivacyLosses([("outcomes", [rare, rare * math.exp(-loss), 1 - rare, 1.0], 1)], u)
    found = losses.epsilon(rare * share)
    assert losses.delta(found) <= rare * share
    assert found == 0 or losses.delta(found * (1 - 1e-6)) > rare * share


@pytest.mark.parametrize(("units", "u", "epsilon"), [(3, 2.0, 0.0), (60, 1.0, 1.0), (2000, 0.5, 0.5)])
def test_subnormal_deltas_of_many_losses_are_not_below_the_exact_sum(units, u, epsilon):
    least = 5e-324
    edge = 0.245 * min(u, 1.0)
    pairs = [(units * least, max(round(units * math.exp(-edge)), 1) * least)] * 99
    pairs += [(units * least, units * least), (1.0, 1e300)]
    losses = _core.PrivacyLosses([("outcomes", [x for pair in pairs for x in pair], 1)], u)
    with mpmath.workdps(40):
        exact = mpmath.mpf(0)
        for p, q in pairs:
            rest = (epsilon - mpmath.log(mpmath.mpf(p) / q)) / mpmath.mpf(u)
            exact += p * mpmath.ncdf(mpmath.mpf(u) / 2 - rest)
            exact -= p * mpmath.exp(rest * u) * mpmath.ncdf(-mpmath.mpf(u) / 2 - rest)
        assert losses.delta(epsilon) >= exact > 0


@pytest.mark.parametrize("part", [("laplace", [2e6]), ("gaussian", [1e200]), ("laplace", [1e308])])
def test_losses_beyond_the_range_of_doubles_protect_nothing(part):
    for u in (0.0, 1.0):
        assert _core.PrivacyLosses([(*part, 1)], u).delta(1.0) == 1.0


@pytest.mark.parametrize("delta", [0.7, 1e-2, 1e-7, 1e-40])
def test_the_least_epsilon_without_gaussian_noise_lies_between_two_deltas(delta):
    for many in (100 * PrivacyGuarantee(0.3), 7 * PrivacyGuarantee(1.0, range_bounded=True)):
        found = many.epsilon_at(delta)
        assert many.delta_at(found) <= delta
        assert found == 0 or many.delta_at(found * (1 - 1e-13)) > delta * (1 - 1e-12)


def test_posterior_samples_have_the_known_figures():
    sample = PrivacyGuarantee(0.1, range_bounded=True)
    many = 100 * sample
    assert many.epsilon == pytest.approx(10)
    assert many.zcdp == pytest.approx(0.125)
    assert many.epsilon_at(1e-6) == pytest.approx(2.4190931769, abs=1e-9)
    for epsilon, distance in [(0.1, 0.0249947930), (1, 0.2449186624), (4, 0.7615941560)]:
        assert PrivacyGuarantee(epsilon, range_bounded=True).total_variation() == pytest.approx(distance, abs=1e-10)
        assert PrivacyGuarantee(epsilon).total_variation() == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    assert PrivacyGuarantee(1.0, range_bounded=True).kl_divergence() == 0.125
    assert PrivacyGuarantee(100.0).kl_divergence() == pytest.approx(100.0)


def test_many_different_parts_fall_back_to_bounds():
    total = PrivacyGuarantee(0.01)
    for i in range(30):
        total = total & PrivacyGuarantee(0.01 + i / 1e4)
    assert total.epsilon_at(1e-6) < total.epsilon
    assert 0 < total.delta_at(total.epsilon / 2) < 1


def test_another_distance_scales_the_guarantee():
    metric = PrivacyGuarantee(0.5, 1e-6, relation=DataMetric("l1", 2))
    assert metric.at(6).epsilon == 1.5
    assert metric.at(6).delta == pytest.approx(1e-6 * math.expm1(1.5) / math.expm1(0.5))  # three steps, not 3e-6
    assert metric.at(1).epsilon == 0.5
    assert metric.at(6).relation == DataMetric("l1", 6)
    assert metric.at(2) == metric
    group = PrivacyGuarantee(0.5, 1e-6).at(3)
    assert group.relation == ReplaceOne(3)
    assert group.epsilon == 1.5
    assert group.delta == pytest.approx(1e-6 * math.expm1(1.5) / math.expm1(0.5))
    assert PrivacyGuarantee(0.5).at(3).zcdp == pytest.approx(1.5 * math.tanh(0.75))
    gaussian_metric = PrivacyGuarantee.of_gaussian(5.0, 1e-6, relation=DataMetric("l2"))
    assert gaussian_metric.at(2).epsilon == pytest.approx(gaussian_epsilon(1e-6, 2.5), rel=1e-10)
    assert gaussian_metric.at(2).delta == 1e-6
    with pytest.raises(ValueError, match="`distance`"):
        metric.at(0)
    with pytest.raises(ValueError, match="`distance`"):
        PrivacyGuarantee(1.0).at(0)
    with pytest.raises(ValueError, match="leave delta below 1"):
        PrivacyGuarantee(5.0, 1e-3).at(9)


@given(guarantees, guarantees)
@laws
def test_words_and_pickles_come_back_equal(a, b):
    both = a & b
    assert PrivacyGuarantee.from_dict(json.loads(json.dumps(both.to_dict()))) == both
    assert pickle.loads(pickle.dumps(both)) == both == copy.deepcopy(both)
    assert hash(copy.copy(both)) == hash(both)


def test_guarantees_cannot_be_changed():
    with pytest.raises(AttributeError):
        PrivacyGuarantee(1.0).relation = AddRemove()


def test_bad_input_is_refused_by_name():
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="`epsilon`"):
            PrivacyGuarantee(bad)
        with pytest.raises(ValueError, match="`zcdp`"):
            PrivacyGuarantee(1.0, zcdp=bad)
        with pytest.raises(ValueError, match="`epsilon`"):
            PrivacyGuarantee(1.0).delta_at(bad)
    for bad in (-0.1, 1, 1.5, math.nan):
        with pytest.raises(ValueError, match="`delta`"):
            PrivacyGuarantee(1.0, bad)
    with pytest.raises(ValueError, match="`delta`"):
        PrivacyGuarantee(1.0, 1e-5).epsilon_at(0)
    with pytest.raises(ValueError, match="`numerics`"):
        PrivacyGuarantee(1.0, numerics="sloppy")
    with pytest.raises(ValueError, match="`range_bounded`"):
        PrivacyGuarantee(1.0, 1e-5, range_bounded=True)
    with pytest.raises(TypeError, match="`relation`"):
        PrivacyGuarantee(1.0, relation=ReplaceOne)
    with pytest.raises(ValueError, match="`times`"):
        0 * PrivacyGuarantee(1.0)
    with pytest.raises(ValueError, match="`epsilon` must be one that sigma"):
        PrivacyGuarantee.of_gaussian(1.0, 1e-6, epsilon=0.1)
    with pytest.raises(TypeError):
        PrivacyGuarantee(1.0) & 2
    with pytest.raises(TypeError):
        PrivacyGuarantee(1.0) * "2"
    with pytest.raises(ValueError, match="`metric`"):
        DataMetric("euclid")
    with pytest.raises(ValueError, match="`radius`"):
        DataMetric("l1", 0)
    with pytest.raises(ValueError, match="`values`"):
        PrivacyGuarantee.from_dict({"epsilon": "1"})


def precise_profile(epsilon, squared):
    """The delta of Gaussian noise of u squared, in the precision at hand."""
    u, epsilon = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator), mpmath.mpf(epsilon)
    return mpmath.ncdf(u / 2 - epsilon / u) - mpmath.exp(epsilon) * mpmath.ncdf(-u / 2 - epsilon / u)


def epsilon_near(log_delta, squared):
    """An epsilon whose delta has about this logarithm."""
    u = math.sqrt(squared)

    def above(epsilon):
        first = special.log_ndtr(u / 2 - epsilon / u)
        return first + math.log(-math.expm1(epsilon + special.log_ndtr(-u / 2 - epsilon / u) - first)) - log_delta

    return optimize.brentq(above, 0.0, 60 * u + u * u)


@pytest.mark.parametrize("copies", [1, 2, 3, 17])
def test_subnormal_deltas_are_never_below_the_exact_ones(copies):
    rng = np.random.default_rng(copies)
    quantum = mpmath.mpf(2) ** -1074
    with mpmath.workdps(60):
        for _ in range(60):
            sigma = math.exp(rng.uniform(-1, 4))
            squared = copies / Fraction(sigma) ** 2
            epsilon = epsilon_near((rng.uniform(1, 11) - 1074) * math.log(2), squared)
            exact = precise_profile(epsilon, squared)
            for beside in (None, PrivacyGuarantee(min(epsilon / 9, 1.0))):
                guarantee = copies * PrivacyGuarantee.of_gaussian(sigma, 1e-5)
                if beside is not None:  # randomized response: its two losses with their probabilities
                    guarantee &= beside
                    loss = mpmath.mpf(beside.epsilon)
                    truth = 1 / (1 + mpmath.exp(-loss))
                    up, down = (precise_profile(epsilon - sign * loss, squared) for sign in (1, -1))
                    exact = truth * up + (1 - truth) * down
                found = guarantee.delta_at(epsilon)
                assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -9) + 6 * quantum


def test_a_small_delta_beside_a_failure_is_not_lost():
    one = PrivacyGuarantee.of_gaussian(2.0, 1e-6)
    with mpmath.workdps(60):
        for failure in (1e-6, 1e-3, 0.25):
            both = one & one & PrivacyGuarantee(0.0, failure)
            for epsilon in (6.0, 9.0, 12.0):
                rest = precise_profile(epsilon, Fraction(1, 2))
                exact = failure + (1 - mpmath.mpf(failure)) * rest
                assert exact <= both.delta_at(epsilon) <= exact + mpmath.mpf(2) ** -52 * failure + rest * 1e-9


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])  # of Hamming distances there are none between whole ones
@pytest.mark.parametrize("radius", [0.5, 1, 1.5, 2.5])
@pytest.mark.parametrize(
    "mechanism",
    [
        lambda near: GeometricMechanism(1.0, sensitivity=1, relation=near),
        lambda near: DiscreteGaussianMechanism(variance=4.0, sensitivity=1, relation=near),
        lambda near: LaplaceMechanism(1.0, sensitivity=1.0, relation=near),
    ],
    ids=["geometric", "discrete-gaussian", "laplace"],
)
def test_what_was_said_within_a_radius_costs_each_step_beyond_it(mechanism, metric, radius):
    """Whole numbers are released; the data may be real ones, and `floor(data / radius)` what was asked of them."""
    near = DataMetric(metric, radius)
    stated = mechanism(near).guarantee
    for distance in (0.3, 0.9, 1.0, 1.9, 2.0, 2.9, 3.0, 4.7):
        steps = math.ceil(Fraction(distance) / Fraction(radius))
        for guarantee in (stated, PrivacyGuarantee(1.0, relation=near) & stated):
            try:
                far = guarantee.at(distance)
            except NoGuarantee:  # of whole data no chain of such steps may be there
                continue
            # Each step may turn the answer by as much as the first one did.
            if stated.delta == 0 and steps > 1:
                assert far.epsilon >= steps * stated.epsilon * (1 - 1e-12)
            assert far.epsilon >= guarantee.epsilon * (1 - 1e-12) or distance < radius
            assert far.epsilon >= stated.epsilon * (1 - 1e-12)


def test_a_loss_is_infinite_where_any_of_several_is():
    thrice = PrivacyGuarantee.of_outcomes([Fraction(1, 4), Fraction(3, 4), 0], [0, Fraction(3, 4), Fraction(1, 4)], 0.3)
    for copies in (1, 2, 3, 10, 50):
        exact = 1 - 0.75**copies
        assert exact * (1 - 1e-15) <= (copies * thrice).delta_at(0.0) <= exact * (1 + 1e-10)


@pytest.mark.parametrize("delta", [1e-310, Fraction(1, 10**400)])
def test_a_group_whose_delta_grows_beyond_all_doubles_has_no_guarantee(delta):
    with pytest.raises(NoGuarantee, match="delta below 1"):
        PrivacyGuarantee(100, delta).at(10)


def test_epsilons_beyond_all_doubles_promise_nothing():
    pure, ranged = PrivacyGuarantee(10.0).at(10**308), 2 * PrivacyGuarantee(1e308, range_bounded=True)
    for vast in (pure, 2 * pure, ranged):
        assert (vast.epsilon, vast.epsilon_at(0.5), vast.delta_at(1.0)) == (math.inf, math.inf, 1.0)
        assert vast.zcdp == vast.renyi(2.0) == vast.kl_divergence() == math.inf
    with pytest.raises(NoGuarantee, match="no epsilon"):
        PrivacyGuarantee.of_zcdp(1, 1e-5).at(10**300)
    with pytest.raises(ValueError, match="`times` must be between 1 and"):
        10**400 * pure


@pytest.mark.parametrize("times", [10**3, 10**7, 10**9, 2**70])
def test_failures_of_many_copies_are_not_below_the_exact_one(times):
    found = times * PrivacyGuarantee(0.0, 1e-9)
    with mpmath.workdps(60):
        exact = 1 - (1 - mpmath.mpf(1e-9)) ** times
        assert exact <= found.delta_at(0.0) <= min(exact * (1 + mpmath.mpf(10) ** -13), 1)
