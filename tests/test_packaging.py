"""What is published: the source distribution is the repository, one version everywhere, extras that there are."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import quincunx

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: Files of the repository that a build and its tests do without.
LEFT_OUT = {".gitignore", ".pre-commit-config.yaml"}


def test_the_source_distribution_is_the_repository(tmp_path):
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or shutil.which("maturin")
    if maturin is None or not (ROOT / ".git").exists():
        pytest.skip("needs maturin (`pip install maturin`) and a clone")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    made = subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert made.returncode == 0, made.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        found = {name.partition("/")[2] for name in files.getnames()} - LEFT_OUT
    wanted = {name for name in listed.splitlines() if (ROOT / name).exists()} - LEFT_OUT
    assert found - {"PKG-INFO"} == wanted


def test_one_version_stands_everywhere():
    core = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert quincunx.__version__ == core
    assert f"\nversion: {core}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## \[?{core}|\b{core}, the first release", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_messages_name_extras_that_there_are():
    extras = PROJECT["project"]["optional-dependencies"]
    asked = set()
    for file in (ROOT / "python" / "quincunx").rglob("*.py"):
        asked |= set(re.findall(r'\brequire\("[\w.]+", "([\w-]+)"\)', file.read_text()))
    assert asked
    assert asked <= extras.keys()


def test_the_workflow_of_releases_asks_for_what_there_is():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    parts = set(re.findall(r"^(\w+)\(\) \{", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    for words in re.findall(r"\.ci/run (.+)$", text, re.MULTILINE):
        assert set(words.split()) <= parts
    yaml = pytest.importorskip("yaml").safe_load(text)
    assert set(yaml["jobs"]["publish"]["needs"]) == yaml["jobs"].keys() - {"publish"}
    assert yaml["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert {"linux", "macos", "windows"} == {
        row["name"].partition("-")[0] for row in yaml["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    }
