"""Channels in files, graphs as words, and what the command line prints."""

import json as json_module
import math
import os
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from quincunx import _check, _csv, graphs
from quincunx._types import Facts
from quincunx.graphs import Graph
from quincunx.leakage._channel import Channel


def read_channel(path: "str | os.PathLike[str] | Iterable[str]") -> Channel:
    """Read a channel from a table of comma-separated values.

    One row for each input. Entries are decimal numbers or fractions such as ``1/3``; if there is a fraction, all
    entries are read exactly and the channel is exact. Empty lines and what follows ``#`` are passed over. A first line
    without any number names the outputs; if it begins with an empty field, the first column names the inputs.

    Parameters
    ----------
    path : path or iterable of str
        The file, or its lines.

    Returns
    -------
    Channel
        Exact where the file holds fractions; with the names of the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError
        If `path` is neither a path nor lines of text.
    ValueError
        If a line does not hold numbers, or not as many as the first, or is no distribution; the message names the file
        and the line.

    Examples
    --------
    >>> from quincunx.leakage import read_channel
    >>> read_channel(["3/4, 1/4", "1/2, 1/2"])
    <Channel: 2 inputs, 2 outputs, exact>
    """
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
    elif isinstance(path, Iterable) and not isinstance(path, (bytes, np.ndarray)):
        name = str(getattr(path, "name", "the channel"))
    else:
        raise TypeError(f"`path` must be a file or lines of text, got {type(path).__name__}")
    # A comma may end a line.
    filled = [(number, fields) for number, fields in _csv.rows(path, name, comment="#") if any(fields)]
    rows = [(number, fields if fields[-1] else fields[:-1]) for number, fields in filled]
    outputs: list[str] | None = None
    inputs: list[str] | None = None
    if rows and len(rows) > 1 and not any(map(_is_entry, rows[0][1])):
        outputs = rows.pop(0)[1]
        if outputs[0] == "":
            outputs, inputs = outputs[1:], [row[0] for _, row in rows]
            rows = [(number, row[1:]) for number, row in rows]
    if not rows:
        raise ValueError(f"{name}: no rows")
    exact, width = any("/" in entry for _, row in rows for entry in row), len(rows[0][1])
    table = []
    for number, row in rows:
        if len(row) != width:
            raise ValueError(f"{name}, line {number}: {len(row)} entries, but the first row has {width}")
        values = [_entry(entry, f"{name}, line {number}", exact) for entry in row]
        try:
            Channel([values], exact=exact)
        except ValueError:
            wrong = next(
                (entry for entry, value in zip(row, values, strict=True) if not 0 <= value < float("inf")), None
            )
            found = f"the sum {sum(values)}" if wrong is None else wrong
            raise ValueError(
                f"{name}, line {number}: must be made of entries of at least 0 that sum to 1, got {found}"
            ) from None
        table.append(values)
    if outputs is not None and len(outputs) != width:
        raise ValueError(f"{name}: {len(outputs)} names of outputs, but the first row has {width} entries")
    return Channel(table, exact=exact, inputs=inputs, outputs=outputs)


def _is_entry(text: str) -> bool:
    try:
        _check.rational(text, "entry")
    except ValueError:
        return text.lower().lstrip("+-") in ("nan", "inf", "infinity") or "/" in text
    return True


def _entry(text: str, place: str, exact: bool) -> Fraction | float:
    try:
        value = _check.rational(text, "entry") if exact else float(text)
        lost = value == 0 and _check.rational(text, "entry") != 0
    except ValueError:
        raise ValueError(f"{place}: must hold numbers such as 0.25 or 1/4, got {text!r:.60}") from None
    if lost:
        raise ValueError(f"{place}: must hold numbers that doubles tell from 0, or a fraction, got {text!r:.60}")
    return value


#: How to make each family of graphs from its numbers, and how many they are (None: one or more).
_FAMILIES: dict[str, tuple[Callable[..., Graph], int | None]] = {
    "complete": (graphs.complete, 1),
    "cycle": (graphs.cycle, 1),
    "grid": (graphs.grid, None),
    "hamming": (graphs.hamming, 2),
    "path": (graphs.path, 1),
    "torus": (graphs.torus, None),
}


def graph_from_word(word: str) -> Graph:
    """Return the graph that a word such as ``hamming:3,2``, ``path:5``, ``grid:4,4`` or ``edges:FILE`` stands for."""
    family, _, rest = word.partition(":")
    if family == "edges" and rest:
        return graphs.read_edges(rest)
    rule = "`graph` must be a word such as hamming:3,2, path:5, cycle:5, complete:4, grid:4,4, torus:4,4 or edges:FILE"
    if family not in _FAMILIES:
        raise ValueError(f"{rule}, got {word!r}")
    make, count = _FAMILIES[family]
    parts = rest.replace("x", ",").split(",")
    if not all(part.isascii() and part.isdigit() for part in parts) or (count is not None and len(parts) != count):
        raise ValueError(f"{rule}, got {word!r}")
    return make(*map(int, parts))


def leakage_command(
    path: str | os.PathLike[str] | Iterable[str],
    *,
    graph: str | None = None,
    symmetrize: bool = False,
    json: bool = False,
) -> str:
    """Say what a channel leaks, one measure a line.

    Parameters
    ----------
    path : path
        A CSV file: a row per input, chances of the outputs; - is standard input.
    graph : str, optional
        Which inputs are adjacent: ``hamming:3,2``, ``path:5``, ``cycle:5``, ``complete:4``, ``grid:4,4``, ``torus:4,4``
        or ``edges:FILE``.
    symmetrize : bool
        Average over the automorphisms of the graph and report on that.
    json : bool
        Print a JSON object.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "channel.csv"
    >>> _ = file.write_text("1.0, 0.0" + chr(10) + "0.5, 0.5")
    >>> print(leakage_command(file, graph="path:2"))
    channel             2 inputs, 2 outputs
    min-capacity        0.584963 bits
    Shannon capacity    0.321928 bits
    vulnerability       0.75, uniform prior
    epsilon             inf nats
    """
    if symmetrize and graph is None:
        raise ValueError("`graph` must be given to symmetrize")
    channel = read_channel(path)
    on = None if graph is None else graph_from_word(graph)
    capacity = channel.shannon_capacity()
    vulnerability = channel.bayes_vulnerability()
    epsilon = None if on is None else channel.dp_epsilon(on)
    averaged = channel.symmetrize(on) if symmetrize and on is not None else None
    if json:
        facts: Facts = {
            "inputs": channel.n_inputs,
            "outputs": channel.n_outputs,
            "graph": graph,
            "epsilon": "inf" if epsilon == math.inf else epsilon,
            "min_capacity": channel.min_capacity(),
            "shannon_capacity": [capacity.lower, capacity.upper],
            "vulnerability": str(vulnerability) if isinstance(vulnerability, Fraction) else vulnerability,
        }
        if averaged is not None:
            facts["symmetrized"] = averaged.to_dict()
        return json_module.dumps(facts)
    shown = str(vulnerability) if isinstance(vulnerability, Fraction) else f"{vulnerability:.6g}"
    lines = [
        f"{'channel':<19} {repr(channel).removeprefix('<Channel: ').removesuffix('>')}",
        f"{'min-capacity':<19} {channel.min_capacity():.6g} bits",
        f"{'Shannon capacity':<19} {(capacity.lower + capacity.upper) / 2:.6g} bits",
        f"{'vulnerability':<19} {shown}, uniform prior",
    ]
    if epsilon is not None:
        lines.append(f"{'epsilon':<19} {epsilon:.6g} nats")
    return "\n".join(lines) if averaged is None else "\n".join([*lines, "", str(averaged)])
