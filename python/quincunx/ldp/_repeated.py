"""Several reports of each user: what is sufficient of them, and the likelihood that each user gives every category.

Given the category of a user, reports of one mechanism are independent, or the copies of a permanent row are given that
row, whose bits are independent. Either way only c_j enters, how many of r reports have a one for, or support, category
j: up to a factor of the user P(all reports | category v) is a function of c_v alone,

    supports:  ratio**c                                            ratio = P(z | supported) / P(z | another)
    bits:      B(c; p) / B(c; q)                                   B(c; p) = p**c (1 - p)**(r - c)
    kept:      (p A + (1 - p) A') / (q A + (1 - q) A')             A = B(c; 1 - f), A' = B(c; f)

and of several mechanisms these are multiplied. Source: U. Erlingsson, V. Pihur, A. Korolova (2014), RAPPOR, section 2,
of which the sum over permanent bits is taken here.
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
from quincunx.privacy._supports import SupportNoise
from quincunx.privacy.noise import (
    GeneralizedRandomizedResponseNoise,
    MemoizedUnaryEncodingNoise,
    Noise,
    UnaryEncodingNoise,
)

#: The form of a law, how many reports it made of each user, and its probabilities.
Law: TypeAlias = "tuple[Any, ...]"
#: Reports of one user by one law at the most: what a number of 16 bits counts.
MOST_REPORTS = 2**16 - 1


class Repeated(Patterns, kind="repeated"):
    """How many reports of each user support each category, in `rows` of type uint16, one law after the other."""

    laws: tuple[Law, ...]

    @property
    def size(self) -> int:
        return int(self.rows.shape[1]) // len(self.laws)

    def summed(self) -> Self:
        """Return the different rows in increasing order, and how often each occurs."""
        keys = np.ascontiguousarray(self.rows.astype(">u2")).view(f"V{2 * self.rows.shape[1]}")[:, 0]
        return self._counted(keys)

    def condensed(self) -> Self:
        return self.summed()

    def check(self) -> None:
        found = self.rows.dtype == np.uint16 and self.rows.ndim == 2 and self.weights is not None
        whole = found and bool(self.laws) and self.rows.shape[1] == len(self.laws) * self.size
        if not (whole and are_counts(self.occurrences)):
            raise ValueError("it has rows that no users have")
        for law, tallies in zip(self.laws, np.split(self.rows, len(self.laws), axis=1), strict=True):
            if not _is_sound(*law):
                raise ValueError(f"its law {law} is none that reports have")
            if tallies.max(initial=0) > law[1]:
                raise ValueError("it has rows that no users have")
        if not self.summed() == self:
            raise ValueError("it has rows that no users have")

    def likelihood(self) -> LdpLikelihood:
        own = self.summed()
        shape = len(own.rows), own.size
        _check.room(32 * math.prod(shape), f"the likelihoods of {shape[0]} different users in {shape[1]} categories")
        logs, constants = np.zeros(shape), np.zeros(shape[0])
        for law, tallies in zip(own.laws, np.split(own.rows, len(own.laws), axis=1), strict=True):
            others, gains, constant = _tables(law)
            logs += gains[tallies]
            constants += others[tallies].sum(axis=1) + constant
        top = logs.max(axis=1)
        logs -= top[:, None]
        constant = math.fsum(own.occurrences * (constants + top))
        return LdpLikelihood.mixture(np.exp(logs, out=logs), own.occurrences, constant)


def _is_sound(form: str, reports: int, p: float, q: float, *flip: float) -> bool:
    """Whether there is such a law."""
    if form == "supports":
        chances = not flip and 1 < p < math.inf and -math.inf < q <= 0
    else:
        known = len(flip) == (form == "kept") and form in ("bits", "kept")
        chances = known and 0 < q < p < 1 and all(0 < chance < 0.5 for chance in flip)
    return chances and 0 < reports <= MOST_REPORTS


def _tables(law: Law) -> tuple[Floats, Floats, float]:
    """Return two logarithms by how many reports support a category, and a constant of each user.

    The first is that of their probability if another category is true, the second by how much it is more if this is.
    """
    from scipy import special

    form, reports, p, q, *flip = law
    found, others = np.arange(reports + 1), np.arange(reports, -1, -1)

    def of_bits(chance: float) -> Floats:
        return np.asarray(special.xlogy(found, chance) + special.xlog1py(others, -chance))

    if form == "supports":
        return np.zeros(len(found)), found * math.log(p), reports * q
    if form == "bits":
        zero = of_bits(q)
        return zero, of_bits(p) - zero, 0.0
    copied, flipped = of_bits(1 - flip[0]), of_bits(flip[0])
    one, zero = (np.logaddexp(math.log(c) + copied, math.log1p(-c) + flipped) for c in (p, q))
    return zero, one - zero, 0.0


def repeated(parts: Iterable[tuple[npt.ArrayLike, Noise, Categories]], labels: tuple[object, ...] | None) -> Repeated:
    """Return what several reports of the same users say: each part has one or several of each, in one order."""
    by_law: dict[Law, tuple[Array, int]] = {}
    users = None
    for released, noise, declared in parts:
        tallies, reports = _tallied(released, noise, declared)
        if users not in (None, len(tallies)):
            raise ValueError(f"`released` must have the same users throughout, got {users} and {len(tallies)}")
        users, law = len(tallies), _law(noise)
        before, number = by_law.get(law, (0, 0))
        by_law[law] = before + tallies, number + reports
        if number + reports > MOST_REPORTS:
            raise ValueError(
                f"`released` must have at most {MOST_REPORTS} reports of each user, got {number + reports}"
            )
    if len({tallies.shape for tallies, _ in by_law.values()}) > 1:
        sizes = sorted({tallies.shape[1] for tallies, _ in by_law.values()})
        raise ValueError(f"`released` must have the same categories throughout, got {sizes}")
    laws = sorted(by_law)
    rows = np.concatenate([by_law[law][0].astype(np.uint16) for law in laws], axis=1)
    return Repeated(rows, None, tuple((law[0], by_law[law][1], *law[1:]) for law in laws), labels=labels)


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


def _tallied(released: npt.ArrayLike, noise: Noise, declared: Categories) -> tuple[Array, int]:
    """Return how many reports of each user support each category, and how many each made."""
    k = len(declared)
    if isinstance(noise, GeneralizedRandomizedResponseNoise):
        told = noise.declared.encode(released, "released")
        told = told[:, None] if told.ndim == 1 else told
        own = 0
    elif isinstance(noise, SupportNoise):
        told = noise.reports(released, "released")
        own = noise._axes
        told = told[:, None] if told.ndim == own + 1 else told
    else:
        assert isinstance(noise, UnaryEncodingNoise)
        told = _check.categories(declared.columns(released, "released"), "released", 2)
        own = 1
        told = told[:, None] if told.ndim == 2 else told
        if told.shape[-1] != k:
            raise ValueError(f"`released` must have a last axis of length {k}, got shape {told.shape}")
    if told.ndim != own + 2 or told.shape[1] == 0:
        one = {0: "", 1: ", ..."}[own]
        raise ValueError(f"`released` must have shape (n, reports{one}), got {np.shape(released)}")
    users, reports = told.shape[:2]
    _check.room(8 * users * k, f"what {users} users say of {k} categories")
    tallies = np.zeros((users, k), np.uint32)
    for j in range(reports):
        if isinstance(noise, GeneralizedRandomizedResponseNoise):
            tallies[np.arange(users), told[:, j]] += 1
        else:
            tallies += noise.supports(told[:, j], "released") if isinstance(noise, SupportNoise) else told[:, j]
    return tallies, reports
