"""Mechanisms that release the category of each user: what randomized response and its kin have in common."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._categories import Categories
from quincunx._docs import assembled
from quincunx._tables import Axis
from quincunx._types import Array, Floats
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Outcomes, Pure
from quincunx.privacy._guarantee import PrivacyGuarantee, guarantee_of
from quincunx.privacy._law import CategoricalNoise
from quincunx.privacy._mechanism import RELEASE, Mechanism
from quincunx.privacy._privacy_map import PerEntry
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import Release

#: Probabilities are multiples of one in so many: samplers compare them with a random word.
WORD = 2**64

#: What the docstrings of these mechanisms have in common.
CATEGORICAL = RELEASE | {
    "declared": """
    epsilon : float
        Privacy level, > 0.
    categories : int or sequence
        Their number k, >= 2, for the numbers 0..k-1, or k labels: strings, numbers or truth values.
    """,
    "relation": """
    relation : ReplaceOne or DataMetric
        Which neighbors it is about; where they differ in several records, each has its share of epsilon.
    """,
    "attributes": """
    Attributes
    ----------
    categories : int or tuple
        As declared.
    """,
    "x_and_seed": """
    Parameters
    ----------
    x : array_like of int, or of labels, shape (...)
        The private categories.
    {insecure_seed}
    """,
    "no_categories": """
    {errors}
        If `x` does not hold categories.
    """,
    "simplex": """
    simplex : bool
        Project the estimate to the simplex, the nearest point by Euclid: biased, but shares.

    Returns
    -------
    ndarray of float64, shape (k,)
    """,
    "protocols": """
    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha (2017), Locally differentially private protocols for frequency
       estimation, USENIX Security.
    """,
    "shares": """
    Parameters
    ----------
    shares : array_like of float, shape (k,)
        The true shares: with these probabilities users have their categories, each by itself.
    users : int
        How many users report, >= 1.
    """,
}
categorical_doc = assembled(**CATEGORICAL)


def log_odds(flip: int) -> float:
    """Return log((1 - q) / q) for ``q = flip / 2**64``, rounded upwards."""
    if flip < WORD // 4:
        odds = math.log((WORD - flip) / flip)
    else:
        odds = 2 * math.atanh((WORD - 2 * flip) / WORD)
    return odds * (1 + 2.0**-50)


def entries(relation: Relation) -> int:
    """Return how many records a neighbor may change."""
    return max(PerEntry(Pure(Fraction(0)), True).at(_relations.check(relation))[1], 1)


def level_of(epsilon: float, relation: Relation) -> float:
    """Return the share of epsilon that each record has which a neighbor may change, so that all have no more."""
    return _rational.downwards(Fraction(_check.real(epsilon, "epsilon", positive=True)) / entries(relation))


def guarantee_of_swap(p: Fraction, q: Fraction, relation: Relation, epsilon: float) -> PrivacyGuarantee:
    """Return the guarantee of two outcomes of probabilities p and q, or q and p, others being the same for both."""
    rest = 1 - p - q
    curve = Outcomes(((p, q), (q, p), (rest, rest)) if rest else ((p, q), (q, p)))
    return guarantee_of(PerEntry(curve, True), relation, epsilon=epsilon)


def nonempty(z: Array) -> Array:
    if z.ndim == 0 or z.size == 0:
        raise ValueError(f"`z` must hold at least one report along its first axis, got shape {z.shape}")
    return z


def on_simplex(estimate: Floats, total: float = 1.0) -> Floats:
    """Return the nearest point of the simplex of a sum: what is above the water level that makes the sum.

    Of equal numbers where the total is 0, so are they.
    """
    ordered = np.sort(estimate)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    level = levels[np.flatnonzero(ordered > levels).max(initial=0)]
    return np.asarray(np.maximum(estimate - level, 0.0))


def shares_of(declared: Categories, shares: npt.ArrayLike, users: int) -> tuple[Floats, int]:
    """Return true shares and a number of users, checked."""
    known = _check.reals(declared.columns(shares, "shares"), "shares")
    number = _check.whole(users, "users", minimum=1, maximum=2**53)
    if known.shape != (len(declared),):
        raise ValueError(f"`shares` must have shape ({len(declared)},), got {known.shape}")
    if known.min() < 0 or known.sum() > 1 + 1e-9:
        raise ValueError(f"`shares` must be at least 0 and sum to at most 1, got {known.min()} and {known.sum()}")
    return known, number


class CategoricalMechanism(Mechanism):
    """A mechanism of declared categories, which are released by their labels where they have any."""

    categories: int | tuple[Hashable, ...]

    @property
    def noise(self) -> CategoricalNoise:
        raise NotImplementedError

    @property
    def _declared(self) -> Categories:
        return Categories(self.categories)

    def _codes(self, x: npt.ArrayLike) -> Array:
        """Return the codes of private categories, in their shape."""
        return self._declared.encode(x, "x").astype(np.int64, copy=False)

    def _published_rows(self, rows: Array, codes: Array, x: npt.ArrayLike, insecure_seed: int | None) -> Release:
        """Return a row of bits for each code as a release, whose last axis has the labels of the categories."""
        release = self._published(rows.reshape(*codes.shape, len(self._declared)), x, insecure_seed)
        if not isinstance(self.categories, int):
            release.axes_ = (*(release.axes_[:-1] or (Axis(),) * codes.ndim), Axis("category", self.categories, True))
        return release

    def _shown(self, *arguments: object) -> str:
        """Return the call that makes the mechanism."""
        return f"{type(self).__name__}({', '.join(map(str, arguments))}{self._shown_relation})"
