"""Labels of categories go in, and come back in releases, coordinates, summaries and files."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
from tests.saved import reread

from quincunx import ldp
from quincunx.__main__ import main
from quincunx.leakage import Channel
from quincunx.privacy import (
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)

LABELS = {"words": ["tea", "coffee", "mate"], "numbers": [7, 1, 0], "floats": [0.5, -2.0, 1.5]}
FEW = {"n_chains": 2, "n_warmup": 100, "n_draws": 100, "random_state": 0}
NAMES = lambda value: None if isinstance(value, np.ndarray) else str(value)  # noqa: E731
CODES = np.repeat([0, 1, 2], [70, 20, 10])

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")


def pairs():
    """Return mechanisms with labels beside the same ones with codes, the codes of data, and the labels."""
    for labels in LABELS.values():
        for made in (
            lambda k: GeneralizedRandomizedResponse(1.0, k),
            lambda k: UnaryEncoding(1.0, k),
            lambda k: UnaryEncoding(1.0, k, "symmetric"),
        ):
            yield made(labels), made(3), CODES, np.array(labels)
    for labels in (["no", "yes"], [5, 3], [True, False]):
        yield RandomizedResponse(1.0, categories=labels), RandomizedResponse(1.0), CODES % 2, np.array(labels)


@pytest.mark.parametrize(("mechanism", "plain", "codes", "labels"), list(pairs()), ids=NAMES)
def test_a_mechanism_with_labels_is_the_one_with_codes(mechanism, plain, codes, labels):
    x = labels[codes]
    assert mechanism.categories == tuple(labels.tolist())
    assert mechanism.guarantee == plain.guarantee
    assert eval(repr(mechanism)) == mechanism != plain
    expected = plain.release(codes, insecure_seed=1)
    rows = isinstance(mechanism, UnaryEncoding)
    series = pandas.Series(x, index=np.arange(len(x)) + 5)
    for data in (x, x.tolist(), series, series.astype("category")):
        release = mechanism.release(data, insecure_seed=1)
        decoded = expected.values if rows else labels[expected.values]
        assert release.values.tolist() == decoded.tolist()
        assert release.noise == mechanism.noise != expected.noise
        assert release.noise.categories == tuple(labels.tolist())
        assert release.to_pandas().index[0] == (5 if data is not x and not isinstance(data, list) else 0)
    if rows:
        assert release.columns == tuple(labels.tolist())
        backwards = release.to_pandas()[labels[::-1].tolist()]
        assert mechanism.estimate(backwards).tolist() == plain.estimate(expected).tolist()
    assert mechanism.estimate(release).tolist() == plain.estimate(expected).tolist()
    likelihood = mechanism.log_likelihood(release, x)
    assert likelihood.tolist() == plain.log_likelihood(expected, codes).tolist()
    for file_format in ("npz", "json", "csv"):
        assert reread(release, format=file_format) == release
    with pytest.raises(ValueError, match=r"`x` must hold categories among .*got .* at index \(1,\)"):
        mechanism.release([x[0], "nobody's"])


@pytest.mark.parametrize("labels", [["", "x"], ["# a", "b,c"], ['"', "\n"], ["\u00e9", "\U0001f375"]])
def test_odd_labels_are_read_back_or_refused(labels):
    release = GeneralizedRandomizedResponse(9.0, labels).release(labels, insecure_seed=1)
    for file_format in ("npz", "json", "csv"):
        if file_format == "csv" and "" in labels:
            with pytest.raises(ValueError, match="empty label"):
                reread(release, format=file_format)
            continue
        assert reread(release, format=file_format) == release


def test_channels_of_mechanisms_have_their_labels():
    for mechanism in (GeneralizedRandomizedResponse(1.0, ["a", "b", "c"]), UnaryEncoding(1.0, ["a", "b", "c"])):
        assert Channel.from_mechanism(mechanism).to_pandas().index.tolist() == ["a", "b", "c"]
    assert Channel.from_mechanism(RandomizedResponse(1.0, categories=["n", "y"])).to_pandas().columns.tolist() == [
        "n",
        "y",
    ]


@pytest.mark.parametrize(("mechanism", "plain", "codes", "labels"), list(pairs())[:9], ids=NAMES)
def test_a_histogram_has_the_labels_as_coordinates(mechanism, plain, codes, labels, tmp_path):
    release = mechanism.release(labels[codes], insecure_seed=2)
    expected = ldp.HistogramModel(**FEW).fit(plain.release(codes, insecure_seed=2))
    model = ldp.HistogramModel(**FEW).fit(release)
    assert model.draws_["theta"].tolist() == expected.draws_["theta"].tolist()
    assert list(model.summary()) == [f"theta[{label}]" for label in labels.tolist()]
    tree = model.to_datatree()
    assert tree["posterior"]["theta"].coords["category"].values.tolist() == labels.tolist()
    each = model.log_likelihoods(release)
    assert each.tolist() == expected.log_likelihoods(plain.release(codes, insecure_seed=2)).tolist()
    raw = release.to_pandas()
    assert model.log_likelihoods(raw, mechanism=mechanism).tolist() == each.tolist()
    model.save(tmp_path / "model")
    loaded = ldp.HistogramModel.load(tmp_path / "model")
    assert loaded.summary() == model.summary()
    for given in (ldp.HistogramModel(mechanism, **FEW), ldp.HistogramModel(plain, categories=labels, **FEW)):
        told = raw if given.categories is None else plain.release(codes, insecure_seed=2)
        assert given.fit(told).summary() == model.summary()
    with pytest.raises(ValueError, match="`categories` must be those of the mechanism"):
        ldp.HistogramModel(categories=["x", "y", "z"]).fit(release)
    with pytest.raises(ValueError, match="same categories throughout"):
        ldp.HistogramModel().fit([release, plain.release(codes, insecure_seed=2)])


def test_a_histogram_without_noise_has_the_categories_that_are_declared():
    model = ldp.HistogramModel(categories=["tea", "coffee", "mate", "water"], **FEW).fit(["tea", "mate", "tea"])
    assert list(model.summary()) == ["theta[tea]", "theta[coffee]", "theta[mate]", "theta[water]"]
    assert ldp.HistogramModel(categories=4, **FEW).fit([0, 1, 1]).posterior_mean_["theta"].shape == (4,)
    with pytest.raises(ValueError, match=r"`released` must hold categories among .*got 'cola' at index \(1,\)"):
        ldp.HistogramModel(categories=["tea", "coffee"]).fit(["tea", "cola"])


def test_column_sums_have_labels_too():
    mechanism = UnaryEncoding(2.0, ["tea", "coffee", "mate"])
    sums = mechanism.release(["tea"] * 50, insecure_seed=1).values.sum(axis=0)
    model = ldp.HistogramModel(mechanism, data="counts", **FEW).fit(sums, n=50)
    assert list(model.summary()) == ["theta[tea]", "theta[coffee]", "theta[mate]"]


def test_models_of_bits_take_labels():
    labels, codes = np.array(["no", "yes"]), CODES % 2
    mechanism, plain = RandomizedResponse(2.0, categories=["no", "yes"]), RandomizedResponse(2.0)
    release, expected = mechanism.release(labels[codes], insecure_seed=1), plain.release(codes, insecure_seed=1)
    model, other = (ldp.BernoulliModel(random_state=0).fit(told) for told in (release, expected))
    assert model.posterior_mean_ == other.posterior_mean_
    assert model.log_likelihoods(release).tolist() == other.log_likelihoods(expected).tolist()
    x = np.random.default_rng(0).normal(size=(100, 2))
    fits = [ldp.LogisticRegression(**FEW).fit(x, y) for y in (release, expected)]
    assert fits[0].coef_.tolist() == fits[1].coef_.tolist()
    assert fits[0].classes_.tolist() == ["no", "yes"]
    assert set(fits[0].predict(x)) <= {"no", "yes"}


def test_calibration_simulates_what_a_mechanism_with_labels_tells():
    mechanism = GeneralizedRandomizedResponse(2.0, ["tea", "coffee"])
    model = ldp.HistogramModel(mechanism, n_chains=1, n_warmup=50, n_draws=50)
    found = ldp.calibration(model, n_repeats=10, n=30, rng=1)
    assert found.distances
    assert found in {found}
    assert found != replace(found)  # of arrays, which no truth value compares


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("age\n39\n50\n38\n", ["mean"]),
        (",age\n0,39\n1,50\n2,38\n", ["mean"]),
        ("39\n50\n38\n", ["mean"]),
        ("age\r\n39\r\n50\r\n38\r\n", ["mean"]),
    ],
)
def test_a_line_of_names_may_come_first(text, arguments, tmp_path, capsys):
    file = tmp_path / "age.csv"
    file.write_bytes(text.encode())
    settings = ["--epsilon", "1", "--bounds", "0", "100", "--draws", "30", "--seed", "1", "--json"]
    status = main(["ldp", *arguments, str(file), *settings])
    out = capsys.readouterr().out
    assert status == 0
    (tmp_path / "plain.csv").write_text("39\n50\n38\n")
    main(["ldp", *arguments, str(tmp_path / "plain.csv"), *settings])
    assert out == capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "categories"),
    [
        ("tea\nmate\ntea\n", "tea|cola|mate"),
        ("drink\ntea\nmate\ntea\n", "tea|cola|mate"),
        (',drink\n0,tea\n1,"mate"\n2, tea\n', "tea|cola|mate"),
        ("tea\nmate\ntea\n", "file"),
        ("0\n2\n0\n", "3"),
        ("drink\n0\n2\n0\n", "3"),
    ],
)
def test_histograms_of_words(text, categories, tmp_path, capsys):
    if categories == "file":
        (tmp_path / "labels.csv").write_text("tea\ncola\nmate\n")
        categories = str(tmp_path / "labels.csv")
    (tmp_path / "told.csv").write_text(text)
    settings = ["--epsilon", "3", "--draws", "30", "--seed", "1"]
    assert main(["ldp", "histogram", str(tmp_path / "told.csv"), *settings, "--categories", categories]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    (tmp_path / "codes.csv").write_text("0\n2\n0\n")
    assert main(["ldp", "histogram", str(tmp_path / "codes.csv"), *settings, "--categories", "3"]) == 0
    expected = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[1:] for line in lines] == [line.split()[1:] for line in expected]
    names = ["0", "1", "2"] if categories == "3" else ["tea", "cola", "mate"]
    assert [line.split()[0] for line in lines] == [f"theta[{name}]" for name in names]


@pytest.mark.parametrize(
    ("text", "categories", "found"),
    [
        ("tea\ncoffee\n", "tea|mate", "got 'coffee' at index (1,)"),
        ("tea\ncoffee\n", None, "numbers separated by commas, or labels declared"),
        ("0\n5\n", "3", "got 5 at index (1,)"),
        ("cola,beer\n1,0\n", "tea|mate", "each of the categories ['tea', 'mate'], got none for ['tea', 'mate']"),
        ("tea,mate\n7,1,0\n", "tea|mate", "`source` must have a name for each of 3 columns, got 2 names"),
        ("mate,cola\n1,0\n", "tea|mate", "a column for each of the categories ['tea', 'mate'], got none for ['tea']"),
        ("tea,tea,mate\n1,0,0\n", "tea|mate", "categories ['tea', 'mate'], got several for ['tea']"),
        ("tea\n", "tea", "at least two categories"),
    ],
)
def test_what_is_not_declared_is_refused(text, categories, found, tmp_path, capsys):
    (tmp_path / "told.csv").write_text(text)
    more = [] if categories is None else ["--categories", categories]
    assert main(["ldp", "histogram", str(tmp_path / "told.csv"), "--epsilon", "1", *more]) == 2
    assert found in capsys.readouterr().err


def test_rows_of_bits_go_by_the_labels_above_them(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("tea,mate\n1,0\n1,1\n0,0\n")
    (tmp_path / "b.csv").write_text(",mate,tea\n0,0,1\n1,1,1\n2,0,0\n")
    told = []
    for name in ("a.csv", "b.csv"):
        settings = ["--epsilon", "1", "--draws", "30", "--seed", "1", "--categories", "tea|mate"]
        assert main(["ldp", "histogram", str(tmp_path / name), *settings]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


def test_sums_and_reports_go_by_their_labels():
    mechanism = SubsetSelection(2.0, list("abcde"))
    x = np.array(list("abc"))[np.repeat([0, 1, 2], [700, 200, 100])]
    frame = pandas.DataFrame(np.asarray(mechanism.release(x, insecure_seed=1).values), columns=list("abcde"))
    plain = ldp.HistogramModel(data="counts", random_state=0).fit(frame, mechanism=mechanism).posterior_mean_["theta"]
    turned = frame[list("edcba")]
    for given, how in ((turned, {}), (turned.sum(), {"n": 1000}), (frame.sum(), {"n": 1000})):
        found = ldp.HistogramModel(data="counts", random_state=0).fit(given, mechanism=mechanism, **how)
        np.testing.assert_array_equal(found.posterior_mean_["theta"], plain)
    unary = UnaryEncoding(2.0, ["a", "b", "c"])
    sums = pandas.Series({"a": 30.0, "b": 50.0, "c": 20.0})
    told = [ldp.HistogramModel(data="counts", random_state=0).fit(s, mechanism=unary, n=60) for s in (sums, sums[::-1])]
    assert told[0].posterior_mean_["theta"].tolist() == told[1].posterior_mean_["theta"].tolist()
    with pytest.raises(ValueError, match="must have the columns"):
        ldp.HistogramModel(data="counts").fit(sums.rename({"a": "z"}), mechanism=unary, n=60)
    # Codes are labels of their own; names that are none of them are a user's, in the order of the codes.
    codes = UnaryEncoding(2.0, 3)
    by_code = pandas.Series([20.0, 50.0, 30.0], index=[2, 1, 0])
    named = pandas.Series([30.0, 50.0, 20.0], index=["x", "y", "z"])
    same = [ldp.HistogramModel(data="counts", random_state=0).fit(s, mechanism=codes, n=60) for s in (by_code, named)]
    assert [m.posterior_mean_["theta"].tolist() for m in same] == [told[0].posterior_mean_["theta"].tolist()] * 2


def test_bits_of_other_labels_are_not_pooled():
    answers = ["yes"] * 90 + ["no"] * 10
    orders = [("no", "yes"), ("yes", "no"), ("left", "right")]
    released = [
        RandomizedResponse(8.0, categories=order).release([order[word == "yes"] for word in answers])
        for order in orders
    ]
    how = {"random_state": 0}
    plain = ldp.BernoulliModel(**how).fit([released[0], released[0][:50]])
    assert plain.posterior_mean_["probability"] > 0.7
    assert reread(plain).posterior_mean_ == plain.posterior_mean_
    for other in released[1:]:
        model = ldp.BernoulliModel(**how)
        for call in (
            lambda model=model, other=other: model.fit([released[0], other]),
            lambda model=model, other=other: model.fit({"a": released[0], "b": other}),
            lambda model=model, other=other: model.fit(model.summarize(released[0]) + model.summarize(other)),
            lambda other=other: ldp.BernoulliModel(**how).fit(released[0]).partial_fit(other),
        ):
            with pytest.raises(ValueError, match="`released` must have the same categories in the same order"):
                call()
    mechanism = GaussianMechanism(50.0, 1e-3, sensitivity=1.0)
    x = mechanism.release(np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2)))
    with pytest.raises(ValueError, match="`y` must have the same labels throughout"):
        ldp.LogisticRegression(**how).fit([x, x], [released[0], released[1]])


def test_releases_with_other_columns_are_not_pooled():
    mechanism = GaussianMechanism(sigma=0.1, sensitivity=20.0)
    frame = pandas.DataFrame(np.random.default_rng(0).normal([3, -3], 0.1, (50, 2)), columns=["a", "b"])
    one, other = mechanism.release(frame), mechanism.release(frame[["b", "a"]])
    for given in ([one, other], {"x": one, "y": other}):
        with pytest.raises(ValueError, match="`released` must have the same columns in the same order"):
            ldp.MultivariateNormalModel(random_state=0).fit(given)
    answers = mechanism.release(frame["a"] + frame["b"])
    with pytest.raises(ValueError, match="`x` must have the same columns in the same order"):
        ldp.LinearRegression(random_state=0).fit([one, other], [answers, answers])
