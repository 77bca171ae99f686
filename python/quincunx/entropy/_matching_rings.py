"""Bounds of matchings by rings and strips of few columns of cells: theorems E and A' for lattices in columns.

For lattices with a row operator of their matchings: bonds leave a cell to the four cells beside it only, and a mirror
that exchanges left and right maps each cell to itself. A strip of k columns of whole cells, dimers across both of its
outer lines weighted by g > 0, is ``<v, C**k v>`` a row, with C the symmetric operator between such lines and ``v =
b**(dimers)``.
"""

import itertools
from fractions import Fraction

from quincunx import _core
from quincunx.entropy._numbers import root_above, root_below
from quincunx.entropy._strips import PLACES, Proof, Root, best_boundary, evidence_of, periodic_operator, perron_root
from quincunx.lattices import UnitCell


def _section(cell: UnitCell, columns: int, *, ring: bool) -> tuple[_core.PeriodicOperator, list[int]]:
    """Return the operator of independent sets of dimers on some columns of cells, and the dimers on the outer lines."""
    sites = cell.num_sites
    dimers: list[tuple[tuple[int, int], ...]] = []  # ends of a dimer: the number of a vertex, its row
    outer = []
    for column in range(columns if ring else columns + 1):
        for u, v, (dx, dy) in cell.bonds:
            # Towards the right and upwards; a bond of the cell on the right of a line belongs to that cell.
            (a, b, step) = (u, v, dy) if dx >= 0 else (v, u, -dy)
            left = column - abs(dx)
            ends = [((left % columns if ring else left), a, 0), (column, b, step)]
            inside = [(sites * c + site, row) for c, site, row in ends if 0 <= c < columns]
            if len(inside) == 2 or (inside and dx):
                if len(inside) == 1:
                    outer.append(len(dimers))
                dimers.append(tuple(inside))
    bonds = []
    for (i, one), (j, two) in itertools.product(enumerate(dimers), repeat=2):
        for (vertex, row), (other, there) in itertools.product(one, two):
            # The dimer j moved up by so many rows shares the vertex.
            step = row - there
            if vertex == other and ((i, 0) < (j, step)):
                bonds.append((i, j, step))
    return periodic_operator(len(dimers), sorted(set(bonds))), outer


def matching_ring_bounds(
    cell: UnitCell, width: int, power: int, boundary: float | None, activity: Fraction, precision: str
) -> Proof:
    """Return both ends, the theorem and the evidence for rings and strips of up to `width` columns of cells."""
    narrow = (width - power) // 2 * 2
    if narrow < 2:
        raise ValueError(f"`power` must be at most the width less 2, got {power} and a width of {width}")

    def strip(columns: int, g: Fraction, how: str) -> Root:
        operator, outer = _section(cell, columns, ring=False)
        weights = [g if dimer in outer else activity for dimer in range(operator.sites)]
        return perron_root(operator, weights, how)

    if boundary is None:

        def quotient(b: float) -> float:
            g = Fraction(b) * activity
            return float(strip(3, g, "double").lower / strip(2, g, "double").upper)

        boundary = best_boundary(quotient)
    g = Fraction(boundary) * activity
    above, below = strip(narrow + power, g, precision), strip(narrow, g, precision)
    ring, _ = _section(cell, width, ring=True)
    closed = perron_root(ring, [activity] * ring.sites, precision)
    places = PLACES[precision]
    evidence = {"ring": width, "strips": (narrow + power, narrow), "power": power}
    evidence |= evidence_of(boundary, above, below, ring, closed, precision)
    lower = root_below(above.lower / below.upper, power * cell.num_sites, places)
    return lower, root_above(closed.upper, width * cell.num_sites, places), "E and A'", evidence
