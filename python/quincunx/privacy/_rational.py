"""Exact numbers behind a guarantee: fractions towards more noise, floats towards a weaker guarantee."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

import numpy as np

from quincunx import _check

#: Denominators of exponents that are tried first: they find the 1/10 that is meant by 0.1.
SMALL = 2**40
#: Numerators and denominators of exponents fit 64 bits.
LARGEST = 2**62


def largest_below(value: Fraction, largest_denominator: int) -> Fraction:
    """Return the largest fraction <= `value` whose denominator is at most `largest_denominator`.

    The two candidates are the last convergent and the last semiconvergent of the continued fraction: they enclose
    `value`.
    """
    if value.denominator <= largest_denominator:
        return value
    above, below = (1, 0), (0, 1)  # numerators and denominators of the last two convergents
    numerator, denominator = value.numerator, value.denominator
    while True:
        quotient = numerator // denominator
        following = (below[0] + quotient * above[0], below[1] + quotient * above[1])
        if following[1] > largest_denominator:
            break
        below, above = above, following
        numerator, denominator = denominator, numerator - quotient * denominator
    times = (largest_denominator - below[1]) // above[1]
    candidates = (Fraction(*above), Fraction(below[0] + times * above[0], below[1] + times * above[1]))
    return max(candidate for candidate in candidates if candidate <= value)


def exponent(epsilon: float | Fraction, distance: Fraction | int, name: str = "epsilon") -> Fraction:
    """Return the exponent of noise that protects a distance: a fraction just below ``epsilon / distance``."""
    exact = Fraction(epsilon) / distance
    if exact < Fraction(1, 2**50):
        raise ValueError(f"`{name}` must be at least 2**-50 per unit of distance, got {epsilon} for {distance}")
    exact = min(exact, Fraction(1024))  # noise is never seen beyond; this only makes more of it
    simple = largest_below(exact, SMALL)
    if float(simple * distance) == epsilon:
        return simple
    return largest_below(exact, LARGEST // math.ceil(exact))


def upwards(value: Fraction) -> float:
    """Return the least float that is not below an exact value: infinite beyond all of them."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return math.nextafter(number, math.inf) if Fraction(number) < value else number


def downwards(value: Fraction) -> float:
    """Return the largest float that is not above an exact value."""
    return -upwards(-value)


def either(failure: Fraction, delta: float) -> float:
    """Return a float not below the probability of one or both of two independent events."""
    rounded = Fraction(upwards(failure))  # an exact one may have millions of digits
    return upwards(rounded + (1 - rounded) * Fraction(delta))


def root_upwards(value: Fraction) -> float:
    """Return a float not below the square root of an exact value, nor more than two roundings above.

    The root of the next larger multiple of ``4**-shift`` with 60 bits or more, in whole numbers: nothing is searched.
    """
    if not value:
        return 0.0
    shift = max(0, 60 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = -((-value.numerator << (2 * shift)) // value.denominator)
    root = math.isqrt(scaled)
    return upwards(Fraction(root + (root * root < scaled), 1 << shift))


def log_upwards(odds: Fraction) -> float:
    """Return a float not below the logarithm of a number of at least 1."""
    if odds < 2:
        return math.nextafter(math.log1p(upwards(odds - 1)) * (1 + 2.0**-50), math.inf)
    more = max(0, odds.numerator.bit_length() - odds.denominator.bit_length() - 500)
    return (math.log(upwards(odds / 2**more)) + more * math.log(2)) * (1 + 2.0**-50)


def amplified_upwards(epsilon: float, rate: float) -> float:
    """Return a float not below ``log(1 + rate (exp(epsilon) - 1))``."""
    if epsilon > 700:
        return epsilon
    return min(math.nextafter(math.log1p(rate * math.expm1(epsilon)) * (1 + 2.0**-49), math.inf), epsilon)


def fraction(value: object, name: str, *, below_one: bool = False) -> Fraction:
    """Return a number >= 0 exactly as it was given."""
    number = _check.real(value, name)  # raises where it is beyond a double
    written = isinstance(value, (Rational, Decimal, np.floating))
    exact = _check.rational(value, name) if written else Fraction(number)
    if exact.numerator < 0 or (below_one and exact.numerator >= exact.denominator):
        raise ValueError(f"`{name}` must be {'in [0, 1)' if below_one else 'at least 0'}, got {number}")
    return exact
