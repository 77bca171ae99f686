"""The number of spanning trees, exactly, and its logarithm."""

import math
from fractions import Fraction
from typing import Literal, TypeAlias, Unpack, get_args, overload

from quincunx import _check, _core
from quincunx._job import Job, JobOptions
from quincunx._types import Ints
from quincunx.counting import _exact
from quincunx.counting._drawn import as_cylinder, as_square, as_torus
from quincunx.counting._hard_core import FloatResult
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import Order, as_listed
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, laid

#: Ways to count spanning trees.
TreeMethod: TypeAlias = Literal["auto", "product", "elimination"]


@overload
def count_spanning_trees(
    graph: "GraphLike", *, weight: "Unweighted" = ..., method: TreeMethod = ..., **options: Unpack[JobOptions]
) -> int: ...
@overload
def count_spanning_trees(
    graph: "GraphLike", *, weight: "Weight", method: TreeMethod = ..., **options: Unpack[JobOptions]
) -> int | Fraction: ...
@counting_doc
def count_spanning_trees(
    graph: "GraphLike",
    *,
    weight: "Weight | Unweighted" = NOT_SAID,
    method: TreeMethod = "auto",
    **options: Unpack[JobOptions],
) -> int | Fraction:
    """Count the spanning trees of a graph, exactly, or add up their weights.

    By Kirchhoff's theorem the number is ``det L`` with the row and column of any vertex removed, where ``L`` is the
    Laplacian. Parallel edges count one by one and loops not at all. A single vertex has one spanning tree, a
    disconnected graph none.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is counted on.
    weight : None, str, sequence of number or mapping, optional
        The weight of each edge: the name of an attribute of the edges of a networkx graph (1 where an edge has none of
        that name), ``"weight"`` for the entries of a sparse matrix (half of them for loops, as in `Graph.to_scipy`), a
        number for each edge in order, or for each of the `edge_colors` of a lattice by a mapping; ints, Fractions or
        floats, >= 0. What is returned is the sum over all trees of the products of their weights. `None` counts each
        edge as one. Where nothing is said, a networkx graph with an attribute ``"weight"`` that is not 1 is refused,
        and so is a sparse matrix with such an entry.
    method : {"auto", "product", "elimination"}, optional
        ``"product"``: eigenvalues in closed form inside prime fields, for square lattices of any boundary and for all
        lattices on a torus; on a cylinder a banded determinant for each wave vector round it. ``"elimination"``: sparse
        elimination modulo primes, for any graph. ``"auto"`` takes the product where there is one.
    threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`.

    Returns
    -------
    int, or Fraction where weights have a denominator
        The exact number, however long. Python refuses to print more than 4300 digits; the command line prints all.

    Raises
    ------
    ValueError
        If the graph has no vertex, or `method` is not valid for it; if weights are not said, negative, or more than
        2**20 times the largest number of which all are multiples, added up.
    TooLargeError, TypeError, CheckpointError
        As `count_independent_sets`.

    Notes
    -----
    Residues modulo primes below 2**55, one more than a proved bound asks for, which verifies the result. Cosines live
    in the field if the prime is 1 modulo the order of the root of unity [1]_: ``n log m`` multiplications per prime for
    the square lattice. Elimination takes an order of little fill (about ``n**1.5`` multiplications for planar graphs),
    planned once for all primes; the bound comes from the same elimination in floating point, where nothing is ever
    subtracted. Weights are laid as parallel edges, in units of the largest number of which all are multiples.

    References
    ----------
    .. [1] F. Y. Wu (1977), Number of spanning trees on a lattice, J. Phys. A 10, L113.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import count_spanning_trees
    >>> count_spanning_trees(lattices.square(10, 10))
    5694319004079097795957215725765328371712000
    >>> count_spanning_trees(lattices.kagome(3, 3, "torus"))
    8463329722368
    >>> import networkx
    >>> ring = networkx.cycle_graph(3)
    >>> networkx.set_edge_attributes(ring, {(0, 1): 2, (1, 2): 3, (0, 2): Fraction(1, 2)}, "weight")
    >>> count_spanning_trees(ring, weight="weight"), count_spanning_trees(ring, weight=None)
    (Fraction(17, 2), 3)
    """
    job = Job(**options)
    _check.one_of(method, "method", get_args(TreeMethod))
    graph, unit, _ = laid(graph, weight)
    problem: object = None if method == "elimination" else _product(graph)
    if problem is None:
        if method == "product":
            raise ValueError("`method` must be 'elimination' for a graph with no product: no square lattice, no torus")
        problem = _plain(graph)
    (count,), _ = _exact.solve(lambda job: _core.plan_spanning_trees(problem), "spanning trees", job)
    return count if unit == 1 else count * unit ** (as_listed(graph).num_vertices - 1)


def log_spanning_trees(graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID) -> FloatResult:
    """Return the natural logarithm of the number of spanning trees, with a proved error.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is counted on.
    weight : None, str or sequence of number, optional
        As in `count_spanning_trees`.

    Returns
    -------
    FloatResult
        The pair ``(value, error)``; minus infinity for a disconnected graph.

    Raises
    ------
    ValueError, TypeError
        As `count_spanning_trees`.

    Notes
    -----
    One elimination in floating point, in which conductances are only added, multiplied and divided; square lattices by
    the closed form.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import log_spanning_trees
    >>> value, error = log_spanning_trees(lattices.square(10, 10))
    >>> round(value, 9), error < 1e-9
    (98.448042918, True)
    """
    graph, unit, _ = laid(graph, weight)
    value, error = _core.log_spanning_trees(as_square(graph) or _plain(graph))
    if not math.isfinite(value):
        return FloatResult(value, 0.0)
    if unit != 1:
        shift = (as_listed(graph).num_vertices - 1) * _exact.log(unit)
        value, error = value + shift, error + 4e-16 * (abs(value) + abs(shift) + 1)
    return FloatResult(value, error)


def _product(graph: object) -> object:
    """Return what has a product over wave vectors, as it crosses to the core."""
    return as_square(graph) or as_torus(graph) or as_cylinder(graph)


def _plain(graph: object) -> tuple[int, "Ints"]:
    found = as_listed(graph)
    return found.num_vertices, found.edges


def plan_trees(graph: object, order: Order, memory_limit: int) -> _core.ExactPlan:
    """Return the plan of a count, for a forecast."""
    if order is not None:
        raise ValueError("`order` must be None for spanning trees")
    problem: object = _product(graph) or _plain(graph)
    return _core.plan_spanning_trees(problem)
