"""What a fit of this room amounts to: posterior means, held-out errors, labels, draws for ArviZ, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._docs import sections
from quincunx._inference import PosteriorEstimator
from quincunx._sklearn import validation
from quincunx._types import Axes, DataTree, Floats, SeveralAxes
from quincunx.factorization import _plot
from quincunx.factorization._data import Data, as_mask
from quincunx.factorization._misfit import STATISTICS, Misfit, PredictiveCheck, misfit, predictive_check
from quincunx.factorization._posterior import Posterior


@sections
class Results(PosteriorEstimator):
    """The results that all models of this room have."""

    PUBLISHED: ClassVar = PosteriorEstimator.PUBLISHED | dict.fromkeys(
        ("elbo_", "expected_counts_", "misfit_", "n_iter_", "rates_"), "released"
    )
    threads: int | None
    _posterior: Posterior
    #: Worked out when it is first asked for.
    _misfit: Misfit | None = None

    def _as_fitted(self) -> Self:
        """Return a model with the parameters of the fit, which may have been changed since."""
        return type(self)(**self._settings)

    def _own_held_out(self, shape: tuple[int, ...], *, new_rows: bool = False) -> npt.NDArray[np.bool_] | None:
        """Return the cells that the model has no rate for, of the rows of the fit or of others."""
        return None

    def _axis_factor(self, axis: int) -> Floats:
        """Return the table (extent, n_components) of posterior means that belongs to an axis of the data."""
        raise NotImplementedError

    def _set_fitted(self, posterior: Posterior) -> None:
        """Set the fitted attributes that all models have."""
        self.n_iter_ = max(run.iteration for run in posterior.with_draws)
        self._misfit = None
        self.__dict__.pop("elbo_", None)
        if not posterior.sampled:
            self.elbo_ = posterior.best.elbo

    def _fitted(self) -> Posterior:
        validation().check_is_fitted(self)
        return self._posterior

    @property
    def rates_(self) -> Floats:
        """The posterior mean of the rate of each cell, over all chains; computed when first asked for."""
        rates: Floats = self._lazily().rates(self.threads)
        return rates

    @property
    def expected_counts_(self) -> Floats:
        """The posterior mean of the count before noise of each cell, over all chains; computed when first asked for.

        The mean over the kept draws of ``E[count | released, rate]``; where a cell is held out, of the rate.
        """
        counts: Floats = self._lazily().expected_counts(self.threads)
        return counts

    @property
    def misfit_(self) -> Misfit:
        """How far the expected counts are from the release, in standard deviations of the noise.

        A `Misfit`, from two to six draws and a release drawn anew for each: one for two thousand sweeps of all chains.
        """
        if self._misfit is None:
            self._misfit = misfit(self._lazily(), self.threads)
        return self._misfit

    def check_predictive(
        self, statistics: Sequence[str] = ("total", "zeros", "max", "dispersion"), *, n_draws: int = 200
    ) -> PredictiveCheck:
        """Compare the release with releases drawn anew from the fit.

        Parameters
        ----------
        statistics : sequence of {"total", "zeros", "max", "dispersion"}
            What is compared, over the observed cells: their sum, the share of zeros, the largest, and the squared
            distance from the rates in units of the variance of Poisson counts with noise,
            ``sum (x - rate)^2 / sum (rate + 2 alpha / (1 - alpha)^2)``.
        n_draws : int
            How many releases to draw, each by another draw of the posterior as far as there are that many.

        Returns
        -------
        PredictiveCheck

        Raises
        ------
        ValueError, TypeError
            If there is no fit or no observed cell, or an argument is not what it should be.

        Notes
        -----
        About 100 ns for each cell and draw. The draws were shown the release, so that p-values crowd around 1/2
        where a model is true (Gelman, Meng and Stern [1]_), and those near 0 or 1 say the more.

        References
        ----------
        .. [1] A. Gelman, X.-L. Meng and H. Stern (1996), Posterior predictive assessment of model fitness via realized
           discrepancies, Statistica Sinica 6.
        """
        posterior = self._fitted()
        if isinstance(statistics, str) or not hasattr(statistics, "__iter__"):
            raise TypeError(f"`statistics` must be a sequence of names, got {statistics!r}")
        if not (names := [_check.one_of(name, "statistics", STATISTICS) for name in statistics]):
            raise ValueError("`statistics` must have a name at least, got none")
        return predictive_check(posterior, names, _check.whole(n_draws, "n_draws", minimum=1), self.threads)

    def plot_predictive_check(
        self,
        ax: SeveralAxes | None = None,
        *,
        statistics: Sequence[str] = ("total", "zeros", "max", "dispersion"),
        n_draws: int = 200,
    ) -> list[Axes]:
        """Draw what `check_predictive` finds: for each statistic its histogram, and a line where the release has it.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            Where to draw, one for each statistic; a new figure if left out.
        statistics, n_draws
            As for `check_predictive`.

        {several_axes}
        ValueError
            If `ax` does not hold one for each statistic, or as `check_predictive`.
        """
        return _plot.plot_predictive_check(self.check_predictive(statistics, n_draws=n_draws), ax)

    def reconstruct(self) -> Floats:
        """Return the posterior mean of the rate of each cell.

        Returns
        -------
        ndarray of float64, of the shape of the data
            A copy of `rates_`.
        """
        self._fitted()
        return self.rates_.copy()

    def heldout_error(self, counts: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> float:
        """Return the mean absolute difference of true counts and their expected rates, over the cells held out.

        Parameters
        ----------
        counts : array_like
            The true counts, of the shape of the data.
        mask : array_like of bool, optional
            True where a cell counts; by default the cells held out of the fit. With the complement this is the
            reconstruction error.

        Returns
        -------
        float
            Over the cells of the mask.

        Raises
        ------
        ValueError
            If a shape is wrong, or there is no such cell.
        """
        truth, chosen = self._held_out_truth(counts, mask)
        return float(np.abs(self.rates_ - truth)[chosen].mean())

    def heldout_log_probability(self, counts: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> float:
        """Return the mean log predictive probability of true counts, over the cells held out.

        Of each cell it is the logarithm of the mean over the kept draws of ``P(count | draw)``.

        Parameters
        ----------
        counts, mask
            As in `heldout_error`; whole numbers.

        Returns
        -------
        float
            In nats for each cell of the mask.

        Raises
        ------
        ValueError
            If a shape is wrong, a count is not a whole number from 0 to 2^53, or there is no such cell.

        Notes
        -----
        A pass over all cells for each draw.
        """
        truth, chosen = self._held_out_truth(counts, mask)
        fine = ~chosen | ((truth >= 0) & (truth <= 2**53) & (truth == np.floor(truth)))
        _check.require(truth, fine, "counts", "whole numbers from 0 to 2^53 in the cells of the mask")
        cells = Data(truth[chosen].astype(np.int64)[None], np.zeros(()), None)
        return float(self._posterior.log_predictive(cells, chosen, self.threads).mean())

    def _held_out_truth(
        self, counts: npt.ArrayLike, mask: npt.ArrayLike | None
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return true counts and which cells of them are asked for."""
        posterior = self._fitted()
        shape = posterior.problem.data.shape
        own = self._as_fitted()._own_held_out(shape)
        for value, name in ((counts, "counts"), (mask, "mask")):
            _tables.refuse_other_labels(_tables.axes(value), posterior.problem.data.axes, name, "the fit")
        chosen = posterior.problem.data.held_out if mask is None else as_mask(mask, shape)
        if chosen is not None and own is not None:
            chosen = chosen & ~own
        if chosen is None or not chosen.any():
            raise ValueError("`mask` must be True for a cell at least, got none")
        truth = _check.reals(_tables.array(counts, "counts"), "counts")
        if truth.shape != shape:
            raise ValueError(f"`counts` must have shape {shape}, got {truth.shape}")
        return truth, chosen

    def to_datatree(
        self, *, n_draws: int = 1000, log_likelihood: bool = False, posterior_predictive: bool = False
    ) -> DataTree:
        """Return the posterior as an xarray DataTree, for ArviZ.

        Groups ``posterior`` (the factors by name), ``sample_stats`` (``total_log_likelihood``, ``total_rate``,
        ``sweep``), ``observed_data`` and, where cells were held out, ``constant_data``. Axes have the labels of the
        data. Components carry other labels in other chains until `align` is called.

        Parameters
        ----------
        n_draws : int
            With variational inference, how many draws of the approximation are made; else without effect.
        log_likelihood : bool
            Whether to add a group of that name with a number for each draw and each released count, which ArviZ's
            ``loo`` works on. Where cells were held out, it has one axis ``cell`` of the others.
        posterior_predictive : bool
            Whether to add a group of that name with a release drawn anew for each draw, noise and all.

        Returns
        -------
        xarray.DataTree

        Raises
        ------
        ImportError
            If ArviZ is not installed: ``pip install 'quincunx[arviz]'``.
        TooLargeError
            If a number for each cell and draw does not fit into memory.

        Notes
        -----
        Both groups cost a pass over all cells for each draw, and 8 bytes for each cell and draw.
        """
        posterior = self._fitted()
        return posterior.to_datatree(
            _check.whole(n_draws, "n_draws", minimum=1),
            pointwise=_check.flag(log_likelihood, "log_likelihood"),
            predictive=_check.flag(posterior_predictive, "posterior_predictive"),
            threads=self.threads,
        )

    def align(self, *, each_draw: bool = False) -> Self:
        """Give components that are alike the same label in all chains.

        The posterior is the same under any permutation of its components, and chains end up in different ones; R-hat
        of a factor means something only after this. Each chain gets the permutation in which its mean components
        correlate best with those of the chain of highest mean log-likelihood, summed over the factors, by the
        Hungarian method.

        Parameters
        ----------
        each_draw : bool
            Whether each draw gets a permutation of its own, for chains whose labels change on the way.

        Returns
        -------
        self
            With `draws_`, `to_datatree` and the posterior means in the new order. A later `fit` has none.

        Raises
        ------
        ValueError
            If there is no fit, or it was of variational inference, which has no chains.
        """
        posterior = self._fitted()
        if not posterior.sampled:
            raise ValueError("`align` is for chains, and variational inference has none")
        posterior.align(_check.flag(each_draw, "each_draw"))
        self._set_fitted(posterior)
        return self

    @overload
    def top_features(self, component: None = None, *, n: int = 10, axis: int = -1) -> list[_plot.Top]: ...
    @overload
    def top_features(self, component: int, *, n: int = 10, axis: int = -1) -> _plot.Top: ...
    def top_features(self, component: int | None = None, *, n: int = 10, axis: int = -1) -> _plot.Top | list[_plot.Top]:
        """Return what weighs most in a component.

        Parameters
        ----------
        component : int, optional
            Which; by default all of them.
        n : int
            How many features.
        axis : int
            Of which axis of the data, for tensors; by default the last.

        Returns
        -------
        list of tuple
            Labels of the axis (numbers where it has none) and shares of the component, which sum to one over all
            features; for all components a list of such lists.

        Raises
        ------
        ValueError, TypeError
            If there is no fit, no such component or axis, or `n` is not at least 1.
        """
        posterior = self._fitted()
        number = _check.whole(n, "n", minimum=1)
        shape = posterior.problem.data.shape
        place = _check.whole(axis, "axis", minimum=-len(shape), maximum=len(shape) - 1) % len(shape)
        table = self._axis_factor(place)
        axes = posterior.problem.data.axes
        named = axes[place].labels if axes else None
        labels = range(shape[place]) if named is None else named
        width = table.shape[1]
        if component is not None:
            component = _check.whole(component, "component", maximum=width - 1)
        found = []
        for k in range(width) if component is None else [component]:
            shares = table[:, k] / (table[:, k].sum() or 1.0)
            order = np.argsort(-shares, kind="stable")[:number]
            found.append([(labels[i], float(shares[i])) for i in order])
        return found if component is None else found[0]

    def plot_components(self, ax: SeveralAxes | None = None, *, n: int = 10, axis: int = -1) -> list[Axes]:
        """Draw the components: for each a bar for everything that weighs most in it.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            Where to draw, one for each component; a new figure if left out.
        n, axis
            As for `top_features`.

        {several_axes}
        ValueError
            If `ax` does not hold one for each component, or as `top_features`.
        """
        return _plot.plot_components(self.top_features(n=n, axis=axis), ax)

    def plot_trace(self, ax: SeveralAxes | None = None) -> list[Axes]:
        """Draw how the chains went: total rate and log-likelihood by sweep, or the bound of variational inference.

        Both are the same under any permutation of the components.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            Where to draw: two, or one for variational inference; a new figure if left out.

        {several_axes}
        ValueError
            If there is no fit, or `ax` has another length.
        """
        return _plot.plot_trace(self._fitted(), ax)
