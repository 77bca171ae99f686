"""Counts of large sparse graphs over the integers: recurrences, transfer matrices, the same counts modulo primes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.interrupts import interrupted_after

from quincunx.counting import count_independent_sets, count_matchings, count_perfect_matchings, estimate_cost

INTEGERS = "tree decomposition over the integers"


def path(n):
    return n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def cycle(n):
    return n, np.stack([np.arange(n), np.roll(np.arange(n), -1)], axis=1)


def shuffled(graph, seed=1):
    """The same graph under other names, its edges in another order."""
    n, edges = graph
    chance = np.random.default_rng(seed)
    return n, chance.permuted(chance.permutation(n)[edges], axis=1)[chance.permutation(len(edges))]


def recursive_tree(n, seed=1):
    chance = np.random.default_rng(seed)
    return n, np.stack([(chance.random(n - 1) * np.arange(1, n)).astype(int), np.arange(1, n)], axis=1)


def partial_k_tree(k, n, seed=1):
    """Each new vertex is joined to k of a clique, a fifth of the edges is left out; some vertices are hubs."""
    chance = np.random.default_rng(seed)
    cliques = np.empty((n, k), dtype=int)
    cliques[k - 1] = np.arange(k)
    edges = [(u, v) for v in range(k) for u in range(v)]
    for v in range(k, n):
        clique = cliques[chance.integers(k - 1, v)]
        edges += [(int(u), v) for u in clique]
        cliques[v] = clique
        cliques[v, chance.integers(k)] = v
    edges = np.array(edges)
    return n, edges[chance.random(len(edges)) < 0.8]


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    return rows * columns, np.concatenate([right, down])


def linear(step, start, times):
    """Apply a small integer matrix many times, by squaring."""
    matrix, vector = np.array(step, dtype=object), np.array(start, dtype=object)
    while times:
        if times & 1:
            vector = matrix @ vector
        matrix, times = matrix @ matrix, times >> 1
    return vector


def fibonacci(n):
    return linear([[1, 1], [1, 0]], [1, 0], n)[1]


def by_tree(n, edges):
    """Independent sets, matchings and perfect matchings of a tree whose edges lead from a vertex to a later one."""
    sets = [(1, 1)] * n  # with the vertex out and in
    pairs = {1: [(1, 1)] * n, 0: [(0, 1)] * n}  # of what is below with the vertex, and of what is below without it
    for parent, child in edges[np.argsort(-edges[:, 1])].tolist():
        (out, within), (above, taken) = sets[child], sets[parent]
        sets[parent] = above * (out + within), taken * out
        for table in pairs.values():
            (whole, rest), (total, without) = table[parent], table[child]
            table[parent] = whole * total + rest * without, rest * total
    return sum(sets[0]), pairs[1][0][0], pairs[0][0][0]


@pytest.mark.parametrize("n", [12_001, 50_000])
@pytest.mark.parametrize("naming", [lambda graph: graph, shuffled])
def test_paths_and_cycles_have_fibonacci_and_lucas_numbers(n, naming):
    assert estimate_cost(naming(path(n))).engine == INTEGERS
    assert count_independent_sets(naming(path(n))) == fibonacci(n + 2)
    assert count_matchings(naming(path(n))) == fibonacci(n + 1)
    lucas = fibonacci(n - 1) + fibonacci(n + 1)
    assert count_independent_sets(naming(cycle(n))) == lucas == count_matchings(naming(cycle(n)))


def test_trees_of_all_shapes_are_those_of_their_recurrences():
    height, width = 14, 20_000
    binary = (2**height - 1, np.stack([(np.arange(1, 2**height - 1) - 1) // 2, np.arange(1, 2**height - 1)], axis=1))
    caterpillar = (2 * width, np.array([(i - 1, i) for i in range(1, width)] + [(i, width + i) for i in range(width)]))
    broom = (30_000, np.array([(max(0, min(i - 1, 15_000)), i) for i in range(1, 30_000)]))
    comb = (30_000, np.array([(i - 1 if i % 300 else max(0, i - 300), i) for i in range(1, 30_000)]))
    for tree in (binary, caterpillar, broom, comb, recursive_tree(20_000)):
        sets, matchings, perfect = by_tree(*tree)
        assert count_independent_sets(shuffled(tree)) == sets
        assert count_matchings(shuffled(tree)) == matchings
        assert count_perfect_matchings(tree, method="frontier") == perfect


def test_the_caterpillar_and_the_binary_tree_in_closed_form():
    # Out and in: (2 (a + b), a) for each vertex of the spine with its leaf; (x, y) -> ((x + y)^2, x^2) for each level.
    width = 20_000
    caterpillar = (2 * width, np.array([(i - 1, i) for i in range(1, width)] + [(i, width + i) for i in range(width)]))
    assert count_independent_sets(caterpillar) == sum(linear([[2, 2], [1, 0]], [2, 1], width - 1))
    out, within = 1, 1
    for _ in range(13):
        out, within = (out + within) ** 2, out**2
    binary = (2**14 - 1, np.stack([(np.arange(1, 2**14 - 1) - 1) // 2, np.arange(1, 2**14 - 1)], axis=1))
    assert count_independent_sets(binary) == out + within


def test_strips_are_powers_of_their_transfer_matrices():
    for rows, columns in [(2, 6000), (3, 4000), (4, 1000)]:
        words = [w for w in range(2**rows) if not w & w << 1]
        step = [[int(not a & b) for b in words] for a in words]
        assert estimate_cost(grid(rows, columns)).engine == INTEGERS
        assert count_independent_sets(shuffled(grid(rows, columns))) == sum(linear(step, [1] * len(words), columns - 1))
    # Domino tilings and monomer-dimer coverings of a ladder: F(n + 1), and a(n) = 3 a(n - 1) + a(n - 2) - a(n - 3).
    ladder = shuffled(grid(2, 6000))
    assert count_perfect_matchings(ladder, method="frontier") == fibonacci(6001)
    assert count_matchings(ladder) == linear([[3, 1, -1], [1, 0, 0], [0, 1, 0]], [7, 2, 1], 5998)[0]


@pytest.mark.parametrize(("k", "n"), [(2, 6000), (3, 3000), (5, 1500)])
def test_graphs_with_hubs_have_the_counts_that_primes_give(k, n, tmp_path):
    graph = partial_k_tree(k, n)
    assert estimate_cost(graph).engine == INTEGERS
    # A checkpoint keeps residues: with one the count is taken modulo primes.
    sets = count_independent_sets(graph, checkpoint=tmp_path / "sets")
    assert count_independent_sets(graph) == sets
    small = partial_k_tree(k, 60)
    together = 120 * 60, np.concatenate([shuffled(small, seed)[1] + 60 * seed for seed in range(120)])
    assert count_independent_sets(together) == count_independent_sets(small) ** 120
    assert count_matchings(together) == count_matchings(small) ** 120


def test_loops_parallel_edges_and_single_vertices():
    n, edges = path(13_000)
    loops = np.array([(v, v) for v in range(0, n, 1000)])
    alone = n + 7, np.concatenate([edges, edges[::10], loops])
    # A looped vertex is never in: pieces between them.
    assert count_independent_sets(alone) == 2**7 * fibonacci(1001) ** 13
    cut = np.concatenate([edges, edges])
    doubled = linear([[1, 2], [1, 0]], [1, 1], n - 1)[0]
    assert count_matchings((n, cut)) == doubled


def test_executors_checkpoints_and_limits_have_the_same_answer(tmp_path):
    graph = recursive_tree(13_000)
    expected = count_independent_sets(graph)
    with ThreadPoolExecutor(2) as executor:
        assert count_independent_sets(graph, executor=executor) == expected
        assert count_matchings(graph, executor=executor) == count_matchings(graph)
    assert count_independent_sets(graph, checkpoint=tmp_path / "kept") == expected
    assert count_independent_sets(graph, memory_limit=2**22) == expected
    assert not list(tmp_path.iterdir())


def test_a_forecast_of_a_million_vertices_is_short_and_an_interrupt_is_heard():
    graph = recursive_tree(1_000_000)
    cost = estimate_cost(graph)
    assert cost.engine == INTEGERS
    assert cost.primes == 1
    assert cost.seconds < 60
    assert cost.bytes < 2**30
    for seconds in (0.3, 1.0):
        answered = interrupted_after(lambda: count_independent_sets(graph), seconds)
        assert answered is None or answered[1] < 0.6  # .01 to .06; .4 once, where the tree is made of the order


def test_treewidth_seven_at_a_hundred_thousand_vertices_is_counted():
    # Copies of one component beside hubs: two ways to one number.
    graph = partial_k_tree(7, 40_000)
    count = count_independent_sets(graph)
    assert count.bit_length() > 20_000
    doubled = 80_000, np.concatenate([graph[1], graph[1] + 40_000])
    assert count_independent_sets(doubled) == count**2
