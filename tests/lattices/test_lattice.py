"""Finite lattices."""

import pickle

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import lattices
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, grid, torus
from quincunx.lattices import Lattice, UnitCell

FIXED = settings(derandomize=True, deadline=None)
SQUARE = UnitCell.named("square")
AXES = {"free": (False, False), "cylinder": (False, True), "torus": (True, True)}


@st.composite
def lattices_of_any_cell(draw):
    sites = draw(st.integers(1, 3))
    site, step = st.integers(0, sites - 1), st.integers(-3, 3)
    bonds = draw(st.lists(st.tuples(site, site, st.tuples(step, step)), max_size=6))
    kept, seen = [], set()
    for u, v, (dx, dy) in bonds:
        if (u, v, dx, dy) not in seen and (u, v, dx, dy) != (v, u, -dx, -dy):
            seen |= {(u, v, dx, dy), (v, u, -dx, -dy)}
            kept.append((u, v, (dx, dy)))
    cell = UnitCell([(1, 0.5), (-0.25, 2)], [(s / 4, s / 8) for s in range(sites)], kept)
    extent = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    return Lattice(cell, extent, pbc=draw(st.tuples(st.booleans(), st.booleans())), multigraph=True)


@FIXED
@given(lattices_of_any_cell())
def test_edges_are_the_bonds_of_every_cell_in_order(lattice):
    (rows, cols), sites, expected = lattice.extent, lattice.unit_cell.num_sites, []
    for i in range(rows):
        for j in range(cols):
            for u, v, (dx, dy) in lattice.unit_cell.bonds:
                (wx, row), (wy, col) = divmod(i + dx, rows), divmod(j + dy, cols)
                if (wx == 0 or lattice.pbc[0]) and (wy == 0 or lattice.pbc[1]):
                    expected.append(((i * cols + j) * sites + u, (row * cols + col) * sites + v, wx, wy))
    found = np.hstack([lattice.edges, lattice.windings])
    assert found.tolist() == np.array(expected, dtype=np.int64).reshape(-1, 4).tolist()
    assert lattice.num_edges == len(expected)


@FIXED
@given(lattices_of_any_cell())
def test_displacements_are_differences_of_positions_plus_windings(lattice):
    basis = np.array(lattice.unit_cell.basis_vectors)
    cells = np.indices(lattice.extent).reshape(2, -1).T @ basis
    positions = (cells[:, None] + np.array(lattice.unit_cell.site_offsets)).reshape(-1, 2)
    np.testing.assert_allclose(lattice.positions, positions, atol=1e-13)
    round_axes = (lattice.windings * lattice.extent) @ basis
    ends = lattice.positions[lattice.edges[:, 1]] - lattice.positions[lattice.edges[:, 0]]
    np.testing.assert_allclose(lattice.displacements, ends + round_axes, atol=1e-13)


@FIXED
@given(lattices_of_any_cell())
def test_loops_and_parallel_edges_raise_exactly_where_they_arise(lattice):
    edges = np.sort(lattice.edges, axis=1)
    simple = (edges[:, 0] != edges[:, 1]).all() and len(np.unique(edges, axis=0)) == len(edges)
    if simple:
        assert Lattice(lattice.unit_cell, lattice.extent, pbc=lattice.pbc) == lattice
    else:
        with pytest.raises(ValueError, match=r"`extent` must be so large .* unless `multigraph=True`"):
            Lattice(lattice.unit_cell, lattice.extent, pbc=lattice.pbc)


@FIXED
@given(lattices_of_any_cell())
def test_a_lattice_survives_pickle_and_is_equal_to_its_like(lattice):
    restored = pickle.loads(pickle.dumps(lattice))
    assert restored == lattice
    assert hash(restored) == hash(lattice)
    assert restored.edges.tolist() == lattice.edges.tolist()
    rows, cols = lattice.extent
    assert lattice != Lattice(lattice.unit_cell, (rows, cols + 1), pbc=lattice.pbc, multigraph=True)
    assert lattice != lattice.graph


def test_boundaries_are_words_or_axes():
    for word, axes in AXES.items():
        lattice = Lattice(SQUARE, (3, 4), word)
        assert (lattice.boundary, lattice.pbc) == (word, axes)
        assert lattice == Lattice(SQUARE, (3, 4), pbc=axes) == Lattice(SQUARE, (3, 4), pbc=[np.bool_(a) for a in axes])
    across = Lattice(SQUARE, (3, 4), pbc=(True, False))
    assert (across.boundary, across.pbc) == (None, (True, False))
    around = Lattice(SQUARE, (4, 3), "cylinder")
    assert networkx.is_isomorphic(across.to_networkx(), around.to_networkx())
    assert "pbc=(True, False)" in repr(across)


def test_a_lattice_of_squares_is_a_grid():
    assert Lattice(SQUARE, (3, 5)).graph == grid(3, 5)
    assert Lattice(SQUARE, (3, 5), "torus").graph == torus(3, 5)
    assert Lattice(SQUARE, (1, 2), "torus", multigraph=True).graph == torus(1, 2, multigraph=True)


def test_arrays_are_read_only_and_made_once():
    lattice = Lattice(SQUARE, (3, 3))
    for name in ("edges", "windings", "positions", "displacements"):
        array = getattr(lattice, name)
        assert not array.flags.writeable
        assert array.shape[1] == 2
        assert getattr(lattice, name) is array
    assert lattice.graph is lattice.graph
    assert lattice.edges.dtype == lattice.windings.dtype == np.int64


def test_a_lattice_knows_what_it_is():
    lattice = Lattice(SQUARE, (3, 4), "torus")
    assert (lattice.kind, lattice.name, lattice.extent) == ("square", "square", (3, 4))
    assert repr(lattice) == "<Lattice 'square': 3 x 4 cells, torus, 12 vertices>"
    own = Lattice(UnitCell([(2, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0))]), (3, 4))
    assert (own.kind, own.name) == (None, "lattice")
    assert repr(own) == "<Lattice: 3 x 4 cells, free, 12 vertices>"
    with pytest.raises(AttributeError):
        lattice.extent = (1, 1)


def test_networkx_gets_the_positions():
    lattice = lattices.honeycomb(2, 3, "cylinder", multigraph=True)
    converted = lattice.to_networkx()
    assert Graph.from_networkx(converted) == lattice.graph
    assert [converted.nodes[v]["pos"] for v in range(12)] == [tuple(p) for p in lattice.positions.tolist()]
    assert lattices.square(2, 2, "torus", multigraph=True).to_networkx().is_multigraph()


def test_a_cell_without_bonds_makes_isolated_vertices():
    lattice = Lattice(UnitCell([(1, 0), (0, 1)], [(0, 0), (0.5, 0)], []), (2, 3), "torus")
    assert (lattice.num_vertices, lattice.num_edges) == (12, 0)
    assert lattice.edges.shape == lattice.displacements.shape == (0, 2)


@pytest.mark.parametrize("extent", [(0, 3), (3, -1), (2**32, 1), (10**30, 1)])
def test_extents_out_of_range_are_refused(extent):
    with pytest.raises(ValueError, match="`extent` must be between 1 and 4294967295"):
        Lattice(SQUARE, extent)


@pytest.mark.parametrize("extent", [3, (3,), (3, 3, 3), (3.5, 3), (True, 3), ("3", 3), None])
def test_an_extent_is_a_pair_of_whole_numbers(extent):
    with pytest.raises(TypeError, match="`extent`"):
        Lattice(SQUARE, extent)
    assert Lattice(SQUARE, np.array([3, 4])) == Lattice(SQUARE, (3.0, 4))


def test_boundaries_have_their_rules():
    with pytest.raises(ValueError, match=r"`boundary` must be one of .*'free', 'cylinder', 'torus'.* got 'open'"):
        Lattice(SQUARE, (3, 3), "open")
    for wrong in (None, 3, ["free"]):
        with pytest.raises(TypeError, match="`boundary`"):
            Lattice(SQUARE, (3, 3), wrong)
    with pytest.raises(ValueError, match="must not both be given"):
        Lattice(SQUARE, (3, 3), "torus", pbc=(True, True))
    for wrong in (True, (True,), (1, 0), "ft", (True, None)):
        with pytest.raises(TypeError, match="`pbc` must be a pair of bools"):
            Lattice(SQUARE, (3, 3), pbc=wrong)
    with pytest.raises(TypeError, match="`unit_cell` must be a UnitCell, got str"):
        Lattice("square", (3, 3))


def test_small_closed_extents_name_what_arises():
    with pytest.raises(ValueError, match=r"no loop arises, unless `multigraph=True`, got \(1, 5\)"):
        Lattice(SQUARE, (1, 5), "torus")
    with pytest.raises(ValueError, match=r"no parallel edges arise, unless `multigraph=True`, got \(5, 2\)"):
        Lattice(SQUARE, (5, 2), "cylinder")
    assert Lattice(SQUARE, (2, 5), "cylinder").num_edges == 15


def test_a_lattice_too_large_for_the_machine_is_made_but_not_written():
    huge = lattices.square(10**9, 10**9)
    assert huge.num_vertices == 10**18
    for attribute in ("edges", "positions", "graph", "num_edges"):
        with pytest.raises(TooLargeError) as caught:
            getattr(huge, attribute)
        assert caught.value.needed > caught.value.limit > 0


def test_clique_insertion_keeps_the_box():
    lattice = lattices.honeycomb(3, 4, "cylinder")
    inserted = lattice.clique_insert()
    assert (inserted.kind, inserted.extent, inserted.boundary) == ("3-12-12", (3, 4), "cylinder")
    assert inserted.num_vertices == 6 * 12
    assert lattice.clique_insert(0) == lattice
    assert lattice.clique_insert(2).num_vertices == 18 * 12
    assert lattices.square(3, 3).clique_insert(3).num_vertices == 9 * 64


def test_clique_insertion_has_its_limits():
    lattice = lattices.honeycomb(3, 3)
    assert lattice.clique_insert(2, max_vertices=162).num_vertices == 162
    with pytest.raises(ValueError, match="`max_vertices` must be at least the 162 vertices of the result, got 161"):
        lattice.clique_insert(2, max_vertices=161)
    with pytest.raises(TooLargeError, match="clique insertion needs"):
        lattice.clique_insert(60)
    with pytest.raises(ValueError, match="needs whole unit cells"):
        lattices.aztec_diamond(2).clique_insert()
    with pytest.raises(ValueError, match="`k`"):
        lattice.clique_insert(-1)


def test_clique_insertion_of_a_loop_makes_parallel_edges():
    looped = lattices.square(1, 3, "torus", multigraph=True)
    with pytest.raises(ValueError, match="no parallel edges arise"):
        looped.clique_insert()
    inside, outside = looped.clique_insert(multigraph=True), lattices.clique_insert(looped)
    assert networkx.is_isomorphic(inside.to_networkx(), outside.to_networkx())
    # Three parallel edges between two vertices become a prism, which is simple.
    theta = lattices.honeycomb(1, 1, "torus", multigraph=True)
    assert networkx.is_isomorphic(theta.clique_insert().to_networkx(), networkx.circular_ladder_graph(3))


def test_a_lattice_answers_what_its_graph_does():
    for lattice in (
        lattices.kagome(2, 3, "torus"),
        lattices.aztec_diamond(2),
        lattices.square(1, 2, "torus", multigraph=True),
    ):
        graph = lattice.graph
        assert lattice.degrees().tolist() == graph.degrees().tolist()
        assert [lattice.neighbors(v).tolist() for v in range(len(lattice))] == [
            graph.neighbors(v).tolist() for v in range(len(graph))
        ]
        assert (lattice.to_scipy() != graph.to_scipy()).nnz == 0
        assert f'<td style="text-align:left">{lattice.num_vertices}</td>' in lattice._repr_html_()
    with pytest.raises(ValueError, match="`v` must be"):
        lattices.square(2, 2).neighbors(4)
    assert "twist" in lattices.square(4, 5, "torus", twist=1)._repr_html_()


def test_a_lattice_draws_itself():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    ax = lattices.square(2, 3).draw(independent_set=[0, 2])
    assert len(ax.collections[-1].get_offsets()) == 6
