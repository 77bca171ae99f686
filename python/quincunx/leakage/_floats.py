"""Channels of floats: figures in float64 by the compiled module, off by some 1e-15, absolutely or relatively."""

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from quincunx import _aside, _check, _core
from quincunx._types import Floats
from quincunx.graphs._graph import IntArray
from quincunx.leakage import _checks

#: Steps after which the capacity is given as far as it is known.
MOST_STEPS = 20_000

#: Smaller floats have fewer digits, or are 0.
_LEAST = sys.float_info.min


def side_by_side(left: Floats, right: Floats) -> Floats:
    """Return the products of all entries of two channels."""
    calling = _aside.apart if left.size * right.size > 1 << 20 else _aside.aside
    return calling(np.kron, left, right).astype(np.float64, copy=False)


class Matrix:
    """The entries of a channel, as floats."""

    __slots__ = ("floats",)

    def __init__(self, floats: Floats) -> None:
        self.floats = floats.view()
        self.floats.setflags(write=False)

    def support(self) -> Floats:
        """Return 1 where an entry is above 0."""
        return np.sign(self.floats)

    def product(self, other: "Matrix", multiply: Callable[[Floats, Floats], Floats]) -> "FloatMatrix":
        """Multiply entries, if floats hold the products: levels are their ratios."""
        found = multiply(self.floats, other.floats)
        lost = found < _LEAST
        if lost.any() and (lost & (multiply(self.support(), other.support()) > 0)).any():
            raise ValueError(
                f"`other` must have entries whose products floats hold, got one between 0 and {_LEAST:.3g}: "
                "say `exact=True` for both channels"
            )
        return FloatMatrix(found)


class FloatMatrix(Matrix):
    """The entries of a channel of floats; no other has a kernel of the compiled module for its figures."""

    __slots__ = ()

    #: There are no exact entries.
    fractions = None

    # ---- combination

    def compose(self, other: Matrix) -> "FloatMatrix":
        return self.product(other, np.matmul)

    def kron(self, other: Matrix) -> "FloatMatrix":
        return self.product(other, side_by_side)

    def posterior(self, prior: npt.ArrayLike | None) -> tuple[Floats, Floats]:
        weights = _checks.prior(prior, len(self.floats))[:, None]
        # Scaled by powers of 2: rare outputs have posteriors, too.
        joint = (weights * np.ldexp(self.floats, 1 - np.frexp(self.floats.max(axis=0))[1])).T
        totals = joint.sum(axis=1, keepdims=True)
        inners = np.zeros_like(joint)
        np.divide(joint, totals, out=inners, where=totals > 0)
        return (weights * self.floats).sum(axis=0), inners

    def remapped(self, prior: npt.ArrayLike | None) -> "FloatMatrix":
        n = len(self.floats)
        found = np.zeros((n, n))
        for y, guess in enumerate(_core.column_maxima(self.floats, _checks.prior(prior, n))[1].tolist()):
            found[:, guess] += self.floats[:, y]
        return FloatMatrix(found)

    # ---- vulnerability and leakage

    def prior_vulnerability(self, prior: npt.ArrayLike | None) -> float:
        return float(max(_checks.prior(prior, len(self.floats))))

    def vulnerability(self, prior: npt.ArrayLike | None) -> float:
        return math.fsum(_core.column_maxima(self.floats, _checks.prior(prior, len(self.floats)))[0])

    def column_maxima_sum(self) -> float:
        return math.fsum(_core.column_maxima(self.floats, None)[0])

    def g_vulnerability(self, gain: npt.ArrayLike, prior: npt.ArrayLike | None) -> tuple[float, float, float]:
        """Return the expected gains before and after, and their unit: tiny gains keep their digits."""
        worth, weights = _checks.gain(gain, len(self.floats)), _checks.prior(prior, len(self.floats))
        unit = 2.0 ** int(np.frexp(worth.max())[1] - 1)
        weighted = worth / unit * weights
        return float(weighted.sum(axis=1).max()), math.fsum((weighted @ self.floats).max(axis=0)), unit

    def mutual_information(self, prior: npt.ArrayLike | None) -> float:
        weights = _checks.prior(prior, len(self.floats))
        found = _core.mutual_information(self.floats, weights)
        if found < math.inf:
            return found
        # The chance of an output is below all floats: pairs of least chance, of at most 1e-280 bits, are left out.
        rare = weights[:, None] * self.floats < 1e-290
        return _core.mutual_information(np.where(rare, 0.0, self.floats), weights)

    def capacity(self, tol: float) -> tuple[float, float, Floats, int]:
        return _core.shannon_capacity(self.floats, tol, MOST_STEPS)

    # ---- privacy

    def ratio(self, edges: IntArray) -> float:
        epsilon = self.epsilon(edges, None)
        return math.exp(epsilon) if epsilon < 709 else math.inf

    def epsilon(self, edges: IntArray, threads: int | None) -> float:
        return _core.channel_epsilon(self.floats, edges, _check.threads(threads))

    def delta(self, edges: IntArray, epsilon: float, threads: int | None) -> float:
        return _core.channel_delta(self.floats, edges, epsilon, _check.threads(threads))

    def renyi(self, edges: IntArray, alpha: float, threads: int | None) -> float:
        return _core.channel_renyi(self.floats, edges, alpha, _check.threads(threads))

    def metric_epsilon(self, metric: npt.ArrayLike, threads: int | None) -> float:
        distances = _check.laid_out(np.asarray(metric), np.float64)
        return _core.metric_epsilon(self.floats, distances, _check.threads(threads))

    def promise(self, edges: IntArray) -> float:
        """Return a level that is not below the true one: 0 of equal rows only."""
        epsilon = self.epsilon(edges, None)
        if epsilon == 0 and np.array_equal(self.floats[edges[:, 0]], self.floats[edges[:, 1]]):
            return 0.0
        # The level errs by a few units in the last place of the largest ratio.
        return math.nextafter(epsilon * (1 + 2.0**-50), math.inf) + 2.0**-50

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatMatrix) and np.array_equal(self.floats, other.floats)

    def __hash__(self) -> int:
        return hash((self.floats.shape, (self.floats + 0.0).tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return FloatMatrix, (self.floats,)
