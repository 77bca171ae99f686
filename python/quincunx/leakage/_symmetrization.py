"""What averaging over symmetries gives, and a report of what it keeps, may change, or breaks."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Array, Facts, Floats
from quincunx.graphs import AutomorphismGroup, Graph, automorphism_group
from quincunx.graphs._graph import GraphLike, IntArray, counted
from quincunx.leakage import _checks, _symmetry
from quincunx.leakage._channel import Channel
from quincunx.leakage._exact import ExactMatrix
from quincunx.leakage._floats import FloatMatrix

#: What is proved of a property of the averaged channel.
PROVED, OPEN, FALSE = "proved", "not guaranteed", "false"
#: Floats that agree to this relative accuracy are taken for equal where a report calls something false.
_CLOSE = 1e-12


def symmetrize(
    channel: Channel,
    group_or_graph: AutomorphismGroup | GraphLike,
    graph: GraphLike | None,
    prior: npt.ArrayLike | None,
    output_action: npt.ArrayLike | None,
    out: Floats | None,
    time_limit: float | None,
    threads: int | None,
) -> Symmetrization:
    """Do what `Channel.symmetrize` says."""
    workers = _check.threads(threads)
    words: tuple[int, int] | None
    if isinstance(group_or_graph, AutomorphismGroup):
        group = group_or_graph
        if group.num_points != channel.n_inputs:
            raise ValueError(f"`group_or_graph` must act on {channel.n_inputs} inputs, got {group.num_points} points")
        _checks.in_order(group.labels, channel.inputs, "group_or_graph")
        words = _symmetry.as_hamming_group(group)
        on = None if graph is None else _checks.graph_on(graph, channel.inputs)
        if on is not None:
            AutomorphismGroup.from_generators(group.num_points, group.generators, graph=on)
    else:
        if graph is not None:
            raise ValueError("`graph` must be left out where the first argument is a graph")
        if output_action is not None:
            raise ValueError("`output_action` must come with a group, whose generators it follows")
        on = _checks.graph_on(group_or_graph, channel.inputs, "group_or_graph")
        words = _symmetry.as_hamming(on)
        group = automorphism_group(on, time_limit=time_limit) if words is None else AutomorphismGroup.hamming(*words)
    action = _output_action(output_action, group, channel)
    _checks.prior(prior, channel.n_inputs)
    prior = copy.copy(prior)  # figures are worked out later
    target = _target(out, channel)
    entries: ExactMatrix | FloatMatrix
    if (exact := channel.fractions) is None:
        entries = FloatMatrix(_symmetry.average(channel.matrix, group, words, action, target, workers))
    else:
        entries = ExactMatrix(_symmetry.average_exact(exact, group, action))
    averaged = Channel._trusted(entries, channel._inputs, channel._outputs)
    return Symmetrization(channel, averaged, group, on, prior, action is None, workers)


def _output_action(value: npt.ArrayLike | None, group: AutomorphismGroup, channel: Channel) -> IntArray | None:
    if value is None:
        if channel.n_inputs != channel.n_outputs:
            raise ValueError(
                f"`output_action` must be given for a channel that is not square, got shape {channel.matrix.shape}"
            )
        return None
    action = _check.counts(value, "output_action")
    expected = (len(group.generators), channel.n_outputs)
    if action.size == 0:
        action = action.reshape(expected if expected[0] == 0 else action.shape)
    if action.shape != expected:
        raise ValueError(f"`output_action` must have shape {expected}, got {action.shape}")
    for number, row in enumerate(action):
        if not np.array_equal(np.sort(row), np.arange(channel.n_outputs)):
            raise ValueError(f"`output_action` must hold permutations of 0..{channel.n_outputs - 1}, got row {number}")
    return action


def _target(out: Floats | None, channel: Channel) -> Floats | None:
    if out is None:
        return None
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise TypeError(f"`out` must be an array of float64, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != channel.matrix.shape or not out.flags.carray:
        raise ValueError(
            f"`out` must be C-contiguous, aligned, writeable and of shape {channel.matrix.shape}, got shape {out.shape}"
        )
    if np.may_share_memory(out, channel.matrix):
        raise ValueError("`out` must not share memory with the channel")
    if channel.is_exact:
        raise ValueError("`out` must be left out for an exact channel")
    return out


class Symmetrization:
    """A channel averaged over a group, with a report.

    Made by `Channel.symmetrize`. The figures are worked out when they are first asked for.

    Attributes
    ----------
    channel, original : Channel
        The average, and what was averaged.
    group : AutomorphismGroup
        The group.
    graph : Graph or None
        The graph on which privacy is measured.
    guarantees : dict of str to {"proved", "not guaranteed", "false"}
        For each property of the average: whether a theorem gives it here, none does although it may hold, or it is
        false of this very channel. The keys are

        - ``row_stochastic``: the rows are distributions;
        - ``dp_preserved``: no privacy level is worse than before: epsilon, delta(epsilon), Renyi, metric;
        - ``diagonal_maximal``: each column has its maximum on the diagonal;
        - ``capacity_preserved``: the min-capacity is the same;
        - ``constant_diagonal``: all entries on the diagonal are equal;
        - ``leakage_preserved``: the Bayes vulnerability for the prior is the same.
    reasons : dict of str to str
        A sentence for each.
    prior : ndarray of float64
        The prior for which leakage is compared.

    Examples
    --------
    >>> from quincunx.graphs import path
    >>> from quincunx.leakage import Channel
    >>> rows = [["1/2", "3/10", "1/5"], ["2/5", "2/5", "1/5"], ["2/5", "1/5", "2/5"]]
    >>> print(Channel(rows, exact=True).symmetrize(path(3)))
    averaged over a group of order 2: 3 inputs in 2 orbits, 5 orbits on pairs
    epsilon             0.693147 -> 0.470004 nats
    min-capacity        0.378512 -> 0.378512 bits
    vulnerability       13/30 -> 13/30
    trace               13/10
    row_stochastic      proved: each row is a mean of rows with permuted entries
    dp_preserved        proved: automorphisms map neighbors to neighbors, and every level is (quasi-)convex
    diagonal_maximal    proved: it is so in the original, and a mean keeps the order within the orbits of columns
    capacity_preserved  proved: the columns have their maxima on the diagonal, so their sum is the trace, which is kept
    constant_diagonal   false: the group is not transitive: input 1 has 2/5, input 0 has 9/20
    leakage_preserved   proved: the prior is constant on orbits and the best guess given each output k is k
    """

    def __init__(
        self,
        original: Channel,
        channel: Channel,
        group: AutomorphismGroup,
        graph: Graph | None,
        prior: npt.ArrayLike | None,
        acts_alike: bool,
        threads: int,
    ) -> None:
        self.original, self.channel, self.group, self.graph = original, channel, group, graph
        self._prior, self._acts_alike, self._threads = prior, acts_alike, threads

    @property
    def prior(self) -> Floats:
        """The prior for which leakage is compared."""
        return _checks.prior(self._prior, self.original.n_inputs)

    @property
    def orbits(self) -> IntArray:
        """The orbit of each input."""
        return self.group.orbits

    @property
    def transitive(self) -> bool:
        """Whether all inputs are in one orbit."""
        return self.group.is_transitive

    @property
    def group_order(self) -> int:
        """Number of elements of the group."""
        return self.group.order

    @cached_property
    def rank(self) -> int:
        """Number of orbits on pairs of inputs."""
        return self.group.rank

    @cached_property
    def epsilon_before(self) -> float | None:
        """The privacy level of the original in nats; None without a graph."""
        return None if self.graph is None else self.original.dp_epsilon(self.graph, threads=self._threads)

    @cached_property
    def epsilon_after(self) -> float | None:
        """The privacy level of the average in nats, from its own entries; None without a graph."""
        return None if self.graph is None else self.channel.dp_epsilon(self.graph, threads=self._threads)

    @cached_property
    def capacity_before(self) -> float:
        """The min-capacity of the original, in bits."""
        return self.original.min_capacity()

    @cached_property
    def capacity_after(self) -> float:
        """The min-capacity of the average, in bits."""
        return self.channel.min_capacity()

    @cached_property
    def vulnerability_before(self) -> float | Fraction:
        """The Bayes vulnerability of the original for the prior."""
        return self.original.bayes_vulnerability(self._prior)

    @cached_property
    def vulnerability_after(self) -> float | Fraction:
        """The Bayes vulnerability of the average for the prior."""
        return self.channel.bayes_vulnerability(self._prior)

    @cached_property
    def trace(self) -> float | Fraction | None:
        """The sum of the diagonal, which averaging keeps; None if the outputs are not permuted as the inputs are."""
        if not self._acts_alike:
            return None
        if self.channel.fractions is not None:
            return sum((row[x] for x, row in enumerate(self.channel.fractions)), Fraction(0))
        return float(np.trace(self.channel.matrix))

    @cached_property
    def _findings(self) -> dict[str, tuple[str, str]]:
        return {
            "row_stochastic": (PROVED, "each row is a mean of rows with permuted entries"),
            "dp_preserved": self._privacy(),
            "diagonal_maximal": self._diagonal_maximal(),
            "capacity_preserved": self._capacity(),
            "constant_diagonal": self._constant_diagonal(),
            "leakage_preserved": self._leakage(),
        }

    @property
    def guarantees(self) -> dict[str, str]:
        """For each property "proved", "not guaranteed" or "false"."""
        return {name: value for name, (value, _) in self._findings.items()}

    @property
    def reasons(self) -> dict[str, str]:
        """For each property the reason."""
        return {name: reason for name, (_, reason) in self._findings.items()}

    def _privacy(self) -> tuple[str, str]:
        where = "" if self.graph is not None else ", on every graph of which the group consists of automorphisms"
        return PROVED, f"automorphisms map neighbors to neighbors, and every level is (quasi-)convex{where}"

    def _entries(self, channel: Channel) -> Array:
        """Return the entries, exact ones as an array of objects."""
        return channel.matrix if channel.fractions is None else np.array(channel.fractions, dtype=object)

    def _weights(self) -> Array:
        """Return the prior, exact where the channel is."""
        n, exact = self.original.n_inputs, self.original.is_exact
        return np.array(_checks.prior_exact(self._prior, n), dtype=object) if exact else self.prior

    def _diagonal_maximal(self) -> tuple[str, str]:
        if not self._acts_alike:
            return OPEN, "outputs are permuted in their own way, so the diagonal means nothing"
        before = _off_diagonal_maximum(self._entries(self.original))
        if before is None:
            return PROVED, "it is so in the original, and a mean keeps the order within the orbits of columns"
        after = _off_diagonal_maximum(self._entries(self.channel), _CLOSE)
        if after is None:
            return (
                OPEN,
                f"it is so here, but no theorem says so: the original has its maximum elsewhere in column {before}",
            )
        return FALSE, f"column {after} has its maximum off the diagonal, as column {before} of the original had"

    def _capacity(self) -> tuple[str, str]:
        if self._acts_alike and _off_diagonal_maximum(self._entries(self.original)) is None:
            return PROVED, "the columns have their maxima on the diagonal, so their sum is the trace, which is kept"
        before, after = (channel._entries.column_maxima_sum() for channel in (self.original, self.channel))
        if _same(before, after):
            return OPEN, "it is the same here, but a mean of columns can have a smaller maximum"
        return FALSE, f"it fell from {self.capacity_before:.6g} to {self.capacity_after:.6g} bits; it never rises"

    def _constant_diagonal(self) -> tuple[str, str]:
        if not self._acts_alike:
            return OPEN, "outputs are permuted in their own way, so the diagonal means nothing"
        if self.transitive:
            return (
                PROVED,
                "the group is transitive, so each diagonal entry is the trace divided by the number of inputs",
            )
        diagonal = np.diagonal(self._entries(self.channel))
        low, high = min(diagonal), max(diagonal)
        if _same(low, high):
            return OPEN, "the orbits of inputs happen to have equal means here, but the group is not transitive"
        x, y = int(np.argmin(diagonal)), int(np.argmax(diagonal))
        return FALSE, f"the group is not transitive: input {x} has {_shown(low)}, input {y} has {_shown(high)}"

    def _leakage(self) -> tuple[str, str]:
        weights = self._weights()
        orbits = self.orbits
        first = np.unique(orbits, return_index=True)[1]
        invariant = bool((weights == weights[first][orbits]).all())
        if self._acts_alike and invariant:
            weighted = weights[:, None] * self._entries(self.original)
            if _off_diagonal_maximum(weighted) is None:
                return PROVED, "the prior is constant on orbits and the best guess given each output k is k"
        before, after = (channel._entries.vulnerability(self._prior) for channel in (self.original, self.channel))
        if _same(before, after):
            why = "not every output is its own best guess" if invariant else "the prior is not constant on orbits"
            return OPEN, f"it is the same here, but {why}"
        word = "rose" if after > before else "fell"
        rule = (
            "for this prior it cannot rise"
            if invariant
            else "the prior is not constant on orbits, so it may move either way"
        )
        moved = f"from {_shown(self.vulnerability_before)} to {_shown(self.vulnerability_after)}"
        return FALSE, f"the vulnerability {word} {moved}; {rule}"

    def __str__(self) -> str:
        orbits, pairs = counted(len(np.unique(self.orbits)), "orbit"), counted(self.rank, "orbit")
        group = f"averaged over a group of order {_check.shown(self.group_order)}"
        lines = [f"{group}: {self.channel.n_inputs} inputs in {orbits}, {pairs} on pairs"]
        if self.epsilon_before is not None and self.epsilon_after is not None:
            lines.append(f"{'epsilon':<19} {self.epsilon_before:.6g} -> {self.epsilon_after:.6g} nats")
        lines.append(f"{'min-capacity':<19} {self.capacity_before:.6g} -> {self.capacity_after:.6g} bits")
        lines.append(f"{'vulnerability':<19} {_shown(self.vulnerability_before)} -> {_shown(self.vulnerability_after)}")
        if self.trace is not None:
            lines.append(f"{'trace':<19} {_shown(self.trace)}")
        lines += [f"{name:<19} {value}: {reason}" for name, (value, reason) in self._findings.items()]
        return "\n".join(lines)

    def to_dict(self) -> Facts:
        """Return the report as words and numbers that JSON can hold; fractions and infinity as strings.

        Returns
        -------
        dict
        """

        def plain(value: float | Fraction | None) -> float | str | None:
            return str(value) if isinstance(value, Fraction) or value == math.inf else value

        fractions = self.channel.fractions
        rows: list[list[float | str]] = (
            self.channel.matrix.tolist() if fractions is None else [[str(e) for e in row] for row in fractions]
        )
        return {
            "group_order": str(self.group_order),
            "orbits": self.orbits.tolist(),
            "rank": self.rank,
            "transitive": self.transitive,
            "epsilon_before": plain(self.epsilon_before),
            "epsilon_after": plain(self.epsilon_after),
            "capacity_before": self.capacity_before,
            "capacity_after": self.capacity_after,
            "vulnerability_before": plain(self.vulnerability_before),
            "vulnerability_after": plain(self.vulnerability_after),
            "trace": plain(self.trace),
            "guarantees": self.guarantees,
            "reasons": self.reasons,
            "channel": rows,
        }

    def __repr__(self) -> str:
        words = ", ".join(f"{name} {value}" for name, value in self.guarantees.items() if value != PROVED)
        return f"<Symmetrization of {self.channel!r}: {words or 'everything proved'}>"


def _off_diagonal_maximum(entries: Array, close: float = 0.0) -> int | None:
    """Return the first column whose maximum exceeds its diagonal entry, None if there is none."""
    maxima, diagonal = entries.max(axis=0), np.diagonal(entries)
    beyond = maxima > (diagonal if entries.dtype == object else diagonal * (1 + close))
    return int(np.argmax(beyond)) if beyond.any() else None


def _same(one: float | Fraction, other: float | Fraction) -> bool:
    """Whether two figures are equal, floats to a few roundings."""
    return one == other or (isinstance(one, float) and abs(one - other) <= _CLOSE * max(one, other))


def _shown(value: float | Fraction) -> str:
    return str(value) if isinstance(value, Fraction) else f"{value:.6g}"
