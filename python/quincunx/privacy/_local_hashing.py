"""Local hashing: a category as a hash function and one of its values; its law and the mechanism."""

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
from quincunx._types import Array
from quincunx.privacy._categorical import WORD, level_of
from quincunx.privacy._law import law_doc
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words
from quincunx.privacy._supports import PRIME, SupportMechanism, SupportNoise, support_doc

#: Hash values at the most: more are not needed below an epsilon of 13.8.
MOST_BUCKETS = 2**20


@law_doc
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
        {called}

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


@support_doc
class LocalHashing(SupportMechanism):
    """A category is hashed by a function of the user's own to few values, and its hash released by randomized response.

    The optimal number of values is ``round(exp(epsilon)) + 1`` (OLH): variances of small shares are then those of
    optimal unary encoding, but a report has two numbers for any number of categories.

    Parameters
    ----------
    {declared}
        k < 2**31.
    buckets : int, optional
        The number g of values of a hash function, from 2 to 2**20: by default the optimal one.
    {relation}

    {attributes}
    buckets : int
        As given or chosen.
    {used}

    {domain}

    Notes
    -----
    Functions are drawn from the affine ones over a prime field, of which those of two categories are independent: q is
    known exactly, so that estimates have no bias, and their variance at share 0 is ``q (1 - q) / (n (p - q)**2)``.
    Those of three are not: categories 0, 1 and 2 all meet in one of 4 values with probability 1/8, not 1/16, which
    changes how estimates are correlated. An estimate hashes each category by each function, about 15 ns each.

    {protocols}

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
        level = level_of(epsilon, relation)
        self.categories = Categories.of(categories, "categories", maximum=PRIME).declared
        best = min(round(math.exp(min(level, 20.0))) + 1, MOST_BUCKETS)
        self.buckets = _check.whole(best if buckets is None else buckets, "buckets", minimum=2, maximum=MOST_BUCKETS)
        self._settle(level, relation, 1, self.buckets - 1)

    @cached_property
    def noise(self) -> LocalHashingNoise:
        return LocalHashingNoise(self.categories, self.buckets, Fraction(self._miss, WORD))

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as hash functions and noisy hashes.

        {x_and_seed}
            With int64 values of shape (..., 2): the number of a function, and a value of it.

        {no_categories}
        """
        codes, words = self._codes(x), seed_words(insecure_seed)
        pairs = _core.hash_categories(codes.reshape(-1), self.buckets, self._miss, words)
        return self._published(pairs.reshape(*codes.shape, 2), x, insecure_seed)

    def __repr__(self) -> str:
        return self._shown(self.epsilon, self._declared.plain, f"buckets={self.buckets}")
