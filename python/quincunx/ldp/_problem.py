"""What a fit works on, how it is inferred, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._inference import Floats, Posterior, Report, Run, Variable, complaints, diagnose, warn_of
from quincunx.ldp._parts import Part, likelihood

Block = tuple[str, str, list[float]]

STATISTICS = ("lp", "diverging", "tree_depth", "n_steps", "energy", "step_size")


@dataclass
class Problem:
    """Parameters with their priors, and the released values; pickled to workers without the core's objects."""

    variables: tuple[Variable, ...]
    blocks: list[Block]
    parts: list[Part]
    quadrature: bool
    sampled: bool = True
    _made: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}

    @property
    def size(self) -> int:
        """The number of natural values."""
        return sum(int(np.prod(variable.shape)) for variable in self.variables)

    @property
    def core(self) -> _core.LdpPosterior:
        """The density, made when first asked for."""
        if self._made is None:
            self._made = _core.LdpPosterior(self.blocks, likelihood(self.parts, self.size))
        return self._made  # type: ignore[no-any-return]

    def split(self, rows: Floats) -> list[Floats]:
        """Return rows of natural values by variable."""
        sizes = [int(np.prod(variable.shape)) for variable in self.variables]
        columns = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
        return [
            np.ascontiguousarray(part).reshape(len(rows), *variable.shape)
            for part, variable in zip(columns, self.variables, strict=True)
        ]

    def sampler(self, run: Any, schedule: Any) -> Any:
        """Chains of this room are run together by the core."""
        raise NotImplementedError


@dataclass(frozen=True)
class Settings:
    """How chains are made."""

    warmup: int
    draws: int
    max_depth: int
    target_accept: float

    @property
    def words(self) -> tuple[int, int, int, float]:
        """As the core takes them."""
        return self.warmup, self.draws, self.max_depth, self.target_accept


def compute(
    problem: Problem, runs: list[Run], draws: int, tolerance: float, report: Report | None
) -> tuple[Any, list[Run]]:
    """Compute the posterior and draw from it independently; the draws are dealt to the runs."""
    computed = problem.core.compute(report, tolerance)
    u = computed.draws(draws * len(runs), runs[0].key)
    naturals = problem.core.natural(u)
    made = []
    for chain, run in enumerate(runs):
        rows = naturals[chain * draws : (chain + 1) * draws]
        made.append(Run(run.key, draws, {}, problem.split(rows), np.arange(1, draws + 1)))
    return computed, made


def sample(
    problem: Problem,
    runs: list[Run],
    settings: Settings,
    threads: int,
    report: Report | None,
    executor: Executor | None,
) -> tuple[list[Run], BaseException | None]:
    """Sample the posterior; the draws made before an exception come back beside it."""
    starts = [run.state.get("last") for run in runs]
    keys = [_key(run) for run in runs]
    if executor is None:
        taken, stopped = _chains(problem, settings, keys, starts, threads, report)
    else:
        tasks = [
            executor.submit(_one_chain, problem, settings, key, start) for key, start in zip(keys, starts, strict=True)
        ]
        taken, stopped = [], None
        try:
            for number, task in enumerate(tasks):
                taken.append(task.result())
                if report is not None:
                    report(number + 1, len(tasks))
        except BaseException as reason:
            stopped = reason
            for task in tasks:
                task.cancel()
    made = [_run(problem, run, found, settings) for run, found in zip(runs, taken, strict=False)]
    return made, stopped


def _key(run: Run) -> list[int]:
    """Return the address of what a run draws next: no random number serves twice."""
    if run.iteration == 0:
        return list(run.key)
    words = np.random.SeedSequence([*run.key, run.iteration]).generate_state(2, np.uint64)
    return [int(word) for word in words]


def _chains(
    problem: Problem, settings: Settings, keys: list[Any], starts: list[Any], threads: int, report: Report | None
) -> tuple[list[dict[str, Any]], BaseException | None]:
    chains = _core.LdpChains(keys)
    at = [None if start is None else [float(u) for u in start] for start in starts]
    stopped = None
    try:
        chains.run(problem.core, settings.words, at, threads, report)
    except BaseException as reason:
        stopped = reason
    return chains.take(), stopped


def _one_chain(problem: Problem, settings: Settings, key: Any, start: Any) -> dict[str, Any]:
    (taken,), stopped = _chains(problem, settings, [key], [start], 1, None)
    if stopped is not None:
        raise stopped
    return taken


def _run(problem: Problem, run: Run, taken: dict[str, Any], settings: Settings) -> Run:
    number = len(taken["lp"])
    fresh = problem.split(taken["naturals"].reshape(number, problem.size))
    earlier = run.draws if run.draws else [part[:0] for part in fresh]
    statistics = {
        name: np.concatenate([run.draw_statistics.get(name, taken[name][:0]), taken[name]]) for name in STATISTICS
    }
    total = run.iteration + settings.warmup + number
    kept = np.arange(run.iteration + settings.warmup + 1, total + 1)
    key = run.key
    return Run(
        key,
        total,
        {"last": np.asarray(taken["last"])} if number else run.state,
        [np.concatenate(pair) for pair in zip(earlier, fresh, strict=True)],
        np.concatenate([run.kept, kept]),
        statistics,
    )


class LdpPosteriorDraws(Posterior):
    """Draws, with the computed posterior where there is one."""

    computed: Any = None

    def scalars(self) -> dict[str, Floats]:
        """Return each number of the posterior, of shape (n_chains, n_draws)."""
        found: dict[str, Floats] = {}
        labels = {variable.name: variable.labels for variable in self.problem.variables}
        for name, draws in self.draws().items():
            flat = draws.reshape(*draws.shape[:2], -1)
            for i in range(flat.shape[2]):
                if draws.ndim == 4 and i // draws.shape[3] > i % draws.shape[3]:
                    continue  # a covariance is symmetric
                index = ", ".join(str(int(j)) for j in np.unravel_index(i, draws.shape[2:])) if draws.ndim > 2 else ""
                if (known := labels[name]) is not None:
                    index = str(known[i])
                found[f"{name}[{index}]" if index else name] = flat[:, :, i]
        return found

    @property
    def divergences(self) -> int:
        """The number of kept draws whose trajectory diverged."""
        return sum(int(run.draw_statistics["diverging"].sum()) for run in self.with_draws if run.draw_statistics)

    def warn(self) -> None:
        """Warn of chains that do not agree, are short or diverged; computed posteriors have no chains."""
        if self.computed is None:
            warn_of(self.scalars(), "raise `n_draws` or `n_warmup`", divergences=self.divergences, stacklevel=4)

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, spread, quantiles and diagnostics of each number."""
        scalars = self.scalars()
        judged = {} if self.computed is not None else diagnose(scalars)
        found = {}
        for name, draws in scalars.items():
            low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
            row = {"mean": draws.mean(), "sd": draws.std(ddof=1), "q2.5": low, "median": middle, "q97.5": high}
            if name in judged:
                row |= dict(zip(("r_hat", "ess_bulk"), judged[name], strict=True))
            else:
                row["ess_bulk"] = draws.size
            found[name] = {key: float(value) for key, value in row.items()}
        return found


def settings_of(model: Any) -> Settings:
    """Return the settings of a model's chains, checked."""
    accept = _check.real(model.target_accept, "target_accept")
    if not 0 < accept < 1:
        raise ValueError(f"`target_accept` must be in (0, 1), got {accept}")
    return Settings(
        _check.whole(model.n_warmup, "n_warmup", minimum=1),
        _check.whole(model.n_draws, "n_draws", minimum=1),
        _check.whole(model.max_depth, "max_depth", minimum=1, maximum=20),
        accept,
    )


__all__ = ["Block", "LdpPosteriorDraws", "Problem", "complaints", "compute", "sample", "settings_of"]


def flat(values: Sequence[npt.ArrayLike]) -> npt.NDArray[np.float64]:
    """Return natural values in the core's order."""
    return np.concatenate([np.asarray(value, dtype=np.float64).reshape(-1) for value in values])
