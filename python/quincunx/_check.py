"""Checks of arguments: each takes a value and its name, and returns the value ready for use or raises.

The message names the argument as the user wrote it, says the rule, and shows the value. NaN fails every check.
"""

import contextlib
import math
import operator
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, SupportsFloat, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _core
from quincunx._types import Array
from quincunx.errors import TooLargeError

#: A number taken as the rational number it is.
Number: TypeAlias = float | str | Rational | Decimal | np.integer
Scalar = TypeVar("Scalar", bound=np.generic)


def whole(value: object, name: str, *, minimum: int | None = 0, maximum: int | None = None) -> int:
    """Return a whole number as an int: `3` and `3.0` are, `3.5`, `True` and `"3"` are not."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be a whole number, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if not isinstance(value, (float, np.floating)):
            raise TypeError(f"`{name}` must be a whole number, got {type(value).__name__}") from None
        if not float(value).is_integer():
            raise TypeError(f"`{name}` must be a whole number, got {value!r}") from None
        number = int(value)
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        raise ValueError(f"`{name}` must be {_range(minimum, maximum)}, got {shown(number)}")
    return number


def _range(minimum: float | None, maximum: float | None) -> str:
    if maximum is None:
        return f"at least {minimum}"
    return f"at most {maximum}" if minimum is None else f"between {minimum} and {maximum}"


def shown(number: int | Fraction) -> str:
    """Print a number for a message; Python refuses to print integers of more than 4300 digits."""
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    kind = "an integer" if number.denominator == 1 else "a fraction"
    return str(number) if bits < 10_000 else f"{kind} of {bits} bits"


def real(value: object, name: str, *, positive: bool = False) -> float:
    """Return a finite number as a float."""
    # The check of the protocol takes microseconds, so plain numbers pass by it.
    refused = (bool, np.bool_, str, bytes, np.complexfloating)
    plain = type(value) in (float, int, Fraction)
    if not plain and (isinstance(value, refused) or not isinstance(value, SupportsFloat)):
        raise TypeError(f"`{name}` must be a number, got {type(value).__name__}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` must be a number, got {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(
            f"`{name}` must be within the range of a double, got {type(value).__name__} beyond it"
        ) from None
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite, got {number}")
    if positive and not number > 0:
        raise ValueError(f"`{name}` must be positive, got {number}")
    return number


def nonnegative(value: object, name: str) -> float:
    """Return a number of at least 0 as a float."""
    number = real(value, name)
    if number < 0:
        raise ValueError(f"`{name}` must be at least 0, got {number}")
    return number


def probability(value: object, name: str) -> float:
    """Return a number in [0, 1] as a float."""
    number = real(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"`{name}` must be in [0, 1], got {number}")
    return number


def open_probability(value: object, name: str) -> float:
    """Return a number in (0, 1) as a float."""
    number = real(value, name)
    if not 0 < number < 1:
        raise ValueError(f"`{name}` must be in (0, 1), got {number}")
    return number


def rational(value: object, name: str) -> Fraction:
    """Return a number as the rational number it is."""
    if isinstance(value, (bool, np.bool_, bytes)):
        raise TypeError(f"`{name}` must be a number, got {value!r}")
    written = isinstance(value, str) and re.search(r"e[-+]?[0_]*(?!0)\d[\d_]{4,}", value, re.IGNORECASE)
    if written or (isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) >= 10_000):
        raise ValueError(f"`{name}` must have an exponent of at most four digits, got {value!r:.60}")
    if isinstance(value, str):  # "1/2" and "0.5" are the same, and exact
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"`{name}` must be a number such as '1/2' or '0.5', got {value!r}") from None
    if isinstance(value, Decimal) and not value.is_finite():  # the float of 1e400 is not
        raise ValueError(f"`{name}` must be finite, got {value}")
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"`{name}` must be finite, got {value}")
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    try:
        return Fraction(value)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise TypeError(f"`{name}` must be an int, a Fraction or a float, got {type(value).__name__}") from None


def one_of(value: object, name: str, choices: Iterable[str]) -> str:
    """Return a word that is one of a few."""
    choices = list(choices)
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be one of {choices}, got {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}, got {value!r}{meant(value, choices)}")
    return value


def meant(word: object, choices: Iterable[object]) -> str:
    """Return the question whether the choice nearest to a word was meant, for the end of a message, or nothing."""
    if not isinstance(word, str):
        return ""
    from difflib import get_close_matches

    by_small = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    close = get_close_matches(word.lower()[:100], by_small, 1)
    return f" (did you mean {by_small[close[0]]!r}?)" if close else ""


def counts(value: object, name: str, *, minimum: int | None = 0) -> npt.NDArray[np.int64]:
    """Return whole numbers as a C-contiguous int64 array, a copy only where one is needed.

    The message for a bad value names the index of the first one.
    """
    array = unrounded(value, name)
    if array.dtype.kind not in "iuf" and array.size:
        raise _not_numbers(array, name, "whole numbers")
    if array.dtype.kind == "i" and (minimum is None or not array.size or array.min() >= minimum):
        return laid_out(array, np.int64)
    if array.dtype == np.float64 and array.size:
        least = -(2**53) if minimum is None else minimum
        if array.min() >= least and array.max() <= 2**53 and (array == np.floor(array)).all():
            return laid_out(array, np.int64)
    bad = np.zeros(array.shape, dtype=bool)
    if array.dtype.kind == "f" and array.itemsize == 2:
        array = array.astype(np.float32)  # 2**63 is beyond half precision
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = ~((array == np.floor(array)) & (np.abs(array) < 2.0**63))
    elif array.dtype.kind == "u":
        refuse(array, array > np.uint64(2**63 - 1), name, "whole numbers below 2**63")
    if minimum is not None:
        bad |= array < minimum
    refuse(array, bad, name, "whole numbers" if minimum is None else f"whole numbers of at least {minimum}")
    return laid_out(array, np.int64)


def narrow_counts(value: object, name: str, *, minimum: int | None = 0) -> Array:
    """Return whole numbers as `counts` does, but arrays of at most 32 bits in the signed integers that hold them."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.itemsize < 8 and value.size:
        array = unmasked(value, name, kept=True)
        if minimum is None or array.min() >= minimum:
            return laid_out(array, np.promote_types(array.dtype, np.int8).type)
    return counts(value, name, minimum=minimum)


def smallest_integers(low: int, high: int) -> type[np.signedinteger[Any]]:
    """Return the smallest signed integers of NumPy that hold two whole numbers of 64 bits."""
    return next(kind for kind in _SIGNED if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def laid_out(array: Array, kind: type[Scalar]) -> npt.NDArray[Scalar]:
    """Return an array of a kind as the core reads it: C-contiguous and aligned, a copy only where one is needed."""
    found: npt.NDArray[Scalar] = np.asarray(array, dtype=kind, order="C")
    return found if found.flags.aligned else found.copy()


def unmasked(value: object, name: str, *, kept: bool = False) -> Array:
    """Return an array, unless cells of it are masked: `numpy.asarray` would show what is under the mask."""
    fits(value, name, kept=kept)
    value = computed(value)
    refuse_masked(value, name)
    return np.asarray(value)


def unrounded(value: object, name: str) -> Array:
    """Return an array as `unmasked` does, unless whole numbers of it were rounded.

    `numpy.asarray` does so beside floats in a list or a table: near ones would move apart.
    """
    array = unmasked(value, name)
    if array.dtype.kind == "f" and not isinstance(value, np.ndarray) and (np.abs(array) >= 2**53).any():
        given: Any = computed(value)
        if hasattr(given, "astype"):  # pandas
            given = given.astype(object)
        elif hasattr(given, "rows"):  # polars
            given = given.rows()
        elif hasattr(given, "column_names"):  # pyarrow
            given = [list(row.values()) for row in given.to_pylist()]
        refuse_rounded(np.asarray(given, dtype=object), array, name)
    return array


def refuse_rounded(given: Array, rounded: Array, name: str) -> None:
    """Refuse objects of which some are whole numbers that floats do not hold."""
    bad = np.array(np.abs(rounded) >= 2**53)
    bad[bad] = given[bad] != rounded[bad]
    refuse(given, bad, name, "whole numbers of at most 2**53 in size beside floats")


def computed(value: Any) -> Any:
    """Return what Dask computes of a collection of its own, whose arrays would lose their masks; else the value."""
    return value.compute() if hasattr(value, "__dask_graph__") else value


def refuse_masked(value: object, name: str) -> None:
    """Refuse an array with masked cells, and lists with such arrays at any depth."""
    if isinstance(value, (list, tuple)):
        for part in value:
            if not isinstance(part, (int, float, str)):
                refuse_masked(part, name)
        return
    inner = getattr(value, "__dict__", {}).get("values", value)  # a release's own; a table of pandas would make them
    if isinstance(inner, np.ma.MaskedArray) and np.ma.is_masked(inner):
        raise ValueError(f"`{name}` must have no masked cells, got {int(np.ma.getmaskarray(inner).sum())} of them")


def reals_where(
    value: object, name: str, rule: str, good: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]
) -> npt.NDArray[np.float64]:
    """Return real numbers that obey a rule as a C-contiguous float64 array, a copy only where one is needed.

    `good` answers where the rule holds, which must be an interval, and `rule` completes "must be ...". NaN and
    infinities are refused. The message for a bad value names the index of the first one.
    """
    # A plain number that is fine takes a tenth of the time of an array.
    if (type(value) is float and math.isfinite(value)) or (type(value) is int and -(2**53) <= value <= 2**53):
        number = np.array(value, dtype=np.float64)
        if good(number):
            return number
    array = unmasked(value, name)
    if array.dtype.kind not in "iuf" and array.size:
        raise _not_numbers(array, name, "real numbers")
    array = laid_out(array, np.float64)
    if array.size > 1:
        ends = np.array([array.min(), array.max()])  # NaN if one is
        if (np.asarray(good(ends)) & np.isfinite(ends)).all():
            return array
    require(array, np.asarray(good(array)) & np.isfinite(array), name, rule)
    return array


def require(array: npt.NDArray[np.float64], fine: npt.NDArray[np.bool_], name: str, rule: str) -> None:
    """Refuse real numbers of which some are not fine, naming the index of the first one."""
    if not fine.all():
        index, place = first(~fine)
        raise ValueError(f"`{name}` must be {rule}, got {float(array[index])}{place}")


def counts_as_floats(value: object, name: str, *, minimum: int | None = 0) -> npt.NDArray[np.float64]:
    """Return whole numbers of at most 2**53 in size as a C-contiguous float64 array, where they are exact."""
    if type(value) is int and (minimum is None or value >= minimum) and -(2**53) <= value <= 2**53:
        return np.array(value, dtype=np.float64)
    array = counts(value, name, minimum=minimum)
    if array.size and not (array.max() <= 2**53 and array.min() >= -(2**53)):
        refuse(array, (array > 2**53) | (array < -(2**53)), name, "whole numbers of at most 2**53 in size")
    return array.astype(np.float64)


def threads(value: object) -> int:
    """Return a number of threads; `None` means what this process may use."""
    return _core.available_threads() if value is None else whole(value, "threads", minimum=1, maximum=256)


def memory_limit(value: object) -> int:
    """Return a memory limit in bytes; `None` means what is available on this machine now."""
    return available_memory() if value is None else min(whole(value, "memory_limit", minimum=1), MOST_MEMORY)


def flag(value: object, name: str) -> bool:
    """Return a bool: True and False, Python's or NumPy's."""
    if not isinstance(value, (bool, np.bool_)):
        found = f"{value!r:.60}" if isinstance(value, (str, int, float)) else type(value).__name__
        raise TypeError(f"`{name}` must be True or False, got {found}")
    return bool(value)


def path(value: object, name: str) -> str | None:
    """Return the path of a file as a str, or `None`."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, os.PathLike) or not isinstance(found := os.fspath(value), str):
        raise TypeError(f"`{name}` must be a path, got {type(value).__name__}")
    return found


def executor(value: object) -> None:
    """Refuse what is no executor."""
    if not isinstance(value, Executor):
        raise TypeError(f"`executor` must be a concurrent.futures.Executor, got {type(value).__name__}")


def interval(value: object, name: str) -> float | None:
    """Return a time in seconds, or `None` where the choice is left to the core."""
    return None if value is None else min(nonnegative(value, name), _LONGEST_INTERVAL)


def fits(value: object, name: str, *, kept: bool = False) -> None:
    """Refuse what a copy has no memory for: views, ranges and claimed lengths can be of any size.

    The copy is of 64 bits a number, or `kept` in the array's own.
    """
    if isinstance(value, range):
        try:
            room(49 * len(value), f"an array of `{name}`")  # NumPy makes a list of it on the way
        except OverflowError:
            room(2**70, f"an array of `{name}`")
    elif isinstance(value, np.ndarray) and value.size > 1 << 24:
        width = value.dtype.itemsize if kept else 8
        copied = not (value.dtype.itemsize == width and value.flags.c_contiguous)
        room(value.size * (1 + width if copied else 1), f"a copy of `{name}`")
    elif not isinstance(value, (list, tuple, str, bytes, np.ndarray)):
        claimed = 0
        with contextlib.suppress(Exception):  # whoever reads it says what is wrong with it
            claimed = operator.length_hint(value)
        room(8 * claimed, f"a list of `{name}`")  # which is asked for before the first of them is


_SIGNED = (np.int8, np.int16, np.int32, np.int64)

# Bytes that are taken without asking the system.
_SMALL = 1 << 20


def room(needed: int, what: str, limit: int | None = None) -> None:
    """Refuse what needs more bytes than a limit, or than this process could get, before any of it is made."""
    if needed <= _SMALL and limit is None:
        return
    limit = available_memory() if limit is None else limit
    if needed > limit:
        needed = min(needed, 2**130)  # what no machine has is said as such
        raise TooLargeError(f"{what} needs {needed} bytes, the limit is {limit} bytes", needed, limit)


# What the core's clocks and sizes can hold, with room to spare; beyond them nothing can be told apart.
MOST_MEMORY = 2**62
_LONGEST_INTERVAL = 1e9


def available_memory() -> int:
    """Return the bytes this process could still get.

    That is the least of what the system, the limit of its address space and its control groups leave; the answer may be
    a second old.
    """
    return _core.available_memory()


def reals(value: object, name: str) -> npt.NDArray[np.float64]:
    """Return finite numbers as a C-contiguous float64 array; the message names the index of the first bad one."""
    array = unmasked(value, name)
    if array.dtype.kind not in "iuf" and array.size:
        raise _not_numbers(array, name, "numbers")
    bad = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    refuse(array, bad, name, "finite numbers")
    return laid_out(array, np.float64)


def exact_reals(value: object, name: str) -> npt.NDArray[np.float64]:
    """Return finite numbers as `reals` does, but refuse those that a double may round: near ones would move apart."""
    array = unrounded(value, name)
    found = reals(array, name)
    if array.itemsize > 8:
        refuse(array, found != array, name, "numbers that a double holds exactly")
    elif array.dtype.kind in "iu" and array.itemsize == 8:
        refuse(array, (array > 2**53) | (array < -(2**53)), name, "whole numbers of at most 2**53 in size, or floats")
    return found


def categories(value: object, name: str, number: int) -> Array:
    """Return whole numbers in 0..number-1 as a C-contiguous array of integers, of the caller's kind where they were.

    Bits may be booleans. The message names the index of the first bad value.
    """
    array = unmasked(value, name)
    if array.dtype.kind == "b":
        array = array.view(np.uint8) if array.flags.c_contiguous and array.ndim else array.astype(np.uint8)
    elif array.dtype.kind not in "iu":
        array = counts(array, name, minimum=None)
    if array.size and not (array.min() >= 0 and array.max() < number):
        refuse(array, (array < 0) | (array >= number), name, f"whole numbers between 0 and {number - 1}")
    return laid_out(array, array.dtype.type)


def _not_numbers(array: Array, name: str, rule: str) -> TypeError:
    """Return the error for an array of another kind; integers too long for NumPy make one of objects."""
    for index, element in np.ndenumerate(array):
        if isinstance(element, int) and not -(2**63) <= element < 2**64:
            place = f" at index {index}" if array.ndim else ""
            found = str(element) if abs(element) < 10**40 else f"an integer of {element.bit_length()} bits"
            return TypeError(f"`{name}` must hold {rule} below 2**63 in size, got {found}{place}")
    return TypeError(f"`{name}` must hold {rule}, got dtype {array.dtype}")


def first(bad: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], str]:
    """Return the index of the first bad element, and how a message names the place."""
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return index, f" at index {index}" if index else ""


def refuse(array: Array, bad: npt.NDArray[np.bool_], name: str, rule: str) -> None:
    """Refuse an array of which some elements are bad, naming the index of the first one."""
    if bad.any():
        index, place = first(bad)
        raise ValueError(f"`{name}` must hold {rule}, got {array[index]}{place}")
