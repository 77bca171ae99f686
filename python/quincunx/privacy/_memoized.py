"""Reports that are repeated: a noisy row is kept by its user, and each report adds noise of its own to it."""

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
from quincunx._types import Floats
from quincunx.privacy import _rational
from quincunx.privacy._categorical import WORD, categorical_doc, entries, guarantee_of_swap, level_of, shares_of
from quincunx.privacy._curves import Pure
from quincunx.privacy._guarantee import PrivacyGuarantee, guarantee_of
from quincunx.privacy._law import law_doc
from quincunx.privacy._privacy_map import PerEntry
from quincunx.privacy._relations import Relation, ReplaceOne
from quincunx.privacy._release import Release, marked, seed_words
from quincunx.privacy._unary_encoding import UnaryEncoding, UnaryEncodingNoise

#: Powers are rounded down to multiples of 2**-BITS. Probabilities are at least 2**-64, so that levels move by less than
#: 2**-190, far below the rounding of a double.
BITS = 256


@law_doc
@dataclass(frozen=True, eq=False)
class MemoizedUnaryEncodingNoise(UnaryEncodingNoise):
    """A category is kept as a noisy row of bits, and each report flips each bit of that row anew.

    Parameters
    ----------
    categories : int or sequence
        Their number k, >= 2, or k labels.
    one, zero : Fraction or float
        The probabilities that the one, and that a zero, is reported as a one.
    flip : Fraction or float
        The probability that a bit of the permanent row is reported as the other, below 1/2.

    Attributes
    ----------
    permanent : UnaryEncodingNoise
        The law of the permanent row: ``one = p + flip (1 - 2 p)`` for its p, and so for its q.

    Notes
    -----
    `log_likelihood` is that of one report. Reports of one row are independent given the row, whose bits are independent
    given the category: `ldp.HistogramModel` with ``data="repeated"`` has their joint likelihood.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> law = noise.MemoizedUnaryEncodingNoise(2, 0.5, 0.375, 0.25)
    >>> law.permanent.one_probability, law.permanent.zero_probability
    (0.5, 0.25)
    """

    flip: Fraction
    kind = "memoized-unary-encoding"
    earlier: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self._set(one=self.one, zero=self.zero, flip=self.flip)
        if not self.flip < min(self.one, self.zero, 1 - self.one, 1 - self.zero):
            found = tuple(map(float, (self.flip, self.one, self.zero)))
            raise ValueError(f"`flip` must be below `one`, `zero` and what these leave of 1, got {found}")

    @cached_property
    def permanent(self) -> UnaryEncodingNoise:
        """The law of the permanent row."""
        one, zero = ((chance - self.flip) / (1 - 2 * self.flip) for chance in (self.one, self.zero))
        return UnaryEncodingNoise(self.categories, one, zero)

    def variances_of(self, shares: Floats, users: int, reports: float) -> Floats:
        """Return the variances of unbiased estimates, as of `MemoizedUnaryEncoding.variances`."""
        times, f, permanent = min(_number(reports) or math.inf, 1e300), float(self.flip), self.permanent
        mean = permanent.zero_probability + (permanent.one_probability - permanent.zero_probability) * shares
        one = f * (1 - f) / times + (1 - 2 * f) ** 2 * mean * (1 - mean)
        return np.asarray(one / (users * (self.one_probability - self.zero_probability) ** 2))


@categorical_doc
class MemoizedUnaryEncoding(UnaryEncoding):
    """A category is kept as a noisy row of bits, of which each report is a noisier copy: repeated collection.

    The *permanent* row is that of a `UnaryEncoding`, made once (`memoize`); each *report* flips every bit of it anew
    with probability f (`report`). However many reports are seen, they tell no more than the permanent row, and its
    epsilon is the `lifetime`; one report by itself is a row of unary encoding with probabilities
    ``p = p1 + f (1 - 2 p1)`` and ``q = q1 + f (1 - 2 q1)``, where p1 and q1 are those of the permanent row. The
    symmetric variant is RAPPOR with symmetric instantaneous noise (L-SUE), the optimal one L-OSUE.

    Parameters
    ----------
    epsilon : float
        Privacy level of one report, > 0.
    lifetime : float
        Privacy level of all reports together, > epsilon.
    categories : int or sequence
        Their number k, >= 2, for the numbers 0..k-1, or k labels: strings, numbers or truth values.
    variant : {"optimal", "symmetric"}
        Which p1 and q1, as for `UnaryEncoding`; p and q of a report are then those of the same variant.
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of both levels.

    {attributes}
    permanent : UnaryEncoding
        The mechanism of the rows that are kept: its guarantee is that of the lifetime, to spend once.
    flip_probability : float
        The f used: a multiple of 2**-64, rounded upwards.
    one_probability, zero_probability : float
        The p and q of one report.
    guarantee : PrivacyGuarantee
        Of one report, at most the epsilon asked for. `guarantee_of_reports` has that of several.

    {domain}

    Notes
    -----
    Reports of one permanent row are not independent: rules that compose independent releases say nothing of them. The
    exact level of r of them is that of `guarantee_of_reports`, which is concave in r: at most r times that of one, and
    at most the lifetime. A release by `report` states the lifetime, which all of them spend together. Nor is their
    likelihood a product: `ldp.HistogramModel` takes them with ``data="repeated"``.

    A value that changes needs a permanent row of its own, and then spends the lifetime again.

    References
    ----------
    .. [1] U. Erlingsson, V. Pihur and A. Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving ordinal
       response, CCS.
    .. [2] H. Arcolezi, J.-F. Couchot, B. Al Bouna and X. Xiao (2022), Improving the utility of locally differentially
       private protocols for longitudinal and multidimensional frequency estimates, Digit. Commun. Netw.

    Examples
    --------
    >>> from quincunx.privacy import MemoizedUnaryEncoding
    >>> mechanism = MemoizedUnaryEncoding(1.0, 2.0, ["tea", "coffee", "mate"])
    >>> kept = mechanism.memoize(["mate", "tea", "tea"])  # stays with the users
    >>> days = [mechanism.report(kept) for _ in range(30)]
    >>> round(days[0].epsilon, 9), days[0].columns
    (2.0, ('tea', 'coffee', 'mate'))
    >>> [round(mechanism.guarantee_of_reports(r).epsilon, 4) for r in (1, 2, 30)]
    [1.0, 1.6417, 2.0]
    """

    def __init__(
        self,
        epsilon: float,
        lifetime: float,
        categories: int | Sequence[Hashable],
        variant: Literal["optimal", "symmetric"] = "optimal",
        *,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = level_of(epsilon, relation)
        if not _check.real(lifetime, "lifetime", positive=True) > epsilon:
            raise ValueError(f"`lifetime` must be above `epsilon` = {epsilon}, got {lifetime}")
        self.variant = _check.one_of(variant, "variant", ("optimal", "symmetric"))
        self.permanent = UnaryEncoding(lifetime, categories, variant, relation=relation)
        self.categories = self.permanent.categories
        self._levels = float(epsilon), float(lifetime)
        # The least f for which q is at least that of the same variant at this level.
        permanent = self.permanent.noise
        asked = UnaryEncoding(epsilon, categories, variant, relation=relation).noise.zero
        self._again = math.ceil((asked - permanent.zero) / (1 - 2 * permanent.zero) * WORD)
        if not 0 < self._again < WORD // 2:
            raise ValueError(
                f"`epsilon` and `lifetime` must differ in probabilities of 64 bits, got {epsilon} and {lifetime}"
            )
        p, q = self.noise.one, self.noise.zero
        used = min(level, _rational.log_upwards(p * (1 - q) / (q * (1 - p))))
        self.guarantee = guarantee_of_swap(p * (1 - q), q * (1 - p), relation, used)

    @cached_property
    def noise(self) -> MemoizedUnaryEncodingNoise:
        flip, permanent = Fraction(self._again, WORD), self.permanent.noise
        one, zero = (chance + flip * (1 - 2 * chance) for chance in (permanent.one, permanent.zero))
        return MemoizedUnaryEncodingNoise(self.categories, one, zero, flip)

    @property
    def flip_probability(self) -> float:
        """The probability f with which a report flips a bit of the permanent row."""
        return self._again / WORD

    def guarantee_of_reports(self, reports: float) -> PrivacyGuarantee:
        """Guarantee of several reports of one permanent row together.

        Parameters
        ----------
        reports : int
            How many, >= 1; ``math.inf`` for the lifetime.

        Returns
        -------
        PrivacyGuarantee
            With the exact level, that of ones in all reports at one category and zeros in all at another, rounded
            upwards: with ``s = (f / (1 - f))**r`` it is
            ``log((p1 + (1 - p1) s) / (q1 + (1 - q1) s)) + log((1 - q1 + q1 s) / (1 - p1 + p1 s))``.

        {domain}

        Examples
        --------
        >>> import math
        >>> from quincunx.privacy import MemoizedUnaryEncoding
        >>> mechanism = MemoizedUnaryEncoding(0.1, 8.0, 5)
        >>> [round(mechanism.guarantee_of_reports(r).epsilon, 4) for r in (1, 20, 200)]
        [0.1, 1.9989, 8.0]
        >>> mechanism.guarantee_of_reports(math.inf) == mechanism.permanent.guarantee
        True
        """
        number = _number(reports)
        if number is None:
            return self.permanent.guarantee
        if number == 1:
            return self.guarantee
        flip, permanent = Fraction(self._again, WORD), self.permanent.noise
        p, q, s = permanent.one, permanent.zero, _power_below(flip / (1 - flip), number)
        ones = (p + (1 - p) * s) / (q + (1 - q) * s)
        zeros = (1 - q + q * s) / (1 - p + p * s)
        relation = self.guarantee.relation
        used = min(self.permanent.epsilon / entries(relation), _rational.log_upwards(ones * zeros))
        return guarantee_of(PerEntry(Pure(Fraction(used)), True), relation, epsilon=used)

    def memoize(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Make the permanent rows, which users keep and do not send.

        {x_and_seed}
            With uint8 values of shape (..., k) and the guarantee of the lifetime: it may be saved and loaded.

        {no_categories}
        """
        return self.permanent.release(x, insecure_seed=insecure_seed)

    def report(self, kept: Release, *, insecure_seed: int | None = None) -> Release:
        """Report once from permanent rows.

        Parameters
        ----------
        kept : Release
            What `memoize` gave, or a part of it.
        {insecure_seed}
            With uint8 values of the shape of `kept` and the noise of one report. Its guarantee is that of `kept`, the
            lifetime, for all reports together.

        {errors}
            If `kept` is no release of permanent rows of this mechanism.
        """
        if not isinstance(kept, Release):
            raise TypeError(f"`kept` must be a Release of `memoize`, got {type(kept).__name__}")
        if kept.noise != self.permanent.noise:
            raise ValueError("`kept` must be a Release of `memoize` of this mechanism, got one with another noise")
        rows = self.permanent.noise.rows(kept, "kept").astype(np.uint8, copy=False)
        flipped = _core.flip_bits(np.ascontiguousarray(rows).reshape(-1), self._again, _others(insecure_seed))
        guarantee = marked(kept.guarantee, insecure_seed)
        return Release(flipped.reshape(rows.shape), guarantee, noise=self.noise, _owned=True, _axes=kept.axes_)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Report once from permanent rows that are then forgotten: the guarantee is that of one report.

        {x_and_seed}
            With uint8 values of shape (..., k); labels are those of the last axis.

        {no_categories}
        """
        release = self.report(self.memoize(x, insecure_seed=insecure_seed), insecure_seed=insecure_seed)
        release.guarantee = marked(self.guarantee, insecure_seed)
        return release

    def variances(self, shares: npt.ArrayLike, users: int, reports: float = 1) -> Floats:
        """Variances of the unbiased estimates of the shares from all reports of the users.

        {shares}
        reports : int
            How many reports each makes from one permanent row; ``math.inf`` for the limit, where f is averaged away.

        Returns
        -------
        ndarray of float64, shape (k,)
            Exact, of `estimate` for rows of shape ``(users, reports, k)``: with ``mu = q1 + (p1 - q1) share`` it is
            ``(f (1 - f) / reports + (1 - 2 f)**2 mu (1 - mu)) / (users (p - q)**2)``.

        {domain}

        Examples
        --------
        >>> import math
        >>> from quincunx.privacy import MemoizedUnaryEncoding
        >>> mechanism = MemoizedUnaryEncoding(1.0, 2.0, 2)
        >>> [mechanism.variances([0, 1], 1000, r)[0].round(6).tolist() for r in (1, 10, math.inf)]
        [0.003683, 0.00102, 0.000724]
        """
        known, number = shares_of(self._declared, shares, users)
        return self.noise.variances_of(known, number, reports)

    def __repr__(self) -> str:
        return self._shown(*self._levels, self._declared.plain, repr(self.variant))


def _number(reports: float) -> int | None:
    """Return a number of reports, None for infinitely many."""
    if isinstance(reports, float) and reports == math.inf:
        return None
    return _check.whole(reports, "reports", minimum=1)


def _others(insecure_seed: int | None) -> list[int] | None:
    """Return words of a seed other than those that the permanent rows of the same seed are made with."""
    words = seed_words(insecure_seed)
    return None if words is None else [words[0] ^ 1, words[1]]


def _power_below(base: Fraction, times: int) -> Fraction:
    """Return a power of a number in (0, 1), rounded down: guarantees fall with it."""
    square, found = (base.numerator << BITS) // base.denominator, 1 << BITS
    while times:
        if times & 1:
            found = found * square >> BITS
        square, times = square * square >> BITS, times >> 1
    return Fraction(found, 1 << BITS)
