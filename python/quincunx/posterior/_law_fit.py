"""The law of records nearest to noisy tables of some of its marginals, which may overlap in any way.

    minimize  sum over tables r  |n p_r - y_r|^2 / (2 v_r)    over all laws p, p_r their marginals

For noise of log-likelihood ``-(z - x)^2 / (2 v)``, the (discrete) Gaussian one, the minimum is the maximum of the
likelihood of n records. Of the laws that attain it the one sought has the largest entropy: it has a factor for each
table, so it lives on the junction tree of their columns.

The way is that of proximal points: each step minimizes the sum plus ``tau n KL(p | last p)``, tau falling. Its dual,

    n log sum_x last p(x) exp(sum_r lambda_r(x_r))  -  sum_r <lambda_r, y_r>  +  tau/2 sum_r v_r |lambda_r|^2,

is smooth and strictly convex, and is minimized by Newton's method, whose steps are found by conjugate gradients: its
Hessian times a direction is the derivative of the marginals along it, two passes over the tree.

Sources: R. McKenna, D. Sheldon and G. Miklau (2019), Graphical-model based estimation and inference for differential
privacy, ICML, for the problem and the form of its solution; R. T. Rockafellar (1976), Monotone operators and the
proximal point algorithm, SIAM J. Control Optim. 14, for the steps, here in the divergence of laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from quincunx import _check
from quincunx._types import Floats
from quincunx.posterior._junction_tree import Columns, JunctionTree, Law, axes_beyond

#: Weights of the divergence: the first, that of a fit that goes on from an earlier one, what it falls by; most steps.
FIRST, LATER, FALL, STEPS = 1 / 9, 1 / 81, 3.0, 12
#: Newton steps and directions of conjugate gradients for each of them, at the most.
NEWTON, DIRECTIONS = 10, 60


class NoisyMarginal(NamedTuple):
    """A table of some columns, in rising order, and the variance of the noise of its cells, or of each."""

    columns: Columns
    values: Floats
    variance: float | Floats

    def and_another(self, other: NoisyMarginal) -> NoisyMarginal:
        """Return what two tables of the same columns say together: their mean, by the variances."""
        whole = self.variance + other.variance
        values = (other.variance * self.values + self.variance * other.values) / whole
        return NoisyMarginal(self.columns, values, self.variance * other.variance / whole)


class Fitted(NamedTuple):
    """A law, the logarithms of its factors by columns, and the sum that it minimizes, in nats."""

    law: Law
    factors: dict[Columns, Floats]
    misfit: float


class _Fit:
    """The tables on their tree, and vectors of all their cells."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[NoisyMarginal], total: float) -> None:
        self.tables, self.total = tables, float(total)
        self.tree = JunctionTree(sizes, [table.columns for table in tables])
        _check.room(6 * 8 * self.tree.cells, "the junction tree of these tables")
        self.homes = [self.tree.home(table.columns) for table in tables]
        ends = np.cumsum([0, *(table.values.size for table in tables)])
        self.places = [slice(*pair) for pair in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        self.values = self.vector([table.values for table in tables])
        #: One over the deviation of each cell.
        self.weights = self.vector([np.broadcast_to(table.variance**-0.5, table.values.shape) for table in tables])

    def vector(self, arrays: Sequence[Floats]) -> Floats:
        return np.concatenate([array.reshape(-1) for array in arrays]) if arrays else np.zeros(0)

    def arrays(self, vector: Floats) -> list[Floats]:
        return [
            vector[place].reshape(table.values.shape) for place, table in zip(self.places, self.tables, strict=True)
        ]

    def spread(self, vector: Floats) -> list[Floats]:
        """Return sums of factors by clique."""
        found = self.tree.zeros()
        for home, table, part in zip(self.homes, self.tables, self.arrays(vector), strict=True):
            found[home] += self.tree.spread(part, table.columns, self.tree.links[home].clique)
        return found

    def sums(self, marginals: Sequence[Floats]) -> Floats:
        """Return expected numbers of records in the cells of the tables."""
        links = self.tree.links
        return self.total * self.vector(
            [
                marginals[home].sum(axis=axes_beyond(links[home].clique, table.columns))
                for home, table in zip(self.homes, self.tables, strict=True)
            ]
        )

    def misfit(self, expected: Floats) -> float:
        return float((((expected - self.values) * self.weights) ** 2).sum() / 2)

    def step(self, base: Floats, tau: float, heard: Callable[[], object]) -> tuple[Floats, Law, Floats]:
        """Return the factors that minimize the sum and the divergence from the law of `base`."""
        x = np.zeros(len(base))  # the multipliers, each times the deviation of its cell

        def value(x: Floats) -> tuple[float, Law, Floats]:
            moved = x * self.weights
            law = self.tree.calibrated(self.spread(base + moved))
            found = self.total * law.log_z - float(self.values @ moved) + tau / 2 * float(x @ x)
            return found, law, self.sums(law.marginals)

        reached, law, expected = value(x)
        for _ in range(NEWTON):
            heard()
            slope = (expected - self.values) * self.weights + tau * x
            if np.linalg.norm(slope) <= 0.1 * tau * np.linalg.norm(x):
                break
            direction = self._newton(law, slope, tau)
            gain, length = float(slope @ direction), 1.0
            while True:
                found, law, expected = value(x + length * direction)
                if found <= reached + 1e-4 * length * gain + 1e-13 * abs(reached) or length < 1e-6:
                    break
                length /= 2
            x, reached = x + length * direction, found
        return base + x * self.weights, law, expected

    def _newton(self, law: Law, slope: Floats, tau: float) -> Floats:
        """Return Newton's step to a hundredth of the slope, by conjugate gradients."""
        found, rest = np.zeros(len(slope)), -slope
        direction, size = rest.copy(), float(rest @ rest)
        enough = 1e-2 * size  # of the square: a tenth
        for _ in range(DIRECTIONS):
            if not size > enough:
                break
            along = law.derivative(self.spread(direction * self.weights))
            bent = self.sums(along) * self.weights + tau * direction
            length = size / float(direction @ bent)
            found += length * direction
            rest -= length * bent
            before, size = size, float(rest @ rest)
            direction = rest + size / before * direction
        return found


def fit_law(
    sizes: Sequence[int],
    tables: Sequence[NoisyMarginal],
    total: float,
    *,
    start: Mapping[Columns, Floats] | None = None,
    share: float = 2e-3,
    heard: Callable[[], object] = lambda: None,
) -> Fitted:
    """Return the law of `total` records nearest to noisy tables, one for each set of columns.

    `start` has logarithms of factors to begin with, of an earlier fit to some of the tables. A step that lowers the sum
    by less than half a nat and a `share` of it is the last one. `heard` is called between steps.
    """
    fit = _Fit(sizes, tables, total)
    tau = FIRST if start is None else LATER
    if start is None:
        ones = (table for table in tables if len(table.columns) == 1)
        start = {table.columns: np.log(np.maximum(table.values, table.variance**0.5)) for table in ones}
    base = fit.vector([start.get(table.columns, np.zeros(table.values.shape)) for table in tables])
    law = fit.tree.calibrated(fit.spread(base))
    misfit = fit.misfit(fit.sums(law.marginals))
    for number in range(STEPS):
        found, near, expected = fit.step(base, tau, heard)
        reached, tau = fit.misfit(expected), tau / FALL
        if reached <= misfit:
            base, law = found, near
        gained, misfit = misfit - reached, min(misfit, reached)
        if number and gained < 0.5 + share * misfit:
            break
    return Fitted(law, dict(zip((table.columns for table in tables), fit.arrays(base), strict=True)), misfit)
