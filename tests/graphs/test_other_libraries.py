"""Graphs of rustworkx and igraph, dense arrays, polars tables: the same answers as from networkx; and pieces."""

import itertools
from functools import partial

import networkx
import numpy as np
import pandas
import pytest

from quincunx import counting, spectra
from quincunx.graphs import Graph, cycle, distances, hamming, path
from quincunx.graphs._graph import as_graph
from quincunx.lattices import square

BRIDGE = networkx.MultiGraph([("b", "a"), ("a", "c"), ("c", "b"), ("c", "b"), ("d", "d"), ("d", "a")])


def in_rustworkx(graph):
    rustworkx = pytest.importorskip("rustworkx")
    return rustworkx.networkx_converter(graph)


def in_igraph(graph):
    igraph = pytest.importorskip("igraph")
    names = list(graph.nodes)
    made = igraph.Graph(len(names), [(names.index(u), names.index(v)) for u, v in graph.edges()])
    made.vs["name"] = names
    return made


@pytest.mark.parametrize("convert", [in_rustworkx, in_igraph])
@pytest.mark.parametrize(
    "graph", [networkx.karate_club_graph(), BRIDGE, networkx.Graph([("x", "y")]), networkx.path_graph(1)]
)
def test_graphs_of_other_libraries_are_those_of_networkx(convert, graph):
    plain = type(graph)()
    plain.add_nodes_from(graph)
    plain.add_edges_from(graph.edges())
    assert as_graph(convert(plain)) == Graph.from_networkx(plain)
    assert counting.count_spanning_trees(convert(plain)) == counting.count_spanning_trees(plain)


@pytest.mark.parametrize("library", ["rustworkx", "igraph"])
@pytest.mark.parametrize("graph", [path(4), cycle(5).relabel("vwxyz"), Graph(3, [(0, 1), (1, 0), (2, 2)])])
def test_graphs_go_to_other_libraries_and_come_back(library, graph):
    pytest.importorskip(library)
    there = getattr(graph, f"to_{library}")()
    back = getattr(Graph, f"from_{library}")(there)
    assert back == graph
    # Edges in their order; igraph turns some of them.
    assert np.sort(back.edges).tolist() == np.sort(graph.edges).tolist()
    with pytest.raises(TypeError, match=rf"`graph` must be an? {library} graph, got Graph"):
        getattr(Graph, f"from_{library}")(graph)


def test_without_rustworkx_and_igraph_the_extra_is_named(monkeypatch):
    import sys

    for library in ("rustworkx", "igraph"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=rf"quincunx\[{library}\]"):
            getattr(path(2), f"to_{library}")()


def test_nodes_of_rustworkx_are_named_by_their_data_or_else_by_their_indices():
    rustworkx = pytest.importorskip("rustworkx")
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(["a", "b", "c", "d"])
    graph.add_edges_from_no_data([(0, 1), (1, 3), (3, 2)])
    graph.remove_node(0)
    assert Graph.from_rustworkx(graph) == Graph(3, [(0, 2), (2, 1)], labels="bcd")
    for data in ("b", None, [2]):  # twice the same, none, not hashable
        graph[2] = graph[1] = data
        assert Graph.from_rustworkx(graph) == Graph(3, [(0, 2), (2, 1)], labels=[1, 2, 3])
    assert as_graph(rustworkx.generators.path_graph(3)) == path(3)


def test_directed_graphs_are_refused():
    rustworkx = pytest.importorskip("rustworkx")
    with pytest.raises(ValueError, match="`graph` must be undirected"):
        Graph.from_rustworkx(rustworkx.PyDiGraph())
    igraph = pytest.importorskip("igraph")
    with pytest.raises(ValueError, match="`graph` must be undirected"):
        Graph.from_igraph(igraph.Graph(2, [(0, 1)], directed=True))


def weighted_in_rustworkx(payload):
    graph = pytest.importorskip("rustworkx").PyGraph()
    graph.add_nodes_from("abc")
    graph.add_edges_from([(0, 1, payload(2)), (1, 2, payload(3)), (2, 0, payload(1))])
    return graph


def weighted_in_igraph(weigh):
    graph = pytest.importorskip("igraph").Graph(3, [(0, 1), (1, 2), (2, 0)])
    graph.vs["name"] = ["a", "b", "c"]
    graph.es["weight"] = [2, 3, 1]
    return graph


@pytest.mark.parametrize(
    ("make", "payload"),
    [(weighted_in_rustworkx, int), (weighted_in_rustworkx, lambda w: {"weight": w}), (weighted_in_igraph, int)],
)
def test_weights_are_the_data_of_edges_and_have_to_be_said(make, payload):
    graph = make(payload)
    assert counting.count_spanning_trees(graph, weight="weight") == 2 * 3 + 3 * 1 + 2 * 1
    assert counting.count_spanning_trees(graph, weight=None) == 3
    with pytest.raises(ValueError, match=r"got 2 at \('a', 'b'\)"):
        counting.count_spanning_trees(graph)
    # Weights are resistances: 2 beside 3 and 1 in series.
    assert spectra.resistance_distance(graph, "a", "b", weight="weight") == pytest.approx(2 * 4 / (2 + 4))


def test_dense_adjacency_is_taken_where_it_is_symmetric_and_of_zeros_and_ones():
    for form in (int, float, bool, np.uint8):
        assert as_graph(path(3).to_numpy().astype(form)) == path(3)
    assert as_graph(networkx.to_numpy_array(networkx.petersen_graph())).num_edges == 15
    edges = np.array([[0, 1], [1, 2]])  # edges alone, which happen to be square
    with pytest.raises(ValueError, match=r"`board` must hold truth values or 0 and 1, got 2 at \(1, 1\)"):
        as_graph(edges, "board")
    with pytest.raises(ValueError, match=r"`board` must be square, got shape \(3, 2\)"):
        as_graph(cycle(3).edges, "board")
    with pytest.raises(ValueError, match="`board` must be symmetric"):
        as_graph(np.triu(np.ones((3, 3)), 1), "board")
    with pytest.raises(ValueError, match="got nan at"):
        as_graph(np.full((2, 2), np.nan), "board")


def test_edges_are_read_from_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"source": ["Ann", "Bea"], "target": ["Bea", "Cid"]})
    assert Graph.from_pandas(frame) == Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"])
    with pytest.raises(ValueError, match="must name both ends"):
        Graph.from_pandas(polars.DataFrame({"source": ["Ann", None], "target": ["Bea", "Cid"]}))


@pytest.mark.parametrize("graph", [cycle(6), hamming(3, 2).relabel("abcdefgh"), Graph(4, [(0, 0), (0, 1), (1, 0)])])
def test_subgraphs_are_those_of_networkx(graph):
    rng = np.random.default_rng(5)
    for _ in range(20):
        kept = rng.random(len(graph)) < 0.6
        names = [name for name, keep in zip(graph.labels, kept, strict=True) if keep]
        expected = networkx.empty_graph(names, type(graph.to_networkx()))  # in order, unlike a view of networkx
        expected.add_edges_from(graph.to_networkx().subgraph(names).edges())
        expected = Graph.from_networkx(expected)
        assert graph.subgraph(kept) == graph.subgraph(reversed(names)) == expected
        others = [name for name in graph.labels if name not in names]
        assert graph.remove_vertices(others) == graph.remove_vertices(~kept) == expected


@pytest.mark.parametrize("graph", [path(3), path(3).relabel([1, 0, 5]), path(3).relabel("abc")])
@pytest.mark.parametrize("mask", list(itertools.product([False, True], repeat=3)))
def test_truth_values_of_any_kind_are_one_for_each_vertex_and_no_names(graph, mask):
    expected = graph.subgraph(np.array(mask))
    for kind in (list, tuple, iter, np.array, pandas.Series, lambda given: [np.bool_(v) for v in given]):
        assert graph.subgraph(kind(mask)) == expected
        assert graph.remove_vertices(kind([not v for v in mask])) == expected


def test_truth_values_in_another_order_than_the_vertices():
    chosen = pandas.Series([True, False, False], index=["c", "b", "a"])
    for call in (path(3).relabel("abc").subgraph, path(3).relabel("abc").remove_vertices):
        with pytest.raises(ValueError, match="truth values in the order of the vertices, got 'c' for 'a' at index 0"):
            call(chosen)
    assert path(3).relabel("abc").subgraph(chosen[::-1]).labels == ("c",)
    with pytest.raises(ValueError, match="truth values in the order of the vertices, got 3 for 0 at index 0"):
        square(2, 2).subgraph(pandas.Series([True, False, False, False], index=[3, 2, 1, 0]))
    assert path(3).relabel("abc").subgraph(chosen.set_axis([7, 8, 9])).labels == ("a",)


def test_truth_values_name_a_vertex_only_where_a_label_is_one():
    graph = path(3).relabel([1, 0, 5])
    for wrong in ([True], [True, 5], {True, 5}):
        with pytest.raises(ValueError, match="`vertices` must be the label of a vertex, got True"):
            graph.subgraph(wrong)
    for name, call in {"v": graph.neighbors, "source": partial(distances, graph), "label": path(3).index}.items():
        with pytest.raises(ValueError, match=f"`{name}` must be the label of a vertex, got True"):
            call(True)
    assert True not in graph
    answers = path(2).relabel([True, False])
    assert answers.subgraph([True]).labels == (True,)
    assert answers.subgraph(np.array([False, True])).labels == (False,)
    with pytest.raises(TypeError, match="`vertices` must hold vertices, got dict"):
        path(3).subgraph({0: True, 1: False, 2: True})


def test_what_is_no_vertex_is_not_cut():
    with pytest.raises(ValueError, match="`vertices` must be between 0 and 2, got 3"):
        path(3).subgraph([3])
    with pytest.raises(ValueError, match="`vertices` must be the label of a vertex, got 0"):
        path(2).relabel("ab").remove_vertices([0])
    with pytest.raises(ValueError, match=r"`vertices` must have shape \(3,\), got \(2,\)"):
        path(3).subgraph(np.array([True, False]))
    for wrong in (3, "ab", [True], [0.5]):
        with pytest.raises(TypeError, match="`vertices` must"):
            path(3).subgraph(wrong)
