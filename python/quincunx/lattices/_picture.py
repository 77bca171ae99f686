"""The picture of vertices and edges in the plane, some of which wrap round closed axes or pass over vertices."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._optional import axes, require
from quincunx._types import Floats, Ints
from quincunx.graphs import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BoolArray: TypeAlias = npt.NDArray[np.bool_]

#: Colors of edges beside gray, which no set, matching or tree is drawn in.
_HUES = ("C4", "C8", "C9", "C5", "C6")
#: How far an edge over a vertex is bent, in its length: by eye.
_BEND = 0.12


@dataclass(frozen=True, eq=False)
class Placed:
    """A graph in the plane: where vertices are, the vector along each edge, its windings, color, and what it is over.

    An edge that winds round an axis is drawn as two halves; one that passes over a vertex is bent.
    """

    graph: Graph
    positions: Floats
    displacements: Floats
    windings: Ints
    edge_colors: npt.NDArray[Any]
    over: BoolArray

    @property
    def edges(self) -> Ints:
        """The ends of the edges."""
        return self.graph.edges


def draw(
    lattice: Placed,
    ax: "Axes | None",
    *,
    independent_set: Iterable[int] | None = None,
    matching: Iterable[int] | None = None,
    tree: Iterable[int] | None = None,
    edges: Iterable[int] | None = None,
    colors: Mapping[Any, Any] | None = None,
    labels: bool = False,
    wrap_labels: bool = False,
) -> "Axes":
    """Draw what has its place in the plane: `quincunx.lattices.draw` says what else is drawn."""
    filled = _members(independent_set, "independent_set", lattice.graph.num_vertices)
    thick = _members(edges, "edges", lattice.graph.num_edges)
    matched = _members(matching, "matching", lattice.graph.num_edges)
    grown = _members(tree, "tree", lattice.graph.num_edges)
    _check_matching(lattice, matched)
    _check_tree(lattice, grown)
    inside = filled[lattice.edges].all(axis=1)
    if inside.any():
        joined = tuple(lattice.edges[np.argmax(inside)].tolist())
        raise ValueError(f"`independent_set` must not hold two joined vertices, got {joined}")
    lines = require("matplotlib.collections", "plot").LineCollection
    ax = axes(ax)
    starts, ends = (lattice.positions[lattice.edges[:, end]] for end in (0, 1))
    along, bent = lattice.displacements, lattice.over
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
    if _check.flag(wrap_labels, "wrap_labels"):
        at: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
        for tip, beyond, name in _wrap_names(lattice, starts, ends):
            ax.annotate(name, tip, xytext=beyond, fontsize=7, color="C0", **at)
    if _check.flag(labels, "labels"):
        names = lattice.graph.labels
        for vertex, place in enumerate(lattice.positions.tolist()):
            how: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "parse_math": False}
            ax.annotate(str(names[vertex]), place, xytext=(3, 3), **how)
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _by_color(
    lattice: Placed, plain: BoolArray, colors: Mapping[Any, Any] | None
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


def _way(starts: Floats, along: Floats, bent: BoolArray, chosen: BoolArray, begin: float, end: float) -> Floats:
    """Return the points of a part of each chosen edge: straight, or along a parabola beside it."""
    bends = bent[chosen].any()
    t = np.linspace(begin, end, 13 if bends else 2)[:, None]
    vectors = along[chosen][:, None]
    beside = vectors[..., ::-1] * (-_BEND, _BEND) * bent[chosen][:, None, None]
    return starts[chosen][:, None] + t * vectors + 4 * t * (1 - t) * beside


def _check_matching(lattice: Placed, matched: BoolArray) -> None:
    ends, times = np.unique(lattice.edges[matched], return_counts=True)
    if (times > 1).any():
        raise ValueError(f"`matching` must not cover a vertex twice, got edges that do at {ends[np.argmax(times)]}")


def _check_tree(lattice: Placed, grown: BoolArray) -> None:
    root = list(range(lattice.graph.num_vertices))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = v = root[root[v]]
        return v

    for edge in np.flatnonzero(grown).tolist():
        u, v = (find(end) for end in lattice.edges[edge].tolist())
        if u == v:
            raise ValueError(f"`tree` must have no cycle, got one through edge {edge}")
        root[u] = v


def _wrap_names(lattice: Placed, starts: Floats, ends: Floats) -> Iterator[tuple[Any, Any, str]]:
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
