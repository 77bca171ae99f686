"""Processes that the package starts: they run nothing of the current folder, and end with the one that asked."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quincunx
from quincunx import selftest
from quincunx.graphs import path
from quincunx.leakage import _solver, optimal_mechanism

PACKAGE = Path(quincunx.__file__).parent
PLANTED = ["numpy", "random", "pickle", "scipy", "threading", "subprocess", "hashlib", "sitecustomize", "quincunx"]
#: A program for each file that starts processes.
STARTERS = {
    "leakage/_solver.py": """
from quincunx import graphs
from quincunx.leakage import _solver, optimal_mechanism
_solver._SMALL = 0
assert optimal_mechanism(graphs.path(4), 1.0, method="linear program").tight
""",
    "selftest.py": """
from quincunx import selftest
assert dict(selftest.GROUPS["same bits"]())["vectors: baseline, one thread"]()
""",
}


def run(program, folder, **environment):
    """Run a program that lies in a folder, from the folder in it where files are planted."""
    planted = folder / "planted"
    planted.mkdir()
    for name in PLANTED:
        (planted / f"{name}.py").write_text(f"open({str(folder / 'executed')!r}, 'a').write({name!r} + ' ')")
    (folder / "program.py").write_text(program)
    return [sys.executable, str(folder / "program.py")], {"cwd": planted, "env": os.environ | environment}


def test_processes_are_started_in_one_place_and_every_file_that_does_is_tested():
    ways = re.compile(
        r"import (subprocess|multiprocessing)|from (subprocess|multiprocessing)|ProcessPool"
        r"|\bos\.(exec|spawn|posix_spawn|system|popen|startfile)"
    )
    texts = {file.relative_to(PACKAGE).as_posix(): file.read_text() for file in PACKAGE.rglob("*.py")}
    assert [name for name, text in texts.items() if ways.search(text)] == ["_child.py"]
    assert {name for name, text in texts.items() if "_child.start(" in text} == set(STARTERS)


@pytest.mark.parametrize("found_by", ["installation", "PYTHONPATH", "sys.path"])
@pytest.mark.parametrize("name", STARTERS)
def test_nothing_of_the_current_folder_is_run(tmp_path, name, found_by):
    places = [place for place in sys.path if place and Path(place).is_dir()]
    program, environment = STARTERS[name], {}
    if found_by == "sys.path":
        program = f"import sys\nsys.path[:] = {places!r}\n{program}"
    elif found_by == "PYTHONPATH":
        environment["PYTHONPATH"] = os.pathsep.join(places)
    word, options = run(program, tmp_path, **environment)
    if found_by != "installation":
        word[0] = getattr(sys, "_base_executable", sys.executable)  # knows nothing of a virtual environment
    done = subprocess.run(word, **options, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "executed").exists(), (tmp_path / "executed").read_text()


@pytest.mark.parametrize(
    ("executable", "message"),
    [
        ("/bin/true", "'/bin/true', ended with 0"),
        ("/bin/false", "'/bin/false', ended with 1"),
        ("/no/python", "/no/py"),
    ],
)
def test_an_executable_that_is_no_python_is_said(monkeypatch, executable, message):
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(_solver, "_SMALL", 0)
    with pytest.raises(RuntimeError, match=f"`sys.executable`, .*{message}"):
        optimal_mechanism(path(4), 1.0, method="linear program")
    with pytest.raises(RuntimeError, match=f"`sys.executable`, .*{message}"):
        dict(selftest.GROUPS["same bits"]())["two threads"]()


def test_what_a_process_says_before_it_fails_is_passed_on(monkeypatch):
    monkeypatch.setattr(_solver, "_SMALL", 0)
    monkeypatch.setattr(_solver, "_CHILD", "raise SystemExit('the disk is full')")
    with pytest.raises(RuntimeError, match="ended with 1: the disk is full"):
        optimal_mechanism(path(4), 1.0, method="linear program")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
def test_a_linear_program_ends_with_the_process_that_asked(tmp_path):
    program = """
from quincunx import graphs
from quincunx.leakage import optimal_mechanism
optimal_mechanism(graphs.path(200), 0.1, method="linear program")  # most of a minute
"""
    word, options = run(program, tmp_path)
    with subprocess.Popen(word, **options) as parent:
        children, end = [], time.monotonic() + 120
        while not children and time.monotonic() < end:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
            time.sleep(0.01)
        time.sleep(2)  # it may be starting, or be at work
        assert parent.poll() is None
        parent.kill()
    (child,) = children
    while Path(f"/proc/{child}").exists() and "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < end, "the process outlives its parent"
        time.sleep(0.01)
