"""Numbers of independent sets and their polynomials: known answers, engines against one another, laws, bad input."""

import itertools
import resource
import time

import networkx
import numpy as np
import pytest
import scipy.sparse
from counting_oracle import all_subsets, branching, frontier_sums, value
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import graphs, lattices
from quincunx.counting import count_independent_sets, estimate_cost, hard_core, independence_polynomial
from quincunx.errors import TooLargeError

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
BOUNDARIES = ["free", "cylinder", "torus"]
KERNELS = ["square", "king", "triangular", "4-8-8"]
FAMILIES = {
    "path": graphs.path,
    "cycle": graphs.cycle,
    "complete": graphs.complete,
    "complete bipartite": lambda a, b: graphs.Graph(a + b, [(u, a + v) for u in range(a) for v in range(b)]),
    "isolated": lambda n: graphs.Graph(n, []),
}


def fibonacci(n):
    return n if n < 2 else next(a for i, (a, _) in enumerate(pairs_of_fibonacci()) if i == n)


def pairs_of_fibonacci():
    pair = (0, 1)
    while True:
        yield pair
        pair = pair[1], sum(pair)


FORMULAS = {
    "path": lambda n: fibonacci(n + 2),
    "cycle": lambda n: fibonacci(n - 1) + fibonacci(n + 1),
    "complete": lambda n: n + 1,
    "complete bipartite": lambda a, b: 2**a + 2**b - 1,
    "isolated": lambda n: 2**n,
}
PUBLISHED = {"OEIS A006506", "OEIS A027683", "OEIS A063443", "triple-step transfer matrices in big integers"}


def check_origins(graph, expected, origins, formula=None):
    """Compute a known answer in every way it is said to come from."""
    assert len(origins) >= 2
    n, edges = graph.num_vertices, graph.edges.tolist()
    plain = graphs.Graph(n, edges)
    for origin in origins:
        if origin in PUBLISHED:
            continue
        found = {
            "all subsets": lambda: sum(all_subsets(n, edges)),
            "branching on a vertex": lambda: branching(n, edges),
            "frontier sums": lambda: frontier_sums(n, edges),
            "frontier engine": lambda: count_independent_sets(plain),
            "lattice kernel": lambda: count_independent_sets(graph),
            "formula": lambda: formula,
        }[origin.partition(":")[0]]()
        assert found == expected, origin


def entries(known, key):
    for entry in known("independent_sets")[key]:
        yield entry, int(entry["count"]), [int(c) for c in entry.get("coefficients", [])]


# Known answers.


def test_known_graphs_have_their_counts(known):
    for entry, count, coefficients in entries(known, "graphs"):
        graph = graphs.Graph(entry["vertices"], entry["edges"])
        check_origins(graph, count, entry["origins"])
        assert not coefficients or independence_polynomial(graph) == coefficients
        if "all subsets" in entry["origins"]:
            assert independence_polynomial(graph) == all_subsets(entry["vertices"], entry["edges"])


def test_known_families_have_the_counts_of_their_formulas(known):
    for entry, count, _ in entries(known, "families"):
        graph = FAMILIES[entry["family"]](*entry["arguments"])
        check_origins(graph, count, entry["origins"], FORMULAS[entry["family"]](*entry["arguments"]))


def test_known_lattices_have_their_counts(known):
    for entry, count, coefficients in entries(known, "lattices"):
        lattice = lattices.named(entry["lattice"], *entry["extent"], entry["boundary"], multigraph=True)
        check_origins(lattice, count, entry["origins"])
        assert not coefficients or independence_polynomial(lattice) == coefficients


# Engines against one another and against all subsets.


def small_lattices(kind, most):
    """Return every lattice of a kind with at most so many vertices, with its boundaries."""
    found = {}
    for m, n in itertools.product(range(1, most + 1), repeat=2):
        if kind == "aztec-diamond":
            made = [lattices.named(kind, m)] if n == 1 else []
        elif kind == "generalized-aztec":
            made = [lattices.named(kind, m, n)]
        elif kind == "4-8-8":
            made = [lattices.named(kind, m, n, boundary) for boundary in BOUNDARIES] if m * n <= most else []
        else:
            axes = itertools.product([False, True], repeat=2)
            made = [lattices.named(kind, m, n, pbc=pbc, multigraph=True) for pbc in axes] if m * n <= most else []
        found |= {repr(lattice): lattice for lattice in made if lattice.num_vertices <= most}
    assert found
    return found.values()


@pytest.mark.parametrize("kind", [name for name in lattices.NAMES if name not in ("3-6-24", "3-6-12-48")])
def test_every_small_lattice_agrees_with_all_subsets(kind):
    for lattice in small_lattices(kind, 12 if kind in KERNELS else 18):
        coefficients = all_subsets(lattice.num_vertices, lattice.edges.tolist())
        for graph in (lattice, lattice.graph):
            assert count_independent_sets(graph) == sum(coefficients), lattice
            assert independence_polynomial(graph) == coefficients, lattice


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(
    ("kind", "m", "n"),
    [
        ("square", 9, 7),
        ("square", 6, 11),
        ("king", 8, 9),
        ("triangular", 7, 9),
        ("triangular", 8, 5),
        ("4-8-8", 4, 3),
        ("4-8-8", 2, 5),
        ("honeycomb", 4, 4),
        ("kagome", 3, 4),
        ("triangular-kagome", 3, 3),
        ("martini", 3, 4),
        ("4-8-8", 3, 4),
        ("3-12-12", 3, 3),
        ("3-6-24", 3, 3),
        ("modified-bathroom", 4, 3),
    ],
)
def test_kernel_frontier_engine_and_sums_in_python_integers_agree(kind, m, n, boundary):
    lattice = lattices.named(kind, m, n, boundary)
    count = frontier_sums(lattice.num_vertices, lattice.edges.tolist())
    assert count_independent_sets(lattice) == count
    assert count_independent_sets(lattice.graph) == count
    if kind in KERNELS:
        coefficients = independence_polynomial(lattice)
        assert coefficients == independence_polynomial(lattice.graph)
        assert sum(coefficients) == count


@pytest.mark.parametrize("kind", ["square", "king", "triangular"])
def test_a_cylinder_closed_in_the_first_axis_is_the_transposed_cylinder(kind):
    family = getattr(lattices, kind)
    for m, n in [(3, 4), (5, 3), (7, 6), (9, 2)]:
        turned = family(m, n, pbc=(True, False), multigraph=True)
        assert turned.boundary is None
        count = count_independent_sets(family(n, m, "cylinder", multigraph=True))
        assert count_independent_sets(turned) == count
        assert count_independent_sets(turned.graph) == count


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_transposing_a_lattice_keeps_its_count(kind, boundary):
    for m, n in [(3, 4), (3, 9), (7, 5), (4, 6)]:
        counts = {count_independent_sets(lattices.named(kind, *extent, boundary)) for extent in [(m, n), (n, m)]}
        assert len(counts) == 1


def test_a_cylinder_is_not_the_same_as_its_transpose():
    assert count_independent_sets(lattices.four_eight_eight(2, 3, "cylinder")) == 872817
    assert count_independent_sets(lattices.four_eight_eight(3, 2, "cylinder")) == 308007


def test_torus_count_equals_trace_of_transfer_power():
    for m, n in [(1, 1), (1, 4), (2, 2), (2, 5), (3, 6), (6, 3), (5, 5)]:
        rings = [w for w in range(1 << n) if not w & (w >> 1 | (w & 1) << (n - 1))]
        step = np.array([[int(v & w == 0) for w in rings] for v in rings], dtype=object)
        trace = int(np.trace(np.linalg.matrix_power(step, m)))
        assert count_independent_sets(lattices.square(m, n, "torus", multigraph=True)) == trace


def test_a_looped_vertex_is_in_no_set_and_parallel_edges_are_one():
    assert count_independent_sets(lattices.square(1, 1, "torus", multigraph=True)) == 1
    assert count_independent_sets(lattices.square(1, 7, "torus", multigraph=True)) == 1
    assert count_independent_sets(lattices.square(2, 2, "torus", multigraph=True)) == 7
    assert count_independent_sets((3, [(0, 0), (1, 2), (2, 1), (1, 2)])) == 3
    assert independence_polynomial((3, [(0, 0), (1, 2), (2, 1)])) == [1, 2]


def test_random_graphs_of_some_size_agree_with_branching():
    random = np.random.default_rng(20)
    for n, m in [(24, 30), (30, 45), (36, 40), (40, 60), (28, 140), (45, 52)]:
        edges = random.integers(0, n, (m, 2)).tolist()
        assert count_independent_sets((n, edges)) == branching(n, edges)


def test_long_and_thin_lattices_are_exact_far_beyond_machine_words():
    # A path is a lattice of one row; a ladder's count follows a(n) = 2 a(n-1) + a(n-2).
    assert count_independent_sets(lattices.square(1, 20_000)) == next(itertools.islice(fibonacci_from(2), 20_000, None))
    ladder = (1, 3)
    for _ in range(1, 3_000):
        ladder = ladder[1], 2 * ladder[1] + ladder[0]
    assert count_independent_sets(lattices.square(3_000, 2)) == ladder[1]


def fibonacci_from(start):
    for i, (number, _) in enumerate(pairs_of_fibonacci()):
        if i >= start:
            yield number


# Laws.


@st.composite
def multigraphs(draw, most=11):
    n = draw(st.integers(0, most))
    ends = st.integers(0, n - 1) if n else st.nothing()
    return n, draw(st.lists(st.tuples(ends, ends), max_size=2 * n))


@FIXED
@given(multigraphs(), st.randoms(use_true_random=False))
def test_any_graph_in_any_order_agrees_with_all_subsets(graph, random):
    coefficients = all_subsets(*graph)
    assert count_independent_sets(graph) == sum(coefficients)
    assert independence_polynomial(graph) == coefficients
    order = list(range(graph[0]))
    random.shuffle(order)
    assert count_independent_sets(graph, order=order) == sum(coefficients)
    assert independence_polynomial(graph, order=order) == coefficients


@FIXED
@given(multigraphs(20), multigraphs(20))
def test_disjoint_union_multiplies(first, second):
    union = first[0] + second[0], first[1] + [(u + first[0], v + first[0]) for u, v in second[1]]
    assert count_independent_sets(union) == count_independent_sets(first) * count_independent_sets(second)
    product = np.polymul(independence_polynomial(first)[::-1], independence_polynomial(second)[::-1])
    assert independence_polynomial(union) == product[::-1].tolist()


@FIXED
@given(multigraphs(20).filter(lambda graph: graph[0] > 0), st.data())
def test_adding_an_edge_never_raises_the_count(graph, data):
    ends = st.integers(0, graph[0] - 1)
    more = graph[0], [*graph[1], (data.draw(ends), data.draw(ends))]
    assert count_independent_sets(more) <= count_independent_sets(graph)


def without(graph, removed):
    """Return a graph without some vertices."""
    n, edges = graph
    number = {v: i for i, v in enumerate(v for v in range(n) if v not in removed)}
    return len(number), [(number[u], number[v]) for u, v in edges if u in number and v in number]


def neighborhood(graph, vertex):
    """Return a vertex and its neighbors."""
    return {vertex} | {u for edge in graph[1] for u in edge if vertex in edge}


@FIXED
@given(multigraphs(20).filter(lambda graph: graph[0] > 0), st.data())
def test_a_count_is_that_without_a_vertex_plus_that_without_its_neighborhood(graph, data):
    vertex = data.draw(st.integers(0, graph[0] - 1))
    count = count_independent_sets(without(graph, {vertex}))
    if (vertex, vertex) not in graph[1]:
        count += count_independent_sets(without(graph, neighborhood(graph, vertex)))
    assert count_independent_sets(graph) == count


@FIXED
@given(multigraphs(14))
def test_sets_with_a_vertex_summed_over_the_vertices_are_the_derivative_at_one(graph):
    derivative = sum(k * count for k, count in enumerate(independence_polynomial(graph)))
    free = [v for v in range(graph[0]) if (v, v) not in graph[1]]
    assert derivative == sum(count_independent_sets(without(graph, neighborhood(graph, v))) for v in free)


@FIXED
@given(multigraphs(20), st.integers(-(10**20), 10**20))
def test_the_polynomial_at_an_activity_is_the_partition_function(graph, activity):
    coefficients = independence_polynomial(graph)
    assert value(coefficients, activity) == hard_core(graph, activity)
    assert value(coefficients, 1) == count_independent_sets(graph)
    looped = {u for u, v in graph[1] if u == v}
    assert coefficients[0] == 1
    assert sum(coefficients[1:2]) == graph[0] - len(looped)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_more_edges_on_the_same_vertices_mean_fewer_sets(boundary):
    counts = [count_independent_sets(lattices.named(kind, 7, 8, boundary)) for kind in ("king", "triangular", "square")]
    assert counts == sorted(set(counts))


def test_the_polynomial_of_a_lattice_has_its_vertices_edges_and_largest_sets():
    lattice = lattices.square(10, 10)
    coefficients = independence_polynomial(lattice)
    assert coefficients[:3] == [1, 100, 100 * 99 // 2 - 180]
    assert len(coefficients) - 1 == 50
    assert coefficients[-1] == 2
    assert independence_polynomial(lattices.king(9, 9))[-1] == 1
    assert len(independence_polynomial(lattices.king(9, 9))) - 1 == 25


# What may be given, and what comes of it.


def petersen():
    return networkx.relabel_nodes(networkx.petersen_graph(), {v: f"v{v}" for v in range(10)})


def test_every_kind_of_graph_is_taken():
    matrix = networkx.to_scipy_sparse_array(petersen())
    edges = networkx.convert_node_labels_to_integers(petersen()).edges
    upper = scipy.sparse.triu(matrix).tocsc()
    for graph in [
        petersen(),
        networkx.MultiGraph(petersen()),
        matrix,
        scipy.sparse.csr_matrix(matrix),
        upper,
        graphs.Graph.from_networkx(petersen()),
        (10, list(edges)),
        (10, np.array(edges)),
        (10, np.array(edges, dtype=np.uint8)),
        (10, np.asfortranarray(np.array(edges, dtype=np.int32))),
        (np.int16(10), np.array(edges, dtype=float)),
        [10, list(edges)],
    ]:
        assert count_independent_sets(graph) == 76
        assert independence_polynomial(graph) == [1, 10, 30, 30, 5]


def test_what_was_given_is_not_changed():
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    copy = edges.copy()
    assert count_independent_sets((3.0, iter(edges.tolist()))) == 4
    edges.setflags(write=False)
    assert count_independent_sets((3, edges)) == 4
    assert np.array_equal(edges, copy)


def test_the_order_is_given_in_the_graphs_own_labels():
    graph = petersen()
    order = [f"v{v}" for v in (9, 3, 0, 1, 2, 4, 5, 8, 7, 6)]
    assert count_independent_sets(graph, order=order) == 76
    assert count_independent_sets(graph, order=tuple(order)) == 76
    assert count_independent_sets(lattices.square(4, 5), order=np.arange(20)[::-1]) == count_independent_sets(
        lattices.square(4, 5)
    )


def test_a_count_is_an_int_and_the_empty_graph_has_one_set():
    for graph in [(0, []), graphs.Graph(0, []), networkx.Graph(), scipy.sparse.csr_array((0, 0))]:
        assert count_independent_sets(graph) == 1
        assert type(count_independent_sets(graph)) is int
        assert independence_polynomial(graph) == [1]
    assert type(count_independent_sets(lattices.square(2, 2))) is int


@pytest.mark.parametrize("function", [count_independent_sets, independence_polynomial])
@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"graph": networkx.DiGraph([(0, 1)])}, ValueError, "`graph` must be undirected"),
        ({"graph": "square"}, TypeError, "`graph` must be"),
        ({"graph": None}, TypeError, "`graph` must be"),
        ({"graph": np.zeros(3)}, ValueError, "`graph` must be square"),
        ({"graph": scipy.sparse.csr_array((2, 3))}, ValueError, "square"),
        ({"graph": (-1, [])}, ValueError, "`n` must be"),
        ({"graph": (2.5, [])}, TypeError, "`n` must be"),
        ({"graph": (2**32, [])}, ValueError, "`n` must be"),
        ({"graph": (3, [(0, 3)])}, ValueError, r"`edges` must be pairs of vertices in 0..2, got \(0, 3\)"),
        ({"graph": (3, [(0, -1)])}, ValueError, "`edges`"),
        ({"graph": (3, [(0, 0.5)])}, ValueError, "`edges`"),
        ({"graph": (3, [(0, float("nan"))])}, ValueError, "`edges`"),
        ({"graph": (3, [(0, 1, 2)])}, ValueError, r"shape \(m, 2\)"),
        ({"graph": (3, ["ab"])}, TypeError, "`edges`"),
        ({"graph": (3, [(0, 1)]), "order": [0, 1]}, ValueError, "`order` must list each of the 3 vertices once"),
        ({"graph": (3, [(0, 1)]), "order": [0, 1, 1]}, ValueError, "`order`"),
        ({"graph": (3, [(0, 1)]), "order": [0, 1, 3]}, ValueError, "`order`"),
        ({"graph": (3, [(0, 1)]), "order": [0, 1, 2.5]}, ValueError, "unknown vertex 2.5"),
        ({"graph": (3, [(0, 1)]), "order": ["a", "b", "c"]}, ValueError, "`order`"),
        ({"graph": (3, [(0, 1)]), "order": [0, "b", None]}, ValueError, "`order`"),
        ({"graph": (3, [(0, 1)]), "order": 7}, TypeError, "`order`"),
        ({"graph": petersen(), "order": [*[f"v{v}" for v in range(9)], "w"]}, ValueError, "unknown vertex 'w'"),
        ({"graph": petersen(), "order": [*[f"v{v}" for v in range(9)], []]}, TypeError, "`order`"),
        ({"graph": (3, []), "threads": 0}, ValueError, "`threads` must be between 1 and 256, got 0"),
        ({"graph": (3, []), "threads": 257}, ValueError, "`threads`"),
        ({"graph": (3, []), "threads": 1.5}, TypeError, "`threads`"),
        ({"graph": (3, []), "threads": True}, TypeError, "`threads`"),
        ({"graph": (3, []), "memory_limit": 0}, ValueError, "`memory_limit` must be at least 1, got 0"),
        ({"graph": (3, []), "memory_limit": -5}, ValueError, "`memory_limit`"),
        ({"graph": (3, []), "memory_limit": float("nan")}, TypeError, "`memory_limit`"),
        ({"graph": (3, []), "memory_limit": "6G"}, TypeError, "`memory_limit`"),
        ({"graph": (3, []), "progress": 3}, TypeError, "`progress` must be None, True or a function"),
        ({"graph": (3, []), "checkpoint": 3}, TypeError, "`checkpoint` must be a path, got int"),
        ({"graph": (3, []), "checkpoint_interval": -1}, ValueError, "`checkpoint_interval` must be at least 0"),
        ({"graph": (3, []), "checkpoint_interval": float("inf")}, ValueError, "`checkpoint_interval` must be finite"),
        ({"graph": (3, []), "checkpoint_interval": "soon"}, TypeError, "`checkpoint_interval`"),
        ({"graph": (3, []), "checkpoint_interval": 5}, ValueError, "`checkpoint_interval` must be left out without"),
    ],
)
def test_bad_input_is_named_with_its_rule_and_its_value(function, arguments, error, says):
    with pytest.raises(error, match=says):
        function(**arguments)


def test_a_lattice_that_does_not_exist_is_refused():
    for name, m, n, boundary in [("cubic", 2, 2, "free"), ("square", 0, 2, "free"), ("square", 2, -1, "free")]:
        with pytest.raises(ValueError):
            lattices.named(name, m, n, boundary)
    with pytest.raises(TypeError):
        lattices.named("square", 2.5, 2)
    with pytest.raises(ValueError, match="`boundary`"):
        lattices.named("square", 4, 4, "open")
    with pytest.raises(ValueError, match="multigraph"):
        lattices.square(2, 5, "torus")


def test_limits_beyond_any_machine_are_no_limits(tmp_path):
    how = {"checkpoint": tmp_path / "state", "checkpoint_interval": 1e300}
    assert count_independent_sets((3, [(0, 1)]), memory_limit=2**200, **how) == 6


@pytest.mark.parametrize(
    "graph",
    [
        *[lattices.named(kind, 12, 13, boundary) for kind in KERNELS for boundary in ("free", "cylinder")],
        lattices.square(8, 9, "torus"),
    ],
    ids=repr,
)
def test_a_job_larger_than_its_limit_is_refused_with_what_it_needs(graph):
    with pytest.raises(TooLargeError, match=r"needs \d+ bytes") as refusal:
        count_independent_sets(graph, memory_limit=100)
    needed = refusal.value.needed
    assert refusal.value.limit == 100 < needed
    assert str(needed) in str(refusal.value)
    assert isinstance(refusal.value, MemoryError)
    assert count_independent_sets(graph, memory_limit=needed) == count_independent_sets(graph)
    with pytest.raises(TooLargeError):
        count_independent_sets(graph, memory_limit=needed - 1)


def test_a_graph_is_counted_in_less_memory_at_the_price_of_more_work():
    graph = lattices.honeycomb(8, 8)
    plain = estimate_cost(graph, memory_limit=10**6)
    tight = estimate_cost(graph, memory_limit=1000)
    assert tight.bytes <= 1000 < plain.bytes
    assert tight.additions > plain.additions
    assert count_independent_sets(graph, memory_limit=1000) == count_independent_sets(graph)
    with pytest.raises(TooLargeError) as refusal:
        count_independent_sets(graph, memory_limit=100)
    assert refusal.value.limit == 100 < refusal.value.needed


def test_a_refused_job_has_allocated_nothing_and_taken_no_time():
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    for graph in [
        lattices.square(60, 60),
        lattices.square(40, 40, "torus"),
        lattices.king(50, 50),
        lattices.triangular(44, 45, "cylinder"),
        lattices.four_eight_eight(40, 40),
        lattices.square(60, 60).graph,
    ]:
        with pytest.raises(TooLargeError):
            count_independent_sets(graph, memory_limit=10**8)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 64_000, "kilobytes"
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", ["square", "king", "triangular"])
@pytest.mark.parametrize("twist", [0, 1, 2])
def test_a_twist_is_not_forgotten_by_the_kernels(kind, twist):
    lattice = lattices.named(kind, 4, 3, "torus", twist=twist)
    assert count_independent_sets(lattice) == count_independent_sets(lattice.graph)
    assert independence_polynomial(lattice) == independence_polynomial(lattice.graph)
    assert hard_core(lattice, 3) == hard_core(lattice.graph, 3)
    assert (count_independent_sets(lattice) != count_independent_sets(lattices.named(kind, 4, 3, "torus"))) == (
        twist > 0 and kind == "square"
    ) or kind != "square"
