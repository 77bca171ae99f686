"""Known answers of `tests/known/privacy.json`, each with a second origin; the Rust tests read the same file."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from quincunx.privacy import (
    DataMetric,
    DiscreteGaussianMechanism,
    GeometricMechanism,
    PrivacyGuarantee,
    gaussian_sigma,
    sensitivity,
)

KNOWN = json.loads((Path(__file__).parents[1] / "known" / "privacy.json").read_text())


def test_every_quantity_has_two_origins():
    assert set(KNOWN["origins"]) == set(KNOWN) - {"origins"}
    assert all(len(origins) >= 2 for origins in KNOWN["origins"].values())


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), KNOWN["gaussian_sigma"])
def test_sigma_has_the_known_values_and_is_never_below(epsilon, delta, sigma):
    found = gaussian_sigma(epsilon, delta)
    assert sigma <= found * (1 + 1e-16)
    assert found == pytest.approx(sigma, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "delta", "alongside", "sigma"), KNOWN["gaussian_sigma_alongside"])
def test_sigma_beside_a_randomized_response_has_the_known_values(epsilon, delta, alongside, sigma):
    assert gaussian_sigma(epsilon, delta, alongside=alongside) == pytest.approx(sigma, rel=1e-13)
    # The second origin: what the one record makes likelier than e^epsilon times the other, summed over both bits.
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 2_000_001)
    keep = 1 / (1 + math.exp(-alongside))
    one, other = norm.pdf(x, 1, sigma), math.exp(epsilon) * norm.pdf(x, 0, sigma)
    excess = np.maximum(keep * one - (1 - keep) * other, 0) + np.maximum((1 - keep) * one - keep * other, 0)
    assert excess.sum() * (x[1] - x[0]) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    ("radius", "response", "cross", "square", "dimension", "squared"), KNOWN["linear_regression_squared"]
)
def test_linear_sensitivities_are_the_known_ones(radius, response, cross, square, dimension, squared):
    found = sensitivity.linear_regression(radius, response, ratios=(cross, square), dimension=dimension)
    assert found**2 == pytest.approx(squared, rel=1e-11)


@pytest.mark.parametrize(("radius", "ratio", "dimension", "squared"), KNOWN["logistic_regression_squared"])
def test_logistic_sensitivities_are_the_known_ones(radius, ratio, dimension, squared):
    found = sensitivity.logistic_regression(radius, ratio=ratio, dimension=dimension)
    assert found**2 == pytest.approx(squared, rel=1e-11)


@pytest.mark.parametrize(("exponent", "k", "mass"), KNOWN["two_sided_geometric"])
def test_geometric_noise_has_the_known_masses(exponent, k, mass):
    assert math.exp(GeometricMechanism(exponent, n=1).log_likelihood(k, 0)) == pytest.approx(mass, rel=1e-13)
    alpha = math.exp(-exponent)
    products = ((1 - alpha) ** 2 * alpha ** (i + i + abs(k)) for i in range(100))
    assert math.fsum(products) == pytest.approx(mass, rel=1e-13)


@pytest.mark.parametrize("squared", range(1, 41))
def test_roots_of_whole_numbers_are_the_distances_that_they_stand_for(squared):
    # An array of whole numbers moves by a vector of ones: its L2 distance is the root, or the double nearest to it.
    moved, metric = np.linalg.norm(np.ones(squared)), DataMetric("l2", math.sqrt(squared))
    noise = DiscreteGaussianMechanism(variance=16.0, delta=1e-6, sensitivity=moved, norm="l2")
    assert noise.guarantee.zcdp == squared / 32
    assert DiscreteGaussianMechanism(variance=16.0, delta=1e-6, relation=metric).guarantee.zcdp == squared / 32
    unit = GeometricMechanism(1.0, n=1)
    noise = GeometricMechanism(alpha=unit.alpha, relation=metric)
    assert noise.guarantee.epsilon >= squared * (1 - 1e-12)


@pytest.mark.parametrize(("rho", "delta", "epsilon"), KNOWN["epsilon_of_zcdp"])
def test_zcdp_converts_to_the_known_epsilons(rho, delta, epsilon):
    guarantee = PrivacyGuarantee(50.0, zcdp=rho)
    assert guarantee.epsilon_at(delta) == pytest.approx(epsilon, abs=1e-9)
    assert guarantee.delta_at(epsilon) == pytest.approx(delta, rel=1e-8)
    orders = np.linspace(1.001, 100, 1_000_001)
    bounds = rho * orders + np.log1p(-1 / orders) - np.log(orders * delta) / (orders - 1)
    assert bounds.min() == pytest.approx(epsilon, abs=1e-8)
