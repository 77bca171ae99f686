"""Entropies of dimers: ln M on large tori of a planar lattice.

The quotient of the lattice, a graph on the torus, is oriented so that every face has an odd number of edges against its
walk; the system over GF(2) is solvable if the number of sites is even, and the cell is doubled otherwise. With
K(z, w)[u, v] = sum of +-z^dx w^dy, the entropy of a cell is half the mean of ln |det K(z, w)| over the unit torus.
"""

import itertools
import math

import numpy as np

from quincunx import _check
from quincunx._types import Floats
from quincunx.entropy._jensen import ComplexArray, Constant, mean_log, pieces
from quincunx.entropy._solved import DIMERS, closed, dimer_log
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of


def dimer_entropy(lattice: str | UnitCell | Lattice, *, per: str = "vertex") -> Constant:
    """Compute the entropy of perfect matchings of a planar lattice on large tori.

    Parameters
    ----------
    lattice : str, UnitCell or Lattice
        The name of a lattice, its unit cell, or a lattice of whole cells (its extent and boundary do not matter). Bonds
        of a connected piece must not cross.
    per : {"vertex", "dimer", "cell"}, default "vertex"
        What the entropy is divided by: the limit of ``(1/n) ln M``, ``(2/n) ln M``, or ``(s/n) ln M`` for n vertices
        and s sites in a cell.

    Returns
    -------
    Constant
        The pair ``(value, error)``, in nats, with `method` ("solved" or "estimated") and `source`.

    Raises
    ------
    TypeError
        If `lattice` is none of these.
    ValueError
        If bonds cross, a piece does not go on in two directions, there is no perfect matching, or a word is not known.

    Notes
    -----
    With G Catalan's constant and Cl Clausen's function, the square lattice has ``2 G/pi`` per dimer, the honeycomb
    ``Cl(pi/3)/pi``, martini half of that; kagome and triangular kagome, line graphs of cubic lattices, have
    ``2 ln(2)/3``, clique insertions of cubic lattices ``ln(2)/3``. These are solved, and
    `solved_entropy` has them to a thousand digits; for others the error is an estimate.

    The value of large tori. Other boundaries may have less: the honeycomb has one perfect matching on a free
    parallelogram, whatever its size.

    References
    ----------
    .. [1] P. W. Kasteleyn (1961), The statistics of dimers on a lattice, Physica 27.
    .. [2] F. Y. Wu (2006), Dimers on two-dimensional lattices, Int. J. Mod. Phys. B 20.

    Examples
    --------
    >>> from quincunx.entropy import dimer_entropy
    >>> value, error = dimer_entropy("square", per="dimer")
    >>> round(value, 14), error < 1e-13
    (0.58312180806164, True)
    """
    cell = unit_cell_of(lattice)
    unit = _check.one_of(per, "per", ["vertex", "dimer", "cell"])
    per_vertex = {"dimer": 2, "vertex": 1, "cell": cell.num_sites}[unit]
    if (solved := closed(dimer_log, cell.kind or "", per_vertex, DIMERS)) is not None:
        return solved
    value = error = 0.0
    for piece, index in pieces(cell):
        if not index:
            raise ValueError(f"`lattice` must go on in two directions wherever it is connected, got {cell!r}")
        part = _of_piece(piece)
        value, error = value + piece.num_sites * part.value, error + piece.num_sites * part.error
    scale = per_vertex / cell.num_sites
    return Constant(value * scale, error * scale)


def _of_piece(cell: UnitCell) -> Constant:
    """Return the entropy per vertex of a cell whose lattice is connected."""
    copies = 1 + cell.num_sites % 2
    torus = Lattice(cell, (copies, 1), "torus", multigraph=True)
    signs = _orientation(torus)
    s = torus.num_vertices
    edges = np.asarray(torus.edges)
    windings = np.asarray(torus.windings)
    if torus.num_vertices == 0 or len(edges) == 0:
        raise ValueError(f"`lattice` must have a perfect matching, got {cell!r}")

    def determinant(x: Floats, w: ComplexArray) -> ComplexArray:
        z, w = np.broadcast_arrays(np.exp(1j * x), w)
        blocks = np.zeros((*z.shape, s, s), dtype=np.complex128)
        for (u, v), (dx, dy), sign in zip(edges.tolist(), windings.tolist(), signs, strict=True):
            phase = sign * z**dx * w**dy
            blocks[..., u, v] += phase
            blocks[..., v, u] -= 1 / phase
        found: ComplexArray = np.linalg.det(blocks)
        return found

    top = int(abs(windings[:, 1]).max(initial=0)) * s
    probe = np.exp(2j * np.pi * np.array([0.137, 0.31, 0.618]))
    if abs(determinant(np.array([0.4, 1.1, 2.3]), probe)).max() < 1e-9:
        raise ValueError(f"`lattice` must have a perfect matching, got {cell!r}")
    value, error = mean_log(determinant, top)
    return Constant(value / (2 * s), error / (2 * s))


def _orientation(torus: Lattice) -> list[int]:
    """Return a sign for each edge, such that every face has an odd number of edges against its walk."""
    edges = np.asarray(torus.edges).tolist()
    faces = _faces(torus)
    if len(edges) - torus.num_vertices != len(faces) or any(
        sum((1 - 2 * (dart & 1)) * w for dart in face for w in [int(torus.windings[dart // 2][axis])]) != 0
        for face in faces
        for axis in (0, 1)
    ):
        raise ValueError(f"`lattice` must be planar, its bonds must not cross, got {torus.unit_cell!r}")
    # One equation for each face: bits of the edges that are reversed, and on the right the parity that is missing.
    rows = []
    for face in faces:
        bits = 0
        for dart in face:
            bits ^= 1 << dart // 2
        against = sum(dart & 1 for dart in face)
        rows.append((bits, (against + 1) & 1))
    reversed_edges = 0
    pivots: list[tuple[int, int, int]] = []
    for bits, parity in rows:
        for pivot, pivot_bits, pivot_parity in pivots:
            if bits >> pivot & 1:
                bits, parity = bits ^ pivot_bits, parity ^ pivot_parity
        if bits:
            pivots.append((bits.bit_length() - 1, bits, parity))
        elif parity:
            raise ValueError(f"`lattice` must have an even number of sites on each part, got {torus.unit_cell!r}")
    for pivot, bits, parity in reversed(pivots):
        if (bits & reversed_edges).bit_count() + parity & 1:
            reversed_edges |= 1 << pivot
    return [-1 if reversed_edges >> edge & 1 else 1 for edge in range(len(edges))]


def _faces(torus: Lattice) -> list[list[int]]:
    """Walk the faces, darts 2e and 2e + 1 of edge e, with the inside on the left."""
    around: list[list[tuple[float, int]]] = [[] for _ in range(torus.num_vertices)]
    for edge, ((u, v), (x, y)) in enumerate(
        zip(np.asarray(torus.edges).tolist(), np.asarray(torus.displacements).tolist(), strict=True)
    ):
        around[u].append((math.atan2(y, x), 2 * edge))
        around[v].append((math.atan2(-y, -x), 2 * edge + 1))
    clockwise = {}
    for darts in around:
        darts.sort()
        if any(b[0] - a[0] < 1e-9 for a, b in itertools.pairwise(darts)):
            raise ValueError(f"`lattice` must be planar, got two bonds in one direction in {torus.unit_cell!r}")
        for i, (_, dart) in enumerate(darts):
            clockwise[dart] = darts[i - 1][1]
    faces, seen = [], set()
    for start in clockwise:
        if start not in seen:
            face, dart = [], start
            while dart not in seen:
                seen.add(dart)
                face.append(dart)
                dart = clockwise[dart ^ 1]
            faces.append(face)
    return faces
