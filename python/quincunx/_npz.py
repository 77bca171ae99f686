"""Files of arrays: npz archives that are there wholly or not at all."""

import os
import tempfile
from typing import Any, BinaryIO

import numpy as np


def write_npz(target: str | os.PathLike[str] | BinaryIO, arrays: dict[str, Any], prefix: str) -> None:
    """Write arrays to an npz file; to a path wholly or not at all, by way of a file beside it of the given prefix."""
    if not isinstance(target, (str, os.PathLike)):
        np.savez(target, **arrays)
        return
    path = os.fspath(target)
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=prefix, suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
