"""What crosses to the core: a named lattice as a word and two integers, anything else as edges."""

import networkx
import numpy as np
import pytest

from quincunx import graphs, lattices
from quincunx.counting._problem import KERNELS, as_problem


def test_a_lattice_with_a_kernel_crosses_as_its_name():
    assert as_problem(lattices.square(3, 4)) == ("square", 3, 4, "free")
    assert as_problem(lattices.four_eight_eight(3, 4, "cylinder")) == ("4-8-8", 3, 4, "cylinder")
    assert as_problem(lattices.king(30_000, 7, "torus")) == ("king", 30_000, 7, "torus")
    assert {as_problem(lattices.named(kind, 3, 3))[0] for kind in KERNELS} == KERNELS


def test_its_edges_are_never_made():
    lattice = lattices.square(4_000_000_000, 4_000_000_000)
    assert as_problem(lattice)[1] == 4_000_000_000
    assert lattice._arrays is None


def test_a_cylinder_closed_in_the_first_axis_is_seen_from_the_side():
    assert as_problem(lattices.square(3, 4, pbc=(True, False))) == ("square", 4, 3, "cylinder")
    assert as_problem(lattices.square(3, 4, pbc=(False, True))) == ("square", 3, 4, "cylinder")


def test_every_other_lattice_and_every_lattice_in_an_order_crosses_as_a_graph():
    for lattice in [lattices.kagome(2, 2), lattices.truncated_square(2, 2), lattices.aztec_diamond(3)]:
        n, edges, order = as_problem(lattice)
        assert (n, order) == (lattice.num_vertices, None)
        assert np.array_equal(edges, lattice.edges)
    n, edges, order = as_problem(lattices.square(2, 2), [3, 2, 1, 0])
    assert (n, edges.shape, order.tolist()) == (4, (4, 2), [3, 2, 1, 0])


def test_a_cell_of_ones_own_that_looks_like_the_square_lattice_is_counted_the_same():
    cell = lattices.UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0)), (0, 0, (0, 1))])
    own = lattices.Lattice(cell, (4, 5))
    assert as_problem(own)[0] in (20, "square")


def test_an_order_is_translated_from_labels_to_numbers():
    graph = networkx.Graph([("a", "b"), ("b", "c")])
    assert as_problem(graph, ["c", "a", "b"])[2].tolist() == [2, 0, 1]
    assert as_problem(graphs.Graph(3, [], labels=[10, 20, 0]), iter([0, 10, 20]))[2].tolist() == [2, 0, 1]


@pytest.mark.parametrize("order", [["a", "b"], ["a", "b", "b"], ["a", "b", "d"], ["a", "b", "c", "a"], [0, 1, 2]])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(ValueError, match="`order` must list"):
        as_problem(networkx.Graph([("a", "b"), ("b", "c")]), order)
