"""Samplers are driven, here in turns or on an executor: progress is reported, callbacks called, stops survived."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import ClassVar, Protocol, TypeAlias, TypeVarTuple

from quincunx._executors import Tasks
from quincunx._inference._runs import Problem, Run, S

Ts = TypeVarTuple("Ts")
Report: TypeAlias = Callable[[int, int], object]
Callback: TypeAlias = Callable[[int, dict[str, float | None]], object]


class Sampler(Protocol):
    """A run that is being continued, or several that are so together."""

    #: Turns in which several runs advance; one where stopping in between costs work.
    rounds: ClassVar[int]

    @property
    def iteration(self) -> int:
        """Iterations done in the life of the run, or of the first of several."""

    @property
    def left(self) -> int:
        """Iterations to do, of all its runs."""

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations and say whether the run has ended before its time; an exception loses nothing."""

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback hears of the last iteration."""

    def results(self) -> list[Run]:
        """Return its runs as far as they came."""


class Stopped(Exception):
    """The callback asked to stop."""


class _UserCalls:
    """Calls of functions of the user's, and what they raised: a request to stop, and no error of ours."""

    def __init__(self) -> None:
        self._raised: list[BaseException] = []

    def __call__(self, function: Callable[[*Ts], object], *arguments: *Ts) -> object:
        try:
            return function(*arguments)
        except BaseException as error:
            self._raised.append(error)
            raise

    def stop(self) -> None:
        self._raised.append(Stopped())
        raise self._raised[-1]

    def is_request(self, error: BaseException) -> bool:
        return not isinstance(error, Exception) or any(error is request for request in self._raised)


def run_here(
    problem: Problem[S],
    runs: Sequence[Run],
    schedule: S,
    report: Report | None = None,
    callback: Callback | None = None,
) -> tuple[list[Run], BaseException | None]:
    """Let all runs continue in this thread, in turns; return them, and what stopped them before their end.

    What stops them without doing harm is a request of the user: an interrupt, or whatever `report` or `callback` raise
    or ask for. Any other exception is an error and is raised.
    """
    user_call = _UserCalls()
    samplers = problem.samplers(runs, schedule)
    left = [sampler.left for sampler in samplers]
    total, done = sum(left), 0
    rounds = max((sampler.rounds for sampler in samplers), default=1)
    turn = 1 if callback is not None else max(1, -(-max(left, default=0) // rounds))

    def hearing(steps: int) -> Report | None:
        if report is None:
            return None

        def hear(part: int, whole: int) -> None:
            user_call(report, done + steps * part // max(whole, 1), total)

        return hear

    stopped = None
    try:
        while any(left):
            for chain, sampler in enumerate(samplers):
                steps = min(turn, left[chain])
                if not steps:
                    continue
                before = sampler.iteration
                ended = sampler.advance(steps, hearing(steps))
                left[chain] = 0 if ended else left[chain] - steps
                done += steps
                if callback is not None and sampler.iteration > before:
                    if user_call(callback, sampler.iteration, {"chain": chain, **sampler.statistics()}) is False:
                        user_call.stop()
        if report is not None and total:
            user_call(report, total, total)
    except BaseException as error:
        if not user_call.is_request(error):
            raise
        stopped = error
    return [run for sampler in samplers for run in sampler.results()], stopped


def run_task(problem: Problem[S], run: Run, schedule: S, listen: Report | None = None) -> Run:
    """Let one run continue to its end; what an executor is given."""
    (sampler,) = problem.samplers([run], schedule)
    if left := sampler.left:
        sampler.advance(left, listen)
    (after,) = sampler.results()
    return after


def run_on(
    executor: Executor, problem: Problem[S], runs: Sequence[Run], schedule: S, report: Report | None = None
) -> tuple[list[Run], BaseException | None]:
    """Let each run continue as one task of an executor; after an interrupt, the runs that had ended are kept."""
    calls = [(problem, run.without_draws(), schedule) for run in runs]
    tasks = Tasks(executor, run_task, calls, [f"chain-{chain}" for chain in range(len(runs))])
    after = list(runs)
    user_call = _UserCalls()
    stopped = None
    try:
        with tasks:
            for done, (chain, run) in enumerate(tasks, start=1):
                after[chain] = run.after(runs[chain])
                if report is not None:
                    user_call(report, done, len(runs))
    except BaseException as error:
        if not user_call.is_request(error):
            raise
        stopped = error
    for chain, run in tasks.ended():
        after[chain] = run.after(runs[chain])
    return after, stopped
