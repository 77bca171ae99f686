"""Shares of categories from reports that support categories: likelihoods by enumeration, fits, summaries, refusals."""

import numpy as np
import pytest
from tests.ldp.reports import all_reports

from quincunx import ldp, privacy

MECHANISMS = [
    privacy.SubsetSelection(0.9, 5, size=2),
    privacy.SubsetSelection(1.5, 9),
    privacy.LocalHashing(1.0, 6),
    privacy.HadamardResponse(0.5, 6),
    privacy.HadamardResponse(2.0, 10),
]
X = np.repeat(np.arange(4), [250, 150, 75, 25])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_likelihood_sums_to_one_and_is_the_mixture_over_categories(mechanism):
    reports, total = all_reports(mechanism, functions=40)
    k = mechanism.categories
    theta = np.random.default_rng(k).dirichlet(np.ones(k))
    model = ldp.HistogramModel(mechanism)
    each = np.array([model.log_likelihood(reports[i : i + 1], theta=theta) for i in range(len(reports))])
    assert np.exp(each).sum() / total == pytest.approx(1, abs=1e-10)
    laws = np.array([np.exp(mechanism.log_likelihood(reports, x)) for x in range(k)])
    assert each == pytest.approx(np.log(theta @ laws), abs=1e-10)
    counts = np.random.default_rng(1).integers(0, 5, len(reports))
    patterns = ldp.HistogramModel(mechanism, data="patterns")
    value, slope = patterns.log_likelihood(reports, counts=counts, gradient=True, theta=theta)
    assert value == pytest.approx(counts @ each, rel=1e-12)
    by_hand = (counts / (theta @ laws)) @ laws.T
    assert slope["theta"] - slope["theta"][0] == pytest.approx(by_hand - by_hand[0], rel=1e-9, abs=1e-9)


def test_the_likelihood_of_many_categories_is_finite_and_that_of_the_law():
    k = 3000
    theta = np.full(k, 1 / k)
    for mechanism in (privacy.SubsetSelection(1.0, k), privacy.LocalHashing(1.0, k), privacy.HadamardResponse(1.0, k)):
        release = mechanism.release(np.arange(20), insecure_seed=2)
        laws = np.array([mechanism.log_likelihood(release, x) for x in range(k)])
        largest = laws.max(axis=0)
        by_hand = (largest + np.log(np.exp(laws - largest).mean(axis=0))).sum()
        assert ldp.HistogramModel().log_likelihood(release, theta=theta) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_fit_of_two_categories_is_that_of_a_grid(mechanism):
    two = type(mechanism)(1.0, 2)
    release = two.release(np.repeat([0, 1], [140, 60]), insecure_seed=1)
    grid = (np.arange(2000) + 0.5) / 2000
    laws = np.exp([two.log_likelihood(release, x) for x in range(2)])
    logs = np.log(np.outer(grid, laws[0]) + np.outer(1 - grid, laws[1])).sum(axis=1)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean, sd = mass @ grid, np.sqrt(mass @ grid**2 - (mass @ grid) ** 2)
    model = ldp.HistogramModel(random_state=0, n_draws=2000).fit(release)
    # Six standard errors at a quarter of the draws: below 1e-6 where draws are worth so many.
    assert model.posterior_mean_["theta"][0] == pytest.approx(mean, abs=6 * sd / np.sqrt(2000))
    assert model.posterior_sd_["theta"][0] == pytest.approx(sd, rel=6 / np.sqrt(2 * 2000))


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_summaries_add_and_save_and_fit_as_the_whole(mechanism, tmp_path):
    release = mechanism.release(X, insecure_seed=1)
    model = ldp.HistogramModel(random_state=0, n_chains=1, n_warmup=50, n_draws=50)
    whole = model.summarize(release)
    assert model.summarize(release[:200]) + model.summarize(release[200:]) == whole
    assert whole.n == len(X)
    assert whole.is_protected
    whole.save(tmp_path / "sum.npz")
    assert ldp.Summary.load(tmp_path / "sum.npz") == whole
    fitted = model.fit(whole).posterior_mean_["theta"]
    assert np.array_equal(fitted, model.fit(release).posterior_mean_["theta"])
    assert model.log_likelihoods(release).shape == (1, 50, len(X))


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_groups_of_several_protocols_are_fitted_together():
    parts = [privacy.SubsetSelection(1.0, 4), privacy.LocalHashing(2.0, 4), privacy.UnaryEncoding(1.0, 4)]
    releases = [part.release(X, insecure_seed=1) for part in parts]
    theta = np.array([0.4, 0.3, 0.2, 0.1])
    model = ldp.HistogramModel(random_state=0, n_draws=200)
    both = model.log_likelihood(releases, theta=theta)
    assert both == pytest.approx(sum(model.log_likelihood(each, theta=theta) for each in releases), rel=1e-12)
    assert model.fit([*releases, X]).posterior_mean_["theta"].shape == (4,)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_labels_come_back():
    mechanism = privacy.LocalHashing(2.0, ["tea", "coffee", "mate"])
    model = ldp.HistogramModel(random_state=0, n_draws=50).fit(mechanism.release(["tea"] * 30, insecure_seed=1))
    assert list(model.summary()) == ["theta[tea]", "theta[coffee]", "theta[mate]"]


def test_what_has_no_likelihood_is_refused():
    mechanism = privacy.SubsetSelection(1.0, 4)
    for other, why in (
        (privacy.LocalHashing(1.0, 4), "not independent"),
        (privacy.HadamardResponse(1.0, 4), "indices"),
    ):
        with pytest.raises(ValueError, match=f'`data` must be "rows" or "patterns" for .*{why}'):
            ldp.HistogramModel(other, data="counts").fit([5, 3, 2, 1], n=6)
    with pytest.raises(ValueError, match="one report for each user"):
        ldp.HistogramModel().fit(mechanism.release([[0, 1], [1, 2]]))
    with pytest.raises(TypeError, match="`counts` must be given"):
        ldp.HistogramModel(mechanism, data="patterns").fit([[1, 0, 0, 0]])
    with pytest.raises(ValueError, match="mechanism"):
        ldp.BernoulliModel().fit(mechanism.release([0, 1]))
