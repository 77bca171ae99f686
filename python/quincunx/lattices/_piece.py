"""Pieces of lattices: some of the vertices with the edges between them, where they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx.lattices._lattice import Arrays, Lattice


class LatticePiece(Lattice):
    """Some of the vertices of a lattice, numbered anew in their order; made by `Lattice.subgraph`."""

    __slots__ = ("_origin", "_whole")

    _origin: npt.NDArray[np.int64]
    _whole: Lattice

    def __init__(self) -> None:
        raise TypeError("a piece of a lattice is made by `subgraph` or `remove_vertices`")

    @classmethod
    def _of(cls, whole: Lattice, kept: npt.NDArray[np.bool_]) -> LatticePiece:
        origin = np.flatnonzero(kept)
        if isinstance(whole, LatticePiece):  # a piece of a piece is one of the whole
            origin, whole = whole._origin[origin], whole._whole
        piece = cls.__new__(cls)
        piece._whole, piece._origin = whole, origin
        piece._origin.setflags(write=False)
        piece._kind = piece._cell = piece._arrays = piece._graph = None
        piece._extent, piece._pbc, piece._twist = whole._extent, whole._pbc, whole._twist
        return piece

    @property
    def name(self) -> str:
        """What to call the piece in a title."""
        return f"piece of {self._whole.name}"

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return len(self._origin)

    @property
    def origin(self) -> npt.NDArray[np.int64]:
        """The number of each vertex in the lattice that the piece was cut from: read-only int64 array."""
        return self._origin

    @property
    def edge_colors(self) -> npt.NDArray[Any]:
        """The color of each edge, as in the lattice that the piece was cut from."""
        return self._whole.edge_colors[self._inside]

    @property
    def _inside(self) -> npt.NDArray[np.bool_]:
        """Which edges of the whole lattice are in the piece."""
        inside: npt.NDArray[np.bool_] = np.all(self._kept[self._whole.edges], axis=1)
        return inside

    @property
    def _kept(self) -> npt.NDArray[np.bool_]:
        """Which vertices of the whole lattice are in the piece."""
        kept = np.zeros(self._whole.num_vertices, dtype=np.bool_)
        kept[self._origin] = True
        return kept

    def _size_bound(self) -> tuple[int, int]:
        return self._whole._size_bound()

    def _write(self) -> Arrays:
        positions, edges, windings, displacements = self._whole._written()
        kept = self._kept
        inside = self._inside
        return positions[kept], (np.cumsum(kept) - 1)[edges[inside]], windings[inside], displacements[inside]

    def _recipe(self) -> tuple[object, ...]:
        return self._whole, self._origin.tobytes()

    def __reduce__(self) -> tuple[object, ...]:
        return LatticePiece._of, (self._whole, self._kept)

    def __repr__(self) -> str:
        return f"<LatticePiece: {self.num_vertices} vertices of {self._whole!r}>"
