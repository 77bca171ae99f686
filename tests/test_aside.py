"""A process that was interrupted in a long call of a compiled library ends: at once, or when that call has."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="interrupts are sent by signal")

CAUGHT = """
import signal, threading, time
import numpy as np
from quincunx._aside import aside
matrix = np.random.default_rng(1).normal(size=(2000, 2000))
for _ in range(2):
    threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    try:
        aside(np.linalg.eigvalsh, matrix + matrix.T)
        time.sleep(1.0)  # a fast machine was done before
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

SLEEPS = """
import time
from quincunx._aside import apart
print("begun", flush=True)
try:
    apart(time.sleep, 60)
except {caught}:
    print("interrupted", flush=True)
"""

FORKED = """
import os, signal, threading, time
from quincunx._aside import apart
threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
try:
    apart(time.sleep, 60)
except KeyboardInterrupt:
    pass
if os.fork():
    os.wait()
    print("the child ended", flush=True)
    os._exit(0)
"""


def test_a_forked_child_waits_for_no_call_of_its_parent():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "the child ended\n")


def test_a_process_that_caught_its_interrupts_ends_when_the_calls_have():
    done = subprocess.run([sys.executable, "-c", CAUGHT], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n" * 2, "")


@pytest.mark.parametrize("caught", ["ZeroDivisionError", "KeyboardInterrupt"])
def test_an_interrupt_that_nobody_catches_and_a_second_one_end_the_process(caught):
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPS.format(caught=caught)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        text=True,
    )
    with child:
        try:
            assert child.stdout.readline() == "begun\n"
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            if caught == "KeyboardInterrupt":
                assert child.stdout.readline() == "interrupted\n"
                time.sleep(0.5)
                assert child.poll() is None  # it waits for its call
                child.send_signal(signal.SIGINT)
            assert child.wait(20) == -signal.SIGINT
        finally:
            child.kill()
