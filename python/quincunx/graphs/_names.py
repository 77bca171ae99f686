"""What a caller calls the vertices and edges of a graph: the names that answers come back in."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from quincunx._tables import is_network
from quincunx._types import Ints
from quincunx.graphs._graph import Graph

T = TypeVar("T")


class Names:
    """The names of the vertices and edges of a graph, as it was given.

    A networkx graph, and a graph with labels of its own, has names: vertices go by their labels, edges by pairs of
    them, or with a key behind where there are parallel edges, as networkx names them. All others go by numbers.
    """

    def __init__(self, given: object, graph: Graph) -> None:
        self._given, self._graph = given, graph
        self.own = is_network(given) or graph._labels is not None

    @cached_property
    def edge_names(self) -> list[tuple[Hashable, ...]]:
        """The name of each edge."""
        if is_network(self._given):
            return list(self._given.edges)
        labels, pairs = self._graph.labels, self._graph.edges.tolist()
        ends = [(labels[u], labels[v]) for u, v in pairs]
        low = [(min(pair), max(pair)) for pair in pairs]
        if len(set(low)) == len(low):
            return list(ends)
        key: Counter[tuple[int, int]] = Counter()
        names: list[tuple[Hashable, ...]] = []
        for pair, both in zip(ends, low, strict=True):
            names.append((*pair, key[both]))
            key[both] += 1
        return names

    def vertices(self, numbers: Iterable[int]) -> tuple[Hashable, ...] | Ints:
        """Return vertices as a tuple of labels, or an array of numbers."""
        return self._named(self._graph.labels, numbers)

    def edges(self, numbers: Iterable[int]) -> tuple[Hashable, ...] | Ints:
        """Return edges as a tuple of names, or an array of numbers."""
        return self._named(self.edge_names if self.own else (), numbers)

    def _named(self, names: Sequence[Hashable], numbers: Iterable[int]) -> tuple[Hashable, ...] | Ints:
        found = np.fromiter(numbers, dtype=np.int64)
        return tuple(names[number] for number in found.tolist()) if self.own else found

    def by_vertex(self, values: Sequence[T]) -> dict[Hashable, T] | Sequence[T]:
        """Return a value for each vertex as a dict by label, or as they are."""
        return dict(zip(self._graph.labels, values, strict=True)) if self.own else values

    def by_edge(self, values: Sequence[T]) -> dict[Hashable, T] | Sequence[T]:
        """Return a value for each edge as a dict by name, or as they are."""
        return dict(zip(self.edge_names, values, strict=True)) if self.own else values

    @cached_property
    def _numbers(self) -> dict[tuple[Hashable, ...], int]:
        """The number of each edge by its name, read in either direction; without a key the first."""
        found: dict[tuple[Hashable, ...], int] = {}
        for number, name in enumerate(self.edge_names):
            u, v, *key = name
            for pair in ((u, v), (v, u)):
                found.setdefault((*pair, *key), number)
                found.setdefault(pair, number)
        return found

    def edge_numbers(self, chosen: Iterable[tuple[Hashable, ...]], argument: str) -> list[int]:
        """Return the numbers of edges that a caller named."""
        found = []
        for edge in chosen:
            try:
                found.append(self._numbers[edge])
            except (KeyError, TypeError):
                raise ValueError(f"`{argument}` must hold edges by their ends, got {edge!r}") from None
        return found
