"""Samplers beside the joint distribution of factors, counts and releases (Geweke 2004, Getting it right).

Forward draws come from the prior, the model and the noise. The other side is one long chain that alternates between a
sweep of the core and new data given the factors, drawn in NumPy; it starts from a forward draw, so it is stationary
from the start. Both sides have the same law if, and only if, the sweep leaves the posterior invariant whatever the
data. Over twenty means are compared per model and method, with the chain's effective sample sizes; Holm's procedure
keeps the false-alarm rate of a test at 1e-6.

With n effective draws on the shorter side a test sees a mean that is off by about 6 / sqrt(n) standard deviations.
Such chains forget slowly, so the quick ones see half a standard deviation, the slow ones a tenth. Therefore there
are independent repetitions, too (Gandy and Scott 2020): a forward draw, some sweeps given its data, and the mean change
of each function, which is zero; four hundred of them see a third of the spread of the changes. The last test damages a
sampler and wants to see it fail.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from tests.factorization.chains import (
    METHODS,
    core_chain,
    effective_size,
    holm,
    released_counts,
    small_problems,
    start_from,
)
from tests.factorization.reference import CellLaw
from tests.statistics import FALSE_ALARM

PROBLEMS = small_problems()
pytestmark = pytest.mark.statistical


def describe(model, alpha, states):
    """Return named functions of stacks of factors, counts and releases."""
    factors, counts, released = states
    seen = model.observed
    rates = model.component_rates(factors).sum(axis=-1)[:, seen]
    alpha = np.broadcast_to(alpha, model.shape)[seen]
    y, o = counts[:, seen], released[:, seen]
    found = {
        "ln total rate": np.log(rates.sum(axis=1)),
        "mean ln rate": np.log(rates).mean(axis=1),
        "least ln rate": np.log(rates).min(axis=1),
        "share of the largest rate": rates.max(axis=1) / rates.sum(axis=1),
        "first rate": np.log(rates[:, 0]),
        "last rate": np.log(rates[:, -1]),
        "ln sum of counts": np.log1p(y.sum(axis=1)),
        "ln sum of squares": np.log1p((y * y).sum(axis=1)),
        "empty cells": (y == 0).sum(axis=1),
        "largest count": np.log1p(y.max(axis=1)),
        "largest release": np.arcsinh(o.max(axis=1)),
        "least release": np.arcsinh(o.min(axis=1)),
        "positive releases": (o > 0).sum(axis=1),
        "noise": np.log1p(np.abs(o - y).sum(axis=1)),
        "ln p(o | rate)": log_likelihood(o, rates, alpha),
        "agreement": np.log1p(np.abs(o - rates)).mean(axis=1),
    }
    for m, factor in enumerate(factors):
        once = np.triu(np.ones(factor.shape[1:])) if model.kind == "undirected" and m == 1 else 1.0
        logs = np.log(factor)
        found |= {
            f"factor {m}: ln sum": np.log((factor * once).sum(axis=(1, 2))),
            f"factor {m}: mean ln": (logs * once).mean(axis=(1, 2)),
            f"factor {m}: first entry": factor[:, 0, 0],
            f"factor {m}: last entry": factor[:, -1, -1],
            f"factor {m}: ln of the upper right entry": logs[:, 0, -1],
            f"factor {m}: spread": logs.std(axis=(1, 2)),
        }
        if model.dirichlet[m]:  # sums are what they are
            del found[f"factor {m}: ln sum"]
    first, second = factors[0], factors[1]
    found["product of first entries"] = np.log(first[:, 0, 0]) * np.log(second[:, 0, 0])
    found["first entry and release"] = np.log(first[:, 0, 0]) * np.arcsinh(o[:, 0])
    return found


def log_likelihood(released, rates, alpha):
    parts = range(0, len(rates), 1000)  # the tables of masses are large
    return np.concatenate(
        [CellLaw(released[i : i + 1000], rates[i : i + 1000], alpha).log_likelihood.sum(axis=1) for i in parts]
    )


def stacked(states):
    factors, counts, released = zip(*states, strict=True)
    return [np.stack(f) for f in zip(*factors, strict=True)], np.stack(counts), np.stack(released)


@cache
def forward(name, draws):
    model, alpha = PROBLEMS[name]
    rng = np.random.default_rng(11)
    states = []
    for _ in range(draws):
        factors = model.draw_factors(rng)
        counts, plus, minus = model.draw_released(factors, alpha, rng)
        states.append((factors, counts, counts + plus - minus))
    return describe(model, alpha, stacked(states))


def successive(name, method, length, sweep=None):
    """Return functions of a chain of (sweep of the core, new data); the noise of method "bessel" is part of its state.

    Given factors and noise a release is a Poisson count plus the noise; for the other methods the noise is new as well.
    """
    model, alpha = PROBLEMS[name]
    rng = np.random.default_rng(12)
    factors = model.draw_factors(rng)
    counts, plus, minus = model.draw_released(factors, alpha, rng)
    chain = core_chain(model, counts + plus - minus, alpha, method, key=(7, 9))
    start_from(chain, factors)
    keeps_noise = bool(chain.noise())
    states = []
    for _ in range(length):
        released = counts + plus - minus
        chain.set_counts(released_counts(model, released, alpha))
        if keeps_noise:
            chain.set_noise([np.ascontiguousarray(plus).ravel(), np.ascontiguousarray(minus).ravel()])
        chain.run(1, 0, 1)
        factors = chain.factors() if sweep is None else sweep(chain.factors(), rng)
        if sweep is not None:
            start_from(chain, factors)
        if keeps_noise:
            plus, minus = (np.array(g).reshape(model.shape) for g in chain.noise())
            counts = rng.poisson(model.rates(factors))
        else:
            counts, plus, minus = model.draw_released(factors, alpha, rng)
        states.append((factors, counts, counts + plus - minus))
    return describe(model, alpha, stacked(states))


def compare(theirs, ours):
    """Return the z-score of each function, and the least effective size of the chain."""
    sizes = effective_size(np.stack(list(ours.values()), axis=1))
    scores = {}
    for (name, a), b, size in zip(theirs.items(), ours.values(), sizes, strict=True):
        scores[name] = (b.mean() - a.mean()) / np.sqrt(a.var() / len(a) + b.var() / size + 1e-300)
    return scores, sizes.min()


def assert_same_law(name, method, draws, length):
    scores, least = compare(forward(name, draws), successive(name, method, length))
    assert len(scores) >= 20
    values = np.array(list(scores.values()))
    worst = sorted(scores.items(), key=lambda item: -abs(item[1]))[:5]
    print(f"{name}, {method}: largest |z| {abs(values).max():.2f} of {len(values)}, effective size {least:.0f}")
    assert not holm(2 * stats.norm.sf(np.abs(values)), FALSE_ALARM), f"{name}, {method}: {worst}"


#: A method for each model; the repetitions below have all of them.
QUICK = [(name, METHODS[(i + 1) % 4]) for i, name in enumerate(name for name in PROBLEMS if "hidden" not in name)]


@pytest.mark.parametrize(("name", "method"), QUICK)
def test_a_sweep_leaves_the_joint_distribution_invariant(name, method):
    assert_same_law(name, method, 2000, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_sweep_leaves_the_joint_distribution_invariant_in_a_long_chain(name, method):
    assert_same_law(name, method, 30_000, 60_000)


@cache
def forward_states(name, repetitions):
    """Return forward draws: factors, counts, releases, noise, and the core's form of the releases."""
    model, alpha = PROBLEMS[name]
    rng = np.random.default_rng(14)
    states, noise, data = [], [], []
    for _ in range(repetitions):
        factors = model.draw_factors(rng)
        counts, plus, minus = model.draw_released(factors, alpha, rng)
        states.append((factors, counts, counts + plus - minus))
        noise.append([np.ascontiguousarray(part).ravel() for part in (plus, minus)])
        data.append(released_counts(model, states[-1][2], alpha))
    return states, noise, data, describe(model, alpha, stacked(states))


def changes(name, method, repetitions, sweeps=4, spoil=lambda factors: factors):
    """Return, per function, how sweeps changed it in independent repetitions that began with a forward draw."""
    model, alpha = PROBLEMS[name]
    states, noise, data, first = forward_states(name, repetitions)
    chain, after = core_chain(model, states[0][2], alpha, method, key=(3, 8)), []
    for (factors, counts, released), parts, counts_of_core in zip(states, noise, data, strict=True):
        chain.set_counts(counts_of_core)
        start_from(chain, factors)
        if method == "bessel":
            chain.set_noise(parts)
        chain.run(sweeps, 0, 1)
        after.append((spoil(chain.factors()), counts, released))
    last = describe(model, alpha, stacked(after))
    return {name: last[name] - first[name] for name in first if np.any(last[name] != first[name])}


def assert_no_change(name, method, repetitions):
    found = changes(name, method, repetitions)
    assert len(found) >= 20
    scores = {key: np.sqrt(repetitions) * d.mean() / d.std(ddof=1) for key, d in found.items()}
    values = np.abs(list(scores.values()))
    print(f"{name}, {method}: largest |t| {values.max():.2f} of {len(values)}")
    worst = sorted(scores.items(), key=lambda item: -abs(item[1]))[:5]
    assert not holm(2 * stats.t.sf(values, repetitions - 1), FALSE_ALARM), f"{name}, {method}: {worst}"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_sweeps_do_not_move_forward_draws_on_average(name, method):
    assert_no_change(name, method, 400)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_sweeps_do_not_move_very_many_forward_draws_on_average(name, method):
    assert_no_change(name, method, 10_000)


def test_a_sampler_with_a_small_fault_is_seen():
    """A column of a factor a tenth too small after each sweep: the chain of data and factors settles elsewhere."""

    def faulty(factors, rng):
        factors[0][:, 0] *= 0.9
        return factors

    scores, _ = compare(forward("matrix", 2000), successive("matrix", "collapsed", 2000, faulty))
    assert holm(2 * stats.norm.sf(np.abs(list(scores.values()))), FALSE_ALARM)


def test_a_core_of_half_the_exposure_is_seen():
    """The core is drawn last: times (rate + exposure) / (rate + exposure / 2) it is what half the exposure gives."""
    model, _ = PROBLEMS["core"]

    def faulty(factors):
        exposure, rate = model.exposure(factors, 3), model.priors[3][1]
        return [*factors[:3], factors[3] * (rate + exposure) / (rate + exposure / 2)]

    found = np.array(list(changes("core", "collapsed", 400, spoil=faulty).values()))
    scores = 20 * found.mean(axis=1) / found.std(axis=1, ddof=1)
    assert holm(2 * stats.t.sf(np.abs(scores), 399), FALSE_ALARM)
