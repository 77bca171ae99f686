"""Mechanisms that add noise: two-sided geometric, Laplace and Gaussian on a grid, discrete Gaussian."""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx.privacy import _rational, _relations
from quincunx.privacy._calibration import gaussian_sigma
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._mechanism import Mechanism
from quincunx.privacy._records import clip_records, record_distance
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne
from quincunx.privacy._release import Release, marked, seed_words

LARGEST = 2**62  # whole numbers beyond are clipped, so that noise never overflows
GRID_BITS = 20  # grid steps per scale, as a power of two
#: Allowance for statistics, norms and clipping in floating point.
ROUNDED = 1 + 2.0**-40


class GeometricMechanism(Mechanism):
    """Two-sided geometric noise on whole numbers: ``P(z | x) = (1 - alpha) / (1 + alpha) alpha**abs(z - x)``.

    Parameters
    ----------
    epsilon : float, optional
        Privacy level, > 0; needs `n`, or `lower` and `upper`.
    n : int, optional
        Limited precision: the guarantee is about arrays at an L1 distance of at most n, and alpha = exp(-epsilon / n).
    lower, upper : int, optional
        Bounds to which each number is clipped. Without `n` the guarantee is about any two numbers within them, and
        alpha = exp(-epsilon / (upper - lower)).
    alpha, epsilon_per_unit, scale : float, optional
        Instead of `epsilon`: the ratio in (0, 1), its ``-log(alpha)`` > 0, or ``-1/log(alpha)`` > 0.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        About `ReplaceOne` with bounds alone, about ``DataMetric("l1", n)`` else (with n = 1 if it is not given).
    alpha : float
        The ratio actually used. ``-log(alpha)`` is a fraction of 64-bit numbers (`exponent`), not above what was asked
        for: rounding goes towards more noise. A given `alpha` is used as it is.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain, or not exactly one way of saying the noise is used.

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
    ) -> None:
        given = {"epsilon": epsilon, "alpha": alpha, "epsilon_per_unit": epsilon_per_unit, "scale": scale}
        named = {name: _check.real(value, name, positive=True) for name, value in given.items() if value is not None}
        if len(named) != 1:
            raise TypeError(f"exactly one of {list(given)} must be given, got {list(named)}")
        self.n = None if n is None else _check.whole(n, "n", minimum=1)
        self.lower, self.upper = _whole_bounds(lower, upper)
        bounded = self.lower is not None and self.upper is not None
        if self.n is None and bounded:
            distance = int(self.upper) - int(self.lower)  # type: ignore[arg-type]
            relation: Relation = ReplaceOne()
        elif self.n is None and epsilon is not None:
            raise TypeError("`epsilon` needs `n`, or `lower` and `upper`")
        else:
            distance = self.n or 1
            relation = DataMetric("l1", distance)
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
        self.guarantee = PrivacyGuarantee(exact * distance, relation=relation)

    @property
    def alpha(self) -> float:
        """The ratio actually used."""
        return math.exp(-self.exponent) if self._ratio is None else float(self._ratio)  # type: ignore[operator]

    @property
    def decay(self) -> float:
        """The privacy loss per unit of distance, ``-log(alpha)``."""
        if self.exponent is not None:
            return float(self.exponent)
        assert self._ratio is not None
        # Near one the distance from it is the accurate figure, near zero the ratio itself.
        return -math.log1p(float(self._ratio - 1)) if self._ratio > Fraction(1, 2) else -math.log(self._ratio)

    @cached_property
    def _noise(self) -> _core.GeometricNoise:
        if self.exponent is not None:
            return _core.GeometricNoise(self.exponent.numerator, self.exponent.denominator, True)
        assert self._ratio is not None
        return _core.GeometricNoise(self._ratio.numerator, self._ratio.denominator, False)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to whole numbers.

        Parameters
        ----------
        x : array_like of int
            The private numbers; those outside the bounds are clipped.
        insecure_seed : int, optional
            Makes the noise repeatable, for tests: whoever knows the seed removes the noise. The guarantee says so.

        Returns
        -------
        Release
            With int64 values of the shape of `x`.

        Raises
        ------
        ValueError, TypeError
            If `x` does not hold whole numbers.
        """
        numbers = _check.counts(x, "x", minimum=None)
        return self._release(numbers, insecure_seed)

    def _release(self, numbers: npt.NDArray[np.int64], insecure_seed: int | None) -> Release:
        words = seed_words(insecure_seed)
        noisy = self._noise.add(numbers.reshape(-1), *self._bounds(), words)
        parameters: dict[str, Any] = {"alpha": self.alpha, "n": self.n, "lower": self.lower, "upper": self.upper}
        parameters["exponent"] = None if self.exponent is None else str(self.exponent)
        guarantee = marked(self.guarantee, insecure_seed)
        return Release(
            noisy.reshape(numbers.shape), guarantee, mechanism="geometric", parameters=parameters, _owned=True
        )

    def _bounds(self) -> tuple[int, int]:
        return (
            -LARGEST if self.lower is None else max(self.lower, -LARGEST),
            LARGEST if self.upper is None else min(self.upper, LARGEST),
        )

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the probability of a released number given the private one.

        Parameters
        ----------
        z : array_like of int or Release
            Released numbers.
        x : array_like of int
            Private numbers, clipped as in `release`; broadcast against `z`.

        Returns
        -------
        ndarray of float64
            Of the broadcast shape.

        Raises
        ------
        ValueError, TypeError
            If they are not whole numbers.
        """
        released, private = _check.counts(z, "z", minimum=None), _check.counts(x, "x", minimum=None)
        distance = np.abs(released.astype(np.float64) - np.clip(private, *self._bounds()))
        near = np.abs(released) < 2**53
        if near.all():
            distance = np.abs(released - np.clip(private, *self._bounds())).astype(np.float64)
        return _log_geometric(self.decay) - self.decay * distance

    def __repr__(self) -> str:
        bounds = "" if self.lower is None and self.upper is None else f", lower={self.lower}, upper={self.upper}"
        size = "" if self.n is None else f", n={self.n}"
        way = f"alpha={self.alpha}" if self.exponent is None else f"epsilon_per_unit={float(self.exponent)}"
        return f"GeometricMechanism({way}{size}{bounds})"


def _ratio(alpha: Fraction) -> Fraction:
    """Return alpha as a fraction of 64-bit numbers, not below it: towards more noise."""
    return alpha if alpha.denominator < 2**62 else Fraction(math.ceil(alpha * 2**62), 2**62)


def _log_geometric(decay: float) -> float:
    """Return log((1 - alpha) / (1 + alpha)) from -log alpha."""
    return math.log(math.tanh(decay / 2))


def _whole_bounds(lower: int | None, upper: int | None) -> tuple[int | None, int | None]:
    low = None if lower is None else _check.whole(lower, "lower", minimum=-LARGEST, maximum=LARGEST)
    high = None if upper is None else _check.whole(upper, "upper", minimum=-LARGEST, maximum=LARGEST)
    if low is not None and high is not None and not low < high:
        raise ValueError(f"`lower` must be below `upper`, got {low} and {high}")
    return low, high


def privatize(
    counts: npt.ArrayLike,
    *,
    epsilon: float,
    n: int = 1,
    record_bound: int | None = None,
    insecure_seed: int | None = None,
) -> Release:
    """Release counts with limited-precision privacy, or with the privacy of whole records.

    Two-sided geometric noise of ratio ``alpha = exp(-epsilon / n)`` is added to each entry. For any two arrays at an L1
    distance of at most n, the probability of no release differs by more than a factor ``exp(epsilon)``: with n = 1 one
    unit of one count is protected, *not* a person who adds to many. With ``record_bound=A`` a record is
    ``counts[i]``: each is clipped to a sum of at most A, by itself, and n = 2A protects all of it.

    Parameters
    ----------
    counts : array_like of int, shape (records, ...) where records are clipped
        The private counts, of any shape, >= 0. Masked cells of a masked array are neither read nor released.
    epsilon : float
        Privacy level, > 0.
    n : int
        L1 distance within which arrays are to be told apart by no more than `epsilon`, >= 1.
    record_bound : int, optional
        Instead of `n`: the largest sum of a record, >= 1, chosen without looking at the data.
    insecure_seed : int, optional
        Makes the noise repeatable, for tests: whoever knows the seed removes the noise. The guarantee says so.

    Returns
    -------
    Release
        With int64 values, negative ones among them, the ratio `alpha` actually used, the guarantee, and `protects`,
        which says what it is about. A masked array has a masked release.

    Raises
    ------
    ValueError, TypeError
        If a count is negative, fractional or NaN, or another argument lies outside its domain.

    Notes
    -----
    A row of sum s > A is scaled by A / s and rounded to a sum of A by largest remainders. A record that is one number
    costs n = A.

    Examples
    --------
    >>> from quincunx.privacy import privatize
    >>> release = privatize([12, 0, 3], epsilon=0.5, n=1)
    >>> release.guarantee
    PrivacyGuarantee(epsilon=0.5, delta=0.0, relation=DataMetric(metric='l1', radius=1), numerics='exact')
    >>> release.protects
    'changes of at most 1 in the sum of all counts'
    >>> whole = privatize([[12, 0, 3], [1, 1, 0]], epsilon=0.5, record_bound=10)
    >>> whole.protects, whole.n
    ('one record replaced by any other, each clipped to a sum of at most 10', 20)
    """
    mask = np.ma.getmaskarray(counts) if isinstance(counts, np.ma.MaskedArray) and np.ma.is_masked(counts) else None
    numbers = _check.counts(counts if mask is None else counts.filled(0), "counts")  # type: ignore[union-attr]
    if record_bound is None:
        release = GeometricMechanism(epsilon, n=n)._release(numbers, insecure_seed)
    else:
        bound = _check.whole(record_bound, "record_bound", minimum=1, maximum=LARGEST // 2)
        if n != 1:
            raise TypeError(f"`n` must not be given beside `record_bound`, got {n}")
        if numbers.ndim == 0:
            raise ValueError("`counts` must have a first axis, of records, where `record_bound` is given; got a number")
        mechanism = GeometricMechanism(epsilon, n=record_distance(numbers, bound))
        release = mechanism._release(clip_records(numbers, bound), insecure_seed)
        # The noise protects every change of n in sum, and so whatever a clipped record is replaced by.
        whole = PrivacyGuarantee(release.guarantee.exact_epsilon, numerics=release.guarantee.numerics)
        parameters = release.parameters | {"record_bound": bound}
        release = Release(release.values, whole, mechanism="geometric", parameters=parameters, _owned=True)
    return release if mask is None else release.masked(mask)


class LaplaceMechanism(Mechanism):
    """Laplace noise on bounded real numbers, on a grid.

    Each number is clipped to ``[lower, upper]`` and rounded to a multiple of `step`, a power of two about 2**-20 of the
    scale; two-sided geometric noise of that many steps is added. Every output is a multiple of `step`.

    Parameters
    ----------
    epsilon : float
        Privacy level for any two numbers within the bounds, > 0.
    lower, upper : float
        The bounds.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        About `ReplaceOne`. Its epsilon is the exact one of the noise actually used, at most the one asked for and below
        it by at most 2**-19, relative.
    scale : float
        The scale of the Laplace law, ``(upper - lower) / epsilon`` but for the rounding of the bounds to the grid.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.

    Notes
    -----
    Floating-point samplers of the Laplace law betray their input by the last bits of a single output [1]_; here the
    output is a function of an exact integer. About 40 ns a number.

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
    """

    def __init__(self, epsilon: float, lower: float, upper: float) -> None:
        level = _check.real(epsilon, "epsilon", positive=True)
        self.lower, self.upper = _check.real(lower, "lower"), _check.real(upper, "upper")
        if not self.lower < self.upper:
            raise ValueError(f"`lower` must be below `upper`, got {self.lower} and {self.upper}")
        width = Fraction(self.upper) - Fraction(self.lower)
        scale = width / Fraction(level)
        # Fine against both the noise and the domain; coarse enough that outputs are floats and noise fits 64 bits.
        farthest = max(abs(Fraction(self.lower)), abs(Fraction(self.upper)))
        exponent = max(_log2(min(scale, width)) - GRID_BITS, _log2(farthest) - 51, _log2(scale) - 48)
        if not -960 <= exponent <= 900:
            raise ValueError(f"`lower` and `upper` must leave a grid that floats can hold, got {lower} and {upper}")
        self.step = math.ldexp(1.0, exponent)
        step = Fraction(self.step)
        self._steps = math.ceil(Fraction(self.upper) / step) - math.floor(Fraction(self.lower) / step)
        self._exponent = _rational.exponent(level, self._steps)
        self.guarantee = PrivacyGuarantee(self._exponent * self._steps)
        self.scale = float(step / self._exponent)

    @cached_property
    def _noise(self) -> _core.GeometricNoise:
        return _core.GeometricNoise(self._exponent.numerator, self._exponent.denominator, True)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to real numbers.

        Parameters
        ----------
        x : array_like of float
            The private numbers; those outside the bounds are clipped.
        insecure_seed : int, optional
            Makes the noise repeatable, for tests: whoever knows the seed removes the noise. The guarantee says so.

        Returns
        -------
        Release
            With float64 values of the shape of `x`, multiples of `step`.

        Raises
        ------
        ValueError, TypeError
            If `x` does not hold finite numbers.
        """
        numbers = _check.reals(x, "x")
        words = seed_words(insecure_seed)
        noisy = self._noise.add_on_grid(numbers.reshape(-1), self.lower, self.upper, self.step, words)
        parameters = {"scale": self.scale, "lower": self.lower, "upper": self.upper, "step": self.step}
        guarantee = marked(self.guarantee, insecure_seed)
        return Release(noisy.reshape(numbers.shape), guarantee, mechanism="laplace", parameters=parameters, _owned=True)

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the density of a released number given the private one.

        Parameters
        ----------
        z : array_like of float or Release
            Released numbers, on the grid or not.
        x : array_like of float
            Private numbers, clipped and rounded as in `release`; broadcast against `z`.

        Returns
        -------
        ndarray of float64
            ``log(P(z | x) / step)``: as a density it is the Laplace law to 1e-12, relative.

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers.
        """
        released, private = _check.reals(z, "z"), _check.reals(x, "x")
        private = np.rint(np.clip(private, self.lower, self.upper) / self.step) * self.step
        decay = float(self._exponent)
        return _log_geometric(decay) - math.log(self.step) - np.abs(released - private) / self.scale

    def __repr__(self) -> str:
        return f"LaplaceMechanism({self.epsilon}, {self.lower}, {self.upper})"


def _log2(value: Fraction) -> int:
    """Return the exponent of the largest power of two that is not above a positive number; very low for 0."""
    if not value:
        return -(2**20)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


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
    sensitivity : float, optional
        Largest Euclidean distance between the values of two neighbors, > 0.
    radius : float, optional
        Instead: records are clipped to the ball of this radius about 0, > 0, so that the sensitivity is twice that.
    dimension : int
        With `radius`: the last axis holds records of this length. With 1, each number is a record.
    sigma : float, optional
        Instead of `epsilon`: the standard deviation, > 0.
    relation : ReplaceOne, AddRemove or DataMetric
        Which neighbors the sensitivity is about.

    Attributes
    ----------
    sigma : float
        Never below the least that keeps the promise; above it by 1e-14 and by 2**-40 (for statistics, norms and
        clipping in floating point), relative.
    guarantee : PrivacyGuarantee
        Composes by the exact Gaussian profile, and with randomized response exactly too.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.

    Notes
    -----
    Values beyond 2**61 steps, about 2**41 sigma, are clipped there. About 90 ns a number.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML.
    .. [2] C. Karney (2016), Sampling exactly from the normal distribution, ACM Trans. Math. Softw. 42.

    Examples
    --------
    >>> from quincunx.privacy import GaussianMechanism
    >>> mechanism = GaussianMechanism(1.0, 1e-5, sensitivity=2.0)
    >>> round(mechanism.sigma, 9)
    7.46126327
    >>> clipped = GaussianMechanism(1.0, 1e-5, radius=1.0, dimension=3)
    >>> clipped.release([[0.2, 0.1, 0.0], [3.0, 4.0, 0.0]]).shape
    (2, 3)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        sensitivity: float | None = None,
        radius: float | None = None,
        dimension: int = 1,
        sigma: float | None = None,
        relation: Relation = ReplaceOne(),  # noqa: B008
    ) -> None:
        if (sensitivity is None) == (radius is None):
            raise TypeError("exactly one of `sensitivity` and `radius` must be given")
        if (epsilon is None) == (sigma is None):
            raise TypeError("exactly one of `epsilon` and `sigma` must be given")
        self.radius = None if radius is None else _check.real(radius, "radius", positive=True)
        self.dimension = _check.whole(dimension, "dimension", minimum=1)
        self.sensitivity = 2 * self.radius if self.radius else _check.real(sensitivity, "sensitivity", positive=True)
        _check.real(delta, "delta")
        relation = _relations.check(relation)
        allowed = self.sensitivity * ROUNDED
        level = None if epsilon is None else _check.real(epsilon, "epsilon")
        if level is None:
            self.sigma = _check.real(sigma, "sigma", positive=True)
        else:
            self.sigma = gaussian_sigma(level, delta, allowed)
        exponent = math.frexp(self.sigma)[1] - 1 - GRID_BITS
        if not -960 <= exponent <= 900:
            raise ValueError(f"`sensitivity` must leave a sigma between 2**-900 and 2**900, got sigma = {self.sigma}")
        self.step = math.ldexp(1.0, exponent)
        self.guarantee = PrivacyGuarantee.of_gaussian(
            self.sigma, delta, sensitivity=allowed, epsilon=level, relation=relation
        )

    @cached_property
    def _noise(self) -> _core.NormalNoise:
        return _core.NormalNoise(self.sigma / self.step)

    def _clipped(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        numbers = _check.reals(x, "x")
        if self.radius is None:
            return numbers
        if self.dimension == 1:
            return np.clip(numbers, -self.radius, self.radius)
        if numbers.ndim == 0 or numbers.shape[-1] != self.dimension:
            raise ValueError(f"`x` must have a last axis of length {self.dimension}, got shape {numbers.shape}")
        largest = np.max(np.abs(numbers), axis=-1, keepdims=True)
        unit = numbers / np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
        length = np.sqrt(np.sum(unit * unit, axis=-1, keepdims=True))
        inside = largest <= self.radius / np.where(length > 0, length, 1.0)
        return np.where(inside, numbers, unit * (self.radius / np.where(length > 0, length, 1.0)))

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to real numbers.

        Parameters
        ----------
        x : array_like of float, shape (..., dimension) where records are clipped
            The private numbers.
        insecure_seed : int, optional
            Makes the noise repeatable, for tests: whoever knows the seed removes the noise. The guarantee says so.

        Returns
        -------
        Release
            With float64 values of the shape of `x`, multiples of `step`.

        Raises
        ------
        ValueError, TypeError
            If `x` does not hold finite numbers, or records of another length.
        """
        numbers = np.ascontiguousarray(self._clipped(x))
        noisy = self._noise.add_on_grid(numbers.reshape(-1), self.step, seed_words(insecure_seed))
        parameters = {
            "sigma": self.sigma,
            "sensitivity": self.sensitivity,
            "radius": self.radius,
            "dimension": self.dimension,
            "step": self.step,
        }
        guarantee = marked(self.guarantee, insecure_seed)
        return Release(
            noisy.reshape(numbers.shape), guarantee, mechanism="gaussian", parameters=parameters, _owned=True
        )

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the density of a released number given the private one.

        Parameters
        ----------
        z : array_like of float or Release
            Released numbers.
        x : array_like of float
            Private numbers, clipped as in `release`; broadcast against `z`.

        Returns
        -------
        ndarray of float64
            One value per number; the density of a vector is the sum over its last axis. The normal law, to which that
            of the grid is equal to 1e-12, relative.

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers.
        """
        distance = (_check.reals(z, "z") - self._clipped(x)) / self.sigma
        return -0.5 * distance * distance - math.log(self.sigma) - 0.5 * math.log(2 * math.pi)

    def __repr__(self) -> str:
        bound = f"sensitivity={self.sensitivity}" if self.radius is None else f"radius={self.radius}"
        return f"GaussianMechanism({self.epsilon}, {self.delta}, {bound}, dimension={self.dimension})"


class DiscreteGaussianMechanism(Mechanism):
    """Discrete Gaussian noise on whole numbers: ``P(z | x)`` proportional to ``exp(-(z - x)**2 / (2 variance))``.

    Parameters
    ----------
    epsilon : float, optional
        Privacy level, >= 0. Not given together with `variance`.
    delta : float
        In (0, 1).
    sensitivity : int
        Largest distance between the numbers of two neighbors, >= 1.
    lower, upper : int, optional
        Instead: bounds to which each number is clipped; the sensitivity is their distance.
    variance : float, optional
        Instead of `epsilon`: the parameter, above 1e-3 and at most 1e10; used as the next larger fraction of
        denominator 2**20.

    Attributes
    ----------
    variance : float
        The parameter actually used. It is a little above the law's variance where it is small.
    guarantee : PrivacyGuarantee
        About one number; with ``zcdp = sensitivity**2 / (2 variance)``.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.

    Notes
    -----
    About 130 ns a number. The profile is exact for one number and does not carry over to vectors; for those compose, or
    use the zCDP level, or `GaussianMechanism`.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.

    Examples
    --------
    >>> from quincunx.privacy import DiscreteGaussianMechanism
    >>> mechanism = DiscreteGaussianMechanism(variance=16, delta=1e-6)
    >>> round(mechanism.epsilon, 6), mechanism.guarantee.zcdp
    (1.063436, 0.03125)
    >>> DiscreteGaussianMechanism(1.0, 1e-6).release([5, 7]).shape
    (2,)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        sensitivity: int | None = None,
        lower: int | None = None,
        upper: int | None = None,
        variance: float | None = None,
        relation: Relation = ReplaceOne(),  # noqa: B008
    ) -> None:
        if (epsilon is None) == (variance is None):
            raise TypeError("exactly one of `epsilon` and `variance` must be given")
        self.lower, self.upper = _whole_bounds(lower, upper)
        if self.lower is not None and self.upper is not None:
            if sensitivity is not None:
                raise TypeError("`sensitivity` must not be given beside `lower` and `upper`")
            self.sensitivity = self.upper - self.lower
        elif self.lower is not None or self.upper is not None:
            raise TypeError("`lower` and `upper` must be given together")
        else:
            self.sensitivity = _check.whole(1 if sensitivity is None else sensitivity, "sensitivity", minimum=1)
        if self.sensitivity > 2**40:
            raise ValueError(f"`sensitivity` must be at most 2**40, got {self.sensitivity}")
        level = _check.real(delta, "delta")
        if not 0 < level < 1:
            raise ValueError(f"`delta` must be in (0, 1), got {level}")
        if variance is not None:
            given = _check.real(variance, "variance", positive=True)
            if not 1e-3 < given <= 1e10:
                raise ValueError(f"`variance` must be above 1e-3 and at most 1e10, got {given}")
            self._variance = Fraction(math.ceil(Fraction(given) * 2**20), 2**20)
            found = self._least_epsilon(level)
        else:
            found = _check.real(epsilon, "epsilon")
            if found < 0:
                raise ValueError(f"`epsilon` must be at least 0, got {found}")
            self._variance = self._least_variance(found, level)
        rho = Fraction(self.sensitivity) ** 2 / (2 * self._variance)
        self.guarantee = PrivacyGuarantee(found, level, zcdp=rho, relation=relation)

    def _delta(self, epsilon: float, variance: Fraction) -> float:
        return _core.discrete_gaussian_delta(epsilon, float(variance), self.sensitivity)

    def _least_epsilon(self, delta: float) -> float:
        """Bisect: the profile falls in epsilon."""
        below, above = 0.0, 1.0
        if self._delta(below, self._variance) <= delta:
            return below
        while self._delta(above, self._variance) > delta:
            above *= 2
        while above - below > 1e-12 * above:
            middle = (below + above) / 2
            below, above = (below, middle) if self._delta(middle, self._variance) <= delta else (middle, above)
        return above

    def _least_variance(self, epsilon: float, delta: float) -> Fraction:
        """Bisect on the variance's fractions; the profile has small steps there, so this is a least one nearby."""
        below = Fraction(2098, 2**20)  # 0.002: the least variance considered
        above = max(
            Fraction(math.ceil(gaussian_sigma(epsilon, delta, self.sensitivity) ** 2 * 2**20), 2**20), 2 * below
        )
        while above <= 10**10 and self._delta(epsilon, above) > delta:
            above *= 2
        if above > 10**10:
            raise ValueError(f"`epsilon` must need a variance of at most 1e10, got {epsilon} at delta {delta}")
        while above - below > max(Fraction(1, 2**20), above / 10**9):
            middle = Fraction(math.ceil((below + above) * 2**19), 2**20)
            if middle >= above:
                break
            below, above = (below, middle) if self._delta(epsilon, middle) <= delta else (middle, above)
        return above

    @property
    def variance(self) -> float:
        """The parameter actually used."""
        return float(self._variance)

    @cached_property
    def _noise(self) -> _core.DiscreteGaussianNoise:
        return _core.DiscreteGaussianNoise(self._variance.numerator, self._variance.denominator)

    @cached_property
    def _log_whole(self) -> float:
        """Logarithm of the sum of exp(-k^2 / (2 variance)) over all whole k: by itself, or as Poisson's dual sum."""
        variance = self.variance
        if variance > 1:
            dual = 2 * sum(math.exp(-2 * math.pi**2 * variance * k * k) for k in range(1, 4))
            return 0.5 * math.log(2 * math.pi * variance) + math.log1p(dual)
        return math.log1p(2 * sum(math.exp(-k * k / (2 * variance)) for k in range(1, 12)))

    def _bounds(self) -> tuple[int, int]:
        return (-LARGEST if self.lower is None else self.lower, LARGEST if self.upper is None else self.upper)

    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to whole numbers.

        Parameters
        ----------
        x : array_like of int
            The private numbers; those outside the bounds are clipped.
        insecure_seed : int, optional
            Makes the noise repeatable, for tests: whoever knows the seed removes the noise. The guarantee says so.

        Returns
        -------
        Release
            With int64 values of the shape of `x`.

        Raises
        ------
        ValueError, TypeError
            If `x` does not hold whole numbers.
        """
        numbers = _check.counts(x, "x", minimum=None)
        noisy = self._noise.add(numbers.reshape(-1), *self._bounds(), seed_words(insecure_seed))
        parameters = {"variance": self.variance, "lower": self.lower, "upper": self.upper}
        guarantee = marked(self.guarantee, insecure_seed)
        return Release(
            noisy.reshape(numbers.shape), guarantee, mechanism="discrete-gaussian", parameters=parameters, _owned=True
        )

    def log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the probability of a released number given the private one.

        Parameters
        ----------
        z : array_like of int or Release
            Released numbers.
        x : array_like of int
            Private numbers, clipped as in `release`; broadcast against `z`.

        Returns
        -------
        ndarray of float64
            Of the broadcast shape.

        Raises
        ------
        ValueError, TypeError
            If they are not whole numbers.
        """
        released, private = _check.counts(z, "z", minimum=None), _check.counts(x, "x", minimum=None)
        distance = released.astype(np.float64) - np.clip(private, *self._bounds())
        return -0.5 * distance * distance / self.variance - self._log_whole

    def __repr__(self) -> str:
        return f"DiscreteGaussianMechanism({self.epsilon}, {self.delta}, variance={self.variance})"
