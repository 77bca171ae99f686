"""Stochastic variational inference beside coordinate ascent: its steps, where it ends, files, what it refuses."""

import itertools
import tracemalloc

import numpy as np
import pytest

from quincunx import _core
from quincunx.errors import CheckpointError
from quincunx.factorization import PoissonBlockmodel, PoissonFactorization
from quincunx.factorization._data import Data
from quincunx.factorization._parts import Parts
from quincunx.factorization._rows import flat_priors, laws_of_rows
from quincunx.factorization._stochastic import step
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
RNG = np.random.default_rng(7)
TOPICS = RNG.gamma(0.3, 1.0, (4, 40))


def drawn(rows, seed=1):
    """Return rows from the model, and their release."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 3.0, (rows, 4)) @ TOPICS)
    return counts, privatize(counts, epsilon=1.0, insecure_seed=seed)


COUNTS, RELEASE = drawn(600)
SHORT = {"inference": "svi", "n_chains": 1, "prior_shape": 0.3, "batch_size": 100, "random_state": 3}


# One step.


def a_problem(kind):
    """Return data, priors and laws of rows and columns."""
    rng = np.random.default_rng(5)
    rows, cols, width = 30, 12, 3
    values = rng.poisson(2.0, (rows, cols)) + rng.integers(-2, 3, (rows, cols))
    alpha = rng.uniform(0.1, 0.6, (rows, cols)) if kind == "ratios for each cell" else np.array(0.4)
    held = rng.random((rows, cols)) < 0.2 if "mask" in kind else None
    rates = np.empty(0) if "dirichlet" in kind else np.array([0.7])
    of_rows = rng.uniform(0.2, 1.0, rows * width) if kind == "priors for each entry" else np.array([0.3])
    priors = [(of_rows, np.array([0.5])), (np.array([0.4]), rates)]
    some = [(rng.gamma(3.0, 1.0, (n, width)) + 0.1, rng.gamma(3.0, 1.0, (n, width)) + 0.1) for n in (rows, cols)]
    if "dirichlet" in kind:
        some[1] = (some[1][0], np.broadcast_to(some[1][0].sum(axis=0), (cols, width)).copy())
    return Data(values, alpha, held), priors, some


KINDS = ("plain", "ratios for each cell", "mask", "dirichlet", "dirichlet with a mask", "priors for each entry")


def core_ascent(data, priors, laws, fixed=None):
    (rows, cols), width = data.shape, laws[0][0].shape[1]
    ascent = _core.CoordinateAscent(
        data.counts, "cp", [rows, cols], width, flat_priors(priors), "collapsed", (1, 2), fixed
    )
    ascent.set_factors(laws)
    return ascent


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_all_rows_with_rho_one_is_a_step_of_coordinate_ascent(kind):
    data, priors, (rows, columns) = a_problem(kind)
    ascent = core_ascent(data, priors, [rows, columns], [True, False])
    ascent.run(1, 0.0, 1)
    (shape, rate), _ = step(data, columns, priors, rows, 1.0, 1.0, 1)
    np.testing.assert_allclose(shape, ascent.factors()[1][0], rtol=1e-13)
    np.testing.assert_allclose(rate, ascent.factors()[1][1], rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_of_a_batch_of_all_rows_is_the_bound(kind):
    data, priors, laws = a_problem(kind)
    ascent = core_ascent(data, priors, laws)
    ascent.run(1, 0.0, 1)
    rows, columns = ascent.factors()
    assert step(data, columns, priors, rows, 1.0, 0.5, 1)[1] == pytest.approx(ascent.elbo()[0], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_add_up_to_all_rows_and_steps_are_shares_of_the_way(kind):
    data, priors, (rows, columns) = a_problem(kind)
    (whole, whole_rate), _ = step(data, columns, priors, rows, 1.0, 1.0, 1)
    found = []
    for part in np.array_split(np.random.default_rng(1).permutation(30), 4):
        own = [(entry.reshape(30, 3)[part] if entry.size > 1 else entry) for entry in priors[0]]
        laws = rows[0][part], rows[1][part]
        there, _ = step(data.of_rows(part), columns, [tuple(own), priors[1]], laws, 2.5, 1.0, 1)
        here, _ = step(data.of_rows(part), columns, [tuple(own), priors[1]], laws, 2.5, 0.3, 1)
        np.testing.assert_allclose(here[0], 0.7 * columns[0] + 0.3 * there[0], rtol=1e-13)
        if "dirichlet" not in kind:
            np.testing.assert_allclose(here[1], 0.7 * columns[1] + 0.3 * there[1], rtol=1e-13)
        found.append(there)
    np.testing.assert_allclose(sum(one[0] - 0.4 for one in found) / 2.5, whole - 0.4, rtol=1e-11)
    if "dirichlet" not in kind:
        np.testing.assert_allclose(sum(one[1] - 0.7 for one in found) / 2.5, whole_rate - 0.7, rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_rows_are_those_of_an_ascent_with_the_components_fixed(kind):
    data, priors, (_, columns) = a_problem(kind)
    shape, rate = laws_of_rows(data, columns, priors, threads=1, tolerance=1e-12, rounds=300)
    ascent = core_ascent(data, priors, [(shape, rate), columns], [False, True])
    ascent.run(1, 0.0, 1)
    np.testing.assert_allclose(ascent.factors()[0][0], shape, rtol=1e-9)
    np.testing.assert_allclose(ascent.factors()[0][1], rate, rtol=1e-12)


# Where it ends.


@pytest.mark.parametrize(
    ("how", "released"),
    [
        ({}, RELEASE),
        ({"noise": "naive"}, RELEASE),
        ({"noise": "none"}, COUNTS),
        ({"topics": "dirichlet"}, RELEASE),
    ],
    ids=["gamma", "naive", "without noise", "dirichlet"],
)
def test_it_ends_where_coordinate_ascent_does(how, released):
    """Rows that were not seen are as likely by either, to .01 nats a cell; the bound is within 1 %."""
    new = drawn(300, seed=2)[0 if how.get("noise") == "none" else 1]
    ascent = PoissonFactorization(4, **(SHORT | {"inference": "vi", "tol": 1e-6} | how)).fit(released)
    batches = PoissonFactorization(4, **(SHORT | {"max_iter": 60, "tol": 1e-5} | how)).fit(released)
    problem, state = batches._posterior.problem, batches._posterior.best.state
    laws = [(state[f"shape_{i}"], state[f"rate_{i}"]) for i in range(2)]
    bound = step(problem.data, laws[1], problem.priors, laws[0], 1.0, 0.5, 1)[1]
    print(f"{how}: {ascent.score(new):.4f} and {batches.score(new):.4f}, {ascent.elbo_[-1]:.1f} and {bound:.1f}")
    assert batches.score(new) > ascent.score(new) - 0.01
    assert bound > ascent.elbo_[-1] - 0.01 * abs(ascent.elbo_[-1])
    assert batches.elbo_[-1] < bound


def test_held_out_cells_are_predicted_as_well_as_by_coordinate_ascent():
    mask = np.random.default_rng(4).random(COUNTS.shape) < 0.1
    ascent = PoissonFactorization(4, **(SHORT | {"inference": "vi", "tol": 1e-6})).fit(RELEASE, mask=mask)
    batches = PoissonFactorization(4, **SHORT, max_iter=24, tol=1e-5).fit(RELEASE, mask=mask)
    found = [model.heldout_log_probability(COUNTS) for model in (ascent, batches)]
    print(f"coordinate ascent {found[0]:.4f}, by batches {found[1]:.4f} nats a cell")
    assert found[1] > found[0] - 0.01
    hidden = np.where(mask, 999, RELEASE.values)
    again = PoissonFactorization(4, **SHORT, max_iter=24, tol=1e-5).fit(hidden, alpha=RELEASE.alpha, mask=mask)
    np.testing.assert_array_equal(again.components_, batches.components_)


def test_the_fit_stops_by_the_tolerance():
    model = PoissonFactorization(4, **SHORT, max_iter=200, tol=1e-3).fit(RELEASE)
    assert model.n_iter_ < 200
    assert model._posterior.best.converged
    changes = np.abs(np.diff(model.elbo_)) / np.abs(model.elbo_[1:])
    assert changes[-1] < 1e-3
    assert (changes[:-1] >= 1e-3).all()


# Bits.


def test_threads_stops_and_files_change_no_bit(tmp_path):
    whole = PoissonFactorization(4, **SHORT, max_iter=6, tol=0.0, threads=1).fit(RELEASE)
    threads = PoissonFactorization(4, **SHORT, max_iter=6, tol=0.0, threads=3).fit(RELEASE)
    part = PoissonFactorization(4, **SHORT, max_iter=4, tol=0.0, warm_start=True).fit(RELEASE)
    part.save(tmp_path / "model.npz")
    part = PoissonFactorization.load(tmp_path / "model.npz").set_params(max_iter=2).fit(RELEASE)
    RELEASE.save(tmp_path / "rows.npz")
    file = PoissonFactorization(4, **SHORT, max_iter=6, tol=0.0).fit([tmp_path / "rows.npz"])
    for other in (threads, part, file):
        np.testing.assert_array_equal(other.elbo_, whole.elbo_)
        np.testing.assert_array_equal(other.components_, whole.components_)
        np.testing.assert_array_equal(other.embedding_, whole.embedding_)
    other = PoissonFactorization(4, **(SHORT | {"random_state": 4}), max_iter=6, tol=0.0).fit(RELEASE)
    assert (other.elbo_ != whole.elbo_).all()


def test_a_pass_in_parts_is_a_pass():
    """What `partial_fit` does with all rows is the first pass of a fit, and the laws of rows follow at its end."""
    whole = PoissonFactorization(4, **SHORT, max_iter=1).fit(RELEASE)
    part = PoissonFactorization(4, **SHORT).partial_fit(RELEASE)
    np.testing.assert_array_equal(part.components_, whole.components_)
    np.testing.assert_array_equal(part.embedding_, whole.embedding_)


def test_a_stop_keeps_whole_passes():
    def stop(sweep, statistics):
        return sweep < 3

    model = PoissonFactorization(4, **SHORT, max_iter=9, callback=stop).fit(RELEASE)
    assert model.n_iter_ == 3
    whole = PoissonFactorization(4, **SHORT, max_iter=9, tol=0.0).fit(RELEASE)
    np.testing.assert_array_equal(model.elbo_, whole.elbo_[:3])


# Streams and files.


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # an ascent loses 3 % of these counts
def test_a_stream_of_chunks_is_learnt():
    new = drawn(300, seed=2)[1]
    ascent = PoissonFactorization(4, **(SHORT | {"inference": "vi", "tol": 1e-6})).fit(drawn(3000, seed=11)[1])
    model, scores = PoissonFactorization(4, **SHORT), []
    for chunk in range(30):
        model.partial_fit(drawn(300, seed=20 + chunk)[1], total_rows=9000)
        assert model.embedding_.shape == (300, 4)
        scores.append(model.score(new))
    assert model.n_iter_ == 30
    print(f"coordinate ascent {ascent.score(new):.4f}, a stream {scores[::5]} nats a cell")
    assert scores[-1] > scores[9] > scores[0]
    assert scores[-1] > ascent.score(new) - 0.025
    by_rows_seen = PoissonFactorization(4, **SHORT).partial_fit(RELEASE).partial_fit(RELEASE)
    assert by_rows_seen._posterior.problem.batches.total == 1200


@pytest.mark.parametrize("n_chains", [1, 2])
def test_a_chunk_that_is_interrupted_leaves_what_was_known_before(n_chains):
    model = PoissonFactorization(4, **SHORT | {"n_chains": n_chains}).partial_fit(RELEASE)
    before, whole = dict(model.__dict__), n_chains - 1  # chains that have ended

    def stop(done, total):
        if done > total * whole // n_chains:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(progress=stop).partial_fit(drawn(300, seed=2)[1])
    assert model.set_params(progress=before["progress"]).__dict__ == before
    assert model.rates_.shape == RELEASE.shape


def saved(folder, counts, edges):
    """Release rows into several files; return these and all that was released."""
    paths, values = [], []
    for first, last in itertools.pairwise(edges):
        part = privatize(counts[first:last], epsilon=1.0, insecure_seed=first)
        paths.append(folder / f"{first}.npz")
        part.save(paths[-1])
        values.append(part.values)
    return paths, np.concatenate(values)


def test_files_are_read_one_at_a_time(tmp_path):
    """At the peak of a fit of 10 files there are fewer bytes than four of them have, and what is known of rows."""
    paths, _ = saved(tmp_path, RNG.poisson(1.0, (10 * 256, 100)), range(0, 11 * 256, 256))
    model = PoissonFactorization(2, **(SHORT | {"batch_size": 128}), max_iter=1)
    model.fit(paths[:1])  # what is imported is imported
    tracemalloc.start()
    model.fit(paths)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size, rows = 256 * 100 * 8, 10 * 256 * 2 * 8
    print(
        f"{peak / size:.1f} files of 8 bytes a cell at the peak, of 10; {rows / size:.1f} is a table of the rows' laws"
    )
    assert peak < 4 * size + 6 * rows
    assert model.embedding_.shape == (10 * 256, 2)


def test_a_checkpoint_knows_batches_and_files_that_are_not_read_together(tmp_path, monkeypatch):
    (paths, values), path = saved(tmp_path, COUNTS, [0, 128, 384, 600]), tmp_path / "fit"
    how = SHORT | {"batch_size": 128, "max_iter": 4, "tol": 0.0}
    whole = PoissonFactorization(4, **how).fit(paths)
    read = Parts._whole.func
    monkeypatch.setattr(Parts, "_whole", property(lambda part: read(part) if len(part.paths) == 1 else None))
    with pytest.raises(ZeroDivisionError):
        PoissonFactorization(4, **how, progress=lambda done, total: 1 / (2 - done)).fit(paths, checkpoint=path)
    for changed in ({"batch_size": 100}, {"learning_offset": 20.0}, {"learning_decay": 0.8}):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            PoissonFactorization(4, **how | changed).fit(paths, checkpoint=path)
    with pytest.raises(CheckpointError, match="belongs to another fit"):  # batches do not reach from file into file
        PoissonFactorization(4, **how).fit(values, alpha=RELEASE.alpha, checkpoint=path)
    again = PoissonFactorization(4, **how).fit(paths, checkpoint=path)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_a_fit_of_files_finds_what_a_fit_of_all_rows_does(tmp_path):
    new, (paths, values) = drawn(300, seed=2)[1], saved(tmp_path, COUNTS, [0, 128, 384, 600])
    whole = PoissonFactorization(4, **SHORT, max_iter=40, tol=1e-5).fit(values, alpha=RELEASE.alpha)
    model = PoissonFactorization(4, **SHORT, max_iter=40, tol=1e-5).fit([str(path) for path in paths])
    assert abs(model.score(new) - whole.score(new)) < 0.01
    # Rows are where they are in the files, one after the other.
    again = model.transform(values, alpha=RELEASE.alpha)  # components known, where the fit has laws of them
    assert np.abs(model.embedding_ - again).mean() < 0.01 * again.mean()


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # one topic for rows of two kinds
@pytest.mark.parametrize("topics", ["gamma", "dirichlet"])
@pytest.mark.parametrize("last", [4, 100])
def test_rows_of_a_small_file_weigh_what_others_do(topics, last, tmp_path):
    # Rows of the small file have words of their own, whose share of the one topic is theirs of all words.
    rows = 512 + last
    rates = np.where((np.arange(rows) < 512)[:, None] == (np.arange(20) < 10), 5.0, 1e-9)
    paths, values = saved(tmp_path, np.random.default_rng(2).poisson(rates), [0, 512, rows])
    alpha = privatize([[0]], epsilon=1.0).alpha
    how = SHORT | {"topics": topics, "max_iter": 15, "batch_size": 128}
    whole = PoissonFactorization(1, **how).fit(values, alpha=alpha)
    model = PoissonFactorization(1, **how).fit(paths)
    share, expected = (one.topics_[0, 10:].sum() for one in (model, whole))
    assert abs(share - expected) < 0.1 * expected + 0.001
    assert model.elbo_[-1] == pytest.approx(whole.elbo_[-1], rel=0.01)


# What it refuses.


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"hyperpriors": "factor"}, "`hyperpriors` must be None with inference='svi'"),
        ({"likelihood": "negative_binomial"}, "`likelihood` must be 'poisson' with inference='svi'"),
        ({"method": "bessel-mean"}, "`method` must be"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"learning_offset": 0.5}, "`learning_offset` must be at least 1, got 0.5"),
        ({"learning_decay": 0.5}, r"`learning_decay` must be within \(0.5, 1\], got 0.5"),
        ({"learning_decay": float("nan")}, "`learning_decay` must"),
        ({"n_components": (2, 2), "topics": "dirichlet"}, "`inference` must be 'mcmc'"),
    ],
    ids=repr,
)
def test_what_it_cannot_is_refused(how, words):
    with pytest.raises(ValueError, match=words):
        PoissonFactorization(**(SHORT | {"n_components": 2} | how)).fit(RELEASE)


def test_chunks_are_refused_where_they_do_not_fit():
    with pytest.raises(ValueError, match="`inference` must be one of"):
        PoissonBlockmodel(2, inference="svi").fit(np.zeros((3, 3), dtype=int))
    assert not hasattr(PoissonFactorization(2, inference="vi"), "partial_fit")
    model = PoissonFactorization(2, **SHORT)
    with pytest.raises(ValueError, match="`total_rows` must be at least 600"):
        model.partial_fit(RELEASE, total_rows=10)
    model.partial_fit(RELEASE)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(RELEASE.values[:, :30], alpha=RELEASE.alpha)
    with pytest.raises(ValueError, match="`n_components` must be 2, as in the fit that goes on"):
        model.set_params(n_components=3).partial_fit(RELEASE)
