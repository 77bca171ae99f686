"""Writes the first page of the reference from the rooms of the package, so that a new room is in it without a line.

It is written when the extension is set up, because autosummary looks for its work among the files that are there then.
Everything in ``reference/`` is made, one page for each public name; nothing in it is kept in the repository.
"""

import importlib
import inspect
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

import quincunx
from quincunx._inference import Parametrized

HEAD = """\
Reference
=========

Every public name, with its arguments, its errors, its cost and an example that the tests run.

.. autosummary::
   :toctree:

"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    text = HEAD + "".join(f"   quincunx.{room}\n" for room in (*quincunx._ROOMS, "errors"))
    page = folder / "index.rst"
    if not page.exists() or page.read_text() != text:
        page.write_text(text)
    wanted = {f"quincunx.{room}.{name}" for room in quincunx._ROOMS for name in names(room)}
    for old in folder.glob("quincunx.*.*.rst"):  # of names that are gone
        if old.stem.count(".") == 2 and old.stem not in wanted and not old.stem.startswith("quincunx.errors"):
            old.unlink()
    scripts = {script.stem for script in Path(app.srcdir, "gallery_src").rglob("*.py")}
    rooms = {script.parent.name for script in Path(app.srcdir, "gallery_src").glob("*/*.py")}
    for old in Path(app.srcdir, "gallery").rglob("*.rst"):  # of examples that are gone or elsewhere now
        if old.stem not in {"index", "sg_execution_times"} and (
            old.stem not in scripts or old.parent.name not in rooms
        ):
            old.unlink()
    app.connect("config-inited", tell_pages)
    app.connect("autodoc-skip-member", is_foreign)
    return {"parallel_read_safe": True}


def is_foreign(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave out what a base class of another library brings, and defaults of parameters, which the signature shows."""
    foreign = str(getattr(member, "__module__", "")).startswith("sklearn.")
    return True if foreign or any(member is default for default in defaults().get(name, ())) else None


@cache
def defaults() -> dict[str, list[object]]:
    """Return the defaults of the parameters of all estimators by name: attributes of their classes, too."""
    found: dict[str, list[object]] = {}
    for room in quincunx._ROOMS:
        for thing in (getattr(importlib.import_module(f"quincunx.{room}"), name) for name in names(room)):
            if isinstance(thing, type) and issubclass(thing, Parametrized):
                for parameter in inspect.signature(thing).parameters.values():
                    found.setdefault(parameter.name, []).append(parameter.default)
    return found


def tell_pages(app: Sphinx, config: Config) -> None:
    """Tell the templates the names under which a room has a class that is indexed in an earlier room."""
    seen: dict[int, str] = {}
    found = []
    for room in quincunx._ROOMS:
        for name in names(room):
            thing = getattr(importlib.import_module(f"quincunx.{room}"), name)
            if isinstance(thing, type) and seen.setdefault(id(thing), room) != room:
                found.append(f"quincunx.{room}.{name}")
    config.autosummary_context = {"again": found}


def names(room: str) -> list[str]:
    """Return the public names of a room."""
    return list(importlib.import_module(f"quincunx.{room}").__all__)
