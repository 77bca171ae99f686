"""Graphs of other libraries, taken apart: how many vertices, which edges, what both are called and weigh.

None of the libraries is imported for it: a value of theirs can only exist if it already is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

#: A graph of another library.
Foreign: TypeAlias = Any
#: Number of vertices, edges, and labels.
Parts: TypeAlias = tuple[int, npt.NDArray[np.int64], list[Hashable] | None]


def is_networkx(value: object) -> TypeGuard[networkx.Graph]:
    """Whether a value is a graph of networkx."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(value, networkx.Graph)


def is_sparse(value: object) -> TypeGuard[scipy.sparse.sparray]:
    """Whether a value is a sparse array or matrix of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def _is_rustworkx(value: object) -> bool:
    rustworkx = sys.modules.get("rustworkx")
    return rustworkx is not None and isinstance(value, (rustworkx.PyGraph, rustworkx.PyDiGraph))


def _is_igraph(value: object) -> bool:
    igraph = sys.modules.get("igraph")
    return igraph is not None and isinstance(value, igraph.Graph)


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
        is_networkx,
        lambda graph: bool(graph.is_directed()),
        _of_networkx,
        lambda graph, name: [value for *_, value in graph.edges(data=name)],
    ),
    Library(
        "rustworkx",
        _is_rustworkx,
        lambda graph: isinstance(graph, sys.modules["rustworkx"].PyDiGraph),
        _of_rustworkx,
        lambda graph, name: [_payload(data, name) for data in graph.edges()],
    ),
    Library(
        "igraph",
        _is_igraph,
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
