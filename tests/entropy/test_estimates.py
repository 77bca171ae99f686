"""Estimates by corner tensors: closed forms, both sides of the hard-square transition, derivatives, next neighbors."""

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from quincunx import counting, lattices
from quincunx.entropy import FaceModel, annealed_entropy_limit, entropy_bounds, entropy_estimate

LATTICES = ["square", "king", "4-8-8", "honeycomb", "kagome", "triangular"]


def test_hard_hexagons_are_estimated_to_the_closed_form(known):
    estimate = entropy_estimate("triangular", digits=24)
    exact = Decimal(known("entropy")["triangular"])
    assert abs(exact - estimate.growth_constant) < Decimal("0.6e-24")
    assert 0 <= exact.ln(Context(prec=40)) - estimate.convergence[-1][1] < Decimal("1e-25")
    assert [size for size, _, _ in estimate.convergence] == sorted({size for size, _, _ in estimate.convergence})
    assert estimate.spectrum[0] == 1


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("activity", [Fraction(1, 2), Fraction(2)])
def test_estimates_lie_in_the_intervals_of_strips_and_rings(lattice, activity):
    bounds = entropy_bounds(lattice, activity=activity, width=8)
    estimate = entropy_estimate(lattice, activity=activity, digits=10)
    # From below, by Rayleigh's principle.
    assert bounds.lower - Decimal("1e-10") <= estimate.convergence[-1][1] <= bounds.upper


@pytest.mark.parametrize("lattice", LATTICES)
def test_the_digits_asked_for_are_printed_and_right(known, lattice):
    long = known("entropy")["intervals" if lattice != "triangular" else lattice]
    true = Decimal(long if lattice == "triangular" else long[lattice][0])
    with localcontext(prec=60):
        for digits in (1, 2, 7, 14, 15, 21, 24):
            estimate = entropy_estimate(lattice, digits=digits)
            assert estimate.digits == digits
            for found, value in ((estimate.growth_constant, true), (estimate.value, true.ln())):
                assert found.as_tuple().exponent == -digits
                assert abs(found - value) <= Decimal(6).scaleb(-digits - 1)


@pytest.mark.parametrize("activity", [3, 5, 6, 20])
def test_two_sublattices_are_right_on_both_sides_of_the_transition(activity):
    bounds = entropy_bounds("square", activity=activity, width=12)
    estimate = entropy_estimate("square", activity=activity, digits=7)
    assert bounds.lower - Decimal("1e-7") <= estimate.value <= bounds.upper
    high, low = estimate.sublattice_densities
    assert (high + low) / 2 == pytest.approx(estimate.density, abs=1e-9)
    if activity >= 4:
        assert high > 2 * low, "one sublattice is preferred"
    else:
        assert high == pytest.approx(low, abs=1e-3)


def test_one_and_two_sublattices_agree_below_the_transition():
    one, two = (entropy_estimate("square", activity=1, digits=14, sublattices=count) for count in (1, 2))
    assert abs(one.value - two.value) < Decimal("1e-14")
    assert one.density == pytest.approx(two.density, abs=1e-7)
    assert len(one.sublattice_densities) == 1
    assert len(two.sublattice_densities) == 2


@pytest.mark.parametrize(
    ("lattice", "activity"), [("square", Fraction(37, 10)), ("triangular", 12), ("honeycomb", 9), ("4-8-8", 20)]
)
def test_at_and_beyond_other_transitions_it_says_that_it_is_not_right(lattice, activity):
    with pytest.raises(ValueError, match="spectral gap"):
        entropy_estimate(lattice, activity=activity, digits=6)


@pytest.mark.parametrize("activity", [4, 6])
def test_one_tensor_for_both_sublattices_beyond_the_transition_is_refused(activity):
    with pytest.raises(ValueError, match="activity"):
        entropy_estimate("square", activity=activity, sublattices=1, digits=6)


def test_far_beyond_the_transition_one_sublattice_is_full_but_for_its_holes():
    # kappa^2 = z (1 + 1/z + ...): a hole is a free vertex on the full sublattice.
    z = 1000
    estimate = entropy_estimate("square", activity=z, digits=10)
    high, low = estimate.sublattice_densities
    assert high == pytest.approx(1 - 1 / z, abs=3 / z**2)
    assert low < 2 / z**3
    assert float(estimate.value) == pytest.approx((math.log(z) + 1 / z) / 2, abs=2 / z**2)


@pytest.mark.parametrize("lattice", LATTICES)
def test_densities_and_susceptibilities_are_derivatives_of_the_constant(lattice):
    step = 1e-3
    estimate = entropy_estimate(lattice, digits=16, susceptibility=True)
    logs = [float(entropy_estimate(lattice, digits=16, activity=math.exp(k * step)).value) for k in (-2, -1, 1, 2)]
    first = (logs[0] - 8 * logs[1] + 8 * logs[2] - logs[3]) / (12 * step)
    assert estimate.density == pytest.approx(first, abs=1e-9)
    densities = [entropy_estimate(lattice, digits=18, activity=math.exp(k * step)).density for k in (-2, -1, 1, 2)]
    second = (densities[0] - 8 * densities[1] + 8 * densities[2] - densities[3]) / (12 * step)
    assert estimate.susceptibility == pytest.approx(second, abs=1e-6)
    assert math.isnan(entropy_estimate(lattice, digits=6).susceptibility)


def test_a_density_is_that_of_a_torus_and_of_the_middle_of_a_piece():
    # What is left falls with the size: 2e-3 on a torus of 6 x 6, 4e-4 of 8 x 8, 3e-4 in the middle of 11 x 11.
    density = entropy_estimate("square").density
    assert density == pytest.approx(float(counting.expected_size(lattices.square(8, 8, "torus"))) / 64, abs=1e-3)
    middle = counting.occupation_probabilities(lattices.square(11, 11))[60]
    assert density == pytest.approx(float(middle), abs=5e-4)


def test_a_small_activity_has_its_series():
    # ln kappa = z - (1 + d) z^2 / 2: density z - (1 + d) z^2, susceptibility z - 2 (1 + d) z^2.
    z = Fraction(1, 1000)
    for lattice, degree in (("square", 4), ("honeycomb", 3), ("king", 8)):
        estimate = entropy_estimate(lattice, activity=z, susceptibility=True)
        assert estimate.density == pytest.approx(float(z - (1 + degree) * z**2), abs=2e-7)
        assert estimate.susceptibility == pytest.approx(float(z - 2 * (1 + degree) * z**2), abs=5e-7)


@pytest.mark.parametrize("exponent", [25, 41, 80])
def test_huge_and_tiny_activities_are_estimated_or_refused_in_words(exponent):
    z = 10**exponent
    for lattice in LATTICES:
        tiny = entropy_estimate(lattice, activity=Fraction(1, z), digits=5, susceptibility=True)
        assert (round(tiny.value, 5), round(tiny.density * z, 9)) == (0, 1)
        assert tiny.susceptibility == pytest.approx(1 / z, abs=1e-16)
        if lattice == "square":
            huge = entropy_estimate(lattice, activity=z, digits=5).growth_constant
            with localcontext(Context(prec=60)):
                assert abs(huge - Decimal(z).sqrt()) < Decimal("0.6e-5")
        else:
            with pytest.raises(ValueError, match="`activity` must be one where corner tensors prove a spectral gap"):
                entropy_estimate(lattice, activity=z, digits=5)


def test_next_neighbor_weights_lead_from_the_square_to_the_king_s_lattice(known):
    square = entropy_estimate("square", next_neighbor_weight=1)
    assert square == entropy_estimate("square")
    tiny = entropy_estimate("square", next_neighbor_weight=Fraction(1, 10**12))
    assert abs(tiny.growth_constant - Decimal(known("entropy")["king"])) < Decimal("1e-11")
    # Random diagonals with chance 1/2: what one more row of cells adds to ln E[Z] a column, extrapolated after Aitken.
    half = entropy_estimate("square", next_neighbor_weight=Fraction(1, 2))
    rows = [m * annealed_entropy_limit(m, 0.5).lower for m in (7, 8, 9, 10)]
    a, b, c = (more - less for less, more in itertools.pairwise(rows))
    assert float(half.value) == pytest.approx(c - (c - b) ** 2 / (c - 2 * b + a), abs=3e-8)


def _called(name):
    return FaceModel(bonds=[[1, 1], [1, 0]], name=name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lattice": "martini"}, "lattice"),
        ({"lattice": "king", "sublattices": 2}, "sublattices"),
        ({"lattice": "king", "next_neighbor_weight": 2}, "next_neighbor_weight"),
        ({"sublattices": 3}, "sublattices"),
        ({"sublattices": 2, "next_neighbor_weight": 2}, "next_neighbor_weight"),
        ({"next_neighbor_weight": 0}, "next_neighbor_weight"),
        ({"activity": float("nan")}, "activity"),
        ({"max_bond_dimension": 1000}, "max_bond_dimension"),
        ({"lattice": "honeycomb", "model": _called("matchings")}, "lattice"),
        ({"model": _called("independent-sets"), "next_neighbor_weight": 2}, "next_neighbor_weight"),
    ],
)
def test_bad_arguments_of_an_estimate_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        entropy_estimate(**({"lattice": "square"} | arguments))
