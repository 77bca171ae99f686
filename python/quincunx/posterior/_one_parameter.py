"""Conjugate models of one parameter: exact draws on a grid, exact guarantees for finite n."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx._types import Array, Floats
from quincunx.posterior import _account
from quincunx.posterior._account import ONE
from quincunx.posterior._bounds import LipschitzConstants, beta_hockey_stick
from quincunx.posterior._parts import posterior_doc
from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne
from quincunx.privacy._relations import Relation

POINTS = 2**16
GRID_BITS = 30  # of a record's statistic: sums are whole numbers, so the order of records does not matter


@lru_cache(maxsize=16)
def _grid(logit: bool, width: float, upper: float) -> _core.ParameterGrid:
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

    model: BetaBernoulli | _GammaModel
    n: int
    first: float
    second: float

    def _law(self) -> tuple[Floats, Floats]:
        values = self.model._parameters()
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
        return self.model._grid().draw(*self.model._statistics(self), count, words)

    def _simulate(self, count: int, relation: Relation, source: np.random.Generator) -> Array:
        values, shares = self._law()
        return source.choice(values, size=count, p=shares)


@sections
class _Model:
    """What the one-parameter models share: they are frozen, and know their range and their grid."""

    temper: float

    def _check_temper(self) -> None:
        object.__setattr__(self, "temper", _check.real(self.temper, "temper", positive=True))

    def _grid(self) -> _core.ParameterGrid:
        raise NotImplementedError

    def _parameters(self) -> Floats:
        return self._grid().parameters()

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
        raise NotImplementedError

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
            Range-bounded. For `ReplaceOne` and n the larger of two exact figures: of the continuous posterior, and of
            the grid that is drawn from, rounded upwards.

        {domain}
        """
        about = _account.relation_of(relation)
        whole = _account.upwards(self._range(about))
        if n is None or isinstance(about, AddRemove):
            return _account.ranged(whole + self._margin(_account.MOST_RECORDS), about)
        count = _check.whole(n, "n", maximum=2**53)
        return _account.ranged(min(self._finite(count), whole + self._margin(count)), about)

    def _finite(self, n: int) -> float:
        if n == 0:
            return 0.0
        return _finite(self, n)

    def _calibrated(self, name: str, epsilon: float, n: int | None, low: float, high: float) -> Self:
        """Bisect a parameter that epsilon grows with, between one that is fine and one that may be."""

        def short(value: float) -> float:
            model = replace(self, **{name: value})  # type: ignore[type-var]
            return float(model._range(ONE) if n is None else model._epsilon(n) + 1e-11)

        if short(high) > epsilon:
            for _ in range(60):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if short(middle) <= epsilon else (low, middle)
            value = low
        else:
            value = high
        while True:
            model = replace(self, **{name: value})  # type: ignore[type-var]
            if model.guarantee(n).epsilon <= epsilon:
                return model
            value *= 1 - 1e-9


@lru_cache(maxsize=256)
def _finite(model: _Model, n: int) -> float:
    """Return the larger epsilon of the continuous posterior and of the grid, with the margin of the statistics."""
    grid = model._grid()
    own = max(grid.replace_epsilon(*case) for case in model._cases(n))
    return _account.upwards(max(own, model._epsilon(n)), model._margin(n))


@posterior_doc
@dataclass(frozen=True)
class BetaBernoulli(_Model):
    """Bits with a Beta prior on [w, 1 - w]; the posterior is ``Beta(a + tau k, b + tau (n - k))`` there.

    Parameters
    ----------
    a, b : float
        Of the prior, > 0.
    trim : float, optional
        w in (0, 1/2): the prior is renormalized on [w, 1 - w]. Without it there is no pure epsilon, and no private
        draw.
    temper : float
        The power tau > 0 of the likelihood.

    {domain}

    Notes
    -----
    One replaced record costs at most ``2 tau ln((1 - w) / w)``; for n records exactly
    ``tau ln((1 - w) / w) + max(abs(ln Z1/Z0), abs(ln Zn/Z(n-1)))`` with the normalizers Z of k ones, since ln Z is
    convex in k.
    A draw takes 0.15 us after a table of 0.7 ms, a guarantee about 3 ms.

    Examples
    --------
    >>> from quincunx.posterior import BetaBernoulli
    >>> model = BetaBernoulli(1, 1, trim=0.25)
    >>> round(model.guarantee(50).epsilon, 8), round(model.guarantee().epsilon, 8)
    (2.12026354, 2.19722458)
    >>> sample = model.posterior([1, 1, 0, 1]).sample(2)
    >>> sample.guarantee == 2 * model.guarantee(4)
    True
    >>> round(model.calibrate(1.0).guarantee().epsilon, 6)
    1.0
    """

    a: float
    b: float
    trim: float | None = None
    temper: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            object.__setattr__(self, name, _check.real(getattr(self, name), name, positive=True))
        if self.trim is not None:
            object.__setattr__(self, "trim", _account.checked_trim(self.trim))
        self._check_temper()

    def _trimmed(self) -> float:
        if self.trim is None:
            raise ValueError("`trim` must be given: an untrimmed Beta posterior has no pure epsilon; see `delta`")
        return self.trim

    def _half(self) -> float:
        trim = self._trimmed()
        return math.nextafter(math.log((1 - trim) / trim) * (1 - 2.0**-51), 0.0)

    def _grid(self) -> _core.ParameterGrid:
        return _grid(True, self._half(), 1.0)

    def _statistics(self, posterior: ConjugatePosterior) -> tuple[float, float]:
        return posterior.first, posterior.second

    def _log_weights(self, t: Floats, a: float, b: float) -> Floats:
        return a * np.log(t) + b * np.log1p(-t)

    def _parameters(self) -> Floats:
        return self._grid().parameters()

    def _range(self, relation: Relation) -> float:
        return (2 if isinstance(relation, ReplaceOne) else 1) * self.temper * _account.log_odds(self._trimmed())

    def _cases(self, n: int) -> list[tuple[float, float, float, float]]:
        t = self.temper
        return [(self.a + t * k, self.b + t * (n - k), t, -t) for k in (0, n - 1)]

    def _margin(self, n: int) -> float:
        if all(value % 2.0**-20 == 0 for value in (self.a, self.b, self.temper)) and self.temper * n < 2**30:
            return 0.0  # the statistics are doubles
        return 4 * 2.0**-53 * (self.a + self.b + 2 * self.temper * n) * self._half()

    def _epsilon(self, n: int) -> float:
        half = self._half()
        return max(_core.posterior_epsilon(True, half, 1.0, *case) for case in self._cases(max(n, 1))) if n else 0.0

    def delta(self, epsilon: float, n: int) -> float:
        """Return the delta of one draw from the *untrimmed* posterior: `quincunx.posterior.beta_hockey_stick`.

        Parameters
        ----------
        epsilon : float
            Privacy level, >= 0.
        n : int
            Number of records.

        Returns
        -------
        float
        """
        return beta_hockey_stick(epsilon, self.a, self.b, n, temper=self.temper)

    def posterior(self, data: npt.ArrayLike) -> ConjugatePosterior:
        """Return the posterior given bits.

        Parameters
        ----------
        data : array_like of bool or number, shape (n,)
            Records; a number above 1/2 is a one, everything else a zero.

        Returns
        -------
        ConjugatePosterior
            To draw from, with its guarantee.

        {numbers}
        """
        bits = _account.records(data, 0.0, 1.0)
        ones = int((bits > 0.5).sum())
        n, t = len(bits), self.temper
        return ConjugatePosterior(self, n, self.a + t * ones, self.b + t * (n - ones))

    def calibrate(self, epsilon: float, *, n: int | None = None, knob: str | None = None) -> BetaBernoulli:
        """Return the model changed so that one draw spends at most epsilon.

        Parameters
        ----------
        epsilon : float
            Target, > 0.
        n : int, optional
            Records, public: spends all of epsilon at this n. Else for every n.
        {knob}

        Returns
        -------
        BetaBernoulli

        {domain}
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        count = None if n is None else _check.whole(n, "n", minimum=1, maximum=2**53)
        way = knob if knob is not None else ("trim" if self.trim is None else "temper")
        if _check.one_of(way, "knob", ("trim", "temper")) == "temper":
            self._trimmed()
            return self._calibrated("temper", level, count, self.temper * 2.0**-1000, self.temper)
        trim = _account.trim_for(level / self.temper)
        model = replace(self, trim=trim)
        if count is None:
            return model if model.guarantee().epsilon <= level else replace(self, trim=trim * (1 + 1e-12))
        # Epsilon falls as w grows; w for every n is fine for this n.
        low, high = 1e-300, trim
        for _ in range(60):
            middle = math.sqrt(low * high)
            fine = middle > 1e-290 and replace(self, trim=middle)._epsilon(count) + 1e-11 <= level
            low, high = (low, middle) if fine else (middle, high)
        while replace(self, trim=high).guarantee(count).epsilon > level:
            high *= 1 + 1e-9
        return replace(self, trim=high)

    def lipschitz_constants(self, n: int = 1) -> LipschitzConstants:
        """Return the constants of the untrimmed symmetric prior for n records, for study (Hamming distance).

        {study}
            ``L0 = 0``, ``c = 2**(1 - 2 a) / B(a, a)`` and C, the largest ratio of likelihood and marginal.

        Raises
        ------
        ValueError
            If a and b differ.
        """
        from scipy import special

        if self.a != self.b:
            raise ValueError(f"`a` and `b` must be equal, got {self.a} and {self.b}")
        count = _check.whole(n, "n", minimum=1, maximum=2**53)
        _check.room(64 * (count + 1), "the divergence of so many records")
        k = np.arange(count + 1.0)
        logs = special.xlogy(k, k / count) + special.xlogy(count - k, 1 - k / count)
        logs += special.betaln(self.a, self.b) - special.betaln(self.a + k, self.b + count - k)
        c = 2 ** (1 - 2 * self.a) / special.beta(self.a, self.a)
        return LipschitzConstants(float(c), 0.0, max(1.0, float(np.exp(logs.max()))))


@posterior_doc
@dataclass(frozen=True)
class _GammaModel(_Model):
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
        for name in ("a0", "rate", "data_bound"):
            object.__setattr__(self, name, _check.real(getattr(self, name), name, positive=True))
        try:
            low, high = self.bounds
        except (TypeError, ValueError):
            raise ValueError(f"`bounds` must be a pair of numbers, got {self.bounds!r}") from None
        ends = (_check.real(low, "bounds", positive=True), _check.real(high, "bounds", positive=True))
        if not ends[0] < ends[1]:
            raise ValueError(f"`bounds` must increase, got {ends}")
        object.__setattr__(self, "bounds", ends)
        self._check_temper()

    def _width(self) -> float:
        low, high = self.bounds
        return math.nextafter(math.log(high / low) * (1 - 2.0**-51), 0.0)

    def _grid(self) -> _core.ParameterGrid:
        return _grid(False, self._width(), self.bounds[1])

    def _statistics(self, posterior: ConjugatePosterior) -> tuple[float, float]:
        return posterior.first, posterior.second

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
        step = self._units()[0]
        if self.temper == 1 and self.rate % step == 0 and self.rate + n * self._span()[1] < 2**52 * step:
            return 0.0  # the statistics are doubles
        return 8 * 2.0**-53 * (self.rate + self.temper * n * self._span()[1]) * (c2 - c1)

    def _epsilon(self, n: int) -> float:
        width, upper = self._width(), self.bounds[1]
        return max(_core.posterior_epsilon(False, width, upper, *case) for case in self._cases(n)) if n else 0.0

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

        Parameters
        ----------
        epsilon : float
            Target, > 0.
        n : int, optional
            Records, public: spends all of epsilon at this n. Else for every n.

        Returns
        -------
        object
            Of the same class, with a `temper` of at most the present one.

        {domain}
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        count = None if n is None else _check.whole(n, "n", minimum=1, maximum=2**53)
        return self._calibrated("temper", level, count, self.temper * 2.0**-1000, self.temper)

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
        except OverflowError:  # of numbers of records that nobody has: no finite constant is claimed
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


@posterior_doc
@dataclass(frozen=True)
class LaplaceGamma(_GammaModel):
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

    mean: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _check.real(self.mean, "mean"))
        super().__post_init__()

    def _span(self) -> tuple[float, float]:
        return max(0.0, abs(self.mean) - self.data_bound), abs(self.mean) + self.data_bound

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        return np.abs(_account.records(data, -self.data_bound, self.data_bound) - self.mean)


@posterior_doc
@dataclass(frozen=True)
class NormalPrecisionGamma(_GammaModel):
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

    mean: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _check.real(self.mean, "mean"))
        super().__post_init__()

    def _power(self) -> float:
        return 0.5

    def _span(self) -> tuple[float, float]:
        low, high = max(0.0, abs(self.mean) - self.data_bound), abs(self.mean) + self.data_bound
        return low**2 / 2, high**2 / 2

    def _statistic(self, data: npt.ArrayLike) -> Floats:
        return (_account.records(data, -self.data_bound, self.data_bound) - self.mean) ** 2 / 2

    def _slope(self) -> float:
        return max(abs(self.mean), 1.0) / 2
