"""Priors that are learnt: the sweep beside the joint law of priors, factors and releases, and the points of an ascent.

Independent replicates (Gandy and Scott 2020): priors from their hyperpriors, factors, a release, sweeps given the
release; every function of both changes by zero on average. Holm's procedure keeps the false-alarm rate of a test at
1e-6; three thousand replicates see a mean that is off by a seventh of the spread of its changes.
"""

import numpy as np
import pytest
from scipy import special
from tests.factorization.chains import assert_means, assert_uniform, effective_size, holm, of_no_change

from quincunx import _core
from quincunx.distributions import TwoPiecePoisson
from quincunx.factorization import PoissonBlockmodel, PoissonDynamics, PoissonFactorization, PoissonTensorFactorization
from quincunx.privacy import privatize

MODELS = {
    "matrix": ("cp", (4, 3), "factor"),
    "matrix by rows": ("cp", (4, 3), "row"),
    "tensor by rows": ("cp", (2, 3, 2), "row"),
    "directed": ("directed", (4,), "factor"),
    "undirected by rows": ("undirected", (4,), "row"),
    "topics": ("cp", (4, 3), "factor"),
    "topics by rows": ("cp", (4, 3), "row"),
}
WIDTH, ALPHA = 2, 0.4


def shapes_of(name):
    model, extents, _ = MODELS[name]
    return [(extent, WIDTH) for extent in extents] if model == "cp" else [(extents[0], WIDTH), (WIDTH, WIDTH)]


def drawn_priors(name, rng):
    """Return shapes and rates from their hyperpriors, rates as columns; components of topics have Dirichlet laws."""
    found = []
    for i, (rows, _) in enumerate(shapes_of(name)):
        if i == 1 and name.startswith("topics"):
            found.append((rng.exponential(), np.empty((0, 1))))
            continue
        shape = rng.exponential()
        while not 0.05 <= shape <= 100:
            shape = rng.exponential()
        found.append((shape, rng.exponential(size=(rows if MODELS[name][2] == "row" else 1, 1))))
    return found


def drawn_factor(prior, size, rng):
    """Return a factor from its prior, no entry below the least double."""
    shape, rates = prior
    if rates.size:
        return np.maximum(rng.gamma(shape, 1 / np.broadcast_to(rates, size)), 2.3e-308)
    logs = np.log(rng.gamma(shape + 1, size=size)) + np.log(rng.random(size)) / shape
    return np.maximum(special.softmax(logs, axis=0), 2.3e-308)


def drawn(name, rng):
    """Return priors and factors."""
    priors = drawn_priors(name, rng)
    factors = [drawn_factor(prior, size, rng) for prior, size in zip(priors, shapes_of(name), strict=True)]
    if MODELS[name][0] == "undirected":  # the rate of an entry is that of its row from the diagonal on
        factors[1] = np.triu(factors[1]) + np.triu(factors[1], 1).T
    return priors, factors


def release_of(name, factors, rng):
    """Return a release, and the core's form of it."""
    model, extents, _ = MODELS[name]
    rates = _core.factor_rates(model, list(extents), factors, 1)
    rows, cols = (extents[0],) * 2 if model != "cp" else (int(np.prod(extents[:-1])), extents[-1])
    counts = rng.poisson(np.minimum(rates, 1e15))
    released = counts + rng.geometric(1 - ALPHA, counts.shape) - rng.geometric(1 - ALPHA, counts.shape)
    mask = np.zeros(rows * cols, dtype=np.uint8)
    mask[cols + 1] = name == "topics by rows"
    return released, _core.ReleasedCounts(released, rows, cols, np.array([ALPHA]), mask)


def chain_from(name, table, priors, factors, rng):
    """Return a chain that learns priors, from some and from factors."""
    model, extents, kind = MODELS[name]
    given = []
    for shape, rates in priors:
        flat = np.ascontiguousarray(rates).reshape(-1)
        given.append((np.array([shape]), flat if len(flat) < 2 else np.repeat(flat, WIDTH)))
    key = tuple(int(word) for word in rng.integers(2**62, size=2))
    chain = _core.GibbsChain(table, model, list(extents), WIDTH, given, "collapsed", key)
    chain.learn_priors(kind)
    chain.set_factors(factors)
    return chain


def priors_of(chain, kind):
    return [(shape[0], rate[:: WIDTH if kind == "row" else 1][:, None]) for shape, rate in chain.priors()]


def describe(states):
    """Return functions of priors, factors and release, a row for each of many states."""
    priors, factors, releases = zip(*states, strict=True)
    found, table = [], (1, 2)
    for prior, factor in zip(zip(*priors, strict=True), map(np.stack, zip(*factors, strict=True)), strict=True):
        shape, rates = map(np.stack, zip(*prior, strict=True))
        logs = np.log(np.maximum(factor, 2.3e-308))
        found += [np.log(shape), np.log(shape) ** 2, shape, np.tanh(logs.mean(axis=table)), np.tanh(logs[:, 0, 0])]
        last = np.log(rates[:, 0, 0] if rates.size else shape)
        if not rates.size:
            least = np.tanh(logs.min(axis=table))
            found += [np.log(shape) * np.tanh(logs[:, 0, 0]), np.log(shape) * least, factor[:, 0, 0] ** 2]
            continue
        found += [np.log(rates).mean(axis=table), last, np.log(rates[:, -1, 0]), np.log(shape) * last, rates[:, 0, 0]]
        found += [np.tanh(np.log(factor.sum(axis=table))) * np.log(shape)]
    size = np.arcsinh(np.stack(releases)).mean(axis=1)
    return np.stack([*found, size * found[0], size * last], axis=1)


def least_p(name, number, *, damage=1.0):
    """Return how likely so large a change of each function by three sweeps is on average over so many replicates."""
    rng, before, after = np.random.default_rng([8, list(MODELS).index(name)]), [], []
    for _ in range(number):
        priors, factors = drawn(name, rng)
        released, table = release_of(name, factors, rng)
        chain = chain_from(name, table, [(damage * shape, rates) for shape, rates in priors], factors, rng)
        chain.run(3, 0, 1)
        before.append((priors, factors, released))
        after.append((priors_of(chain, MODELS[name][2]), chain.factors(), released))
    return of_no_change(describe(after) - describe(before))


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_sweeps_leave_the_joint_law_as_it_is(name):
    assert not holm(least_p(name, 3000))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["matrix", "topics"])
def test_a_start_that_is_no_draw_of_the_prior_is_seen(name):
    assert holm(least_p(name, 1500, damage=3.0))


def ranks(name, thin):
    """Return the ranks of true values among 31 draws of 160 chains that start far from the truth, and effective sizes.

    Functions named "scale" change where a factor is multiplied by what others are divided by: data do not tell of them.
    """
    (model, extents, _), rng, found, sizes = MODELS[name], np.random.default_rng(41), {}, []
    seen = np.eye(extents[0]).reshape(-1) == 0 if model == "directed" else slice(None)
    powers = (2, 1) if model == "directed" else (1,) * len(extents)

    def functions(priors, logs, rates, likelihood):
        """Priors are pairs of arrays, of axes (draw,) and (draw, group); factors and cells begin with the same axis."""
        values = {"likelihood": likelihood, "all": rates[:, seen].sum(axis=1), "one": rates[:, 1]}
        common = 0.0
        for i, ((shape, group), log, power) in enumerate(zip(priors, logs, powers, strict=True)):
            values |= {f"shape {i}": shape, f"spread {i}": log.std(axis=(1, 2)), f"scale {i}": log.mean(axis=(1, 2))}
            common = common + power * np.log(group).sum(axis=1) / max(group.shape[1], 1)
            if group.shape[1] > 1:
                values[f"contrast {i}"] = group[:, 0] / group[:, 1]
        return values | {"rates": common, "scale": common - 3 * np.log(priors[0][1]).mean(axis=1)}

    for _ in range(160):
        priors, factors = drawn(name, rng)
        _, table = release_of(name, factors, rng)
        chain = chain_from(name, table, *drawn(name, rng), rng)
        chain.run(10 * thin, 0, 1)
        chain.take()
        chain.run(31 * thin, thin, 1)
        kept = chain.take()
        draws, learnt = kept["draws"][: len(factors)], iter(kept["draws"][len(factors) :])
        ours = [
            (next(learnt)[:, 0, 0], next(learnt)[:, :, 0] if rate.size else np.empty((31, 0))) for _, rate in priors
        ]
        theirs = [(np.array([shape]), rate.reshape(1, -1)) for shape, rate in priors]
        rates = [_core.factor_rates(model, list(extents), list(at), 1) for at in (factors, *each(draws))]
        truth = _core.log_likelihoods(table, rates[0], 1)[seen].sum()
        values = functions(
            ours, [np.log(np.maximum(x, 2.3e-308)) for x in draws], np.array(rates[1:]), kept["log_likelihood"]
        )
        ones = functions(theirs, [np.log(x)[None] for x in factors], np.array(rates[:1]), np.array([truth]))
        for what, value in values.items():
            found.setdefault(what, []).append((value < ones[what]).sum())
        sizes.append(effective_size(np.stack(list(values.values()), axis=1)))
    return found, dict(zip(found, np.quantile(sizes, 0.1, axis=0), strict=True))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["matrix by rows", "directed", "topics"])
@pytest.mark.parametrize("thin", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_ranks_of_the_truth_are_uniform(name, thin):
    """Simulation-based calibration (Talts et al. 2018), chi-square on 8 bins of ranks, false alarm 1e-6 by Holm.

    A spread that is wrong by half is seen. The short one leaves out what moves slowly: in a tenth of its chains five of
    31 draws are effective, and ranks pile up at both ends.
    """
    found, sizes = ranks(name, thin)
    chosen = [what for what in found if thin > 40 or not what.startswith("scale")]
    assert_uniform({what: found[what] for what in chosen}, what=f"{name}, effective draws {sizes}")


def each(draws):
    """Return the factors of each draw."""
    return zip(*(np.ascontiguousarray(part) for part in draws), strict=True)


# The concentration of topics: exact answers, and an ascent beside them.


def by_quadrature(released, length):
    """Return the means of eta, phi_1 and its square: a document of known length, one topic, eta ~ Gamma(1, 1).

    The number of words is Poisson, and given it counts are Dirichlet-multinomial: a sum over counts for each eta, and
    Gauss and Legendre in ln eta.
    """
    nodes, weights = np.polynomial.legendre.leggauss(120)
    log_eta, words = -15 + 10 * (nodes + 1), np.arange(45)
    y = np.stack(np.meshgrid(*[words] * len(released), indexing="ij")).reshape(len(released), -1)
    n = y.sum(axis=0)
    noise = np.abs(np.array(released)[:, None] - y).sum(axis=0) * np.log(ALPHA)
    fixed = n * np.log(length) - special.gammaln(y + 1).sum(axis=0) + noise
    total = np.zeros(4)
    for log, weight in zip(log_eta, weights, strict=True):
        eta = np.exp(log)
        all_words = len(released) * eta
        mass = special.gammaln(all_words) - special.gammaln(all_words + n)
        mass = mass + (special.gammaln(eta + y) - special.gammaln(eta)).sum(axis=0)
        mass = weight * eta * np.exp(fixed + mass - eta)
        first = (eta + y[0]) / (all_words + n)
        square = first * (eta + y[0] + 1) / (all_words + n + 1)
        total += [mass.sum(), eta * mass.sum(), (first * mass).sum(), (square * mass).sum()]
    return total[1:] / total[0]


def test_the_quadrature_has_the_mean_of_draws_by_importance():
    """A second origin: draws of the prior weighted by the law of the release, a million of them."""
    rng, released, length = np.random.default_rng(2), [4, -1], 5.0
    eta = rng.exponential(size=1_000_000)
    logs = np.log(rng.gamma(eta + 1, size=(2, len(eta)))) + np.log(rng.random((2, len(eta)))) / eta
    first = special.softmax(logs, axis=0)
    weight = np.ones(len(eta))
    for o, share in zip(released, first, strict=True):
        weight *= np.exp(TwoPiecePoisson(o, length * share, ALPHA).log_marginal())
    for values, exact in zip((eta, first[0], first[0] ** 2), by_quadrature(released, length), strict=True):
        mean = (weight @ values) / weight.sum()
        error = np.sqrt(((weight * (values - mean)) ** 2).sum()) / weight.sum()
        assert abs(mean - exact) < 5 * error


@pytest.mark.statistical
@pytest.mark.parametrize("released", [(4, -1), (9, 0, 1)])
def test_a_chain_has_the_means_of_the_exact_posterior(released):
    length, ones = 5.0, np.ones(1)
    table = _core.ReleasedCounts(np.array(released), 1, len(released), np.array([ALPHA]))
    priors = [(ones, ones), (ones, np.empty(0))]
    chain = _core.GibbsChain(table, "cp", [1, len(released)], 1, priors, "collapsed", (4, 7), [True, False])
    chain.learn_priors("factor")
    chain.set_factors([np.full((1, 1), length), np.full((len(released), 1), 1 / len(released))])
    chain.run(500, 0, 1)
    chain.take()
    chain.run(60_000, 1, 1)
    _, components, eta = chain.take()["draws"]
    first = components[:, 0, 0]
    for values, exact in zip((eta[:, 0, 0], first, first**2), by_quadrature(released, length), strict=True):
        assert_means(values, exact, f"given {released}")


@pytest.mark.parametrize("mask", [None, np.random.default_rng(1).random((8, 6)) < 0.2])
def test_ascents_end_where_the_bound_is_largest_in_the_concentration(mask):
    model = PoissonFactorization(
        2, topics="dirichlet", hyperpriors="factor", inference="vi", max_iter=20000, tol=1e-13, **QUICK
    )
    model.fit(RELEASE, mask=mask)
    assert (np.diff(model.elbo_) > -1e-9 * np.abs(model.elbo_[1:])).all()
    shape, eta = model._posterior.best.state["shape_1"], float(model.priors_["components"][0][0])
    logs = special.digamma(shape) - special.digamma(shape.sum(axis=0))
    slope = (special.digamma(6 * eta) - special.digamma(eta) + logs).sum() - 1
    assert abs(slope) < 0.05 or eta == pytest.approx(1 / 500)


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")  # one short chain
def test_learnt_concentrations_are_near_those_of_the_data():
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.gamma(0.5, 400.0, (60, 4)) @ rng.dirichlet(np.full(50, 0.2), 4))
    release = privatize(counts, epsilon=1.0, insecure_seed=1)
    how = {"topics": "dirichlet", "topic_concentration": 2.0, "hyperpriors": "factor", "n_warmup": 300, "n_draws": 100}
    for inference in ("mcmc", "vi"):
        model = PoissonFactorization(4, inference=inference, **how, **QUICK).fit(release)
        assert 0.14 < model.priors_["components"][0][0] < 0.28


@pytest.mark.filterwarnings("ignore")  # a few sweeps fit nothing
def test_learnt_concentrations_are_named():
    fitted = PoissonFactorization(2, topics="dirichlet", hyperpriors="row", n_warmup=5, n_draws=6, **QUICK).fit(RELEASE)
    draws = fitted.draws_
    assert draws["components_concentration"].shape == (1, 6)
    concentration, none = fitted.priors_["components"]
    assert concentration == pytest.approx(draws["components_concentration"].mean())
    assert not none.size
    assert draws["embedding_rate"].shape == (1, 6, 8)


RELEASE = privatize(np.random.default_rng(3).poisson(3.0, (8, 6)), epsilon=1.0, insecure_seed=2)
QUICK = {"n_chains": 1, "random_state": 0}


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
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
    assert [shape for shape in rates if shape] == [(length,) for length in names]  # that of the weights is a number
    assert all((rate > 0).all() for _, rate in fitted.priors_.values())


@pytest.mark.filterwarnings("ignore")
def test_rates_of_components_go_with_their_components():
    """The order of each draw is found again in the diagonal; of a core the rates have an axis for each mode."""
    how = {"hyperpriors": "row", "n_warmup": 30, "n_draws": 20, "n_chains": 3, "random_state": 3}
    blocks = PoissonBlockmodel(3, **how).fit(RELEASE[:6])
    rates, before = blocks.draws_["interaction_rate"], np.diagonal(blocks.draws_["interaction"], axis1=2, axis2=3)
    after = np.diagonal(blocks.align(each_draw=True).draws_["interaction"], axis1=2, axis2=3)
    order = (after[..., :, None] == before[..., None, :]).argmax(axis=-1)
    assert (order != np.arange(3)).any()
    np.testing.assert_array_equal(blocks.draws_["interaction_rate"], np.take_along_axis(rates, order, axis=-1))
    best = max(range(3), key=lambda chain: blocks._posterior.runs[chain].log_likelihood.mean())
    mean = blocks.draws_["interaction_rate"][best].mean(axis=0)
    np.testing.assert_allclose(blocks.priors_["interaction"][1], np.repeat(mean[:, None], 3, axis=1))
    released = privatize(np.ones((3, 4, 2), dtype=int), epsilon=1.0, insecure_seed=1)
    tensor = PoissonTensorFactorization((2, 3, 2), core="dense", **how).fit(released)
    tree = tensor.to_datatree()
    assert tree["posterior"]["core_rate"].dims == ("chain", "draw", "component_0", "component_1")


@pytest.mark.filterwarnings("ignore")
def test_priors_have_the_shapes_of_their_factors():
    per_word, how = np.array([0.1, 0.2, 0.3]), {"inference": "vi", "max_iter": 3, "random_state": 1}
    model = PoissonFactorization(2, prior_shape=[0.4, per_word], **how).fit(np.ones((4, 3)))
    np.testing.assert_array_equal(model.priors_["components"][0], np.broadcast_to(per_word, (2, 3)))
    again = PoissonFactorization(2, prior_shape=[shape for shape, _ in model.priors_.values()], **how)
    assert (again.fit(np.ones((4, 3))).components_ == model.components_).all()
    tensor = PoissonTensorFactorization((2, 3), core="dense", hyperpriors="row", **how).fit(np.ones((4, 5)))
    assert [rate.shape for _, rate in tensor.priors_.values()] == [(4, 2), (5, 3), (2, 3)]
    assert (np.ptp(tensor.priors_["core"][1], axis=1) == 0).all()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (PoissonFactorization(2, hyperpriors="column"), "`hyperpriors` must be one of"),
        (PoissonFactorization(2, hyperpriors="row", prior_shape=[0.1, np.ones((2, 6))]), "shapes of their own"),
        (
            PoissonFactorization(2, topics="dirichlet", topic_concentration=np.ones(6), hyperpriors="factor"),
            "shapes of their own",
        ),
        (PoissonDynamics(2, hyperpriors="row"), "`hyperpriors` must be None or 'factor' for dynamics, got 'row'"),
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


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["factor", "row"])
@pytest.mark.parametrize("start", [1e-3, 1e4])
def test_a_start_outside_the_bounds_of_what_is_learnt_is_left(start, kind):
    """Where many entries make steps small none of them leads back."""
    counts = np.random.default_rng(5).poisson(0.3, (300, 20))
    how = {"n_warmup": 2, "n_draws": 3, "thin": 1, "n_chains": 1, "random_state": 1, "prior_rate": 1.0}
    model = PoissonFactorization(40, prior_shape=start, hyperpriors=kind, **how).fit(counts)
    shapes = model.draws_["embedding_shape"]
    assert ((0.05 <= shapes) & (shapes <= 100)).all()
