"""Algebraic connectivity, and what clique insertion does to the spectrum of a regular graph."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._aside import apart
from quincunx._types import Floats
from quincunx.errors import ConvergenceError
from quincunx.graphs._graph import Graph, GraphLike, as_graph
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, weights_of
from quincunx.lattices import Lattice
from quincunx.spectra._bloch import components, eigenvalues, laplacian_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Up to so many vertices the whole spectrum is found, a sixth of a second at the end of one thread: Lanczos takes
# milliseconds there, but may fail to converge.
_DENSE = 1500
# A second eigenvalue of at most this share of the largest may be a zero: components are counted.
_ROUNDING = 1e-12
# Vectors of a basis of Lanczos between two restarts, and its steps for each level of a search by breadth, about.
_BASIS, _STEPS = 20, 15
# Restarts of the inverse; a hundred were the most seen with an answer.
_MOST_RESTARTS = 1000
# Seconds, about: of factors by the cube of a width and by its square, of an edge in a product, of a row of the basis.
_FACTOR, _ENTRY, _EDGE, _ROW = 1e-10, 2e-7, 2e-9, 1e-9


def algebraic_connectivity(graph: GraphLike, *, weight: Weight | Unweighted = NOT_SAID) -> float:
    """Compute the second smallest eigenvalue of the Laplacian.

    It is zero for a disconnected graph, and infinite is not an answer: a single vertex has 0.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        With at least one vertex.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `spectrum`.

    Returns
    -------
    float
        With an absolute error near 1e-12 of the largest degree.

    Raises
    ------
    ValueError
        If the graph has no vertex.
    TypeError, TooLargeError
        As `spectrum`.
    quincunx.errors.ConvergenceError
        If Lanczos' method ends without an answer.

    Notes
    -----
    Beyond 1500 vertices by Lanczos' method, restarted: where a search by breadth shows wide levels, as in expanders, of
    the matrix itself, otherwise, or where that does not converge, of the inverse of the matrix shifted below zero.

    References
    ----------
    .. [1] D. Calvetti, L. Reichel, D. C. Sorensen (1994), An implicitly restarted Lanczos method for large symmetric
       eigenvalue problems, Electron. Trans. Numer. Anal. 2.

    Examples
    --------
    >>> from quincunx.graphs import complete
    >>> from quincunx.spectra import algebraic_connectivity
    >>> round(algebraic_connectivity(complete(4)), 12)
    4.0
    """
    weights = weights_of(graph, weight)
    is_closed = weights is None and isinstance(graph, Lattice) and graph.unit_cell is not None and any(graph.pbc)
    if not is_closed:
        found = as_graph(graph)
        if found.num_vertices == 0:
            raise ValueError("`graph` must have a vertex, got a graph without vertices")
        if found.num_vertices > _DENSE:
            weights, shift = _enlarged(weights)
            return math.ldexp(_sparse_connectivity(found, weights), -shift)
    values = eigenvalues(graph, True, weights)
    second = 0.0 if len(values) < 2 else max(0.0, float(np.partition(values, 1)[1]))
    if second <= _ROUNDING * values.max() and components(as_graph(graph), weights) > 1:
        return 0.0
    return second


def _enlarged(weights: list[Fraction] | None) -> tuple[list[Fraction] | None, int]:
    """Return weights as doubles times a power of two with which the largest is no small one, and its exponent.

    What is too small for a double beside the largest is nothing at all.
    """
    if not weights:
        return weights, 0
    top = max(weights)
    shift = max(0, top.denominator.bit_length() - top.numerator.bit_length())
    return [Fraction(_check.real(w * 2**shift, "weight")) for w in weights], shift


def _sparse_connectivity(graph: Graph, weights: list[Fraction] | None) -> float:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    if components(graph, weights) > 1:
        return 0.0
    laplacian = laplacian_of(graph, weights).tocsr()
    start = np.random.default_rng(0).random(graph.num_vertices)
    how = {"k": 2, "v0": start, "return_eigenvectors": False, "tol": 1e-13}
    restarts = _restarts(laplacian)
    if restarts:
        # Seen from above all eigenvalues are positive, and a tolerance relative to the largest is an absolute one.
        top = 2 * float(laplacian.diagonal().max())
        opposite = top * eye_array(graph.num_vertices) - laplacian
        try:
            values = apart(eigsh, opposite.tocsr(), which="LA", maxiter=restarts, **how)
            return max(0.0, top - float(np.sort(values)[0]))
        except ArpackNoConvergence:
            pass
    # Shifted a little below zero, where the matrix is positive definite: by no more than levels bound the answer.
    levels = _levels(laplacian)
    levels -= levels.mean()
    largest = float(laplacian.diagonal().max())
    shift = max(1e-10 * largest, min(1e-3 * largest, float(levels @ (laplacian @ levels) / (levels @ levels))))
    try:
        values = apart(eigsh, laplacian.tocsc(), sigma=-shift, maxiter=_MOST_RESTARTS, **how)
    except ArpackNoConvergence:
        raise ConvergenceError(f"the second eigenvalue was not found in {_MOST_RESTARTS} restarts") from None
    return max(0.0, float(np.sort(values)[1]))


def _levels(laplacian: csr_array) -> Floats:
    """Return the levels of a search by breadth, from a vertex in the last level of another search."""
    from scipy.sparse.csgraph import shortest_path

    pattern = laplacian.copy()
    pattern.data = np.ones_like(pattern.data)
    levels = np.zeros(1)
    for _ in range(2):
        levels = shortest_path(pattern, method="D", unweighted=True, indices=int(np.argmax(levels)))
    return levels


def _restarts(laplacian: csr_array) -> int:
    """Return how often Lanczos may restart in the time that factors are forecast to take; 0 where these take less.

    Factors are as large as the levels of a search by breadth, and no larger than cycles are many: leaves and chains
    fill nothing in. Steps are as many as levels, times a few.
    """
    n, levels = laplacian.shape[0], _levels(laplacian)
    cycles = (laplacian.nnz - n) // 2 - n + 1
    widths = np.minimum(np.bincount(levels.astype(np.int64)), 1 + 2 * cycles).astype(float)
    factors = _FACTOR * float(widths.max()) ** 3 + _ENTRY * float((widths**2).sum())
    restart = _BASIS * (_EDGE * laplacian.nnz + _BASIS * _ROW * n)
    return int(factors / restart) if _STEPS * len(widths) / _BASIS * restart < factors else 0


def clique_spectrum(eigenvalues: npt.ArrayLike, degree: int, k: int = 1) -> Floats:
    """Return the spectrum of a regular graph with cliques inserted `k` times, from its own.

    Each eigenvalue x of a graph of degree r becomes ``(r - 2 +- sqrt(r**2 + 4*(x + 1)))/2``, and -2 and 0 come in
    ``m - n = n*(r - 2)/2`` times each.

    Parameters
    ----------
    eigenvalues : array_like of float, shape (n,)
        All eigenvalues of the adjacency matrix, each in ``[-degree, degree]``.
    degree : int
        The degree r, >= 2.
    k : int, default 1
        How many times, >= 0.

    Returns
    -------
    ndarray of float64, shape (n * degree**k,)
        Rising.

    Raises
    ------
    ValueError
        If an eigenvalue is beyond the degree, ``n*degree`` is odd, `degree` is below 2 or `k` negative.
    TypeError
        If a number is not what it should be.
    TooLargeError
        If the result needs more memory than is available.

    Notes
    -----
    No eigenvalue solver: ``O(n * degree**k)``.

    References
    ----------
    .. [1] F. Zhang, Y.-C. Chen, Z. Chen (2009), Clique-inserted-graphs and spectral dynamics of clique-inserting, J.
       Math. Anal. Appl. 349.

    Examples
    --------
    >>> from quincunx.spectra import clique_spectrum
    >>> clique_spectrum([-1, -1, -1, 3], 3).round(12).tolist()
    [-2.0, -2.0, -2.0, -1.0, -1.0, -1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 3.0]
    """
    values = np.array(_check.reals(eigenvalues, "eigenvalues"))
    r = _check.whole(degree, "degree", minimum=2, maximum=2**53)
    times = _check.whole(k, "k", maximum=64)
    if values.ndim != 1:
        raise ValueError(f"`eigenvalues` must have shape (n,), got {values.shape}")
    if values.size and abs(values).max() > r * (1 + 1e-9):
        raise ValueError(f"`eigenvalues` must lie in [-{r}, {r}], got {values[np.argmax(abs(values))]}")
    if len(values) * r % 2:
        raise ValueError(f"`eigenvalues` must be an even number for the odd degree {r}, got {len(values)}")
    _check.room(24 * len(values) * r**times, "the array of eigenvalues")
    # Rounding at -r would become its square root where r = 2.
    values[values < -r * (1 - 1e-13)] = -r
    for _ in range(times):
        root = np.sqrt(np.maximum(r * r + 4 * (values + 1), (r - 2.0) ** 2))
        more = len(values) * (r - 2) // 2
        upper = (r - 2 + root) / 2
        lower = (r - 2 - root) / 2
        values = np.concatenate([upper, lower, np.full(more, -2.0), np.zeros(more)])
    return np.sort(values)


def expander_map(x: npt.ArrayLike, degree: int, k: int = 1) -> float | Floats:
    """Return the algebraic connectivity of a regular graph with cliques inserted `k` times, from its own.

    ``f(x) = ((r + 2) - sqrt((r + 2)**2 - 4*x))/2``, `k` times over. f rises, is convex on ``[0, 2*r]`` and at least
    ``x/(r + 2)``: clique insertion keeps a family of expanders one.

    Parameters
    ----------
    x : array_like of float
        Algebraic connectivities, in ``[0, 2*degree]``.
    degree, k
        As for `clique_spectrum`.

    Returns
    -------
    float or ndarray of float64
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If an x is out of range, `degree` is below 2 or `k` negative.
    TypeError
        If a number is not what it should be.

    Notes
    -----
    Evaluated as ``2*x/((r + 2) + sqrt((r + 2)**2 - 4*x))``, without cancellation.

    Examples
    --------
    >>> from quincunx.spectra import expander_map
    >>> round(expander_map(1.0, 3), 12)
    0.208712152522
    """
    values = np.array(_check.reals(x, "x"))
    r = _check.whole(degree, "degree", minimum=2, maximum=2**53)
    if values.size and not (values.min() >= 0 and values.max() <= 2 * r):
        raise ValueError(f"`x` must lie in [0, {2 * r}], got {values.min() if values.min() < 0 else values.max()}")
    for _ in range(_check.whole(k, "k", maximum=10**4)):
        values = 2 * values / (r + 2 + np.sqrt((r + 2) ** 2 - 4 * values))
    return float(values) if values.ndim == 0 else values
