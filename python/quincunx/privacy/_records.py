"""Whole records under privatize: each row of counts into an L1 ball, by a rule that looks at that row alone.

A row r of sum s > A becomes the whole numbers next to ``r A / s`` from below, and the units left of A go to the largest
remainders, the first of equal ones first. Two rows of the ball differ by at most 2A in sum, whatever they were: that is
what a replaced record costs (A where a record is one number). The rule need not be, and is not, a contraction: of rows
nearby it may double the distance.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def clip_records(counts: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """Return counts whose every row, along the first axis, has a sum of at most `bound`."""
    if not counts.size:
        return counts
    rows = counts.reshape(len(counts), -1)
    # Sums may pass 64 bits. In floats, added by pairs, they err by less than 2^-40, so rows near the bound are looked
    # at exactly.
    suspects = np.flatnonzero(rows.sum(axis=1, dtype=np.float64) > bound * (1 - 2.0**-40))
    clipped: npt.NDArray[np.int64] | None = None
    for index in suspects:
        row: list[int] = rows[index].tolist()
        total = sum(row)
        if total <= bound:
            continue
        if clipped is None:
            clipped = rows.copy()
        clipped[index] = _clipped(row, total, bound)
    return counts if clipped is None else clipped.reshape(counts.shape)


def _clipped(row: list[int], total: int, bound: int) -> list[int]:
    parts = [divmod(count * bound, total) for count in row]
    result = [whole for whole, _ in parts]
    left = bound - sum(result)
    for index in sorted(range(len(row)), key=lambda i: (-parts[i][1], i))[:left]:
        result[index] += 1
    return result


def record_distance(counts: npt.NDArray[Any], bound: int) -> int:
    """Return the largest L1 distance of two clipped records."""
    numbers = int(np.prod(counts.shape[1:], dtype=object))
    return bound if numbers == 1 else 2 * bound
