"""What the tests of all rooms share: the known answers, and programs run in a fresh interpreter."""

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

# Before NumPy is loaded: waiting threads of OpenBLAS keep a core busy, seconds for a small matrix on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Compiled files are kept, whatever the shell says: without them each of two hundred programs compiles what it imports.
sys.dont_write_bytecode = False

ROOT = Path(__file__).parent.parent


def pytest_collection_finish():
    """Take what is loaded by now out of the garbage collector's walks: a twentieth of the time of all tests."""
    gc.collect()
    gc.freeze()


# A shell that starts the tests in its background has them ignore interrupts; the tests of interrupts need them heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_figure_stays():
    """Close what a test has drawn: matplotlib warns at the twenty-first figure, in whichever test that is."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def known():
    """Return a reader of ``tests/known/<name>.json``."""
    return lambda name: json.loads((ROOT / "tests" / "known" / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def long_count():
    """The count of a job of a second, `LONG` in several files, made without a stop."""
    from quincunx import counting, lattices

    return counting.count_independent_sets(lattices.square(22, 400))


@pytest.fixture
def python():
    """Return a function that starts a Python program; programs that still run at the end of the test are killed."""
    started = []

    def start(program, *arguments, **how):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [sys.executable, *(["-c", program] if program else []), *arguments]
        environment = os.environ | how.pop("env", {})
        started.append(subprocess.Popen(command, **(pipes | how), env=environment))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def output(python):
    """Return a function that runs a Python program to its end and returns what it printed."""

    def run(program, *arguments, timeout=60, **how):
        process = python(program, *arguments, **how)
        printed, complaints = process.communicate(timeout=timeout)
        assert process.returncode == 0, complaints
        return printed

    return run


@pytest.fixture
def experiment(monkeypatch, tmp_path, capsys):
    """Return a function that runs an experiment of the benches as a program would, and returns what it printed."""
    folder = ROOT / "benches" / "experiments"

    def run(name, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        with warnings.catch_warnings(action="default"):
            runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line in this process: status, standard output, standard error."""

    from quincunx import cli

    def run(*arguments):
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run
