"""The boundary between Python and the core: processes, threads, memory, time of a call, copies, long integers."""

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from quincunx import _core, graphs, lattices
from quincunx.counting import (
    count_independent_sets,
    count_matchings,
    count_spanning_trees,
    estimate_cost,
    hard_core,
    independence_polynomial,
    independent_set_table,
)
from quincunx.errors import CheckpointError, InternalError, TooLargeError

TASKS = Path("/proc/self/task")
# Large enough to be shared out on the pool, small enough for milliseconds.
POOLED = lattices.square(22, 22)


def pooled_count():
    """Count on the pool, two threads."""
    return count_independent_sets(POOLED, threads=2) % 7


def pool_threads():
    """Name the threads of the pools of this process."""
    names = []
    for task in TASKS.iterdir():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:
            continue
        if name.startswith("quincunx-"):
            names.append((task.name, name))
    return names


# Other threads.

TOGETHER = """
import os, threading, time
from quincunx import counting, lattices
from quincunx.graphs import grid

begun, end = threading.Event(), threading.Event()

def progress(done, total):
    begun.set()
    if end.is_set():
        raise EOFError

def long():
    try:
        counting.count_independent_sets(lattices.square(24, 4000), progress=progress)
    except EOFError:
        print("stopped")

thread = threading.Thread(target=long)
thread.start()
begun.wait()
print(counting.count_independent_sets(lattices.square(17, 17)) % 1000)  # planned on a pool
print(counting.count_independent_sets(grid(9, 9)) % 1000)
print(counting.count_matchings(grid(7, 7)) % 1000)
print(counting.count_spanning_trees(grid(12, 12)) % 1000)
print(counting.estimate_cost(grid(9, 9)).engine)
print(thread.is_alive())
end.set()
thread.join()
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_small_count_is_answered_while_another_thread_has_a_long_one(output, threads):
    grid = graphs.grid
    together = output(TOGETHER, env={"OMP_NUM_THREADS": threads}).split("\n")
    counts = [count_independent_sets(lattices.square(17, 17)), count_independent_sets(grid(9, 9))]
    counts += [count_matchings(grid(7, 7)), count_spanning_trees(grid(12, 12))]
    expected = [str(count % 1000) for count in counts]
    assert together[:4] == expected
    assert together[5:7] == ["True", "stopped"]


# Other processes.


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_child_counts_after_its_parent_has_used_the_pool(method):
    expected = pooled_count()
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    child = context.Process(target=answer_into, args=(answers,))
    child.start()
    child.join(timeout=10)
    hangs = child.is_alive()
    if hangs:
        child.kill()
        child.join()
    assert not hangs, "the child waits for threads that are its parent's"
    assert child.exitcode == 0
    assert answers.get() == expected == pooled_count()


def answer_into(answers):
    """Count in a child process."""
    answers.put(pooled_count())


@pytest.mark.filterwarnings("ignore")
def test_a_child_forked_in_the_middle_of_other_threads_counts_can_count():
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    expected, stop = pooled_count(), threading.Event()

    def keep_counting():
        while not stop.is_set():
            pooled_count()

    with ThreadPoolExecutor(2) as busy:
        for _ in range(2):
            busy.submit(keep_counting)
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    os._exit(pooled_count())
                deadline = time.monotonic() + 10
                while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
                    time.sleep(0.005)
                if done == (0, 0):
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                assert done != (0, 0), "the child hangs"
                assert os.waitstatus_to_exitcode(done[1]) == expected
        finally:
            stop.set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_counts_on_every_backend(backend):
    joblib = pytest.importorskip("joblib")
    expected = pooled_count()
    with joblib.Parallel(n_jobs=2, backend=backend, timeout=60) as parallel:
        assert (
            parallel(joblib.delayed(count_independent_sets)(POOLED, threads=2) for _ in range(3))
            == [count_independent_sets(POOLED)] * 3
        )
    assert pooled_count() == expected


WORKERS = """
import os
os.environ.pop("QUINCUNX_NUM_THREADS", None)
from loky import get_reusable_executor
from quincunx import _core
if __name__ == "__main__":
    executor = get_reusable_executor(max_workers=2, env={"OMP_NUM_THREADS": "1"})
    print(executor.submit(_core.available_threads).result(timeout=60))
    executor.shutdown()
"""


def test_a_worker_that_is_told_one_thread_uses_one(output, tmp_path):
    pytest.importorskip("loky")
    (tmp_path / "workers.py").write_text(WORKERS)
    assert output(None, str(tmp_path / "workers.py"), env={"OMP_NUM_THREADS": "2"}).strip() == "1"


# Threads.


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted in Linux's /proc")
def test_four_python_threads_counting_at_once_share_one_pool():
    expected = pooled_count()
    before = pool_threads()
    assert sorted(name for _, name in before).count("quincunx-1") >= 1
    seen, start = set(), threading.Barrier(4)

    def several():
        start.wait()
        answers = [pooled_count() for _ in range(6)]
        seen.update(pool_threads())
        return answers

    with ThreadPoolExecutor(4) as four:
        answers = [future.result() for future in [four.submit(several) for _ in range(4)]]
    assert answers == [[expected] * 6] * 4
    added = seen - set(before)
    assert {name for _, name in added} <= {"quincunx-0"}, "pools of several threads are shared"
    assert len(added) <= 3, "each caller plans on a thread of its own"


def test_other_python_threads_go_on_while_one_counts():
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    other = threading.Thread(target=tick)
    other.start()
    start = time.perf_counter()
    count_independent_sets(lattices.square(22, 60), threads=1)
    elapsed = time.perf_counter() - start
    done.set()
    other.join()
    assert len([t for t in ticks if t > start]) > min(5, elapsed / 0.05), "the interpreter was not let go"


def test_an_array_that_changes_during_a_count_does_not_change_the_count():
    graph = lattices.square(16, 100).graph
    edges = graph.edges.copy()
    heard = threading.Event()
    with ThreadPoolExecutor(1) as one:
        future = one.submit(
            count_independent_sets, (graph.num_vertices, edges), progress=lambda done, total: heard.set()
        )
        heard.wait(timeout=60)
        edges[:] = 0
        assert future.result() == count_independent_sets(lattices.square(16, 100))


# Memory and time of small calls.


def resident():
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("call", "times"),
    [
        (lambda: count_independent_sets(lattices.square(4, 4)), 100_000),
        (lambda: count_independent_sets((4, [(0, 1), (1, 2)])), 5_000),
        (lambda: independence_polynomial(lattices.four_eight_eight(1, 1)), 5_000),
        (lambda: hard_core(lattices.king(3, 3), -7), 5_000),
        (lambda: hard_core(lattices.king(3, 3), 0.5, mode="log"), 5_000),
        (lambda: estimate_cost(lattices.square(40, 40), memory_limit=2**50), 60),
        (lambda: refusal(), 300),
        (lambda: count_independent_sets(lattices.square(18, 18), threads=2), 50),
    ],
    ids=range(8),
)
def test_memory_does_not_grow_with_calls(call, times):
    def growth(calls):
        before = resident()
        for _ in range(calls):
            call()
        return resident() - before

    growth(max(times // 20, 20))
    # What is lost at each call grows in every round; the kernel that makes one huge page of 512 small ones does not.
    assert any(growth(times) < 1_000_000 for _ in range(3))


def refusal():
    try:
        count_independent_sets(lattices.square(40, 40), memory_limit=1)
    except TooLargeError:
        pass


def test_a_call_on_a_small_named_lattice_costs_microseconds():
    lattice = lattices.square(2, 2)
    rounds = []
    for _ in range(30):
        start = time.perf_counter()
        for _ in range(200):
            count_independent_sets(lattice)
        rounds.append((time.perf_counter() - start) / 200)
    # The strict figure, 10 microseconds, is the bench's to show; here a busy or slow machine is allowed for.
    print(f"a small call costs {1e6 * min(rounds):.1f} microseconds")
    assert min(rounds) < 60e-6


# Copies.

VALUES = [
    graphs.Graph(3, [(0, 1), (1, 2), (2, 2)], labels=["a", ("b", 1), None]),
    graphs.cycle(5),
    lattices.square(3, 4, pbc=(True, False)),
    lattices.four_eight_eight(2, 3, "cylinder"),
    lattices.triangulated_grid(2, 3, p=0.5, rng=5),
    lattices.UnitCell.named("kagome"),
    estimate_cost(lattices.square(5, 5)),
    hard_core(lattices.square(3, 3), 0.5, mode="float"),
    hard_core(lattices.square(3, 3), 0.5),
    count_independent_sets(lattices.square(20, 20)),
    independence_polynomial(lattices.square(5, 5)),
    independent_set_table("4-8-8", 3, compare="thesis"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_survive_pickling_and_copying(value):
    copies = [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, 6)]
    copies += [copy.copy(value), copy.deepcopy(value), cloudpickle.loads(cloudpickle.dumps(value))]
    for found in copies:
        assert type(found) is type(value)
        assert found == value
        if hasattr(value, "num_edges"):
            assert found.edges.tolist() == value.edges.tolist()
            assert not found.edges.flags.writeable
            assert count_independent_sets(found) == count_independent_sets(value)


@pytest.mark.parametrize("error", [TooLargeError("too much", 5, 3), CheckpointError("no"), InternalError("no")])
def test_errors_survive_pickling(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))


# Long integers.


def test_integers_beyond_4300_digits_go_both_ways():
    count = count_independent_sets(lattices.square(8, 4000))
    assert count.bit_length() == 19201
    with pytest.raises(ValueError, match="limit"):
        str(count)
    text = _core.to_decimal(count)
    assert len(text) == 5780
    chunks = [text[max(0, end - 4000) : end] for end in range(len(text), 0, -4000)]
    assert sum(int(chunk) * 10 ** (4000 * place) for place, chunk in enumerate(chunks)) == count
    huge = 10**6000 + 7
    assert hard_core((1, []), huge) == huge + 1
    assert hard_core((1, []), -huge) == 1 - huge
    assert json.loads(json.dumps(independent_set_table("square", 2).to_dict()))["values"]["2,2"] == "7"


def test_the_decimal_digits_of_an_integer():
    for number in (0, 9, 10, 2**64 - 1, 2**64, 10**19, 10**4299):
        assert _core.to_decimal(number) == str(number)
    for number, error in [(-1, (OverflowError, ValueError)), (1.5, TypeError), ("1", TypeError), (None, TypeError)]:
        with pytest.raises(error):
            _core.to_decimal(number)


# Imports.

OPTIONAL = [
    *["arviz", "arviz_base", "dask", "distributed", "graphillion", "h5py", "joblib", "loky", "matplotlib", "mpi4py"],
    *["networkx", "oxidd", "pandas", "sklearn", "tqdm", "xarray"],
]


@pytest.mark.parametrize(
    "program",
    [
        "import quincunx",
        "import quincunx.counting, quincunx.lattices, quincunx.graphs, quincunx.cli",
        "from quincunx import counting, lattices; counting.count_independent_sets(lattices.square(4, 4))",
        "from quincunx import cli; cli.main(['count', 'independent-sets', '4-8-8', '3x3', '--json'])",
    ],
)
def test_nothing_optional_is_loaded(output, program):
    loaded = output(f"{program}\nimport sys, json; print(); print(json.dumps(list(sys.modules)))").splitlines()[-1]
    assert set(json.loads(loaded)) & set(OPTIONAL) == set()
    # SciPy is required, but it takes longer to import than all the rest: only where a function needs it.
    assert "scipy" not in json.loads(loaded)


def test_importing_costs_hardly_more_than_importing_numpy(output):
    program = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    times = {"numpy": [], "quincunx": [], "quincunx.counting": []}
    for _ in range(3):
        for module, taken in times.items():
            taken.append(float(output(program.format(module))))
    numpy, alone, room = map(min, times.values())
    print(f"import quincunx takes {alone / numpy:.2f} and its counting room {room / numpy:.2f} times as long as numpy")
    # The strict figure, 1.5, is the bench's to show.
    assert alone < 2.5 * numpy
    assert room < 3.5 * numpy


# Arrays that the core reads while another thread writes into them.

RNG = np.random.default_rng(0)
VALUES, ONES = RNG.integers(0, 3, 300_000), np.ones(300_000)


def filled(call, out):
    """Return what a call writes into an array."""
    call(out)
    return out


LENT = {
    "points": (
        lambda x: filled(lambda out: _core.distribution_values("skellam", [ONES, ONES], "logpmf", x, out, 2), ONES * 0),
        VALUES * 1.0,
    ),
    "parameters": (
        lambda x: filled(lambda out: _core.distribution_draws("bessel", [ONES, x], (1, 2), out, 2), VALUES.copy()),
        ONES / 3,
    ),
    "marginals": (
        lambda x: filled(
            lambda out: _core.two_piece_poisson_log_marginals([x, ONES, ONES / 2], out, 2), np.empty((300_000, 2))
        ),
        VALUES * 1.0,
    ),
    "counts": (lambda x: _core.ReleasedCounts(x, 300, 1000, ONES[:1] / 2).rows, VALUES),
    "a channel": (lambda x: _core.check_channel(x, 1e-9), np.full((500, 500), 1 / 500)),
    "its information": (lambda x: _core.mutual_information(x, ONES[:500] / 500), np.full((500, 500), 1 / 500)),
    "its columns": (lambda x: _core.column_maxima(x, None), np.full((500, 500), 1 / 500)),
    "probabilities": (lambda x: _core.renyi_entropy(x, 2.0), ONES / 300_000),
    "bits": (lambda x: _core.PackedBits(x, 10).count([[0, 1], [2, 3, 4]]), VALUES % 2),
    "categories": (lambda x: _core.count_families(x, [3] * 10, [[0, 1], [2, 3, 4]]), VALUES),
}


@pytest.mark.parametrize("name", LENT)
def test_a_writer_into_a_lent_array_spoils_its_own_answer_and_nothing_else(name):
    call, right = LENT[name]
    before = repr(call(right))
    lent, stop = right.copy(), threading.Event()
    wrong = np.array([-1, 2**62, 10**6, 3]) if lent.dtype == np.int64 else np.array([np.nan, np.inf, -1.0, 1e300])

    def write():
        while not stop.is_set():
            lent.ravel()[RNG.integers(0, lent.size, 1000)] = RNG.choice(wrong, 1000)
            lent[...] = right

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            with contextlib.suppress(ValueError, InternalError):
                call(lent)
    finally:
        stop.set()
        writer.join()
    assert repr(call(right)) == before
