"""Which categories affine hash functions send to one value: exact counts over the whole family.

The functions are ``h(i) = ((a i + b) mod P) mod g`` for all a, b below the prime P; categories are i = 0..k-1. With
f_i = floor(a i / P) and w_i = 1 where adding b passes P once more,

    h(i) = (a i + b - P (f_i + w_i)) mod g,

so that categories meet where ``a i - P (f_i + w_i)`` agree mod g, whatever b is otherwise. Between neighbors of the
Farey sequence of order k - 1 all f_i and the order of the remainders a i mod P stay; there b has k arcs of constant w,
whose lengths are linear in a, and sums of these over the a of one residue mod g are those of arithmetic progressions.

Pairs of hashes are uniform but for 1 / P, triples are not: 0, 1 and 2 meet far more often than independent hashes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np


def cells(k: int, buckets: int) -> int:
    """Return a bound on how many pieces of the family are looked at: fractions, arcs and residues."""
    return ((k - 1) * k // 2 + 1) * k * buckets


def support_counts(k: int, buckets: int, prime: int) -> dict[int, int]:
    """Return of how many functions and values together each set of categories is all that is sent to the value.

    Sets are numbers whose bit i says whether category i is among them. ``2 <= k < prime``, ``buckets >= 2``. Costs
    `cells` steps, each of some k**2 vectorized operations.
    """
    found: Counter[int] = Counter()
    found[2**k - 1] += prime  # a = 0
    found[0] += prime * (buckets - 1)
    residues, places = np.arange(buckets), np.arange(k)
    bits = 1 << places
    low = (0, 1)
    for high in _farey(k - 1):
        first, last = low[0] * prime // low[1] + 1, -(-high[0] * prime // high[1]) - 1
        # At the mediant no remainder is that of another category.
        top, bottom = low[0] + high[0], low[1] + high[1]
        floors = [i * top // bottom for i in range(k)]
        order = sorted(range(k), key=lambda i: -(i * top % bottom))
        sums = [_progression(first, last, int(residue), buckets) for residue in residues]
        passed = np.array(floors)
        for place, i in enumerate(order):
            # From where the category before passes P, or 0, to where i does: remainder before, or P, less that of i.
            before = order[place - 1] if place else None
            slope = (0 if before is None else before) - i
            constant = prime * (floors[i] + (1 if before is None else -floors[before]))
            keys = (residues[:, None] * places - (prime % buckets) * passed) % buckets
            same = keys[:, :, None] == keys[:, None, :]
            sets = same @ bits
            leading = ~np.tril(same, -1).any(axis=2)
            for row, leads, (number, total) in zip(sets, leading, sums, strict=True):
                if weight := slope * total + constant * number:
                    blocks = row[leads].tolist()
                    for block in blocks:
                        found[block] += weight
                    found[0] += weight * (buckets - len(blocks))
            passed[i] += 1
        low = high
    return {support: number for support, number in sorted(found.items()) if number}


def _farey(order: int) -> list[tuple[int, int]]:
    """Return the Farey sequence of an order after 0/1."""
    found, (a, b, c, d) = [], (0, 1, 1, order)
    while c <= order:
        found.append((c, d))
        step = (order + b) // d
        a, b, c, d = c, d, step * c - a, step * d - b
    return found


def _progression(first: int, last: int, residue: int, step: int) -> tuple[int, int]:
    """Return how many whole numbers of a range have a residue, and their sum."""
    start = first + (residue - first) % step
    number = max((last - start) // step + 1, 0)
    return number, number * start + step * number * (number - 1) // 2
