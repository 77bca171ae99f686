"""The Graph type and its conversions."""

import pickle
import subprocess
import sys
from fractions import Fraction

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.graphs import Graph, induced_graph, path
from quincunx.graphs._graph import as_graph
from quincunx.lattices import square

FIXED = settings(derandomize=True, deadline=None)


@st.composite
def multigraphs(draw, most=7):
    n = draw(st.integers(0, most))
    ends = st.integers(0, n - 1) if n else st.nothing()
    return n, draw(st.lists(st.tuples(ends, ends), max_size=12 if n else 0))


def test_edges_are_kept_as_given_and_cannot_be_written():
    given_edges = np.array([[2, 1], [0, 1], [1, 2], [3, 3]])
    graph = Graph.from_edges(5, given_edges)
    assert (graph.num_vertices, graph.num_edges) == (5, 4)
    assert graph.edges.tolist() == given_edges.tolist()
    assert graph.edges.dtype == np.int64
    assert not graph.edges.flags.writeable
    given_edges[0, 0] = 0
    assert graph.edges[0, 0] == 2
    with pytest.raises(AttributeError):
        graph.edges = given_edges


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2)],
        ((0, 1), (1, 2)),
        [[0.0, 1.0], [1.0, 2.0]],
        np.array([[0, 1], [1, 2]], dtype=np.uint8),
        np.array([[0, 1], [1, 2]], order="F"),
        np.array([[0, 9, 1], [1, 9, 2]])[:, ::2],
        {(0, 1): "a", (1, 2): "b"},
        ((u, u + 1) for u in range(2)),
    ],
)
def test_edges_come_as_any_table_of_pairs(edges):
    assert Graph(3, edges) == path(3)


@pytest.mark.parametrize("n", [3, 3.0, np.int8(3), np.uint64(3), np.float32(3)])
def test_sizes_may_be_whole_numbers_of_any_type(n):
    assert Graph(n, []).num_vertices == 3


@pytest.mark.parametrize("n", [3.5, True, np.True_, "3", None, Fraction(7, 2), float("nan"), float("inf"), [3]])
def test_a_size_that_is_no_whole_number_is_a_type_error(n):
    with pytest.raises(TypeError, match="`n`"):
        Graph(n, [])


@pytest.mark.parametrize(("n", "rule"), [(-1, "at least 0|between 0"), (2**32, "between 0 and 4294967295")])
def test_a_size_out_of_range_is_refused_with_the_rule_and_the_value(n, rule):
    with pytest.raises(ValueError, match=rf"`n` must be ({rule}).*{n}"):
        Graph(n, [])


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        ([(0, 3)], ValueError, r"`edges` must be pairs of vertices in 0..2, got \(0, 3\) at row 0"),
        ([(0, 1), (2, -1)], ValueError, r"`edges` .* -1 at index \(1, 1\)"),
        ([(0, 1, 2)], ValueError, r"`edges` must have shape \(m, 2\), got \(1, 3\)"),
        ([0, 1], ValueError, r"`edges` must have shape \(m, 2\), got \(2,\)"),
        ([(0, 1), (1,)], ValueError, "different lengths"),
        (np.zeros((0, 2, 2)), ValueError, r"shape \(m, 2\)"),
        ([(0, 0.5)], ValueError, r"0.5 at index \(0, 1\)"),
        ([(0, float("nan"))], ValueError, "nan"),
        ([("a", "b")], TypeError, "`edges` must hold whole numbers"),
        ([(True, False)], TypeError, "`edges`"),
        ([(0, 2**70)], TypeError, "`edges`"),
        (np.array([[0, 2**63]], dtype=np.uint64), ValueError, "`edges`"),
        (None, TypeError, "`edges` must hold pairs of vertices, got NoneType"),
        (7, TypeError, "`edges` must hold pairs of vertices, got int"),
    ],
)
def test_bad_edges_are_refused_with_the_place(edges, error, message):
    with pytest.raises(error, match=message):
        Graph(3, edges)


def test_the_empty_graph_exists():
    empty = Graph(0, [])
    assert (empty.num_vertices, empty.num_edges, list(empty.labels)) == (0, 0, [])
    assert empty.degrees().shape == (0,)
    assert empty == Graph(0, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="`edges` must be empty without vertices"):
        Graph(0, [(0, 0)])
    with pytest.raises(ValueError, match="`v`"):
        empty.neighbors(0)
    assert Graph.from_scipy(empty.to_scipy()) == empty
    assert Graph.from_networkx(empty.to_networkx()) == empty


def test_masked_cells_are_refused():
    table = np.ma.array([[0, 1], [1, 0]], mask=[[0, 1], [1, 0]])
    for read in (Graph.from_relation, lambda table: as_graph(table, "relation")):
        with pytest.raises(ValueError, match="`relation` must have no masked cells, got 2 of them"):
            read(table)
    with pytest.raises(ValueError, match="`vertices` must have no masked cells, got 1 of them"):
        Graph(2, [(0, 1)]).subgraph(np.ma.array([True, True], mask=[0, 1]))
    with pytest.raises(ValueError, match="`query` must have no masked cells, got 1 of them"):
        induced_graph(path(2), np.ma.array([3, 4], mask=[0, 1]))


@FIXED
@given(multigraphs())
def test_degrees_and_neighbors_agree_with_networkx(parts):
    n, edges = parts
    graph, other = Graph(n, edges), networkx.MultiGraph(edges)
    other.add_nodes_from(range(n))
    assert graph.degrees().tolist() == [other.degree(v) for v in range(n)]
    for v in range(n):
        assert graph.neighbors(v).tolist() == sorted(set(other.neighbors(v)) - {v})
        assert not graph.neighbors(v).flags.writeable


@FIXED
@given(multigraphs(), st.randoms(use_true_random=False))
def test_equality_ignores_the_order_and_direction_of_edges_and_nothing_else(parts, random):
    n, edges = parts
    shuffled = [random.choice([(u, v), (v, u)]) for u, v in edges]
    random.shuffle(shuffled)
    graph = Graph(n, edges)
    assert graph == Graph(n, shuffled)
    assert hash(graph) == hash(Graph(n, shuffled))
    assert graph != Graph(n + 1, edges)
    assert graph != Graph(n, edges).relabel([f"v{v}" for v in range(n)]) or n == 0
    if edges:
        assert graph != Graph(n, edges[1:])
        assert graph != Graph(n, edges + edges[:1])
    assert graph != edges


@FIXED
@given(multigraphs(), st.booleans())
def test_a_graph_survives_pickle_and_networkx(parts, named):
    n, edges = parts
    graph = Graph(n, edges, labels=[f"v{v}" for v in range(n)] if named else None)
    for copy in (pickle.loads(pickle.dumps(graph)), Graph.from_networkx(graph.to_networkx())):
        assert copy == graph
        assert copy.labels == graph.labels
        assert not copy.edges.flags.writeable
    assert pickle.loads(pickle.dumps(graph)).edges.tolist() == graph.edges.tolist()


@FIXED
@given(multigraphs())
def test_the_adjacency_matrix_counts_edges_and_its_pattern_comes_back(parts):
    n, edges = parts
    graph = Graph(n, edges)
    matrix = graph.to_scipy()
    assert (matrix.sum(axis=1) == graph.degrees()).all()
    assert (matrix != matrix.T).nnz == 0
    assert Graph.from_scipy(matrix) == Graph(n, sorted({(min(e), max(e)) for e in edges}))


def test_labels_of_networkx_are_kept_in_its_order():
    other = networkx.Graph([("x", (1, 2)), ((1, 2), 7)])
    other.add_node("alone")
    graph = Graph.from_networkx(other)
    assert graph.labels == ("x", (1, 2), 7, "alone")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.index(7) == 2
    assert set(graph.to_networkx().nodes) == set(other.nodes)


def test_a_multigraph_stays_one_and_a_simple_graph_becomes_simple():
    double = networkx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    assert Graph.from_networkx(double).num_edges == 3
    assert Graph.from_networkx(double).to_networkx().is_multigraph()
    assert not path(3).to_networkx().is_multigraph()


@pytest.mark.parametrize("kind", [networkx.DiGraph, networkx.MultiDiGraph])
def test_a_directed_graph_is_refused(kind):
    with pytest.raises(ValueError, match="`graph` must be undirected, got a directed graph"):
        Graph.from_networkx(kind([(0, 1)]))
    with pytest.raises(ValueError, match="`board` must be undirected"):
        as_graph(kind([(0, 1)]), "board")


def test_any_one_sided_pattern_gives_the_symmetric_graph():
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [0, -1, 5, 0], [0, 0, 0, 0]])
    expected = Graph(4, [(0, 1), (1, 2), (2, 2)])
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array, scipy.sparse.lil_array):
        assert Graph.from_scipy(kind(dense)) == expected
        assert Graph.from_scipy(kind(dense.T)) == expected
        assert Graph.from_scipy(kind(dense != 0)) == expected
    stored_zero = scipy.sparse.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert Graph.from_scipy(stored_zero) == Graph(3, [(0, 1)])
    for kind in (scipy.sparse.coo_array, lambda entries, shape: scipy.sparse.coo_matrix(entries, shape=shape)):
        assert Graph.from_scipy(kind(([1, -1, 2], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))) == Graph(3, [(1, 2)])


def test_bad_matrices_are_refused():
    with pytest.raises(ValueError, match=r"`matrix` must be square, got shape \(2, 3\)"):
        Graph.from_scipy(scipy.sparse.csr_array((2, 3)))
    with pytest.raises(ValueError, match="square"):
        Graph.from_scipy(scipy.sparse.coo_array([1, 2, 3]))
    with pytest.raises(ValueError, match="`matrix` must not hold NaN"):
        Graph.from_scipy(scipy.sparse.csr_array([[0, np.nan], [0, 0]]))
    for wrong in (np.eye(3), [[0, 1], [1, 0]], networkx.path_graph(3)):
        with pytest.raises(TypeError, match=r"`matrix` must be a scipy.sparse array or matrix"):
            Graph.from_scipy(wrong)
    with pytest.raises(TypeError, match="`graph` must be a networkx graph, got Graph"):
        Graph.from_networkx(path(3))


def test_a_relation_is_taken_as_it_is_if_it_is_symmetric():
    table = np.array([[True, True, False], [True, False, True], [False, True, False]])
    assert Graph.from_relation(table) == Graph(3, [(0, 0), (0, 1), (1, 2)])
    assert Graph.from_relation(table.astype(int).tolist()) == Graph.from_relation(table)
    assert Graph.from_relation(np.empty((0, 0), bool)) == Graph(0, [])


def test_a_relation_that_is_not_symmetric_is_refused_with_the_pair():
    with pytest.raises(ValueError, match=r"`relation` must be symmetric, got True at \(0, 2\) and False at \(2, 0\)"):
        Graph.from_relation([[0, 1, 1], [1, 0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match=r"`relation` must be square, got shape \(1, 2\)"):
        Graph.from_relation([[0, 1]])
    with pytest.raises(ValueError, match="`relation` must be square, got rows of different lengths"):
        Graph.from_relation([[0, 1], [1]])
    with pytest.raises(TypeError, match="`relation` must hold truth values, got dtype <U1"):
        Graph.from_relation([["0"]])
    for wrong in (2, 0.5, np.nan):
        with pytest.raises(ValueError, match=r"`relation` must hold truth values or 0 and 1, got .* at \(0, 1\)"):
            Graph.from_relation([[0, wrong], [wrong, 0]])
    assert Graph.from_relation([[0.0, 1.0], [1.0, 0.0]]) == path(2)


def test_labels_have_their_rules():
    assert Graph(3, [], labels=["a", "b", "c"]).labels == ("a", "b", "c")
    assert Graph(3, [], labels=range(3)).labels == range(3)
    assert Graph(3, [], labels=[0, 1, 2]) == Graph(3, [], labels=np.arange(3)) == Graph(3, [])
    assert Graph(2, [], labels=[0, True]).labels == (0, True)
    with pytest.raises(ValueError, match="`labels` must name 3 vertices, got 2 labels"):
        Graph(3, [], labels="ab")
    with pytest.raises(ValueError, match="`labels` must be different, got 'a' twice"):
        Graph(3, [], labels="aba")
    with pytest.raises(TypeError, match="`labels` must be hashable, got list"):
        Graph(1, [], labels=[[]])
    for unordered in ({"a": 0}, {"a"}, frozenset("a")):
        with pytest.raises(TypeError, match="`labels` must be in an order, as a list is"):
            Graph(1, [], labels=unordered)
    with pytest.raises(ValueError, match="`label` must be the label of a vertex, got 'z'"):
        Graph(2, [], labels="ab").index("z")
    with pytest.raises(ValueError, match="label"):
        Graph(2, []).index([])


def test_relabeling_takes_a_list_a_mapping_or_nothing():
    graph = Graph(3, [(0, 2)], labels="abc")
    assert graph.relabel("xyz").labels == ("x", "y", "z")
    assert graph.relabel({"b": 7}).labels == ("a", 7, "c")
    assert graph.relabel(None) == Graph(3, [(0, 2)])
    assert graph.labels == ("a", "b", "c")
    with pytest.raises(ValueError, match="'a' twice"):
        graph.relabel({"b": "a"})


@pytest.mark.parametrize("v", [-1, 3, 2**70])
def test_a_vertex_that_is_not_there_has_no_neighbors(v):
    with pytest.raises(ValueError, match="`v` must be between 0 and 2"):
        path(3).neighbors(v)


def test_graphs_are_taken_in_every_form():
    expected = path(3)
    forms = [
        expected,
        expected.to_networkx(),
        expected.to_scipy(),
        (3, [(0, 1), (1, 2)]),
        [3, np.array([[0, 1], [1, 2]])],
        square(1, 3),
    ]
    assert all(as_graph(form) == expected for form in forms)


@pytest.mark.parametrize("wrong", [None, 3, "path", [(0, 1), (1, 2), (2, 3)], (3,), {}, path])
def test_anything_else_is_no_graph(wrong):
    with pytest.raises(TypeError, match="`board` must be a Graph, a lattice, a networkx graph"):
        as_graph(wrong, "board")


def test_representations_say_the_size():
    assert repr(path(1)) == "<Graph: 1 vertex, 0 edges>"
    assert repr(path(3)) == "<Graph: 3 vertices, 2 edges>"


def test_nothing_optional_is_imported():
    program = (
        "import sys; from quincunx.graphs import path; from quincunx.graphs._graph import as_graph; "
        "import quincunx.lattices; as_graph((3, [(0, 1)])); as_graph(quincunx.lattices.square(2, 2)); "
        "assert not {'networkx', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Results in the user's names.


def test_a_graph_is_a_collection_of_its_labels():
    graph = Graph(3, [(0, 2)], labels="abc")
    assert (len(graph), list(graph), list(graph.nodes)) == (3, ["a", "b", "c"], ["a", "b", "c"])
    assert "b" in graph
    assert 1 not in graph
    assert [] not in graph
    assert 1 in path(3)
    assert 3 not in path(3)


def test_neighbors_of_a_labelled_graph_are_labels():
    nodes = ["x", (1, 2), 7, "alone"]
    other = networkx.Graph([("x", 7), (7, (1, 2))])
    other.add_nodes_from(nodes)
    graph = Graph.from_networkx(other)
    for node in nodes:
        assert set(graph.neighbors(node)) == set(other.neighbors(node))
    with pytest.raises(ValueError, match="`v` must be the label of a vertex, got 0"):
        graph.neighbors(0)


def test_tables_of_edges_and_dense_matrices_convert():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"from": ["b", "a", "b"], "to": ["a", "c", "c"], "weight": [1, 2, 3]})
    graph = Graph.from_pandas(frame, "from", "to")
    assert graph.labels == ("b", "a", "c")
    assert graph.to_numpy().tolist() == graph.to_scipy().toarray().tolist()
    assert Graph(2, [(0, 0), (0, 1), (1, 0)]).to_numpy().tolist() == [[2, 2], [2, 0]]
    with pytest.raises(ValueError, match="`source` must be a column of the table, got 'source'"):
        Graph.from_pandas(frame)
    with pytest.raises(ValueError, match=r"both ends of each edge, got \('a', nan\) in row 1"):
        Graph.from_pandas(pandas.DataFrame({"source": ["a", "a"], "target": ["b", float("nan")]}))
    for missing in (None, float("nan"), pandas.NaT, pandas.NA):
        with pytest.raises(ValueError, match=r"`frame` must name both ends of each edge, got .* in row 1"):
            Graph.from_pandas(pandas.DataFrame({"source": ["a", missing], "target": ["b", "c"]}, dtype=object))
    with pytest.raises(TypeError, match="`frame` must hold hashable ends, got list in row 0"):
        Graph.from_pandas(pandas.DataFrame({"source": [["a"]], "target": ["b"]}))
    with pytest.raises(ValueError, match="`source` must be one column of the table, got 'source', which is several"):
        Graph.from_pandas(pandas.DataFrame([["a", "b", "c"]], columns=["source", "target", "source"]))
    with pytest.raises(TypeError, match=r"`frame` must be a pandas\.DataFrame, got dict"):
        Graph.from_pandas({"source": [], "target": []})


def test_two_edges_are_not_taken_for_a_number_and_a_list():
    with pytest.raises(TypeError, match="the number of vertices comes first"):
        as_graph([(0, 1), (1, 2)])


def test_a_notebook_shows_a_small_table_with_names_made_harmless():
    html = Graph(2, [(0, 1)], labels=["<b>", "c"])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>'" not in html
