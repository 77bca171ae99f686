"""Automorphism groups: known answers, brute force, laws, refusals."""

import _thread
import itertools
import math
import pickle
import threading
import time
import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interrupts import uncollected

from quincunx import graphs
from quincunx.errors import TooLargeError
from quincunx.graphs import AutomorphismGroup, Graph, automorphism_group

FIXED = settings(derandomize=True, deadline=None, max_examples=60)


def complete_bipartite(a, b):
    return Graph(a + b, [(i, a + j) for i in range(a) for j in range(b)])


def paley(p):
    squares = {x * x % p for x in range(1, p)}
    return Graph(p, [(a, b) for a in range(p) for b in range(a) if (a - b) % p in squares])


def shrikhande():
    steps = [(0, 1), (1, 0), (1, 1)]
    return Graph(16, [(v, (v // 4 + r) % 4 * 4 + (v % 4 + c) % 4) for v in range(16) for r, c in steps])


def johnson(n, k):
    words = list(itertools.combinations(range(n), k))
    pairs = itertools.combinations(range(len(words)), 2)
    return Graph(len(words), [(a, b) for a, b in pairs if len({*words[a], *words[b]}) == k + 1])


def two_squares():
    return Graph(8, [(v, v // 4 * 4 + (v + 1) % 4) for v in range(8)])


KNOWN = {
    "H(2,3)": (graphs.hamming(2, 3), 72, 1, 3),
    "Q3": (graphs.hamming(3, 2), 48, 1, 4),
    "C5": (graphs.cycle(5), 10, 1, 3),
    "C6": (graphs.cycle(6), 12, 1, 4),
    "C7": (graphs.cycle(7), 14, 1, 4),
    "K4": (graphs.complete(4), 24, 1, 2),
    "Petersen": (nx.petersen_graph(), 120, 1, 3),
    "Paley(13)": (paley(13), 78, 1, 3),
    "4x4 rook": (graphs.hamming(2, 4), 1152, 1, 3),
    "Shrikhande": (shrikhande(), 192, 1, 4),
    "P3": (graphs.path(3), 2, 2, 5),
    "P4": (graphs.path(4), 2, 2, 8),
    "P5": (graphs.path(5), 2, 3, 13),
    "star": (complete_bipartite(1, 3), 6, 2, 5),
    "K(2,3)": (complete_bipartite(2, 3), 12, 2, 6),
    "diamond": (Graph(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]), 4, 2, 6),
    "asym6": (Graph(6, [(0, 2), (1, 2), (1, 3), (1, 4), (2, 4), (3, 5)]), 1, 6, 36),
    "fork6": (Graph(6, [(0, 1), (1, 2), (1, 4), (1, 5), (2, 3)]), 6, 4, 17),
    "2 x C4": (two_squares(), 128, 1, 4),
    "Q4": (graphs.hamming(4, 2), 384, 1, 5),
    "C4 x C4": (graphs.torus(4, 4), 384, 1, 5),
    "5x5 grid": (graphs.grid(5, 5), 8, 6, 91),
    "5x7 torus": (graphs.torus(5, 7), 140, 1, 12),
    "Tutte": (nx.tutte_graph(), 3, 16, 706),
    "J(7,3)": (johnson(7, 3), 5040, 1, 4),
    "30 points": (Graph(30, []), math.factorial(30), 1, 2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_orders_orbits_and_ranks_are_the_known_ones(name):
    graph, order, orbits, rank = KNOWN[name]
    group = automorphism_group(graph)
    assert type(group.order) is int
    assert (group.order, len(set(group.orbits.tolist())), group.rank) == (order, orbits, rank)
    assert group.is_transitive == (orbits == 1)
    assert group.orbitals().rank == rank


@pytest.mark.parametrize(("side", "rank"), [(6, 10), (8, 15), (32, 153), (64, 561)])
def test_square_tori_of_even_side_have_the_rank_of_folded_differences(side, rank):
    group = automorphism_group(graphs.torus(side, side))
    assert (group.order, group.rank) == (8 * side * side, rank)
    assert rank == math.comb(side // 2 + 2, 2)


@pytest.mark.parametrize(("side", "orbits", "rank"), [(32, 136, 131328), (64, 528, 2098176)])
def test_square_grids_have_as_many_orbitals_as_counted(side, orbits, rank):
    group = automorphism_group(graphs.grid(side, side))
    assert (group.order, group.orbits.max() + 1, group.rank) == (8, orbits, rank)


@pytest.mark.parametrize(
    ("length", "letters"),
    [(0, 3), (1, 1), (4, 1), (1, 2), (1, 6), (2, 2), (2, 3), (3, 3), (2, 6), (5, 2), (8, 2), (3, 5)],
)
def test_hamming_groups_without_a_search_are_those_found_by_one(length, letters):
    known = AutomorphismGroup.hamming(length, letters)
    graph = graphs.hamming(length, letters)
    found = automorphism_group(graph)
    assert known.order == found.order
    assert known.order == (math.factorial(letters) ** length * math.factorial(length) if letters > 1 else 1)
    assert known.rank == found.rank == (length + 1 if letters > 1 else 1)
    np.testing.assert_array_equal(known.orbitals().labels(), found.orbitals().labels())
    np.testing.assert_array_equal(known.orbitals().labels(), graphs.distances(graph))
    checked = AutomorphismGroup.from_generators(known.num_points, known.generators, graph=graph)
    assert checked.order == known.order
    assert (known.stabilizer(0).order if letters > 1 else 1) == known.order // known.num_points


def test_the_large_rook_graph_has_its_exact_order():
    group = AutomorphismGroup.hamming(2, 64)
    assert (group.order, group.rank) == (2 * math.factorial(64) ** 2, 3)


def by_brute_force(graph):
    """Return all automorphisms of a networkx graph as rows, by trying every permutation."""
    n = len(graph)
    permutations = np.array(list(itertools.permutations(range(n))))
    matrix = nx.to_numpy_array(graph, nodelist=range(n), dtype=bool)
    return permutations[(matrix[permutations[:, :, None], permutations[:, None, :]] == matrix).all(axis=(1, 2))]


def small_connected_graphs():
    """Return the 143 connected graphs with one to six vertices."""
    return [graph for graph in nx.graph_atlas_g() if 1 <= len(graph) <= 6 and nx.is_connected(graph)]


def test_all_connected_graphs_with_at_most_six_vertices_agree_with_brute_force():
    small = small_connected_graphs()
    assert len(small) == 143
    for graph in small:
        n = len(graph)
        elements = by_brute_force(graph)
        group = automorphism_group(graph)
        assert group.order == len(elements)
        assert set(map(tuple, group.generators)) <= set(map(tuple, elements))
        # The smallest point an automorphism maps each vertex to tells its orbit; the same on pairs.
        names = elements.min(axis=0)
        np.testing.assert_array_equal(group.orbits, np.unique(names, return_inverse=True)[1])
        pairs = (elements[:, :, None] * n + elements[:, None, :]).min(axis=0)
        labels = np.unique(pairs, return_inverse=True)[1].reshape(n, n)
        orbitals = group.orbitals()
        np.testing.assert_array_equal(orbitals.labels(), labels)
        np.testing.assert_array_equal(orbitals.sizes, np.bincount(labels.ravel()))
        assert group.rank == orbitals.rank == labels.max() + 1
        assert len(elements) * orbitals.rank == (elements == np.arange(n)).sum(axis=1).__pow__(2).sum()
        for v in range(n):
            stabilizer = group.stabilizer(v)
            assert stabilizer.order == (elements[:, v] == v).sum()
            fixing = elements[elements[:, v] == v].min(axis=0)
            np.testing.assert_array_equal(stabilizer.orbits, np.unique(fixing, return_inverse=True)[1])
        restored = AutomorphismGroup.from_generators(n, group.generators)
        assert restored.order == len(elements)
        np.testing.assert_array_equal(restored.orbitals().labels(), labels)


def small_graphs(most=9):
    @st.composite
    def graph(draw):
        n = draw(st.integers(1, most))
        pairs = list(itertools.combinations(range(n), 2))
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        return Graph(n, chosen)

    return graph()


@FIXED
@given(small_graphs(), st.randoms(use_true_random=False))
def test_relabeling_conjugates_the_group(graph, random):
    n = graph.num_vertices
    names = np.array(random.sample(range(n), n))
    group, renamed = automorphism_group(graph), automorphism_group((n, names[graph.edges]))
    assert group.order == renamed.order
    assert group.rank == renamed.rank
    for generator in group.generators:
        conjugate = np.empty(n, dtype=int)
        conjugate[names] = names[generator]
        assert conjugate in renamed


@FIXED
@given(small_graphs())
def test_the_complement_has_the_same_group(graph):
    n = graph.num_vertices
    present = {frozenset(edge) for edge in graph.edges.tolist()}
    absent = [pair for pair in itertools.combinations(range(n), 2) if frozenset(pair) not in present]
    group, other = automorphism_group(graph), automorphism_group((n, absent))
    assert group.order == other.order
    np.testing.assert_array_equal(group.orbitals().labels(), other.orbitals().labels())


@FIXED
@given(small_graphs(6), st.integers(2, 4))
def test_copies_of_a_connected_graph_give_a_wreath_product(graph, copies):
    n = graph.num_vertices
    order = automorphism_group(graph).order
    together = (n * copies, np.concatenate([graph.edges + n * copy for copy in range(copies)]))
    if nx.is_connected(graph.to_networkx()):
        assert automorphism_group(together).order == order**copies * math.factorial(copies)
    else:
        assert automorphism_group(together).order >= order**copies * math.factorial(copies)


@FIXED
@given(small_graphs(), st.data())
def test_colors_leave_the_automorphisms_that_keep_them(graph, data):
    n = graph.num_vertices
    colors = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    group = automorphism_group(graph, colors)
    assert all(colors[v] == colors[image] for row in group.generators for v, image in enumerate(row))
    vertex = data.draw(st.integers(0, n - 1))
    alone = automorphism_group(graph, [int(v == vertex) for v in range(n)])
    assert alone.order == automorphism_group(graph).stabilizer(vertex).order


@FIXED
@given(st.integers(1, 7), st.data())
def test_groups_of_any_generators_agree_with_their_closure(n, data):
    permutation = st.permutations(range(n))
    generators = data.draw(st.lists(permutation, max_size=3))
    elements = {tuple(range(n))}
    fresh = list(elements)
    while fresh:
        products = {tuple(g[v] for v in element) for element in fresh for g in generators}
        fresh = list(products - elements)
        elements |= products
    group = AutomorphismGroup.from_generators(n, generators)
    assert group.order == len(elements)
    other = data.draw(permutation)
    assert (other in group) == (tuple(other) in elements)
    array = np.array(sorted(elements))
    pairs = (array[:, :, None] * n + array[:, None, :]).min(axis=0)
    np.testing.assert_array_equal(group.orbitals().labels(), np.unique(pairs, return_inverse=True)[1].reshape(n, n))
    v = data.draw(st.integers(0, n - 1))
    assert group.stabilizer(v).order == (array[:, v] == v).sum()


@pytest.mark.parametrize("make", [lambda: graphs.hamming(6, 2), nx.petersen_graph, lambda: graphs.grid(3, 4)])
def test_a_base_is_fixed_by_the_identity_alone_and_a_transversal_reaches_the_orbit(make):
    group = automorphism_group(make())
    fixing = group
    for point in group.base:
        fixing = fixing.stabilizer(point)
    assert fixing.order == 1
    points, elements = group.transversal(1)
    np.testing.assert_array_equal(points, np.flatnonzero(group.orbits == group.orbits[1]))
    np.testing.assert_array_equal(elements[:, 1], points)
    assert all(element in group for element in elements)


def latin_square_graph(n):
    """Return the graph of a Latin square: cells joined in the same row, column or symbol.

    From the cyclic square, two rows exchange the symbols of one cycle of columns, many times over.
    """
    random = np.random.default_rng(n)
    square = np.add.outer(np.arange(n), np.arange(n)) % n
    for _ in range(400):
        r, s = random.choice(n, 2, replace=False)
        column = random.integers(n)
        given_away = square[r, column]
        while True:
            square[[r, s], column] = square[[s, r], column]
            if square[r, column] == given_away:
                break
            (column,) = {*np.flatnonzero(square[r] == square[r, column])} - {column}
    cells = np.arange(n * n).reshape(n, n)
    lines = [*cells, *cells.T, *(cells[square == symbol] for symbol in range(n))]
    return Graph(n * n, [pair for line in lines for pair in itertools.combinations(line.tolist(), 2)])


def test_a_strongly_regular_graph_without_symmetry_is_refuted_vertex_by_vertex():
    graph = latin_square_graph(12)
    assert graphs.sphere_sizes(graph).tolist() == [[1, 33, 110]] * 144
    assert automorphism_group(graph).order == 1


def random_graphs():
    yield from (nx.gnm_random_graph(12, m, seed=m) for m in range(4, 40, 3))
    yield from (nx.random_regular_graph(3, n, seed=n) for n in (8, 14, 40))
    yield from (nx.random_labeled_tree(n, seed=n) for n in (5, 10, 20, 40))
    yield nx.disjoint_union_all(
        [nx.cycle_graph(4), nx.cycle_graph(4), nx.path_graph(3), nx.path_graph(3), nx.path_graph(1)]
    )
    yield from (nx.hypercube_graph(5), nx.circular_ladder_graph(9), nx.heawood_graph(), nx.dodecahedral_graph())


def test_orders_orbits_and_ranks_agree_with_nauty():
    pynauty = pytest.importorskip("pynauty", reason="pynauty is not installed: no comparison with nauty")
    for graph in random_graphs():
        graph = nx.convert_node_labels_to_integers(graph)
        adjacency = {v: list(graph[v]) for v in graph}
        peer = pynauty.Graph(len(graph), adjacency_dict=adjacency)
        _, mantissa, exponent, orbits, count = pynauty.autgrp(peer)
        group = automorphism_group(graph)
        assert group.order == round(mantissa * 10**exponent)
        assert group.orbits.max() + 1 == count
        np.testing.assert_array_equal(group.orbits, np.unique(orbits, return_inverse=True)[1])
        rank = 0
        for v in set(orbits):
            peer.set_vertex_coloring([{v}, set(graph) - {v}])
            rank += pynauty.autgrp(peer)[4]
        assert group.rank == rank


def test_orders_agree_with_bliss():
    igraph = pytest.importorskip("igraph", reason="igraph is not installed: no comparison with BLISS")
    for graph in random_graphs():
        graph = nx.convert_node_labels_to_integers(graph)
        peer = igraph.Graph(n=len(graph), edges=list(graph.edges))
        assert automorphism_group(graph).order == peer.count_automorphisms()


def test_loops_and_parallel_edges_are_ignored():
    assert automorphism_group((3, [(0, 1), (1, 0), (1, 2), (2, 2)])).order == 2


@pytest.mark.parametrize("n", [0, 1])
def test_graphs_without_pairs_have_the_trivial_group(n):
    group = automorphism_group((n, []))
    assert (group.order, group.rank, group.orbits.tolist(), group.base) == (1, n, [0] * n, ())
    assert group.generators.shape == (0, n)
    assert group.orbitals().labels().shape == (n, n)
    assert group.is_transitive


def test_a_long_path_is_searched_without_deep_recursion():
    threading.stack_size(1 << 18)
    try:
        orders = []
        worker = threading.Thread(target=lambda: orders.append(automorphism_group(graphs.path(300_000)).order))
        worker.start()
        worker.join()
    finally:
        threading.stack_size(0)
    assert orders == [2]


@pytest.mark.parametrize(
    "group",
    [
        automorphism_group(graphs.grid(3, 5)),
        automorphism_group(two_squares(), [0, 0, 0, 0, 0, 0, 1, 0]),
        AutomorphismGroup.hamming(2, 5),
        AutomorphismGroup.from_generators(6, [[1, 2, 0, 3, 5, 4], [0, 1, 2, 4, 3, 5]]),
        AutomorphismGroup.from_generators(3, []),
    ],
)
def test_groups_survive_pickling(group):
    copy = pickle.loads(pickle.dumps(group))
    assert (copy.order, copy.rank, repr(copy)) == (group.order, group.rank, repr(group))
    np.testing.assert_array_equal(copy.generators, group.generators)
    np.testing.assert_array_equal(copy.orbits, group.orbits)
    np.testing.assert_array_equal(copy.orbitals().labels(threads=1), group.orbitals().labels(threads=2))
    assert all(generator in copy for generator in group.generators)
    assert copy.stabilizer(1).order == group.stabilizer(1).order


def test_what_groups_are_made_of_cannot_be_changed_from_outside():
    group = automorphism_group(graphs.cycle(5))
    group.generators[:] = 0
    group.orbits[:] = 7
    assert (group.order, group.orbits.tolist()) == (10, [0] * 5)
    with pytest.raises(AttributeError):
        group.order = 3
    with pytest.raises(TypeError, match="automorphism_group"):
        AutomorphismGroup()
    with pytest.raises(TypeError, match="orbitals"):
        graphs.Orbitals()


def test_a_time_limit_that_passes_is_a_timeout():
    with pytest.raises(TimeoutError, match=r"search for automorphisms did not end within 1e-\d+ seconds|0\.000001"):
        automorphism_group(graphs.hamming(4, 8), time_limit=1e-6)
    assert automorphism_group(graphs.hamming(3, 3), time_limit=100).order == 6**3 * 6


def projective_plane(q):
    """Return the points and lines of the plane over a prime field, joined where they meet."""
    vectors = [(1, a, b) for a in range(q) for b in range(q)] + [(0, 1, a) for a in range(q)] + [(0, 0, 1)]
    points = np.array(vectors)
    meets = np.argwhere(points @ points.T % q == 0)
    return Graph(2 * len(points), meets + np.array([0, len(points)]))


def test_projective_planes_have_their_groups_with_dualities():
    for q in (2, 3, 5, 7):
        order = q**3 * (q**3 - 1) * (q**2 - 1)
        assert automorphism_group(projective_plane(q)).order == 2 * order


def test_orbitals_of_bare_generators_are_those_of_the_group_that_was_found():
    for graph in (
        graphs.cycle(90),
        graphs.torus(5, 7),
        graphs.grid(4, 4, 4),
        complete_bipartite(7, 9),
        graphs.path(30),
    ):
        found = automorphism_group(graph)
        bare = AutomorphismGroup.from_generators(found.num_points, found.generators)
        np.testing.assert_array_equal(bare.orbitals().labels(), found.orbitals().labels())


def test_orders_of_groups_with_long_bases_come_from_their_generators_alone():
    squares = Graph(60, [(v, v // 4 * 4 + (v + 1) % 4) for v in range(60)])
    for graph, order in ((squares, 8**15 * math.factorial(15)), (graphs.hamming(2, 12), 2 * math.factorial(12) ** 2)):
        found = automorphism_group(graph)
        assert len(found.base) >= 12
        assert AutomorphismGroup.from_generators(found.num_points, found.generators).order == found.order == order


def test_classes_that_only_far_members_join_are_joined():
    # The rotation of a long cycle and an exchange of two points far away: near 0 nothing tells that points are alike.
    n = 300
    far = np.arange(n)
    far[[140, 150]] = far[[150, 140]]
    group = AutomorphismGroup.from_generators(n, [np.roll(np.arange(n), -1), far])
    orbitals = group.orbitals()
    # The group is a wreath product on the residues modulo 10: of the exchanges of i and i + 10.
    assert (orbitals.rank, orbitals.sizes.tolist()) == (11, [300, *[9000] * 9, 8700])
    assert orbitals.label_row(7)[[7, 8, 17, 6]].tolist() == [0, 1, 10, 9]


@uncollected()
def test_ctrl_c_ends_a_search():
    graph = graphs.hamming(2, 128)  # several seconds
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        automorphism_group(graph)
    timer.join()
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("colors", "error", "message"),
    [
        ([0, 1], ValueError, r"`colors` must have shape \(5,\), got \(2,\)"),
        (3, ValueError, r"`colors` must have shape \(5,\), got \(\)"),
        ([0, 0, 0, -1, 0], ValueError, r"got -1 at index \(3,\)"),
        ([0, 0, 0.5, 1, 0], ValueError, r"got 0.5 at index \(2,\)"),
        ([0, 0, np.nan, 1, 0], ValueError, r"got nan at index \(2,\)"),
        (list("abcde"), TypeError, "`colors` must hold whole numbers"),
    ],
)
def test_bad_colors_are_refused(colors, error, message):
    with pytest.raises(error, match=message):
        automorphism_group(graphs.cycle(5), colors)


@pytest.mark.parametrize(
    ("limit", "error"),
    [(0, ValueError), (-1, ValueError), (np.nan, ValueError), (np.inf, ValueError), ("1", TypeError)],
)
def test_bad_time_limits_are_refused(limit, error):
    with pytest.raises(error, match="time_limit"):
        automorphism_group(graphs.cycle(5), time_limit=limit)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match="`graph` must be a Graph"):
        automorphism_group("C5")
    with pytest.raises(ValueError, match=r"got \(0, 5\) at row 0"):
        automorphism_group((5, [(0, 5)]))


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ([[0, 1, 2, 3], [1, 0, 0, 2]], r"got 0 at \(1, 2\)"),
        ([[0, 1, 2, 4]], r"got 4 at \(0, 3\)"),
        ([[0, -1, 2, 3]], r"got -1 at \(0, 1\)"),
        ([[0, 1, 2]], r"shape \(k, 4\), got \(1, 3\)"),
        ([0, 1, 2, 3], r"shape \(k, 4\), got \(4,\)"),
        ([[0, 1, 2.5, 3]], r"got 2.5 at index \(0, 2\)"),
        ([[0, 2, 1, 3]], r"number 0\) that maps the edge \(1, 0\) to \(2, 0\)"),
    ],
)
def test_bad_generators_are_refused(generators, message):
    with pytest.raises(ValueError, match=message):
        AutomorphismGroup.from_generators(4, generators, graph=graphs.cycle(4))


def test_generators_of_another_graph_are_refused():
    with pytest.raises(ValueError, match="`graph` must have 4 vertices, got 5"):
        AutomorphismGroup.from_generators(4, [[1, 2, 3, 0]], graph=graphs.cycle(5))


@pytest.mark.parametrize(("length", "letters"), [(-1, 2), (2, 0), (2, -3)])
def test_bad_hamming_parameters_are_refused(length, letters):
    with pytest.raises(ValueError, match="must be between"):
        AutomorphismGroup.hamming(length, letters)


def test_jobs_beyond_memory_are_refused_before_they_begin():
    with pytest.raises(TooLargeError, match="Hamming"):
        AutomorphismGroup.hamming(40, 2)
    with pytest.raises(TooLargeError, match="pairs"):
        automorphism_group(graphs.cycle(200)).orbitals(memory_limit=1000)
    with pytest.raises(TooLargeError):
        automorphism_group(graphs.cycle(70_000)).orbitals()


@pytest.mark.parametrize("v", [-1, 5, 5.0])
def test_points_out_of_range_are_refused(v):
    group = automorphism_group(graphs.cycle(5))
    for method in (group.stabilizer, group.transversal, group.orbitals().label_row):
        with pytest.raises(ValueError, match="`v` must be"):
            method(v)


@pytest.mark.parametrize(
    ("permutation", "error", "message"),
    [
        ([0, 1, 2, 3], ValueError, "shape"),
        ([0, 1, 2, 3, 3], ValueError, "got 3 at index 4"),
        ([0, 1, 2, 3, 9], ValueError, "got 9 at index 4"),
        ([0, 1, 2, 3, -1], ValueError, r"got -1 at index \(4,\)"),
        ("01234", TypeError, "whole numbers"),
    ],
)
def test_what_is_no_permutation_is_refused(permutation, error, message):
    with pytest.raises(error, match=message):
        automorphism_group(graphs.cycle(5)).contains(permutation)


def test_a_group_of_a_labelled_graph_answers_in_its_names():
    graph = nx.relabel_nodes(nx.star_graph(3), {0: "hub", 1: "a", 2: "b", 3: "c"})
    group = automorphism_group(graph)
    assert list(group.labels) == ["hub", "a", "b", "c"]
    assert group.orbit_sets() == [["hub"], ["a", "b", "c"]]
    assert group.stabilizer("a").orbit_sets() == [["hub"], ["a"], ["b", "c"]]
    for cycles, images in zip(group.cycles(), group.generators, strict=True):
        moved = {x: y for cycle in cycles for x, y in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
        assert [moved.get(label, label) for label in group.labels] == [group.labels[image] for image in images]
    assert pickle.loads(pickle.dumps(group)).orbit_sets() == group.orbit_sets()
    with pytest.raises(ValueError, match="`v` must be the label of a vertex, got 0"):
        group.stabilizer(0)
    with pytest.raises(ValueError, match="`v` must be the label of a vertex, got True"):
        automorphism_group(graphs.path(2).relabel([1, 2])).transversal(True)
    assert automorphism_group((3, [(0, 1)])).orbit_sets() == [[0, 1], [2]]


def test_cycles_of_a_large_graph_list_only_the_points_that_move():
    n = 30_000
    random = np.random.default_rng(3)
    parents = (random.random(n - 1) * np.arange(1, n)).astype(int)
    group = automorphism_group((n, np.stack([parents, np.arange(1, n)], axis=1)))
    tracemalloc.start()
    cycles = group.cycles()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 15e6 < 8 * n * len(cycles)
    edges = {frozenset((child, parent)) for child, parent in enumerate(parents.tolist(), 1)}
    neighbors = [[] for _ in range(n)]
    for u, v in edges:
        neighbors[u].append(v)
        neighbors[v].append(u)
    pairs = []
    for generator in cycles:
        image = {x: y for cycle in generator for x, y in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
        assert all(frozenset((image[x], image.get(y, y))) in edges for x in image for y in neighbors[x])
        pairs += image.items()
    rows, columns = np.array(pairs).T
    joined = scipy.sparse.coo_array((np.ones(len(pairs)), (rows, columns)), shape=(n, n))
    labels = scipy.sparse.csgraph.connected_components(joined, directed=False)[1]
    assert len(np.unique(labels)) == group.orbits.max() + 1 == len(np.unique(n * labels + group.orbits))


def test_cycles_of_long_generators():
    (turn,) = AutomorphismGroup.from_generators(200_000, [np.roll(np.arange(200_000), -1)]).cycles()
    assert turn == [tuple(range(200_000))]
    assert AutomorphismGroup.from_generators(3, [[0, 1, 2]]).cycles() in ([], [[]])


def test_orbitals_pickle():
    orbitals = automorphism_group((4, [(0, 1), (1, 2), (2, 3)])).orbitals()
    again = pickle.loads(pickle.dumps(orbitals))
    assert (again.labels() == orbitals.labels()).all()
    assert (again.sizes == orbitals.sizes).all()


def wreath(letters, places):
    """Generators of the symmetric group on the letters in each place, and on the places."""
    n = letters * places
    exchange, turn, blocks = np.arange(n), np.arange(n), np.arange(n)
    exchange[[0, 1]] = 1, 0
    turn[:letters] = np.roll(turn[:letters], -1)
    blocks[: 2 * letters] = np.roll(blocks[: 2 * letters], letters)
    return n, [exchange, turn, blocks, np.roll(np.arange(n), letters)]


# On 23 residues and infinity: add one, multiply by two, the negative inverse, and Mathieu's own.
M24 = [
    [tuple(range(23))],
    [(1, 2, 4, 8, 16, 9, 18, 13, 3, 6, 12), (5, 10, 20, 17, 11, 22, 21, 19, 15, 7, 14)],
    [(0, 23), (1, 22), (2, 11), (3, 15), (4, 17), (5, 9), (6, 19), (7, 13), (8, 20), (10, 16), (12, 21), (14, 18)],
    [(2, 16, 9, 6, 8), (3, 12, 13, 18, 4), (7, 17, 10, 11, 22), (14, 19, 21, 20, 15)],
]


def of_cycles(n, cycles):
    images = np.arange(n)
    for cycle in cycles:
        images[list(cycle)] = [*cycle[1:], cycle[0]]
    return images


@pytest.mark.parametrize(("letters", "places"), [(2, 40), (3, 20), (6, 9), (10, 10), (50, 2), (2, 100)])
def test_the_order_of_a_wreath_product_comes_from_bare_generators(letters, places):
    """Bases of up to 100 points, with everything proved: nobody says that there is a wreath product."""
    n, generators = wreath(letters, places)
    group = AutomorphismGroup.from_generators(n, generators)
    assert group.order == math.factorial(letters) ** places * math.factorial(places)


def test_the_order_of_an_index_two_subgroup_comes_from_bare_generators():
    """Exchanges in two places at once: half of a wreath product, whatever its blocks and their letters say."""
    n, (exchange, _, blocks, roll) = wreath(2, 30)
    both = np.arange(n)
    both[:4] = 1, 0, 3, 2
    group = AutomorphismGroup.from_generators(n, [both, blocks, roll])
    assert group.order == 2**29 * math.factorial(30)
    assert not group.contains(exchange)
    assert group.contains(both[roll])


def test_the_orders_of_mathieu_groups_come_from_bare_generators():
    images = [of_cycles(24, cycles) for cycles in M24]
    assert AutomorphismGroup.from_generators(24, images[:3]).order == 6072  # PSL(2, 23)
    whole = AutomorphismGroup.from_generators(24, images)
    assert whole.order == 244_823_040
    assert whole.stabilizer(23).order == 10_200_960
    # On five copies side by side the order is the same, and the base no longer.
    copies = [np.concatenate([image + 24 * i for i in range(5)]) for image in images]
    assert AutomorphismGroup.from_generators(120, copies).order == 244_823_040
