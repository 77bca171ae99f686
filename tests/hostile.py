"""Calls of every public function, class and method with arguments that nobody should give; one process of such calls.

    python tests/hostile.py --first 0 --calls 5000 --journal FILE

What is public is found by introspection of each ``__all__``; a valid call of each comes from the example in its
docstring, in which one or two arguments are then replaced. Call number i is the same in every run, so
``--first i --calls 1 --tell`` repeats it. A call may return, or raise what is documented: TypeError, ValueError, an
error of the package, or what the section Raises names. The journal gets one line before each call, so that a crash is
known by its last line, and one for each finding. `tests/test_hostile_calls.py` runs this under a limit of memory and
looks for deaths.
"""

import argparse
import ast
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import itertools
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import quincunx
from quincunx import errors

MEMORY = 3 << 30  # of addresses, above what the imports take
IMPORTED_BEFORE = ("matplotlib.pyplot", "networkx", "pandas", "sklearn.linear_model", "xarray", "arviz_base")
IMPORTED_BEFORE += ("tqdm", "yaml", "dask.array")
IMPORTED_BEFORE += ("scipy.sparse.linalg", "scipy.optimize", "scipy.signal", "scipy.stats")
DEAF = 2.0  # seconds of processor time between a signal and the end of a call


class Stopped(BaseException):
    """The time of a call is up."""


class Refused(ValueError):
    """Raised by a hostile argument itself."""


# Arguments by kind.


class Liar:
    """Says that it is a number, an array and a sequence, and is none."""

    def __len__(self) -> int:
        return 2**62

    def __index__(self) -> int:
        raise Refused("no index")

    def __float__(self) -> float:
        raise Refused("no float")

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise Refused("no array")

    def __getitem__(self, place: object) -> Any:
        raise IndexError("nothing here") if place else Refused("no items")


def nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def frozen() -> Any:
    """Return an array that cannot be written."""
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    return array


NUMBERS: list[Any] = [
    *(0, 1, 2, 3, -1, 7, 100, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 2**128, 10**30, -(10**30), 10**5000),
    *(
        0.5,
        1.0,
        2.5,
        -0.0,
        -1.5,
        1e-300,
        5e-324,
        1e308,
        1e16,
        float("nan"),
        float("inf"),
        float("-inf"),
        0.1,
        1e-9,
        50.0,
    ),
    *(True, False, 1j, Fraction(1, 3), Fraction(10**400, 3), Decimal("NaN"), Decimal("1e999"), Decimal("0.5")),
    *(
        np.int64(3),
        np.uint64(2**64 - 1),
        np.float16(0.5),
        np.float64("nan"),
        np.bool_(True),
        np.datetime64("2020-01-01"),
    ),
]
WORDS: list[Any] = [
    *(
        "",
        "abc",
        "4-8-8",
        "square",
        "torus",
        "auto",
        "l1",
        "1/2",
        "nan",
        "1e400",
        "\0",
        "../x",
        "é\ud800",
        "a" * 10_000,
    ),
    *(b"", b"\xff\x00", Path("nowhere/at/all"), Path("."), Path("socket")),
]
ARRAYS: list[Callable[[], Any]] = [
    lambda: np.array(0.0),
    lambda: np.zeros(0),
    lambda: np.zeros((0, 3), dtype=int),
    lambda: np.zeros((3, 0)),
    lambda: np.zeros((2, 2, 2, 2)),
    lambda: np.zeros((2, 0, 3), dtype=int),
    lambda: np.arange(5),
    lambda: np.arange(4).reshape(2, 2),
    lambda: np.arange(12)[::-3],
    lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    frozen,
    lambda: np.array([[0.5, 0.5], [0.25, 0.75]]),
    lambda: np.array([1.0, np.nan]),
    lambda: np.array([np.inf, 1.0]),
    lambda: np.array([[-1, 2**62], [2**62, 2**62]]),
    lambda: np.array([2**64 - 1], dtype=np.uint64),
    lambda: np.array([1, None, "x"], dtype=object),
    lambda: np.array([10**30, 1], dtype=object),
    lambda: np.array(["a", "b"]),
    lambda: np.array([1 + 1j]),
    lambda: np.array([True, False]),
    lambda: np.array([1, 2], dtype=np.int8),
    lambda: np.array([1, 2], dtype=">i4"),
    lambda: np.array(["2020"], dtype="M8[D]"),
    lambda: np.zeros(2, dtype=[("a", int), ("b", float)]),
    lambda: np.ma.masked_array([1, 2, 3], [0, 1, 0]),
    lambda: np.broadcast_to(np.int64(1), (10**6, 10**6)),
    lambda: np.broadcast_to(np.float64(0.5), (10**12,)),
    lambda: np.matrix([[1, 2], [3, 4]]),
]
OTHERS: list[Callable[[], Any]] = [
    lambda: None,
    lambda: Ellipsis,
    lambda: NotImplemented,
    lambda: [],
    lambda: (),
    lambda: {},
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: [1],
    lambda: [[1]],
    lambda: [[1, 2], [3]],
    lambda: [None],
    lambda: ["a", "b"],
    lambda: [float("nan"), 1],
    lambda: [10**400],
    lambda: nested(100),
    lambda: range(10**9),
    lambda: range(10**12),
    lambda: [[[]]],
    lambda: (0, 10**400),
    lambda: {"a": 10**400},
    lambda: iter([1, 2, 3]),
    lambda: (x for x in "ab"),
    lambda: zip([0], [1], strict=True),
    lambda: slice(None),
    lambda: object(),
    lambda: int,
    lambda: Liar(),
    lambda: lambda *args, **named: None,
    lambda: lambda: None,
    lambda: print,
    lambda: np.random.default_rng(1),
    lambda: np.random.SeedSequence(1),
    lambda: io.BytesIO(b"PK\x03\x04"),
    lambda: io.StringIO("1,2\n3"),
    lambda: types.SimpleNamespace(values=1, alpha=2),
    # Graphs.
    lambda: (3, [(0, 1), (1, 2)]),
    lambda: (0, []),
    lambda: (1, [(0, 0)]),
    lambda: (2, [(0, 1), (0, 1)]),
    lambda: (3, [(0, 5)]),
    lambda: (-1, []),
    lambda: (2.5, []),
    lambda: (10**6, []),
    lambda: (4 * 10**9, []),
    lambda: (2**70, []),
    lambda: (30, list(itertools.combinations(range(30), 2))),
    lambda: quincunx.lattices.square(3, 3),
    lambda: quincunx.lattices.square(1, 1, "torus", multigraph=True),
    lambda: quincunx.lattices.king(300, 300),
    lambda: quincunx.graphs.path(20_000),
    lambda: quincunx.graphs.hamming(12, 2),
    lambda: __import__("networkx").DiGraph([(0, 1)]),
    lambda: __import__("networkx").Graph([("a", "b"), ("b", "b")]),
    lambda: __import__("scipy.sparse").sparse.csr_array(np.eye(3)),
    lambda: __import__("scipy.sparse").sparse.csr_array((10**6, 10**6), dtype=int),
    lambda: __import__("pandas").DataFrame({"a": [1, 2], "b": [3, 4]}),
    lambda: __import__("pandas").Series([1.5, None]),
]


def hostile(dice: random.Random) -> Any:
    """Return any argument of any kind."""
    kind = dice.randrange(4)
    if kind == 0:
        return dice.choice(NUMBERS)
    if kind == 1:
        return dice.choice(WORDS)
    return dice.choice(ARRAYS if kind == 2 else OTHERS)()


# What is public, with a valid call of each.


class Target:
    """A public callable, with the arguments of an example where there is one."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.name, self.function, self.arguments = name, function, arguments
        try:
            kinds = inspect.signature(function).parameters.values()
        except (ValueError, TypeError):
            kinds = []
        self.parameters = [p for p in kinds if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    def documented(self) -> tuple[type[BaseException], ...]:
        """Return what the call may raise."""
        owner = getattr(self.function, "__self__", None)
        texts = [inspect.getdoc(self.function) or "", inspect.getdoc(type(owner)) or ""]
        if "As in `fit`." in texts[0] and hasattr(owner, "fit"):
            texts.append(inspect.getdoc(owner.fit) or "")
        words = {word for text in texts for word in raised(text)}
        named = {word: getattr(__builtins__, word, None) or getattr(errors, word, None) for word in words}
        return (
            *(TypeError, ValueError, ImportError, Refused),
            *(kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.InternalError),
            *(kind for kind in public_errors()),
            *(kind for kind in named.values() if isinstance(kind, type) and issubclass(kind, BaseException)),
        )


def raised(text: str) -> list[str]:
    """Return the names under Raises."""
    section = re.search(r"\nRaises\n-+\n(.*?)(?:\n\n[A-Z][a-z ]+\n-+\n|\Z)", text, flags=re.DOTALL)
    return (
        re.findall(r"\b[A-Z]\w+\b", " ".join(re.findall(r"^\S.*", section[1], flags=re.MULTILINE))) if section else []
    )


@functools.cache
def public_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that rooms have in ``__all__``."""
    return tuple(thing for _, thing in public_names() if isinstance(thing, type) and issubclass(thing, BaseException))


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield every public name with what it means, and those of public submodules."""
    for room in quincunx._ROOMS:
        module = importlib.import_module(f"quincunx.{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType):
                for inner in getattr(thing, "__all__", ()):
                    yield f"{room}.{name}.{inner}", getattr(thing, inner)
            else:
                yield f"{room}.{name}", thing


class Recorder(ast.NodeTransformer):
    """Turns each call ``f(x)`` of an example into ``__record(f, x)``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Wrap one call."""
        self.generic_visit(node)
        name = ast.copy_location(ast.Name("__record", ast.Load()), node)
        return ast.copy_location(ast.Call(name, [node.func, *node.args], node.keywords), node)


def examples_of(text: str, record: Callable[..., Any], seconds: float) -> None:
    """Run the examples of a docstring with their calls recorded, as far as the time goes."""
    names: dict[str, Any] = {"__record": record, "__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception, Stopped), limit(seconds):
        for example in doctest.DocTestParser().get_examples(text):
            if example.options.get(doctest.SKIP):
                continue
            tree = ast.fix_missing_locations(Recorder().visit(ast.parse(example.source, mode="single")))
            with contextlib.suppress(Exception):
                exec(compile(tree, "<example>", "single"), names)


def examples(seconds: float = 0.4) -> tuple[dict[str, list[Target]], dict[type, Any]]:
    """Return the calls of each public name and its methods in the examples, and an object of each public class."""
    public = dict(public_names())
    classes = {thing: name for name, thing in public.items() if inspect.isclass(thing)}
    functions = {id(thing): name for name, thing in public.items()}
    found: dict[str, list[Target]] = {name: [] for name, thing in public.items() if callable(thing)}
    instances: dict[type, Any] = {}

    def record(function: Any, *args: Any, **named: Any) -> Any:
        name = functions.get(id(function))
        owner = getattr(function, "__self__", None)
        if name is None and owner is not None:
            kind = owner if inspect.isclass(owner) else type(owner)
            if kind in classes and not function.__name__.startswith("_"):
                name = f"{classes[kind]}.{function.__name__}"
        if name is not None:
            try:
                bound = dict(inspect.signature(function).bind(*args, **named).arguments)
            except (TypeError, ValueError):
                bound = {}
            bound = {key: value for key, value in bound.items() if key not in ("args", "kwargs", "named")}
            found.setdefault(".".join(name.split(".")[:2]), []).append(Target(name, function, bound))
        result = function(*args, **named)
        if type(result) in classes:
            instances.setdefault(type(result), result)
        return result

    for name, thing in public.items():
        if callable(thing):
            examples_of(inspect.getdoc(thing) or "", record, seconds)
            found[name].append(Target(name, thing, {}))
    return found, instances


def targets() -> list[list[Target]]:
    """Return for each public name its own calls and those of its methods."""
    found, instances = examples()
    classes = {thing: name for name, thing in public_names() if inspect.isclass(thing)}
    for kind, instance in instances.items():
        for method, member in inspect.getmembers(instance, inspect.isroutine):
            if not method.startswith("_") and (getattr(member, "__module__", "") or "").startswith("quincunx"):
                found[classes[kind]].append(Target(f"{classes[kind]}.{method}", member, {}))
    return [found[name] for name in sorted(found)]


# The calls.


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise Stopped in whatever runs longer, again and again until it ends."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        disarm()


def disarm() -> None:
    """End the time limit; also where a signal came too late to be caught inside: the next is a whole limit away."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


def described(value: Any) -> str:
    """Write an argument shortly, without trusting it."""
    try:
        if isinstance(value, int) and abs(value) > 10**40:
            return f"int of {value.bit_length()} bits"
        if isinstance(value, np.ndarray):
            return f"array{value.shape} of {value.dtype}"
        return f"{type(value).__name__} {value!r:.60}"
    except BaseException as error:
        return f"{type(value).__name__} ({type(error).__name__} in repr)"


def arguments_of(target: Target, dice: random.Random) -> dict[str, Any]:
    """Replace one or two arguments of a valid call, and give what is missing."""
    chosen = dict(target.arguments)
    names = [p.name for p in target.parameters]
    replaced = dice.sample(names, min(len(names), 1 + (dice.random() < 0.3))) if names else []
    for parameter in target.parameters:
        if parameter.name in replaced or (parameter.default is parameter.empty and parameter.name not in chosen):
            chosen[parameter.name] = hostile(dice)
    return chosen


def call(target: Target, arguments: dict[str, Any], seconds: float) -> str | None:
    """Make one call; return what is wrong with its end, or None."""
    first = [p.name for p in target.parameters if p.kind is p.POSITIONAL_ONLY]
    args = [arguments.pop(name) for name in first if name in arguments]
    start = time.process_time()
    wrong = None
    try:
        with limit(seconds):
            result = target.function(*args, **arguments)
            if isinstance(result, Iterator):
                next(result, None)
    except Stopped:
        pass
    except target.documented() as error:
        if not str(error).strip():
            wrong = f"{type(error).__name__} without a sentence"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = frames[-1]
        if all(frame.filename != "<example>" for frame in frames):  # a function of the caller
            wrong = f"{type(error).__name__}: {error!s:.200} ({Path(where.filename).name}:{where.lineno})"
    spent = time.process_time() - start
    if wrong is None and spent > seconds + DEAF:
        wrong = f"deaf to signals for {spent:.1f} s of processor time"
    return wrong


def main() -> None:
    """Make the calls that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--step", type=int, default=1, help="make every STEP-th call")
    parser.add_argument("--seconds", type=float, default=0.05, help="time of one call")
    parser.add_argument("--journal", default="/dev/stdout")
    parser.add_argument("--tell", action="store_true", help="say each call with its arguments")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for module in IMPORTED_BEFORE:  # an import that is stopped half-way leaves ruins of other packages
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    sys.modules["matplotlib"].use("agg")
    sys.modules["pooch"] = None  # type: ignore[assignment]  # nothing is fetched from anywhere
    os.chdir(tempfile.mkdtemp(prefix="hostile-"))
    socket.socket(socket.AF_UNIX).bind("socket")  # what is no file, and is missed by nobody
    groups = targets()
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26,) * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    time.sleep(1.1)  # the memory that is left is asked once a second
    journal = os.open(options.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    journal = os.dup2(journal, 200)  # hostile whole numbers may be taken for descriptors
    quiet = open(os.devnull, "w")
    pyplot = sys.modules.get("matplotlib.pyplot")
    for i in range(options.first, options.first + options.calls, options.step):
        dice = random.Random(f"hostile {i}")
        group = groups[i % len(groups)]
        target = dice.choice(group)
        arguments = arguments_of(target, dice)
        told = f"{target.name}({', '.join(f'{name}={described(value)}' for name, value in arguments.items())})"
        os.write(journal, (json.dumps({"call": i, "is": told}) + "\n").encode())
        if options.tell:
            print(told, file=sys.stderr)
        with contextlib.redirect_stdout(quiet):
            try:
                wrong = call(target, arguments, options.seconds)
            except Stopped:
                wrong = None
            disarm()
        if wrong:
            os.write(journal, (json.dumps({"finding": i, "is": told, "wrong": wrong}) + "\n").encode())
        if i % 512 == 0 and pyplot is not None:
            pyplot.close("all")
    os.write(journal, (json.dumps({"done": len(groups)}) + "\n").encode())


if __name__ == "__main__":
    main()
