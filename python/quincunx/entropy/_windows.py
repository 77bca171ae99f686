"""Bounds by windows about a cell: theorem C, for any periodic lattice.

A window grows to sites that are near in a drawing that the bonds alone determine: each site lies in the middle of its
neighbors, and the vectors b of the bonds have a multiple of the identity as sum of b^T b (the standard realization of
Kotani and Sunada).
"""

import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from quincunx import _check, _core
from quincunx._types import Facts
from quincunx.entropy._numbers import root_above, root_below
from quincunx.lattices import UnitCell

Order: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
Report: TypeAlias = Callable[[int, int], object]

#: Orders of the cells: those with a positive first coordinate come later, then those with a positive second one.
ORDERS: tuple[Order, ...] = (
    ((1, 0), (0, 1)),
    ((1, 0), (0, -1)),
    ((-1, 0), (0, 1)),
    ((-1, 0), (0, -1)),
    ((0, 1), (1, 0)),
    ((0, 1), (-1, 0)),
    ((0, -1), (1, 0)),
    ((0, -1), (-1, 0)),
    ((1, 1), (1, 0)),
    ((1, 1), (-1, 0)),
    ((-1, -1), (1, 0)),
    ((-1, -1), (-1, 0)),
)

#: Frontiers that growing windows end with.
WIDTHS = (8, 11, 14, 17, 20, 22, 23)

#: Decimals of the ends, a few more than doubles prove.
_PLACES = 20
# States take up to four numbers of eight bytes while a site is forgotten, and their words.
_BYTES = 64


def window_intervals(
    cell: UnitCell,
    activity: Fraction,
    widths: "tuple[int, ...]",
    done: Callable[[Decimal, Decimal], bool],
    report: Report | None,
) -> tuple[Decimal, Decimal, Facts]:
    """Return both ends and the evidence for windows of growing width, until they are `done`."""
    start = time.perf_counter()
    states = min(max(_check.available_memory() // _BYTES, 1 << 10), 1 << 27)
    sites = len(cell.site_offsets)
    value = float(activity)
    shift = activity / Fraction(value)
    lower, upper = Decimal(1), Decimal("Infinity")
    evidence: Facts = {}
    trials: list[tuple[float, Order]] = []
    drawing = _standard(cell)
    for number, width in enumerate(widths):
        # All orders are tried while windows are small; the best of them goes on.
        orders = ORDERS if width <= 12 or not trials else [min(trials)[1]]
        if width > 12 and not trials:
            trials = [(_run(drawing, order, value, 10, states)[1], order) for order in ORDERS]
            orders = (min(trials)[1],)
        trials = trials if width > 12 else []
        for order in orders:
            found, gap = _run(drawing, order, value, width, states)
            if width <= 12:
                trials.append((gap, order))
            low = root_below(Fraction(found["lower"]) * min(Fraction(1), shift) ** sites, sites, _PLACES)
            high = root_above(Fraction(found["upper"]) * max(Fraction(1), shift) ** sites, sites, _PLACES)
            if not evidence or gap < evidence["relative_gap"]:
                evidence = {"width": width, "order": order, "relative_gap": gap}
                evidence |= {"window": found["window"], "frontier": found["frontier"], "states": found["states"]}
            lower, upper = max(lower, low), min(upper, high)
        if report is not None:
            report(number + 1, len(widths))
        if done(lower, upper):
            break
    evidence["seconds"] = time.perf_counter() - start
    return lower, upper, evidence


def _run(cell: UnitCell, order: Order, value: float, width: int, states: int) -> "tuple[_core._WindowBounds, float]":
    found = _core.window_bounds(cell._parts(), order, value, width=width, states=states)
    return found, found["upper"] / found["lower"] - 1


def _standard(cell: UnitCell) -> UnitCell:
    """Return the cell in its standard realization."""
    s = cell.num_sites
    laplacian, pull = np.zeros((s, s)), np.zeros((s, 2))
    for u, v, step in cell.bonds:
        for here, there, sign in ((u, v, 1), (v, u, -1)):
            laplacian[here, here] += 1
            laplacian[here, there] -= 1
            pull[here] += sign * np.array(step)
    offsets = np.linalg.lstsq(laplacian, pull, rcond=None)[0]
    vectors = [offsets[v] + step - offsets[u] for u, v, step in cell.bonds]
    values, turn = np.linalg.eigh(np.array(vectors).T @ vectors if vectors else np.eye(2))
    basis = turn / np.sqrt(np.maximum(values, 1e-6 * (values.max() or 1.0)))  # all is zero where no bond leaves a cell
    return UnitCell(basis.round(9), (offsets @ basis).round(9), cell.bonds)
