"""What conjugate models of one parameter share: exact draws on a grid, exact guarantees for finite n."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx._types import Array, Floats
from quincunx.posterior import _account
from quincunx.posterior._account import ONE
from quincunx.privacy import AddRemove, PrivacyGuarantee
from quincunx.privacy._relations import Relation

#: Parameters of a grid. The range bounds any number of them; a table of these takes 0.7 ms
#: (`benches/bench_posterior.py`).
POINTS = 2**16


@lru_cache(maxsize=16)
def grid_of(logit: bool, width: float, upper: float) -> _core.ParameterGrid:
    return _core.ParameterGrid(logit, width, upper, POINTS)


@dataclass(frozen=True)
class ConjugatePosterior(_account.Drawn):
    """A posterior of one parameter, ready to be released by sampling.

    Attributes
    ----------
    model : object
        Where it comes from.
    n : int
        Records.
    first, second : float
        Of the conjugate family: a and b of a Beta law, shape and rate of a Gamma law.

    Examples
    --------
    >>> from quincunx.posterior import BetaBernoulli
    >>> posterior = BetaBernoulli(1, 1, trim=0.25).posterior([1, 0, 1])
    >>> posterior.first, posterior.second
    (3.0, 2.0)
    >>> round(posterior.mean(), 6)
    0.538636
    """

    model: OneParameterModel
    n: int
    first: float
    second: float

    def _law(self) -> tuple[Floats, Floats]:
        values = self.model._grid().parameters()
        logs = self.model._log_weights(values, self.first, self.second)
        weights = np.exp(logs - logs.max())
        return values, weights / weights.sum()

    def mean(self) -> float:
        """Return the mean of the law that is drawn from.

        Returns
        -------
        float
        """
        values, shares = self._law()
        return float(values @ shares)

    def variance(self) -> float:
        """Return the variance of the law that is drawn from.

        Returns
        -------
        float
        """
        values, shares = self._law()
        return float((values - values @ shares) ** 2 @ shares)

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Return the distribution function of the law that is drawn from, at numbers.

        Parameters
        ----------
        x : array_like of float
            Where.

        Returns
        -------
        ndarray of float64
            Of the shape of `x`.
        """
        values, shares = self._law()
        sums = np.concatenate(([0.0], np.cumsum(shares)))
        return sums[np.searchsorted(values, _check.reals(x, "x"), side="right")]

    def _draw(self, count: int, relation: Relation, words: list[int] | None) -> Array:
        return self.model._grid().draw(self.first, self.second, count, words)

    def _simulate(self, count: int, relation: Relation, source: np.random.Generator) -> Array:
        values, shares = self._law()
        return source.choice(values, size=count, p=shares)


@sections
class OneParameterModel:
    """What the one-parameter models share: they are frozen, and know their range and their grid."""

    temper: float

    def _interval(self) -> tuple[bool, float, float]:
        """Return whether the scale of the grid is that of logits, else of logarithms; its width; and its upper end."""
        raise NotImplementedError

    def _grid(self) -> _core.ParameterGrid:
        return grid_of(*self._interval())

    def _log_weights(self, t: Floats, first: float, second: float) -> Floats:
        """Return the logarithms of the weights of parameters, but for a constant."""
        raise NotImplementedError

    def _range(self, relation: Relation) -> float:
        """Return the range of one record, rounded upwards."""
        raise NotImplementedError

    def _cases(self, n: int) -> list[tuple[float, float, float, float]]:
        """Return statistics and steps of the worst pairs of data sets of n records."""
        raise NotImplementedError

    def _margin(self, n: int) -> float:
        """Return what the rounding of the statistics adds to epsilon at most."""
        raise NotImplementedError

    def _epsilon(self, n: int) -> float:
        """Return the finite-n epsilon of the continuous posterior, by quadrature."""
        return max(_core.posterior_epsilon(*self._interval(), *case) for case in self._cases(n)) if n else 0.0

    def guarantee(self, n: int | None = None, *, relation: Relation = ONE) -> PrivacyGuarantee:
        """Return the guarantee of one draw from the posterior of n records.

        Parameters
        ----------
        n : int, optional
            Records, public. Without it epsilon is the range, for every n up to 2**20 (beyond, roundings of
            the sums may add more than is allowed for, some 1e-9).
        relation : ReplaceOne or AddRemove
            With `AddRemove` the number of records is private and epsilon the range.

        Returns
        -------
        PrivacyGuarantee
            Range-bounded. For `ReplaceOne` and n epsilon is the larger of two exact figures: of the continuous
            posterior, and of the grid that is drawn from, rounded upwards. Compositions go by the range: an epsilon
            below it bounds the loss, not the length of the interval in which the loss lies.

        {domain}
        """
        about = _account.relation_of(relation)
        whole = _account.upwards(self._range(about))
        if n is None or isinstance(about, AddRemove):
            return _account.ranged(whole + self._margin(_account.MOST_RECORDS), about)
        count = _check.whole(n, "n", maximum=2**53)
        return _account.bounded(_finite(self, count) if count else 0.0, whole + self._margin(count), about)

    def _tempered(self, epsilon: float, n: int | None) -> Self:
        """Bisect the power that epsilon grows with, between one that is fine and the present one, which may be."""
        low, value = self.temper * 2.0**-1000, self.temper

        def short(value: float) -> float:
            model = replace(self, temper=value)  # type: ignore[type-var]
            whole = float(model._range(ONE))
            return whole if n is None else min(whole, model._epsilon(n) + 1e-11)

        if short(value) > epsilon:
            high = value
            for _ in range(60):
                middle = max(math.sqrt(low * high), low)
                low, high = (middle, high) if short(middle) <= epsilon else (low, middle)
            value = low
        times = 1
        while (model := replace(self, temper=value)).guarantee(n).epsilon > epsilon:  # type: ignore[type-var]
            value, times = value * (1 - 1e-9) ** times, 2 * times
            if value < self.temper * 2.0**-1000:
                raise ValueError(f"`epsilon` must be large enough for this model, got {epsilon}")
        return model


@lru_cache(maxsize=256)
def _finite(model: OneParameterModel, n: int) -> float:
    """Return the larger epsilon of the continuous posterior and of the grid, with the margin of the statistics."""
    grid = model._grid()
    own = max(grid.replace_epsilon(*case) for case in model._cases(n))
    return _account.upwards(max(own, model._epsilon(n)), model._margin(n))
