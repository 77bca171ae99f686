"""Channels in blocks of rows: the largest and smallest entry of each column, which is all that some figures need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from quincunx._types import Floats, Ints
from quincunx.leakage._exact import ExactMatrix, log
from quincunx.leakage._floats import FloatMatrix

#: The rows of largest and of smallest entries, as the ends of an edge.
_ENDS = np.array([[0, 1]], dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class ChannelColumns:
    """Largest and smallest entries of a channel's columns, of which its min-capacity and its privacy level follow.

    Made by `Channel.from_blocks`; the rows of another follow its own with ``+``. Figures are those of the whole
    channel: fractions where it is exact, and in floats the same bits.

    Parameters
    ----------
    n_inputs : int
        Rows so far.
    guesses : ndarray of int64, shape (n_outputs,)
        The row of the largest entry of each column, the first of several.

    Examples
    --------
    >>> from quincunx.leakage import Channel
    >>> columns = Channel.from_blocks([[["3/4", "1/4"]], [["1/2", "1/2"]]], exact=True)
    >>> columns.bayes_vulnerability(), columns.likelihood_ratio(), columns.guesses.tolist()
    (Fraction(5, 8), Fraction(2, 1), [0, 1])
    """

    _ends: ExactMatrix | FloatMatrix
    n_inputs: int
    guesses: Ints

    @classmethod
    def _of(cls, entries: ExactMatrix | FloatMatrix) -> ChannelColumns:
        """Return the columns of a channel with these entries."""
        exact, floats = entries.fractions, entries.floats
        if exact is None:
            return cls(
                FloatMatrix(np.stack([floats.max(axis=0), floats.min(axis=0)])), len(floats), floats.argmax(axis=0)
            )
        columns = list(zip(*exact, strict=True))
        largest = tuple(map(max, columns))
        guesses = [column.index(most) for column, most in zip(columns, largest, strict=True)]
        return cls(ExactMatrix((largest, tuple(map(min, columns)))), len(exact), np.array(guesses, dtype=np.int64))

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return len(self.guesses)

    @property
    def is_exact(self) -> bool:
        """Whether the entries are fractions."""
        return isinstance(self._ends, ExactMatrix)

    @property
    def maxima(self) -> Floats | tuple[Fraction, ...]:
        """The largest entry of each column."""
        return self._ends.floats[0] if self._ends.fractions is None else self._ends.fractions[0]

    @property
    def minima(self) -> Floats | tuple[Fraction, ...]:
        """The smallest entry of each column."""
        return self._ends.floats[1] if self._ends.fractions is None else self._ends.fractions[1]

    def __add__(self, other: ChannelColumns) -> ChannelColumns:
        if not isinstance(other, ChannelColumns):
            return NotImplemented
        if (self.n_outputs, self.is_exact) != (other.n_outputs, other.is_exact):
            raise ValueError(
                f"blocks must have {self.n_outputs} columns of {'fractions' if self.is_exact else 'floats'}, "
                f"got {other.n_outputs} of {'fractions' if other.is_exact else 'floats'}"
            )
        if isinstance(self._ends, ExactMatrix):
            largest = tuple(map(max, self.maxima, other.maxima))
            ends: ExactMatrix | FloatMatrix = ExactMatrix((largest, tuple(map(min, self.minima, other.minima))))
            later = np.array([b > a for a, b in zip(self.maxima, other.maxima, strict=True)])
        else:
            mine, its = self._ends.floats, other._ends.floats
            stacked = np.stack((np.maximum(mine[0], its[0]), np.minimum(mine[1], its[1])))
            ends, later = FloatMatrix(stacked), its[0] > mine[0]
        guesses = np.where(later, other.guesses + self.n_inputs, self.guesses)
        return ChannelColumns(ends, self.n_inputs + other.n_inputs, guesses)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChannelColumns):
            return NotImplemented
        same = self.n_inputs == other.n_inputs and np.array_equal(self.guesses, other.guesses)
        return same and self._ends == other._ends

    def __hash__(self) -> int:
        return hash((self._ends, self.n_inputs))

    def __repr__(self) -> str:
        return f"<ChannelColumns: {self.n_inputs} inputs, {self.n_outputs} outputs{', exact' if self.is_exact else ''}>"

    def bayes_vulnerability(self) -> float | Fraction:
        """Return the chance that the best guess of a uniform input is right, as `Channel.bayes_vulnerability`.

        Returns
        -------
        float, or Fraction for an exact channel
        """
        if self.is_exact:
            return sum(self.maxima, Fraction()) / self.n_inputs
        return math.fsum(self.maxima * np.full(self.n_outputs, 1 / self.n_inputs))

    def min_capacity(self) -> float:
        """Return the largest min-entropy leakage over all priors, as `Channel.min_capacity`.

        Returns
        -------
        float
            In bits.
        """
        total = self._ends.column_maxima_sum()
        return max(log(total, None) if isinstance(total, Fraction) else math.log2(total), 0.0)

    def likelihood_ratio(self) -> float | Fraction:
        """Return the largest ratio of the probabilities of an output for any two inputs.

        Returns
        -------
        float, or Fraction for an exact channel
            At least 1; infinite where 0 faces more than 0.
        """
        return self._ends.ratio(_ENDS)

    def dp_epsilon(self) -> float:
        """Return the least epsilon where any two inputs are neighbors, as `Channel.dp_epsilon` on a complete graph.

        Returns
        -------
        float
            In nats.
        """
        return self._ends.epsilon(_ENDS, None)


T = TypeVar("T")


def of_blocks(blocks: Iterable[T | ChannelColumns], make: Callable[[T], ExactMatrix | FloatMatrix]) -> ChannelColumns:
    """Return the columns of blocks of rows, of which one at a time is in memory; `make` makes the entries of one."""
    found = None
    for block in blocks:
        own = block if isinstance(block, ChannelColumns) else ChannelColumns._of(make(block))
        found = own if found is None else found + own
    if found is None:
        raise ValueError("`blocks` must hold at least one block of rows, got none")
    return found
