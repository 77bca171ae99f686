"""Log-likelihoods of single users: they sum to that of all, in the order of the users, and ArviZ works on them."""

import warnings

import numpy as np
import pytest

from quincunx import ldp, privacy

RNG = np.random.default_rng(5)
FEW = {"n_chains": 2, "n_warmup": 60, "n_draws": 20, "random_state": 0}
X = RNG.normal(size=(30, 2))
LABELS = (X[:, 0] > 0).astype(int)
BOXED = privacy.LaplaceMechanism(1.0, -5, 5)
POSITIVE = privacy.LaplaceMechanism(1.0, 0, 5)
WHOLE = privacy.GeometricMechanism(0.7, lower=0, upper=8)
UNARY = privacy.UnaryEncoding(2.0, 3)
RECORDS = privacy.GaussianMechanism(sigma=0.3, sensitivity=1.0)
ANSWERS = privacy.RandomizedResponse(2.0)
CHOICES = RNG.integers(0, 3, 40)

# A model, and what users told.
CASES = {
    "normal": (ldp.GaussianModel(BOXED, **FEW), (BOXED.release(X[:, 0], insecure_seed=1).values,)),
    "normal, plain": (ldp.GaussianModel(**FEW), (X[:, 0],)),
    "exponential": (ldp.ExponentialModel(POSITIVE, **FEW), (POSITIVE.release(X[:, 0] ** 2, insecure_seed=1).values,)),
    "Poisson": (ldp.PoissonModel(WHOLE, **FEW), (WHOLE.release(CHOICES, insecure_seed=1).values,)),
    "Poisson, plain": (ldp.PoissonModel(**FEW), (CHOICES,)),
    "geometric": (ldp.GeometricModel(WHOLE, **FEW), (WHOLE.release(CHOICES, insecure_seed=1).values,)),
    "tractable": (
        ldp.TractableModel(privacy.GaussianMechanism(1.0, 1e-5, radius=1.0), **FEW),
        (np.abs(X[:, 0]) + X[:, 1],),
    ),
    "normal, Gaussian noise": (ldp.GaussianModel(RECORDS, **FEW), (X[:, 0] + X[:, 1],)),
    "Poisson, Gaussian noise": (
        ldp.PoissonModel(privacy.GaussianMechanism(1.0, 1e-5, lower=0, upper=3), **FEW),
        (X[:, 0] + 1,),
    ),
    "bits": (ldp.BernoulliModel(ANSWERS, **FEW), (ANSWERS.release(LABELS, insecure_seed=1).values,)),
    "rows": (ldp.HistogramModel(UNARY, **FEW), (UNARY.release(CHOICES, insecure_seed=1).values,)),
    "categories": (ldp.HistogramModel(privacy.GeneralizedRandomizedResponse(1.0, 3), **FEW), (CHOICES,)),
    "vectors": (ldp.MultivariateNormalModel(RECORDS, **FEW), (X + 0.3 * RNG.normal(size=X.shape),)),
    "linear": (
        ldp.LinearRegression((RECORDS, RECORDS), fit_intercept=True, **FEW),
        (X + 0.3 * RNG.normal(size=X.shape), X @ [1.0, -1.0] + 0.3 * RNG.normal(size=30)),
    ),
    "logistic": (
        ldp.LogisticRegression((RECORDS, ANSWERS), **FEW),
        (X + 0.3 * RNG.normal(size=X.shape), ANSWERS.release(LABELS, insecure_seed=1).values),
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")


@pytest.mark.parametrize("name", CASES)
def test_the_users_of_a_draw_sum_to_its_log_likelihood(name):
    model, told = CASES[name]
    model.fit(*told)
    users = len(told[0])
    each = model.log_likelihoods(*told)
    assert each.shape == (2, 20, users)
    for chain, draw in [(0, 0), (1, 19)]:
        parameters = {key: values[chain, draw] for key, values in model.draws_.items()}
        total = model.log_likelihood(*told, **parameters)
        assert each[chain, draw].sum() == pytest.approx(total, rel=1e-9)
        for user in (0, 7, users - 1):
            alone = model.log_likelihood(*(part[user : user + 1] for part in told), **parameters)
            assert each[chain, draw, user] == pytest.approx(alone, rel=1e-9, abs=1e-12)
    backward = model.log_likelihoods(*(part[::-1] for part in told))
    assert np.array_equal(backward[:, :, ::-1], each)
    some = model.log_likelihoods(*(part[3:9] for part in told)) if name != "logistic" else each[:, :, 3:9]
    assert np.array_equal(some, each[:, :, 3:9])


def test_patterns_and_lists_of_releases_have_their_users_one_after_the_other():
    patterns, counts = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]]), np.array([3, 0, 2])
    model = ldp.HistogramModel(UNARY, data="patterns", **FEW).fit(patterns, counts=counts)
    each = model.log_likelihoods(patterns, counts=counts)
    rows = ldp.HistogramModel(UNARY, **FEW).fit(np.repeat(patterns, counts, axis=0))
    assert np.array_equal(each, rows.log_likelihoods(np.repeat(patterns, counts, axis=0)))
    releases = [privacy.LaplaceMechanism(e, -5, 5).release(X[:9, 0], insecure_seed=2) for e in (0.5, 2.0)]
    model = ldp.GaussianModel(**FEW).fit(releases)
    each = model.log_likelihoods(releases)
    assert np.array_equal(each[:, :, :9], model.log_likelihoods(releases[0]))
    assert np.array_equal(each[:, :, 9:], model.log_likelihoods(releases[1]))


def test_arviz_has_the_group_and_takes_it():
    model, told = CASES["Poisson"]
    model.fit(*told)
    each = model.log_likelihoods(*told)
    tree = model.to_datatree(log_likelihood=each)
    assert tree.log_likelihood["released"].dims == ("chain", "draw", "user")
    assert np.array_equal(tree.log_likelihood["released"].values, each)
    assert "log_likelihood" not in model.to_datatree().children
    pytest.importorskip("xarray_einstats", reason="pip install 'quincunx[arviz]'")
    with warnings.catch_warnings(action="ignore"):  # twenty draws are few
        loo = pytest.importorskip("arviz_stats").loo(tree)
    assert loo.n_data_points == 40
    assert np.isfinite(loo.elpd)


def test_sums_over_users_and_other_shapes_are_refused():
    sums = ldp.HistogramModel(UNARY, data="counts", **FEW)
    with pytest.raises(ValueError, match='`data` must not be "counts"'):
        sums.log_likelihoods([3, 2, 4])
    with pytest.raises(ValueError, match='`kind` must be "inputs"'):
        ldp.LinearRegression(kind="statistics", **FEW).log_likelihoods(X, X[:, 0])
    model, told = CASES["linear"]
    model.fit(*told)
    with pytest.raises(ValueError, match="`x` must have as many features as in the fit, got 1"):
        model.log_likelihoods(X[:, :1].copy(), X[:, 0])
    model, told = CASES["logistic"]
    model.fit(*told)
    with pytest.raises(ValueError, match="`y` must be a list of as many releases"):
        model.log_likelihoods(X, [RECORDS.release(X, insecure_seed=1)])
    with pytest.raises(ValueError, match=r"`log_likelihood` must have shape \(2, 20\) and an axis of users"):
        model.to_datatree(log_likelihood=np.zeros((2, 19, 30)))
    with pytest.raises(ValueError, match="fit"):
        ldp.GaussianModel(**FEW).log_likelihoods(X[:, 0])


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.parametrize("labels", [["no", "yes"], [1, 2], [-1, 1]])
def test_users_of_one_label_have_the_likelihoods_that_they_have_among_others(labels):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), np.array(labels)[np.arange(20) % 2]
    model = ldp.LogisticRegression(n_chains=1, n_warmup=20, n_draws=20, random_state=0).fit(x, y)
    alone = [model.log_likelihoods(x[y == label], y[y == label]) for label in labels]
    assert np.array_equal(
        np.concatenate(alone, axis=2), model.log_likelihoods(x, y)[:, :, np.argsort(y, kind="stable")]
    )
    with pytest.raises(ValueError, match="labels"):
        model.log_likelihoods(x[:1], ["other"])
