"""Counts on clusters: wrong residues are traced, tori cut into parts, stops cost the group in hand, sizes forecast."""

import contextlib
import functools
import os
import re
import subprocess
import threading
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

import pytest
from tests.interrupts import Stopped

from quincunx import _core, _executors, lattices
from quincunx._job import Job
from quincunx.counting import (
    _exact,
    _independent_sets,
    count_independent_sets,
    count_spanning_trees,
    estimate_cost,
    hard_core,
    independence_polynomial,
    residue,
)
from quincunx.counting._problem import as_problem
from quincunx.errors import CheckpointError, TooLargeError, WorkerError


class Inline(Executor):
    """Does tasks at once, here, as three workers would; what it hands back can be damaged."""

    def __init__(self, workers=3, damaged=(), times=10**9, allowed=10**9):
        self._max_workers, self.damaged, self.times, self.allowed = workers, dict.fromkeys(damaged, 0), times, allowed
        self.tasks = []

    def submit(self, function, /, *arguments, **keywords):
        plan, start, stop, part = arguments[:4]
        future = Future()
        if len(self.tasks) >= self.allowed:
            future.set_exception(Stopped())
            return future
        self.tasks.append((range(start, stop), part))
        origin, residues = function(*arguments, **keywords)
        for prime, done in self.damaged.items():
            if start <= prime < stop and part == plan.parts // 2 and done < self.times:
                residues[(prime - start) * plan.values + plan.values // 2] ^= 1
                self.damaged[prime] += 1
        future.set_result((origin, residues))
        return future


def plan_of(problem, quantity="count"):
    return _core.plan_independent_sets(as_problem(problem), quantity, Job())


# Wrong residues.

TORUS = lattices.square(20, 40, "torus")
WRONG = {
    "a prime each": (lambda **how: count_independent_sets(lattices.square(24, 40), **how), 13),
    "lanes": (lambda **how: count_independent_sets(lattices.square(12, 130), **how), 18),
    "signs": (lambda **how: hard_core(lattices.square(4, 60), Fraction(-7, 5), **how), 14),
    "polynomial": (lambda **how: independence_polynomial(lattices.square(4, 70), **how), 5),
    "trees": (lambda **how: count_spanning_trees(lattices.square(20, 30), **how), 19),
    "parts": (lambda **how: count_independent_sets(TORUS, **how), 9),
}


@functools.cache
def right(name):
    return WRONG[name][0]()


@functools.cache
def primes_of(name):
    heard = []
    WRONG[name][0](executor=Inline(), progress=lambda done, total: heard.append(total))
    return heard[-1] // (plan_of(TORUS).parts if name == "parts" else 1)


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_residue_of_each_prime_in_turn_is_traced_and_counted_again(name):
    count, number = WRONG[name][0], primes_of(name)
    for wrong in range(number) if name != "parts" else (number - 1,):
        executor = Inline(damaged=[wrong], times=1)
        with pytest.warns(RuntimeWarning, match=r"was wrong, all others agree; it is counted again") as said:
            assert count(executor=executor) == right(name)
        assert len(said) == 1
        modulus, prime = re.search(
            rf"modulo (\d+) was.*: prime (\d+) by process {os.getpid()} on", str(said[0].message)
        ).groups()
        assert int(prime) == wrong
        spare, again = [{tuple(task[0]) for task in executor.tasks if task[0][0] == place} for place in (number, wrong)]
        assert spare == {(number,)}
        assert (wrong,) in again, "that prime alone"
        assert int(modulus) < (2**52 if name == "a prime each" else 2**55)


@pytest.mark.parametrize("name", WRONG)
def test_two_wrong_residues_are_refused_and_what_is_known_is_said(name):
    count, number = WRONG[name][0], primes_of(name)
    # The last is a second spare prime.
    for pair in ((0, 1), (number // 2, number - 1), (0, number)) if name != "parts" else ((0, number),):
        message = rf"residues modulo two or more of {number + 1} primes are wrong.*: prime 0, 1, .* by process"
        with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match=message):
            count(executor=Inline(damaged=pair))


@pytest.mark.parametrize("name", ["a prime each", "parts"])
def test_a_residue_that_is_wrong_again_is_an_error(name):
    with (
        pytest.warns(RuntimeWarning, match="was wrong, all others agree"),
        pytest.raises(
            ValueError, match=r"the residue modulo \d+ was wrong twice, all others agree: first prime 1 by proc"
        ),
    ):
        WRONG[name][0](executor=Inline(damaged=[1]))


def test_residues_that_are_all_wrong_are_an_error():
    with pytest.raises(ValueError, match="two or more of 14 primes are wrong"):
        WRONG["a prime each"][0](executor=Inline(damaged=range(20)))


def test_what_was_right_is_kept_while_a_wrong_residue_is_counted_again(tmp_path):
    state = tmp_path / "state"
    count, number = WRONG["a prime each"][0], primes_of("a prime each")

    class Lost(Inline):
        def submit(self, function, /, *arguments, **keywords):
            if len(self.tasks) == number + 1:
                self.allowed = 0
            return super().submit(function, *arguments, **keywords)

    with pytest.warns(RuntimeWarning), pytest.raises(Stopped):
        count(executor=Lost(damaged=[4], times=1), checkpoint=state)
    rest = Inline()
    assert count(executor=rest, checkpoint=state) == right("a prime each")
    assert [task[0] for task in rest.tasks] == [range(4, 5)]
    assert not state.exists()


def test_a_wrong_residue_of_a_checkpoint_is_traced_to_it(tmp_path):
    state = tmp_path / "state"
    count = WRONG["a prime each"][0]
    with pytest.raises(Stopped):
        count(executor=Inline(damaged=[1], allowed=5), checkpoint=state)
    with pytest.warns(RuntimeWarning, match=rf"prime 1 by the checkpoint {state}"):
        assert count(executor=Inline(), checkpoint=state) == right("a prime each")
    with pytest.raises(Stopped):
        count(executor=Inline(damaged=[1, 2], allowed=5), checkpoint=state)
    with pytest.raises(
        CheckpointError, match=r"held residues of no one number, so it was damaged or forged.*remove it"
    ):
        count(executor=Inline(), checkpoint=state)
    assert not state.exists()


def flip_once(marker, *arguments):
    """Compute residues, that of prime 3 wrong the first time that anybody does."""
    origin, residues = _exact.residues_of(*arguments)
    with contextlib.suppress(FileExistsError):
        if arguments[1] <= 3 < arguments[2]:
            with open(marker, "x") as file:
                file.write(origin)
            residues[3 - arguments[1]] ^= 1 << 17
    return origin, residues


def test_the_worker_of_a_wrong_residue_is_named(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    lattice = lattices.square(26, 26)
    count = count_independent_sets(lattice)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as dask,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
    ):
        workers = set(client.scheduler_info()["workers"])
        for name, executor in [("dask", dask), ("pool", pool)]:
            marker = tmp_path / name
            task = functools.partial(flip_once, str(marker))
            with monkeypatch.context() as patched:
                patched.setattr(
                    _exact, "Tasks", lambda executor, _, *rest, task=task: _executors.Tasks(executor, task, *rest)
                )
                with pytest.warns(RuntimeWarning) as said:
                    assert count_independent_sets(lattice, executor=executor) == count
            origin = marker.read_text()
            assert str(said[0].message).endswith(f"prime 3 by {origin}")
            if name == "dask":
                assert origin.removeprefix("worker ") in workers
            else:
                assert int(re.match(r"process (\d+) on ", origin)[1]) in pool._processes


# Parts of tori.


@pytest.mark.parametrize(
    "lattice",
    [
        TORUS,
        lattices.square(18, 200, "torus"),
        lattices.king(17, 80, "torus"),
        lattices.triangular(17, 44, "torus"),
        lattices.square(15, 300, "cylinder"),
    ],
    ids=["square", "long square", "king", "triangular", "cylinder along"],
)
def test_the_parts_of_a_residue_add_up_to_it(lattice):
    plan = plan_of(lattice)
    assert plan.parts > 1
    total, modulus = 0, plan.moduli()[0]
    for part in range(plan.parts):
        (found,) = plan.residues(0, 1, part, Job())
        assert 0 <= found < modulus
        total += found
    assert total % modulus == residue(lattice, modulus)
    with pytest.raises(ValueError, match="`part` must be a range of the plan's primes"):
        plan.residues(0, 1, plan.parts, Job())


def test_what_has_no_seams_is_one_part():
    for lattice in (
        lattices.square(30, 30),
        lattices.king(24, 24),
        lattices.square(3, 3, "torus"),
        lattices.kagome(4, 4),
    ):
        assert plan_of(lattice).parts == 1
    assert plan_of(TORUS, "polynomial").parts == 1
    assert plan_of(lattices.square(30, 30, "torus")).parts == 1024


def test_a_torus_is_shared_out_by_seams_with_full_lanes_and_goes_on_from_a_stop(tmp_path):
    state, heard = tmp_path / "state", []
    plan = plan_of(TORUS)
    groups = -(-plan.primes // plan.side_by_side)
    whole = Inline(2)
    count = count_independent_sets(TORUS, executor=whole, progress=lambda *told: heard.append(told))
    assert count == right("parts")
    assert len(whole.tasks) == groups * plan.parts > 2
    assert max(len(group) for group, _ in whole.tasks) == plan.side_by_side == 8
    assert heard[-1] == (plan.primes * plan.parts,) * 2
    for how in ({"executor": Inline(2)}, {}):  # on an executor again, and here
        with pytest.raises(Stopped):
            count_independent_sets(TORUS, executor=Inline(2, allowed=3), checkpoint=state)
        heard.clear()
        assert (
            count_independent_sets(TORUS, checkpoint=state, progress=lambda *told: heard.append(told), **how) == count
        )
        assert not state.exists()
        if how:
            assert len(how["executor"].tasks) == groups * plan.parts - 3
        else:
            assert heard[0][0] > 3, "what was done is not done again"
    with pytest.raises(Stopped):
        count_independent_sets(TORUS, executor=Inline(2, allowed=3), checkpoint=state)
    with pytest.raises(CheckpointError, match="belongs to another job"):
        count_independent_sets(lattices.square(19, 41, "torus"), checkpoint=state)
    with pytest.raises(CheckpointError, match="belongs to another job"):
        count_independent_sets(lattices.square(19, 41, "torus"), executor=Inline(), checkpoint=state)


def test_an_executor_goes_on_with_the_whole_residues_of_a_torus(tmp_path):
    state, plan = tmp_path / "state", plan_of(TORUS)
    kept = [right("parts") % modulus if i < 8 else None for i, modulus in enumerate(plan.moduli()[: plan.primes])]
    plan.save(str(state), False, kept)
    rest = Inline(2)
    assert count_independent_sets(TORUS, executor=rest, checkpoint=state) == right("parts")
    assert {prime for group, _ in rest.tasks for prime in group} == set(range(8, plan.primes))
    assert not state.exists()


def test_one_worker_has_all_primes_unless_they_are_saved_or_watched(tmp_path):
    lattice = lattices.square(26, 26)
    for how, alone in [({}, True), ({"checkpoint": tmp_path / "state"}, False), ({"progress": lambda *_: None}, False)]:
        for workers in (1, 2):
            executor = Inline(workers)
            assert count_independent_sets(lattice, executor=executor, **how) == count_independent_sets(lattice)
            assert (len(executor.tasks) == 1) == (alone and workers == 1)
    unknown = Inline()
    del unknown._max_workers
    count_independent_sets(lattice, executor=unknown)
    assert len(unknown.tasks) > 1


# Clients and workers that are killed.

CLIENT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from quincunx import lattices
from quincunx.counting import count_independent_sets
def progress(done, total):
    print("group", done, total, flush=True)
    if done == 2:
        sys.stdin.readline()  # for ever
with ThreadPoolExecutor(1) as pool:
    count_independent_sets(lattices.square(30, 30), executor=pool, checkpoint=sys.argv[1], progress=progress)
"""


def test_a_client_that_is_killed_has_saved_its_first_group(python, tmp_path):
    state, lattice = tmp_path / "state", lattices.square(30, 30)
    client = python(CLIENT, str(state), stdin=subprocess.PIPE)
    assert client.stdout.readline().startswith("group 1 ")
    total = int(client.stdout.readline().split()[2])
    client.kill()
    client.wait()
    assert state.stat().st_size < 4096
    rest = Inline()
    assert count_independent_sets(lattice, executor=rest, checkpoint=state) == count_independent_sets(lattice)
    assert len(rest.tasks) == total - 1
    assert min(group.start for group, _ in rest.tasks) == 1


def deadly(*arguments):
    """Compute residues, but die of those of one prime."""
    if arguments[1] == 3:
        time.sleep(1.0)  # what came before is handed over
        os._exit(3)
    return _exact.residues_of(*arguments)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no worker")
def test_workers_that_die_again_and_again_end_a_job_that_says_what_is_saved(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    state, lattice = tmp_path / "state", lattices.square(26, 26)
    monkeypatch.setattr(_exact, "Tasks", lambda executor, _, *rest: _executors.Tasks(executor, deadly, *rest))
    start = time.monotonic()
    with (
        distributed.LocalCluster(1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
        pytest.raises(
            WorkerError, match=r"was given up: 4 workers in a row died.*; \d+ of \d+ residues are saved in "
        ) as e,
    ):
        count_independent_sets(lattice, executor=executor, checkpoint=state)
    assert time.monotonic() - start < 120
    assert str(state) in str(e.value)
    monkeypatch.undo()
    rest = Inline()
    assert count_independent_sets(lattice, executor=rest, checkpoint=state) == count_independent_sets(lattice)
    saved, total = map(int, re.search(r"(\d+) of (\d+) residues", str(e.value)).groups())
    assert saved >= 1
    assert len(rest.tasks) == total - saved


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no worker")
def test_workers_that_are_killed_six_times_end_a_job_or_let_it_end(tmp_path):
    distributed = pytest.importorskip("distributed")
    state, lattice = tmp_path / "state", lattices.square(34, 34)
    killed, over, ended = [], threading.Event(), None
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):

        def killing():
            while len(killed) < 12 and not over.wait(2.0):
                for nanny in cluster.workers.values():
                    with contextlib.suppress(Exception):
                        os.kill(nanny.pid, 9)
                        killed.append(nanny.pid)

        thread = threading.Thread(target=killing)
        thread.start()
        try:
            count = count_independent_sets(lattice, executor=executor, checkpoint=state)
        except WorkerError as error:
            ended = str(error)
            count = count_independent_sets(lattice, checkpoint=state)
        finally:
            over.set()
            thread.join()
    assert len(killed) >= 6
    saved = rf"was given up: 4 workers in a row died.*; \d+ of \d+ residues are saved in {state}"
    assert ended is None or re.search(saved, ended)
    assert count == count_independent_sets(lattice)
    assert not state.exists()


# Sizes.


def test_wide_squares_have_the_forecast_of_the_kernel_that_counts_them():
    vectors = {}
    for width in (47, 48, 49, 50, 55, 57):
        cost = estimate_cost(lattices.square(width, width), threads=1)
        assert cost.engine == "square reflection"
        vectors[width] = cost.states
    golden = (1 + 5**0.5) / 2
    for one, other in ((47, 48), (48, 49), (49, 50)):
        assert 0.85 < vectors[other] / vectors[one] / golden < 1.15
    with pytest.raises(TooLargeError, match=r"the vector of partial sums needs .* bytes") as refused:
        count_independent_sets(lattices.square(50, 50), memory_limit=100 * 10**9)
    assert 120e9 < refused.value.needed < 145e9
    for boundary in ("free", "cylinder"):
        with pytest.raises(TooLargeError, match=r"needs .* bytes") as refused:
            estimate_cost(lattices.square(58, 58, boundary))
        assert refused.value.needed > 8 * 10**12 / 2


@pytest.mark.parametrize(("lattice", "largest"), [(lattices.square, 32), (lattices.king, 31)], ids=["square", "king"])
def test_tori_past_thirty_have_a_forecast_and_are_refused_by_memory(lattice, largest, monkeypatch):
    # By the rates of the engines alone: the smaller ones would be begun to see how fast this machine is.
    monkeypatch.setattr(_independent_sets, "_may_be_tried", lambda held, limit: False)
    costs = {size: estimate_cost(lattice(size, size, "torus"), threads=1) for size in range(29, largest + 1)}
    assert len({cost.engine for cost in costs.values()}) == 1
    for size in range(30, largest + 1):
        # A ninth prime takes less time alone than five of eight side by side.
        assert 2 < costs[size].seconds / costs[size - 1].seconds < 5
        assert costs[size].bytes < 8 * 8 * 3 * costs[size].states
    with pytest.raises(TooLargeError, match=r"needs .* bytes, the limit is") as refused:
        count_independent_sets(lattice(31, 31, "torus"), memory_limit=10**6)
    assert refused.value.needed < 10**9
    with pytest.raises(TooLargeError, match="a list of the seams that rows are closed along needs") as refused:
        estimate_cost(lattice(40, 40, "torus"))
    assert refused.value.needed < 10**10
