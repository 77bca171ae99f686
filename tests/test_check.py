"""The checks of arguments: what passes, in which form, and how the rest is refused."""

import math
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from quincunx import _check
from quincunx.errors import TooLargeError

FIXED = settings(derandomize=True, deadline=None)
SUBNORMAL = 5e-324


def refused(error, says, function, *arguments, **how):
    with pytest.raises(error, match=f"^`x` must .*{says}"):
        function(*arguments, "x", **how)


@pytest.mark.parametrize(
    "value", [3, 3.0, np.int8(3), np.uint64(3), np.float32(3), np.float64(3), np.array(3), np.array([3])[0]]
)
def test_a_whole_number_comes_back_as_an_int(value):
    found = _check.whole(value, "x")
    assert found == 3
    assert type(found) is int


def test_whole_numbers_are_exact_however_large():
    assert _check.whole(10**5000, "x") == 10**5000
    assert _check.whole(1e22, "x") == 10**22
    assert _check.whole(-0.0, "x") == 0
    assert _check.whole(-(2**70), "x", minimum=None) == -(2**70)


@pytest.mark.parametrize(
    "value",
    [
        *[3.5, SUBNORMAL, math.nan, math.inf, -math.inf, np.float32("nan"), np.array(3.5)],
        *[True, np.True_, "3", b"3", None, 3j, [3], (), {}, np.array([1, 2]), Fraction(3)],
    ],
    ids=repr,
)
def test_what_is_not_a_whole_number_is_a_type_error(value):
    refused(TypeError, "a whole number, got", _check.whole, value)


def test_whole_numbers_have_ends():
    assert [_check.whole(n, "x", minimum=2, maximum=4) for n in (2, 3, 4)] == [2, 3, 4]
    refused(ValueError, "between 2 and 4, got 1", _check.whole, 1, minimum=2, maximum=4)
    refused(ValueError, "between 2 and 4, got 5", _check.whole, 5.0, minimum=2, maximum=4)
    refused(ValueError, "at least 0, got -1", _check.whole, -1)
    refused(ValueError, "at most 4, got 5", _check.whole, 5, minimum=None, maximum=4)


def test_a_message_can_show_an_integer_that_python_refuses_to_print():
    assert _check.shown(12) == "12"
    assert _check.shown(10**5000) == f"an integer of {(10**5000).bit_length()} bits"
    assert _check.shown(Fraction(-1, 3)) == "-1/3"
    assert _check.shown(Fraction(1, 2**20_000)) == "a fraction of 20001 bits"
    refused(ValueError, "at most 4, got an integer of 16610 bits", _check.whole, 10**5000, minimum=None, maximum=4)
    refused(ValueError, "at least 0, got an integer of", _check.whole, -(10**5000))


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.float64(2), np.int8(2), np.array(2.0), Fraction(2)], ids=repr
)
def test_a_real_number_comes_back_as_a_float(value):
    found = _check.real(value, "x")
    assert found == 2.0
    assert type(found) is float


def test_real_numbers_at_the_edges():
    for value in (0.0, -0.0, SUBNORMAL, -SUBNORMAL, 1.7976931348623157e308, 2**1000):
        assert _check.real(value, "x") == value
    for value in (math.nan, math.inf, -math.inf, np.float32("inf"), np.array(np.nan)):
        refused(ValueError, "finite, got", _check.real, value)
    refused(ValueError, "within the range of a double", _check.real, 10**400)
    for value in (True, np.False_, "2", b"2", None, 2j, np.complex128(2), [2.0], np.array([1.0, 2.0]), {}):
        refused(TypeError, "a number, got", _check.real, value)


def test_a_positive_number_is_above_zero():
    assert _check.real(SUBNORMAL, "x", positive=True) == SUBNORMAL
    for value in (0.0, -0.0, -SUBNORMAL, -1):
        refused(ValueError, "positive, got", _check.real, value, positive=True)
    refused(ValueError, "finite, got nan", _check.real, math.nan, positive=True)


def test_a_probability_lies_in_the_unit_interval():
    for value in (0, 0.0, SUBNORMAL, 0.5, 1, np.float32(1), math.nextafter(1, 0)):
        assert _check.probability(value, "x") == value
    for value in (-SUBNORMAL, math.nextafter(1, 2), 2, -1):
        refused(ValueError, r"in \[0, 1\], got", _check.probability, value)
    refused(ValueError, "finite, got nan", _check.probability, math.nan)
    refused(TypeError, "a number, got", _check.probability, True)


@pytest.mark.parametrize("exponent", ["99999999", "-99999999", "+10000", "-999_999_999", "٩٩٩٩٩٩٩٩"])
def test_decimals_whose_power_of_ten_would_fill_the_memory_are_refused_before_it_is_written_out(exponent):
    for mantissa in ("1", "-2.5", "0"):
        for value in (f"{mantissa}e{exponent}", f" {mantissa}E{exponent} ", Decimal(f"{mantissa}e{exponent}")):
            with pytest.raises(ValueError, match="`x` must have an exponent of at most four digits, got"):
                _check.rational(value, "x")
    assert _check.rational("1e-9999", "x") == _check.rational(Decimal("1e-9999"), "x") == Fraction(1, 10**9999)
    for value in (Decimal("nan"), Decimal("-inf"), Decimal("snan"), math.inf, np.float32("nan")):
        with pytest.raises(ValueError, match="`x` must be finite"):
            _check.rational(value, "x")


def test_one_of_a_few_words():
    assert _check.one_of("free", "x", ["free", "torus"]) == "free"
    assert _check.one_of("free", "x", iter(("free", "torus"))) == "free"
    refused(
        ValueError,
        r"one of \['free', 'torus'\], got 'Free'",
        lambda v, name: _check.one_of(v, name, ["free", "torus"]),
        "Free",
    )
    for wrong, near in {"tours": "'torus'", "FREE": "'free'", "Tor us": "'torus'"}.items():
        with pytest.raises(ValueError, match=rf"got '{wrong}' \(did you mean {near}\?\)$"):
            _check.one_of(wrong, "x", ["free", "torus"])
    with pytest.raises(ValueError, match=r"got 'anything'$"):
        _check.one_of("anything", "x", ["free", "torus"])
    for value in (None, 3, b"free", ["free"]):
        refused(TypeError, "one of", lambda v, name: _check.one_of(v, name, ["free"]), value)


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.array([[1, 2], [3, 4]], dtype=">i4"),
        np.array([[1, 3], [2, 4]]).T,
        np.array([[1, 0, 2, 0], [3, 0, 4, 0]])[:, ::2],
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32),
    ],
)
def test_counts_come_back_as_a_contiguous_array_of_int64(value):
    found = _check.counts(value, "x")
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    assert found.tolist() == [[1, 2], [3, 4]]


def test_counts_are_copied_only_where_they_must_be_and_never_changed():
    right = np.array([[1, 2], [3, 4]])
    assert np.shares_memory(_check.counts(right, "x"), right)
    locked = np.array([1.0, 2.0])
    locked.setflags(write=False)
    assert _check.counts(locked, "x").tolist() == [1, 2]
    assert locked.dtype == float


def test_counts_of_every_shape():
    for shape in [(), (0,), (3,), (0, 2), (2, 0), (1, 1, 1)]:
        assert _check.counts(np.ones(shape), "x").shape == shape
    assert _check.counts([], "x").shape == (0,)
    assert _check.counts(7, "x") == 7


def test_counts_at_the_edges():
    assert _check.counts([2**63 - 1, 0], "x").tolist() == [2**63 - 1, 0]
    assert _check.counts([-(2**63)], "x", minimum=None).tolist() == [-(2**63)]
    assert _check.counts([-0.0], "x").tolist() == [0]
    assert _check.counts([-3.0, 4], "x", minimum=-3).tolist() == [-3, 4]
    refused(ValueError, r"at least 0, got -1 at index \(1,\)", _check.counts, [0, -1])
    refused(ValueError, r"at least 1, got 0.0 at index \(0, 1\)", _check.counts, [[1.0, 0.0]], minimum=1)
    refused(ValueError, "at least 0, got -1$", _check.counts, -1)
    for value in (0.5, SUBNORMAL, math.nan, math.inf, -math.inf, 2.0**63, 1e300):
        refused(ValueError, r"hold whole numbers.*, got .* at index \(1,\)", _check.counts, [1.0, value])
        refused(ValueError, "hold whole numbers, got", _check.counts, [1.0, value], minimum=None)
    words = r"below 2\*\*63, got 9223372036854775808 at index"
    refused(ValueError, words, _check.counts, np.array([2**63], dtype=np.uint64))


@pytest.mark.parametrize(
    "value",
    [
        *["3", ["a"], [None], [1j], [True], [Fraction(1)]],
        *[np.array([1, 2], dtype=object), np.array(["1"]), np.array([b"1"]), np.array(["2020-01-01"], dtype="M8[D]")],
    ],
    ids=repr,
)
def test_what_does_not_hold_numbers_is_a_type_error(value):
    refused(TypeError, "hold whole numbers, got dtype", _check.counts, value)


@FIXED
@given(hnp.arrays(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes(), hnp.array_shapes()))
def test_counts_that_pass_are_equal_to_what_was_given(array):
    try:
        found = _check.counts(array, "x")
    except ValueError:
        whole = [math.isfinite(v) and v == int(v) and 0 <= v < 2**63 for v in array.ravel().tolist()]
        assert not all(whole)
    else:
        assert [int(v) for v in array.ravel().tolist()] == found.ravel().tolist()
        assert found.shape == array.shape


def test_threads_are_those_of_the_process_or_a_number(monkeypatch):
    for value in (1, 2.0, np.int64(256)):
        assert _check.threads(value) == value
    for value in (0, -1, 257, 10**400):
        with pytest.raises(ValueError, match="`threads` must be between 1 and 256, got"):
            _check.threads(value)
    for value in (1.5, "2", True, math.nan):
        with pytest.raises(TypeError, match="`threads` must be a whole number"):
            _check.threads(value)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("QUINCUNX_NUM_THREADS", raising=False)
    assert _check.threads(None) == 3
    monkeypatch.setenv("QUINCUNX_NUM_THREADS", "5")
    assert _check.threads(None) == 5
    for nonsense in ("0", "-2", "many", "", "1.5"):
        monkeypatch.setenv("QUINCUNX_NUM_THREADS", nonsense)
        assert _check.threads(None) == 3
    monkeypatch.setenv("QUINCUNX_NUM_THREADS", "100000")
    assert _check.threads(None) == 256
    monkeypatch.delenv("QUINCUNX_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= _check.threads(None) <= 256


def test_a_memory_limit_is_what_is_available_or_a_number():
    assert _check.memory_limit(None) == _check.available_memory() > 1 << 20
    assert _check.memory_limit(1e9) == 10**9
    assert _check.memory_limit(1) == 1
    assert _check.memory_limit(10**400) == 2**62
    for value in (0, -1):
        with pytest.raises(ValueError, match="`memory_limit` must be at least 1, got"):
            _check.memory_limit(value)
    for value in (0.5, math.inf, "1G", True):
        with pytest.raises(TypeError, match="`memory_limit` must be a whole number"):
            _check.memory_limit(value)


def test_a_range_takes_the_list_that_numpy_makes_of_it(monkeypatch):
    numbers = range(1 << 20)
    tracemalloc.start()
    np.asarray(numbers)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 45 * len(numbers) < peak <= 49 * len(numbers)
    monkeypatch.setattr(_check, "available_memory", lambda: 45 * len(numbers))
    with pytest.raises(TooLargeError, match="an array of `a` needs"):
        _check.fits(numbers, "a")
    with pytest.raises(TooLargeError, match="an array of `a` needs"):
        _check.fits(range(10**30), "a")
    _check.fits(range(1000), "a")


def test_available_memory_is_asked_once_a_second():
    # Each question of the system would have its own answer, and takes tens of microseconds.
    assert len({_check.available_memory() for _ in range(1000)}) <= 2


def test_an_interval_is_a_time_or_none():
    assert _check.interval(None, "x") is None
    assert _check.interval(0, "x") == 0.0
    assert _check.interval(SUBNORMAL, "x") == SUBNORMAL
    assert _check.interval(1e300, "x") == 1e9
    refused(ValueError, "at least 0, got", _check.interval, -SUBNORMAL)
    refused(ValueError, "finite, got", _check.interval, math.inf)
    refused(TypeError, "a number, got", _check.interval, "1 s")


def test_a_path_is_text_or_a_path_or_none():
    assert _check.path(None, "x") is None
    assert _check.path("a b", "x") == "a b"
    assert _check.path(Path("a") / "b", "x") == str(Path("a") / "b")
    for value in (3, b"a", ["a"], True):
        refused(TypeError, "a path, got", _check.path, value)


@pytest.mark.parametrize("bad", [10**400, -(2**70), 2**64])
def test_integers_too_long_for_an_array_are_shown(bad):
    shown = str(bad) if abs(bad) < 10**40 else "an integer of 1329 bits"
    with pytest.raises(TypeError, match=rf"`x` must hold whole numbers below 2\*\*63 in size, got {shown}$"):
        _check.counts(bad, "x", minimum=None)
    with pytest.raises(TypeError, match=r"`x` must hold real numbers below .* at index \(1,\)"):
        _check.reals_where([1.0, bad], "x", "positive", lambda x: x > 0)


def test_counts_that_a_double_cannot_hold_are_refused():
    assert _check.counts_as_floats([2**53, -(2**53)], "x", minimum=None).tolist() == [2.0**53, -(2.0**53)]
    for bad in (2**53 + 1, [0, 2**53 + 1], -(2**53) - 1):
        with pytest.raises(
            ValueError, match=r"`x` must hold whole numbers of at most 2\*\*53 in size, got -?9007199254740993"
        ):
            _check.counts_as_floats(bad, "x", minimum=None)
