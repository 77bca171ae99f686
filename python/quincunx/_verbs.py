"""Verbs of the command line made from functions: signatures give the options, docstrings in numpydoc's form their help.

A parameter that may be given by position is an argument, a keyword-only one the option ``--its-name``, required if it
has no default. Types are read from annotations: a `Literal` has choices, a sequence takes several words, a `bool` is a
flag, with ``--no-`` where its default is None. Help may also stand in the annotation, as ``Annotated[int, "help"]``;
``Annotated[int, function]`` is read by the function, and may say after it what that reads. `progress` is not asked for.
"""

import argparse
import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from inspect import Parameter
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin

from quincunx._check import meant, rational
from quincunx._types import Facts

#: What runs, and what makes arguments.
Function: TypeAlias = Callable[..., Any]
#: An option, whether it is given or which words, and what has no effect beside it.
Idle: TypeAlias = tuple[str, bool | tuple[str, ...], tuple[str, ...]]

# Options with other names than the parameters behind them; the `n_` of numbers is left out.
_NAMES = {"memory_limit": "memory", "random_state": "seed", "max_iter": "iterations", "size": "max"}

# What is said of an option where no docstring does.
_COMMON = {
    "json": "print a JSON object",
    "memory_limit": "memory to use, as 6G (default: what is available)",
    "checkpoint_interval": "seconds between two checkpoints",
    "checkpoint": "keep the state of a long job here, and go on from it",
    "out": "where the answer goes (default: standard output)",
    "ledger": "the file",
    "allow_network": "on a network share, where only one host uses it",
    "user": "whose budget it is (default: the one account)",
    "dir": "the folder of the job",
    "notify": "a command to run at the end instead, with DIR and done, stopped or failed",
    "random_state": "makes the draws repeatable",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with the exit status of a bad argument; options are not abbreviated."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # also -1/2 and -1e-3: no option begins so

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and which choice may have been meant."""
        if wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += meant(wrong[1], [choice.strip("'") for choice in wrong[2].split(", ")])
        self.exit(2, f"{self.prog}: {message}\n")


class Verb:
    """A verb: its function, and what signature and docstring do not say.

    Parameters
    ----------
    function : callable or str
        What runs, or where that lies: ``"room.module:name"``, imported when the verb is used.
    help : str
        What it does, in a few words; by default the first sentence of its docstring.
    like : sequence of str
        Functions whose docstrings describe parameters that the function's own does not, and whose keyword-only
        parameters ``**`` of the function stands for.
    takes : dict
        Functions that make arguments out of what the command line says: of a word, or of several options of their own.
    exclusive : sequence of str
        Flags of which one may be given.
    idle : sequence of tuple
        Options that have no effect, which are refused: the name of another, whether that is given or left out, or the
        words for which they have none, and their names.
    """

    def __init__(
        self,
        function: Function | str,
        help: str = "",
        *,
        like: Sequence[str] = (),
        takes: Mapping[str, Function] = MappingProxyType({}),
        exclusive: Sequence[str] = (),
        idle: Sequence[Idle] = (),
    ) -> None:
        self.where, self.like, self.takes, self.exclusive, self.idle = function, like, takes, exclusive, idle
        self.help = help or _sentence(inspect.getdoc(self.function) or "")
        #: The words of the command line, as they were said.
        self.words: Sequence[str] = ()
        #: The verb of the job that this one works on, whose options messages are about as well.
        self.about: Verb | None = None

    @cached_property
    def function(self) -> Function:
        """What runs."""
        return _found(self.where) if isinstance(self.where, str) else self.where

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of which the command line has arguments and options."""
        found: dict[str, Parameter] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind is Parameter.VAR_KEYWORD:
                for other in map(_found, self.like):
                    found |= {n: p for n, p in named(other).items() if p.kind is Parameter.KEYWORD_ONLY}
            else:
                parts = named(self.takes[name]) if name in self.takes else {}
                found |= parts if len(parts) > 1 else {name: parameter}
        found.pop("progress", None)
        return found

    def values(self, options: Facts) -> Facts:
        """Return the arguments of the function for options as argparse has them."""
        self._refuse_idle(options)
        source, out, kept = (str(options.get(name) or "") for name in ("source", "out", "checkpoint"))
        beside = ""
        if os.path.exists(source) and os.path.exists(out) and os.path.samefile(source, out) and os.path.isfile(out):
            beside = "source"
        elif out and kept and os.path.realpath(out) == os.path.realpath(kept):
            beside = "checkpoint"
        if beside:
            raise ValueError(f"`out` must be another file than `{beside}`, which it would take the place of, got {out}")
        values = dict(options)
        for name, make in self.takes.items():
            parts = [part for part in named(make) if part in values]
            values[name] = make(**{part: values.pop(part) for part in parts}) if parts else make(values[name])
        return values

    def _refuse_idle(self, options: Facts) -> None:
        """Refuse options that would have no effect."""
        given = {name for name, value in options.items() if value != self.parameters[name].default}
        for name, beside, idle in self.idle:
            if name not in options:
                continue
            if isinstance(beside, bool):
                applies, where = (name in given) == beside, f"{'with' if beside else 'without'} `{name}`"
            else:
                applies, where = options[name] in beside, f"for {options[name]}"
            if applies and (useless := sorted(given.intersection(idle))):
                raise ValueError(f"`{useless[0]}` must be left out {where}")

    def call(self, values: Facts, *, progress: bool) -> object:
        """Call the function, with a bar if it has one."""
        bar = {"progress": progress} if "progress" in inspect.signature(self.function).parameters else {}
        return self.function(**values, **bar)

    def in_options(self, message: str) -> str:
        """Return the message of an error about arguments of a function, as one about the options they came from."""
        known = (self.about.parameters if self.about else {}) | self.parameters
        names = {name: _option(name) for name, p in known.items() if p.kind is Parameter.KEYWORD_ONLY}
        names |= {"client": names["dask"]} if "dask" in names else {}
        return re.sub(r"`(\w+)`", lambda found: f"`{names.get(found[1], found[1])}`", message)


def filled(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """Give the parser of a verb its arguments and options."""
    text = inspect.getdoc(verb.function) or ""  # none under `python -OO`
    parser.description = " ".join(re.split(r"\n\n(?=[A-Z]\w+\n---)", text)[0].replace("``", "").split())
    parser.set_defaults(verb=verb)
    sources = [verb.function, *verb.takes.values(), *map(_found, verb.like)]
    said = _COMMON | {name: words for source in reversed(sources) for name, words in _described(source).items()}
    group = parser.add_mutually_exclusive_group() if verb.exclusive else parser
    for name, parameter in verb.parameters.items():
        how = read_as(parameter)
        words = how.pop("help", said.get(name, ", ".join(how.get("choices", []))))
        needed = parameter.default is Parameter.empty
        if how["default"] and "(default" not in words:
            words += f" (default {' '.join(default) if isinstance(default := how['default'], tuple) else default})"
        if parameter.kind is Parameter.KEYWORD_ONLY:
            how |= {"flag": _option(name), "dest": name, "required": needed}
        else:
            how |= {"metavar": name if name == "MxN" else name.upper()} | ({} if needed else {"nargs": "?"})
        place = group if name in verb.exclusive else parser
        place.add_argument(how.pop("flag", name), help=words.replace("%", "%%"), **how)


def _found(where: str) -> Function:
    """Return the function at ``"room.module:name"``."""
    module, _, name = where.partition(":")
    found: Function = getattr(importlib.import_module(f"quincunx.{module}"), name)
    return found


def named(function: Function) -> Mapping[str, Parameter]:
    """Return the parameters of a function by name."""
    return inspect.signature(function).parameters


def _option(name: str) -> str:
    return f"--{_NAMES.get(name, name.removeprefix('n_')).replace('_', '-')}"


def read_as(parameter: Parameter) -> Facts:
    """Return what argparse needs to read a parameter of a type."""
    how: Facts = {"default": None if parameter.default is Parameter.empty else parameter.default}
    kinds = parameter.annotation
    if get_origin(kinds) is Annotated:
        kinds, how["help"] = get_args(kinds)
    kinds = get_args(kinds) if get_origin(kinds) in (Union, UnionType) else [kinds]
    kind, origin = kinds[0], get_origin(kinds[0])
    if kind is bool:
        return how | {"action": "store_true" if how["default"] is False else argparse.BooleanOptionalAction}
    if origin is Literal:
        return how | {"choices": list(get_args(kind))}
    if origin is Annotated:
        return how | {"type": get_args(kind)[1], "metavar": (*get_args(kind)[2:], "SIZE")[0]}
    if origin is tuple:
        return how | {"type": get_args(kind)[0], "nargs": len(get_args(kind)), "metavar": ("A", "B")}
    metavar = "FILE" if "PathLike" in str(kinds) else {int: "N", float: "X", Fraction: "X"}.get(kind, "WORD")
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return how | {"nargs": "+", "metavar": metavar}
    return how | {"type": _exactly if kind is Fraction else kind, "metavar": metavar}


def _exactly(text: str) -> Fraction:
    """Read a number such as 2, 1/2 or 0.5, exactly."""
    try:
        return rational(text, "it")
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as 2, 1/2 or 0.5, got {text!r:.60}") from None


def _described(function: Function) -> dict[str, str]:
    """Return the first sentence on each parameter of a docstring, unless that names another function."""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z]|\Z)", inspect.getdoc(function) or "", flags=re.DOTALL)
    found: dict[str, str] = {}
    entry = r"^(\w[^:\n]*)(?: :.*?(?:default[= ](?!False)(\w+))?)?\n((?: +.*\n?)+)"
    for names, default, words in re.findall(entry, section[1] if section else "", flags=re.MULTILINE):
        if not words.strip().startswith("As "):
            text = _sentence(words) + (f" (default {default})" if default else "")
            found |= dict.fromkeys(re.split(r",\s*", names.strip()), text)
    return found


def _sentence(text: str) -> str:
    """Return the first sentence of a docstring as help is written: plain, in lower case, without a full stop."""
    plain = re.sub(r"`| \[\d+\]_", "", " ".join(text.split()))
    return re.sub("^(A |[A-Z][a-z])", lambda start: start[0].lower(), re.split(r"(?<!\.)\.(?:\s|$)", plain)[0])
