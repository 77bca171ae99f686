"""Laplace noise in sums of statistics: how normal its sum is, the likelihood, calibration, what is refused."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from quincunx import ldp, privacy
from quincunx.ldp import statistics
from quincunx.ldp._noise import NOT_NORMAL, normality_bound
from quincunx.ldp.priors import LKJ, Gamma, HalfNormal, Normal

AT = {"coefficients": [0.8, -0.5], "covariance": [[0.3, 0.1], [0.1, 0.2]]}


@pytest.mark.parametrize("users", [1, 2, 10, 79, 80])
def test_sums_of_noise_are_as_normal_as_is_said(users):
    # The sum is the difference of two gamma variables: its distribution function by one integral.
    def below(x):
        inner = lambda g: special.gammainc(users, x + g) * stats.gamma.pdf(g, users)  # noqa: E731
        return integrate.quad(inner, 0, users + 60 * users**0.5 + 60, limit=400, points=[users])[0]

    sd = (2 * users) ** 0.5
    distance = max(abs(below(x * sd) - stats.norm.cdf(x)) for x in np.linspace(0, 4, 21))
    assert 0.6 * normality_bound(users) < distance < normality_bound(users)
    assert (normality_bound(users) <= NOT_NORMAL) == (users >= 80)


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_the_likelihood_is_that_of_normal_noise_of_the_same_variance(name):
    rng = np.random.default_rng(1)
    x = 0.5 * rng.normal(size=(400, 2))
    y = x @ [0.8, -0.5]
    if name == "linear":
        told, model, at = statistics.linear(x, y, x_bound=2, y_bound=2), ldp.LinearRegression, AT | {"residual_sd": 0.3}
    else:
        told, model, at = statistics.logistic(x, (y > 0).astype(int), x_bound=2), ldp.LogisticRegression, AT
    laplace = privacy.LaplaceMechanism(2.0, sensitivity=3.0)
    release = laplace.release(told, insecure_seed=1)
    normal = privacy.GaussianMechanism(sigma=2**0.5 * laplace.noise.scale, sensitivity=1.0)
    found = model(kind="statistics").log_likelihood(release, **at)
    assert found == pytest.approx(model(normal, kind="statistics").log_likelihood(release.values, **at), rel=1e-12)
    summed = model(kind="statistics").summarize(release)
    assert model(kind="statistics").log_likelihood(summed, **at) == pytest.approx(found, rel=1e-12)


def test_regressions_on_sums_of_laplace_noise_are_calibrated():
    settings = {"n_chains": 1, "n_warmup": 150, "n_draws": 300}
    priors = {
        "coefficients": Normal(0, 1),
        "scales": Gamma(4, 4),
        "correlation": LKJ(2),
        "residual_sd": HalfNormal(0.5),
    }
    noise = privacy.LaplaceMechanism(1.0, sensitivity=0.5)
    model = ldp.LinearRegression(noise, kind="statistics", priors=priors, **settings)
    assert ldp.calibration(model, n_repeats=40, n=3000, rng=1).passed

    class Wrong(ldp.LinearRegression):
        def _totals(self, x, n, mechanism):
            return super()._totals(x, n, privacy.LaplaceMechanism(1.0, sensitivity=0.05))

    wrong = Wrong(noise, kind="statistics", priors=priors, **settings)
    assert not ldp.calibration(wrong, n_repeats=40, n=300, rng=1).passed


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_parts_of_few_users_are_summarized_and_their_sum_is_fitted(name, tmp_path):
    rng = np.random.default_rng(2)
    moments = rng.normal(size=(100, 6 if name == "linear" else 5))
    model = (ldp.LinearRegression if name == "linear" else ldp.LogisticRegression)(kind="statistics")
    at = AT | {"residual_sd": 0.3} if name == "linear" else AT
    release = privacy.LaplaceMechanism(2.0, sensitivity=3.0).release(moments)
    for cut in (1, 50, 79, 80):
        first, second = model.summarize(release[:cut]), model.summarize(release[cut:])
        first.save(tmp_path / "first.npz")
        both = ldp.Summary.load(tmp_path / "first.npz") + second
        assert both == model.summarize(release)
        assert model.log_likelihood(both, **at) == model.log_likelihood(release, **at)
        for few in (part for part in (first, second) if part.n < 80):
            with pytest.raises(ValueError, match=f"`n` must be at least 80 with Laplace noise, .* got {few.n}"):
                model.fit(few)


def test_few_users_and_other_laws_are_refused():
    model = ldp.LinearRegression(kind="statistics")
    laplace = privacy.LaplaceMechanism(1.0, sensitivity=1.0)
    with pytest.raises(ValueError, match=r"`n` must be at least 80 with Laplace noise, .* got 79"):
        model.fit(np.ones(6), n=79, mechanism=laplace)
    with pytest.raises(ValueError, match="does not know"):
        model.fit(np.ones(6), n=100, mechanism=privacy.LaplaceMechanism(1.0, 0, 1))
    with pytest.raises(ValueError, match="must be one of"):
        model.fit(np.ones(6), n=100, mechanism=privacy.GeometricMechanism(alpha=0.5))
    with pytest.raises(ValueError, match="must be one of"):
        ldp.LinearRegression((laplace, laplace)).fit(np.ones((90, 2)), np.ones(90))
