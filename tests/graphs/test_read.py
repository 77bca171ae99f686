"""Edge lists in text files."""

import io

import networkx
import pytest

from quincunx.graphs import Graph, path, read_edges


@pytest.fixture
def write(tmp_path):
    def writer(text, encoding="utf-8"):
        file = tmp_path / "edges.txt"
        file.write_bytes(text.encode(encoding))
        return file

    return writer


def test_integer_labels_are_sorted_and_consecutive_ones_are_the_vertices(write):
    graph = read_edges(write("2 1\n# comment\n\n0 1   # at the end\n"))
    assert graph == path(3)
    assert graph.edges.tolist() == [[2, 1], [0, 1]]
    assert read_edges(write("10 -2\n7 10")).labels == (-2, 7, 10)
    assert read_edges(["123456789012345678901234567890 1"]).labels == (1, 123456789012345678901234567890)


def test_other_labels_are_names_in_order_of_appearance(write):
    graph = read_edges(write("b a\na c1\n"))
    assert graph.labels == ("b", "a", "c1")
    assert read_edges(["1 01"]).labels == ("1", "01")
    assert read_edges(["1 x"]).labels == ("1", "x")
    assert read_edges(["1_0 2"]).labels == ("1_0", "2")
    assert read_edges(["é ß"]).labels == ("é", "ß")


@pytest.mark.parametrize(
    "line", ["0 1", "0,1", "0, 1", " 0\t1 ", "0 ,1", "0 1\r\n", "0 1 {}", "0 1 {'weight': 2, 'a': 1}", "0,1,{}"]
)
def test_white_space_and_commas_separate(line):
    assert read_edges([line]) == path(2)


def test_a_single_label_is_a_vertex():
    assert read_edges(["0 1", "3", "2"]) == Graph(4, [(0, 1)])
    assert read_edges(["a", "b a"]).labels == ("a", "b")


def test_double_edges_and_loops_are_kept():
    assert read_edges(["0 1", "1 0", "1 1"]) == Graph(2, [(0, 1), (0, 1), (1, 1)])


def test_a_file_without_edges_is_the_empty_graph(write):
    assert read_edges(write("# nothing\n\n")) == Graph(0, [])


def test_open_files_and_a_byte_order_mark_are_fine(write):
    assert read_edges(io.StringIO("0 1\n")) == path(2)
    assert read_edges(str(write("0 1\n", "utf-8-sig"))) == path(2)


def test_what_networkx_writes_is_read_as_networkx_reads_it(tmp_path):
    for other in (networkx.karate_club_graph(), networkx.les_miserables_graph()):
        other = networkx.relabel_nodes(other, lambda name: str(name))
        networkx.write_edgelist(other, tmp_path / "list", delimiter=",")
        ours, theirs = read_edges(tmp_path / "list"), networkx.read_edgelist(tmp_path / "list", delimiter=",")
        assert {str(label) for label in ours.labels} == set(theirs.nodes)
        assert ours.num_edges == theirs.number_of_edges()
        pairs = {frozenset(str(ours.labels[end]) for end in edge) for edge in ours.edges.tolist()}
        assert pairs == {frozenset(edge) for edge in theirs.edges}


@pytest.mark.parametrize("bad", ["0 1 2", "0 1 0.5", "0,,1", ",1", "1,", "0;1;2 3 4", "0 {}", "0 {'a': 1}", "{0} 1"])
def test_a_bad_line_is_named_with_its_file_number_and_content(write, bad):
    file = write(f"0 1\n\n{bad}\n")
    with pytest.raises(ValueError) as caught:
        read_edges(file)
    message = str(caught.value)
    assert str(file) in message
    assert "line 3" in message
    assert bad in message


def test_bad_files_are_refused(write, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_edges(tmp_path / "missing")
    with pytest.raises(ValueError, match="UTF-8"):
        read_edges(write("é ü\n", "latin-1"))
    for wrong in (None, 3, b"0 1"):
        with pytest.raises(TypeError, match="`file` must be a path or an iterable of lines"):
            read_edges(wrong)
    with pytest.raises(TypeError, match="`file` must give lines of text, got bytes"):
        read_edges([b"0 1"])
