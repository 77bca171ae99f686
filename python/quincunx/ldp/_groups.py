"""Groups of users whose values have one noise: what they released, and how the core makes their likelihood of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias, dataclass_transform

import numpy as np
import numpy.typing as npt

from quincunx._core import LdpLikelihood
from quincunx._inference import Floats

#: Groups of one user each, and which of them each user is.
Users: TypeAlias = "tuple[Sequence[Group], npt.NDArray[np.intp]]"

#: The groups by name, as files hold them.
KINDS: dict[str, type[Group]] = {}


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, eq=False)
class Group:
    """Users whose values have one noise: a frozen dataclass, as every class derived from it is made to be."""

    kind: ClassVar[str]
    #: What the log-likelihood is beyond that of the core: a constant.
    offset: float = field(default=0.0, kw_only=True)

    def __init_subclass__(cls, kind: str = "") -> None:
        dataclass(frozen=True, eq=False)(cls)
        if kind:
            cls.kind, KINDS[kind] = kind, cls

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(map(_equal, vars(self).values(), vars(other).values()))

    def likelihood(self) -> LdpLikelihood:
        """Return the core's likelihood, but for the offset."""
        raise NotImplementedError

    def each(self, codes: npt.ArrayLike) -> Users:
        """Return what users released, each thing once, and which of them is each user's; `codes` are of categories.

        Raises
        ------
        ValueError
            If the group is a sum over users.
        """
        raise ValueError("`released` must be what each user released: a sum over users has no likelihood of one")


def _equal(one: object, other: object) -> bool:
    arrays = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.array_equal(one, other) if arrays else one == other  # type: ignore[arg-type]


class Numbers(Group):
    """A number of each user."""

    numbers: Floats

    def each(self, codes: npt.ArrayLike) -> Users:
        values, index = np.unique(self.numbers, return_inverse=True)
        return [replace(self, numbers=values[i : i + 1]) for i in range(len(values))], index.reshape(-1)


class Plain(Numbers, kind="plain"):
    """Numbers without noise."""

    family: str

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.plain(self.family, self.numbers)


class Rectified(Numbers, kind="rectified"):
    """Real numbers, clipped and released with Laplace noise."""

    family: str
    bounds: tuple[float, float]
    scale: float
    exact: bool

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.rectified(self.family, self.numbers, self.bounds, self.scale, self.exact)


class Whole(Numbers, kind="whole"):
    """Whole numbers, clipped and released with two-sided geometric or Laplace noise."""

    family: str
    noise: str
    decay: float
    bounds: tuple[int, int]
    exact: bool

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.whole(self.family, self.noise, self.decay, self.bounds, self.numbers, self.exact)


class Tractable(Numbers, kind="tractable"):
    """Numbers of the tractable family, clipped and released with normal noise."""

    g: tuple[float, ...]
    interval: tuple[float, float]
    clip: tuple[float, float]
    sd: float
    exact: bool

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.tractable(self.numbers, list(self.g), self.interval, self.clip, self.sd, self.exact)


class Bits(Group, kind="bits"):
    """Numbers of zeros and ones, released truly with a probability."""

    zeros: float
    ones: float
    keep: float

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.bits(self.zeros, self.ones, self.keep)

    def each(self, codes: npt.ArrayLike) -> Users:
        return [Bits(1.0, 0.0, self.keep), Bits(0.0, 1.0, self.keep)], np.asarray(codes).reshape(-1).astype(np.intp)


class Shares(Group):
    """What users released of categories, and the labels of these where they have any."""

    labels: tuple[object, ...] | None = field(default=None, kw_only=True)

    @property
    def size(self) -> int:
        """The number of categories."""
        raise NotImplementedError


class Categories(Shares, kind="categories"):
    """How often each category was released: truly with a probability, else any other."""

    counts: tuple[float, ...]
    keep: float
    other: float

    @property
    def size(self) -> int:
        return len(self.counts)

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.categories(list(self.counts), self.keep, self.other)

    def each(self, codes: npt.ArrayLike) -> Users:
        one = [replace(self, counts=tuple(row.tolist())) for row in np.eye(self.size)]
        return one, np.asarray(codes).astype(np.intp)


class Rows(Shares, kind="rows"):
    """Rows of bits from unary encoding, and how often each occurs."""

    rows: npt.NDArray[np.uint8]
    weights: Floats | None
    p: float
    q: float

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.rows(self.rows, self.weights, self.p, self.q)

    def each(self, codes: npt.ArrayLike) -> Users:
        patterns, index = np.unique(self.rows, axis=0, return_inverse=True)
        index = index.reshape(-1)
        if self.weights is not None:
            index = np.repeat(index, self.weights.astype(np.intp))
        return [replace(self, rows=patterns[i : i + 1], weights=None) for i in range(len(patterns))], index


class ColumnSums(Shares, kind="column_sums"):
    """Sums over the rows of users."""

    sums: tuple[float, ...]
    users: float
    p: float
    q: float

    @property
    def size(self) -> int:
        return len(self.sums)

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.column_sums(list(self.sums), self.users, self.p, self.q)


class Records(Group):
    """Noisy records (x, y), or their moments."""

    @property
    def features(self) -> int:
        """The length of x."""
        raise NotImplementedError


class LinearMoments(Records):
    """The matrix of the second moments of (x, y), a sum over users."""

    moments: Floats
    users: float

    @property
    def features(self) -> int:
        return len(self.moments) - 1


class LinearInputs(LinearMoments, kind="linear_inputs"):
    """Noisy (x, y), and the variances of the noise on each coordinate."""

    noise: tuple[float, ...]

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.linear_inputs(self.moments, self.users, list(self.noise))


class LinearStatistics(LinearMoments, kind="linear_statistics"):
    """Noisy second moments, in the units that make their noise that of the ratios."""

    noise: float
    ratios: tuple[float, float]

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.linear_statistics(self.moments, self.users, self.noise, self.ratios)


class LogisticInputs(Records, kind="logistic_inputs"):
    """Noisy x, the variances of its noise, and labels that are released truly with a probability."""

    x: Floats
    y: Floats
    noise: tuple[float, ...]
    keep: float

    @property
    def features(self) -> int:
        return int(self.x.shape[1])

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.logistic_inputs(self.x, self.y, list(self.noise), self.keep)


class LogisticStatistics(Records, kind="logistic_statistics"):
    """The sums of noisy y x and x x', in the units that make their noise that of the ratio."""

    first: Floats
    second: Floats
    users: float
    noise: tuple[float, ...]

    @property
    def features(self) -> int:
        return len(self.first)

    def likelihood(self) -> LdpLikelihood:
        return LdpLikelihood.logistic_statistics(self.first, self.second, self.users, list(self.noise))


def likelihood(groups: Sequence[Group], parameters: int) -> LdpLikelihood:
    """Return the likelihood of all groups, but for their offsets."""
    made = [group.likelihood() for group in groups]
    return made[0] if len(made) == 1 else LdpLikelihood.sum(made, parameters)
