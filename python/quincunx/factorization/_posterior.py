"""What the runs of a fit amount to: draws, means, diagnostics, and the DataTree that ArviZ works on."""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import quincunx
from quincunx import _check, _core
from quincunx._optional import require
from quincunx.errors import ConvergenceWarning
from quincunx.factorization._chains import Problem, Run
from quincunx.factorization._layout import Floats

#: Above this R-hat, or below this number of effective draws, a warning is given (Vehtari et al. 2021, section 4).
_LARGEST_RHAT, _LEAST_ESS = 1.01, 400


class Posterior:
    """The runs of a fit, with the problem they worked on."""

    def __init__(self, problem: Problem, runs: list[Run]) -> None:
        self.problem = problem
        self.runs = runs
        self._rates: Floats | None = None
        self._expected: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem, "runs": self.runs, "_rates": None, "_expected": None}

    @property
    def sampled(self) -> bool:
        """Whether the runs are chains of draws."""
        return self.problem.inference == "mcmc"

    @property
    def fruitful(self) -> list[Run]:
        """The runs that kept something."""
        return [run for run in self.runs if run.fruitful]

    @property
    def n_draws(self) -> int:
        """Kept draws that all chains have."""
        return min(len(run.kept) for run in self.fruitful)

    @property
    def best(self) -> Run:
        """The chain of highest mean log-likelihood, or the ascent of highest ELBO."""
        if self.sampled:
            return max(self.fruitful, key=lambda run: float(run.log_likelihood[: self.n_draws].mean()))
        return max(self.fruitful, key=lambda run: float(run.elbo[-1]))

    def means(self) -> list[Floats]:
        """Return the posterior means of the factors, as they lie in the core, by the best run."""
        if self.sampled:
            return [draws[: self.n_draws].mean(axis=0) for draws in self.best.draws]
        return [shape / rate for shape, rate in self.best.factors]

    def draws(self) -> dict[str, Floats]:
        """Return all kept draws by name, each of shape (n_chains, n_draws, ...)."""
        found = {}
        for i, factor in enumerate(self.problem.layout.factors):
            found[factor.name] = factor.shown(self._stacked([run.draws[i] for run in self.fruitful]))
        return found

    def _stacked(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        n = self.n_draws
        return parts[0][None, :n] if len(parts) == 1 else np.stack([part[:n] for part in parts])

    def approximate_draws(self, number: int) -> dict[str, Floats]:
        """Return independent draws from the gamma laws of variational inference, by name, as one chain."""
        rng = np.random.default_rng(self.best.key)
        found = {}
        for factor, (shape, rate) in zip(self.problem.layout.factors, self.best.factors, strict=True):
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
        if expected and data.hidden is not None:  # where nothing was released a count is expected at its rate
            counts = np.where(data.hidden.reshape(-1), rates, counts)
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
            for run in self.fruitful:
                for draw in range(self.n_draws):
                    yield [draws[draw] for draws in run.draws], None
        else:
            from scipy.special import digamma

            yield self.means(), [np.exp(digamma(shape)) / rate for shape, rate in self.best.factors]

    def _at(self, factors: list[Floats], threads: int) -> Floats:
        layout = self.problem.layout
        tables = [np.ascontiguousarray(factor) for factor in factors]
        return _core.factor_rates(layout.model, list(layout.extents), tables, threads)

    # Diagnostics.

    def warn(self) -> None:
        """Warn of chains that do not agree or are short, by ArviZ where it is installed; of ascents that go on."""
        if not self.sampled:
            if not self.best.converged:
                message = f"the ELBO still changes by more than `tol` after {self.best.iteration} iterations"
                warnings.warn(f"{message}: raise `n_iter`", ConvergenceWarning, stacklevel=3)
            return
        if find_spec("arviz_stats") is None:
            return
        complaints = []
        for name, (rhat, ess) in self.diagnostics().items():
            # Not a number where the scalar does not move at all, as with data of zeros.
            if rhat > _LARGEST_RHAT:
                complaints.append(f"R-hat of the {name} is {rhat:.3f} (more than {_LARGEST_RHAT})")
            if ess < _LEAST_ESS:
                complaints.append(f"the {name} has {ess:.0f} effective draws (fewer than {_LEAST_ESS})")
        if complaints:
            warnings.warn("; ".join(complaints) + ": raise `n_iter`", ConvergenceWarning, stacklevel=3)

    def scalars(self) -> dict[str, Floats]:
        """Return what does not depend on labels: the total rate of all sweeps, the likelihood of the kept ones."""
        first = int(min(run.kept[0] for run in self.fruitful))
        last = min(run.iteration for run in self.fruitful)
        return {
            "total rate": np.stack([run.total_rate[first - 1 : last] for run in self.fruitful]),
            "log-likelihood": self._stacked([run.log_likelihood for run in self.fruitful]),
        }

    def diagnostics(self) -> dict[str, tuple[float, float]]:
        """Return R-hat and the bulk effective sample size of each scalar; a single chain is judged by its halves."""
        stats = require("arviz_stats.base", "arviz").array_stats
        found = {}
        for name, chains in self.scalars().items():
            half = chains.shape[1] // 2
            several = chains if len(chains) > 1 else chains[:, : 2 * half].reshape(2, half)
            if half < 4:  # ArviZ asks for four draws of each half
                found[name] = np.nan, float(chains.size)
                continue
            with np.errstate(all="ignore"):
                found[name] = float(stats.rhat(several)), float(stats.ess(chains))
        return found

    def to_datatree(self, columns: Sequence[str] | None, n_draws: int) -> Any:
        """Return the draws as an xarray DataTree, as ArviZ makes them."""
        arviz = require("arviz_base", "arviz")
        layout, data = self.problem.layout, self.problem.data
        posterior = self.draws() if self.sampled else self.approximate_draws(n_draws)
        dims = {factor.name: list(factor.dims) for factor in layout.factors}
        dims |= {"released": list(layout.cells), "held_out": list(layout.cells)}
        lengths = dict(zip(layout.cells, data.shape, strict=True))
        for factor in layout.factors:
            lengths |= dict(zip(factor.dims, factor.shape(layout.n_components), strict=True))
        coords: dict[str, Any] = {dim: np.arange(length) for dim, length in lengths.items()}
        if columns is not None and len(columns) == data.shape[-1]:
            coords[layout.cells[-1]] = np.asarray(columns, dtype=str)
        groups: dict[str, Any] = {"posterior": posterior, "observed_data": {"released": data.values}}
        if self.sampled:
            groups["sample_stats"] = {
                "log_likelihood": self._stacked([run.log_likelihood for run in self.fruitful]),
                "total_rate": self._stacked([run.total_rate[run.kept - 1] for run in self.fruitful]),
                "sweep": self._stacked([run.kept for run in self.fruitful]),
            }
        else:
            groups["sample_stats"] = {}
        if data.hidden is not None:
            groups["constant_data"] = {"held_out": data.hidden}
        groups = {name: group for name, group in groups.items() if group}
        about = {"inference_library": "quincunx", "inference_library_version": quincunx.__version__}
        about |= {"inference": self.problem.inference, "method": self.problem.method}
        return arviz.from_dict(groups, coords=coords, dims=dims, attrs={"posterior": about})
