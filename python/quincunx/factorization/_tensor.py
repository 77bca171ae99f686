"""Factorization of a tensor of counts: the CP model, and Tucker's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from itertools import combinations
from typing import ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import parameters
from quincunx._types import Array, Facts, Floats
from quincunx.factorization._data import Counts, Data, Given
from quincunx.factorization._estimator import model_doc
from quincunx.factorization._layout import Factor, Layout, products
from quincunx.factorization._posterior import Posterior
from quincunx.factorization._transform import RowTransformer


@model_doc
@parameters
class PoissonTensorFactorization(RowTransformer):
    """CP or Tucker Poisson factorization of a tensor of counts that was released with noise.

    ``released = count + noise``, ``count[i] ~ Poisson(sum_k weights[k] prod_m factors[m][i_m, k])``, the noise
    two-sided geometric of ratio alpha, gamma priors on all factors [1]_. With a dense core each mode has components
    of its own, ``count[i] ~ Poisson(sum_q core[q] prod_m factors[m][i_m, q_m])`` [2]_.

    Parameters
    ----------
    n_components : int or sequence of int, default=10
        Number of components; with a dense core one for each mode, or the same for all.
    core : {"diagonal", "dense"}, default="diagonal"
        Whether component k of a mode goes with component k of the others alone (CP), or each with each (Tucker).
    tied : sequence of sequences of int, optional
        Modes that share one factor, as ``[(0, 1)]`` for a network over time: actors by actors by time. They have the
        same extent, labels and number of components, and cells in which their indices agree are held out. Needs a
        dense core.
    weights : bool, default=False
        Whether each component has a weight of its own; a dense core has them already.
    prior_shape, prior_rate : float or sequence, default=0.1 and 1.0
        Shape and rate of the gamma priors: a number, or a sequence with one entry for each factor (mode_0, mode_1,
        ..., without those that share an earlier one; weights or core last if there are any), each a number or an
        array that broadcasts to the factor's shape.
    {inference}

    Attributes
    ----------
    factors_ : list of ndarray
        Posterior mean of each mode's factor, of shape (extent, n_components), by the chain of highest mean
        log-likelihood. Tied modes have the same.
    weights_ : ndarray of shape (n_components,)
        Posterior mean of the weights, by the same chain; ones where there are none. Not with a dense core.
    core_ : ndarray of shape (n_components[0], n_components[1], ...)
        Posterior mean of a dense core, by the same chain.
    embedding_ : ndarray
        ``factors_[0]``.
    components_ : ndarray of shape (n_components, extent_1, extent_2, ...)
        What a unit of each component of `embedding_` adds to the rates: products of the other factors and the weights
        or the core.
    rates_, expected_counts_ : ndarray of the shape of the data
        Posterior means over all chains; computed when first asked for.
    {learnt}
    draws_ : dict
        The kept draws ``"mode_0"``, ``"mode_1"``, ... and ``"weights"`` or ``"core"``, with axes (chain, draw, ...).
    {done}

    Notes
    -----
    Any number of modes from two. See `PoissonFactorization` for what both have in common.

    The work of a sweep is linear in the cells; a dense core adds ``prod(n_components)`` products for each row of the
    last mode and for each of those where cells are held out, so the longest mode had better be last. A core can be
    turned into its factors and back without a change of the rates, so that posterior means of components mean less
    than those of `rates_`; `align` permutes the components of each mode by themselves, and the core with them. With
    a tied first mode `transform` and `score` take its rows for new ones, which agree with no index of another mode;
    `fit_transform` knows them.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML.
    .. [2] A. Schein, M. Zhou, D. M. Blei and H. Wallach (2016), Bayesian Poisson Tucker decomposition for learning the
       structure of international relations, ICML.

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

    A network over time, with three communities and two regimes of their relations:

    >>> counts = np.random.default_rng(1).poisson(2.0, (6, 6, 4))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)
    >>> model = PoissonTensorFactorization((3, 3, 2), core="dense", tied=[(0, 1)], inference="vi", tol=1e-4)
    >>> model = model.set_params(random_state=0).fit(release)
    >>> model.core_.shape, [factor.shape for factor in model.factors_]
    ((3, 3, 2), [(6, 3), (6, 3), (4, 2)])
    """

    PUBLISHED: ClassVar = RowTransformer.PUBLISHED | dict.fromkeys(("factors_", "weights_", "core_"), "released")

    _of_tensors: ClassVar = True
    _switches: ClassVar = ("weights",)
    _sizes_of: ClassVar = ("n_components", "core", "tied")
    n_components: int | Sequence[int] = field(default=10, kw_only=False)  # type: ignore[assignment]
    core: Literal["diagonal", "dense"] = "diagonal"
    tied: Sequence[Sequence[int]] | None = None
    weights: bool = False

    def _sizes(self) -> Facts:
        _check.one_of(self.core, "core", ("diagonal", "dense"))
        if self.core == "diagonal":
            if self.tied is not None:
                raise ValueError(f'`tied` must be None without a core="dense", got {self.tied!r}')
            return super()._sizes() | {"core": self.core, "tied": None}
        if isinstance(self.weights, (bool, np.bool_)) and self.weights:
            raise ValueError(f'`weights` must be False with core="dense", got {self.weights!r}')
        found: Facts = {"core": self.core, "tied": None}
        if isinstance(self.n_components, (Sequence, np.ndarray)) and not isinstance(self.n_components, str):
            found["n_components"] = [_check.whole(one, "n_components", minimum=1) for one in self.n_components]
        else:
            found |= super()._sizes()
        if self.tied is not None:
            found["tied"] = [
                [_check.whole(mode, "tied") for mode in _sequence(group)] for group in _sequence(self.tied)
            ]
            modes = [mode for group in found["tied"] for mode in group]
            if len(set(modes)) < len(modes) or any(len(group) < 2 for group in found["tied"]):
                raise ValueError(f"`tied` must hold groups of two modes or more, no mode twice, got {self.tied!r}")
        return found

    def _first(self, modes: int) -> list[int]:
        """Return for each mode the first of those that it shares its factor with."""
        sizes = self._sizes()
        tied = sizes["tied"] or []
        if any(mode >= modes for group in tied for mode in group):
            raise ValueError(f"`tied` must hold modes below {modes}, got {self.tied!r}")
        return [min(next((group for group in tied if mode in group), [mode])) for mode in range(modes)]

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        cells = tuple(f"axis_{m}" for m in range(len(shape)))
        if self.core == "dense":
            return self._layout_with_core(shape, cells)
        width = int(self._sizes()["n_components"])
        modes = tuple(
            Factor(f"mode_{m}", (extent, width), (f"axis_{m}", "component")) for m, extent in enumerate(shape)
        )
        # The weights are a mode of extent one, behind the rows.
        if self.weights:
            more = Factor("weights", (1, width), ("component",), "vector")
            return Layout("cp", (shape[0], 1, *shape[1:]), width, (modes[0], more, *modes[1:]), cells)
        return Layout("cp", shape, width, modes, cells)

    def _layout_with_core(self, shape: tuple[int, ...], cells: tuple[str, ...]) -> Layout:
        given, first = self._sizes()["n_components"], self._first(len(shape))
        widths = tuple(given) if isinstance(given, list) else (given,) * len(shape)
        if len(widths) != len(shape):
            raise ValueError(f"`n_components` must be a number or hold one for each of {len(shape)} modes, got {given}")
        for mode, other in enumerate(first):
            if (shape[mode], widths[mode]) != (shape[other], widths[other]):
                raise ValueError(
                    f"`tied` must hold modes of one extent and number of components, got modes {other} and {mode} of "
                    f"extents {shape[other]} and {shape[mode]}, {widths[other]} and {widths[mode]} components"
                )
        own = sorted(set(first))
        numbers = tuple(own.index(mode) for mode in first)
        factors = [
            Factor(f"mode_{m}", (shape[m], widths[m]), (f"axis_{m}", f"component_{m}"), sets=(None, i))
            for i, m in enumerate(own)
        ]
        table = (math.prod(widths[:-1]), widths[-1])
        dims = tuple(f"component_{m}" for m in range(len(shape)))
        factors.append(Factor("core", table, dims, "folded", numbers, widths))
        model = "tucker" if len(own) == len(shape) else "tucker-tied"
        return Layout(model, (*shape, *widths, *numbers), widths[-1], tuple(factors), cells)

    def _own_held_out(self, shape: tuple[int, ...], *, new_rows: bool = False) -> npt.NDArray[np.bool_] | None:
        first = self._first(len(shape))
        pairs = [(a, b) for a, b in combinations(range(int(new_rows), len(shape)), 2) if first[a] == first[b]]
        if not pairs:
            return None
        _check.room(math.prod(shape), "a mask of the cells")
        held_out = np.zeros(shape, dtype=bool)
        for a, b in pairs:
            index = np.ogrid[tuple(slice(extent) for extent in shape)]
            held_out |= index[a] == index[b]
        return held_out

    def _data(self, released: Counts, alpha: Given, mask: Given, *, reset: bool) -> Data:
        data = super()._data(released, alpha, mask, reset=reset)
        labels = [axis.labels for axis in data.axes]
        if reset and labels and any(labels[m] != labels[other] for m, other in enumerate(self._first(len(labels)))):
            raise ValueError("`released` must have the same labels in the same order on axes that are tied")
        return data

    def _checked_values(self, released: Counts, *, reset: bool) -> Array:
        values = super()._checked_values(released, reset=reset)
        if not reset and values.shape[1:] != (expected := self._posterior.problem.data.shape[1:]):
            raise ValueError(f"`released` must have shape (n, {', '.join(map(str, expected))}), got {values.shape}")
        return values

    def _set_fitted(self, posterior: Posterior) -> None:
        super()._set_fitted(posterior)
        factors, tables = posterior.problem.layout.factors, posterior.means()
        for name in ("weights_", "core_"):
            self.__dict__.pop(name, None)
        if factors[-1].name == "core":
            self.core_ = factors[-1].shown(tables[-1])
            tables = [tables[number] for number in factors[-1].sets if number is not None]
        else:
            weights = [tables.pop(i)[0] for i, factor in enumerate(factors) if factor.name == "weights"]
            self.weights_ = weights[0] if weights else np.ones(tables[0].shape[1])
        self.factors_ = tables
        self.embedding_ = tables[0]

    def _axis_factor(self, axis: int) -> Floats:
        return self.factors_[axis]

    @property
    def components_(self) -> Floats:
        """What a unit of each component of the embedding adds to the rates."""
        self._lazily()
        if hasattr(self, "core_"):
            components: Floats = self.core_
            for factor in self.factors_[1:]:  # the components of a mode go, its indices come last
                components = np.tensordot(components, factor, axes=(1, 1))
            return components
        return products(self.weights_, self.factors_[1:])

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


T = TypeVar("T")


def _sequence(value: Sequence[T]) -> Sequence[T]:
    """Return modes, or groups of them, if they are a sequence."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"`tied` must be a sequence of groups of modes, as [(0, 1)], got {value!r}")
    return value
