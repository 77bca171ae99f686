"""Fits that are kept in a file: stopped anywhere and gone on with, they draw what an undisturbed fit draws."""

import errno
import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from tests.factorization.chains import assert_same_runs
from tests.interrupts import uncollected

from quincunx.errors import CheckpointError
from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonDynamics,
    PoissonFactorization,
    PoissonTensorFactorization,
)
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings(
    "ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning"
)

RNG = np.random.default_rng(1)
RELEASE = privatize(RNG.poisson(RNG.gamma(0.5, 1.0, (12, 9))), epsilon=1.0, insecure_seed=3)
NETWORK = privatize(RNG.poisson(1.0, (8, 8)), epsilon=1.0, insecure_seed=3)
TENSOR = privatize(RNG.poisson(1.0, (5, 4, 3)), epsilon=1.0, insecure_seed=3)
HOW = {"n_warmup": 10, "n_draws": 10, "thin": 3, "max_iter": 200, "tol": 1e-5, "n_chains": 3, "random_state": 7}
ASCENT = {"inference": "vi"}
FITS = {
    **{m: (PoissonFactorization(2, method=m, **HOW), RELEASE) for m in ("collapsed", "event", "split", "bessel")},
    **{m: (PoissonFactorization(2, method=m, **HOW, **ASCENT), RELEASE) for m in ("auto", "bessel-mean", "published")},
    "topics": (PoissonFactorization(2, topics="dirichlet", hyperpriors="factor", **HOW), RELEASE),
    "layers": (PoissonFactorization((3, 2), topics="dirichlet", **HOW), RELEASE),
    "by row": (PoissonFactorization(2, hyperpriors="row", **HOW), RELEASE),
    "ascent by row": (PoissonFactorization(2, hyperpriors="row", **HOW, **ASCENT), RELEASE),
    "undirected": (PoissonBlockmodel(2, directed=False, **HOW), NETWORK),
    "core": (PoissonTensorFactorization([2, 3, 2], core="dense", **HOW), TENSOR),
    "overdispersed": (PoissonTensorFactorization(2, likelihood="negative_binomial", **HOW), TENSOR),
    "overdispersed ascent": (PoissonFactorization(2, likelihood="negative_binomial", **HOW, **ASCENT), RELEASE),
    "dynamics": (PoissonDynamics(2, delta="learnt", **HOW), RELEASE),
}
MODEL, DATA = FITS["collapsed"]

each_fit = pytest.mark.parametrize("name", FITS)


class Enough(Exception):
    pass


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state.npz"


def stopped_after(calls):
    """Stop after so many sweeps; or calls of a progress function, which go by the time."""
    left = iter(range(calls))

    def told(*_):
        if next(left, None) is None:
            raise Enough

    return told


def checked(done, total):
    assert 0 <= done <= total


@each_fit
def test_a_fit_stopped_again_and_again_draws_the_same(name, file):
    model, data = FITS[name]
    whole, moments, stops = clone(model).fit(data), random.Random(1), 0
    while True:
        fit = clone(model).set_params(progress=checked, callback=stopped_after(moments.randrange(1, 12)))
        try:
            fit.fit(data, checkpoint=file, checkpoint_interval=moments.choice([0, 0.001, 60]))
            break
        except Enough:
            stops += 1
            assert file.exists()
    assert stops
    assert_same_runs(fit, whole)
    assert list(file.parent.iterdir()) == []


@each_fit
def test_tasks_of_an_executor_are_as_short_as_asked_and_do_not_show(name, file):
    model, data = FITS[name]
    with ThreadPoolExecutor(2) as pool:
        fit = clone(model).fit(data, checkpoint=file, checkpoint_interval=0.002, executor=pool)
    assert_same_runs(fit, clone(model).fit(data))
    assert not file.exists()


def test_a_fit_goes_on_elsewhere(file):
    """Stopped here, on an executor and here again."""
    model = clone(MODEL).set_params(n_draws=400)
    whole = clone(model).fit(DATA)
    with pytest.raises(Enough):
        clone(model).set_params(callback=stopped_after(10)).fit(DATA, checkpoint=file, checkpoint_interval=0)
    with ProcessPoolExecutor(2) as pool, pytest.raises(Enough):
        clone(model).set_params(progress=stopped_after(0)).fit(DATA, checkpoint=file, executor=pool)
    with np.load(file) as kept:
        assert any(json.loads(str(kept["checkpoint"]))["ended"])
    assert_same_runs(clone(model).set_params(threads=1).fit(DATA, checkpoint=file), whole)


KILLED = """
import sys
import numpy as np
from quincunx.factorization import PoissonFactorization
counts = np.arange(600).reshape(30, 20) % 7
how = {"inference": sys.argv[2], "n_warmup": 200, "n_draws": 300, "thin": 1, "tol": 0, "max_iter": 600, "n_chains": 2}
model = PoissonFactorization(3, **how, random_state=1, callback=lambda *_: print("sweep", flush=True))
model.fit(counts, alpha=0.5, checkpoint=sys.argv[1] if len(sys.argv) > 3 else None, checkpoint_interval=0.01)
print(model.embedding_.tobytes().hex(), model.components_.tobytes().hex())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9")
@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_fit_killed_at_a_random_sweep_draws_the_same(python, file, inference, seed, monkeypatch, capsys):
    moments = random.Random(seed)
    for _ in range(2 if seed == 1 else 3):
        process = python(KILLED, str(file), inference, "kept")
        for _ in range(moments.randrange(1, 350)):
            assert process.stdout.readline() == "sweep\n"
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert file.exists()
    with np.load(file) as kept:
        saved = sum(run["iteration"] for run in json.loads(str(kept["checkpoint"]))["runs"])

    def told(*arguments):
        monkeypatch.setattr(sys, "argv", ["-c", str(file), inference, *arguments])
        exec(KILLED, {})
        return capsys.readouterr().out.splitlines()

    *sweeps, found = told("kept")
    assert len(sweeps) == (1000 if inference == "mcmc" else 1200) - saved  # what was saved is not done again
    assert found == told()[-1]
    assert not file.exists()


@uncollected()
def test_an_interrupt_saves(file):
    model = clone(MODEL).set_params(n_draws=200_000)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA, checkpoint=file)
    timer.join()
    with np.load(file) as kept:
        runs = json.loads(str(kept["checkpoint"]))["runs"]
    assert [run["iteration"] for run in runs] == [run.iteration for run in model._posterior.runs]
    assert runs[0]["iteration"] > 0


def test_a_stop_in_the_warm_up_is_kept_though_the_estimator_is_not_fitted(file):
    model = clone(MODEL).set_params(n_warmup=3000)
    whole = clone(model).fit(DATA)
    fit = clone(model).set_params(callback=stopped_after(3))
    with pytest.raises(Enough):
        fit.fit(DATA, checkpoint=file)
    assert not hasattr(fit, "components_")
    assert_same_runs(fit.set_params(callback=None).fit(DATA, checkpoint=file), whole)


def test_a_warm_start_is_kept_too(file):
    whole = clone(MODEL).set_params(n_draws=40).fit(DATA)
    first = clone(MODEL).fit(DATA)
    path = file.with_name("first.npz")
    first.save(path)
    with pytest.raises(Enough):
        first.set_params(n_draws=30, warm_start=True, callback=stopped_after(5)).fit(DATA, checkpoint=file)
    again = PoissonFactorization.load(path).set_params(n_draws=30, warm_start=True)
    assert_same_runs(again.fit(DATA, checkpoint=file), whole)


def test_the_file_stays_until_the_fit_has_been_looked_at(file, monkeypatch):
    def stopped(self):
        raise Enough

    whole, fit = clone(MODEL).fit(DATA), clone(MODEL)
    with monkeypatch.context() as patch:
        patch.setattr(PoissonFactorization, "misfit_", property(stopped))
        with pytest.raises(Enough):
            fit.fit(DATA, checkpoint=file, checkpoint_interval=0)
    assert_same_runs(fit, whole)
    seen = []
    again = clone(MODEL).set_params(callback=lambda *_: seen.append(1))
    assert_same_runs(again.fit(DATA, checkpoint=file), whole)
    assert len(seen) < 10  # of 120 sweeps
    assert not file.exists()


def test_randomness_that_nobody_chose_is_that_of_the_file(file):
    model = clone(MODEL).set_params(random_state=None)
    with pytest.raises(Enough):
        clone(model).set_params(callback=stopped_after(3)).fit(DATA, checkpoint=file)
    with np.load(file) as kept:
        keys = [tuple(run["key"]) for run in json.loads(str(kept["checkpoint"]))["runs"]]
    assert [run.key for run in model.fit(DATA, checkpoint=file)._posterior.runs] == keys


@pytest.fixture
def kept(file):
    with pytest.raises(Enough):
        clone(MODEL).set_params(callback=stopped_after(90)).fit(DATA, checkpoint=file, checkpoint_interval=0)
    return file


@pytest.mark.parametrize(
    "changed",
    [
        {"random_state": 8},
        {"n_components": 3},
        {"n_draws": 11},
        {"n_chains": 2},
        {"method": "event"},
        {"prior_shape": 0.2},
        {"inference": "vi"},
        {"likelihood": "negative_binomial"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_parameters_are_refused_and_the_file_stays(kept, changed):
    before = kept.read_bytes()
    with pytest.raises(CheckpointError, match=r"belongs to another fit: .*parameters.*name another file, or remove it"):
        clone(MODEL).set_params(**changed).fit(DATA, checkpoint=kept)
    assert kept.read_bytes() == before


def test_other_data_are_refused(kept):
    values = np.asarray(DATA).copy()
    values[0, 0] += 1
    for data, how in [(values, {"alpha": DATA.alpha}), (DATA, {"mask": values > 5}), (values, {"alpha": 0.3})]:
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            clone(MODEL).fit(data, checkpoint=kept, **how)


def test_what_does_not_decide_the_draws_may_change(kept):
    whole = clone(MODEL).fit(DATA)
    again = clone(MODEL).set_params(threads=1, progress=lambda *_: None)
    assert_same_runs(again.fit(DATA, checkpoint=kept, draws_dir=kept.parent), whole)


def rewritten(path, change):
    with np.load(path) as kept:
        arrays = dict(kept)
    header = json.loads(str(arrays["checkpoint"]))
    change(header, arrays)
    np.savez(path, **arrays | {"checkpoint": np.array(json.dumps(header))})


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(format=99),
        lambda header, arrays: header["runs"].pop(),
        lambda header, arrays: header["ended"].pop(),
        lambda header, arrays: header["runs"][0].update(iteration=-1),
        lambda header, arrays: header["runs"][0].update(iteration=10**6),
        lambda header, arrays: arrays.pop("run_0_kept"),
        lambda header, arrays: arrays.update(run_0_kept=arrays["run_0_kept"] + 10**6),
        lambda header, arrays: arrays.update(run_0_draws_0=np.zeros((3, 1, 1))),
        lambda header, arrays: arrays.update(run_0_draw_statistics_log_likelihood=np.zeros(10**4)),
        lambda header, arrays: arrays.update(run_1_state_factor_0=np.zeros((2, 2))),
        lambda header, arrays: arrays.update(run_1_state_factor_0=arrays["run_1_state_factor_0"] * np.nan),
        lambda header, arrays: header.clear(),
    ],
)
def test_a_forged_file_is_refused_in_words(kept, change):
    rewritten(kept, change)
    with pytest.raises(CheckpointError, match=r"checkpoint .*state.npz: is damaged, or none of a fit .*remove it"):
        clone(MODEL).fit(DATA, checkpoint=kept)
    assert kept.exists()


@pytest.mark.parametrize("damage", [b"", b"this is no archive", None])
def test_a_damaged_file_is_refused_and_stays(kept, damage):
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(bytes(content) if damage is None else damage)
    before = kept.read_bytes()
    with pytest.raises(CheckpointError, match="remove it"):
        clone(MODEL).fit(DATA, checkpoint=kept)
    assert kept.read_bytes() == before


def test_two_fits_at_once_cannot_share_a_file(file):
    begun, go_on = threading.Event(), threading.Event()

    def progress(done, total):
        begun.set()
        go_on.wait()
        raise Enough

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(clone(MODEL).set_params(progress=progress).fit, DATA, checkpoint=file)
        assert begun.wait(30)
        try:
            with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()}"):
                clone(MODEL).fit(DATA, checkpoint=file)
        finally:
            go_on.set()
        with pytest.raises(Enough):
            job.result()


def test_what_cannot_be_written_is_said_before_the_work(tmp_path):
    for path in (tmp_path / "missing" / "state.npz", tmp_path):
        with pytest.raises((CheckpointError, ValueError), match="checkpoint"):
            clone(MODEL).set_params(n_draws=10**6).fit(DATA, checkpoint=path)
    with pytest.raises(TypeError, match="checkpoint"):
        clone(MODEL).fit(DATA, checkpoint=3)
    with pytest.raises(ValueError, match="checkpoint_interval"):
        clone(MODEL).fit(DATA, checkpoint=tmp_path / "state.npz", checkpoint_interval=-1)


def test_a_disk_that_fills_up_ends_no_fit(file, monkeypatch):
    sync, calls = os.fsync, iter(range(10**9))

    def full(handle):
        if next(calls) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match=r"state.npz: cannot be written: .*No space left"):
        fit = clone(MODEL).fit(DATA, checkpoint=file, checkpoint_interval=0)
    monkeypatch.undo()
    assert_same_runs(fit, clone(MODEL).fit(DATA))
    assert list(file.parent.iterdir()) == []


def test_a_file_that_is_gone_or_cannot_be_removed_ends_no_fit(file, monkeypatch):
    whole = clone(MODEL).fit(DATA)

    def remove(sweep, _):
        file.unlink(missing_ok=True)

    assert_same_runs(clone(MODEL).set_params(callback=remove).fit(DATA, checkpoint=file), whole)

    def denied(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "unlink", denied)
    for _ in range(2):  # the file is free, and has all of the fit
        with pytest.warns(RuntimeWarning, match=r"state.npz: cannot be removed: .*Permission denied"):
            assert_same_runs(clone(MODEL).fit(DATA, checkpoint=file), whole)


def test_writing_takes_a_small_part_of_the_time(file, monkeypatch):
    from quincunx._inference import _checkpoint

    spent = []
    write = _checkpoint.Checkpoint._write

    def slow(self, runs):
        start = time.monotonic()
        write(self, runs)
        time.sleep(0.02)
        spent.append(time.monotonic() - start)

    monkeypatch.setattr(_checkpoint.Checkpoint, "_write", slow)
    start = time.monotonic()
    clone(MODEL).set_params(n_draws=2000).fit(DATA, checkpoint=file, checkpoint_interval=0.001)
    assert sum(spent[1:-1]) < 0.15 * (time.monotonic() - start)
