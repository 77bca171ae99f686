"""Growth constants of trees and dimers beside closed forms and finite tori."""

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from quincunx import lattices
from quincunx.counting import count_perfect_matchings, log_spanning_trees
from quincunx.entropy import dimer_entropy, spanning_tree_entropy
from quincunx.entropy._jensen import pieces
from quincunx.graphs import path
from quincunx.lattices import Lattice, UnitCell

TREES = {
    "square": 1.16624361612327512060,
    "triangular": 1.61532973609725257050,
    "honeycomb": 0.80766486804862628523,
    "kagome": 1.13569640177510252380,
    "4-8-8": 0.786684275378832179,
    "king": 1.94373936020545853,
    "martini": 0.750406024304285797,
    "3-12-12": 0.72056332286657710608,
    "3-6-24": 0.69152947447256071303,
    "3-6-12-48": 0.68185152500788858201,
    "modified-bathroom": 1.08607436161780518510,
    "triangular-kagome": 1.077628704987070,
}
DIMERS = {
    "square": 0.583121808061637560,
    "honeycomb": 0.323065947219450514,
    "4-8-8": 0.376995650569878,
    "triangular": 0.857189074929918,
    "kagome": 2 * math.log(2) / 3,
    "martini": 0.161532973609725,
    "3-12-12": math.log(2) / 3,
    "3-6-24": math.log(2) / 3,
}


@pytest.mark.parametrize("name", TREES)
def test_tree_constants_to_fifteen_digits(name):
    value, error = spanning_tree_entropy(name)
    assert abs(value - TREES[name]) <= error + 6e-16
    assert error < 2e-14


@pytest.mark.parametrize("name", DIMERS)
def test_dimer_constants(name):
    value, error = dimer_entropy(name, per="dimer")
    assert abs(value - DIMERS[name]) <= error + 1e-15
    assert error < 1e-13


def unnamed(name):
    cell = UnitCell.named(name)
    return UnitCell(cell.basis_vectors, cell.site_offsets, cell.bonds)


@pytest.mark.parametrize("name", ["square", "triangular", "honeycomb", "kagome", "3-12-12", "modified-bathroom"])
def test_quadratures_of_trees_agree_with_closed_forms_within_their_error(name):
    closed, found = spanning_tree_entropy(name), spanning_tree_entropy(unnamed(name))
    assert closed.error < 2e-15
    assert abs(closed.value - TREES[name]) <= closed.error
    assert abs(found.value - closed.value) <= found.error + closed.error
    assert found.error < 3e-14


@pytest.mark.parametrize("name", ["square", "honeycomb", "martini", "kagome", "3-12-12"])
def test_quadratures_of_dimers_agree_with_closed_forms_within_their_error(name):
    closed, found = dimer_entropy(name), dimer_entropy(unnamed(name))
    assert closed.error < 1e-15
    assert abs(found.value - closed.value) <= found.error + closed.error
    assert found.error < 1e-13


def test_a_cell_of_one_s_own_and_its_double_have_one_constant():
    doubled = UnitCell(
        [(2, 0), (0, 1)], [(0, 0), (1, 0)], [(0, 1, (0, 0)), (1, 0, (1, 0)), (0, 0, (0, 1)), (1, 1, (0, 1))]
    )
    assert spanning_tree_entropy(doubled).value == pytest.approx(TREES["square"], abs=1e-14)
    assert dimer_entropy(doubled, per="dimer").value == pytest.approx(DIMERS["square"], abs=1e-13)


def drawn_anew(cell, turn, extent):
    """Return the cell of several cells on another basis, whose rows `turn` are in terms of the old one."""
    turn, (k, m), s = np.array(turn), extent, cell.num_sites
    basis = np.array(cell.basis_vectors)
    offsets = [np.array(o) + (i, j) @ basis for i in range(k) for j in range(m) for o in cell.site_offsets]
    bonds = []
    for i, j in itertools.product(range(k), range(m)):
        for u, v, (dx, dy) in cell.bonds:
            (x, right), (y, up) = divmod(i + dx, k), divmod(j + dy, m)
            step = (x, y) @ np.rint(np.linalg.inv(turn)).astype(int)
            bonds.append(((i * m + j) * s + u, (right * m + up) * s + v, tuple(step.tolist())))
    return UnitCell(turn @ np.diag(extent) @ basis, offsets, bonds)


@pytest.mark.parametrize("name", ["square", "triangular", "honeycomb", "kagome", "martini", "4-8-8"])
@pytest.mark.parametrize(
    "turn",
    [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[1, -1], [0, 1]], [[2, 1], [1, 1]], [[1, 0], [2, 1]]],
)
def test_errors_bound_what_other_drawings_of_a_lattice_are_off(name, turn):
    cell = UnitCell.named(name)
    for extent in [(1, 1), (2, 1), (2, 2), (3, 1)]:
        if math.prod(extent) * cell.num_sites > 8:
            continue
        anew = drawn_anew(cell, turn, extent)
        for function in (spanning_tree_entropy, dimer_entropy):
            closed, found = function(name), function(anew)
            assert abs(found.value - closed.value) <= found.error + closed.error, (function, extent, found)
            # Cells of several copies may have double roots on the unit circle, which keep half of their digits.
            assert found.error < (2e-8 if extent == (2, 2) else 2e-13)


def test_pieces_are_those_of_finite_tori():
    rng = np.random.default_rng(5)
    infinite = 0
    for _ in range(200):
        s = int(rng.integers(1, 4))
        ends = {
            tuple(bond) for bond in rng.integers([0, 0, -2, -2], [s, s, 3, 3], size=(rng.integers(1, 6), 4)).tolist()
        }
        bonds = [(u, v, (x, y)) for u, v, x, y in ends if u < v or (u == v and (x, y) > (0, 0))]
        cell = UnitCell(np.eye(2), rng.random((s, 2)), bonds)
        found = [index for _, index in pieces(cell)]

        def components(size, cell=cell):
            torus = Lattice(cell, (size, size), "torus", multigraph=True)
            ends = (np.ones(torus.num_edges), torus.edges.T.astype(int))
            return connected_components(coo_array(ends, shape=(torus.num_vertices,) * 2))[0]

        if all(found):
            # A torus along multiples of every winding lattice has all pieces once.
            assert components(math.lcm(3, *found)) == sum(found)
            assert all({1} == {index for _, index in pieces(piece)} for piece, _ in pieces(cell))
            if found == [1]:
                assert spanning_tree_entropy(cell).value > 0
                continue
        else:
            infinite += 1
            assert components(12) > components(6)
        with pytest.raises(ValueError, match="connected"):
            spanning_tree_entropy(cell)
    assert 20 < infinite < 180


def test_dimers_of_pieces_are_counted_apart_whatever_crosses():
    square, triangular = (dimer_entropy(name).value for name in ("square", "triangular"))
    bonds = [(0, 0, (1, 0)), (0, 0, (0, 1)), (1, 1, (1, 0)), (1, 1, (0, 1))]
    middle = [(0, 0), (0.5, 0.5)]
    for cell, value in [
        (UnitCell(np.eye(2), middle, bonds), square),
        (UnitCell(np.eye(2), middle, [*bonds, (1, 1, (1, 1))]), (square + triangular) / 2),
        (UnitCell(np.eye(2), [(0, 0)], [(0, 0, (2, 0)), (0, 0, (0, 1))]), square),
        (UnitCell(np.eye(2), [(0, 0)], [(0, 0, (2, 1)), (0, 0, (1, 2))]), square),
    ]:
        found = dimer_entropy(cell)
        assert abs(found.value - value) <= found.error + 1e-15
        assert found.error < 2e-14
        assert dimer_entropy(cell, per="cell").value == pytest.approx(cell.num_sites * value, abs=1e-13)
    with pytest.raises(ValueError, match="two directions"):
        dimer_entropy(UnitCell(np.eye(2), [(0, 0)], [(0, 0, (1, 0))]))


def test_finite_tori_come_near():
    for name in ("kagome", "4-8-8"):
        lattice = Lattice(UnitCell.named(name), (24, 24), "torus")
        assert log_spanning_trees(lattice).value / lattice.num_vertices == pytest.approx(
            spanning_tree_entropy(name).value, abs=0.01
        )
    lattice = lattices.triangular(10, 10, "torus")
    assert math.log(count_perfect_matchings(lattice)) / 100 == pytest.approx(
        dimer_entropy("triangular").value, abs=0.02
    )


def test_units():
    value = dimer_entropy("honeycomb", per="dimer").value
    assert dimer_entropy("honeycomb").value == pytest.approx(value / 2)
    assert dimer_entropy("honeycomb").growth_constant == pytest.approx(math.exp(value / 2))
    assert dimer_entropy("honeycomb", per="cell").value == pytest.approx(value)
    assert dimer_entropy(lattices.kagome(3, 3), per="cell").value == pytest.approx(1.5 * DIMERS["kagome"])


def test_bad_input_is_refused_with_the_argument_named():
    for name in ("king", "modified-bathroom"):
        with pytest.raises(ValueError, match="planar"):
            dimer_entropy(name)
    with pytest.raises(ValueError, match="per"):
        dimer_entropy("square", per="site")
    with pytest.raises(ValueError, match="`lattice` must be one of"):
        spanning_tree_entropy("hexagon")
    for function in (spanning_tree_entropy, dimer_entropy):
        with pytest.raises(TypeError, match="lattice"):
            function(path(3))
    alone = UnitCell(np.eye(2), [(0, 0), (0.5, 0.5)], [(0, 0, (1, 0)), (0, 0, (0, 1))])
    with pytest.raises(ValueError, match="connected"):
        spanning_tree_entropy(alone)
