"""The command line on private data: releases, channels and factorizations, from files to files."""

import gzip
import io
import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from quincunx import cli
from quincunx.factorization import PoissonFactorization
from quincunx.privacy import Release, privatize

COUNT = ["count", "independent-sets"]


def test_privatize_writes_a_release_with_its_guarantee_inside(run, tmp_path):
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    source.write_text("3,0,7\n1,5,2\n")
    status, out, err = run("privatize", source, "--out", target, "--epsilon", "0.5", "--n", "2")
    assert (status, out) == (0, "")
    assert "epsilon=0.5" in err
    release = Release.load(target)
    assert release.values.shape == (2, 3)
    assert release.guarantee.epsilon <= 0.5


def test_privatize_refuses_labels_and_says_what_it_released(run, tmp_path):
    """The table that pandas writes by default has its index in the first column."""
    numbers = range(1, 157)
    frame = pd.DataFrame(np.zeros((156, 156), int), index=pd.Index(numbers, name="sender"), columns=numbers)
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    frame.to_csv(source)
    for choice in ([], ["--header"]):
        status, out, err = run("privatize", source, "--out", target, "--epsilon", 1, *choice)
        assert (status, out, target.exists()) == (2, "", False)
        assert err.count("\n") == 1
        assert "its first column looks like labels (sender, 1, 2, 3, ...)" in err
        assert "say `--index` where it holds labels, `--no-index` where it holds counts" in err
    status, out, err = run("privatize", source, "--out", target, "--epsilon", 1, "--index")
    assert (status, out) == (0, "")
    assert "156 x 156 counts; labels, published as they are: axis 0: sender (1, 2, 3, ...)" in err
    assert "protects changes of at most 1 in the sum of all counts" in err
    release = Release.load(target)
    assert release.shape == (156, 156)
    assert release.index == release.columns == tuple(numbers)
    frame.index.name = None  # as most frames are: a first line with nothing in its first field is one of labels
    frame.to_csv(source)
    assert run("privatize", source, "--out", target, "--epsilon", 1)[0] == 0
    assert Release.load(target).index == tuple(numbers)


@pytest.mark.parametrize("square", [False, True])
def test_declared_labels_are_those_of_the_release_whatever_the_data(run, tmp_path, square):
    """One unit more, of a label that nobody had, or of a number among words: the axes stay those of the files."""
    cells, people, things, target = (tmp_path / name for name in ("cells.csv", "people", "things", "out.json"))
    people.write_text("\ufeff4\n\n3\n2\n1\n", encoding="utf-8")
    things.write_text('"x, y"\n 1\n2\n3\n4\n')
    command = ["privatize", cells, "--long", "--epsilon", 60, "--out", target, *(["--square"] if square else [])]
    command += ["--labels", people, *([] if square else [things])]
    found = []
    for text in ("1,2,5\n", "1,2,5\n3,1,1\n", "3,1,1\n1,2,5\n"):
        cells.write_text(text)
        status, out, err = run(*command)
        assert (status, out) == (0, "")
        assert "; labels, declared: axis 0: (4, 3, 2, ...)" in err
        assert "unprotected" not in err
        found.append(Release.load(target))
    assert found[0].axes_ == found[1].axes_ == found[2].axes_
    assert found[0].index == (4, 3, 2, 1)
    assert found[0].columns == ((4, 3, 2, 1) if square else ("x, y", "1", "2", "3", "4"))
    assert (found[0].values.sum(), found[1].values.sum()) == (5, 6)
    assert (found[1].values == found[2].values).all()
    cells.write_text("1,2,5\n1,7,1\n")
    target.unlink()
    status, out, err = run(*command)
    assert (status, out, target.exists()) == (2, "", False)
    assert err == f"quincunx: `--labels` must hold every label of `counts`, got '7' in axis {0 if square else 1}\n"
    cells.write_text("1,2,5\n")
    wrong = [*command, things] if square else command[:-1]
    assert f"`--labels` must name {1 if square else 2} files, " in run(*wrong)[2]
    assert run(*command[: command.index("--labels")])[0] == 0
    bare = run(*command[: command.index("--labels")])[2]
    assert "which labels occur in axis 0 and axis 1 is published, unprotected" in bare
    wide = tmp_path / "wide.csv"
    wide.write_text("5,6\n7,8\n")
    assert run("privatize", wide, "--epsilon", 1, "--labels", people)[0] == 2


def test_what_goes_to_a_pipe_is_text_unless_asked(tmp_path, capsysbinary):
    source = tmp_path / "counts.csv"
    source.write_text("5,6\n7,8\n")
    assert cli.main(["privatize", str(source), "--epsilon", "50"]) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"# quincunx release {")
    assert out.endswith(b"}\n5,6\n7,8\n")
    assert cli.main(["privatize", str(source), "--epsilon", "50", "--format", "npz"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"PK")


def test_a_pipe_goes_from_counts_to_components(python, capsysbinary, monkeypatch):
    """Standard input and output, in all formats, without a file in between: archives between programs, text in one."""
    counts = b"a,b,c,d\n9,8,0,0\n7,9,1,0\n0,0,6,9\n1,0,8,7\n"
    release = ["privatize", "-", "--epsilon", "2", "--format"]
    told = b"4 x 4 counts; labels, published as they are: axis 1: (a, b, c, ...)"
    privatize = python(None, "-m", "quincunx", *release, "npz", text=False, stdin=subprocess.PIPE)
    released, said = privatize.communicate(counts, timeout=60)
    assert privatize.returncode == 0, said
    assert told in said
    command = ["-m", "quincunx", "factorize", "-", *SHORT, "--out", "-"]
    factorize = python(None, *command, text=False, stdin=subprocess.PIPE)
    model, said = factorize.communicate(released, timeout=60)
    assert factorize.returncode == 0, said
    assert PoissonFactorization.load(io.BytesIO(model)).n_iter_ == 40
    assert b"kept draws" in said
    for format in ("csv", "json"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(counts)))
        assert cli.main([*release, format]) == 0
        released, said = capsysbinary.readouterr()
        assert told in said
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(released)))
        assert cli.main(["factorize", "-", "--components", "2", "--inference", "vi", "--seed", "1"]) == 0
        assert b"PoissonFactorization, 2 components" in capsysbinary.readouterr().out


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.json", "r.json.gz", "r.npz"])
def test_the_suffix_of_a_file_is_its_format(run, tmp_path, name):
    source, target = tmp_path / "counts.csv", tmp_path / name
    source.write_text("3,0,7\n1,5,2\n")
    assert run("privatize", source, "--out", target, "--epsilon", 1)[0] == 0
    assert Release.load(target).shape == (2, 3)
    status, out, _ = run("factorize", target, *SHORT, "--json")
    assert (status, json.loads(out)["observed_cells"]) == (0, 6)
    if name == "r.csv":
        assert pd.read_csv(target, skiprows=1, header=None).to_numpy().tolist() == Release.load(target).values.tolist()
        source.write_text('city,#a,b\nx,1,2\n"#y",3,4\n')
        assert run("privatize", source, "--out", target, "--epsilon", 1)[0] == 0
        assert pd.read_csv(target, skiprows=1, index_col=0).equals(Release.load(target).to_pandas())


def test_packed_files_are_read_by_every_verb(run, tmp_path):
    def packed(name, text):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        return tmp_path / name

    assert run(*COUNT, "--edges", packed("edges.txt.gz", "a b\nb c\n")) == (0, "5\n", "")
    assert "2 inputs, 2 outputs" in run("leakage", packed("CHANNEL.CSV.GZ", "0.8,0.2\n0.4,0.6\n"))[1]
    bad = packed("bad.csv.gz", "0.8,0.3\n")
    assert f"{bad}, line 1" in run("leakage", bad)[2]
    users = packed("users.csv.gz", "0\n1\n1\n0\n")
    assert run("ldp", "histogram", users, "--categories", 2, "--epsilon", 1, "--draws", 50, "--seed", 1)[0] == 0
    (tmp_path / "torn.csv.gz").write_bytes(users.read_bytes()[:-6])
    for verb in (["leakage"], [*COUNT, "--edges"], ["ldp", "mean"]):
        status, out, _ = run(*verb, tmp_path / "torn.csv.gz")
        assert (status, out) == (2, "")


def test_what_says_nothing_of_its_noise_is_not_factorized_and_unpickling_is_not_advised(run, tmp_path):
    (tmp_path / "A.csv").write_text("1,2\n3,4\n")
    np.save(tmp_path / "A.npy", np.eye(2))
    np.savez(tmp_path / "A.npz", np.array([object()]))
    for name in ("A.csv", "A.npy", "A.npz"):
        status, out, err = run("factorize", tmp_path / name)
        assert (status, out) == (2, "")
        assert "pickle" not in err
        assert name in err


def test_standard_input_is_a_dash_for_every_verb(run, monkeypatch):
    def pipe(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    pipe("a b\nb c\n")
    assert run(*COUNT, "--edges", "-") == (0, "5\n", "")
    pipe("a b\nb c\n")
    assert run("spectrum", "--edges", "-", "--kirchhoff") == (0, "4\n", "")
    pipe("0.8,0.2\n0.4,0.6\n")
    assert "2 inputs, 2 outputs" in run("leakage", "-")[1]
    pipe("0.8,0.3\n")
    assert "standard input, line 1" in run("leakage", "-")[2]
    pipe("0\n1\n1\n0\n")
    assert run("ldp", "histogram", "-", "--categories", 2, "--epsilon", 1, "--draws", 50, "--seed", 1)[0] == 0
    pipe("A,B\n0,1\n1,1\n")
    assert run("bayesnet", "fit", "-", "--edges", "A:B", "--epsilon", 1)[1].startswith('{"mechanism"')


def test_factorize_prints_components_and_writes_them_for_other_programs(run, tmp_path):
    group = np.arange(12) % 2
    counts = np.random.default_rng(1).poisson(np.where(group[:, None] == np.arange(6) % 2, 9.0, 0.2))
    people, words = [f"p{i}" for i in range(12)], ["tea", "gin", "milk", "rum", "cocoa", "beer"]
    released = tmp_path / "released.csv"
    privatize(pd.DataFrame(counts, people, words), epsilon=3.0, insecure_seed=1).save(released)
    fit = [
        "factorize",
        released,
        "--components",
        "2",
        "--inference",
        "vi",
        "--seed",
        "3",
        "--iterations",
        "2000",
        "--chains",
        "1",
    ]
    status, out, _ = run(*fit, "--top", "3")
    shown = [line.split("  ")[-1].split(", ") for line in out.splitlines() if line.startswith("component ")]
    assert status == 0
    drinks = [{word.split()[0] for word in part} for part in shown]
    assert {"tea", "milk", "cocoa"} in drinks
    assert {"gin", "rum", "beer"} in drinks
    assert "component 0" not in run(*fit, "--top", "0")[1]
    tops = json.loads(run(*fit, "--json")[1])["top"]
    assert [len(part) for part in tops] == [5, 5]
    for name in ("components.csv", "components.csv.gz"):
        assert run(*fit, "--out", tmp_path / name)[0] == 0
        table = pd.read_csv(tmp_path / name, index_col="component")
        assert table.columns.tolist() == words
        assert table.shape == (2, 6)
    assert run(*fit, "--out", tmp_path / "factors.json")[0] == 0
    factors = json.loads((tmp_path / "factors.json").read_text())
    assert factors["labels"] == {"observation": people, "feature": words}
    np.testing.assert_allclose(factors["factors"]["components"], table, rtol=1e-12)
    assert np.shape(factors["factors"]["embedding"]) == (12, 2)
    status, out, err = run(*fit, "--model", "tensor", "--out", tmp_path / "tensor.csv")
    assert (status, out) == (2, "")
    assert "`--out` must be a .json or .npz file for a tensor" in err


def test_a_bad_line_of_counts_is_named_and_nothing_is_written(run, tmp_path):
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    source.write_text("3,0,7\n1,x,2\n")
    status, out, err = run("privatize", source, "--out", target, "--epsilon", "0.5")
    assert (status, out) == (2, "")
    assert "line 2" in err
    assert not target.exists()


def test_a_channel_is_averaged_over_the_symmetries_of_a_graph(run, tmp_path):
    channel = tmp_path / "channel.csv"
    channel.write_text("0.8,0.2\n0.4,0.6\n")
    status, out, err = run("leakage", channel, "--graph", "hamming:1,2", "--symmetrize")
    assert (status, err) == (0, "")
    assert "row_stochastic" in out
    assert run("leakage", channel, "--graph", "heptagon:7")[0] == 2
    assert run("leakage", tmp_path / "missing.csv")[0] == 2


# Factorizations.


@pytest.fixture
def released(tmp_path):
    """Return the path of a release of a square matrix of counts."""
    file = tmp_path / "released.npz"
    privatize([[(7 * i * j) % 5 for i in range(6)] for j in range(6)], epsilon=1.0, insecure_seed=1).save(file)
    return file


ASCENT = ["--components", "2", "--inference", "vi", "--iterations", "40", "--chains", "1", "--seed", "7"]
SHORT = ["--components", "2", "--warmup", "10", "--draws", "15", "--thin", "2", "--chains", "1", "--seed", "7"]


def test_a_release_is_factorized_and_the_model_kept(run, released, tmp_path):
    kept = tmp_path / "model.npz"
    status, out, err = run("factorize", released, *SHORT, "--out", kept)
    assert status == 0
    assert out.splitlines()[0] == "model            PoissonFactorization, 2 components"
    assert "kept draws       15" in out
    assert "effective draws" in err
    assert err.rstrip().endswith("raise `--draws`")
    model = PoissonFactorization.load(kept)
    assert model.draws_["embedding"].shape == (1, 15, 6, 2)
    status, out, err = run("factorize", released, "--resume", kept, "--out", kept, "--json")
    facts = json.loads(out)
    assert (status, facts["sweeps"], facts["kept_draws"], facts["observed_cells"]) == (0, 70, 30, 36)
    assert PoissonFactorization.load(kept).n_iter_ == 70
    for arguments, says in (
        (["--resume", kept, "--model", "topics"], "`--model` must be matrix, as in the file that goes on, got topics"),
        (["--resume", kept, "--model", "tensor"], "`--resume` must be a PoissonTensorFactorization written by"),
        (["--resume", kept, "--seed", "1"], "`--seed` must be left out with `--resume`"),
        (["--resume", kept, "--noise", "naive"], "`--resume` must be a model of the release in `source`"),
    ):
        status, out, err = run("factorize", released, *arguments)
        assert (status, out) == (2, "")
        assert says in err
    again = tmp_path / "again.npz"
    privatize([[1] * 6] * 6, epsilon=1.0, insecure_seed=1).save(again)
    assert "got one of other counts or noise" in run("factorize", again, "--resume", kept, "--out", kept)[2]
    assert PoissonFactorization.load(kept).n_iter_ == 70


OTHERS = {
    "topics": ("PoissonFactorization", 36),
    "directed": ("PoissonBlockmodel", 30),
    "undirected": ("PoissonBlockmodel", 15),
    "tensor": ("PoissonTensorFactorization", 36),
}


@pytest.mark.parametrize("model", OTHERS)
@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_other_models_are_named_by_a_word(run, released, model, inference):
    arguments = [*(ASCENT if inference == "vi" else SHORT), "--chains", "2", "--threads", "1", "--json"]
    status, out, _ = run("factorize", released, "--model", model, *arguments)
    facts = json.loads(out)
    assert status == 0
    assert (facts["model"], facts["observed_cells"]) == OTHERS[model]
    assert ("elbo" in facts) == (inference == "vi")


@pytest.mark.parametrize("dispersion", ["global", "row", "0.5"])
def test_counts_may_be_overdispersed(run, released, dispersion):
    arguments = ["--likelihood", "negative-binomial", "--dispersion", dispersion, "--json"]
    status, out, _ = run("factorize", released, *ASCENT, *arguments)
    assert status == 0
    found = json.loads(out)["dispersion"]
    assert found == 0.5 if dispersion == "0.5" else found > 0


def test_priors_may_be_learnt(run, released, tmp_path):
    kept = tmp_path / "model.npz"
    assert run("factorize", released, *SHORT, "--hyperpriors", "row", "--out", kept)[0] == 0
    shape, rates = PoissonFactorization.load(kept).priors_["embedding"]
    assert shape.size == 1 < len(set(rates[:, 0]))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--hyperpriors", "entry"], "--hyperpriors"),
        (["--likelihood", "negative-binomial", "--dispersion", "cell"], "`--dispersion` must be one of"),
        (["--likelihood", "negative-binomial", "--dispersion", "0"], "`--dispersion` must be in [1e-7, 1e7]"),
        (["--likelihood", "negative-binomial", "--dispersion", "-1E-3"], "in [1e-7, 1e7], got -0.001"),
        (["--dispersion", "0.5"], "`--dispersion` must be left out for Poisson counts"),
        (["--likelihood", "normal"], "--likelihood"),
        (["--inference", "vi", "--warmup", "9"], "`--warmup` must be left out for the inference vi"),
        (["--iterations", "9"], "`--iterations` must be left out for the inference mcmc"),
        (["--components", "4,x"], "argument --components: must be whole numbers such as 5 or 4,4,3, or 0=1, got"),
        (["--draws", "0"], "`--draws` must be at least 1, got 0"),
        (["--components", "0"], "`--components` must be at least 1, got 0"),
        (["--method", "published"], "`--method` must be one of"),
        (["--model", "graph"], "--model"),
        (["--resume", "nothing.npz"], "nothing.npz"),
        (["--out", "no/such/folder/model.npz"], "`--out` must be a file in a folder that can be written"),
        (["--out", ""], "`--out` must be a file in a folder that can be written"),
        (["--out", "."], "`--out` must be a file in a folder that can be written"),
        (["--threads", "0"], "`--threads` must be between 1 and 256"),
        (["--noise", "none"], "Negative values in data"),
    ],
)
def test_a_factorization_refuses_bad_arguments_in_one_line(run, released, arguments, says):
    status, out, err = run("factorize", released, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_what_is_no_release_is_not_factorized(run, tmp_path):
    (tmp_path / "counts.csv").write_text("1,2\n3,4\n")
    assert run("factorize", tmp_path / "counts.csv")[:2] == (2, "")
    assert run("factorize", tmp_path / "nothing.npz")[:2] == (2, "")


def test_an_interrupted_factorization_keeps_what_it_has(run, released, tmp_path, monkeypatch):
    def stop(sweep, statistics):
        if sweep == 30:
            raise KeyboardInterrupt

    kept = tmp_path / "model.npz"
    fit = PoissonFactorization.fit
    monkeypatch.setattr(PoissonFactorization, "fit", lambda self, data, **_: fit(self.set_params(callback=stop), data))
    assert run("factorize", released, *SHORT, "--out", kept) == (130, "", "quincunx: interrupted\n")
    monkeypatch.undo()
    assert PoissonFactorization.load(kept).n_iter_ == 30


def test_labels_with_a_number_sign_and_numbers_beyond_doubles_are_read_whole(run, tmp_path):
    source = tmp_path / "records.csv"
    source.write_text("C#\nC#\n#\nC\n")
    labels = ["--categories", "C|C#|#", "--epsilon", 40]
    status, out, _ = run("release", "generalized-randomized-response", source, *labels)
    assert (status, out.splitlines()[1:]) == (0, ["C#", "C#", "#", "C"])
    source.write_text("31\n12#3\n")
    assert run("release", "laplace", source, "--epsilon", 1, "--bounds", 0, 40)[0] == 2
    large = [2**53 + 1, 2**53 + 2, -(2**61) - 1]
    source.write_text("".join(f"{number}\n" for number in large))
    status, out, _ = run("release", "geometric", source, "--epsilon", 40, "--n", 1)
    assert (status, [int(word) for word in out.splitlines()[1:]]) == (0, large)


def test_tables_that_are_not_a_number_of_each_user_are_refused(run, tmp_path):
    source = tmp_path / "records.csv"
    for text, words in [
        ("id,value\n1,3.5\n2,4.5\n", "`source` must have one column"),
        ("3,5\n4,5\n", "`source` must have one column"),
        ("", "`source` must hold at least one record"),
        ("\n\n", "`source` must hold at least one record"),
    ]:
        source.write_text(text)
        status, out, err = run("ldp", "mean", source, "--epsilon", 1, "--bounds", 0, 10)
        assert (status, out) == (2, "")
        assert words in err
    pd.Series([3.5, 4.5]).to_csv(source)  # with its index, and no name
    status, out, _ = run("release", "laplace", source, "--epsilon", 1000, "--bounds", 0, 10)
    assert (status, len(out.splitlines())) == (0, 3)
