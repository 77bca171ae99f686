"""A release from a file, factorized into a file: what the command line's `factorize` does."""

import csv
import gzip
import io
import json as json_module
import os
import re
from typing import Any, BinaryIO

import numpy as np

from quincunx import _check
from quincunx._npz import write_whole
from quincunx._tables import Axis
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
    out: "str | os.PathLike[str] | BinaryIO | None" = None,
    resume: "str | os.PathLike[str] | None" = None,
    json: bool = False,
    top: int = 5,
    **parameters: Any,
) -> str:
    """Fit a model to a release, keep it in a file, and return what ``quincunx factorize`` prints.

    Parameters
    ----------
    source : path or binary file
        The release, as `quincunx.privacy.Release.save` or ``quincunx privatize`` wrote it.
    model : {"matrix", "directed", "undirected", "tensor"}
        `PoissonFactorization`, a `PoissonBlockmodel` of either kind, or `PoissonTensorFactorization`.
    out : path or binary file, optional
        Where the fitted estimator goes; after an interrupt, as far as it came. A path that ends in .csv, .json (also
        with .gz behind it) gets what other programs read instead: a table with a row for each component and a column
        for each feature, or all factors with their labels.
    resume : path, optional
        A fitted estimator that goes on with as many sweeps again.
    json : bool
        Whether to answer with a JSON object.
    top : int
        How many features of each component to print; 0 for none.
    **parameters
        Of the estimator; None where the default, or what is in the file that goes on, is to hold.

    Returns
    -------
    str
        How the fit went, and what weighs most in each component.

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
    _check.whole(top, "top")
    named = os.fspath(out).lower() if isinstance(out, (str, os.PathLike)) else ""
    table = re.search(r"\.(csv|json)(\.gz)?$", named)
    if table is not None and table[1] == "csv" and model == "tensor":
        raise ValueError(f"`out` must be a .json or .npz file for a tensor, got {out}")
    try:
        estimator.fit(release)
    except KeyboardInterrupt:
        if out is not None and table is None and hasattr(estimator, "n_iter_"):
            estimator.save(out)
        raise
    facts = _facts(estimator)
    if estimator._posterior.sampled and len(estimator._posterior.with_draws) > 1 and table is not None:
        estimator.align()
    if out is not None and table is None:
        estimator.save(out)
    elif out is not None and table is not None:
        _write(estimator, facts, out, table[1], table[2] is not None)
    if json:
        tops = [[[_plain(name), share] for name, share in part] for part in _tops(estimator, top)]
        return json_module.dumps(facts | {"top": tops})
    facts["model"] = f"{facts.pop('model')}, {facts.pop('components')} components"
    facts = {"model": facts.pop("model")} | facts
    width = 15
    lines = [
        f"{name.replace('_', ' '):<{width}}  {f'{value:.6g}' if isinstance(value, float) else value}"
        for name, value in facts.items()
    ]
    for k, part in enumerate(_tops(estimator, top)):
        lines.append(f"{f'component {k}':<{width}}  " + ", ".join(f"{name} {share:.2g}" for name, share in part))
    return "\n".join(lines)


def _tops(estimator: Any, top: int) -> list[list[tuple[Any, float]]]:
    """Return what weighs most in each component."""
    return estimator.top_features(n=top) if top else []


def _plain(label: Any) -> Any:
    return label if isinstance(label, (str, int, float)) else str(label)


def _write(estimator: Any, facts: dict[str, Any], out: Any, format: str, packed: bool) -> None:
    """Write components as a table, or all factors as JSON."""
    data = estimator._posterior.problem.data
    axes = data.axes or (Axis(),) * len(data.shape)
    if format == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["component", *(axes[-1].labels or range(data.shape[-1]))])
        for k, row in enumerate(estimator.components_.tolist()):
            writer.writerow([k, *row])
        content = text.getvalue()
    else:
        posterior = estimator._posterior
        means = zip(posterior.problem.variables, posterior.means(), strict=True)
        labels = {
            name: None if axis.labels is None else [_plain(label) for label in axis.labels]
            for name, axis in zip(posterior.problem.layout.cells, axes, strict=True)
        }
        parts = {factor.name: factor.shown(table).tolist() for factor, table in means}
        content = json_module.dumps(facts | {"labels": labels, "factors": parts}) + "\n"
    raw = content.encode()
    raw = gzip.compress(raw, mtime=0) if packed else raw
    write_whole(out, lambda file: file.write(raw), ".factorization-", f".{format}")


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
