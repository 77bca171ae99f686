"""Graphs made of another: the line graph and the subdivision."""

import numpy as np

from quincunx import _aside, _check
from quincunx._types import Ints
from quincunx.errors import TooLargeError
from quincunx.graphs._graph import Graph, GraphLike, as_graph
from quincunx.graphs._parts import graph_doc

# No graph with an edge survives more; only one without edges is given back sooner.
_MOST_TIMES = 1000
# Edges made at once: some milliseconds.
_BLOCK = 1 << 19


@graph_doc
def line_graph(graph: GraphLike, k: int = 1) -> Graph:
    """Return the line graph, `k` times over: a vertex for each edge, joined once for each end they share.

    Two parallel edges share both ends and are joined twice. The two ends of a loop lie at the same vertex: they make a
    loop of the line graph, and join it twice to every other edge there.

    {derived}

    Returns
    -------
    Graph
        Vertex ``e`` is edge ``e``, and what colors or weights edges had is now one of vertices; ``sum(d*(d-1)/2)``
        edges, summed over the degrees. Without labels, unless ``k == 0``.

    {repeated}

    Examples
    --------
    >>> from quincunx.graphs import complete, line_graph
    >>> line_graph(complete(4))
    <Graph: 6 vertices, 12 edges>
    """
    checked = as_graph(graph)
    for _ in range(_check.whole(k, "k", maximum=_MOST_TIMES)):
        checked = _line_graph(checked)
    return checked


def _line_graph(graph: Graph) -> Graph:
    degrees = graph.degrees()
    size = int((degrees * (degrees - 1) // 2).sum())
    _refuse_large("line graph", graph.num_edges, size)
    # Edge ends sorted by their vertex; at each vertex all pairs of ends, in blocks between which an interrupt is heard.
    ends = graph.edges.ravel()
    order = _aside.aside(np.argsort, ends, kind="stable") // 2
    first = np.cumsum(degrees) - degrees
    pairs, place = np.empty((size, 2), dtype=np.int64), 0
    for degree in _aside.aside(np.unique, degrees[degrees > 1]).tolist():
        starts, all_pairs = first[degrees == degree], degree * (degree - 1) // 2
        several, lows = max(1, _BLOCK // all_pairs), degree - 1 if all_pairs <= _BLOCK else max(1, _BLOCK // degree)
        for vertex in range(0, len(starts), several):
            here = starts[vertex : vertex + several, None]
            for begin in range(0, degree - 1, lows):
                low, high = _pairs(degree, begin, min(begin + lows, degree - 1))
                block = pairs[place : place + len(here) * len(low)].reshape(len(here), -1, 2)
                block[:, :, 0], block[:, :, 1] = order[here + low], order[here + high]
                place += len(here) * len(low)
    return Graph._trusted(graph.num_edges, pairs)


def _pairs(degree: int, begin: int, end: int) -> tuple[Ints, Ints]:
    """Return the pairs ``low < high < degree`` with ``begin <= low < end``, in their order."""
    low = np.arange(begin, end)
    high = np.concatenate([np.arange(first + 1, degree) for first in low.tolist()])
    return np.repeat(low, degree - 1 - low), high


def _refuse_large(what: str, vertices: int, edges: int) -> None:
    """Refuse a result that the machine cannot hold, before it is made: pairs in two orders and as a graph's own."""
    needed, available = 48 * edges + 16 * vertices, _check.available_memory()
    if vertices >= 2**32 or (needed > 1 << 26 and needed > available):
        raise TooLargeError(
            f"the {what} of {vertices} vertices and {edges} edges needs {needed} bytes, {available} are available",
            needed,
            available,
        )


@graph_doc
def subdivide(graph: GraphLike, k: int = 1) -> Graph:
    """Return the subdivision, `k` times over: a new vertex in the middle of each edge.

    {derived}
        An edge becomes a path of ``2**k`` edges.

    Returns
    -------
    Graph
        The vertices of `graph`, then vertex ``n + e`` in the middle of edge ``e``, whose halves are the edges ``2e``
        and ``2e+1``. A loop becomes a double edge.
        Without labels, unless ``k == 0``.

    {repeated}

    Examples
    --------
    >>> from quincunx.graphs import path, subdivide
    >>> subdivide(path(2)).edges.tolist()
    [[0, 2], [1, 2]]
    """
    checked = as_graph(graph)
    times = _check.whole(k, "k", maximum=_MOST_TIMES)
    vertices, edges = checked.num_vertices, checked.num_edges
    _refuse_large("subdivision", vertices + edges * (2**times - 1), edges * 2**times)
    for _ in range(times):
        middles = np.repeat(checked.num_vertices + np.arange(checked.num_edges, dtype=np.int64), 2)
        ends = np.stack([checked.edges.ravel(), middles], axis=1)
        checked = Graph(checked.num_vertices + checked.num_edges, ends)
    return checked
