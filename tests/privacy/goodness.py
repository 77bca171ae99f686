"""Goodness of fit at a stated false-alarm rate."""

import math

import numpy as np
from scipy.stats import chi2

FALSE_ALARM_RATE = 1e-6


def assert_discrete_fit(counts, probabilities):
    """Chi-square on bins pooled to 25 expected draws; false-alarm rate 1e-6.

    `probabilities` belong to `counts`; what is left of 1 is one more bin, in which no draw was counted.
    """
    counts, probabilities = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    total = counts.sum()
    order = np.argsort(probabilities)
    counts, expected = counts[order], total * probabilities[order] / probabilities.sum()
    pooled_counts, pooled_expected, some, mass = [], [], 0.0, 0.0
    for count, mean in zip(counts, expected, strict=True):
        some, mass = some + count, mass + mean
        if mass >= 25:
            pooled_counts.append(some)
            pooled_expected.append(mass)
            some, mass = 0.0, 0.0
    if pooled_expected:
        pooled_counts[-1] += some
        pooled_expected[-1] += mass
    observed, mean = np.array(pooled_counts), np.array(pooled_expected)
    distance = float(((observed - mean) ** 2 / mean).sum())
    limit = chi2.isf(FALSE_ALARM_RATE, len(mean) - 1)
    assert distance < limit, f"chi-square {distance:.1f} exceeds {limit:.1f} with {len(mean)} bins"


def assert_share(hits, draws, probability):
    """A binomial count within 4.9 standard deviations and one; false-alarm rate 1e-6."""
    spread = math.sqrt(draws * probability * (1 - probability))
    assert abs(hits - draws * probability) < 4.9 * spread + 1, f"{hits} of {draws}, expected share {probability}"


def assert_continuous_fit(draws, cdf):
    """Kolmogorov's distance below sqrt(log(2 / rate) / 2 / n); false-alarm rate 1e-6."""
    draws = np.sort(np.asarray(draws, dtype=float))
    n = len(draws)
    steps = np.arange(1, n + 1) / n
    values = cdf(draws)
    distance = max(np.max(np.abs(values - steps)), np.max(np.abs(values - steps + 1 / n)))
    limit = math.sqrt(math.log(2 / FALSE_ALARM_RATE) / 2 / n)
    assert distance < limit, f"distance {distance:.2e} exceeds {limit:.2e}"
