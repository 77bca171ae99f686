"""Subset selection: a category as a subset of the categories, a row of bits; its law and the mechanism."""

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
from quincunx._types import Array, Floats
from quincunx.privacy._categorical import WORD, level_of, nonempty
from quincunx.privacy._law import law_doc
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words
from quincunx.privacy._supports import PRIME, SupportMechanism, SupportNoise, support_doc


@law_doc
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

        {rows}
            If they are not k bits each, of which `size` are ones.
        """
        rows = self._bits(z, name)
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


@support_doc
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

    {attributes}
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
        level = level_of(epsilon, relation)
        declared = Categories.of(categories, "categories", maximum=PRIME)
        self.categories, k = declared.declared, len(declared)
        self.size = _best_size(level, k) if size is None else _check.whole(size, "size", minimum=1, maximum=k - 1)
        self._settle(level, relation, self.size, k - self.size)

    @cached_property
    def noise(self) -> SubsetSelectionNoise:
        return SubsetSelectionNoise(self.categories, self.size, Fraction(self._miss, WORD))

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as noisy subsets.

        {x_and_seed}
            With uint8 values of shape (..., k), a one for each category of the subset; labels are those of the last
            axis.

        {no_categories}
        """
        codes, k, words = self._codes(x), len(self._declared), seed_words(insecure_seed)
        _check.room(codes.size * k, "making the rows")
        rows = _core.select_subsets(codes.reshape(-1), k, self.size, self._miss, words)
        return self._published_rows(rows, codes, x, insecure_seed)

    def __repr__(self) -> str:
        return self._shown(self.epsilon, self._declared.plain, f"size={self.size}")


def _best_size(epsilon: float, k: int) -> int:
    """Return the size of subsets of the least variance, (q (1 - q)) / (p - q)^2 with decay = exp(-epsilon)."""
    decay = math.exp(-epsilon)

    def spread(w: int) -> float:
        p = w / (w + (k - w) * decay)
        q = (p * (w - 1) + (1 - p) * w) / (k - 1)
        return q * (1 - q) / (p - q) ** 2 if p > q else math.inf

    least = int(k * decay / (1 + decay))
    return min((min(max(w, 1), k - 1) for w in (least, least + 1)), key=spread)
