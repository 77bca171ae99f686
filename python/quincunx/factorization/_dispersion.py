"""Overdispersed counts: what a fit is told of the dispersion, and how the core takes it.

    count ~ Poisson(rate e),  e ~ Gamma(r, r):  negative binomial, of variance rate + rate^2 dispersion,

where dispersion = 1 / r, with one r for the table, or one for each row or each column. What is learnt has a normal
prior of its logarithm.
"""

from __future__ import annotations

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

    def variable(self, layout: Layout) -> Factor:
        """Return the variable of the draws."""
        where = {"table": None, "rows": 0, "columns": 1}[self.axis]
        shown, dims = ((), ()) if where is None else (self.values.shape, (layout.cells[where],))
        return Factor("dispersion", (self.values.size, 1), dims, "folded", (None, None), shown)

    def arguments(self) -> tuple[Shapes, tuple[float, float] | None]:
        """Return what the engines of the core are told."""
        return (self.axis, 1 / self.values), (0.0, PRIOR[self.axis]) if self.learnt else None

    def shapes(self, dispersion: Floats) -> Shapes:
        """Return what the core takes for a draw."""
        return self.axis, np.ascontiguousarray(1 / dispersion).reshape(-1)


def _spread(data: Data) -> float:
    """Return (variance - mean) / mean^2 of the counts before noise, within bounds."""
    observed = np.broadcast_to(data.observed, data.shape)
    values, alpha = data.values[observed].astype(np.float64), np.broadcast_to(data.alpha, data.shape)[observed]
    if not values.size:
        return 1.0
    mean, noise = max(float(values.mean()), 1e-3), float((2 * alpha / (1 - alpha) ** 2).mean())
    return float(np.clip((values.var() - noise - mean) / mean**2, *_START))
