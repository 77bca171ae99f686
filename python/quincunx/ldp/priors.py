"""Laws of parameters before the data: small immutable objects, given to a model as `priors={"mu": Normal(0, 2)}`."""

from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np

from quincunx import _check
from quincunx._rng import generator

__all__ = ["LKJ", "Beta", "Dirichlet", "Gamma", "HalfNormal", "Normal"]


@dataclass(frozen=True)
class _Prior:
    kind: ClassVar[str]
    positive: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _check.real(getattr(self, field.name), field.name, positive=field.name in self.positive)
            object.__setattr__(self, field.name, value)

    @property
    def numbers(self) -> list[float]:
        """The parameters in order."""
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True)
class Normal(_Prior):
    """A normal law.

    Parameters
    ----------
    mean : float
        Its mean.
    sd : float
        Its standard deviation, > 0.

    Examples
    --------
    >>> from quincunx.ldp.priors import Normal
    >>> Normal(0, 2)
    Normal(mean=0.0, sd=2.0)
    """

    kind: ClassVar[str] = "normal"
    positive: ClassVar[tuple[str, ...]] = ("sd",)
    mean: float = 0.0
    sd: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(generator(rng).normal(self.mean, self.sd))


@dataclass(frozen=True)
class HalfNormal(_Prior):
    """The law of the absolute value of a centred normal variable.

    Parameters
    ----------
    sd : float
        The standard deviation of that variable, > 0.
    """

    kind: ClassVar[str] = "half-normal"
    positive: ClassVar[tuple[str, ...]] = ("sd",)
    sd: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(abs(generator(rng).normal(0, self.sd)))


@dataclass(frozen=True)
class Gamma(_Prior):
    """A gamma law of mean shape/rate.

    Parameters
    ----------
    shape, rate : float
        Both > 0.
    """

    kind: ClassVar[str] = "gamma"
    positive: ClassVar[tuple[str, ...]] = ("shape", "rate")
    shape: float = 2.0
    rate: float = 2.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(generator(rng).gamma(self.shape, 1 / self.rate))


@dataclass(frozen=True)
class Beta(_Prior):
    """A beta law on the unit interval.

    Parameters
    ----------
    a, b : float
        Both > 0.
    """

    kind: ClassVar[str] = "beta"
    positive: ClassVar[tuple[str, ...]] = ("a", "b")
    a: float = 1.0
    b: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(generator(rng).beta(self.a, self.b))


@dataclass(frozen=True)
class Dirichlet(_Prior):
    """A symmetric Dirichlet law of probabilities.

    Parameters
    ----------
    a : float
        The concentration of each category, > 0.
    """

    kind: ClassVar[str] = "dirichlet"
    positive: ClassVar[tuple[str, ...]] = ("a",)
    a: float = 1.0


@dataclass(frozen=True)
class LKJ(_Prior):
    """The law of correlation matrices with density proportional to ``det**(eta - 1)``.

    Parameters
    ----------
    eta : float
        1 is uniform; > 0.
    """

    kind: ClassVar[str] = "lkj"
    positive: ClassVar[tuple[str, ...]] = ("eta",)
    eta: float = 2.0


Prior: TypeAlias = Normal | HalfNormal | Gamma | Beta | Dirichlet | LKJ
#: The priors of scalars by name.
SCALARS: dict[str, type[Normal] | type[HalfNormal] | type[Gamma] | type[Beta]] = {
    prior.kind: prior for prior in (Normal, HalfNormal, Gamma, Beta)
}
