"""Files hold data and nothing else, and are there wholly or not at all."""

import json
import os
import stat

import numpy as np
import pytest

from quincunx import _npz
from quincunx.factorization import PoissonFactorization
from quincunx.privacy import Budget, Release, privatize


class Payload:
    """Runs a program where it is unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


def poisoned(path, trace):
    """Replace the arrays of an archive, one at a time, by objects; yield the path after each."""
    with np.load(path) as arrays:
        right = dict(arrays)
    for name in right:
        objects = np.empty(1, dtype=object)
        objects[0] = Payload(trace)
        np.savez(path, **(right | {name: objects}))
        yield name


def test_no_loader_runs_what_an_archive_holds(tmp_path):
    trace, release, model = tmp_path / "trace", tmp_path / "release.npz", tmp_path / "model.npz"
    privatize([[3, 0, 1], [7, 1, 2]], epsilon=1.0).save(release)
    PoissonFactorization(1, inference="vi", n_chains=1, max_iter=5000, tol=1e-3, random_state=0).fit(
        [[3, 0], [7, 1]]
    ).save(model)
    for path, load in ((release, Release.load), (model, PoissonFactorization.load)):
        names = 0
        for _name in poisoned(path, trace):
            try:
                load(path)
            except ValueError:
                names += 1  # arrays that are read only where they are needed may be left alone
            assert not trace.exists(), f"{load.__qualname__} unpickled `{_name}`"
        assert names >= 2


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_a_fitted_model_of_another_format_is_refused_by_its_number(tmp_path):
    path = tmp_path / "fit.npz"
    model = PoissonFactorization(2, n_warmup=2, n_draws=2, n_chains=1, random_state=1)
    model.fit(np.arange(12).reshape(3, 4), alpha=0.0).save(path)
    with np.load(path) as arrays:
        right = dict(arrays)
    for number in (2, 4):
        header = json.loads(str(right["factorization"])) | {"format": number}
        np.savez(path, **(right | {"factorization": np.array(json.dumps(header))}))
        with pytest.raises(ValueError, match=f"its format is {number}, this version reads 3"):
            PoissonFactorization.load(path)


def test_a_reader_of_the_old_file_keeps_it_while_a_new_one_takes_its_place(tmp_path):
    path = tmp_path / "kept.npz"
    _npz.write_npz(path, {"a": np.arange(5)}, ".kept-")
    with open(path, "rb") as old:
        before = old.read(20)
        _npz.write_npz(path, {"a": np.arange(50_000)}, ".kept-")
        rest = old.read()
        with np.load(path) as new:
            assert len(new["a"]) == 50_000
        old.seek(0)
        assert old.read() == before + rest  # the old file was not written into
        old.seek(0)
        with np.load(old) as arrays:
            assert arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["kept.npz"]


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "kept.npz"
    _npz.write_npz(path, {"a": np.arange(5)}, ".kept-")

    def fails(file):
        file.write(b"half")
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError):
        _npz.write_whole(path, fails, ".kept-", ".npz")
    with np.load(path) as arrays:
        assert arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["kept.npz"]


def test_an_interrupt_behind_the_last_step_is_an_interrupt(tmp_path, monkeypatch):
    def replace(old, new, move=os.replace):
        move(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        _npz.write_whole(tmp_path / "kept", lambda file: file.write(b"whole"), ".kept-", "")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]


def test_what_is_no_file_is_written_into_and_stays_what_it_was(tmp_path):
    """A pipe stands for `/dev/null` and `/dev/stdout`: root could put a file in their place, and break the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _npz.write_whole(pipe, lambda file: file.write(b"through"), ".kept-", ".npz")
        assert os.read(reader, 100) == b"through"
        with pytest.raises(ValueError, match="it is not a file"):
            Budget.open(pipe, 1.0)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_an_archive_can_be_thrown_away(tmp_path):
    """A null device of the test's own where root could replace the machine's."""
    null = os.devnull
    if os.geteuid() == 0:
        null = tmp_path / "null"
        try:
            os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            open(null, "wb").close()
        except OSError as reason:
            pytest.skip(f"no device can be made here: {reason}")
    privatize([[1, 2]], epsilon=1.0).save(null)
    _npz.write_npz(null, {"a": np.arange(5)}, ".kept-")
    assert stat.S_ISCHR(os.stat(null).st_mode)


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_mask_is_left_alone(tmp_path, monkeypatch):
    """Another thread's files are made with the mask of the process, which is never another for a moment."""
    told, fsync, replace = [], os.fsync, os.replace

    def synced(handle):
        told.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size)
        fsync(handle)

    def replaced(source, target):
        told.append("name")
        replace(source, target)

    mask = os.umask(0o027)
    try:
        with monkeypatch.context() as patches:
            patches.setattr(os, "umask", None)
            patches.setattr(os, "fsync", synced)
            patches.setattr(os, "replace", replaced)
            for name in ("first", "first", "second"):
                _npz.write_whole(tmp_path / name, lambda file: file.write(b"content"), ".kept-", ".txt")
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640
    finally:
        os.umask(mask)
    assert told == [7, "name", "folder"] * 3
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]
