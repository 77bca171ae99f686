"""A claim of privacy put to the test by draws: a lower bound of epsilon that holds with stated confidence.

For an event E chosen on other draws, ``p = P[M(x) in E]`` and ``q = P[M(y) in E]`` are bounded by Clopper and Pearson;
an (epsilon, delta)-private M has ``p <= exp(epsilon) q + delta``, so that ``epsilon >= log((p - delta) / q)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._progress import Progress, reporting
from quincunx._types import Array, Floats
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._mechanism import Mechanism

BLOCK = 2**20  # numbers drawn at a time: eight megabytes
CALLS = 1024  # outputs of a function gathered at a time, between two reports of progress
# With these the audit finds 96 to 99 % of the epsilon of every mechanism in six million draws. They are not tuned: more
# events are tried with more of them, each of which is seen in fewer of the first draws.
THRESHOLDS = 2000  # tried, at most, for each tail
BINS = 32  # of a coordinate that has more values
ROWS = 4096  # whole outputs that are cells of their own, at most
GRAIN = 2.0**-30  # of logarithms of likelihood ratios: equal ones differ by less, rounding being what it is

Estimate = Callable[..., Floats]  # of the hits of both data sets, for many events at once
Outputs: TypeAlias = (
    "Array | list[object]"  # an array with the draws along its first axis, or a list where they have no common shape
)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    epsilon : float
        With probability `confidence` the mechanism's epsilon at `delta` is at least this; 0 if nothing was found.
    delta : float
        The delta that was granted.
    confidence : float
        Of the bound, over the draws of the audit.
    claimed : float or None
        The epsilon that the mechanism claims at `delta`.
    event : str
        The event E in words.
    direction : {"x over y", "y over x"}
        Whose outputs lie in E more often.
    hits, n_draws : (int, int)
        Outputs in E and outputs drawn, first of the data set that has more.
    bounds : (float, float)
        The lower bound of the first probability of E and the upper bound of the second.

    Examples
    --------
    >>> from quincunx.privacy import RandomizedResponse, audit
    >>> result = audit(RandomizedResponse(1.0), 0, 1, n_draws=10_000, confidence=1 - 1e-9)
    >>> result.n_draws
    (3334, 3334)
    >>> result.rejected
    False
    """

    epsilon: float
    delta: float
    confidence: float
    claimed: float | None
    event: str
    direction: str
    hits: tuple[int, int]
    n_draws: tuple[int, int]
    bounds: tuple[float, float]

    @property
    def rejected(self) -> bool:
        """Whether the claim is refuted, at the stated confidence."""
        return self.claimed is not None and self.epsilon > self.claimed


def audit(
    mechanism: object,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    n_draws: int = 100_000,
    confidence: float = 0.999,
    epsilon: float | None = None,
    delta: float | None = None,
    statistic: Callable[[Outputs], npt.ArrayLike] | None = None,
    vectorized: bool = False,
    progress: Progress = None,
) -> AuditResult:
    """Bound a mechanism's epsilon from below, by its outputs for two neighbors.

    Half the outputs are drawn for x, half for y. A first third chooses an event for each direction: a threshold of the
    logarithm of the likelihood ratio if the mechanism has one, else of `statistic`, else a cell of a histogram; the one
    with the best estimate. The other draws bound its probabilities, each of the four bounds at a quarter of
    ``1 - confidence``.

    Parameters
    ----------
    mechanism : mechanism or function
        Anything with `release`, or a function of a data set that returns one output: a number or an array.
    x, y : array_like
        Two neighbors, as `release` takes them.
    n_draws : int
        Outputs drawn in all, at least 24.
    confidence : float
        In (0, 1). A mechanism that keeps its claim is rejected with a probability of at most one minus this.
    epsilon, delta : float, optional
        The claim; by default that of the mechanism's release of `x`, at `delta` where that is given; else none and 0.
    statistic : function, optional
        Of a stack of outputs (a list where they have no common shape); returns a number for each. Goes before a
        likelihood.
    vectorized : bool
        Whether a function takes ``(x, size)`` and returns so many independent outputs along the first axis.
    progress : bool or function, optional
        Called with the draws done and in all.

    Returns
    -------
    AuditResult
        With the event, the counts and the bound.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain, or outputs have no common shape and there is no `statistic`.
    TooLargeError
        If the data, or the draws that choose the event, do not fit in memory.

    Notes
    -----
    A bound from below: a small one proves nothing. `n` draws see no epsilon beyond about ``log(n)`` and no delta below
    ``1 / n``. Drawing takes most of the time; mechanisms of this package are drawn in blocks, others call by call.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    .. [2] M. Jagielski, J. Ullman and A. Oprea (2020), Auditing differentially private machine learning, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.privacy import GeometricMechanism, audit
    >>> result = audit(GeometricMechanism(1.0, n=1), 0, 1, n_draws=100_000, confidence=1 - 1e-9)
    >>> 0.8 < result.epsilon < 1, result.rejected
    (True, False)
    >>> noise = np.random.default_rng(1)
    >>> too_little = lambda x, size: x + noise.laplace(scale=0.5, size=size)
    >>> audit(too_little, 0.0, 1.0, epsilon=1.0, vectorized=True).rejected
    True
    """
    total = _check.whole(n_draws, "n_draws", minimum=24)
    level = _check.open_probability(confidence, "confidence")
    stated = _stated(mechanism, x, None if delta is None else _check.probability(delta, "delta"))
    claimed = stated[0] if epsilon is None else _check.nonnegative(epsilon, "epsilon")
    granted = stated[1]
    stacked = _check.flag(vectorized, "vectorized")
    for data, name in ((x, "x"), (y, "y")):
        _check.fits(data, name)
    reduce = _reduction(mechanism, x, y, statistic)
    half = total // 2
    first, rest = half // 3, half - half // 3
    with reporting(progress, "audit") as report:
        source = _Source(mechanism, stacked, report, 2 * half)
        chosen = [source.gather(data, first, reduce or _array) for data in (x, y)]
        estimate = partial(_estimates, draws=first, times=rest / first, delta=granted, risk=(1 - level) / 4)
        if reduce is None:
            events = [_best_cell(chosen[0], chosen[1], estimate), _best_cell(chosen[1], chosen[0], estimate)]
        else:
            # Of a likelihood ratio, only the upper tail can tell for x and only the lower one for y.
            tails = ((True,), (False,)) if statistic is None else ((True, False), (True, False))
            events = [
                _best_threshold(chosen[0], chosen[1], estimate, tails[0], statistic is None),
                _best_threshold(chosen[1], chosen[0], estimate, tails[1], statistic is None),
            ]
        del chosen
        hits = [source.count(data, rest, reduce or _array, events) for data in (x, y)]
    found = []
    for direction, (one, other) in enumerate(((0, 1), (1, 0))):
        counts = hits[one][direction], hits[other][direction]
        low = float(lower_bound(counts[0], rest, (1 - level) / 4))
        high = float(upper_bound(counts[1], rest, (1 - level) / 4))
        bound = max(math.log((low - granted) / high), 0.0) if low > granted else 0.0
        found.append((bound, direction, counts, (low, high)))
    bound, direction, counts, bounds = max(found, key=lambda one: one[0])
    return AuditResult(
        epsilon=bound,
        delta=granted,
        confidence=level,
        claimed=claimed,
        event=events[direction].words,
        direction=("x over y", "y over x")[direction],
        hits=counts,
        n_draws=(rest, rest),
        bounds=bounds,
    )


def lower_bound(hits: npt.ArrayLike, draws: float, risk: float) -> Floats:
    """Return Clopper's and Pearson's lower bound of a probability, wrong with a probability of at most `risk`."""
    from scipy.special import betaincinv

    k = np.asarray(hits, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(k > 0, betaincinv(np.maximum(k, 1e-9), draws - k + 1, risk), 0.0)


def upper_bound(hits: npt.ArrayLike, draws: float, risk: float) -> Floats:
    """Return Clopper's and Pearson's upper bound of a probability, wrong with a probability of at most `risk`."""
    from scipy.special import betainccinv

    k = np.asarray(hits, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(k < draws, betainccinv(k + 1, np.maximum(draws - k, 1e-9), risk), 1.0)


def _stated(mechanism: Any, data: npt.ArrayLike, delta: float | None) -> tuple[float | None, float]:
    """Return the epsilon that a mechanism claims of a release of such data, and the delta: its own, or a given one."""
    guarantee: Any = getattr(mechanism, "guarantee", None)
    if not isinstance(guarantee, PrivacyGuarantee):
        epsilon, own = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
        if delta is not None and delta != own:
            epsilon = None  # what it claims is at another delta
        at = _check.probability(own if delta is None else delta, "delta")
        return None if epsilon is None else _check.real(epsilon, "epsilon"), at
    guarantee = getattr(mechanism.release(data), "guarantee", guarantee)  # of several choices that of all
    if delta is None or not 0 < delta < 1:
        at = guarantee.delta if delta is None else delta
        return guarantee.epsilon if guarantee.delta <= at else None, at
    epsilon = guarantee.epsilon_at(delta)
    return epsilon if math.isfinite(epsilon) else None, delta


class _Source:
    """Draws outputs in blocks."""

    def __init__(
        self, mechanism: object, vectorized: bool, report: Callable[[int, int], object] | None, total: int
    ) -> None:
        self.stacks = isinstance(mechanism, Mechanism) and mechanism.stacks
        self.vectorized = vectorized
        call = getattr(mechanism, "release", mechanism)
        if not callable(call):
            raise TypeError(f"`mechanism` must have `release` or be a function, got {type(mechanism).__name__}")
        self.call: Callable[..., object] = call
        self.report, self.done, self.total = report, 0, total

    def blocks(self, data: npt.ArrayLike, number: int) -> Iterator[Outputs]:
        """Yield stacks of outputs, `number` in all."""
        size = max(1, BLOCK // max(np.size(np.asarray(data)), 1)) if self.stacks or self.vectorized else CALLS
        while number:
            count = min(size, number)
            if self.stacks:
                one = np.asarray(data)
                yield np.asarray(self.call(np.broadcast_to(one, (count, *one.shape))))
            elif self.vectorized:
                block = np.asarray(self.call(data, count))
                if block.ndim == 0 or len(block) != count:
                    raise ValueError(f"`mechanism` must return {count} outputs along its first axis, got {block.shape}")
                yield block
            else:
                yield _stacked([self.call(data) for _ in range(count)])
            number -= count
            self.done += count
            if self.report is not None:
                self.report(self.done, self.total)

    def gather(self, data: npt.ArrayLike, number: int, reduce: Callable[[Outputs], Array]) -> Array:
        """Return what `number` outputs are reduced to."""
        parts: list[Array] = []
        for part in map(reduce, self.blocks(data, number)):
            if not parts:
                _check.room(4 * number * (part.nbytes // len(part)), "choosing an event")
            parts.append(part)
        return np.concatenate(parts)

    def count(
        self, data: npt.ArrayLike, number: int, reduce: Callable[[Outputs], Array], events: list[_Event]
    ) -> list[int]:
        """Return how many of `number` outputs lie in each event."""
        hits = [0] * len(events)
        for values in map(reduce, self.blocks(data, number)):
            for i, event in enumerate(events):
                hits[i] += int(np.count_nonzero(event.contains(values)))
        return hits


def _stacked(outputs: list[object]) -> Outputs:
    """Return outputs as one array where they have a common shape."""
    arrays = [np.asarray(output) for output in outputs]
    if any(array.shape != arrays[0].shape or array.dtype.kind == "O" for array in arrays):
        return outputs
    return np.stack(arrays)


def _array(block: Outputs) -> Array:
    """Return outputs as rows of equal length."""
    if not isinstance(block, np.ndarray) or block.dtype.kind not in "biufUS":
        raise ValueError("`statistic` must be given where outputs are not arrays of one shape, of numbers or of words")
    return block.reshape(len(block), -1)


def _reduction(
    mechanism: object, x: npt.ArrayLike, y: npt.ArrayLike, statistic: Callable[[Outputs], npt.ArrayLike] | None
) -> Callable[[Outputs], Floats] | None:
    """Return the function of a stack of outputs whose thresholds are events, None where there is none."""
    if statistic is not None:
        if not callable(statistic):
            raise TypeError(f"`statistic` must be a function, got {type(statistic).__name__}")

        def reduced(block: Outputs) -> Floats:
            values = np.asarray(statistic(block), dtype=np.float64)
            if values.shape != (len(block),) or np.isnan(values).any():
                raise ValueError(f"`statistic` must return a number for each of {len(block)} outputs")
            return values

        return reduced
    likelihood = getattr(mechanism, "log_likelihood", None)
    if likelihood is None or np.shape(x) != np.shape(y):
        return None

    def ratio(block: Outputs) -> Floats:
        one, other = (np.asarray(likelihood(block, data)).reshape(len(block), -1) for data in (x, y))
        with np.errstate(invalid="ignore"):
            parts = np.where(one == other, 0.0, one - other)
        return np.asarray(np.rint(parts.sum(axis=1) / GRAIN) * GRAIN)

    return ratio


class _Event(NamedTuple):
    """A set of outputs: where a number lies at or beyond a threshold, or in a cell."""

    words: str
    contains: Callable[[Array], npt.NDArray[np.bool_]]


def _estimates(more: Array, less: Array, *, draws: int, times: float, delta: float, risk: float) -> Floats:
    """Return the bounds to expect of the draws to come, `times` as many, from the hits in the first ones."""
    low = lower_bound(more * times, draws * times, risk)
    high = upper_bound(less * times, draws * times, risk)
    return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def _best_threshold(more: Floats, less: Floats, estimate: Estimate, tails: Sequence[bool], ratio: bool) -> _Event:
    """Return the tail of a statistic, an upper one (True) or a lower one, that tells the two most apart."""
    values = np.unique(np.concatenate([more, less]))
    if len(values) > THRESHOLDS:
        ends = THRESHOLDS // 10
        middle = np.linspace(ends, len(values) - ends - 1, THRESHOLDS - 2 * ends).astype(int)
        few = np.concatenate([np.arange(ends), middle, np.arange(len(values) - ends, len(values))])
        values = values[np.unique(few)]
    more, less = np.sort(more), np.sort(less)
    found: list[tuple[float, float, bool]] = []
    for above in tails:
        if above:
            hits = [len(part) - np.searchsorted(part, values, side="left") for part in (more, less)]
        else:
            hits = [np.searchsorted(part, values, side="right") for part in (more, less)]
        estimates = estimate(hits[0], hits[1])
        place = int(np.argmax(estimates))
        found.append((float(estimates[place]), float(values[place]), above))
    _, bound, above = max(found, key=lambda one: one[0])
    words = f"the {'log-likelihood ratio' if ratio else 'statistic'} {'>=' if above else '<='} {bound:.9g}"
    return _Event(words, (lambda s: s >= bound) if above else (lambda s: s <= bound))


def _best_cell(more: Array, less: Array, estimate: Estimate) -> _Event:
    """Return the cell that tells the two most apart: a whole output, or a value or range of one coordinate."""
    both = np.concatenate([more, less])
    best: tuple[float, _Event] | None = None

    def offer(codes: Array, number: int, make: Callable[[int], _Event]) -> None:
        nonlocal best
        found = estimate(*(np.bincount(part, minlength=number) for part in np.split(codes, [len(more)])))
        place = int(np.argmax(found))
        if best is None or found[place] > best[0]:
            best = float(found[place]), make(place)

    if both.shape[1] > 1:
        rows, codes = np.unique(both, axis=0, return_inverse=True)
        if len(rows) <= ROWS:
            offer(codes.reshape(-1), len(rows), partial(_row_event, rows))
    for column in range(both.shape[1]):
        values, codes = np.unique(both[:, column], return_inverse=True)
        if len(values) <= ROWS // 16 or values.dtype.kind in "US":
            offer(codes, len(values), partial(_value_event, column, values))
        else:
            edges = np.unique(np.quantile(both[:, column], np.linspace(0, 1, BINS + 1)[1:-1]))
            codes = np.searchsorted(edges, both[:, column], side="right")
            offer(codes, len(edges) + 1, partial(_bin_event, column, edges))
    assert best is not None
    return best[1]


def _row_event(rows: Array, place: int) -> _Event:
    row = rows[place]
    return _Event(f"the output is {row.tolist()}", lambda these: np.all(these == row, axis=1))


def _value_event(column: int, values: Array, place: int) -> _Event:
    value = values[place]
    return _Event(f"coordinate {column} is {value}", lambda rows: rows[:, column] == value)


def _bin_event(column: int, edges: Array, place: int) -> _Event:
    low = -math.inf if place == 0 else float(edges[place - 1])
    high = math.inf if place == len(edges) else float(edges[place])
    return _Event(
        f"coordinate {column} lies in [{low:.9g}, {high:.9g})",
        lambda rows: (rows[:, column] >= low) & (rows[:, column] < high),
    )
