"""Distances, spheres, and the graph that a query induces on its answers."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import ByLabel, Ints
from quincunx.graphs._edges import refuse_unordered
from quincunx.graphs._graph import Graph, GraphLike, as_graph
from quincunx.graphs._parts import graph_doc


@overload
def distances(
    graph: GraphLike,
    source: None = None,
    target: None = None,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> npt.NDArray[np.int32]: ...


@overload
def distances(
    graph: GraphLike,
    source: Hashable,
    target: Hashable = None,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> int | dict[Hashable, int] | npt.NDArray[np.int32]: ...


def distances(
    graph: GraphLike,
    source: Hashable = None,
    target: Hashable = None,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> int | dict[Hashable, int] | npt.NDArray[np.int32]:
    """Return the distances between all vertices, from one of them, or between two.

    Parameters
    ----------
    graph : Graph, lattice, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph. Every edge has length one, whatever its weight.
    source, target : int or label, optional
        Vertices; their labels in a graph with labels of its own. With a `source` only its distances are found, with
        both the one between them. A vertex labelled `None` cannot be named.
    threads : int, optional
        Number of threads; what this process may use if left out. The result does not depend on it.
    memory_limit : int, optional
        Bytes that may be used; what is available if left out.

    Returns
    -------
    ndarray of int32, shape (n, n), or as below
        The number of edges on a shortest path; -1 where there is none. With a `source` an array of shape (n,), or where
        vertices have labels a dict by label; with both ends an int.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `threads` is not positive, `source` or `target` is no vertex, or a `target` is given alone.
    quincunx.errors.TooLargeError
        If four bytes for each pair are more than `memory_limit`.

    Notes
    -----
    One breadth-first search from each vertex: ``O(n (n + m))``.

    Examples
    --------
    >>> from quincunx.graphs import cycle, distances
    >>> distances(cycle(4)).tolist()
    [[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]]
    >>> from quincunx.graphs import Graph
    >>> friends = Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"])
    >>> distances(friends, "Ann")
    {'Ann': 0, 'Bea': 1, 'Cid': 2}
    >>> distances(friends, "Ann", "Cid")
    2
    """
    graph, threads, limit = as_graph(graph), _check.threads(threads), _check.memory_limit(memory_limit)
    if source is None and target is not None:
        raise ValueError("`target` must be None without a `source`")
    if source is not None:
        start = graph._vertex(source, "source")
        end = None if target is None else graph._vertex(target, "target")
        found = _core.distances_from(graph.num_vertices, graph.edges, start)
        if end is not None:
            return int(found[end])
        return dict(zip(graph.labels, found.tolist(), strict=True)) if graph._labels is not None else found
    return _core.distances(graph.num_vertices, graph.edges, threads, limit)


@graph_doc
def spheres(graph: GraphLike, v: Hashable) -> list[Ints] | list[tuple[Hashable, ...]]:
    """Return the spheres around a vertex.

    The sphere of radius `d` holds the vertices at distance `d`.

    {graph}
    v : int or label
        The vertex in the middle; its label in a graph with labels of its own.

    Returns
    -------
    list of ndarray of int64, or of tuples of labels
        Entry `d` holds the sphere of radius `d`, in the order of the vertices, up to the largest distance from `v`.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If `v` is not a vertex.

    Examples
    --------
    >>> from quincunx.graphs import path, spheres
    >>> [sphere.tolist() for sphere in spheres(path(5), 1)]
    [[1], [0, 2], [3], [4]]
    """
    graph = as_graph(graph)
    distance = _core.distances_from(graph.num_vertices, graph.edges, graph._vertex(v, "v"))
    by_distance = np.argsort(distance, kind="stable")
    sizes = np.bincount(distance + 1)
    found = np.split(by_distance[sizes[0] :], np.cumsum(sizes[1:-1]))
    if graph._labels is None:
        return found
    return [tuple(graph._labels[u] for u in sphere.tolist()) for sphere in found]


@graph_doc
def sphere_sizes(graph: GraphLike, *, threads: int | None = None, memory_limit: int | None = None) -> Ints:
    """Return the sizes of the spheres around all vertices.

    {graph}
    threads : int, optional
        Number of threads; what this process may use if left out.
    memory_limit : int, optional
        Bytes that may be used; what is available if left out.

    Returns
    -------
    ndarray of int64, shape (n, 1 + largest distance)
        Entry ``[v, d]`` is the number of vertices at distance `d` from `v`.

    {thread_error}
    quincunx.errors.TooLargeError
        If the table would be larger than `memory_limit`, which is seen after a few rows.

    Examples
    --------
    >>> from quincunx.graphs import path, sphere_sizes
    >>> sphere_sizes(path(3))
    array([[1, 1, 1],
           [1, 2, 0],
           [1, 1, 1]])
    """
    graph = as_graph(graph)
    return _core.sphere_sizes(
        graph.num_vertices, graph.edges, _check.threads(threads), _check.memory_limit(memory_limit)
    )


@graph_doc
def is_distance_degree_regular(graph: GraphLike, *, threads: int | None = None) -> bool:
    """Tell whether the spheres around all vertices have the same sizes.

    Vertex-transitive and distance-regular graphs are such, but also some without any symmetry.

    {graph}
    threads : int, optional
        Number of threads; what this process may use if left out.

    Returns
    -------
    bool
        Whether they do at every distance.

    {thread_error}

    Examples
    --------
    >>> from quincunx.graphs import grid, is_distance_degree_regular, torus
    >>> is_distance_degree_regular(torus(4, 5)), is_distance_degree_regular(grid(4, 5))
    (True, False)
    """
    graph = as_graph(graph)
    return _core.is_distance_degree_regular(graph.num_vertices, graph.edges, _check.threads(threads))


def induced_graph(graph: GraphLike, query: Callable[..., Hashable] | Iterable[Hashable] | ByLabel[Hashable]) -> Graph:
    """Return the graph that a query induces on its answers.

    Two different answers are joined if some two joined vertices have them. A mechanism that only sees the answer is
    private on `graph` exactly if it is on this graph.

    Parameters
    ----------
    graph : Graph, lattice, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph, for example of databases that differ in one record.
    query : callable, sequence of hashable, shape (n,), or mapping
        The answer for each vertex, or a function of a vertex's label, or a mapping from labels, that gives it.

    Returns
    -------
    Graph
        Its labels are the different answers, sorted if they can be, else in the order in which they first occur.

    Raises
    ------
    TypeError
        If `graph` is no graph, `query` is a set, or an answer is not hashable.
    ValueError
        If there is not one answer for each vertex, or an answer is not equal to itself (NaN).

    Examples
    --------
    Counting the ones among four bits gives a path of the five counts:

    >>> from quincunx.graphs import hamming, induced_graph, path
    >>> induced_graph(hamming(4, 2), lambda bits: bits.bit_count()) == path(5)
    True
    """
    graph = as_graph(graph)
    n = graph.num_vertices
    _check.fits(query, "query")
    if callable(query):
        answers = [query(label) for label in graph.labels]
    elif isinstance(query, np.ndarray):
        _check.refuse_masked(query, "query")
        answers = query.tolist()
    elif isinstance(query, Mapping):
        if (missing := next((label for label in graph.labels if label not in query), query)) is not query:
            raise ValueError(f"`query` must have an answer for each vertex, got none for {missing!r}")
        answers = [query[label] for label in graph.labels]
    else:
        refuse_unordered(query, "query")
        answers = list(itertools.islice(query, n + 1))  # what says to have 2**60 is not believed
    if len(answers) != n:
        raise ValueError(f"`query` must have shape ({n},), got ({len(answers)},){' or more' * (len(answers) > n)}")
    numbers: dict[Hashable, int] = {}
    for index, answer in enumerate(answers):
        if not isinstance(answer, Hashable):
            raise TypeError(f"`query` must give hashable answers, got {type(answer).__name__} for vertex {index}")
        if answer != answer:
            raise ValueError(f"`query` must give answers that equal themselves, got {answer!r} for vertex {index}")
        numbers.setdefault(answer, len(numbers))
    try:
        distinct = sorted(numbers)  # type: ignore[type-var]
    except TypeError:
        distinct = list(numbers)
    place = {answer: index for index, answer in enumerate(distinct)}
    images = np.array([place[answer] for answer in answers], dtype=np.int64)
    ends = np.sort(images[graph.edges], axis=1)
    edges = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    return Graph(len(distinct), edges, distinct)
