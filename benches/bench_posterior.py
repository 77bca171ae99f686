"""Public calls of quincunx.posterior beside the best peers, in one process, interleaved: CPU time and ratios.

pgmpy and mbi (private-pgm) are optional; without one its column says so. Run: python benches/bench_posterior.py
"""

import time

import numpy as np

from measuring import keep, print_build
from quincunx import _core
from quincunx.posterior import BetaBernoulli, DiscreteBayesNet, ExponentialGamma, PackedRecords, fit_marginals
from quincunx.privacy import DiscreteGaussianMechanism, ExponentialMechanism

ROUNDS = 5
#: Categories of the columns of the census records (Adult), of which there are so many; deviation of noise on tables.
CENSUS, RECORDS, DEVIATION = [15, 9, 20, 16, 16, 7, 15, 6, 5, 2, 9, 6, 20, 42, 2], 48842, 100
ASIA = ["AT", "SL", "SB", "TE", "LE", "EX", "ED", "BD"]


def cpu(job):
    """Seconds of CPU of one run."""
    start = time.process_time()
    job()
    return time.process_time() - start


def numpy_tables(data):
    """Naive Bayes tables as a user writes them."""
    y = data[:, 0].astype(np.int64)
    return [np.bincount(2 * y + column, minlength=4) for column in data.T[1:]]


def numpy_walsh(values):
    """The transform in place on doubles, level by level."""
    values = values.astype(np.float64)
    half = 1
    while half < len(values):
        blocks = values.reshape(-1, 2, half)
        sums, differences = blocks[:, 0] + blocks[:, 1], blocks[:, 0] - blocks[:, 1]
        blocks[:, 0], blocks[:, 1] = sums, differences
        half *= 2
    return values


def numpy_grid(draws):
    """A posterior on 2^16 points, built and drawn from with floats."""
    u = np.log(3) * (2 * np.arange(2**16) + 1 - 2**16) / 2**16
    logs = -31 * np.logaddexp(0, -u) - 21 * np.logaddexp(0, u)
    sums = np.cumsum(np.exp(logs - logs.max()))
    return np.searchsorted(sums / sums[-1], np.random.default_rng(1).random(draws))


def numpy_ball(eigenvalues, means, radius, size):
    """Tilted rejection in batches, the tilt as the core finds it."""
    low, high = 0.0, 1e7
    for _ in range(100):
        nu = (low + high) / 2
        excess = (1 / (eigenvalues + nu) + (eigenvalues * means / (eigenvalues + nu)) ** 2).sum() - radius**2
        low, high = (nu, high) if excess > 0 else (low, nu)
    rng, kept = np.random.default_rng(2), 0
    centre, spread = eigenvalues * means / (eigenvalues + nu), 1 / np.sqrt(eigenvalues + nu)
    while kept < size:
        norms = ((centre + spread * rng.standard_normal((20_000, len(means)))) ** 2).sum(axis=1)
        chance = np.exp(-nu * (radius**2 - norms) / 2)
        kept += int(((norms <= radius**2) & (rng.random(20_000) < chance)).sum())


def pgmpy_job(data):
    """pgmpy's own estimate of the same network on a tenth of the rows, or None."""
    try:
        import pandas as pd
        from pgmpy.estimators import BayesianEstimator
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError as reason:
        print(f"pgmpy is not compared: {reason} (pip install pgmpy)")
        return None
    frame = pd.DataFrame(data[::10], columns=["y", *map(str, range(data.shape[1] - 1))])
    model = DiscreteBayesianNetwork([("y", name) for name in frame.columns[1:]])
    return lambda: BayesianEstimator(model, frame).get_parameters(prior_type="BDeu")


def noisy_tables():
    """Tables of a made network like the census records: all columns, and the pairs of a ring of them; and with noise.

    A column is a function of the one before with probability .6, else of a law of its own.
    """
    rng, ring = np.random.default_rng(1), len(CENSUS)
    records = np.empty((RECORDS, ring), dtype=np.int64)
    for place, size in enumerate(CENSUS):
        records[:, place] = rng.choice(size, RECORDS, p=rng.dirichlet(np.full(size, 0.5)))
        if place:
            image = rng.integers(0, size, CENSUS[place - 1])
            records[:, place] = np.where(rng.random(RECORDS) < 0.6, image[records[:, place - 1]], records[:, place])
    scopes = [(i,) for i in range(ring)] + [tuple(sorted((i, (i + 1) % ring))) for i in range(ring)]
    true = {}
    for scope in scopes:
        shape = [CENSUS[i] for i in scope]
        flat = np.ravel_multi_index(records[:, scope].T, shape)
        true[scope] = np.bincount(flat, minlength=np.prod(shape)).reshape(shape)
    mechanism = DiscreteGaussianMechanism(sensitivity=1.0, variance=float(DEVIATION**2))
    return true, {scope: mechanism.release(table, insecure_seed=i) for i, (scope, table) in enumerate(true.items())}


def mbi_job(noisy):
    """The law of the same tables by private-pgm, at its own defaults, and its expected tables; or None."""
    try:
        import mbi
    except ImportError as reason:
        print(f"private-pgm is not compared: {reason} (pip install mbi)")
        return None
    domain = mbi.Domain([str(i) for i in range(len(CENSUS))], CENSUS)
    measured = [
        mbi.LinearMeasurement(np.asarray(table, float).reshape(-1), tuple(map(str, scope)), stddev=float(DEVIATION))
        for scope, table in noisy.items()
    ]
    fit = mbi.estimation.MirrorDescent().estimate

    def job():
        model = fit(domain, measured, known_total=float(RECORDS))
        return {scope: np.asarray(model.project(tuple(map(str, scope))).datavector()) for scope in noisy}

    return job


def compare_laws():
    """Print, and keep, seconds of a fit of 30 noisy tables, and how near it comes to them and to the true ones."""
    true, noisy = noisy_tables()

    def ours():
        law = fit_marginals(noisy, domain=dict(enumerate(CENSUS)), n_records=RECORDS)
        return {scope: RECORDS * law.query(scope).reshape(-1) for scope in noisy}

    def squares(found, tables):
        """Sum of squares over the variance of the noise: half of this, of the noisy tables, is what both minimize."""
        return sum(((found[s] - np.asarray(t).reshape(-1)) ** 2).sum() for s, t in tables.items()) / DEVIATION**2

    first, second, found = {}, {}, {}
    jobs = {"ours": ours, "mbi": mbi_job(noisy)}
    for _ in range(2):
        for name, job in jobs.items():
            if job is not None:
                start = time.process_time()
                found[name] = job()
                second[name] = time.process_time() - start
                first.setdefault(name, second[name])
    print(f"\n{'law of 30 noisy tables, CPU seconds':<46}{'first':>12}{'second':>12}{'to noisy':>12}{'to true':>12}")
    for name, seconds in second.items():
        errors = squares(found[name], noisy), squares(found[name], true)
        print(f"{name:<46}{first[name]:>12.3g}{seconds:>12.3g}{errors[0]:>12.6g}{errors[1]:>12.6g}")
    if "mbi" in second:
        ratios = [seconds["mbi"] / seconds["ours"] for seconds in (first, second)]
        print(f"mbi over ours: {ratios[0]:.3g}x, {ratios[1]:.3g}x when it is compiled")
    cells = sum(table.size for table in true.values())
    print(f"squares over the variance of the noise, of {cells} cells; of the noisy tables to the true ones: ", end="")
    print(f"{squares({s: np.asarray(t).reshape(-1) for s, t in noisy.items()}, true):.6g}")
    for what, seconds in (("law of 30 noisy tables, first in a process", first), ("the same, the second", second)):
        keep(what, seconds.pop("ours"), seconds)


def rows():
    """Name, target in seconds, our job, a peer's name and job, and how many units one run does."""
    rng = np.random.default_rng(1)
    data = rng.integers(0, 2, (10**6, 17), dtype=np.uint8)
    nodes = {"y": 2} | dict.fromkeys(range(16), 2)
    bayes = DiscreteBayesNet([("y", i) for i in range(16)], nodes)
    packed = PackedRecords(data)
    asia = DiscreteBayesNet(ASIA, {node: 2 for edge in ASIA for node in edge})
    records = rng.integers(0, 2, (10**6, 8), dtype=np.uint8)
    walsh = rng.integers(-1000, 1000, 2**20)
    beta, gamma = BetaBernoulli(1, 1, trim=0.25), ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1)
    cube, zeros = _core.CubeNoise(1, 64, 33), np.zeros(33 * 4000, dtype=np.int64)
    eigenvalues, means = np.linspace(250.0, 1100.0, 14), np.full(14, 2 / np.sqrt(14))
    _, proposals = _core.ball_normal(eigenvalues, means, 1.0, 4000)
    print(f"ball-truncated normal, d = 14: acceptance {4000 / proposals:.4f}")
    easy = np.full(14, 0.1 / np.sqrt(14))
    posterior = beta.posterior([1] * 30 + [0] * 20)
    scores = rng.normal(size=(200, 1000))
    exponential = ExponentialMechanism(1.0, 1.0)
    return [
        (
            "naive Bayes tables, 10^6 x 17 bytes",
            30e-3,
            lambda: bayes.count_tables(data),
            "NumPy",
            lambda: numpy_tables(data),
            1,
        ),
        ("the same from packed bits", 6e-3, lambda: bayes.count_tables(packed), "NumPy", lambda: numpy_tables(data), 1),
        (
            "the same, pgmpy on a tenth of the rows",
            30e-3,
            lambda: bayes.count_tables(data),
            "pgmpy",
            pgmpy_job(data),
            1,
        ),
        (
            "Walsh transform of 2^20 integers",
            3e-3,
            lambda: _core.walsh_transform(walsh),
            "NumPy",
            lambda: numpy_walsh(walsh),
            1,
        ),
        (
            "account of a Beta posterior, n = 1000",
            50e-6,
            lambda: [beta._epsilon(1000) for _ in range(100)],
            None,
            None,
            100,
        ),
        (
            "account of a Gamma posterior, n = 1000",
            50e-6,
            lambda: [gamma._epsilon(1000) for _ in range(100)],
            None,
            None,
            100,
        ),
        ("L-infinity noise, D = 33, per coordinate", 200e-9, lambda: cube.add(zeros), None, None, len(zeros)),
        (
            "ball-truncated normal, 2 W away, per draw",
            2e-6,
            lambda: _core.ball_normal(eigenvalues, means, 1.0, 4000),
            "NumPy",
            lambda: numpy_ball(eigenvalues, means, 1.0, 4000),
            4000,
        ),
        (
            "the same, acceptance near 1",
            None,
            lambda: _core.ball_normal(eigenvalues, easy, 1.0, 20_000),
            "NumPy",
            lambda: numpy_ball(eigenvalues, easy, 1.0, 20_000),
            20_000,
        ),
        ("private fit of asia, 10^6 rows", 50e-3, lambda: asia.fit_private(records, 1.0), None, None, 1),
        ("grid posterior, 1 draw", None, lambda: posterior.sample(1), "NumPy", lambda: numpy_grid(1), 1),
        (
            "grid posterior, per draw of 10^5",
            None,
            lambda: posterior.sample(10**5),
            "NumPy",
            lambda: numpy_grid(10**5),
            10**5,
        ),
        ("exponential mechanism, per score", None, lambda: exponential.release(scores), None, None, scores.size),
    ]


def main():
    print_build()
    table = rows()
    best = {}
    for _ in range(ROUNDS):
        for name, _, ours, _, peer, size in table:
            best[name, 0] = min(best.get((name, 0), np.inf), cpu(ours) / size)
            if peer is not None:
                best[name, 1] = min(best.get((name, 1), np.inf), cpu(peer) / size)
    print(f"{'microseconds of CPU, best of ' + str(ROUNDS):<46}{'ours':>12}{'target':>12}{'peer':>24}")
    for name, target, _, peer, job, _ in table:
        ours = best[name, 0]
        said = "-" if target is None else f"{target * 1e6:.4g}"
        other = "-" if job is None else f"{peer} {best[name, 1] * 1e6:.4g} ({best[name, 1] / ours:.3g}x)"
        print(f"{name:<46}{ours * 1e6:>12.4g}{said:>12}{other:>24}")
        keep(name, ours, {} if job is None else {peer: best[name, 1]})
    compare_laws()


if __name__ == "__main__":
    main()
