"""The command line fits networks, and says in one sentence what is wrong."""

import itertools
import json
import tracemalloc

import pytest

from quincunx.__main__ import main
from quincunx.posterior import DiscreteBayesNet
from quincunx.posterior._command import bayesnet_fit


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("A,B,C\n" + "0,1,0\n1,1,1.0\n" * 50)
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
    arguments = ["--edges", str(edges), "--epsilon", "1", "--categories", "2", "B=3", "--out", str(out)]
    status, said, _ = run(capsys, records, *arguments, "--relation", "add-remove", "--mechanism", "laplace")
    assert status == 0
    assert "laplace" in said
    found = json.loads(out.read_text())
    assert found["nodes"]["B"]["categories"] == 3
    assert found["guarantee"]["relation"][0] == "AddRemove"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--edges", "A-B", "--epsilon", "1"], "--edges"),
        (["--edges", "A:B,B:A", "--epsilon", "1"], "cycle"),
        (["--edges", "A:B", "--epsilon", "0"], "epsilon"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "A=2"], "nothing for 'B'"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "2", "Z=2"], "got 'Z'"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "2", "A=1|x"], "line 2: 'A' must be one of 1|x, got '0'"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "2", "A=x"], "at least two categories"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "2", "A=x|x"], "'x' twice"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "\u00b2"], "`--categories` must be a number"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "many"], "--categories"),
        (["--edges", "A:B", "--epsilon", "1", "--categories", "1"], "between 2"),
        (["--edges", "A:B", "--epsilon", "1", "--mechanism", "none"], "mechanism"),
        (["--edges", "A:Z", "--epsilon", "1"], "categories"),
        (["--edges", "A:B", "--epsilon", "1", "--sample", "-1"], "`--sample` must be at least 0, got -1"),
    ],
)
def test_bad_arguments_end_with_status_two_and_a_sentence(records, capsys, arguments, word):
    status, out, error = run(capsys, records, *arguments)
    assert status == 2
    assert word in error
    assert not out


def test_records_are_coded_as_they_are_read():
    # 20000 records of four columns are .64 MB of codes; as rows of words they took 5 MB.
    lines = itertools.chain(["A,B,C,D\n"], ("0,1,1,0\n" if i % 3 else "1,0,1,1\n" for i in range(20_000)))
    bayesnet_fit(["A,B,C,D", "0,1,1,0"], edges="A:B", epsilon=1.0)  # what it imports is no data
    tracemalloc.start()
    try:
        answer = json.loads(bayesnet_fit(lines, edges="A:B", epsilon=100.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5e6
    assert answer["nodes"]["A"]["cpd"] == pytest.approx([2 / 3, 1 / 3], abs=1e-2)
    assert answer["nodes"]["D"]["cpd"] == pytest.approx([2 / 3, 1 / 3], abs=1e-2)


def test_a_file_of_no_records_is_no_reason_to_stop():
    assert json.loads(bayesnet_fit(["A,B"], edges="A:B", epsilon=1.0))["nodes"]
    with pytest.raises(ValueError, match="distinct names, got"):
        bayesnet_fit([], edges="A:B", epsilon=1.0)


WORDS = "a,b\n" + "male,yes\nfemale,yes\nfemale,no\n" * 200


def test_words_are_categories_that_are_declared(tmp_path, capsys):
    source, file = tmp_path / "s.csv", tmp_path / "schema.csv"
    source.write_text(WORDS)
    file.write_text("a,male,female\nb,no,yes\n")
    for declared in (["a=male|female", "b=no|yes"], [str(file)]):
        status, out, _ = run(capsys, str(source), "--edges", "a:b", "--epsilon", "50", "--categories", *declared)
        assert status == 0
        nodes = json.loads(out)["nodes"]
        assert nodes["a"]["categories"] == ["male", "female"]
        assert nodes["a"]["cpd"] == pytest.approx([1 / 3, 2 / 3], abs=0.02)
        assert nodes["b"]["cpd"][0] == pytest.approx([0, 1], abs=0.02)
        assert nodes["b"]["cpd"][1] == pytest.approx([0.5, 0.5], abs=0.02)
    arguments = ["--edges", "a:b", "--epsilon", "50", "--categories", str(file), "b=no|yes|perhaps", "--sample", "20"]
    found = json.loads(run(capsys, str(source), *arguments)[1])  # what comes later goes before the file
    assert found["nodes"]["b"]["categories"] == ["no", "yes", "perhaps"]
    assert {word for record in found["sample"] for word in record} <= {"male", "female", "no", "yes", "perhaps"}


@pytest.mark.parametrize(
    ("line", "categories", "found"),
    [
        ("male,1", "2", "line 4: 'a' must be one of 0 to 1, got 'male'"),
        ("0,2", "2", "line 4: 'b' must be one of 0 to 1, got '2'"),
        ("0,-1", "2", "got '-1'"),
        ("0,0.5", "2", "got '0.5'"),
        ("0,", "2", "got ''"),
        ("0,nan", "2", "got 'nan'"),
        ("0", "2", "line 4: must have 2 fields, got 1"),
        ("0,1,1", "2", "line 4: must have 2 fields, got 3"),
        ("0,99999999999999999999", "2", "got '99999999999999999999'"),
        ("1,1", "3", None),
    ],
)
def test_a_record_that_fits_no_declaration_is_refused_before_anything_is_drawn(
    line, categories, found, tmp_path, monkeypatch
):
    monkeypatch.setattr(DiscreteBayesNet, "fit_private", lambda *_, **__: pytest.fail("drawn") if found else fits.pop())
    source, fits = tmp_path / "s.csv", [None]
    source.write_text(f"a,b\n0,1\n1,0\n{line}\n")
    with pytest.raises(ValueError if found else AttributeError) as error:  # what was popped is no network
        bayesnet_fit(source, edges="a:b", categories=categories, epsilon=1.0)
    assert found is None or found in str(error.value)
    assert bool(fits) == bool(found)
