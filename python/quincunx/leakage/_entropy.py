"""Renyi entropies of a distribution."""

from __future__ import annotations

import numpy.typing as npt

from quincunx import _core
from quincunx.leakage import _checks


def renyi_entropy(p: npt.ArrayLike, alpha: float) -> float:
    """Return the Renyi entropy of a distribution, in bits.

    ``log2(sum(p**alpha)) / (1 - alpha)``, with its limits: Shannon entropy at ``alpha = 1``, the logarithm of the size
    of the support at 0, and min-entropy ``-log2(max(p))`` at infinity.

    Parameters
    ----------
    p : array_like of float, shape (n,)
        Probabilities.
    alpha : float
        The order, >= 0; may be infinite.

    Returns
    -------
    float
        In bits.

    Raises
    ------
    TypeError
        If an argument does not hold numbers.
    ValueError
        If `p` is negative somewhere or does not sum to 1, or `alpha` is negative.

    Examples
    --------
    >>> from quincunx.leakage import renyi_entropy
    >>> renyi_entropy([0.5, 0.25, 0.25], 1)
    1.5
    >>> renyi_entropy([0.5, 0.25, 0.25], float("inf"))
    1.0
    """
    values = _checks.distribution(p, "p")
    return _core.renyi_entropy(values, _checks.level(alpha, "alpha"))
