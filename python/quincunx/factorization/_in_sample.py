"""Embeddings and scores of models whose data have no new rows: actors of a network, times of a series."""

from __future__ import annotations

from typing import Unpack

from quincunx._types import Floats
from quincunx.factorization._data import Counts, Given
from quincunx.factorization._estimator import CountFactorization, FitOptions, model_doc


@model_doc
class InSample(CountFactorization):
    """A model that knows the rows of its fit alone."""

    embedding_: Floats

    def fit_transform(self, released: Counts, y: object = None, **how: Unpack[FitOptions]) -> Floats:
        """Fit, and return the embedding.

        {as_fit}

        Returns
        -------
        ndarray of float64, shape (n_rows, n_components)
            A copy of `embedding_`.
        """
        return self.fit(released, y, **how).embedding_.copy()

    def score(self, released: Counts, y: object = None, *, alpha: Given = None, mask: Given = None) -> float:
        """Return the mean log-likelihood per observed cell of another release of the same rows, at `rates_`.

        The counts before noise are summed out.

        Parameters
        ----------
        released, mask
            As in `fit`.
        alpha : float or array_like, optional
            Ratio of the noise; by default that of the fit, if it was one number.
        {in_nats}
        """
        self._fitted()
        data = self._new_data(released, alpha, mask)
        return self._mean_log_likelihood(data, self.rates_, new_rows=False)
