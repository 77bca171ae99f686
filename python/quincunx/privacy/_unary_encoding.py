"""Unary encoding: a category as a row of noisy bits; its law and the mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._categories import Categories
from quincunx._types import Array, Facts, Floats
from quincunx.privacy import _rational
from quincunx.privacy._categorical import (
    WORD,
    CategoricalMechanism,
    categorical_doc,
    entries,
    guarantee_of_swap,
    level_of,
    log_odds,
    nonempty,
    on_simplex,
)
from quincunx.privacy._curves import ULP
from quincunx.privacy._law import CategoricalNoise, Noise, law_doc, log_not
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words


@law_doc
@dataclass(frozen=True, eq=False)
class UnaryEncodingNoise(CategoricalNoise):
    """A category is released as a row of bits, its one-hot row with noise on each.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels.
    one, zero : Fraction or float
        The probabilities that the one, and that a zero, is released as a one.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.UnaryEncodingNoise(2, 0.5, 0.25).log_likelihood([1, 0], 0)), 6)
    -0.980829
    """

    categories: int | Sequence[Hashable]
    one: Fraction
    zero: Fraction
    kind = "unary-encoding"
    earlier: ClassVar[tuple[str, ...]] = ("variant", "one_probability", "zero_probability")

    def __post_init__(self) -> None:
        self._set(one=self.one, zero=self.zero)

    @classmethod
    def _of_facts(cls, facts: Facts) -> Noise:
        """Return the law of such fields, or of the names that earlier files have."""
        return super()._of_facts({name.removesuffix("_probability"): fact for name, fact in facts.items()})

    @property
    def one_probability(self) -> float:
        """The probability that the one is released as a one."""
        return float(self.one)

    @property
    def zero_probability(self) -> float:
        """The probability that a zero is released as a one."""
        return float(self.zero)

    def rows(self, z: npt.ArrayLike, name: str = "z") -> Array:
        """Return rows of bits, checked.

        {rows}
            If they are not k bits each.
        """
        return self._bits(z, name)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        rows, values, k = self.rows(z), self.declared.encode(x, "x"), len(self.declared)
        shape = np.broadcast_shapes(rows.shape[:-1], values.shape)
        rows, values = np.broadcast_to(rows, (*shape, k)), np.broadcast_to(values, shape)
        own = np.take_along_axis(rows, values[..., None], axis=-1)[..., 0]
        (one, zero), (hit, miss) = ((math.log(p), log_not(p)) for p in (self.zero, self.one))
        ones = rows.sum(axis=-1, dtype=np.int64) - own
        return np.asarray(ones * one + (k - 1 - ones) * zero + np.where(own == 1, hit, miss))


@categorical_doc
class UnaryEncoding(CategoricalMechanism):
    """A category is released as a row of k bits, its one-hot row with noise on each bit.

    A zero becomes a one with probability q, the one stays with probability p. The optimal variant (OUE) has p = 1/2 and
    ``q = 1 / (exp(epsilon) + 1)``; the symmetric one (SUE, the permanent part of RAPPOR) ``p = 1 - q`` and
    ``q = 1 / (exp(epsilon / 2) + 1)``. Thresholding (THE) tells which numbers of the one-hot row are above a threshold
    t after Laplace noise of scale ``2 / epsilon``: then ``p = 1 - exp(epsilon (t - 1) / 2) / 2`` and
    ``q = exp(-epsilon t / 2) / 2``.

    Parameters
    ----------
    {declared}
    variant : {"optimal", "symmetric", "threshold"}
        Which p and q.
    threshold : float, optional
        Of the variant of this name, in [1/2, 1]: by default the one of the least variance at this epsilon.
    {relation}

    {attributes}
    one_probability, zero_probability : float
        The p and q actually used: q is a multiple of 2**-64, rounded upwards; of a threshold p is one, too.
    guarantee : PrivacyGuarantee
        With the epsilon ``log(p (1 - q) / (q (1 - p)))`` of these, at most the one asked for. A threshold
        throws part of the noisy numbers away: what is left is below the epsilon of these, and stated.

    {domain}

    Notes
    -----
    Below one nanosecond a bit where there are 16 categories or more.

    {protocols}

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
        categories: int | Sequence[Hashable],
        variant: Literal["optimal", "symmetric", "threshold"] = "optimal",
        *,
        threshold: float | None = None,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = level_of(epsilon, relation)
        self.categories = Categories.of(categories, "categories").declared
        self.variant = _check.one_of(variant, "variant", ("optimal", "symmetric", "threshold"))
        if threshold is not None and self.variant != "threshold":
            raise ValueError(f"`threshold` must be left out for {self.variant}")
        times = 1 if self.variant == "optimal" else 2
        if self.variant == "threshold":
            self._asked, self.threshold = level, _threshold(level, threshold)
            self._one, self._flip = _above(level, self.threshold)
        else:
            self._flip = _core.flip_chance(level / times)
            self._one = WORD // 2 if times == 1 else WORD - self._flip
        # The two bits in which two categories differ: both true, both false, or one of each.
        p, q = Fraction(self._one, WORD), Fraction(self._flip, WORD)
        if self.variant == "threshold":
            used = _rational.log_upwards(p * (1 - q) / (q * (1 - p)))
        else:
            used = min(level, times * log_odds(self._flip))
        self.guarantee = guarantee_of_swap(p * (1 - q), q * (1 - p), relation, used)

    @cached_property
    def noise(self) -> UnaryEncodingNoise:
        return UnaryEncodingNoise(self.categories, Fraction(self._one, WORD), Fraction(self._flip, WORD))

    @property
    def zero_probability(self) -> float:
        """The probability q that a zero is released as a one."""
        return self.noise.zero_probability

    @property
    def one_probability(self) -> float:
        """The probability p that the one is released as a one."""
        return self.noise.one_probability

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Release categories as noisy rows of bits.

        {x_and_seed}
            With uint8 values of shape (..., k); labels are those of the last axis.

        {no_categories}
        """
        codes, k, words = self._codes(x), len(self._declared), seed_words(insecure_seed)
        _check.room(codes.size * k, "making the rows")
        rows = _core.encode_unary(codes.reshape(-1), k, self._flip, self._one, words)
        return self._published_rows(rows, codes, x, insecure_seed)

    def estimate(self, z: npt.ArrayLike, *, simplex: bool = False) -> Floats:
        """Unbiased estimate of the shares of the categories.

        Parameters
        ----------
        z : array_like of int or Release, shape (n, ..., k)
            Released rows.
        {simplex}
            As `estimate_from_counts`.

        Raises
        ------
        ValueError, TypeError
            If the rows are not k bits, or there are none.
        """
        rows = self.noise.rows(z).reshape(-1, len(self.noise.declared))
        found = self.estimate_from_counts(nonempty(rows).sum(axis=0, dtype=np.int64), len(rows))
        return on_simplex(found) if _check.flag(simplex, "simplex") else found

    def estimate_from_counts(self, counts: npt.ArrayLike, users: int) -> Floats:
        """Unbiased estimate of the shares of the categories, from the column sums of the rows.

        Parameters
        ----------
        counts : array_like of int, shape (..., k)
            How many users sent a one in each column.
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
        ones = _check.counts(self._declared.columns(counts, "counts"), "counts")
        number = _check.whole(users, "users", minimum=1, maximum=2**53)
        k = len(self.noise.declared)
        if ones.ndim == 0 or ones.shape[-1] != k:
            raise ValueError(f"`counts` must have a last axis of length {k}, got shape {ones.shape}")
        if ones.size and ones.max() > number:
            raise ValueError(f"`counts` must hold whole numbers of at most `users` = {number}, got {ones.max()}")
        p, q = self.one_probability, self.zero_probability
        return np.asarray((ones / number - q) / (p - q))

    def __repr__(self) -> str:
        known, variant = self._declared.plain, repr(self.variant)
        if self.variant == "threshold":
            asked = self._asked * entries(self.guarantee.relation)
            return self._shown(asked, known, variant, f"threshold={self.threshold}")
        return self._shown(self.epsilon, known, variant)


def _probabilities(epsilon: float, threshold: float) -> tuple[float, float]:
    """Return the probabilities that one and zero are above a threshold after Laplace noise of scale 2 / epsilon."""
    half = min(epsilon, 64.0) / 2
    return 1 - 0.5 * math.exp(half * (threshold - 1)), 0.5 * math.exp(-half * threshold)


def _threshold(epsilon: float, given: float | None) -> float:
    """Return a threshold, that of the least variance if none is given."""

    def spread(threshold: float) -> float:
        p, q = _probabilities(epsilon, threshold)
        return q * (1 - q) / max(p - q, 2.0**-60) ** 2

    if given is None:
        from scipy import optimize

        return float(optimize.minimize_scalar(spread, bounds=(0.5, 1.0), method="bounded").x)
    if not 0.5 <= _check.real(given, "threshold") <= 1:
        raise ValueError(f"`threshold` must be between 1/2 and 1, got {given}")
    return float(given)


def _above(epsilon: float, threshold: float) -> tuple[int, int]:
    """Return these probabilities in units of 2**-64, that of one rounded down and that of zero up."""
    half = min(epsilon, 64.0) / 2

    def beyond(x: float) -> int:
        """Return at least exp(-x) / 2: by its own digits, or by those of what it lacks to 1/2."""
        share, lack = Fraction(math.exp(-x)), Fraction(-math.expm1(-x))
        return math.ceil(min(share * (1 + ULP), 1 - lack * (1 - ULP)) * WORD / 2)

    one, zero = WORD - beyond(half * (1 - threshold)), beyond(half * threshold)
    if not zero < one:
        raise ValueError(f"`epsilon` must be large enough to be seen in probabilities of 64 bits, got {epsilon}")
    return one, zero
