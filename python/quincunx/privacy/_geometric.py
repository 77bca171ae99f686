"""Two-sided geometric noise on whole numbers: its law, its privacy curve and the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._types import Array, Floats, Index
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Curve, Pair, tanh_level
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import Accuracy, Noise, WholeNoise, checked_exponent, each, read_only, whole_bounds
from quincunx.privacy._mechanism import Mechanism, mechanism_doc
from quincunx.privacy._privacy_map import Declared, PerEntry, PrivacyMap, Shift
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne
from quincunx.privacy._release import Release, with_noise


@lru_cache(maxsize=256)
def _least(alpha: float, exponent: Fraction | None, confidence: float) -> int:
    """Return the least k with ``P(abs(noise) <= k) = 1 - 2 alpha**(k + 1) / (1 + alpha)`` at least a confidence.

    That is ``k + 1 >= t`` for t = log(2 / ((1 + alpha) (1 - confidence))) / decay, which is no whole number: alpha is
    transcendental, or m / 2**e, where 2**e + m would have to divide a power of m. It has more than 60 digits behind the
    point here, of which ten are not trusted.
    """
    with localcontext(Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        decay = -Decimal(alpha).ln() if exponent is None else Decimal(exponent.numerator) / exponent.denominator
        ratio = Decimal(alpha) if exponent is None else (-decay).exp()
        rest = 1 - Fraction(confidence)
        steps = (2 * rest.denominator / (rest.numerator * (1 + ratio))).ln() / decay
        return max(int((steps + Decimal("1e-50")).to_integral_value(ROUND_CEILING)) - 1, 0)


@dataclass(frozen=True, eq=False)
class GeometricNoise(WholeNoise):
    """Two-sided geometric noise: ``P(z | x) = (1 - alpha) / (1 + alpha) alpha**abs(z - x)``.

    Parameters
    ----------
    alpha : float or array_like, optional
        The ratio, in (0, 1); an array has one for each value.
    lower, upper : int, optional
        Bounds to which each number is clipped.
    exponent : Fraction, optional
        ``-log(alpha)``, where that is a fraction.

    Examples
    --------
    >>> from quincunx.privacy import GeometricMechanism, noise
    >>> GeometricMechanism(alpha=0.5).noise == noise.GeometricNoise(0.5)
    True
    """

    alpha: Any = None
    lower: int | None = None
    upper: int | None = None
    exponent: Fraction | None = None
    kind = "geometric"

    def __post_init__(self) -> None:
        found = None if self.exponent is None else checked_exponent(self.exponent)
        if found is not None:
            alpha: Accuracy = math.exp(-found)
            given = alpha if self.alpha is None else _check.real(self.alpha, "alpha")
            if not math.isclose(alpha, given, rel_tol=1e-12, abs_tol=1e-300):
                raise ValueError(f"`alpha` must be exp(-exponent) = {alpha}, got {self.alpha}")
        else:
            alpha = _check.reals_where(self.alpha, "alpha", "in (0, 1)", lambda a: (a > 0) & (a < 1))
            alpha = read_only(alpha) if alpha.ndim else float(alpha)
        self._set(alpha=alpha, exponent=found)

    @property
    def decay(self) -> Accuracy:
        """The privacy loss per unit of distance, ``-log(alpha)``."""
        if self.exponent is not None:
            return float(self.exponent)
        # Near one the distance from it is the accurate figure, near zero the ratio itself.
        found = np.where(np.greater(self.alpha, 0.5), -np.log1p(np.maximum(self.alpha, 0.5) - 1), -np.log(self.alpha))
        return found if found.ndim else float(found)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        distance = np.abs(self._differences(z, x))
        return np.asarray(np.log(np.tanh(self.decay / 2)) - self.decay * distance)

    def _accuracy(self, confidence: float) -> Accuracy:
        ratios, index = np.unique(self.alpha, return_inverse=True)
        least = [_least(float(ratio), self.exponent, confidence) for ratio in ratios]
        return np.array(least, dtype=np.int64)[index].reshape(self.alpha.shape) if np.ndim(self.alpha) else least[0]

    def _picked(self, index: Index, shape: tuple[int, ...]) -> Noise:
        if np.ndim(self.alpha) == 0:
            return self
        return GeometricNoise(each(self.alpha, shape)[index], self.lower, self.upper)


@dataclass(frozen=True)
class Geometric(Curve):
    """Two-sided geometric noise of ratio ``exp(-decay)``, shifted by a whole number."""

    decay: Fraction
    shift: int
    kind: ClassVar[str] = "geometric"
    grows: ClassVar[bool] = True
    adds_by: ClassVar[str] = "l1"

    @property
    def pure(self) -> Fraction:
        return self.decay * self.shift

    @property
    def rho(self) -> Fraction:
        # The Kullback-Leibler divergence bounds D_a / a: d x - 2 a (1 - a^d) / (1 - a^2) x for x = decay, a = e^-x.
        # Its cancellation is of order x^2 d where that is small, so pure privacy's level is compared.
        x, d = _rational.upwards(self.decay), self.shift
        a = math.exp(-x)
        value = x * (d - 2 * a * -math.expm1(-d * x) / -math.expm1(-2 * x)) if x else 0.0
        return min(Fraction(max(value, 0.0) + 2.0**-48 * d * x), tanh_level(self.pure))

    def pairs(self, *, removed: bool = False) -> list[Pair]:
        return [("geometric", [_rational.upwards(self.decay), float(self.shift)])] if self.shift else []

    def group(self, steps: Fraction | int) -> Geometric:
        return Geometric(self.decay, math.floor(steps * self.shift))


@mechanism_doc
class GeometricMechanism(Mechanism):
    """Two-sided geometric noise on whole numbers: ``P(z | x) = (1 - alpha) / (1 + alpha) alpha**abs(z - x)``.

    Parameters
    ----------
    epsilon : float, optional
        Privacy level, > 0; needs `n`, or `lower` and `upper`.
    n : int, optional
        Limited precision: short for ``relation=DataMetric("l1", n)``, so that alpha = exp(-epsilon / n).
    sensitivity : int, optional
        Instead: the largest L1 distance between the arrays of two neighbors, >= 1; it says nothing of other distances.
    lower, upper : int, optional
        Bounds to which each number is clipped. Without `n` the guarantee is about any two numbers within them, and
        alpha = exp(-epsilon / (upper - lower)).
    alpha, epsilon_per_unit, scale : float, optional
        Instead of `epsilon`: the ratio in (0, 1), its ``-log(alpha)`` > 0, or ``-1/log(alpha)`` > 0.
    relation : ReplaceOne, AddRemove or DataMetric, optional
        Which neighbors it is about. With bounds each number is a record, with `sensitivity` the array is a value made
        of records: `ReplaceOne` unless another is given. Else the array is the data: ``DataMetric("l1", 1)``.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        About `relation`.
    alpha : float
        The ratio actually used. ``-log(alpha)`` is a fraction of 64-bit numbers (`exponent`), not above what was asked
        for: rounding goes towards more noise. A given `alpha` is used as it is.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain, or the noise is not given in exactly one form.
    NoGuarantee
        If nothing is proved for this use and relation.

    Notes
    -----
    About 30 ns a number. Numbers beyond 2**62 are clipped there.

    Examples
    --------
    >>> from quincunx.privacy import GeometricMechanism
    >>> mechanism = GeometricMechanism(1.0, lower=0, upper=5)
    >>> mechanism.exponent, mechanism.guarantee.epsilon
    (Fraction(1, 5), 1.0)
    >>> mechanism.release([0, 3, 5, 99]).shape
    (4,)
    >>> round(float(mechanism.log_likelihood(2, 3)), 12)
    -2.505910670352
    """

    def __init__(
        self,
        epsilon: float | None = None,
        *,
        n: int | None = None,
        lower: int | None = None,
        upper: int | None = None,
        alpha: float | None = None,
        epsilon_per_unit: float | None = None,
        scale: float | None = None,
        sensitivity: int | None = None,
        relation: Relation | None = None,
    ) -> None:
        given = {"epsilon": epsilon, "alpha": alpha, "epsilon_per_unit": epsilon_per_unit, "scale": scale}
        named = {name: _check.real(value, name, positive=True) for name, value in given.items() if value is not None}
        if len(named) != 1:
            raise TypeError(f"exactly one of {list(given)} must be given, got {list(named)}")
        self.n = None if n is None else _check.whole(n, "n", minimum=1)
        self.lower, self.upper = whole_bounds(lower, upper)
        self.sensitivity = None if sensitivity is None else _check.whole(sensitivity, "sensitivity", minimum=1)
        self.relation = self._about(relation, epsilon is not None)
        curve, copies = self._privacy_map(Fraction(1)).at(self.relation)
        distance = curve.shift * copies if isinstance(curve, Geometric) else 0
        if not distance:
            raise ValueError(f"`relation` must have a radius of at least 1 for whole numbers, got {self.relation}")
        self.exponent: Fraction | None
        self._ratio: Fraction | None = None
        if alpha is not None:
            if not named["alpha"] < 1:
                raise ValueError(f"`alpha` must be in (0, 1), got {alpha}")
            if 1 - named["alpha"] < 2**-50:
                raise ValueError(f"`alpha` must be at most 1 - 2**-50, got {alpha}")
            self.exponent, self._ratio = None, _ratio(Fraction(named["alpha"]))
        elif epsilon is not None:
            self.exponent = _rational.exponent(named["epsilon"], distance)
        elif epsilon_per_unit is not None:
            self.exponent = _rational.exponent(named["epsilon_per_unit"], 1, "epsilon_per_unit")
        else:
            if not named["scale"] <= 2**50:
                raise ValueError(f"`scale` must be at most 2**50, got {scale}")
            exact = min(1 / Fraction(named["scale"]), Fraction(1024))
            self.exponent = _rational.largest_below(exact, _rational.LARGEST // math.ceil(exact))

        # The logarithm of a given alpha is rounded by less than 2^-50.
        exact = self.exponent if self.exponent is not None else Fraction(self.decay) * (1 + Fraction(1, 2**50))
        self.guarantee = guarantee_of(self._privacy_map(exact), self.relation)

    def _about(self, relation: Relation | None, calibrated: bool) -> Relation:
        """Return the relation: the one given, the one that `n` is short for, or the usual one."""
        records = self.sensitivity is not None or (self.lower is not None and self.upper is not None)
        if self.n is not None:
            if self.sensitivity is not None:
                raise TypeError("`n` must not be given beside `sensitivity`")
            near = DataMetric("l1", self.n)
            if relation is not None and _relations.check(relation) != near:
                raise TypeError(f"`n` is short for relation={near}, got relation={relation} beside it")
            return near
        if relation is None and calibrated and not records:
            raise TypeError("`epsilon` needs `n`, or `lower` and `upper`")
        return _relations.check(relation or (ReplaceOne() if records else DataMetric("l1", 1)))

    def _privacy_map(self, decay: Fraction) -> PrivacyMap:
        """Return what noise of a decay gives away."""
        if self.sensitivity is not None:
            words = f"declared to move the array by at most {self.sensitivity} in the l1 distance"
            return Declared(Geometric(decay, self.sensitivity), self.relation, words, whole=True)
        metric = self.relation.metric if isinstance(self.relation, DataMetric) else ""
        if metric not in ("l1", "l2") and self.lower is not None and self.upper is not None:
            return PerEntry(Geometric(decay, self.upper - self.lower), True)
        return Shift(Geometric(decay, 1), metric if metric == "l2" else "l1", True)

    @cached_property
    def noise(self) -> GeometricNoise:
        alpha = None if self._ratio is None else float(self._ratio)
        return GeometricNoise(alpha, self.lower, self.upper, self.exponent)

    @property
    def alpha(self) -> float:
        """The ratio actually used."""
        return float(self.noise.alpha)

    @property
    def decay(self) -> float:
        """The privacy loss per unit of distance, ``-log(alpha)``."""
        return float(self.noise.decay)

    @cached_property
    def _sampler(self) -> _core.WholeSampler:
        if self.exponent is not None:
            return geometric_noise(self.exponent)
        assert self._ratio is not None
        return geometric_noise(self._ratio, exponential=False)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to whole numbers.

        {whole_numbers}
        """
        return self._release(_check.narrow_counts(_tables.array(x, "x"), "x", minimum=None), insecure_seed, data=x)

    def _release(
        self, numbers: Array, insecure_seed: int | None, compact: bool = False, data: object = None
    ) -> Release:
        noisy = with_noise(self._sampler, numbers, self.noise.bounds, insecure_seed, compact)
        return self._published(noisy, data, insecure_seed, n=self.n)

    def __repr__(self) -> str:
        bounds = "" if self.lower is None and self.upper is None else f", lower={self.lower}, upper={self.upper}"
        size = "" if self.n is None else f", n={self.n}"
        ratio = f"alpha={self.alpha}" if self.exponent is None else f"epsilon_per_unit={float(self.exponent)}"
        size += "" if self.sensitivity is None else f", sensitivity={self.sensitivity}"
        bounded = self.sensitivity is not None or (self.lower is not None and self.upper is not None)
        usual = ReplaceOne() if bounded and self.n is None else DataMetric("l1", self.n or 1)
        about = "" if self.relation == usual else f", relation={self.relation}"
        return f"GeometricMechanism({ratio}{size}{bounds}{about})"


@lru_cache(maxsize=64)
def geometric_noise(decay: Fraction, *, exponential: bool = True) -> _core.WholeSampler:
    """Return the noise of ratio ``exp(-decay)``, or of ratio `decay` itself; its tables take 70 us, a draw 30 ns."""
    return _core.WholeSampler.geometric(decay.numerator, decay.denominator, exponential)


def _ratio(alpha: Fraction) -> Fraction:
    """Return alpha as a fraction of 64-bit numbers, not below it: towards more noise."""
    return alpha if alpha.denominator < 2**62 else Fraction(math.ceil(alpha * 2**62), 2**62)
