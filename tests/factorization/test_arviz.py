"""What ArviZ is given and makes of it: pointwise likelihoods, predictions, aligned components, summaries and plots."""

import pickle

import matplotlib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from tests.saved import reread
from tests.statistics import assert_discrete_fit

from quincunx import _check
from quincunx.distributions import TwoPiecePoisson
from quincunx.errors import TooLargeError
from quincunx.factorization import PoissonBlockmodel, PoissonFactorization, PoissonTensorFactorization, _groups
from quincunx.factorization._align import best_order
from quincunx.privacy import privatize

matplotlib.use("agg")
pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

HOW = {"n_warmup": 20, "n_draws": 20, "thin": 2, "max_iter": 60, "n_chains": 2, "random_state": 7}
RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (12, 2)) @ RNG.gamma(0.5, 1.0, (2, 9)))
RELEASE = privatize(COUNTS, epsilon=1.0, insecure_seed=1)
MASK = np.arange(108).reshape(12, 9) % 7 == 0


@pytest.fixture
def arviz_stats():
    """The part of ArviZ's statistics that works on trees."""
    pytest.importorskip("xarray_einstats", reason="pip install 'quincunx[arviz]'")
    return pytest.importorskip("arviz_stats")


def separated(seed=3):
    """A table of three plain components."""
    rng = np.random.default_rng(seed)
    group = np.arange(36) % 3
    return rng.poisson(np.where(group[:, None] == np.arange(12) % 3, 12.0, 0.2))


# Log-likelihoods of single observations.


def test_without_being_asked_there_is_no_likelihood_that_loo_could_take(arviz_stats):
    tree = PoissonFactorization(2, **HOW).fit(RELEASE).to_datatree()
    assert "log_likelihood" not in tree.children
    assert "log_likelihood" not in tree["sample_stats"].data_vars
    with pytest.raises((KeyError, ValueError, TypeError)):
        arviz_stats.loo(tree)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # forty draws are few
@pytest.mark.parametrize("masked", [False, True])
def test_pointwise_likelihoods_are_those_of_the_law_and_loo_takes_them(arviz_stats, masked):
    model = PoissonFactorization(2, **HOW).fit(RELEASE, mask=MASK if masked else None)
    tree = model.to_datatree(log_likelihood=True)
    found = tree["log_likelihood"]["released"]
    rates = model.draws_["embedding"] @ model.draws_["components"]
    expected = TwoPiecePoisson(RELEASE.values, rates, RELEASE.alpha).log_marginal()
    if masked:
        assert found.dims == ("chain", "draw", "cell")
        assert (RELEASE.values[found["observation"], found["feature"]] == RELEASE.values[~MASK]).all()
        expected = expected[..., ~MASK]
    else:
        assert found.dims == ("chain", "draw", "observation", "feature")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    total = found.sum([dim for dim in found.dims if dim not in ("chain", "draw")])
    np.testing.assert_allclose(total, tree["sample_stats"]["total_log_likelihood"], rtol=1e-10)
    loo = arviz_stats.loo(tree)
    assert loo.n_data_points == found[0, 0].size
    assert np.isfinite(loo.elpd)


@pytest.mark.parametrize("directed", [True, False])
def test_pairs_of_a_network_are_its_observations(directed):
    model = PoissonBlockmodel(2, directed=directed, **HOW).fit(RNG.poisson(1.0, (7, 7)))
    each = model.to_datatree(log_likelihood=True)["log_likelihood"]["released"]
    assert each.sizes["cell"] == (42 if directed else 21)
    assert (each["actor"].values != each["to_actor"].values).all()


def test_tensors_and_variational_inference_have_likelihoods_too():
    counts = RNG.poisson(1.0, (4, 3, 2))
    tensor = PoissonTensorFactorization(2, weights=True, **HOW).fit(counts).to_datatree(log_likelihood=True)
    assert tensor["log_likelihood"]["released"].shape == (2, 20, 4, 3, 2)
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=50, random_state=1).fit(RELEASE)
    tree = model.to_datatree(n_draws=30, log_likelihood=True, posterior_predictive=True)
    rates = tree["posterior"]["embedding"].values @ tree["posterior"]["components"].values
    expected = TwoPiecePoisson(RELEASE.values, rates, RELEASE.alpha).log_marginal()
    np.testing.assert_allclose(tree["log_likelihood"]["released"], expected, rtol=1e-9, atol=1e-12)
    assert tree["posterior_predictive"]["released"].shape == (1, 30, 12, 9)


def test_groups_that_memory_cannot_hold_are_refused(monkeypatch):
    model = PoissonFactorization(2, **HOW).fit(RELEASE)
    monkeypatch.setattr(_check, "available_memory", lambda: 30_000)
    model.to_datatree()
    with pytest.raises(TooLargeError, match="a number for each of 108 cells and 40 draws needs about 38016 bytes"):
        model.to_datatree(log_likelihood=True)


# Predictions.


@pytest.mark.statistical
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_predictions_have_the_law_of_a_release(alpha):
    """Poisson counts and two-sided geometric noise: 20,000 draws of two cells, each at a false-alarm rate of 1e-6."""
    copies, n = 100, 200  # equal rows are drawn apart, and cost less than more draws of fewer
    counts = np.tile(COUNTS[:4, :3], (copies, 1))
    model = PoissonFactorization(2, **HOW).fit(counts, alpha=alpha)
    problem, (rows, columns) = model._posterior.problem, (part[:1] for part in model._posterior.tables()[0])
    tables = [np.repeat(part, n // 4, axis=0) for part in (np.tile(rows[:, :4], (1, copies, 1)), columns)]
    drawn = _groups.predictive(problem, [tables] * 4, [(1, 2), (3, 4), (5, 6), (7, 8)], 1).reshape(n, copies, 4, 3)
    rates = problem.layout.rates([table[0] for table in tables], 1).reshape(copies, 4, 3)[0]
    values = np.arange(-60, 61)
    noise = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values.astype(float))
    for i, j in (np.unravel_index(np.argsort(rates, axis=None)[place], rates.shape) for place in (6, -1)):
        law = np.convolve(noise, stats.poisson.pmf(np.arange(200), rates[i, j]))
        assert_discrete_fit(np.bincount(drawn[:, :, i, j].reshape(-1) + 60, minlength=len(law)), law)


def test_predictions_do_not_depend_on_threads_and_other_chains():
    one = PoissonFactorization(2, **HOW, threads=1).fit(RELEASE).to_datatree(posterior_predictive=True)
    two = PoissonFactorization(2, **(HOW | {"n_chains": 3}), threads=2).fit(RELEASE)
    np.testing.assert_array_equal(
        one["posterior_predictive"]["released"],
        two.to_datatree(posterior_predictive=True)["posterior_predictive"]["released"][:2],
    )
    assert one["posterior_predictive"]["released"].dims == ("chain", "draw", *one["observed_data"]["released"].dims)


# Components in one order.


def worst_rhat(arviz_stats, model):
    tree = model.to_datatree()
    return float(arviz_stats.rhat(tree, var_names=["components"])["components"].max())


def test_aligned_chains_agree_on_components(arviz_stats):
    how = {"n_warmup": 500, "n_draws": 500, "thin": 5, "n_chains": 4, "random_state": 3}
    model = PoissonFactorization(3, prior_shape=0.5, **how).fit(privatize(separated(), epsilon=2.0, insecure_seed=1))
    before, rates, draws = worst_rhat(arviz_stats, model), model.rates_, model.draws_
    assert before > 1.5, "the chains are in different orders, or the test sees nothing"
    assert model.align() is model
    assert worst_rhat(arviz_stats, model) < 1.1
    np.testing.assert_allclose(model.rates_, rates)
    for name, axis in (("embedding", 3), ("components", 2)):
        np.testing.assert_array_equal(np.sort(model.draws_[name], axis=axis), np.sort(draws[name], axis=axis))
    np.testing.assert_allclose(
        model.draws_["embedding"] @ model.draws_["components"], draws["embedding"] @ draws["components"]
    )
    for copy in (reread(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.draws_["embedding"], model.draws_["embedding"])
        np.testing.assert_array_equal(copy.embedding_, model.embedding_)
    each = model.align(each_draw=True).draws_
    np.testing.assert_allclose(each["embedding"] @ each["components"], draws["embedding"] @ draws["components"])


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # chains this short are not there yet
def test_labels_that_change_within_a_chain_are_followed_draw_by_draw():
    model = PoissonFactorization(3, **HOW).fit(privatize(separated(), epsilon=2.0, insecure_seed=1))
    expected = model.align(each_draw=True).draws_
    chain = next(chain for chain, run in enumerate(model._posterior.runs) if run is not model._posterior.best)
    run = model._posterior.runs[chain]
    run.draws = [np.concatenate([part[:10], part[10:, :, [2, 0, 1]]]) for part in run.draws]
    # The other chain is what draws are compared with: whatever it has found, a draw's own order is made good.
    for name, table in model.align(each_draw=True).draws_.items():
        np.testing.assert_array_equal(table, expected[name])
    in_one_order = model.align().draws_["components"][chain]
    assert (in_one_order != expected["components"][chain]).any(), "nothing was moved, or the test sees nothing"


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # chains this short are not there yet
def test_interactions_and_weights_follow_their_components():
    group = np.arange(24) % 3
    counts = RNG.poisson(np.where(group[:, None] == group, 6.0, 0.4))
    network = PoissonBlockmodel(3, **HOW).fit(counts)
    factors = network.draws_
    before = np.einsum("...ic,...cd,...jd->...ij", factors["embedding"], factors["interaction"], factors["embedding"])
    factors = network.align(each_draw=True).draws_
    after = np.einsum("...ic,...cd,...jd->...ij", factors["embedding"], factors["interaction"], factors["embedding"])
    np.testing.assert_allclose(after, before)
    tensor = PoissonTensorFactorization(3, weights=True, **HOW).fit(RNG.poisson(2.0, (6, 5, 4)))
    parts = "...k,...ik,...jk,...lk->...ijl"
    names = ("weights", "mode_0", "mode_1", "mode_2")
    before = np.einsum(parts, *(tensor.draws_[name] for name in names))
    np.testing.assert_allclose(np.einsum(parts, *(tensor.align().draws_[name] for name in names)), before)


def test_the_best_order_undoes_a_permutation_whatever_the_scales():
    tables = [RNG.gamma(0.3, size=(20, 5)), RNG.gamma(0.3, size=(11, 5))]
    order = np.array([3, 0, 4, 1, 2])
    scale = np.array([1.0, 9.0, 0.1, 4.0, 2.0])
    moved = [(tables[0] * scale)[:, order], (tables[1] / scale)[:, order]]
    assert order[best_order(moved, tables)].tolist() == [0, 1, 2, 3, 4]
    assert best_order([np.ones((4, 2))], [np.ones((4, 2))]).tolist() == [0, 1]


def test_there_is_nothing_to_align_without_chains():
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=20, random_state=1)
    with pytest.raises(ValueError, match="not fitted"):
        model.align()
    with pytest.raises(ValueError, match="`align` is for chains"):
        model.fit(RELEASE).align()


# What weighs most.


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # chains this short are not there yet
def test_top_features_are_sorted_shares_of_a_component():
    model = PoissonFactorization(3, **HOW).fit(privatize(separated(), epsilon=2.0, insecure_seed=1))
    tops = model.top_features(n=4)
    assert len(tops) == 3
    assert {frozenset(feature % 3 for feature, _ in top) for top in tops} == {frozenset({k}) for k in range(3)}
    whole = model.top_features(1, n=100)
    assert sum(share for _, share in whole) == pytest.approx(1)
    assert [share for _, share in whole] == sorted((share for _, share in whole), reverse=True)
    assert model.top_features(1, axis=0, n=1)[0][0] in range(36)
    for wrong in ({"component": 3}, {"n": 0}, {"axis": 2}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must be"):
            model.top_features(**wrong)
    tensor = PoissonTensorFactorization(2, **HOW).fit(RNG.poisson(1.0, (4, 3, 2)))
    assert [len(tensor.top_features(0, axis=axis)) for axis in (0, 1, 2, -1)] == [4, 3, 2, 2]


# Plots, and ArviZ's own.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_pictures_of_a_fit(inference):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = PoissonFactorization(3, inference=inference, **HOW).fit(RELEASE)
    axes = model.plot_components(n=4)
    assert [axis.get_title() for axis in axes] == ["component 0", "component 1", "component 2"]
    assert all(len(axis.patches) == 4 for axis in axes)
    trace = model.plot_trace()
    assert len(trace) == (2 if inference == "mcmc" else 1)
    assert all(len(axis.lines) == 2 for axis in trace)
    assert model.plot_trace(trace) == trace
    with pytest.raises(ValueError, match="`ax` must hold 3 axes, got 1"):
        model.plot_components(axes[0])
    pyplot.close("all")


def test_switches_are_true_or_false():
    model = PoissonFactorization(2, **HOW).fit(RELEASE)
    for call, name in (
        (model.to_datatree, "log_likelihood"),
        (model.to_datatree, "posterior_predictive"),
        (model.align, "each_draw"),
    ):
        with pytest.raises(TypeError, match=f"`{name}` must be True or False, got 'no'"):
            call(**{name: "no"})


def test_names_with_dollars_are_no_mathematics():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    frame = pytest.importorskip("pandas").DataFrame(RELEASE.values[:, :2], columns=["US$ to C$", r"$\foo$"])
    axes = PoissonFactorization(1, inference="vi", **HOW).fit(frame, alpha=RELEASE.alpha).plot_components()
    assert {tick.get_text() for tick in axes[0].get_yticklabels()} == set(frame.columns)
    axes[0].figure.canvas.draw()
    pyplot.close("all")


def test_arviz_summarizes_a_fit(arviz_stats):
    tree = PoissonFactorization(2, **HOW).fit(RELEASE).align().to_datatree()
    table = arviz_stats.summary(tree, var_names=["components"])
    assert len(table) == 18
    assert "components[0, 3]" in table.index


@pytest.mark.filterwarnings("ignore")  # those of the plotting libraries
@pytest.mark.parametrize("name", ["plot_forest", "plot_trace", "plot_ess", "plot_ppc_dist"])
def test_arviz_plots_a_fit(name):
    """The names of our axes are none of those that ArviZ's plots use for themselves."""
    try:
        import arviz_plots as plots
    except (ImportError, AttributeError) as reason:  # version 0.8 fails in its first lines beside matplotlib 3.11
        pytest.skip(f"ArviZ's plots cannot be imported: {reason}")
    model = clone(PoissonFactorization(2, **HOW)).fit(RELEASE)
    tree = model.to_datatree(posterior_predictive=True)
    kind = {} if name == "plot_ppc_dist" else {"var_names": ["components"], "coords": {"feature": [0, 1]}}
    getattr(plots, name)(tree, backend="matplotlib", **kind)
