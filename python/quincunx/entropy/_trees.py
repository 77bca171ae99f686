"""Entropies of spanning trees: ln N / n on large pieces of a lattice."""

import numpy as np

from quincunx._types import Floats
from quincunx.entropy._jensen import ComplexArray, Constant, mean_log, pieces
from quincunx.entropy._solved import TREES, closed, tree_log
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of


def spanning_tree_entropy(lattice: str | UnitCell | Lattice) -> Constant:
    """Compute the entropy of spanning trees of a lattice: the limit of ``ln N / n`` for n vertices.

    ``z = (1/s) (1/4 pi**2) int ln det L(k) dk`` with the Bloch Laplacian ``L(k)`` of a cell of s sites.

    Parameters
    ----------
    lattice : str, UnitCell or Lattice
        The name of a lattice, its unit cell, or a lattice of whole cells (its extent and boundary do not matter).

    Returns
    -------
    Constant
        The pair ``(value, error)``, in nats per vertex, with `method` ("solved" or "estimated") and `source`.

    Raises
    ------
    TypeError
        If `lattice` is none of these.
    ValueError
        If the lattice is not connected by its bonds, so that there is no spanning tree, or the name is not known.

    Notes
    -----
    With G Catalan's constant and Cl Clausen's function, the square lattice has ``4 G/pi``, the triangular one
    ``5 Cl(pi/3)/pi`` and the honeycomb half of it. Clique insertions of a regular lattice follow from the lattice
    below, ``z(C(H)) = (z(H) + (r/2 - 1) ln(r (r + 2)))/r``, line graphs from
    ``z(L(G)) = (2/r) z(G) + (1 - 2/r) ln(2 r)``. These are solved, and `solved_entropy`
    has them to a thousand digits.

    For all others the inner integral is taken by Jensen's formula, the outer one by the tanh-sinh rule, and the error
    is what halving the step changed and, four times over, what rounding changed in each term: no proof.

    References
    ----------
    .. [1] R. Shrock, F. Y. Wu (2000), Spanning trees on graphs and lattices in d dimensions, J. Phys. A 33.

    Examples
    --------
    >>> from quincunx.entropy import spanning_tree_entropy
    >>> value, error = spanning_tree_entropy("square")
    >>> round(value, 13), error < 1e-14
    (1.1662436161233, True)
    """
    cell = unit_cell_of(lattice)
    if (solved := closed(tree_log, cell.kind or "", 1, TREES)) is not None:
        return solved
    copies = [index for _, index in pieces(cell)]
    if copies != [1]:
        number = sum(copies) if all(copies) else "infinitely many"
        raise ValueError(f"`lattice` must be connected, got {cell!r}, whose bonds make {number} pieces")
    s = cell.num_sites
    top = sum(max((abs(dy) for u, v, (_, dy) in cell.bonds if site in (u, v)), default=0) for site in range(s))

    def determinant(x: Floats, w: ComplexArray) -> ComplexArray:
        found: ComplexArray = np.linalg.det(laplacian(cell, np.exp(1j * x), w))
        return found

    value, error = mean_log(determinant, top)
    return Constant(value / s, error / s)


def laplacian(cell: UnitCell, z: ComplexArray, w: ComplexArray) -> ComplexArray:
    """Return the Bloch Laplacians at ``z`` and ``w``, which are broadcast."""
    s = cell.num_sites
    z, w = np.broadcast_arrays(z, w)
    blocks = np.zeros((*z.shape, s, s), dtype=np.complex128)
    for u, v, (dx, dy) in cell.bonds:
        phase = z**dx * w**dy
        blocks[..., u, v] -= phase
        blocks[..., v, u] -= 1 / phase
        blocks[..., u, u] += 1
        blocks[..., v, v] += 1
    return blocks
