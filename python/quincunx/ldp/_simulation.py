"""Draws from priors and from laws on an interval, for simulated data sets."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

from quincunx._inference import Array, Floats
from quincunx.ldp.priors import LKJ, Dirichlet, Prior
from quincunx.privacy import noise as laws
from quincunx.privacy._supports import PRIME

#: Parameters drawn from their priors, and what users of theirs release: arguments of `fit`.
DataSet: TypeAlias = tuple[dict[str, float | Floats], tuple[Any, ...], dict[str, Any]]


@singledispatch
def noisy(noise: laws.Noise | None, x: Array, rng: np.random.Generator) -> Array:
    """Return what users with true values release, by NumPy's generator: for simulations, which protect nobody."""
    raise NotImplementedError


@noisy.register
def _(noise: None, x: Array, rng: np.random.Generator) -> Array:
    return x


@noisy.register
def _(noise: laws.LaplaceNoise, x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(np.clip(x, noise.lower, noise.upper) + rng.laplace(0, noise.scale, x.shape))


@noisy.register
def _(noise: laws.GeometricNoise, x: Array, rng: np.random.Generator) -> Array:
    success = -np.expm1(-noise.decay)
    x = np.clip(x, noise.lower, noise.upper)
    return np.asarray(x + rng.geometric(success, x.shape) - rng.geometric(success, x.shape))


@noisy.register
def _(noise: laws.GaussianNoise, x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(noise.clipped(x) + rng.normal(size=x.shape) * noise.deviations)


@noisy.register
def _(noise: laws.RandomizedResponseNoise, x: Array, rng: np.random.Generator) -> Array:
    bits = np.where(rng.random(x.shape) < noise.keep_probability, x, 1 - x)
    return noise.declared.decode(bits.astype(np.int64))


@noisy.register
def _(noise: laws.GeneralizedRandomizedResponseNoise, x: Array, rng: np.random.Generator) -> Array:
    k = len(noise.declared)
    redrawn = (x + rng.integers(1, k, x.shape)) % k
    return noise.declared.decode(np.where(rng.random(x.shape) < noise.keep_probability, x, redrawn))


@noisy.register
def _(noise: laws.UnaryEncodingNoise, x: Array, rng: np.random.Generator) -> Array:
    k = len(noise.declared)
    chances = np.where(np.arange(k) == x[:, None], noise.one_probability, noise.zero_probability)
    return (rng.random((len(x), k)) < chances).astype(np.uint8)


@noisy.register
def _(noise: laws.SubsetSelectionNoise, x: Array, rng: np.random.Generator) -> Array:
    # The ranks of random keys: of the truth the least or the greatest.
    keys = rng.random((len(x), len(noise.declared)))
    keys[np.arange(len(x)), x] = np.where(rng.random(len(x)) < noise.one_probability, -1.0, 2.0)
    return (np.argsort(np.argsort(keys, axis=1), axis=1) < noise.size).astype(np.uint8)


@noisy.register
def _(noise: laws.LocalHashingNoise, x: Array, rng: np.random.Generator) -> Array:
    a, b = rng.integers(0, PRIME, (2, len(x)))
    hashes = (a * x + b) % PRIME % noise.buckets
    others = (hashes + rng.integers(1, noise.buckets, x.shape)) % noise.buckets
    told = np.where(rng.random(len(x)) < noise.one_probability, hashes, others)
    return np.stack([a * PRIME + b, told], axis=1)


@noisy.register
def _(noise: laws.HadamardResponseNoise, x: Array, rng: np.random.Generator) -> Array:
    # Indices until one supports the truth, or does not, as a coin says.
    supports = rng.random(len(x)) < noise.one_probability
    found = rng.integers(0, noise.blocks * noise.columns, len(x))
    while (wrong := noise.log_likelihood(found, x) > noise.log_outside).tolist() != supports.tolist():
        wrong ^= supports
        found[wrong] = rng.integers(0, noise.blocks * noise.columns, int(wrong.sum()))
    return found


def noisy_reports(noise: laws.Noise, x: Array, reports: int, rng: np.random.Generator) -> Array:
    """Return several reports of each user, along the second axis: of one permanent row where the law has such rows."""
    if not isinstance(noise, laws.MemoizedUnaryEncodingNoise):
        return np.stack([noisy(noise, x, rng) for _ in range(reports)], axis=1)
    kept = noisy(noise.permanent, x, rng)[:, None]
    return np.asarray(kept ^ (rng.random((len(x), reports, kept.shape[2])) < float(noise.flip)), dtype=np.uint8)


def generated(prior: Prior, rng: np.random.Generator) -> float:
    """Return one draw from a scalar's prior."""
    assert not isinstance(prior, (Dirichlet, LKJ))
    return prior.sample(rng)


def covariance(d: int, scales: Prior, correlation: LKJ, rng: np.random.Generator) -> Floats:
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
