"""Topics with Dirichlet laws: exact answers of tiny models, a planted fault, second implementations of what is told.

What all models share runs over them in the tables of the other files: laws, calibration, bits, iterations of an ascent.
"""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from scipy.special import beta, digamma
from sklearn.base import clone
from tests.factorization import reference
from tests.factorization.chains import (
    METHODS,
    assert_means,
    batch_means,
    core_ascent,
    core_chain,
    holm,
    matrix,
    some_release,
)
from tests.factorization.test_joint_distribution import PROBLEMS, assert_same_law, describe, forward_states, stacked
from tests.factorization.test_variational import drops
from tests.saved import reread
from tests.statistics import FALSE_ALARM

from quincunx.factorization import PoissonFactorization, cross_validate
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

# Exact answers: one document, two words, one topic; theta ~ Gamma(1.5, 0.5), phi ~ Dirichlet(0.7, 1.1), alpha = 1/2.
WORDS = [(1.5, 0.5), (np.array([[0.7], [1.1]]), None)]
RELEASED = np.array([[3, -1]])
KNOWN = {
    "both cells": (None, -4.8869002381, 2.4922628676, 0.5734761622, 9.1242414178),
    "the second held out": ([[False, True]], -2.4316954955, 3.4521021314, 0.4735354232, None),
}


def by_quadrature(hidden):
    """Return ln p(o), E theta, E phi_1 and E theta^2 by the trapezoidal rule in ln theta and in the logit of phi_1."""
    u, w = np.linspace(-25, 5, 500), np.linspace(-45, 45, 900)
    theta, first = np.exp(u)[:, None], (1 / (1 + np.exp(-w)))[None]
    density = stats.gamma.pdf(theta, 1.5, scale=2) * theta * first**0.7 * (1 - first) ** 1.1 / beta(0.7, 1.1)
    for share, released, held in zip((first, 1 - first), RELEASED[0], hidden, strict=True):
        if not held:
            density = density * np.exp(reference.law_on_grid(int(released), theta * share, 0.5)[0])
    density = density * (u[1] - u[0]) * (w[1] - w[0])
    total = density.sum()
    return math.log(total), *(float((density * x).sum() / total) for x in (theta, first, theta**2))


@pytest.mark.parametrize("name", KNOWN)
def test_quadrature_has_the_known_answers(name):
    hidden, *known = KNOWN[name]
    for ours, theirs in zip(by_quadrature((hidden or [[False, False]])[0]), known, strict=True):
        assert theirs is None or ours == pytest.approx(theirs, abs=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("sweeps", [4_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_chains_have_the_means_of_the_exact_posterior(name, method, sweeps):
    """The squares of the second are from the quadrature above."""
    hidden, _, theta, first, _ = KNOWN[name]
    model = matrix(1, 2, 1, WORDS, None if hidden is None else np.array(hidden))
    chain = core_chain(model, RELEASED, 0.5, method, key=(5, 6))
    chain.run(1000, 0, 1)
    chain.take()
    chain.run(sweeps, 2, 1)
    embedding, components = chain.take()["draws"]
    np.testing.assert_allclose(components.sum(axis=1), 1.0, rtol=1e-14)
    second = by_quadrature((hidden or [[False, False]])[0])[3]
    for series, exact in ((embedding, theta), (components[:, 0], first), (embedding**2, second)):
        mean, error = batch_means(series.ravel())
        print(f"{name}, {method}: {mean:.4f} +- {error:.4f}, exactly {exact:.4f}")
        assert_means(series.ravel(), exact, f"{name}, {method}")


@pytest.mark.statistical
def test_components_whose_draws_are_all_below_the_least_double_have_their_law_too():
    """At a concentration of 1e-4 four of five are, where nothing is counted; each word has the same chance."""
    chain = core_chain(matrix(2, 3, 2, [(1.0, 1.0), (1e-4, None)]), np.zeros((2, 3), dtype=int), 0.0, key=(8, 1))
    chain.run(6000, 1, 1)
    components = chain.take()["draws"][1]
    np.testing.assert_allclose(components.sum(axis=1), 1.0, rtol=1e-14)
    words = np.bincount(components.argmax(axis=1).ravel(), minlength=3)
    assert stats.chisquare(words).pvalue > FALSE_ALARM


# The joint law where cells are held out.


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["event", "split"])
def test_a_sweep_with_held_out_cells_leaves_the_joint_distribution_invariant(method):
    assert_same_law("topics, hidden cells", method, 2000, 2000)


def scores_of_changes(imputed, repetitions=400, sweeps=4):
    """Return the t of each function's mean change by sweeps in NumPy, exact or without the counts of cells held out."""
    model, alpha = PROBLEMS["topics, hidden cells"]
    (shape, rate), (concentration, _) = model.priors
    states, _, _, first = forward_states("topics, hidden cells", repetitions)
    rng, after = np.random.default_rng(3), []
    for (theta, phi), counts, released in states:
        for _ in range(sweeps):
            parts = model.component_rates([theta, phi])
            total = parts.sum(axis=-1)
            drawn = reference.draw_counts(released, total, np.full(model.shape, alpha), rng)
            drawn = np.where(model.observed, drawn, rng.poisson(total) if imputed else 0)
            split = reference.split_counts(drawn, parts, rng)
            theta = rng.gamma(shape + split.sum(axis=1), 1 / (rate + 1))
            phi = rng.gamma(concentration + split.sum(axis=0))
            phi /= phi.sum(axis=0)
        after.append(([theta, phi], counts, released))
    last = describe(model, alpha, stacked(after))
    moved = {name: last[name] - first[name] for name in first if np.any(last[name] != first[name])}
    return np.array([np.sqrt(repetitions) * d.mean() / d.std(ddof=1) for d in moved.values()])


@pytest.mark.statistical
def test_held_out_cells_that_are_left_out_with_exposure_one_are_seen():
    right, wrong = (2 * stats.t.sf(np.abs(scores_of_changes(imputed)), 399) for imputed in (True, False))
    print(f"least p times tests: {right.min() * len(right):.2g} imputed, {wrong.min() * len(wrong):.2g} left out")
    assert not holm(right, FALSE_ALARM)
    assert holm(wrong, FALSE_ALARM)


# An ascent.


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_bound_never_falls_and_stays_below_the_evidence(share):
    for seed in range(8):
        hidden = np.random.default_rng(seed).random((9, 7)) < share
        model = matrix(9, 7, 3, [(0.4, 0.5), (0.3, None)], hidden)
        ascent = core_ascent(model, some_release(model, 0.5, seed), 0.5, key=(seed, 2))
        ascent.run(400, 0.0, 1)
        assert drops(ascent.elbo()) < 1e-12
        shape, rate = ascent.factors()[1]
        np.testing.assert_allclose(rate, np.broadcast_to(shape.sum(axis=0), rate.shape), rtol=1e-14)
    for hidden, evidence, *_ in KNOWN.values():
        ascent = core_ascent(matrix(1, 2, 1, WORDS, None if hidden is None else np.array(hidden)), RELEASED, 0.5)
        ascent.run(500, 0.0, 1)
        assert evidence - 1.5 < ascent.elbo()[-1] < evidence


@pytest.mark.parametrize("concentration", [1e-3, 1e-4, 1e-300])
def test_an_ascent_has_topics_whose_sums_of_shapes_are_next_to_nothing(concentration):
    for counts in (np.zeros((3, 5), dtype=int), np.eye(3, 5, dtype=int), np.ones((3, 1), dtype=int)):
        fitted = clone(ASCENT).set_params(topic_concentration=concentration, n_components=4).fit(counts)
        assert drops(fitted.elbo_) < 1e-9
        np.testing.assert_allclose(fitted.components_.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(fitted.rates_.sum(), counts.sum(), atol=1.5)


def test_the_printed_scheme_has_no_dirichlet_laws():
    model = matrix(3, 4, 2, [(1.0, 1.0), (0.3, None)])
    with pytest.raises(ValueError, match="`method` must be another one where components have Dirichlet laws"):
        core_ascent(model, np.ones((3, 4)), 0.5, "published")


# Estimators.

RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 8.0, (14, 2)) @ RNG.dirichlet(np.full(9, 0.5), 2) * 4)
RELEASE = privatize(COUNTS, epsilon=1.0, insecure_seed=3)
MASK = RNG.random(COUNTS.shape) < 0.2
HOW = {"n_warmup": 10, "n_draws": 12, "thin": 2, "max_iter": 40, "tol": 0.0, "n_chains": 2, "random_state": 7}
CHAINS = PoissonFactorization(2, topics="dirichlet", topic_concentration=0.3, **HOW)
ASCENT = clone(CHAINS).set_params(inference="vi")
each_kind = pytest.mark.parametrize("model", [CHAINS, ASCENT], ids=["mcmc", "vi"])


def assert_same(one, other):
    assert one.n_iter_ == other.n_iter_
    for name in ("embedding_", "components_", "proportions_", "topics_", "expected_counts_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@each_kind
def test_runs_in_parts_by_files_and_on_threads_are_one_run(model):
    whole = clone(model).set_params(threads=2).fit(RELEASE, mask=MASK)
    assert_same(clone(model).set_params(threads=1).fit(RELEASE, mask=MASK), whole)
    part = clone(model).set_params(n_draws=5, max_iter=17, warm_start=True).fit(RELEASE, mask=MASK)
    for found in (part, reread(part)):
        assert_same(found.set_params(n_draws=7, max_iter=23).fit(RELEASE, mask=MASK), whole)
    other = np.where(MASK, 1000, np.asarray(RELEASE))
    assert_same(clone(model).fit(other, alpha=RELEASE.alpha, mask=MASK), whole)


@each_kind
def test_topics_and_proportions_are_means_of_shares(model):
    fitted = clone(model).fit(RELEASE, mask=MASK)
    for shares in (fitted.topics_, fitted.proportions_):
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(fitted.topics_, fitted.components_, rtol=1e-12)
    if fitted.inference == "vi":
        shapes = fitted._posterior.best.state["shape_0"]
        np.testing.assert_allclose(fitted.proportions_, shapes / shapes.sum(axis=1, keepdims=True), rtol=1e-12)
        return
    before = fitted.align(each_draw=True).proportions_
    best = fitted._posterior.with_draws.index(fitted._posterior.best)
    draws = fitted.draws_["embedding"][best]
    np.testing.assert_allclose(before, (draws / draws.sum(axis=2, keepdims=True)).mean(axis=0), rtol=1e-12)


def test_gamma_components_have_shares_as_well():
    fitted = PoissonFactorization(2, **HOW).fit(RELEASE)
    draws = fitted.draws_
    best = fitted._posterior.with_draws.index(fitted._posterior.best)
    components, embedding = draws["components"][best], draws["embedding"][best]
    np.testing.assert_allclose(
        fitted.topics_, (components / components.sum(axis=2, keepdims=True)).mean(axis=0), rtol=1e-12
    )
    scaled = embedding * components.sum(axis=2)[:, None, :]
    np.testing.assert_allclose(
        fitted.proportions_, (scaled / scaled.sum(axis=2, keepdims=True)).mean(axis=0), rtol=1e-12
    )


def test_draws_of_an_approximation_are_those_of_its_laws():
    """Means and E ln of 20 000 draws, within six standard errors."""
    pytest.importorskip("arviz_base")
    fitted = clone(ASCENT).fit(RELEASE)
    draws = np.log(fitted.to_datatree(n_draws=20_000)["posterior"]["components"].values[0])
    np.testing.assert_allclose(np.exp(draws).sum(axis=2), 1.0, rtol=1e-12)
    shape = fitted._posterior.best.state["shape_1"].T
    exact = digamma(shape) - digamma(shape.sum(axis=1, keepdims=True))
    assert (np.abs(draws.mean(axis=0) - exact) < 6 * draws.std(axis=0) / math.sqrt(20_000)).all()
    tree = clone(CHAINS).fit(RELEASE, mask=MASK).to_datatree(log_likelihood=True, posterior_predictive=True)
    assert dict(tree["posterior"]["components"].sizes) == {"chain": 2, "draw": 12, "component": 2, "feature": 9}


def test_draws_of_an_approximation_sum_to_one_where_all_gammas_are_below_the_least_double():
    fitted = clone(ASCENT).set_params(topic_concentration=5e-4).fit(np.zeros((3, 4), dtype=int))
    draws = fitted.to_datatree(n_draws=2000)["posterior"]["components"].values[0]
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, rtol=1e-12)
    assert np.abs(draws.mean(axis=(0, 1)) - 0.25).max() < 6 * math.sqrt(0.25 * 0.75 / 4000)
    assert np.isfinite(fitted.check_predictive(n_draws=20).observed["dispersion"])


def test_expected_counts_are_those_of_the_geometric_means():
    fitted = clone(ASCENT).fit(RELEASE, mask=MASK)
    (a, b), (c, _) = (
        (fitted._posterior.best.state[f"shape_{i}"], fitted._posterior.best.state[f"rate_{i}"]) for i in (0, 1)
    )
    rate = np.exp(digamma(a)) / b @ np.exp(digamma(c) - digamma(c.sum(axis=0))).T
    law = reference.CellLaw(np.asarray(RELEASE), rate, RELEASE.alpha)
    np.testing.assert_allclose(fitted.expected_counts_, np.where(MASK, fitted.rates_, law.mean), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # priors that no data can move
def test_concentrations_and_priors_are_of_what_they_say():
    each = np.linspace(0.1, 1.0, 9)
    one = clone(CHAINS).set_params(topic_concentration=each, prior_shape=(np.array([0.2, 0.4]),)).fit(RELEASE)
    same = clone(CHAINS).set_params(
        topic_concentration=np.tile(each, (2, 1)), prior_shape=[np.tile([0.2, 0.4], (14, 1))], prior_rate=[0.01]
    )
    assert_same(same.fit(RELEASE), one)
    sure = np.array([[1e7], [3e7]]) * np.full(9, 1 / 9) * np.where(np.arange(9) < 3, 2.0, 0.5)
    sure = clone(CHAINS).set_params(topic_concentration=sure).fit(RELEASE)
    loaded = reread(sure)
    np.testing.assert_array_equal(loaded.topic_concentration, sure.topic_concentration)
    assert_same(loaded, sure)
    np.testing.assert_allclose(sure.topics_, np.tile(np.where(np.arange(9) < 3, 2 / 9, 0.5 / 9), (2, 1)), rtol=0.01)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"topics": "lda"}, ValueError, "`topics` must be one of ['gamma', 'dirichlet'], got 'lda'"),
        ({"topic_concentration": 0.0}, ValueError, "`topic_concentration` must be positive, got 0.0"),
        ({"topic_concentration": "few"}, TypeError, "`topic_concentration` must hold real numbers"),
        ({"topic_concentration": np.ones(8)}, ValueError, "a number or broadcast to shape (2, 9), got (8,)"),
        (
            {"prior_shape": (0.1, 0.2)},
            ValueError,
            "`prior_shape` must be a number or hold 1 entry (embedding) where the others have Dirichlet laws, got 2",
        ),
        ({"prior_rate": (-1.0,)}, ValueError, "`prior_rate` must be positive, got -1.0"),
        ({"inference": "vi", "method": "published"}, ValueError, '`method` must not be "published" where `topics`'),
    ],
)
def test_bad_parameters_are_refused(parameters, error, says):
    with pytest.raises(error, match=re.escape(says)):
        clone(CHAINS).set_params(**parameters).fit(RELEASE)


def test_new_documents_are_embedded_and_cells_predicted():
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.5, 400.0, (30, 3)) @ rng.dirichlet(np.full(40, 0.3), 3))
    released = privatize(counts, epsilon=1.0, insecure_seed=3)
    # With a shape below one a row of a few words has several optima.
    how = {"prior_shape": 1.0, "inference": "vi", "max_iter": 600, "n_chains": 1, "random_state": 2}
    fitted = PoissonFactorization(3, topics="dirichlet", **how)
    size = fitted.fit(released).embedding_.max(axis=1)
    assert (np.abs(fitted.transform(released) - fitted.embedding_).max(axis=1) < 0.05 * size + 0.5).all()
    assert np.isfinite(fitted.score(released))
    quick = clone(ASCENT).set_params(n_chains=1)
    found = cross_validate(RELEASE, model=quick, n_components=[1, 2], folds=3, random_state=1)
    assert np.isfinite(found.means).all()


# What is told of topics.


def test_perplexity_is_that_of_plain_numpy():
    fitted = clone(CHAINS).fit(RELEASE, mask=MASK)
    given = fitted.perplexity(COUNTS, mask=~MASK, proportions=fitted.proportions_)
    log, number = 0.0, 0
    for d in range(14):
        share = [
            sum(fitted.proportions_[d, k] * fitted.topics_[k, v] for k in range(2)) if MASK[d, v] else 0.0
            for v in range(9)
        ]
        for v in range(9):
            if MASK[d, v] and COUNTS[d, v]:
                log += COUNTS[d, v] * math.log(share[v] / sum(share))
                number += COUNTS[d, v]
    assert given == pytest.approx(math.exp(-log / number), rel=1e-12)
    rows = fitted._infer_rows(fitted._data(COUNTS, 0.0, None, reset=False), fitted.components_)
    shares = rows / rows.sum(axis=1, keepdims=True)
    plain = fitted.perplexity(COUNTS)
    assert plain == pytest.approx(fitted.perplexity(COUNTS, proportions=shares), rel=1e-12)
    assert plain == pytest.approx(fitted.perplexity(scipy.sparse.csr_array(COUNTS)), rel=1e-12)
    # Of a release the counts are expected, at the rates of the rows that it suggests.
    rows = fitted.transform(RELEASE)
    rates = rows @ fitted.components_
    counts = reference.CellLaw(np.asarray(RELEASE), rates, RELEASE.alpha).mean
    log = (counts * np.log(rates / rates.sum(axis=1, keepdims=True))).sum()
    assert fitted.perplexity(RELEASE) == pytest.approx(math.exp(-log / counts.sum()), rel=1e-9)


def test_perplexity_of_a_release_takes_the_counts_of_the_model_s_own_law():
    model = PoissonFactorization(2, inference="vi", likelihood="negative_binomial", random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(RELEASE)
    rates = model.transform(RELEASE) @ model.components_
    shape, x, y = 1 / model.dispersion_, np.asarray(RELEASE)[..., None], np.arange(400)
    log = stats.nbinom.logpmf(y, shape, shape / (shape + rates[..., None])) + np.abs(x - y) * np.log(RELEASE.alpha)
    chances = np.exp(log - log.max(axis=-1, keepdims=True))
    counts = (chances * y).sum(axis=-1) / chances.sum(axis=-1)
    log = (counts * np.log(rates / rates.sum(axis=1, keepdims=True))).sum()
    assert model.perplexity(RELEASE) == pytest.approx(math.exp(-log / counts.sum()), rel=1e-6)


def test_perplexity_is_close_to_that_of_another_library():
    """scikit-learn bounds the likelihood of long documents, of whose proportions little is not known."""
    decomposition = pytest.importorskip("sklearn.decomposition")
    rng = np.random.default_rng(2)
    topics, shares = rng.dirichlet(np.full(30, 0.2), 3), rng.dirichlet(np.full(3, 0.3), 40)
    counts = rng.poisson(2000 * shares @ topics)
    other = decomposition.LatentDirichletAllocation(3, max_iter=60, random_state=0).fit(counts)
    ours = PoissonFactorization(3, topics="dirichlet", inference="vi", n_chains=4, random_state=0, max_iter=400)
    assert ours.fit(counts).perplexity(counts) == pytest.approx(other.perplexity(counts), rel=0.02)


def coherences(topic, documents, n, measure):
    """Return the mean over pairs, one at a time."""
    first = sorted(range(len(topic)), key=lambda v: (-topic[v], v))[:n]
    sets = [{d for d, document in enumerate(documents) if document[v] > 0} for v in first]
    found = []
    for before, after in itertools.combinations(sets, 2):
        both, total = len(before & after), len(documents)
        if measure == "umass":
            found.append(math.log((both + 1) / len(before)) if before else -math.log(total))
        elif not both:
            found.append(-1.0)
        elif both == total:
            found.append(0.0)
        else:
            pmi = math.log((both / total) / (len(before) / total * len(after) / total))
            found.append(pmi / -math.log(both / total))
    return sum(found) / len(found)


@pytest.mark.parametrize("measure", ["umass", "npmi"])
def test_coherence_is_that_of_plain_python(measure):
    fitted = clone(CHAINS).fit(RELEASE)
    public = np.random.default_rng(4).poisson(0.7, (25, 9))
    public[:, 2], public[:, [5, 6]] = 0, 1
    for n in (2, 5, 9):
        expected = [coherences(topic, public.tolist(), n, measure) for topic in fitted.components_]
        np.testing.assert_allclose(fitted.coherence(public, measure, n), expected, rtol=1e-12)
        np.testing.assert_array_equal(
            fitted.coherence(scipy.sparse.coo_array(public), measure, n), fitted.coherence(public, measure, n)
        )
    # Two entries of a word that are 256 together, which eight bits do not hold.
    places = np.append(np.argwhere(public), [[0, 2], [0, 2]], axis=0).T
    entries = scipy.sparse.coo_array((np.append(public[public > 0], [128, 128]).astype(np.uint8), tuple(places)))
    public[0, 2] = 256
    np.testing.assert_array_equal(fitted.coherence(entries), fitted.coherence(public))
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(fitted.coherence(pandas.DataFrame(public)), fitted.coherence(public))


def test_coherence_is_that_of_another_library():
    models = pytest.importorskip("gensim.models")
    corpora = pytest.importorskip("gensim.corpora")
    fitted = clone(CHAINS).fit(RELEASE)
    public = 1 + np.random.default_rng(4).poisson(0.7, (25, 9)) * 0
    public[np.random.default_rng(5).random(public.shape) < 0.5] = 0
    texts = [[str(v) for v in np.flatnonzero(row)] for row in public]
    tops = [[str(v) for v, _ in top] for top in fitted.top_features(n=5)]
    dictionary = corpora.Dictionary(texts)
    theirs = models.CoherenceModel(
        topics=tops, texts=texts, dictionary=dictionary, coherence="c_npmi", window_size=100, topn=5
    )
    np.testing.assert_allclose(fitted.coherence(public, "npmi", 5), theirs.get_coherence_per_topic(), atol=1e-6)


def test_what_cannot_be_told_of_topics_is_refused():
    fitted = clone(CHAINS).fit(RELEASE)
    for call, error, says in [
        (lambda: fitted.coherence(RELEASE), ValueError, "`counts` must be public counts, got a release"),
        (lambda: fitted.coherence(COUNTS, "c_v"), ValueError, "`measure` must be one of ['umass', 'npmi'], got 'c_v'"),
        (lambda: fitted.coherence(COUNTS, n=1), ValueError, "`n` must be at least 2, got 1"),
        (lambda: fitted.coherence(COUNTS[:, :5], n=2), ValueError, "shape (n_documents, 9), got (14, 5)"),
        (lambda: fitted.coherence(COUNTS - 1, n=2), ValueError, "`counts` must hold"),
        (lambda: fitted.coherence(scipy.sparse.csr_array(COUNTS - 1), n=2), ValueError, "`counts` must hold"),
        (lambda: fitted.perplexity(RELEASE, proportions=np.ones((14, 2))), ValueError, "`proportions` must be None"),
        (lambda: fitted.perplexity(COUNTS, proportions=np.ones((14, 3))), ValueError, "must have shape (14, 2)"),
        (lambda: fitted.perplexity(COUNTS, proportions=-np.ones((14, 2))), ValueError, "must be at least 0, got -1.0"),
        (lambda: fitted.perplexity(0 * COUNTS), ValueError, "`counts` must hold a count above 0"),
        (lambda: fitted.perplexity(COUNTS - 1), ValueError, "Negative values in data"),
        (lambda: fitted.perplexity(COUNTS[:, :5]), ValueError, "9 features"),
    ]:
        with pytest.raises(error, match=re.escape(says)):
            call()
