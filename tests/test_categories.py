"""Declared categories: codes in the order of the declaration; what is none of it is refused with its place."""

import pickle

import numpy as np
import pandas
import pytest

from quincunx._categories import Categories, of_words

LABELS = {
    "words": ["tea", "coffee", "a much longer word"],
    "numbers": [30, 10, 20],
    "floats": [0.5, -1.0, 2],
    "bits": [True, False],
    "an empty word": ["", "x"],
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("form", [list, tuple, np.array, pandas.Index, pandas.Series], ids=lambda form: form.__name__)
def test_labels_are_coded_in_their_order_and_come_back(name, form):
    labels = LABELS[name]
    declared = Categories.of(form(labels), "categories")
    assert declared == pickle.loads(pickle.dumps(declared)) == Categories.of(labels, "categories")
    assert len(declared) == len(labels)
    codes = np.random.default_rng(0).integers(0, len(labels), (4, 3))
    values = [[labels[code] for code in row] for row in codes]
    for data in (values, np.array(values), np.array(values, dtype=object), pandas.DataFrame(values)):
        assert declared.encode(data, "x").tolist() == codes.tolist()
    column = pandas.Series([row[0] for row in values])
    for data in (column, column.astype("category"), tuple(column)):
        assert declared.encode(data, "x").tolist() == codes[:, 0].tolist()
    assert declared.decode(codes).tolist() == values
    assert declared.encode(labels[1], "x") == 1
    assert declared.encode([], "x").shape == (0,)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.uint64, float, object, "Int8"])
def test_a_number_declares_the_codes_themselves(kind):
    declared = Categories.of(2, "categories")
    assert declared.declared == 2
    assert declared.labels is None
    assert declared.encode(pandas.Series([0, 1, 1]).astype(kind), "x").tolist() == [0, 1, 1]
    assert declared.decode(np.array([1, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("declaration", "values", "found"),
    [
        (["a", "b"], ["a", "c"], "among ['a', 'b'], got 'c' at index (1,)"),
        (["a", "b"], [["a", "b"], ["b", None]], "got None at index (1, 1)"),
        (["a", "b"], ["a", np.nan], "got nan at index (1,)"),
        (["a", "b"], "ab", "got 'ab'"),
        (["a", "b"], [b"a"], "got b'a' at"),
        (["1", "2"], ["1", 2], "got 2 at index (1,)"),
        ([1, 2], ["1"], "got '1' at"),
        ([1, 2], [1.5], "got 1.5 at"),
        ([1, 2], pandas.Series([1, None], dtype="Int64"), "at index (1,)"),
        (["a", "b"], np.array([["a"], 3], dtype=object), "values that are none"),
        (list("abcdefghijk"), ["z"], "'h', ...], got 'z'"),
        (3, [0, 3], "between 0 and 2, got 3 at index (1,)"),
        (3, ["a"], "labels must be declared"),
        (3, [0, np.nan], "got nan at index (1,)"),
        (["a", "b"], np.ma.array(["a", "b"], mask=[0, 1]), "masked"),
    ],
    ids=str,
)
def test_a_value_outside_the_declaration_is_refused_with_its_place(declaration, values, found):
    with pytest.raises((ValueError, TypeError), match="`x`") as error:
        Categories.of(declaration, "categories").encode(values, "x")
    assert found in str(error.value)


@pytest.mark.parametrize(
    "declaration",
    [
        1,
        0,
        -2,
        2.5,
        True,
        "ab",
        b"ab",
        None,
        [],
        ["a"],
        ["a", "a"],
        [1, 1.0],
        [True, 1],
        ["a", 1],
        ["a", None],
        [0.0, np.nan],
        [0.0, np.inf, np.inf],
        [2**70, 1],
        ["a", "b\x00"],
        {"a"},
        {"a": 1},
        np.eye(2),
        [("a",), ("b",)],
        2**40,
    ],
    ids=str,
)
def test_what_declares_nothing_is_refused(declaration):
    with pytest.raises((ValueError, TypeError), match="`categories` must be"):
        Categories.of(declaration, "categories")


def test_columns_of_a_frame_go_by_their_labels():
    declared = Categories.of(["tea", "mate"], "categories")
    frame = pandas.DataFrame([[0, 1], [1, 1]], columns=["mate", "tea"])
    assert np.asarray(declared.columns(frame, "z")).tolist() == [[1, 0], [1, 1]]
    plain = frame.to_numpy()
    assert declared.columns(plain, "z") is plain
    unnamed = pandas.DataFrame(plain)
    assert declared.columns(unnamed, "z") is unnamed
    with pytest.raises(ValueError, match="`z` must have the columns \\['tea', 'mate'\\], got \\['mate', 'cola'\\]"):
        declared.columns(frame.rename(columns={"tea": "cola"}), "z")


def test_words_of_the_command_line():
    assert of_words(["12"], "here") == 12
    assert of_words(["1", "2"], "here") == ["1", "2"]
    for words in ([], ["a"], [""]):
        with pytest.raises(ValueError, match="here: must be a number or at least two"):
            of_words(words, "here")
