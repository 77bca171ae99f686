"""Numbers of matchings, exactly: perfect ones, all, and those of each size."""

import contextlib
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias, Unpack, get_args, overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._job import Job, JobOptions
from quincunx.counting import _exact
from quincunx.counting._drawn import Drawing, as_drawn, as_insertion, as_square
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import Order, as_listed, as_problem
from quincunx.errors import TooLargeError
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, laid

#: What makes a plan for so many threads and bytes.
MakePlan: TypeAlias = Callable[[int], _core.ExactPlan]
# Where the square of the edges that go round is so many times the vertices, a torus is thin: sums along it may be less
# work than Pfaffians, whose last front these edges make. It is 4 for a square lattice of L x L and 35 for 12 x 400.
_THIN = 32
# Seconds of Pfaffians from which such sums are looked for: that takes as long where the torus is too wide.
_LONG = 0.3
#: Ways to count perfect matchings.
Method: TypeAlias = Literal["auto", "product", "fkt", "pfaffian", "even-subgraphs", "frontier"]


@overload
def count_perfect_matchings(
    graph: "GraphLike",
    *,
    weight: "Unweighted" = ...,
    method: Method = ...,
    order: Order = ...,
    **options: Unpack[JobOptions],
) -> int: ...
@overload
def count_perfect_matchings(
    graph: "GraphLike", *, weight: "Weight", method: Method = ..., order: Order = ..., **options: Unpack[JobOptions]
) -> int | Fraction: ...
@counting_doc
def count_perfect_matchings(
    graph: "GraphLike",
    *,
    weight: "Weight | Unweighted" = NOT_SAID,
    method: Method = "auto",
    order: Order = None,
    **options: Unpack[JobOptions],
) -> int | Fraction:
    """Count the perfect matchings of a graph, exactly, or add up their weights.

    A perfect matching, or dimer covering, is a set of edges that covers every vertex once. Parallel edges count one by
    one and loops not at all. The empty graph has one, a graph with an odd number of vertices none.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is counted on. Lattices are drawn as they are; graphs by networkx, if it is installed and they are planar.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`; what is returned is the sum over all perfect matchings
        of the products of their weights.
    method : {"auto", "product", "fkt", "pfaffian", "even-subgraphs", "frontier"}, optional
        ``"product"``: the closed form of the free square lattice. ``"fkt"``: one Pfaffian of a Kasteleyn orientation,
        for graphs drawn on a plane or cylinder. ``"pfaffian"``: the same and four Pfaffians on a torus.
        ``"even-subgraphs"``: for what `clique_insert` made, a sum over the even subgraphs of the graph below.
        ``"frontier"``: sums over the matched vertices of a frontier, or of the bags of a tree decomposition where that
        is forecast to be faster, for any graph of small width. ``"auto"`` takes the first that is valid, but on long
        thin tori ``"frontier"`` where that is forecast to be faster.
    order : sequence of vertices, optional
        For ``"frontier"``: the order in which the vertices are taken; then no tree decomposition is looked for.
    {job}
        With weights that have a denominator a Fraction.

    Raises
    ------
    ValueError
        If `method` is not valid for the graph; if weights are not said, negative, or more than 2**20 times the largest
        number of which all are multiples, added up.
    TooLargeError, TypeError, CheckpointError
        As `count_independent_sets`.

    Notes
    -----
    Every face of the drawing has an odd number of edges against its walk [1]_; on a torus four such orientations are
    added with the signs of their quadratic forms [2]_. Rows and columns are paired by a perfect matching, so that
    pivots are numbers of perfect matchings of parts of the graph and never zero; no lattice has signs of its own.

    The links of a clique insertion C(G) that are not matched are an even subgraph F of G, whose ends at each vertex v
    are matched among themselves: ``M(C(G)) = sum over F of prod((d_F(v) - 1)!! for v in G)``. A sum over the edges of
    G that cross a frontier takes a quarter to an eighth of the states of a frontier of C(G).

    References
    ----------
    .. [1] P. W. Kasteleyn (1961), The statistics of dimers on a lattice, Physica 27.
    .. [2] D. Cimasoni, N. Reshetikhin (2007), Dimers on surface graphs and spin structures I, Comm. Math. Phys. 275.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import count_perfect_matchings
    >>> count_perfect_matchings(lattices.square(8, 8))
    12988816
    >>> count_perfect_matchings(lattices.honeycomb(4, 4, "torus"))
    417
    >>> count_perfect_matchings(lattices.aztec_diamond(4))
    1024
    >>> import networkx
    >>> ring = networkx.cycle_graph(4)
    >>> networkx.set_edge_attributes(ring, {(0, 1): 2, (2, 3): 3, (1, 2): Fraction(1, 2)}, "weight")
    >>> count_perfect_matchings(ring, weight="weight"), count_perfect_matchings(ring, weight=None)
    (Fraction(13, 2), 2)
    """
    job = Job(**options)
    graph, unit, _ = laid(graph, weight)
    count = _perfect_matchings(graph, method, order, job)
    return count if unit == 1 else count * unit ** (as_listed(graph).num_vertices // 2)


def _perfect_matchings(graph: "GraphLike", method: Method, order: Order, job: Job) -> int:
    """Return the number of perfect matchings of a graph without weights."""
    _check.one_of(method, "method", get_args(Method))
    if order is not None and method not in ("auto", "frontier"):
        raise ValueError(f'`order` must be None unless method="frontier", got method={method!r}')
    return _solve(partial(plan_dimers, graph, order, method=method), "perfect matchings", job)[0]


def plan_dimers(graph: object, order: Order, memory_limit: int, method: str = "auto") -> _core.ExactPlan:
    """Return the plan of a count of perfect matchings."""
    if order is not None:
        method = "frontier"
    if method in ("auto", "product"):
        square = as_square(graph)
        if square is not None and not any(square[2]):
            return _core.plan_perfect_matchings(square, memory_limit)
        if method == "product":
            raise ValueError("`method` must be 'product' only for the free square lattice")
    if method not in ("frontier", "even-subgraphs"):
        plan = _kasteleyn(graph, method, memory_limit)
        if plan is not None:
            return plan
    if method in ("auto", "even-subgraphs"):
        insertion = as_insertion(graph)
        if insertion is not None:
            return _core.plan_even_subgraphs(insertion, memory_limit)
        if method == "even-subgraphs":
            raise ValueError("`method` must be 'even-subgraphs' only for a clique insertion of a graph without loops")
    return plan_matchings(graph, order, memory_limit, "perfect")


def _kasteleyn(graph: object, method: str, memory_limit: int) -> _core.ExactPlan | None:
    """Return the plan of Pfaffians, or of less work on a thin torus; `None` where "auto" has to look further."""
    drawn = as_drawn(graph)
    if drawn is None:
        if method == "auto":
            return None
        raise ValueError(f"`method` must be 'frontier' for a graph that is not known to be planar, got {method!r}")
    around = _round_thin_torus(drawn) if method == "auto" else 0
    # Four eliminations of half as many pairs as edges go round, a prime for 110 vertices of half a bit.
    least = _exact.RATES["four Pfaffians"] * 1e-9 * around**3 / 6 * (1 + drawn[0] / 110)
    other = _along(graph, memory_limit) if least > _LONG else None
    if other is not None and _exact.forecast(other) < least:
        return other
    try:
        plan = _core.plan_perfect_matchings(drawn, 2**62)
    except TooLargeError:
        if other is None:
            raise
        return other
    except ValueError:
        if method == "auto":
            return None
        raise ValueError(
            f"`method` must be 'frontier' for a graph that is not drawn on a plane, cylinder or torus, got {method!r}"
        ) from None
    if method == "fkt" and plan.method[0] == "four Pfaffians":
        raise ValueError("`method` must be 'pfaffian' or 'frontier' for a graph drawn on a torus, got 'fkt'")
    fits = plan.method[1] <= memory_limit
    if 0 < least <= _LONG and (not fits or _exact.forecast(plan) > _LONG):
        other = _along(graph, memory_limit)
    return plan if other is None or (fits and _exact.forecast(plan) < _exact.forecast(other)) else other


def _round_thin_torus(drawn: Drawing) -> int:
    """Return how many edges go round a thin torus; 0 for any other drawing: on a cylinder none go last."""
    if len(drawn) == 3:
        return 0
    goes = np.not_equal(drawn[3], 0)
    around = int(goes.any(axis=1).sum())
    return around if goes.any(axis=0).all() and around**2 > _THIN * drawn[0] else 0


def _along(graph: object, memory_limit: int) -> _core.ExactPlan | None:
    """Return the plan of sums along a torus, if there is memory for them."""
    with contextlib.suppress(TooLargeError):
        return plan_matchings(graph, None, memory_limit, "perfect")
    return None


def _solve(make_plan: MakePlan, description: str, job: Job) -> list[int]:
    """Return the integers of a plan made of bytes."""
    return _exact.solve(lambda job: make_plan(job.memory_limit), description, job)[0]


@overload
def count_matchings(
    graph: "GraphLike", *, weight: "Unweighted" = ..., order: Order = ..., **options: Unpack[JobOptions]
) -> int: ...
@overload
def count_matchings(
    graph: "GraphLike", *, weight: "Weight", order: Order = ..., **options: Unpack[JobOptions]
) -> int | Fraction: ...
@counting_doc
def count_matchings(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, order: Order = None, **options: Unpack[JobOptions]
) -> int | Fraction:
    """Count the matchings of a graph, exactly: its Hosoya index.

    A matching is a set of edges no two of which share a vertex; the empty set is one. Parallel edges count one by one
    and loops not at all.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is counted on.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`; what is returned is the sum over all matchings of the
        products of their weights: the partition function of monomers and dimers.
    order : sequence of vertices, optional
        The order in which the vertices are taken; by default a tree decomposition or a good order is searched for.
    {job}

    {errors}

    Notes
    -----
    A frontier of w vertices has ``2**w`` states, of 8 bytes each per thread; about two passes over them for each vertex
    and prime. A square lattice of L x L vertices has width L. Along a tree decomposition [2]_ the tables of branches
    that meet are joined in ``3**s`` products, with s the vertices that both know; a graph of small treewidth takes time
    proportional to its vertices for each prime. Large graphs of treewidth at most 8 are counted over the integers, as
    in `count_independent_sets`. What is forecast to be faster is taken; `estimate_cost` says which.

    References
    ----------
    .. [1] H. Hosoya (1971), Topological index, Bull. Chem. Soc. Japan 44.
    .. [2] S. Arnborg, A. Proskurowski (1989), Linear time algorithms for NP-hard problems restricted to partial
       k-trees, Discrete Applied Mathematics 23.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import count_matchings
    >>> count_matchings(lattices.square(5, 5))
    2810694
    """
    job = Job(**options)
    graph, unit, _ = laid(graph, weight)
    if unit != 1:
        return sum(count * unit**k for k, count in enumerate(_by_size(graph, order, job)))
    return _solve(partial(plan_matchings, graph, order, which="all"), "matchings", job)[0]


def _by_size(graph: "GraphLike", order: Order, job: Job) -> list[int]:
    return _solve(partial(plan_matchings, graph, order, which="by size"), "matchings by size", job)


@overload
def matching_polynomial(
    graph: "GraphLike", *, weight: "Unweighted" = ..., order: Order = ..., **options: Unpack[JobOptions]
) -> list[int]: ...
@overload
def matching_polynomial(
    graph: "GraphLike", *, weight: "Weight", order: Order = ..., **options: Unpack[JobOptions]
) -> list[int] | list[Fraction]: ...
@counting_doc
def matching_polynomial(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, order: Order = None, **options: Unpack[JobOptions]
) -> list[int] | list[Fraction]:
    """Count the matchings of each size, exactly.

    The coefficients ``m_0, m_1, ...`` of the generating polynomial ``sum_k m_k x**k``, where ``m_k`` is the number of
    matchings of k edges. The matching polynomial of the other convention is ``sum_k (-1)**k m_k x**(n - 2*k)``.

    Parameters
    ----------
    graph, weight, order, threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_matchings`.

    Returns
    -------
    list of int, or of Fraction where weights have a denominator
        ``m_0, ..., m_k`` up to the size of a largest matching.

    Raises
    ------
    TooLargeError, ValueError, TypeError, CheckpointError
        As `count_matchings`.

    Notes
    -----
    Evaluations at one more point than a largest matching has edges, modulo each prime; interpolation; Chinese
    remainders.

    Examples
    --------
    >>> from quincunx.counting import matching_polynomial
    >>> from quincunx.graphs import complete
    >>> matching_polynomial(complete(6))
    [1, 15, 45, 15]
    """
    job = Job(**options)
    graph, unit, _ = laid(graph, weight)
    counts = _by_size(graph, order, job)
    return counts if unit == 1 else [count * unit**k for k, count in enumerate(counts)]


def log_perfect_matchings(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, method: Method = "auto"
) -> float:
    """Return the natural logarithm of the number of perfect matchings.

    Parameters
    ----------
    graph, weight, method
        As in `count_perfect_matchings`.

    Returns
    -------
    float
        Of the exact count, rounded once; minus infinity if there are none.

    Raises
    ------
    ValueError, TypeError, TooLargeError
        As `count_perfect_matchings`.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import log_perfect_matchings
    >>> round(log_perfect_matchings(lattices.square(8, 8)), 12)
    16.379599237456
    """
    return _log(count_perfect_matchings(graph, weight=weight, method=method))


def log_matchings(graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID) -> float:
    """Return the natural logarithm of the number of matchings.

    Parameters
    ----------
    graph, weight
        As in `count_matchings`.

    Returns
    -------
    float
        Of the exact count, rounded once.

    Raises
    ------
    ValueError, TypeError, TooLargeError
        As `count_matchings`.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import log_matchings
    >>> round(log_matchings(lattices.square(5, 5)), 12)
    14.848941985906
    """
    return _log(count_matchings(graph, weight=weight))


def _log(count: int | Fraction) -> float:
    return _exact.log(count) if count else -math.inf


def count_of_drawn(graph: Graph, drawn: Drawing | None, left: npt.NDArray[np.bool_], memory_limit: int) -> int:
    """Count the perfect matchings of the subgraph on the vertices that are left, in the drawing of the whole."""
    inner = np.all(left[graph.edges], axis=1)
    name = np.cumsum(left) - 1
    edges = name[graph.edges[inner]]
    n = int(left.sum())
    job = Job(threads=1, memory_limit=memory_limit)
    if drawn is not None:
        if len(drawn) == 4:
            part = (n, edges, drawn[2][inner], drawn[3][inner])
        else:
            number = np.cumsum(inner) - 1
            darts = [[2 * int(number[d // 2]) + d % 2 for d in around if inner[d // 2]] for around in drawn[2]]
            part = (n, edges, [around for around, stays in zip(darts, left, strict=True) if stays])  # type: ignore[assignment]
        try:
            return _core.plan_perfect_matchings(part, memory_limit).solve(job)[0]
        except ValueError:
            pass  # not drawn on a plane or torus
    return _core.plan_matchings((n, edges, None), "perfect", memory_limit).solve(job)[0]


def plan_matchings(graph: object, order: Order, memory_limit: int, which: str) -> _core.ExactPlan:
    """Return the plan of a count of perfect matchings, of all, or by size: sums over a frontier or bags."""
    found = as_listed(graph)
    checked = as_problem(found, order)[2]
    return _core.plan_matchings((found.num_vertices, found.edges, checked), which, memory_limit)
