"""Files in the formats DIMACS and graph6: known graphs, round trips, and lines that are refused with their place."""

from itertools import combinations

import networkx
import pytest

from quincunx import counting
from quincunx.graphs import Graph, complete, cycle, hamming, read_dimacs, read_graph6

MYCIEL3 = """c FILE: myciel3.col
p edge 11 20
e 1 2
e 1 4
e 1 7
e 1 9
e 2 3
e 2 6
e 2 8
e 3 5
e 3 7
e 3 10
e 4 5
e 4 6
e 4 10
e 5 8
e 5 9
e 6 11
e 7 11
e 8 11
e 9 11
e 10 11
"""


def test_the_groetzsch_graph_of_dimacs_is_read(tmp_path):
    file = tmp_path / "myciel3.col"
    file.write_text(MYCIEL3)
    graph = read_dimacs(file)
    assert networkx.is_isomorphic(graph.to_networkx(), networkx.mycielski_graph(4))
    assert graph.labels == tuple(range(1, 12))
    # Without triangles, though four colors are needed.
    polynomial = counting.chromatic_polynomial(graph)
    assert sum(c * 3**k for k, c in enumerate(polynomial)) == 0
    assert sum(c * 4**k for k, c in enumerate(polynomial)) > 0
    with file.open() as lines:
        assert read_dimacs(lines) == graph


def test_dimacs_files_that_list_edges_in_both_directions_have_double_edges():
    assert read_dimacs(["p col 2 1", "e 1 2", "e 2 1", "n 1 5"]).num_edges == 2
    assert read_dimacs(["p edge 0 0"]) == Graph(0, [])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["e 1 2"], "line, line 1: expected a line 'p edge n m', got 'e 1 2'"),
        (["p edge 2 1", "e 1 3"], r"line, line 2: expected two vertices in 1..2, got 'e 1 3'"),
        (["p edge 2 1", "e 0 1"], "expected two vertices"),
        (["p edge 2 1", "e 1 x"], "line 2: expected whole numbers, got 'e 1 x'"),
        (["p edge 2 1", "e 1"], "expected a line 'e u v', got 'e 1'"),
        (["p edge 2 1", "p edge 2 1"], "expected a line 'e u v'"),
        (["p cnf 2 1"], "expected a line 'p edge n m'"),
        (["p edge 3 3", "e 1 2"], "expected 3 edges as the line 'p' says, got 1"),
        (["c nothing"], "expected a line 'p edge n m', got none"),
        (["p edge 4294967296 0"], "line 1: expected at most 4294967295 vertices"),
        (["p edge 2 1", "e 1 " + "9" * 5000], "line 2: expected whole numbers, got 'e 1 999"),
    ],
)
def test_what_is_not_dimacs_is_refused_with_its_place(lines, message):
    with pytest.raises(ValueError, match=message):
        read_dimacs(lines)


@pytest.mark.parametrize(
    "graph",
    [
        Graph(0, []),
        Graph(1, []),
        cycle(5),
        complete(7),
        hamming(6, 2),
        Graph(3, [(0, 0), (1, 2)]),
        Graph(2, [(0, 1)] * 2),
    ],
)
def test_graph6_goes_there_and_back(graph, tmp_path):
    file = tmp_path / "two.g6"
    file.write_text(f">>graph6<<{graph.to_graph6()}\n\n{graph.relabel(None).to_graph6()}\n")
    first, second = read_graph6(file)
    assert first == second == graph


def test_graphs_of_geng_are_counted():
    """All graphs of 4 vertices, as `geng 4` writes them: 11, of which 6 are connected."""
    found = read_graph6("C? CC CE CF CQ CU CT CV C] C^ C~".split())
    assert len(found) == 11
    assert not any(networkx.is_isomorphic(a.to_networkx(), b.to_networkx()) for a, b in combinations(found, 2))
    assert sum(counting.count_spanning_trees(g) > 0 for g in found) == 6
    assert [g.num_edges for g in found] == [0, 1, 2, 3, 2, 3, 3, 4, 4, 5, 6]


def test_loops_at_the_only_vertex_are_those_that_nauty_writes():
    """A loop takes 1 + ceil(log2(n)) bits, so one where there is one vertex; ones fill the last letter."""
    for loops, line in ((1, ":@^"), (2, ":@N"), (6, ":@?"), (7, ":@?^")):
        graph = Graph(1, [(0, 0)] * loops)
        assert graph.to_graph6() == line
        assert read_graph6([line]) == [graph]
    assert read_graph6([":@", "@", ":@~"]) == [Graph(1, [])] * 3


def test_what_is_not_graph6_is_refused_with_its_place(tmp_path):
    # A directed graph of 18 vertices, a graph as a difference, and letters beyond the 64: not empty graphs.
    for wrong in ("D", "\x01", "Dhcxx", "&Q" + "?" * 54, ";Bw", "::", ":A\x7f"):
        with pytest.raises(ValueError, match="line, line 2: not in graph6 or sparse6"):
            read_graph6(["Bw", wrong])
    with pytest.raises(MemoryError, match=f"line, line 2: a graph of {2**36 - 1} vertices needs"):
        read_graph6(["Bw", ":" + "~" * 8])
    file = tmp_path / "latin.txt"
    file.write_bytes(b"c caf\xe9\n")
    for read in (read_graph6, read_dimacs):
        with pytest.raises(ValueError, match=r"latin\.txt, after line 0: not text in UTF-8"):
            read(file)
        for wrong in (3, b"Bw", [3]):
            with pytest.raises(TypeError, match="`file` must"):
                read(wrong)
