"""Further neighbors and colors of bonds: which edges there are, and what is counted on them."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import networkx
import numpy as np
import pytest
from tests.counting.counting_oracle import branching
from tests.lattices.lattice_oracle import count

from quincunx import counting, entropy, lattices, spectra
from quincunx.errors import TooLargeError
from quincunx.lattices import Lattice, UnitCell

CHAIN = UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0))], ["J1"]).add_bonds(vectors=[(2, 0)], color="J2")
#: Numbers of sites in the shells around one: theta series of the two lattices, and those of their decorations.
SHELLS = {
    "square": [4, 4, 4, 8, 4, 4, 8, 8],
    "triangular": [6, 6, 6, 12, 6, 6, 12, 6],
    "honeycomb": [3, 6, 3, 6, 6, 6, 6],
    "kagome": [4, 4, 6],
}


def sides(lattice):
    """The edges, either way they are written."""
    return sorted(map(sorted, lattice.edges.tolist()))


def ring(n):
    """The chain with bonds to the next site and the one after it, closed."""
    return Lattice(CHAIN, (n, 1), pbc=(True, False))


@pytest.mark.parametrize("kind", SHELLS)
def test_shells_have_as_many_sites_as_the_lattice_is_known_to_have(kind):
    named = UnitCell.named(kind)
    for shell, number in enumerate(SHELLS[kind], 1):
        bare = UnitCell(named.basis_vectors, named.site_offsets, [])
        assert bare.add_bonds(shell=shell).degrees() == [number] * named.num_sites


@pytest.mark.parametrize("kind", ["square", "honeycomb", "kagome", "4-8-8", "martini"])
def test_shells_of_a_free_lattice_are_its_pairs_at_each_distance(kind):
    named = UnitCell.named(kind)
    cell = UnitCell(named.basis_vectors, named.site_offsets, []).add_bonds(shell=range(1, 5))
    lattice = Lattice(cell, (3, 4))
    places = lattice.positions
    distance = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    lengths = np.unique(distance.round(9))[1:5]
    for color, length in enumerate(lengths):
        pairs = np.argwhere(np.triu(np.isclose(distance, length)))
        assert sorted(map(sorted, lattice.edges[lattice.edge_colors == color].tolist())) == pairs.tolist()


@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_the_square_lattice_with_diagonals_is_the_kings_and_with_half_of_them_the_triangular_one(boundary):
    square = lattices.square(4, 5, boundary)
    king, triangular = square.add_bonds(shell=2), square.add_bonds(vectors=[(1, -1)])
    assert sides(king) == sides(lattices.king(4, 5, boundary))
    assert sides(triangular) == sides(lattices.triangular(4, 5, boundary))
    for ours, theirs in ((king, lattices.king), (triangular, lattices.triangular)):
        named = theirs(4, 5, boundary)
        assert counting.count_independent_sets(ours) == counting.count_independent_sets(named) == count(ours)
        assert counting.count_spanning_trees(ours) == counting.count_spanning_trees(named)
        assert counting.count_perfect_matchings(ours) == counting.count_perfect_matchings(named)
        assert np.allclose(spectra.spectrum(ours), spectra.spectrum(named))


def test_next_nearest_sites_of_a_honeycomb_are_two_triangular_lattices():
    lattice = lattices.honeycomb(4, 4, "torus").add_bonds(shell=2)
    further = lattice.edges[lattice.edge_colors == 1]
    each = counting.count_independent_sets(lattices.triangular(4, 4, "torus"))
    assert counting.count_independent_sets((32, further)) == each**2


def test_chains_with_next_nearest_neighbors_have_their_known_numbers():
    cows = [1, 1, 1]
    while len(cows) < 40:
        cows.append(cows[-1] + cows[-3])  # Narayana's
    for n in range(1, 30):
        assert counting.count_independent_sets(Lattice(CHAIN, (n, 1))) == cows[n + 2]
    for n in range(5, 20):
        fibonacci = round(((1 + math.sqrt(5)) / 2) ** n / math.sqrt(5))
        # Kleitman and Golden (1975): n F(n)^2 spanning trees of the square of a cycle.
        assert counting.count_spanning_trees(ring(n)) == n * fibonacci**2
        assert counting.count_independent_sets(ring(n)) == branching(n, ring(n).edges.tolist())


@pytest.mark.parametrize("weight", [{"J1": 2, "J2": 3}, {"J1": Fraction(1, 2), "J2": 5}, {"J1": 1, "J2": 0}])
@pytest.mark.parametrize("lattice", [ring(7), Lattice(CHAIN, (6, 1)), Lattice(CHAIN, (5, 3))])
def test_trees_by_color_are_the_determinant_of_the_weighted_laplacian(lattice, weight):
    laplacian = np.zeros((lattice.num_vertices,) * 2)
    for (u, v), color in zip(lattice.edges.tolist(), lattice.edge_colors.tolist(), strict=True):
        laplacian[[u, v], [u, v]] += float(weight[color])
        laplacian[[u, v], [v, u]] -= float(weight[color])
    trees = counting.count_spanning_trees(lattice, weight=weight)
    assert math.isclose(trees, np.linalg.det(laplacian[1:, 1:]), rel_tol=1e-9, abs_tol=1e-9)
    assert trees == counting.count_spanning_trees(lattice, weight=[weight[color] for color in lattice.edge_colors])


@pytest.mark.parametrize("boundary", ["free", "cylinder"])
def test_dimers_by_color_are_the_sum_over_all_of_them(boundary):
    named = UnitCell.named("square")
    cell = UnitCell(named.basis_vectors, named.site_offsets, named.bonds, ["x", "y"]).add_bonds(shell=2, color="z")
    lattice = Lattice(cell, (2, 4), boundary)
    weight = {"x": 2, "y": Fraction(1, 3), "z": 5}
    total = 0
    for chosen in itertools.combinations(range(lattice.num_edges), 4):
        if np.unique(lattice.edges[list(chosen)]).size == 8:
            total += math.prod(weight[lattice.edge_colors[edge]] for edge in chosen)
    assert counting.count_perfect_matchings(lattice, weight=weight) == total


@pytest.mark.parametrize("pbc", list(itertools.product([False, True], repeat=2)))
def test_each_edge_has_the_color_of_its_bond(pbc):
    cell = UnitCell.named("kagome").add_bonds(shell=[2, 3])
    cell = UnitCell(cell.basis_vectors, cell.site_offsets, cell.bonds, range(cell.num_bonds))
    lattice = Lattice(cell, (4, 5), pbc=pbc)
    assert lattice.edge_colors.shape == (lattice.num_edges,)
    for edge, color in enumerate(lattice.edge_colors.tolist()):
        u, v, (dx, dy) = cell.bonds[color]
        (i, j, s), (k, m, t) = (np.unravel_index(vertex, (4, 5, 3)) for vertex in lattice.edges[edge])
        assert (s, t, (i + dx - k) % 4, (j + dy - m) % 5) == (u, v, 0, 0)
    piece = lattice.remove_vertices([0, 7, 30])
    assert piece.edge_colors.tolist() == [
        color
        for color, pair in zip(lattice.edge_colors.tolist(), lattice.edges.tolist(), strict=True)
        if not {0, 7, 30} & set(pair)
    ]
    assert piece.subgraph(range(9)).edge_colors.shape == (piece.subgraph(range(9)).num_edges,)


def test_colors_are_part_of_a_cell():
    plain = UnitCell(*(getattr(CHAIN, name) for name in ("basis_vectors", "site_offsets", "bonds")))
    assert CHAIN.colors == ("J1", "J2")
    assert plain.colors == (0, 0)
    assert plain != CHAIN
    for cell in (CHAIN, plain):
        for again in (pickle.loads(pickle.dumps(cell)), copy.deepcopy(cell)):
            assert again == cell
            assert again.colors == cell.colors
    assert pickle.loads(pickle.dumps(ring(7))).edge_colors.tolist() == ["J1", "J2"] * 7
    assert UnitCell.named("square") == UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0)), (0, 0, (0, 1))], [0, 0])
    assert CHAIN.subdivide().colors == ("J1", "J1", "J2", "J2")
    assert CHAIN.add_bonds([(0, 0, (0, 1))]).colors == ("J1", "J2", 0)
    assert UnitCell.named("square").add_bonds(shell=[3, 2]).colors == (0, 0, 1, 1, 2, 2)
    # What is there already stays, and takes no color.
    assert UnitCell.named("square").add_bonds(shell=[1, 2, 2]) == UnitCell.named("square").add_bonds(shell=2)
    assert UnitCell.named("square").add_bonds(vectors=[(1, 1), (-1, -1), (1, 0)], color=7).colors == (0, 0, 7)
    for uncolored in (lattices.four_eight_eight(2, 2), lattices.aztec_diamond(2), lattices.square(2, 3)):
        assert uncolored.edge_colors.tolist() == [0] * uncolored.num_edges


KAGOME = UnitCell.named("kagome").add_bonds(shell=2, color="J2")


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    "lattice", [ring(7), Lattice(CHAIN.add_bonds([(0, 0, (0, 1))]), (5, 3), "torus"), Lattice(KAGOME, (3, 3), "torus")]
)
def test_links_keep_the_colors_of_their_edges_where_cliques_are_inserted(lattice, k):
    inserted, graph = lattice.clique_insert(k, color="clique"), lattices.clique_insert(lattice, k)
    # The function puts the edges of the graph first; the method goes cell by cell. Trees are counted with both.
    colors = lattice.edge_colors.tolist() + ["clique"] * (graph.num_edges - lattice.num_edges)
    assert sorted(map(str, inserted.edge_colors)) == sorted(map(str, colors))
    weight = {0: 2, "J1": 3, "J2": Fraction(1, 2), "clique": 5}
    trees = counting.count_spanning_trees(inserted, weight=weight)
    assert trees == counting.count_spanning_trees(graph, weight=[weight[color] for color in colors])
    assert trees != counting.count_spanning_trees(inserted, weight=weight | {"J2": 1})
    # Contracting what is not a link leaves the lattice, edge by edge.
    links = inserted.edge_colors != "clique"
    clique = networkx.Graph(inserted.edges[~links].tolist())
    members = {end: number for number, part in enumerate(networkx.connected_components(clique)) for end in part}
    ends = np.array([members[end] for end in inserted.edges[links].ravel().tolist()]).reshape(-1, 2)
    for color in set(lattice.edge_colors.tolist()):
        contracted = networkx.Graph(ends[inserted.edge_colors[links] == color].tolist())
        original = networkx.Graph(lattice.edges[lattice.edge_colors == color].tolist())
        assert networkx.vf2pp_is_isomorphic(contracted, original)


def test_cliques_have_the_next_color_or_none_where_there_are_none():
    assert CHAIN.clique_insert().colors == ("J1", "J2", *[0] * 6)
    square = UnitCell.named("square").add_bonds(shell=2)
    assert square.clique_insert().colors == (0, 0, 1, 1, *[2] * 28)
    twice = CHAIN.clique_insert(2)
    assert twice.colors == ("J1", "J2", *[0] * 6, *[1] * 24)
    assert twice == CHAIN.clique_insert().clique_insert()
    assert pickle.loads(pickle.dumps(twice)) == twice
    named = UnitCell.named("honeycomb").clique_insert()
    assert named.kind == "3-12-12"
    assert set(named.colors) == {0}
    colored = UnitCell.named("honeycomb").clique_insert(color="triangle")
    assert colored.kind is None
    assert colored.colors == (0,) * 3 + ("triangle",) * 6
    assert sorted(colored.bonds) == sorted(named.bonds)
    one = UnitCell([(1, 0), (0, 1)], [(0, 0), (0.5, 0)], [(0, 1, (0, 0))], ["bond"])
    assert one.clique_insert(2**32 - 1, color="clique").colors == ("bond",)  # nothing is left to insert
    for color in (1.5, True, (1,)):
        with pytest.raises(TypeError, match="`color"):
            UnitCell.named("square").clique_insert(color=color)
    dimers = lattices.honeycomb(3, 3, "torus").clique_insert(color="triangle")
    weighted = counting.count_perfect_matchings(dimers, weight={0: 1, "triangle": 1})
    assert weighted == counting.count_perfect_matchings(lattices.named("3-12-12", 3, 3, "torus"))


@pytest.mark.parametrize("lattice", [ring(7), Lattice(CHAIN.add_bonds([(0, 0, (0, 1))], color="J1"), (5, 3), "torus")])
def test_vertices_of_a_line_graph_on_a_torus_are_the_edges_in_their_order(lattice):
    line = lattice.line_graph(multigraph=True)
    assert line.num_vertices == lattice.num_edges
    assert set(line.edge_colors.tolist()) == {0}
    weight = {"J1": 2, "J2": Fraction(1, 3)}
    # Matchings are the independent sets of the line graph: monomers and dimers by color.
    activity = [weight[color] for color in lattice.edge_colors.tolist()]
    assert counting.hard_core(line, activity) == counting.count_matchings(lattice, weight=weight)
    for a, b in line.edges.tolist():
        assert set(lattice.edges[a].tolist()) & set(lattice.edges[b].tolist())


def test_networkx_gets_the_colors_of_edges():
    lattice = ring(8)
    for (u, v), color in zip(lattice.edges.tolist(), lattice.edge_colors.tolist(), strict=True):
        assert lattice.to_networkx().edges[u, v] == {"color": color}
    several = Lattice(CHAIN, (2, 1), pbc=(True, False), multigraph=True).to_networkx()
    assert sorted(color for *_, color in several.edges(data="color")) == ["J1", "J1", "J2", "J2"]
    piece = lattice.remove_vertices([0]).to_networkx()
    assert sorted(color for *_, color in piece.edges(data="color")) == ["J1"] * 6 + ["J2"] * 6
    assert next(iter(lattices.square(2, 2).to_networkx().edges(data=True))) == (0, 2, {})


def test_bonds_and_colors_that_are_none_are_refused():
    square = UnitCell.named("square")
    for how in ({}, {"shell": 2, "vectors": [(1, 1)]}, {"shell": "2"}, {"shell": 1.5}, {"vectors": [(1, 1, 1)]}):
        with pytest.raises((TypeError, ValueError), match="`"):
            square.add_bonds(**how)
    for how, rule in (
        ({"shell": 0}, "`shell` must be"),
        ({"shell": 1}, "`shell` must name a bond that is not there"),
        ({"shell": []}, "`shell` must name a bond"),
        ({"vectors": [(0.5, 0)]}, "`vectors` must lead from a site to another, got"),
        ({"vectors": [(0, 0)]}, "`vectors` must lead"),
        ({"vectors": [(0, 1)]}, "`vectors` must name a bond"),
        ({"vectors": [(1e30, 1)]}, "`vectors` must reach"),
        ({"bonds": [(0, 0, (1, 0))]}, "bonds"),
    ):
        with pytest.raises(ValueError, match=rule):
            square.add_bonds(**how)
    for colors, error in (
        ([1], ValueError),
        ("ab", TypeError),
        ([1, 2.5], TypeError),
        ([True, 1], TypeError),
        (3, TypeError),
        ({"a", "b"}, TypeError),
    ):
        with pytest.raises(error, match="`colors`"):
            UnitCell(square.basis_vectors, square.site_offsets, square.bonds, colors)
    with pytest.raises(TypeError, match="`colors`"):
        square.add_bonds(shell=2, color=(1, 2))
    with pytest.raises(TooLargeError, match="looking for bonds"):
        UnitCell([(1, 0), (0, 1)], [(i / 3000, 0) for i in range(2049)], []).add_bonds(shell=2)
    with pytest.raises(ValueError, match="multigraph"):
        lattices.square(2, 2, "torus", multigraph=True).add_bonds(shell=2)
    with pytest.raises(ValueError, match="whole unit cells"):
        lattices.aztec_diamond(2).add_bonds(shell=2)
    with pytest.raises(ValueError, match="none for 'J2'"):
        counting.count_spanning_trees(ring(7), weight={"J1": 1})
    with pytest.raises(TypeError, match="by color"):
        counting.count_spanning_trees((2, [(0, 1)]), weight={0: 1})


def test_drawings_tell_colors_apart_and_bend_what_passes_over_a_site():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")

    ax = lattices.draw(ring(8))
    drawn = {line.get_label(): line for line in ax.collections if line.get_label() in ("J1", "J2")}
    assert [len(drawn[color].get_segments()) for color in ("J1", "J2")] == [7, 6]
    places = ring(8).positions
    # Straight ones pass over no site; those to the next site but one keep off the one between.
    assert all(np.ptp(way[:, 1]) == 0 for way in drawn["J1"].get_segments())
    for way in drawn["J2"].get_segments():
        assert np.hypot(*(way[:, None] - places[None, 1:-1]).transpose(2, 0, 1))[1:-1].min() > 0.1
    assert {text.get_text() for text in ax.legend().get_texts()} == {"J1", "J2"}
    ax = lattices.draw(ring(8).remove_vertices([0]), colors={"J1": "red", "J2": "blue"})
    assert matplotlib.colors.to_rgba("blue") in {tuple(c) for line in ax.collections for c in line.get_edgecolors()}
    with pytest.raises(ValueError, match="none for 'J2'"):
        lattices.draw(ring(8), colors={"J1": "red"})


@pytest.mark.parametrize(
    "lattice",
    [
        lattices.square(6, 6, "torus").add_bonds(shell=3),
        lattices.square(6, 5, "cylinder").add_bonds(shell=3),
        lattices.honeycomb(4, 4, "torus").add_bonds(shell=[2, 3]),
    ],
)
def test_bonds_that_skip_a_cell_count_as_those_of_the_plain_graph(lattice):
    graph = lattice.graph
    for counted in (counting.count_spanning_trees, counting.count_independent_sets, counting.count_perfect_matchings):
        assert counted(lattice) == counted(graph)
    assert np.allclose(spectra.spectrum(lattice), spectra.spectrum(graph))


def test_independent_sets_of_the_chain_grow_by_the_root_of_their_recurrence():
    found = entropy.entropy_bounds(ring(12))
    low, high = float(found.lower), float(found.upper)
    root = max(np.roots([1, -1, 0, -1]).real)  # x^3 = x^2 + 1
    assert low - 1e-12 <= math.log(root) <= high + 1e-12
    assert high - low < 1e-9
