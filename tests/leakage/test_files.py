"""Channels in files, graphs as words, and what the command line prints."""

import json
import math
from fractions import Fraction as F

import pytest

from quincunx.graphs import cycle, grid, hamming, path, read_edges
from quincunx.leakage import Channel, distance_channel, read_channel
from quincunx.leakage._files import graph_from_word, leakage_command


def test_decimals_and_fractions_are_read():
    assert read_channel(["# two rows", "0.5, 0.5", "", "0.25,0.75  # the second"]) == Channel(
        [[0.5, 0.5], [0.25, 0.75]]
    )
    exact = read_channel(["1/3, 2/3", "0.25, 0.75"])
    assert exact.fractions == ((F(1, 3), F(2, 3)), (F(1, 4), F(3, 4)))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no rows"),
        (["0.5,0.5", "", "1.0"], "line 3: 1 entries, but the first row has 2"),
        (["0.5,0.5", "0.5,x"], "line 2: must hold numbers such as 0.25 or 1/4, got 'x'"),
        (["1/2,1e99999999"], "line 1: must hold numbers such as 0.25 or 1/4, got '1e99999999'"),
        (["1/2,1/0"], "line 1: must hold numbers such as 0.25 or 1/4, got '1/0'"),
        (["# no", "0.5,0.6"], "line 2: must be made of entries of at least 0 that sum to 1, got the sum 1.1"),
        (["1.5,-0.5"], "line 1: must be made of entries of at least 0 that sum to 1, got -0.5"),
        (["1,0.0", "1,1e-400"], "line 2: must hold numbers that doubles tell from 0, or a fraction, got '1e-400'"),
        (["nan,1"], "line 1: must be made of entries of at least 0 that sum to 1, got nan"),
    ],
)
def test_a_line_that_is_wrong_is_named(lines, message, tmp_path):
    file = tmp_path / "channel.csv"
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"channel.csv.*{message}"):
        read_channel(file)


def test_names_of_outputs_and_inputs_are_those_of_the_file():
    named = read_channel(["yes,no", "3/4,1/4", "1/2,1/2"])
    assert (list(named.inputs), named.outputs) == ([0, 1], ("yes", "no"))
    both = read_channel([",yes,no", "a,0.75,0.25", "b,0.5,0.5"])
    assert (both.inputs, both.outputs) == (("a", "b"), ("yes", "no"))
    assert both.matrix.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    with pytest.raises(ValueError, match="3 names of outputs, but the first row has 2"):
        read_channel(["a,b,c", "0.5,0.5"])


def test_vertices_that_are_numbers_in_another_order_than_the_names_of_the_file(tmp_path):
    file, edges = tmp_path / "channel.csv", tmp_path / "edges.txt"
    file.write_text(",x,y\n3,0.9,0.1\n1,0.5,0.5\n2,0.1,0.9")
    edges.write_text("1 2\n2 3")  # 2 and 3 are told apart by 9, the first two rows and the last two by 5
    wrong = "`graph` must be in the order of the inputs, got 1 for '3' at index 0"
    with pytest.raises(ValueError, match=wrong):
        leakage_command(file, graph=f"edges:{edges}")
    with pytest.raises(ValueError, match=wrong):
        read_channel(file).guarantee(read_edges(edges))
    file.write_text(",x,y\n1,0.5,0.5\n2,0.1,0.9\n3,0.9,0.1")
    assert round(read_channel(file).dp_epsilon(read_edges(edges)), 12) == round(math.log(9), 12)


def test_words_name_graphs(tmp_path):
    assert graph_from_word("hamming:3,2") == hamming(3, 2)
    assert graph_from_word("path:4") == path(4)
    assert graph_from_word("cycle:5") == cycle(5)
    assert graph_from_word("grid:2x3") == graph_from_word("grid:2,3") == grid(2, 3)
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    assert graph_from_word(f"edges:{tmp_path / 'edges.txt'}").num_edges == 2
    for word in ("hamming", "hamming:3", "ring:4", "path:-1", "cycle:", "edges:", "path:1,2"):
        with pytest.raises(ValueError, match=f"`graph` must be a word such as hamming:3,2.*got '{word}'"):
            graph_from_word(word)


@pytest.fixture
def file(tmp_path):
    rows = distance_channel(hamming(3, 2), 0.7).matrix
    path = tmp_path / "channel.csv"
    path.write_text("\n".join(",".join(map(repr, row.tolist())) for row in rows))
    return path


def test_the_command_prints_measures_and_the_report(file):
    plain = leakage_command(file)
    assert plain.startswith("channel             8 inputs, 8 outputs\nmin-capacity")
    assert "epsilon" not in plain
    with_graph = leakage_command(file, graph="hamming:3,2")
    assert with_graph.endswith("epsilon             0.7 nats")
    report = leakage_command(file, graph="hamming:3,2", symmetrize=True)
    assert "averaged over a group of order 48: 8 inputs in 1 orbit, 4 orbits on pairs" in report
    assert "constant_diagonal   proved" in report


def test_the_command_answers_in_json(file, tmp_path):
    facts = json.loads(leakage_command(file, graph="hamming:3,2", symmetrize=True, json=True))
    assert facts["inputs"] == 8
    assert facts["symmetrized"]["group_order"] == "48"
    assert facts["symmetrized"]["guarantees"]["dp_preserved"] == "proved"
    exact = tmp_path / "exact.csv"
    exact.write_text("1, 0\n1/2, 1/2\n")
    facts = json.loads(leakage_command(exact, graph="path:2", symmetrize=True, json=True))
    assert facts["vulnerability"] == "3/4"
    assert facts["epsilon"] == "inf"
    assert facts["symmetrized"]["channel"] == [["3/4", "1/4"], ["1/4", "3/4"]]


def test_a_command_without_its_graph(file):
    with pytest.raises(ValueError, match="`graph` must be given to symmetrize"):
        leakage_command(file, symmetrize=True)
    with pytest.raises(FileNotFoundError):
        leakage_command(file.with_name("none.csv"))
