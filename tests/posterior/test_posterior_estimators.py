"""The estimators keep scikit-learn's contract, their guarantees, and clip in silence."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from quincunx.posterior import PosteriorSampleRegressor, PrivateBernoulliNB, PrivateCategoricalNB

ESTIMATORS = [PrivateBernoulliNB(epsilon=5.0), PrivateCategoricalNB(epsilon=5.0), PosteriorSampleRegressor(epsilon=5.0)]


SEEDED = [type(e)(**{**e.get_params(), "insecure_seed": 1}) for e in ESTIMATORS]
FRESH = {
    name: "fresh noise in every fit"
    for name in (
        "check_fit_idempotent",
        "check_classifier_data_not_an_array",
        "check_regressor_data_not_an_array",
        "check_supervised_y_2d",
        "check_regressors_int",
    )
}


@parametrize_with_checks(SEEDED)
def test_the_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: FRESH, xfail_strict=False)
def test_the_estimators_pass_scikit_learns_checks_with_fresh_noise(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_wild_data_are_clipped_without_a_word(estimator):
    X = np.array([[0.0, 1.0], [np.nan, 3.0], [1e300, -np.inf], [-5.0, 2.0]] * 10)
    y = np.tile([0, 1], 20)
    fitted = estimator.__class__(**estimator.get_params()).fit(X, y)
    assert fitted.guarantee_.epsilon <= 5.0
    assert len(fitted.predict(X)) == 40


def test_naive_bayes_learns_and_says_what_it_spent():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 5000)
    X = (rng.random((5000, 6)) < np.where(y[:, None] == 1, 0.8, 0.2)).astype(int)
    for mechanism in ("fourier_linf", "fourier_l1", "laplace"):
        model = PrivateBernoulliNB(1.0, mechanism=mechanism, classes=[0, 1], insecure_seed=1).fit(X, y)
        assert model.score(X, y) > 0.9
        assert 0.999 < model.guarantee_.epsilon <= 1.0
        assert model.guarantee_.numerics == "insecure"
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    fresh = PrivateBernoulliNB(1.0).fit(X, y)
    assert fresh.guarantee_.numerics == "exact"


def test_unknown_labels_count_as_the_first_class():
    X, y = np.ones((100, 1)), np.array(["a", "b", "?", "b"] * 25)
    assert PrivateBernoulliNB(1.0, classes=["a", "b"]).fit(X, y).classes_.tolist() == ["a", "b"]


def test_regression_draws_near_the_truth_and_within_its_ball():
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (50_000, 3))
    y = X @ [0.4, -0.3, 0.2] + 0.1 * rng.normal(size=50_000)
    model = PosteriorSampleRegressor(3.0, insecure_seed=2).fit(X, y)
    assert np.linalg.norm(model.coef_) <= 1
    assert np.abs(model.coef_ - [0.4, -0.3, 0.2]).max() < 0.2
    assert model.guarantee_.epsilon == pytest.approx(3.0)
    assert PosteriorSampleRegressor(3.0).fit(X, y).guarantee_.numerics == "float64"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf, "1"])
def test_a_wrong_epsilon_is_refused(estimator, epsilon):
    wrong = estimator.__class__(**{**estimator.get_params(), "epsilon": epsilon})
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        wrong.fit(np.ones((4, 2)), [0, 1, 0, 1])
