"""Groups of users: what they told, and how the core makes their likelihood of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _core
from quincunx._inference import Floats

#: Groups of one user each, and which of them each user is.
Users = tuple[Sequence["Part"], npt.NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class Part:
    """Users whose values have one noise; its fields are the arguments of the core's constructor, in order."""

    constructor: ClassVar[str]

    @property
    def offset(self) -> float:
        """What the log-likelihood is beyond that of the core: a constant."""
        return 0.0

    def values(self) -> tuple[Any, ...]:
        """Return the fields, as a file holds them."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def core(self) -> _core.LdpLikelihood:
        """Return the likelihood."""
        return getattr(_core.LdpLikelihood, self.constructor)(*self.values())  # type: ignore[no-any-return]

    def each(self, told: Any) -> Users:
        """Return what users told, each thing once, and which of them each user told; `told` are codes, if any.

        Raises
        ------
        ValueError
            If the part is a sum over users.
        """
        raise ValueError("`released` must be what each user told: a sum over users has no likelihood of one of them")


class _Numbers(Part):
    """A number of each user."""

    numbers: Floats

    def each(self, told: Any) -> Users:
        values, index = np.unique(self.numbers, return_inverse=True)
        one: list[Part] = [replace(self, **{"numbers": values[i : i + 1]}) for i in range(len(values))]
        return one, index.reshape(-1)


@dataclass(frozen=True, eq=False)
class Plain(_Numbers):
    """Numbers without noise."""

    constructor = "plain"
    family: str
    numbers: Floats


@dataclass(frozen=True, eq=False)
class Rectified(_Numbers):
    """Real numbers, clipped and told with Laplace noise."""

    constructor = "rectified"
    family: str
    numbers: Floats
    bounds: tuple[float, float]
    scale: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Whole(_Numbers):
    """Whole numbers, clipped and told with two-sided geometric or Laplace noise."""

    constructor = "whole"
    family: str
    noise: str
    decay: float
    bounds: tuple[int, int]
    numbers: Floats
    exact: bool


@dataclass(frozen=True, eq=False)
class Tractable(_Numbers):
    """Numbers of the tractable family, clipped and told with normal noise."""

    constructor = "tractable"
    numbers: Floats
    g: Sequence[float]
    interval: tuple[float, float]
    clip: tuple[float, float]
    sd: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Bits(Part):
    """Numbers of zeros and ones, told truly with a probability."""

    constructor = "bits"
    zeros: float
    ones: float
    keep: float

    def each(self, told: Any) -> Users:
        bits = np.asarray(told).reshape(-1)
        return [Bits(1.0, 0.0, self.keep), Bits(0.0, 1.0, self.keep)], bits.astype(np.intp)


class Shares(Part):
    """What users told of categories; the labels of these, where they have any, are the last field."""

    labels: Sequence[Any] | None

    def core(self) -> _core.LdpLikelihood:
        return getattr(_core.LdpLikelihood, self.constructor)(*self.values()[:-1])  # type: ignore[no-any-return]

    @property
    def categories(self) -> int:
        """Their number."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Categories(Shares):
    """How often each category was told: truly with a probability, else any other."""

    constructor = "categories"
    counts: Sequence[float]
    keep: float
    other: float
    labels: Sequence[Any] | None = None

    @property
    def categories(self) -> int:
        """Their number."""
        return len(self.counts)

    def each(self, told: Any) -> Users:
        one = [replace(self, counts=[float(count) for count in row]) for row in np.eye(self.categories)]
        return one, np.asarray(told).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Rows(Shares):
    """Rows of bits from unary encoding, and how often each occurs."""

    constructor = "rows"
    rows: npt.NDArray[np.uint8]
    weights: Floats | None
    p: float
    q: float
    labels: Sequence[Any] | None = None

    @property
    def categories(self) -> int:
        """Their number."""
        return int(self.rows.shape[1])

    def each(self, told: Any) -> Users:
        patterns, index = np.unique(self.rows, axis=0, return_inverse=True)
        index = index.reshape(-1)
        if self.weights is not None:
            index = np.repeat(index, self.weights.astype(np.intp))
        return [replace(self, rows=patterns[i : i + 1], weights=None) for i in range(len(patterns))], index


@dataclass(frozen=True, eq=False)
class ColumnSums(Shares):
    """Sums over the rows of users."""

    constructor = "column_sums"
    sums: Sequence[float]
    users: float
    p: float
    q: float
    labels: Sequence[Any] | None = None

    @property
    def categories(self) -> int:
        """Their number."""
        return len(self.sums)


@dataclass(frozen=True, eq=False)
class LinearInputs(Part):
    """The scatter matrix of noisy (x, y), and the variances of the noise on each coordinate."""

    constructor = "linear_inputs"
    scatter: Floats
    users: float
    noise: Sequence[float]

    @property
    def features(self) -> int:
        """The length of x."""
        return len(self.scatter) - 1


@dataclass(frozen=True, eq=False)
class LogisticInputs(Part):
    """Noisy x, the variances of its noise, and labels that are told truly with a probability."""

    constructor = "logistic_inputs"
    x: Floats
    y: Floats
    noise: Sequence[float]
    keep: float

    @property
    def features(self) -> int:
        """The length of x."""
        return int(self.x.shape[1])


@dataclass(frozen=True, eq=False)
class LinearStatistics(Part):
    """The sum of noisy second moments as a matrix, in the units that make their noise that of the ratios."""

    constructor = "linear_statistics"
    total: Floats
    users: float
    noise: float
    ratios: tuple[float, float]
    log_jacobian: float = 0.0

    @property
    def offset(self) -> float:
        return self.log_jacobian

    def core(self) -> _core.LdpLikelihood:
        return _core.LdpLikelihood.linear_statistics(self.total, self.users, self.noise, self.ratios)

    @property
    def features(self) -> int:
        """The length of x."""
        return len(self.total) - 1


@dataclass(frozen=True, eq=False)
class LogisticStatistics(Part):
    """The sums of noisy y x and x x', in the units that make their noise that of the ratio."""

    constructor = "logistic_statistics"
    first: Floats
    second: Floats
    users: float
    noise: Sequence[float]
    log_jacobian: float = 0.0

    @property
    def offset(self) -> float:
        return self.log_jacobian

    def core(self) -> _core.LdpLikelihood:
        return _core.LdpLikelihood.logistic_statistics(self.first, self.second, self.users, list(self.noise))

    @property
    def features(self) -> int:
        """The length of x."""
        return len(self.first)


PARTS: dict[str, type[Part]] = {
    part.constructor: part
    for part in (
        Plain,
        Rectified,
        Whole,
        Tractable,
        Bits,
        Categories,
        Rows,
        ColumnSums,
        LinearInputs,
        LogisticInputs,
        LinearStatistics,
        LogisticStatistics,
    )
}


def likelihood(parts: Sequence[Part], parameters: int) -> _core.LdpLikelihood:
    """Return the likelihood of all groups, but for their offsets."""
    made = [part.core() for part in parts]
    return made[0] if len(made) == 1 else _core.LdpLikelihood.sum(made, parameters)
