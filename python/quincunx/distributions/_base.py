"""What the distributions share: checked parameters that broadcast, and one crossing to the core per call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _optional, _rng
from quincunx._docs import assembled
from quincunx._types import Array, Facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats: TypeAlias = "float | npt.NDArray[np.float64]"
Integers: TypeAlias = "int | npt.NDArray[np.int64]"
Column: TypeAlias = npt.NDArray[np.float64]


# Up to so many draws no more than one thread is at work: they are one block of the core (`BLOCK` of `words.rs`).
_FEW = 4096


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape; NumPy takes microseconds where there is nothing to do."""
    first = shapes[0]
    return first if all(shape == first for shape in shapes) else np.broadcast_shapes(*shapes)


def _flatten(columns: Sequence[Column], shape: tuple[int, ...]) -> list[Column]:
    """Bring columns to one length, but for those of length one, which the core shares. None for an empty shape."""
    size = math.prod(shape)
    if not size:
        return []
    return [
        column.reshape(-1)
        if column.size in (1, size)
        else np.ascontiguousarray(np.broadcast_to(column, shape)).reshape(-1)
        for column in columns
    ]


def _filled(shape: tuple[int, ...], fill: Callable[[Floats, int], None]) -> Floats:
    """Return what the core writes into flat numbers of a shape, with so many threads; a single one as a float."""
    _check.room(8 * math.prod(shape), "the result")
    out = np.empty(math.prod(shape))
    if out.size:
        fill(out, _core.available_threads())
    return out.reshape(shape) if shape else float(out[0])


def _rebuild(family: type[Distribution], given: Facts) -> Distribution:
    return family(**given)


#: What the functions of a point or of a probability have in common.
_shared = assembled(
    whole="""
        Parameters
        ----------
        k : array_like of int, shape (...)
            Whole numbers of at most ``2**53`` in size; they broadcast against the parameters.

        Returns
        -------
        float or ndarray of float64, shape (...)
    """,
    points="""
        Parameters
        ----------
        k : array_like of float, shape (...)
            Numbers of at most ``2**53`` in size, rounded down; they broadcast against the parameters.

        Returns
        -------
        float or ndarray of float64, shape (...)
    """,
    not_whole="""
        Raises
        ------
        ValueError
            If a point is not whole, not finite or too large.
        TypeError
            If the points are not numbers.
    """,
    not_finite="""
        Raises
        ------
        ValueError
            If a point is not finite or too large.
        TypeError
            If the points are not numbers.
    """,
    probabilities="""
        Parameters
        ----------
        p : array_like of float, shape (...)
            Probabilities in [0, 1]; they broadcast against the parameters.

        Returns
        -------
        float or ndarray of float64, shape (...)
    """,
    not_a_probability="""
        Raises
        ------
        ValueError
            If a probability is outside [0, 1] or not a number.
    """,
    not_a_logarithm="""
        Raises
        ------
        ValueError
            If a logarithm is positive or not a number.
    """,
    shaped="""
        Returns
        -------
        float or ndarray of float64, the shape of the parameters
    """,
    logarithms="""
        Parameters
        ----------
        logp : array_like of float, shape (...)
            Logarithms of probabilities, <= 0; they broadcast against the parameters.

        Returns
        -------
        float or ndarray of float64, shape (...)
    """,
)


@_shared
class Distribution:
    """An immutable distribution on the integers whose parameters broadcast.

    Methods answer with a float for scalar parameters and points, else with an array of the broadcast shape.
    """

    _family: ClassVar[str]
    __slots__ = ("_columns", "_flat", "_given", "_shape")
    _columns: tuple[Column, ...]
    _flat: list[Column]
    _given: dict[str, Floats]
    _shape: tuple[int, ...]

    def _hold(self, columns: Sequence[Column], given: dict[str, Array], fresh: Sequence[Array] = ()) -> None:
        """Keep checked columns for the core, and the parameters by which the value is shown, compared and rebuilt.

        Arrays are copied, each once, but for those that are `fresh`: made here, and nobody else's.
        """
        own = {id(array): array for array in fresh}
        for array in (*columns, *given.values()):
            if id(array) not in own:
                own[id(array)] = np.array(array)
        shape = _broadcast(*(column.shape for column in columns))
        kept: dict[str, float | Array] = {}
        for name, value in given.items():
            if value.ndim == 0:
                kept[name] = value.item()
            else:
                kept[name] = whole = own[id(value)]
                whole.flags.writeable = False
        object.__setattr__(self, "_columns", tuple(own[id(column)] for column in columns))
        object.__setattr__(self, "_given", kept)
        object.__setattr__(self, "_shape", shape)
        # Kept only where it is a view.
        size = math.prod(shape)
        flat = _flatten(self._columns, shape) if all(column.size in (1, size) for column in self._columns) else []
        object.__setattr__(self, "_flat", flat)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change; make another one")

    def __repr__(self) -> str:
        def show(value: object) -> str:
            return (
                np.array2string(value, separator=", ", threshold=12) if isinstance(value, np.ndarray) else repr(value)
            )

        return f"{type(self).__name__}({', '.join(f'{name}={show(value)}' for name, value in self._given.items())})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self._given)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._given, other._given
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self), self._shape, *((np.asarray(value) + 0.0).tobytes() for value in self._given.values())))

    @property
    def shape(self) -> tuple[int, ...]:
        """The broadcast shape of the parameters."""
        return self._shape

    @property
    def _parameters(self) -> list[Column]:
        """The parameters as flat columns of one length, or of length one where they are shared."""
        return self._flat or _flatten(self._columns, self._shape)

    def _spread(self, points: Column) -> tuple[list[Column], Column, tuple[int, ...]]:
        """Bring parameters and points to such columns."""
        shape = _broadcast(points.shape, self._shape)
        _check.room(8 * (len(self._columns) + 2) * math.prod(shape), "the result")
        *columns, flat = _flatten((*self._columns, points), shape) or [points]
        return columns, flat, shape

    def _evaluate(self, function: str, k: npt.ArrayLike) -> Floats:
        if function in ("pmf", "logpmf"):
            points = _check.counts_as_floats(k, "k", minimum=None)
        else:  # a tail at 2.5 is that at 2
            points = np.floor(_check.reals_where(k, "k", "numbers of at most 2**53 in size", lambda x: abs(x) <= 2**53))
        columns, flat, shape = self._spread(points)
        return _filled(shape, lambda *out: _core.distribution_values(self._family, columns, function, flat, *out))

    def _invert(self, lower: bool, p: npt.ArrayLike) -> Floats:
        checked = _check.reals_where(p, "p", "in [0, 1]", lambda x: (x >= 0) & (x <= 1))
        columns, flat, shape = self._spread(checked)
        return _filled(shape, lambda *out: _core.distribution_quantiles(self._family, columns, lower, flat, *out))

    def _statistic(self, statistic: str) -> Floats:
        columns = self._parameters
        return _filled(self._shape, lambda *out: _core.distribution_statistics(self._family, columns, statistic, *out))

    def pmf(self, k: npt.ArrayLike, /) -> Floats:
        """Probability of the value `k`.

        {whole}
            Relative error at most ``5e-15 * max(1, -log p)``, whatever the parameters.

        {not_whole}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> round(TwoSidedGeometric(alpha=0.5).pmf(1), 12)
        0.166666666667
        """
        return self._evaluate("pmf", k)

    def logpmf(self, k: npt.ArrayLike, /) -> Floats:
        """Logarithm of the probability of the value `k`; finite where the probability itself would be zero.

        {whole}
            Relative error at most 5e-15, or the same absolute error where the logarithm is smaller than one.

        {not_whole}

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> round(Skellam(1e-3, 1e-3).logpmf(1000), 6)
        -12819.885457
        """
        return self._evaluate("logpmf", k)

    def cdf(self, k: npt.ArrayLike, /) -> Floats:
        """Probability of at most `k`.

        {points}
            The lower tail to a relative 1e-13, or 5e-15 times its logarithm where it is tiny.

        {not_finite}

        Notes
        -----
        The shorter tail is summed, outward from its largest term; a long one is integrated, with end corrections.

        Examples
        --------
        >>> from quincunx.distributions import Bessel
        >>> round(Bessel(order=10, argument=20.0).cdf(5), 12)
        0.427957076992
        """
        return self._evaluate("cdf", k)

    def logcdf(self, k: npt.ArrayLike, /) -> Floats:
        """Logarithm of the probability of at most `k`.

        {points}
            Finite where the probability itself would underflow.

        {not_finite}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> round(TwoSidedGeometric(epsilon_per_unit=1.0).logcdf(-2000), 6)
        -2000.313262
        """
        return self._evaluate("logcdf", k)

    def ccdf(self, k: npt.ArrayLike, /) -> Floats:
        """Probability of more than `k`.

        {points}
            The upper tail to a relative 1e-13, or 5e-15 times its logarithm where it is tiny.

        {not_finite}

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> law = Skellam(20.0, 15.0)
        >>> law.cdf(7) + law.ccdf(7)
        1.0
        """
        return self._evaluate("ccdf", k)

    def logccdf(self, k: npt.ArrayLike, /) -> Floats:
        """Logarithm of the probability of more than `k`.

        {points}
            Finite where the probability itself would underflow.

        {not_finite}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> round(TwoSidedGeometric(scale=1.0).logccdf(1999), 6)
        -2000.313262
        """
        return self._evaluate("logccdf", k)

    def icdf(self, p: npt.ArrayLike, /) -> Floats:
        """Smallest value whose ``cdf`` is at least `p`.

        {probabilities}
            Whole numbers, a quantile beyond ``2**53`` in size as that, or the ends of the support (which may be
            infinite) at 0 and 1.

        {not_a_probability}

        Notes
        -----
        A bracket around a normal guess and bisection: the cost of some ten values of ``cdf``.

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> Skellam(20.0, 15.0).icdf(0.5)
        5.0
        """
        return self._invert(True, p)

    def iccdf(self, p: npt.ArrayLike, /) -> Floats:
        """Smallest value whose ``ccdf`` is at most `p`.

        {probabilities}
            Whole numbers, a quantile beyond ``2**53`` in size as that, or the ends of the support (which may be
            infinite) at 1 and 0.

        {not_a_probability}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> TwoSidedGeometric(alpha=0.5).iccdf(1e-9)
        29.0
        """
        return self._invert(False, p)

    def ilogcdf(self, logp: npt.ArrayLike, /) -> Floats:
        """Smallest value whose ``logcdf`` is at least `logp`, where the probability itself would underflow.

        {logarithms}
            Whole numbers, clipped as those of `icdf`, or the ends of the support at minus infinity and 0.

        {not_a_logarithm}

        Notes
        -----
        Bisection between points found by doubling steps away from the median: the cost of some sixty values of
        ``logcdf``.

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> TwoSidedGeometric(epsilon_per_unit=1.0).ilogcdf(-2000.4)
        -2000.0
        """
        return self._invert_log(True, logp)

    def ilogccdf(self, logp: npt.ArrayLike, /) -> Floats:
        """Smallest value whose ``logccdf`` is at most `logp`, where the probability itself would underflow.

        {logarithms}
            Whole numbers, clipped as those of `iccdf`, or the ends of the support at 0 and minus infinity.

        {not_a_logarithm}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> TwoSidedGeometric(epsilon_per_unit=1.0).ilogccdf(-2000.3)
        1999.0
        """
        return self._invert_log(False, logp)

    def _invert_log(self, lower: bool, logp: npt.ArrayLike) -> Floats:
        """Bisect for the first value where the lower log tail reaches `logp`, or the upper one falls to it."""
        wanted = _check.unmasked(logp, "logp")
        if wanted.dtype.kind not in "iuf":
            raise TypeError(f"`logp` must be real numbers, got dtype {wanted.dtype}")
        if not (wanted <= 0).all():
            first = wanted[~(wanted <= 0)].flat[0]
            raise ValueError(f"`logp` must be at most 0, got {float(first)}")
        shape = _broadcast(wanted.shape, self._shape)
        target = np.broadcast_to(wanted.astype(np.float64), shape)
        ends = [np.broadcast_to(np.asarray(self.icdf(end), dtype=np.float64), shape) for end in (0.0, 1.0)]

        nothing, all_of_it = (target == -np.inf, target == 0) if lower else (target == 0, target == -np.inf)
        sought = np.where(nothing | all_of_it, -1.0, target)  # the ends are known: no search walks to them

        def reached(k: Column) -> npt.NDArray[np.bool_]:
            tail = np.asarray(self.logcdf(k) if lower else self.logccdf(k))
            return tail >= sought if lower else tail <= sought

        low, high = (np.clip(end, -(2.0**53), 2.0**53) for end in ends)
        start = np.broadcast_to(np.asarray(self.icdf(0.5), dtype=np.float64), shape)
        edges = []
        for sign in (-1.0, 1.0):
            step, edge = 1.0, np.array(low if sign < 0 else high)
            found = np.zeros(shape, dtype=bool)
            while not found.all() and step < 2.0**54:
                at = np.clip(start + sign * step, low, high)
                hit = ~found & (reached(at) == (sign > 0))
                edge = np.where(hit, at, edge)
                found |= hit
                step *= 2
            edges.append(edge)
        below, above = edges
        while (above - below > 1).any():
            middle = np.floor((below + above) / 2)
            is_reached = reached(middle)
            above, below = np.where(is_reached, middle, above), np.where(is_reached, below, middle)
        first = np.where(reached(below), below, above)
        result = np.where(nothing, ends[0], np.where(all_of_it, ends[1], first))
        return result if shape else float(result[()])

    def median(self) -> Floats:
        """Smallest value whose ``cdf`` is at least one half.

        {shaped}

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> Skellam(20.0, 15.0).median()
        5.0
        """
        return self.icdf(0.5)

    def support(self) -> tuple[Floats, Floats]:
        """Smallest and largest possible value, infinite where there is none.

        Returns
        -------
        tuple of two floats or ndarrays of float64, the shape of the parameters

        Examples
        --------
        >>> from quincunx.distributions import Bessel
        >>> Bessel(order=0, argument=2.0).support()
        (0.0, inf)
        """
        return self.icdf(0.0), self.icdf(1.0)

    def moment(self, order: int = 1, kind: Literal["raw", "central", "standardized"] = "raw") -> Floats:
        """Return the moment of an order up to 4.

        Parameters
        ----------
        order : int
            From 0 to 4.
        kind : {"raw", "central", "standardized"}
            About 0; about the mean; about the mean, in standard deviations.

        {shaped}

        Raises
        ------
        ValueError
            If `order` is above 4, or `kind` is another word.
        TypeError
            If `order` is not a whole number.

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> law = Skellam(3.0, 1.0)
        >>> law.moment(2), law.moment(2, "central"), law.moment(4, "standardized")
        (8.0, 4.0, 3.25)
        """
        order = _check.whole(order, "order", minimum=0, maximum=4)
        _check.one_of(kind, "kind", ["raw", "central", "standardized"])
        one = np.ones(self._shape)
        if kind == "standardized":
            found = (one, 0 * one, one, self.skewness(), self.kurtosis())[order]
        else:
            variance = np.asarray(self.variance())
            spread = np.sqrt(variance)
            # A point mass has no skewness; its central moments are 0.
            cubed = np.nan_to_num(self.skewness()) * spread * variance if order > 2 else 0.0
            # Below 1e-300 steps of 1 are all there is, and the kurtosis overflows.
            fourth = np.where(variance < 1e-300, variance, self.kurtosis() * variance * variance) if order > 3 else 0
            central = [one, 0 * one, variance, cubed, fourth]
            mean = np.asarray(self.mean())
            if kind == "central":
                found = central[order]
            else:
                found = sum(math.comb(order, j) * central[j] * mean ** (order - j) for j in range(order + 1))
        return np.asarray(found) if self._shape else float(np.asarray(found)[()])

    def logentropy(self) -> Floats:
        """Logarithm of the Shannon entropy in nats; minus infinity for a point mass.

        {shaped}

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> round(TwoSidedGeometric(alpha=0.5).logentropy(), 12)
        0.704486906852
        """
        entropy, mode = np.asarray(self.entropy()), np.asarray(self.mode(), dtype=np.float64)
        # Near a point mass the entropy is sum p (1 - log p) over the values beside it.
        beside = [np.clip(mode + step, -(2.0**53), 2.0**53) for step in (-1, 1)]
        with np.errstate(divide="ignore", invalid="ignore"):
            masses = [np.where(k == mode, -np.inf, self.logpmf(k)) for k in beside]
            terms = [np.where(mass > -np.inf, mass + np.log1p(-mass), -np.inf) for mass in masses]
            found = np.where(entropy > 1e-300, np.log(entropy), np.logaddexp(*terms))
        return found if self._shape else float(found)

    def mean(self) -> Floats:
        """Mean.

        {shaped}
            Relative error at most 1e-14 for a positive law, 1e-13 where it is below 1e-20, 2e-13 at a ratio of noise
            below 1e-50; that of ``rate_plus - rate_minus`` for a Skellam law.

        Examples
        --------
        >>> from quincunx.distributions import Bessel
        >>> round(Bessel(order=0, argument=2.0).mean(), 12)
        0.697774657964
        """
        return self._statistic("mean")

    def variance(self) -> Floats:
        """Variance.

        {shaped}
            Relative error at most 1e-13.

        Examples
        --------
        >>> from quincunx.distributions import Bessel
        >>> round(Bessel(order=10, argument=1e8).variance(), 6)
        25000000.0
        """
        return self._statistic("variance")

    def standard_deviation(self) -> Floats:
        """Square root of the variance.

        {shaped}
            Relative error at most 1e-13.

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> TwoSidedGeometric(alpha=0.5).standard_deviation()
        2.0
        """
        return self._statistic("standard_deviation")

    def skewness(self) -> Floats:
        """Third central moment over the variance to the power 3/2.

        {shaped}
            Not a number for a point mass.

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> Skellam(4.0, 0.0).skewness()
        0.5
        """
        return self._statistic("skewness")

    def kurtosis(self, *, convention: str = "non-excess") -> Floats:
        """Fourth central moment over the squared variance.

        Parameters
        ----------
        convention : {"non-excess", "excess"}
            Whether the 3 of a normal is subtracted, as in SciPy.

        {shaped}
            Not a number for a point mass.

        Raises
        ------
        ValueError
            If `convention` is another word.

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> Skellam(3.0, 1.0).kurtosis(convention="excess")
        0.25
        """
        known = _check.one_of(convention, "convention", ["non-excess", "excess"])
        excess = self._statistic("excess_kurtosis")
        return excess if known == "excess" else excess + 3.0

    def mode(self) -> Integers:
        """Value of largest probability, the larger one where two are equal.

        Returns
        -------
        int or ndarray of int64, the shape of the parameters
            Exact where the two largest masses differ in double precision.

        Examples
        --------
        >>> from quincunx.distributions import Bessel
        >>> Bessel(order=0, argument=2.0).mode()
        1
        """
        mode = self._statistic("mode")
        return mode.astype(np.int64) if isinstance(mode, np.ndarray) else int(mode)

    def entropy(self) -> Floats:
        """Shannon entropy in nats.

        {shaped}
            Relative error at most 1e-13, also where it is near zero.

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> round(TwoSidedGeometric(alpha=0.5).entropy(), 12)
        2.022808529415
        """
        return self._statistic("entropy")

    def sample(
        self,
        shape: int | Sequence[int] = (),
        *,
        rng: _rng.RandomSource = None,
        out: npt.NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> Integers:
        """Draw independent values.

        Parameters
        ----------
        shape : int or sequence of int
            How many draws of the whole family: the result has shape ``shape + self.shape``.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of randomness. A Generator advances once per call.
        out : ndarray of int64, optional
            C-contiguous array of the result's shape to write to, and to return.
        threads : int, optional
            Number of threads, by default what the process may use. The draws do not depend on it.

        Returns
        -------
        int or ndarray of int64, shape ``shape + self.shape``
            The draws.

        Raises
        ------
        ValueError
            If `shape` is negative, or `out` has another shape or type, is not contiguous or read-only; then nothing
            is written.
        TypeError
            If an argument is of another type.

        Notes
        -----
        Each element has a stream of its own, so that draws depend on nothing but the source and the position. They are
        for simulation: noise that protects people comes from :mod:`quincunx.privacy`.

        Examples
        --------
        >>> from quincunx.distributions import Skellam
        >>> Skellam([1.0, 100.0], [1.0, 50.0]).sample(3, rng=1).shape
        (3, 2)
        """
        _check.fits(shape, "shape")
        # `ndim` makes an array, which takes longer than a draw
        lengths = shape if type(shape) is tuple else (shape,) if np.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
        full = (*[_check.whole(n, "shape") for n in lengths], *self._shape)
        workers = 1 if threads is None and math.prod(full) <= _FEW else _check.threads(threads)
        if out is None:
            _check.room(8 * math.prod(full), "the sample")
            result = np.empty(full, dtype=np.int64)
        elif not isinstance(out, np.ndarray):
            raise TypeError(f"`out` must be an array of int64, got {type(out).__name__}")
        elif out.shape != full or out.dtype != np.int64 or not out.flags.carray:
            state = f"shape {out.shape}, dtype {out.dtype}" + ("" if out.flags.c_contiguous else ", not C-contiguous")
            state += "" if out.flags.writeable else ", read-only"
            state += "" if out.flags.aligned else ", not aligned"
            raise ValueError(f"`out` must be a writable C-contiguous int64 array of shape {full}, got {state}")
        else:
            result = out
        key = _rng.key(rng)
        if result.size:
            _core.distribution_draws(self._family, self._parameters, key, result.reshape(-1), workers)
        return result if full or out is not None else int(result[()])

    def plot(self, ax: Axes | None = None, *, kind: Literal["pmf", "cdf", "ccdf"] = "pmf", tail: float = 1e-3) -> Axes:
        """Draw probabilities as stems, or distribution functions as steps, one color per law of the family.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the current axes.
        kind : {"pmf", "cdf", "ccdf"}
            What to draw.
        tail : float
            Probability left out at each end.

        {axes}
        ValueError
            If a law has more than 10000 values to draw, `kind` is another word, or `tail` is not in (0, 1/2).
        TypeError
            If `ax` is not a matplotlib axes.

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> ax = TwoSidedGeometric(alpha=0.5).plot(kind="cdf")  # doctest: +SKIP
        """
        _check.one_of(kind, "kind", ["pmf", "cdf", "ccdf"])
        if not 0 < _check.real(tail, "tail") < 0.5:
            raise ValueError(f"`tail` must be in (0, 1/2), got {tail}")
        lows, highs = np.atleast_1d(self.icdf(tail)).reshape(-1), np.atleast_1d(self.iccdf(tail)).reshape(-1)
        if (highs - lows).max(initial=0) > 10_000:
            raise ValueError("the law is too wide for a plot of single values; draw `pmf` on a grid of your own")
        axes: Axes = _optional.axes(ax, current=True)
        laws = self._laws()
        for i, law in enumerate(laws):
            grid = np.arange(lows[i], highs[i] + 1)
            values = np.asarray(getattr(law, kind)(grid))
            color = f"C{i % 10}"
            if kind == "pmf":
                axes.vlines(grid, 0.0, values, colors=color, linewidth=1.0)
                axes.plot(grid, values, "o", color=color, markersize=3.5)
            else:
                axes.step(grid, values, where="post", color=color)
        axes.set_xlabel("value")
        axes.set_ylabel({"pmf": "probability", "cdf": "at most", "ccdf": "more than"}[kind])
        axes.set_ylim(bottom=0.0)
        return axes

    def plot_pmf(self, ax: Axes | None = None, *, tail: float = 1e-3) -> Axes:
        """Draw the probabilities as stems, one color per law of the family: ``plot(kind="pmf")``.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the current axes.
        tail : float
            Probability left out at each end.

        {axes}
        ValueError, TypeError
            As `plot`.

        Examples
        --------
        >>> from quincunx.distributions import TwoSidedGeometric
        >>> ax = TwoSidedGeometric(alpha=0.5).plot_pmf()  # doctest: +SKIP
        """
        return self.plot(ax, tail=tail)

    def _laws(self) -> list[Distribution]:
        """Return the laws of the family one by one."""
        given = {name: np.broadcast_to(value, self._shape).reshape(-1) for name, value in self._given.items()}
        size = math.prod(self._shape)
        return [type(self)(**{name: value[i].item() for name, value in given.items()}) for i in range(size)]
