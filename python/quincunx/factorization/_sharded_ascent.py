"""Coordinate ascents whose rows are in several places: shards have the rows, the client the laws of the other axes.

    shard s, its rows r:    shape_rk = a_rk + sum_v E[y_rvk],  rate_rk = b_rk + sum_v E phi_vk - what is held out
                            sends sum_r E[y_rvk] and sum_r E theta_rk; with cells held out the latter over these alone
    client:                 shape_vk = c_vk + sums over shards, rate_vk = d_vk likewise, which it sends

Of a tensor the axes behind the first, and a dense core, take a round each, one after the other.

Where counts are overdispersed rates are multiplied cell by cell, and what a factor is exposed to is a sum over shards
that takes a round of its own; the shapes of the multipliers are set at the end of an iteration, those of rows where the
rows are.

The bound's parts of cells and of rows' laws are sums over shards as well. All add up without rounding from blocks of
128 rows on: expected counts as whole multiples of 2^-64, the others exactly. So nothing depends on how many shards
there are; an ascent in one process, whose sums round, differs by rounding.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Arrays, Backend, Floats, Report, Run, Schedule, Single
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import BEFORE, Problem, gammas
from quincunx.factorization._row_shards import (
    RowPrior,
    RowShard,
    ShardData,
    SharedPriors,
    Together,
    prior_of_rows,
    set_shapes,
    shapes_of,
    state_of_rows,
    together,
    without_rows,
)
from quincunx.factorization._rows import Laws, flat_priors


def _ascent(problem: Problem, key: tuple[int, int]) -> _core.CoordinateAscent:
    problem = replace(problem, priors=flat_priors(problem.priors))
    return _core.CoordinateAscent(*problem.arguments(Run(key)), key)


#: Counts of a shard in digits, with the largest multiplier.
_Counts: TypeAlias = tuple[Array, float]
#: Iterations, shared laws, priors, shapes of multipliers, exposures, and bounds.
_Place: TypeAlias = tuple[int, list[Laws], list[Laws], Floats | None, Floats, int]


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
        """Set the laws of the rows of an ascent, their prior where it is learnt, and the shapes of multipliers."""
        self._ascents[i].set_factor(0, rows["shape_0"], rows["rate_0"])
        self.set_shapes(i, rows.get("dispersion"))
        if (prior := prior_of_rows(rows)) is not None:
            self._ascents[i].set_prior(0, *prior)

    def set_shapes(self, i: int, shapes: Floats | None) -> None:
        """Set the shapes of the multipliers of an ascent, if there are any."""
        if (dispersion := self._part.problem.dispersion) is not None and shapes is not None:
            self._ascents[i].set_dispersion(*dispersion.arguments(shapes))

    def set_shared(self, i: int, shared: list[Laws]) -> None:
        """Set the laws of the other factors of an ascent."""
        for factor, laws in enumerate(shared, 1):
            self._ascents[i].set_factor(factor, *laws)

    def iterate(
        self, i: int, shared: list[Laws], prior: RowPrior | None, shapes: Floats | None, step: bool
    ) -> tuple[Array, Array, _Counts | None]:
        """Return the bound's parts given the shared laws, and the rows' prior and the shapes of multipliers if learnt.

        After a step of the rows also the sums that this prior is set by, and counts of the second factor.
        """
        self.set_shared(i, shared)
        self.set_shapes(i, shapes)
        ascent = self._ascents[i]
        if prior is not None:
            ascent.set_prior(0, *prior)
        return *ascent.shard_step(step, self._threads), ascent.shard_counts(1, self._threads) if step else None

    def counts(self, i: int, factor: int, before: Laws) -> _Counts:
        """Return counts of a factor, given the laws of the one before, and the largest multiplier."""
        ascent = self._ascents[i]
        ascent.set_factor(factor - 1, *before)
        return ascent.shard_counts(factor, self._threads)

    def sums(self, i: int) -> Array:
        """Return the sums over the rows of their means."""
        return self._ascents[i].row_sums()

    def exposures(self, i: int, factor: int, sums: Floats, largest: float) -> Floats:
        """Return what a factor is exposed to where cells have multipliers, given sums over all rows and the largest."""
        return self._ascents[i].weighted_exposures(factor, sums, largest, self._threads)

    def shape_sums(self, i: int) -> Array:
        """Set the shapes that rows have, and return what cells say of those that are shared."""
        return self._ascents[i].shape_sums()

    def held(self, i: int, factor: int, sums: Floats) -> Floats:
        """Return what a factor is exposed to in the cells held out, given the sums over all rows."""
        return self._ascents[i].held_exposures(factor, sums)

    def rows(self, i: int) -> Arrays:
        """Return what `set_rows` sets, by the names of a state."""
        ascent = self._ascents[i]
        names = {"": ascent.factors()[0]} | ({"prior_": ascent.priors()[0]} if self._part.problem.learnt else {})
        shapes = ascent.dispersion()
        return {
            f"{of}{name}_0": array
            for of, both in names.items()
            for name, array in zip(("shape", "rate"), both, strict=True)
        } | ({} if shapes is None else {"dispersion": shapes})

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
        self._dispersion = problem.dispersion
        if self._dispersion is not None:
            set_shapes(self._client, self._dispersion, run.state.get("dispersion", 1 / self._dispersion.values))
        self._shared: list[Laws] = self._client.factors()[1:]
        self._holds = whole[3] > 0 and not problem.imputes
        if run.state:
            self._share(gammas(run)[1:])
            rows = [state_of_rows(problem, run.state, edge) for edge in ascents.edges]
            ascents.where.each("set_rows", [(i, own) for own in rows])
            ascents.where.call("set_shared", i, self._shared)
            if "prior_shape_0" in run.state:
                self._priors.all = gammas(run, "prior_")
        self._elbo = list(run.step_statistics.get("elbo", ()))
        self._iteration, self._converged = run.iteration, False
        self._exposure = np.zeros(0) if problem.dispersion else self._exposed(len(self._shared), self._sums())

    @property
    def _shapes(self) -> Floats | None:
        """What shards are told of shapes of multipliers: those that are learnt and that rows share."""
        return self._client.dispersion() if self._dispersion is not None and self._dispersion.is_shared else None

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._iteration

    @property
    def place(self) -> _Place:
        """What the ascent needs to go back to where it is."""
        return self._iteration, list(self._shared), self._priors.all, self._shapes, self._exposure, len(self._elbo)

    @place.setter
    def place(self, place: _Place) -> None:
        self._iteration, shared, self._priors.all, shapes, self._exposure, bounds = place
        self._share(shared)
        if self._dispersion is not None and shapes is not None:
            set_shapes(self._client, self._dispersion, shapes)
        del self._elbo[bounds:]

    def _share(self, shared: Sequence[Laws]) -> None:
        """Set the laws of the shared factors here."""
        self._shared = list(shared)
        for factor, laws in enumerate(shared, 1):
            self._client.set_factor(factor, *laws)

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
        found = where.call("iterate", self._i, self._shared, self._priors.of_rows, self._shapes, True)
        bounds, of_prior, told = map(list, zip(*found, strict=True))
        if len(self._elbo) < self._iteration:
            self._elbo.append(self._bound(bounds))
        self._priors.learn_of_rows(self._client.maximize_prior, of_prior)
        sums = self._sums()
        for factor in range(1, len(problem.priors)):
            if factor > 1:
                told = where.call("counts", self._i, factor, self._shared[factor - 2])
            digits, largest = zip(*told, strict=True)
            counts = _counts(digits).reshape(self._shared[factor - 1][0].shape)
            if self._dispersion is None:
                self._exposure = self._exposed(factor, sums)
            else:
                self._exposure = np.sum(where.call("exposures", self._i, factor, sums, max(largest)), axis=0)
            prior = self._client.priors()[factor]
            shape, rate = (part if part.size <= 1 else part.reshape(counts.shape) for part in prior)
            shape = shape + counts
            dirichlet = problem.dirichlet[factor]
            rate = np.broadcast_to(shape.sum(axis=0), shape.shape).copy() if dirichlet else rate + self._exposure
            self._shared[factor - 1] = shape, rate
            self._client.set_factor(factor, shape, rate)
            self._client.maximize_prior(factor)
        if self._dispersion is not None:
            of_shapes = shards.total(where.call("shape_sums", self._i))
            if len(of_shapes):
                self._client.maximize_shapes(of_shapes)
        self._iteration += 1

    def close(self) -> None:
        """Add the bound after the last iteration, unless it is there."""
        if len(self._elbo) < self._iteration:
            given = self._shared, self._priors.of_rows, self._shapes, False
            found = self._ascents.where.call("iterate", self._i, *given)
            self._elbo.append(self._bound([bounds for bounds, _, _ in found]))

    def _bound(self, parts: Sequence[Array]) -> float:
        cells, rows = shards.exact(parts)
        shape, rate = self._shared[-1]
        bound = cells - rows + self._client.log_prior_of_shapes()
        if self._dispersion is None:
            bound -= (self._exposure * (shape / rate)).sum()
        for factor in range(1, 1 + len(self._shared)):
            bound += self._client.log_prior(factor) - self._client.divergence(factor)
        if (prior := self._priors.of_rows) is not None:
            bound -= prior[0] + (0.0 if prior[1] is None else prior[1][0])  # rates of rows are with their laws
        return float(bound)

    def _sums(self) -> Floats:
        """Return the sums over all rows of their means."""
        return shards.exact(self._ascents.where.call("sums", self._i))

    def _exposed(self, factor: int, sums: Floats) -> Floats:
        """Return what a factor is exposed to, given the sums over all rows."""
        exposure = self._client.shared_exposures(factor, sums)
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
        state |= self._priors.state(rows) | shapes_of(self._client, self._dispersion, rows)
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
    """Return sums of whole numbers, told with two digits of 32 bits behind the point."""
    whole, high, low = shards.total(parts).T
    high += low >> 32
    whole += high >> 32
    found: Floats = whole + (np.ldexp(high & (2**32 - 1), -32) + np.ldexp(low & (2**32 - 1), -64))
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
    if problem.begins_with_less_noise and not any(run.state for run in runs):
        before = Ascents(replace(problem, less_noise=True), runs, schedule, where)
        for one in before.each:
            for _ in range(BEFORE):
                before.lasting.do(one.iterate)
        states = [one.results()[0].state for one in before.each]
        begun = [{name: part for name, part in state.items() if not name.startswith("prior_")} for state in states]
        runs = [replace(run, state=state) for run, state in zip(runs, begun, strict=True)]
    return Ascents(problem, runs, schedule, where).each
