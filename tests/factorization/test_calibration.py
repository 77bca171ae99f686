"""Simulation-based calibration: ranks of the truth among posterior draws are uniform (Talts et al. 2018).

Factors come from the prior, data from the factors, and a chain of the core that starts from other factors gives draws
of the posterior, thinned until they are nearly independent. The rank of the truth among them is uniform for every
function of factors and data if the posterior is right; among the functions is the likelihood, which sees too wide and
too narrow posteriors alike. Chi-square on 8 bins of ranks with Holm's procedure: false-alarm rate 1e-6 per test.

The short version (160 repetitions, 63 draws) sees a posterior whose spread is wrong by half; the slow one
(800 repetitions, 127 draws) by a fifth.
"""

import numpy as np
import pytest
from tests.factorization.chains import (
    METHODS,
    assert_uniform,
    core_chain,
    effective_size,
    released_counts,
    small_problems,
    thinned,
)

from quincunx import _core

PROBLEMS = small_problems()
pytestmark = pytest.mark.statistical


def describe(model, factors, log_likelihood):
    """Return functions of stacks of factors which do not change when components change places, and the likelihood."""
    rates = model.component_rates(factors).sum(axis=-1)[:, model.observed]
    found = {
        "total rate": rates.sum(axis=1),
        "first rate": rates[:, 0],
        "last rate": rates[:, -1],
        "product of rates": np.log(rates).sum(axis=1),
        "ln p(o | rate)": log_likelihood,
    }
    for m, factor in enumerate(factors):
        if not model.dirichlet[m]:
            found[f"factor {m}: sum"] = factor.sum(axis=(1, 2))
        found[f"factor {m}: product"] = np.log(factor).sum(axis=(1, 2))
    return found


def ranks(name, method, repetitions, draws, thin, warm):
    """Return the rank of the truth per function, and the least effective share of the draws in some of the chains."""
    model, alpha = PROBLEMS[name]
    rng = np.random.default_rng(99)
    extents = list(model.extents)
    found, shares, chain = {}, [], None
    for repetition in range(repetitions):
        truth = model.draw_factors(rng)
        counts, plus, minus = model.draw_released(truth, alpha, rng)
        data = released_counts(model, counts + plus - minus, alpha)
        if chain is None:
            chain = core_chain(model, counts + plus - minus, alpha, method, key=(2, 71))
        kept = thinned(chain, data, model.draw_factors(rng), repetition, warm, draws, thin)
        rates = np.ascontiguousarray(_core.factor_rates(model.kind, extents, truth, 1)).ravel()
        likelihood = np.sum(np.asarray(_core.log_likelihoods(data, rates, 1)).reshape(model.shape)[model.observed])
        ours = describe(model, kept["draws"], kept["log_likelihood"])
        theirs = describe(model, [f[None] for f in truth], np.array([likelihood]))
        for key, values in ours.items():
            assert len(values) == draws
            found.setdefault(key, []).append(int((values < theirs[key]).sum()))
        if repetition % 16 == 0:
            shares.append(effective_size(np.stack(list(ours.values()), axis=1)) / draws)
    return found, np.median(shares, axis=0).min()


def assert_calibrated(name, method, repetitions, draws, thin, warm):
    found, share = ranks(name, method, repetitions, draws, thin, warm)
    assert share > 0.5, f"{name}, {method}: draws are too close to one another for ranks, {share}"
    assert_uniform(found, draws, f"{name}, {method}, effective share {share:.2f}")


QUICK = [
    ("matrix, mixed levels", "event"),
    ("matrix, hidden cells", "split"),
    ("three modes", "bessel"),
    ("topics, hidden cells", "event"),
    ("undirected, hidden cells", "auto"),
    ("core, tied modes", "auto"),
]


@pytest.mark.parametrize(("name", "method"), QUICK)
def test_ranks_of_the_truth_are_uniform(name, method):
    assert_calibrated(name, method, 160, 31, 8, 10)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_ranks_of_the_truth_are_uniform_in_many_repetitions(name, method):
    assert_calibrated(name, method, 800, 127, 10, 15)
