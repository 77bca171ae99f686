"""Files that are there wholly or not at all: npz archives of arrays, and whatever else a function writes.

What is read is unpacked only where memory has room for it: a few megabytes can hold gigabytes of zeros.
"""

import contextlib
import gzip
import io
import json
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from quincunx import _check
from quincunx._types import Facts
from quincunx.errors import TooLargeError

GZIP, ZIP, NPY = b"\x1f\x8b", b"PK\x03\x04", b"\x93NUMPY"
#: Bytes that a byte of text takes, at the least, until it is numbers: itself, its characters, words and lines of them.
_OF_TEXT = 6
#: Bytes that a byte of deflate can stand for, at the most.
_OF_PACKED = 1032
#: Bytes that are unpacked at a time where only their number is wanted.
_PIECE = 1 << 20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def unpacked(content: bytes, name: object) -> bytes:
    """Return what gzip packed, if memory has room for it, and anything else as it is.

    What may be too large is unpacked twice, and the first time nothing is kept.
    """
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            start = file.peek(8)[:8]
            factor = 1 if start.startswith((ZIP, NPY)) else _OF_TEXT
            limit = _check.available_memory()
            if _OF_PACKED * len(content) * factor > limit:
                size = 0
                while piece := len(file.read(_PIECE)):
                    size += piece
                    _check.room(size * factor, f"{name}: what it unpacks to", limit)
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as reason:
        raise ValueError(f"{name}: it is no whole gzip file ({reason})") from reason


@contextmanager
def open_npz(source: str | os.PathLike[str] | BinaryIO, name: object) -> Iterator[NpzFile]:
    """Yield the arrays of an npz archive, none of them read, if memory has room for all; nothing is unpickled."""
    with ExitStack() as opened:
        file = opened.enter_context(open(source, "rb")) if isinstance(source, (str, os.PathLike)) else source
        start = file.read(len(ZIP))
        file.seek(-len(start), os.SEEK_CUR)
        if start != ZIP:
            raise ValueError(f"{name}: it is no archive of arrays")
        arrays = opened.enter_context(np.load(file, allow_pickle=False))
        refuse_large(arrays.zip, name)
        for member in arrays.zip.infolist():
            with arrays.zip.open(member) as packed:
                check_npy(packed, member.file_size, f"{name}: {member.filename}")
        yield arrays


@contextmanager
def open_own(
    source: str | os.PathLike[str] | BinaryIO, entry: str, version: int, what: str
) -> Iterator[tuple[Facts, NpzFile]]:
    """Yield the header, which an entry holds as JSON, and the arrays of a file of ours; errors name the file."""
    name = getattr(source, "name", source)
    try:
        with open_npz(source, name) as arrays:
            header = json.loads(str(arrays[entry]))
            if header["format"] != version:
                raise ValueError(f"its format is {header['format']}, this version reads {version}")
            yield header, arrays
    except (OSError, TooLargeError):
        raise
    except Exception as reason:
        found = str(reason).removeprefix(f"{name}: ")
        raise ValueError(f"`source` must be a {what} written by quincunx, got {name}: {found}") from reason


def refuse_large(archive: zipfile.ZipFile, name: object) -> None:
    """Refuse an archive whose members memory has no room for; none gives more than the size it is stated with."""
    _check.room(sum(member.file_size for member in archive.infolist()), f"{name}: what it unpacks to")


def npy_header(file: IO[bytes], name: object) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return the shape and the type of an array, which is not read."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"{name} has a header of the unknown version {version}")
    shape, _, dtype = _HEADERS[version](file)
    return shape, dtype


def check_npy(file: IO[bytes], size: int, name: object) -> None:
    """Refuse an array that is said to be larger than its bytes: NumPy takes its memory before it reads them."""
    shape, dtype = npy_header(file, name)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"{name} is cut short: it is to hold {math.prod(shape) * dtype.itemsize} bytes, got {size}")


def write_npz(target: str | os.PathLike[str] | BinaryIO, arrays: Mapping[str, npt.ArrayLike], prefix: str) -> None:
    """Write arrays to an npz file; to a path wholly or not at all, by way of a file beside it of the given prefix."""
    write_whole(target, lambda file: np.savez(file, **arrays), prefix, ".npz")  # type: ignore[arg-type]


def write_whole(
    target: str | os.PathLike[str] | BinaryIO, write: Callable[[BinaryIO], object], prefix: str, suffix: str
) -> None:
    """Let a function write a file; to a path by way of a file beside it, that takes its place when it is whole.

    What is no file (a pipe, a terminal, ``/dev/null``) is written into as it stands: a file in its place would take it
    from everybody else. A link to a file gives way to the new one, and what it names is left alone. The content is on
    the disk before it has its name, and the name before this returns.
    """
    if not isinstance(target, (str, os.PathLike)):
        write(target)
        return
    path = os.fspath(target)
    if os.path.exists(path) and not os.path.isfile(path):
        whole = io.BytesIO()  # devices need not say where they are, which an archive asks
        write(whole)
        with open(path, "wb") as file:
            file.write(whole.getbuffer())
        return
    folder = os.path.dirname(path) or "."
    partial = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}{suffix}")
    try:
        file = open(partial, "xb")  # with the rights of every new file: the system asks the mask itself
        try:
            with file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # interrupted when it had its name already
                os.unlink(partial)
            raise
    except OSError as error:  # of the file that was asked for
        raise OSError(error.errno, error.strerror or str(error), path) from error
    _flush(folder)


def _flush(folder: str) -> None:
    """Have a folder's names on the disk, where the system takes that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
