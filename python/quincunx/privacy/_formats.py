"""Releases as files: npz archives, and tables and JSON that other programs read.

    npz     ``values``, ``mask`` where cells are masked, and ``release``: a JSON text with guarantee, mechanism, labels
    csv     a line ``# quincunx release {...}`` with the same JSON, then a table; a masked cell is an empty field
    json    that object with ``values`` in lists beside it; a masked cell is null

CSV and JSON may be compressed by gzip. A reader recognizes them by their first bytes; nothing is ever unpickled. The
header has a ``checksum`` of all that is there, which shows accidents, not forgery; files of format 1 have none.
"""

import codecs
import csv
import gzip
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from quincunx import _csv, _tables
from quincunx._npz import NPY, ZIP, npy_header, open_npz, unpacked, write_npz, write_whole
from quincunx._tables import Axes
from quincunx._types import Array, Facts, Json

FORMATS = ("npz", "csv", "json")
FORMAT = 2
READABLE = (1, FORMAT)
TITLE = "# quincunx release "

#: A header of JSON, the values, and where cells are masked.
Content = tuple[Facts, Array, npt.NDArray[np.bool_] | None]


def by_name(target: object) -> tuple[str, bool]:
    """Return the format that the end of a path stands for, npz unless it says otherwise, and whether it is packed."""
    if not isinstance(target, (str, os.PathLike)):
        return "npz", False
    name = os.fspath(target).lower()
    packed = name.endswith(".gz")
    ending = os.path.splitext(name.removesuffix(".gz"))[1].removeprefix(".")
    return (ending, packed) if ending in ("csv", "json") else ("npz", False)


def write(target: "str | os.PathLike[str] | BinaryIO", release: Content, format: str, packed: bool) -> None:
    """Write a release; to a path wholly or not at all."""
    header, values, mask = release
    header = header | {"checksum": _checksum(release)}
    if format == "npz":
        arrays: dict[str, Array] = {"values": values, "release": np.array(json.dumps(header, allow_nan=False))}
        if mask is not None:
            arrays["mask"] = mask
        write_npz(target, arrays, ".release-")
        return
    text = (_to_csv if format == "csv" else _to_json)(header, values, mask)
    content = gzip.compress(text.encode(), mtime=0) if packed else text.encode()
    write_whole(target, lambda file: file.write(content), ".release-", f".{format}")


def read(source: "str | os.PathLike[str] | BinaryIO", name: object) -> Content:
    """Read a release in any of the formats; what was changed since it was written is refused."""
    header, values, mask = _read(source, name)
    if header["format"] not in READABLE:
        raise ValueError(f"its format is {header['format']}, this version reads {' and '.join(map(str, READABLE))}")
    stated = header.pop("checksum", None)
    if (stated is not None or header["format"] > 1) and stated != _checksum((header, values, mask)):
        raise ValueError("its content is not that of its checksum: it was changed since it was written")
    return header, values, mask


def is_release(start: bytes) -> bool:
    """Say whether what begins so, unpacked, is to be read as a release; a table of numbers is not."""
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith((ZIP, b"# ", b"{"))


def look(source: "str | os.PathLike[str]") -> tuple[Facts, tuple[int, ...], int]:
    """Return the header of a release in an npz file, the shape of its values, and the bytes of all its arrays.

    The values are not read: they may be many, and the memory that is to hold them another one.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            size = sum(member.file_size for member in archive.infolist())
            with archive.open("release.npy") as file:
                header = json.loads(str(np.lib.format.read_array(file, allow_pickle=False)))
            with archive.open("values.npy") as file:
                return header, npy_header(file, source)[0], size
    except (KeyError, ValueError, zipfile.BadZipFile) as reason:
        raise ValueError(f"`released` must name releases in npz files, got {source}: {reason}") from reason


def _checksum(content: Content) -> str:
    header, values, mask = content
    found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    found.update(f"{values.dtype}{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    found.update(b"" if mask is None or not mask.any() else np.ascontiguousarray(mask).tobytes())
    return found.hexdigest()


def _read(source: "str | os.PathLike[str] | BinaryIO", name: object) -> Content:
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            if file.read(4) == ZIP:
                file.seek(0)
                return _of_npz(file, name)
            file.seek(0)
            content = file.read()
    else:
        content = source.read()
    content = unpacked(content, name)
    if content.startswith(ZIP):
        return _of_npz(io.BytesIO(content), name)
    if content.startswith(NPY):
        raise ValueError("it is a plain array, which says nothing of its noise: release it by `quincunx privatize`")
    text = content.decode("utf-8-sig")
    if text.startswith(TITLE):
        return _of_csv(text)
    if text.lstrip().startswith("{"):
        return _of_json(text)
    raise ValueError("it says nothing of its noise: counts are released by `quincunx privatize`")


def _of_npz(file: BinaryIO, name: object) -> Content:
    with open_npz(file, name) as arrays:
        if "release" not in arrays:
            raise ValueError(f"it holds the arrays {sorted(arrays)} and nothing of their noise")
        try:
            values, header = arrays["values"], json.loads(str(arrays["release"]))
            mask = arrays["mask"] if "mask" in arrays else None
        except ValueError as reason:
            raise ValueError("it holds objects" if "pickle" in str(reason) else str(reason)) from reason
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != values.shape):
        raise ValueError(f"its mask must be booleans of shape {values.shape}")
    return header, values, mask


# Text. An int is written in digits and a double so that it is read back bit for bit.


def _to_json(header: Facts, values: Array, mask: npt.NDArray[np.bool_] | None) -> str:
    shown = {"dtype": str(values.dtype), "shape": list(values.shape), "values": _lists(values, mask)}
    return json.dumps(header | shown, allow_nan=False) + "\n"


def _lists(values: Array, mask: npt.NDArray[np.bool_] | None) -> Json:
    if mask is None:
        return values.tolist()
    return np.where(mask, None, values.astype(object)).tolist()  # type: ignore[call-overload]


def _of_json(text: str) -> Content:
    header = json.loads(text)
    cells = np.array(header.pop("values"), dtype=object)
    return _typed(header, cells if cells.size else cells.reshape(header["shape"]))  # no rows say nothing of columns


def _to_csv(header: Facts, values: Array, mask: npt.NDArray[np.bool_] | None) -> str:
    if not 1 <= values.ndim <= 2 or not values.size:
        found = f"a release of shape {values.shape}: write npz or json"
        raise ValueError(f"a table must have one or two axes and a cell, got {found}")
    if values.dtype.kind == "U" and (values == "").any():
        raise ValueError("a table has no sign for an empty label: write npz or json")
    header = header | {"dtype": str(values.dtype), "shape": list(values.shape)}
    index, columns = _names(_tables.from_json(header.get("axes", ()), values.shape), values.ndim)
    file = io.StringIO()
    file.write(TITLE + json.dumps(header, allow_nan=False) + "\n")
    write = _csv.row_writer(file)
    if columns is not None:
        write(([""] if index is not None else []) + columns)
    cells = _lists(values.reshape(len(values), -1), None if mask is None else mask.reshape(len(values), -1))
    for place, row in enumerate(cells):
        shown = ["" if cell is None else cell if isinstance(cell, str) else repr(cell) for cell in row]
        write(([index[place]] if index is not None else []) + shown)
    return file.getvalue()


def _names(axes: Axes, ndim: int) -> tuple[list[str] | None, list[str] | None]:
    """Return the labels of rows and columns as a table shows them; a labelled column of numbers has a title, too."""
    found: list[list[str] | None] = [
        None if axis.labels is None else [str(label) for label in axis.labels] for axis in axes
    ]
    found += [None] * (2 - len(found))
    if ndim == 1 and found[0] is not None:
        found[1] = ["count"]
    return found[0], found[1]


#: How a cell of a table is read, by the kind of its array.
_READ: dict[str, Callable[[str], object]] = {"i": int, "u": int, "f": float, "b": "True".__eq__, "U": str}


def _of_csv(text: str) -> Content:
    first, _, rest = text.partition("\n")
    header = json.loads(first.removeprefix(TITLE))
    shape = tuple(header["shape"])
    index, columns = _names(_tables.from_json(header.get("axes", ()), shape), len(shape))
    # A masked cell of a table of one column is an empty line.
    rows = [row or [""] for row in csv.reader(io.StringIO(rest, newline=""))]
    if columns is not None and rows.pop(0) != ([""] if index is not None else []) + columns:
        raise ValueError("its columns are not those of its first line")
    if index is not None:
        if [row[0] for row in rows] != index:
            raise ValueError("its rows are not those of its first line")
        rows = [row[1:] for row in rows]
    read = _READ[np.dtype(header["dtype"]).kind]
    cells = [[None if not cell else read(cell) for cell in row] for row in rows]
    if len({len(row) for row in cells}) > 1:
        raise ValueError("its lines are not equally long")
    return _typed(header, np.array(cells, dtype=object).reshape(shape))


def _typed(header: Facts, cells: Array) -> Content:
    """Return cells of Python's numbers, truth values or strings as an array of the kind that the header names."""
    dtype, shape = np.dtype(header.pop("dtype")), tuple(header.pop("shape"))
    if dtype.kind not in _READ or cells.shape != shape:
        raise ValueError(f"it must hold numbers or labels of shape {shape}")
    mask = np.array([cell is None for cell in cells.reshape(-1)], dtype=bool).reshape(shape)
    values = np.where(mask, 0, cells).astype(dtype)
    return header, values, mask if mask.any() else None
