"""Coordinate ascents whose rows are in several places: shards have the rows, the client the laws of the other axes.

    shard s, its rows r:    shape_rk = a_rk + sum_v E[y_rvk],  rate_rk = b_rk + sum_v E phi_vk - what is held out
                            sends sum_r E[y_rvk] and sum_r E theta_rk; with cells held out the latter over these alone
    client:                 shape_vk = c_vk + sums over shards, rate_vk = d_vk likewise, which it sends

Of a tensor the axes behind the first take a round each, one after the other.

The bound's parts of cells and of rows' laws are sums over shards as well. All add up without rounding from blocks of
128 rows on: expected counts as whole multiples of 2^-64, the others exactly. So nothing depends on how many shards
there are; an ascent in one process, whose sums round, differs by rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Arrays, Backend, Floats, Report, Run, Schedule, Single
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import Problem, gammas
from quincunx.factorization._row_shards import (
    RowPrior,
    RowShard,
    ShardData,
    SharedPriors,
    Together,
    prior_of_rows,
    state_of_rows,
    together,
    without_rows,
)
from quincunx.factorization._rows import Laws, flat_priors


def _ascent(problem: Problem, key: tuple[int, int]) -> _core.CoordinateAscent:
    counts, layout = problem.data.counts, problem.layout
    priors = flat_priors(problem.priors)
    return _core.CoordinateAscent(counts, "cp", list(layout.extents), layout.n_components, priors, "collapsed", key)


class AscentShard(RowShard):
    """The rows of a part, with an ascent for each run."""

    def __init__(self, part: ShardData, threads: int) -> None:
        super().__init__(part, threads)
        self._ascents = [self.learning(_ascent(part.problem, key)) for key in part.keys]

    def begin(self, first_row: int, whole: Any) -> None:
        """Take the place in the whole, at the start of all ascents."""
        self._place = first_row, whole
        for ascent, key in zip(self._ascents, self._part.keys, strict=True):
            ascent.place(first_row, whole, key)

    def set_rows(self, i: int, rows: Arrays) -> None:
        """Set the laws of the rows of an ascent, and their prior where it is learnt."""
        self._ascents[i].set_factor(0, rows["shape_0"], rows["rate_0"])
        if (prior := prior_of_rows(rows)) is not None:
            self._ascents[i].set_prior(0, *prior)

    def set_shared(self, i: int, shared: list[Laws]) -> None:
        """Set the laws of the other factors of an ascent."""
        for factor, laws in enumerate(shared, 1):
            self._ascents[i].set_factor(factor, *laws)

    def iterate(
        self, i: int, shared: list[Laws], prior: RowPrior | None, step: bool
    ) -> tuple[Array, Array, Array | None]:
        """Return the bound's parts given the shared laws and the rows' prior where it is learnt.

        After a step of the rows also the sums that this prior is set by, and counts of the second factor.
        """
        self.set_shared(i, shared)
        ascent = self._ascents[i]
        if prior is not None:
            ascent.set_prior(0, *prior)
        return *ascent.shard_step(step, self._threads), ascent.shard_counts(1, self._threads) if step else None

    def counts(self, i: int, factor: int, before: Laws) -> Array:
        """Return counts of a factor, given the laws of the one before."""
        ascent = self._ascents[i]
        ascent.set_factor(factor - 1, *before)
        return ascent.shard_counts(factor, self._threads)

    def sums(self, i: int) -> Array:
        """Return the sums over the rows of their means."""
        return self._ascents[i].row_sums()

    def held(self, i: int, factor: int, sums: Floats) -> Floats:
        """Return what a factor is exposed to in the cells held out, given the sums over all rows."""
        return self._ascents[i].held_exposures(factor, sums)

    def rows(self, i: int) -> Arrays:
        """Return the laws of the rows of an ascent, and their prior where it is learnt, by their names in a state."""
        ascent = self._ascents[i]
        names = {"": ascent.factors()[0]} | ({"prior_": ascent.priors()[0]} if self._part.problem.learnt else {})
        return {
            f"{of}{name}_0": array
            for of, both in names.items()
            for name, array in zip(("shape", "rate"), both, strict=True)
        }

    def state(self) -> Any:
        """Return a copy of all that a shard made anew needs."""
        return self._place, [self.rows(i) for i in range(len(self._ascents))]

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        place, rows = state
        if self._place is None:
            self.begin(*place)
        for i, own in enumerate(rows):
            self.set_rows(i, own)


class ShardedAscent(Single):
    """One ascent of a fit, a `Sampler`; the shards have all of them."""

    def __init__(self, ascents: "Ascents", i: int, run: Run, whole: Any) -> None:
        problem = ascents.problem
        self._problem, self._i, self._run, self._ascents = problem, i, run, ascents
        self._schedule = ascents.schedule
        self._client = _ascent(without_rows(problem), run.key)
        self._client.place(0, whole, run.key)
        self._priors = SharedPriors(self._client, problem)
        self._shared: list[Laws] = self._client.factors()[1:]
        self._holds = whole[3] > 0 and not problem.imputes
        if run.state:
            self._shared = gammas(run)[1:]
            rows = [state_of_rows(problem, run.state, edge) for edge in ascents.edges]
            ascents.where.each("set_rows", [(i, own) for own in rows])
            ascents.where.call("set_shared", i, self._shared)
            if problem.learnt:
                self._priors.all = gammas(run, "prior_")
        self._elbo = list(run.step_statistics.get("elbo", ()))
        self._iteration, self._converged = run.iteration, False
        self._exposure = self._exposed(len(self._shared), self._sums())

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._iteration

    @property
    def place(self) -> tuple[int, list[Laws], list[Laws], Floats, int]:
        """What the ascent needs to go back to where it is."""
        return self._iteration, list(self._shared), self._priors.all, self._exposure, len(self._elbo)

    @place.setter
    def place(self, place: tuple[int, list[Laws], list[Laws], Floats, int]) -> None:
        self._iteration, shared, self._priors.all, self._exposure, bounds = place
        self._shared = list(shared)
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
        where, problem = self._ascents.where, self._problem
        found = where.call("iterate", self._i, self._shared, self._priors.of_rows, True)
        bounds, of_prior, limbs = map(list, zip(*found, strict=True))
        if len(self._elbo) < self._iteration:
            self._elbo.append(self._bound(bounds))
        if problem.learnt:
            self._client.maximize_prior(0, shards.total(of_prior))
        sums = self._sums()
        for factor in range(1, len(problem.priors)):
            if factor > 1:
                limbs = where.call("counts", self._i, factor, self._shared[factor - 2])
            counts = _counts(limbs).reshape(self._shared[factor - 1][0].shape)
            self._exposure = self._exposed(factor, sums)
            prior = self._client.priors()[factor]
            shape, rate = (part if part.size <= 1 else part.reshape(counts.shape) for part in prior)
            shape = shape + counts
            dirichlet = problem.dirichlet[factor]
            rate = np.broadcast_to(shape.sum(axis=0), shape.shape).copy() if dirichlet else rate + self._exposure
            self._shared[factor - 1] = shape, rate
            self._client.set_factor(factor, shape, rate)
            self._client.maximize_prior(factor)
        self._iteration += 1

    def close(self) -> None:
        """Add the bound after the last iteration, unless it is there."""
        if len(self._elbo) < self._iteration:
            found = self._ascents.where.call("iterate", self._i, self._shared, self._priors.of_rows, False)
            self._elbo.append(self._bound([bounds for bounds, _, _ in found]))

    def _bound(self, parts: Sequence[Array]) -> float:
        cells, rows = shards.exact(parts)
        shape, rate = self._shared[-1]
        bound = cells - (self._exposure * (shape / rate)).sum() - rows
        for factor, laws in enumerate(self._shared, 1):
            self._client.set_factor(factor, *laws)
            bound += self._client.log_prior(factor) - self._client.divergence(factor)
        if (prior := self._priors.of_rows) is not None:
            bound -= prior[0] + (0.0 if prior[1] is None else prior[1][0])  # rates of rows are with their laws
        return float(bound)

    def _sums(self) -> Floats:
        """Return the sums over all rows of their means."""
        return shards.exact(self._ascents.where.call("sums", self._i))

    def _exposed(self, factor: int, sums: Floats) -> Floats:
        """Return what a factor is exposed to, given the sums over all rows."""
        others = [(shape / rate).sum(axis=0) for other, (shape, rate) in enumerate(self._shared, 1) if other != factor]
        exposure = np.broadcast_to(math.prod(others, start=sums), self._shared[factor - 1][0].shape).copy()
        if self._holds:
            held = [one for one in self._ascents.where.call("held", self._i, factor, sums) if len(one)]
            exposure = np.maximum(exposure - np.sum(held, axis=0), 0.0)
        return exposure

    def results(self) -> list[Run]:
        """Return the run as far as it came; after a stop within an iteration, as far as it was remembered."""
        lasting = self._ascents.lasting
        lasting.mend()
        lasting.do(self.close)
        rows = lasting.do(lambda: self._ascents.where.call("rows", self._i))
        state = {name: np.concatenate([own[name] for own in rows]) for name in ("shape_0", "rate_0")}
        state |= self._priors.state(rows)
        for factor, laws in enumerate(self._shared, 1):
            state |= {f"shape_{factor}": laws[0], f"rate_{factor}": laws[1]}
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
