"""Gaussian noise on a grid: what is released is the ideal real-valued output, rounded; its law and the mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._types import Floats, Index
from quincunx.privacy import _rational, _relations
from quincunx.privacy._calibration import gaussian_sigma
from quincunx.privacy._curves import Gaussian
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import UPWARDS, Accuracy, Noise, each, read_only, real_bounds
from quincunx.privacy._mechanism import Mechanism, mechanism_doc
from quincunx.privacy._privacy_map import Declared, PerEntry, PrivacyMap, Shift, unknown
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne
from quincunx.privacy._release import Release, seed_words

#: Grid steps per deviation, as a power of two: the likelihood on the grid is that of the normal law up to the square of
#: a step, 1e-12, and 2**61 steps reach 2**41 deviations.
GRID_BITS = 20
#: Allowance for statistics, norms and clipping in floating point.
ROUNDED = 1 + 2.0**-40
#: Inputs are cut to 2**-64 grid steps, below 2**-84 deviations, towards zero: two vectors of at most 2**40 numbers move
#: apart by less than 2**-84 sqrt(2**40) deviations more.
CUT = Fraction(1, 2**64)
#: A sensitivity as it was declared, of the array or of each coordinate, and its shift in units of sigma.
Sensitivity = tuple[float | tuple[float, ...], Fraction]


@dataclass(frozen=True, eq=False)
class GaussianNoise(Noise):
    """Normal noise on real numbers or vectors.

    Parameters
    ----------
    sigma : float
        The standard deviation, > 0.
    scales : array_like of float, optional
        Coordinate i along the last axis has the deviation ``sigma * scales[i]``; of more axes, each value its own.
    radius : float, optional
        Vectors are clipped to the ball of this radius about 0.
    dimension : int
        With `radius`: the length of a vector along the last axis. With 1, each number is clipped by itself.
    step : float
        The grid of the released values; 0 for none. Coordinates with scales have grids of their own.
    lower, upper : float, optional
        Instead of `radius`: bounds to which each number is clipped.

    Notes
    -----
    The log-likelihood is that of the normal law, to which that of the grid is equal to 1e-12, relative. The accuracy is
    the quantile of that law and a step of the grid, above the least by at most 1.5 steps; two steps of `sigma` times
    the scale where coordinates have grids of their own, which these are not above.

    Examples
    --------
    >>> from quincunx.privacy import noise
    >>> noise.GaussianNoise(0.5, scales=[1.0, 4.0]).deviations.round(6).tolist()
    [0.5, 2.0]
    """

    sigma: float
    scales: Any = None
    radius: float | None = None
    dimension: int = 1
    step: float = 0.0
    lower: float | None = None
    upper: float | None = None
    kind = "gaussian"

    def __post_init__(self) -> None:
        _check.real(self.sigma, "sigma", positive=True)
        _check.nonnegative(self.step, "step")
        if self.radius is not None:
            _check.real(self.radius, "radius", positive=True)
        _check.whole(self.dimension, "dimension", minimum=1)
        real_bounds(self.lower, self.upper)
        if self.lower is not None and self.radius is not None:
            raise TypeError("`radius` must not be given beside `lower` and `upper`")
        if self.radius is None:
            object.__setattr__(self, "dimension", 1)
        if self.scales is not None:
            scales = _check.reals_where(self.scales, "scales", "positive", lambda s: s > 0)
            if not scales.ndim:
                raise ValueError(f"`scales` must be a list, got {self.scales}")
            object.__setattr__(self, "scales", read_only(scales))

    @property
    def deviations(self) -> Accuracy:
        """The standard deviation, of each coordinate where these differ; products are rounded upwards."""
        return self.sigma if self.scales is None else np.nextafter(self.sigma * self.scales, math.inf)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where numbers lie after they are clipped; None where they are not."""
        if self.lower is not None and self.upper is not None:
            return self.lower, self.upper
        return None if self.radius is None else (-self.radius, self.radius)

    def clipped(self, x: npt.ArrayLike) -> Floats:
        """Return numbers clipped to the bounds, or vectors to the ball.

        Parameters
        ----------
        x : array_like of float
            The numbers, or vectors along the last axis.

        Returns
        -------
        ndarray of float64
            Of the same shape.

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers, or vectors of another length.
        """
        numbers = _check.reals(x, "x")
        length = 1 if self.radius is None else self.dimension
        if self.scales is not None:
            length = max(length, self.scales.shape[-1])
            if numbers.ndim == 0 or numbers.shape[-1] != self.scales.shape[-1]:
                raise ValueError(f"`x` must have a last axis of length {length}, got shape {numbers.shape}")
        bounds = self.bounds
        if bounds is not None and self.dimension == 1 and (self.radius is None or self.scales is None):
            return np.clip(numbers, *bounds)
        if self.radius is None:
            return numbers
        if numbers.ndim == 0 or numbers.shape[-1] != length:
            raise ValueError(f"`x` must have a last axis of length {length}, got shape {numbers.shape}")
        return in_ball(numbers, self.radius)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        sigma = self.sigma if self.scales is None else self.sigma * self.scales
        distance = (_check.reals(z, "z") - self.clipped(x)) / sigma
        return np.asarray(-0.5 * distance * distance - np.log(sigma) - 0.5 * math.log(2 * math.pi))

    def _accuracy(self, confidence: float) -> Accuracy:
        from scipy.special import erfinv, ndtri

        low = confidence < 0.5
        quantile = math.sqrt(2) * float(erfinv(confidence)) if low else -float(ndtri((1 - confidence) / 2))
        step = self.step if self.scales is None else 2 * self.step * self.scales
        return (quantile * self.deviations + step) * UPWARDS

    def _clipping(self) -> tuple[float | None, float | None]:
        return self.bounds or (None, None)

    def _picked(self, index: Index, shape: tuple[int, ...]) -> Noise:
        if self.scales is None:
            return self
        chosen = each(self.scales, shape)[index]
        if chosen.size and (chosen == chosen.flat[0]).all():
            sigma = float(np.nextafter(self.sigma * chosen.flat[0], math.inf))
            return replace(self, sigma=sigma, scales=None, step=self.step * float(chosen.flat[0]) * 2)
        if chosen.size and (chosen == (row := chosen.reshape(-1, chosen.shape[-1])[0])).all():
            chosen = row  # the coordinates lie along the last axis still
        return replace(self, scales=chosen)


def in_ball(vectors: Floats, radius: float) -> Floats:
    """Return vectors along the last axis clipped to the ball of a radius about 0."""
    largest = np.max(np.abs(vectors), axis=-1, keepdims=True)
    unit = vectors / np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
    norm = np.sqrt(np.sum(unit * unit, axis=-1, keepdims=True))
    norm = np.where(norm > 0, norm, 1.0)
    return np.where(largest <= radius / norm, vectors, unit * (radius / norm))


@mechanism_doc
class GaussianMechanism(Mechanism):
    """Gaussian noise on real numbers or vectors, on a grid.

    The output is the ideal real-valued one, value plus exactly normal noise, rounded to a multiple of `step`, a power
    of two about 2**-20 of sigma: a function of a private output, so it has exactly that privacy, in any dimension.

    Parameters
    ----------
    epsilon : float, optional
        Privacy level, >= 0. Not given together with `sigma`.
    delta : float
        In (0, 1).
    sensitivity : float or sequence of float, optional
        Largest Euclidean distance between the values of two neighbors, > 0; with `scales` that of the values over the
        scales. A sequence gives the largest change of each coordinate.
    radius : float, optional
        Instead: each record is clipped to the ball of this radius about 0, > 0, so that it moves by at most twice that.
    dimension : int
        With `radius`: the last axis holds records of this length. With 1, each number is a record. With the metric
        "linf": how many numbers there are. Else without effect.
    lower, upper : float, optional
        Instead: each number is a record, clipped to these bounds, so that it moves by at most ``upper - lower``.
    sigma : float, optional
        Instead of `epsilon`: the standard deviation, > 0.
    scales : sequence of float, optional
        Proportions of the noise of the coordinates along the last axis, > 0: coordinate i has the deviation
        ``sigma * scales[i]``. Labels, as of a Series of pandas, must be those of the data then.
    relation : ReplaceOne, AddRemove or DataMetric
        Which neighbors it is about. A ``DataMetric`` of real arrays needs no sensitivity: the values are the data.

    Attributes
    ----------
    sigma : float
        Never below the least that keeps the guarantee; above it by 1e-14 and by 2**-40 (for statistics, norms and
        clipping in floating point), relative.
    guarantee : PrivacyGuarantee
        Composes by the exact Gaussian profile, and with randomized response exactly too.

    {domain}
    NoGuarantee
        If nothing is proved for this use and relation: records that are added or removed where each has its own row,
        or `radius` or bounds, which limit one record, with a metric of arrays.

    Notes
    -----
    Values beyond 2**61 steps, about 2**41 sigma, are clipped there. About 90 ns a number.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML.
    .. [2] C. Karney (2016), Sampling exactly from the normal distribution, ACM Trans. Math. Softw. 42.

    Examples
    --------
    >>> from quincunx.privacy import DataMetric, GaussianMechanism
    >>> mechanism = GaussianMechanism(1.0, 1e-5, sensitivity=2.0)
    >>> round(mechanism.sigma, 9)
    7.46126327
    >>> clipped = GaussianMechanism(1.0, 1e-5, radius=1.0, dimension=3)
    >>> clipped.release([[0.2, 0.1, 0.0], [3.0, 4.0, 0.0]]).shape
    (2, 3)
    >>> ages = GaussianMechanism(1.0, 1e-5, lower=18, upper=100)
    >>> ages.release([25.0, 130.0]).shape, ages.sensitivity
    ((2,), 82.0)
    >>> near = GaussianMechanism(1.0, 1e-5, relation=DataMetric("l2", 2.0)).guarantee
    >>> round(near.at(1.0).epsilon, 3)  # a distance that `sensitivity=` would say nothing of
    0.469
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        sensitivity: float | Sequence[float] | None = None,
        radius: float | None = None,
        dimension: int = 1,
        lower: float | None = None,
        upper: float | None = None,
        sigma: float | None = None,
        scales: Sequence[float] | Floats | None = None,
        relation: Relation = ReplaceOne(),
    ) -> None:
        relation = _relations.check(relation)
        if sum(given is not None for given in (sensitivity, radius, lower)) > 1:
            raise TypeError("exactly one of `sensitivity`, `radius`, and `lower` with `upper` must be given")
        self.lower, self.upper = real_bounds(lower, upper)
        if (epsilon is None) == (sigma is None):
            raise TypeError("exactly one of `epsilon` and `sigma` must be given")
        self.radius = None if radius is None else _check.real(radius, "radius", positive=True)
        self.dimension = _check.whole(dimension, "dimension", minimum=1)
        if self.lower is not None and self.dimension != 1:
            raise ValueError(f"`dimension` must be 1 where there are bounds, got {dimension}")
        if self.lower is not None and scales is not None:
            raise TypeError("`scales` must not be given beside `lower` and `upper`")
        self.scales, self._names = None if scales is None else _positive(scales, "scales"), _tables.axes(scales)
        self.relation = relation
        self._declared = self._declared_shift(sensitivity)
        # The shift of the values at the relation, in units of sigma.
        self.sensitivity = _rational.root_upwards(self._privacy_map(Fraction(1), Fraction(0)).at(relation)[0].ratio)
        level = None if epsilon is None else _check.real(epsilon, "epsilon")
        _check.real(delta, "delta")
        allowed = self.sensitivity * ROUNDED
        if level is None:
            self.sigma = _check.real(sigma, "sigma", positive=True)
        else:
            self.sigma = _with_cut(gaussian_sigma(level, delta, allowed), allowed)
        spread = [1.0] if self.scales is None else list(self.scales)
        for scale in (min(spread), max(spread)):
            if not -940 <= math.frexp(self.sigma * scale)[1] - 1 - GRID_BITS <= 900:
                raise ValueError(
                    f"`sensitivity` must leave a sigma between 2**-900 and 2**900, got sigma = {self.sigma}"
                )
        self.step = _step(self.sigma)
        _check.open_probability(delta, "delta")
        # Shifts in deviations, with the allowance for floating point.
        privacy_map = self._privacy_map(Fraction(ROUNDED) / Fraction(self.sigma), CUT)
        self.guarantee = guarantee_of(privacy_map, relation, delta, epsilon=level)
        self.stacks = self._size() is None

    def _declared_shift(self, sensitivity: float | Sequence[float] | None) -> Sensitivity | None:
        """Return a given sensitivity with the least fraction not below its shift in units of sigma; None without it."""
        if sensitivity is None:
            return None
        if not isinstance(sensitivity, (Sequence, np.ndarray)) or isinstance(sensitivity, str):
            size = _check.real(sensitivity, "sensitivity", positive=True)
            return size, Fraction(size)
        changes, scales = _positive(sensitivity, "sensitivity"), self._spread()
        if self.scales is None:
            scales = scales * len(changes)
        if len(scales) != len(changes):
            raise ValueError(f"`sensitivity` must have length {len(scales)}, got {len(changes)}")
        squared = sum(((Fraction(d) / Fraction(s)) ** 2 for d, s in zip(changes, scales, strict=True)), Fraction(0))
        return changes, Fraction(_rational.root_upwards(squared))

    def _privacy_map(self, unit: Fraction, rest: Fraction) -> PrivacyMap:
        """Return what noise gives away of shifts that are so many deviations for each sigma, and a rest."""
        scales = [Fraction(scale) for scale in self._spread()]
        if self._declared is not None:
            given, shift = self._declared
            if isinstance(given, tuple):
                bounds = (
                    list(given) if len(given) <= 8 else f"what was said of each of {len(given)}, {max(given):g} at most"
                )
                words = f"declared to move each coordinate by at most {bounds}"
            else:
                over = "" if self.scales is None else ", over its scales"
                words = f"declared to move the array by at most {given:g} in the l2 distance{over}"
            return Declared(Gaussian((shift * unit + rest) ** 2), self.relation, words)
        width = None if self.radius is None else 2 * Fraction(self.radius)
        if self.lower is not None and self.upper is not None:
            width = Fraction(self.upper) - Fraction(self.lower)
        if width is not None:
            return PerEntry(Gaussian((width / min(scales) * unit + rest) ** 2), False)
        if not isinstance(self.relation, DataMetric):
            raise TypeError("exactly one of `sensitivity`, `radius`, and `lower` with `upper` must be given")
        if self.relation.metric == "hamming":
            raise unknown("Gaussian noise", self.relation)
        slope = unit / min(scales)
        if self.relation.metric == "linf":
            count = self.dimension if self.scales is None else 1
            slope = unit * Fraction(_rational.root_upwards(count * sum((s**-2 for s in scales), Fraction(0))))
        return Shift(Gaussian(slope**2), self.relation.metric, False, rest / slope)

    def _spread(self) -> list[float]:
        return [1.0] if self.scales is None else list(self.scales)

    @cached_property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(self.sigma, self.scales, self.radius, self.dimension, self.step, self.lower, self.upper)

    @cached_property
    def _samplers(self) -> dict[float, tuple[_core.RoundedSampler, float]]:
        """Noise and grid step for each scale."""
        found = {}
        for scale in set(self._spread()):
            deviation = math.nextafter(self.sigma * scale, math.inf) if scale != 1.0 else self.sigma
            step = _step(deviation)
            found[scale] = (_core.RoundedSampler.normal(deviation / step), step)
        return found

    def _size(self) -> int | None:
        """Return how many numbers the guarantee speaks of, None where it speaks of any number of them."""
        size, privacy_map = None, self.guarantee.parts[0].privacy_map
        if self.scales is not None and self.radius is None:
            size = len(self.scales)
        elif self._declared is not None and isinstance(self._declared[0], tuple):
            size = len(self._declared[0])
        elif isinstance(privacy_map, Shift) and privacy_map.metric == "linf":
            size = self.dimension
        return size

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to real numbers.

        Parameters
        ----------
        x : array_like of float, shape (..., dimension) where records are clipped
            The private numbers. With `sensitivity`, the whole array is the value that it bounds.
        {insecure_seed}
            With float64 values of the shape of `x`, multiples of `step`.

        {errors}
            If `x` does not hold finite numbers, or records of another length, or without bounds holds numbers that a
            double may round, as ints beyond 2**53: arrays would move by more than they did.
        """
        _tables.refuse_other_labels(_tables.axes(x)[-1:], self._names, "x", "`scales`")
        exact = x if self.noise.bounds else _check.exact_reals(x, "x")
        numbers = np.ascontiguousarray(self.noise.clipped(exact))
        if (size := self._size()) not in (None, numbers.size):
            raise ValueError(f"`x` must hold {size} numbers, got shape {numbers.shape}")
        if self.scales is None:
            sampler, step = self._samplers[1.0]
            noisy = sampler.add_on_grid(numbers.reshape(-1), step, seed_words(insecure_seed)).reshape(numbers.shape)
        else:
            noisy = np.empty_like(numbers)
            for place, scale in enumerate(self.scales):
                sampler, step = self._samplers[scale]
                words = seed_words(None if insecure_seed is None else insecure_seed * len(self.scales) + place)
                column = np.ascontiguousarray(numbers[..., place])
                noisy[..., place] = sampler.add_on_grid(column.reshape(-1), step, words).reshape(column.shape)
        return self._published(noisy, x, insecure_seed, sensitivity=self.sensitivity)

    def __repr__(self) -> str:
        bound = f"sensitivity={self.sensitivity}" if self.radius is None else f"radius={self.radius}"
        if self.lower is not None:
            bound = f"lower={self.lower}, upper={self.upper}"
        more = "" if self.scales is None else f", scales={list(self.scales)}"
        more += self._shown_relation
        return f"GaussianMechanism({self.epsilon}, {self.delta}, {bound}, dimension={self.dimension}{more})"


def _positive(values: Sequence[float] | Floats, name: str) -> tuple[float, ...]:
    """Return positive numbers as a tuple."""
    _check.fits(values, name)
    if np.ndim(values) != 1 or not len(values):
        raise ValueError(f"`{name}` must be a number or a list of at least one, got shape {np.shape(values)}")
    return tuple(_check.real(value, name, positive=True) for value in values)


def _step(deviation: float) -> float:
    """Return the power of two that is `GRID_BITS` below a deviation."""
    return math.ldexp(1.0, math.frexp(deviation)[1] - 1 - GRID_BITS)


def _with_cut(sigma: float, sensitivity: float) -> float:
    """Return the deviation at which ``sensitivity / sigma + CUT`` is at most what it was without the cut."""
    extra = Fraction(sigma) * CUT / Fraction(sensitivity)
    if extra > Fraction(1, 4):
        raise ValueError(f"`sensitivity` must be above 2**-62 sigma, got {sensitivity} for sigma = {sigma}")
    return _rational.upwards(Fraction(sigma) / (1 - extra))
