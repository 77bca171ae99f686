"""Resistances: the Kirchhoff index, its mean, and the resistance between two vertices, as floats or exactly.

With mu the eigenvalues of the Laplacian, Kf = n sum over mu > 0 of 1/mu = e_{n-2}(mu)/tau, where tau is the number of
spanning trees and e_{n-2}, an elementary symmetric function, is an integer. With R the inverse of the Laplacian without
one vertex, Kf = n tr(R) - 1' R 1 and the resistance between u and v is R_uu + R_vv - 2 R_uv. The integers tau and
tau Kf are found modulo primes, as many as proved bounds ask for and one to spare.
"""

import sys
import warnings
from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from quincunx import _check, _core
from quincunx._job import Job
from quincunx._types import Floats, Ints
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike, as_graph
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, lay, weights_of
from quincunx.lattices import Lattice
from quincunx.spectra._bloch import adjacency_of, components, eigenvalues, laplacian_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Spectra whose second eigenvalue is not this share of the largest do not tell it to 1e-7, and the relative error of a
#: resistance by a sparse solve.
_CLOSE, _ERROR = 1e-7, 1e-10


@overload
def kirchhoff_index(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = ..., invert_weight: bool = ..., exact: Literal[False] = False
) -> float: ...
@overload
def kirchhoff_index(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = ..., invert_weight: bool = ..., exact: Literal[True]
) -> Fraction: ...
def kirchhoff_index(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, invert_weight: bool = True, exact: bool = False
) -> float | Fraction:
    """Compute the Kirchhoff index: the sum of the resistances between all pairs of vertices.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Connected. Every edge is a resistor, of one ohm unless `weight` says otherwise; loops carry no current.
    weight : None, str or sequence of number, optional
        The resistance of each edge, > 0: the name of an attribute of the edges of a networkx graph (1 where an edge has
        none of that name), ``"weight"`` for the entries of a sparse matrix, or a number for each edge in order. `None`
        counts each edge as one ohm. Where nothing is said, a networkx graph with an attribute ``"weight"`` that is not
        1 is refused, and so is a sparse matrix with such an entry.
    invert_weight : bool, default True
        As in networkx: False says that weights are conductances, >= 0, as spanning trees take them.
    exact : bool, default False
        Whether to return a Fraction.

    Returns
    -------
    float or Fraction
        A float from the spectrum, with a relative error below 1e-7 (on tori with 10**5 cells in a line 1e-6, with 10**6
        1e-4), or the exact value.

    Raises
    ------
    ValueError
        If the graph has no vertex or is disconnected, where the value is infinite; if weights are not said, or out of
        range, or with `exact` conductances are more than 2**20 times the largest number of which all are multiples.
    TooLargeError
        If an elimination does not fit the memory, or as `spectrum`.
    TypeError
        If `graph` is none of these.

    Notes
    -----
    Where the second eigenvalue is below 1e-7 of the largest, as of resistances of very different sizes, the float comes
    from an elimination without subtractions.

    Exactly, with tau spanning trees and L the Laplacian without one vertex: ``det(L + t*(n*I - J)) = tau + t*tau*Kf +
    ...``, modulo ``p**2`` at ``t = p``, one sparse elimination for each 27 bits of the answer. It takes about ten times
    as long as counting the trees: a second for a square grid of 50 x 50.

    References
    ----------
    .. [1] D. Klein, M. Randic (1993), Resistance distance, J. Math. Chem. 12.

    Examples
    --------
    >>> from quincunx.graphs import complete
    >>> from quincunx.lattices import clique_insert
    >>> from quincunx.spectra import kirchhoff_index
    >>> kirchhoff_index(clique_insert(complete(4)), exact=True)
    Fraction(301, 5)
    """
    found, conductances = _connected(graph, weight, invert_weight, exact)
    n = found.num_vertices
    if n == 1:
        return Fraction(0) if exact else 0.0
    if exact:
        found, unit = _in_units(found, conductances)
        trees = _trees(n, found.edges)
        return Fraction(_core.trees_times_index(n, found.edges, trees, Job()), trees) / unit
    values = np.sort(eigenvalues(graph if isinstance(graph, Lattice) else found, True, conductances))
    with np.errstate(over="ignore", divide="ignore"):
        if (isinstance(graph, Lattice) and conductances is None) or values[1] > _CLOSE * values[-1]:
            index = float(n * (1 / values[1:]).sum())
        else:
            from scipy.linalg import solve_triangular

            # L = T D T' without the last vertex, R = W' D^-1 W, W inverse to T; tr(R) is at most Kf: little cancels.
            parts = _eliminated(adjacency_of(found, conductances), 1)[:-1, :-1]
            inverse = solve_triangular(-parts, np.eye(n - 1), lower=True, unit_diagonal=True)
            index = float(((n * (inverse**2).sum(axis=1) - inverse.sum(axis=1) ** 2) / parts.diagonal()).sum())
    if index > sys.float_info.max:
        raise ValueError(f"`weight` must leave an index within the range of a double, got {index}")
    return index


@overload
def average_resistance(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = ..., invert_weight: bool = ..., exact: Literal[False] = False
) -> float: ...
@overload
def average_resistance(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = ..., invert_weight: bool = ..., exact: Literal[True]
) -> Fraction: ...
def average_resistance(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, invert_weight: bool = True, exact: bool = False
) -> float | Fraction:
    """Compute the mean of the resistances between all pairs of vertices.

    Parameters
    ----------
    graph, weight, invert_weight, exact
        As in `kirchhoff_index`.

    Returns
    -------
    float or Fraction
        ``2*Kf/(n*(n - 1))``.

    Raises
    ------
    ValueError
        As `kirchhoff_index`, and for a single vertex, which has no pairs.
    TypeError, TooLargeError
        As `kirchhoff_index`.

    Examples
    --------
    >>> from quincunx.graphs import complete
    >>> from quincunx.spectra import average_resistance
    >>> average_resistance(complete(4), exact=True)
    Fraction(1, 2)
    """
    n = as_graph(graph).num_vertices
    if n == 1:
        raise ValueError("`graph` must have two vertices, got 1")
    index = kirchhoff_index(graph, weight=weight, invert_weight=invert_weight, exact=exact)  # type: ignore[call-overload]
    mean: float | Fraction = index * 2 / (n * (n - 1))
    return mean


@overload
def resistance_distance(
    graph: "GraphLike",
    u: Hashable,
    v: Hashable,
    *,
    weight: "Weight | Unweighted" = ...,
    invert_weight: bool = ...,
    exact: Literal[False] = False,
) -> float: ...
@overload
def resistance_distance(
    graph: "GraphLike",
    u: Hashable,
    v: Hashable,
    *,
    weight: "Weight | Unweighted" = ...,
    invert_weight: bool = ...,
    exact: Literal[True],
) -> Fraction: ...
def resistance_distance(
    graph: "GraphLike",
    u: Hashable,
    v: Hashable,
    *,
    weight: "Weight | Unweighted" = NOT_SAID,
    invert_weight: bool = True,
    exact: bool = False,
) -> float | Fraction:
    """Compute the resistance between two vertices.

    Parameters
    ----------
    graph, weight, invert_weight
        As in `kirchhoff_index`.
    u, v : vertices
        By their labels.
    exact : bool, default False
        Whether to return a Fraction.

    Returns
    -------
    float or Fraction
        Zero if the two are the same.

    Raises
    ------
    ValueError
        If the graph is disconnected, or a vertex is not there, or for weights as `kirchhoff_index`.
    TypeError, TooLargeError
        As `kirchhoff_index`.

    Notes
    -----
    One sparse solve, whose error the currents along the edges bound; where that is above 1e-10 a dense elimination
    without subtractions. Exactly, the spanning trees of the graph with the two vertices merged over those of the graph,
    both counted like `quincunx.counting.count_spanning_trees`, for any size.

    Examples
    --------
    >>> from quincunx.graphs import cycle
    >>> from quincunx.spectra import resistance_distance
    >>> resistance_distance(cycle(5), 0, 2, exact=True)
    Fraction(6, 5)
    """
    found, conductances = _connected(graph, weight, invert_weight, exact)
    a, b = found._vertex(u, "u"), found._vertex(v, "v")
    if a == b:
        return Fraction(0) if exact else 0.0
    if exact:
        found, unit = _in_units(found, conductances)
        merged = np.where(found.edges == b, a, found.edges)
        merged = np.where(merged > b, merged - 1, merged)
        trees = [_trees(found.num_vertices, found.edges), _trees(found.num_vertices - 1, merged)]
        return Fraction(trees[1], trees[0]) / unit
    from scipy.sparse.csgraph import dijkstra
    from scipy.sparse.linalg import spsolve

    adjacency, n = adjacency_of(found, conductances), found.num_vertices
    adjacency.eliminate_zeros()
    laplacian = laplacian_of(found, conductances).tocsc()
    others = np.arange(n) != b
    missing, voltage, lengths = np.eye(1, n, a)[0], np.zeros(n), adjacency.copy()
    with warnings.catch_warnings(action="ignore"):
        voltage[others] = spsolve(laplacian[others][:, others], missing[others])
        lengths.data = 1 / adjacency.data
        # What does not arrive, edge by edge. With G the inverse, V about its column of u and m missing, R is
        # V_u + V'm + m'Gm; an entry of G is at most the root of the product of two resistances to v, and these are at
        # most lengths of paths.
        rows, columns = adjacency.nonzero()
        missing -= np.bincount(rows, adjacency.data * (voltage[rows] - voltage[columns]), n)
        missing[b] = 0
        resistance = float(voltage[a] + voltage @ missing)
        if abs(missing) @ np.sqrt(dijkstra(lengths, indices=b)) < np.sqrt(_ERROR * resistance) < np.inf:
            return resistance
    order = np.append(np.flatnonzero((np.arange(n) != a) & others), [a, b])
    conductance = float(_eliminated(adjacency[order][:, order], 2)[-2, -1])
    if not conductance * sys.float_info.max >= 1:
        raise ValueError(f"`weight` must leave a resistance within the range of a double, got 1 over {conductance}")
    return 1 / conductance


def _eliminated(conductances: "csr_array", left: int) -> Floats:
    """Replace vertices but the last by what conducts between the others, without a subtraction: no digits are lost.

    Below the diagonal are their shares of each vertex, on it their sums. What is too small for a double may be all that
    joins two vertices: logarithms, which have more range and fewer digits, are taken where that arises.
    """
    n = conductances.shape[0]
    _check.room(24 * n * n, "the elimination of so many vertices")
    try:
        with np.errstate(under="raise"):
            return _pivoted(conductances.toarray(), left, np.add, np.divide, np.multiply)
    except FloatingPointError:
        with np.errstate(divide="ignore"):
            logs = _pivoted(np.log(conductances.toarray()), left, np.logaddexp, np.subtract, np.add)
        return np.exp(logs, out=logs)


def _pivoted(table: Floats, left: int, plus: np.ufunc, over: np.ufunc, times: np.ufunc) -> Floats:
    """Eliminate by the sum, the quotient and the product of numbers or of what stands for them."""
    for k in range(len(table) - left):
        row, rest = table[k, k + 1 :].copy(), table[k + 1 :, k + 1 :]
        table[k, k] = plus.reduce(row)
        table[k + 1 :, k] = over(row, table[k, k])
        plus(rest, times.outer(row, table[k + 1 :, k]), out=rest)
    return table


def _trees(n: int, edges: Ints) -> int:
    return _core.plan_spanning_trees((n, edges)).solve(Job())[0]


def _in_units(graph: Graph, conductances: list[Fraction] | None) -> tuple[Graph, Fraction | int]:
    """Return a graph whose edges are equal conductors, and what one of them conducts."""
    return (graph, 1) if conductances is None else lay(graph, conductances)[:2]


def _connected(
    graph: "GraphLike", weight: "Weight | Unweighted", invert_weight: bool, exact: bool
) -> tuple[Graph, list[Fraction] | None]:
    """Return a connected graph and the conductance of each edge, `None` where each is one; check what is asked for."""
    exact = _check.flag(exact, "exact")
    found, weights = as_graph(graph), weights_of(graph, weight)
    if _check.flag(invert_weight, "invert_weight") and weights is not None:
        if not all(weights):
            raise ValueError("`weight` must be above 0, got 0: a resistance of 0 joins its ends")
        weights = [1 / w for w in weights]
    if found.num_vertices == 0:
        raise ValueError("`graph` must have a vertex, got a graph without vertices")
    if (parts := components(found, weights)) > 1:
        raise ValueError(f"`graph` must be connected, got {parts} components: a resistance is infinite")
    if not exact and weights is not None:
        conducting = [Fraction(_check.real(w, "weight") * sys.float_info.max >= 1) for w in weights]
        if components(found, conducting) > 1:
            raise ValueError("`weight` must leave a resistance within the range of a double, got one beyond it")
    return found, weights
