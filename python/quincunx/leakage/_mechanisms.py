"""Private channels of maximal utility, and named channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._aside import aside
from quincunx._types import Floats, Ints
from quincunx.graphs import AutomorphismGroup, Graph, automorphism_group, distances, sphere_sizes
from quincunx.graphs._graph import GraphLike
from quincunx.leakage import _checks
from quincunx.leakage._bounds import LEAST, kernel_quotient, powers
from quincunx.leakage._channel import Channel
from quincunx.leakage._floats import FloatMatrix
from quincunx.leakage._parts import leakage_doc
from quincunx.leakage._program import Program, Solution, graph_program, hamming_program, solve
from quincunx.leakage._solver import Deadline
from quincunx.leakage._symmetry import as_hamming, hamming_distances

_METHODS = ("auto", "closed form", "weighting", "linear program")
#: A weighting is taken if its equations hold to the first and no weight is below minus the second.
_RESIDUAL, _NEGATIVE = 1e-12, 1e-13
#: Conditions of a kernel from here on leave open whether a weight is negative.
_SINGULAR = 1e8


class OptimalMechanism:
    """A private channel of maximal utility, with the proof that none has more.

    Made by `optimal_mechanism`.

    Attributes
    ----------
    channel : Channel
        The channel; worked out when it is first asked for.
    utility : float
        Its expected gain for the best guess: without a gain function the chance that the guess is right.
    dual_bound : float
        No channel with this privacy on this graph is worth more, but for roundings: float64, some 1e-15 of it.
    method : {"closed form", "weighting", "linear program"}
        How it was found.
    tight : bool
        Whether `utility` reaches `dual_bound` to a relative 1e-9.
    variables, inequalities : int
        The size of the linear program; 0 where none was solved.

    Examples
    --------
    >>> import math
    >>> from quincunx.graphs import cycle
    >>> from quincunx.leakage import optimal_mechanism
    >>> best = optimal_mechanism(cycle(5), math.log(2))
    >>> best
    <OptimalMechanism: utility 0.4, dual bound 0.4, by closed form>
    >>> round(best.channel.dp_epsilon(cycle(5)), 12) == round(math.log(2), 12)
    True
    """

    def __init__(
        self,
        matrix: Callable[[], Floats],
        utility: float,
        dual_bound: float,
        method: str,
        variables: int = 0,
        inequalities: int = 0,
    ) -> None:
        if not callable(matrix):
            raise TypeError(f"`matrix` must be a function that makes the matrix, got {type(matrix).__name__}")
        utility, dual_bound = _check.real(utility, "utility"), _check.real(dual_bound, "dual_bound")
        self._make = matrix
        self.utility, self.dual_bound, self.method = utility, max(utility, dual_bound), method
        self.variables, self.inequalities = variables, inequalities

    #: Of the inputs and outputs of the channel.
    _names: tuple[tuple[Hashable, ...] | None, tuple[Hashable, ...] | None] = (None, None)

    @cached_property
    def channel(self) -> Channel:
        """The channel."""
        return Channel._trusted(FloatMatrix(np.ascontiguousarray(self._make())), *self._names)

    @property
    def tight(self) -> bool:
        """Whether the utility reaches the bound."""
        return self.dual_bound - self.utility <= 1e-9 * self.dual_bound

    def __repr__(self) -> str:
        return f"<OptimalMechanism: utility {self.utility:.9g}, dual bound {self.dual_bound:.9g}, by {self.method}>"


def optimal_mechanism(
    graph: GraphLike,
    epsilon: float,
    prior: npt.ArrayLike | None = None,
    gain: npt.ArrayLike | None = None,
    *,
    method: Literal["auto", "closed form", "weighting", "linear program"] = "auto",
    use_symmetry: bool = True,
    time_limit: float | None = None,
) -> OptimalMechanism:
    """Return an epsilon-private channel on a graph, of maximal utility.

    Maximizes ``sum_x prior[x] sum_w C[x, w] gain[w, x]``; without `gain` that is the chance ``sum_x prior[x] C[x, x]``
    that the output is the input. No channel with more outputs is worth more.

    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        The graph on which the channel has to be private.
    epsilon : float
        In nats, >= 0; may be infinite.
    prior : array_like of float, shape (n,), optional
        Uniform if left out.
    gain : array_like of float, shape (guesses, n), optional
        What guess ``w`` is worth if the input is ``x``, >= 0.
    method : {"auto", "closed form", "weighting", "linear program"}
        How to find it; "auto" takes the first that applies.
    use_symmetry : bool
        Whether to reduce the linear program by the automorphisms that keep the prior.
    time_limit : float, optional
        Seconds for all of it: the search of automorphisms and the linear program.

    Returns
    -------
    OptimalMechanism

    Raises
    ------
    TypeError, ValueError
        If an argument lies outside its domain, or the method asked for does not apply.
    TimeoutError
        If it is not found in time.
    quincunx.errors.ConvergenceError
        If the linear program is not solved to a relative 1e-6, as the dual bound shows.
    RuntimeError
        If the process that solves a linear program cannot be started or is ended.

    Notes
    -----
    With ``q = exp(-epsilon)`` and ``K[h, k] = q**d(h, k)``, a channel satisfies ``K x <= 1`` for its diagonal ``x``.
    *Closed form*: if spheres around all vertices have the same sizes ``b_d`` and the prior is uniform, ``K / r``
    with ``r = sum(b_d q**d)`` is best.
    *Weighting*: if ``K w = 1`` and ``K y = prior`` have solutions of at least 0, ``K diag(w)`` is best
    and `y` proves it. *Linear program*: one variable for each orbit of pairs, solved by HiGHS; the answer is then made
    to satisfy every inequality, and the multipliers give `dual_bound`. Powers of q below 1e-150 are raised to it.

    Examples
    --------
    >>> import math
    >>> from quincunx.graphs import path
    >>> from quincunx.leakage import optimal_mechanism
    >>> optimal_mechanism(path(3), math.log(2))
    <OptimalMechanism: utility 0.555555556, dual bound 0.555555556, by weighting>
    >>> optimal_mechanism((6, [(0, 1), (1, 2), (1, 4), (1, 5), (2, 3)]), math.log(2))
    <OptimalMechanism: utility 0.388888889, dual bound 0.388888889, by linear program>
    """
    graph = _checks.graph_on(graph)
    level = _checks.level(epsilon)
    _checks.labels_in_order(prior, graph.labels, "prior")
    _checks.labels_in_order(gain, graph.labels, "gain")
    weights = _checks.prior(prior, graph.num_vertices)
    worth = None if gain is None else _checks.gain(gain, graph.num_vertices)
    _check.one_of(method, "method", _METHODS)
    _check.flag(use_symmetry, "use_symmetry")
    if time_limit is not None:
        time_limit = _check.real(time_limit, "time_limit", positive=True)
    uniform = prior is None or bool((weights == weights[0]).all())
    best = _best(graph, level, weights, worth, uniform, method, use_symmetry, Deadline(time_limit))
    best._names = graph._labels, graph._labels if worth is None else None
    return best


def _best(
    graph: Graph,
    level: float,
    weights: Floats,
    worth: Floats | None,
    uniform: bool,
    method: str,
    use_symmetry: bool,
    end: Deadline,
) -> OptimalMechanism:
    if level in (0.0, math.inf) or not (graph.edges[:, 0] != graph.edges[:, 1]).any():
        return _separate(graph, level, weights, worth)
    level = min(level, -math.log(LEAST))  # no utility in floats has more digits
    words = as_hamming(graph) if uniform and worth is None and use_symmetry else None
    if worth is None and method in ("auto", "closed form"):
        found = _closed_form(graph, level, words) if uniform else None
        if found is not None:
            return found
    if worth is None and method in ("auto", "weighting"):
        found = _weighting(graph, level, weights, uniform, end)
        if found is not None:
            return found
    if method in ("closed form", "weighting"):
        raise ValueError(f"`method` must be one that applies, got {method!r}: see the notes of optimal_mechanism")
    if words is not None:
        solution = solve(program := hamming_program(*words), level, end)
        return _of_program(partial(_by_distance, solution.values, *words), solution, program)
    return _linear_program(graph, level, weights, worth, uniform, use_symmetry, end)


def _separate(graph: Graph, level: float, weights: Floats, worth: Floats | None) -> OptimalMechanism:
    """One best guess for each class of inputs that must look alike: components at level 0, single inputs else."""
    n = graph.num_vertices
    _check.room(16 * n * (n if worth is None else len(worth)), "the channel")
    if level == 0:
        from scipy.sparse.csgraph import connected_components

        count, classes = connected_components(graph.to_scipy(), directed=False)
    else:
        count, classes = n, np.arange(n)
    total = np.zeros((count, n if worth is None else len(worth)))
    if worth is None:
        total[classes, np.arange(n)] = weights
    else:
        np.add.at(total, classes, (worth * weights).T)
    guesses = total.argmax(axis=1)
    utility = math.fsum(total.max(axis=1))

    return OptimalMechanism(partial(_certain, guesses[classes], total.shape[1]), utility, utility, "closed form")


# The channel of an answer is made when it is first asked for; these functions can be pickled with it.


def _certain(outputs: Ints, count: int) -> Floats:
    table = np.zeros((len(outputs), count))
    table[np.arange(len(outputs)), outputs] = 1.0
    return table


def _by_distance(values: Floats, length: int, alphabet_size: int) -> Floats:
    return values[hamming_distances(length, alphabet_size)]


def _hamming_kernel(best: float, level: float, length: int, alphabet_size: int) -> Floats:
    return best * powers(level, hamming_distances(length, alphabet_size).astype(np.float64))


def _scaled_kernel(best: float, graph: Graph, level: float) -> Floats:
    return best * _kernel(graph, level)


def _weighted_kernel(graph: Graph, level: float, weights: Floats) -> Floats:
    return _rows_to_one(_kernel(graph, level) * weights)


def _closed_form(graph: Graph, level: float, words: tuple[int, int] | None) -> OptimalMechanism | None:
    """K divided by its row sums, where these are equal because the spheres are."""
    q = math.exp(-level)
    if words is not None:
        length, alphabet_size = words
        best = (1 + (alphabet_size - 1) * q) ** -length
        return OptimalMechanism(partial(_hamming_kernel, best, level, length, alphabet_size), best, best, "closed form")
    sizes = sphere_sizes(graph)
    if (sizes != sizes[0]).any():
        return None
    best = 1 / float(sizes[0] @ powers(level, np.arange(sizes.shape[1], dtype=np.float64)))
    return OptimalMechanism(partial(_scaled_kernel, best, graph, level), best, best, "closed form")


def _kernel(graph: Graph, level: float) -> Floats:
    _check.room(40 * graph.num_vertices**2, "the channel")
    return powers(level, distances(graph).astype(np.float64))


def _group(graph: Graph, weights: Floats, uniform: bool, end: Deadline) -> AutomorphismGroup:
    colors = None if uniform else np.unique(weights, return_inverse=True)[1].astype(np.int64)
    return automorphism_group(graph, colors, time_limit=end.left())


def _solved(matrix: Floats, right: Floats) -> Floats | None:
    """Solve equations with one step of refinement; None if they do not hold closely enough or a value is negative."""
    try:
        found = aside(np.linalg.solve, matrix, right)
        found = found + aside(np.linalg.solve, matrix, right - matrix @ found)
    except np.linalg.LinAlgError:
        return None
    residual = np.abs(matrix @ found - right).max()
    if not residual <= _RESIDUAL * max(1.0, float(np.abs(right).max())) or not found.min() >= -_NEGATIVE:
        return None
    # Of less than this a product with `LEAST` would lose its digits.
    return np.where(found < LEAST, 0.0, found)


def _weighting(graph: Graph, level: float, weights: Floats, uniform: bool, end: Deadline) -> OptimalMechanism | None:
    """K diag(w) with K w = 1, proved best by y with K y = prior."""
    orbits = _group(graph, weights, uniform, end).orbits
    quotient, sizes = kernel_quotient(graph, orbits, level)
    w = _solved(quotient, np.ones(len(sizes)))
    if w is None:
        return None
    on_orbits = weights[np.unique(orbits, return_index=True)[1]]
    y = w * on_orbits[0] if uniform else _solved(quotient, on_orbits)
    if y is None:
        return None
    utility = float((sizes * on_orbits) @ w)
    bound = _proved(quotient, sizes, on_orbits, y * sizes)
    return OptimalMechanism(partial(_weighted_kernel, graph, level, w[orbits]), utility, bound, "weighting")


def _proved(quotient: Floats, sizes: Floats, prior: Floats, prices: Floats) -> float:
    """Bound every channel by prices of the orbits: K y >= (1 - slack) prior gives sum(y) / (1 - slack)."""
    y = np.maximum(prices, 0.0) / sizes
    cover = float((quotient @ y / np.maximum(prior, 1e-300))[prior > 0].min(initial=1.0))
    return float(sizes @ y) / min(cover, 1.0) if cover > 0 else 1.0


def _rows_to_one(matrix: Floats) -> Floats:
    scaled: Floats = matrix / matrix.sum(axis=1, keepdims=True)
    return scaled


def _linear_program(
    graph: Graph, level: float, weights: Floats, worth: Floats | None, uniform: bool, use_symmetry: bool, end: Deadline
) -> OptimalMechanism:
    n = graph.num_vertices
    _check.room(40 * n * (n if worth is None else len(worth)), "the linear program")
    group = _group(graph, weights, uniform, end) if use_symmetry else None
    if group is not None and worth is not None and not _keeps(worth, group):
        group = None
    guesses = n if worth is None else len(worth)
    coefficients = np.diag(weights) if worth is None else (worth * weights).T
    distance = distances(graph).astype(np.float64) if guesses == n else np.zeros((n, guesses))
    distance = np.maximum(distance, 0.0)
    if group is None:
        labels: npt.NDArray[np.integer] = np.arange(n * guesses).reshape(n, guesses)
        orbits, columns = np.arange(n), np.arange(guesses)
    else:
        labels, orbits = group.orbitals().labels(), group.orbits
        columns = np.unique(orbits, return_index=True)[1]
    program = graph_program(labels, orbits, columns, graph.edges, coefficients, distance)
    proved = None
    if worth is None:
        quotient, sizes = kernel_quotient(graph, orbits, level)
        proved = partial(_proved, quotient, sizes, weights[np.unique(orbits, return_index=True)[1]])
    solution = solve(program, level, end, proved)
    return _of_program(partial(np.take, solution.values, labels), solution, program)


def _of_program(make: Callable[[], Floats], solution: Solution, program: Program) -> OptimalMechanism:
    size = len(program.objective), len(program.below)
    return OptimalMechanism(make, solution.utility, solution.dual_bound, "linear program", *size)


def _keeps(worth: Floats, group: AutomorphismGroup) -> bool:
    """Whether a gain is the same for permuted guesses and inputs."""
    n = group.num_points
    return worth.shape == (n, n) and all(np.array_equal(worth[np.ix_(p, p)], worth) for p in group.generators)


@leakage_doc
def distance_channel(graph: GraphLike, epsilon: float) -> Channel:
    """Return the channel whose probabilities fall with distance as fast as privacy allows: Alvim's mechanism.

    ``C[h, k] = w[k] exp(-epsilon d(h, k))`` with the weights for which rows sum to 1, the channel of tight constraints.
    Powers below 1e-150 are raised to it, so that ratios of entries keep their digits.
    If spheres around all vertices have the same sizes b_d, all weights are ``1 / sum(b_d exp(-epsilon d))``, as in
    theorem 4 of [1]_ for symmetric graphs. Wherever it exists it is of maximal utility for the uniform prior.

    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
    epsilon : float
        In nats, >= 0; may be infinite.

    Returns
    -------
    Channel
        With one output for each vertex.

    Raises
    ------
    TypeError
        If `graph` is no graph.
    ValueError
        If `epsilon` is negative, or a weight would be: then no such channel exists (`optimal_mechanism` finds the best
        one). If it is so near 0 that the weights cannot be told in floats; at 0 any do, and rows are uniform.

    {alvim}

    Examples
    --------
    >>> import math
    >>> from quincunx.graphs import hamming
    >>> from quincunx.leakage import distance_channel
    >>> round(distance_channel(hamming(2, 3), math.log(2)).min_capacity(), 12)
    1.169925001442
    """
    graph = _checks.graph_on(graph)
    level = _checks.level(epsilon)
    if level == math.inf:
        _check.room(8 * graph.num_vertices**2, "the matrix")
        return Channel._trusted(FloatMatrix(np.eye(graph.num_vertices)), graph._labels, graph._labels)
    if level == 0:
        return Channel._trusted(FloatMatrix(_rows_to_one(_kernel(graph, 0.0))), graph._labels, graph._labels)
    found = _closed_form(graph, level, as_hamming(graph))
    if found is None:
        found = _weighting(graph, level, np.full(graph.num_vertices, 1 / graph.num_vertices), True, Deadline(None))
    if found is None:
        quotient, _ = kernel_quotient(graph, automorphism_group(graph).orbits, level)
        rule = "for weights of at least 0" if np.linalg.cond(quotient) < _SINGULAR else "to solve for weights in floats"
        raise ValueError(f"`epsilon` must be large enough {rule} on this graph, got {level}")
    found._names = graph._labels, graph._labels
    return found.channel


@leakage_doc
def geometric_channel(n: int, epsilon: float) -> Channel:
    """Return the truncated geometric channel on ``0, ..., n-1``: the best private answer to a counting query.

    ``C[h, k] = w[k] q**|h - k|`` with ``q = exp(-epsilon)`` and weights ``1 / (1 + q)`` at the ends and
    ``(1 - q) / (1 + q)`` between. Powers below 1e-150 are raised to it, so that ratios of entries keep their digits.

    {inputs}

    {domain}

    References
    ----------
    .. [1] A. Ghosh, T. Roughgarden and M. Sundararajan (2009), Universally utility-maximizing privacy mechanisms, STOC.

    Examples
    --------
    >>> import math
    >>> from quincunx.leakage import geometric_channel
    >>> geometric_channel(3, math.log(2)).matrix.round(4).tolist()
    [[0.6667, 0.1667, 0.1667], [0.3333, 0.3333, 0.3333], [0.1667, 0.1667, 0.6667]]
    """
    n = _check.whole(n, "n", minimum=1)
    level = _checks.level(epsilon)
    _check.room(40 * n * n, f"the channel of {n} inputs")
    if n == 1:
        return Channel._trusted(FloatMatrix(np.ones((1, 1))))
    places = np.arange(n, dtype=np.float64)
    q = math.exp(-level)
    weights = np.full(n, -math.expm1(-level) / (1 + q))
    weights[[0, -1]] = 1 / (1 + q)
    return Channel._trusted(FloatMatrix(powers(level, np.abs(places[:, None] - places)) * weights))


@leakage_doc
def randomized_response(n: int, epsilon: float) -> Channel:
    """Return the channel that is truthful with the largest chance privacy allows, and else says anything else.

    ``exp(epsilon) / (exp(epsilon) + n - 1)`` on the diagonal, the rest spread evenly.

    {inputs}

    {domain}

    Examples
    --------
    >>> import math
    >>> from quincunx.leakage import randomized_response
    >>> randomized_response(3, math.log(2)).matrix[0].round(12).tolist()
    [0.5, 0.25, 0.25]
    """
    n = _check.whole(n, "n", minimum=1)
    _check.room(24 * n * n, "the channel")
    q = float(powers(_checks.level(epsilon), np.ones(1))[0])
    matrix = np.full((n, n), q / (1 + (n - 1) * q))
    np.fill_diagonal(matrix, 1 / (1 + (n - 1) * q))
    return Channel._trusted(FloatMatrix(matrix))
