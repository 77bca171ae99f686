"""A chain of the core that is being run: its draws go into arrays made once, by way of a trace."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np

from quincunx import _check, _core
from quincunx._inference._runs import Arrays, Run, Schedule, Variable
from quincunx._types import Array, Floats

Report = Callable[[int, int], object]


class CoreChain(Protocol):
    """A chain of the core: what implements `Chain` there."""

    @property
    def iteration(self) -> int:
        """Steps done."""

    def run(
        self, steps: int, keep_every: int, threads: int, progress: Report | None, trace: "_core.Trace | None"
    ) -> None:
        """Take steps and write them into a trace; what is done before an exception stays."""


class ChainSampler:
    """A chain that continues a run, a `Sampler`.

    A room derives its own, names the statistics that its chain writes, and says what the chain needs to continue.
    An interrupt may come between any two lines: the core counts what is in the arrays, so that nothing is lost.

    Parameters
    ----------
    chain : CoreChain
        In the state where the run is.
    variables : sequence of Variable
        In the order in which the chain writes them.
    run : Run
    schedule : Schedule
    """

    #: Turns in which several chains advance, so that all have come equally far when they are stopped.
    rounds: ClassVar[int] = 64
    #: Names of what the chain writes for each draw and for each step, and those of them that are whole numbers.
    draw_statistics: ClassVar[tuple[str, ...]] = ()
    step_statistics: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, chain: CoreChain, variables: tuple[Variable, ...], run: Run, schedule: Schedule) -> None:
        self._chain, self._run, self._schedule = chain, run, schedule
        draws = len(run.kept) + schedule.kept_after(run.iteration)
        steps = max(schedule.until, run.iteration)
        earlier = run.draws or [np.empty((0, *variable.shape)) for variable in variables]
        self._draws = [_longer(part, draws) for part in earlier]
        self._kept = _longer(run.kept, draws)
        self._by_draw = {name: _longer(_statistic(run.draw_statistics, name), draws) for name in self.draw_statistics}
        self._by_step = {name: _longer(_statistic(run.step_statistics, name), steps) for name in self.step_statistics}
        self._trace = _core.Trace(
            [part.reshape(-1) for part in self._draws],
            self._kept,
            list(self._by_draw.values()),
            list(self._by_step.values()),
            (len(run.kept), run.iteration),
        )

    @property
    def iteration(self) -> int:
        """Steps done."""
        return self._chain.iteration

    @property
    def left(self) -> int:
        """Steps to do."""
        return max(0, self._schedule.until - self.iteration)

    def state(self) -> Arrays:
        """Return what a chain needs to continue."""
        raise NotImplementedError

    def advance(self, steps: int, report: Report | None) -> bool:
        """Take a number of steps; what is done and kept before an exception stays."""
        threads = _check.threads(self._schedule.threads)
        start = self.iteration
        end = start + steps
        for stage, keep_every in ((min(end, self._schedule.n_warmup), 0), (end, self._schedule.thin)):
            if (now := self.iteration) < stage:
                hear = report and _part(report, now - start, stage - now, steps)
                self._chain.run(stage - now, keep_every, threads, hear, self._trace)
        return False

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback hears of the last step; None for what only draws have, at a step without one."""
        draw, step = self._trace.filled
        kept = draw > 0 and self._kept[draw - 1] == step
        last: dict[str, float | None] = {
            name: self._number(name, values[step - 1]) for name, values in self._by_step.items()
        }
        for name, values in self._by_draw.items():
            last[name] = self._number(name, values[draw - 1]) if kept else None
        return last

    def _number(self, name: str, value: float) -> int | float:
        return int(value) if name in self.whole else float(value)

    def results(self) -> list[Run]:
        """Return the run as far as it came."""
        draw, step = self._trace.filled

        def cut(arrays: dict[str, Floats], length: int) -> Arrays:
            cuts = ((name, values[:length]) for name, values in arrays.items())
            return {name: values.astype(np.int64) if name in self.whole else values for name, values in cuts}

        run = replace(
            self._run,
            iteration=self.iteration,
            state=self.state(),
            draws=[part[:draw] for part in self._draws],
            kept=self._kept[:draw],
            draw_statistics=cut(self._by_draw, draw),
            step_statistics=cut(self._by_step, step),
        )
        return [run]


def _longer(part: Array, length: int) -> Array:
    """Return a new array that begins like the given one and has room for more."""
    whole = np.empty((length, *part.shape[1:]), dtype=part.dtype)
    whole[: len(part)] = part
    return whole


def _statistic(statistics: Arrays, name: str) -> Floats:
    return np.asarray(statistics.get(name, ()), dtype=np.float64)


def _part(report: Report, before: int, steps: int, total: int) -> Report:
    """Return what hears of the progress of some steps that are a part of more."""

    def hear(done: int, whole: int) -> None:
        report(before * max(whole, 1) + steps * done, total * max(whole, 1))

    return hear
