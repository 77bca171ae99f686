"""What others have for a graph, taken apart: how many vertices, which edges, what both are called and weigh.

None of the libraries is imported for it: a value of theirs can only exist if it already is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._tables import is_network, is_sparse, of_library, summed
from quincunx.graphs._edges import MOST_VERTICES, keys_of, pairs_of

if TYPE_CHECKING:
    import networkx
    import pandas

#: A graph of another library.
Foreign: TypeAlias = Any
#: Number of vertices, edges, and labels.
Parts: TypeAlias = tuple[int, npt.NDArray[np.int64], list[Hashable] | None]


class Library(NamedTuple):
    """A library whose graphs are taken: whose a graph is, whether directed, its parts, an attribute of its edges."""

    name: str
    owns: Callable[[object], bool]
    is_directed: Callable[[Foreign], bool]
    parts: Callable[[Foreign], Parts]
    #: The attribute of each edge by its name, `None` where an edge has none.
    attribute: Callable[[Foreign, str], list[object]]


def _array(ends: object) -> npt.NDArray[np.int64]:
    return np.array(ends, dtype=np.int64).reshape(-1, 2)


def _of_networkx(graph: networkx.Graph) -> Parts:
    labels = list(graph.nodes)
    vertex = {label: number for number, label in enumerate(labels)}
    return len(labels), _array([vertex[label] for edge in graph.edges() for label in edge]), labels


def _of_rustworkx(graph: Foreign) -> Parts:
    numbers = list(graph.node_indices())  # with gaps where nodes were removed
    names = list(graph.nodes())
    named = all(name is not None and isinstance(name, Hashable) for name in names) and len(set(names)) == len(names)
    vertex = {number: place for place, number in enumerate(numbers)}
    ends = _array([vertex[end] for edge in graph.edge_list() for end in edge])
    return len(numbers), ends, names if named else numbers


def _payload(data: object, name: str) -> object:
    """Return what the data of an edge of rustworkx say: a number alone is its weight."""
    if isinstance(data, dict):
        return data.get(name)
    return data if name == "weight" and isinstance(data, Number) and not isinstance(data, bool) else None


def _of_igraph(graph: Foreign) -> Parts:
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    return graph.vcount(), _array(graph.get_edgelist()), names


#: The libraries, the most usual one first.
LIBRARIES = (
    Library(
        "networkx",
        is_network,
        lambda graph: bool(graph.is_directed()),
        _of_networkx,
        lambda graph, name: [value for *_, value in graph.edges(data=name)],
    ),
    Library(
        "rustworkx",
        lambda value: of_library(value, "rustworkx", "PyGraph", "PyDiGraph"),
        lambda graph: of_library(graph, "rustworkx", "PyDiGraph"),
        _of_rustworkx,
        lambda graph, name: [_payload(data, name) for data in graph.edges()],
    ),
    Library(
        "igraph",
        lambda value: of_library(value, "igraph", "Graph"),
        lambda graph: bool(graph.is_directed()),
        _of_igraph,
        lambda graph, name: graph.es[name] if name in graph.es.attributes() else [None] * graph.ecount(),
    ),
)


def library_of(value: object) -> Library | None:
    """Return the library whose graph a value is, or `None`."""
    return next((library for library in LIBRARIES if library.owns(value)), None)


def parts_of(graph: object, library: Library, name: str) -> Parts:
    """Return the parts of a graph of a library, or raise if it is directed."""
    if library.is_directed(graph):
        raise ValueError(f"`{name}` must be undirected, got a directed graph")
    return library.parts(graph)


def parts_of_frame(frame: pandas.DataFrame, source: Hashable, target: Hashable) -> Parts:
    """Return the parts of a table with one edge in each row, whose labels are the ends as they first occur."""
    columns = getattr(frame, "columns", None)
    if columns is None:
        raise TypeError(f"`frame` must be a pandas.DataFrame, got {type(frame).__name__}")
    for name, column in (("source", source), ("target", target)):
        if column not in columns:
            raise ValueError(f"`{name}` must be a column of the table, got {column!r}; it has {list(columns)}")
        if list(columns).count(column) > 1:
            raise ValueError(f"`{name}` must be one column of the table, got {column!r}, which is several")
    ends = list(zip(frame[source].to_list(), frame[target].to_list(), strict=True))
    numbers: dict[Hashable, int] = {}
    edges = np.empty((len(ends), 2), dtype=np.int64)
    for row, pair in enumerate(ends):
        for side, end in enumerate(pair):
            if not isinstance(end, Hashable):
                raise TypeError(f"`frame` must hold hashable ends, got {type(end).__name__} in row {row}")
            if end is None or type(end).__name__ == "NAType" or end != end:
                raise ValueError(f"`frame` must name both ends of each edge, got {pair!r} in row {row}")
            edges[row, side] = numbers.setdefault(end, len(numbers))
    return len(numbers), edges, list(numbers)


def parts_of_table(matrix: npt.ArrayLike, name: str) -> Parts:
    """Return the parts of a symmetric table of zeros and ones."""
    _check.fits(matrix, name)
    _check.refuse_masked(matrix, name)
    try:
        table = np.asarray(matrix)
    except ValueError:
        raise ValueError(f"`{name}` must be square, got rows of different lengths") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must hold truth values, got dtype {table.dtype}")
    neither = (table != 0) & (table != 1)
    if neither.any():
        u, v = (int(end) for end in np.argwhere(neither)[0])
        raise ValueError(f"`{name}` must hold truth values or 0 and 1, got {table[u, v]} at ({u}, {v})")
    table = table.astype(bool)
    wrong = table != table.T
    if wrong.any():
        u, v = (int(end) for end in np.argwhere(wrong)[0])
        raise ValueError(f"`{name}` must be symmetric, got {table[u, v]} at ({u}, {v}) and {table[v, u]} at ({v}, {u})")
    return len(table), np.argwhere(np.triu(table)).astype(np.int64), None


def parts_of_sparse(matrix: object, name: str) -> Parts:
    """Return the parts of the pattern of a sparse matrix."""
    if not is_sparse(matrix):
        raise TypeError(f"`{name}` must be a scipy.sparse array or matrix, got {type(matrix).__name__}")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {matrix.shape}")
    n = _check.whole(matrix.shape[0], name, maximum=MOST_VERTICES)
    entries = summed(matrix, name).tocoo()
    if entries.data.dtype.kind in "fc" and np.isnan(entries.data).any():
        raise ValueError(f"`{name}` must not hold NaN")
    stored = entries.data != 0
    rows, cols = entries.row[stored].astype(np.int64), entries.col[stored].astype(np.int64)
    ends = np.sort(np.stack([rows, cols], axis=1), axis=1)
    return n, pairs_of(np.unique(keys_of(ends, n)), n), None
