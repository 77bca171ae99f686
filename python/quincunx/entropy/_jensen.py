"""The mean of ln |P(z, w)| over the unit torus, for a Laurent polynomial P: its Mahler measure.

For fixed z = exp(i x) Jensen's formula does the inner mean: with c the leading coefficient in w and w_j the roots,

    (1/2 pi) int ln |P| dk = ln |c| + sum over j of max(0, ln |w_j|).

The outer mean is taken by the tanh-sinh rule between the points where a root crosses the unit circle. Double roots, or
nearly double ones, keep half of their digits: what rounding does to the mean is seen at each point from the polynomial
of 1/w, moved by its rounding.

P is that of one piece of a lattice. With a walk to each site v of a piece that ends in cell p(v), and d cells from end
to end of a bond u v, the vectors p(u) + d - p(v) span its winding lattice: those along which it repeats.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx._types import Floats, Ints
from quincunx.lattices import UnitCell

ComplexArray: TypeAlias = npt.NDArray[np.complex128]
#: Of exp(i x) and w, which are broadcast.
Determinant: TypeAlias = Callable[[Floats, ComplexArray], ComplexArray]

# Points of z where roots are counted first: more miss fewer places where their number changes twice; not tuned. And
# halvings of a step in which it changes: after 48 of them pi/241 is below the rounding of an angle.
_SCAN = 241
_HALVINGS = 48
# What is left after the rounding of a few hundred terms of size one, relative to the largest.
_ROUNDING = 1e-15
# The error is so many times the mean distance of two values at a point.
_SAFETY = 4


class _ValueAndError(NamedTuple):
    value: float
    error: float


class Constant(_ValueAndError):
    """An entropy in nats and its error.

    Where the constant is solved in closed form the error bounds two roundings; elsewhere it is what halving the step of
    a quadrature changed and, four times over, what rounding changed in each of its terms, no proof.

    Parameters
    ----------
    value : float
        The entropy.
    error : float
        Its error.
    source : str, optional
        Who solved it in closed form.

    Examples
    --------
    >>> from quincunx.entropy import dimer_entropy
    >>> square = dimer_entropy("square")
    >>> square.method, square.source.split(",")[0]
    ('solved', 'P. W. Kasteleyn (1961)')
    """

    source: str | None

    def __new__(cls, value: float, error: float, source: str | None = None) -> "Constant":
        """Make a pair that remembers its source."""
        self = super().__new__(cls, value, error)
        self.source = source
        return self

    @property
    def method(self) -> str:
        """How it was found: "solved" or "estimated"."""
        return "estimated" if self.source is None else "solved"

    @property
    def growth_constant(self) -> float:
        """Its exponential, with the relative error `error`."""
        return math.exp(self.value)


def pieces(cell: UnitCell) -> list[tuple[UnitCell, int]]:
    """Return the different pieces of a lattice as cells of their own, each with the index of its winding lattice.

    The index is the number of copies of a piece; it is 0 for a piece that does not go on in two directions.
    """
    around: list[list[tuple[int, int, int]]] = [[] for _ in range(cell.num_sites)]
    for u, v, (dx, dy) in cell.bonds:
        around[u].append((v, dx, dy))
        around[v].append((u, -dx, -dy))
    place: dict[int, tuple[int, int]] = {}
    found = []
    for start in range(cell.num_sites):
        if start in place:
            continue
        place[start], sites = (0, 0), [start]
        a = b = c = 0  # (a, b) and (0, c) span the winding lattice
        for u in sites:
            for v, dx, dy in around[u]:
                x, y = place[u][0] + dx, place[u][1] + dy
                if v not in place:
                    place[v] = x, y
                    sites.append(v)
                x, y = x - place[v][0], y - place[v][1]
                while x:
                    a, b, x, y = x, y, a % x, b - a // x * y
                c = math.gcd(c, y)
        found.append((_piece(cell, sites, place, (a, b, c)) if a * c else cell, abs(a * c)))
    return found


def _piece(cell: UnitCell, sites: list[int], place: dict[int, tuple[int, int]], span: tuple[int, int, int]) -> UnitCell:
    """Return some sites as a cell that repeats along ``(a, b)`` and ``(0, c)``, each site in its place."""
    a, b, c = span
    basis = np.asarray(cell.basis_vectors)
    number = {site: i for i, site in enumerate(sites)}
    bonds = []
    for u, v, (dx, dy) in cell.bonds:
        if u in number:
            i = (place[u][0] + dx - place[v][0]) // a
            bonds.append((number[u], number[v], (i, (place[u][1] + dy - place[v][1] - i * b) // c)))
    offsets = [np.asarray(cell.site_offsets[site]) + place[site] @ basis for site in sites]
    return UnitCell(np.array([[a, b], [0, c]]) @ basis, offsets, bonds)


def mean_log(determinant: Determinant, degree: int) -> Constant:
    """Return the mean of ``ln |P|`` with ``P(exp(i x), w) = determinant(x, w)``, of at most that degree in w and 1/w.

    P must be real up to conjugation: ``P(1/z, 1/w)`` is its conjugate on the torus, so that half of the x suffice.
    """
    # A quarter of an irrational step keeps the scan off the symmetric points.
    grid = np.concatenate([[0.0], np.pi * (np.arange(_SCAN) + 0.317) / _SCAN, [np.pi]])
    top = _degree(determinant, degree, grid[1:-1])
    outside = _inner(determinant, top, grid[1:-1])[1]
    cuts = [0.0, np.pi / 3, np.pi / 2, 2 * np.pi / 3, np.pi]
    for i in np.flatnonzero(np.diff(outside)):
        low, high, count = grid[i + 1], grid[i + 2], outside[i]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if _inner(determinant, top, np.array([middle]))[1][0] == count:
                low = middle
            else:
                high = middle
        cuts.append((low + high) / 2)
    cuts = sorted(cuts)
    cuts = [a for a, b in zip(cuts, [*cuts[1:], 9.0], strict=True) if b - a > 1e-9]
    steps = np.zeros(3)
    scale = moved = 0.0
    for a, b in itertools.pairwise(cuts):
        points, weights = _tanh_sinh(a, b)
        values, _, others = _inner(determinant, top, points)
        steps += [2**k * float(weights[:: 2**k] @ values[:: 2**k]) / np.pi for k in range(3)]
        scale += float(weights @ abs(values)) / np.pi
        moved += float(weights @ abs(values - others)) / np.pi
    # The rule doubles its digits when its step is halved, unless a point where it is not smooth was overlooked.
    change, before = abs(np.diff(steps))
    error = change**1.5 if change <= before**1.5 + moved else change
    return Constant(float(steps[0]), float(error) + _SAFETY * moved + _ROUNDING * (1 + 4 * scale))


def _tanh_sinh(a: float, b: float) -> tuple[Floats, Floats]:
    """Points and weights on an interval, every second of which is the rule of twice the step."""
    step = 1 / 20
    t = step * np.arange(-66, 67)
    u = np.pi / 2 * np.sinh(t)
    # The distance from the nearer end, without cancellation.
    near = 1 / (1 + np.exp(2 * abs(u)))
    points = np.where(t < 0, a + (b - a) * near, b - (b - a) * near)
    weights = step * (b - a) / 2 * (np.pi / 2) * np.cosh(t) / np.cosh(u) ** 2
    return points, weights


def _coefficients(determinant: Determinant, degree: int, x: Floats) -> ComplexArray:
    """Coefficients of ``w**degree * P``, highest first, one row for each x."""
    count = 2 * degree + 1
    w = np.exp(2j * np.pi * np.arange(count) / count)
    values = determinant(x[:, None], w[None, :]) * w**degree
    return np.fft.fft(values, axis=1)[:, ::-1] / count


def _degree(determinant: Determinant, degree: int, x: Floats) -> int:
    """Return the degree that P really has in w."""
    found = abs(_coefficients(determinant, degree, x)).max(axis=0)
    there = np.flatnonzero(found[: degree + 1] > 1e-10 * found.max())
    return degree - int(there[0]) if len(there) else 0


def _inner(determinant: Determinant, degree: int, x: Floats) -> tuple[Floats, Ints, Floats]:
    """Return the inner means, how many roots lie outside the unit circle, and the means as rounding may move them."""
    rows = _coefficients(determinant, degree, x)
    noise = np.random.default_rng(0).choice([-1e-16, 1e-16], size=rows.shape) * abs(rows).max(axis=1, keepdims=True)
    values, outside = _jensen(rows)
    return values, outside, _jensen((rows + noise)[:, ::-1])[0]


def _jensen(rows: ComplexArray) -> tuple[Floats, Ints]:
    """Return the means of polynomials on the unit circle, coefficients in rows, and how many roots lie outside."""
    count, size = rows.shape[0], rows.shape[1] - 1
    lead = rows[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        if size == 0:
            return np.log(abs(lead)), np.zeros(count, dtype=int)
        companion = np.zeros((count, size, size), dtype=np.complex128)
        companion[:, np.arange(1, size), np.arange(size - 1)] = 1
        # A leading coefficient that vanishes to rounding leaves a root at infinity: the product stays what it is.
        lead = np.where(abs(lead) < 1e-300, 1e-300, lead)
        companion[:, 0, :] = -rows[:, 1:] / lead[:, None]
        roots = abs(np.linalg.eigvals(companion))
    outside = roots > 1
    return np.log(abs(lead)) + np.log(np.where(outside, roots, 1)).sum(axis=1), outside.sum(axis=1)
