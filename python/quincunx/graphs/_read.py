"""Edge lists in text files."""

import contextlib
import os
import re
from collections.abc import Hashable, Iterable

import numpy as np

from quincunx.graphs._graph import Graph

#: Nothing, a label, or two labels and perhaps the attributes of their edge.
_LINE = re.compile(r"(?:([^\s,{][^\s,]*)(?:(?:\s*,\s*|\s+)([^\s,{][^\s,]*)(?:(?:\s*,\s*|\s+)\{.*\})?)?)?")


def read_edges(file: str | os.PathLike[str] | Iterable[str]) -> Graph:
    """Read a graph from a text file with one edge per line.

    A line holds the labels of the two ends, separated by white space or a comma. A line with a single label declares a
    vertex, which is how an isolated vertex is written. From ``#`` on a line is a comment, and blank lines are skipped.
    A dictionary of attributes after an edge, as ``networkx.write_edgelist`` writes it, is passed over. An edge listed
    twice is a double edge, and an edge from a label to itself is a loop.

    If every label is a plain integer (``7`` or ``-7``, but not ``07``), labels are ints and vertices are in rising
    order, so that a file with the labels ``0..n-1`` gives vertices of the same numbers. Otherwise labels are strings
    and vertices are in the order in which they first appear, as in ``networkx.read_edgelist``.

    Parameters
    ----------
    file : str, path or iterable of str
        The name of a file in UTF-8, or an open text file or any other iterable of lines.

    Returns
    -------
    Graph
        With the labels of the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError
        If `file` is neither a path nor an iterable of str.
    ValueError
        If a line does not hold one or two labels, or is not text in UTF-8. The message has the file, the number of the
        line and its content.

    Examples
    --------
    >>> from quincunx.graphs import read_edges
    >>> graph = read_edges(["# a triangle and a vertex of its own", "a b", "b, c", "c a", "d"])
    >>> graph
    <Graph: 4 vertices, 3 edges>
    >>> graph.labels
    ('a', 'b', 'c', 'd')
    """
    if isinstance(file, (str, os.PathLike)):
        name, source = os.fspath(file), open(file, encoding="utf-8-sig")
    elif isinstance(file, Iterable) and not isinstance(file, (bytes, bytearray)):
        name, source = str(getattr(file, "name", "line")), contextlib.nullcontext(file)  # type: ignore[assignment]
    else:
        raise TypeError(f"`file` must be a path or an iterable of lines, got {type(file).__name__}")
    vertices: dict[str, int] = {}
    ends: list[int] = []
    number = 0
    with source as lines:
        try:
            for number, line in enumerate(lines, 1):
                if not isinstance(line, str):
                    raise TypeError(f"`file` must give lines of text, got {type(line).__name__}")
                labels = _labels(line)
                if labels is None:
                    raise ValueError(f"{name}, line {number}: expected one or two labels, got {line.strip()!r}")
                numbers = [vertices.setdefault(label, len(vertices)) for label in labels]
                if len(numbers) == 2:
                    ends += numbers
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, after line {number}: not text in UTF-8 ({error.reason})") from None
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)
    if not all(_is_integer(label) for label in vertices):
        return Graph._trusted(len(vertices), edges, list(vertices))
    values = np.array([int(label) for label in vertices], dtype=object)
    order = np.argsort(values)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    names: list[Hashable] = values[order].tolist()
    return Graph._trusted(len(vertices), rank[edges], names)


def _labels(line: str) -> list[str] | None:
    """Return the labels on a line: none, one or two; `None` if the line is not of that form."""
    line = line.partition("#")[0].strip()
    found = _LINE.fullmatch(line)
    return [label for label in found.groups() if label is not None] if found else None


def _is_integer(label: str) -> bool:
    digits = label.removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits[0] != "0" or label == "0")
