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
    edges: Iterable[int] | None = None,
    labels: bool = False,
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
    edges : iterable of int, optional
        Numbers of edges to draw thick, such as those of a matching or a tree.
    labels : bool, default False
        Whether to write the number of each vertex beside it.

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
        If a vertex or edge does not exist, or two vertices of `independent_set` are joined.

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
        (~thick, {"colors": "0.55", "linewidths": 1.0}),
        (thick, {"colors": "C3", "linewidths": 2.5}),
    ):
        whole, cut = chosen & ~wraps, chosen & wraps
        ax.add_collection(lines(np.stack([starts[whole], ends[whole]], axis=1), zorder=1, **style))
        leaving = np.stack([starts[cut], starts[cut] + halves[cut]], axis=1)
        arriving = np.stack([ends[cut] - halves[cut], ends[cut]], axis=1)
        ax.add_collection(lines(np.concatenate([leaving, arriving]), linestyles="dotted", zorder=1, **style))
    x, y = lattice.positions.T
    ax.scatter(x, y, s=25, c=np.where(filled, "C0", "white"), edgecolors="0.2", linewidths=0.8, zorder=2)
    if labels:
        for vertex, place in enumerate(lattice.positions.tolist()):
            ax.annotate(str(vertex), place, xytext=(3, 3), textcoords="offset points", fontsize=7)
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _members(chosen: Iterable[int] | None, name: str, size: int) -> Any:
    """Return the chosen numbers as an array of size bools."""
    marks = np.zeros(size, dtype=bool)
    numbers = [] if chosen is None else [_check.whole(number, name, maximum=size - 1) for number in chosen]
    marks[numbers] = True
    return marks
