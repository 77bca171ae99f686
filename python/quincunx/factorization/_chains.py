"""The kinds of inference as samplers: Gibbs chains and coordinate ascents of the core, and steps by batches of rows."""

import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from quincunx import _check, _core
from quincunx._inference import Arrays, Report, Run, Sampler, Schedule, Single
from quincunx._types import Array, Floats
from quincunx.factorization._data import Data
from quincunx.factorization._dispersion import Dispersion, Shapes
from quincunx.factorization._layout import Factor, Layout, Rows
from quincunx.factorization._stochastic import Batches, StochasticSampler

#: An ascent of overdispersed counts begins with as many iterations as if the noise had this power of its ratio. Where
#: factors are nearly even at first, noise is the cheaper explanation of every count but the largest, and a law that
#: takes all counts for noise is not left, though its bound is far below others. On the network of Enron at epsilon 1/4
#: twenty iterations at the fourth power lead to 32,285 of 35,995 counts for five communities, none of them to 0.
_LESS_NOISE, BEFORE = 4, 20


@dataclass(frozen=True, eq=False)
class Problem:
    """What a run works on."""

    data: Data
    layout: Layout
    priors: list[tuple[Floats, Floats]]
    inference: str
    method: str
    dispersion: Dispersion | None = None
    #: What has a rate of its own where priors are learnt, "factor" or "row"; None where they are known.
    hyperpriors: str | None = None
    #: How stochastic inference goes through the rows.
    batches: Batches | None = None
    #: Whether the noise is taken for less than it is, as an ascent of overdispersed counts begins.
    less_noise: bool = False

    @property
    def dirichlet(self) -> list[bool]:
        """Whether the components of each factor have Dirichlet laws over its rows."""
        return [not rate.size for _, rate in self.priors]

    @property
    def imputes(self) -> bool:
        """Whether the counts of cells held out are drawn with the others."""
        return any(self.dirichlet)

    @property
    def sampled(self) -> bool:
        """Whether runs are chains."""
        return self.inference == "mcmc"

    @property
    def variables(self) -> tuple[Factor, ...]:
        """The factors, and what else is drawn."""
        if not self.sampled:
            return self.layout.factors
        own = () if self.dispersion is None else (self.dispersion.variable(self.layout),)
        return self.layout.factors + own + self.of_priors

    @property
    def learnt(self) -> list[int]:
        """Which factors' priors are learnt."""
        return [] if self.hyperpriors is None else list(self.layout.apart)

    @property
    def of_priors(self) -> tuple[Factor, ...]:
        """The shape and the rates of each prior that is learnt, or the concentration, as variables."""
        found = []
        for i in self.learnt:
            factor = self.layout.factors[i]
            if self.dirichlet[i]:
                found.append(Factor(f"{factor.name}_concentration", (1, 1), (), "folded", (None, None)))
                continue
            found.append(Factor(f"{factor.name}_shape", (1, 1), (), "folded", (None, None)))
            if self.hyperpriors == "factor" or factor.turned == "vector":
                found.append(Factor(f"{factor.name}_rate", (1, 1), (), "folded", (None, None)))
                continue
            dims = factor.dims[1:] if factor.turned == "transposed" else factor.dims[:-1]
            rows = (factor.folded or factor.shape)[:-1]
            found.append(Factor(f"{factor.name}_rate", (factor.length, 1), dims, "folded", factor.sets[:-1], rows))
        return tuple(found)

    def rates(self, draw: Sequence[Floats], threads: int, rows: Rows = None) -> Floats:
        """Return the rates of all cells or of some rows, as one row, given a draw of the variables."""
        return self.layout.rates(draw[: len(self.layout.factors)], threads, rows)

    def dispersion_at(self, draw: Sequence[Floats], cells: Array) -> Floats:
        """Return the dispersion of some cells, which are numbered row by row, given a draw of overdispersed counts."""
        assert self.dispersion is not None
        values, cols = draw[len(self.layout.factors)].reshape(-1), self.data.shape[-1]
        found: Floats = values[{"rows": cells // cols, "columns": cells % cols}.get(self.dispersion.axis, 0 * cells)]
        return found

    def between(self, means: Floats, geometric: Floats, shapes: Shapes) -> Floats:
        """Return the rates of the laws of overdispersed counts in variational inference, r G / (r + M - G)."""
        means, geometric = (table.reshape(-1, self.data.shape[-1]) for table in (means, geometric))
        r = shapes[1][:, None] if shapes[0] == "rows" else shapes[1]
        rates: Floats = r * geometric / (r + np.maximum(means - geometric, 0))
        return rates.reshape(-1)

    def shapes_at(self, draw: Sequence[Floats], cells: Array) -> Shapes | None:
        """Return what the core is told of the dispersion of some cells, which are taken for one row."""
        return None if self.dispersion is None else ("columns", 1 / self.dispersion_at(draw, cells))

    def shapes(self, draw: Sequence[Floats], rows: Rows = None) -> Shapes | None:
        """Return what the core is told of the dispersion of a draw, in all or some rows."""
        if self.dispersion is None:
            return None
        axis, shapes = self.dispersion.shapes(draw[len(self.layout.factors)])
        return axis, shapes[slice(*(rows or (None,)))] if axis == "rows" else shapes

    def samplers(self, runs: Sequence[Run], schedule: Schedule) -> Sequence[Sampler]:
        """Return what continues each run."""
        if self.batches is not None:
            matrix = self.data, self.layout.n_components, self.priors, self.batches
            return [StochasticSampler(*matrix, run, schedule) for run in runs]
        return [(GibbsSampler if self.sampled else AscentSampler)(self, run, schedule) for run in runs]

    def arguments(self, run: Run) -> tuple[_core.ReleasedCounts, str, list[int], int, list[tuple[Floats, Floats]], str]:
        """Return what both engines of the core begin with, priors as far as a run has learnt them."""
        layout, priors = self.layout, self.priors
        if "prior_shape_0" in run.state:
            priors = gammas(run, "prior_")
        data = self.data
        if self.less_noise:
            data = Data(data.values, data.alpha**_LESS_NOISE, data.held_out)
        return data.counts, layout.model, list(layout.extents), layout.n_components, priors, self.method

    @property
    def begins_with_less_noise(self) -> bool:
        """Whether runs begin as if there were less noise."""
        return self.dispersion is not None and self.data.is_noisy


def numbered(name: str, arrays: Iterable[Array]) -> Arrays:
    return {f"{name}_{i}": array for i, array in enumerate(arrays)}


def _priors(problem: Problem, engine: _core.GibbsChain | _core.CoordinateAscent) -> Arrays:
    """Return the priors of an engine, if they are learnt, as its state holds them."""
    return {} if problem.hyperpriors is None else named_priors(engine.priors())


def named_priors(priors: Iterable[tuple[Floats, Floats]]) -> Arrays:
    """Return the priors of all factors as a state holds them."""
    shapes, rates = zip(*priors, strict=True)
    return numbered("prior_shape", shapes) | numbered("prior_rate", rates)


def _with_prefix(name: str, state: Arrays) -> list[Array]:
    return [state[key] for i in range(len(state)) if (key := f"{name}_{i}") in state]


class Record:
    """What a chain keeps, in arrays made once: draws with their log-likelihoods, and of each sweep its totals."""

    def __init__(self, problem: Problem, run: Run, schedule: Schedule) -> None:
        self._run = run
        draws = len(run.kept) + schedule.kept_after(run.iteration)
        steps = max(schedule.until, run.iteration)
        earlier = run.draws or [np.empty((0, *variable.shape)) for variable in problem.variables]
        self.draws = [_longer(part, draws, schedule.draws_dir) for part in earlier]
        self.kept = _longer(run.kept, draws)
        self.log_likelihood = _longer(run.draw_statistics.get("log_likelihood", np.empty(0)), draws)
        self.total_rate, self.total_count = (
            _longer(np.asarray(run.step_statistics.get(name, ()), dtype=np.float64), steps)
            for name in ("total_rate", "total_count")
        )

    def run(self, draws: int, steps: int, state: Arrays) -> Run:
        """Return the run after so many draws and sweeps, from which the state goes on."""
        return replace(
            self._run,
            iteration=steps,
            state=state,
            draws=[part[:draws] for part in self.draws],
            kept=self.kept[:draws],
            draw_statistics={"log_likelihood": self.log_likelihood[:draws]},
            step_statistics={
                "total_rate": self.total_rate[:steps],
                "total_count": self.total_count[:steps].astype(np.int64),
            },
        )


class GibbsSampler(Single):
    """A Gibbs chain that continues a run; its state is ``factor_i`` and, with ``"bessel"``, ``noise_i``.

    The core writes the record by way of a trace. An interrupt may come between any two lines: the core counts what
    is in the arrays, so that nothing is lost.
    """

    #: Turns in which several chains advance, so that all have come equally far when they are stopped.
    rounds: ClassVar[int] = 64

    def __init__(self, problem: Problem, run: Run, schedule: Schedule) -> None:
        self._problem, self._schedule = problem, schedule
        fixed = [factor.fixed for factor in problem.layout.factors]
        chain = self._chain = _core.GibbsChain(*problem.arguments(run), run.key, fixed)
        if problem.dispersion is not None:
            chain.set_dispersion(*problem.dispersion.arguments(run.state.get("dispersion")))
        if problem.hyperpriors is not None:
            chain.learn_priors(problem.hyperpriors)
        if run.state:
            chain.set_factors(_with_prefix("factor", run.state))
            chain.iteration = run.iteration
            if problem.method == "bessel" and (noise := _with_prefix("noise", run.state)):
                chain.set_noise(noise)
        record = self._record = Record(problem, run, schedule)
        self._trace = _core.Trace(
            [part.reshape(-1) for part in record.draws],
            record.kept,
            [record.log_likelihood],
            [record.total_rate, record.total_count],
            (len(run.kept), run.iteration),
        )

    @property
    def iteration(self) -> int:
        """Sweeps done."""
        return self._chain.iteration

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of sweeps; what is done and kept before an exception stays."""
        threads = _check.threads(self._schedule.threads)
        start = self.iteration
        end = start + steps
        for stage, keep_every in ((min(end, self._schedule.n_warmup), 0), (end, self._schedule.thin)):
            if (now := self.iteration) < stage:
                hear = report and _part(report, now - start, stage - now, steps)
                self._chain.run(stage - now, keep_every, threads, hear, self._trace)
        return False

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback hears of the last sweep; None for the likelihood at a sweep that was not kept."""
        (draw, step), record = self._trace.filled, self._record
        kept = draw > 0 and record.kept[draw - 1] == step
        return {
            "total_rate": float(record.total_rate[step - 1]),
            "total_count": int(record.total_count[step - 1]),
            "log_likelihood": float(record.log_likelihood[draw - 1]) if kept else None,
        }

    def results(self) -> list[Run]:
        """Return the run as far as it came, with the shapes of overdispersed counts and the priors that are learnt."""
        chain = self._chain
        state = numbered("factor", chain.factors()) | numbered("noise", chain.noise())
        if (shapes := chain.dispersion()) is not None:
            state["dispersion"] = shapes
        return [self._record.run(*self._trace.filled, state | _priors(self._problem, chain))]


def _longer(part: Array, length: int, folder: str | None = None) -> Array:
    """Return a new array that begins like the given one and has room for more, on the disk of a folder if given."""
    shape = length, *part.shape[1:]
    whole = np.empty(shape, dtype=part.dtype) if folder is None else _mapped(shape, part.dtype, folder)
    whole[: len(part)] = part
    return whole


def _mapped(shape: tuple[int, ...], dtype: "np.dtype[Any]", folder: str) -> Array:
    """Return an array in a file without a name, which is gone when the array is."""
    size = max(1, math.prod(shape) * dtype.itemsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # else a full disk would be heard of by a signal, later
            else:
                file.truncate(size)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}, {size} bytes of draws in `draws_dir`", folder) from None
        # Read as any array is.
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


def _part(report: Report, before: int, steps: int, total: int) -> Report:
    """Return what hears of the progress of some steps that are a part of more."""

    def hear(done: int, whole: int) -> None:
        report(before * max(whole, 1) + steps * done, total * max(whole, 1))

    return hear


class AscentSampler(Single):
    """A coordinate ascent that continues a run; its state is ``shape_i``, ``rate_i`` and the expected ``noise_i``."""

    #: An ascent that is told to continue a little at a time forms more bounds than it needs.
    rounds = 1

    def __init__(self, problem: Problem, run: Run, schedule: Schedule) -> None:
        self._problem, self._run, self._schedule = problem, run, schedule
        self._ascent = self._begun(problem)
        if problem.begins_with_less_noise and not run.state:
            before = self._begun(replace(problem, less_noise=True))
            before.run(BEFORE, 0.0, _check.threads(schedule.threads), None)
            self._ascent = self._begun(problem, before.dispersion())
            self._ascent.set_factors(before.factors())
        if run.state:
            self._ascent.set_factors(gammas(run))
            if (problem.method != "collapsed" or problem.dispersion) and (noise := _with_prefix("noise", run.state)):
                self._ascent.set_noise(noise)
        self._converged = False

    def _begun(self, problem: Problem, shapes: Floats | None = None) -> _core.CoordinateAscent:
        """Return an ascent, from these shapes of the multipliers if they are learnt."""
        ascent = _core.CoordinateAscent(*problem.arguments(self._run), self._run.key)
        if problem.dispersion is not None:
            ascent.set_dispersion(*problem.dispersion.arguments(self._run.state.get("dispersion", shapes)))
        if problem.hyperpriors is not None:
            ascent.learn_priors(problem.hyperpriors)
        return ascent

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._run.iteration + len(self._ascent.elbo())

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of iterations; say whether the tolerance was met."""
        threads, tolerance = _check.threads(self._schedule.threads), self._schedule.tolerance
        end = self.iteration + steps
        while self.iteration < end and not self._converged:
            # The core stops by the last two bounds but one, and knows those of its own iterations only; at the end of
            # its steps it goes by the last two, where it would have gone on if there were more.
            alone = steps == 1 or bool(self._earlier.size and len(self._ascent.elbo()) < 2)
            hear = report if steps == 1 or not alone else None
            try:
                self._ascent.run(1 if alone else end - self.iteration, 0.0 if alone else tolerance, threads, hear)
            finally:
                self._ascent.run(0, 0.0, threads, None)  # after an interrupt an iteration may have no bound yet
                self._converged = self._schedule.settled(self.elbo()[:-1])
        if self.iteration == self._schedule.until:
            self._converged = self._converged or self._schedule.settled(self.elbo())
        return self._converged

    @property
    def _earlier(self) -> Floats:
        return self._run.step_statistics.get("elbo", np.empty(0))

    def elbo(self) -> Floats:
        """Return the bounds of all iterations of the run."""
        return np.concatenate([self._earlier, self._ascent.elbo()])

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback is told of the last iteration."""
        return {"elbo": float(self._ascent.elbo()[-1])}

    def results(self) -> list[Run]:
        """Return the run as far as it came."""
        shapes, rates = zip(*self._ascent.factors(), strict=True)
        of_counts = self._ascent.dispersion()
        own = {} if of_counts is None else {"dispersion": of_counts}
        own |= _priors(self._problem, self._ascent)
        run = replace(
            self._run,
            iteration=self.iteration,
            state=numbered("shape", shapes) | numbered("rate", rates) | numbered("noise", self._ascent.noise()) | own,
            step_statistics={"elbo": self.elbo()},
            converged=self._converged,
        )
        return [run]


def gammas(run: Run, of: str = "") -> list[tuple[Floats, Floats]]:
    """Return shapes and rates of the laws of an ascent's factors; rates of Dirichlet laws are sums of shapes."""
    return list(zip(*(_with_prefix(of + name, run.state) for name in ("shape", "rate")), strict=True))
