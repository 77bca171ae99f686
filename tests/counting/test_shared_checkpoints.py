"""Checkpoints between processes: one job at a time, files of their owner alone, a resumed job within its own limit."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.interrupts import Stopped, stop_after

from quincunx import lattices
from quincunx.counting import count_independent_sets, hard_core
from quincunx.errors import CheckpointError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and signals as on Unix")

LONG = lattices.square(22, 400)

COUNT = """
import sys
from quincunx import lattices
from quincunx.counting import count_independent_sets
count = count_independent_sets(lattices.square(22, {cols}), checkpoint=sys.argv[1], checkpoint_interval=0.02, threads=1,
                               progress=lambda done, total: print("working", flush=True))
print(count % 10**9)
"""


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


def forge(path):
    """Change one element of a vector, or else a residue, and give the file the checksum that fits."""
    words = np.fromfile(path, dtype="<u8").tolist()
    words[4 if words[-2] == 0 else -2] ^= 1
    full, checksum = 2**64 - 1, words[0]
    for word in words[:-1]:
        mixed = (checksum ^ word) * 0x9E3779B97F4A7C15 & full
        checksum = (mixed << 29 | mixed >> 35) * 0xBF58476D1CE4E5B9 & full
    np.array([*words[:-1], checksum], dtype="<u8").tofile(path)


@pytest.mark.parametrize("asked", ["a count", "an activity"])
@pytest.mark.parametrize("on_executor", [False, True])
def test_a_forged_checkpoint_is_said_to_be_one(tmp_path, asked, on_executor):
    state = tmp_path / "state"

    def job(**how):
        with ThreadPoolExecutor(1) as pool:
            how = {"executor": pool if on_executor else None, "checkpoint": state, "checkpoint_interval": 0.0} | how
            if asked == "a count":
                return count_independent_sets(lattices.square(22, 200), **how)
            return hard_core(lattices.square(14, 200), 10**6, **how)

    said = []
    for _ in range(5):  # now and then what is changed is not read again: then the answer is right
        with pytest.raises(Stopped):
            job(progress=stop_after(-1 if on_executor else 0.5))
        forge(state)
        if on_executor:  # which residue it was is found, and it is counted again
            with pytest.warns(RuntimeWarning, match=rf"was wrong, all others agree; .*by the checkpoint {state}"):
                assert job() == job(checkpoint=None, checkpoint_interval=None)
            return
        try:
            assert job() == job(checkpoint=None, checkpoint_interval=None)
        except CheckpointError as error:
            said.append(str(error))
            break
    assert re.search(r"state: held residues of no one number.*forged.*remove it", said[0])


UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]


def test_a_holder_in_another_namespace_of_processes_is_not_judged_dead(python, tmp_path):
    """Two containers with one name and one volume: neither sees the processes of the other."""
    if shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("this process may not make a namespace")
    state = tmp_path / "state"
    first = python(COUNT.format(cols=4000), str(state))
    assert first.stdout.readline() == "working\n"
    command = [*UNSHARE, sys.executable, "-c", COUNT.format(cols=4000), str(state)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert f"CheckpointError: checkpoint {state}: is in use by process {first.pid} on" in second.stderr
    assert "working" not in second.stdout


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
