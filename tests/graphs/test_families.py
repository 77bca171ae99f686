"""Standard families of graphs, against networkx and by their definitions."""

import itertools
import math

import networkx
import numpy as np
import pytest

from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, cycle, grid, hamming, path, torus


def sizes(graph):
    return graph.num_vertices, graph.num_edges


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_paths_and_complete_graphs_are_those_of_networkx(n):
    assert path(n) == Graph.from_networkx(networkx.path_graph(n))
    assert complete(n) == Graph.from_networkx(networkx.complete_graph(n))


@pytest.mark.parametrize("n", [3, 4, 7])
def test_cycles_are_those_of_networkx(n):
    assert cycle(n) == Graph.from_networkx(networkx.cycle_graph(n))


@pytest.mark.parametrize("shape", [(4,), (1, 5), (3, 4), (2, 3, 4), (1, 1, 1), (2, 2, 2, 2)])
def test_grids_are_those_of_networkx_in_c_order(shape):
    expected = networkx.grid_graph(dim=shape[::-1])
    ours = grid(*shape).relabel(list(itertools.product(*map(range, shape))) if len(shape) > 1 else None)
    assert networkx.utils.graphs_equal(ours.to_networkx(), expected)


@pytest.mark.parametrize("shape", [(3, 4), (5, 3), (3, 3, 4)])
def test_tori_are_those_of_networkx(shape):
    expected = networkx.grid_graph(dim=shape[::-1], periodic=True)
    ours = torus(*shape).relabel(list(itertools.product(*map(range, shape))))
    assert networkx.utils.graphs_equal(ours.to_networkx(), expected)
    assert torus(5) == cycle(5)


@pytest.mark.parametrize(("length", "letters"), [(0, 3), (1, 1), (1, 4), (3, 2), (2, 3), (3, 3), (4, 1)])
def test_hamming_graphs_join_words_that_differ_in_one_position(length, letters):
    words = list(itertools.product(range(letters), repeat=length))
    edges = [
        (u, v)
        for u, v in itertools.combinations(range(len(words)), 2)
        if sum(a != b for a, b in zip(words[u], words[v], strict=True)) == 1
    ]
    graph = hamming(length, letters)
    assert graph == Graph(len(words), edges)
    assert set(graph.degrees().tolist()) == {length * (letters - 1)}


def test_the_hypercube_is_a_hamming_graph():
    assert networkx.is_isomorphic(hamming(4, 2).to_networkx(), networkx.hypercube_graph(4))


def test_small_tori_need_permission_and_then_keep_every_edge():
    for shape in [(1,), (2,), (1, 4), (3, 2), (2, 2, 5)]:
        with pytest.raises(ValueError, match=r"`shape` must be at least 3, else .* arises? \(see `multigraph`\)"):
            torus(*shape)
        graph = torus(*shape, multigraph=True)
        assert sizes(graph) == (math.prod(shape), math.prod(shape) * len(shape))
        assert set(graph.degrees().tolist()) == {2 * len(shape)}
    with pytest.raises(ValueError, match=r"`n` must be at least 3, else a loop arises .*got 1"):
        cycle(1)
    with pytest.raises(ValueError, match=r"`n` must be at least 3, else parallel edges arise .*got 2"):
        cycle(2)
    assert cycle(1, multigraph=True) == Graph(1, [(0, 0)])


def test_a_grid_with_no_points_is_empty():
    assert sizes(grid(0)) == sizes(grid(3, 0)) == sizes(grid(0, 2**32 - 1, 2**32 - 1)) == (0, 0)


@pytest.mark.parametrize(
    "family", [path, complete, cycle, grid, torus, lambda n: hamming(n, 2), lambda n: hamming(2, n)]
)
def test_sizes_are_whole_numbers_in_range(family):
    for wrong in (3.5, True, "3", None, np.nan, (3, 4)):
        with pytest.raises(TypeError, match="must be a whole number"):
            family(wrong)
    for wrong in (-1, 2**32, 10**30):
        with pytest.raises(ValueError, match=r"`\w+` must be .*got"):
            family(wrong)
    assert family(np.int16(3)) == family(3.0) == family(3)


def test_a_grid_has_an_extent():
    for family in (grid, torus):
        with pytest.raises(TypeError, match="`shape` must have at least one extent"):
            family()


def test_graphs_with_too_many_vertices_or_edges_are_refused():
    for make in (
        lambda: grid(2**16, 2**16),
        lambda: torus(2**20, 2**20),
        lambda: hamming(40, 2),
        lambda: hamming(3, 10**6),
    ):
        with pytest.raises(ValueError, match=r"fewer than 2\*\*32 vertices"):
            make()
    with pytest.raises(TooLargeError):
        complete(2**32 - 1)
