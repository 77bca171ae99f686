"""Processes of this Python: they find the packages that this process found, and nothing in the current folder."""

import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

__all__ = ["PIPE", "failure", "start"]

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


def failure(child: "Popen[str]", told: str) -> RuntimeError:
    """Return the error for a process that ended without an answer, with the end of what it told."""
    why = f": {told.strip()[-300:]}" if told.strip() else ""
    return RuntimeError(f"a process of `sys.executable`, {sys.executable!r}, ended with {child.returncode}{why}")
