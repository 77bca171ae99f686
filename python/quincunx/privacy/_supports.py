"""Reports that support some of the categories: local hashing, subset selection, Hadamard response.

Each category x has a set S(x) of reports, a `share` of all N of them. A report is uniform in the set of the truth, or
with probability `miss` uniform outside of it, so that its probability takes two values:

    P(z | x) = (1 - miss) / (N share)  if z in S(x),  else  miss / (N (1 - share))

Likelihoods, estimates and guarantees ask for no more than these, and how much of S(x) lies outside of another S(x').
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._categories import Categories
from quincunx._docs import assembled, sections
from quincunx._tables import Axis
from quincunx._types import Array, Floats
from quincunx.privacy import _rational
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import CategoricalNoise
from quincunx.privacy._mechanism import Mechanism, release_doc
from quincunx.privacy._privacy_map import PerEntry
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words
from quincunx.privacy._response import WORD, entries, nonempty, on_simplex, shown_relation, swapped

#: The prime of the hash functions ((a x + b) mod P) mod g, of which each is the number a P + b.
PRIME = 2**31 - 1
#: Reports by categories that are looked at together.
PIECE = 2**20
#: Hash values at the most: more are not needed below an epsilon of 13.8.
MOST_BUCKETS = 2**20


class SupportNoise(CategoricalNoise):
    """A law whose reports support categories: what estimates, likelihoods and guarantees need of it."""

    miss: Fraction
    #: The axes of one report.
    _axes = 0
    _most = PRIME

    @property
    def share(self) -> Fraction:
        """The share of all reports that support a category."""
        raise NotImplementedError

    @property
    def apart(self) -> Fraction:
        """The share of the reports that support a category which do not support another: the largest of all pairs."""
        raise NotImplementedError

    @property
    def log_reports(self) -> float:
        """The logarithm of the number of all reports."""
        raise NotImplementedError

    def reports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return reports, checked: numbers along the last axis where a report has several."""
        raise NotImplementedError

    def _holds(self, z: Array, x: Array) -> Array:
        """Return whether reports support categories, of one shape but for the axes of a report."""
        raise NotImplementedError

    @property
    def ratio(self) -> float:
        """The probability of a report given a category that it supports over that given another: exp(epsilon)."""
        return float((1 - self.miss) * (1 - self.share) / (self.miss * self.share))

    @property
    def log_outside(self) -> float:
        """The logarithm of the probability of a report given a category that it does not support."""
        return math.log(self.miss / (1 - self.share)) - self.log_reports

    @property
    def one_probability(self) -> float:
        """The probability p that a report supports the truth."""
        return float(1 - self.miss)

    @property
    def zero_probability(self) -> float:
        """The probability q that a report supports another category; of Hadamard response, of another block."""
        return self._zero(self.apart)

    def _zero(self, apart: Fraction) -> float:
        return float((1 - self.miss) * (1 - apart) + self.miss * apart * self.share / (1 - self.share))

    def supports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return the categories that reports support, as rows of bits.

        Parameters
        ----------
        z : array_like of int or Release
            The reports.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of uint8, shape (..., k)

        Raises
        ------
        ValueError, TypeError
            If they are no reports of the mechanism.
        TooLargeError
            If the rows do not fit into memory.
        """
        reports = self.reports(z, name)
        shape, k = reports.shape[: reports.ndim - self._axes], len(self.declared)
        _check.room(math.prod(shape) * k + 24 * PIECE, "the categories that reports support")
        flat = reports.reshape(-1, *reports.shape[len(shape) :])
        rows, x = np.empty((len(flat), k), np.uint8), np.arange(k)
        for i, part in self._pieces(flat):
            rows[i : i + len(part)] = self._holds(part[:, None], x)
        return rows.reshape(*shape, k)

    def _pieces(self, reports: Array) -> list[tuple[int, Array]]:
        each = max(1, PIECE // len(self.declared))
        return [(i, reports[i : i + each]) for i in range(0, len(reports), each)]

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        reports, values = self.reports(z), self.declared.encode(x, "x")
        outer, own = reports.shape[: reports.ndim - self._axes], reports.shape[reports.ndim - self._axes :]
        shape = np.broadcast_shapes(outer, values.shape)
        held = self._holds(np.broadcast_to(reports, (*shape, *own)), np.broadcast_to(values, shape))
        return self.log_outside + np.where(held, math.log(self.ratio), 0.0)

    def estimated(self, z: npt.ArrayLike, name: str = "z") -> tuple[Floats, int]:
        """Return the unbiased estimate of the shares, and of how many users it is."""
        reports = self.reports(z, name)
        if reports.ndim == self._axes:
            reports = reports[None]
        flat, x = (
            nonempty(reports).reshape(-1, *reports.shape[reports.ndim - self._axes :]),
            np.arange(len(self.declared)),
        )
        counts = sum(self._holds(part[:, None], x).sum(axis=0, dtype=np.int64) for _, part in self._pieces(flat))
        return self._unbiased(counts / len(flat), flat), len(flat)

    def _unbiased(self, found: Floats, reports: Array) -> Floats:
        """Return the estimate of the shares of users that each category is supported by."""
        return np.asarray((found - self.zero_probability) / (self.one_probability - self.zero_probability))

    def variances(self, shares: npt.ArrayLike, users: int) -> Floats:
        """Variances of the unbiased estimates of the shares.

        Parameters
        ----------
        shares : array_like of float, shape (k,)
            The true shares: with these probabilities users have their categories, each by itself.
        users : int
            How many users report, >= 1.

        Returns
        -------
        ndarray of float64, shape (k,)
            Exact: ``mu (1 - mu) / (n (p - q)**2)`` with ``mu = q + (p - q) share``; where categories have blocks, with
            what the estimate of these adds. About the shares of the n users themselves it is less by
            ``share (1 - share) / n``.

        Raises
        ------
        ValueError, TypeError
            If there are not k shares, or no users.
        """
        return self._of_users(shares, users)

    def variances_of_none(self, shares: npt.ArrayLike, users: int) -> Floats:
        """Return the variances where a category has no share, and the others have these, as of `variances`."""
        return self._of_users(shares, users, 0.0)

    def _of_users(self, shares: npt.ArrayLike, users: int, own: float = 1.0) -> Floats:
        """Return the variances where a category in turn has its share times a number, and the others have theirs."""
        known, number = _check.reals(shares, "shares"), _check.whole(users, "users", minimum=1)
        if known.shape != (len(self.declared),):
            raise ValueError(f"`shares` must have shape ({len(self.declared)},), got {known.shape}")
        return self._variances(own * known, known) / number

    def _variances(self, own: Floats, shares: Floats) -> Floats:
        """Return the variances of one report where each category in turn has an own share, and the others these."""
        p, q = self.one_probability, self.zero_probability
        mean = q + (p - q) * own
        return np.asarray(mean * (1 - mean) / (p - q) ** 2)


@dataclass(frozen=True, eq=False)
class SubsetSelectionNoise(SupportNoise):
    """A category is released as a subset of the categories, a row of bits.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels.
    size : int
        How many are in a subset, from 1 to k - 1.
    miss : Fraction or float
        The probability that the truth is not among them, in (0, 1).

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> law = noise.SubsetSelectionNoise(4, 2, 0.25)  # of six subsets three have the truth
    >>> round(float(law.log_likelihood([1, 0, 0, 1], 0)), 6)
    -1.386294
    """

    categories: int | Sequence[Hashable]
    size: int
    miss: Fraction
    kind = "subset-selection"
    _axes = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _check.whole(self.size, "size", minimum=1, maximum=len(self.declared) - 1))
        self._set(miss=self.miss)

    @property
    def share(self) -> Fraction:
        """The share of all subsets that have a category."""
        return Fraction(self.size, len(self.declared))

    @property
    def apart(self) -> Fraction:
        """The share of the subsets with a category that have not another."""
        return Fraction(len(self.declared) - self.size, len(self.declared) - 1)

    @property
    def log_reports(self) -> float:
        """The logarithm of the number of all subsets."""
        k, w = len(self.declared), self.size
        return math.lgamma(k + 1) - math.lgamma(w + 1) - math.lgamma(k - w + 1)

    def reports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return rows of bits, checked.

        Parameters
        ----------
        z : array_like of int or Release, shape (..., k)
            The rows.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int, shape (..., k)

        Raises
        ------
        ValueError, TypeError
            If they are not k bits each, of which `size` are ones.
        """
        rows = _check.categories(self.declared.columns(z, name), name, 2)
        if rows.ndim == 0 or rows.shape[-1] != len(self.declared):
            raise ValueError(f"`{name}` must have a last axis of length {len(self.declared)}, got shape {rows.shape}")
        ones = rows.sum(axis=-1, dtype=np.int64)
        if not (right := ones == self.size).all():
            wrong = ones.reshape(-1)[int(np.argmin(right.reshape(-1)))]
            raise ValueError(f"`{name}` must hold rows with {self.size} ones each, got one with {wrong}")
        return rows

    def _holds(self, z: Array, x: Array) -> Array:
        shape = np.broadcast_shapes(z.shape[:-1], x.shape)
        rows = np.broadcast_to(z, (*shape, z.shape[-1]))
        return np.asarray(np.take_along_axis(rows, np.broadcast_to(x, shape)[..., None], axis=-1)[..., 0] == 1)

    def supports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return the rows themselves, as `reports`."""
        return self.reports(z, name).astype(np.uint8, copy=False)

    def estimated(self, z: npt.ArrayLike, name: str = "z") -> tuple[Floats, int]:
        """Return the unbiased estimate of the shares, and of how many users it is."""
        rows = nonempty(np.atleast_2d(self.supports(z, name))).reshape(-1, len(self.declared))
        return self._unbiased(rows.mean(axis=0), rows), len(rows)


@dataclass(frozen=True, eq=False)
class LocalHashingNoise(SupportNoise):
    """A category is released as a hash function and one of its values.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels; k < 2**31.
    buckets : int
        The number g of values of a hash function, from 2 to 2**20.
    miss : Fraction or float
        The probability of a value that is not that of the truth, in (0, 1).

    Notes
    -----
    A function ``((a x + b) mod P) mod g`` with P = 2**31 - 1 is uniform among all pairs a, b below P, and released as
    the number ``a P + b`` before the value. Of two categories the pair of ``(a x + b) mod P`` is uniform.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> law = noise.LocalHashingNoise(5, 3, 0.25)
    >>> law.supports([1 * (2**31 - 1) + 2, 0]).tolist()  # (x + 2) mod 3 is 0 for 1 and 4
    [0, 1, 0, 0, 1]
    """

    categories: int | Sequence[Hashable]
    buckets: int
    miss: Fraction
    kind = "local-hashing"
    _axes = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", _check.whole(self.buckets, "buckets", minimum=2, maximum=MOST_BUCKETS))
        self._set(miss=self.miss)

    @property
    def share(self) -> Fraction:
        """The share of all values that is the one of a category, for each function."""
        return Fraction(1, self.buckets)

    @property
    def apart(self) -> Fraction:
        """The share of the functions that tell two categories apart, of the same for all pairs."""
        least, more = divmod(PRIME, self.buckets)
        return 1 - Fraction(more * (least + 1) ** 2 + (self.buckets - more) * least**2, PRIME**2)

    @property
    def log_reports(self) -> float:
        """The logarithm of the number of all functions and values."""
        return 2 * math.log(PRIME) + math.log(self.buckets)

    def reports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return functions and values, checked.

        Parameters
        ----------
        z : array_like of int or Release, shape (..., 2)
            The number of a function and a value.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int64, shape (..., 2)

        Raises
        ------
        ValueError, TypeError
            If they are no such pairs.
        """
        pairs = _check.counts(z, name)
        if pairs.ndim == 0 or pairs.shape[-1] != 2:
            raise ValueError(f"`{name}` must have a last axis of length 2, got shape {pairs.shape}")
        most = pairs.reshape(-1, 2).max(axis=0, initial=0)
        for place, bound in enumerate((PRIME**2, self.buckets)):
            if most[place] >= bound:
                what = ("functions", "values")[place]
                raise ValueError(f"`{name}` must hold numbers of {what} below {bound}, got {most[place]}")
        return pairs

    def _holds(self, z: Array, x: Array) -> Array:
        a, b = np.divmod(z[..., 0], PRIME)
        return np.asarray((a * x + b) % PRIME % self.buckets == z[..., 1])


@dataclass(frozen=True, eq=False)
class HadamardResponseNoise(SupportNoise):
    """A category is released as an index of a block and a column of a Hadamard matrix.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels.
    blocks : int
        How many blocks there are, from 1 to k. A block has b columns, the least power of two above k / blocks; category
        x is the row ``x % (b - 1) + 1`` of block ``x // (b - 1)``, and supported by the columns where that is +1.
    miss : Fraction or float
        The probability of an index that does not support the truth, in (0, 1).

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> law = noise.HadamardResponseNoise(3, 1, 0.25)
    >>> law.supports([0, 1, 2, 3]).tolist()  # the columns of the matrix of order 4, but for its first row
    [[1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    """

    categories: int | Sequence[Hashable]
    blocks: int
    miss: Fraction
    kind = "hadamard-response"

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", _check.whole(self.blocks, "blocks", minimum=1, maximum=len(self.declared)))
        self._set(miss=self.miss)

    @property
    def columns(self) -> int:
        """The number of columns of a block."""
        return columns_of(len(self.declared), self.blocks)

    @property
    def share(self) -> Fraction:
        """The share of all indices that support a category: half a block."""
        return Fraction(1, 2 * self.blocks)

    @property
    def apart(self) -> Fraction:
        """Half of those in a block, all in different ones, if there are any."""
        return Fraction(1, 1 if len(self.declared) >= self.columns else 2)

    @property
    def log_reports(self) -> float:
        """The logarithm of the number of indices."""
        return math.log(self.blocks * self.columns)

    def reports(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return indices, checked.

        Parameters
        ----------
        z : array_like of int or Release, shape (...)
            The indices.
        name : str
            What they are called where they are refused.

        Returns
        -------
        ndarray of int, shape (...)

        Raises
        ------
        ValueError, TypeError
            If they are not below the number of blocks times that of columns.
        """
        return _check.categories(z, name, self.blocks * self.columns)

    def _holds(self, z: Array, x: Array) -> Array:
        z, b = z.astype(np.int64, copy=False), self.columns
        even = np.bitwise_count((z % b) & (x % (b - 1) + 1)) % 2 == 0
        return np.asarray(even & (z // b == x // (b - 1)))

    def _of_blocks(self) -> tuple[Array, tuple[float, float], tuple[float, float]]:
        """Return the block of each category, how reports in it are added to an estimate, and their probabilities."""
        p, (same, other) = self.one_probability, (self._zero(Fraction(1, n)) for n in (2, 1))
        rest = self.miss / (2 * self.blocks - 1)
        inside, outside = float(1 - self.miss + rest), float(2 * rest)
        u = 1 / (p - same)
        v = u * (same - other) / (inside - outside) if self.blocks > 1 else 0.0
        return np.arange(len(self.declared)) // (self.columns - 1), (u, v), (inside, outside)

    def _unbiased(self, found: Floats, reports: Array) -> Floats:
        if self.apart < 1:  # one block has all categories
            return super()._unbiased(found, reports)
        block, (u, v), (_, outside) = self._of_blocks()
        shares = np.bincount(reports.reshape(-1) // self.columns, minlength=self.blocks) / reports.size
        return np.asarray(u * (found - self._zero(Fraction(1))) - v * (shares[block] - outside))

    def _variances(self, own: Floats, shares: Floats) -> Floats:
        if self.apart < 1:
            return super()._variances(own, shares)
        block, (u, v), (inside, outside) = self._of_blocks()
        whole = np.bincount(block, shares, self.blocks)[block] - shares + own
        same, other = (self._zero(Fraction(1, n)) for n in (2, 1))
        of_set = other + (same - other) * whole + (self.one_probability - same) * own
        of_block = outside + (inside - outside) * whole
        both = 2 * u * v * of_set * (1 - of_block)
        return np.asarray(u**2 * of_set * (1 - of_set) + v**2 * of_block * (1 - of_block) - both)


def columns_of(categories: int, blocks: int) -> int:
    """Return the least power of two above categories / blocks, so that rows but the first suffice."""
    return 1 << (-(-categories // blocks)).bit_length()


_ESTIMATE = """
    Parameters
    ----------
    z : array_like of int or Release
        Released reports, at least one.
    simplex : bool
        Project the estimate to the simplex, the nearest point by Euclid: biased, but shares.

    Returns
    -------
    ndarray of float64, shape (k,)
        For c of n reports that support a category ``(c / n - q) / (p - q)``; see `variances` of the `noise`.

    Raises
    ------
    ValueError, TypeError
        If they are no reports of the mechanism, or there are none.
    """
_COMMON = """
    epsilon : float
        Privacy level, > 0.
    categories : int or sequence
        Their number k, >= 2, for the numbers 0..k-1, or k labels: strings, numbers or truth values.
    """
_RELATION = """
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of epsilon.
    """
_KNOWN = """
    one_probability, zero_probability : float
        The p and q actually used, of a report that supports the truth and another category: ``1 - p`` is a multiple of
        2**-64, rounded upwards.
    guarantee : PrivacyGuarantee
        With the epsilon of these, at most the one asked for.
    """
_doc = assembled(estimate=_ESTIMATE, declared=_COMMON, relation=_RELATION, used=_KNOWN)


@_doc
class SupportMechanism(Mechanism):
    """What mechanisms whose reports support categories have in common."""

    categories: int | tuple[Hashable, ...]
    _miss: int

    @property
    def noise(self) -> SupportNoise:
        """The law of the reports."""
        raise NotImplementedError

    def _settle(self, level: float, relation: Relation, inside: int, outside: int) -> None:
        """Set the chance of a miss and the guarantee, where sets and what is outside are as two whole numbers."""
        self._miss = _core.miss_chance(level, inside, outside)
        law = self.noise
        p = (1 - law.miss) * law.apart
        q = law.miss * law.apart * law.share / (1 - law.share)
        used = min(level, _rational.log_upwards(p / q))
        self.guarantee = guarantee_of(PerEntry(swapped(p, q), True), relation, epsilon=used)

    @property
    def zero_probability(self) -> float:
        """The probability q that a report supports another category; of Hadamard response, of another block."""
        return self.noise.zero_probability

    @property
    def one_probability(self) -> float:
        """The probability p that a report supports the truth."""
        return self.noise.one_probability

    def estimate(self, z: npt.ArrayLike, *, simplex: bool = False) -> Floats:
        """Unbiased estimate of the shares of the categories.

        {estimate}
        """
        found, _ = self.noise.estimated(z)
        return on_simplex(found) if simplex else found

    def _shown(self, name: str, value: int) -> str:
        own = f"{self.epsilon}, {self.noise.declared.plain}, {name}={value}"
        return f"{type(self).__name__}({own}{shown_relation(self)})"


def _codes(law: SupportNoise, x: npt.ArrayLike) -> Array:
    return law.declared.encode(x, "x").astype(np.int64, copy=False)


@sections
@_doc
class SubsetSelection(SupportMechanism):
    """A category is released as a subset of the categories, which has it more often than others.

    Each subset of w categories with the truth is ``exp(epsilon)`` times as probable as each without.

    Parameters
    ----------
    {declared}
    size : int, optional
        How many categories are in a subset, from 1 to k - 1: by default the better of the whole numbers around
        ``k / (exp(epsilon) + 1)``. Subsets of one are generalized randomized response.
    {relation}

    Attributes
    ----------
    categories : int or tuple
        As declared.
    size : int
        As given or chosen.
    {used}

    {domain}

    Notes
    -----
    Of the least variance among all protocols for all shares that are small, up to a factor that tends to one [1]_; a
    report takes the logarithm of the number of subsets, here it is a row of k bits. A uniform subset takes w draws.

    References
    ----------
    .. [1] M. Ye and A. Barg (2018), Optimal schemes for discrete distribution estimation under locally differential
       privacy, IEEE Trans. Inform. Theory 64.
    .. [2] S. Wang et al. (2016), Mutual information optimally local private discrete distribution estimation, arXiv
       1607.08025.

    Examples
    --------
    >>> from quincunx.privacy import SubsetSelection
    >>> mechanism = SubsetSelection(1.0, 12)
    >>> mechanism.size, mechanism.release([0, 11, 2]).values.sum(axis=1).tolist()
    (3, [3, 3, 3])
    >>> round(mechanism.one_probability, 12), round(mechanism.zero_probability, 12)
    (0.475366886419, 0.229512101235)
    """

    def __init__(
        self,
        epsilon: float,
        categories: int | Sequence[Hashable],
        size: int | None = None,
        *,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True) / entries(relation)
        declared = Categories.of(categories, "categories", maximum=PRIME)
        self.categories, k = declared.declared, len(declared)
        self.size = _best_size(level, k) if size is None else _check.whole(size, "size", minimum=1, maximum=k - 1)
        self._settle(level, relation, self.size, k - self.size)

    @cached_property
    def noise(self) -> SubsetSelectionNoise:
        return SubsetSelectionNoise(self.categories, self.size, Fraction(self._miss, WORD))

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as noisy subsets.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (...)
            The private categories.
        {insecure_seed}
            With uint8 values of shape (..., k), a one for each category of the subset; labels are those of the last
            axis.

        {errors}
            If `x` does not hold categories.
        """
        values, k, words = _codes(self.noise, x), len(self.noise.declared), seed_words(insecure_seed)
        _check.room(values.size * k, "making the rows")
        rows = _core.select_subsets(values.reshape(-1), k, self.size, self._miss, words)
        release = self._published(rows.reshape(*values.shape, k), x, insecure_seed)
        if not isinstance(self.categories, int):
            release.axes_ = (*(release.axes_[:-1] or (Axis(),) * values.ndim), Axis("category", self.categories, True))
        return release

    def __repr__(self) -> str:
        return self._shown("size", self.size)


def _best_size(epsilon: float, k: int) -> int:
    """Return the size of subsets of the least variance, (q (1 - q)) / (p - q)^2 with decay = exp(-epsilon)."""
    decay = math.exp(-epsilon)

    def spread(w: int) -> float:
        p = w / (w + (k - w) * decay)
        q = (p * (w - 1) + (1 - p) * w) / (k - 1)
        return q * (1 - q) / (p - q) ** 2 if p > q else math.inf

    least = int(k * decay / (1 + decay))
    return min((min(max(w, 1), k - 1) for w in (least, least + 1)), key=spread)


@sections
@_doc
class LocalHashing(SupportMechanism):
    """A category is hashed by a function of the user's own to few values, and its hash told by randomized response.

    The optimal number of values is ``round(exp(epsilon)) + 1`` (OLH): variances of small shares are then those of
    optimal unary encoding, but a report has two numbers for any number of categories.

    Parameters
    ----------
    {declared}
        k < 2**31.
    buckets : int, optional
        The number g of values of a hash function, from 2 to 2**20: by default the optimal one.
    {relation}

    Attributes
    ----------
    categories : int or tuple
        As declared.
    buckets : int
        As given or chosen.
    {used}

    {domain}

    Notes
    -----
    Functions are drawn from the affine ones over a prime field, of which those of two categories are independent: q is
    known exactly, so that estimates have no bias, and their variance at share 0 is ``q (1 - q) / (n (p - q)**2)``. An
    estimate hashes each category by each function, about 15 ns each.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha (2017), Locally differentially private protocols for frequency
       estimation, USENIX Security.

    Examples
    --------
    >>> from quincunx.privacy import LocalHashing
    >>> mechanism = LocalHashing(1.0, 10**6)
    >>> mechanism.buckets, mechanism.release([0, 5, 999_999]).shape
    (4, (3, 2))
    >>> round(mechanism.one_probability, 12), round(mechanism.zero_probability, 8)
    (0.475366886419, 0.25)
    """

    def __init__(
        self,
        epsilon: float,
        categories: int | Sequence[Hashable],
        buckets: int | None = None,
        *,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True) / entries(relation)
        self.categories = Categories.of(categories, "categories", maximum=PRIME).declared
        best = min(round(math.exp(min(level, 20.0))) + 1, MOST_BUCKETS)
        self.buckets = _check.whole(best if buckets is None else buckets, "buckets", minimum=2, maximum=MOST_BUCKETS)
        self._settle(level, relation, 1, self.buckets - 1)

    @cached_property
    def noise(self) -> LocalHashingNoise:
        return LocalHashingNoise(self.categories, self.buckets, Fraction(self._miss, WORD))

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as hash functions and noisy hashes.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (...)
            The private categories.
        {insecure_seed}
            With int64 values of shape (..., 2): the number of a function, and a value of it.

        {errors}
            If `x` does not hold categories.
        """
        values, words = _codes(self.noise, x), seed_words(insecure_seed)
        pairs = _core.hash_categories(values.reshape(-1), self.buckets, self._miss, words)
        return self._published(pairs.reshape(*values.shape, 2), x, insecure_seed)

    def __repr__(self) -> str:
        return self._shown("buckets", self.buckets)


@sections
@_doc
class HadamardResponse(SupportMechanism):
    """A category is released as an index, which half of the columns of a Hadamard matrix support.

    With one block this is a row of a Hadamard matrix told by a random column, of one bit of information; more blocks
    serve a large epsilon.

    Parameters
    ----------
    {declared}
    blocks : int, optional
        How many blocks the categories are divided into, from 1 to k: by default the power of two of the least variance
        up to the one just below ``min(exp(epsilon), 2 k)`` [1]_, but for blocks without categories.
    {relation}

    Attributes
    ----------
    categories : int or tuple
        As declared.
    blocks : int
        As given or chosen.
    {used}

    {domain}

    Notes
    -----
    A report has log2 of at most 4 k bits.

    References
    ----------
    .. [1] J. Acharya, Z. Sun and H. Zhang (2019), Hadamard response: estimating distributions privately, efficiently,
       and with little communication, AISTATS, section 5.

    Examples
    --------
    >>> from quincunx.privacy import HadamardResponse
    >>> HadamardResponse(0.5, 6)
    HadamardResponse(0.5, 6, blocks=1)
    >>> mechanism = HadamardResponse(2.0, 10)
    >>> mechanism.blocks, mechanism.noise.columns
    (4, 4)
    >>> mechanism.release([0, 9, 9]).shape
    (3,)
    """

    def __init__(
        self,
        epsilon: float,
        categories: int | Sequence[Hashable],
        blocks: int | None = None,
        *,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True) / entries(relation)
        declared = Categories.of(categories, "categories", maximum=PRIME)
        self.categories, k = declared.declared, len(declared)
        self.blocks = _best_blocks(level, k) if blocks is None else _check.whole(blocks, "blocks", minimum=1, maximum=k)
        self._settle(level, relation, 1, 2 * self.blocks - 1)

    @cached_property
    def noise(self) -> HadamardResponseNoise:
        return HadamardResponseNoise(self.categories, self.blocks, Fraction(self._miss, WORD))

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as indices.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (...)
            The private categories.
        {insecure_seed}
            With int64 values of the shape of `x`.

        {errors}
            If `x` does not hold categories.
        """
        values, words = _codes(self.noise, x), seed_words(insecure_seed)
        indices = _core.hadamard_responses(values.reshape(-1), self.blocks, self.noise.columns, self._miss, words)
        return self._published(indices.reshape(values.shape), x, insecure_seed)

    def __repr__(self) -> str:
        return self._shown("blocks", self.blocks)


def _best_blocks(epsilon: float, k: int) -> int:
    """Return the power of two of the least variance at a share of 0 among the paper's and those below.

    The paper's is from min(e^epsilon, 2 k) / 2 up to that less 1; blocks without categories are left out.
    """
    growth = math.exp(min(epsilon, 700.0))

    def spread(blocks: int) -> float:
        if blocks == 1:
            return ((growth + 1) / (growth - 1)) ** 2 if growth > 1 else math.inf
        whole = growth + 2 * blocks - 1
        u = 2 * whole / (growth - 1)  # of the set; of the block half of that
        of_set = (1 + (growth - 1) / (2 * blocks)) / whole
        of_block = (2 + (growth - 1) / blocks) / whole
        return u**2 * (of_set * (1 - of_set) + of_block * (1 - of_block) / 4 - of_set * (1 - of_block))

    most = max(math.ceil(min(epsilon / math.log(2), math.log2(2 * k))) - 1, 0)
    blocks = min(min((2**power for power in range(most + 1)), key=spread), k)
    return -(-k // (columns_of(k, blocks) - 1))
