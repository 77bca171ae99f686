"""Exact counts: numbers of independent sets, their polynomial, the hard-core partition function.

Every count is a Python int, every value at a rational activity a Fraction: nothing is ever rounded unless a float is
asked for, and then it carries a proved error. Each result is verified by one prime more than its proved bound asks for.
"""

from quincunx.counting._hard_core import FloatResult, hard_core
from quincunx.counting._independent_sets import (
    CostEstimate,
    count_independent_sets,
    estimate_cost,
    independence_polynomial,
)
from quincunx.counting._residues import combine_residues, primes, residue
from quincunx.counting._table import IndependentSetTable, independent_set_table

__all__ = [
    "CostEstimate",
    "FloatResult",
    "IndependentSetTable",
    "combine_residues",
    "count_independent_sets",
    "estimate_cost",
    "hard_core",
    "independence_polynomial",
    "independent_set_table",
    "primes",
    "residue",
]
