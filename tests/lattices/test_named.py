"""The lattices that have a name: degrees, isomorphisms, names, rules for small sizes."""

import re

import networkx
import numpy as np
import pytest
from lattice_oracle import count

from quincunx import graphs, lattices
from quincunx.graphs import Graph
from quincunx.lattices import NAMES, named
from quincunx.lattices._registry import LATTICES

# Function, sites per cell, degree, smallest simple torus extents, all from the table of the lattices.
FAMILIES = {
    "square": (lattices.square, 1, 4),
    "king": (lattices.king, 1, 8),
    "triangular": (lattices.triangular, 1, 6),
    "honeycomb": (lattices.honeycomb, 2, 3),
    "kagome": (lattices.kagome, 3, 4),
    "triangular-kagome": (lattices.triangular_kagome, 9, 4),
    "martini": (lattices.martini, 4, 3),
    "4-8-8": (lattices.truncated_square, 4, 3),
    "3-12-12": (lattices.truncated_hexagonal, 6, 3),
}
BOUNDARIES = ["free", "cylinder", "torus"]


def isomorphic(first, second):
    first, second = (g.to_networkx() for g in (first, second))
    return networkx.vf2pp_is_isomorphic(first, second)


def line_graph(lattice):
    return Graph.from_networkx(networkx.line_graph(lattice.to_networkx()))


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("extent", [(3, 3), (3, 5), (4, 4)])
def test_tori_are_regular_of_the_degree_of_the_table(kind, extent):
    family, sites, degree = FAMILIES[kind]
    lattice = family(*extent, "torus")
    vertices = sites * extent[0] * extent[1]
    assert (lattice.num_vertices, lattice.num_edges) == (vertices, vertices * degree // 2)
    assert set(lattice.graph.degrees().tolist()) == {degree}
    assert networkx.is_connected(lattice.to_networkx())
    assert (lattice.kind, lattice.extent, lattice.boundary) == (kind, extent, "torus")


def test_lattices_made_by_clique_insertion_have_the_degrees_of_the_table():
    for name, sites, degree in [("3-6-24", 18, 3), ("3-6-12-48", 54, 3), ("modified-bathroom", 4, 4)]:
        lattice = named(name, 3, 3, "torus")
        assert lattice.num_vertices == 9 * sites
        assert set(lattice.graph.degrees().tolist()) == {degree}


def test_kagome_is_the_line_graph_of_the_honeycomb():
    assert isomorphic(lattices.kagome(3, 3, "torus"), line_graph(lattices.honeycomb(3, 3, "torus")))


def test_the_3_12_12_lattice_is_the_clique_inserted_honeycomb():
    honeycomb = lattices.honeycomb(3, 3, "torus")
    assert isomorphic(lattices.truncated_hexagonal(3, 3, "torus"), lattices.clique_insert(honeycomb))
    subdivided = networkx.Graph((end, edge) for edge in honeycomb.to_networkx().edges for end in edge)
    line = Graph.from_networkx(networkx.convert_node_labels_to_integers(networkx.line_graph(subdivided)))
    assert isomorphic(lattices.truncated_hexagonal(3, 3, "torus"), line)


def test_the_3_6_24_lattice_is_the_clique_inserted_3_12_12_lattice():
    inserted = lattices.clique_insert(lattices.truncated_hexagonal(2, 3, "torus"))
    assert isomorphic(named("3-6-24", 2, 3, "torus"), inserted)


def test_triangular_kagome_is_the_line_graph_of_the_3_12_12_lattice():
    base = lattices.truncated_hexagonal(3, 3, "torus")
    assert isomorphic(lattices.triangular_kagome(3, 3, "torus"), line_graph(base))


def test_the_clique_inserted_square_lattice_is_4_8_8_with_crossed_small_squares():
    crossed = lattices.truncated_square(3, 3, "torus").to_networkx()
    crossed.add_edges_from((4 * cell + site, 4 * cell + site + 2) for cell in range(9) for site in (0, 1))
    assert isomorphic(lattices.clique_insert(lattices.square(3, 3, "torus")), Graph.from_networkx(crossed))
    assert isomorphic(named("modified-bathroom", 3, 3, "torus"), Graph.from_networkx(crossed))


def test_a_quarter_of_the_martini_lattice_lies_in_no_triangle():
    triangles = networkx.triangles(lattices.martini(3, 3, "torus").to_networkx())
    assert sorted(triangles.values()) == [0] * 9 + [1] * 27


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("twist", [0, 1])
@pytest.mark.parametrize("kind", ["square", "honeycomb", "martini"])
def test_cells_and_graphs_have_one_line_graph_subdivision_and_insertion_on_a_torus(kind, twist, k):
    lattice = named(kind, 3, 3, "torus", twist=twist)
    for of_cell, of_graph in (
        (lattice.line_graph(k), graphs.line_graph(lattice, k)),
        (lattice.subdivide(k), graphs.subdivide(lattice, k)),
        (lattice.clique_insert(k), lattices.clique_insert(lattice, k)),
    ):
        assert (of_cell.num_vertices, of_cell.num_edges) == (of_graph.num_vertices, of_graph.num_edges)
        assert of_cell.twist == twist
        if of_cell.num_vertices <= 60:
            assert isomorphic(of_cell, of_graph)
        assert sorted(of_cell.graph.degrees().tolist()) == sorted(of_graph.degrees().tolist())


def test_named_lattices_are_line_graphs_and_insertions_of_each_other_by_their_cells():
    honeycomb = lattices.honeycomb(3, 3, "torus")
    assert isomorphic(honeycomb.line_graph(), lattices.kagome(3, 3, "torus"))
    assert isomorphic(honeycomb.subdivide().line_graph(), lattices.truncated_hexagonal(3, 3, "torus"))
    assert isomorphic(honeycomb.clique_insert().line_graph(), lattices.triangular_kagome(3, 3, "torus"))


def test_an_open_axis_may_be_cut_after_or_before():
    honeycomb, square = lattices.honeycomb(3, 3), lattices.square(3, 4)
    assert [honeycomb.line_graph().num_vertices, graphs.line_graph(honeycomb).num_vertices] == [27, 21]
    assert [square.subdivide().num_vertices, graphs.subdivide(square).num_vertices] == [36, 29]
    # Cut after: the cell's own lattice on the box. Its middles keep the half bond inside.
    assert sorted(square.subdivide().graph.degrees().tolist()).count(1) == 3 + 4
    for lattice, times in ((honeycomb, 2), (lattices.square(3, 3, "cylinder"), 2)):
        assert lattice.line_graph(times).unit_cell == lattice.unit_cell.line_graph().line_graph()
        assert lattice.subdivide(times).unit_cell == lattice.unit_cell.subdivide().subdivide()
        assert lattice.subdivide(times).pbc == lattice.pbc


def test_middles_lie_between_the_ends():
    for lattice in (lattices.kagome(3, 4, "torus"), lattices.truncated_hexagonal(2, 3)):
        subdivided = lattice.subdivide()
        lengths = np.linalg.norm(subdivided.displacements, axis=1)
        assert np.allclose(lengths, lengths[0])
        joined = np.linalg.norm(lattice.line_graph().displacements, axis=1)
        assert joined.max() <= 2 * lengths[0] + 1e-12


def test_line_graphs_and_subdivisions_of_lattices_have_their_limits():
    square = lattices.square(3, 3, "torus")
    for name in ("line_graph", "subdivide"):
        derive = getattr(square, name)
        with pytest.raises(ValueError, match="`max_vertices` must be at least"):
            derive(2, max_vertices=10)
        with pytest.raises(ValueError, match="`k` must be between 0 and"):
            derive(-1)
        with pytest.raises(TypeError, match="`k` must be a whole number"):
            derive(0.5)
        with pytest.raises(MemoryError, match="of the cell"):
            derive(30)
        with pytest.raises(ValueError, match=f"`{name}` needs whole unit cells, got .* use graphs.{name}"):
            getattr(lattices.aztec_diamond(2), name)()
        star = graphs.Graph(10**5 + 1, np.stack([np.zeros(10**5, dtype=np.int64), np.arange(1, 10**5 + 1)], axis=1))
        with pytest.raises(MemoryError, match=r"^the .* needs"):
            getattr(graphs, name)(star, 30)
        with pytest.raises(ValueError, match="`k`"):
            getattr(graphs, name)(square, -1)
    with pytest.raises(ValueError, match=r"parallel|loop"):
        lattices.square(1, 4, "torus", multigraph=True).line_graph()
    assert lattices.square(1, 4, "torus", multigraph=True).line_graph(multigraph=True).num_vertices == 8
    with pytest.raises(ValueError, match="site"):
        lattices.UnitCell([(1, 0), (0, 1)], [(0, 0)], []).line_graph()


def test_both_diagonals_make_the_same_triangular_lattice():
    for boundary in BOUNDARIES:
        ours = lattices.triangular(3, 4, boundary)
        squares = lattices.square(3, 4, boundary).edges.tolist()
        other = lattices.king(3, 4, boundary)
        forward = [
            edge
            for edge, step in zip(other.edges.tolist(), other.displacements.tolist(), strict=True)
            if step == [1, 1]
        ]
        mirrored = Graph(12, squares + forward)
        assert networkx.is_isomorphic(ours.to_networkx(), mirrored.to_networkx())


@pytest.mark.parametrize(
    ("lattice", "sets"),
    [
        # OEIS A006506 (square), A063443 (king), A027683 (square torus, with loops and double edges as there).
        *((lattices.square(n, n), sets) for n, sets in enumerate([2, 7, 63, 1234], 1)),
        *((lattices.king(n, n), sets) for n, sets in enumerate([2, 5, 35, 314], 1)),
        *((lattices.square(n, n, "torus", multigraph=True), sets) for n, sets in enumerate([1, 7, 34, 743], 1)),
        (lattices.square(2, 5, "torus", multigraph=True), 81),
        # OEIS A027740 (triangular).
        *((lattices.triangular(n, n), sets) for n, sets in enumerate([2, 6, 42, 524], 1)),
    ],
)
def test_independent_sets_are_as_many_as_published(lattice, sets):
    assert count(lattice) == sets


def test_independent_sets_of_kagome_are_the_matchings_of_the_honeycomb():
    # 35368 matchings of the 3 x 3 honeycomb torus.
    assert count(lattices.kagome(3, 3, "torus")) == 35368


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("aztec-diamond", "generalized-aztec")])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_small_sizes_raise_exactly_where_a_loop_or_parallel_edges_arise(name, boundary):
    for m in range(1, 5):
        for n in range(1, 5):
            lattice = named(name, m, n, boundary, multigraph=True)
            edges = np.sort(lattice.edges, axis=1)
            if (edges[:, 0] != edges[:, 1]).all() and len(np.unique(edges, axis=0)) == len(edges):
                assert named(name, m, n, boundary) == lattice
            else:
                with pytest.raises(ValueError, match=r"`extent` must be so large that no .* unless `multigraph=True`"):
                    named(name, m, n, boundary)


def test_4_8_8_and_3_12_12_are_simple_at_every_size():
    for name in ("4-8-8", "3-12-12", "3-6-24", "martini"):
        assert named(name, 1, 1, "torus").num_vertices > 0


@pytest.mark.parametrize("family", [row[0] for row in FAMILIES.values()])
def test_sizes_are_positive_whole_numbers(family):
    assert family(np.int32(3), 4.0) == family(3, 4)
    for wrong in (3.5, True, "3", None, np.nan):
        with pytest.raises(TypeError, match="`m` must be a whole number"):
            family(wrong, 3)
        with pytest.raises(TypeError, match="`n` must be a whole number"):
            family(3, wrong)
    for wrong in (0, -1, 2**32):
        with pytest.raises(ValueError, match=rf"`n` must be between 1 and 4294967295, got {wrong}"):
            family(3, wrong)
    with pytest.raises(ValueError, match="`boundary` must be one of"):
        family(3, 3, "open")
    with pytest.raises(TypeError, match="`boundary`"):
        family(3, 3, ["free"])
    with pytest.raises(ValueError, match="`boundary` and `pbc`"):
        family(3, 3, "torus", pbc=(True, True))
    assert family(3, 4, pbc=(False, True)) == family(3, 4, "cylinder")


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_function_takes_a_twist(kind):
    family, _, degree = FAMILIES[kind]
    lattice = family(4, 3, "torus", twist=1)
    assert (
        lattice
        == lattices.Lattice(lattices.UnitCell.named(kind), (4, 3), "torus", twist=1)
        == named(kind, 4, 3, "torus", twist=-3)
    )
    assert lattice.twist == 1
    assert set(lattice.graph.degrees().tolist()) == {degree}
    with pytest.raises(ValueError, match="`twist` must be 0 unless both axes are closed, got 1"):
        family(4, 3, "cylinder", twist=1)
    with pytest.raises(TypeError, match="`twist` must be a whole number"):
        family(4, 3, "torus", twist=0.5)


def test_a_twist_makes_and_unmakes_parallel_edges():
    # Along the second axis (i, 2) = (i + 1, 0): the two bonds round it lead to different vertices.
    edges = np.sort(lattices.square(4, 2, "torus", twist=1).edges, axis=1)
    assert len(np.unique(edges, axis=0)) == len(edges) == 16
    with pytest.raises(ValueError, match="parallel"):
        lattices.square(4, 2, "torus")
    with pytest.raises(ValueError, match=r"parallel|loop"):
        lattices.square(4, 1, "torus", twist=1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Square", "square"),
        ("Moore", "king"),
        ("hexagonal", "honeycomb"),
        ("Honeycomb", "honeycomb"),
        ("3-6-3-6", "kagome"),
        ("3.6.3.6", "kagome"),
        ("Kagome", "kagome"),
        ("triangular kagome", "triangular-kagome"),
        ("triangular_kagome", "triangular-kagome"),
        ("4-8-8", "4-8-8"),
        ("4.8.8", "4-8-8"),
        ("bathroom", "4-8-8"),
        ("four_eight_eight", "4-8-8"),
        ("truncated_square", "4-8-8"),
        ("3-12-12", "3-12-12"),
        ("truncated_hexagonal", "3-12-12"),
        ("3-6-24", "3-6-24"),
        ("modified bathroom", "modified-bathroom"),
        ("generalized aztec", "generalized-aztec"),
    ],
)
def test_names_of_the_field_are_understood(name, kind):
    lattice = named(name, 3, 4)
    assert (lattice.kind, lattice.extent) == (kind, (3, 4))


def test_every_name_names_a_lattice_and_every_function_has_one():
    for name in NAMES:
        lattice = named(name, 3) if name == "aztec-diamond" else named(name, 3, 4)
        assert lattice.kind == name
    assert named("4-8-8", 3, 4, "torus") == lattices.four_eight_eight(3, 4, "torus")
    assert named("aztec diamond", 3) == lattices.aztec_diamond(3)
    assert named("king", 3, 4, pbc=(True, False)) == lattices.king(3, 4, pbc=(True, False))
    for kind, (family, _, _) in FAMILIES.items():
        assert kind == "4-8-8" or named(kind, 3, 4, "cylinder") == family(3, 4, "cylinder")


def test_the_table_of_names_is_the_registry():
    table = [re.findall("``([^`]+)``", line) for line in named.__doc__.splitlines() if line.startswith("    ``")]
    assert [first for first, *_ in table] == list(NAMES)
    for name, *others in table[: len(LATTICES)]:
        row = LATTICES[name]
        assert set(others) <= set(row.aliases)
        assert {lattices.UnitCell.named(word).kind for word in (name, *row.aliases)} == {name}


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"`name` must be one of square, king.*got 'hexagnal'.*mean 'hexagonal'\?"
    ) as caught:
        named("hexagnal", 3, 3)
    assert all(name in str(caught.value) for name in NAMES)
    with pytest.raises(ValueError, match=r"got ''$"):
        named("", 3, 3)
    with pytest.raises(TypeError, match="`name` must be a str, got int"):
        named(488, 3, 3)


def test_named_lattices_keep_their_own_arguments():
    with pytest.raises(TypeError, match="`n` must be given"):
        named("square", 3)
    with pytest.raises(TypeError, match="an Aztec diamond has one size"):
        named("aztec-diamond", 3, 3)
    for name in ("aztec-diamond", "generalized-aztec"):
        with pytest.raises(ValueError, match="`boundary` must be 'free' for the lattice"):
            named(name, 3, None if name == "aztec-diamond" else 3, "torus")
    with pytest.raises(ValueError, match="`twist` must be 0 unless both axes are closed"):
        named("4-8-8", 3, 3, twist=1)
    for name, n in (("aztec-diamond", None), ("generalized-aztec", 3)):
        with pytest.raises(ValueError, match="`twist` must be 0 for the lattice"):
            named(name, 3, n, twist=1)
    with pytest.raises(ValueError, match="`pbc` must be left out"):
        named("4-8-8", 3, 3, pbc=(True, True))
