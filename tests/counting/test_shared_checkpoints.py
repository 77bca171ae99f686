"""Checkpoints between processes: one job at a time, files of their owner alone, a resumed job within its own limit."""

import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from quincunx import lattices
from quincunx.counting import count_independent_sets, hard_core
from quincunx.errors import CheckpointError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and signals as on Unix")

LONG = lattices.square(22, 200)

COUNT = """
import sys
from quincunx import lattices
from quincunx.counting import count_independent_sets
count = count_independent_sets(lattices.square(22, {cols}), checkpoint=sys.argv[1], checkpoint_interval=0.02, threads=1,
                               progress=lambda done, total: print("working", flush=True))
print(count % 10**9)
"""


class Stopped(Exception):
    pass


def stop_after(share):
    def progress(done, total):
        if done > share * total:
            raise Stopped

    return progress


@pytest.fixture(scope="module")
def long_count():
    return count_independent_sets(LONG)


def test_a_second_job_on_a_checkpoint_hears_who_works_on_it(python, tmp_path):
    state = tmp_path / "state"
    first = python(COUNT.format(cols=4000), str(state))
    assert first.stdout.readline() == "working\n"
    for executor in (None, ThreadPoolExecutor(1)):
        with pytest.raises(CheckpointError, match=f"state: is in use by process {first.pid} on .*; wait for it, stop"):
            count_independent_sets(lattices.square(22, 4000), checkpoint=state, executor=executor)
    first.kill()
    first.wait(timeout=30)
    # The lock of a process that is gone is nobody's; what it saved is still there.
    with pytest.raises(Stopped):
        count_independent_sets(lattices.square(22, 4000), checkpoint=state, progress=stop_after(-1))
    assert not (tmp_path / "state.lock").exists()


def test_two_threads_cannot_share_one_either(tmp_path):
    state, begun, go_on = tmp_path / "state", threading.Event(), threading.Event()

    def progress(done, total):
        begun.set()
        go_on.wait()  # with one thread for all jobs the other asks late: this one still holds the file
        raise Stopped

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(count_independent_sets, lattices.square(22, 300), checkpoint=state, progress=progress)
        assert begun.wait(30)
        try:
            with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()}"):
                count_independent_sets(LONG, checkpoint=state)
        finally:
            go_on.set()
        assert isinstance(job.exception(timeout=30), Stopped)


def test_a_checkpoint_is_its_owner_s_alone_and_leaves_nothing_beside_it(tmp_path, long_count):
    state = tmp_path / "state"
    (tmp_path / "state.0123456789abcdef.part").write_bytes(b"left by a job that was killed while it saved")
    with pytest.raises(Stopped):
        count_independent_sets(LONG, checkpoint=state, checkpoint_interval=0.02, progress=stop_after(0.3))
    assert os.listdir(tmp_path) == ["state"]
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert count_independent_sets(LONG, checkpoint=state) == long_count
    assert os.listdir(tmp_path) == []


def test_no_link_is_followed(tmp_path):
    state, mine = tmp_path / "state", tmp_path / "mine"
    mine.write_text("precious")
    for name in ("state", "state.lock"):
        (tmp_path / name).symlink_to(mine)
        with pytest.raises(CheckpointError, match="it is a link"):
            count_independent_sets(LONG, checkpoint=state, progress=stop_after(-1))
        assert mine.read_text() == "precious"
        (tmp_path / name).unlink()
    os.mkfifo(state)
    with pytest.raises(CheckpointError, match="it is not a file"):
        count_independent_sets(LONG, checkpoint=state)


RESUMED = """
import resource, sys
from quincunx import lattices
from quincunx.counting import count_independent_sets, hard_core
class Stopped(Exception): pass
def stop(done, total):
    if len(sys.argv) > 3 and done > float(sys.argv[3]) * total: raise Stopped
lattice = lattices.king(25, 25, "cylinder")
count_independent_sets(lattices.square(6, 6))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(hard_core(lattice, 2, checkpoint=sys.argv[1], checkpoint_interval=0.01, progress=stop,
                    memory_limit=int(sys.argv[2])) % 10**9)
except Stopped:
    print("stopped")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_resumed_job_keeps_to_its_own_limit(output, tmp_path):
    """Eight lanes of 514229 states are 33 MB; the job goes on in one lane of 4.1."""
    state = tmp_path / "state"
    assert output(RESUMED, str(state), str(10**9), "0.2").split()[0] == "stopped"
    assert state.stat().st_size > 31 << 20
    count, peak = output(RESUMED, str(state), str(4 << 20)).split()
    assert int(count) == hard_core(lattices.king(25, 25, "cylinder"), 2) % 10**9
    assert int(peak) << 10 < 14 << 20, f"{int(peak) >> 10} MB more"


@pytest.mark.slow
@pytest.mark.parametrize("repeat", range(50))
def test_of_many_jobs_on_one_checkpoint_one_works_and_all_can_be_killed(python, tmp_path, repeat, long_count):
    state = tmp_path / "state"
    jobs = [python(COUNT.format(cols=200), str(state), stdin=subprocess.DEVNULL) for _ in range(3)]
    if repeat % 2:
        jobs[0].stdout.readline()
        jobs[0].send_signal(signal.SIGKILL)
    for job in jobs:
        printed, complaints = job.communicate(timeout=120)
        ended = printed.splitlines()[-1:]
        assert (
            (job.returncode == 0 and ended == [str(long_count % 10**9)])
            or "is in use by process" in complaints
            or job.returncode == -signal.SIGKILL
        ), complaints
    assert count_independent_sets(LONG, checkpoint=state) == long_count
    assert os.listdir(tmp_path) == []
