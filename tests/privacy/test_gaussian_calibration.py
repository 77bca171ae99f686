"""Sigma, delta and epsilon of the Gaussian mechanism against arithmetic of many digits."""

import itertools
import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.privacy import gaussian_delta, gaussian_epsilon, gaussian_sigma


def exact_delta(epsilon, sigma, digits=None):
    epsilon, u = mpmath.mpf(epsilon), 1 / mpmath.mpf(sigma)
    x1, x2 = epsilon / u - u / 2, epsilon / u + u / 2
    half_erfc = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
    return half_erfc(x1) - mpmath.exp(epsilon) * half_erfc(x2)


def test_sigma_is_enclosed_by_the_exact_profile_on_a_grid():
    epsilons = [0, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 1, 2, 5, 10, 50, 100, 1000]
    deltas = [1e-300, 1e-100, 1e-30, 1e-15, 1e-10, 1e-6, 1e-5, 1e-3, 0.1, 0.5, 0.7, 0.99, 1 - 1e-9]
    for epsilon, delta in itertools.product(epsilons, deltas):
        sigma = gaussian_sigma(epsilon, delta)
        with mpmath.workdps(60 - int(math.log10(delta))):
            assert exact_delta(epsilon, sigma) <= delta, (epsilon, delta)
            assert exact_delta(epsilon, mpmath.mpf(sigma) * (1 - mpmath.mpf(10) ** -14)) > delta, (epsilon, delta)


@given(st.floats(1e-8, 200), st.floats(-650, -0.02), st.floats(1e-6, 1e6))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_sigma_delta_and_epsilon_bound_one_another(epsilon, log_delta, sensitivity):
    delta = math.exp(log_delta)
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert gaussian_delta(epsilon, sigma, sensitivity) == pytest.approx(delta, rel=1e-10)
    assert gaussian_epsilon(delta, sigma, sensitivity) == pytest.approx(epsilon, rel=1e-8)
    assert gaussian_sigma(epsilon, delta, sensitivity * 2) == pytest.approx(sigma * 2, rel=1e-14)


@pytest.mark.parametrize("sigma", [1e-2, 0.3, 1, 7, 1e3])
@pytest.mark.parametrize("delta", [1e-200, 1e-12, 1e-3, 0.2, 0.8])
def test_delta_and_epsilon_are_upper_bounds_close_to_the_exact_values(sigma, delta):
    epsilon = gaussian_epsilon(delta, sigma)
    with mpmath.workdps(270):
        assert exact_delta(epsilon, sigma) <= delta
        if epsilon > 0:
            assert exact_delta(mpmath.mpf(epsilon) * (1 - mpmath.mpf(10) ** -11), sigma) > delta
            found = mpmath.mpf(gaussian_delta(epsilon, sigma))
            exact = exact_delta(epsilon, sigma)
            assert exact <= found
            assert found <= exact * (1 + mpmath.mpf(10) ** -10) + mpmath.mpf(2) ** -1074
        else:
            assert exact_delta(0, sigma) <= delta


def test_beside_randomized_response_less_noise_is_needed_than_by_splitting():
    for epsilon, alongside, exact in [
        (1, 0.5, 6.80765495085),
        (0.5, 0.25, 12.7183232106),
        (2, 1, 3.65977278798),
        (1, 0.25, 4.67280510826),
    ]:
        sigma = gaussian_sigma(epsilon, 1e-5, alongside=alongside)
        assert sigma == pytest.approx(exact, rel=1e-11)
        assert sigma < gaussian_sigma(epsilon - alongside, 1e-5)
        with mpmath.workdps(60):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(alongside)))
            together = []
            for s in (mpmath.mpf(sigma), mpmath.mpf(sigma) * (1 - mpmath.mpf(10) ** -12)):
                lower, upper = exact_delta(epsilon - alongside, s), exact_delta(epsilon + alongside, s)
                together.append(p * lower + (1 - p) * upper)
            assert together[0] <= mpmath.mpf(1e-5) < together[1]


def test_at_epsilon_zero_delta_is_the_total_variation():
    assert gaussian_delta(0, 2.0) == pytest.approx(math.erf(0.25 / math.sqrt(2)), rel=1e-14)


def test_bad_input_is_refused_by_name():
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="`epsilon`"):
            gaussian_sigma(bad, 1e-5)
        with pytest.raises(ValueError, match="`epsilon`"):
            gaussian_delta(bad, 1.0)
    for bad in (0, 1, -0.1, 2, math.nan):
        with pytest.raises(ValueError, match="`delta`"):
            gaussian_sigma(1.0, bad)
        with pytest.raises(ValueError, match="`delta`"):
            gaussian_epsilon(bad, 1.0)
    for bad in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="`sensitivity`"):
            gaussian_sigma(1.0, 1e-5, bad)
        with pytest.raises(ValueError, match="`sigma`"):
            gaussian_delta(1.0, bad)
    for bad in (1.0, 2.0, -0.5, math.nan):
        with pytest.raises(ValueError, match="`alongside`"):
            gaussian_sigma(1.0, 1e-5, alongside=bad)
    with pytest.raises(TypeError, match="`epsilon`"):
        gaussian_sigma("1", 1e-5)
