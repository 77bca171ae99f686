"""What a fit works on, its two samplers, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from quincunx import _check, _core
from quincunx._core import LdpLikelihood
from quincunx._inference import Array, Floats, Posterior, Report, Run, Sampler, Variable, complaint_of, diagnose
from quincunx.ldp._groups import Group

#: What the core says of each draw.
STATISTICS = ("lp", "diverging", "tree_depth", "n_steps", "energy", "step_size")


class Block(NamedTuple):
    """A scalar, or a matrix, with its prior: as the core takes it; or those of groups, after their common law."""

    support: str
    prior: str
    numbers: list[float]

    @property
    def law_and_width(self) -> tuple[int, int]:
        """How many values the common law of groups has, 0 without groups; and each of them has, or all."""
        if self.support == "groups of shares":
            return int(self.numbers[1]) + 1, int(self.numbers[1])
        if self.support.startswith("groups of"):
            return 2, 1
        sizes = {"simplex": len(self.numbers), "covariance": int(self.numbers[0]) ** 2}
        return 0, sizes.get(self.support, 1)

    @property
    def size(self) -> int:
        """How many natural values it has."""
        law, width = self.law_and_width
        return law + (int(self.numbers[0]) if law else 1) * width


def populations(groups: Sequence[Group]) -> list[str | int]:
    """Return the labels of groups that have parameters of their own, sorted: numbers, then words."""
    found = {group.population for group in groups}
    known: list[str | int] = [label for label in found if isinstance(label, (str, int))]
    if known and len(known) != len(found):
        raise ValueError("`released` must be of groups throughout, got some users without a group")
    ordered = sorted(known, key=lambda label: (isinstance(label, str), label))
    if len(set(map(str, ordered))) < len(ordered):
        raise ValueError(f"`released` must have labels of groups that differ as words, got {ordered}")
    return ordered


def placed(group: Group, blocks: Sequence[Block], labels: Sequence[str | int]) -> LdpLikelihood:
    """Return the core's likelihood of users by the parameters of all groups: their own, and those they share."""
    made = group.likelihood()
    if group.population is None:
        return made
    if group.population not in labels:
        raise ValueError(f"`released` must be of the groups {list(labels)}, got {group.population!r}")
    which: list[int] = []
    start = 0
    for block in blocks:
        law, width = block.law_and_width
        first = start + (law + labels.index(group.population) * width if law else 0)
        which += range(first, first + width)
        start += block.size
    return made.selected(which, start)


def likelihood(groups: Sequence[Group], blocks: Sequence[Block]) -> LdpLikelihood:
    """Return the likelihood of all groups, but for their offsets."""
    labels = populations(groups)
    made = [placed(group, blocks, labels) for group in groups]
    return made[0] if len(made) == 1 else LdpLikelihood.sum(made, sum(block.size for block in blocks))


@dataclass(frozen=True)
class Schedule:
    """How far chains go from where they are, and how: the settings of a model, checked."""

    n_warmup: int
    n_draws: int
    max_depth: int
    target_accept: float
    threads: int

    def __post_init__(self) -> None:
        for name, most in (("n_warmup", None), ("n_draws", None), ("max_depth", 20)):
            object.__setattr__(self, name, _check.whole(getattr(self, name), name, minimum=1, maximum=most))
        _check.open_probability(self.target_accept, "target_accept")


@dataclass
class Problem:
    """Parameters with their priors, and the released values; pickled to workers without the core's objects."""

    variables: tuple[Variable, ...]
    blocks: tuple[Block, ...]
    groups: tuple[Group, ...]
    quadrature: bool
    tolerance: float
    sampled: ClassVar[bool] = True
    _density: _core.LdpPosterior | None = field(default=None, repr=False)
    _computed: _core.LdpComputed | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_density": None, "_computed": None}

    def same(self, other: Problem) -> bool:
        """Return whether it has the same posterior and is inferred in the same way."""
        return (self.blocks, self.groups, self.quadrature) == (other.blocks, other.groups, other.quadrature)

    @property
    def sizes(self) -> list[int]:
        """How many natural values each variable has."""
        return [int(np.prod(variable.shape)) for variable in self.variables]

    @property
    def core(self) -> _core.LdpPosterior:
        """The density, made when first asked for."""
        if self._density is None:
            self._density = _core.LdpPosterior(list(self.blocks), likelihood(self.groups, self.blocks))
        return self._density

    def computed(self, report: Report | None = None) -> _core.LdpComputed:
        """Return the posterior by quadrature, computed when first asked for."""
        if self._computed is None:
            self._computed = self.core.compute(report, self.tolerance)
        return self._computed

    def split(self, rows: Floats) -> list[Floats]:
        """Return rows of natural values by variable."""
        columns = np.split(rows, np.cumsum(self.sizes)[:-1], axis=1)
        return [
            np.ascontiguousarray(part).reshape(len(rows), *variable.shape)
            for part, variable in zip(columns, self.variables, strict=True)
        ]

    def samplers(self, runs: Sequence[Run], schedule: Schedule) -> Sequence[Sampler]:
        """Return the one sampler of all runs."""
        return [(Quadrature if self.quadrature else Chains)(self, runs, schedule)]


class _Together(Sampler):
    """A sampler of all runs at once, without callbacks."""

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule) -> None:
        self._problem, self._runs, self._schedule = problem, list(runs), schedule

    @property
    def iteration(self) -> int:
        """Iterations done before."""
        return self._runs[0].iteration


class Quadrature(_Together):
    """Computes the posterior and draws from it independently; the draws are dealt to the runs, which begin anew."""

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule) -> None:
        super().__init__(problem, [Run(run.key) for run in runs], schedule)

    @property
    def left(self) -> int:
        """Draws to make, of all runs."""
        return len(self._runs) * self._schedule.n_draws

    def advance(self, steps: int, report: Report | None) -> bool:
        """Compute, and make all draws."""
        drawn = self._problem.computed(report).draws(steps, self._runs[0].key)
        each = np.split(self._problem.core.natural(drawn), len(self._runs))
        self._runs = [
            Run(run.key, len(rows), draws=self._problem.split(rows), kept=np.arange(1, len(rows) + 1))
            for run, rows in zip(self._runs, each, strict=True)
        ]
        return True

    def results(self) -> list[Run]:
        """Return the runs, empty or whole."""
        return self._runs


class Chains(_Together):
    """Chains that the core runs together, each from where its run is and with a warm-up of its own."""

    def __init__(self, problem: Problem, runs: Sequence[Run], schedule: Schedule) -> None:
        super().__init__(problem, runs, schedule)
        self._chains = _core.LdpChains([_key(run) for run in runs])

    @property
    def left(self) -> int:
        """Steps to take, of all runs."""
        return len(self._runs) * (self._schedule.n_warmup + self._schedule.n_draws)

    def advance(self, steps: int, report: Report | None) -> bool:
        """Take all steps; what was drawn before an exception stays."""
        lasts = [run.state.get("last", ()) for run in self._runs]  # of a warm start with other parameters is none
        starts = [list(map(float, last)) if len(last) == self._problem.core.dimension else None for last in lasts]
        how = self._schedule
        settings = how.n_warmup, how.n_draws, how.max_depth, how.target_accept
        self._chains.run(self._problem.core, settings, starts, min(how.threads, len(starts)), report)
        return True

    def results(self) -> list[Run]:
        """Return the runs as far as they came."""
        return [self._longer(run, drawn) for run, drawn in zip(self._runs, self._chains.take(), strict=True)]

    def _longer(self, run: Run, drawn: dict[str, Array]) -> Run:
        number, first = len(drawn["lp"]), run.iteration + self._schedule.n_warmup
        fresh = Run(
            run.key,
            first + number,
            {"last": drawn["last"]} if number else run.state,
            self._problem.split(drawn["naturals"].reshape(number, sum(self._problem.sizes))),
            np.arange(first + 1, first + number + 1),
            {name: drawn[name] for name in STATISTICS},
        )
        return fresh.after(run)


def _key(run: Run) -> list[int]:
    """Return the address of what a run draws next: no random number serves twice."""
    if run.iteration == 0:
        return list(run.key)
    return [int(word) for word in np.random.SeedSequence([*run.key, run.iteration]).generate_state(2, np.uint64)]


class PosteriorDraws(Posterior[Problem]):
    """Draws, with the computed posterior where there is one."""

    @property
    def computed(self) -> _core.LdpComputed | None:
        """The posterior by quadrature, where that was possible."""
        return self.problem.computed() if self.problem.quadrature else None

    def scalars(self) -> dict[str, Floats]:
        """Return each number of the posterior, of shape (n_chains, n_draws)."""
        found: dict[str, Floats] = {}
        labels = {v.dims[0]: v.labels for v in self.problem.variables if v.labels is not None}
        dims = {variable.name: variable.dims for variable in self.problem.variables}
        for name, draws in self.draws().items():
            flat = draws.reshape(*draws.shape[:2], -1)
            known = [labels.get(dim, range(n)) for dim, n in zip(dims[name], draws.shape[2:], strict=True)]
            for i, at in enumerate(np.ndindex(draws.shape[2:])):
                if name == "covariance" and at[0] > at[1]:
                    continue  # a covariance is symmetric
                index = ", ".join(str(along[j]) for along, j in zip(known, at, strict=True))
                found[f"{name}[{index}]" if index else name] = flat[:, :, i]
        return found

    def complaint(self) -> str | None:
        """Return what is wrong: chains that do not agree, are short or diverged; computed posteriors have no chains."""
        if self.problem.quadrature:
            return None
        diverged = sum(int(run.diverging.sum()) for run in self.with_draws)
        return complaint_of(self.scalars(), "raise `n_draws` or `n_warmup`", divergences=diverged)

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, spread, quantiles and diagnostics of each number."""
        scalars = self.scalars()
        judged = {} if self.problem.quadrature else diagnose(scalars)
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
