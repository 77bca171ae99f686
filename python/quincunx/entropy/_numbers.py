"""Numbers with a direction: roots and quotients of integers as decimals that are rounded outwards."""

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational

from quincunx import _check


def positive_rational(value: object, name: str) -> Fraction:
    """Return a positive number as the fraction it is."""
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, (Rational, float, Decimal)):
        value = _check.real(value, name)
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise ValueError(f"`{name}` must be finite, got {value}")
    number = Fraction(int(value) if isinstance(value, Integral) else value)  # NumPy's integers would overflow in it
    if not number > 0:
        raise ValueError(f"`{name}` must be positive, got {value}")
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 900:
        raise ValueError(f"`{name}` must have a numerator and a denominator below 2**900, got {number!r:.60}")
    return number


def integer_root(number: int, degree: int) -> int:
    """Return the largest integer whose power is at most `number`."""
    if degree == 1 or number < 2:
        return number
    if degree == 2:
        return math.isqrt(number)
    root = 1 << -(-number.bit_length() // degree)
    while True:
        smaller = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if smaller >= root:
            return root
        root = smaller


def root_below(number: Fraction, degree: int, places: int) -> Decimal:
    """Return the root of a positive number, cut after so many decimals."""
    scale = 10 ** (degree * places)
    return _decimal(integer_root(number.numerator * scale // number.denominator, degree), places)


def root_above(number: Fraction, degree: int, places: int) -> Decimal:
    """Return the root of a positive number, rounded up at so many decimals."""
    scale = 10 ** (degree * places)
    scaled = -(-number.numerator * scale // number.denominator)
    root = integer_root(scaled, degree)
    return _decimal(root if root**degree == scaled else root + 1, places)


def rational_root_below(number: Fraction, degree: int, places: int, factor: Fraction) -> Decimal:
    """Return a positive root times a factor, cut after so many decimals."""
    return root_below(number * factor**degree, degree, places)


def rational_root_above(number: Fraction, degree: int, places: int, factor: Fraction) -> Decimal:
    """Return a positive root times a factor, rounded up at so many decimals."""
    return root_above(number * factor**degree, degree, places)


def _decimal(units: int, places: int) -> Decimal:
    """Return an integer number of units of the last place, exactly."""
    sign, digits, _ = Decimal(units).as_tuple()
    return Decimal((sign, digits, -places))
