"""The box that a cell is repeated over: which axes are closed, how far it is twisted, and boxes that are too large."""

from typing import Literal, TypeAlias

import numpy as np

from quincunx import _check
from quincunx._docs import assembled

#: Which axes each boundary closes.
CLOSED = {"free": (False, False), "cylinder": (False, True), "torus": (True, True)}

#: The words for which axes are closed.
Boundary: TypeAlias = Literal["free", "cylinder", "torus"]

#: Extents beyond this are refused at once; no graph has more vertices.
MOST = 2**32 - 1

#: What the methods have in common that repeat another cell over the same box.
over_the_box = assembled(
    times="""
    Parameters
    ----------
    k : int, default 1
        How many times, >= 0.
    max_vertices : int, optional
        Refuse a result with more vertices.
    multigraph : bool, default False
    """,
    lattice="""
    Returns
    -------
    Lattice

    Raises
    ------
    TypeError
        If `k` or `max_vertices` is not a whole number.
    ValueError
        If `k` is negative, the lattice is no whole number of unit cells, the result has more than `max_vertices`
    """,
)


def checked_twist(twist: int, extent: tuple[int, int], pbc: tuple[bool, bool]) -> int:
    """Return a twist as a number below the first extent."""
    found = _check.whole(twist, "twist", minimum=None)
    if found and pbc != (True, True):
        raise ValueError(f"`twist` must be 0 unless both axes are closed, got {_check.shown(found)}")
    return found % extent[0]


def closed_axes(boundary: str, pbc: tuple[bool, bool] | None) -> tuple[bool, bool]:
    """Return which axes are closed, from one of two ways to say it."""
    if pbc is None:
        return CLOSED[_check.one_of(boundary, "boundary", CLOSED)]
    if _check.one_of(boundary, "boundary", CLOSED) != "free":
        raise ValueError(f"`boundary` and `pbc` must not both be given, got {boundary!r} and {pbc!r}")
    try:
        first, second = pbc
    except (TypeError, ValueError):
        raise TypeError(f"`pbc` must be a pair of bools, got {pbc!r}") from None
    if not all(isinstance(axis, (bool, np.bool_)) for axis in (first, second)):
        raise TypeError(f"`pbc` must be a pair of bools, got {pbc!r}")
    return bool(first), bool(second)


def refuse_too_large(what: str, vertices: int, edges: int, max_vertices: int | None = None) -> None:
    """Refuse arrays that the machine cannot hold, or more vertices than the user wants, before any is made."""
    if max_vertices is not None:
        limit = _check.whole(max_vertices, "max_vertices")
        if vertices > limit:
            raise ValueError(f"`max_vertices` must be at least the {vertices} vertices of the result, got {limit}")
    # Per vertex a position; per edge its ends, winding and displacement, the first two once more in the core's width.
    _check.room(16 * vertices + 64 * edges, what)
