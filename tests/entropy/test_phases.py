"""Phase diagrams: convexity on known functions, estimates, the exact chain, hard hexagons, and gaps that are shown."""

import math
from decimal import Decimal
from fractions import Fraction

import networkx
import numpy as np
import pytest

from quincunx.entropy import EntropyBounds, _phases, entropy_bounds, entropy_estimate, phase_diagram, solved_entropy
from quincunx.lattices import UnitCell

CHAIN = UnitCell(np.eye(2), [(0, 0)], [(0, 0, (1, 0))])


@pytest.mark.parametrize(
    ("value", "slope"),
    [
        (lambda t: math.log1p(math.exp(t)), lambda t: 1 / (1 + math.exp(-t))),
        (lambda t: 0.5 * math.log1p(math.exp(2 * t)) + 0.01 * math.exp(t / 9), None),
        (lambda t: max(0.0, 0.5 * t), lambda t: 0.5 * (t > 0)),
    ],
)
def test_what_convexity_closes_holds_the_function_its_slope_and_no_less_than_before(value, slope):
    rng = np.random.default_rng(28)
    for _ in range(40):
        t = np.sort(rng.uniform(-4, 4, 12))
        noise = rng.exponential(10.0 ** rng.uniform(-9, -1, (12, 2)))
        noise[rng.random(12) < 0.2, 1] = np.inf
        points = [
            _phases._Point(Decimal(x), Decimal(value(x) - a - 1e-15), Decimal(value(x) + b + 1e-15))
            for x, (a, b) in zip(t, noise, strict=True)
        ]
        limits = _phases._Limits(Decimal(2), Decimal(0))
        pressures, slopes = _phases._closed(points, limits)
        for point, (low, high), (flat, steep) in zip(points, pressures, slopes, strict=True):
            assert point.lower <= low <= Decimal(value(float(point.t)) + 1e-14)
            assert Decimal(value(float(point.t)) - 1e-14) <= high <= point.upper
            assert 0 <= flat <= steep <= 2
            if slope is not None:
                assert float(flat) - 1e-5 <= slope(float(point.t)) <= float(steep) + 1e-5


def test_hulls_are_convex_and_touch_what_is_lowest():
    found = _phases._hull([Decimal(k) for k in range(6)], [Decimal(v) for v in (4, 1, "Infinity", 5, 0, 7)])
    assert [round(v, 9) for v in found] == [4, 1, Decimal("0.666666667"), Decimal("0.333333333"), 0, 7]


def test_densities_of_hard_squares_and_kings_hold_those_of_corner_estimates():
    for lattice, last in (("square", Fraction(3, 2)), ("king", 2)):
        axis = [Fraction(1, 4), 1, last]
        diagram = phase_diagram(lattice, axis)
        assert diagram.reasons == (None,) * 3
        for i, z in enumerate(axis):
            estimate = entropy_estimate(lattice, activity=z)
            assert diagram.density_lower[i] <= estimate.density <= diagram.density_upper[i]
            assert diagram.density_upper[i] - diagram.density_lower[i] < 1e-6
            assert diagram.pressure_lower[i] <= float(estimate.value) + 1e-14
            assert float(estimate.value) - 1e-14 <= diagram.pressure_upper[i]
        for z in (0.1, 0.5, *(float(last) * share for share in (0.75, 0.95, 1.05))):
            estimate = entropy_estimate(lattice, activity=z, digits=12)
            pressure, density = diagram.at(z)
            assert pressure.lower <= estimate.value <= pressure.upper
            assert density.lower <= estimate.density <= density.upper
        for i, z in enumerate(axis):
            pressure, density = diagram.at(z)
            assert (pressure.lower, density.upper) == (diagram.pressure_lower[i], diagram.density_upper[i])


def test_diagrams_of_a_chain_hold_its_closed_form():
    axis = [0.2, 1, 5, 40]
    diagram = phase_diagram(CHAIN, axis)
    for z, *ends in zip(
        axis,
        diagram.pressure_lower,
        diagram.pressure_upper,
        diagram.density_lower,
        diagram.density_upper,
        strict=True,
    ):
        root = math.sqrt(1 + 4 * z)
        assert ends[0] - 1e-14 <= math.log((1 + root) / 2) <= ends[1] + 1e-14
        assert ends[2] <= 2 * z / (root * (1 + root)) <= ends[3] <= 0.5 + 1e-15
    for z in (0.01, 0.7, 3, 1000):
        pressure, density = diagram.at(z)
        root = math.sqrt(1 + 4 * z)
        assert pressure.lower <= math.log((1 + root) / 2) <= pressure.upper
        assert density.lower <= 2 * z / (root * (1 + root)) <= density.upper


def test_diagrams_of_the_triangular_lattice_hold_hard_hexagons_on_both_sides_of_their_transition(monkeypatch):
    monkeypatch.setattr(_phases, "entropy_bounds", lambda *args, **named: entropy_bounds(*args, width=10, **named))
    axis = [0.5, 1, 3, 8, 11, 14, 30, 100]
    diagram = phase_diagram("triangular", axis)
    for z in (*axis, 0.7, 5, 10, 20, 1000):
        solved = solved_entropy("triangular", activity=z, digits=30)
        pressure, density = diagram.at(z)
        assert pressure.lower <= solved.value <= pressure.upper
        assert density.lower <= solved.density <= density.upper
    assert (np.diff(diagram.density_lower) >= 0).all()
    assert (np.diff(diagram.density_upper) >= 0).all()
    assert diagram.density_upper[-1] < 1 / 3 + 1e-15


def test_beyond_the_transition_of_hard_squares_intervals_hold_the_estimate_and_say_what_stood_against_narrow_ones():
    diagram = phase_diagram("square", [1.5, 6, 10])
    assert diagram.theorems == ("D and E", "A", "A")
    assert diagram.reasons[0] is None
    for i, z in ((1, 6), (2, 10)):
        assert "spectral gap" in diagram.reasons[i]
        estimate = entropy_estimate("square", activity=z, digits=8)
        assert diagram.pressure_lower[i] < estimate.value < diagram.pressure_upper[i]
        assert diagram.density_lower[i] < estimate.density < diagram.density_upper[i]


def refusing(*refused):
    """Return what bounds entropies but at some activities."""

    def bounds(lattice, *, activity, **named) -> EntropyBounds:
        if activity in refused:
            raise ValueError("`activity` must be another one")
        return entropy_bounds(lattice, activity=activity, **named)

    return bounds


def test_where_no_method_proves_anything_only_convexity_speaks_and_the_gap_is_shown(monkeypatch):
    whole = phase_diagram("square", [0.5, 1, 1.5])
    monkeypatch.setattr(_phases, "entropy_bounds", refusing(1))
    diagram = phase_diagram("square", [0.5, 1, 1.5])
    assert diagram.theorems == ("D and E", "convexity", "D and E")
    assert diagram.reasons == (None, "`activity` must be another one", None)
    assert diagram.pressure_lower[1] < whole.pressure_lower[1] < whole.pressure_upper[1] < diagram.pressure_upper[1]
    assert diagram.density_lower[1] < whole.density_lower[1] < whole.density_upper[1] < diagram.density_upper[1]
    monkeypatch.setattr(_phases, "entropy_bounds", refusing(1, 2))
    empty = phase_diagram("square", [1, 2])
    assert np.isnan(empty.pressure_upper).all()
    # Half of the vertices may be chosen freely.
    assert empty.pressure_lower == pytest.approx(np.log([2, 3]) / 2, abs=1e-14)
    assert empty.density_lower == pytest.approx([0, 0], abs=1e-20)
    assert empty.density_upper == pytest.approx([0.5, 0.5])


def test_diagrams_of_matchings_hold_the_densities_of_corner_estimates():
    diagram = phase_diagram("square", [0.5, 2, 8, 1000], model="matchings")
    assert diagram.model == "matchings"
    for z, low, high in zip([0.5, 2, 8], diagram.density_lower, diagram.density_upper, strict=False):
        density = entropy_estimate("square", model="matchings", activity=z, digits=10).density
        assert low <= density <= high
        assert high - low < 1e-6
    # Dimers: at most one for two vertices, and each of a perfect matching laid or not.
    assert np.log(1001) / 2 <= diagram.pressure_lower[-1] < np.log(1000) / 2 + 0.33
    assert diagram.density_upper[-1] <= 0.5 + 1e-12


def test_lattices_without_perfect_matchings_have_no_free_dimers():
    star = UnitCell(
        [(1, 0), (0, 1)], [(0, 0), (0.3, 0.1), (0.3, -0.1)], [(0, 1, (0, 0)), (0, 2, (0, 0)), (0, 0, (1, 0))]
    )
    assert _phases._limits_of_matchings(star).free == 0
    assert _phases._limits_of_matchings(UnitCell.named("king")).free == Decimal("0.5")


@pytest.mark.parametrize("lattice", ["square", "triangular"])
def test_densities_are_at_most_one_over_the_size_of_a_largest_clique(lattice):
    cell = UnitCell.named(lattice)
    for shell in range(2, 15):
        cell = cell.add_bonds(shell=shell)
        steps = {step for _, _, (x, y) in cell.bonds for step in ((x, y), (-x, -y))}
        found = _phases._clique(steps)
        if shell < 8:
            pairs = [(p, q) for p in steps for q in steps if (q[0] - p[0], q[1] - p[1]) in steps]
            assert found == 1 + max(map(len, networkx.find_cliques(networkx.Graph(pairs))))
    assert phase_diagram(cell, [1]).density_upper[0] <= np.nextafter(1 / found, 1)


def test_a_diagram_at_the_ends_of_what_activities_may_be_has_no_points_beside_them():
    diagram = phase_diagram("square", [Fraction(1, 2**899)])
    assert -1e-29 < diagram.pressure_lower[0] < 0 < diagram.pressure_upper[0] < 1e-29
    diagram = phase_diagram("square", [Fraction(2**899)])
    assert diagram.pressure_lower[0] == pytest.approx(899 * math.log(2) / 2, abs=1e-12)


def test_plots_draw_both_ends_and_mark_what_corner_tensors_left():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    diagram = phase_diagram("square", [1, 6])
    for quantity in ("density", "pressure"):
        axes = diagram.plot(quantity=quantity)
        low, high = (line for line in axes.lines if len(line.get_xdata()) > 2)
        shown = [marks for marks in axes.lines if len(marks.get_xdata()) == 1]
        ends = [getattr(diagram, f"{quantity}_{end}") for end in ("lower", "upper")]
        assert sorted(float(marks.get_ydata()[0]) for marks in shown) == sorted(np.ravel(ends).tolist())
        for z, below, above in zip(low.get_xdata()[1:-1], low.get_ydata()[1:-1], high.get_ydata()[1:-1], strict=True):
            pressure, density = diagram.at(z)
            proved = pressure if quantity == "pressure" else density
            assert (below, above) == pytest.approx(proved, abs=1e-12)
        hollow = [line for line in axes.lines if line.get_fillstyle() == "none"]
        assert [len(line.get_xdata()) for line in hollow] == [1, 1]
        assert diagram.plot(axes, quantity=quantity) is axes
    with pytest.raises(ValueError, match="`quantity`"):
        diagram.plot(quantity="entropy")


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="`activities` must be different numbers"):
        phase_diagram("square", [1, 1.0])
    with pytest.raises(ValueError, match="`activities` must be different numbers"):
        phase_diagram("square", [])
    with pytest.raises(TypeError, match="`activities` must be a sequence of numbers, got float"):
        phase_diagram("square", 1.0)
    with pytest.raises(ValueError, match=r"`activities` must have a numerator and .*, got one of 16610 bits"):
        phase_diagram("square", [10**5000])
    with pytest.raises(ValueError, match="`activities` must be positive"):
        phase_diagram("square", [0, 1])
    with pytest.raises(ValueError, match="`model` must be one of"):
        phase_diagram("square", [1], model="potts")
    with pytest.raises(TypeError, match="`model`"):
        phase_diagram("square", [1], model=2)
    with pytest.raises(TypeError, match="`activity`"):
        phase_diagram("square", [1]).at("1")
    heard = []
    phase_diagram("square", [0.5, 1], progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (2, 2)
