"""Sums over all subsets of the edges by their components: chromatic and Tutte polynomials, Potts and Ising models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Unpack

import numpy as np

from quincunx import _check, _core
from quincunx._check import Number
from quincunx._job import Job, JobOptions
from quincunx._types import Ints
from quincunx.counting import _exact
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import Order, as_listed, vertex_order
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, weights_of

# So many parallel edges are laid at the most: as many values of y are interpolated.
_MOST = 1 << 14
# A fraction as it crosses to the core.
_Pair = tuple[int, int]


@counting_doc
def chromatic_polynomial(graph: "GraphLike", *, order: Order = None, **options: Unpack[JobOptions]) -> list[int]:
    """Compute the chromatic polynomial of a graph, exactly.

    ``P(q) = c_0 + c_1 q + ... + c_n q**n`` is the number of ways to give each vertex one of q colors so that no edge
    has both ends of one color. Parallel edges are as one; a graph with a loop has no such coloring.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is colored. Weights of its edges say nothing here.
    {summed}

    Returns
    -------
    list of int
        ``c_0, ..., c_n``; ``[0]`` for a graph with a loop.

    {errors}

    Notes
    -----
    A sum over the subsets of edges by their components [1]_, along a tree decomposition or an order of the vertices: a
    state is a set partition of a frontier without neighbors in a block [2]_. In an order that sweeps over the plane the
    blocks do not cross, and w vertices next to one another have as many states as Motzkin's number of w - 1: 5798 for
    w = 12. Evaluations at one more point than the rank, modulo each prime; interpolation; Chinese remainders. The width
    decides, not the number of vertices: a square lattice of 12 x 12 takes two seconds of one thread
    (`benches/bench_lattice_statistics.py`).

    References
    ----------
    .. [1] H. Whitney (1932), A logical expansion in mathematics, Bull. Amer. Math. Soc. 38.
    .. [2] J. Salas, A. D. Sokal (2001), Transfer matrices and partition-function zeros for antiferromagnetic Potts
       models I, J. Stat. Phys. 104.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import chromatic_polynomial
    >>> chromatic_polynomial(lattices.square(2, 2))
    [0, -3, 6, -4, 1]
    >>> sum(c * 3**k for k, c in enumerate(chromatic_polynomial(lattices.square(8, 8))))
    40724629633188
    """
    job = Job(**options)
    found, loops = _without_loops(graph)
    if loops:
        return [0]
    sizes, _ = _exact.solve(lambda job: _plan(found, order, "chromatic", job.memory_limit), "chromatic polynomial", job)
    n, rank = found.num_vertices, len(sizes) - 1
    return [0] * (n - rank) + [c if (rank - i) % 2 == 0 else -c for i, c in enumerate(sizes)]


@dataclass(frozen=True, repr=False)
class TuttePolynomial:
    """The Tutte polynomial of a graph: ``T(x, y) = sum_ij t_ij x**i y**j``.

    Call it with x and y for its value, exact for ints and Fractions.

    Attributes
    ----------
    coefficients : tuple of tuples of int
        ``coefficients[i][j]`` is ``t_ij``, >= 0. As many rows as the rank, and columns as the nullity, and one more.

    Examples
    --------
    >>> from quincunx.counting import tutte_polynomial
    >>> from quincunx.graphs import cycle
    >>> tutte = tutte_polynomial(cycle(4))
    >>> tutte
    <TuttePolynomial: x**3 + x**2 + x + y>
    >>> tutte(1, 1), tutte(2, 0), tutte(2, 2)
    (4, 14, 16)
    """

    coefficients: tuple[tuple[int, ...], ...]

    def __call__(self, x: Number, y: Number) -> int | Fraction:
        """Return the value at a point, a Fraction where it has a denominator.

        Parameters
        ----------
        x, y : int, Fraction or float
            The point; floats are the binary fractions that they are.

        Returns
        -------
        int or Fraction
            The exact value.

        Raises
        ------
        ValueError, TypeError
            If an argument is no finite number.

        Examples
        --------
        >>> from quincunx.counting import tutte_polynomial
        >>> from quincunx.graphs import complete
        >>> tutte_polynomial(complete(4))(1, 1)
        16
        """
        a, b = _check.rational(x, "x"), _check.rational(y, "y")
        rows = [_horner(row, b) for row in self.coefficients]
        return _whole(_horner(rows, a))

    def __repr__(self) -> str:
        def power(name: str, k: int) -> list[str]:
            return [] if k == 0 else [name if k == 1 else f"{name}**{k}"]

        terms = [
            "*".join([*([str(t)] if t > 1 or i == j == 0 else []), *power("x", i), *power("y", j)])
            for i, row in reversed(list(enumerate(self.coefficients)))
            for j, t in reversed(list(enumerate(row)))
            if t
        ]
        if len(terms) > 8:
            terms = [*terms[:4], f"... {len(terms) - 7} more", *terms[-3:]]
        return f"<TuttePolynomial: {' + '.join(terms)}>"


@counting_doc
def tutte_polynomial(
    graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID, order: Order = None, **options: Unpack[JobOptions]
) -> TuttePolynomial:
    """Compute the Tutte polynomial of a graph, exactly.

    ``T(x, y) = sum over A of (x-1)**(k(A)-k(E)) (y-1)**(k(A)+|A|-n)``, over all subsets A of the edges E, with k(A) the
    components of the graph with the edges A alone. T(1, 1) counts spanning trees of a connected graph, T(2, 1) forests,
    T(1, 2) connected spanning subgraphs, T(2, 0) acyclic and T(0, 2) totally cyclic orientations. Parallel edges count
    one by one, and a loop is a factor y.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What the polynomial is of.
    weight : None, str or sequence of int, optional
        How many parallel edges each edge stands for, said as in `count_spanning_trees`; whole numbers. `None` counts
        each edge as one.
    {summed}

    Returns
    -------
    TuttePolynomial
        Its `coefficients`, and its value at any point.

    Raises
    ------
    ValueError
        If weights are not said, negative or not whole.
    TooLargeError, TypeError, CheckpointError
        As `count_independent_sets`.

    Notes
    -----
    As `chromatic_polynomial`, with all set partitions of a frontier as states: Catalan's number of w for w vertices of
    a plane order, Bell's at the most [1]_ [2]_. One more evaluation than the rank times one more than the nullity: a
    square lattice of 8 x 8 takes two seconds of one thread. Where one point is enough, `potts_partition_function` is
    that many times faster: ``T(x, y) = Z((x-1)(y-1), y-1) / ((x-1)**k(E) (y-1)**n)``.

    References
    ----------
    .. [1] W. T. Tutte (1954), A contribution to the theory of chromatic polynomials, Canad. J. Math. 6.
    .. [2] S. D. Noble (1998), Evaluating the Tutte polynomial for graphs of bounded tree-width, Combin. Probab.
       Comput. 7.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import tutte_polynomial
    >>> tutte_polynomial(lattices.square(2, 2))
    <TuttePolynomial: x**3 + x**2 + x + y>
    >>> tutte_polynomial(lattices.square(5, 5))(1, 1)
    557568000
    """
    job = Job(**options)
    found, loops = _without_loops(multiplied(graph, weight))
    found_all, _ = _exact.solve(lambda job: _plan(found, order, "tutte", job.memory_limit), "Tutte polynomial", job)
    width = found.num_edges - _rank(found) + 1
    rows = (found_all[i : i + width] for i in range(0, len(found_all), width))
    return TuttePolynomial(tuple((0,) * loops + tuple(row) for row in rows))


@counting_doc
def potts_partition_function(
    graph: "GraphLike",
    q: Number,
    v: Number,
    *,
    weight: "Weight | Unweighted" = NOT_SAID,
    order: Order = None,
    **options: Unpack[JobOptions],
) -> int | Fraction:
    """Compute the partition function of the Potts model on a graph, exactly; with q = 2, of the Ising model.

    ``Z(q, v) = sum over A of q**k(A) * prod over A of v * w_e``, over all subsets A of the edges, with k(A) the
    components of the graph with the edges A alone. For q = 1, 2, ... this is the sum over all ways to give each vertex
    one of q states of the products of ``1 + v * w_e`` over the edges whose ends have the same one [1]_; that factor is
    ``exp(J/kT)`` for a coupling J, so that v = -1 counts proper colorings. The Ising model with ``exp(K)`` for equal
    and ``exp(-K)`` for different spins has q = 2, ``v = exp(2*K) - 1`` and ``Z / exp(K)**m`` with m edges. Parallel
    edges count one by one, a loop is a factor ``1 + v * w_e``.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Where the spins are.
    q : int, Fraction or float
        The number of states, or any number.
    v : int, Fraction or float
        The weight of an edge: positive for ferromagnets, from -1 to 0 for antiferromagnets.
    weight : None, str or sequence of number, optional
        The weight w_e of each edge beside v, said as in `count_spanning_trees`; of any sign. `None` counts each as one.
    {summed}

    Returns
    -------
    int, or Fraction where a number has a denominator
        The exact sum. Floats are the binary fractions that they are.

    Raises
    ------
    ValueError
        If weights are not said, or a number is not finite.
    TooLargeError, TypeError, CheckpointError
        As `count_independent_sets`.

    Notes
    -----
    As `tutte_polynomial`, at one point modulo each prime. For q = 1, 2, ... the states are partitions of a frontier
    into at most q blocks of equal spins instead, where these are forecast to be fewer: ``2**(w-1)`` of w vertices for
    the Ising model.

    References
    ----------
    .. [1] C. M. Fortuin, P. W. Kasteleyn (1972), On the random-cluster model I, Physica 57.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import potts_partition_function
    >>> potts_partition_function(lattices.square(2, 2), 2, 1)
    82
    >>> potts_partition_function(lattices.square(8, 8), 3, -1)
    40724629633188
    >>> potts_partition_function(lattices.square(2, 2), 2, 1, weight=[Fraction(1, 2), 3, 0, -1])
    Fraction(25, 1)
    """
    job = Job(**options)
    states, scale = _check.rational(q, "q"), _check.rational(v, "v")
    weights = weights_of(graph, weight, negative=True)
    found, factor = as_listed(graph), Fraction(1)
    pairs, numbers = [], []
    for i, (a, b) in enumerate(found.edges.tolist()):
        w = scale if weights is None else scale * weights[i]
        if a == b:
            factor *= 1 + w
        else:
            numbers.append(i)
            pairs.append((w.numerator, w.denominator))
    problem = (_on(found, found.edges[numbers]), order, "potts", job.memory_limit, states, pairs)
    (number,), _ = _exact.solve(lambda job: _plan(*problem), "Potts partition function", job)
    denominator = states.denominator**found.num_vertices * math.prod(d for _, d in pairs)
    value = factor * Fraction(number, denominator)
    numbers_of_all = (states, scale, *(weights or ()))
    return int(value) if all(x.denominator == 1 for x in numbers_of_all) else value


@counting_doc
def potts_polynomial(
    graph: "GraphLike", q: Number, *, order: Order = None, **options: Unpack[JobOptions]
) -> list[int] | list[Fraction]:
    """Compute the partition function of the Potts model as a polynomial in the weight of an edge, exactly.

    The coefficients ``z_0, ..., z_m`` of ``Z(q, v) = sum_k z_k v**k`` as in `potts_partition_function`: ``z_k`` is the
    sum of ``q**k(A)`` over the sets A of k edges. In powers of ``1 + v`` the coefficients count the ways to give each
    vertex one of q states by their edges with equal ends, which is the density of states.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        Where the spins are. Each edge counts as one; weights say nothing here.
    q : int, Fraction or float
        The number of states, or any number.
    order : sequence of vertices, optional
        As in `potts_partition_function`.
    threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`.

    Returns
    -------
    list of int, or of Fraction where q has a denominator
        ``z_0, ..., z_m``.

    {errors}

    Notes
    -----
    As `potts_partition_function`, at one more point than there are edges.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import potts_polynomial
    >>> potts_polynomial(lattices.square(2, 2), 2)
    [16, 32, 24, 8, 2]
    """
    job = Job(**options)
    states = _check.rational(q, "q")
    found, loops = _without_loops(graph)
    problem = (found, order, "potts", job.memory_limit, states, None)
    numbers, _ = _exact.solve(lambda job: _plan(*problem), "Potts polynomial", job)
    for _ in range(loops):  # a factor 1 + v each
        numbers = [a + b for a, b in zip([*numbers, 0], [0, *numbers], strict=True)]
    if states.denominator == 1:
        return numbers
    return [Fraction(number, states.denominator**found.num_vertices) for number in numbers]


def _plan(
    graph: Graph,
    order: Order,
    what: str,
    memory_limit: int,
    q: Fraction | None = None,
    weights: list[_Pair] | None = None,
) -> _core.ExactPlan:
    """Return the plan of a sum on a graph without loops."""
    pair = None if q is None else (q.numerator, q.denominator)
    checked = None if order is None else vertex_order(order, graph)
    return _core.plan_clusters((graph.num_vertices, graph.edges, checked), what, pair, weights, memory_limit)


def plan_clusters(graph: object, order: Order, memory_limit: int, what: str) -> _core.ExactPlan:
    """Return the plan of a polynomial, for a forecast."""
    return _plan(_without_loops(graph)[0], order, what, memory_limit)


def _without_loops(graph: object) -> tuple[Graph, int]:
    """Return a graph without its loops, and how many there were."""
    found = as_listed(graph)
    proper = found.edges[:, 0] != found.edges[:, 1]
    loops = found.num_edges - int(proper.sum())
    return (found, 0) if not loops else (_on(found, found.edges[proper]), loops)


def multiplied(graph: object, weight: object) -> Graph:
    """Return a graph with each edge as often as its weight says."""
    found, weights = as_listed(graph), weights_of(graph, weight)
    if weights is None:
        return found
    times = [int(w) for w in weights]
    if (broken := next((w for w in weights if w.denominator > 1), None)) is not None:
        raise ValueError(f"`weight` must be whole numbers of parallel edges, got {_check.shown(broken)}")
    if sum(times) > _MOST:
        raise ValueError(f"`weight` must be {_MOST} parallel edges in all at the most, got {_check.shown(sum(times))}")
    return _on(found, np.repeat(found.edges, times, axis=0))


def _on(graph: Graph, edges: "Ints") -> Graph:
    """Return a graph on the same vertices."""
    return Graph._trusted(graph.num_vertices, edges, graph._labels)


def _rank(graph: Graph) -> int:
    from scipy.sparse.csgraph import connected_components

    return graph.num_vertices - int(connected_components(graph.to_scipy(), directed=False)[0])


def _horner(coefficients: "Sequence[Fraction | int]", x: Fraction) -> Fraction:
    value = Fraction(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _whole(value: Fraction) -> int | Fraction:
    return value if value.denominator > 1 else int(value)
