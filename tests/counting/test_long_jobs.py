"""Long jobs: progress, interruption, checkpoints, executors, and results that depend on none of them."""

import concurrent.futures
import functools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import pytest
from tests.interrupts import Stopped, interrupted_after, stop_after, uncollected

from quincunx import lattices
from quincunx._progress import reporting
from quincunx.counting import (
    chromatic_polynomial,
    count_independent_sets,
    count_matchings,
    count_perfect_matchings,
    count_spanning_trees,
    estimate_cost,
    hard_core,
    independence_polynomial,
    matching_polynomial,
    potts_partition_function,
    potts_polynomial,
    tutte_polynomial,
)
from quincunx.errors import CheckpointError, TooLargeError, WorkerError

# A count of one second or so, made of steps of a millisecond: 46368 states, 6 groups of 8 primes.
LONG = lattices.square(22, 400)
# Jobs of many seconds, one per engine and way of counting; each is stopped at once.
ENDLESS = {
    "square": lambda **how: count_independent_sets(lattices.square(22, 4000), **how),
    "square cylinder": lambda **how: count_independent_sets(lattices.square(3000, 22, "cylinder"), **how),
    "square torus": lambda **how: count_independent_sets(lattices.square(20, 22, "torus"), **how),
    "king": lambda **how: count_independent_sets(lattices.king(22, 4000), **how),
    "triangular": lambda **how: count_independent_sets(lattices.triangular(20, 4000), **how),
    "4-8-8": lambda **how: count_independent_sets(lattices.four_eight_eight(13, 600), **how),
    "4-8-8 torus": lambda **how: count_independent_sets(lattices.four_eight_eight(17, 18, "torus"), **how),
    # In the order given: the search for one is a job of its own, below.
    "frontier": lambda **how: count_independent_sets(lattices.honeycomb(40, 18), order=range(1440), **how),
    "many small groups": lambda **how: count_independent_sets(lattices.square(12, 30_000), **how),
    "polynomial": lambda **how: independence_polynomial(lattices.square(14, 60), **how),
    "exact activity": lambda **how: hard_core(lattices.square(20, 2000), 3, **how),
    "logarithm": lambda **how: hard_core(lattices.square(24, 4000), 1.5, mode="log", **how),
    "trees, product": lambda **how: count_spanning_trees(lattices.square(1500, 1500), **how),
    "trees, torus": lambda **how: count_spanning_trees(lattices.kagome(300, 300, "torus"), **how),
    "trees, cylinder": lambda **how: count_spanning_trees(lattices.kagome(150, 150, "cylinder"), **how),
    "trees, elimination": lambda **how: count_spanning_trees(lattices.kagome(60, 60), **how),
    "dimers, product": lambda **how: count_perfect_matchings(lattices.square(1500, 1500), **how),
    "dimers, plane": lambda **how: count_perfect_matchings(lattices.aztec_diamond(60), **how),
    "dimers, torus": lambda **how: count_perfect_matchings(lattices.kagome(24, 24, "torus"), **how),
    "dimers, even subgraphs": lambda **how: count_perfect_matchings(lattices.named("modified-bathroom", 19, 19), **how),
    "dimers, frontier": lambda **how: count_perfect_matchings(lattices.king(18, 18), **how),
    "matchings": lambda **how: count_matchings(lattices.square(20, 80), **how),
    "matching polynomial": lambda **how: matching_polynomial(lattices.square(14, 30), **how),
    "colorings": lambda **how: chromatic_polynomial(lattices.square(10, 40), **how),
    "Tutte polynomial": lambda **how: tutte_polynomial(lattices.square(10, 30), **how),
    "Ising": lambda **how: potts_polynomial(lattices.square(10, 60), 2, **how),
    "activity of each vertex": lambda **how: hard_core(lattices.square(19, 60), [2] * 1140, **how),
}


class Steps(list):
    """Hears progress, and checks that it never goes back."""

    def __call__(self, done, total):
        assert 0 <= done <= total
        if self:
            assert total == self[-1][1]
            assert done >= self[-1][0]
        self.append((done, total))


# Progress.


@pytest.mark.parametrize(
    "job",
    [
        lambda **how: count_independent_sets(lattices.square(2, 2), **how),
        lambda **how: count_independent_sets(lattices.square(24, 24), **how),
        lambda **how: count_independent_sets(lattices.square(14, 15, "torus"), **how),
        lambda **how: count_independent_sets(lattices.four_eight_eight(12, 12), **how),
        lambda **how: count_independent_sets(lattices.kagome(9, 9), **how),
        lambda **how: independence_polynomial(lattices.square(12, 12), **how),
        lambda **how: independence_polynomial(lattices.square(3, 3), **how),
        lambda **how: hard_core(lattices.square(20, 20), 3, **how),
        lambda **how: hard_core(lattices.square(22, 22), 1.5, mode="float", **how),
        lambda **how: hard_core(lattices.square(3, 3), 1.5, mode="log", **how),
    ],
    ids=range(10),
)
def test_progress_rises_to_its_total(job):
    steps = Steps()
    assert job(progress=steps) == job()
    assert len(steps) >= 1
    assert steps[-1][0] == steps[-1][1] > 0


def test_progress_is_heard_several_times_and_seldom_more_often_than_every_fiftieth_of_a_second():
    steps, start = Steps(), time.perf_counter()
    count_independent_sets(LONG, threads=1, progress=steps)
    elapsed = time.perf_counter() - start
    assert 3 <= len(steps) <= elapsed / 0.04 + 3


def test_a_bar_is_drawn_by_tqdm_on_standard_error(capsys):
    count_independent_sets(lattices.square(4, 4), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "independent sets" in err


def test_a_bar_counts_whole_steps(monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    seen = []

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            shown = super().update(n)
            seen.append((self.n, self.total, self.unit_scale))
            return shown

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    with reporting(True, "work") as report:
        for done in (1, 3, 7):
            report(done, 7)
        report(1_500_000, 3_000_000)
    assert seen == [(1, 7, False), (3, 7, False), (7, 7, False), (1_500_000, 3_000_000, True)]


# Stopping.


@pytest.mark.parametrize("name", ENDLESS)
def test_an_exception_of_progress_comes_back_as_itself(name):
    raised, told = [], Stopped("enough")

    def progress(done, total):
        raised.append(time.perf_counter())
        raise told

    with pytest.raises(Stopped) as caught:
        ENDLESS[name](progress=progress)
    assert caught.value is told
    assert len(raised) == 1, "progress is not asked again once it has objected"
    # The strict figure is 200 ms; a machine that is busy with other things gets two seconds.
    assert time.perf_counter() - raised[0] < 2.0
    assert count_independent_sets(lattices.square(8, 8)) == 660647962955, "the process can go on"


@uncollected()
def interrupted(job, send):
    """Send an interrupt once a job has told of progress; return the seconds it takes to come back.

    Before that a graph is planned, which takes up to a second and is not interrupted.
    """
    sent, began, over = [], threading.Event(), threading.Event()

    def fire():
        began.wait()
        if not over.is_set():
            sent.append(time.perf_counter())
            send()

    thread = threading.Thread(target=fire)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            job(progress=lambda done, total: began.set())
        return time.perf_counter() - sent[0]
    finally:
        over.set()  # a job that was too short fails its own test, and no other
        began.set()
        thread.join()


def report(name, seconds, record_property):
    """Print how long an answer took: the strict figure is 200 ms, the test asks for two seconds of a busy machine."""
    record_property(f"milliseconds to answer an interrupt, {name}", round(1000 * seconds))
    print(f"{name}: answered an interrupt after {1000 * seconds:.0f} ms")
    assert seconds < 2.0


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads are sent signals as on Unix")
@pytest.mark.parametrize("name", ENDLESS)
def test_an_interrupt_from_another_thread_is_answered(name, record_property):
    main = threading.main_thread().ident
    seconds = interrupted(ENDLESS[name], lambda: signal.pthread_kill(main, signal.SIGINT))
    report(name, seconds, record_property)
    assert count_independent_sets(lattices.square(8, 8)) == 660647962955


def test_an_interrupt_raised_by_a_thread_in_its_own_name_is_answered(record_property):
    report("raise_signal", interrupted(ENDLESS["square"], lambda: signal.raise_signal(signal.SIGINT)), record_property)


INTERRUPTED = """
import time
from quincunx import lattices
from quincunx.counting import count_independent_sets
try:
    count_independent_sets(lattices.square(22, 4000), progress=lambda done, total: print("working", flush=True))
except KeyboardInterrupt:
    print(time.monotonic())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the clock is that of the whole system on Linux")
def test_an_interrupt_from_outside_is_answered(python, record_property):
    process = python(INTERRUPTED)
    assert process.stdout.readline() == "working\n"
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    *_, answered = process.communicate(timeout=30)[0].split()
    assert process.returncode == 0
    report("from outside", float(answered) - sent, record_property)


# Vectors of a hundred megabytes and more: one step, the start and the end are long, too.
LARGE = {
    "square": lambda: count_independent_sets(lattices.square(32, 33)),
    "square, two vectors": lambda: count_independent_sets(lattices.square(32, 32)),
    "square cylinder": lambda: count_independent_sets(lattices.square(32, 30, "cylinder")),
    "king": lambda: count_independent_sets(lattices.king(30, 30)),
    "triangular": lambda: count_independent_sets(lattices.triangular(28, 28)),
    "4-8-8": lambda: count_independent_sets(lattices.four_eight_eight(21, 22)),
    "4-8-8 cylinder": lambda: count_independent_sets(lattices.four_eight_eight(22, 20, "cylinder")),
    "frontier": lambda: count_independent_sets(lattices.honeycomb(28, 28)),
    "the search for an order": lambda: count_independent_sets(lattices.honeycomb(14, 400)),
    "a forecast": lambda: estimate_cost(lattices.honeycomb(14, 400)),
    "logarithm": lambda: hard_core(lattices.square(30, 31), 1.5, mode="log"),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads are sent signals as on Unix")
@pytest.mark.parametrize("delay", [0.25, 0.75, 1.5])
@pytest.mark.parametrize("name", LARGE)
def test_an_interrupt_is_answered_while_large_vectors_are_worked_on(name, delay, record_property):
    found = interrupted_after(LARGE[name], delay)
    if found is None:
        pytest.skip("finished before the interrupt")
    report(name, found[0], record_property)


def test_a_thread_that_is_not_the_main_one_is_stopped_by_its_progress():
    stop = threading.Event()

    def progress(done, total):
        if stop.is_set():
            raise Stopped

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(ENDLESS["square"], progress=progress)
        time.sleep(0.1)
        assert not future.done()
        stop.set()
        with pytest.raises(Stopped):
            future.result(timeout=10)


# Checkpoints.

KILLED = """
import sys
from quincunx import lattices
from quincunx.counting import count_independent_sets
count_independent_sets(lattices.square(22, 400), checkpoint=sys.argv[1], checkpoint_interval=0.02, threads=1,
                       progress=lambda done, total: print(done / total, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_job_killed_in_the_middle_goes_on_and_gives_the_same_number(python, tmp_path, long_count):
    state = tmp_path / "state"
    for _ in range(10):  # where the disk is slow states are saved seldom, and a kill loses more
        process = python(KILLED, str(state))
        while float(process.stdout.readline()) < 0.5:
            pass
        process.kill()
        process.wait(timeout=30)
        kept, steps = state.read_bytes(), Steps()
        assert count_independent_sets(LONG, checkpoint=state, progress=steps, threads=2) == long_count
        assert not state.exists()
        if steps[0][0] / steps[0][1] > 0.3:
            return
        state.write_bytes(kept)
    pytest.fail("what was done is done again")


def stopped_job(state, share=0.4):
    """Stop a job in the middle, leaving a checkpoint."""
    with pytest.raises(Stopped):
        count_independent_sets(LONG, checkpoint=state, checkpoint_interval=0.02, threads=1, progress=stop_after(share))
    assert state.exists()
    return state.read_bytes()


def test_a_job_stopped_twice_goes_on_with_other_threads_and_other_memory(tmp_path, long_count):
    state = tmp_path / "state"
    stopped_job(state, share=0.2)
    with pytest.raises(Stopped):
        count_independent_sets(
            LONG, checkpoint=state, checkpoint_interval=0.02, threads=2, progress=stop_after(0.6), memory_limit=10**9
        )
    assert count_independent_sets(LONG, checkpoint=str(state), threads=3, memory_limit=46368 * 2 * 8 * 4) == long_count
    assert os.listdir(tmp_path) == []


def test_polynomials_and_partition_functions_go_on_too(tmp_path):
    state = tmp_path / "state"
    for job in (
        lambda **how: independence_polynomial(lattices.square(18, 18), **how),
        lambda **how: hard_core(lattices.square(22, 100), 3, **how),
    ):
        with pytest.raises(Stopped):
            job(checkpoint=state, checkpoint_interval=0.02, threads=1, progress=stop_after(0.3))
        assert state.exists()
        assert job(checkpoint=state) == job()
        assert not state.exists()


def test_a_damaged_checkpoint_is_refused_and_kept(tmp_path, long_count):
    state = tmp_path / "state"
    whole = stopped_job(state)
    middle = len(whole) // 2
    for content in (
        b"",
        whole[:7],
        whole[:-1],
        whole[: len(whole) // 3],
        whole + b"12345678",
        b"x" + whole[1:],
        whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        whole[:-1] + bytes([whole[-1] ^ 128]),
        b"this is no checkpoint of anything, but it is long enough to be one",
    ):
        state.write_bytes(content)
        with pytest.raises(CheckpointError, match="state"):
            count_independent_sets(LONG, checkpoint=state)
        assert state.read_bytes() == content
    state.write_bytes(whole)
    assert count_independent_sets(LONG, checkpoint=state) == long_count


def test_the_checkpoint_of_another_job_is_refused_and_kept(tmp_path):
    state = tmp_path / "state"
    whole = stopped_job(state)
    for job in (
        lambda: count_independent_sets(lattices.square(22, 202), checkpoint=state),
        lambda: count_independent_sets(lattices.square(200, 22, "cylinder"), checkpoint=state),
        lambda: count_independent_sets(lattices.triangular(22, 400), checkpoint=state),
        lambda: count_independent_sets(lattices.square(22, 20).graph, checkpoint=state),
        lambda: hard_core(LONG, 2, checkpoint=state),
        lambda: independence_polynomial(lattices.square(8, 8), checkpoint=state),
    ):
        with pytest.raises(CheckpointError, match="belongs to another job"):
            job()
        assert state.read_bytes() == whole


def test_a_memory_limit_that_has_another_method_chosen_is_named(tmp_path):
    lattice, state, little, more = lattices.square(20, 21), tmp_path / "state", 8 * 17711, 10**6
    assert estimate_cost(lattice, memory_limit=little).engine != estimate_cost(lattice, memory_limit=more).engine
    count = count_independent_sets(lattice)

    def stop(done, total):
        raise KeyboardInterrupt

    how = {"checkpoint": state, "checkpoint_interval": 0, "threads": 1}
    for first, second in ((little, more), (more, little)):
        with pytest.raises(KeyboardInterrupt):
            count_independent_sets(lattice, memory_limit=first, progress=stop, **how)
        with pytest.raises(CheckpointError, match="memory limit that chose another method"):
            count_independent_sets(lattice, memory_limit=second, **how)
        assert count_independent_sets(lattice, memory_limit=first, **how) == count


def test_a_checkpoint_that_cannot_be_kept_is_said_before_the_work(tmp_path):
    for place in (tmp_path / "missing" / "state", tmp_path, ""):
        start = time.perf_counter()
        with pytest.raises(CheckpointError):
            ENDLESS["square"](checkpoint=place)
        assert time.perf_counter() - start < 5
    with pytest.raises(OSError, match="missing"):
        count_independent_sets(lattices.square(3, 3), checkpoint=tmp_path / "missing" / "state")


# The same number whatever does the work.


def test_where_half_a_vector_and_its_tiles_do_not_fit_whole_rows_do():
    lattice = lattices.square(20, 21)
    forecasts = {limit: estimate_cost(lattice, threads=1, memory_limit=limit).engine for limit in (8 * 17711, 10**6)}
    assert list(forecasts.values()) == ["square butterfly", "square reflection"]
    assert len({count_independent_sets(lattice, threads=1, memory_limit=limit) for limit in forecasts}) == 1
    with pytest.raises(TooLargeError, match="needs 141688 bytes, the limit is 100000 bytes"):
        count_independent_sets(lattice, threads=1, memory_limit=10**5)


@pytest.mark.parametrize(
    "lattice",
    [
        lattices.square(30, 16),
        lattices.square(30, 14, "cylinder"),
        lattices.square(12, 13, "torus"),
        lattices.king(20, 21),
        lattices.triangular(16, 17, "cylinder"),
        lattices.four_eight_eight(12, 13),
        lattices.four_eight_eight(8, 9, "torus"),
        lattices.honeycomb(12, 12),
    ],
    ids=repr,
)
def test_threads_and_memory_do_not_change_the_result(lattice):
    count = count_independent_sets(lattice, threads=1)
    for threads in (2, 3):
        assert count_independent_sets(lattice, threads=threads) == count
    states = estimate_cost(lattice, threads=1).states
    for lanes in (1, 2, 4):
        assert count_independent_sets(lattice, threads=2, memory_limit=8 * lanes * states) == count


# Three tasks, if there are as many workers.
SPREAD = lattices.square(12, 130)


def test_a_thread_pool_is_an_executor():
    with ThreadPoolExecutor(2) as executor:
        heard = Steps()
        count = count_independent_sets(SPREAD, executor=executor, progress=heard)
        assert count == count_independent_sets(SPREAD)
        assert len(heard) >= 2, "each thread has a task"
        assert heard[-1][0] == heard[-1][1] == estimate_cost(SPREAD).primes
        assert count_independent_sets(lattices.kagome(6, 6), executor=executor) == count_independent_sets(
            lattices.kagome(6, 6).graph
        )


def test_a_process_pool_is_an_executor():
    count_independent_sets(lattices.square(20, 20), threads=2)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert count_independent_sets(SPREAD, executor=executor) == count_independent_sets(SPREAD)


@pytest.mark.filterwarnings("ignore")
def test_loky_is_an_executor():
    loky = pytest.importorskip("loky")
    executor = loky.get_reusable_executor(2)
    try:
        assert count_independent_sets(SPREAD, executor=executor) == count_independent_sets(SPREAD)
    finally:
        executor.shutdown(wait=True)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_is_an_executor():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor(pure=False) as executor,
    ):
        assert count_independent_sets(SPREAD, executor=executor) == count_independent_sets(SPREAD)
        assert count_independent_sets(SPREAD.graph, executor=executor, threads=1) == count_independent_sets(SPREAD)


class Scripted(Executor):
    """Fails the first task and never begins the others."""

    _max_workers = 3

    def __init__(self, error):
        self.error, self.futures, self.tasks = error, [], []

    def submit(self, function, /, *arguments, **keywords):
        self.futures.append(Future())
        self.tasks.append((function, arguments, keywords))
        if len(self.futures) == 1:
            self.futures[0].set_exception(self.error)
        return self.futures[-1]


def test_a_task_that_fails_cancels_the_others_and_its_error_comes_back():
    error = ValueError("the worker has no more memory")
    executor = Scripted(error)
    with pytest.raises(ValueError, match="no more memory") as caught:
        count_independent_sets(SPREAD, executor=executor)
    assert caught.value is error
    assert [future.cancelled() for future in executor.futures] == [False, True, True]


def test_a_worker_that_dies_is_an_error_not_a_wait():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        doomed = executor.submit(os._exit, 3)
        with pytest.raises(concurrent.futures.process.BrokenProcessPool):
            doomed.result(timeout=60)
        with pytest.raises(WorkerError, match=r"the workers are gone: .*; nothing is saved, for there is no"):
            count_independent_sets(SPREAD, executor=executor)


def test_a_progress_that_raises_cancels_what_has_not_begun():
    class Waiting(Scripted):
        def submit(self, function, /, *arguments, **keywords):
            self.futures.append(Future())
            if len(self.futures) == 1:
                self.futures[0].set_result(function(*arguments, **keywords))
            return self.futures[-1]

    def progress(done, total):
        raise Stopped

    executor = Waiting(None)
    with pytest.raises(Stopped):
        count_independent_sets(SPREAD, executor=executor, progress=progress)
    assert [future.cancelled() for future in executor.futures] == [False, True, True]


def test_a_task_is_small_and_pickles():
    executor = Scripted(Stopped())
    with pytest.raises(Stopped):
        count_independent_sets(lattices.square(14, 4000), executor=executor)
    assert len(executor.tasks) > 60
    assert all(len(pickle.dumps(task)) < 1000 for task in executor.tasks)


@pytest.mark.parametrize("executor", [3, "threads", ThreadPoolExecutor, object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(TypeError, match=r"`executor` must be a concurrent\.futures\.Executor"):
        count_independent_sets(SPREAD, executor=executor)


EXACT = {
    "count": lambda **how: count_independent_sets(SPREAD, **how),
    "count of a graph": lambda **how: count_independent_sets(lattices.honeycomb(6, 90), **how),
    "polynomial": lambda **how: independence_polynomial(lattices.square(3, 250), **how),
    "rational activity": lambda **how: hard_core(SPREAD, Fraction(-7, 5), **how),
    "trees, product": lambda **how: count_spanning_trees(lattices.square(30, 40), **how),
    "trees, torus": lambda **how: count_spanning_trees(lattices.kagome(14, 14, "torus"), **how),
    "trees, cylinder": lambda **how: count_spanning_trees(lattices.kagome(14, 14, "cylinder"), **how),
    "trees, elimination": lambda **how: count_spanning_trees(lattices.triangular(20, 20), **how),
    "dimers, product": lambda **how: count_perfect_matchings(lattices.square(40, 50), **how),
    "dimers, plane": lambda **how: count_perfect_matchings(lattices.aztec_diamond(24), **how),
    "dimers, torus": lambda **how: count_perfect_matchings(lattices.kagome(16, 20, "torus"), **how),
    "dimers, embedded graph": lambda **how: count_perfect_matchings(lattices.aztec_diamond(22).graph, **how),
    "dimers, even subgraphs": lambda **how: count_perfect_matchings(lattices.named("modified-bathroom", 4, 90), **how),
    "dimers, frontier": lambda **how: count_perfect_matchings(lattices.king(6, 100), **how),
    "matchings": lambda **how: count_matchings(lattices.square(5, 200), **how),
    "matching polynomial": lambda **how: matching_polynomial(lattices.square(2, 300), **how),
    "colorings": lambda **how: chromatic_polynomial(lattices.square(4, 90), **how),
    "Tutte polynomial": lambda **how: tutte_polynomial(lattices.square(2, 60), **how).coefficients[7],
    "Potts": lambda **how: potts_partition_function(lattices.square(5, 60), Fraction(7, 3), Fraction(1, 5), **how),
    "Ising": lambda **how: potts_partition_function(lattices.square(5, 60), 2, Fraction(1, 5), **how),
    "activity of each vertex": lambda **how: hard_core(lattices.square(5, 60), [Fraction(9, 7), 3, -5] * 100, **how),
}


@functools.cache
def answer(name):
    return EXACT[name]()


@pytest.mark.parametrize("name", EXACT)
def test_every_exact_job_runs_on_an_executor_and_its_plan_pickles(name):
    class Pickling(Executor):
        def submit(self, function, /, *arguments, **keywords):
            future = Future()
            function, arguments, keywords = pickle.loads(pickle.dumps((function, arguments, keywords)))
            future.set_result(function(*arguments, **keywords))
            return future

    heard = Steps()
    assert EXACT[name](executor=Pickling(), progress=heard) == answer(name)
    assert heard[-1][0] == heard[-1][1] > 0


@pytest.mark.parametrize("name", EXACT)
def test_an_executor_goes_on_from_its_checkpoint_and_so_does_the_process_itself(name, tmp_path):
    class Counting(Executor):
        _max_workers = 3  # so that a job that takes milliseconds has several tasks

        def __init__(self, allowed):
            self.tasks, self.allowed = 0, allowed

        def submit(self, function, /, *arguments, **keywords):
            future = Future()
            self.tasks += 1
            if self.tasks > self.allowed:
                future.set_exception(Stopped())
            else:
                future.set_result(function(*arguments, **keywords))
            return future

    state, expected = tmp_path / "state", answer(name)
    whole = Counting(1000)
    assert EXACT[name](executor=whole, checkpoint=state) == expected
    assert not state.exists()
    with pytest.raises(Stopped):
        EXACT[name](executor=Counting(1), checkpoint=state)
    kept = state.read_bytes()
    rest = Counting(1000)
    assert EXACT[name](executor=rest, checkpoint=state) == expected
    assert rest.tasks == whole.tasks - 1
    assert not state.exists()
    state.write_bytes(kept)
    assert EXACT[name](checkpoint=state) == expected, "without the executor"
    assert not state.exists()
    state.write_bytes(kept)
    with pytest.raises(CheckpointError, match="belongs to another job"):
        count_independent_sets(lattices.square(12, 131), executor=Counting(1000), checkpoint=state)
    assert state.read_bytes() == kept


@pytest.mark.parametrize("lattice", [LONG, lattices.square(20, 500)], ids=["one group", "groups side by side"])
def test_a_job_that_is_stopped_writes_its_checkpoint_at_once(lattice, tmp_path):
    state, steps, threads = tmp_path / "state", Steps(), 2

    def stop(done, total):
        steps(done, total)
        if done:
            raise Stopped

    start = time.perf_counter()
    with pytest.raises(Stopped):
        count_independent_sets(lattice, checkpoint=state, threads=threads, progress=stop)
    assert state.exists(), f"a stop after {time.perf_counter() - start:.2f} s, long before the first half minute"
    again = Steps()

    def stop_again(done, total):
        again(done, total)
        raise Stopped

    with pytest.raises(Stopped):
        count_independent_sets(lattice, checkpoint=state, threads=threads, progress=stop_again)
    assert again[0][0] >= steps[-1][0] > 0, "what was done is not done again"


def test_a_job_stopped_again_and_again_gives_the_same_number(tmp_path, long_count):
    state, stops = tmp_path / "state", 0
    while True:
        first = []

        def stop(done, total, first=first):
            first.append(done)
            if len(first) == 3:
                raise Stopped

        try:
            found = count_independent_sets(LONG, checkpoint=state, threads=1 + stops % 2, progress=stop)
            break
        except Stopped:
            stops += 1
    assert found == long_count
    assert stops >= 2
    assert not state.exists()
