"""Spectra, energies, resistances and connectivity: dense solves, closed forms, the errata of the thesis, bad input."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh

from quincunx import lattices
from quincunx.counting import count_spanning_trees
from quincunx.errors import ConvergenceError
from quincunx.graphs import Graph, complete, cycle, lps_graph, path
from quincunx.lattices import Lattice, UnitCell, clique_insert
from quincunx.spectra import (
    _connectivity,
    algebraic_connectivity,
    average_resistance,
    bloch_hamiltonian,
    clique_spectrum,
    density_of_states,
    energy,
    energy_density,
    expander_map,
    kirchhoff_index,
    resistance_distance,
    spectrum,
)
from quincunx.spectra._bloch import laplacian_of

NAMES = ["square", "king", "triangular", "honeycomb", "kagome", "4-8-8", "martini", "3-12-12"]
K33 = Graph(6, [(i, 3 + j) for i in range(3) for j in range(3)])


def dense(graph, laplacian=False):
    adjacency = graph.graph.to_scipy().toarray() if isinstance(graph, Lattice) else graph.to_scipy().toarray()
    return np.linalg.eigvalsh(np.diag(adjacency.sum(axis=1)) - adjacency if laplacian else adjacency.astype(float))


@pytest.mark.parametrize("laplacian", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_have_the_eigenvalues_of_the_whole(name, laplacian):
    for extent, boundary in (((3, 4), "torus"), ((4, 3), "cylinder"), ((3, 3), "free"), ((1, 2), "torus")):
        lattice = Lattice(UnitCell.named(name), extent, boundary, multigraph=True)
        assert np.allclose(spectrum(lattice, laplacian=laplacian), dense(lattice, laplacian), atol=1e-12)
    first_closed = Lattice(UnitCell.named(name), (5, 3), pbc=(True, False))
    assert np.allclose(spectrum(first_closed), dense(first_closed), atol=1e-12)
    twisted = Lattice(UnitCell.named(name), (5, 4), "torus", twist=2)
    assert np.allclose(spectrum(twisted, laplacian=laplacian), dense(twisted, laplacian), atol=1e-12)


@pytest.mark.parametrize("graph", [complete(4), K33, complete(5), lattices.square(4, 4, "torus").graph, cycle(6)])
def test_clique_insertion_maps_spectrum_energy_resistance_and_gap(graph):
    n, r = graph.num_vertices, int(graph.degrees()[0])
    for k in (1, 2):
        inserted = clique_insert(graph, k)
        assert np.allclose(clique_spectrum(spectrum(graph), r, k), dense(inserted), atol=1e-9)
        gap = expander_map(algebraic_connectivity(graph), r, k)
        assert algebraic_connectivity(inserted) == pytest.approx(gap, abs=1e-10)
    # E(C(G)) = sum of sqrt(r^2 + 4 (x + 1)) + (r - 2) n: the thesis prints + n.
    formula = np.sqrt(r * r + 4 * (spectrum(graph).round(12) + 1)).sum()
    assert energy(clique_insert(graph)) == pytest.approx(formula + (r - 2) * n, rel=1e-9)
    assert (abs(energy(clique_insert(graph)) - formula - n) < 1e-6) == (r == 3)
    below = kirchhoff_index(graph, exact=True)
    expected = r * (r + 2) * below + Fraction(n * n * (r - 2) * (r + 1) + r * n, r + 2)
    assert kirchhoff_index(clique_insert(graph), exact=True) == expected


def test_the_energies_of_the_thesis_and_their_errata():
    torus = lattices.truncated_hexagonal(3, 4, "torus")
    assert energy(torus) == pytest.approx(106.696436614676, abs=1e-10)  # printed 94.6964
    assert energy(lattices.truncated_hexagonal(4, 4, "torus")) == pytest.approx(142.298081776253, abs=1e-10)
    twice = Lattice(UnitCell.named("3-6-24"), (3, 4), "torus")
    assert energy(twice) == pytest.approx(322.019940263278, abs=1e-9)  # printed 250.9702
    assert energy(twice) == pytest.approx(abs(dense(twice)).sum(), abs=1e-9)
    assert energy(clique_insert(complete(5))) == pytest.approx(32, abs=1e-9)  # printed 27


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("3-12-12", 1.482490305996258760),
        ("3-6-24", 1.490833064618524495),
        ("honeycomb", 1.57459723755189366),
        ("square", 1.62113893827740434),
    ],
)
def test_energy_densities(name, value):
    found = energy_density(name)
    assert abs(found.value - value) <= found.error < 1e-9
    if name in ("3-12-12", "3-6-24"):
        assert found.error < 1e-14


def test_the_error_of_an_energy_density_holds_where_bands_are_zero_along_a_curve():
    # Means over y of |a + b cos y| in closed form, integrated over x.
    bonds = [(0, 0, (1, 0)), (0, 0, (3, 0)), (0, 0, (4, 0)), (0, 0, (0, 1))]
    for found, right in (
        (energy_density("triangular"), 2.0650237636039),
        (energy_density(UnitCell([(1, 0), (0, 1)], [(0, 0)], bonds)), 2.2753589202094),
    ):
        assert abs(found.value - right) <= found.error < 1e-5


@pytest.mark.parametrize(
    ("name", "size"), [("3-12-12", 40), ("3-6-24", 24), ("3-6-12-48", 12), ("modified-bathroom", 48)]
)
def test_energies_of_large_tori_have_their_density(name, size):
    # Tori of these sizes sample the analytic integrand at its own wave vectors.
    lattice = lattices.named(name, size, size + 1, "torus")
    found = energy_density(name)
    assert found.error < 1e-14
    assert energy(lattice) / lattice.num_vertices == pytest.approx(found.value, abs=1e-12)
    cell = UnitCell.named(name)
    estimated = energy_density(UnitCell(cell.basis_vectors, cell.site_offsets, cell.bonds))
    assert abs(estimated.value - found.value) <= estimated.error + found.error


def test_exact_kirchhoff_indices_of_thousands_of_vertices():
    n = 2000
    assert kirchhoff_index(path(n), exact=True) == Fraction(n**3 - n, 6)
    assert kirchhoff_index(cycle(n), exact=True) == Fraction(n**3 - n, 12)
    lattice = lattices.square(36, 36, "torus")
    exact = kirchhoff_index(lattice, exact=True)
    assert float(exact) == pytest.approx(kirchhoff_index(lattice), rel=1e-12)
    below, n = kirchhoff_index(lattices.honeycomb(16, 16, "torus"), exact=True), 512
    inserted = kirchhoff_index(lattices.truncated_hexagonal(16, 16, "torus"), exact=True)
    assert inserted == 15 * below + Fraction(4 * n * n + 3 * n, 5)


def test_an_exact_kirchhoff_index_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("quincunx._check.available_memory", lambda: 10**5)
    with pytest.raises(MemoryError, match="Laplacian"):
        kirchhoff_index(lattices.square(40, 40), exact=True)


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_resistances_agree_with_each_other(data):
    n = data.draw(st.integers(2, 8))
    extra = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = [(v, data.draw(st.integers(0, v - 1))) for v in range(1, n)] + data.draw(st.lists(extra, max_size=10))
    graph = Graph(n, edges)
    pairs = [(u, v) for u in range(n) for v in range(u)]
    exact = [resistance_distance(graph, u, v, exact=True) for u, v in pairs]
    assert kirchhoff_index(graph, exact=True) == sum(exact)
    assert average_resistance(graph, exact=True) == sum(exact) / len(exact)
    assert kirchhoff_index(graph) == pytest.approx(float(sum(exact)), rel=1e-9)
    for (u, v), value in zip(pairs, exact, strict=True):
        assert resistance_distance(graph, u, v) == pytest.approx(float(value), rel=1e-9)
    # Foster: the resistances of the edges add up to n - 1.
    assert sum(resistance_distance(graph, u, v, exact=True) for u, v in edges if u != v) == n - 1


@pytest.mark.parametrize("far", [499, 2**20 - 1])
@pytest.mark.parametrize("way", ["twist", "bond on a torus", "bond on a cylinder"])
def test_circulant_graphs_lose_no_digits(way, far):
    """Vertices on a ring joined to the next and to one that is far away: a multiple of an angle by its turns."""
    n = 1000
    if way == "twist":
        ring = lattices.square(n, 1, "torus", twist=far, multigraph=True)
    else:
        cell = UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0)), (0, 0, (far, 0))])
        ring = Lattice(cell, (n, 1), pbc=(True, "torus" in way), multigraph=True)
    a = np.arange(n)
    exact = np.sort(2 * np.cos(2 * np.pi * a / n) + 2 * np.cos(2 * np.pi * (far * a % n) / n))
    assert abs(spectrum(ring) - exact).max() < 1e-14


def test_the_grid_of_an_energy_density_tells_far_bonds_from_none():
    """A chain of every 48th cell, whose bonds were whole turns from point to point of the grid."""
    value, error = energy_density(UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (48, 0))]))
    assert abs(value - 4 / np.pi) <= error < 1e-2


def test_paths_of_odd_length_have_an_eigenvalue_of_zero():
    assert energy(lattices.square(1, 1)) == 0
    assert spectrum(lattices.square(1, 3))[1] == 0


def test_trees_are_the_product_of_the_eigenvalues():
    graph = lattices.kagome(3, 3)
    product = np.prod(spectrum(graph, laplacian=True)[1:]) / graph.num_vertices
    assert product == pytest.approx(count_spanning_trees(graph), rel=1e-9)


def test_connectivity_of_large_and_broken_graphs():
    assert algebraic_connectivity(path(2000)) == pytest.approx(2 - 2 * math.cos(math.pi / 2000), rel=1e-6)
    assert algebraic_connectivity((6, [(0, 1), (1, 2), (3, 4), (4, 5)])) == 0
    assert algebraic_connectivity((1, [])) == 0
    graph = lps_graph(5, 7)
    assert algebraic_connectivity(graph) == pytest.approx(2, abs=1e-9)
    assert algebraic_connectivity(clique_insert(graph)) == pytest.approx(expander_map(2.0, 6), abs=1e-9)


def test_densities_have_integral_one():
    lattice = lattices.kagome(10, 10, "torus")
    edges, density = density_of_states(lattice, 20)
    assert (density * np.diff(edges)).sum() == pytest.approx(1)
    points, smooth = density_of_states(lattice, 2000, broadening=0.05, laplacian=True)
    assert np.trapezoid(smooth, points) == pytest.approx(1, abs=1e-6)
    assert density_of_states(path(4), 3, broadening=1e-300)[1][1] == 0  # without a warning


def test_bad_input_is_refused_with_the_argument_named():
    broken = (4, [(0, 1), (2, 3)])
    for function in (kirchhoff_index, average_resistance):
        with pytest.raises(ValueError, match="connected"):
            function(broken)
        with pytest.raises(ValueError, match="connected"):
            function(broken, exact=True)
    with pytest.raises(ValueError, match="connected"):
        resistance_distance(broken, 0, 3)
    with pytest.raises(ValueError, match="`v` must be between 0 and 2, got 7"):
        resistance_distance(path(3), 0, 7)
    with pytest.raises(ValueError, match="`weight` must leave a resistance within the range of a double"):
        resistance_distance(path(3), 0, 2, weight=["1e4000", 1])
    with pytest.raises(ValueError, match="graph"):
        algebraic_connectivity((0, []))
    for eigenvalues, degree in (([4.0], 3), ([1.0], 3), ([[1.0]], 3), ([1.0, 1.0], 1), ([float("nan")], 4)):
        with pytest.raises(ValueError, match=r"eigenvalues|degree"):
            clique_spectrum(eigenvalues, degree)
    with pytest.raises(ValueError, match="k"):
        clique_spectrum([1.0, -1.0], 3, -1)
    with pytest.raises(ValueError, match="x"):
        expander_map(7.0, 3)
    with pytest.raises(TypeError, match="unit_cell"):
        bloch_hamiltonian(path(3), (0, 0))
    with pytest.raises(ValueError, match="k"):
        bloch_hamiltonian(UnitCell.named("square"), (0, 0, 0))
    with pytest.raises(TypeError, match="lattice"):
        energy_density(path(3))
    with pytest.raises(ValueError, match="`lattice` must have bonds to cells at most 48 away, got one to 49"):
        energy_density(UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (0, 1)), (0, 0, (0, 49))]))
    for weight in ("1e4000", "1e310"):
        with pytest.raises(ValueError, match="`weight` must leave a resistance within the range of a double"):
            kirchhoff_index(path(3), weight=[weight, 1])
    with pytest.raises(ValueError, match="`weight` must leave an index within the range of a double, got inf"):
        kirchhoff_index(path(3), weight=[1e308, 1])
    for function, flag in ((spectrum, "laplacian"), (density_of_states, "laplacian"), (kirchhoff_index, "exact")):
        with pytest.raises(TypeError, match=f"`{flag}` must be True or False, got 'no'"):
            function(path(3), **{flag: "no"})
    with pytest.raises(ValueError, match="bins"):
        density_of_states(path(3), 0)
    for bins, weight in ((10**6, 1e-320), (100, 1e-310)):
        with pytest.raises(ValueError, match=r"`bins` must be few enough for eigenvalues from -1e-3[12]0 to 1e-3[12]0"):
            density_of_states((2, [(0, 1)]), bins, weight=[weight])
    for broadening in (-1.0, 1e308, 1e-320):
        with pytest.raises(ValueError, match="broadening"):
            density_of_states(path(3), broadening=broadening)


def test_connectivity_of_large_graphs_by_either_method():
    grid = [(v, v + 1) for v in range(3600) if v % 60 < 59] + [(v, v + 60) for v in range(3540)]
    cube = [(v, v ^ 1 << i) for v in range(2048) for i in range(11) if v < v ^ 1 << i]
    cases = [
        (Graph(2048, cube), 2.0, 11, True),
        (clique_insert(lps_graph(5, 13)), expander_map(algebraic_connectivity(lps_graph(5, 13)), 6), 6, True),
        (Graph(2000, [(u, 1000 + v) for u in range(1000) for v in range(1000)]), 1000.0, 1000, True),
        (Graph(3600, grid), 4 * math.sin(math.pi / 120) ** 2, 4, False),
        (path(5000), 4 * math.sin(math.pi / 10000) ** 2, 2, False),
        (path(60000), 4 * math.sin(math.pi / 120000) ** 2, 2, False),
        (cycle(30000), 4 * math.sin(math.pi / 30000) ** 2, 2, False),
    ]
    for graph, known, degree, is_lanczos in cases:
        assert bool(_connectivity._restarts(laplacian_of(graph, None).tocsr())) == is_lanczos
        assert abs(algebraic_connectivity(graph) - known) < 1e-12 * degree
    assert algebraic_connectivity(path(60000)) == pytest.approx(4 * math.sin(math.pi / 120000) ** 2, rel=1e-6)


def test_connectivities_of_tiny_weights_are_numbers():
    right = 4 * math.sin(math.pi / 4000) ** 2
    for tiny in (1e-307, 1e-310):
        found = algebraic_connectivity(path(2000), weight=[tiny] * 1999)
        assert found / tiny == pytest.approx(right, rel=1e-6)
    assert algebraic_connectivity(path(2000), weight=["1e-400", *[1] * 1998]) == 0.0


def test_a_connectivity_that_no_restart_finds_is_an_error_in_words():
    weights = 10.0 ** np.random.default_rng(6).uniform(-6, 6, 1999)
    with pytest.raises(ConvergenceError, match="the second eigenvalue was not found in 1000 restarts"):
        algebraic_connectivity(path(2000), weight=weights.tolist())


def test_where_lanczos_ends_without_an_answer_the_factors_have_one(monkeypatch):
    # Two expanders on a long path: wide levels, and a gap that is smaller than theirs by five orders.
    half = lps_graph(5, 13)
    n, edges = half.num_vertices, half.edges.tolist()
    joined = edges + [(u + n, v + n) for u, v in edges]
    joined += itertools.pairwise([n - 1, *range(2 * n, 2 * n + 300), n])
    laplacian = laplacian_of(Graph(2 * n + 300, joined), None).tocsr()
    monkeypatch.setattr(_connectivity, "_restarts", lambda _: 3)
    found = algebraic_connectivity(Graph(2 * n + 300, joined))
    assert 0 < found < 1e-5
    second = eigsh(laplacian.astype(float), 2, sigma=-1e-6, return_eigenvectors=False).max()
    assert abs(second - found) < 1e-11


@pytest.mark.parametrize("decades", [0, 8, 12, 16, 40])
def test_lattices_with_resistances_of_any_sizes_have_the_index_of_their_graphs(decades):
    piece, weight = lattices.square(1, 4), [1, 10**decades, 1]
    right = 6 + 4 * 10**decades  # (i + 1)(n - 1 - i) of each edge of a path
    assert kirchhoff_index(piece, weight=weight) == pytest.approx(right, rel=1e-7)
    assert average_resistance(piece, weight=weight) == pytest.approx(right / 6, rel=1e-7)


def test_roundings_that_cancel_in_a_current_are_not_lost_in_a_resistance():
    # Stiff edges between links, whose sums of conductances are rounded up and down: what leaks adds up to 0.
    unit = 2.0**-22
    links = [1 + unit * step for step in (6, 2, -2, 4)]
    weight = [links[0], 2.0**33, links[1], 2.0**33, links[2], 2.0**33, links[3]]
    right = float(sum(1 / Fraction(conductance) for conductance in weight))
    assert resistance_distance(path(8), 0, 7, weight=weight, invert_weight=False) == pytest.approx(right, rel=1e-10)


def test_conductances_whose_products_no_double_holds_are_not_lost():
    ring = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])  # 3 to 0 by way of 1 and 2, or hardly at all
    weight = [1e300, 1e-200, 1e200, 1e-300]
    assert resistance_distance(ring, 3, 0, weight=weight, invert_weight=False) == pytest.approx(1e200, rel=1e-10)
    chained = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    weight = [1e300, 1e-200, 1e-300, 1e-100, 1e300]
    assert kirchhoff_index(chained, weight=weight, invert_weight=False) == pytest.approx(3e100, rel=1e-7)


def test_sums_of_weights_beyond_a_double_are_refused():
    for function in (spectrum, energy, algebraic_connectivity):
        with pytest.raises(ValueError, match="`weight` must leave sums within the range of a double, got 1e\\+308"):
            function(path(4), weight=[1e308] * 3)
    with pytest.raises(ValueError, match="`weight` must leave an index within the range of a double, got inf"):
        kirchhoff_index(path(4), weight=[1e308] * 3)
    with pytest.raises(ValueError, match="`weight` must leave a resistance within the range of a double"):
        resistance_distance(path(4), 0, 3, weight=[1e308] * 3)
