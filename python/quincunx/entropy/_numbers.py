"""Numbers with a direction: roots and quotients of integers as decimals that are rounded outwards."""

import itertools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Rational

import numpy as np

from quincunx import _check


@dataclass(frozen=True)
class Enclosure:
    """A proved interval of a number, its ends rounded outwards.

    Attributes
    ----------
    lower, upper : Decimal
        The ends: the number is at least `lower` and at most `upper`.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> kappa = entropy_bounds("4-8-8", digits=18).growth_constant
    >>> kappa.certified[:20], kappa.digits >= 18
    ('1.549560101335769447', True)
    """

    lower: Decimal
    upper: Decimal

    @property
    def width(self) -> Decimal:
        """The distance of the ends, exactly: the default context would round it."""
        return Context(prec=2000).subtract(self.upper, self.lower)

    @property
    def digits(self) -> int:
        """Decimals that are proved: those of `certified`."""
        return len(self.certified.partition(".")[2])

    @property
    def certified(self) -> str:
        """The number as far as both ends have its digits; empty if not even the whole part is the same.

        Ends on two sides of a round number have few digits in common, however near they are: `width` is their distance.
        """
        places = max(0, *(-int(end.as_tuple().exponent) for end in (self.lower, self.upper)))
        pairs = zip(*(f"{end:.{places}f}." for end in (self.lower, self.upper)), strict=False)
        same = "".join(a for a, b in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return same.rstrip(".") if "." in same else ""

    def __contains__(self, value: object) -> bool:
        number = Fraction(value)  # type: ignore[call-overload]
        return bool(Fraction(self.lower) <= number <= Fraction(self.upper))

    def __str__(self) -> str:
        return f"[{self.lower:f}, {self.upper:f}]"


def log_below(number: Decimal) -> Decimal:
    """Return the natural logarithm, cut two decimals after those of the number."""
    return _log(number, ROUND_FLOOR)


def log_above(number: Decimal) -> Decimal:
    """Return the natural logarithm, rounded up two decimals after those of the number."""
    return _log(number, ROUND_CEILING)


def _log(number: Decimal, rounding: str) -> Decimal:
    if number == 1:
        return Decimal(0)
    places = 2 - int(number.as_tuple().exponent)
    context = Context(prec=places + 10, rounding=rounding)
    nearest = context.ln(number)  # whatever the rounding
    aside = context.next_minus(nearest) if rounding == ROUND_FLOOR else context.next_plus(nearest)
    return aside.quantize(Decimal((0, (1,), -places)), context=context)


def positive_rational(value: object, name: str) -> Fraction:
    """Return a positive number as the fraction it is."""
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, (Rational, float, Decimal, np.floating)):
        value = _check.real(value, name)
    number = _check.rational(value, name)
    if not number > 0:
        got = value if isinstance(value, float) else _check.shown(number)
        raise ValueError(f"`{name}` must be positive, got {got}")
    if (bits := max(number.numerator.bit_length(), number.denominator.bit_length())) > 900:
        raise ValueError(f"`{name}` must have a numerator and a denominator below 2**900, got one of {bits} bits")
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


def zeros(number: Fraction, degree: int) -> int:
    """Return about how many zeros are between the point and the first digit of a root, which cost decimals."""
    bits = number.denominator.bit_length() - number.numerator.bit_length()
    return max(0, math.ceil(bits * math.log10(2) / degree))


def _decimal(units: int, places: int) -> Decimal:
    """Return an integer number of units of the last place, exactly."""
    sign, digits, _ = Decimal(units).as_tuple()
    return Decimal((sign, digits, -places))
