"""What a release promises: epsilon, delta, zCDP, for which neighbors, and by what arithmetic."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quincunx import _check, _core
from quincunx.errors import TooLargeError
from quincunx.privacy import _rational, _relations
from quincunx.privacy._relations import AddRemove, DataMetric, Relation, ReplaceOne

NUMERICS = ("exact", "float64", "insecure")  # from the best to the worst


@dataclass(frozen=True, repr=False, init=False)
class PrivacyGuarantee:
    """A promise about a release.

    For every two neighbors x, y of `relation` and every set B of outcomes, ``P(B | x) <= exp(epsilon) P(B | y) +
    delta``. Beside this pair a guarantee remembers what the release was made of, pure guarantees and Gaussian noise, so
    that `delta_at` and `epsilon_at` give the exact trade-off of a composition and not only the sums.

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
        a sample of a posterior; only with ``delta = 0``. Then ``zcdp = epsilon**2 / 8`` instead of ``epsilon**2 / 2``.
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

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.

    Notes
    -----
    ``g1 & g2`` is the guarantee of both releases about the same data, ``n * g`` that of n releases; both hold if later
    releases are chosen in the light of earlier ones. Relations are not mixed: that is a TypeError.

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

    exact_epsilon: Fraction
    exact_delta: Fraction
    relation: Relation
    numerics: str
    range_bounded: bool
    _pure: tuple[tuple[Fraction, int], ...]  # epsilons of pure parts and how often each
    _ratio: Fraction  # sum of the squares of sensitivity / sigma over Gaussian parts
    _failure: Fraction  # probability of an unbounded loss
    _zcdp: Fraction | None

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
        if failure == 0:
            implied = exact**2 / (8 if range_bounded else 2)
            known = implied if known is None else min(known, implied)
        self._fill(
            exact_epsilon=exact,
            exact_delta=failure,
            relation=_relations.check(relation),
            numerics=_check.one_of(numerics, "numerics", NUMERICS),
            range_bounded=range_bounded,
            _pure=((exact, 1),) if exact else (),
            _ratio=Fraction(0),
            _failure=failure,
            _zcdp=known,
        )

    def _fill(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

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
        if epsilon is None:
            epsilon = _core.gaussian_epsilon(delta, sigma, sensitivity)
        elif _core.gaussian_sigma(epsilon, delta, sensitivity) > sigma:
            raise ValueError(f"`epsilon` must be one that sigma = {sigma} keeps at delta = {delta}, got {epsilon}")
        guarantee = cls(epsilon, delta, relation=relation, numerics=numerics)
        ratio = (Fraction(sensitivity) / Fraction(sigma)) ** 2
        guarantee._fill(_pure=(), _failure=Fraction(0), _ratio=ratio, _zcdp=ratio / 2)
        return guarantee

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
        return None if self._zcdp is None else _rational.upwards(self._zcdp)

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.exact_delta == 0

    def __repr__(self) -> str:
        figures = f"epsilon={self.epsilon}, delta={self.delta}"
        return f"PrivacyGuarantee({figures}, relation={self.relation}, numerics={self.numerics!r})"

    def __and__(self, other: object) -> "PrivacyGuarantee":
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.relation != other.relation:
            raise TypeError(
                f"guarantees of different relations do not compose: {self.relation} and {other.relation}; "
                "`at(distance)` restates a guarantee for another radius"
            )
        merged = dict(self._pure)
        for epsilon, times in other._pure:
            merged[epsilon] = merged.get(epsilon, 0) + times
        both = None if self._zcdp is None or other._zcdp is None else self._zcdp + other._zcdp
        result = replace_fields(self)
        result._fill(
            exact_epsilon=self.exact_epsilon + other.exact_epsilon,
            exact_delta=min(self.exact_delta + other.exact_delta, Fraction(1)),
            numerics=max(self.numerics, other.numerics, key=NUMERICS.index),
            range_bounded=False,  # later intervals may depend on earlier outcomes
            _pure=tuple(sorted(merged.items())),
            _ratio=self._ratio + other._ratio,
            _failure=1 - (1 - self._failure) * (1 - other._failure),
            _zcdp=both,
        )
        return result

    def __mul__(self, times: object) -> "PrivacyGuarantee":
        if isinstance(times, bool) or not isinstance(times, (int, float, np.integer)):
            return NotImplemented
        count = _check.whole(times, "times", minimum=1)
        result = replace_fields(self)
        result._fill(
            exact_epsilon=self.exact_epsilon * count,
            exact_delta=min(self.exact_delta * count, Fraction(1)),
            range_bounded=self.range_bounded and count == 1,
            _pure=tuple((epsilon, many * count) for epsilon, many in self._pure),
            _ratio=self._ratio * count,
            _failure=1 - (1 - self._failure) ** count if self._failure else self._failure,
            _zcdp=None if self._zcdp is None else self._zcdp * count,
        )
        return result

    __rmul__ = __mul__

    def delta_at(self, epsilon: float) -> float:
        """Return a delta for which the release is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : float
            Privacy level, >= 0.

        Returns
        -------
        float
            Never below the least such delta. It is that delta (to 1e-13) for the composition of randomized responses
            and Gaussian noise, and so the best that can be said of pure guarantees of which no more is known.

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
        try:
            rest = _core.composed_delta(level, self._losses(), _rational.root_upwards(self._ratio))
            failure = _rational.upwards(self._failure)
            found.append(failure + (1 - failure) * rest * (1 + 1e-15))
        except TooLargeError:
            pass
        if self._zcdp is not None:
            found.append(_zcdp_delta(_rational.upwards(self._zcdp), level))
        if self.range_bounded and level == 0:
            found.append(math.tanh(self.epsilon / 4) * (1 + 1e-15))
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
        failure = self._failure
        if exact > failure or (exact == 0 and not self._ratio):
            try:
                found.append(self._composed_epsilon(level))
            except TooLargeError:
                pass
        if self._zcdp is not None and level > 0:
            found.append(_zcdp_epsilon(_rational.upwards(self._zcdp), level))
        return min(found, default=math.inf)

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
        found = [math.inf if self._zcdp is None else _rational.upwards(self._zcdp)]
        if self.is_pure:
            found.append(self.epsilon * math.tanh(self.epsilon / 2) * (1 + 1e-15))
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
            For `DataMetric`, epsilon and delta are linear in the distance; where there is Gaussian noise, delta stays
            and epsilon follows its exact profile. For k records, epsilon grows by k, zCDP by ``k**2``, and delta by
            ``(exp(k epsilon) - 1) / (exp(epsilon) - 1)``.

        Raises
        ------
        ValueError, TypeError
            If the distance is outside its domain, or delta would reach 1.

        Examples
        --------
        >>> from quincunx.privacy import DataMetric, PrivacyGuarantee
        >>> PrivacyGuarantee(0.5, relation=DataMetric("l1", 1)).at(4)
        PrivacyGuarantee(epsilon=2.0, delta=0.0, relation=DataMetric(metric='l1', radius=4), numerics='exact')
        """
        linear = isinstance(self.relation, DataMetric)
        if isinstance(self.relation, DataMetric):
            factor = _rational.fraction(distance, "distance") / Fraction(self.relation.radius)
            if not factor:
                raise ValueError(f"`distance` must be positive, got {distance}")
            relation: Relation = DataMetric(self.relation.metric, float(distance))
            growth = factor
        else:
            records = _check.whole(distance, "distance", minimum=1)
            factor = Fraction(math.ceil(Fraction(records, self.relation.records)))
            relation = type(self.relation)(records)
            growth = _group_growth(self.epsilon, int(factor))
        # Gaussian noise keeps its exact profile, which is not linear: there delta stays and epsilon is worked out anew.
        anew = bool(linear and self._ratio)
        delta = self.exact_delta if anew else self.exact_delta * growth
        if delta >= 1:
            raise ValueError(f"`distance` must leave delta below 1, got {distance} with delta {self.delta}")
        result = replace_fields(self)
        result._fill(
            exact_epsilon=self.exact_epsilon * factor,
            exact_delta=delta,
            relation=relation,
            _pure=tuple((epsilon * factor, times) for epsilon, times in self._pure),
            _ratio=self._ratio * factor**2,
            _failure=min(self._failure * growth, Fraction(1)),
            _zcdp=None if self._zcdp is None else self._zcdp * factor**2,
        )
        if anew:
            result._fill(exact_epsilon=Fraction(result._composed_epsilon(float(delta))))
        return result

    def _composed_epsilon(self, delta: float) -> float:
        room = float((Fraction(delta) - self._failure) / (1 - self._failure)) * (1 - 1e-15)
        return _core.composed_epsilon(room, self._losses(), _rational.root_upwards(self._ratio))

    def _losses(self) -> list[tuple[float, int]]:
        return [(_rational.upwards(epsilon), times) for epsilon, times in self._pure]

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
        relation = self.relation
        size = [relation.metric, relation.radius] if isinstance(relation, DataMetric) else [relation.records]
        return {
            "epsilon": str(self.exact_epsilon),
            "delta": str(self.exact_delta),
            "relation": [type(relation).__name__, *size],
            "numerics": self.numerics,
            "range_bounded": self.range_bounded,
            "pure": [[str(epsilon), times] for epsilon, times in self._pure],
            "ratio": str(self._ratio),
            "failure": str(self._failure),
            "zcdp": None if self._zcdp is None else str(self._zcdp),
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
            If the description is not one.

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> PrivacyGuarantee.from_dict(PrivacyGuarantee(1.0).to_dict()).epsilon
        1.0
        """
        try:
            name, *arguments = values["relation"]
            kinds: dict[str, Any] = {"ReplaceOne": ReplaceOne, "AddRemove": AddRemove, "DataMetric": DataMetric}
            zcdp = values["zcdp"]
            guarantee = cls(
                Fraction(values["epsilon"]),
                relation=kinds[name](*arguments),
                numerics=values["numerics"],
                range_bounded=values["range_bounded"],
            )
            guarantee._fill(
                exact_delta=Fraction(values["delta"]),
                _pure=tuple((Fraction(epsilon), int(times)) for epsilon, times in values["pure"]),
                _ratio=Fraction(values["ratio"]),
                _failure=Fraction(values["failure"]),
                _zcdp=None if zcdp is None else Fraction(zcdp),
            )
        except (KeyError, TypeError, ValueError) as reason:
            raise ValueError(f"`values` must be a guarantee as `to_dict` describes it, got {values!r}") from reason
        return guarantee


def replace_fields(guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
    """Return a copy to be filled anew."""
    copy = object.__new__(PrivacyGuarantee)
    copy.__dict__.update(guarantee.__dict__)
    return copy


def _group_growth(epsilon: float, records: int) -> Fraction:
    """Return (e^(k epsilon) - 1) / (e^epsilon - 1), rounded upwards: how the delta of one record grows for k."""
    if records == 1:
        return Fraction(1)
    try:
        factor = math.expm1(records * epsilon) / math.expm1(epsilon) if epsilon else float(records)
    except OverflowError:
        return Fraction(2**1023)
    return Fraction(factor) * (1 + Fraction(1, 2**40))


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """Minimize rho a + log(1 - 1/a) - log(a delta) / (a - 1) over orders a > 1."""
    if rho == 0:
        return 0.0

    def value(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    return max(value(_minimize(value)), 0.0) * (1 + 1e-14)


def _zcdp_delta(rho: float, epsilon: float) -> float:
    """Minimize over orders a > 1 the delta for which the bound of `_zcdp_epsilon` is epsilon."""
    if rho == 0:
        return 0.0

    def value(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return (order - 1) * (rho * order + math.log1p(-1 / order) - epsilon) - math.log(order)

    found = value(_minimize(value))
    return min(math.exp(min(found, 0.0)) * (1 + 1e-14 * (1 + abs(found))), 1.0)


def _minimize(function: Any) -> float:
    """Return about where a function is least: any place gives a valid bound, so no more is needed."""
    grid = [-12 + 0.25 * i for i in range(161)]
    best = min(range(161), key=lambda i: function(grid[i]))
    below, above = grid[max(best - 1, 0)], grid[min(best + 1, 160)]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = above - golden * (above - below), below + golden * (above - below)
        if function(left) < function(right):
            above = right
        else:
            below = left
    return (above + below) / 2
