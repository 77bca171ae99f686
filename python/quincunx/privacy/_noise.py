"""Two-sided geometric noise on whole numbers, and the release of counts with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Curve, Pair, tanh_level
from quincunx.privacy._guarantee import promise
from quincunx.privacy._mechanism import Mechanism, release_doc
from quincunx.privacy._reach import Declared, PerEntry, Reach, Shift
from quincunx.privacy._records import clip_records, record_distance
from quincunx.privacy._relations import DataMetric, Relation, ReplaceOne
from quincunx.privacy._release import Release, labelled, marked, seed_words
from quincunx.privacy._text import refuse_keys
from quincunx.privacy.noise import LARGEST, GeometricNoise, whole_bounds


@dataclass(frozen=True)
class Geometric(Curve):
    """Two-sided geometric noise of ratio ``exp(-decay)``, shifted by a whole number."""

    decay: Fraction
    shift: int
    kind: ClassVar[str] = "geometric"
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

    def bounds(self, other: Curve) -> bool:
        return isinstance(other, Geometric) and self.decay >= other.decay and self.shift >= other.shift


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
        If an argument lies outside its domain, or not exactly one way of saying the noise is used.
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
        curve, copies = self._reach(Fraction(1)).at(self.relation)
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
        self.guarantee = promise(self._reach(exact), self.relation)

    def _about(self, relation: Relation | None, calibrated: bool) -> Relation:
        """Return the relation: the one given, the one that `n` is short for, or the usual one."""
        records = self.sensitivity is not None or (self.lower is not None and self.upper is not None)
        if self.n is not None:
            if self.sensitivity is not None:
                raise TypeError("`n` must not be given beside `sensitivity`")
            near = DataMetric("l1", self.n)
            if relation is not None and relation != near:
                raise TypeError(f"`n` is short for relation={near}, got relation={relation} beside it")
            return near
        if relation is None and calibrated and not records:
            raise TypeError("`epsilon` needs `n`, or `lower` and `upper`")
        return _relations.check(relation or (ReplaceOne() if records else DataMetric("l1", 1)))

    def _reach(self, decay: Fraction) -> Reach:
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
        """The law of what is released, which every release carries."""
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
    def _sampler(self) -> _core.GeometricNoise:
        if self.exponent is not None:
            return geometric_noise(self.exponent)
        assert self._ratio is not None
        return geometric_noise(self._ratio, exponential=False)

    @release_doc
    def release(self, x: npt.ArrayLike, *, insecure_seed: int | None = None) -> Release:
        """Add noise to whole numbers.

        {whole_numbers}
        """
        numbers = _check.counts(_tables.array(x, "x"), "x", minimum=None)
        return labelled(self._release(numbers, insecure_seed), x)

    def _release(self, numbers: npt.NDArray[np.int64], insecure_seed: int | None) -> Release:
        words = seed_words(insecure_seed)
        noisy = self._sampler.add(numbers.reshape(-1), *self.noise.bounds, words)
        guarantee, about = marked(self.guarantee, insecure_seed), {"n": self.n}
        return Release(noisy.reshape(numbers.shape), guarantee, noise=self.noise, about=about, _owned=True)

    def __repr__(self) -> str:
        bounds = "" if self.lower is None and self.upper is None else f", lower={self.lower}, upper={self.upper}"
        size = "" if self.n is None else f", n={self.n}"
        way = f"alpha={self.alpha}" if self.exponent is None else f"epsilon_per_unit={float(self.exponent)}"
        size += "" if self.sensitivity is None else f", sensitivity={self.sensitivity}"
        bounded = self.sensitivity is not None or (self.lower is not None and self.upper is not None)
        usual = ReplaceOne() if bounded and self.n is None else DataMetric("l1", self.n or 1)
        about = "" if self.relation == usual else f", relation={self.relation}"
        return f"GeometricMechanism({way}{size}{bounds}{about})"


@lru_cache(maxsize=64)
def geometric_noise(decay: Fraction, *, exponential: bool = True) -> _core.GeometricNoise:
    """Return the noise of ratio ``exp(-decay)``, or of ratio `decay` itself; its tables take 70 us, a draw 30 ns."""
    return _core.GeometricNoise(decay.numerator, decay.denominator, exponential)


@lru_cache(maxsize=64)
def _for_counts(epsilon: float, n: int) -> GeometricMechanism:
    """Return the mechanism of `privatize`: nothing of it changes, and a release of three counts takes less time."""
    return GeometricMechanism(epsilon, n=n)


def _ratio(alpha: Fraction) -> Fraction:
    """Return alpha as a fraction of 64-bit numbers, not below it: towards more noise."""
    return alpha if alpha.denominator < 2**62 else Fraction(math.ceil(alpha * 2**62), 2**62)


def privatize(
    counts: npt.ArrayLike,
    *,
    epsilon: Any,
    n: int = 1,
    record_bound: int | None = None,
    domain: Any = None,
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
        The private counts, of any shape, >= 0. Masked cells of a masked array are neither read nor released. A Series
        or DataFrame of pandas and a DataArray of xarray keep their labels in the release, which are no secret then. A
        sparse array of SciPy is made dense, as each of its zeros gets noise; so is a networkx graph, the weights of
        parallel edges added, an undirected one above the diagonal alone, so that an edge is one count.
    epsilon : float or array_like of float
        Privacy level, > 0; an array gives one for each entry, or by NumPy's rules for each row or column. The guarantee
        is then the largest, and `alpha` an array of the shape of the counts.
    n : int
        L1 distance within which arrays are to be told apart by no more than `epsilon`, >= 1.
    record_bound : int, optional
        Instead of `n`: the largest sum of a record, >= 1, chosen without looking at the data.
    domain : sequence of labels, or one or None for each axis, optional
        The labels that rows, columns and so on may have, chosen without looking at the data; of a network its nodes.
        The release has these, in this order, whatever the data: what they lack is a zero that gets noise. Without it
        the labels that occur are published, and which ones occur is not protected: `protects` says so.
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
        If a count is negative, fractional or NaN, a column of a DataFrame is called and looks like an identifier, a
        label is not in its domain, or another argument lies outside its domain. Whoever holds the data sees the message
        and nobody else: nothing was released.

    Notes
    -----
    A row of sum s > A, with partial sums C, becomes the differences of ``floor(C A / s)``, of sum A. A record that is
    one number costs n = A.

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
    >>> import pandas
    >>> answers = pandas.Series(["tea", "coffee", "tea"]).value_counts()
    >>> privatize(answers, epsilon=1.0).protects
    'changes of at most 1 in the sum of all counts; which labels occur in axis 0 is published, unprotected'
    >>> declared = privatize(answers, epsilon=1.0, domain=["coffee", "milk", "tea"])
    >>> declared.index, declared.protects
    (('coffee', 'milk', 'tea'), 'changes of at most 1 in the sum of all counts')
    """
    if _tables.is_frame(counts):
        refuse_keys(counts)
    table, axes = _tables.array(counts, "counts", triangle=True), _tables.axes(counts)
    if domain is not None:
        table, axes = _tables.on_domain(counts, axes, domain, "counts")
    release = _privatize(table, epsilon, n, record_bound, insecure_seed)
    release.axes_ = _tables.fitting(axes, release.shape)
    return release


def _privatize(counts: Any, epsilon: Any, n: int, record_bound: int | None, insecure_seed: int | None) -> Release:
    """Release an array of counts."""
    mask = np.ma.getmaskarray(counts) if isinstance(counts, np.ma.MaskedArray) and np.ma.is_masked(counts) else None
    numbers = _check.counts(counts if mask is None else counts.filled(0), "counts")
    if type(epsilon) is not float and np.ndim(epsilon):
        if record_bound is not None:
            raise TypeError("`epsilon` must be one number beside `record_bound`")
        release = _each(numbers, np.asarray(epsilon), n, insecure_seed)
        return release if mask is None else release.masked(mask)
    if record_bound is None:
        level, distance = _check.real(epsilon, "epsilon", positive=True), _check.whole(n, "n", minimum=1)
        release = _for_counts(level, distance)._release(numbers, insecure_seed)
    else:
        bound = _check.whole(record_bound, "record_bound", minimum=1, maximum=LARGEST // 2)
        if _check.whole(n, "n") != 1:
            raise TypeError(f"`n` must not be given beside `record_bound`, got {n}")
        if numbers.ndim == 0:
            raise ValueError("`counts` must have a first axis, of records, where `record_bound` is given; got a number")
        mechanism = GeometricMechanism(epsilon, n=record_distance(numbers, bound))
        release = mechanism._release(clip_records(numbers, bound), insecure_seed)
        # The noise protects every change of n in sum, and so whatever a clipped record is replaced by.
        (part,) = release.guarantee.parts
        reach = Declared(part.curve, ReplaceOne(), f"each clipped to a sum of at most {bound}", whole=True)
        whole = promise(reach, ReplaceOne(), numerics=release.guarantee.numerics)
        about = release.about | {"record_bound": bound}
        release = Release(release.values, whole, noise=release.noise, about=about, _owned=True)
    return release if mask is None else release.masked(mask)


def _each(
    numbers: npt.NDArray[np.int64], epsilon: npt.NDArray[np.float64], n: int, insecure_seed: int | None
) -> Release:
    """Release counts with a ratio for each: an L1 distance of n costs at most n times the largest decay."""
    levels = _check.reals(epsilon, "epsilon")
    try:
        levels = np.broadcast_to(levels, numbers.shape)
    except ValueError:
        raise ValueError(f"`epsilon` must have a shape that fits {numbers.shape}, got {levels.shape}") from None
    if not levels.size:
        raise ValueError(f"`counts` must hold at least one number where `epsilon` is an array, got {numbers.shape}")
    values, alphas = np.empty_like(numbers), np.empty(numbers.shape)
    different = np.unique(levels)
    for place, level in enumerate(different):
        mechanism = GeometricMechanism(float(level), n=n)
        chosen = levels == level
        words = seed_words(None if insecure_seed is None else insecure_seed * len(different) + place)
        values[chosen] = mechanism._sampler.add(numbers[chosen], *mechanism.noise.bounds, words)
        alphas[chosen] = mechanism.alpha
    # The last mechanism has the largest epsilon, so its guarantee bounds all.
    guarantee = marked(mechanism.guarantee, insecure_seed)
    return Release(values, guarantee, noise=GeometricNoise(alphas), about={"n": n}, _owned=True)
