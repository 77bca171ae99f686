"""The Bessel distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.distributions._base import Distribution, Floats


def _rate(value: object, name: str) -> npt.NDArray[np.float64]:
    return _check.reals_where(value, name, "in [0, 2**53]", lambda x: (x >= 0) & (x <= 2.0**53))


class Bessel(Distribution):
    """Bessel distribution: the smaller of two Poisson counts, given their difference.

    ``P(n) = (argument/2)**(2 n + order) / (n! (n + order)! I_order(argument))`` for ``n = 0, 1, 2, ...``, the law of
    ``min(X, Y)`` given ``|X - Y| = order`` for independent Poisson counts whose rates have product ``argument**2 / 4``.

    Parameters
    ----------
    order : array_like of int, shape (...)
        Absolute difference of the two counts, 0 to ``2**53``.
    argument : array_like of float, shape (...)
        Twice the geometric mean of the two rates, 0 to ``2**53``; 0 gives the point mass at 0.

    Raises
    ------
    ValueError
        If an order is negative or not whole, or an argument is negative, too large or not finite.
    TypeError
        If they are not numbers.

    Notes
    -----
    No Bessel function is formed: the mass is a product of two Poisson masses in saddle-point form, with the correction
    of the uniform expansion of the Bessel function, or its power series. A draw is an inversion of the series, a
    thinned Poisson count [2]_ or a transformed rejection, whichever is fastest.

    References
    ----------
    .. [1] L. Yuan and J. D. Kalbfleisch (2000), On the Bessel distribution and related problems, Ann. Inst.
       Statist. Math. 52.
    .. [2] L. Devroye (2002), Simulating Bessel random variables, Statist. Probab. Lett. 57.

    Examples
    --------
    >>> from quincunx.distributions import Bessel
    >>> law = Bessel(order=0, argument=1.0)
    >>> round(law.pmf(0), 12), round(law.mean(), 12)
    (0.789848314825, 0.223194982948)
    """

    _family: ClassVar[str] = "bessel"
    __slots__ = ()

    def __init__(self, order: npt.ArrayLike, argument: npt.ArrayLike) -> None:
        orders = _check.counts_as_floats(order, "order")
        arguments = _rate(argument, "argument")
        whole = orders.astype(np.int64)
        self._hold([orders, arguments], {"order": whole, "argument": arguments}, fresh=[orders, whole])

    @property
    def order(self) -> Floats:
        """Absolute difference of the two counts."""
        return self._given["order"]

    @property
    def argument(self) -> Floats:
        """Twice the geometric mean of the two rates."""
        return self._given["argument"]
