"""Draws from priors and from laws on an interval, for simulated data sets."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quincunx._inference import Floats


def generated(prior: Any, rng: np.random.Generator) -> float:
    """Return one draw from a scalar's prior."""
    return float(prior.sample(rng))


def covariance(d: int, scales: Any, correlation: Any, rng: np.random.Generator) -> Floats:
    """Return a covariance matrix with scales from a prior and correlations from LKJ(eta), by partial correlations.

    That of i and j given all before j is 2 Beta(b, b) - 1 with b = eta + (d - 2 - j) / 2, j from 0 (Lewandowski,
    Kurowicka and Joe 2009).
    """
    factor = np.eye(d)
    for i in range(1, d):
        left = 1.0
        for j in range(i):
            b = correlation.eta + (d - 2 - j) / 2
            z = 2 * rng.beta(b, b) - 1
            factor[i, j] = z * np.sqrt(left)
            left *= 1 - z * z
        factor[i, i] = np.sqrt(left)
    scaled = np.array([generated(scales, rng) for _ in range(d)])[:, None] * factor
    return np.asarray(scaled @ scaled.T)


def by_inversion(
    log_density: Callable[[Floats], Floats], low: float, high: float, n: int, rng: np.random.Generator
) -> Floats:
    """Return draws from a smooth density on an interval, by its distribution function on a fine grid."""
    x = np.linspace(low, high, 20_001)
    logs = log_density(x)
    mass = np.exp(logs - logs.max())
    below = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    return np.asarray(np.interp(rng.random(n) * below[-1], below, x))
