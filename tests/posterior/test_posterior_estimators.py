"""The estimators keep scikit-learn's contract, their guarantees, and clip in silence."""

import warnings
from functools import partial

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets

from quincunx.posterior import DiscreteBayesNet, PosteriorSampleRegressor, PrivateBernoulliNB, PrivateCategoricalNB

CLASSES = [0, 1]
ESTIMATORS = [
    PrivateBernoulliNB(epsilon=5.0, classes=CLASSES),
    PrivateCategoricalNB(epsilon=5.0, categories=8, classes=CLASSES),
    PosteriorSampleRegressor(epsilon=5.0),
]


class _Declaring:
    """Declares the labels that occur, since scikit-learn's checks bring labels of their own: never for private data."""

    def fit(self, X, y):
        labels = CLASSES if y is None else np.asarray(y).reshape(-1)
        if np.asarray(labels).dtype.kind != "f" or np.isfinite(labels).all():  # else the estimator's own error
            check_classification_targets(labels)
        classes = np.unique(labels) if len(labels) > 1 else CLASSES
        private = type(self).__mro__[2](**{**self.get_params(), "classes": classes}).fit(X, y)
        vars(self).update({name: value for name, value in vars(private).items() if name.endswith("_")})
        return self


class BernoulliOfChecks(_Declaring, PrivateBernoulliNB):
    pass


class CategoricalOfChecks(_Declaring, PrivateCategoricalNB):
    pass


CHECKED = [
    BernoulliOfChecks(epsilon=5.0),
    CategoricalOfChecks(epsilon=5.0, categories=64),
    PosteriorSampleRegressor(epsilon=5.0),
]
SEEDED = [type(e)(**{**e.get_params(), "insecure_seed": 1}) for e in CHECKED]
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
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda _: FRESH, xfail_strict=False)
def test_the_estimators_pass_scikit_learns_checks_with_fresh_noise(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[2]], ids=lambda e: type(e).__name__)
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
    fresh = PrivateBernoulliNB(1.0, classes=2).fit(X, y)
    assert fresh.guarantee_.numerics == "exact"


def test_auto_of_naive_bayes_may_draw_where_noise_would_be_wide():
    y = np.arange(300) % 3
    for nonneg in (None, "project"):
        model = PrivateCategoricalNB(0.01, categories=3, classes=3, nonneg=nonneg, insecure_seed=1).fit(y[:, None], y)
        assert model.network_.mechanism == "posterior_sample"
    assert clone(model).set_params(epsilon=1.0).fit(y[:, None], y).network_.mechanism == "laplace"
    with pytest.raises(ValueError, match="`nonneg` is for mechanisms that add noise"):
        model.set_params(mechanism="posterior_sample").fit(y[:, None], y)


NAIVE = [PrivateBernoulliNB, partial(PrivateCategoricalNB, categories=2)]


@pytest.mark.parametrize("model", NAIVE)
@pytest.mark.parametrize(
    "y", [["a", "b"] * 20, [0, 1] * 20, ["a", "b"] * 19 + ["c", "b"]], ids=["words", "bits", "one new"]
)
def test_classes_are_declared_or_a_fit_refuses_before_it_draws_anything(model, y, monkeypatch):
    monkeypatch.setattr(DiscreteBayesNet, "fit_private", None)  # a call of it would be a TypeError
    undeclared = model(1.0)
    with pytest.raises(ValueError, match="`classes` must be declared"):
        undeclared.fit(np.ones((40, 2)), y)
    assert not [name for name in vars(undeclared) if name.endswith("_")]


@pytest.mark.parametrize("model", NAIVE)
@pytest.mark.parametrize("mechanism", ["fourier_l3", 3])
def test_mechanisms_that_are_not_known_are_refused(model, mechanism):
    with pytest.raises((ValueError, TypeError), match="`mechanism` must be"):
        model(1.0, classes=3, mechanism=mechanism).fit(np.ones((3, 2), dtype=int), [0, 1, 2])


@pytest.mark.parametrize("model", NAIVE)
@pytest.mark.parametrize(
    ("classes", "y", "found"), [(["b", "a"], "abca", "'c' at index (2,)"), (2, [0, 1, 2, 0], "2 at")]
)
def test_a_label_that_is_not_declared_is_refused_with_its_place(model, classes, y, found):
    with pytest.raises(ValueError, match="`y` must hold") as error:
        model(1.0, classes=classes).fit(np.ones((4, 1)), list(y))
    assert found in str(error.value)


@pytest.mark.parametrize("model", NAIVE)
@pytest.mark.parametrize(
    "classes", [["a"], "ab", ["a", "a"], ["a", 1], 1, 2.5, [np.nan, 0.0], {"a": 1}, [("a",), ("b",)]]
)
def test_classes_that_declare_nothing_are_refused(model, classes):
    with pytest.raises((ValueError, TypeError), match="`classes` must be"):
        model(1.0, classes=classes).fit(np.ones((4, 1)), ["a", "b", "a", "b"])


@pytest.mark.parametrize("model", NAIVE)
@pytest.mark.parametrize("classes", [["b", "a", "c"], [3, 1, 2], (False, True), np.array(["x", "y"]), [0.5, 1.5], 4])
def test_what_is_published_of_the_classes_is_what_was_declared(model, classes):
    labels = range(classes) if isinstance(classes, int) else classes
    first = [labels[0]] * 30  # all others do not occur
    fitted = model(1.0, classes=classes).fit(np.ones((30, 2)), first)
    assert fitted.classes_.tolist() == sorted(np.asarray(labels).tolist())
    assert fitted.predict_proba(np.ones((1, 2))).shape == (1, len(labels))
    assert fitted.predict(np.ones((1, 2))).dtype == np.asarray(first).dtype


DRINKS = np.array([["tea", "hot"], ["coffee", "hot"], ["coffee", "cold"], ["tea", "cold"]] * 50)
SOLD = np.array(["yes", "no", "no", "yes"] * 50)
DECLARED = [["tea", "coffee", "mate"], ["cold", "hot"]]


def test_features_are_labels_as_declared():
    frame = pandas.DataFrame(DRINKS, columns=["what", "how"]).astype({"what": "category"})
    by_name = dict(zip(["what", "how"], DECLARED, strict=True))
    for X, categories in ((DRINKS, DECLARED), (DRINKS.tolist(), DECLARED), (frame, by_name), (frame, DECLARED)):
        model = PrivateCategoricalNB(20.0, categories=categories, classes=["no", "yes"]).fit(X, SOLD)
        assert model.score(X, SOLD) == 1
        assert model.network_.net.categories == {"y": ("no", "yes"), 0: tuple(DECLARED[0]), 1: tuple(DECLARED[1])}
    mixed = pandas.DataFrame({"what": DRINKS[:, 0], "size": np.arange(200) % 3})
    model = PrivateCategoricalNB(20.0, categories=[DECLARED[0], 3], classes=2).fit(mixed, (SOLD == "yes").astype(int))
    assert model.predict(mixed[:4]).tolist() == [1, 0, 0, 1]


def test_other_categories_of_the_next_fit_leave_predictions_as_they_are():
    y = np.tile([0, 1], 1000)
    model = PrivateCategoricalNB(epsilon=5.0, categories=[["tea", "coffee"]], classes=2)
    model.fit(np.array(["tea", "coffee"])[y][:, None], y)
    for categories in ([["coffee", "tea"]], {"drink": ["tea", "coffee"]}):
        model.set_params(categories=categories)
        assert model.predict([["tea"], ["coffee"]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("categories", "value", "found"),
    [
        (
            DECLARED,
            "water",
            "`X[:, 0]` must hold categories among ['tea', 'coffee', 'mate'], got 'water' at index (3,)",
        ),
        (2, 2, "got 2 at index (3,)"),
        (2, -1, "Negative values in data: `X[:, 0]`"),
        (2, 0.5, "got 0.5 at index (3,)"),
        (2, np.nan, "NaN"),
        (None, 0, "`categories` must be declared"),
        ([2], 0, "2 declarations, got 1"),
        (["ab", 2], 0, "`categories[0]` must be a whole number or a sequence"),
        ({"what": 2}, 0, "for the features [0, 1]"),
    ],
    ids=str,
)
def test_features_outside_their_declaration_are_refused(categories, value, found, monkeypatch):
    monkeypatch.setattr(DiscreteBayesNet, "fit_private", None)
    X = DRINKS.astype(object) if categories == DECLARED else np.zeros((200, 2), dtype=object)
    X[3, 0] = value
    with pytest.raises((ValueError, TypeError)) as error:
        PrivateCategoricalNB(categories=categories, classes=2).fit(X, (SOLD == "yes").astype(int))
    assert found in str(error.value)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int16, np.int64, np.float16, np.float32, "Int8"])
def test_codes_of_every_kind_are_taken_without_a_warning(kind):
    X = pandas.DataFrame({"a": [0, 1] * 20, "b": [1, 0] * 20}).astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (X, X.to_numpy()):
            model = PrivateCategoricalNB(20.0, categories=2, classes=2).fit(data, np.tile([0, 1], 20))
            assert model.predict(data)[:2].tolist() == [0, 1]


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


def test_a_refused_fit_leaves_the_names_of_the_earlier_one():
    y = np.random.default_rng(0).integers(0, 2, 200)
    frame = pandas.DataFrame({"a": y, "b": 1 - y})
    model = PrivateBernoulliNB(epsilon=50.0, classes=[0, 1], insecure_seed=1).fit(frame, y)
    with pytest.raises(ValueError, match="`y`"):
        model.fit(frame[["b", "a"]], np.full(200, 9))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.predict(frame) == y).all()
    fresh = PrivateBernoulliNB(epsilon=50.0, classes=[0, 1])
    with pytest.raises(ValueError, match="`y`"):
        fresh.fit(frame, np.full(200, 9))
    assert not hasattr(fresh, "n_features_in_")
