"""What the runs of a fit amount to: draws by name, and their diagnostics."""

import warnings
from collections.abc import Sequence
from typing import Generic

import numpy as np

from quincunx._inference._diagnostics import diagnose
from quincunx._inference._runs import P, Run
from quincunx._types import Array, Floats
from quincunx.errors import ConvergenceWarning


class Posterior(Generic[P]):
    """The runs of a fit, with the problem they worked on.

    Parameters
    ----------
    problem : Problem
    runs : list of Run
    """

    def __init__(self, problem: P, runs: Sequence[Run]) -> None:
        self.problem = problem
        self.runs = list(runs)

    @property
    def sampled(self) -> bool:
        """Whether the runs are chains of draws."""
        return self.problem.sampled

    @property
    def with_draws(self) -> list[Run]:
        """The runs that kept something."""
        return [run for run in self.runs if run.has_draws]

    @property
    def n_draws(self) -> int:
        """Kept draws that all chains have."""
        return min(len(run.kept) for run in self.with_draws)

    def stacked(self, parts: Sequence[Array]) -> Array:
        """Return one array per run as one of shape (n_chains, n_draws, ...)."""
        n = self.n_draws
        if len(parts) > 1:
            return np.stack([part[:n] for part in parts])
        alone = parts[0][None, :n]
        alone.flags.writeable = False  # what is changed there would be the chain itself
        return alone

    def draws(self) -> dict[str, Floats]:
        """Return all kept draws by name, each of shape (n_chains, n_draws, ...)."""
        runs = self.with_draws
        return {
            variable.name: variable.shown(self.stacked([run.draws[i] for run in runs]))
            for i, variable in enumerate(self.problem.variables)
        }

    def statistic(self, name: str) -> Array:
        """Return a statistic of the kept draws, of shape (n_chains, n_draws)."""
        parts = []
        for run in self.with_draws:
            parts.append(run.draw_statistics[name] if name in run.draw_statistics else getattr(run, name)[run.kept - 1])
        return self.stacked(parts)

    def scalars(self) -> dict[str, Floats]:
        """Return the scalars that chains are judged by, each of shape (n_chains, n_draws)."""
        raise NotImplementedError

    def complaint(self) -> str | None:
        """Return what is wrong with the runs, if anything is."""
        raise NotImplementedError

    def warn(self, stacklevel: int = 3) -> None:
        """Warn of what is wrong."""
        if (message := self.complaint()) is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)

    def diagnostics(self) -> dict[str, tuple[float, float]]:
        """Return R-hat and the bulk effective sample size of each scalar; a single chain is judged by its halves."""
        return diagnose(self.scalars())
