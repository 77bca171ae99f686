"""One order of components for all chains: those that are alike have the same label.

The posterior is the same under a permutation of its components, and each chain ends up with its own. Chain c is
compared with the reference by

    score[k, l] = sum over factors of the correlation of its mean component k with the reference's component l,

and gets the permutation of largest total score, by the Hungarian method (Kuhn 1955); where asked, each draw its own.
"""

import numpy as np
import numpy.typing as npt

from quincunx._types import Floats


def best_order(tables: list[Floats], reference: list[Floats]) -> npt.NDArray[np.intp]:
    """Return which component of some tables (length, n_components) stands for each of the reference's."""
    from scipy.optimize import linear_sum_assignment

    score = sum(_correlations(one, other) for one, other in zip(reference, tables, strict=True))
    order: npt.NDArray[np.intp] = linear_sum_assignment(score, maximize=True)[1]
    return order


def _correlations(one: Floats, other: Floats) -> Floats:
    """Return the correlation of each column of a table with each of another; 0 where a column does not vary."""
    first, second = (_standardized(table) for table in (one, other))
    return first.T @ second


def _standardized(table: Floats) -> Floats:
    centered: Floats = table - table.mean(axis=0)
    norms = np.sqrt((centered * centered).sum(axis=0))
    found = np.zeros_like(centered)
    np.divide(centered, norms, out=found, where=norms > 0)
    return found
