"""Fitted estimators in npz files: a JSON header, plain arrays, no pickle."""

import json
import math
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import numpy as np

import quincunx
from quincunx._inference._runs import Arrays, Run
from quincunx._npz import open_npz, write_npz
from quincunx._types import Array, Facts, Json
from quincunx.errors import TooLargeError

if TYPE_CHECKING:
    from quincunx._inference._estimator import PosteriorEstimator

E = TypeVar("E", bound="PosteriorEstimator")
FORMAT = 3


def save(model: "PosteriorEstimator", target: "str | os.PathLike[str] | BinaryIO", room: str) -> None:
    """Write a fitted estimator of a room: its parameters, what it worked on, its runs."""
    facts, arrays = model._problem_to_archive()
    arrays = dict(arrays)
    header = {
        "format": FORMAT,
        "quincunx": quincunx.__version__,
        "estimator": type(model).__name__,
        "parameters": {name: encode(value, name, arrays) for name, value in model.get_params(deep=False).items()},
        **facts,
        "runs": [run_to(run, f"run_{c}", arrays) for c, run in enumerate(model._posterior.runs)],
    }
    write_npz(target, arrays | {room: np.array(json.dumps(header, allow_nan=False))}, f".{room}-")


def load(cls: type[E], source: "str | os.PathLike[str] | BinaryIO", room: str) -> E:
    """Read a fitted estimator of a class."""
    name = getattr(source, "name", source)
    try:
        with open_npz(source, name) as arrays:
            header = json.loads(str(arrays[room]))
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']}, this version reads {FORMAT}")
            if header["estimator"] != cls.__name__:
                raise ValueError(f"it holds a {header['estimator']}")
            model = cls(**{name: decode(value, arrays) for name, value in header["parameters"].items()})
            runs = [run_from(facts, f"run_{c}", arrays) for c, facts in enumerate(header["runs"])]
            model._restore(header, arrays, runs)
            return model
    except (OSError, TooLargeError):
        raise
    except Exception as reason:
        found = str(reason).removeprefix(f"{name}: ")
        raise ValueError(f"`source` must be a {cls.__name__} written by quincunx, got {name}: {found}") from reason


_ARRAYS = ("state", "draw_statistics", "step_statistics")


def run_to(run: Run, prefix: str, arrays: Arrays) -> Facts:
    """Put the arrays of a run aside and return the rest."""
    for group in _ARRAYS:
        arrays |= {f"{prefix}_{group}_{name}": array for name, array in getattr(run, group).items()}
    arrays |= {f"{prefix}_draws_{i}": draws for i, draws in enumerate(run.draws)}
    arrays[f"{prefix}_kept"] = run.kept
    facts = {"key": list(run.key), "iteration": run.iteration, "converged": run.converged, "draws": len(run.draws)}
    return facts | {group: list(getattr(run, group)) for group in _ARRAYS}


def run_from(facts: Facts, prefix: str, arrays: Mapping[str, Array]) -> Run:
    first, second = facts["key"]
    return Run(
        (first, second),
        facts["iteration"],
        draws=[arrays[f"{prefix}_draws_{i}"] for i in range(facts["draws"])],
        kept=arrays[f"{prefix}_kept"],
        converged=facts["converged"],
        **{group: {name: arrays[f"{prefix}_{group}_{name}"] for name in facts[group]} for group in _ARRAYS},
    )


def encode(value: Json | Array, name: str, arrays: Arrays) -> Json:
    """Return a value as JSON can hold it, arrays put aside; None where it cannot."""
    if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, np.ndarray):
        key = f"value_{name}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, (list, tuple)):
        entries = [encode(entry, f"{name}_{i}", arrays) for i, entry in enumerate(value)]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    return None


def decode(value: Json, arrays: Mapping[str, Array]) -> Json:
    """Return a value as it was."""
    if isinstance(value, dict):
        if "float" in value:
            return float(value["float"])
        if "fraction" in value:
            return Fraction(value["fraction"])
        return arrays[value["array"]] if "array" in value else tuple(decode(v, arrays) for v in value["tuple"])
    return [decode(entry, arrays) for entry in value] if isinstance(value, list) else value
