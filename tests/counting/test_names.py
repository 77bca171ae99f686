"""Vertices and edges go in and come back by the names of the caller, in every public function that has any."""

import importlib
import inspect

import matplotlib
import networkx
import pytest

from quincunx import counting, graphs, lattices, leakage, spectra
from quincunx.graphs import Graph

matplotlib.use("agg")

ROOMS = [
    "graphs",
    "lattices",
    "counting",
    "spectra",
    "entropy",
    "leakage",
    "factorization",
    "privacy",
    "ldp",
    "posterior",
]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3)]
#: The same as networkx lists them.
ORDERED = [(0, 1), (0, 5), (0, 3), (1, 2), (2, 3), (3, 4), (4, 5)]
ACTIVITIES = [2, 3, 1, 1, 5, 1]

# Functions of a graph that answer with vertices or edges, and how each is asked: of a graph, by the name of a vertex.
# What they answer with is a list: of vertices, of edges, or of both with a value for each.
OUT = {
    "counting.random_spanning_tree": ("edges", lambda g, _: counting.random_spanning_tree(g, rng=3)),
    "counting.random_perfect_matching": ("edges", lambda g, _: counting.random_perfect_matching(g, rng=3)),
    "counting.random_independent_set": ("vertices", lambda g, _: counting.random_independent_set(g, rng=4)),
    "counting.independence_number": ("vertices", lambda g, _: counting.independence_number(g).example),
    "counting.occupation_probabilities": ("by vertex", lambda g, _: counting.occupation_probabilities(g, ACTIVITIES)),
    "counting.edge_probabilities": ("by edge", lambda g, _: counting.edge_probabilities(g)),
    "graphs.spheres": ("vertices", lambda g, name: [v for sphere in graphs.spheres(g, name(1)) for v in sphere]),
    "graphs.distances": ("by vertex", lambda g, name: graphs.distances(g, name(2))),
    "graphs.automorphism_group": (
        "vertices",
        lambda g, _: [v for orbit in graphs.automorphism_group(g).orbit_sets() for v in orbit],
    ),
}


def by(name):
    return {name(v): z for v, z in enumerate(ACTIVITIES) if z != 1}


def picture(graph, name):
    """What is filled and what is thick in a drawing."""
    plain = isinstance(graph, Graph) and graph.labels == range(6)
    edges = [graph.edges.tolist().index([u, v]) if plain else (name(v), name(u)) for u, v in ORDERED]
    ax = lattices.draw(
        graph,
        independent_set=[name(0), name(2)],
        matching=[edges[1], edges[4]],
        tree=[edges[5]],
        edges=[edges[6]],
        positions={name(v): (v, v * v % 5) for v in range(6)},
    )
    thick = [lines.get_segments() for lines in ax.collections[:-1]]
    return str(thick), ax.collections[-1].get_facecolors().tolist()


# Functions that are told vertices or edges by their names, and how.
IN = {
    "counting.transfer_matrices": lambda g, name: [
        matrix.tolist()
        for matrix in counting.transfer_matrices(g, [map(name, [0]), map(name, [1, 3, 5]), map(name, [2, 4])]).matrices
    ],
    "counting.count_independent_sets": lambda g, name: counting.count_independent_sets(g, order=map(name, range(6))),
    "counting.independence_polynomial": lambda g, name: counting.independence_polynomial(g, order=map(name, range(6))),
    "counting.hard_core": lambda g, name: counting.hard_core(g, by(name)),
    "counting.residue": lambda g, name: counting.residue(g, counting.primes(1)[0], order=list(map(name, range(6)))),
    "counting.count_matchings": lambda g, name: counting.count_matchings(g, order=[*map(name, range(6))]),
    "counting.matching_polynomial": lambda g, name: counting.matching_polynomial(g, order=[*map(name, range(6))]),
    "counting.chromatic_polynomial": lambda g, name: counting.chromatic_polynomial(g, order=[*map(name, range(6))]),
    "counting.tutte_polynomial": lambda g, name: counting.tutte_polynomial(g, order=[*map(name, range(6))]),
    "counting.potts_polynomial": lambda g, name: counting.potts_polynomial(g, 3, order=[*map(name, range(6))]),
    "counting.potts_partition_function": lambda g, name: counting.potts_partition_function(
        g, 3, 1, order=[*map(name, range(6))]
    ),
    "counting.count_perfect_matchings": lambda g, name: counting.count_perfect_matchings(
        g, order=[*map(name, range(6))]
    ),
    "counting.estimate_cost": lambda g, name: (
        vars(counting.estimate_cost(g, order=[*map(name, range(6))])) | {"seconds": 0}
    ),
    "counting.expected_size": lambda g, name: counting.expected_size(g, by(name)),
    "counting.occupation_probabilities": lambda g, name: counting.occupation_probabilities(g, by(name)),
    "counting.random_independent_set": lambda g, name: counting.random_independent_set(g, by(name), rng=1),
    "graphs.distances": lambda g, name: graphs.distances(g, name(0), name(2)),
    "graphs.spheres": lambda g, name: graphs.spheres(g, name(5)),
    "lattices.draw": picture,
    "spectra.resistance_distance": lambda g, name: spectra.resistance_distance(g, name(0), name(4), exact=True),
}

# Functions of a graph that neither are told nor answer with a vertex or an edge: numbers, or arrays and channels in the
# order of the vertices, or graphs whose vertices are others and have no names.
NEITHER = {
    "counting": "count_spanning_trees log_matchings log_perfect_matchings log_spanning_trees size_distribution",
    "graphs": "is_distance_degree_regular line_graph sphere_sizes subdivide",
    "lattices": "clique_insert",
    "spectra": "algebraic_connectivity average_resistance density_of_states energy kirchhoff_index spectrum",
    "leakage": "distance_channel leakage_bound optimal_mechanism plot_utility utility_bound",
}


def test_every_public_function_of_a_graph_is_in_a_table():
    found = set()
    for room in ROOMS:
        module = importlib.import_module(f"quincunx.{room}")
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function):
                kinds = [str(p.annotation) for p in inspect.signature(function).parameters.values()]
                if any("GraphLike" in kind or "_HasGraph" in kind for kind in kinds):
                    found.add(f"{room}.{name}")
    neither = {f"{room}.{name}" for room, names in NEITHER.items() for name in names.split()}
    assert found - neither - {"graphs.induced_graph"} == set(OUT) | set(IN)
    assert neither <= found


def given(names):
    """A graph with names as networkx's and as ours, in one order of vertices and edges."""
    labels = [names[v] for v in range(6)]
    theirs = networkx.Graph()
    theirs.add_nodes_from(labels)
    theirs.add_edges_from((names[u], names[v]) for u, v in EDGES)
    ours = Graph.from_networkx(theirs)
    return theirs, ours


@pytest.mark.parametrize("names", ["fbdace", [(0, 0), "x", 3, b"b", frozenset(), 2.5], [5, 4, 3, 2, 1, 0]], ids=str)
@pytest.mark.parametrize("function", OUT)
def test_answers_have_the_names_of_the_caller(function, names):
    kind, ask = OUT[function]
    theirs, ours = given(names)
    plain = ours.num_vertices, ours.edges
    expected = ask(plain, lambda v: v)
    ends = [tuple(names[v] for v in edge) for edge in ours.edges.tolist()]
    call = (lambda edge: ends[edge]) if "edge" in kind else (lambda v: names[v])
    for graph in (theirs, ours):
        answer = ask(graph, lambda v: names[v])
        if kind.startswith("by"):
            assert answer == {call(number): value for number, value in enumerate(expected)}
        else:
            assert list(answer) == [call(number) for number in expected]
    if "edge" in kind:
        assert theirs.edge_subgraph(answer).number_of_edges() == len(answer)


@pytest.mark.parametrize("names", ["fbdace", [5, 4, 3, 2, 1, 0]], ids=str)
@pytest.mark.parametrize("function", IN)
def test_functions_are_told_vertices_and_edges_by_the_names_of_the_caller(function, names):
    ask = IN[function]
    plain = ask(given(names)[1].relabel(None), lambda v: v)
    for graph in given(names):
        answer = ask(graph, lambda v: names[v])
        if isinstance(answer, dict) and isinstance(plain, list):
            answer, expected = list(answer.values()), list(plain)
        elif isinstance(answer, tuple) and isinstance(answer[0], type(names[0])) and function != "lattices.draw":
            expected = tuple(names[v] for v in plain)
        elif function == "graphs.spheres":
            expected = [tuple(names[v] for v in sphere) for sphere in plain]
        else:
            expected = plain
        assert answer == expected


def test_networkx_graphs_of_numbers_have_names_and_plain_graphs_and_lattices_have_numbers():
    ring = networkx.cycle_graph(4)
    assert counting.random_spanning_tree(ring, rng=0) in {
        tuple(e for e in ring.edges if e != out) for out in ring.edges
    }
    assert set(counting.occupation_probabilities(ring)) == set(ring)
    assert type(counting.random_independent_set(ring, rng=1)) is tuple
    for plain in (
        Graph.from_networkx(ring),
        lattices.square(2, 2),
        (4, list(ring.edges)),
        networkx.to_scipy_sparse_array(ring),
    ):
        assert counting.random_spanning_tree(plain, rng=0).dtype == "int64"
        assert type(counting.occupation_probabilities(plain)) is type(counting.edge_probabilities(plain)) is list


def test_parallel_edges_have_the_keys_of_networkx():
    theirs = networkx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "c")])
    ours = Graph(4, [(0, 1), (0, 1), (1, 2), (2, 3), (3, 2)], labels="abcd")
    for graph in (theirs, ours):
        assert set(counting.random_spanning_tree(graph, rng=1)) <= set(theirs.edges) | {("d", "c", 1)}
        assert sum(counting.edge_probabilities(graph).values()) == 2
        assert len(counting.edge_probabilities(graph)) == 5
        lattices.draw(graph, matching=[("b", "a", 1), ("d", "c")], tree=counting.random_spanning_tree(graph, rng=1))
    for wrong in ([("a", "c")], ["ab"], [0], [("a", "b", 2)], [(["a"], "b")]):
        with pytest.raises(ValueError, match="`matching` must hold edges by their ends, got"):
            lattices.draw(ours, matching=wrong)


def test_channels_on_graphs_keep_the_order_of_the_vertices():
    theirs, ours = given("fbdace")
    assert leakage.distance_channel(theirs, 1.0) == leakage.distance_channel(ours, 1.0)
