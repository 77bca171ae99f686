"""The command line's verbs of random objects and of mechanisms: what they print is what Python says."""

import collections
import io
import json
import os
import threading

import numpy as np
import pytest
from tests.statistics import assert_discrete_fit

from quincunx.privacy import GeometricMechanism, LaplaceMechanism, Release, privatize


def test_random_objects_are_uniform_and_of_the_graph(run, tmp_path):
    # The square has 7 independent sets, 4 spanning trees and 2 perfect matchings; by hand.
    for what, size, number in (("independent-set", None, 7), ("spanning-tree", 3, 4), ("perfect-matching", 2, 2)):
        status, out, _ = run("random", what, "square", "2x2", "--draws", 2000, "--seed", 4, "--json")
        seen = collections.Counter(map(str, json.loads(out)))
        assert status == 0
        assert len(seen) == number
        assert all(size in (None, len(json.loads(one))) for one in seen)
        assert_discrete_fit(list(seen.values()), [1 / number] * number)
    out = run("random", "spanning-tree", "square", "4x4", "--seed", 1)[1]
    assert run("random", "spanning-tree", "square", "4x4", "--seed", 1)[1] == out
    (tmp_path / "tree").write_text(out)
    assert run("count", "spanning-trees", "--edges", tmp_path / "tree")[1] == "1\n"
    (tmp_path / "path").write_text("a b\nb c\nc d\n")
    assert run("random", "perfect-matching", "--edges", tmp_path / "path")[1] == "a b\nc d\n"
    found = run("random", "independent-set", "--edges", tmp_path / "path", "--activity", "1000000", "--draws", 2)[1]
    assert [len(one.split()) for one in found.split("\n\n")] == [2, 2]
    (tmp_path / "names").write_text('"New York",Boston\nBoston,"A;""B"\n"{c}",Boston\n')
    out = run("random", "spanning-tree", "--edges", tmp_path / "names")[1]
    assert out == '"New York" Boston\nBoston "A;""B"\n"{c}" Boston\n'
    (tmp_path / "tree").write_text(out)
    assert run("random", "spanning-tree", "--edges", tmp_path / "tree")[1] == out
    (tmp_path / "double").write_text("a b\na b\n")
    assert run("random", "spanning-tree", "--edges", tmp_path / "double", "--seed", 1)[1] == "a b\n"
    assert run("random", "perfect-matching", "--edges", tmp_path / "double")[1] == "a b\n"
    status, _, err = run("random", "spanning-tree", "square", "2x2", "--activity", "2")
    assert status == 2
    assert "`--activity` must be left out for spanning-tree" in err


@pytest.fixture
def ages(tmp_path):
    """Return the path of a column as pandas writes it."""
    (tmp_path / "ages.csv").write_text(",age\n0,31\n1,54\n2,120\n")
    return tmp_path / "ages.csv"


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("laplace", ["--bounds", 0, 100]),
        ("geometric", ["--bounds", 0, 100]),
        ("geometric", ["--n", 1]),
        ("discrete-gaussian", ["--bounds", 0, 100, "--delta", "1e-5"]),
        ("gaussian", ["--radius", 100]),
    ],
)
def test_numbers_are_released_and_the_file_says_by_what(run, ages, tmp_path, mechanism, options):
    status, out, err = run("release", mechanism, ages, "--epsilon", 1, *options, "--out", tmp_path / "r.json")
    assert (status, err) == (0, "")
    release = Release.load(tmp_path / "r.json")
    assert (release.mechanism, release.shape, release.epsilon) == (mechanism, (3,), 1.0)
    assert out == f"{release.guarantee}\nprotects {release.protects}\n"
    before = ["accuracy", mechanism, "--epsilon", 1, *options]
    assert run("accuracy", tmp_path / "r.json")[1] == run(*before)[1]


def test_rows_have_no_bounds(run, tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n")
    how = ["gaussian", tmp_path / "rows.csv", "--epsilon", 1]
    assert run("release", *how, "--radius", 1, "--out", tmp_path / "r.npz")[0] == 0
    assert "must have one column for gaussian with `--bounds`, got 2" in run("release", *how, "--bounds", 0, 1)[2]


def test_whole_numbers_beyond_doubles_are_released_as_they_are_or_refused(run, tmp_path):
    large = 2**60 + 1
    (tmp_path / "ids.csv").write_text(f"{large}\n1\n")
    how = ["--epsilon", 40, "--n", 1, "--out", tmp_path / "r.npz"]
    assert run("release", "geometric", tmp_path / "ids.csv", *how)[0] == 0
    assert abs(int(Release.load(tmp_path / "r.npz").values[0]) - large) < 3
    (tmp_path / "ids.csv").write_text(f"{large}\n1.0\n")
    status, _, err = run("release", "geometric", tmp_path / "ids.csv", *how)
    assert status == 2
    assert "from 2**53 on without a decimal point" in err


def test_categories_are_released_by_declared_labels(run, tmp_path):
    (tmp_path / "drinks.csv").write_text("drink\ntea\ncoffee\ntea\n")
    how = ["--epsilon", 50, "--categories", "tea|coffee|water"]
    protocols = ["unary-encoding", "subset-selection", "local-hashing", "hadamard-response"]
    for mechanism, found in (("generalized-randomized-response", [0, 1, 0]), *((name, None) for name in protocols)):
        assert run("release", mechanism, tmp_path / "drinks.csv", *how, "--out", tmp_path / "r.npz")[0] == 0
        release = Release.load(tmp_path / "r.npz")
        assert release.mechanism == mechanism
        if found is not None:  # noise of this epsilon changes nothing, but for 1 in 10^21
            assert np.asarray(release.values).tolist() in (found, ["tea", "coffee", "tea"])
        assert run("ldp", "histogram", tmp_path / "r.npz", "--draws", 20, "--seed", 1)[1].count("theta[") == 3
    (tmp_path / "drinks.csv").write_text("drink\ntea\nbeer\n")
    assert run("release", "unary-encoding", tmp_path / "drinks.csv", *how)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["laplace", "--epsilon", 1], "`--bounds` must be given for laplace"),
        (["laplace", "--epsilon", 1, "--bounds", 0, 1, "--radius", 1], "`--radius` must be left out for laplace"),
        (["laplace", "--epsilon", 1, "--bounds", 0, 1, "--delta", 0.1], "`--delta` must be left out for laplace"),
        (["geometric", "--epsilon", 1], "`--bounds` or `--n` must be given for geometric"),
        (
            ["gaussian", "--epsilon", 1, "--radius", 1, "--bounds", 0, 1],
            "`--bounds` must be given for gaussian, not both",
        ),
        (["geometric", "--epsilon", 1, "--bounds", 0.5, 1], "`--bounds` must be a whole number"),
        (["unary-encoding", "--epsilon", 1], "`--categories` must be given for unary-encoding"),
        (["laplas", "--epsilon", 1], "did you mean 'laplace'?"),
    ],
)
def test_what_a_mechanism_needs_is_said_in_one_sentence(run, ages, arguments, says):
    mechanism, *options = arguments
    status, out, err = run("release", mechanism, ages, *options)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_an_accuracy_is_that_of_the_law(run, tmp_path):
    assert float(run("accuracy", "laplace", "--epsilon", 0.5, "--bounds", 0, 10)[1]) == LaplaceMechanism(
        0.5, 0, 10
    ).accuracy(0.95)
    found = json.loads(run("accuracy", "geometric", "--epsilon", 0.5, "--n", 2, "--confidence", 0.9, "--json")[1])
    # P(|noise| > t) = 2 a^(t + 1) / (1 + a) with a = exp(-1/4): 11 is the first below a tenth.
    assert found == {"accuracy": GeometricMechanism(0.5, n=2).accuracy(0.9), "confidence": 0.9}
    decay = np.exp(-0.25)
    assert 2 * decay ** (found["accuracy"] + 1) / (1 + decay) <= 0.1 < 2 * decay ** found["accuracy"] / (1 + decay)
    assert "did you mean 'laplace'" in run("accuracy", "laplac", "--epsilon", 1)[2]
    assert run("accuracy", tmp_path / "no.npz")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ldp", "mean", "--epsilon", 1], "`--epsilon` must be left out for a release"),
        (["ldp", "mean", "--bounds", 0, 1], "`--bounds` must be left out for a release"),
        (["ldp", "mean", "--delta", 0.1], "`--delta` must be left out for mean"),
        (["ldp", "regression", "--delta", 0.1], "`--delta` must be left out without `--epsilon`"),
        (["ldp", "mean", "--task", "logistic"], "`--task` must be left out for mean"),
        (["ldp", "mean", "--categories", 3], "`--categories` must be left out for mean"),
        (["ldp", "mean", "--no-header"], "`--header` must be left out for a release"),
        (["accuracy", "--epsilon", 1], "`--epsilon` must be left out for a release"),
        (["accuracy", "--delta", 0.1], "`--delta` must be left out for a release"),
    ],
)
def test_what_a_release_says_itself_is_not_said_again(run, tmp_path, arguments, says):
    LaplaceMechanism(1.0, 0, 10).release([1.0, 2.0]).save(tmp_path / "r.npz")
    place = 2 if arguments[0] == "ldp" else 1
    status, out, err = run(*arguments[:place], tmp_path / "r.npz", *arguments[place:])
    assert (status, out) == (2, "")
    assert says in err


def test_the_number_of_categories_is_not_taken_from_those_that_are_there(run, tmp_path):
    (tmp_path / "codes.csv").write_text("0\n1\n1\n0\n")
    status, out, err = run("ldp", "histogram", tmp_path / "codes.csv", "--epsilon", 1)
    assert (status, out) == (2, "")
    assert "`--categories` must be given" in err


@pytest.mark.parametrize("name", ["r.npz", "r.csv", "r.csv.gz", "r.json", "r.json.gz", "bom.csv"])
def test_a_release_is_one_for_every_verb_however_it_is_written(run, tmp_path, name):
    """A release that is taken for a table has lost its noise, and a first line of JSON was a table without records."""
    LaplaceMechanism(1.0, 0, 10).release(np.arange(64.0)).save(tmp_path / name.replace("bom", "r"))
    if name == "bom.csv":
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (tmp_path / "r.csv").read_bytes())
    assert run("audit", tmp_path / name, tmp_path / name)[0] == 0
    assert run("accuracy", tmp_path / name)[0] == 0
    assert "`--epsilon` must be left out for a release" in run("ldp", "mean", tmp_path / name, "--epsilon", 1)[2]


@pytest.mark.parametrize("packed", [False, True])
def test_releases_and_outputs_are_read_from_standard_input(run, tmp_path, monkeypatch, packed):
    file = tmp_path / ("r.csv.gz" if packed else "r.npz")
    LaplaceMechanism(1.0, 0, 10).release(np.arange(64.0)).save(file)
    for words in (["accuracy", "-"], ["audit", "-", file, "--seed", 1], ["audit", file, "-", "--seed", 1]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
        found = run(*words)
        assert found == run(*(file if word == "-" else word for word in words))
        assert found[0] == 0
        if hasattr(os, "mkfifo"):
            pipe = tmp_path / "pipe"
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
            threading.Thread(target=pipe.write_bytes, args=(file.read_bytes(),), daemon=True).start()
            assert found == run(*(pipe if word == "-" else word for word in words))


@pytest.mark.parametrize("verb", [["release", "laplace"], ["ldp", "mean"]])
def test_a_table_of_numbers_has_records_and_is_text(run, tmp_path, verb):
    how = ["--epsilon", 1, "--bounds", 0, 5]
    (tmp_path / "age.csv").write_text("age\n")
    status, out, err = run(*verb, tmp_path / "age.csv", *how)
    assert (status, out) == (2, "")
    assert "`source` must hold at least one record" in err
    (tmp_path / "wide.csv").write_text("age\n1\n", encoding="utf-16")
    assert f"{tmp_path / 'wide.csv'}" in run(*verb, tmp_path / "wide.csv", *how)[2]
    (tmp_path / "age.csv").write_text("2019_1\n1\n2\n")
    assert run(*verb, tmp_path / "age.csv", *how)[0] == 0
    assert "got '2019_1' on line 1" in run(*verb, tmp_path / "age.csv", *how, "--no-header")[2]
    (tmp_path / "age.csv").write_text("2019\n")
    assert "got an empty table" in run(*verb, tmp_path / "age.csv", *how, "--header")[2]


def test_an_audit_rejects_too_little_noise_and_no_more(run, tmp_path):
    noise = np.random.default_rng(1)
    for name, scale in (("good", 1.0), ("bad", 0.3)):
        for mean in (0, 1):
            lines = "\n".join(map(str, mean + noise.laplace(scale=scale, size=20_000)))
            (tmp_path / f"{name}{mean}").write_text(f"output\n{lines}\n")
    how = ["--epsilon", 1, "--confidence", 0.999999]
    good, bad = (run("audit", tmp_path / f"{name}0", tmp_path / f"{name}1", *how) for name in ("good", "bad"))
    assert good[0] == bad[0] == 0
    assert good[1].startswith("epsilon is at least 0.")
    assert bad[1].startswith("rejected: epsilon is at least ")
    found = json.loads(run("audit", tmp_path / "bad0", tmp_path / "bad1", *how, "--json")[1])
    assert found["rejected"]
    assert 1 < found["epsilon"] < 1 / 0.3
    assert found["n_draws"][0] == 20_000 - 20_000 // 3
    (tmp_path / "short").write_text("1\n")
    assert "must hold as many outputs" in run("audit", tmp_path / "bad0", tmp_path / "short")[2]
    assert "`x` must hold at least 12 outputs, got 1" in run("audit", tmp_path / "short", tmp_path / "short")[2]
    assert "got an empty table" in run("audit", tmp_path / "bad0", tmp_path / "short", "--header")[2]


def test_an_audit_refuses_masked_outputs(run, tmp_path):
    for name, hidden in (("x", []), ("y", [3])):
        counts = np.ma.masked_array(np.zeros(20, dtype=int), np.isin(np.arange(20), hidden))
        privatize(counts, epsilon=1.0).save(tmp_path / f"{name}.npz")
    status, out, err = run("audit", tmp_path / "x.npz", tmp_path / "y.npz")
    assert (status, out) == (2, "")
    assert "`y` must have no masked cells, got 1 of them" in err


def test_a_release_is_the_same_in_every_format(run, tmp_path):
    release = privatize([[1, 2], [3, 4]], epsilon=1, n=2)
    release.save(tmp_path / "r.npz")
    for one, other in (("npz", "csv"), ("csv", "json"), ("json", "csv.gz"), ("csv.gz", "npz")):
        assert run("convert", tmp_path / f"r.{one}", "--out", tmp_path / f"r.{other}")[0] == 0
        assert Release.load(tmp_path / f"r.{other}") == release
    assert run("convert", tmp_path / "missing.npz")[0] == 2


def test_a_table_lists_its_names(run):
    status, out, _ = run("table")
    assert json.loads(run("table", "--json")[1]) == out.split()
    assert status == 0
    names = out.split()
    assert {"square", "4-8-8", "triangulated"} <= set(names)
    for name in names[:4]:
        assert run("table", name, "--max", 1)[0] == 0
