"""Octagon sections, Aztec diamonds, triangulated grids."""

import itertools
import pickle
from fractions import Fraction

import networkx
import numpy as np
import pytest
from lattice_oracle import count

from quincunx import lattices
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph
from quincunx.lattices import Lattice, aztec_diamond, four_eight_eight, generalized_aztec, triangulated_grid

BOUNDARIES = ["free", "cylinder", "torus"]


def diamonds(m, n, boundary):
    """Build the 4-8-8 lattice from its definition: links between diamonds, then the sides between existing corners."""
    rows = m if boundary == "torus" else m + 1
    cols = n + 1 if boundary == "free" else n
    graph = networkx.Graph()
    for i in range(rows):
        for j in range(cols):
            if j + 1 < cols or boundary != "free":
                graph.add_edge((i, j, "E"), (i, (j + 1) % cols, "W"))
            if i + 1 < rows or boundary == "torus":
                graph.add_edge((i, j, "S"), ((i + 1) % rows, j, "N"))
    for i, j, corner in list(graph):
        following = (i, j, "NESW"["NESW".index(corner) - 3])
        if following in graph:
            graph.add_edge((i, j, corner), following)
    return graph


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (2, 3)])
def test_octagon_sections_are_those_of_the_definition(m, n, boundary):
    lattice = four_eight_eight(m, n, boundary)
    assert networkx.is_isomorphic(lattice.to_networkx(), diamonds(m, n, boundary))


@pytest.mark.parametrize("m", range(1, 6))
@pytest.mark.parametrize("n", range(1, 6))
def test_octagon_sections_have_the_numbers_of_vertices_and_edges_of_the_table(m, n):
    inner = 4 * (m - 1) * (n - 1) + 4 * (m - 1) + 4 * (n - 1) + 4
    table = {
        "free": (4 * m * n + 2 * m + 2 * n, m * (n + 1) + n * (m + 1) + inner),
        "cylinder": (4 * m * n + 2 * n, (2 * m + 1) * n + 4 * n + 4 * n * (m - 1)),
        "torus": (4 * m * n, 6 * m * n),
    }
    for boundary, (vertices, edges) in table.items():
        lattice = four_eight_eight(m, n, boundary)
        assert (lattice.num_vertices, lattice.num_edges) == (vertices, edges)
        assert len(lattice.positions) == vertices
        assert not lattice.to_networkx().is_multigraph()
        assert (lattice.kind, lattice.extent, lattice.boundary) == ("4-8-8", (m, n), boundary)


@pytest.mark.parametrize(
    ("boundary", "known"),
    [
        ("free", {(1, 1): 47, (1, 2): 779, (2, 1): 779, (1, 3): 12887, (2, 2): 74753}),
        ("cylinder", {(1, 1): 15, (1, 2): 275, (2, 1): 81, (2, 2): 9223, (2, 3): 872817, (3, 2): 308007}),
        ("torus", {(1, 1): 5, (1, 2): 29, (2, 1): 29, (1, 3): 155, (2, 2): 1127, (2, 3): 37235}),
    ],
)
def test_octagon_sections_have_the_published_numbers_of_independent_sets(boundary, known):
    for (m, n), sets in known.items():
        assert count(four_eight_eight(m, n, boundary)) == sets


def test_the_smallest_octagon_torus_is_the_complete_graph_with_four_vertices():
    assert networkx.is_isomorphic(four_eight_eight(1, 1, "torus").to_networkx(), networkx.complete_graph(4))


def test_on_a_torus_the_section_is_the_lattice_of_cells():
    section, cells = four_eight_eight(3, 4, "torus"), lattices.truncated_square(3, 4, "torus")
    assert section.edges.tolist() == cells.edges.tolist()
    assert section.unit_cell == cells.unit_cell
    assert section.clique_insert() == cells.clique_insert()
    assert four_eight_eight(3, 4).unit_cell is None


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_windings_and_displacements_of_octagons_are_consistent(boundary):
    lattice = four_eight_eight(2, 3, boundary)
    side = 1 + np.sqrt(2)
    rows, cols = 2 + (boundary != "torus"), 3 + (boundary == "free")
    ends = lattice.positions[lattice.edges[:, 1]] - lattice.positions[lattice.edges[:, 0]]
    np.testing.assert_allclose(lattice.displacements, ends + lattice.windings * [rows * side, cols * side], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(lattice.displacements, axis=1), 1, atol=1e-12)
    assert lattice.windings.any(axis=0).tolist() == list(lattice.pbc)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_aztec_diamonds_are_the_other_component_of_the_checkerboard(n):
    lattice = aztec_diamond(n)
    assert (lattice.num_vertices, lattice.num_edges) == (2 * n * (n + 1), 4 * n * n)
    product = networkx.tensor_product(networkx.path_graph(2 * n + 1), networkx.path_graph(2 * n + 1))
    odd = product.subgraph(point for point in product if sum(point) % 2)
    assert networkx.is_isomorphic(lattice.to_networkx(), odd)
    even = product.subgraph(point for point in product if sum(point) % 2 == 0)
    assert networkx.is_isomorphic(generalized_aztec(2 * n + 1, 2 * n + 1).to_networkx(), even)


def test_aztec_diamonds_have_the_published_numbers_of_independent_sets():
    assert [count(aztec_diamond(n)) for n in (1, 2, 3)] == [7, 257, 50128]
    assert [count(generalized_aztec(3, 2 * n - 1)) for n in range(1, 6)] == [4, 17, 73, 314, 1351]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 6), (4, 5), (5, 5), (2, 2)])
def test_generalized_aztec_diamonds_are_the_points_of_even_sum(a, b):
    points = [(i, j) for i in range(1, a + 1) for j in range(1, b + 1) if (i + j) % 2 == 0]
    expected = networkx.Graph()
    expected.add_nodes_from(points)
    pairs = itertools.combinations(points, 2)
    expected.add_edges_from((p, q) for p, q in pairs if abs(p[0] - q[0]) == abs(p[1] - q[1]) == 1)
    lattice = generalized_aztec(a, b)
    assert lattice.num_vertices == len(points)
    relabeled = Graph.from_networkx(expected).relabel(None)
    assert lattice.graph == relabeled
    np.testing.assert_array_equal(lattice.positions + 1, points)


def test_diagonals_are_where_they_are_asked_for():
    chosen = [[1, 0, 0], [0, 1, 1]]
    lattice = triangulated_grid(2, 3, diagonals=chosen)
    vertex = np.arange(12).reshape(3, 4)
    expected = lattices.square(3, 4).edges.tolist()
    for i, j in itertools.product(range(2), range(3)):
        first, second = (vertex[i, j], vertex[i + 1, j + 1]), (vertex[i + 1, j], vertex[i, j + 1])
        expected.append(first if chosen[i][j] else second)
    assert lattice.graph == Graph(12, expected)
    assert lattice.diagonals.tolist() == np.array(chosen, dtype=bool).tolist()
    assert not lattice.diagonals.flags.writeable
    assert lattice.num_vertices == 12
    assert np.isclose(np.linalg.norm(lattice.displacements, axis=1).max(), np.sqrt(2))


def test_certain_diagonals_make_triangular_lattices():
    assert triangulated_grid(2, 3, p=0).graph == lattices.triangular(3, 4).graph
    assert not triangulated_grid(2, 3, p=0).diagonals.any()
    assert triangulated_grid(2, 3, p=1).diagonals.all()
    assert count(triangulated_grid(3, 3, p=0)) == count(triangulated_grid(3, 3, p=1)) == 524


@pytest.mark.parametrize(
    ("m", "n", "polynomial"), [(1, 1, [6]), (1, 2, [13, 2]), (2, 2, [42, 8, 2]), (2, 3, [126, 34, 10, 2])]
)
def test_the_expected_number_of_independent_sets_is_the_known_polynomial(m, n, polynomial):
    for p in (Fraction(1, 2), Fraction(3, 10)):
        mean = Fraction(0)
        for bits in itertools.product((0, 1), repeat=m * n):
            weight = p ** sum(bits) * (1 - p) ** (m * n - sum(bits))
            mean += weight * count(triangulated_grid(m, n, diagonals=np.reshape(bits, (m, n))))
        u = p * (1 - p)
        assert mean == sum(coefficient * u**k for k, coefficient in enumerate(polynomial))


def test_masked_diagonals_are_refused():
    with pytest.raises(ValueError, match="`diagonals` must have no masked cells, got 1 of them"):
        triangulated_grid(1, 2, diagonals=np.ma.array([[0, 1]], mask=[[0, 1]]))


def test_drawing_diagonals_depends_on_the_seed_alone():
    first = triangulated_grid(20, 30, 0.5, rng=7)
    assert first == triangulated_grid(20, 30, 0.5, rng=7)
    assert first != triangulated_grid(20, 30, 0.5, rng=8)
    assert first == triangulated_grid(20, 30, 0.5, rng=np.random.default_rng(7))
    assert triangulated_grid(20, 30, 0.5, size=1, rng=7) == [first]
    assert triangulated_grid(2, 2, 0.5, size=0) == []
    with pytest.raises(TypeError, match="`size` must be left out"):
        triangulated_grid(2, 2, diagonals=[[0, 1], [1, 0]], size=2)
    with pytest.raises(ValueError, match="`size` must be"):
        triangulated_grid(2, 2, 0.5, size=-1)
    with pytest.raises(MemoryError, match="`size` of"):
        triangulated_grid(200, 200, 0.5, size=2**31)
    source = np.random.default_rng(7)
    assert triangulated_grid(20, 30, 0.5, rng=source) != triangulated_grid(20, 30, 0.5, rng=source)
    assert triangulated_grid(3, 3, 0.5).num_vertices == 16


@pytest.mark.statistical
def test_the_share_of_first_diagonals_is_p():
    # 10**6 cells: six standard deviations of the share are 0.0028; the false-alarm rate is 2e-9, one seed for ever.
    for p in (0.3, 0.9):
        share = triangulated_grid(1000, 1000, p, rng=1).diagonals.mean()
        assert abs(share - p) < 6 * np.sqrt(p * (1 - p)) / 1000


@pytest.mark.parametrize(
    "lattice",
    [
        four_eight_eight(2, 3, "cylinder"),
        four_eight_eight(2, 3, "torus"),
        aztec_diamond(3),
        generalized_aztec(3, 4),
        triangulated_grid(2, 3, p=0.5, rng=3),
    ],
)
def test_cut_lattices_are_lattices(lattice):
    assert isinstance(lattice, Lattice)
    restored = pickle.loads(pickle.dumps(lattice))
    assert restored == lattice
    assert hash(restored) == hash(lattice)
    assert restored.edges.tolist() == lattice.edges.tolist()
    assert type(lattice)._cut(*lattice.__reduce__()[1]) == lattice
    assert len({lattice, restored, lattices.square(2, 3)}) == 2
    with pytest.raises(TypeError, match="made by the function of its name"):
        type(lattice)()


def test_representations_say_what_is_counted():
    assert repr(four_eight_eight(2, 3)) == "<Lattice '4-8-8': 2 x 3 octagons, free, 34 vertices>"
    assert repr(aztec_diamond(3)) == "<Lattice 'aztec-diamond': order 3, free, 24 vertices>"
    assert repr(generalized_aztec(3, 4)) == "<Lattice 'generalized-aztec': 3 x 4 points, free, 6 vertices>"
    assert repr(triangulated_grid(1, 2, p=1)) == "<Lattice 'triangulated-grid': 1 x 2 cells, free, 6 vertices>"


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (four_eight_eight, "mn"),
        (generalized_aztec, "ab"),
        (lambda m, n: triangulated_grid(m, n, 0.5, rng=1), "mn"),
        (lambda m, n: (aztec_diamond(n), aztec_diamond(m))[0], "nn"),
    ],
)
def test_sizes_are_positive_whole_numbers(make, names):
    assert make(np.int64(2), 3.0) == make(2, 3)
    for wrong in (2.5, True, "2", None):
        with pytest.raises(TypeError, match=f"`{names[0]}` must be a whole number"):
            make(wrong, 2)
        with pytest.raises(TypeError, match=f"`{names[1]}` must be a whole number"):
            make(2, wrong)
    for wrong in (0, -3, 2**40):
        with pytest.raises(ValueError, match=f"`{names[0]}` must be between 1 and"):
            make(wrong, 2)


def test_octagons_have_three_boundaries():
    with pytest.raises(ValueError, match="`boundary` must be one of"):
        four_eight_eight(2, 2, "moebius")
    with pytest.raises(TypeError, match="`boundary`"):
        four_eight_eight(2, 2, None)


def test_diagonals_have_their_rules():
    for p in (-0.1, 1.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="`p` must be"):
            triangulated_grid(2, 2, p)
    with pytest.raises(TypeError, match="`p` must be a number"):
        triangulated_grid(2, 2, "half")
    for arguments in ({}, {"p": 0.5, "diagonals": [[1, 1], [1, 1]]}):
        with pytest.raises(TypeError, match="exactly one of `p` and `diagonals`"):
            triangulated_grid(2, 2, **arguments)
    with pytest.raises(ValueError, match=r"`diagonals` must have shape \(2, 3\), got \(3, 2\)"):
        triangulated_grid(2, 3, diagonals=np.ones((3, 2)))
    with pytest.raises(ValueError, match="`diagonals` must hold 0 and 1, got 2"):
        triangulated_grid(1, 2, diagonals=[[0, 2]])
    with pytest.raises(ValueError, match="`diagonals`"):
        triangulated_grid(1, 2, diagonals=[[0, 0.5]])
    with pytest.raises(TypeError, match="`diagonals`"):
        triangulated_grid(1, 2, diagonals=[["a", "b"]])
    for wrong in (True, "seed", 0.5):
        with pytest.raises(TypeError, match="`rng`"):
            triangulated_grid(2, 2, 0.5, rng=wrong)
    with pytest.raises(TooLargeError, match="the grid needs"):
        triangulated_grid(10**9, 10**9, 0.5)
    chosen = np.array([[True, False]])
    lattice = triangulated_grid(1, 2, diagonals=chosen)
    chosen[:] = False
    assert lattice.diagonals.tolist() == [[True, False]]
