"""Gibbs chains whose rows are in several places: each shard has some rows, the client the factors of the other axes.

    shard s, its rows r:    y_rv ~ law(released_rv, sum_k theta_rk phi_vk), split over k: Y_rk, Y^s_vk = sum_r y_rvk
                            theta_rk ~ Gamma(a + Y_rk, b + sum_v phi_vk - what is held out)
                            sends Y^s_vk, S^s_k = sum_r theta_rk; with cells held out H^s_vk, a sum over these alone
    client:                 phi_vk ~ Gamma(c + sum_s Y^s_vk, d + S_k - H_vk), which it sends

Of a tensor phi_vk is the product of the entries of several axes: shards send counts for each of them, and the client
redraws one after the other, exposed to S_k times the sums of the others. With a dense core components of the first axis
are not those of the others; shards split counts over all of them, and the core is the last of the shared factors.

Every random number has the address that it has in the whole, and every sum over rows is exact from blocks of 128 rows
on, so that the draws are those of a chain in one process, bit for bit, however many shards there are. Rows are split
between such blocks. All chains live in every shard, and one round advances all.

H takes a round of its own for each axis: its terms are rounded to a multiple of 2^-50 of what all cells make, which
must be known, and then add up exactly in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Arrays, Backend, Floats, Report, Run, Sampler, Schedule
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import Problem, Record, gammas, numbered
from quincunx.factorization._dispersion import Dispersion
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
from quincunx.factorization._rows import Laws

#: What shards are told before a sweep: the shared factors, and the prior of their rows where it is learnt.
Shared: TypeAlias = tuple[list[Floats], RowPrior | None]
#: The tallies of the shared factors, sums over the rows, and those that their prior is redrawn by.
_ShardSweep: TypeAlias = tuple[list[Array], Array, Array]
#: That, with all counts that were drawn and the largest multiplier of a cell.
Swept: TypeAlias = tuple[_ShardSweep, int, float]
#: Where a chain of the client is: iteration, draws kept, shared factors, priors, and shapes of the multipliers.
Place: TypeAlias = tuple[int, int, list[Floats], list[Laws], Floats | None]


class GibbsShard(RowShard):
    """The rows of a part, with a chain for each run."""

    def __init__(self, part: ShardData, threads: int) -> None:
        super().__init__(part, threads)
        arguments = part.problem.arguments(Run((0, 0)))
        self._chains = [self.learning(_core.GibbsChain(*arguments, key)) for key in part.keys]

    def begin(self, first_row: int, whole: Any) -> None:
        """Take the place in the whole, at the start of all chains."""
        self._place = first_row, whole
        for chain in self._chains:
            chain.place(first_row, whole)

    def set_rows(self, chain: int, iteration: int, rows: Arrays) -> None:
        """Set where a chain is: what its state has of the rows."""
        one = self._chains[chain]
        one.set_factors([rows["factor_0"], *one.factors()[1:]])
        one.iteration = iteration
        if "noise_0" in rows:
            one.set_noise([rows["noise_0"], rows["noise_1"]])
        if (prior := prior_of_rows(rows)) is not None:
            one.set_prior(0, *prior)
        if self._part.problem.dispersion is not None:
            one.set_dispersion(*self._part.problem.dispersion.arguments(rows["dispersion"]))

    def rows(self) -> list[tuple[int, Arrays]]:
        """Return where each chain is: its iteration, and what its state has of the rows."""
        return [(chain.iteration, self._drawn(chain) | numbered("noise", chain.noise())) for chain in self._chains]

    def _drawn(self, chain: _core.GibbsChain) -> Arrays:
        """Return what a chain has drawn of the rows, by the names of a state."""
        found: Arrays = {"factor_0": chain.factors()[0]}
        if self._part.problem.learnt:
            found["prior_shape_0"], found["prior_rate_0"] = chain.priors()[0]
        if (shapes := chain.dispersion()) is not None:
            found["dispersion"] = shapes
        return found

    def sweep(self, given: dict[int, Shared]) -> dict[int, Swept]:
        """Sweep some chains of Poisson counts, given what is shared."""
        found = {}
        for chain, (factors, prior) in given.items():
            self._told(chain, prior)
            swept = self._chains[chain].shard_sweep(factors, self._threads)
            found[chain] = _narrow(swept), int(swept[0][-1].sum()), 1.0
        return found

    def _told(self, chain: int, prior: RowPrior | None) -> None:
        if prior is not None:
            self._chains[chain].set_prior(0, *prior)

    def begin_sweep(self, given: dict[int, Shared]) -> dict[int, Array]:
        """Draw the counts of some chains that are overdispersed; return how many are larger than 0, 1, ... by shape."""
        found = {}
        for chain, (factors, prior) in given.items():
            self._told(chain, prior)
            found[chain] = shards.narrow(self._chains[chain].begin_sweep(factors, self._threads))
        return found

    def shape_sums(self, shapes: dict[int, list[list[float]]]) -> dict[int, Array]:
        """Return what the cells of some chains say besides of some values of each shape."""
        return {chain: self._chains[chain].shape_sums(own, self._threads) for chain, own in shapes.items()}

    def end_sweep(self, shapes: dict[int, Floats | None]) -> dict[int, Swept]:
        """End the sweeps that were begun, given the shapes that rows share if there are any."""
        found = {}
        for chain, own in shapes.items():
            swept, total, largest = self._chains[chain].end_sweep(own, self._threads)
            found[chain] = _narrow(swept), total, largest
        return found

    def exposures(self, factor: int, given: dict[int, tuple[Floats, float, list[Floats] | None]]) -> dict[int, Floats]:
        """Return what a factor is exposed to where cells have multipliers, given sums over all rows and the largest."""
        return {
            chain: self._chains[chain].weighted_exposures(factor, *own, self._threads) for chain, own in given.items()
        }

    def held(self, factor: int, given: dict[int, tuple[Floats, list[Floats] | None]]) -> dict[int, Floats]:
        """Return what a factor is exposed to in the cells held out, given sums over all rows and new shared factors."""
        return {chain: self._chains[chain].held_exposures(factor, *own) for chain, own in given.items()}

    def draw(self, shared: dict[int, list[Floats]]) -> dict[int, tuple[Array, Arrays]]:
        """Return the log-likelihood, unrounded, and what is drawn of the rows of some chains, given shared factors."""
        found = {}
        for chain, factors in shared.items():
            own = self._drawn(self._chains[chain])
            if "prior_rate_0" in own:
                own["prior_rate_0"] = own["prior_rate_0"][:: own["factor_0"].shape[1]]
            found[chain] = self._chains[chain].exact_likelihood(factors, self._threads), own
        return found

    def state(self) -> Any:
        """Return a copy of all that a shard made anew needs."""
        return self._place, self.rows()

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        place, chains = state
        if self._place is None:
            self.begin(*place)
        for number, where in enumerate(chains):
            self.set_rows(number, *where)


def _narrow(swept: "_ShardSweep") -> "_ShardSweep":
    tallies, sums, of_prior = swept
    return [shards.narrow(tally) for tally in tallies], sums, of_prior


@dataclass(eq=False)
class _SharedChain:
    """A chain as the client has it: the shared factors, and what was kept."""

    chain: _core.GibbsChain
    dispersion: Dispersion | None
    priors: SharedPriors
    factors: list[Floats]
    record: Record
    filled: int

    @property
    def iteration(self) -> int:
        """Sweeps done."""
        return self.chain.iteration

    @property
    def place(self) -> Place:
        """What the chain needs to go back to where it is."""
        return self.iteration, self.filled, self.factors, self.priors.all, self.chain.dispersion()

    @place.setter
    def place(self, place: Place) -> None:
        self.chain.iteration, self.filled, self.factors, self.priors.all, shapes = place
        self.chain.set_factors([self.chain.factors()[0], *self.factors])
        if self.dispersion is not None and shapes is not None:
            set_shapes(self.chain, self.dispersion, shapes)


class ShardedGibbs(Together, Sampler):
    """All chains of a fit together, a `Sampler`; leaves the same runs as `GibbsSampler` does of each."""

    each: list[_SharedChain]

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> None:
        self._threads = _check.threads(schedule.threads)
        super().__init__(problem, runs, schedule, where)

    def _start(self, parts: Sequence[ShardData], runs: Sequence[Run]) -> None:
        problem, where = self.problem, self.where
        where.start(GibbsShard, parts, [part.bytes(self._threads) for part in parts])
        facts, observed = zip(*where.call("facts"), strict=True)
        whole = together(facts)
        self._all_held = [shards.total(parts) == 0 for parts in zip(*observed, strict=True)]
        self._holds = whole[3] > 0 and not problem.imputes
        where.each("begin", [(first, whole) for first, _ in self.edges])
        self.each = [self._shared(run, whole) for run in runs]
        for number, run in enumerate(runs):
            if run.state:
                bessel = problem.method == "bessel"
                state = {name: array for name, array in run.state.items() if bessel or not name.startswith("noise")}
                where.each(
                    "set_rows", [(number, run.iteration, state_of_rows(problem, state, edge)) for edge in self.edges]
                )

    def _shared(self, run: Run, whole: Any) -> _SharedChain:
        """Return what the client has of a run."""
        problem = replace(without_rows(self.problem), method="collapsed")
        chain = _core.GibbsChain(*problem.arguments(Run(run.key)), run.key)
        chain.place(0, whole)
        one = _SharedChain(
            chain,
            problem.dispersion,
            SharedPriors(chain, self.problem),
            [],
            Record(self.problem, run, self.schedule),
            len(run.kept),
        )
        if problem.dispersion is not None:
            set_shapes(chain, problem.dispersion, run.state.get("dispersion", 1 / problem.dispersion.values))
        if run.state:
            names = [f"factor_{factor}" for factor in range(1, len(self.problem.layout.factors))]
            chain.set_factors([chain.factors()[0], *(run.state[name] for name in names)])
            if "prior_shape_0" in run.state:
                one.priors.all = gammas(run, "prior_")
        chain.iteration = run.iteration
        one.factors = chain.factors()[1:]
        return one

    def catch_up(self, iterations: Sequence[int]) -> None:
        """Sweep until so many sweeps of each run are done."""
        while self.iterations() != iterations:
            self._sweep()

    @property
    def iteration(self) -> int:
        """Sweeps done of the first run."""
        return self.each[0].iteration

    @property
    def left(self) -> int:
        """Sweeps to do, of all runs."""
        return sum(max(0, self.schedule.until - iteration) for iteration in self.iterations())

    def advance(self, steps: int, report: Report | None) -> bool:
        """Take so many sweeps of all runs together, or a few more."""
        start = self.left
        until = max(0, start - steps)
        while self.left > until:
            self.lasting.do(self._sweep)
            if report is not None:
                report(max(0, start - self.left), start - until)
        return not self.left

    def _sweep(self) -> None:
        """Sweep all chains that have sweeps to do."""
        active = {i: one for i, one in enumerate(self.each) if one.iteration < self.schedule.until}
        overdispersed, last = self.problem.dispersion is not None, len(self._all_held) - 1
        begin = self._overdispersed if overdispersed else partial(self.where.call, "sweep")
        found = begin({i: (one.factors, one.priors.of_rows) for i, one in active.items()})
        swept = {i: [shard[i][0] for shard in found] for i in active}
        sums = {i: shards.exact(sums for _, sums, _ in swept[i]) for i in active}
        for number, all_held in enumerate(self._all_held):
            tallies = {i: shards.total(of[number] for of, _, _ in swept[i]).astype(np.uint64) for i in active}
            held, weighted = (dict.fromkeys(active, np.empty((0, self.problem.layout.n_components))) for _ in range(2))
            # The first time shards have the shared factors, of the sweep.
            fresh = {i: one.factors if number else None for i, one in active.items()}
            if overdispersed:
                largest = {i: max(shard[i][2] for shard in found) for i in active}
                given = {i: (sums[i], largest[i], fresh[i]) for i in active}
                of_shards = self.where.call("exposures", number + 1, given)
                weighted = {i: np.sum([shard[i] for shard in of_shards], axis=0) for i in active}
                fresh = dict.fromkeys(active)
            if self._holds and (number == last or not overdispersed):
                of_shards = self.where.call("held", number + 1, {i: (sums[i], fresh[i]) for i in active})
                for i in active:
                    held[i] = np.sum([shard[i] for shard in of_shards if len(shard[i])], axis=0)
                    held[i][all_held] = np.inf
            for i, one in active.items():
                both = held[i], weighted[i]
                rate = one.chain.redraw_shared(number + 1, tallies[i], sums[i], both, self._threads)
                one.factors = one.chain.factors()[1:]
                one.record.total_rate[one.iteration - 1] = rate  # of the last factor it is that of the sweep
                one.record.total_count[one.iteration - 1] = sum(shard[i][1] for shard in found)
        for i, one in active.items():
            one.priors.learn_of_rows(one.chain.redraw_prior, [of_prior for _, _, of_prior in swept[i]])
        n_warmup, thin = self.schedule.n_warmup, self.schedule.thin
        kept = {i: one for i, one in active.items() if one.iteration > n_warmup and one.iteration % thin == 0}
        if kept:
            self._keep({i: one.factors for i, one in kept.items()})

    def _overdispersed(self, given: dict[int, Shared]) -> list[dict[int, Swept]]:
        """Sweep the rows of some overdispersed chains; shapes that rows share are drawn on the way."""
        begun = self.where.call("begin_sweep", given)
        short = {i: shards.total(shard[i] for shard in begun).astype(np.uint64) for i in given}
        known = {i: [list[float]() for _ in own] for i, own in short.items()}
        learnt = self.problem.dispersion is not None and self.problem.dispersion.is_shared
        going = set(given) if learnt else set()
        while going:
            asked = {i: self.each[i].chain.redraw_shared_shapes(short[i], known[i]) for i in going}
            going = {i for i in going if any(asked[i])}
            sums = self.where.call("shape_sums", {i: asked[i] for i in going}) if going else []
            for i in going:
                found = iter(shards.exact(shard[i] for shard in sums))
                for own, values in zip(known[i], asked[i], strict=True):
                    own.extend(float(one) for _, one in zip(values, found, strict=False))
        return self.where.call("end_sweep", {i: self.each[i].chain.dispersion() if learnt else None for i in given})

    def _keep(self, drawn: dict[int, list[Floats]]) -> None:
        """Keep a draw of some chains."""
        of_shards = self.where.call("draw", drawn)
        for i, factors in drawn.items():
            one = self.each[i]
            place, record = one.filled, one.record
            for (first, last), shard in zip(self.edges, of_shards, strict=True):
                record.draws[0][place, first:last] = shard[i][1]["factor_0"]
            rows = [shard[i][1] for shard in of_shards]
            shapes = shapes_of(one.chain, one.dispersion, rows)
            others = [*factors, *(1 / own[:, None] for own in shapes.values()), *one.priors.draw(rows)]
            for draws, value in zip(record.draws[1:], others, strict=True):
                draws[place] = value
            record.kept[place] = one.iteration
            record.log_likelihood[place] = shards.exact(shard[i][0] for shard in of_shards)[0]
            one.filled += 1

    def results(self) -> list[Run]:
        """Return the runs as far as they came; after a stop within a round, as far as they were remembered."""
        self.lasting.mend()
        shards_of_chains = list(zip(*self.lasting.do(lambda: self.where.call("rows")), strict=True))
        return [
            self._run(one, [rows for _, rows in parts]) for one, parts in zip(self.each, shards_of_chains, strict=True)
        ]

    def _run(self, one: _SharedChain, rows: Sequence[Arrays]) -> Run:
        own = [name for name in ("factor_0", "noise_0", "noise_1") if name in rows[0]]
        state: Arrays = {name: np.concatenate([part[name] for part in rows]) for name in own}
        state |= numbered("factor", [state["factor_0"], *one.factors])
        state |= shapes_of(one.chain, one.dispersion, rows) | one.priors.state(rows)
        return one.record.run(one.filled, one.iteration, state)
