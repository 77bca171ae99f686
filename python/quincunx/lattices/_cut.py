"""Lattices that are no whole number of unit cells: octagon sections, Aztec diamonds, triangulated grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._rng import RandomSource, key
from quincunx.lattices._box import CLOSED, MOST, Boundary, closed_axes, refuse_too_large
from quincunx.lattices._lattice import Arrays, Lattice
from quincunx.lattices._unit_cell import UnitCell, named_cell

#: Numbers that are drawn at once: some milliseconds.
BLOCK = 2**20


class CutLattice(Lattice):
    """A lattice cut out of another along a line of its own; made by the functions of this file."""

    __slots__ = ("_diagonals", "_num_vertices")

    _num_vertices: int
    _diagonals: npt.NDArray[np.bool_] | None

    def __init__(self) -> None:
        raise TypeError("a lattice of this kind is made by the function of its name")

    @classmethod
    def _cut(
        cls,
        kind: str,
        extent: tuple[int, int],
        pbc: tuple[bool, bool],
        num_vertices: int,
        cell: UnitCell | None = None,
        diagonals: npt.NDArray[np.bool_] | None = None,
    ) -> CutLattice:
        lattice = cls.__new__(cls)
        lattice._kind, lattice._cell = kind, cell
        lattice._extent, lattice._pbc, lattice._twist = extent, pbc, 0
        lattice._num_vertices, lattice._diagonals = num_vertices, diagonals
        lattice._arrays = lattice._graph = None
        return lattice

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self._num_vertices

    @property
    def extent(self) -> tuple[int, int]:
        """The sizes the lattice was made with: octagons, the order, points or cells along each axis."""
        return self._extent

    @property
    def diagonals(self) -> npt.NDArray[np.bool_] | None:
        """The diagonals of a triangulated grid: read-only bool array of shape ``(m, n)``; else `None`."""
        return self._diagonals

    def _size_bound(self) -> tuple[int, int]:
        m, n = self._extent
        return (4 * (m + 1) * (n + 1), 8 * (m + 1) * (n + 1))

    def _write(self) -> Arrays:
        return _WRITERS[self.name](self)

    def _recipe(self) -> tuple[object, ...]:
        diagonals = None if self._diagonals is None else self._diagonals.tobytes()
        return self._kind, self._extent, self._pbc, diagonals

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self._kind, self._extent, self._pbc, self._num_vertices, self._cell, self._diagonals)
        return CutLattice._cut, parts

    def _box(self) -> str:
        m, n = self._extent
        unit = {"4-8-8": " octagons", "generalized-aztec": " points", "triangulated-grid": " cells"}
        return f"order {m}" if self._kind == "aztec-diamond" else f"{m} x {n}{unit[self.name]}"


_WRITERS: dict[str, Callable[[CutLattice], Arrays]] = {
    "4-8-8": lambda lattice: _core.four_eight_eight(*lattice._extent, lattice.boundary or "free"),
    "aztec-diamond": lambda lattice: _core.aztec_diamond(lattice._extent[0]),
    "generalized-aztec": lambda lattice: _core.generalized_aztec(*lattice._extent),
    "triangulated-grid": lambda lattice: _core.triangulated_grid(
        *lattice._extent, np.ascontiguousarray(lattice._diagonals).ravel()
    ),
}


def four_eight_eight(m: int, n: int, boundary: Boundary = "free") -> CutLattice:
    """Return the section of ``m x n`` octagons of the 4-8-8 (truncated square, bathroom tile) lattice.

    The vertices are the ends of the links between small squares ("diamonds"). There are ``m x n`` diamonds, one more
    along each open axis, and a diamond at the border has no corner where it has no link. The lattice has
    ``4mn + 2m + 2n`` vertices if free, ``4mn + 2n`` on a cylinder and ``4mn`` on a torus. No size makes a loop or
    parallel edges.

    Parameters
    ----------
    m, n : int
        Octagons along the first and the second axis, >= 1.
    boundary : {"free", "cylinder", "torus"}, default "free"
        Whether no axis is closed, the second (`n` octagons around, `m` rows of them), or both.

    Returns
    -------
    Lattice
        Of kind ``"4-8-8"``.

    Raises
    ------
    TypeError
        If `m` or `n` is not a whole number, or `boundary` is not a str.
    ValueError
        If `m` or `n` is less than 1, or `boundary` is another word.

    Notes
    -----
    Diamonds are numbered in C order, and the vertices of a diamond in the order of the sites of
    ``UnitCell.named("4-8-8")``: up along the first axis, up along the second, down along the first, down along the
    second.

    Examples
    --------
    >>> from quincunx.lattices import four_eight_eight
    >>> octagon = four_eight_eight(1, 1)
    >>> octagon.num_vertices, octagon.num_edges
    (8, 8)
    >>> four_eight_eight(20, 20, "torus")
    <Lattice '4-8-8': 20 x 20 octagons, torus, 1600 vertices>
    """
    if type(m) is not int or not 0 < m <= MOST:
        m = _check.whole(m, "m", minimum=1, maximum=MOST)
    if type(n) is not int or not 0 < n <= MOST:
        n = _check.whole(n, "n", minimum=1, maximum=MOST)
    pbc = CLOSED[boundary] if type(boundary) is str and boundary in CLOSED else closed_axes(boundary, None)
    vertices = 4 * m * n + (0 if pbc[0] else 2 * n) + (0 if pbc[1] else 2 * m)
    cell = named_cell("4-8-8") if pbc == (True, True) else None
    return CutLattice._cut("4-8-8", (m, n), pbc, vertices, cell)


def aztec_diamond(n: int) -> CutLattice:
    """Return the Aztec diamond of order `n`.

    Its ``2n(n+1)`` vertices are the unit squares of the plane that lie in ``|x| + |y| <= n + 1``, joined where they
    share a side.

    Parameters
    ----------
    n : int
        The order, >= 1.

    Returns
    -------
    Lattice
        Of kind ``"aztec-diamond"``.

    Raises
    ------
    TypeError
        If `n` is not a whole number.
    ValueError
        If `n` is less than 1.

    Examples
    --------
    >>> from quincunx.lattices import aztec_diamond
    >>> aztec_diamond(3)
    <Lattice 'aztec-diamond': order 3, free, 24 vertices>
    """
    n = _check.whole(n, "n", minimum=1, maximum=MOST)
    return CutLattice._cut("aztec-diamond", (n, n), CLOSED["free"], 2 * n * (n + 1))


def generalized_aztec(a: int, b: int) -> CutLattice:
    """Return the generalized Aztec diamond: the points of an ``a x b`` box of one color of the checkerboard.

    The vertices are the points ``(i, j)`` with ``1 <= i <= a``, ``1 <= j <= b`` and ``i + j`` even; two are joined if
    they are one step apart along both axes. These are the component with the corners of the tensor product of two
    paths; if both have ``2n + 1`` vertices, the other component is the Aztec diamond of order ``n``.

    Parameters
    ----------
    a, b : int
        Points along the first and the second axis, >= 1.

    Returns
    -------
    Lattice
        Of kind ``"generalized-aztec"``.

    Raises
    ------
    TypeError
        If `a` or `b` is not a whole number.
    ValueError
        If `a` or `b` is less than 1.

    References
    ----------
    .. [1] The On-Line Encyclopedia of Integer Sequences, A254151 and A331406.

    Examples
    --------
    >>> from quincunx.lattices import generalized_aztec
    >>> generalized_aztec(3, 3).num_vertices
    5
    """
    a = _check.whole(a, "a", minimum=1, maximum=MOST)
    b = _check.whole(b, "b", minimum=1, maximum=MOST)
    return CutLattice._cut("generalized-aztec", (a, b), CLOSED["free"], (a * b + 1) // 2)


@overload
def triangulated_grid(
    m: int, n: int, p: float | None = None, *, diagonals: npt.ArrayLike | None = None, rng: RandomSource = None
) -> CutLattice: ...
@overload
def triangulated_grid(m: int, n: int, p: float, *, size: int, rng: RandomSource = None) -> list[CutLattice]: ...
def triangulated_grid(
    m: int,
    n: int,
    p: float | None = None,
    *,
    diagonals: npt.ArrayLike | None = None,
    size: int | None = None,
    rng: RandomSource = None,
) -> CutLattice | list[CutLattice]:
    """Return the square grid of ``m x n`` cells with a diagonal in each cell.

    There are ``(m+1) * (n+1)`` vertices. The diagonal of cell ``(i, j)`` joins ``(i, j)`` to ``(i+1, j+1)`` or
    ``(i+1, j)`` to ``(i, j+1)``. Either `diagonals` says which, or the first is drawn with probability `p`,
    independently in each cell.

    Parameters
    ----------
    m, n : int
        Cells along the first and the second axis, >= 1.
    p : float, optional
        Probability of the first diagonal.
    diagonals : array_like of bool or 0/1, shape (m, n), optional
        One where the diagonal is the first. Copied.
    size : int, optional
        How many grids to draw with `p`, independent of each other; one by default.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the drawing starts. A Generator advances once.

    Returns
    -------
    Lattice
        Of kind ``"triangulated-grid"``; its attribute `diagonals` holds the choice. With `size`, a list of so many.

    Raises
    ------
    TypeError
        If an argument has the wrong type, not exactly one of `p` and `diagonals` is given, or `size` with `diagonals`.
    ValueError
        If `m` or `n` is less than 1, `size` is negative, `p` is not in [0, 1], or `diagonals` has another shape or
        other values.
    TooLargeError
        If the machine has no memory for the diagonals.

    Examples
    --------
    >>> from quincunx.lattices import triangular, triangulated_grid
    >>> triangulated_grid(1, 2, diagonals=[[1, 0]]).num_edges
    9
    >>> triangulated_grid(2, 3, p=0.0).graph == triangular(3, 4).graph
    True
    >>> [int(grid.diagonals.sum()) for grid in triangulated_grid(2, 3, 0.5, size=4, rng=2)]
    [4, 2, 5, 4]
    """
    m = _check.whole(m, "m", minimum=1, maximum=MOST)
    n = _check.whole(n, "n", minimum=1, maximum=MOST)
    if (p is None) == (diagonals is None):
        raise TypeError("exactly one of `p` and `diagonals` must be given")
    if size is not None and diagonals is not None:
        raise TypeError("`size` must be left out where `diagonals` are given: all grids would be the same")
    number = 1 if size is None else _check.whole(size, "size", maximum=MOST)
    refuse_too_large("the grid", (m + 1) * (n + 1), 0)
    if number > 1:
        _check.room(number * (9 * m * n + 500), f"`size` of {number} grids")
    chosen = _chosen(diagonals, (m, n))[None] if diagonals is not None else _drawn(p, (number, m, n), rng)
    chosen.setflags(write=False)
    grids = [
        CutLattice._cut("triangulated-grid", (m, n), CLOSED["free"], (m + 1) * (n + 1), diagonals=one) for one in chosen
    ]
    return grids[0] if size is None else grids


def _chosen(diagonals: npt.ArrayLike, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    array = _check.unmasked(diagonals, "diagonals")
    if array.dtype != np.bool_:
        array = _check.counts(array, "diagonals")
        if (array > 1).any():
            raise ValueError(f"`diagonals` must hold 0 and 1, got {array.max()}")
    if array.shape != shape:
        raise ValueError(f"`diagonals` must have shape {shape}, got {array.shape}")
    return np.array(array, dtype=np.bool_, order="C")


def _drawn(p: float | None, shape: tuple[int, int, int], rng: RandomSource) -> npt.NDArray[np.bool_]:
    probability = _check.probability(p, "p")
    stream = np.random.Generator(np.random.Philox(key=np.array(key(rng), dtype=np.uint64)))
    found = np.empty(shape, dtype=np.bool_)
    flat = found.reshape(-1)
    for start in range(0, flat.size, BLOCK):  # between blocks an interrupt is heard
        part = flat[start : start + BLOCK]
        part[:] = stream.random(len(part)) < probability
    return found
