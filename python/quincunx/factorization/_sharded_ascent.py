"""Coordinate ascents of a matrix whose rows are in several places: shards have the rows, the client the columns.

    shard s, its rows r:    shape_rk = a_rk + sum_v E[y_rvk],  rate_rk = b_rk + sum_v E phi_vk - what is held out
                            sends sum_r E[y_rvk] and sum_r E theta_rk; with cells held out the latter over these alone
    client:                 shape_vk = c_vk + sums over shards, rate_vk = d_vk likewise, which it sends

The bound's parts of cells and of rows' laws are sums over shards as well. All add up without rounding from blocks of
128 rows on: expected counts as whole multiples of 2^-64, the others exactly. So nothing depends on how many shards
there are; an ascent in one process, whose sums round, differs by rounding.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Backend, Floats, Report, Run, Schedule, ShardLost
from quincunx._inference import _shards as shards
from quincunx.errors import WorkerError
from quincunx.factorization._chains import Problem, _settled
from quincunx.factorization._data import Data
from quincunx.factorization._parts import Parts
from quincunx.factorization._rows import Laws, flat_priors
from quincunx.factorization._sharded import ShardData, _edges, _resized, _together, rows_of


def edges_of(problem: Problem, where: Backend) -> list[tuple[int, int]]:
    """Return the first row of each part, and that of the next one."""
    return problem.data.edges if isinstance(problem.data, Parts) else _edges(problem, where.number)


def _ascent(problem: Problem, key: tuple[int, int]) -> _core.CoordinateAscent:
    counts, layout = problem.data.counts, problem.layout
    priors = flat_priors(problem.priors)
    return _core.CoordinateAscent(
        counts, "cp", list(layout.extents), layout.n_components, priors, "collapsed", key, [False, True]
    )


class AscentShard:
    """The rows of a part, with an ascent for each run."""

    def __init__(self, part: ShardData, threads: int) -> None:
        self._part, self._threads = part, threads
        self._ascents = [_ascent(part.problem, key) for key in part.keys]

    def facts(self) -> tuple[Any, Array]:
        """Return what must be known of all parts, and how many cells of each column are held out."""
        return self._part.problem.data.counts.facts()

    def begin(self, first_row: int, whole: Any) -> None:
        """Take the place in the whole matrix, at the start of all ascents."""
        for ascent, key in zip(self._ascents, self._part.keys, strict=True):
            ascent.place(first_row, whole, key)

    def set_rows(self, i: int, shape: Floats, rate: Floats) -> None:
        """Set the laws of the rows of an ascent."""
        ascent = self._ascents[i]
        ascent.set_factors([(shape, rate), ascent.factors()[1]])

    def iterate(self, i: int, columns: Laws, step: bool) -> tuple[Array, Array]:
        """Return the bound's parts given the columns' laws, and after a step of the rows counts of the columns."""
        ascent = self._ascents[i]
        ascent.set_columns(*columns)
        return ascent.shard_pass(step, self._threads)

    def sums(self, i: int) -> Array:
        """Return the sums over the rows of their means."""
        return self._ascents[i].row_sums()

    def held(self, i: int, sums: Floats) -> Floats:
        """Return what the columns are exposed to in the cells held out, given the sums over all rows."""
        return self._ascents[i].held_exposures(sums)

    def rows(self, i: int) -> Laws:
        """Return the laws of the rows of an ascent."""
        return self._ascents[i].factors()[0]

    def state(self) -> Any:
        """Return nothing: shards are not made anew."""

    def restore(self, state: Any) -> None:
        """Do nothing."""


class ShardedAscent:
    """One ascent of a fit, a `Sampler`; of several the backend has all."""

    rounds: ClassVar[int] = 1

    def __init__(self, problem: Problem, i: int, run: Run, schedule: Schedule, where: Backend, whole: Any) -> None:
        self._problem, self._i, self._run, self._schedule, self._where = problem, i, run, schedule, where
        cols, width = problem.data.shape[1], problem.layout.n_components
        row = Data(np.zeros((1, cols), dtype=np.int8), np.zeros(()), None)
        self._client = _ascent(_resized(problem, row, slice(0, 1), 1, width), run.key)
        self._client.place(0, whole, run.key)
        self._columns: Laws = self._client.factors()[1]
        self._holds, self._dirichlet = whole[3] > 0 and not problem.imputes, problem.dirichlet[1]
        if run.state:
            self._columns = run.state["shape_1"], run.state["rate_1"]
            edges = edges_of(problem, where)
            tables = [run.state[name] for name in ("shape_0", "rate_0")]
            where.each("set_rows", [(i, *(np.ascontiguousarray(one[a:b]) for one in tables)) for a, b in edges])
        self._elbo = list(run.step_statistics.get("elbo", ()))
        self._iteration, self._converged = run.iteration, False
        self._exposure = self._exposed()

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._iteration

    @property
    def left(self) -> int:
        """Iterations to do."""
        return max(0, self._schedule.until - self.iteration)

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations; say whether the tolerance was met."""
        try:
            for done in range(steps):
                self._iterate()
                if report is not None:
                    report(done + 1, steps)
                if _settled(np.array(self._elbo), self._schedule.tolerance):
                    self._converged = True
                    break
            self._close()
        except ShardLost as error:
            raise WorkerError(f"a shard of the rows is lost: {error}") from error
        if not self.left:
            self._converged = self._converged or _settled(np.array(self._elbo), self._schedule.tolerance)
        return self._converged

    def _iterate(self) -> None:
        found = self._where.call("iterate", self._i, self._columns, True)
        if len(self._elbo) < self._iteration:
            self._elbo.append(self._bound([parts for parts, _ in found]))
        counts = _counts([limbs for _, limbs in found]).reshape(self._columns[0].shape)
        self._exposure = self._exposed()
        shape, rate = (part if part.size <= 1 else part.reshape(counts.shape) for part in self._problem.priors[1])
        shape = shape + counts
        rate = np.broadcast_to(shape.sum(axis=0), shape.shape).copy() if self._dirichlet else rate + self._exposure
        self._columns, self._iteration = (shape, rate), self._iteration + 1

    def _close(self) -> None:
        """Add the bound after the last iteration."""
        if len(self._elbo) < self._iteration:
            found = self._where.call("iterate", self._i, self._columns, False)
            self._elbo.append(self._bound([parts for parts, _ in found]))

    def _bound(self, parts: Sequence[Array]) -> float:
        cells, rows = shards.exact(parts)
        self._client.set_columns(*self._columns)
        shape, rate = self._columns
        return float(cells - (self._exposure * (shape / rate)).sum() - rows - self._client.divergence(1))

    def _exposed(self) -> Floats:
        """Return what the columns are exposed to, one row for each or one for all."""
        sums = shards.exact(self._where.call("sums", self._i))
        exposure = np.broadcast_to(sums, self._columns[0].shape).copy()
        if self._holds:
            held = [one for one in self._where.call("held", self._i, sums) if len(one)]
            exposure = np.maximum(exposure - np.sum(held, axis=0), 0.0)
        return exposure

    def statistics(self) -> dict[str, float | None]:
        """Return nothing: there are no callbacks."""
        return {}

    def results(self) -> list[Run]:
        """Return the run as far as it came."""
        rows = zip(*self._where.call("rows", self._i), strict=True)
        shape, rate = (np.concatenate(part) for part in rows)
        state = {"shape_0": shape, "rate_0": rate, "shape_1": self._columns[0], "rate_1": self._columns[1]}
        return [
            replace(
                self._run,
                iteration=self._iteration,
                state=state,
                step_statistics={"elbo": np.array(self._elbo)},
                converged=self._converged,
            )
        ]


def _counts(parts: Sequence[Array]) -> Floats:
    """Return sums of whole multiples of 2^-64, told as multiples of 2^48 of them and the rest."""
    high, low = shards.total(parts).T
    carried = high + (low >> 48)
    found: Floats = np.ldexp(carried.astype(np.float64), -16) + np.ldexp((low & (2**48 - 1)).astype(np.float64), -64)
    return found


def samplers(problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> list[ShardedAscent]:
    """Return what continues runs of variational inference whose rows are where the backend has them."""
    threads = _check.threads(schedule.threads)
    edges, keys = edges_of(problem, where), [run.key for run in runs]
    parts = [ShardData(rows_of(problem, i, edge), keys) for i, edge in enumerate(edges)]
    where.start(AscentShard, parts, [part.bytes(threads) for part in parts])
    whole = _together([facts for facts, _ in where.call("facts")])
    where.each("begin", [(first, whole) for first, _ in edges])
    return [ShardedAscent(problem, i, run, schedule, where, whole) for i, run in enumerate(runs)]
