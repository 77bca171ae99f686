"""Weighted trees and perfect matchings: brute force, networkx, what is refused."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import networkx
import numpy as np
import pytest

from quincunx import lattices
from quincunx.counting import (
    count_matchings,
    count_perfect_matchings,
    count_spanning_trees,
    edge_probabilities,
    log_matchings,
    log_perfect_matchings,
    log_spanning_trees,
    matching_polynomial,
    random_perfect_matching,
    random_spanning_tree,
)
from quincunx.graphs import Graph, complete

FUNCTIONS = [
    count_spanning_trees,
    count_perfect_matchings,
    count_matchings,
    log_spanning_trees,
    log_perfect_matchings,
    log_matchings,
    matching_polynomial,
    random_spanning_tree,
    random_perfect_matching,
    edge_probabilities,
]


def trees(n, edges):
    for chosen in itertools.combinations(range(len(edges)), n - 1):
        if networkx.is_connected(networkx.MultiGraph([*(edges[e] for e in chosen), *((v, v) for v in range(n))])):
            yield chosen


def perfect(n, edges):
    for chosen in itertools.combinations(range(len(edges)), n // 2):
        if sorted(v for e in chosen for v in edges[e]) == list(range(n)):
            yield chosen


def matchings(n, edges):
    for size in range(n // 2 + 1):
        for chosen in itertools.combinations(range(len(edges)), size):
            if len({v for e in chosen for v in edges[e]}) == 2 * size:
                yield chosen


KINDS = {
    "ints": lambda source: source.choice([0, 1, 2, 3, 10, 97]),
    "fractions": lambda source: Fraction(source.randint(0, 9), source.randint(1, 6)),
    "binary fractions": lambda source: source.randint(0, 16) / 8,
    "common factor": lambda source: 10**30 * source.randint(1, 5),
    "mixed": lambda source: source.choice([1, 0.5, Fraction(1, 3), np.int64(4), np.float32(0.25), "3/2"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_agree_with_brute_force(kind):
    source = random.Random(2310)
    seen = 0
    for n in [1, 2, 3, 4, 4, 4, 6, 6, 6, 6]:
        edges = [tuple(source.choices(range(n), k=2)) for _ in range(min(9, 2 * n))]
        weights = [KINDS[kind](source) for _ in edges]
        exact = [Fraction(w if isinstance(w, (str, int, Fraction)) else float(w)) for w in weights]
        theirs = networkx.MultiGraph()
        theirs.add_nodes_from(range(n))
        for (u, v), weight in zip(edges, weights, strict=True):
            theirs.add_edge(u, v, cost=weight)
        ours, listed = list(theirs.edges(data="cost")), Graph(n, edges)
        assert sorted(map(str, weights)) == sorted(str(w) for *_, w in ours)
        for count, log, ways in (
            (count_spanning_trees, log_spanning_trees, trees),
            (count_perfect_matchings, log_perfect_matchings, perfect),
            (count_matchings, log_matchings, matchings),
        ):
            expected = sum(
                (math.prod((exact[e] for e in way), start=Fraction(1)) for way in ways(n, edges)), Fraction(0)
            )
            seen += expected > 0
            assert (
                count(theirs, weight="cost")
                == count(listed, weight=weights)
                == count((n, edges), weight=weights)
                == expected
            )
            assert type(count(listed, weight=weights)) is int or any(w.denominator > 1 for w in exact)
            found = log(theirs, weight="cost")
            value, error = found if log is log_spanning_trees else (found, 1e-13 * (1 + abs(found)))
            right = math.log(expected) if expected else -math.inf
            assert value == right or abs(value - right) <= error + 1e-15 * abs(right)
            if count is count_matchings:
                sizes = matching_polynomial(theirs, weight="cost")
                assert sum(sizes) == expected
                assert sizes[1:2] == [sum(w for (u, v), w in zip(edges, exact, strict=True) if u != v)] or expected == 1
    assert seen >= 6


SMALL = Fraction(1, 10**12)
NUMBERS = [
    *(SMALL, 1 + SMALL, 1 - SMALL, 1 + Fraction(1, 10**30), 1 - Fraction(1, 10**33), 1 + Fraction(1, 10**90)),
    *(Fraction(1, 10**400), Fraction(3, 7) ** 900, 10**400, 10**400 + 1, Fraction(10**400 + 1, 10**400), 2, 10, 1),
]


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_logarithms_of_numbers_near_one_and_far_from_it_are_rounded_once(number):
    with mpmath.workdps(1000):
        logs = [float(mpmath.log(mpmath.mpf(x.numerator) / x.denominator)) for x in (number, 1 + number)]
        trees = mpmath.log(mpmath.mpf(number.numerator) / number.denominator) * 9
    assert [f((2, [(0, 1)]), weight=[number]) for f in (log_perfect_matchings, log_matchings)] == logs
    found = log_spanning_trees((10, [(i, i + 1) for i in range(9)]), weight=[number] * 9)
    assert abs(found.value - trees) <= found.error


@pytest.mark.parametrize("method", ["auto", "pfaffian", "frontier"])
def test_all_methods_take_weights(method):
    graph = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(4, 4))
    source = random.Random(8)
    networkx.set_edge_attributes(graph, {edge: Fraction(source.randint(1, 40), 7) for edge in graph.edges}, "weight")
    exact = count_perfect_matchings(graph, weight="weight", method=method)
    square = lattices.square(4, 4)
    weights = [graph.edges[edge]["weight"] for edge in square.edges.tolist()]
    assert exact == count_perfect_matchings(square, weight=weights)
    assert exact == _by_expansion(graph)


def _by_expansion(graph):
    """The sum by the edges at one vertex after another."""
    if not graph:
        return 1
    v = min(graph)
    return sum(
        graph.edges[v, u]["weight"] * _by_expansion(graph.subgraph(set(graph) - {u, v})) for u in graph.neighbors(v)
    )


def test_trees_of_a_weighted_network_are_those_of_networkx():
    graph = networkx.les_miserables_graph()
    exact = count_spanning_trees(graph, weight="weight")
    assert exact == pytest.approx(networkx.number_of_spanning_trees(graph, weight="weight"), rel=1e-9)
    assert log_spanning_trees(graph, weight="weight").value == pytest.approx(math.log(exact), rel=1e-14)
    assert count_spanning_trees(graph, weight=None) == pytest.approx(networkx.number_of_spanning_trees(graph), rel=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1] * 5, ValueError, "`weight` must have one entry for each of the 6 edges, got 5"),
        ([1, 1, 1, 1, 1, -2], ValueError, "`weight` must be at least 0, got -2"),
        ([1, 1, 1, 1, 1, math.inf], ValueError, "`weight` must be finite, got inf"),
        ([1, 1, 1, 1, 1, "x"], ValueError, "`weight` must be a number such as"),
        ([1, 1, 1, 1, 1, None], TypeError, "`weight` must be an int, a Fraction or a float, got NoneType"),
        ([0.1] * 5 + [0.3], ValueError, "`weight` must be whole multiples of one number, 1048576 of them in all"),
        ([1, 1, 1, 1, 1, 2**20], ValueError, "`weight` must be whole multiples of one number"),
        (
            "weight",
            TypeError,
            "`weight` must be a number for each edge unless `graph` is another library's or a sparse",
        ),
        (2, TypeError, "`weight` must be None, the name of an attribute or numbers, got int"),
    ],
)
def test_bad_weights_are_refused(function, weight, error, message):
    if "multiples" in message and function is random_spanning_tree:
        return  # takes weights of any size
    with pytest.raises(error, match=message):
        function(complete(4), weight=weight)


def test_a_name_that_no_edge_has_is_refused():
    with pytest.raises(ValueError, match="`weight` must be an attribute of an edge, got 'wieght'"):
        count_spanning_trees(networkx.cycle_graph(3), weight="wieght")
    assert count_spanning_trees(networkx.empty_graph(1), weight="weight") == 1


def test_no_perfect_matching_is_a_fraction_too_where_weights_have_a_denominator():
    for graph in (Graph(3, [(0, 1), (1, 2)]), Graph(4, [(0, 1), (0, 2), (0, 3)])):
        found = count_perfect_matchings(graph, weight=[Fraction(1, 2)] * graph.num_edges)
        assert (found, type(found)) == (0, Fraction)
