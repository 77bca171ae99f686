"""A network fitted to a file of records: what the command line's `bayesnet fit` does."""

import contextlib
import json
import os
from array import array
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from quincunx import _check, _csv
from quincunx._categories import Categories, of_words
from quincunx._npz import write_whole
from quincunx._types import Facts
from quincunx.posterior._network import DiscreteBayesNet
from quincunx.posterior._records import Codes
from quincunx.privacy import AddRemove, ReplaceOne

RELATIONS: Facts = {"replace-one": ReplaceOne, "add-remove": AddRemove}


def bayesnet_fit(
    source: str | os.PathLike[str] | Iterable[str],
    *,
    edges: str,
    categories: Sequence[str] = ("2",),
    epsilon: float,
    mechanism: str = "auto",
    relation: Literal["replace-one", "add-remove"] = "replace-one",
    nonneg: Literal["clip", "min_shift", "project"] | None = None,
    smooth: float = 1.0,
    sample: int = 0,
    out: str | os.PathLike[str] | None = None,
) -> str:
    """Fit a network to private records. Prints it as JSON.

    Parameters
    ----------
    source : path or iterable of str
        A CSV file: a line of names, then a line of categories per record; - is standard input.
    edges : str
        A:B,A:C, parents first, or a CSV file with a pair on each line. May be empty.
    categories : sequence of str
        What the columns may hold, declared: a number k for the codes 0..k-1 of all columns that are not named, A=3 for
        one, 'A=yes|no' for words, or a CSV file with a line for each column: its name, then the number or the words. A
        word that is none of them is refused with its line, before anything is spent. Of one column the last holds.
    epsilon : float
        The privacy level of the whole fit.
    mechanism : str
        Auto, laplace, fourier_l1, fourier_linf, ..., as for `DiscreteBayesNet.fit_private`.
    relation : {"replace-one", "add-remove"}
        The neighbors: who is protected.
    nonneg : {"clip", "min_shift", "project"}, optional
        What is done to negative cells.
    smooth : float
        Smoothing in deviations of the noise.
    sample : int
        Synthetic records to draw; they are part of the answer.
    out : path, optional
        Where the JSON goes (default: standard output).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = file.write_text(chr(10).join(["A,B", "0,yes", "1,no"]))
    >>> print(bayesnet_fit(file, edges="A:B", categories=["2", "B=yes|no"], epsilon=1.0)[:28])
    {"mechanism": "fourier_linf"
    """
    about, sample = RELATIONS[relation](), _check.whole(sample, "sample")
    net, data = _records(source, edges, categories)
    fitted = net.fit_private(data, epsilon, mechanism, relation=about, nonneg=nonneg, smooth=smooth)
    answer: Facts = {
        "mechanism": fitted.mechanism,
        "epsilon": fitted.guarantee.epsilon,
        "guarantee": fitted.guarantee.to_dict(),
        "consistent": fitted.consistent,
        "nodes": {
            node: {
                "categories": net.categories[node],
                "parents": list(net.parents[node]),
                "cpd": fitted.cpds[node].tolist(),
            }
            for node in net.nodes
        },
    }
    if sample:
        drawn = fitted.sample(sample)
        answer["sample"] = (drawn.to_numpy() if hasattr(drawn, "to_numpy") else drawn).tolist()
    text = json.dumps(answer)
    if out is None:
        return text
    write_whole(out, lambda file: file.write(f"{text}\n".encode()), ".bayesnet-", ".json")
    return f"{fitted.mechanism}, {fitted.guarantee}: {os.fspath(out)}"


def _records(
    source: "str | os.PathLike[str] | Iterable[str]", edges: str, words: Sequence[str]
) -> tuple[DiscreteBayesNet, Codes]:
    """Return the network and the codes of a file; each record is coded when it is read, so that they alone are kept."""
    name = str(source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", "source"))
    with contextlib.closing(_csv.rows(source, name)) as rows:
        names = next(rows, _csv.Row(0, [])).fields
        if not names or len(set(names)) != len(names):
            raise ValueError(f"`source` must begin with a line of distinct names, got {names}")
        net = DiscreteBayesNet(_pairs(edges), _declared(words, names))
        codes, known = array("q"), [_codes_of_words(net._declared[column]) for column in names]
        for row in rows:
            if len(row.fields) != len(names):
                raise ValueError(f"{name}, line {row.number}: must have {len(names)} fields, got {len(row.fields)}")
            try:
                codes.extend([code[word] for code, word in zip(known, row.fields, strict=True)])
            except KeyError:
                place = next(i for i, word in enumerate(row.fields) if word not in known[i])
                declared = net.categories[names[place]]
                rule = f"0 to {declared - 1}" if isinstance(declared, int) else "|".join(map(str, declared))
                found = f"{names[place]!r} must be one of {rule}, got {row.fields[place]!r}"
                raise ValueError(f"{name}, line {row.number}: {found}; `--categories` declares others") from None
    return net, Codes(np.frombuffer(codes, dtype=np.int64), len(codes) // len(names))


def _codes_of_words(declared: Categories) -> dict[str, int]:
    """Return the codes of what a file may hold: labels, or codes as whole numbers with or without a decimal point."""
    if declared.labels is not None:
        return {str(label): code for code, label in enumerate(declared.labels)}
    return {form: code for code in range(len(declared)) for form in (str(code), f"{code}.0")}


def _pairs(edges: str) -> list[tuple[str, str]]:
    if os.path.isfile(edges):
        parts = [row.fields for row in _csv.rows(edges, edges)]
    else:
        parts = [[word.strip() for word in part.split(":")] for part in edges.split(",") if part.strip()]
    for part in parts:
        if len(part) != 2:
            raise ValueError(f"`--edges` must be PARENT:CHILD pairs or a file of them, got {':'.join(part)!r}")
    return [(part[0], part[1]) for part in parts]


def _declared(words: Sequence[str], names: list[str]) -> Facts:
    """Return what each column may hold."""
    others, found = None, {}
    for word in words:
        if word.strip().isdecimal():
            others = int(word)
        elif os.path.isfile(word):
            for row in _csv.rows(word, word):
                found[row.fields[0]] = of_words(row.fields[1:], f"{word}, line {row.number}")
        else:
            name, equals, labels = (part.strip() for part in word.partition("="))
            if not equals:
                raise ValueError(f"`--categories` must be a number, NAME=NUMBER, NAME=A|B|... or a file, got {word!r}")
            found[name] = of_words([label.strip() for label in labels.split("|")], f"`--categories` {word!r}")
    for name in found:
        if name not in names:
            raise ValueError(f"`--categories` must name columns of {names}, got {name!r}")
    missing = [name for name in names if name not in found]
    if missing and others is None:
        raise ValueError(f"`--categories` must name every column, got nothing for {missing[0]!r}")
    return {name: found.get(name, others) for name in names}
