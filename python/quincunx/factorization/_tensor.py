"""Factorization of a tensor of counts: the CP model."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from quincunx._inference import Array, Floats, parameters
from quincunx._sklearn import validation
from quincunx.factorization._data import Counts
from quincunx.factorization._estimator import model_doc
from quincunx.factorization._layout import Factor, Layout
from quincunx.factorization._posterior import Posterior
from quincunx.factorization._transform import RowTransformer


@model_doc
@parameters
class PoissonTensorFactorization(RowTransformer):
    """CP Poisson factorization of a tensor of counts that was released with noise.

    ``released = count + noise``, ``count[i] ~ Poisson(sum_k weights[k] prod_m factors[m][i_m, k])``, the noise
    two-sided geometric of ratio alpha, gamma priors on all factors.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    weights : bool, default=False
        Whether each component has a weight of its own.
    prior_shape, prior_rate : float or sequence, default=0.1 and 1.0
        Shape and rate of the gamma priors: a number, or a sequence with one entry for each factor (mode_0, mode_1,
        ..., and weights last if there are any), each a number or an array that broadcasts to the factor's shape.
    {inference}

    Attributes
    ----------
    factors_ : list of ndarray
        Posterior mean of each mode's factor, of shape (extent, n_components), by the chain of highest mean
        log-likelihood.
    weights_ : ndarray of shape (n_components,)
        Posterior mean of the weights, by the same chain; ones where there are none.
    embedding_ : ndarray
        ``factors_[0]``.
    components_ : ndarray of shape (n_components, extent_1, extent_2, ...)
        What a unit of each component of `embedding_` adds to the rates: products of the other factors and the weights.
    rates_, expected_counts_ : ndarray of the shape of the data
        Posterior means over all chains; computed when first asked for.
    draws_ : dict
        The kept draws ``"mode_0"``, ``"mode_1"``, ... and ``"weights"``, with axes (chain, draw, ...).
    elbo_ : ndarray
        The ELBO after each iteration of variational inference.
    n_iter_ : int
        Sweeps or iterations done.

    Notes
    -----
    Any number of modes from two. See `PoissonFactorization` for what both have in common.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonTensorFactorization
    >>> from quincunx.privacy import privatize
    >>> counts = np.random.default_rng(1).poisson(2.0, (6, 5, 4))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonTensorFactorization(2, inference="vi", max_iter=5000, tol=1e-5, random_state=0).fit(release)
    >>> [factor.shape for factor in model.factors_], model.rates_.shape
    ([(6, 2), (5, 2), (4, 2)], (6, 5, 4))
    """

    PUBLISHED: ClassVar = RowTransformer.PUBLISHED | {"factors_": "released", "weights_": "released"}

    _switches: ClassVar = ("weights",)
    weights: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        width = int(self.n_components)
        modes = tuple(
            Factor(f"mode_{m}", (extent, width), (f"axis_{m}", "component")) for m, extent in enumerate(shape)
        )
        cells = tuple(f"axis_{m}" for m in range(len(shape)))
        # The weights are a mode of extent one, and lead in the core.
        if self.weights:
            first = Factor("weights", (1, width), ("component",), "vector")
            return Layout("cp", (1, *shape), width, (first, *modes), cells)
        return Layout("cp", shape, width, modes, cells)

    def _checked_values(self, released: Counts, *, reset: bool) -> Array:
        if getattr(released, "ndim", 0) < 3 and (hasattr(released, "ndim") or np.ndim(np.asarray(released)) < 3):
            values = super()._checked_values(released, reset=reset)
        else:
            values = validation().check_array(released, allow_nd=True, ensure_all_finite=False, input_name="released")
            if not values.size:
                raise ValueError(f"`released` must have a cell at least, got shape {values.shape}")
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = values.shape[1]
        if not reset and values.shape[1:] != (expected := self._posterior.problem.data.shape[1:]):
            raise ValueError(f"`released` must have shape (n, {', '.join(map(str, expected))}), got {values.shape}")
        return values

    def _set_fitted(self, posterior: Posterior) -> None:
        super()._set_fitted(posterior)
        tables = posterior.means()
        self.weights_ = tables.pop(0)[0] if self._row_factor() else np.ones(tables[0].shape[1])
        self.factors_ = tables
        self.embedding_ = tables[0]

    def _row_factor(self) -> int:
        return int(self._posterior.problem.layout.factors[0].name == "weights")

    def _axis_factor(self, axis: int) -> Floats:
        factor: Floats = self.factors_[axis]
        return factor

    @property
    def components_(self) -> Floats:
        """What a unit of each component of the embedding adds to the rates."""
        self._lazily()
        components: Floats = self.weights_.copy()
        for factor in self.factors_[1:]:
            components = components[..., None] * factor.T.reshape(
                factor.shape[1], *(1,) * (components.ndim - 1), len(factor)
            )
        return components

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)
