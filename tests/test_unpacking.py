"""What is compressed is unpacked only where memory has room for it, and refused by the name of its file where not."""

import gzip
import importlib
import io
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse

from quincunx import _check, _npz, cli
from quincunx.errors import TooLargeError
from quincunx.factorization import PoissonFactorization
from quincunx.ldp import GaussianModel
from quincunx.privacy import LaplaceMechanism, Release, privatize
from quincunx.privacy._files import read_table

ROOM = 4_000_000  # bytes that are said to be available
LARGE = 10_000_000  # bytes that bombs unpack to


def packed_npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def bomb(path, kind):
    """Write a small file that unpacks to much, and is valid otherwise."""
    zeros = np.zeros(LARGE // 8, dtype=np.int64)
    release, whole = io.BytesIO(), privatize(np.ones((2, 3), int), epsilon=1.0, insecure_seed=1)
    whole.save(release, format="csv")
    if kind == "npz":
        path.write_bytes(packed_npz(zeros=zeros))
    elif kind == "npz in gzip":
        path.write_bytes(gzip.compress(packed_npz(zeros=zeros)))
    elif kind == "npy in gzip":
        np.save(file := io.BytesIO(), zeros)
        path.write_bytes(gzip.compress(file.getvalue()))
    elif kind == "sparse":
        scipy.sparse.save_npz(path, scipy.sparse.csr_array((zeros, zeros, [0, len(zeros)]), shape=(1, 1)))
    elif kind == "text":
        path.write_bytes(gzip.compress(b"0,0,0,0\n" * (LARGE // 8)))
    elif kind == "text in parts":  # whose last part says a length of a few bytes
        path.write_bytes(gzip.compress(b"0,0,0,0\n" * (LARGE // 8)) + gzip.compress(b"0,0,0,0\n"))
    elif kind == "release npz":
        with np.load(_saved(whole)) as arrays:
            path.write_bytes(packed_npz(**dict(arrays), mask=zeros))
    elif kind == "release csv":
        path.write_bytes(gzip.compress(release.getvalue() + b"\n" * LARGE))
    elif kind == "release json":
        whole.save(file := io.BytesIO(), format="json")
        path.write_bytes(gzip.compress(file.getvalue() + b" " * LARGE))
    elif kind == "model":
        with np.load(_saved(_model())) as arrays:
            path.write_bytes(packed_npz(**dict(arrays), more=zeros))
    assert path.stat().st_size < LARGE / 100
    return str(path)


ARROW = {
    "numbers": lambda arrow: np.zeros(LARGE // 8, dtype=np.int64),
    "one long word": lambda arrow: arrow.array(["7" * 10_000] * (LARGE // 10_000)),
    "words that begin alike": lambda arrow: arrow.array([f"{'7' * 9_990}{i:09d}" for i in range(LARGE // 10_000)]),
    "labels": lambda arrow: arrow.array(["7" * 10_000] * (LARGE // 10_000)).dictionary_encode(),
    "views": lambda arrow: arrow.array(["7" * 10_000] * (LARGE // 10_000)).cast(arrow.string_view()),
    "nothing": lambda arrow: arrow.nulls(LARGE),
}


@pytest.mark.parametrize("what", ARROW)
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_bomb_of_arrow_is_refused_by_its_name(ending, what, tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    name = str(tmp_path / f"counts.{ending}")
    table = arrow.table({"a": ARROW[what](arrow)})
    try:
        if ending == "parquet":
            alike = {"column_encoding": "DELTA_BYTE_ARRAY", "use_dictionary": False} if "alike" in what else {}
            importlib.import_module("pyarrow.parquet").write_table(table, name, compression="zstd", **alike)
        else:
            importlib.import_module("pyarrow.feather").write_feather(table, name, compression="zstd")
    except arrow.ArrowNotImplementedError:
        pytest.skip("this Arrow does not write it")
    monkeypatch.setattr(_check, "available_memory", lambda: ROOM)
    with pytest.raises(TooLargeError, match=r"what it unpacks to needs [0-9]+ bytes, the limit is 4000000") as error:
        read_table(name)
    assert str(error.value).startswith(f"{name}: ")
    assert error.value.limit == ROOM < error.value.needed
    assert arrow.default_memory_pool().max_memory() < 8 * LARGE  # with what was written


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("packed", ["zstd", "lz4", "uncompressed"])
def test_tables_of_arrow_are_read(ending, packed, tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    counts = np.arange(30_000).reshape(10_000, 3) % 11
    frame = pandas.DataFrame(counts, columns=list("abc"), index=[f"row {i}" for i in range(10_000)])
    name = str(tmp_path / f"counts.{ending}")
    if ending == "feather":
        frame = frame.reset_index(drop=True)
    getattr(frame, f"to_{ending}")(
        name, compression="none" if (ending, packed) == ("parquet", "uncompressed") else packed
    )
    table = read_table(name)
    assert np.array_equal(table.values, counts)
    assert table.axes[1].labels == ("a", "b", "c")
    with open(name, "rb+") as file:
        file.truncate(os.path.getsize(name) // 2)
    with pytest.raises((ValueError, OSError)):
        read_table(name)


def _saved(thing):
    thing.save(file := io.BytesIO())
    file.seek(0)
    return file


def _model():
    return PoissonFactorization(2, inference="vi", n_chains=1, max_iter=500, tol=1e-2, random_state=0).fit(
        np.ones((6, 4), int)
    )


TABLES = ("npz", "npz in gzip", "npy in gzip", "sparse", "text", "text in parts")
READERS = {
    **{f"table, {kind}": (read_table, kind) for kind in TABLES},
    **{f"release, {kind}": (Release.load, kind) for kind in ("release npz", "release csv", "release json", "npz")},
    "a model": (PoissonFactorization.load, "model"),
    "a model of users": (GaussianModel.load, "npz"),
}


@pytest.mark.parametrize(("read", "kind"), READERS.values(), ids=READERS)
def test_a_bomb_is_refused_by_its_name_before_its_memory_is_taken(read, kind, tmp_path, monkeypatch):
    name = bomb(tmp_path / "counts.gz", kind) if kind != "sparse" else bomb(tmp_path / "counts.npz", kind)
    monkeypatch.setattr(_check, "available_memory", lambda: ROOM)
    tracemalloc.start()
    try:
        with pytest.raises(
            TooLargeError, match=r"what it unpacks to needs [0-9]+ bytes, the limit is 4000000"
        ) as error:
            read(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(error.value).startswith(f"{name}: ")
    assert error.value.limit == ROOM < error.value.needed
    assert peak < ROOM


@pytest.mark.parametrize("kind", TABLES)
def test_a_bomb_from_a_stream_is_refused_too(kind, tmp_path, monkeypatch):
    name = bomb(tmp_path / "counts.npz", kind)
    monkeypatch.setattr(_check, "available_memory", lambda: ROOM)
    with open(name, "rb") as file, pytest.raises(TooLargeError, match=r"counts\.npz: what it unpacks to"):
        read_table(file)


@pytest.mark.parametrize("kind", ["text", "release csv", "npz in gzip"])
def test_what_memory_has_room_for_is_unpacked(kind, tmp_path, monkeypatch):
    name = bomb(tmp_path / "counts.gz", kind)
    monkeypatch.setattr(_check, "available_memory", lambda: _npz._OF_TEXT * (LARGE + 2000))
    with open(name, "rb") as file:
        content = file.read()
    assert _npz.unpacked(content, name) == gzip.decompress(content)


@pytest.mark.parametrize(
    "verb", [["privatize", "BOMB", "--epsilon", "1"], ["factorize", "BOMB"], ["ldp", "mean", "BOMB"]]
)
def test_the_command_line_refuses_a_bomb_by_its_name(verb, tmp_path, monkeypatch, capsys):
    name = bomb(tmp_path / "counts.csv.gz", "text")
    monkeypatch.setattr(_check, "available_memory", lambda: ROOM)
    target = tmp_path / "out.npz"
    with pytest.raises(SystemExit) as end:
        raise SystemExit(
            cli.main(
                [name if word == "BOMB" else word for word in verb] + (["--out", str(target)] * (verb[0] != "ldp"))
            )
        )
    assert end.value.code not in (0, None)
    assert f"{name}: what it unpacks to needs" in capsys.readouterr().err
    assert not target.exists()


def forged(header_shape, size):
    """Return an npy file whose header says a shape and that holds a number of bytes."""
    np.save(file := io.BytesIO(), np.zeros(4, dtype=np.int64))
    content = file.getvalue().replace(b"(4,)", header_shape)
    length = struct.unpack("<H", content[8:10])[0] + len(header_shape) - len(b"(4,)")
    return content[:8] + struct.pack("<H", length) + content[10:-32] + bytes(size)


@pytest.mark.parametrize("place", ["a member", "a file", "a file in gzip"])
def test_an_array_that_says_more_than_its_bytes_is_refused_before_it_is_made(place, tmp_path):
    array, path = forged(b"(2500000,)", 32), tmp_path / "counts.npz"
    if place == "a member":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("counts.npy", array)
    else:
        path.write_bytes(gzip.compress(array) if "gzip" in place else array)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"counts\.np.* is cut short: it is to hold 20000000 bytes"):
            read_table(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < ROOM


def test_files_of_today_are_read_as_before(tmp_path):
    release = privatize(np.arange(12).reshape(3, 4), epsilon=1.0, insecure_seed=1)
    for name in ("a.npz", "a.csv", "a.json", "a.csv.gz", "a.json.gz"):
        release.save(tmp_path / name)
        assert Release.load(tmp_path / name) == release
        with open(tmp_path / name, "rb") as file:
            assert Release.load(file) == release
    model = _model()
    assert np.array_equal(PoissonFactorization.load(_saved(model)).embedding_, model.embedding_)
    numbers = LaplaceMechanism(1.0, 0, 1).release(np.full(40, 0.5), insecure_seed=1)
    fitted = GaussianModel(random_state=1).fit(numbers)
    assert np.array_equal(GaussianModel.load(_saved(fitted)).draws_["mu"], fitted.draws_["mu"])
    for broken in (b"", b"PK", b"PK\x03\x04", b"\x93NUMPY"):
        with pytest.raises(ValueError, match="`source` must be a PoissonFactorization written by quincunx"):
            PoissonFactorization.load(io.BytesIO(broken))
