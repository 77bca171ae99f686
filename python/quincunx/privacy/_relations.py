"""Which two data sets a guarantee compares: guarantees compose only within one relation."""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from quincunx import _check
from quincunx._docs import assembled
from quincunx.privacy import _rational

METRICS = ("l1", "l2", "linf", "hamming")


class NoGuarantee(ValueError):
    """Nothing is known that would answer the question, so nothing is claimed.

    Examples
    --------
    >>> from quincunx.privacy import DataMetric, NoGuarantee, PrivacyGuarantee
    >>> try:
    ...     PrivacyGuarantee(1.0, relation=DataMetric("l2", 1.5, integers=True)).at(3)
    ... except NoGuarantee as error:
    ...     print(error)
    stated within 1.5; nothing is known at 3
    """

    __module__ = "quincunx.privacy"  # where users find it


_relation_doc = assembled(
    records="""
    Raises
    ------
    ValueError, TypeError
        If `records` is not a whole number of at least 1.
    """
)


@dataclass(frozen=True)
class _Records:
    records: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _check.whole(self.records, "records", minimum=1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.records == 1 else self.records})"

    @property
    def radius(self) -> int:
        """How many records may differ."""
        return self.records

    def chain(self, distance: float, *, integers: bool = False) -> int | None:
        """Return how many steps of this relation join any two data sets at a distance: see `DataMetric.chain`.

        Returns
        -------
        int
            ``ceil(distance / records)``, for a `distance` of so many records; `integers` has no meaning.
        """
        _check.flag(integers, "integers")
        return math.ceil(Fraction(math.floor(_rational.fraction(distance, "distance")), self.records))


@_relation_doc
@dataclass(frozen=True, repr=False)
class ReplaceOne(_Records):
    """Two data sets are neighbors if one record is replaced by any other; the number of records is public.

    In the local model a data set is the one record of a user, so that any two inputs are neighbors.

    Parameters
    ----------
    records : int
        How many records may be replaced: more than one for the privacy of groups.

    {records}

    Examples
    --------
    >>> from quincunx.privacy import ReplaceOne
    >>> ReplaceOne()
    ReplaceOne()
    >>> ReplaceOne(2).chain(5)
    3
    """


@_relation_doc
@dataclass(frozen=True, repr=False)
class AddRemove(_Records):
    """Two data sets are neighbors if one record is added or removed.

    Parameters
    ----------
    records : int
        How many records may come or go: more than one for the privacy of groups.

    {records}

    Examples
    --------
    >>> from quincunx.privacy import AddRemove, ReplaceOne
    >>> AddRemove() == ReplaceOne()
    False
    """


@dataclass(frozen=True, repr=False)
class DataMetric:
    """Two data sets are neighbors if their distance is at most a radius.

    Parameters
    ----------
    metric : {"l1", "l2", "linf", "hamming"}
        The distance.
    radius : float
        The distance at which the guarantee's figures are stated, > 0.
    integers : bool
        Whether all data are whole numbers. Between two of them there is not a point at every distance, so that fewer
        distances can be reached in steps. Mechanisms for whole numbers know it by themselves.

    Raises
    ------
    ValueError, TypeError
        If the metric has another name or the radius is not positive and finite.

    Examples
    --------
    >>> from quincunx.privacy import DataMetric
    >>> DataMetric("l1", 3)
    DataMetric(metric='l1', radius=3)
    >>> DataMetric("l1", 1.5).chain(3), DataMetric("l1", 1.5, integers=True).chain(3)
    (2, 3)
    """

    metric: str
    radius: float = 1
    integers: bool = False

    def __post_init__(self) -> None:
        _check.one_of(self.metric, "metric", METRICS)
        radius = _check.real(self.radius, "radius", positive=True)
        object.__setattr__(self, "radius", int(radius) if radius.is_integer() else radius)
        object.__setattr__(self, "integers", _check.flag(self.integers, "integers"))

    def __repr__(self) -> str:
        whole = ", integers=True" if self.integers else ""
        return f"DataMetric(metric={self.metric!r}, radius={self.radius}{whole})"

    def chain(self, distance: float, *, integers: bool = False) -> int | None:
        """Return how many steps of at most the radius join any two data sets at a distance.

        Parameters
        ----------
        distance : float
            The distance, >= 0.
        integers : bool
            Whether the data are whole numbers.

        Returns
        -------
        int or None
            ``ceil(distance / radius)`` for real data; for whole numbers the same of distance and radius rounded down;
            None where no number of steps is enough for all of them: whole numbers in several coordinates under "l2",
            or a radius below 1.
        """
        far, near = _rational.fraction(distance, "distance"), Fraction(self.radius)
        if _check.flag(integers, "integers") or self.integers or self.metric == "hamming":
            if self.metric == "l2":
                return 1 if far <= near else None
            far, near = Fraction(math.floor(far)), Fraction(math.floor(near))
            if not near:
                return None if far else 0
        return math.ceil(far / near)


Relation: TypeAlias = ReplaceOne | AddRemove | DataMetric
#: One record that comes or goes: the one relation that tells the directions of a pair of laws apart.
ONE_RECORD = AddRemove()


def check(value: object, name: str = "relation") -> Relation:
    """Return a relation, or raise."""
    if not isinstance(value, (ReplaceOne, AddRemove, DataMetric)):
        raise TypeError(f"`{name}` must be ReplaceOne(), AddRemove() or DataMetric(...), got {value!r}")
    return value


def moved(relation: Relation, distance: float) -> int | None:
    """Return how many entries of an array can differ at a distance, each by any amount or by a whole number.

    None where no number is enough. Of whole numbers and categories at an L1 distance d at most d differ, at an L2
    distance at most d**2.
    """
    if isinstance(relation, ReplaceOne):
        return math.floor(distance)
    if isinstance(relation, DataMetric) and relation.metric in ("hamming", "l1", "l2"):
        return whole_steps(distance, relation.metric)
    return None


def whole_steps(distance: float, metric: str) -> int:
    """Return the largest L1 distance of arrays of whole numbers at a distance: their L2 distance squared at most.

    The float nearest to the root of a whole number stands for it, also where it lies below.
    """
    if metric != "l2":
        return math.floor(distance)
    return math.floor(Fraction(min(math.nextafter(distance, math.inf), sys.float_info.max)) ** 2)
