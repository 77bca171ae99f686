"""Exact random objects: spanning trees and perfect matchings, hard-core distributed independent sets."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx._rng import RandomSource, generator, key
from quincunx.counting._activities import Activity
from quincunx.counting._drawn import as_drawn
from quincunx.counting._frontier import frontier_of
from quincunx.counting._matchings import count_of_drawn
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import as_named
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._names import Names
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, lay, weights_of

# Steps of the walks to a tree, weeks of them: where more are expected weights are refused.
_MOST_STEPS = 1e12
# Counts of what is left after some choices that are kept for later objects: more take memory, fewer the time of counts
# that are made again; not tuned.
_MOST_COUNTS = 2**14


def _uniform(rng: np.random.Generator) -> Callable[[int], int]:
    """Return a function that draws whole numbers below n, however large, without bias."""

    def below(n: int) -> int:
        size = max(1, -(-n.bit_length() // 8))
        spare = 8 * size - n.bit_length()
        while True:
            found = int.from_bytes(rng.bytes(size), "little") >> spare
            if found < n:
                return found

    return below


def _checked_size(size: int | None, width: int) -> int:
    """Return how many objects of so many numbers each are drawn."""
    if size is None:
        return 1
    number = _check.whole(size, "size")
    _check.room(16 * number * (width + 8), f"`size` of {number} objects")
    return number


def _edges(names: "Names", size: int | None, width: int, drawn: Iterable[Iterable[int]]) -> Any:
    """Return one object, or several: the rows of an array where they are numbers of edges, else a list."""
    found = [names.edges(one) for one in drawn]
    if size is None:
        return found[0]
    return found if names.own else np.array(found, dtype=np.int64).reshape(len(found), width)


@counting_doc
def random_spanning_tree(
    graph: "GraphLike",
    *,
    size: int | None = None,
    weight: "Weight | Unweighted" = NOT_SAID,
    rng: RandomSource = None,
) -> Any:
    """Draw a uniform spanning tree, or one with a probability proportional to the product of its weights.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Connected, with at least one vertex. Parallel edges are told apart, loops are never drawn.
    {size}
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`; an edge of weight zero is never drawn.
    rng : None, int, SeedSequence or Generator, optional
        Where randomness comes from.

    Returns
    -------
    ndarray of int64, shape (num_vertices - 1,) or (size, num_vertices - 1), or tuple of edges
        The numbers of the tree's edges, rising.
        {edges}
        {sizes}

    Raises
    ------
    ValueError
        If the graph has no vertex or is not connected by edges of positive weight; if weights are not said or negative,
        or so different that a walk might take more than ``10**12`` steps; if `size` is negative.
    TypeError
        If `graph`, `size`, `weight` or `rng` is not what it should be.
    TooLargeError
        If there is no memory for so many trees.

    Notes
    -----
    Wilson's algorithm: loop-erased random walks, each until it meets the tree. The distribution is exact, for weights
    as whole numbers over one denominator; the expected number of steps is the mean hitting time, about ``n log n`` on
    the square lattice.

    References
    ----------
    .. [1] D. Wilson (1996), Generating random spanning trees more quickly than the cover time, STOC 28.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import random_spanning_tree
    >>> len(random_spanning_tree(lattices.square(5, 5), rng=0))
    24
    >>> random_spanning_tree(lattices.square(5, 5), size=1000, rng=0).shape
    (1000, 24)
    >>> import networkx
    >>> random_spanning_tree(networkx.path_graph(["a", "b", "c"]))
    (('a', 'b'), ('b', 'c'))
    """
    found, names = as_named(graph)
    n = found.num_vertices
    if n == 0:
        raise ValueError("`graph` must have a vertex, got a graph without vertices")
    number = _checked_size(size, n - 1)
    weights = weights_of(graph, weight)
    ends: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for edge, (u, v) in enumerate(found.edges.tolist()):
        if u != v and (weights is None or weights[edge]):
            ends[u].append((v, edge))
            ends[v].append((u, edge))
    _refuse_disconnected(ends)
    totals, sums = [len(around) for around in ends], None
    if weights is not None:
        unit = lcm(*(w.denominator for w in weights))
        _refuse_endless(found, weights)
        sums = [list(accumulate(int(weights[edge] * unit) for _, edge in around)) for around in ends]
        totals = [sums_at[-1] if sums_at else 0 for sums_at in sums]
    source = generator(rng)
    below = _uniform(source)
    # Whole numbers below each degree or sum of weights: a float times it would be biased by 2**-53.
    draws: dict[int, list[int]] = {total: [] for total in totals}

    def tree() -> list[int]:
        in_tree = [False] * n
        in_tree[0] = True
        exits: list[tuple[int, int]] = [(0, 0)] * n
        found = []
        for start in range(n):
            v = start
            while not in_tree[v]:
                total = totals[v]
                pool = draws[total]
                if not pool:
                    pool += source.integers(0, total, 4096).tolist() if total < 2**63 else [below(total)]
                ticket = pool.pop()
                exits[v] = ends[v][ticket if sums is None else bisect_right(sums[v], ticket)]
                v = exits[v][0]
            v = start
            while not in_tree[v]:
                in_tree[v] = True
                found.append(exits[v][1])
                v = exits[v][0]
        return sorted(found)

    return _edges(names, size, n - 1, (tree() for _ in range(number)))


def _refuse_endless(graph: Graph, weights: list[Fraction]) -> None:
    """Refuse weights of which one is so small beside others that a walk would hardly ever take an edge it has to.

    The expected steps are the sum over the vertices of the weights there times the resistance to the root, which is at
    most the length of a path.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    proper = np.flatnonzero(graph.edges[:, 0] != graph.edges[:, 1]).tolist()
    n, largest = graph.num_vertices, max((weights[edge] for edge in proper), default=1)
    shares, ends = np.array([float(weights[edge] / largest) for edge in proper]), np.sort(graph.edges[proper])
    lengths = coo_array((shares, ends.T), shape=(n, n)).tocsr()
    lengths.eliminate_zeros()
    lengths.data = 1 / lengths.data
    steps = np.bincount(ends.ravel(), np.repeat(shares, 2), n) @ dijkstra(lengths, directed=False, indices=0)
    if not steps < _MOST_STEPS:
        raise ValueError(
            f"`weight` must leave random walks that end: {_MOST_STEPS:.0e} steps at most, got a bound of {steps:.0e}"
        )


def _refuse_disconnected(ends: list[list[tuple[int, int]]]) -> None:
    seen, waiting = {0}, [0]
    while waiting:
        for u, _ in ends[waiting.pop()]:
            if u not in seen:
                seen.add(u)
                waiting.append(u)
    if len(seen) < len(ends):
        raise ValueError(f"`graph` must be connected, got {len(seen)} of {len(ends)} vertices in one component")


@counting_doc
def random_perfect_matching(
    graph: "GraphLike",
    *,
    size: int | None = None,
    weight: "Weight | Unweighted" = NOT_SAID,
    rng: RandomSource = None,
    memory_limit: int | None = None,
) -> Any:
    """Draw a uniform perfect matching, or one with a probability proportional to the product of its weights.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Planar, drawn on a torus, or of small width, as for `count_perfect_matchings`. Parallel edges are told apart.
    {size}
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`.
    rng : None, int, SeedSequence or Generator, optional
        Where randomness comes from.
    memory_limit : int, optional
        As in `count_independent_sets`, where partners are drawn vertex by vertex. Coupling from the past, which takes
        some bytes for each face and draw, does not ask for it.

    Returns
    -------
    ndarray of int64, shape (num_vertices / 2,) or (size, num_vertices / 2), or tuple of edges
        The numbers of the matching's edges, rising.
        {edges}
        {sizes}

    {matched}

    Notes
    -----
    Exactly uniform, always. Bipartite graphs drawn on a plane with short faces, such as free square, honeycomb and
    4-8-8 lattices and Aztec diamonds, take coupling from the past by rotations of faces [1]_: of the order of ``L**4``
    steps for a piece of size L, 0.03 s for a square of 32 x 32 and 0.5 s for 64 x 64. All others are drawn vertex by
    vertex, each partner with the exact probability that the counts of the rest give: n/2 rounds of one exact count for
    each edge at a vertex, of the order of ``n**2.75`` steps, 0.5 s for 500 vertices on a torus and 3 s for 1000; so are
    all with weights. Where
    faces differ in length, as in 4-8-8, the coupling may need exponentially long; a pilot with random numbers of its
    own, which depends on the graph alone, then chooses the other way before the draw begins.

    References
    ----------
    .. [1] J. Propp, D. Wilson (1996), Exact sampling with coupled Markov chains and applications to statistical
       mechanics, Random Structures and Algorithms 9.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import random_perfect_matching
    >>> len(random_perfect_matching(lattices.square(4, 4), rng=0))
    8
    >>> random_perfect_matching(lattices.square(4, 4), size=100, rng=0).shape
    (100, 8)
    """
    found, names = as_named(graph)
    width = found.num_vertices // 2
    number, limit = _checked_size(size, width), _check.memory_limit(memory_limit)
    origin = np.arange(found.num_edges)
    if (weights := weights_of(graph, weight)) is not None:
        graph, _, origin = lay(found, weights)
        found = graph
    if min(_core.maximum_matching(found.num_vertices, found.edges), default=0) < 0:
        raise ValueError("`graph` must have a perfect matching, got none")
    drawn = as_drawn(graph)
    source = generator(rng)
    keys = [key(source) for _ in range(number)]
    if drawn is not None and weights is None:
        try:
            coupled = _core.couple_perfect_matchings(drawn, keys)
        except ValueError:
            coupled = None  # crossing or overlapping bonds
        if coupled is not None:
            return _edges(names, size, width, coupled.reshape(number, width))
    everything = np.ones(found.num_vertices, dtype=bool)

    @lru_cache(_MOST_COUNTS)
    def count(left: bytes) -> int:
        return count_of_drawn(found, drawn, np.frombuffer(left, dtype=bool), limit)

    def matching(below: Callable[[int], int]) -> list[int]:
        left = everything.copy()
        total = count(left.tobytes())
        chosen = []
        for v in range(found.num_vertices):
            if not left[v]:
                continue
            left[v] = False
            ticket = below(total)
            for edge, u in at[v]:
                if not left[u]:
                    continue
                left[u] = False
                rest = count(left.tobytes())
                ticket -= rest
                if ticket < 0:
                    chosen.append(edge)
                    total = rest
                    break
                left[u] = True
        return sorted(chosen)

    at: list[list[tuple[int, int]]] = [[] for _ in range(found.num_vertices)]
    for edge, (u, v) in enumerate(found.edges.tolist()):
        if u != v:
            at[u].append((edge, v))
            at[v].append((edge, u))
    chances = (_uniform(np.random.Generator(np.random.Philox(key=np.array(one, dtype=np.uint64)))) for one in keys)
    return _edges(names, size, width, (origin[matching(below)] for below in chances))


@counting_doc
def random_independent_set(
    graph: "GraphLike",
    activity: "Activity" = 1,
    *,
    size: int | None = None,
    rng: RandomSource = None,
    memory_limit: int | None = None,
) -> Any:
    """Draw an independent set with the hard-core distribution.

    A set S is drawn with probability ``prod(z[v] for v in S) / Z``; with activity one all sets are equally likely.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Of small width. A vertex with a loop is never drawn.
    activity : number, sequence or mapping, optional
        The activity of all vertices, or one for each: ints, Fractions or floats, >= 0. A mapping names vertices by
        their labels; those it does not name have activity one.
    {size}
    rng : None, int, SeedSequence or Generator, optional
        Where randomness comes from.
    memory_limit : int, optional
        As in `count_independent_sets`.

    Returns
    -------
    ndarray of int64, tuple of labels, or list of those
        The vertices of the set, rising.
        {vertices}
        {sizes}

    {weighted}

    Notes
    -----
    The rows of the transfer operator are kept as exact integers and read backwards, so that each set has exactly its
    probability. Tables are made once for all sets of a call, and read together.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import random_independent_set
    >>> chosen = random_independent_set(lattices.square(6, 6), 2, rng=1)
    >>> bool((chosen < 36).all())
    True
    """
    found, names = as_named(graph)
    number = _checked_size(size, found.num_vertices)
    frontier = frontier_of(found, activity, memory_limit)
    drawn = [names.vertices(one) for one in frontier.draw(_uniform(generator(rng)), number)]
    return drawn[0] if size is None else drawn
