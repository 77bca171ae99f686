"""Privacy amplification by shuffling, computed from the clone reduction."""

import math

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._docs import sections


def _delta(level: float, epsilon: float, n: int) -> float:
    """Return an upper bound of the hockey-stick divergence of the clones, above by at most 1e-9, relative."""
    from scipy.stats import binom

    keep = 1 / (1 + math.exp(-level))
    clone = 2 / (math.exp(level) + 1)
    # Numbers of clones outside carry less than 1e-40, which is added.
    spread = 15 * math.sqrt(n * clone * (1 - clone)) + 200
    low = max(0, math.floor((n - 1) * clone - spread))
    high = min(n - 1, math.ceil((n - 1) * clone + spread))
    clones = np.arange(low, high + 1, dtype=np.float64)
    weight = binom.pmf(clones, n - 1, clone)
    outside = 1e-40 if (low > 0 or high < n - 1) else 0.0
    factor = math.exp(epsilon)
    gain, loss = keep - factor * (1 - keep), factor * keep - (1 - keep)
    if gain <= 0:
        return 0.0
    # With b the binomial mass of c fair coins, P(k) - e^epsilon Q(k) = gain b(k-1) - loss b(k), positive from k on
    # where b(k-1)/b(k) = k/(c-k+1) exceeds loss/gain.
    ratio = loss / gain
    first = np.floor(ratio * (clones + 1) / (1 + ratio)) + 1

    def tail(least: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(binom.sf(least - 1, clones, 0.5))

    terms = np.maximum(gain * tail(first - 1) - loss * tail(first), 0.0)
    return float((weight @ terms) * (1 + 1e-9) + outside)


@sections
def shuffled_epsilon(epsilon: float, n: int, delta: float) -> float:
    """Return the epsilon, at a delta, of the shuffled releases of n users who each have an epsilon of their own.

    The order of the releases is forgotten, so that a user hides among clones of himself. The bound is the exact
    divergence of the clone reduction.

    Parameters
    ----------
    epsilon : float
        Of each user's release, about any two of his values, > 0.
    n : int
        The number of users, >= 1.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Never below the value of the reduction and above it by less than 1e-6; at most `epsilon`.

    {domain}

    References
    ----------
    .. [1] V. Feldman, A. McMillan and K. Talwar (2021), Hiding among the clones, FOCS; (2023), Stronger privacy
       amplification by shuffling, SODA.

    Examples
    --------
    >>> from quincunx.ldp import shuffled_epsilon
    >>> round(shuffled_epsilon(1.0, 10_000, 1e-6), 3) < 0.1
    True
    """
    level = _check.real(epsilon, "epsilon", positive=True)
    users = _check.whole(n, "n", minimum=1, maximum=2**40)
    target = _check.real(delta, "delta")
    if not 0 < target < 1:
        raise ValueError(f"`delta` must be in (0, 1), got {target}")
    if level > 30 or _delta(level, level * (1 - 1e-7), users) > target:
        return level
    low, high = 0.0, level
    for _ in range(60):
        middle = (low + high) / 2
        if _delta(level, middle, users) <= target:
            high = middle
        else:
            low = middle
        if high - low < 1e-7 * high:
            break
    return high
