"""Reports that support some of the categories: local hashing, subset selection, Hadamard response.

Each category x has a set S(x) of reports, a `share` of all N of them. A report is uniform in the set of the truth, or
with probability `miss` uniform outside of it, so that its probability takes two values:

    P(z | x) = (1 - miss) / (N share)  if z in S(x),  else  miss / (N (1 - share))

Likelihoods, estimates and guarantees ask for no more than these, and how much of S(x) lies outside of another S(x').
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import assembled
from quincunx._types import Array, Floats
from quincunx.privacy import _rational
from quincunx.privacy._categorical import (
    CATEGORICAL,
    CategoricalMechanism,
    guarantee_of_swap,
    nonempty,
    on_simplex,
    shares_of,
)
from quincunx.privacy._law import CategoricalNoise, law_doc
from quincunx.privacy._relations import Relation

#: Categories at the most: the prime of local hashing, whose functions are numbers of 62 bits.
PRIME = 2**31 - 1
#: Reports by categories that are looked at together: eight megabytes of hashes, whatever their number.
PIECE = 2**20


support_doc = assembled(
    **CATEGORICAL,
    used="""
    one_probability, zero_probability : float
        The p and q actually used, of a report that supports the truth and another category: ``1 - p`` is a multiple of
        2**-64, rounded upwards.
    guarantee : PrivacyGuarantee
        With the epsilon of these, at most the one asked for.
    """,
)


@law_doc
@support_doc
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
        {called}

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

        {shares}

        Returns
        -------
        ndarray of float64, shape (k,)
            Exact: ``mu (1 - mu) / (n (p - q)**2)`` with ``mu = q + (p - q) share``; where categories have blocks, with
            what the estimate of these adds. About the shares of the n users themselves it is less by
            ``share (1 - share) / n``.

        Raises
        ------
        ValueError, TypeError
            If they are not k shares, or of no users.
        """
        return self._of_users(shares, users)

    def variances_of_none(self, shares: npt.ArrayLike, users: int) -> Floats:
        """Return the variances where a category has no share, and the others have these, as of `variances`."""
        return self._of_users(shares, users, 0.0)

    def _of_users(self, shares: npt.ArrayLike, users: int, own: float = 1.0) -> Floats:
        """Return the variances where a category in turn has its share times a number, and the others have theirs."""
        known, number = shares_of(self.declared, shares, users)
        return self._variances(own * known, known) / number

    def _variances(self, own: Floats, shares: Floats) -> Floats:
        """Return the variances of one report where each category in turn has an own share, and the others these."""
        p, q = self.one_probability, self.zero_probability
        mean = q + (p - q) * own
        return np.asarray(mean * (1 - mean) / (p - q) ** 2)


@support_doc
class SupportMechanism(CategoricalMechanism):
    """What mechanisms whose reports support categories have in common."""

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
        self.guarantee = guarantee_of_swap(p, q, relation, used)

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

        Parameters
        ----------
        z : array_like of int or Release
            Released reports, at least one.
        {simplex}
            For c of n reports that support a category ``(c / n - q) / (p - q)``; see `variances` of the `noise`.

        Raises
        ------
        ValueError, TypeError
            If they are no reports of the mechanism, or there are none.
        """
        found, _ = self.noise.estimated(z)
        return on_simplex(found) if _check.flag(simplex, "simplex") else found
