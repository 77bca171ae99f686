"""The law of records that noisy tables of some of its marginals tell, which may overlap in any way.

    sum over tables r  |n p_r - y_r|^2 / (2 v_r)    of a law p of n records, p_r its marginals

is for noise of log-likelihood ``-(z - x)^2 / (2 v)``, the (discrete) Gaussian one, minus the logarithm of the
likelihood. The law that minimizes it has the largest entropy of those that do: it has a factor for each table, so it
lives on the junction tree of their columns. The way there is that of proximal points: each step minimizes the sum plus
``tau n KL(p | last p)``, tau falling. Its dual,

    n log sum_x last p(x) exp(sum_r lambda_r(x_r))  -  sum_r <lambda_r, y_r>  +  tau/2 sum_r v_r |lambda_r|^2,

is smooth and strictly convex, and is minimized by Newton's method, whose steps are found by conjugate gradients: its
Hessian times a direction is the derivative of the marginals along it, two passes over the tree, in the core.

The nearest law fits the noise too. `fit_law` ends the way before, where an estimate of the squared error to the true
tables is least: the sum plus the derivative of the expected tables by the noisy ones, without bias for Gaussian noise
(C. Stein) and, where the fit is linear, for any noise of these variances. The trace of that derivative is measured
along one direction of random signs. `nearest_law` goes to the end.

Sources: R. McKenna, D. Sheldon and G. Miklau (2019), Graphical-model based estimation and inference for differential
privacy, ICML, for the problem and the form of its solution; R. T. Rockafellar (1976), Monotone operators and the
proximal point algorithm, SIAM J. Control Optim. 14, for the steps, here in the divergence of laws; C. M. Stein (1981),
Estimation of the mean of a multivariate normal distribution, Ann. Statist. 9, and S. Ramani, T. Blu and M. Unser
(2008), Monte-Carlo SURE, IEEE Trans. Image Process. 17, for the estimate of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Floats
from quincunx.posterior._junction_tree import Columns, JunctionTree, Law, axes_beyond

#: The first weight of the divergence on the way of least error, over the least deviation of the noise: where a factor
#: is moved by e, a step leaves a cell this many deviations from its noisy number. The end is about three steps on.
HEAVY = 9.0
#: Weights on the way to the nearest law: the first, that of a fit that goes on from an earlier one.
FIRST, LATER = 1 / 9, 1 / 81
#: What weights fall by, and most steps.
FALL, STEPS = 3.0, 12
#: Nats by which the estimate of the error must rise to be believed, for far from its end the way may be flat; and by
#: which it is off by rounding and by what steps leave.
OVER, ALIKE = 1.0, 0.1
#: Newton steps, and directions of conjugate gradients for each of them, at the most.
NEWTON, DIRECTIONS = 30, 60
#: To what share Newton's steps and those of the way to the nearest law are found, the steps of the way of least error,
#: whose sums are compared, and the derivative along the random direction. Tables whose noise differs by orders of
#: magnitude need the last two.
NEAR, NEARER, NEAREST = 0.1, 0.01, 1e-4


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
    """A law, the logarithms of its factors by columns, and its sum of squares over twice the variances, in nats."""

    law: Law
    factors: dict[Columns, Floats]
    misfit: float


class _Fit:
    """The tables on their tree, and vectors of all their cells."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[NoisyMarginal], total: float) -> None:
        self.tables, self.total = tables, float(total)
        self.tree = JunctionTree(sizes, [table.columns for table in tables])
        self.homes = [self.tree.home(table.columns) for table in tables]
        _check.room(12 * 8 * self.tree.cells, "the junction tree of these tables")
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

    def step(
        self, base: Floats, tau: float, heard: Callable[[], object], near: float = NEAR
    ) -> tuple[Floats, Law, Floats]:
        """Return the factors that minimize the sum and the divergence from the law of `base`, to a share."""
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
            if np.linalg.norm(slope) <= near * tau * np.linalg.norm(x):
                break
            direction = self._solved(law, expected, tau, -slope, NEAR)
            gain, length = float(slope @ direction), 1.0
            while True:
                found, law, expected = value(x + length * direction)
                if found <= reached + 1e-4 * length * gain + 1e-13 * abs(reached) or length < 1e-6:
                    break
                length /= 2
            x, reached = x + length * direction, found
        return base + x * self.weights, law, expected

    @cached_property
    def _on_tree(self) -> _core.TableCovariance:
        """The tables on their tree, as the core has them."""
        tree, links = self.tree, self.tree.links
        cliques = []
        for number, link in enumerate(links):
            own = zip(self.homes, self.tables, self.places, strict=True)
            tables = [tree.within(table.columns, link.clique, at.start) for home, table, at in own if home == number]
            above = None
            if link.parent is not None:
                above = link.parent, tree.within(link.separator, links[link.parent].clique)
            cliques.append((tree.within(link.separator, link.clique), above, tables))
        return _core.TableCovariance(cliques, self.weights, self.total)

    def covariance(self, law: Law, direction: Floats) -> Floats:
        """Return the covariance of the numbers in the cells times a direction, both in deviations of the noise."""
        return self._on_tree.times(*_flat(law), direction)

    def _solved(self, law: Law, expected: Floats, tau: float, right: Floats, share: float) -> Floats:
        """Return x with ``(covariance + tau) x = right``, to a share of the right, by conjugate gradients.

        Before them goes the diagonal: the number in a cell is binomial.
        """
        own = expected * np.maximum(1 - expected / self.total, 0.0) * self.weights**2 + tau
        return self._on_tree.solve(*_flat(law), right, own, tau, share, DIRECTIONS)

    def start(self) -> Floats:
        """Return the factors of the product of the tables of one column, no cell below the deviation of its noise."""
        return np.where(self._alone, np.log(np.maximum(self.values, 1 / self.weights)), 0.0)

    @property
    def _alone(self) -> npt.NDArray[np.bool_]:
        """Which cells are those of tables of one column."""
        return np.repeat(
            [len(table.columns) == 1 for table in self.tables], [table.values.size for table in self.tables]
        )

    def way(self, heard: Callable[[], object]) -> Iterator[tuple[Floats, Law, Floats, float]]:
        """Yield factors, law, expected tables and degrees of freedom: of the start, and of each step of least error.

        Degrees of freedom are the derivative of the expected tables by the noisy ones, along the random direction.
        """
        # Raw bits: the same in every version of NumPy.
        signs = 1.0 - 2.0 * (np.random.PCG64(0).random_raw(len(self.values)) >> np.uint64(63))
        base, tau = self.start(), HEAVY * float(self.weights.max())
        law = self.tree.calibrated(self.spread(base))
        expected = self.sums(law.marginals)
        # By how much the factors move with the noisy tables, each times the deviation of its cell.
        above = self._alone & (self.values * self.weights > 1)
        moved = np.where(above, signs / np.where(above, self.values * self.weights**2, 1.0), 0.0)
        yield base, law, expected, float(signs @ self.covariance(law, moved))
        for _ in range(STEPS):
            base, law, expected = self.step(base, tau, heard, NEARER)
            change = self._solved(law, expected, tau, self.covariance(law, tau * moved + signs), NEAREST)
            moved += (signs - change) / tau
            # Of Gaussian noise the trace lies between nothing and the number of cells.
            yield base, law, expected, min(max(float(signs @ change), 0.0), float(len(signs)))
            tau /= FALL

    def fitted(self, base: Floats, law: Law, misfit: float) -> Fitted:
        return Fitted(law, dict(zip((table.columns for table in self.tables), self.arrays(base), strict=True)), misfit)


def _flat(law: Law) -> tuple[Floats, Floats]:
    """Return the marginals of the cliques and their laws given separators, clique after clique."""
    marginals, given = (np.concatenate([table.reshape(-1) for table in part]) for part in (law.marginals, law.given))
    return marginals, given


def fit_law(
    sizes: Sequence[int],
    tables: Sequence[NoisyMarginal],
    total: float,
    *,
    heard: Callable[[], object] = lambda: None,
) -> Fitted:
    """Return the law of `total` records whose tables are nearest to the true ones, by the estimate of the error.

    There is one table for each set of columns. `heard` is called between steps. The last step is the first one whose
    estimate is `OVER` above the least; of those within `ALIKE` of it the last is returned.
    """
    fit = _Fit(sizes, tables, total)
    best, least = None, np.inf
    for base, law, expected, freedom in fit.way(heard):
        misfit = fit.misfit(expected)
        if misfit + freedom >= least + OVER:
            break
        if misfit + freedom <= least + ALIKE:
            best, least = fit.fitted(base, law, misfit), min(least, misfit + freedom)
    assert best is not None
    return best


def nearest_law(
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
    if start is None:
        tau, base = FIRST, fit.start()
    else:
        tau = LATER
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
    return fit.fitted(base, law, misfit)
