"""The hard-core partition function at exact and at floating-point activities."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from counting_oracle import all_subsets, frontier_sums, value
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import graphs, lattices
from quincunx.counting import FloatResult, count_independent_sets, hard_core, independence_polynomial, primes
from quincunx.errors import TooLargeError

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
EXAMPLES = [
    lattices.square(4, 4),
    lattices.square(1, 1, "torus", multigraph=True),
    lattices.square(5, 3, "cylinder"),
    lattices.square(3, 5, "torus"),
    lattices.king(4, 4, "torus"),
    lattices.triangular(3, 5, "cylinder"),
    lattices.four_eight_eight(1, 2, "cylinder"),
    lattices.four_eight_eight(1, 1),
    lattices.kagome(2, 2),
    (6, [(0, 1), (1, 2), (2, 0), (3, 3), (4, 5)]),
    (0, []),
]
ACTIVITIES = [
    0,
    1,
    2,
    -1,
    -3,
    10**30,
    -(10**30),
    Fraction(1, 2),
    Fraction(-7, 3),
    Fraction(10**20, 3),
    Fraction(1, 10**40),
    Fraction(355, 113),
]
rationals = st.fractions(max_denominator=10**6) | st.integers(-(10**25), 10**25).map(Fraction)


def polynomial(graph):
    return all_subsets(graph[0], graph[1]) if isinstance(graph, tuple) else all_subsets(*parts(graph))


def parts(lattice):
    return lattice.num_vertices, lattice.edges.tolist()


@pytest.mark.parametrize("graph", EXAMPLES, ids=repr)
def test_the_value_is_that_of_the_polynomial_over_all_subsets(graph):
    coefficients = polynomial(graph)
    for activity in ACTIVITIES:
        found = hard_core(graph, activity)
        assert found == value(coefficients, activity), activity
        assert type(found) is (int if isinstance(activity, int) else Fraction)


@FIXED
@given(rationals)
def test_a_lattice_of_some_size_has_the_value_of_its_polynomial_at_any_rational(activity):
    lattice = lattices.square(7, 6)
    assert hard_core(lattice, activity) == value(independence_polynomial(lattice), activity)


@pytest.mark.parametrize("kind", ["square", "king", "triangular", "4-8-8"])
@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_kernels_agree_with_sums_in_python_integers_at_other_activities(kind, boundary):
    lattice = lattices.named(kind, *((3, 4) if kind == "4-8-8" else (5, 7)), boundary)
    for activity in (3, -2):
        expected = frontier_sums(*parts(lattice), activity)
        assert hard_core(lattice, activity) == hard_core(lattice.graph, activity) == expected


def test_known_values():
    # The square of four: 1 + 4 z + 2 z^2.
    assert hard_core(lattices.square(2, 2), 2) == 17
    assert hard_core(lattices.square(2, 2), Fraction(1, 2)) == Fraction(7, 2)
    assert hard_core(lattices.square(2, 2), -1) == -1
    # Jonsson (2006), Hard squares with negative activity and rhombus tilings: 1 on tori of coprime extents.
    for m, n in [(3, 4), (3, 5), (4, 5), (5, 7), (8, 5), (9, 7), (11, 12)]:
        assert hard_core(lattices.square(m, n, "torus"), -1) == 1
    # A path at activity z: Z(n) = Z(n-1) + z Z(n-2).
    z, before, path = Fraction(3, 7), 1, 1 + Fraction(3, 7)
    for n in range(2, 200):
        before, path = path, path + z * before
        if n % 37 == 0:
            assert hard_core(lattices.square(1, n), z) == path


def test_an_activity_of_minus_one_is_the_alternating_sum():
    lattice = lattices.four_eight_eight(2, 3)
    alternating = sum((-1) ** k * count for k, count in enumerate(independence_polynomial(lattice)))
    assert hard_core(lattice, -1) == alternating


def test_a_float_in_exact_mode_is_the_rational_number_it_is():
    assert hard_core(lattices.square(2, 2), 0.5) == Fraction(7, 2)
    assert hard_core((1, []), 0.1) == 1 + Fraction(0.1) != 1 + Fraction(1, 10)
    assert hard_core((2, []), 5e-324) == (1 + Fraction(5e-324)) ** 2
    assert hard_core((2, []), 1.7976931348623157e308) == (1 + Fraction(1.7976931348623157e308)) ** 2
    assert isinstance(hard_core((1, []), 2.0), Fraction)


def test_numbers_of_numpy_are_numbers():
    assert hard_core(lattices.square(2, 2), np.int64(2)) == 17
    assert type(hard_core(lattices.square(2, 2), np.int64(2))) is int
    assert hard_core(lattices.square(2, 2), np.uint8(2)) == 17
    assert hard_core(lattices.square(2, 2), np.float64(0.5)) == Fraction(7, 2)
    assert hard_core((1, []), np.float32(0.1)) == 1 + Fraction(float(np.float32(0.1)))
    assert hard_core((1, []), np.longdouble("0.1")) == 1 + Fraction(*np.longdouble("0.1").as_integer_ratio())


VERTEX_GRAPHS = [
    lattices.square(3, 4),
    lattices.kagome(2, 2, "torus"),
    graphs.Graph(4, [(0, 1), (1, 2), (2, 2), (1, 0), (2, 3)]),
    graphs.Graph(3, []),
    graphs.Graph(0, []),
]


@pytest.mark.parametrize("graph", VERTEX_GRAPHS, ids=repr)
@pytest.mark.parametrize("kind", ["int", "Fraction", "float", "negative"])
def test_an_activity_for_each_vertex_is_the_sum_over_all_subsets(graph, kind):
    plain = graph.graph if isinstance(graph, lattices.Lattice) else graph
    n = plain.num_vertices
    numbers = {
        "int": [v % 4 for v in range(n)],
        "Fraction": [Fraction(v + 1, 3 + v % 2) for v in range(n)],
        "float": [0.1 * v for v in range(n)],
        "negative": [Fraction(-1, v + 1) if v % 2 else v for v in range(n)],
    }[kind]
    exact = [Fraction(z) for z in numbers]
    edges = plain.edges.tolist()
    expected = sum(
        math.prod(exact[v] for v in range(n) if chosen >> v & 1)
        for chosen in range(1 << n)
        if not any(chosen >> u & chosen >> v & 1 for u, v in edges)
    )
    found = hard_core(graph, numbers)
    assert found == expected
    assert isinstance(found, int) == (kind == "int" or n == 0)
    assert hard_core(graph, dict(enumerate(numbers)), threads=1) == expected
    assert hard_core(graph, np.array(numbers, dtype=object)) == expected
    assert hard_core(graph, numbers, order=list(range(n))[::-1]) == expected
    if kind != "negative":
        value, error = hard_core(graph, dict(enumerate(numbers)), mode="float")
        assert abs(Fraction(value) - expected) <= error
        log, error = hard_core(graph, dict(enumerate(numbers)), mode="log")
        assert abs(log - math.log(expected)) <= error <= 1e-12


def test_one_activity_for_all_vertices_is_that_activity():
    lattice = lattices.triangular(6, 7, "cylinder")
    for activity in (1, 3, Fraction(2, 7), 0.3):
        assert hard_core(lattice, [activity] * 42) == hard_core(lattice, activity)
    assert hard_core(lattice, {}) == count_independent_sets(lattice)
    labeled = graphs.Graph(3, [(0, 1), (1, 2)], labels="abc")
    assert hard_core(labeled, {"b": 5}) == 1 + 1 + 5 + 1 + 1
    with pytest.raises(OverflowError, match="mode"):
        hard_core(lattices.square(4, 60), dict.fromkeys(range(240), 1e9), mode="float")
    with pytest.raises(MemoryError, match="table of independent sets"):
        hard_core(lattices.square(40, 40), [2] * 1600, memory_limit=10**6)
    with pytest.raises(ValueError, match="`order`"):
        hard_core(labeled, {"b": 5}, order="ab")


def test_denominators_that_the_moduli_divide_are_no_obstacle():
    lattice = lattices.square(3, 4)
    coefficients = independence_polynomial(lattice)
    first, second = primes(2)
    for denominator in (first, first * second, first**3, 2**55 * second, math.prod(primes(20))):
        activity = Fraction(3, denominator)
        assert hard_core(lattice, activity) == value(coefficients, activity)
    for activity in (first, -first * second, math.prod(primes(8))):
        assert hard_core(lattice, activity) == value(coefficients, activity)


def test_exact_values_do_not_depend_on_threads_or_memory():
    lattice, activity = lattices.square(12, 14), Fraction(-9, 7)
    exact = hard_core(lattice, activity, threads=1)
    for threads in (2, 3):
        for lanes in (1, 2, 4, 8):
            limit = lanes * 8 * 2 * 1000
            assert hard_core(lattice, activity, threads=threads, memory_limit=limit) == exact


def within(found, exact):
    return abs(Fraction(found.value) - exact) <= Fraction(found.error)


@pytest.mark.parametrize("graph", EXAMPLES, ids=repr)
def test_the_error_of_a_float_is_honored_on_every_small_graph(graph):
    coefficients = polynomial(graph)
    for activity in (0.0, 5e-324, 1e-10, 0.1, 1.0, 3.7962, 1e10, 1e18):
        found = hard_core(graph, activity, mode="float")
        assert isinstance(found, FloatResult)
        assert type(found.value) is type(found.error) is float
        assert within(found, value(coefficients, Fraction(activity))), activity
        assert found.error <= 1.2e-16 * found.value


@FIXED
@given(
    st.sampled_from([lattices.square(9, 8), lattices.king(6, 7, "torus"), lattices.four_eight_eight(2, 3, "cylinder")]),
    st.floats(0, 1e8),
)
def test_the_error_of_a_float_is_honored_at_any_activity(lattice, activity):
    assert within(hard_core(lattice, activity, mode="float"), hard_core(lattice, Fraction(activity)))


@pytest.mark.parametrize(
    "graph",
    [
        lattices.square(16, 16),
        lattices.square(9, 40),
        lattices.square(9, 9, "torus"),
        lattices.king(12, 13, "cylinder"),
        lattices.triangular(9, 10),
        lattices.four_eight_eight(5, 5),
        lattices.kagome(4, 5),
        graphs.complete(12),
        graphs.path(250),
    ],
    ids=repr,
)
def test_a_float_is_the_value_rounded_once_at_every_corner(graph):
    coefficients = independence_polynomial(graph)
    powers = (1e-300, 1e-16, 0.3, 1.0, 3.7, 1e16, 2.0**1023)
    for activity in (*powers, Fraction(1, 3), Fraction(10**40 + 1, 7 * 10**39), Fraction(1, 10**400), 2**60 + 1):
        exact = value(coefficients, Fraction(activity))
        log, log_error = hard_core(graph, activity, mode="log")
        with mpmath.workdps(500):
            logarithm = mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator)
            assert abs(log - logarithm) <= log_error <= 1e-15 * max(log, 1.0), activity
        if exact < 2**1023:
            found = hard_core(graph, activity, mode="float")
            assert within(found, exact), activity
            assert found.error <= 1.2e-16 * found.value, activity
        elif exact > 2**1024:
            with pytest.raises(OverflowError, match="beyond the largest double"):
                hard_core(graph, activity, mode="float")


def test_values_at_both_ends_of_the_doubles_are_found():
    isolated = (3, [])
    for activity in (2.0**340, 2.0**341, 2.0**341.3333):
        exact = (1 + Fraction(activity)) ** 3
        assert within(hard_core(isolated, activity, mode="float"), exact)
    with pytest.raises(OverflowError):
        hard_core(isolated, 2.0**342, mode="float")
    assert hard_core((1, []), 5e-324, mode="float").value == 1.0
    log, error = hard_core((1, []), 1e-20, mode="log")
    assert log == 1e-20
    assert error < 1e-30


@pytest.mark.parametrize("mode", ["float", "log"])
def test_a_number_of_any_type_is_that_number(mode):
    lattice = lattices.square(5, 6)
    half = hard_core(lattice, 0.5, mode=mode)
    halves = [
        Fraction(1, 2),
        Decimal("0.5"),
        "1/2",
        np.float32(0.5),
        np.float64(0.5),
        np.longdouble(0.5),
        np.array(0.5),
    ]
    assert [hard_core(lattice, number, mode=mode) for number in halves] == [half] * len(halves)
    assert hard_core(lattice, np.int64(2), mode=mode) == hard_core(lattice, 2, mode=mode)
    with pytest.raises(TypeError, match="`activity` must be an int, a Fraction or a float, got mpf"):
        hard_core(lattice, mpmath.mpf(1) / 3, mode=mode)  # of more digits than a double
    tenth = hard_core(lattice, Decimal("0.1"), mode="float")
    assert within(tenth, hard_core(lattice, Fraction(1, 10)))


def test_small_sections_have_their_value_at_a_large_activity():
    """A bound on it was looked for in ever more sections of no rows."""
    for boundary, rows, cols in itertools.product(("free", "cylinder", "torus"), (1, 2), (1, 2)):
        lattice = lattices.four_eight_eight(rows, cols, boundary)
        value = sum(count * 2 ** (200 * k) for k, count in enumerate(independence_polynomial(lattice)))
        assert hard_core(lattice, 2**200) == value


def test_an_activity_of_no_vertex_is_refused():
    with pytest.raises(ValueError, match="`activity` must be of vertices by their labels, got one of 30"):
        hard_core(lattices.square(5, 6), {30: 2})


def test_a_fraction_is_not_rounded_to_a_double_first():
    # Rounded to a double first, a third would be off by more than the error that is told.
    isolated = (400, [])
    for activity in (Fraction(1, 3), "1/3", 2**53 + 1, Fraction(1, 10), np.array(2**53 + 1)):
        exact = (1 + Fraction(int(activity) if isinstance(activity, np.ndarray) else activity)) ** 400
        log, error = hard_core(isolated, activity, mode="log")
        with mpmath.workdps(60):
            assert abs(log - mpmath.log(exact.numerator) + mpmath.log(exact.denominator)) <= error
        if exact < 2**1023:
            found = hard_core(isolated, activity, mode="float")
            assert within(found, exact)
            assert found.error <= 1.2e-16 * found.value


@pytest.mark.parametrize(
    ("size", "activity"),
    [
        *[((3, 3), z) for z in (0.0, 5e-324, 0.5, 1.0, 40.0, 1e200)],
        ((12, 14), 1e-10),
        ((12, 14), 1e200),
        ((9, 300), 1.5),
    ],
)
def test_the_error_of_a_logarithm_is_honored(size, activity):
    lattice = lattices.square(*size)
    found = hard_core(lattice, activity, mode="log")
    exact = hard_core(lattice, Fraction(activity))
    with mpmath.workdps(60):
        logarithm = mpmath.log(exact.numerator) - mpmath.log(exact.denominator)
        assert abs(mpmath.mpf(found.value) - logarithm) <= found.error
    assert found.error <= 1e-11 * max(1.0, found.value)


def test_a_value_beyond_the_doubles_is_refused_and_its_logarithm_is_not():
    lattice = lattices.square(60, 12)
    with pytest.raises(OverflowError, match='use mode="log" or "exact"'):
        hard_core(lattice, 1e10, mode="float")
    assert hard_core(lattice, 1e10, mode="log").value == pytest.approx(360 * math.log(1e10), rel=1e-3)


@pytest.mark.parametrize(
    ("activity", "how", "error", "says"),
    [
        (float("nan"), {}, ValueError, "`activity` must be finite, got nan"),
        (float("inf"), {}, ValueError, "`activity` must be finite, got inf"),
        (-float("inf"), {}, ValueError, "`activity` must be finite, got -inf"),
        (np.float32("nan"), {}, ValueError, "`activity` must be finite"),
        (float("nan"), {"mode": "float"}, ValueError, "`activity` must be finite"),
        (float("inf"), {"mode": "log"}, ValueError, "`activity` must be finite"),
        (-1.0, {"mode": "float"}, ValueError, "`activity` must be finite and not negative"),
        (-5e-324, {"mode": "log"}, ValueError, "`activity` must be finite and not negative"),
        ("one", {}, ValueError, r"`activity` must be a number such as '1/2' or '0.5', got 'one'"),
        ("1/0", {}, ValueError, "`activity` must be a number such as"),
        ("1/0", {"mode": "log"}, ValueError, "`activity` must be a number such as"),
        ([1, "x"], {"mode": "log"}, ValueError, "`activity` must be a number such as"),
        (True, {}, TypeError, "`activity` must be a number"),
        (None, {}, TypeError, "`activity` must be"),
        (1j, {}, TypeError, "`activity` must be"),
        ([1], {}, ValueError, "`activity` must have one entry for each of the 2 vertices, got 1"),
        (np.array([[1, 2]]), {}, (TypeError, ValueError), "`activity` must"),
        (b"1", {"mode": "float"}, TypeError, "`activity` must be a number"),
        (10**400, {"mode": "float"}, ValueError, "`activity` must be within the range of a double"),
        (1, {"mode": "fast"}, ValueError, "`mode` must be one of"),
        (1, {"mode": None}, TypeError, "`mode` must be one of"),
        (1, {"mode": "float", "checkpoint": "state"}, ValueError, "`checkpoint` must be None unless"),
        (1, {"checkpoint_interval": -1}, ValueError, "`checkpoint_interval`"),
        (1, {"checkpoint_interval": float("nan")}, ValueError, "`checkpoint_interval`"),
        (1, {"checkpoint": 7}, TypeError, "`checkpoint` must be a path"),
        (1, {"order": [0]}, ValueError, "`order`"),
    ],
)
def test_bad_input_is_named_with_its_rule(activity, how, error, says):
    with pytest.raises(error, match=says):
        hard_core((2, [(0, 1)]), activity, **how)


@pytest.mark.parametrize("mode", ["exact", "float", "log"])
def test_a_job_larger_than_its_limit_is_refused_in_every_mode(mode):
    with pytest.raises(TooLargeError) as refusal:
        hard_core(lattices.square(40, 40), 2, mode=mode, memory_limit=10**6)
    assert refusal.value.limit <= 10**6 < refusal.value.needed


def test_activities_that_no_memory_holds_are_refused_before_they_are_copied():
    with pytest.raises(TooLargeError, match="a copy of `activity` needs"):
        hard_core(lattices.square(2, 2), np.broadcast_to(np.int64(1), (10**6, 10**6)), mode="float")


# Strings, and several activities at once.


def test_a_string_is_the_number_that_it_writes():
    lattice = lattices.square(3, 4)
    exact = hard_core(lattice, Fraction(1, 10))
    assert hard_core(lattice, "1/10") == hard_core(lattice, "0.1") == exact != hard_core(lattice, 0.1)
    assert hard_core(lattice, "2") == hard_core(lattice, 2)
    value, error = hard_core(lattice, "1/10", mode="float")
    assert abs(value - exact) <= error
    assert hard_core((2, []), ["1/2", "1/3"]) == Fraction(3, 2) * Fraction(4, 3)


@pytest.mark.parametrize("mode", ["float", "log"])
def test_each_activity_of_an_array_is_evaluated(mode):
    lattice = lattices.square(4, 3)
    found = hard_core(lattice, [[0.5, 1], [2, "1/3"]], mode=mode)
    assert found.value.shape == found.error.shape == (2, 2)
    for place, activity in [((0, 0), 0.5), ((0, 1), 1), ((1, 0), 2), ((1, 1), "1/3")]:
        assert (found.value[place], found.error[place]) == hard_core(lattice, activity, mode=mode)
    line = hard_core(lattice, np.linspace(0, 2, 5), mode=mode)
    assert (np.diff(line.value) > 0).all()
    assert hard_core(lattice, [], mode=mode).value.shape == (0,)
    with pytest.raises(ValueError, match="`activity` must be finite and not negative"):
        hard_core(lattice, [1.0, -1.0], mode=mode)


def test_the_entries_of_a_sequence_are_what_per_vertex_says():
    lattice = lattices.square(2, 2)
    numbers = [1, Fraction(1, 3), 2, 0.5]
    exact = hard_core(lattice, numbers)
    assert exact == hard_core(lattice, numbers, per_vertex=True) == hard_core(lattice, dict(enumerate(numbers)))
    for mode in ("float", "log"):
        one = hard_core(lattice, numbers, mode=mode, per_vertex=True)
        assert one == hard_core(lattice, dict(enumerate(numbers)), mode=mode, per_vertex=True)
        several = hard_core(lattice, numbers, mode=mode, per_vertex=False)
        assert several.value.tolist() == [hard_core(lattice, z, mode=mode).value for z in numbers]
        assert hard_core(lattice, np.array([numbers]), mode=mode).value.tolist() == [several.value.tolist()]
        with pytest.raises(
            ValueError, match=r"`per_vertex` must be given where .* vertices, 4: True for the activities"
        ):
            hard_core(lattice, numbers, mode=mode)
    values = hard_core(lattice, [numbers, numbers[::-1]], per_vertex=False)
    assert values.shape == (2, 4)
    assert values.dtype == object
    assert values[0].tolist() == values[1, ::-1].tolist() == [hard_core(lattice, z) for z in numbers]
    assert [type(x) for x in values[0]] == [int, Fraction, int, Fraction]
    assert hard_core(lattice, [], per_vertex=False).tolist() == []
    assert hard_core(lattice, 2, per_vertex=False) == 17


@pytest.mark.parametrize(
    ("activity", "how", "error", "says"),
    [
        (1, {"per_vertex": True}, ValueError, "`per_vertex` must not be True for a single activity"),
        ({}, {"per_vertex": False}, ValueError, "`per_vertex` must not be False for a mapping"),
        ([1, 2], {"per_vertex": 1}, TypeError, "`per_vertex`"),
        ([1, 2, 3], {}, ValueError, "for each of the 2 vertices, got 3; several activities need per_vertex=False"),
        ([1, 2, 3], {"mode": "log", "per_vertex": True}, ValueError, "for each of the 2 vertices, got 3"),
        ([1, -2], {"mode": "log", "per_vertex": True}, ValueError, "`activity` must be at least 0"),
        ([1, 2, 3], {"per_vertex": False, "checkpoint": "x"}, ValueError, "`checkpoint` must be None for several"),
        ([1, [2, 3]], {"per_vertex": False}, ValueError, r"numbers in rows of one length, got an entry \[2, 3\]"),
        ([[1, 2], [3]], {"mode": "float"}, ValueError, r"numbers in rows of one length, got an entry \[1, 2\]"),
        ([{0: 2}], {"mode": "log"}, ValueError, r"numbers in rows of one length, got an entry \{0: 2\}"),
    ],
)
def test_entries_that_do_not_fit_are_refused(activity, how, error, says):
    with pytest.raises(error, match=says):
        hard_core((2, [(0, 1)]), activity, **how)
