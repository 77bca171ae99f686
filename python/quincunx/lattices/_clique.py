"""Clique insertion into graphs."""

from quincunx import _check, _core
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike, as_graph
from quincunx.lattices._box import refuse_too_large


def clique_insert(graph: GraphLike, k: int = 1, *, max_vertices: int | None = None) -> Graph:
    """Return the clique-inserted graph ``C(G) = L(S(G))``, the line graph of the subdivision, `k` times over.

    Each vertex becomes a clique with one vertex for each edge end there. Edge ``e = (u, v)`` gives the vertices ``2e``
    at ``u`` and ``2e+1`` at ``v``, which are joined, and so are any two at the same vertex of ``G``. Isolated vertices
    vanish and a loop joins its two ends twice. Repeating this ``k`` times gives ``sum(d**k)`` vertices and
    ``sum(d**(k+1))/2`` edges, summed over the degrees ``d`` of ``G``.

    Parameters
    ----------
    graph : Graph, Lattice, networkx graph, scipy.sparse matrix or (n, edges)
        A lattice is taken as the finite graph it is, cut at its boundary; see `Lattice.clique_insert` for the other
        order.
    k : int, default 1
        How many times, >= 0.
    max_vertices : int, optional
        Refuse a result with more vertices.

    Returns
    -------
    Graph
        Edge ``e`` of `graph` is edge ``e`` here, with its color or weight; the edges of the cliques come after all of
        these, those of the last insertion last. Without labels, unless ``k == 0``.

    Raises
    ------
    TypeError
        If `graph` is none of these, or a number is not whole.
    ValueError
        If `graph` is directed, `k` is negative, or the result has more than `max_vertices` vertices, or ``2**32``.
    TooLargeError
        If the machine has no memory for the result; before it is made.

    Examples
    --------
    >>> from quincunx.graphs import complete, path
    >>> from quincunx.lattices import clique_insert
    >>> clique_insert(complete(4))
    <Graph: 12 vertices, 18 edges>
    >>> clique_insert(path(4)).edges.tolist()
    [[0, 1], [2, 3], [4, 5], [1, 2], [3, 4]]
    """
    checked = as_graph(graph)
    k = _check.whole(k, "k", maximum=2**32 - 1)
    vertices, edges = _core.clique_insertion_size(checked.degrees(), k)
    refuse_too_large("clique insertion", vertices, edges, max_vertices)
    return Graph._trusted(*_core.clique_insert(checked.num_vertices, checked.edges, k)) if k else checked
