"""Spanning trees: known answers, independent methods, laws, bad input, long numbers."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interrupts import Stopped, stop_after

from quincunx import _core, lattices
from quincunx._job import Job
from quincunx.counting import count_spanning_trees, log_spanning_trees
from quincunx.graphs import Graph, complete, cycle, path
from quincunx.lattices import Lattice, UnitCell, clique_insert


def determinant(matrix):
    """The determinant in fractions."""
    rows = [[Fraction(x) for x in row] for row in matrix]
    product = Fraction(1)
    for j in range(len(rows)):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return 0
        if pivot != j:
            rows[j], rows[pivot], product = rows[pivot], rows[j], -product
        product *= rows[j][j]
        for i in range(j + 1, len(rows)):
            ratio = rows[i][j] / rows[j][j]
            rows[i] = [x - ratio * y for x, y in zip(rows[i], rows[j], strict=True)]
    return int(product)


def kirchhoff(n, edges):
    """Trees by the theorem, in fractions."""
    laplacian = np.zeros((n, n), dtype=int)
    for u, v in edges:
        laplacian[[u, v], [u, v]] += u != v
        laplacian[[u, v], [v, u]] -= u != v
    return determinant(laplacian[1:, 1:].tolist())


KNOWN = [
    (lattices.honeycomb(4, 4, "torus"), 103079215104),
    (lattices.kagome(3, 3, "torus"), 8463329722368),
    (lattices.truncated_hexagonal(3, 3, "torus"), 80712601875000000),
    (lattices.truncated_square(3, 3, "torus"), 1364523024384),
    (lattices.square(5, 5, "torus"), 1562500000000),
    (lattices.triangular(4, 4, "torus"), 34359738368),
    (lattices.square(4, 4), 100352),
    (lattices.honeycomb(3, 3), 1092),
    (lattices.kagome(3, 3), 484201800),
    (lattices.square(10, 10), 5694319004079097795957215725765328371712000),
]


@pytest.mark.parametrize(("lattice", "count"), KNOWN, ids=lambda x: getattr(x, "name", None))
def test_known_lattices_by_every_method(lattice, count):
    assert count_spanning_trees(lattice) == count
    assert count_spanning_trees(lattice, method="elimination") == count
    value, error = log_spanning_trees(lattice)
    assert abs(value - math.log(count)) <= error + 1e-12 * value < 1e-9


@given(n=st.integers(1, 9), data=st.data())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_random_multigraphs_agree_with_fractions(n, data):
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=20))
    assert count_spanning_trees((n, edges)) == (kirchhoff(n, edges) if n > 1 else 1)


@pytest.mark.parametrize("pbc", [(False, True), (True, False)])
@pytest.mark.parametrize(
    "name", ["triangular", "honeycomb", "kagome", "martini", "king", "3-12-12", "triangular-kagome"]
)
def test_cylinders_by_strips_and_by_elimination(name, pbc):
    for extent in ((1, 1), (2, 1), (1, 2), (4, 2), (2, 5), (6, 7)):
        lattice = lattices.named(name, *extent, pbc=pbc, multigraph=True)
        count = count_spanning_trees(lattice, method="product")
        assert count == count_spanning_trees(lattice, method="elimination"), extent
        assert count == count_spanning_trees(lattice.graph)


def test_a_cylinder_that_falls_apart_has_no_trees():
    rings = lattices.UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (0, 1))])
    assert count_spanning_trees(lattices.Lattice(rings, (2, 5), "cylinder")) == 0
    assert count_spanning_trees(lattices.Lattice(rings, (1, 5), "cylinder")) == 5


@pytest.mark.parametrize("twist", range(5))
def test_a_twisted_torus_by_wave_vectors_and_by_elimination(twist):
    for name in ("square", "honeycomb", "kagome"):
        lattice = Lattice(UnitCell.named(name), (5, 4), "torus", twist=twist)
        assert count_spanning_trees(lattice) == count_spanning_trees(lattice, method="elimination") > 0


@pytest.mark.parametrize(
    "graph", [complete(4), complete(5), Graph(6, [(i, 3 + j) for i in range(3) for j in range(3)])]
)
@pytest.mark.parametrize("k", [1, 2])
def test_clique_insertion_multiplies_trees_by_its_closed_form(graph, k):
    n, r = graph.num_vertices, int(graph.degrees()[0])
    s = Fraction(r - 2, 2) * Fraction(r**k - 1, r - 1)
    ns = int(n * s)
    assert count_spanning_trees(clique_insert(graph, k)) == Fraction(r) ** (ns - k) * (r + 2) ** (
        ns + k
    ) * count_spanning_trees(graph)


def test_small_extents_and_loops_count_as_multigraphs():
    assert count_spanning_trees(lattices.square(1, 1, "torus", multigraph=True)) == 1
    assert count_spanning_trees(lattices.square(2, 2, "torus", multigraph=True)) == 32
    assert count_spanning_trees(lattices.square(1, 5, "torus", multigraph=True)) == 5
    assert count_spanning_trees(cycle(2, multigraph=True)) == 2
    assert count_spanning_trees((2, [(0, 0), (0, 1), (0, 1), (0, 1)])) == 3


@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_the_error_of_a_logarithm_by_cosines_holds(boundary):
    for n in (10, 5000, 100_000, 400_000, 524_288):  # a path has one tree, a ring n: most of 2n cancels
        ring = lattices.square(1, n, boundary, multigraph=True)
        value, error = log_spanning_trees(ring)
        assert abs(value - (0.0 if boundary == "free" else math.log(n))) <= error < 1e-13 * (n + 10)
    for m, n in [(1, 1), (2, 2), (2, 3), (3, 3), (2, 2000), (3, 1000), (40, 40), (100, 110)]:
        lattice = lattices.square(m, n, boundary, multigraph=True)
        value, error = log_spanning_trees(lattice)
        with mpmath.workdps(40):
            missed = abs(value - mpmath.log(count_spanning_trees(lattice)))
        assert missed <= error < 1e-10


def test_disconnected_graphs_have_none_and_a_vertex_one():
    assert count_spanning_trees((1, [])) == 1
    assert count_spanning_trees((4, [(0, 1), (2, 3)])) == 0
    assert log_spanning_trees((2, [])) == (-math.inf, 0.0)
    assert count_spanning_trees(path(50)) == 1


def test_complete_graphs_have_cayley_s_number():
    for n in (2, 3, 10, 40):
        assert count_spanning_trees(complete(n)) == n ** (n - 2)


def test_thousands_of_digits_are_no_trouble():
    by_cosines = count_spanning_trees(lattices.square(60, 60))
    assert by_cosines == count_spanning_trees(lattices.square(60, 60), method="elimination")
    assert len(_core.to_decimal(by_cosines)) == 1777
    assert abs(log_spanning_trees(lattices.square(60, 60)).value - math.log(by_cosines)) < 1e-8


def test_threads_executors_and_checkpoints_change_nothing(tmp_path):
    lattice = lattices.kagome(8, 8)
    count = count_spanning_trees(lattice, threads=1)
    assert count == count_spanning_trees(lattice, threads=3, checkpoint=tmp_path / "state")
    with ThreadPoolExecutor(2) as pool:
        assert count == count_spanning_trees(lattice, executor=pool)
    plan = _core.plan_spanning_trees((lattice.num_vertices, lattice.edges))
    assert pickle.loads(pickle.dumps(plan)).solve(Job(threads=1)) == [count]


def test_a_raising_progress_stops_the_work():
    with pytest.raises(Stopped):
        count_spanning_trees(lattices.kagome(12, 12), progress=stop_after(-1))


def test_bad_input_is_refused_with_the_argument_named():
    with pytest.raises(ValueError, match="graph"):
        count_spanning_trees((0, []))
    with pytest.raises(ValueError, match="method"):
        count_spanning_trees(lattices.kagome(3, 3), method="product")
    with pytest.raises(ValueError, match="method"):
        count_spanning_trees(complete(3), method="fkt")
    with pytest.raises(TypeError, match="method"):
        count_spanning_trees(complete(3), method=3)
    with pytest.raises(TypeError, match="graph"):
        count_spanning_trees(7)
    with pytest.raises(ValueError, match="twist"):
        Lattice(UnitCell.named("square"), (4, 4), twist=1)
    with pytest.raises(TypeError, match="twist"):
        Lattice(UnitCell.named("square"), (4, 4), "torus", twist=0.5)


def test_a_job_beyond_the_memory_limit_is_refused():
    with pytest.raises(MemoryError, match="fronts"):
        count_spanning_trees(lattices.kagome(10, 10), memory_limit=1000)
