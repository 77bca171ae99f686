"""Matchings and face models: intervals against dense transfer matrices, closed forms and printed values."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quincunx import counting, lattices
from quincunx.entropy import FaceModel, dimer_entropy, entropy_bounds, entropy_estimate
from quincunx.entropy._models import easier
from quincunx.errors import TooLargeError
from quincunx.lattices import UnitCell

# Found by other code at higher bond dimensions, but the one at 1/4, on which corner tensors and rings here agree.
PRINTED = {
    ("square", 1): "1.94021535148326796170739801818645201570863485042458",
    ("square", Fraction(1, 4)): "1.350213286570677966970129",
    ("square", 4): "3.21676373944081615383023179271",
    ("honeycomb", 1): "1.7890779338524537500881748776570916720024159814156129689",
}


def meets(bounds, printed):
    """Whether an interval meets the numbers that begin with these digits."""
    value, unit = Fraction(printed), Fraction(1, 10 ** (len(printed) - 2))
    return Fraction(bounds.lower) <= value + unit and value <= Fraction(bounds.upper)


def largest(matrix):
    """The spectral radius."""
    return max(abs(np.linalg.eigvals(np.asarray(matrix, dtype=float))))


# Matchings.


def matching_ring(n, z):
    """The largest eigenvalue of the row operator of matchings of a ring, from all pairs of rows of vertical dimers."""
    path = [1.0, 1.0]  # weights of matchings of paths
    for _ in range(n):
        path.append(path[-1] + z * path[-2])

    def across(free):
        if all(free):
            return path[n] + z * path[n - 2]
        start = free.index(False)
        runs = itertools.groupby(free[start:] + free[:start])
        return math.prod(path[len(list(run))] for is_free, run in runs if is_free)

    words = list(itertools.product((0, 1), repeat=n))
    return largest(
        [
            [z ** ((sum(s) + sum(t)) / 2) * across([a + b == 0 for a, b in zip(s, t, strict=True)])
             if not any(a & b for a, b in zip(s, t, strict=True)) else 0.0 for t in words]
            for s in words
        ]
    )  # fmt: skip


@pytest.mark.parametrize("z", [Fraction(1, 4), 1, 4])
def test_even_and_odd_rings_of_matchings_alternate_about_the_interval(z):
    bounds = entropy_bounds("square", model="matchings", activity=z).growth_constant
    roots = {n: matching_ring(n, float(z)) ** (1 / n) for n in range(3, 9)}
    for n, root in roots.items():
        assert root > float(bounds.upper) if n % 2 == 0 else root < float(bounds.lower), n
    assert roots[4] > roots[6] > roots[8]


@pytest.mark.parametrize(("lattice", "activity"), list(PRINTED))
def test_matchings_have_the_printed_constants(lattice, activity):
    digits = 26 if activity == 1 else 20
    bounds = entropy_bounds(lattice, model="matchings", activity=activity, digits=digits)
    assert meets(bounds.growth_constant, PRINTED[lattice, activity])
    assert bounds.growth_constant.digits >= digits
    assert bounds.evidence["reached"]
    assert bounds.model == "matchings"
    assert bounds.theorem == "D and E"


def test_monomers_and_dimers_have_the_published_entropy():
    # S. Friedland, P. H. Lundow, K. Markstrom (2010): 0.66279897 proved; 0.662798972834 estimated before.
    bounds = entropy_bounds("square", model="matchings", digits=20)
    assert bounds.certified.startswith("0.66279897283")
    assert meets(bounds, "0.662798972833")


@pytest.mark.slow
def test_fifty_decimals_of_matchings_are_proved_again():
    bounds = entropy_bounds("square", model="matchings", digits=50)
    assert bounds.growth_constant.certified.startswith(PRINTED["square", 1])


@pytest.mark.parametrize("lattice", ["square", "4-8-8", "honeycomb", "3-12-12"])
def test_every_method_of_matchings_bounds_the_same_constant(lattice):
    line = {"honeycomb": "kagome", "3-12-12": "triangular-kagome"}
    methods = {
        "auto": {},
        "ring": {"width": 6},
        "narrow ring": {"method": "ring", "width": 4, "boundary_activity": 0.7},
        "power": {"width": 6, "power": 2},
        "window": {"method": "window", "width": 9},
    }
    found = {name: entropy_bounds(lattice, model="matchings", **arguments) for name, arguments in methods.items()}
    assert max(bounds.lower for bounds in found.values()) <= min(bounds.upper for bounds in found.values())
    assert found["auto"].growth_constant.digits >= 12
    assert found["window"].theorem == "C"
    assert found["ring"].theorem == ("A" if lattice in line else "E and A'")
    if lattice in line:
        assert found["auto"].evidence["line_graph"] == line[lattice]


@pytest.mark.parametrize(
    ("lattice", "sizes"),
    [("square", [(4, 4), (4, 6), (6, 6)]), ("honeycomb", [(3, 3), (4, 4), (3, 5)]), ("4-8-8", [(2, 2), (2, 4)])],
)
def test_every_bipartite_torus_has_more_matchings_than_the_constant_says(lattice, sizes):
    # Theorem E. Free pieces have fewer: they are tori with bonds left out.
    bounds = entropy_bounds(lattice, model="matchings", digits=9)
    cell = UnitCell.named(lattice)
    for size in sizes:
        torus = lattices.Lattice(cell, size, "torus")
        count = counting.count_matchings(torus)
        assert Decimal(count).ln() / torus.num_vertices > bounds.upper
        free = lattices.Lattice(cell, size, "free")
        assert Decimal(counting.count_matchings(free)).ln() / free.num_vertices < bounds.lower


def test_an_odd_torus_may_have_too_few_matchings():
    # Three by three: no bound from above, which is why odd widths are refused.
    count = counting.count_matchings(lattices.square(5, 3, "torus"))
    assert Decimal(count).ln() / 15 < entropy_bounds("square", model="matchings").lower
    with pytest.raises(ValueError, match="theorem E says nothing about odd rings"):
        entropy_bounds("square", model="matchings", width=7)


@pytest.mark.parametrize("z", [Fraction(1, 3), 1, 5])
def test_matchings_in_one_dimension_have_closed_forms(z):
    path = UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0))])
    bounds = entropy_bounds(path, model="matchings", activity=z, digits=10).growth_constant
    root = (1 + Fraction(Decimal(float(1 + 4 * z)).sqrt())) / 2 if z != 1 else (1 + Fraction(Decimal(5).sqrt())) / 2
    assert abs(Fraction(bounds.lower) - root) < Fraction(1, 10**10)
    assert bounds.digits >= 9
    # A ladder: Z(n) = (2 + z) Z(n-1) + ... at z = 1 the recurrence 3, 1, -1.
    if z == 1:
        ladder = UnitCell([(1, 0), (0, 1)], [(0, 0), (0, 0.5)], [(0, 0, (1, 0)), (1, 1, (1, 0)), (0, 1, (0, 0))])
        bounds = entropy_bounds(ladder, model="matchings", digits=8).growth_constant
        assert math.sqrt(max(np.roots([1, -3, -1, 1]))) == pytest.approx(float(bounds.lower), abs=1e-8)


def test_many_dimers_have_the_dimers_entropy():
    value, error = dimer_entropy("square")
    excess = []
    for z in (1, 8, 64, 512):
        bounds = entropy_bounds("square", model="matchings", activity=z, width=8)
        shift = Decimal(z).ln() / 2
        excess.append((bounds.lower - shift, bounds.upper - shift))
    # ln kappa - (1/2) ln z falls towards the entropy of dimers, and by the density of monomers, of order z^-1/2.
    assert all(upper > Decimal(value - error) for _, upper in excess)
    assert all(later < earlier for (_, earlier), (later, _) in itertools.pairwise(excess))
    assert float(excess[-1][0]) - value < 0.1


def test_where_corner_tensors_prove_no_gap_rings_bound_matchings():
    with pytest.raises(ValueError, match="spectral gap"):
        entropy_bounds("square", model="matchings", activity=60, method="corner")
    bounds = entropy_bounds("square", model="matchings", activity=60, digits=2)
    assert bounds.method == "ring"
    assert "spectral gap" in bounds.evidence["corner"]
    assert matching_ring(6, 60.0) ** (1 / 6) >= float(bounds.growth_constant.lower)


@pytest.mark.parametrize("lattice", ["king", "triangular", "kagome", "martini", "modified-bathroom"])
def test_matchings_of_lattices_that_are_not_bipartite_have_windows(lattice):
    narrow, wide = (entropy_bounds(lattice, model="matchings", width=width) for width in (6, 9))
    assert narrow.theorem == wide.theorem == "C"
    assert max(narrow.lower, wide.lower) <= min(narrow.upper, wide.upper)
    cell = UnitCell.named(lattice)
    size = (3, 3) if cell.num_sites == 1 else (2, 2)
    free = lattices.Lattice(cell, size, "free")
    assert Decimal(counting.count_matchings(free)).ln() / free.num_vertices < wide.upper


@pytest.mark.parametrize("lattice", ["square", "4-8-8", "honeycomb"])
def test_estimates_of_matchings_lie_in_their_intervals(lattice):
    bounds = entropy_bounds(lattice, model="matchings", digits=16)
    estimate = entropy_estimate(lattice, model="matchings", digits=12)
    assert abs(estimate.value - bounds.lower) < Decimal("1e-12")
    step = 1e-3
    values = [
        float(entropy_estimate(lattice, model="matchings", digits=16, activity=math.exp(k * step)).value)
        for k in (-2, -1, 1, 2)
    ]
    slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    assert estimate.density == pytest.approx(slope, abs=1e-8)


# Face models.


def face_ring(model, n):
    """The largest eigenvalue of the row operator of a ring, from all pairs of words."""
    rows, columns = model.bonds.astype(float)
    vertices, faces, q = model.vertices.astype(float), model.faces.astype(float), model.letters
    words = np.array(list(itertools.product(range(q), repeat=n)))
    s, t = words[:, None, :], words[None, :, :]
    s1, t1 = np.roll(s, -1, axis=2), np.roll(t, -1, axis=2)
    weights = faces[s, s1, t, t1] * columns[s, t] * vertices[t] * rows[t, t1]
    return largest(weights.prod(axis=2))


def random_faces(rng, *, heights=True, letters=None):
    """A face model with small integers or fractions, left and right alike, above and below as asked for."""
    q = letters or int(rng.choice([2, 2, 3]))
    zero = rng.choice([0.0, 0.15])
    faces = rng.integers(1, 10, (q,) * 4) * (rng.random((q,) * 4) >= zero)
    faces = faces.astype(object)
    faces = faces + faces.transpose(1, 0, 3, 2)
    if heights:
        faces = faces + faces.transpose(2, 3, 0, 1)
    bonds = rng.integers(1, 5, (2, q, q)).astype(object)
    bonds = bonds + bonds.transpose(0, 2, 1)
    vertices = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 6, (q, 2))]
    return FaceModel(faces * Fraction(1, int(rng.integers(1, 50))), bonds=bonds, vertices=vertices)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("seed", "models"), [(0, 2), *(pytest.param(seed, 5, marks=pytest.mark.slow) for seed in range(40))]
)
def test_random_face_models_have_no_false_interval(seed, models):
    # Several models each: rings by dense matrices, rings and strips in other code, corner tensors of several sizes.
    rng = np.random.default_rng(seed)
    for _ in range(models):
        model = random_faces(rng)
        assert model.mirrors == (True, True)
        widths = (2, 4, 6) if model.letters == 2 else (2, 4)
        found = [entropy_bounds("square", model=model, width=width) for width in (4, 6)]
        found += [entropy_bounds("square", model=model.transposed(), width=4)]
        for size in (3, 6):
            try:
                found.append(entropy_bounds("square", model=model, method="corner", bond_dimension=size))
            except ValueError as error:
                assert "spectral gap" in str(error)  # noqa: PT017
        lower, upper = max(b.growth_constant.lower for b in found), min(b.growth_constant.upper for b in found)
        assert lower <= upper, model
        roots = [face_ring(model, n) ** (1 / n) for n in widths]
        assert float(lower) <= min(roots) * (1 + 1e-12), model


@pytest.mark.parametrize("seed", range(8))
def test_models_with_one_mirror_are_bounded_by_rings_along_it(seed):
    rng = np.random.default_rng(100 + seed)
    model = random_faces(rng, heights=False, letters=2)
    assert model.mirrors == (True, False)
    found = [entropy_bounds("square", model=m, width=w) for m in (model, model.transposed()) for w in (4, 6, 8)]
    assert all(bounds.theorem == "A'" for bounds in found)
    assert max(bounds.lower for bounds in found) <= min(bounds.upper for bounds in found)
    assert face_ring(model, 6) ** (1 / 6) >= float(found[2].growth_constant.lower)
    with pytest.raises(ValueError, match="above and below"):
        entropy_bounds("square", model=model, method="corner")


def test_rings_across_a_mirror_that_is_not_there_may_lie_below():
    # One mirror only: rings along the other axis are no bounds, and are not used.
    models = (random_faces(np.random.default_rng(seed), heights=False, letters=2) for seed in range(60))
    lower = ((model, float(entropy_bounds("square", model=model, width=8).growth_constant.lower)) for model in models)
    assert any(
        face_ring(model.transposed(), n) ** (1 / n) < least * (1 - 1e-9) for model, least in lower for n in (2, 4)
    )


def test_odd_rings_may_lie_below():
    model = FaceModel.potts(2, Fraction(1, 3))
    lower = float(entropy_bounds("square", model=model, width=10).growth_constant.lower)
    assert face_ring(model, 3) ** (1 / 3) < lower < face_ring(model, 4) ** (1 / 4)


def test_hard_squares_are_a_face_model():
    for z, digits in ((Fraction(1, 2), 16), (1, 16), (2, 8)):
        faces = FaceModel(bonds=[[1, 1], [1, 0]], vertices=[1, z])
        own = entropy_bounds("square", model=faces, digits=digits)
        square = entropy_bounds("square", activity=z, digits=digits)
        assert max(own.lower, square.lower) <= min(own.upper, square.upper)
        assert own.growth_constant.digits >= digits
    # Neighbors in rows only: golden ratios, whatever the rest.
    rows = FaceModel(bonds=[[[1, 1], [1, 0]], [[1, 1], [1, 1]]])
    assert entropy_bounds("square", model=rows, digits=15).growth_constant.certified[:17] == "1.618033988749894"


@pytest.mark.parametrize("weight", [1, Fraction(1, 2), Fraction(1, 10)])
def test_next_neighbor_weights_lead_from_the_square_to_the_king_s_lattice(weight):
    faces = np.ones((2, 2, 2, 2), dtype=object)
    for a, b, c, d in itertools.product((0, 1), repeat=4):
        faces[a, b, c, d] = Fraction(weight) ** (a * d + b * c)
    model = FaceModel(faces, bonds=[[1, 1], [1, 0]])
    bounds = entropy_bounds("square", model=model, digits=14)
    estimate = entropy_estimate("square", next_neighbor_weight=weight, digits=13)
    assert abs(bounds.lower - estimate.value) < Decimal("1e-13")


def test_widom_and_rowlinson_have_the_printed_constant():
    bounds = entropy_bounds("square", model="widom-rowlinson", digits=14)
    assert meets(bounds.growth_constant, "2.153506676009791792")
    assert bounds.growth_constant.digits >= 14
    assert bounds.model == "widom-rowlinson"
    for z in (Fraction(1, 2), 5):
        bounds = entropy_bounds("square", model="widom-rowlinson", activity=z).growth_constant
        assert float(bounds.lower) <= min(face_ring(FaceModel.widom_rowlinson(z), n) ** (1 / n) for n in (4, 6))


def onsager(x):
    """Return ln kappa of the Ising model in which a pair of neighbors alike weighs x, one not alike 1."""
    x = mpmath.mpf(x.numerator) / x.denominator
    k = mpmath.log(x) / 2
    c, s = mpmath.cosh(2 * k), mpmath.sinh(2 * k)

    def inner(angle):
        # (1/2 pi) times the integral of ln(A - B cos) is ln((A + sqrt(A^2 - B^2)) / 2).
        a = c * c - s * mpmath.cos(angle)
        return mpmath.log((a + mpmath.sqrt(abs(a * a - s * s))) / 2)

    free = mpmath.log(2) + mpmath.quad(inner, mpmath.linspace(0, mpmath.pi, 9)) / (2 * mpmath.pi)
    return free + 2 * k


@pytest.mark.parametrize(
    "x",
    [
        *(Fraction(1, 10), Fraction(3, 5), Fraction(6, 5), Fraction(12, 5), 4, 20),
        *(pytest.param(x, marks=pytest.mark.slow) for x in (Fraction(1, 2), 2, Fraction(9, 4), Fraction(5, 2), 3)),
    ],
    ids=str,
)
def test_onsager_s_free_energy_lies_in_the_interval(x):
    with mpmath.workdps(40):
        exact = onsager(Fraction(x))
        # Nearer to the transitions corner tensors prove few digits, or no gap.
        digits = 16 if x in (Fraction(1, 10), Fraction(3, 5), Fraction(6, 5), 2, 20) else None
        ising = entropy_bounds("square", model="ising", activity=x, digits=digits)
        assert digits is None or ising.growth_constant.digits >= digits
        for bounds in (ising, entropy_bounds("square", model=FaceModel.potts(2, x), width=6)):
            slack = mpmath.mpf(10) ** -25
            assert mpmath.mpf(str(bounds.lower)) - slack <= exact <= mpmath.mpf(str(bounds.upper)) + slack


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("states", "weight"), [(2, 4), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in [(3, 4), (3, 10), (4, 6)])]
)
def test_potts_models_on_two_sides_of_a_transition_are_dual(states, weight):
    model = FaceModel.potts(states, weight)
    other = easier(model)
    assert other.because == "duality"
    # Rings of the model itself, which know of no duality, hold what its dual's corner tensors prove.
    bounds = entropy_bounds("square", model=model, digits=8).growth_constant
    dual = entropy_bounds("square", model=other.model, digits=8).growth_constant
    assert Fraction(dual.lower) * other.factor <= Fraction(bounds.upper)
    assert Fraction(bounds.lower) <= Fraction(dual.upper) * other.factor
    # Weights that are not of this form take no such way: one that is off by a little.
    table = np.full((states, states), Fraction(1), dtype=object)
    table[np.diag_indices(states)] = weight
    table[0, 0] += Fraction(1, 10**6)
    near = entropy_bounds("square", model=FaceModel(bonds=table), width=4).growth_constant
    assert easier(FaceModel(bonds=table)).because is None
    assert near.lower <= bounds.upper + Decimal("1e-4")
    assert bounds.lower <= near.upper


def test_three_colors_are_refused_by_corner_tensors_and_hold_lieb_s_constant_in_rings():
    model = FaceModel.colorings(3)
    with pytest.raises(ValueError, match="spectral gap"):
        entropy_bounds("square", model=model, method="corner")
    bounds = entropy_bounds("square", model=model)
    assert (bounds.method, bounds.theorem) == ("ring", "A'")
    assert (Decimal(4) / 3).ln() * Decimal("1.5") in bounds
    assert bounds.width < Decimal("0.05")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("colors", [2, *(pytest.param(colors, marks=pytest.mark.slow) for colors in (4, 5))])
def test_colorings_lie_between_rings_and_strips(colors):
    model = FaceModel.colorings(colors)
    bounds = entropy_bounds("square", model=model).growth_constant
    assert float(bounds.lower) <= face_ring(model, 4) ** (1 / 4) * (1 + 1e-12)
    if colors == 2:
        assert 1 in bounds


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "trees"}, ValueError, "model"),
        ({"model": 3}, TypeError, "model"),
        ({"lattice": "king", "model": "ising"}, ValueError, "'square'"),
        ({"model": "ising", "activity": 0}, ValueError, "activity"),
        ({"model": FaceModel.potts(3, 2), "activity": 2}, ValueError, "activity"),
        ({"model": FaceModel.potts(3, 2), "method": "window"}, ValueError, "method"),
        ({"model": FaceModel.potts(3, 2), "precision": "exact"}, ValueError, "precision"),
        ({"model": FaceModel.potts(3, 2), "width": 5}, ValueError, "even"),
        ({"model": FaceModel.potts(3, 2), "width": 40}, ValueError, "width"),
        ({"model": FaceModel.potts(3, 2), "width": 4, "power": 39}, TooLargeError, "a strip of 40 columns"),
        ({"model": FaceModel(np.arange(1, 17).reshape((2,) * 4))}, ValueError, "faces.a, b, c, d. = "),
        ({"lattice": "king", "model": "matchings", "method": "corner"}, ValueError, "lattice"),
        ({"lattice": "king", "model": "matchings", "method": "ring"}, ValueError, "lattice"),
        ({"model": "matchings", "bond_dimension": 2}, ValueError, "bond_dimension"),
        ({"model": "matchings", "lattice": UnitCell(np.eye(2), [(0, 0)], [])}, ValueError, "`lattice` must have bonds"),
    ],
)
def test_bad_arguments_of_models_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        entropy_bounds(**({"lattice": "square"} | arguments))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, ValueError, "must be given"),
        ({"faces": [[1]]}, ValueError, "shape"),
        ({"bonds": [[1, 2], [3]]}, ValueError, "array"),
        ({"bonds": [[1, -1], [1, 1]]}, ValueError, "bonds"),
        ({"bonds": [[1, "a"], [1, 1]]}, TypeError, "bonds"),
        ({"bonds": [[1, float("nan")], [1, 1]]}, ValueError, "bonds"),
        ({"bonds": np.ones((7, 7))}, ValueError, "letters"),
        ({"vertices": [1, 0]}, ValueError, "vertices"),
        ({"bonds": np.zeros((2, 2))}, ValueError, "allow"),
        ({"bonds": np.ma.masked_equal([[1, 1], [1, 2]], 2)}, ValueError, "masked"),
        ({"bonds": [[1, 1], [1, Fraction(1, 10**12)]]}, ValueError, "billionth"),
        ({"bonds": np.ones((2, 2)), "vertices": [1, 1, 1]}, ValueError, "shape"),
    ],
)
def test_weights_that_do_not_fit_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        FaceModel(**arguments)


@pytest.mark.parametrize("how", [{}, {"width": 4}, {"bond_dimension": 3}])
def test_constants_far_below_one_keep_their_digits(how):
    model = FaceModel(vertices=[Fraction(1, 10**30), Fraction(3, 10**30)])  # ln kappa is ln(4e-30)
    bounds = entropy_bounds("square", model=model, **how)
    assert bounds.width < Decimal("1e-12")
    assert bounds.lower < Decimal("4e-30").ln() < bounds.upper
    assert abs(entropy_estimate("square", model=model).value - Decimal("4e-30").ln()) < Decimal("1e-12")


@pytest.mark.parametrize("width", [4, 6])
def test_a_poor_lower_end_of_strips_is_that_of_the_empty_set(width):
    bounds = entropy_bounds("king", activity=10**9, width=width, power=1, boundary_activity=1e6)
    assert bounds.lower == 0 < Decimal(10**9).ln() / 4 < bounds.upper


def test_letters_that_never_occur_are_left_out():
    faces = np.zeros((3, 3, 3, 3), dtype=int)
    faces[:2, :2, :2, :2] = 1
    model = FaceModel(faces)
    assert model.letters == 2
    assert entropy_bounds("square", model=model, digits=10).growth_constant.lower <= 2
