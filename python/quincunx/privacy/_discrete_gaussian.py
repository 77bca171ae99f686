"""Discrete Gaussian noise on whole numbers: its law, its privacy curve and the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Floats
from quincunx.privacy import _rational, _relations
from quincunx.privacy._calibration import gaussian_sigma
from quincunx.privacy._curves import Curve, Pair
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import Accuracy, WholeNoise, whole_bounds
from quincunx.privacy._mechanism import Mechanism, mechanism_doc
from quincunx.privacy._privacy_map import Declared, PerEntry, PrivacyMap, Shift
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne, whole_steps
from quincunx.privacy._release import Release, with_noise

#: Of discrete Gaussian noise, whose masses are summed one by one to twelve deviations: 1.6 million of them.
LARGEST_VARIANCE = 2.0**34
#: Of what is drawn; with the least one P(no noise) > 1 - 1e-100.
LARGEST_DRAWN, LEAST_DRAWN = 10**10, Fraction(2098, 2**20)


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest zero-concentrated level that is (epsilon, delta)-private, from below."""
    below, above = 0.0, 1.0
    while _core.zcdp_epsilon(above, delta) <= epsilon:
        below, above = above, 2 * above
    for _ in range(200):
        middle = (below + above) / 2
        if not below < middle < above:
            break
        below, above = (middle, above) if _core.zcdp_epsilon(middle, delta) <= epsilon else (below, middle)
    if not below > 0:
        raise ValueError(f"`epsilon` must leave a level that floats hold at delta {delta}, got {epsilon}")
    return below


def variance_for(rho: Fraction, squared: int) -> Fraction:
    """Return the variance of noise whose level is at most rho at the square of a Euclidean shift of whole numbers."""
    found = max(Fraction(math.ceil(squared / (2 * rho) * 2**20), 2**20), LEAST_DRAWN)
    if found > LARGEST_DRAWN:
        raise ValueError(
            f"`epsilon` must need noise of a variance of at most 1e10, got one that needs {float(found):g}"
        )
    return found


@lru_cache(maxsize=64)
def _least(variance: float, confidence: float) -> int:
    """Return the least k with ``P(abs(noise) <= k)`` at least a confidence, or one more where doubles cannot tell."""
    span = math.ceil(12 * math.sqrt(variance)) + 40  # beyond are less than 1e-31
    mass = np.exp(-(np.arange(1.0, span + 1) ** 2) / (2 * variance))
    beyond = 2 * np.cumsum(mass[::-1])[::-1]  # entry k: more than k
    rest = float(1 - Fraction(confidence)) * (1 + beyond[0]) * (1 - (span + 64) * 2.0**-52)
    return int(np.argmax(np.append(beyond, 0.0) <= rest))


@dataclass(frozen=True, eq=False)
class DiscreteGaussianNoise(WholeNoise):
    """Discrete Gaussian noise: ``P(z | x)`` proportional to ``exp(-(z - x)**2 / (2 variance))``.

    Parameters
    ----------
    variance : float
        The parameter, > 0; a little above the law's variance where it is small.
    lower, upper : int, optional
        Bounds to which each number is clipped.

    Notes
    -----
    The accuracy is the least whole number, or one more where both agree to 1e-10 or better.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.DiscreteGaussianNoise(4.0).log_likelihood(3, 3)), 6)
    -1.612086
    """

    variance: float
    lower: int | None = None
    upper: int | None = None
    kind = "discrete-gaussian"

    def __post_init__(self) -> None:
        if not _check.real(self.variance, "variance", positive=True) <= LARGEST_VARIANCE:
            raise ValueError(f"`variance` must be at most 2**34, got {self.variance}")
        self._set(variance=float(self.variance))

    @cached_property
    def _log_whole(self) -> float:
        """Logarithm of the sum of exp(-k^2 / (2 variance)) over all whole k: by itself, or as Poisson's dual sum."""
        variance = self.variance
        if variance > 1:
            dual = 2 * sum(math.exp(-2 * math.pi**2 * variance * k * k) for k in range(1, 4))
            return 0.5 * math.log(2 * math.pi * variance) + math.log1p(dual)
        return math.log1p(2 * sum(math.exp(-k * k / (2 * variance)) for k in range(1, 12)))

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        distance = self._differences(z, x)
        return np.asarray(-0.5 * distance * distance / self.variance - self._log_whole)

    def _accuracy(self, confidence: float) -> Accuracy:
        return _least(self.variance, confidence)


@dataclass(frozen=True)
class DiscreteGaussian(Curve):
    """Discrete Gaussian noise, shifted by a whole number; `squared` is the square of the Euclidean shift of a vector.

    A vector shift is dominated by the scalar shift of its L1 norm, and integers have an L1 norm of at most the square
    of their Euclidean one.
    """

    variance: Fraction
    shift: int
    squared: Fraction
    kind: ClassVar[str] = "discrete-gaussian"
    concentrated: ClassVar[bool] = True

    @property
    def rho(self) -> Fraction:
        return self.squared / (2 * self.variance)

    def pairs(self, *, removed: bool = False) -> list[Pair]:
        return [("discrete-gaussian", [float(self.variance), float(self.shift)])] if self.shift else []

    def group(self, steps: Fraction | int) -> DiscreteGaussian:
        squared = steps**2 * self.squared
        shift = math.floor(steps * self.shift)
        if self.squared != self.shift**2:
            shift = min(shift, math.floor(squared))
        return DiscreteGaussian(self.variance, shift, squared)

    def along(self, steps: Fraction | int, metric: str) -> DiscreteGaussian:
        # At an L2 distance the steps are the square of the Euclidean shift, which its L1 shift is at most.
        return DiscreteGaussian(self.variance, int(steps), Fraction(steps)) if metric == "l2" else self.group(steps)

    def repeated(self, copies: int) -> tuple[Curve, int]:
        return DiscreteGaussian(self.variance, copies * self.shift, copies * self.squared), 1

    def delta_at(self, epsilon: float) -> float:
        if not self.shift:
            return 0.0
        by_profile = 1.0
        if self.shift <= 2**40:
            by_profile = _core.discrete_gaussian_delta(epsilon, float(self.variance), self.shift)
        return min(by_profile, _core.zcdp_delta(_rational.upwards(self.rho), epsilon))

    def epsilon_at(self, delta: float) -> float:
        if self.delta_at(0.0) <= delta:
            return 0.0
        if not delta:
            return math.inf
        below, above = 0.0, max(_core.zcdp_epsilon(_rational.upwards(self.rho), delta), 1e-300)
        for _ in range(100):
            if above - below <= 1e-12 * above:
                break
            middle = (below + above) / 2
            below, above = (below, middle) if self.delta_at(middle) <= delta else (middle, above)
        return above

    def renyi(self, order: float, *, removed: bool = False) -> float:
        return _rational.upwards(self.rho * Fraction(order))


@mechanism_doc
class DiscreteGaussianMechanism(Mechanism):
    """Discrete Gaussian noise on whole numbers: ``P(z | x)`` proportional to ``exp(-(z - x)**2 / (2 variance))``.

    Parameters
    ----------
    epsilon : float, optional
        Privacy level, >= 0. Not given together with `variance`.
    delta : float
        In (0, 1).
    sensitivity : float, optional
        Largest distance between the arrays of two neighbors, in the norm `norm`, >= 1. Without it and without bounds
        the array is the data, and `relation` a ``DataMetric("l1")`` or ``DataMetric("l2")``.
    lower, upper : int, optional
        Instead: bounds to which each number is clipped, each being a record.
    variance : float, optional
        Instead of `epsilon`: the parameter, above 1e-3 and at most 1e10; used as the next larger fraction of
        denominator 2**20.
    norm : {"l1", "l2"}, optional
        What `sensitivity` measures; "l2" with ``DataMetric("l2")``, else "l1". For one number they are the same.
    relation : ReplaceOne, AddRemove or DataMetric, optional
        Which neighbors it is about: with bounds or `sensitivity`, `ReplaceOne` unless another is given; else, where
        `variance` is given, ``DataMetric("l1", 1)``.

    Attributes
    ----------
    variance : float
        The parameter actually used. It is a little above the law's variance where it is small.
    guarantee : PrivacyGuarantee
        With ``zcdp = sensitivity**2 / (2 variance)``.

    {domain}
    NoGuarantee
        If nothing is proved for this use and relation.

    Notes
    -----
    About 130 ns a number. The profile of one number does not carry over to vectors at the same Euclidean distance (at
    variance .3 and distance 2 it claims .138 where (1, 1, 1, 1) has .294). A vector of whole numbers is dominated by
    one number at its L1 distance, and that is at most the square of the Euclidean one; the lesser of this profile and
    the bound from the zero-concentrated level is used.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.

    Examples
    --------
    >>> from quincunx.privacy import DiscreteGaussianMechanism
    >>> mechanism = DiscreteGaussianMechanism(variance=16, delta=1e-6)
    >>> round(mechanism.epsilon, 6), mechanism.guarantee.zcdp
    (1.063436, 0.03125)
    >>> DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1).release([5, 7]).shape
    (2,)
    >>> DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=3, norm="l2").guarantee.zcdp < 0.05
    True
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        sensitivity: float | None = None,
        lower: int | None = None,
        upper: int | None = None,
        variance: float | None = None,
        norm: str | None = None,
        relation: Relation | None = None,
    ) -> None:
        if (epsilon is None) == (variance is None):
            raise TypeError("exactly one of `epsilon` and `variance` must be given")
        self.lower, self.upper = whole_bounds(lower, upper)
        if (self.lower is None) != (self.upper is None):
            raise TypeError("`lower` and `upper` must be given together")
        if self.lower is not None and sensitivity is not None:
            raise TypeError("`sensitivity` must not be given beside `lower` and `upper`")
        records = self.lower is not None or sensitivity is not None
        if relation is None and not records and variance is None:
            raise TypeError("`epsilon` needs `sensitivity`, `lower` and `upper`, or a DataMetric as `relation`")
        self.relation = _relations.check(relation or (ReplaceOne() if records else DataMetric("l1", 1)))
        metric = self.relation.metric if isinstance(self.relation, DataMetric) else ""
        self.norm = _check.one_of(norm or ("l2" if metric == "l2" else "l1"), "norm", ("l1", "l2"))
        self.sensitivity = None if sensitivity is None else _check.real(sensitivity, "sensitivity", positive=True)
        if self.sensitivity is not None and self.norm == "l1":
            self.sensitivity = _check.whole(sensitivity, "sensitivity", minimum=1)
        level = _check.open_probability(delta, "delta")
        unit = self._curve(Fraction(1))
        if not unit.shift:
            if self.sensitivity is not None:
                raise ValueError(f"`sensitivity` must be at least 1, got {self.sensitivity}")
            raise ValueError(f"`relation` must have a radius of at least 1 for whole numbers, got {self.relation}")
        if unit.shift > 2**40:
            raise ValueError(f"neighbors must lie within an L1 distance of 2**40, got {unit.shift}")
        found: float | None = None
        if variance is not None:
            given = _check.real(variance, "variance", positive=True)
            if not 1e-3 < given <= 1e10:
                raise ValueError(f"`variance` must be above 1e-3 and at most 1e10, got {given}")
            self._variance = Fraction(math.ceil(Fraction(given) * 2**20), 2**20)
        else:
            found = _check.nonnegative(epsilon, "epsilon")
            self._variance = self._least_variance(found, level)
        self.guarantee = guarantee_of(self._privacy_map(self._variance), self.relation, level, epsilon=found)

    def _privacy_map(self, variance: Fraction) -> PrivacyMap:
        """Return what noise of a variance gives away."""
        if self.lower is not None and self.upper is not None:
            return PerEntry(DiscreteGaussian(variance, 1, Fraction(1)).group(self.upper - self.lower), True)
        unit = DiscreteGaussian(variance, 1, Fraction(1))
        if self.sensitivity is None:
            metric = self.relation.metric if isinstance(self.relation, DataMetric) else "l1"
            return Shift(unit, metric if metric == "l2" else "l1", True)
        curve = unit.along(whole_steps(self.sensitivity, self.norm), self.norm)
        words = f"declared to move the array by at most {self.sensitivity:g} in the {self.norm} distance"
        return Declared(curve, self.relation, words, whole=True)

    def _curve(self, variance: Fraction) -> DiscreteGaussian:
        curve, _ = self._privacy_map(variance).at(self.relation)
        assert isinstance(curve, DiscreteGaussian)
        return curve

    def _least_variance(self, epsilon: float, delta: float) -> Fraction:
        """Bisect on the variance's fractions; the profile has small steps there, so this is a least one nearby."""
        below = LEAST_DRAWN
        euclid = math.sqrt(self._curve(Fraction(1)).squared)
        above = max(Fraction(math.ceil(gaussian_sigma(epsilon, delta, euclid) ** 2 * 2**20), 2**20), 2 * below)
        while above <= LARGEST_DRAWN and self._curve(above).delta_at(epsilon) > delta:
            above *= 2
        if above > LARGEST_DRAWN:
            raise ValueError(f"`epsilon` must need a variance of at most 1e10, got {epsilon} at delta {delta}")
        while above - below > max(Fraction(1, 2**20), above / 10**9):
            middle = Fraction(math.ceil((below + above) * 2**19), 2**20)
            if middle >= above:
                break
            fits = self._curve(middle).delta_at(epsilon) <= delta
            below, above = (below, middle) if fits else (middle, above)
        return above

    @property
    def variance(self) -> float:
        """The parameter actually used."""
        return float(self._variance)

    @cached_property
    def noise(self) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise(self.variance, self.lower, self.upper)

    @cached_property
    def _sampler(self) -> _core.WholeSampler:
        return _core.WholeSampler.discrete_gaussian(self._variance.numerator, self._variance.denominator)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to whole numbers.

        {whole_numbers}
        """
        numbers = _check.narrow_counts(x, "x", minimum=None)
        return self._published(with_noise(self._sampler, numbers, self.noise.bounds, insecure_seed), x, insecure_seed)

    def __repr__(self) -> str:
        bound = "" if self.lower is None else f", lower={self.lower}, upper={self.upper}"
        bound += "" if self.sensitivity is None else f", sensitivity={self.sensitivity}"
        about = "" if bound and self.relation == ReplaceOne() else f", relation={self.relation}"
        return f"DiscreteGaussianMechanism({self.epsilon}, {self.delta}, variance={self.variance}{bound}{about})"
