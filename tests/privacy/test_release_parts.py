"""Parts of a release are releases: values by NumPy's rules, with the noise, the guarantee, the mask and the labels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    train_test_split,
)
from sklearn.utils import _safe_indexing, resample, shuffle

from quincunx import _tables
from quincunx.privacy import DataMetric, GaussianMechanism, PrivacyGuarantee, Release, UnaryEncoding, noise, privatize

SHAPE = (4, 3, 2)
GUARANTEE = PrivacyGuarantee(1.0, relation=DataMetric("l1", 1))
# Each cell holds its own place, and each label that of its axis: what a part shows tells where it came from.
PLACES = np.arange(24).reshape(SHAPE)
AXES = tuple(_tables.Axis(axis, tuple((axis, i) for i in range(extent))) for axis, extent in enumerate(SHAPE))


def numbered(mask=None):
    release = Release(PLACES, GUARANTEE, noise=noise.GeometricNoise((1 + PLACES) / 100), about={"n": 1}, _axes=AXES)
    return release if mask is None else release.masked(mask)


def check(release, index):
    """A part has what its cells had in the whole, and names no cell wrongly; return it."""
    part, expected = release[index], release.values[index]
    assert type(part) is Release
    assert part.values.dtype == expected.dtype
    assert np.array_equal(np.asarray(part), np.asarray(expected))
    assert np.array_equal(np.ma.getmaskarray(part.values), np.ma.getmaskarray(expected))
    assert isinstance(part.values, np.ma.MaskedArray) == isinstance(release.values, np.ma.MaskedArray)
    places = PLACES[index]
    assert np.array_equal(part.alpha, (1 + places) / 100)
    assert (part.guarantee, part.mechanism, part.n) == (release.guarantee, release.mechanism, release.n)
    assert len(part.axes_) in (0, part.values.ndim)
    came_from = np.unravel_index(places, SHAPE)
    for axis, (name, labels, _) in enumerate(part.axes_):
        if labels is not None:
            assert [label[0] for label in labels] == [name] * part.shape[axis]
            along = np.array([label[1] for label in labels]).reshape(
                [-1 if i == axis else 1 for i in range(places.ndim)]
            )
            assert (came_from[name] == along).all()
    return part


WHICH = {
    "a row": (1, [1, 2]),
    "a slice": (slice(1, 3), [0, 1, 2]),
    "rows backwards": (slice(None, None, -1), [0, 1, 2]),
    "rows by number": ([3, 0, 0], [0, 1, 2]),
    "no rows": ([], [0, 1, 2]),
    "rows by truth": (np.array([True, False, False, True]), [0, 1, 2]),
    "as scikit-learn takes rows": ((np.array([2, 1]), ...), [0, 1, 2]),
    "as scikit-learn takes columns": ((slice(None), [2, 0]), [0, 1, 2]),
    "a column": ((slice(None), 1), [0, 2]),
    "the last axis": ((..., [1, 0]), [0, 1, 2]),
    "rows and a new axis": ((None, [1, 2], ..., None), [None, 0, 1, 2, None]),
    "a number beside rows": ((1, [0, 2]), [1, 2]),
    "a number far from columns": (([0, 2], slice(None), 1), [0, 1]),
    "a number before and far from columns": ((1, slice(None), [1, 0, 1]), [2, 1]),
    "a mesh": (np.ix_([0, 3], [2, 1], [1]), [0, 1, 2]),
    "a mesh of two axes": (np.ix_([0], [2]), [0, 1, 2]),
    "a mesh by truth": (np.ix_([True, False, True, True], [0, 2]), [0, 1, 2]),
    "a mesh around an axis": ((np.array([[0], [3]]), slice(None), np.array([[1, 0]])), [0, 2, 1]),
    "cells": (([0, 1], [1, 2]), [None, 2]),
    "rows in a square": (np.array([[0, 1], [2, 3]]), [None, None, 1, 2]),
    "cells by truth": (PLACES % 5 == 0, [None]),
    "pairs by truth": (PLACES[..., 0] % 3 == 0, [None, 2]),
    "a zero-dimensional array": (np.array(2), [1, 2]),
    "a bare truth": (True, None),
    "everything": ((), [0, 1, 2]),
    "all": (..., [0, 1, 2]),
}


@pytest.mark.parametrize("mask", [None, PLACES % 3 == 0], ids=["whole", "masked"])
@pytest.mark.parametrize(("index", "names"), WHICH.values(), ids=WHICH)
def test_a_part_of_a_release_is_one_with_its_noise_guarantee_mask_and_labels(index, names, mask):
    part = check(numbered(mask), index)
    assert [axis.name for axis in part.axes_] == ([] if names is None else [] if set(names) == {None} else names)
    assert all((axis.labels is None) == (axis.name is None) for axis in part.axes_)


@settings(max_examples=300)
@given(
    index=st.one_of(
        some.basic_indices(SHAPE, allow_newaxis=True, max_dims=6),
        some.integer_array_indices(SHAPE),
        st.tuples(
            *(
                st.one_of(
                    st.slices(extent),
                    st.integers(-extent, extent - 1),
                    st.lists(st.integers(-extent, extent - 1), min_size=2, max_size=2),
                    some.arrays(np.int64, (2, 1), elements=st.integers(-extent, extent - 1)),
                )
                for extent in SHAPE
            )
        ),
        some.arrays(bool, SHAPE),
        some.arrays(bool, SHAPE[:2]),
    )
)
def test_parts_by_any_index_follow_numpy(index):
    release = numbered()
    if isinstance(release.values[index], np.ndarray):
        check(release, index)
    else:
        assert release[index] == PLACES[index]


def test_a_part_of_a_part_is_the_part_taken_at_once():
    release = numbered(PLACES % 7 == 0)
    assert release[1:][[0, 2], ..., 1] == release[[1, 3], ..., 1]
    assert release[::-1][::-1] == release
    assert [part == release[i] for i, part in enumerate(release)] == [True] * 4
    assert release[:0][::-1][:, [0]].shape == (0, 1, 2)


def test_a_single_number_is_plain():
    release = privatize(np.ma.array([[3, 4], [5, 6]], mask=[[0, 1], [0, 0]]), epsilon=1.0)
    assert isinstance(release[1, 0], np.int64)
    assert release[0, 1] is np.ma.masked
    assert [type(number) for number in privatize([1, 2], epsilon=1.0)] == [np.int64, np.int64]
    with pytest.raises(TypeError, match="a release of one number has no first axis"):
        iter(privatize(3, epsilon=1.0))


@pytest.mark.parametrize("index", [4, "a", 1.5, (0, 0, 0, 0), [9], np.zeros(3, bool), np.zeros((4, 3), float)])
def test_an_index_that_numpy_refuses_is_an_index_error(index):
    with pytest.raises(IndexError):
        numbered()[index]


def test_parts_cannot_be_written_and_leave_the_whole_as_it_was():
    release = numbered(PLACES % 3 == 0)
    before = numbered(PLACES % 3 == 0)
    for part in (release[1:], release[[0, 1]], release[1]):
        with pytest.raises(ValueError, match="read-only"):
            part.values[0] = 5
        part.about["n"] = 5
    assert release == before


def test_scales_of_coordinates_follow_the_coordinates():
    mechanism = GaussianMechanism(1.0, 1e-5, radius=1.0, dimension=3, scales=[1.0, 2.0, 4.0])
    release = mechanism.release(np.zeros((5, 3)), insecure_seed=1)
    assert release[2].noise == release[1:].noise == release.noise == mechanism.noise
    assert release[:2, [2, 0]].noise.scales.tolist() == [4.0, 1.0]
    assert release[[0, 1], [2, 0]].noise.scales.tolist() == [4.0, 1.0]
    assert release[:, 1].noise.deviations == mechanism.noise.deviations[1]
    assert release[3:, 2, ...].noise.deviations == mechanism.noise.deviations[2]


def test_one_ratio_of_noise_stays_one_number():
    release = privatize(np.ones((6, 2), int), epsilon=0.5, n=2)
    assert (release[2:].alpha, release[[1, 4], 1].alpha) == (release.alpha, release.alpha)
    assert release[2:].protects == release.protects


def frames():
    counts = np.random.default_rng(2).poisson(60.0, (12, 5))
    table = pd.DataFrame(counts, index=[f"r{i}" for i in range(12)], columns=list("abcde"))
    levels = np.linspace(0.5, 2.0, 12)[:, None] * np.ones(5)
    yield "labelled", privatize(table, epsilon=1.0, insecure_seed=1)
    yield "a ratio for each cell", privatize(table, epsilon=levels, insecure_seed=1)
    yield "masked", privatize(np.ma.array(counts, mask=counts % 4 == 0), epsilon=1.0, insecure_seed=1)
    yield "bits", UnaryEncoding(1.0, 5).release(np.arange(12) % 5, insecure_seed=1)


@pytest.mark.parametrize("release", [pytest.param(release, id=name) for name, release in frames()])
@pytest.mark.parametrize(
    "splitter",
    [KFold(3), KFold(4, shuffle=True, random_state=0), RepeatedKFold(n_splits=2, random_state=0), ShuffleSplit(3),
     LeaveOneOut(), TimeSeriesSplit(3), GroupKFold(3)],
    ids=lambda splitter: type(splitter).__name__,
)  # fmt: skip
def test_splitters_of_scikit_learn_keep_the_noise_of_every_split(release, splitter):
    for rows in splitter.split(release, None, np.arange(12) % 3 if isinstance(splitter, GroupKFold) else None):
        for chosen in rows:
            part = _safe_indexing(release, chosen)
            assert part == release[chosen]
            assert part.index == (None if release.index is None else tuple(f"r{i}" for i in chosen))
            alpha = release.alpha if np.ndim(release.alpha) == 0 else release.alpha[chosen]
            assert np.array_equal(part.alpha, alpha)


@pytest.mark.parametrize("release", [pytest.param(release, id=name) for name, release in frames()])
def test_functions_of_scikit_learn_that_pick_rows_return_releases(release):
    for part in (
        *train_test_split(release, random_state=0),
        resample(release, random_state=0),
        shuffle(release, random_state=0),
        _safe_indexing(release, slice(2, 5)),
        _safe_indexing(release, np.arange(12) > 5),
        _safe_indexing(release, [0, 3], axis=1),
        _safe_indexing(release, 1),
    ):
        assert type(part) is Release
        assert (part.mechanism, part.guarantee) == (release.mechanism, release.guarantee)
        assert (part.alpha is None) == (release.alpha is None)
        assert np.ndim(part.alpha) in (0, part.values.ndim)
