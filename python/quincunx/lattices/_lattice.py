"""Finite lattices: a unit cell repeated over a box with a boundary, and pieces of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._html import table_html
from quincunx.graphs import Graph
from quincunx.graphs._parts import graph_doc
from quincunx.lattices import _picture
from quincunx.lattices._box import CLOSED, MOST, Boundary, checked_twist, closed_axes, over_the_box, refuse_too_large
from quincunx.lattices._picture import Placed
from quincunx.lattices._unit_cell import Color, UnitCell

if TYPE_CHECKING:
    import networkx
    import scipy.sparse
    from matplotlib.axes import Axes

#: The word for which axes are closed.
_WORD = {closed: word for word, closed in CLOSED.items()}

Arrays: TypeAlias = tuple[
    npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]
]


@graph_doc
class Lattice:
    """A unit cell repeated over a box, each axis open or closed.

    Vertex ``(i*L2 + j)*s + site`` is a site of cell ``(i, j)``, where ``(L1, L2)`` is the extent and ``s`` the number
    of sites. Edges come cell by cell in that order, in each cell in the order of the bonds. A bond that leaves the box
    is dropped on an open axis and wrapped on a closed one.

    A lattice cannot be changed and costs next to nothing until its edges or positions are asked for; they are made
    once. Wherever a function takes a graph it takes a lattice.

    Parameters
    ----------
    unit_cell : UnitCell
        What is repeated.
    extent : (int, int)
        How often along the first and the second axis, >= 1.
    boundary : {"free", "cylinder", "torus"}, default "free"
        Whether no axis is closed, the second one (its extent is the circumference), or both.
    pbc : (bool, bool), optional
        Periodic boundary conditions axis by axis, in place of `boundary`: ``(False, True)`` is the cylinder, and
        ``(True, False)`` the cylinder that closes the first axis.
    twist : int, default 0
        On a torus, how far the first coordinate moves once round the second axis: ``(i, j + L2) = (i + twist, j)``.
    multigraph : bool, default False
        Whether loops and parallel edges, which small closed extents make, are allowed. Independent sets treat a looped
        vertex as never occupied and parallel edges as one; trees and matchings count parallel edges one by one.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an extent is less than 1, `boundary` is another word, `boundary` and `pbc` are both given, a `twist` is
        given without a torus, or a loop or parallel edges arise without `multigraph`.

    See Also
    --------
    quincunx.lattices.named : the lattices that have a name.

    Examples
    --------
    >>> from quincunx.lattices import Lattice, UnitCell
    >>> ladder = UnitCell([(1, 0), (0, 2)], [(0, 0), (0, 1)], [(0, 1, (0, 0)), (0, 0, (1, 0)), (1, 1, (1, 0))])
    >>> lattice = Lattice(ladder, (5, 1))
    >>> lattice
    <Lattice: 5 x 1 cells, free, 10 vertices>
    >>> lattice.num_edges
    13
    """

    __slots__ = ("_arrays", "_cell", "_extent", "_graph", "_kind", "_pbc", "_twist")

    _kind: str | None
    _cell: UnitCell | None
    _extent: tuple[int, int]
    _pbc: tuple[bool, bool]
    _twist: int
    _arrays: Arrays | None
    _graph: Graph | None

    def __init__(
        self,
        unit_cell: UnitCell,
        extent: tuple[int, int],
        boundary: Boundary = "free",
        *,
        pbc: tuple[bool, bool] | None = None,
        twist: int = 0,
        multigraph: bool = False,
    ) -> None:
        if not isinstance(unit_cell, UnitCell):
            raise TypeError(f"`unit_cell` must be a UnitCell, got {type(unit_cell).__name__}")
        try:
            rows, cols = extent
        except (TypeError, ValueError):
            raise TypeError(f"`extent` must be a pair of whole numbers, got {extent!r}") from None
        self._extent = (
            _check.whole(rows, "extent", minimum=1, maximum=MOST),
            _check.whole(cols, "extent", minimum=1, maximum=MOST),
        )
        self._pbc = closed_axes(boundary, pbc)
        self._twist = checked_twist(twist, self._extent, self._pbc)
        if not _check.flag(multigraph, "multigraph"):
            _core.check_simple(unit_cell._parts(), self._extent, self._pbc, self._twist)
        self._cell, self._kind = unit_cell, unit_cell.kind
        self._arrays = self._graph = None

    @property
    def kind(self) -> str | None:
        """The name of the lattice, as `quincunx.lattices.named` knows it; `None` for a cell of one's own."""
        return self._kind

    @property
    def name(self) -> str:
        """What to call the lattice in a title."""
        return self._kind or "lattice"

    @property
    def extent(self) -> tuple[int, int]:
        """Unit cells along each axis."""
        return self._extent

    @property
    def pbc(self) -> tuple[bool, bool]:
        """Which axes are closed."""
        return self._pbc

    @property
    def twist(self) -> int:
        """How far the first coordinate moves once round the second axis: ``(i, j + L2) = (i + twist, j)``."""
        return self._twist

    @property
    def boundary(self) -> str | None:
        """``"free"``, ``"cylinder"`` or ``"torus"``; `None` for the cylinder that closes the first axis."""
        return _WORD.get(self._pbc)

    @property
    def unit_cell(self) -> UnitCell | None:
        """The unit cell; `None` for a lattice that is no whole number of cells."""
        return self._cell

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        assert self._cell is not None
        return self._extent[0] * self._extent[1] * self._cell.num_sites

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """The ends of the edges: read-only int64 array of shape ``(num_edges, 2)``."""
        return self._written()[1]

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Where the vertices are in the plane: read-only float64 array of shape ``(num_vertices, 2)``."""
        return self._written()[0]

    @property
    def windings(self) -> npt.NDArray[np.int64]:
        """How often each edge goes round each axis: read-only int64 array of shape ``(num_edges, 2)``.

        Zero for an edge that stays inside the box. An edge from cell ``(i, j)`` along a bond with cell offset
        ``(dx, dy)`` has the windings ``floor((i + dx) / L1)`` and ``floor((j + dy) / L2)``.
        """
        return self._written()[2]

    @property
    def displacements(self) -> npt.NDArray[np.float64]:
        """The vector along each edge: read-only float64 array of shape ``(num_edges, 2)``.

        This is ``positions[v] - positions[u]``, plus ``L1*a1`` and ``L2*a2 - twist*a1`` as often as the windings say.
        """
        return self._written()[3]

    @property
    def edge_colors(self) -> npt.NDArray[Any]:
        """The color of each edge, that of its bond in the unit cell: array of ints or strs, shape ``(num_edges,)``.

        Zeros where bonds have no colors. An array of objects where some are ints and others strs.
        """
        return np.zeros(self.num_edges, dtype=np.int64) if self._cell is None else self._by_bond(self._cell.colors)

    def _by_bond(self, values: Sequence[object]) -> npt.NDArray[Any]:
        """Return the value of its bond for each edge."""
        assert self._cell is not None
        kinds = {type(value) for value in values}
        column = np.array(values, dtype=None if len(kinds) == 1 else object)
        steps = np.array([step for *_, step in self._cell.bonds], dtype=np.int64).reshape(-1, 2)
        stays = []
        for axis, extent in enumerate(self._extent):
            place = np.arange(extent)[:, None] + steps[:, axis]
            stays.append(self._pbc[axis] | ((place >= 0) & (place < extent)))
        there = stays[0][:, None] & stays[1][None]
        return np.broadcast_to(column, there.shape)[there]

    @property
    def graph(self) -> Graph:
        """The lattice as a plain graph."""
        if self._graph is None:
            self._graph = Graph._trusted(self.num_vertices, self.edges)
        return self._graph

    def _as_graph(self) -> Graph:
        return self.graph

    def to_networkx(self) -> "networkx.Graph[Any]":
        """Convert to networkx, with attributes: ``pos`` of each vertex, and ``color`` of each edge if any is not 0.

        {networkx}

        Examples
        --------
        >>> from quincunx.lattices import square
        >>> square(2, 2).to_networkx().nodes[3]
        {'pos': (1.0, 1.0)}
        """
        colors = self.edge_colors.tolist()
        colored = any(color != 0 for color in colors)
        converted = self.graph._to_networkx([{"color": color} for color in colors] if colored else None)
        for vertex, position in enumerate(self.positions.tolist()):
            converted.nodes[vertex]["pos"] = tuple(position)
        return converted

    def degrees(self) -> npt.NDArray[np.int64]:
        """Return the number of edge ends at each vertex, as `Graph.degrees` does.

        Returns
        -------
        ndarray of int64, shape (num_vertices,)

        Examples
        --------
        >>> from quincunx.lattices import square
        >>> square(2, 3).degrees()
        array([2, 3, 2, 2, 3, 2])
        """
        return self.graph.degrees()

    def neighbors(self, v: int) -> npt.NDArray[np.int64]:
        """Return the distinct neighbors of a vertex in rising order, as `Graph.neighbors` does.

        Parameters
        ----------
        v : int
            A vertex in ``0..num_vertices-1``.

        Returns
        -------
        ndarray of int64
            Read-only.

        Raises
        ------
        TypeError
            If `v` is not a whole number.
        ValueError
            If `v` is not a vertex.

        Examples
        --------
        >>> from quincunx.lattices import square
        >>> square(3, 3).neighbors(4)
        array([1, 3, 5, 7])
        """
        found: npt.NDArray[np.int64] = self.graph.neighbors(v)
        return found

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """Return the adjacency matrix, as `Graph.to_scipy` does.

        Returns
        -------
        scipy.sparse.csr_array of int64, shape (num_vertices, num_vertices)

        Examples
        --------
        >>> from quincunx.lattices import square
        >>> square(1, 3).to_scipy().toarray().tolist()
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        """
        return self.graph.to_scipy()

    def subgraph(self, vertices: Iterable[int] | npt.NDArray[np.bool_]) -> "LatticePiece":
        """Return some of the vertices, where they are, and all edges between them.

        {chosen}

        Returns
        -------
        LatticePiece
            A lattice without a name, whose vertices are numbered anew in their order; its `origin` has the numbers that
            they had. Positions, windings and displacements are those of this lattice, which dimers are counted by.

        {unchosen}

        Examples
        --------
        >>> from quincunx.lattices import triangular
        >>> lattice = triangular(5, 5)
        >>> hexagon = lattice.subgraph(abs(lattice.positions - lattice.positions[12]).sum(axis=1) < 1.5)
        >>> hexagon.num_vertices, hexagon.num_edges, hexagon.origin.tolist()
        (7, 12, [7, 8, 11, 12, 13, 16, 17])
        """
        return LatticePiece._of(self, self.graph._marked(vertices))

    def remove_vertices(self, vertices: Iterable[int] | npt.NDArray[np.bool_]) -> "LatticePiece":
        """Return the lattice without some of the vertices and the edges at them.

        {chosen}

        Returns
        -------
        LatticePiece
            As `subgraph` of the other vertices.

        {unchosen}

        Examples
        --------
        A chessboard without two opposite corners, which are of one color, cannot be covered by dominoes; without two
        neighboring corners it can:

        >>> from quincunx.counting import count_perfect_matchings
        >>> from quincunx.lattices import square
        >>> count_perfect_matchings(square(8, 8).remove_vertices([0, 63]))
        0
        >>> count_perfect_matchings(square(8, 8).remove_vertices([0, 7]))
        2436304
        """
        return LatticePiece._of(self, ~self.graph._marked(vertices))

    def draw(self, ax: "Axes | None" = None, **how: Any) -> "Axes":
        """Draw the lattice with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if left out.
        **how
            As for `quincunx.lattices.draw`: `independent_set`, `matching`, `tree`, `edges`, `colors`, `labels`,
            `wrap_labels`.

        {axes}
        TypeError, ValueError
            As `quincunx.lattices.draw`.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from quincunx.lattices import kagome
        >>> ax = kagome(2, 2).draw(labels=True)
        """
        places = self.positions, self.displacements, self.windings
        return _picture.draw(Placed(self.graph, *places, self.edge_colors, self._over_sites()), ax, **how)

    def _over_sites(self) -> npt.NDArray[np.bool_]:
        """Return which edges would be drawn over a vertex."""
        if self._kind is not None or self._cell is None:
            return np.zeros(self.num_edges, dtype=np.bool_)
        return self._by_bond(self._cell._passing()).astype(np.bool_)

    def __len__(self) -> int:
        return self.num_vertices

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            "cells": " x ".join(map(str, self.extent)),
            "boundary": self.boundary or f"pbc {self.pbc}",
            "vertices": self.num_vertices,
        }
        if self.twist:
            rows["twist"] = self.twist
        return table_html(f"Lattice {self.name}" if self.kind else "Lattice", rows)

    def add_bonds(
        self,
        bonds: Iterable[tuple[int, int, Sequence[int]]] | None = None,
        *,
        shell: int | Iterable[int] | None = None,
        vectors: "npt.ArrayLike | None" = None,
        color: Color | None = None,
        multigraph: bool = False,
    ) -> "Lattice":
        """Return the lattice with more bonds in the unit cell, over the same box.

        Parameters
        ----------
        bonds, shell, vectors, color
            As for `UnitCell.add_bonds`: listed bonds, those of the k-th smallest distance, or those along some vectors.
        multigraph : bool, default False
            Whether the loops and parallel edges of small closed axes are allowed.

        Returns
        -------
        Lattice
            Its `edge_colors` tell the new edges from the others.

        Raises
        ------
        TypeError, TooLargeError
            As `UnitCell.add_bonds`.
        ValueError
            As `UnitCell.add_bonds`, if the lattice is no whole number of unit cells, or if loops or parallel edges
            arise without `multigraph`.

        Examples
        --------
        >>> from quincunx.lattices import square
        >>> lattice = square(4, 4, "torus", multigraph=True).add_bonds(shell=2)
        >>> int((lattice.edge_colors == 1).sum()), lattice.num_edges
        (32, 64)
        """
        if self._cell is None:
            raise ValueError(f"`add_bonds` needs whole unit cells, got {self!r}")
        cell = self._cell.add_bonds(bonds, shell=shell, vectors=vectors, color=color)
        return Lattice(cell, self._extent, pbc=self._pbc, twist=self._twist, multigraph=multigraph)

    @over_the_box
    def clique_insert(
        self,
        k: int = 1,
        *,
        max_vertices: int | None = None,
        multigraph: bool = False,
        color: Color | None = None,
    ) -> "Lattice":
        """Return the lattice with cliques inserted `k` times in the unit cell, over the same box.

        On an open axis the links between cells are cut *after* the insertion. The function
        `quincunx.lattices.clique_insert` of a lattice inserts into the finite graph, cut *before*, and gives fewer
        vertices: for 3 x 3 cells of the honeycomb 42 instead of 54. On a torus both give the same graph.

        {times}
            Whether parallel edges are allowed, which only a lattice with a loop gives.
        color : int or str, optional
            The color of the edges of the cliques; those of this lattice keep theirs. By default as for
            `UnitCell.clique_insert`.

        {lattice}
            vertices, or it has parallel edges without `multigraph`.
        TooLargeError
            If the machine has no memory for the result; before it is made.

        Examples
        --------
        >>> from quincunx.lattices import clique_insert, honeycomb
        >>> lattice = honeycomb(3, 3)
        >>> lattice.clique_insert().num_vertices, clique_insert(lattice).num_vertices
        (54, 42)
        >>> lattice.clique_insert(2)
        <Lattice '3-6-24': 3 x 3 cells, free, 162 vertices>
        >>> from quincunx.counting import count_perfect_matchings
        >>> count_perfect_matchings(lattice.clique_insert(color=1), weight={0: 2, 1: 1})
        80384
        """
        k = _check.whole(k, "k", maximum=MOST)
        if self._cell is None:
            raise ValueError(
                f"`clique_insert` needs whole unit cells, got {self!r}; use lattices.clique_insert(lattice)"
            )
        sites, bonds = _core.clique_insertion_size(np.array(self._cell.degrees(), dtype=np.int64), k)
        cells = self._extent[0] * self._extent[1]
        refuse_too_large("clique insertion", cells * sites, cells * bonds, max_vertices)
        inserted = self._cell.clique_insert(k, color=color)
        return Lattice(inserted, self._extent, pbc=self._pbc, twist=self._twist, multigraph=multigraph)

    @over_the_box
    def line_graph(self, k: int = 1, *, max_vertices: int | None = None, multigraph: bool = False) -> "Lattice":
        """Return the lattice of the line graph of the unit cell, `k` times over, on the same box.

        On an open axis the bonds between cells are cut *after* the line graph is made, so that a bond that leaves the
        box has a vertex. The function `quincunx.graphs.line_graph` of a lattice takes the finite graph, cut *before*:
        for 3 x 3 cells of the honeycomb 21 vertices instead of 27. On a torus both give the same graph, and vertex
        ``e`` is edge ``e`` of this lattice, with its color in ``edge_colors[e]``. The new edges have color 0.

        {times}
            Whether the loops and parallel edges of small closed axes are allowed.

        {lattice}
            vertices, or it has loops or parallel edges without `multigraph`.
        TooLargeError
            If the cell or the lattice is too large.

        Examples
        --------
        >>> from quincunx.graphs import line_graph
        >>> from quincunx.lattices import honeycomb
        >>> lattice = honeycomb(3, 3)
        >>> lattice.line_graph().num_vertices, line_graph(lattice).num_vertices
        (27, 21)
        """
        return self._of_cell("line_graph", "graphs.line_graph", k, max_vertices, multigraph)

    @over_the_box
    def subdivide(self, k: int = 1, *, max_vertices: int | None = None, multigraph: bool = False) -> "Lattice":
        """Return the lattice with a new site in the middle of each bond of the unit cell, `k` times, on the same box.

        On an open axis the bonds between cells are cut *after* the subdivision, so that a bond that leaves the box
        keeps the half inside, with its middle. The function `quincunx.graphs.subdivide` of a lattice takes the finite
        graph, cut *before*. On a torus both give the same graph.

        {times}
            Whether the parallel edges that a loop gives are allowed.

        {lattice}
            vertices, or it has parallel edges without `multigraph`.
        TooLargeError
            If the cell or the lattice is too large.

        Examples
        --------
        >>> from quincunx.graphs import subdivide
        >>> from quincunx.lattices import square
        >>> lattice = square(2, 2)
        >>> lattice.subdivide().num_vertices, subdivide(lattice).num_vertices
        (12, 8)
        """
        return self._of_cell("subdivide", "graphs.subdivide", k, max_vertices, multigraph)

    def _of_cell(self, method: str, function: str, k: int, max_vertices: int | None, multigraph: bool) -> "Lattice":
        """Return the lattice of a cell made of this one's, over the same box."""
        if self._cell is None:
            raise ValueError(f"`{method}` needs whole unit cells, got {self!r}; use {function}(lattice)")
        cell: UnitCell = getattr(self._cell, method)(k)
        cells = self._extent[0] * self._extent[1]
        refuse_too_large(f"the lattice of the {method}", cells * cell.num_sites, cells * cell.num_bonds, max_vertices)
        return Lattice(cell, self._extent, pbc=self._pbc, twist=self._twist, multigraph=multigraph)

    def _written(self) -> Arrays:
        if self._arrays is None:
            vertices, edges = self._size_bound()
            refuse_too_large("the lattice", vertices, edges)
            arrays = self._write()
            for array in arrays:
                array.setflags(write=False)
            self._arrays = arrays
        return self._arrays

    def _size_bound(self) -> tuple[int, int]:
        """Vertices and edges that are made before any is dropped."""
        assert self._cell is not None
        return self.num_vertices, self._extent[0] * self._extent[1] * self._cell.num_bonds

    def _write(self) -> Arrays:
        assert self._cell is not None
        return _core.lattice_section(self._cell._parts(), self._extent, self._pbc, self._twist)

    def _recipe(self) -> tuple[object, ...]:
        return self._cell, self._extent, self._pbc, self._twist

    def __eq__(self, other: object) -> bool:
        return self._recipe() == other._recipe() if isinstance(other, Lattice) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._recipe())

    def __reduce__(self) -> tuple[object, ...]:
        return Lattice._make, self._recipe()

    @classmethod
    def _make(cls, cell: UnitCell, extent: tuple[int, int], pbc: tuple[bool, bool], twist: int = 0) -> "Lattice":
        """Make a lattice from parts that are known to be right."""
        lattice = cls.__new__(cls)
        lattice._cell, lattice._kind = cell, cell._kind
        lattice._extent, lattice._pbc, lattice._twist = extent, pbc, twist
        lattice._arrays = lattice._graph = None
        return lattice

    def __repr__(self) -> str:
        name = f" {self._kind!r}" if self._kind else ""
        boundary = self.boundary or f"pbc={self._pbc}"
        boundary += f" with twist {self._twist}" if self._twist else ""
        return f"<Lattice{name}: {self._box()}, {boundary}, {self.num_vertices} vertices>"

    def _box(self) -> str:
        return f"{self._extent[0]} x {self._extent[1]} cells"


class LatticePiece(Lattice):
    """Some of the vertices of a lattice, numbered anew in their order; made by `Lattice.subgraph`."""

    __slots__ = ("_origin", "_whole")

    _origin: npt.NDArray[np.int64]
    _whole: Lattice

    def __init__(self) -> None:
        raise TypeError("a piece of a lattice is made by `subgraph` or `remove_vertices`")

    @classmethod
    def _of(cls, whole: Lattice, kept: npt.NDArray[np.bool_]) -> "LatticePiece":
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

    def _over_sites(self) -> npt.NDArray[np.bool_]:
        return self._whole._over_sites()[self._inside]

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
