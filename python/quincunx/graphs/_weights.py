"""Weights of edges: numbers for each, or whole numbers of parallel edges over a common denominator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from quincunx import _check
from quincunx._check import Number
from quincunx._tables import is_sparse, summed
from quincunx._types import Array, ByLabel, Ints
from quincunx.graphs._graph import Graph, GraphLike, as_graph
from quincunx.graphs._names import Names
from quincunx.graphs._others import library_of

if TYPE_CHECKING:
    import scipy.sparse

# So many parallel edges are laid at the most: 16 MB of them; not tuned.
_MOST = 1 << 20


class _NotSaid:
    """What `weight` is where nothing is said of it."""

    def __repr__(self) -> str:
        return "<not said>"


NOT_SAID: Final = _NotSaid()
#: What edges weigh: an attribute of other libraries, "weight" for the entries of a sparse matrix, a number for each, or
#: one for each color of a lattice's edges.
Weight: TypeAlias = str | Sequence[Number] | Array | ByLabel[Number]
#: Each edge counts as one, said or not.
Unweighted: TypeAlias = _NotSaid | None


def laid(graph: GraphLike, weight: Weight | Unweighted) -> tuple[GraphLike, Fraction | int, Ints | None]:
    """Return a graph with parallel edges in the place of weights, what each of them weighs and stands for.

    Each product of k weights is then the number of ways to take k of the parallel edges, times that number to the k.
    """
    weights = weights_of(graph, weight)
    return (graph, 1, None) if weights is None else lay(as_graph(graph), weights)


def lay(graph: Graph, weights: list[Fraction]) -> tuple[Graph, Fraction | int, Ints]:
    """Return what `laid` does for a graph with the weight of each edge."""
    if not any(weights):
        return Graph(graph.num_vertices, [], graph._labels), 1, np.empty(0, dtype=np.int64)
    unit = Fraction(math.gcd(*(w.numerator for w in weights)), math.lcm(*(w.denominator for w in weights)))
    times = [int(w / unit) for w in weights]
    if sum(times) > _MOST:
        raise ValueError(
            f"`weight` must be whole multiples of one number, {_MOST} of them in all, got {_check.shown(sum(times))} "
            f"times {_check.shown(unit)}: round them, or give ints or Fractions where floats are binary fractions"
        )
    origin = np.repeat(np.arange(len(times)), times)
    return (
        Graph._trusted(graph.num_vertices, graph.edges[origin], graph._labels),
        unit if unit.denominator > 1 else int(unit),
        origin,
    )


def weights_of(graph: object, weight: object, *, negative: bool = False) -> list[Fraction] | None:
    """Return the weight of each edge, `None` where each is one; refuse weights of which nothing was said.

    Weights below 0 are refused unless `negative`.
    """
    if weight is None or weight is NOT_SAID:
        if weight is NOT_SAID:
            _refuse_silence(graph)
        return None
    found = as_graph(graph)
    values: Sequence[object]
    if isinstance(weight, str):
        if (library := library_of(graph)) is not None:
            values = library.attribute(graph, weight)
            if values and all(value is None for value in values):
                raise ValueError(f"`weight` must be an attribute of an edge, got {weight!r}")
            values = [1 if value is None else value for value in values]
        elif is_sparse(graph):
            if weight != "weight":
                raise ValueError(f"`weight` must be 'weight', None or numbers for a sparse matrix, got {weight!r}")
            values = _entries(graph, found) if found.num_edges else []  # SciPy gives no array of no entries
        else:
            raise TypeError(
                "`weight` must be a number for each edge unless `graph` is another library's or a sparse matrix, "
                f"got the name {weight!r}"
            )
    elif (isinstance(weight, np.ndarray) and weight.ndim) or (
        isinstance(weight, Sequence) and not isinstance(weight, (bytes, bytearray))
    ):
        if len(weight) != found.num_edges:
            raise ValueError(f"`weight` must have one entry for each of the {found.num_edges} edges, got {len(weight)}")
        values = list(weight)
    elif isinstance(weight, Mapping):
        values = _by_color(graph, weight)
    else:
        raise TypeError(f"`weight` must be None, the name of an attribute or numbers, got {type(weight).__name__}")
    weights = [_check.rational(value, "weight") for value in values]
    if not negative and any(w < 0 for w in weights):
        raise ValueError(f"`weight` must be at least 0, got {_check.shown(min(weights))}")
    return weights


def _by_color(graph: object, weight: ByLabel[Number]) -> list[Number]:
    """Return the weight of each edge of a lattice, by its color."""
    if (colors := getattr(graph, "edge_colors", None)) is None:
        raise TypeError(
            f"`weight` by color must come with a lattice, whose edges have colors, got {type(graph).__name__}"
        )
    every = colors.tolist()
    if missing := set(every) - weight.keys():
        raise ValueError(
            f"`weight` must have a number for each color of an edge, got none for {min(missing, key=str)!r}"
        )
    return [weight[color] for color in every]


def _refuse_silence(graph: object) -> None:
    """Refuse a graph of another library or a sparse matrix whose weights would be ignored without a word."""
    edge: Sequence[object] | None = None
    value: object = 1
    if (library := library_of(graph)) is not None:
        values = enumerate(library.attribute(graph, "weight"))
        place, value = next(((place, value) for place, value in values if value is not None and value != 1), (None, 1))
        if place is not None:
            edge = Names(graph, as_graph(graph)).edge_names[place]
    elif is_sparse(graph):
        entries = summed(graph, "graph").tocoo()
        # A loop is 1 or 2, as in networkx or `Graph.to_scipy`.
        plain = (entries.data == 0) | (entries.data == 1) | ((entries.data == 2) & (entries.row == entries.col))
        if not plain.all():
            first = int(np.argmin(plain))
            edge, value = (int(entries.row[first]), int(entries.col[first])), entries.data[first].item()
    if edge is not None:
        raise ValueError(
            f'`weight` must be said for a graph with weights: weight="weight" counts each edge by its weight, '
            f"weight=None as one; got {value!r} at {tuple(edge)!r}"
        )


def _entries(matrix: scipy.sparse.sparray, graph: Graph) -> list[Number]:
    """Return the entry of a matrix for each edge, half of it for a loop: what both triangles say, or one alone."""
    rows, (u, v) = summed(matrix, "graph").tocsr(), graph.edges.T
    there, back = (np.asarray(rows[ends]).ravel() for ends in ((u, v), (v, u)))
    wrong = (there != back) & (there != 0) & (back != 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"`graph` must be symmetric or one triangle of a matrix to have weights, got {there[i]} at "
            f"{(int(u[i]), int(v[i]))} and {back[i]} at {(int(v[i]), int(u[i]))}"
        )
    values = np.where(there != 0, there, back).tolist()
    return [_check.rational(w, "weight") / 2 if loop else w for w, loop in zip(values, (u == v).tolist(), strict=True)]
