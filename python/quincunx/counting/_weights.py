"""Weights of edges: whole numbers of parallel edges, over a common denominator."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx.counting._activities import Number, rational
from quincunx.counting._problem import as_listed
from quincunx.graphs import Graph
from quincunx.graphs._graph import _is_networkx

if TYPE_CHECKING:
    from quincunx.graphs._graph import GraphLike

# So many parallel edges are laid at the most.
_MOST = 1 << 20


class _NotSaid:
    """What `weight` is where nothing is said of it."""

    def __repr__(self) -> str:
        return "<not said>"


NOT_SAID: Final = _NotSaid()
#: What edges weigh: an attribute of networkx, or a number for each.
Weight: TypeAlias = str | Sequence[Number] | npt.NDArray[Any]
#: Each edge counts as one, said or not.
Unweighted: TypeAlias = _NotSaid | None


def laid(graph: "GraphLike", weight: "Weight | Unweighted") -> tuple["GraphLike", Fraction | int]:
    """Return a graph with parallel edges in the place of weights, and what each of its edges weighs.

    Each product of k weights is then the number of ways to take k of the parallel edges, times that number to the k.
    """
    if weight is NOT_SAID:
        _refuse_silence(graph)
        return graph, 1
    if weight is None:
        return graph, 1
    found = as_listed(graph)
    weights = _weights(graph, found, weight)
    if not any(weights):
        return Graph(found.num_vertices, []), 1
    unit = Fraction(math.gcd(*(w.numerator for w in weights)), math.lcm(*(w.denominator for w in weights)))
    times = [int(w / unit) for w in weights]
    if sum(times) > _MOST:
        raise ValueError(
            f"`weight` must be whole multiples of one number, {_MOST} of them in all, got {sum(times)} times {unit}: "
            "round them, or give ints or Fractions where floats are binary fractions"
        )
    edges = np.repeat(found.edges, np.array(times), axis=0)
    return Graph._trusted(found.num_vertices, edges), unit if unit.denominator > 1 else int(unit)


def _refuse_silence(graph: object) -> None:
    """Refuse a networkx graph whose weights would be ignored without a word."""
    if _is_networkx(graph):
        for *edge, value in graph.edges(data="weight", default=1):
            if value != 1:
                raise ValueError(
                    f'`weight` must be said for a graph with weights: weight="weight" counts each edge by its weight, '
                    f"weight=None as one; got {value!r} at {tuple(edge)!r}"
                )


def _weights(graph: object, found: Graph, weight: object) -> list[Fraction]:
    """Return the weight of each edge: an attribute of a networkx graph, or one number for each edge."""
    if isinstance(weight, str):
        if not _is_networkx(graph):
            raise TypeError(
                f"`weight` must be a number for each edge unless `graph` is networkx's, got the name {weight!r}"
            )
        values = [value for *_, value in graph.edges(data=weight)]
        if values and all(value is None for value in values):
            raise ValueError(f"`weight` must be an attribute of an edge, got {weight!r}")
        values = [1 if value is None else value for value in values]
    elif isinstance(weight, (Sequence, np.ndarray)) and not isinstance(weight, (bytes, bytearray)):
        if len(weight) != found.num_edges:
            raise ValueError(f"`weight` must have one entry for each of the {found.num_edges} edges, got {len(weight)}")
        values = list(weight)
    else:
        raise TypeError(f"`weight` must be None, the name of an attribute or numbers, got {type(weight).__name__}")
    weights = [rational(value, "weight") for value in values]
    if any(w < 0 for w in weights):
        raise ValueError(f"`weight` must be at least 0, got {min(weights)}")
    return weights
