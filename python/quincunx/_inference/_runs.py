"""Runs: what addresses their random numbers, how far they are, what they kept, and how far they are to go.

A run is known by its key and its iteration; every random number is addressed by these, so that a run split in two, on
another machine or with another number of threads gives the same draws, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Never, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx._rng import RandomSource, generator
from quincunx._types import Array, Floats

#: Arrays by name: states, statistics.
Arrays: TypeAlias = dict[str, Array]
#: Hears how much of a whole is done.
Report: TypeAlias = Callable[[int, int], object]
#: How far runs go and what they keep, as a room's samplers take it.
S = TypeVar("S", contravariant=True)


@dataclass(frozen=True)
class Variable:
    """One variable of a posterior.

    Attributes
    ----------
    name : str
        Its name in draws and in the DataTree.
    shape : tuple of int
        The shape of one draw as the sampler writes it.
    dims : tuple of str
        The names of its axes as the user sees them.
    labels : sequence, optional
        What lies along its only axis, where that has labels.
    """

    name: str
    shape: tuple[int, ...] = ()
    dims: tuple[str, ...] = ()
    labels: Sequence[object] | None = field(default=None, kw_only=True)

    def shown(self, draws: Array) -> Array:
        """Return a draw of the sampler, or an array whose last axes are draws, as the user sees it."""
        return draws


class Sampler(Protocol):
    """A run that is being continued, or several that are so together."""

    #: Turns in which several runs advance; one where stopping in between costs work.
    rounds: ClassVar[int] = 1

    @property
    def iteration(self) -> int:
        """Iterations done in the life of the run, or of the first of several."""

    @property
    def left(self) -> int:
        """Iterations to do, of all its runs."""

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations and say whether the run has ended before its time; an exception loses nothing."""

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback hears of the last iteration; nothing where there are no callbacks."""
        return {}

    def results(self) -> "list[Run]":
        """Return its runs as far as they came."""


class Problem(Protocol[S]):
    """What the runs of a fit work on; pickled to the workers of an executor."""

    @property
    def sampled(self) -> bool:
        """Whether runs are chains of draws, and no approximation."""

    @property
    def variables(self) -> "tuple[Variable, ...]":
        """The variables in the order of the draws of a run."""

    def samplers(self, runs: "Sequence[Run]", schedule: S) -> Sequence[Sampler]:
        """Return what continues runs: one sampler for each, or one for all where they are sampled together."""


P = TypeVar("P", bound=Problem[Never])


@dataclass(frozen=True)
class Schedule:
    """How far all runs go, and what is kept on the way.

    Attributes
    ----------
    until : int
        The iteration at which runs end.
    n_warmup : int
        Iterations before the first that may be kept.
    thin : int
        Later ones are kept whose number this divides.
    tolerance : float
        Relative change of the objective below which an approximation ends.
    threads : int, optional
        Threads of each run; by default all this process may use.
    draws_dir : str, optional
        The folder on whose disk draws lie; by default they are in memory.
    """

    until: int
    n_warmup: int = 0
    thin: int = 1
    tolerance: float = 0.0
    threads: int | None = None
    draws_dir: str | None = None

    def kept_after(self, iteration: int) -> int:
        """Return how many iterations after the given one are kept."""
        return max(0, self.until // self.thin - max(iteration, self.n_warmup) // self.thin)

    def settled(self, bounds: Sequence[float] | Floats) -> bool:
        """Say whether the last two values of an objective agree within the tolerance; both may be zero."""
        size = max(abs(bounds[-1]), np.finfo(float).tiny) if len(bounds) else 0.0
        return len(bounds) > 1 and bool(abs(bounds[-1] - bounds[-2]) < self.tolerance * size)


class Single(Sampler):
    """A run that is continued alone."""

    _schedule: Schedule

    @property
    def left(self) -> int:
        """Iterations to do."""
        return max(0, self._schedule.until - self.iteration)


@dataclass(eq=False)
class Run:
    """A run: its key, where it is, and what it kept.

    The statistics are attributes too: ``run.log_likelihood`` is ``run.draw_statistics["log_likelihood"]``.

    Attributes
    ----------
    key : tuple of int
        Addresses its random streams.
    iteration : int
        Iterations done.
    state : dict of ndarray
        What a sampler needs to continue; empty for a fresh run.
    draws : list of ndarray
        Per variable, ``(n_kept, *shape)``.
    kept : ndarray of int64
        The iterations that were kept.
    draw_statistics, step_statistics : dict of ndarray
        By name, one number per kept iteration, or per iteration.
    converged : bool
        Whether an approximation met its tolerance.
    """

    key: tuple[int, int]
    iteration: int = 0
    state: Arrays = field(default_factory=dict)
    draws: list[Floats] = field(default_factory=list)
    kept: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    draw_statistics: Arrays = field(default_factory=dict)
    step_statistics: Arrays = field(default_factory=dict)
    converged: bool = False

    def __getattr__(self, name: str) -> Array:
        for statistics in ("draw_statistics", "step_statistics"):
            found = self.__dict__.get(statistics, {})
            if name in found:
                value: Array = found[name]
                return value
        raise AttributeError(f"a run has no attribute or statistic {name!r}")

    @property
    def has_draws(self) -> bool:
        """Whether it kept draws, or an approximation that draws can be made from."""
        return bool(len(self.kept) or len(self.step_statistics.get("elbo", ())))

    def without_draws(self) -> "Run":
        """Return what a sampler needs to continue: all but what was kept."""
        return replace(self, draws=[], kept=self.kept[:0], draw_statistics={})

    def after(self, earlier: "Run") -> "Run":
        """Return the run with what was kept before it went on `without_draws`."""
        if not len(earlier.kept):
            return self
        before, now = earlier.draw_statistics, self.draw_statistics
        return replace(
            self,
            draws=[np.concatenate(pair) for pair in zip(earlier.draws, self.draws, strict=True)],
            kept=np.concatenate([earlier.kept, self.kept]),
            draw_statistics={name: np.concatenate([before[name], values]) for name, values in now.items()},
        )


def keys(random_state: "RandomSource | np.random.RandomState", number: int) -> list[tuple[int, int]]:
    """Return the keys of a number of runs; the first ones do not depend on the number. A generator advances once."""
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**64, size=4, dtype=np.uint64)
    else:
        words = generator(random_state, "random_state").integers(0, 2**64, size=4, dtype=np.uint64)
    children = np.random.SeedSequence([int(word) for word in words]).spawn(number)
    return [(int(a), int(b)) for a, b in (child.generate_state(2, np.uint64) for child in children)]
