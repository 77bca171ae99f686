"""Transfer matrices as objects: those that are printed in the thesis, and counts by them against the engines."""

from itertools import pairwise

import networkx
import numpy as np
import pytest

from quincunx import lattices
from quincunx.counting import count_independent_sets, transfer_matrices
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph, complete, path

# Z. Zhang (2017), thesis, sections 7.2 and 8.2.
T_21 = "11111111 10101010 11001100 11001100 10001000 11001100 11110000 10100000 11000000"
T_22 = "11111111 10101010 11001100 10001000 11110000 10100000 11000000 10000000"
T_2 = [
    [27, 18, 18, 18, 12, 18, 18, 12, 12],
    [18, 9, 12, 12, 6, 12, 12, 6, 8],
    [18, 12, 9, 9, 6, 9, 12, 8, 6],
    [18, 12, 9, 9, 6, 9, 12, 8, 6],
    [12, 6, 6, 6, 3, 6, 8, 4, 4],
    [18, 12, 9, 9, 6, 9, 12, 8, 6],
    [18, 12, 12, 12, 8, 12, 9, 6, 6],
    [12, 6, 8, 8, 4, 8, 6, 3, 4],
    [12, 8, 6, 6, 4, 6, 6, 4, 3],
]
B_2 = [
    [9, 6, 6, 6, 4, 6, 6, 6, 4],
    [6, 3, 4, 4, 2, 4, 3, 3, 2],
    [6, 4, 3, 3, 2, 3, 4, 4, 2],
    [6, 4, 3, 3, 2, 3, 4, 4, 2],
    [4, 2, 2, 2, 1, 2, 2, 2, 1],
    [6, 4, 3, 3, 2, 3, 4, 4, 2],
    [6, 3, 4, 4, 2, 4, 3, 3, 2],
    [6, 3, 4, 4, 2, 4, 3, 3, 2],
    [4, 2, 2, 2, 1, 2, 2, 2, 1],
]
TRIANGULATED = {
    (0, 0): "11111 10110 10010 11000 10000",
    (0, 1): "11111 10110 10000 11100 10100",
    (1, 0): "11111 10010 11011 11000 10000",
    (1, 1): "11111 10010 11000 11100 10000",
}


def bits(text):
    return [[int(bit) for bit in row] for row in text.split()]


def lines(lattice, axis):
    """The vertices of a lattice line by line along an axis, each line in rising order of the other."""
    across, along = lattice.positions[:, axis].round(6), lattice.positions[:, 1 - axis]
    return [sorted(np.flatnonzero(across == at).tolist(), key=lambda v: along[v]) for at in np.unique(across)]


def test_matrices_of_the_4_8_8_lattice_are_those_of_the_thesis():
    found = transfer_matrices(lattices.four_eight_eight(2, 3), lines(lattices.four_eight_eight(2, 3), 1))
    first, second, third, *_ = found.matrices
    assert first.tolist() == bits(T_21)
    assert second.tolist() == bits(T_22)
    assert (third == first.T).all()
    triple = first @ second @ third
    assert triple.tolist() == T_2
    # Each octagon takes three steps, and all are the same.
    assert [len(states) for states in found.states] == [9, 8, 8, 9, 8, 8, 9, 8, 8, 9]
    assert (
        (np.linalg.matrix_power(triple, 3).sum())
        == found.count()
        == count_independent_sets(lattices.four_eight_eight(2, 3))
    )


def test_matrices_of_the_cylinder_are_those_of_the_thesis_and_their_traces_count_tori():
    cylinder = lattices.four_eight_eight(1, 2, "cylinder")
    outer, *inner, last = lines(cylinder, 0)

    def triple(order):
        layers = [[outer[i] for i in order], *inner, [last[i] for i in order]]
        first, second, third = transfer_matrices(cylinder, layers).matrices
        return first @ second @ third

    # Round the cylinder a link goes over the border; the thesis begins after it, or before.
    assert B_2 in [triple(order).tolist() for order in ([1, 2, 3, 0], [3, 0, 1, 2])]
    for m in (1, 2, 3):
        trace = int(np.trace(np.linalg.matrix_power(triple(range(4)), m)))
        assert trace == np.trace(np.linalg.matrix_power(np.array(B_2), m))
        assert trace == count_independent_sets(lattices.four_eight_eight(m, 2, "torus"))


def test_matrices_of_triangulated_cells_are_those_of_the_thesis_and_average_to_its_expectation():
    mean = np.zeros((5, 5))
    matrices = []
    for choice in TRIANGULATED:
        grid = lattices.triangulated_grid(2, 1, diagonals=np.array(choice)[:, None])
        (matrix,) = transfer_matrices(grid, lines(grid, 1)).matrices
        matrices.append(matrix.tolist())
        mean += np.prod([0.7 if d else 0.3 for d in choice]) * matrix
    printed = [bits(text) for text in TRIANGULATED.values()]
    assert sorted(matrices) == sorted(printed)
    expected = [[1, 1, 1, 1, 1], [1, 0, 0.3, 1, 0], [1, 0.7, 0, 0.3, 0.21], [1, 1, 0.7, 0, 0], [1, 0, 0.21, 0, 0]]
    assert np.allclose(mean, expected, atol=1e-15) or np.allclose(mean, np.transpose(expected), atol=1e-15)


@pytest.mark.parametrize("name", ["square", "king", "triangular", "4-8-8"])
@pytest.mark.parametrize("boundary", ["free", "cylinder"])
def test_counts_by_matrices_are_those_of_the_engines(name, boundary):
    lattice = lattices.named(name, 3, 4, boundary)
    rows = np.arange(lattice.num_vertices).reshape(3, -1).tolist() if name != "4-8-8" else lines(lattice, 0)
    found = transfer_matrices(lattice, rows)
    assert found.count() == count_independent_sets(lattice)
    for states, following, matrix in zip(found.states, found.states[1:], found.matrices, strict=False):
        assert matrix.shape == (len(states), len(following))
        words = [int("".join(map(str, row)), 2) for row in states.astype(int).tolist()]
        assert all(a < b for a, b in pairwise(words))


def test_any_graph_in_layers_is_counted():
    rng = np.random.default_rng(3)
    for _ in range(30):
        sizes = rng.integers(0, 5, size=rng.integers(1, 5))
        names = [f"{i}.{k}" for i, size in enumerate(sizes) for k in range(size)]
        graph = networkx.Graph()
        graph.add_nodes_from(rng.permutation(names).tolist())
        pairs = [(u, v) for u in names for v in names if u <= v and abs(int(u[0]) - int(v[0])) <= 1]
        graph.add_edges_from(pair for pair in pairs if rng.random() < 0.4)
        layers = [[name for name in names if name[0] == str(i)] for i in range(len(sizes))]
        assert transfer_matrices(graph, layers).count() == count_independent_sets(graph), layers


def test_layers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="`layers` must hold each vertex once, got not all"):
        transfer_matrices(path(3), [[0], [1]])
    with pytest.raises(ValueError, match="`layers` must hold each vertex once, got one twice"):
        transfer_matrices(path(3), [[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"no edge beyond the next, got \(0, 1\) between layers 0 and 2"):
        transfer_matrices(path(3), [[0], [2], [1]])
    with pytest.raises(ValueError, match="at least one layer"):
        transfer_matrices(path(3), [])
    with pytest.raises(ValueError, match="`layers` must be between 0 and 2, got 3"):
        transfer_matrices(path(3), [[3]])
    with pytest.raises(ValueError, match="at most 62 vertices each, got 63"):
        transfer_matrices(complete(63), [range(63)])
    with pytest.raises(TypeError, match="`layers` must hold the vertices of each layer, got int"):
        transfer_matrices(path(3), [0, 1, 2])
    with pytest.raises(TypeError, match="`layers` must hold the vertices of each layer, got int"):
        transfer_matrices(path(3), 3)
    for layers in ([[0], {1, 2}], {(0, 1), (2,)}, {(0,): "a", (1, 2): "b"}):  # whose digits would be in any order
        with pytest.raises(TypeError, match="`layers` must be in an order, as a list is"):
            transfer_matrices(path(3), layers)
    # 2^19 sets of 19 vertices, and three with either or both of the others.
    star = Graph(21, [(leaf, center) for leaf in range(19) for center in (19, 20)])
    assert len(transfer_matrices(star, [range(21)]).states[0]) == 2**19 + 3
    with pytest.raises(TooLargeError, match="list of 2097152 or more independent sets of a layer"):
        transfer_matrices(Graph(48, []), [range(48)])
