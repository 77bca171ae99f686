"""Hadamard response: a category as an index of a block and a column; its law and the mechanism."""

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
from quincunx.privacy._categorical import WORD, level_of
from quincunx.privacy._law import law_doc
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words
from quincunx.privacy._supports import PRIME, SupportMechanism, SupportNoise, support_doc


@law_doc
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
        {called}

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


@support_doc
class HadamardResponse(SupportMechanism):
    """A category is released as an index, which half of the columns of a Hadamard matrix support.

    With one block this is a row of a Hadamard matrix at a random column, of one bit of information; more blocks
    serve a large epsilon.

    Parameters
    ----------
    {declared}
    blocks : int, optional
        How many blocks the categories are divided into, from 1 to k: by default the power of two of the least variance
        up to the one just below ``min(exp(epsilon), 2 k)`` [1]_, but for blocks without categories.
    {relation}

    {attributes}
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
        level = level_of(epsilon, relation)
        declared = Categories.of(categories, "categories", maximum=PRIME)
        self.categories, k = declared.declared, len(declared)
        self.blocks = _best_blocks(level, k) if blocks is None else _check.whole(blocks, "blocks", minimum=1, maximum=k)
        self._settle(level, relation, 1, 2 * self.blocks - 1)

    @cached_property
    def noise(self) -> HadamardResponseNoise:
        return HadamardResponseNoise(self.categories, self.blocks, Fraction(self._miss, WORD))

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as indices.

        {x_and_seed}
            With int64 values of the shape of `x`.

        {no_categories}
        """
        codes, words = self._codes(x), seed_words(insecure_seed)
        indices = _core.hadamard_responses(codes.reshape(-1), self.blocks, self.noise.columns, self._miss, words)
        return self._published(indices.reshape(codes.shape), x, insecure_seed)

    def __repr__(self) -> str:
        return self._shown(self.epsilon, self._declared.plain, f"blocks={self.blocks}")


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
