"""Reach: how the curve of a mechanism follows from the distance of two data sets, where that is proved.

A part of a guarantee has a reach, or None: then it was stated at the radius of its relation only, as everything made
from `sensitivity=`, which says nothing of other distances.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from quincunx.privacy import _relations
from quincunx.privacy._curves import Curve, DiscreteGaussian, Gaussian, Geometric, Laplace
from quincunx.privacy._relations import DataMetric, NoGuarantee, Relation

#: A curve, and how many independent copies of it a neighbor sees.
Seen = tuple[Curve, int]


def unknown(what: str, relation: Relation) -> NoGuarantee:
    """Return the refusal to guarantee anything about a relation."""
    return NoGuarantee(f"no rule is known for {what} about {relation}: state a `sensitivity`")


@dataclass(frozen=True)
class PerEntry:
    """Each entry that differs shows one copy of a curve. `whole`: entries are whole numbers or categories."""

    curve: Curve
    whole: bool
    kind: ClassVar[str] = "per-entry"

    def at(self, relation: Relation, distance: float) -> Seen:
        """Return what is seen at a distance."""
        real = isinstance(relation, DataMetric) and relation.metric != "hamming" and not self.whole
        entries = None if real else _relations.moved(relation, distance)
        if entries is None:
            raise unknown("entries clipped one by one", relation)
        # A vector of equal shifts of normal noise is one shift of sqrt(entries) times the size.
        if isinstance(self.curve, Gaussian):
            return Gaussian(entries * self.curve.squared), 1
        if isinstance(self.curve, DiscreteGaussian):
            one = self.curve
            return DiscreteGaussian(one.variance, entries * one.shift, entries * one.squared), 1
        return self.curve, entries


@dataclass(frozen=True)
class GeometricShift:
    """Two-sided geometric noise on an array of whole numbers at an L1 distance."""

    decay: Fraction
    kind: ClassVar[str] = "geometric"

    def at(self, relation: Relation, distance: float) -> Seen:
        """Return what is seen at a distance."""
        return Geometric(self.decay, _shift(relation, distance, "geometric noise")), 1


@dataclass(frozen=True)
class DiscreteGaussianShift:
    """Discrete Gaussian noise on an array of whole numbers."""

    variance: Fraction
    kind: ClassVar[str] = "discrete-gaussian"

    def at(self, relation: Relation, distance: float) -> Seen:
        """Return what is seen at a distance."""
        shift = _shift(relation, distance, "discrete Gaussian noise")
        vector = isinstance(relation, DataMetric) and relation.metric == "l2"
        return DiscreteGaussian(self.variance, shift, Fraction(shift if vector else shift**2)), 1


@dataclass(frozen=True)
class GaussianShift:
    """Normal noise on the array itself: its shift in deviations is ``slope * distance + rest``."""

    slope: Fraction
    rest: Fraction
    kind: ClassVar[str] = "gaussian"

    def at(self, relation: Relation, distance: float) -> Seen:
        """Return what is seen at a distance."""
        return Gaussian((self.slope * Fraction(distance) + self.rest) ** 2), 1


@dataclass(frozen=True)
class LaplaceShift:
    """Laplace noise on the array itself: its shift in scales is ``slope * distance + rest``."""

    slope: Fraction
    rest: Fraction
    kind: ClassVar[str] = "laplace"

    def at(self, relation: Relation, distance: float) -> Seen:
        """Return what is seen at a distance."""
        if not (isinstance(relation, DataMetric) and relation.metric == "l1"):
            raise unknown("Laplace noise", relation)
        return Laplace(self.slope * Fraction(distance) + self.rest), 1


Reach: TypeAlias = PerEntry | GeometricShift | DiscreteGaussianShift | GaussianShift | LaplaceShift
REACHES: dict[str, Any] = {
    reach.kind: reach for reach in (PerEntry, GeometricShift, DiscreteGaussianShift, GaussianShift, LaplaceShift)
}


def _shift(relation: Relation, distance: float, what: str) -> int:
    """Return the L1 distance of two arrays of whole numbers, which is at most the square of their Euclidean one."""
    exact = Fraction(distance)
    if isinstance(relation, DataMetric) and relation.metric in ("l1", "l2"):
        return math.floor(exact if relation.metric == "l1" else exact * exact)
    raise unknown(what, relation)
