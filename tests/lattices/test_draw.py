"""Drawings."""

import subprocess
import sys

import networkx
import numpy as np
import pytest

from quincunx import graphs, lattices
from quincunx.counting import random_perfect_matching, random_spanning_tree
from quincunx.lattices import draw

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def ax():
    return pyplot.subplots()[1]


def segments(ax, dotted):
    return [
        segment
        for lines in ax.collections[:-1]
        if (lines.get_linestyle()[0][1] is not None) == dotted
        for segment in lines.get_segments()
    ]


@pytest.mark.parametrize(
    "lattice",
    [
        lattices.four_eight_eight(2, 3, "torus"),
        lattices.truncated_hexagonal(2, 2, "cylinder"),
        lattices.aztec_diamond(2),
    ],
)
def test_each_edge_is_a_line_or_two_dotted_halves_and_none_crosses_the_figure(lattice, ax):
    assert draw(lattice, ax) is ax
    wrapped = int(lattice.windings.any(axis=1).sum())
    whole, halves = segments(ax, False), segments(ax, True)
    assert (len(whole), len(halves)) == (lattice.num_edges - wrapped, 2 * wrapped)
    longest = np.linalg.norm(lattice.displacements, axis=1).max()
    assert max(np.linalg.norm(end - start) for start, end in whole) <= longest + 1e-12
    assert all(np.linalg.norm(end - start) <= longest / 2 + 1e-12 for start, end in halves)
    assert len(ax.collections[-1].get_offsets()) == lattice.num_vertices


def test_sets_edges_and_labels_are_shown(ax):
    lattice = lattices.square(3, 3, "torus")
    draw(lattice, ax, independent_set=[0, 4], edges=[1, np.int64(5)], labels=True)
    filled = ax.collections[-1].get_facecolors()
    assert (filled == filled[0]).all(axis=1).nonzero()[0].tolist() == [0, 4]
    assert sum(len(lines.get_segments()) for lines in ax.collections[2:-1]) >= 2
    assert [text.get_text() for text in ax.texts] == [str(v) for v in range(9)]
    ax.figure.canvas.draw()


@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_matchings_and_trees_are_drawn_thick_in_colors_of_their_own(ax, boundary):
    lattice = lattices.truncated_hexagonal(3, 3, boundary)
    matching, tree = random_perfect_matching(lattice, rng=1), random_spanning_tree(lattice, rng=1)
    draw(lattice, ax, matching=matching, tree=tree)
    drawn = {}
    for lines in ax.collections[:-1]:
        color = tuple(lines.get_colors()[0])
        dotted = lines.get_linestyle()[0][1] is not None
        drawn[color] = drawn.get(color, 0) + len(lines.get_segments()) / (2 if dotted else 1)
    both = len(set(matching.tolist()) & set(tree.tolist()))
    assert list(drawn.values()) == [
        lattice.num_edges - len(matching) - len(tree) + both,
        len(tree) - both,
        len(matching),
    ]
    longest = np.linalg.norm(lattice.displacements, axis=1).max()
    for lines in ax.collections[:-1]:
        assert all(np.linalg.norm(end - start) <= longest + 1e-12 for start, end in lines.get_segments())


def test_halves_of_wrapped_edges_have_one_name(ax):
    lattice = lattices.honeycomb(3, 4, "torus")
    draw(lattice, ax, wrap_labels=True)
    names = [text.get_text() for text in ax.texts]
    assert sorted(names) == sorted(
        2 * [f"$a_{{{i}}}$" for i in range(1, 5)] + 2 * [f"$b_{{{i}}}$" for i in range(1, 4)]
    )
    places = {name: [np.array(text.xy) for text in ax.texts if text.get_text() == name] for name in names}
    (a1, a2) = (np.array(vector) for vector in lattice.unit_cell.basis_vectors)
    for name, (leaving, arriving) in places.items():
        assert np.allclose(leaving - arriving, 3 * a1 if name.startswith("$a") else 4 * a2)
    triangular = lattices.triangular(3, 3, "torus")
    draw(triangular, ax, wrap_labels=True)
    assert sum(text.get_text().startswith("$c") for text in ax.texts) == 2


def test_a_figure_is_made_where_none_is_given():
    ax = draw(lattices.kagome(2, 2))
    assert ax.get_aspect() == 1


def test_bad_arguments_are_refused(ax):
    lattice = lattices.square(2, 2)
    with pytest.raises(TypeError, match=r"`lattice` must be a Graph, a lattice, .* got list"):
        draw([lattice], ax)
    with pytest.raises(ValueError, match=r"`independent_set` must not hold two joined vertices, got \(0, 1\)"):
        draw(lattice, ax, independent_set=[0, 1])
    with pytest.raises(ValueError, match="`independent_set` must be between 0 and 3, got 4"):
        draw(lattice, ax, independent_set=[4])
    with pytest.raises(ValueError, match="`edges` must be between 0 and 3, got -1"):
        draw(lattice, ax, edges=[-1])
    with pytest.raises(ValueError, match="`matching` must not cover a vertex twice, got edges that do at 0"):
        draw(lattice, ax, matching=[0, 1])
    with pytest.raises(ValueError, match="`tree` must have no cycle, got one through edge 3"):
        draw(lattice, ax, tree=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="`tree` must have no cycle, got one through edge 1"):
        draw(lattices.square(2, 1, "torus", multigraph=True), ax, tree=[1])
    with pytest.raises(TypeError, match="`edges` must be a whole number"):
        draw(lattice, ax, edges=[0.5])


def test_without_matplotlib_the_message_names_the_extra():
    program = (
        "import sys; sys.modules['matplotlib'] = None; from quincunx.lattices import draw, square\n"
        "try: draw(square(2, 2))\n"
        "except ImportError as error: assert \"pip install 'quincunx[plot]'\" in str(error); sys.exit(0)\n"
        "sys.exit(1)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Any graph.


def test_a_graph_of_any_kind_is_drawn_with_its_labels(ax):
    karate = networkx.karate_club_graph()
    assert draw(karate, ax, labels=True, independent_set=[4, 9]) is ax
    assert len(ax.collections[-1].get_offsets()) == 34
    assert len(segments(ax, False)) == 78
    assert [text.get_text() for text in ax.texts] == [str(v) for v in range(34)]
    for graph in (graphs.hamming(3, 2), (0, []), (3, []), karate.subgraph([0, 1]), graphs.path(4).to_scipy()):
        draw(graph)


def test_vertices_are_named_by_label_and_placed_where_the_user_says(ax):
    graph = graphs.Graph(3, [(0, 1), (1, 2)], labels=["Ann", r"$\Bea$", "Cid"])
    places = {"Ann": (0.0, 0.0), r"$\Bea$": (1.0, 0.0), "Cid": (1.0, 1.0)}
    draw(graph, ax, positions=places, independent_set=["Ann", "Cid"], labels=True, matching=[("Cid", r"$\Bea$")])
    ax.figure.canvas.draw()
    assert ax.collections[-1].get_offsets().tolist() == [list(place) for place in places.values()]
    filled = ax.collections[-1].get_facecolors()
    assert (filled == filled[0]).all(axis=1).tolist() == [True, False, True]
    assert [text.get_text() for text in ax.texts] == ["Ann", r"$\Bea$", "Cid"]
    with_pos = lattices.square(2, 2).to_networkx()
    other = draw(with_pos)
    assert other.collections[-1].get_offsets().tolist() == lattices.square(2, 2).positions.tolist()


def test_the_picture_of_a_graph_is_the_same_each_time():
    big = networkx.random_regular_graph(3, 310, seed=1)
    one, two = (draw(big).collections[-1].get_offsets() for _ in range(2))
    assert (one == two).all()


@pytest.mark.parametrize(
    ("graph", "how", "error", "message"),
    [
        (3, {}, TypeError, "`lattice` must be a Graph, a lattice"),
        (graphs.path(2), {"positions": [(0, 0)]}, ValueError, r"`positions` must have shape \(2, 2\)"),
        (graphs.path(2), {"positions": [(0, 0), (0, np.nan)]}, ValueError, "`positions` must hold finite"),
        (graphs.path(2), {"positions": {0: (0, 0)}}, ValueError, "got none for 1"),
        (graphs.path(2), {"independent_set": [0, 1]}, ValueError, "two joined vertices"),
        (graphs.path(2), {"independent_set": [2]}, ValueError, "`independent_set`"),
        (lattices.square(1, 2), {"positions": [(0, 0), (1, 1)]}, ValueError, "must be None for a lattice"),
    ],
)
def test_what_cannot_be_drawn_is_refused(graph, how, error, message):
    with pytest.raises(error, match=message):
        draw(graph, **how)
