"""Coordinate ascent with rows in several places: the same bits however many, and those of one process to rounding."""

from functools import cache, partial
from typing import ClassVar

import numpy as np
import pytest
from tests.factorization import test_sharded
from tests.factorization.chains import assert_same_runs
from tests.factorization.test_sharded import CASES, HOW, MASK, ROWS, WIDTH, labelled, release, saved

from quincunx._inference import _shards
from quincunx.factorization import PoissonFactorization, _chains, _sharded_ascent

pytestmark = pytest.mark.filterwarnings(
    "ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning"
)
ASCENT = {**HOW, "inference": "vi", "max_iter": 12, "tol": 0.0}
ONES = [name for name, how in CASES.items() if "method" not in how]


fitted = partial(test_sharded.fitted, usual=ASCENT)
FEW = {"max_iter": 4}


@pytest.fixture(autouse=True)
def few_iterations_with_less_noise(monkeypatch):
    """Begin where counts are overdispersed with three iterations, which show what twenty do."""
    for module in (_chains, _sharded_ascent):
        monkeypatch.setattr(module, "BEFORE", 3)


@cache
def in_one_shard(case):
    return fitted(case, client=1)


@pytest.mark.parametrize("case", ONES)
def test_the_number_of_shards_does_not_show(case):
    one, whole = fitted(case, client=1, **FEW), fitted(case, **FEW)
    for number in (2, 5):
        assert_same_runs(one, fitted(case, client=number, **FEW))
    for run, same in zip(one._posterior.runs, whole._posterior.runs, strict=True):
        np.testing.assert_allclose(run.elbo, same.elbo, rtol=1e-11)
        for name in run.state:
            np.testing.assert_allclose(run.state[name], same.state[name], rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("exponent", [46, 47, 52])
def test_expected_counts_may_be_as_large_as_releases(exponent):
    released = np.array([[2**exponent, 0], [1, 2**40]])
    whole, parts = (
        PoissonFactorization(1, **ASCENT | {"random_state": 1}).fit(released, alpha=0.99, client=client)
        for client in (None, 2)
    )
    np.testing.assert_allclose(parts.elbo_, whole.elbo_, rtol=1e-11)
    np.testing.assert_allclose(parts.rates_, whole.rates_, rtol=1e-11)


@pytest.mark.parametrize("case", ["overdispersed", "overdispersed rows", "overdispersed columns"])
def test_an_ascent_of_overdispersed_counts_goes_on_elsewhere(case):
    part = fitted(case, client=2, warm_start=True, n_chains=1, max_iter=5)
    data = part._posterior.problem.data
    part.set_params(max_iter=3).fit(data.values, alpha=0.4, mask=data.held_out, client=5)
    at_once = fitted(case, client=1, n_chains=1, max_iter=8)
    assert_same_runs(part, at_once)
    part.set_params(max_iter=4).fit(data.values, alpha=0.4, mask=data.held_out)  # in one process
    part.set_params(max_iter=2).fit(data.values, alpha=0.4, mask=data.held_out, client=3)
    np.testing.assert_allclose(part.elbo_, fitted(case, n_chains=1, max_iter=14).elbo_, rtol=1e-11)


@pytest.mark.parametrize("case", ["many", "core with a mask", "topics, learnt by rows", "overdispersed rows"])
def test_it_stops_where_an_ascent_in_one_process_does_and_goes_on_elsewhere(case):
    how = {"max_iter": 500, "tol": 1e-4, "n_chains": 1}
    whole, shards = fitted(case, **how), fitted(case, client=3, **how)
    assert shards.n_iter_ == whole.n_iter_
    assert shards._posterior.best.converged
    part = fitted(case, client=2, warm_start=True, n_chains=1, max_iter=5)
    data = part._posterior.problem.data
    part.set_params(max_iter=7).fit(data.values, alpha=0.4, mask=data.held_out, client=5)
    at_once = fitted(case, client=2, n_chains=1, max_iter=12)
    np.testing.assert_array_equal(part.elbo_, at_once.elbo_)
    np.testing.assert_array_equal(part.components_, at_once.components_)


@pytest.mark.parametrize("client", [None, 2])
def test_an_ascent_of_nothing_ends(client):
    model = PoissonFactorization(2, inference="vi", n_chains=1, random_state=1)
    model.fit(np.ones((5, 4), dtype=int), alpha=0.3, mask=np.ones((5, 4), dtype=bool), client=client)
    assert model.n_iter_ < 10
    assert model._posterior.best.converged


class Losing(_sharded_ascent.AscentShard):
    """Rows of a part that are lost before some of the calls: the shard is as after one that was half done."""

    calls = 0
    lost: ClassVar[set[int]] = set()

    def iterate(self, i, *given):
        found = super().iterate(i, *given)
        type(self).calls += 1
        if self.calls in self.lost:
            self.set_rows(i, {name: 2 * array for name, array in self.rows(i).items()})
            raise _shards.ShardLost("the worker is gone")
        return found


@pytest.mark.parametrize("client", [None, 2])
def test_files_of_overdispersed_counts_are_one_matrix(client, tmp_path):
    whole = labelled(0.5, MASK)
    how = ASCENT | {"likelihood": "negative_binomial", "dispersion": "column"}
    files, one = (
        PoissonFactorization(WIDTH, **how).fit(released, client=client)
        for released in (saved(whole, tmp_path, (256, 128, ROWS - 384)), whole)
    )
    assert_same_runs(files, one)


@pytest.mark.parametrize(
    "case",
    [
        "many",
        "mask",
        "tensor with a mask",
        "learnt",
        "tensor, learnt by rows",
        "overdispersed rows",
        "overdispersed columns",
        "tensor, overdispersed",
        "core with a mask",
        "weights",
    ],
)
@pytest.mark.parametrize("lost", [{1}, {17}, {24, 25, 26}, {40, 60, 79}])
def test_lost_shards_do_not_show(case, lost, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_sharded_ascent, "AscentShard", Losing)
        patch.setattr(Losing, "calls", 0)
        patch.setattr(Losing, "lost", lost)
        found = fitted(case, client=3)
        assert Losing.calls > max(lost)
    assert_same_runs(found, in_one_shard(case))


@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupt_between_iterations_and_in_one_leaves_what_had_ended(kept, tmp_path, monkeypatch):
    heard = []

    def stop(done, total):
        heard.append(done)
        if len(heard) == 18:
            raise KeyboardInterrupt

    def torn(shard, i, *given):
        if len(heard) == 20:
            heard.append(None)
            raise KeyboardInterrupt
        return iterate(shard, i, *given)

    iterate = _sharded_ascent.AscentShard.iterate
    monkeypatch.setattr(_sharded_ascent.AscentShard, "iterate", torn)
    whole = fitted("many", client=2, n_chains=2)
    how = {"alpha": 0.4, "checkpoint": tmp_path / "state" if kept else None}
    model = PoissonFactorization(WIDTH, **(ASCENT | {"n_chains": 2, "progress": stop}))
    with pytest.raises(KeyboardInterrupt):
        model.fit(release(3.0), client=2, **how)
    first, second = model._posterior.runs
    assert len(second.elbo) == second.iteration < 12
    if not kept:  # else they take turns
        np.testing.assert_array_equal(first.elbo, whole._posterior.runs[0].elbo)
        return
    with pytest.raises(KeyboardInterrupt):
        model.fit(release(3.0), client=5, **how)
    assert None in heard
    model.set_params(progress=None).fit(release(3.0), client=3, **how)
    assert_same_runs(model, whole)


@pytest.mark.parametrize("how", [{"inference": "svi"}, {"method": "bessel-mean"}], ids=repr)
def test_other_methods_are_refused(how):
    with pytest.raises(ValueError, match="`client` must be None but for Gibbs sampling, or variational inference"):
        fitted("many", client=2, **how)
