"""Residues of counts, and putting them together."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import lattices
from quincunx.counting import combine_residues, count_independent_sets, hard_core, primes, residue
from quincunx.errors import TooLargeError

FIXED = settings(derandomize=True, deadline=None, max_examples=100)
LARGE = primes(12)


def is_prime(n):
    """Miller's test, which these bases decide below 2**64."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


def test_primes_are_the_largest_below_two_to_the_55th():
    found = primes(50)
    assert [n for n in range(2**55 - 1, found[-1] - 1, -2) if is_prime(n)] == found
    assert primes(0) == []
    assert primes(3) == found[:3]


@pytest.mark.parametrize("count", [-1, 2.5, "3", None, True])
def test_a_number_of_primes_is_whole_and_not_negative(count):
    with pytest.raises((ValueError, TypeError), match="`count` must be"):
        primes(count)


@pytest.mark.parametrize("modulus", [2, 3, 4, 12, 97, 2**31, 2**32 - 1, 2**32, LARGE[0], LARGE[11]])
def test_a_residue_is_that_of_the_count(modulus):
    for lattice in [
        lattices.square(8, 9),
        lattices.four_eight_eight(3, 4, "cylinder"),
        lattices.king(7, 7, "torus"),
        lattices.triangular(6, 7),
        lattices.kagome(4, 4),
        (0, []),
    ]:
        assert residue(lattice, modulus) == count_independent_sets(lattice) % modulus
        for activity in (0, 5, -3, 10**30):
            assert residue(lattice, modulus, activity=activity) == hard_core(lattice, activity) % modulus


def test_a_residue_takes_what_a_count_takes():
    assert residue((3, [(0, 1)]), 5, order=[2, 1, 0], threads=2, memory_limit=10**6) == 6 % 5
    assert residue((3, [(0, 1)]), 7.0) == 6
    with pytest.raises(TooLargeError):
        residue(lattices.square(40, 40), 7, memory_limit=10**6)


@pytest.mark.parametrize(
    ("modulus", "error"),
    [
        (0, ValueError),
        (1, ValueError),
        (-7, ValueError),
        (2**40 + 15, ValueError),
        (2**54 + 1, ValueError),
        (2**55, ValueError),
        (2**64, ValueError),
        (10**400, ValueError),
        (7.5, TypeError),
        (float("nan"), TypeError),
        ("7", TypeError),
        (True, TypeError),
    ],
)
def test_a_modulus_out_of_reach_is_refused(modulus, error):
    with pytest.raises(error, match="`modulus` must be"):
        residue((2, []), modulus)


@pytest.mark.parametrize("activity", [0.5, float("nan"), "1", None, True])
def test_an_activity_that_is_not_whole_is_refused(activity):
    with pytest.raises(TypeError, match="`activity` must be"):
        residue((2, []), 7, activity=activity)


def test_residues_from_anywhere_combine_to_the_count():
    lattice = lattices.square(16, 16)
    pairs = [(prime, residue(lattice, prime)) for prime in LARGE[:5]]
    count = count_independent_sets(lattice)
    assert combine_residues(pairs) == count
    assert combine_residues(reversed(pairs)) == count
    assert combine_residues(iter(pairs), bound=2**256) == count
    small = [(m, residue(lattice, m)) for m in (3**20, 5**13, 7**11, 11**9, 13**8, 17**7, 19**7, 23**7)]
    assert combine_residues([*small, *pairs[:1]]) == count


@FIXED
@given(st.integers(0, 2**600), st.lists(st.sampled_from(LARGE), min_size=1, unique=True))
def test_any_number_below_the_product_of_its_moduli_comes_back(number, moduli):
    number %= math.prod(moduli)
    pairs = [(m, number % m) for m in moduli]
    assert combine_residues(pairs, bound=math.prod(moduli) - 1) == number
    assert combine_residues([*pairs, (2**31 - 1, number % (2**31 - 1))]) == number


@FIXED
@given(st.integers(0, 2**200), st.integers(0, 5), st.integers(1, 2**54))
def test_one_wrong_residue_is_noticed(number, place, error):
    pairs = [(m, number % m) for m in LARGE[:6]]
    modulus = pairs[place][0]
    pairs[place] = modulus, (number + error) % modulus
    for bound in (None, 2**200):
        with pytest.raises(ValueError, match="`residues` must belong to one number"):
            combine_residues(pairs, bound=bound)


@pytest.mark.parametrize(
    ("pairs", "how", "error", "says"),
    [
        ([], {}, ValueError, "at least one pair"),
        ([(7, 3)], {"bound": 7}, ValueError, "moduli with a product above `bound`"),
        ([(7, 0)], {}, ValueError, "a second pair"),
        ([(7, 6)], {"bound": 4}, ValueError, "a number of at most `bound`, 4, got 6"),
        ([(7, 3), (11, 1)], {"bound": 20}, ValueError, "a number of at most `bound`, 20, got 45"),
        ([(7, 3), (11, 1), (13, 6)], {"bound": 44}, ValueError, "a number of at most `bound`, 44, got 45"),
        ([(7, 3)], {"bound": -1}, ValueError, "`bound` must be at least 0"),
        ([(7, 3)], {"bound": 1.5}, TypeError, "`bound`"),
        ([(9, 1), (15, 1), (7, 1)], {}, ValueError, "common factor|coprime"),
        ([(7, 3), (7, 3), (11, 3)], {}, ValueError, "common factor|coprime"),
        ([(7, 3), (7, 3)], {}, ValueError, "common factor|coprime"),
        ([(7, 3), (11, 3), (21, 3)], {"bound": 6}, ValueError, "common factor|coprime"),
        ([(8, 1), (7, 1)], {}, ValueError, "odd"),
        ([(7, 1), (8, 1)], {}, ValueError, "odd"),
        ([(1, 0), (7, 1)], {}, ValueError, "`modulus` must be"),
        ([(-7, 0), (7, 1)], {}, ValueError, "`modulus` must be"),
        ([(2**63 + 1, 0), (7, 1)], {}, ValueError, "`modulus` must be"),
        ([(7, -1), (11, 1)], {}, ValueError, "`residue` must be between 0 and 6, got -1"),
        ([(7, 9), (11, 2)], {}, ValueError, "`residue` must be between 0 and 6, got 9"),
        ([(7, 2**70), (11, 2)], {}, ValueError, "`residue` must be between 0 and 6"),
        ([(7, 1.5), (11, 2)], {}, TypeError, "`residue` must be a whole number"),
        ([(7, 1, 2), (11, 2)], {}, TypeError, "`residues` must hold pairs"),
        ([7, 11], {}, TypeError, "`residues` must hold pairs"),
        (7, {}, TypeError, "`residues` must hold pairs"),
        (None, {}, TypeError, "`residues` must hold pairs"),
    ],
)
def test_bad_residues_are_named_with_their_rule(pairs, how, error, says):
    with pytest.raises(error, match=says):
        combine_residues(pairs, **how)


def test_a_long_number_above_its_bound_is_said_in_bits():
    bound = 2**14950
    with pytest.raises(ValueError, match="at most `bound`, an integer of 14951 bits, got an integer of 14951 bits"):
        combine_residues([(prime, (bound + 1) % prime) for prime in primes(300)], bound=bound)


def test_without_a_spare_modulus_there_is_nothing_to_verify_with():
    assert combine_residues([(7, 3)], bound=6) == 3
    assert combine_residues([(7, 0), (11, 0)]) == 0
