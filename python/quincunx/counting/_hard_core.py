"""The hard-core partition function at any activity."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Literal, NamedTuple, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._check import Number
from quincunx._job import Job, JobOptions
from quincunx._types import ByLabel, Floats
from quincunx.counting import _exact
from quincunx.counting._activities import Activity, Many, Several, activities_of, array_of, is_many, two_doubles
from quincunx.counting._parts import counting_doc
from quincunx.counting._problem import Order, as_problem, vertex_order
from quincunx.graphs._graph import GraphLike, as_graph


class FloatResult(NamedTuple):
    """A floating-point value with a proved bound on its absolute error."""

    value: float
    error: float


class FloatResults(NamedTuple):
    """Floating-point values with a proved bound on the absolute error of each."""

    value: "Floats"
    error: "Floats"


@overload
def hard_core(
    graph: "GraphLike",
    activity: "Activity",
    *,
    mode: Literal["exact"] = "exact",
    per_vertex: Literal[True] | None = None,
    order: Order = None,
    **options: Unpack[JobOptions],
) -> int | Fraction: ...


@overload
def hard_core(
    graph: "GraphLike",
    activity: "Several",
    *,
    mode: Literal["exact"] = "exact",
    per_vertex: Literal[False],
    order: Order = None,
    **options: Unpack[JobOptions],
) -> "npt.NDArray[np.object_]": ...


@overload
def hard_core(
    graph: "GraphLike",
    activity: "Number | ByLabel[Number]",
    *,
    mode: Literal["float", "log"],
    per_vertex: Literal[True] | None = None,
    order: Order = None,
    **options: Unpack[JobOptions],
) -> FloatResult: ...


@overload
def hard_core(
    graph: "GraphLike",
    activity: "Several",
    *,
    mode: Literal["float", "log"],
    per_vertex: Literal[True],
    order: Order = None,
    **options: Unpack[JobOptions],
) -> FloatResult: ...


@overload
def hard_core(
    graph: "GraphLike",
    activity: "Several",
    *,
    mode: Literal["float", "log"],
    per_vertex: Literal[False] | None = None,
    order: Order = None,
    **options: Unpack[JobOptions],
) -> FloatResults: ...


@counting_doc
def hard_core(
    graph: "GraphLike",
    activity: "Activity",
    *,
    mode: Literal["exact", "float", "log"] = "exact",
    per_vertex: bool | None = None,
    order: Order = None,
    **options: Unpack[JobOptions],
) -> "int | Fraction | FloatResult | FloatResults | npt.NDArray[np.object_]":
    """Evaluate the hard-core partition function of a graph.

    ``Z(z) = sum over independent sets S of z**len(S)``, where z is the activity (or fugacity).

    Parameters
    ----------
    graph, order, threads, memory_limit, progress, checkpoint, checkpoint_interval, executor
        As in `count_independent_sets`. Checkpoints and executors are for ``mode="exact"``.
    activity : int, Fraction, float, str, or a sequence or mapping of them
        The activity z; finite. A float stands for the rational number it is; give ``Fraction(1, 10)`` or ``"1/10"``
        where one tenth is meant. A mapping of labels gives one for each vertex (those not named have activity one), and
        ``Z = sum over S of prod(z[v] for v in S)``. A sequence or array is either that or several activities, each of
        all vertices: see `per_vertex`.
    mode : {"exact", "float", "log"}, optional
        ``"exact"``: an int for an integer activity, else a Fraction. ``"float"``: a double with a proved error, at
        most 1.2e-16 of it, for z >= 0. ``"log"``: its natural logarithm with a proved error, which cannot overflow.
    per_vertex : bool, optional
        What the entries of a sequence are. True: the activities of the vertices in their order, for one value. False:
        several activities, for as many values. If it is left out, True in ``mode="exact"`` and False in the others,
        where as many entries as vertices are refused, because either may be meant.

    Returns
    -------
    int, Fraction, FloatResult, FloatResults or ndarray
        The value; a `FloatResult` is the pair ``(value, error)`` with an absolute error. For several activities a pair
        of arrays of their shape, in ``mode="exact"`` an array of objects.

    Raises
    ------
    ValueError
        If the activity is not finite, or negative with ``mode="float"`` or ``"log"`` (terms of both signs cancel), or
        if `per_vertex` does not fit it.
    OverflowError
        If the value is beyond the largest double.
    TooLargeError, TypeError, CheckpointError
        As `count_independent_sets`.

    Notes
    -----
    Exact values are found modulo primes, like counts: ``b**d Z(a/b)`` is an integer when no independent set has more
    than d vertices. Floating-point values add non-negative terms only, so with k operations on the longest path that
    err by at most e each, the relative error is at most ``(1 + e)**k - 1``. They are sums of two doubles, e = 2**-102
    [1]_, rounded once at the end: the relative error is below 1.2e-16 on every graph that any machine can take. A float
    is taken as it is; a Fraction, a string or a long integer to 105 bits, and what they miss is part of the error.

    References
    ----------
    .. [1] M. Joldes, J.-M. Muller and V. Popescu (2017), Tight and rigorous error bounds for basic building blocks of
       double-word arithmetic, ACM TOMS 44, algorithms 5 and 10.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from quincunx import lattices
    >>> from quincunx.counting import hard_core
    >>> hard_core(lattices.square(2, 2), 2)
    17
    >>> hard_core(lattices.square(2, 2), Fraction(1, 2))
    Fraction(7, 2)
    >>> hard_core(lattices.square(2, 2), -1)
    -1
    >>> value, error = hard_core(lattices.square(20, 20), 1.0, mode="float")
    >>> error < 1.2e-16 * value
    True
    >>> hard_core(lattices.square(2, 2), ["1/2", 1, 2], mode="float").value
    array([ 3.5,  7. , 17. ])
    >>> hard_core(lattices.square(2, 2), [1, 2, 3, 4], per_vertex=True)
    21
    >>> hard_core(lattices.square(2, 2), [1, 2, 3, 4], per_vertex=False)
    array([7, 17, 31, 49], dtype=object)
    """
    job = Job(**options)
    mode = _check.one_of(mode, "mode", ["exact", "float", "log"])  # type: ignore[assignment]
    if per_vertex is not None:
        per_vertex = _check.flag(per_vertex, "per_vertex")
    if is_many(activity):
        if _is_per_vertex(graph, activity, mode, per_vertex):
            return _of_each_vertex(graph, activity, mode, order, job)
        return _of_each_activity(graph, activity, mode, order, options)
    if per_vertex:
        raise ValueError("`per_vertex` must not be True for a single activity")
    problem = as_problem(graph, order)
    if mode != "exact":
        if job.checkpoint is not None or job.executor is not None:
            name = "checkpoint" if job.executor is None else "executor"
            raise ValueError(f'`{name}` must be None unless mode="exact"')
        number = two_doubles(activity)
        with job.reporting("partition function"):
            found = _core.hard_core_float(problem, number, job)
        return _as_log(*found) if mode == "log" else _as_float(*found)
    ratio = _check.rational(activity, "activity").as_integer_ratio()
    (integer,), plan = _exact.solve(partial(_core.plan_independent_sets, problem, ratio), "partition function", job)
    if isinstance(activity, (int, np.integer)):
        return integer
    return Fraction(cast(Rational, _Coprime(*plan.lowest_terms(integer))))


@dataclass
class _Coprime:
    """A fraction in lowest terms: the constructor of `Fraction` takes a rational number as it is.

    Of two integers it works out the greatest common divisor, which takes minutes for long ones and hears no interrupt.
    """

    numerator: int
    denominator: int


Rational.register(_Coprime)


def _of_each_vertex(
    graph: "GraphLike", activity: Many, mode: str, order: Order, job: Job
) -> int | Fraction | FloatResult:
    """Evaluate the partition function with an activity for each vertex: exactly, and then perhaps rounded."""
    found = as_graph(graph)
    hint = "" if isinstance(activity, Mapping) else "; several activities need per_vertex=False"
    activities = activities_of(found, activity, negative=mode == "exact", hint=hint)
    weights = [[z.denominator, z.numerator] for z in activities]
    problem = (found.num_vertices, found.edges, None if order is None else vertex_order(order, found))
    (numerator,), _ = _exact.solve(partial(_core.plan_independent_sets, problem, weights), "partition function", job)
    value = Fraction(numerator, math.prod(z.denominator for z in activities))
    if mode == "float":
        try:
            return FloatResult(float(value), float(value) * 2.0**-53)
        except OverflowError:
            message = 'the partition function is beyond the largest double: use mode="log" or "exact"'
            raise OverflowError(message) from None
    if mode == "log":
        log = math.log(value.numerator) - math.log(value.denominator)
        return FloatResult(log, 4 * 2.0**-53 * (math.log(value.numerator) + math.log(value.denominator) + 1))
    values = activity.values() if isinstance(activity, Mapping) else activity
    return int(value) if all(isinstance(z, (int, np.integer)) for z in values) else value


def _is_per_vertex(graph: "GraphLike", activity: Many, mode: str, per_vertex: bool | None) -> bool:
    """Say whether the entries are the activities of the vertices; what may be meant either way is refused."""
    if isinstance(activity, Mapping):
        if per_vertex is False:
            raise ValueError("`per_vertex` must not be False for a mapping, which gives activities by vertex")
        return True
    if per_vertex is not None or mode == "exact":
        return per_vertex is not False
    _check.fits(activity, "activity")
    entries = array_of(activity)
    if entries.size and entries.ndim == 1 and entries.size == as_graph(graph).num_vertices:
        for entry in entries:
            _check.rational(entry, "activity")  # a bad number is the first thing to say
        raise ValueError(
            f"`per_vertex` must be given where `activity` has as many entries as there are vertices, {entries.size}: "
            "True for the activities of the vertices, False for several activities"
        )
    return False


def _of_each_activity(
    graph: "GraphLike", activity: Many, mode: Literal["exact", "float", "log"], order: Order, options: JobOptions
) -> "FloatResults | npt.NDArray[np.object_]":
    """Evaluate the partition function at each of several activities."""
    if options.get("checkpoint") is not None:
        raise ValueError("`checkpoint` must be None for several activities: each is a job of its own")
    many = array_of(activity)
    found = [hard_core(graph, one, mode=mode, order=order, **options) for one in many.reshape(-1).tolist()]
    if mode == "exact":
        values = np.empty(len(found), dtype=object)
        values[:] = found
        return values.reshape(many.shape)
    pairs = np.array(found, dtype=np.float64).reshape(*many.shape, 2)
    return FloatResults(pairs[..., 0].copy(), pairs[..., 1].copy())


def _as_float(high: float, low: float, exponent: int, relative_error: float) -> FloatResult:
    """Return the value as a double; scaling by a power of two is exact, and what the high part misses is an error."""
    try:
        value = math.ldexp(high, exponent)
    except OverflowError:
        message = f'the partition function is about 2**{exponent}, beyond the largest double: use mode="log" or "exact"'
        raise OverflowError(message) from None
    missed = abs(low) / high * (1 + 2**-50)
    return FloatResult(value, value * (relative_error + missed) * (1 + 2**-50))


def _as_log(high: float, low: float, exponent: int, relative_error: float) -> FloatResult:
    """Return the natural logarithm; its error is that of the value and of the roundings here.

    Below a value of two they are three roundings of the logarithm, however small it is, above five of it and of one.
    """
    if exponent == 0:
        value = math.log1p((high - 1) + low)
        rounding = 4 * 2**-53 * abs(value)
    else:
        value = math.log(high) + low / high + exponent * math.log(2.0)
        rounding = 5 * 2**-53 * (value + 1)
    return FloatResult(value, (relative_error + rounding) * (1 + 2**-50))
