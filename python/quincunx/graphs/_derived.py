"""Graphs made of another: the line graph and the subdivision."""

import numpy as np

from quincunx.errors import TooLargeError
from quincunx.graphs._graph import Graph, GraphLike, as_graph


def line_graph(graph: GraphLike) -> Graph:
    """Return the line graph: a vertex for each edge, joined once for each end they share.

    Two parallel edges share both ends and are joined twice. The two ends of a loop lie at the same vertex: they make a
    loop of the line graph, and join it twice to every other edge there.

    Parameters
    ----------
    graph : Graph, Lattice, networkx graph, scipy.sparse matrix or (n, edges)

    Returns
    -------
    Graph
        Vertex ``e`` is edge ``e``; ``sum(d*(d-1)/2)`` edges, summed over the degrees.

    Raises
    ------
    TypeError, ValueError
        If `graph` is none of these.
    TooLargeError
        If there would be ``2**32`` vertices or the edges do not fit the memory of an array.

    Examples
    --------
    >>> from quincunx.graphs import complete, line_graph
    >>> line_graph(complete(4))
    <Graph: 6 vertices, 12 edges>
    """
    checked = as_graph(graph)
    degrees = checked.degrees()
    size = int((degrees * (degrees - 1) // 2).sum())
    if size > 2**34 or checked.num_edges >= 2**32:
        raise TooLargeError(f"the line graph has {size} edges", 16 * size, 2**38)
    # Edge ends sorted by their vertex; at each vertex all pairs of ends.
    ends = checked.edges.ravel()
    order = np.argsort(ends, kind="stable") // 2
    first = np.cumsum(degrees) - degrees
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for degree in np.unique(degrees[degrees > 1]).tolist():
        starts = first[degrees == degree]
        low, high = np.triu_indices(degree, 1)
        stack = np.stack([order[starts[:, None] + low], order[starts[:, None] + high]], axis=2)
        pairs.append(stack.reshape(-1, 2))
    return Graph(checked.num_edges, np.concatenate(pairs))


def subdivide(graph: GraphLike) -> Graph:
    """Return the subdivision: a new vertex in the middle of each edge.

    Parameters
    ----------
    graph : Graph, Lattice, networkx graph, scipy.sparse matrix or (n, edges)

    Returns
    -------
    Graph
        The vertices of `graph`, then vertex ``n + e`` in the middle of edge ``e``. A loop becomes a double edge.

    Raises
    ------
    TypeError, ValueError
        If `graph` is none of these, or there would be ``2**32`` vertices.

    Examples
    --------
    >>> from quincunx.graphs import path, subdivide
    >>> subdivide(path(2)).edges.tolist()
    [[0, 2], [1, 2]]
    """
    checked = as_graph(graph)
    middles = np.repeat(checked.num_vertices + np.arange(checked.num_edges, dtype=np.int64), 2)
    return Graph(checked.num_vertices + checked.num_edges, np.stack([checked.edges.ravel(), middles], axis=1))
