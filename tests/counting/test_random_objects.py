"""Random trees, matchings and independent sets, each beside an enumerated case; exact observables.

Chi-square tests on all objects at a false-alarm rate of 1e-6 each and a fixed seed.
"""

import contextlib
import itertools
import math
import time
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from quincunx import lattices
from quincunx.counting import (
    _frontier,
    count_independent_sets,
    count_perfect_matchings,
    count_spanning_trees,
    edge_probabilities,
    expected_size,
    hard_core,
    independence_number,
    independence_polynomial,
    occupation_probabilities,
    random_independent_set,
    random_perfect_matching,
    random_spanning_tree,
    size_distribution,
)
from quincunx.counting._frontier import LargestFrontier, WeightedFrontier
from quincunx.counting._observables import as_named
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, cycle, path

RATE = 1e-6


def goodness(draws, weights):
    """The p-value of draws beside the weights of all objects."""
    seen = Counter(draws)
    assert set(seen) <= set(weights)
    total = sum(weights.values())
    expected = np.array([len(draws) * float(Fraction(weight) / total) for weight in weights.values()])
    assert expected.min() >= 25
    return stats.chisquare([seen[key] for key in weights], expected).pvalue


@pytest.mark.statistical
@pytest.mark.parametrize(
    "graph", [complete(4), lattices.square(2, 3).graph, Graph(3, [(0, 1), (0, 1), (1, 2), (2, 2), (0, 2)])]
)
def test_every_spanning_tree_is_equally_likely(graph):
    trees = {}
    for edges in itertools.combinations(range(graph.num_edges), graph.num_vertices - 1):
        if count_spanning_trees((graph.num_vertices, graph.edges[list(edges)])) == 1:
            trees[edges] = 1
    assert len(trees) == count_spanning_trees(graph)
    rng = np.random.default_rng(1)
    draws = [tuple(random_spanning_tree(graph, rng=rng).tolist()) for _ in range(4000)]
    assert goodness(draws, trees) > RATE


@pytest.mark.statistical
@pytest.mark.parametrize(
    "graph",
    [
        lattices.square(4, 4),
        lattices.honeycomb(2, 3, "torus", multigraph=True),
        lattices.triangular(2, 4),
        lattices.aztec_diamond(2),
        lattices.four_eight_eight(2, 2),
        lattices.honeycomb(2, 3, "cylinder", multigraph=True),
        lattices.square(3, 4).graph,
        Graph(8, [(0, 1), (0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)]),
        complete(6),
        cycle(2, multigraph=True),
    ],
)
def test_every_perfect_matching_is_equally_likely(graph):
    count = count_perfect_matchings(graph)
    rng = np.random.default_rng(2)
    draws = [tuple(random_perfect_matching(graph, rng=rng).tolist()) for _ in range(26 * count)]
    edges = np.asarray(graph.edges)
    for chosen in set(draws):
        assert np.unique(edges[list(chosen)]).size == graph.num_vertices
    assert len(set(draws)) == count
    assert goodness(draws, dict.fromkeys(set(draws), 1)) > RATE


@pytest.mark.statistical
@pytest.mark.parametrize("lattice", [lattices.square(6, 7), lattices.four_eight_eight(3, 4), lattices.aztec_diamond(4)])
def test_edges_of_coupled_matchings_have_their_exact_probabilities(lattice):
    rng, rounds = np.random.default_rng(5), 600
    times = np.zeros(lattice.num_edges, dtype=int)
    for _ in range(rounds):
        times[random_perfect_matching(lattice, rng=rng)] += 1
    exact = [float(p) for p in edge_probabilities(lattice)]
    for seen, p in zip(times.tolist(), exact, strict=True):
        assert stats.binomtest(seen, rounds, p).pvalue > RATE / lattice.num_edges if 0 < p < 1 else seen == rounds * p


def brute_sets(graph, z):
    """All independent sets with their weights."""
    edges = graph.edges.tolist()
    found = {}
    for bits in range(1 << graph.num_vertices):
        if not any(bits >> u & 1 and bits >> v & 1 for u, v in edges):
            chosen = tuple(v for v in range(graph.num_vertices) if bits >> v & 1)
            weight = Fraction(1)
            for v in chosen:
                weight *= z[v]
            found[chosen] = weight
    return found


ACTIVITIES = [Fraction(1), Fraction(1, 2), Fraction(3), Fraction(2, 3), Fraction(0), Fraction(5, 2)]


@pytest.mark.statistical
@pytest.mark.parametrize("graph", [lattices.square(2, 3).graph, cycle(6), Graph(6, [(0, 1), (1, 1), (2, 3)])])
def test_every_independent_set_has_its_probability_and_every_observable_its_value(graph):
    sets = brute_sets(graph, ACTIVITIES)
    total = sum(sets.values())
    assert hard_core(graph, ACTIVITIES) == total
    assert hard_core(graph, dict(enumerate(ACTIVITIES))) == total
    exact = [sum((w for s, w in sets.items() if v in s), Fraction(0)) / total for v in range(6)]
    assert occupation_probabilities(graph, ACTIVITIES) == exact
    assert expected_size(graph, ACTIVITIES) == sum(exact)
    likely = {s: w for s, w in sets.items() if w}
    rng = np.random.default_rng(3)
    draws = [tuple(random_independent_set(graph, ACTIVITIES, rng=rng).tolist()) for _ in range(3000)]
    assert goodness(draws, likely) > RATE


@pytest.mark.parametrize(
    "graph", [lattices.square(4, 4), lattices.honeycomb(3, 3, "torus"), lattices.kagome(2, 3), path(0)]
)
def test_sizes_and_largest_sets_are_those_of_the_polynomial(graph):
    coefficients = independence_polynomial(graph)
    size, count, example = independence_number(graph)
    assert (size, count) == (len(coefficients) - 1, coefficients[-1])
    assert len(example) == size
    chosen = np.zeros(graph.num_vertices, dtype=bool)
    chosen[example] = True
    assert not chosen[np.asarray(graph.edges)].all(axis=1).any()
    weights = [c * Fraction(2, 3) ** k for k, c in enumerate(coefficients)]
    assert size_distribution(graph, Fraction(2, 3)) == [w / sum(weights) for w in weights]
    mean = sum(k * p for k, p in enumerate(size_distribution(graph)))
    assert expected_size(graph) == mean
    assert hard_core(graph, [1] * graph.num_vertices) == count_independent_sets(graph)


@pytest.mark.parametrize("activity", [{0: 5}, {"a": 5}, [5], (5,), np.array([5]), [1, 2, 3], None, True])
def test_sizes_have_one_activity_for_all(activity):
    with pytest.raises(TypeError, match="`activity` must be"):
        size_distribution(path(3), activity)


def test_the_sizes_of_a_lattice_are_found_by_its_own_engine():
    lattice, start = lattices.square(17, 17), time.process_time()
    coefficients = independence_polynomial(lattice, threads=1)
    alone, start = time.process_time() - start, time.process_time()
    assert size_distribution(lattice)[:2] == [Fraction(c, sum(coefficients)) for c in coefficients[:2]]
    assert time.process_time() - start < 5 * alone + 0.3  # a plain graph takes twenty times as long


@pytest.mark.parametrize("weight", [1, 10**60, None], ids=["sets", "long weights", "largest sets"])
@pytest.mark.parametrize("graph", [lattices.square(11, 14), lattices.square(6, 300), path(3000)], ids=repr)
def test_tables_of_a_frontier_stay_within_their_limit_or_are_refused(graph, weight):
    found, n, limit = as_named(graph)[0], graph.num_vertices, 1 << 23
    tracemalloc.start()
    with contextlib.suppress(TooLargeError):
        if weight is None:
            LargestFrontier(found, limit)
        else:
            WeightedFrontier(found, [weight] * n, [weight + 1] * n, limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit + (1 << 20)


def test_a_frontier_that_is_refused_needs_more_than_its_limit():
    with pytest.raises(TooLargeError, match="states of the frontier") as caught:
        LargestFrontier(as_named(lattices.square(11, 14))[0], 1 << 20)
    assert caught.value.needed > caught.value.limit == 1 << 20


@pytest.mark.parametrize(
    ("graph", "needed"), [(lattices.square(300, 300), 2**127), (lattices.square(40, 40), 150 * 2**21)]
)
def test_a_frontier_that_is_too_wide_is_refused_before_a_table_is_made(monkeypatch, graph, needed):
    monkeypatch.setattr(WeightedFrontier, "_after", None)
    with pytest.raises(TooLargeError, match="states of the frontier need at least") as caught:
        WeightedFrontier(as_named(graph)[0], [1] * graph.num_vertices, [1] * graph.num_vertices, 10**8)
    assert caught.value.needed == needed > caught.value.limit == 10**8


def test_the_order_of_a_frontier_is_that_of_fewest_states():
    for graph in (lattices.square(9, 9), lattices.square(5, 12), lattices.king(5, 8)):
        found, natural = as_named(graph)[0], list(range(graph.num_vertices))

        def states(order, found=found):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_frontier, "_order", lambda graph: order)
                ones = [1] * found.num_vertices
                return sum(map(len, WeightedFrontier(found, ones, ones, 10**9).tables))

        assert states(_frontier._order(found)) <= states(natural)


def test_bond_orders_add_up_to_one_at_each_vertex():
    for graph in (lattices.square(4, 5), lattices.kagome(2, 2, "torus", multigraph=True), complete(6)):
        orders = edge_probabilities(graph)
        at = [Fraction(0)] * graph.num_vertices
        for (u, v), order in zip(np.asarray(graph.edges).tolist(), orders, strict=True):
            at[u] += order
            at[v] += order
        assert set(at) == {1}


def subsets(graph, size, weights, fits):
    """The sets of so many edges that fit, each with the product of its weights."""
    chosen = itertools.combinations(range(graph.num_edges), size)
    return {edges: math.prod(weights[e] for e in edges) for edges in chosen if fits(graph.edges[list(edges)])}


DIAMOND = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
WEIGHTS = [1, Fraction(1, 2), 1, 1, Fraction(3, 2)]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "graph", "weight"),
    [
        (random_spanning_tree, DIAMOND, None),
        (random_spanning_tree, DIAMOND, WEIGHTS),
        (random_perfect_matching, lattices.square(2, 3), None),
        (random_perfect_matching, lattices.four_eight_eight(1, 2), None),
        (random_perfect_matching, complete(4), None),
        (random_perfect_matching, DIAMOND, WEIGHTS),
        (random_independent_set, DIAMOND, None),
        (random_independent_set, path(2), [Fraction(1, 2), 2]),
    ],
)
def test_objects_drawn_together_have_their_law_and_do_not_know_of_each_other(draw, graph, weight):
    n, each = graph.num_vertices, weight or [1] * graph.num_edges
    if draw is random_independent_set:
        each = weight or [1] * n
        likely = brute_sets(graph, each)
        drawn = draw(graph, each, size=16_001, rng=7)
        assert isinstance(drawn, list)
    else:
        covers = draw is random_perfect_matching
        size = n // 2 if covers else n - 1
        likely = subsets(
            graph, size, each, lambda e: len(np.unique(e)) == n if covers else count_spanning_trees((n, e)) == 1
        )
        drawn = draw(graph, size=16_001, weight=weight, rng=7)
        assert drawn.shape == (16_001, size)
        assert drawn.dtype == np.int64
    drawn = [tuple(one.tolist()) for one in drawn]
    assert goodness(drawn, likely) > RATE
    pairs = {(a, b): p * q for (a, p), (b, q) in itertools.product(likely.items(), repeat=2)}
    assert goodness(list(itertools.pairwise(drawn))[::2], pairs) > RATE


def test_one_drawn_alone_is_the_first_of_a_list_of_one():
    lattice, torus = lattices.square(4, 4), lattices.square(4, 4, "torus")
    for draw, graph in itertools.product((random_spanning_tree, random_perfect_matching), (lattice, torus)):
        assert draw(graph, size=1, rng=3).tolist() == [draw(graph, rng=3).tolist()]
        assert draw(graph, size=0, rng=3).shape == (0, len(draw(graph, rng=3)))
        assert draw(graph, size=2.0, rng=3).tolist() == draw(graph, size=2, rng=3).tolist()
    assert random_independent_set(lattice, size=1, rng=3)[0].tolist() == random_independent_set(lattice, rng=3).tolist()
    assert random_independent_set(lattice, size=0) == []
    names = Graph(2, [(0, 1)], ["a", "b"])
    assert random_spanning_tree(names, size=2) == random_perfect_matching(names, size=2) == [(("a", "b"),)] * 2
    assert {len(one) for one in random_independent_set(names, size=50, rng=1)} == {0, 1}


@pytest.mark.parametrize("draw", [random_spanning_tree, random_perfect_matching, random_independent_set])
def test_sizes_that_are_none_are_refused(draw):
    with pytest.raises(ValueError, match="`size` must be at least 0, got -1"):
        draw(lattices.square(2, 2), size=-1)
    for size in (2.5, (2, 3), "3", True):
        with pytest.raises(TypeError, match="`size` must be"):
            draw(lattices.square(2, 2), size=size)
    with pytest.raises(MemoryError, match="`size` of"):
        draw(lattices.square(2, 2), size=10**15)


def test_the_same_seed_gives_the_same_object():
    lattice = lattices.square(6, 6)
    for draw in (random_spanning_tree, random_perfect_matching, random_independent_set):
        assert (draw(lattice, rng=5) == draw(lattice, rng=5)).all()


def test_bad_input_is_refused_with_the_argument_named():
    with pytest.raises(ValueError, match="graph"):
        random_spanning_tree((0, []))
    with pytest.raises(ValueError, match="connected"):
        random_spanning_tree((2, []))
    with pytest.raises(ValueError, match=r"`weight` must leave random walks that end: .* 2e\+13"):
        random_spanning_tree(path(3), weight=[1, 10**13])
    assert random_spanning_tree((2, [(0, 0), (0, 1)]), weight=[10**13, 1]).tolist() == [1]
    with pytest.raises(ValueError, match="perfect matching"):
        random_perfect_matching(path(3))
    with pytest.raises(ValueError, match="perfect matching"):
        edge_probabilities(path(3))
    with pytest.raises(ValueError, match="activity"):
        random_independent_set(path(3), -1)
    with pytest.raises(ValueError, match="activity"):
        hard_core(path(3), [1, 2])
    for mode in ("float", "log"):
        with pytest.raises(ValueError, match="activity"):
            hard_core(path(3), [1, -2, 3], mode=mode)
    with pytest.raises(TypeError, match="activity"):
        occupation_probabilities(path(3), [1, None, 3])
    with pytest.raises(ValueError, match="activity"):
        expected_size(path(3), float("nan"))
    with pytest.raises(ValueError, match="label"):
        hard_core(path(3), {7: 1})
    with pytest.raises(ValueError, match="`activity` must be at least 0"):
        expected_size(path(3), [1, Fraction(-1, 2), 3])
    with pytest.raises(TypeError, match="rng"):
        random_spanning_tree(path(3), rng="seed")
    with pytest.raises(MemoryError, match="frontier"):
        occupation_probabilities(lattices.square(14, 14), memory_limit=10**4)
