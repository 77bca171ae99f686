"""Groups of users in one fit: each release has its own noise, raw values beside it none, and nothing is stacked."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from quincunx import factorization, ldp, privacy
from quincunx.ldp.priors import Gamma, Normal
from quincunx.privacy import noise

RNG = np.random.default_rng(11)
X = RNG.normal(size=(30, 2))
LABELS = (X[:, 0] > 0).astype(int)
COUNTS = RNG.poisson(2.0, 30)
CHOICES = RNG.integers(0, 3, 30)
BOXED, POSITIVE = privacy.LaplaceMechanism(1.0, -5, 5), privacy.LaplaceMechanism(1.0, 0, 5)
WHOLE, BITS = privacy.GeometricMechanism(0.7, lower=0, upper=8), privacy.RandomizedResponse(1.0)
UNARY, GENERAL = privacy.UnaryEncoding(2.0, 3), privacy.GeneralizedRandomizedResponse(1.0, 3)
RECORDS = privacy.GaussianMechanism(sigma=0.5, radius=9.0, dimension=2, scales=[1.0, 3.0])
ANSWERS = privacy.GaussianMechanism(sigma=0.5, radius=9.0)
MOMENTS = ldp.statistics.linear(X, X @ [1.0, -1.0], x_bound=9.0, y_bound=9.0)
OF_MOMENTS = privacy.GaussianMechanism(sigma=0.5, radius=99.0, dimension=6)
NORMAL = privacy.GaussianMechanism(sigma=0.5, radius=2.0)
LINEAR = {"coefficients": [1.0, -0.5], "residual_sd": 0.5, "covariance": np.eye(2)}
LOGISTIC = {"coefficients": [1.0, -0.5], "covariance": np.eye(2)}
THETA = np.array([0.5, 0.3, 0.2])
SOME = slice(0, 8)


def told(mechanism, x):
    return mechanism.release(x, insecure_seed=1)


# A model, a release, raw values of other users, and a point; a regression has a pair of each.
CASES = {
    "normal": (ldp.GaussianModel(), told(BOXED, X[:, 0]), X[SOME, 1], {"mu": 0.3, "sigma": 0.8}),
    "exponential": (ldp.ExponentialModel(), told(POSITIVE, X[:, 0] ** 2), X[SOME, 1] ** 2, {"rate": 0.8}),
    "Poisson": (ldp.PoissonModel(), told(WHOLE, COUNTS), COUNTS[SOME], {"rate": 1.5}),
    "geometric": (ldp.GeometricModel(), told(WHOLE, COUNTS), COUNTS[SOME], {"probability": 0.4}),
    "bits": (ldp.BernoulliModel(), told(BITS, LABELS), LABELS[SOME], {"probability": 0.4}),
    "tractable": (
        ldp.TractableModel(interval=(-9.0, 9.0)), told(NORMAL, X[:, 0]), X[SOME, 1], {"t1": 0.2, "t2": -0.6}
    ),
    "rows": (ldp.HistogramModel(), told(UNARY, CHOICES), np.array([0, 1, 0, 0]), {"theta": THETA}),
    "categories": (ldp.HistogramModel(), told(GENERAL, CHOICES), CHOICES[SOME], {"theta": THETA}),
    "vectors": (
        ldp.MultivariateNormalModel(),
        told(RECORDS, X),
        X[SOME],
        {"mean": [0.2, -0.4], "covariance": [[1.5, 0.3], [0.3, 0.5]]},
    ),
    "records": (
        ldp.LinearRegression(),
        (told(RECORDS, X), told(ANSWERS, X @ [1.0, -1.0])),
        (X[SOME], X[SOME] @ [1.0, -1.0]),
        LINEAR,
    ),
    "labelled records": (
        ldp.LogisticRegression(), (told(RECORDS, X), told(BITS, LABELS)), (X[SOME], LABELS[SOME]), LOGISTIC
    ),
    "moments": (ldp.LinearRegression(kind="statistics"), told(OF_MOMENTS, MOMENTS), MOMENTS[SOME], LINEAR),
}  # fmt: skip


def grouped(*groups):
    """Groups as arguments of `fit`: of a regression a list of records and one of answers."""
    return tuple(map(list, zip(*groups, strict=True))) if isinstance(groups[0], tuple) else (list(groups),)


def alone(group):
    return group if isinstance(group, tuple) else (group,)


@pytest.mark.parametrize("name", CASES)
def test_the_likelihood_of_groups_is_the_product_of_theirs(name):
    model, released, raw, point = CASES[name]
    each = [model.log_likelihood(*alone(released), **point)]
    # One category does not occur, which the raw values alone do not tell.
    each += [np.log(THETA[raw]).sum() if name == "rows" else model.log_likelihood(*alone(raw), **point)]
    for order in itertools.permutations((released, raw)):
        for container in (list, tuple):
            told = [container(part) for part in grouped(*order)]
            assert model.log_likelihood(*told, **point) == pytest.approx(sum(each), rel=1e-12)
    thrice, slope = model.log_likelihood(*grouped(raw, released, released), gradient=True, **point)
    assert thrice == pytest.approx(each[1] + 2 * each[0], rel=1e-12)
    assert set(slope) == set(point)


@pytest.mark.parametrize("length", [8, 12])
def test_the_posterior_of_groups_is_that_of_their_product_on_a_grid(length):
    """With as many raw values as released ones too: those were stacked, and the raw taken for released."""
    mechanism = privacy.LaplaceMechanism(2.0, -2, 2)
    released = mechanism.release(RNG.normal(0.5, 0.6, 12), insecure_seed=2)
    raw = RNG.normal(0.5, 0.6, length)
    mu, log_sigma = np.linspace(-1.5, 2.5, 81), np.linspace(-2.2, 1.2, 71)
    places, sigma = mu[:, None], np.exp(log_sigma)
    x = np.linspace(-2, 2, 401)
    logs = stats.norm(places, sigma).logpdf(raw[:, None, None]).sum(axis=0)
    kernel = lambda z, x: np.exp(-np.abs(z - x) / mechanism.scale)  # noqa: E731
    density = stats.norm(places[..., None], sigma[:, None]).pdf(x)
    for z in released.values:
        inside = np.trapezoid(density * kernel(z, x), x, axis=-1)
        below, above = stats.norm(places, sigma).cdf(-2), stats.norm(places, sigma).sf(2)
        logs += np.log(inside + below * kernel(z, -2) + above * kernel(z, 2))
    logs += stats.norm(0, 1).logpdf(places) + stats.gamma(2).logpdf(sigma) + log_sigma
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = (mass * places).sum()
    expected = mean, math.sqrt((mass * (places - mean) ** 2).sum()), (mass * sigma).sum()
    priors = {"mu": Normal(0, 1), "sigma": Gamma(2, 1)}
    for order in ([released, raw], [raw, released]):
        model = ldp.GaussianModel(priors=priors, random_state=0).fit(order)
        found = model.posterior_mean_["mu"], model.posterior_sd_["mu"], model.posterior_mean_["sigma"]
        assert found == pytest.approx(expected, rel=2e-3)


def test_posteriors_of_either_order_are_one():
    for name in ("normal", "exponential", "Poisson", "geometric", "bits"):
        model, released, raw, _ = CASES[name]
        means = [type(model)().fit(list(order)).posterior_mean_ for order in ((released, raw), (raw, released))]
        assert means[0] == pytest.approx(means[1], rel=1e-9)
    raw = np.repeat([0, 1, 2], [50, 30, 20])
    told = UNARY.release(raw, insecure_seed=1)
    settings = {"n_chains": 2, "n_warmup": 300, "n_draws": 2000, "random_state": 0}
    first, second = (ldp.HistogramModel(**settings).fit(order) for order in ([told, raw], [raw, told]))
    assert first.posterior_mean_["theta"] == pytest.approx(second.posterior_mean_["theta"], abs=0.01)
    assert first.posterior_sd_["theta"].max() < ldp.HistogramModel(**settings).fit(raw).posterior_sd_["theta"].max()


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
def test_users_of_groups_follow_one_another():
    few = {"n_chains": 1, "n_warmup": 50, "n_draws": 10, "random_state": 0}
    for name in ("normal", "Poisson", "bits", "rows", "categories"):
        model, released, raw, _ = CASES[name]
        model = type(model)(**few).fit([released, raw])
        each = model.log_likelihoods([raw, released])
        assert each.shape == (1, 10, len(raw) + len(released))
        assert np.array_equal(each[..., len(raw) :], model.log_likelihoods(released))
        point = {key: values[0, 3] for key, values in model.draws_.items()}
        assert each[0, 3].sum() == pytest.approx(model.log_likelihood([released, raw], **point), rel=1e-9)
    model, released, raw, point = CASES["records"]
    model = ldp.LinearRegression(**few).fit(*grouped(released, raw))
    assert model.log_likelihoods(*grouped(released, raw)).shape == (1, 10, 38)


def test_what_belongs_to_a_group_is_given_for_each():
    model = ldp.HistogramModel(data="counts")
    rows = UNARY.release(CHOICES, insecure_seed=1).values
    sums = [privacy.Release(part.sum(axis=0), UNARY.guarantee, noise=UNARY.noise) for part in (rows[:10], rows[10:])]
    both = model.log_likelihood(sums, n=[10, 20], theta=THETA)
    each = [model.log_likelihood(part, n=n, theta=THETA) for part, n in zip(sums, (10, 20), strict=True)]
    assert both == pytest.approx(sum(each), rel=1e-13)
    with pytest.raises(ValueError, match="`n` must be a list with one for each of 2 groups"):
        model.log_likelihood(sums, n=30, theta=THETA)
    totals = [
        privacy.Release(MOMENTS[:9].sum(axis=0), OF_MOMENTS.guarantee, noise=OF_MOMENTS.noise),
        OF_MOMENTS.release(MOMENTS[9:]),
    ]
    model = ldp.LinearRegression(kind="statistics")
    both = model.log_likelihood(totals, n=[9, None], **LINEAR)
    each = [model.log_likelihood(part, n=n, **LINEAR) for part, n in zip(totals, (9, None), strict=True)]
    assert both == pytest.approx(sum(each), rel=1e-13)


RELEASE = CASES["normal"][1]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ([RELEASE, 3.0], "must hold releases and arrays of raw values, got 3.0"),
        ([RELEASE, None], "must hold releases and arrays of raw values, got None"),
        ([[RELEASE, X[:, 0]], X[:, 1]], "releases in lists within a list"),
        ([RELEASE, [RELEASE]], "releases in lists within a list"),
        ([X[:, 0], X[:3, 0]], "arrays of one length where no release"),
        ([RELEASE, [1.0, math.nan]], "finite"),
        ([RELEASE, ["a"]], "numbers"),
        ([RELEASE, privacy.Release([1.0], RELEASE.guarantee)], "without it"),
        ([RELEASE, WHOLE.release([1])], "must be one of"),
    ],
)
@pytest.mark.parametrize("container", [list, tuple])
def test_what_is_no_list_of_groups_is_refused(told, says, container):
    with pytest.raises((ValueError, TypeError), match=says):
        ldp.GaussianModel().fit(container(told))


def test_raw_values_beside_releases_and_a_mechanism_are_refused():
    """They may have its noise, or none: nobody said."""
    raw = np.zeros(3)
    for call in (
        lambda: ldp.GaussianModel(BOXED).fit([RELEASE, raw]),
        lambda: ldp.GaussianModel().fit([RELEASE, raw], mechanism=BOXED),
        lambda: ldp.LinearRegression((RECORDS, None)).fit(*grouped(*CASES["records"][1:3])),
        lambda: ldp.LinearRegression(OF_MOMENTS, kind="statistics").fit([CASES["moments"][1], MOMENTS]),
    ):
        with pytest.raises(ValueError, match="releases alone where there is a `mechanism`"):
            call()
    other = privacy.LaplaceMechanism(3.0, -5, 5)
    point = {"mu": 0.3, "sigma": 0.8}
    given = ldp.GaussianModel().log_likelihood([RELEASE, RELEASE], mechanism=other, **point)
    assert given == pytest.approx(2 * ldp.GaussianModel(other).log_likelihood(RELEASE.values, **point))
    told = privacy.Release(raw, BOXED.guarantee, noise=noise.LaplaceNoise(10.0, -5, 5))
    assert math.isfinite(ldp.GaussianModel(BOXED).log_likelihood([RELEASE, told], **point))


def test_factorizations_take_one_release():
    release = privacy.privatize(COUNTS.reshape(6, 5), epsilon=1.0)
    for told in ([release, release], (release, COUNTS.reshape(6, 5)), [*release]):
        with pytest.raises(ValueError, match="must be one release"):
            factorization.PoissonFactorization(1).fit(told)
