"""Strips and rings: test values of the study, the theorems at their corners, agreement with corner tensors."""

import itertools
import math
import re
import time
from decimal import Decimal
from fractions import Fraction

import pytest

from quincunx import counting, lattices
from quincunx.entropy import entropy_bounds
from quincunx.entropy._by_width import _refuse_long, _Round
from quincunx.entropy._strips import _section, mirrors_of, periodic_operator, perron_root
from quincunx.errors import TooLargeError

ROOTS = [
    ("triangular", 10, False, 31.3196532418411),
    ("triangular", 10, True, 28.0074122268105),
    ("square", 11, False, 108.853553692147),
    ("square", 10, True, 58.9082393782678),
    ("honeycomb", 11, False, 17697.6694839756),
    ("honeycomb", 10, True, 6119.28267049715),
    ("kagome", 6, False, 602.288439965749),
    ("kagome", 6, True, 1075.35481062243),
    ("triangular-kagome", 3, False, 1837.76622278308),
    ("triangular-kagome", 2, True, 1009.82060711106),
    ("4-8-8", 1, False, 3.0),
    ("4-8-8", 5, False, 3177.0408084678445),
    ("4-8-8", 4, True, 1104.9614590219865),
]


@pytest.mark.parametrize(("lattice", "lines", "ring", "value"), ROOTS)
def test_perron_roots_enclose_the_values_of_the_study(lattice, lines, ring, value):
    operator, _, _ = _section(mirrors_of(lattice), lines, ring=ring)
    ones = [Fraction(1)] * operator.sites
    for precision, width in (("double", 1e-12), ("double-double", 1e-27), ("exact", 1e-27)):
        lower, upper = perron_root(operator, ones, precision)
        assert lower * (1 - Fraction(1, 10**14)) <= Fraction(value) <= upper * (1 + Fraction(1, 10**14))
        assert 0 < upper / lower - 1 < width


def test_powers_of_an_operator_count_independent_sets_exactly():
    # A strip of 4 columns: 4 x n squares, one more row each period, start and end included.
    bonds = [(i, i + 1, 0) for i in range(3)] + [(i, i, 1) for i in range(4)]
    operator = periodic_operator(4, bonds)
    assert (operator.sites, operator.frontier, operator.states) == (4, 4, 8)
    for rows in range(1, 12):
        assert operator.count(rows) == counting.count_independent_sets(lattices.square(4, rows))
    # Bonds that reach over two periods, and none at all.
    far = periodic_operator(1, [(0, 0, 1), (0, 0, 2)])
    assert [far.count(n) for n in range(6)] == [1, 2, 3, 4, 6, 9]
    assert periodic_operator(2, []).count(5) == 2**10


@pytest.mark.parametrize("kind", ["martini", "3-12-12", "triangular-kagome", "modified-bathroom"])
def test_the_operator_serves_any_cell(kind):
    # Columns of a section, free in both directions: one more cell each period.
    cell = lattices.UnitCell.named(kind)
    sites = len(cell.site_offsets)
    bonds = []
    for i in range(2):
        bonds += [(i * sites + u, (i + dx) * sites + v, dy) for u, v, (dx, dy) in cell.bonds if 0 <= i + dx < 2]
    operator = periodic_operator(2 * sites, bonds)
    for cells in (1, 2, 3):
        lattice = lattices.named(kind, 2, cells)
        assert operator.count(cells) == counting.count_independent_sets(lattice)


def test_bonds_that_make_no_strip_are_refused():
    with pytest.raises(ValueError, match="bonds"):
        periodic_operator(2, [(0, 2, 0)])
    with pytest.raises(ValueError, match="bonds"):
        periodic_operator(2, [(1, 1, 0)])
    with pytest.raises(ValueError, match="bonds"):
        periodic_operator(2, [(0, 1, 9)])
    with pytest.raises(TooLargeError) as refused:
        periodic_operator(50, [(i, i, 1) for i in range(50)])
    assert refused.value.needed > 2**50
    with pytest.raises(ValueError, match="63 sites"):
        periodic_operator(70, [(i, j, 0) for i in range(70) for j in range(i)] + [(i, i, 1) for i in range(70)])


@pytest.mark.parametrize("lattice", ["square", "king", "4-8-8", "honeycomb", "kagome", "triangular"])
def test_intervals_of_growing_width_nest_and_contain_the_known_constant(known, lattice):
    constant = Decimal(known("entropy")[lattice])
    intervals = [entropy_bounds(lattice, width=width) for width in (4, 6, 8, 10)]
    for bounds in intervals:
        assert constant in bounds.growth_constant
    for wide, narrow in itertools.pairwise(intervals):
        # Where strips prove all that doubles hold, only the bound on rounding grows with the width.
        assert wide.lower <= narrow.lower + Decimal("1e-13")
        assert narrow.upper <= wide.upper


@pytest.mark.parametrize("lattice", ["square", "king", "4-8-8", "honeycomb", "kagome"])
@pytest.mark.parametrize("activity", [Fraction(1, 3), Fraction(1), Fraction(3, 2)])
def test_both_routes_agree_to_what_both_prove(lattice, activity):
    corner = entropy_bounds(lattice, activity=activity, digits=10)
    ring = entropy_bounds(lattice, activity=activity, width=8)
    assert max(corner.lower, ring.lower) <= min(corner.upper, ring.upper)
    assert (corner.method, ring.method) == ("corner", "ring")


def test_every_boundary_activity_and_power_is_valid(known):
    for lattice in ("triangular", "king", "4-8-8"):
        constant = Decimal(known("entropy")[lattice])
        for boundary in (0.01, 0.5, 1.0, 3.0):
            for power in (1, 2, 3, 4):
                bounds = entropy_bounds(lattice, width=8, power=power, boundary_activity=boundary)
                assert bounds.growth_constant.lower < constant


def test_the_thesis_bounds_of_the_crossed_square_lattice_are_found_again():
    bounds = entropy_bounds("king", width=12, power=4, boundary_activity=1)
    assert str(bounds.growth_constant.upper).startswith("1.342652572406")
    # The thesis has strips of 13 and 9 columns, ours are no wider than the ring.
    assert bounds.evidence["strips"] == (11, 7)
    assert Decimal("1.3422") < bounds.growth_constant.lower < Decimal("1.342543")


def test_the_thesis_bound_of_the_4_8_8_lattice_is_the_published_one_rounded_down():
    # Its largest ring has 8 octagons, its strips 8 and 6 of them.
    bounds = entropy_bounds("4-8-8", width=8, power=1, boundary_activity=1)
    assert str(bounds.growth_constant.upper).startswith("1.549560101400486")


@pytest.mark.parametrize("lattice", ["triangular", "king", "square", "4-8-8"])
@pytest.mark.parametrize("width", [5, 7])
def test_odd_rings_are_refused_with_the_theorem_s_name(lattice, width):
    with pytest.raises(ValueError, match="theorem A"):
        entropy_bounds(lattice, width=width)


def test_oblique_rings_of_the_triangular_lattice_lie_below_its_constant(known):
    # Why the ring of theorem A is not that of the rows: 6 sites round, closed obliquely.
    bonds = (
        [(i, (i + 1) % 6, 0) for i in range(6)]
        + [(i, i, 1) for i in range(6)]
        + [((i + 1) % 6, i, 1) for i in range(6)]
    )
    lower, upper = map(float, perron_root(periodic_operator(6, bonds), [Fraction(1)] * 6, "double"))
    assert upper ** (1 / 6) < float(known("entropy")["triangular"])
    assert lower ** (1 / 6) == pytest.approx(1.395485354998, abs=1e-12)


def test_clique_insertions_reproduce_the_study_and_nest():
    triangles = entropy_bounds("3-12-12", width=4).growth_constant
    assert float(triangles.lower) == pytest.approx(1.5284655217763818, abs=1e-14)
    assert float(triangles.upper) == pytest.approx(1.5284655906347517, abs=1e-14)
    squares = entropy_bounds("modified-bathroom", width=4).growth_constant
    assert float(squares.lower) == pytest.approx(1.4603833472643066, abs=1e-14)
    assert float(squares.upper) == pytest.approx(1.4603872691322561, abs=1e-14)
    for lattice in ("3-12-12", "modified-bathroom", "3-6-24"):
        intervals = [entropy_bounds(lattice, width=width) for width in (2, 3, 4)]
        for wide, narrow in itertools.pairwise(intervals):
            assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
            assert narrow.theorem == "B"


def test_growing_widths_reach_the_digits_or_say_so():
    bounds = entropy_bounds("triangular-kagome", digits=10)
    assert bounds.evidence["reached"]
    assert bounds.digits >= 10
    far = entropy_bounds("modified-bathroom", width=5, digits=20)
    assert not far.evidence["reached"]
    assert 5 <= far.digits < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lattice", "digits"), [("triangular-kagome", 18), ("3-12-12", 18), ("modified-bathroom", 18), ("triangular", 12)]
)
def test_strips_and_rings_prove_the_digits_that_were_aimed_at(known, lattice, digits):
    bounds = entropy_bounds(lattice, digits=digits)
    lower, upper = map(Fraction, known("entropy")["intervals"][lattice])
    assert bounds.growth_constant.digits >= digits
    assert Fraction(bounds.growth_constant.lower) <= upper
    assert lower <= Fraction(bounds.growth_constant.upper)


@pytest.mark.parametrize(
    ("lattice", "arguments", "words"),
    [
        ("square", {"width": 2}, "width"),
        ("square", {"width": 100}, "width"),
        ("square", {"width": 6, "power": 6}, "power"),
        ("square", {"width": 6, "power": 0}, "power"),
        ("square", {"width": 6, "boundary_activity": 0}, "boundary_activity"),
        ("square", {"width": 6, "boundary_activity": float("nan")}, "boundary_activity"),
        ("square", {"width": 6, "bond_dimension": 6}, "bond_dimension"),
        ("square", {"method": "corner", "width": 6}, "width"),
        ("3-12-12", {"activity": 2}, "activity"),
        ("3-12-12", {"power": 2}, "power"),
        ("3-12-12", {"method": "corner"}, "corner"),
        ("martini", {"method": "ring"}, "martini"),
        ("triangular", {"width": 8, "precision": "double", "digits": 20}, "digits"),
    ],
)
def test_bad_arguments_are_named(lattice, arguments, words):
    with pytest.raises(ValueError, match=words):
        entropy_bounds(lattice, **arguments)


@pytest.mark.parametrize(("lattice", "digits", "limit"), [("triangular", 20, 300.0), ("triangular", 12, 1.0)])
def test_digits_beyond_a_limit_of_time_are_refused_with_those_within_reach(lattice, digits, limit):
    start = time.process_time()
    with pytest.raises(
        ValueError, match=r"`digits` must be at most \d+ for .* by strips and rings .*, got \d+"
    ) as caught:
        entropy_bounds(lattice, digits=digits, time_limit=limit)
    assert time.process_time() - start < 10
    reach = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert 7 <= reach < digits
    if limit == 1.0:  # and these are proved, on a machine that may be busier then
        assert entropy_bounds(lattice, digits=reach, time_limit=10 * limit).growth_constant.digits >= reach


def test_what_digits_take_is_forecast_from_the_last_two_rounds():
    def rounds(count):
        return [_Round(4 + 2 * i, Decimal(10) ** (-2 - i), 3**i, 0.01 * 3.0**i) for i in range(count)]

    def refusal(wanted, ahead, limit, count=5):
        _refuse_long("honeycomb", wanted, rounds(count), list(range(4 + 2 * count, ahead + 1, 2)), limit)

    # The fifth round took .81 s and proved 6 digits, the next ones take 2.43, 7.29 and 21.87 s; all so far took 1.21.
    assert sum(entry.seconds for entry in rounds(5)) == pytest.approx(1.21)
    refusal(9, 40, 32.81)
    with pytest.raises(ValueError, match=r"at most 8 for 'honeycomb' .* of 33 s, got 9, which would take 18 .* 33 s"):
        refusal(9, 40, 32.79)
    with pytest.raises(ValueError, match=r"at most 8 for .* got 9, which would take 18 of at most 16 lines"):
        refusal(9, 16, 1000.0)
    with pytest.raises(ValueError, match=r"at most 6 for .* got 20"):
        refusal(20, 40, 1.0)
    refusal(40, 16, math.inf)
    refusal(40, 16, 1.0, count=2)
    refusal(40, 16, 1.0, count=3)  # .09 s are too few to forecast from


@pytest.mark.parametrize(
    ("limit", "error"), [(0, ValueError), (-1.0, ValueError), (math.nan, ValueError), ("1", TypeError)]
)
def test_a_bad_limit_of_time_is_refused(limit, error):
    for lattice in ("triangular", "square", "martini"):  # by corner tensors and windows it does nothing
        with pytest.raises(error, match="`time_limit` must be"):
            entropy_bounds(lattice, digits=5, time_limit=limit)
    assert entropy_bounds("triangular", digits=5, time_limit=math.inf).digits >= 5
