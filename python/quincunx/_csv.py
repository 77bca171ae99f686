"""Rows of comma-separated text, from a file or from lines: the one reader of what people bring, and the one writer."""

import contextlib
import csv
import io
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from quincunx._types import Array


def row_writer(file: io.StringIO) -> Callable[[Sequence[object]], object]:
    """Return what writes a row; a field is quoted if it holds a sign of a line's end, as labels may."""
    lines = SimpleNamespace(write=lambda line: file.write(line.removesuffix("\r\n") + "\n"))
    return csv.writer(lines, lineterminator="\r\n").writerow


class Row(NamedTuple):
    """A row that is not empty: the number of its (last) line and its fields, without space around them."""

    number: int
    fields: list[str]


def rows(
    source: str | os.PathLike[str] | Iterable[str], name: str, *, delimiter: str = ",", comment: str | None = None
) -> Generator[Row, None, None]:
    """Yield the rows of a file in UTF-8, or of its lines; what follows `comment` on a line is passed over.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError, ValueError
        If a line is not text, or not of this form; the message has the name and the number of the line.
    """
    opened: contextlib.AbstractContextManager[Iterable[str]]
    if isinstance(source, (str, os.PathLike)):
        opened = open(source, encoding="utf-8-sig", newline="")
    else:
        opened = contextlib.nullcontext(source)
    with opened as lines:
        reader = csv.reader(_texts(lines, name, comment), delimiter=delimiter, skipinitialspace=True)
        try:
            for fields in reader:
                if fields:
                    yield Row(reader.line_num, [field.strip() for field in fields])
        except csv.Error as error:
            raise ValueError(f"{name}, line {reader.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, after line {reader.line_num}: not text in UTF-8 ({error.reason})") from None


def _texts(lines: Iterable[str], name: str, comment: str | None) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise TypeError(f"{name}, line {number}: must be text, got {type(line).__name__}")
        yield line if comment is None else line.partition(comment)[0].strip()


def table(text: str, labels: Iterable[str] = (), *, header: bool | None = None) -> Array:
    """Return the columns of a text as a matrix of numbers, or of words where the lines hold labels that were declared.

    A line of names may come first, as pandas writes it, also with an index. By default a first line is one of names if
    no field of it is a number, or the first is empty, unless it is one of the labels alone; numbers that count from 0
    to 2 at the least, as pandas names columns, are refused until `header` says what they are. Columns of bits under
    declared labels come in the order of the declaration.
    """
    return next(tables(io.StringIO(text, newline=None), labels, header=header))


def tables(
    lines: Iterable[str], labels: Iterable[str] = (), piece: int | None = None, *, header: bool | None = None
) -> Iterator[Array]:
    """Yield such matrices of the first lines, and of those that follow; `piece` lines are read at a time."""
    lines, labels = iter(lines), list(labels)
    head = list(itertools.islice(lines, piece))
    first = next(rows(head, "source"), Row(0, []))
    if header is None and len(first.fields) > 2 and first.fields == list(map(str, range(len(first.fields)))):
        line = f"a first line {','.join(first.fields[:4])}{',...' * (len(first.fields) > 4)}"
        raise ValueError(f"`header` must say whether {line} holds names, as pandas writes them, or numbers")
    numbers = any(map(is_number, first.fields)) and first.fields[0] != ""  # pandas writes no name for an index
    bare = numbers or (len(first.fields) == 1 and first.fields[0] in labels)
    names = first.fields if (not bare if header is None else header) else []
    head = head[first.number :] if names else head
    second = next(rows(head, "source"), Row(0, [])).fields
    if not second:
        raise ValueError("`source` must hold at least one record, got an empty table")
    if names and len(names) != len(second):
        raise ValueError(f"`source` must have a name for each of {len(second)} columns, got {len(names)} names")
    columns: Sequence[int] | None = None
    if labels and len(names) > 1 + (names[:1] == [""]):  # bits, each under its label
        if wrong := [label for label in labels if names.count(label) != 1]:
            got = f"{'several' if wrong[0] in names else 'none'} for {wrong}"
            raise ValueError(f"`source` must have a column for each of the categories {labels}, got {got}")
        columns = [names.index(label) for label in labels]
    elif names and names[0] == "" and len(second) > 1:  # as pandas writes a column with its index
        columns = range(1, len(second))
    words = bool(set(second) & set(labels))

    def parsed(some: list[str], kind: type) -> Array:
        found: Array = np.loadtxt(
            some, dtype=kind, delimiter=",", comments=None, ndmin=2, usecols=columns, quotechar='"'
        )
        return found

    before = first.number if names else 0
    for some in itertools.chain([head], iter(lambda: list(itertools.islice(lines, piece)), [])):
        before += len(some)
        if some is not head and not any(map(str.strip, some)):
            continue
        try:
            found = parsed(some, np.str_ if words else np.float64)
        except ValueError as reason:
            rule = "`source` must hold numbers separated by commas, or labels declared"
            for number, fields in rows(some, "source"):
                read = fields if columns is None else [fields[i] for i in columns if i < len(fields)]
                if len(fields) != len(second) or not (words or all(map(is_number, read))):
                    place = before - len(some) + number
                    raise ValueError(
                        f"{rule}, {len(second)} a line, got {','.join(fields)!r:.60} on line {place}"
                    ) from None
            raise ValueError(f"{rule}: {reason}") from reason
        if not words and np.abs(found).max(initial=0.0) >= 2**53:
            with contextlib.suppress(ValueError):  # whole numbers beyond those that doubles hold
                found = parsed(some, np.int64)
        yield np.char.strip(found) if words else found


def is_number(word: str) -> bool:
    """Say whether a word is a number; 3_12, which Python takes for 312, is a name."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
