"""Normal vectors with normal noise: densities, the posterior by a second way, calibration, what is refused."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy import stats
from tests.ldp.test_ldp_known_answers import check_gradient

from quincunx import ldp, privacy
from quincunx.ldp.priors import LKJ, Gamma, HalfNormal, Normal

FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "max_depth": 4, "random_state": 0}


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("scales", [None, True])
def test_log_likelihood_is_that_of_normal_vectors(d, scales):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(40, d)) * 3 + 100
    root = rng.normal(size=(d, d))
    at = {"mean": 100 + rng.normal(size=d), "covariance": root @ root.T + 0.1 * np.eye(d)}
    widths = np.linspace(0.5, 2.0, d) if scales else None
    mechanism = privacy.GaussianMechanism(sigma=0.7, sensitivity=1.0, scales=widths)
    noise = 0.7**2 * (np.ones(d) if widths is None else widths**2)
    for model, variances in (
        (ldp.MultivariateNormalModel(mechanism), noise),
        (ldp.MultivariateNormalModel(), 0 * noise),
    ):
        law = stats.multivariate_normal(at["mean"], at["covariance"] + np.diag(variances))
        assert model.log_likelihood(x, **at) == pytest.approx(law.logpdf(x).sum(), rel=1e-11)
        check_gradient(lambda model=model, **p: model.log_likelihood(x, **p), at)
    # Sums keep what doubles lose: a mean of 1e9 deviations, which itself is known to 1e-7 of one.
    far = ldp.MultivariateNormalModel().log_likelihood(
        x + 2.0**30, mean=at["mean"] + 2.0**30, covariance=at["covariance"]
    )
    law = stats.multivariate_normal(np.zeros(d), at["covariance"])
    apart = (x + 2.0**30) - (at["mean"] + 2.0**30)
    assert far == pytest.approx(law.logpdf(apart).sum(), rel=2e-8)


@pytest.mark.parametrize("eta", [0.7, 1.0, 2.0])
def test_priors_are_those_that_were_named(eta):
    # Of two coordinates: LKJ(eta) is (1 - rho^2)^(eta - 1), the scales' prior is on each; nobody released anything.
    model = ldp.MultivariateNormalModel(
        priors={"mean": Normal(1, 2), "scales": Gamma(3, 2), "correlation": LKJ(eta)}, n_draws=4000, random_state=1
    ).fit(np.empty((0, 2)))
    draws = {name: value.reshape(-1, *value.shape[2:]) for name, value in model.draws_.items()}
    mean, spread = draws["mean"], draws["covariance"]
    sd = np.sqrt(spread[:, [0, 1], [0, 1]])
    rho = spread[:, 0, 1] / sd.prod(axis=1)
    half = (1 + rho) / 2
    laws = [stats.norm(1, 2)] * 2 + [stats.gamma(3, scale=0.5)] * 2 + [stats.beta(eta, eta)]
    for values, law in zip([*mean.T, *sd.T, half], laws, strict=True):
        distance = stats.kstest(values[::8], law.cdf).statistic  # every eighth draw: nearly independent
        assert distance < math.sqrt(math.log(2e6) / 2 / len(values[::8])), law.dist.name


def test_one_coordinate_is_integrated_as_by_hand():
    rng = np.random.default_rng(3)
    z = rng.normal(1.0, 2.0, 12)
    mechanism = privacy.GaussianMechanism(sigma=1.5, sensitivity=1.0)
    model = ldp.MultivariateNormalModel(mechanism, priors={"mean": Normal(0, 3), "scales": HalfNormal(2)}).fit(
        z[:, None]
    )
    mu, log_sd = np.linspace(-8, 8, 1201), np.linspace(-14, 4, 2401)
    variance = np.exp(2 * log_sd)
    logs = stats.norm.logpdf(mu, 0, 3)[:, None] + stats.halfnorm.logpdf(np.exp(log_sd), scale=2) + log_sd
    for value in z:
        logs = logs + stats.norm.logpdf(value, mu[:, None], np.sqrt(variance + 1.5**2))
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    assert model.posterior_mean_["mean"][0] == pytest.approx((mass.sum(axis=1) * mu).sum(), abs=2e-6)
    assert model.posterior_mean_["covariance"][0, 0] == pytest.approx((mass.sum(axis=0) * variance).sum(), rel=1e-5)


def test_many_vectors_have_the_estimates_of_moments():
    rng = np.random.default_rng(4)
    mean, spread = np.array([2.0, -1.0, 0.5]), np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])
    x = rng.multivariate_normal(mean, spread, 40_000)
    release = privacy.GaussianMechanism(sigma=3.0, sensitivity=1.0).release(x, insecure_seed=5)
    model = ldp.MultivariateNormalModel(random_state=0, n_warmup=300, n_draws=500).fit([release, x[:200]])
    for name, true in (("mean", mean), ("covariance", spread)):
        error = np.abs(np.asarray(model.posterior_mean_[name]) - true) / np.asarray(model.posterior_sd_[name])
        assert error.max() < 5
    # What the noise has taken: the covariance of a mean of noisy vectors, per vector.
    expected = np.sqrt(
        np.diag(np.linalg.inv(40_000 * np.linalg.inv(spread + 9 * np.eye(3)) + 200 * np.linalg.inv(spread)))
    )
    np.testing.assert_allclose(model.posterior_sd_["mean"], expected, rtol=0.1)


def test_vectors_are_calibrated():
    # At a false-alarm rate of one in a million; too little noise is noticed.
    settings = {
        "n_chains": 2,
        "n_warmup": 200,
        "n_draws": 200,
        "priors": {"mean": Normal(0, 1), "scales": HalfNormal(1)},
    }
    noisy = privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0, scales=[1.0, 2.0])
    assert ldp.calibration(ldp.MultivariateNormalModel(noisy, **settings), n_repeats=60, n=30, rng=1).passed

    class Wrong(ldp.MultivariateNormalModel):
        def _group(self, released, mechanism, exact):
            return super()._group(released, privacy.GaussianMechanism(sigma=0.1, sensitivity=1.0), exact)

    assert not ldp.calibration(Wrong(noisy, **settings), n_repeats=40, n=300, rng=1).passed


def test_vectors_beyond_the_clients_ball_are_warned_of():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(3000, 2))
    for radius, warned in ((1.0, True), (9.0, False)):
        mechanism = privacy.GaussianMechanism(sigma=0.5, radius=radius, dimension=2)
        release = mechanism.release(x, insecure_seed=1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ldp.MultivariateNormalModel(random_state=0, n_warmup=200, n_draws=300).fit(release)
        assert any("lie beyond the clients' bound" in str(one.message) for one in told) == warned


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: m.fit([0.5, 0.2]), ValueError, "`released` must have shape (n, d), got (2,)"),
        (lambda m: m.fit(np.empty((3, 0))), ValueError, "`released` must have shape"),
        (lambda m: m.fit([[0.5, math.nan]]), ValueError, "`released`"),
        (lambda m: m.fit({"a": [[0.5]]}), ValueError, "`released` must be of one population"),
        (
            lambda m: m.fit([[0.5]], mechanism=privacy.LaplaceMechanism(1.0, 0, 1)),
            ValueError,
            "must be one of ['gaussian']",
        ),
        (
            lambda m: m.fit([[0.5]], mechanism=privacy.GaussianMechanism(1.0, 1e-5, lower=0, upper=1)),
            ValueError,
            "MultivariateNormalModel does not know",
        ),
        (
            lambda m: m.fit(
                [[0.5, 1.0]], mechanism=privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0, scales=[1.0] * 3)
            ),
            ValueError,
            "must have 2 scales",
        ),
        (
            lambda m: m.fit([privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0).release([[0.5]]), [[1.0, 2.0]]]),
            ValueError,
            "as many coordinates throughout, got [1, 2]",
        ),
        (lambda m: m.log_likelihood([[0.5]], mean=[0.0], covariance=[[-1.0]]), ValueError, "positive definite"),
        (
            lambda _: ldp.MultivariateNormalModel(priors={"scales": Normal(0, 1)}).fit([[0.5]]),
            ValueError,
            "`priors['scales']` must be",
        ),
        (
            lambda _: ldp.MultivariateNormalModel(priors={"mu": Normal(0, 1)}).fit([[0.5]]),
            ValueError,
            "`priors` must be named",
        ),
    ],
)
def test_what_is_no_vector_is_refused(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call(ldp.MultivariateNormalModel(**FEW))


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_log_likelihoods_are_of_the_columns_of_the_fit():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal([0.0, 3.0], size=(50, 2)), columns=["a", "b"])
    release = privacy.GaussianMechanism(sigma=0.5, sensitivity=1.0).release(frame, insecure_seed=1)
    how = {"n_chains": 1, "n_warmup": 20, "n_draws": 20, "random_state": 0}
    for model in (
        ldp.MultivariateNormalModel(**how).fit(release),
        ldp.MultivariateNormalModel(**how).fit([release, frame]),
    ):
        assert model.log_likelihoods(release).shape == (1, 20, 50)
        unnamed = privacy.Release(release.values, release.guarantee, noise=release.noise)
        assert np.array_equal(model.log_likelihoods([unnamed]), model.log_likelihoods(release))
        for other in (release[:, [1, 0]], frame[["b", "a"]], [release, release[:, [1, 0]]]):
            with pytest.raises(ValueError, match="must have the same columns in the same order"):
                model.log_likelihoods(other)
