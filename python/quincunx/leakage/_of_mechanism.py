"""Mechanisms of `quincunx.privacy` as channels: P(output | input) for all inputs and outputs.

Randomized responses and the exponential mechanism have finitely many outputs. Two-sided geometric noise on a..b has
not, but all outputs at or below a tell the same: for inputs x, y in a..b the ratio P(z | x) / P(z | y) = alpha^(x - y)
for all z <= a. So they are one output here, ``a``, with probability alpha^(x - a) / (1 + alpha), and likewise all at or
above b; no leakage and no privacy level is changed by that. So are all functions and values of local hashing that
support the same categories, which are counted over the whole family of functions.
"""

import itertools
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Floats
from quincunx.privacy import noise as laws
from quincunx.privacy._affine_hashes import cells, support_counts
from quincunx.privacy._law import CategoricalNoise
from quincunx.privacy._supports import PRIME

#: The least logarithm of a chance: of smaller ones doubles have fewer digits, or none.
_LEAST_LOG = -690.0
#: Unary encoding of k categories has 2^k outputs, of which subsets are a part.
_MOST_BITS = 16
#: Pieces of a family of hash functions that are counted at most: a few seconds.
_MOST_CELLS = 2**18

Rows = tuple[Floats | list[list[Fraction]], Sequence[Hashable], Sequence[Hashable]]


def rows_of(mechanism: object, scores: npt.ArrayLike | None, exact: bool) -> Rows:
    """Return the matrix of a mechanism, or of its noise, and what its rows and columns are."""
    law = getattr(mechanism, "noise", mechanism)
    if isinstance(law, laws.ExponentialChoice) != (scores is not None):
        raise TypeError("`scores` must be given for an ExponentialMechanism, and for nothing else")
    if isinstance(law, (laws.RandomizedResponseNoise, laws.GeneralizedRandomizedResponseNoise)):
        return _response(law, exact)
    if isinstance(law, laws.LocalHashingNoise):
        return _hashing(law, exact)
    if exact:
        name = type(mechanism).__name__
        raise ValueError(f"`exact` must be False for a {name}, whose matrix is made of floating-point numbers")
    if isinstance(law, (laws.UnaryEncodingNoise, laws.SubsetSelectionNoise)):
        return _of_bits(law)
    if isinstance(law, laws.HadamardResponseNoise):
        names = _names(law)
        _room(len(names), law.blocks * law.columns)
        indices = np.arange(law.blocks * law.columns)
        matrix = np.exp([law.log_likelihood(indices, np.full(len(indices), x)) for x in names])
        return matrix, names, indices.tolist()
    if isinstance(law, laws.GeometricNoise):
        return _geometric(law)
    if isinstance(law, laws.ExponentialChoice):
        return _exponential(law, scores)
    raise TypeError(
        "`mechanism` must be a RandomizedResponse, GeneralizedRandomizedResponse, UnaryEncoding, SubsetSelection, "
        "LocalHashing, HadamardResponse, ExponentialMechanism or GeometricMechanism with bounds, got "
        f"{type(mechanism).__name__}"
    )


def _response(law: laws.RandomizedResponseNoise | laws.GeneralizedRandomizedResponseNoise, exact: bool) -> Rows:
    categories, names = len(law.declared), _names(law)
    _room(categories, categories)
    other = law.flip if isinstance(law, laws.RandomizedResponseNoise) else law.other
    keep = 1 - (categories - 1) * other
    if exact:
        rows = [[keep if x == z else other for z in range(categories)] for x in range(categories)]
        return rows, names, names
    return np.where(np.eye(categories, dtype=bool), float(keep), float(other)), names, names


def _names(law: CategoricalNoise) -> Sequence[Hashable]:
    """Return the declared categories."""
    return range(law.categories) if isinstance(law.categories, int) else tuple(law.categories)


def _of_bits(law: laws.UnaryEncodingNoise | laws.SubsetSelectionNoise) -> Rows:
    names = _names(law)
    k = len(names)
    _few(k)
    size = law.size if isinstance(law, laws.SubsetSelectionNoise) else None
    outputs = [row for row in itertools.product((0, 1), repeat=k) if size in (None, sum(row))]
    bits = np.array(outputs)
    matrix = np.stack([np.exp(law.log_likelihood(bits, np.full(len(bits), x))) for x in names])
    return matrix, names, outputs


def _hashing(law: laws.LocalHashingNoise, exact: bool) -> Rows:
    names = _names(law)
    k, g = len(names), law.buckets
    _few(k)
    if (size := cells(k, g)) > _MOST_CELLS:
        raise ValueError(f"`mechanism` must have few values for so many categories, got {k} and {g}: {size} steps")
    counts = support_counts(k, g, PRIME)
    # Of one function the value of the category, or each other.
    hit, miss = (1 - law.miss) / PRIME**2, law.miss / ((g - 1) * PRIME**2)
    rows = [[number * (hit if support >> x & 1 else miss) for support, number in counts.items()] for x in range(k)]
    outputs = [tuple(support >> x & 1 for x in range(k)) for support in counts]
    return rows if exact else np.array(rows, dtype=np.float64), names, outputs


def _room(inputs: int, outputs: int) -> None:
    """Refuse a channel that does not fit into memory, before its names are listed."""
    _check.room(40 * inputs * outputs, "the channel")


def _few(k: int) -> None:
    if k > _MOST_BITS:
        raise ValueError(f"`mechanism` must have at most {_MOST_BITS} categories, as it has 2**k outputs, got {k}")


def _geometric(law: laws.GeometricNoise) -> Rows:
    lower, upper = law.lower, law.upper
    if lower is None or upper is None or np.ndim(law.alpha):
        raise ValueError(f"`mechanism` must have bounds, or it has inputs without end, and one ratio, got {law!r}")
    _room(upper - lower + 1, upper - lower + 1)
    values = np.arange(lower, upper + 1)
    matrix = _chances(law.log_likelihood(values, values[:, None]))
    matrix[:, [0, -1]] /= -np.expm1(-law.decay)  # all outputs at or beyond the end
    return matrix, values.tolist(), values.tolist()


def _chances(logarithms: Floats) -> Floats:
    """Return what they are the logarithms of, if floats hold it: levels are their ratios."""
    if (least := float(np.min(logarithms, initial=0.0))) < _LEAST_LOG:
        raise ValueError(
            f"`mechanism` must have chances of at least 1e-300 of all outputs, got one of exp({least:.6g})"
        )
    return np.exp(logarithms)


def _exponential(law: laws.ExponentialChoice, scores: npt.ArrayLike | None) -> Rows:
    table = _check.unmasked(scores, "scores")
    if table.ndim != 2:
        raise ValueError(f"`scores` must have shape (n_inputs, n_outputs), got {table.shape}")
    outputs = np.arange(table.shape[1])
    matrix = _chances(law.log_likelihood(outputs[None, :], table[:, None, :]))
    return matrix, range(len(table)), outputs.tolist()


def labels(names: Iterable[Hashable] | None, usual: Sequence[Hashable]) -> Iterable[Hashable] | None:
    """Return the user's names, or the usual ones where these are not 0, 1, ..."""
    if names is not None:
        return names
    return None if list(usual) == list(range(len(usual))) else usual


def as_floats(matrix: Floats | list[list[Fraction]]) -> Floats:
    """Return rows that sum to one within a rounding."""
    found = np.asarray(matrix, dtype=np.float64)
    rows: Floats = found / found.sum(axis=1, keepdims=True)
    return rows
