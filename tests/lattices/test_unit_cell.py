"""Unit cells."""

import copy
import pickle

import numpy as np
import pytest

from quincunx.errors import TooLargeError
from quincunx.lattices import UnitCell
from quincunx.lattices._registry import LATTICES

UNIT = [(1, 0), (0, 1)]
CELLS = list(LATTICES)


def test_a_cell_keeps_its_numbers_as_tuples():
    cell = UnitCell(np.array(UNIT), [[0, 0], [0.5, 0.5]], [[0, 1, [0, np.int64(0)]], (1.0, 0, (1, -1))])
    assert cell.basis_vectors == ((1.0, 0.0), (0.0, 1.0))
    assert cell.site_offsets == ((0.0, 0.0), (0.5, 0.5))
    assert cell.bonds == ((0, 1, (0, 0)), (1, 0, (1, -1)))
    assert (cell.num_sites, cell.num_bonds, cell.kind) == (2, 2, None)
    assert cell.degrees() == [2, 2]
    assert repr(cell) == "<UnitCell: 2 sites, 2 bonds>"
    with pytest.raises(AttributeError):
        cell.bonds = ()


@pytest.mark.parametrize("kind", CELLS)
def test_a_named_cell_equals_one_made_of_its_numbers(kind):
    cell = UnitCell.named(kind)
    again = UnitCell(cell.basis_vectors, cell.site_offsets, cell.bonds)
    assert again == cell
    assert hash(again) == hash(cell)
    assert (cell.kind, again.kind) == (kind, None)
    assert repr(cell) == f"UnitCell.named({kind!r})"
    for original in (cell, again):
        restored = pickle.loads(pickle.dumps(original))
        assert restored == copy.deepcopy(original) == original
        assert restored.kind == original.kind
    assert cell != kind


@pytest.mark.parametrize("kind", CELLS)
def test_bonds_of_named_cells_reach_the_next_cell_at_most(kind):
    # The lattices of this name rely on it: from extent 3 on they look for no parallel edges.
    assert {abs(step) for _, _, offset in UnitCell.named(kind).bonds for step in offset} <= {0, 1}


@pytest.mark.parametrize(("kind", "degree"), [("square", 4), ("honeycomb", 3), ("kagome", 4), ("king", 8)])
def test_clique_insertion_multiplies_the_sites_by_the_degree(kind, degree):
    cell = UnitCell.named(kind)
    for k in range(4):
        inserted = cell.clique_insert(k)
        assert inserted.num_sites == cell.num_sites * degree**k
        assert set(inserted.degrees()) == {degree}
    assert cell.clique_insert(0) == cell
    assert cell.clique_insert(2) == cell.clique_insert().clique_insert()


def test_clique_insertion_knows_the_names_of_its_results():
    honeycomb = UnitCell.named("honeycomb")
    assert [honeycomb.clique_insert(k).kind for k in range(5)] == ["honeycomb", "3-12-12", "3-6-24", "3-6-12-48", None]
    bare = UnitCell(honeycomb.basis_vectors, honeycomb.site_offsets, honeycomb.bonds)
    for k in range(4):
        assert bare.clique_insert(k) == honeycomb.clique_insert(k)
    assert UnitCell.named("square").clique_insert().kind == "modified-bathroom"


def test_a_cell_without_bonds_vanishes_under_clique_insertion():
    bare = UnitCell(UNIT, [(0, 0)], [])
    assert bare.clique_insert(0) == bare
    with pytest.raises(ValueError, match="at least one site"):
        bare.clique_insert()
    dimer = UnitCell(UNIT, [(0, 0), (0.5, 0), (0.7, 0.7)], [(0, 1, (0, 0))])
    assert dimer.clique_insert(10**9).num_sites == 2


@pytest.mark.parametrize("k", [40, 2**32 - 1])
def test_a_cell_too_large_is_refused_before_it_is_made(k):
    with pytest.raises(ValueError, match=rf"`k` must be so small .* got {k}"):
        UnitCell.named("kagome").clique_insert(k)


@pytest.mark.parametrize("k", [6, 7, 9])
def test_more_tuples_than_a_cell_holds_are_refused_at_once(k):
    with pytest.raises(TooLargeError, match=rf"has {8**k} sites and {8 ** (k + 1) // 2} bonds"):
        UnitCell.named("king").clique_insert(k)
    assert UnitCell.named("king").clique_insert(2).num_sites == 64


@pytest.mark.parametrize(
    ("basis", "sites", "bonds", "message"),
    [
        ([(1, 2), (2, 4)], [(0, 0)], [], "`basis_vectors` must be finite and independent"),
        ([(1, 0), (0, np.nan)], [(0, 0)], [], "`basis_vectors` must be finite"),
        ([(1, 0), (0, 1), (1, 1)], [(0, 0)], [], "`basis_vectors` must have shape"),
        (UNIT, [(0, np.inf)], [], "`site_offsets` must be finite"),
        (UNIT, [], [], "`site_offsets` must be at least one site"),
        (UNIT, [(0, 0)], [(0, 1, (0, 0))], r"`bonds` must be between sites of the cell, got \(0, 1, \(0, 0\)\)"),
        (UNIT, [(0, 0)], [(-1, 0, (0, 1))], "`bonds` must be .*-1"),
        (UNIT, [(0, 0)], [(0, 0, (0, 0))], "`bonds` must be between two different sites"),
        (UNIT, [(0, 0)], [(0, 0, (0, 1)), (0, 0, (0, 1))], "`bonds` must be distinct"),
        (
            UNIT,
            [(0, 0)],
            [(0, 0, (1, 1)), (0, 0, (-1, -1))],
            "`bonds` must be distinct, also when one is read backwards",
        ),
        (UNIT, [(0, 0)], [(0, 0, (2**40, 1))], "`bonds` must be between"),
    ],
)
def test_bad_values_are_refused(basis, sites, bonds, message):
    with pytest.raises(ValueError, match=message):
        UnitCell(basis, sites, bonds)


@pytest.mark.parametrize(
    ("basis", "sites", "bonds", "message"),
    [
        (1, [(0, 0)], [], "`basis_vectors`"),
        ([1, 0], [(0, 0)], [], "`basis_vectors`"),
        ([("a", "b"), (0, 1)], [(0, 0)], [], "`basis_vectors`"),
        ([(True, 0), (0, 1)], [(0, 0)], [], "`basis_vectors`"),
        (UNIT, [(0, 0, 0)], [], "`site_offsets`"),
        (UNIT, None, [], "`site_offsets`"),
        (UNIT, [(0, 0)], [(0, 0)], "`bonds`"),
        (UNIT, [(0, 0)], [(0, 0, 1)], "`bonds`"),
        (UNIT, [(0, 0)], [(0, 0, (1, 0, 0))], "`bonds`"),
        (UNIT, [(0, 0)], [(0, 0, (0.5, 0))], "`bonds`"),
        (UNIT, [(0, 0)], [(0, True, (1, 0))], "`bonds`"),
        (UNIT, [(0, 0)], "bonds", "`bonds`"),
        (UNIT, [(0, 0)], 3, "`bonds`"),
    ],
)
def test_bad_types_are_refused(basis, sites, bonds, message):
    with pytest.raises(TypeError, match=message):
        UnitCell(basis, sites, bonds)


def test_a_name_is_a_str_that_is_known():
    with pytest.raises(TypeError, match="`kind` must be a str, got int"):
        UnitCell.named(3)
    with pytest.raises(ValueError, match="pentagonal"):
        UnitCell.named("pentagonal")
    for wrong in (0.5, True, "2"):
        with pytest.raises(TypeError, match="`k` must be a whole number"):
            UnitCell.named("square").clique_insert(wrong)
    with pytest.raises(ValueError, match="`k` must be"):
        UnitCell.named("square").clique_insert(-1)
