"""Posteriors of quincunx.ldp: processor time per gradient, per fit and per effective draw, beside NumPy in one process.

The peers are the same densities as vectorized NumPy and SciPy code, over all users. NumPyro and nutpie, which compile
for seconds to half a minute before they draw, are not run here.
Run: python benches/bench_ldp.py [--full]
"""

import sys
import time
import warnings

import numpy as np
from scipy import special, stats

from quincunx import ldp
from quincunx.ldp import statistics
from quincunx.ldp.priors import Gamma, Normal
from quincunx.privacy import GaussianMechanism, LaplaceMechanism, RandomizedResponse, UnaryEncoding

warnings.simplefilter("ignore")
PRIORS = {"mu": Normal(0, 2), "sigma": Gamma(2, 1)}


def cpu(job, repeats):
    """Best processor seconds of a call of five rounds."""
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        for _ in range(repeats):
            job()
        best = min(best, (time.process_time() - start) / repeats)
    return best


def row(what, ours, peer=None):
    """Print a line: microseconds, the peer's, the ratio."""
    beside = f"{peer * 1e6:12.1f} us {peer / ours:9.1f} x" if peer else ""
    print(f"{what:<58}{ours * 1e6:12.1f} us{beside}")


def numpy_gaussian(z, mu, sigma, a=-5.0, b=5.0, s=10.0):
    """The paper's four terms in logarithms."""
    x, r = np.clip(z, a, b), sigma / s
    at = [(v - mu) / sigma for v in (a, x, b)]

    def log_between(low, high):
        upper, lower = special.log_ndtr(high), special.log_ndtr(low)
        return upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))

    terms = [
        special.log_ndtr(at[0]) - np.abs(z - a) / s,
        special.log_ndtr(-at[2]) - np.abs(z - b) / s,
        -(z - mu) / s + r * r / 2 + log_between(at[0] - r, at[1] - r),
        (z - mu) / s + r * r / 2 + log_between(-at[2] - r, -at[1] - r),
    ]
    return special.logsumexp(np.stack(np.broadcast_arrays(*terms)), axis=0).sum()


def gaussian(full):
    rng = np.random.default_rng(0)
    mechanism = LaplaceMechanism(1.0, -5, 5)
    for n in (5000, 10**7) if full else (5000, 10**6):
        z = np.clip(rng.normal(1, 1.5, n), -5, 5) + rng.laplace(0, 10, n)
        start = time.process_time()
        model = ldp.GaussianModel(mechanism, priors=PRIORS, random_state=0).fit(z)
        first = time.process_time() - start
        core, u = model._posterior.problem.core, np.array([1.0, 0.4])
        with np.errstate(all="ignore"):
            peer = cpu(lambda: numpy_gaussian(z, 1.0, 1.5), 1) if n <= 10**6 else None  # noqa: B023
        row(f"Gaussian, gradient, N = {n}", cpu(lambda: core.log_density(u), 500), peer)  # noqa: B023
        row(f"Gaussian, fit with 4000 independent draws, N = {n}", first)
        if n == 5000:
            row("Gaussian, the same again", cpu(lambda: model.fit(z), 1))  # noqa: B023
            effective("Gaussian by NUTS, N = 5000", ldp.GaussianModel(mechanism, priors=PRIORS, inference="nuts"), z)


def effective(what, model, *data, **more):
    """Print effective draws per processor second, warm-up included."""
    model.set_params(random_state=0)
    start = time.process_time()
    model.fit(*data, **more)
    spent = time.process_time() - start
    least = min(row["ess_bulk"] for row in model.summary().values())
    print(f"{what:<58}{least / spent:12.0f} effective draws per processor second ({least:.0f} in {spent:.2f} s)")
    return model


def histogram():
    rng = np.random.default_rng(1)
    theta = rng.dirichlet(np.ones(10))
    mechanism = UnaryEncoding(1.0, 10)
    rows = mechanism.release(rng.choice(10, 10_000, p=theta), insecure_seed=1).values
    model = effective("histogram by NUTS, k = 10, N = 10^4", ldp.HistogramModel(mechanism), rows)
    core, u = model._posterior.problem.core, np.zeros(9)
    patterns = len(np.unique(rows, axis=0))
    bits = rows.astype(float)
    slope = np.exp(1.0) - 1

    def peer():
        share = 1 + slope * bits @ theta
        return np.log(share).sum(), slope * (bits / share[:, None]).sum(axis=0)

    row(f"histogram, gradient, {patterns} patterns", cpu(lambda: core.log_density(u), 1000), cpu(peer, 5))


def linear():
    rng = np.random.default_rng(2)
    d, n = 11, 20_000
    x = rng.normal(size=(n, d)) / 4
    y = x @ rng.normal(size=d) * 0.3 + 0.2 * rng.normal(size=n)
    told = statistics.linear(x, y, x_bound=2.0, y_bound=2.0, noise_ratios=(2, 1))
    mechanism = GaussianMechanism(sigma=1.0, sensitivity=1.0)
    total = told.sum(axis=0) + np.sqrt(n) * rng.normal(size=told.shape[1])
    model = ldp.LinearRegression(mechanism, kind="statistics", noise_ratios=(2, 1))
    model = effective("linear moments by NUTS, d = 11", model, total, n=n)
    core = model._posterior.problem.core
    u = core.coordinates(np.concatenate([draws[0, 0].reshape(-1) for draws in model.draws_.values()]))
    size = told.shape[1]
    covariance = n * (np.cov(told.T) + np.eye(size))

    def peer():
        return stats.multivariate_normal(n * told.mean(axis=0), covariance).logpdf(total)

    row("linear moments, gradient, d = 11 (peer: dense value)", cpu(lambda: core.log_density(u), 300), cpu(peer, 3))


def logistic():
    rng = np.random.default_rng(3)
    n, d = 10_000, 5
    x = rng.normal(size=(n, d))
    y = (rng.random(n) < special.expit(x @ rng.normal(size=d))).astype(int)
    mechanisms = (GaussianMechanism(sigma=1.0, sensitivity=1.0), RandomizedResponse(1.0))
    noisy = x + rng.normal(size=x.shape), np.where(rng.random(n) < mechanisms[1].keep_probability, y, 1 - y)
    model = ldp.LogisticRegression(mechanisms, n_warmup=300, n_draws=300)
    model = effective("logistic records by NUTS, N = 10^4, d = 5", model, *noisy)
    core = model._posterior.problem.core
    u = core.coordinates(np.concatenate([draws[0, 0].reshape(-1) for draws in model.draws_.values()]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)

    def peer():
        m = noisy[0] @ np.ones(d) * 0.3
        e = special.expit(m[:, None] + nodes) @ weights
        return np.log(e).sum()

    row("logistic records, gradient (peer: value, 32 nodes)", cpu(lambda: core.log_density(u), 50), cpu(peer, 2))


def calibrated():
    start = time.process_time()
    model = ldp.GaussianModel(LaplaceMechanism(1.0, -5, 5), priors=PRIORS, n_chains=1, n_draws=1)
    found = ldp.calibration(model, repeats=30, n=5000, random_state=0)
    spent = time.process_time() - start
    print(f"calibration of the Gaussian model{'':<25}{spent / 30 * 1e3:12.1f} ms per fit, passed: {found.passed}")


if __name__ == "__main__":
    gaussian("--full" in sys.argv)
    histogram()
    linear()
    logistic()
    calibrated()
