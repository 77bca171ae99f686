"""Tables of counts in text: what is a count in them and what is a label.

A label that is taken for a count is released as one, and wrong without a word. So a row or column that may be either is
refused until it is said which it is. Numbers look like labels if they are

    a run n, n + 1, ... (of four or more), all of 0..k-1 or 1..k, rising all the way (of five or more), or
    all different though there are so many that among as many independent ones two would be equal: n^2 > 25 R for n
    whole numbers in a range of R, where chance leaves them all different with probability below exp(-12).

A long table has a line for each cell: the labels of its row, its column (and more axes), and the count, last.
"""

import contextlib
import io
import math
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _csv, _tables
from quincunx._csv import Row, is_number
from quincunx._tables import Axes, Axis

# What a column of identifiers and one of counts tend to be called.
_KEYS = {"id", "index", "key", "name", "row", "col", "column", "user", "person", "unnamed: 0"}
_ENDS = {"from", "to", "source", "target", "sender", "receiver", "i", "j"} | _KEYS
_COUNTS = {"count", "counts", "n", "number", "freq", "frequency", "value", "weight", "messages", "total"}

#: All ints or all strings.
Labels: TypeAlias = tuple[Any, ...]


class Table(NamedTuple):
    """Counts with the names of their rows and columns."""

    values: npt.NDArray[np.int64]
    axes: Axes

    def describe(self) -> str:
        """Return a sentence about shape and labels."""
        shape = " x ".join(map(str, self.values.shape)) or "1"
        labels = ""
        for declared, how in ((True, "declared"), (False, "published as they are")):
            axes = [(place, axis) for place, axis in enumerate(self.axes) if axis.declared is declared]
            if named := [f"axis {place}: {_few(axis)}" for place, axis in axes if axis.labels is not None]:
                labels += f"; labels, {how}: {', '.join(named)}"
        return f"{shape} counts" + (labels or ", no labels")

    def on_domain(self, files: Sequence[str | os.PathLike[str]], *, square: bool = False) -> "Table":
        """Return the counts on the labels of files, one for each axis with labels, or one for a square table."""
        labelled = [number for number, axis in enumerate(self.axes) if axis.labels is not None]
        if len(files) != (wanted := 1 if square else len(labelled)) or not labelled:
            raise ValueError(f"`--labels` must name {wanted} files, one for each axis with labels, got {len(files)}")
        domain: list[list[str] | None] = [None] * self.values.ndim
        axes = list(self.axes)
        for place, number in enumerate(labelled):
            name = os.fspath(files[0 if square else place])
            domain[number] = [row.fields[0] for row in _csv.rows(name, name, delimiter="\x1f") if any(row.fields)]
            axes[number] = axes[number]._replace(labels=tuple(map(str, axes[number].labels or ())))
        declared = domain if len(domain) > 1 else domain[0]
        values, found = _tables.on_domain(self.values, tuple(axes), declared, "counts", "`--labels`")
        return Table(
            values, tuple(axis._replace(labels=axis.labels and _labels(tuple(map(str, axis.labels)))) for axis in found)
        )


def _few(axis: Axis) -> str:
    labels = axis.labels or ()
    shown = ", ".join(str(label) for label in labels[:3]) + (", ..." if len(labels) > 3 else "")
    return (f"{axis.name} " if axis.name is not None else "") + f"({shown})"


def refuse_keys(frame: Any) -> None:
    """Refuse a table of pandas, polars or pyarrow with a column that is called an identifier and looks like one."""
    has_index = _tables.is_frame(frame)
    columns = list(frame.columns) if has_index else list(_tables.axes(frame)[1].labels or ())
    names = [str(name).lower() for name in columns]
    called = [name in _ENDS or name.endswith("_id") for name in names]
    keys = [column for column, key in zip(columns, called, strict=True) if key]
    long = len(keys) >= 2 and names[-1] in _COUNTS
    for key in keys:
        if columns.count(key) == 1 and (long or looks_like_labels([str(label) for label in np.asarray(frame[key])])):
            instead = f"set_index({keys if long else key!r})" if has_index else "leave it out"
            raise ValueError(
                f"`counts` must hold counts, but its column {key!r} looks like labels, which would be released as "
                f"counts: {instead}, or give {'counts.to_numpy()' if has_index else 'an array'} if all are counts"
            )


def parse(
    text: str,
    name: str,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    long: bool | None = None,
    square: bool = False,
) -> Table:
    """Read a table of counts; what may be either a label or a count is refused where it is not said which it is."""
    lines = _split(text, name, delimiter)
    if long:
        if index is not None:
            raise ValueError("`--index` must be left out with `--long`, all of whose columns but the last hold labels")
        return _long(lines, name, header, square)
    if square:
        raise ValueError("`--square` must be given with `--long`")
    names = _header(lines, name, header)
    rows = lines if names is None else lines[1:]
    if not rows:
        raise ValueError(f"{name}: there are no counts in it")
    _same_length(rows, name)
    if long is None:
        _refuse_long(rows, names, name)
    indexed = _has_index(rows, names, name, index)
    return _wide(rows, names, name, indexed)


def _split(text: str, name: str, delimiter: str | None) -> list[Row]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.startswith("# quincunx release"):
        raise ValueError(f"{name}: it holds a release already")
    mark = delimiter or next((mark for mark in (",", "\t", ";") if mark in first), "") or _space(text)
    table = io.StringIO(text, newline="")  # so that quoted labels keep the ends of lines that they hold
    lines = [
        row
        for row in _csv.rows(map(str.strip, table) if mark == " " else table, name, delimiter=mark)
        if any(row.fields)
    ]
    if not lines:
        raise ValueError(f"{name}: there are no counts in it")
    return lines


def _space(text: str) -> str:
    """Return a space if it stands between equally many words on every line, else a comma."""
    words = {len(line.split()) for line in text.splitlines() if line.strip()}
    return " " if len(words) == 1 and min(words) > 1 else ","


def _same_length(rows: Sequence[Row], name: str) -> None:
    for row in rows:
        if len(row.fields) != len(rows[0].fields):
            raise ValueError(
                f"{name}, line {row.number}: each line must hold {len(rows[0].fields)} counts, got {len(row.fields)}"
            )


# What is a label.


def looks_like_labels(fields: Sequence[str]) -> bool:
    """Say whether whole numbers look like labels rather than counts."""
    try:
        numbers = [int(field) for field in fields]
    except ValueError:
        return False
    n = len(numbers)
    if n < 4 or len(set(numbers)) < n:
        return False
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    low, high = min(numbers), max(numbers)
    rising = n >= 5 and min(steps) > 0
    numbered = high - low == n - 1 and low in (0, 1)
    return steps == {1} or rising or numbered or n * n > 25 * (high - low + 1)


def _header(lines: list[Row], name: str, header: bool | None) -> list[str] | None:
    """Return the names in the first line, None where it holds counts."""
    first = lines[0].fields
    if header is False:
        return None
    if header is None:
        if len(first) == 1 and re.fullmatch(r"[\d\s|:]+", first[0]):  # counts with another mark between them
            return None
        numeric = [is_number(field) for field in first]
        others = [line.fields[0] for line in lines[1:]]
        if not any(numeric) or not first[0]:
            _refuse_parted(name, "first line", first, "header")
            header = len(lines) > 1
        elif not numeric[0] and all(numeric[1:]):
            header = all(map(is_number, others)) if others else False
            if not header and len(first) > 1 and (first[0].lower() in _KEYS or looks_like_labels(first[1:])):
                raise _unclear(name, "first line", first[1:], "header")
        elif all(numeric) and len(lines) > 1 and (looks_like_labels(first) or looks_like_labels(first[1:])):
            raise _unclear(name, "first line", first, "header")
    return first if header else None


def _has_index(rows: list[Row], names: list[str] | None, name: str, index: bool | None) -> bool:
    """Say whether the first column holds labels."""
    first, width = [row.fields[0] for row in rows], len(rows[0].fields)
    if names is not None and len(names) == width - 1:  # as R writes tables
        if index is False:
            raise ValueError(f"{name}, line 1: it must hold {width} names, got {len(names)}")
        return True
    if index is not None:
        if index and width < 2:
            raise ValueError(f"{name}: `--index` leaves no counts in it")
        return index
    if width < 2:
        return False
    if names is not None and not names[0]:
        return True
    if not any(map(is_number, first)) and all(first):
        _refuse_parted(name, "first column", first, "index")
        if len(set(first)) < len(first):  # answers of records, rather than names of rows
            raise ValueError(
                f"{name}: its first column holds words that come twice ({', '.join(first[:4])}, ...), which would be "
                "published as they are: say `--index` where they are labels, and leave out what is private"
            )
        return True
    called = names is not None and (names[0].lower() in _KEYS or names[0].lower().endswith("id"))
    if called or looks_like_labels(first):
        raise _unclear(name, "first column", first if names is None else [names[0], *first], "index")
    return False


def _refuse_long(rows: list[Row], names: list[str] | None, name: str) -> None:
    """Refuse what looks like a line for each cell."""
    width = len(rows[0].fields)
    if not 3 <= width <= 4 or (names is not None and len(names) != width):
        return
    keys = [tuple(row.fields[:-1]) for row in rows]
    words = [not any(is_number(key[place]) for key in keys) for place in range(width - 1)]
    whole = not any(words) and all(field.isdecimal() for key in keys for field in key)
    if names is not None and not names[0] and width == 3:  # an index in front of two columns
        return
    if sum(words) >= 2:
        suspicious = True
    elif not whole or len(set(keys)) < len(keys) or len(keys) < 2:
        suspicious = False
    else:
        numbers = [tuple(map(int, key)) for key in keys]
        sorted_ = len(keys) >= 5 and all(a < b for a, b in pairwise(numbers))
        grid = math.prod(len({key[place] for key in keys}) for place in range(width - 1))
        many = len(keys) >= 5 and len(keys) ** 2 > 25 * grid
        lower = [] if names is None else [word.lower() for word in names]
        titled = bool(lower) and lower[-1] in _COUNTS and any(word in _ENDS for word in lower[:-1])
        suspicious = sorted_ or many or titled
    if suspicious:
        raise ValueError(
            f"{name}: it looks like a long table, whose lines hold labels and one count "
            f"({', '.join(rows[0].fields)}): say `--long`, or `--no-long` where all are counts"
        )


def _refuse_parted(name: str, what: str, fields: Sequence[str], option: str) -> None:
    """Refuse counts as 1,000 or 1'000, which are words to a computer, where they would be taken for labels."""
    if parted := [field for field in fields if re.fullmatch(r"[-+]?\d+([,' ]\d+)+(\.\d*)?", field)]:
        raise ValueError(
            f"{name}: its {what} holds numbers with signs between their digits ({', '.join(parted[:4])}), which would "
            f"be published as they are: say `--{option}` where they are labels, write 1000 where they are counts"
        )


def _unclear(name: str, what: str, fields: Sequence[str], option: str) -> ValueError:
    shown = ", ".join(fields[:4]) + (", ..." if len(fields) > 4 else "")
    return ValueError(
        f"{name}: its {what} looks like labels ({shown}), which would be released as counts: "
        f"say `--{option}` where it holds labels, `--no-{option}` where it holds counts"
    )


# Counts.


def _wide(rows: list[Row], names: list[str] | None, name: str, indexed: bool) -> Table:
    start = int(indexed)
    values = np.array([_counts(row.fields[start:], f"{name}, line {row.number}") for row in rows], dtype=np.int64)
    index, columns = Axis(), Axis()
    if indexed:
        corner = names[0] if names is not None and len(names) == len(rows[0].fields) and names[0] else None
        index = Axis(corner, _labels([row.fields[0] for row in rows]))
    if names is not None:
        width = values.shape[1]
        if len(names) not in (width, width + start):
            raise ValueError(f"{name}, line 1: it must hold {width} names, got {len(names)}")
        found = names[len(names) - width :]
        columns = Axis(None, _labels(found))
    return Table(values, (index, columns) if index.labels or columns.labels else ())


def _counts(fields: Sequence[str], place: str) -> list[int]:
    try:
        row = [int(field) for field in fields if "_" not in field]
    except ValueError:
        row = []
    if len(row) < len(fields):
        row = [_count(field, place) for field in fields]
    if row and (min(row) < 0 or max(row) >= 2**63):
        wrong = next(value for value in row if not 0 <= value < 2**63)
        raise ValueError(f"{place}: counts must be whole numbers of at least 0, got {wrong}")
    return row


def _count(field: str, place: str) -> int:
    if is_number(field):
        with contextlib.suppress(ValueError):
            if (value := _check.rational(field, "count")).denominator == 1:
                return int(value)
    raise ValueError(f"{place}: counts must be whole numbers of at least 0, got {field!r}")


def _labels(fields: Sequence[str]) -> Labels:
    """Return labels as ints where all are written as such, else as strings."""
    whole = all(field.removeprefix("-").isdecimal() and field.isascii() for field in fields)
    return tuple(map(int, fields)) if whole and all(str(int(f)) == f for f in fields) else tuple(fields)


def _long(lines: list[Row], name: str, header: bool | None, square: bool) -> Table:
    first = lines[0].fields
    if header is None:
        header = not is_number(first[-1])
    names, rows = (first, lines[1:]) if header else (None, lines)
    if not rows:
        raise ValueError(f"{name}: there are no counts in it")
    width = len(rows[0].fields)
    if width < 2:
        raise ValueError(f"{name}, line {rows[0].number}: a long table must hold labels and a count, got one field")
    _same_length(rows, name)
    if names is not None and len(names) != width:
        raise ValueError(f"{name}, line 1: it must hold {width} names, got {len(names)}")
    if square and width != 3:
        raise ValueError(f"`--square` must be for two columns of labels and one of counts, got {width} columns")
    if bare := [row.number for row in rows if not all(row.fields[:-1])]:  # as tables of pandas with missing labels
        raise ValueError(f"{name}, line {bare[0]}: a long table must have no missing labels, got an empty field")
    columns = [_labels([row.fields[place] for row in rows]) for place in range(width - 1)]
    if square:
        both = _different(columns[0] + columns[1]) if type(columns[0][0]) is type(columns[1][0]) else None
        different = [both or _different(tuple(map(str, columns[0] + columns[1])))] * 2
        if both is None:
            columns = [tuple(map(str, column)) for column in columns]
    else:
        different = [_different(column) for column in columns]
    _tables.refuse_large([len(labels) for labels in different], name)
    places = [{label: place for place, label in enumerate(labels)} for labels in different]
    values = np.zeros([len(labels) for labels in different], dtype=np.int64)
    lines_of: dict[tuple[int, ...], int] = {}
    for row, key in zip(rows, zip(*columns, strict=True), strict=True):
        cell = tuple(found[label] for found, label in zip(places, key, strict=True))
        if cell in lines_of:
            raise ValueError(
                f"{name}, line {row.number}: each cell must have one line, got {', '.join(map(str, key))} "
                f"on line {lines_of[cell]} already"
            )
        lines_of[cell] = row.number
        values[cell] = _counts(row.fields[-1:], f"{name}, line {row.number}")[0]
    axes = tuple(Axis(None if names is None else names[place], labels) for place, labels in enumerate(different))
    return Table(values, axes)


def _different(labels: Labels) -> Labels:
    """Return each label once: numbers rising, strings as they first appear."""
    found = dict.fromkeys(labels)
    return tuple(sorted(found)) if isinstance(labels[0], int) else tuple(found)
