"""Summaries of records: tables that add up, to which noise is added once."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quincunx.posterior import DiscreteBayesNet, PackedRecords, Summary
from quincunx.privacy import AddRemove

BINARY = DiscreteBayesNet([("a", "c"), ("b", "c"), ("c", "d")], {"a": 2, "b": 2, "c": 2, "d": 2})
WORDS = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
RECORDS = np.random.default_rng(0).integers(0, 2, (300, 4))


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), max_size=30), st.sets(st.integers(0, 30)), st.randoms())
def test_any_division_in_any_order_has_the_summary_of_the_whole(records, cuts, random):
    data = np.array(records, dtype=np.int64).reshape(-1, 4)
    parts = [BINARY.summarize(part) for part in np.split(data, sorted(cut for cut in cuts if cut <= len(data)))]
    random.shuffle(parts)
    whole = BINARY.summarize(data)
    assert sum(parts) == whole
    assert whole.n == len(data)
    assert parts[0] + (sum(parts[1:]) or BINARY.summarize(data[:0])) == whole


@pytest.mark.parametrize("mechanism", ["laplace", "fourier_l1", "fourier_linf", "posterior_sample", "map"])
@pytest.mark.parametrize("relation", [None, AddRemove()])
def test_a_fit_to_a_summary_is_the_fit_to_the_records(mechanism, relation):
    about = {} if relation is None else {"relation": relation}
    summary = Summary.from_parts(np.split(RECORDS, 7 * [0] + [50, 120]), BINARY)
    given = [RECORDS, PackedRecords(RECORDS), summary]
    fits = [BINARY.fit_private(data, 2.0, mechanism, insecure_seed=5, **about) for data in given]
    for node in BINARY.nodes:
        assert np.array_equal(fits[0].cpds[node], fits[2].cpds[node])
        assert np.array_equal(fits[1].cpds[node], fits[2].cpds[node])
    assert fits[0].guarantee == fits[2].guarantee


def test_tables_of_a_summary_are_those_counted_by_hand():
    data = [["dry", "dry"], ["rain", "wet"], ["rain", "ice"]]
    frame = pd.DataFrame(data, columns=["sky", "road"])[["road", "sky"]]
    summary = Summary.from_parts([frame, WORDS.summarize(data)], WORDS)
    assert summary.n == 6
    assert WORDS.count_tables(summary)["road"].tolist() == [[2, 0, 0], [0, 2, 2]]
    assert WORDS.count_tables(summary)["sky"].tolist() == [2, 4]
    assert summary.nbytes == 8 * 6 + 8


def test_columns_go_by_their_names_whatever_table_has_them():
    pyarrow, xarray = pytest.importorskip("pyarrow"), pytest.importorskip("xarray")
    data = [["dry", "dry"], ["rain", "wet"], ["rain", "ice"]]
    turned = pd.DataFrame(data, columns=["sky", "road"])[["road", "sky"]]
    table = pyarrow.Table.from_pandas(turned, preserve_index=False)
    array = xarray.DataArray(turned.to_numpy(), dims=("day", "what"), coords={"what": ["road", "sky"]})
    for records in (turned, table, table.to_batches()[0], array):
        assert WORDS.summarize(records) == WORDS.summarize(data)
    with pytest.raises(ValueError, match=r"none of \['sky'\]"):
        WORDS.count_tables(table.rename_columns(["road", "sea"]))
    bits = pd.DataFrame(RECORDS, columns=list("abcd"))
    for columns in (None, list("dbca"), list("abcd")):
        for parts in (bits, bits[list("dcba")], [bits[:50], bits[50:][list("bacd")]]):
            assert Summary.from_parts(parts, BINARY, columns=columns) == BINARY.summarize(RECORDS)
    others = bits.rename(columns=dict(zip("abcd", "wxyz", strict=True)))[list("zyxw")]
    assert Summary.from_parts(others, BINARY, columns=list("wxyz")) == BINARY.summarize(RECORDS)
    assert BINARY.summarize(PackedRecords(bits)) == BINARY.summarize(RECORDS)
    with pytest.raises(ValueError, match=r"packed of the columns \['a', 'b', 'c', 'd'\], got \['b', 'a', 'c', 'd'\]"):
        BINARY.summarize(PackedRecords(bits[list("bacd")]))


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ([2**53 + 1, 2**53], "i8"),
        (2, "i1"),
        (2, "?"),
        ([False, True], "?"),
        ([0.5, 1.5], "f4"),
    ],
)
def test_labels_of_columns_of_any_kinds_are_counted_as_in_records(declared, kind):
    domain = {"a": declared, "b": [0.5, 1.5], "c": 2, "d": ["x", "y"]}
    codes = np.random.default_rng(1).integers(0, 2, (50, 4))
    first = np.array([0, 1] if declared == 2 else declared, kind)
    labels = {"a": first, "b": np.array([0.5, 1.5]), "c": np.arange(2), "d": np.array(["x", "y"])}
    columns = {name: labels[name][codes[:, i]] for i, name in enumerate("abcd")}
    for left in ("ab", "ac", "abc", "abcd"):
        net = DiscreteBayesNet([], {name: domain[name] for name in left})
        frame = pd.DataFrame({name: columns[name] for name in left})
        tables = net.count_tables(Summary.from_parts([frame[:20], frame[20:]], net))
        for name in left:
            assert tables[name].tolist() == np.bincount(codes[:, "abcd".index(name)], minlength=2).tolist()


def test_exact_counts_do_not_leave_the_process_unasked(tmp_path):
    summary = BINARY.summarize(RECORDS)
    with pytest.raises(ValueError, match="must not be saved"):
        summary.save(tmp_path / "counts.npz")
    with pytest.raises(ValueError, match="must not be pickled"):
        pickle.dumps(summary)
    assert list(tmp_path.iterdir()) == []
    asked = BINARY.summarize(RECORDS, unsafe=True)
    assert pickle.loads(pickle.dumps(asked)) == summary
    assert not (asked + summary).unsafe
    assert (asked + asked).unsafe
    for word in ("no", 1, None):
        for call in (BINARY.summarize, lambda _, unsafe: summary.save(tmp_path / "no.npz", unsafe=unsafe)):
            with pytest.raises(TypeError, match="`unsafe` must be True or False"):
                call(RECORDS, unsafe=word)
    assert not (tmp_path / "no.npz").exists()
    summary.save(tmp_path / "counts.npz", unsafe=True)
    assert Summary.load(tmp_path / "counts.npz") == summary


def test_summaries_of_other_networks_and_forged_tables_are_refused():
    other = DiscreteBayesNet([("a", "c"), ("b", "c"), ("c", "d")], {"a": 2, "b": 2, "c": 2, "d": 3})
    with pytest.raises(ValueError, match="for this network"):
        other.fit_private(BINARY.summarize(RECORDS), 1.0)
    with pytest.raises(ValueError, match="one model"):
        other.summarize(RECORDS) + BINARY.summarize(RECORDS)
    file = io.BytesIO()
    BINARY.summarize(RECORDS).save(file, unsafe=True)
    file.seek(0)
    arrays = dict(np.load(file))
    name = next(name for name in arrays if name.startswith("value_"))
    arrays[name] = arrays[name] + 1
    forged = io.BytesIO()
    np.savez(forged, **arrays)
    forged.seek(0)
    with pytest.raises(ValueError, match="tables that no records have"):
        Summary.load(forged)
