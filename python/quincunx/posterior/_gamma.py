"""Exponential, Laplace and normal numbers with a Gamma prior on an interval: exact draws and guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._docs import sections
from quincunx._types import Floats
from quincunx.posterior import _account
from quincunx.posterior._bounds import LipschitzConstants
from quincunx.posterior._one_parameter import ConjugatePosterior, OneParameterModel
from quincunx.posterior._parts import posterior_doc
from quincunx.privacy import ReplaceOne
from quincunx.privacy._relations import Relation

GRID_BITS = 30  # of a record's statistic: sums are whole numbers, so the order of records does not matter


@posterior_doc
@dataclass(frozen=True)
class _GammaModel(OneParameterModel):
    """A likelihood ``theta**p exp(-theta s(x))`` with a Gamma prior on [c1, c2], for statistics s in [lo, hi]."""

    a0: float
    rate: float
    bounds: tuple[float, float]
    data_bound: float
    temper: float = 1.0

    def _power(self) -> float:
        return 1.0

    def _span(self) -> tuple[float, float]:
        """Return the least and the largest statistic of a record."""
        raise NotImplementedError

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        raise NotImplementedError

    def __post_init__(self) -> None:
        _account.set_positive(self, "a0", "rate", "data_bound")
        try:
            low, high = self.bounds
        except (TypeError, ValueError):
            raise ValueError(f"`bounds` must be a pair of numbers, got {self.bounds!r}") from None
        ends = (_check.real(low, "bounds", positive=True), _check.real(high, "bounds", positive=True))
        if not ends[0] < ends[1]:
            raise ValueError(f"`bounds` must increase, got {ends}")
        object.__setattr__(self, "bounds", ends)
        _account.set_positive(self, "temper")

    def _interval(self) -> tuple[bool, float, float]:
        low, high = self.bounds
        return False, math.nextafter(math.log(high / low) * (1 - 2.0**-51), 0.0), high

    def _log_weights(self, t: Floats, shape: float, rate: float) -> Floats:
        return shape * np.log(t) - rate * t

    def _units(self) -> tuple[float, int, int]:
        """Return the grid of a record's statistic and its ends on it."""
        low, high = self._span()
        step = math.ldexp(1.0, math.frexp(high)[1] - GRID_BITS)
        first, last = math.ceil(low / step), math.floor(high / step)
        return step, min(first, last), last

    def _range(self, relation: Relation) -> float:
        low, high = self._span()
        c1, c2 = self.bounds
        if isinstance(relation, ReplaceOne):
            return self.temper * (c2 - c1) * (high - low) * (1 + 2.0**-50)
        # One record's own log-likelihood, p ln t - s t: its oscillation is convex in s.
        return self.temper * max(_oscillation(self._power(), s, c1, c2) for s in (low, high)) * (1 + 2.0**-48)

    def _cases(self, n: int) -> list[tuple[float, float, float, float]]:
        low, high = self._span()
        t = self.temper
        shape = self.a0 + t * n * self._power()
        others = ((n - 1) * low, (n - 1) * high)
        return [(shape, self.rate + t * (sum_ + low), 0.0, t * (high - low)) for sum_ in others]

    def _margin(self, n: int) -> float:
        c1, c2 = self.bounds
        step, shape, rate = self._units()[0], self.a0 + self.temper * n, self.rate + self.temper * n * self._span()[1]
        dyadic = self.temper == 1 and self.a0 % 2.0**-20 == 0 and self.rate % step == 0
        if dyadic and shape < 2**32 and rate < 2**52 * step:
            return 0.0  # the statistics are doubles
        return 8 * 2.0**-53 * (rate * (c2 - c1) + shape * math.log(c2 / c1))

    def posterior(self, data: npt.ArrayLike) -> ConjugatePosterior:
        """Return the posterior given numbers.

        Parameters
        ----------
        data : array_like of float, shape (n,)
            Records; each is clipped to its bounds by itself, NaN to the lower one, without a warning.

        Returns
        -------
        ConjugatePosterior
            A Gamma law on `bounds`; the sum of the statistics is exact, on a grid of 2**-30 of the largest.

        {numbers}
        """
        values = self._statistic(data)
        step, first, last = self._units()
        units = np.clip(np.rint(values / step).astype(np.int64), first, last)
        # Two halves, so that no sum of up to 2**43 records overflows.
        total = int((units >> 20).sum()) * 2**20 + int((units & (2**20 - 1)).sum())
        rate = float(Fraction(self.rate) + Fraction(self.temper) * total * Fraction(step))
        return ConjugatePosterior(self, len(units), self.a0 + self.temper * len(units) * self._power(), rate)

    def calibrate(self, epsilon: float, *, n: int | None = None) -> Self:
        """Return the model tempered so that one draw spends at most epsilon.

        {target}

        Returns
        -------
        object
            Of the same class, with a `temper` of at most the present one.

        {domain}
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        count = None if n is None else _check.whole(n, "n", minimum=1, maximum=2**53)
        return self._tempered(level, count)

    def _constant(self, n: int) -> float:
        """Return C, the largest ratio of the likelihood of n records to its marginal, over all data."""
        from scipy import optimize

        c1, c2 = self.bounds
        nodes, weights = np.polynomial.legendre.leggauss(200)
        t = c1 + (c2 - c1) * (nodes + 1) / 2
        prior = (self.a0 - 1) * np.log(t) - self.rate * t
        prior -= np.log(weights @ np.exp(prior - prior.max())) + prior.max()
        power = n * self._power()

        def log_ratio(s: float) -> float:
            best = min(max(power / s, c1), c2) if s > 0 else c2
            logs = prior + power * np.log(t) - s * t
            marginal = math.log(weights @ np.exp(logs - logs.max())) + logs.max()
            return float(power * math.log(best) - s * best - marginal)

        low, high = (n * end for end in self._span())
        grid = np.linspace(low, high, 401)
        found = [log_ratio(s) for s in grid]
        at = int(np.argmax(found))
        near = (grid[max(at - 1, 0)], grid[min(at + 1, 400)])
        refined = optimize.minimize_scalar(
            lambda s: -log_ratio(s), bounds=near, method="bounded", options={"xatol": 1e-12}
        )
        try:
            return math.exp(max(found[at], -float(refined.fun)))
        except OverflowError:  # of more records than data have: no finite constant is claimed
            return math.inf

    def _slope(self) -> float:
        """Return the factor between theta and the Lipschitz constant of a record's log-likelihood."""
        return 1.0

    def lipschitz_constants(self, n: int = 1) -> LipschitzConstants:
        """Return the constants of the prior for n records, for study.

        {study}
            In the metric of the thesis: distances of the records, summed.

        Raises
        ------
        ValueError
            If the prior is not exponential: ``a0 = 1`` is what the constant c is known for.
        """
        if self.a0 != 1:
            raise ValueError(f"`a0` must be 1 for these constants, got {self.a0}")
        c1, c2 = self.bounds
        slope = self._slope()
        c = self.rate / (slope * -math.expm1(-self.rate * (c2 - c1)))
        return LipschitzConstants(
            c, c1 * slope, max(1.0, self._constant(_check.whole(n, "n", minimum=1, maximum=2**53)))
        )


def _oscillation(power: float, s: float, c1: float, c2: float) -> float:
    at = [c1, c2] + ([power / s] if s > 0 and c1 < power / s < c2 else [])
    values = [power * math.log(t) - s * t for t in at]
    return max(values) - min(values)


@sections
@dataclass(frozen=True)
class ExponentialGamma(_GammaModel):
    """Waiting times ``theta exp(-theta x)`` in [0, B] with a Gamma prior on [c1, c2].

    The posterior is ``Gamma(a0 + tau n, rate + tau sum x)`` on [c1, c2].

    Parameters
    ----------
    a0, rate : float
        Of the prior, > 0.
    bounds : (float, float)
        c1 < c2, positive: the prior is renormalized on [c1, c2].
    data_bound : float
        B > 0, to which records are clipped.
    temper : float
        The power tau > 0 of the likelihood.

    {domain}

    Notes
    -----
    One replaced record costs at most ``tau (c2 - c1) B``; for n records less, by two integrals.

    Examples
    --------
    >>> from quincunx.posterior import ExponentialGamma
    >>> model = ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1)
    >>> round(model.guarantee(10).epsilon, 8), round(model.guarantee().epsilon, 8)
    (1.251502, 1.5)
    >>> round(model.posterior([0.2, 0.7, 3.0]).second, 6)
    3.9
    """

    def _span(self) -> tuple[float, float]:
        return 0.0, self.data_bound

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        return _account.records(data, 0.0, self.data_bound)


@dataclass(frozen=True)
class _CentredGamma(_GammaModel):
    """A likelihood whose statistic is a function of the distance from a known mean."""

    mean: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _check.real(self.mean, "mean"))
        super().__post_init__()

    def _distances(self) -> tuple[float, float]:
        """Return the least and the largest distance of a record."""
        return max(0.0, abs(self.mean) - self.data_bound), abs(self.mean) + self.data_bound


@posterior_doc
@dataclass(frozen=True)
class LaplaceGamma(_CentredGamma):
    """Numbers ``(theta / 2) exp(-theta abs(x - mean))`` in [-B, B], the mean known, with a Gamma prior on [c1, c2].

    The posterior is ``Gamma(a0 + tau n, rate + tau sum abs(x - mean))`` on [c1, c2].

    {centred}

    {domain}

    Notes
    -----
    A record's statistic lies in ``[max(0, abs(mean) - B), abs(mean) + B]``.

    Examples
    --------
    >>> from quincunx.posterior import LaplaceGamma
    >>> round(LaplaceGamma(1, 2, bounds=(0.5, 2), data_bound=0.5, mean=3).guarantee().epsilon, 8)
    1.5
    """

    def _span(self) -> tuple[float, float]:
        return self._distances()

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        return np.abs(_account.records(data, -self.data_bound, self.data_bound) - self.mean)


@posterior_doc
@dataclass(frozen=True)
class NormalPrecisionGamma(_CentredGamma):
    """Normal numbers in [-B, B] of known mean, with a Gamma prior of the precision on [c1, c2].

    The posterior is ``Gamma(a0 + tau n / 2, rate + tau sum (x - mean)**2 / 2)`` on [c1, c2].

    {centred}

    {domain}

    Examples
    --------
    >>> from quincunx.posterior import NormalPrecisionGamma
    >>> round(NormalPrecisionGamma(1, 2, bounds=(0.5, 2), data_bound=1).guarantee().epsilon, 8)
    0.75
    """

    def _power(self) -> float:
        return 0.5

    def _span(self) -> tuple[float, float]:
        low, high = self._distances()
        return low**2 / 2, high**2 / 2

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        return (_account.records(data, -self.data_bound, self.data_bound) - self.mean) ** 2 / 2

    def _slope(self) -> float:
        return max(abs(self.mean), 1.0) / 2
