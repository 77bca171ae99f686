"""Activities: one for all vertices, or one for each."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias, TypeGuard

import numpy as np

from quincunx import _check
from quincunx._check import Number
from quincunx._types import Array, ByLabel
from quincunx.graphs import Graph

#: Several numbers in order. A string is a sequence too, but one number.
Several: TypeAlias = list[Number] | tuple[Number, ...] | Array
#: Several numbers, in order or by the labels of vertices.
Many: TypeAlias = Several | ByLabel[Number]
Activity: TypeAlias = Number | Many


def is_many(activity: object) -> TypeGuard[Many]:
    """Say whether an activity is given for each vertex."""
    return isinstance(activity, (Mapping, list, tuple)) or (isinstance(activity, np.ndarray) and activity.ndim > 0)


def array_of(activity: Many) -> Array:
    """Return activities in an array of their shape."""
    found: Array = activity if isinstance(activity, np.ndarray) else np.asarray(activity, dtype=object)
    if found.dtype == object and (rows := next(filter(is_many, found.flat), None)) is not None:
        raise ValueError(f"`activity` must hold numbers in rows of one length, got an entry {rows!r:.60}")
    return found


def two_doubles(activity: object) -> tuple[float, float, int, bool]:
    """Return an activity as the sum of two doubles times a power of two, and whether it is that number.

    Of what has more digits than a double, a part of at most 2**-105 is missed; all else is the double it converts to.
    """
    if isinstance(activity, np.ndarray):
        activity = activity[()]
    if isinstance(activity, (float, np.float16, np.float32)):
        return _check.real(activity, "activity"), 0.0, 0, True
    number = _check.rational(activity, "activity")
    _check.real(number, "activity")
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    scaled = number / Fraction(2) ** exponent  # between a half and two in size: no part is too small for a double
    high = float(scaled)
    low = float(scaled - Fraction(high))
    return high, low, exponent, scaled == Fraction(high) + Fraction(low)


def activities_of(graph: Graph, activity: object, *, negative: bool = True, hint: str = "") -> list[Fraction]:
    """Return the activity of each vertex; the hint ends the message where their number is wrong."""
    n = graph.num_vertices
    _check.room(8 * n, f"an activity for each of {n} vertices")
    if isinstance(activity, Mapping):
        found = [Fraction(1)] * n
        for label, value in activity.items():
            if label not in graph:
                raise ValueError(f"`activity` must be of vertices by their labels, got one of {label!r}")
            found[graph.index(label)] = _check.rational(value, "activity")
    elif is_many(activity):
        if len(activity) != n:
            raise ValueError(f"`activity` must have one entry for each of the {n} vertices, got {len(activity)}{hint}")
        found = [_check.rational(value, "activity") for value in activity]
    else:
        found = [_check.rational(activity, "activity")] * n
    if not negative and any(value < 0 for value in found):
        raise ValueError(f"`activity` must be at least 0, got {_check.shown(min(found))}")
    return found
