"""Which two data sets a guarantee compares: guarantees compose only within one relation."""

from dataclasses import dataclass
from typing import TypeAlias

from quincunx import _check

METRICS = ("l1", "l2", "linf", "hamming")


@dataclass(frozen=True)
class _Records:
    records: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _check.whole(self.records, "records", minimum=1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.records == 1 else self.records})"


@dataclass(frozen=True, repr=False)
class ReplaceOne(_Records):
    """Two data sets are neighbors if one record is replaced by any other; the number of records is public.

    In the local model a data set is the one record of a user, so that any two inputs are neighbors.

    Parameters
    ----------
    records : int
        How many records may be replaced: more than one for the privacy of groups.

    Raises
    ------
    ValueError, TypeError
        If `records` is not a whole number of at least 1.

    Examples
    --------
    >>> from quincunx.privacy import ReplaceOne
    >>> ReplaceOne()
    ReplaceOne()
    """


@dataclass(frozen=True, repr=False)
class AddRemove(_Records):
    """Two data sets are neighbors if one record is added or removed.

    Parameters
    ----------
    records : int
        How many records may come or go: more than one for the privacy of groups.

    Raises
    ------
    ValueError, TypeError
        If `records` is not a whole number of at least 1.

    Examples
    --------
    >>> from quincunx.privacy import AddRemove, ReplaceOne
    >>> AddRemove() == ReplaceOne()
    False
    """


@dataclass(frozen=True)
class DataMetric:
    """Two data sets are neighbors if their distance is at most a radius.

    The guarantee is linear in the distance d: the logarithm of a probability changes by at most ``epsilon d / radius``
    (and a probability beyond that by ``delta d / radius``), for every d and not only up to the radius.

    Parameters
    ----------
    metric : {"l1", "l2", "linf", "hamming"}
        The distance.
    radius : float
        The distance at which the guarantee's figures are stated, > 0.

    Raises
    ------
    ValueError
        If the metric has another name or the radius is not positive and finite.

    Examples
    --------
    >>> from quincunx.privacy import DataMetric
    >>> DataMetric("l1", 3)
    DataMetric(metric='l1', radius=3)
    """

    metric: str
    radius: float = 1

    def __post_init__(self) -> None:
        _check.one_of(self.metric, "metric", METRICS)
        radius = _check.real(self.radius, "radius", positive=True)
        object.__setattr__(self, "radius", int(radius) if radius.is_integer() else radius)


Relation: TypeAlias = ReplaceOne | AddRemove | DataMetric


def check(value: object, name: str = "relation") -> Relation:
    """Return a relation, or raise."""
    if not isinstance(value, (ReplaceOne, AddRemove, DataMetric)):
        raise TypeError(f"`{name}` must be ReplaceOne(), AddRemove() or DataMetric(...), got {value!r}")
    return value
