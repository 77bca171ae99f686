"""The one reader of comma-separated text: rows with the numbers of their lines, and errors that name both."""

import io

import pytest

from quincunx import _csv


def test_rows_have_the_numbers_of_their_lines(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b'\xef\xbb\xbfa, b\r\n\r\n"1,5", 2 \n,\n')
    expected = [(1, ["a", "b"]), (3, ["1,5", "2"]), (4, ["", ""])]
    assert list(_csv.rows(file, "table")) == expected
    assert list(_csv.rows(file.read_text(encoding="utf-8-sig").splitlines(), "table")) == expected


def test_comments_and_other_marks_are_passed_over():
    lines = ["# a title, and more", "1;2 # two", "", "  3 ; 4"]
    assert [row.fields for row in _csv.rows(lines, "lines", delimiter=";", comment="#")] == [["1", "2"], ["3", "4"]]


def test_errors_name_the_text_and_the_line(tmp_path):
    with pytest.raises(TypeError, match="lines, line 2: must be text, got int"):
        list(_csv.rows(["1", 2], "lines"))
    with pytest.raises(ValueError, match="bytes, after line 1: not text in UTF-8"):
        list(_csv.rows(io.TextIOWrapper(io.BytesIO(b"1,2\n" + b"3," * 10_000 + b"\xff\n"), encoding="utf-8"), "bytes"))
    with pytest.raises(ValueError, match=r"lines, line 2: .*field larger"):
        list(_csv.rows(["1", "x" * 200_000], "lines"))
    with pytest.raises(FileNotFoundError):
        list(_csv.rows(tmp_path / "missing.csv", "missing"))


def test_a_first_line_is_names_or_a_record_by_a_rule_or_as_it_is_said():
    """A number among names is a record, and a record without a number a name, where nobody says otherwise."""
    for text, names, otherwise in (("2024\n3\n5", False, [3, 5]), ("tea\n3\n5", True, None), ("a\nb\na", False, None)):
        labels = ["a", "b"]
        found = _csv.table(text, labels)[:, 0].tolist()
        assert len(found) == (2 if names else 3)
        assert _csv.table(text, labels, header=names)[:, 0].tolist() == found
        if otherwise is not None:
            assert _csv.table(text, labels, header=True)[:, 0].tolist() == otherwise
    with pytest.raises(
        ValueError, match=r"must hold numbers separated by commas, or labels declared, 1 a line, got 'tea' on line 1$"
    ):
        _csv.table("tea\n3\n5", header=False)


def test_numbers_that_pandas_names_columns_by_are_refused_until_it_is_said():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[7.0, 8.0, 9.0], [4.0, 5.0, 6.0]])
    assert _csv.table(frame.to_csv()).tolist() == frame.to_numpy().tolist()
    text = frame.to_csv(index=False)
    with pytest.raises(ValueError, match="`header` must say whether a first line 0,1,2 holds names"):
        _csv.table(text)
    assert _csv.table(text, header=True).tolist() == frame.to_numpy().tolist()
    assert _csv.table(text, header=False).shape == (3, 3)


def test_lines_that_are_no_records_are_named_in_any_piece():
    """By their number in the file, where NumPy counts those that it was given, at times from 0 and at times from 1."""
    lines = ["a,b", "", "1,2", "3,4", "5,6", "7,x"]
    for wrong in ("7,x", "7", "7,8,9", " "):
        with pytest.raises(ValueError, match=rf", 2 a line, got '{wrong.strip()}' on line 6$"):
            list(_csv.tables([*lines[:5], wrong, "1,2"], piece=3))


def test_what_is_written_is_read_again():
    fields = ["a", "b\rc", "d\ne", "f\r\ng", 'h"i', "j,k", "5"]
    file = io.StringIO()
    write = _csv.row_writer(file)
    write(fields)
    write(["", 2.5])
    assert [row.fields for row in _csv.rows(io.StringIO(file.getvalue(), newline=""), "table")] == [fields, ["", "2.5"]]
    assert file.getvalue().endswith("\n,2.5\n")
