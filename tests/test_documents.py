"""The documents run: every Python block of the README and the docs, every example of a docstring."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import quincunx

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("QUINCUNX_DATA") or ROOT.parent / "shared" / "data")  # what the tutorials fetch
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if fetched := sorted(set(re.findall(r"^>>> .*datasets\.(fetch_\w+)\(", text, flags=re.MULTILINE))):
        monkeypatch.setenv("QUINCUNX_DATA", str(DATA))
        monkeypatch.setitem(sys.modules, "pooch", None)  # no test asks the network
        for name in fetched:
            try:
                getattr(quincunx.datasets, name)()
            except ImportError:
                pytest.skip(f"the files of {name} are not in {DATA}, the folder of QUINCUNX_DATA")
    blocks = FENCE.findall(text)
    names: dict[str, object] = {}
    for block in blocks:
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, str(page), str(page), 0)
            runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0, "".join(said)
            names.update(test.globs)
        else:
            exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_dialogue_of_a_page_ends_where_plain_doctest_ends_it(page):
    for block in FENCE.findall(page.read_text()):
        assert ">>>" not in block or block.endswith("\n\n"), f"an empty line must end:\n{block}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_keywords_in_prose_exist(page):
    """`Class(..., keyword=...)` names arguments that the class has."""
    rooms = [importlib.import_module(f"quincunx.{room}") for room in quincunx._ROOMS]
    classes = {name: getattr(room, name) for room in rooms for name in room.__all__ if name[0].isupper()}
    for name, arguments in re.findall(r"`(?:\w+\.)*([A-Z]\w*)\(([^`]*)\)`", page.read_text()):
        if name in classes:
            parameters = inspect.signature(classes[name]).parameters
            named = re.findall(r"\b([a-z_]\w*)\s*=(?!=)", arguments)
            assert set(named) <= set(parameters), f"`{name}({arguments})`: the arguments are {[*parameters]}"


def modules() -> list[str]:
    found = pkgutil.walk_packages(quincunx.__path__, "quincunx.")
    return [module.name for module in found if not module.name.endswith(("._core", ".__main__"))]


@pytest.mark.parametrize("name", modules())
def test_every_example_of_a_docstring_is_right(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def test_no_page_installs_a_release_before_there_is_one():
    released = re.search(r"^## \[?\d", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    pages = [page.name for page in PAGES if re.search(r"pip install '?quincunx\b(?!\[)", page.read_text())]
    assert released or not pages


def test_the_first_two_shell_blocks_of_the_readme_are_one_line_each():
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    assert all(block.count("\n") == 1 for block in blocks[:2])
    assert "pytest" in blocks[1]
