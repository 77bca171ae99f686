"""The number of independent sets, the independence polynomial, and what they will cost."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Literal, TypeAlias, TypeVar, Unpack, get_args

from quincunx import _check, _core, _units
from quincunx._check import Number
from quincunx._html import table_html
from quincunx._job import Job, JobOptions
from quincunx.counting import _exact
from quincunx.counting._clusters import multiplied, plan_clusters
from quincunx.counting._matchings import plan_dimers, plan_matchings
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import Order, Problem, as_problem
from quincunx.counting._spanning_trees import plan_trees
from quincunx.errors import TooLargeError
from quincunx.graphs._families import complete
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, laid

Result = TypeVar("Result")


@counting_doc
def count_independent_sets(graph: "GraphLike", *, order: Order = None, **options: Unpack[JobOptions]) -> int:
    """Count the independent sets of a graph, exactly.

    An independent set is a set of vertices with no edge inside; the empty set is one. The number is also known as the
    Merrifield-Simmons index, and is the hard-core partition function at activity one. Parallel edges count once; a
    vertex with a loop is in no independent set. The empty graph has one.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        What is counted on. The square, king, triangular and 4-8-8 lattices have kernels of their own.
    order : sequence of vertices, optional
        The order in which a graph's vertices are taken; by default a good one is searched for. A lattice given with an
        order is treated as a graph.
    threads : int, optional
        Threads to use; by default all this process may use. The result does not depend on it.
    memory_limit : int, optional
        Bytes the job may use; by default what is available, to a task of an `executor` where that runs. The job is
        refused before any work if they do not suffice.
    progress : bool or callable, optional
        `True` shows a bar; a function is called as ``progress(done, total)``, and an exception it raises stops the
        work.
    checkpoint : path, optional
        Where a long job keeps its state. Called again with the same path after a stop, even by ``kill -9``, the job
        goes on from there and gives the same result, bit for bit; a memory limit for which another method is chosen
        refuses it and keeps it. It is written at intervals and when the job is stopped: with everything done so far
        where a step takes less than a tenth of a second and the vectors less than 64 MB, else with what is finished,
        unless an older one holds more. The file is readable by its owner alone, no link is followed, and beside it lies
        a lock: a second job on the same path raises `CheckpointError` with the process that holds it. The file is
        removed at the end.
    checkpoint_interval : float, optional
        Seconds between two checkpoints; by default 30, and more where writing takes long; with an `executor` each task
        that ends is kept.
    executor : concurrent.futures.Executor, optional
        Where primes are counted, in tasks of one to eight or as many as take milliseconds, or parts of the seams of a
        torus: a thread or process pool, loky, Dask's ``Client.get_executor()``, MPI. Planning is done once, here. Tasks
        end with the job. A residue that is wrong is traced to its prime and worker and counted again.

    Returns
    -------
    int
        The exact number, however long.

    Raises
    ------
    TooLargeError
        If the job needs more memory than `memory_limit`.
    ValueError, TypeError
        If an argument is not what it should be, or the residues of an executor modulo several primes are wrong, or
        one is wrong twice.
    CheckpointError
        If the checkpoint cannot be written, is damaged, or belongs to another job.
    WorkerError
        If the workers of an executor are gone, or a task ended several in a row; with Dask, after 300 s without one.

    Warns
    -----
    RuntimeWarning
        If a cluster of Dask has had no worker for 10 s, or a residue of a worker was wrong.

    Notes
    -----
    Transfer operators modulo primes just below 2**55, as many as a proved bound on the number asks for and one more
    that verifies the result [1]_. For the square lattice of width w, about 0.447 w additions per state, row and prime
    on 1.17 * 1.618**w states [2]_; open ones from a width of 17 on, and cylinders from 24 vertices around on, keep half
    of the states and sweep half of the primes, below 2**52, one at a time. `estimate_cost` says what a job takes.

    Graphs of treewidth at most 12 with thousands of vertices are counted over the integers, along paths of a tree
    decomposition whose matrices are multiplied up by halves [3]_, and verified modulo one prime: the time is nearly
    proportional to the vertices, where primes take as many passes as there are digits. With a checkpoint, which keeps
    residues, it is primes.

    References
    ----------
    .. [1] Z. Zhang (2017), Merrifield-Simmons index and its entropy of the 4-8-8 lattice, chapter 7 of a thesis.
    .. [2] N. Calkin and H. Wilf (1998), The number of independent sets in a grid graph, SIAM J. Discrete Math. 11.
    .. [3] D. Sleator, R. Tarjan (1983), A data structure for dynamic trees, J. Comput. Syst. Sci. 26.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import count_independent_sets
    >>> count_independent_sets(lattices.square(8, 8))
    660647962955
    >>> count_independent_sets(lattices.four_eight_eight(5, 5))
    400989410760263909570575
    >>> count_independent_sets((3, [(0, 1), (1, 2)]))
    5
    """
    job = Job(**options)
    problem = as_problem(graph, order)
    where = f", {problem[0]} {problem[1]} x {problem[2]}" if isinstance(problem[0], str) else ""
    (count,), _ = _exact.solve(partial(_core.plan_independent_sets, problem, "count"), f"independent sets{where}", job)
    return count


@counting_doc
def independence_polynomial(graph: "GraphLike", *, order: Order = None, **options: Unpack[JobOptions]) -> list[int]:
    """Count the independent sets of each size, exactly.

    The coefficients of ``Z(z) = sum_k i_k z**k``, where ``i_k`` is the number of independent sets of k vertices. The
    last one counts the largest independent sets, and its index is the independence number.

    Parameters
    ----------
    graph, order, threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`.

    Returns
    -------
    list of int
        ``i_0, i_1, ..., i_alpha``.

    {errors}

    Notes
    -----
    Evaluations at 1, 2, ... modulo each prime, side by side in the lanes of the vector unit; interpolation; Chinese
    remainders. Costs about alpha times as much as a count.

    Examples
    --------
    >>> from quincunx.counting import independence_polynomial
    >>> from quincunx import lattices
    >>> independence_polynomial(lattices.square(3, 3))
    [1, 9, 24, 22, 6, 1]
    """
    job = Job(**options)
    problem = as_problem(graph, order)
    coefficients, _ = _exact.solve(
        partial(_core.plan_independent_sets, problem, "polynomial"), "independence polynomial", job
    )
    return coefficients


@dataclass(frozen=True, repr=False)
class CostEstimate:
    """What a count will take, before any of it is done.

    Attributes
    ----------
    engine : str
        The transfer operator that will work.
    states : int
        Partial sums in the working vector.
    lanes : int
        Primes side by side.
    bytes : int
        Memory of all working vectors at once.
    primes : int
        Primes, the spare one included.
    additions : float
        Additions of one residue each.
    seconds : float
        Wall time on the given threads of a quiet machine; mostly within a quarter where a part could be done to see,
        else within a factor of two on machines of the last years.
    """

    engine: str
    states: int
    lanes: int
    bytes: int
    primes: int
    additions: float
    seconds: float

    def __repr__(self) -> str:
        return (
            f"<CostEstimate: {self.engine}, {_units.in_bytes(self.bytes)}, about {_units.in_time(self.seconds)}, "
            f"{self.primes} primes>"
        )

    def _repr_html_(self) -> str:
        rows = {
            "engine": self.engine,
            "memory": _units.in_bytes(self.bytes),
            "time": f"about {_units.in_time(self.seconds)}",
            "states": f"{self.states:,}",
            "primes": f"{self.primes}, {self.lanes} side by side",
            "additions": f"{self.additions:.2g}",
        }
        return table_html("Cost of a count", rows)


#: What a forecast can be asked of.
Countable: TypeAlias = Literal[
    "independent-sets",
    "independence-polynomial",
    "spanning-trees",
    "perfect-matchings",
    "matchings",
    "matching-polynomial",
    "chromatic-polynomial",
    "tutte-polynomial",
]


def estimate_cost(
    graph: "GraphLike",
    what: Countable = "independent-sets",
    *,
    activity: Number = 1,
    weight: "Weight | Unweighted" = NOT_SAID,
    order: Order = None,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> CostEstimate:
    """Forecast memory and time of a count.

    Parameters
    ----------
    graph, order, threads
        As in `count_independent_sets`.
    activity : int, Fraction, float or str, optional
        The activity of independent sets, for a forecast of `hard_core` in its exact mode.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `count_spanning_trees`; none for independent sets and colorings.
    memory_limit : int, optional
        Bytes the job may use. Without it the forecast is of the job on this machine as it is now, or where that has too
        little memory, on one that has enough.
    what : {"independent-sets", "spanning-trees", "perfect-matchings", "matchings", ...}, optional
        What is counted, or a polynomial: ``"independence-polynomial"``, ``"matching-polynomial"``,
        ``"chromatic-polynomial"`` or ``"tutte-polynomial"``.

    Returns
    -------
    CostEstimate
        Bytes of the working vectors and seconds of wall time.

    Raises
    ------
    TooLargeError
        If a `memory_limit` is given and the job needs more; or if no machine could hold it: beyond 2**62 bytes, and for
        the kernels of lattices beyond what numbers their states; or if this one cannot hold the plan of a chromatic or
        Tutte polynomial.
    ValueError, TypeError
        If an argument is not what it should be.

    Notes
    -----
    Takes milliseconds, at the most some tenths of a second, and seconds for 10**5 vertices: sizes are known in closed
    form, the number of primes from a proved bound on the count. The time is measured: the work on one prime, or one
    group of those that go side by side, is begun for a fifth of a second if it takes no more than 128 MiB; planning is
    added. Chromatic and Tutte polynomials are planned as for the count, since their states are found one by one: that
    takes seconds on a square of 14 x 14, and on wider graphs minutes and up to `memory_limit` bytes, without one all
    that there are.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.counting import estimate_cost
    >>> cost = estimate_cost(lattices.square(30, 30))
    >>> cost.engine, cost.primes
    ('square reflection', 12)
    """
    _check.one_of(what, "what", get_args(Countable))
    job = Job(threads=threads, memory_limit=memory_limit)
    unit: Fraction | int = 1
    quantity = _quantity(what, _check.rational(activity, "activity"))
    if what in ("independent-sets", "independence-polynomial", "chromatic-polynomial"):
        if weight is not None and weight is not NOT_SAID:
            raise ValueError(f"`weight` must be None for {what.replace('-', ' ')}, got {weight!r}")
    elif what == "tutte-polynomial":
        graph = multiplied(graph, weight)
    else:
        graph, unit, _ = laid(graph, weight)
    counted = "matching-polynomial" if what == "matchings" and unit != 1 else what
    try:
        return _estimate(graph, counted, quantity, order, job)
    except TooLargeError as refused:
        if memory_limit is not None:
            if refused.limit in (0, job.memory_limit):
                raise
            # Kernels of lattices have a limit of their own, where their states can no longer be numbered.
            message = str(refused).replace(f"the limit is {refused.limit}", f"the limit is {job.memory_limit}")
            raise TooLargeError(message, refused.needed, job.memory_limit) from None
        return _estimate(graph, counted, quantity, order, Job(threads=threads, memory_limit=_check.MOST_MEMORY))


#: What is asked of independent sets: their number, their polynomial, or `Z` at an activity.
_Quantity: TypeAlias = str | tuple[int, int]


def _quantity(what: str, activity: Fraction) -> _Quantity | None:
    """Return what is asked of independent sets; None where it is of something else."""
    if what == "independent-sets":
        return "count" if activity == 1 else activity.as_integer_ratio()
    if activity != 1:
        raise ValueError(f"`activity` must be left out for {what.replace('-', ' ')}, got {_check.shown(activity)}")
    return "polynomial" if what == "independence-polynomial" else None


def _estimate(graph: "GraphLike", what: str, quantity: _Quantity | None, order: Order, job: Job) -> CostEstimate:
    """Forecast a count within the memory of a job."""
    if quantity is not None:
        return _of_this_host(as_problem(graph, order), quantity, job)
    try:
        plan, planning = _timed(lambda: _PLANS[what](graph, order, job.memory_limit))
    except ValueError as reason:
        if "there are enough primes" not in str(reason):
            raise
        raise TooLargeError(f"the count has more digits than there are primes for: {reason}") from None
    return _planned_cost(plan, planning, job.threads, job.memory_limit)


_PLANS: dict[str, Callable[..., _core.ExactPlan]] = {
    "spanning-trees": plan_trees,
    "perfect-matchings": plan_dimers,
    "matchings": partial(plan_matchings, which="all"),
    "matching-polynomial": partial(plan_matchings, which="by size"),
    "chromatic-polynomial": partial(plan_clusters, what="chromatic"),
    "tutte-polynomial": partial(plan_clusters, what="tutte"),
}

# Nanoseconds of two sizes of matchings in the interpolation that follows their sums.
_INTERPOLATED = 11.0


# Seconds of planning up to which a count is planned to see; those that the first primes are then worked on, and the
# bytes that they may take: the system's time to give them is not that of the work.
_PLANNED, _TRIED, _TRIED_BYTES = 0.25, 0.2, 1 << 27
# How much longer than forecast the first primes took on this host, and the seconds of planning, by what was asked.
_TAKEN: dict[tuple[object, ...], tuple[float, float]] = {}


def _of_this_host(problem: Problem, quantity: _Quantity, job: Job) -> CostEstimate:
    """Forecast what is asked of independent sets: the first primes are begun on one thread, or done where short."""
    forecasts, undisturbed = _timed(lambda: _core.estimate_cost(problem, quantity, job))
    planning, (primes, held, forecast) = min(forecasts.pop("planning"), undisturbed), forecasts.pop("trial")
    cost = CostEstimate(**forecasts)
    factor = 1.0
    if forecast > 0 and planning <= _PLANNED and _may_be_tried(held, job.memory_limit):
        key = (cost.engine, cost.states, quantity, primes, forecast)
        if key not in _TAKEN:
            alone = Job(threads=1, memory_limit=job.memory_limit)
            plan, planning = _timed(lambda: _core.plan_independent_sets(problem, quantity, alone))
            if len(_TAKEN) > 1000:
                _TAKEN.clear()
            taken = _tried(plan, primes, job.memory_limit) / forecast
            _TAKEN[key] = taken if taken < math.inf else factor, planning
        factor, planning = _TAKEN[key]
    return replace(cost, seconds=cost.seconds * factor + planning)


def _may_be_tried(held: int, limit: int) -> bool:
    return held <= min(limit, _TRIED_BYTES, _check.available_memory())


class _Enough(Exception):
    """A trial has shown how fast the work is."""


def _tried(plan: _core.ExactPlan, primes: int, limit: int) -> float:
    """Return the seconds of the first primes on one thread: the least of three runs, or of fewer that are long."""
    least, all_together = math.inf, 0.0
    for _ in range(3):
        (beginning, part), spent = _timed(lambda: _begun(plan, primes, limit))
        least = min(least, beginning + part * plan.parts)
        all_together += spent
        if all_together > _TRIED:
            break
    return least


def _begun(plan: _core.ExactPlan, primes: int, limit: int) -> tuple[float, float]:
    """Return the seconds, on one thread, until memory is there, and those of a part of the first primes."""
    wall, processor = time.perf_counter(), time.process_time()
    seen: list[tuple[float, float]] = []

    def look(done: int, total: int) -> None:
        spent = min(time.perf_counter() - wall, time.process_time() - processor)
        if done > 0:
            seen.append((spent, done / total))
        if spent - seen[0][0] > _TRIED if seen else spent > 2 * _TRIED:
            raise _Enough

    job = Job(threads=1, memory_limit=limit)
    job.report = look
    try:
        seen.append((_timed(lambda: plan.residues(0, primes, 0, job))[1], 1.0))
    except _Enough:
        if not seen:
            return 0.0, math.inf
    (first, before), (last, done) = seen[0], seen[-1]
    part = (last - first) / (done - before) if done > 2 * before else last / done
    return max(first - before * part, 0.0), part


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a work returns and its seconds, undisturbed: the lesser of wall and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, min(time.perf_counter() - wall, max(time.process_time() - processor, 1e-7))


@cache
def _dense_rate() -> float:
    """Return the seconds of an operation of large fronts, which are most of what is too large to be tried."""
    plan = plan_trees(complete(600), None, _TRIED_BYTES)
    return _tried(plan, 1, _TRIED_BYTES) / plan.method[2]


def _planned_cost(plan: _core.ExactPlan, planning: float, threads: int, limit: int) -> CostEstimate:
    """Forecast what a plan will take, one prime at a time on each thread: the first are begun to see."""
    engine, one, work = plan.method
    _check.room(one, "one prime", limit)
    if engine == _exact.INTEGERS:
        return CostEstimate(engine, one // 8, 1, one, 1, work, planning + _exact.forecast(plan))
    lanes = next((lanes for lanes in (8, 4) if engine == "set partitions" and lanes * one <= limit), 1)
    together = min(threads, plan.primes, max(1, limit // max(lanes * one, 1)))
    each = work * (_dense_rate() if engine == "sparse elimination" else _exact.RATES[engine] * 1e-9)
    tried = min(lanes, plan.primes)
    if _may_be_tried(tried * one, limit) and (taken := _tried(plan, tried, limit)) < math.inf:
        each = taken / tried
    if engine in ("frontier", "tree decomposition") and plan.values > 1:
        each += _INTERPOLATED * 1e-9 * plan.values**2
    seconds = planning + each * plan.primes / together
    return CostEstimate(engine, one // 8, lanes, one * lanes * together, plan.primes, work * plan.primes, seconds)
