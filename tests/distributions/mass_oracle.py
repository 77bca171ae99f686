"""Masses, moments and entropies by multiple precision, for comparison: slow, and by other formulas than the core's."""

from fractions import Fraction
from functools import cache

import mpmath as mp

mp.mp.dps = 60


@cache
def debye(terms: int) -> list[list[Fraction]]:
    """Polynomials u_k of the uniform expansion in exact arithmetic, in powers of p^2 after p^k is taken out."""
    rows = [[Fraction(1)]]
    for k in range(terms):
        row = [Fraction(0)] * (k + 2)
        for i, x in enumerate(rows[-1]):
            e = k + 2 * i
            row[i] += x * Fraction(e, 2) + x / (8 * (e + 1))
            row[i + 1] -= x * Fraction(e, 2) + 5 * x / (8 * (e + 3))
        rows.append(row)
    return rows


@cache
def log_bessel_i(order: int, argument: float):
    """ln I_order(argument), by the power series, or by 24 terms of the uniform expansion (error below 1e-40)."""
    v, a = mp.mpf(order), mp.mpf(argument)
    h = mp.sqrt(v * v + a * a)
    if h < 3000:
        return v * mp.log(a / 2) - mp.loggamma(v + 1) + mp.log(mp.hyp0f1(v + 1, a * a / 4))
    s = (v / h) ** 2
    series = mp.mpf(0)
    for k, row in enumerate(debye(24)):
        series += sum(mp.mpf(x.numerator) / x.denominator * s**i for i, x in enumerate(row)) / h**k
    return h + v * mp.log(a / (v + h)) - mp.log(2 * mp.pi * h) / 2 + mp.log(series)


def log_bessel_mass(n: int, order: int, argument: float):
    """ln of (a/2)^(2n+v) / (n! (n+v)! I_v(a))."""
    half = mp.log(mp.mpf(argument) / 2)
    return (2 * n + order) * half - mp.loggamma(n + 1) - mp.loggamma(n + order + 1) - log_bessel_i(order, argument)


def log_skellam_mass(k: int, plus: float, minus: float):
    """ln of exp(-a-b) (a/b)^(k/2) I_|k|(2 sqrt(ab)), with the argument kept in full precision."""
    a, b = mp.mpf(plus), mp.mpf(minus)
    return -a - b + mp.mpf(k) / 2 * mp.log(a / b) + log_bessel_i(abs(k), 2 * mp.sqrt(a * b))


def log_two_piece_weight(y: int, released: int, rate: float, alpha: float):
    """ln of mu^y / y! alpha^|o - y|."""
    return y * mp.log(mp.mpf(rate)) - mp.loggamma(y + 1) + abs(released - y) * mp.log(mp.mpf(alpha))


def log_two_piece_total(released: int, rate: float, alpha: float):
    """ln of the sum of the weights: by incomplete gamma functions."""
    mu, a, o = mp.mpf(rate), mp.mpf(alpha), released
    if o <= 0:
        return -o * mp.log(a) + a * mu
    below = o * mp.log(a) + mu / a + mp.log(mp.gammainc(o + 1, mu / a, mp.inf, regularized=True))
    above = -o * mp.log(a) + a * mu + mp.log(mp.gammainc(o + 1, 0, a * mu, regularized=True))
    top = max(below, above)
    return top + mp.log(mp.exp(below - top) + mp.exp(above - top))


def summary_of(log_weights: dict[int, object]) -> dict[str, object]:
    """Mean, variance, skewness, excess kurtosis and entropy of a law given by all its log-weights."""
    top = max(log_weights.values())
    weights = {k: mp.exp(w - top) for k, w in log_weights.items()}
    total = mp.fsum(weights.values())
    masses = {k: w / total for k, w in weights.items()}
    mean = mp.fsum(k * p for k, p in masses.items())
    second, third, fourth = (mp.fsum((k - mean) ** j * p for k, p in masses.items()) for j in (2, 3, 4))
    return {
        "mean": mean,
        "variance": second,
        "skewness": third / second**1.5,
        "excess_kurtosis": fourth / second**2 - 3,
        "entropy": -mp.fsum(p * mp.log(p) for p in masses.values() if p > 0),
    }
