"""Eigenvalues of graphs and lattices, block by block where an axis is closed.

On a torus the matrix falls into one Hermitian block for each wave vector k,

    H(k)[u, v] = sum over bonds (u, v, (dx, dy)) of exp(i k.(dx, dy)) + h.c.,
    k = (2 pi a/L1, (2 pi b + k_1 twist)/L2),

on a cylinder into one block for each wave vector round it; k and -k have the same eigenvalues.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._aside import apart, aside
from quincunx._types import Floats, Ints
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike, as_graph
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, weights_of
from quincunx.lattices import Lattice, UnitCell

if TYPE_CHECKING:
    import scipy.sparse

ComplexArray: TypeAlias = npt.NDArray[np.complex128]

# Numbers in the blocks that are solved at once, in tens of milliseconds: an interrupt is answered between two batches.
_BATCH = 1 << 16


def bloch_hamiltonian(unit_cell: UnitCell | Lattice, k: npt.ArrayLike, *, laplacian: bool = False) -> ComplexArray:
    """Return the Bloch Hamiltonians of a periodic lattice.

    ``H(k)[u, v]`` is the sum of ``exp(i*k.(dx, dy))`` over the bonds from site u to site v, plus the Hermitian
    conjugate.

    Parameters
    ----------
    unit_cell : UnitCell or Lattice
        The cell, or a lattice made of whole cells.
    k : array_like of float, shape (..., 2)
        Wave vectors, in radians per cell along each axis.
    laplacian : bool, default False
        Whether to return the blocks of the Laplacian instead of those of the adjacency matrix.

    Returns
    -------
    ndarray of complex128, shape (..., num_sites, num_sites)

    Raises
    ------
    TypeError, ValueError
        If `unit_cell` is neither, or `k` does not hold pairs of finite numbers.

    Examples
    --------
    >>> from quincunx.lattices import UnitCell
    >>> from quincunx.spectra import bloch_hamiltonian
    >>> float(bloch_hamiltonian(UnitCell.named("square"), (0, 0))[0, 0].real)
    4.0
    """
    cell = unit_cell.unit_cell if isinstance(unit_cell, Lattice) else unit_cell
    if not isinstance(cell, UnitCell):
        raise TypeError(f"`unit_cell` must be a UnitCell or a Lattice of whole cells, got {type(unit_cell).__name__}")
    waves = _check.reals(k, "k")
    if waves.shape[-1:] != (2,):
        raise ValueError(f"`k` must have shape (..., 2), got {waves.shape}")
    return _blocks(cell, waves, _check.flag(laplacian, "laplacian"))


def _blocks(cell: UnitCell, waves: Floats | Ints, laplacian: bool, turn: int | None = None) -> ComplexArray:
    """Return the blocks of wave vectors in radians, or in whole parts of a turn, whose multiples lose no digits."""
    s = cell.num_sites
    blocks = np.zeros((*waves.shape[:-1], s, s), dtype=np.complex128)
    for u, v, (dx, dy) in cell.bonds:
        angle = waves[..., 0] * dx + waves[..., 1] * dy
        phase = np.exp(1j * angle if turn is None else 2j * np.pi / turn * (angle % turn))
        blocks[..., u, v] += phase
        blocks[..., v, u] += phase.conj()
    if not laplacian:
        return blocks
    return np.diag(np.array(cell.degrees(), dtype=float)) - blocks


def waves_of(extent: tuple[int, int], twist: int) -> tuple[Ints, Ints]:
    """Return one wave vector of each pair k, -k on a torus, in parts of a turn, and how often it counts."""
    rows, cols = extent
    a, b = np.divmod(np.arange(rows * cols), cols)
    opposite = (-a % rows) * cols + (-b - np.where(a > 0, twist, 0)) % cols
    first = np.arange(rows * cols)
    chosen = first <= opposite
    times = np.where(first == opposite, 1, 2)[chosen]
    return np.stack([a * cols, b * rows + a * twist], axis=1)[chosen] % (rows * cols), times


def _of_torus(lattice: Lattice, laplacian: bool) -> Floats:
    assert lattice.unit_cell is not None
    waves, times = waves_of(lattice.extent, lattice.twist)
    s, turn = lattice.unit_cell.num_sites, lattice.extent[0] * lattice.extent[1]
    if s == 1:
        return np.repeat(_blocks(lattice.unit_cell, waves, laplacian, turn)[:, 0, 0].real, times)
    step = max(1, _BATCH // (s * s))
    found = [
        aside(np.linalg.eigvalsh, _blocks(lattice.unit_cell, waves[i : i + step], laplacian, turn))
        for i in range(0, len(waves), step)
    ]
    return np.repeat(np.concatenate(found), times, axis=0).ravel()


def _of_cylinder(lattice: Lattice, laplacian: bool) -> Floats:
    """Eigenvalues of a lattice with one closed axis: a strip of cells for each wave vector round it."""
    cell = lattice.unit_cell
    assert cell is not None
    around = 1 if lattice.pbc[1] else 0
    high, circumference = lattice.extent[1 - around], lattice.extent[around]
    s = cell.num_sites
    _check.room(40 * (high * s) ** 2, f"the spectrum of {high * s} vertices")
    found = []
    for a in range(circumference // 2 + 1):
        block = np.zeros((high * s, high * s), dtype=np.complex128)
        degree = np.zeros(high * s)
        for u, v, offset in cell.bonds:
            across, along = offset[1 - around], offset[around]
            phase = np.exp(2j * np.pi * (a * along % circumference) / circumference)
            rows = np.arange(max(0, -across), min(high, high - across))
            start, end = rows * s + u, (rows + across) * s + v
            np.add.at(block, (start, end), phase)
            np.add.at(block, (end, start), np.conj(phase))
            np.add.at(degree, start, 1)
            np.add.at(degree, end, 1)
        if laplacian:
            block = np.diag(degree) - block
        values = aside(np.linalg.eigvalsh, block)
        found += [values] * (1 if a in (0, circumference / 2) else 2)
    return np.concatenate(found)


def _of_square(lattice: Lattice, laplacian: bool) -> Floats:
    """Eigenvalues of a square lattice: sums of those of two paths or cycles."""
    axes = []
    for length, closed in zip(lattice.extent, lattice.pbc, strict=True):
        angle = np.pi * np.arange(length) / length
        if laplacian:
            axes.append(4 * np.sin(angle if closed else angle / 2) ** 2)
        elif closed:
            axes.append(2 * np.cos(2 * angle))
        else:
            axes.append(2 * np.sin(np.pi * np.arange(length - 1, -length, -2) / (2 * (length + 1))))
    sums: Floats = np.add.outer(*axes).ravel()
    return sums


def _of_graph(graph: Graph, laplacian: bool, weights: list[Fraction] | None) -> Floats:
    n = graph.num_vertices
    _check.room(40 * n * n, f"the spectrum of {n} vertices")
    if n == 0:
        return np.empty(0)
    matrix = laplacian_of(graph, weights) if laplacian else adjacency_of(graph, weights)
    # The dense matrix is made apart, too: its pages take the system tenths of a second.
    return apart(_solved, matrix) if n > 300 else _solved(matrix)


def _solved(matrix: scipy.sparse.csr_array) -> Floats:
    values: Floats = np.linalg.eigvalsh(matrix.toarray())
    return values


def adjacency_of(graph: Graph, weights: list[Fraction] | None) -> scipy.sparse.csr_array:
    """Return the adjacency matrix in floats, as `Graph.to_scipy` does, with the weight of each edge."""
    _check.room(100 * graph.num_vertices, "the matrix of so many vertices")
    if weights is None:
        return graph.to_scipy().astype(float)
    from scipy.sparse import coo_array

    values, n = np.array([_check.real(w, "weight") for w in weights]), graph.num_vertices
    if values.size and not values.max() < sys.float_info.max / (4 * values.size):  # above all degrees and energies
        raise ValueError(f"`weight` must leave sums within the range of a double, got {values.max()}")
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    return coo_array((np.tile(values, 2), (both[0], both[1])), shape=(n, n)).tocsr()


def laplacian_of(graph: Graph, weights: list[Fraction] | None) -> scipy.sparse.csr_array:
    """Return the Laplacian matrix in floats."""
    from scipy.sparse import diags_array

    adjacency = adjacency_of(graph, weights)
    adjacency -= diags_array(adjacency.diagonal())  # what a loop adds to a degree would take digits along
    return (diags_array(adjacency.sum(axis=1)) - adjacency).tocsr()


def components(graph: Graph, weights: list[Fraction] | None) -> int:
    """Return the number of components, of the edges of positive weight."""
    from scipy.sparse.csgraph import connected_components

    adjacency = adjacency_of(graph, None if weights is None else [Fraction(bool(w)) for w in weights])
    adjacency.eliminate_zeros()
    return int(connected_components(adjacency, directed=False)[0])


def spectrum(graph: GraphLike, *, weight: Weight | Unweighted = NOT_SAID, laplacian: bool = False) -> Floats:
    """Compute all eigenvalues of a graph's adjacency matrix or Laplacian.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Lattices with a closed axis are solved block by block.
    weight : None, str or sequence of number, optional
        The weight of each edge: the name of an attribute of the edges of a networkx graph (1 where an edge has none of
        that name), ``"weight"`` for the entries of a sparse matrix (half of them for loops, as in `Graph.to_scipy`), or
        a number for each edge in order; >= 0. `None` counts each edge as one. Where nothing is said, a networkx graph
        with an attribute ``"weight"`` that is not 1 is refused, and so is a sparse matrix with such an entry.
    laplacian : bool, default False
        Whether the eigenvalues are those of the Laplacian ``D - A``.

    Returns
    -------
    ndarray of float64, shape (num_vertices,)
        Rising; absolute error near 1e-14 of the largest degree.

    Raises
    ------
    TypeError, ValueError
        If `graph` is none of these; if weights are not said, negative or not finite.
    TooLargeError
        If a dense block does not fit the memory.

    Notes
    -----
    A torus of N cells of s sites costs N/2 dense solves of size s; a cylinder one of size ``s*L`` for each two wave
    vectors; a free square lattice nothing but cosines; any other graph one dense solve.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.spectra import spectrum
    >>> spectrum(lattices.honeycomb(1, 1, "torus", multigraph=True)).round(12).tolist()
    [-3.0, 3.0]
    """
    return np.sort(eigenvalues(graph, laplacian, weights_of(graph, weight)))


def eigenvalues(graph: GraphLike, laplacian: bool = False, weights: list[Fraction] | None = None) -> Floats:
    """Return the eigenvalues in any order."""
    laplacian = _check.flag(laplacian, "laplacian")
    if weights is None and isinstance(graph, Lattice) and graph.unit_cell is not None:
        if graph.kind == "square" and not graph.twist:
            return _of_square(graph, laplacian)
        if all(graph.pbc):
            return _of_torus(graph, laplacian)
        if any(graph.pbc):
            return _of_cylinder(graph, laplacian)
    return _of_graph(as_graph(graph), laplacian, weights)
