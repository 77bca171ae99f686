"""What a fit says: means, likelihoods, held-out cells, diagnostics, and the DataTree."""

import contextlib
import sys
import warnings

import numpy as np
import pytest
import xarray
from scipy import stats

from quincunx.distributions import TwoPiecePoisson
from quincunx.errors import ConvergenceWarning
from quincunx.factorization import PoissonBlockmodel, PoissonFactorization, PoissonTensorFactorization
from quincunx.privacy import privatize

RNG = np.random.default_rng(1)
EMBEDDING, COMPONENTS = RNG.gamma(0.5, 4.0, (12, 2)), RNG.gamma(0.5, 1.0, (2, 9))
COUNTS = RNG.poisson(EMBEDDING @ COMPONENTS)
RELEASE = privatize(COUNTS, epsilon=1.0, insecure_seed=3)
MASK = np.arange(COUNTS.size).reshape(COUNTS.shape) % 7 == 2
HOW = {"n_warmup": 20, "n_draws": 20, "thin": 2, "max_iter": 60, "n_chains": 1, "random_state": 7}

short = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")


# Means.


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["auto", "bessel"])
def test_a_posterior_that_is_known_is_found(method):
    # Sums over all counts of two rows and two columns, in 25 digits.
    released, alpha = np.array([[3, -1], [1, 6]]), np.exp(-1.0)
    expected = [[1.240829, 0.375485], [0.984710, 3.978043]]
    model = PoissonFactorization(
        1,
        prior_shape=1.0,
        prior_rate=1.0,
        method=method,
        n_warmup=1000,
        n_draws=5000,
        thin=6,
        n_chains=1,
        random_state=4,
    ).fit(released, alpha=alpha)
    # A mean is off by more than 5.3 standard errors once in 10**7; 2000 draws at least are effective, of deviation 2.
    np.testing.assert_allclose(model.expected_counts_, expected, atol=5.3 * 2 / 2000**0.5)
    assert min(ess for _, ess in model._posterior.diagnostics().values()) > 2000


@short
def test_means_over_draws_are_what_they_say():
    model = PoissonFactorization(2, **(HOW | {"n_chains": 2})).fit(RELEASE)
    rates = model.draws_["embedding"] @ model.draws_["components"]
    np.testing.assert_allclose(model.rates_, rates.mean(axis=(0, 1)), rtol=1e-12)
    expected = TwoPiecePoisson(RELEASE.values, rates, RELEASE.alpha).mean()
    np.testing.assert_allclose(model.expected_counts_, expected.mean(axis=(0, 1)), rtol=1e-10)
    np.testing.assert_array_equal(model.reconstruct(), model.rates_)
    likelihood = TwoPiecePoisson(RELEASE.values, rates, RELEASE.alpha).log_marginal().sum(axis=(2, 3))
    tree = model.to_datatree()
    np.testing.assert_allclose(tree["sample_stats"]["total_log_likelihood"], likelihood, rtol=1e-10)
    np.testing.assert_allclose(tree["sample_stats"]["total_rate"], rates.sum(axis=(2, 3)), rtol=1e-10)
    best = likelihood.mean(axis=1).argmax()
    np.testing.assert_allclose(model.embedding_, model.draws_["embedding"][best].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.components_, model.draws_["components"][best].mean(axis=0), rtol=1e-12)


@short
@pytest.mark.parametrize("chains", [1, 2])
def test_a_change_of_draws_does_not_change_the_posterior(chains):
    model = PoissonFactorization(2, n_warmup=1, n_draws=3, n_chains=chains, random_state=1).fit([[1, 2], [3, 4]])
    draws = model.draws_["embedding"]
    before = draws.copy()
    with contextlib.suppress(ValueError):  # those of one chain are its own, and read-only
        draws *= 0
    np.testing.assert_array_equal(model.draws_["embedding"], before)


@short
def test_the_rates_of_a_network_and_a_tensor_are_means_over_draws():
    network = privatize(RNG.poisson(1.0, (8, 8)), epsilon=1.0, insecure_seed=3)
    for directed in (True, False):
        model = PoissonBlockmodel(2, directed=directed, **HOW).fit(network)
        theta, pi = model.draws_["embedding"][0], model.draws_["interaction"][0]
        np.testing.assert_allclose(model.rates_, (theta @ pi @ theta.swapaxes(1, 2)).mean(axis=0), rtol=1e-10)
        if not directed:
            np.testing.assert_array_equal(pi, pi.swapaxes(1, 2))
            np.testing.assert_allclose(model.rates_, model.rates_.T, rtol=1e-12)
            np.testing.assert_array_equal(model.expected_counts_, model.expected_counts_.T)
    tensor = privatize(RNG.poisson(1.0, (5, 4, 3)), epsilon=1.0, insecure_seed=3)
    model = PoissonTensorFactorization(2, weights=True, **HOW).fit(tensor)
    parts = [model.draws_[name][0] for name in ("weights", "mode_0", "mode_1", "mode_2")]
    rates = np.einsum("sk,sik,sjk,slk->ijl", *parts) / len(parts[0])
    np.testing.assert_allclose(model.rates_, rates, rtol=1e-10)
    mixed = np.einsum("k,ik,jk,lk->ijl", model.weights_, *model.factors_)
    np.testing.assert_allclose(np.tensordot(model.embedding_, model.components_, 1), mixed, rtol=1e-12)


@short
def test_the_score_is_the_mean_log_likelihood_of_observed_cells():
    model = PoissonFactorization(2, **HOW).fit(RELEASE)
    rates = model.transform(RELEASE, mask=MASK) @ model.components_
    likelihood = TwoPiecePoisson(RELEASE.values, rates, RELEASE.alpha).log_marginal()
    assert model.score(RELEASE, mask=MASK) == pytest.approx(likelihood[~MASK].mean(), rel=1e-10)
    plain = PoissonFactorization(2, noise="none", **HOW).fit(COUNTS)
    rates = plain.transform(COUNTS) @ plain.components_
    assert plain.score(COUNTS) == pytest.approx(stats.poisson.logpmf(COUNTS, rates).mean(), rel=1e-9)
    network = privatize(RNG.poisson(1.0, (8, 8)), epsilon=1.0, insecure_seed=3)
    model = PoissonBlockmodel(2, directed=False, **HOW).fit(network)
    above = np.triu_indices(8, 1)
    likelihood = TwoPiecePoisson(network.values, model.rates_, network.alpha).log_marginal()
    assert model.score(network) == pytest.approx(likelihood[above].mean(), rel=1e-10)


# Noise and masks.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@short
def test_held_out_cells_leak_nothing(inference):
    model = PoissonFactorization(2, inference=inference, **HOW)
    embedding = model.fit(RELEASE, mask=MASK).embedding_
    rates, expected = model.rates_, model.expected_counts_
    np.testing.assert_array_equal(expected[MASK], rates[MASK])
    hidden = np.where(MASK, np.nan, RELEASE.values)
    np.testing.assert_array_equal(model.fit(hidden, alpha=RELEASE.alpha, mask=MASK).embedding_, embedding)
    masked = np.ma.masked_array(RELEASE.values, MASK)
    np.testing.assert_array_equal(model.fit(masked, alpha=RELEASE.alpha).embedding_, embedding)
    for ratio in (0.0, 1 - 1e-9):  # nor the ratio of the noise there
        other = np.where(MASK, ratio, RELEASE.alpha)
        np.testing.assert_array_equal(model.fit(RELEASE.values, alpha=other, mask=MASK).embedding_, embedding)
    error = model.heldout_error(COUNTS)
    assert error == pytest.approx(np.abs(rates - COUNTS)[MASK].mean(), rel=1e-12)
    assert model.heldout_error(COUNTS, ~MASK) == pytest.approx(np.abs(rates - COUNTS)[~MASK].mean(), rel=1e-12)


@short
def test_the_diagonal_of_a_network_and_what_lies_below_one_without_directions_do_not_count():
    counts = RNG.poisson(1.0, (8, 8))
    other = counts + 5 * np.eye(8, dtype=int)
    model = PoissonBlockmodel(2, **HOW)
    np.testing.assert_array_equal(model.fit(counts).embedding_, model.fit(other).embedding_)
    other = np.triu(counts)
    model.set_params(directed=False)
    np.testing.assert_array_equal(model.fit(counts).embedding_, model.fit(other).embedding_)
    everything = np.ones((8, 8), dtype=bool)
    assert model.heldout_error(counts, everything) == pytest.approx(
        np.abs(model.rates_ - counts)[np.triu_indices(8, 1)].mean()
    )


@short
def test_the_noise_of_a_release_is_its_own_and_may_differ_from_cell_to_cell():
    model = PoissonFactorization(2, **HOW)
    expected = model.fit(RELEASE).embedding_
    np.testing.assert_array_equal(model.fit(RELEASE.values, alpha=RELEASE.alpha).embedding_, expected)
    each = np.full(COUNTS.shape, RELEASE.alpha)
    np.testing.assert_array_equal(
        model.set_params(method="collapsed").fit(RELEASE.values, alpha=each).embedding_.shape, expected.shape
    )
    scalar = model.fit(RELEASE).embedding_
    np.testing.assert_array_equal(model.fit(RELEASE.values, alpha=each).embedding_, scalar)
    np.testing.assert_array_equal(model.fit(RELEASE.values, alpha=each[:, :1]).embedding_, scalar)
    some = each.copy()
    some[COUNTS == RELEASE.values] = 0.0
    assert np.isfinite(model.fit(np.where(some > 0, RELEASE.values, COUNTS), alpha=some).embedding_).all()


@short
def test_the_reference_methods_are_fits_without_noise():
    expected = PoissonFactorization(2, **HOW).fit(np.maximum(RELEASE.values, 0)).embedding_
    naive = PoissonFactorization(2, noise="naive", **HOW)
    np.testing.assert_array_equal(naive.fit(RELEASE).embedding_, expected)
    np.testing.assert_array_equal(naive.fit(RELEASE.values, alpha=0.3).embedding_, expected)
    none = PoissonFactorization(2, noise="none", **HOW)
    np.testing.assert_array_equal(none.fit(np.maximum(RELEASE.values, 0), alpha=0.3).embedding_, expected)
    np.testing.assert_array_equal(none.expected_counts_, np.maximum(RELEASE.values, 0))
    with pytest.raises(ValueError, match="Negative values in data"):
        none.fit(RELEASE)


@short
def test_whole_numbers_may_be_asked_for_by_rounding():
    model = PoissonFactorization(2, non_integer="round", **HOW)
    np.testing.assert_array_equal(model.fit(COUNTS + 0.3).embedding_, model.fit(COUNTS).embedding_)


# Diagnostics.


def test_short_chains_are_warned_of():
    with pytest.warns(ConvergenceWarning, match=r"the total rate has \d+ effective draws \(fewer than 400\)"):
        PoissonFactorization(2, **(HOW | {"n_chains": 2})).fit(RELEASE)


def test_chains_that_do_not_agree_are_warned_of(monkeypatch):
    model = PoissonFactorization(2, **(HOW | {"n_chains": 2}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(RELEASE)
    model._posterior.runs[0].total_rate += 1000.0
    with pytest.warns(ConvergenceWarning, match=r"R-hat of the total rate is \d\.\d+ \(more than 1.01\)"):
        model._posterior.warn()


def test_long_chains_are_not_warned_of():
    model = PoissonFactorization(1, prior_shape=2.0, n_warmup=200, n_draws=1900, thin=2, n_chains=2, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(RELEASE)
    assert {name: rhat < 1.01 and ess > 400 for name, (rhat, ess) in model._posterior.diagnostics().items()} == {
        "total rate": True,
        "log-likelihood": True,
    }


def test_an_ascent_that_goes_on_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="the ELBO still changes by more than `tol` after 3 iterations"):
        PoissonFactorization(2, inference="vi", n_chains=1, max_iter=3, tol=0.0, random_state=1).fit(RELEASE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PoissonFactorization(2, inference="vi", n_chains=1, max_iter=500, tol=1e-4, random_state=1).fit(RELEASE)


def test_without_arviz_there_is_no_check_and_no_tree(monkeypatch):
    for name in ("arviz_stats", "arviz_stats.base", "arviz_base"):
        monkeypatch.setitem(sys.modules, name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PoissonFactorization(2, **HOW).fit(RELEASE)
    with pytest.raises(ImportError, match=r"pip install 'quincunx\[arviz\]'"):
        model.to_datatree()


# The DataTree.


@short
def test_a_tree_has_names_for_its_axes(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(RELEASE.values, columns=[f"word{v}" for v in range(9)])
    model = PoissonFactorization(2, **(HOW | {"n_chains": 2})).fit(frame, alpha=RELEASE.alpha, mask=MASK)
    tree = model.to_datatree()
    assert isinstance(tree, xarray.DataTree)
    assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "constant_data"}
    assert tree["posterior"].attrs["inference_library"] == "quincunx"
    assert tree["posterior"]["embedding"].dims == ("chain", "draw", "observation", "component")
    assert tree["posterior"]["components"].dims == ("chain", "draw", "component", "feature")
    assert tree["posterior"]["components"].sel(feature="word3").shape == (2, 20, 2)
    np.testing.assert_array_equal(tree["posterior"]["components"], model.draws_["components"])
    assert set(tree["sample_stats"].data_vars) == {"total_log_likelihood", "total_rate", "sweep"}
    assert tree["sample_stats"]["sweep"].values[0, :3].tolist() == [22, 24, 26]
    np.testing.assert_array_equal(tree["constant_data"]["held_out"], MASK)
    assert (tree["observed_data"]["released"].values[MASK] == 0).all()
    tree.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    again = xarray.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf")
    np.testing.assert_array_equal(again["posterior"]["embedding"], model.draws_["embedding"])
    again.close()


@short
def test_a_tree_of_any_model_has_its_factors():
    network = PoissonBlockmodel(2, **HOW).fit(RNG.poisson(1.0, (8, 8))).to_datatree()["posterior"]
    assert network["interaction"].dims == ("chain", "draw", "component", "to_component")
    assert network["embedding"].shape == (1, 20, 8, 2)
    tensor = PoissonTensorFactorization(2, weights=True, **HOW).fit(RNG.poisson(1.0, (5, 4, 3))).to_datatree()
    assert {name: tensor["posterior"][name].shape[2:] for name in tensor["posterior"].data_vars} == {
        "weights": (2,),
        "mode_0": (5, 2),
        "mode_1": (4, 2),
        "mode_2": (3, 2),
    }
    assert tensor["observed_data"]["released"].dims == ("axis_0", "axis_1", "axis_2")


@short
def test_a_tree_of_variational_inference_holds_draws_from_its_gamma_laws():
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=50, random_state=1).fit(RELEASE)
    tree = model.to_datatree(n_draws=400)
    draws = tree["posterior"]["embedding"].values
    assert draws.shape == (1, 400, 12, 2)
    error = draws[0].std(axis=0) / 20
    assert (np.abs(draws[0].mean(axis=0) - model.embedding_) < 6 * error).all()
    assert "sample_stats" not in tree.children
