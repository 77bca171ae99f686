"""What trees and perfect matchings are counted on, as it crosses to the core: a cell, a drawing, or edges."""

from typing import Any

import numpy as np

from quincunx.graphs import Graph
from quincunx.graphs._graph import as_graph
from quincunx.lattices import Lattice

# Roots of unity beyond this order have too few primes, or too long a table.
_LARGEST_ORDER = 2**20


def as_square(graph: Any) -> tuple[int, int, tuple[bool, bool]] | None:
    """Return the extents of a square lattice and its closed axes, as the closed form wants them."""
    if not isinstance(graph, Lattice) or graph.kind != "square" or graph.twist:
        return None
    rows, cols = graph.extent
    if graph.pbc == (True, False):
        rows, cols = cols, rows
    closed = (all(graph.pbc), any(graph.pbc))
    if closed != (False, True) and cols > rows:
        rows, cols = cols, rows  # fewer factors
    return (rows, cols, closed) if 2 * cols <= _LARGEST_ORDER else None


def as_torus(graph: Any) -> tuple[int, list[Any], tuple[int, int], int] | None:
    """Return the cell of a lattice on a torus, where its wave vectors are fewer than its eliminations are long."""
    if not isinstance(graph, Lattice) or graph.unit_cell is None or graph.pbc != (True, True):
        return None
    rows, cols = graph.extent
    order = rows * cols if graph.twist else int(np.lcm(rows, cols))
    if order > _LARGEST_ORDER or graph.unit_cell.num_sites > 24:
        return None
    return graph.unit_cell.num_sites, list(graph.unit_cell.bonds), graph.extent, graph.twist


def as_drawn(graph: Any) -> Any:
    """Return a graph with a drawing on a plane, cylinder or torus, or `None` where there is none to be had."""
    if isinstance(graph, Lattice):
        return graph.num_vertices, graph.edges, graph.displacements, graph.windings
    found = as_graph(graph)
    rotation = _planar_rotation(found)
    return None if rotation is None else (found.num_vertices, found.edges, rotation)


def _planar_rotation(graph: Graph) -> list[list[int]] | None:
    """Return the darts at each vertex counterclockwise, by networkx; `None` for a graph that is not planar."""
    try:
        import networkx
    except ImportError:
        return None
    ends = graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]
    simple = networkx.Graph()
    simple.add_nodes_from(range(graph.num_vertices))
    simple.add_edges_from(ends.tolist())
    planar, embedding = networkx.check_planarity(simple)
    if not planar:
        return None
    # Parallel edges lie side by side: counterclockwise in their order at one end, in the opposite order at the other.
    darts: dict[tuple[int, int], list[int]] = {}
    loops: dict[int, list[int]] = {}
    for edge, (u, v) in enumerate(graph.edges.tolist()):
        if u == v:
            loops.setdefault(u, []).extend((2 * edge, 2 * edge + 1))
            continue
        forward = u < v
        low, high = (2 * edge, 2 * edge + 1) if forward else (2 * edge + 1, 2 * edge)
        darts.setdefault((min(u, v), max(u, v)), []).append(low)
        darts.setdefault((max(u, v), min(u, v)), []).insert(0, high)
    return [
        [dart for u in reversed(list(embedding.neighbors_cw_order(v))) for dart in darts[v, u]] + loops.get(v, [])
        for v in range(graph.num_vertices)
    ]
