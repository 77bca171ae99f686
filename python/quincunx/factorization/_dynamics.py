"""Counts over time: Poisson-gamma dynamical systems, with forecasts."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from quincunx import _check
from quincunx._inference import parameters
from quincunx._types import Array, Facts, Floats
from quincunx.factorization._chains import Problem
from quincunx.factorization._data import Counts, Data
from quincunx.factorization._estimator import model_doc
from quincunx.factorization._in_sample import InSample
from quincunx.factorization._layout import Factor, Layout, PriorLike, products
from quincunx.factorization._posterior import Posterior


def _warn_of_gaps(times: Sequence[Any]) -> None:
    """Warn where dates or numbers skip times, by half more than the step that is usual: months and years may differ."""
    if not all(hasattr(time, "year") or isinstance(time, (int, float)) for time in times):
        return
    places = [getattr(time, "ordinal", time) for time in times]  # periods of pandas have it as a number
    steps = [later - place for place, later in itertools.pairwise(places)]
    if not steps or min(steps) <= 0 * steps[0]:
        return
    usual = sorted(steps)[len(steps) // 2]
    gaps = [i for i, step in enumerate(steps) if step > 1.5 * usual]
    if gaps:
        i = gaps[0]
        warnings.warn(
            f"{len(gaps)} of {len(steps)} steps between times are longer than usual, the first from {times[i]} to "
            f"{times[i + 1]}, and each is taken as one: put rows in for the times that are missing, and hold them out",
            UserWarning,
            stacklevel=2,
        )


@dataclass(frozen=True, eq=False)
class Forecast:
    """The posterior predictive law of the counts after the last time, before any noise.

    Attributes
    ----------
    mean : ndarray of float64, shape (steps, ...)
        Expected counts: the mean over all kept draws of their conditional expectations, not of `draws`.
    draws : ndarray of int64, shape (n_chains, n_draws, steps, ...)
        Counts on one simulated path for each kept draw.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import Forecast
    >>> few = Forecast(mean=np.full((1, 2), 2.0), draws=np.arange(8).reshape(1, 4, 1, 2))
    >>> [edge.tolist() for edge in few.interval(0.5)]
    [[[0.0, 1.0]], [[4.0, 5.0]]]
    """

    mean: Floats
    draws: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _check.reals(self.mean, "mean"))
        object.__setattr__(self, "draws", draws := _check.counts(self.draws, "draws"))
        if draws.shape[2:] != self.mean.shape or not draws.size:
            raise ValueError(f"`draws` must have shape (n_chains, n_draws, *{self.mean.shape}), got {draws.shape}")

    def quantile(self, probability: float = 0.5) -> Floats:
        """Return a quantile of the counts, cell by cell: by default the median, whose mean absolute error is the least.

        Parameters
        ----------
        probability : float
            In (0, 1): that of a count of at most the quantile, at least.

        Returns
        -------
        ndarray of float64, shape (steps, ...)
            The least count of the draws that so many of them do not exceed.

        Raises
        ------
        ValueError
            If `probability` is not in (0, 1).

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.factorization import Forecast
        >>> Forecast(mean=np.full((1, 2), 3.5), draws=np.arange(8).reshape(1, 4, 1, 2)).quantile().tolist()
        [[2.0, 3.0]]
        """
        probability = _check.open_probability(probability, "probability")
        draws = self.draws.reshape(-1, *self.mean.shape)
        return np.quantile(draws, probability, axis=0, method="inverted_cdf").astype(np.float64)

    def interval(self, confidence: float = 0.9) -> tuple[Floats, Floats]:
        """Return central intervals of the counts, cell by cell.

        Parameters
        ----------
        confidence : float
            In (0, 1): the probability of each interval, at least.

        Returns
        -------
        lower, upper : ndarray of float64, shape (steps, ...)
            Quantiles of the draws, which are counts.

        Raises
        ------
        ValueError
            If `confidence` is not in (0, 1).
        """
        rest = 0.5 * (1.0 - _check.open_probability(confidence, "confidence"))
        return self.quantile(rest), self.quantile(1.0 - rest)


@model_doc
@parameters
class PoissonDynamics(InSample):
    """Poisson-gamma dynamical system of counts over time that were released with noise.

    ``released = count + noise``, ``count[t, v] ~ Poisson(delta[t] sum_k embedding[t, k] components[k, v])``, the noise
    two-sided geometric of ratio alpha. The components drive one another from time to time [1]_::

        embedding[t] ~ Gamma(tau transitions @ embedding[t - 1], tau),    embedding[0] ~ Gamma(tau nu, tau)

    (shape, rate), so that ``transitions @ embedding[t]`` is what to expect next. Rows of the components and columns of
    the transitions sum to one and have Dirichlet priors. With more axes than two, the components are products of one
    factor for each axis but the first.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    delta : {{"fixed", "learnt"}}, default="fixed"
        Whether each time has a scale of its own, ``delta[t] ~ Gamma(prior_shape, prior_rate)``, or all have 1. The
        times to be forecast have a new one, so that forecasts with ``"learnt"`` are as wide as this prior.
    tau : float or "learnt", default="learnt"
        How little the embedding moves: ``var(embedding[t, k])`` given the time before is its mean over tau. As a
        parameter it comes with the scale of the counts, and to learn it is to learn one delta for all times.
    topic_concentration : float, default=0.1
        Concentration of the Dirichlet priors of the components.
    mass : float, default=5.0
        Mass of the gamma process: ``nu[k] ~ Gamma(mass / n_components, beta)``. Below one for each component,
        components that are not needed are left empty.
    prior_shape, prior_rate : float, default=0.1
        Shape and rate of the gamma priors of xi, beta, tau and the deltas. Concentrations of the column j of the
        transitions are ``nu[k] nu[j]``, on the diagonal ``xi nu[j]``.
    {inference}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features, ...)
        Posterior mean of the components, by the chain of highest mean log-likelihood: products of `factors_`.
    factors_ : list of ndarray
        Posterior mean of the factor of each axis but the first, of shape (extent, n_components); columns sum to one.
    embedding_ : ndarray of shape (n_times, n_components)
        Posterior mean of the embedding of the times, by the same chain.
    transitions_ : ndarray of shape (n_components, n_components)
        Posterior mean of the transitions, by the same chain; entry (k, j) is the share of j that goes to k.
    delta_, nu_, tau_ : ndarray of shape (n_times,), (n_components,), float
        Posterior means, by the same chain.
    rates_, expected_counts_ : ndarray of the shape of the data
        Posterior means of the rates and of the counts before noise, over all chains; computed when first asked for.
    draws_ : dict
        The kept draws ``"embedding"``, ``"components"`` (with more axes ``"mode_1"``, ``"mode_2"``, ...),
        ``"transitions"``, ``"delta"``, ``"nu"``, ``"xi"``, ``"beta"`` and ``"tau"``, with axes (chain, draw, ...).
    n_iter_ : int
        Sweeps done.
    n_features_in_, feature_names_in_
        Columns, and their names where they have names.

    Notes
    -----
    Times are in the order of the rows, dates may not go back; in a long table numbers and dates are put in order, and
    words stay as they first appear. From one row to the next is one step, however far apart their times are: a warning
    says where dates or numbers skip some.

    There is no variational inference of this model: ``inference`` is ``"mcmc"``. Held-out cells are drawn with the
    counts, and may be whole times: `rates_` is then what the times before and after make of them (smoothing).

    A sweep draws the counts, sums them by component, and goes back and forth once through the times:
    ``n_times * n_components**2`` products and as many draws of tables (Chinese restaurant table counts) as there are
    counts by time and component. tau is drawn by a slice sampler from its law given the tables; the paper has it fixed.

    References
    ----------
    .. [1] A. Schein, H. Wallach and M. Zhou (2016), Poisson-gamma dynamical systems, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonDynamics
    >>> from quincunx.privacy import privatize
    >>> season = np.where(np.arange(24)[:, None] % 2 == np.arange(6) % 2, 12.0, 1.0)
    >>> counts = np.random.default_rng(1).poisson(season)
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonDynamics(2, tau=5.0, n_warmup=500, n_draws=1000, n_chains=2, random_state=0).fit(release)
    >>> model.embedding_.shape, model.components_.shape, model.transitions_.shape
    ((24, 2), (2, 6), (2, 2))
    >>> even, odd = model.forecast(2).mean.reshape(2, 3, 2).mean(axis=1).T
    >>> bool(even[0] > odd[0]), bool(even[1] < odd[1])
    (True, True)
    """

    PUBLISHED: ClassVar = InSample.PUBLISHED | dict.fromkeys(
        ("factors_", "transitions_", "delta_", "nu_", "tau_"), "released"
    )

    _of_tensors: ClassVar = True
    delta: Literal["fixed", "learnt"] = "fixed"
    tau: float | Literal["learnt"] = "learnt"
    topic_concentration: float = 0.1
    mass: float = 5.0
    prior_shape: PriorLike = 0.1
    prior_rate: PriorLike = 0.1

    def _check_parameters(self, executor: Executor | None) -> None:
        super()._check_parameters(executor)
        if self.hyperpriors == "row":
            raise ValueError(
                "`hyperpriors` must be None or 'factor' for dynamics, got 'row': rows of theirs have no rates"
            )
        if self.inference != "mcmc":
            raise ValueError(f"`inference` must be 'mcmc' for dynamics, got {self.inference!r}")
        _check.one_of(self.delta, "delta", ("fixed", "learnt"))
        for name in ("topic_concentration", "mass", "prior_shape", "prior_rate"):
            _check.real(getattr(self, name), name, positive=True)
        if self.tau != "learnt":
            if isinstance(self.tau, str):
                raise ValueError(f"`tau` must be a positive number or 'learnt', got {self.tau!r}")
            _check.real(self.tau, "tau", positive=True)

    def _fixed_settings(self) -> Facts:
        tau = self.tau if isinstance(self.tau, str) else float(self.tau)
        return super()._fixed_settings() | {"delta": str(self.delta), "tau": tau}

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        width, (times, *extents) = int(self.n_components), shape
        if len(extents) == 1:
            cells: tuple[str, ...] = ("time", "feature")
            modes = [Factor("components", (extents[0], width), ("component", "feature"), "transposed")]
        else:
            cells = ("time", *(f"axis_{m}" for m in range(1, len(shape))))
            modes = [
                Factor(f"mode_{m}", (extent, width), (f"axis_{m}", "component")) for m, extent in enumerate(extents, 1)
            ]
        factors = (
            Factor("embedding", (times, width), ("time", "component")),
            *modes,
            Factor("transitions", (width, width), ("to_component", "component"), sets=(0, 0)),
            Factor("delta", (1, times), ("time",), "vector", (None, None), fixed=self.delta == "fixed"),
            Factor("nu", (1, width), ("component",), "vector"),
            Factor("xi", (1, 1), (), "folded", (None, None)),
            Factor("beta", (1, 1), (), "folded", (None, None)),
            Factor("tau", (1, 1), (), "folded", (None, None), fixed=self.tau != "learnt"),
        )
        return Layout("dynamics", shape, width, factors, cells)

    def _priors(self, layout: Layout) -> list[tuple[Floats, Floats]]:
        def pair(shape: PriorLike, rate: PriorLike) -> tuple[Floats, Floats]:
            return np.array([shape], dtype=np.float64), np.array([rate], dtype=np.float64)

        phi = np.array([self.topic_concentration], dtype=np.float64), np.empty(0)
        usual = pair(self.prior_shape, self.prior_rate)
        # Of the embedding and the transitions nothing is looked at, and of nu not the rate; what is fixed is its mean.
        return [
            pair(1, 1),
            *[phi] * (len(layout.extents) - 1),
            pair(1, 1),
            usual if self.delta == "learnt" else pair(1, 1),
            pair(self.mass / layout.n_components, 1),
            usual,
            usual,
            usual if self.tau == "learnt" else pair(self.tau, 1),
        ]

    def _problem(self, data: Data) -> Problem:
        times: Any = (data.axes[0].labels or ()) if data.axes else ()
        kinds = {(type(time), getattr(time, "tzinfo", None) is None) for time in times}  # which can be compared
        if len(kinds) == 1 and hasattr(times[0], "year"):
            for before, time in itertools.pairwise(times):
                if time < before:
                    raise ValueError(f"`released` must have its times in their order, got {time} after {before}")
        _warn_of_gaps(times if len(kinds) == 1 else ())
        # A sweep's draws take the square root of the counts: .07 s each at this bound, and no Ctrl-C is heard within.
        most = max((np.abs(counts.astype(np.float64)).sum() for counts in data.values), default=0.0)
        if most > 2.0**36:
            raise ValueError(f"`released` must have at most 2**36 counts at each time, got {most:.3g}")
        return super()._problem(data)

    def _checked_values(self, released: Counts, *, reset: bool) -> Array:
        values = super()._checked_values(released, reset=reset)
        if not reset and values.shape != (expected := self._posterior.problem.data.shape):
            raise ValueError(f"`released` must have shape {expected}, as in the fit, got {values.shape}")
        return values

    def _set_fitted(self, posterior: Posterior) -> None:
        super()._set_fitted(posterior)
        self.embedding_, *self.factors_, self.transitions_, delta, nu, _, _, tau = posterior.means()
        self.delta_, self.nu_, self.tau_ = delta[0], nu[0], float(tau[0, 0])

    @property
    def components_(self) -> Floats:
        """What a unit of each component adds to the rates of a time: a law over their cells."""
        self._lazily()
        return products(np.ones(len(self.transitions_)), self.factors_)

    def _axis_factor(self, axis: int) -> Floats:
        return self.factors_[axis - 1] if axis else self.embedding_

    def forecast(self, steps: int) -> Forecast:
        """Return the posterior predictive law of the counts at times after the last.

        Given a draw of the posterior the expected embedding after s steps is ``transitions**s @ embedding[-1]``. Each
        draw also gives one simulated path, with gamma steps and Poisson counts; it is the same at each call with
        as many steps.

        Parameters
        ----------
        steps : int
            How many times, at least 1.

        Returns
        -------
        Forecast
            With `mean`, `draws`, `quantile(probability)` and `interval(confidence)`.

        Raises
        ------
        ValueError, TypeError
            If there is no fit, or `steps` is not at least 1.
        TooLargeError
            If a number for each draw and cell does not fit into memory.
        """
        posterior = self._fitted()
        steps = _check.whole(steps, "steps", minimum=1)
        problem, used = posterior.problem, _check.threads(self.threads)
        shape = (steps, *problem.data.shape[1:])
        number = len(posterior.with_draws) * posterior.n_draws
        _check.room(8 * (number + 3) * int(np.prod(shape)), "a count for each draw and cell")
        layout = replace(problem.layout, extents=shape)
        place = len(shape) + 1  # of the deltas
        means, draws = np.zeros(shape), np.empty((len(posterior.with_draws), posterior.n_draws, *shape), dtype=np.int64)
        delta_prior = [float(part[0]) for part in problem.priors[place]]
        learnt = not problem.variables[place].fixed
        for chain, run in enumerate(posterior.with_draws):
            rng = np.random.default_rng([*run.key, steps])
            for draw in range(posterior.n_draws):
                tables = [part[draw] for part in run.draws[: len(layout.factors)]]
                now, transitions, tau = tables[0][-1], tables[place - 1], tables[-1][0, 0]
                expected, simulated = np.empty((2, steps, len(now)))
                mean = now
                for step in range(steps):
                    expected[step] = mean = transitions @ mean
                    simulated[step] = now = rng.standard_gamma(tau * (transitions @ now)) / tau
                deltas = np.ones((1, steps))
                if learnt:
                    deltas = rng.standard_gamma(delta_prior[0], (1, steps)) / delta_prior[1]
                    expected *= delta_prior[0] / delta_prior[1]
                means += self._rates(layout, tables, expected, np.ones((1, steps)), used)
                rates = self._rates(layout, tables, simulated, deltas, used)
                draws[chain, draw] = rng.poisson(np.minimum(rates, 2.0**53))
        return Forecast(means / number, draws)

    @staticmethod
    def _rates(layout: Layout, tables: list[Floats], embedding: Floats, deltas: Floats, threads: int) -> Floats:
        place = len(layout.extents) + 1
        found = layout.rates([embedding, *tables[1:place], deltas, *tables[place + 1 :]], threads)
        return found.reshape(layout.extents)
