"""Overdispersed counts: what a fit is told of the dispersion, and how the core takes it.

    count ~ Poisson(rate e),  e ~ Gamma(r, r):  negative binomial, of variance rate + rate^2 dispersion,

where dispersion = 1 / r, with one r for the table, or one for each row or each column. What is learnt has a normal
prior of its logarithm.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from quincunx import _check
from quincunx._types import Floats
from quincunx.factorization._data import Data
from quincunx.factorization._layout import Factor, Layout

Likelihood: TypeAlias = Literal["poisson", "negative_binomial"]
#: What the core takes: what has a shape of its own, and the shapes r.
Shapes: TypeAlias = tuple[str, Floats]

#: Standard deviation of ln r, whose mean is 0: three of them reach from a dispersion of e^-9, as good as none, to one
#: of e^9. Single rows and columns say less, and a dispersion far off would be believed.
PRIOR = {"table": 3.0, "rows": 1.5, "columns": 1.5}
#: What the dispersion that a fit starts from is within: that of the release, as if all rates were the same. A fit that
#: starts from less may take the largest counts for noise and stay there.
_START = (0.1, 100.0)
# Rows whose squares are added up at a time: of values below 2^20, a million columns stay in 64 bits.
_ROWS = 8
_AXES = {"global": ("table", None), "row": ("rows", 0), "column": ("columns", 1)}


@dataclass(frozen=True, eq=False)
class Dispersion:
    """The dispersion of the counts of a table.

    Attributes
    ----------
    axis : "table", "rows" or "columns"
        What has one of its own.
    values : ndarray of float64
        Where a fit starts, or what is fixed.
    learnt : bool
        Whether it is learnt.
    """

    axis: str
    values: Floats
    learnt: bool

    @classmethod
    def of(cls, dispersion: str | float, layout: Layout, data: Data) -> Dispersion:
        """Return what a parameter says of data."""
        shape = data.shape
        if not isinstance(dispersion, str):
            value = _check.real(dispersion, "dispersion")
            if not 1e-7 <= value <= 1e7:
                raise ValueError(f"`dispersion` must be in [1e-7, 1e7], got {dispersion}")
            return cls("table", np.array([value]), learnt=False)
        axis, number = _AXES[_check.one_of(dispersion, "dispersion", _AXES)]
        if number is not None and (len(shape) != 2 or layout.symmetric):
            raise ValueError(
                f"`dispersion` must be 'global' or a number but for a matrix or ordered pairs, got {dispersion!r}"
            )
        return cls(axis, np.full(1 if number is None else shape[number], _spread(data)), learnt=True)

    @property
    def is_shared(self) -> bool:
        """Whether cells in all rows tell of what is learnt."""
        return self.learnt and self.axis != "rows"

    def variable(self, layout: Layout) -> Factor:
        """Return the variable of the draws."""
        where = {"table": None, "rows": 0, "columns": 1}[self.axis]
        shown, dims = ((), ()) if where is None else (self.values.shape, (layout.cells[where],))
        return Factor("dispersion", (self.values.size, 1), dims, "folded", (None, None), shown)

    def arguments(self, shapes: Floats | None = None) -> tuple[Shapes, tuple[float, float] | None]:
        """Return what the engines of the core are told, with shapes that a run is at or those where it starts."""
        at = 1 / self.values if shapes is None else shapes
        return (self.axis, at), (0.0, PRIOR[self.axis]) if self.learnt else None

    def shapes(self, dispersion: Floats) -> Shapes:
        """Return what the core takes for a draw."""
        return self.axis, np.ascontiguousarray(1 / dispersion).reshape(-1)


def _spread(data: Data) -> float:
    """Return (variance - mean) / mean^2 of the counts before noise, within bounds."""
    numbers, totals, all_squares, all_ratios = zip(*data.each(_sums), strict=True)
    number, total, squares = sum(numbers), sum(totals), sum(all_squares)
    if not number:
        return 1.0
    ratios: Counter[float] = sum(all_ratios, Counter())
    mean = max(total / number, 1e-3)
    noise = math.fsum(count * 2 * alpha / (1 - alpha) ** 2 for alpha, count in ratios.items()) / number
    variance = (number * squares - total**2) / number**2
    return float(np.clip((variance - noise - mean) / mean**2, *_START))


def _sums(data: Data) -> tuple[int, int, int, Counter[float]]:
    """Return of the observed cells their number, sums of values and squares, and how often each ratio is there."""
    total = squares = 0
    for start in range(0, len(data.values), _ROWS):  # where cells are held out values are zero
        block = data.values[start : start + _ROWS].astype(np.int64).reshape(-1)
        total, squares = total + int(block.sum()), squares + int(block @ block)
    if not data.alpha.ndim:
        number = int(data.observed.sum())
        return number, total, squares, Counter({float(data.alpha): number})
    found, counts = np.unique(data.alpha[data.observed], return_counts=True)
    return int(counts.sum()), total, squares, Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))
