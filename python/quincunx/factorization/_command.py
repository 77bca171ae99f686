"""A release from a file, factorized into a file: what the command line's `factorize` does."""

import json as json_module
import os
from typing import Any, BinaryIO

import numpy as np

from quincunx import _check
from quincunx.privacy import Release

MODELS = ("matrix", "directed", "undirected", "tensor")


def _class(model: str) -> Any:
    from quincunx import factorization

    if model == "matrix":
        return factorization.PoissonFactorization
    return factorization.PoissonTensorFactorization if model == "tensor" else factorization.PoissonBlockmodel


def factorize_command(
    source: "str | os.PathLike[str] | BinaryIO",
    *,
    model: str = "matrix",
    out: "str | os.PathLike[str] | None" = None,
    resume: "str | os.PathLike[str] | None" = None,
    json: bool = False,
    **parameters: Any,
) -> str:
    """Fit a model to a release, keep it in a file, and return what ``quincunx factorize`` prints.

    Parameters
    ----------
    source : path or binary file
        The release, as `quincunx.privacy.Release.save` or ``quincunx privatize`` wrote it.
    model : {"matrix", "directed", "undirected", "tensor"}
        `PoissonFactorization`, a `PoissonBlockmodel` of either kind, or `PoissonTensorFactorization`.
    out : path, optional
        Where the fitted estimator goes; after an interrupt, as far as it came.
    resume : path, optional
        A fitted estimator that goes on with as many sweeps again.
    json : bool
        Whether to answer with a JSON object.
    **parameters
        Of the estimator; None where the default, or what is in the file that goes on, is to hold.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If a file cannot be read or written.
    ValueError, TypeError
        If a file does not hold what it should, or a parameter is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from quincunx.privacy import privatize
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "released.npz"
    >>> privatize([[3, 0, 1], [4, 1, 0]], epsilon=1.0, insecure_seed=1).save(file)
    >>> text = factorize_command(file, inference="vi", n_components=2, n_iter=200, tol=1e-4, random_state=1)
    >>> print(text.splitlines()[0])
    model            PoissonFactorization, 2 components
    """
    cls = _class(_check.one_of(model, "model", MODELS))
    release = Release.load(source)
    given = {name: value for name, value in parameters.items() if value is not None}
    if model in ("directed", "undirected"):
        given["directed"] = model == "directed"
    if resume is None:
        estimator = cls(**given)
    else:
        estimator = cls.load(resume).set_params(**given, warm_start=True)
    try:
        estimator.fit(release)
    except KeyboardInterrupt:
        if out is not None and hasattr(estimator, "n_iter_"):
            estimator.save(out)
        raise
    if out is not None:
        estimator.save(out)
    facts = _facts(estimator)
    if json:
        return json_module.dumps(facts)
    facts["model"] = f"{facts.pop('model')}, {facts.pop('components')} components"
    facts = {"model": facts.pop("model")} | facts
    width = 15
    return "\n".join(
        f"{name.replace('_', ' '):<{width}}  {f'{value:.6g}' if isinstance(value, float) else value}"
        for name, value in facts.items()
    )


def _facts(estimator: Any) -> dict[str, Any]:
    """Return what there is to say of a fit in a few lines."""
    posterior = estimator._posterior
    observed = int(posterior.problem.data.observed.sum())
    facts: dict[str, Any] = {
        "model": type(estimator).__name__,
        "components": posterior.problem.layout.n_components,
        "observed_cells": observed,
    }
    if not posterior.sampled:
        facts |= {"iterations": int(estimator.n_iter_), "elbo": float(estimator.elbo_[-1])}
        return facts
    runs, n = posterior.with_draws, posterior.n_draws
    facts |= {
        "sweeps": int(estimator.n_iter_),
        "chains": len(runs),
        "kept_draws": n,
        "total_rate": float(np.mean([run.total_rate[run.kept[:n] - 1] for run in runs])),
        "log_likelihood": float(np.mean([run.log_likelihood[:n] for run in runs])),
    }
    return facts
