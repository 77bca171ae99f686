"""Laws that hold for all parameters: sums, moments, quantiles, and the theorem that ties the families together."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("fixed")

orders = st.integers(0, 400)
arguments = st.floats(1e-8, 2000.0)
rates = st.floats(1e-6, 1500.0)
alphas = st.floats(1e-6, 0.999)
releases = st.integers(-300, 1500)
laws = st.one_of(
    st.builds(Bessel, orders, arguments),
    st.builds(Skellam, rates, rates),
    st.builds(TwoSidedGeometric, alphas),
    st.builds(TwoPiecePoisson, releases, rates, alphas),
)


def window(law, sigmas=45):
    """Values that hold all the mass there is to sixteen digits."""
    mean, sigma = float(law.mean()), float(law.standard_deviation())
    return np.arange(math.floor(mean - sigmas * sigma) - 60, math.ceil(mean + sigmas * sigma) + 61)


@given(laws)
def test_masses_sum_to_one_and_give_mean_and_variance(law):
    values = window(law)
    masses = law.pmf(values)
    assert math.fsum(masses) == pytest.approx(1.0, rel=1e-13)
    assert math.fsum(values * masses) == pytest.approx(law.mean(), rel=1e-12, abs=1e-12 * law.standard_deviation())
    centered = values - law.mean()
    assert math.fsum(centered**2 * masses) == pytest.approx(law.variance(), rel=1e-11)
    assert math.fsum(centered**3 * masses) == pytest.approx(
        law.skewness() * law.variance() ** 1.5, rel=1e-9, abs=1e-9 * law.variance() ** 1.5
    )
    assert math.fsum(centered**4 * masses) == pytest.approx(law.kurtosis() * law.variance() ** 2, rel=1e-9)


@given(laws)
def test_lower_and_upper_tail_make_one(law):
    values = window(law, 8)
    values = values[:: max(1, values.size // 50)]
    assert np.all(np.abs(law.cdf(values) + law.ccdf(values) - 1.0) <= 2.3e-16)
    np.testing.assert_allclose(np.exp(law.logcdf(values)), law.cdf(values), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(np.exp(law.logccdf(values)), law.ccdf(values), rtol=1e-13, atol=1e-300)


@given(laws)
def test_distribution_function_rises_from_zero_to_one(law):
    cdf = law.cdf(window(law, 6))
    assert np.all(np.diff(cdf) >= 0)
    assert np.all((cdf >= 0) & (cdf <= 1))


@given(laws, st.floats(1e-12, 1 - 1e-12))
def test_quantile_is_the_first_value_that_reaches_the_probability(law, p):
    k = law.icdf(p)
    assert law.cdf(k) >= p > law.cdf(k - 1)
    j = law.iccdf(p)
    assert law.ccdf(j) <= p < law.ccdf(j - 1)


@given(laws, st.floats(-3.0, 3.0))
def test_quantile_undoes_the_distribution_function(law, z):
    k = round(float(law.mean() + z * law.standard_deviation()))
    assume(1e-290 < law.cdf(k) < 0.99999 and law.pmf(k) > 1e-12)
    assert law.icdf(law.cdf(k)) == k


@given(laws)
def test_mode_is_the_highest_mass(law):
    mode = law.mode()
    around = law.logpmf(np.array([mode - 1, mode, mode + 1]))
    # of equal masses the larger value; between nearly equal ones rounding decides
    assert around[1] >= around[0] - 1e-14
    assert around[1] >= around[2] - 1e-14


@given(laws)
def test_entropy_is_the_mean_surprise(law):
    values = window(law)
    log_masses = law.logpmf(values)
    inside = log_masses > -700
    expected = -math.fsum(np.exp(log_masses[inside]) * log_masses[inside])
    assert law.entropy() == pytest.approx(expected, rel=1e-11, abs=1e-15)


@given(orders, arguments)
def test_second_moment_of_bessel_is_a_quarter_of_the_squared_argument(order, argument):
    law = Bessel(order, argument)
    second = law.variance() + law.mean() ** 2 + order * law.mean()  # E[m (m + order)]
    assert second == pytest.approx(argument**2 / 4, rel=1e-13)


@given(orders, arguments)
def test_bessel_mean_lies_within_one_of_the_mode(order, argument):
    law = Bessel(order, argument)
    assert -0.3023 < law.mean() - law.mode() < 1


@given(st.floats(1e-3, 300.0), st.floats(1e-3, 300.0))
def test_difference_of_poisson_counts_is_skellam_and_their_minimum_bessel(plus, minus):
    """Poisson(y1; a) Poisson(y2; b) = Skellam(y1 - y2; a, b) Bessel(min; |y1 - y2|, 2 sqrt(ab)) at every pair."""
    one, other = np.meshgrid(np.arange(0, 60, 7), np.arange(0, 60, 7), indexing="ij")
    pair = Skellam(plus, 0.0).logpmf(one) + Skellam(minus, 0.0).logpmf(other)
    smaller, difference = np.minimum(one, other), one - other
    split = Skellam(plus, minus).logpmf(difference) + Bessel(abs(difference), 2 * math.sqrt(plus * minus)).logpmf(
        smaller
    )
    np.testing.assert_allclose(split, pair, rtol=1e-12, atol=1e-12)


@given(releases, rates, alphas)
def test_marginal_of_a_release_is_the_noise_summed_over_the_counts(released, rate, alpha):
    law = TwoPiecePoisson(released, rate, alpha)
    y = np.unique(np.concatenate([window(law), np.array([0])]))
    y = y[y >= 0]
    joint = Skellam(rate, 0.0).logpmf(y) + TwoSidedGeometric(alpha).logpmf(released - y)
    # Bayes: the conditional is the joint over the marginal, at each count
    value, slope = law.log_marginal(gradient=True)
    seen = joint - value > -200
    np.testing.assert_allclose(law.logpmf(y)[seen], (joint - value)[seen], atol=1e-11, rtol=1e-11)
    assert slope == pytest.approx(law.mean() / rate - 1, rel=1e-12, abs=1e-12 * (law.mean() / rate))


@given(st.floats(0.5, 50.0), alphas, st.integers(-5, 60))
def test_derivative_of_the_marginal_is_its_slope(rate, alpha, released):
    step = 1e-4 * rate
    left, right = (TwoPiecePoisson(released, rate + s, alpha).log_marginal() for s in (-step, step))
    slope = TwoPiecePoisson(released, rate, alpha).log_marginal(gradient=True)[1]
    assert (right - left) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-5)
