"""What a user runs on a new machine: ``quincunx selftest`` asks within a minute whether its numbers can be trusted.

Known answers, a wrong residue that a spare prime must refuse, the goodness of fit of each sampler, noise on its grid
and never repeated, and the same bits from every vector level and number of threads. Noise that protects is drawn from
the operating system, so a fit is judged anew in each run: each of them raises a false alarm once in 1e9 runs.
"""

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _child, _core
from quincunx._types import Floats

if TYPE_CHECKING:
    from quincunx.privacy import DiscreteGaussianMechanism, GaussianMechanism, GeometricMechanism, LaplaceMechanism

#: The chance that a right machine fails one check of a sampler.
FALSE_ALARM = 1e-9
LEVELS = ("baseline", "avx2", "avx512")
# Draws of each sampler of numbers: more see smaller faults, and take longer; all together take less than a minute.
SIZE = 200_000

#: The names of checks, and what makes each: it returns what was seen, or raises `Wrong`.
Checks: TypeAlias = Iterator[tuple[str, Callable[[], str]]]


class Finding(NamedTuple):
    """What one check found.

    Attributes
    ----------
    group : str
        Which kind of check.
    name : str
        What was checked.
    passed : bool or None
        Whether it is as it must be; `None` if it was not made, for want of an optional package.
    detail : str
        What was seen, where something was measured or is wrong.
    seconds : float
        How long it took.
    """

    group: str
    name: str
    passed: bool | None
    detail: str
    seconds: float


class Wrong(Exception):
    """A check did not see what it must."""


def _equal(found: object, expected: object) -> str:
    if found != expected:
        raise Wrong(f"must be {expected}, got {found}")
    return ""


def _answers(find: Callable[[], object], expected: object) -> str:
    return _equal(find(), expected)


def _nears(find: Callable[[], float], expected: float, tolerance: float) -> str:
    found = find()
    if not abs(found - expected) <= tolerance * abs(expected):
        raise Wrong(f"must be {expected} within {tolerance:g}, got {found}")
    return ""


# Known answers: published values, or sums over all cases by hand.


def _known_answers() -> Checks:
    from quincunx import counting, distributions, entropy, graphs, lattices, leakage, posterior, privacy, spectra

    count, polynomial = counting.count_independent_sets, counting.independence_polynomial
    octagons = 106604291172842164003551272224925014432256214641773230401
    squares = partial(entropy.entropy_bounds, "square", digits=16)
    noisy = leakage.Channel([[0.9, 0.1], [0.1, 0.9]])
    capacity = 1 + 0.9 * math.log2(0.9) + 0.1 * math.log2(0.1)
    inserted = lattices.clique_insert(graphs.complete(4))
    trimmed = posterior.BetaBernoulli(1, 1, trim=0.25)
    exact: list[tuple[str, Callable[[], object], object]] = [
        ("square lattice 8 x 8", lambda: count(lattices.square(8, 8)), 660647962955),
        ("4-8-8 lattice 8 x 8", lambda: count(lattices.four_eight_eight(8, 8)), octagons),
        ("a graph by its frontier", lambda: count(graphs.hamming(4, 2)), 743),
        ("polynomial of a square", lambda: polynomial(lattices.square(3, 3)), [1, 9, 24, 22, 6, 1]),
        ("partition function", lambda: counting.hard_core(lattices.king(4, 4, "torus"), 0.5), Fraction(119, 4)),
        ("spanning trees 6 x 6", lambda: counting.count_spanning_trees(lattices.square(6, 6)), 32565539635200),
        ("dominoes 8 x 8", lambda: counting.count_perfect_matchings(lattices.square(8, 8)), 12988816),
        ("hard squares' constant", lambda: squares().growth_constant.certified[:18], "1.5030480824753322"),
        ("resistances", lambda: spectra.kirchhoff_index(inserted, exact=True), Fraction(301, 5)),
        ("automorphisms of the 6-cube", lambda: graphs.automorphism_group(graphs.hamming(6, 2)).order, 64 * 720),
    ]
    near: list[tuple[str, Callable[[], float], float, float]] = [
        ("Skellam tail", lambda: float(distributions.Skellam(1e-3, 1e-3).logpmf(1000)), -12819.885457, 1e-10),
        ("Gaussian calibration", lambda: privacy.gaussian_delta(1.0, privacy.gaussian_sigma(1.0, 1e-5)), 1e-5, 1e-9),
        ("Shannon capacity", lambda: noisy.shannon_capacity().lower, capacity, 1e-8),
        ("account of a posterior", lambda: trimmed.guarantee(50).epsilon, 2.12026354, 1e-8),
        # Two users tell 1 through randomized response of 3 : 1, under a uniform prior: the density is (1/4 + t/2)^2.
        ("posterior of released bits", _mean_of_bits, 17 / 26, 1e-6),
        ("factorization of an outer product", _sum_of_rates, 84.0, 1e-3),
    ]
    for name, find, expected in exact:
        yield name, partial(_answers, find, expected)
    for name, about, value, tolerance in near:
        yield name, partial(_nears, about, value, tolerance)


def _mean_of_bits() -> float:
    from quincunx import ldp, privacy

    model = ldp.BernoulliModel(random_state=0)
    found = model.fit([1, 1], mechanism=privacy.RandomizedResponse(math.log(3)))
    return float(found.posterior_mean_["probability"])


def _sum_of_rates() -> float:
    from quincunx import factorization

    counts = np.outer([2, 4, 8], [3, 1, 2])
    model = factorization.PoissonFactorization(
        1, inference="vi", n_chains=1, prior_shape=1e-3, prior_rate=1e-3, random_state=0
    )
    return float(model.fit(counts).rates_.sum())


# A spare prime.


def _spare_primes() -> Checks:
    from quincunx import counting, lattices

    lattice = lattices.square(12, 12)
    right = counting.count_independent_sets(lattice)

    def refused() -> str:
        pairs = [(prime, counting.residue(lattice, prime)) for prime in counting.primes(3)]
        _equal(counting.combine_residues(pairs), right)
        for place, (prime, residue) in enumerate(pairs):
            damaged = [*pairs]
            damaged[place] = prime, residue ^ 1 << 17
            try:
                counting.combine_residues(damaged)
            except ValueError:
                continue
            raise Wrong(f"one wrong bit in residue {place} was not noticed")
        return ""

    yield "one wrong bit in any residue is refused", refused


# Goodness of fit.


def _judged(chance: float) -> str:
    if not chance >= FALSE_ALARM:
        raise Wrong(f"such draws have probability {chance:.1e}")
    return f"p = {chance:.3f}"


def _fit(draw: Callable[[], npt.ArrayLike], masses: Callable[[npt.NDArray[np.int64]], npt.ArrayLike]) -> str:
    """Judge draws by chi-square, cells of less than 25 expected draws pooled; what is far out is one cell."""
    from scipy.stats import chi2

    draws = np.asarray(draw()).ravel().astype(np.int64)
    low, high = int(np.quantile(draws, 0.001)), int(np.quantile(draws, 0.999))
    inside = draws[(draws >= low) & (draws <= high)]
    mass = np.asarray(masses(np.arange(low, high + 1)), dtype=np.float64)
    counts = np.append(np.bincount(inside - low, minlength=len(mass)), len(draws) - len(inside))
    expected = len(draws) * np.append(mass, max(1 - mass.sum(), 0.0))
    order = np.argsort(expected)
    cells = np.concatenate([[0], np.cumsum(expected[order])[:-1]]) // 25
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    seen, wanted = np.add.reduceat(counts[order], starts), np.add.reduceat(expected[order], starts)
    if wanted[0] < 25 and len(wanted) > 1:
        seen[1], wanted[1] = seen[0] + seen[1], wanted[0] + wanted[1]
        seen, wanted = seen[1:], wanted[1:]
    return _judged(float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1))))


def _fit_weights(draw: Callable[[], npt.ArrayLike], weights: npt.ArrayLike) -> str:
    """Judge draws of 0, 1, ... with chances proportional to weights."""
    chances = np.asarray(weights) / np.sum(weights)
    return _fit(draw, lambda z: chances[z])


def _fit_noise(mechanism: "GeometricMechanism | DiscreteGaussianMechanism") -> str:
    """Judge noise of whole numbers by its likelihood."""
    zeros = np.zeros(SIZE, dtype=np.int64)
    return _fit(
        lambda: mechanism.release(zeros).values, lambda z: np.exp(mechanism.log_likelihood(z, np.zeros_like(z)))
    )


def _fit_smooth(mechanism: "LaplaceMechanism | GaussianMechanism", cdf: Callable[[Floats], Floats]) -> str:
    """Judge noise on a fine grid by its distance from a law of SciPy."""
    from scipy.stats import kstest

    return _judged(float(kstest(mechanism.release(np.zeros(50_000)).values, cdf).pvalue))


def _fit_uniform(draw: Callable[..., object], graph: object, number: int) -> str:
    """Judge draws of sets that all have the same chance."""
    source = np.random.default_rng()
    seen: dict[bytes, int] = {}
    keys = (np.sort(np.asarray(draw(graph, rng=source))).tobytes() for _ in range(200 * number))
    draws = [seen.setdefault(key, len(seen)) for key in keys]
    _equal(len(seen), number)
    return _fit(lambda: draws, lambda values: np.full(len(values), 1 / number))


def _samplers() -> Checks:
    from scipy.stats import laplace, norm

    from quincunx import counting, distributions, graphs, lattices, privacy

    laws = {
        "Bessel law": distributions.Bessel(3, 20.0),
        "Skellam law": distributions.Skellam(20.0, 15.0),
        "two-sided geometric law": distributions.TwoSidedGeometric(0.8),
        "two-piece Poisson law": distributions.TwoPiecePoisson(released=3, rate=4.0, alpha=0.5),
    }
    for name, law in laws.items():
        yield name, partial(_fit, partial(law.sample, SIZE, rng=None), law.pmf)
    yield "geometric noise", partial(_fit_noise, privacy.GeometricMechanism(0.25, n=1))
    yield "discrete Gaussian noise", partial(_fit_noise, privacy.DiscreteGaussianMechanism(0.5, 1e-6, sensitivity=1))
    rough = privacy.LaplaceMechanism(0.5, sensitivity=1.0)
    yield "Laplace noise", partial(_fit_smooth, rough, laplace(scale=rough.scale).cdf)
    smooth = privacy.GaussianMechanism(0.5, 1e-6, sensitivity=1.0)
    yield "Gaussian noise", partial(_fit_smooth, smooth, norm(scale=smooth.sigma).cdf)
    bit, category = privacy.RandomizedResponse(1.0), privacy.GeneralizedRandomizedResponse(1.0, 5)
    zeros = np.zeros(SIZE, dtype=np.int64)
    yield "randomized response", partial(_fit_weights, lambda: bit.release(zeros).values, [math.e, 1])
    others = [1, 1, math.e, 1, 1]
    yield "generalized randomized response", partial(_fit_weights, lambda: category.release(zeros + 2).values, others)
    choice, scores = privacy.ExponentialMechanism(1.0, 1.0), np.array([0, 1, 2, 4])
    chosen = lambda: [choice.release(scores).values for _ in range(4000)]  # noqa: E731
    yield "exponential mechanism", partial(_fit_weights, chosen, np.exp(scores / 2))
    yield "uniform independent sets", partial(_fit_uniform, counting.random_independent_set, graphs.path(5), 13)
    yield "uniform spanning trees", partial(_fit_uniform, counting.random_spanning_tree, graphs.complete(4), 16)
    yield "uniform perfect matchings", partial(_fit_uniform, counting.random_perfect_matching, lattices.square(2, 4), 5)


# Noise that protects.


def _noise() -> Checks:
    from quincunx import privacy

    def on_grid() -> str:
        for mechanism in (privacy.LaplaceMechanism(1.0, 0.0, 1.0), privacy.GaussianMechanism(1.0, 1e-6, sensitivity=1)):
            for x in (0.0, 1 / 3, 1.0):
                steps = mechanism.release(np.full(2000, x)).values / mechanism.step
                _equal(bool(np.all(steps == np.rint(steps))), True)
        return ""

    yield "outputs lie on one grid whatever the input", on_grid

    def fresh() -> str:
        zeros = np.zeros(64, dtype=np.int64)
        draws = {np.asarray(privacy.privatize(zeros, epsilon=0.01).values).tobytes() for _ in range(50)}
        return _equal(len(draws), 50)

    yield "no noise is drawn twice", fresh
    if hasattr(os, "fork"):
        program = (
            "import os, numpy as np; from quincunx.privacy import privatize; z = np.zeros(16, dtype=int)\n"
            "privatize(z, epsilon=.01); r, w = os.pipe(); child = os.fork()\n"
            "data = privatize(z, epsilon=.01).values.tobytes()\n"
            "if child == 0:\n    os.write(w, data); os._exit(0)\n"
            "print(os.read(r, 128) != data)"
        )
        yield "a forked child draws its own", lambda: _equal(_python(program), "True")


# The same bits from all levels and threads.


def digest(threads: int | None = None) -> str:
    """Return a word for results of all kernels that choose vectors at run time; it is the same on every machine.

    Parameters
    ----------
    threads : int, optional
        Threads to use where a function takes their number.

    Returns
    -------
    str
    """
    from quincunx import counting, distributions, graphs, lattices, leakage, privacy

    found = hashlib.sha256()
    for lattice in (lattices.square(13, 13), lattices.king(9, 9), lattices.four_eight_eight(6, 6)):
        found.update(str(counting.count_independent_sets(lattice, threads=threads)).encode())
    found.update(str(counting.count_spanning_trees(lattices.kagome(4, 4), threads=threads)).encode())
    law = distributions.Bessel([0, 3, 100], [1.0, 5.0, 30.0])
    found.update(np.asarray(law.sample(5000, rng=7, threads=threads)).tobytes())
    counts = np.random.default_rng(1).poisson(2.0, (30, 20))
    released = privacy.privatize(counts, epsilon=1.0, insecure_seed=1)
    # The chain itself: an estimator brings scikit-learn along, whose import takes longer than all the rest.
    private = _core.ReleasedCounts(released.values.ravel(), 30, 20, np.full(1, released.alpha))
    priors = [(np.array([0.1]), np.array([1.0]))] * 2
    for method in ("collapsed", "event", "split", "bessel"):
        chain = _core.GibbsChain(private, "cp", [30, 20], 3, priors, method, (1, 2))
        chain.run(20, 1, threads or 1)
        for factor in chain.factors():
            found.update(np.asarray(factor).tobytes())
    channel = leakage.Channel(np.random.default_rng(2).random((64, 64)), normalize=True)
    found.update(channel.symmetrize(graphs.hamming(6, 2), threads=threads).channel.matrix.tobytes())
    return found.hexdigest()


def _same_bits() -> Checks:
    here = LEVELS.index(_core.simd_level())
    digests: dict[str, str] = {}

    def at(level: str, threads: int) -> str:
        program = f"from quincunx import selftest; print(selftest.digest({threads}))"
        digests.setdefault("first", word := _python(program, QUINCUNX_SIMD=level))
        return _equal(word, digests["first"]) or word[:12]

    for level in LEVELS[: here + 1]:
        yield f"vectors: {level}, one thread", partial(at, level, 1)
    yield "two threads", partial(at, LEVELS[here], 2)


def _python(program: str, **environment: str) -> str:
    with _child.start(
        program, env=os.environ | environment, stdout=_child.PIPE, stderr=_child.PIPE, text=True
    ) as child:
        try:
            output, error = child.communicate(timeout=300)
        finally:
            child.kill()
    if child.returncode or not output:
        raise _child.failure(child, error)
    return str(output).strip()


GROUPS: dict[str, Callable[[], Checks]] = {
    "known answers": _known_answers,
    "spare primes": _spare_primes,
    "samplers": _samplers,
    "noise": _noise,
    "same bits": _same_bits,
}


def run() -> Iterator[Finding]:
    """Make all checks, one after the other.

    Yields
    ------
    Finding
        What each found, as soon as it has.

    Examples
    --------
    >>> from quincunx import selftest
    >>> any(finding.passed is False for finding in selftest.run())  # doctest: +SKIP
    False
    """
    for group, checks in GROUPS.items():
        for name, check in checks():
            start = time.perf_counter()
            passed: bool | None
            try:
                passed, detail = True, check()
            except Wrong as wrong:
                passed, detail = False, str(wrong)
            except Exception as error:
                # What an optional package is missing for comes with its cause; no other import may fail.
                missing = isinstance(error, ImportError) and isinstance(error.__cause__, ImportError)
                passed, detail = None if missing else False, f"{type(error).__name__}: {error}"
            yield Finding(group, name, passed, detail, time.perf_counter() - start)
