"""The regressions keep scikit-learn's contract; intercepts, lists of releases, warnings, files, interrupts."""

import math
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.interrupts import uncollected
from tests.statistics import FALSE_ALARM, assert_continuous_fit

from quincunx import ldp, privacy
from quincunx.errors import ConvergenceWarning
from quincunx.ldp import statistics
from quincunx.ldp.priors import LKJ, Gamma, HalfNormal, Normal

# The checks are about arguments and shapes: short chains of shallow trees serve.
FEW = {"n_chains": 1, "n_warmup": 20, "n_draws": 20, "max_depth": 4, "random_state": 0}
APART = {
    "check_estimators_empty_data_messages": "no users leave the prior",
    "check_estimators_nan_inf": "the error is that of this package, by name and index",
}


def excused(_):
    return APART


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@parametrize_with_checks([ldp.LinearRegression(fit_intercept=True, **FEW)], expected_failed_checks=excused)
def test_linear_regression_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@parametrize_with_checks([ldp.LogisticRegression(fit_intercept=True, **FEW)], expected_failed_checks=excused)
def test_logistic_regression_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_regressions_work_in_scikit_learns_tools():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = 3 + x @ [1.0, -1.0] + 0.1 * rng.normal(size=300)
    model = ldp.LinearRegression(fit_intercept=True, n_chains=2, n_warmup=200, n_draws=200, random_state=0)
    assert cross_val_score(clone(model), x, y, cv=2).min() > 0.95
    model.fit(x, y)
    least = np.linalg.lstsq(np.column_stack([x, np.ones(300)]), y, rcond=None)[0]
    assert model.coef_ == pytest.approx(least[:2], abs=0.01)
    assert model.intercept_ == pytest.approx(least[2], abs=0.02)
    interval = model.predict_interval(x, 0.9)
    assert 0.8 < np.mean((interval[:, 0] < y) & (y < interval[:, 1])) < 0.97
    labels = np.where(y + rng.normal(size=300) > 3, "high", "low")
    classifier = ldp.LogisticRegression(fit_intercept=True, n_chains=1, n_warmup=100, n_draws=100, random_state=0)
    classifier.fit(x, labels)
    assert classifier.classes_.tolist() == ["high", "low"]
    assert classifier.score(x, labels) > 0.75


def told_records(n, seed=0, shift=2.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) + np.array([shift, 0.0])
    y = 1.0 + x @ [1.0, -0.5] + 0.3 * rng.normal(size=n)
    return x, y


def test_an_intercept_is_inferred_from_noisy_records():
    x, y = told_records(5000)
    rng = np.random.default_rng(1)
    mechanisms = (
        privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0),
        privacy.GaussianMechanism(sigma=0.5, sensitivity=1.0),
    )
    noisy = x + rng.normal(size=x.shape), y + 0.5 * rng.normal(size=len(y))
    model = ldp.LinearRegression(tuple(mechanisms), fit_intercept=True, n_draws=1500, random_state=0).fit(*noisy)
    found, sd = (np.asarray(part["coefficients"]) for part in (model.posterior_mean_, model.posterior_sd_))
    assert (np.abs(found - [1.0, -0.5, 1.0]) < 5 * sd).all()
    assert (sd < 0.2).all()
    assert model.draws_["coefficients"].shape == (4, 1500, 3)
    assert model.predict(x[:1])[0] == pytest.approx(float(x[0] @ model.coef_ + model.intercept_))
    model.set_params(fit_intercept=False)  # of the next fit: what is known is of this one
    assert model.predict(x[:1])[0] == pytest.approx(float(x[0] @ model.coef_ + model.intercept_))
    with pytest.raises(ValueError, match="`fit_intercept` must be as in the fit, got False"):
        model.log_likelihoods(*noisy)


def test_a_list_of_releases_of_records_adds_their_likelihoods():
    x, y = told_records(60)
    for_y = privacy.GaussianMechanism(2.0, 1e-5, radius=4.0)
    parts = [privacy.GaussianMechanism(epsilon, 1e-5, radius=4.0, dimension=2) for epsilon in (1.0, 4.0)]
    records = [part.release(x[i::2], insecure_seed=i) for i, part in enumerate(parts)]
    answers = [for_y.release(y[i::2], insecure_seed=9 + i) for i in range(2)]
    point = {"coefficients": [1.0, 0.5], "residual_sd": 0.5, "covariance": np.eye(2)}
    model = ldp.LinearRegression()
    whole = model.log_likelihood(records, answers, **point)
    each = [model.log_likelihood(r, a, **point) for r, a in zip(records, answers, strict=True)]
    assert whole == pytest.approx(sum(each), rel=1e-13)
    with pytest.raises(ValueError, match="as many releases"):
        model.log_likelihood(records, answers[:1], **point)
    wide = privacy.GaussianMechanism(1.0, 1e-5, radius=4.0, dimension=3).release(np.ones((3, 3)), insecure_seed=1)
    with pytest.raises(ValueError, match="as many features"):
        model.log_likelihood([records[0], wide], [answers[0], for_y.release(np.ones(3), insecure_seed=2)], **point)


def test_records_clipped_by_the_client_are_warned_of():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = x @ [1.0, 0.0] + 0.1 * rng.normal(size=400)
    settings = {"n_chains": 2, "n_warmup": 500, "n_draws": 1500, "random_state": 0}
    for_y = privacy.GaussianMechanism(sigma=0.1, radius=9.0)
    with pytest.warns(UserWarning, match="beyond the clients' bound 1,"):
        ldp.LinearRegression((privacy.GaussianMechanism(sigma=0.1, radius=1.0, dimension=2), for_y), **settings).fit(
            x, y
        )
    ldp.LinearRegression((privacy.GaussianMechanism(sigma=0.1, radius=5.0, dimension=2), for_y), **settings).fit(x, y)
    told = statistics.linear(x, y, x_bound=1.5, y_bound=3.0)
    model = ldp.LinearRegression(
        privacy.GaussianMechanism(sigma=0.1, sensitivity=1.0), kind="statistics", x_bound=1.5, **settings
    )
    with pytest.warns(UserWarning, match="beyond the clients' bound 1.5"):
        model.fit(told.sum(axis=0), n=400)


@pytest.mark.parametrize("kind", ["inputs", "statistics"])
def test_posteriors_hold_the_truth_where_the_noise_of_coordinates_differs(kind):
    """The squared z-scores of 16 fits of two coefficients each: a chi-square of 32, above 82 at a rate of 3e-6."""
    rng, squares = np.random.default_rng(3), []
    for repeat in range(16):
        x = rng.normal(size=(3000, 2)) * 0.4
        theta = rng.normal(size=2)
        y = x @ theta + 0.2 * rng.normal(size=3000)
        if kind == "statistics":
            mechanism = privacy.GaussianMechanism(sigma=0.5, radius=50.0, dimension=6, scales=[1, 1, 1, 6, 6, 2])
            data = (mechanism.release(statistics.linear(x, y, x_bound=9.0, y_bound=9.0), insecure_seed=repeat),)
        else:
            mechanism = privacy.GaussianMechanism(sigma=0.1, radius=50.0, dimension=2, scales=[1, 5])
            data = mechanism.release(x, insecure_seed=repeat), y
        model = ldp.LinearRegression(kind=kind, n_chains=1, n_warmup=200, n_draws=400, random_state=repeat)
        with warnings.catch_warnings(action="ignore"):  # one short chain
            model.fit(*data)
        squares.append(((model.coef_ - theta) / np.asarray(model.posterior_sd_["coefficients"])) ** 2)
    assert np.sum(squares) < 82, np.sqrt(np.mean(squares, axis=0))


@pytest.mark.slow
def test_regressions_are_calibrated():
    settings = {"n_chains": 1, "n_warmup": 150, "n_draws": 300}
    noise = privacy.GaussianMechanism(sigma=0.5, sensitivity=1.0)
    priors = {"coefficients": Normal(0, 1), "scales": Gamma(4, 4), "correlation": LKJ(2)}
    with_residual = priors | {"residual_sd": HalfNormal(0.5)}
    models = [
        (ldp.LinearRegression((noise, noise), priors=with_residual, **settings), 300),
        (ldp.LinearRegression(noise, kind="statistics", priors=with_residual, **settings), 3000),
        (ldp.LogisticRegression((noise, privacy.RandomizedResponse(2.0)), priors=priors, **settings), 300),
        (ldp.LogisticRegression(noise, kind="statistics", priors=priors, **settings), 3000),
    ]
    for model, n in models:
        found = ldp.calibration(model, n_repeats=60, n=n, rng=1)
        assert found.passed, (model, found.distances, found.limit)
        assert "covariance[1, 0]" in found.places
        assert "covariance[0, 1]" not in found.places


def test_a_wrong_regression_is_not_calibrated():
    noise = privacy.GaussianMechanism(sigma=0.5, sensitivity=1.0)

    class Wrong(ldp.LinearRegression):
        def _respond(self, score, truth, rng):
            return super()._respond(0.3 * score, truth, rng)

    settings = {"n_chains": 1, "n_warmup": 100, "n_draws": 100}
    assert not ldp.calibration(Wrong((noise, noise), **settings), n_repeats=40, n=300, rng=1).passed


@pytest.mark.slow
def test_tractable_models_are_calibrated():
    noise = privacy.GaussianMechanism(sigma=0.3, sensitivity=1.0)
    for g, interval, mechanism in (
        ([0.3, 0.1, 0.5], (-1.0, 2.0), privacy.GaussianMechanism(sigma=0.3, radius=1.5)),
        ([1.0], (0.0, math.inf), noise),
    ):
        model = ldp.TractableModel(mechanism, g=g, interval=interval, n_chains=1, n_draws=1)
        found = ldp.calibration(model, n_repeats=10, n=15, rng=2)
        assert found.passed, (interval, found.distances)


@pytest.mark.parametrize("mean", [0.0, 3.0, 50.0])
def test_curvatures_below_zero_are_simulated_from_the_prior_there(mean):
    prior = {"t2": Normal(mean, 1)}
    model = ldp.TractableModel(privacy.GaussianMechanism(1.0, 1e-5, radius=1.0), interval=(0, math.inf), priors=prior)
    found = [model._simulate(np.random.default_rng(seed), 1)[0]["t2"] for seed in range(300)]
    assert max(found) < 0
    assert_continuous_fit(found, lambda t: np.exp(special.log_ndtr(t - mean) - special.log_ndtr(-mean)))


def test_shares_by_chains_are_those_of_the_conjugate_posterior():
    """Told without noise the posterior is a Dirichlet law; with small counts its edges are at 0."""
    counts = np.array([30, 0, 1, 12, 0])
    data = np.repeat(np.arange(5), counts)
    model = ldp.HistogramModel(privacy.GeneralizedRandomizedResponse(40.0, 5), random_state=0, n_draws=2000).fit(data)
    draws = model.draws_["theta"][:, ::5].reshape(-1, 5)
    for k in range(5):
        law = stats.beta(1 + counts[k], 4 + 43 - counts[k])
        assert stats.kstest(draws[:, k], law.cdf).pvalue > FALSE_ALARM
    density = model._posterior.statistic("lp")[0, :3]
    core = model._posterior.problem.core
    at = [core.log_density(core.coordinates(np.ascontiguousarray(t)))[0] for t in model.draws_["theta"][0, :3]]
    assert density == pytest.approx(at, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (ldp.GaussianModel(privacy.LaplaceMechanism(1.0, -5, 5), priors={"mu": Normal(0, 2)}), ([0.5, 7.0],)),
        (ldp.PoissonModel(privacy.GeometricMechanism(1.0, lower=0, upper=8)), ([3, -1],)),
        (ldp.BernoulliModel(privacy.RandomizedResponse(1.0)), ([1, 0],)),
        (ldp.TractableModel(privacy.GaussianMechanism(1.0, 1e-5, radius=1.0)), ([0.3],)),
        (ldp.HistogramModel(privacy.UnaryEncoding(1.0, 3, "symmetric"), n_draws=200), ([[1, 0, 0], [0, 1, 1]],)),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_files_hold_mechanism_and_priors(model, data, tmp_path):
    model.fit(*data).save(tmp_path / "model.npz")
    back = type(model).load(tmp_path / "model.npz")
    assert back.mechanism == model.mechanism.noise
    assert back.priors == model.priors
    again = back.fit(*data)
    name = next(iter(model.posterior_mean_))
    assert np.shape(again.posterior_mean_[name]) == np.shape(model.posterior_mean_[name])
    if model._posterior.computed is not None and name != "theta":
        assert again.posterior_mean_ == model.posterior_mean_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_hold_pairs_of_mechanisms_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    y = np.where(x[:, 0] + rng.normal(size=100) > 0, "yes", "no")
    settings = {"n_chains": 1, "n_warmup": 100, "n_draws": 100, "random_state": 0}
    model = ldp.LogisticRegression(**settings).fit(x, y)
    model.save(tmp_path / "model.npz")
    back = ldp.LogisticRegression.load(tmp_path / "model.npz")
    assert back.predict(x).tolist() == model.predict(x).tolist()
    mechanisms = (privacy.GaussianMechanism(1.0, 1e-5, radius=1.0, dimension=2), privacy.RandomizedResponse(1.0))
    told = mechanisms[0].release(x, insecure_seed=1), mechanisms[1].release(y == "yes", insecure_seed=2)
    ldp.LogisticRegression(mechanisms, **settings).fit(*told).save(tmp_path / "model.npz")
    first, second = ldp.LogisticRegression.load(tmp_path / "model.npz").mechanism
    assert first.sigma == mechanisms[0].sigma
    assert second.keep_probability == mechanisms[1].keep_probability


def test_a_warm_start_continues_with_fresh_random_numbers():
    rows = privacy.UnaryEncoding(1.0, 4).release(np.random.default_rng(0).integers(0, 4, 500), insecure_seed=1)
    model = ldp.HistogramModel(random_state=0, n_warmup=200, n_draws=600, n_chains=2, warm_start=True).fit(rows)
    first = model.draws_["theta"].copy()
    model.fit(rows)
    both = model.draws_["theta"]
    assert both.shape == (2, 1200, 4)
    assert np.array_equal(both[:, :600], first)
    steps = model._posterior.statistic("n_steps")
    assert not np.array_equal(steps[:, :600], steps[:, 600:])
    # Two stretches with the same random numbers would be correlated draw by draw.
    pairs = [np.corrcoef(both[c, :600, 0], both[c, 600:, 0])[0, 1] for c in range(2)]
    assert np.abs(pairs).max() < 0.25
    with pytest.raises(ValueError, match="n_chains"):
        model.set_params(n_chains=3).fit(rows)
    assert model.draws_["theta"].shape == (2, 1200, 4)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_a_warm_start_with_other_parameters_is_a_fit_anew():
    """With more categories, features or groups there is nowhere to go on from; it ended in a panic of the core."""
    settings = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "max_depth": 4, "random_state": 0, "inference": "nuts"}
    x, y = told_records(100)
    bits = [0, 1, 1, 0, 1]
    for make, first, second in (
        (ldp.HistogramModel, ([0, 1, 2],), ([0, 1, 2, 3, 3],)),
        (ldp.HistogramModel, ([0, 1, 2, 3, 3],), ([0, 1, 2],)),
        (ldp.BernoulliModel, (bits,), ({"a": bits, "b": bits},)),
        (ldp.BernoulliModel, ({"a": bits, "b": bits},), (bits,)),
        (ldp.LinearRegression, (x, y), (np.column_stack([x, x[:, 0] ** 2]), y)),
    ):
        warm, alone = make(**settings, warm_start=True).fit(*first).fit(*second), make(**settings).fit(*second)
        assert warm.posterior_mean_.keys() == alone.posterior_mean_.keys()
        for name, draws in alone.draws_.items():
            assert np.array_equal(warm.draws_[name], draws)


@uncollected()
def test_ctrl_c_stops_chains_within_a_fifth_of_a_second():
    rows = privacy.UnaryEncoding(1.0, 8).release(np.random.default_rng(0).integers(0, 8, 20_000), insecure_seed=1)
    model = ldp.HistogramModel(random_state=0, n_warmup=50, n_draws=2_000_000, n_chains=2)
    sent = []

    def interrupt():
        time.sleep(0.6)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows)
    stopped = time.monotonic() - sent[0]
    waiting.join()
    # What follows the stop, arrays and means of the draws, has its time too; a busy machine gets ten times as much.
    assert stopped < 2.0
    assert model.draws_["theta"].shape[1] > 0
    assert set(model.posterior_mean_) == {"theta"}


def test_a_failed_fit_leaves_the_earlier_one_of_every_kind():
    x, y = told_records(100)
    settings = {"n_chains": 2, "n_warmup": 500, "n_draws": 1000, "random_state": 0}
    model = ldp.LinearRegression(**settings).fit(x, y)
    before = dict(model.__dict__)
    for wrong in (
        lambda: model.fit(x, y[:5]),
        lambda: model.fit(x[:, :1] * math.nan, y),
        lambda: model.fit(x, y, mechanism=(None, privacy.RandomizedResponse(1.0))),
        lambda: model.set_params(n_draws=0).fit(x, y),
    ):
        with pytest.raises((ValueError, TypeError)):
            wrong()
        model.set_params(n_draws=1000)
        assert all(model.__dict__[name] is value for name, value in before.items() if name != "n_draws")


MASKED = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ldp.GaussianModel(privacy.LaplaceMechanism(1.0, -5, 5)).fit(MASKED), "mask"),
        (
            lambda: ldp.PoissonModel().fit(privacy.privatize([[1, 2], [3, 4]], epsilon=[[1.0, 2.0], [1.0, 1.0]], n=1)),
            "ratio",
        ),
        (lambda: privacy.LaplaceMechanism(0.0, -5, 5), "epsilon"),
        (lambda: privacy.LaplaceMechanism(math.nan, -5, 5), "epsilon"),
        (lambda: privacy.LaplaceMechanism(math.inf, -5, 5), "epsilon"),
        (lambda: privacy.GaussianMechanism(1.0, 0.0, sensitivity=1.0), "delta"),
        (lambda: privacy.GaussianMechanism(1.0, 1.0, sensitivity=1.0), "delta"),
        (lambda: privacy.LaplaceMechanism(1.0, 5, 5), "lower"),
        (lambda: privacy.UnaryEncoding(1.0, 1), "categories"),
        (lambda: ldp.HistogramModel().fit([[0, 1]], mechanism=privacy.UnaryEncoding(1.0, 3)), r"\(n, 3\)"),
        (lambda: ldp.HistogramModel(privacy.GeneralizedRandomizedResponse(1.0, 3)).fit([0, 3]), "between 0 and 2"),
        (lambda: ldp.BernoulliModel(privacy.RandomizedResponse(1.0)).fit([0, 2]), "between 0 and 1"),
        (lambda: statistics.svec([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: statistics.smat([1.0, 2.0]), r"p \(p \+ 1\) / 2"),
        (
            lambda: ldp.LogisticRegression(
                privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0), kind="statistics"
            ).fit(np.ones(4), n=3),
            r"C\(d \+ 2, 2\) - 1",
        ),
        (
            lambda: ldp.LinearRegression(
                privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0), kind="statistics", fit_intercept=True
            ).fit(np.ones(6), n=3),
            "fit_intercept",
        ),
        (lambda: ldp.LinearRegression(x_bound=-1.0).fit(np.ones((3, 1)), np.ones(3)), "x_bound"),
        (lambda: ldp.LDPSGD().tune(np.ones((5, 2)), np.ones(5), rates=[]), "rates"),
        (lambda: ldp.LDPSGD().tune(np.ones((5, 2)), np.ones(5), rates=[-1.0]), "rates"),
    ],
)
def test_what_the_document_lists_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_answers_beside_moments_and_single_ratios_are_refused():
    moments = ldp.statistics.linear(np.ones((4, 1)), np.ones(4), x_bound=1.0, y_bound=1.0)
    model = ldp.LinearRegression(privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0), kind="statistics")
    for call in (model.fit, model.summarize):
        with pytest.raises(TypeError, match="`y` must be None with kind="):
            call(moments, np.ones(4))
    with pytest.raises(TypeError, match=r"`noise_ratios` must be a pair of numbers, got 2\.0"):
        ldp.statistics.linear(np.ones((4, 1)), np.ones(4), x_bound=1.0, y_bound=1.0, noise_ratios=2.0)
    with pytest.raises(TypeError, match=r"`noise_ratios` must be a pair of numbers, got \(1.0,\)"):
        model.set_params(noise_ratios=(1.0,)).fit(moments)
    for ratios in ((1.0, 1e61), (1e-300, 1.0)):
        with pytest.raises(ValueError, match="`noise_ratios` must be between 1e-60 and 1e60"):
            model.set_params(noise_ratios=ratios).fit(moments)
    with pytest.raises(ValueError, match=r"`noise_ratio` must be between 1e-60 and 1e60, got 1e\+100"):
        ldp.statistics.logistic([[1.0]], [1], x_bound=1.0, noise_ratio=1e100)
    both = (
        ldp.statistics.linear([[1.0]], [1.0], x_bound=1, y_bound=1, noise_ratios=r) for r in ((2, 3), np.array([2, 3]))
    )
    np.testing.assert_array_equal(*both)


def test_empty_and_scattered_data_are_taken():
    mechanism = privacy.LaplaceMechanism(1.0, -5, 5)
    z = np.arange(12.0).reshape(3, 4)
    model = ldp.GaussianModel(mechanism)
    whole = model.log_likelihood(np.ascontiguousarray(z.T[::2].ravel()), mu=0.0, sigma=1.0)
    assert model.log_likelihood(z.T[::2], mu=0.0, sigma=1.0) == pytest.approx(whole, rel=1e-14)
    assert model.log_likelihood([], mu=0.0, sigma=1.0) == 0.0
    fixed = z.copy()
    fixed.setflags(write=False)
    assert math.isfinite(model.log_likelihood(fixed, mu=0.0, sigma=1.0))


def test_rates_of_descent_are_tuned_on_public_records():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3)) / 3
    y = x @ [1.0, -0.5, 0.2]
    model = ldp.LDPSGD("linear", epsilon=1.0, random_state=0, group_factor=30.0).tune(x, y, n_repeats=2)
    assert model.learning_rate == min(model.tuned_losses_, key=model.tuned_losses_.get)
    assert sorted(model.tuned_losses_) == [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    assert not hasattr(model, "coef_")
    with np.errstate(all="ignore"):  # weights beyond doubles have no loss, which is not the least
        assert model.tune(x, y, [1e308, 0.1], n_repeats=2).learning_rate == 0.1
        with pytest.raises(ValueError, match="`rates` must hold one of a finite loss"):
            model.tune(x, y, [1e308])
    with pytest.raises(ValueError, match=r"`X` must have shape \(n, 3\), got \(3,\)"):
        model.fit(x, y).predict(x[0])


def test_short_chains_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="effective"):
        ldp.HistogramModel(privacy.UnaryEncoding(1.0, 4), n_chains=2, n_draws=30, random_state=0).fit(
            np.eye(4, dtype=int)
        )
