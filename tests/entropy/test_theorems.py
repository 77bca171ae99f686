"""The theorems of docs/mathematics/entropy.md, attacked: small cases in full, and where a hypothesis fails."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quincunx import _core, counting, graphs, lattices
from quincunx.entropy import entropy_bounds
from quincunx.entropy._numbers import root_above, root_below
from quincunx.entropy._strips import _columns, base_of, perron_root

# Theorem E: 2-covers.


def weighted_count(edges, weights):
    """Sum the weights of independent sets over all subsets."""
    n = len(weights)
    masks = [sum(1 << v for u, v in [*edges, *((v, u) for u, v in edges)] if u == w) for w in range(n)]
    total = 0
    for subset in range(1 << n):
        chosen = [v for v in range(n) if subset >> v & 1]
        if not any(subset & masks[v] for v in chosen):
            total += math.prod(weights[v] for v in chosen)
    return total


def matching_count(edges, weights):
    """Sum the weights of matchings: independent sets of the line graph."""
    lines = [(i, j) for (i, e), (j, f) in itertools.combinations(enumerate(edges), 2) if set(e) & set(f)]
    return weighted_count(lines, weights)


@st.composite
def covered_graphs(draw, bipartite=True):
    """Draw a graph, positive integer weights, and which of its edges cross in a 2-cover."""
    sides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    n = sum(sides)
    pairs = [(u, v) for u, v in itertools.combinations(range(n), 2) if not bipartite or u < sides[0] <= v]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=6)) if pairs else []
    crossed = draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    vertex_weights = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    edge_weights = draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    cover = [
        (u, v + n * cross) if copy == 0 else (u + n, v + n * (not cross))
        for (u, v), cross in zip(edges, crossed, strict=True)
        for copy in (0, 1)
    ]
    return edges, cover, vertex_weights, edge_weights


@given(covered_graphs())
def test_no_2_cover_of_a_bipartite_graph_has_more_than_the_square(case):
    edges, cover, vertex_weights, edge_weights = case
    assert weighted_count(cover, vertex_weights * 2) <= weighted_count(edges, vertex_weights) ** 2
    lifted = [weight for weight in edge_weights for _ in (0, 1)]
    assert matching_count(cover, lifted) <= matching_count(edges, edge_weights) ** 2


def test_a_2_cover_of_a_triangle_has_more_than_the_square():
    # A hexagon has 18 independent sets, a triangle 4; and 18 matchings against 4.
    hexagon = [(i, (i + 1) % 6) for i in range(6)]
    triangle = [(0, 1), (1, 2), (0, 2)]
    assert weighted_count(hexagon, [1] * 6) == 18 > weighted_count(triangle, [1] * 3) ** 2
    assert matching_count(hexagon, [1] * 6) == 18 > matching_count(triangle, [1] * 3) ** 2


# Theorem D: Temple's inequality.


def ring_operator(letters, king=False):
    """Return the symmetric row operator of a ring of the square or the king's lattice."""
    turn = lambda word: (word >> 1) | ((word & 1) << (letters - 1))  # noqa: E731
    words = [word for word in range(1 << letters) if not word & turn(word)]
    matrix = np.zeros((len(words), len(words)))
    for (i, s), (j, t) in itertools.product(enumerate(words), repeat=2):
        clash = s & t | (king and (turn(s) & t | s & turn(t)))
        matrix[i, j] = 0 if clash else 1
    return matrix


@pytest.mark.parametrize("king", [False, True])
@pytest.mark.parametrize("letters", [4, 6, 8])
def test_temple_s_bound_holds_for_every_trial_vector_that_it_admits(letters, king):
    operator = ring_operator(letters, king=king)
    values, vectors = np.linalg.eigh(operator)
    largest, best = values[-1], vectors[:, -1]
    rng = np.random.default_rng(letters)
    admitted = 0
    for size in (1e-3, 0.03, 0.1, 0.3, 1.0, 3.0):
        for rows in (2, 4, 8):
            for _ in range(40):
                psi = best + size * rng.normal(size=len(best)) / math.sqrt(len(best))
                image = operator @ psi
                rho, sigma = psi @ image / (psi @ psi), image @ image / (psi @ psi)
                rest = (values**rows).sum() - abs(rho) ** rows
                beta = max(rest, 0.0) ** (1 / rows)
                if beta < rho:
                    admitted += 1
                    assert rho <= largest * (1 + 1e-12)
                    assert largest <= (sigma - beta * rho) / (rho - beta) * (1 + 1e-12)
    assert admitted > 250


def test_without_the_bound_on_the_rest_temple_s_inequality_is_false():
    # A vector near the second eigenvector and a beta too small: the bound falls below the largest eigenvalue.
    operator = ring_operator(6)
    values, vectors = np.linalg.eigh(operator)
    psi = vectors[:, -2] if values[-2] > 0 else vectors[:, -3]
    psi = psi + 0.01 * vectors[:, -1]
    image = operator @ psi
    rho, sigma = psi @ image / (psi @ psi), image @ image / (psi @ psi)
    beta = 0.5 * rho
    assert (sigma - beta * rho) / (rho - beta) < values[-1]


# Theorem A: moments of the half step.


def half_step(periods):
    """Return A of the triangular lattice's ring of some periods, as integers, and the shift of its words."""
    turn = lambda word: (word >> 1) | ((word & 1) << (periods - 1))  # noqa: E731
    words = [word for word in range(1 << periods) if not word & turn(word)]
    place = {word: i for i, word in enumerate(words)}
    # The next line lies half a period on: its site i meets the sites i and i + 1 of this one.
    step = np.array([[int(not (s & t or turn(s) & t)) for t in words] for s in words], dtype=object)
    shift = np.zeros_like(step)
    for word in words:
        shift[place[word], place[turn(word)]] = 1
    return step, shift


@pytest.mark.parametrize("periods", [3, 4, 6])
def test_the_half_step_is_normal_and_symmetric_where_a_shift_changes_nothing(periods):
    step, shift = half_step(periods)
    assert (step @ step.T == step.T @ step).all()
    assert (step @ shift == shift @ step).all()
    assert (step == step.T @ shift).all() or (step == step.T @ shift.T).all()


def test_even_hankel_minors_are_never_negative_and_odd_ones_can_be():
    step, shift = half_step(6)
    rng = np.random.default_rng(2)
    smallest = {0: math.inf, 1: math.inf}
    for _ in range(60):
        start = np.array([int(x) for x in rng.integers(-9, 10, size=len(step))], dtype=object)
        v = start
        total = start
        for _ in range(5):
            v = shift @ v
            total = total + v
        moments = []
        image = total
        for _ in range(8):
            moments.append(int(total @ image))
            image = step @ image
        for offset in (0, 1, 2, 3, 4):
            minor = moments[offset] * moments[offset + 2] - moments[offset + 1] ** 2
            smallest[offset % 2] = min(smallest[offset % 2], minor)
    assert smallest[0] >= 0
    assert smallest[1] < 0


@pytest.mark.parametrize("lattice", ["triangular", "square", "honeycomb", "kagome"])
def test_rings_of_theorem_a_fall_and_lie_above_the_constant(known, lattice):
    constant = Decimal(known("entropy")[lattice])
    # Every lower bound below every upper bound, whatever widths, powers and boundary activities they come from.
    found = [
        entropy_bounds(lattice, width=width, power=power, boundary_activity=b).growth_constant
        for width in (4, 6, 8)
        for power in (1, 2, 3)
        for b in (0.2, 0.55, 1.0, 2.0)
    ]
    assert max(bounds.lower for bounds in found) < constant < min(bounds.upper for bounds in found)


# Theorem B: cliques.


@pytest.mark.parametrize(("lattice", "columns"), [("3-12-12", 4), ("modified-bathroom", 4), ("3-6-24", 3)])
def test_far_legs_bound_from_both_sides_and_only_there(lattice, columns):
    base = base_of(lattice)
    reference = entropy_bounds(lattice, width=6 if base.period < 6 else 4, digits=16).growth_constant
    sites = base.period * base.degree
    quotients = []
    for activity in (0.1, 0.5, 0.7, 1.0):
        roots = []
        for count in (columns - 1, columns):
            operator, far = _columns(base, count)
            weights = [Fraction(activity) if site in far else Fraction(1) for site in range(operator.sites)]
            roots.append(perron_root(operator, weights, "double"))
        quotients.append((float(roots[1].lower / roots[0].upper)) ** (1 / sites))
    # The quotient rises with the far activity: small ones are lower bounds, one is an upper bound.
    assert quotients == sorted(quotients)
    assert quotients[1] < float(reference.lower)
    assert quotients[-1] > float(reference.upper)


def test_the_signed_matching_polynomial_counts_the_clique_insertion():
    # mu(G, d + 1) of the complete graph on four vertices, whose insertion is the truncated tetrahedron.
    graph = graphs.complete(4)
    edges = [tuple(map(int, edge)) for edge in graph.edges]
    signed = 0
    for size in range(3):
        for chosen in itertools.combinations(edges, size):
            if len({v for edge in chosen for v in edge}) == 2 * size:
                signed += (-1) ** size * 4 ** (4 - 2 * size)
    tetrahedron = [((u, v), (v, u)) for u, v in edges]
    triangles = [
        ((u, v), (u, w)) for u in range(4) for v, w in itertools.combinations([x for x in range(4) if x != u], 2)
    ]
    names = {name: i for i, name in enumerate(sorted({x for pair in tetrahedron + triangles for x in pair}))}
    graph = graphs.Graph(12, [(names[a], names[b]) for a, b in tetrahedron + triangles])
    assert counting.count_independent_sets(graph) == signed


# Theorem C: windows.


@pytest.mark.parametrize("seed", range(6))
def test_windows_hold_whatever_lies_outside(seed):
    # The ratio Z(G) / Z(G - C) of a finite piece of the lattice, some of its far vertices struck out at random.
    cell = lattices.UnitCell.named("triangular")
    parts = (cell.basis_vectors, cell.site_offsets, cell.bonds)
    bounds = _core.window_bounds(parts, ((1, 0), (0, 1)), 1.0, width=4, states=1 << 20)
    assert bounds["window"] < 40
    steps = [step for _, _, step in cell.bonds]
    rng = np.random.default_rng(seed)
    points = [(i, j) for i in range(10) for j in range(-9, 10) if (i, j) >= (0, 0)]
    kept = [p for p in points if max(abs(p[0]), abs(p[1])) <= 6 or rng.random() < 0.6]
    place = {point: i for i, point in enumerate(kept)}
    ends = [((i, j), (i + di, j + dj)) for i, j in kept for di, dj in steps]
    edges = [(place[p], place[q]) for p, q in ends if q in place]
    whole = counting.count_independent_sets(graphs.Graph(len(kept), edges))
    others = [(u - 1, v - 1) for u, v in edges if 0 not in (u, v)]
    ratio = Fraction(whole, counting.count_independent_sets(graphs.Graph(len(kept) - 1, others)))
    assert place[0, 0] == 0
    assert bounds["lower"] <= ratio <= bounds["upper"]


@pytest.mark.parametrize("lattice", ["square", "king", "triangular", "honeycomb", "kagome", "4-8-8"])
def test_windows_agree_with_the_other_routes_and_narrow(known, lattice):
    constant = Decimal(known("entropy")[lattice])
    bounds = [entropy_bounds(lattice, method="window", width=width) for width in (4, 8, 11)]
    assert all(found.theorem == "C" and constant in found.growth_constant for found in bounds)
    assert bounds[0].width > bounds[1].width > bounds[2].width


def test_windows_serve_cells_without_a_name_and_any_activity():
    cell = lattices.UnitCell([(1, 0), (0, 1)], [(0.0, 0.0)], [(0, 0, (1, 0)), (0, 0, (0, 1))])
    for activity in (Fraction(1, 3), 1, 2):
        own = entropy_bounds(cell, activity=activity, width=10)
        square = entropy_bounds("square", activity=activity, digits=10)
        assert own.theorem == "C"
        assert own.lower <= square.lower < square.upper <= own.upper
    # A path along one axis: the golden ratio, and copies of a single bond: three sets on two vertices.
    path = lattices.UnitCell([(1, 0), (0, 1)], [(0.0, 0.0)], [(0, 0, (1, 0))])
    assert str(entropy_bounds(path, digits=12).growth_constant.certified)[:13] == "1.61803398874"
    bond = lattices.UnitCell([(1, 0), (0, 1)], [(0.0, 0.0), (0.4, 0.0)], [(0, 1, (0, 0))])
    assert Decimal(3).sqrt() in entropy_bounds(bond, digits=12).growth_constant


def test_windows_do_not_depend_on_the_drawing():
    # The square lattice, drawn askew, and with other names of its cells: once refused after 3.2 GB, once of width 1.
    drawings = [
        ([(1, 0), (0, 1)], [(0, 0, (1, 0)), (0, 0, (0, 1))]),
        ([(1, 0), (5, 0.2)], [(0, 0, (1, 0)), (0, 0, (0, 1))]),
        ([(1, 0), (0, 1)], [(0, 0, (1, 0)), (0, 0, (5, 1))]),
        ([(1, 0), (100, 1e-3)], [(0, 0, (2, 1)), (0, 0, (5, 3))]),
    ]
    upright, *others = (
        entropy_bounds(lattices.UnitCell(basis, [(0, 0)], bonds), width=14) for basis, bonds in drawings
    )
    for bounds in others:
        assert bounds.growth_constant.width < 2 * upright.growth_constant.width
        assert bounds.evidence["states"] < 4 * upright.evidence["states"]
        assert bounds.lower <= Decimal("0.40749510126068800") <= bounds.upper


def test_inserted_cliques_and_windows_meet():
    for lattice in ("3-12-12", "modified-bathroom", "3-6-24", "3-6-12-48"):
        strips, window = entropy_bounds(lattice, width=3), entropy_bounds(lattice, method="window", width=8)
        assert max(strips.lower, window.lower) <= min(strips.upper, window.upper)


# Printed digits.


@given(st.integers(1, 10**30), st.integers(1, 10**30), st.integers(1, 12), st.integers(1, 40))
def test_ends_are_rounded_outwards_to_the_last_place(numerator, denominator, degree, places):
    number, unit = Fraction(numerator, denominator), Fraction(1, 10**places)
    lower, upper = (Fraction(f(number, degree, places)) for f in (root_below, root_above))
    assert lower**degree <= number < (lower + unit) ** degree
    assert upper**degree >= number
    assert upper == 0 or (upper - unit) ** degree < number


@pytest.mark.parametrize(("lattice", "width"), [("triangular", 8), ("kagome", 6), ("3-12-12", 4)])
def test_every_precision_proves_the_same_constant(lattice, width):
    double, wide, exact = (
        entropy_bounds(lattice, width=width, precision=precision) for precision in ("double", "double-double", "exact")
    )
    assert max(b.lower for b in (double, wide, exact)) <= min(b.upper for b in (double, wide, exact))
    assert double.lower <= wide.lower
    assert wide.upper <= double.upper
    assert abs(wide.lower - exact.lower) < Decimal("1e-26")
    assert abs(wide.upper - exact.upper) < Decimal("1e-26")
