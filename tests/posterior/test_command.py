"""The command line fits networks, and says in one sentence what is wrong."""

import itertools
import json
import tracemalloc

import pytest

from quincunx.__main__ import main
from quincunx.posterior._command import bayesnet_fit


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("A,B,C\n" + "0,1,0\n1,1,1\n" * 50 + "0,x,0\n7\n")
    return str(path)


def run(capsys, *arguments):
    status = main(["bayesnet", "fit", *arguments])
    return status, *capsys.readouterr()


def test_a_network_is_fitted_and_printed(records, capsys):
    status, out, _ = run(capsys, records, "--edges", "A:B,A:C", "--epsilon", "2", "--sample", "3")
    found = json.loads(out)
    assert status == 0
    assert found["epsilon"] == 2.0
    assert found["nodes"]["B"]["parents"] == ["A"]
    assert [sum(row) for row in found["nodes"]["C"]["cpd"]] == pytest.approx([1, 1])
    assert len(found["sample"]) == 3


def test_a_network_goes_to_a_file_and_edges_come_from_one(records, tmp_path, capsys):
    edges, out = tmp_path / "edges.csv", tmp_path / "net.json"
    edges.write_text("A,B\nA,C\n")
    arguments = ["--edges", str(edges), "--epsilon", "1", "--cardinalities", "A=2,B=3,C=2", "--out", str(out)]
    status, said, _ = run(capsys, records, *arguments, "--relation", "add-remove", "--mechanism", "laplace")
    assert status == 0
    assert "laplace" in said
    found = json.loads(out.read_text())
    assert found["nodes"]["B"]["cardinality"] == 3
    assert found["guarantee"]["relation"][0] == "AddRemove"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--edges", "A-B", "--epsilon", "1"], "--edges"),
        (["--edges", "A:B,B:A", "--epsilon", "1"], "cycle"),
        (["--edges", "A:B", "--epsilon", "0"], "epsilon"),
        (["--edges", "A:B", "--epsilon", "1", "--cardinalities", "A=2"], "--cardinalities"),
        (["--edges", "A:B", "--epsilon", "1", "--mechanism", "none"], "mechanism"),
        (["--edges", "A:Z", "--epsilon", "1"], "cardinalities"),
    ],
)
def test_bad_arguments_end_with_status_two_and_a_sentence(records, capsys, arguments, word):
    status, out, error = run(capsys, records, *arguments)
    assert status == 2
    assert word in error
    assert not out


def test_records_are_coded_as_they_are_read():
    # 20000 records of four columns are .64 MB of codes; as rows of words they took 5 MB.
    lines = itertools.chain(["A,B,C,D\n"], ("0,1,1,0\n" if i % 3 else "1,0,x\n" for i in range(20_000)))
    bayesnet_fit(["A,B,C,D", "0,1,1,0"], edges="A:B", cardinalities="2", epsilon=1.0)  # what it imports is no data
    tracemalloc.start()
    try:
        answer = json.loads(bayesnet_fit(lines, edges="A:B", cardinalities="2", epsilon=100.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5e6
    assert answer["nodes"]["A"]["cpd"] == pytest.approx([2 / 3, 1 / 3], abs=1e-2)
    assert answer["nodes"]["D"]["cpd"] == pytest.approx([1, 0], abs=1e-2)


def test_a_file_of_no_records_is_no_reason_to_stop():
    assert json.loads(bayesnet_fit(["A,B"], edges="A:B", cardinalities="2", epsilon=1.0))["nodes"]
    with pytest.raises(ValueError, match="distinct names, got"):
        bayesnet_fit([], edges="A:B", cardinalities="2", epsilon=1.0)
