"""Mechanisms for bits and categories: randomized response, generalized randomized response, unary encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._categories import Categories
from quincunx._docs import sections
from quincunx._tables import Axis
from quincunx.privacy import _relations
from quincunx.privacy._curves import Outcomes, Pure
from quincunx.privacy._guarantee import promise
from quincunx.privacy._mechanism import Mechanism, release_doc
from quincunx.privacy._reach import PerEntry
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words
from quincunx.privacy.noise import GeneralizedRandomizedResponseNoise, RandomizedResponseNoise, UnaryEncodingNoise

WORD = 2**64


def _log_odds(flip: int) -> float:
    """Return log((1 - q) / q) for ``q = flip / 2**64``, rounded upwards."""
    if flip < WORD // 4:
        odds = math.log((WORD - flip) / flip)
    else:
        odds = 2 * math.atanh((WORD - 2 * flip) / WORD)
    return odds * (1 + 2.0**-50)


def _entries(relation: Relation) -> int:
    """Return how many records a neighbor may change."""
    return max(PerEntry(Pure(Fraction(0)), True).at(_relations.check(relation))[1], 1)


def _swapped(p: Fraction, q: Fraction) -> Outcomes:
    """Return two outcomes with probabilities p and q, or q and p, and others that are the same for both."""
    rest = 1 - p - q
    return Outcomes(((p, q), (q, p), (rest, rest)) if rest else ((p, q), (q, p)))


def about(mechanism: Mechanism) -> str:
    """Return the relation as an argument, where it is not the usual one."""
    relation = mechanism.guarantee.relation
    return "" if relation == ReplaceOne() else f", relation={relation}"


class RandomizedResponse(Mechanism):
    """A bit is told truly with probability ``p = exp(epsilon) / (1 + exp(epsilon))``, else its opposite.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of epsilon.
    categories : int or sequence
        What is told: 2, for the bits 0 and 1, or two labels, of which the second is the one.

    Attributes
    ----------
    categories : int or tuple
        As declared.
    keep_probability : float
        The p actually used: ``1 - p`` is a multiple of 2**-64, rounded upwards.
    guarantee : PrivacyGuarantee
        With the epsilon of that p, at most the one asked for.

    Raises
    ------
    ValueError, TypeError
        If epsilon is not positive and finite.

    References
    ----------
    .. [1] S. L. Warner (1965), Randomized response, J. Amer. Statist. Assoc. 60.

    Examples
    --------
    >>> from quincunx.privacy import RandomizedResponse
    >>> mechanism = RandomizedResponse(1.0)
    >>> round(mechanism.keep_probability, 12)
    0.73105857863
    >>> round(float(mechanism.estimate([1, 1, 0, 1])), 6)  # unbiased, so it may leave [0, 1]
    1.040988
    >>> RandomizedResponse(9.0, categories=["no", "yes"]).release(["yes", "no"], insecure_seed=1).values.tolist()
    ['yes', 'no']
    """

    def __init__(
        self,
        epsilon: float,
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
        categories: int | Sequence[Any] = 2,
    ) -> None:
        self.categories = Categories.of(categories, "categories", maximum=2).declared
        level = _check.real(epsilon, "epsilon", positive=True) / _entries(relation)
        self._flip = _core.flip_chance(level)
        used = min(level, _log_odds(self._flip))
        self.guarantee = promise(PerEntry(Pure(Fraction(used)), True), relation, epsilon=used)

    @cached_property
    def noise(self) -> RandomizedResponseNoise:
        """The law of what is released, which every release carries."""
        return RandomizedResponseNoise(Fraction(self._flip, WORD), self.categories)

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return self.noise.keep_probability

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Tell bits, truly or not.

        Parameters
        ----------
        x : array_like of bool or int, or of labels
            The private bits.
        {insecure_seed}
            With uint8 values, or labels, of the shape of `x`.

        {errors}
            If `x` does not hold bits, or the labels declared.
        """
        declared = self.noise.declared
        bits = declared.encode(x, "x")
        noisy = _core.flip_bits(bits.astype(np.uint8, copy=False).reshape(-1), self._flip, seed_words(insecure_seed))
        return self._published(declared.decode(noisy.reshape(bits.shape)), x, insecure_seed)

    def estimate(self, z: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Unbiased estimate of the share of ones, or of the second label.

        Parameters
        ----------
        z : array_like of int or Release, shape (n, ...)
            Released bits.

        Returns
        -------
        ndarray of float64
            ``(mean(z) + p - 1) / (2p - 1)`` over the first axis; with a standard deviation of at most
            ``1 / (2 (2p - 1) sqrt(n))``.

        Raises
        ------
        ValueError, TypeError
            If they are not bits, or there are none.
        """
        bits = _nonempty(self.noise.declared.encode(z, "z"))
        flip = self._flip / WORD
        return np.asarray((bits.mean(axis=0) - flip) / (1 - 2 * flip))

    def __repr__(self) -> str:
        told = "" if self.categories == 2 else f", categories={self.categories}"
        return f"RandomizedResponse({self.epsilon}{about(self)}{told})"


def _check_memory(needed: int) -> None:
    """Refuse rows that do not fit, before they are made; small jobs are not worth the question."""
    _check.room(needed, "making the rows")


def _nonempty(z: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if z.ndim == 0 or z.size == 0:
        raise ValueError(f"`z` must hold at least one report along its first axis, got shape {z.shape}")
    return z


def _on_simplex(estimate: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest point of the simplex: what is above the water level that makes the sum one."""
    ordered = np.sort(estimate)[::-1]
    levels = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    return np.asarray(np.maximum(estimate - level, 0.0))


@sections
class GeneralizedRandomizedResponse(Mechanism):
    """A category is told truly with probability ``p = exp(epsilon) / (exp(epsilon) + k - 1)``, else another.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    categories : int or sequence
        Their number k, >= 2, for the numbers 0..k-1, or k labels: strings, numbers or truth values.
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of epsilon.

    Attributes
    ----------
    categories : int or tuple
        As declared.
    keep_probability, other_probability : float
        Of the truth, and of each other category; those actually used.
    guarantee : PrivacyGuarantee
        With the epsilon of these, at most the one asked for.

    {domain}

    Notes
    -----
    More accurate than unary encoding where ``k < 3 exp(epsilon) + 2``.

    Examples
    --------
    >>> from quincunx.privacy import GeneralizedRandomizedResponse
    >>> mechanism = GeneralizedRandomizedResponse(1.0, 4)
    >>> round(mechanism.keep_probability, 12), round(mechanism.other_probability, 12)
    (0.475366886419, 0.174877704527)
    >>> GeneralizedRandomizedResponse(9.0, ["tea", "coffee"]).release(["tea"], insecure_seed=1).values.tolist()
    ['tea']
    """

    def __init__(
        self,
        epsilon: float,
        categories: int | Sequence[Any],
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True) / _entries(relation)
        declared = Categories.of(categories, "categories")
        self.categories, k = declared.declared, len(declared)
        self._redraw = _core.redraw_chance(level, k)
        # P(truth) / P(another) = (1 - r + r/k) / (r/k) = 1 + k (1 - r) / r.
        used = math.log1p(k * (WORD - self._redraw) / self._redraw) * (1 + 2.0**-50)
        share = Fraction(self._redraw, WORD * k)
        curve = _swapped(1 - (k - 1) * share, share)
        self.guarantee = promise(PerEntry(curve, True), relation, epsilon=min(level, used))

    @cached_property
    def noise(self) -> GeneralizedRandomizedResponseNoise:
        """The law of what is released, which every release carries."""
        return GeneralizedRandomizedResponseNoise(self.categories, Fraction(self._redraw, WORD * self._number))

    @property
    def _number(self) -> int:
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    @property
    def other_probability(self) -> float:
        """The probability of each category that is not the truth."""
        return self.noise.other_probability

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return self.noise.keep_probability

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Tell categories, truly or not.

        Parameters
        ----------
        x : array_like of int, or of labels
            The private categories.
        {insecure_seed}
            With int64 values, or labels, of the shape of `x`.

        {errors}
            If `x` does not hold categories.
        """
        declared = self.noise.declared
        values = declared.encode(x, "x")
        words = seed_words(insecure_seed)
        noisy = _core.redraw_categories(
            values.astype(np.int64, copy=False).reshape(-1), self._number, self._redraw, words
        )
        return self._published(declared.decode(noisy.reshape(values.shape)), x, insecure_seed)

    def estimate(self, z: npt.ArrayLike, *, simplex: bool = False) -> npt.NDArray[np.float64]:
        """Unbiased estimate of the shares of the categories, in the order of their declaration.

        Parameters
        ----------
        z : array_like of int, or of labels, or Release, shape (n,)
            Released categories.

        simplex : bool
            Project the estimate to the simplex, the nearest point by Euclid: biased, but shares.

        Returns
        -------
        ndarray of float64, shape (k,)
            ``(c / n - q) / (p - q)`` for the released counts c; they sum to 1 and may leave [0, 1].

        Raises
        ------
        ValueError, TypeError
            If they are not categories, or there are none.
        """
        values = _nonempty(self.noise.declared.encode(z, "z"))
        _check.room(40 * self._number, "an estimate of the shares")
        shares = np.bincount(values.reshape(-1), minlength=self._number) / values.size
        found = np.asarray((shares - self.other_probability) / (self.keep_probability - self.other_probability))
        return _on_simplex(found) if simplex else found

    def __repr__(self) -> str:
        return f"GeneralizedRandomizedResponse({self.epsilon}, {self.noise.declared.plain}{about(self)})"


@sections
class UnaryEncoding(Mechanism):
    """A category is told as a row of k bits, its one-hot row with noise on each bit.

    A zero becomes a one with probability q, the one stays with probability p. The optimal variant has p = 1/2 and
    ``q = 1 / (exp(epsilon) + 1)``; the symmetric one ``p = 1 - q`` and ``q = 1 / (exp(epsilon / 2) + 1)``.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    categories : int or sequence
        Their number k, >= 2, for the numbers 0..k-1, or k labels: strings, numbers or truth values.
    variant : {"optimal", "symmetric"}
        Which p and q.
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of epsilon.

    Attributes
    ----------
    categories : int or tuple
        As declared.
    one_probability, zero_probability : float
        The p and q actually used: q is a multiple of 2**-64, rounded upwards.
    guarantee : PrivacyGuarantee
        With the epsilon ``log(p (1 - q) / (q (1 - p)))`` of these, at most the one asked for.

    {domain}

    Notes
    -----
    Below one nanosecond a bit where there are 16 categories or more.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha (2017), Locally differentially private protocols for frequency
       estimation,
       USENIX Security.

    Examples
    --------
    >>> from quincunx.privacy import UnaryEncoding
    >>> mechanism = UnaryEncoding(1.0, 6)
    >>> mechanism.release([0, 5, 2]).shape
    (3, 6)
    >>> UnaryEncoding(1.0, ["tea", "coffee"]).release(["tea"]).columns
    ('tea', 'coffee')
    >>> round(mechanism.one_probability, 12), round(mechanism.zero_probability, 12)
    (0.5, 0.26894142137)
    """

    def __init__(
        self,
        epsilon: float,
        categories: int | Sequence[Any],
        variant: Literal["optimal", "symmetric"] = "optimal",
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True) / _entries(relation)
        self.categories = Categories.of(categories, "categories").declared
        self.variant = _check.one_of(variant, "variant", ("optimal", "symmetric"))
        times = 1 if self.variant == "optimal" else 2
        self._flip = _core.flip_chance(level / times)
        # The two bits in which two categories differ: told both truly, both falsely, or one of each.
        q = Fraction(self._flip, WORD)
        p = Fraction(1, 2) if times == 1 else 1 - q
        used = min(level, times * _log_odds(self._flip))
        self.guarantee = promise(PerEntry(_swapped(p * (1 - q), q * (1 - p)), True), relation, epsilon=used)

    @cached_property
    def noise(self) -> UnaryEncodingNoise:
        """The law of what is released, which every release carries."""
        zero = Fraction(self._flip, WORD)
        return UnaryEncodingNoise(self.categories, Fraction(1, 2) if self.variant == "optimal" else 1 - zero, zero)

    @property
    def zero_probability(self) -> float:
        """The probability q that a zero is told as a one."""
        return self.noise.zero_probability

    @property
    def one_probability(self) -> float:
        """The probability p that the one is told as a one."""
        return self.noise.one_probability

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Tell categories as noisy rows of bits.

        Parameters
        ----------
        x : array_like of int, or of labels, shape (...)
            The private categories.
        {insecure_seed}
            With uint8 values of shape (..., k); labels are those of the last axis.

        {errors}
            If `x` does not hold categories.
        """
        declared = self.noise.declared
        values = declared.encode(x, "x")
        optimal, words = self.variant == "optimal", seed_words(insecure_seed)
        _check_memory(values.size * len(declared))
        rows = _core.encode_unary(
            values.astype(np.int64, copy=False).reshape(-1), len(declared), self._flip, optimal, words
        )
        release = self._published(rows.reshape(*values.shape, len(declared)), x, insecure_seed)
        if not isinstance(self.categories, int):
            release.axes_ = (*(release.axes_[:-1] or (Axis(),) * values.ndim), Axis("category", self.categories, True))
        return release

    def estimate(self, z: npt.ArrayLike, *, simplex: bool = False) -> npt.NDArray[np.float64]:
        """Unbiased estimate of the shares of the categories.

        Parameters
        ----------
        z : array_like of int or Release, shape (n, ..., k)
            Released rows.
        simplex : bool
            Project the estimate to the simplex, the nearest point by Euclid: biased, but shares.

        Returns
        -------
        ndarray of float64, shape (k,)
            As `estimate_from_counts`.

        Raises
        ------
        ValueError, TypeError
            If the rows are not k bits, or there are none.
        """
        rows = self.noise.rows(z).reshape(-1, len(self.noise.declared))
        found = self.estimate_from_counts(_nonempty(rows).sum(axis=0, dtype=np.int64), len(rows))
        return _on_simplex(found) if simplex else found

    def estimate_from_counts(self, counts: npt.ArrayLike, users: int) -> npt.NDArray[np.float64]:
        """Unbiased estimate of the shares of the categories, from the column sums of the rows.

        Parameters
        ----------
        counts : array_like of int, shape (..., k)
            How many users told a one in each column.
        users : int
            How many users there are, >= 1.

        Returns
        -------
        ndarray of float64, shape (..., k)
            ``(c / n - q) / (p - q)``, of variance ``mu (1 - mu) / (n (p - q)**2)`` with ``mu = q + (p - q) share``.

        {domain}

        Examples
        --------
        >>> from quincunx.privacy import UnaryEncoding
        >>> UnaryEncoding(1.0, 3).estimate_from_counts([400, 300, 250], 1000).round(4).tolist()
        [0.5672, 0.1344, -0.082]
        """
        ones, number = _check.counts(counts, "counts"), _check.whole(users, "users", minimum=1)
        k = len(self.noise.declared)
        if ones.ndim == 0 or ones.shape[-1] != k:
            raise ValueError(f"`counts` must have a last axis of length {k}, got shape {ones.shape}")
        if ones.size and ones.max() > number:
            raise ValueError(f"`counts` must hold whole numbers of at most `users` = {number}, got {ones.max()}")
        p, q = self.one_probability, self.zero_probability
        return np.asarray((ones / number - q) / (p - q))

    def __repr__(self) -> str:
        return f"UnaryEncoding({self.epsilon}, {self.noise.declared.plain}, {self.variant!r}{about(self)})"
