"""What the tests of all rooms share: the known answers, and programs run in a fresh interpreter."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A shell that starts the tests in its background has them ignore interrupts; the tests of interrupts need them heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def known():
    """Return a reader of ``tests/known/<name>.json``."""
    return lambda name: json.loads((ROOT / "tests" / "known" / f"{name}.json").read_text())


@pytest.fixture
def python():
    """Return a function that starts a Python program; programs that still run at the end of the test are killed."""
    started = []

    def start(program, *arguments, **how):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [sys.executable, *(["-c", program] if program else []), *arguments]
        # OpenBLAS starts a thread per core at import, which no test needs.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | how.pop("env", {})
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
