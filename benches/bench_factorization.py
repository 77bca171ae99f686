"""Private Poisson factorization: sweeps, iterations, effective samples, memory, beside the papers' sampler and NumPy.

Run with `python benches/bench_factorization.py --quick` (200 x 200, seconds) or `--full` (1000 x 1000 with 50
components, half an hour, most of it for effective samples). `--only TEXT` picks the parts whose name contains it:
sweeps, overdispersed, threads, variational, stochastic, samples, memory, layers, shards, peers. Peers are optional:
`pip install poismf scikit-learn gensim tensorly`; effective samples want `pip install arviz-stats`, shards want
`distributed`.

Matrices are drawn from the model with gamma factors, eps / N = 1 where nothing else is said. Times are processor time
of the process, the median of several runs from the true factors on, on one thread; two threads are compared by wall
time. Published figures are constants, not measured here: the ICML authors' code on comparable hardware, and the
variational paper's own.
"""

import importlib.util
import itertools
import json
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from measuring import arguments, forget_peak, in_a_fresh_process, keep, print_build, status, verdict
from quincunx import _core
from quincunx.distributions import TwoPiecePoisson

METHODS = ("collapsed", "event", "split", "bessel", "auto")

#: Mean count; gamma shape of the factors; targets of "auto" and of an ascent in ms; ms of the ICML authors' code.
SETTINGS = [
    (0.02, 0.025, 2.5, 12.0, 215.0),
    (0.5, 0.1, 15.0, 13.0, 396.0),
    (3.0, 0.3, 40.0, 15.0, 877.0),
]
#: Mean count and gamma shape: between the settings lie the means where a Poisson sweep has least to do for the cells.
OVERDISPERSED = [(0.02, 0.025), (0.1, 0.04), (0.2, 0.06), (0.5, 0.1), (3.0, 0.3)]
PUBLISHED_ITERATION = 2800.0  # ms per iteration of the variational paper's program, 1000 x 1000, K = 50


# Data and jobs.


class Job:
    """A release of a matrix, its true factors, and chains and fits of it that begin there."""

    def __init__(
        self,
        size: int,
        components: int,
        mean: float,
        shape: float,
        epsilon: float = 1.0,
        seed: int = 1,
        dispersion: float = 0.0,
    ):
        rng = np.random.default_rng(seed)
        self.size, self.components = size, components
        self.alpha = math.exp(-epsilon)
        rate = shape * math.sqrt(components / mean)
        theta, phi = (rng.gamma(shape, 1 / rate, (size, components)) for _ in range(2))
        # The drawn matrix has the mean it is named by.
        theta *= mean * size * size / (theta.sum(axis=0) @ phi.sum(axis=0))
        self.factors = [theta, phi]
        rates = theta @ phi.T
        self.counts = rng.poisson(rates * rng.gamma(1 / dispersion, dispersion, rates.shape) if dispersion else rates)
        noise = rng.geometric(1 - self.alpha, (2, size, size))
        self.released = self.counts + noise[0] - noise[1]
        self.prior = (np.array([shape]), np.array([rate]))

    def data(self) -> Any:
        return _core.ReleasedCounts(self.released.ravel(), self.size, self.size, np.array([self.alpha]))

    def chain(self, method: str, data: Any = None) -> Any:
        where = ("cp", [self.size, self.size], self.components, [self.prior, self.prior])
        chain = _core.GibbsChain(data or self.data(), *where, method, (3, 4))
        chain.set_factors(self.factors)
        return chain

    def noise(self, factors: list[Any]) -> list[Any]:
        """Draw both noises of each cell given the factors: their difference, then the smaller, which is geometric."""
        rng = np.random.default_rng(6)
        law = TwoPiecePoisson(released=self.released, rate=factors[0] @ factors[1].T, alpha=self.alpha)
        difference = self.released - law.sample(rng=rng)
        least = rng.geometric(1 - self.alpha**2, difference.shape) - 1
        return [(least + np.maximum(part, 0)).ravel() for part in (difference, -difference)]

    def ascent(self, method: str) -> Any:
        where = ("cp", [self.size, self.size], self.components, [self.prior, self.prior])
        return _core.CoordinateAscent(self.data(), *where, method, (3, 4))


def median_time(call: Callable[[], object], least: int, seconds: float, clock: Callable[[], float]) -> float:
    """Return the median time of a call in seconds: at least `least` calls, and so many that they take `seconds`."""
    call()
    times: list[float] = []
    while len(times) < least or (sum(times) < seconds and len(times) < 200):
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times)


def sweep_time(
    job: Job, method: str, threads: int = 1, clock: Callable[[], float] = time.process_time, overdispersed: bool = False
) -> float:
    chain = job.chain(method)
    if overdispersed:
        chain.set_dispersion(("table", np.ones(1)), (0.0, 3.0))
    chain.run(3, 0, threads)
    return median_time(lambda: chain.run(1, 0, threads), 5, 0.5, clock)


def ascent_time(ascent: Any, iterations: int) -> float:
    return 1e3 * median_time(lambda: ascent.run(iterations, 0.0, 1), 5, 0.5, time.process_time)


class Limits:
    """What this machine can do on one thread, measured when asked: products out of registers, bytes out of memory."""

    def __init__(self) -> None:
        square, product = np.ones((192, 192)), np.empty((192, 192))
        self.multiply_adds = 192**3 / min(timed(lambda: np.dot(square, square, out=product)) for _ in range(300))
        total, term = np.zeros(1 << 23), np.ones(1 << 23)
        self.bytes = 24 * len(total) / min(timed(lambda: np.add(total, term, out=total)) for _ in range(10))

    def share(self, taken: float, multiply_adds: float, moved: float) -> str:
        """Return the shares of a time in ms that so many products of doubles and so many bytes need at least."""
        registers, memory = multiply_adds / self.multiply_adds, moved / self.bytes
        return f"of the limit of registers {1e3 * registers / taken:.0%}, of memory {1e3 * memory / taken:.0%}"


def timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


# Parts.


def sweeps(size: int, components: int, full: bool) -> None:
    print(f"ms per sweep, {size} x {size}, K = {components}, one thread")
    heads = "".join(f"{method:>10}" for method in METHODS)
    print(f"{'mean':>6} {'y > 0':>6} {heads}  {'bessel/auto':>11}  {'published':>9}")
    limits = Limits()
    for mean, shape, target, _, published in SETTINGS:
        job = Job(size, components, mean, shape)
        times = {method: 1e3 * sweep_time(job, method) for method in METHODS}
        line = f"{mean:6g} {(job.counts > 0).mean():6.1%} " + "".join(f"{times[m]:10.2f}" for m in METHODS)
        line += f"  {times['bessel'] / times['auto']:10.1f}x"
        if full:
            line += f"  {published:6.0f} ms  {verdict(times['auto'], target)}"
        # Rates of all cells if they are drawn one by one, partial sums where there is a count; releases and factors.
        cells = np.count_nonzero(job.counts) + (size * size if times["collapsed"] < 1.5 * times["auto"] else 0)
        line += f"  {limits.share(times['auto'], components * cells, size * size + 48 * size * components)}"
        print(line, flush=True)
    print()


def overdispersed(size: int, components: int, full: bool) -> None:
    """Sweeps of both likelihoods over the same release, whose counts have a dispersion of 1."""
    size, components = 400, 50
    print(f"ms per sweep of overdispersed counts, {size} x {size}, K = {components}, one thread")
    heads = f"{'auto':>9} {'collapsed':>9} {'neg. binomial':>13} {'over auto':>9} {'over collapsed':>14}"
    print(f"{'mean':>6} {'y > 0':>6} {heads}")
    for mean, shape in OVERDISPERSED:
        job = Job(size, components, mean, shape, dispersion=1.0)
        auto, collapsed = (1e3 * sweep_time(job, method) for method in ("auto", "collapsed"))
        own = 1e3 * sweep_time(job, "collapsed", overdispersed=True)
        line = f"{mean:6g} {(job.counts > 0).mean():6.1%} {auto:9.2f} {collapsed:9.2f} {own:13.2f}"
        line += f" {own / auto:8.2f}x {own / collapsed:13.2f}x"
        print(line + (f"  {verdict(own / collapsed, 1.5)}" if full else ""), flush=True)
    print()


def threads(size: int, components: int, full: bool) -> None:
    print(f"wall ms per sweep of auto on one and two threads, {size} x {size} (load {os.getloadavg()[0]:.1f})")
    for mean, shape, *_ in SETTINGS:
        job = Job(size, components, mean, shape)
        one, two = (1e3 * sweep_time(job, "auto", n, time.perf_counter) for n in (1, 2))
        print(f"mean {mean:<5g} {one:8.2f} {two:8.2f}  {one / two:.2f}x", flush=True)
    print()


def variational(size: int, components: int, full: bool) -> None:
    print(f"ms per iteration of coordinate ascent, {size} x {size}, K = {components}, one thread")
    limits = Limits()
    for method in ("collapsed", "bessel-mean", "bessel-mode", "published"):
        for mean, shape, _, target, _ in SETTINGS[1:2] if method != "collapsed" else SETTINGS:
            job = Job(size, components, mean, shape)
            ascent = job.ascent(method)
            ascent.run(2, 0.0, 1)
            # A run ends with one more pass, for its last bound: what an iteration takes is what four more add.
            one, five = (ascent_time(ascent, iterations) for iterations in (1, 5))
            taken = (five - one) / 4
            line = f"{method:12} mean {mean:<5g} {taken:8.1f}, a run of one {one:6.1f}"
            if full and method == "collapsed":
                line += f"  {verdict(taken, target)}  (published: {PUBLISHED_ITERATION:.0f} ms)"
            if method == "collapsed":
                # Rates and weighted sums, releases, shapes, rates and expectations, for each of two factors.
                line += f"  {limits.share(taken, 4 * components * size**2, 2 * size * (size + 40 * components))}"
            print(line, flush=True)
    print()


def stochastic(size: int, components: int, full: bool) -> None:
    """Seconds until rows that were not seen are as likely as they are by coordinate ascent, to .01 nats a cell."""
    from quincunx.factorization import PoissonFactorization

    rows, cols = 20 * size, size // 2
    rng = np.random.default_rng(1)
    topics = rng.gamma(0.3, 1.0, (components, cols))

    def drawn(number: int) -> Any:
        counts = rng.poisson(rng.gamma(0.3, 10 / components, (number, components)) @ topics)
        noise = rng.geometric(1 - math.exp(-1), (2, number, cols))
        return counts + noise[0] - noise[1]

    released, new = drawn(rows), drawn(size)
    print(
        f"processor s until new rows have the score of coordinate ascent, {rows} x {cols}, K = {components}, one thread"
    )

    warnings.simplefilter("ignore")  # that an ascent which is looked at on its way is not at its end

    goal = None
    for inference, numbers in (("vi", (200,)), ("svi", (5, 10, 20, 40))):
        for number in numbers:
            how = {"inference": inference, "max_iter": number, "tol": 0.0, "prior_shape": 0.3, "n_chains": 1}
            model = PoissonFactorization(components, threads=1, random_state=1, **how)
            taken = timed(partial(model.fit, released, alpha=math.exp(-1)))
            score = model.score(new, alpha=math.exp(-1))
            print(f"{inference:4} {number:4} iterations {taken:8.1f} s, {score:.4f} nats a cell", flush=True)
            goal = score if goal is None else goal
            if inference == "svi" and score > goal - 0.01:
                break
    print()


def samples(size: int, components: int, full: bool) -> None:
    """Effective samples of the total rate per second of processor time.

    Both methods have as many sweeps, from where a chain of "auto" has come that began at the true factors, with noise
    drawn given these factors: a short chain looks as if it forgot quickly, one that still has a way to go as if slowly.
    """
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        print("effective samples: arviz_stats is not installed: pip install arviz-stats\n")
        return
    print(f"effective samples of the total rate per second, {size} x {size}, K = {components}, one thread")
    for epsilon in (1.0, 0.3):
        for mean, shape, wanted in ((0.5, 0.1, 3.0), (0.02, 0.025, 15.0)):
            job = Job(size, components, mean, shape, epsilon)
            length = {0.5: 1500, 0.02: 3000}[mean] if full else 1500
            first = job.chain("auto")
            first.run(length, 0, 1)
            found = {}
            for method in ("auto", "bessel"):
                chain = job.chain(method)
                chain.set_factors(first.factors())
                if method == "bessel":
                    chain.set_noise(job.noise(first.factors()))
                start = time.process_time()
                chain.run(length, 0, 1)
                taken = time.process_time() - start
                rates = np.asarray(chain.take()["total_rate"])
                effective = float(array_stats.ess(rates[None, :]))
                found[method] = effective / taken
                print(
                    f"  eps/N {epsilon:<4g} mean {mean:<5g} {method:7} {length} sweeps in {taken:6.1f} s, "
                    f"{length / effective:6.1f} sweeps per sample, {found[method]:8.3g} per second; "
                    f"rate {rates.mean() / (mean * size * size):.3f} of the truth",
                    flush=True,
                )
            ratio = found["auto"] / found["bessel"]
            print(f"  auto over bessel: {ratio:.1f}x  {verdict(ratio, wanted, False) if full else ''}", flush=True)
    print()


def memory(size: int, components: int, full: bool) -> None:
    print(f"bytes of state per cell, and peak above the released array in a fresh process, {size} x {size}")
    cells = size * size
    for method in ("collapsed", "event", "split", "bessel", "auto", "vi collapsed"):
        found = in_a_fresh_process(__file__, {"method": method, "size": size, "components": components})
        if "failed" in found:
            print(f"{method:14} failed: {found['failed']}", flush=True)
            continue
        print(f"{method:14} table {found['state'] / cells:5.2f} B, peak {found['peak'] / cells:7.2f} B per cell")
    print()


def child(task: dict[str, Any]) -> dict[str, Any]:
    job = Job(task["size"], task["components"], 0.5, 0.1)
    values = job.released.ravel()
    del job.counts
    small = Job(8, task["components"], 0.5, 0.1)
    # The pool and the code are there before the count begins.
    (small.ascent("collapsed") if "vi" in task["method"] else small.chain(task["method"])).run(1, 0, 1)
    before = forget_peak()
    data = _core.ReleasedCounts(values, job.size, job.size, np.array([job.alpha]))
    if "vi" in task["method"]:
        ascent = job.ascent("collapsed")
        ascent.run(3, 0.0, 1)
    else:
        chain = job.chain(task["method"], data)
        chain.run(5, 0, 1)
    return {"state": data.nbytes, "peak": status("VmHWM") - before}


# Peers.


def numpy_sweep(job: Job, rng: np.random.Generator) -> list[Any]:
    """One collapsed sweep in NumPy: counts by Poisson draws or inversion, events split by sorted uniforms, gammas."""
    theta, phi = job.factors
    size, components = job.size, job.components
    rate = theta @ phi.T
    counts = rng.poisson(job.alpha * rate)
    row, column = np.nonzero(job.released > 0)
    released, at = job.released[row, column], rate[row, column]
    # Weights rate^y / y! alpha^|o - y| by their ratios, all cells at once, until nothing is left to add.
    top = int(max(released.max(initial=0), at.max(initial=0)) + 12 * math.sqrt(at.max(initial=1)) + 20)
    weight = np.ones(len(released))
    total, steps = weight.copy(), [weight.copy()]
    for y in range(1, top + 1):
        weight = weight * at / y * np.where(y <= released, 1 / job.alpha, job.alpha)
        total += weight
        steps.append(weight)
        if y > released.max() and weight.max() < 1e-16 * total.min():
            break
    height = rng.random(len(released)) * total
    drawn = np.zeros(len(released), dtype=np.int64)
    for y, weight in enumerate(steps[:-1]):
        height -= weight
        drawn[height > 0] = y + 1
    counts[row, column] = drawn
    by_row, by_column = np.zeros((size, components)), np.zeros((size, components))
    for first in range(0, size, 100):  # all parts of some rows at a time
        d, v = np.nonzero(counts[first : first + 100])
        parts = theta[first + d] * phi[v]
        often = counts[first + d, v]
        shares = np.repeat(np.cumsum(parts, axis=1), often, axis=0)
        k = (shares < rng.random(len(shares))[:, None] * shares[:, -1:]).sum(axis=1)
        np.add.at(by_row, (np.repeat(first + d, often), k), 1)
        np.add.at(by_column, (np.repeat(v, often), k), 1)
    shape, inverse = job.prior
    theta = rng.gamma(shape + by_row, 1 / (inverse + phi.sum(axis=0)))
    return [theta, rng.gamma(shape + by_column, 1 / (inverse + theta.sum(axis=0)))]


def peers(size: int, components: int, full: bool) -> None:
    print(f"peers, {size} x {size}, K = {components}, one thread, mean 0.5")
    job = Job(size, components, 0.5, 0.1)
    ours = sweep_time(job, "auto")
    rng = np.random.default_rng(0)
    theirs = median_time(lambda: numpy_sweep(job, rng), 3, 0.0, time.process_time)
    each, auto = 1e3 * theirs, 1e3 * ours
    print(f"NumPy, one private sweep      {each:9.1f} ms, quincunx auto {auto:7.1f} ms: {each / auto:.0f}x")
    keep(f"a private Gibbs sweep, {size} x {size}, K = {components}", ours, {"NumPy": theirs})
    for peer, (module, compare) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{peer} is skipped: pip install {peer}")
        else:
            compare(job)
    print()


def each_iteration(run: Callable[[int], object]) -> float:
    """Return the processor time in seconds that each of ten more iterations takes a run that may have any number."""
    few, more = (min(timed(partial(run, number)) for _ in range(3)) for number in (2, 12))
    return (more - few) / 10


def told(peer: str, theirs: float, what: str, ours: float) -> None:
    print(
        f"{peer:29} {1e3 * theirs:9.1f} ms an iteration (not private), quincunx {what} {1e3 * ours:7.1f} ms: "
        f"{theirs / ours:.1f}x"
    )
    keep(f"an iteration, {what} (theirs: not private)", ours, {peer: theirs})


def with_poismf(job: Job) -> None:
    from poismf import PoisMF
    from scipy.sparse import coo_array

    ours = each_iteration(lambda number: job.ascent("collapsed").run(number, 0.0, 1))
    sparse = coo_array(job.counts.astype(float))
    for method in ("pg", "cg", "tncg"):
        how = {"method": method, "maxupd": 1, "nthreads": 1, "early_stop": False}
        told(
            f"poismf {method}",
            each_iteration(lambda number, how=how: PoisMF(k=job.components, niter=number, **how).fit(sparse)),
            "collapsed",
            ours,
        )


def topics_ascent(job: Job, iterations: int) -> None:
    """Run an ascent of Dirichlet topics."""
    where = ("cp", [job.size, job.size], job.components, [job.prior, (np.full(1, 0.1), np.empty(0))])
    _core.CoordinateAscent(job.data(), *where, "collapsed", (3, 4)).run(iterations, 0.0, 1)


def with_scikit_learn(job: Job) -> None:
    from scipy.sparse import csr_array
    from sklearn.decomposition import LatentDirichletAllocation

    counts = csr_array(job.counts)
    told(
        "scikit-learn, LDA",
        each_iteration(lambda number: LatentDirichletAllocation(job.components, max_iter=number, n_jobs=1).fit(counts)),
        "topics",
        each_iteration(lambda number: topics_ascent(job, number)),
    )


def with_gensim(job: Job) -> None:
    from gensim.models import LdaModel

    documents = [[(int(v), int(row[v])) for v in row.nonzero()[0]] for row in job.counts]
    how = {
        "num_topics": job.components,
        "chunksize": job.size,
        "update_every": 0,
        "eval_every": None,
        "random_state": 1,
    }
    told(
        "gensim, LDA",
        each_iteration(lambda number: LdaModel(documents, passes=number, **how)),
        "topics",
        each_iteration(lambda number: topics_ascent(job, number)),
    )


def with_tensorly(job: Job) -> None:
    """Compare ascents of a tensor with multiplicative updates, of squared errors."""
    from tensorly.decomposition import non_negative_parafac

    extents, counts = [job.size, job.size // 10, 10], job.counts.astype(float)
    data = _core.ReleasedCounts(job.released.ravel(), job.size * (job.size // 10), 10, np.array([job.alpha]))
    where = ("cp", extents, job.components, [job.prior] * 3)
    how = {"rank": job.components, "tol": 0, "init": "random", "random_state": 1}
    told(
        "tensorly, non_negative_parafac",
        each_iteration(lambda number: non_negative_parafac(counts.reshape(extents), n_iter_max=number, **how)),
        "tensor",
        each_iteration(lambda number: _core.CoordinateAscent(data, *where, "collapsed", (3, 4)).run(number, 0.0, 1)),
    )


#: Programs of others, the modules that they are, and what is compared with them.
PEERS: dict[str, tuple[str, Callable[[Job], None]]] = {
    "poismf": ("poismf", with_poismf),
    "scikit-learn": ("sklearn", with_scikit_learn),
    "gensim": ("gensim", with_gensim),
    "tensorly": ("tensorly", with_tensorly),
}


def topics_sweep_time(job: Job, model: str, above: tuple[int, ...] = (), learn: bool = False) -> float:
    """Return the time of a sweep in seconds after thirty of Dirichlet topics, with some numbers of components above."""
    known, phi = (np.ones(1), np.ones(1)), (np.full(1, 0.1), np.empty(0))
    priors = [known, phi, *[known, phi] * len(above), known, known] if above else [job.prior, phi]
    extents = [job.size, job.size, *above]
    chain = _core.GibbsChain(job.data(), model, extents, job.components, priors, "auto", (3, 4))
    if learn:
        chain.learn_priors("factor")
    chain.run(30, 0, 1)
    return median_time(lambda: chain.run(1, 0, 1), 5, 0.5, time.process_time)


def layers(size: int, components: int, full: bool) -> None:
    """Sweeps of topics whose priors are known, or learnt, and with layers above."""
    print(f"ms per sweep of topics, {size} x {size}, K = {components}, one thread")
    print(f"{'mean':>6} {'gamma':>9} {'topics':>9} {'learnt':>9} {'two layers':>10} {'three':>9}")
    few = max(2, components // 5)
    for mean, shape, *_ in SETTINGS:
        job = Job(size, components, mean, shape)
        times = [sweep_time(job, "auto"), topics_sweep_time(job, "cp"), topics_sweep_time(job, "cp", learn=True)]
        times += [topics_sweep_time(job, "layers", above) for above in ((few,), (few, 2))]
        print(f"{mean:6g} " + " ".join(f"{1e3 * x:9.2f}" for x in times), flush=True)
    print()


def shards(size: int, components: int, full: bool) -> None:
    """Sweeps of a tall matrix here, in halves side by side on two workers of Dask, and as two shards there.

    The halves know nothing of each other: what they take beyond one process is the machine's, what shards take beyond
    them is the rounds'. Clocks are read after each sweep and medians taken, three kinds in turns, so that a machine
    that is busy for a while spoils neither. States that are remembered are not among them: they cost half a percent.
    """
    if not importlib.util.find_spec("distributed"):
        print("shards: distributed is not installed\n")
        return
    import distributed

    tables = [(100_000, 1000, 8, 3), (100_000, 10_000, 4, 1)] if full else [(20 * size, size, 20, 3)]
    print(f"ms per sweep, K = {components}, medians: of processors, in all and the client's; wall")
    columns = ("one", "halves", "shards", "client", "wall one", "halves", "shards")
    print("           table   mean " + " ".join(f"{name:>9}" for name in columns))
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())
        for (rows, cols, sweeps, rounds), (mean, shape, *_) in itertools.product(tables, SETTINGS[: 2 if full else 3]):
            released = tall(rows, cols, components, mean, shape)
            middle = rows // 256 * 128
            parts = [
                client.scatter(part, workers=[address], hash=False)
                for part, address in zip((released[:middle], released[middle:]), client.nthreads(), strict=True)
            ]
            one, halves, together = [], [], []
            for _ in range(rounds):
                one += swept(released, components, sweeps)
                futures = [client.submit(swept, part, components, sweeps, pure=False) for part in parts]
                halves += zip(*(future.result() for future in futures), strict=True)
                together += swept(released, components, sweeps, client, workers)
            alone, apart = np.median(one, axis=0), np.median(halves, axis=0)
            own, *others, wall = np.median(together, axis=0)
            taken, beside = own + sum(others), apart[:, 0].sum()
            shown = (alone[0], beside, taken, own, alone[1], apart[:, 1].max(), wall)
            print(
                f"{f'{rows} x {cols}':>16} {mean:6g} "
                + " ".join(f"{1e3 * x:9.1f}" for x in shown)
                + "   processor time of shards "
                f"{taken / alone[0]:.2f} of one process, {taken / beside:.2f} of halves",
                flush=True,
            )
            del released, parts
    print()


def tall(rows: int, cols: int, components: int, mean: float, shape: float) -> Any:
    """Return a release of geometric noise at epsilon 1 in the smallest integers that usually do, made row by row."""
    rng = np.random.default_rng(1)
    below = rng.gamma(shape, 1.0, (components, cols)) * (mean / shape**2 / components)
    released = np.empty((rows, cols), np.int16 if mean > 0.1 else np.int8)
    for block in np.array_split(released, max(1, released.size >> 22)):
        counts = rng.poisson(rng.gamma(shape, 1.0, (len(block), components)) @ below)
        noise = rng.geometric(1 - math.exp(-1), (2, *block.shape))
        bounds = np.iinfo(block.dtype)
        np.copyto(block, np.clip(counts + noise[0] - noise[1], bounds.min, bounds.max), casting="unsafe")
    return released


def swept(released: Any, components: int, sweeps: int, client: Any = None, workers: Sequence[int] = ()) -> Any:
    """Take sweeps of a release by public calls; return the seconds of each but the first.

    Of each there are those of this process, of each of the workers, of which the client has the numbers, and of the
    clock on the wall.
    """
    from quincunx.factorization import PoissonFactorization

    clocks = [time.CLOCK_PROCESS_CPUTIME_ID, *(~worker << 3 | 2 for worker in workers), time.CLOCK_MONOTONIC]
    read: list[list[float]] = []

    def look(*_: Any) -> None:
        read.append([time.clock_gettime(clock) for clock in clocks])

    heard: Any = {"callback": look} if client is None else {"progress": look}
    how: dict[str, Any] = {"n_chains": 1, "n_warmup": sweeps, "n_draws": 1, "thin": 1, "threads": 1} | heard
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PoissonFactorization(components, random_state=1, **how).fit(released, alpha=math.exp(-1), client=client)
    return list(np.diff(read[:sweeps], axis=0))  # but the one that is kept, whose log-likelihood is looked at


PARTS: dict[str, Callable[[int, int, bool], None]] = {
    "sweeps": sweeps,
    "overdispersed": overdispersed,
    "threads": threads,
    "variational": variational,
    "stochastic": stochastic,
    "samples": samples,
    "memory": memory,
    "layers": layers,
    "shards": shards,
    "peers": peers,
}


def main() -> None:
    quick, full = "200 x 200 with 10 components", "every target: 1000 x 1000 with 50 components"
    options = arguments(__doc__, quick=quick, full=full, only="parts").parse_args()
    if options.child:
        print(json.dumps(child(json.loads(options.child))))
        return
    print_build()
    size, components = (1000, 50) if options.full else (200, 10)
    for name, part in PARTS.items():
        if options.only in name:
            part(size, components, options.full)


if __name__ == "__main__":
    main()
