"""Fitted estimators in npz files: a JSON header, plain arrays, no pickle."""

import json
import os
from typing import Any, BinaryIO

import numpy as np

import quincunx
from quincunx.factorization._chains import Problem, Run
from quincunx.factorization._data import Data
from quincunx.factorization._posterior import Posterior
from quincunx.privacy._release import write_npz

FORMAT = 1

_RUN_ARRAYS = ("kept", "log_likelihood", "total_rate", "total_count", "elbo")


def save(model: Any, target: "str | os.PathLike[str] | BinaryIO") -> None:
    """Write a fitted estimator."""
    posterior: Posterior = model._posterior
    problem = posterior.problem
    arrays: dict[str, Any] = {"values": problem.data.values, "alpha": problem.data.alpha}
    if problem.data.hidden is not None:
        arrays["hidden"] = problem.data.hidden
    for i, (shape, rate) in enumerate(problem.priors):
        arrays |= {f"prior_{i}_shape": shape, f"prior_{i}_rate": rate}
    for c, run in enumerate(posterior.runs):
        arrays |= {f"run_{c}_{name}": getattr(run, name) for name in _RUN_ARRAYS}
        arrays |= {f"run_{c}_draws_{i}": draws for i, draws in enumerate(run.draws)}
        arrays |= {f"run_{c}_noise_{i}": noise for i, noise in enumerate(run.noise)}
        for i, factor in enumerate(run.factors or ()):
            parts = {"": factor} if problem.inference == "mcmc" else {"_shape": factor[0], "_rate": factor[1]}
            arrays |= {f"run_{c}_factor_{i}{part}": table for part, table in parts.items()}
    header = {
        "format": FORMAT,
        "quincunx": quincunx.__version__,
        "estimator": type(model).__name__,
        "parameters": {name: _plain(value, name, arrays) for name, value in model.get_params(deep=False).items()},
        "inference": problem.inference,
        "method": problem.method,
        "settings": model._settings,
        "n_features": int(model.n_features_in_),
        "features": list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None,
        "n_components": problem.layout.n_components,
        "layout": _plain_layout(model),
        "runs": [
            {
                "key": list(run.key),
                "iteration": run.iteration,
                "converged": run.converged,
                "started": run.factors is not None,
                "draws": len(run.draws),
                "noise": len(run.noise),
            }
            for run in posterior.runs
        ],
    }
    write_npz(target, arrays | {"factorization": np.array(json.dumps(header, allow_nan=False))}, ".factorization-")


def _plain_layout(model: Any) -> dict[str, Any]:
    """Return the parameters that decided the model's layout; they may have been changed since."""
    model_of_it = model._posterior.problem.layout
    names = [factor.name for factor in model_of_it.factors]
    return {"directed": model_of_it.model != "undirected", "weights": "weights" in names}


def _plain(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Return a parameter as JSON can hold it, arrays put aside; None where it cannot."""
    if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) == 0:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        key = f"parameter_{name}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, (list, tuple)):
        entries = [_plain(entry, f"{name}_{i}", arrays) for i, entry in enumerate(value)]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    return None


def _fancy(value: Any, arrays: Any) -> Any:
    """Return a parameter as it was."""
    if isinstance(value, dict):
        return arrays[value["array"]] if "array" in value else tuple(_fancy(v, arrays) for v in value["tuple"])
    return [_fancy(entry, arrays) for entry in value] if isinstance(value, list) else value


def load(cls: type, source: "str | os.PathLike[str] | BinaryIO") -> Any:
    """Read a fitted estimator of a class."""
    name = getattr(source, "name", source)
    try:
        with np.load(source, allow_pickle=False) as arrays:
            header = json.loads(str(arrays["factorization"]))
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']}, this version reads {FORMAT}")
            if header["estimator"] != cls.__name__:
                raise ValueError(f"it holds a {header['estimator']}")
            return _rebuilt(cls, header, arrays)
    except OSError:
        raise
    except Exception as reason:
        raise ValueError(f"`source` must be a {cls.__name__} written by quincunx, got {name}: {reason}") from reason


def _rebuilt(cls: type, header: dict[str, Any], arrays: Any) -> Any:
    data = Data(arrays["values"], arrays["alpha"], arrays["hidden"] if "hidden" in arrays else None)
    # The layout is that of the fit; the parameters may have been changed since.
    fitted = cls(n_components=header["n_components"])
    for name, value in header["layout"].items():
        if hasattr(fitted, name):
            setattr(fitted, name, value)
    layout = fitted._layout(data.shape)
    priors = [(arrays[f"prior_{i}_shape"], arrays[f"prior_{i}_rate"]) for i in range(len(layout.factors))]
    problem = Problem(data, layout, priors, header["inference"], header["method"])
    runs = [_run(c, facts, arrays, problem) for c, facts in enumerate(header["runs"])]
    model = cls(**{name: _fancy(value, arrays) for name, value in header["parameters"].items()})
    model.n_features_in_ = header["n_features"]
    if header["features"] is not None:
        model.feature_names_in_ = np.array(header["features"], dtype=object)
    model._settings = header["settings"]
    model._posterior = Posterior(problem, runs)
    model._publish()
    return model


def _run(c: int, facts: dict[str, Any], arrays: Any, problem: Problem) -> Run:
    factors: Any = None
    numbers = range(len(problem.layout.factors))
    if facts["started"] and problem.inference == "mcmc":
        factors = [arrays[f"run_{c}_factor_{i}"] for i in numbers]
    elif facts["started"]:
        factors = [(arrays[f"run_{c}_factor_{i}_shape"], arrays[f"run_{c}_factor_{i}_rate"]) for i in numbers]
    first, second = facts["key"]
    return Run(
        (first, second),
        facts["iteration"],
        factors,
        [arrays[f"run_{c}_noise_{i}"] for i in range(facts["noise"])],
        [arrays[f"run_{c}_draws_{i}"] for i in range(facts["draws"])],
        converged=facts["converged"],
        **{name: arrays[f"run_{c}_{name}"] for name in _RUN_ARRAYS},
    )
