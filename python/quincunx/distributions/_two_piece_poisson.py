"""The two-piece Poisson distribution."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx.distributions._base import Distribution, Floats
from quincunx.distributions._bessel import _rate


class TwoPiecePoisson(Distribution):
    """Distribution of a Poisson count, given its release through two-sided geometric noise.

    ``P(y) ~ rate**y / y! alpha**|released - y|`` for ``y = 0, 1, 2, ...``: Poisson with rate ``alpha * rate`` for a
    release of at most 0; else Poisson with rate ``rate / alpha`` up to the release and ``alpha * rate`` above it.

    Parameters
    ----------
    released : array_like of int, shape (...)
        The count plus its noise, at most ``2**53`` in size.
    rate : array_like of float, shape (...)
        Rate of the count before noise, 0 to ``2**53``.
    alpha : array_like of float, shape (...)
        Ratio of the noise, in [0, 1); 0 is no noise.

    Raises
    ------
    ValueError
        If a parameter is outside its range or not finite, or if the release is not a possible count where `alpha` is 0.
    TypeError
        If a parameter is not a number.

    Notes
    -----
    The mean and the marginal likelihood are in closed form; the other moments sum at most some thousand terms. Of a
    law next to ``2**53`` they and the entropy lack what is beyond, where not every whole number is a double.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML. (The model; the paper samples this law through four auxiliary variables per count.)

    Examples
    --------
    >>> import math
    >>> from quincunx.distributions import TwoPiecePoisson
    >>> law = TwoPiecePoisson(released=3, rate=0.5, alpha=math.exp(-1))
    >>> round(law.mean(), 12), round(law.log_marginal(), 12)
    (1.220681836287, -2.957892216935)
    """

    _family: ClassVar[str] = "two_piece_poisson"
    __slots__ = ()

    def __init__(self, released: npt.ArrayLike, rate: npt.ArrayLike, alpha: npt.ArrayLike) -> None:
        releases = _check.counts_as_floats(released, "released", minimum=None)
        rates = _rate(rate, "rate")
        alphas = _check.reals_where(alpha, "alpha", "in [0, 1)", lambda x: (x >= 0) & (x < 1))
        if np.any(alphas == 0):
            wide = np.broadcast_arrays(releases, rates, alphas)
            impossible = (wide[2] == 0) & ((wide[0] < 0) | ((wide[0] > 0) & (wide[1] == 0)))
            _check.require(
                np.asarray(wide[0]), np.logical_not(impossible), "released", "a possible count where `alpha` is 0"
            )
        whole = releases.astype(np.int64)
        shown = {"released": whole, "rate": rates, "alpha": alphas}
        self._hold([releases, rates, alphas], shown, fresh=[releases, whole])

    @property
    def released(self) -> Floats:
        """The count plus its noise."""
        return self._given["released"]

    @property
    def rate(self) -> Floats:
        """Rate of the count before noise."""
        return self._given["rate"]

    @property
    def alpha(self) -> Floats:
        """Ratio of the noise."""
        return self._given["alpha"]

    @overload
    def log_marginal(self, *, gradient: Literal[False] = False) -> Floats: ...
    @overload
    def log_marginal(self, *, gradient: Literal[True]) -> tuple[Floats, Floats]: ...
    def log_marginal(self, *, gradient: bool = False) -> Floats | tuple[Floats, Floats]:
        """Log-likelihood of the release, the count being summed out.

        ``log sum_y Poisson(y; rate) (1 - alpha)/(1 + alpha) alpha**|released - y|``

        Parameters
        ----------
        gradient : bool
            Whether to answer with a pair: the log-likelihood and its derivative by the rate.

        Returns
        -------
        float or ndarray of float64, or a pair of them
            Relative error of the log-likelihood at most 1e-13.

        Notes
        -----
        The derivative is ``E[y] / rate - 1`` and is formed without the division.

        Examples
        --------
        >>> from quincunx.distributions import TwoPiecePoisson
        >>> value, slope = TwoPiecePoisson(released=0, rate=4.0, alpha=0.5).log_marginal(gradient=True)
        >>> round(value, 12), slope
        (-3.098612288668, -0.5)
        """
        shape, out = self._shape, np.empty((math.prod(self._shape), 2))
        if out.size:
            _core.two_piece_poisson_log_marginals(self._parameters, out, _core.available_threads())
        value: Floats = out[:, 0].reshape(shape) if shape else float(out[0, 0])
        slope: Floats = out[:, 1].reshape(shape) if shape else float(out[0, 1])
        return (value, slope) if _check.flag(gradient, "gradient") else value
