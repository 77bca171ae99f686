"""Pieces of lattices: vertices, edges and places of the whole, and what is counted on them."""

import pickle

import networkx
import numpy as np
import pytest

from quincunx import counting, lattices
from quincunx.lattices import aztec_diamond, four_eight_eight, kagome, square, triangular


@pytest.mark.parametrize("whole", [square(4, 5, "torus"), kagome(2, 3, "cylinder"), four_eight_eight(2, 2)])
def test_a_piece_is_the_graph_of_its_vertices_where_they_were(whole):
    rng = np.random.default_rng(1)
    kept = rng.random(whole.num_vertices) < 0.7
    piece = whole.subgraph(kept)
    assert piece.origin.tolist() == np.flatnonzero(kept).tolist()
    assert (piece.positions == whole.positions[kept]).all()
    # Its vectors join its places, up to periods of the whole: those of the same edge there.
    of_whole = dict(zip(map(tuple, np.sort(whole.edges, axis=1).tolist()), whole.displacements.tolist(), strict=True))
    for edge, vector in zip(piece.origin[piece.edges].tolist(), piece.displacements.tolist(), strict=True):
        assert of_whole[tuple(sorted(edge))] == vector
    named = networkx.relabel_nodes(piece.to_networkx(), dict(enumerate(piece.origin.tolist())))
    assert networkx.utils.graphs_equal(
        networkx.Graph(named.edges), networkx.Graph(whole.to_networkx().subgraph(np.flatnonzero(kept).tolist()).edges)
    )
    assert piece == whole.remove_vertices(~kept) == pickle.loads(pickle.dumps(piece))
    assert hash(piece) == hash(whole.remove_vertices(~kept))
    assert piece != whole
    assert piece.subgraph([0, 2]) == whole.subgraph(piece.origin[[0, 2]])


def test_counts_on_a_piece_are_those_of_its_graph():
    for whole in (square(4, 4, "torus"), triangular(4, 4), kagome(2, 2, "torus")):
        piece = whole.remove_vertices([0, 5])
        assert piece.kind is None
        assert piece.unit_cell is None
        for count in (
            counting.count_perfect_matchings,
            counting.count_spanning_trees,
            counting.count_independent_sets,
            counting.count_matchings,
        ):
            assert count(piece) == count(piece.graph), (whole, count)


def test_an_aztec_diamond_is_a_piece_of_a_square():
    box = square(8, 8)
    diamond = box.subgraph(abs(box.positions - 3.5).sum(axis=1) <= 4)
    assert counting.count_perfect_matchings(diamond) == counting.count_perfect_matchings(aztec_diamond(4)) == 2**10


def test_pieces_are_drawn_and_say_what_they_are():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    piece = square(3, 3, "cylinder").remove_vertices([4, 0, 2])
    assert repr(piece) == "<LatticePiece: 6 vertices of <Lattice 'square': 3 x 3 cells, cylinder, 9 vertices>>"
    assert "piece of square" in piece._repr_html_() or "Lattice" in piece._repr_html_()
    axes = piece.draw(independent_set=[0, 1])
    assert len(axes.collections[-1].get_offsets()) == 6
    with pytest.raises(TypeError, match="made by `subgraph`"):
        type(piece)()
    with pytest.raises(TypeError, match="`lattice` must be a name"):
        lattices._named.unit_cell_of(piece)
    with pytest.raises(ValueError, match="needs whole unit cells"):
        piece.clique_insert()
