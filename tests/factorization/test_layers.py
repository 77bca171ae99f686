"""Topics in layers: joint law, planted faults, known answers by quadrature, ranks of the truth, the estimator."""

import re
from functools import cache

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone
from tests.factorization.chains import (
    assert_means,
    assert_uniform,
    counts_of,
    holm,
    log_grid,
    of_same_law,
    ranks_of_truths,
    start_from,
)
from tests.saved import reread

from quincunx import _core
from quincunx.distributions import TwoPiecePoisson, TwoSidedGeometric
from quincunx.factorization import PoissonFactorization, cross_validate
from quincunx.factorization._command import factorize_command
from quincunx.privacy import privatize

ALPHA, ONES = 0.5, np.ones(1)
pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

# The model, drawn in NumPy.

DOCUMENTS, WORDS = 4, 3
USUAL, ETA, MIXING = (2.0, 1.5), 0.8, 0.6
LAYERS = {"two": (2, 2), "three": (3, 2, 2)}


def drawn(layers, rng, many=()):
    """Return factors in the core's order, from the prior, or so many of each."""
    weights = rng.gamma(USUAL[0], 1 / USUAL[1], (*many, 1, layers[-1]))
    rates = rng.gamma(USUAL[0], 1 / USUAL[1], (*many, DOCUMENTS, len(layers)))
    shape, pairs = np.broadcast_to(weights, (*many, DOCUMENTS, layers[-1])), []
    for layer in range(len(layers) - 1, -1, -1):
        theta = rng.standard_gamma(shape) / rates[..., layer, None]
        below = layers[layer - 1] if layer else WORDS
        mixing = dirichlet(np.full((*many, below, layers[layer]), MIXING if layer else ETA), rng)
        pairs = [theta, mixing, *pairs]
        shape = theta @ mixing.swapaxes(-1, -2)
    return [*pairs, rates, weights]


def dirichlet(concentrations, rng):
    draws = np.maximum(rng.standard_gamma(concentrations), 1e-290)
    return draws / draws.sum(axis=-2, keepdims=True)


def core_chain(layers, released, hidden=None, method="auto", fixed=None, priors=None):
    table = counts_of(released, ALPHA, hidden)
    usual = tuple(np.array([x]) for x in USUAL)
    if priors is None:
        priors = [(ONES, ONES), (np.array([ETA]), np.empty(0))]
        priors += [(ONES, ONES), (np.array([MIXING]), np.empty(0))] * (len(layers) - 1) + [usual, usual]
    extents = [*np.shape(released), *layers[1:]]
    return _core.GibbsChain(table, "layers", extents, layers[0], priors, method, (3, 4), fixed)


def release_of(factors, rng):
    counts = rng.poisson(factors[0] @ factors[1].swapaxes(-1, -2))
    return counts + TwoSidedGeometric(ALPHA).sample(counts.shape, rng=rng)


def numbers(factors):
    """Return functions of a draw, or of each of many, which say something of each of its parts."""
    *pairs, rates, weights = factors
    found = {"ln r": np.log(weights[..., 0, 0]), "ln all r": np.log(weights.sum(axis=(-2, -1)))}
    for t, (theta, mixing) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        logs, total = np.log(np.maximum(theta, 1e-290)), theta.sum(axis=(-2, -1))
        found |= {
            f"theta {t}": logs[..., 0, 0],
            f"last theta {t}": logs[..., -1, -1],
            f"sum {t}": np.log(total + 1e-290),
        }
        found |= {f"least theta {t}": logs.min(axis=(-2, -1)), f"share {t}": mixing[..., 0, 0]}
        found |= {f"most {t}": mixing[..., -1, :].max(axis=-1)}
        found |= {f"rate {t}": np.log(rates[..., 0, t]), f"rates {t}": np.log(rates[..., t]).mean(axis=-1)}
        if t + 1 < rates.shape[-1]:
            shape = pairs[2 * t + 2] @ pairs[2 * t + 3].swapaxes(-1, -2)
            step = logs - np.log(np.maximum(shape, 1e-290)) + np.log(rates[..., t, None])
            found |= {f"step {t}": step[..., 1, 0], f"steps {t}": step.mean(axis=(-2, -1))}
    cells = pairs[0] @ pairs[1].swapaxes(-1, -2)
    return found | {"first cell": np.log(cells[..., 0, 0] + 1e-290)}


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "masked", "method"), [("two", False, "collapsed"), ("two", True, "event"), ("three", True, "split")]
)
def test_sweeps_leave_the_joint_law_as_it_is(name, masked, method):
    """Draws from the prior and what rounds of data and a sweep make of others: Kolmogorov and Smirnov, Holm, 1e-6.

    1500 replicates see a distribution function that is off by a tenth.
    """
    layers, rng = LAYERS[name], np.random.default_rng(23)
    hidden = np.zeros((DOCUMENTS, WORDS), dtype=bool)
    if masked:
        hidden[0], hidden[1, 1] = True, True  # a whole document
    chain, after = core_chain(layers, np.zeros((DOCUMENTS, WORDS)), hidden, method), []
    before, others = (drawn(layers, rng, (1500,)) for _ in range(2))
    for factors in zip(*others, strict=True):
        for _ in range(8):
            chain.set_counts(counts_of(release_of(factors, rng), ALPHA, hidden))
            start_from(chain, factors)
            chain.run(1, 0, 1)
            factors = chain.factors()
        after.append(factors)
    found, worst = of_same_law(numbers(before), numbers([np.stack(parts) for parts in zip(*after, strict=True)]))
    assert not holm(found), worst


def seated(counts, shapes, rng):
    """Return numbers of tables, customer by customer."""
    found = np.zeros_like(counts)
    for i in range(int(counts.max(initial=0))):
        found += (counts > i) & (rng.random(counts.shape) * (shapes + i) < shapes)
    return found


def split(counts, weights, rng):
    """Return the parts of counts in proportion to weights along a further axis."""
    weights = weights + 1e-290
    return rng.multinomial(counts, weights / weights.sum(axis=-1, keepdims=True))


def plain_sweep(factors, released, fault, rng):
    """Return many draws of the factors of two layers after a sweep in NumPy, right or with a fault."""
    theta, phi, above, mixing, rates, weights = factors
    parts = theta[..., None, :] * phi[..., None, :, :]
    counts = np.asarray(TwoPiecePoisson(released, parts.sum(axis=-1), ALPHA).sample(rng=rng))
    of_cells = split(counts, parts, rng)
    phi, y = dirichlet(ETA + of_cells.sum(axis=-3), rng), of_cells.sum(axis=-2)
    tables = seated(y, np.maximum(above @ mixing.swapaxes(-1, -2), 1e-290), rng)
    moved = split(tables, above[..., None, :] * mixing[..., None, :, :], rng)
    received = moved.sum(axis=-2)
    zeta = np.ones_like(rates[..., 0]) if fault == "exposure of one" else np.log1p(1 / rates[..., 0])
    exposure = np.log1p(zeta / rates[..., 1]).sum(axis=-1)[..., None, None]
    tops = seated(received, np.broadcast_to(weights, received.shape), rng).sum(axis=-2, keepdims=True)
    weights = rng.gamma(USUAL[0] + tops, 1 / (USUAL[1] + exposure))
    new = dirichlet(MIXING + moved.sum(axis=-3), rng)
    if fault != "mixing last":
        mixing = new
    above = rng.standard_gamma(weights + received) / (rates[..., 1] + zeta)[..., None]
    shape = above @ mixing.swapaxes(-1, -2)
    theta = np.maximum(rng.standard_gamma(shape + y) / (rates[..., :1] + 1), 1e-290)
    sums = np.stack(np.broadcast_arrays(shape.sum(axis=-1), weights.sum(axis=-1)), axis=-1)
    rates = rng.gamma(USUAL[0] + sums, 1 / (USUAL[1] + np.stack([theta.sum(axis=-1), above.sum(axis=-1)], axis=-1)))
    return [theta, phi, above, new, rates, weights]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("fault", "number"),
    [
        *((None, 2000), ("exposure of one", 2000)),
        *(pytest.param(fault, 16_000, marks=pytest.mark.slow) for fault in (None, "mixing last")),
    ],
)
def test_faults_of_a_sweep_are_seen(fault, number):
    """The sweep written again in NumPy, and what is seen of it if it is damaged, in so many replicates."""
    rng = np.random.default_rng(24)
    before, factors = (drawn(LAYERS["two"], rng, (number,)) for _ in range(2))
    for _ in range(8):
        factors = plain_sweep(factors, release_of(factors, rng), fault, rng)
    found, worst = of_same_law(numbers(before), numbers(factors))
    assert bool(holm(found)) == (fault is not None), worst


# Known answers.


@cache
def by_quadrature(released, weight, rates):
    """Return ln p(released), E theta^1 and E theta^2: one document, one word, one component in each of two layers."""
    high, w_high = (np.concatenate(part) for part in zip(log_grid(-200, -40, 100), log_grid(-40, 6, 500), strict=True))
    low, w_low = log_grid(-60, 7, 900)
    above, theta = np.exp(high), np.exp(low)
    prior = np.exp(stats.loggamma.logpdf(high + np.log(rates[1]), weight)) * w_high
    shape = above[:, None]
    step = np.exp(shape * (np.log(rates[0]) + low) - rates[0] * theta - special.gammaln(shape)) * w_low
    gone = special.gammainc(above, rates[0] * np.exp(-60))  # what lies below the grid has a rate of nothing
    mass = np.exp(TwoPiecePoisson(released, theta, ALPHA).log_marginal())
    none = np.exp(TwoPiecePoisson(released, 0.0, ALPHA).log_marginal())
    joint, left = prior[:, None] * step * mass, prior * gone * none
    total = joint.sum() + left.sum()
    return np.log(total), (joint @ theta).sum() / total, (joint.sum(axis=1) @ above + left @ above) / total


QUADRATURE = [(3, 0.9, (1.2, 0.7)), (0, 0.4, (0.5, 2.0)), (9, 1.5, (0.3, 0.5))]


@pytest.mark.parametrize("case", QUADRATURE)
def test_the_quadrature_agrees_with_draws_by_importance(case):
    released, weight, rates = case
    rng = np.random.default_rng(1)
    above = rng.gamma(weight, 1 / rates[1], 1_000_000)
    theta = rng.standard_gamma(above) / rates[0]
    density = np.exp(TwoPiecePoisson(released, theta, ALPHA).log_marginal())
    known = by_quadrature(*case)
    assert abs(density.mean() - np.exp(known[0])) < 5 * density.std() / 1000
    for values, exact in ((theta, known[1]), (above, known[2])):
        mean = density @ values / density.sum()
        assert abs(mean - exact) < 5 * np.sqrt((density**2 * (values - mean) ** 2).sum()) / density.sum()


@pytest.mark.statistical
@pytest.mark.parametrize("case", QUADRATURE)
def test_the_means_of_a_chain_are_the_known_ones(case):
    released, weight, rates = case
    one, fixed = np.ones((1, 1)), [False, False, False, False, True, True]
    chain = core_chain((1, 1), [[released]], fixed=fixed)
    chain.set_factors([one, one, one, one, np.array([rates]), weight * one])
    chain.run(300, 0, 1)
    chain.take()
    chain.run(40_000, 1, 1)
    draws = chain.take()["draws"]
    theta, above = draws[0][:, 0, 0], draws[2][:, 0, 0]
    assert_means(np.stack([theta, above], axis=1), np.array(by_quadrature(*case)[1:]), f"given {case}")


# Calibration.


@pytest.mark.statistical
def test_ranks_of_the_truth_are_uniform():
    """As in test_calibration: 160 repetitions, 31 nearly independent draws each, 8 bins of ranks, Holm at 1e-6."""
    layers, rng = LAYERS["two"], np.random.default_rng(98)
    hidden = rng.random((DOCUMENTS, WORDS)) < 0.2
    chain = core_chain(layers, np.zeros((DOCUMENTS, WORDS)), hidden)

    def functions(factors):
        *pairs, rates, weights = factors
        table = np.log(pairs[0] @ pairs[1].T + 1e-290)
        found = {"first": table[0, 0], "last": table[-1, -1], "all": table.sum(), "r": np.log(weights).sum()}
        found |= {f"sum {t}": np.log(pairs[2 * t].sum() + 1e-290) for t in range(2)}
        found |= {f"least {t}": np.log(np.maximum(pairs[2 * t], 1e-290).min()) for t in range(2)}
        found |= {f"shares {t}": np.log(pairs[2 * t + 1] + 1e-290).sum() for t in range(2)}
        found |= {f"rate {t}": rates[0, t] for t in range(2)} | {
            f"rates {t}": np.log(rates[:, t]).sum() for t in range(2)
        }
        return found

    def released(truth):
        return counts_of(release_of(truth, rng), ALPHA, hidden)

    assert_uniform(ranks_of_truths(chain, lambda: drawn(layers, rng), released, functions, rng, thin=40))


# The estimator.

HOW = {"topics": "dirichlet", "n_warmup": 10, "n_draws": 12, "thin": 2, "n_chains": 2, "random_state": 7}
MODEL = PoissonFactorization((4, 3, 2), **HOW)


@cache
def documents():
    """A release of documents of two kinds, each of which has two topics of its own."""
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(30, 0.1), 4)
    kinds = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])[np.arange(80) % 2]
    shares = rng.gamma(0.7 * kinds + 1e-3)
    counts = rng.poisson(150 * shares / shares.sum(axis=1, keepdims=True) @ topics)
    return privatize(counts, epsilon=1.0, insecure_seed=3), topics


def test_runs_in_parts_by_files_and_on_threads_are_one_run():
    release, _ = documents()
    mask = np.random.default_rng(1).random(release.values.shape) < 0.1
    whole = clone(MODEL).set_params(threads=2).fit(release, mask=mask)
    part = clone(MODEL).set_params(threads=1, n_draws=5, warm_start=True).fit(release, mask=mask)
    for found in (part, reread(part)):
        found.set_params(n_draws=7).fit(release, mask=mask)
        for name, draws in whole.draws_.items():
            np.testing.assert_array_equal(found.draws_[name], draws)
    shapes = {name: draws.shape[2:] for name, draws in whole.draws_.items()}
    assert shapes == {
        "embedding": (80, 4),
        "components": (4, 30),
        "embedding_2": (80, 3),
        "components_2": (3, 4),
        "embedding_3": (80, 2),
        "components_3": (2, 3),
        "layer_rates": (80, 3),
        "weights": (2,),
    }
    assert [layer.shape for layer in whole.layers_] == [(3, 4), (2, 3)]
    for shares in (*whole.layers_, whole.topics_, whole.proportions_):
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    tree = whole.align().to_datatree(log_likelihood=True)
    assert tree["posterior"]["components_3"].dims == ("chain", "draw", "component_3", "component_2")
    assert np.isfinite(whole.score(release))


def test_topics_of_one_kind_are_in_one_component_of_the_layer_above():
    release, topics = documents()
    model = PoissonFactorization((4, 2), topics="dirichlet", n_warmup=600, n_draws=200, n_chains=2, random_state=1)
    model.fit(release)
    near = np.corrcoef(model.topics_, topics)[:4, 4:].argmax(axis=0)
    assert sorted(near) == [0, 1, 2, 3]
    first = model.layers_[0][:, near[:2]].sum(axis=1)  # what topics of the first kind have in each component
    assert abs(first[0] - first[1]) > 0.8


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # 150 sweeps are few
@pytest.mark.parametrize("prior", [(0.1, None), (1.0, 1.0), (5.0, 1.0), (1.0, 10.0)], ids=str)
@pytest.mark.parametrize("layers", [(4, 2), (4, 3, 2)], ids=str)
def test_rows_to_come_have_the_prior_of_the_layers_above(layers, prior):
    shape, rate = prior  # of rates and weights, not of the embedding
    counts = np.maximum(documents()[0].values, 0)
    how = HOW | {"n_warmup": 100, "n_draws": 50, "prior_shape": shape, "prior_rate": rate}
    model = PoissonFactorization(layers, **how).fit(counts)
    found = model.transform(counts)
    assert np.abs(found - model.embedding_).sum() < 0.15 * model.embedding_.sum()
    assert found.sum() == pytest.approx(counts.sum(), rel=0.01)


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # ten sweeps fit nothing
def test_learnt_concentrations_and_folds_go_with_layers():
    release, _ = documents()
    model = clone(MODEL).set_params(hyperpriors="factor", n_chains=1).fit(release)
    assert model.draws_["components_concentration"].shape == (1, 12)
    assert set(model.priors_) == {"components"}
    quick = clone(MODEL).set_params(n_chains=1)
    found = cross_validate(release, model=quick, n_components=[(2, 2), (3, 2)], folds=2, random_state=1)
    assert np.isfinite(found.means).all()


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_components": (4,)}, "`n_components` must be a number or hold one for each of two layers or more, got [4]"),
        ({"n_components": (4, 0)}, "`n_components` must be at least 1, got 0"),
        ({"topics": "gamma"}, "`topics` must be 'dirichlet' where `n_components` has layers, got 'gamma'"),
        ({"inference": "vi"}, "`inference` must be 'mcmc' where `n_components` has layers, got 'vi'"),
        ({"hyperpriors": "row"}, "`hyperpriors` must be None or 'factor' where `n_components` has layers, got 'row'"),
        (
            {"topic_concentration": np.ones(30)},
            "`topic_concentration` must be a number where `n_components` has layers",
        ),
        ({"prior_shape": (0.1,)}, "`prior_shape` must be a number where `n_components` has layers, got (0.1,)"),
        ({"likelihood": "negative_binomial"}, "`likelihood` must be"),
    ],
)
def test_what_does_not_go_with_layers_is_refused(parameters, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        clone(MODEL).set_params(**parameters).fit(documents()[0])


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # ten sweeps fit nothing
def test_a_file_is_factorized_in_layers(tmp_path):
    release, _ = documents()
    release.save(tmp_path / "released.npz")
    how = {"model": "topics", "n_warmup": 10, "n_draws": 10, "n_chains": 2, "random_state": 1}
    kept = tmp_path / "model.npz"
    told = factorize_command(tmp_path / "released.npz", n_components=(4, 2), out=kept, **how)
    assert told.startswith("model            PoissonFactorization, 4 x 2 components")
    model = PoissonFactorization.load(kept)
    assert [len(top) for top in model.top_features(n=3)] == [3, 3, 3, 3]
    assert model.transform(release).shape == (80, 4)
    assert np.isfinite(model.perplexity(np.maximum(release.values, 0)))
