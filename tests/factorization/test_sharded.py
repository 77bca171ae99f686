"""Rows in several places: the same bits as in one process, whatever the method, and through the loss of a worker."""

import functools
import json
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.factorization.chains import assert_same_runs, counts_of
from tests.saved import reread

from quincunx import _core
from quincunx._inference import _shards
from quincunx.errors import CheckpointError, ConvergenceWarning, MisfitWarning, TooLargeError, WorkerError
from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonFactorization,
    PoissonTensorFactorization,
    _row_shards,
    _sharded_gibbs,
)
from quincunx.factorization._parts import Lazy, Parts
from quincunx.privacy import Release, privatize

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{warning.__module__}.{warning.__name__}")
    for warning in (ConvergenceWarning, MisfitWarning)
]

ROWS, COLS, WIDTH = 700, 12, 3
HOW = {"n_warmup": 6, "n_draws": 4, "thin": 2, "n_chains": 2, "random_state": 3, "threads": 1}
RATIOS = np.random.default_rng(8).choice([0.0, 0.3, 0.6], ROWS)[:, None] * np.ones(COLS)
RATIOS[200:400] = 0.25  # a shard may see one ratio where there are several


def release(mean, alpha=0.4, *, seed=1):
    """Counts of a mean with noise, and a few values beyond a byte."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 1.0, (ROWS, WIDTH)) @ rng.gamma(0.5, 1.0, (WIDTH, COLS))
    counts = rng.poisson(rates * mean / rates.mean())
    counts[3, 4] += 1000
    counts[ROWS - 2, 1] += 100_000
    ratios = np.broadcast_to(alpha, counts.shape)
    noise = rng.geometric(1 - ratios, (2, *counts.shape))
    return counts + noise[0] - noise[1]


def tensor(mean, alpha, extents):
    """Counts of a mean with noise along several axes."""
    rng = np.random.default_rng(7)
    counts = rng.poisson(mean * rng.gamma(0.5, 2.0, (*extents[:2], *(1 for _ in extents[2:]))), extents)
    noise = rng.geometric(1 - np.broadcast_to(alpha, extents), (2, *extents))
    return counts + noise[0] - noise[1]


MASK = np.random.default_rng(4).random((ROWS, COLS)) < 0.2
MASK[300], MASK[:, 5] = True, True  # a row and a column of which nothing is known


EXTENTS = (300, 4, 3)
CUBE = np.random.default_rng(5).random(EXTENTS) < 0.2
CUBE[140], CUBE[:, 1], CUBE[:, :, 2] = True, True, True  # slices of which nothing is known, along each axis
TENSORS = {
    "tensor": {"mean": 2.0},
    "tensor with a mask": {"mean": 2.0, "mask": CUBE},
    "tensor of few": {"mean": 0.02, "mask": CUBE},
    "tensor, collapsed": {"mean": 2.0, "method": "collapsed"},
    "tensor, bessel with a mask": {"mean": 2.0, "method": "bessel", "mask": CUBE},
    "tensor with ratios": {"mean": 1.0, "alpha": np.random.default_rng(6).choice([0.2, 0.5], EXTENTS), "mask": CUBE},
    "tensor with priors of slices": {"mean": 1.0, "prior_shape": [np.linspace(0.1, 2.0, 300)[:, None], 0.3, 0.5]},
    "four axes": {"mean": 2.0, "extents": (300, 2, 3, 2)},
    "tensor, learnt by rows": {"mean": 2.0, "mask": CUBE, "hyperpriors": "row"},
    "tensor, overdispersed": {"mean": 2.0, "mask": CUBE, "likelihood": "negative_binomial"},
    "core": {"mean": 2.0, "core": "dense"},
    "core with a mask": {"mean": 2.0, "core": "dense", "mask": CUBE},
    "core, bessel": {"mean": 2.0, "core": "dense", "n_components": (2, 4, 3), "method": "bessel", "mask": CUBE},
    "core, learnt by rows": {"mean": 0.5, "core": "dense", "n_components": (4, 2, 1), "hyperpriors": "row"},
    "core of four axes": {"mean": 0.1, "core": "dense", "extents": (300, 2, 3, 2), "n_components": (3, 2, 1, 2)},
    "core, overdispersed": {"mean": 2.0, "core": "dense", "mask": CUBE, "likelihood": "negative_binomial"},
    "core, overdispersed, known": {
        "mean": 0.5,
        "core": "dense",
        "n_components": (2, 4, 3),
        "likelihood": "negative_binomial",
        "dispersion": 0.7,
    },
    "weights": {"mean": 2.0, "weights": True, "mask": CUBE},
    "weights, learnt by rows": {"mean": 0.5, "weights": True, "hyperpriors": "row"},
    "weights, overdispersed": {"mean": 0.5, "weights": True, "mask": CUBE, "likelihood": "negative_binomial"},
    "four axes, overdispersed": {"mean": 0.1, "extents": (300, 2, 3, 2), "likelihood": "negative_binomial"},
}
CASES = TENSORS | {
    "few": {"mean": 0.02},
    "some": {"mean": 0.5},
    "many": {"mean": 3.0},
    "collapsed": {"mean": 0.5, "method": "collapsed"},
    "event": {"mean": 0.5, "method": "event"},
    "split": {"mean": 0.5, "method": "split"},
    "bessel": {"mean": 0.5, "method": "bessel"},
    "mask": {"mean": 0.5, "mask": MASK},
    "bessel with a mask": {"mean": 2.0, "method": "bessel", "mask": MASK},
    "ratios": {"mean": 0.5, "alpha": RATIOS},
    "ratios with a mask": {"mean": 3.0, "alpha": RATIOS, "mask": MASK},
    "topics with a mask": {"mean": 0.5, "mask": MASK, "topics": "dirichlet"},
    "no noise": {"mean": 2.0, "alpha": 0.0},
    "priors of rows": {"mean": 0.5, "prior_shape": [np.linspace(0.1, 2.0, ROWS)[:, None], 0.3]},
    "learnt": {"mean": 0.5, "hyperpriors": "factor"},
    "learnt by rows": {"mean": 2.0, "alpha": RATIOS, "mask": MASK, "hyperpriors": "row"},
    "bessel, learnt by rows": {"mean": 2.0, "method": "bessel", "mask": MASK, "hyperpriors": "row"},
    "overdispersed": {"mean": 0.5, "likelihood": "negative_binomial"},
    "overdispersed, few": {"mean": 0.02, "mask": MASK, "likelihood": "negative_binomial"},
    "overdispersed, ratios": {"mean": 2.0, "alpha": RATIOS, "mask": MASK, "likelihood": "negative_binomial"},
    "overdispersed, known": {"mean": 0.5, "mask": MASK, "likelihood": "negative_binomial", "dispersion": 0.7},
    "overdispersed rows": {"mean": 0.5, "mask": MASK, "likelihood": "negative_binomial", "dispersion": "row"},
    "overdispersed columns": {"mean": 0.5, "mask": MASK, "likelihood": "negative_binomial", "dispersion": "column"},
    "overdispersed, no noise": {"mean": 2.0, "alpha": 0.0, "likelihood": "negative_binomial"},
    "overdispersed, learnt by rows": {"mean": 0.5, "likelihood": "negative_binomial", "hyperpriors": "row"},
    "topics, learnt": {"mean": 0.5, "mask": MASK, "topics": "dirichlet", "hyperpriors": "factor"},
    "topics, learnt by rows": {"mean": 0.5, "topics": "dirichlet", "hyperpriors": "row"},
}


def fitted(case, *, client=None, checkpoint=None, checkpoint_interval=60.0, usual=HOW, **how):
    own = dict(CASES[case])
    alpha, mask, mean = own.pop("alpha", 0.4), own.pop("mask", None), own.pop("mean")
    extents = own.pop("extents", EXTENTS)
    released = tensor(mean, alpha, extents) if case in TENSORS else release(mean, alpha)
    model = (PoissonTensorFactorization if case in TENSORS else PoissonFactorization)(
        **({"n_components": WIDTH} | usual | own | how)
    )
    return model.fit(
        released, alpha=alpha, mask=mask, client=client, checkpoint=checkpoint, checkpoint_interval=checkpoint_interval
    )


@functools.cache
def in_one_process(case, **how):
    return fitted(case, **how)


@pytest.mark.parametrize("case", CASES)
def test_the_number_of_shards_does_not_show(case):
    for number in (1, 2, 5):
        assert_same_runs(fitted(case, client=number), in_one_process(case))


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("width", [1, 2])
def test_priors_are_learnt_from_rates_of_rows(width, likelihood, tmp_path, monkeypatch):
    rates, how = [np.linspace(0.5, 2.0, ROWS)[:, None], 1.0], {"alpha": 0.4, "checkpoint": tmp_path / "state"}
    learnt = {"hyperpriors": "factor", "prior_rate": rates, "likelihood": likelihood}
    model, other = (PoissonFactorization(width, **HOW | learnt) for _ in range(2))

    def torn(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for name in ("sweep", "end_sweep"):
            patch.setattr(_sharded_gibbs.GibbsShard, name, torn)
        with pytest.raises(KeyboardInterrupt):
            model.fit(release(0.5), client=2, **how)
    assert_same_runs(model.fit(release(0.5), client=3, **how), other.fit(release(0.5), alpha=0.4))
    ascents = (PoissonFactorization(width, **HOW | learnt | {"inference": "vi", "max_iter": 9}) for _ in range(2))
    bounds = [ascent.fit(release(0.5), alpha=0.4, client=c).elbo_ for ascent, c in zip(ascents, (2, None), strict=True)]
    np.testing.assert_allclose(*bounds, rtol=1e-11)


def test_there_are_no_more_shards_than_blocks_of_rows():
    assert_same_runs(fitted("some", client=1000), in_one_process("some"))
    with _shards.Local(1000, 1) as where:
        model = PoissonFactorization(WIDTH, **HOW)
        data = model._data(release(0.5), 0.4, None, reset=True)
        layout = model._layout(data.shape)
        problem = _sharded_gibbs.Problem(data, layout, model._priors(layout), "mcmc", "auto")
        sampler = _sharded_gibbs.ShardedGibbs(problem, model._runs(problem), _sharded_gibbs.Schedule(1), where)
        assert sampler.edges == [(0, 128), (128, 256), (256, 384), (384, 512), (512, 640), (640, 700)]


@pytest.mark.parametrize(
    "case",
    [
        "bessel with a mask",
        "tensor, bessel with a mask",
        "bessel, learnt by rows",
        "topics, learnt",
        "overdispersed",
        "overdispersed rows",
        "overdispersed columns",
        "core with a mask",
        "core, bessel",
        "weights, learnt by rows",
    ],
)
def test_a_fit_goes_on_with_other_shards_or_none_and_from_a_file(case):
    whole = fitted(case, n_draws=6)
    part = fitted(case, n_draws=2, client=2, warm_start=True)
    data = part._posterior.problem.data
    how = {"alpha": 0.4, "mask": data.held_out}
    part.set_params(n_draws=3).fit(data.values, client=5, **how)
    last = reread(part).set_params(n_draws=1, warm_start=True)
    assert_same_runs(last.fit(data.values, **how), whole)


@pytest.mark.parametrize(
    "case", ["tensor with a mask", "tensor, learnt by rows", "tensor, overdispersed", "core with a mask", "weights"]
)
@pytest.mark.parametrize("lost", range(10, 22))
def test_shards_of_a_tensor_lost_in_any_call_of_a_sweep_do_not_show(case, lost, monkeypatch):
    class Losing(_sharded_gibbs.GibbsShard):
        calls = 0

        def _lose(self):
            Losing.calls += 1
            if Losing.calls == lost:
                raise _shards.ShardLost("the worker is gone")

        def sweep(self, shared):
            found = super().sweep(shared)
            self._lose()
            return found

        def held(self, factor, given):
            sent = factor > 1 and self._part.problem.dispersion is None
            assert all((shared is None) != sent for _, shared in given.values()), "nothing is sent twice"
            self._lose()
            return super().held(factor, given)

        def begin_sweep(self, given):
            self._lose()
            return super().begin_sweep(given)

        def shape_sums(self, shapes):
            self._lose()
            return super().shape_sums(shapes)

        def end_sweep(self, shapes):
            found = super().end_sweep(shapes)
            self._lose()
            return found

        def exposures(self, factor, given):
            found = super().exposures(factor, given)
            self._lose()
            return found

    monkeypatch.setattr(_sharded_gibbs, "GibbsShard", Losing)
    found = fitted(case, client=2, n_chains=1)
    assert Losing.calls > lost
    assert_same_runs(found, in_one_process(case, n_chains=1))


def test_a_stop_within_a_round_goes_back_to_where_all_were():
    class Stops(_sharded_gibbs.GibbsShard):
        calls = 0

        def sweep(self, shared):
            Stops.calls += 1
            if Stops.calls == 2 * 9:  # the second of two shards, in the ninth sweep
                raise KeyboardInterrupt
            return super().sweep(shared)

    how = HOW | {"n_warmup": 0, "thin": 1, "n_draws": 20}
    model, whole = (PoissonFactorization(WIDTH, **how) for _ in range(2))
    whole.fit(release(0.5), alpha=0.4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sharded_gibbs, "GibbsShard", Stops)
        patch.setattr(_row_shards, "_SHARE", 1e9)  # states are remembered after each sweep
        with pytest.raises(KeyboardInterrupt):
            model.fit(release(0.5), alpha=0.4, client=2)
    assert model.n_iter_ == 8
    model.set_params(warm_start=True, n_draws=12).fit(release(0.5), alpha=0.4, client=3)
    assert_same_runs(model, whole)


@pytest.mark.parametrize(
    ("model", "how", "says"),
    [
        (PoissonFactorization(2, callback=print), {}, "`callback` must be None with a `client`"),
        (PoissonFactorization((2, 2), topics="dirichlet"), {}, "a factor for each axis alone"),
        (PoissonBlockmodel(2), {}, "a factor for each axis alone"),
        (PoissonFactorization(2), {"client": 0}, "`client` must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_in_several_places_is_refused(model, how, says):
    with pytest.raises(ValueError, match=says):
        model.fit(np.ones((6, 6), dtype=int), **({"client": 2} | how))


def test_tied_axes_are_refused():
    with pytest.raises(ValueError, match="a matrix or tensor with a factor for each axis alone"):
        PoissonTensorFactorization(2, core="dense", tied=[(0, 1)]).fit(np.ones((3, 3, 3), dtype=int), client=2)


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError, match=r"`client` must be a distributed.Client, MPIShards or a number .*, got str"):
        PoissonFactorization(2).fit(np.ones((3, 3), dtype=int), client="tcp://somewhere")
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="`executor` must be None with a `client`"):
        PoissonFactorization(2).fit(np.ones((3, 3), dtype=int), client=2, executor=pool)


# Dask.


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


@pytest.mark.parametrize(
    "case", ["some", "overdispersed", "bessel with a mask", "ratios with a mask", "tensor with ratios"]
)
def test_actors_of_dask_do_not_show(case, client):
    assert_same_runs(fitted(case, client=client), in_one_process(case))


def test_a_client_of_dask_need_not_be_the_default(cluster):
    array, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    how = HOW | {"likelihood": "negative_binomial", "dispersion": "row", "n_draws": 1, "n_warmup": 0, "n_chains": 1}
    lazy = array.from_array(release(0.5), chunks=(256, 12)).map_blocks(elsewhere, os.getpid(), dtype="i8")
    with distributed.Client(cluster, set_as_default=False) as client:
        found = PoissonFactorization(WIDTH, **how).fit(lazy, alpha=0.4, client=client)
    assert_same_runs(found, PoissonFactorization(WIDTH, **how).fit(release(0.5), alpha=0.4))


def elsewhere(block, process):
    """Return a block, which a process is not to compute."""
    assert os.getpid() != process or not block.size
    return block


def test_actors_of_dask_do_not_show_in_an_ascent_of_overdispersed_counts(client):
    array = pytest.importorskip("dask.array")
    how = HOW | {"likelihood": "negative_binomial", "inference": "vi", "max_iter": 4, "tol": 0.0}
    values = release(0.5)
    lazy = array.from_array(values, chunks=(100, 7))
    one, actors, of_dask = (
        PoissonFactorization(WIDTH, **how).fit(released, alpha=0.4, client=where)
        for released, where in ((values, 1), (values, client), (lazy, client))
    )
    assert_same_runs(actors, one)
    assert_same_runs(of_dask, one)


def test_a_part_larger_than_a_worker_is_refused_before_work(client, monkeypatch):
    monkeypatch.setattr(_row_shards.ShardData, "bytes", lambda self, threads: 1 << 50)
    with pytest.raises(TooLargeError, match="a shard needs about 1125899906842624 bytes, and no worker has more than"):
        fitted("some", client=client)


def test_an_exception_of_a_shard_comes_as_itself(client):
    with _shards.DaskActors(client, 1) as where:
        where.start(_Fails, [0, 1], [1, 1])
        assert where.each("add", [(1,), (2,)]) == [1, 3]
        with pytest.raises(OSError, match="no such thing"):
            where.call("fail")
        assert where.call("add", 5) == [6, 8]


class _Fails:
    """Adds up what it is given."""

    def __init__(self, part, threads):
        self.sum = part

    def add(self, number):
        self.sum += number
        return self.sum

    def fail(self):
        raise OSError("no such thing")

    def state(self):
        return self.sum

    def restore(self, state):
        self.sum = state


def pids(client):
    """The processes of workers by address, of their nannies: to ask all workers fails where one has just died."""
    return {nanny.worker_address: nanny.pid for nanny in client.cluster.workers.values()}


def test_lost_shards_are_made_anew_and_the_others_go_back(client):
    with _shards.DaskActors(client, 1) as where:
        where.start(_Fails, [0, 0], [1, 1])
        where.each("add", [(1,), (2,)])
        where.remember("here")
        where.call("add", 10)
        os.kill(pids(client)[where._places[0]], signal.SIGKILL)
        with pytest.raises(_shards.ShardLost):
            [where.call("add", 10) for _ in range(1000)]
        assert where.restore() == "here"
        assert where.call("add", 0) == [1, 2]


@pytest.mark.parametrize(
    "how",
    [
        {"n_warmup": 20, "n_draws": 5, "thin": 4, "n_chains": 1},
        {"inference": "vi", "max_iter": 20, "tol": 0.0, "n_chains": 2},
    ],
)
def test_a_worker_killed_at_a_random_sweep_does_not_show(how, client):
    swept = []
    last = np.random.default_rng().integers(1, 32)  # all of them must do
    victim = int(last) % 2

    def kill(done, total):
        if done >= last > max(swept, default=0):
            os.kill(sorted(pids(client).values())[victim], signal.SIGKILL)
        swept.append(done)

    found = fitted("mask", client=client, progress=kill, **how)
    assert swept[-1] == 40
    assert_same_runs(found, fitted("mask", client=None if found._posterior.sampled else 1, **how))
    print(f"killed at {last}, {len(swept)} rounds")


def test_shards_that_are_lost_again_and_again_are_given_up(monkeypatch):
    class Lost(_sharded_gibbs.GibbsShard):
        def sweep(self, shared):
            raise _shards.ShardLost("the worker is gone")

    monkeypatch.setattr(_sharded_gibbs, "GibbsShard", Lost)
    with pytest.raises(WorkerError, match="shards were lost 4 times before a step was done: the worker is gone"):
        fitted("some", client=2)


# Files.


def saved(release, folder, rows):
    """Save a release by some rows each, and return the paths."""
    edges = np.cumsum([0, *rows])
    paths = [folder / f"part-{i:03}.npz" for i in range(len(rows))]
    for path, first, last in zip(paths, edges, edges[1:], strict=False):
        release[first:last].save(path)
    return paths


def labelled(epsilon, mask=None):
    pandas = pytest.importorskip("pandas")
    counts = pandas.DataFrame(
        np.maximum(release(1.0, 0.0), 0),
        index=[f"row {i}" for i in range(ROWS)],
        columns=[f"word {i}" for i in range(COLS)],
    )
    found = privatize(counts, epsilon=epsilon, insecure_seed=5)
    return found if mask is None else found.masked(mask)


PARTS = {
    "one ratio": {"epsilon": 1.0},
    "masked": {"epsilon": 1.0, "mask": MASK},
    "ratios": {"epsilon": np.repeat([0.5, 1.0, 2.0], [256, 128, ROWS - 384])[:, None] * np.ones(COLS)},
}


@pytest.mark.parametrize("case", PARTS)
@pytest.mark.parametrize("client", [None, 2])
def test_files_of_rows_are_one_matrix(case, client, tmp_path):
    whole = labelled(**PARTS[case])
    paths = saved(whole, tmp_path, (256, 128, ROWS - 384))
    model, other = (PoissonFactorization(WIDTH, **HOW) for _ in range(2))
    assert_same_runs(model.fit(paths, client=client), other.fit(whole))
    assert model.top_features(axis=0) == other.top_features(axis=0)
    assert model.feature_names_in_.tolist() == other.feature_names_in_.tolist()
    assert model.n_features_in_ == COLS
    np.testing.assert_array_equal(model.expected_counts_, other.expected_counts_)
    assert str(model.misfit_) == str(other.misfit_)


def test_files_are_embedded_as_one_table(tmp_path):
    whole, model = labelled(1.0, MASK), PoissonFactorization(WIDTH, **HOW)
    found = model.fit_transform(saved(whole, tmp_path, (256, ROWS - 256)), client=2)
    np.testing.assert_array_equal(found, model.fit_transform(whole))
    np.testing.assert_array_equal(found, model.transform(whole))


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("client", [None, 2])
def test_files_and_arrays_of_dask_of_slices_are_one_tensor(client, likelihood, tmp_path):
    array = pytest.importorskip("dask.array")
    whole = privatize(np.maximum(tensor(2.0, 0.0, EXTENTS), 0), epsilon=1.0, insecure_seed=5)
    lazy = array.from_array(np.asarray(whole.values), chunks=(90, 3, 2))
    one = PoissonTensorFactorization(WIDTH, likelihood=likelihood, **HOW).fit(whole)
    for released, how in ((saved(whole, tmp_path, (128, 172)), {}), (lazy, {"alpha": whole.alpha})):
        model = PoissonTensorFactorization(WIDTH, likelihood=likelihood, **HOW).fit(released, client=client, **how)
        assert_same_runs(model, one)
        np.testing.assert_array_equal(model.expected_counts_, one.expected_counts_)


@pytest.mark.parametrize(
    ("model", "shape", "says"),
    [
        (PoissonBlockmodel(2), (6, 6), "one table for this model, which holds out the cells in which indices agree"),
        (PoissonTensorFactorization(2, core="dense", tied=[(0, 1)]), (6, 6, 2), "one table for this model"),
        (PoissonFactorization(2), (6, 6, 2), "`released` must have two axes for this model, got 3"),
    ],
)
def test_files_are_refused_by_models_that_need_more_than_rows(model, shape, says, tmp_path):
    release = privatize(np.ones(shape, dtype=np.int64), epsilon=1.0, insecure_seed=5)
    with pytest.raises(ValueError, match=says):
        model.fit(saved(release, tmp_path, (6,)))


def test_a_warm_start_of_files_goes_on_by_the_same_parameters_alone(tmp_path):
    paths = saved(labelled(1.0), tmp_path, (256, ROWS - 256))
    settings = [(noise, rule) for noise in ("geometric", "none", "naive") for rule in ("error", "round")]
    assert len({Parts(paths, *how).digest for how in settings}) == len(settings)
    model = PoissonFactorization(WIDTH, **HOW | {"warm_start": True}).fit(paths)
    done = model.n_iter_
    assert model.set_params(noise="naive").fit(paths).n_iter_ == done  # anew, from the last factors
    assert model.fit(paths).n_iter_ > done


@pytest.mark.parametrize("lazy", [False, True])
def test_a_warm_start_goes_on_with_the_same_rows_wherever_they_are(lazy, tmp_path):
    array, whole = pytest.importorskip("dask.array"), labelled(1.0)
    files = saved(whole, tmp_path, (256, ROWS - 256))
    given, how = (array.from_array(whole.values, chunks=99), {"alpha": whole.alpha}) if lazy else (files, {})
    at_once = PoissonFactorization(WIDTH, **HOW | {"n_draws": 2 * HOW["n_draws"]}).fit(whole)
    one, other = (PoissonFactorization(WIDTH, **HOW | {"warm_start": True}) for _ in range(2))
    one.fit(given, client=2, **how).save(tmp_path / "model.npz")
    assert_same_runs(PoissonFactorization.load(tmp_path / "model.npz").fit(given, client=3, **how), at_once)
    assert_same_runs(other.fit(whole).fit(given, client=2, **how), at_once)


@pytest.mark.parametrize("attribute", ["expected_counts_", "misfit_", "rates_"])
def test_a_file_that_changed_since_the_fit_is_refused(attribute, tmp_path):
    paths = saved(labelled(1.0), tmp_path, (256, ROWS - 256))
    model = PoissonFactorization(WIDTH, **HOW).fit(paths, client=2)
    labelled(2.0)[256:].save(paths[1])
    with pytest.raises(ValueError, match=r"part-001\.npz: it has other content now than when it was given to `fit`"):
        getattr(model, attribute)


def test_workers_read_files_and_the_client_does_not(client, tmp_path, monkeypatch):
    whole = labelled(1.0, MASK)
    paths = saved(whole, tmp_path, (128, 128, 256, ROWS - 512))
    with monkeypatch.context() as patch:
        patch.setattr(Release, "load", lambda *_: pytest.fail("the client has read a part"))
        model = PoissonFactorization(WIDTH, **HOW).fit(paths, client=client)
    assert_same_runs(model, PoissonFactorization(WIDTH, **HOW).fit(whole))


@pytest.mark.parametrize("case", ["some", "overdispersed"])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("here", [False, True])
def test_arrays_of_dask_are_computed_by_the_workers(case, kept, here, client, monkeypatch):
    array = pytest.importorskip("dask.array")
    values, how = release(0.5), HOW | {name: one for name, one in CASES[case].items() if name != "mean"}
    lazy = array.from_array(values, chunks=(100, 7))
    if kept:
        lazy = client.persist(lazy)
    with monkeypatch.context() as patch:
        if not here:
            patch.setattr(type(lazy), "compute", lambda *_: pytest.fail("the client has computed the array"))
        model = PoissonFactorization(WIDTH, **how).fit(lazy, alpha=0.4, client=3 if here else client)
    whole = in_one_process(case)
    assert_same_runs(model, whole)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).expected_counts_, whole.expected_counts_)
    assert str(model.misfit_) == str(whole.misfit_)
    if here:  # and no client at all
        assert_same_runs(PoissonFactorization(WIDTH, **how).fit(lazy, alpha=0.4), whole)


def test_a_checkpoint_knows_an_array_of_dask_by_its_name(tmp_path, monkeypatch):
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(release(0.5), chunks=(100, 7))
    how = {"alpha": 0.4, "checkpoint": tmp_path / "state", "checkpoint_interval": 0.0}

    def stop(done, total):
        if done > 9:
            raise KeyboardInterrupt

    whole = PoissonFactorization(WIDTH, **HOW).fit(release(0.5), alpha=0.4)
    read = Lazy._read

    def some(data, block, rows):
        assert rows < ROWS, "all rows were read together"
        return read(data, block, rows)

    with pytest.raises(KeyboardInterrupt):
        PoissonFactorization(WIDTH, **HOW | {"progress": stop}).fit(lazy, client=2, **how)
    for other, alpha in ((lazy + 1, 0.4), (lazy, 0.4 + 1e-12)):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            PoissonFactorization(WIDTH, **HOW).fit(other, client=3, **how | {"alpha": alpha})
    with np.printoptions(precision=1):
        assert Lazy(lazy, 0.4, "geometric", "error").digest != Lazy(lazy, 0.41, "geometric", "error").digest
    assert_same_runs(PoissonFactorization(WIDTH, **HOW).fit(lazy, client=3, **how), whole)


def test_masked_blocks_of_dask_are_held_out(client):
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.ma.masked_array(release(0.5), MASK), chunks=(100, 7))
    whole = PoissonFactorization(WIDTH, **HOW).fit(release(0.5), alpha=0.4, mask=MASK)
    for where in (None, 3, client):
        assert_same_runs(PoissonFactorization(WIDTH, **HOW).fit(lazy, alpha=0.4, client=where), whole)


def test_arrays_of_dask_that_do_not_fit_are_refused_in_words(client):
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(release(0.5), chunks=100)
    model = PoissonFactorization(WIDTH, **HOW)
    for how, says in (
        ({"alpha": np.full(lazy.shape, 0.4)}, "`alpha` must be a number with an array of Dask"),
        ({"alpha": 0.4, "mask": np.zeros(lazy.shape, dtype=bool)}, "`mask` must be None with an array of Dask"),
        ({"alpha": 1.5}, r"`alpha` must be in \[0, 1\), got 1.5"),
        ({}, "Negative values in data"),
    ):
        with pytest.raises(ValueError, match=says):
            model.fit(lazy, client=client, **how)
    with pytest.raises(TypeError, match="`released` must hold whole numbers, got an array of Dask of dtype object"):
        model.fit(lazy.astype(object), alpha=0.4, client=client)
    for bad in (lazy[lazy[:, 0] > 0], lazy[:0], lazy[:, :0]):
        with pytest.raises(ValueError, match="`released` must have two axes or more of known extents above 0"):
            model.fit(bad, alpha=0.4, client=client)


@pytest.mark.parametrize(
    ("rows", "how", "says"),
    [
        ((0, ROWS), {}, "parts with rows of the same columns"),
        ((100, ROWS - 100), {}, "parts of a multiple of 128 rows each, but for the last, got 100 rows"),
        ((128, ROWS - 128), {"alpha": 0.5}, "`alpha` must be None with files"),
        ((128, ROWS - 128), {"mask": MASK}, "`mask` must be None with files"),
    ],
)
def test_files_that_do_not_fit_are_refused(rows, how, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        PoissonFactorization(WIDTH).fit(saved(labelled(1.0), tmp_path, rows), **how)


def test_what_is_no_file_of_rows_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("none")
    for released, says in (
        ([tmp_path / "text.npz"], "`released` must name releases in npz files, got .*text.npz"),
        ([*saved(labelled(1.0), tmp_path, (ROWS,)), np.ones((2, COLS))], "a list of files, got a list with array"),
    ):
        with pytest.raises((ValueError, TypeError), match=says):
            PoissonFactorization(WIDTH).fit(released, client=2)
    with pytest.raises(FileNotFoundError):
        PoissonFactorization(WIDTH).fit([tmp_path / "nowhere.npz"])


def test_files_of_rows_have_a_checksum(tmp_path):
    path = saved(labelled(1.0), tmp_path, (ROWS,))[0]
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["release"])) | {"format": 1}
    del header["checksum"]
    np.savez(path, **arrays | {"release": np.array(json.dumps(header))})
    with pytest.raises(ValueError, match="`released` must name files with a checksum"):
        PoissonFactorization(WIDTH).fit([path])


# Checkpoints.


def test_a_client_that_is_killed_goes_on_with_other_shards(tmp_path):
    path = tmp_path / "fit"
    lines = f"""
import os
from tests.factorization.test_sharded import fitted
def die(done, total):
    if done >= 17:
        os._exit(9)
fitted("mask", client=2, checkpoint={str(path)!r}, checkpoint_interval=0, progress=die)
"""
    folder = pathlib.Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", lines], cwd=folder, timeout=120, check=False).returncode == 9
    seen = []
    found = fitted("mask", client=5, checkpoint=path, progress=lambda done, total: seen.append(done))
    assert seen[0] > 10
    assert not path.exists()
    assert_same_runs(found, fitted("mask"))


# The core.


def chain_and_facts(released, width=WIDTH, mask=None):
    """A chain of the core with one prior for all entries, and the facts of its table."""
    counts, one = counts_of(released, 0.4, mask), (np.array([0.1]), np.array([1.0]))
    chain = _core.GibbsChain(counts, "cp", list(np.shape(released)), width, [one, one], "auto", (1, 2))
    return chain, counts.facts()


def test_sums_over_rows_are_those_of_blocks_rounded_once():
    chain, facts = chain_and_facts(release(3.0))
    chain.place(0, facts)
    right = chain.factors()[1]
    [tally], limbs, _ = chain.shard_sweep([right], 1)
    rows = chain.factors()[0]
    blocks = [functools.reduce(np.add, rows[first : first + 128]) for first in range(0, ROWS, 128)]
    exact = [math.fsum(column) for column in zip(*blocks, strict=True)]  # which rounds once, too
    np.testing.assert_array_equal(_core.exact_sums(limbs), exact)
    np.testing.assert_array_equal(_core.exact_sums(-limbs), [-x for x in exact])
    np.testing.assert_array_equal(chain.factors()[1], right)
    assert tally.shape == right.shape


def test_exposures_of_cells_held_out_are_their_sums_but_for_rounding():
    chain, _ = chain_and_facts(release(0.5), mask=MASK)
    rows, *shared = chain.factors()
    sums = rows.sum(axis=0)
    held = chain.held_exposures(1, sums, None)
    np.testing.assert_array_equal(held, chain.held_exposures(1, sums, shared))
    assert abs(held - MASK.T @ rows).max() < ROWS * 2.0**-50 * sums.max()
    unit = 2.0 ** (np.floor(np.log2(sums)) - 50)
    np.testing.assert_array_equal(held / unit, np.rint(held / unit))


@pytest.mark.parametrize(("first_row", "says"), [(64, "a multiple of 128, got 64"), (1, "a multiple of 128, got 1")])
def test_shards_begin_at_a_block_of_rows(first_row, says):
    chain, facts = chain_and_facts(np.ones((2, 3), dtype=np.int64), 2)
    with pytest.raises(ValueError, match=f"`first_row` must be {says}"):
        chain.place(first_row, facts)


def test_an_exception_that_would_not_arrive_is_told_of():
    class Odd(Exception):
        def __init__(self, what, why):
            super().__init__(f"{what}: {why}")

    class Failing:
        def state(self):
            raise Odd("disk", "full")

    def no_shard():
        raise Odd("part", "lost")

    for make, words in ((Failing, "Odd: disk: full"), (no_shard, "Odd: part: lost")):
        well, error = pickle.loads(pickle.dumps(_shards.Remote(make).call("state", ())))
        assert not well
        assert (type(error), str(error)) == (RuntimeError, words)
