"""Coordinate ascent with rows in several places: the same bits however many, and those of one process to rounding."""

import numpy as np
import pytest
from tests.factorization.test_sharded import CASES, HOW, WIDTH, release

from quincunx.factorization import PoissonFactorization

pytestmark = pytest.mark.filterwarnings(
    "ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning"
)
ASCENT = {**HOW, "inference": "vi", "max_iter": 12, "tol": 0.0}
ONES = [name for name, how in CASES.items() if "method" not in how]


def fitted(case, *, client=None, **how):
    own = dict(CASES[case])
    alpha, mask = own.pop("alpha", 0.4), own.pop("mask", None)
    released = release(own.pop("mean"), alpha)
    return PoissonFactorization(WIDTH, **(ASCENT | own | how)).fit(released, alpha=alpha, mask=mask, client=client)


@pytest.mark.parametrize("case", ONES)
def test_the_number_of_shards_does_not_show(case):
    one, whole = fitted(case, client=1), fitted(case)
    for number in (2, 5):
        other = fitted(case, client=number)
        for run, same in zip(one._posterior.runs, other._posterior.runs, strict=True):
            np.testing.assert_array_equal(run.elbo, same.elbo)
            assert run.state.keys() == same.state.keys()
            for name, values in run.state.items():
                np.testing.assert_array_equal(values, same.state[name], err_msg=name)
    for run, same in zip(one._posterior.runs, whole._posterior.runs, strict=True):
        np.testing.assert_allclose(run.elbo, same.elbo, rtol=1e-11)
        for name in run.state:
            np.testing.assert_allclose(run.state[name], same.state[name], rtol=1e-7, err_msg=name)


def test_it_stops_where_an_ascent_in_one_process_does_and_goes_on_elsewhere():
    how = {"max_iter": 500, "tol": 1e-5, "n_chains": 1}
    whole, shards = fitted("many", **how), fitted("many", client=3, **how)
    assert shards.n_iter_ == whole.n_iter_
    assert shards._posterior.best.converged
    part = fitted("many", client=2, warm_start=True, n_chains=1, max_iter=5)
    part.set_params(max_iter=7).fit(release(3.0), alpha=0.4, client=5)
    at_once = fitted("many", client=2, n_chains=1, max_iter=12)
    np.testing.assert_array_equal(part.elbo_, at_once.elbo_)
    np.testing.assert_array_equal(part.components_, at_once.components_)


@pytest.mark.parametrize("how", [{"inference": "svi"}, {"method": "bessel-mean"}], ids=repr)
def test_other_methods_are_refused(how):
    with pytest.raises(ValueError, match="`client` must be None but for Gibbs sampling, or variational inference"):
        fitted("many", client=2, **how)
