"""What the runs of a fit amount to: draws, means, diagnostics, and the DataTree that ArviZ works on."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx import _inference as inference
from quincunx._inference import Floats, Run
from quincunx.errors import ConvergenceWarning
from quincunx.factorization._chains import Problem, gammas


class Posterior(inference.Posterior):
    """The runs of a fit, with the problem they worked on."""

    def __init__(self, problem: Problem, runs: list[Run]) -> None:
        super().__init__(problem, runs)
        self._rates: Floats | None = None
        self._expected: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem, "runs": self.runs, "_rates": None, "_expected": None}

    @property
    def best(self) -> Run:
        """The chain of highest mean log-likelihood, or the ascent of highest ELBO."""
        if self.sampled:
            return max(self.with_draws, key=lambda run: float(run.log_likelihood[: self.n_draws].mean()))
        return max(self.with_draws, key=lambda run: float(run.elbo[-1]))

    def means(self) -> list[Floats]:
        """Return the posterior means of the factors, as they lie in the core, by the best run."""
        if self.sampled:
            return [draws[: self.n_draws].mean(axis=0) for draws in self.best.draws]
        return [shape / rate for shape, rate in gammas(self.best)]

    def approximate_draws(self, number: int) -> dict[str, Floats]:
        """Return independent draws from the gamma laws of variational inference, by name, as one chain."""
        rng = np.random.default_rng(self.best.key)
        found = {}
        for factor, (shape, rate) in zip(self.problem.variables, gammas(self.best), strict=True):
            found[factor.name] = factor.shown(rng.standard_gamma(shape, (1, number, *shape.shape)) / rate)
        return found

    # Means over cells.

    def rates(self, threads: int | None) -> Floats:
        """Return the posterior mean of the rates."""
        if self._rates is None:
            self._rates = self._mean_over_draws(threads, expected=False)[0]
        return self._rates

    def expected_counts(self, threads: int | None) -> Floats:
        """Return the posterior mean of the counts before noise; of the rates where a cell is held out."""
        if self._expected is None:
            self._rates, self._expected = self._mean_over_draws(threads, expected=True)
        return self._expected

    def _mean_over_draws(self, threads: int | None, *, expected: bool) -> tuple[Floats, Floats]:
        used = _check.threads(threads)
        data = self.problem.data
        rates, counts = np.zeros(data.values.size), np.zeros(data.values.size if expected else 0)
        number = 0
        for at_means, at_logs in self._tables():
            rates += (here := self._at(at_means, used))
            if expected:
                counts += _core.expected_counts(data.counts, here if at_logs is None else self._at(at_logs, used), used)
            number += 1
        if expected and data.held_out is not None:  # where nothing was released a count is expected at its rate
            counts = np.where(data.held_out.reshape(-1), rates, counts)
        means, counts = (rates / number).reshape(data.shape), counts / number
        if not expected:
            return means, counts
        counts = counts.reshape(data.shape)
        if self.problem.layout.model == "undirected":  # one count for each pair, told above the diagonal
            counts = np.triu(counts) + np.triu(counts, 1).T
        return means, counts

    def _tables(self) -> Iterator[tuple[list[Floats], list[Floats] | None]]:
        """Yield factors to average over; for variational inference their means, and exp E log, which govern counts."""
        if self.sampled:
            for run in self.with_draws:
                for draw in range(self.n_draws):
                    yield [draws[draw] for draws in run.draws], None
        else:
            from scipy.special import digamma

            yield self.means(), [np.exp(digamma(shape)) / rate for shape, rate in gammas(self.best)]

    def _at(self, factors: list[Floats], threads: int) -> Floats:
        layout = self.problem.layout
        tables = [np.ascontiguousarray(factor) for factor in factors]
        return _core.factor_rates(layout.model, list(layout.extents), tables, threads)

    # Diagnostics.

    def warn(self) -> None:
        """Warn of chains that do not agree or are short, by ArviZ where it is installed; of ascents that go on."""
        if self.sampled:
            inference.warn_of(self.scalars(), "raise `n_iter`")
        elif not self.best.converged:
            message = f"the ELBO still changes by more than `tol` after {self.best.iteration} iterations"
            warnings.warn(f"{message}: raise `n_iter`", ConvergenceWarning, stacklevel=3)

    def scalars(self) -> dict[str, Floats]:
        """Return what does not depend on labels: the total rate of all sweeps, the likelihood of the kept ones."""
        first = int(min(run.kept[0] for run in self.with_draws))
        last = min(run.iteration for run in self.with_draws)
        return {
            "total rate": np.stack([run.total_rate[first - 1 : last] for run in self.with_draws]),
            "log-likelihood": self.statistic("log_likelihood"),
        }

    def to_datatree(self, columns: Sequence[str] | None, n_draws: int) -> Any:
        """Return the draws as an xarray DataTree, as ArviZ makes them."""
        layout, data = self.problem.layout, self.problem.data
        dims = {factor.name: factor.dims for factor in layout.factors}
        dims |= {"released": layout.cells, "held_out": layout.cells}
        coords = {}
        if columns is not None and len(columns) == data.shape[-1]:
            coords[layout.cells[-1]] = np.asarray(columns, dtype=str)
        groups: dict[str, Any] = {
            "posterior": self.draws() if self.sampled else self.approximate_draws(n_draws),
            "observed_data": {"released": data.values},
            "sample_stats": {},
            "constant_data": {} if data.held_out is None else {"held_out": data.held_out},
        }
        if self.sampled:
            groups["sample_stats"] = {name: self.statistic(name) for name in ("log_likelihood", "total_rate")}
            groups["sample_stats"]["sweep"] = self.stacked([run.kept for run in self.with_draws])
        about = {"inference": self.problem.inference, "method": self.problem.method}
        return inference.datatree(groups, dims, coords, about)
