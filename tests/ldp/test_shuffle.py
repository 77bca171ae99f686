"""Privacy amplification by shuffling: the divergence of the clones is never below the exact one."""

import math
import random

import mpmath as mp
import numpy as np
import pytest

from quincunx.ldp import shuffled_epsilon
from quincunx.ldp._shuffle import _clones, _delta, _tail


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def parts(level, epsilon):
    """Return the share of clones from which an output tells more than e^epsilon, and the two factors."""
    keep, factor = 1 / (1 + mp.exp(-mp.mpf(level))), mp.exp(mp.mpf(epsilon))
    gain, loss = keep - factor * (1 - keep), factor * keep - (1 - keep)
    return loss / (gain + loss), gain, factor - 1


def mass(k, n):
    return mp.exp(mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1) - n * mp.log(2))


def tail(first, n):
    """Return P(A >= first) by its series, ten deviations far."""
    if first > n:
        return mp.mpf(0)
    term = total = 1 << 240  # in units of the first
    for j in range(first, min(n, first + 8 * math.isqrt(n) + 60)):
        term = term * (n - j) // (j + 1)
        total += term
    return mass(first, n) * mp.ldexp(total, -240)


def won(c, level, epsilon):
    """Return the divergence with c clones."""
    share, gain, more = parts(level, epsilon)
    first = int(mp.floor(share * (c + 1))) + 1
    return gain * mass(first - 1, c) - more * tail(first, c)


def exact(level, epsilon, n, deviations=16):
    """Return the divergence of the clones by recurrences in 60 digits, those beyond some deviations left out."""
    share, gain, more = parts(level, epsilon)
    p = 2 / (mp.exp(mp.mpf(level)) + 1)
    mean, sd = (n - 1) * p, mp.sqrt((n - 1) * p * (1 - p))
    c, high = max(0, int(mean - deviations * sd - 40)), min(n - 1, int(mean + deviations * sd + 40))
    weight = mp.exp(
        mp.loggamma(n) - mp.loggamma(c + 1) - mp.loggamma(n - c) + c * mp.log(p) + (n - 1 - c) * mp.log1p(-p)
    )
    first = int(mp.floor(share * (c + 1))) + 1
    b, beyond, odds, total = mass(first - 1, c), tail(first, c), p / (1 - p), mp.mpf(0)
    while True:
        total += weight * (gain * b - more * beyond)
        if c == high:
            return total
        following = int(mp.floor(share * (c + 2))) + 1
        weight *= odds * (n - 1 - c) / (c + 1)
        if following == first:
            beyond += b / 2
            b *= mp.mpf(c + 1) / (2 * (c + 2 - first))
        else:
            b *= mp.mpf(c + 1 - first) / first  # b(first) of c clones
            beyond -= b / 2
            b = b * mp.mpf(c + 1) / (2 * (c + 1 - first)) if first <= c else mp.ldexp(1, -c - 1)
        c, first = c + 1, following


def long(value):
    """Return a long double as it is."""
    high = float(value)
    return mp.mpf(high) + mp.mpf(float(value - np.longdouble(high)))


def check(level, epsilon, n, outside, truth):
    found = long(_delta(level, epsilon, _clones(level, n, outside), outside))
    assert truth <= found <= truth * (1 + mp.mpf("1e-9")) + 3 * mp.mpf(outside), (level, epsilon, n)


def test_a_small_sum_by_hand():
    # Four users who tell the truth with 3/4: 217/1024 at e^epsilon = 5/4.
    level, epsilon = math.log(3), math.log(1.25)
    assert mp.almosteq(exact(level, epsilon, 4), mp.mpf(217) / 1024, 1e-15)
    assert float(_delta(level, epsilon, _clones(level, 4, 1e-30), 1e-30)) == pytest.approx(217 / 1024, rel=1e-14)
    assert 1.25 <= math.exp(shuffled_epsilon(level, 4, 217 / 1024)) * (1 + 1e-15) < 1.25 * (1 + 1e-7)


def test_the_reference_is_the_sum_over_all_outputs():
    for level, epsilon, n in [(1.0, 0.3, 1), (1.0, 0.2, 2), (0.4, 0.05, 9), (3.0, 1.0, 23), (2.0, 0.0, 40)]:
        keep, factor = 1 / (1 + mp.exp(-mp.mpf(level))), mp.exp(mp.mpf(epsilon))
        p, total = 2 / (mp.exp(mp.mpf(level)) + 1), mp.mpf(0)
        for c in range(n):
            b = [mp.mpf(math.comb(c, k)) / 2**c if 0 <= k <= c else mp.mpf(0) for k in range(-1, c + 2)]
            for k in range(c + 2):
                one, other = keep * b[k] + (1 - keep) * b[k + 1], (1 - keep) * b[k] + keep * b[k + 1]
                total += math.comb(n - 1, c) * p**c * (1 - p) ** (n - 1 - c) * max(0, one - factor * other)
        assert mp.almosteq(exact(level, epsilon, n), total, mp.mpf("1e-45"))


def test_divergences_of_random_clones_are_never_below_the_exact_ones():
    rng = random.Random(5)
    for _ in range(150):
        n = rng.choice([rng.randrange(1, 12), rng.randrange(1, 300), rng.randrange(300, 5000)])
        level = rng.choice([rng.uniform(0.01, 1), rng.uniform(1, 6), rng.uniform(6, 30), 10 ** rng.uniform(-9, -2)])
        epsilon = level * rng.choice([0.0, rng.random() ** 4, rng.random(), 1 - 1e-7])
        check(level, epsilon, n, 1e-30, exact(level, epsilon, n))


@pytest.mark.parametrize("n", [10**8, 10**9])
@pytest.mark.parametrize("deviation", range(9))
def test_the_divergence_with_many_clones_is_never_below_the_exact_one(n, deviation):
    # One number of clones, and the same at the end of a stretch along which tails follow from another.
    level = 1.0
    keep, ratio = 1 / (1 + math.exp(-level)), (1 + deviation / math.sqrt(n)) / (1 - deviation / math.sqrt(n))
    epsilon = max(math.log((ratio * keep + 1 - keep) / (keep + ratio * (1 - keep))), 0.0)
    truth, one = won(n, level, epsilon), np.ones(1, dtype=np.longdouble)
    stretch = np.arange(n, n + 3000, dtype=np.longdouble)
    parts_of_it = [(part, (part == n).astype(np.longdouble)) for part in (stretch[:1000], stretch[1000:])]
    for clones in ([(stretch[:1], one)], parts_of_it):
        found = long(_delta(level, epsilon, clones, 0.0))
        assert truth <= found <= truth * (1 + mp.mpf("1e-9"))


def test_the_divergence_of_ten_million_users_is_never_below_the_exact_one():
    check(1.0, 1.2e-3, 10**7, 1e-25, exact(1.0, 1.2e-3, 10**7, 9))


@pytest.mark.slow
@pytest.mark.parametrize("n", [10**8, 10**9])
@pytest.mark.parametrize(("level", "deviation"), [(1.0, 0.5), (1.0, 6.0), (0.2, 3.0), (4.0, 4.0)])
def test_the_divergence_of_many_more_users_is_never_below_the_exact_one(n, level, deviation):
    p = 2 / (math.exp(level) + 1)
    epsilon = deviation * 2 * math.tanh(level / 2) / math.sqrt(n * p)
    check(level, epsilon, n, 1e-25, exact(level, epsilon, n, 10))


def test_epsilons_of_random_users_are_never_below_the_crossing_and_close_to_it():
    rng = random.Random(6)
    for _ in range(40):
        n, level = round(10 ** rng.uniform(0, 4)), rng.choice([rng.uniform(0.05, 2), rng.uniform(2, 8)])
        delta = 10 ** rng.uniform(-12, -1)
        found = shuffled_epsilon(level, n, delta)
        assert 0 <= found <= level
        if found < level:
            assert exact(level, found, n) <= delta
        if found:
            assert exact(level, max(found - 1e-6, 0), n) > delta or found <= 1e-6


def test_more_users_hide_better_up_to_the_most_that_are_taken():
    found = [shuffled_epsilon(2.0, 10**k, 1e-8) for k in range(8)]
    assert found == sorted(found, reverse=True)
    assert shuffled_epsilon(40.0, 10**6, 1e-8) == 40.0
    assert shuffled_epsilon(1.0, 1, 1e-6) == pytest.approx(1.0, rel=1e-5)
    assert shuffled_epsilon(1.0, 1000, 5e-324) == 1.0
    assert shuffled_epsilon(1.0, 10**4, 1e-200) < shuffled_epsilon(1.0, 10**4, 1e-300) <= 1.0
    assert shuffled_epsilon(1.0, 10**6, 0.9) == 0.0


def test_a_tail_by_its_series():
    for c, first in [(0, 1), (5, 3), (40, 20), (1000, 520), (10**6, 500_900)]:
        found, error = (long(value) for value in _tail(np.longdouble(c), np.longdouble(first)))
        truth = tail(first, c)
        assert truth * (1 - mp.mpf("2e-14")) - error <= found <= truth + error
