"""Jobs of corner tensors that are stopped and gone on with: the same proof, and nothing of another job's."""

import os
import signal
import sys
from fractions import Fraction

import pytest
from tests.interrupts import Stopped, interrupted_after

from quincunx.entropy import FaceModel, entropy_bounds
from quincunx.errors import CheckpointError

#: A second or two, most of it power steps in double-doubles.
LONG = {"lattice": "square", "digits": 38}


def stop_after(tenths):
    def progress(done, total):
        if done > tenths:
            raise Stopped

    return progress


def proof(bounds):
    """Return all that was proved, and how, but for the time."""
    return bounds, {name: value for name, value in bounds.evidence.items() if name != "seconds"}


@pytest.fixture(scope="module")
def whole():
    return proof(entropy_bounds(**LONG))


def stopped(state, tenths=100, **how):
    with pytest.raises(Stopped):
        entropy_bounds(**(LONG | how), checkpoint=state, checkpoint_interval=0.01, progress=stop_after(tenths))
    return state.read_bytes()


def test_a_job_stopped_twice_gives_the_same_proof(tmp_path, whole):
    state = tmp_path / "state"
    early = stopped(state, 0)
    late = stopped(state, 200)
    assert early != late
    assert proof(entropy_bounds(**LONG, checkpoint=str(state))) == whole
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "how",
    [
        {"model": "matchings", "digits": 32},
        {"lattice": "honeycomb", "model": "matchings", "digits": 36},  # by its line graph
        {"model": "widom-rowlinson", "digits": 12},
    ],
)
def test_jobs_of_other_models_go_on(tmp_path, how):
    state = tmp_path / "state"
    kept = stopped(state, 60, **how)
    with pytest.raises(CheckpointError, match="belongs to another job"):
        entropy_bounds(**(LONG | how | {"activity": Fraction(9, 10)}), checkpoint=state)
    assert state.read_bytes() == kept
    again = entropy_bounds(**(LONG | how), checkpoint=state)
    assert os.listdir(tmp_path) == []
    assert proof(again) == proof(entropy_bounds(**(LONG | how), checkpoint=state))


def test_weights_of_faces_tell_jobs_apart(tmp_path):
    state = tmp_path / "state"
    model = FaceModel(bonds=[[2, 1], [1, 2]])
    stopped(state, 20, model=model)
    for other in (
        FaceModel(bonds=[[2, 1], [1, Fraction(2000001, 1000000)]]),
        FaceModel(bonds=[[[2, 1], [1, 2]], [[3, 1], [1, 3]]]),
        FaceModel(bonds=[[4, 2], [2, 4]]),
        FaceModel(bonds=[[2, 1], [1, 2]], vertices=[1, Fraction(1, 2)]),
    ):
        with pytest.raises(CheckpointError, match="belongs to another job"):
            entropy_bounds("square", model=other, digits=38, checkpoint=state)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads are sent signals as on Unix")
def test_an_interrupt_leaves_the_state_of_that_moment(tmp_path, whole):
    state = tmp_path / "state"
    for delay in (0.1, 0.3, 0.6):
        seconds, _ = interrupted_after(lambda: entropy_bounds("square", digits=60, checkpoint=state), delay)
        assert seconds < 2.0
        assert state.exists()
        assert os.listdir(tmp_path) == ["state"]
    state.unlink()
    interrupted_after(lambda: entropy_bounds(**LONG, checkpoint=state), 0.15)
    assert proof(entropy_bounds(**LONG, checkpoint=state)) == whole


KILLED = """
import sys
from quincunx.entropy import entropy_bounds
entropy_bounds("square", digits=38, checkpoint=sys.argv[1], checkpoint_interval=0.01,
               progress=lambda done, total: print(done, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_killed_job_goes_on(python, tmp_path, whole):
    state = tmp_path / "state"
    process = python(KILLED, str(state))
    while int(process.stdout.readline() or 10**6) < 100:
        pass
    process.kill()
    process.wait(timeout=30)
    assert proof(entropy_bounds(**LONG, checkpoint=state)) == whole
    assert os.listdir(tmp_path) == []


def test_a_job_of_another_kind_or_a_damaged_file_is_refused_and_kept(tmp_path):
    state = tmp_path / "state"
    kept = stopped(state)
    for other in (
        {"digits": 39},
        {"lattice": "king"},
        {"activity": 2},
        {"max_bond_dimension": 100},
        {"bond_dimension": 9},
    ):
        with pytest.raises(CheckpointError, match="belongs to another job"):
            entropy_bounds(**(LONG | other), checkpoint=state)
    for damaged in (kept[:-8], kept[:200] + b"\1" + kept[201:], kept + b"\0" * 8, b"none"):
        state.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="state"):
            entropy_bounds(**LONG, checkpoint=state)
        assert state.read_bytes() == damaged


@pytest.mark.parametrize("how", [{"lattice": "martini"}, {"lattice": "triangular"}, {"method": "ring"}, {"width": 6}])
def test_other_methods_have_no_checkpoint(tmp_path, how):
    with pytest.raises(ValueError, match="`checkpoint` must be left out"):
        entropy_bounds(**({"lattice": "square"} | how), checkpoint=tmp_path / "state")
