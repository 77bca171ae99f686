"""Docstrings and signatures put together from parts that functions share, so that `help` shows each of them whole.

A line ``{name}`` of a docstring stands for a part: one of the room's, given to `assembled`, or one of `COMMON`. A
parameter ``**options: Unpack[SomeTypedDict]`` stands for the names of the dictionary, all optional.
"""

import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, get_args

T = TypeVar("T")

#: Sections that functions of many rooms have in common. More lines may follow one.
COMMON = {
    "domain": """
    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.
    """,
    "unpacked": """
    TooLargeError
        If what it holds does not fit into the available memory; nothing is unpacked then.
    OSError
        If it cannot be read.
    """,
    "axes": """
    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """,
    "several_axes": """
    Returns
    -------
    list of matplotlib.axes.Axes
        The axes drawn on, in their order.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """,
}


def assembled(**parts: str) -> Callable[[T], T]:
    """Return a decorator that puts a part in the place of each line ``{name}`` of a docstring, at its indentation.

    Of a function it assembles the signature as well. On a class it serves the methods and properties of the class too.
    """
    known = COMMON | parts

    def assemble(thing: T) -> T:
        for documented in (thing, *(vars(thing).values() if isinstance(thing, type) else ())):
            _fill(getattr(documented, "__func__", documented), known)
        if isinstance(thing, FunctionType) and thing.__code__.co_flags & inspect.CO_VARKEYWORDS:
            _name_options(thing)
        return thing

    return assemble


#: For docstrings that take their parts from `COMMON` alone.
sections = assembled()


def _fill(thing: object, parts: dict[str, str]) -> None:
    """Put the parts into the docstring of a class, a function or a property."""
    if isinstance(text := getattr(thing, "__doc__", None), str) and "{" in text:  # none under `python -OO`
        filled = _filled(text, parts)
        if filled != text:
            thing.__doc__ = filled


def _filled(text: str, parts: dict[str, str]) -> str:
    """Return a text with the parts that its lines name; a part may name others."""
    return "\n".join(_part(line, parts) for line in text.split("\n"))


def _part(line: str, parts: dict[str, str]) -> str:
    """Return a line, or the part it names."""
    name = line.strip()
    if not (name.startswith("{") and name.endswith("}") and name[1:-1] in parts):
        return line
    part = _filled(textwrap.dedent(parts[name[1:-1]]).strip("\n"), parts)
    return textwrap.indent(part, line[: line.index("{")])


def _name_options(function: FunctionType) -> None:
    """Set the signature that has the names of a typed dictionary in the place of ``**options``."""
    signature = inspect.signature(function)
    *named, options = signature.parameters.values()
    known = get_args(options.annotation)[0].__annotations__
    by_name = inspect.Parameter.KEYWORD_ONLY
    parts = [inspect.Parameter(name, by_name, default=None, annotation=kind) for name, kind in known.items()]
    function.__signature__ = signature.replace(parameters=[*named, *parts])  # type: ignore[attr-defined]
