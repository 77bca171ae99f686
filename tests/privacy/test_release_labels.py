"""What labelled tables, sparse arrays and networks become: releases that keep the names of their rows and columns."""

import datetime
import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from tests.saved import reread

from quincunx import _tables
from quincunx.errors import TooLargeError
from quincunx.privacy import (
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    Release,
    SubsetSelection,
    UnaryEncoding,
    privatize,
)


@pytest.fixture
def table():
    index = pd.Index(["Ann", "Bob"], name="person")
    return pd.DataFrame({"tea": [3, 1], "coffee": [0, 7], "milk": [2, 2]}, index=index)


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (GeometricMechanism(1.0, n=1), [3, 0, 5]),
        (LaplaceMechanism(1.0, lower=0, upper=9), [3.0, 0.5, 5.0]),
        (GeneralizedRandomizedResponse(1.0, categories=["a", "b", "c"]), ["c", "a", "b"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_released_and_what_is_private_have_the_same_labels(mechanism, values):
    private = pd.Series(values, index=["Ann", "Bob", "Cid"])
    release = mechanism.release(private)
    expected = mechanism.log_likelihood(release.values, np.asarray(values))
    for given in (private, private.to_numpy(), private.reset_index(drop=True), private.iloc[:1]):
        wanted = expected if len(given) == 3 else mechanism.log_likelihood(release.values, np.asarray(values)[:1])
        assert np.array_equal(mechanism.log_likelihood(release, given), wanted)
    for other in (private[::-1], private.rename({"Bob": "Eve"})):
        with pytest.raises(ValueError, match="`z` must have the labels of `x`, in their order"):
            mechanism.log_likelihood(release, other)


def test_scores_have_labels_of_their_own():
    mechanism = ExponentialMechanism(1.0, sensitivity=1.0)
    scores = pd.DataFrame([[0.0, 2.0], [1.0, 0.0]], index=["Ann", "Bob"], columns=["tea", "milk"])
    chosen = pd.Series([1, 0], index=["one", "other"])
    found = mechanism.log_likelihood(chosen, scores.loc["Ann"])
    assert np.array_equal(found, mechanism.log_likelihood([1, 0], [0.0, 2.0]))


def test_levels_and_masks_of_cells_have_the_labels_of_the_counts(table):
    levels = pd.DataFrame(np.arange(1.0, 7.0).reshape(2, 3), index=table.index, columns=table.columns)
    people = pd.Series([3.0, 0.5], index=table.index)
    for given in (
        levels,
        levels.to_numpy(),
        levels.reset_index(drop=True),
        levels.loc["Ann"],
        people.to_frame("level"),
    ):
        alphas = privatize(table, epsilon=given).alpha
        assert np.allclose(alphas, np.broadcast_to(np.exp(-np.asarray(given)), (2, 3)))
    domain = [["Bob", "Cid", "Ann"], None]
    assert privatize(
        table, epsilon=people.reindex(domain[0], fill_value=1.0).to_frame(), domain=domain
    ).alpha.shape == (3, 3)
    for other in (levels[::-1], levels[["milk", "tea", "coffee"]], levels.loc["Ann"][::-1], people[::-1].to_frame()):
        with pytest.raises(ValueError, match=r"`epsilon` must have the labels of `counts`, in their order"):
            privatize(table, epsilon=other)
    with pytest.raises(ValueError, match=r"`epsilon` must have the labels"):
        privatize(table[["tea", "milk"]], epsilon=people)  # goes along the columns
    with pytest.raises(ValueError, match=r"`epsilon` must have the labels"):
        privatize(table, epsilon=people.to_frame(), domain=domain)
    release, hidden = privatize(table, epsilon=1.0), levels > 4
    assert np.array_equal(release.masked(hidden).values.mask, hidden.to_numpy())
    with pytest.raises(ValueError, match=r"`mask` must have the labels of the release, in their order"):
        release.masked(hidden[::-1])


def test_a_release_of_a_data_frame_keeps_index_and_columns(table):
    release = privatize(table, epsilon=1.0, insecure_seed=1)
    assert (release.index, release.columns) == (("Ann", "Bob"), ("tea", "coffee", "milk"))
    frame = release.to_pandas()
    assert (frame.to_numpy() == release.values).all()
    pd.testing.assert_index_equal(frame.index, table.index)
    assert frame.columns.tolist() == table.columns.tolist()
    assert "person" in release._repr_html_()
    assert reread(release) == release
    assert reread(release).to_pandas().equals(frame)


def test_a_mask_picks_by_its_labels_or_is_refused(table):
    release = privatize(table, epsilon=1.0)
    ann = pd.Series([False, True], index=["Bob", "Ann"])
    assert release[ann[["Ann", "Bob"]]].index == release[ann.to_numpy()[::-1]].index == ("Ann",)
    cold = pd.Series([True, False, False], index=["milk", "tea", "coffee"])
    assert release[:, cold[["tea", "coffee", "milk"]]].columns == ("milk",)
    for index in (
        ann,
        (ann, slice(None)),
        (slice(None), cold),
        (None, slice(None), cold),
        (table > 1)[["milk", "tea", "coffee"]],
    ):
        with pytest.raises(ValueError, match="`index` must have the labels of the release, in their order"):
            release[index]


def test_scales_with_labels_are_those_of_the_columns_or_refused(table):
    mechanism = GaussianMechanism(sigma=1.0, radius=1.0, dimension=3, scales=table.std() + 1)
    assert mechanism.release(table).shape == mechanism.release(table.to_numpy()).shape == (2, 3)
    for data in (table[["milk", "tea", "coffee"]], table.loc["Ann", ["milk", "tea", "coffee"]]):
        with pytest.raises(ValueError, match="`x` must have the labels of `scales`, in their order"):
            mechanism.release(data)


def test_counts_and_shares_of_categories_go_by_their_labels():
    encoding = UnaryEncoding(2.0, ["tea", "coffee", "mate"])
    counts = pd.Series([5, 6, 7], index=["mate", "tea", "coffee"])
    assert (encoding.estimate_from_counts(counts, 40) == encoding.estimate_from_counts([6, 7, 5], 40)).all()
    law = SubsetSelection(2.0, encoding.categories).noise
    assert (law.variances(counts / 18, 40) == law.variances(np.array([6, 7, 5]) / 18, 40)).all()
    with pytest.raises(ValueError, match="`counts` must have the columns"):
        encoding.estimate_from_counts(counts.rename({"mate": "cola"}), 40)


def test_labels_are_part_of_what_makes_releases_equal(table):
    release = privatize(table, epsilon=1.0, insecure_seed=1)
    bare = privatize(table.to_numpy(), epsilon=1.0, insecure_seed=1)
    assert (bare.index, bare.columns) == (None, None)
    assert (release.values == bare.values).all()
    assert release != bare
    assert bare.to_pandas().columns.tolist() == [0, 1, 2]


def test_the_default_index_is_no_label_but_others_are():
    assert privatize(pd.Series([1, 2]), epsilon=1.0).index is None
    assert privatize(pd.Series([1, 2], index=[0, 1]), epsilon=1.0).index == (0, 1)
    assert privatize(pd.Series([1, 2], index=pd.RangeIndex(1, 3)), epsilon=1.0).index == (1, 2)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2020-01-31", periods=3, freq="ME"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["letter", "number"]),
        pd.Index([1.5, 2.5, 3.5], name="dose"),
        pd.Index([10, 20, 30]),
        pd.Index([True, False, True]),
        pd.Index(pd.Categorical(["x", "y", "z"])),
        pd.Index([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None]),
    ],
    ids=lambda index: type(index).__name__ + str(index.dtype),
)
def test_labels_of_all_kinds_come_back_from_a_file(index):
    release = privatize(pd.Series([1, 2, 3], index=index), epsilon=1.0)
    assert release.to_pandas().index.tolist() == index.tolist()
    assert release.to_pandas().index.names == index.names
    loaded = reread(release)
    assert loaded == release
    assert loaded.to_pandas().index.tolist() == index.tolist()


def test_ends_of_lines_in_labels_come_back_from_a_table(tmp_path):
    words, path = ["a\rb", "c\nd", "e\r\nf", "\r", "\n"], tmp_path / "release.csv"
    rows = privatize(pd.Series(range(5), index=words), epsilon=1.0)
    for release in (rows, GeneralizedRandomizedResponse(9.0, words).release(words)):
        release.save(path)
        assert Release.load(path) == release


def test_labels_without_a_form_in_json_become_strings_in_a_file():
    index = pd.Index([frozenset({1}), float("nan")], dtype=object)
    assert reread(privatize(pd.Series([1, 2], index=index), epsilon=1.0)).index == ("frozenset({1})", "nan")


def test_nullable_columns_of_pandas_are_counts(table):
    assert privatize(table.convert_dtypes(), epsilon=1.0, insecure_seed=1) == privatize(
        table, epsilon=1.0, insecure_seed=1
    )
    with pytest.raises(ValueError, match=r"`counts` must hold whole numbers of at least 0, got nan at index \(1,\)"):
        privatize(pd.Series([1, None], dtype="Int64"), epsilon=1.0)
    with pytest.raises(TypeError, match="`counts`"):
        privatize(pd.DataFrame({"name": ["Ann"], "tea": [1]}), epsilon=1.0)


def test_a_data_array_keeps_dims_and_coordinates():
    array = xr.DataArray(np.ones((2, 3, 2), int), dims=("city", "month", "sex"), coords={"city": ["Rome", "Oslo"]})
    release = privatize(array, epsilon=1.0)
    assert [axis.name for axis in release.axes_] == ["city", "month", "sex"]
    assert release.index == ("Rome", "Oslo")
    assert release.columns is None
    assert reread(release) == release
    with pytest.raises(ValueError, match="one or two axes"):
        release.to_pandas()


MECHANISMS = [
    (GeometricMechanism(1.0, lower=0, upper=1), 0),
    (DiscreteGaussianMechanism(variance=4.0, lower=0, upper=1), 0),
    (LaplaceMechanism(1.0, lower=0.0, upper=1.0), 0),
    (GaussianMechanism(1.0, 1e-6, radius=1, dimension=2), 0),
    (RandomizedResponse(1.0), 0),
    (GeneralizedRandomizedResponse(1.0, 3), 0),
    (UnaryEncoding(1.0, 3), 0),
    (ExponentialMechanism(1.0, sensitivity=1.0), 1),
]


@pytest.mark.parametrize(("mechanism", "fewer"), MECHANISMS, ids=lambda value: type(value).__name__)
def test_every_mechanism_keeps_labels(mechanism, fewer):
    frame = pd.DataFrame([[0, 1], [1, 1], [0, 0]], index=list("abc"), columns=["x", "y"])
    release = mechanism.release(frame)
    assert release.index == ("a", "b", "c")
    assert release.columns == (None if fewer else ("x", "y"))


def test_masks_and_levels_keep_labels(table):
    release = privatize(table, epsilon=1.0).masked(np.eye(2, 3, dtype=bool))
    assert release.columns == ("tea", "coffee", "milk")
    assert np.isnan(release.to_pandas().to_numpy()[0, 0])
    assert reread(release) == release
    assert privatize(table, epsilon=[[1.0], [2.0]]).index == ("Ann", "Bob")
    assert privatize(table, epsilon=1.0, record_bound=5).index == ("Ann", "Bob")


def test_labels_that_do_not_fit_are_refused_in_a_file(table, tmp_path):
    path = tmp_path / "release.npz"
    privatize(table, epsilon=1.0).save(path)
    with np.load(path) as arrays:
        header, values = json.loads(str(arrays["release"])) | {"format": 1}, arrays["values"]
    del header["checksum"]  # that of the whole does not fit, either
    np.savez(path, values=values[:1], release=np.array(json.dumps(header)))
    with pytest.raises(ValueError, match="its labels do not fit"):
        Release.load(path)


# Sparse arrays and networks.


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_a_sparse_array_is_released_whole_zeros_too(kind):
    counts = np.zeros((40, 50), int)
    counts[3, 4] = 9
    release = privatize(kind(counts), epsilon=1.0, insecure_seed=1)
    assert release == privatize(counts, epsilon=1.0, insecure_seed=1)
    assert (release.values[counts == 0] != 0).mean() > 0.3


def test_entries_of_one_place_in_a_sparse_array_are_all_counted():
    calls = scipy.sparse.coo_array((np.ones(300, dtype=np.uint8), np.tile([[0], [1]], 300)), shape=(2, 2))
    for table in (calls, scipy.sparse.csr_array((calls.data, calls.col, [0, 300, 300]), shape=(2, 2))):
        assert privatize(table, epsilon=50.0).values.tolist() == [[0, 300], [0, 0]]


def test_a_sparse_array_that_memory_cannot_hold_is_refused():
    with pytest.raises(TooLargeError, match="`counts` must fit into memory as a dense array") as refused:
        privatize(scipy.sparse.csr_array((10**9, 10**9), dtype=int), epsilon=1.0)
    assert refused.value.needed == 24 * 10**18


def test_networks_are_released_as_their_counts():
    messages = nx.MultiDiGraph([("Ann", "Bob"), ("Ann", "Bob"), ("Bob", "Cy")])
    release = privatize(messages, epsilon=50.0)
    assert release.values.tolist() == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert release.index == release.columns == ("Ann", "Bob", "Cy")
    friends = nx.Graph()
    friends.add_weighted_edges_from([("Ann", "Bob", 5), ("Cy", "Ann", 2)])
    assert privatize(friends, epsilon=50.0).values.tolist() == [[0, 5, 2], [0, 0, 0], [0, 0, 0]]
    friends["Ann"]["Bob"]["weight"] = 0.5
    with pytest.raises(ValueError, match="whole numbers"):
        privatize(friends, epsilon=1.0)


def test_large_weights_of_networks_are_exact_or_refused():
    calls = nx.MultiGraph([("Ann", "Bob", {"weight": weight}) for weight in (2**53, 1)])
    assert privatize(calls, epsilon=50.0).values.tolist() == [[0, 2**53 + 1], [0, 0]]
    for weight in (2**63, 2**70, 1e300, float("inf")):
        calls["Ann"]["Bob"][0]["weight"] = weight
        with pytest.raises((TypeError, ValueError), match="whole numbers"):
            privatize(calls, epsilon=1.0)
    few = nx.Graph([("Ann", "Bob", {"weight": 2**53 + 1}), ("Bob", "Cy", {"weight": 0.5})])
    with pytest.raises(ValueError, match=r"whole numbers of at most 2\*\*53 in size beside floats"):
        _tables.array(few, "counts")


# --- declared labels --------------------------------------------------------------------------------------------------


def of_series(cells):
    return pd.Series({row: count for (row, _), count in cells.items()})


def of_frame(cells):
    rows, columns = ([*dict.fromkeys(cell[place] for cell in cells)] for place in (0, 1))
    frame = pd.DataFrame(0, index=rows, columns=columns)
    for (row, column), count in cells.items():
        frame.loc[row, column] = count
    return frame


def of_array(cells):
    frame = of_frame(cells)
    return xr.DataArray(frame.to_numpy(), coords={"sender": list(frame.index), "receiver": list(frame.columns)})


def of_network(cells, kind=nx.DiGraph):
    network = kind()
    network.add_weighted_edges_from([(*cell, count) for cell, count in cells.items()])
    return network


def undirected(cells):
    return of_network(cells, nx.Graph)


TWO = {("a", "b"): 3, ("c", "b"): 1}
PEOPLE = ["d", "c", "b", "a"]
MAKERS = {
    of_series: PEOPLE,
    of_frame: (PEOPLE, np.array(["b", "e"])),
    of_array: [tuple(PEOPLE), ["e", "b"]],
    of_network: PEOPLE,
    undirected: PEOPLE,
}


@pytest.mark.parametrize("make", MAKERS)
def test_neighbors_with_a_new_label_have_the_same_axes_on_a_declared_domain(make):
    """One unit more, whose label nobody had: the axes of the release tell only where they come from the data."""
    domain, one = MAKERS[make], TWO | {("d", "b"): 1}
    turned = dict(reversed(one.items()))
    found = [privatize(make(cells), epsilon=60.0, domain=domain) for cells in (TWO, one, turned)]
    assert found[0].axes_ == found[1].axes_ == found[2].axes_
    assert [axis.declared for axis in found[0].axes_] == [True] * len(found[0].axes_)
    assert np.abs(found[1].values - found[0].values).sum() == 1
    assert (found[1].values == found[2].values).all()
    assert found[0].protects == "changes of at most 1 in the sum of all counts"
    assert "declared" in found[0]._repr_html_()
    bare = [privatize(make(cells), epsilon=60.0) for cells in (TWO, one)]
    assert bare[0].axes_ != bare[1].axes_
    for release in bare:
        assert "; which labels occur in axis 0" in release.protects
        assert release.protects.endswith("is published, unprotected")
        assert release.protects in repr(release)
        assert release.protects in release._repr_html_()
    for release in (*found, *bare):
        assert reread(release) == release
        assert reread(release).protects == release.protects


def test_cells_come_to_their_place_in_the_domain():
    release = privatize(of_frame(TWO), epsilon=60.0, domain=(PEOPLE, ["e", "b"]))
    assert release.values.tolist() == [[0, 0], [0, 1], [0, 0], [0, 3]]
    assert privatize(undirected(TWO), epsilon=60.0, domain=PEOPLE).values.tolist() == [
        [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 3], [0, 0, 0, 0],
    ]  # fmt: skip
    half = privatize(of_frame(TWO), epsilon=60.0, domain=(None, ["e", "b"]))
    assert half.index == ("a", "c")
    assert half.protects.endswith("; which labels occur in axis 0 is published, unprotected")
    numbered = pd.DataFrame({"x": [5, 0], "y": [7, 1]})
    assert privatize(numbered, epsilon=60.0, domain=(range(3), ["y", "x"])).values.tolist() == [[7, 5], [1, 0], [0, 0]]
    whole = privatize(of_frame(TWO), epsilon=60.0, record_bound=3, domain=(PEOPLE, ["b"]))
    assert whole.values.tolist() == [[0], [1], [0], [3]]


@pytest.mark.parametrize(
    ("data", "domain", "message"),
    [
        (of_series(TWO), ["a", "b"], "must hold every label of `counts`, got 'c' in axis 0"),
        (of_frame(TWO), (["a", "c"], ["x"]), "got 'b' in axis 1"),
        (of_array(TWO), (["a"], ["b"]), r"got 'c' in axis 0 \(sender\)"),
        (of_network(TWO), ["a", "b"], "got 'c' in axis 0"),
        (pd.Series([1, 2], index=["a", float("nan")]), ["a"], "got nan in axis 0"),
        (pd.Series([1, 2], index=["a", "a"]), ["a"], "each label of axis 0 once"),
        (of_series(TWO), ["a", "c", "a"], "labels, each once"),
        (of_series(TWO), ["a", "c", float("nan")], "none missing"),
        (of_series(TWO), [], "labels"),
        (of_series(TWO), "ac", "sequence of labels"),
        (of_series(TWO), [["a"], ["c"]], "sequence of labels"),
        (of_series(TWO), 3, "sequence of labels"),
        (of_frame(TWO), ["a", "c", "b"], "each of the 2 axes"),
        (of_frame(TWO), {"a": 1}, "each of the 2 axes"),
        ([1, 2], ["a", "b"], "`domain` must be left out where `counts` has no labels"),
    ],
)
def test_labels_outside_a_domain_and_bad_domains_are_refused(data, domain, message):
    with pytest.raises((ValueError, TypeError), match=message):
        privatize(data, epsilon=1.0, domain=domain)


def test_the_axes_of_a_table_are_found_without_importing_anything():
    assert _tables.axes([[1, 2]]) == ()
    assert _tables.axes(None) == ()
    assert _tables.axes(scipy.sparse.eye_array(2)) == ()
