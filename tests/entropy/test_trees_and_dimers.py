"""Growth constants of trees and dimers beside closed forms and finite tori."""

import math

import numpy as np
import pytest

from quincunx import lattices
from quincunx.counting import count_perfect_matchings, log_spanning_trees
from quincunx.entropy import dimer_entropy, spanning_tree_entropy
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
