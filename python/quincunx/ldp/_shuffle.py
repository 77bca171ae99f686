"""Privacy amplification by shuffling, computed from the clone reduction.

Beside his own release a user hides among C clones, C ~ Bin(n - 1, 2 / (1 + e^e0)), of which A ~ Bin(C, 1/2) tell for
the one of two values. With c clones, and b the masses of A, the divergence is
``gain b(f - 1) - (e^epsilon - 1) P(A >= f)``, where f is the first count that tells for the one by more than e^epsilon.

Masses are Loader's: remainders of Stirling's series, and deviances from the mean, which lose no digits at any n. Tails
follow one from another as c falls: P(A >= f) gains or loses half a mass at each step. All is done in long doubles, with
bounds of the errors in their roundoff.

Source: C. Loader (2000), Fast and accurate computation of binomial probabilities.
"""

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._docs import sections

_Array: TypeAlias = npt.NDArray[np.longdouble]
_Long: TypeAlias = _Array | np.longdouble
_ROUND = np.finfo(np.longdouble).eps
_TINY = np.finfo(np.longdouble).tiny
#: Numbers of clones looked at together: a megabyte for each array. More are fewer calls of NumPy, and a wider bound of
#: the roundings of their sums.
_TOGETHER = 1 << 16
#: log x! - (x log x - x) for x below 32, and its series in 1/x, cut below 1e-22 from 32 on.
_FEW = np.arange(32, dtype=np.longdouble)
_REMAINDERS = np.log(np.cumprod(np.maximum(_FEW, 1))) - _FEW * np.log(np.maximum(_FEW, 1)) + _FEW
_SERIES = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156))
_TWO_PI = 8 * np.arctan(np.longdouble(1))


def _remainder(x: _Long) -> _Array:
    """Return log x! - (x log x - x)."""
    large = np.maximum(x, 32)
    series = np.zeros_like(large)
    for numerator, denominator in reversed(_SERIES):
        series = series / large**2 + np.longdouble(numerator) / denominator
    found = series / large + np.log(_TWO_PI * large) / 2
    return np.where(x < 32, _REMAINDERS[np.minimum(x, 31).astype(np.int64)], found)


def _deviance(x: _Array, mean: _Long) -> _Array:
    """Return x log(x / mean) + mean - x."""
    v = (x - mean) / np.maximum(x + mean, _TINY)
    square = v * v
    series = np.zeros_like(v)
    for j in range(12, 0, -1):  # a tenth to the power of 26 is cut
        series = (series + np.longdouble(1) / (2 * j + 1)) * square
    plain = x * np.log(np.maximum(x, 1) / np.maximum(mean, _TINY)) + (mean - x)
    return np.where(np.abs(v) < 0.1, (x - mean) * v + 2 * x * v * series, plain)


def _log_mass(k: _Array, n: _Long, mean: _Long, rest: _Long) -> tuple[_Array, _Array]:
    """Return the log of the binomial mass at k of n with the means of k and of n - k, and a bound of its error.

    The bound allows for half a roundoff in one of the means, which are n in all.
    """
    deviance = _deviance(k, mean) + _deviance(n - k, rest)
    found = _remainder(n) - _remainder(k) - _remainder(n - k) - deviance
    return found, _ROUND * (512 + 256 * deviance + 2 * np.abs(k - mean))


def _clones(level: float, n: int, outside: float) -> list[tuple[_Array, _Array]]:
    """Return numbers of clones and bounds of their chances, in stretches; others have no more than a chance in all."""
    others, half = np.longdouble(n - 1), np.longdouble(level) / 2
    # Fewer clones hide less, so the mean is rounded down; the smaller of the two means is found to a roundoff.
    if level > 1:
        mean = others / (np.exp(half) * np.cosh(half)) * (1 - 16 * _ROUND)
        rest = others - mean
    else:
        rest = np.minimum(others * np.tanh(half) * (1 + 16 * _ROUND), others)
        mean = others - rest
    # Bernstein's inequality.
    log = math.log(2 / outside) if outside > 2e-308 else math.log(2) - math.log(outside)
    spread = log / 3 + math.sqrt(log * log / 9 + 2 * log * float(mean) * float(rest) / max(n - 1, 1)) * 1.001 + 1
    low, high = max(0, math.floor(float(mean) - spread)), min(n - 1, math.ceil(float(mean) + spread))
    found = []
    for start in range(low, high + 1, _TOGETHER):
        clones = np.arange(start, min(start + _TOGETHER, high + 1), dtype=np.longdouble)
        mass, error = _log_mass(clones, others, mean, rest)
        found.append((clones, np.exp(mass + error)))
    return found


def _tail(clones: np.longdouble, first: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    """Return P(A >= first), and a bound of its error: what is cut beyond eight deviations is 1e-14 of it."""
    last = min(float(clones), float(first) + 4 * math.sqrt(float(clones)) + 64)
    total = error = np.longdouble(0)
    for start in np.arange(float(first), last + 1, _TOGETHER):
        k = np.arange(start, min(start + _TOGETHER, last + 1), dtype=np.longdouble)
        log, slack = _log_mass(k, clones, clones / 2, clones / 2)
        mass = np.exp(log)
        total, error = total + mass.sum(), error + (mass * (2 * slack + _TOGETHER * _ROUND)).sum()
    return total, error


def _delta(level: float, epsilon: float, clones: list[tuple[_Array, _Array]], outside: float) -> np.longdouble:
    """Return a bound of the hockey-stick divergence of the clones, above by at most 1e-9, relative, and `outside`."""
    own, other = np.longdouble(level), np.longdouble(epsilon)
    keep = 1 / (1 + np.exp(-own))
    gain, more = -keep * np.expm1(other - own), np.expm1(other)
    # gain b(k - 1) exceeds loss b(k) where k / (c - k + 1) exceeds loss / gain.
    loss = keep * (more - np.expm1(-own))
    share, rest = loss / (gain + loss), gain / (gain + loss)
    # Closer to 1 than this the first count is the last, or far in a tail.
    close = max(2.0**-20, 8 * float(_ROUND * clones[-1][0][-1]))
    total = _TINY + np.longdouble(outside) + 2.0 ** (-0.9 / close)
    tail = error = None
    # From many clones to few, so that tails grow and errors do not.
    for c, weight in reversed(clones):
        following = np.append(c, c[-1] + 1)
        first = following + 1 if rest < close else np.floor(share * (following + 1)) + 1
        if tail is None or error is None:
            tail, error = _tail(following[-1], first[-1])
        rises, first = np.diff(first) > 0, first[:-1]
        log, slack = _log_mass(first - 1, c, c / 2, c / 2)
        mass, slack = np.exp(log), 2 * slack + 16 * _ROUND
        steps = np.where(rises, mass * (c - first + 1) / first, -mass)[::-1] / 2
        tails = np.cumsum(np.append(tail, steps))
        errors = np.cumsum(np.append(error, np.abs(steps) * slack[::-1] + 2 * _ROUND * np.abs(tails[1:])))
        errors *= 1 + len(c) * _ROUND
        # A product that was rounded across a whole number adds what is next to nothing.
        won = gain * mass * (1 + slack + 64 * _ROUND / max(rest, close))
        lost = more * (1 - 16 * _ROUND) * np.maximum(tails - errors, 0)[:0:-1]
        total += (weight * np.maximum(won - lost, 0)).sum() * (1 + 2 * len(c) * _ROUND)
        tail, error = tails[-1], errors[-1]
    return np.longdouble(total)


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
        Never below the value of the reduction, and above it by less than 1e-6; `epsilon` itself where that is above 30,
        or `delta` below 1e-311.

    {domain}

    Notes
    -----
    The errors of all sums are bounded and added, at every `n`. Time grows with its square root: a fifth of a second of
    processor time at 1e6 users, seven seconds at 1e9.

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
    from scipy.optimize import brentq

    level = _check.real(epsilon, "epsilon", positive=True)
    users = _check.whole(n, "n", minimum=1, maximum=2**40)
    target = _check.open_probability(delta, "delta")
    outside = target * 2.0**-40
    if level > 30 or outside == 0:
        return level
    clones = _clones(level, users, outside)

    def beyond(found: float) -> float:
        return float(np.log(_delta(level, found, clones, outside)) - np.log(np.longdouble(target)))

    high = level * (1 - 1e-7)
    if _delta(level, high, clones, outside) > target:
        return level
    if _delta(level, 0.0, clones, outside) <= target:
        return 0.0
    least = found = float(brentq(beyond, 0.0, high, xtol=1e-9 * level, rtol=1e-8))
    while _delta(level, found, clones, outside) > target:  # to the upper side of the root
        found, least = found + 2 * (found - least) + 1e-9 * level, found
    return min(found, level)
