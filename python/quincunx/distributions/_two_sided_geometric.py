"""The two-sided geometric distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.distributions._base import Distribution, Floats


class TwoSidedGeometric(Distribution):
    """Two-sided geometric distribution, also called the discrete Laplace.

    ``P(k) = (1 - alpha)/(1 + alpha) alpha**|k|`` for whole `k`. Give exactly one of the three parameters.

    Parameters
    ----------
    alpha : array_like of float, shape (...)
        Ratio of neighboring probabilities, in [0, 1); 0 gives the point mass at 0.
    epsilon_per_unit : array_like of float, shape (...)
        ``-log(alpha)``, the privacy loss per unit of the count, at least 1e-16.
    scale : array_like of float, shape (...)
        ``-1 / log(alpha)``, the scale of the Laplace law it is a discrete form of, in (0, 1e16].

    Raises
    ------
    ValueError
        If a parameter is outside its range or not finite.
    TypeError
        If not exactly one parameter is given, or it is not a number.

    Notes
    -----
    Its draws are for simulation. Noise that protects people comes from :mod:`quincunx.privacy`.

    References
    ----------
    .. [1] A. Ghosh, T. Roughgarden and M. Sundararajan (2012), Universally utility-maximizing privacy
       mechanisms, SIAM J. Comput. 41.

    Examples
    --------
    >>> from quincunx.distributions import TwoSidedGeometric
    >>> round(TwoSidedGeometric(epsilon_per_unit=1.0).pmf(0), 12)
    0.46211715726
    """

    _family: ClassVar[str] = "two_sided_geometric"
    __slots__ = ()

    def __init__(
        self,
        alpha: npt.ArrayLike | None = None,
        *,
        epsilon_per_unit: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
    ) -> None:
        given = {"alpha": alpha, "epsilon_per_unit": epsilon_per_unit, "scale": scale}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 1:
            found = ", ".join(f"`{name}`" for name in names) or "none"
            raise TypeError(f"exactly one of `alpha`, `epsilon_per_unit` and `scale` must be given, got {found}")
        if alpha is not None:
            checked = _check.reals_where(alpha, "alpha", "in [0, 1)", lambda x: (x >= 0) & (x < 1))
            with np.errstate(divide="ignore"):
                decay = np.asarray(-np.log(checked))
        elif epsilon_per_unit is not None:
            checked = _check.reals_where(epsilon_per_unit, "epsilon_per_unit", "at least 1e-16", lambda x: x >= 1e-16)
            decay = checked
        else:
            checked = _check.reals_where(scale, "scale", "in (0, 1e16]", lambda x: (x > 0) & (x <= 1e16))
            with np.errstate(over="ignore"):
                decay = np.asarray(1.0 / checked)
        self._hold([decay], {names[0]: checked}, fresh=[] if decay is checked else [decay])

    @property
    def alpha(self) -> Floats:
        """Ratio of neighboring probabilities."""
        return self._parameter("alpha", np.exp(-self._columns[0]))

    @property
    def epsilon_per_unit(self) -> Floats:
        """``-log(alpha)``, infinite where alpha is 0."""
        return self._parameter("epsilon_per_unit", self._columns[0].copy())

    @property
    def scale(self) -> Floats:
        """``-1 / log(alpha)``, 0 where alpha is 0."""
        return self._parameter("scale", 1.0 / self._columns[0])

    def _parameter(self, name: str, derived: npt.NDArray[np.float64] | np.float64) -> Floats:
        """Return the parameter as it was given, else derived from the decay."""
        if name in self._given:
            return self._given[name]
        return float(derived) if np.ndim(derived) == 0 else derived
