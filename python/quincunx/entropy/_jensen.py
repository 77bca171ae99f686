"""The mean of ln |P(z, w)| over the unit torus, for a Laurent polynomial P: its Mahler measure.

For fixed z = exp(i x) Jensen's formula does the inner mean: with c the leading coefficient in w and w_j the roots,

    (1/2 pi) int ln |P| dk = ln |c| + sum over j of max(0, ln |w_j|).

The outer mean is taken by the tanh-sinh rule between the points where a root crosses the unit circle.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
ComplexArray: TypeAlias = npt.NDArray[np.complex128]
#: Of exp(i x) and w, which are broadcast.
Determinant: TypeAlias = Callable[[FloatArray, ComplexArray], ComplexArray]

# Points of z where roots are counted first, and halvings of a step in which their number changes.
_SCAN = 241
_HALVINGS = 48
# What is left after the rounding of a few hundred terms of size one, relative to the largest.
_ROUNDING = 1e-15


class Constant(NamedTuple):
    """An entropy in nats and a bound on its error.

    Where the constant has a closed form the bound is proved, by counting roundings; elsewhere it is estimated from two
    quadratures and the rounding of their terms.
    """

    value: float
    error: float

    @property
    def growth_constant(self) -> float:
        """Its exponential, with the relative error `error`."""
        return math.exp(self.value)


def closed(value: float) -> Constant:
    """Return a value of a closed form in which at most eight numbers were rounded."""
    return Constant(value, 8 * 2.0**-53 * abs(value))


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
    coarse = fine = scale = 0.0
    for a, b in itertools.pairwise(cuts):
        points, weights = _tanh_sinh(a, b)
        values = _inner(determinant, top, points)[0]
        fine += float(weights @ values)
        coarse += 2 * float(weights[::2] @ values[::2])
        scale += float(weights @ abs(values))
    # The rule converges quadratically in the number of digits: the finer one has about twice those of the coarser.
    error = (abs(fine - coarse) / np.pi) ** 1.5 + _ROUNDING * (1 + 4 * scale / np.pi)
    return Constant(fine / np.pi, error)


def _tanh_sinh(a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Points and weights on an interval, every second of which is the rule of twice the step."""
    step = 1 / 20
    t = step * np.arange(-66, 67)
    u = np.pi / 2 * np.sinh(t)
    # The distance from the nearer end, without cancellation.
    near = 1 / (1 + np.exp(2 * abs(u)))
    points = np.where(t < 0, a + (b - a) * near, b - (b - a) * near)
    weights = step * (b - a) / 2 * (np.pi / 2) * np.cosh(t) / np.cosh(u) ** 2
    return points, weights


def _coefficients(determinant: Determinant, degree: int, x: FloatArray) -> ComplexArray:
    """Coefficients of ``w**degree * P``, highest first, one row for each x."""
    count = 2 * degree + 1
    w = np.exp(2j * np.pi * np.arange(count) / count)
    values = determinant(x[:, None], w[None, :]) * w**degree
    return np.fft.fft(values, axis=1)[:, ::-1] / count


def _degree(determinant: Determinant, degree: int, x: FloatArray) -> int:
    """Return the degree that P really has in w."""
    found = abs(_coefficients(determinant, degree, x)).max(axis=0)
    there = np.flatnonzero(found[: degree + 1] > 1e-10 * found.max())
    return degree - int(there[0]) if len(there) else 0


def _inner(determinant: Determinant, degree: int, x: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return the inner means, and how many roots lie outside the unit circle."""
    rows = _coefficients(determinant, degree, x)
    lead = rows[:, 0]
    size = 2 * degree
    with np.errstate(divide="ignore", invalid="ignore"):
        if size == 0:
            return np.log(abs(lead)), np.zeros(len(x), dtype=int)
        companion = np.zeros((len(x), size, size), dtype=np.complex128)
        companion[:, np.arange(1, size), np.arange(size - 1)] = 1
        # A leading coefficient that vanishes to rounding leaves a root at infinity: the product stays what it is.
        lead = np.where(abs(lead) < 1e-300, 1e-300, lead)
        companion[:, 0, :] = -rows[:, 1:] / lead[:, None]
        roots = abs(np.linalg.eigvals(companion))
    outside = roots > 1
    return np.log(abs(lead)) + np.log(np.where(outside, roots, 1)).sum(axis=1), outside.sum(axis=1)
