"""Parts that docstrings of this room, and of lattices, share."""

from quincunx._docs import assembled

graph_doc = assembled(
    order="""
    Parameters
    ----------
    n : int
        Number of vertices, >= 0.

    Returns
    -------
    Graph
        With the vertices 0 to n - 1.

    Raises
    ------
    TypeError
        If `n` is not a whole number.
    ValueError
        If `n` is negative or at least ``2**32``.
    """,
    extents="""
    Returns
    -------
    Graph
        With the points as vertices, the last coordinate changing fastest.

    Raises
    ------
    TypeError
        If an extent is not a whole number, or there is none.
    ValueError
    """,
    words="""
    Parameters
    ----------
    length : int
        Length of the words, >= 0.
    alphabet_size : int
        Number of letters, >= 1.
    """,
    derived="""
    Parameters
    ----------
    graph : Graph, Lattice, networkx graph, scipy.sparse matrix or (n, edges)
        A lattice is taken as the finite graph it is, cut at its boundary; the method of this name of
        `quincunx.lattices.Lattice` is for the other order.
    k : int, default 1
        How many times, >= 0.
    """,
    repeated="""
    Raises
    ------
    TypeError
        If `graph` is none of these, or `k` is not a whole number.
    ValueError
        If `graph` is directed or `k` is negative.
    TooLargeError
        If there would be ``2**32`` vertices or the edges do not fit the memory; before they are made.
    """,
    chosen="""
    Parameters
    ----------
    vertices : iterable of int or label, or array_like of bool, shape (num_vertices,)
        Vertices, by their labels in a graph with labels of its own, in any order; or a truth value for each.
    """,
    unchosen="""
    Raises
    ------
    TypeError
        If `vertices` is no collection, or a vertex of a graph without labels is not a whole number.
    ValueError
        If one is no vertex, or there is not one truth value for each.
    """,
    point="""
    Parameters
    ----------
    v : int or label
        The point; its label where the graph has labels of its own.
    """,
    no_point="""
    Raises
    ------
    TypeError
        If `v` is not a whole number.
    ValueError
        If it is not a point.
    """,
    graph="""
    Parameters
    ----------
    graph : Graph, lattice, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph.
    """,
    thread_error="""
    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `threads` is not positive.
    """,
    networkx="""
    Returns
    -------
    networkx.Graph or networkx.MultiGraph
        A multigraph only if there are parallel edges.

    Raises
    ------
    ImportError
        If networkx is not installed.
    """,
    memory="""
    Raises
    ------
    quincunx.errors.TooLargeError
        If it does not fit into memory.
    """,
)
