"""Checks of what this room takes: matrices, priors, gains, graphs, in floats or in exact fractions."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from quincunx import _check, _core, _tables
from quincunx._types import Floats
from quincunx.graphs import Graph
from quincunx.graphs._graph import GraphLike, as_graph

Exact: TypeAlias = tuple[tuple[Fraction, ...], ...]

#: How far a prior may be from summing to 1: as far as a row of a channel by default.
_PRIOR_ATOL = 1e-9


def table(value: object, name: str) -> Floats:
    """Return a matrix of real numbers as a C-contiguous array, not copied where it is one."""
    _check.refuse_masked(value, name)
    try:
        array = _check.unmasked(value, name)
    except ValueError:
        raise ValueError(f"`{name}` must have rows of one length") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must hold real numbers (for fractions say `exact=True`), got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"`{name}` must have two dimensions, got {array.ndim}")
    if array.size == 0:
        raise ValueError(f"`{name}` must not be empty, got shape {array.shape}")
    return _check.laid_out(array, np.float64)


def stochastic(value: object, atol: float, normalize: bool) -> Floats:
    """Return a channel's matrix as a read-only copy, or raise naming the first wrong entry or row."""
    matrix = np.array(table(value, "matrix"), order="C")
    if normalize:
        matrix[(matrix < 0) & (matrix >= -atol)] = 0.0
        sums = matrix.sum(axis=1, keepdims=True)
        positive = (sums > 0) & np.isfinite(sums)
        np.divide(matrix, sums, out=matrix, where=positive)
    _core.check_channel(matrix, atol)
    matrix.setflags(write=False)
    return matrix


def fraction(value: object, name: str, place: str) -> Fraction:
    """Return an exact number of at least 0: an int, a Fraction or a string such as ``"1/3"``; a float is not one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, Fraction, str, np.integer)):
        raise TypeError(f"`{name}` must hold ints, Fractions or strings, got {type(value).__name__} {place}")
    try:
        number = _check.rational(value, name)
    except ValueError:
        raise ValueError(
            f"`{name}` must hold ints, Fractions or strings such as '1/3', got {value!r:.60} {place}"
        ) from None
    if number < 0:
        raise _negative(number, name, place)
    return number


def _negative(entry: object, name: str, place: str) -> ValueError:
    return ValueError(f"`{name}` must be made of finite entries of at least 0, got {entry} {place}")


def stochastic_exact(value: object) -> Exact:
    """Return a channel's matrix as rows of fractions that sum to 1 exactly."""
    _check.fits(value, "matrix")
    _check.refuse_masked(value, "matrix")
    if hasattr(value, "__array__"):  # tables of pandas, too
        value = np.asarray(value).tolist()
    if not isinstance(value, Sequence) or not all(isinstance(row, Sequence) for row in value):
        raise TypeError("`matrix` must be a sequence of rows")
    rows = tuple(
        tuple(fraction(entry, "matrix", f"at row {x}, column {y}") for y, entry in enumerate(row))
        for x, row in enumerate(value)
    )
    if not rows or not rows[0]:
        raise ValueError("`matrix` must not be empty")
    if len({len(row) for row in rows}) > 1:
        raise ValueError("`matrix` must have rows of one length")
    for x, row in enumerate(rows):
        if sum(row) != 1:
            raise ValueError(f"`matrix` must be made of rows that sum to 1, got the sum {sum(row)} in row {x}")
    return rows


def distribution(value: object, name: str) -> Floats:
    """Return probabilities that sum to 1."""
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(p, (str, Fraction)) for p in value)
    ):
        value = [
            float(fraction(p, name, f"at index {x}")) if isinstance(p, str) else float(p) for x, p in enumerate(value)
        ]
    values = _check.unmasked(value, name)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {values.dtype}")
    if values.ndim != 1 or not values.size:
        raise ValueError(f"`{name}` must have shape (n,) with n >= 1, got {values.shape}")
    values = _check.laid_out(values, np.float64)
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        x = int(np.argmax(bad))
        raise _negative(values[x], name, f"at index {x}")
    total = math.fsum(values)
    if not abs(total - 1) <= _PRIOR_ATOL:
        raise ValueError(f"`{name}` must sum to 1, got the sum {total}")
    return values


def prior(value: object, n: int) -> Floats:
    """Return a prior on n inputs; None is uniform."""
    if value is None:
        _check.room(16 * n, "a prior")
        return np.full(n, 1 / n)
    values = distribution(value, "prior")
    if values.shape != (n,):
        raise ValueError(f"`prior` must have shape ({n},), got {values.shape}")
    return values


def is_exact(value: object) -> bool:
    """Whether a prior is given in fractions, or is the uniform one."""
    _check.fits(value, "prior")
    entries = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(entries, str) or not (isinstance(entries, Sequence) or hasattr(entries, "__array__")):
        return value is None
    return all(isinstance(p, (int, Fraction, str)) for p in np.asarray(entries, dtype=object).ravel())


def prior_exact(value: object, n: int) -> tuple[Fraction, ...]:
    """Return a prior as fractions, floats as what they are."""
    if value is None:
        return (Fraction(1, n),) * n
    if not is_exact(value):
        return tuple(map(Fraction, prior(value, n).tolist()))
    fractions = tuple(fraction(p, "prior", f"at index {x}") for x, p in enumerate(value))  # type: ignore[arg-type, var-annotated]
    if len(fractions) != n:
        raise ValueError(f"`prior` must have shape ({n},), got ({len(fractions)},)")
    if sum(fractions) != 1:
        raise ValueError(f"`prior` must sum to 1, got the sum {sum(fractions)}")
    return fractions


def gain(value: object, n: int) -> Floats:
    """Return a gain function as an array of shape (guesses, n), entries finite and at least 0."""
    values = table(value, "gain")
    if values.shape[1] != n:
        raise ValueError(f"`gain` must have shape (guesses, {n}), got {values.shape}")
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        w, x = (int(i) for i in np.unravel_index(int(np.argmax(bad)), values.shape))
        raise _negative(values[w, x], "gain", f"at row {w}, column {x}")
    return values


def level(value: object, name: str = "epsilon") -> float:
    """Return a number of at least 0 that may be infinite."""
    if isinstance(value, (float, np.floating)) and value == math.inf:
        return math.inf
    number = float("nan") if isinstance(value, (float, np.floating)) and math.isnan(value) else _check.real(value, name)
    if not number >= 0:
        raise ValueError(f"`{name}` must be at least 0, got {number}")
    return number


def in_order(labels: Sequence[Hashable], inputs: Sequence[Hashable], name: str) -> None:
    """Refuse the names of the inputs in another order: vertex or chance i is that of input i.

    Names from a file are text, be they numbers: those that read alike are the same, too.
    """
    rule = f"`{name}` must be in the order of the inputs"
    _tables.refuse_other_order(labels, inputs, rule)
    _tables.refuse_other_order(labels, inputs, rule, str)


def labels_in_order(value: object, inputs: Sequence[Hashable], name: str, *, rows: bool = False) -> None:
    """Refuse a table of pandas or another with labels if its last axis has the names of the inputs in another order.

    With `rows` all of its axes are along the inputs.
    """
    for axis in _tables.axes(value)[0 if rows else -1 :]:
        in_order(axis.labels or (), inputs, name)


def graph_on(value: GraphLike, inputs: Sequence[Hashable] | None = None, name: str = "graph") -> Graph:
    """Return a graph on some inputs, or with at least one vertex."""
    graph = as_graph(value, name)
    if inputs is not None and graph.num_vertices != len(inputs):
        raise ValueError(f"`{name}` must have {len(inputs)} vertices, one for each input, got {graph.num_vertices}")
    if inputs is not None:
        in_order(graph.labels, inputs, name)
    if graph.num_vertices == 0:
        raise ValueError(f"`{name}` must have at least one vertex, got none")
    return graph
