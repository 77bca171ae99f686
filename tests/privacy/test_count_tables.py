"""Tables of counts as people have them: which of their numbers are labels, and what is refused until it is said."""

import gzip
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from quincunx.errors import TooLargeError
from quincunx.privacy import LaplaceMechanism, Release, privatize
from quincunx.privacy._files import privatize_file, read_table
from quincunx.privacy._text import looks_like_labels, parse

DATA = Path(os.environ.get("QUINCUNX_DATA", "no such place"))


def read(text, **how):
    return parse(text, "table", **how)


def wide(**how):
    rng = np.random.default_rng(1)
    return pd.DataFrame(rng.poisson(3.0, (8, 6)), **how)


# What pandas writes.


@pytest.mark.parametrize("index", [None, list("abcdefgh"), range(100, 108)], ids=["numbers", "letters", "from 100"])
@pytest.mark.parametrize("columns", [None, list("uvwxyz")], ids=["numbers", "letters"])
def test_a_table_that_pandas_wrote_is_read_as_it_was(index, columns):
    frame = wide(index=index, columns=columns)
    table = read(frame.to_csv())
    assert (table.values == frame.to_numpy()).all()
    assert table.axes[0].labels == tuple(frame.index)
    assert table.axes[1].labels == tuple(frame.columns)
    bare = read(frame.to_csv(index=False), header=True)
    assert (bare.values == frame.to_numpy()).all()
    assert (read(frame.to_csv(index=False, header=False), header=False).values == frame.to_numpy()).all()


def test_an_index_of_numbers_with_a_name_is_refused_until_it_is_said_what_it_is():
    frame = wide(index=pd.Index(range(8), name="sender"), columns=list("uvwxyz"))
    with pytest.raises(
        ValueError, match=r"first column looks like labels \(sender, 0, 1, 2, ...\), which would be rel"
    ):
        read(frame.to_csv())
    assert read(frame.to_csv(), index=True).axes[0][:2] == ("sender", tuple(range(8)))
    assert read(frame.to_csv(), index=False).values.shape == (8, 7)


def test_a_first_line_of_numbers_is_refused_until_it_is_said_what_it_is():
    text = wide().to_csv(index=False)
    with pytest.raises(ValueError, match=r"first line looks like labels .* say `--header` .* `--no-header`"):
        read(text)
    assert read(text, header=True).values.shape == (8, 6)
    assert read(text, header=False).values.shape == (9, 6)


def test_names_without_a_header_are_labels():
    table = read("Ann,3,0\nBob,1,7\n")
    assert table.values.tolist() == [[3, 0], [1, 7]]
    assert table.axes[0].labels == ("Ann", "Bob")
    assert table.axes[1].labels is None


def test_a_header_that_r_wrote_is_one_field_short():
    table = read('"tea","milk"\n"Ann",3,0\n"Bob",1,7\n')
    assert [axis[:2] for axis in table.axes] == [(None, ("Ann", "Bob")), (None, ("tea", "milk"))]


def test_fields_may_be_quoted_and_separated_by_tabs_or_semicolons():
    expected = [[1, 2], [3, 4]]
    for text in ('"a, b",c\n1,2\n3,4\n', "a\tb\n1\t2\n3\t4\n", "a;b\n1;2\n3;4\n"):
        assert read(text).values.tolist() == expected
    assert read("1 2\n 3   4 \n").values.tolist() == expected
    with pytest.raises(ValueError, match="line 1"):
        read("1 2\n3\n")
    assert read("1|2\n3|4", delimiter="|").values.tolist() == expected


# Numbers that look like labels.


@pytest.mark.parametrize(
    ("numbers", "labels"),
    [
        ("0 1 2 3", True),
        ("1 2 3 4", True),
        ("2001 2002 2003 2004", True),
        ("3 1 0 2", True),
        ("101 205 333 480 481", True),
        ("1 2 3", False),
        ("5 5 5 5 5 5", False),
        ("0 3 1 0 2 0 7", False),
        ("12 7 19 3 4", False),
        ("1.5 2.5 3.5 4.5", False),
    ],
)
def test_labels_are_runs_rising_or_all_different(numbers, labels):
    assert looks_like_labels(numbers.split()) == labels


@given(st.integers(26, 60), st.integers(5000, 10**9), st.randoms())
def test_identifiers_in_any_order_look_like_labels_until_one_comes_twice(number, first, random):
    labels = [str(first + place) for place in range(number)]
    random.shuffle(labels)
    assert looks_like_labels(labels)
    assert not looks_like_labels([*labels, labels[0]])


def test_counts_are_hardly_ever_taken_for_labels():
    """Poisson tables of many shapes are read; the chance of a wrong refusal is the sum of the rules' chances."""
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(400):
        shape = rng.integers(2, 12, 2)
        counts = rng.poisson(rng.choice([0.2, 2.0, 20.0, 500.0]), shape)
        try:
            assert (read("\n".join(",".join(map(str, row)) for row in counts)).values == counts).all()
        except ValueError:
            refused += 1
    assert refused <= 12


@pytest.mark.parametrize("name", ["id", "ID", "user_id", "person", "key"])
def test_a_column_that_is_called_an_identifier_is_refused(name):
    with pytest.raises(ValueError, match="looks like labels"):
        read(f"{name},a,b\n7,1,2\n3,0,5\n")


# Long tables.

LONG = "sender,receiver,messages\n1,3,2\n1,4,1\n2,1,9\n3,1,1\n4,2,5\n"


def test_words_with_an_underscore_are_names():
    """Python reads 3_12 as 312."""
    table = read("well,a,b\n1_1,3,4\n1_2,5,6\n")
    assert [axis.labels for axis in table.axes] == [("1_1", "1_2"), ("a", "b")]
    assert table.values.tolist() == [[3, 4], [5, 6]]
    assert read("2019_1,2019_2\n3,4\n").values.tolist() == [[3, 4]]
    with pytest.raises(ValueError, match="line 2: counts must be whole numbers of at least 0, got '1_0'"):
        read("a,b\n3,1_0\n")


def test_years_behind_the_name_of_an_index_are_refused_until_it_is_said_what_they_are():
    text = "name,2019,2020\nbob,3,4\n"
    with pytest.raises(ValueError, match=r"first line looks like labels \(2019, 2020\)"):
        read(text)
    assert read(text, header=True).values.tolist() == [[3, 4]]
    assert read(text, header=False).axes[0].labels == ("name", "bob")
    assert read("Madrid,3,4\nParis,1,2\n").axes[0].labels == ("Madrid", "Paris")


def test_labels_survive_with_ends_of_lines_and_of_a_part_of_a_frame(tmp_path):
    for end in ("\n", "\r\n"):
        table = read(f'city,a,b{end}"x{end}y",1,2{end}xy,3,4{end}u\x85v,5,6{end}')
        assert table.axes[0].labels == (f"x{end}y", "xy", "u\x85v")
    part = wide(columns=list("uvwxyz")).iloc[3:6]
    part.to_parquet(tmp_path / "part.parquet")
    assert read_table(tmp_path / "part.parquet").axes[0].labels == (3, 4, 5)
    assert read_table(tmp_path / "part.parquet", index=False).axes[0].labels is None
    lines = pd.DataFrame({"from": list("abca"), "to": list("bcab"), "n": [1, 2, 3, 0]})
    for some in (lines[1:3], lines[lines.n > 0]):
        some.to_parquet(tmp_path / "long.parquet")
        assert read_table(tmp_path / "long.parquet", long=True).values.sum() == some.n.sum()
    part.reset_index(drop=True).to_parquet(tmp_path / "whole.parquet")
    assert read_table(tmp_path / "whole.parquet").axes[0].labels is None


@pytest.mark.parametrize("name", ["counts.json", "counts.npy", "counts.parquet"])
@pytest.mark.parametrize("how", [{"delimiter": ";"}, {"header": True}])
def test_options_about_lines_are_refused_for_files_that_have_none(tmp_path, name, how):
    (tmp_path / "counts.json").write_text("[[1, 2], [3, 4]]")
    np.save(tmp_path / "counts.npy", [[1, 2], [3, 4]])
    pd.DataFrame([[1, 2], [3, 4]], columns=["a", "b"]).to_parquet(tmp_path / "counts.parquet")
    assert read_table(tmp_path / name).values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=f"`{next(iter(how))}` must be left out for "):
        read_table(tmp_path / name, **how)


def test_counts_beyond_doubles_are_read_whole_or_refused(tmp_path):
    assert read("9007199254740993.0,1e3\n").values.tolist() == [[2**53 + 1, 1000]]
    for count in ("9007199254740993.5", "3.00000000000000000001", "1e-99999", "4/2"):
        with pytest.raises(ValueError, match="whole numbers of at least 0"):
            read(f"1,2\n3,{count}\n")
    file = tmp_path / "counts.json"
    file.write_text("[[9007199254740993, 1.0]]")
    with pytest.raises(ValueError, match=r"counts from 2\*\*53 on must be written without a decimal point"):
        read_table(file)
    file.write_text("[[9007199254740993, 1]]")
    assert read_table(file).values.tolist() == [[2**53 + 1, 1]]


def test_a_long_table_is_refused_until_it_is_said_to_be_one():
    with pytest.raises(ValueError, match=r"looks like a long table, .* say `--long`, or `--no-long`"):
        read(LONG)
    with pytest.raises(ValueError, match="long table"):
        read("ann,bob,3\nbob,ann,2\n")
    table = read(LONG, long=True)
    assert table.values.tolist() == [[0, 0, 2, 1], [9, 0, 0, 0], [1, 0, 0, 0], [0, 5, 0, 0]]
    assert [axis[:2] for axis in table.axes] == [("sender", (1, 2, 3, 4)), ("receiver", (1, 2, 3, 4))]
    assert read(LONG, long=False).values.shape == (5, 3)


def test_the_ends_of_edges_are_one_set_in_a_square_table():
    text = "ann,bob,3\nbob,cy,2\n"
    assert read(text, long=True).values.shape == (2, 2)
    table = read(text, long=True, square=True)
    assert table.values.tolist() == [[0, 3, 0], [0, 0, 2], [0, 0, 0]]
    assert table.axes[0].labels == table.axes[1].labels == ("ann", "bob", "cy")
    assert read("1,x,3\nx,2,1\n", long=True, square=True).values.sum() == 4


def test_a_long_table_may_have_one_axis_or_three():
    assert read("word,count\nthe,9\nof,4\n", long=True).values.tolist() == [9, 4]
    table = read("1,1,2001-01,5\n1,2,2001-02,3\n", long=True)
    assert table.values.shape == (1, 2, 2)
    assert table.axes[2].labels == ("2001-01", "2001-02")


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        ("a,b,1\na,b,2\n", {"long": True}, r"line 2: each cell must have one line, got a, b on line 1 already"),
        ("a,b,1\na,c,-2\n", {"long": True}, r"line 2: counts must be whole numbers of at least 0, got -2"),
        ("a,b,1\na,c\n", {"long": True}, r"line 2: each line must hold 3 counts, got 2"),
        ("a,b,1\n", {"long": True, "index": True}, "`--index` must be left out"),
        ("a,b,1\n", {"square": True}, "`--square` must be given with `--long`"),
        ("a,b,c,1\n", {"long": True, "square": True}, "`--square` must be for two columns"),
        ("1\n2\n", {"long": True}, "must hold labels and a count"),
        ("a,b\n", {"header": True}, "there are no counts"),
        ("a,b,c\n1,2\n1,3", {}, "line 1: it must hold 2 names, got 3"),
        ("a\n1\n", {"index": True}, "leaves no counts"),
        ("Ann,1,2,3,4\nBob,5,0,0,1\n", {}, "first line looks like labels"),
        ("from,to,n\na,b,1\na,,2\n", {"long": True}, "line 3: a long table must have no missing labels"),
        ('a,b\n"1,000",1\n"2,500",2\n', {}, r"first column holds numbers .* \(1,000, 2,500\), .* say `--index`"),
        ('"1\'000","2,500"\n1,2\n', {}, r"first line holds numbers .* \(1'000, 2,500\), .* say `--header`"),
        ("a;b\n1,5;2\n", {}, r"first column holds numbers .* \(1,5\)"),
        ("a,b\nyes,1\nno,2\nyes,3\n", {}, r"words that come twice \(yes, no, yes, ...\), .* say `--index`"),
        ('# quincunx release {"format": 1}\n1,2\n', {}, "holds a release already"),
    ],
)
def test_bad_tables_are_refused_by_line_or_option(text, how, message):
    with pytest.raises(ValueError, match=message):
        read(text, **how)


def test_a_long_table_of_few_lines_and_many_cells_is_forecast():
    lines = "".join(f"{i},{i},{i},{i},{i},1\n" for i in range(3000))
    with pytest.raises(TooLargeError, match="cells need about"):
        read(lines, long=True)


# Files.


def test_tables_in_other_files(tmp_path):
    frame = wide(columns=list("uvwxyz"))
    packed = tmp_path / "counts.csv.gz"
    frame.to_csv(packed)
    assert (read_table(packed).values == frame.to_numpy()).all()
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"counts\.csv\.gz"):
        read_table(packed)
    sparse = tmp_path / "counts.npz"
    scipy.sparse.save_npz(sparse, scipy.sparse.csr_array(frame.to_numpy()))
    assert (read_table(sparse).values == frame.to_numpy()).all()
    np.savez(sparse, frame.to_numpy())
    assert (read_table(sparse).values == frame.to_numpy()).all()
    split = tmp_path / "counts.json"
    split.write_text(frame.to_json(orient="split"))
    assert read_table(split).axes[1].labels == tuple("uvwxyz")
    split.write_text(json.dumps(frame.to_numpy().tolist()))
    assert read_table(split).values.shape == (8, 6)
    labels = [f'{{"data": [[1, 2]], "columns": {columns}}}' for columns in ('"ab"', "[[1], {}]", "[null, 1]")]
    for wrong in ("[[1, 2], [3]]", "[[1, 0.5]]", "{}", "[1", '{"data": [[1]], "index": [1, 2]}', '[["a"]]', *labels):
        split.write_text(wrong)
        with pytest.raises(ValueError, match=r"counts\.json"):
            read_table(split)
    privatize(frame, epsilon=1.0).save(tmp_path / "released.npz")
    with pytest.raises(ValueError, match="holds a release already"):
        read_table(tmp_path / "released.npz")


def test_damaged_files_are_refused_by_name(tmp_path):
    """Whatever library finds the damage; errors of zlib were none of those that were expected."""
    pytest.importorskip("pyarrow")
    np.savez_compressed(tmp_path / "a.npz", np.arange(1000))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[100:200] = b"\xff" * 100
    (tmp_path / "a.npz").write_bytes(content)
    for name in ("b.parquet", "c.feather", "d.xlsx"):
        (tmp_path / name).write_text("no table")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: "):
            read_table(path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.parquet")


def test_counts_that_doubles_have_rounded_are_refused(tmp_path):
    """Their shortest decimals are other numbers than they are."""
    pytest.importorskip("pyarrow")
    file = tmp_path / "counts.parquet"
    pd.DataFrame({"a": [2**60 + 1, 1], "b": [1.0, 2.0]}).to_parquet(file)
    assert read_table(file).values.tolist() == [[2**60 + 1, 1], [1, 2]]
    pd.DataFrame({"a": [2.0**60, 1], "b": [1, 2]}).to_parquet(file)
    with pytest.raises(ValueError, match=r"counts from 2\*\*53 on must be integers"):
        read_table(file)


def test_labels_of_several_levels_are_no_counts_and_lists_are_no_labels(tmp_path):
    pytest.importorskip("pyarrow")
    file = tmp_path / "counts.parquet"
    levels = pd.MultiIndex.from_tuples([("a", "2019"), ("b", "2020")], names=["city", "year"])
    frame = pd.DataFrame([[5, 6], [7, 8]], columns=["x", "y"])
    for some in (frame.set_index(levels), frame.set_axis(levels, axis=1)):
        some.to_parquet(file)
        with pytest.raises(ValueError, match="labels must be of one level, got several"):
            read_table(file)
    frame[["x"]].set_index(levels).to_parquet(file)
    assert read_table(file, long=True).values.tolist() == [[5, 0], [0, 7]]
    assert read_table(file, index=False).values.tolist() == [[5], [7]]
    for column in ([True, False], [[1, 2], [3]], [b"x", b"y"]):
        frame.assign(x=column).to_parquet(file)
        with pytest.raises(ValueError, match="first column 'x' must hold counts or words, got"):
            read_table(file)
        assert read_table(file, index=True).values.tolist() == [[6], [8]]


@pytest.mark.parametrize("format", ["csv", "json", "npz"])
@pytest.mark.parametrize("masked", [False, True])
def test_releases_come_back_from_every_format(format, masked):
    index = pd.Index(["a, b", 'c "d"', "e"], name="row")
    cases = [
        privatize(pd.DataFrame([[1, 2], [3, 4], [5, 6]], index=index, columns=["x", "y"]), epsilon=0.5),
        privatize(pd.DataFrame([[1, 2], [3, 4], [5, 6]], columns=["x", "y"]), epsilon=0.5),
        privatize(pd.Series([1, 2, 3], index=index), epsilon=0.5),
        privatize([1, 2, 3], epsilon=0.5),
        privatize([[1], [2]], epsilon=[[0.5], [1.0]]),
        LaplaceMechanism(1.0, lower=0.0, upper=1.0).release([[0.1, 0.2], [0.3, 0.4]]),
    ]
    for release in cases:
        mask = np.zeros(release.shape, bool)
        mask.flat[1] = masked
        kept = release.masked(mask) if masked else release
        file = io.BytesIO()
        kept.save(file, format=format)
        for content in (file.getvalue(), gzip.compress(file.getvalue())):
            assert Release.load(io.BytesIO(content)) == kept


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_releases_of_nothing_come_back_from_json(shape):
    file = io.BytesIO()
    release = privatize(np.zeros(shape, dtype=int), epsilon=1.0)
    release.save(file, format="json")
    assert Release.load(io.BytesIO(file.getvalue())) == release


def test_a_table_that_was_changed_by_hand_is_no_release(tmp_path):
    path = tmp_path / "r.csv"
    privatize(pd.DataFrame([[1, 2], [3, 4]], index=["a", "b"], columns=["x", "y"]), epsilon=1.0).save(path)
    lines = path.read_text().splitlines()
    for changed in (
        [lines[0], lines[1], lines[3], lines[2]],
        [lines[0], ",y,x", *lines[2:]],
        lines[:-1],
        [*lines[:-1], lines[-1] + ",1"],
        [*lines[:-1], "b,1.5,2"],
        ["# quincunx release {", *lines[1:]],
        lines[1:],
    ):
        path.write_text("\n".join(changed))
        with pytest.raises(ValueError, match="`source` must be a release"):
            Release.load(path)


def test_formats_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one or two axes"):
        privatize(np.ones((2, 2, 2), int), epsilon=1.0).save(io.BytesIO(), format="csv")
    with pytest.raises(ValueError, match="`format` must be one of"):
        privatize([1], epsilon=1.0).save(io.BytesIO(), format="xlsx")


@pytest.mark.skipif(not DATA.exists(), reason="QUINCUNX_DATA does not name the folder of the e-mail network")
def test_an_email_network_is_read_from_its_list_of_cells():
    source = DATA / "enron156_counts.csv.gz"
    with pytest.raises(ValueError, match="long table"):
        read_table(source)
    table = read_table(source, long=True, square=True)
    assert table.values.shape == (154, 154)  # two of the employees are in no cell
    assert table.values.sum() == 38388
    monthly = read_table(DATA / "enron184_monthly_counts.csv.gz", long=True)
    assert monthly.values.ndim == 3
    items = DATA / "kosarak_5_25_item_counts.csv.gz"
    with pytest.raises(ValueError, match="looks like labels"):
        read_table(items)
    release = privatize_file(table, io.BytesIO(), epsilon=1.0)
    assert release.index == release.columns == table.axes[0].labels


def test_a_data_frame_with_a_column_of_labels_is_refused():
    ids = pd.DataFrame({"id": range(7), "tea": [3, 0, 1, 4, 0, 2, 2]})
    with pytest.raises(ValueError, match=r"its column 'id' looks like labels, .* set_index\('id'\)"):
        privatize(ids, epsilon=1.0)
    assert privatize(ids.set_index("id"), epsilon=1.0).shape == (7, 1)
    pyarrow = pytest.importorskip("pyarrow")  # which have no index
    table = pyarrow.Table.from_pandas(ids, preserve_index=False)
    for other in (table, table.to_batches()[0]):
        with pytest.raises(ValueError, match=r"its column 'id' looks like labels.*: leave it out, or give an array"):
            privatize(other, epsilon=1.0)
    assert privatize(table.select(["tea"]), epsilon=1.0).shape == (7, 1)
    assert privatize(ids.to_numpy(), epsilon=1.0).shape == (7, 2)
    edges = pd.DataFrame({"sender": [1, 1, 2], "receiver": [2, 3, 1], "count": [5, 2, 1]})
    with pytest.raises(ValueError, match=r"set_index\(\['sender', 'receiver'\]\)"):
        privatize(edges, epsilon=1.0)
    again = pd.read_csv(io.StringIO(wide().to_csv()))
    with pytest.raises(ValueError, match="'Unnamed: 0'"):
        privatize(again, epsilon=1.0)
    for fine in (
        pd.DataFrame(np.arange(30).reshape(6, 5), columns=list("abcde")),
        pd.DataFrame({"n": [1, 2, 3, 4, 5], "i": [3, 3, 1, 0, 0]}),
        pd.DataFrame({"a": [1, 2]}),
        pd.DataFrame([[1, 2], [3, 4]], columns=["id", "id"]),
    ):
        assert privatize(fine, epsilon=1.0).shape == fine.shape
