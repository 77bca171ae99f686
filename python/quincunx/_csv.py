"""Rows of comma-separated text, from a file or from lines: the one reader of what people bring."""

import contextlib
import csv
import os
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple


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
