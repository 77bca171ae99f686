"""What the runs of a fit amount to: draws, means, diagnostics, and the DataTree that ArviZ works on."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx import _inference as inference
from quincunx._inference import Run
from quincunx._types import Array, DataTree, Facts, Floats
from quincunx.factorization import _groups
from quincunx.factorization._align import best_order
from quincunx.factorization._chains import Problem, gammas
from quincunx.factorization._data import Data
from quincunx.factorization._groups import State
from quincunx.factorization._layout import Rows

#: Draws of a variational approximation for a predictive density. Not tuned: a pass over all cells for each, and an
#: error of the density that falls with their square root.
_DRAWS = 200


class Posterior(inference.Posterior[Problem]):
    """The runs of a fit, with the problem they worked on."""

    def __init__(self, problem: Problem, runs: list[Run]) -> None:
        super().__init__(problem, runs)
        self._rates: Floats | None = None
        self._expected: Floats | None = None
        #: Which component of a draw is shown as the k-th, of shape (n_chains, n_draws, n_components), set after set.
        self.order: npt.NDArray[np.intp] | None = None

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_rates": None, "_expected": None}

    @property
    def best(self) -> Run:
        """The chain of highest mean log-likelihood, or the ascent of highest ELBO."""
        if self.sampled:
            return max(self.with_draws, key=lambda run: float(run.log_likelihood[: self.n_draws].mean()))
        return max(self.with_draws, key=lambda run: float(run.elbo[-1]))

    def means(self) -> list[Floats]:
        """Return the posterior means of the factors, as they lie in the core, by the best run."""
        if self.sampled:
            return [draws.mean(axis=0) for draws in self.best_tables()[: len(self.problem.layout.factors)]]
        return [shape / rate for shape, rate in gammas(self.best)]

    def _points(self) -> list[Floats]:
        """Return what variational inference has points of: the dispersion."""
        if self.problem.dispersion is None:
            return []
        return [1 / self.best.state["dispersion"][:, None]]

    def dispersion(self) -> Floats:
        """Return the posterior mean of the dispersion, over all chains, as its user sees it."""
        problem = self.problem
        assert problem.dispersion is not None
        variable, at = problem.dispersion.variable(problem.layout), len(problem.layout.factors)
        return np.asarray(variable.shown(self._mean(at) if self.sampled else self._points()[0]))

    def _mean(self, i: int) -> Floats:
        """Return the mean of a variable over all chains, or by the best one if it is of single components.

        Draws may lie on a disk.
        """
        if any(one is not None for one in self.problem.variables[i].sets):
            return np.asarray(self.best_tables()[i].mean(axis=0))
        return np.asarray(np.mean([run.draws[i][: self.n_draws].mean(axis=0) for run in self.with_draws], axis=0))

    def priors(self) -> list[tuple[Floats, Floats]]:
        """Return shapes and rates of all priors as the core takes them; posterior means where they are learnt.

        A Dirichlet law has its concentration for a shape, and no rate.
        """
        problem = self.problem
        if problem.hyperpriors is None:
            return problem.priors
        if not self.sampled:
            state, number = self.best.state, range(len(problem.priors))
            return [(state[f"prior_shape_{i}"], state[f"prior_rate_{i}"]) for i in number]
        first = len(problem.variables) - len(problem.of_priors)
        means = iter(self._mean(i).reshape(-1) for i in range(first, len(problem.variables)))
        found = list(problem.priors)
        for i in problem.learnt:
            shape = next(means)
            if problem.dirichlet[i]:
                found[i] = shape, np.empty(0)
                continue
            rates, width = next(means), problem.layout.factors[i].shape[1]
            found[i] = shape, rates if problem.hyperpriors == "factor" else np.repeat(rates, width)
        return found

    def of_rows_to_come(self) -> tuple[Floats, Floats]:
        """Return a prior of rows where layers gave them theirs: for each component its mean over the fitted rows.

        The mean square stands for the variance: a law wider than that of the rows, for what one has is unlike another.
        """
        embedding = np.maximum(self.means()[0], 1e-100)
        mean, square = embedding.mean(axis=0), (embedding**2).mean(axis=0)
        return mean**2 / square, mean / square

    # Draws.

    def best_tables(self) -> list[Floats]:
        """Return the draws of each factor by the best chain, as they lie in the core, components in their order."""
        return self.tables()[next(place for place, run in enumerate(self.with_draws) if run is self.best)]

    def tables(self) -> list[list[Floats]]:
        """Return for each chain the draws of each factor, as they lie in the core, components in their order."""
        found = []
        for chain, run in enumerate(self.with_draws):
            tables = [draws[: self.n_draws] for draws in run.draws]
            if self.order is not None:
                orders = np.split(self.order[chain], np.cumsum(self.problem.layout.widths)[:-1], axis=1)
                tables = [
                    factor.permuted(draws, orders) for factor, draws in zip(self.problem.variables, tables, strict=True)
                ]
            found.append(tables)
        return found

    def draws(self) -> dict[str, Floats]:
        """Return all kept draws by name, each of shape (n_chains, n_draws, ...)."""
        return self._shown(self.tables())

    def _shown(self, runs: list[list[Floats]]) -> dict[str, Floats]:
        return {
            factor.name: factor.shown(self.stacked([tables[i] for tables in runs]))
            for i, factor in enumerate(self.problem.variables)
        }

    def stacked(self, parts: Sequence[Array]) -> Array:
        """Return one array per run as one of shape (n_chains, n_draws, ...)."""
        return super().stacked(parts) if self.sampled else np.stack(parts)

    def approximate_tables(self, number: int) -> list[list[Floats]]:
        """Return independent draws from the laws of variational inference, as one chain."""
        laws = gammas(self.best)
        _check.room(16 * number * sum(shape.size for shape, _ in laws), "an array of draws of all factors")
        rng = np.random.default_rng(self.best.key)
        tables = [
            # gammas over their sum, all of which may be below the least double
            np.stack([rng.dirichlet(own, number) for own in shape.T], axis=-1)
            if dirichlet
            else rng.standard_gamma(shape, (1, number, *shape.shape))[0] / rate
            for (shape, rate), dirichlet in zip(laws, self.problem.dirichlet, strict=True)
        ]
        return [tables + [np.broadcast_to(point, (number, *point.shape)) for point in self._points()]]

    def far_apart(self, number: int) -> list[tuple[State, np.random.Generator]]:
        """Return draws that are far apart, of one run after another, each with what to draw a release anew with."""
        if self.sampled:
            each = -(-number // len(self.with_draws))
            places = (np.arange(each) + 1) * self.n_draws // each - 1  # more than there are come more than once
            runs = [[draws[places] for draws in run.draws] for run in self.with_draws]
        else:
            runs = self.approximate_tables(number)
        streams = [_groups.stream(key) for key in self.keys]
        found = [
            ([table[draw] for table in tables], rng)
            for draw in range(len(runs[0][0]))
            for tables, rng in zip(runs, streams, strict=True)
        ]
        return found[:number]

    @property
    def keys(self) -> list[tuple[int, int]]:
        """The keys of the runs that draws come from."""
        return [run.key for run in (self.with_draws if self.sampled else [self.best])]

    def align(self, each_draw: bool) -> None:
        """Order the components of all chains by those of the best, and where asked those of each draw."""
        self.order = None
        runs, reference = self.tables(), self.means()
        # What has no axis but components (weights, interactions, a core) tells nothing of which is which.
        factors = [(i, factor.sets) for i, factor in enumerate(self.problem.variables) if None in factor.sets]
        widths = self.problem.layout.widths
        telling = [[i for i, sets in factors if one in sets] for one in range(len(widths))]

        def order_of(tables: list[Floats]) -> npt.NDArray[np.intp]:
            return np.concatenate(
                [best_order([tables[i] for i in one], [reference[i] for i in one]) for one in telling]
            )

        order = np.empty((len(runs), self.n_draws, sum(widths)), dtype=np.intp)
        for chain, tables in enumerate(runs):
            order[chain] = order_of([table.mean(axis=0) for table in tables])
            for draw in range(self.n_draws if each_draw else 0):
                order[chain, draw] = order_of([table[draw] for table in tables])
        self.order = order

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
        used, data, layout = _check.threads(threads), self.problem.data, self.problem.layout
        _check.room((40 if expected else 24) * data.values.size, "the mean of a number for each cell")
        rates, counts = np.zeros(data.values.size), np.zeros(data.values.size if expected else 0)
        number = 0
        for at_means, at_logs in self.states():
            rates += (here := self.problem.rates(at_means, used))
            if expected:
                counts += self.expected_given(data, at_means, at_logs, here, used)
            number += 1
        if expected and data.held_out is not None:  # where nothing was released a count is expected at its rate
            counts = np.where(data.held_out.reshape(-1), rates, counts)
        means, counts = (rates / number).reshape(data.shape), counts / number
        if not expected:
            return means, counts
        return means, layout.mirrored(counts.reshape(data.shape))

    def expected_given(
        self, data: Data, state: State, at_logs: State | None, rates: Floats | None, threads: int, rows: Rows = None
    ) -> Floats:
        """Return the counts expected in all or some rows with their data, given a draw or the means.

        `rates` are those of the draw or the means where they are at hand.
        """
        problem, shapes = self.problem, self.problem.shapes(state, rows)
        if at_logs is not None and shapes is None:
            rates = problem.rates(at_logs, threads, rows)
        else:
            rates = problem.rates(state, threads, rows) if rates is None else rates
            if at_logs is not None and shapes is not None:
                rates = problem.between(rates, problem.rates(at_logs, threads, rows), shapes)
        return _core.expected_counts(data.counts, rates, threads, shapes)

    def states(self) -> Iterator[tuple[list[Floats], list[Floats] | None]]:
        """Yield factors to average over; for variational inference their means, and exp E log, which govern counts."""
        if self.sampled:
            for run in self.with_draws:
                for draw in range(self.n_draws):
                    yield [draws[draw] for draws in run.draws], None
        else:
            from scipy.special import digamma

            laws = zip(gammas(self.best), self.problem.dirichlet, strict=True)
            yield (
                self.means() + self._points(),
                [np.exp(digamma(shape) - (digamma(rate) if known else np.log(rate))) for (shape, rate), known in laws],
            )

    def log_predictive(self, cells: Data, chosen: npt.NDArray[np.bool_], threads: int | None) -> Floats:
        """Return the log of the mean over draws of the density of cells of the table, which are given as one row."""
        problem, used = self.problem, _check.threads(threads)
        runs = self.tables() if self.sampled else self.approximate_tables(_DRAWS)
        total, number = np.full(cells.values.size, -np.inf), 0
        for tables in runs:
            for draw in range(len(tables[0])):
                state = [table[draw] for table in tables]
                rates = problem.rates(state, used)[chosen.reshape(-1)]
                shapes = problem.shapes_at(state, np.flatnonzero(chosen))
                total = np.logaddexp(total, _core.log_likelihoods(cells.counts, rates, used, shapes))
                number += 1
        found: Floats = total - np.log(number)
        return found

    # Diagnostics.

    def complaint(self) -> str | None:
        """Return what is wrong: chains that do not agree or are short, by ArviZ if installed; ascents that go on."""
        if self.sampled:
            return inference.complaint_of(self.scalars(), "raise `n_draws`")
        if self.best.converged:
            return None
        return f"the ELBO still changes by more than `tol` after {self.best.iteration} iterations: raise `max_iter`"

    def scalars(self) -> dict[str, Floats]:
        """Return what does not depend on labels: the total rate of all sweeps, the likelihood of the kept ones."""
        first = int(min(run.kept[0] for run in self.with_draws))
        last = min(run.iteration for run in self.with_draws)
        return {
            "total rate": np.stack([run.total_rate[first - 1 : last] for run in self.with_draws]),
            "log-likelihood": self.statistic("log_likelihood"),
        }

    def to_datatree(self, n_draws: int, *, pointwise: bool, predictive: bool, threads: int | None) -> DataTree:
        """Return the draws as an xarray DataTree, as ArviZ makes them."""
        problem, layout, data = self.problem, self.problem.layout, self.problem.data
        dims = {factor.name: factor.dims for factor in problem.variables}
        dims |= {"released": layout.cells, "held_out": layout.cells}
        coords = self._coordinates()
        runs = self.tables() if self.sampled else self.approximate_tables(n_draws)
        groups: Facts = {
            "posterior": self._shown(runs),
            "observed_data": {"released": data.values},
            "sample_stats": {},
            "constant_data": {} if data.held_out is None else {"held_out": data.held_out},
        }
        if self.sampled:
            # Not "log_likelihood": what bears that name in ArviZ has a number for each observation.
            groups["sample_stats"] = {
                "total_log_likelihood": self.statistic("log_likelihood"),
                "total_rate": self.statistic("total_rate"),
                "sweep": self.stacked([run.kept for run in self.with_draws]),
            }
        about = {"inference": problem.inference, "method": problem.method}
        _groups.refuse_large(problem, runs, pointwise + predictive)
        used = _check.threads(threads)
        if predictive:
            groups["posterior_predictive"] = {"released": _groups.predictive(problem, runs, self.keys, used)}
        tree = inference.datatree(groups, dims, coords, about)
        if pointwise:
            each = {"log_likelihood": {"released": _groups.log_likelihood(problem, runs, used)}}
            cells = layout.cells if data.held_out is None else ("cell",)
            found = inference.datatree(each, {"released": cells}, coords, {})["log_likelihood"].to_dataset()
            if data.held_out is not None:
                where = _groups.cell_labels(problem, coords)
                found = found.assign_coords({name: ("cell", values) for name, values in where.items()})
            tree["log_likelihood"] = found
        return tree

    def _coordinates(self) -> dict[str, Array]:
        """Return the labels of the axes of the data, by the names of the axes."""
        found = {}
        for name, axis in zip(self.problem.layout.cells, self.problem.data.axes, strict=False):
            if axis.labels is not None:
                labels = np.asarray(axis.labels) if len({type(label) for label in axis.labels}) == 1 else None
                plain = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iufU"
                found[name] = labels if plain else np.array([str(label) for label in axis.labels])
        return found  # type: ignore[return-value]
