"""Docstrings put together from parts that several functions share, so that `help` shows each of them whole."""

import textwrap
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def assembled(**parts: str) -> Callable[[T], T]:
    """Return a decorator that puts a part in the place of each line ``{name}`` of a docstring, at its indentation."""

    def assemble(thing: T) -> T:
        if thing.__doc__:  # there is none under `python -OO`
            lines = [_part(line, parts) for line in thing.__doc__.split("\n")]
            thing.__doc__ = "\n".join(lines)
        return thing

    return assemble


def _part(line: str, parts: dict[str, str]) -> str:
    """Return a line, or the part it names."""
    name = line.strip()
    if not (name.startswith("{") and name.endswith("}") and name[1:-1] in parts):
        return line
    return textwrap.indent(textwrap.dedent(parts[name[1:-1]]).strip("\n"), line[: line.index("{")])
