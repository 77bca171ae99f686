"""Files that are there wholly or not at all: npz archives of arrays, and whatever else a function writes."""

import contextlib
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

GZIP = b"\x1f\x8b"


def unpacked(content: bytes, name: object) -> bytes:
    """Return what gzip packed, and anything else as it is."""
    if not content.startswith(GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as reason:
        raise ValueError(f"{name}: it is no whole gzip file ({reason})") from reason


def write_npz(target: str | os.PathLike[str] | BinaryIO, arrays: dict[str, Any], prefix: str) -> None:
    """Write arrays to an npz file; to a path wholly or not at all, by way of a file beside it of the given prefix."""
    write_whole(target, lambda file: np.savez(file, **arrays), prefix, ".npz")


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
    file = open(partial, "xb")  # with the rights of every new file: the system asks the mask itself
    try:
        with file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    _flush(folder)


def _flush(folder: str) -> None:
    """Have a folder's names on the disk, where the system takes that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
