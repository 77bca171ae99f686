"""Gibbs chains of a matrix whose rows are in several places: each shard has some rows, the client has the columns.

    shard s, its rows r:    y_rv ~ law(released_rv, sum_k theta_rk phi_vk), split over k: Y_rk, Y^s_vk = sum_r y_rvk
                            theta_rk ~ Gamma(a + Y_rk, b + sum_v phi_vk - what is held out)
                            sends Y^s_vk, S^s_k = sum_r theta_rk; with cells held out H^s_vk, a sum over these alone
    client:                 phi_vk ~ Gamma(c + sum_s Y^s_vk, d + S_k - H_vk), which it sends

Every random number has the address that it has in the whole matrix, and every sum over rows is exact from blocks of
128 rows on, so that the draws are those of a chain in one process, bit for bit, however many shards there are. Rows are
split between such blocks. All chains live in every shard, and one round advances all.

H takes a round of its own: its terms are rounded to a multiple of 2^-50 of S_k, which must be known, and then add up
exactly in any order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Array, Arrays, Backend, Floats, Report, Run, Sampler, Schedule
from quincunx._inference import _shards as shards
from quincunx.factorization._chains import Problem, Record
from quincunx.factorization._data import Data
from quincunx.factorization._row_shards import RowShard, ShardData, Together, resized, together


class GibbsShard(RowShard):
    """The rows of a part, with a chain for each run."""

    def __init__(self, part: ShardData, threads: int) -> None:
        super().__init__(part, threads)
        problem, run = part.problem, Run((0, 0))
        self._chains = [_core.GibbsChain(*problem.arguments(run), key, [False, True]) for key in part.keys]

    def begin(self, first_row: int, whole: Any) -> None:
        """Take the place in the whole matrix, at the start of all chains."""
        self._place = first_row, whole
        for chain in self._chains:
            chain.place(first_row, whole)

    def set_factor(self, chain: int, iteration: int, factor: Floats, noise: list[Array]) -> None:
        """Set the rows' factor of a chain, and its noise where the method keeps it."""
        chains = self._chains[chain]
        chains.set_factors([factor, chains.factors()[1]])
        chains.iteration = iteration
        if noise:
            chains.set_noise(noise)

    def sweep(self, columns: dict[int, Floats]) -> dict[int, tuple[Array, Array]]:
        """Sweep some chains, given the columns' factor of each: tallies of the columns, and sums over the rows."""
        found = {}
        for chain, right in columns.items():
            tally, sums = self._chains[chain].shard_sweep(right, self._threads)
            found[chain] = shards.narrow(tally), sums
        return found

    def held(self, sums: dict[int, Floats]) -> dict[int, Floats]:
        """Return what the columns would be exposed to in the cells held out, given the sums over all rows."""
        return {chain: self._chains[chain].held_exposures(one) for chain, one in sums.items()}

    def draw(self, columns: dict[int, Floats]) -> dict[int, tuple[Array, Floats]]:
        """Return the log-likelihood, unrounded, and the rows' factor of some chains, given the columns' factor."""
        found = {}
        for chain, right in columns.items():
            one = self._chains[chain]
            found[chain] = one.exact_likelihood(right, self._threads), one.factors()[0]
        return found

    def chains(self) -> list[tuple[int, Floats, list[Array]]]:
        """Return where each chain is: its iteration, the rows' factor, and the noise."""
        return [(chain.iteration, chain.factors()[0], chain.noise()) for chain in self._chains]

    def state(self) -> Any:
        """Return a copy of all that a shard made anew needs."""
        return self._place, self.chains()

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        place, chains = state
        if self._place is None:
            self.begin(*place)
        for number, (iteration, factor, noise) in enumerate(chains):
            self.set_factor(number, iteration, factor, noise)


@dataclass(eq=False)
class _Columns:
    """A chain as the client has it: the columns' factor, and what was kept."""

    chain: _core.GibbsChain
    right: Floats
    record: Record
    filled: int

    @property
    def iteration(self) -> int:
        """Sweeps done."""
        return self.chain.iteration

    @property
    def place(self) -> tuple[int, int, Floats]:
        """What the chain needs to go back to where it is."""
        return self.iteration, self.filled, self.right

    @place.setter
    def place(self, place: tuple[int, int, Floats]) -> None:
        self.chain.iteration, self.filled, self.right = place


class ShardedGibbs(Together, Sampler):
    """All chains of a fit together, a `Sampler`; leaves the same runs as `GibbsSampler` does of each."""

    each: list[_Columns]

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule, where: Backend) -> None:
        self._threads = _check.threads(schedule.threads)
        super().__init__(problem, runs, schedule, where)

    def _start(self, parts: Sequence[ShardData], runs: Sequence[Run]) -> None:
        problem, where = self.problem, self.where
        where.start(GibbsShard, parts, [part.bytes(self._threads) for part in parts])
        facts, held = zip(*where.call("facts"), strict=True)
        whole = together(facts)
        self._all_held = shards.total(held) == whole[0]
        self._holds = whole[3] > 0 and not problem.imputes
        where.each("begin", [(first, whole) for first, _ in self.edges])
        self.each = [self._columns(run, whole) for run in runs]
        for number, run in enumerate(runs):
            if run.state:
                where.each("set_factor", self._states(number, run))

    def _states(self, number: int, run: Run) -> Iterator[tuple[Any, ...]]:
        """Yield for each shard what its chain of a run continues from."""
        cols = self.problem.data.shape[1]
        noise = [run.state[name] for name in ("noise_0", "noise_1") if name in run.state]
        if self.problem.method != "bessel":
            noise = []
        for first, last in self.edges:
            own = [np.ascontiguousarray(one[first * cols : last * cols]) for one in noise]
            yield number, run.iteration, np.ascontiguousarray(run.state["factor_0"][first:last]), own

    def _columns(self, run: Run, whole: Any) -> _Columns:
        """Return what the client has of a run: the columns beside a single row that is never looked at."""
        problem, cols = self.problem, self.problem.data.shape[1]
        row = Data(np.zeros((1, cols), dtype=np.int8), np.zeros(()), None)
        one = replace(resized(problem, row, slice(0, 1), 1, problem.layout.n_components), method="collapsed")
        chain = _core.GibbsChain(*one.arguments(run), run.key, [True, False])
        chain.place(0, whole)
        if run.state:
            chain.set_factors([chain.factors()[0], run.state["factor_1"]])
        chain.iteration = run.iteration
        return _Columns(chain, chain.factors()[1], Record(problem, run, self.schedule), len(run.kept))

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
        found = self.where.call("sweep", {i: one.right for i, one in active.items()})
        tallies = {i: shards.total(shard[i][0] for shard in found).astype(np.uint64) for i in active}
        sums = {i: shards.exact(shard[i][1] for shard in found) for i in active}
        held = dict.fromkeys(active, np.empty((0, self.problem.layout.n_components)))
        if self._holds:
            of_shards = self.where.call("held", sums)
            for i in active:
                parts = [shard[i] for shard in of_shards if len(shard[i])]
                held[i] = np.sum(parts, axis=0)
                held[i][self._all_held] = np.inf
        kept = {}
        for i, one in active.items():
            rate = one.chain.redraw_columns(tallies[i], sums[i], held[i], self._threads)
            one.right = one.chain.factors()[1]
            step = one.iteration
            one.record.total_rate[step - 1], one.record.total_count[step - 1] = rate, tallies[i].sum()
            if step > self.schedule.n_warmup and step % self.schedule.thin == 0:
                kept[i] = one.right
        if kept:
            self._keep(kept)

    def _keep(self, kept: dict[int, Floats]) -> None:
        """Keep a draw of some chains."""
        of_shards = self.where.call("draw", kept)
        for i, right in kept.items():
            one = self.each[i]
            place, record = one.filled, one.record
            for (first, last), shard in zip(self.edges, of_shards, strict=True):
                record.draws[0][place, first:last] = shard[i][1]
            record.draws[1][place] = right
            record.kept[place] = one.iteration
            record.log_likelihood[place] = shards.exact(shard[i][0] for shard in of_shards)[0]
            one.filled += 1

    def results(self) -> list[Run]:
        """Return the runs as far as they came; after a stop within a round, as far as they were remembered."""
        self.lasting.mend()
        shards_of_chains = list(zip(*self.lasting.do(lambda: self.where.call("chains")), strict=True))
        return [self._run(one, parts) for one, parts in zip(self.each, shards_of_chains, strict=True)]

    def _run(self, one: _Columns, parts: Sequence[tuple[int, Floats, list[Array]]]) -> Run:
        state: Arrays = {"factor_0": np.concatenate([factor for _, factor, _ in parts]), "factor_1": one.right}
        for side, noise in enumerate(zip(*(noise for _, _, noise in parts), strict=True)):
            state[f"noise_{side}"] = np.concatenate(noise)
        return one.record.run(one.filled, one.iteration, state)
