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
    assert read_edges(["é ß"], header=False).labels == ("é", "ß")


SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "blank": " "}


@pytest.mark.parametrize(
    "line",
    ["0 1", "0,1", "0, 1", " 0\t1 ", "0 ,1", "0 1\r\n", "0 1 {}", "0 1 {'weight': 2, 'a': 1}", "0,1,{}", "0 1\t# c"],
)
def test_white_space_and_commas_separate(line):
    assert read_edges([line]) == path(2)


@pytest.mark.parametrize("mark", SEPARATORS.values(), ids=SEPARATORS)
def test_each_separator_is_found_and_every_other_on_a_later_line_is_refused_by_its_number(mark):
    lines = [
        "# labels",
        "lone",
        f"ab{mark}bc",
        f"bc {mark} cd",
        f"cd{mark}de{mark}{{'weight': 2}}",
        f'"de"{mark}"e, {{f}};"',
    ]
    graph = read_edges(lines)
    assert graph == Graph(6, [(1, 2), (2, 3), (3, 4), (4, 5)], ["lone", "ab", "bc", "cd", "de", "e, {f};"])
    assert read_edges(lines, delimiter=mark) == graph
    bad = [f"de{mark}ef{mark}fg", *([] if mark == " " else [f"de{mark}{mark}ef", f"{mark}de", f"de{mark} "])]
    for other in {*SEPARATORS.values(), "\N{EM SPACE}"} - {mark}:
        bad += [f"de{other}ef", f"de{other}ef{mark}fg", f"de{mark}ef{other}fg"]
    bad += [f"de{other}ef" for other in ("|", ":", "-", "--", "->", "/")]
    for line in bad:
        with pytest.raises(ValueError, match=r"line, line 7: expected one or two labels"):
            read_edges([*lines, line])


def test_a_separator_that_is_said_leaves_all_others_to_the_labels(write):
    lines = ["New York|a,b", "a,b|c;d e", "c-d"]
    with pytest.raises(ValueError, match="line 1: expected one or two labels"):
        read_edges(lines)
    assert read_edges(lines, delimiter="|").labels == ("New York", "a,b", "c;d e", "c-d")
    assert read_edges(write("0:1\n1:2\n"), delimiter=":") == path(3)
    for wrong in ("", "ab", "a", "1", '"', "#", "{", "_", ".", "-", "\n", 5, b","):
        with pytest.raises(ValueError, match="`delimiter` must be a character such as"):
            read_edges(lines, delimiter=wrong)


@pytest.mark.parametrize("mark", SEPARATORS.values(), ids=SEPARATORS)
@pytest.mark.parametrize("names", [("source", "target"), ("from", "to"), ("Von", "Nach"), ("id1", "id_2"), ("u", "v")])
@pytest.mark.parametrize("rest", [[(0, 1), (1, 2)], [("a", "b"), ("b", "c")], []], ids=["numbers", "names", "nothing"])
def test_a_line_that_may_be_a_header_is_refused_until_it_is_said(mark, names, rest):
    edges = [mark.join(map(str, edge)) for edge in rest]
    lines = ["# what", "", mark.join(names), *edges]
    with pytest.raises(
        ValueError, match=f"line, line 3: '{names[0]}' and '{names[1]}' occur on no other line .*`header`"
    ):
        read_edges(lines)
    assert read_edges(lines, header=True) == read_edges(edges)
    assert read_edges(lines, header=False).num_edges == len(rest) + 1


@pytest.mark.parametrize(
    "lines",
    [
        ["u v", "v w"],
        ["u v", "w u"],
        ["u v", "u"],
        ["source target", "target source"],
        ["0 v", "w x"],
        ["v v"],
        ["7 8"],
    ],
)
def test_a_line_that_is_an_edge_by_its_labels_needs_no_word(lines):
    assert read_edges(lines) == read_edges(lines, header=False)
    assert read_edges(lines).num_edges == sum(" " in line for line in lines)


def test_a_brace_within_a_label_is_a_letter():
    assert read_edges(["a b{c}", "b{c} d}"]).labels == ("a", "b{c}", "d}")


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


@pytest.mark.parametrize(
    "bad",
    [
        "0 1 2",
        "0 1 0.5",
        "0,,1",
        ",1",
        "1,",
        "0;1;2 3 4",
        "0 {}",
        "0 {'a': 1}",
        "{0} 1",
        "0#1 2",
        '"0 1',
        '"0"1 2',
        "a{b}",
        "0 {",
    ],
)
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
    with pytest.raises(ValueError, match=r"line, line 1: expected one or two labels"):
        read_edges(["\0 1"])
    for wrong in (None, 3, b"0 1"):
        with pytest.raises(TypeError, match="`file` must be a path or an iterable of lines"):
            read_edges(wrong)
    with pytest.raises(TypeError, match="`header` must be True or False"):
        read_edges(["0 1"], header="yes")
    with pytest.raises(TypeError, match="`file` must give lines of text, got bytes"):
        read_edges([b"0 1"])
