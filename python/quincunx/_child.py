"""Processes of this Python: they find the packages that this process found, and nothing in the current folder.

A command that a user named is run as it is.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen, SubprocessError, run
from typing import Any

__all__ = ["PIPE", "command", "failure", "start"]

#: Where this package lies, for a process that found it in its current folder.
_HOME = str(Path(__file__).parents[1])


def start(program: str, *arguments: str, **options: Any) -> "Popen[str]":
    """Start a Python that runs a program with arguments; options are those of `subprocess.Popen`.

    Its modules come from the same places, in the same order. The current folder, which ``python -c`` looks into first,
    is none of them.
    """
    places = [place for place in sys.path if place]
    places += [] if _HOME in places else [_HOME]
    word = [sys.executable or "", "-P", "-c", f"import sys; sys.path[:] = {places!r}; {program}", *arguments]
    try:
        return Popen(word, **options)
    except OSError as error:
        raise RuntimeError(f"no Python could be started by `sys.executable`, {sys.executable!r}: {error}") from None


def command(words: Sequence[str], seconds: float) -> None:
    """Run a command that a user named, without a shell; OSError says that it could not be run, or ended badly."""
    try:
        run(words, check=True, timeout=seconds)
    except SubprocessError as error:
        raise OSError(str(error)) from error


def failure(child: "Popen[str]", output: str) -> RuntimeError:
    """Return the error for a process that ended without an answer, with the end of its output."""
    why = f": {output.strip()[-300:]}" if output.strip() else ""
    return RuntimeError(f"a process of `sys.executable`, {sys.executable!r}, ended with {child.returncode}{why}")
