"""A first axis in several places: how it is split, what a place has, and steps that last when one is lost.

Chains (`_sharded_gibbs`) and ascents (`_sharded_ascent`) stand on it. The rows of a matrix, or the slices of a tensor
along its first axis, are split between blocks of 128; the other factors are shared.
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from quincunx import _core
from quincunx._inference import Array, Arrays, Backend, Floats, Run, Schedule, ShardLost
from quincunx._inference import _shards as shards
from quincunx.errors import WorkerError
from quincunx.factorization._chains import Problem, named_priors
from quincunx.factorization._data import Data
from quincunx.factorization._dispersion import Dispersion
from quincunx.factorization._parts import BLOCK, Lazy, Parts
from quincunx.factorization._rows import Laws

T = TypeVar("T")
E = TypeVar("E", _core.GibbsChain, _core.CoordinateAscent)
#: Shape and rate of the prior of rows, or no rate where rows have their own.
RowPrior: TypeAlias = tuple[float, Floats | None]
#: Of the time of steps, the part that remembering states may take; of the processors' it is several times as much, for
#: the client and all shards work on it (at 0.02 a tenth and more, by `bench_factorization.py --only shards`). The
#: smaller, the more is done again where a shard is lost.
_SHARE = 0.005
#: How often shards may be lost before a step is done: a step that kills its worker each time must end in an error.
_TRIES = 3


@dataclass(frozen=True, eq=False)
class ShardData:
    """What a shard begins with: some rows of the data, and the priors of all factors."""

    problem: Problem
    keys: list[tuple[int, int]]

    def bytes(self, threads: int) -> int:
        """Return about how many bytes the shard takes where it is: data, their table, factors and tallies."""
        problem, data = self.problem, self.problem.data
        cells = math.prod(data.shape)
        entries = problem.layout.entries
        if isinstance(data, Parts):
            positive, held = cells // 2, sum(data.sizes)
        else:
            positive = int((data.values > 0).sum())
            held = sum(array.nbytes for array in (data.values, data.alpha, data.held_out) if array is not None)
        state = cells * (25 if problem.method == "bessel" else 1) + 4 * positive
        if problem.dispersion is not None:
            state += (31 if problem.sampled else 40) * cells
        tables = 6 + threads + (problem.hyperpriors == "row")
        return 2 * held + cells + len(self.keys) * (state + 8 * entries * tables)

    @property
    def block(self) -> Any:
        """What Dask computes to have the data; None where they are here, or are read."""
        return getattr(self.problem.data, "block", None)

    def take(self, block: Any) -> None:
        """Have the data as they were computed."""
        data = self.problem.data
        assert isinstance(data, Lazy)
        data.take(block)


def edges_of(problem: Problem, number: int) -> list[tuple[int, int]]:
    """Return the first row of each part of the data, so many or fewer but for files, and that of the next one."""
    if isinstance(problem.data, Parts) and not isinstance(problem.data, Lazy):
        return problem.data.edges
    rows = problem.data.shape[0]
    blocks = -(-rows // BLOCK)
    number = max(1, min(number, blocks))
    return list(itertools.pairwise([min(rows, blocks * i // number * BLOCK) for i in range(number + 1)]))


def rows_of(problem: Problem, i: int, edge: tuple[int, int]) -> Problem:
    """Return the problem of the i-th part of the rows of the data; the other factors are the same."""
    data, rows = problem.data, slice(*edge)
    if isinstance(data, Parts):
        return resized(problem, data.part(i, edge), rows)

    def some(table: Array) -> Array:
        return table[rows] if table.ndim else table

    part = Data(some(data.values), some(data.alpha), None if data.held_out is None else some(data.held_out))
    return resized(problem, part, rows)


def resized(problem: Problem, data: Data, rows: slice) -> Problem:
    """Return a problem of other rows, whose priors are those of some rows."""
    layout, number = problem.layout, data.shape[0]

    def cut(prior: Floats) -> Floats:
        if prior.size <= 1:
            return prior
        return np.ascontiguousarray(prior.reshape(-1, first.shape[1])[rows]).reshape(-1)

    first, *others = layout.factors
    (shape, rate), *of_others = problem.priors
    dispersion = problem.dispersion
    if dispersion is not None and dispersion.axis == "rows":
        dispersion = replace(dispersion, values=dispersion.values[rows])
    factors = (replace(first, shape=(number, first.shape[1])), *others)
    return replace(
        problem,
        data=data,
        layout=replace(layout, extents=(number, *layout.extents[1:]), factors=factors),
        priors=[(cut(shape), cut(rate)), *of_others],
        dispersion=dispersion,
    )


def state_of_rows(problem: Problem, state: Arrays, edge: tuple[int, int]) -> Arrays:
    """Return what a state has of some rows, by the names of the whole: what all rows share is the same in each part."""
    names = ("factor_0", "shape_0", "rate_0", "noise_0", "noise_1", "prior_shape_0", "prior_rate_0", "dispersion")
    found = {}
    for name in names:
        if name in state and len(array := state[name]):
            of_columns = (
                name == "dispersion" and problem.dispersion is not None and problem.dispersion.axis == "columns"
            )
            each = 0 if of_columns else len(array) // problem.data.shape[0]
            first, last = (row * each for row in edge) if each else (0, len(array))
            found[name] = np.ascontiguousarray(array[first:last])
    return found


def prior_of_rows(state: Arrays) -> RowPrior | None:
    """Return the prior of rows that their state has, if it is learnt."""
    if "prior_shape_0" not in state:
        return None
    return float(state["prior_shape_0"][0]), state["prior_rate_0"]


def without_rows(problem: Problem) -> Problem:
    """Return what the client works on: the factors that are shared, beside a single row that is never looked at."""
    row = Data(np.zeros((1, *problem.data.shape[1:]), dtype=np.int8), np.zeros(()), None)
    return resized(problem, row, slice(0, 1))


def set_shapes(engine: E, dispersion: Dispersion, shapes: Floats) -> None:
    """Set the shapes of multipliers that a client has; of those of rows it has one, which is never looked at."""
    engine.set_dispersion(*dispersion.arguments(shapes[:1] if dispersion.axis == "rows" else shapes))


def shapes_of(engine: E, dispersion: Dispersion | None, rows: Sequence[Arrays]) -> Arrays:
    """Return the shapes of multipliers, if there are any, as a state has them, given those that shards have of rows."""
    if dispersion is None or (shapes := engine.dispersion()) is None:
        return {}
    of_rows = dispersion.axis == "rows"
    return {"dispersion": np.concatenate([own["dispersion"] for own in rows]) if of_rows else shapes}


class SharedPriors:
    """The priors that a client's engine learns; where rows have rates of their own, these are where the rows are."""

    def __init__(self, engine: _core.GibbsChain | _core.CoordinateAscent, problem: Problem) -> None:
        self._engine, self._learnt, self._by_row = engine, problem.learnt, problem.hyperpriors == "row"
        self._elsewhere = self._by_row or problem.priors[0][1].size > 1
        self._widths = [factor.shape[1] for factor in problem.layout.factors]
        if problem.hyperpriors is not None:
            engine.learn_priors(problem.hyperpriors)

    @property
    def all(self) -> list[Laws]:
        """Shapes and rates of all priors; no rates of rows that have their own."""
        (shape, rate), *others = self._engine.priors()
        return [(shape, rate[:0] if self._elsewhere else rate), *others]

    @all.setter
    def all(self, priors: Sequence[Laws]) -> None:
        self._elsewhere = self._by_row or priors[0][1].size != 1
        for factor in self._learnt:
            shape, rate = priors[factor]
            has_rate = rate.size > 0 and not (self._elsewhere and factor == 0)
            self._engine.set_prior(factor, float(shape[0]), rate if has_rate else None)

    @property
    def of_rows(self) -> RowPrior | None:
        """What shards are told of the rows' prior, if it is learnt: its shape, and its rate unless it is a row's."""
        if not self._learnt:
            return None
        shape, rate = self.all[0]
        return float(shape[0]), None if self._elsewhere else rate

    def learn_of_rows(self, learn: Callable[[int, Array], None], rows: Sequence[Array]) -> None:
        """Have the engine learn the rows' prior, given what shards say of it."""
        if self._learnt:
            learn(0, shards.total(rows))
            self._elsewhere = self._by_row

    def draw(self, rows: Sequence[Arrays]) -> list[Floats]:
        """Return a draw of what is learnt, as columns, given the rate of each row of the shards."""
        found = []
        for factor, (shape, rate) in enumerate(self.all if self._learnt else ()):
            found.append(shape.reshape(-1, 1))
            if self._by_row:
                of_rows = [rate[:: self._widths[factor]]] if factor else [own["prior_rate_0"] for own in rows]
                rate = np.concatenate(of_rows)
            found += [rate.reshape(-1, 1)] if rate.size else []
        return found

    def state(self, rows: Sequence[Arrays]) -> Arrays:
        """Return what a state has of the priors, given the rates of all entries of the rows of shards."""
        if not self._learnt:
            return {}
        priors, rates = self.all, [own["prior_rate_0"] for own in rows]
        if self._elsewhere:
            # Before the first sweep each shard may have one rate, that of all rows.
            alike = sum(map(len, rates)) == len(rates)
            priors[0] = priors[0][0], rates[0] if alike else np.concatenate(rates)
        return named_priors(priors)


class RowShard:
    """What a place has: the rows of a part, and where they stand in the whole."""

    def __init__(self, part: ShardData, threads: int) -> None:
        self._part, self._threads = part, threads
        self._place: tuple[int, Any] | None = None

    def learning(self, engine: E) -> E:
        """Have an engine learn what the problem says: the priors, and the dispersion."""
        problem = self._part.problem
        if problem.hyperpriors is not None:
            engine.learn_priors(problem.hyperpriors)
        if problem.dispersion is not None:
            engine.set_dispersion(*problem.dispersion.arguments())
        return engine

    def facts(self) -> tuple[Any, list[Array]]:
        """Return what must be known of all parts, and for each factor but the first how many cells its rows are in."""
        data, layout = self._part.problem.data, self._part.problem.layout
        extents = layout.extents if layout.model == "cp" else data.shape  # weights are an axis of their own
        axes, cells = range(len(extents)), math.prod(extents)
        observed = [np.full(extent, cells // extent) for extent in extents[1:]]
        if data.held_out is not None:
            out = data.held_out.reshape(extents)
            for own, counts in zip(axes[1:], observed, strict=True):
                counts -= out.sum(axis=tuple(axis for axis in axes if axis != own))
        if layout.model != "cp":  # all of the core is in all cells
            observed.append(np.full(layout.factors[-1].length, observed[0].sum()))
        return data.counts.facts(), observed


class Together:
    """All runs of a fit, whose rows are where a backend has them, as the client has them."""

    #: The runs since all shards were started, each with the `iteration` where it is, and its `place`.
    each: list[Any]

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> None:
        self.problem, self.schedule, self.where = problem, schedule, where
        self.edges = edges_of(problem, where.number)
        keys = [run.key for run in runs]
        parts = [ShardData(rows_of(problem, i, edge), keys) for i, edge in enumerate(self.edges)]
        self.lasting = Lasting(where, self, lambda: self._start(parts, runs))

    def _start(self, parts: Sequence[ShardData], runs: Sequence[Run]) -> None:
        """Bring all shards to where the runs are."""
        raise NotImplementedError

    @property
    def place(self) -> Any:
        """What the client's part of all runs needs to go back to where it is."""
        return [one.place for one in self.each]

    @place.setter
    def place(self, place: Any) -> None:
        for one, own in zip(self.each, place, strict=True):
            one.place = own

    def iterations(self) -> list[int]:
        """Return how many iterations of each run are done."""
        return [one.iteration for one in self.each]

    def catch_up(self, iterations: Sequence[int]) -> None:
        """Do what is missing to so many iterations of each run."""
        raise NotImplementedError


class Lasting:
    """Steps that last: where a shard is lost, all runs go back to what was remembered, and do again what came since.

    Parameters
    ----------
    where : Backend
    runs : Together
    start : callable
        Starts all shards.

    Raises
    ------
    WorkerError
        If shards were lost several times before a step was done.
    """

    def __init__(self, where: Backend, runs: Together, start: Callable[[], None]) -> None:
        self._where, self._runs, self._torn = where, runs, False
        for left in reversed(range(_TRIES)):
            try:
                start()
                self.remember()
                break
            except ShardLost as error:
                if not left:
                    raise WorkerError(f"shards were lost {_TRIES} times before the first step: {error}") from error

    def remember(self) -> None:
        """Make the states where all runs are those that they can go back to."""
        start = time.monotonic()
        self._where.remember(self._runs.place)
        self._since = time.monotonic()
        self._cost = self._since - start

    def do(self, step: Callable[[], T]) -> T:
        """Take a step, from where all runs are when it is called."""
        return self._do(step, self._runs.iterations(), 0)

    def mend(self) -> None:
        """After a step that was stopped, go back to what was remembered."""
        if self._torn:
            self._do(lambda: None, None, 1)

    def _do(self, step: Callable[[], T], done: Sequence[int] | None, lost: int) -> T:
        while True:
            self._torn = True
            try:
                if lost:
                    self._runs.place = self._where.restore()
                    if done is not None:
                        self._runs.catch_up(done)
                found = step()
                if time.monotonic() - self._since > self._cost / _SHARE:
                    self.remember()
                self._torn = False
                return found
            except ShardLost as error:
                if lost == _TRIES:
                    raise WorkerError(f"shards were lost {lost + 1} times before a step was done: {error}") from error
                lost += 1


def together(facts: Sequence[Any]) -> Any:
    """Return what is to be known of the whole, as the core takes it, from the same of its parts."""
    rows, totals, positive, held_out, alphas, ranges = zip(*facts, strict=True)
    one = alphas[0] if len(set(alphas)) == 1 else None
    least, greatest = zip(*ranges, strict=True)
    return sum(rows), sum(totals), sum(positive), sum(held_out), one, (min(least), max(greatest))
