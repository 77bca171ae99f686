"""A release from a file, factorized into a file: what the command line's `factorize` does."""

import argparse
import contextlib
import gzip
import io
import json as json_module
import os
import re
from collections.abc import Hashable, Sequence
from typing import Annotated, BinaryIO, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from quincunx import _check, _csv, factorization
from quincunx._docs import sections
from quincunx._executors import dask_client
from quincunx._inference._checkpoint import kept_until_the_end
from quincunx._npz import write_whole
from quincunx._progress import Progress
from quincunx._tables import Axis
from quincunx._types import Facts
from quincunx.factorization._estimator import CountFactorization
from quincunx.factorization._plot import Top
from quincunx.privacy import Release

#: The estimator of each model, and what it is told besides.
MODELS: dict[str, tuple[str, Facts]] = {
    "matrix": ("PoissonFactorization", {}),
    "topics": ("PoissonFactorization", {"topics": "dirichlet"}),
    "directed": ("PoissonBlockmodel", {"directed": True}),
    "undirected": ("PoissonBlockmodel", {"directed": False}),
    "tensor": ("PoissonTensorFactorization", {}),
    "tucker": ("PoissonTensorFactorization", {"core": "dense"}),
    "dynamics": ("PoissonDynamics", {}),
}
File: TypeAlias = str | os.PathLike[str]


def sizes(text: str) -> int | tuple[int, ...]:
    """Read numbers of components, as 5 or 4,4,3."""
    (numbers,) = modes(text.replace(",", "="))
    return numbers[0] if len(numbers) == 1 else numbers


def modes(text: str) -> list[tuple[int, ...]]:
    """Read groups of modes, as 0=1 or 0=1,2=3."""
    try:
        return [tuple(int(mode) for mode in group.split("=")) for group in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers such as 5 or 4,4,3, or 0=1, got {text!r:.60}"
        ) from None


class Parameters(TypedDict, total=False):
    """Parameters of the estimator, None where its default, or what is in the file that goes on, is to hold."""

    n_components: Annotated[
        Annotated[int | tuple[int, ...], sizes] | None,
        "number of components; one for each mode with a core, or layer of topics, as 4,4,3 (default 10)",
    ]
    hyperpriors: Literal["factor", "row"] | None
    likelihood: Literal["poisson", "negative-binomial"] | None
    dispersion: Annotated[str | None, "global (default), row, column, or a number; of negative binomial counts"]
    inference: Annotated[Literal["mcmc", "vi", "svi"] | None, "svi: of a matrix, by batches of rows"]
    method: Annotated[str | None, "auto (default), collapsed, event, split, bessel; bessel-mean, ..."]
    noise: Annotated[Literal["geometric", "none", "naive"] | None, "how the noise is treated (default geometric)"]
    n_chains: int | None
    n_warmup: int | None
    n_draws: int | None
    thin: int | None
    max_iter: int | None
    tol: float | None
    random_state: int | None
    threads: int | None
    progress: Progress


@sections
def factorize_command(
    source: File | BinaryIO,
    *,
    model: Literal["matrix", "topics", "directed", "undirected", "tensor", "tucker", "dynamics"] = "matrix",
    tied: Annotated[Sequence[Sequence[int]], modes, "MODES"] | None = None,
    out: File | BinaryIO | None = None,
    resume: File | None = None,
    checkpoint: File | None = None,
    checkpoint_interval: float = 60.0,
    dask: str | None = None,
    top: int = 5,
    json: bool = False,
    **parameters: Unpack[Parameters],
) -> str:
    """Fit a Poisson factorization to a release that ``quincunx privatize`` wrote, and say how it went.

    Parameters
    ----------
    source : path or binary file
        A release (npz, csv or json); - is standard input.
    model : {"matrix", "topics", "directed", "undirected", "tensor", "tucker", "dynamics"}
        What the counts are: a matrix; one of documents by words whose topics sum to one; a network; a tensor; tucker:
        a tensor whose modes have components of their own; dynamics: a matrix or tensor whose rows are times.
    tied : sequence of sequences of int, optional
        Modes of such a tensor that share a factor, as 0=1.
    out : path or binary file, optional
        Where the fitted model goes, an interrupted one too; .csv, .csv.gz or .json: its components, for other programs.
        That is a table with a row for each component and a column for each feature, or all factors with their labels.
    resume : path, optional
        Go on with a model of this release that was kept, with as many draws again.
    checkpoint : path, optional
        Keep the chains here on the way, and go on from them after a stop.
    checkpoint_interval : float
        Seconds between two checkpoints.
    dask : str, optional
        Run on the workers of this Dask scheduler: its address, or its file.
    top : int
        How many features of each component to print.
    json : bool
        Print a JSON object.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from quincunx.privacy import privatize
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "released.npz"
    >>> privatize([[3, 0, 1], [4, 1, 0]], epsilon=1.0, insecure_seed=1).save(file)
    >>> text = factorize_command(file, inference="vi", n_components=2, max_iter=2000, random_state=1)
    >>> print(text.splitlines()[0])
    model            PoissonFactorization, 2 components
    """
    name, switches = MODELS[_check.one_of(model, "model", MODELS)]
    cls = getattr(factorization, name)
    release = Release.load(source)
    if tied is not None:
        if model != "tucker":
            raise ValueError(f"`tied` must be left out but for the model tucker, got {tied} for {model}")
        switches = switches | {"tied": tied}
    given = switches | {name: value for name, value in parameters.items() if value is not None}
    if "likelihood" in given:
        given["likelihood"] = given["likelihood"].replace("-", "_")
    if "dispersion" in given:
        with contextlib.suppress(ValueError):  # a word
            given["dispersion"] = float(given["dispersion"])
    try:
        estimator = cls() if resume is None else cls.load(resume).set_params(warm_start=True)
    except ValueError as error:
        raise ValueError(str(error).replace("`source`", "`resume`", 1)) from error
    if resume is not None and switches.get("topics") not in (None, getattr(estimator, "topics", None)):
        raise ValueError(f"`model` must be matrix, as in the file that goes on, got {model}")
    estimator.set_params(**given)
    idle = ("max_iter", "tol") if estimator.inference == "mcmc" else ("n_warmup", "n_draws", "thin")
    if useless := [name for name in idle if name in given]:
        raise ValueError(f"`{useless[0]}` must be left out for the inference {estimator.inference}")
    if "dispersion" in given and estimator.likelihood == "poisson":
        raise ValueError("`dispersion` must be left out for Poisson counts")
    if resume is not None:  # of other data another posterior would begin, and what was drawn be lost
        estimator._refuse_other_settings()
        if not estimator._data(release, None, None, reset=True).is_same(estimator._posterior.problem.data):
            raise ValueError("`resume` must be a model of the release in `source`, got one of other counts or noise")
    _check.whole(top, "top")
    named = os.fspath(out).lower() if isinstance(out, (str, os.PathLike)) else ""
    table = re.search(r"\.(csv|json)(\.gz)?$", named)
    if table is not None and table[1] == "csv" and (model in ("tensor", "tucker") or np.ndim(release.values) > 2):
        raise ValueError(f"`out` must be a .json or .npz file for a tensor, got {out}")
    if isinstance(out, (str, os.PathLike)):  # before the fit
        if os.path.isdir(os.path.abspath(out)) or not os.access(os.path.dirname(os.path.abspath(out)), os.W_OK):
            raise ValueError(f"`out` must be a file in a folder that can be written, got {os.fspath(out)}")
    with kept_until_the_end():
        try:
            with dask_client(dask) as client:
                estimator.fit(release, client=client, checkpoint=checkpoint, checkpoint_interval=checkpoint_interval)
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
    components = facts.pop("components")
    sizes = " x ".join(map(str, components)) if isinstance(components, list) else components
    facts["model"] = f"{facts.pop('model')}, {sizes} components"
    facts = {"model": facts.pop("model")} | facts
    facts["misfit"] = ", ".join(f"{name} {_short(value)}" for name, value in facts["misfit"].items())
    width = 15
    lines = [f"{name.replace('_', ' '):<{width}}  {_short(value)}" for name, value in facts.items()]
    for k, part in enumerate(_tops(estimator, top)):
        lines.append(f"{f'component {k}':<{width}}  " + ", ".join(f"{name} {share:.2g}" for name, share in part))
    return "\n".join(lines)


def _tops(estimator: CountFactorization, top: int) -> list[Top]:
    """Return what weighs most in each component."""
    return estimator.top_features(n=top) if top else []


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def _plain(label: Hashable) -> str | int | float:
    return label if isinstance(label, (str, int, float)) else str(label)


def _write(estimator: CountFactorization, facts: Facts, out: File | BinaryIO, format: str, packed: bool) -> None:
    """Write components as a table, or all factors as JSON."""
    data = estimator._posterior.problem.data
    axes = data.axes or (Axis(),) * len(data.shape)
    if format == "csv":
        text = io.StringIO()
        write = _csv.row_writer(text)
        write(["component", *(axes[-1].labels or range(data.shape[-1]))])
        for k, row in enumerate(estimator.components_.tolist()):  # type: ignore[attr-defined]
            write([k, *row])
        content = text.getvalue()
    else:
        posterior = estimator._posterior
        means = zip(posterior.problem.layout.factors, posterior.means(), strict=True)
        labels = {
            name: None if axis.labels is None else [_plain(label) for label in axis.labels]
            for name, axis in zip(posterior.problem.layout.cells, axes, strict=True)
        }
        parts = {factor.name: factor.shown(table).tolist() for factor, table in means}
        content = json_module.dumps(facts | {"labels": labels, "factors": parts}) + "\n"
    raw = content.encode()
    raw = gzip.compress(raw, mtime=0) if packed else raw
    write_whole(out, lambda file: file.write(raw), ".factorization-", f".{format}")


def _facts(estimator: CountFactorization) -> Facts:
    """Return what there is to say of a fit in a few lines."""
    posterior = estimator._posterior
    observed = int(posterior.problem.data.observed.sum())
    facts: Facts = {
        "model": type(estimator).__name__,
        "components": estimator._settings["n_components"],
        "observed_cells": observed,
    }
    misfit = {name: value if np.isfinite(value) else None for name, value in estimator.misfit_.summary().items()}
    if posterior.problem.dispersion is not None:
        facts["dispersion"] = float(np.mean(estimator.dispersion_))
    if not posterior.sampled:
        facts |= {"iterations": int(estimator.n_iter_), "elbo": float(estimator.elbo_[-1])}
        return facts | {"misfit": misfit}
    runs, n = posterior.with_draws, posterior.n_draws
    facts |= {
        "sweeps": int(estimator.n_iter_),
        "chains": len(runs),
        "kept_draws": n,
        "total_rate": float(np.mean([run.total_rate[run.kept[:n] - 1] for run in runs])),
        "log_likelihood": float(np.mean([run.log_likelihood[:n] for run in runs])),
        "misfit": misfit,
    }
    return facts
