"""Measuring marginals of private records: noise of whole numbers, its levels, and what the noisy tables say alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Array, Floats, Ints
from quincunx.posterior._records import Nodes
from quincunx.privacy import PrivacyGuarantee, noise
from quincunx.privacy._discrete_gaussian import DiscreteGaussian
from quincunx.privacy._geometric import Geometric, geometric_noise
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._privacy_map import Declared
from quincunx.privacy._relations import Relation

#: Expected numbers of records are rounded to so many parts of one, so that scores are whole numbers.
PARTS = 2**10
#: No memory holds more records, and scores of so many fit 64 bits with multipliers up to this.
MOST_RECORDS, MOST_WEIGHT = 2**40, 2**9
#: What is released lies between these ends, so that sums of two stay within 64 bits.
LARGEST = 2**61


class CountNoise:
    """CountNoise of one step, on tables of which a neighbor moves so many cells by one."""

    def __init__(self, decay: Fraction | None, variance: Fraction | None, cells: int) -> None:
        self.decay, self.variance, self.cells = decay, variance, cells

    @property
    def law(self) -> noise.GeometricNoise | noise.DiscreteGaussianNoise:
        if self.decay is not None:
            return noise.GeometricNoise(exponent=self.decay)
        assert self.variance is not None
        return noise.DiscreteGaussianNoise(float(self.variance))

    @property
    def spread(self) -> float:
        """The variance of a cell, and no less than what divisions take."""
        if self.decay is not None:
            return geometric_variance(float(self.decay))
        assert self.variance is not None
        return float(self.variance)

    def guarantee(self, relation: Relation) -> PrivacyGuarantee:
        """Return the guarantee of geometric noise: the tables of neighbors differ in so many cells, a copy for each."""
        assert self.decay is not None
        return guarantee_of(Declared(Geometric(self.decay, 1), relation, whole=True, copies=self.cells), relation)

    @property
    def rho(self) -> Fraction:
        """The zero-concentrated level of discrete Gaussian noise on all of these cells."""
        assert self.variance is not None
        return self.cells * DiscreteGaussian(self.variance, 1, Fraction(1)).rho

    def add(self, values: Ints, words: list[int] | None) -> Ints:
        if self.decay is not None:
            return geometric_noise(self.decay).add(values, -LARGEST, LARGEST, words)
        assert self.variance is not None
        source = _core.WholeSampler.discrete_gaussian(self.variance.numerator, self.variance.denominator)
        return source.add(values, -LARGEST, LARGEST, words)


class Steps:
    """Steps that are reported as they are done."""

    def __init__(self, report: Callable[[int, int], object] | None, total: int) -> None:
        self.report, self.total, self.done = report, total, 0

    def tick(self) -> None:
        self.done += 1
        if self.report is not None:
            self.report(self.done, self.total)


def noisy_tables(noisy: CountNoise, tables: list[Ints], words: list[int] | None) -> list[Ints]:
    """Return tables with noise, all of it from one stream."""
    found = noisy.add(np.concatenate(tables).astype(np.int64), words)
    return np.split(found, np.cumsum([len(table) for table in tables])[:-1])


def total_of(tables: Iterable[tuple[Array, float | Floats]]) -> int:
    """Return the number of records that noisy tables say, at least 1: the mean, by the variance of each sum.

    A table comes with the variance of its cells, or of each.
    """
    sums = [(float(values.sum()), float(np.broadcast_to(spread, values.shape).sum())) for values, spread in tables]
    found = sum(whole / spread for whole, spread in sums) / sum(1 / spread for _, spread in sums)
    return min(max(round(found), 1), MOST_RECORDS)


def geometric_variance(decay: float) -> float:
    """Return the variance of two-sided geometric noise, at least 1e-6: less is no noise, and weights stay finite."""
    return max(2 * math.exp(-decay) / math.expm1(-decay) ** 2, 1e-6)


def pair_table(x: npt.NDArray[np.int32], y: npt.NDArray[np.int32], rows: int, cols: int) -> Ints:
    """Return the table of two columns of codes; the product of their sizes is below 2**31."""
    return np.bincount(x * np.int32(cols) + y, minlength=rows * cols).reshape(rows, cols)


def scopes_of(columns: Nodes, workload: Iterable[Iterable[Hashable]] | None) -> list[tuple[int, ...]]:
    """Return the places of the columns of each marginal of a workload, in rising order; by default all pairs."""
    if workload is None:
        return list(combinations(range(len(columns)), 2))
    _check.fits(workload, "workload")
    if isinstance(workload, (str, bytes)) or not isinstance(workload, Iterable):
        raise TypeError(f"`workload` must be collections of columns, got {type(workload).__name__}")
    place = {column: i for i, column in enumerate(columns)}
    found = []
    for marginal in workload:
        if isinstance(marginal, (str, bytes)) or not isinstance(marginal, Iterable):
            raise TypeError(f"`workload` must hold collections of columns, got {marginal!r}")
        names = list(marginal)
        for name in names:
            if name not in place:
                raise ValueError(f"`workload` must be of the columns {list(columns)}, got {name!r}")
        found.append(tuple(sorted({place[name] for name in names})))
    return found
