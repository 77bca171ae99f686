"""What trees and perfect matchings are counted on, as it crosses to the core: a cell, a drawing, or edges."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx._types import Ints
from quincunx.counting._problem import as_listed
from quincunx.graphs import Graph
from quincunx.lattices import Lattice
from quincunx.lattices._bonds import Bond

#: A graph with places for its vertices, or with the darts at each vertex counterclockwise.
Drawing: TypeAlias = tuple[int, Ints, npt.NDArray[np.float64], Ints] | tuple[int, Ints, list[list[int]]]

# Roots of unity beyond this order have too few primes, or too long a table.
_LARGEST_ORDER = 2**20
# Strips of larger cells are eliminated more slowly than the whole.
_WIDEST_CELL = 24


def as_square(graph: object) -> tuple[int, int, tuple[bool, bool]] | None:
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


def as_torus(graph: object) -> tuple[int, list[Bond], tuple[int, int], int] | None:
    """Return the cell of a lattice on a torus, where its wave vectors are fewer than its eliminations are long."""
    if not isinstance(graph, Lattice) or graph.unit_cell is None or graph.pbc != (True, True):
        return None
    rows, cols = graph.extent
    order = rows * cols if graph.twist else int(np.lcm(rows, cols))
    if order > _LARGEST_ORDER or graph.unit_cell.num_sites > 24:
        return None
    return graph.unit_cell.num_sites, list(graph.unit_cell.bonds), graph.extent, graph.twist


def as_cylinder(graph: object) -> tuple[int, list[Bond], tuple[int, int]] | None:
    """Return the cell of a lattice on a cylinder and its extents, the open one first, where strips are narrow."""
    if not isinstance(graph, Lattice) or graph.unit_cell is None or sum(graph.pbc) != 1:
        return None
    cell, around = graph.unit_cell, graph.pbc.index(True)
    if graph.extent[around] > _LARGEST_ORDER or cell.num_sites > _WIDEST_CELL:
        return None
    if around == 1:
        return cell.num_sites, list(cell.bonds), graph.extent
    turned = [(u, v, (dy, dx)) for u, v, (dx, dy) in cell.bonds]
    return cell.num_sites, turned, (graph.extent[1], graph.extent[0])


def as_insertion(graph: object) -> tuple[int, Ints, list[int]] | None:
    """Return what cliques were inserted into: a graph, and at each vertex the ends whose link was cut afterwards."""
    if isinstance(graph, Lattice) and graph.unit_cell is not None:
        below = graph.unit_cell._inserted_into()
        if below is not None:
            base = Lattice(below, graph.extent, pbc=graph.pbc, twist=graph.twist, multigraph=True)
            if (base.edges[:, 0] == base.edges[:, 1]).any():
                return None
            whole = np.tile(below.degrees(), graph.extent[0] * graph.extent[1])
            return base.num_vertices, base.edges, (whole - base.graph.degrees()).tolist()
    return _insertion_of_graph(as_listed(graph))


def _insertion_of_graph(graph: Graph) -> tuple[int, Ints, list[int]] | None:
    """Undo `clique_insert`: links 2e, 2e + 1 come first, what is left must be cliques."""
    ends, links = graph.num_vertices, graph.num_vertices // 2
    if ends == 0 or ends % 2 or not np.array_equal(graph.edges[:links], np.arange(ends).reshape(links, 2)):
        return None
    inner = graph.edges[links:]
    if (inner[:, 0] == inner[:, 1]).any() or len(np.unique(np.sort(inner, axis=1), axis=0)) < len(inner):
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined = coo_array((np.ones(len(inner)), (inner[:, 0], inner[:, 1])), shape=(ends, ends))
    count, clique = connected_components(joined, directed=False)
    sizes = np.bincount(clique, minlength=count)
    if int((sizes * (sizes - 1) // 2).sum()) != len(inner):
        return None
    edges = clique.astype(np.int64).reshape(links, 2)
    return None if (edges[:, 0] == edges[:, 1]).any() else (int(count), edges, [0] * int(count))


def as_drawn(graph: object) -> Drawing | None:
    """Return a graph with a drawing on a plane, cylinder or torus, or `None` where there is none to be had."""
    if isinstance(graph, Lattice):
        return graph.num_vertices, graph.edges, graph.displacements, graph.windings
    found = as_listed(graph)
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
