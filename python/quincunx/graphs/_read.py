"""Edge lists in text files."""

import contextlib
import os
import re
from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from quincunx import _check
from quincunx.graphs._graph import Graph

#: What is looked for between two labels where nothing is said.
_SEPARATORS = ",;\t "
#: What no label holds unless it is quoted or the separator was said; and a vertex that is never read as a whole edge.
_RESERVED = re.compile(r"[\s,;]")
_VERTEX = re.compile(r"-?\w[\w.]*")
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')
_HOLDS_QUOTES = re.compile(r'(?!\0$).*["\0]')


@contextlib.contextmanager
def lines_of(file: str | os.PathLike[str] | Iterable[str]) -> Iterator[tuple[str, Iterator[str]]]:
    """Give the name and the lines of a file, or of lines that are there; raise if they are something else."""

    def checked(name: str, lines: Iterable[object]) -> Iterator[str]:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                if not isinstance(line, str):
                    raise TypeError(f"`file` must give lines of text, got {type(line).__name__} as line {number}")
                yield line
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, after line {number}: not text in UTF-8 ({error.reason})") from None

    if isinstance(file, (str, os.PathLike)):
        name = os.fspath(file)
        with open(file, encoding="utf-8-sig") as opened:
            yield name, checked(name, opened)
    elif isinstance(file, Iterable) and not isinstance(file, (bytes, bytearray)):
        name = str(getattr(file, "name", "line"))
        yield name, checked(name, file)
    else:
        raise TypeError(f"`file` must be a path or an iterable of lines, got {type(file).__name__}")


def read_edges(
    file: str | os.PathLike[str] | Iterable[str], *, delimiter: str | None = None, header: bool | None = None
) -> Graph:
    """Read a graph from a text file with one edge per line.

    A line holds the labels of the two ends with a comma, a semicolon, a tab or blanks between them, the same on all
    lines of a file; labels may be quoted as in CSV. A line with a single label declares a vertex,
    which is how an isolated vertex is written. A ``#`` at the beginning of a line or after a blank begins a comment,
    and empty lines are skipped. A dictionary of attributes after an edge, as ``networkx.write_edgelist`` writes it, is
    passed over. An edge listed twice is a double edge, and an edge from a label to itself is a loop.

    If every label is a plain integer (``7`` or ``-7``, but not ``07``), labels are ints and vertices are in rising
    order, so that a file with the labels ``0..n-1`` gives vertices of the same numbers. Otherwise labels are strings
    and vertices are in the order in which they first appear, as in ``networkx.read_edgelist``.

    Parameters
    ----------
    file : str, path or iterable of str
        The name of a file in UTF-8, or an open text file or any other iterable of lines.
    delimiter : str, optional
        The character between labels, which then may hold all others. By default the first of comma, semicolon, tab and
        blank on the first line that has one; a label that holds another of the four is refused then, and so is a
        single label with anything but letters, digits, ``_`` and ``.``, which may be an edge with a separator of its
        own (``a|b``).
    header : bool, optional
        Whether the first line holds the names of the columns. By default it is an edge, and refused if it may be
        either: if its two labels are no integers and occur on no other line.

    Returns
    -------
    Graph
        With the labels of the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError
        If `file` is neither a path nor an iterable of str, or `header` is no truth value.
    ValueError
        If a line does not hold one or two labels, or is not text in UTF-8, or the first line may be a header. The
        message has the file, the number of the line and its content. If `delimiter` is not one character that may
        stand between labels.

    Examples
    --------
    >>> from quincunx.graphs import read_edges
    >>> graph = read_edges(["# a triangle and a vertex of its own", "a, b", "b, c", "c, a", "d"])
    >>> graph
    <Graph: 4 vertices, 3 edges>
    >>> graph.labels
    ('a', 'b', 'c', 'd')
    >>> read_edges(["source;target", "New York;Boston"], delimiter=";", header=True).labels
    ('New York', 'Boston')
    """
    if delimiter is not None and not (
        isinstance(delimiter, str)
        and len(delimiter) == 1
        and not delimiter.isalnum()
        and delimiter not in '"#{}\r\n_.-'
    ):
        raise ValueError(f"`delimiter` must be a character such as a comma, semicolon or tab, got {delimiter!r}")
    if header is not None:
        header = _check.flag(header, "header")
    lines = _Lines(delimiter)
    vertices: dict[str, int] = {}
    ends: list[int] = []
    first: list[str] | None = None
    apart = True  # the labels of the first line are on no other
    with lines_of(file) as (name, texts):
        for number, line in enumerate(texts, 1):
            labels = lines.labels(line, f"{name}, line {number}")
            if not labels:
                continue
            if first is None:
                first, place = labels, f"{name}, line {number}"
                if header:
                    continue
            elif apart:
                apart = not any(label in first for label in labels)
            numbers = [vertices.setdefault(label, len(vertices)) for label in labels]
            if len(numbers) == 2:
                ends += numbers
    if header is None and first is not None and len(set(first)) == 2 and apart and not any(map(_is_integer, first)):
        raise ValueError(
            f"{place}: {first[0]!r} and {first[1]!r} occur on no other line and may be the names of columns: "
            "`header` must say whether they are"
        )
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)
    if not all(_is_integer(label) for label in vertices):
        return Graph._trusted(len(vertices), edges, list(vertices))
    values = np.array([int(label) for label in vertices], dtype=object)
    order = np.argsort(values)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    names: list[Hashable] = values[order].tolist()
    return Graph._trusted(len(vertices), rank[edges], names)


class _Lines:
    """What a line holds, by the separator of the file: said, or that of the first line that has one."""

    def __init__(self, delimiter: str | None) -> None:
        self.said = delimiter is not None
        self.delimiter = delimiter

    def labels(self, line: str, place: str) -> list[str]:
        """Return the labels on a line, none, one or two, or raise."""
        text, mark, _ = line.partition("#")
        if mark and text and not text[-1].isspace():
            raise ValueError(f"{place}: expected a blank before the '#' of a comment, got {line.strip()!r}")
        text = text.strip() if mark or not text.strip() else text.strip(" \r\n")
        if not text:
            return []
        body, found = text, False
        if text[-1] == "}":
            before = text.partition("{")[0]
            if found := before[-1:] in (*_SEPARATORS, self.delimiter):
                body = before.rstrip(" ")
        # Quoted labels hold what they like.
        quoted = (label.replace('""', '"') for label in _QUOTED.findall(body))
        bare = _QUOTED.sub("\0", body)
        if self.delimiter is None:
            self.delimiter = next((mark for mark in _SEPARATORS if mark in bare), None)
        if found and self.delimiter is not None:
            bare = bare.removesuffix(self.delimiter)
        parts = [part.strip(" ") for part in bare.split(self.delimiter or " ") if part or self.delimiter != " "]
        wrong = "\0" in body or (len(parts) != 2 if found else len(parts) > 2)
        wrong = wrong or any(not part or part[0] == "{" for part in parts)
        wrong = wrong or ('"' in body and any(map(_HOLDS_QUOTES.match, parts)))
        if not self.said:
            wrong = wrong or any(map(_RESERVED.search, parts))
            wrong = wrong or (len(parts) == 1 and not (parts[0] == "\0" or _VERTEX.fullmatch(parts[0])))
        if wrong:
            between = "one separator (`delimiter`)" if self.delimiter is None else repr(self.delimiter)
            raise ValueError(f"{place}: expected one or two labels with {between} between them, got {line.strip()!r}")
        return [next(quoted) if part == "\0" else part for part in parts]


def _is_integer(label: str) -> bool:
    digits = label.removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits[0] != "0" or label == "0")
