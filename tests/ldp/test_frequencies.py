"""Estimates of shares without a posterior: by hand, by enumeration, and beside the likelihood that they maximize."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import optimize

from quincunx import ldp
from quincunx.errors import ConvergenceWarning
from quincunx.ldp import _frequencies, estimate_frequencies
from quincunx.privacy import (
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LaplaceMechanism,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)

MECHANISMS = [
    UnaryEncoding(1.0, 5),
    UnaryEncoding(1.0, 5, "symmetric"),
    UnaryEncoding(1.0, 5, "threshold"),
    GeneralizedRandomizedResponse(1.0, 5),
    SubsetSelection(1.0, 5, size=2),
    LocalHashing(1.0, 5),
    HadamardResponse(1.0, 5, blocks=1),
    HadamardResponse(2.0, 5),
]
X = np.repeat(np.arange(5), [600, 250, 140, 10, 0])
FOUND = np.array([0.7, 0.35, -0.1, 0.02, 0.05])


def test_rules_by_hand():
    for rule, right in {
        "unbiased": FOUND,
        "base-pos": [0.7, 0.35, 0.0, 0.02, 0.05],
        "norm": FOUND - 0.004,
        "norm-mul": np.array([0.7, 0.35, 0, 0.02, 0.05]) / 1.12,
        "norm-cut": [0.7, 0.0, 0.0, 0.0, 0.0],
        "norm-sub": np.array([0.7 - 0.1 / 3, 0.35 - 0.1 / 3, 0.0, 0.0, 0.05 - 0.1 / 3]),
    }.items():
        assert _frequencies.RULES[rule](FOUND) == pytest.approx(right, abs=1e-12), rule
    assert _frequencies.RULES["norm-mul"](np.array([-1.0, -2.0])).tolist() == [0.5, 0.5]
    assert _frequencies.RULES["norm-cut"](np.array([0.3, 0.5, -0.2])).tolist() == [0.3, 0.5, 0.0]
    # What norm-sub makes is the nearest point of the simplex, and the same was added to each that is left.
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = rng.normal(0.2, 0.3, 5)
        shares = _frequencies.RULES["norm-sub"](found)
        nearest = optimize.minimize(
            lambda t, found=found: ((t - found) ** 2).sum(), np.full(5, 0.2), bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda t: t.sum() - 1}, tol=1e-14,
        ).x  # fmt: skip
        assert shares == pytest.approx(nearest, abs=1e-6)
        assert np.ptp((shares - found)[shares > 0]) < 1e-12


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_estimates_of_a_release_are_those_of_its_mechanism_and_consistent(mechanism):
    release = mechanism.release(X, insecure_seed=1)
    assert estimate_frequencies(release, "unbiased") == pytest.approx(mechanism.estimate(release), abs=1e-14)
    assert estimate_frequencies(release) == pytest.approx(mechanism.estimate(release, simplex=True), abs=1e-14)
    assert np.array_equal(estimate_frequencies(release.values, mechanism=mechanism), estimate_frequencies(release))
    for rule in ("norm", "norm-mul", "norm-sub", "likelihood"):
        assert estimate_frequencies(release, rule).sum() == pytest.approx(1, abs=1e-12)
    for rule in ("base-pos", "base-cut", "norm-mul", "norm-cut", "norm-sub", "likelihood"):
        assert estimate_frequencies(release, rule).min() >= 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_greatest_likelihood_is_that_of_a_general_optimizer(mechanism):
    release, model = mechanism.release(X, insecure_seed=2), ldp.HistogramModel()

    def loss(u):
        theta = np.append(np.exp(u), 1.0)
        return -model.log_likelihood(release, theta=theta / theta.sum())

    best = min((optimize.minimize(loss, np.full(4, start), method="BFGS") for start in (0.0, 2.0)), key=lambda r: r.fun)
    shares = estimate_frequencies(release, "likelihood", tolerance=1e-6)
    assert -model.log_likelihood(release, theta=shares) <= best.fun + 1e-6
    rough = estimate_frequencies(release, "likelihood", tolerance=0.5)
    assert -model.log_likelihood(release, theta=rough) <= best.fun + 0.5
    with pytest.warns(ConvergenceWarning, match="raise `max_iter`"):
        estimate_frequencies(release, "likelihood", tolerance=1e-9, max_iter=1)


def test_an_update_is_the_mean_of_the_posterior_shares_of_users(monkeypatch):
    mechanism = LocalHashing(1.0, 5)
    release = mechanism.release(X, insecure_seed=1)
    laws = np.exp([mechanism.log_likelihood(release, x) for x in range(5)])
    theta = np.full(5, 0.2)
    by_hand = (theta[:, None] * laws / (theta @ laws)).mean(axis=1)
    core = ldp.HistogramModel()._groups(release, None, True)[0].likelihood()
    _, slope = core.value(theta, True)
    assert theta * (len(X) + slope - theta @ slope) / len(X) == pytest.approx(by_hand, rel=1e-12)


def test_several_releases_have_one_likelihood():
    parts = [LocalHashing(2.0, 5), UnaryEncoding(1.0, 5), GeneralizedRandomizedResponse(1.0, 5)]
    releases = [part.release(X, insecure_seed=1) for part in parts]
    model = ldp.HistogramModel()
    shares = estimate_frequencies(releases, "likelihood", tolerance=1e-6)
    value = model.log_likelihood(releases, theta=shares)
    for other in np.random.default_rng(0).dirichlet(np.ones(5), 50):
        mixed = 0.99 * shares + 0.01 * other
        assert model.log_likelihood(releases, theta=mixed) <= value + 1e-6
    with pytest.raises(ValueError, match="one release"):
        estimate_frequencies(releases)
    calls = []
    estimate_frequencies(releases, "likelihood", progress=lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, 1000)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_thresholds_pass_a_category_of_nobody_as_rarely_as_said(mechanism):
    # Of 2000 populations without the last category, a share of at most 0.05 / 5 has it above: 4.9 deviations, 1e-6.
    x = np.repeat([0, 1, 3], [600, 300, 100])
    stack = mechanism.release(np.tile(x, (2000, 1)), insecure_seed=3)
    passed = sum(estimate_frequencies(each, "base-cut")[4] > 0 for each in stack)
    assert abs(passed - 20) < 4.9 * np.sqrt(20 * 0.99) + 1


def test_bad_input_is_refused():
    release = LocalHashing(1.0, 5).release(X, insecure_seed=1)
    with pytest.raises(ValueError, match="`method` must be one of"):
        estimate_frequencies(release, "best")
    for method in ("base-cut", "norm-sub"):  # also where it has no part
        with pytest.raises(ValueError, match="`significance`"):
            estimate_frequencies(release, method, significance=1.5)
    for method in ("likelihood", "unbiased"):
        with pytest.raises(ValueError, match="`tolerance`"):
            estimate_frequencies(release, method, tolerance=0)
        with pytest.raises(ValueError, match="`max_iter`"):
            estimate_frequencies(release, method, max_iter=0)
    with pytest.raises(ValueError, match="`mechanism` must be given"):
        estimate_frequencies([0, 1, 2])
    with pytest.raises(ValueError, match="`mechanism` must be one of"):
        estimate_frequencies(LaplaceMechanism(1.0, 0, 1).release([0.5]))
    for mechanism, rule in itertools.product(MECHANISMS, ("norm-sub", "likelihood")):
        with pytest.raises(ValueError, match="at least one report"):
            estimate_frequencies(mechanism.release([]), rule)


def test_estimates_that_are_shares_are_left_as_they_are():
    mechanism = GeneralizedRandomizedResponse(3.0, 4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = np.repeat(range(4), rng.integers(50, 120, 4))
        unbiased = estimate_frequencies(x, "unbiased", mechanism=mechanism)
        if unbiased.min() > 0:
            np.testing.assert_array_equal(estimate_frequencies(x, "norm-cut", mechanism=mechanism), unbiased)


def test_what_nobody_released_has_a_share_of_zero_and_no_slope():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate_frequencies([0, 0, 0, 2], "likelihood") == pytest.approx([0.75, 0.0, 0.25])
    _, slope = ldp.HistogramModel().log_likelihood([0, 0, 2], theta=[0.7, 0.0, 0.3], gradient=True)
    assert slope["theta"] == pytest.approx([2 / 0.7, 0.0, 1 / 0.3])
