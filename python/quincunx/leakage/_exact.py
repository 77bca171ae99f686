"""Channels of fractions: figures that are fractions, or floats that are not below the true ones.

Every figure is a fraction, the logarithm of one, or a sum of powers and logarithms of such. What is no fraction is
worked out in decimals with a bound of the error, by more digits until a float is settled; `outward` alone makes floats
of them.
"""

import decimal
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Floats
from quincunx.graphs._graph import IntArray
from quincunx.leakage import _checks
from quincunx.leakage._checks import Exact
from quincunx.leakage._floats import FloatMatrix, Matrix, side_by_side
from quincunx.privacy._rational import log_upwards, upwards

#: A value and a bound of its error, worked out in a context of decimals whose results err by less than the argument,
#: relative. No value that is asked for is 0.
Figure = Callable[[Decimal], tuple[Decimal | Fraction, Decimal | Fraction]]
Row = Sequence[Fraction]

_NOTHING, _ALL = Fraction(0), Fraction(1)
#: Digits that are tried first.
_DIGITS = 30
#: A float is settled where the error is below this share of the value, or both are below every float.
_SHARE, _LEAST = Fraction(1, 2**54), Fraction(1, 2**1074)

#: By how much more than asked the floats are worked out for the prior of a capacity, if less does not do.
_SHARPER = (2, 2**6, 2**10)


def outward(exact: Fraction | Figure) -> float:
    """Return the least float that is not below a figure, or the next one where the figure is no fraction."""
    value, error, digits = (exact, _NOTHING, 0) if isinstance(exact, Fraction) else (_NOTHING, _ALL, _DIGITS)
    while not isinstance(exact, Fraction) and error > abs(value) * _SHARE and abs(value) + error > _LEAST:
        with decimal.localcontext(decimal.Context(digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])):
            value, error = (Fraction(part) for part in exact(Decimal(10) ** (1 - digits)))
        digits *= 2
    try:
        return upwards(value + error)
    except OverflowError:
        return math.inf


def _log(value: Fraction, unit: Decimal) -> tuple[Decimal, Decimal]:
    found = (Decimal(value.numerator) / value.denominator).ln()
    return found, unit * (1 + abs(found))


def _divided(figure: Figure, divisor: Fraction | None, unit: Decimal) -> tuple[Decimal, Decimal]:
    """Divide a figure in decimals by a number, by log 2 for None."""
    by = Decimal(2).ln() if divisor is None else Decimal(divisor.numerator) / divisor.denominator
    value, error = (Decimal(part) / by for part in figure(unit))  # type: ignore[arg-type]
    return value, 2 * error + 4 * unit * abs(value)


def log(value: Fraction | float, divisor: Fraction | None = _ALL) -> float:
    """Return the logarithm of a fraction, or of infinity, divided by a number, to base 2 for None."""
    if not isinstance(value, Fraction):
        return value
    return outward(partial(_divided, partial(_log, value), divisor)) if value != 1 else 0.0


def divergence(p: Row, q: Row, alpha: float = 1.0, divisor: Fraction | None = _ALL) -> float:
    """Return the Renyi divergence of one distribution from another, divided as a logarithm is."""
    both = [(a, a / b) for a, b in zip(p, q, strict=True) if a and b]
    if (alpha >= 1 and len(both) < sum(map(bool, p))) or not both:
        return math.inf
    if alpha == 0:
        return log(1 / sum((a / ratio for a, ratio in both), _NOTHING), divisor)
    ratios = [ratio for _, ratio in both]
    if alpha == math.inf:
        return log(max(ratios), divisor)
    if p == q:
        return 0.0
    figure = partial(_kullback_leibler, both) if alpha == 1 else partial(_renyi, both, alpha)
    return outward(partial(_divided, figure, divisor))


def _kullback_leibler(both: list[tuple[Fraction, Fraction]], unit: Decimal) -> tuple[Decimal, Decimal]:
    """Sum p log(p / q)."""
    value = size = Decimal(0)
    for a, ratio in both:
        weight, (found, _) = Decimal(a.numerator) / a.denominator, _log(ratio, unit)
        value, size = value + weight * found, size + weight * (1 + abs(found))
    return value, unit * (len(both) + 8) * size


def _renyi(both: list[tuple[Fraction, Fraction]], alpha: float, unit: Decimal) -> tuple[Decimal, Decimal]:
    """Return ``log r + log(sum p (p/q / r)^(alpha - 1)) / (alpha - 1)``, r the p / q for which no power exceeds 1."""
    beyond = Decimal(alpha) - 1
    largest = (max if alpha > 1 else min)(ratio for _, ratio in both)
    total = error = Decimal(0)
    for a, ratio in both:
        exponent, slack = (beyond * part for part in _log(ratio / largest, unit))
        slack = abs(slack) + 4 * unit * abs(exponent)
        # Within the slack of an exponent its power changes by at most as much of itself.
        term = Decimal(a.numerator) / a.denominator * (min(exponent + slack, Decimal(0))).exp()
        total, error = total + term, error + term * (min(2 * slack, Decimal(1)) + 4 * unit)
    error += unit * (len(both) + 1) * total
    if 2 * error > total:
        return Decimal(0), Decimal(1)
    (first, blur), second = _log(largest, unit), total.ln()
    share = second / beyond
    return first + share, blur + (2 * error / total + unit * (1 + abs(second))) / abs(beyond) + 4 * unit * (
        abs(first) + abs(share)
    )


def excess(p: Row, q: Row, epsilon: float) -> float:
    """Return ``sum max(0, p - exp(epsilon) q)``."""
    ratios = [a / b for a, b in zip(p, q, strict=True) if b]
    if epsilon >= log_upwards(max([*ratios, _ALL])):  # nothing exceeds but what is above 0
        return outward(sum((a for a, b in zip(p, q, strict=True) if not b), _NOTHING))
    if epsilon == 0:
        return outward(_excess(p, q, _ALL))

    def figure(unit: Decimal) -> tuple[Fraction, Fraction]:
        factor = Decimal(epsilon).exp()
        low, high = (Fraction(factor * (1 + sign * 2 * unit)) for sign in (-1, 1))
        least = _excess(p, q, high)
        return least, _excess(p, q, low) - least

    return outward(figure)


def _excess(p: Row, q: Row, factor: Fraction) -> Fraction:
    return sum((a - factor * b for a, b in zip(p, q, strict=True) if a > factor * b), _NOTHING)


def _ratio(p: Row, q: Row) -> Fraction | float:
    """Return the largest ratio of two entries at one place, at least 1; infinite where 0 faces more."""
    largest = _ALL
    for a, b in zip(p, q, strict=True):
        if a != b:
            if not a or not b:
                return math.inf
            largest = max(largest, a / b, b / a)
    return largest


def _dot(left: Row, right: Row) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), _NOTHING)


class ExactMatrix(Matrix):
    """The entries of an exact channel. Its figures come from them; `floats` are for pictures and guesses."""

    __slots__ = ("fractions",)

    def __init__(self, fractions: Exact) -> None:
        self.fractions = fractions
        super().__init__(np.array([[float(entry) for entry in row] for row in fractions]))

    # ---- combination

    def support(self) -> Floats:
        return np.array([[float(entry > 0) for entry in row] for row in self.fractions])

    def compose(self, other: "ExactMatrix | FloatMatrix") -> "ExactMatrix | FloatMatrix":
        if isinstance(other, FloatMatrix):
            return self.product(other, np.matmul)
        columns = list(zip(*other.fractions, strict=True))
        return ExactMatrix(tuple(tuple(_dot(row, column) for column in columns) for row in self.fractions))

    def kron(self, other: "ExactMatrix | FloatMatrix") -> "ExactMatrix | FloatMatrix":
        if isinstance(other, FloatMatrix):
            return self.product(other, side_by_side)
        pairs = ((left, right) for left in self.fractions for right in other.fractions)
        return ExactMatrix(tuple(tuple(a * b for a in left for b in right) for left, right in pairs))

    def _joint(self, prior: npt.ArrayLike | None) -> list[list[Fraction]]:
        """Return prior[x] C[x, y], a row for each output."""
        weights = _checks.prior_exact(prior, len(self.fractions))
        return [[p * c for p, c in zip(weights, column, strict=True)] for column in zip(*self.fractions, strict=True)]

    def posterior(self, prior: npt.ArrayLike | None) -> tuple[Floats, Floats]:
        joint = self._joint(prior)
        sums = [sum(row, _NOTHING) for row in joint]
        inners = [
            [float(entry / total) if total else 0.0 for entry in row] for row, total in zip(joint, sums, strict=True)
        ]
        return np.array([float(total) for total in sums]), np.array(inners)

    def remapped(self, prior: npt.ArrayLike | None) -> "ExactMatrix":
        guesses = [row.index(max(row)) for row in self._joint(prior)]
        columns = [[y for y, guess in enumerate(guesses) if guess == x] for x in range(len(self.fractions))]
        return ExactMatrix(
            tuple(tuple(sum((row[y] for y in column), _NOTHING) for column in columns) for row in self.fractions)
        )

    # ---- vulnerability and leakage

    def prior_vulnerability(self, prior: npt.ArrayLike | None) -> Fraction:
        return max(_checks.prior_exact(prior, len(self.fractions)))

    def vulnerability(self, prior: npt.ArrayLike | None) -> Fraction:
        return sum(map(max, self._joint(prior)), _NOTHING)

    def column_maxima_sum(self) -> Fraction:
        return sum(map(max, zip(*self.fractions, strict=True)), _NOTHING)

    def g_vulnerability(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None) -> tuple[Fraction, Fraction, int]:
        weights, joint = _checks.prior_exact(prior, len(self.fractions)), self._joint(prior)
        worth = [[Fraction(entry) for entry in row] for row in _checks.gain(gain, len(weights)).tolist()]
        after = sum((max(_dot(row, guess) for guess in worth) for row in joint), _NOTHING)
        return max(_dot(weights, guess) for guess in worth), after, 1

    def mutual_information(self, prior: npt.ArrayLike | None) -> float:
        weights, joint = _checks.prior_exact(prior, len(self.fractions)), self._joint(prior)
        total = sum(weights)
        found = [entry / total for row in joint for entry in row]
        outputs = [sum(row, _NOTHING) / total for row in joint]
        return divergence(found, [p / total * output for output in outputs for p in weights], divisor=None)

    def capacity(self, tol: float) -> tuple[float, float, Floats, int]:
        """Bound the capacity by what the best prior of the floats gives exactly."""
        steps = 0
        for sharper in _SHARPER:
            *_, prior, more = FloatMatrix(self.floats).capacity(tol / sharper)
            weights, steps = _checks.prior_exact(prior, len(self.fractions)), steps + more
            outputs = [sum(row, _NOTHING) / sum(weights) for row in self._joint(prior)]
            upper = max(divergence(row, outputs, divisor=None) for row in self.fractions)
            # What is rounded up is above by less than 2^-51, relative, and a float.
            lower = max(math.nextafter(self.mutual_information(prior) * (1 - 2.0**-50), -math.inf), 0.0)
            if upper - lower <= tol:
                break
        return lower, upper, prior, steps

    # ---- privacy

    def _over_edges(self, edges: IntArray, threads: int | None, figure: Callable[[Row, Row], float]) -> float:
        _check.threads(threads)
        pairs = ((self.fractions[u], self.fractions[v]) for u, v in edges.tolist())
        return max((max(figure(p, q), figure(q, p)) for p, q in pairs if p != q), default=0.0)

    def ratio(self, edges: IntArray) -> Fraction | float:
        return max((_ratio(self.fractions[u], self.fractions[v]) for u, v in edges.tolist()), default=_ALL)

    def epsilon(self, edges: IntArray, threads: int | None = None) -> float:
        _check.threads(threads)
        return log(self.ratio(edges))

    promise = epsilon

    def delta(self, edges: IntArray, epsilon: float, threads: int | None) -> float:
        return self._over_edges(edges, threads, partial(excess, epsilon=epsilon))

    def renyi(self, edges: IntArray, alpha: float, threads: int | None) -> float:
        return self._over_edges(edges, threads, partial(divergence, alpha=alpha))

    def metric_epsilon(self, metric: npt.ArrayLike, threads: int | None) -> float:
        _check.threads(threads)
        table, level = np.asarray(metric, dtype=object), 0.0
        for h, p in enumerate(self.fractions):
            for k, q in enumerate(self.fractions[:h]):
                if p != q and (distance := table[h, k]) != math.inf:
                    exact = Fraction(distance if isinstance(distance, (int, Fraction)) else float(distance))
                    level = max(level, log(_ratio(p, q), exact) if exact else math.inf)
        return level

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactMatrix) and self.fractions == other.fractions

    def __hash__(self) -> int:
        return hash(self.fractions)

    def __reduce__(self) -> tuple[object, ...]:
        return ExactMatrix, (self.fractions,)
