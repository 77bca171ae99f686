"""Released values from a file, a posterior to the terminal: what the command line's `ldp` does."""

import io
import itertools
import json as json_module
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

from quincunx import _check, _csv
from quincunx._npz import GZIP, unpacked
from quincunx._progress import Progress
from quincunx._summary import Summary
from quincunx._types import Array, Facts
from quincunx.ldp._histogram import HistogramModel
from quincunx.ldp._scalar import GaussianModel
from quincunx.privacy import (
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    LaplaceMechanism,
    Release,
    UnaryEncoding,
    sensitivity,
)
from quincunx.privacy._command import declared_categories, refuse
from quincunx.privacy._files import decoded
from quincunx.privacy._formats import is_release
from quincunx.privacy._mechanism import Mechanism

#: Lines that are read at a time; fits to more go by the summary. As many as `_groups.MANY`, from which on a fit works
#: on cells of its own accord, so that pieces change no bit.
PIECE = 2**17


def ldp_command(
    what: Literal["histogram", "mean", "regression"],
    source: str | os.PathLike[str] | BinaryIO,
    *,
    epsilon: float | None = None,
    delta: float = 1e-5,
    bounds: tuple[float, float] | None = None,
    task: Literal["linear", "logistic"] = "linear",
    categories: str | None = None,
    header: bool | None = None,
    n_draws: int = 1000,
    random_state: int | None = None,
    json: bool = False,
    progress: Progress = False,
) -> str:
    """Infer shares, a mean, or a regression from a file of released values.

    Parameters
    ----------
    what : {"histogram", "mean", "regression"}
        Histogram, mean or regression: `HistogramModel`, `GaussianModel`, or a regression from second moments.
    source : path or binary file
        A release, or a CSV file with a line for each user; - is standard input. Lines are rows of bits or a category
        each; a number each; a user's statistics. A line of names may come first, as pandas writes it, also with an
        index. Files that are not packed are read in pieces, of which one is in memory.
    epsilon : float, optional
        Of the mechanism that made a CSV file: unary encoding or generalized randomized response; Laplace; Gaussian.
    delta : float
        Of the Gaussian mechanism.
    bounds : tuple of float, optional
        Lower and upper, or those of x and y for a regression.
    task : {"linear", "logistic"}
        Which regression.
    categories : str, optional
        Of a histogram: a number, 'tea|coffee', or a CSV file of labels. Must be given for a category on each line.
    header : bool, optional
        Whether the first line of a CSV file holds names, by default where it has no number and is no label declared.
    n_draws : int
        Draws of each chain.
    random_state : int, optional
        Makes the draws repeatable.
    json : bool
        Print a JSON object.
    progress : bool or callable
        A bar, or a function of (done, total).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from quincunx.privacy import UnaryEncoding
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.npz"
    >>> UnaryEncoding(1.0, 3).release([0] * 50, insecure_seed=1).save(file)
    >>> print(ldp_command("histogram", file, random_state=0).splitlines()[0].split()[:2])
    ['parameter', 'mean']
    """
    parameters: Facts = {"n_draws": n_draws, "random_state": random_state, "progress": progress}
    _check.one_of(what, "what", ("histogram", "mean", "regression"))
    declared = None if categories is None or what != "histogram" else declared_categories(categories)
    released, later = _read(source, declared, header)
    mechanism = None
    if what == "histogram":
        model: Any = HistogramModel(categories=declared, **parameters)
    elif what == "mean":
        model = GaussianModel(**parameters)
    else:
        from quincunx.ldp._regression import LinearRegression, LogisticRegression

        _check.one_of(task, "task", ("linear", "logistic"))
        cls: Any = LinearRegression if task == "linear" else LogisticRegression
        model = cls(kind="statistics", **parameters)
    if isinstance(released, Release):
        refuse("a release, which says by what it was made", epsilon=epsilon, bounds=bounds, header=header)
    else:
        if epsilon is None:
            raise ValueError("`epsilon` must be given for a file that is not a release")
        mechanism = _mechanism(what, released, epsilon, delta, bounds, task, declared)
    if what != "regression":
        released, later = _flat(released, what), (_flat(some, what) for some in later)
    if (second := next(later, None)) is not None:
        released, mechanism = _summed(itertools.chain([released, second], later), model, mechanism), None
    model.fit(released, mechanism=mechanism)
    summary = model.summary()
    if json:
        return json_module.dumps({"model": type(model).__name__, "posterior": summary})
    lines = [f"{'parameter':<18}{'mean':>12}{'sd':>12}{'2.5 %':>12}{'97.5 %':>12}"]
    for name, row in summary.items():
        lines.append(f"{name:<18}" + "".join(f"{row[key]:>12.5g}" for key in ("mean", "sd", "q2.5", "q97.5")))
    return "\n".join(lines)


def _summed(pieces: Iterator[Array], model: Any, mechanism: Mechanism | None) -> Summary:
    """Return the summary of pieces of a file; errors say where the one begins whose indices they have."""
    summed, before = Summary(model._summarized_as()), 0
    for piece in pieces:
        try:
            summed += model.summarize(piece, mechanism=mechanism)
        except ValueError as error:
            raise ValueError(f"{error}" + f", counted from record {before} on" * bool(before)) from error
        before += len(piece)
    return summed


def _read(source: Any, declared: object, header: bool | None) -> tuple[Any, Iterator[Any]]:
    """Read a release in any of its formats, or a table of numbers or of the labels declared; and what follows of it."""
    in_pieces = isinstance(source, (str, os.PathLike)) and os.path.isfile(source)
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            content = file.read(64 if in_pieces else -1)
    else:
        content = source.read()
    if content.startswith(GZIP):
        if in_pieces:
            with open(source, "rb") as file:
                content = file.read()
        content, in_pieces = unpacked(content, getattr(source, "name", source)), False
    if is_release(content):
        if not isinstance(source, (str, os.PathLike)):
            source.seek(0)
        return Release.load(source), iter(())
    name = str(getattr(source, "name", source))
    lines = _lines(source) if in_pieces else io.StringIO(decoded(content, name), newline=None)
    found = _csv.tables(lines, declared if isinstance(declared, list) else [], PIECE, header=header)
    return next(found), found


def _lines(source: str | os.PathLike[str]) -> Iterator[str]:
    with open(source, encoding="utf-8-sig") as file:
        try:
            yield from file
        except UnicodeDecodeError as reason:
            raise ValueError(f"{source}: not text in UTF-8 ({reason.reason})") from None


def _flat(released: Any, what: str) -> Any:
    if isinstance(released, Release) or (released.shape[1] > 1 and what != "mean"):
        return released
    if released.shape[1] != 1:
        raise ValueError(f'`source` must have one column for "mean", a number of each user, got {released.shape[1]}')
    return released[:, 0]


def _mechanism(
    what: str, values: Array, epsilon: float, delta: float, bounds: Any, task: str, declared: int | list[str] | None
) -> Mechanism:
    if what == "histogram":
        if values.shape[1] > 1:
            return UnaryEncoding(epsilon, values.shape[1] if declared is None else declared)
        if declared is None:
            raise ValueError("`categories` must be given for a category on each line: those that are may not be all")
        return GeneralizedRandomizedResponse(epsilon, declared)
    if bounds is None:
        raise ValueError(f'`bounds` must be given for "{what}" from a file that is not a release')
    if what == "mean":
        return LaplaceMechanism(epsilon, *bounds)
    if task == "linear":
        moved = sensitivity.linear_regression(bounds[0], bounds[1])
    else:
        moved = sensitivity.logistic_regression(bounds[0])
    return GaussianMechanism(epsilon, delta, sensitivity=moved)
