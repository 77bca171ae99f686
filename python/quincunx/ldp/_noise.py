"""The noise of the values a model is given: that of their release, or of the mechanism given beside them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from quincunx import _tables
from quincunx._inference import Floats
from quincunx._summary import Summary
from quincunx._tables import is_sparse
from quincunx.privacy import Release
from quincunx.privacy._law import refuse_unknown
from quincunx.privacy._mechanism import Mechanism
from quincunx.privacy.noise import (
    GaussianNoise,
    GeneralizedRandomizedResponseNoise,
    LaplaceNoise,
    Noise,
    RandomizedResponseNoise,
)

T = TypeVar("T")

#: What made released values: None for values without noise, or that know their own.
MechanismLike: TypeAlias = Mechanism | Noise | None
#: That of records and that of their answers.
Pair: TypeAlias = "tuple[MechanismLike, MechanismLike]"
#: The laws that a model integrates over, and the fields of each that it has a place for.
Known: TypeAlias = Mapping[type[Noise], tuple[str, ...]]
#: The share of records beyond the clients' bound from which on a fit warns. Not tuned: a smaller one warns of less
#: bias.
CLIPPED = 0.05
#: Of normal noise on records that are clipped to a ball, which the model leaves to a warning.
RECORDS: Known = {GaussianNoise: ("sigma", "scales", "radius", "dimension", "step")}
#: Of noise on statistics that are summed over users.
SUMMED: Known = {**RECORDS, LaplaceNoise: ("scale", "step")}
#: By how much the distribution function of a sum of noise may differ from that of the normal law it is taken for.
NOT_NORMAL = 1e-3


def are_populations(released: object) -> TypeGuard[Mapping[Any, Any]]:
    """Say whether data are a dictionary of groups; some sparse arrays of SciPy are dictionaries as well."""
    return isinstance(released, Mapping) and not is_sparse(released)


def law(mechanism: object) -> Noise:
    """Return the law of a mechanism, or of its noise."""
    found = getattr(mechanism, "noise", mechanism)
    if not isinstance(found, Noise):
        raise TypeError(f"`mechanism` must be a mechanism of quincunx.privacy or None, got {type(mechanism).__name__}")
    return found


def noise_of(
    released: object, given: object, own: object, known: Known, model: str, *, masked: bool = False
) -> Noise | None:
    """Return the noise: that given to `fit`, else the release's own, else that of the constructor."""
    if not masked and isinstance(released, Release) and np.ma.isMaskedArray(released.values):
        raise ValueError("`released` must hold all its values, got a masked release")
    if given is not None:
        noise = law(given)
    elif isinstance(released, Release):
        if released.noise is None:
            raise ValueError("`released` must know its noise, got a release that was made without it")
        noise = released.noise
    elif own is not None:
        noise = law(own)
    else:
        return None
    for kind, fields in known.items():
        if isinstance(noise, kind):
            refuse_unknown(noise, model, fields)
            return noise
    raise ValueError(f"`mechanism` must be one of {[kind.kind for kind in known]} for {model}, got {noise.kind}")


def sigmas(noise: Noise | None, dimension: int) -> Floats:
    """Return the standard deviation of normal noise for each coordinate along the last axis; 0 without noise."""
    if not isinstance(noise, GaussianNoise):
        return np.zeros(dimension)
    if noise.scales is not None and noise.scales.shape != (dimension,):
        shape = noise.scales.shape
        raise ValueError(f"`mechanism` must have {dimension} scales, one for each coordinate, got shape {shape}")
    return np.full(dimension, noise.deviations)


def normality_bound(users: int) -> float:
    """Return by how much, at most, the distribution function of a sum of so many Laplace variables is not normal.

    Of characteristic functions f = (1 + t^2 / (2 n))^-n >= g = exp(-t^2 / 2) of sums of unit variance the distance is
    at most 1/pi times the integral of (f - g) / t over t > 0, and that is (ln n - psi(n)) / 2, psi the digamma
    function. What else is in the sum, the users' own statistics, makes it no larger.
    """
    from scipy.special import digamma

    return float((math.log(users) - digamma(users)) / (2 * math.pi))


def summed_sigmas(noise: Noise | None, dimension: int) -> Floats:
    """Return the deviations of the noise of each user, whose sum is taken as normal."""
    return (
        np.full(dimension, math.sqrt(2) * noise.scale) if isinstance(noise, LaplaceNoise) else sigmas(noise, dimension)
    )


def refuse_few(users: int) -> None:
    """Refuse a sum of Laplace noise that is not nearly normal."""
    if users and normality_bound(users) > NOT_NORMAL:
        least = next(n for n in range(users + 1, 2**20) if normality_bound(n) <= NOT_NORMAL)
        raise ValueError(
            f"`n` must be at least {least} with Laplace noise, the sum of which is taken as normal, got {users}"
        )


def single_sigma(noise: Noise | None) -> float:
    """Return the one standard deviation of normal noise; 0 without noise."""
    return one_of(np.asarray(noise.deviations if isinstance(noise, GaussianNoise) else 0.0), "number")


def one_of(deviations: Floats, what: str) -> float:
    """Return the standard deviation that is the same for all."""
    if len(found := np.unique(deviations)) > 1:
        raise ValueError(f"`mechanism` must have the same deviation for each {what}, got {found.tolist()}")
    return float(found[0])


def names_of(released: object) -> tuple[str, ...] | None:
    """Return the labels of the last axis, as words; None where it has none."""
    axes = _tables.axes(released)
    return None if not axes or axes[-1].labels is None else tuple(map(str, axes[-1].labels))


def refuse_other_columns(parts: Iterable[object], name: str) -> None:
    """Refuse parts whose second axis has other labels, or the same in another order: they are taken by position."""
    labels = (axes[1].labels for part in parts if len(axes := _tables.axes(part)) > 1 and axes[1].labels is not None)
    refuse_different(labels, name, "the same columns in the same order")


def refuse_different(found: Iterable[object], name: str, what: str) -> None:
    """Refuse parts that differ in what all must have alike."""
    if len(different := set(found)) > 1:
        shown = sorted(different, key=lambda one: (len(str(one)), str(one)))  # which are numbers, or tuples of anything
        raise ValueError(f"`{name}` must have {what} throughout, got {shown}")


def warn_of_clipping(share: float, what: str, bound: float, effect: str) -> None:
    """Warn where a posterior puts many values beyond the clients' bound."""
    if share > CLIPPED:
        warnings.warn(
            f"about {share:.0%} of the {what} lie beyond the clients' bound {bound:g}, where they are clipped, "
            f"which the model does not know: {effect} may be biased",
            UserWarning,
            stacklevel=4,
        )


def split(released: npt.ArrayLike, name: str = "released") -> list[npt.ArrayLike] | None:
    """Return the groups of users of a list with a Release or Summary in it; None where all released alike.

    Raises
    ------
    ValueError
        If there is a number among them, or a list that has releases again, whose values NumPy would take as they are;
        or if they are arrays of different lengths.
    """
    if not isinstance(released, (list, tuple)):
        return None
    if not any(isinstance(part, (Release, Summary)) or _hides(part) for part in released):
        arrays = [part for part in released if isinstance(part, np.ndarray) and part.ndim]
        if len(arrays) == len(released) and len(set(map(len, arrays))) > 1:
            raise ValueError(f"`{name}` must hold arrays of one length where no release is among them")
        return None
    for part in released:
        if _hides(part):
            raise ValueError(f"`{name}` must not hold releases in lists within a list")
        if not isinstance(part, (Release, Summary)) and not np.iterable(part):
            raise ValueError(f"`{name}` must hold releases and arrays of raw values, got {part!r:.40} beside a release")
    return list(released)


def _hides(part: object) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(inner, (Release, Summary)) for inner in part)


def refuse_raw(parts: Sequence[object], mechanism: object, name: str = "released") -> None:
    """Refuse raw values beside releases where there is a mechanism: nobody said whether they have its noise."""
    if mechanism is not None and not all(isinstance(part, (Release, Summary)) for part in parts):
        raise ValueError(
            f"`{name}` must hold releases alone where there is a `mechanism`, as raw values beside them may have its "
            "noise or none: make those that have it a Release, with `noise=`"
        )


def refuse_summaries(released: object) -> None:
    """Refuse summaries where each user counts."""
    if any(isinstance(part, Summary) for part in (released if isinstance(released, (list, tuple)) else [released])):
        raise ValueError("`released` must be what each user released: a summary has no likelihood of one of them")


def one_each(value: T, number: int, name: str) -> list[T | None]:
    """Return what belongs to each of several groups: a list of as many, or None for all."""
    if value is None:
        return [None] * number
    if not isinstance(value, (list, tuple)) or len(value) != number:
        raise ValueError(f"`{name}` must be a list with one for each of {number} groups of users, got {value!r:.40}")
    return list(value)


def codes(released: npt.ArrayLike, noise: Noise | None) -> npt.ArrayLike:
    """Return categories that were released one by one as their codes, and anything else as it is."""
    if isinstance(noise, (RandomizedResponseNoise, GeneralizedRandomizedResponseNoise)):
        return noise.declared.encode(released, "released")
    return released
