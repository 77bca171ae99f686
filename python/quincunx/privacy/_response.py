"""Randomized response for bits and for categories: the laws and the mechanisms."""

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
from quincunx._types import Facts, Floats
from quincunx.privacy._categorical import (
    WORD,
    CategoricalMechanism,
    categorical_doc,
    guarantee_of_swap,
    level_of,
    log_odds,
    nonempty,
    on_simplex,
)
from quincunx.privacy._curves import Pure
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import CategoricalNoise, Noise, chance, log_not
from quincunx.privacy._privacy_map import PerEntry
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words


@dataclass(frozen=True, eq=False)
class RandomizedResponseNoise(CategoricalNoise):
    """A bit is released as its opposite with a probability.

    Parameters
    ----------
    flip : Fraction or float
        That probability, in (0, 1).
    categories : int or sequence
        2, or two labels.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.RandomizedResponseNoise(0.25).keep_probability
    0.75
    """

    flip: Fraction
    categories: int | Sequence[Hashable] = 2
    kind = "randomized-response"
    _most = 2
    earlier = ("keep_probability",)

    def __post_init__(self) -> None:
        self._set(flip=self.flip)

    @classmethod
    def _of_facts(cls, facts: Facts) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        flip = facts["flip"] if "flip" in facts else 1 - chance(facts["keep_probability"], "keep_probability")
        return cls(flip, facts.get("categories", 2))

    def facts(self) -> Facts:
        """Return the fields as JSON can hold them; bits need no categories."""
        return {name: fact for name, fact in super().facts().items() if fact != 2 or name != "categories"}

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return float(1 - self.flip)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        same = self.declared.encode(z, "z") == self.declared.encode(x, "x")
        return np.where(same, log_not(self.flip), math.log(self.flip))


@categorical_doc
class RandomizedResponse(CategoricalMechanism):
    """A bit is released as it is with probability ``p = exp(epsilon) / (1 + exp(epsilon))``, else its opposite.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    {relation}
    categories : int or sequence
        What is released: 2, for the bits 0 and 1, or two labels, of which the second is the one.

    {attributes}
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
        self, epsilon: float, *, relation: Relation = ReplaceOne(), categories: int | Sequence[Hashable] = 2
    ) -> None:
        self.categories = Categories.of(categories, "categories", maximum=2).declared
        level = level_of(epsilon, relation)
        self._flip = _core.flip_chance(level)
        used = min(level, log_odds(self._flip))
        self.guarantee = guarantee_of(PerEntry(Pure(Fraction(used)), True), relation, epsilon=used)

    @cached_property
    def noise(self) -> RandomizedResponseNoise:
        return RandomizedResponseNoise(Fraction(self._flip, WORD), self.categories)

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return self.noise.keep_probability

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release bits, each as it is or as its opposite.

        Parameters
        ----------
        x : array_like of bool or int, or of labels
            The private bits.
        {insecure_seed}
            With uint8 values, or labels, of the shape of `x`.

        {errors}
            If `x` does not hold bits, or the labels declared.
        """
        bits = self._declared.encode(x, "x").astype(np.uint8, copy=False)
        noisy = _core.flip_bits(bits.reshape(-1), self._flip, seed_words(insecure_seed))
        return self._published(self._declared.decode(noisy.reshape(bits.shape)), x, insecure_seed)

    def estimate(self, z: npt.ArrayLike) -> Floats:
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
        bits = nonempty(self.noise.declared.encode(z, "z"))
        flip = self._flip / WORD
        return np.asarray((bits.mean(axis=0) - flip) / (1 - 2 * flip))

    def __repr__(self) -> str:
        labels = "" if self.categories == 2 else f", categories={self.categories}"
        return f"RandomizedResponse({self.epsilon}{self._shown_relation}{labels})"


@dataclass(frozen=True, eq=False)
class GeneralizedRandomizedResponseNoise(CategoricalNoise):
    """A category is released as each other with a probability.

    Parameters
    ----------
    categories : int or sequence
        Their number, >= 2, or their labels.
    other : Fraction or float
        The probability of each category that is not the truth.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.GeneralizedRandomizedResponseNoise(3, 0.125).keep_probability
    0.75
    """

    categories: int | Sequence[Hashable]
    other: Fraction
    kind = "generalized-randomized-response"
    earlier = ("keep_probability",)

    def __post_init__(self) -> None:
        self._set(other=self.other)
        if (len(self.declared) - 1) * self.other >= 1:
            raise ValueError(f"`other` must be below 1 / (categories - 1), got {self.other!s:.40}")

    @classmethod
    def _of_facts(cls, facts: Facts) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        if "other" in facts:
            return super()._of_facts(facts)
        keep, number = chance(facts["keep_probability"], "keep_probability"), facts["categories"]
        return cls(number, (1 - keep) / (number - 1))

    @property
    def other_probability(self) -> float:
        """The probability of each category that is not the truth."""
        return float(self.other)

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return float(1 - (len(self.declared) - 1) * self.other)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        same = self.declared.encode(z, "z") == self.declared.encode(x, "x")
        return np.where(same, math.log(self.keep_probability), math.log(self.other_probability))


@categorical_doc
class GeneralizedRandomizedResponse(CategoricalMechanism):
    """A category is released as it is with probability ``p = exp(epsilon) / (exp(epsilon) + k - 1)``, else another.

    Parameters
    ----------
    {declared}
    {relation}

    {attributes}
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
        self, epsilon: float, categories: int | Sequence[Hashable], *, relation: Relation = ReplaceOne()
    ) -> None:
        level = level_of(epsilon, relation)
        declared = Categories.of(categories, "categories")
        self.categories, k = declared.declared, len(declared)
        self._redraw = _core.redraw_chance(level, k)
        # P(truth) / P(another) = (1 - r + r/k) / (r/k) = 1 + k (1 - r) / r.
        used = math.log1p(k * (WORD - self._redraw) / self._redraw) * (1 + 2.0**-50)
        share = Fraction(self._redraw, WORD * k)
        self.guarantee = guarantee_of_swap(1 - (k - 1) * share, share, relation, min(level, used))

    @cached_property
    def noise(self) -> GeneralizedRandomizedResponseNoise:
        return GeneralizedRandomizedResponseNoise(self.categories, Fraction(self._redraw, WORD * len(self._declared)))

    @property
    def other_probability(self) -> float:
        """The probability of each category that is not the truth."""
        return self.noise.other_probability

    @property
    def keep_probability(self) -> float:
        """The probability of the truth."""
        return self.noise.keep_probability

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories, each as it is or as another.

        {x_and_seed}
            With int64 values, or labels, of the shape of `x`.

        {no_categories}
        """
        codes, words = self._codes(x), seed_words(insecure_seed)
        noisy = _core.redraw_categories(codes.reshape(-1), len(self._declared), self._redraw, words)
        return self._published(self._declared.decode(noisy.reshape(codes.shape)), x, insecure_seed)

    def estimate(self, z: npt.ArrayLike, *, simplex: bool = False) -> Floats:
        """Unbiased estimate of the shares of the categories, in the order of their declaration.

        Parameters
        ----------
        z : array_like of int, or of labels, or Release, shape (n,)
            Released categories.
        {simplex}
            ``(c / n - q) / (p - q)`` for the released counts c; they sum to 1 and may leave [0, 1].

        Raises
        ------
        ValueError, TypeError
            If they are not categories, or there are none.
        """
        values = nonempty(self.noise.declared.encode(z, "z"))
        _check.room(40 * len(self._declared), "an estimate of the shares")
        shares = np.bincount(values.reshape(-1), minlength=len(self._declared)) / values.size
        found = np.asarray((shares - self.other_probability) / (self.keep_probability - self.other_probability))
        return on_simplex(found) if _check.flag(simplex, "simplex") else found

    def __repr__(self) -> str:
        return self._shown(self.epsilon, self._declared.plain)
