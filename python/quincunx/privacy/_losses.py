"""Laws of privacy losses on a grid, for accountants that compose them: from a guarantee and back."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quincunx import _check


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
    masses: npt.NDArray[np.float64]
    infinite: float

    @property
    def losses(self) -> npt.NDArray[np.float64]:
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


def connect_the_dots(step: float, most: int, heights: npt.NDArray[np.float64]) -> LossDistribution:
    """Return the law whose profile joins the heights at losses of -most to most steps, as a function of e^epsilon.

    Any profile d is convex in x = e^epsilon, is 1 at x = 0 and falls by at most 1 a unit. So the lower convex hull of
    points that are not below it is not below it; its slopes are the masses under Q, and x times them those under P.
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Connect the dots, PoPETs.
    """
    x = np.concatenate([[0.0], np.exp(step * np.arange(-most, most + 1))])
    y = np.concatenate([[1.0], heights])
    hull = [0]
    for place in range(1, len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[place] - x[b]) < (y[place] - y[b]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(place)
    slopes = np.append(np.diff(y[hull]) / np.diff(x[hull]), 0.0)
    masses = np.zeros(2 * most + 1)
    masses[np.array(hull[1:]) - 1] = x[hull[1:]] * np.maximum(np.diff(slopes), 0.0)
    # Heights differ by less than their roundings there: what the masses lose by them is lost to infinity.
    infinite = max(float(y[-1]), 1.0 - math.fsum(masses)) + 2.0**-45
    return LossDistribution(step, -most, masses, min(infinite, 1.0))
