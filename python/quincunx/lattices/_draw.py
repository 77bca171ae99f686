"""Drawings of lattices."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from quincunx import _check
from quincunx._optional import require
from quincunx.lattices._lattice import Lattice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    lattice: Lattice,
    ax: "Axes | None" = None,
    *,
    independent_set: Iterable[int] | None = None,
    matching: Iterable[int] | None = None,
    tree: Iterable[int] | None = None,
    edges: Iterable[int] | None = None,
    labels: bool = False,
    wrap_labels: bool = False,
) -> "Axes":
    """Draw a lattice with matplotlib.

    An edge that wraps round a closed axis is drawn as two dotted halves, one leaving each of its ends.

    Parameters
    ----------
    lattice : Lattice
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.
    independent_set : iterable of int, optional
        Vertices to fill, no two of them joined.
    matching : iterable of int, optional
        Numbers of edges to draw thick, no two of which share a vertex, such as a `random_perfect_matching`.
    tree : iterable of int, optional
        Numbers of edges to draw thick, no cycle among them, such as a `random_spanning_tree`.
    edges : iterable of int, optional
        Numbers of any other edges to draw thick.
    labels : bool, default False
        Whether to write the number of each vertex beside it.
    wrap_labels : bool, default False
        Whether to name both halves of each wrapped edge: ``a1, a2, ...`` round the first axis, ``b1, b2, ...`` round
        the second, ``c1, ...`` round both. Halves of one name belong together.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If `lattice` is not a lattice, or a vertex or edge is not a whole number.
    ValueError
        If a vertex or edge does not exist, two vertices of `independent_set` are joined, two edges of `matching` share
        a vertex, or `tree` has a cycle.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from quincunx.lattices import draw, four_eight_eight
    >>> ax = draw(four_eight_eight(2, 2), independent_set=[0, 6, 11])
    >>> ax.figure.savefig("octagons.png")  # doctest: +SKIP
    """
    if not isinstance(lattice, Lattice):
        raise TypeError(f"`lattice` must be a Lattice, got {type(lattice).__name__}")
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
    pyplot = require("matplotlib.pyplot", "plot")
    lines = require("matplotlib.collections", "plot").LineCollection
    if ax is None:
        _, ax = pyplot.subplots()
    starts, ends = (lattice.positions[lattice.edges[:, end]] for end in (0, 1))
    halves = lattice.displacements / 2
    wraps = lattice.windings.any(axis=1)
    for chosen, style in (
        (~(thick | matched | grown), {"colors": "0.55", "linewidths": 1.0}),
        (grown & ~(thick | matched), {"colors": "C2", "linewidths": 2.0}),
        (matched & ~thick, {"colors": "C1", "linewidths": 3.0}),
        (thick, {"colors": "C3", "linewidths": 2.5}),
    ):
        if not chosen.any():
            continue
        whole, cut = chosen & ~wraps, chosen & wraps
        ax.add_collection(lines(np.stack([starts[whole], ends[whole]], axis=1), zorder=1, **style))
        leaving = np.stack([starts[cut], starts[cut] + halves[cut]], axis=1)
        arriving = np.stack([ends[cut] - halves[cut], ends[cut]], axis=1)
        ax.add_collection(lines(np.concatenate([leaving, arriving]), linestyles="dotted", zorder=1, **style))
    x, y = lattice.positions.T
    ax.scatter(x, y, s=25, c=np.where(filled, "C0", "white"), edgecolors="0.2", linewidths=0.8, zorder=2)
    if wrap_labels:
        for tip, name in _wrap_names(lattice, starts + halves, ends - halves):
            ax.annotate(name, tip, ha="center", va="center", fontsize=7, color="C0")
    if labels:
        for vertex, place in enumerate(lattice.positions.tolist()):
            ax.annotate(str(vertex), place, xytext=(3, 3), textcoords="offset points", fontsize=7)
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _check_matching(lattice: Lattice, matched: Any) -> None:
    ends, times = np.unique(lattice.edges[matched], return_counts=True)
    if (times > 1).any():
        raise ValueError(f"`matching` must not cover a vertex twice, got edges that do at {ends[np.argmax(times)]}")


def _check_tree(lattice: Lattice, grown: Any) -> None:
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


def _wrap_names(lattice: Lattice, leaving: Any, arriving: Any) -> Any:
    """Yield the tips of the halves of wrapped edges, and their names."""
    number = {"a": 0, "b": 0, "c": 0}
    for edge in np.flatnonzero(lattice.windings.any(axis=1)).tolist():
        first, second = (bool(around) for around in lattice.windings[edge])
        letter = "c" if first and second else "a" if first else "b"
        number[letter] += 1
        for tip in (leaving[edge], arriving[edge]):
            yield tip, f"${letter}_{{{number[letter]}}}$"


def _members(chosen: Iterable[int] | None, name: str, size: int) -> Any:
    """Return the chosen numbers as an array of size bools."""
    marks = np.zeros(size, dtype=bool)
    numbers = [] if chosen is None else [_check.whole(number, name, maximum=size - 1) for number in chosen]
    marks[numbers] = True
    return marks
