"""Line graphs, subdivisions and Ramanujan graphs: known answers, networkx, laws, bad input."""

import math

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.graphs import complete, line_graph, lps_graph, path, subdivide
from quincunx.lattices import clique_insert


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_line_graphs_are_those_of_networkx_and_clique_insertion_is_of_the_subdivision(data):
    n = data.draw(st.integers(2, 9))
    vertex = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(vertex, vertex).filter(lambda e: e[0] < e[1]), max_size=14, unique=True))
    found = line_graph((n, pairs))
    expected = networkx.line_graph(networkx.Graph(pairs))
    assert {frozenset(map(tuple, (sorted(pairs[u]), sorted(pairs[v])))) for u, v in found.edges.tolist()} == {
        frozenset(map(tuple, (sorted(a), sorted(b)))) for a, b in expected.edges
    }
    # The line graph of the subdivision, its vertices named as edge ends.
    assert clique_insert((n, pairs)) == line_graph(subdivide((n, pairs)))


def test_parallel_edges_are_joined_twice_and_a_loop_becomes_a_loop():
    assert line_graph((2, [(0, 1), (0, 1)])).edges.tolist() == [[0, 1], [0, 1]]
    assert line_graph((1, [(0, 0)])).edges.tolist() == [[0, 0]]
    assert subdivide((1, [(0, 0)])).edges.tolist() == [[0, 1], [0, 1]]
    assert line_graph(path(1)).num_vertices == 0
    assert subdivide(complete(4)).num_vertices == 10


@pytest.mark.parametrize(
    ("p", "q", "n", "second"),
    [
        (3, 5, 120, 3.0),
        (3, 7, 336, 3.0),
        (3, 11, 660, (1 + math.sqrt(33)) / 2),
        (5, 7, 336, 4.0),
        (5, 11, 660, (3 + math.sqrt(33)) / 2),
        (13, 11, 1320, None),
    ],
)
def test_ramanujan_graphs(p, q, n, second):
    graph = lps_graph(p, q)
    assert graph.num_vertices == n
    assert (graph.degrees() == p + 1).all()
    assert len(np.unique(graph._sorted_keys())) == graph.num_edges
    if second is not None:
        eigenvalues = np.linalg.eigvalsh(graph.to_scipy().toarray().astype(float))
        assert abs(eigenvalues[-2] - second) < 1e-9
        bipartite = pow(p, (q - 1) // 2, q) != 1
        assert (abs(eigenvalues[0] + p + 1) < 1e-9) == bipartite
        assert abs(eigenvalues[1 if bipartite else 0 : -1]).max() <= 2 * math.sqrt(p) + 1e-9


def test_small_q_is_a_warning_and_what_is_no_prime_an_error():
    with pytest.warns(UserWarning, match="simple"):
        assert lps_graph(7, 5).num_vertices == 120
    for p, q in ((4, 5), (9, 5), (5, 9), (5, 5), (2, 5), (5, 2)):
        with pytest.raises(ValueError, match=r"`[pq]`"):
            lps_graph(p, q)
    with pytest.raises(ValueError, match="`q`"):
        lps_graph(5, 1009)
    with pytest.raises(TypeError, match="`p`"):
        lps_graph(3.5, 5)
