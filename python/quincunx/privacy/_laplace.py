"""Laplace noise on real numbers, on a grid: its law, its privacy curve and the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Floats
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Curve, Pair, tanh_level
from quincunx.privacy._geometric import Geometric, geometric_noise
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import UPWARDS, Accuracy, Noise, real_bounds
from quincunx.privacy._mechanism import Mechanism, mechanism_doc
from quincunx.privacy._privacy_map import Declared, PerEntry, PrivacyMap, Shift
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words

#: Grid steps per scale, as a power of two: rounding the bounds to the grid takes at most 2**-19 of epsilon, and the
#: likelihood on the grid is that of the Laplace law up to the square of a step, 1e-12.
GRID_BITS = 20
#: In grid steps: inputs are cut to 2**-64 of one, so that at most 2**40 numbers move apart by less than this more.
CUT = Fraction(1, 2**24)


@dataclass(frozen=True, eq=False)
class LaplaceNoise(Noise):
    """Laplace noise on real numbers.

    Parameters
    ----------
    scale : float
        Of the Laplace law, > 0.
    lower, upper : float, optional
        Bounds to which each number is clipped. With bounds and a step, numbers are rounded to the grid before the
        noise, which is two-sided geometric on it; without bounds the sum is rounded.
    step : float
        The grid of the released values; 0 for none.

    Notes
    -----
    With a grid the log-likelihood is that of a density, the Laplace law to 1e-12, relative. The accuracy is the
    quantile of that law and a step, above the least by at most 1.5 steps.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> round(float(noise.LaplaceNoise(2.0).log_likelihood(1.0, 0.0)), 6)
    -1.886294
    """

    scale: float
    lower: float | None = None
    upper: float | None = None
    step: float = 0.0
    kind = "laplace"

    def __post_init__(self) -> None:
        _check.real(self.scale, "scale", positive=True)
        _check.nonnegative(self.step, "step")
        real_bounds(self.lower, self.upper)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        released, private = _check.reals(z, "z"), _check.reals(x, "x")
        constant = -math.log(2 * self.scale)
        if self.lower is not None:
            private = np.clip(private, self.lower, self.upper)
            if self.step:
                private = np.rint(private / self.step) * self.step
                constant = math.log(math.tanh(self.step / self.scale / 2)) - math.log(self.step)
        return np.asarray(constant - np.abs(released - private) / self.scale)

    def _accuracy(self, confidence: float) -> Accuracy:
        # A step is enough for rounding after the noise, half of it moves nothing by more, and for that before: noise of
        # g steps is off by at most g + 1/2, and 2 sqrt(alpha) <= 1 + alpha where the mass beyond is
        # 2 alpha**(g + 1) / (1 + alpha).
        return (-math.log1p(-confidence) * self.scale + self.step) * UPWARDS

    def _clipping(self) -> tuple[float | None, float | None]:
        return self.lower, self.upper


@dataclass(frozen=True)
class Laplace(Curve):
    """Laplace noise, shifted by so many scales."""

    shift: Fraction
    kind: ClassVar[str] = "laplace"
    grows: ClassVar[bool] = True
    adds_by: ClassVar[str] = "l1"

    @property
    def pure(self) -> Fraction:
        return self.shift

    @property
    def rho(self) -> Fraction:
        x = _rational.upwards(self.shift)
        # x + e^-x - 1, by its series where that cancels.
        value = x * x / 2 * (1 - x / 3 + x * x / 12) if x < 1e-3 else x + math.expm1(-x)
        return min(Fraction(value) * (1 + Fraction(1, 2**40)), tanh_level(self.shift))

    def pairs(self, *, removed: bool = False) -> list[Pair]:
        return [("laplace", [_rational.upwards(self.shift)])] if self.shift else []

    def group(self, steps: Fraction | int) -> Laplace:
        return Laplace(steps * self.shift)

    def delta_at(self, epsilon: float) -> float:
        if Fraction(epsilon) >= self.shift:
            return 0.0
        return min(-math.expm1((epsilon - _rational.upwards(self.shift)) / 2 * (1 + 2.0**-50)) * (1 + 2.0**-50), 1.0)


@mechanism_doc
class LaplaceMechanism(Mechanism):
    """Laplace noise on real numbers, on a grid.

    With bounds each number is a record: it is clipped to ``[lower, upper]`` and rounded to a multiple of `step`, a
    power of two about 2**-20 of the scale; two-sided geometric noise of that many steps is added. With `sensitivity`
    the array is a value that moves by at most so much in sum: exact Laplace noise is added and the sum rounded to a
    multiple of `step`.

    Parameters
    ----------
    epsilon : float
        Privacy level, > 0.
    lower, upper : float, optional
        The bounds.
    sensitivity : float, optional
        Instead: the largest L1 distance between the arrays of two neighbors, > 0.
    relation : ReplaceOne, AddRemove or DataMetric
        Which neighbors it is about. A ``DataMetric("l1")`` needs neither bounds nor sensitivity: the array is the data.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        Its epsilon is the exact one of the noise actually used, at most the one asked for and below it by at most
        2**-19, relative.
    scale : float
        The scale of the Laplace law, ``(upper - lower) / epsilon`` but for the rounding of the bounds to the grid, or
        ``sensitivity / epsilon``.

    {domain}
    NoGuarantee
        If nothing is proved for this use and relation.

    Notes
    -----
    Floating-point samplers of the Laplace law betray their input by the last bits of a single output [1]_; here the
    output is a function of an exact integer, or of the exact real-valued output. About 40 ns a number with bounds,
    70 ns with `sensitivity`; values beyond 2**61 steps are clipped there then.

    References
    ----------
    .. [1] I. Mironov (2012), On significance of the least significant bits for differential privacy, CCS.

    Examples
    --------
    >>> from quincunx.privacy import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(1.0, -5, 5)
    >>> mechanism.scale, mechanism.step == 2**-17, mechanism.epsilon
    (10.0, True, 1.0)
    >>> round(float(mechanism.log_likelihood(1.5, 0.5)), 9)
    -3.095732274
    >>> histogram = LaplaceMechanism(0.5, sensitivity=2.0)
    >>> round(histogram.scale, 9), histogram.release([12.0, 7.5, 3.0]).shape
    (4.0, (3,))
    """

    def __init__(
        self,
        epsilon: float,
        lower: float | None = None,
        upper: float | None = None,
        *,
        sensitivity: float | None = None,
        relation: Relation = ReplaceOne(),
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True)
        self.relation = _relations.check(relation)
        self.lower, self.upper = real_bounds(lower, upper)
        self.sensitivity = None if sensitivity is None else _check.real(sensitivity, "sensitivity", positive=True)
        if self.lower is not None and self.sensitivity is not None:
            raise TypeError("`sensitivity` must not be given beside `lower` and `upper`")
        if self.lower is not None and self.upper is not None:
            self._clip(level, self.lower, self.upper)
        else:
            self._shift(level)

    def _clip(self, level: float, lower: float, upper: float) -> None:
        """Fill in what clipped records need."""
        entries = PerEntry(Geometric(Fraction(1), 1), False).at(self.relation)[1]
        if not entries:
            raise ValueError(f"`relation` must have a radius of at least 1 for single records, got {self.relation}")
        width = Fraction(upper) - Fraction(lower)
        scale = width * entries / Fraction(level)
        # Fine against both the noise and the domain; coarse enough that outputs are floats and noise fits 64 bits.
        farthest = max(abs(Fraction(lower)), abs(Fraction(upper)))
        exponent = max(_log2(min(scale, width)) - GRID_BITS, _log2(farthest) - 51, _log2(scale) - 48)
        if not -960 <= exponent <= 900:
            raise ValueError(f"`lower` and `upper` must leave a grid that floats can hold, got {lower} and {upper}")
        self.step = math.ldexp(1.0, exponent)
        step = Fraction(self.step)
        steps = math.ceil(Fraction(upper) / step) - math.floor(Fraction(lower) / step)
        self._exponent = _rational.exponent(level, steps * entries)
        self.guarantee = guarantee_of(PerEntry(Geometric(self._exponent, steps), False), self.relation)
        self.scale = float(step / self._exponent)

    def _shift(self, level: float) -> None:
        """Fill in what an array that moves by at most a sensitivity needs."""
        if self.sensitivity is None and not isinstance(self.relation, DataMetric):
            raise TypeError("exactly one of `lower` with `upper`, and `sensitivity` must be given")
        moved = self._privacy_map(Laplace(Fraction(1)), Fraction(0)).at(self.relation)[0].pure or Fraction(0)
        exponent = _log2(moved / Fraction(level)) - GRID_BITS
        if not -960 <= exponent <= 900:
            raise ValueError(f"`sensitivity` must leave a scale between 2**-900 and 2**900, got {float(moved)}")
        self.step = math.ldexp(1.0, exponent)
        step = Fraction(self.step)
        self._exponent = _rational.exponent(level, moved / step + CUT)
        self.guarantee = guarantee_of(self._privacy_map(Laplace(self._exponent / step), CUT * step), self.relation)
        self.scale = float(step / self._exponent)

    def _privacy_map(self, unit: Laplace, rest: Fraction) -> PrivacyMap:
        """Return what noise gives away that has this curve at distance 1, of arrays that move by a rest more."""
        if self.sensitivity is None:
            return Shift(unit, "l1", False, rest)
        words = f"declared to move the array by at most {self.sensitivity:g} in the l1 distance"
        return Declared(unit.group(Fraction(self.sensitivity) + rest), self.relation, words)

    @cached_property
    def noise(self) -> LaplaceNoise:
        return LaplaceNoise(self.scale, self.lower, self.upper, self.step)

    @cached_property
    def _sampler(self) -> _core.WholeSampler | _core.RoundedSampler:
        if self.lower is None:
            return _core.RoundedSampler.laplace(self._exponent.numerator, self._exponent.denominator)
        return geometric_noise(self._exponent)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to real numbers.

        Parameters
        ----------
        x : array_like of float
            The private numbers; those outside the bounds are clipped.
        {insecure_seed}
            With float64 values of the shape of `x`, multiples of `step`.

        {errors}
            If `x` does not hold finite numbers, or without bounds holds some that a double may round, as ints beyond
            2**53: arrays would move by more than they did.
        """
        numbers = (_check.exact_reals if self.lower is None else _check.reals)(x, "x")
        words = seed_words(insecure_seed)
        sampler = self._sampler
        if isinstance(sampler, _core.RoundedSampler):
            noisy = sampler.add_on_grid(np.ascontiguousarray(numbers).reshape(-1), self.step, words)
        else:
            assert self.lower is not None
            assert self.upper is not None
            noisy = sampler.add_on_grid(numbers.reshape(-1), (self.lower, self.upper), self.step, words)
        return self._published(noisy.reshape(numbers.shape), x, insecure_seed)

    def __repr__(self) -> str:
        bound = f"{self.lower}, {self.upper}" if self.lower is not None else f"sensitivity={self.sensitivity}"
        return f"LaplaceMechanism({self.epsilon}, {bound}{self._shown_relation})"


def _log2(value: Fraction) -> int:
    """Return the exponent of the largest power of two that is not above a positive number; very low for 0."""
    if not value:
        return -(2**20)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1
