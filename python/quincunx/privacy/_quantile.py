"""Private quantiles: a choice from a declared grid, by how many ranks a number misses the quantile, and its law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Array, Floats, Ints
from quincunx.privacy import _rational, _relations
from quincunx.privacy._curves import Ranged
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import Noise, checked_exponent, fraction, log_of_choice
from quincunx.privacy._relations import AddRemove, DataMetric, NoGuarantee, Relation, ReplaceOne
from quincunx.privacy._release import Release, marked, seed_words

#: A level q is understood as the nearest fraction of so large a denominator: 0.1 as 1/10.
SIMPLE = 10**6
#: Steps of a grid of real numbers, unless another step is given. Not tuned: finer ones cost 20 ns a step.
STEPS = 4096


@dataclass(frozen=True, eq=False)
class QuantileChoice(Noise):
    """A choice g from a grid with ``P(g)`` proportional to ``exp(-exponent loss(g))``.

    ``loss(g) = denominator(q) max(#{x < g} - q n, q n - #{x <= g}, 0)`` is a whole number: by how many ranks g misses
    the q-quantile of the n private numbers x, in the unit of q.

    Parameters
    ----------
    exponent : Fraction
        Of a unit of loss, > 0.
    q : Fraction
        In [0, 1].
    lower, upper, step : int or float
        The grid lower, lower + step, ... up to upper; whole numbers where all three are.

    Examples
    --------
    >>> import math
    >>> from quincunx.privacy import noise
    >>> law = noise.QuantileChoice(math.log(2), 0.5, 0, 3, 1)  # losses 2, 0, 0 and 2 for the numbers 1 and 2
    >>> law.losses([1, 2]).tolist(), law.log_likelihood([1, 2], [1, 2]).round(6).tolist()
    ([2, 0, 0, 2], [-0.916291, -0.916291])
    """

    exponent: Fraction
    q: Fraction
    lower: float
    upper: float
    step: float
    kind = "quantile"
    _by_cell = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", checked_exponent(self.exponent))
        object.__setattr__(self, "q", fraction(self.q, "q"))
        if not 0 <= self.q <= 1:
            raise ValueError(f"`q` must be in [0, 1], got {self.q!s:.40}")
        low, high, step = (_check.real(getattr(self, name), name) for name in ("lower", "upper", "step"))
        if not low < high or math.isinf(high - low):
            raise ValueError(f"`lower` must be below `upper` by a float, got {self.lower} and {self.upper}")
        if not 0 < step <= high - low:
            raise ValueError(f"`step` must be positive and at most upper - lower, got {self.step}")
        _check.room(math.floor(min((high - low) / step, 2.0**60)) * 64, "a grid of so many steps")

    @cached_property
    def grid(self) -> Array:
        """The numbers that may be chosen, int64 or float64."""
        low, high, step = self.lower, self.upper, self.step
        if all(isinstance(number, int) for number in (low, high, step)):
            return np.arange(low, high + 1, step, dtype=np.int64)
        points = low + step * np.arange(math.floor((high - low) / step * (1 + 2.0**-50)) + 1)
        if not (np.diff(points) > 0).all():
            raise ValueError(f"`step` must lead to different floats between {low} and {high}, got {step}")
        capped: Floats = np.minimum(points, high)
        return capped

    def losses(self, x: npt.ArrayLike) -> Ints:
        """Return the loss of every number of the grid.

        Parameters
        ----------
        x : array_like of float, shape (n,)
            The private numbers.

        Returns
        -------
        ndarray of int64, shape (numbers of the grid,)

        Raises
        ------
        ValueError, TypeError
            If they are not finite numbers on one axis.
        """
        values = _check.reals(x, "values")
        if values.ndim != 1:
            raise ValueError(f"`values` must have one axis, of records, got shape {values.shape}")
        grid, one, part = self.grid, self.q.denominator, self.q.numerator * len(values)

        def counted(side: Literal["left", "right"]) -> Ints:
            first = np.searchsorted(grid, values, side)  # from where on a number is below, or not above
            return np.cumsum(np.bincount(first, minlength=len(grid) + 1)[:-1])

        missed: Ints = np.maximum(one * counted("right") - part, part - one * counted("left"))
        return np.maximum(missed, 0)

    def _log_likelihood(self, z: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        chosen = _check.reals(z, "z")
        place = np.clip(np.searchsorted(self.grid, chosen), 0, len(self.grid) - 1)
        if not (self.grid[place] == chosen).all():
            raise ValueError(f"`z` must lie on the grid from {self.lower} to {self.upper} in steps of {self.step}")
        losses = self.losses(x)
        return np.asarray(log_of_choice((losses.min() - losses) * float(self.exponent))[place])


def quantile(
    values: npt.ArrayLike,
    q: float,
    *,
    epsilon: float,
    lower: float,
    upper: float,
    step: float | None = None,
    relation: Relation = ReplaceOne(),
    insecure_seed: int | None = None,
) -> Release:
    """Release a quantile of private numbers, by the exponential mechanism on a declared grid.

    A number g of the grid has probability proportional to ``exp(-epsilon loss(g) / (2 s))``, where ``loss(g) =
    max(#{x < g} - q n, q n - #{x <= g}, 0)`` is by how many ranks it misses the q-quantile, and s how much a neighbor
    changes that: k for ``ReplaceOne(k)``, ``k max(q, 1 - q)`` for ``AddRemove(k)``.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The private numbers, a record each. Those outside the bounds count as beyond all of the grid.
    q : float
        In [0, 1], 0.5 for the median; the nearest fraction of a denominator up to 10**6 is meant.
    epsilon : float
        Privacy level, > 0.
    lower, upper : int or float
        The ends of the grid, chosen without looking at the data.
    step : int or float, optional
        Of the grid: by default 1 where both ends are ints, else ``(upper - lower) / 4096``.
    relation : ReplaceOne or AddRemove
        Which data sets are neighbors.
    insecure_seed : int, optional
        Makes the choice repeatable, for tests: the guarantee then says so.

    Returns
    -------
    Release
        Of one number, int64 where the ends and the step are ints, else float64. Its guarantee is range-bounded, of at
        most `epsilon`: several quantiles compose as ``epsilon**2 / 8`` each.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain, or a number is not finite.
    NoGuarantee
        For other relations.
    TooLargeError
        If the grid does not fit the memory.

    Notes
    -----
    The law is exact: losses are whole numbers in the unit of q, and the choice compares random bits with shares that
    are enclosed between integers. An interval between two neighboring data has the weight of the grid points in it,
    which is its length in steps [1]_. For a change of a record ``#{x < g}`` and ``#{x <= g}`` move by at most 1 while n
    stays; if one comes or goes, they less ``q n`` move by -q or 1 - q. So does the maximum. About 20 ns for each number
    of the grid and 50 ns for each value.

    Spend ``PrivacyGuarantee(epsilon, relation=relation, range_bounded=True)`` before a release, as for each mechanism.

    References
    ----------
    .. [1] A. Smith (2011), Privacy-preserving statistical estimation with optimal convergence rates, STOC.

    Examples
    --------
    >>> from quincunx.privacy import quantile
    >>> median = quantile(range(1000), 0.5, epsilon=1.0, lower=0, upper=2000)
    >>> abs(int(median.values) - 500) < 120  # false with probability below exp(-50)
    True
    >>> median.guarantee.range_bounded, round(median.guarantee.zcdp, 12)
    (True, 0.125)
    """
    level = _check.real(epsilon, "epsilon", positive=True)
    place = _rational.fraction(q, "q").limit_denominator(SIMPLE)
    relation = _relations.check(relation)
    if isinstance(relation, DataMetric):
        raise NoGuarantee(f"no rule is known for quantiles about {relation}")
    low, high = _number(lower, "lower"), _number(upper, "upper")
    if step is None:
        step = 1 if isinstance(low, int) and isinstance(high, int) else high / STEPS - low / STEPS
    one = place.denominator
    moved = relation.records * (max(place.numerator, one - place.numerator) if isinstance(relation, AddRemove) else one)
    exponent = _rational.exponent(level, 2 * moved)
    noise = QuantileChoice(exponent, place, low, high, _number(step, "step"))
    losses = noise.losses(values)
    words = seed_words(insecure_seed)
    chosen = _core.choose(-losses, len(losses), exponent.numerator, exponent.denominator, words)
    guarantee = marked(guarantee_of(Ranged(exponent * 2 * moved), relation), insecure_seed)
    return Release(np.asarray(noise.grid[chosen[0]]), guarantee, noise=noise, _owned=True)


def _number(value: object, name: str) -> float:
    """Return an int as it is, where 64 bits hold it, and any other number as a float."""
    number = _check.real(value, name)
    if isinstance(value, (int, np.integer)):
        return _check.whole(value, name, minimum=-(2**62), maximum=2**62)
    return number
