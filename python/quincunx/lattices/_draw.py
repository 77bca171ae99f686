"""Drawings of lattices, and of any graph."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._optional import axes, require
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph
from quincunx.graphs._graph import as_graph
from quincunx.graphs._names import Names
from quincunx.graphs._others import is_networkx
from quincunx.lattices._bonds import Surroundings
from quincunx.lattices._lattice import Lattice
from quincunx.lattices._piece import LatticePiece

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quincunx.graphs._graph import GraphLike

BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]

#: Colors of edges beside gray, which no set, matching or tree is drawn in.
_HUES = ("C4", "C8", "C9", "C5", "C6")
#: How far an edge over a vertex is bent, in its length.
_BEND = 0.12
#: Up to so many vertices Kamada and Kawai's layout takes less than a second.
_KAMADA_KAWAI = 300


def draw(
    lattice: "Lattice | GraphLike",
    ax: "Axes | None" = None,
    *,
    independent_set: Iterable[Any] | None = None,
    matching: Iterable[Any] | None = None,
    tree: Iterable[Any] | None = None,
    edges: Iterable[Any] | None = None,
    colors: Mapping[Any, Any] | None = None,
    labels: bool = False,
    wrap_labels: bool = False,
    positions: Any = None,
) -> "Axes":
    """Draw a lattice, or any other graph, with matplotlib.

    An edge of a lattice that wraps round a closed axis is drawn as two dotted halves, one leaving each of its ends.
    Edges of bonds that pass over a site are bent. Edges of each color of a lattice have a color, and a label for
    ``ax.legend()``, of their own.

    Parameters
    ----------
    lattice : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What to draw. Vertices of a graph with labels are named by these; loops are left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.
    independent_set : iterable of int or label, optional
        Vertices to fill, no two of them joined.
    matching : iterable of int or edge, optional
        Edges to draw thick, no two of which share a vertex, such as a `random_perfect_matching`: numbers, or pairs of
        labels in a graph that has any or is networkx's.
    tree : iterable of int or edge, optional
        Edges to draw thick, no cycle among them, such as a `random_spanning_tree`.
    edges : iterable of int or edge, optional
        Any other edges to draw thick.
    colors : mapping, optional
        What matplotlib draws the `edge_colors` of a lattice in; by default the first is gray.
    labels : bool, default False
        Whether to write the number, or the label, of each vertex beside it.
    wrap_labels : bool, default False
        Whether to name both halves of each wrapped edge: ``a1, a2, ...`` round the first axis, ``b1, b2, ...`` round
        the second, ``c1, ...`` round both. Halves of one name belong together.
    positions : array_like of float, shape (num_vertices, 2), or mapping, optional
        Where the vertices of a graph are, in order or by label. By default the attribute ``pos`` of the nodes of a
        networkx graph that has it, else by networkx: Kamada and Kawai's layout up to 300 vertices, then springs.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed, or networkx where positions have to be found.
    TypeError
        If `lattice` is neither a lattice nor a graph, or a vertex or edge is not a whole number.
    ValueError
        If a vertex or edge does not exist, two vertices of `independent_set` are joined, two edges of `matching` share
        a vertex, `tree` has a cycle, `positions` are not a finite pair for each vertex of a graph, or `colors` do not
        name each color of a lattice's edges.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from quincunx.lattices import draw, four_eight_eight
    >>> ax = draw(four_eight_eight(2, 2), independent_set=[0, 6, 11])
    >>> ax.figure.savefig("octagons.png")  # doctest: +SKIP
    """
    if isinstance(lattice, Lattice):
        if positions is not None:
            raise ValueError("`positions` must be None for a lattice, which has its own")
        drawn: Lattice | _Placed = lattice
    else:
        drawn = _placed(lattice, positions)
        if independent_set is not None:
            independent_set = [drawn.graph._vertex(v, "independent_set") for v in independent_set]
        names = Names(lattice, drawn.graph)
        if names.own:
            matching, tree, edges = (
                None if chosen is None else names.edge_numbers(chosen, name)
                for chosen, name in ((matching, "matching"), (tree, "tree"), (edges, "edges"))
            )
    return _drawn(drawn, ax, independent_set, matching, tree, edges, colors, labels, wrap_labels)


class _Placed:
    """A graph in the plane, as drawings take it: none of its edges wraps."""

    def __init__(self, graph: Graph, positions: npt.NDArray[np.float64]) -> None:
        self.graph, self.positions = graph, positions
        self.num_vertices, self.num_edges, self.edges = graph.num_vertices, graph.num_edges, graph.edges
        self.displacements = positions[graph.edges[:, 1]] - positions[graph.edges[:, 0]]
        self.windings = np.zeros_like(graph.edges)
        self.edge_colors = np.zeros(self.num_edges, dtype=np.int64)


def _placed(value: Any, positions: Any) -> _Placed:
    """Return a graph with a place for each vertex."""
    graph = as_graph(value, "lattice")
    if positions is None:
        if is_networkx(value) and graph.num_vertices:
            places = dict(value.nodes(data="pos"))
            positions = None if any(place is None for place in places.values()) else places
    if positions is None:
        networkx = require("networkx", "graph")
        # A plain graph of the numbers: neither labels nor parallel edges change the picture.
        plain = networkx.Graph()
        plain.add_nodes_from(range(graph.num_vertices))
        plain.add_edges_from(graph.edges.tolist())
        found = (
            networkx.kamada_kawai_layout(plain)
            if graph.num_vertices <= _KAMADA_KAWAI
            else networkx.spring_layout(plain, seed=0)
        )
        positions = [found[vertex] for vertex in range(graph.num_vertices)]
    elif isinstance(positions, Mapping):
        missing = [label for label in graph.labels if label not in positions]
        if missing:
            raise ValueError(f"`positions` must have a place for each vertex, got none for {missing[0]!r}")
        positions = [positions[label] for label in graph.labels]
    where = _check.reals(np.reshape(positions, (0, 2)) if not len(positions) else positions, "positions")
    if where.shape != (graph.num_vertices, 2):
        raise ValueError(f"`positions` must have shape ({graph.num_vertices}, 2), got {where.shape}")
    return _Placed(graph, where)


def _drawn(
    lattice: "Lattice | _Placed",
    ax: "Axes | None",
    independent_set: Iterable[int] | None,
    matching: Iterable[int] | None,
    tree: Iterable[int] | None,
    edges: Iterable[int] | None,
    colors: Mapping[Any, Any] | None,
    labels: bool,
    wrap_labels: bool,
) -> "Axes":
    """Draw what has positions, edges and windings."""
    filled = _members(independent_set, "independent_set", lattice.num_vertices)
    thick = _members(edges, "edges", lattice.num_edges)
    matched = _members(matching, "matching", lattice.num_edges)
    grown = _members(tree, "tree", lattice.num_edges)
    _check_matching(lattice, matched)
    _check_tree(lattice, grown)
    inside = filled[lattice.edges].all(axis=1)
    if inside.any():
        joined = tuple(lattice.edges[np.argmax(inside)].tolist())
        raise ValueError(f"`independent_set` must not hold two joined vertices, got {joined}")
    lines = require("matplotlib.collections", "plot").LineCollection
    ax = axes(ax)
    starts, ends = (lattice.positions[lattice.edges[:, end]] for end in (0, 1))
    along = lattice.displacements
    bent = _over_sites(lattice)
    wraps = lattice.windings.any(axis=1)
    plain = ~(thick | matched | grown)
    for chosen, style in (
        *_by_color(lattice, plain, colors),
        (grown & ~(thick | matched), {"colors": "C2", "linewidths": 2.0}),
        (matched & ~thick, {"colors": "C1", "linewidths": 3.0}),
        (thick, {"colors": "C3", "linewidths": 2.5}),
    ):
        if not chosen.any():
            continue
        whole, cut = chosen & ~wraps, chosen & wraps
        ax.add_collection(lines(_way(starts, along, bent, whole, 0.0, 1.0), zorder=1, **style))
        style.pop("label", None)
        leaving = _way(starts, along, bent, cut, 0.0, 0.5)
        arriving = _way(ends - along, along, bent, cut, 0.5, 1.0)
        ax.add_collection(lines(np.concatenate([leaving, arriving]), linestyles="dotted", zorder=1, **style))
    x, y = lattice.positions.T
    ax.scatter(x, y, s=25, c=np.where(filled, "C0", "white"), edgecolors="0.2", linewidths=0.8, zorder=2)
    if wrap_labels:
        at: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
        for tip, beyond, name in _wrap_names(lattice, starts, ends):
            ax.annotate(name, tip, xytext=beyond, fontsize=7, color="C0", **at)
    if labels:
        names = lattice.graph.labels
        for vertex, place in enumerate(lattice.positions.tolist()):
            ax.annotate(str(names[vertex]), place, xytext=(3, 3), textcoords="offset points", fontsize=7)
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _by_color(
    lattice: "Lattice | _Placed", plain: BoolArray, colors: Mapping[Any, Any] | None
) -> list[tuple[BoolArray, dict[str, Any]]]:
    """Return the plain edges of each color, and how they are drawn."""
    of_edges = lattice.edge_colors
    there = dict.fromkeys(of_edges.tolist())  # in the order of their bonds
    if colors is None:
        hues = itertools.chain(["0.55"], itertools.cycle(_HUES))
        colors = dict(zip(there, hues, strict=False))
    elif not isinstance(colors, Mapping):
        raise TypeError(f"`colors` must be a mapping from the colors of edges, got {type(colors).__name__}")
    elif missing := there.keys() - colors.keys():
        raise ValueError(f"`colors` must name each color of an edge, got none for {min(missing, key=str)!r}")
    named = len(there) > 1
    return [
        (
            plain & (of_edges == color),
            {"colors": colors[color], "linewidths": 1.0} | ({"label": str(color)} if named else {}),
        )
        for color in there
    ]


def _over_sites(lattice: "Lattice | _Placed") -> BoolArray:
    """Return which edges would be drawn over a vertex."""
    whole, kept = (lattice._whole, lattice._inside) if isinstance(lattice, LatticePiece) else (lattice, slice(None))
    if not isinstance(whole, Lattice) or whole.kind is not None or (cell := whole.unit_cell) is None:
        return np.zeros(lattice.num_edges, dtype=np.bool_)
    try:
        passing = Surroundings(cell).passing(cell.bonds)
    except TooLargeError:  # a lattice of its own, rather than a cell
        passing = [False] * cell.num_bonds
    found: BoolArray = whole._by_bond(passing)[kept].astype(np.bool_)
    return found


def _way(
    starts: FloatArray, along: FloatArray, bent: BoolArray, chosen: BoolArray, begin: float, end: float
) -> FloatArray:
    """Return the points of a part of each chosen edge: straight, or along a parabola beside it."""
    bends = bent[chosen].any()
    t = np.linspace(begin, end, 13 if bends else 2)[:, None]
    vectors = along[chosen][:, None]
    beside = vectors[..., ::-1] * (-_BEND, _BEND) * bent[chosen][:, None, None]
    return starts[chosen][:, None] + t * vectors + 4 * t * (1 - t) * beside


def _check_matching(lattice: "Lattice | _Placed", matched: BoolArray) -> None:
    ends, times = np.unique(lattice.edges[matched], return_counts=True)
    if (times > 1).any():
        raise ValueError(f"`matching` must not cover a vertex twice, got edges that do at {ends[np.argmax(times)]}")


def _check_tree(lattice: "Lattice | _Placed", grown: BoolArray) -> None:
    root = list(range(lattice.num_vertices))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = v = root[root[v]]
        return v

    for edge in np.flatnonzero(grown).tolist():
        u, v = (find(end) for end in lattice.edges[edge].tolist())
        if u == v:
            raise ValueError(f"`tree` must have no cycle, got one through edge {edge}")
        root[u] = v


def _wrap_names(lattice: "Lattice | _Placed", starts: FloatArray, ends: FloatArray) -> Iterator[tuple[Any, Any, str]]:
    """Yield the tips of the halves of wrapped edges, a few points beyond them, and their names."""
    number = {"a": 0, "b": 0, "c": 0}
    for edge in np.flatnonzero(lattice.windings.any(axis=1)).tolist():
        first, second = (bool(around) for around in lattice.windings[edge])
        letter = "c" if first and second else "a" if first else "b"
        number[letter] += 1
        along = lattice.displacements[edge]
        beyond = 6 * along / np.hypot(*along)
        name = f"${letter}_{{{number[letter]}}}$"
        yield starts[edge] + along / 2, beyond, name
        yield ends[edge] - along / 2, -beyond, name


def _members(chosen: Iterable[int] | None, name: str, size: int) -> BoolArray:
    """Return the chosen numbers as an array of size bools."""
    marks = np.zeros(size, dtype=bool)
    numbers = [] if chosen is None else [_check.whole(number, name, maximum=size - 1) for number in chosen]
    marks[numbers] = True
    return marks
