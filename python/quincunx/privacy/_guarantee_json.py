"""Guarantees as words and numbers for JSON, exactly; what comes back is checked before it is believed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from typing import TypeVar, get_type_hints

from quincunx._types import Facts, Json
from quincunx.privacy._composition import Part
from quincunx.privacy._curves import CURVES, Curve, Subsampled
from quincunx.privacy._privacy_map import PRIVACY_MAPS, PrivacyMap
from quincunx.privacy._relations import AddRemove, DataMetric, Relation, ReplaceOne

T = TypeVar("T", bound=Curve | PrivacyMap)
#: Counts beyond are not believed: no law of losses is known of so many (`losses_of` has them below 2**63).
MOST = 2**80


def relation_to_json(relation: Relation) -> list[object]:
    """Return a relation as a name and its arguments."""
    if isinstance(relation, DataMetric):
        whole = [True] if relation.integers else []
        return ["DataMetric", relation.metric, relation.radius, *whole]
    return [type(relation).__name__, relation.records]


def relation_from_json(words: Json) -> Relation:
    """Return the relation of `relation_to_json`, or raise."""
    name, *arguments = words
    kinds: dict[str, Callable[..., Relation]] = {
        "ReplaceOne": ReplaceOne,
        "AddRemove": AddRemove,
        "DataMetric": DataMetric,
    }
    return kinds[name](*arguments)


def part_to_json(part: Part) -> dict[str, object]:
    """Return a part as words and numbers: what follows from its map is not repeated."""
    return {
        "reach": _encode(part.privacy_map),
        "epsilon": str(part.epsilon),
        "delta": str(part.delta),
        "times": part.times,
    }


def _encode(value: object) -> object:
    """Return a curve or a privacy map as words and numbers."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Relation):
        return relation_to_json(value)
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, (Curve, PrivacyMap)):
        return {"kind": value.kind} | {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
    return value


def _number(word: object) -> Fraction:
    if not isinstance(word, str) or len(word) > 10_000:
        raise ValueError(f"a fraction in words is wanted, got {word!r}")
    number = Fraction(word)
    if number < 0:
        raise ValueError(f"numbers must be at least 0, got {word}")
    return number


def _count(word: object, least: int) -> int:
    if isinstance(word, bool) or not isinstance(word, int) or not least <= word <= MOST:
        raise ValueError(f"a count of at least {least} is wanted, got {word!r}")
    return word


def _decode(words: Facts, kinds: Mapping[str, type[T]]) -> T:
    """Return a curve or a privacy map."""
    kind = kinds[words["kind"]]
    types = get_type_hints(kind)
    wanted = {field.name: types[field.name] for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    if not needed <= set(words) - {"kind"} <= set(wanted):
        raise ValueError(f"{words['kind']} takes {sorted(wanted)}, got {sorted(words)}")
    values: Facts = {}
    for name in set(words) - {"kind"}:
        word, of = words[name], wanted[name]
        if of is Curve:
            values[name] = _decode(word, CURVES)
        elif of == Relation:
            values[name] = relation_from_json(word)
        elif of is str:
            if not isinstance(word, str) or len(word) > 1000:
                raise ValueError(f"words are wanted, got {word!r}")
            values[name] = word
        elif of is int:
            values[name] = _count(word, 0)
        elif of is bool:
            if not isinstance(word, bool):
                raise ValueError(f"True or False is wanted, got {word!r}")
            values[name] = word
        elif isinstance(word, list):
            values[name] = tuple((_number(p), _number(q)) for p, q in word)
        elif word is None and of != Fraction:
            values[name] = None
        else:
            values[name] = _number(word)
    return kind(**values)


def _delta(curve: Curve, epsilon: float) -> float:
    """Return a delta at epsilon; of a random subset by the rule for pairs, as its own law is on a grid."""
    if isinstance(curve, Subsampled) and epsilon < 700:
        rate = float(curve.rate)
        return rate * curve.base.delta_at(math.log1p(math.expm1(epsilon) / rate))
    return curve.delta_at(epsilon)


def part_from_json(words: Facts, relation: Relation) -> Part:
    """Return the part that `part_to_json` described; its curve follows from its map, and its pair must from that."""
    if set(words) != {"reach", "epsilon", "delta", "times"}:
        raise ValueError(f"a part takes reach, epsilon, delta and times, got {sorted(words)}")
    privacy_map = _decode(words["reach"], PRIVACY_MAPS)
    epsilon, delta = _number(words["epsilon"]), _number(words["delta"])
    if delta >= 1:
        raise ValueError(f"delta must be below 1, got {words['delta']}")
    part = replace(Part.of(privacy_map, relation, delta, epsilon), times=_count(words["times"], 1))
    if part.delta != delta:
        raise ValueError("its delta is not that of its curve")
    most = epsilon * (1 + Fraction(1, 10**9))
    pure = part.curve.pure is not None and most >= part.curve.pure
    if not pure and Fraction(_delta(part.curve, float(most))) > delta * (1 + Fraction(1, 10**6)):
        raise ValueError("its epsilon and delta do not follow from its curve")
    return part
