"""Tensors with a core: special cases that are other models, the estimator's own arguments, attributes and labels."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from tests.factorization import reference
from tests.factorization.chains import (
    batch_means,
    core_ascent,
    core_chain,
    network,
    some_release,
    start_from,
    tucker,
)

from quincunx import _core
from quincunx.factorization import PoissonTensorFactorization, cross_validate
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

HOW = {"n_warmup": 10, "n_draws": 10, "thin": 2, "max_iter": 40, "n_chains": 2, "random_state": 7}
COUNTS = np.random.default_rng(1).poisson(2.0, (5, 5, 4))
RELEASE = privatize(COUNTS, epsilon=1.0, insecure_seed=3)


def around(model, seed=3):
    rng = np.random.default_rng(seed)
    return [(a + rng.random(a.shape), b + rng.random(a.shape)) for a, b in model.priors]


def assert_same_ascent(one, other, factors):
    for _ in range(10):
        one.run(1, 0.0, 1)
        other.run(1, 0.0, 1)
        for mine, yours in itertools.islice(zip(one.factors(), other.factors(), strict=False), factors):
            np.testing.assert_allclose(mine, yours, rtol=1e-11)


# Special cases. Rates of the gamma laws of an ascent are exposures, their shapes expected counts.


def superdiagonal(components, modes, nothing=0.0):
    core = np.full((components,) * modes, nothing)
    core[(np.arange(components),) * modes] = 1.0
    return core.reshape(-1, components)


def cp_twice(hidden=None):
    """Return a CP model, and the same with a core, which is to be fixed."""
    priors = [(0.7, 1.0), (1.5, 0.8), (0.9, 1.1)]
    cp = reference.Model("cp", (3, 4, 5), 3, priors, hidden)
    return cp, tucker((3, 4, 5), (3, 3, 3), [*priors, (1.0, 1.0)], hidden=hidden)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_expected_counts_and_exposures_of_a_superdiagonal_core_are_those_of_cp(share):
    cp, model = cp_twice(np.random.default_rng(5).random((12, 5)) < share)
    released, start = some_release(cp, 0.5), around(cp)
    # A gamma so narrow that it is a number; what is off the diagonal is next to nothing.
    core = superdiagonal(3, 3, 1e-200)
    known = (np.full(core.shape, 1e17), 1e17 / core)
    one = core_ascent(cp, released, 0.5, start=start)
    other = core_ascent(model, released, 0.5, fixed=[False, False, False, True], start=[*start, known])
    assert_same_ascent(one, other, 3)
    np.testing.assert_allclose(one.elbo(), other.elbo(), rtol=1e-11)


def test_expected_counts_and_exposures_of_two_tied_modes_are_those_of_the_directed_blockmodel():
    priors = [(0.7, 1.0), (0.9, 1.2)]
    hidden = np.random.default_rng(5).random((7, 7)) < 0.2
    one = network("directed", 7, 3, priors, hidden)
    other = tucker((7, 7), (3, 3), priors, (0, 0), hidden)
    released, start = some_release(one, 0.5), around(one)
    first, second = (core_ascent(model, released, 0.5, start=start) for model in (one, other))
    assert_same_ascent(first, second, 2)
    np.testing.assert_allclose(first.elbo(), second.elbo(), rtol=1e-11)


def assert_same_means(one, other, what):
    """Means of functions of two chains, within five standard errors of their difference."""
    (a, da), (b, db) = batch_means(one), batch_means(other)
    distance = np.abs(a - b) / np.hypot(da, db)
    assert distance.max() < 5, f"{what}: {a} +- {da}, {b} +- {db}"


def functions(model, released, key, factors, fixed):
    """Return what does not depend on labels, sweep by sweep."""
    chain = core_chain(model, released, 0.5, "auto", key, fixed)
    start_from(chain, factors)
    chain.run(500, 0, 1)
    chain.take()
    chain.run(10_000, 1, 1)
    kept = chain.take()
    sums = [draws.sum(axis=(1, 2)) for draws in kept["draws"][: 2 if model.kind != "cp" else 3]]
    return np.stack([kept["total_rate"], kept["total_count"], kept["log_likelihood"], *np.log(sums[:1])], axis=1)


@pytest.mark.statistical
def test_chains_of_a_superdiagonal_core_have_the_means_of_cp():
    cp, model = cp_twice()
    released, start = some_release(cp, 0.5), cp.draw_factors(np.random.default_rng(2))
    one = functions(cp, released, (1, 1), start, None)
    other = functions(model, released, (2, 2), [*start, superdiagonal(3, 3)], [False, False, False, True])
    assert_same_means(one, other, "superdiagonal core")


@pytest.mark.statistical
def test_chains_of_two_tied_modes_have_the_means_of_the_directed_blockmodel():
    one = network("directed", 5, 2, [(1.5, 2.0), (1.2, 0.8)])
    other = tucker((5, 5), (2, 2), [(1.5, 2.0), (1.2, 0.8)], (0, 0))
    released, start = some_release(one, 0.5), one.draw_factors(np.random.default_rng(2))
    first, second = (functions(model, released, (n, n), start, None) for n, model in enumerate((one, other), 1))
    assert_same_means(first, second, "tied modes")


@pytest.mark.parametrize(
    "extents", [(1, 1, 2, 2), (2, 2, 1), (2, 3, 2, 2, 0, 0), (2, 2, 2, 2, 0, 2), (2, 2, 2, 2, 0, 0)]
)
def test_sizes_that_are_of_no_tensor_with_a_core_are_refused(extents):
    counts = _core.ReleasedCounts(np.ones(4, dtype=np.int64), 2, 2, np.array([0.5]))
    priors = [(np.ones(1), np.ones(1))] * 3
    with pytest.raises(ValueError, match="extents"):
        _core.GibbsChain(counts, "tucker", list(extents), 2, priors, "auto", (1, 2))


# The estimator.


def test_a_core_has_an_axis_for_the_components_of_each_mode():
    model = PoissonTensorFactorization((2, 3, 1), core="dense", inference="vi", **HOW).fit(RELEASE)
    assert model.core_.shape == (2, 3, 1)
    assert not hasattr(model, "weights_")
    rates = np.einsum("abc,ia,jb,kc->ijk", model.core_, *model.factors_)
    np.testing.assert_allclose(model.rates_, rates, rtol=1e-12)
    np.testing.assert_allclose(np.tensordot(model.embedding_, model.components_, 1), rates, rtol=1e-12)
    assert model.transform(RELEASE).shape == (5, 2)
    assert len(model.top_features(axis=1)) == 3
    again = model.set_params(core="diagonal", n_components=2).fit(RELEASE)
    assert hasattr(again, "weights_")
    assert not hasattr(again, "core_")


def test_tied_modes_have_one_factor_and_their_equal_indices_are_held_out():
    model = PoissonTensorFactorization((2, 3, 2), core="dense", tied=[(0, 2)], **HOW)
    counts = np.swapaxes(COUNTS, 1, 2)
    other = counts.copy()
    other[np.arange(5), :, np.arange(5)] = 1000
    fitted = clone(model).fit(counts, alpha=0.4)
    np.testing.assert_array_equal(clone(model).fit(other, alpha=0.4).core_, fitted.core_)
    np.testing.assert_array_equal(fitted.factors_[0], fitted.factors_[2])
    assert set(fitted.draws_) == {"mode_0", "mode_1", "core"}
    assert fitted._posterior.problem.data.held_out.sum() == 5 * 4
    # Rows to come are others than those of the fit.
    assert np.abs(fitted.transform(counts[:1], alpha=0.4) - fitted.transform(other[:1], alpha=0.4)).max() > 1e-3
    same = clone(model).fit_transform(counts, alpha=0.4), clone(model).fit_transform(other, alpha=0.4)
    np.testing.assert_array_equal(*same)


def test_new_rows_have_no_cells_of_equal_indices_of_the_other_modes():
    model = PoissonTensorFactorization(2, core="dense", tied=[(1, 2)], inference="vi", **HOW)
    counts = np.moveaxis(COUNTS, 2, 0)
    other = counts.copy()
    other[:, np.arange(5), np.arange(5)] = 1000
    embedding = model.fit_transform(counts)
    model.tied = None  # nothing of the fit follows what is set after it
    np.testing.assert_array_equal(model.transform(other), embedding)
    assert model.score(other[:3]) == model.score(counts[:3])
    with pytest.raises(ValueError, match="for a cell at least"):
        model.heldout_error(counts)


@pytest.mark.parametrize("each_draw", [False, True])
def test_aligned_draws_have_the_same_rates_and_each_mode_an_order_of_its_own(each_draw):
    model = PoissonTensorFactorization((3, 2, 2), core="dense", tied=[(0, 1)], **HOW)
    model = model.set_params(n_components=(3, 3, 2)).fit(RELEASE)

    def rates(draws):
        return np.einsum(
            "xyabc,xyia,xyjb,xykc->xyijk", *(draws[name] for name in ("core", "mode_0", "mode_0", "mode_2"))
        )

    before = model.draws_
    after = model.align(each_draw=each_draw).draws_
    np.testing.assert_allclose(rates(after), rates(before), rtol=1e-12)
    assert any(not np.array_equal(before[name], after[name]) for name in before)
    for name in before:
        np.testing.assert_allclose(np.sort(before[name].reshape(20, -1)), np.sort(after[name].reshape(20, -1)))


def test_priors_have_an_entry_for_the_core():
    narrow = 1e6 * np.arange(1.0, 9.0).reshape(2, 2, 2)
    model = PoissonTensorFactorization(2, core="dense", **HOW)
    model.set_params(prior_shape=[1.0, 1.0, 1.0, narrow], prior_rate=[1.0, 1.0, 1.0, 1e6]).fit(RELEASE)
    np.testing.assert_allclose(model.core_, narrow / 1e6, rtol=0.01)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"core": "sparse"}, ValueError, "`core` must be one of"),
        ({"core": "diagonal", "tied": [(0, 1)]}, ValueError, '`tied` must be None without a core="dense"'),
        ({"core": "diagonal", "n_components": (2, 2, 2)}, TypeError, "`n_components` must be a whole number"),
        ({"weights": True}, ValueError, '`weights` must be False with core="dense"'),
        ({"n_components": (2, 2)}, ValueError, "`n_components` must be a number or hold one for each of 3 modes"),
        ({"n_components": (2, 0, 2)}, ValueError, "`n_components` must be at least 1, got 0"),
        ({"tied": [(0, 3)]}, ValueError, "`tied` must hold modes below 3"),
        ({"tied": [(0, 1), (1, 2)]}, ValueError, "no mode twice"),
        ({"tied": [(0,)]}, ValueError, "groups of two modes or more"),
        ({"tied": [0, 1]}, TypeError, "`tied` must be a sequence of groups of modes"),
        ({"tied": [(1, 2)]}, ValueError, "got modes 1 and 2 of extents 5 and 4"),
        ({"tied": [(0, 1)], "n_components": (2, 3, 2)}, ValueError, "2 and 3 components"),
        ({"prior_shape": [1.0] * 3}, ValueError, "mode_0, mode_1, mode_2, core"),
        ({"n_components": 10**7}, MemoryError, "the fit needs about"),
    ],
)
def test_bad_sizes_are_refused(parameters, error, says):
    model = PoissonTensorFactorization(2, core="dense", **HOW).set_params(**parameters)
    with pytest.raises(error, match=says):
        model.fit(RELEASE)


def test_tied_axes_have_the_same_labels():
    xarray = pytest.importorskip("xarray")
    model = PoissonTensorFactorization(2, core="dense", tied=[(0, 1)], inference="vi", **HOW)
    names = list("abcde")
    array = xarray.DataArray(COUNTS, dims=("from", "to", "time"), coords={"from": names, "to": names})
    tree = model.fit(array).to_datatree(n_draws=3)["posterior"]
    assert tree["core"].dims == ("chain", "draw", "component_0", "component_1", "component_2")
    assert tree["mode_0"].dims[2:] == ("axis_0", "component_0")
    with pytest.raises(ValueError, match="same labels"):
        model.fit(array.assign_coords({"to": names[::-1]}))


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_overdispersed_counts_have_a_core(inference):
    how = HOW | {"likelihood": "negative_binomial", "inference": inference}
    model = PoissonTensorFactorization((2, 2, 3), core="dense", tied=[(0, 1)], **how)
    model.fit(RELEASE)
    assert model.core_.shape == (2, 2, 3)
    assert model.dispersion_ > 0
    assert model.transform(RELEASE).shape == (5, 2)
    assert set(model.to_datatree()["posterior"].data_vars) == {"mode_0", "mode_2", "core", "dispersion"} - (
        {"dispersion"} if inference == "vi" else set()
    )


def test_cross_validation_compares_sizes_of_cores():
    model = PoissonTensorFactorization(core="dense", inference="vi", n_chains=1, max_iter=30)
    found = cross_validate(RELEASE, model=model, n_components=[(2, 1, 2), (1, 1, 1)], folds=2, random_state=1)
    assert found.n_components == ((2, 1, 2), (1, 1, 1))
    assert found.best in found.n_components
    assert found.simplest in found.n_components
    assert found.scores.shape == (2, 2)
    pytest.importorskip("pandas")
    assert list(found.to_pandas().index) == list(found.n_components)
