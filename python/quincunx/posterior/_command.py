"""A network fitted to a file of records: what the command line's `bayesnet fit` does."""

import contextlib
import json
import os
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _csv
from quincunx._npz import write_whole
from quincunx.posterior._network import DiscreteBayesNet
from quincunx.privacy import AddRemove, ReplaceOne

RELATIONS: dict[str, Any] = {"replace-one": ReplaceOne, "add-remove": AddRemove}


def bayesnet_fit(
    source: "str | os.PathLike[str] | Iterable[str]",
    *,
    edges: str,
    cardinalities: str,
    epsilon: float,
    mechanism: str = "auto",
    relation: str = "replace-one",
    nonneg: str | None = None,
    smooth: float = 1.0,
    sample: int = 0,
    out: "str | os.PathLike[str] | None" = None,
) -> str:
    """Fit a network to a CSV file with a header, and return what is printed.

    Parameters
    ----------
    source : path or iterable of str
        A CSV file, or its lines: names of nodes, then a line of category codes per record. What is no number counts
        as 0.
    edges : str
        ``"A:B,A:C"``, parents first, or the path of a CSV file with a pair on each line; may be empty.
    cardinalities : str
        A number for all nodes, or ``"A=2,B=3"``.
    epsilon, mechanism, nonneg, smooth
        As for `DiscreteBayesNet.fit_private`.
    relation : {"replace-one", "add-remove"}
        Who is protected.
    sample : int
        Synthetic records to draw; they are part of the answer.
    out : path, optional
        Where the fitted network goes, as JSON; else it is printed.

    Returns
    -------
    str
        JSON, or a line on what was written.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    ValueError, TypeError
        If a file or an argument does not hold what it should.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = file.write_text(chr(10).join(["A,B", "0,1", "1,1"]))
    >>> print(bayesnet_fit(file, edges="A:B", cardinalities="2", epsilon=1.0)[:28])
    {"mechanism": "fourier_linf"
    """
    names, data = _records(source)
    net = DiscreteBayesNet(_pairs(edges), _sizes(cardinalities, names))
    about = RELATIONS[relation]()
    fitted = net.fit_private(data, epsilon, mechanism, relation=about, nonneg=nonneg, smooth=smooth)
    answer: dict[str, Any] = {
        "mechanism": fitted.mechanism,
        "epsilon": fitted.guarantee.epsilon,
        "guarantee": fitted.guarantee.to_dict(),
        "consistent": fitted.consistent,
        "nodes": {
            node: {
                "cardinality": net.cardinalities[node],
                "parents": list(net.parents[node]),
                "cpd": fitted.cpds[node].tolist(),
            }
            for node in net.nodes
        },
    }
    if sample:
        answer["sample"] = fitted.sample(sample).tolist()
    text = json.dumps(answer)
    if out is None:
        return text
    write_whole(out, lambda file: file.write(f"{text}\n".encode()), ".bayesnet-", ".json")
    return f"{fitted.mechanism}, {fitted.guarantee}: {os.fspath(out)}"


def _records(source: "str | os.PathLike[str] | Iterable[str]") -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names and the codes of a file; each record is coded when it is read, so that they alone are kept."""
    with contextlib.closing(_csv.rows(source, str(getattr(source, "name", source)))) as rows:
        names = next(rows, _csv.Row(0, [])).fields
        if not names or len(set(names)) != len(names):
            raise ValueError(f"`source` must begin with a line of distinct names, got {names}")
        codes = array("q")
        for row in rows:
            codes.extend(_codes(row.fields, len(names)))
    return names, np.frombuffer(codes, dtype=np.int64).reshape(-1, len(names))


def _codes(row: list[str], width: int) -> list[int]:
    """Return a record; a malformed one is made to fit, for whether there is one is private."""
    found = []
    for word in (row + ["0"] * width)[:width]:
        try:
            found.append(int(max(min(float(word), 2.0**31), -(2.0**31))))
        except ValueError:
            found.append(0)
    return found


def _pairs(edges: str) -> list[tuple[str, str]]:
    if os.path.isfile(edges):
        parts = [row.fields for row in _csv.rows(edges, edges)]
    else:
        parts = [[word.strip() for word in part.split(":")] for part in edges.split(",") if part.strip()]
    for part in parts:
        if len(part) != 2:
            raise ValueError(f"`--edges` must be PARENT:CHILD pairs or a file of them, got {':'.join(part)!r}")
    return [(part[0], part[1]) for part in parts]


def _sizes(cardinalities: str, names: list[str]) -> dict[str, int]:
    if cardinalities.strip().isdigit():
        return dict.fromkeys(names, int(cardinalities))
    found = {}
    for part in cardinalities.split(","):
        name, equals, size = (word.strip() for word in part.partition("="))
        if not equals or not size.isdigit() or name not in names:
            raise ValueError(f"`--cardinalities` must be a number or NAME=NUMBER of the columns, got {part!r}")
        found[name] = int(size)
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"`--cardinalities` must name every column, got nothing for {missing[0]!r}")
    return {name: found[name] for name in names}
