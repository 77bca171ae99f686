"""Mechanisms that add noise: exact guarantees, laws, privacy, clipping, bad input."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.statistics import assert_continuous_fit, assert_discrete_fit

from quincunx.privacy import (
    AddRemove,
    DataMetric,
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    ReplaceOne,
    gaussian_sigma,
    privatize,
)
from quincunx.privacy._rational import exponent, largest_below

DRAWS = 200_000


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**12),
    st.integers(1, 10**6),
)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_largest_fraction_below_is_below_and_no_larger_one_fits(value, room):
    found = largest_below(value, room)
    assert found <= value
    assert found.denominator <= room
    # A fraction p/q between them would have to beat the floor for its own denominator.
    for denominator in {min(2, room), min(3, room), room, max(room // 2, 1), max(room - 1, 1), found.denominator}:
        assert Fraction(math.floor(value * denominator), denominator) <= found


def test_the_largest_fraction_below_agrees_with_a_search_over_all_denominators():
    for value in (Fraction(math.pi), Fraction(0.1), Fraction(2, 7), Fraction(10**9 + 1, 10**9), Fraction(3)):
        for room in (1, 2, 7, 50, 333):
            best = max(Fraction(math.floor(value * q), q) for q in range(1, room + 1))
            assert largest_below(value, room) == best


@given(st.floats(1e-12, 700), st.integers(1, 1000))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_exponent_used_promises_no_less_and_hardly_more(epsilon, distance):
    used = exponent(epsilon, distance)
    exact = Fraction(epsilon) / distance
    assert used <= exact
    assert used > exact * (1 - Fraction(1, 10**9))
    assert max(used.numerator, used.denominator) < 2**63
    if 1e-6 < epsilon < 100:
        assert float(used * distance) == epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 2.5, math.pi])
def test_geometric_guarantees_are_exact_and_not_above_what_was_asked(epsilon):
    for mechanism, distance in (
        (GeometricMechanism(epsilon, n=3), 3),
        (GeometricMechanism(epsilon, lower=-2, upper=9), 11),
    ):
        assert mechanism.guarantee.exact_epsilon == mechanism.exponent * distance <= Fraction(epsilon)
        assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-11)
    assert GeometricMechanism(epsilon, n=3).guarantee.relation == DataMetric("l1", 3)
    assert GeometricMechanism(epsilon, lower=-2, upper=9).guarantee.relation == ReplaceOne()


def test_the_noise_can_be_said_in_four_ways():
    decays = [
        GeometricMechanism(0.5, n=2).decay,
        GeometricMechanism(epsilon_per_unit=0.25).decay,
        GeometricMechanism(scale=4).decay,
        GeometricMechanism(alpha=math.exp(-0.25)).decay,
    ]
    assert decays == pytest.approx([0.25] * 4, rel=1e-12)
    exact = GeometricMechanism(alpha=0.5)
    assert exact.alpha == 0.5
    assert exact.epsilon >= math.log(2)
    assert exact.epsilon == pytest.approx(math.log(2), rel=1e-14)


def test_geometric_likelihood_has_the_known_values():
    # P(0) and P(+-1) of the two-sided geometric of ratio 1/e and 1/2.
    likelihood = np.exp(GeometricMechanism(1.0, n=1).log_likelihood([5, 6, 4], 5))
    assert likelihood == pytest.approx([0.46211715726001, 0.17000340156855, 0.17000340156855], rel=1e-13)
    assert np.exp(GeometricMechanism(alpha=0.5).log_likelihood([0, 1], 0)) == pytest.approx([1 / 3, 1 / 6], rel=1e-14)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "mechanism",
    [
        GeometricMechanism(1.0, n=1),
        GeometricMechanism(0.3, lower=0, upper=10),
        GeometricMechanism(alpha=0.9),
        GeometricMechanism(scale=300),
        DiscreteGaussianMechanism(variance=0.2),
        DiscreteGaussianMechanism(variance=30),
    ],
    ids=repr,
)
def test_integer_noise_fits_its_likelihood(mechanism):
    noise = mechanism.release(np.full(DRAWS, 5), insecure_seed=20).values
    values, counts = np.unique(noise, return_counts=True)
    span = np.arange(min(values.min(), -60), max(values.max(), 70) + 1)
    all_counts = np.zeros(len(span))
    all_counts[values - span[0]] = counts
    probabilities = np.exp(mechanism.log_likelihood(span, 5))
    assert 0.999 < probabilities.sum() < 1 + 1e-12
    assert_discrete_fit(all_counts, probabilities)


@pytest.mark.statistical
def test_laplace_and_gaussian_noise_fit_their_laws():
    laplace = LaplaceMechanism(0.5, -1, 2)
    noise = laplace.release(np.full(DRAWS, 0.7), insecure_seed=21).values - 0.7
    scale = laplace.scale
    assert_continuous_fit(
        noise,
        lambda x: np.where(x < 0, np.exp(np.minimum(x, 0) / scale) / 2, 1 - np.exp(-np.maximum(x, 0) / scale) / 2),
    )
    gaussian = GaussianMechanism(1.0, 1e-6, sensitivity=3)
    noise = gaussian.release(np.full(DRAWS, -11.3), insecure_seed=22).values + 11.3
    assert_continuous_fit(noise, lambda x: norm.cdf(x / gaussian.sigma))


def test_secure_noise_has_the_right_spread():
    # No seed: the bounds are nine standard deviations of a variance of 200000 draws (0.53 % and 0.32 %).
    noise = privatize(np.zeros(DRAWS, dtype=int), epsilon=1.0).values
    alpha = math.exp(-1)
    assert noise.var() == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.05)
    noise = GaussianMechanism(sigma=2.0, delta=1e-6, sensitivity=1).release(np.zeros(DRAWS)).values
    assert noise.var() == pytest.approx(4, rel=0.03)


def test_geometric_release_is_private_on_a_grid_of_outputs():
    mechanism = GeometricMechanism(0.7, lower=-3, upper=4)
    inputs, outputs = np.arange(-6, 8), np.arange(-300, 300)
    likelihood = mechanism.log_likelihood(outputs[:, None], inputs)
    assert np.ptp(likelihood, axis=1).max() <= mechanism.epsilon * (1 + 1e-12)
    near = GeometricMechanism(0.7, n=2).log_likelihood(outputs[:, None], inputs)
    assert np.abs(near[:, 2:] - near[:, :-2]).max() <= 0.7 * (1 + 1e-12)


def test_laplace_release_is_private_on_a_grid_of_outputs():
    for epsilon, lower, upper in [(0.5, -1.0, 2.0), (3.0, 0.1, 0.7), (1e-6, 0.0, 1.0), (20.0, -1e-5, 1e9)]:
        mechanism = LaplaceMechanism(epsilon, lower, upper)
        assert mechanism.guarantee.exact_epsilon <= Fraction(epsilon)
        assert mechanism.epsilon > epsilon * (1 - 2**-18)
        inputs = np.array([lower - 5, lower, (lower + upper) / 2, upper, upper * 2 + 1])
        outputs = mechanism.release(np.repeat(inputs, 200)).values[:, None]
        likelihood = mechanism.log_likelihood(outputs, inputs)
        assert np.ptp(likelihood, axis=1).max() <= mechanism.epsilon * (1 + 1e-9) + 1e-13
        assert np.all(outputs / mechanism.step == np.round(outputs / mechanism.step))


def test_laplace_sums_over_its_grid_to_one():
    mechanism = LaplaceMechanism(1.0, 0, 1)
    steps = np.arange(-(2**25), 2**25, 2**5)
    total = np.exp(mechanism.log_likelihood(steps * mechanism.step, 0.0)).sum() * mechanism.step * 2**5
    assert total == pytest.approx(1, rel=1e-8)


def test_gaussian_release_is_private_on_a_partition_of_outputs():
    mechanism = GaussianMechanism(0.8, 1e-3, radius=1.0)
    edges = np.linspace(-40, 40, 20001)
    near = np.diff(norm.cdf(edges, loc=1.0, scale=mechanism.sigma))
    far = np.diff(norm.cdf(edges, loc=-1.0, scale=mechanism.sigma))
    delta = np.maximum(near - math.exp(0.8) * far, 0).sum()
    assert 0.999e-3 < delta <= 1e-3 * (1 + 1e-9)


def test_discrete_gaussian_release_is_private_by_the_sum_over_outcomes():
    with mpmath.workdps(40):
        for epsilon, delta, sensitivity in [(1.0, 1e-6, 1), (0.3, 1e-3, 4), (5.0, 1e-9, 2)]:
            mechanism = DiscreteGaussianMechanism(epsilon, delta, sensitivity=sensitivity)
            variance, span = mpmath.mpf(mechanism.variance), int(40 * math.sqrt(mechanism.variance)) + 60
            mass = {y: mpmath.exp(-y * y / (2 * variance)) for y in range(-span, span + sensitivity + 1)}
            whole = sum(mass.values())
            growth = mpmath.exp(mpmath.mpf(epsilon))
            excess = sum(max(mass[y] - growth * mass[y + sensitivity], 0) for y in range(-span, span)) / whole
            assert excess <= delta
            assert mechanism.variance <= gaussian_sigma(epsilon, delta, sensitivity) ** 2 * 1.5 + 0.3
            assert mechanism.guarantee.zcdp == pytest.approx(sensitivity**2 / (2 * mechanism.variance))


def test_records_outside_declared_bounds_are_clipped_one_by_one():
    mechanism = GeometricMechanism(4000.0, lower=0, upper=4)  # noise that is never seen
    assert mechanism.release([-9, 2, 100]).values.tolist() == [0, 2, 4]
    noise = GaussianMechanism(sigma=1e-6, delta=1e-6, radius=1.0, dimension=2)
    released = noise.release([[3, 4], [1e300, -1e300], [0, 0], [0.3, 0.4]]).values
    assert released == pytest.approx(np.array([[0.6, 0.8], [0.5**0.5, -(0.5**0.5)], [0, 0], [0.3, 0.4]]), abs=1e-4)
    bounded = GaussianMechanism(sigma=1e-6, delta=1e-6, lower=-1.0, upper=3.0)
    assert bounded.release([7.0, -0.5, -2.0]).values == pytest.approx([3.0, -0.5, -1.0], abs=1e-4)
    assert bounded.release([0.0]).interval()[1] <= 3.0
    assert GaussianMechanism(sigma=1e-6, delta=1e-6, radius=1.0).release([7.0, -0.5]).values == pytest.approx(
        [1, -0.5], abs=1e-4
    )
    assert np.all(np.abs(LaplaceMechanism(1e3, 0, 1).release([-1e300, 1e300, 0.5]).values - [0, 1, 0.5]) < 0.1)


def test_insecure_seeds_repeat_the_noise_and_are_told():
    mechanisms = [
        GeometricMechanism(1.0, n=1),
        LaplaceMechanism(1.0, 0, 9),
        GaussianMechanism(1.0, 1e-6, sensitivity=1),
        DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1),
    ]
    for mechanism in mechanisms:
        one, same = (mechanism.release(np.arange(50), insecure_seed=7) for _ in range(2))
        other, secure = mechanism.release(np.arange(50), insecure_seed=8), mechanism.release(np.arange(50))
        assert one == same
        assert not np.array_equal(one.values, other.values)
        assert not np.array_equal(secure.values, mechanism.release(np.arange(50)).values)
        assert one.guarantee.numerics == "insecure"
        assert secure.guarantee.numerics == "exact"
        assert (one.guarantee & secure.guarantee).numerics == "insecure"


def test_shapes_are_kept_and_inputs_are_left_alone():
    for shape in [(), (0,), (3, 0, 2), (4, 5)]:
        counts = np.ones(shape, dtype=np.int32)
        counts.flags.writeable = False
        assert privatize(counts, epsilon=1.0).values.shape == shape
        assert LaplaceMechanism(1.0, 0, 1).release(counts).values.shape == shape
        assert np.all(counts == 1)
    sliced = np.arange(20)[::-2]
    assert GaussianMechanism(1.0, 1e-6, sensitivity=1).release(sliced).values.shape == (10,)


def test_parameters_that_are_not_in_their_domain_are_refused_by_name():
    for bad in (0, -1, math.nan, math.inf):
        for name, make in {
            "epsilon": lambda bad=bad: GeometricMechanism(bad, n=1),
            "alpha": lambda bad=bad: GeometricMechanism(alpha=bad),
            "scale": lambda bad=bad: GeometricMechanism(scale=bad),
            "sensitivity": lambda bad=bad: GaussianMechanism(1.0, 1e-6, sensitivity=bad),
            "radius": lambda bad=bad: GaussianMechanism(1.0, 1e-6, radius=bad),
            "sigma": lambda bad=bad: GaussianMechanism(sigma=bad, sensitivity=1),
            "variance": lambda bad=bad: DiscreteGaussianMechanism(variance=bad),
        }.items():
            with pytest.raises(ValueError, match=f"`{name}`"):
                make()
        with pytest.raises(ValueError, match="`epsilon`"):
            LaplaceMechanism(bad, 0, 1)
        with pytest.raises(ValueError, match="`epsilon`"):
            privatize([1], epsilon=bad)
    for bad in (0, 1, -0.5, 1.5, math.nan):
        with pytest.raises(ValueError, match="`delta`"):
            GaussianMechanism(1.0, bad, sensitivity=1)
        with pytest.raises(ValueError, match="`delta`"):
            DiscreteGaussianMechanism(1.0, bad, sensitivity=1)
    with pytest.raises(ValueError, match=r"`alpha` must be in \(0, 1\), got 1.0"):
        GeometricMechanism(alpha=1.0)
    with pytest.raises(ValueError, match="`alpha` must be at most"):
        GeometricMechanism(alpha=math.nextafter(1, 0))
    assert GeometricMechanism(alpha=1 - 2**-50).release([0]).values.shape == (1,)
    assert GeometricMechanism(alpha=1e-300).release([7]).values.tolist() == [7]
    for n in (0, -1):
        with pytest.raises(ValueError, match="`n` must be at least 1"):
            privatize([1], epsilon=1.0, n=n)
    with pytest.raises(TypeError, match="`n`"):
        privatize([1], epsilon=1.0, n=1.5)
    with pytest.raises(ValueError, match="`lower` must be below `upper`"):
        LaplaceMechanism(1.0, 2, 2)
    with pytest.raises(ValueError, match="`lower` must be below `upper`"):
        GeometricMechanism(1.0, lower=3, upper=2)
    with pytest.raises(ValueError, match="`lower` must be below `upper`"):
        GaussianMechanism(1.0, 1e-6, lower=2, upper=2)
    for more in ({"upper": None}, {"radius": 1.0}, {"sensitivity": 1.0}, {"scales": [1.0, 2.0]}):
        with pytest.raises(TypeError, match="`lower`"):
            GaussianMechanism(1.0, 1e-6, **({"lower": 1, "upper": 2} | more))
    with pytest.raises(ValueError, match="`dimension` must be 1"):
        GaussianMechanism(1.0, 1e-6, lower=1, upper=2, dimension=3)
    with pytest.raises(TypeError, match="exactly one"):
        GeometricMechanism(1.0, alpha=0.5)
    with pytest.raises(TypeError, match="needs `n`"):
        GeometricMechanism(1.0)
    with pytest.raises(ValueError, match="per unit of distance"):
        GeometricMechanism(1e-18, n=100)
    with pytest.raises(ValueError, match="`insecure_seed`"):
        privatize([1], epsilon=1.0, insecure_seed=-1)
    with pytest.raises(TypeError, match="`relation`"):
        GaussianMechanism(1.0, 1e-6, sensitivity=1, relation="replace")


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(1.0, sensitivity=2.0**20),
        LaplaceMechanism(1.0, relation=DataMetric("l1", 2**20)),
        GaussianMechanism(1.0, 1e-6, sensitivity=2.0**19),
        GaussianMechanism(sigma=2.0**20, scales=[1.0, 2.0], relation=DataMetric("l2")),
    ],
)
def test_numbers_that_a_double_rounds_are_refused_where_a_distance_of_arrays_is_protected(mechanism):
    # 2**59 + 64 and 2**59 + 65 would become doubles 128 apart: an array of such would move by 128 times its distance.
    for far in (np.array([2**59 + 64, 0]), np.array([-(2**53) - 1, 0]), np.array([2**59 + 65, 0], dtype=np.uint64)):
        with pytest.raises(ValueError, match=r"`x` must hold whole numbers of at most 2\*\*53 in size"):
            mechanism.release(far)
    if np.finfo(np.longdouble).nmant > 52:
        with pytest.raises(ValueError, match="`x` must hold numbers that a double holds exactly"):
            mechanism.release(np.array([np.longdouble(2**53) + 1, 0]))
        mechanism.release(np.array([np.longdouble(2**53) + 2, 0]))
    mechanism.release(np.array([2**53, -(2**53)]))
    mechanism.release([2.0**59, 0.5])
    LaplaceMechanism(1.0, 0, 10).release([2**60 + 1])  # each record is clipped by itself


@pytest.mark.parametrize("far", [2**53 + 1, -(2**60) - 1, 2**63 + 1])
@pytest.mark.parametrize("beside", [5.0, 2.0**70])
def test_whole_numbers_that_numpy_rounds_beside_floats_are_refused(far, beside):
    frame = pd.DataFrame({"a": [far], "b": [beside]})
    forms = [[far, beside], (beside, far), [[1.0], [far]], [np.array([far]), np.array([beside])], frame]
    if far < 2**63:
        forms += [frame.astype({"a": "Int64"}), frame.astype({"a": "Int64", "b": "Float64"})]
    for mechanism in (
        GeometricMechanism(1.0, n=1),
        DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1.0),
        GaussianMechanism(1.0, 1e-6, sensitivity=1.0),
        LaplaceMechanism(1.0, sensitivity=1.0),
        ExponentialMechanism(1.0, sensitivity=1.0),
    ):
        for x in forms:
            with pytest.raises((ValueError, TypeError), match=rf"{far} at index|objects?"):
                mechanism.release(x)
    GeometricMechanism(1.0, n=1).release([2**60, 5.0])
    ExponentialMechanism(1.0, sensitivity=1.0).release([2.0**70, 5])


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_tables_of_other_libraries_are_looked_at_before_they_are_floats(library):
    table = getattr(pytest.importorskip(library), {"pyarrow": "table", "polars": "DataFrame"}[library])
    mechanism = GeometricMechanism(1.0, n=1)
    with pytest.raises(ValueError, match=rf"{2**60 + 1} at index \(0, 0\)"):
        mechanism.release(table({"a": [2**60 + 1], "b": [5.0]}))
    assert mechanism.release(table({"a": [2**60], "b": [5.0]})).shape == (1, 2)


def test_bad_data_are_refused_with_the_first_index():
    with pytest.raises(ValueError, match=r"`counts` must hold whole numbers of at least 0, got -2 at index \(1, 0\)"):
        privatize([[1, 2], [-2, -3]], epsilon=1.0)
    with pytest.raises(ValueError, match=r"got 0.5 at index \(2,\)"):
        privatize([1.0, 2.0, 0.5, 0.25], epsilon=1.0)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"at index \(1,\)"):
            privatize([1.0, bad], epsilon=1.0)
        with pytest.raises(ValueError, match=r"`x` must hold finite numbers, got .* at index \(1,\)"):
            LaplaceMechanism(1.0, 0, 1).release([1.0, bad])
        with pytest.raises(ValueError, match=r"`x` must hold finite numbers"):
            GaussianMechanism(1.0, 1e-6, sensitivity=1).release([bad])
    with pytest.raises(TypeError, match="`counts`"):
        privatize(["a"], epsilon=1.0)
    with pytest.raises(ValueError, match="last axis of length 3"):
        GaussianMechanism(1.0, 1e-6, radius=1, dimension=3).release([[1.0, 2.0]])


def test_extreme_parameters_still_release():
    assert privatize([2**62, 5], epsilon=1e-3).values.shape == (2,)
    assert np.all(privatize(np.arange(9), epsilon=1e6).values == np.arange(9))
    assert privatize([1], epsilon=1e-12).values.dtype == np.int64
    for mechanism in (
        LaplaceMechanism(1e-9, 0, 1),
        LaplaceMechanism(1e5, -1e-200, 1e-200),
        LaplaceMechanism(1, 1e15, 1e15 + 1),
    ):
        values = mechanism.release(np.zeros(100)).values
        assert np.all(np.isfinite(values))
        assert np.all(values / mechanism.step == np.round(values / mechanism.step))
    assert np.all(np.isfinite(GaussianMechanism(1e-3, 1e-300, sensitivity=1e-200).release([1e308, -1e308]).values))


def test_the_gaussian_relation_is_the_callers():
    mechanism = GaussianMechanism(1.0, 1e-6, sensitivity=1, relation=AddRemove())
    assert mechanism.guarantee.relation == AddRemove()
    assert mechanism.sigma == pytest.approx(gaussian_sigma(1.0, 1e-6), rel=1e-11)
    assert mechanism.sigma >= gaussian_sigma(1.0, 1e-6)
