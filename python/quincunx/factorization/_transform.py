"""Embeddings of new rows, for models whose first axis holds samples."""

from __future__ import annotations

from typing import ClassVar, Unpack

from quincunx import _tables
from quincunx._optional import require
from quincunx._types import DataFrame, Floats
from quincunx.factorization._data import Counts, Data, Given
from quincunx.factorization._estimator import CountFactorization, FitOptions, model_doc


@model_doc
class RowTransformer(CountFactorization, sklearn=("TransformerMixin", "ClassNamePrefixFeaturesOutMixin")):
    """A model whose first axis holds samples."""

    _takes_new_rows: ClassVar[bool] = True

    @property
    def _n_features_out(self) -> int:
        raise NotImplementedError

    def fit_transform(self, released: Counts, y: object = None, **how: Unpack[FitOptions]) -> Floats | DataFrame:
        """Fit, and return what `transform` returns for the same data.

        {as_fit}

        Returns
        -------
        ndarray of float64, shape (n_rows, n_components)
            Close to `embedding_`, which is the joint posterior mean.
        """
        return self._shown(self.fit(released, y, **how)._posterior.problem.data)

    def transform(self, released: Counts, *, alpha: Given = None, mask: Given = None) -> Floats | DataFrame:
        """Return the embedding of rows, or of slices along the first mode, the components being known.

        The variational posterior mean (method ``"collapsed"``) with `components_` fixed. It is deterministic, and no
        row depends on another.

        Parameters
        ----------
        released, mask
            As in `fit`, with any number of rows.
        alpha : float or array_like, optional
            Ratio of the noise; by default that of the fit, if it was one number.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_components)

        Raises
        ------
        ValueError, TypeError
            If the data are not what they should be.

        Notes
        -----
        Ten iterations at a time, until no entry of a row moves by more than 1e-4 of the row's largest; rows that stand
        still are left out of the next ten. With layers the prior has the mean of the fitted rows.
        """
        self._fitted()
        return self._shown(self._new_data(released, alpha, mask))

    def _shown(self, data: Data) -> Floats | DataFrame:
        """Return the embedding of data, as scikit-learn is told to show it."""
        rows, _ = self._embedded(data)
        wanted = require("sklearn.utils._set_output", "sklearn")._get_output_config("transform", self)["dense"]
        if wanted == "pandas" and data.axes and data.axes[0].labels is not None:
            return _tables.to_pandas(rows, (data.axes[0], _tables.Axis()))
        return rows

    def score(self, released: Counts, y: object = None, *, alpha: Given = None, mask: Given = None) -> float:
        """Return the mean log-likelihood of a release per observed cell, at its expected rates.

        The rates are those of the embedding that `transform` finds; the counts before noise are summed out.

        Parameters
        ----------
        released, alpha, mask
            As in `transform`.
        {in_nats}
        """
        self._fitted()
        data = self._new_data(released, alpha, mask)
        rows, components = self._embedded(data)
        return self._mean_log_likelihood(data, rows @ components, new_rows=True)

    def _embedded(self, data: Data) -> tuple[Floats, Floats]:
        """Return the embedding of data, and the components as a matrix."""
        components = self.components_.reshape(self._n_features_out, -1)  # type: ignore[attr-defined]
        return self._infer_rows(data, components), components
