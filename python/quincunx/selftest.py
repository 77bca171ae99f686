"""What a user runs on a new machine: ``quincunx selftest`` asks in about a minute whether its numbers can be trusted.

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _child, _core

FALSE_ALARM = 1e-9
LEVELS = ("baseline", "avx2", "avx512")


class Finding(NamedTuple):
    """What one check found.

    Attributes
    ----------
    group : str
        Which kind of check.
    name : str
        What was checked.
    passed : bool
        Whether it is as it must be.
    detail : str
        What was seen, where something was measured or is wrong.
    seconds : float
        How long it took.
    """

    group: str
    name: str
    passed: bool
    detail: str
    seconds: float


class Wrong(Exception):
    """A check did not see what it must."""


def _equal(found: object, expected: object) -> str:
    if found != expected:
        raise Wrong(f"must be {expected}, got {found}")
    return ""


def _close(found: float, expected: float, tolerance: float) -> str:
    if not abs(found - expected) <= tolerance * abs(expected):
        raise Wrong(f"must be {expected} within {tolerance:g}, got {found}")
    return ""


# Known answers: published values, or sums over all cases by hand.


def _known_answers() -> Iterator[tuple[str, Callable[[], str]]]:
    from quincunx import (
        counting,
        distributions,
        entropy,
        factorization,
        graphs,
        lattices,
        ldp,
        leakage,
        posterior,
        privacy,
        spectra,
    )

    count = counting.count_independent_sets
    octagons = 106604291172842164003551272224925014432256214641773230401
    yield "square lattice 8 x 8", lambda: _equal(count(lattices.square(8, 8)), 660647962955)
    yield "4-8-8 lattice 8 x 8", lambda: _equal(count(lattices.four_eight_eight(8, 8)), octagons)
    yield "a graph by its frontier", lambda: _equal(count(graphs.hamming(4, 2)), 743)
    yield (
        "polynomial of a square",
        lambda: _equal(counting.independence_polynomial(lattices.square(3, 3)), [1, 9, 24, 22, 6, 1]),
    )
    yield "partition function", lambda: _equal(counting.hard_core(lattices.king(4, 4, "torus"), 0.5), Fraction(119, 4))
    yield "spanning trees 6 x 6", lambda: _equal(counting.count_spanning_trees(lattices.square(6, 6)), 32565539635200)
    yield "dominoes 8 x 8", lambda: _equal(counting.count_perfect_matchings(lattices.square(8, 8)), 12988816)
    hard_squares = "1.503048082475332264322066329475553689385781"
    yield (
        "hard squares' constant",
        lambda: _equal(hard_squares.startswith(entropy.entropy_bounds("square", digits=16).certified), True),
    )
    yield (
        "resistances",
        lambda: _equal(
            spectra.kirchhoff_index(lattices.clique_insert(graphs.complete(4)), exact=True), Fraction(301, 5)
        ),
    )
    yield (
        "automorphisms of the 6-cube",
        lambda: _equal(graphs.automorphism_group(graphs.hamming(6, 2)).order, 2**6 * math.factorial(6)),
    )
    yield "Skellam tail", lambda: _close(float(distributions.Skellam(1e-3, 1e-3).logpmf(1000)), -12819.885457, 1e-10)
    yield (
        "Gaussian calibration",
        lambda: _close(privacy.gaussian_delta(1.0, privacy.gaussian_sigma(1.0, 1e-5)), 1e-5, 1e-9),
    )
    yield (
        "Shannon capacity",
        lambda: _close(
            leakage.Channel([[0.9, 0.1], [0.1, 0.9]]).shannon_capacity().lower,
            1 + 0.9 * math.log2(0.9) + 0.1 * math.log2(0.1),
            1e-8,
        ),
    )
    yield (
        "account of a posterior",
        lambda: _close(posterior.BetaBernoulli(1, 1, trim=0.25).guarantee(50).epsilon, 2.12026354, 1e-8),
    )

    def bits() -> str:
        # Two users tell 1 through randomized response of 3 : 1, a uniform prior.
        model = ldp.BernoulliModel(random_state=0)
        found = model.fit([1, 1], mechanism=privacy.RandomizedResponse(math.log(3))).posterior_mean_["probability"]
        density = np.polynomial.Polynomial([0.25, 0.5]) ** 2  # chance of a told 1: 1/4 + theta/2
        mean = (density * np.polynomial.Polynomial([0, 1])).integ()(1) / density.integ()(1)
        return _close(float(found), float(mean), 1e-6)

    yield "posterior of told bits", bits

    def ascent() -> str:
        counts = np.outer([2, 4, 8], [3, 1, 2])
        model = factorization.PoissonFactorization(1, inference="vi", prior_shape=1e-3, prior_rate=1e-3, random_state=0)
        return _close(float(model.fit(counts).rates_.sum()), float(counts.sum()), 1e-3)

    yield "factorization of an outer product", ascent


# A spare prime.


def _spare_primes() -> Iterator[tuple[str, Callable[[], str]]]:
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


def _fit(counts: npt.NDArray[Any], probabilities: npt.NDArray[Any]) -> str:
    """Judge counts by chi-square, cells of less than 25 expected draws pooled; what is missing of 1 is one cell."""
    from scipy.stats import chi2

    number = float(counts.sum())
    expected = number * np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(expected)
    counts, expected = np.asarray(counts, dtype=np.float64)[order], expected[order]
    cells = np.concatenate([[0], np.cumsum(expected)[:-1]]) // 25
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    seen, wanted = np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    if wanted[0] < 25 and len(wanted) > 1:
        seen[1], wanted[1] = seen[0] + seen[1], wanted[0] + wanted[1]
        seen, wanted = seen[1:], wanted[1:]
    chance = float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1)))
    return _judged(chance)


def _judged(chance: float) -> str:
    if not chance >= FALSE_ALARM:
        raise Wrong(f"such draws have probability {chance:.1e}")
    return f"p = {chance:.3f}"


def _fit_law(draws: npt.NDArray[Any], masses: Callable[[npt.NDArray[Any]], Any]) -> str:
    draws = np.asarray(draws).ravel().astype(np.int64)
    low, high = int(np.quantile(draws, 0.001)), int(np.quantile(draws, 0.999))
    inside = draws[(draws >= low) & (draws <= high)]
    values = np.arange(low, high + 1)
    mass = np.asarray(masses(values), dtype=np.float64)
    counts = np.append(np.bincount(inside - low, minlength=len(values)), len(draws) - len(inside))
    return _fit(counts, np.append(mass, max(1 - mass.sum(), 0.0)))


def _samplers() -> Iterator[tuple[str, Callable[[], str]]]:
    from scipy.stats import kstest, laplace, norm

    from quincunx import counting, distributions, graphs, lattices, privacy

    size = 200_000
    laws = {
        "Bessel": distributions.Bessel(3, 20.0),
        "Skellam": distributions.Skellam(20.0, 15.0),
        "two-sided geometric": distributions.TwoSidedGeometric(0.8),
        "two-piece Poisson": distributions.TwoPiecePoisson(released=3, rate=4.0, alpha=0.5),
    }
    for name, law in laws.items():
        yield f"{name} law", lambda law=law: _fit_law(law.sample(size, rng=None), law.pmf)  # type: ignore[misc]
    zeros = np.zeros(size, dtype=np.int64)
    whole: dict[str, Any] = {
        "geometric noise": privacy.GeometricMechanism(0.25, n=1),
        "discrete Gaussian noise": privacy.DiscreteGaussianMechanism(0.5, 1e-6, sensitivity=1),
    }
    for name, noise in whole.items():
        yield (
            name,
            lambda noise=noise: _fit_law(  # type: ignore[misc]
                noise.release(zeros).values, lambda z: np.exp(noise.log_likelihood(z, np.zeros_like(z)))
            ),
        )
    rough = privacy.LaplaceMechanism(0.5, sensitivity=1.0)
    yield (
        "Laplace noise",
        lambda: _judged(float(kstest(rough.release(zeros[:50_000]).values, laplace(scale=rough.scale).cdf).pvalue)),
    )
    smooth = privacy.GaussianMechanism(0.5, 1e-6, sensitivity=1.0)
    yield (
        "Gaussian noise",
        lambda: _judged(float(kstest(smooth.release(zeros[:50_000]).values, norm(scale=smooth.sigma).cdf).pvalue)),
    )
    bit = privacy.RandomizedResponse(1.0)
    share = 1 / (1 + math.exp(1.0))
    yield (
        "randomized response",
        lambda: _fit(np.bincount(bit.release(zeros).values, minlength=2), np.array([1 - share, share])),
    )
    category = privacy.GeneralizedRandomizedResponse(1.0, 5)
    others = np.full(5, 1 / (math.e + 4))
    others[2] *= math.e
    yield (
        "generalized randomized response",
        lambda: _fit(np.bincount(category.release(zeros + 2).values, minlength=5), others),
    )
    choice = privacy.ExponentialMechanism(1.0, 1.0)
    scores = np.array([0, 1, 2, 4])
    weights = np.exp(scores / 2)
    yield (
        "exponential mechanism",
        lambda: _fit(
            np.bincount([int(choice.release(scores).values) for _ in range(4000)], minlength=4),
            weights / weights.sum(),
        ),
    )

    def objects(draw: Callable[[Any], Any], graph: Any, number: int) -> str:
        source = np.random.default_rng()
        seen: dict[bytes, int] = {}
        for _ in range(200 * number):
            key = np.sort(np.asarray(draw(graph, rng=source))).tobytes()  # type: ignore[call-arg]
            seen[key] = seen.get(key, 0) + 1
        _equal(len(seen), number)
        return _fit(np.array(list(seen.values())), np.full(number, 1 / number))

    yield "uniform independent sets", lambda: objects(counting.random_independent_set, graphs.path(5), 13)
    yield "uniform spanning trees", lambda: objects(counting.random_spanning_tree, graphs.complete(4), 16)
    yield "uniform perfect matchings", lambda: objects(counting.random_perfect_matching, lattices.square(2, 4), 5)


# Noise that protects.


def _noise() -> Iterator[tuple[str, Callable[[], str]]]:
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

        def forked() -> str:
            program = (
                "import os, numpy as np; from quincunx.privacy import privatize; z = np.zeros(16, dtype=int)\n"
                "privatize(z, epsilon=.01); r, w = os.pipe(); child = os.fork()\n"
                "data = privatize(z, epsilon=.01).values.tobytes()\n"
                "if child == 0:\n    os.write(w, data); os._exit(0)\n"
                "print(os.read(r, 128) != data)"
            )
            return _equal(_python(program), "True")

        yield "a forked child draws its own", forked


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


def _same_bits() -> Iterator[tuple[str, Callable[[], str]]]:
    here = LEVELS.index(_core.simd_level())
    told: dict[str, str] = {}

    def at(level: str, threads: int) -> str:
        program = f"from quincunx import selftest; print(selftest.digest({threads}))"
        told.setdefault("first", word := _python(program, QUINCUNX_SIMD=level))
        return _equal(word, told["first"]) or word[:12]

    for level in LEVELS[: here + 1]:
        yield f"vectors: {level}, one thread", lambda level=level: at(level, 1)  # type: ignore[misc]
    yield "two threads", lambda: at(LEVELS[here], 2)


def _python(program: str, **environment: str) -> str:
    with _child.start(
        program, env=os.environ | environment, stdout=_child.PIPE, stderr=_child.PIPE, text=True
    ) as child:
        try:
            told, error = child.communicate(timeout=300)
        finally:
            child.kill()
    if child.returncode or not told:
        raise _child.failure(child, error)
    return str(told).strip()


GROUPS: dict[str, Callable[[], Iterator[tuple[str, Callable[[], str]]]]] = {
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
    >>> all(finding.passed for finding in selftest.run())  # doctest: +SKIP
    True
    """
    for group, checks in GROUPS.items():
        for name, check in checks():
            start = time.perf_counter()
            try:
                passed, detail = True, check()
            except Wrong as wrong:
                passed, detail = False, str(wrong)
            except Exception as error:
                passed, detail = False, f"{type(error).__name__}: {error}"
            yield Finding(group, name, passed, detail, time.perf_counter() - start)
