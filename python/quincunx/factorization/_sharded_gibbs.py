"""Gibbs chains whose rows are in several places: each shard has some rows, the client the factors of the other axes.

    shard s, its rows r:    y_rv ~ law(released_rv, sum_k theta_rk phi_vk), split over k: Y_rk, Y^s_vk = sum_r y_rvk
                            theta_rk ~ Gamma(a + Y_rk, b + sum_v phi_vk - what is held out)
                            sends Y^s_vk, S^s_k = sum_r theta_rk; with cells held out H^s_vk, a sum over these alone
    client:                 phi_vk ~ Gamma(c + sum_s Y^s_vk, d + S_k - H_vk), which it sends

Of a tensor phi_vk is the product of the entries of several axes: shards send counts for each of them, and the client
redraws one after the other, exposed to S_k times the sums of the others.

Every random number has the address that it has in the whole, and every sum over rows is exact from blocks of 128 rows
on, so that the draws are those of a chain in one process, bit for bit, however many shards there are. Rows are split
between such blocks. All chains live in every shard, and one round advances all.

H takes a round of its own for each axis: its terms are rounded to a multiple of 2^-50 of what all cells make, which
must be known, and then add up exactly in any order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Arrays, Backend, Floats, Report, Run, Sampler, Schedule
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import Problem, Record, gammas
from quincunx.factorization._row_shards import (
    RowPrior,
    RowShard,
    ShardData,
    SharedPriors,
    Together,
    prior_of_rows,
    together,
    without_rows,
)
from quincunx.factorization._rows import Laws


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

    def set_factor(
        self, chain: int, iteration: int, factor: Floats, noise: list[Array], prior: RowPrior | None
    ) -> None:
        """Set the rows' factor of a chain, its noise where the method keeps it, and its prior where that is learnt."""
        chains = self._chains[chain]
        chains.set_factors([factor, *chains.factors()[1:]])
        chains.iteration = iteration
        if noise:
            chains.set_noise(noise)
        if prior is not None:
            chains.set_prior(0, *prior)

    def sweep(
        self, shared: dict[int, tuple[list[Floats], RowPrior | None]]
    ) -> dict[int, tuple[list[Array], Array, Array]]:
        """Sweep some chains, given the shared factors and the rows' prior of each.

        Return the tallies of the shared factors, sums over the rows, and those that their prior is redrawn by.
        """
        found = {}
        for chain, (factors, prior) in shared.items():
            if prior is not None:
                self._chains[chain].set_prior(0, *prior)
            tallies, sums, of_prior = self._chains[chain].shard_sweep(factors, self._threads)
            found[chain] = [shards.narrow(tally) for tally in tallies], sums, of_prior
        return found

    def held(self, factor: int, given: dict[int, tuple[Floats, list[Floats] | None]]) -> dict[int, Floats]:
        """Return what a factor is exposed to in the cells held out, given sums over all rows and new shared factors."""
        return {chain: self._chains[chain].held_exposures(factor, *own) for chain, own in given.items()}

    def draw(self, shared: dict[int, list[Floats]]) -> dict[int, tuple[Array, Floats, Floats]]:
        """Return the log-likelihood, unrounded, and the rows' factor and rates of some chains, given the others."""
        found = {}
        for chain, factors in shared.items():
            one = self._chains[chain]
            rates = one.priors()[0][1][:: factors[0].shape[1]]
            found[chain] = one.exact_likelihood(factors, self._threads), one.factors()[0], rates
        return found

    def chains(self) -> list[tuple[int, Floats, list[Array], Floats]]:
        """Return where each chain is: its iteration, the rows' factor, the noise, and the rates of the rows' prior."""
        return [(chain.iteration, chain.factors()[0], chain.noise(), chain.priors()[0][1]) for chain in self._chains]

    def state(self) -> Any:
        """Return a copy of all that a shard made anew needs."""
        shapes = [chain.priors()[0][0] for chain in self._chains]
        return self._place, list(zip(self.chains(), shapes, strict=True))

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        place, chains = state
        if self._place is None:
            self.begin(*place)
        for number, ((iteration, factor, noise, rate), shape) in enumerate(chains):
            prior = (float(shape[0]), rate) if self._part.problem.learnt else None
            self.set_factor(number, iteration, factor, noise, prior)


@dataclass(eq=False)
class _SharedChain:
    """A chain as the client has it: the shared factors, and what was kept."""

    chain: _core.GibbsChain
    priors: SharedPriors
    factors: list[Floats]
    record: Record
    filled: int

    @property
    def iteration(self) -> int:
        """Sweeps done."""
        return self.chain.iteration

    @property
    def place(self) -> tuple[int, int, list[Floats], list[Laws]]:
        """What the chain needs to go back to where it is."""
        return self.iteration, self.filled, self.factors, self.priors.all

    @place.setter
    def place(self, place: tuple[int, int, list[Floats], list[Laws]]) -> None:
        self.chain.iteration, self.filled, self.factors, self.priors.all = place
        self.chain.set_factors([self.chain.factors()[0], *self.factors])


class ShardedGibbs(Together, Sampler):
    """All chains of a fit together, a `Sampler`; leaves the same runs as `GibbsSampler` does of each."""

    each: list[_SharedChain]

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> None:
        self._threads = _check.threads(schedule.threads)
        super().__init__(problem, runs, schedule, where)

    def _start(self, parts: Sequence[ShardData], runs: Sequence[Run]) -> None:
        problem, where = self.problem, self.where
        where.start(GibbsShard, parts, [part.bytes(self._threads) for part in parts])
        facts, held = zip(*where.call("facts"), strict=True)
        whole = together(facts)
        cells = math.prod(problem.data.shape)
        self._all_held = [shards.total(parts) == cells // max(1, len(parts[0])) for parts in zip(*held, strict=True)]
        self._holds = whole[3] > 0 and not problem.imputes
        where.each("begin", [(first, whole) for first, _ in self.edges])
        self.each = [self._shared(run, whole) for run in runs]
        for number, run in enumerate(runs):
            if run.state:
                where.each("set_factor", self._states(number, run))

    def _states(self, number: int, run: Run) -> Iterator[tuple[Any, ...]]:
        """Yield for each shard what its chain of a run continues from."""
        cols = math.prod(self.problem.data.shape[1:])
        noise = [run.state[name] for name in ("noise_0", "noise_1") if name in run.state]
        if self.problem.method != "bessel":
            noise = []
        for first, last in self.edges:
            own = [np.ascontiguousarray(one[first * cols : last * cols]) for one in noise]
            factor, prior = run.state["factor_0"][first:last], prior_of_rows(self.problem, run.state, (first, last))
            yield number, run.iteration, np.ascontiguousarray(factor), own, prior

    def _shared(self, run: Run, whole: Any) -> _SharedChain:
        """Return what the client has of a run."""
        problem = replace(without_rows(self.problem), method="collapsed")
        chain = _core.GibbsChain(*problem.arguments(Run(run.key)), run.key)
        chain.place(0, whole)
        priors = SharedPriors(chain, problem)
        if run.state:
            names = [f"factor_{factor}" for factor in range(1, len(self.problem.layout.factors))]
            chain.set_factors([chain.factors()[0], *(run.state[name] for name in names)])
            if problem.learnt:
                priors.all = gammas(run, "prior_")
        chain.iteration = run.iteration
        return _SharedChain(chain, priors, chain.factors()[1:], Record(self.problem, run, self.schedule), len(run.kept))

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
        found = self.where.call("sweep", {i: (one.factors, one.priors.of_rows) for i, one in active.items()})
        sums = {i: shards.exact(shard[i][1] for shard in found) for i in active}
        for number, all_held in enumerate(self._all_held):
            tallies = {i: shards.total(shard[i][0][number] for shard in found).astype(np.uint64) for i in active}
            held = dict.fromkeys(active, np.empty((0, self.problem.layout.n_components)))
            if self._holds:
                # The first time shards have the shared factors, of the sweep.
                given = {i: (sums[i], one.factors if number else None) for i, one in active.items()}
                of_shards = self.where.call("held", number + 1, given)
                for i in active:
                    held[i] = np.sum([shard[i] for shard in of_shards if len(shard[i])], axis=0)
                    held[i][all_held] = np.inf
            for i, one in active.items():
                rate = one.chain.redraw_shared(number + 1, tallies[i], sums[i], held[i], self._threads)
                one.factors = one.chain.factors()[1:]
                step = one.iteration
                # Of the last factor they are those of the sweep.
                one.record.total_rate[step - 1], one.record.total_count[step - 1] = rate, tallies[i].sum()
        if self.problem.learnt:
            for i, one in active.items():
                one.chain.redraw_prior(0, shards.total(shard[i][2] for shard in found))
        n_warmup, thin = self.schedule.n_warmup, self.schedule.thin
        kept = {i: one for i, one in active.items() if one.iteration > n_warmup and one.iteration % thin == 0}
        if kept:
            self._keep({i: one.factors for i, one in kept.items()})

    def _keep(self, drawn: dict[int, list[Floats]]) -> None:
        """Keep a draw of some chains."""
        of_shards = self.where.call("draw", drawn)
        for i, factors in drawn.items():
            one = self.each[i]
            place, record = one.filled, one.record
            for (first, last), shard in zip(self.edges, of_shards, strict=True):
                record.draws[0][place, first:last] = shard[i][1]
            of_priors = one.priors.draw([shard[i][2] for shard in of_shards])
            for draws, value in zip(record.draws[1:], [*factors, *of_priors], strict=True):
                draws[place] = value
            record.kept[place] = one.iteration
            record.log_likelihood[place] = shards.exact(shard[i][0] for shard in of_shards)[0]
            one.filled += 1

    def results(self) -> list[Run]:
        """Return the runs as far as they came; after a stop within a round, as far as they were remembered."""
        self.lasting.mend()
        shards_of_chains = list(zip(*self.lasting.do(lambda: self.where.call("chains")), strict=True))
        return [self._run(one, parts) for one, parts in zip(self.each, shards_of_chains, strict=True)]

    def _run(self, one: _SharedChain, parts: Sequence[tuple[int, Floats, list[Array], Floats]]) -> Run:
        state: Arrays = {"factor_0": np.concatenate([factor for _, factor, _, _ in parts])}
        state |= {f"factor_{number}": factor for number, factor in enumerate(one.factors, 1)}
        for side, noise in enumerate(zip(*(noise for _, _, noise, _ in parts), strict=True)):
            state[f"noise_{side}"] = np.concatenate(noise)
        state |= one.priors.state([rates for _, _, _, rates in parts])
        return one.record.run(one.filled, one.iteration, state)
