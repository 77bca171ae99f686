"""Chromatic and Tutte polynomials, Potts and Ising models: brute force, laws, duality, transfer matrices, networkx."""

import itertools
import math
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import networkx
import numpy as np
import pytest
from counting_oracle import partial_k_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import lattices
from quincunx.counting import (
    TuttePolynomial,
    chromatic_polynomial,
    count_spanning_trees,
    estimate_cost,
    potts_partition_function,
    potts_polynomial,
    tutte_polynomial,
)
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, cycle, path


def components(n, edges):
    """Return how many components edges leave, by merging names."""
    name = list(range(n))
    for u, v in edges:
        old, new = name[u], name[v]
        name = [new if x == old else x for x in name]
    return len(set(name))


def by_subsets(n, edges):
    """Return how many subsets there are with k components and size s, for each (k, s)."""
    found = {}
    for size in range(len(edges) + 1):
        for chosen in itertools.combinations(edges, size):
            key = components(n, chosen), size
            found[key] = found.get(key, 0) + 1
    return found


def tutte_by_subsets(n, edges, x, y):
    everything = components(n, edges)
    terms = by_subsets(n, edges).items()
    return sum(t * (x - 1) ** (k - everything) * (y - 1) ** (k + size - n) for (k, size), t in terms)


def polynomial(coefficients, x):
    return sum(c * x**k for k, c in enumerate(coefficients))


@st.composite
def multigraphs(draw, edges=10):
    n = draw(st.integers(1, 7))
    ends = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(ends, ends), max_size=edges))


@settings(max_examples=80, deadline=None)
@given(multigraphs(12))
def test_all_three_are_the_sums_over_all_subsets_of_edges(graph):
    n, edges = graph
    sums = by_subsets(n, edges)
    tutte = tutte_polynomial(graph)
    for x, y in [(1, 1), (2, 0), (0, 2), (-3, 5), (Fraction(1, 2), Fraction(-7, 3))]:
        assert tutte(x, y) == tutte_by_subsets(n, edges, x, y)
    assert all(t >= 0 for row in tutte.coefficients for t in row)
    colorings = chromatic_polynomial(graph)
    for q in range(-2, 5):
        assert polynomial(colorings, q) == sum(t * q**k * (-1) ** size for (k, size), t in sums.items())
    for q in [2, -3, Fraction(5, 3)]:
        expected = [sum(t * q**k for (k, size), t in sums.items() if size == s) for s in range(len(edges) + 1)]
        assert potts_polynomial(graph, q) == expected


@settings(max_examples=60, deadline=None)
@given(multigraphs(7), st.data())
def test_weights_of_edges_are_multiplied_over_the_subset(graph, data):
    n, edges = graph
    numbers = st.sampled_from([0, 1, -1, 2, -3, Fraction(1, 2), Fraction(-7, 3), 0.25])
    weights = [data.draw(numbers) for _ in edges]
    q, v = data.draw(st.sampled_from([0, 1, 2, -1, Fraction(3, 2)])), data.draw(numbers)
    expected = 0
    for chosen in itertools.product([0, 1], repeat=len(edges)):
        taken = [i for i, c in enumerate(chosen) if c]
        term = Fraction(q) ** components(n, [edges[i] for i in taken])
        expected += term * math.prod(Fraction(v) * Fraction(weights[i]) for i in taken)
    found = potts_partition_function(graph, q, v, weight=weights)
    assert found == expected
    order = data.draw(st.permutations(range(n)))
    assert potts_partition_function(graph, q, v, weight=weights, order=order) == expected


@settings(max_examples=40, deadline=None)
@given(multigraphs(10))
def test_states_of_spins_make_the_same_sum_and_signs_of_the_high_temperature_expansion_too(graph):
    n, edges = graph
    for q, v in [(2, 3), (3, -1), (3, Fraction(1, 2))]:
        spins = itertools.product(range(q), repeat=n)
        assert potts_partition_function(graph, q, v) == sum(
            math.prod(1 + v * (s[a] == s[b]) for a, b in edges) for s in spins
        )
    # Ising: 1 + v = (1 + t)/(1 - t), and only even subgraphs are left: the degree of each vertex is even.
    t = Fraction(1, 3)
    even = 0
    for chosen in itertools.product([0, 1], repeat=len(edges)):
        ends = [v for edge, c in zip(edges, chosen, strict=True) if c for v in edge]
        even += t ** sum(chosen) if all(ends.count(v) % 2 == 0 for v in range(n)) else 0
    expected = 2**n * even / (1 - t) ** len(edges)
    assert potts_partition_function(graph, 2, 2 * t / (1 - t)) == expected


@settings(max_examples=100, deadline=None)
@given(multigraphs(16), st.data())
def test_deletion_and_contraction(graph, data):
    n, edges = graph
    if not edges:
        assert tutte_polynomial(graph).coefficients == ((1,),)
        return
    e = data.draw(st.integers(0, len(edges) - 1))
    (u, v), rest = edges[e], edges[:e] + edges[e + 1 :]
    contracted = (n, [tuple(u if x == v else x for x in edge) for edge in rest])
    x, y = 3, Fraction(5, 2)
    whole, deleted, merged = (tutte_polynomial(g)(x, y) for g in (graph, (n, rest), contracted))
    if u == v:
        assert whole == y * deleted
    elif components(n, rest) > components(n, edges):
        assert whole == x * merged
    else:
        assert whole == deleted + merged


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 14), st.integers(0, 2**32))
def test_larger_graphs_keep_the_laws(n, seed):
    rng = random.Random(seed)
    graph = (n, [tuple(rng.sample(range(n), 2)) for _ in range(rng.randrange(3 * n))])
    tutte, colorings = tutte_polynomial(graph), chromatic_polynomial(graph)
    m, connected = len(graph[1]), components(*graph) == 1
    assert tutte(2, 2) == 2**m
    assert (tutte(1, 1) if connected else 0) == count_spanning_trees(graph)
    assert tutte(2, 0) == abs(polynomial(colorings, -1))
    assert sum(map(sum, tutte.coefficients)) == tutte(1, 1)
    for q, v in [(3, 2), (-2, 5), (Fraction(1, 2), 3)]:
        value = potts_partition_function(graph, q, v)
        assert value == polynomial(potts_polynomial(graph, q), v)
        x, y = 1 + Fraction(q, v), 1 + v
        assert value == tutte(x, y) * (x - 1) ** components(*graph) * (y - 1) ** n
    assert potts_partition_function(graph, 4, -1) == polynomial(colorings, 4)


def test_closed_forms_of_families():
    q = [-4, 0, 3, 7]
    for n in range(1, 30):
        clique = chromatic_polynomial(complete(n)) if n < 26 else None
        tree = chromatic_polynomial(path(n))
        for k in q:
            if clique:
                assert polynomial(clique, k) == math.prod(k - i for i in range(n))
            assert polynomial(tree, k) == k * (k - 1) ** (n - 1)
    for n in range(3, 12):
        ring = cycle(n)
        assert [polynomial(chromatic_polynomial(ring), k) for k in q] == [(k - 1) ** n + (-1) ** n * (k - 1) for k in q]
        assert tutte_polynomial(ring).coefficients == ((0, 1), *[(1, 0)] * (n - 1))
        assert tutte_polynomial((2, [(0, 1)] * n)).coefficients == (tuple([0] + [1] * (n - 1)), (1,) + (0,) * (n - 1))
    # Forests of labeled trees and connected labeled graphs (OEIS A001858, A001187).
    cliques = [tutte_polynomial(complete(n)) for n in range(1, 9)]
    assert [t(2, 1) for t in cliques] == [1, 2, 7, 38, 291, 2932, 36961, 561948]
    assert [t(1, 2) for t in cliques] == [1, 1, 4, 38, 728, 26704, 1866256, 251548592]


def test_petersen_graph():
    petersen = networkx.petersen_graph()
    # N. Biggs (1993), Algebraic Graph Theory, 2nd ed., 13b.
    assert tutte_polynomial(petersen)(2, 0) == 16680
    assert tutte_polynomial(petersen)(1, 1) == 2000
    assert [polynomial(chromatic_polynomial(petersen), q) for q in range(5)] == [0, 0, 0, 120, 12960]
    assert tutte_polynomial(petersen)(0, -3) == 0, "no flow of four values"
    assert tutte_polynomial(petersen)(0, -4) == 240


def colored(rows, cols, q):
    """Return the number of proper colorings of a grid, by words of colors of a row."""
    words = np.array([w for w in itertools.product(range(q), repeat=cols) if all(map(int.__ne__, w, w[1:]))])
    follow = (words[:, None, :] != words[None, :, :]).all(axis=2).astype(object)
    vector = np.ones(len(words), dtype=object)
    for _ in range(rows - 1):
        vector = follow @ vector
    return int(vector.sum())


@pytest.mark.parametrize(("rows", "cols", "q"), [(20, 6, 3), (9, 8, 3), (7, 5, 4), (30, 3, 5)])
def test_colorings_of_grids_are_those_of_a_transfer_matrix_of_colors(rows, cols, q):
    grid = lattices.square(rows, cols)
    expected = colored(rows, cols, q)
    assert polynomial(chromatic_polynomial(grid), q) == expected
    assert potts_partition_function(grid, q, -1) == expected


def spins(rows, cols, q, v):
    """Return the sum over all spins of a grid, by words of a row."""
    words = np.array(list(itertools.product(range(q), repeat=cols)))
    powers = np.array([(1 + v) ** k for k in range(cols + 1)], dtype=object)
    along = powers[(words[:, 1:] == words[:, :-1]).sum(axis=1)]
    across = powers[(words[:, None, :] == words[None, :, :]).sum(axis=2)]
    vector = along
    for _ in range(rows - 1):
        vector = along * (across @ vector)
    return vector.sum()


@pytest.mark.parametrize(
    ("rows", "cols", "q", "v"), [(9, 7, 2, 1), (30, 5, 2, -2), (6, 5, 3, Fraction(1, 2)), (5, 4, 4, 2), (12, 6, 2, 3)]
)
def test_spins_of_grids_are_those_of_a_transfer_matrix(rows, cols, q, v):
    grid, expected = lattices.square(rows, cols), spins(rows, cols, q, v)
    assert potts_partition_function(grid, q, v) == expected
    assert polynomial(potts_polynomial(grid, q), v) == expected


def test_partitions_of_clusters_and_of_colors_agree_on_wide_graphs():
    king = lattices.king(5, 5)
    tutte = tutte_polynomial(king)
    for q, v in [(2, 1), (3, -1), (4, 2), (7, 3)]:
        value = potts_partition_function(king, q, v)
        assert value == tutte(1 + Fraction(q, v), 1 + v) * q * Fraction(v) ** 24
        assert value == polynomial(potts_polynomial(king, q), v)
        # As a rational function of q between integers only clusters are there.
        near = potts_partition_function(king, q + Fraction(1, 10**40), v)
        assert abs(near / value - 1) < Fraction(1, 10**35) if value else abs(near) < Fraction(1, 10**10)


def test_three_colorings_of_squares():
    # OEIS A020698.
    known = [3, 18, 246, 7812, 580986, 101596896]
    assert [polynomial(chromatic_polynomial(lattices.square(n, n)), 3) for n in range(1, 7)] == known


@pytest.mark.parametrize("kind", ["king", "triangular", "honeycomb"])
@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_lattices_of_other_kinds(kind, boundary):
    lattice = lattices.named(kind, *((2, 3) if kind == "honeycomb" else (4, 3)), boundary)
    n, edges = lattice.num_vertices, lattice.edges.tolist()
    tutte = tutte_polynomial(lattice)
    assert tutte(1, 1) == count_spanning_trees(lattice)
    assert tutte(2, 2) == 2 ** len(edges)
    adjacent = [[(min(e) if max(e) == v else -1) for e in edges if v in e] for v in range(n)]

    def extend(colors, v, q):
        if v == n:
            return 1
        free = {c for c in range(q)} - {colors[u] for u in adjacent[v] if 0 <= u < v}
        free = free if not any(a == b == v for a, b in edges) else set()
        return sum(extend([*colors, c], v + 1, q) for c in free)

    assert polynomial(chromatic_polynomial(lattice), 3) == extend([], 0, 3)


def dual_of_grid(rows, cols):
    """Return the dual of a grid: a vertex for each square and one for the outer face, an edge across each edge."""
    outer = (rows - 1) * (cols - 1)

    def face(r, c):
        return r * (cols - 1) + c if 0 <= r < rows - 1 and 0 <= c < cols - 1 else outer

    across = [(face(r - 1, c), face(r, c)) for r in range(rows) for c in range(cols - 1)]
    return outer + 1, across + [(face(r, c - 1), face(r, c)) for r in range(rows - 1) for c in range(cols)]


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 3), (4, 5), (2, 9), (1, 4)])
def test_the_dual_of_a_plane_graph_has_x_and_y_exchanged(rows, cols):
    ours = tutte_polynomial(lattices.square(rows, cols)).coefficients
    theirs = tutte_polynomial(dual_of_grid(rows, cols)).coefficients
    assert tuple(zip(*theirs, strict=True)) == ours


@pytest.mark.parametrize(("k", "n"), [(2, 300), (3, 150), (4, 60)])
def test_treewidth_decides_and_not_the_number_of_vertices(k, n):
    graph = partial_k_tree(k, n, 5, dropped=0.0)
    colorings = chromatic_polynomial(graph)
    # A chordal graph: each new vertex has k colored neighbors that all differ.
    for q in (k, k + 1, 10, -3):
        assert polynomial(colorings, q) == math.prod(q - i for i in range(k)) * (q - k) ** (n - k)
    assert potts_partition_function(graph, 0, 1) == 0
    trees = Fraction(potts_partition_function(graph, Fraction(1, 10**60), Fraction(1, 10**40)) * 10**60)
    leading = trees * 10 ** (40 * (n - 1))
    assert abs(leading / count_spanning_trees(graph) - 1) < Fraction(1, 10**15), "forests of more parts weigh little"


def test_networkx_computes_the_same():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y")
    for graph in [networkx.petersen_graph().subgraph(range(8)), networkx.complete_graph(4), networkx.path_graph(3)]:
        theirs = sympy.Poly(networkx.tutte_polynomial(graph), x, y).as_dict()
        ours = tutte_polynomial(graph).coefficients
        assert {(i, j): t for i, row in enumerate(ours) for j, t in enumerate(row) if t} == theirs
        coefficients = sympy.Poly(networkx.chromatic_polynomial(graph), x).all_coeffs()
        assert chromatic_polynomial(graph) == [int(c) for c in reversed(coefficients)]


def test_a_sum_without_a_term_is_zero():
    assert potts_partition_function(complete(5), 4, -1) == 0
    assert potts_partition_function(lattices.king(4, 4), 3, -1) == 0
    assert potts_partition_function((3, [(0, 1), (1, 2)]), 1, -1) == 0
    # Of two parallel edges one is not taken at all, and the other closes cycles with factor 0.
    assert potts_partition_function((2, [(0, 1)] * 2), 1, 1, weight=[-1, Fraction(1, 2)]) == 0


def test_small_and_empty_graphs():
    assert chromatic_polynomial((0, [])) == [1]
    assert chromatic_polynomial((3, [])) == [0, 0, 0, 1]
    assert chromatic_polynomial((2, [(0, 1), (1, 1)])) == [0]
    assert tutte_polynomial((0, [])).coefficients == ((1,),)
    assert tutte_polynomial((1, [(0, 0)] * 3)).coefficients == ((0, 0, 0, 1),)
    assert potts_partition_function((0, []), 2, 1) == 1
    assert potts_partition_function((1, [(0, 0)]), 5, 2) == 15


def test_a_value_is_a_fraction_where_a_number_has_a_denominator():
    ring = cycle(3)
    half = Fraction(1, 2)
    whole = [potts_partition_function(ring, 2, 1), potts_partition_function(ring, 2, 1, weight=[1, 2.0, 3])]
    assert [type(value) for value in (*whole, potts_partition_function(ring, 2.0, "1"))] == [int] * 3
    broken = [(half, 1, None), (2, half, None), (2, 1, [half, 2, 2])]
    assert {type(potts_partition_function(ring, q, v, weight=w)) for q, v, w in broken} == {Fraction}
    assert potts_polynomial((1, [(0, 0)] * 2), 3) == [3, 6, 3]
    assert potts_polynomial((2, []), 3) == [9]


def test_a_polynomial_is_shown_compared_pickled_and_called():
    tutte = tutte_polynomial(complete(4))
    assert repr(tutte) == "<TuttePolynomial: x**3 + 3*x**2 + 4*x*y + 2*x + y**3 + 3*y**2 + 2*y>"
    assert repr(tutte_polynomial((2, []))) == "<TuttePolynomial: 1>"
    assert "... " in repr(tutte_polynomial(lattices.square(3, 3)))
    assert pickle.loads(pickle.dumps(tutte)) == tutte == TuttePolynomial(tutte.coefficients)
    assert tutte(0.5, 1) == Fraction(1, 8) + Fraction(3, 4) + 2 + 1 + 6
    assert isinstance(tutte(2, 3), int)
    assert isinstance(tutte(0.5, 1), Fraction)
    with pytest.raises(TypeError, match="`x` must be"):
        tutte(None, 1)


def test_weights_of_a_graph_must_be_said():
    heavy = networkx.Graph()
    heavy.add_edge("a", "b", weight=3)
    heavy.add_edge("b", "c")
    for function in (tutte_polynomial, lambda graph, **how: potts_partition_function(graph, 2, 1, **how)):
        with pytest.raises(ValueError, match="`weight` must be said"):
            function(heavy)
    assert tutte_polynomial(heavy, weight=None) == tutte_polynomial(path(3))
    assert tutte_polynomial(heavy, weight="weight") == tutte_polynomial((3, [(0, 1)] * 3 + [(1, 2)]))
    assert potts_partition_function(heavy, 2, 1, weight="weight") == 2 * (2 + 3) * (2 + 1)
    assert chromatic_polynomial(heavy) == [0, 1, -2, 1]
    with pytest.raises(ValueError, match="whole numbers of parallel edges"):
        tutte_polynomial(heavy, weight=[Fraction(1, 2), 1])
    with pytest.raises(ValueError, match="16384 parallel edges in all"):
        tutte_polynomial(heavy, weight=[2**60, 1])
    with pytest.raises(ValueError, match="at least 0"):
        tutte_polynomial(heavy, weight=[-1, 1])
    with pytest.raises(ValueError, match="one entry for each"):
        potts_partition_function(heavy, 2, 1, weight=[1])
    with pytest.raises(ValueError, match="finite"):
        potts_partition_function(heavy, math.inf, 1, weight=None)


def test_what_is_too_wide_is_refused_in_words():
    for function in (chromatic_polynomial, tutte_polynomial, lambda g, **k: potts_partition_function(g, 2, 1, **k)):
        with pytest.raises(TooLargeError, match="set partitions"):
            function(lattices.square(40, 40), memory_limit=1 << 24)
        with pytest.raises(TooLargeError, match="set partitions"):
            function(lattices.square(12, 12), memory_limit=1 << 16)
    assert len(chromatic_polynomial(lattices.square(8, 8), memory_limit=1 << 21)) == 65


def test_threads_executors_and_parts_make_the_same_and_checkpoints_go(tmp_path):
    grid = lattices.square(7, 7)
    expected = chromatic_polynomial(grid)
    assert chromatic_polynomial(grid, threads=3) == expected
    with ThreadPoolExecutor(2) as executor:
        assert chromatic_polynomial(grid, executor=executor) == expected
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done > 0:
            raise KeyboardInterrupt

    where = tmp_path / "state"
    long = lattices.square(11, 11)
    with pytest.raises(KeyboardInterrupt):
        chromatic_polynomial(long, progress=stop, checkpoint=where, threads=1)
    assert where.exists()
    assert seen
    assert chromatic_polynomial(long, checkpoint=where) == chromatic_polynomial(long)
    assert not where.exists()


def test_forecasts():
    cost = estimate_cost(lattices.square(9, 9), "chromatic-polynomial")
    assert (cost.engine, cost.lanes) == ("set partitions", 8)
    assert min(cost.bytes, cost.seconds) > 0
    more = estimate_cost(lattices.square(6, 6), "tutte-polynomial")
    assert more.additions > 1e6
    with pytest.raises(ValueError, match="None for chromatic polynomial"):
        estimate_cost(cycle(4), "chromatic-polynomial", weight=[1] * 4)
    assert estimate_cost(Graph(2, [(0, 1)]), "tutte-polynomial", weight=[3]).primes == 2


def test_long_boxes_are_swept_along():
    # By an order from all sides, whose partitions cross, the same takes a thousand times as long, and as long to plan.
    grid, across = lattices.square(9, 16), [16 * i + j for j in range(16) for i in range(9)]
    assert estimate_cost(grid, "chromatic-polynomial").states < 1e5
    assert chromatic_polynomial(grid) == chromatic_polynomial(grid, order=across)
