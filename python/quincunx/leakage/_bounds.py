"""Bounds of what a private channel can be worth, from the distances of the graph alone."""

import math

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Floats
from quincunx.graphs import Graph, automorphism_group, distances, sphere_sizes
from quincunx.graphs._graph import GraphLike, IntArray
from quincunx.leakage import _checks
from quincunx.leakage._parts import leakage_doc
from quincunx.leakage._solver import Deadline, linear_program

#: Of utility: for every graph, and those that hold at one vertex.
BOUNDS = ("weakest-vertex", "sphere", "relaxation")
_KINDS = (*BOUNDS, "vertex", "vertex-sphere")

#: Least power of exp(-epsilon): ratios of smaller floats, or of products of two, are lost. A floor raises no ratio.
LEAST = 1e-150


@leakage_doc
def utility_bound(graph: GraphLike, epsilon: float, kind: str = "weakest-vertex") -> float | Floats:
    """Return a bound of the chance that a private answer is guessed right.

    An epsilon-private channel on the graph, with a uniform prior on its vertices, has a Bayes vulnerability of at most
    ``max_a 1 / r_a`` where ``r_a = sum_k q**d(a, k)`` and ``q = exp(-epsilon)``.

    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph on the answers, not that on the databases (see `quincunx.graphs.induced_graph`).
    epsilon : float
        In nats, >= 0; may be infinite.
    kind : {"weakest-vertex", "sphere", "relaxation", "vertex", "vertex-sphere"}
        The first three are bounds for every graph. "weakest-vertex" is the one above. "sphere" replaces all spheres
        around a vertex by the smallest. "relaxation" is the linear program ``max mean(x), sum_k q**d(h, k) x_k <= 1``,
        the sharpest of them. "vertex" and "vertex-sphere" give ``1 / r_a`` and its coarser form for each vertex ``a``:
        these are bounds only at the vertex where they are largest, or if all vertices have spheres of the same sizes.

    Returns
    -------
    float, or ndarray of float64, shape (n,) for the kinds that begin with "vertex"
        Off by some 1e-15 of it, in either direction; `leakage_bound` is rounded upwards.

    Raises
    ------
    TypeError, ValueError
        If `graph` is no graph or has no vertex, `epsilon` is negative, or `kind` is unknown.

    {alvim}
       Stated there for one vertex of a symmetric graph.

    Examples
    --------
    >>> import math
    >>> from quincunx.graphs import path
    >>> from quincunx.leakage import utility_bound
    >>> utility_bound(path(3), math.log(2))
    0.5714285714285714
    >>> utility_bound(path(3), math.log(2), "vertex").round(4).tolist()
    [0.5714, 0.5, 0.5714]
    """
    graph = _checks.graph_on(graph)
    level = _checks.level(epsilon)
    kind = _check.one_of(kind, "kind", _KINDS)
    if kind == "relaxation":
        return _relaxation(graph, level)
    plain = kind in ("weakest-vertex", "vertex")
    values = 1 / (sphere_sums(graph, level) if plain else _smallest_sphere_sums(graph, level))
    return values if kind.startswith("vertex") else float(values.max())


@leakage_doc
def leakage_bound(graph: GraphLike, epsilon: float, kind: str = "weakest-vertex") -> float:
    """Return a bound of what a private channel tells of its input, in bits: ``log2(N U)``.

    An epsilon-private channel on a graph of N inputs, with any outputs, has a min-capacity of at most ``log2(N U)`` for
    a bound U of the chance of a right guess under the uniform prior; that is its min-entropy leakage for the uniform
    prior, and no less than that for any other. On the Hamming graph of u records with v values it is
    ``u log2(v exp(epsilon) / (v - 1 + exp(epsilon)))``, of [1]_, which the best channel attains.

    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph on the inputs: of the leakage of a database, that on the databases.
    epsilon : float
        In nats, >= 0; may be infinite.
    kind : {"weakest-vertex", "sphere", "relaxation"}
        Which U, as for `utility_bound`.

    Returns
    -------
    float
        In bits, rounded upwards; at most ``log2(N)``, so rounded.

    Raises
    ------
    TypeError, ValueError
        As `utility_bound`.

    Notes
    -----
    Outputs for which the same guess is best may be merged: the sum over outputs of the largest probability becomes the
    trace of a private channel with N outputs, which is N times its chance of a right guess.

    {alvim}

    Examples
    --------
    >>> import math
    >>> from quincunx.graphs import hamming, path
    >>> from quincunx.leakage import leakage_bound, optimal_mechanism
    >>> round(leakage_bound(hamming(3, 2), math.log(2)), 9), round(3 * math.log2(4 / 3), 9)
    (1.245112498, 1.245112498)
    >>> best = optimal_mechanism(path(3), math.log(2))
    >>> round(best.channel.min_capacity(), 6), round(leakage_bound(path(3), math.log(2)), 6)
    (0.736966, 0.777608)
    """
    graph = _checks.graph_on(graph)
    chance = utility_bound(graph, epsilon, _check.one_of(kind, "kind", BOUNDS))
    # Distances are below n and exponents that count below 746: so far are the sums of powers off at most.
    margin = 2.0**-52 * (graph.num_vertices + 1000)
    n = graph.num_vertices
    whole = math.log2(n) if n.bit_count() == 1 else math.nextafter(math.log2(n), math.inf)
    return min(math.log2(n * chance) + margin, whole)


def powers(level: float, distance: Floats) -> Floats:
    """Return exp(-level d) or `LEAST`: 1 at distance 0 whatever the level; 0 elsewhere if that is infinite."""
    if level == math.inf:
        here: Floats = (distance == 0).astype(np.float64)
        return here
    level = min(level, 1e3)  # of more than this no power is above `LEAST`
    # A negative distance stands for none.
    return np.where(distance >= 0, np.maximum(np.exp(-level * np.maximum(distance, 0)), LEAST), 0.0)


def sphere_sums(graph: Graph, level: float) -> Floats:
    """Return r_a for all vertices."""
    sizes = sphere_sizes(graph)
    return sizes @ powers(level, np.arange(sizes.shape[1], dtype=np.float64))


def _smallest_sphere_sums(graph: Graph, level: float) -> Floats:
    """Return 1 + c_a sum_d q^d over the radii d of spheres around a, c_a the size of the smallest."""
    sizes = sphere_sizes(graph)[:, 1:]
    q = powers(level, np.arange(1, sizes.shape[1] + 1, dtype=np.float64))
    smallest = np.where(sizes > 0, sizes, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    smallest = np.where((sizes > 0).any(axis=1), smallest, 0)
    return 1 + smallest * ((sizes > 0) @ q)


def kernel_quotient(graph: Graph, orbits: IntArray, level: float) -> tuple[Floats, Floats]:
    """Return K summed over orbits of columns, a row for each orbit, and the sizes of the orbits."""
    representatives = np.unique(orbits, return_index=True)[1]
    sizes = np.bincount(orbits).astype(np.float64)
    kernel = powers(level, _distances_from(graph, representatives).astype(np.float64))
    quotient = np.zeros((len(sizes), len(sizes)))
    for number, row in enumerate(kernel):
        quotient[number] = np.bincount(orbits, weights=row, minlength=len(sizes))
    return quotient, sizes


def _distances_from(graph: Graph, sources: IntArray) -> npt.NDArray[np.int32]:
    """Return the rows of the table of distances for some vertices; -1 stands for no path."""
    n, edges = graph.num_vertices, graph.edges
    if 8 * len(sources) > n:
        return distances(graph)[sources]
    return np.stack([_core.distances_from(n, edges, source) for source in sources.tolist()])


def _relaxation(graph: Graph, level: float) -> float:
    quotient, sizes = kernel_quotient(graph, automorphism_group(graph).orbits, level)
    found = linear_program(Deadline(None), c=-sizes / graph.num_vertices, A_ub=quotient, b_ub=np.ones(len(sizes)))
    # Any multipliers y >= 0 with K^T y >= sizes / n bound it by sum(y); scale the solver's up until they are such.
    multipliers = np.maximum(-found.marginals, 0.0)
    cover = (quotient.T @ multipliers) / (sizes / graph.num_vertices)
    if cover.min() > 0:
        return float(multipliers.sum() / min(cover.min(), 1.0))
    return float(1 / quotient.sum(axis=1).min())
