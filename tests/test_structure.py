"""The house keeps its rules: imports go one way, docstrings are complete, the stub fits, nothing optional is loaded."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests import mutants

import quincunx
from quincunx import _core

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "quincunx"
RUST = ROOT / "rust"
BINDINGS = RUST / "bindings"
CRATES = [file.parent for file in sorted(RUST.glob("*/Cargo.toml")) if file.parent != BINDINGS]

# What each room may import (docs/structure.md).
ROOMS = {
    "distributions": set(),
    "privacy": {"distributions"},
    "factorization": {"distributions", "privacy"},
    "ldp": {"distributions", "privacy"},
    "posterior": {"distributions", "privacy"},
    "graphs": set(),
    "leakage": {"graphs", "privacy"},
    "lattices": {"graphs"},
    "counting": {"graphs", "lattices"},
    "entropy": {"lattices", "counting"},
    "spectra": {"graphs", "lattices"},
    "datasets": set(),
}
# Rooms that stand on NumPy and on the kernels of others.
WITHOUT_KERNELS = {"spectra", "datasets"}
SHARED_CORE = {"error", "inference", "memory", "monitor", "parallel", "stream", "numeric", "Error", "Result"}
SHARED_PYTHON = {
    "_aside",
    "_categories",
    "_check",
    "_child",
    "_core",
    "_csv",
    "_docs",
    "_executors",
    "_html",
    "_inference",
    "_job",
    "_npz",
    "_optional",
    "_progress",
    "_rng",
    "_sklearn",
    "_summary",
    "_tables",
    "_types",
}
SHARED_PYTHON |= {"_units", "errors"}
SHARED_BINDINGS = {"arrays", "boundary", "inference", "job"}
# What of a room below a room's own functions take: a class, the draws of a fresh generator.
CLASSES_BELOW = {"leakage": {"automorphisms"}, "posterior": {"privacy"}}
OPTIONAL = {"networkx", "matplotlib", "tqdm", "sklearn", "xarray", "arviz_base", "distributed", "pandas", "scipy"}
OPTIONAL |= {"pooch"}


def allowed(room: str) -> set[str]:
    """Every room a room may import, through others too."""
    direct = ROOMS[room]
    return direct | {far for near in direct for far in allowed(near)} | {room}


def rust_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.rs"))


def core_files() -> list[Path]:
    return [path for crate in CRATES for path in rust_files(crate)]


def room_of(path: Path, base: Path) -> str:
    return path.relative_to(base).parts[0].removesuffix(".rs").removesuffix(".py")


def core_room_of(path: Path) -> str:
    """The room of a file of the core: the crates `graphs`, `factorization` and `ldp` are one room each."""
    crate = room_of(path, RUST)
    return crate if crate in ROOMS else room_of(path, RUST / crate)


def test_files_of_tests_have_names_of_their_own():
    """Folders of tests are no packages: two files of one name would be one module."""
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_rooms_of_the_core_import_only_what_they_may():
    for path in core_files():
        room = core_room_of(path)
        text = path.read_text()
        assert "pyo3" not in text, f"{path} knows of Python"
        if room not in ROOMS:
            continue
        code = re.split(r"#\[cfg\(test\)\]", text)[0]
        used = set(re.findall(r"\bcrate::(\w+)", code))
        for group in re.findall(r"\bcrate::\{([^}]*)\}", code):
            used |= {re.match(r"\s*(\w+)", part).group(1) for part in group.split(",") if part.strip()}
        crate = RUST / room  # of a crate that is one room, its modules and types are its own
        own = {file.stem for file in crate.iterdir()} if crate.is_dir() else set()
        own |= set(re.findall(r"pub (?:struct|trait) (\w+)", (crate / "lib.rs").read_text())) if own else set()
        assert used <= allowed(room) | SHARED_CORE | own, f"{path} imports {used - allowed(room) - SHARED_CORE}"


def test_bindings_use_their_room_and_the_door_only():
    for path in rust_files(BINDINGS):
        room = room_of(path, BINDINGS)
        if room in {"lib", *SHARED_BINDINGS}:
            continue
        used = set(re.findall(r"\bcrate::(\w+)", path.read_text()))
        assert used <= SHARED_BINDINGS | CLASSES_BELOW.get(room, set()), f"{path} imports {used}"
        rooms = set(re.findall(r"\bquincunx::(\w+)", path.read_text())) & set(ROOMS)
        assert not rooms or any(rooms <= allowed(own) for own in rooms), f"{path} serves several rooms: {rooms}"


def test_what_is_shared_knows_no_room():
    """Neither in the core nor in Python; only the command line and the package itself know all."""
    for path in core_files():
        if core_room_of(path) in SHARED_CORE:
            used = set(re.findall(r"\bcrate::(\w+)", path.read_text()))
            assert not used & set(ROOMS), f"{path} imports {used & set(ROOMS)}"
    for path in sorted(PACKAGE.rglob("*.py")):
        if room_of(path, PACKAGE) in SHARED_PYTHON:
            for module, _ in python_imports(path):
                parts = module.split(".")
                assert parts[0] != "quincunx" or len(parts) == 1 or parts[1] in SHARED_PYTHON | {"__version__"}, path


def test_only_the_boundary_releases_the_interpreter():
    for path in rust_files(BINDINGS):
        if path.name != "boundary.rs":
            code = path.read_text()
            assert not re.search(r"\.detach\(|Python::attach|check_signals", code), path


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text())


@cache
def python_imports(path: Path) -> list[tuple[str, bool]]:
    """Modules a file imports, and whether at its top level."""
    found = []
    tree = parsed(path)

    def visit(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            if isinstance(child, ast.Import):
                found.extend((name.name, top) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert all(name.name != "*" for name in child.names), f"{path}: a star import"
                module = child.module or ""
                found.extend((f"{module}.{name.name}" if module == "quincunx" else module, top) for name in child.names)
            visit(child, top and not inside and not types)

    visit(tree, True)
    return found


def test_rooms_of_the_python_face_import_only_what_they_may():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(path, PACKAGE)
        for module, top in python_imports(path):
            parts = module.split(".")
            if parts[0] == "quincunx" and len(parts) > 1 and room in ROOMS:
                assert parts[1] in allowed(room) | SHARED_PYTHON, f"{path} imports {module}"
            if room != "__main__":
                assert parts[:2] != ["quincunx", "cli"], f"{path} imports the command line"
            if top:
                assert parts[0] not in OPTIONAL, f"{path} imports {module} at its top level"


def neighbors() -> dict[str, set[str]]:
    """Which files each file of the face imports, at any place; what a package hands on is taken from its file."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if path.name == "__init__.py" else parts)] = path
    taken = {
        module: [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)]
        for module, path in modules.items()
    }
    assert all(node.level == 0 for nodes in taken.values() for node in nodes), "a relative import"

    def defining(module: str, name: str) -> str | None:
        if f"{module}.{name}" in modules:
            return f"{module}.{name}"
        if module in modules and modules[module].name == "__init__.py":
            for node in taken[module]:
                if node.module != module and any((alias.asname or alias.name) == name for alias in node.names):
                    return defining(node.module, name)
        return module if module in modules else None

    found = {
        module: {defining(node.module, alias.name) for node in nodes for alias in node.names} - {module, None}
        for module, nodes in taken.items()
    }
    for module, path in modules.items():
        plain = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import))
        found[module] |= {alias.name for node in plain for alias in node.names} & modules.keys() - {module}
    return found


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of at least two in which each reaches each other."""

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    after = {name: reached(name) for name in graph}
    together = {
        frozenset(other for other in after[name] if name in after[other]) for name in graph if name in after[name]
    }
    return {circle for circle in together if len(circle) > 1}


# Files of the Python face that import one another, in functions and for type checkers too, and why.
CIRCLES = {
    # A method of `Channel` makes the `Symmetrization`, which has the channel before and after.
    frozenset({"quincunx.leakage._channel", "quincunx.leakage._symmetrization"}),
}


def test_files_of_the_python_face_do_not_import_one_another():
    graph = neighbors()
    assert {"quincunx.privacy._guarantee", "quincunx._check"} <= graph["quincunx.leakage._levels"]  # by its package too
    assert circles(graph) == CIRCLES
    graph["quincunx.lattices._picture"].add("quincunx.lattices._draw")
    planted = {f"quincunx.lattices.{name}" for name in ("_picture", "_lattice", "_draw")}
    assert circles(graph) == {*CIRCLES, frozenset(planted)}


def test_importing_the_package_and_its_rooms_loads_nothing_optional():
    rooms = "; ".join(f"import quincunx.{room}" for room in quincunx._ROOMS)
    script = f"import sys, quincunx; {rooms}; print(*(m for m in {sorted(OPTIONAL)} if m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


def public_modules() -> list[ModuleType]:
    return [importlib.import_module(f"quincunx.{room}") for room in quincunx._ROOMS]


def public_objects() -> list[tuple[str, object]]:
    return [
        (f"{module.__name__}.{name}", getattr(module, name)) for module in public_modules() for name in module.__all__
    ]


@pytest.mark.parametrize(("name", "thing"), public_objects())
def test_every_public_docstring_is_complete(name, thing):
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    text = inspect.getdoc(thing)
    assert text, f"{name} has no docstring"
    first = text.splitlines()[0]
    assert first.endswith("."), f"{name}: the first line must be a sentence"
    if inspect.isfunction(thing):
        for section in ("Returns", "Raises", "Examples"):
            assert f"\n{section}\n---" in text, f"{name} has no section {section}"
        parameters = [p for p in inspect.signature(thing).parameters if not p.startswith("_")]
        for parameter in parameters:
            assert re.search(rf"\b{parameter}\b", text), f"{name} does not describe `{parameter}`"


def public_methods() -> list[tuple[str, object]]:
    """Methods and properties of public classes that are ours."""
    found = {}
    for name, thing in public_objects():
        if not inspect.isclass(thing):
            continue
        for method, member in inspect.getmembers_static(thing):
            plain = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if not method.startswith("_") and inspect.isfunction(plain) and plain.__module__.startswith("quincunx"):
                found[f"{name}.{method}"] = member if isinstance(member, property) else plain
    return sorted(found.items(), key=lambda item: item[0])


def test_every_public_method_is_described():
    for name, method in public_methods():
        text = inspect.getdoc(method)
        assert text, f"{name} has no docstring"
        assert text.splitlines()[0].endswith((".", ":")), f"{name}: the first line must be a sentence"
        if isinstance(method, property):
            continue
        signature = inspect.signature(method)
        for parameter in signature.parameters:
            if parameter not in ("self", "cls") and not parameter.startswith("_"):
                assert re.search(rf"\b{parameter}\b", text), f"{name} does not describe `{parameter}`"
        if signature.return_annotation not in (None, "None"):
            assert re.search(r"\n(Returns|Yields)\n---", text), f"{name} does not say what it returns"


def test_shared_parts_of_docstrings_are_filled_in():
    for name, thing in [*public_objects(), *public_methods()]:
        text = inspect.getdoc(thing) or ""
        left = re.search(r"^ *\{[a-z_]+\}$", text, flags=re.MULTILINE)
        assert left is None, f"{name}: {left} is no part of a docstring"


def test_signatures_say_what_is_taken_and_stay_short():
    """`graph` is a GraphLike and a boundary one of three words, in `help` as for type checkers."""
    seen = set()
    for name, thing in [*public_objects(), *public_methods()]:
        if not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        try:
            parameters = inspect.signature(thing).parameters
        except ValueError:  # of what has a constructor in the core
            continue
        assert "_NestedSequence" not in str(parameters), f"{name}: what is array_like takes three lines of help"
        if (graph := parameters.get("graph")) is not None and name.split(".")[1] in ("counting", "spectra"):
            assert graph.annotation in ("GraphLike", "'GraphLike'"), name
            seen.add("graph")
        boundary = parameters.get("boundary")
        if boundary is not None and name.split(".")[1] == "lattices":
            assert str(boundary.annotation) in ("typing.Literal['free', 'cylinder', 'torus']", "Boundary"), name
            seen.add("boundary")
    assert seen == {"graph", "boundary"}


def test_public_exceptions_say_where_users_find_them():
    for name, thing in public_objects():
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            assert f"{thing.__module__}.{thing.__name__}" == name
            assert pickle.loads(pickle.dumps(thing)) is thing


def test_references_are_listed_where_they_are_cited_and_have_a_year():
    rooms = set()
    for name, thing in [*public_objects(), *public_methods()]:
        text = inspect.getdoc(thing) or ""
        listed = dict(re.findall(r"^ *\.\. \[(\d+)\](.*(?:\n +.+)*)", text, flags=re.MULTILINE))
        cited = set(re.findall(r"\[(\d+)\]_", text))
        assert cited <= listed.keys(), f"{name} cites {cited - listed.keys()}, which its References do not list"
        for number, reference in listed.items():
            assert re.search(r"\b(1[89]|20)\d\d\b|\bA\d{6}\b", reference), f"{name}: reference {number} has no year"
            rooms.add(name.split(".")[1])
    assert rooms == set(quincunx._ROOMS), f"{set(quincunx._ROOMS) - rooms} name no source"


def test_every_room_lists_its_names_and_has_its_page():
    for module in public_modules():
        public = {
            name for name in vars(module) if not name.startswith("_") and not inspect.ismodule(vars(module)[name])
        }
        assert public <= set(module.__all__), f"{module.__name__} leaks {public - set(module.__all__)}"
        room = module.__name__.removeprefix("quincunx.")
        assert (ROOT / "docs" / f"{room}.md").is_file(), f"docs/{room}.md is missing"
        assert (ROOT / "tests" / room).is_dir(), f"tests/{room} is missing"
        if room not in WITHOUT_KERNELS:
            assert [path for path in core_files() if core_room_of(path) == room], f"the core has no {room}"


def test_every_file_opens_by_saying_what_it_is_for():
    for path in rust_files(RUST) + rust_files(ROOT / "benches") + rust_files(ROOT / "tests"):
        assert path.read_text().startswith("//! "), path
    for folder in (PACKAGE, ROOT / "tests", ROOT / "benches"):
        for path in folder.rglob("*.py"):
            if path.name != "conftest.py" and path.stat().st_size:
                assert re.match(r'(#!.*\n)?"""', path.read_text()), path


def test_the_stub_lists_the_names_of_the_module():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    exported = {name for name in dir(_core) if not name.startswith("_")}
    assert named - {name for name in named if name.startswith("_")} == exported


def test_every_exported_name_has_one_line_in_the_module():
    text = (BINDINGS / "lib.rs").read_text()
    for name in dir(_core):
        if not name.startswith("_"):
            assert len(re.findall(rf"\b{name}\b", text)) == 1, name


def test_no_module_is_public_by_accident():
    for module in pkgutil.iter_modules([str(PACKAGE)]):
        assert module.name.startswith("_") or module.name in {*quincunx._ROOMS, "cli", "errors", "selftest"}, (
            module.name
        )


def test_every_fault_that_is_planted_has_its_place():
    assert mutants.misplaced() == []


def test_numpy_is_not_changed_by_the_import():
    assert np.geterr() == {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def test_only_the_registry_and_the_kernels_know_lattices_by_a_table_of_names():
    rows = _core.named_lattices()
    known = {name for row in rows for name in (row.name, *row.aliases)}
    tables = set()
    for file in set(PACKAGE.rglob("*.py")) - set(PACKAGE.rglob("__init__.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            inside = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            if len(known & {part.value for part in inside if isinstance(part, ast.Constant)}) > 1:
                tables.add(file)
    for file in (ROOT / "rust").rglob("*.rs"):
        source = file.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        if len(known & set(re.findall(r'"([^"]*)"', source))) > 3:
            tables.add(file)
    registry, engines = sorted(tables)
    assert (registry.name, engines.name) == ("named.rs", "registry.rs")
    counted = re.findall(r'^    \w+, "(.+?)": ', engines.read_text(encoding="utf-8"), re.MULTILINE)
    assert {row.name for row in rows if row.kernel} == set(counted)


def rust_imports(folder: Path) -> dict[str, set[str]]:
    """Return the modules of a crate, each with those that its code names by `crate::` and `super::` paths."""
    modules = {"::".join(path.relative_to(folder).with_suffix("").parts): path for path in rust_files(folder)}
    modules = {name.removesuffix("::mod").removesuffix("lib"): path for name, path in modules.items()}
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8")).partition("#[cfg(test)]\nmod tests")[0]
        paths = set(re.findall(r"\b(?:crate|super)(?:::\w+)+", code))
        for use in re.findall(r"\buse ((?:crate|self|super)::[^;]+);", code):
            trees = [re.sub(r"\s+", "", use)]
            while trees:
                head, brace, rest = trees.pop().partition("{")
                if not brace:
                    paths.add(head)
                    continue
                depth, part = 0, ""
                for letter in rest[:-1] + ",":
                    depth += (letter == "{") - (letter == "}")
                    if letter == "," and not depth:
                        trees.append(head + part)
                        part = ""
                    else:
                        part += letter
        imports[name] = set()
        for parts in (path.split("::") for path in paths):
            at = [] if parts[0] == "crate" else name.split("::")
            while parts and parts[0] in {"crate", "self", "super"}:
                at = at[:-1] if parts.pop(0) == "super" else at
            at += parts
            while at and "::".join(at) not in modules:
                at.pop()
            imports[name] |= {"::".join(at)} - {name, ""}
    return imports


def test_files_of_a_crate_import_one_another_in_one_direction():
    """But for rings, whose vectors are compiled where their levels are chosen."""
    left = {}
    for crate in (*CRATES, BINDINGS):
        imports = rust_imports(crate)
        while free := [name for name, used in imports.items() if not used & set(imports)]:
            for name in free:
                del imports[name]
        while free := [name for name in imports if not any(name in used for used in imports.values())]:
            for name in free:
                del imports[name]
        left[crate.name] = set(imports)
    assert left.pop("shared") == {"numeric::dispatch", "numeric::ring"}
    assert not any(left.values()), left
