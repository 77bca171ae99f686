"""What is refused: each message names the argument, the rule, the value and, in an array, the first index."""

import re

import numpy as np
import pytest

from quincunx import _check
from quincunx.errors import TooLargeError
from quincunx.factorization import (
    CentralPoissonFactorization,
    PoissonBlockmodel,
    PoissonDynamics,
    PoissonFactorization,
    PoissonTensorFactorization,
    _data,
)
from quincunx.privacy import LaplaceMechanism, privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

COUNTS = np.random.default_rng(1).poisson(2.0, (6, 5))
HALF = np.full((6, 5), 0.5)
SHORT = {"n_components": 2, "n_warmup": 4, "n_draws": 4, "thin": 2, "n_chains": 1, "random_state": 7}


def changed(array, index, value, dtype=np.float64):
    """Return a copy with one entry changed."""
    array = np.array(array, dtype=dtype)
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"n_components": 0}, ValueError, "`n_components` must be at least 1, got 0"),
        ({"n_components": 2.5}, TypeError, "`n_components` must be a whole number, got 2.5"),
        ({"n_components": "3"}, TypeError, "`n_components` must be a whole number, got str"),
        ({"prior_shape": 0.0}, ValueError, "`prior_shape` must be positive, got 0.0"),
        ({"prior_shape": np.nan}, ValueError, "`prior_shape` must be positive, got nan"),
        ({"prior_rate": "many"}, TypeError, "`prior_rate` must hold real numbers"),
        ({"prior_rate": (1.0, 1.0, 1.0)}, ValueError, "or hold 2 entries (embedding, components), got 3"),
        ({"prior_rate": (1.0, [1.0, -2.0])}, ValueError, "`prior_rate of components` must be positive, got -2.0 at"),
        ({"prior_shape": (np.ones(3), 1.0)}, ValueError, "a number or broadcast to shape (6, 2), got (3,)"),
        ({"inference": "em"}, ValueError, "`inference` must be one of ['mcmc', 'vi', 'svi'], got 'em'"),
        ({"method": "published"}, ValueError, "'split', 'bessel'], got 'published'"),
        ({"inference": "vi", "method": "event"}, ValueError, "`method` must be one of"),
        ({"noise": "laplace"}, ValueError, "`noise` must be one of ['geometric', 'none', 'naive'], got 'laplace'"),
        ({"max_iter": 0}, ValueError, "`max_iter` must be at least 1, got 0"),
        ({"n_warmup": -1}, ValueError, "`n_warmup` must be at least 0, got -1"),
        ({"n_draws": 0}, ValueError, "`n_draws` must be at least 1, got 0"),
        ({"thin": 0}, ValueError, "`thin` must be at least 1, got 0"),
        ({"n_chains": 0}, ValueError, "`n_chains` must be at least 1, got 0"),
        ({"tol": -1.0}, ValueError, "`tol` must be at least 0, got -1.0"),
        ({"tol": np.inf}, ValueError, "`tol` must be finite, got inf"),
        ({"threads": 0}, ValueError, "`threads` must be between 1 and 256, got 0"),
        ({"random_state": -1}, ValueError, "`random_state` must be at least 0, got -1"),
        ({"random_state": "seed"}, TypeError, "`random_state` must be None, an int"),
        ({"progress": "bar"}, TypeError, "`progress` must be None, True or a function"),
        ({"callback": 3}, TypeError, "`callback` must be a function of (sweep, statistics), got int"),
        ({"non_integer": "floor"}, ValueError, "`non_integer` must be one of ['error', 'round'], got 'floor'"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_refused_by_fit(parameters, error, says):
    model = PoissonFactorization(**(SHORT | parameters))
    with pytest.raises(error, match=re.escape(says)):
        model.fit(COUNTS)
    assert not hasattr(model, "embedding_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("released", "how", "error", "says"),
    [
        (changed(COUNTS, (2, 3), np.nan), {}, ValueError, "where it is not masked, got nan at index (2, 3)"),
        (changed(COUNTS, (2, 3), -np.inf), {}, ValueError, "got -inf at index (2, 3)"),
        (changed(COUNTS, (1, 4), 1.5), {}, ValueError, "`released` must hold whole numbers, got 1.5 at index (1, 4)"),
        (changed(COUNTS, (1, 4), 2.0**63), {}, ValueError, "`released` must hold whole numbers, got 9.22"),
        (changed(COUNTS, (0, 1), -2), {}, ValueError, "got -2 at index (0, 1) (give the `alpha` of the noise)"),
        (changed(COUNTS, (0, 1), -2), {"alpha": 0.0}, ValueError, "got -2 at index (0, 1)"),
        (changed(COUNTS, (0, 1), -2), {"alpha": changed(HALF, (0, 1), 0.0)}, ValueError, "got -2 at index (0, 1)"),
        (COUNTS, {"alpha": 1.0}, ValueError, "`alpha` must be in [0, 1), got 1.0"),
        (COUNTS, {"alpha": -0.1}, ValueError, "`alpha` must be in [0, 1), got -0.1"),
        (COUNTS, {"alpha": np.nan}, ValueError, "`alpha` must be in [0, 1), got nan"),
        (COUNTS, {"alpha": changed(HALF, (3, 2), 1.0)}, ValueError, "must be in [0, 1), got 1.0 at index (3, 2)"),
        (COUNTS, {"alpha": HALF.T}, ValueError, "`alpha` must be a number or have shape (6, 5), got (5, 6)"),
        (COUNTS, {"alpha": "half"}, TypeError, "`alpha` must hold real numbers"),
        (COUNTS, {"mask": np.zeros((5, 6), dtype=bool)}, ValueError, "`mask` must have shape (6, 5), got (5, 6)"),
        (COUNTS, {"mask": np.zeros((6, 5), dtype=int)}, TypeError, "True where a cell is held out, got dtype int64"),
        (COUNTS, {"mask": [True, False]}, ValueError, "`mask` must have shape (6, 5), got (2,)"),
        (COUNTS, {"executor": "threads"}, TypeError, "`executor` must be a concurrent.futures.Executor, got str"),
        (COUNTS[0], {}, ValueError, "Expected 2D array"),
        (COUNTS[:0], {}, ValueError, "0 sample"),
        (COUNTS * 1j, {}, ValueError, "Complex data not supported"),
        ([["a", "b"], ["c", "d"]], {}, ValueError, "could not convert|dtype"),
        (privatize(COUNTS, epsilon=1.0), {"alpha": 0.5}, ValueError, "with a Release, which knows its own, got 0.5"),
        (LaplaceMechanism(1.0, 0, 5).release(COUNTS), {}, ValueError, "must carry two-sided geometric noise"),
    ],
)  # fmt: skip
def test_bad_data_are_refused_and_the_fit_there_was_stays(released, how, error, says):
    model = PoissonFactorization(**SHORT).fit(COUNTS[:, :3])
    before = dict(vars(model))
    with pytest.raises(error, match=says if "|" in says else re.escape(says)):
        model.fit(released, **how)
    assert vars(model) == before
    assert model.rates_.shape == (6, 3)


def test_masks_within_lists_and_arrays_of_dask_are_not_lost():
    dask = pytest.importorskip("dask.array")
    masked = np.ma.masked_array(COUNTS, COUNTS > 3)
    lazy = dask.from_array(masked, chunks=(2, 5))
    model = PoissonFactorization(**SHORT).fit(COUNTS, mask=COUNTS > 3)
    np.testing.assert_array_equal(PoissonFactorization(**SHORT).fit(lazy).embedding_, model.embedding_)
    for call, name in (
        (lambda: PoissonFactorization(**SHORT).fit(list(masked)), "released"),
        (lambda: PoissonTensorFactorization(**SHORT).fit([masked, masked]), "released"),
        (lambda: PoissonTensorFactorization(**SHORT).fit([list(masked), COUNTS]), "released"),
        (lambda: model.score(list(masked)), "released"),
        (lambda: model.fit(COUNTS, mask=masked > 2), "mask"),
        (lambda: model.inverse_transform(masked[:, :2]), "embedding"),
        (lambda: model.inverse_transform(lazy[:, :2]), "embedding"),
        (lambda: model.heldout_error(lazy, COUNTS > 1), "counts"),
        (lambda: CentralPoissonFactorization(2).fit(lazy), "counts"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must have no masked cells"):
            call()


def test_dynamics_refuse_counts_whose_draws_take_long():
    model = PoissonDynamics(**SHORT)
    model.fit([[2**34, 2**35], [1, 2], [3, 4]])
    mask = [[False, True], [False, False], [False, False]]
    model.fit([[1, 2**60], [1, 2], [3, 4]], mask=mask)
    for bad in ([[1, 2], [2**35, 2**36]], [[1, 2], [-(2**63), 3]]):
        with pytest.raises(ValueError, match=r"`released` must have at most 2\*\*36 counts at each time, got"):
            model.fit(bad, alpha=0.5)


def test_the_other_models_refuse_what_does_not_fit_them():
    with pytest.raises(ValueError, match=r"`released` must have as many rows as columns, .* got \(6, 5\)"):
        PoissonBlockmodel(**SHORT).fit(COUNTS)
    with pytest.raises(TypeError, match="`directed` must be True or False, got 'no'"):
        PoissonBlockmodel(directed="no", **SHORT).fit(COUNTS[:5])
    with pytest.raises(TypeError, match="`weights` must be True or False, got 1"):
        PoissonTensorFactorization(weights=1, **SHORT).fit(COUNTS)
    with pytest.raises(ValueError, match=r"hold 4 entries \(mode_0, mode_1, mode_2, weights\), got 3"):
        PoissonTensorFactorization(weights=True, prior_shape=(1, 1, 1), **SHORT).fit(np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match=r"got 0\.5 at index \(1, 0, 2\)"):
        PoissonTensorFactorization(**SHORT).fit(changed(np.ones((3, 2, 4)), (1, 0, 2), 0.5))


def test_new_data_are_checked_like_those_of_the_fit():
    model = PoissonFactorization(**SHORT).fit(COUNTS)
    with pytest.raises(ValueError, match="4 features, but PoissonFactorization is expecting 5 features"):
        model.transform(COUNTS[:, :4])
    with pytest.raises(ValueError, match=r"got 0\.5 at index \(0, 0\)"):
        model.score(changed(COUNTS, (0, 0), 0.5))
    with pytest.raises(ValueError, match="`released` must be one table here, got a list of files"):
        model.score(["a.npz"])
    with pytest.raises(ValueError, match="`mask` must leave a cell at least"):
        model.score(COUNTS, mask=np.ones(COUNTS.shape, dtype=bool))
    with pytest.raises(ValueError, match="`embedding` must have 2 columns, got 3"):
        model.inverse_transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match="`mask` must be True for a cell at least"):
        model.heldout_error(COUNTS)
    with pytest.raises(ValueError, match=r"`counts` must have shape \(6, 5\), got \(5, 6\)"):
        model.heldout_error(COUNTS.T, np.ones(COUNTS.shape, dtype=bool))
    for count in (-1.0, 0.5, 2.0**54, 1e30):
        with pytest.raises(
            ValueError,
            match=re.escape(
                f"`counts` must be whole numbers from 0 to 2^53 in the cells of the mask, got {count} at index (2, 3)"
            ),
        ):
            model.heldout_log_probability(changed(COUNTS, (2, 3), count), COUNTS >= 0)
    with pytest.raises(ValueError, match="`n_draws` must be at least 1, got 0"):
        model.to_datatree(n_draws=0)
    uneven = PoissonFactorization(**SHORT).fit(COUNTS, alpha=np.full(COUNTS.shape, 0.5))
    with pytest.raises(ValueError, match="`alpha` must be given for new data"):
        uneven.transform(COUNTS)
    assert uneven.transform(COUNTS, alpha=0.5).shape == (6, 2)


@pytest.mark.parametrize("name", ["rates_", "expected_counts_", "draws_"])
def test_an_estimator_that_is_not_fitted_has_no_results(name):
    model = PoissonFactorization()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="not fitted"):
        model.reconstruct()
    with pytest.raises(ValueError, match="not fitted"):
        model.save("nowhere.npz")


def test_a_fit_that_would_not_fit_into_memory_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(_check, "available_memory", lambda: 10**6)
    model = PoissonFactorization(2, n_warmup=0, n_draws=1_000_000_000, thin=1)
    with pytest.raises(TooLargeError, match="take fewer draws") as caught:
        model.fit(COUNTS)
    assert caught.value.needed > 10**9 * 8 * 22
    assert caught.value.limit == 10**6
    for more in ({"n_warmup": 10**12}, {"thin": 10**12}, {"n_warmup": 2**70}, {"n_chains": 2**40}):
        with pytest.raises(TooLargeError, match=r"sweeps or components|so many chains needs"):
            PoissonFactorization(**SHORT | more).fit(COUNTS)
    for width in (2**20, 2**70):
        with pytest.raises(TooLargeError, match="a prior of each entry of components needs"):
            PoissonFactorization(width, prior_shape=[0.1, np.ones(np.shape(COUNTS)[1])]).fit(COUNTS)
    PoissonFactorization(**SHORT).fit(COUNTS)


def test_one_below_zero_is_refused_where_there_is_no_noise():
    for released in ([[1, -1]], np.array([[0.0, -1.0]])):
        with pytest.raises(ValueError, match=r"got -1 at index \(0, 1\)"):
            PoissonFactorization(1).fit(released)


@pytest.mark.parametrize("ends", [(0, 127), (0, 128), (-129, 0), (-128, 40_000), (-(2**31), 2**31), (0, 2**63 - 1)])
def test_values_are_kept_in_integers_that_hold_both_ends(ends):
    kept = _data._compact(np.array(ends))
    assert kept.tolist() == list(ends)
