"""Solved models beside our own intervals, estimates, transfer matrices, tori and other people's digits."""

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quincunx import lattices
from quincunx.counting import count_perfect_matchings
from quincunx.entropy import (
    annealed_entropy_limit,
    dimer_entropy,
    entropy_bounds,
    entropy_estimate,
    solved_entropy,
    spanning_tree_entropy,
)
from quincunx.entropy._solved import SOLUTIONS, _hexagons_transition

TRANSITION = Decimal("11.09016994374947424102293417182819058860154589902881")


def density_by_difference(lattice, activity, **options):
    """Return the derivative of the entropy by ln activity, from four values far nearer than their digits."""
    step = Fraction(1, 10**10)
    above, below = (
        solved_entropy(lattice, activity=activity * (1 + sign * step), digits=60, **options) for sign in (1, -1)
    )
    with localcontext(Context(prec=60)):
        return (above.value - below.value) / (Decimal(10**10 + 1) / (10**10 - 1)).ln()


# Hard hexagons.


@pytest.mark.parametrize("activity", ["0.1", "0.5", "1", "2", "5", "9", "11", "12", "20", "100"])
def test_proved_intervals_of_the_triangular_lattice_hold_hard_hexagons(activity):
    z = Fraction(activity)
    bounds = entropy_bounds("triangular", activity=z, width=10)
    solved = solved_entropy("triangular", activity=z, digits=60)
    assert solved.value in bounds
    assert solved.growth_constant in bounds.growth_constant
    assert solved.method == "solved"
    assert "Baxter" in solved.source


def test_eight_proved_digits_and_the_double_limit_hold_hard_hexagons():
    solved = solved_entropy("triangular", digits=60)
    bounds = entropy_bounds("triangular", digits=8)
    assert bounds.growth_constant.digits >= 8
    assert solved.growth_constant in bounds.growth_constant
    assert (
        Decimal(annealed_entropy_limit(None, 1).lower) < solved.value < Decimal(annealed_entropy_limit(None, 1).upper)
    )
    # Baxter's digits.
    assert str(solved.growth_constant).startswith("1.395485972479302735229500663566888")


@pytest.mark.parametrize("activity", [Fraction(1, 2), 1, 3])
def test_corner_estimates_agree_with_hard_hexagons_in_entropy_and_density(activity):
    estimate = entropy_estimate("triangular", activity=activity, digits=14)
    solved = solved_entropy("triangular", activity=activity)
    assert abs(estimate.value - solved.value) < Decimal("2e-14")
    assert float(solved.density) == pytest.approx(estimate.density, abs=1e-9)


@pytest.mark.parametrize("activity", [Fraction(1, 1000), 1, 7, 13, 1000])
def test_densities_of_hard_hexagons_are_slopes(activity):
    solved = solved_entropy("triangular", activity=activity, digits=60)
    assert float(density_by_difference("triangular", activity) - solved.density) == pytest.approx(0, abs=1e-17)


def baxters_density(x):
    """Return Baxter's density below the transition, ``-x G(x) H(x**6) P(x**3) / P(x)``."""
    g = 1 / (mpmath.qp(x, x**5) * mpmath.qp(x**4, x**5))
    y = x**6
    h = 1 / (mpmath.qp(y**2, y**5) * mpmath.qp(y**3, y**5))
    return -x * g * h * mpmath.qp(x**3, x**6) / mpmath.qp(x, x**2)


def test_densities_below_the_transition_are_those_of_baxter_s_product():
    with mpmath.workdps(60):
        x = mpmath.mpf(-1) / 3
        h_over_g = mpmath.qp(x, x**5) * mpmath.qp(x**4, x**5) / (mpmath.qp(x**2, x**5) * mpmath.qp(x**3, x**5))
        z = Decimal(mpmath.nstr(-x * h_over_g**5, 55))
        solved = solved_entropy("triangular", activity=z, digits=80)
        assert abs(solved.density - Decimal(mpmath.nstr(baxters_density(x), 50))) < Decimal("1e-40")


def test_both_sides_of_the_transition_meet_in_it():
    critical = solved_entropy("triangular", activity="critical", digits=50)
    assert critical.activity == TRANSITION
    with localcontext(Context(prec=60)):
        root = Decimal(5).sqrt()
        assert abs(critical.growth_constant - (27 * (25 + 11 * root) / 250).sqrt()) < Decimal("1e-49")
        for off in (Fraction(1, 10**12), Fraction(1, 10**25)):
            z = Fraction(_hexagons_transition())
            below, above = (solved_entropy("triangular", activity=z * (1 + s * off), digits=50) for s in (-1, 1))
            assert below.growth_constant < critical.growth_constant < above.growth_constant
            assert below.density < critical.density < above.density
            # The slope is the critical density, up to the power 5/3 of the distance.
            for near, sign in ((below, -1), (above, 1)):
                rest = near.value - critical.value - sign * critical.density * Decimal(off.numerator) / off.denominator
                assert abs(rest) < Decimal(float(off)) ** Decimal("1.66") * 3


def test_digits_do_not_depend_on_how_many_are_asked_for():
    long = solved_entropy("triangular", activity=10, digits=200).growth_constant
    for digits in (1, 20, 77):
        short = solved_entropy("triangular", activity=10, digits=digits)
        assert abs(short.growth_constant - long) <= Decimal(1).scaleb(-digits)
        assert short.growth_constant.as_tuple().exponent == -digits
    huge = solved_entropy("triangular", activity=2.0**300, digits=20)
    assert float(huge.value) == pytest.approx(100 * math.log(2), rel=1e-14)


# Ising's model: rings by dense matrices, far enough from the transition for them to be long.


def spins(n):
    return np.array(list(itertools.product([1, -1], repeat=n)))


def equal_pairs(s, t):
    """The equal pairs (s_i, t_i) of all rows s with all rows t."""
    return (s.shape[1] + s @ t.T) / 2


def ising_ring(lattice, y, n):
    """Return ln kappa of a ring of n cells."""
    sites = 2 * n if lattice == "honeycomb" else n
    rows = spins(sites)
    along = equal_pairs(rows, np.roll(rows, -1, axis=1)).diagonal()
    if lattice == "honeycomb":  # bricks: every second site has its neighbor above it
        across = equal_pairs(rows[:, ::2], rows[:, 1::2])
    else:
        across = equal_pairs(rows, rows)
        if lattice == "triangular":
            across = across + equal_pairs(rows, np.roll(rows, -1, axis=1))
    matrix = y ** (along[:, None] / 2 + along[None, :] / 2 + across)
    vector = np.ones(len(rows))
    for _ in range(300):
        image = matrix @ vector
        root, vector = image.max() / vector.max(), image / image.max()
    return math.log(root) / sites


@pytest.mark.parametrize(
    ("lattice", "y", "cells"),
    [
        ("square", 1.25, 10),
        ("square", 0.75, 10),
        ("square", 6.0, 8),
        ("triangular", 1.15, 10),
        ("triangular", 0.9, 10),
        ("triangular", 5.0, 8),
        ("honeycomb", 1.5, 5),
        ("honeycomb", 0.6, 5),
        ("honeycomb", 30.0, 5),
    ],
)
def test_ising_free_energies_are_those_of_long_rings(lattice, y, cells):
    solved = solved_entropy(lattice, model="ising", activity=y, digits=20)
    small, ring = ising_ring(lattice, y, cells - 2), ising_ring(lattice, y, cells)
    assert abs(ring - float(solved.value)) < 0.2 * abs(small - float(solved.value))
    assert float(solved.value) == pytest.approx(ring, abs=3e-7)


@pytest.mark.parametrize("y", [Fraction(3, 2), 4, Fraction(1, 5)])
def test_onsager_s_integral_is_the_series(y):
    with mpmath.workdps(40):
        k = mpmath.log(mpmath.mpf(Fraction(y).numerator) / Fraction(y).denominator) / 2
        kappa = 2 * mpmath.sinh(2 * k) / mpmath.cosh(2 * k) ** 2
        inner = mpmath.quad(
            lambda a: mpmath.log((1 + mpmath.sqrt(1 - kappa**2 * mpmath.sin(a) ** 2)) / 2),
            mpmath.linspace(0, mpmath.pi / 2, 5),
        )
        value = 2 * k + mpmath.log(2 * mpmath.cosh(2 * k)) + inner / mpmath.pi
        solved = solved_entropy("square", model="ising", activity=y, digits=30)
        assert abs(solved.value - Decimal(mpmath.nstr(value, 35))) < Decimal("2e-30")


@pytest.mark.parametrize(
    ("lattice", "slope"),
    [("square", 1 + math.sqrt(0.5)), ("triangular", 2.5), ("honeycomb", 1.5 * (0.5 + 2 / 27**0.5))],
)
def test_ising_s_transition_is_where_both_sides_meet_with_the_known_energy(lattice, slope):
    critical = solved_entropy(lattice, model="ising", activity="critical", digits=30)
    assert float(critical.density) == pytest.approx(slope, abs=1e-14)
    for off in (0.95, 1.05):
        near = solved_entropy(lattice, model="ising", activity=critical.activity * Decimal(off), digits=30)
        rest = near.value - critical.value - critical.density * Decimal(off).ln()
        assert 0 < rest < Decimal("0.02")  # convex, with a logarithm


@pytest.mark.parametrize(("lattice", "y"), [("square", 2), ("triangular", Fraction(4, 5)), ("honeycomb", 3)])
def test_pairs_of_equal_neighbors_are_slopes(lattice, y):
    solved = solved_entropy(lattice, model="ising", activity=y, digits=60)
    assert float(density_by_difference(lattice, y, model="ising") - solved.density) == pytest.approx(0, abs=1e-17)


def test_the_triangular_and_the_honeycomb_lattice_are_dual():
    # A domain wall for each unequal pair: Z of one at y is that of the other at (y + 1)/(y - 1), by high temperatures.
    y = Fraction(7, 2)
    dual = (y + 1) / (y - 1)
    triangular = solved_entropy("triangular", model="ising", activity=y, digits=40)
    honeycomb = solved_entropy("honeycomb", model="ising", activity=dual, digits=40)
    # Triangular per site: y**3 sum over even subgraphs of the honeycomb of y**-length; honeycomb: two sites.
    with localcontext(Context(prec=50)):
        edges = triangular.value - 3 * Decimal("3.5").ln()
        high = 2 * honeycomb.value - 2 * Decimal(2).ln() - 3 * ((1 + Decimal(9) / 5) / 2).ln()
        assert abs(edges - high) < Decimal("1e-39")


# Ice and colorings: rings whose distance falls with the square of their length.


def extrapolated(roots):
    """Return the limit of ln(root)/n from rings of n, by the two longest: a + b / n**2."""
    (n, first), (m, second) = [(n, math.log(root) / n) for n, root in sorted(roots.items())[-2:]]
    return (m * m * second - n * n * first) / (m * m - n * n)


def leading(matrix):
    return max(abs(np.linalg.eigvals(matrix)))


def ice_ring(n, strands):
    """Return the matrix between rows of n vertices, as many arrows up as down: one or two arrows above each.

    The second strand, of the triangular lattice, leads to the next vertex of the next row.
    """
    flows = [sum(word) for word in itertools.product([0, 1], repeat=strands)]
    local = np.array([[[[c + i == d + o for o in flows] for i in flows] for d in (0, 1)] for c in (0, 1)], dtype=float)
    chain = local
    for _ in range(n - 1):
        chain = np.einsum("abio,bcjp->acijop", chain, local).reshape(2, 2, *[chain.shape[2] * len(flows)] * 2)
    matrix = chain[0, 0] + chain[1, 1]
    if strands == 2:
        words = np.array(list(itertools.product([0, 1], repeat=2 * n)))
        words[:, 1::2] = np.roll(words[:, 1::2], 1, axis=1)
        matrix = matrix[:, words @ (1 << np.arange(2 * n)[::-1])]
    return matrix


@pytest.mark.parametrize(
    ("lattice", "model", "strands", "lengths"),
    [("square", "six-vertex", 1, (4, 6, 8)), ("triangular", "twenty-vertex", 2, (3, 4, 5))],
)
def test_ice_is_that_of_rings(lattice, model, strands, lengths):
    roots = {n: leading(ice_ring(n, strands)) for n in lengths}
    solved = solved_entropy(lattice, model=model)
    assert extrapolated(roots) == pytest.approx(float(solved.value), abs=2e-3)


def coloring_ring(n, colors, steps):
    """Return the matrix between rows of n vertices in colors; `steps` lead to their neighbors in the next row."""
    words = [w for w in itertools.product(range(colors), repeat=n) if all(w[i] != w[i - 1] for i in range(n))]
    rows = np.array(words)
    matrix = np.ones((len(rows), len(rows)))
    for step in steps:
        moved = np.roll(rows, -step, axis=1)
        for k in range(n):
            matrix *= rows[:, None, k] != moved[None, :, k]
    return matrix


def test_three_colorings_of_the_square_lattice_are_ice_and_those_of_rings():
    roots = {n: leading(coloring_ring(n, 3, [0])) for n in (4, 6, 8)}
    solved = solved_entropy("square", model="3-colorings")
    assert solved.value == solved_entropy("square", model="six-vertex").value
    assert extrapolated(roots) == pytest.approx(float(solved.value), abs=1e-3)


def test_four_colorings_of_the_triangular_lattice_are_those_of_rings():
    roots = {n: leading(coloring_ring(n, 4, [0, 1])) for n in (3, 6)}
    solved = solved_entropy("triangular", model="4_colorings", digits=30)
    assert extrapolated(roots) == pytest.approx(float(solved.value), abs=0.02)
    # Baxter's product over (3 n - 1)**2 / (3 n (3 n - 2)).
    with mpmath.workdps(40):
        product = 3 * mpmath.gamma(mpmath.mpf(1) / 3) ** 3 / (4 * mpmath.pi**2)
        assert abs(solved.growth_constant - Decimal(mpmath.nstr(product, 35))) < Decimal("2e-30")
    kagome = solved_entropy("kagome", model="3-colorings", digits=30)
    assert abs(3 * kagome.value - solved.value) < Decimal("1e-27")
    partial = math.fsum(2 * math.log(3 * n - 1) - math.log(3 * n) - math.log(3 * n - 2) for n in range(1, 10**5))
    assert partial == pytest.approx(float(solved.value), abs=2e-6)


# Trees and dimers.


def test_trees_and_dimers_have_any_number_of_digits():
    with mpmath.workdps(80):
        clausen = mpmath.clsin(2, mpmath.pi / 3) / mpmath.pi
        expected = {
            ("square", "spanning_trees"): 4 * mpmath.catalan / mpmath.pi,
            ("triangular", "spanning-trees"): 5 * clausen,
            ("kagome", "spanning-trees"): (5 * clausen + mpmath.log(6)) / 3,
            ("3-12-12", "spanning-trees"): (5 * clausen / 2 + mpmath.log(15) / 2) / 3,
            ("square", "dimers"): mpmath.catalan / mpmath.pi,
            ("honeycomb", "dimers"): clausen / 2,
            ("martini", "dimers"): clausen / 4,
            ("kagome", "dimers"): mpmath.log(2) / 3,
            ("3-12-12", "dimers"): mpmath.log(2) / 6,
        }
        for (lattice, model), value in expected.items():
            solved = solved_entropy(lattice, model=model, digits=70)
            assert abs(solved.value - Decimal(mpmath.nstr(value, 75))) < Decimal("1e-70")


@pytest.mark.parametrize("lattice", ["square", "honeycomb", "kagome", "martini", "3-12-12"])
def test_constants_of_trees_and_dimers_say_by_whom_they_were_solved(lattice):
    found = dimer_entropy(lattice)
    solved = solved_entropy(lattice, model="dimers")
    assert abs(Decimal(found.value) - solved.value) < Decimal(found.error)
    assert (found.method, found.source) == ("solved", solved.source)
    assert dimer_entropy("4-8-8").method == spanning_tree_entropy("king").method == "estimated"
    assert spanning_tree_entropy("3-12-12").method == "solved"


def test_tori_have_the_dimers_of_the_solution():
    # The count of a torus exceeds the limit's power by a bounded factor.
    count = count_perfect_matchings(lattices.square(16, 16, boundary="torus"))
    rest = math.log(count) - 256 * float(solved_entropy("square", model="dimers").value)
    assert 0 < rest < 2


# What is refused.


def test_what_is_not_solved_is_refused_in_words():
    with pytest.raises(ValueError, match="`lattice` must be one of triangular for 'independent-sets', got 'square'"):
        solved_entropy("square")
    with pytest.raises(ValueError, match=r"`model` must be one of 3-colorings, .*, got 'potts'"):
        solved_entropy("square", model="potts")
    with pytest.raises(ValueError, match=r"`lattice` must be one of square, .* for 'spanning-trees', got 'king'"):
        solved_entropy("king", model="spanning-trees")
    with pytest.raises(ValueError, match="`activity` must be 1 for 'dimers'"):
        solved_entropy("square", model="dimers", activity=2)
    with pytest.raises(ValueError, match="`activity` must be 1 for 'dimers'"):
        solved_entropy("square", model="dimers", activity="critical")
    with pytest.raises(ValueError, match="`activity` must be a positive number or 'critical'"):
        solved_entropy("triangular", activity="high")
    with pytest.raises(ValueError, match="`activity` must be positive"):
        solved_entropy("triangular", activity=-1)
    with pytest.raises(ValueError, match="farther from the transition"):
        solved_entropy("square", model="ising", activity=2.4142)
    with pytest.raises(ValueError, match="diverges"):
        solved_entropy("triangular", model="ising", activity=0.5)
    with localcontext(Context(prec=100)):
        with pytest.raises(ValueError, match="'critical'"):
            solved_entropy("triangular", activity=_hexagons_transition())
    for digits in (0, 1001):
        with pytest.raises(ValueError, match="`digits`"):
            solved_entropy("triangular", digits=digits)
    with pytest.raises(TypeError, match="`model`"):
        solved_entropy("triangular", model=3)


def test_every_row_of_the_table_has_a_source_with_its_year_and_says_whether_it_is_a_theorem():
    assert len({(row.model, row.lattice) for row in SOLUTIONS}) == len(SOLUTIONS)
    for row in SOLUTIONS:
        assert "(19" in row.source
        assert any(words in row.source for words in ("a theorem", "not a theorem", "assumes"))
        solved = solved_entropy(row.lattice, model=row.model, digits=12)
        assert solved.growth_constant > 1
        assert (solved.density is None) == (row.critical is None)
