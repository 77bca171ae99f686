"""The command line: what it prints where, and with which status it ends."""

import json
import math
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import quincunx
from quincunx import _core, cli, counting, errors, lattices
from quincunx.counting import (
    count_independent_sets,
    count_spanning_trees,
    independence_polynomial,
    independent_set_table,
)

COUNT = ["count", "independent-sets"]


def digits(number):
    """Write an int of any length, sixteen digits at a time; Python itself refuses more than 4300."""
    parts = []
    while number >= 10**16:
        number, last = divmod(number, 10**16)
        parts.append(f"{last:016}")
    return "".join([str(number), *reversed(parts)])


# Counts.


def test_a_count_prints_the_integer_alone(run):
    status, out, err = run(*COUNT, "4-8-8", "8x8")
    assert status == 0
    assert out == f"{count_independent_sets(lattices.four_eight_eight(8, 8))}\n"
    assert err == ""


def test_sizes_and_names_are_read_as_people_write_them(run):
    for arguments in [("square", "4x5"), ("SQUARE", "4X5"), ("4.4.4.4", "05x04")]:
        assert run(*COUNT, *arguments) == (0, f"{count_independent_sets(lattices.square(4, 5))}\n", "")
    assert run(*COUNT, "square", "8x8")[1] == "660647962955\n"
    assert run(*COUNT, "bathroom", "1x1")[1] == "47\n"
    assert run(*COUNT, "3-12-12", "2x2")[0] == 0


def test_numbers_beyond_4300_digits_are_printed_in_full(run):
    status, out, _ = run(*COUNT, "square", "8x4000")
    count = count_independent_sets(lattices.square(8, 4000))
    assert status == 0
    assert len(out) - 1 == 5780
    assert out[:-1] == digits(count)
    assert run(*COUNT, "square", "8x4000", "--json")[1].count(out[:-1]) == 1


@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_a_boundary_is_a_word(run, boundary):
    expected = count_independent_sets(lattices.four_eight_eight(3, 4, boundary))
    assert run(*COUNT, "4-8-8", "3x4", "--boundary", boundary) == (0, f"{expected}\n", "")


def test_multigraphs_must_be_asked_for(run):
    status, out, err = run(*COUNT, "square", "2x2", "--boundary", "torus")
    assert (status, out) == (2, "")
    assert "multigraph" in err
    assert run(*COUNT, "square", "2x2", "--boundary", "torus", "--multigraph") == (0, "7\n", "")


def test_json_holds_the_count_as_a_string(run):
    status, out, _ = run(*COUNT, "4-8-8", "5x5", "--json", "--threads", "1")
    answer = json.loads(out)
    assert status == 0
    assert answer.pop("seconds") >= 0
    assert answer == {
        "what": "independent-sets",
        "lattice": "4-8-8",
        "size": "5x5",
        "boundary": "free",
        "count": "400989410760263909570575",
        "digits": 24,
    }


def test_a_polynomial_is_one_number_a_line(run):
    assert run(*COUNT, "square", "3x3", "--polynomial") == (0, "1\n9\n24\n22\n6\n1\n", "")
    answer = json.loads(run(*COUNT, "king", "4x4", "--polynomial", "--json")[1])
    assert [int(c) for c in answer["coefficients"]] == independence_polynomial(lattices.king(4, 4))


def test_an_estimate_says_what_the_job_would_take_and_does_nothing(run):
    status, out, _ = run(*COUNT, "square", "30x30", "--estimate", "--memory", "100G", "--threads", "2")
    facts = dict(line.split(None, 1) for line in out.splitlines())
    assert status == 0
    assert facts["primes"] == "12"
    assert int(facts["bytes"]) > 10**7
    assert json.loads(run(*COUNT, "square", "30x30", "--estimate", "--json")[1])["primes"] == 12


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["spanning-trees", "square", "4x4"], 100352),
        (["spanning-trees", "kagome", "3x3", "--boundary", "torus"], 8463329722368),
        (["perfect-matchings", "square", "8x8"], 12988816),
        (["perfect-matchings", "honeycomb", "6x6", "--boundary", "torus"], 263640),
        (["perfect-matchings", "aztec-diamond", "4"], 1024),
        (["perfect-matchings", "Aztec Diamond", "3"], 64),
        (["perfect-matchings", "square", "3x3"], 0),
        (["matchings", "square", "4x4", "--boundary", "torus"], 41025),
        (["matchings", "triangular", "4x4", "--threads", "1", "--memory", "1G"], 32173),
    ],
)
def test_trees_and_matchings_print_the_integer_alone(run, arguments, count):
    assert run("count", *arguments) == (0, f"{count}\n", "")
    answer = json.loads(run("count", *arguments, "--json")[1])
    assert (answer["what"], answer["lattice"], answer["count"]) == (arguments[0], arguments[1], str(count))


def test_trees_of_any_length_are_printed_in_full(run):
    status, out, _ = run("count", "spanning-trees", "square", "120x120")
    assert status == 0
    assert out[:-1] == digits(count_spanning_trees(lattices.square(120, 120)))
    assert len(out) > 4400


def test_a_twist_is_of_a_torus(run):
    arguments = ["spanning-trees", "square", "5x4", "--boundary", "torus"]
    expected = count_spanning_trees(lattices.square(5, 4, "torus", twist=2))
    assert run("count", *arguments, "--twist", "2") == (0, f"{expected}\n", "")
    assert run("count", *arguments)[1] != f"{expected}\n"
    status, out, err = run("count", "spanning-trees", "square", "5x4", "--twist", "2")
    assert (status, out) == (2, "")
    assert "`--twist` must be 0 unless both axes are closed" in err


def test_matchings_by_size_and_no_sizes_of_trees(run):
    assert run("count", "matchings", "square", "2x2", "--polynomial") == (0, "1\n4\n2\n", "")
    for what in ("spanning-trees", "perfect-matchings"):
        status, out, err = run("count", what, "square", "2x2", "--polynomial")
        assert (status, out) == (2, "")
        assert f"`--polynomial` must be left out for {what}" in err


@pytest.mark.parametrize("what", ["spanning-trees", "perfect-matchings", "matchings"])
def test_every_count_has_an_estimate_a_graph_and_a_checkpoint(run, what, tmp_path):
    estimate = json.loads(run("count", what, "kagome", "6x6", "--estimate", "--json")[1])
    assert estimate["primes"] >= 2
    assert estimate["seconds"] > 0
    file = tmp_path / "square.txt"
    file.write_text("a b\nb c\nc d\nd a\n", encoding="utf-8")
    expected = {"spanning-trees": "4", "perfect-matchings": "2", "matchings": "7"}[what]
    state = tmp_path / "state"
    assert run("count", what, "--edges", file, "--checkpoint", state) == (0, f"{expected}\n", "")
    assert not state.exists()


def test_a_spectrum_is_one_eigenvalue_a_line(run, tmp_path):
    status, out, err = run("spectrum", "honeycomb", "1x1", "--boundary", "torus", "--multigraph")
    assert (status, err) == (0, "")
    assert [round(float(line), 9) for line in out.splitlines()] == [-3, 3]
    values = json.loads(run("spectrum", "square", "3x3", "--laplacian", "--json")[1])["eigenvalues"]
    assert values == sorted(values)
    assert [round(value, 9) for value in values] == [0, 1, 1, 2, 3, 3, 4, 4, 6]
    energy = run("spectrum", "3-12-12", "3x4", "--boundary", "torus", "--energy")[1]
    assert abs(float(energy) - 106.696436614676) < 1e-9
    assert run("spectrum", "square", "2x2", "--kirchhoff") == (0, "5\n", "")
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        status, out, err = run("spectrum", "triangular", "32x32", "--kirchhoff")
    finally:
        sys.set_int_max_str_digits(most)
    assert (status, err, len(out) > 640) == (0, "", True)
    assert out.count("/") == 1
    assert abs(float(run("spectrum", "square", "2x2", "--connectivity")[1]) - 2) < 1e-9
    twisted = run("spectrum", "square", "5x4", "--boundary", "torus", "--twist", "1", "--connectivity")[1]
    assert float(twisted) != float(run("spectrum", "square", "5x4", "--boundary", "torus", "--connectivity")[1])
    file = tmp_path / "edges.txt"
    file.write_text("a b\nb c\nc a\n", encoding="utf-8")
    assert [round(float(line), 9) for line in run("spectrum", "--edges", file)[1].splitlines()] == [-1, -1, 2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["count", "perfect-matchings", "aztec-diamond", "4x4"], "an Aztec diamond has one size"),
        (["count", "perfect-matchings", "aztec-diamond"], "`MxN`"),
        (["count", "spanning-trees", "square", "3x3", "--twist", "one"], "--twist"),
        (["count", "perfect-matchings", "4-8-8", "3x3", "--twist", "1"], "must be 0 unless both axes are closed"),
        (["spectrum", "square"], "`MxN`"),
        (["spectrum"], "`LATTICE`"),
        (["spectrum", "square", "3x3", "--energy", "--kirchhoff"], "--kirchhoff"),
        (["spectrum", "square", "3x3", "--energy", "--laplacian"], "--laplacian"),
        (["spectrum", "cubic", "3x3"], "must be one of"),
        (["spectrum", "square", "3x3", "--edges", "file"], "`--edges` must be given alone"),
    ],
)
def test_a_bad_count_or_spectrum_is_one_sentence_and_status_2(run, arguments, says):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_disconnected_graph_has_trees_but_no_kirchhoff_index(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("1 2\n3 4\n", encoding="utf-8")
    assert run("count", "spanning-trees", "--edges", file) == (0, "0\n", "")
    status, out, err = run("spectrum", "--edges", file, "--kirchhoff")
    assert (status, out) == (2, "")
    assert "`graph` must be connected, got 2 components" in err


# Edge lists.


def test_a_graph_is_read_from_a_file(run, tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("# a path\na, b\nb, c\n\nd\n", encoding="utf-8")
    assert run(*COUNT, "--edges", file) == (0, "10\n", "")
    answer = json.loads(run(*COUNT, "--edges", file, "--json")[1])
    assert (answer["edges"], answer["count"], answer["digits"]) == (str(file), "10", 2)
    assert "lattice" not in answer
    assert run(*COUNT, "--edges", file, "--polynomial")[1] == "1\n4\n4\n1\n"


@pytest.mark.parametrize(
    ("content", "line"),
    [("0 1\n1 2 3\n", 2), ("0 1\n\n# fine\na b c d\n", 4), ("0 1\n1 2 {'weight': 3\n", 2), (",,\n", 1)],
)
def test_a_bad_line_is_named_by_file_and_number(run, tmp_path, content, line):
    file = tmp_path / "edges.txt"
    file.write_text(content, encoding="utf-8")
    status, out, err = run(*COUNT, "--edges", file)
    assert (status, out) == (2, "")
    assert f"{file}, line {line}: " in err
    assert err.count("\n") == 1
    assert err.startswith("quincunx: ")


@pytest.mark.parametrize(
    "verb", [COUNT, ["hard-core"], ["spectrum", "--kirchhoff"]], ids=["count", "hard-core", "spectrum"]
)
def test_separators_and_headers_of_edge_lists_are_never_guessed_wrong(run, tmp_path, verb):
    file = tmp_path / "edges.csv"
    file.write_text("0 1\n1 2\n", encoding="utf-8")
    expected = run(*verb, "--edges", file)
    assert expected[0] == 0
    for mark in ",;\t":
        file.write_text(f"a{mark}b\nb{mark}c\n", encoding="utf-8")
        assert run(*verb, "--edges", file) == expected
    file.write_text("source,target\na,b\nb,c\n", encoding="utf-8")
    status, out, err = run(*verb, "--edges", file)
    assert (status, out) == (2, "")
    assert f"{file}, line 1: 'source' and 'target' occur on no other line" in err
    assert "`--header`" in err
    assert run(*verb, "--edges", file, "--header") == expected
    assert run(*verb, "--edges", file, "--no-header") != expected
    file.write_text("a|b\nb|c\n", encoding="utf-8")
    assert "line 1: expected one or two labels with one separator (`--delimiter`)" in run(*verb, "--edges", file)[2]
    assert run(*verb, "--edges", file, "--delimiter", "|") == expected
    for option in (["--header"], ["--delimiter", ","]):
        assert f"`{option[0]}` must be left out without `--edges`" in run(*verb, "square", "2x2", *option)[2]


def test_a_file_that_is_not_there_or_not_text_is_refused(run, tmp_path):
    status, out, err = run(*COUNT, "--edges", tmp_path / "nothing")
    assert (status, out) == (2, "")
    assert "nothing" in err
    (tmp_path / "binary").write_bytes(b"0 1\n\xff\xfe\x00\n")
    status, out, err = run(*COUNT, "--edges", tmp_path / "binary")
    assert (status, out) == (2, "")
    assert "not text in UTF-8" in err
    assert run(*COUNT, "--edges", tmp_path)[0] == 2


# Bad arguments.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*COUNT, "cubic", "4x4"], "must be one of square, king"),
        ([*COUNT, "squar", "4x4"], "did you mean 'square'?"),
        ([*COUNT, "square", "4x4", "--boundary", "tours"], "did you mean 'torus'?"),
        (["count", "independant-sets", "square", "4x4"], "did you mean 'independent-sets'?"),
        (["cuont"], "did you mean 'count'?"),
        ([*COUNT, "square"], "`MxN` must be two extents such as 20x20, got None"),
        ([*COUNT, "square", "4"], "`MxN` must be two extents such as 20x20, got '4'"),
        ([*COUNT, "square", "4x"], "`MxN`"),
        ([*COUNT, "square", "4x4x4"], "`MxN`"),
        ([*COUNT, "square", "-4x4"], ""),
        ([*COUNT, "square", "4.5x4"], "`MxN`"),
        ([*COUNT, "square", "²x4"], "`MxN`"),
        ([*COUNT, "square", "0x4"], "`m` must be"),
        ([*COUNT, "square", "4x99999999999999999999"], "`n` must be"),
        ([*COUNT], "`LATTICE` must be given, or a graph with `--edges`"),
        ([*COUNT, "square", "4x4", "--edges", "file"], "`--edges` must be given alone"),
        ([*COUNT, "square", "4x4", "--boundary", "open"], "--boundary"),
        ([*COUNT, "square", "4x4", "--threads", "0"], "`--threads` must be between 1 and 256, got 0"),
        ([*COUNT, "square", "4x4", "--threads", "two"], "--threads"),
        ([*COUNT, "square", "4x4", "--memory", "lots"], "must be a size such as 6G or 512M, got 'lots'"),
        ([*COUNT, "square", "4x4", "--memory", "0"], "must be a size"),
        ([*COUNT, "square", "4x4", "--memory", "-5"], "--memory"),
        ([*COUNT, "square", "4x4", "--memory", "G"], "must be a size"),
        ([*COUNT, "square", "4x4", "--checkpoint", "/no/such/place/state"], "checkpoint"),
        (["count", "colorings", "square", "4x4"], "WHAT"),
        (["count"], "WHAT"),
        (["compute"], "VERB"),
        ([], "VERB"),
        (["table", "cubic"], "must be one of"),
        (["table", "4-8-8", "--max", "0"], "`--max` must be between 1 and 1000"),
        (["table", "4-8-8", "--max", "three"], "--max"),
        (["table", "square", "--max", "2", "--compare", "thesis"], "`--compare` must be None"),
        (["table", "4-8-8", "--compare", "paper"], "--compare"),
        (["info", "everything"], "everything"),
        ([*COUNT, "square", "4x4", "--checkpoint-interval", "1"], "must be left out without `--checkpoint`"),
        (["factorize", "x.npz", "--checkpoint-interval", "1"], "must be left out without `--checkpoint`"),
        (["entropy", "square", "--width", "7"], "`--width` must be even"),
        (["entropy", "cubic"], "must be one of"),
        ([*COUNT, "square", "4x4", "--polynomial", "--estimate"], "`--polynomial` must be left out with `--estimate`"),
        ([*COUNT, "--edges", "-", "--twist", "1"], "`--twist` must be left out with `--edges`"),
        ([*COUNT, "square", "4x4", "--multi"], "unrecognized arguments: --multi"),
        (["table", "records", "--grid"], "`--grid` must be left out for records"),
        (["table", "--max", "3"], "`--max` must be left out without `lattice`"),
        (["entropy", "square", "--estimate", "--checkpoint", "x"], "`--checkpoint` must be left out with `--estimate`"),
        (["job", "start", "count", "spanning-trees", "square", "2x2", "--polynomial", "--dir", "x"], "`--polynomial`"),
    ],
)
def test_a_bad_argument_is_one_sentence_and_status_2(run, arguments, says):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.startswith("quincunx")
    assert err.count("\n") == 1, "one line"


def test_a_job_larger_than_its_memory_is_refused(run):
    status, out, err = run(*COUNT, "square", "30x30", "--memory", "1M")
    assert (status, out) == (2, "")
    assert "the limit is 1048576 bytes" in err
    status, out, err = run(*COUNT, "square", "400x400")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1


def test_memory_is_given_in_bytes_or_with_a_unit(run):
    for size in ("500000", "500K", "500k", "1M", "1G", "1T", "99999999999999999999999"):
        assert run(*COUNT, "square", "8x8", "--memory", size) == (0, "660647962955\n", "")


# Tables and facts.


def test_a_table_marks_what_is_wrong_in_the_published_one(run):
    status, out, err = run("table", "4-8-8", "--max", "9", "--compare", "thesis")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "4-8-8, free"
    assert lines[-1] == "18 of 57 published entries are wrong"
    assert "  4   5  21891571255589181059  (published: 21891571255589181023, wrong)" in lines
    assert len(lines) == 83


@pytest.mark.parametrize(("boundary", "wrong"), [("free", 2), ("cylinder", 4), ("torus", 1)])
def test_a_table_in_json(run, boundary, wrong):
    arguments = ["table", "4-8-8", "--max", "5", "--boundary", boundary, "--compare", "thesis", "--json"]
    table = json.loads(run(*arguments)[1])
    assert (table["lattice"], table["boundary"], table["size"]) == ("4-8-8", boundary, 5)
    assert len(table["values"]) == 25
    assert len(table["wrong"]) == wrong


# Growth constants.


def ends(out):
    """The ends of the entropy and of the growth constant."""
    (name, *entropy), (other, *constant) = map(str.split, out.splitlines())
    assert (name, other) == ("entropy", "growth_constant")
    return entropy, constant


@pytest.mark.parametrize("width", [12, pytest.param(16, marks=pytest.mark.slow)])
def test_an_entropy_is_its_two_ends_and_so_is_its_exponential(run, width):
    status, out, err = run("entropy", "4-8-8", "--width", width)
    assert (status, err) == (0, "")
    entropy, constant = ends(out)
    assert [round(math.exp(float(end)), 12) for end in entropy] == [round(float(end), 12) for end in constant]
    lower, upper = map(Fraction, constant)
    # The thesis's nine digits and six more; the interval of 64-bit mantissas (ring 16, strips 15 and 14).
    assert lower <= Fraction("1.5495601013357694") < Fraction("1.5495601013357695") <= upper
    assert upper - lower < Fraction(1, 10**13)


def test_an_entropy_has_the_digits_asked_for(run):
    status, out, err = run("entropy", "4-8-8", "--digits", "40")
    assert (status, err) == (0, "")
    _, (lower, upper) = ends(out)
    assert lower[:41] == upper[:41] == "1.549560101335769447091538174300822563808"
    assert Fraction(upper) - Fraction(lower) <= Fraction(1, 10**40)


@pytest.mark.parametrize(
    ("arguments", "theorem"),
    [
        (["square", "--digits", "10"], "D and E"),
        (["king", "--width", "6"], "A'"),
        (["3-12-12", "--width", "3"], "B"),
        (["martini", "--width", "10"], "C"),
        (["square", "--model", "matchings", "--digits", "8"], "D and E"),
        (["square", "--model", "widom-rowlinson", "--activity", "1/4", "--digits", "4"], "D and A'"),
    ],
)
def test_an_entropy_in_json_has_its_evidence(run, arguments, theorem):
    facts = json.loads(run("entropy", *arguments, "--json")[1])
    assert facts["theorem"] == theorem
    for name, first in (("entropy", "0."), ("growth_constant", "1.")):
        assert Fraction(facts[name]["lower"]) < Fraction(facts[name]["upper"])
        assert facts[name]["certified"].startswith(first)
    assert facts["evidence"]["seconds"] >= 0


def test_an_estimate_of_an_entropy_is_one_number_and_its_exponential(run):
    status, out, err = run("entropy", "triangular", "--estimate", "--digits", "12")
    assert (status, err) == (0, "")
    assert [line.split()[1][:13] for line in out.splitlines()] == ["0.33324272197", "1.39548597247"]


def test_the_table_of_records_has_a_line_for_each_and_all_digits_in_json(run):
    status, out, err = run("table", "records")
    assert (status, err) == (0, "")
    told = json.loads(run("table", "records", "--json")[1])
    known = [(lattice, row) for lattice in told["lists"] for row in told[lattice]]
    assert out.count("verified in") == len(known) >= 7
    for lattice, row in known:
        words = shlex.split(row["command"])
        assert words[0] == "quincunx"
        assert {lattice, f"{row['size']}x{row['size']}", "independent-sets"} <= set(words)
        assert (
            f"{row['size']} x {row['size']}  {row['count'][0]}.{row['count'][1:5]}...e{len(row['count']) - 1} " in out
        )


def test_the_tables_of_triangulated_grids_mark_five_wrong_digits(run):
    status, out, err = run("table", "triangulated")
    assert (status, err) == (0, "")
    assert out.count("printed") == 5
    assert "0.37637657279851 (printed 0.37637657279850)" in out
    assert len(json.loads(run("table", "triangulated", "--json")[1])["wrong"]) == 5


def test_info_says_what_it_runs_on(run):
    status, out, err = run("info")
    assert (status, err) == (0, "")
    assert f"quincunx          {quincunx.__version__}" in out
    facts = json.loads(run("info", "--json")[1])
    assert facts["threads"] == _core.available_threads()
    assert facts["build"] in ("release", "debug")


def test_the_page_of_the_command_line_names_every_verb(run):
    page = (Path(__file__).parent.parent / "docs" / "command_line.md").read_text()
    verbs = cli._parser()._subparsers._group_actions[0].choices
    assert [verb for verb in verbs if f"`quincunx {verb}" not in page] == []


def test_every_option_says_what_it_is():
    verbs = {name: cli._parser(name.split()) for name in cli.VERBS}
    for name, parser in verbs.items():
        for word in name.split():
            parser = parser._subparsers._group_actions[0].choices[word]
        assert parser.description, name
        assert [action.dest for action in parser._actions if not action.help] == [], name


def test_help_and_version_are_no_errors(run):
    assert run("--version") == (0, f"quincunx {quincunx.__version__}\n", "")
    for arguments in (["--help"], ["count", "--help"], ["table", "--help"], ["info", "--help"]):
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        assert out.startswith("usage: quincunx")


def test_a_checkpoint_is_gone_at_the_end(run, tmp_path):
    state = tmp_path / "state"
    assert run(*COUNT, "square", "8x8", "--checkpoint", state) == (0, "660647962955\n", "")
    assert list(tmp_path.iterdir()) == []
    state.write_bytes(b"this is no checkpoint of anything")
    status, out, err = run(*COUNT, "square", "8x8", "--checkpoint", state)
    assert (status, out) == (2, "")
    assert str(state) in err
    assert state.exists()


# As programs of their own.


def test_the_installed_command_and_the_module_are_the_same(python):
    command = Path(sysconfig.get_path("scripts")) / "quincunx"
    assert python(None, "-m", "quincunx", *COUNT, "square", "8x8").communicate(timeout=60)[0] == "660647962955\n"
    if not command.exists():
        pytest.skip(f"the command is not installed at {command}")
    done = subprocess.run([command, *COUNT, "cubic", "8x8"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux tells when the pool has begun its work")
def test_an_interrupt_is_status_130_and_nothing_on_standard_output(python):
    process = python(None, "-m", "quincunx", *COUNT, "square", "16x9000")
    threads = Path(f"/proc/{process.pid}/task")
    while not any("quincunx-" in file.read_text() for file in threads.glob("*/comm")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err) == ("", "quincunx: interrupted\n")


def test_an_interrupt_while_a_verb_is_imported_is_status_130(run, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "filled", stopped)
    assert run(*COUNT, "square", "4x4") == (130, "", "quincunx: interrupted\n")


def test_a_closed_pipe_is_no_error(python):
    process = python(None, "-m", "quincunx", "table", "4-8-8", "--max", "6")
    process.stdout.close()
    process.stdout = None
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""


def test_progress_is_not_written_where_there_is_no_terminal(python):
    process = python(None, "-m", "quincunx", *COUNT, "square", "24x24")
    out, err = process.communicate(timeout=60)
    assert (len(out), err) == (105, "")


# The hard-core model, grids, completion.


def test_hard_core_prints_a_line_for_each_activity(run, tmp_path):
    arguments = ["hard-core", "square", "2x2"]
    assert run(*arguments) == (0, "7\n", "")
    assert run(*arguments, "--activity", "2", "1/2", "0.5") == (0, "17\n7/2\n7/2\n", "")
    value, error = map(float, run(*arguments, "--activity", "1/2", "--mode", "float")[1].split())
    assert abs(value - 3.5) <= error
    answer = json.loads(run(*arguments, "--activity", "1/2", "3", "--mode", "log", "--json")[1])
    assert [part["activity"] for part in answer["partition_function"]] == ["1/2", "3"]
    assert answer["partition_function"][1]["value"] == pytest.approx(np.log(31))
    (tmp_path / "edges.txt").write_text("1 2\n")
    negative = run("hard-core", "--edges", tmp_path / "edges.txt", "--activity", "-1", "-1/2", "-1e-1")
    assert negative == (0, "-1\n0\n4/5\n", "")
    for wrong in ("one", "1/0", ""):
        status, out, err = run(*arguments, "--activity", wrong)
        assert (status, out) == (2, "")
        assert "`--activity` must be a number such as '1/2' or '0.5'" in err
    assert "`--activity` must have an exponent" in run(*arguments, "--activity", "1e999999999")[2]
    assert "--activity: must be a number such as" in run("entropy", "square", "--activity", "1e999999999")[2]


def test_a_table_is_printed_as_a_grid(run):
    table = independent_set_table("square", 3)
    assert run("table", "square", "--max", "3", "--grid") == (0, f"{table.grid()}\n", "")
    assert "`--grid` must be left out with `--json`" in run("table", "square", "--grid", "--json")[2]


def test_an_estimate_is_said_in_units_of_people_too(run):
    out = run(*COUNT, "square", "30x30", "--estimate", "--memory", "100G", "--threads", "2")[1]
    facts = dict(line.split(None, 1) for line in out.splitlines())
    assert facts["memory"].endswith("iB")
    assert facts["time"].startswith("about ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb_and_option(run, shell):
    status, script, err = run("completion", shell)
    assert (status, err) == (0, "")
    for word in ("hard-core", "privatize", "bayesnet", "free cylinder torus", "kagome", "warmup", "no-header"):
        assert word in script


def test_zsh_can_read_its_script(run):
    """It takes a length that begins with a letter for a modifier, and has `path` and `options` of its own."""
    script = run("completion", "zsh")[1]
    assert not re.search(r"\$\{\w+\[@\]:\d+:[A-Za-z]", script)
    assert not re.search(r"\b(path|options)=", script)
    assert "(( $+functions[compdef] )) || { autoload -U compinit && compinit }" in script


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_completes_a_line(run):
    ask = "COMP_WORDS=(quincunx job s); COMP_CWORD=2; compgen -F _quincunx -- s"
    program = f"compdef() {{ }}\n{run('completion', 'zsh')[1]}{ask}"
    done = subprocess.run(["zsh", "-fc", program], capture_output=True, text=True, timeout=60, check=True)
    assert {"start", "status", "stop"} <= set(done.stdout.split())
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pri", ["privatize"]),
        ("count ind", ["independent-sets"]),
        ("count independent-sets kag", ["kagome"]),
        ("count independent-sets square 4x4 --boundary c", ["cylinder"]),
        ("budget o", ["open"]),
        ("budget open --fail", ["--failure"]),
        ("privatize --format j", ["json"]),
        ("completion z", ["zsh"]),
        ("factorize --model ", ["matrix", "topics", "directed", "undirected", "tensor", "tucker", "dynamics"]),
        ("privatize --out r", []),
    ],
)
def test_bash_completes_a_line(run, line, found):
    script = run("completion", "bash")[1]
    words = ["quincunx", *line.split(" ")]
    ask = " ".join(f"'{word}'" for word in words)
    program = f"COMP_WORDS=({ask}); COMP_CWORD={len(words) - 1}; _quincunx; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script + program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == found
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["privatize", "FILE", "--epsilon", "1"],
        ["release", "laplace", "FILE", "--epsilon", "1", "--bounds", "0", "5"],
        ["convert", "FILE"],
        ["factorize", "FILE"],
        ["bayesnet", "fit", "FILE", "--edges", "", "--epsilon", "1"],
    ],
)
def test_no_answer_takes_the_place_of_what_it_was_made_from(run, tmp_path, words):
    """A second run would take noise for data; the data would be gone."""
    file, link = tmp_path / "counts.csv", tmp_path / "link.csv"
    file.write_text("A,B\n1,0\n0,1\n")
    link.symlink_to(file)
    for out in (file, link):
        status, said, err = run(*(str(file) if word == "FILE" else word for word in words), "--out", out)
        assert (status, said) == (2, "")
        assert f"`--out` must be another file than `source`, which it would take the place of, got {out}" in err
    assert file.read_text() == "A,B\n1,0\n0,1\n"


def test_no_model_takes_the_place_of_the_checkpoint_of_its_fit(run, tmp_path):
    """After a stop both are written, and there were nothing to go on from."""
    path = tmp_path / "fit.npz"
    status, _, err = run("factorize", "counts.npz", "--out", path, "--checkpoint", tmp_path / "." / "fit.npz")
    assert status == 2
    assert f"`--out` must be another file than `--checkpoint`, which it would take the place of, got {path}" in err


def test_what_cannot_be_written_is_named_as_it_was_asked_for(run, tmp_path):
    (tmp_path / "counts.csv").write_text("1,0\n0,1\n")
    for out in (tmp_path / "none" / "r.npz", tmp_path):
        _, _, err = run("privatize", tmp_path / "counts.csv", "--epsilon", "1", "--out", out)
        assert err.endswith(f": {str(out)!r}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["counts.csv"]


@pytest.mark.parametrize(
    ("error", "status"),
    [(errors.ConvergenceError("not found"), 2), (errors.InternalError("a fault"), 1), (errors.WorkerError("gone"), 1)],
)
def test_errors_of_our_own_are_a_sentence_and_a_status(run, monkeypatch, error, status):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(counting, "count_independent_sets", fails)
    assert run("count", "independent-sets", "square", "3x3") == (status, "", f"quincunx: {error}\n")


def test_streams_that_are_closed_are_empty_or_go_nowhere(run, monkeypatch):
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{name}", None)
    assert run("count", "matchings", "square", "3x3") == (0, "", "")
    status, _, err = run("privatize", "-", "--epsilon", "1")
    assert (status, err) == (2, "quincunx: standard input: there are no counts in it\n")
    for stream in (sys.stdin, sys.stdout):
        stream.close()
