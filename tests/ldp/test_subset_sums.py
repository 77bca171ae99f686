"""Sums of subsets: their moments by enumeration, their normal likelihood, fits beside those of the rows, refusals."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from quincunx import ldp, privacy

SIZES = [(k, size) for k in range(2, 7) for size in range(1, k)]
X = np.repeat(np.arange(5), [900, 500, 300, 200, 100])


@pytest.mark.parametrize("n", [2000, 50_000])
@pytest.mark.parametrize(("k", "size"), SIZES)
def test_the_likelihood_is_the_normal_law_of_the_moments_of_all_subsets(k, size, n):
    mechanism = privacy.SubsetSelection(1.2, k, size)
    subsets = np.array([row for row in itertools.product((0, 1), repeat=k) if sum(row) == size])
    laws = np.exp([mechanism.log_likelihood(subsets, x) for x in range(k)])
    rng = np.random.default_rng(k + size)
    for theta in (*rng.dirichlet(np.ones(k), 3), np.eye(k)[0]):
        chances = theta @ laws
        mean = chances @ subsets
        covariance = (subsets.T * chances) @ subsets - np.outer(mean, mean)
        sums = rng.multinomial(n, chances / chances.sum()) @ subsets
        model = ldp.HistogramModel(mechanism, data="counts")
        # The last sum follows from the others.
        normal = stats.multivariate_normal(n * mean[:-1], n * covariance[:-1, :-1])
        value, slope = model.log_likelihood(sums, n=n, theta=theta, gradient=True)
        assert value == pytest.approx(normal.logpdf(sums[:-1]), rel=1e-9, abs=1e-8)
        for i, j in itertools.combinations(range(k), 2):
            step = 1e-6 * (np.eye(k)[i] - np.eye(k)[j])
            if (theta - np.abs(step)).min() > 0:
                beside = [model.log_likelihood(sums, n=n, theta=theta + sign * step) for sign in (1, -1)]
                by_hand = (beside[0] - beside[1]) / 2e-6
                assert slope["theta"][i] - slope["theta"][j] == pytest.approx(by_hand, rel=1e-4, abs=1e-2)


def test_a_fit_to_sums_is_nearly_that_of_the_rows():
    mechanism = privacy.SubsetSelection(1.0, 5, size=2)
    release = mechanism.release(X, insecure_seed=1)
    by_rows = ldp.HistogramModel(random_state=0).fit(release)
    by_sums = ldp.HistogramModel(data="counts", random_state=0).fit(release)
    given = ldp.HistogramModel(mechanism, data="counts", random_state=0)
    given.fit(release.values.sum(axis=0), n=len(X))
    assert np.array_equal(given.draws_["theta"], by_sums.draws_["theta"])
    mean, sd = by_rows.posterior_mean_["theta"], by_rows.posterior_sd_["theta"]
    assert (np.abs(by_sums.posterior_mean_["theta"] - mean) < sd).all()
    assert (by_sums.posterior_sd_["theta"] < 1.3 * sd).all()
    assert (by_sums.posterior_sd_["theta"] > 0.9 * sd).all()


def test_sums_of_subsets_are_calibrated():
    for mechanism in (privacy.SubsetSelection(1.0, 5, size=2), privacy.SubsetSelection(2.0, 3, size=2)):
        model = ldp.HistogramModel(mechanism, data="counts", n_chains=1, n_draws=200, n_warmup=100)
        found = ldp.calibration(model, n_repeats=60, n=600, rng=1)
        assert found.passed, (model, found.distances, found.limit)


def test_summaries_add_up_to_enough_users(tmp_path):
    mechanism = privacy.SubsetSelection(1.0, 5, size=2)
    release = mechanism.release(X, insecure_seed=1)
    model = ldp.HistogramModel(mechanism, data="counts", random_state=0, n_chains=1, n_draws=100)
    whole = model.summarize(release)
    parts = [model.summarize(release[i : i + 50]) for i in range(0, len(X), 50)]
    assert sum(parts) == whole
    whole.save(tmp_path / "sums.npz")
    assert ldp.Summary.load(tmp_path / "sums.npz") == whole
    assert whole.n == len(X)
    theta = np.full(5, 0.2)
    assert model.log_likelihood(whole, theta=theta) == model.log_likelihood(release, theta=theta)
    least = math.ceil(50 / mechanism.zero_probability)
    with pytest.raises(ValueError, match=f"for fewer than {least} subsets, got 50"):
        model.log_likelihood(parts[0], theta=theta)


def test_sums_that_no_subsets_have_are_refused():
    model = ldp.HistogramModel(privacy.SubsetSelection(1.0, 4, size=2), data="counts")
    for sums, n, words in [
        ([500, 500, 500, 499], 1000, "must sum to n times 2"),
        ([1200, 400, 300, 100], 1000, "between 0 and the number of users"),
        ([500, 500, 1000], 1000, r"shape \(4,\)"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(sums, n=n)
    with pytest.raises(TypeError, match="`n`, the number of users"):
        model.fit([500, 500, 500, 500])
