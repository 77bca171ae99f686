"""Counts from a file, released into a file: what the command line's `privatize` does."""

import io
import json
import os
import re
import zipfile
from collections.abc import Hashable, Sequence
from typing import IO, BinaryIO, Literal, TypedDict, Unpack

import numpy as np

from quincunx import _check, _tables
from quincunx._npz import NPY, ZIP, check_npy, open_npz, refuse_large, unpacked
from quincunx._optional import require
from quincunx._types import DataFrame
from quincunx.errors import TooLargeError
from quincunx.privacy._arrow import read_arrow
from quincunx.privacy._privatize import privatize
from quincunx.privacy._release import Release
from quincunx.privacy._text import Table, parse

#: Files that pandas reads, by their ends.
_OF_PANDAS = (".parquet", ".feather", ".xlsx", ".xls")


class Reading(TypedDict, total=False):
    """How a file is read: what `read_table` takes."""

    delimiter: str | None
    header: bool | None
    index: bool | None
    long: bool | None
    square: bool
    labels: Sequence[str | os.PathLike[str]] | None


def privatize_file(
    source: str | os.PathLike[str] | IO[bytes] | IO[str] | Table,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    epsilon: float,
    n: int = 1,
    record_bound: int | None = None,
    format: Literal["npz", "csv", "json"] | None = None,
    insecure_seed: int | None = None,
    **reading: Unpack[Reading],
) -> Release:
    """Release the counts of a file into a file that `Release.load` reads.

    Everything is read and checked before anything is written; a target file appears whole or not at all.

    Parameters
    ----------
    source, **reading
        As for `read_table`, or what that returned.
    target : path or binary file
        Where the release goes.
    epsilon, n, record_bound, insecure_seed
        As for `privatize`.
    format : {"npz", "csv", "json"}, optional
        As for `Release.save`.

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
    table = source if isinstance(source, Table) else read_table(source, **reading)
    release = privatize(table.values, epsilon=epsilon, n=n, record_bound=record_bound, insecure_seed=insecure_seed)
    release.axes_ = _tables.fitting(table.axes, release.shape)
    release.save(target, format=format)
    return release


def read_table(
    source: str | os.PathLike[str] | IO[bytes] | IO[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    long: bool | None = None,
    square: bool = False,
    labels: Sequence[str | os.PathLike[str]] | None = None,
) -> Table:
    """Read counts with their labels from a file.

    Parameters
    ----------
    source : path or file
        Lines of equally many counts; what ``numpy.save`` or ``scipy.sparse.save_npz`` wrote; JSON: a list of rows, or
        ``{"index": [...], "columns": [...], "data": [[...], ...]}``. Any of them compressed by gzip. They are known
        by their first bytes. A path that ends in .parquet, .feather or .xlsx is read by pandas, of
        these the first two with pyarrow.
    delimiter : str, optional
        What separates the counts of a line; by default a comma, tab or semicolon, whichever the first line has.
    header, index : bool, optional
        Whether the first line, the first column, hold labels. By default they do where they are no numbers; numbers
        that look like labels are refused, and so are words in the first column that come twice.
    long : bool, optional
        Whether each line holds the labels of one cell and its count. By default what looks like it is refused.
    square : bool
        Whether rows and columns of a long table have the same labels, as those of a network.
    labels : sequence of paths, optional
        Files with the labels that may occur, one on each line: a file for each axis with labels, or the one for both
        axes of a square table. A label that is not there is refused; what the table lacks is zero.

    Returns
    -------
    Table
        Counts, of shape (lines, counts per line) or as they were saved, and the labels of their axes.

    Raises
    ------
    ValueError
        If a line does not hold counts, it is not clear which are, or a label was not declared.
    TooLargeError
        If what a compressed file holds does not fit into the available memory; it is not unpacked then.
    """
    table = _table(source, delimiter=delimiter, header=header, index=index, long=long, square=square)
    return table if labels is None else table.on_domain(labels, square=square)


def _table(
    source: str | os.PathLike[str] | IO[bytes] | IO[str],
    *,
    delimiter: str | None,
    header: bool | None,
    index: bool | None,
    long: bool | None,
    square: bool,
) -> Table:
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"`delimiter` must be one character, got {delimiter!r}")
    said = {"delimiter": delimiter, "header": header, "index": index, "long": long, "square": square or None}
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        ending = os.path.splitext(name)[1].lower()
        if ending in _OF_PANDAS:
            if zipfile.is_zipfile(name):  # what a sheet of xlsx is
                with zipfile.ZipFile(name) as archive:
                    refuse_large(archive, name)
            _refuse_idle(name, delimiter=delimiter, header=header)
            excel = ending.startswith(".xls")
            try:
                frame = require("pandas", "pandas").read_excel(name) if excel else read_arrow(name, ending)
            except (TooLargeError, ImportError):
                raise
            except Exception as reason:  # of pandas, pyarrow or what they read Excel by
                if getattr(reason, "errno", None):  # of the system, not of a damaged file
                    raise
                raise ValueError(f"{name}: {reason}") from reason
            if (frame.select_dtypes("floating").abs() >= 2**53).any(axis=None):
                raise ValueError(f"{name}: counts from 2**53 on must be integers, which no rounding has changed")
            bare = _tables.axes(frame)[0].labels is None or index is False  # rows from 0 on, or not to be kept
            bare = bare or bool(long and frame.index.names == [None])  # lines that were left of a long table
            _refuse_odd(frame, name, labelled=not bare, declared=bool(index is not None or long), long=bool(long))
            text = frame.to_csv(index=not bare)
            return parse(text, name, header=True, index=index if bare or long else True, long=long, square=square)
        with open(source, "rb") as file:
            content: bytes | str = file.read()
    else:
        name, content = str(getattr(source, "name", "input")), source.read()
    if isinstance(content, bytes):
        content = unpacked(content, name)
        if content.startswith((NPY, ZIP)):
            _refuse_idle(name, **said)
            return _of_arrays(content, name)
        content = decoded(content, name)
    if content.lstrip()[:1] in ("[", "{"):
        _refuse_idle(name, **said)
        return _of_json(content, name)
    return parse(content, name, delimiter=delimiter, header=header, index=index, long=long, square=square)


def _refuse_odd(frame: DataFrame, name: str, *, labelled: bool, declared: bool, long: bool) -> None:
    """Refuse a data frame whose text would have labels for counts, or what is no label for one."""
    if frame.columns.nlevels > 1 or (labelled and not long and frame.index.nlevels > 1):
        raise ValueError(f"{name}: labels must be of one level, got several, of which the others would be counts")
    for title, column in () if labelled or declared else list(frame.items())[:1]:
        if (kind := require("pandas", "pandas").api.types.infer_dtype(column)) in ("boolean", "bytes", "mixed"):
            raise ValueError(
                f"{name}: its first column {title!r} must hold counts or words, got {kind} values, which would be "
                "published as they are: say `--index` where they are labels"
            )


def _refuse_idle(name: str, **options: object) -> None:
    """Refuse options about the lines of a file that has none."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"`{option}` must be left out for {name}, which says itself what its counts are")


def _of_arrays(content: bytes, name: str) -> Table:
    """Read what NumPy or SciPy saved."""
    try:
        if content.startswith(NPY):
            check_npy(io.BytesIO(content), len(content), name)
            return Table(_check.counts(np.load(io.BytesIO(content), allow_pickle=False), name), ())
        with open_npz(io.BytesIO(content), name) as arrays:
            names = set(arrays.files)
            if "release" in names:
                raise ValueError("it holds a release already")
            if "format" not in names and len(names) == 1:
                return Table(_check.counts(arrays[names.pop()], name), ())
        from scipy.sparse import load_npz

        return Table(_check.counts(_tables.array(load_npz(io.BytesIO(content)), name), name), ())
    except (TooLargeError, TypeError):
        raise
    except Exception as reason:  # of NumPy, zipfile and zlib, about a damaged file
        text = re.sub("^The file <.*?> does", "it does", str(reason).partition(" when allow_pickle")[0])
        raise ValueError(f"{name}: {text.removeprefix(f'{name}: ').removeprefix(f'`{name}` ')}") from reason


def _of_json(content: str, name: str) -> Table:
    """Read rows of counts, bare or as ``DataFrame.to_json(orient="split")`` writes them."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as reason:
        raise ValueError(f"{name}: {reason}") from reason
    labels: list[Sequence[Hashable] | None] = [None, None]
    if isinstance(found, dict):
        if "data" not in found:
            raise ValueError(f"{name}: a JSON object must hold 'data', and may hold 'index' and 'columns'")
        labels, found = [found.get("index"), found.get("columns")], found["data"]
        if not all(isinstance(part, list) and all(map(_is_label, part)) for part in labels if part is not None):
            raise ValueError(f"{name}: 'index' and 'columns' must be lists of words or numbers")
    try:
        values = _check.counts(array := np.array(found), name)
        if array.dtype.kind == "f" and values.max(initial=0) >= 2**53:  # whole numbers among them were rounded
            raise ValueError("counts from 2**53 on must be written without a decimal point")
    except (TypeError, ValueError) as reason:
        raise ValueError(f"{name}: {str(reason).removeprefix(f'`{name}` ')}") from reason
    found_axes = tuple(_tables.Axis(None, None if part is None else tuple(part)) for part in labels)
    if any(axis.labels is not None for axis in found_axes):
        axes = _tables.fitting(found_axes, values.shape)
        if not axes:
            raise ValueError(f"{name}: its labels do not fit counts of shape {values.shape}")
        return Table(values, axes)
    return Table(values, ())


def _is_label(value: object) -> bool:
    """Say whether JSON has a word, a number or, for several levels of labels, a list of them."""
    return all(map(_is_label, value)) if isinstance(value, list) else isinstance(value, (str, int, float))


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file, or raise with the number of the line where it is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = content.count(b"\n", 0, reason.start) + 1
        raise ValueError(f"{name}, line {line}: not text in UTF-8") from reason
