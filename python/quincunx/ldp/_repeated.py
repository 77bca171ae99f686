"""Several reports of each user: what is sufficient of them, and the likelihood that each user gives every category.

Given the category of a user, reports of one mechanism are independent, or the copies of a permanent row are given that
row, whose bits are independent. Either way only c_j enters, how many of r reports have a one for, or support, category
j: up to a factor of the user P(all reports | category v) is a function of c_v alone,

    supports:  ratio**c                                            ratio = P(z | supported) / P(z | another)
    bits:      B(c; p) / B(c; q)                                   B(c; p) = p**c (1 - p)**(r - c)
    kept:      (p A + (1 - p) A') / (q A + (1 - q) A')             A = B(c; 1 - f), A' = B(c; f)

and of several mechanisms these are multiplied. Where some users made fewer reports than others r is that of the user:
whether a report is missing must not depend on the category, nor on what the report would have been, given the reports
that are there. Then absence is ignorable, and the likelihood is that of these; of a user without any it is 1. Sources:
U. Erlingsson, V. Pihur, A. Korolova (2014), RAPPOR, section 2, of which the sum over permanent bits is taken here;
D. B. Rubin (1976), Inference and missing data, Biometrika 63.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._categories import Categories
from quincunx._core import LdpLikelihood
from quincunx._inference import Array, Floats
from quincunx._summary import are_counts
from quincunx.ldp._groups import Patterns
from quincunx.ldp._noise import refuse_different
from quincunx.privacy import Release
from quincunx.privacy._supports import SupportNoise
from quincunx.privacy.noise import (
    GeneralizedRandomizedResponseNoise,
    MemoizedUnaryEncodingNoise,
    Noise,
    UnaryEncodingNoise,
)

#: The form of a law, and its probabilities.
Law: TypeAlias = "tuple[Any, ...]"
#: Reports of one user by one law at the most: what a number of 16 bits counts.
MOST_REPORTS = 2**16 - 1


class Repeated(Patterns, kind="repeated"):
    """How many reports of each user support each category, and how many there are.

    Both are in `rows` of type uint16: of each law k numbers and one more, one law after the other.
    """

    laws: tuple[Law, ...]

    @property
    def size(self) -> int:
        return int(self.rows.shape[1]) // len(self.laws) - 1

    def by_law(self) -> list[tuple[Law, Array, Array]]:
        """Return each law with how many of its reports support each category, and how many there are."""
        blocks = np.split(self.rows, len(self.laws), axis=1)
        return [(law, block[:, :-1], block[:, -1]) for law, block in zip(self.laws, blocks, strict=True)]

    def summed(self) -> Self:
        """Return the different rows in increasing order, and how often each occurs."""
        keys = np.ascontiguousarray(self.rows.astype(">u2")).view(f"V{2 * self.rows.shape[1]}")[:, 0]
        return self._counted(keys)

    def condensed(self) -> Self:
        return self.summed()

    def check(self) -> None:
        found = self.rows.dtype == np.uint16 and self.rows.ndim == 2 and self.weights is not None
        whole = found and bool(self.laws) and self.rows.shape[1] == len(self.laws) * (self.size + 1)
        if not (whole and are_counts(self.occurrences)):
            raise ValueError("it has rows that no users have")
        for law, tallies, reports in self.by_law():
            if not _is_sound(*law):
                raise ValueError(f"its law {law} is none that reports have")
            if (tallies > reports[:, None]).any():
                raise ValueError("it has rows that no users have")
        if not self.summed() == self:
            raise ValueError("it has rows that no users have")

    def likelihood(self) -> LdpLikelihood:
        own = self.summed()
        shape = len(own.rows), own.size
        _check.room(32 * math.prod(shape), f"the likelihoods of {shape[0]} different users in {shape[1]} categories")
        logs, constants = np.zeros(shape), np.zeros(shape[0])
        for law, tallies, made in own.by_law():
            numbers = np.unique(made).tolist()
            for reports in numbers:
                users = np.flatnonzero(made == reports) if len(numbers) > 1 else slice(None)
                others, gains, constant = _tables(law, reports)
                logs[users] += gains[tallies[users]]
                constants[users] += others[tallies[users]].sum(axis=1) + constant
        top = logs.max(axis=1)
        logs -= top[:, None]
        constant = math.fsum(own.occurrences * (constants + top))
        return LdpLikelihood.mixture(np.exp(logs, out=logs), own.occurrences, constant)


def _is_sound(form: str, p: float, q: float, *flip: float) -> bool:
    """Whether there is such a law."""
    if form == "supports":
        chances = not flip and 1 < p < math.inf and -math.inf < q <= 0
    else:
        known = len(flip) == (form == "kept") and form in ("bits", "kept")
        chances = known and 0 < q < p < 1 and all(0 < chance < 0.5 for chance in flip)
    return chances


def _tables(law: Law, reports: int) -> tuple[Floats, Floats, float]:
    """Return two logarithms by how many of so many reports support a category, and a constant of each user.

    The first is that of their probability if another category is true, the second by how much it is more if this is.
    """
    from scipy import special

    form, p, q, *flip = law
    found, others = np.arange(reports + 1), np.arange(reports, -1, -1)

    def of_bits(chance: float) -> Floats:
        return np.asarray(special.xlogy(found, chance) + special.xlog1py(others, -chance))

    if form == "supports":
        return np.zeros(len(found)), np.asarray(found * math.log(p)), reports * q
    if form == "bits":
        zero = of_bits(q)
        return zero, of_bits(p) - zero, 0.0
    copied, flipped = of_bits(1 - flip[0]), of_bits(flip[0])
    one, zero = (np.logaddexp(math.log(c) + copied, math.log1p(-c) + flipped) for c in (p, q))
    return zero, one - zero, 0.0


def repeated(parts: Iterable[tuple[npt.ArrayLike, Noise, Categories]], labels: tuple[object, ...] | None) -> Repeated:
    """Return what several reports of the same users say: each part has one or several of each, in one order."""
    by_law: dict[Law, Array] = {}
    for released, noise, declared in parts:
        tallies, law = _tallied(released, noise, declared), _law(noise)
        for other in by_law.values():
            if len(other) != len(tallies):
                raise ValueError(f"`released` must have the same users throughout, got {len(other)} and {len(tallies)}")
            refuse_different((other.shape[1] - 1, tallies.shape[1] - 1), "released", "the same categories")
        by_law[law] = by_law.get(law, 0) + tallies
        if (most := by_law[law][:, -1].max(initial=0)) > MOST_REPORTS:
            raise ValueError(f"`released` must have at most {MOST_REPORTS} reports of each user, got {most}")
    laws = tuple(sorted(by_law))
    for form, *row in laws:
        same = [law for law in laws if law[0] != "supports" and list(law[1:3]) == row[:2]]
        if form == "kept" and len(same) > 1:  # which would not be independent
            raise ValueError(
                "`released` must have the reports of a permanent row at one level and without the row: reports at "
                "several, or of other rows of the same law, cannot be told from these, got the flips "
                f"{[law[3] if law[3:] else 0.0 for law in same]}"
            )
    rows = np.concatenate([by_law[law].astype(np.uint16) for law in laws], axis=1)
    return Repeated(rows, None, laws, labels=labels)


def _law(noise: Noise) -> Law:
    if isinstance(noise, MemoizedUnaryEncodingNoise):
        kept = noise.permanent
        return "kept", kept.one_probability, kept.zero_probability, float(noise.flip)
    if isinstance(noise, UnaryEncodingNoise):
        return "bits", noise.one_probability, noise.zero_probability
    if isinstance(noise, GeneralizedRandomizedResponseNoise):
        keep = 1 - (len(noise.declared) - 1) * noise.other
        return "supports", float(keep / noise.other), math.log(noise.other)
    assert isinstance(noise, SupportNoise)
    return "supports", noise.ratio, noise.log_outside


def _tallied(released: npt.ArrayLike, noise: Noise, declared: Categories) -> Array:
    """Return how many reports of each user support each category, and as the last number how many there are."""
    k = len(declared)
    own = noise._axes if isinstance(noise, SupportNoise) else int(isinstance(noise, UnaryEncodingNoise))
    released, missing = _filled(released, own)
    if isinstance(noise, GeneralizedRandomizedResponseNoise):
        told = noise.declared.encode(released, "released")
    elif isinstance(noise, SupportNoise):
        told = noise.reports(released, "released")
    else:
        assert isinstance(noise, UnaryEncodingNoise)
        told = _check.categories(declared.columns(released, "released"), "released", 2)
    told = told[:, None] if told.ndim == own + 1 else told
    if isinstance(noise, UnaryEncodingNoise):
        told = told.astype(np.uint8, copy=False)  # bits of any kind
    if isinstance(noise, UnaryEncodingNoise) and told.shape[-1] != k:
        raise ValueError(f"`released` must have a last axis of length {k}, got shape {told.shape}")
    if told.ndim != own + 2 or told.shape[1] == 0:
        one = {0: "", 1: ", ..."}[own]
        raise ValueError(f"`released` must have shape (n, reports{one}), got {np.shape(released)}")
    users, reports = told.shape[:2]
    _check.room(8 * users * (k + 1), f"what {users} users say of {k} categories")
    there = np.ones((users, reports), np.bool_) if missing is None else ~missing.reshape(users, reports)
    tallies = np.zeros((users, k + 1), np.uint32)
    tallies[:, -1] = there.sum(axis=1)
    for j in range(reports):
        who = np.flatnonzero(there[:, j])
        if isinstance(noise, GeneralizedRandomizedResponseNoise):
            tallies[who, told[who, j]] += 1
        else:
            one = told[who, j]
            tallies[who, :-1] += noise.supports(one, "released") if isinstance(noise, SupportNoise) else one
    return tallies


def _filled(released: npt.ArrayLike, own: int) -> tuple[npt.ArrayLike, Array | None]:
    """Return reports with one of them in place of each that is masked, and where these are."""
    values = released.values if isinstance(released, Release) else released
    if not (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)):
        return released, None
    mask = np.ma.getmaskarray(values)
    missing = np.asarray(mask.all(axis=-1) if own else mask)
    if own and (broken := mask.any(axis=-1) & ~missing).any():
        raise ValueError(f"`released` must have whole reports masked, got a part of one{_check.first(broken)[1]}")
    if missing.all():
        raise ValueError(f"`released` must hold at least one report, got {missing.size} that are masked")
    found = values.data.copy()
    found[missing] = found[~missing][0]
    if isinstance(released, Release):  # whose categories may be in another order
        return Release(found, released.guarantee, _axes=released.axes_), missing
    return found, missing
