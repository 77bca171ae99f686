"""Sums over users of reports of categories: how many support each."""

from __future__ import annotations

import math

from quincunx._core import LdpLikelihood
from quincunx._summary import are_counts
from quincunx.ldp._groups import Shares

#: Expected reports that support a category by chance, from which on sums of subsets are taken as normal.
FEWEST = 50


class Sums(Shares):
    """How many of the reports of users support each category."""

    columns: tuple[float, ...]
    users: float
    sums = ("columns", "users")

    @property
    def size(self) -> int:
        return len(self.columns)


class ColumnSums(Sums, kind="column_sums"):
    """Sums over the rows of users."""

    p: float
    q: float

    @property
    def protected(self) -> bool:
        return self.q > 0

    def check(self) -> None:
        if not are_counts([self.users]) or not all(0 <= each <= self.users for each in self.columns):
            raise ValueError("it has column sums that no users have")
        if not 0 <= self.q < self.p <= 1:
            raise ValueError(f"its probabilities must be in order, got {self.p} and {self.q}")

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.column_sums(list(self.columns), self.users, self.p, self.q)


class SubsetSums(Sums, kind="subset_sums"):
    """How many of the subsets of a size hold each category."""

    p: float
    subset: int

    def check(self) -> None:
        self._core()  # which looks at the sums and the law
        if not are_counts([self.users, *self.columns]):
            raise ValueError("it has sums that no users have")

    @property
    def zero_probability(self) -> float:
        """The probability that a subset holds a category that is not the truth."""
        return (self.p * (self.subset - 1) + (1 - self.p) * self.subset) / (self.size - 1)

    def _core(self) -> LdpLikelihood:
        return LdpLikelihood.subset_sums(list(self.columns), self.users, self.p, self.subset)

    def likelihood(self) -> LdpLikelihood:
        if self.users and self.users * self.zero_probability < FEWEST:
            least, words = math.ceil(FEWEST / self.zero_probability), '`data` must be "rows" or "patterns"'
            raise ValueError(f"{words} for fewer than {least} subsets, got {self.users:.0f}")
        return self._core()
