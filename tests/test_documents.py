"""The documents run: every Python block of the README and the docs, every example of a docstring."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import quincunx

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(?:python|pycon)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
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


def modules() -> list[str]:
    found = pkgutil.walk_packages(quincunx.__path__, "quincunx.")
    return [module.name for module in found if not module.name.endswith(("._core", ".__main__"))]


@pytest.mark.parametrize("name", modules())
def test_every_example_of_a_docstring_is_right(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def test_the_first_two_shell_blocks_of_the_readme_are_one_line_each():
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    assert all(block.count("\n") == 1 for block in blocks[:2])
    assert "pytest" in blocks[1]
