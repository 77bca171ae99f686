"""Runs of the two kinds of inference, here or on an executor: what goes in, what comes out, and how they go on.

A run is known by its key and how far it is; every random number is addressed by these, so that a run split in two, on
another machine or with another number of threads gives the same draws, bit for bit.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx.factorization._data import Data
from quincunx.factorization._layout import Floats, Layout

Report = Callable[[int, int], object]

#: Rounds in which several chains take turns, so that all have come equally far when they are stopped.
_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class Problem:
    """What a run works on."""

    data: Data
    layout: Layout
    priors: list[tuple[Floats, Floats]]
    inference: str
    method: str

    @property
    def arguments(
        self,
    ) -> tuple[_core.ReleasedCounts, str, list[int], int, list[tuple[Floats, Floats]], str]:
        """The arguments that both engines of the core begin with."""
        layout = self.layout
        return self.data.counts, layout.model, list(layout.extents), layout.n_components, self.priors, self.method


@dataclass(frozen=True)
class Schedule:
    """How far all runs go, and what is kept on the way."""

    until: int
    burn_in: int
    thin: int
    tolerance: float
    threads: int | None


@dataclass(eq=False)
class Run:
    """A run: its key, where it is, and what it kept.

    Attributes
    ----------
    key : tuple of int
        Addresses its random streams.
    iteration : int
        Sweeps or iterations done.
    factors : list
        Per factor a table, or for variational inference a pair of tables (shape, rate); None for a fresh run.
    noise : list of ndarray
        State of the cells, for the methods that have one.
    draws : list of ndarray
        Per factor the kept tables, (n_kept, length, n_components).
    kept : ndarray of int64
        The sweeps that were kept.
    log_likelihood : ndarray
        Of the data at the kept sweeps.
    total_rate, total_count : ndarray
        At each sweep.
    elbo : ndarray
        At each iteration of variational inference.
    converged : bool
        Whether variational inference met its tolerance.
    """

    key: tuple[int, int]
    iteration: int = 0
    factors: Any = None
    noise: list[npt.NDArray[Any]] = field(default_factory=list)
    draws: list[Floats] = field(default_factory=list)
    kept: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    log_likelihood: Floats = field(default_factory=lambda: np.empty(0))
    total_rate: Floats = field(default_factory=lambda: np.empty(0))
    total_count: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    elbo: Floats = field(default_factory=lambda: np.empty(0))
    converged: bool = False

    @property
    def fruitful(self) -> bool:
        """Whether there is anything to show for it."""
        return bool(len(self.kept) or len(self.elbo))


def keys(words: npt.NDArray[np.uint64], number: int) -> list[tuple[int, int]]:
    """Return the keys of a number of runs; the first ones do not depend on the number."""
    children = np.random.SeedSequence([int(word) for word in words]).spawn(number)
    return [(int(a), int(b)) for a, b in (child.generate_state(2, np.uint64) for child in children)]


class _Chain:
    """A Gibbs chain that is being run.

    An interrupt may come between any two lines. So what the core has kept goes into a list in one step, and from there
    into arrays at places that its position in the run decides: doing so twice does no harm.
    """

    def __init__(self, problem: Problem, run: Run, schedule: Schedule) -> None:
        self._run, self._schedule = run, schedule
        self._chain = _core.GibbsChain(*problem.arguments, run.key)
        if run.factors is not None:
            self._chain.set_factors(run.factors)
            self._chain.iteration = run.iteration
            if run.noise and problem.method == "bessel":
                self._chain.set_noise(run.noise)
        kept = len(run.kept) + _kept_between(run.iteration, schedule)
        sweeps = max(schedule.until, run.iteration)
        width = problem.layout.n_components
        self._draws = [np.empty((kept, factor.length, width)) for factor in problem.layout.factors]
        for whole, earlier in zip(self._draws, run.draws, strict=bool(run.draws)):
            whole[: len(earlier)] = earlier
        self._by_draw: dict[str, npt.NDArray[Any]] = {
            "kept": np.empty(kept, dtype=np.int64),
            "log_likelihood": np.empty(kept),
        }
        self._by_sweep: dict[str, npt.NDArray[Any]] = {
            "total_rate": np.empty(sweeps),
            "total_count": np.empty(sweeps, dtype=np.int64),
        }
        for arrays in (self._by_draw, self._by_sweep):
            for name, whole in arrays.items():
                whole[: len(getattr(run, name))] = getattr(run, name)
        self._taken: list[dict[str, Any] | None] = []
        #: How many takings are in the arrays, and how many draws and sweeps these hold.
        self._filled = 0, len(run.kept), run.iteration

    @property
    def iteration(self) -> int:
        return self._chain.iteration

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of sweeps; what is done and kept before an exception stays."""
        threads = _check.threads(self._schedule.threads)
        end = self.iteration + steps
        for stage, keep_every in ((min(end, self._schedule.burn_in), 0), (end, self._schedule.thin)):
            while self.iteration < stage:
                try:
                    self._chain.run(stage - self.iteration, keep_every, threads, report)
                finally:
                    self._collect()
        return False

    def _collect(self) -> None:
        self._taken.extend(map(_core.GibbsChain.take, (self._chain,)))  # nothing can come between
        number, draw, sweep = self._filled
        while number < len(self._taken):
            taken = self._taken[number]
            assert taken is not None
            draws, sweeps = slice(draw, draw + len(taken["kept"])), slice(sweep, sweep + len(taken["total_rate"]))
            for whole, part in zip(self._draws, taken["draws"], strict=True):
                whole[draws] = part
            for name, whole in self._by_draw.items():
                whole[draws] = taken[name]
            for name, whole in self._by_sweep.items():
                whole[sweeps] = taken[name]
            number, draw, sweep = self._filled = number + 1, draws.stop, sweeps.stop
            self._taken[number - 1] = None

    def statistics(self) -> dict[str, Any]:
        """Return what a callback is told of the last sweep."""
        _, draw, sweep = self._filled
        kept = draw > 0 and self._by_draw["kept"][draw - 1] == sweep
        return {
            "total_rate": float(self._by_sweep["total_rate"][sweep - 1]),
            "total_count": int(self._by_sweep["total_count"][sweep - 1]),
            "log_likelihood": float(self._by_draw["log_likelihood"][draw - 1]) if kept else None,
        }

    def result(self) -> Run:
        self._collect()
        _, draw, sweep = self._filled
        return replace(
            self._run,
            iteration=self.iteration,
            factors=self._chain.factors(),
            noise=self._chain.noise(),
            draws=[whole[:draw] for whole in self._draws],
            kept=self._by_draw["kept"][:draw],
            log_likelihood=self._by_draw["log_likelihood"][:draw],
            total_rate=self._by_sweep["total_rate"][:sweep],
            total_count=self._by_sweep["total_count"][:sweep],
        )


def _kept_between(iteration: int, schedule: Schedule) -> int:
    """Return how many sweeps after the given one are kept."""
    return max(0, schedule.until // schedule.thin - max(iteration, schedule.burn_in) // schedule.thin)


class _Ascent:
    """A coordinate ascent that is being run."""

    def __init__(self, problem: Problem, run: Run, schedule: Schedule) -> None:
        self._run, self._schedule = run, schedule
        self._ascent = _core.CoordinateAscent(*problem.arguments, run.key)
        if run.factors is not None:
            self._ascent.set_factors(run.factors)
            if run.noise and problem.method != "collapsed":
                self._ascent.set_noise(run.noise)
        self._converged = False

    @property
    def iteration(self) -> int:
        return self._run.iteration + len(self._ascent.elbo())

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations; say whether the tolerance was met."""
        threads, tolerance = _check.threads(self._schedule.threads), self._schedule.tolerance
        end = self.iteration + steps
        while self.iteration < end and not self._converged:
            # The core stops by the last two bounds but one, and knows those of its own iterations only.
            if steps == 1 or (self._run.elbo.size and len(self._ascent.elbo()) < 2):
                self._ascent.run(1, 0.0, threads, None)
                self._converged = _settled(self.elbo()[:-1], tolerance)
            else:
                self._converged = self._ascent.run(end - self.iteration, tolerance, threads, report)
        if self.iteration == self._schedule.until:
            self._converged = self._converged or _settled(self.elbo(), tolerance)
        return self._converged

    def elbo(self) -> Floats:
        """Return the bounds of all iterations of the run."""
        return np.concatenate([self._run.elbo, self._ascent.elbo()])

    def statistics(self) -> dict[str, Any]:
        """Return what a callback is told of the last iteration."""
        return {"elbo": float(self._ascent.elbo()[-1])}

    def result(self) -> Run:
        return replace(
            self._run,
            iteration=self.iteration,
            factors=self._ascent.factors(),
            noise=self._ascent.noise(),
            elbo=self.elbo(),
            converged=self._converged,
        )


def _settled(bounds: Floats, tolerance: float) -> bool:
    """Say whether the last two bounds agree."""
    return len(bounds) > 1 and bool(abs(bounds[-1] - bounds[-2]) < tolerance * abs(bounds[-1]))


def _engine(problem: Problem, run: Run, schedule: Schedule) -> "_Chain | _Ascent":
    return (_Chain if problem.inference == "mcmc" else _Ascent)(problem, run, schedule)


class Stopped(Exception):
    """The callback asked to stop."""


def run_here(
    problem: Problem,
    runs: list[Run],
    schedule: Schedule,
    report: Report | None,
    callback: Callable[[int, dict[str, Any]], object] | None,
) -> tuple[list[Run], BaseException | None]:
    """Let all runs go on in this thread, in turns; return them, and what stopped them before their end.

    What stops them without doing harm is a request of the user: an interrupt, or whatever `report` or `callback` raise
    or ask for. Any other exception is an error and is raised.
    """
    asked: list[BaseException] = []
    engines = [_engine(problem, run, schedule) for run in runs]
    left = [max(0, schedule.until - engine.iteration) for engine in engines]
    total, done = sum(left), 0
    # An ascent that is told to go on a little at a time forms more bounds than it needs.
    rounds = _ROUNDS if problem.inference == "mcmc" else 1
    turn = 1 if callback is not None else max(1, -(-max(left, default=0) // rounds))

    def heard(steps: int) -> Report | None:
        if report is None:
            return None

        def hear(part: int, whole: int) -> None:
            _asking(asked, report, done + steps * part // max(whole, 1), total)

        return hear

    try:
        while any(left):
            for chain, engine in enumerate(engines):
                steps = min(turn, left[chain])
                if not steps:
                    continue
                before = engine.iteration
                converged = engine.advance(steps, heard(steps))
                left[chain] = 0 if converged else left[chain] - steps
                done += steps
                if callback is not None and engine.iteration > before:
                    told = {"chain": chain, **engine.statistics()}
                    if _asking(asked, callback, engine.iteration, told) is False:
                        asked.append(Stopped())
                        raise asked[0]
        if report is not None and total:
            _asking(asked, report, total, total)
    except BaseException as error:
        if isinstance(error, Exception) and not any(error is request for request in asked):
            raise
        return [engine.result() for engine in engines], error
    return [engine.result() for engine in engines], None


def _asking(asked: list[BaseException], function: Callable[..., object], *arguments: Any) -> object:
    """Call a function of the user's and remember what it raises."""
    try:
        return function(*arguments)
    except BaseException as error:
        asked.append(error)
        raise


def run_task(problem: Problem, run: Run, schedule: Schedule) -> Run:
    """Let one run go on to its end; what an executor is given."""
    engine = _engine(problem, run, schedule)
    if schedule.until > engine.iteration:
        engine.advance(schedule.until - engine.iteration, None)
    return engine.result()


def run_on(
    executor: Executor, problem: Problem, runs: list[Run], schedule: Schedule, report: Report | None
) -> tuple[list[Run], BaseException | None]:
    """Let each run go on as one task of an executor; after an interrupt, the runs that had ended have gone on."""
    futures: list[Future[Run]] = [executor.submit(run_task, problem, run, schedule) for run in runs]
    asked: list[BaseException] = []
    stopped = None
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            if report is not None:
                _asking(asked, report, done, len(futures))
    except BaseException as error:
        for future in futures:
            future.cancel()
        if isinstance(error, Exception) and not any(error is request for request in asked):
            raise
        stopped = error
    return [
        future.result() if future.done() and not future.cancelled() and future.exception() is None else run
        for run, future in zip(runs, futures, strict=True)
    ], stopped
