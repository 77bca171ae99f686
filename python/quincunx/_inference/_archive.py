"""Fitted estimators in npz files: a JSON header, plain arrays, no pickle."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import BinaryIO, TypeVar

import numpy as np

import quincunx
from quincunx._inference._runs import Arrays, Run
from quincunx._npz import open_own, write_npz
from quincunx._types import Array, Facts, Json

T = TypeVar("T")
FORMAT = 3


def save(
    target: "str | os.PathLike[str] | BinaryIO", room: str, facts: Facts, arrays: Arrays, runs: Sequence[Run]
) -> None:
    """Write what a room says of a fitted estimator, and its runs."""
    arrays = dict(arrays)
    header = {
        "format": FORMAT,
        "quincunx": quincunx.__version__,
        **facts,
        "runs": [run_to(run, f"run_{c}", arrays) for c, run in enumerate(runs)],
    }
    write_npz(target, arrays | {room: np.array(json.dumps(header, allow_nan=False))}, f".{room}-")


def load(
    source: "str | os.PathLike[str] | BinaryIO",
    room: str,
    estimator: str,
    make: Callable[[Facts, Mapping[str, Array], list[Run]], T],
) -> T:
    """Return what is made of a file of an estimator: of its header, its arrays and its runs."""
    with open_own(source, room, FORMAT, estimator) as (header, arrays):
        if header["estimator"] != estimator:
            raise ValueError(f"it holds a {header['estimator']}")
        return make(header, arrays, [run_from(facts, f"run_{c}", arrays) for c, facts in enumerate(header["runs"])])


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
    """Return a value as JSON can hold it, arrays and what is like one put aside; None where it cannot."""
    if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if hasattr(value, "__array__"):  # of pandas and xarray, too, without their labels
        array = np.asarray(value)
        if array.dtype != object:
            arrays[f"value_{name}"] = array
            return {"array": f"value_{name}"}
        value = array.tolist()  # words
    if isinstance(value, (list, tuple, range)):
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
