"""Public calls of quincunx.privacy beside the best peers, in one process, interleaved: CPU time and ratios.

OpenDP, dp_accounting and diffprivlib (which needs scikit-learn below 1.8) are optional; without them their columns say
so. The column `os.urandom` is the machine's limit by another route: eight bytes of the system's own generator for each
draw, and in brackets what fraction of our time they take; above 1 our draw is cheaper than a word of it.
Then a spend of a ledger, and what the time of single calls tells of their data.
Run: python benches/bench_privacy.py
"""

import os
import sqlite3
import tempfile
import time
import warnings

import numpy as np

from experiments import privacy_time
from measuring import keep, print_build
from quincunx import privacy

ROUNDS = 5


def cpu(job, size):
    """Nanoseconds of CPU per unit of one run."""
    start = time.process_time()
    job()
    return (time.process_time() - start) / size * 1e9


def opendp_jobs():
    """Jobs of OpenDP by row, empty with a message if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError as reason:
        print(f"OpenDP is not compared: {reason} (pip install opendp)")
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dp.enable_features("contrib", "idealized-numerics")
    whole = dp.vector_domain(dp.atom_domain(T=int))
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    few, zeros, reals = 4000, [0] * 4000, [0.0] * 4000

    def release(mechanism, data):
        return lambda: mechanism(data), few

    def calibrate():
        def guarantee(scale):
            number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
            mechanism = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*number, scale=scale))
            return dp.c.make_fix_delta(mechanism, 1e-5)

        dp.binary_search_param(guarantee, d_in=1.0, d_out=(1.0, 1e-5))

    l1, l2 = dp.l1_distance(T=int), dp.l2_distance(T=float)
    return {
        "discrete Laplace, scale 1": release(dp.m.make_laplace(whole, l1, scale=1.0), zeros),
        "discrete Laplace, scale 1000": release(dp.m.make_laplace(whole, l1, scale=1000.0), zeros),
        "Laplace on a grid": release(dp.m.make_laplace(real, dp.l1_distance(T=float), scale=1.0), reals),
        "Gaussian on a grid": release(dp.m.make_gaussian(real, l2, scale=1.0), reals),
        "discrete Gaussian, sigma 10": release(dp.m.make_gaussian(whole, l2, scale=10.0), zeros),
        "calibration (1, 1e-5)": (calibrate, 1),
    }


def diffprivlib_jobs():
    """Jobs of diffprivlib by row, empty with a message if it cannot be imported."""
    try:
        from diffprivlib import mechanisms
    except ImportError as reason:
        print(f"diffprivlib is not compared: {reason} (pip install diffprivlib 'scikit-learn<1.8')")
        return {}

    def release(mechanism, few, value):
        return lambda: [mechanism.randomise(value) for _ in range(few)], few

    def calibrate():
        for _ in range(20):
            mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1)

    gaussian = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1)
    discrete = mechanisms.GaussianDiscrete(epsilon=0.5, delta=1e-5, sensitivity=1)
    return {
        "discrete Laplace, scale 1": release(mechanisms.Geometric(epsilon=1.0, sensitivity=1), 3000, 0),
        "discrete Laplace, scale 1000": release(mechanisms.Geometric(epsilon=0.001, sensitivity=1), 3000, 0),
        "Laplace on a grid": release(mechanisms.Laplace(epsilon=1.0, sensitivity=1), 2000, 0.0),
        "Gaussian on a grid": release(gaussian, 2000, 0.0),
        "discrete Gaussian, sigma 10": release(discrete, 100, 0),
        "randomized response": release(mechanisms.Binary(epsilon=1.0, value0="0", value1="1"), 2000, "0"),
        "calibration (1, 1e-5)": (calibrate, 20),
    }


def accountant_jobs():
    """Compositions of dp_accounting by row, on its grid of 1e-3, empty with a message if it is not installed."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as reason:
        print(f"dp_accounting is not compared: {reason} (pip install dp-accounting)")
        return {}
    grid = {"value_discretization_interval": 1e-3}
    gaussian = pld.from_gaussian_mechanism(privacy.gaussian_sigma(1.0, 1e-5), **grid)
    laplace = pld.from_laplace_mechanism(1.0, **grid)
    made = gaussian.compose(laplace), gaussian.self_compose(10).compose(laplace.self_compose(10))
    many = laplace.self_compose(100)
    return {
        "epsilon, Gaussian & Laplace": (lambda: made[0].get_epsilon_for_delta(1e-5), 1),
        "epsilon, 10 & 10 of them": (lambda: made[1].get_epsilon_for_delta(1e-5), 1),
        "the same, composed anew": (
            lambda: gaussian.self_compose(10).compose(laplace.self_compose(10)).get_epsilon_for_delta(1e-5),
            1,
        ),
        "epsilon, 100 Laplace": (lambda: many.get_epsilon_for_delta(1e-5), 1),
    }


def numpy_jobs(rng):
    """What a user writes with NumPy: fast, in floats, and without protection."""
    n, users = 500_000, 20_000
    values = rng.integers(0, 128, users)
    narrow = rng.integers(0, 16, 8 * users)

    def unary(values, k):
        rows = rng.random((len(values), k)) < 0.2689414213699951
        rows[np.arange(len(values)), values] = rng.random(len(values)) < 0.5
        return rows

    def geometric(p):
        return lambda: rng.geometric(p, n) - rng.geometric(p, n)

    return {
        "discrete Laplace, scale 1": (geometric(1 - np.exp(-1.0)), n),
        "discrete Laplace, scale 1000": (geometric(1 - np.exp(-0.001)), n),
        "Laplace on a grid": (lambda: rng.laplace(size=n), n),
        "Gaussian on a grid": (lambda: rng.normal(size=n), n),
        "randomized response": (lambda: np.zeros(n, dtype=bool) ^ (rng.random(n) < 0.27), n),
        "unary encoding, k = 16, per bit": (lambda: unary(narrow, 16), 16 * 8 * users),
        "unary encoding, k = 128, per bit": (lambda: unary(values, 128), 128 * users),
    }


def our_jobs(rng):
    """The same by quincunx."""
    n, users = 500_000, 20_000
    zeros, reals, bits = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.uint8)
    one, flat = privacy.GeometricMechanism(scale=1), privacy.GeometricMechanism(scale=1000)
    laplace = privacy.LaplaceMechanism(1.0, -1, 1)
    gaussian = privacy.GaussianMechanism(1.0, 1e-5, sensitivity=1)
    discrete = privacy.DiscreteGaussianMechanism(variance=100)
    response, generalized = privacy.RandomizedResponse(1.0), privacy.GeneralizedRandomizedResponse(1.0, 10)
    wide, narrow = privacy.UnaryEncoding(1.0, 128), privacy.UnaryEncoding(1.0, 16)
    values, fewer = rng.integers(0, 128, users), rng.integers(0, 16, 8 * users)
    first, second = gaussian.guarantee, laplace.guarantee
    made, many = (first & second, 10 * first & 10 * second), 100 * second
    return {
        "discrete Laplace, scale 1": (lambda: one.release(zeros), n),
        "discrete Laplace, scale 1000": (lambda: flat.release(zeros), n),
        "Laplace on a grid": (lambda: laplace.release(reals), n),
        "Gaussian on a grid": (lambda: gaussian.release(reals), n),
        "discrete Gaussian, sigma 10": (lambda: discrete.release(zeros), n),
        "randomized response": (lambda: response.release(bits), n),
        "generalized response, k = 10": (lambda: generalized.release(zeros), n),
        "unary encoding, k = 16, per bit": (lambda: narrow.release(fewer), 16 * 8 * users),
        "unary encoding, k = 128, per bit": (lambda: wide.release(values), 128 * users),
        "calibration (1, 1e-5)": (lambda: [privacy.gaussian_sigma(1.0, 1e-5) for _ in range(5000)], 5000),
        "calibration (1e-6, 1e-30)": (lambda: [privacy.gaussian_sigma(1e-6, 1e-30) for _ in range(5000)], 5000),
        "epsilon, Gaussian & Laplace": (lambda: [made[0].epsilon_at(1e-5) for _ in range(50)], 50),
        "epsilon, 10 & 10 of them": (lambda: [made[1].epsilon_at(1e-5) for _ in range(20)], 20),
        "the same, composed anew": (lambda: (10 * first & 10 * second).epsilon_at(1e-5), 1),
        "epsilon, 100 Laplace": (lambda: [many.epsilon_at(1e-5) for _ in range(200)], 200),
    }


def words(jobs):
    """A word of the system's generator for each draw of noise."""
    return {
        row: (lambda size=size: os.urandom(8 * size), size)
        for row, (_, size) in jobs.items()
        if not any(word in row for word in ("calibration", "per bit", "epsilon", "composed"))
    }


def ledger():
    """Wall-clock milliseconds of a spend in a file, beside one flushed write and SQLite's own commit of a row."""
    places = [tempfile.gettempdir(), *(["/dev/shm"] if os.path.isdir("/dev/shm") else [])]
    for place in places:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            budget = privacy.Budget.open(os.path.join(folder, "a.budget"), 1.0)
            part = privacy.PrivacyGuarantee(1e-6)
            plain = sqlite3.connect(os.path.join(folder, "b.db"), isolation_level=None)
            plain.execute("PRAGMA journal_mode=PERSIST")
            plain.execute("PRAGMA synchronous=FULL")
            plain.execute("CREATE TABLE t (x TEXT)")
            with open(os.path.join(folder, "c"), "wb") as file:

                def flush(file=file):
                    file.write(b"x" * 4096)
                    file.flush()
                    os.fsync(file.fileno())

                jobs = {
                    "spend": lambda budget=budget, part=part: budget.spend(part),
                    "SQLite": lambda plain=plain: plain.execute("INSERT INTO t VALUES ('1')"),
                    "flushed write": flush,
                }
                times = {name: np.inf for name in jobs}
                for _ in range(ROUNDS):
                    for name, job in jobs.items():
                        start = time.perf_counter()
                        for _ in range(40):
                            job()
                        times[name] = min(times[name], (time.perf_counter() - start) / 40 * 1e3)
            plain.close()
            print(f"a ledger in {place}: " + ", ".join(f"{name} {value:.3f} ms" for name, value in times.items()))


def main():
    print_build()
    rng = np.random.default_rng(1)
    jobs = our_jobs(rng)
    columns = {
        "quincunx": jobs,
        "os.urandom": words(jobs),
        "NumPy": numpy_jobs(rng),
        "OpenDP": opendp_jobs(),
        "dp_accounting": accountant_jobs(),
        "diffprivlib": diffprivlib_jobs(),
    }
    best = {}
    for _ in range(ROUNDS):
        for row in columns["quincunx"]:
            for name, jobs in columns.items():
                if row in jobs:
                    job, size = jobs[row]
                    key = (row, name)
                    best[key] = min(best.get(key, np.inf), cpu(job, size))
    print(f"{'ns of CPU per draw, bit or call':<34}" + "".join(f"{name:>22}" for name in columns))
    for row in columns["quincunx"]:
        ours = best[row, "quincunx"]
        cells = [f"{ours:>22.2f}"]
        for name in list(columns)[1:]:
            found = best.get((row, name))
            cells.append(f"{'-':>22}" if found is None else f"{found:>12.1f} ({found / ours:7.3g}x)")
        print(f"{row:<34}" + "".join(cells))
        peers = {name: best[row, name] / 1e9 for name in list(columns)[2:] if (row, name) in best}
        keep(f"{row}, each", ours / 1e9, peers)
    ledger()
    privacy_time.table([], pairs=500)


if __name__ == "__main__":
    main()
