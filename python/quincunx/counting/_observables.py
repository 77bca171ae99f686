"""Exact observables: occupations and sizes of independent sets, bond orders of perfect matchings."""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from quincunx import _check
from quincunx._check import Number
from quincunx.counting._activities import Activity
from quincunx.counting._drawn import as_drawn
from quincunx.counting._frontier import frontier_of, largest_set
from quincunx.counting._independent_sets import independence_polynomial
from quincunx.counting._matchings import count_of_drawn
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import as_listed, as_named
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, lay, weights_of


class IndependenceNumber(NamedTuple):
    """The size of a largest independent set, how many there are, and one of them."""

    size: int
    number: int
    example: list[Hashable]


@counting_doc
def occupation_probabilities(
    graph: "GraphLike", activity: "Activity" = 1, *, memory_limit: int | None = None
) -> "dict[Hashable, Fraction] | Sequence[Fraction]":
    """Compute the probability that each vertex is occupied, exactly.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Of small width.
    activity : number, sequence or mapping, optional
        The activity of all vertices, or one for each: ints, Fractions or floats, >= 0. A mapping names vertices by
        their labels; those it does not name have activity one.
    memory_limit : int, optional
        As in `count_independent_sets`.

    Returns
    -------
    list of Fraction, or dict
        One for each vertex; by label where the graph has labels of its own or is networkx's.

    {weighted}

    Notes
    -----
    The transfer sweep from both sides, in exact integers.

    Examples
    --------
    >>> from quincunx.counting import occupation_probabilities
    >>> from quincunx.graphs import path
    >>> occupation_probabilities(path(3))
    [Fraction(2, 5), Fraction(1, 5), Fraction(2, 5)]
    >>> occupation_probabilities(path(2).relabel(["Ann", "Bea"]))
    {'Ann': Fraction(1, 3), 'Bea': Fraction(1, 3)}
    """
    found, names = as_named(graph)
    frontier = frontier_of(found, activity, memory_limit)
    return names.by_vertex([Fraction(weight, frontier.total) for weight in frontier.occupied_weights()])


def expected_size(graph: "GraphLike", activity: "Activity" = 1, *, memory_limit: int | None = None) -> Fraction:
    """Compute the expected number of occupied vertices, exactly.

    Parameters
    ----------
    graph, activity, memory_limit
        As in `occupation_probabilities`.

    Returns
    -------
    Fraction
        ``sum(z[v] dlnZ/dz[v])``, the sum of the occupation probabilities.

    Raises
    ------
    ValueError, TypeError, TooLargeError
        As `occupation_probabilities`.

    Examples
    --------
    >>> from quincunx.counting import expected_size
    >>> from quincunx.graphs import path
    >>> expected_size(path(3))
    Fraction(1, 1)
    """
    found = as_listed(graph)
    frontier = frontier_of(found, activity, memory_limit)
    return Fraction(sum(frontier.occupied_weights()), frontier.total)


def size_distribution(graph: "GraphLike", activity: Number = 1) -> list[Fraction]:
    """Compute the distribution of the number of occupied vertices, exactly.

    Parameters
    ----------
    graph
        As in `independence_polynomial`.
    activity : int, Fraction or float, optional
        The activity of all vertices, >= 0; not one for each.

    Returns
    -------
    list of Fraction
        The probabilities of sizes 0, 1, 2, ...

    Raises
    ------
    ValueError, TypeError, TooLargeError
        As `independence_polynomial`, and for a negative activity.

    Examples
    --------
    >>> from quincunx.counting import size_distribution
    >>> from quincunx.graphs import path
    >>> size_distribution(path(3))
    [Fraction(1, 5), Fraction(3, 5), Fraction(1, 5)]
    """
    z = _check.rational(activity, "activity")
    if z < 0:
        raise ValueError(f"`activity` must be at least 0, got {_check.shown(z)}")
    weights = [count * z**size for size, count in enumerate(independence_polynomial(graph))]
    total = sum(weights, Fraction(0))
    return [weight / total for weight in weights]


def independence_number(graph: "GraphLike") -> IndependenceNumber:
    """Find the size of a largest independent set, how many there are, and one of them.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Of small width.

    Returns
    -------
    IndependenceNumber
        The triple ``(size, number, example)``; `example` lists vertices, by their labels where the graph has any.

    Raises
    ------
    TypeError, ValueError, TooLargeError
        As `count_independent_sets`.

    Examples
    --------
    >>> from quincunx.counting import independence_number
    >>> from quincunx.graphs import cycle
    >>> independence_number(cycle(5))
    IndependenceNumber(size=2, number=5, example=[1, 4])
    """
    found, names = as_named(graph)
    size, number, example = largest_set(found)
    return IndependenceNumber(size, number, list(names.vertices(example)) if names.own else [*example])


@counting_doc
def edge_probabilities(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, memory_limit: int | None = None
) -> "dict[Hashable, Fraction] | Sequence[Fraction]":
    """Compute the probability that each edge is in a random perfect matching, exactly: Pauling's bond orders.

    All are equally likely, or have probabilities proportional to the products of their weights.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        As in `count_perfect_matchings`.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`.
    memory_limit : int, optional
        As in `count_independent_sets`.

    Returns
    -------
    list of Fraction, or dict
        One for each edge; those at a vertex add up to one. A dict by edges where the graph has labels of its own or is
        networkx's, as `random_perfect_matching` names them.

    {matched}

    Notes
    -----
    The count without the two ends of the edge over the count: one exact count for each edge.

    References
    ----------
    .. [1] L. Pauling, L. Brockway, J. Beach (1935), The dependence of interatomic distance on single bond-double bond
       resonance, J. Am. Chem. Soc. 57.

    Examples
    --------
    >>> from quincunx.counting import edge_probabilities
    >>> from quincunx.graphs import cycle
    >>> edge_probabilities(cycle(4))[0]
    Fraction(1, 2)
    >>> edge_probabilities(cycle(2, multigraph=True).relabel("ab"))
    {('a', 'b', 0): Fraction(1, 2), ('b', 'a', 1): Fraction(1, 2)}
    """
    found, names = as_named(graph)
    limit = _check.memory_limit(memory_limit)
    edges, times = found.edges.tolist(), np.ones(found.num_edges, dtype=np.int64)
    if (weights := weights_of(graph, weight)) is not None:
        graph, _, origin = lay(found, weights)
        found, times = graph, np.bincount(origin, minlength=len(times))
    drawn = as_drawn(graph)
    left = np.ones(found.num_vertices, dtype=bool)
    total = count_of_drawn(found, drawn, left, limit)
    if total == 0:
        raise ValueError("`graph` must have a perfect matching, got none")
    known: dict[tuple[int, int], Fraction] = {}
    probabilities = []
    for (u, v), number in zip(edges, times.tolist(), strict=True):
        pair = (min(u, v), max(u, v))
        if u == v:
            known[pair] = Fraction(0)
        elif pair not in known:
            left[[u, v]] = False
            known[pair] = Fraction(count_of_drawn(found, drawn, left, limit), total)
            left[[u, v]] = True
        probabilities.append(number * known[pair])
    return names.by_edge(probabilities)
