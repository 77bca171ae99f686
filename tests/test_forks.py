"""A child forked while another thread of its parent is inside a first call is as good as its parent.

What is made once (tables, PyO3's cells) would stay half made in such a child, which would wait for it for ever. In
CPython a fork comes when its thread gets the interpreter, so when the other one lets it go: the calls here follow one
another in C, each after so much work that the forking thread has asked before. Moments are spread over the first 20 ms
of a cold process.
"""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

COLD = """
import collections, functools, operator, os, signal, sys, threading, time
import numpy as np
from quincunx import _core

sys.setswitchinterval(1e-6)
partial = functools.partial
wait, forks = float(sys.argv[1]), int(sys.argv[2])
job = type("Job", (), dict(threads=2, memory_limit=2**30, report=None, checkpoint=None, checkpoint_interval=None))()
edges = np.array([[0, 1], [1, 2]])
calls = [
    partial(_core.plan_independent_sets, ("square", 31, 31, "free"), "count", job),
    partial(_core.plan_independent_sets, (3, edges, None), (-(10**30), 2), job),
    partial(_core.to_decimal, 10**30),
    partial(_core.distances, 3, edges, 2, 2**30),
    partial(_core.check_channel, np.eye(2), 1e-9),
    partial(_core.gaussian_delta, 1.0, 1.0, 1.0),
    partial(_core.simd_level),
    partial(_core.available_memory),
    partial(_core.available_threads),
    partial(_core.to_decimal, "no number"),  # the last: it raises
]

def all_of_them():
    for call in calls:
        try:
            call()
        except TypeError:
            pass
    _core.plan_independent_sets(("square", 22, 22, "free"), "count", job).solve(job)

begun = []
chain = [partial(begun.append, 1)]
for call in calls:
    chain += [partial(sum, range(60_000)), call]  # work that holds the interpreter, then the call

def first_calls():
    try:
        collections.deque(map(operator.call, chain), maxlen=0)
    except TypeError:
        pass

thread = threading.Thread(target=first_calls)
thread.start()
while not begun:
    time.sleep(0)
if wait:  # to sleep at all would let the first moment go
    time.sleep(wait)
children = []
for _ in range(forks):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        all_of_them()
        os._exit(0)
    children.append(child)
    time.sleep(0)
print([os.waitpid(child, 0)[1] for child in children])
thread.join()
"""


def check_cold_processes(output, number):
    for i in range(number):
        wait = 0.02 * max(0, i - number // 4) / number  # a quarter of them at the first moment there is
        ends = output(COLD, str(wait), "3", timeout=120)
        assert ends.strip() == "[0, 0, 0]", f"a child forked after {1000 * wait:.1f} ms hangs or dies: {ends}"


def test_children_forked_within_the_first_calls_of_another_thread_can_call(output):
    check_cold_processes(output, 16)


@pytest.mark.slow
def test_children_of_fifty_cold_processes_can_call(output):
    check_cold_processes(output, 50)


def test_every_global_that_is_made_once_is_made_before_a_fork():
    """Those of the core are in its list; the bindings have none; the queues below the pools are those of rayon."""
    listed = (ROOT / "rust" / "globals.rs").read_text()
    forced = re.findall(r"force\(&([\w:]+)\)", listed)
    found = []
    for path in sorted((ROOT / "rust").rglob("*.rs")):
        text = re.split(r"#\[cfg\(test\)\]", path.read_text())[0]
        cells = re.findall(r"\bstatic (?:mut )?(\w+): [^=;]*?\b(?:Lazy|Once|GILOnce|PyOnce)\w*\b", text)
        assert "thread_local!" in text or not re.search(r"\b(lazy_static!|intern!)", text), path
        parts = list(path.relative_to(ROOT / "rust").with_suffix("").parts)
        is_room = parts[0] in ("factorization", "ldp")  # a crate that is one room
        room = "::".join(parts if is_room else parts[1:]).removesuffix("::mod")
        found += [f"{room}::{name}" for name in cells]
    assert sorted(found) == sorted(forced)
    assert "crossbeam_epoch::default_collector()" in listed
    locked = (ROOT / "Cargo.lock").read_text()
    assert locked.count('name = "crossbeam-epoch"') == 1, "the list names another version than rayon's"


def test_what_objects_make_once_is_made_outside_their_cells():
    """A thread that a fork takes away leaves no cell of an object half made, if it computed before it touched it.

    Other cells belong to one call, whose objects no child can reach.
    """
    of_objects = ["graphs/automorphism/mod.rs", "factorization/released_counts.rs"]
    of_calls = ["operators/diagonal/mod.rs", "operators/square/path.rs"]
    of_calls += ["exact/counting/spanning_trees/mod.rs", "shared/monitor.rs", "factorization/dispersion.rs"]
    core = ROOT / "rust"
    cells = [path for path in sorted(core.rglob("*.rs")) if "OnceLock" in path.read_text()]
    assert [str(path.relative_to(core)) for path in cells] == sorted(of_objects + of_calls)
    for name in of_objects:
        text = (core / name).read_text()
        assert text.count("get_or_init") == len(re.findall(r"get_or_init\(\|\| \w+\)", text)) > 0, name
