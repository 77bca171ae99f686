"""Profiles of a grid with random diagonals: the site-by-site step shared by integers, doubles and samples.

A column of w vertices is swept from its first to its last. After some of them, y is the new part, x what is left of the
column before, and c the old symbol just passed. The word ``y_1 .. y_k c x_(k+2) .. x_w`` has no two adjacent ones and
always w + 1 symbols; the next vertex changes only the symbol at c, between its neighbors:

    0 z 0:  (z=0, z=1) <- (a + b, a + q b);        1 0 1:  a <- p a.

p is the weight of a cell whose ends new-above, old-below are both occupied, q that of the other diagonal.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx._types import Array, Ints


class Site(NamedTuple):
    """Where the words of a site are: 000 and 010 around it, and 101."""

    empty: Ints
    occupied: Ints
    crossed: Ints


class Profile(NamedTuple):
    """Words of a column of so many vertices, and what each site does to them."""

    sites: tuple[Site, ...]
    words: int
    #: Complete columns: their place with an empty symbol behind, with an occupied one (or -1), and in front.
    behind: Ints
    beside: Ints
    front: Ints
    #: Whether the first and the last symbol of a complete column are the same: a ring that was cut at a vertex.
    ring: npt.NDArray[np.bool_]


@functools.lru_cache(maxsize=16)
def profile(width: int) -> Profile:
    """Return the words of a column of `width` vertices."""
    length = width + 1
    words = [0]
    for _ in range(length):
        words = [word << 1 for word in words] + [word << 1 | 1 for word in words if not word & 1]
    place = {word: i for i, word in enumerate(sorted(words))}
    sites = []
    for k in range(width):
        bit = 1 << (width - k)  # the symbol at c, from the front
        above = bit << 1 if k else 0
        below = bit >> 1
        empty = [word for word in place if not word & (above | bit | below)]
        crossed = [word for word in place if above and word & above and word & below]
        sites.append(
            Site(
                np.array([place[word] for word in empty], dtype=np.int64),
                np.array([place[word | bit] for word in empty], dtype=np.int64),
                np.array([place[word] for word in crossed], dtype=np.int64),
            )
        )
    columns = sorted({word >> 1 for word in place})
    return Profile(
        tuple(sites),
        len(place),
        np.array([place[word << 1] for word in columns], dtype=np.int64),
        np.array([place.get(word << 1 | 1, -1) for word in columns], dtype=np.int64),
        np.array([place[word] for word in columns], dtype=np.int64),
        np.array([word >> width - 1 == word & 1 for word in columns]),
    )


#: Of the cells of a column: doubles, or integers over a common denominator.
Weights: TypeAlias = Sequence[float] | Sequence[Array] | Array


def sweep(shape: Profile, columns: Array, first: Weights, second: Weights, side: int | None = None) -> Array:
    """Return the vectors of the next column, shape (words of a column, ...).

    `first` and `second` are the weights p and q of each cell of the column, `side` multiplies a cell without a diagonal
    whose ends are both occupied (for integer weights over a common denominator).
    """
    state = np.zeros((shape.words, *columns.shape[1:]), dtype=columns.dtype)
    state[shape.front] = columns
    for k, site in enumerate(shape.sites):
        a, b = state[site.empty], state[site.occupied]
        if k:
            p, q = first[k - 1], second[k - 1]
            if side is not None:
                state *= side
                a, b = a * side, b * side
                state[site.occupied] = a + q * (b // side)
                state[site.crossed] = state[site.crossed] // side * p
            else:
                state[site.occupied] = a + q * b
                state[site.crossed] *= p
            state[site.empty] = a + b
        else:
            state[site.empty], state[site.occupied] = a + b, a + b
    last = np.where(shape.beside >= 0, shape.beside, 0)
    beside = state[last]
    beside[shape.beside < 0] = 0
    return state[shape.behind] + beside
