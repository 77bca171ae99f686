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
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Backend, Floats, Report, Run, Schedule, Single
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import Problem
from quincunx.factorization._data import Data
from quincunx.factorization._row_shards import RowShard, ShardData, Together, resized, together
from quincunx.factorization._rows import Laws, flat_priors


def _ascent(problem: Problem, key: tuple[int, int]) -> _core.CoordinateAscent:
    counts, layout = problem.data.counts, problem.layout
    priors = flat_priors(problem.priors)
    return _core.CoordinateAscent(
        counts, "cp", list(layout.extents), layout.n_components, priors, "collapsed", key, [False, True]
    )


class AscentShard(RowShard):
    """The rows of a part, with an ascent for each run."""

    def __init__(self, part: ShardData, threads: int) -> None:
        super().__init__(part, threads)
        self._ascents = [_ascent(part.problem, key) for key in part.keys]

    def begin(self, first_row: int, whole: Any) -> None:
        """Take the place in the whole matrix, at the start of all ascents."""
        self._place = first_row, whole
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
        """Return a copy of all that a shard made anew needs."""
        return self._place, [ascent.factors()[0] for ascent in self._ascents]

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        place, rows = state
        if self._place is None:
            self.begin(*place)
        for i, laws in enumerate(rows):
            self.set_rows(i, *laws)


class ShardedAscent(Single):
    """One ascent of a fit, a `Sampler`; the shards have all of them."""

    def __init__(self, ascents: "Ascents", i: int, run: Run, whole: Any) -> None:
        problem = ascents.problem
        self._problem, self._i, self._run, self._ascents = problem, i, run, ascents
        self._schedule = ascents.schedule
        cols, width = problem.data.shape[1], problem.layout.n_components
        row = Data(np.zeros((1, cols), dtype=np.int8), np.zeros(()), None)
        self._client = _ascent(resized(problem, row, slice(0, 1), 1, width), run.key)
        self._client.place(0, whole, run.key)
        self._columns: Laws = self._client.factors()[1]
        self._holds, self._dirichlet = whole[3] > 0 and not problem.imputes, problem.dirichlet[1]
        if run.state:
            self._columns = run.state["shape_1"], run.state["rate_1"]
            tables = [run.state[name] for name in ("shape_0", "rate_0")]
            ascents.where.each(
                "set_rows", [(i, *(np.ascontiguousarray(one[a:b]) for one in tables)) for a, b in ascents.edges]
            )
        self._elbo = list(run.step_statistics.get("elbo", ()))
        self._iteration, self._converged = run.iteration, False
        self._exposure = self._exposed()

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._iteration

    @property
    def place(self) -> tuple[int, Laws, Floats, int]:
        """What the ascent needs to go back to where it is."""
        return self._iteration, self._columns, self._exposure, len(self._elbo)

    @place.setter
    def place(self, place: tuple[int, Laws, Floats, int]) -> None:
        self._iteration, self._columns, self._exposure, bounds = place
        del self._elbo[bounds:]

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations; say whether the tolerance was met."""
        for done in range(steps):
            self._ascents.lasting.do(self.iterate)
            if report is not None:
                report(done + 1, steps)
            if self._schedule.settled(self._elbo):
                self._converged = True
                break
        if self._converged or not self.left:
            lasting = self._ascents.lasting
            lasting.do(self.close)
            self._converged = self._converged or self._schedule.settled(self._elbo)
            lasting.do(lasting.remember)  # what has ended does not go back when another is stopped
        return self._converged

    def iterate(self) -> None:
        """Do one."""
        found = self._ascents.where.call("iterate", self._i, self._columns, True)
        if len(self._elbo) < self._iteration:
            self._elbo.append(self._bound([parts for parts, _ in found]))
        counts = _counts([limbs for _, limbs in found]).reshape(self._columns[0].shape)
        self._exposure = self._exposed()
        shape, rate = (part if part.size <= 1 else part.reshape(counts.shape) for part in self._problem.priors[1])
        shape = shape + counts
        rate = np.broadcast_to(shape.sum(axis=0), shape.shape).copy() if self._dirichlet else rate + self._exposure
        self._columns, self._iteration = (shape, rate), self._iteration + 1

    def close(self) -> None:
        """Add the bound after the last iteration, unless it is there."""
        if len(self._elbo) < self._iteration:
            found = self._ascents.where.call("iterate", self._i, self._columns, False)
            self._elbo.append(self._bound([parts for parts, _ in found]))

    def _bound(self, parts: Sequence[Array]) -> float:
        cells, rows = shards.exact(parts)
        self._client.set_columns(*self._columns)
        shape, rate = self._columns
        return float(cells - (self._exposure * (shape / rate)).sum() - rows - self._client.divergence(1))

    def _exposed(self) -> Floats:
        """Return what the columns are exposed to, one row for each or one for all."""
        sums = shards.exact(self._ascents.where.call("sums", self._i))
        exposure = np.broadcast_to(sums, self._columns[0].shape).copy()
        if self._holds:
            held = [one for one in self._ascents.where.call("held", self._i, sums) if len(one)]
            exposure = np.maximum(exposure - np.sum(held, axis=0), 0.0)
        return exposure

    def results(self) -> list[Run]:
        """Return the run as far as it came; after a stop within an iteration, as far as it was remembered."""
        lasting = self._ascents.lasting
        lasting.mend()
        lasting.do(self.close)
        rows = zip(*lasting.do(lambda: self._ascents.where.call("rows", self._i)), strict=True)
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


class Ascents(Together):
    """All ascents of a fit."""

    each: list[ShardedAscent]

    def _start(self, parts: Sequence[ShardData], runs: Sequence[Run]) -> None:
        threads = _check.threads(self.schedule.threads)
        self.where.start(AscentShard, parts, [part.bytes(threads) for part in parts])
        whole = together([facts for facts, _ in self.where.call("facts")])
        self.where.each("begin", [(first, whole) for first, _ in self.edges])
        self.each = [ShardedAscent(self, i, run, whole) for i, run in enumerate(runs)]

    def catch_up(self, iterations: Sequence[int]) -> None:
        """Iterate until so many iterations of each are done."""
        for one, until in zip(self.each, iterations, strict=True):
            while one.iteration < until:
                one.iterate()


def samplers(problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> list[ShardedAscent]:
    """Return what continues runs of variational inference whose rows are where the backend has them."""
    return Ascents(problem, runs, schedule, where).each
