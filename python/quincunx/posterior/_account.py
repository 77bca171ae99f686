"""Guarantees of this room: a posterior draw is range-bounded, under one relation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._rng import RandomSource, generator
from quincunx._types import Array, Floats
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._sample import PrivateSample, sample_size
from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne
from quincunx.privacy._curves import Pure, Ranged
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._law import ReadOnly
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import marked, seed_words

ONE = ReplaceOne()
#: Records that a guarantee which does not name n allows for where roundings grow with them.
MOST_RECORDS = 2**20
#: Of two categories: the logits of a grid are within 350.
LEAST_TRIM = 1e-150


def relation_of(relation: object) -> Relation:
    """Return a relation that these models know: one record replaced, or added or removed."""
    if isinstance(relation, (ReplaceOne, AddRemove)) and relation.records == 1:
        return relation
    raise ValueError(f"`relation` must be ReplaceOne() or AddRemove(), got {relation!r}; `at` restates for groups")


def set_positive(model: object, *names: str) -> None:
    """Check parameters of a frozen model that are positive, and set them as floats."""
    for name in names:
        object.__setattr__(model, name, _check.real(getattr(model, name), name, positive=True))


def ranged(epsilon: float | Fraction, relation: Relation, numerics: str = "exact") -> PrivacyGuarantee:
    """Return the guarantee of a draw whose log density ratio lies in an interval of this length."""
    return PrivacyGuarantee(epsilon, relation=relation, numerics=numerics, range_bounded=True)


def bounded(epsilon: float, length: float, relation: Relation) -> PrivacyGuarantee:
    """Return that of a draw whose log density ratio is at most epsilon in size, in an interval of this length."""
    loss, whole = Fraction(epsilon), Fraction(length)
    return guarantee_of(Pure(loss) if 2 * loss <= whole else Ranged(whole, loss), relation)


def public(n: int | None, relation: Relation) -> int | None:
    """Return the number of records where it is given and public, else None."""
    return n if isinstance(relation, ReplaceOne) else None


def upwards(value: float, margin: float = 0.0) -> float:
    """Return a value with a margin and a few roundings more."""
    return (value + margin) * (1 + 2.0**-50)


def _numbers(data: npt.ArrayLike, name: str) -> Array:
    """Return an array of numbers."""
    array = _check.unmasked(data, name)
    if array.dtype.kind not in "biuf" and array.size:
        raise TypeError(f"`{name}` must hold numbers, got dtype {array.dtype}")
    return array


def records(data: npt.ArrayLike, lower: float, upper: float, name: str = "data") -> Floats:
    """Return records as floats in [lower, upper]: each is clipped by itself, NaN to the lower end, without a word."""
    array = _numbers(data, name)
    if array.ndim > 1:
        raise ValueError(f"`{name}` must have one axis of records, got shape {array.shape}")
    values = np.atleast_1d(array).astype(np.float64)
    return np.clip(np.where(np.isnan(values), lower, values), lower, upper)


def vectors(data: npt.ArrayLike, width: int | None, radius: float, name: str = "data") -> Floats:
    """Return rows clipped to a ball about 0, each by itself; a row that is not finite becomes 0."""
    array = _numbers(data, name)
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        raise ValueError(f"`{name}` must have shape (n, {'d' if width is None else width}), got {array.shape}")
    values = array.astype(np.float64)
    values[~np.isfinite(values).all(axis=1)] = 0.0
    # The largest entry first, so that squares neither overflow nor vanish.
    largest = np.abs(values).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    scaled = values / safe[:, None]
    lengths = np.sqrt((scaled**2).sum(axis=1))  # 1 to sqrt(d), or 0
    with np.errstate(over="ignore"):
        far = safe * lengths > radius
    factor = radius / np.where(far, lengths, 1.0) * (1 - 2.0**-48)
    return np.where(far[:, None], scaled * factor[:, None], values)


def trim_for(share: float, categories: int = 2) -> float:
    """Return the w whose range ``2 ln((1 - (K - 1) w) / w)`` is `share`, rounded so that it is not more."""
    return min(1 / (categories - 1 + math.exp(min(share / 2, 345.0))) * (1 + 2.0**-50), (1 - 2.0**-40) / categories)


def log_odds(trim: float, categories: int = 2) -> float:
    """Return ``ln((1 - (K - 1) w) / w)``, rounded upwards."""
    return math.log((1 - (categories - 1) * trim) / trim) * (1 + 2.0**-50) + 2.0**-52


def checked_trim(trim: object, categories: int = 2) -> float:
    """Return a trimming point in (0, 1/K)."""
    value, least = _check.real(trim, "trim"), LEAST_TRIM if categories == 2 else 0.0
    if not least < value < 1 / categories:
        raise ValueError(f"`trim` must be in ({least:g}, 1/{categories}), got {value}")
    return value


class Model(Protocol):
    """A model whose draws have the guarantee that it states."""

    def guarantee(self, n: int | None = None, *, relation: Relation = ONE) -> PrivacyGuarantee: ...


@posterior_doc
class Drawn(ReadOnly):
    """A posterior that draws are released from: one draw keeps what its model keeps for as many records."""

    model: Model
    n: int

    def guarantee(self, *, relation: Relation = ONE) -> PrivacyGuarantee:
        """Return the guarantee of one draw: `model.guarantee(n)`.

        Parameters
        ----------
        relation : ReplaceOne or AddRemove
            Which data sets are neighbors.

        Returns
        -------
        PrivacyGuarantee
        """
        return self.model.guarantee(self.n, relation=relation)

    def sample(
        self,
        size: int = 1,
        *,
        private: bool = True,
        relation: Relation = ONE,
        insecure_seed: int | None = None,
        rng: RandomSource = None,
    ) -> PrivateSample:
        """Draw from the posterior.

        {draws}

        Returns
        -------
        PrivateSample
            With values of shape ``(size, ...)``, one parameter, vector or matrix for each draw, and the guarantee of
            all of them.

        Raises
        ------
        ValueError, TypeError
            If an argument lies outside its domain, or the model has no trimming.

        Notes
        -----
        A vector in a ball is attempted until it is accepted: its time depends on the data. Do not let an attacker
        measure it.
        """
        count = sample_size(size)
        if not _check.flag(private, "private"):
            return PrivateSample(self._simulate(count, relation, generator(rng)), None)
        if rng is not None:
            raise TypeError("`rng` is for draws that are not private; `insecure_seed` repeats private ones")
        guarantee = count * self.guarantee(relation=relation)
        return PrivateSample(self._draw(count, relation, seed_words(insecure_seed)), marked(guarantee, insecure_seed))

    def _draw(self, count: int, relation: Relation, words: list[int] | None) -> Array:
        """Return draws by bits of a generator that these words key, or the operating system."""
        raise NotImplementedError

    def _simulate(self, count: int, relation: Relation, source: np.random.Generator) -> Array:
        """Return draws without a guarantee."""
        return self._draw(count, relation, source.integers(0, 2**64, size=2, dtype=np.uint64).tolist())
