"""Counts from a file, released into a file: what the command line's `privatize` does."""

import io
import os
from typing import IO, BinaryIO

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.privacy._noise import privatize
from quincunx.privacy._release import Release

MAGIC = b"\x93NUMPY"


def privatize_file(
    source: str | os.PathLike[str] | IO[bytes] | IO[str],
    target: str | os.PathLike[str] | BinaryIO,
    *,
    epsilon: float,
    n: int = 1,
    record_bound: int | None = None,
    delimiter: str = ",",
    header: bool = False,
    insecure_seed: int | None = None,
) -> Release:
    """Release the counts of a CSV or npy file into an npz file that `Release.load` reads.

    Everything is read and checked before anything is written; a target file appears whole or not at all.

    Parameters
    ----------
    source : path or file
        Comma-separated lines of equally many counts, or what ``numpy.save`` wrote; told apart by their first bytes.
    target : path or binary file
        Where the release goes.
    epsilon, n, record_bound, insecure_seed
        As for `privatize`.
    delimiter : str
        What separates the counts of a line.
    header : bool
        Whether the first line holds names.

    Returns
    -------
    Release
        What was written.

    Raises
    ------
    ValueError
        If a line does not hold counts; the message names the file and the number of the line.
    OSError
        If a file cannot be read or written.
    """
    counts = read_counts(source, delimiter=delimiter, header=header)
    release = privatize(counts, epsilon=epsilon, n=n, record_bound=record_bound, insecure_seed=insecure_seed)
    release.save(target)
    return release


def read_counts(
    source: str | os.PathLike[str] | IO[bytes] | IO[str], *, delimiter: str = ",", header: bool = False
) -> npt.NDArray[np.int64]:
    """Read counts from a CSV or npy file.

    Parameters
    ----------
    source, delimiter, header
        As for `privatize_file`.

    Returns
    -------
    ndarray of int64
        Of shape (lines, counts per line), or as it was saved.

    Raises
    ------
    ValueError
        If a line does not hold counts.
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(f"`delimiter` must be one character, got {delimiter!r}")
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        with open(source, "rb") as file:
            content: bytes | str = file.read()
    else:
        name, content = str(getattr(source, "name", "input")), source.read()
    if isinstance(content, bytes):
        if content.startswith(MAGIC):
            try:
                array = np.load(io.BytesIO(content), allow_pickle=False)
            except (ValueError, EOFError, OSError) as reason:
                raise ValueError(f"{name}: {reason}") from reason
            return _check.counts(array, name)
        content = _decoded(content, name)
    return _parse(content, name, delimiter, header)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = content.count(b"\n", 0, reason.start) + 1
        raise ValueError(f"{name}, line {line}: not text in UTF-8") from reason


def _parse(text: str, name: str, delimiter: str, header: bool) -> npt.NDArray[np.int64]:
    rows: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or (header and number == 1):
            continue
        fields = line.split(delimiter)
        try:
            row = [int(field) for field in fields]
        except ValueError:
            row = [_count(field, f"{name}, line {number}") for field in fields]
        if min(row) < 0 or max(row) >= 2**63:
            wrong = next(value for value in row if not 0 <= value < 2**63)
            raise ValueError(f"{name}, line {number}: counts must be whole numbers of at least 0, got {wrong}")
        if rows and len(row) != len(rows[0]):
            raise ValueError(f"{name}, line {number}: each line must hold {len(rows[0])} counts, got {len(row)}")
        rows.append(row)
    if not rows:
        raise ValueError(f"{name}: there are no counts in it")
    return np.array(rows, dtype=np.int64)


def _count(field: str, place: str) -> int:
    try:
        value = float(field)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        raise ValueError(f"{place}: counts must be whole numbers of at least 0, got {field.strip()!r}")
    return int(value)
