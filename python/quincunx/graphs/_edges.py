"""What every graph is made of: a number of vertices, an array of edges, and labels or none; all checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Ints

#: The core numbers vertices in 32 bits.
MOST_VERTICES = 2**32 - 1


class EdgeList:
    """Vertices, edges and labels, and what was made of them once."""

    __slots__ = ("_canonical", "_edges", "_index", "_labels", "_num_vertices", "_rows")

    _num_vertices: int
    _edges: Ints
    _labels: tuple[Hashable, ...] | None
    _canonical: bytes | None
    _index: dict[Hashable, int] | None
    _rows: tuple[Ints, Ints] | None

    def _fill(self, n: int, edges: Ints, labels: Iterable[Hashable] | None) -> None:
        edges.setflags(write=False)
        self._num_vertices = n
        self._edges = edges
        self._labels = distinct(labels, n)
        self._canonical = self._index = self._rows = None

    @classmethod
    def _trusted(cls, n: int, edges: Ints, labels: Iterable[Hashable] | None = None) -> Self:
        """Take over arrays that are known to be right."""
        graph = cls.__new__(cls)
        graph._fill(n, edges, labels)
        return graph

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self._num_vertices

    @property
    def num_edges(self) -> int:
        """Number of edges, parallel ones counted one by one."""
        return len(self._edges)

    @property
    def edges(self) -> Ints:
        """The ends of the edges, in the order given: read-only int64 array of shape ``(num_edges, 2)``."""
        return self._edges

    @property
    def labels(self) -> Sequence[Hashable]:
        """The names of the vertices; ``range(n)`` if they have none of their own."""
        return range(self._num_vertices) if self._labels is None else self._labels

    def _sorted_keys(self) -> npt.NDArray[np.uint64]:
        """Return the edges as numbers, without the order and direction they were given in."""
        return np.sort(keys_of(np.sort(self._edges, axis=1), self._num_vertices))


def checked_edges(n: object, edges: object) -> tuple[int, Ints]:
    """Return the number of vertices and a fresh array of edges, or raise."""
    n = _check.whole(n, "n", maximum=MOST_VERTICES)
    if not isinstance(edges, (np.ndarray, Sequence)) and not hasattr(edges, "__array__"):
        if not isinstance(edges, Iterable):
            raise TypeError(f"`edges` must hold pairs of vertices, got {type(edges).__name__}")
        edges = list(edges)
    try:
        array = np.array(_check.counts(edges, "edges"))
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("`edges` must have shape (m, 2), got rows of different lengths") from None
    if array.size == 0 and array.ndim <= 2:
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"`edges` must have shape (m, 2), got {array.shape}")
    bad = (array >= n).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        rule = f"pairs of vertices in 0..{n - 1}" if n else "empty without vertices"
        raise ValueError(f"`edges` must be {rule}, got {tuple(array[row].tolist())} at row {row}")
    return n, array


def distinct(labels: Iterable[Hashable] | None, n: int) -> tuple[Hashable, ...] | None:
    """Return n different labels, `None` if they are 0..n-1."""
    if labels is None:
        return None
    refuse_unordered(labels, "labels")
    _check.fits(labels, "labels")
    names = tuple(name for name in labels)  # whatever length is claimed
    if len(names) != n:
        raise ValueError(f"`labels` must name {n} vertices, got {len(names)} labels")
    for name in names:
        try:
            hash(name)
        except TypeError:
            raise TypeError(f"`labels` must be hashable, got {type(name).__name__}") from None
    if len(set(names)) < n:
        seen: set[Hashable] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"`labels` must be different, got {twice!r} twice")
    whole = all(type(name) is int or isinstance(name, np.integer) for name in names)
    return None if whole and names == tuple(range(n)) else names


def refuse_unordered(values: object, name: str) -> None:
    """Refuse what would give its values in another order than that of the vertices, or its keys for them."""
    if isinstance(values, (set, frozenset, Mapping)):
        raise TypeError(f"`{name}` must be in an order, as a list is, got {type(values).__name__}")


def keys_of(edges: Ints, n: int) -> npt.NDArray[np.uint64]:
    """Return one number per edge, `u*n + v`, which fits 64 bits because n is below 2**32."""
    ends = edges.astype(np.uint64)
    return ends[:, 0] * np.uint64(n) + ends[:, 1]


def pairs_of(keys: npt.NDArray[np.uint64], n: int) -> Ints:
    """Return the edges with these numbers."""
    return np.stack(np.divmod(keys, np.uint64(max(n, 1))), axis=1).astype(np.int64)
