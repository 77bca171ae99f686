"""What is counted on, as it crosses to the core: a lattice by a word and two integers, a graph by its edges."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np

from quincunx import _check
from quincunx._types import Ints
from quincunx.graphs import Graph
from quincunx.graphs._graph import as_graph
from quincunx.graphs._names import Names
from quincunx.lattices import Lattice
from quincunx.lattices._cut import CutLattice
from quincunx.lattices._registry import LATTICES

Problem: TypeAlias = "tuple[str, int, int, str] | tuple[int, Ints, Ints | None]"

#: An order of the vertices, by their labels.
Order: TypeAlias = Sequence[Hashable] | None

# Lattices with an operator between rows of their own in the core.
KERNELS = frozenset(row.name for row in LATTICES.values() if row.kernel)

# Bytes for each vertex and edge where a graph is worked on in Python: entries of lists, and what they refer to.
_VERTEX, _EDGE = 400, 200
# Bytes that are taken without asking the system: the estimate is a rough one.
_SMALL = 1 << 26


def as_listed(graph: object) -> Graph:
    """Return a graph that is worked on vertex by vertex, unless that takes more memory than there is."""
    found = as_graph(graph)
    if (needed := _VERTEX * found.num_vertices + _EDGE * found.num_edges) > _SMALL:
        _check.room(needed, "listing the vertices of the graph")
    return found


def as_named(graph: object) -> tuple[Graph, Names]:
    """Return a graph that is worked on vertex by vertex, and the names of its vertices and edges."""
    found = as_listed(graph)
    return found, Names(graph, found)


def as_problem(graph: object, order: object = None) -> Problem:
    """Return what crosses to the core for a graph, a lattice, or anything that can be made a graph."""
    if order is None and _has_kernel(graph):
        (rows, cols), boundary = graph.extent, graph.boundary
        if boundary is None:
            # Closed in the first extent only: a cylinder, seen from the side.
            return (graph.name, cols, rows, "cylinder")
        return (graph.name, rows, cols, boundary)
    found = as_graph(graph)
    return (found.num_vertices, np.asarray(found.edges), None if order is None else vertex_order(order, found))


def _has_kernel(graph: object) -> TypeGuard[Lattice]:
    """Return whether the core has an operator between the rows of a lattice, and it is the section that this counts."""
    if not isinstance(graph, Lattice) or graph.kind not in KERNELS or graph.twist:
        return False
    return LATTICES[graph.kind].cut == isinstance(graph, CutLattice)


def vertex_order(order: object, graph: Graph) -> Ints:
    """Return an order of the vertices, given by their labels, as an array of vertex numbers."""
    if not isinstance(order, Iterable):
        raise TypeError(f"`order` must be a sequence of vertices, got {type(order).__name__}")
    number = {label: i for i, label in enumerate(graph.labels)}
    found = []
    for label in order:
        try:
            found.append(number[label])
        except KeyError:
            message = f"`order` must list the vertices of the graph, got the unknown vertex {label!r}"
            raise ValueError(message) from None
        except TypeError:
            raise TypeError(f"`order` must list vertices, got {type(label).__name__}") from None
    if sorted(found) != list(range(graph.num_vertices)):
        raise ValueError(f"`order` must list each of the {graph.num_vertices} vertices once, got {len(found)} entries")
    return np.asarray(found, dtype=np.int64)
