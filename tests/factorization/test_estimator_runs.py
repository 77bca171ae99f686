"""Runs of the estimators: the same bits wherever and in how many parts they run, stops that keep what is, files."""

import errno
import json
import multiprocessing
import os
import signal
import threading
import tracemalloc
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from tests.interrupts import uncollected
from tests.saved import reread

from quincunx import errors
from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonDynamics,
    PoissonFactorization,
    PoissonTensorFactorization,
)
from quincunx.privacy import privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (12, 2)) @ RNG.gamma(0.5, 1.0, (2, 9)))
RELEASE = privatize(COUNTS, epsilon=1.0, insecure_seed=3)
NETWORK = privatize(RNG.poisson(1.0, (8, 8)), epsilon=1.0, insecure_seed=3)
TENSOR = privatize(RNG.poisson(1.0, (5, 4, 3)), epsilon=1.0, insecure_seed=3)
NETWORKS = privatize(RNG.poisson(1.0, (5, 5, 3)), epsilon=1.0, insecure_seed=3)
HOW = {"n_warmup": 10, "n_draws": 10, "thin": 3, "max_iter": 40, "n_chains": 1, "random_state": 7}

METHODS = [
    *({"inference": "mcmc", "method": method} for method in ("auto", "collapsed", "event", "split", "bessel")),
    *({"inference": "vi", "method": method} for method in ("collapsed", "bessel-mean", "bessel-mode", "published")),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda how: "-".join(how.values()))
MODELS = [
    (PoissonFactorization(2, **(HOW | {"n_chains": 2})), RELEASE),
    (PoissonFactorization(2, topics="dirichlet", topic_concentration=0.2, **HOW), RELEASE),
    (PoissonBlockmodel(2, **HOW), NETWORK),
    (PoissonBlockmodel(2, directed=False, **HOW), NETWORK),
    (PoissonTensorFactorization(2, weights=True, **HOW), TENSOR),
    (PoissonTensorFactorization([2, 3, 2], core="dense", **HOW), TENSOR),
    (PoissonTensorFactorization(2, core="dense", tied=[(0, 1)], **HOW), NETWORKS),
    (PoissonTensorFactorization(2, likelihood="negative_binomial", **HOW), TENSOR),
    (PoissonFactorization(2, hyperpriors="row", **HOW), RELEASE),
    (PoissonBlockmodel(2, likelihood="negative_binomial", dispersion="row", **HOW), NETWORK),
    (PoissonDynamics(2, delta="learnt", **HOW), RELEASE),
    (PoissonDynamics(2, tau=1.0, hyperpriors="factor", **HOW), TENSOR),
    (PoissonFactorization((3, 2), topics="dirichlet", hyperpriors="factor", **HOW), RELEASE),
]
NAMES = [
    "matrix",
    "topics",
    "directed",
    "undirected",
    "tensor",
    "core",
    "tied",
    "overdispersed",
    "learnt priors",
    "by row",
]
NAMES += ["dynamics", "dynamics of a tensor", "layers"]
each_model = pytest.mark.parametrize(("model", "released"), MODELS, ids=NAMES)


class Enough(Exception):
    pass


def assert_same(one, other):
    """Compare all that two fits drew, bit for bit."""
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert hasattr(one, "elbo_") == hasattr(other, "elbo_")
    if hasattr(one, "elbo_"):
        np.testing.assert_array_equal(one.elbo_, other.elbo_)
        return
    for run, same in zip(one._posterior.runs, other._posterior.runs, strict=True):
        for name in ("kept", "log_likelihood", "total_rate", "total_count"):
            np.testing.assert_array_equal(getattr(run, name), getattr(same, name))
    assert one.draws_.keys() == other.draws_.keys()
    for name, draws in one.draws_.items():
        np.testing.assert_array_equal(draws, other.draws_[name])


# The same bits.


@each_method
def test_threads_do_not_show(method):
    model = PoissonFactorization(2, **(HOW | {"tol": 0.0}), **method)
    assert_same(clone(model).set_params(threads=1).fit(RELEASE), clone(model).set_params(threads=2).fit(RELEASE))


@each_method
def test_a_warm_start_goes_on_as_if_there_had_been_no_stop(method):
    model = PoissonFactorization(2, **(HOW | {"tol": 0.0, "n_chains": 2}), **method)
    whole = clone(model).fit(RELEASE)
    parts = clone(model).set_params(n_draws=4, max_iter=22, warm_start=True).fit(RELEASE)
    assert parts.n_iter_ == 22
    assert_same(parts.set_params(n_draws=6, max_iter=18).fit(RELEASE), whole)


@each_method
def test_a_file_goes_on_as_if_there_had_been_no_stop(method, tmp_path):
    model = PoissonFactorization(2, **(HOW | {"tol": 0.0, "n_chains": 2}), **method)
    whole = clone(model).fit(RELEASE)
    clone(model).set_params(n_draws=4, max_iter=22).fit(RELEASE).save(tmp_path / "model.npz")
    loaded = PoissonFactorization.load(tmp_path / "model.npz").set_params(n_draws=6, max_iter=18, warm_start=True)
    assert_same(loaded.fit(RELEASE), whole)


def test_an_ascent_ends_at_the_same_iteration_in_however_many_parts():
    model = PoissonFactorization(2, inference="vi", n_chains=1, max_iter=2000, tol=1e-5, random_state=7)
    whole = clone(model).fit(RELEASE)
    assert 10 < whole.n_iter_ < 2000
    assert whole._posterior.best.converged
    assert_same(clone(model).set_params(callback=lambda *_: None).fit(RELEASE), whole)
    parts = clone(model).set_params(warm_start=True, max_iter=whole.n_iter_ - 1).fit(RELEASE)
    assert_same(parts.set_params(max_iter=500).fit(RELEASE), whole)


@each_model
def test_models_come_back_from_files(model, released):
    fitted = clone(model).set_params(prior_shape=0.5).fit(released, mask=np.asarray(released) > 3)
    loaded = reread(fitted)
    assert_same(loaded, fitted)
    np.testing.assert_array_equal(loaded.expected_counts_, fitted.expected_counts_)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.score(released) == fitted.score(released)


def test_parameters_that_json_knows_nothing_of_come_back_from_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS, columns=[f"word{v}" for v in range(9)])
    priors = (np.float64(0.5), np.linspace(0.1, 1.0, 9))
    model = PoissonFactorization(np.int64(2), prior_shape=priors, callback=lambda *_: None, **HOW).fit(frame)
    model.save(tmp_path / "model.npz")
    loaded = PoissonFactorization.load(tmp_path / "model.npz")
    assert loaded.callback is None
    assert loaded.n_components == 2
    assert loaded.prior_shape[0] == 0.5
    np.testing.assert_array_equal(loaded.prior_shape[1], priors[1])
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert_same(loaded, model)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        assert json.loads(str(arrays["factorization"]))["estimator"] == "PoissonFactorization"
        assert all(array.dtype != object for array in arrays.values())


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # three sweeps are no fit
def test_reading_a_fit_needs_little_more_than_what_is_read(tmp_path):
    counts = np.random.default_rng(2).poisson(0.5, (1500, 1500))
    PoissonFactorization(2, n_warmup=1, n_draws=3, thin=1, n_chains=1, random_state=1).fit(counts, alpha=0.37).save(
        tmp_path / "model.npz"
    )
    PoissonFactorization.load(tmp_path / "model.npz")
    tracemalloc.start()
    try:
        PoissonFactorization.load(tmp_path / "model.npz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A byte a cell, the draws, and what zipfile and NumPy read at a time.
    assert peak < 1.2 * counts.size + (1 << 20), peak / counts.size


def test_what_is_no_such_file_is_refused(tmp_path):
    file = tmp_path / "model.npz"
    PoissonBlockmodel(2, **HOW).fit(NETWORK).save(file)
    with pytest.raises(ValueError, match=r"must be a PoissonFactorization .* holds a PoissonBlock"):
        PoissonFactorization.load(file)
    RELEASE.save(file)
    with pytest.raises(ValueError, match="must be a PoissonFactorization written by quincunx"):
        PoissonFactorization.load(file)
    file.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="must be a PoissonFactorization written by quincunx"):
        PoissonFactorization.load(file)
    with pytest.raises(OSError, match="nothing"):
        PoissonFactorization.load(tmp_path / "nothing.npz")
    with pytest.raises(OSError, match="nowhere"):
        PoissonFactorization(2, **HOW).fit(RELEASE).save(tmp_path / "nowhere" / "model.npz")


def test_a_chain_does_not_depend_on_how_many_there_are():
    one = PoissonFactorization(2, **HOW).fit(RELEASE)
    three = PoissonFactorization(2, **(HOW | {"n_chains": 3})).fit(RELEASE)
    np.testing.assert_array_equal(one.draws_["embedding"][0], three.draws_["embedding"][0])
    assert not np.array_equal(three.draws_["embedding"][0], three.draws_["embedding"][1])


@pytest.mark.parametrize(
    ("kind", "inference"), [("threads", "mcmc"), ("threads", "vi"), ("processes", "mcmc"), ("loky", "vi")]
)
def test_executors_do_not_show(kind, inference):
    model = PoissonFactorization(2, inference=inference, **(HOW | {"n_chains": 3}))
    heard = []
    model.set_params(progress=lambda done, total: heard.append((done, total)))
    if kind == "threads":
        executor = ThreadPoolExecutor(2)
    elif kind == "processes":
        executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    else:
        executor = pytest.importorskip("loky").get_reusable_executor(2)
    there = clone(model).fit(RELEASE, executor=executor)
    executor.shutdown()
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert_same(there, clone(model).fit(RELEASE))


def test_an_executor_that_fails_leaves_the_fit_there_was():
    model = PoissonFactorization(2, **(HOW | {"n_chains": 3})).fit(RELEASE)
    before = dict(vars(model))

    class Broken(ThreadPoolExecutor):
        def submit(self, *_, **__):
            future: Future[object] = Future()
            future.set_exception(RuntimeError("the machine is gone"))
            return future

    with pytest.raises(RuntimeError, match="the machine is gone"):
        model.fit(RELEASE, executor=Broken(1))
    assert vars(model) == before
    with pytest.raises(ValueError, match="`callback` must be None with an `executor`"):
        model.set_params(callback=print).fit(RELEASE, executor=ThreadPoolExecutor(1))


@pytest.mark.parametrize(
    "source", [np.random.SeedSequence(5), np.random.default_rng(5), np.random.RandomState(5), np.random.PCG64(5), None]
)
def test_randomness_comes_from_any_source(source):
    model = PoissonFactorization(2, **(HOW | {"random_state": source}))
    first, second = (clone(model).fit(RELEASE).embedding_ for _ in range(2))
    if source is None:
        assert not np.array_equal(first, second)
    else:
        np.testing.assert_array_equal(first, second)  # a clone has a copy of its source


# Going on with something else.


def test_other_data_begin_at_the_last_factors_but_keep_no_draws():
    model = PoissonFactorization(2, warm_start=True, **HOW).fit(RELEASE)
    model.fit(privatize(COUNTS, epsilon=1.0, insecure_seed=4))
    assert model.n_iter_ == 40
    assert model.draws_["embedding"].shape[1] == 10
    cold = PoissonFactorization(2, **HOW).fit(privatize(COUNTS, epsilon=1.0, insecure_seed=4))
    assert not np.array_equal(model.draws_["embedding"], cold.draws_["embedding"])
    model.set_params(prior_shape=0.7).fit(privatize(COUNTS, epsilon=1.0, insecure_seed=4))
    assert model.n_iter_ == 40


def test_a_fit_that_goes_on_keeps_its_shape():
    model = PoissonFactorization(2, warm_start=True, **HOW).fit(RELEASE)
    with pytest.raises(ValueError, match=r"`released` must have shape \(12, 9\), .* got \(11, 9\)"):
        model.fit(RELEASE.values[1:], alpha=0.5)
    with pytest.raises(ValueError, match="`n_components` must be 2, as in the fit that goes on, got 3"):
        model.set_params(n_components=3).fit(RELEASE)
    assert_same(
        model.set_params(n_components=2, warm_start=False).fit(RELEASE), PoissonFactorization(2, **HOW).fit(RELEASE)
    )


def test_a_network_that_goes_on_keeps_its_kind_and_a_chain_may_change_its_method():
    model = PoissonBlockmodel(2, warm_start=True, **HOW).fit(NETWORK)
    with pytest.raises(ValueError, match="`directed` must be True, as in the fit that goes on, got False"):
        model.set_params(directed=False).fit(NETWORK)
    chain = PoissonFactorization(2, method="bessel", warm_start=True, **HOW).fit(RELEASE)
    for done, method in enumerate(("collapsed", "bessel", "event"), start=2):
        assert chain.set_params(method=method).fit(RELEASE).n_iter_ == 10 + 30 * done


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@pytest.mark.parametrize("client", [None, 2])
def test_components_that_become_topics_have_no_prior_of_before(inference, client):
    model = PoissonFactorization(2, hyperpriors="row", inference=inference, warm_start=True, **HOW).fit(RELEASE)
    model.set_params(topics="dirichlet").fit(RELEASE, client=client)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    assert [part.size for part in model.priors_["components"]] == [1, 0]


def test_thinning_may_change_and_no_warmup_is_done_twice():
    model = PoissonFactorization(2, warm_start=True, **HOW).fit(RELEASE)
    model.set_params(thin=1, n_draws=5).fit(RELEASE)
    assert model._posterior.runs[0].kept.tolist() == [*range(12, 40, 3), 41, 42, 43, 44, 45]
    assert len(model._posterior.runs[0].total_rate) == 45


# Progress, callbacks and stops.


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_a_callback_hears_every_sweep_and_changes_nothing(inference):
    heard = []
    model = PoissonFactorization(2, inference=inference, **(HOW | {"tol": 0.0, "n_chains": 2}))
    listening = clone(model).set_params(callback=lambda sweep, told: heard.append((sweep, told)))
    assert_same(listening.fit(RELEASE), clone(model).fit(RELEASE))
    assert sorted({sweep for sweep, _ in heard}) == list(range(1, 41))
    assert [told["chain"] for _, told in heard] == [0, 1] * 40
    if inference == "vi":
        chain = [run.elbo[0] for run in listening._posterior.runs]
        assert [told["elbo"] for _, told in heard[:2]] == chain
        return
    for sweep, told in heard:
        run = listening._posterior.runs[told["chain"]]
        assert told["total_rate"] == run.total_rate[sweep - 1]
        assert told["total_count"] == run.total_count[sweep - 1]
        kept = np.flatnonzero(run.kept == sweep)
        assert told["log_likelihood"] == (run.log_likelihood[kept[0]] if len(kept) else None)


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_progress_rises_to_its_total(inference):
    heard = []
    model = PoissonFactorization(2, inference=inference, **(HOW | {"n_chains": 2}))
    model.set_params(progress=lambda done, total: heard.append((done, total))).fit(RELEASE)
    assert heard[-1] == (80, 80)
    assert heard == sorted(heard)
    assert all(total == 80 for _, total in heard)


def test_a_bar_is_drawn_on_standard_error(capsys):
    PoissonFactorization(2, progress=True, **HOW).fit(RELEASE)
    out, err = capsys.readouterr()
    assert out == ""
    assert "factorization" in err


def test_a_callback_ends_a_fit_by_returning_false():
    model = PoissonFactorization(2, callback=lambda sweep, told: sweep < 25, **(HOW | {"n_chains": 2})).fit(RELEASE)
    assert model.n_iter_ == 25
    assert model.draws_["embedding"].shape == (2, 5, 12, 2)
    whole = PoissonFactorization(2, **(HOW | {"n_chains": 2})).fit(RELEASE)
    np.testing.assert_array_equal(model.draws_["embedding"], whole.draws_["embedding"][:, :5])
    model.set_params(callback=None, warm_start=True, n_draws=5).fit(RELEASE)
    assert_same(model, whole)


@pytest.mark.parametrize("error", [Enough, KeyboardInterrupt, SystemExit])
def test_an_exception_of_a_callback_comes_back_and_what_was_kept_stays(error):
    raised = error("enough")

    def stop(sweep, told):
        if sweep == 25:
            raise raised

    model = PoissonFactorization(2, callback=stop, **HOW)
    with pytest.raises(error) as caught:
        model.fit(RELEASE)
    assert caught.value is raised
    assert model.n_iter_ == 25
    assert model.rates_.shape == (12, 9)
    assert model.draws_["embedding"].shape == (1, 5, 12, 2)
    model.set_params(callback=None, warm_start=True, n_draws=5).fit(RELEASE)
    assert_same(model, PoissonFactorization(2, **HOW).fit(RELEASE))


def test_a_stop_before_anything_was_kept_leaves_the_fit_there_was():
    def stop(sweep, told):
        raise Enough

    model = PoissonFactorization(2, callback=stop, **HOW)
    with pytest.raises(Enough):
        model.fit(RELEASE)
    assert not hasattr(model, "embedding_")
    with pytest.raises(errors.ConvergenceError, match="stopped the fit before anything was kept"):
        model.set_params(callback=lambda *_: False).fit(RELEASE)
    model.set_params(callback=None).fit(RELEASE)
    before = dict(vars(model))
    with pytest.raises(Enough):
        model.set_params(callback=stop).fit(RELEASE.values[:5], alpha=0.5)
    assert vars(model) == before | {"callback": stop}


@pytest.mark.parametrize("inference", ["mcmc", "vi"])
def test_an_exception_of_a_progress_function_comes_back_and_what_was_kept_stays(inference):
    def stop(done, total):
        if done > 30:
            raise Enough

    model = PoissonFactorization(2, progress=stop, inference=inference, **(HOW | {"tol": 0.0}))
    with pytest.raises(Enough):
        model.fit(RELEASE)
    assert 30 <= model.n_iter_ <= 40
    assert np.isfinite(model.score(RELEASE))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads are sent signals as on Unix")
@pytest.mark.parametrize("inference", ["mcmc", "vi"])
@uncollected()
def test_an_interrupt_keeps_what_was_kept(inference):
    how = {"n_warmup": 5, "n_draws": 9999, "thin": 100, "max_iter": 10**6, "random_state": 1, "tol": 0.0, "n_chains": 2}
    model = PoissonFactorization(2, inference=inference, **how)
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    model.set_params(progress=lambda *_: None if timer.ident else timer.start())
    with pytest.raises(KeyboardInterrupt):
        model.fit(RELEASE)
    timer.join()
    assert 1 <= model.n_iter_ < 1_000_000
    assert model.components_.shape == (2, 9)
    assert np.isfinite(model.rates_).all()
    for run in model._posterior.runs:
        if inference == "mcmc":
            assert len(run.total_rate) == len(run.total_count) == run.iteration
            assert len(run.kept) == len(run.log_likelihood) == len(run.draws[0]) == run.iteration // 100
        else:
            assert len(run.elbo) == run.iteration


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers that interrupt are Unix's")
@uncollected()
def test_an_interrupt_between_any_two_lines_loses_nothing():
    whole = PoissonFactorization(2, n_warmup=0, n_draws=4000, thin=1, n_chains=1, random_state=1).fit(RELEASE)
    model = PoissonFactorization(
        2, n_warmup=0, n_draws=100_000, thin=1, n_chains=1, random_state=1, callback=lambda *_: None
    )
    earlier = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for i in range(40):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (an interrupt outside would end the session)
                signal.setitimer(signal.ITIMER_REAL, 0.01 + 0.0005 * i)
                model.fit(RELEASE)
            if hasattr(model, "_posterior"):  # a busy machine may not have come to its first sweep
                run = model._posterior.runs[0]
                assert len(run.kept) == len(run.draws[0]) == len(run.total_rate) == run.iteration
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    run = model._posterior.runs[0]
    number = min(run.iteration, 4000)
    for name in ("kept", "log_likelihood", "total_rate", "total_count"):
        np.testing.assert_array_equal(getattr(run, name)[:number], getattr(whole._posterior.runs[0], name)[:number])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_does_not_show():
    distributed = pytest.importorskip("distributed")
    model = PoissonFactorization(2, **(HOW | {"n_chains": 3}))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor(pure=False) as executor,
    ):
        assert_same(clone(model).fit(RELEASE, executor=executor), clone(model).fit(RELEASE))


@pytest.mark.parametrize(("model", "released"), MODELS, ids=NAMES)
def test_draws_on_a_disk_are_those_in_memory(model, released, tmp_path):
    whole = clone(model).set_params(n_draws=14).fit(released)
    part = clone(model).set_params(warm_start=True).fit(released, draws_dir=tmp_path)
    assert isinstance(mapped(part._posterior.runs[0].draws[0]), np.memmap)
    part.set_params(n_draws=4).fit(released, draws_dir=tmp_path)
    assert isinstance(mapped(part._posterior.runs[0].draws[0]), np.memmap)
    for name, draws in whole.draws_.items():
        np.testing.assert_array_equal(part.draws_[name], draws)
    assert not list(tmp_path.iterdir()), "files have no names"
    again = reread(part)
    np.testing.assert_array_equal(again.rates_, whole.rates_)


def mapped(array):
    """What an array is a view of."""
    while not isinstance(array, np.memmap) and array.base is not None:
        array = array.base
    return array


def test_draws_on_a_disk_need_no_memory(monkeypatch, tmp_path):
    how = HOW | {"n_draws": 5000, "thin": 1}
    monkeypatch.setattr("quincunx._check.available_memory", lambda: 2**20)
    with pytest.raises(errors.TooLargeError, match="or a `draws_dir`"):
        PoissonFactorization(2, **how).fit(RELEASE)
    model = PoissonFactorization(2, **how).fit(RELEASE, client=2, draws_dir=tmp_path)
    assert model.draws_["embedding"].shape == (1, 5000, 12, 2)


def test_means_pass_through_the_draws_of_rows(tmp_path):
    counts = np.random.default_rng(1).poisson(3.0, (400, 2))
    how = HOW | {"n_warmup": 1, "n_draws": 150, "thin": 1, "n_chains": 2, "hyperpriors": "row"}
    model = PoissonFactorization(1, likelihood="negative_binomial", dispersion="row", **how)
    model.fit(counts, draws_dir=tmp_path)
    draws = {name: model.draws_[name] for name in ("dispersion", "embedding_rate")}
    tracemalloc.start()
    found = {"dispersion": model.dispersion_, "embedding_rate": model.priors_["embedding"][1][:, 0]}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for name, values in draws.items():
        np.testing.assert_allclose(found[name], values.mean(axis=(0, 1)), rtol=1e-12)
        assert peak < values[0].nbytes / 4


def test_a_disk_without_room_is_heard_of_before_any_work(monkeypatch, tmp_path):
    model = PoissonFactorization(2, **HOW).fit(RELEASE)
    before = model.embedding_

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"no space left on device, [0-9]+ bytes of draws in `draws_dir`"):
        model.fit(RELEASE, draws_dir=tmp_path)
    np.testing.assert_array_equal(model.embedding_, before)


@pytest.mark.parametrize(
    ("how", "given", "says"),
    [
        ({"inference": "vi"}, {}, "`draws_dir` must be None with inference='vi'"),
        ({}, {"executor": ThreadPoolExecutor(1)}, "`draws_dir` must be None with an `executor`"),
        ({}, {"draws_dir": "/no such folder"}, "`draws_dir` must be a folder, got '/no such folder'"),
        ({}, {"draws_dir": 3}, "`draws_dir` must be a path, got int"),
    ],
)
def test_draws_on_a_disk_are_refused_in_words(how, given, says, tmp_path):
    with pytest.raises((ValueError, TypeError), match=says):
        PoissonFactorization(2, **(HOW | how)).fit(RELEASE, **({"draws_dir": tmp_path} | given))
