"""Clique insertion into graphs."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, cycle, path, torus
from quincunx.lattices import clique_insert, honeycomb, square

FIXED = settings(derandomize=True, deadline=None, max_examples=50)


@st.composite
def multigraphs(draw, loops=True):
    n = draw(st.integers(1, 6))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=9))
    return Graph(n, [edge for edge in edges if loops or edge[0] != edge[1]])


@FIXED
@given(multigraphs(loops=False))
def test_it_is_the_line_graph_of_the_subdivision(graph):
    subdivided = networkx.Graph()
    for number, (u, v) in enumerate(graph.edges.tolist()):
        subdivided.add_edge(("vertex", u), ("edge", number))
        subdivided.add_edge(("edge", number), ("vertex", v))
    expected = networkx.line_graph(subdivided)
    assert networkx.is_isomorphic(clique_insert(graph).to_networkx(), expected)


@FIXED
@given(multigraphs(), st.integers(1, 3))
def test_sizes_and_degrees_follow_from_the_degrees(graph, k):
    inserted, degrees = clique_insert(graph, k), graph.degrees()
    assert inserted.num_vertices == (degrees**k).sum()
    assert 2 * inserted.num_edges == (degrees ** (k + 1)).sum()
    assert sorted(inserted.degrees().tolist()) == sorted(np.repeat(degrees, degrees**k).tolist())


@FIXED
@given(multigraphs(), st.integers(0, 3))
def test_times_add_up(graph, k):
    assert clique_insert(graph, k + 1).edges.tolist() == clique_insert(clique_insert(graph, k)).edges.tolist()


def test_small_graphs_have_the_known_insertions():
    assert networkx.is_isomorphic(clique_insert(cycle(5)).to_networkx(), networkx.cycle_graph(10))
    assert clique_insert(path(4)).edges.tolist() == [[0, 1], [2, 3], [4, 5], [1, 2], [3, 4]]
    assert networkx.is_isomorphic(clique_insert(complete(4)).to_networkx(), networkx.truncated_tetrahedron_graph())
    assert clique_insert(Graph(3, [])) == Graph(0, [])
    assert clique_insert(Graph(3, [(1, 1)])) == Graph(2, [(0, 1), (0, 1)])


def test_cutting_before_is_not_cutting_after():
    lattice = honeycomb(3, 3)
    assert lattice.clique_insert().num_vertices == 54
    assert clique_insert(lattice).num_vertices == 42
    closed = square(3, 3, "torus")
    assert networkx.vf2pp_is_isomorphic(closed.clique_insert().to_networkx(), clique_insert(closed).to_networkx())


def test_every_form_of_a_graph_is_taken():
    expected = clique_insert(complete(4))
    for form in (complete(4).to_networkx(), complete(4).to_scipy(), (4, complete(4).edges)):
        assert clique_insert(form) == expected
    labeled = Graph(2, [(0, 1)], labels="ab")
    assert clique_insert(labeled, 0) == labeled
    assert clique_insert(labeled).labels == range(2)


def test_results_too_large_are_refused_before_they_are_made():
    assert clique_insert(torus(3, 3), 2, max_vertices=144).num_vertices == 144
    with pytest.raises(ValueError, match="`max_vertices` must be at least the 144 vertices of the result, got 143"):
        clique_insert(torus(3, 3), 2, max_vertices=143)
    for k in (30, 200, 2**32 - 1):
        with pytest.raises(TooLargeError, match="clique insertion needs"):
            clique_insert(torus(3, 3), k)
    assert clique_insert(path(2), 2**32 - 1) == path(2)


def test_bad_arguments_are_refused():
    for wrong in (1.5, True, "1", None):
        with pytest.raises(TypeError, match="`k` must be a whole number"):
            clique_insert(path(3), wrong)
    with pytest.raises(ValueError, match="`k` must be between 0"):
        clique_insert(path(3), -1)
    with pytest.raises(TypeError, match="`graph` must be a Graph"):
        clique_insert("path")
    with pytest.raises(ValueError, match="directed"):
        clique_insert(networkx.DiGraph([(0, 1)]))
    with pytest.raises(TypeError, match="`max_vertices`"):
        clique_insert(path(3), max_vertices="many")
