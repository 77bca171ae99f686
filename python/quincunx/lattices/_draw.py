"""Drawings of lattices, and of any graph."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from quincunx import _check
from quincunx._optional import require
from quincunx._tables import is_network
from quincunx._types import Facts
from quincunx.graphs._graph import GraphLike, as_graph
from quincunx.graphs._names import Names
from quincunx.lattices import _picture
from quincunx.lattices._lattice import Lattice
from quincunx.lattices._picture import Placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    how: Facts = {"colors": colors, "labels": labels, "wrap_labels": wrap_labels}
    if isinstance(lattice, Lattice):
        if positions is not None:
            raise ValueError("`positions` must be None for a lattice, which has its own")
        return lattice.draw(ax, independent_set=independent_set, matching=matching, tree=tree, edges=edges, **how)
    places = _placed(lattice, positions)
    if independent_set is not None:
        independent_set = [places.graph._vertex(v, "independent_set") for v in independent_set]
    names = Names(lattice, places.graph)
    if names.own:
        matching, tree, edges = (
            None if chosen is None else names.edge_numbers(chosen, name)
            for chosen, name in ((matching, "matching"), (tree, "tree"), (edges, "edges"))
        )
    return _picture.draw(places, ax, independent_set=independent_set, matching=matching, tree=tree, edges=edges, **how)


def _placed(value: Any, positions: Any) -> Placed:
    """Return a graph with a place for each vertex."""
    graph = as_graph(value, "lattice")
    if positions is None:
        if is_network(value) and graph.num_vertices:
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
    u, v = graph.edges.T
    none = np.zeros(graph.num_edges, dtype=np.int64)
    return Placed(graph, where, where[v] - where[u], np.zeros_like(graph.edges), none, none.astype(np.bool_))
