"""Fits of a matrix, or a tensor, whose rows are in several places."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quincunx._inference import Backend, Run, Sampler, Schedule
from quincunx._inference import _shards as shards
from quincunx.factorization import _sharded_ascent
from quincunx.factorization._chains import Problem
from quincunx.factorization._sharded_gibbs import ShardedGibbs


def check(problem: Problem) -> None:
    """Refuse a problem whose rows cannot be in several places."""
    what = None
    if problem.layout.model not in ("cp", "tucker"):
        what = "a matrix or tensor with a factor for each axis alone, given which rows of the first are independent"
    elif problem.inference == "svi" or (problem.inference == "vi" and problem.method != "collapsed"):
        what = 'Gibbs sampling, or variational inference by the method "collapsed"'
    if what is not None:
        raise ValueError(f"`client` must be None but for {what}")


@dataclass(frozen=True, eq=False)
class Sharded:
    """A problem whose rows are in several places."""

    problem: Problem
    backend: Backend

    @property
    def sampled(self) -> bool:
        """Whether runs are chains."""
        return self.problem.sampled

    @property
    def variables(self) -> tuple[Any, ...]:
        """The factors."""
        return self.problem.variables

    def samplers(self, runs: Sequence[Run], schedule: Schedule) -> Sequence[Sampler]:
        """Return what continues all runs."""
        if self.problem.inference == "vi":
            return _sharded_ascent.samplers(self.problem, runs, schedule, self.backend)
        return [ShardedGibbs(self.problem, runs, schedule, self.backend)]


@contextmanager
def sharded(problem: Problem, client: Any, threads: int | None) -> Iterator[Sharded]:
    """Have a problem in shards for as long as the context lasts."""
    check(problem)
    with shards.backend(client, threads) as where:
        yield Sharded(problem, where)
