"""Every public function that takes a graph: `weight=` is honored and must be said, or weights are not looked at."""

import importlib
import inspect
import itertools
import math
from collections import Counter
from fractions import Fraction

import networkx
import numpy as np
import pytest
import scipy.sparse
from tests.statistics import assert_discrete_fit

from quincunx import counting, spectra
from quincunx.graphs import Graph
from quincunx.privacy import privatize

ROOMS = ("graphs", "lattices", "counting", "entropy", "spectra", "leakage")


def takers():
    """Every public function or method with a graph of any kind among its parameters."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"quincunx.{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            methods = inspect.getmembers(thing, callable) if inspect.isclass(thing) else [("", thing)]
            for method, function in methods:
                if method.startswith("_") or not callable(function):
                    continue
                try:
                    parameters = inspect.signature(function).parameters
                except (TypeError, ValueError):
                    continue
                graph = [p for p in parameters.values() if "Graph | _HasGraph" in str(p.annotation)]
                graph += [p for p in parameters.values() if "GraphLike" in str(p.annotation)]
                if graph:
                    found[".".join(filter(None, (room, name, method)))] = function
    return found


TAKERS = takers()
WEIGHTED = sorted(name for name, function in TAKERS.items() if "weight" in inspect.signature(function).parameters)
#: What else is called with, beside a cycle of six vertices.
WITH = {
    "counting.edge_probabilities": {},
    "counting.hard_core": {"activity": Fraction(1, 2)},
    "counting.potts_partition_function": {"q": 3, "v": 2},
    "counting.potts_polynomial": {"q": 3},
    "counting.random_independent_set": {"rng": 1},
    "counting.random_perfect_matching": {"rng": 1},
    "counting.random_spanning_tree": {"rng": 1},
    "counting.residue": {"modulus": 101},
    "graphs.induced_graph": {"query": [0, 0, 1, 1, 2, 2]},
    "graphs.spheres": {"v": 0},
    "leakage.leakage_bound": {"epsilon": 0.5},
    "leakage.utility_bound": {"epsilon": 0.5},
    "spectra.resistance_distance": {"u": 0, "v": 2},
}
#: Arguments are not a graph and some numbers.
APART = {
    "leakage.Channel.dp_delta": lambda f, g: f(_channel(), g, 0.5),
    "leakage.Channel.dp_epsilon": lambda f, g: f(_channel(), g),
    "leakage.Channel.guarantee": lambda f, g: f(_channel(), g),
    "leakage.Channel.metric_epsilon": lambda f, g: f(_channel(), g),
    "leakage.Channel.likelihood_ratio": lambda f, g: f(_channel(), g),
    "leakage.Channel.renyi_dp": lambda f, g: f(_channel(), g, 2.0),
    "leakage.Channel.symmetrize": lambda f, g: f(_channel(), g).channel.matrix,
    "graphs.AutomorphismGroup.from_generators": lambda f, g: f(6, [[1, 2, 3, 4, 5, 0]], graph=g).order,
    "graphs.automorphism_group": lambda f, g: f(g).order,
    "lattices.draw": lambda f, g: len(f(g).collections),
    "leakage.plot_utility": lambda f, g: [line.get_ydata().tolist() for line in f(g, [0.5]).lines],
    "counting.transfer_matrices": lambda f, g: f(g, [[0], [1, 5], [2, 4], [3]]).count(),
    "leakage.optimal_mechanism": lambda f, g: f(g, 0.5).channel.matrix,
    "leakage.distance_channel": lambda f, g: f(g, 0.5).matrix,
    "counting.estimate_cost": lambda f, g, **how: f(g, "spanning-trees", **how).primes,
    "counting.tutte_polynomial": lambda f, g, **how: f(g, **how).coefficients,
}


def _channel():
    from quincunx.leakage import distance_channel

    return distance_channel((6, [(i, (i + 1) % 6) for i in range(6)]), 0.5)


def call(name, graph, **how):
    if name in APART:
        return APART[name](TAKERS[name], graph, **how)
    return TAKERS[name](graph, **WITH.get(name, {}), **how)


def ring(weights=None):
    graph = networkx.cycle_graph(6)
    for edge, weight in zip(graph.edges, weights or (), strict=bool(weights)):
        graph.edges[edge]["weight"] = weight
    return graph


def flat(result):
    """What a function returned as one list, with arrays and tuples of arrays laid open."""
    if isinstance(result, dict):
        return flat(list(result.values()))
    if isinstance(result, (list, tuple, np.ndarray)):
        return [entry for part in result for entry in flat(part)]
    return [result]


def same(one, other):
    return flat(one) == flat(other)


HEAVY = [2, 3, 0.5, Fraction(1, 3), 5, 7]
GIVEN = {
    "networkx": ring,
    "sparse": lambda weights=None: scipy.sparse.csr_array(
        networkx.to_scipy_sparse_array(ring([float(w) for w in weights] if weights else None), dtype=float)
    ),
}


def test_the_table_is_whole():
    assert len(TAKERS) >= 40
    assert len(WEIGHTED) == 20
    assert {name.split(".")[0] for name in WEIGHTED} == {"counting", "spectra"}
    assert not (WITH.keys() | APART.keys()) - TAKERS.keys()


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("name", sorted(TAKERS))
def test_weights_are_said_or_not_looked_at(name, kind):
    plain = call(name, GIVEN[kind]())
    if name not in WEIGHTED:
        assert same(plain, call(name, GIVEN[kind](HEAVY))), "weights change what does not take them"
        return
    assert same(plain, call(name, GIVEN[kind]([1] * 6)))
    assert same(plain, call(name, GIVEN[kind](HEAVY), weight=None))
    for value in (2, 0.5, -1):
        with pytest.raises(ValueError, match=r"`weight` must be said .*weight=\"weight\".*weight=None.* at \("):
            call(name, GIVEN[kind]([1, 1, 1, 1, 1, value]))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_come_by_name_by_entry_and_one_by_one(name):
    if name == "counting.estimate_cost":
        assert call(name, ring([2**17 - i for i in range(6)]), weight="weight") > call(name, ring())
        with pytest.raises(ValueError, match="`weight` must be None for independent sets"):
            counting.estimate_cost(ring(HEAVY), weight="weight")
        return
    exact = [2.0, 3.0, 0.5, 0.25, 5.0, 7.0]
    if name == "counting.tutte_polynomial":  # of parallel edges
        exact = [2.0, 3.0, 1.0, 4.0, 5.0, 7.0]
    by_name = call(name, ring(exact), weight="weight")
    matrix = GIVEN["sparse"](exact)
    listed = Graph.from_networkx(ring())
    one_by_one = call(name, listed, weight=exact)
    sparse = call(name, matrix, weight="weight")
    upper = call(name, scipy.sparse.coo_matrix(scipy.sparse.triu(matrix)), weight="weight")
    if name.startswith("counting.random"):
        numbers = {edge: i for i, edge in enumerate(ring().edges)}
        by_name = [numbers[edge] for edge in by_name]
    for one, tolerance in ((one_by_one, 1e-13), (sparse, 1e-12)):
        if one is sparse and (isinstance(by_name, dict) or "random" in name):
            continue  # in the order of its edges, which is another
        found = np.array(flat(one), dtype=float)
        assert np.allclose(found, np.array(flat(by_name), dtype=float), rtol=tolerance, atol=tolerance)
    assert same(sparse, upper)


def test_entries_that_contradict_each_other_are_refused():
    matrix = scipy.sparse.csr_array([[0, 2.0], [3.0, 0]])
    with pytest.raises(ValueError, match=r"`graph` must be symmetric or one triangle .* 2.0 at \(0, 1\) and 3.0 at"):
        counting.count_spanning_trees(matrix, weight="weight")
    with pytest.raises(ValueError, match="`weight` must be 'weight', None or numbers for a sparse matrix"):
        counting.count_spanning_trees(matrix, weight="cost")


def test_weights_that_python_does_not_print_are_refused_in_words():
    ring = (3, [(0, 1), (1, 2), (2, 0)])
    calls = (counting.count_spanning_trees, counting.tutte_polynomial)
    for call, weight in itertools.product(calls, (10**5000, Fraction(1, 7**6000), -(10**5000))):
        with pytest.raises(ValueError, match=r"`weight` must be .*, got (an integer|a fraction) of [0-9]+ bits"):
            call(ring, weight=[weight, 1, 1])
    with pytest.raises(ValueError, match="`activity` must be at least 0, got an integer of 16610 bits"):
        counting.occupation_probabilities(ring, -(10**5000))
    with pytest.raises(TypeError, match="`weight` must be None, the name of an attribute or numbers, got ndarray"):
        counting.count_spanning_trees(ring, weight=np.array(2))


def test_entries_of_one_place_are_added_up_and_the_matrix_stays():
    assert counting.count_matchings(scipy.sparse.csr_array((3, 3)), weight="weight") == 1
    twice = scipy.sparse.coo_array(([1, 1, 1, 1], ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    rows = scipy.sparse.csr_array((np.ones(4, dtype=int), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    for matrix in (twice, rows, rows.T, scipy.sparse.csr_matrix(rows)):
        with pytest.raises(ValueError, match=r"`weight` must be said .* got 2 at \(0, 1\)"):
            spectra.spectrum(matrix)
        assert np.allclose(spectra.spectrum(matrix, weight="weight"), [-2, 2])
        assert matrix.nnz == 4
    for kind in (np.int8, np.uint8):  # whose sum would be none
        calls = scipy.sparse.coo_array((np.ones(256, dtype=kind), np.tile([[0], [1]], 256)), shape=(2, 2))
        assert counting.count_spanning_trees(calls, weight="weight") == 256
        assert Graph.from_scipy(calls).num_edges == 1
    for kind, size in ((np.uint64, 2**63), (np.int64, 2**62)):  # twice it would be nothing
        half = scipy.sparse.coo_array((np.full(2, size, dtype=kind), ([0, 0], [1, 1])), shape=(2, 2))
        for taken in (Graph.from_scipy, spectra.spectrum, lambda matrix: privatize(matrix, epsilon=1.0)):
            with pytest.raises(ValueError, match="must have a sum within 64 bits of the entries at each place"):
                taken(half)
        alone = scipy.sparse.coo_array((np.full(1, size, dtype=kind), ([0], [1])), shape=(2, 2))
        assert counting.count_spanning_trees(alone, weight="weight") == size
        most = int(np.iinfo(kind).max)  # which a sum may be, beside an entry that stands alone
        parts = np.array([size - 1, most - size + 1, most], dtype=kind)
        edges = Graph.from_scipy(scipy.sparse.coo_array((parts, ([0, 0, 1], [1, 1, 2])), shape=(3, 3))).num_edges
        assert edges == 2
    cancelled = scipy.sparse.coo_array((np.array([2**62, -(2**62), 2**62]), ([0, 0, 0], [1, 1, 1])), shape=(2, 2))
    assert counting.count_spanning_trees(cancelled, weight="weight") == 2**62
    # Of many entries, just beyond.
    many = np.full(3 * 2**18, -(-(2**63) // (3 * 2**18)))
    places = np.zeros(len(many), dtype=int), np.ones(len(many), dtype=int)
    with pytest.raises(ValueError, match="must have a sum within 64 bits of the entries at each place"):
        Graph.from_scipy(scipy.sparse.coo_array((many, places), shape=(2, 2)))


def test_a_matrix_of_ours_says_its_parallel_edges_and_loops():
    graph = Graph(3, [(0, 1), (0, 1), (1, 2), (2, 2)])
    matrix = graph.to_scipy()
    with pytest.raises(ValueError, match=r"`weight` must be said .* got 2 at \(0, 1\)"):
        counting.count_spanning_trees(matrix)
    assert counting.count_spanning_trees(matrix, weight="weight") == counting.count_spanning_trees(graph) == 2
    assert np.allclose(spectra.spectrum(matrix, weight="weight"), spectra.spectrum(graph), atol=1e-14)


NETWORK = networkx.les_miserables_graph()


def test_spectra_of_a_weighted_network_are_those_of_networkx():
    for laplacian, theirs in ((False, networkx.adjacency_spectrum), (True, networkx.laplacian_spectrum)):
        expected = np.sort(np.real(theirs(NETWORK, weight="weight")))
        found = spectra.spectrum(NETWORK, weight="weight", laplacian=laplacian)
        assert np.allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert spectra.energy(NETWORK, weight="weight") == pytest.approx(
        abs(networkx.adjacency_spectrum(NETWORK)).sum(), rel=1e-10
    )
    connectivity = networkx.algebraic_connectivity(NETWORK, weight="weight", method="lanczos")
    assert spectra.algebraic_connectivity(NETWORK, weight="weight") == pytest.approx(connectivity, rel=1e-8)
    edges, density = spectra.density_of_states(NETWORK, 7, weight="weight")
    expected = np.histogram(np.linalg.eigvalsh(networkx.to_numpy_array(NETWORK)), 7, density=True)
    assert np.allclose(edges, expected[1])
    assert np.allclose(density, expected[0])


def test_connectivity_of_large_weighted_graphs_is_that_of_the_dense_matrix():
    from quincunx.graphs import path

    graph, weights = path(1600), [1 + i % 7 / 4 for i in range(1599)]
    for scale in (1, 10**6):
        scaled = [w * scale for w in weights]
        expected = np.sort(spectra.spectrum(graph, weight=scaled, laplacian=True))[1]
        assert spectra.algebraic_connectivity(graph, weight=scaled) == pytest.approx(expected, rel=1e-5)
    weights[700] = 0
    assert spectra.algebraic_connectivity(graph, weight=weights) == 0


@pytest.mark.parametrize("invert", [True, False])
def test_resistances_of_a_weighted_network_are_those_of_networkx(invert):
    network = NETWORK.copy()
    for *_, edge in network.edges(data=True):
        edge["ohm"] = [1, 2, 3, 4, 6][edge["weight"] % 5]
    how, n = {"weight": "ohm", "invert_weight": invert}, len(network)
    exact = spectra.kirchhoff_index(network, exact=True, **how)
    assert exact == pytest.approx(networkx.effective_graph_resistance(network, **how), rel=1e-9)
    assert spectra.kirchhoff_index(network, **how) == pytest.approx(float(exact), rel=1e-11)
    assert spectra.average_resistance(network, exact=True, **how) == 2 * exact / (n * (n - 1))
    assert spectra.average_resistance(network, **how) == pytest.approx(float(2 * exact / (n * (n - 1))), rel=1e-11)
    for pair in (("Valjean", "Javert"), ("Napoleon", "Gavroche")):
        found = spectra.resistance_distance(network, *pair, exact=True, **how)
        assert found == pytest.approx(networkx.resistance_distance(network, *pair, **how), rel=1e-9)
        assert spectra.resistance_distance(network, *pair, **how) == pytest.approx(float(found), rel=1e-11)


def test_resistances_in_series_and_in_parallel():
    third = Fraction(1, 3)
    series = (3, [(0, 1), (1, 2)])
    assert spectra.resistance_distance(series, 0, 2, weight=[third, 2], exact=True) == third + 2
    assert spectra.resistance_distance(
        series, 0, 2, weight=[3, 2], invert_weight=False, exact=True
    ) == third + Fraction(1, 2)
    parallel = (2, [(0, 1), (0, 1)])
    assert spectra.kirchhoff_index(parallel, weight=[2, third], exact=True) == 1 / (Fraction(1, 2) + 3)
    with pytest.raises(ValueError, match="`weight` must be above 0, got 0: a resistance of 0 joins its ends"):
        spectra.kirchhoff_index(series, weight=[0, 1])
    with pytest.raises(ValueError, match="`graph` must be connected, got 2 components"):
        spectra.kirchhoff_index(series, weight=[0, 1], invert_weight=False)
    with pytest.raises(TypeError, match="`invert_weight` must be"):
        spectra.kirchhoff_index(series, weight=[1, 1], invert_weight="no")


def by_elimination(n, edges, conductances, u, v):
    """The resistance in fractions, by replacing the other vertices one by one."""
    table = [[Fraction(0)] * n for _ in range(n)]
    for (a, b), c in zip(edges, conductances, strict=True):
        table[a][b] += c * (a != b)
        table[b][a] += c * (a != b)
    left = set(range(n))
    for k in left - {u, v}:
        left.remove(k)
        row, total = table[k], sum(table[k][j] for j in left)
        for a, b in itertools.permutations(left, 2):
            table[a][b] += row[a] * row[b] / total
    return 1 / table[u][v]


@pytest.mark.parametrize("decades", [0, 3, 6, 9, 12, 16, 20, 40])
def test_resistances_of_very_different_sizes_keep_their_digits(decades):
    rng, ends = np.random.default_rng(decades), (1.0, 10.0**decades)
    for case in range(12):
        n = int(rng.integers(3, 8))
        edges = [(v, int(rng.integers(0, v))) for v in range(1, n)] + rng.integers(0, n, (n // 2, 2)).tolist()
        sizes = rng.choice(ends, len(edges)) if case % 2 else 10.0 ** rng.uniform(0, decades, len(edges))
        conductances = [1 / Fraction(size) for size in sizes.tolist()]
        exact = {(u, v): by_elimination(n, edges, conductances, u, v) for u in range(n) for v in range(u)}
        graph, how = Graph(n, edges), {"weight": sizes.tolist()}
        assert spectra.kirchhoff_index(graph, **how) == pytest.approx(float(sum(exact.values())), rel=1e-7)
        for (u, v), known in exact.items():
            assert spectra.resistance_distance(graph, u, v, **how) == pytest.approx(float(known), rel=1e-9)
    series = Graph(3, [(0, 1), (1, 2)])
    assert spectra.kirchhoff_index(series, weight=[1, 10**decades]) == pytest.approx(2 + 2 * 10**decades, rel=1e-9)
    assert spectra.resistance_distance(series, 0, 2, weight=[10.0**-decades, 1]) == pytest.approx(1 + 10.0**-decades)


#: A wheel with a double edge and one of weight zero.
WHEEL = Graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5), (1, 5), (2, 5), (3, 5), (3, 5), (4, 5)])


@pytest.mark.parametrize(
    "weights", [[1, 2, 3, 1, 2, 5, 1, 0, 4, 2, 3], [0.1 * (i + 1) for i in range(11)]], ids=["whole", "floats"]
)
def test_random_trees_have_the_probabilities_of_their_weights(weights):
    """Chi-square on all trees, false-alarm rate 1e-6."""
    exact = [Fraction(w) for w in weights]
    law = {}
    for chosen in itertools.combinations(range(11), 5):
        kept = networkx.MultiGraph([WHEEL.edges[e].tolist() for e in chosen])
        if len(kept) == 6 and networkx.is_connected(kept):
            law[chosen] = float(math.prod(exact[e] for e in chosen))
    rng = np.random.default_rng(17)
    drawn = counting.random_spanning_tree(WHEEL, size=6_000, weight=weights, rng=rng)
    seen = Counter(map(tuple, drawn.tolist()))
    assert all(law.get(tree) for tree in seen)
    total = sum(law.values())
    assert_discrete_fit([seen[tree] for tree in law], [p / total for p in law.values()])


@pytest.mark.parametrize("weights", [[1, 2, 3, 1, 2, 5, 1, 0, 4, 2, 3], [0.25 * (i + 1) for i in range(11)]])
def test_random_matchings_have_the_probabilities_of_their_weights(weights):
    """Chi-square on all perfect matchings, false-alarm rate 1e-6; bond orders exactly."""
    law = {
        chosen: math.prod(Fraction(weights[e]) for e in chosen)
        for chosen in itertools.combinations(range(11), 3)
        if len(set(WHEEL.edges[list(chosen)].ravel().tolist())) == 6
    }
    total = sum(law.values())
    assert total == counting.count_perfect_matchings(WHEEL, weight=weights)
    bonds = counting.edge_probabilities(WHEEL, weight=weights)
    assert bonds == [sum(p for chosen, p in law.items() if e in chosen) / total for e in range(11)]
    rng = np.random.default_rng(18)
    drawn = counting.random_perfect_matching(WHEEL, size=1_500, weight=weights, rng=rng)
    seen = Counter(map(tuple, drawn.tolist()))
    assert all(law.get(matching) for matching in seen)
    assert_discrete_fit([seen[m] for m in law], [float(p / total) for p in law.values()])


def test_weights_that_leave_nothing_to_draw_are_refused():
    with pytest.raises(ValueError, match="`graph` must be connected"):
        counting.random_spanning_tree((3, [(0, 1), (1, 2)]), weight=[1, 0])
    for function in (counting.random_perfect_matching, counting.edge_probabilities):
        with pytest.raises(ValueError, match="`graph` must have a perfect matching"):
            function((2, [(0, 1)]), weight=[0])
