"""Linear programs by HiGHS: large ones in a process of their own, where an interrupt and a time limit end them.

The solver runs in compiled code that hears no signal. A program that may last is therefore solved by a child that is
killed when this process is interrupted, or the time is over, and ends by itself when this process does: a pipe from
here closes. It reads its program from a file and writes what it found to another, both in a folder of this process
alone.
"""

import math
import os
import pickle
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quincunx import _child
from quincunx._types import Facts, Floats

# Entries of the matrices of a program that is solved in tens of milliseconds.
_SMALL = 3000
# Seconds between two looks at a child, at the most.
_LOOK = 0.02


class Deadline:
    """When the time is over that the caller allows; never for None."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Return the seconds left, or raise if there are none."""
        if self._seconds is None:
            return None
        if (seconds := self._end - time.monotonic()) <= 0:
            raise TimeoutError(f"the linear program did not end within {self._seconds} seconds")
        return seconds


@dataclass(frozen=True)
class Found:
    """The values of the variables, and the multipliers of the inequalities (at most zero) and of the equations."""

    x: Floats
    marginals: Floats
    prices: Floats


def linear_program(end: Deadline, **program: Any) -> Found:
    """Minimize ``c @ x`` over ``x >= 0`` with the constraints of `scipy.optimize.linprog`."""
    matrices = [matrix for matrix in (program.get("A_ub"), program.get("A_eq")) if matrix is not None]
    entries = sum(matrix.nnz if hasattr(matrix, "nnz") else matrix.size for matrix in matrices)
    if entries <= _SMALL or not sys.executable:
        found = _solve(program, end.left())
    else:
        found = _solve_in_child(program, end)
    if isinstance(found, Found):
        return found
    end.left()
    raise found


def _solve(program: Facts, seconds: float | None) -> Found | Exception:
    from scipy.optimize import linprog

    options = program.pop("options", {}) | ({} if seconds is None else {"time_limit": seconds})
    try:
        found = linprog(**program, method="highs", options=options)
    except MemoryError as error:
        return error
    if found.x is None:
        return ArithmeticError(f"the linear program was not solved: {found.message}")
    return Found(*(np.asarray(part) for part in (found.x, found.ineqlin.marginals, found.eqlin.marginals)))


def _solve_in_child(program: Facts, end: Deadline) -> Found | Exception:
    with tempfile.TemporaryDirectory(prefix="quincunx-") as folder:
        Path(folder, "program").write_bytes(pickle.dumps((program, end.left())))
        with open(Path(folder, "told"), "w+", encoding="utf-8", errors="replace") as told:
            # A session of its own: an interrupt of the terminal is answered here, and once.
            child = _child.start(_CHILD, folder, stdin=_child.PIPE, stderr=told, start_new_session=True)
            try:
                pause = 0.001
                while child.poll() is None:
                    end.left()
                    time.sleep(pause)
                    pause = min(2 * pause, _LOOK)
            finally:
                child.kill()
                child.communicate()
            try:
                found: Found | Exception = pickle.loads(Path(folder, "found").read_bytes())
            except (OSError, EOFError, pickle.UnpicklingError):
                told.seek(0)
                return _child.failure(child, told.read())
        return found


_CHILD = f"import sys, {__name__} as solver; solver._answer(sys.argv[1])"


def _answer(folder: str) -> None:
    """Solve the program of a folder: what the child does, as long as somebody may ask."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    found = _solve(*pickle.loads(Path(folder, "program").read_bytes()))
    Path(folder, "found").write_bytes(pickle.dumps(found))
