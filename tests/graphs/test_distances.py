"""Distances, spheres, distance-degree regularity, and induced graphs."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import graphs
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, distances, induced_graph, is_distance_degree_regular, sphere_sizes, spheres

FIXED = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def small_graphs(draw, most=9):
    n = draw(st.integers(1, most))
    ends = st.integers(0, n - 1)
    return Graph(n, draw(st.lists(st.tuples(ends, ends), max_size=14)))


@FIXED
@given(small_graphs())
def test_distances_and_spheres_agree_with_networkx(graph):
    n = graph.num_vertices
    expected = np.full((n, n), -1)
    for u, row in nx.all_pairs_shortest_path_length(graph.to_networkx()):
        for v, distance in row.items():
            expected[u, v] = distance
    found = distances(graph)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, distances(graph, threads=1))
    sizes = sphere_sizes(graph)
    for v in range(n):
        around = spheres(graph, v)
        assert [sphere.tolist() for sphere in around] == [
            np.flatnonzero(expected[v] == d).tolist() for d in range(expected[v].max() + 1)
        ]
        assert [len(sphere) for sphere in around] == [size for size in sizes[v] if size]
    assert is_distance_degree_regular(graph) == (len(np.unique(sizes, axis=0)) == 1)


@pytest.mark.parametrize(("length", "letters"), [(3, 2), (4, 3), (2, 7)])
def test_spheres_of_hamming_graphs_have_binomial_sizes(length, letters):
    from math import comb

    expected = [comb(length, d) * (letters - 1) ** d for d in range(length + 1)]
    graph = graphs.hamming(length, letters)
    assert (sphere_sizes(graph) == expected).all()
    assert is_distance_degree_regular(graph)


def test_graphs_without_vertices_or_edges_have_trivial_distances():
    assert distances((0, [])).shape == (0, 0)
    assert sphere_sizes((0, [])).shape == (0, 0)
    assert is_distance_degree_regular((0, []))
    assert distances((2, [])).tolist() == [[0, -1], [-1, 0]]
    assert [sphere.tolist() for sphere in spheres((2, []), 1)] == [[1]]


def test_a_counting_query_on_databases_gives_a_path_and_a_sum_modulo_m_a_ring():
    cube = graphs.hamming(5, 2)
    assert induced_graph(cube, [v.bit_count() for v in range(32)]) == graphs.path(6)
    assert induced_graph(cube, [v.bit_count() % 4 for v in range(32)]) == graphs.cycle(4)
    words = list(itertools.product(range(3), repeat=3))
    by_sum = induced_graph(graphs.hamming(3, 3), [sum(word) % 7 for word in words])
    assert by_sum.num_vertices == 7
    assert by_sum.num_edges == 6 + 5  # one letter changes the sum by one or two


def test_answers_may_be_any_hashable_and_become_labels():
    graph = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 3)], labels=["ann", "bob", "carl", "dora"])
    assert induced_graph(graph, len).labels == (3, 4)
    assert induced_graph(graph, len).edges.tolist() == [[0, 1]]
    mixed = induced_graph(graph, ["x", 1, "x", None])
    assert list(mixed.labels) == ["x", 1, None]
    assert mixed.edges.tolist() == [[0, 1], [0, 2]]
    assert induced_graph(graph, np.zeros(4)).num_edges == 0
    lengths = {name: len(name) for name in reversed(graph.labels)}
    assert induced_graph(graph, lengths) == induced_graph(graph, len)
    assert induced_graph(graphs.path(4), {0: "x", 1: "y", 2: "x", 3: "y"}).labels == ("x", "y")
    with pytest.raises(ValueError, match="`query` must have an answer for each vertex, got none for 'dora'"):
        induced_graph(graph, {"ann": 1, "bob": 1, "carl": 2})
    with pytest.raises(TypeError, match="`query` must be in an order, as a list is, got set"):
        induced_graph(graph, {"a", "b", "c", "d"})


@FIXED
@given(small_graphs(), st.data())
def test_induced_edges_are_those_of_the_definition(graph, data):
    n = graph.num_vertices
    answers = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    induced = induced_graph(graph, answers)
    labels = list(induced.labels)
    found = {frozenset((labels[a], labels[b])) for a, b in induced.edges.tolist()}
    expected = {frozenset((answers[a], answers[b])) for a, b in graph.edges.tolist() if answers[a] != answers[b]}
    assert found == expected
    assert labels == sorted(set(answers))


def test_bad_input_is_refused():
    path = graphs.path(3)
    with pytest.raises(ValueError, match=r"`query` must have shape \(3,\), got \(2,\)"):
        induced_graph(path, [0, 1])
    with pytest.raises(TypeError, match="hashable"):
        induced_graph(path, [0, [1], 2])
    with pytest.raises(ValueError, match="nan for vertex 1"):
        induced_graph(path, [0, float("nan"), 2])
    with pytest.raises(ValueError, match="`v` must be between 0 and 2, got 3"):
        spheres(path, 3)
    with pytest.raises(ValueError, match="threads"):
        distances(path, threads=0)
    for source in ({"source": 0}, {"source": 0, "target": 2}):
        with pytest.raises(ValueError, match="threads"):
            distances(path, **source, threads=0)
    with pytest.raises(TooLargeError, match="distances"):
        distances(graphs.path(1000), memory_limit=1000)
    for function in (distances, sphere_sizes, is_distance_degree_regular):
        with pytest.raises(TypeError, match="`graph`"):
            function(7)


def test_distances_and_spheres_are_asked_for_and_answered_by_label():
    karate = nx.relabel_nodes(nx.karate_club_graph(), lambda v: f"member {v}")
    karate.add_node("stranger")
    expected = nx.single_source_shortest_path_length(karate, "member 5")
    found = distances(karate, "member 5")
    assert found.pop("stranger") == -1
    assert found == expected
    assert distances(karate, "member 5", "member 16") == 1
    assert distances(karate, "member 5", "stranger") == -1
    around = spheres(karate, "member 5")
    assert [set(sphere) for sphere in around] == [
        {label for label, d in expected.items() if d == radius} for radius in range(len(around))
    ]
    assert distances(graphs.cycle(5), 1).tolist() == [1, 0, 1, 2, 2]
    assert distances(graphs.cycle(5), 1, 3) == 2
    for wrong in ({"source": "nobody"}, {"source": "member 1", "target": "nobody"}, {"target": "member 1"}):
        with pytest.raises(ValueError, match=r"`(source|target)` must be"):
            distances(karate, **wrong)
    with pytest.raises(ValueError, match="`v` must be the label of a vertex"):
        spheres(karate, 5)
