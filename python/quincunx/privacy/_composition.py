"""What a release is made of, and what follows for all of it: the figures of parts that compose."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx.errors import TooLargeError
from quincunx.privacy import _curves, _rational, _relations
from quincunx.privacy._curves import Approx, Curve, Gaussian, Pure, Ranged, Subsampled
from quincunx.privacy._losses import LossDistribution, connect_the_dots
from quincunx.privacy._privacy_map import Declared, PrivacyMap
from quincunx.privacy._relations import ONE_RECORD, AddRemove, DataMetric, NoGuarantee, Relation

#: A larger delta is no guarantee to a person: whole records may be published with that probability.
LARGEST_DELTA = Fraction(1, 1000)
NUMERICS = ("exact", "float64", "insecure")  # from the best to the worst


def worse(*numerics: str) -> str:
    """Return the worst of words of arithmetic."""
    return max(numerics, key=NUMERICS.index)


@dataclass(frozen=True)
class Part:
    """One kind of release inside a guarantee, with its figures for one copy and how many copies there are.

    Attributes
    ----------
    curve : Curve
        What one copy gives away to neighbors.
    privacy_map : PrivacyMap
        How the curve follows from the relation.
    epsilon, delta : Fraction
        The stated pair of one copy.
    copies, times : int
        How many copies of the curve a neighbor sees in a release, and how many releases there are.
    """

    curve: Curve
    privacy_map: PrivacyMap
    epsilon: Fraction
    delta: Fraction
    copies: int = 1
    times: int = 1

    @classmethod
    def of(
        cls, privacy_map: PrivacyMap, relation: Relation, delta: Fraction, epsilon: Fraction | None = None
    ) -> "Part":
        """Return what a map says of a relation, with the least epsilon at a delta unless a calibrated one is given.

        Only one record that comes or goes fixes the direction of every part of a composition; for every other relation
        a curve that bounds both directions is kept.
        """
        curve, copies = privacy_map.at(relation)
        if not copies:
            curve, copies = Pure(Fraction(0)), 1
        if relation != ONE_RECORD:
            curve = curve.worst()
        if isinstance(curve, Approx):
            if curve.delta >= 1:
                raise NoGuarantee(f"`relation` must leave delta below 1, got {relation} with delta {float(delta)}")
            epsilon, delta = curve.epsilon if epsilon is None else epsilon, curve.delta
        elif epsilon is None and curve.pure is not None and not delta:
            epsilon = curve.pure
        elif epsilon is None:
            level = curve.epsilon_at(_rational.downwards(delta))
            if not math.isfinite(level):
                raise NoGuarantee(f"no epsilon at delta {float(delta)}")
            epsilon = Fraction(level)
        return cls(curve, privacy_map, epsilon, delta, copies)

    def moved(self, relation: Relation) -> "Part":
        """Return the part for another relation, by its privacy map; with its figures where its curve is the same."""
        delta = Fraction(0) if self.curve.pure is not None and not self.delta else self.delta
        moved = Part.of(self.privacy_map, relation, delta)
        same = (moved.curve, moved.copies) == (self.curve, self.copies)
        return self if same else replace(moved, times=self.times)

    def restated(self, relation: Relation) -> "Part":
        """Return the part as one that a rule has proved for the neighbors of another relation, and of no other."""
        privacy_map = Declared(self.curve, relation, self.words, whole=self.privacy_map.whole, copies=self.copies)
        return replace(Part.of(privacy_map, relation, self.delta, self.epsilon), times=self.times)

    @property
    def words(self) -> str:
        """What was declared of it."""
        return self.privacy_map.words if isinstance(self.privacy_map, Declared) else ""

    @property
    def count(self) -> int:
        """How many copies there are in all."""
        return self.times * self.copies

    @property
    def rho(self) -> Fraction | None:
        """The zero-concentrated level of all copies, beyond `failure`; None if there is none."""
        level = self.curve.rho
        if level is None and isinstance(self.curve, Approx):
            level = _curves.tanh_level(self.curve.epsilon)
        return None if level is None else level * self.count

    @property
    def failure(self) -> Fraction:
        """The probability beside which `rho` holds: 0 unless (epsilon, delta) is all that is known."""
        return Fraction(0) if self.curve.rho is not None else 1 - _curves.surviving(self.curve.failure, self.count)

    @property
    def ratio(self) -> Fraction | None:
        """The square of shift over deviation, for Gaussian noise; None for every other part."""
        return self.curve.ratio * self.count if isinstance(self.curve, Gaussian) else None

    @property
    def pure(self) -> Fraction | None:
        """The largest loss of all copies, None if it is infinite."""
        return None if self.curve.pure is None else self.curve.pure * self.count


def counted(parts: Iterable[Part]) -> Counter[Part]:
    """Return how often there is each part."""
    found: Counter[Part] = Counter()
    for part in parts:
        found[replace(part, times=1)] += part.times
    return found


@sections
class Composition:
    """Parts about one relation, and the exact answers of their composition."""

    relation: Relation
    numerics: str
    parts: tuple[Part, ...]

    def _fill(self, relation: Relation, numerics: str, parts: Iterable[Part]) -> None:
        """Fill in a multiset of parts: equal ones are one part with their number."""
        _check.fits(parts, "parts")
        found = tuple(parts)
        for part in found:
            if not isinstance(part, Part):
                raise TypeError(f"`parts` must hold parts of guarantees, got {type(part).__name__}")
        if len(found) > 1:
            merged: dict[Part, int] = {}
            for part in found:
                one = replace(part, times=1)
                merged[one] = merged.get(one, 0) + part.times
            found = tuple(replace(part, times=times) for part, times in merged.items())
        object.__setattr__(self, "relation", _relations.check(relation))
        object.__setattr__(self, "numerics", _check.one_of(numerics, "numerics", NUMERICS))
        object.__setattr__(self, "parts", found)

    @property
    def exact_epsilon(self) -> Fraction:
        """The sum of the parts' epsilons."""
        return sum((part.epsilon * part.count for part in self.parts), Fraction(0))

    @property
    def exact_delta(self) -> Fraction:
        """The sum of the parts' deltas."""
        return min(sum((part.delta * part.count for part in self.parts), Fraction(0)), Fraction(1))

    @property
    def epsilon(self) -> float:
        """The sum of the parts' epsilons."""
        return _rational.upwards(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """The sum of the parts' deltas."""
        return _rational.upwards(self.exact_delta)

    @property
    def zcdp(self) -> float | None:
        """The zero-concentrated level rho: Renyi divergences of order a are at most ``rho a``."""
        if any(part.curve.rho is None for part in self.parts):
            return None
        return _rational.upwards(sum((part.rho or Fraction(0) for part in self.parts), Fraction(0)))

    @property
    def protects(self) -> str:
        """What the guarantee is about, in words, with what was declared of it."""
        relation = self.relation
        if isinstance(relation, DataMetric) and relation.metric == "l1":
            what = "counts" if all(part.privacy_map.whole for part in self.parts) else "values"
            about = f"changes of at most {relation.radius} in the sum of all {what}"
        elif isinstance(relation, DataMetric):
            about = f"changes of at most {relation.radius} in the {relation.metric} distance"
        else:
            count = "one record" if relation.records == 1 else f"{relation.records} records"
            about = count + (" added or removed" if isinstance(relation, AddRemove) else " replaced by any other")
        return ", ".join([about, *filter(None, dict.fromkeys(part.words for part in self.parts))])

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.exact_delta == 0

    @property
    def is_meaningful(self) -> bool:
        """Whether delta is at most 1/1000: beyond, whole records could be published with such a probability."""
        return self.exact_delta <= LARGEST_DELTA

    @property
    def range_bounded(self) -> bool:
        """Whether it is that of a single mechanism whose losses lie in an interval of length epsilon."""
        if [part.count for part in self.parts] != [1]:
            return False
        curve = self.parts[0].curve
        return isinstance(curve, Ranged) and curve.pure == curve.range

    def _counted(self) -> list[tuple[Curve, int]]:
        """Return the curves with their counts."""
        return [(part.curve, part.count) for part in self.parts]

    @property
    def _directions(self) -> tuple[bool, ...]:
        """Whether the data set with the record is on the side of P, or of Q: both, where curves tell them apart."""
        return (False,) if all(part.curve.symmetric for part in self.parts) else (False, True)

    @cached_property
    def _losses(self) -> list[_core.PrivacyLosses] | None:
        """The laws of the total loss in each direction; None where they are not known or too large."""
        counted = self._counted()
        try:
            found = [_curves.losses_of(counted, removed=removed) for removed in self._directions]
        except TooLargeError:
            return None
        return None if any(losses is None for losses in found) else found  # type: ignore[return-value]

    @property
    def _orders(self) -> list[float]:
        """The orders at which alone the Renyi divergences of some part are known, in compositions with it.

        Those of a random subset are computed up to an order: higher ones are left out.
        """
        curves = [part.curve for part in self.parts] if self._losses is None else []
        most = Subsampled.most_order if any(isinstance(curve, Subsampled) for curve in curves) else math.inf
        return sorted({order for curve in curves for order in curve.orders if order <= most})

    @cached_property
    def _failure(self) -> Fraction:
        """The probability beside which the profiles hold."""
        survived = (_curves.surviving(curve.failure, count) for curve, count in self._counted())
        return 1 - math.prod(survived, start=Fraction(1))

    @cached_property
    def _concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The total zero-concentrated level and the probability beside which it holds; None where it adds nothing."""
        if not any(part.curve.concentrated for part in self.parts) and self._losses is not None:
            return None  # the law of the total loss says more
        if any(part.rho is None for part in self.parts):
            return None
        level = sum((part.rho or Fraction(0) for part in self.parts), Fraction(0))
        if _rational.upwards(level) == math.inf:
            return None
        return level, 1 - math.prod((1 - part.failure for part in self.parts), start=Fraction(1))

    def delta_at(self, epsilon: float) -> float:
        """Return a delta for which the release is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : float
            Privacy level, >= 0.

        Returns
        -------
        float
            Never below the least such delta. For randomized response, geometric and Gaussian noise it is that delta to
            1e-13, and to 1e-16 times the number of releases where these are many, 2e-12 beside Gaussian noise; for
            mixtures of other mechanisms to 1e-2 or better.

        Raises
        ------
        ValueError
            If epsilon is negative or not finite.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round((2 * PrivacyGuarantee(1.0)).delta_at(1.5), 6)
        0.210288
        """
        level = _check.nonnegative(epsilon, "epsilon")
        found = [1.0]
        if Fraction(level) >= self.exact_epsilon:
            found.append(self.delta)
        if len(self.parts) == 1 and self.parts[0].count == 1:
            found.append(self.parts[0].curve.delta_at(level))
        elif self._losses is not None:
            found.append(_rational.either(self._failure, max(losses.delta(level) for losses in self._losses)))
        if self._concentrated is not None:
            rho, beside = self._concentrated
            found.append(_rational.either(beside, _core.zcdp_delta(_rational.upwards(rho), level)))
        found += [_curves.order_delta(order, self.renyi(order), level) for order in self._orders]
        return min(found)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon for which the release is (epsilon, delta)-private.

        Parameters
        ----------
        delta : float
            In (0, 1); 0 is allowed where the guarantee is pure.

        Returns
        -------
        float
            Never below the least such epsilon; as sharp as `delta_at`. Infinite if there is none.

        Raises
        ------
        ValueError
            If delta is outside its domain.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee(0.1, 1e-7, zcdp=0.05).epsilon_at(1e-5), 3)
        0.1
        """
        level = _check.real(delta, "delta")
        if not (0 < level < 1 or (level == 0 and self.is_pure)):
            raise ValueError(f"`delta` must be in (0, 1), got {level}")
        exact = Fraction(level)
        found = [self.epsilon] if exact >= self.exact_delta else []
        if level == 0:
            return min(found)
        if len(self.parts) == 1 and self.parts[0].count == 1:
            found.append(self.parts[0].curve.epsilon_at(level))
        elif self._losses is not None and exact > self._failure:
            room = _rational.downwards((exact - self._failure) / (1 - self._failure))
            try:
                found.append(max(losses.epsilon(room) for losses in self._losses))
            except ValueError:
                pass  # a delta that only infinite losses leave, or a Gaussian ratio beyond its domain
        if self._concentrated is not None and exact > self._concentrated[1]:
            rho, beside = self._concentrated
            room = _rational.downwards((exact - beside) / (1 - beside))
            if room > 0:
                found.append(_core.zcdp_epsilon(_rational.upwards(rho), room))
        found += [_curves.order_epsilon(order, self.renyi(order), level) for order in self._orders]
        return min(found, default=math.inf)

    def renyi(self, order: float) -> float:
        """Return a bound of the Renyi divergence between the outputs for two neighbors.

        Parameters
        ----------
        order : float
            Above 1.

        Returns
        -------
        float
            In nats, never below the least bound that follows from what is known; infinite if there is none.

        Raises
        ------
        ValueError
            If the order is not above 1 and finite, or above 10000 for a mechanism on a sample of the records.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee(1.0).renyi(2), 6)
        0.735326
        """
        level = _check.real(order, "order")
        if not level > 1:
            raise ValueError(f"`order` must be above 1, got {level}")
        return max(
            math.fsum(part.count * part.curve.renyi(level, removed=removed) for part in self.parts)
            for removed in self._directions
        ) * (1 + 2.0**-50)

    def to_zcdp(self) -> float:
        """Return the zero-concentrated level of all parts together.

        Returns
        -------
        float
            Their sum, as `zcdp`.

        Raises
        ------
        NoGuarantee
            If a part has none.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee(1.0).to_zcdp(), 12)  # epsilon tanh(epsilon / 2)
        0.46211715726
        """
        level = self.zcdp
        if level is None:
            raise NoGuarantee("no zCDP: of a part only epsilon and delta are known")
        return level

    def total_variation(self) -> float:
        """Return a bound of the total variation distance between the outputs for two neighbors.

        Returns
        -------
        float
            ``tanh(epsilon / 4)`` for a range-bounded guarantee, ``tanh(epsilon / 2)`` for a pure one.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee(1.0, range_bounded=True).total_variation(), 10)
        0.2449186624
        """
        return self.delta_at(0.0)

    def kl_divergence(self) -> float:
        """Return a bound of the Kullback-Leibler divergence between the outputs for two neighbors, in nats.

        Returns
        -------
        float
            At most ``zcdp``, and ``epsilon tanh(epsilon / 2)`` of a single pure guarantee; infinite if nothing is
            known.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> PrivacyGuarantee(1.0, range_bounded=True).kl_divergence()
        0.125
        """
        found = [math.inf if self.zcdp is None else self.zcdp, *map(self.renyi, self._orders)]
        if self.is_pure:
            found.append(_rational.upwards(_curves.tanh_level(self.exact_epsilon)))
        return min(found)

    def to_loss_distribution(self, step: float = 1e-3, *, tail: float = 1e-12) -> LossDistribution:
        """Return a law of privacy losses that dominates the release, for accountants that compose such laws.

        Parameters
        ----------
        step : float
            Distance of the losses, > 0, in nats.
        tail : float
            Losses go up to the epsilon at this delta, in (0, 1); what is beyond is infinite.

        Returns
        -------
        LossDistribution
            Its `delta_at` is nowhere below the delta of the release, but for roundings of 1e-12; above that of the
            guarantee by the curvature between two losses, about ``step**2 / 8``, and by `tail`, and below it where
            that is not convex in ``exp(epsilon)``, as bounds by orders are not. It bounds both directions.

        Raises
        ------
        ValueError, TypeError
            If an argument lies outside its domain, no epsilon up to 700 has the delta `tail`, or losses are more than
            10**6 or above 709.

        Notes
        -----
        One call of `delta_at` for each loss.

        References
        ----------
        .. [1] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar and P. Manurangsi (2022), Connect the dots: tighter discrete
           approximations of privacy loss distributions, PoPETs.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> noise = PrivacyGuarantee.of_gaussian(2.0, 1e-6)
        >>> law = noise.to_loss_distribution(step=0.01)
        >>> 0 <= law.delta_at(1.0) / noise.delta_at(1.0) - 1 < 1e-3
        True
        """
        width, rest = _check.real(step, "step", positive=True), _check.open_probability(tail, "tail")
        end = self.epsilon_at(rest)
        if not end <= 700:
            raise ValueError(f"`tail` must be a delta at an epsilon of at most 700, got {rest}, which needs {end:g}")
        if not end / width <= 500_000:
            raise ValueError(f"`step` must leave at most 10**6 losses up to {end:g}, got {width}")
        most = math.ceil(end / width * (1 - 2.0**-40))
        if not most * width <= 709:
            raise ValueError(f"`step` must have multiples from {end:g}, the epsilon at `tail`, to 709, got {width}")
        upper = np.array([self.delta_at(width * place) for place in range(most + 1)])
        return connect_the_dots(width, most, upper)
