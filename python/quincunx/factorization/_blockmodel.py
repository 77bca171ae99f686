"""Communities in a network of counts: the mixed-membership blockmodel."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._inference import parameters
from quincunx._tables import Axes
from quincunx._types import Array, Floats, Tags
from quincunx.factorization._data import Counts, Data, Given, as_data, as_mask, unpack
from quincunx.factorization._estimator import FitOptions, model_doc
from quincunx.factorization._in_sample import InSample
from quincunx.factorization._layout import Factor, Layout
from quincunx.factorization._posterior import Posterior
from quincunx.privacy._release import Release


@model_doc
@parameters
class PoissonBlockmodel(InSample):
    """Mixed-membership Poisson blockmodel of a network of counts that was released with noise.

    ``released = count + noise``, ``count[i, j] ~ Poisson(sum_cd embedding[i, c] interaction[c, d] embedding[j, d])``
    for actors ``i != j``, the noise two-sided geometric of ratio alpha, gamma priors on memberships and interactions
    [1]_.

    Parameters
    ----------
    n_components : int, default=10
        Number of communities.
    directed : bool, default=True
        Whether (i, j) and (j, i) are different counts. If not, the interactions are symmetric and only cells above the
        diagonal are used: what lies below is ignored, even where it was released on its own.
    prior_shape, prior_rate : float or sequence, default=0.1 and 1.0
        Shape and rate of the gamma priors: a number, or a sequence with one entry for each factor (embedding,
        interaction), each a number or an array that broadcasts to the factor's shape.
    {inference}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_actors, n_components)
        Posterior mean of the memberships, by the chain of highest mean log-likelihood.
    interaction_ : ndarray of shape (n_components, n_components)
        Posterior mean of the interactions of communities, by the same chain.
    components_ : ndarray of shape (n_components, n_actors)
        ``interaction_ @ embedding_.T``.
    labels_ : ndarray of shape (n_actors,)
        The community of most of each actor's expected counts.
    rates_, expected_counts_ : ndarray of shape (n_actors, n_actors)
        Posterior means over all chains; computed when first asked for. The diagonal is what the factors make of it.
    {learnt}
    draws_ : dict
        The kept draws ``"embedding"`` and ``"interaction"``, with axes (chain, draw, ...).
    {done}

    Notes
    -----
    The diagonal is always held out. `fit` takes networkx graphs, whose nodes are the actors, and long tables: a
    DataFrame with the columns sender, receiver and count, or a Series with an index of two levels. See
    `PoissonFactorization` for what both have in common.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonBlockmodel
    >>> from quincunx.privacy import privatize
    >>> group = np.arange(20) % 2
    >>> counts = np.random.default_rng(1).poisson(np.where(group[:, None] == group, 6.0, 0.5))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonBlockmodel(2, inference="vi", max_iter=5000, tol=1e-5, n_chains=4, random_state=0).fit(release)
    >>> model.embedding_.shape, model.interaction_.shape, model.rates_.shape
    ((20, 2), (2, 2), (20, 20))
    """

    PUBLISHED: ClassVar = InSample.PUBLISHED | {"interaction_": "released", "labels_": "released"}

    _switches: ClassVar = ("directed",)
    directed: bool = True

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        width = int(self.n_components)
        factors = (
            Factor("embedding", (shape[0], width), ("actor", "component")),
            Factor("interaction", (width, width), ("component", "to_component"), sets=(0, 0)),
        )
        model = "directed" if self.directed else "undirected"
        return Layout(model, (shape[0],), width, factors, ("actor", "to_actor"), not self.directed)

    def _table(self, released: Counts) -> tuple[Counts, Axes, bool]:
        if _tables.is_arrow(released) and released.shape[1] == 3:
            released = released.to_pandas()
        if edges := _tables.is_long(released) or _tables.is_list_of_edges(released):
            table, axes, complete = _tables.from_long(released, "released", square=True)
        else:
            table, axes, complete = super()._table(released)
            edges = _tables.is_network(released) and released.is_directed()
        if edges and not self.directed:  # a pair has one line, whichever of its ends comes first
            below = np.tril(table, -1).T
            if ((below != 0) & (table != 0)).any():
                raise ValueError("`released` must have one line for each pair of actors, got both ways of one")
            table = np.triu(table) + below
        return table, axes, complete

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def _data(self, released: Counts, alpha: Given, mask: Given, *, reset: bool) -> Data:
        data = super()._data(released, alpha, mask, reset=reset)
        if len({axis.labels for axis in data.axes if axis.labels is not None}) > 1:
            raise ValueError("`released` must have the same labels in the same order on rows and columns")
        return data

    def _checked_values(self, released: Counts, *, reset: bool) -> Array:
        values = super()._checked_values(released, reset=reset)
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"`released` must have as many rows as columns, one for each actor, got {values.shape}")
        return values

    def _own_held_out(self, shape: tuple[int, ...], *, new_rows: bool = False) -> npt.NDArray[np.bool_] | None:
        _check.room(2 * shape[0] ** 2, "a mask of the cells")
        held_out = np.eye(shape[0], dtype=bool)
        return held_out if self.directed else np.tri(shape[0], dtype=bool)

    def _set_fitted(self, posterior: Posterior) -> None:
        super()._set_fitted(posterior)
        self.embedding_, self.interaction_ = posterior.means()

    @property
    def labels_(self) -> npt.NDArray[np.intp]:
        """The community in which each actor has most of its expected counts, those it sends and those it receives.

        ``embedding[i, c] (sum_d interaction[c, d] total[d] + sum_d interaction[d, c] total[d])`` with the totals of
        `embedding_` is largest: the same for factors of any scale.
        """
        self._lazily()
        total = self.embedding_.sum(axis=0)
        both = self.embedding_ * (self.interaction_ @ total + self.interaction_.T @ total)
        labels: npt.NDArray[np.intp] = both.argmax(axis=1)
        return labels

    def fit_predict(self, released: Counts, y: object = None, **how: Unpack[FitOptions]) -> npt.NDArray[np.intp]:
        """Fit, and return the community of each actor.

        {as_fit}

        Returns
        -------
        ndarray of int, shape (n_actors,)
            `labels_`.
        """
        return self.fit(released, y, **how).labels_

    def predict(self, released: Counts, *, alpha: Given = None, mask: Given = None) -> npt.NDArray[np.intp]:
        """Return the community of new actors, by what they send to those of the fit.

        The memberships of each are found by variational inference with the other factors known, as `transform` of a
        matrix does; no actor depends on another. For the actors of the fit, see `labels_`.

        Parameters
        ----------
        released : Release or array_like, shape (n, n_actors)
            Counts from each new actor to each actor of the fit, after their noise.
        alpha : float or array_like, optional
            Ratio of the noise; by default that of the fit, if it was one number.
        mask : array_like of bool, optional
            True where a cell is held out.

        Returns
        -------
        ndarray of int, shape (n,)
            The group of each actor.

        Raises
        ------
        ValueError, TypeError
            If the data are not what they should be.
        """
        self._fitted()
        if alpha is None and not isinstance(released, Release):
            alpha = self._earlier_alpha()
        axes = _tables.axes(released)
        _tables.refuse_other_labels(_tables.axes(alpha), axes, "alpha")
        _tables.refuse_other_labels(_tables.axes(mask), axes, "mask")
        _tables.refuse_other_labels(axes, self._posterior.problem.data.axes, "released", "the fit", first=1)
        values, ratios, held_out = unpack(_tables.array(released, "released"), alpha, mask, self.noise)
        checked = InSample._checked_values(self, values, reset=False)
        held_out = as_mask(held_out, checked.shape)
        data = as_data(checked, ratios, held_out, noise=self.noise, non_integer=self.non_integer)
        memberships = self._infer_rows(data, self.components_)
        labels: npt.NDArray[np.intp] = (memberships * (self.interaction_ @ self.embedding_.sum(axis=0))).argmax(axis=1)
        return labels

    def _axis_factor(self, axis: int) -> Floats:
        return self.embedding_

    @property
    def components_(self) -> Floats:
        """What a unit of membership adds to the rates towards each actor."""
        self._lazily()
        return self.interaction_ @ self.embedding_.T
