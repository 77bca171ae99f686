"""What a release guarantees: epsilon, delta, zCDP, for which neighbors, and by what arithmetic."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from quincunx import _check, _core, _optional
from quincunx._docs import assembled
from quincunx._html import table_html
from quincunx._types import Axes, Facts
from quincunx.privacy import _guarantee_json, _rational, _relations
from quincunx.privacy._composition import NUMERICS, Composition, Part, worse
from quincunx.privacy._curves import Approx, Curve, Gaussian, Outcomes, Pure, Ranged, Renyi, Zcdp
from quincunx.privacy._losses import LossDistribution, outcomes
from quincunx.privacy._privacy_map import Declared, PrivacyMap
from quincunx.privacy._relations import AddRemove, DataMetric, Relation, ReplaceOne


def guarantee_of(
    privacy_map: PrivacyMap | Curve,
    relation: Relation,
    delta: float | Fraction = 0,
    *,
    epsilon: float | Fraction | None = None,
    numerics: str = "exact",
) -> "PrivacyGuarantee":
    """Return the guarantee that a privacy map proves about a relation: the only maker of guarantees.

    A curve alone is one that was said to hold for the relation. `epsilon` is the level that noise was calibrated for at
    `delta`, where it was; else the least one is found. Raises `NoGuarantee` where the privacy map has no answer.
    """
    relation = _relations.check(relation)
    known = Declared(privacy_map, relation) if isinstance(privacy_map, Curve) else privacy_map
    part = Part.of(known, relation, Fraction(delta), None if epsilon is None else Fraction(epsilon))
    return PrivacyGuarantee.of_parts((part,), relation=relation, numerics=numerics)


@assembled(
    about="""
    relation, numerics
        As for the class.

    Returns
    -------
    PrivacyGuarantee
    """
)
@dataclass(frozen=True, repr=False, init=False, eq=False)
class PrivacyGuarantee(Composition):
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
        exploit), or were drawn from a known seed (no protection at all).
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
        What the guarantee is made of, with the figures that a filter adds up: `epsilon` and `delta` (the stated pair of
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

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0,
        *,
        relation: Relation = ReplaceOne(),
        numerics: str = "exact",
        range_bounded: bool = False,
        zcdp: float | Fraction | None = None,
    ) -> None:
        exact = _rational.fraction(epsilon, "epsilon")
        failure = _rational.fraction(delta, "delta", below_one=True)
        if _check.flag(range_bounded, "range_bounded") and failure:
            raise ValueError(f"`range_bounded` must be False where delta is positive, got delta = {float(failure)}")
        known = None if zcdp is None else _rational.fraction(zcdp, "zcdp")
        curve: Curve = Pure(exact, known)
        if failure:
            curve = Approx(exact, failure, known)
        elif range_bounded and (known is None or known >= exact**2 / 8):
            curve = Ranged(exact)
        about = _relations.check(relation)
        self._fill(about, numerics, (Part.of(Declared(curve, about), about, failure),))

    @classmethod
    def of_parts(cls, parts: Iterable[Part], *, relation: Relation, numerics: str = "exact") -> "PrivacyGuarantee":
        """Return the guarantee of parts that were proved for a relation.

        Parameters
        ----------
        parts : iterable of Part
            What it is made of.
        {about}
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
        relation: Relation = ReplaceOne(),
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of Gaussian noise.

        Parameters
        ----------
        sigma, delta, sensitivity : float
            As for `gaussian_epsilon`.
        epsilon : float, optional
            The level that `sigma` was calibrated for, if it was.
        {about}
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
        return guarantee_of(curve, relation, delta, epsilon=epsilon, numerics=numerics)

    @classmethod
    def of_zcdp(
        cls, rho: float | Fraction, delta: float, *, relation: Relation = ReplaceOne(), numerics: str = "exact"
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism of which only the zero-concentrated level is known.

        Parameters
        ----------
        rho : float or Fraction
            The level, >= 0.
        delta : float
            Where epsilon is stated, in (0, 1).
        {about}
            With the least epsilon at `delta` that follows.

        {domain}

        Examples
        --------
        >>> from quincunx.privacy import PrivacyGuarantee
        >>> round(PrivacyGuarantee.of_zcdp(0.125, 1e-6).epsilon, 6)
        2.419093
        """
        level = _check.open_probability(delta, "delta")
        curve = Zcdp(_rational.fraction(rho, "rho"))
        return guarantee_of(curve, relation, level, numerics=numerics)

    @classmethod
    def of_outcomes(
        cls,
        p: Iterable[float | Fraction],
        q: Iterable[float | Fraction],
        delta: float | Fraction = 0,
        *,
        relation: Relation = ReplaceOne(),
        numerics: str = "exact",
    ) -> "PrivacyGuarantee":
        """Return the guarantee of a mechanism that is dominated by two laws on finitely many outcomes.

        Parameters
        ----------
        p, q : sequence of float or Fraction
            The probabilities of the outcomes. For `AddRemove`, p is about the data set with the record.
        delta : float or Fraction
            Where epsilon is stated.
        {about}
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
        return guarantee_of(
            Outcomes(table), relation, _rational.fraction(delta, "delta", below_one=True), numerics=numerics
        )

    @classmethod
    def of_renyi(
        cls,
        orders: Iterable[float],
        divergences: Iterable[float],
        delta: float,
        *,
        relation: Relation = ReplaceOne(),
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
        {about}
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
        >>> renyi = PrivacyGuarantee.of_renyi(orders, [gaussian.renyi(order) for order in orders], 1e-5)
        >>> round(gaussian.epsilon, 3), round(renyi.epsilon, 3)
        (0.926, 1.018)
        """
        _check.fits(orders, "orders")
        _check.fits(divergences, "divergences")
        level = _check.open_probability(delta, "delta")
        ends, bounds = list(orders), list(divergences)
        if len(ends) != len(bounds):
            raise ValueError(f"`divergences` must have length {len(ends)}, got {len(bounds)}")
        known = [(a, bound) for a, bound in zip(ends, bounds, strict=True) if bound != math.inf]
        curve = Renyi(
            tuple((_rational.fraction(a, "orders"), _rational.fraction(bound, "divergences")) for a, bound in known)
        )
        return guarantee_of(curve, relation, level, numerics=numerics)

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

    def __getstate__(self) -> dict[str, object]:
        return {"relation": self.relation, "numerics": self.numerics, "parts": self.parts}

    def __and__(self, other: object) -> "PrivacyGuarantee":
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.relation != other.relation:
            raise TypeError(
                f"guarantees of different relations do not compose: {self.relation} and {other.relation}; "
                "`at(distance)` restates a guarantee for another radius"
            )
        numerics = worse(self.numerics, other.numerics)
        return PrivacyGuarantee.of_parts((*self.parts, *other.parts), relation=self.relation, numerics=numerics)

    def __mul__(self, times: object) -> "PrivacyGuarantee":
        if isinstance(times, bool) or not isinstance(times, (int, float, np.integer)):
            return NotImplemented
        count = _check.whole(times, "times", minimum=1, maximum=_guarantee_json.MOST)
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
        word = worse(self.numerics, _check.one_of(numerics, "numerics", NUMERICS))
        return PrivacyGuarantee.of_parts(self.parts, relation=self.relation, numerics=word)

    @classmethod
    def of_loss_distribution(
        cls,
        losses: Iterable[float] | LossDistribution,
        masses: Iterable[float] | None = None,
        delta: float = 0.0,
        *,
        infinite: float = 0.0,
        relation: Relation = AddRemove(),
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
        {about}
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
        failure = _rational.fraction(delta, "delta", below_one=True)
        return guarantee_of(outcomes(losses, masses, infinite), relation, failure, numerics=numerics)

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
            needed: k epsilon; for Gaussian noise k u; for a zero-concentrated level ``k**2 rho``; for a delta ``(exp(k
            epsilon) - 1) / (exp(epsilon) - 1)`` times it. Deltas are kept otherwise, and epsilons computed anew.

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
            far = _check.real(distance, "distance", positive=True)
            relation: Relation = replace(self.relation, radius=far)
        else:
            far = _check.whole(distance, "distance", minimum=1)
            relation = type(self.relation)(far)
        if far == self.relation.radius:
            return self
        about = relation
        # Noise on the data themselves says that they are whole numbers; noise on what was made of them does not.
        maps = [part.privacy_map for part in self.parts]
        if isinstance(about, DataMetric) and any(each.whole and not isinstance(each, Declared) for each in maps):
            about = replace(about, integers=True)
        parts = (part.moved(about) for part in self.parts)
        return PrivacyGuarantee.of_parts(parts, relation=relation, numerics=self.numerics)

    def plot(self, ax: "Axes | None" = None, *, times: Iterable[int] = (1,), points: int = 100) -> Axes:
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
        number = _check.whole(points, "points", minimum=2, maximum=2**53)
        _check.room(16 * number, "the points of a curve")
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

    def to_dict(self) -> Facts:
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
            "relation": _guarantee_json.relation_to_json(self.relation),
            "numerics": self.numerics,
            "parts": [_guarantee_json.part_to_json(part) for part in self.parts],
        }

    @classmethod
    def from_dict(cls, values: Facts) -> "PrivacyGuarantee":
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
            relation = _guarantee_json.relation_from_json(values["relation"])
            if "parts" not in values:  # as written by versions before 0.3: its pair is kept, and nothing beyond
                pair = Fraction(values["epsilon"]), Fraction(values["delta"])
                return cls(*pair, relation=relation, numerics=values["numerics"])
            parts = [_guarantee_json.part_from_json(words, relation) for words in values["parts"]]
            guarantee = cls.of_parts(parts, relation=relation, numerics=values["numerics"])
            stated_pair = Fraction(values["epsilon"]), Fraction(values["delta"])
            if stated_pair != (guarantee.exact_epsilon, guarantee.exact_delta):
                raise ValueError("its pair is not the sum of its parts")
        except (AttributeError, LookupError, TypeError, ValueError, ZeroDivisionError, OverflowError) as reason:
            raise ValueError(
                f"`values` must be a guarantee as `to_dict` describes it, got {values!r}: {reason}"
            ) from reason
        return guarantee
