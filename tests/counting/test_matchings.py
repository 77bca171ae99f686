"""Perfect and all matchings: known answers, independent methods, laws, bad input."""

import functools
import itertools
import math
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import networkx
import numpy as np
import pytest
from counting_oracle import partial_k_tree
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interrupts import interrupted_after

from quincunx import lattices
from quincunx.counting import (
    count_independent_sets,
    count_matchings,
    count_perfect_matchings,
    estimate_cost,
    independence_polynomial,
    log_matchings,
    log_perfect_matchings,
    matching_polynomial,
    random_perfect_matching,
)
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, cycle
from quincunx.lattices import clique_insert


def by_size(n, edges):
    """Matchings by size, with or without each edge in turn."""

    @functools.cache
    def rest(i, used):
        if i == len(edges):
            return (1,)
        u, v = edges[i]
        without = rest(i + 1, used)
        if u == v or used >> u & 1 or used >> v & 1:
            return without
        with_it = (0, *rest(i + 1, used | 1 << u | 1 << v))
        size = max(len(without), len(with_it))
        pad = lambda terms: terms + (0,) * (size - len(terms))  # noqa: E731
        return tuple(a + b for a, b in zip(pad(without), pad(with_it), strict=True))

    return list(rest(0, 0))


DIMERS = [
    *((lattices.honeycomb(size, size, "torus"), count) for size, count in ((4, 417), (6, 263640), (8, 2249215617))),
    (lattices.honeycomb(10, 10, "torus"), 255635055079809),
    *((lattices.honeycomb(size, size, "cylinder"), 2**size) for size in (3, 4, 7)),
    *((lattices.honeycomb(size, size), 1) for size in (2, 5)),
    *((lattices.truncated_hexagonal(size, size), count) for size, count in ((2, 2), (3, 16), (4, 512))),
    *((lattices.truncated_hexagonal(size, size, "cylinder"), count) for size, count in ((2, 8), (3, 128), (4, 8192))),
    *((lattices.truncated_hexagonal(size, size, "torus"), count) for size, count in ((2, 32), (3, 1024), (4, 131072))),
    *((lattices.square(m, n), count) for m, n, count in ((2, 2, 2), (4, 4, 36), (3, 4, 11), (6, 5, 1183))),
    (lattices.square(8, 8), 12988816),
    (lattices.square(3, 3), 0),
    (lattices.square(4, 4, "torus"), 272),
    (lattices.square(3, 4, "torus"), 50),
    *((lattices.aztec_diamond(n), 2 ** (n * (n + 1) // 2)) for n in (1, 2, 3, 4, 8)),
]


@pytest.mark.parametrize(("lattice", "count"), DIMERS, ids=lambda x: getattr(x, "name", None))
def test_known_dimers(lattice, count):
    assert count_perfect_matchings(lattice) == count
    assert count_perfect_matchings(lattice, method="pfaffian") == count


@pytest.mark.parametrize(
    ("lattice", "count"),
    [
        *((lattices.square(n, n), count) for n, count in enumerate((1, 7, 131, 10012, 2810694), start=1)),
        (lattices.square(3, 3, "torus"), 370),
        (lattices.square(4, 4, "torus"), 41025),
        (lattices.honeycomb(3, 3), 7884),
        (lattices.honeycomb(3, 3, "torus"), 35368),
        (lattices.kagome(2, 2), 700),
        (lattices.truncated_square(2, 2), 4991),
        (lattices.truncated_hexagonal(2, 2), 396900),
        (lattices.triangular(4, 4), 32173),
        (lattices.triangular(4, 4, "torus"), 269921),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_known_numbers_of_all_matchings(lattice, count):
    assert count_matchings(lattice) == count
    assert sum(matching_polynomial(lattice)) == count


@pytest.mark.parametrize(
    ("graph", "count"),
    [
        (complete(5), 416),
        (Graph(6, [(u, v) for u in range(6) for v in range(u) if (u, v) not in ((3, 0), (4, 1), (5, 2))]), 1256),
        (Graph(5, [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)]), 20),
        (lattices.square(3, 2, "torus", multigraph=True), 1376),
    ],
)
def test_perfect_matchings_of_clique_insertions(graph, count):
    assert count_perfect_matchings(clique_insert(graph)) == count
    assert count_perfect_matchings(clique_insert(graph), method="even-subgraphs") == count
    assert count_perfect_matchings(clique_insert(graph), method="frontier") == count


@pytest.mark.parametrize("pbc", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("name", "k"), [("square", 1), ("honeycomb", 1), ("honeycomb", 2), ("triangular", 1), ("kagome", 1), ("martini", 1)]
)
def test_insertions_cut_afterwards_have_the_matchings_of_their_frontier(name, k, pbc):
    for extent in ((2, 3), (3, 2), (1, 3), (3, 3)):
        if name == "triangular" and max(extent) == 3 == min(extent):
            continue
        for twist in (0, 1) if all(pbc) else (0,):
            base = lattices.named(name, *extent, pbc=pbc, twist=twist, multigraph=True)
            if (base.edges[:, 0] == base.edges[:, 1]).any():
                continue
            lattice = base.clique_insert(k, multigraph=True)
            count = count_perfect_matchings(lattice, method="frontier")
            assert count_perfect_matchings(lattice, method="even-subgraphs") == count
            if k == 1:
                before = clique_insert(base)
                found = count_perfect_matchings(before, method="even-subgraphs")
                assert found == count_perfect_matchings(before, method="frontier")
                assert found == count or not all(pbc)


def test_cells_of_one_s_own_remember_what_they_were_inserted_into():
    lieb = lattices.UnitCell.named("square").subdivide()
    lattice = lattices.Lattice(lieb, (3, 4), "torus").clique_insert(2)
    count = count_perfect_matchings(lattice, method="even-subgraphs")
    assert count == count_perfect_matchings(lattice, method="frontier")
    assert count_perfect_matchings(pickle.loads(pickle.dumps(lattice)), method="even-subgraphs") == count
    copied = lattices.UnitCell(lattice.unit_cell.basis_vectors, lattice.unit_cell.site_offsets, lattice.unit_cell.bonds)
    assert copied == lattice.unit_cell
    with pytest.raises(ValueError, match="even-subgraphs"):
        count_perfect_matchings(lattices.Lattice(copied, (3, 4), "torus"), method="even-subgraphs")


@pytest.mark.parametrize(
    "graph",
    [
        complete(4),
        cycle(6),
        Graph(0, []),
        Graph(4, [(0, 1), (2, 3), (1, 2), (1, 2)]),
        Graph(6, [(0, 1), (2, 3), (4, 5), (0, 2), (2, 4)]),
        Graph(2, [(0, 1), (0, 1)]),
        lattices.square(3, 4),
        lattices.aztec_diamond(2),
    ],
)
def test_what_is_no_clique_insertion_is_not_taken_for_one(graph):
    with pytest.raises(ValueError, match="`method` must be 'even-subgraphs' only for a clique insertion"):
        count_perfect_matchings(graph, method="even-subgraphs")


def test_a_wide_bathroom_lattice_is_counted_on_the_square_below():
    lattice = lattices.named("modified-bathroom", 11, 11)
    with pytest.raises(MemoryError):
        count_perfect_matchings(lattice, method="frontier", memory_limit=10**4)
    count = count_perfect_matchings(lattice, memory_limit=10**5)
    assert count == count_perfect_matchings(lattice, threads=1)
    # Free energy per dimer, between the smallest and the largest number of ways at a vertex.
    assert 0.1 < math.log(count) / (lattice.num_vertices / 2) < 0.6


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_clique_insertions_of_subcubic_graphs_have_a_power_of_two(data):
    n = data.draw(st.integers(2, 8))
    degrees, edges = [0] * n, []
    for u, v in data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14)):
        if u != v and max(degrees[u], degrees[v]) < 3:
            edges.append((u, v))
            degrees[u] += 1
            degrees[v] += 1
    import networkx

    components = networkx.number_connected_components(networkx.Graph([*edges, *((v, v) for v in range(n))]))
    assert count_perfect_matchings(clique_insert((n, edges))) == 2 ** (len(edges) - n + components)


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_random_multigraphs_by_all_methods(data):
    n = data.draw(st.integers(0, 9))
    vertex = st.integers(0, max(n - 1, 0))
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=14 if n else 0))
    expected = by_size(n, edges)
    assert matching_polynomial((n, edges)) == expected[: len(matching_polynomial((n, edges)))]
    assert sum(matching_polynomial((n, edges))) == sum(expected)
    assert count_matchings((n, edges)) == sum(expected)
    perfect = expected[n // 2] if n % 2 == 0 and len(expected) > n // 2 else 0
    assert count_perfect_matchings((n, edges)) == perfect
    assert count_perfect_matchings((n, edges), method="frontier") == perfect


NAMES = ["square", "king", "triangular", "honeycomb", "kagome", "4-8-8", "3-12-12"]


def agrees_with_the_frontier(lattice):
    """Whether the chosen method counts as the frontier, and a random matching is drawn where there is one."""
    count = count_perfect_matchings(lattice, method="frontier")
    assert count_perfect_matchings(lattice) == count, lattice
    try:
        assert count_perfect_matchings(lattice, method="pfaffian") == count, lattice
        drawn = True
    except ValueError as error:
        assert "'frontier' for a graph that is not drawn on a plane" in str(error)  # noqa: PT017
        drawn = False
    if lattice.num_vertices <= 40:
        if count == 0:
            with pytest.raises(ValueError, match="must have a perfect matching"):
                random_perfect_matching(lattice, rng=1)
        else:
            chosen = lattice.edges[random_perfect_matching(lattice, rng=1)]
            assert sorted(chosen.ravel().tolist()) == list(range(lattice.num_vertices)), lattice
    return drawn


@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
@pytest.mark.parametrize("name", NAMES)
def test_every_small_lattice_has_the_perfect_matchings_of_its_frontier(name, boundary):
    sizes = [(rows, cols) for rows in range(1, 7) for cols in range(1, 7)]
    drawn = [agrees_with_the_frontier(lattices.named(name, *size, boundary, multigraph=True)) for size in sizes]
    assert all(drawn) or name == "king" or boundary != "free"


def test_drawings_that_cross_have_the_perfect_matchings_of_their_frontier():
    source = random.Random(2311)
    drawn = []
    while len(drawn) < 1500:
        sites = [(source.randrange(100) / 100, source.randrange(100) / 100) for _ in range(source.randint(1, 4))]
        end = partial(source.randrange, len(sites))
        bonds = [(end(), end(), (source.randint(-2, 2), source.randint(-2, 2))) for _ in range(source.randint(1, 5))]
        extent, boundary = (source.randint(1, 4), source.randint(1, 3)), source.choice(["free", "cylinder", "torus"])
        try:
            lattice = lattices.Lattice(lattices.UnitCell(np.eye(2), sites, bonds), extent, boundary, multigraph=True)
        except ValueError:
            continue  # a bond twice, or of no length
        drawn.append(agrees_with_the_frontier(lattice))
    assert 100 < sum(drawn) < 1400


def test_petersen_and_other_graphs_that_are_not_planar():
    petersen = Graph(
        10,
        [(i, (i + 1) % 5) for i in range(5)]
        + [(i, i + 5) for i in range(5)]
        + [(i + 5, (i + 2) % 5 + 5) for i in range(5)],
    )
    assert count_perfect_matchings(petersen) == 6
    assert count_perfect_matchings(complete(8)) == 105
    assert count_perfect_matchings(lattices.king(4, 4)) == count_perfect_matchings(lattices.king(4, 4).graph)


def test_empty_odd_and_looped_graphs():
    assert count_perfect_matchings((0, [])) == count_matchings((0, [])) == 1
    assert count_perfect_matchings((3, [(0, 1), (1, 2)])) == 0
    assert count_perfect_matchings(cycle(2, multigraph=True)) == 2
    assert count_matchings((1, [(0, 0)])) == 1
    assert matching_polynomial((0, [])) == [1]
    assert log_perfect_matchings((1, [])) == -math.inf
    assert log_matchings((2, [(0, 1)])) == math.log(2)


def test_an_order_threads_and_executors_change_nothing():
    lattice = lattices.square(6, 6)
    count = count_matchings(lattice, threads=1)
    assert count == count_matchings(lattice, order=list(range(35, -1, -1)), threads=2)
    with ThreadPoolExecutor(2) as pool:
        assert count == count_matchings(lattice, executor=pool)
        assert count_perfect_matchings(lattices.kagome(4, 4, "torus"), executor=pool) == count_perfect_matchings(
            lattices.kagome(4, 4, "torus")
        )


def test_an_order_of_labels_goes_with_weights():
    edges = [("a", "b", 2), ("b", "c", 3), ("c", "d", Fraction(1, 2)), ("d", "a", 5), ("a", "c", 1), ("d", "e", 4)]
    graph = networkx.Graph()
    graph.add_weighted_edges_from(edges)
    weight = [graph.edges[edge]["weight"] for edge in graph.edges]
    sizes = [Fraction(0)] * 3
    for picked in itertools.chain.from_iterable(itertools.combinations(edges, k) for k in range(3)):
        ends = [end for *pair, _ in picked for end in pair]
        if len(set(ends)) == len(ends):
            sizes[len(picked)] += math.prod((w for *_, w in picked), start=Fraction(1))
    for order in itertools.permutations("abcde"):
        assert count_matchings(graph, weight="weight", order=order) == sum(sizes)
    assert matching_polynomial(graph, weight=weight, order="edcba") == sizes
    assert estimate_cost(graph, what="matchings", weight="weight", order="edcba").engine == "frontier"
    graph.remove_node("e")
    perfect = count_perfect_matchings(graph, weight="weight", method="frontier", order="bdac")
    assert perfect == 2 * Fraction(1, 2) + 3 * 5
    nothing = dict.fromkeys(graph.edges, 0)
    networkx.set_edge_attributes(graph, nothing, "weight")
    assert count_matchings(graph, weight="weight", order="bdac") == 1


def test_bad_input_is_refused_with_the_argument_named():
    with pytest.raises(ValueError, match="method"):
        count_perfect_matchings(lattices.king(4, 4), method="fkt")
    with pytest.raises(ValueError, match="method"):
        count_perfect_matchings(lattices.square(4, 4, "torus"), method="fkt")
    with pytest.raises(ValueError, match="method"):
        count_perfect_matchings(complete(6), method="pfaffian")
    with pytest.raises(ValueError, match="method"):
        count_perfect_matchings(lattices.square(4, 4, "torus"), method="product")
    with pytest.raises(ValueError, match="order"):
        count_perfect_matchings(lattices.square(2, 2), method="fkt", order=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="order"):
        count_matchings(lattices.square(2, 2), order=[0, 1, 2])
    with pytest.raises(TypeError, match="graph"):
        count_matchings("square")
    with pytest.raises(MemoryError, match="states"):
        count_matchings(lattices.square(30, 30), memory_limit=10**6)


def by_elimination(n, edges):
    """Matchings, by tables of covered sets: the factors of a vertex are multiplied and it is summed out."""
    factors = [{frozenset(): 1, frozenset(edge): 1} for edge in edges]
    factors += [{frozenset(): 1}]
    for v in range(n - 1, -1, -1):  # a partial k-tree is taken apart as it was made
        mine = [f for f in factors if any(v in covered for covered in f)]
        factors = [f for f in factors if not any(v in covered for covered in f)]
        product = {frozenset(): 1}
        for factor in mine:
            terms = {}
            for a, x in product.items():
                for b, y in factor.items():
                    if not a & b:
                        terms[a | b] = terms.get(a | b, 0) + x * y
            product = terms
        summed = {}
        for covered, x in product.items():
            rest = covered - {v}
            summed[rest] = summed.get(rest, 0) + x
        factors.append(summed)
    return math.prod(f[frozenset()] for f in factors)


@pytest.mark.parametrize(("k", "n"), [(1, 400), (2, 300), (3, 150), (4, 60)])
def test_partial_k_trees_have_the_matchings_of_their_elimination(k, n):
    graph = partial_k_tree(k, n, 1)
    count = by_elimination(*graph)
    assert count_matchings(graph) == count == count_matchings(graph, threads=1)
    assert sum(matching_polynomial(graph)) == count


def test_a_graph_of_small_treewidth_is_easy_however_large():
    graph = partial_k_tree(5, 1000, 2)
    cost = estimate_cost(graph, "matchings")
    assert cost.engine == "tree decomposition over the integers"
    assert cost.bytes < 10**6
    count = count_matchings(graph)
    # The edges at one vertex, one by one, and none of them: n(G) = n(G - v) + sum over u of n(G - v - u).
    v = 500
    edges = graph[1].tolist()
    ends = [u if w == v else w for u, w in edges if v in (u, w)]
    smaller = [[edge for edge in edges if not {v, *gone} & set(edge)] for gone in [(), *((u,) for u in ends)]]
    assert count == sum(count_matchings((graph[0], edges)) for edges in smaller)
    with pytest.raises(TooLargeError):
        count_matchings(graph, order=range(1000))


def test_long_paths_and_cycles_and_stars_have_closed_forms():
    # The numbers of Fibonacci and of Lucas.
    n = 3000
    fibonacci = [1, 1]
    while len(fibonacci) <= n + 1:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    order = random.Random(3).sample(range(n), n)
    path = [(order[i], order[i + 1]) for i in range(n - 1)]
    assert count_matchings((n, path)) == fibonacci[n]
    assert count_matchings((n, [*path, (order[-1], order[0])])) == fibonacci[n] + fibonacci[n - 2]
    assert count_matchings((n, [(0, v) for v in range(1, n)])) == n
    assert count_perfect_matchings((n, path), method="frontier") == 1


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_matchings_are_the_independent_sets_of_the_line_graph(data):
    n = data.draw(st.integers(2, 12))
    vertex = st.integers(0, n - 1)
    edges = sorted(
        {(min(e), max(e)) for e in data.draw(st.lists(st.tuples(vertex, vertex), max_size=20)) if e[0] != e[1]}
    )
    joined = [(i, j) for j in range(len(edges)) for i in range(j) if set(edges[i]) & set(edges[j])]
    line = Graph(len(edges), joined)
    assert count_matchings((n, edges)) == count_independent_sets(line)
    assert matching_polynomial((n, edges)) == independence_polynomial(line)


def test_long_thin_tori_are_counted_by_sums_along_them():
    # By Pfaffians, whose last front the edges round the short side make, 45 minutes are forecast for 3 x 4000.
    for rows, cols in [(3, 300), (4, 500), (5, 260)]:
        lattice = lattices.square(rows, cols, "torus")
        count = count_perfect_matchings(lattice, method="pfaffian")
        assert count_perfect_matchings(lattice) == count
        assert count_perfect_matchings(lattice, memory_limit=10**5) == count  # Pfaffians take a megabyte and more
    assert estimate_cost(lattices.square(3, 4000, "torus"), "perfect-matchings").seconds < 10
    for shape in ((8, 600), (600, 8)):  # a cylinder is as good as a plane
        assert estimate_cost(lattices.square(*shape, "cylinder"), "perfect-matchings").engine == "Kasteleyn elimination"
    # Sets i and j of a column's vertices are covered by edges to its two neighbors; the rest is a pair or nothing.
    rest = [[7 & ~(i | j) if not i & j else 7 for j in range(8)] for i in range(8)]
    matrix = np.array([[int(left.bit_count() in (0, 2)) for left in row] for row in rest], dtype=object)
    for cols in (300, 4000):
        count = np.linalg.matrix_power(matrix, cols).trace()
        assert count_perfect_matchings(lattices.square(3, cols, "torus")) == count


@pytest.mark.parametrize("seconds", [0.3, 1.5])
def test_an_interrupt_is_heard_while_pfaffians_are_planned(seconds):
    lattice = lattices.square(3, 16_000, "torus")
    answered = interrupted_after(lambda: count_perfect_matchings(lattice, method="pfaffian"), seconds)
    assert answered is None or answered[1] < 0.6
