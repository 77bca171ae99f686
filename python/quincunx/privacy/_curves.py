"""Privacy curves: the pairs of laws that dominate a mechanism at one distance, and what follows from them.

A curve is its dominating pair (`pairs`, all of it: nothing of a loss is elsewhere) beside a `failure`; what
zero-concentrated privacy it has (`rho`); what is left of it after k steps (`group`). Every question (delta, epsilon,
Renyi, Kullback-Leibler, total variation) is answered from these. All figures are fractions, rounded towards the weaker
guarantee where they are not exact. The curve of a mechanism's own noise stands beside the mechanism.
"""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from quincunx import _core
from quincunx.privacy import _rational
from quincunx.privacy._rational import upwards
from quincunx.privacy._relations import NoGuarantee

#: The kind of a pair of laws in the core, and its parameters.
Pair = tuple[str, list[float]]
#: Outcomes with their probabilities under P and under Q; or orders with their Renyi divergences.
Table = tuple[tuple[Fraction, Fraction], ...]
ULP = Fraction(1, 2**50)


#: Every curve by its kind, for files; a class enters itself.
CURVES: "dict[str, type[Curve]]" = {}


@dataclass(frozen=True)
class Curve:
    """What a mechanism gives away at one distance."""

    kind: ClassVar[str] = ""

    #: Whether both directions, P over Q and Q over P, are the same.
    symmetric: ClassVar[bool] = True
    #: Whether `rho` may say more of a composition than the law of the total loss does.
    concentrated: ClassVar[bool] = False
    #: The orders at which alone Renyi divergences are known.
    orders: ClassVar[tuple[float, ...]] = ()
    #: Whether less is guaranteed as each of its figures rises.
    grows: ClassVar[bool] = False
    #: The distance by which shifts of several independent copies add up to one shift: "l1" or "l2".
    adds_by: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        CURVES[cls.kind] = cls

    @property
    def failure(self) -> Fraction:
        """The probability with which nothing is guaranteed, beside the profile of `pairs`."""
        return Fraction(0)

    @property
    def ratio(self) -> Fraction:
        """The square of shift over deviation of Gaussian noise, which composes by its sum."""
        return Fraction(0)

    @property
    def rho(self) -> Fraction | None:
        """The zero-concentrated level, None if there is none: at least that of randomized response."""
        return None if self.pure is None else tanh_level(self.pure)

    def pairs(self, *, removed: bool = False) -> list[Pair] | None:
        """Return the dominating pair of a direction for the core; None if only a Renyi bound is known."""
        raise NotImplementedError

    def group(self, steps: Fraction | int) -> "Curve":
        """Return the curve at so many steps of the distance, a whole number but for noise that follows a shift."""
        if steps == 1:
            return self
        if self.pure is None:
            raise NoGuarantee(f"no rule is known for {steps} steps of {self}")
        return Pure(steps * self.pure)

    def along(self, steps: Fraction | int, metric: str) -> "Curve":
        """Return the curve at so many units of a shift, measured by a metric."""
        return self.group(steps)

    def repeated(self, copies: int) -> "tuple[Curve, int]":
        """Return what so many independent copies are: one curve, and how many copies of it."""
        return self, copies

    def worst(self) -> "Curve":
        """Return a symmetric curve that bounds both directions."""
        if not self.symmetric:
            raise NoGuarantee(f"no curve is known that bounds both directions of {self}")
        return self

    def bounds(self, other: "Curve") -> bool:
        """Whether the curve is known to lie above another: of its kind, with all figures at least as large."""
        if not self.grows or type(self) is not type(other):
            return self == other
        return all(getattr(self, field.name) >= getattr(other, field.name) for field in fields(self))

    @property
    def pure(self) -> Fraction | None:
        """The largest loss; None if it is infinite."""
        return None

    @property
    def directions(self) -> tuple[bool, ...]:
        """Whether the data set with the record is on the side of P, or of Q: both, where the curve tells them apart."""
        return (False,) if self.symmetric else (False, True)

    def delta_at(self, epsilon: float) -> float:
        """Return a delta at epsilon."""
        found = [losses_of([(self, 1)], removed=removed) for removed in self.directions]
        return max(1.0 if losses is None else _rational.either(self.failure, losses.delta(epsilon)) for losses in found)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon at delta; infinite if there is none."""
        if self.failure == 1 or delta < self.failure:
            return math.inf
        room = _rational.downwards((Fraction(delta) - self.failure) / (1 - self.failure))
        found = [losses_of([(self, 1)], removed=removed) for removed in self.directions]
        try:
            return max(math.inf if losses is None else losses.epsilon(room) for losses in found)
        except ValueError:  # a delta that only infinite losses leave
            return math.inf

    def renyi(self, order: float, *, removed: bool = False) -> float:
        """Return a bound of the Renyi divergence of an order above 1."""
        bounds = [] if self.rho is None else [upwards(self.rho * Fraction(order))]
        pairs = self.pairs(removed=removed)
        if pairs is not None and not self.failure:
            bounds.append(sum(_core.renyi_divergence(name, values, order) for name, values in pairs))
        return min(bounds, default=math.inf)


def tanh_level(epsilon: Fraction) -> Fraction:
    """Return epsilon tanh(epsilon / 2), the zero-concentrated level of pure privacy, rounded upwards."""
    number = upwards(epsilon)
    if number == math.inf:
        return epsilon
    return min(Fraction(number * math.tanh(number / 2)) * (1 + ULP) + Fraction(5e-324), epsilon**2 / 2, epsilon)


def sized(name: str, size: Fraction) -> list[Pair] | None:
    """Return the pair of a largest loss or range: none for 0, and nothing is known of one beyond all doubles."""
    return None if upwards(size) == math.inf else [(name, [upwards(size)])] if size else []


@dataclass(frozen=True)
class Pure(Curve):
    """Any mechanism whose loss is at most epsilon: a function of randomized response. `known` is its level if known."""

    epsilon: Fraction
    known: Fraction | None = None
    kind: ClassVar[str] = "pure"

    @property
    def rho(self) -> Fraction:
        implied = tanh_level(self.epsilon)
        return implied if self.known is None else min(self.known, implied)

    @property
    def pure(self) -> Fraction:
        return self.epsilon

    def pairs(self, *, removed: bool = False) -> list[Pair] | None:
        return sized("response", self.epsilon)

    @property
    def concentrated(self) -> bool:  # type: ignore[override]
        """Whether a level was given."""
        return self.known is not None

    def group(self, steps: Fraction | int) -> "Pure":
        return Pure(steps * self.epsilon, None if self.known is None else steps**2 * self.known)

    def bounds(self, other: Curve) -> bool:
        return other.pure is not None and self.epsilon >= other.pure and self.known is None


@dataclass(frozen=True)
class Ranged(Curve):
    """The loss lies in an interval of length `range`: a posterior sample, the exponential mechanism.

    It is at most `loss` where that is known to be less.
    """

    range: Fraction
    loss: Fraction | None = None
    kind: ClassVar[str] = "ranged"
    grows: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True

    @property
    def rho(self) -> Fraction:
        return min(self.range**2 / 8, tanh_level(self.pure))

    @property
    def pure(self) -> Fraction:
        return self.range if self.loss is None else min(self.loss, self.range)

    def pairs(self, *, removed: bool = False) -> list[Pair] | None:
        return sized("ranged", self.range)

    def group(self, steps: Fraction | int) -> "Ranged":
        return Ranged(steps * self.range, None if self.loss is None else steps * self.loss)

    def bounds(self, other: Curve) -> bool:
        return isinstance(other, Ranged) and self.range >= other.range and self.pure >= other.pure

    def delta_at(self, epsilon: float) -> float:
        # (e^(R/2) - e^(x/2))^2 / (e^R - 1) = e^x expm1((R - x)/2)^2 / expm1(R), over e^R where that overflows.
        r = upwards(self.range)
        if Fraction(epsilon) >= self.pure:
            return 0.0
        rest = (r - epsilon) * (1 + 2.0**-50)
        value = math.expm1(-rest / 2) ** 2 / -math.expm1(-r) if r else 0.0
        return min(value * (1 + 2.0**-48) + 5e-324, 1.0, *(one.delta_at(epsilon) for one in self._sized()))

    def epsilon_at(self, delta: float) -> float:
        return min(super().epsilon_at(delta), *(one.epsilon_at(delta) for one in self._sized()), math.inf)

    def renyi(self, order: float, *, removed: bool = False) -> float:
        return min(super().renyi(order), *(one.renyi(order) for one in self._sized()), math.inf)

    def _sized(self) -> list[Pure]:
        """Return the curve by the size of the loss alone, where that is known by itself."""
        return [] if self.loss is None else [Pure(self.pure)]


@dataclass(frozen=True)
class Gaussian(Curve):
    """Normal noise; `squared` is the square of shift over deviation."""

    squared: Fraction
    kind: ClassVar[str] = "gaussian"
    grows: ClassVar[bool] = True
    adds_by: ClassVar[str] = "l2"

    @property
    def ratio(self) -> Fraction:
        return self.squared

    @property
    def rho(self) -> Fraction:
        return self.squared / 2

    def pairs(self, *, removed: bool = False) -> list[Pair]:
        return [("gaussian", [_rational.root_upwards(self.squared)])] if self.squared else []

    def group(self, steps: Fraction | int) -> "Gaussian":
        return Gaussian(steps**2 * self.squared)

    def repeated(self, copies: int) -> tuple[Curve, int]:
        return Gaussian(copies * self.squared), 1  # equal shifts are one, sqrt(copies) times as far

    def delta_at(self, epsilon: float) -> float:
        u = _rational.root_upwards(self.squared)
        return _core.gaussian_delta(epsilon, 1.0, u) if u else 0.0

    def epsilon_at(self, delta: float) -> float:
        u = _rational.root_upwards(self.squared)
        if not u:
            return 0.0
        return _core.gaussian_epsilon(delta, 1.0, u) if delta and u <= 1e7 else math.inf


@dataclass(frozen=True)
class Outcomes(Curve):
    """Finitely many outcomes, each with its probability under P and under Q."""

    table: Table
    kind: ClassVar[str] = "outcomes"

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether both columns hold the same pairs."""
        return sorted(self.table) == sorted((q, p) for p, q in self.table)

    @property
    def pure(self) -> Fraction | None:
        possible = [pair for pair in self.table if any(pair)]
        if not all(p and q for p, q in possible):
            return None
        odds = max(max(p / q, q / p) for p, q in possible)
        return Fraction(_rational.log_upwards(odds))

    def pairs(self, *, removed: bool = False) -> list[Pair]:
        flat: list[float] = []
        for p, q in self.table:
            one, other = (q, p) if removed else (p, q)
            flat += [upwards(one), _rational.downwards(other)]
        return [("outcomes", flat)]

    def worst(self) -> "Outcomes":
        """Return the pair whose profile is the larger of both directions': the envelope of two polygons, exactly.

        With x = e^epsilon the profile sum of (P - x Q)+ is a convex polygon. Its slopes are the masses of Q.
        """
        if self.symmetric:
            return self
        turned = tuple((q, p) for p, q in self.table)

        def profile(table: Table, x: Fraction) -> Fraction:
            return sum((p - x * q for p, q in table if p > x * q), Fraction(0))

        kinks = sorted({p / q for table in (self.table, turned) for p, q in table if q} | {Fraction(0)})
        places = set(kinks)
        for a, b in zip(kinks, [*kinks[1:], 2 * kinks[-1] + 1], strict=True):
            lower, upper = (profile(self.table, x) - profile(turned, x) for x in (a, b))
            if lower * upper < 0:
                places.add(a + (b - a) * lower / (lower - upper))
        grid = sorted(places)
        heights = [max(profile(self.table, x), profile(turned, x)) for x in grid]
        slopes = [(h - g) / (b - a) for a, b, g, h in zip(grid, grid[1:], heights, heights[1:], strict=False)] + [
            Fraction(0)
        ]
        table = [(heights[-1], Fraction(0))]  # beyond the last kink nothing of Q is left
        before = slopes[0]
        for x, slope in zip(grid[1:], slopes[1:], strict=True):
            table.append((x * (slope - before), slope - before))
            before = slope
        rest = 1 + slopes[0]  # Q where P has nothing
        if rest > 0:
            table.append((Fraction(0), rest))
        return Outcomes(tuple(pair for pair in table if any(pair)))


@dataclass(frozen=True)
class Approx(Curve):
    """(epsilon, delta) alone: failure with delta, else randomized response. `known` is its level rho if known."""

    epsilon: Fraction
    delta: Fraction
    known: Fraction | None = None
    kind: ClassVar[str] = "approx"

    @property
    def failure(self) -> Fraction:
        return self.delta

    @property
    def rho(self) -> Fraction | None:
        return self.known

    @property
    def concentrated(self) -> bool:  # type: ignore[override]
        """Whether a level was given."""
        return self.known is not None

    def pairs(self, *, removed: bool = False) -> list[Pair] | None:
        return sized("response", self.epsilon)

    def bounds(self, other: Curve) -> bool:
        pair = (other.epsilon, other.delta) if isinstance(other, Approx) else (other.pure, Fraction(0))
        return pair[0] is not None and self.epsilon >= pair[0] and self.delta >= pair[1] and self.known is None

    def group(self, steps: Fraction | int) -> "Approx":
        growth = group_growth(self.epsilon, steps)
        return Approx(
            steps * self.epsilon,
            Fraction(1) if growth is None else min(self.delta * growth, Fraction(1)),
            None if self.known is None else steps**2 * self.known,
        )


@dataclass(frozen=True)
class Zcdp(Curve):
    """A zero-concentrated level alone."""

    level: Fraction
    kind: ClassVar[str] = "zcdp"
    grows: ClassVar[bool] = True
    concentrated: ClassVar[bool] = True

    @property
    def rho(self) -> Fraction:
        return self.level

    def pairs(self, *, removed: bool = False) -> None:
        return None

    def group(self, steps: Fraction | int) -> "Zcdp":
        return Zcdp(steps**2 * self.level)

    def delta_at(self, epsilon: float) -> float:
        level = upwards(self.level)
        return 1.0 if level == math.inf else _core.zcdp_delta(level, epsilon)

    def epsilon_at(self, delta: float) -> float:
        level = upwards(self.level)
        return _core.zcdp_epsilon(level, delta) if delta and level < math.inf else (math.inf if level else 0.0)


@dataclass(frozen=True)
class Renyi(Curve):
    """Renyi divergences at some orders alone, in rising order."""

    table: Table
    kind: ClassVar[str] = "renyi"

    def __post_init__(self) -> None:
        orders = [order for order, _ in self.table]
        if not orders or min(orders) <= 1 or orders != sorted(set(orders)):
            raise ValueError(f"`orders` must rise from above 1, got {list(map(float, orders))}")

    @cached_property
    def orders(self) -> tuple[float, ...]:  # type: ignore[override]
        """The orders, which are doubles."""
        return tuple(float(order) for order, _ in self.table)

    def pairs(self, *, removed: bool = False) -> None:
        return None

    def renyi(self, order: float, *, removed: bool = False) -> float:
        """Divergences rise with the order, and (a - 1) D_a is convex in it: 0 at 1, so chords bound it."""
        exact, below = Fraction(order), (Fraction(1), Fraction(0))
        for above in self.table:
            if exact <= above[0]:
                (a, low), (b, high) = below, above
                chord = ((b - exact) * (a - 1) * low + (exact - a) * (b - 1) * high) / (b - a) / (exact - 1)
                return upwards(min(chord, high))
            below = above
        return math.inf

    def delta_at(self, epsilon: float) -> float:
        return min(order_delta(order, self.renyi(order), epsilon) for order in self.orders)

    def epsilon_at(self, delta: float) -> float:
        return min(order_epsilon(order, self.renyi(order), delta) for order in self.orders)


def order_delta(order: float, divergence: float, epsilon: float) -> float:
    """Return the delta at epsilon that follows from one Renyi divergence, rounded upwards.

    exp((a - 1)(D - epsilon)) (1 - 1/a)^a / (a - 1): Canonne, Kamath and Steinke (2020), proposition 12.
    """
    if divergence == math.inf:
        return 1.0
    terms = [(order - 1) * (divergence - epsilon), order * math.log1p(-1 / order), -math.log(order - 1)]
    largest = math.fsum(terms) + 2.0**-48 * (math.fsum(map(abs, terms)) + (order - 1) * (divergence + epsilon))
    return 1.0 if largest >= 0 else min(math.exp(largest) * (1 + 2.0**-50) + 5e-324, 1.0)


def order_epsilon(order: float, divergence: float, delta: float) -> float:
    """Return the epsilon at delta that follows from one Renyi divergence, rounded upwards; infinite if none does."""
    if divergence == math.inf or not delta:
        return math.inf
    terms = [order * math.log1p(-1 / order), -math.log(order - 1), -math.log(delta)]
    level = divergence + math.fsum(terms) / (order - 1)
    return max(level + 2.0**-48 * (divergence + math.fsum(map(abs, terms)) / (order - 1)), 0.0)


@dataclass(frozen=True)
class Subsampled(Curve):
    """A curve of a mechanism that sees each record with probability `rate`; P is the data set with the record."""

    rate: Fraction
    base: Curve
    kind: ClassVar[str] = "subsampled"
    symmetric: ClassVar[bool] = False
    #: Renyi divergences are sums of as many terms, and computed up to this order.
    most_order: ClassVar[int] = 10_000

    @property
    def failure(self) -> Fraction:
        return self.rate * self.base.failure

    @property
    def pure(self) -> Fraction | None:
        base = self.base.pure
        return None if base is None else Fraction(_rational.amplified_upwards(upwards(base), upwards(self.rate)))

    def pairs(self, *, removed: bool = False) -> list[Pair] | None:
        base, direction = self.base.pairs(removed=removed), "removed" if removed else "added"
        rate = upwards(self.rate)
        return None if base is None else [(f"{direction} {name}", [rate, *values]) for name, values in base]


def group_growth(epsilon: Fraction, steps: Fraction | int) -> Fraction | None:
    """Return (e^(k epsilon) - 1) / (e^epsilon - 1), rounded upwards: how the delta of one step grows for k.

    None beyond all doubles.
    """
    if steps == 1 or not epsilon:
        return Fraction(steps)
    number = upwards(epsilon)
    try:
        factor = Fraction(math.expm1(steps * number) / math.expm1(number))
    except OverflowError:
        return None
    return factor * (1 + Fraction(1, 2**40) * (1 + steps * Fraction(number)))


def surviving(failure: Fraction, count: int) -> Fraction:
    """Return the probability that no one of so many copies fails; from below where it has too many digits."""
    if not failure:
        return Fraction(1)
    if count == 1 or count * failure.denominator.bit_length() <= 2**16:
        return (1 - failure) ** count
    one = upwards(failure)
    if one == 1 or count >= 2**1000:
        return Fraction(0)
    return 1 - min(Fraction(-math.expm1(count * math.log1p(-one) * (1 + 2.0**-50)) * (1 + 2.0**-48)), Fraction(1))


def losses_of(parts: list[tuple[Curve, int]], *, removed: bool = False) -> _core.PrivacyLosses | None:
    """Return the law of the total loss of parts in one direction; None where some have only a Renyi bound."""
    pairs: dict[tuple[str, tuple[float, ...]], int] = {}
    ratio = Fraction(0)
    for curve, count in parts:
        if curve.ratio:  # normal noise composes by the sum of its squared ratios, exactly
            ratio += count * curve.ratio
            continue
        known = curve.pairs(removed=removed)
        if known is None or count >= 2**63:
            return None
        for name, values in known:
            pairs[name, tuple(values)] = pairs.get((name, tuple(values)), 0) + count
    shift = _rational.root_upwards(ratio)
    if shift == math.inf or any(count >= 2**63 for count in pairs.values()):
        return None
    listed = [(name, list(values), count) for (name, values), count in sorted(pairs.items())]
    return _core.PrivacyLosses(listed, shift)
