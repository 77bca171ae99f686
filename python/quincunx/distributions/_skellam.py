"""The Skellam distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from quincunx.distributions._base import Distribution, Floats
from quincunx.distributions._bessel import _rate


class Skellam(Distribution):
    """Skellam distribution: the difference of two independent Poisson counts.

    ``P(k) = exp(-a - b) (a/b)**(k/2) I_|k|(2 sqrt(a b))`` for whole `k`, with ``a = rate_plus`` and ``b = rate_minus``.

    Parameters
    ----------
    rate_plus : array_like of float, shape (...)
        Rate of the count that is added, 0 to ``2**53``.
    rate_minus : array_like of float, shape (...)
        Rate of the count that is subtracted, 0 to ``2**53``. Where one rate is 0 the law is Poisson, where both are, a
        point.

    Raises
    ------
    ValueError
        If a rate is negative, too large or not finite.
    TypeError
        If the rates are not numbers.

    Notes
    -----
    From 20 to 60 ns per log-probability of large arrays; longest at rates of about 10
    (``benches/bench_distributions.py``).

    References
    ----------
    .. [1] J. G. Skellam (1946), The frequency distribution of the difference between two Poisson variates, JRSS 109.

    Examples
    --------
    >>> from quincunx.distributions import Skellam
    >>> law = Skellam(1e5, 1e5)
    >>> round(law.logpmf(0), 12)
    -7.021974230968
    """

    _family: ClassVar[str] = "skellam"
    __slots__ = ()

    def __init__(self, rate_plus: npt.ArrayLike, rate_minus: npt.ArrayLike) -> None:
        plus, minus = _rate(rate_plus, "rate_plus"), _rate(rate_minus, "rate_minus")
        self._hold([plus, minus], {"rate_plus": plus, "rate_minus": minus})

    @property
    def rate_plus(self) -> Floats:
        """Rate of the count that is added."""
        return self._given["rate_plus"]

    @property
    def rate_minus(self) -> Floats:
        """Rate of the count that is subtracted."""
        return self._given["rate_minus"]
