"""Exact counts: independent sets, their polynomial and partition function, spanning trees, matchings, colorings.

Every count is a Python int, every value at a rational activity a Fraction: nothing is ever rounded unless a float is
asked for, and then it carries a proved error. Each result is verified by one prime more than its proved bound asks for.
"""

from quincunx.counting._clusters import (
    TuttePolynomial,
    chromatic_polynomial,
    potts_partition_function,
    potts_polynomial,
    tutte_polynomial,
)
from quincunx.counting._hard_core import FloatResult, FloatResults, hard_core
from quincunx.counting._independent_sets import (
    CostEstimate,
    count_independent_sets,
    estimate_cost,
    independence_polynomial,
)
from quincunx.counting._matchings import (
    count_matchings,
    count_perfect_matchings,
    log_matchings,
    log_perfect_matchings,
    matching_polynomial,
)
from quincunx.counting._observables import (
    IndependenceNumber,
    edge_probabilities,
    expected_size,
    independence_number,
    occupation_probabilities,
    size_distribution,
)
from quincunx.counting._random import random_independent_set, random_perfect_matching, random_spanning_tree
from quincunx.counting._residues import combine_residues, primes, residue
from quincunx.counting._spanning_trees import count_spanning_trees, log_spanning_trees
from quincunx.counting._table import IndependentSetTable, independent_set_table
from quincunx.counting._transfer import TransferMatrices, transfer_matrices

__all__ = [
    "CostEstimate",
    "FloatResult",
    "FloatResults",
    "IndependenceNumber",
    "IndependentSetTable",
    "TransferMatrices",
    "TuttePolynomial",
    "chromatic_polynomial",
    "combine_residues",
    "count_independent_sets",
    "count_matchings",
    "count_perfect_matchings",
    "count_spanning_trees",
    "edge_probabilities",
    "estimate_cost",
    "expected_size",
    "hard_core",
    "independence_number",
    "independence_polynomial",
    "independent_set_table",
    "log_matchings",
    "log_perfect_matchings",
    "log_spanning_trees",
    "matching_polynomial",
    "occupation_probabilities",
    "potts_partition_function",
    "potts_polynomial",
    "primes",
    "random_independent_set",
    "random_perfect_matching",
    "random_spanning_tree",
    "residue",
    "size_distribution",
    "transfer_matrices",
    "tutte_polynomial",
]
