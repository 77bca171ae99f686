"""Mechanisms and budgets on the command line: what its verbs from `release` to `budget` do."""

import json as json_module
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias, Unpack, get_args

import numpy as np

from quincunx import _check, _csv
from quincunx._categories import of_words
from quincunx._docs import assembled
from quincunx._npz import unpacked
from quincunx._rng import generator
from quincunx._types import Array
from quincunx.privacy._audit import audit
from quincunx.privacy._budget import Budget
from quincunx.privacy._discrete_gaussian import DiscreteGaussianMechanism
from quincunx.privacy._files import Reading, decoded, privatize_file, read_table
from quincunx.privacy._formats import is_release
from quincunx.privacy._gaussian import GaussianMechanism
from quincunx.privacy._geometric import GeometricMechanism
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._hadamard_response import HadamardResponse
from quincunx.privacy._laplace import LaplaceMechanism
from quincunx.privacy._local_hashing import LocalHashing
from quincunx.privacy._mechanism import Mechanism
from quincunx.privacy._release import Release
from quincunx.privacy._response import GeneralizedRandomizedResponse, RandomizedResponse
from quincunx.privacy._subset_selection import SubsetSelection
from quincunx.privacy._unary_encoding import UnaryEncoding

#: Mechanisms by the names that their releases have in files.
Name: TypeAlias = Literal[
    "geometric",
    "laplace",
    "gaussian",
    "discrete-gaussian",
    "randomized-response",
    "generalized-randomized-response",
    "unary-encoding",
    "subset-selection",
    "local-hashing",
    "hadamard-response",
]
_NOISE = get_args(Name)[:4]
#: Those of categories, as functions of epsilon and these.
_OF_CATEGORIES: dict[str, Callable[..., Mechanism]] = {
    "randomized-response": lambda epsilon, categories: RandomizedResponse(epsilon, categories=categories),
    "generalized-randomized-response": GeneralizedRandomizedResponse,
    "unary-encoding": UnaryEncoding,
    "subset-selection": SubsetSelection,
    "local-hashing": LocalHashing,
    "hadamard-response": HadamardResponse,
}


_command_doc = assembled(
    out="""
    out : path or binary file
        A file .npz, .csv, .csv.gz or .json; - is standard output.
    format : {"npz", "csv", "json"}, optional
        Of the output, by default by its name, or CSV.
    """
)


def mechanism_of(
    name: str,
    *,
    epsilon: float | None,
    delta: float | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    radius: float | None = None,
    dimension: int = 1,
    categories: str | None = None,
) -> Any:
    """Return the mechanism of a name.

    Parameters
    ----------
    name : str
        One of `Name`.
    epsilon : float
        The privacy loss of a record, or with N of a change of at most N.
    delta : float, optional
        Of the Gaussian mechanisms (default 1e-6).
    bounds : tuple of float, optional
        Of each number, of geometric, discrete-gaussian, laplace or gaussian; what lies outside is clipped.
    n : int, optional
        Protect changes of at most N in the sum of whole numbers instead, of geometric or discrete-gaussian.
    radius : float, optional
        Of gaussian: rows are clipped to this Euclidean norm.
    dimension : int
        Numbers of a row, of gaussian.
    categories : str, optional
        Of responses and encodings: a number, 'tea|coffee', or a CSV file of labels.
    """
    _check.one_of(name, "mechanism", get_args(Name))
    if epsilon is None:
        raise ValueError("`epsilon` must be given")
    given = {"delta": delta, "bounds": bounds, "n": n, "radius": radius, "categories": categories}
    taken = {
        "geometric": ["bounds", "n"],
        "discrete-gaussian": ["bounds", "n"],
        "laplace": ["bounds"],
        "gaussian": ["radius", "bounds"],
    }
    takes = taken.get(name, ["categories"])
    may = [*takes, "delta"] if name.endswith("gaussian") else takes
    refuse(name, **{option: value for option, value in given.items() if option not in may})
    delta = 1e-6 if delta is None else delta
    if sum(given[option] is not None for option in takes) != 1:
        both = ", not both" * (len(takes) > 1)
        raise ValueError(f"{' or '.join(f'`{option}`' for option in takes)} must be given for {name}{both}")
    if name == "laplace":
        assert bounds is not None
        return LaplaceMechanism(epsilon, *bounds)
    if name == "gaussian":
        lower, upper = bounds or (None, None)
        return GaussianMechanism(epsilon, delta, radius=radius, dimension=dimension, lower=lower, upper=upper)
    if name in ("geometric", "discrete-gaussian"):
        lower, upper = (None, None) if bounds is None else (_check.whole(end, "bounds", minimum=None) for end in bounds)
        if name == "geometric":
            return GeometricMechanism(epsilon, n=n, lower=lower, upper=upper)
        return DiscreteGaussianMechanism(epsilon, delta, sensitivity=n, lower=lower, upper=upper)
    assert categories is not None
    return _OF_CATEGORIES[name](epsilon, declared_categories(categories))


def refuse(what: str, **options: object) -> None:
    """Refuse options that have no effect."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"`{option}` must be left out for {what}")


def declared_categories(categories: str) -> int | list[str]:
    """Return a number of categories, or labels, of a word or a CSV file."""
    if os.path.isfile(categories):
        words = [field for row in _csv.rows(categories, categories) for field in row.fields]
    else:
        words = [word.strip() for word in categories.split("|")]
    return of_words(words, "`categories`")


@_command_doc
def release_command(
    mechanism: Name,
    source: str | os.PathLike[str] | BinaryIO = "-",
    *,
    epsilon: float,
    delta: float | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    radius: float | None = None,
    categories: str | None = None,
    header: bool | None = None,
    out: str | os.PathLike[str] | BinaryIO = "-",
    format: Literal["npz", "csv", "json"] | None = None,
) -> str:
    """Release numbers or categories of a file by any mechanism, each line for itself. Counts: see `privatize`.

    Parameters
    ----------
    mechanism : str
        Which mechanism.
    source : path or binary file
        A CSV file with a line for each record, also .gz; a line of names may come first. - is standard input.
    epsilon, delta, bounds, n, radius, categories
        As for `mechanism_of`.
    header : bool, optional
        Whether the first line holds names, by default where it has no number and is no label declared.
    {out}

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "age.csv").write_text("age" + chr(10) + "31" + chr(10) + "54")
    >>> print(release_command("laplace", folder / "age.csv", epsilon=1, bounds=(0, 100), out=folder / "r.npz"))
    PrivacyGuarantee(epsilon=1.0, delta=0.0, relation=ReplaceOne(), numerics='exact')
    protects one record replaced by any other
    """
    labels = declared_categories(categories) if categories is not None else []
    table = _csv.table(decoded(*_content(source)), labels if isinstance(labels, list) else [], header=header)
    values = table[:, 0] if table.shape[1] == 1 else table
    if mechanism not in ("laplace", "gaussian") and values.dtype.kind == "f":
        values = _check.counts(values, "source", minimum=None)
        if np.abs(values).max(initial=0) >= 2**53:  # which doubles have rounded
            raise ValueError("`source` must hold whole numbers from 2**53 on without a decimal point in any of them")
    # Rows of numbers are one record each for the Gaussian mechanism alone, which has a norm.
    if values.ndim > 1 and (mechanism != "gaussian" or bounds is not None):
        beside = " with `bounds`" * (mechanism == "gaussian")
        raise ValueError(f"`source` must have one column for {mechanism}{beside}, got {values.shape[1]}")
    how = {"bounds": bounds, "n": n, "radius": radius, "categories": categories}
    made = mechanism_of(mechanism, epsilon=epsilon, delta=delta, dimension=table.shape[1], **how)  # type: ignore[arg-type]
    return _written(made.release(values), out, format)


def _written(
    release: Release, out: str | os.PathLike[str] | BinaryIO, format: Literal["npz", "csv", "json"] | None
) -> str:
    """Write a release, into what has no name as CSV, and return what it guarantees."""
    release.save(out, format=format if format is not None or isinstance(out, (str, os.PathLike)) else "csv")
    return f"{release.guarantee}\nprotects {release.protects}"


def _content(source: str | os.PathLike[str] | BinaryIO) -> tuple[bytes, str]:
    """Return what a file holds, unpacked, and its name."""
    name = str(getattr(source, "name", source))
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return unpacked(file.read(), name), name
    return unpacked(source.read(), name), name


def accuracy_command(
    what: str | os.PathLike[str] | BinaryIO,
    *,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float | None = None,
    bounds: tuple[float, float] | None = None,
    n: int | None = None,
    radius: float | None = None,
    json: bool = False,
) -> str:
    """Say how far noise keeps a released number from the true one, with a confidence, before or after the release.

    Parameters
    ----------
    what : path or binary file, or str
        A file with a release, - is standard input; or geometric, laplace, gaussian or discrete-gaussian.
    confidence : float
        In (0, 1): the probability of at most this error for one number, by the exact law.
    epsilon, delta, bounds, n, radius
        As for `mechanism_of`.
    json : bool
        Print a JSON object.

    Examples
    --------
    >>> accuracy_command("laplace", epsilon=1, bounds=(0, 100), confidence=0.9)
    '230.258...'
    """
    if isinstance(what, str) and what in _NOISE:
        mechanism = mechanism_of(what, epsilon=epsilon, delta=delta, bounds=bounds, n=n, radius=radius)
    elif not isinstance(what, (str, os.PathLike)) or os.path.isfile(what):
        refuse("a release", epsilon=epsilon, delta=delta, bounds=bounds, n=n, radius=radius)
        mechanism = Release.load(what).noise
    else:
        _check.one_of(what, "what", _NOISE) if "." not in str(what) else None
        raise FileNotFoundError(f"{what}: there is no such file, and no mechanism of this name: {', '.join(_NOISE)}")
    found = mechanism.accuracy(confidence)
    values = np.asarray(found).tolist()
    if json:
        return json_module.dumps({"accuracy": values, "confidence": confidence})
    return "\n".join(map(str, values)) if isinstance(values, list) else str(values)


def audit_command(
    x: str | os.PathLike[str] | BinaryIO,
    y: str | os.PathLike[str] | BinaryIO,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.999,
    header: bool | None = None,
    random_state: int | None = None,
    json: bool = False,
) -> str:
    """Put a claim of privacy to the test: bound a program's epsilon from below by its outputs for two neighbors.

    Parameters
    ----------
    x : path or binary file
        A CSV file with independent outputs for one data set, one a line, or a release; - is standard input.
    y : path or binary file
        The same number of outputs for a neighboring data set.
    epsilon : float, optional
        The claim.
    delta : float
        The delta that is granted.
    confidence : float
        Of the bound: a program that keeps its claim is rejected with a probability of at most one minus this.
    header : bool, optional
        Whether the first line of a CSV file holds a name, by default where it has no number.
    random_state : int, optional
        Repeats the order in which the outputs are looked at.
    json : bool
        Print a JSON object.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, share in (("x", 20), ("y", 80)):
    ...     _ = (folder / name).write_text(chr(10).join("1" if i % 100 < share else "0" for i in range(10_000)))
    >>> print(audit_command(folder / "x", folder / "y", epsilon=1, random_state=1).splitlines()[0])
    rejected: epsilon is at least 1.2..., not 1, with confidence 0.999
    """
    outputs = []
    for called, source in (("x", x), ("y", y)):
        content, name = _content(source)
        if is_release(content):
            refuse("a release", header=header)
            if not isinstance(source, (str, os.PathLike)):
                source.seek(0)
            outputs.append(_check.unmasked(Release.load(source), called))
        else:
            outputs.append(_csv.table(decoded(content, name), header=header))
    if len(outputs[0]) != len(outputs[1]):
        raise ValueError(f"`y` must hold as many outputs as `x`, got {len(outputs[1])} and {len(outputs[0])}")
    if len(outputs[0]) < 12:
        raise ValueError(f"`x` must hold at least 12 outputs, got {len(outputs[0])}")
    shuffled = generator(random_state, "random_state")
    rest = [iter(shuffled.permutation(part)) for part in outputs]

    def drawn(which: int, number: int) -> Array:
        """Return the next outputs, each once."""
        return np.array([next(rest[int(which)]) for _ in range(number)])

    size = 2 * len(outputs[0])
    found = audit(drawn, 0, 1, n_draws=size, confidence=confidence, epsilon=epsilon, delta=delta, vectorized=True)
    if json:
        return json_module.dumps(vars(found) | {"rejected": found.rejected})
    bound = f"epsilon is at least {found.epsilon:.6g}"
    claim = "" if found.claimed is None else f", not {found.claimed:g}" if found.rejected else f" of {found.claimed:g}"
    said = f"{'rejected: ' if found.rejected else ''}{bound}{claim}, with confidence {confidence:g}"
    draws = f"{found.hits[0]} and {found.hits[1]} of {found.n_draws[0]} outputs"
    return f"{said}\nevent      {found.event} ({found.direction}): {draws}"


@_command_doc
def convert_command(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    out: str | os.PathLike[str] | BinaryIO = "-",
    format: Literal["npz", "csv", "json"] | None = None,
) -> str:
    """Write a release in another format, its guarantee inside.

    Parameters
    ----------
    source : path or binary file
        A release in any format; - is standard input.
    {out}

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from quincunx.privacy import privatize
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> privatize([[1, 2]], epsilon=1).save(folder / "a.npz")
    >>> print(convert_command(folder / "a.npz", out=folder / "a.json").splitlines()[1])
    protects changes of at most 1 in the sum of all counts
    """
    return _written(Release.load(source), out, format)


def privatize_command(
    source: Annotated[
        str, "a table of counts: CSV (also .gz), JSON, npy, npz of a sparse array, parquet, Excel; - is standard input"
    ] = "-",
    *,
    out: Annotated[
        str | os.PathLike[str] | BinaryIO, "a file .npz, .csv, .csv.gz or .json; - is standard output"
    ] = "-",
    format: Annotated[Literal["npz", "csv", "json"] | None, "of the output (default: by its name)"] = None,
    epsilon: Annotated[float, "the privacy loss for a change of at most N units"],
    n: Annotated[int, "protect changes of at most N in the sum of all counts"] = 1,
    record_bound: Annotated[int | None, "protect whole lines, each clipped to a sum of at most N, instead"] = None,
    **reading: Unpack[Reading],
) -> None:
    """Release counts under local privacy. Writes them with two-sided geometric noise and their guarantee inside.

    Numbers that may be labels as well as counts are refused until it is said which they are.
    """
    table = read_table(source, **reading)
    format = format if format is not None or isinstance(out, str) else "csv"
    release = privatize_file(table, out, epsilon=epsilon, n=n, record_bound=record_bound, format=format)
    print(table.describe(), release.guarantee, f"protects {release.protects}", sep="\n", file=sys.stderr)


def budget_open(
    ledger: str,
    *,
    epsilon: Annotated[float, "the limit of epsilon"],
    delta: Annotated[float, "the limit of delta"] = 0.0,
    filter: Annotated[Literal["sum", "zcdp", "gaussian"], "the rule"] = "sum",
    failure: Annotated[float, "the part of delta for releases that have one"] = 0.0,
    allow_network: bool = False,
) -> object:
    """Make a ledger, or check that one has these limits."""
    return Budget.open(ledger, epsilon, delta, filter=filter, failure=failure, allow_network=allow_network)


def budget_spend(
    ledger: str,
    *,
    epsilon: Annotated[float, "the epsilon of the release"],
    delta: Annotated[float, "its delta"] = 0.0,
    user: str | None = None,
    allow_network: bool = False,
) -> str:
    """Count a release before it is made, or refuse it. Exit status 3: refused."""
    if user == "":  # of a variable of a shell that is not set: an account shown as that of all
        raise ValueError("`user` must not be empty")
    budget = Budget.open(ledger, allow_network=allow_network)
    budget.spend(PrivacyGuarantee(epsilon, delta, relation=budget.relation), user=user)
    return f"remaining  {budget.remaining(user):.12g}"


def budget_show(ledger: str, *, user: str | None = None, json: bool = False, allow_network: bool = False) -> str:
    """Show the limits and all accounts, or one."""
    budget = Budget.open(ledger, allow_network=allow_network)
    accounts = [row for row in budget.accounts() if user is None or row["user"] == user]
    if user is not None and not accounts:
        raise ValueError(f"`--user` must have an account, got {user!r}")
    if json:
        limits = {name: getattr(budget, name) for name in ("epsilon", "delta", "filter", "failure")}
        return json_module.dumps(limits | {"relation": str(budget.relation), "accounts": accounts})
    lines = [str(budget)]
    for row in accounts:
        spent = f"epsilon {row['epsilon']:.12g}, delta {row['delta']:.12g}"
        lines.append(f"{row['user'] or '(all)'}: {row['spends']} spends, {spent}, remaining {row['remaining']:.12g}")
    return "\n".join(lines)
