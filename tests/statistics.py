"""Goodness of fit for tests of draws: each assertion states its false-alarm rate and shows what it saw."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-6
"""The rate at which one test may be red although the draws are right. A red test is never answered by a new seed."""


def chi_square_probability(
    draws: npt.NDArray[np.int64],
    pmf: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
) -> float:
    """Probability of so large a chi-square statistic: values pooled into bins of at least 25 expected draws.

    The mass beyond the range of the draws belongs to the outermost bins.
    """
    values = np.arange(draws.min(), draws.max() + 1)
    expected = draws.size * pmf(values)
    observed = np.bincount(draws - draws.min(), minlength=values.size)
    edges, total = [0], 0.0
    for i, part in enumerate(expected):
        total += part
        if total >= 25:
            edges.append(i + 1)
            total = 0.0
    if len(edges) < 3:
        return 1.0
    edges[-1] = values.size
    pooled = np.add.reduceat(expected, edges[:-1])
    pooled[-1] += draws.size - expected.sum()
    counts = np.add.reduceat(observed, edges[:-1])
    return float(stats.chi2.sf(((counts - pooled) ** 2 / pooled).sum(), len(pooled) - 1))


def uniform_probability(
    draws: npt.NDArray[np.int64],
    pmf: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    cdf: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
) -> float:
    """Kolmogorov-Smirnov probability of the randomized distribution function, for laws with very many values."""
    values, back = np.unique(draws, return_inverse=True)
    spread = np.random.default_rng(0).random(draws.size)
    return float(stats.kstest((cdf(values) - pmf(values))[back] + spread * pmf(values)[back], "uniform").pvalue)


def assert_draws_follow(draws, law):
    """Assert that draws fit a law with `pmf` and `cdf`, at a false-alarm rate of 1e-6."""
    if draws.max() - draws.min() > 5000:
        probability = uniform_probability(draws, law.pmf, law.cdf)
    else:
        probability = chi_square_probability(draws, law.pmf)
    assert probability > FALSE_ALARM, f"{law}: {draws.size} draws have probability {probability:.2e}"


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
    limit = stats.chi2.isf(FALSE_ALARM, len(mean) - 1)
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
    limit = math.sqrt(math.log(2 / FALSE_ALARM) / 2 / n)
    assert distance < limit, f"distance {distance:.2e} exceeds {limit:.2e}"
