"""Parts that docstrings of this room share."""

from quincunx._docs import assembled

counting_doc = assembled(
    edges="""
    Of a graph with labels of its own, or networkx's, the edges themselves: pairs of labels, or ``(u, v, key)`` where
    edges are parallel, as networkx names them, so that ``graph.edge_subgraph`` takes them.
    """,
    vertices="""
    Of a graph with labels of its own, or networkx's, the labels.
    """,
    size="""
    size : int, optional
        How many to draw, independent of each other; one by default. What all have in common is worked out once.
    """,
    sizes="""
    With `size`, that many, in an array with one row for each where they are arrays of one length, else in a list.
    """,
    summed="""
    order : sequence of vertices, optional
        The order in which the vertices are summed out; by default a tree decomposition or a good order is searched for.
    threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`.
    """,
    job="""
    threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`.

    Returns
    -------
    int
        The exact number.
    """,
    weighted="""
    Raises
    ------
    ValueError
        If an activity is negative or not finite, or there is not one for each vertex.
    TooLargeError, TypeError
        As `count_independent_sets`.
    """,
    matched="""
    Raises
    ------
    ValueError
        If there is no perfect matching.
    TooLargeError, TypeError
        As `count_perfect_matchings`.
    """,
    errors="""
    Raises
    ------
    TooLargeError, ValueError, TypeError, CheckpointError
        As `count_independent_sets`.
    """,
)
