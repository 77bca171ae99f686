"""The law of what is released given what is private: what the laws of all mechanisms have in common.

A mechanism has its law as `noise`, each of its releases carries it, to disk and back, and models take it by its type.
So nothing that is known of the noise is lost between them: a model that has no place for a field refuses it by name.
Each law stands beside its mechanism, and enters itself in `LAWS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._categories import Categories
from quincunx._docs import assembled
from quincunx._types import Array, Facts, Floats, Index

#: A distance that noise keeps with a confidence: an array where numbers differ in their noise.
Accuracy: TypeAlias = float | Array

LARGEST = 2**62  # whole numbers beyond are clipped, so that noise never overflows
#: What quantiles in floating point are multiplied by, so that they are not below the exact ones.
UPWARDS = 1 + 2.0**-45

#: Every law by the name of its mechanism; a class enters itself.
LAWS: dict[str, type[Noise]] = {}

#: What laws and mechanisms say alike.
law_doc = assembled(
    likelihood="""
    Parameters
    ----------
    z : array_like or Release
        Released values; rows of bits lie along the last axis.
    x : array_like
        Private values, clipped as in the mechanism's `release`; of an exponential mechanism the scores, along the last
        axis, of a quantile all numbers. Broadcast against `z`.

    Returns
    -------
    ndarray of float64
        One for each number, category or row. Where real numbers lie on a grid, ``log(P(z | x) / step)``; that of a
        vector with Gaussian noise is the sum over its last axis.

    Raises
    ------
    ValueError, TypeError
        If they are not what the mechanism takes and gives; if both have labels, as many axes, and other labels.
    """,
    called="""
    name : str
        What they are called where they are refused.
    """,
    rows="""
    Parameters
    ----------
    z : array_like of int or Release, shape (..., k)
        The rows.
    {called}

    Returns
    -------
    ndarray of int, shape (..., k)

    Raises
    ------
    ValueError, TypeError
    """,
    accuracy="""
    Parameters
    ----------
    confidence : float
        In (0, 1), for each number by itself; for k numbers at once ask for ``1 - (1 - confidence) / k``.

    Returns
    -------
    int, float or ndarray
        An array where the coordinates of a vector differ in their noise. For every x within the bounds, to which
        others are clipped. It is never below the least: of whole numbers it is the least, of others on their grid
        above it by at most three steps.

    Raises
    ------
    ValueError
        If `confidence` is not in (0, 1).
    TypeError
        If nothing is added: responses have `estimate`, the exponential mechanism `utility_bound` instead.
    """,
)


class ReadOnly:
    """Whose arrays stay as they are, also in a copy: NumPy makes those that it unpickles writeable."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: Facts) -> None:
        vars(self).update(state)
        ReadOnly.__post_init__(self)


@law_doc
class Noise(ReadOnly):
    """The law of a released value given the private one; equal to another of the same kind and fields."""

    #: The name of the mechanism, as files and releases have it.
    kind: ClassVar[str]
    #: The names of fields in files of earlier formats.
    earlier: ClassVar[tuple[str, ...]] = ()
    #: What serves where there is no accuracy.
    _instead: ClassVar[str] = "`log_likelihood` is its law"
    #: Whether each released value is of one private value, whose labels it has, and not a choice by all of them.
    _by_cell: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            LAWS[cls.kind] = cls

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Logarithm of the probability of what was released given the private value; a density for real numbers.

        {likelihood}
        """
        own, others = _tables.axes_broadcast(z), _tables.axes_broadcast(x)
        if self._by_cell and len(own) == len(others):
            _tables.refuse_other_labels(own, others, "z", "`x`")
        return np.asarray(self._log_likelihood(z, x))

    def accuracy(self, confidence: float = 0.95) -> Accuracy:
        """Return the least a with ``P(abs(z - x) <= a)`` at least a confidence, for every x within the bounds.

        {accuracy}
        """
        return self._accuracy(_check.open_probability(confidence, "confidence"))

    def interval(self, z: npt.ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
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
        return self._interval(z, self.accuracy(confidence))

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        raise NotImplementedError

    def _accuracy(self, confidence: float) -> Accuracy:
        raise TypeError(f"`accuracy` is of noise that is added to numbers, which {self.kind} is not: {self._instead}")

    def _interval(self, z: npt.ArrayLike, distance: Accuracy) -> tuple[Array, Array]:
        """Return real numbers less and plus a distance, rounded outwards, within bounds."""
        released, (lower, upper) = _check.reals(z, "z"), self._clipping()
        with np.errstate(over="ignore"):
            ends = np.nextafter(released - distance, -math.inf), np.nextafter(released + distance, math.inf)
        return np.clip(ends[0], lower, upper), np.clip(ends[1], lower, upper)

    def _clipping(self) -> tuple[float | None, float | None]:
        """Return where each real number is clipped, None where it is not."""
        return None, None

    def facts(self) -> Facts:
        """Return the fields as JSON can hold them; fractions are strings."""
        return {name: _plain(getattr(self, name)) for name in self._names()}

    @classmethod
    def _of_facts(cls, facts: Facts) -> Noise:
        """Return the law of such fields; others are not looked at."""
        return cls(**{name: facts[name] for name in cls._names() if name in facts})

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the fields."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    def _picked(self, index: Index, shape: tuple[int, ...]) -> Noise:
        """Return the law of ``values[index]``, for values of a shape."""
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_equal(getattr(self, name), getattr(other, name)) for name in self._names())

    def __hash__(self) -> int:
        return hash((self.kind, *(np.shape(getattr(self, name)) for name in self._names())))


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(cast(Array, one), cast(Array, other))
    return bool(one == other)


def each(values: Array, shape: tuple[int, ...]) -> Array:
    """Return values for each cell; an empty list of a file says nothing of its other axes."""
    return np.broadcast_to(values, shape) if values.size else values.reshape(shape)


def read_only(values: Floats) -> Floats:
    """Return a copy that stays as it is."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def fraction(value: object, name: str) -> Fraction:
    """Return a fraction, also of its words in a file."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,40}(/0*[1-9]\d{,40})?", value):
        return Fraction(value)
    return value if isinstance(value, Fraction) else Fraction(_check.real(value, name))


def checked_exponent(value: object) -> Fraction:
    """Return the exponent of a choice or a ratio, within what samplers take."""
    found = fraction(value, "exponent")
    if not Fraction(1, 2 * LARGEST) <= found <= LARGEST:
        raise ValueError(f"`exponent` must be between 2**-63 and 2**62, got {found!s:.40}")
    return found


def chance(value: object, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1 as a fraction."""
    found = fraction(value, name)
    if not 0 < found < 1:
        raise ValueError(f"`{name}` must be in (0, 1), got {found!s:.40}")
    return found


def log_not(chance: Fraction) -> float:
    """Return log(1 - p)."""
    return math.log1p(-chance) if chance < 0.5 else math.log(1 - chance)


def log_of_choice(weights: Floats) -> Floats:
    """Return the logarithms of probabilities from those of weights, of which the largest is 0, on the last axis."""
    return np.asarray(weights - np.log(np.exp(weights).sum(axis=-1, keepdims=True)))


def real_bounds(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    """Return both bounds of numbers as floats, or neither."""
    if lower is None or upper is None:
        if lower is not upper:
            raise TypeError("`lower` and `upper` must be given together")
        return None, None
    low, high = _check.real(lower, "lower"), _check.real(upper, "upper")
    if not low < high:
        raise ValueError(f"`lower` must be below `upper`, got {lower} and {upper}")
    return low, high


def whole_bounds(lower: int | None, upper: int | None) -> tuple[int | None, int | None]:
    """Return bounds of whole numbers, either of which may be None."""
    low = None if lower is None else _check.whole(lower, "lower", minimum=-LARGEST, maximum=LARGEST)
    high = None if upper is None else _check.whole(upper, "upper", minimum=-LARGEST, maximum=LARGEST)
    if low is not None and high is not None and not low < high:
        raise ValueError(f"`lower` must be below `upper`, got {low} and {high}")
    return low, high


class WholeNoise(Noise):
    """Noise on whole numbers, clipped to bounds that may be None."""

    lower: int | None
    upper: int | None

    @property
    def bounds(self) -> tuple[int, int]:
        """Where numbers are clipped."""
        return -LARGEST if self.lower is None else self.lower, LARGEST if self.upper is None else self.upper

    def _differences(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Return released numbers less private ones, which are clipped, rounded once."""
        released, private = _check.counts(z, "z", minimum=None), _check.counts(x, "x", minimum=None)
        private = np.clip(private, *self.bounds)
        with np.errstate(over="ignore"):  # of a difference that 64 bits do not hold
            rounded = released.astype(np.float64) - private
            return np.where(np.abs(rounded) < LARGEST, released - private, rounded)

    def _interval(self, z: npt.ArrayLike, distance: Accuracy) -> tuple[Array, Array]:
        released: Array = _check.counts(z, "z", minimum=None)
        (low, high), far = self.bounds, np.array(distance, dtype=object)
        if np.max(far, initial=0) < LARGEST:
            far = far.astype(np.int64)
        else:
            released = released.astype(object)
        below, above = np.maximum(released, low + far) - far, np.minimum(released, high - far) + far
        return np.minimum(below, high).astype(np.int64), np.maximum(above, low).astype(np.int64)

    def _set(self, **values: object) -> None:
        lower, upper = whole_bounds(self.lower, self.upper)
        for name, value in ({"lower": lower, "upper": upper} | values).items():
            object.__setattr__(self, name, value)


class CategoricalNoise(Noise):
    """A law of declared categories, which are released by their labels where they have any."""

    categories: int | Sequence[Hashable]
    _instead = "the mechanism's `estimate` has shares, `log_likelihood` is its law"
    _most: ClassVar[int] = 2**31

    @cached_property
    def declared(self) -> Categories:
        """The categories."""
        return Categories.of(self.categories, "categories", maximum=self._most)

    def _bits(self, z: npt.ArrayLike, name: str) -> Array:
        """Return rows with a bit for each category, checked."""
        rows, k = _check.categories(self.declared.columns(z, name), name, 2), len(self.declared)
        if rows.ndim == 0 or rows.shape[-1] != k:
            raise ValueError(f"`{name}` must have a last axis of length {k}, got shape {rows.shape}")
        return rows

    def _set(self, **chances: object) -> None:
        """Set the categories as declared, and probabilities as fractions."""
        object.__setattr__(self, "categories", self.declared.declared)
        for name, value in chances.items():
            object.__setattr__(self, name, chance(value, name))


def refuse_unknown(noise: Noise, who: str, known: Iterable[str]) -> None:
    """Refuse a law that has more to it than the fields that are known to a model."""
    names = set(known)
    for field in fields(noise):  # type: ignore[arg-type]
        value = getattr(noise, field.name)
        if field.name not in names and (field.default is MISSING or not _equal(value, field.default)):
            raise ValueError(f"`mechanism` must have no `{field.name}`, which {who} does not know, got {value}")


def to_json(noise: Noise | None) -> Facts:
    """Return a law as JSON can hold it."""
    if noise is None:
        return {"mechanism": None, "parameters": {}}
    return {"mechanism": noise.kind, "parameters": noise.facts()}


def from_json(kind: str | None, facts: Facts, others: Iterable[str] = ()) -> Noise | None:
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
