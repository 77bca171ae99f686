"""Laws of privacy losses on a grid, for accountants that compose them: from a guarantee and back."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from quincunx import _check
from quincunx._types import Floats
from quincunx.privacy import _rational
from quincunx.privacy._curves import Outcomes


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """A law of privacy losses that dominates a guarantee: losses on a grid, and an atom at infinity.

    `PrivacyGuarantee.to_loss_distribution` makes it; `PrivacyGuarantee.of_loss_distribution` takes one.

    Attributes
    ----------
    step : float
        Distance of neighboring losses, in nats.
    lowest : int
        The least loss, in steps.
    masses : ndarray of float64, shape (n,)
        Probability of each loss ``step * (lowest + i)``.
    infinite : float
        Probability of an infinite loss.

    Examples
    --------
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> law = PrivacyGuarantee(1.0).to_loss_distribution(step=0.5)
    >>> law.losses[law.masses > 0].tolist(), law.masses[law.masses > 0].round(6).tolist()
    ([-1.0, 1.0], [0.268941, 0.731059])
    """

    step: float
    lowest: int
    masses: Floats
    infinite: float

    @property
    def losses(self) -> Floats:
        """The finite losses, ndarray of shape (n,)."""
        return np.asarray(self.step * (self.lowest + np.arange(len(self.masses))), dtype=np.float64)

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at epsilon of this law.

        Parameters
        ----------
        epsilon : float
            In nats.

        Returns
        -------
        float
            The sum of ``(1 - exp(epsilon - loss))+``, an infinite loss counting one.

        Raises
        ------
        TypeError, ValueError
            If epsilon is not a finite number.
        """
        gaps = np.minimum(_check.real(epsilon, "epsilon") - self.losses, 0.0)
        return float(self.infinite - self.masses @ np.expm1(gaps))


def connect_the_dots(step: float, most: int, upper: Floats) -> LossDistribution:
    """Return the law whose profile joins its heights at losses of -most to most steps, as a function of e^epsilon.

    `upper` has the heights d from a loss of 0 on; below it is d(-e) = 1 - exp(-e) + exp(-e) d(e), by what it falls from
    1, which a small e^epsilon does not cancel. Any profile is convex in x = e^epsilon, is 1 at x = 0 and falls by at
    most 1 a unit. So the lower convex hull of points that are not below it is not below it; its slopes are the masses
    under Q, and x times them those under P.
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Connect the dots, PoPETs.
    """
    x = np.concatenate([[0.0], np.exp(step * np.arange(-most, most + 1))])
    falls = np.concatenate([[0.0], x[1 : most + 1] * (1 - upper[:0:-1]), 1 - upper])
    y = np.concatenate([1 - falls[: most + 1], upper])

    def rise(a: int, b: int) -> float:
        return float(falls[a] - falls[b] if b <= most + 1 else y[b] - y[a])

    hull = [0]
    for place in range(1, len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if rise(a, b) * (x[place] - x[b]) < rise(b, place) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(place)
    rises = [rise(*pair) for pair in pairwise(hull)]
    slopes = np.append(rises / np.diff(x[hull]), 0.0)
    masses = np.zeros(2 * most + 1)
    masses[np.array(hull[1:]) - 1] = x[hull[1:]] * np.maximum(np.diff(slopes), 0.0)
    # Heights differ by less than their roundings there: what the masses lose by them is lost to infinity.
    infinite = max(float(y[-1]), 1.0 - math.fsum(masses)) + 2.0**-45
    return LossDistribution(step, -most, masses, min(infinite, 1.0))


def outcomes(losses: Iterable[float] | LossDistribution, masses: Iterable[float] | None, infinite: float) -> Outcomes:
    """Return two laws of outcomes of which the first has these losses, its masses as they are given."""
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
    law = {place: mass for place, mass in law.items() if mass} or law
    if min(law) < -700:
        raise ValueError(f"`losses` must be at least -700 where they have a mass, got {min(law)}")
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
    return Outcomes(tuple(pair for pair in table if any(pair)))
