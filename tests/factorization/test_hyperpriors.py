"""Priors that are learnt: the sweep beside the joint law of priors, factors and releases, and the points of an ascent.

Independent replicates (Gandy and Scott 2020): priors from their hyperpriors, factors, a release, sweeps given the
release; every function of both changes by zero on average. Holm's procedure keeps the false-alarm rate of a test at
1e-6; three thousand replicates see a mean that is off by a seventh of the spread of its changes.
"""

import numpy as np
import pytest
from scipy import special, stats
from tests.factorization.chains import holm

from quincunx import _core
from quincunx.factorization import PoissonBlockmodel, PoissonDynamics, PoissonFactorization, PoissonTensorFactorization
from quincunx.privacy import privatize

MODELS = {
    "matrix": ("cp", (4, 3), "factor"),
    "matrix by rows": ("cp", (4, 3), "row"),
    "tensor by rows": ("cp", (2, 3, 2), "row"),
    "directed": ("directed", (4,), "factor"),
    "undirected by rows": ("undirected", (4,), "row"),
}
WIDTH, ALPHA = 2, 0.4


def drawn_priors(shapes, kind, rng):
    """Return shapes and rates from their hyperpriors, rates as columns."""
    found = []
    for rows, _ in shapes:
        shape = rng.exponential()
        while not 0.05 <= shape <= 100:
            shape = rng.exponential()
        found.append((shape, rng.exponential(size=(rows if kind == "row" else 1, 1))))
    return found


def replicate(name, rng, *, damage=False):
    """Return functions of priors, factors and release before and after three sweeps."""
    model, extents, kind = MODELS[name]
    shapes = [(extent, WIDTH) for extent in extents] if model == "cp" else [(extents[0], WIDTH), (WIDTH, WIDTH)]
    priors = drawn_priors(shapes, kind, rng)
    factors = [rng.gamma(a, 1 / np.broadcast_to(b, size)) for (a, b), size in zip(priors, shapes, strict=True)]
    factors = [np.maximum(factor, 2.3e-308) for factor in factors]
    if model == "undirected":  # the rate of an entry is that of its row from the diagonal on
        factors[1] = np.triu(factors[1]) + np.triu(factors[1], 1).T
    rates = _core.factor_rates(model, list(extents), factors, 1)
    rows, cols = (extents[0],) * 2 if model != "cp" else (int(np.prod(extents[:-1])), extents[-1])
    counts = rng.poisson(np.minimum(rates, 1e15))
    released = counts + rng.geometric(1 - ALPHA, counts.shape) - rng.geometric(1 - ALPHA, counts.shape)
    table = _core.ReleasedCounts(released, rows, cols, np.array([ALPHA]))
    given = [
        (
            np.array([a * (3.0 if damage else 1.0)]),
            np.ascontiguousarray(b).reshape(-1) if b.size == 1 else np.repeat(b, WIDTH),
        )
        for a, b in priors
    ]
    key = tuple(int(word) for word in rng.integers(2**62, size=2))
    chain = _core.GibbsChain(table, model, list(extents), WIDTH, given, "collapsed", key)
    chain.learn_priors(kind)
    chain.set_factors(factors)
    chain.run(3, 0, 1)
    later = [(shape[0], rate[:: WIDTH if kind == "row" else 1][:, None]) for shape, rate in chain.priors()]
    return describe(later, chain.factors(), released) - describe(priors, factors, released)


def describe(priors, factors, released):
    found = []
    for (shape, rates), factor in zip(priors, factors, strict=True):
        logs = np.log(np.maximum(factor, 2.3e-308))
        found += [np.log(shape), np.log(shape) ** 2, np.log(rates).mean(), np.log(rates[0, 0]), np.log(rates[-1, 0])]
        found += [shape, np.tanh(logs.mean()), np.tanh(logs[0, 0]), np.log(shape) * np.log(rates[0, 0]), rates[0, 0]]
        found.append(np.tanh(np.log(factor.sum())) * np.log(shape))
    size = np.arcsinh(released).mean()
    return np.array([*found, size * np.log(priors[0][0]), size * np.log(priors[-1][1][0, 0])])


def least_p(name, number, **how):
    rng = np.random.default_rng([8, sorted(MODELS).index(name)])
    changes = np.array([replicate(name, rng, **how) for _ in range(number)])
    z = changes.mean(axis=0) / (changes.std(axis=0, ddof=1) / np.sqrt(number))
    return 2 * stats.norm.sf(np.abs(z))


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_sweeps_leave_the_joint_law_as_it_is(name):
    assert not holm(least_p(name, 3000))


@pytest.mark.statistical
def test_a_start_that_is_no_draw_of_the_prior_is_seen():
    assert holm(least_p("matrix", 1500, damage=True))


RELEASE = privatize(np.random.default_rng(3).poisson(3.0, (8, 6)), epsilon=1.0, insecure_seed=2)
QUICK = {"n_chains": 1, "random_state": 0}


@pytest.mark.parametrize("kind", ["factor", "row"])
@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_ascents_end_where_the_bound_is_largest(kind, likelihood):
    model = PoissonFactorization(
        2, hyperpriors=kind, likelihood=likelihood, inference="vi", max_iter=20000, tol=1e-13, **QUICK
    )
    model.fit(RELEASE)
    assert (np.diff(model.elbo_) > -1e-9 * np.abs(model.elbo_[1:])).all()
    state = model._posterior.best.state
    for i, (shape, rate) in enumerate(model._posterior.priors()):
        laws = state[f"shape_{i}"], state[f"rate_{i}"]
        means, logs = laws[0] / laws[1], special.digamma(laws[0]) - np.log(laws[1])
        rates = rate.reshape(-1, 2)[:, :1] if kind == "row" else rate[:, None]
        groups = means.sum(axis=1, keepdims=True) if kind == "row" else means.sum(keepdims=True)
        number = means.size / len(rates)
        np.testing.assert_allclose(rates, number * shape / (1 + groups), rtol=1e-3)
        slope = (np.log(np.broadcast_to(rates, means.shape)) + logs - special.digamma(shape)).sum() - 1
        assert abs(slope) < 0.05 or shape in (0.05, 100)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")  # one short chain
def test_learnt_priors_are_near_those_of_the_data():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.4, 2.0, (80, 3)) @ rng.gamma(0.8, 1.6, (3, 60)))
    release = privatize(counts, epsilon=1.0, insecure_seed=1)
    model = PoissonFactorization(3, hyperpriors="factor", n_warmup=300, n_draws=100, **QUICK).fit(release)
    assert 0.3 < model.priors_["embedding"][0][0] < 0.7
    assert 0.6 < model.priors_["components"][0][0] < 1.2
    draws = model.draws_
    assert draws["embedding_shape"].shape == draws["components_rate"].shape == (1, 100)
    assert draws["embedding_shape"].mean() == pytest.approx(model.priors_["embedding"][0][0])


@pytest.mark.parametrize(
    ("model", "released", "names"),
    [
        (PoissonBlockmodel(2, directed=False, hyperpriors="row", n_warmup=5, n_draws=5, **QUICK), RELEASE[:6], (6, 2)),
        (
            PoissonTensorFactorization(2, weights=True, hyperpriors="row", n_warmup=5, n_draws=5, **QUICK),
            privatize(np.ones((3, 4, 2), dtype=int), epsilon=1.0, insecure_seed=1),
            (3, 4, 2),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_each_row_of_each_factor_has_a_rate(model, released, names):
    fitted = model.fit(released)
    rates = [draws.shape[2:] for name, draws in fitted.draws_.items() if name.endswith("_rate")]
    assert rates[-len(names) :] == [(length,) for length in names]
    assert all((rate > 0).all() for _, rate in fitted.priors_.values())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (PoissonFactorization(2, hyperpriors="column"), "`hyperpriors` must be one of"),
        (PoissonFactorization(2, hyperpriors="row", prior_shape=[0.1, np.ones((2, 6))]), "shapes of their own"),
        (PoissonDynamics(2, hyperpriors="factor"), "`hyperpriors` must be none where factors are redrawn together"),
    ],
)
def test_what_cannot_be_learnt_is_refused(model, says):
    with pytest.raises(ValueError, match=says):
        model.fit(RELEASE)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")  # one short chain
def test_weights_of_small_shape_leave_as_many_components_as_the_data_have():
    """Shapes of 1 / K make the weights those of a gamma process cut to K components."""
    rng = np.random.default_rng(0)
    rows, columns = rng.gamma(0.4, 5.0, (80, 3)), rng.gamma(0.4, 1.6, (60, 3))
    release = privatize(rng.poisson(rows @ columns.T), epsilon=1.0, insecure_seed=1)
    model = PoissonTensorFactorization(8, weights=True, prior_shape=[0.3, 0.3, 1 / 8], n_warmup=1000, **QUICK)
    model.set_params(n_draws=100).fit(release)
    shares = model.weights_ * model.factors_[0].sum(axis=0) * model.factors_[1].sum(axis=0)
    truth = rows.sum(axis=0) * columns.sum(axis=0)
    np.testing.assert_allclose(np.sort(shares / shares.sum())[-3:], np.sort(truth / truth.sum()), atol=0.05)
