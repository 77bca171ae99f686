"""Releases saved and loaded, and files of counts released."""

import contextlib
import copy
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import textwrap
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from tests.saved import reread

from quincunx.errors import TooLargeError
from quincunx.factorization import PoissonFactorization
from quincunx.privacy import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeneralizedRandomizedResponse,
    GeometricMechanism,
    HadamardResponse,
    LaplaceMechanism,
    LocalHashing,
    MemoizedUnaryEncoding,
    PrivacyGuarantee,
    RandomizedResponse,
    Release,
    SubsetSelection,
    UnaryEncoding,
    _release,
    privatize,
)
from quincunx.privacy._files import privatize_file, read_table


def releases():
    return [
        privatize(np.arange(12).reshape(3, 4), epsilon=0.3, n=2),
        privatize(7, epsilon=0.3, insecure_seed=4),
        GaussianMechanism(1.0, 1e-6, radius=1, dimension=2).release([[1.0, 2.0]]),
        UnaryEncoding(1.0, 3).release([0, 1]),
    ]


@pytest.mark.parametrize("release", releases(), ids=lambda r: r.mechanism)
def test_a_saved_release_comes_back_equal_without_pickle(release, tmp_path):
    path = tmp_path / "release.npz"
    release.save(path)
    assert Release.load(path) == release
    assert Release.load(str(path)).guarantee == release.guarantee
    with np.load(path, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["release", "values"]
    assert reread(release) == release
    assert pickle.loads(pickle.dumps(release)) == release


def test_a_release_is_an_array_where_one_is_expected():
    release = privatize([[1, 2], [3, 4]], epsilon=1.0, n=3)
    assert np.asarray(release).dtype == np.int64
    assert (np.asarray(release) == release.values).all()
    assert np.array(release, dtype=float).sum() == release.values.sum()
    assert len(release) == 2
    assert np.asarray(release[0]).tolist() == release.values[0].tolist()
    assert next(iter(release)) == release[0]
    assert (release.n, release.alpha) == (3, pytest.approx(np.exp(-1 / 3)))
    assert repr(release).startswith("Release(geometric, shape=(2, 2), PrivacyGuarantee(epsilon=1.0")
    with pytest.raises(ValueError, match="read-only"):
        release.values[0, 0] = 5
    with pytest.raises(TypeError, match="`guarantee`"):
        Release([1], 0.5)


COUNTS = {
    "counts": lambda x, **how: privatize(x, epsilon=0.5, **how),
    "masked": lambda x, **how: privatize(np.ma.array(x, mask=x > 125), epsilon=0.5, **how),
    "records": lambda x, **how: privatize(x, epsilon=2.0, record_bound=90, **how),
}


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "u2", "i4", "u4", "i8", "u8", "f8", "O"])
@pytest.mark.parametrize(
    "release",
    [
        *COUNTS.values(),
        lambda x, **how: privatize(x, epsilon=np.full(5, 0.5), **how),
        lambda x, **how: GeometricMechanism(0.5, n=1, lower=3, upper=120).release(x, **how),
        lambda x, **how: DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1).release(x, **how),
    ],
    ids=[*COUNTS, "levels", "geometric", "gaussian"],
)
def test_what_is_released_does_not_depend_on_what_holds_the_counts(release, dtype, monkeypatch):
    monkeypatch.setattr("quincunx.privacy._release.PIECE", 7)  # the 40 numbers are several pieces
    for top in (4, 126):
        counts = np.minimum(np.arange(40).reshape(8, 5) * 4, top)
        given = counts.tolist() if dtype == "O" else counts.astype(dtype)
        if dtype == "O" and release is COUNTS["masked"]:
            given = counts
        for seed in range(3):
            assert release(given, insecure_seed=seed) == release(counts, insecure_seed=seed)


@pytest.mark.parametrize("release", COUNTS.values(), ids=COUNTS)
def test_the_integers_of_a_compact_release_follow_from_its_values(release, monkeypatch):
    monkeypatch.setattr("quincunx.privacy._release.PIECE", 7)
    seen = set()
    for top, scale in ((4, 1), (126, 1), (126, 300), (126, 2**26), (126, 2**40)):
        counts = np.minimum(np.arange(40).reshape(8, 5) * 4, top) * scale
        for dtype in ("i1", "i2", "u4", "i8"):
            if counts.max() > np.iinfo(dtype).max:
                continue
            for seed in range(8):
                found = release(counts.astype(dtype), insecure_seed=seed, compact=True)
                wide = release(counts, insecure_seed=seed)
                assert wide.values.dtype == np.int64
                assert (np.asarray(found.values) == np.asarray(wide.values)).all()
                assert (np.ma.getmaskarray(found.values) == np.ma.getmaskarray(wide.values)).all()
                assert (found.guarantee, found.about) == (wide.guarantee, wide.about)
                # The smallest of them, whatever the counts lay in: that may tell of two neighbors apart.
                drawn = np.ma.getdata(wide.values)
                assert found.values.dtype == smallest(drawn.min(), drawn.max())
                assert reread(found) == found
                seen.add(found.values.dtype.itemsize)
    assert release is not COUNTS["counts"] or seen == {1, 2, 4, 8}
    with pytest.raises(TypeError, match="`epsilon` must be one number beside `compact`"):
        privatize([1, 2], epsilon=[1.0, 2.0], compact=True)
    with pytest.raises(TypeError, match="`compact`"):
        privatize([1, 2], epsilon=1.0, compact=1)


def smallest(low, high):
    """The smallest signed integers that hold two numbers."""
    return next(f"i{size}" for size in (1, 2, 4, 8) if -(2 ** (8 * size - 1)) <= low and high < 2 ** (8 * size - 1))


def test_pieces_of_a_release_have_noise_of_their_own(monkeypatch):
    monkeypatch.setattr("quincunx.privacy._release.PIECE", 1000)
    for seed in (None, 3):
        for dtype in (np.int8, np.int64):
            noise = privatize(np.zeros(4000, dtype=dtype), epsilon=0.5, insecure_seed=seed).values.reshape(4, 1000)
            # Two-sided geometric noise of this level is equal with probability .17.
            assert all(0.09 < (noise[i] == noise[j]).mean() < 0.25 for i in range(4) for j in range(i))


@pytest.mark.filterwarnings("ignore")
def test_a_byte_a_count_stays_a_byte_through_release_and_fit(tmp_path):
    counts = np.zeros((300, 10_000), dtype=np.int8)
    tracemalloc.start()
    release = privatize(counts, epsilon=4.0, compact=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The noisy counts, and a piece of them in eight bytes before and after noise.
    assert peak < counts.size + 16.5 * _release.PIECE
    model = PoissonFactorization(2, n_warmup=1, n_draws=1).fit(release)
    data = model._posterior.problem.data
    assert np.shares_memory(data.values, release.values)
    assert data.counts.nbytes < 1.1 * counts.size
    # An array is somebody's who may change it, also by another view or a file.
    np.save(tmp_path / "counts.npy", release.values)
    own = release.values.copy()
    view = own.view()
    view.flags.writeable = False
    for given in (own, view, np.load(tmp_path / "counts.npy", mmap_mode="r")):
        model = PoissonFactorization(2, n_warmup=1, n_draws=1).fit(given, alpha=0.1)
        assert not np.shares_memory(model._posterior.problem.data.values, given)


def test_what_is_no_release_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        Release.load(tmp_path / "absent.npz")
    text = tmp_path / "text.npz"
    text.write_text("1,2,3")
    plain = tmp_path / "plain.npz"
    np.savez(plain, values=np.arange(3))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, values=np.array([object()]), release=np.array("{}"))
    newer = tmp_path / "newer.npz"
    np.savez(newer, values=np.arange(3), release=np.array('{"format": 99}'))
    for path in (text, plain, pickled, newer):
        with pytest.raises(ValueError, match="`source` must be a release"):
            Release.load(path)


def test_a_release_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    release, path = privatize([1], epsilon=1.0), tmp_path / "release.npz"
    path.write_bytes(b"old")

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["release.npz"]


def test_a_csv_file_becomes_a_release(tmp_path):
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    source.write_text("a,b,c\n1,2,3\n\n4, 5 ,6.0\n")
    release = privatize_file(source, target, epsilon=0.5, n=2, header=True, insecure_seed=3)
    assert Release.load(target) == release
    assert release.columns == ("a", "b", "c")
    assert (release.values == privatize([[1, 2, 3], [4, 5, 6]], epsilon=0.5, n=2, insecure_seed=3).values).all()
    assert stat.S_IMODE(target.stat().st_mode) & 0o400
    assert sorted(os.listdir(tmp_path)) == ["counts.csv", "released.npz"]


def test_streams_and_npy_files_are_read(tmp_path):
    counts = np.arange(6).reshape(2, 3)
    npy, out = tmp_path / "counts.npy", io.BytesIO()
    np.save(npy, counts)
    privatize_file(npy, out, epsilon=1.0)
    out.seek(0)
    assert Release.load(out).values.shape == (2, 3)
    assert (read_table(io.BytesIO(npy.read_bytes())).values == counts).all()
    assert (read_table(io.StringIO("0;1;2\n3;4;5"), delimiter=";").values == counts).all()
    assert (read_table(io.BytesIO(b"\xef\xbb\xbf0,1,2\r\n3,4,5\r\n")).values == counts).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2\n3,x\n", r"line 2: counts must be whole numbers of at least 0, got 'x'"),
        (b"1,2\n\n3,0.5\n", r"line 3: .* got '0.5'"),
        (b"1,2\n-3,4\n", r"line 2: .* got -3"),
        (b"1,2\n3,nan\n", r"line 2: .* got 'nan'"),
        (b"1,2\n3,\n", r"line 2: .* got ''"),
        (b"1,2\n3,4,5\n", r"line 2: each line must hold 2 counts, got 3"),
        (b"1,1e30\n", r"line 1: .* got 1000000000000000000000000000000"),
        (b"1,2\n\xff\xfe,3\n", r"line 2: not text in UTF-8"),
        (b"\n", "there are no counts"),
        (b"\x93NUMPY\x01\x00bad", "counts.csv"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(tmp_path, content, message):
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    source.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        privatize_file(source, target, epsilon=1.0)
    assert not target.exists()
    assert os.listdir(tmp_path) == ["counts.csv"]


def test_bad_arguments_are_refused_before_writing(tmp_path):
    source, target = tmp_path / "counts.csv", tmp_path / "released.npz"
    source.write_text("1,2\n")
    with pytest.raises(ValueError, match="`epsilon`"):
        privatize_file(source, target, epsilon=0.0)
    with pytest.raises(ValueError, match="`delimiter`"):
        privatize_file(source, target, epsilon=1.0, delimiter=", ")
    with pytest.raises(FileNotFoundError):
        privatize_file(tmp_path / "absent.csv", target, epsilon=1.0)
    assert not target.exists()


def test_the_guarantee_travels_with_the_values(tmp_path):
    path = tmp_path / "release.npz"
    privatize([1, 2], epsilon=0.3, insecure_seed=1).save(path)
    loaded = Release.load(path)
    assert loaded.guarantee.numerics == "insecure"
    assert (loaded.guarantee & loaded.guarantee).epsilon == pytest.approx(0.6)
    assert isinstance(loaded.guarantee, PrivacyGuarantee)


MECHANISMS = [
    GeometricMechanism(1.0, n=2),
    GeometricMechanism(alpha=0.5, lower=0, upper=9),
    LaplaceMechanism(1.0, 0, 1),
    GaussianMechanism(1.0, 1e-6, radius=2),
    DiscreteGaussianMechanism(variance=4),
    RandomizedResponse(1.0),
    GeneralizedRandomizedResponse(1.0, 4),
    UnaryEncoding(1.0, 4),
    UnaryEncoding(1.0, 4, "threshold"),
    MemoizedUnaryEncoding(1.0, 2.0, 4),
    SubsetSelection(1.0, 4),
    LocalHashing(1.0, 4),
    HadamardResponse(1.0, 4),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanisms_come_back_from_pickles_equal_and_working(mechanism):
    before = pickle.loads(pickle.dumps(mechanism))
    first = mechanism.release([0, 1], insecure_seed=5)  # makes the tables, which are not pickled
    after = copy.deepcopy(mechanism)
    for same in (before, after):
        assert same == mechanism
        assert hash(same) == hash(mechanism)
        assert same.release([0, 1], insecure_seed=5) == first
        assert repr(same) == repr(mechanism)
    assert all((mechanism == other) == (mechanism is other) for other in MECHANISMS)


def test_rows_that_cannot_fit_are_refused_before_they_are_made():
    with pytest.raises(TooLargeError, match="the rows need"):
        UnaryEncoding(1.0, 2**31).release(np.zeros(2**20, dtype=np.int64))


def test_a_long_release_stops_when_interrupted():
    script = textwrap.dedent("""
        import signal, time
        import numpy as np
        from quincunx.privacy import GaussianMechanism
        mechanism, data = GaussianMechanism(1.0, 1e-6, sensitivity=1), np.zeros(2**25)
        mechanism.release([1.0])
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        start = time.process_time()
        try:
            mechanism.release(data)
        except KeyboardInterrupt:
            print(time.process_time() - start)
    """)
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert float(printed.stdout) < 1.5  # of CPU; the whole release takes 3 seconds


class Trap:
    """What a pickle can do to its reader."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_no_loader_runs_what_is_pickled_in_a_file(tmp_path):
    release, sprung = privatize([1, 2], epsilon=1.0), tmp_path / "sprung"
    good = tmp_path / "good.npz"
    release.save(good)
    with np.load(good) as arrays:
        words = arrays["release"]
    trap = np.array([Trap(sprung)], dtype=object)
    hostile = {"values": (trap, words), "header": (np.arange(2), trap)}
    for name, (values, header) in hostile.items():
        file = tmp_path / f"{name}.npz"
        np.savez(file, values=values, release=header)
        with pytest.raises(ValueError, match="`source` must be a release"):
            Release.load(file)
    masked = tmp_path / "mask.npz"
    np.savez(masked, values=np.arange(2), release=words, mask=trap)
    with pytest.raises(ValueError, match="`source` must be a release"):
        Release.load(masked)
    counts = tmp_path / "counts.npy"
    np.save(counts, trap)
    with pytest.raises(ValueError, match=r"counts\.npy"):
        read_table(counts)
    assert not sprung.exists()
    np.load(counts, allow_pickle=True)[0].close()  # the trap works
    assert sprung.exists()


def test_a_release_takes_the_place_of_a_file_and_does_not_write_into_it(tmp_path):
    path, link = tmp_path / "release.npz", tmp_path / "link.npz"
    first, second = privatize([1, 2], epsilon=1.0), privatize([3, 4, 5], epsilon=1.0)
    first.save(path)
    os.link(path, link)
    before = link.read_bytes()
    with open(path, "rb") as reader:
        head = reader.read(10)
        second.save(path)
        assert head + reader.read() == before  # whoever reads the old one still reads the old one
    assert link.read_bytes() == before
    assert Release.load(path) == second
    elsewhere = tmp_path / "elsewhere.npz"
    elsewhere.write_bytes(b"not mine")
    pointer = tmp_path / "pointer.npz"
    pointer.symlink_to(elsewhere)
    second.save(pointer)
    assert elsewhere.read_bytes() == b"not mine"
    assert Release.load(pointer) == second


FORGED = ["-1/2", "-1e-9", "nan", "inf", "1/0", 0.5, None, [], True, "x" * 20_000]


def test_guarantees_that_are_forged_are_refused():
    def forge(words, value):
        """Every copy of the words with one of its numbers replaced."""
        items = words.items() if isinstance(words, dict) else enumerate(words)
        for key, part in items:
            if isinstance(part, (dict, list)):
                for forged in forge(part, value):
                    again = copy.copy(words)
                    again[key] = forged
                    yield again
            elif isinstance(part, str) and part not in ("exact", "l1") and part[:1].isdigit():
                again = copy.copy(words)
                again[key] = value
                yield again

    release = privatize([1], epsilon=1.0)
    for promise in (
        release.guarantee,
        PrivacyGuarantee(0.5, 1e-6),
        PrivacyGuarantee(0.5, 1e-6, zcdp=0.1),
        GaussianMechanism(1.0, 1e-6, sensitivity=1).guarantee,
        2 * RandomizedResponse(0.3).guarantee & PrivacyGuarantee(0.1, 1e-9),
    ):
        words = promise.to_dict()
        tried = 0
        for value in FORGED[:3]:  # negative figures and no figures
            for forged in forge(words, value):
                tried += 1
                with pytest.raises(ValueError, match="`values`"):
                    PrivacyGuarantee.from_dict(forged)
        assert tried >= 3
        for value in FORGED[3:]:  # refused too, or harmless
            for forged in forge(words, value):
                with contextlib.suppress(ValueError):
                    assert PrivacyGuarantee.from_dict(forged).epsilon >= 0
    for nothing in (None, 5, "x", [], {}, {"relation": 5}, {"relation": ["ReplaceOne"]}, {"parts": 3}):
        with pytest.raises(ValueError, match="`values`"):
            PrivacyGuarantee.from_dict(nothing)


def test_a_release_with_a_negative_delta_is_not_loaded(tmp_path):
    path = tmp_path / "release.npz"
    GaussianMechanism(1.0, 1e-6, sensitivity=1).release([0.0]).save(path)
    with np.load(path) as arrays:
        values, header = arrays["values"], json.loads(str(arrays["release"]))
    exact = str(Fraction(1e-6))
    assert exact in json.dumps(header)
    for bad in (f"-{exact}", "-1/3"):
        np.savez(path, values=values, release=np.array(json.dumps(header).replace(exact, bad)))
        with pytest.raises(ValueError, match="`source` must be a release"):
            Release.load(path)
