"""Lattices: unit cells, finite lattices with a boundary, clique insertion, drawing."""

from quincunx.lattices._clique import clique_insert
from quincunx.lattices._cut import aztec_diamond, four_eight_eight, generalized_aztec, triangulated_grid
from quincunx.lattices._draw import draw
from quincunx.lattices._lattice import Lattice
from quincunx.lattices._named import (
    NAMES,
    honeycomb,
    kagome,
    king,
    martini,
    named,
    square,
    triangular,
    triangular_kagome,
    truncated_hexagonal,
    truncated_square,
)
from quincunx.lattices._unit_cell import UnitCell

__all__ = [
    "NAMES",
    "Lattice",
    "UnitCell",
    "aztec_diamond",
    "clique_insert",
    "draw",
    "four_eight_eight",
    "generalized_aztec",
    "honeycomb",
    "kagome",
    "king",
    "martini",
    "named",
    "square",
    "triangular",
    "triangular_kagome",
    "triangulated_grid",
    "truncated_hexagonal",
    "truncated_square",
]
