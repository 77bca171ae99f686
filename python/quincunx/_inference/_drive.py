"""Samplers are driven, here in turns or on an executor: progress is reported, callbacks called, stops survived."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeAlias, TypeVarTuple

from quincunx._executors import Tasks
from quincunx._inference._checkpoint import Pause
from quincunx._inference._runs import Problem, Report, Run, S

Ts = TypeVarTuple("Ts")
Callback: TypeAlias = Callable[[int, dict[str, float | None]], object]


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
    keep: Pause | None = None,
) -> tuple[list[Run], BaseException | None]:
    """Let all runs continue in this thread, in turns; return them, and what stopped them before their end.

    With `keep`, turns are so short that it is asked in time whether it is due; runs that it knows to have ended stay as
    they are. What stops them without doing harm is a request of the user: an interrupt, or whatever `report` or
    `callback` raise or ask for. Any other exception is an error and is raised.
    """
    user_call = _UserCalls()
    places = [place for place, run in enumerate(runs) if keep is None or run.key not in keep.ended]
    samplers = problem.samplers([runs[place] for place in places], schedule) if places else []
    left = [sampler.left for sampler in samplers]
    done = 0 if keep is None else keep.done
    total = done + sum(left)
    rounds = max((sampler.rounds for sampler in samplers), default=1)
    longest = 1 if callback is not None else max(1, -(-max(left, default=0) // rounds))
    turn = longest if keep is None else 1

    def results() -> list[Run]:
        after = {run.key: run for sampler in samplers for run in sampler.results()}
        return [after.get(run.key, run) for run in runs]

    def hearing(steps: int) -> Report | None:
        if report is None:
            return None

        def hear(part: int, whole: int) -> None:
            user_call(report, done + steps * part // max(whole, 1), total)

        return hear

    stopped = None
    try:
        while any(left):
            start = time.monotonic()
            for i, (chain, sampler) in enumerate(zip(places, samplers, strict=False)):
                steps = min(turn, left[i])
                if not steps:
                    continue
                before = sampler.iteration
                ended = sampler.advance(steps, hearing(steps))
                left[i] = 0 if ended else left[i] - steps
                done += steps
                if keep is not None and not left[i]:
                    keep.ended.add(runs[chain].key)
                if callback is not None and sampler.iteration > before:
                    if user_call(callback, sampler.iteration, {"chain": chain, **sampler.statistics()}) is False:
                        user_call.stop()
            if keep is not None:
                turn = _paced(turn, longest, (time.monotonic() - start) / max(keep.interval, 1e-9))
                if any(left) and keep.is_due() and not keep.save(results()):
                    break
        if report is not None and total:
            user_call(report, total, total)
    except BaseException as error:
        if not user_call.is_request(error):
            raise
        stopped = error
    after = results()
    if keep is not None and stopped is not None:
        keep.save(after)
    return after, stopped


def _paced(turn: int, longest: int, share: float) -> int:
    """Return the steps of the next turn, when the last took that share of the time between two looks at the clock."""
    return min(longest, 2 * turn) if share < 1 / 16 else max(1, turn // 2) if share > 1 / 4 else turn


def run_task(
    problem: Problem[S], run: Run, schedule: S, seconds: float | None, listen: Report | None = None
) -> tuple[Run, bool]:
    """Let one run continue to its end, or for some seconds; what an executor is given. Say whether it has ended."""
    pause = None if seconds is None else Pause(seconds)
    (after,), stopped = run_here(problem, [run], schedule, listen, keep=pause)
    if stopped is not None:
        raise stopped
    return after, pause is None or run.key in pause.ended


def run_on(
    executor: Executor,
    problem: Problem[S],
    runs: Sequence[Run],
    schedule: S,
    report: Report | None = None,
    keep: Pause | None = None,
) -> tuple[list[Run], BaseException | None]:
    """Let each run continue as one task of an executor; after an interrupt, the runs that had ended are kept.

    With `keep`, a task ends when it is due, and the next goes on from there.
    """
    after = list(runs)
    going = [chain for chain, run in enumerate(runs) if keep is None or run.key not in keep.ended]
    ended = len(runs) - len(going)
    user_call = _UserCalls()
    stopped: BaseException | None = None
    while going and stopped is None:
        calls = [(problem, after[chain].without_draws(), schedule, keep and keep.interval) for chain in going]
        tasks = Tasks(executor, run_task, calls, [f"chain-{chain}" for chain in going])
        asked, going = going, []

        def take(place: int, found: tuple[Run, bool], asked: list[int] = asked, going: list[int] = going) -> None:
            chain = asked[place]
            after[chain] = found[0].after(after[chain])
            if not found[1]:
                going.append(chain)
            elif keep is not None:
                keep.ended.add(runs[chain].key)

        try:
            with tasks:
                for place, found in tasks:
                    take(place, found)
                    ended += found[1]
                    if report is not None and found[1]:
                        user_call(report, ended, len(runs))
        except BaseException as error:
            if keep is None and not user_call.is_request(error):
                raise
            stopped = error
        for place, found in tasks.ended():
            take(place, found)
        if keep is not None and (going or stopped is not None):
            keep.save(after)
        if stopped is not None and not user_call.is_request(stopped):
            raise stopped
    return after, stopped
