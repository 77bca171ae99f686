"""Whole records under privatize: each row of counts into an L1 ball, by a rule that looks at that row alone.

A row r of sum s > A becomes the differences of ``floor(C A / s)``, C its partial sums: whole numbers next to
``r A / s``, of sum A. Two rows of the ball differ by at most 2A in sum, whatever they were: that is what a replaced
record costs (A where a record is one number). The rule need not be, and is not, a contraction: of rows nearby it may
double the distance. Rows within the ball take the same work, so that time does not tell which were outside.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _core


def clip_records(counts: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """Return counts whose every row, along the first axis, has a sum of at most `bound`."""
    if not counts.size:
        return counts
    return _core.clip_records(counts.reshape(-1), counts.size // len(counts), bound).reshape(counts.shape)


def record_distance(counts: npt.NDArray[Any], bound: int) -> int:
    """Return the largest L1 distance of two clipped records."""
    numbers = int(np.prod(counts.shape[1:], dtype=object))
    return bound if numbers == 1 else 2 * bound
