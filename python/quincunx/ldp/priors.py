"""Laws of parameters before the data: small immutable objects, given to a model as `priors={"mu": Normal(0, 2)}`."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from quincunx import _check, _tables
from quincunx._rng import generator

__all__ = ["LKJ", "Beta", "Dirichlet", "Gamma", "HalfNormal", "LogNormal", "Normal"]


@dataclass(frozen=True)
class _Prior:
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _check.real(getattr(self, field.name), field.name, positive=field.name != "mean")
            object.__setattr__(self, field.name, value)

    @property
    def numbers(self) -> list[float]:
        """The parameters in order."""
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def arguments(self) -> list[Any]:
        """What its class makes it of, as JSON can hold it."""
        return list(self.numbers)


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
    sd: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(abs(generator(rng).normal(0, self.sd)))


@dataclass(frozen=True)
class LogNormal(_Prior):
    """The law of a positive number whose logarithm is normal.

    Parameters
    ----------
    mean : float
        The mean of the logarithm.
    sd : float
        Its standard deviation, > 0.
    """

    kind: ClassVar[str] = "log-normal"
    mean: float = 0.0
    sd: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(generator(rng).lognormal(self.mean, self.sd))


@dataclass(frozen=True)
class Gamma(_Prior):
    """A gamma law of mean shape/rate.

    Parameters
    ----------
    shape, rate : float
        Both > 0.
    """

    kind: ClassVar[str] = "gamma"
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
    a: float = 1.0
    b: float = 1.0

    def sample(self, rng: np.random.Generator) -> float:
        """Return one draw."""
        return float(generator(rng).beta(self.a, self.b))


@dataclass(frozen=True)
class Dirichlet(_Prior):
    """A Dirichlet law of probabilities.

    Parameters
    ----------
    a : float or sequence of float
        The concentration of all categories, or that of each, > 0.

    Examples
    --------
    >>> from quincunx.ldp import HistogramModel
    >>> from quincunx.ldp.priors import Dirichlet
    >>> model = HistogramModel(priors={"theta": Dirichlet([4, 1, 1])}, categories=3, random_state=0)
    >>> model.fit([0, 0, 1]).posterior_mean_["theta"].round(6).tolist()  # Dirichlet(6, 2, 1)
    [0.666667, 0.222222, 0.111111]
    """

    kind: ClassVar[str] = "dirichlet"
    a: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        _check.fits(self.a, "a")
        if np.ndim(self.a) == 0:
            object.__setattr__(self, "a", _check.real(self.a, "a", positive=True))
            return
        if any(axis.labels is not None for axis in _tables.axes(self.a)):
            raise TypeError("`a` must have no labels, for it goes by the order of the categories: put it into theirs")
        found = _check.reals(self.a, "a")
        if found.ndim != 1 or not (found > 0).all():
            raise ValueError(f"`a` must be a positive number, or one for each category, got {self.a!r:.60}")
        object.__setattr__(self, "a", tuple(found.tolist()))

    @property
    def arguments(self) -> list[Any]:
        """What its class makes it of, as JSON can hold it."""
        return [list(self.a) if isinstance(self.a, tuple) else self.a]

    def concentrations(self, k: int) -> list[float]:
        """Return the concentration of each of k categories."""
        _check.room(8 * _check.whole(k, "k", minimum=1), "the concentrations")
        if not isinstance(self.a, tuple):
            return [self.a] * k
        if len(self.a) != k:
            raise ValueError(f"`a` must have a concentration for each of {k} categories, got {len(self.a)}")
        return list(self.a)


@dataclass(frozen=True)
class LKJ(_Prior):
    """The law of correlation matrices with density proportional to ``det**(eta - 1)``.

    Parameters
    ----------
    eta : float
        1 is uniform; > 0.
    """

    kind: ClassVar[str] = "lkj"
    eta: float = 2.0


Prior: TypeAlias = Normal | HalfNormal | LogNormal | Gamma | Beta | Dirichlet | LKJ
#: The priors of scalars by name.
SCALARS: dict[str, type[Normal] | type[HalfNormal] | type[LogNormal] | type[Gamma] | type[Beta]] = {
    prior.kind: prior for prior in (Normal, HalfNormal, LogNormal, Gamma, Beta)
}
