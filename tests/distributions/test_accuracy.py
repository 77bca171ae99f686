"""Accuracy against multiple precision, on grids that reach the extremes; the whole grids are `slow`.

The bound on a log-mass is relative, and absolute below one: |error| <= 2e-15 max(1, |log p|). A mass then has the
relative error of exp of that. Bounds on the other quantities are stated at their tests.
"""

import math

import mass_oracle as oracle
import mpmath as mp
import numpy as np
import pytest

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

LOG_MASS = 2e-15
ORDERS = [0, 1, 2, 5, 17, 31, 32, 33, 100, 1000, 31_623, 10**6]
ARGUMENTS = [1e-300, 1e-160, 1e-20, 1e-3, 0.5, 3.0, 11.0, 31.9, 32.1, 47.0, 49.0, 500.0, 3e4, 1e6, 1e8]
RATES = [1e-300, 1e-9, 1e-3, 0.7, 4.0, 25.0, 300.0, 1e4, 1e6, 1e8]

quick_or_slow = pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)], ids=["quick", "whole"])


def every(step, items):
    return [item for i, item in enumerate(items) if i % step == 0]


def points_around(law):
    """Values at the mode, at both sides some standard deviations off, and far out."""
    mode, sigma = law.mode(), float(law.standard_deviation())
    offsets = {-40.0, -12.0, -5.0, -1.5, -0.3, 0.0, 0.4, 2.0, 6.0, 13.0, 50.0}
    return sorted({int(mode + round(sigma * z)) for z in offsets} | {mode - 1, mode + 1, mode + 17})


@quick_or_slow
def test_bessel_log_mass_over_orders_and_arguments(step):
    for order, argument in every(step, [(v, a) for v in ORDERS for a in ARGUMENTS]):
        law = Bessel(order, argument)
        for n in points_around(law):
            if n >= 0:
                exact, found = oracle.log_bessel_mass(n, order, argument), law.logpmf(n)
                if exact > -1e-30:
                    # beyond the digits of the oracle: p(0) = 1 - x/(v+1) + O(x^2), which may be a subnormal number
                    leading = -(mp.mpf(argument) ** 2) / 4 / (order + 1)
                    assert n == 0
                    assert abs(found - leading) <= 2 * LOG_MASS * abs(leading) + 1e-323
                    continue
                assert abs((found - exact) / exact) < 2 * LOG_MASS, (order, argument, n)
                assert abs(found - exact) < LOG_MASS * max(1, -exact), (order, argument, n)


@quick_or_slow
def test_skellam_log_mass_over_pairs_of_rates(step):
    for plus, minus in every(step, [(a, b) for a in RATES for b in RATES]):
        law = Skellam(plus, minus)
        for k in points_around(law):
            exact, found = oracle.log_skellam_mass(k, plus, minus), law.logpmf(k)
            assert abs(found - exact) < LOG_MASS * max(1, -exact), (plus, minus, k)


@quick_or_slow
def test_moments_of_bessel_over_orders_and_arguments(step):
    """Mean, variance: relative 2e-14; skewness, kurtosis and entropy, where they can be summed: 5e-13."""
    for order, argument in every(step, [(v, a) for v in ORDERS for a in ARGUMENTS]):
        law = Bessel(order, argument)
        with mp.workdps(110):
            ratio = mp.exp(
                oracle.log_bessel_i.__wrapped__(order + 1, argument) - oracle.log_bessel_i.__wrapped__(order, argument)
            )
            mean = mp.mpf(argument) / 2 * ratio
            variance = mp.mpf(argument) ** 2 / 4 - order * mean - mean**2
        # the expansion of the oracle has 40 digits, of which the difference may lose mean^2 / variance
        if mean > 1e-290:
            assert abs(law.mean() / mean - 1) < 2e-14, (order, argument)
        if variance > 1e-290 and mean**2 / variance < 1e20:
            assert abs(law.variance() / variance - 1) < 2e-14, (order, argument)
        if 1e-100 < law.variance() < 1e4:
            low, high = max(0, int(mean - 14 * variance**0.5) - 20), int(mean + 14 * variance**0.5) + 40
            weights = {n: oracle.log_bessel_mass(n, order, argument) for n in range(low, high)}
            exact = oracle.summary_of(weights)
            found = {
                "mean": law.mean(),
                "variance": law.variance(),
                "skewness": law.skewness(),
                "excess_kurtosis": law.kurtosis(convention="excess"),
                "entropy": law.entropy(),
            }
            for name, value in found.items():
                tolerance = 5e-13 * max(1, abs(exact[name])) if name == "excess_kurtosis" else 5e-13 * abs(exact[name])
                assert abs(value - exact[name]) <= tolerance, (name, order, argument)


CELLS = [
    (o, mu, a)
    for o in (1, 3, 40, 1000, 30_000)
    for mu in (1e-6, 0.5, 30.0, 1100.0, 29_000.0)
    for a in (1e-4, 0.2, math.exp(-1), 0.9, 0.9995)
]


@quick_or_slow
def test_two_piece_poisson_over_cells(step):
    """Log-mass as above with twice the bound; log-marginal, its derivative and the mean relative 1e-13."""
    for released, rate, alpha in every(step, CELLS):
        law = TwoPiecePoisson(released, rate, alpha)
        with mp.workdps(40):
            total = oracle.log_two_piece_total(released, rate, alpha)
            below = oracle.log_two_piece_total(released - 1, rate, alpha)
            a, mu = mp.mpf(alpha), mp.mpf(rate)
            log_marginal = mp.log((1 - a) / (1 + a)) - mu + total
            scaled_mean = mp.exp(below - total)  # E[y] / mu
        value, slope = law.log_marginal(gradient=True)
        assert abs(value - log_marginal) < 1e-13 * max(1, abs(log_marginal)), (released, rate, alpha)
        assert abs(law.mean() / (mu * scaled_mean) - 1) < 1e-13, (released, rate, alpha)
        assert abs(slope - (scaled_mean - 1)) < 1e-13 * max(1, scaled_mean), (released, rate, alpha)
        for y in points_around(law):
            if y >= 0:
                exact = oracle.log_two_piece_weight(y, released, rate, alpha) - total
                assert abs(law.logpmf(y) - exact) < 2 * LOG_MASS * max(1, -exact), (released, rate, alpha, y)


@pytest.mark.parametrize("released", [-40, -1, 0, 1, 3, 40])
@pytest.mark.parametrize("rate", [1e-300, 1e-60, 1e-22, 1e-19])
@pytest.mark.parametrize("alpha", [1e-12, 0.5, 0.999])
def test_two_piece_poisson_means_near_zero(released, rate, alpha):
    """The mean relative 1e-14, and 1e-13 where it is below 1e-20."""
    with mp.workdps(60):
        weights = [mp.mpf(rate) ** y / mp.factorial(y) * mp.mpf(alpha) ** abs(released - y) for y in range(80)]
        exact = mp.fsum(y * weight for y, weight in enumerate(weights)) / mp.fsum(weights)
        found = TwoPiecePoisson(released, rate, alpha).mean()
        if exact > 1e-300:
            assert abs(found / exact - 1) < (1e-14 if exact > 1e-20 else 1e-13)
        else:
            assert abs(found - exact) < 1e-300


@pytest.mark.parametrize("released", [2000, 10**6, 2**52])
@pytest.mark.parametrize("alpha", [1e-300, 1e-60, 1e-24, 1e-18, 1e-16, 1e-14])
def test_two_piece_poisson_of_hardly_any_noise_is_at_the_release(released, alpha):
    """To first order in alpha; of rates over alpha so large differences of logarithms have no digit."""
    for rate in (0.5 * released, 1.0 * released):
        law = TwoPiecePoisson(released, rate, alpha)
        down, up = alpha * released / rate, alpha * rate / (released + 1)
        assert abs(law.mean() / released - 1) < 1e-12
        assert abs(law.log_marginal(gradient=True)[1] - (released / rate - 1)) < 1e-11
        np.testing.assert_allclose(law.cdf(released - 1), down, rtol=1e-11)
        np.testing.assert_allclose(law.variance(), down + up, rtol=1e-11)


@pytest.mark.parametrize("alpha", [1e-60, 1e-200, 1.5455190416268692e-272])
def test_two_piece_poisson_means_at_tiny_ratios(alpha):
    """All but about alpha of the mass is at the release: the mean relative 2e-13."""
    for released in (2, 85, 400):
        for rate in (3e-4, 1.0, 5e3):
            assert abs(TwoPiecePoisson(released, rate, alpha).mean() / released - 1) < 2e-13


def test_two_piece_poisson_next_to_a_point():
    assert TwoPiecePoisson(-7, 1e-300, 0.9).variance() == pytest.approx(9e-301, rel=1e-13, abs=0)
    assert TwoPiecePoisson(0, 0.5, 1e-300).variance() == pytest.approx(5e-301, rel=1e-13, abs=0)
    for alpha in (5e-324, 1e-310, 1e-300):
        assert TwoPiecePoisson(2, 0.0, alpha).log_marginal() == pytest.approx(2 * math.log(alpha), rel=1e-13)


@quick_or_slow
def test_two_piece_poisson_moments_by_direct_sums(step):
    for released, rate, alpha in every(step, [cell for cell in CELLS if cell[0] <= 1000 and cell[1] <= 1100]):
        law = TwoPiecePoisson(released, rate, alpha)
        center, sigma = law.mean(), float(law.standard_deviation())
        span = range(max(0, int(center - 15 * sigma) - 30), int(center + 15 * sigma) + 40)
        exact = oracle.summary_of({y: oracle.log_two_piece_weight(y, released, rate, alpha) for y in span})
        assert abs(law.variance() / exact["variance"] - 1) < 1e-12, (released, rate, alpha)
        assert abs(law.skewness() / exact["skewness"] - 1) < 1e-11 + 1e-12 / abs(exact["skewness"]), (
            released,
            rate,
            alpha,
        )
        assert abs(law.entropy() / exact["entropy"] - 1) < 1e-12, (released, rate, alpha)


@pytest.mark.parametrize(
    "law",
    [
        Bessel(0, 5.0),
        Bessel(40, 800.0),
        Bessel(10**5, 3e5),
        Bessel(0, 1e7),
        Skellam(3.0, 0.2),
        Skellam(40.0, 60.0),
        Skellam(9e4, 1.0),
        Skellam(2e5, 2.2e5),
        Skellam(0.5, 700.0),
        Skellam(5e6, 0.0),
        TwoPiecePoisson(300, 200.0, 0.9),
        TwoPiecePoisson(30, 200.0, 0.5),
        TwoPiecePoisson(10**6, 10**6 + 10.0, 0.9999),
        TwoPiecePoisson(10**6, 9.9e5, 0.9),
    ],
    ids=str,
)
def test_tails_equal_the_sums_of_their_masses(law):
    """Relative 1e-13 in either tail: long tails, which are integrated, against every single mass added up."""
    mean, sigma = float(law.mean()), float(law.standard_deviation())
    values = np.arange(int(mean - 45 * sigma) - 60, int(mean + 45 * sigma) + 60)
    masses = law.pmf(values)
    rising = np.cumsum(masses.astype(np.longdouble))
    falling = np.cumsum(masses[::-1].astype(np.longdouble))[::-1]
    for z in (-7.0, -3.0, -0.6, -0.01, 0.0, 0.02, 1.0, 4.0, 8.0):
        i = int(np.clip(np.searchsorted(values, mean + z * sigma), 0, values.size - 2))
        k = int(values[i])
        if float(rising[i]) > 1e-40:
            assert law.cdf(k) == pytest.approx(float(rising[i]), rel=1e-13), z
        if float(falling[i + 1]) > 1e-40:
            assert law.ccdf(k) == pytest.approx(float(falling[i + 1]), rel=1e-13), z


@quick_or_slow
def test_two_sided_geometric_over_decays(step):
    for decay in every(step, [1e-15, 1e-9, 1e-3, 0.1, 0.7, 1.0, 3.0, 40.0, 600.0]):
        law = TwoSidedGeometric(epsilon_per_unit=decay)
        with mp.workdps(300):
            e = mp.mpf(decay)
            log_top = mp.log(mp.tanh(e / 2))
        for k in (-1000, -3, 0, 1, 17):
            exact = log_top - e * abs(k)
            # at k = 0 and a large decay the mass is near one and its logarithm near zero: relative there, too
            assert abs(law.logpmf(k) / exact - 1) < 2e-15, (decay, k)
        assert abs(law.variance() / (1 / (2 * mp.sinh(e / 2) ** 2)) - 1) < 2e-15
        assert abs(law.entropy() / (e / mp.sinh(e) - log_top) - 1) < 2e-15
        assert abs(law.logccdf(2) / (-3 * e - mp.log(1 + mp.exp(-e))) - 1) < 2e-15


def test_oracle_agrees_with_the_bessel_function_of_the_library():
    for order, argument in [(0, 1.0), (7, 30.0), (100, 4000.0), (3000, 2000.0), (10, 1e4)]:
        exact = mp.log(mp.besseli(order, argument))
        assert abs(oracle.log_bessel_i(order, argument) - exact) < mp.mpf(10) ** -38 * abs(exact)


@pytest.mark.parametrize("k", [-71, -3, 73])
@pytest.mark.parametrize("small", [1e-200, 4.753691916716639e-121])
def test_a_rate_far_above_the_count_keeps_every_digit_of_the_mass(k, small):
    # exp(-a) (a or b)^|k| / |k|!, as a b is below every float: 1 + (k - a) / a is -2e-16 in floats.
    large = 25928588322859.434
    with mp.workdps(40):
        exact = -mp.mpf(large) + abs(k) * mp.log(small if k < 0 else large) - mp.loggamma(abs(k) + 1)
    assert abs(Skellam(large, small).logpmf(k) - exact) <= 2e-15 * abs(exact)
    assert abs(Skellam([small] * 2, large).logpmf(-k)[1] - exact) <= 2e-15 * abs(exact)


#: Powers of ten that parameters and values are drawn between: tiny, moderate, large.
POWERS = [(-320, 15), (-3, 6), (5, 15)]


def drawn(rng):
    """A law with parameters of any size, and the logarithm of its mass by multiple precision."""
    size = lambda *powers: float(10 ** rng.uniform(*(powers or POWERS[rng.integers(3)])))  # noqa: E731
    kind = rng.integers(4)
    if kind == 0:
        plus, minus = size(), size()
        return Skellam(plus, minus), lambda k: oracle.log_skellam_mass(k, plus, minus)
    if kind == 1:
        order, argument = int(size(-1, [3, 15][rng.integers(2)])), size()
        return Bessel(order, argument), lambda k: oracle.log_bessel_mass(k, order, argument)
    if kind == 2:
        alpha = [rng.random(), 1 - size(-15, 0), size(-300, 0)][rng.integers(3)]
        return TwoSidedGeometric(
            alpha
        ), lambda k: mp.log((1 - mp.mpf(alpha)) / (1 + mp.mpf(alpha))) + abs(k) * mp.log(alpha)
    released, rate = int(size(-1, 4)) * int(rng.choice([-1, 1])), size(*[(-3, 4.3), (-300, 0)][rng.integers(2)])
    alpha = [rng.random(), 1 - size(-6, 0), size(-100, 0)][rng.integers(3)]

    def of_cell(k):
        with mp.workdps(450):  # the total is a difference of terms as far apart as alpha is from one
            weight = oracle.log_two_piece_weight(k, released, rate, alpha)
            return weight - oracle.log_two_piece_total(released, rate, alpha)

    return TwoPiecePoisson(released, rate, alpha), of_cell


@pytest.mark.parametrize("number", [200, pytest.param(40_000, marks=pytest.mark.slow)], ids=["quick", "whole"])
def test_masses_are_as_accurate_as_they_say_whatever_the_parameters(number):
    """Log-masses to 5e-15, relative, and absolute below one; masses to what that makes of them."""
    rng = np.random.default_rng(8)
    seen = 0
    while seen < number:
        law, log_mass = drawn(rng)
        mode, deviation = float(law.mode()), float(law.standard_deviation())
        far = [0, 1, rng.uniform(0, 20) * deviation, 10 ** rng.uniform(0, 15)][rng.integers(4)]
        k = int(mode + rng.choice([-1, 1]) * far)
        if abs(k) > 2**53 or (k < 0 and isinstance(law, (Bessel, TwoPiecePoisson))):
            continue
        exact, seen = log_mass(k), seen + 1
        if exact > -1e-30:  # beyond the digits of the oracle
            continue
        size = max(1, -exact)
        assert abs(law.logpmf(k) - exact) < 5e-15 * size, (law, k)
        assert exact < -700 or abs(law.pmf(k) / mp.exp(exact) - 1) < 5e-15 * size, (law, k)
