"""Graphs of small treewidth whose frontiers are long: counted along a tree, compared with elimination in Python."""

import itertools
import time
from fractions import Fraction

import networkx
import numpy as np
import pytest
from counting_oracle import all_subsets, partial_k_tree

from quincunx.counting import count_independent_sets, estimate_cost, hard_core, independence_polynomial
from quincunx.errors import TooLargeError


def shuffled_k_tree(k, n, seed):
    n, edges = partial_k_tree(k, n, seed)
    return n, np.random.default_rng(seed).permutation(n)[edges]


def eliminated(n, edges, activity=1):
    """Z by bucket elimination: dictionaries of sets, big integers, the vertex of least degree first."""
    neighbors = {v: set() for v in range(n)}
    for u, v in np.asarray(edges).tolist():
        neighbors[u].add(v)
        neighbors[v].add(u)
    plain = {v: set(around) for v, around in neighbors.items()}
    activities = activity if isinstance(activity, list) else [activity] * n
    tables, total = {v: [] for v in range(n)}, 1
    while neighbors:
        v = min(neighbors, key=lambda v: (len(neighbors[v]), v))
        scope = sorted(neighbors.pop(v))
        found = {}
        for size in range(len(scope) + 1):
            for chosen in map(frozenset, itertools.combinations(scope, size)):
                if any(plain[u] & chosen for u in chosen):
                    continue
                out = inside = 1
                for names, table in tables[v]:
                    out *= table[chosen & names]
                    inside *= 0 if plain[v] & chosen else table[(chosen | {v}) & names]
                found[chosen] = out + (0 if plain[v] & chosen else activities[v] * inside)
        for u in scope:
            neighbors[u] |= set(scope)
            neighbors[u] -= {u, v}
            tables[u] = [entry for entry in tables[u] if v not in entry[0]]
        if scope:
            names = frozenset(scope)
            # A table goes to the vertex of its scope that will be eliminated first; all of them hold it until then.
            entry = (names, found)
            for u in scope:
                tables[u].append(entry)
        else:
            total *= found[frozenset()]
    return total


def test_the_oracle_agrees_with_all_subsets():
    for seed in range(4):
        n, edges = shuffled_k_tree(3, 14, seed)
        counts = all_subsets(n, edges.tolist())
        for activity in (1, 3):
            assert eliminated(n, edges, activity) == sum(c * activity**i for i, c in enumerate(counts))


@pytest.mark.parametrize(("k", "n"), [(3, 120), (5, 60), (8, 30)])
def test_counts_values_and_polynomials_agree_with_elimination(k, n):
    for seed in range(3):
        graph = shuffled_k_tree(k, n, seed)
        assert count_independent_sets(graph) == eliminated(*graph)
        assert hard_core(graph, Fraction(3, 2)) == eliminated(*graph, Fraction(3, 2))
        assert hard_core(graph, -2) == eliminated(*graph, -2)
        coefficients = independence_polynomial(graph)
        assert sum(coefficients) == eliminated(*graph)
        assert coefficients[1] == n
        value, error = hard_core(graph, 0.5, mode="float")
        assert abs(Fraction(value) / eliminated(*graph, Fraction(1, 2)) - 1) <= Fraction(error)


def test_a_graph_that_no_path_decomposition_can_hold_is_counted_at_once():
    graph = shuffled_k_tree(5, 1000, 7)
    cost = estimate_cost(graph, memory_limit=10**6)
    assert cost.engine == "tree decomposition over the integers"
    assert cost.bytes <= 10**6
    begin = time.process_time()
    count = count_independent_sets(graph, memory_limit=10**6)
    assert time.process_time() - begin < 2  # 15 ms on a quiet machine; without the tree it was refused
    assert count_independent_sets(graph, threads=2) == count
    n, edges = graph
    order = np.random.default_rng(1).permutation(n)
    assert count_independent_sets((n, order[edges])) == count


@pytest.mark.parametrize(("k", "n"), [(1, 200), (4, 100), (6, 40)])
def test_an_activity_for_each_vertex_agrees_with_elimination(k, n):
    rng = np.random.default_rng(k)
    graph = shuffled_k_tree(k, n, k)
    activities = [Fraction(int(a), int(b)) for a, b in zip(rng.integers(-9, 10, n), rng.integers(1, 6, n), strict=True)]
    value = eliminated(*graph, activities)
    assert hard_core(graph, activities) == value == hard_core(graph, activities, threads=1)
    assert hard_core(graph, [3] * n) == hard_core(graph, 3)


def test_activities_on_a_graph_that_no_frontier_can_hold():
    n, edges = shuffled_k_tree(5, 1000, 7)
    activities = [1 + v % 3 for v in range(n)]
    with pytest.raises(TooLargeError):
        hard_core((n, edges), activities, order=range(n))
    value = hard_core((n, edges), activities)
    # A vertex is left out or taken.
    v = int(edges[17][0])
    around = edges[(edges == v).any(axis=1)]
    out = [0 if u == v else z for u, z in enumerate(activities)]
    inside = [0 if u in around else z for u, z in enumerate(activities)]
    assert value == hard_core((n, edges), out) + activities[v] * hard_core((n, edges), inside)


def test_parts_multiply_and_an_order_of_ones_own_is_a_frontier():
    first, second = shuffled_k_tree(4, 40, 1), shuffled_k_tree(4, 50, 2)
    both = (90, np.concatenate([first[1], second[1] + 40]))
    assert count_independent_sets(both) == count_independent_sets(first) * count_independent_sets(second)
    small = shuffled_k_tree(3, 30, 3)
    assert estimate_cost(small, order=range(30)).engine == "frontier"
    assert count_independent_sets(small, order=range(30)) == count_independent_sets(small)


def test_a_wide_tree_of_cliques_needs_one_state_for_each_vertex():
    # Cliques of 40 in a tree, each sharing 30 vertices with the one before: dense tables would have 2**30 states.
    graph = networkx.Graph()
    for i in range(12):
        graph.add_edges_from(itertools.combinations(range(10 * i, 10 * i + 40), 2))
    count = count_independent_sets(graph)
    # An interval graph: after v the next vertex of a set lies beyond the last clique that v is in.
    beyond = [10 * min(v // 10, 11) + 40 for v in range(150)]
    sets_from = [0] * 150 + [1]
    for v in reversed(range(150)):
        sets_from[v] = sets_from[v + 1] + sets_from[min(beyond[v], 150)]
    assert count == sets_from[0]
