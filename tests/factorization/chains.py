"""What tests of the samplers share: chains of the core, errors of correlated means, many tests at one level, data."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.factorization import reference
from tests.statistics import FALSE_ALARM

from quincunx import _core

METHODS = ("collapsed", "event", "split", "bessel")


def counts_of(released, alpha, hidden=None):
    """Return the core's form of a release; `alpha` is a number or has its shape, as has what is hidden."""
    flat, columns = np.ascontiguousarray(released, dtype=np.int64).ravel(), np.shape(released)[-1]
    mask = None if hidden is None else np.ascontiguousarray(hidden, dtype=np.uint8).ravel()
    ratios = np.ascontiguousarray(np.ravel(alpha), dtype=np.float64)
    return _core.ReleasedCounts(flat, flat.size // columns, columns, ratios, mask)


def released_counts(model, released, alpha):
    return counts_of(np.reshape(released, model.shape), alpha, model.hidden)


def flat_priors(model):
    return [tuple(np.empty(0) if p is None else np.ascontiguousarray(p).ravel() for p in q) for q in model.priors]


def core_chain(model, released, alpha, method="auto", key=(1, 2), fixed=None):
    counts = released_counts(model, released, alpha)
    extents = list(model.extents)
    return _core.GibbsChain(counts, model.kind, extents, model.n_components, flat_priors(model), method, key, fixed)


def start_from(chain, factors):
    chain.set_factors([np.ascontiguousarray(f, dtype=np.float64) for f in factors])


def core_ascent(model, released, alpha, method="collapsed", key=(1, 2), fixed=None, start=None):
    counts, extents, priors = released_counts(model, released, alpha), list(model.extents), flat_priors(model)
    ascent = _core.CoordinateAscent(counts, model.kind, extents, model.n_components, priors, method, key, fixed)
    if start is not None:
        ascent.set_factors([tuple(np.ascontiguousarray(x, dtype=np.float64) for x in pair) for pair in start])
    return ascent


def some_release(model, alpha, seed=8):
    rng = np.random.default_rng(seed)
    counts, plus, minus = model.draw_released(model.draw_factors(rng), alpha, rng)
    return counts + plus - minus


def log_grid(low, high, number):
    """Nodes and weights of Gauss and Legendre on (low, high), for integrals over a logarithm."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return (high - low) / 2 * nodes + (high + low) / 2, (high - low) / 2 * weights


def batch_means(series, batches=100):
    """Mean and standard error of a stationary series along its first axis, from the spread of means of batches."""
    series = np.asarray(series, dtype=float)
    length = len(series) // batches
    means = series[: length * batches].reshape(batches, length, -1).mean(axis=1)
    shape = series.shape[1:]
    return means.mean(axis=0).reshape(shape), (means.std(axis=0, ddof=1) / np.sqrt(batches)).reshape(shape)


def assert_means(series, exact, what, batches=100):
    """Assert a chain's means, each at the false-alarm rate divided by their number; Student's t with the batches."""
    mean, error = batch_means(series, batches)
    distance = np.abs(mean - exact) / error
    limit = stats.t.isf(FALSE_ALARM / (2 * np.size(exact)), batches - 1)
    assert np.all(distance < limit), f"{what}: {mean} +- {error} should be {exact}; {distance.max():.1f} > {limit:.1f}"


def effective_size(series):
    """Effective number of independent draws in each column: Geyer's initial positive sequence."""
    series = np.asarray(series, dtype=float)
    n = len(series)
    centered = series - series.mean(axis=0)
    spectrum = np.fft.rfft(centered, 2 * n, axis=0)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), axis=0)[:n] / n
    sizes = []
    for column in np.atleast_2d(covariance.T):
        if not column[0] > 0:
            sizes.append(float(n))
            continue
        pairs = column[0 : n - 1 : 2] + column[1:n:2]
        stop = np.argmax(pairs <= 0) if np.any(pairs <= 0) else len(pairs)
        pairs = np.minimum.accumulate(pairs[: max(stop, 1)])
        sizes.append(min(float(n), n * column[0] / (2 * pairs.sum() - column[0])))
    return np.array(sizes)


def holm(probabilities, level=FALSE_ALARM):
    """Return the indices which Holm's procedure rejects at this level over all of them."""
    order = np.argsort(probabilities)
    rejected = []
    for rank, i in enumerate(order):
        if probabilities[i] > level / (len(order) - rank):
            break
        rejected.append(int(i))
    return rejected


def of_no_change(changes):
    """Return the probability of each mean of independent changes, or of a farther one, where they have mean zero."""
    z = changes.mean(axis=0) / (changes.std(axis=0, ddof=1) / np.sqrt(len(changes)))
    return 2 * stats.norm.sf(np.abs(z))


def of_same_law(before, after):
    """Return how likely the distances of functions of two samples are, after Kolmogorov and Smirnov, and the worst."""
    found = {name: stats.ks_2samp(before[name], after[name]).pvalue for name in before}
    worst = min(found, key=found.get)
    print(f"least p times number {found[worst] * len(found):.2g} ({worst})")
    return np.array(list(found.values())), worst


def by_function(rows):
    """Return the values of each function in rows that have all of them."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def thinned(chain, counts, factors, repetition, warm, draws, thin):
    """Return what a chain keeps given counts, each `thin` iterations after the one before, from factors on."""
    chain.set_counts(counts)
    start_from(chain, factors)
    # Iterations are numbered over the chain's life: this begins a repetition at a multiple of `thin`.
    chain.iteration = repetition * (draws + warm) * thin
    chain.run(warm * thin, 0, 1)
    chain.take()
    chain.run(draws * thin, thin, 1)
    return chain.take()


def ranks_of_truths(chain, drawn, released, functions, rng, thin):
    """Return the ranks of functions of 160 draws of a model among 31 nearly independent draws of the chain each.

    `drawn` draws factors, from which the chain starts as well, and `released` counts given factors.
    """
    ranks, sizes, draws = {}, [], 31
    for repetition in range(160):
        truth = drawn()
        given = thinned(chain, released(truth), drawn(), repetition, warm=10, draws=draws, thin=thin)["draws"]
        ours = [functions([factor[draw] for factor in given]) for draw in range(draws)]
        for name, value in functions(truth).items():
            values = np.array([row[name] for row in ours])
            ties = (values == value).sum()  # what is below the least double is all the same
            ranks.setdefault(name, []).append((values < value).sum() + rng.integers(ties + 1))
        sizes.append(effective_size(np.array([list(row.values()) for row in ours])))
    assert np.median(sizes, axis=0).min() > draws / 2
    return ranks


def assert_uniform(ranks, draws=31, what=""):
    """Assert that ranks of functions among so many draws are uniform: chi-square on 8 bins, Holm's procedure."""
    bins = {name: np.bincount(np.array(values) * 8 // (draws + 1), minlength=8) for name, values in ranks.items()}
    found = {name: stats.chisquare(counts).pvalue for name, counts in bins.items()}
    least = min(found, key=found.get)
    print(f"{what}: least probability {found[least]:.2g} of {len(found)} ({least})")
    assert not holm(list(found.values())), f"{what}: {found}, {bins[least]}"


def assert_same_runs(one, other):
    """Compare all that two fits drew and all that they would continue from, bit for bit."""
    for run, same in zip(one._posterior.runs, other._posterior.runs, strict=True):
        assert (run.key, run.iteration, run.converged) == (same.key, same.iteration, same.converged)
        np.testing.assert_array_equal(run.kept, same.kept)
        for group in ("state", "draw_statistics", "step_statistics"):
            mine, theirs = getattr(run, group), getattr(same, group)
            assert mine.keys() == theirs.keys()
            for name, values in mine.items():
                np.testing.assert_array_equal(values, theirs[name], err_msg=name)
                assert values.dtype == theirs[name].dtype
        for draws, others in zip(run.draws, same.draws, strict=True):
            np.testing.assert_array_equal(draws, others)


def network(kind, actors, communities, priors, hidden=None):
    return reference.Model(kind, (actors,), communities, priors, hidden)


def matrix(rows, cols, components, priors, hidden=None):
    return reference.Model("cp", (rows, cols), components, priors, hidden)


def tucker(extents, components, priors, factors=None, hidden=None):
    """Return a model with a core, with the number of the factor of each mode; by default each has its own."""
    numbers = tuple(range(len(extents))) if factors is None else factors
    kind = "tucker" if factors is None else "tucker-tied"
    return reference.Tucker(kind, (*extents, *components, *numbers), components[-1], priors, hidden)


def some_hidden(rows, cols, share=0.3, seed=5):
    return np.random.default_rng(seed).random((rows, cols)) < share


ENRON = Path(__file__).resolve().parents[3] / "shared" / "data" / "enron156_counts.csv.gz"


def enron():
    """Return who sent how many messages to whom, 156 people; a test that needs them is skipped where they are not."""
    if not ENRON.is_file():
        pytest.skip(f"the network of Enron is not there: {ENRON}")
    with gzip.open(ENRON, "rt") as lines:
        table = np.array([row for row in csv.reader(lines) if row[0].isdigit()], dtype=np.int64)
    counts = np.zeros((156, 156), dtype=np.int64)
    counts[table[:, 0] - 1, table[:, 1] - 1] = table[:, 2]
    return counts


LEVELS = np.array([0.0, 0.2, 0.5, 0.75])
"""Mixed levels of noise, among them none at all."""


def small_problems():
    """Return models small enough for millions of sweeps, each with its levels of noise."""
    lengths = [(2.0, 1.0), (np.array([[1.5], [2.0], [3.0], [1.0]]), 2.0)]
    three = [(2.0, 1.5), (np.array([[1.0, 2.0]]), 1.5), (1.5, np.array([[1.0], [2.0]]))]
    words = [(np.array([[1.5, 0.8]]), 0.5), (np.array([[0.7], [1.1], [0.5], [2.0]]), None)]
    circle = [(1.5, 2.0), (np.array([[2.0, 1.0], [0.7, 1.5]]), 0.8)]
    both = np.array([[2.0, 0.8], [0.8, 1.5]])
    core = [(2.0, 1.5), (np.array([[1.0], [2.0]]), 1.5), (1.5, np.array([[1.0, 2.0]])), (1.5, 1.2)]
    ties = [(1.5, 2.0), (2.0, 1.5), (np.array([[2.0, 1.0], [0.7, 1.5]]), 0.8)]
    return {
        "matrix": (matrix(3, 4, 2, lengths), 0.5),
        "matrix, mixed levels": (matrix(3, 4, 2, lengths), np.resize(LEVELS, (3, 4)).T.reshape(3, 4)),
        "matrix, hidden cells": (matrix(3, 4, 2, lengths, some_hidden(3, 4)), 0.6),
        "three modes": (reference.Model("cp", (2, 2, 2), 2, three), 0.5),
        "three modes, hidden cells": (reference.Model("cp", (2, 2, 2), 2, three, some_hidden(4, 2)), 0.4),
        "topics": (matrix(3, 4, 2, words), 0.5),
        "topics, hidden cells": (matrix(3, 4, 2, words, some_hidden(3, 4)), 0.5),
        "directed": (network("directed", 4, 2, circle), 0.5),
        "directed, hidden cells": (network("directed", 4, 2, circle, some_hidden(4, 4)), 0.5),
        "undirected": (network("undirected", 5, 2, [(1.5, 2.0), (both, 0.8)]), 0.5),
        "undirected, hidden cells": (network("undirected", 5, 2, [(1.5, 2.0), (both, 0.8)], some_hidden(5, 5)), 0.3),
        "core": (tucker((2, 2, 2), (2, 1, 2), core), 0.5),
        "core, hidden cells": (tucker((2, 2, 2), (2, 1, 2), core, hidden=some_hidden(4, 2)), 0.4),
        "core, tied modes": (tucker((3, 2, 3), (2, 1, 2), ties, (0, 1, 0)), 0.5),
    }
