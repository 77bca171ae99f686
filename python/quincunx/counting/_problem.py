"""What is counted on, as it crosses to the core: a lattice by a word and two integers, a graph by its edges."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx.graphs._graph import as_graph
from quincunx.lattices import Lattice

Problem: TypeAlias = "tuple[str, int, int, str] | tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64] | None]"

# Lattices with a kernel of their own in the core.
KERNELS = frozenset({"square", "king", "triangular", "4-8-8"})


def as_problem(graph: Any, order: Any = None) -> Problem:
    """Return what crosses to the core for a graph, a lattice, or anything that can be made a graph."""
    if isinstance(graph, Lattice) and order is None and graph.kind in KERNELS:
        rows, cols = graph.extent
        if graph.boundary is None:
            # Closed in the first extent only: a cylinder, seen from the side.
            return (graph.kind, cols, rows, "cylinder")
        return (graph.kind, rows, cols, graph.boundary)
    found = as_graph(graph)
    return (found.num_vertices, np.asarray(found.edges), None if order is None else _order(order, found))


def _order(order: Any, graph: Any) -> npt.NDArray[np.int64]:
    """Return an order of the vertices, given by their labels, as an array of vertex numbers."""
    labels = list(order)
    if graph.labels is not None:
        number = {label: i for i, label in enumerate(graph.labels)}
        unknown = [label for label in labels if label not in number]
        if unknown:
            raise ValueError(f"`order` must list the vertices of the graph, got the unknown vertex {unknown[0]!r}")
        labels = [number[label] for label in labels]
    if sorted(labels) != list(range(graph.num_vertices)):
        raise ValueError(f"`order` must list each of the {graph.num_vertices} vertices once, got {len(labels)} entries")
    return np.asarray(labels, dtype=np.int64)
