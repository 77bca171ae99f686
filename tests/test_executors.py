"""Tasks of executors: their names and sizes, memory where they run, their end with the job, workers that are lost."""

import ctypes
import os
import pickle
import re
import tempfile
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from tests.factorization.chains import assert_same_runs

from quincunx import _check, _core, _executors, lattices
from quincunx._executors import Tasks, memory_of_task, workers
from quincunx._job import Job
from quincunx.counting import _exact, count_independent_sets, count_spanning_trees, independence_polynomial
from quincunx.counting._problem import as_problem
from quincunx.errors import TooLargeError, WorkerError
from quincunx.factorization import PoissonFactorization
from quincunx.ldp import GaussianModel
from quincunx.privacy import LaplaceMechanism

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning"
)

# Two tasks at the least, of a minute together.
ENDLESS = lattices.square(22, 4000)
RATES = np.random.default_rng(5).gamma(1.0, 1.0, (31, 17))
RELEASE = np.random.default_rng(6).poisson(RATES)


@pytest.fixture(scope="module")
def distributed():
    return pytest.importorskip("distributed")


def cluster_of(distributed, n_workers=2, **how):
    return distributed.LocalCluster(n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", **how)


@pytest.fixture(scope="module")
def client(distributed):
    with cluster_of(distributed) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def dask(client):
    with client.get_executor() as executor:
        yield executor


def keys(client):
    """The keys of all tasks that the scheduler has seen."""

    def seen(dask_scheduler):
        return [entry[0] for entry in dask_scheduler.transition_log]

    return sorted({key for key in client.run_on_scheduler(seen) if key.startswith("quincunx-")})


def busy(client):
    """Tasks that workers are at, cancelled or not."""
    return sum(client.run(lambda dask_worker: len(dask_worker.active_threads)).values())


def until(condition, seconds=20.0):
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not come to that"
        time.sleep(0.05)
    return time.monotonic() - start


# Tasks and their names.


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize(
    ("problem", "quantity", "most"),
    [
        (lattices.square(34, 34), "count", 1),
        (lattices.king(40, 16), "count", 8),
        (lattices.king(18, 18), "polynomial", 1),
    ],
    ids=["reflection", "lanes", "polynomial"],
)
def test_tasks_are_as_large_as_primes_are_cheap_together_and_enough_for_all_workers(problem, quantity, most, number):
    plan = _core.plan_independent_sets(as_problem(problem), quantity, Job())
    group = _exact._group(plan, number)
    tasks = -(-plan.primes // group)
    assert group <= most
    assert tasks >= min(number, plan.primes)
    assert group == most or -(-plan.primes // (2 * group)) < number, "no smaller than workers need"


def test_workers_are_counted(dask):
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        assert (workers(threads), workers(processes), workers(dask), workers(Executor())) == (3, 2, 2, None)


def test_tasks_of_dask_tell_what_they_are_and_are_this_jobs_alone(client, dask):
    before = set(keys(client))
    grid = lattices.square(24, 24)
    heard = []
    counts = [count_independent_sets(grid, executor=dask, progress=lambda *told: heard.append(told)) for _ in range(2)]
    assert counts == [count_independent_sets(grid)] * 2
    fresh = sorted(set(keys(client)) - before)
    shape = r"quincunx-independent-sets-square-24-x-24-prime-(\d\d?)-([0-9a-f]{8})"
    found = [re.fullmatch(shape, key) for key in fresh]
    assert all(found), fresh
    primes = heard[0][1]
    assert heard == [(done, primes) for done in range(1, primes + 1)] * 2
    assert len(fresh) == 2 * primes
    assert len({match[2] for match in found}) == 2
    assert {int(match[1]) for match in found} == set(range(primes))


# Memory where tasks run.


@pytest.mark.slow
def test_memory_is_that_of_the_worker_unless_it_is_said(distributed):
    with (
        cluster_of(distributed, 1, memory_limit="360MB") as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        assert executor.submit(memory_of_task, 12345).result() == 12345
        assert 1 << 20 < executor.submit(memory_of_task, None).result() < 0.8 * 360e6
        assert memory_of_task(None) > 360e6, "what this process would have sent"
        king = lattices.king(30, 30)  # 270 MB with eight primes side by side
        before = client.run(os.getpid)
        assert count_independent_sets(king, executor=executor) == count_independent_sets(king)
        assert client.run(os.getpid) == before, "no worker has died"
        with pytest.raises(TooLargeError):
            count_independent_sets(lattices.king(34, 34), executor=executor)
        assert client.run(os.getpid) == before


def test_a_small_client_holds_no_worker_back(monkeypatch):
    king = lattices.king(20, 20)
    count = count_independent_sets(king)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        executor.submit(os.getpid).result()
        monkeypatch.setattr(_check, "available_memory", lambda: 100_000)
        with pytest.raises(TooLargeError):
            count_independent_sets(king)
        assert count_independent_sets(king, executor=executor) == count
        with pytest.raises(TooLargeError):
            count_independent_sets(king, executor=executor, memory_limit=100_000)


# The end of a job.


def interrupt(error):
    """Raise an exception in this thread a moment from now, where it waits for tasks."""
    main = threading.get_ident()
    timer = threading.Timer(
        1.0, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(error))
    )
    timer.start()
    return timer


def test_a_job_that_ends_early_ends_its_tasks_on_dask(client, dask):
    interrupt(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        count_independent_sets(ENDLESS, executor=dask, threads=1)
    assert until(lambda: busy(client) == 0) < 10
    assert count_independent_sets(lattices.square(8, 8), executor=dask) == 660647962955


@pytest.mark.parametrize("pool", ["threads", "processes"])
def test_a_job_that_ends_early_ends_its_tasks_here(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # jobs of other tests leave theirs elsewhere
    executor = ThreadPoolExecutor(2) if pool == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with executor:
        executor.submit(os.getpid).result()
        interrupt(KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            count_independent_sets(ENDLESS, executor=executor, threads=1)
        start = time.monotonic()
        executor.shutdown(wait=True)
    assert time.monotonic() - start < 10
    assert list(tmp_path.glob("quincunx-stop-*")) == [], "nothing is left behind"


def test_no_lock_of_a_task_is_held_while_it_is_waited_for():
    """Who takes the locks of tasks one after the other can be interrupted between two, and leaves the first taken."""

    class Lock:
        """A future's condition, entered as its own methods do and never taken apart from that."""

        def __init__(self, condition):
            self._condition = condition

        def __enter__(self):
            return self._condition.__enter__()

        def __exit__(self, *error):
            return self._condition.__exit__(*error)

        def __getattr__(self, name):
            assert name != "acquire", "the lock of a task was taken"
            return getattr(self._condition, name)

    class Watched(ThreadPoolExecutor):
        def submit(self, function, /, *call):
            future = super().submit(function, *call)
            future._condition = Lock(future._condition)
            return future

    with Watched(2) as executor:
        tasks = Tasks(executor, lambda number, _: time.sleep(0.2) or number, [(k,) for k in range(6)], "abcdef")
        with tasks:
            assert sorted(tasks) == [(k, k) for k in range(6)]


def test_chains_end_with_their_fit(client, dask):
    model = PoissonFactorization(3, n_chains=2, n_warmup=10**6, n_draws=10, random_state=1)
    interrupt(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(RELEASE, executor=dask)
    assert until(lambda: busy(client) == 0) < 10


def test_the_tasks_of_a_client_that_is_gone_end(distributed, client):
    scheduler = client.scheduler.address
    with distributed.Client(scheduler, set_as_default=False) as other:
        executor = other.get_executor()
        with Tasks(executor, _exact.residues_of, [(plan_of(ENDLESS), 0, 8, 0, 1, None)], ["endless"]):
            until(lambda: busy(client) == 1)
    assert until(lambda: busy(client) == 0) < 20


def plan_of(graph):
    return _core.plan_independent_sets(as_problem(graph), "count", Job())


# Workers that are lost.


def die(*_):
    os._exit(3)


@pytest.mark.slow
def test_a_task_of_which_worker_after_worker_dies_is_an_error_that_names_it(distributed):
    with (
        cluster_of(distributed, 2) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        with (
            pytest.raises(WorkerError, match=r"task deadly was given up: 4 workers in a row died of it, the last") as e,
            Tasks(executor, die, [()], ["deadly"]) as tasks,
        ):
            list(tasks)
        assert isinstance(e.value, BrokenExecutor)
        assert isinstance(pickle.loads(pickle.dumps(WorkerError("words"))), WorkerError)


def test_a_worker_that_is_killed_costs_time_only(distributed, client, dask):
    grid = lattices.square(30, 30)
    killed = []

    def progress(done, total):
        if done in (2, 6):
            _, pid = sorted(client.run(os.getpid).items())[0]
            killed.append(pid)
            os.kill(pid, 9)

    assert count_independent_sets(grid, executor=dask, progress=progress) == count_independent_sets(grid)
    assert len(set(killed)) == 2


def test_without_a_worker_a_job_warns_and_then_says_what_is_saved(distributed, monkeypatch, tmp_path):
    monkeypatch.setattr(_executors, "WARN_AFTER", 0.5)
    monkeypatch.setattr(_executors, "GIVE_UP_AFTER", 2.0)
    state, grid = tmp_path / "state", lattices.square(26, 26)
    with (
        cluster_of(distributed, 1) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):

        def progress(done, total):
            if done == 3:
                cluster.scale(0)
                until(lambda: not client.nthreads())

        with (
            pytest.warns(RuntimeWarning, match=r"no worker for 1 s: waiting for one, 2 s at the most"),
            pytest.raises(WorkerError, match=r"no worker for 2 s, with \d+ tasks to do; \d+ of \d+ residues are") as e,
        ):
            count_independent_sets(grid, executor=executor, progress=progress, checkpoint=state)
        assert str(state) in str(e.value)
        saved = int(re.search(r"(\d+) of", str(e.value))[1])
        assert saved >= 3
        with pytest.warns(RuntimeWarning), pytest.raises(WorkerError, match="nothing is saved, for there is no"):
            count_independent_sets(lattices.square(5, 5), executor=executor)
        # A worker that comes in time is all that is needed.
        heard, timer = [], threading.Timer(0.7, lambda: cluster.scale(1))
        timer.start()
        monkeypatch.setattr(_executors, "GIVE_UP_AFTER", 60.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = count_independent_sets(
                grid, executor=executor, checkpoint=state, progress=lambda *told: heard.append(told)
            )
        assert heard[0][0] == saved + 1
        assert count == count_independent_sets(grid)
        assert not state.exists()


def test_a_pool_that_breaks_says_what_is_saved(tmp_path):
    state = tmp_path / "state"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:

        def progress(done, total):
            if done == 2:
                os.kill(*executor._processes, 9)

        with pytest.raises(WorkerError, match=rf"the workers are gone: .*; \d+ of \d+ residues are saved in {state}"):
            count_independent_sets(lattices.square(30, 30), executor=executor, progress=progress, checkpoint=state)
    assert count_independent_sets(lattices.square(30, 30), checkpoint=state) == count_independent_sets(
        lattices.square(30, 30)
    )


# What is sent.


class Weighing(Executor):
    """Pickles what goes out and comes back, as processes do, and weighs it."""

    def __init__(self):
        self.out, self.back = [], []

    def submit(self, function, /, *arguments, **keywords):
        sent = pickle.dumps((function, arguments, keywords))
        function, arguments, keywords = pickle.loads(sent)
        back = pickle.dumps(function(*arguments, **keywords))
        self.out.append(len(sent))
        self.back.append(len(back))
        future = Future()
        future.set_result(pickle.loads(back))
        return future


def test_a_chain_that_goes_on_does_not_carry_its_draws():
    how = {"n_chains": 2, "n_warmup": 5, "random_state": 4, "warm_start": True}
    model = PoissonFactorization(3, n_draws=300, **how).fit(RELEASE)
    weighing = Weighing()
    model.set_params(n_draws=2).fit(RELEASE, executor=weighing)
    here = PoissonFactorization(3, n_draws=300, **how).fit(RELEASE)
    here.set_params(n_draws=2).fit(RELEASE)
    assert_same_runs(model, here)
    draws = 300 * 8 * 3 * sum(RELEASE.shape)
    assert max(weighing.out + weighing.back) < draws / 10


@pytest.mark.parametrize("inference", ["quadrature", "nuts"])
def test_models_of_users_go_on_as_they_do_here(inference):
    release = LaplaceMechanism(1.0, -5, 5).release(np.linspace(-2.0, 3.0, 50), insecure_seed=1)
    how = {"inference": inference, "n_warmup": 50, "n_draws": 20, "n_chains": 2, "random_state": 3, "warm_start": True}
    there, here = GaussianModel(**how), GaussianModel(**how)
    for _ in range(3):
        there.fit(release, executor=Weighing())
        here.fit(release, executor=None)
    for name, draws in there.draws_.items():
        assert draws.shape == (2, 60 if inference == "nuts" else 20)
        np.testing.assert_array_equal(draws, here.draws_[name])


# Of so many shorts Dask hands on an array that begins at an odd byte.
LARGE = np.random.default_rng(7).poisson(3.0, (601, 117)) + 200 * (np.arange(117) == 3)


@pytest.mark.parametrize(
    ("released", "inference", "method"),
    [(RELEASE, "mcmc", "auto"), (RELEASE, "mcmc", "bessel"), (RELEASE, "vi", "auto"), (LARGE, "vi", "auto")],
    ids=["auto", "bessel", "vi", "shorts"],
)
def test_fits_go_on_over_dask_bit_for_bit(dask, released, inference, method):
    short = {"n_draws": 3, "n_warmup": 2, "n_chains": 2} if inference == "mcmc" else {"max_iter": 4, "tol": 0.0}
    how = short | {"inference": inference, "method": method, "random_state": 8, "warm_start": True}
    there, here = PoissonFactorization(3, **how), PoissonFactorization(3, **how)
    mask = np.arange(released.size).reshape(released.shape) % 11 == 0
    for _ in range(2):
        there.fit(released, alpha=0.3, mask=mask, executor=dask)
        here.fit(released, alpha=0.3, mask=mask)
        assert_same_runs(there, here)
    np.testing.assert_array_equal(there.embedding_, here.embedding_)


def test_polynomials_and_trees_count_on_dask(dask):
    grid = lattices.square(9, 11)
    assert independence_polynomial(grid, executor=dask) == independence_polynomial(grid)
    assert count_spanning_trees(grid, executor=dask) == count_spanning_trees(grid)
