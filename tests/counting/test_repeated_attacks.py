"""Forks and executors, again and again: the same numbers, and no process that waits for ever."""

import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from quincunx import lattices
from quincunx.counting import count_independent_sets
from quincunx.errors import WorkerError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals as on Unix")

LONG = lattices.square(22, 400)

FORKED = """
import os, random, sys, threading, time
from quincunx import lattices
from quincunx.counting import count_independent_sets
lattice, chance = lattices.square(20, 60), random.Random(int(sys.argv[1]))
expected = count_independent_sets(lattice, threads=2)
worker = threading.Thread(target=lambda: count_independent_sets(lattice, threads=2))
worker.start()  # the pool is at work at the moment of the fork
time.sleep(chance.uniform(0.0, 0.05))
child = os.fork()
if child == 0:
    os._exit(0 if count_independent_sets(lattice, threads=2) == expected else 1)
_, status = os.waitpid(child, 0)
worker.join()
print(os.waitstatus_to_exitcode(status))
"""


def forked(output, repeat):
    assert output(FORKED, str(repeat), timeout=60).split() == ["0"]


def test_a_child_forked_in_the_middle_of_a_job_counts(output):
    forked(output, 0)


@pytest.mark.slow
@pytest.mark.parametrize("repeat", range(50))
def test_fifty_children_forked_at_a_moment_of_chance_count(output, repeat):
    forked(output, repeat)


def killed_worker(state, moments, long_count):
    """Kill a worker of a pool in the middle; what was finished is kept, and the job goes on to the same number."""
    with ProcessPoolExecutor(2) as pool:
        workers = list(pool.map(_process, range(8)))
        timer = threading.Timer(moments.uniform(0.02, 0.3), os.kill, (workers[0], signal.SIGKILL))
        timer.start()
        try:
            found = count_independent_sets(LONG, executor=pool, checkpoint=state, checkpoint_interval=0.02)
            assert found == long_count
        except WorkerError:
            assert not state.with_name("state.lock").exists()
        finally:
            timer.cancel()
            timer.join()
    assert count_independent_sets(LONG, checkpoint=state) == long_count
    assert not state.exists()


def _process(_):
    time.sleep(0.01)
    return os.getpid()


def test_a_job_whose_worker_is_killed_goes_on(tmp_path, long_count):
    killed_worker(tmp_path / "state", random.Random(1), long_count)


@pytest.mark.slow
def test_fifty_jobs_whose_workers_are_killed_go_on(tmp_path, long_count):
    moments = random.Random(2)
    for _ in range(50):
        killed_worker(tmp_path / "state", moments, long_count)
