"""Bounds by strips and rings: theorems A and A' across mirror lines, theorem B for inserted cliques."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from quincunx import _check, _core
from quincunx._types import Facts
from quincunx.entropy._numbers import root_above, root_below, zeros
from quincunx.lattices._registry import LATTICES, below_insertions

Point: TypeAlias = tuple[float, float]

#: Both ends, the theorem and the evidence.
Proof: TypeAlias = tuple[Decimal, Decimal, str, Facts]

#: Decimals of the ends, by arithmetic.
PLACES = {"double": 20, "double-double": 36, "exact": 36}


class Root(NamedTuple):
    """An enclosed Perron root."""

    lower: Fraction
    upper: Fraction

    def rounded(self) -> tuple[float, float]:
        """Return the nearest doubles."""
        return float(self.lower), float(self.upper)


def perron_root(operator: _core.PeriodicOperator, weights: Sequence[Fraction], precision: str) -> Root:
    """Return the root at a weight for each site."""
    pairs = [(weight.numerator, weight.denominator) for weight in weights]
    lower, upper, bits = operator.root(pairs, precision)
    return Root(Fraction(lower, 1 << bits), Fraction(upper, 1 << bits))


def periodic_operator(sites: int, bonds: list[tuple[int, int, int]]) -> _core.PeriodicOperator:
    """Return the operator of a period, if there is memory for it."""
    return _core.PeriodicOperator(sites, bonds, _check.available_memory())


class Mirrors(NamedTuple):
    """A lattice with a family of mirror lines ``x = 0, spacing, ...`` and its sites in a rectangular cell."""

    cell: Point
    sites: list[Point]
    lengths: list[float]
    #: Mirror lines of a cell: two where no bond crosses any of them (theorem A), one else (theorem A').
    lines: int
    #: Whether sites are introduced column by column, not row by row: the order with fewer states in between.
    by_columns: bool

    @property
    def theorem(self) -> str:
        """The theorem of these strips and rings."""
        return "A" if self.lines == 2 else "A'"


def mirrors_of(lattice: str | None) -> Mirrors | None:
    """Return the mirror lines of a lattice of the field that has any."""
    row = LATTICES.get(lattice or "")
    return None if row is None or row.mirrors is None else Mirrors(*row.mirrors)


def _section(mirrors: Mirrors, lines: int, *, ring: bool) -> tuple[_core.PeriodicOperator, list[int], list[int]]:
    """Return the operator between the first and the last of some mirror lines, or round them, and the sites on both."""
    (width, height), spacing = mirrors.cell, mirrors.cell[0] / mirrors.lines
    cells = -(-lines // mirrors.lines) + 1
    end = lines * spacing if ring else (lines - 1) * spacing
    points = [
        (x + i * width, y)
        for i in range(-1, cells + 1)
        for x, y in mirrors.sites
        if -1e-6 <= x + i * width <= (end - 1e-6 if ring else end + 1e-6)
    ]
    if mirrors.by_columns:
        # A ring is opened off its mirrors, where fewest sites wait for its last one.
        begin = width / 4 if ring else 0.0
        points.sort(
            key=lambda point: (round((point[0] - begin) % (end if ring else 2 * end + 1), 6), round(point[1], 6))
        )
    else:
        points.sort(key=lambda point: (round(point[1], 6), round(point[0], 6)))
    wraps = (-end, 0.0, end) if ring else (0.0,)
    bonds = [
        (i, j, step)
        for i, (x, y) in enumerate(points)
        for j, (u, v) in enumerate(points)
        for step in (-1, 0, 1)
        for wrap in wraps
        if any(abs(math.hypot(u + wrap - x, v + step * height - y) - length) < 1e-6 for length in mirrors.lengths)
    ]
    operator = periodic_operator(len(points), bonds)
    outer = [[i for i, point in enumerate(points) if abs(point[0] - x) < 1e-6] for x in (0, end)]
    return operator, outer[0], outer[1]


def _strip_root(
    section: tuple[_core.PeriodicOperator, list[int], list[int]], boundary: Fraction, activity: Fraction, precision: str
) -> Root:
    operator, first, last = section
    weights = [activity] * operator.sites
    for outer in (first, last):
        for site in outer:
            weights[site] *= boundary
    return perron_root(operator, weights, precision)


def ring_bounds(
    mirrors: Mirrors, width: int, power: int, boundary: float | None, activity: Fraction, precision: str
) -> Proof:
    """Return both ends, the theorem and the evidence for rings and strips of up to `width` lines."""
    narrow = width - power - 1
    narrow -= narrow % 2
    if narrow < 0:
        raise ValueError(f"`power` must be less than the width {width}, got {power}")
    if boundary is None:
        small = min(narrow, 4)
        trial = [_section(mirrors, lines + 1, ring=False) for lines in (small, small + power)]

        def quotient(b: float) -> float:
            below, above = (_strip_root(part, Fraction(b), activity, "double") for part in trial)
            return float(above.lower / below.upper)

        boundary = best_boundary(quotient)
    b = Fraction(boundary)
    strips = [_section(mirrors, lines + 1, ring=False) for lines in (narrow, narrow + power)]
    below, above = (_strip_root(part, b, activity, precision) for part in strips)
    ring, _, _ = _section(mirrors, width, ring=True)
    closed = perron_root(ring, [activity] * ring.sites, precision)
    per_step = len(mirrors.sites) // mirrors.lines
    places = PLACES[precision]
    ratio = above.lower / below.upper  # at a poor boundary activity far below one
    lower = root_below(ratio, power * per_step, places + zeros(ratio, power * per_step))
    upper = root_above(closed.upper, width * per_step, places)
    widths = {"ring": width, "strips": (narrow + power + 1, narrow + 1), "power": power}
    return lower, upper, mirrors.theorem, widths | evidence_of(boundary, above, below, ring, closed, precision)


def evidence_of(
    boundary: float, above: Root, below: Root, ring: _core.PeriodicOperator, closed: Root, precision: str
) -> Facts:
    """Return what is shown of strips, and of the ring they are compared with."""
    return {
        "boundary_activity": boundary,
        "strip_roots": (above.rounded(), below.rounded()),
        "ring_root": closed.rounded(),
        "frontier": ring.frontier,
        "states": ring.states,
        "precision": precision,
    }


def best_boundary(value: Callable[[float], float]) -> float:
    """Return where a function of the boundary activity is largest; any answer is valid."""
    low, high = 0.15, 1.2
    golden = (math.sqrt(5) - 1) / 2
    points = [high - golden * (high - low), low + golden * (high - low)]
    values = [value(point) for point in points]
    for _ in range(28):
        if values[0] > values[1]:
            high, points[1], values[1] = points[1], points[0], values[0]
            points[0] = high - golden * (high - low)
            values[0] = value(points[0])
        else:
            low, points[0], values[0] = points[0], points[1], values[1]
            points[1] = low + golden * (high - low)
            values[1] = value(points[1])
    return round((low + high) / 2, 7)


class Base(NamedTuple):
    """A regular graph in columns that repeat along them: its degree, vertices of a column's period, and neighbors."""

    degree: int
    period: int
    #: Neighbors of vertex (column, place) as (column, place); places count on through the periods.
    neighbors: Callable[[int, int], list[tuple[int, int]]]


def base_of(lattice: str | None) -> Base | None:
    """Return the graph in columns that cliques were inserted into last to make a lattice, if there is one."""
    found = below_insertions(lattice)
    if found is None or not found[0].columns:
        return None
    steps = found[0].columns

    def neighbors(j: int, y: int) -> list[tuple[int, int]]:
        return [(j + dj, y + dy) for dj, dy in steps[(j + y) % len(steps)]]

    base = Base(len(steps[0]), len(steps), neighbors)
    for _ in range(found[1] - 1):
        base = _inserted(base)
    return base


def _inserted(base: Base) -> Base:
    """Return the clique insertion of a graph in columns: place d v + k is end k of vertex v."""
    d = base.degree

    def neighbors(j: int, y: int) -> list[tuple[int, int]]:
        v, k = divmod(y, d)
        there, far = base.neighbors(j, v)[k]
        back = base.neighbors(there, far).index((j, v))
        return [*((j, d * v + i) for i in range(d) if i != k), (there, d * far + back)]

    return Base(d, d * base.period, neighbors)


def _columns(base: Base, columns: int) -> tuple[_core.PeriodicOperator, list[int]]:
    """Return the operator of some columns of whole cliques, and the legs that dangle on the far side."""
    legs = [(j, y, k) for y in range(base.period) for j in range(columns) for k in range(base.degree)]
    if base.period > 2:
        legs.sort()  # column by column: fewer states in between
    place = {leg: i for i, leg in enumerate(legs)}
    bonds, far = [], []
    for j, y, k in legs:
        here = place[j, y, k]
        bonds += [(here, place[j, y, other], 0) for other in range(k)]
        column, there = base.neighbors(j, y)[k]
        if column >= columns:
            far.append(here)
        elif column >= 0:
            step, rest = divmod(there, base.period)
            back = [(c, t - step * base.period) for c, t in ((c, t) for c, t in base.neighbors(column, there))]
            end = base.neighbors(column, there).index((j, y))
            assert back[end] == (j, y - step * base.period)
            bonds.append((here, place[column, rest, end], step))
    return periodic_operator(len(legs), bonds), far


def clique_bounds(base: Base, columns: int, precision: str) -> Proof:
    """Return both ends, the theorem and the evidence for strips of up to so many columns of cliques."""
    x, d = base.degree + 1, base.degree
    # r is the root below 1 of r = 1 / (x - (d-1) r), a little enlarged: smaller far activities are valid too.
    zeta = (1 - (x - math.sqrt(x * x - 4 * (d - 1))) / (2 * (d - 1))) * (1 - 1e-15)
    roots: dict[tuple[int, float], Root] = {}
    for count in (columns - 1, columns):
        operator, far = _columns(base, count)
        for weight in (zeta, 1.0):
            weights = [Fraction(weight) if site in far else Fraction(1) for site in range(operator.sites)]
            roots[count, weight] = perron_root(operator, weights, precision)
    sites = base.period * d
    places = PLACES[precision]
    lower = roots[columns, zeta].lower / roots[columns - 1, zeta].upper
    upper = roots[columns, 1.0].upper / roots[columns - 1, 1.0].lower
    evidence = {
        "columns": (columns, columns - 1),
        "far_activity": zeta,
        "roots": [(count, weight, *root.rounded()) for (count, weight), root in roots.items()],
        "frontier": operator.frontier,
        "states": operator.states,
        "precision": precision,
    }
    return root_below(lower, sites, places), root_above(upper, sites, places), "B", evidence
