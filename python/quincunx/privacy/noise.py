"""Laws of noise: how what is released depends on what is private, as one object.

A mechanism has its law as `noise`, each of its releases carries it, to disk and back, and models take it by its type.
So nothing that is known of the noise is lost between them: a model that has no place for a field refuses it by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._categories import Categories
from quincunx._docs import assembled

__all__ = [
    "DiscreteGaussianNoise",
    "ExponentialChoice",
    "GaussianNoise",
    "GeneralizedRandomizedResponseNoise",
    "GeometricNoise",
    "LaplaceNoise",
    "Noise",
    "QuantileChoice",
    "RandomizedResponseNoise",
    "UnaryEncodingNoise",
]

Floats = npt.NDArray[np.float64]

LARGEST = 2**62  # whole numbers beyond are clipped, so that noise never overflows

LARGEST_VARIANCE = 2.0**34  # of discrete Gaussian noise, whose masses are summed one by one
#: What quantiles in floating point are multiplied by, so that they are not below the exact ones.
UPWARDS = 1 + 2.0**-45

#: What the `log_likelihood` of all laws has in common.
law_doc = assembled(
    likelihood="""
    Parameters
    ----------
    z : array_like or Release
        Released values.
    x : array_like
        Private values, clipped as in the mechanism's `release`; broadcast against `z`.

    Returns
    -------
    ndarray of float64
        Of the broadcast shape.

    Raises
    ------
    ValueError, TypeError
        If they are not what the mechanism takes and gives.
    """
)


class Noise:
    """The law of a released value given the private one; equal to another of the same kind and fields."""

    #: The name of the mechanism, as a release tells it.
    kind: ClassVar[str]
    #: Names by which earlier files tell the fields.
    earlier: ClassVar[tuple[str, ...]] = ()

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability, or density, of what was released given the private value.

        {likelihood}
        """
        raise NotImplementedError

    def accuracy(self, confidence: float = 0.95) -> Any:
        """Return the least a with ``P(abs(z - x) <= a)`` at least a confidence, for every x within the bounds.

        Parameters
        ----------
        confidence : float
            In (0, 1), for each number by itself; for k numbers at once ask for ``1 - (1 - confidence) / k``.

        Returns
        -------
        int, float or ndarray
            An array where numbers differ in their noise. Never below the least: of whole numbers it is the least; on a
            grid it is above by at most three grid steps.

        Raises
        ------
        ValueError
            If `confidence` is not in (0, 1).
        TypeError
            If nothing is added: responses and choices have no such figure.
        """
        raise TypeError(f"`accuracy` is of noise that is added to numbers, which {self.kind} is not: {self._instead}")

    def interval(self, z: npt.ArrayLike, confidence: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return an interval around each released number that holds the private one with a confidence.

        Parameters
        ----------
        z : array_like or Release
            Released numbers.
        confidence : float
            As for `accuracy`.

        Returns
        -------
        lower, upper : ndarray
            Of the shape of `z`: `accuracy` to either side, and within the bounds to which private numbers were clipped.

        Raises
        ------
        ValueError, TypeError
            As for `accuracy`, or if `z` holds other numbers than the mechanism gives.
        """
        self.accuracy(confidence)  # refuses, where there is none
        raise NotImplementedError

    #: What serves where there is no accuracy.
    _instead: ClassVar[str] = "`log_likelihood` is its law"

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them; fractions are strings."""
        return {name: _plain(getattr(self, name)) for name in self._names()}

    @classmethod
    def _of_facts(cls, facts: Mapping[str, Any]) -> Noise:
        """Return the law of such fields; others are not looked at."""
        return cls(**{name: facts[name] for name in cls._names() if name in facts})

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the fields."""
        return [field.name for field in fields(cast(Any, cls))]

    def _part(self, index: Any, shape: tuple[int, ...]) -> Noise:
        """Return the law of ``values[index]``, for values of a shape."""
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_equal(getattr(self, name), getattr(other, name)) for name in self._names())

    def __hash__(self) -> int:
        return hash((self.kind, *(np.shape(getattr(self, name)) for name in self._names())))


def _confidence(value: object) -> float:
    found = _check.real(value, "confidence")
    if not 0 < found < 1:
        raise ValueError(f"`confidence` must be in (0, 1), got {found}")
    return found


def _around(z: Floats, distance: Any, lower: float | None, upper: float | None) -> tuple[Floats, Floats]:
    """Return numbers less and plus a distance, rounded outwards, within bounds."""
    with np.errstate(over="ignore"):
        ends = np.nextafter(z - distance, -math.inf), np.nextafter(z + distance, math.inf)
    return np.clip(ends[0], lower, upper), np.clip(ends[1], lower, upper)


@lru_cache(maxsize=256)
def _least_geometric(alpha: float, exponent: Fraction | None, confidence: float) -> int:
    """Return the least k with ``P(abs(noise) <= k) = 1 - 2 alpha**(k + 1) / (1 + alpha)`` at least a confidence.

    That is ``k + 1 >= t`` for t = log(2 / ((1 + alpha) (1 - confidence))) / decay, which is no whole number: alpha is
    transcendental, or m / 2**e, where 2**e + m would have to divide a power of m. It has more than 60 digits behind the
    point here, of which ten are not trusted.
    """
    with localcontext(Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        decay = -Decimal(alpha).ln() if exponent is None else Decimal(exponent.numerator) / exponent.denominator
        ratio = Decimal(alpha) if exponent is None else (-decay).exp()
        rest = 1 - Fraction(confidence)
        steps = (2 * rest.denominator / (rest.numerator * (1 + ratio))).ln() / decay
        return max(int((steps + Decimal("1e-50")).to_integral_value(ROUND_CEILING)) - 1, 0)


@lru_cache(maxsize=64)
def _least_discrete_gaussian(variance: float, confidence: float) -> int:
    """Return the least k with ``P(abs(noise) <= k)`` at least a confidence, or one more where doubles cannot tell."""
    reach = math.ceil(12 * math.sqrt(variance)) + 40  # beyond are less than 1e-31
    mass = np.exp(-(np.arange(1.0, reach + 1) ** 2) / (2 * variance))
    beyond = 2 * np.cumsum(mass[::-1])[::-1]  # entry k: more than k
    rest = float(1 - Fraction(confidence)) * (1 + beyond[0]) * (1 - (reach + 64) * 2.0**-52)
    return int(np.argmax(np.append(beyond, 0.0) <= rest))


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _each(values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return values for each cell; an empty list of a file says nothing of its other axes."""
    return np.broadcast_to(values, shape) if values.size else values.reshape(shape)


def _fraction(value: Any, name: str) -> Fraction:
    """Return a fraction, also of its words in a file."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,40}(/0*[1-9]\d{,40})?", value):
        return Fraction(value)
    if isinstance(value, Fraction):
        return value
    return Fraction(_check.real(value, name))


def _chance(value: Any, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1 as a fraction."""
    found = _fraction(value, name)
    if not 0 < found < 1:
        raise ValueError(f"`{name}` must be in (0, 1), got {found!s:.40}")
    return found


def _log_not(chance: Fraction) -> float:
    """Return log(1 - p)."""
    return math.log1p(-chance) if chance < 0.5 else math.log(1 - chance)


def whole_bounds(lower: int | None, upper: int | None) -> tuple[int | None, int | None]:
    """Return bounds of whole numbers, either of which may be None."""
    low = None if lower is None else _check.whole(lower, "lower", minimum=-LARGEST, maximum=LARGEST)
    high = None if upper is None else _check.whole(upper, "upper", minimum=-LARGEST, maximum=LARGEST)
    if low is not None and high is not None and not low < high:
        raise ValueError(f"`lower` must be below `upper`, got {low} and {high}")
    return low, high


def log_geometric(decay: Any) -> Any:
    """Return log((1 - alpha) / (1 + alpha)) from -log alpha."""
    return np.log(np.tanh(decay / 2))


class _OfWhole(Noise):
    """Noise on whole numbers, clipped to bounds that may be None."""

    lower: int | None
    upper: int | None

    @property
    def bounds(self) -> tuple[int, int]:
        """Where numbers are clipped."""
        return -LARGEST if self.lower is None else self.lower, LARGEST if self.upper is None else self.upper

    def interval(self, z: npt.ArrayLike, confidence: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return an interval around each released number that holds the private one: see `Noise.interval`."""
        released = _check.counts(z, "z", minimum=None)
        (low, high), distance = self.bounds, np.array(self.accuracy(confidence), dtype=object)
        if np.max(distance, initial=0) < LARGEST:
            distance = distance.astype(np.int64)
        else:
            released = released.astype(object)
        below, above = np.maximum(released, low + distance) - distance, np.minimum(released, high - distance) + distance
        return np.minimum(below, high).astype(np.int64), np.maximum(above, low).astype(np.int64)

    def _set(self, **values: Any) -> None:
        lower, upper = whole_bounds(self.lower, self.upper)
        for name, value in ({"lower": lower, "upper": upper} | values).items():
            object.__setattr__(self, name, value)


@law_doc
@dataclass(frozen=True, eq=False)
class GeometricNoise(_OfWhole):
    """Two-sided geometric noise: ``P(z | x) = (1 - alpha) / (1 + alpha) alpha**abs(z - x)``.

    Parameters
    ----------
    alpha : float or array_like, optional
        The ratio, in (0, 1); an array has one for each value.
    lower, upper : int, optional
        Bounds to which each number is clipped.
    exponent : Fraction, optional
        ``-log(alpha)``, where that is a fraction.

    Examples
    --------
    >>> from quincunx.privacy import GeometricMechanism, noise
    >>> GeometricMechanism(alpha=0.5).noise == noise.GeometricNoise(0.5)
    True
    """

    alpha: Any = None
    lower: int | None = None
    upper: int | None = None
    exponent: Fraction | None = None
    kind = "geometric"

    def __post_init__(self) -> None:
        exponent = None if self.exponent is None else _fraction(self.exponent, "exponent")
        if exponent is not None:
            if not Fraction(1, 2 * LARGEST) <= exponent <= LARGEST:
                raise ValueError(f"`exponent` must be between 2**-63 and 2**62, got {exponent!s:.40}")
            alpha: Any = math.exp(-exponent)
            if self.alpha is not None and not math.isclose(alpha, self.alpha, rel_tol=1e-12, abs_tol=1e-300):
                raise ValueError(f"`alpha` must be exp(-exponent) = {alpha}, got {self.alpha}")
        else:
            alpha = _check.reals_where(self.alpha, "alpha", "in (0, 1)", lambda a: (a > 0) & (a < 1))
            alpha = alpha.copy() if alpha.ndim else float(alpha)
            if isinstance(alpha, np.ndarray):
                alpha.flags.writeable = False
        self._set(alpha=alpha, exponent=exponent)

    @property
    def decay(self) -> Any:
        """The privacy loss per unit of distance, ``-log(alpha)``."""
        if self.exponent is not None:
            return float(self.exponent)
        # Near one the distance from it is the accurate figure, near zero the ratio itself.
        found = np.where(np.greater(self.alpha, 0.5), -np.log1p(np.maximum(self.alpha, 0.5) - 1), -np.log(self.alpha))
        return found if found.ndim else float(found)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of a released number given the private one.

        {likelihood}
        """
        released, private = _check.counts(z, "z", minimum=None), _check.counts(x, "x", minimum=None)
        private = np.clip(private, *self.bounds)
        if (np.abs(released) < 2**53).all():
            distance = np.abs(released - private).astype(np.float64)
        else:
            distance = np.abs(released.astype(np.float64) - private)
        return np.asarray(log_geometric(self.decay) - self.decay * distance)

    def accuracy(self, confidence: float = 0.95) -> Any:
        """Return the least whole a with ``P(abs(z - x) <= a)`` at least a confidence: see `Noise.accuracy`."""
        level = _confidence(confidence)
        ratios, index = np.unique(self.alpha, return_inverse=True)
        least = [_least_geometric(float(ratio), self.exponent, level) for ratio in ratios]
        if not np.ndim(self.alpha):
            return least[0]
        return np.array(least, dtype=np.int64)[index].reshape(self.alpha.shape)

    def _part(self, index: Any, shape: tuple[int, ...]) -> Noise:
        """Return the law of ``values[index]``, for values of a shape."""
        if np.ndim(self.alpha) == 0:
            return self
        return GeometricNoise(_each(self.alpha, shape)[index], self.lower, self.upper)


@law_doc
@dataclass(frozen=True, eq=False)
class DiscreteGaussianNoise(_OfWhole):
    """Discrete Gaussian noise: ``P(z | x)`` proportional to ``exp(-(z - x)**2 / (2 variance))``.

    Parameters
    ----------
    variance : float
        The parameter, > 0; a little above the law's variance where it is small.
    lower, upper : int, optional
        Bounds to which each number is clipped.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.DiscreteGaussianNoise(4.0).log_likelihood(3, 3)), 6)
    -1.612086
    """

    variance: float
    lower: int | None = None
    upper: int | None = None
    kind = "discrete-gaussian"

    def __post_init__(self) -> None:
        if not _check.real(self.variance, "variance", positive=True) <= LARGEST_VARIANCE:
            raise ValueError(f"`variance` must be at most 2**34, got {self.variance}")
        self._set(variance=float(self.variance))

    @cached_property
    def _log_whole(self) -> float:
        """Logarithm of the sum of exp(-k^2 / (2 variance)) over all whole k: by itself, or as Poisson's dual sum."""
        variance = self.variance
        if variance > 1:
            dual = 2 * sum(math.exp(-2 * math.pi**2 * variance * k * k) for k in range(1, 4))
            return 0.5 * math.log(2 * math.pi * variance) + math.log1p(dual)
        return math.log1p(2 * sum(math.exp(-k * k / (2 * variance)) for k in range(1, 12)))

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of a released number given the private one.

        {likelihood}
        """
        released, private = _check.counts(z, "z", minimum=None), _check.counts(x, "x", minimum=None)
        distance = released.astype(np.float64) - np.clip(private, *self.bounds)
        return np.asarray(-0.5 * distance * distance / self.variance - self._log_whole)

    def accuracy(self, confidence: float = 0.95) -> Any:
        """Return the least whole a with ``P(abs(z - x) <= a)`` at least a confidence: see `Noise.accuracy`.

        One more where both agree to 1e-10 or better.
        """
        return _least_discrete_gaussian(self.variance, _confidence(confidence))


@law_doc
@dataclass(frozen=True, eq=False)
class LaplaceNoise(Noise):
    """Laplace noise on real numbers.

    Parameters
    ----------
    scale : float
        Of the Laplace law, > 0.
    lower, upper : float, optional
        Bounds to which each number is clipped. With bounds and a step, numbers are rounded to the grid before the
        noise, which is two-sided geometric on it; without bounds the sum is rounded.
    step : float
        The grid of the released values; 0 for none.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.LaplaceNoise(2.0).log_likelihood(1.0, 0.0)), 6)
    -1.886294
    """

    scale: float
    lower: float | None = None
    upper: float | None = None
    step: float = 0.0
    kind = "laplace"

    def __post_init__(self) -> None:
        _check.real(self.scale, "scale", positive=True)
        if _check.real(self.step, "step") < 0:
            raise ValueError(f"`step` must be at least 0, got {self.step}")
        if (self.lower is None) != (self.upper is None):
            raise TypeError("`lower` and `upper` must be given together")
        if self.lower is not None and not _check.real(self.lower, "lower") < _check.real(self.upper, "upper"):
            raise ValueError(f"`lower` must be below `upper`, got {self.lower} and {self.upper}")

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the density of a released number given the private one.

        With a grid ``log(P(z | x) / step)``: as a density it is the Laplace law to 1e-12, relative.

        {likelihood}
        """
        released, private = _check.reals(z, "z"), _check.reals(x, "x")
        constant = -math.log(2 * self.scale)
        if self.lower is not None:
            private = np.clip(private, self.lower, self.upper)
            if self.step:
                private = np.rint(private / self.step) * self.step
                constant = float(log_geometric(self.step / self.scale)) - math.log(self.step)
        return np.asarray(constant - np.abs(released - private) / self.scale)

    def accuracy(self, confidence: float = 0.95) -> Any:
        """Return an a with ``P(abs(z - x) <= a)`` at least a confidence: see `Noise.accuracy`.

        The quantile of the Laplace law and a step of the grid, above the least by at most 1.5 steps. A step is enough
        for rounding after the noise, half of it moves nothing by more, and for that before: noise of g steps is off by
        at most g + 1/2, and ``2 sqrt(alpha) <= 1 + alpha`` where the mass beyond is ``2 alpha**(g + 1) / (1 + alpha)``.
        """
        return (-math.log1p(-_confidence(confidence)) * self.scale + self.step) * UPWARDS

    def interval(self, z: npt.ArrayLike, confidence: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return an interval around each released number that holds the private one: see `Noise.interval`."""
        return _around(_check.reals(z, "z"), self.accuracy(confidence), self.lower, self.upper)


@law_doc
@dataclass(frozen=True, eq=False)
class GaussianNoise(Noise):
    """Normal noise on real numbers or vectors.

    Parameters
    ----------
    sigma : float
        The standard deviation, > 0.
    scales : array_like of float, optional
        Coordinate i along the last axis has the deviation ``sigma * scales[i]``; of more axes, each value its own.
    radius : float, optional
        Vectors are clipped to the ball of this radius about 0.
    dimension : int
        With `radius`: the length of a vector along the last axis. With 1, each number is clipped by itself.
    step : float
        The grid of the released values; 0 for none. Coordinates with scales have grids of their own.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.GaussianNoise(0.5, scales=[1.0, 4.0]).deviations.round(6).tolist()
    [0.5, 2.0]
    """

    sigma: float
    scales: Any = None
    radius: float | None = None
    dimension: int = 1
    step: float = 0.0
    kind = "gaussian"

    def __post_init__(self) -> None:
        _check.real(self.sigma, "sigma", positive=True)
        if _check.real(self.step, "step") < 0:
            raise ValueError(f"`step` must be at least 0, got {self.step}")
        if self.radius is not None:
            _check.real(self.radius, "radius", positive=True)
        _check.whole(self.dimension, "dimension", minimum=1)
        if self.radius is None:
            object.__setattr__(self, "dimension", 1)
        if self.scales is not None:
            scales = _check.reals_where(self.scales, "scales", "positive", lambda s: s > 0).copy()
            if not scales.ndim:
                raise ValueError(f"`scales` must be a list, got {self.scales}")
            scales.flags.writeable = False
            object.__setattr__(self, "scales", scales)

    @property
    def deviations(self) -> Any:
        """The standard deviation, of each coordinate where these differ; products are rounded upwards."""
        return self.sigma if self.scales is None else np.nextafter(self.sigma * self.scales, math.inf)

    def clipped(self, x: npt.ArrayLike) -> Floats:
        """Return numbers or vectors clipped to the ball.

        Parameters
        ----------
        x : array_like of float
            The numbers, or vectors along the last axis.

        Returns
        -------
        ndarray of float64
            Of the same shape.

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers, or vectors of another length.
        """
        numbers = _check.reals(x, "x")
        length = 1 if self.radius is None else self.dimension
        if self.scales is not None:
            length = max(length, self.scales.shape[-1])
            if numbers.ndim == 0 or numbers.shape[-1] != self.scales.shape[-1]:
                raise ValueError(f"`x` must have a last axis of length {length}, got shape {numbers.shape}")
        if self.radius is None:
            return numbers
        if self.dimension == 1 and self.scales is None:
            return np.clip(numbers, -self.radius, self.radius)
        if numbers.ndim == 0 or numbers.shape[-1] != length:
            raise ValueError(f"`x` must have a last axis of length {length}, got shape {numbers.shape}")
        largest = np.max(np.abs(numbers), axis=-1, keepdims=True)
        unit = numbers / np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
        norm = np.sqrt(np.sum(unit * unit, axis=-1, keepdims=True))
        inside = largest <= self.radius / np.where(norm > 0, norm, 1.0)
        return np.where(inside, numbers, unit * (self.radius / np.where(norm > 0, norm, 1.0)))

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the density of a released number given the private one.

        The density of a vector is the sum over its last axis. The normal law, to which that of the grid is equal to
        1e-12, relative.

        {likelihood}
        """
        sigma = self.sigma if self.scales is None else self.sigma * self.scales
        distance = (_check.reals(z, "z") - self.clipped(x)) / sigma
        return np.asarray(-0.5 * distance * distance - np.log(sigma) - 0.5 * math.log(2 * math.pi))

    def accuracy(self, confidence: float = 0.95) -> Any:
        """Return an a with ``P(abs(z - x) <= a)`` at least a confidence: see `Noise.accuracy`.

        The quantile of the normal law and a step of the grid, above the least by at most 1.5 steps; two steps of
        `sigma` times the scale where coordinates have grids of their own, which these are not above.
        """
        from scipy.special import erfinv, ndtri

        level = _confidence(confidence)
        quantile = math.sqrt(2) * float(erfinv(level)) if level < 0.5 else -float(ndtri((1 - level) / 2))
        step = self.step if self.scales is None else 2 * self.step * self.scales
        return (quantile * self.deviations + step) * UPWARDS

    def interval(self, z: npt.ArrayLike, confidence: float = 0.95) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return an interval around each released number that holds the private one: see `Noise.interval`."""
        bounds = (None, None) if self.radius is None else (-self.radius, self.radius)
        return _around(_check.reals(z, "z"), self.accuracy(confidence), *bounds)

    def _part(self, index: Any, shape: tuple[int, ...]) -> Noise:
        """Return the law of ``values[index]``, for values of a shape."""
        if self.scales is None:
            return self
        chosen = _each(self.scales, shape)[index]
        if chosen.size and (chosen == chosen.flat[0]).all():
            sigma = float(np.nextafter(self.sigma * chosen.flat[0], math.inf))
            return GaussianNoise(sigma, None, self.radius, self.dimension, self.step * float(chosen.flat[0]) * 2)
        if chosen.size and (chosen == (row := chosen.reshape(-1, chosen.shape[-1])[0])).all():
            chosen = row  # the coordinates lie along the last axis still
        return GaussianNoise(self.sigma, chosen, self.radius, self.dimension, self.step)


class _Categorical(Noise):
    """A law of declared categories, which are told by their labels where they have any."""

    categories: int | Sequence[Any]
    _instead = "the mechanism's `estimate` has shares, `log_likelihood` is its law"
    _most: ClassVar[int] = 2**31

    @cached_property
    def declared(self) -> Categories:
        """The categories."""
        return Categories.of(self.categories, "categories", maximum=self._most)

    def _settle(self) -> None:
        object.__setattr__(self, "categories", self.declared.declared)


@law_doc
@dataclass(frozen=True, eq=False)
class RandomizedResponseNoise(_Categorical):
    """A bit is told as its opposite with a probability.

    Parameters
    ----------
    flip : Fraction or float
        That probability, in (0, 1).
    categories : int or sequence
        2, or two labels.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.RandomizedResponseNoise(0.25).keep_probability
    0.75
    """

    flip: Fraction
    categories: int | Sequence[Any] = 2
    kind = "randomized-response"
    _most = 2
    earlier = ("keep_probability",)

    def __post_init__(self) -> None:
        self._settle()
        object.__setattr__(self, "flip", _chance(self.flip, "flip"))

    @classmethod
    def _of_facts(cls, facts: Mapping[str, Any]) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        flip = facts["flip"] if "flip" in facts else 1 - _chance(facts["keep_probability"], "keep_probability")
        return cls(flip, facts.get("categories", 2))

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them; bits need no categories."""
        return {name: fact for name, fact in super().facts().items() if fact != 2 or name != "categories"}

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return float(1 - self.flip)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of a released bit given the private one.

        {likelihood}
        """
        same = self.declared.encode(z, "z") == self.declared.encode(x, "x")
        return np.where(same, _log_not(self.flip), math.log(self.flip))


@law_doc
@dataclass(frozen=True, eq=False)
class GeneralizedRandomizedResponseNoise(_Categorical):
    """A category is told as each other with a probability.

    Parameters
    ----------
    categories : int or sequence
        Their number, >= 2, or their labels.
    other : Fraction or float
        The probability of each category that is not the truth.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.GeneralizedRandomizedResponseNoise(3, 0.125).keep_probability
    0.75
    """

    categories: int | Sequence[Any]
    other: Fraction
    kind = "generalized-randomized-response"
    earlier = ("keep_probability",)

    def __post_init__(self) -> None:
        self._settle()
        object.__setattr__(self, "other", _chance(self.other, "other"))
        if (len(self.declared) - 1) * self.other >= 1:
            raise ValueError(f"`other` must be below 1 / (categories - 1), got {self.other!s:.40}")

    @classmethod
    def _of_facts(cls, facts: Mapping[str, Any]) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        if "other" in facts:
            return super()._of_facts(facts)
        keep, number = _chance(facts["keep_probability"], "keep_probability"), facts["categories"]
        return cls(number, (1 - keep) / (number - 1))

    @property
    def other_probability(self) -> float:
        """The probability of each category that is not the truth."""
        return float(self.other)

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return float(1 - (len(self.declared) - 1) * self.other)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of a released category given the private one.

        {likelihood}
        """
        same = self.declared.encode(z, "z") == self.declared.encode(x, "x")
        return np.where(same, math.log(self.keep_probability), math.log(self.other_probability))


@law_doc
@dataclass(frozen=True, eq=False)
class UnaryEncodingNoise(_Categorical):
    """A category is told as a row of bits, its one-hot row with noise on each.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels.
    one, zero : Fraction or float
        The probabilities that the one, and that a zero, is told as a one.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.UnaryEncodingNoise(2, 0.5, 0.25).log_likelihood([1, 0], 0)), 6)
    -0.980829
    """

    categories: int | Sequence[Any]
    one: Fraction
    zero: Fraction
    kind = "unary-encoding"
    earlier = ("variant", "one_probability", "zero_probability")

    def __post_init__(self) -> None:
        self._settle()
        for name in ("one", "zero"):
            object.__setattr__(self, name, _chance(getattr(self, name), name))

    @classmethod
    def _of_facts(cls, facts: Mapping[str, Any]) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        one, zero = (facts[name] if name in facts else facts[f"{name}_probability"] for name in ("one", "zero"))
        return cls(facts["categories"], one, zero)

    @property
    def one_probability(self) -> float:
        """The probability that the one is told as a one."""
        return float(self.one)

    @property
    def zero_probability(self) -> float:
        """The probability that a zero is told as a one."""
        return float(self.zero)

    def rows(self, z: npt.ArrayLike, name: str = "z") -> npt.NDArray[Any]:
        """Return rows of bits, checked.

        Parameters
        ----------
        z : array_like of int or Release, shape (..., k)
            The rows.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int, shape (..., k)

        Raises
        ------
        ValueError, TypeError
            If they are not k bits each.
        """
        rows = _check.categories(self.declared.columns(z, name), name, 2)
        if rows.ndim == 0 or rows.shape[-1] != len(self.declared):
            raise ValueError(f"`{name}` must have a last axis of length {len(self.declared)}, got shape {rows.shape}")
        return rows

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of a released row, on the last axis of `z`, given the private category.

        {likelihood}
        """
        rows, values, k = self.rows(z), self.declared.encode(x, "x"), len(self.declared)
        shape = np.broadcast_shapes(rows.shape[:-1], values.shape)
        rows, values = np.broadcast_to(rows, (*shape, k)), np.broadcast_to(values, shape)
        told = np.take_along_axis(rows, values[..., None], axis=-1)[..., 0]
        (one, zero), (hit, miss) = ((math.log(p), _log_not(p)) for p in (self.zero, self.one))
        ones = rows.sum(axis=-1, dtype=np.int64) - told
        return np.asarray(ones * one + (k - 1 - ones) * zero + np.where(told == 1, hit, miss))


@law_doc
@dataclass(frozen=True, eq=False)
class ExponentialChoice(Noise):
    """A choice i with ``P(i)`` proportional to ``exp(exponent score(i) / step)``, scores rounded to multiples of step.

    Parameters
    ----------
    exponent : Fraction
        Of a step, > 0.
    step : float
        The grid of the scores, > 0.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.ExponentialChoice(0.5, 1.0).log_likelihood(1, [0.0, 2.0])), 6)
    -0.313262
    """

    exponent: Fraction
    step: float
    kind = "exponential"
    _instead = "`ExponentialMechanism.utility_bound` tells how far below the best score a choice lies"

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", _fraction(self.exponent, "exponent"))
        if not Fraction(1, 2 * LARGEST) <= self.exponent <= LARGEST:
            raise ValueError(f"`exponent` must be between 2**-63 and 2**62, got {self.exponent!s:.40}")
        _check.real(self.step, "step", positive=True)

    @classmethod
    def _of_facts(cls, facts: Mapping[str, Any]) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        return cls(facts["exponent"], facts["step"] if "step" in facts else choice_step(facts["sensitivity"]))

    def units(self, scores: npt.ArrayLike, name: str = "x") -> npt.NDArray[np.int64]:
        """Return scores in steps.

        Parameters
        ----------
        scores : array_like of float, shape (..., k)
            The score of each element.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int64, shape (..., k)

        Raises
        ------
        ValueError, TypeError
            If a score is not finite, or the set is empty.
        """
        values = _check.reals(scores, name)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ValueError(f"`{name}` must have a last axis of at least one element, got shape {values.shape}")
        with np.errstate(over="ignore"):
            return np.rint(np.clip(values / self.step, -LARGEST_SCORE, LARGEST_SCORE)).astype(np.int64)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of choices given the scores, which are on the last axis of `x`.

        {likelihood}
        """
        units = self.units(x)
        chosen = _check.categories(z, "z", units.shape[-1]).astype(np.int64)
        gaps = (units - units.max(axis=-1, keepdims=True)) * float(self.exponent)
        logs = gaps - np.log(np.exp(gaps).sum(axis=-1, keepdims=True))
        shape = np.broadcast_shapes(chosen.shape, logs.shape[:-1])
        logs = np.broadcast_to(logs, (*shape, logs.shape[-1]))
        return np.take_along_axis(logs, np.broadcast_to(chosen, shape)[..., None], axis=-1)[..., 0]


@law_doc
@dataclass(frozen=True, eq=False)
class QuantileChoice(Noise):
    """A choice g from a grid with ``P(g)`` proportional to ``exp(-exponent loss(g))``.

    ``loss(g) = denominator(q) max(#{x < g} - q n, q n - #{x <= g}, 0)`` is a whole number: by how many ranks g misses
    the q-quantile of the n private numbers x, in the unit of q.

    Parameters
    ----------
    exponent : Fraction
        Of a unit of loss, > 0.
    q : Fraction
        In [0, 1].
    lower, upper, step : int or float
        The grid lower, lower + step, ... up to upper; whole numbers where all three are.

    Examples
    --------
    >>> import math
    >>> from quincunx.privacy import noise
    >>> law = noise.QuantileChoice(math.log(2), 0.5, 0, 3, 1)  # losses 2, 0, 0 and 2 for the numbers 1 and 2
    >>> law.losses([1, 2]).tolist(), law.log_likelihood([1, 2], [1, 2]).round(6).tolist()
    ([2, 0, 0, 2], [-0.916291, -0.916291])
    """

    exponent: Fraction
    q: Fraction
    lower: float
    upper: float
    step: float
    kind = "quantile"

    def __post_init__(self) -> None:
        for name in ("exponent", "q"):
            object.__setattr__(self, name, _fraction(getattr(self, name), name))
        if not Fraction(1, 2 * LARGEST) <= self.exponent <= LARGEST:
            raise ValueError(f"`exponent` must be between 2**-63 and 2**62, got {self.exponent!s:.40}")
        if not 0 <= self.q <= 1:
            raise ValueError(f"`q` must be in [0, 1], got {self.q!s:.40}")
        low, high, step = (_check.real(getattr(self, name), name) for name in ("lower", "upper", "step"))
        if not low < high or math.isinf(high - low):
            raise ValueError(f"`lower` must be below `upper` by a float, got {self.lower} and {self.upper}")
        if not 0 < step <= high - low:
            raise ValueError(f"`step` must be positive and at most upper - lower, got {self.step}")
        _check.room(math.floor(min((high - low) / step, 2.0**60)) * 64, "a grid of so many steps")

    @cached_property
    def grid(self) -> npt.NDArray[Any]:
        """The numbers that may be chosen, int64 or float64."""
        low, high, step = self.lower, self.upper, self.step
        if all(isinstance(number, int) for number in (low, high, step)):
            return np.arange(low, high + 1, step, dtype=np.int64)
        points = low + step * np.arange(math.floor((high - low) / step * (1 + 2.0**-50)) + 1)
        if not (np.diff(points) > 0).all():
            raise ValueError(f"`step` must lead to different floats between {low} and {high}, got {step}")
        capped: npt.NDArray[np.float64] = np.minimum(points, high)
        return capped

    def losses(self, x: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the loss of every number of the grid.

        Parameters
        ----------
        x : array_like of float, shape (n,)
            The private numbers.

        Returns
        -------
        ndarray of int64, shape (numbers of the grid,)

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers on one axis.
        """
        values = _check.reals(x, "values")
        if values.ndim != 1:
            raise ValueError(f"`values` must have one axis, of records, got shape {values.shape}")
        grid, one, part = self.grid, self.q.denominator, self.q.numerator * len(values)

        def counted(side: Literal["left", "right"]) -> npt.NDArray[np.int64]:
            first = np.searchsorted(grid, values, side)  # from where on a number is below, or not above
            return np.cumsum(np.bincount(first, minlength=len(grid) + 1)[:-1])

        missed: npt.NDArray[np.int64] = np.maximum(one * counted("right") - part, part - one * counted("left"))
        return np.maximum(missed, 0)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of numbers of the grid, given all the private ones.

        {likelihood}
        """
        chosen = _check.reals(z, "z")
        place = np.clip(np.searchsorted(self.grid, chosen), 0, len(self.grid) - 1)
        if not (self.grid[place] == chosen).all():
            raise ValueError(f"`z` must lie on the grid from {self.lower} to {self.upper} in steps of {self.step}")
        losses = self.losses(x)
        gaps = (losses.min() - losses) * float(self.exponent)
        return np.asarray((gaps - np.log(np.exp(gaps).sum()))[place])


#: Steps of the grid of scores per sensitivity, as a power of two.
SCORE_BITS = 30
#: Scores beyond this many steps are clipped.
LARGEST_SCORE = 2**61


def choice_step(sensitivity: float) -> float:
    """Return the grid of scores of a sensitivity."""
    exponent = math.frexp(sensitivity)[1] - SCORE_BITS
    if not -1000 <= exponent <= 960:
        raise ValueError(f"`sensitivity` must leave a grid that floats can hold, got {sensitivity}")
    return math.ldexp(1.0, exponent)


LAWS: dict[str, type[Noise]] = {
    law.kind: law
    for law in (
        GeometricNoise,
        DiscreteGaussianNoise,
        LaplaceNoise,
        GaussianNoise,
        RandomizedResponseNoise,
        GeneralizedRandomizedResponseNoise,
        UnaryEncodingNoise,
        ExponentialChoice,
        QuantileChoice,
    )
}


def part_of(noise: Noise, index: Any, shape: tuple[int, ...]) -> Noise:
    """Return the law of ``values[index]``, for values of a shape."""
    return noise._part(index, shape)


def refuse_unknown(noise: Noise, who: str, known: Iterable[str]) -> None:
    """Refuse a law that has more to it than the fields that are known to a model."""
    names = set(known)
    for field in fields(cast(Any, noise)):
        value = getattr(noise, field.name)
        if field.name not in names and (field.default is MISSING or not _equal(value, field.default)):
            raise ValueError(f"`mechanism` must have no `{field.name}`, which {who} does not know, got {value}")


def told(noise: Noise | None) -> dict[str, Any]:
    """Return a law as JSON can hold it."""
    return (
        {"mechanism": None, "parameters": {}}
        if noise is None
        else {
            "mechanism": noise.kind,
            "parameters": noise.facts(),
        }
    )


def untold(kind: Any, facts: Mapping[str, Any], others: Iterable[str] = ()) -> Noise | None:
    """Return the law of a name and facts, which are its fields or have one of other names.

    Raises
    ------
    ValueError
        If the name, or a fact, is none that is known.
    """
    if kind is None and not set(facts) - set(others):
        return None
    if kind not in LAWS:
        raise ValueError(f"its mechanism is {kind!r}, this version knows {[*LAWS]}")
    law = LAWS[kind]
    if unknown := sorted(set(facts) - {*law._names(), *law.earlier, *others}):
        raise ValueError(f"this version does not know {unknown} of the mechanism {kind}")
    return law._of_facts(facts)
