"""Groups behind a symmetrization: where they come from, the labels of their orbitals, the averages over them."""

import math
from fractions import Fraction

import numpy as np

from quincunx import _core
from quincunx._types import Floats, Ints
from quincunx.graphs import AutomorphismGroup, Graph, Orbitals, hamming
from quincunx.graphs._graph import IntArray
from quincunx.leakage._checks import Exact


def as_hamming(graph: Graph) -> tuple[int, int] | None:
    """Return (length, alphabet_size) if a graph is that Hamming graph, vertex for vertex; None if not."""
    n = graph.num_vertices
    low, high = np.minimum(*graph.edges.T), np.maximum(*graph.edges.T)
    keys = np.sort((low * n + high)[low != high])
    if n < 2 or not len(keys):
        return None
    distinct = 1 + np.count_nonzero(keys[1:] != keys[:-1])
    low, high = np.divmod(keys, n)
    for length, alphabet_size in _powers(n):
        if 2 * distinct == n * length * (alphabet_size - 1):
            if alphabet_size == 2:
                differ = low ^ high
                return (length, 2) if not (differ & (differ - 1)).any() else None
            places = np.zeros(len(keys), dtype=np.int64)
            for place in range(length):
                places += low // alphabet_size**place % alphabet_size != high // alphabet_size**place % alphabet_size
            return (length, alphabet_size) if (places == 1).all() else None
    return None


def _powers(n: int) -> list[tuple[int, int]]:
    """Return the ways to write n as alphabet_size**length."""
    ways = []
    for length in range(1, n.bit_length() + 1):
        base = round(n ** (1 / length))
        ways += [(length, b) for b in (base - 1, base, base + 1) if b >= 2 and b**length == n]
    return ways


def as_hamming_group(group: AutomorphismGroup) -> tuple[int, int] | None:
    """Return (length, alphabet_size) if a group is known to be all automorphisms of that Hamming graph."""
    if not group._group.is_order_known:
        return None
    for length, alphabet_size in _powers(group.num_points):
        if group.order == math.factorial(alphabet_size) ** length * math.factorial(length):
            # A subgroup of the same order is the group.
            graph = hamming(length, alphabet_size)
            try:
                AutomorphismGroup.from_generators(group.num_points, group.generators, graph=graph)
            except ValueError:
                continue
            return length, alphabet_size
    return None


def hamming_distances(length: int, alphabet_size: int) -> Ints:
    """Return the table of distances between all words."""
    one = 1 - np.eye(alphabet_size, dtype=np.int64)
    table = np.zeros((1, 1), dtype=np.int64)
    for _ in range(length):
        table = (table[:, None, :, None] + one[None, :, None, :]).reshape(len(table) * alphabet_size, -1)
    return table


def pair_orbits(group: AutomorphismGroup, output_action: IntArray | None) -> Orbitals:
    """Return the orbits on pairs of inputs, or on pairs of inputs followed by outputs where these have an action."""
    if output_action is None:
        return group.orbitals()
    n, columns = group.num_points, output_action.shape[1]
    both = np.concatenate([group.generators, output_action + n], axis=1)
    return AutomorphismGroup.from_generators(n + columns, both).orbitals()


def average(
    matrix: Floats,
    group: AutomorphismGroup,
    words: tuple[int, int] | None,
    output_action: IntArray | None,
    out: Floats | None,
    threads: int,
) -> Floats:
    """Return the average of a matrix over a group."""
    target = np.empty_like(matrix) if out is None else out
    if words is not None and output_action is None:
        _core.average_hamming(matrix, *words, target, threads)
    else:
        _core.average_channel(matrix, pair_orbits(group, output_action)._pairs, target, threads)
    return target


def average_exact(matrix: Exact, group: AutomorphismGroup, output_action: IntArray | None) -> Exact:
    """Return the average of a matrix of fractions over a group."""
    n = len(matrix)
    labels = pair_orbits(group, output_action).labels()[:n, -len(matrix[0]) :].tolist()
    sums: dict[int, Fraction] = {}
    counts: dict[int, int] = {}
    for row, names in zip(matrix, labels, strict=True):
        for entry, name in zip(row, names, strict=True):
            sums[name] = sums.get(name, Fraction(0)) + entry
            counts[name] = counts.get(name, 0) + 1
    means = {name: total / counts[name] for name, total in sums.items()}
    return tuple(tuple(means[name] for name in names) for names in labels)
