"""What a model has to know of the noise on the values it is given: the mechanism of a release, or one given beside."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx.privacy import (
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    Release,
    UnaryEncoding,
)

#: The name of a mechanism as a Release has it, and its parameters by our names; None is no noise.
Noise = tuple[str, dict[str, Any]]


def noise_of(released: Any, given: Any, own: Any, accepted: tuple[str, ...], model: str) -> Noise | None:
    """Return the noise: that given to `fit`, else the release's own, else that of the constructor."""
    if isinstance(released, Release) and np.ma.isMaskedArray(released.values):
        raise ValueError("`released` must hold all its values, got a masked release")
    if given is not None:
        noise = _of_mechanism(given)
    elif isinstance(released, Release):
        noise = _of_release(released)
    elif own is not None:
        noise = _of_mechanism(own)
    else:
        return None
    if noise[0] not in accepted:
        raise ValueError(f"`mechanism` must be one of {list(accepted)} for {model}, got {noise[0]}")
    return noise


def _of_mechanism(mechanism: Any) -> Noise:
    if isinstance(mechanism, LaplaceMechanism):
        return "laplace", {"scale": mechanism.scale, "lower": mechanism.lower, "upper": mechanism.upper}
    if isinstance(mechanism, GeometricMechanism):
        return "geometric", {"decay": mechanism.decay, "lower": mechanism.lower, "upper": mechanism.upper}
    if isinstance(mechanism, GaussianMechanism):
        facts = {"sigma": mechanism.sigma, "scales": mechanism.scales}
        return "gaussian", facts | {"radius": mechanism.radius, "dimension": mechanism.dimension}
    if isinstance(mechanism, RandomizedResponse):
        return "randomized-response", {"keep": mechanism.keep_probability}
    if isinstance(mechanism, GeneralizedRandomizedResponse):
        facts = {"categories": mechanism.categories, "keep": mechanism.keep_probability}
        return "generalized-randomized-response", facts | {"other": mechanism.other_probability}
    if isinstance(mechanism, UnaryEncoding):
        facts = {"categories": mechanism.categories, "one": mechanism.one_probability}
        return "unary-encoding", facts | {"zero": mechanism.zero_probability}
    raise TypeError(f"`mechanism` must be a mechanism of quincunx.privacy or None, got {type(mechanism).__name__}")


#: What each mechanism says of a release: facts of the noise that the models know, and of the guarantee.
_KNOWN = {
    "laplace": {"scale", "lower", "upper", "step"},
    "geometric": {"alpha", "exponent", "lower", "upper", "n", "record_bound"},
    "gaussian": {"sigma", "scales", "radius", "dimension", "step", "sensitivity"},
    "randomized-response": {"keep_probability"},
    "generalized-randomized-response": {"categories", "keep_probability"},
    "unary-encoding": {"categories", "variant", "one_probability", "zero_probability"},
}


def _of_release(release: Release) -> Noise:
    facts = release.parameters
    if unknown := sorted(set(facts) - _KNOWN.get(release.mechanism, set(facts))):
        raise ValueError(f"`released` must have no noise that the models do not know, got {unknown}")
    if release.mechanism == "laplace":
        return "laplace", {name: facts[name] for name in ("scale", "lower", "upper")}
    if release.mechanism == "geometric":
        if np.ndim(facts["alpha"]) != 0:
            raise ValueError("`released` must have one ratio of noise: give a list of releases, one for each")
        exponent = facts.get("exponent")
        decay = float(Fraction(exponent)) if exponent is not None else -math.log(facts["alpha"])
        return "geometric", {"decay": decay, "lower": facts["lower"], "upper": facts["upper"]}
    if release.mechanism == "gaussian":
        return "gaussian", {name: facts.get(name) for name in ("sigma", "scales", "radius", "dimension")}
    if release.mechanism == "randomized-response":
        return "randomized-response", {"keep": facts["keep_probability"]}
    if release.mechanism == "generalized-randomized-response":
        k, keep = facts["categories"], facts["keep_probability"]
        return "generalized-randomized-response", {"categories": k, "keep": keep, "other": (1 - keep) / (k - 1)}
    if release.mechanism == "unary-encoding":
        names = {"categories": "categories", "one": "one_probability", "zero": "zero_probability"}
        return "unary-encoding", {ours: facts[theirs] for ours, theirs in names.items()}
    raise ValueError(f"`released` must come from a known mechanism, got {release.mechanism}")


def sigmas(noise: Noise | None, dimension: int) -> npt.NDArray[np.float64]:
    """Return the standard deviation of normal noise for each coordinate along the last axis; 0 without noise."""
    if noise is None:
        return np.zeros(dimension)
    scales = noise[1]["scales"]
    if scales is not None and len(scales) != dimension:
        raise ValueError(f"`mechanism` must have {dimension} scales, one for each coordinate, got {len(scales)}")
    return np.asarray(noise[1]["sigma"] * (np.ones(dimension) if scales is None else np.asarray(scales)))


def single_sigma(noise: Noise | None, what: str = "number") -> float:
    """Return the one standard deviation of normal noise; 0 without noise."""
    return one_of(np.unique(sigmas(noise, len((noise and noise[1]["scales"]) or [1]))), what)


def one_of(deviations: npt.NDArray[np.float64], what: str) -> float:
    """Return the standard deviation that is the same for all."""
    if len(found := np.unique(deviations)) > 1:
        raise ValueError(f"`mechanism` must have the same deviation for each {what}, got {found.tolist()}")
    return float(found[0])


def is_several(released: Any) -> bool:
    """Return whether it is a list of releases, of users with different mechanisms."""
    return isinstance(released, list) and bool(released) and all(isinstance(part, Release) for part in released)


#: Arguments of the constructors, as the mechanisms keep them.
_ARGUMENTS: dict[type, tuple[str, ...]] = {
    LaplaceMechanism: ("epsilon", "lower", "upper"),
    GaussianMechanism: ("sigma", "radius", "dimension", "scales"),
    RandomizedResponse: ("epsilon",),
    GeneralizedRandomizedResponse: ("epsilon", "categories"),
    UnaryEncoding: ("epsilon", "categories", "variant"),
}


def described(mechanism: Any) -> Any:
    """Return a mechanism, or a pair of them, as JSON can hold it; None where it could not be made again."""
    if isinstance(mechanism, (tuple, list)):
        return [described(part) for part in mechanism]
    if isinstance(mechanism, GeometricMechanism):
        facts: dict[str, Any] = {
            "epsilon_per_unit": mechanism.decay,
            "lower": mechanism.lower,
            "upper": mechanism.upper,
        }
    elif type(mechanism) in _ARGUMENTS:
        facts = {name: getattr(mechanism, name) for name in _ARGUMENTS[type(mechanism)]}
        if isinstance(mechanism, GaussianMechanism):
            facts["delta"] = mechanism.delta
            if mechanism.radius is None:
                facts["sensitivity"] = mechanism.sensitivity
    else:
        return None
    told = {"mechanism": type(mechanism).__name__, "arguments": facts}
    try:
        same = repr(_of_mechanism(remade(told))) == repr(_of_mechanism(mechanism))
    except (TypeError, ValueError):
        return None
    return told if same else None


def remade(told: Any) -> Any:
    """Return the mechanism of a description."""
    if isinstance(told, list):
        return tuple(remade(part) for part in told)
    if told is None:
        return None
    classes = {cls.__name__: cls for cls in (*_ARGUMENTS, GeometricMechanism)}
    return classes[told["mechanism"]](**told["arguments"])
