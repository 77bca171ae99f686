"""Groups of users whose values have one noise: what they released, and how the core makes their likelihood of it."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _core
from quincunx._core import LdpLikelihood
from quincunx._inference import Array, Floats
from quincunx._summary import Part, are_counts

#: Groups of one user each, and which of them each user is.
Users: TypeAlias = "tuple[Sequence[Group], npt.NDArray[np.intp]]"

#: The groups by name, as files hold them.
KINDS = Part.KINDS
#: Cells between bounds, at the least: with four moments of each the log-likelihood is off by less than 1e-12 nats a
#: user (`tests/ldp/test_summaries.py`). And reports from which on a fit works on cells, which then takes 7 to 18 % less
#: time.
CELLS, MANY = 2**14, 2**17
#: Numbers that the core sorts into cells in one call: a twentieth of a second.
PIECE = 2**22
#: Whole numbers between bounds, at the most: a cell that is not empty takes 40 bytes, 160 MiB if none of them is.
WIDEST = 2**22
#: What exact sums are whole multiples of.
UNIT = Fraction(1, 2**2148)


class Group(Part):
    """Users whose values have one noise."""

    #: What the log-likelihood is beyond that of the core: a constant.
    offset: float = field(default=0.0, kw_only=True)
    #: Of which group of a population the users are, where the groups have parameters of their own.
    population: str | int | None = field(default=None, kw_only=True)

    def likelihood(self) -> LdpLikelihood:
        """Return the core's likelihood, but for the offset."""
        raise NotImplementedError

    def each(self, codes: npt.ArrayLike) -> Users:
        """Return what users released, each thing once, and which of them is each user's; `codes` are of categories.

        Raises
        ------
        ValueError
            If the group is a sum over users.
        """
        raise ValueError("`released` must be what each user released: a sum over users has no likelihood of one")

    def summed(self) -> Part:
        """Return the sums over users that have the same likelihood: itself where it holds nothing else.

        Raises
        ------
        ValueError
            If there are none.
        """
        if not self.sums:
            raise ValueError(f"there is no summary of {self.unsummed}")
        return self

    #: Of what there is no summary, and why.
    unsummed: ClassVar[str] = "these reports"

    def condensed(self) -> Group:
        """Return the sums in the place of many reports whose likelihood they have but for rounding."""
        return self


class Numbers(Group):
    """A number of each user."""

    numbers: Floats

    def each(self, codes: npt.ArrayLike) -> Users:
        values, index = np.unique(self.numbers, return_inverse=True)
        return [replace(self, numbers=values[i : i + 1]) for i in range(len(values))], index.reshape(-1)


class Plain(Numbers, kind="plain"):
    """Numbers without noise."""

    family: str

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.plain(self.family, self.numbers)

    def summed(self) -> Part:
        first, square = exact_sums(np.column_stack([self.numbers, np.ones(len(self.numbers))]), products=True)[1::-1]
        last = Fraction()
        if self.family == "poisson":
            values, counts = np.unique(self.numbers, return_counts=True)
            logs = (Fraction(math.lgamma(value + 1)) for value in values.tolist())
            last = sum(map(operator.mul, logs, counts.tolist()), Fraction())
        return PlainSums(self.family, len(self.numbers), first, square, last)


class PlainSums(Group, kind="plain_sums"):
    """Numbers without noise: how many, their sum, that of their squares, and for Poisson counts that of ln x!."""

    family: str
    users: int
    first: Fraction
    second: Fraction
    log_factorials: Fraction
    sums = ("users", "first", "second", "log_factorials")

    @property
    def protected(self) -> bool:
        return False

    def check(self) -> None:
        spread = self.users * self.second - self.first**2
        if not are_counts([self.users]) or spread < 0 or (not self.users and (self.first or self.second)):
            raise ValueError("it has sums that no numbers have")

    def likelihood(self) -> LdpLikelihood:
        first, second = self.first, self.log_factorials
        if self.family == "gaussian" and self.users:
            first, second = first / self.users, self.second - first**2 / self.users
        return LdpLikelihood.plain_sums(self.family, float(self.users), rounded(first), rounded(second))


class Divisible(Numbers):
    """Numbers that cells between two bounds can stand for."""

    def summed(self) -> Cells:
        if len(self.numbers) <= PIECE:
            return self._sorted()
        starts = range(0, len(self.numbers), PIECE)  # between pieces interrupts are heard
        pieces = (replace(self, numbers=self.numbers[start : start + PIECE])._sorted() for start in starts)
        return functools.reduce(lambda one, other: one.plus(other), pieces)

    def condensed(self) -> Group:
        return self if len(self.numbers) < MANY else self.summed()

    def _sorted(self) -> Cells:
        """Return the cells of so many numbers as are sorted at once."""
        raise NotImplementedError


class Rectified(Divisible, kind="rectified"):
    """Real numbers, clipped and released with Laplace noise."""

    family: str
    bounds: tuple[float, float]
    scale: float
    exact: bool

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.rectified(self.family, self.numbers, self.bounds, self.scale, self.exact)

    def _sorted(self) -> RectifiedCells:
        return RectifiedCells(*_sorted(self.numbers, self.bounds, CELLS), self.family, self.bounds, self.scale)


class Whole(Divisible, kind="whole"):
    """Whole numbers, clipped and released with two-sided geometric or Laplace noise."""

    family: str
    noise: str
    decay: float
    bounds: tuple[int, int]
    exact: bool

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.whole(self.family, self.noise, self.decay, self.bounds, self.numbers, self.exact)

    def _sorted(self) -> WholeCells:
        lower, upper = self.bounds
        if not 0 < upper - lower <= WIDEST:
            raise ValueError(f"`lower` must be below `upper` by at most 2**22, got {lower} with upper = {upper}")
        found = _sorted(self.numbers, (float(lower), float(upper)), _whole_cells(self.noise, lower, upper))
        return WholeCells(*found, self.family, self.noise, self.decay, self.bounds)


def _whole_cells(noise: str, lower: int, upper: int) -> int:
    """Return the number of cells between whole bounds: one for each unit where releases are whole, else many."""
    return (1 if noise == "geometric" else -(-CELLS // (upper - lower))) * (upper - lower)


class Cells(Group):
    """Numbers by cells between two bounds: what lies beyond is counted, and added up as multiples of `UNIT`.

    Rows of `moments` are the number of values in a cell and their sums of t, t**2 and t**3 in units of 2**-30.
    """

    below: int
    above: int
    beyond: Fraction
    cells: int
    index: npt.NDArray[np.int64]
    moments: npt.NDArray[np.int64]
    sums = ("below", "above", "beyond", "index", "moments")

    @property
    def number(self) -> int:
        return self.below + self.above + int(self.moments[:, 0].sum())

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds."""
        raise NotImplementedError

    @property
    def right_cells(self) -> int:
        """How many cells their law has."""
        raise NotImplementedError

    def plus(self, other: Self) -> Self:
        index = np.union1d(self.index, other.index)
        moments = np.zeros((len(index), 4), np.int64)
        for part in (self, other):
            moments[np.searchsorted(index, part.index)] += part.moments
        ends = {name: getattr(self, name) + getattr(other, name) for name in ("below", "above", "beyond")}
        return replace(self, **ends, index=index, moments=moments)

    def check(self) -> None:
        number, t, square, cube = self.moments.T
        rising = self.index.size == 0 or (self.index[0] >= 0 and self.index[-1] < self.cells)
        # Means of t within its cell and of its powers within their ranges, but for rounding.
        most = number.astype(float) * (1 + 2**-20)
        possible = [abs(t) <= most * 2**29, (square >= 0) & (square <= most * 2**28), abs(cube) <= most * 2**27]
        spread = np.asarray(t, float) ** 2 * 2.0**-30 <= number * (square + number) * (1 + 1e-9)
        if not (
            are_counts([self.below, self.above])
            and self.cells == self.right_cells
            and rising
            and (np.diff(self.index) > 0).all()
            and self.moments.dtype == self.index.dtype == np.int64
            and self.moments.shape == (len(self.index), 4)
            and (number > 0).all()
            and all(each.all() for each in (*possible, spread))
            and self._excess() >= 0
        ):
            raise ValueError("it has cells that no numbers have")
        self.likelihood()  # which looks at the law

    def _excess(self) -> Fraction:
        """By how much all that lies beyond the bounds does."""
        lower, upper = self.ends
        return self.beyond + self.below * Fraction(lower) - self.above * Fraction(upper)

    def _of_core(self) -> tuple[int, tuple[list[float], float, Array, Array]]:
        """Return the number of cells, and what the core takes of them."""
        ends = [float(self.below), float(self.above)]
        return self.cells, (ends, rounded(self._excess()), self.index, self.moments)


def _sorted(numbers: Floats, bounds: tuple[float, float], cells: int) -> tuple[int, int, Fraction, int, Array, Array]:
    """Return the fields of `Cells`."""
    below, above, beyond, index, moments = _core.ldp_cells(numbers, bounds, cells)
    return below, above, beyond * UNIT, cells, index, moments


def rounded(exact: Fraction) -> float:
    """Return the nearest float of a sum, infinite where there is none."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def exact_sums(rows: Floats, *, products: bool = False) -> list[Fraction]:
    """Return the sums of columns, or of products of columns i <= j, without rounding."""
    each = max(1, PIECE // max(rows.shape[1] ** (2 if products else 1), 1))
    pieces = [rows[i : i + each] for i in range(0, len(rows), each)] or [rows]
    found = [_core.ldp_exact_sums(np.ascontiguousarray(piece), products) for piece in pieces]
    return [sum(numbers) * UNIT for numbers in zip(*found, strict=True)]


class RectifiedCells(Cells, kind="rectified_cells"):
    """Real numbers, clipped and released with Laplace noise, by cells."""

    family: str
    bounds: tuple[float, float]
    scale: float

    @property
    def ends(self) -> tuple[float, float]:
        return self.bounds

    @property
    def right_cells(self) -> int:
        return CELLS

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.rectified_cells(self.family, self.bounds, self.scale, *self._of_core())


class WholeCells(Cells, kind="whole_cells"):
    """Whole numbers, clipped and released with two-sided geometric or Laplace noise, by cells."""

    family: str
    noise: str
    decay: float
    bounds: tuple[int, int]

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.bounds[0]), float(self.bounds[1])

    @property
    def right_cells(self) -> int:
        return _whole_cells(self.noise, *self.bounds)

    def likelihood(self) -> LdpLikelihood:
        number, found = self._of_core()
        return LdpLikelihood.whole_cells(self.family, self.noise, self.decay, self.bounds, number, found)


class Clipped(Numbers, kind="clipped"):
    """Numbers clipped and released with normal noise; bounds of real ones may be infinite."""

    family: str
    bounds: tuple[float, float]
    sd: float
    exact: bool
    unsummed = "numbers with normal noise: their likelihood takes each; give the reports"

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.clipped(self.family, self.numbers, self.bounds, self.sd, self.exact)


class Tractable(Numbers, kind="tractable"):
    """Numbers of the tractable family, clipped and released with normal noise."""

    g: tuple[float, ...]
    interval: tuple[float, float]
    clip: tuple[float, float]
    sd: float
    exact: bool
    unsummed = Clipped.unsummed

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.tractable(self.numbers, list(self.g), self.interval, self.clip, self.sd, self.exact)


class Bits(Group, kind="bits"):
    """Numbers of zeros and ones, released truly with a probability."""

    zeros: float
    ones: float
    keep: float
    #: What zero and one stand for, where the release says it.
    labels: tuple[object, ...] | None = field(default=None, kw_only=True)
    sums = ("zeros", "ones")

    @property
    def number(self) -> int:
        return int(self.zeros + self.ones)

    @property
    def protected(self) -> bool:
        return self.keep < 1

    def check(self) -> None:
        if not are_counts([self.zeros, self.ones]) or not 0 <= self.keep <= 1:
            raise ValueError("it has counts that no users have")

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.bits(self.zeros, self.ones, self.keep)

    def each(self, codes: npt.ArrayLike) -> Users:
        each = [replace(self, zeros=1.0, ones=0.0), replace(self, zeros=0.0, ones=1.0)]
        return each, np.asarray(codes).reshape(-1).astype(np.intp)


class Shares(Group):
    """What users released of categories, and the labels of these where they have any."""

    labels: tuple[object, ...] | None = field(default=None, kw_only=True)

    @property
    def size(self) -> int:
        """The number of categories."""
        raise NotImplementedError


class Categories(Shares, kind="categories"):
    """How often each category was released: truly with a probability, else any other."""

    counts: tuple[float, ...]
    keep: float
    other: float
    sums = ("counts",)

    @property
    def number(self) -> int:
        return int(sum(self.counts))

    @property
    def protected(self) -> bool:
        return self.other > 0

    def check(self) -> None:
        if not are_counts(self.counts) or not 0 <= self.other <= self.keep <= 1:
            raise ValueError("it has counts that no users have")

    @property
    def size(self) -> int:
        return len(self.counts)

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.categories(list(self.counts), self.keep, self.other)

    def each(self, codes: npt.ArrayLike) -> Users:
        one = [replace(self, counts=tuple(row.tolist())) for row in np.eye(self.size)]
        return one, np.asarray(codes).astype(np.intp)


class Patterns(Shares):
    """Rows of bits, and how often each occurs."""

    rows: npt.NDArray[np.uint8]
    weights: Floats | None
    sums = ("rows", "weights")

    @property
    def number(self) -> int:
        return int(self.occurrences.sum())

    @property
    def occurrences(self) -> Floats:
        """How often each row occurs."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def shape(self) -> object:
        return self.size

    def summed(self) -> Self:
        """Return the different rows in the order of the core, and how often each occurs."""
        packed = np.packbits(self.rows, axis=1, bitorder="little")
        words = np.zeros((len(packed), -(-self.size // 64) * 8), np.uint8)
        words[:, : packed.shape[1]] = packed
        keys = words.view("<u8")
        one = keys[:, 0] if keys.shape[1] == 1 else keys.astype(">u8").view(f"V{words.shape[1]}")[:, 0]
        return self._counted(one)

    def _counted(self, keys: Array) -> Self:
        """Return the rows of different keys in the order of these, and how often each occurs."""
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(which.reshape(-1), self.occurrences, len(first)).astype(np.float64)
        return replace(self, rows=self.rows[first][counts > 0], weights=counts[counts > 0])

    def plus(self, other: Self) -> Self:
        rows = np.concatenate([self.rows, other.rows])
        weights = np.concatenate([self.occurrences, other.occurrences])
        return replace(self, rows=rows, weights=weights).summed()

    def check(self) -> None:
        bits = self.rows.dtype == np.uint8 and self.rows.ndim == 2 and self.rows.max(initial=0) <= 1
        if not (bits and self.weights is not None and are_counts(self.weights) and self.summed() == self):
            raise ValueError("it has rows that no users have")
        self.likelihood()  # which looks at the law

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])

    def each(self, codes: npt.ArrayLike) -> Users:
        patterns, index = np.unique(self.rows, axis=0, return_inverse=True)
        index = index.reshape(-1)
        if self.weights is not None:
            index = np.repeat(index, self.weights.astype(np.intp))
        return [replace(self, rows=patterns[i : i + 1], weights=None) for i in range(len(patterns))], index


class Rows(Patterns, kind="rows"):
    """Rows of unary encoding."""

    p: float
    q: float

    @property
    def protected(self) -> bool:
        return self.q > 0

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.rows(self.rows, self.weights, self.p, self.q)


class Supports(Patterns, kind="supports"):
    """The categories that reports support, whose probability takes two values: their ratio, and the log of the less."""

    ratio: float
    log_outside: float

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.supports(self.rows, self.weights, self.ratio, self.log_outside)


class Records(Group):
    """Noisy records (x, y), or their moments, and the names of the columns of x or of the moments."""

    names: tuple[str, ...] | None = field(default=None, kw_only=True)
    unsummed = "the moments of a fit, which are rounded: give the summary that `summarize` makes to `fit`, too"

    @property
    def features(self) -> int:
        """The length of x."""
        raise NotImplementedError


class LinearMoments(Records):
    """The matrix of the second moments of (x, y), a sum over users."""

    moments: Floats
    users: float

    @property
    def features(self) -> int:
        return len(self.moments) - 1


class LinearInputs(LinearMoments, kind="linear_inputs"):
    """Noisy (x, y), and the variances of the noise on each coordinate."""

    noise: tuple[float, ...]

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.linear_inputs(self.moments, self.users, list(self.noise))

    def summed(self) -> Part:
        triangle = self.moments[np.triu_indices(len(self.moments))]
        totals = tuple(map(Fraction, triangle.tolist()))
        return RecordSums("inputs", self.noise, int(self.users), totals, names=self.names)


class LinearStatistics(LinearMoments, kind="linear_statistics"):
    """Noisy second moments, in the units that make their noise that of the ratios."""

    noise: float
    ratios: tuple[float, float]

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.linear_statistics(self.moments, self.users, self.noise, self.ratios)


class LogisticInputs(Records, kind="logistic_inputs"):
    """Noisy x, the variances of its noise, and labels that are released truly with a probability."""

    x: Floats
    y: Floats
    noise: tuple[float, ...]
    keep: float
    unsummed = (
        "records of a logistic regression: the logistic function leaves no sums of fixed size. "
        'Give the records, or let users release `statistics.logistic` and use kind="statistics"'
    )

    @property
    def features(self) -> int:
        return int(self.x.shape[1])

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.logistic_inputs(self.x, self.y, list(self.noise), self.keep)


class LogisticStatistics(Records, kind="logistic_statistics"):
    """The sums of noisy y x and x x', in the units that make their noise that of the ratio."""

    first: Floats
    second: Floats
    users: float
    noise: tuple[float, ...]

    @property
    def features(self) -> int:
        return len(self.first)

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.logistic_statistics(self.first, self.second, self.users, list(self.noise))


class RecordSums(Part, kind="record_sums"):
    """What regressions need of users: products of (x, y), or released moments, summed without rounding.

    `form` is "inputs" for products of coordinates i <= j, whose variances of noise are the `noise`; else "linear" or
    "logistic" for moments, whose deviations they are, of `laplace` noise or normal.
    """

    form: str
    noise: tuple[float, ...]
    users: int
    totals: tuple[Fraction, ...]
    laplace: bool = field(default=False, kw_only=True)
    names: tuple[str, ...] | None = field(default=None, kw_only=True)
    sums = ("users", "totals")

    @property
    def protected(self) -> bool:
        if self.form == "inputs":  # the constant of an intercept has none
            return self.noise[-1] > 0 and any(variance > 0 for variance in self.noise[:-1])
        return all(deviation > 0 for deviation in self.noise)

    def check(self) -> None:
        width = len(self.noise)
        right = width * (width + 1) // 2 if self.form == "inputs" else width
        if (
            not are_counts([self.users])
            or len(self.totals) != right
            or self.form not in ("inputs", "linear", "logistic")
        ):
            raise ValueError("it has sums that no records have")
