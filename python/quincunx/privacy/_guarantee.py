"""What a release guarantees: epsilon, delta, zCDP, for which neighbors, and by what arithmetic."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from quincunx import _check, _core, _optional
from quincunx._docs import sections
from quincunx._html import table_html
from quincunx.errors import TooLargeError
from quincunx.privacy import _curves, _rational, _relations, _words
from quincunx.privacy._curves import Approx, Curve, Gaussian, Outcomes, Pure, Ranged, Renyi, Zcdp
from quincunx.privacy._losses import LossDistribution, connect_the_dots
from quincunx.privacy._reach import Declared, Reach
from quincunx.privacy._relations import ONE_RECORD, AddRemove, DataMetric, NoGuarantee, Relation, ReplaceOne

#: A larger delta is no guarantee to a person: whole records may be published with that probability.
LARGEST_DELTA = Fraction(1, 1000)
NUMERICS = ("exact", "float64", "insecure")  # from the best to the worst


@dataclass(frozen=True)
class Part:
    """One kind of release inside a guarantee, with its figures for one copy and how many copies there are.

    Attributes
    ----------
    curve : Curve
        What one copy gives away to neighbors.
    reach : Reach
        How the curve follows from the relation.
    epsilon, delta : Fraction
        The stated pair of one copy.
    copies, times : int
        How many copies of the curve a neighbor sees in a release, and how many releases there are.
    """

    curve: Curve
    reach: Reach
    epsilon: Fraction
    delta: Fraction
    copies: int = 1
    times: int = 1

    @classmethod
    def of(cls, reach: Reach, relation: Relation, delta: Fraction, epsilon: Fraction | None = None) -> "Part":
        """Return what a reach says of a relation, with the least epsilon at a delta unless a calibrated one is given.

        Only one record that comes or goes fixes the direction of every part of a composition; for every other relation
        a curve that bounds both directions is kept.
        """
        curve, copies = reach.at(relation)
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
        return cls(curve, reach, epsilon, delta, copies)

    def moved(self, relation: Relation) -> "Part":
        """Return the part for another relation, by its reach; its figures are kept where its curve is the same."""
        delta = Fraction(0) if self.curve.pure is not None and not self.delta else self.delta
        moved = Part.of(self.reach, relation, delta)
        same = (moved.curve, moved.copies) == (self.curve, self.copies)
        return self if same else replace(moved, times=self.times)

    def restated(self, relation: Relation) -> "Part":
        """Return the part as one that a rule has proved for the neighbors of another relation, and of no other."""
        reach = Declared(self.curve, relation, self.words, whole=self.reach.whole, copies=self.copies)
        return replace(Part.of(reach, relation, self.delta, self.epsilon), times=self.times)

    @property
    def words(self) -> str:
        """What was declared of it."""
        return self.reach.words if isinstance(self.reach, Declared) else ""

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
        return Fraction(0) if self.curve.rho is not None else 1 - (1 - self.curve.failure) ** self.count

    @property
    def ratio(self) -> Fraction | None:
        """The square of shift over deviation, for Gaussian noise; None for every other part."""
        return self.curve.ratio * self.count if isinstance(self.curve, Gaussian) else None

    @property
    def pure(self) -> Fraction | None:
        """The largest loss of all copies, None if it is infinite."""
        return None if self.curve.pure is None else self.curve.pure * self.count


def promise(
    reach: Reach,
    relation: Relation,
    delta: float | Fraction = 0,
    *,
    epsilon: float | Fraction | None = None,
    numerics: str = "exact",
) -> "PrivacyGuarantee":
    """Return the guarantee that a reach proves about a relation: the only maker of guarantees.

    `epsilon` is the level that noise was calibrated for at `delta`, where it was; else the least one is found. Raises
    `NoGuarantee` where the reach has no answer.
    """
    relation = _relations.check(relation)
    level = None if epsilon is None else Fraction(epsilon)
    return PrivacyGuarantee.of_parts(
        (Part.of(reach, relation, Fraction(delta), level),), relation=relation, numerics=numerics
    )


@sections
@dataclass(frozen=True, repr=False, init=False, eq=False)
class PrivacyGuarantee:
    """A guarantee about a release.

    For every two neighbors x, y of `relation` and every set B of outcomes, ``P(B | x) <= exp(epsilon) P(B | y) +
    delta``. Beside this pair a guarantee remembers what the release was made of, so that `delta_at` and `epsilon_at`
    give the exact trade-off of a composition and not only the sums, and `at` what is proved at another distance.

    Parameters
    ----------
    epsilon : float or Fraction
        Privacy level, >= 0 and finite.
    delta : float or Fraction
        In [0, 1).
    relation : ReplaceOne, AddRemove or DataMetric
        Which data sets are neighbors.
    numerics : {"exact", "float64", "insecure"}
        Whether the outputs have exactly the stated law, have it up to floating-point rounding (which an attacker may
        exploit), or were drawn from a seed that somebody knows (no protection at all).
    range_bounded : bool
        Whether the logarithm of the density ratio of any two neighbors lies in an interval of *length* epsilon, as for
        a sample of a posterior; only with ``delta = 0``. Then ``zcdp = epsilon**2 / 8``.
    zcdp : float, optional
        The zero-concentrated level rho, where more is known than follows from epsilon.

    Attributes
    ----------
    epsilon, delta : float
        As floats that are never below the exact values.
    exact_epsilon, exact_delta : Fraction
        The exact values.
    zcdp : float or None
        The zero-concentrated level, None if there is none.
    parts : tuple of Part
        What the guarantee is made of, with the figures that a filter charges: `epsilon` and `delta` (the stated pair of
        one copy), `count`, and of all copies `pure`, `rho` beyond `failure`, and `ratio` (Gaussian u squared).

    {domain}

    Notes
    -----
    ``g1 & g2`` is the guarantee of both releases about the same data, ``n * g`` that of n releases. This is exact
    composition, which holds if all parameters are announced in advance (mechanisms, order and what is left out may
    then depend on earlier outcomes). For parameters chosen in the light of outcomes use a `Budget`. Relations are not
    mixed: that is a TypeError.

    References
    ----------
    .. [1] P. Kairouz, S. Oh and P. Viswanath (2015), The composition theorem for differential privacy, ICML.
    .. [2] C. Canonne, G. Kamath and T. Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.

    Examples
    --------
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> g = PrivacyGuarantee(0.5)
    >>> g & g
    PrivacyGuarantee(epsilon=1.0, delta=0.0, relation=ReplaceOne(), numerics='exact')
    >>> round((20 * g).epsilon_at(1e-3), 3)  # the sum is 10
    7.937
    >>> posterior_sample = PrivacyGuarantee(0.1, range_bounded=True)
    >>> round((100 * posterior_sample).zcdp, 12)
    0.125
    >>> round((100 * posterior_sample).epsilon_at(1e-6), 6)
    2.419093
    """

    relation: Relation
    numerics: str
    parts: tuple[Part, ...]

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0,
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
        numerics: str = "exact",
        range_bounded: bool = False,
        zcdp: float | Fraction | None = None,
    ) -> None:
        exact = _rational.fraction(epsilon, "epsilon")
        failure = _rational.fraction(delta, "delta", below_one=True)
        if not isinstance(range_bounded, bool):
            raise TypeError(f"`range_bounded` must be True or False, got {range_bounded!r}")
        if range_bounded and failure:
            raise ValueError(f"`range_bounded` must be False where delta is positive, got delta = {float(failure)}")
        known = None if zcdp is None else _rational.fraction(zcdp, "zcdp")
        curve: Curve = Pure(exact, known)
        if failure:
            curve = Approx(exact, failure, known)
        elif range_bounded and (known is None or known >= exact**2 / 8):
            curve = Ranged(exact)
        about = _relations.check(relation)
        self._fill(about, numerics, (Part.of(Declared(curve, about), about, failure),))

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

    @classmethod
    def of_parts(cls, parts: Iterable[Part], *, relation: Relation, numerics: str = "exact") -> "PrivacyGuarantee":
        """Return the guarantee of parts that were proved for a relation.

        Parameters
        ----------
        parts : iterable of Part
            What it is made of.
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            Their composition.

        Raises
        ------
        ValueError, TypeError
            If the relation or the word is not one.
        """
        guarantee = object.__new__(cls)
        guarantee._fill(relation, numerics, parts)
        return guarantee

    @classmethod
    def of_gaussian(
        cls,
        sigma: float,
        delta: float,
        *,
        sensitivity: float = 1.0,
        epsilon: float | None = None,
        relation: Relation = ReplaceOne(),  # noqa: B008
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of Gaussian noise.

        Parameters
        ----------
        sigma, delta, sensitivity : float
            As for `gaussian_epsilon`.
        epsilon : float, optional
            The level that `sigma` was calibrated for, if it was.
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            With ``zcdp = (sensitivity / sigma)**2 / 2``.

        Raises
        ------
        ValueError
            If an argument lies outside its domain, or this sigma does not keep `epsilon`.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> one = PrivacyGuarantee.of_gaussian(sigma=5.0, delta=1e-6)
        >>> round(one.epsilon, 4), round((one & one).epsilon_at(1e-6), 4)
        (0.8341, 1.212)
        """
        given = {"sigma": sigma, "delta": delta, "sensitivity": sensitivity}
        sigma, delta, sensitivity = (_check.real(value, name) for name, value in given.items())
        if epsilon is None:
            epsilon = _core.gaussian_epsilon(delta, sigma, sensitivity)
        elif _core.gaussian_sigma(epsilon, delta, sensitivity) > sigma:
            raise ValueError(f"`epsilon` must be one that sigma = {sigma} keeps at delta = {delta}, got {epsilon}")
        curve = Gaussian((Fraction(sensitivity) / Fraction(sigma)) ** 2)
        return promise(Declared(curve, relation), relation, delta, epsilon=epsilon, numerics=numerics)

    @classmethod
    def of_zcdp(
        cls,
        rho: float | Fraction,
        delta: float,
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism of which only the zero-concentrated level is known.

        Parameters
        ----------
        rho : float or Fraction
            The level, >= 0.
        delta : float
            Where epsilon is stated, in (0, 1).
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            With the least epsilon at `delta` that follows.

        {domain}

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee.of_zcdp(0.125, 1e-6).epsilon, 6)
        2.419093
        """
        level = _check.real(delta, "delta")
        if not 0 < level < 1:
            raise ValueError(f"`delta` must be in (0, 1), got {level}")
        curve = Zcdp(_rational.fraction(rho, "rho"))
        return promise(Declared(curve, relation), relation, level, numerics=numerics)

    @classmethod
    def of_outcomes(
        cls,
        p: Iterable[float | Fraction],
        q: Iterable[float | Fraction],
        delta: float | Fraction = 0,
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism that is dominated by two laws on finitely many outcomes.

        Parameters
        ----------
        p, q : sequence of float or Fraction
            The probabilities of the outcomes. For `AddRemove`, p is about the data set with the record.
        delta : float or Fraction
            Where epsilon is stated.
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            With the exact profile, in both directions.

        Raises
        ------
        ValueError
            If the lists do not fit, hold no probabilities, or no epsilon has this delta.

        Examples
        --------
        >>> from fractions import Fraction
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> g = PrivacyGuarantee.of_outcomes([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
        >>> round(g.epsilon, 6)  # ln 3
        1.098612
        """
        _check.fits(p, "p")
        _check.fits(q, "q")
        table = tuple(
            (_rational.fraction(a, "p"), _rational.fraction(b, "q")) for a, b in zip(list(p), list(q), strict=True)
        )
        for name, column in (("p", 0), ("q", 1)):
            total = sum((pair[column] for pair in table), Fraction(0))
            if abs(total - 1) > Fraction(1, 2**40):
                raise ValueError(f"`{name}` must sum to 1, got {float(total)}")
        failure = _rational.fraction(delta, "delta", below_one=True)
        return promise(Declared(Outcomes(table), relation), relation, failure, numerics=numerics)

    @classmethod
    def of_renyi(
        cls,
        orders: Iterable[float],
        divergences: Iterable[float],
        delta: float,
        *,
        relation: Relation = ReplaceOne(),  # noqa: B008
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism of which Renyi divergences are known, as other accountants report them.

        Parameters
        ----------
        orders : sequence of float
            Above 1, rising.
        divergences : sequence of float
            For each order a bound of the divergence in nats, in both directions, >= 0; infinite ones are left out.
        delta : float
            Where epsilon is stated, in (0, 1).
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            With the least epsilon at `delta` that follows from one of the orders. In compositions divergences add up,
            at these orders.

        {domain}

        References
        ----------
        .. [1] I. Mironov (2017), Renyi differential privacy, CSF.
        .. [2] C. Canonne, G. Kamath and T. Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS,
           proposition 12.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> gaussian = PrivacyGuarantee.of_gaussian(4.0, 1e-5)
        >>> orders = [1.5, 2, 4, 8, 16, 32, 64]
        >>> told = PrivacyGuarantee.of_renyi(orders, [gaussian.renyi(order) for order in orders], 1e-5)
        >>> round(gaussian.epsilon, 3), round(told.epsilon, 3)
        (0.926, 1.018)
        """
        _check.fits(orders, "orders")
        _check.fits(divergences, "divergences")
        level = _check.real(delta, "delta")
        if not 0 < level < 1:
            raise ValueError(f"`delta` must be in (0, 1), got {level}")
        ends, bounds = list(orders), list(divergences)
        if len(ends) != len(bounds):
            raise ValueError(f"`divergences` must have length {len(ends)}, got {len(bounds)}")
        known = [(a, bound) for a, bound in zip(ends, bounds, strict=True) if bound != math.inf]
        curve = Renyi(
            tuple((_rational.fraction(a, "orders"), _rational.fraction(bound, "divergences")) for a, bound in known)
        )
        return promise(Declared(curve, relation), relation, level, numerics=numerics)

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
            what = "counts" if all(part.reach.whole for part in self.parts) else "values"
            about = f"changes of at most {relation.radius} in the sum of all {what}"
        elif isinstance(relation, DataMetric):
            about = f"changes of at most {relation.radius} in the {relation.metric} distance"
        else:
            count = "one record" if relation.records == 1 else f"{relation.records} records"
            about = count + (" added or removed" if isinstance(relation, AddRemove) else " replaced by any other")
        said = dict.fromkeys(part.words for part in self.parts)
        return ", ".join([about, *filter(None, said)])

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
        return len(self.parts) == 1 and isinstance(self.parts[0].curve, Ranged) and self.parts[0].count == 1

    def _repr_html_(self) -> str:
        rows = {"epsilon": self.epsilon, "delta": self.delta, "relation": self.relation, "numerics": self.numerics}
        return table_html("Privacy guarantee", rows)

    def __repr__(self) -> str:
        figures = f"epsilon={self.epsilon}, delta={self.delta}"
        return f"PrivacyGuarantee({figures}, relation={self.relation}, numerics={self.numerics!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        same = (self.relation, self.numerics) == (other.relation, other.numerics)
        return same and frozenset(self.parts) == frozenset(other.parts)

    def __hash__(self) -> int:
        return hash((self.relation, self.numerics, frozenset(self.parts)))

    def __getstate__(self) -> dict[str, Any]:
        return {"relation": self.relation, "numerics": self.numerics, "parts": self.parts}

    def __and__(self, other: object) -> "PrivacyGuarantee":
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.relation != other.relation:
            raise TypeError(
                f"guarantees of different relations do not compose: {self.relation} and {other.relation}; "
                "`at(distance)` restates a guarantee for another radius"
            )
        numerics = max(self.numerics, other.numerics, key=NUMERICS.index)
        return PrivacyGuarantee.of_parts((*self.parts, *other.parts), relation=self.relation, numerics=numerics)

    def __mul__(self, times: object) -> "PrivacyGuarantee":
        if isinstance(times, bool) or not isinstance(times, (int, float, np.integer)):
            return NotImplemented
        count = _check.whole(times, "times", minimum=1)
        parts = (replace(part, times=part.times * count) for part in self.parts)
        return PrivacyGuarantee.of_parts(parts, relation=self.relation, numerics=self.numerics)

    __rmul__ = __mul__

    def marked(self, numerics: str) -> "PrivacyGuarantee":
        """Return the same guarantee by another arithmetic.

        Parameters
        ----------
        numerics : {"exact", "float64", "insecure"}
            The word; a better one than before is not taken.

        Returns
        -------
        PrivacyGuarantee
            With the worse of both words.
        """
        word = max(self.numerics, _check.one_of(numerics, "numerics", NUMERICS), key=NUMERICS.index)
        return PrivacyGuarantee.of_parts(self.parts, relation=self.relation, numerics=word)

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
        """The orders at which alone the Renyi divergences of some part are known, in compositions with it."""
        return sorted({order for part in self.parts for order in part.curve.orders}) if self._losses is None else []

    @cached_property
    def _failure(self) -> Fraction:
        """The probability beside which the profiles hold."""
        return 1 - _curves.surviving(self._counted())

    @cached_property
    def _concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The total zero-concentrated level and the probability beside which it holds; None where it adds nothing."""
        if not any(part.curve.concentrated for part in self.parts) and self._losses is not None:
            return None  # the law of the total loss says more
        if any(part.rho is None for part in self.parts):
            return None
        level = sum((part.rho or Fraction(0) for part in self.parts), Fraction(0))
        return level, 1 - _curves.surviving([(part.curve, part.count) for part in self.parts if part.failure])

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
            1e-13, and to 1e-16 times the number of releases where these are many; for mixtures of other mechanisms to
            1e-2 or better.

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
        level = _check.real(epsilon, "epsilon")
        if level < 0:
            raise ValueError(f"`epsilon` must be at least 0, got {level}")
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
            Its `delta_at` is nowhere below that of the guarantee, but for roundings of 1e-14; above it by the
            curvature between two losses, about ``step**2 / 8``, and by `tail`. It bounds both directions.

        Raises
        ------
        ValueError, TypeError
            If an argument lies outside its domain, no epsilon has the delta `tail`, or losses are more than 10**6.

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
        width, rest = _check.real(step, "step", positive=True), _check.real(tail, "tail")
        if not 0 < rest < 1:
            raise ValueError(f"`tail` must be in (0, 1), got {rest}")
        end = self.epsilon_at(rest)
        if not end / width <= 500_000:
            raise ValueError(f"`step` must leave at most 10**6 losses up to {end:g}, got {width}")
        most = math.ceil(end / width * (1 - 2.0**-40))
        upper = np.array([self.delta_at(width * place) for place in range(most + 1)])
        # d(-e) = 1 - exp(-e) + exp(-e) d(e), where d bounds both directions.
        levels = np.exp(-width * np.arange(most, 0, -1))
        return connect_the_dots(width, most, np.concatenate([1 - levels + levels * upper[:0:-1], upper]))

    @classmethod
    def of_loss_distribution(
        cls,
        losses: Iterable[float] | LossDistribution,
        masses: Iterable[float] | None = None,
        delta: float = 0.0,
        *,
        infinite: float = 0.0,
        relation: Relation = AddRemove(),  # noqa: B008
        numerics: str = "float64",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism of which a law of privacy losses is known.

        Parameters
        ----------
        losses : sequence of float, or LossDistribution
            The finite losses, in nats; for `AddRemove` those of the data set with the record.
        masses : sequence of float
            The probability of each.
        delta : float
            Where epsilon is stated; above `infinite` where that is positive.
        infinite : float
            The probability of an infinite loss.
        relation, numerics
            As for the class.

        Returns
        -------
        PrivacyGuarantee
            In both directions: the other one is that of the law's own pair.

        {domain}

        Notes
        -----
        For relations but ``AddRemove()`` the envelope of both directions is made, in fractions: seconds for 1000
        losses.

        Examples
        --------
        >>> import math
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> response = PrivacyGuarantee.of_loss_distribution([math.log(3), -math.log(3)], [0.75, 0.25])
        >>> round(response.epsilon, 6)  # ln 3
        1.098612
        """
        if isinstance(losses, LossDistribution):
            infinite = losses.infinite
            places, weights = losses.losses.tolist(), losses.masses.tolist()
        else:
            for name, values in (("losses", losses), ("masses", masses)):
                _check.fits(values, name)
            places, weights = list(losses), list(masses or ())
        if len(places) != len(weights) or not places:
            raise ValueError(f"`masses` must have length {len(places)} and at least 1, got {len(weights)}")
        law = {_check.real(place, "losses"): Fraction(0) for place in places}
        for place, weight in zip(places, weights, strict=True):
            law[float(place)] += _rational.fraction(weight, "masses")
        beyond = _rational.fraction(infinite, "infinite")
        missing = 1 - beyond - sum(law.values(), Fraction(0))
        if beyond:
            beyond += max(missing, Fraction(0))
        else:  # what masses in floating point lack is given to the largest loss
            law[max(law)] += max(missing, Fraction(0))
        table = [(p, p * Fraction(math.exp(-place)) * (1 - Fraction(1, 2**50))) for place, p in law.items()]
        other = 1 - sum((q for _, q in table), Fraction(0))
        if abs(missing) > Fraction(1, 2**30) or other < -Fraction(1, 2**30):
            raise ValueError(f"`masses` must sum to 1, and times exp(-losses) to at most 1, got {float(1 - missing)}")
        # What Q lacks lies where P has nothing; if it is no more than roundings, at the least loss there is.
        least = Fraction(math.exp(min(law))) if other < Fraction(1, 2**40) else Fraction(0)
        table += [(beyond, Fraction(0)), (least * max(other, Fraction(0)), max(other, Fraction(0)))]
        curve = Outcomes(tuple(pair for pair in table if any(pair)))
        failure = _rational.fraction(delta, "delta", below_one=True)
        return promise(Declared(curve, relation), relation, failure, numerics=numerics)

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

    def at(self, distance: float) -> "PrivacyGuarantee":
        """Return the guarantee for data at another distance.

        Parameters
        ----------
        distance : float
            For `DataMetric` the new radius, > 0. For the other relations the number of records that differ, a whole
            number.

        Returns
        -------
        PrivacyGuarantee
            A part that is proved at every distance takes its curve there. A part that was stated at the radius keeps
            its figures for shorter distances, and for longer ones takes the rule of its kind for as many steps as are
            needed: k epsilon; for Gaussian noise k u; for a zero-concentrated level ``k**2 rho``; for a delta
            ``(exp(k epsilon) - 1) / (exp(epsilon) - 1)`` times it. Deltas are kept otherwise, and epsilons computed
            anew.

        Raises
        ------
        NoGuarantee
            If nothing is proved at that distance, or no epsilon is left at the delta.
        ValueError, TypeError
            If the distance is outside its domain.

        Examples
        --------
        >>> from quincunx.privacy import DataMetric, PrivacyGuarantee
        >>> PrivacyGuarantee(0.5, relation=DataMetric("l1", 1)).at(4)
        PrivacyGuarantee(epsilon=2.0, delta=0.0, relation=DataMetric(metric='l1', radius=4), numerics='exact')
        >>> PrivacyGuarantee(0.5, relation=DataMetric("l1", 2)).at(1).epsilon
        0.5
        """
        if isinstance(self.relation, DataMetric):
            far = _check.real(distance, "distance")
            if not far > 0:
                raise ValueError(f"`distance` must be positive, got {distance}")
            relation: Relation = replace(self.relation, radius=far)
        else:
            far = _check.whole(distance, "distance", minimum=1)
            relation = type(self.relation)(far)
        if far == self.relation.radius:
            return self
        about = relation
        if isinstance(about, DataMetric) and any(part.reach.whole for part in self.parts):
            about = replace(about, integers=True)
        parts = (part.moved(about) for part in self.parts)
        return PrivacyGuarantee.of_parts(parts, relation=relation, numerics=self.numerics)

    def plot(self, ax: Any = None, *, times: Iterable[int] = (1,), points: int = 100) -> Any:
        """Draw delta against epsilon, of this release and of several of them.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure without it.
        times : iterable of int
            How many releases, one curve for each.
        points : int
            Points of a curve, >= 2.

        Returns
        -------
        matplotlib.axes.Axes
            With epsilon across and delta, on a logarithmic scale, upwards.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError, TypeError
            If a number lies outside its domain.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> axes = PrivacyGuarantee.of_gaussian(5.0, 1e-6).plot(times=(1, 10))
        >>> [line.get_label() for line in axes.lines]
        ['1 release', '10 releases']
        """
        axes = _optional.axes(ax)
        number = _check.whole(points, "points", minimum=2)
        for count in times:
            total = self * _check.whole(count, "times", minimum=1)
            end = min(total.epsilon_at(1e-12), 2 * total.epsilon)
            grid = [end * i / (number - 1) for i in range(number)]
            heights = [max(total.delta_at(epsilon), 1e-300) for epsilon in grid]
            axes.plot(grid, heights, label=f"{count} release{'' if count == 1 else 's'}")
        axes.set_yscale("log")
        axes.set_ylim(1e-12, 1.0)
        axes.set_xlabel("epsilon")
        axes.set_ylabel("delta")
        axes.legend()
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as words and numbers that JSON can hold, exactly.

        Returns
        -------
        dict
            What `from_dict` reads.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> g = PrivacyGuarantee(0.1, 1e-6)
        >>> PrivacyGuarantee.from_dict(g.to_dict()) == g
        True
        """
        return {
            "epsilon": str(self.exact_epsilon),
            "delta": str(self.exact_delta),
            "relation": _words.relation_words(self.relation),
            "numerics": self.numerics,
            "parts": [_words.part_words(part) for part in self.parts],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PrivacyGuarantee":
        """Return the guarantee that `to_dict` described.

        Parameters
        ----------
        values : dict
            As returned by `to_dict`.

        Returns
        -------
        PrivacyGuarantee
            Equal to the one described.

        Raises
        ------
        ValueError
            If the description is not one, or its figures contradict one another.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> PrivacyGuarantee.from_dict(PrivacyGuarantee(1.0).to_dict()).epsilon
        1.0
        """
        try:
            relation = _words.relation_of(values["relation"])
            if "parts" not in values:  # as written by versions before 0.3: its pair is kept, and nothing beyond
                pair = Fraction(values["epsilon"]), Fraction(values["delta"])
                return cls(*pair, relation=relation, numerics=values["numerics"])
            parts = [_words.part_of(words, relation) for words in values["parts"]]
            guarantee = cls.of_parts(parts, relation=relation, numerics=values["numerics"])
            stated_pair = Fraction(values["epsilon"]), Fraction(values["delta"])
            if stated_pair != (guarantee.exact_epsilon, guarantee.exact_delta):
                raise ValueError("its pair is not the sum of its parts")
        except (AttributeError, LookupError, TypeError, ValueError, ZeroDivisionError, OverflowError) as reason:
            raise ValueError(
                f"`values` must be a guarantee as `to_dict` describes it, got {values!r}: {reason}"
            ) from reason
        return guarantee
