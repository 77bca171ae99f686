"""Consistent tables nearest to noisy ones, along a forest: what the noise leaves of one- and two-way marginals.

    minimize    sum over nodes i of  |m_i - y_i|^2 / (2 v_i)  +  sum over edges e = (i, j) of  |m_e - y_e|^2 / (2 v_e)
    subject to  m >= 0,  sum_b m_e(a, b) = m_i(a),  sum_a m_e(a, b) = m_j(b),  sum_a m_i(a) = total

On a forest tables that agree on shared nodes are the marginals of a law, so the constraints are those of a law and no
more. For noise of log-likelihood ``-(z - x)^2 / (2 v)``, the (discrete) Gaussian one, the minimum is the maximum of the
likelihood. The dual problem has a multiplier for each constraint, is smooth, concave and quadratic in pieces; given the
multipliers each cell is ``max(0, y - v t)``. Newton's method on it, with conjugate gradients for the step.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from quincunx._types import Floats
from quincunx.errors import ConvergenceWarning

Edge = tuple[int, int]

#: Newton steps at the most, and directions of conjugate gradients in one of them: tables of 3 to 15 columns, of 100 and
#: of 100,000 records, took 2 to 4 steps of 8 to 21 directions. Beyond, the fit is as far as it is, with a warning.
MOST_STEPS = 200
MOST_DIRECTIONS = 400


class NoisyTable(NamedTuple):
    """A table with noise, and the variance of the noise: one for all cells, or one for each."""

    values: Floats
    variance: Floats | float


class Consistent(NamedTuple):
    """Tables that agree up to a residual, in records."""

    nodes: list[Floats]
    edges: dict[Edge, Floats]
    residual: float


def fit_forest(nodes: Sequence[NoisyTable], edges: Mapping[Edge, NoisyTable], total: float) -> Consistent:
    """Return the consistent tables nearest to noisy ones."""
    dual = _Dual(nodes, edges, total)
    x = dual.start()
    tables, value = dual.tables(x)
    slope = dual.slope(tables)
    enough = 1e-6 * dual.deviation + 1e-12 * total
    for _ in range(MOST_STEPS):
        if np.abs(slope).max() <= enough:
            break
        direction = dual.step(tables, slope)
        gain, length = float(direction @ slope), 1.0
        while True:
            found, reached = dual.tables(x + length * direction)
            # Near the maximum the value does not tell any more: then the slope has to.
            if reached >= value + 1e-4 * length * gain - 1e-13 * abs(value) or length < 1e-12:
                break
            length /= 2
        x, tables, value = x + length * direction, found, reached
        slope = dual.slope(tables)
    residual = float(np.abs(slope).max())
    if residual > max(enough, 1e-3 * dual.deviation):
        warnings.warn(f"tables agree to {residual:.3g} records only", ConvergenceWarning, stacklevel=3)
    marginals, joint = tables
    return Consistent(marginals, dict(zip(edges, joint, strict=True)), residual)


Tables = tuple[list[Floats], list[Floats]]


class _Dual:
    """The dual problem: a multiplier for each row and column of each edge, and one for each node's total."""

    def __init__(self, nodes: Sequence[NoisyTable], edges: Mapping[Edge, NoisyTable], total: float) -> None:
        self.nodes = [(table.values, np.broadcast_to(table.variance, table.values.shape)) for table in nodes]
        self.edges = [(edge, table.values, table.variance) for edge, table in edges.items()]
        self.total = total
        at = len(nodes)  # the multipliers of totals come first
        self.places: list[tuple[slice, slice]] = []
        for _, values, _ in self.edges:
            rows, cols = values.shape
            self.places.append((slice(at, at + rows), slice(at + rows, at + rows + cols)))
            at += rows + cols
        self.size = at
        least = [float(np.min(variance)) for _, variance in self.nodes] + [float(np.min(v)) for _, _, v in self.edges]
        self.deviation, self.variance = min(least) ** 0.5, max(least)

    def start(self) -> Floats:
        """Return multipliers at which each node by itself has the total, so that some of its cells are positive."""
        x = np.zeros(self.size)
        for i, (values, variance) in enumerate(self.nodes):
            low, high = float(((values - self.total) / variance).min()), float((values / variance).max())
            for _ in range(60):
                x[i] = (low + high) / 2
                less = np.maximum(values - variance * x[i], 0.0).sum() < self.total
                low, high = (low, x[i]) if less else (x[i], high)
            x[i] = low
        return x

    def _sums(self, x: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return what each cell is pushed by: the transpose of the constraints times the multipliers."""
        on_nodes = [np.full(values.shape, x[i]) for i, (values, _) in enumerate(self.nodes)]
        on_edges = []
        for ((i, j), _, _), (rows, cols) in zip(self.edges, self.places, strict=True):
            on_nodes[i] -= x[rows]
            on_nodes[j] -= x[cols]
            on_edges.append(x[rows][:, None] + x[cols])
        return on_nodes, on_edges

    def _constraints(self, tables: Tables) -> Floats:
        """Return the left sides of the constraints at tables."""
        marginals, joint = tables
        found = np.empty(self.size)
        found[: len(marginals)] = [table.sum() for table in marginals]
        for ((i, j), _, _), (rows, cols), table in zip(self.edges, self.places, joint, strict=True):
            found[rows] = table.sum(axis=1) - marginals[i]
            found[cols] = table.sum(axis=0) - marginals[j]
        return found

    def tables(self, x: Floats) -> tuple[Tables, float]:
        """Return the tables that belong to multipliers, and the value of the dual problem."""
        on_nodes, on_edges = self._sums(x)
        value = -self.total * float(x[: len(self.nodes)].sum())

        def nearest(y: Floats, variance: Floats | float, push: Floats) -> Floats:
            nonlocal value
            table = np.maximum(y - variance * push, 0.0)
            value += float(((table - y) ** 2 / (2 * variance) + push * table).sum())
            return table

        marginals = [nearest(y, v, push) for (y, v), push in zip(self.nodes, on_nodes, strict=True)]
        joint = [nearest(y, v, push) for (_, y, v), push in zip(self.edges, on_edges, strict=True)]
        return (marginals, joint), value

    def slope(self, tables: Tables) -> Floats:
        """Return by how much tables miss the constraints: the gradient of the dual problem."""
        missed = self._constraints(tables)
        missed[: len(self.nodes)] -= self.total
        return missed

    def step(self, tables: Tables, slope: Floats) -> Floats:
        """Return Newton's step, by conjugate gradients with the curvatures of single multipliers before them."""
        weights = (
            [np.where(table > 0, v, 0.0) for table, (_, v) in zip(tables[0], self.nodes, strict=True)],
            [np.where(table > 0, v, 0.0) for table, (_, _, v) in zip(tables[1], self.edges, strict=True)],
        )
        own = np.empty(self.size)
        own[: len(self.nodes)] = [weight.sum() for weight in weights[0]]
        for ((i, j), _, _), (rows, cols), weight in zip(self.edges, self.places, weights[1], strict=True):
            own[rows] = weight.sum(axis=1) + weights[0][i]
            own[cols] = weight.sum(axis=0) + weights[0][j]
        damping = 1e-10 * self.variance + 1e-12 * own
        own += damping

        def curved(p: Floats) -> Floats:
            on_nodes, on_edges = self._sums(p)
            moved = (
                [weight * push for weight, push in zip(weights[0], on_nodes, strict=True)],
                [weight * push for weight, push in zip(weights[1], on_edges, strict=True)],
            )
            return self._constraints(moved) + damping * p

        found, rest = np.zeros(self.size), slope.copy()
        scaled = rest / own
        direction, size = scaled.copy(), float(rest @ scaled)
        enough = min(1e-2, float(np.abs(slope).max()) / max(self.total, 1.0)) ** 2 * size
        for _ in range(MOST_DIRECTIONS):
            if not size > enough:
                break
            along = curved(direction)
            bend = float(direction @ along)
            if not bend > 0:
                break
            found += size / bend * direction
            rest -= size / bend * along
            scaled = rest / own
            before, size = size, float(rest @ scaled)
            direction = scaled + size / before * direction
        return found
