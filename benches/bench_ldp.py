"""Posteriors of quincunx.ldp: processor time per gradient, per fit and per effective draw, beside peers in one process.

Always beside: the same densities as vectorized NumPy and SciPy code, over all users. NumPyro and nutpie (through PyMC),
which compile for seconds to half a minute before they draw, where they are installed: four chains of 300 draws after
300 of warm-up, compiling left out of the time that the effective draws are divided by and told beside.
Run: python benches/bench_ldp.py [--full]        --full: ten million users, and NumPyro on the linear moments (minutes)
     python benches/bench_ldp.py --stream 1e8 [FOLDER]        as many users from a Parquet file, written first (pyarrow)
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec

import numpy as np
from scipy import special, stats

from measuring import keep
from quincunx import ldp
from quincunx.ldp import statistics
from quincunx.ldp.priors import Gamma, Normal
from quincunx.privacy import GaussianMechanism, LaplaceMechanism, RandomizedResponse, UnaryEncoding

warnings.simplefilter("ignore")
SETTINGS = {"n_warmup": 300, "n_draws": 300}
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
    keep(what, ours, {"NumPy": peer} if peer else {})


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


def jax_gaussian(z, u, a=-5.0, b=5.0, s=10.0):
    """The same four terms and the priors, in jax.numpy."""
    import jax.numpy as jnp
    from jax.scipy.special import log_ndtr, logsumexp

    mu, sigma = u[0], jnp.exp(u[1])
    x, r = np.clip(z, a, b), sigma / s
    at = [(v - mu) / sigma for v in (a, x, b)]

    def log_between(low, high):
        upper, lower = log_ndtr(high), log_ndtr(low)
        return upper + jnp.log(-jnp.expm1(jnp.minimum(lower - upper, -1e-300)))

    terms = [
        log_ndtr(at[0]) - np.abs(z - a) / s,
        log_ndtr(-at[2]) - np.abs(z - b) / s,
        jnp.where(
            z <= a, -1e300, -(z - mu) / s + r * r / 2 + log_between(at[0] - r, jnp.where(z <= a, at[0] + 1, at[1]) - r)
        ),
        jnp.where(
            z >= b, -1e300, (z - mu) / s + r * r / 2 + log_between(-at[2] - r, -jnp.where(z >= b, at[2] - 1, at[1]) - r)
        ),
    ]
    told = logsumexp(jnp.stack(jnp.broadcast_arrays(*terms)), axis=0).sum()
    return told - mu**2 / 8 + 2 * u[1] - sigma


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
            what = "Gaussian by NUTS, N = 5000"
            _, ours = effective(what, ldp.GaussianModel(mechanism, priors=PRIORS, inference="nuts"), z)
            numpyro(what, ours, lambda u: jax_gaussian(z, u), 2, lambda u: u)  # noqa: B023


def against(what, ours, name, least, spent, compiling):
    """Print a peer's effective draws per processor second, and how many times as many ours are."""
    told = f"{least / spent:12.1f} effective draws per processor second ({least:.0f} in {spent:.2f} s)"
    print(f"{'  ' + name:<58}{told}, {compiling:.1f} s of compiling: {ours * spent / least:.0f} x")
    keep(f"{what}, an effective draw", 1 / ours, {name: spent / least})


def least_effective(draws):
    """The smallest effective number of draws of any number, of shape (chains, draws, ...)."""
    from quincunx._inference import diagnose

    flat = {str(k): part for k, part in enumerate(np.moveaxis(draws.reshape(*draws.shape[:2], -1), 2, 0))}
    return min(ess for _, ess in diagnose(flat).values())


def numpyro(what, ours, log_density, size, parameters):
    """NUTS of NumPyro on a log density in jax.numpy, of `size` unconstrained numbers."""
    if find_spec("numpyro") is None:
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    from numpyro.infer import MCMC, NUTS

    sampler = NUTS(potential_fn=lambda u: -log_density(u))
    chains = MCMC(sampler, num_warmup=300, num_samples=300, num_chains=4, chain_method="sequential", progress_bar=False)
    start = 0.1 * np.random.default_rng(0).normal(size=(4, size))
    times = []
    for seed in (0, 1):  # the first run compiles
        begin = time.process_time()
        chains.run(jax.random.PRNGKey(seed), init_params=start)
        draws = np.asarray(jax.vmap(jax.vmap(parameters))(chains.get_samples(group_by_chain=True)))
        times.append(time.process_time() - begin)
    # A second run of the same object compiles its loop again where shapes are new only; the least of both is sampling.
    spent = min(times)
    against(what, ours, "NumPyro", least_effective(draws), spent, max(times) - spent)


def nutpie_histogram(what, ours, rows):
    """nutpie on PyMC's model of the patterns."""
    if find_spec("nutpie") is None or find_spec("pymc") is None:
        return
    import nutpie
    import pymc

    patterns, counts = np.unique(rows, axis=0, return_counts=True)
    with pymc.Model() as model:
        theta = pymc.Dirichlet("theta", np.ones(rows.shape[1]))
        share = 1 + (np.exp(1.0) - 1) * pymc.math.dot(patterns.astype(float), theta)
        pymc.Potential("told", pymc.math.sum(counts * pymc.math.log(share)))
    begin = time.process_time()
    compiled = nutpie.compile_pymc_model(model)
    compiling = time.process_time() - begin
    begin = time.process_time()
    trace = nutpie.sample(compiled, draws=300, tune=300, chains=4, cores=1, seed=0, progress_bar=False)
    spent = time.process_time() - begin
    against(what, ours, "nutpie", least_effective(trace.posterior["theta"].to_numpy()), spent, compiling)


def effective(what, model, *data, **more):
    """Print effective draws per processor second, warm-up included."""
    model.set_params(random_state=0)
    start = time.process_time()
    model.fit(*data, **more)
    spent = time.process_time() - start
    least = min(row["ess_bulk"] for row in model.summary().values())
    print(f"{what:<58}{least / spent:12.0f} effective draws per processor second ({least:.0f} in {spent:.2f} s)")
    return model, least / spent


def histogram():
    rng = np.random.default_rng(1)
    theta = rng.dirichlet(np.ones(10))
    mechanism = UnaryEncoding(1.0, 10)
    rows = mechanism.release(rng.choice(10, 10_000, p=theta), insecure_seed=1).values
    what = "histogram by NUTS, k = 10, N = 10^4"
    model, ours = effective(what, ldp.HistogramModel(mechanism), rows)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    distinct = distinct.astype(float)

    def softmax(u):
        import jax

        return jax.nn.softmax(np.linalg.svd(np.ones((1, 10)))[2][1:].T @ u)

    def log_density(u):
        import jax.numpy as jnp

        theta = softmax(u)
        return counts @ jnp.log(1 + (np.exp(1.0) - 1) * (distinct @ theta)) + jnp.log(theta).sum()

    numpyro(what, ours, log_density, 9, softmax)
    nutpie_histogram(what, ours, rows)
    core, u = model._posterior.problem.core, np.zeros(9)
    patterns = len(np.unique(rows, axis=0))
    bits = rows.astype(float)
    slope = np.exp(1.0) - 1

    def peer():
        share = 1 + slope * bits @ theta
        return np.log(share).sum(), slope * (bits / share[:, None]).sum(axis=0)

    row(f"histogram, gradient, {patterns} patterns", cpu(lambda: core.log_density(u), 1000), cpu(peer, 5))


def jax_moments(total, n, d, sigma=1.0):
    """The dense normal density of the sum of svec(z z') and the priors, in jax.numpy."""
    import jax
    import jax.numpy as jnp

    rows, columns = np.triu_indices(d + 1)
    weights = np.where(rows == columns, 1.0, np.sqrt(2))
    order = np.concatenate(
        [np.flatnonzero(columns < d), np.flatnonzero((columns == d) & (rows < d)), np.flatnonzero(rows == d)]
    )
    pairs = [(rows[a], columns[a]) for a in order]
    i, j = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    w = weights[order]
    lower = np.tril_indices(d, -1)

    def log_density(u):
        theta, residual, tau = u[:d], jnp.exp(u[d]), jnp.exp(u[d + 1 : 2 * d + 1])
        z = jnp.zeros((d, d)).at[lower].set(jnp.tanh(u[2 * d + 1 :]))
        left = jnp.cumprod(jnp.concatenate([jnp.ones((d, 1)), 1 - z**2], axis=1), axis=1)[:, :d]
        factor = jnp.tril(z * jnp.sqrt(left), -1) + jnp.diag(jnp.sqrt(jnp.diagonal(left)))
        scaled = tau[:, None] * factor
        s = scaled @ scaled.T
        cross = s @ theta
        c = jnp.block([[s, cross[:, None]], [cross[None, :], (theta @ cross + residual**2)[None, None]]])
        spread = c[i][:, i] * c[j][:, j] + c[i][:, j] * c[j][:, i]
        covariance = n * (w[:, None] * w * spread + sigma**2 * jnp.eye(len(w)))
        told = jax.scipy.stats.multivariate_normal.logpdf(total, n * w * c[i, j], covariance)
        stretch = (
            jnp.sum(jnp.log1p(-(z[lower] ** 2)))
            + 0.5 * jnp.sum(jnp.log(left[lower]))
            + u[d:].sum()
            - u[2 * d + 1 :].sum()
        )
        lkj = jnp.sum((d - np.arange(1, d + 1) + 2.0) * 0.5 * jnp.log(jnp.diagonal(left)))
        priors = -theta @ theta / 10 - residual**2 / 2 - tau @ tau / 12.5
        return told + stretch + lkj + priors

    return log_density


def linear(full):
    rng = np.random.default_rng(2)
    d, n = 11, 20_000
    x = rng.normal(size=(n, d)) / 4
    y = x @ rng.normal(size=d) * 0.3 + 0.2 * rng.normal(size=n)
    told = statistics.linear(x, y, x_bound=2.0, y_bound=2.0, noise_ratios=(2, 1))
    mechanism = GaussianMechanism(sigma=1.0, sensitivity=1.0)
    total = told.sum(axis=0) + np.sqrt(n) * rng.normal(size=told.shape[1])
    model = ldp.LinearRegression(mechanism, kind="statistics", noise_ratios=(2, 1))
    model, ours = effective("linear moments by NUTS, d = 11", model, total, n=n)
    core = model._posterior.problem.core
    u = core.coordinates(np.concatenate([draws[0, 0].reshape(-1) for draws in model.draws_.values()]))
    if full:
        numpyro("", ours, jax_moments(total, n, d), d + 1 + d * (d + 1) // 2, lambda u: u[: d + 1])
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
    model, _ = effective("logistic records by NUTS, N = 10^4, d = 5", model, *noisy)
    core = model._posterior.problem.core
    u = core.coordinates(np.concatenate([draws[0, 0].reshape(-1) for draws in model.draws_.values()]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)

    def peer():
        m = noisy[0] @ np.ones(d) * 0.3
        e = special.expit(m[:, None] + nodes) @ weights
        return np.log(e).sum()

    row("logistic records, gradient (peer: value, 32 nodes)", cpu(lambda: core.log_density(u), 50), cpu(peer, 2))


def streamed(users, folder):
    """Write users' reports to a Parquet file in pieces; summarize and fit them in a process of its own."""
    import pyarrow
    from pyarrow import parquet

    path, rng, piece = os.path.join(folder, "reports.parquet"), np.random.default_rng(4), 2**20
    with parquet.ParquetWriter(path, pyarrow.schema([("z", pyarrow.float64())]), compression="none") as file:
        for first in range(0, users, piece):
            n = min(piece, users - first)
            z = np.clip(rng.normal(1, 1.5, n), -5, 5) + rng.laplace(0, 10, n)
            file.write_table(pyarrow.table({"z": z}), row_group_size=piece)
    code = (
        "import resource, sys, time; from quincunx import ldp; from quincunx.privacy import LaplaceMechanism\n"
        "model = ldp.GaussianModel(LaplaceMechanism(1.0, -5, 5), random_state=0); start = time.perf_counter()\n"
        "summary = ldp.Summary.from_parts(sys.argv[1], model); summed = time.perf_counter() - start\n"
        "fitted = model.fit(summary); spent = time.perf_counter() - start; used = resource.getrusage(0)\n"
        "print(f'{summary!r}, {fitted.posterior_mean_}, sd {fitted.posterior_sd_}')\n"
        "print(f'summed in {summed:.1f} s, fitted after {spent:.1f} s of the clock, of processors '\n"
        "      f'{used.ru_utime + used.ru_stime:.1f} s, at most {used.ru_maxrss / 2**20:.2f} GiB')"
    )
    try:
        print(f"{users} users, {os.path.getsize(path) / 1e6:.0f} MB", flush=True)
        subprocess.run([sys.executable, "-c", code, path], check=True)
    finally:
        os.remove(path)


def calibrated():
    start = time.process_time()
    model = ldp.GaussianModel(LaplaceMechanism(1.0, -5, 5), priors=PRIORS, n_chains=1, n_draws=1)
    found = ldp.calibration(model, n_repeats=30, n=5000, rng=0)
    spent = time.process_time() - start
    print(f"calibration of the Gaussian model{'':<25}{spent / 30 * 1e3:12.1f} ms per fit, passed: {found.passed}")


if __name__ == "__main__":
    if "--stream" in sys.argv:
        users, *folder = sys.argv[sys.argv.index("--stream") + 1 :]
        with tempfile.TemporaryDirectory(dir=folder[0] if folder else None) as place:
            streamed(int(float(users)), place)
        sys.exit()
    gaussian("--full" in sys.argv)
    histogram()
    linear("--full" in sys.argv)
    logistic()
    calibrated()
