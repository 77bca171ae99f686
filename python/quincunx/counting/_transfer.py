"""Transfer matrices as objects: which independent sets of one layer of a graph go with which of the next.

If every edge of a graph lies in a layer or between two that follow each other, the number of its independent sets is
``1 T_1 T_2 ... T_k 1``, with a row of ``T_i`` for each independent set of layer ``i - 1`` and a column for each of
layer ``i``.
The engines behind `count_independent_sets` never write these matrices down; here they are, for small layers.

Source: Z. Zhang (2017), thesis, sections 7.2 and 8.2.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Ints
from quincunx.graphs import Graph
from quincunx.graphs._edges import refuse_unordered
from quincunx.graphs._graph import GraphLike, as_graph

# Words of a layer are 64-bit numbers, and no matrix is as large as that anyway.
_LONGEST = 62
# Rows of a matrix at the most, 40 bytes each while they are listed: more would have no room for a dense matrix.
_MOST_STATES = 1 << 20


@dataclass(frozen=True, eq=False)
class TransferMatrices:
    """What `transfer_matrices` returns.

    Attributes
    ----------
    states : tuple of ndarray of bool, shape (states, vertices of the layer)
        For each layer its independent sets: a column for each vertex, in the order given; rows in rising order as
        binary words, the first vertex for the highest digit.
    matrices : tuple of ndarray of int64, shape (states of a layer, states of the next)
        Ones where two independent sets of neighboring layers make one, else zeros.

    See Also
    --------
    transfer_matrices
    """

    states: tuple[npt.NDArray[np.bool_], ...]
    matrices: tuple[Ints, ...]

    def count(self) -> int:
        """Return the number of independent sets of the graph: ones times all matrices times ones.

        Returns
        -------
        int
            Exact; as `count_independent_sets`.
        """
        vector = np.ones(len(self.states[-1]), dtype=object)
        for matrix in reversed(self.matrices):
            vector = matrix.astype(object) @ vector
        return int(vector.sum())


def transfer_matrices(graph: "GraphLike", layers: Iterable[Sequence[Hashable]]) -> TransferMatrices:
    """Return the transfer matrices of independent sets between the layers of a graph.

    Parameters
    ----------
    graph : Graph, lattice, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph.
    layers : iterable of sequence of int or label
        The vertices of each layer, the first for the highest digit of its words. Every vertex is in one layer, and
        every edge in a layer or between two that follow each other.

    Returns
    -------
    TransferMatrices
        The independent sets of each layer, and a matrix for every two layers that follow each other.

    Raises
    ------
    TypeError
        If `graph` is no graph, or a vertex is not a whole number.
    ValueError
        If `layers` are none, leave a vertex out or have it twice, an edge leaps over a layer, or a layer has more than
        62 vertices.
    quincunx.errors.TooLargeError
        If a layer has more than 2^20 independent sets, or the matrices do not fit into memory; before they are made.

    References
    ----------
    .. [1] Z. Zhang (2017), thesis, sections 7.2 and 8.2.

    Examples
    --------
    Two rows of a square lattice, and three of them:

    >>> from quincunx.counting import count_independent_sets, transfer_matrices
    >>> from quincunx.lattices import square
    >>> found = transfer_matrices(square(3, 2), [[0, 1], [2, 3], [4, 5]])
    >>> found.states[0].astype(int).tolist()
    [[0, 0], [0, 1], [1, 0]]
    >>> found.matrices[0].tolist()
    [[1, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> found.count() == count_independent_sets(square(3, 2)) == 17
    True
    """
    found = as_graph(graph)
    listed: list[Any] = list(layers) if isinstance(layers, Iterable) else [layers]
    if wrong := [layer for layer in listed if not isinstance(layer, Iterable)]:
        raise TypeError(f"`layers` must hold the vertices of each layer, got {type(wrong[0]).__name__}")
    for unordered in (layers, *listed):
        refuse_unordered(unordered, "layers")
    numbers = [[found._vertex(v, "layers") for v in layer] for layer in listed]
    if not numbers:
        raise ValueError("`layers` must hold at least one layer, got none")
    every = [v for layer in numbers for v in layer]
    twice = len(set(every)) < len(every)
    if twice or len(every) < found.num_vertices:
        raise ValueError(f"`layers` must hold each vertex once, got {'one twice' if twice else 'not all'}")
    longest = max(map(len, numbers))
    if longest > _LONGEST:
        raise ValueError(f"`layers` must have at most {_LONGEST} vertices each, got {longest}")
    words = [_words(found, layer) for layer in numbers]
    sizes = [len(a) * len(b) for a, b in pairwise(words)]
    _check.room(8 * sum(sizes) + 9 * max(sizes, default=0), "an array of transfer matrices")
    bits = {v: (place, 1 << (len(layer) - 1 - i)) for place, layer in enumerate(numbers) for i, v in enumerate(layer)}
    # For each vertex its neighbors in the next layer, as a word.
    ahead = dict.fromkeys(range(found.num_vertices), 0)
    for u, v in found.edges.tolist():
        (before, _), (after, bit) = bits[u], bits[v]
        if abs(before - after) > 1:
            raise ValueError(
                f"`layers` must have no edge beyond the next, got {(found.labels[u], found.labels[v])!r} "
                f"between layers {before} and {after}"
            )
        if after == before + 1:
            ahead[u] |= bit
        elif before == after + 1:
            ahead[v] |= bits[u][1]
    matrices = []
    for layer, (here, there) in zip(numbers, pairwise(words), strict=False):
        taken = np.zeros(len(here), dtype=np.int64)
        for v in layer:
            taken |= np.where(here & bits[v][1], ahead[v], 0)
        matrix = np.empty((len(here), len(there)), dtype=np.int64)
        rows = 1 + (1 << 20) // len(there)  # soon done, so that an interrupt is heard between
        for first in range(0, len(here), rows):
            np.equal(taken[first : first + rows, None] & there, 0, out=matrix[first : first + rows], casting="unsafe")
        matrices.append(matrix)
    shown = [(w[:, None] >> np.arange(len(layer))[::-1]) & 1 for w, layer in zip(words, numbers, strict=True)]
    return TransferMatrices(tuple(w.astype(np.bool_) for w in shown), tuple(matrices))


def _words(graph: Graph, layer: list[int]) -> Ints:
    """Return the independent sets of a layer as numbers in rising order, the first vertex for the highest digit."""
    inside = {v: i for i, v in enumerate(layer)}
    before = [0] * len(layer)  # earlier neighbors of each vertex; itself where it has a loop
    looped = set()
    for u, v in graph.edges.tolist():
        if u in inside and v in inside:
            first, second = sorted((inside[u], inside[v]))
            if first == second:
                looped.add(first)
            before[second] |= 1 << first
    words = np.zeros(1, dtype=np.int64)
    shape = np.zeros(1, dtype=np.int64)  # the same sets, the first vertex for the lowest digit
    for i in range(len(layer)):
        free = (shape & before[i]) == 0 if i not in looped else np.zeros(len(words), dtype=np.bool_)
        states = len(words) + int(free.sum())
        _check.room(40 * states, f"a list of {states} or more independent sets of a layer", 40 * _MOST_STATES)
        words = np.concatenate([words << 1, words[free] << 1 | 1])
        shape = np.concatenate([shape, shape[free] | (1 << i)])
        order = np.argsort(words)
        words, shape = words[order], shape[order]
    return words
