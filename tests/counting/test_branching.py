"""Branching beside the planned engines: dense graphs and hubs, the same counts, no plan longer than it is worth."""

import random

import networkx as nx
import pytest

from quincunx.counting import count_independent_sets, estimate_cost, hard_core, independence_polynomial
from quincunx.errors import TooLargeError


def band(n, width, share, seed):
    rng = random.Random(seed)
    graph = nx.empty_graph(n)
    graph.add_edges_from((i, j) for i in range(n) for j in range(i + 1, min(n, i + width + 1)) if rng.random() < share)
    return graph


def grid_with_holes(size, holes, seed):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(size, size))
    graph.remove_nodes_from(random.Random(seed).sample(list(graph), holes))
    return nx.convert_node_labels_to_integers(graph)


GRAPHS = {
    "dense, 100": lambda: nx.gnp_random_graph(100, 0.5, seed=1),
    "dense, 80": lambda: nx.gnp_random_graph(80, 0.3, seed=1),
    "sparse, 60": lambda: nx.gnp_random_graph(60, 0.1, seed=1),
    "hubs, 100": lambda: nx.barabasi_albert_graph(100, 4, seed=3),
    "cubic, 60": lambda: nx.random_regular_graph(3, 60, seed=1),
    "band, 120": lambda: band(120, 10, 0.5, 5),
    "wide band, 100": lambda: band(100, 20, 0.3, 5),
    "grid with holes": lambda: grid_with_holes(10, 8, 2),
    "cube": lambda: nx.convert_node_labels_to_integers(nx.hypercube_graph(5)),
}
# These fall apart long before an order could be planned.
BRANCHED = {"dense, 100", "dense, 80", "hubs, 100"}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_count_is_that_of_an_engine(name):
    graph = GRAPHS[name]()
    # The value at 1 is asked of an engine, whatever the count is found by.
    assert count_independent_sets(graph) == hard_core(graph, 1)
    engine = estimate_cost(graph).engine
    assert engine == "branching" if name in BRANCHED else engine in {"branching", "frontier", "tree decomposition"}


@pytest.mark.parametrize("seed", range(12))
def test_the_count_is_the_sum_of_the_coefficients(seed):
    rng = random.Random(seed)
    n = rng.randrange(1, 40)
    graph = nx.gnp_random_graph(n, rng.random(), seed=seed)
    graph.add_edges_from((v, v) for v in range(n) if rng.random() < 0.1)
    count = count_independent_sets(graph)
    assert count == sum(independence_polynomial(graph))
    assert count == count_independent_sets(graph, order=rng.sample(range(n), n))


def test_limits_threads_and_orders_do_not_change_a_count():
    graph = GRAPHS["dense, 80"]()
    count = count_independent_sets(graph)
    cost = estimate_cost(graph)
    assert cost.engine == "branching"
    assert cost.bytes <= 2**26
    assert count_independent_sets(graph, threads=2) == count
    assert count_independent_sets(graph, memory_limit=10**6) == count
    order = random.Random(1).sample(range(100), 100)
    assert count_independent_sets(nx.relabel_nodes(graph, dict(enumerate(order)))) == count


def test_a_graph_that_no_engine_can_hold_is_refused_as_before():
    graph = nx.random_regular_graph(3, 256, seed=1)
    with pytest.raises(TooLargeError):
        count_independent_sets(graph, memory_limit=10**4)
