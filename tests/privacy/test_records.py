"""What a release of counts protects: units or whole records, said in words; masked cells are never released."""

import io
import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from quincunx.cli import main
from quincunx.privacy import (
    AddRemove,
    DataMetric,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    PrivacyGuarantee,
    RandomizedResponse,
    Release,
    ReplaceOne,
    UnaryEncoding,
    audit,
    privatize,
)
from quincunx.privacy._privatize import clip_records

laws = settings(derandomize=True, deadline=None, max_examples=200)
tables = arrays.arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(0, 30))


def test_a_release_says_what_it_protects(capsys, tmp_path):
    assert privatize([3, 4], epsilon=1.0).protects == "changes of at most 1 in the sum of all counts"
    assert privatize([3, 4], epsilon=1.0, n=7).protects == "changes of at most 7 in the sum of all counts"
    whole = privatize([[3, 4], [50, 9]], epsilon=1.0, record_bound=10)
    assert whole.protects == "one record replaced by any other, each clipped to a sum of at most 10"
    assert "protects one record replaced by any other" in repr(whole)
    assert whole.guarantee.relation == ReplaceOne()
    assert (whole.n, whole.alpha) == (20, pytest.approx(np.exp(-1 / 20)))
    assert whole.guarantee.epsilon == 1.0
    for relation, words in [
        (AddRemove(), "one record added or removed"),
        (ReplaceOne(3), "3 records replaced by any other"),
        (DataMetric("l2", 0.5), "changes of at most 0.5 in the l2 distance"),
        (DataMetric("l1", 2), "changes of at most 2 in the sum of all values"),
    ]:
        assert Release([1.0], PrivacyGuarantee(1.0, relation=relation)).protects == words
    source = tmp_path / "counts.csv"
    source.write_text("1,2\n30,40\n")
    assert main(["privatize", str(source), "--epsilon", "1", "--out", str(tmp_path / "out.npz")]) == 0
    assert "protects changes of at most 1 in the sum of all counts" in capsys.readouterr().err
    how = ["--record-bound", "10", "--out", str(tmp_path / "out.npz")]
    assert main(["privatize", str(source), "--epsilon", "1", *how]) == 0
    assert "each clipped to a sum of at most 10" in capsys.readouterr().err
    assert Release.load(tmp_path / "out.npz").n == 20


@given(tables, st.integers(1, 40))
@laws
def test_clipped_records_lie_in_the_ball_and_depend_on_themselves_alone(counts, bound):
    before = counts.copy()
    clipped = clip_records(counts, bound)
    assert np.array_equal(counts, before)
    sums = counts.sum(axis=1)
    assert np.array_equal(clipped.sum(axis=1), np.minimum(sums, bound))
    assert (clipped >= 0).all()
    assert (clipped <= counts).all()
    assert np.array_equal(clipped[sums <= bound], counts[sums <= bound])
    for i in range(len(counts)):
        assert np.array_equal(clip_records(counts[i : i + 1], bound)[0], clipped[i])
    assert (
        np.abs(clipped * np.maximum(sums, 1)[:, None] - counts * np.minimum(sums, bound)[:, None])
        < np.maximum(sums, 1)[:, None]
    ).all()


@pytest.mark.parametrize("bits", [1, 8, 31, 52, 53, 54, 62])
def test_clipped_records_are_differences_of_the_rounded_shares_of_partial_sums(bits):
    rng = np.random.default_rng(bits)
    for bound in [1, 2, 3**5, 2**31 - 1, 2**53 + 1, 2**61 - 1, 2**61]:
        counts = rng.integers(0, 2**bits, (40, 7), endpoint=True) >> rng.integers(0, bits, (40, 7))
        counts[0], counts[1, 1:] = 0, 0
        for row, found in zip(counts.tolist(), clip_records(counts, bound).tolist(), strict=True):
            whole = max(sum(row), bound)
            shares = [part * bound // whole for part in itertools.accumulate(row, initial=0)]
            assert found == [after - before for before, after in itertools.pairwise(shares)]


def test_records_whose_sums_pass_64_bits_are_clipped():
    huge = np.array([[2**62, 2**62, 2**62], [1, 2, 3]])
    assert clip_records(huge, 2**61).sum(axis=1).tolist() == [2**61, 6]
    assert privatize(huge, epsilon=1.0, record_bound=100).values.shape == (2, 3)


def test_whole_records_are_protected_where_units_are_not():
    sure = 1 - 1e-6
    one, other = [[40, 0], [1, 2]], [[0, 9], [1, 2]]

    def released(counts, size):
        clipped = clip_records(np.array(counts), 5)
        noise = privatize(
            np.zeros((size, 4), dtype=int), epsilon=1.0, n=privatize(counts, epsilon=1.0, record_bound=5).n
        )
        return noise.values + clipped.reshape(1, 4)

    def ratio(rows):
        first, second = (clip_records(np.array(data), 5).reshape(1, 4) for data in (one, other))
        return (np.abs(rows - second) - np.abs(rows - first)).sum(axis=1).astype(float)

    whole = audit(released, one, other, epsilon=1.0, statistic=ratio, vectorized=True, n_draws=60_000, confidence=sure)
    assert not whole.rejected
    assert whole.epsilon > 0.5  # the two records differ by the full 2A: nothing is given away
    units = audit(GeometricMechanism(1.0, n=1), one, other, n_draws=60_000, confidence=sure)
    assert units.rejected


def test_a_record_that_is_one_number_costs_its_bound():
    release = privatize([3, 80], epsilon=1.0, record_bound=9)
    assert (release.n, release.guarantee.relation) == (9, ReplaceOne())


def test_masked_cells_are_neither_read_nor_released():
    counts = np.ma.array([[10**15, 2], [3, 10**15]], mask=[[True, False], [False, True]])
    for how in ({"n": 2}, {"record_bound": 50}):
        release = privatize(counts, epsilon=0.5, **how)
        assert isinstance(release.values, np.ma.MaskedArray)
        assert np.array_equal(np.ma.getmaskarray(release.values), counts.mask)
        assert np.asarray(release)[counts.mask].tolist() == [0, 0]  # not even under the mask
        assert np.abs(np.asarray(release)).max() < 10**6
        file = io.BytesIO()
        release.save(file)
        assert b"\x80\xc6\xa4\x7e\x8d\x03\x00" not in file.getvalue()  # the bytes of 10**15
        file.seek(0)
        again = Release.load(file)
        assert again == release
        assert np.array_equal(np.ma.getmaskarray(again.values), counts.mask)
        assert again != privatize(np.zeros((2, 2), dtype=int), epsilon=0.5, **how)
    other = np.ma.array([[0, 2], [3, 0]], mask=counts.mask)
    assert privatize(counts, epsilon=0.5, insecure_seed=3) == privatize(other, epsilon=0.5, insecure_seed=3)
    with pytest.raises(ValueError, match="read-only"):
        release.values.data[0, 0] = 5
    unmasked = privatize(np.ma.array([1, 2], mask=False), epsilon=0.5)
    assert not isinstance(unmasked.values, np.ma.MaskedArray)


@pytest.mark.parametrize(
    "mechanism",
    [
        GeometricMechanism(1.0, n=1),
        LaplaceMechanism(1.0, 0, 1),
        GaussianMechanism(1.0, 1e-6, radius=1.0),
        DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1),
        RandomizedResponse(1.0),
        UnaryEncoding(1.0, 3),
    ],
    ids=repr,
)
def test_mechanisms_refuse_masked_cells(mechanism):
    masked = np.ma.array([0, 1, 1], mask=[False, True, False])
    for x in (masked, [masked, masked]):
        with pytest.raises(ValueError, match="`x` must have no masked cells, got 1 of them"):
            mechanism.release(x)
    assert mechanism.release(np.ma.array([0, 1])).shape[0] == 2


def test_bad_bounds_are_refused_by_name():
    for bad in (0, -1, 2**62):
        with pytest.raises(ValueError, match="`record_bound`"):
            privatize([[1]], epsilon=1.0, record_bound=bad)
    for bad in (0.5, "3", True):
        with pytest.raises(TypeError, match="`record_bound`"):
            privatize([[1]], epsilon=1.0, record_bound=bad)
    with pytest.raises(TypeError, match="`n` must not be given"):
        privatize([[1]], epsilon=1.0, n=2, record_bound=3)
    with pytest.raises(ValueError, match="`counts` must have a first axis"):
        privatize(1, epsilon=1.0, record_bound=3)


def test_a_row_of_an_undirected_network_is_no_record():
    path = networkx.path_graph(4)
    with pytest.raises(ValueError, match="`record_bound` must be None for an undirected network"):
        privatize(path, epsilon=1.0, record_bound=2)
    assert privatize(path.to_directed(), epsilon=1.0, record_bound=2).n == 4
