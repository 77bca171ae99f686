"""The compiled Gibbs sampler beside exact posteriors and exact laws of its pieces, and what must not change a bit."""

import json
import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from tests.factorization import reference
from tests.factorization.chains import (
    METHODS,
    assert_means,
    batch_means,
    core_chain,
    matrix,
    network,
    released_counts,
    small_problems,
    some_release,
    start_from,
    tucker,
)
from tests.statistics import FALSE_ALARM, assert_continuous_fit, assert_discrete_fit

from quincunx import _core

UNIT = math.exp(-1)  # alpha at eps / N = 1


# Exact posteriors. Each chain has 20 000 sweeps; an error of its means is seen from about six standard errors on,
# which are 0.01 to 0.03 of the values.


def exact_problems():
    """Return model, release, alpha, starting factors, free entries and which factors are fixed."""
    ones = np.ones((1, 1))
    two = np.array([[0.4, 1.5], [2.0, 0.3], [1.0, 1.0]])
    tensor = [np.array([[1.0]]), np.array([[0.5], [1.0]]), np.array([[1.0], [2.0]])]
    members = np.array([[1.0, 0.2], [0.4, 1.0], [0.7, 0.7]])
    pairs = [(1, 0, 0), (1, 0, 1), (1, 1, 1)]
    return {
        "one cell": (matrix(1, 1, 1, [(0.5, 0.5), (1, 1)]), [[3]], UNIT, [ones, ones], [(0, 0, 0)], [False, True]),
        "two cells": (
            matrix(1, 2, 1, [(1.5, 1), (1, 1)]),
            [[4, -1]],
            UNIT,
            [ones, np.array([[1.0], [2.0]])],
            [(0, 0, 0)],
            [False, True],
        ),
        "two components, mixed levels": (
            matrix(1, 3, 2, [(np.array([[1.5, 0.8]]), 1), (1, 1)]),
            [[5, -2, 1]],
            np.array([[0.5, 0.3, 0.0]]),
            [np.ones((1, 2)), two],
            [(0, 0, 0), (0, 0, 1)],
            [False, True],
        ),
        "two rows, a hidden cell": (
            matrix(2, 2, 1, [(1.5, 1), (2, 1)], np.array([[False, True], [False, False]])),
            [[6, 99], [-1, 2]],
            0.4,
            [np.ones((2, 1)), np.array([[1.0], [0.7]])],
            [(0, 0, 0), (0, 1, 0)],
            [False, True],
        ),
        "three modes": (
            reference.Model("cp", (1, 2, 2), 1, [(2, 1), (2, 1), (1, 1)]),
            [[2, -1], [3, 7]],
            UNIT,
            tensor,
            [(0, 0, 0), (1, 0, 0), (1, 1, 0)],
            [False, False, True],
        ),
        "undirected": (
            network("undirected", 3, 2, [(1, 1), (1.5, 1)]),
            [[9, 6, -1], [9, 9, 2], [9, 9, 9]],
            UNIT,
            [members, np.array([[2.0, 0.3], [0.3, 1.0]])],
            pairs,
            [True, False],
        ),
        "members of a network": (
            network("directed", 3, 1, [(1.5, 1), (1, 1)]),
            [[9, 3, -1], [0, 9, 4], [1, 2, 9]],
            0.5,
            [np.ones((3, 1)), ones],
            [(0, 0, 0), (0, 1, 0), (0, 2, 0)],
            [False, True],
        ),
        "core": (
            tucker((1, 1), (1, 1), [(0.5, 1.0), (1.5, 2.0), (0.8, 1.2)]),
            [[4]],
            0.5,
            [ones] * 3,
            [(0, 0, 0), (1, 0, 0), (2, 0, 0)],
            [False] * 3,
        ),
        "core, tied modes": (
            tucker((2, 2, 2), (1, 1, 1), [(1.5, 1), (1, 1), (2, 1)], (0, 1, 0)),
            [[9, 3], [9, -1], [5, 9], [2, 9]],
            UNIT,
            [np.ones((2, 1)), np.array([[1.0], [2.0]]), ones],
            [(0, 0, 0), (0, 1, 0), (2, 0, 0)],
            [False, True, False],
        ),
    }


EXACT = exact_problems()


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EXACT)
def test_chain_has_the_means_of_the_exact_posterior(name, method):
    model, released, alpha, factors, free, fixed = EXACT[name]
    exact = exact_posterior(name)
    chain = core_chain(model, released, alpha, method, key=(21, 4), fixed=fixed)
    start_from(chain, factors)
    chain.run(1000, 0, 1)
    chain.take()
    chain.run(20_000, 2, 1)
    kept = chain.take()
    for m, i, j in free:
        draws = kept["draws"][m][:, i, j]
        assert_means(draws, exact.factors[m][i, j], f"{name}, {method}, factor {m} at {i}, {j}")
        assert_means(draws**2, exact.second[m][i, j], f"{name}, {method}, square of factor {m} at {i}, {j}")
    observed = np.nansum(np.where(model.observed, exact.counts, 0))
    assert_means(kept["total_count"], observed, f"{name}, {method}, total count")


@cache
def exact_posterior(name):
    model, released, alpha, factors, free, _ = EXACT[name]
    points, deep = {1: (400, 1e-13), 2: (120, 1e-13), 3: (56, 1e-9)}[len(free)]
    return reference.exact_by_quadrature(model, released, alpha, factors, free, points, deep)


def test_quadrature_and_enumeration_agree_with_the_known_answers():
    """Known answers summed with 25 digits; the last one by quadrature over the rates, here by a sum over all counts."""
    one = exact_posterior("one cell")
    assert one.log_evidence == pytest.approx(-2.6146360766024, abs=1e-12)
    assert one.factors[0][0, 0] == pytest.approx(1.6819637201939, rel=1e-12)
    assert one.counts[0, 0] == pytest.approx(2.02294558, rel=1e-8)
    two = reference.exact_by_quadrature(*EXACT["two cells"][:5], points=400)
    assert two.log_evidence == pytest.approx(-6.499829534039, abs=1e-10)
    assert two.factors[0][0, 0] == pytest.approx(1.1172302892971, rel=1e-10)
    np.testing.assert_allclose(two.counts[0], [2.14690905, 0.82201211], rtol=1e-8)
    # Of the spec's eight digits, the mass of whose grid is 1 - 5e-9.
    core = reference.exact_by_quadrature(*EXACT["core"][:5], points=160)
    assert core.log_evidence == pytest.approx(-3.58244208, abs=1e-8)
    row, _, entry = core.factors
    np.testing.assert_allclose([row[0, 0], entry[0, 0]], [0.72283549, 0.85236291], atol=2e-8)
    evidence, counts = reference.exact_rank_one([[3, -1], [1, 6]], UNIT, (1, 1), (1, 1), 20)
    assert evidence == pytest.approx(-11.5535424, abs=1e-7)
    np.testing.assert_allclose(counts, [[1.240829, 0.375485], [0.984710, 3.978043]], atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
def test_two_by_two_matrix_with_nothing_fixed_has_its_exact_mean_counts(method):
    model, released = matrix(2, 2, 1, [(1, 1), (1, 1)]), np.array([[3, -1], [1, 6]])
    exact = np.array([[1.240829, 0.375485], [0.984710, 3.978043]])  # of the spec's seven digits
    chain = core_chain(model, released, UNIT, method, key=(3, 3))
    chain.run(1000, 0, 1)
    chain.take()
    chain.run(20_000, 5, 1)
    kept = chain.take()
    assert_means(kept["total_count"], exact.sum(), f"{method}, total count")
    rates = model.rates(kept["draws"])
    law = reference.CellLaw(released, rates, UNIT)
    assert_means(law.mean, exact, f"{method}, counts by the law of each cell")


# The law of one sweep's counts. Rows of a one-column table at equal rate and release are independent draws.


def counts_of_rows(method, released, components, alpha, rows, warm=0):
    """Return the counts of each component in each row after one sweep: (rows, components)."""
    model = matrix(rows, 1, len(components), [(1, 1), (1, 1)])
    chain = core_chain(model, np.full((rows, 1), released), alpha, method, key=(5, rows), fixed=[True, True])
    start_from(chain, [np.ones((rows, len(components))), np.array([components])])
    chain.run(warm, 0, 2)
    by_row, by_column = chain.tally(0, rows, 1)
    assert np.array_equal(np.asarray(by_row).sum(axis=0), np.asarray(by_column).ravel())
    return np.asarray(by_row)


CELLS = [(0, 0.05, 0.4), (-3, 0.8, 0.4), (1, 0.02, 0.4), (2, 0.6, 0.4), (5, 1.0, 0.7), (3, 12.0, 0.5), (9, 3.0, 0.0)]
CELLS += [(60, 20.0, 0.9), (40, 55.0, 0.8), (150, 90.0, 0.5), (-20, 30.0, 0.9), (100, 300.0, 0.3), (1, 1e-6, 0.5)]


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("released", "rate", "alpha"), CELLS)
def test_counts_of_a_sweep_follow_their_law(released, rate, alpha, method):
    """10 000 draws: a chi-square sees a mass that is off by 0.03, where the masses are of that size."""
    rows = 10_000
    counts = counts_of_rows(method, released, [rate], alpha, rows, warm=30 if method == "bessel" else 0)[:, 0]
    law = reference.CellLaw(np.array(released), np.array(rate), np.array(alpha))
    mass = law.mass
    observed = np.bincount(counts, minlength=len(mass))
    assert len(observed) == len(mass)
    if np.max(mass) > 0.9999:
        assert len(counts) - observed[np.argmax(mass)] <= stats.poisson.isf(FALSE_ALARM, rows * (1 - np.max(mass)))
    else:
        assert_discrete_fit(observed, mass)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("released", "rate", "alpha"), [(0, 0.7, 0.5), (3, 2.0, 0.4), (30, 25.0, 0.5), (-1, 40.0, 0.8)]
)
def test_counts_are_split_over_components_by_their_shares(released, rate, alpha, method):
    """Given its row's count, a component has a binomial count; pairs have the multinomial covariance."""
    rows, shares = 20_000, np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    parts = counts_of_rows(method, released, list(rate * shares), alpha, rows, warm=20 if method == "bessel" else 0)
    counts = parts.sum(axis=1)
    assert np.all(parts[:, 4] == 0)
    for k, share in enumerate(shares[:4]):
        top = np.percentile(counts, 99)
        for n in range(1, int(min(top, 4)) + 1):
            rows_with = parts[counts == n, k]
            if len(rows_with) > 500:
                assert_discrete_fit(
                    np.bincount(rows_with, minlength=n + 1), stats.binom.pmf(np.arange(n + 1), n, share)
                )
        spread = np.sqrt(np.sum(counts * share * (1 - share)))
        assert abs(parts[:, k].sum() - share * counts.sum()) < 4.9 * spread + 1
    # E[(Y_0 - n p_0)(Y_1 - n p_1)] = -n p_0 p_1
    products = (parts[:, 0] - counts * 0.5) * (parts[:, 1] - counts * 0.3)
    expected = -0.15 * counts
    error = (products - expected).std() / np.sqrt(rows)
    assert abs((products - expected).mean()) < 5.5 * error


def sums_at_fixed_factors(model, released, alpha, factors, method, sweeps):
    """Return z-scores of the components' counts by row and by column, summed over sweeps, against their exact means."""
    chain = core_chain(model, released, alpha, method, key=(17, 17), fixed=[True, True])
    start_from(chain, factors)
    if method == "bessel":
        chain.run(20, 0, 1)
    sums = [np.zeros(shape) for shape in model.factor_shapes]
    for _ in range(sweeps):
        parts = chain.tally(0, model.shape[0], 1)
        chain.advance(parts, 1)
        for total, part in zip(sums, parts, strict=True):
            total += np.asarray(part).reshape(total.shape)
    theta, phi = factors
    rate = theta @ phi.T
    means, second = cell_moments(released, rate, alpha)
    weight, spread = means / rate, (second - means) / rate**2
    by_row = theta * (weight @ phi), theta * (weight @ phi) + theta**2 * (spread @ phi**2)
    by_column = phi * (weight.T @ theta), phi * (weight.T @ theta) + phi**2 * (spread.T @ theta**2)
    scores = []
    for total, (mean, variance) in zip(sums, (by_row, by_column), strict=True):
        often = sweeps * mean > 25
        scores.append(((total - sweeps * mean) / np.sqrt(sweeps * variance))[often])
    return scores


def cell_moments(released, rate, alpha):
    """Return E[y] and Var[y] of each cell, some rows at a time."""
    mean, variance = np.empty(rate.shape), np.empty(rate.shape)
    for i in range(0, len(rate), 20):
        mass = reference.CellLaw(released[i : i + 20], rate[i : i + 20], np.asarray(alpha)).mass
        y = np.arange(mass.shape[-1])
        mean[i : i + 20] = mass @ y
        variance[i : i + 20] = mass @ (y * y) - mean[i : i + 20] ** 2
    return mean, variance


def assert_standard(scores, what):
    """Assert mean 0, variance 1 and no outlier; false-alarm rate 1e-6 together."""
    n = len(scores)
    print(f"{what}: {n} z-scores, mean {scores.mean():+.4f}, sd {scores.std():.4f}, largest {abs(scores).max():.2f}")
    limit = stats.norm.isf(FALSE_ALARM / 6)
    assert abs(scores.mean()) < limit / np.sqrt(n), what
    # Counts have an excess kurtosis of at most 1/25 here, so (2 + 0.04) / n is the variance of the mean square.
    assert abs((scores**2).mean() - 1) < limit * np.sqrt(2.2 / n), what
    assert abs(scores).max() < stats.norm.isf(FALSE_ALARM / (6 * n)) + 0.5, what


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["event", "split", "collapsed"])
def test_components_counts_at_fixed_factors_have_their_exact_means_and_variances(method):
    rng = np.random.default_rng(3)
    model = matrix(120, 90, 6, [(1, 1), (1, 1)])
    factors = [rng.gamma(0.4, 1.0, (120, 6)), rng.gamma(0.4, 1.0, (90, 6))]
    counts, plus, minus = model.draw_released(factors, UNIT, rng)
    rows, columns = sums_at_fixed_factors(model, counts + plus - minus, UNIT, factors, method, 60)
    assert_standard(rows, f"{method}, rows")
    assert_standard(columns, f"{method}, columns")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("method", ["event", "split", "collapsed"])
def test_components_counts_of_a_large_matrix_have_their_exact_means_and_variances(method):
    rng = np.random.default_rng(4)
    model = matrix(1000, 1000, 50, [(1, 1), (1, 1)])
    factors = [rng.gamma(0.1, 1.0, (1000, 50)), rng.gamma(0.1, 1.0, (1000, 50))]
    counts = rng.poisson(factors[0] @ factors[1].T)
    noise = rng.geometric(1 - UNIT, (2, 1000, 1000))
    rows, columns = sums_at_fixed_factors(model, counts + noise[0] - noise[1], UNIT, factors, method, 400)
    assert_standard(rows, f"{method}, rows")
    assert_standard(columns, f"{method}, columns")


def test_expected_counts_and_log_likelihoods_are_those_of_direct_sums():
    released = np.array([o for o, _, a in CELLS if a > 0])
    rate, alpha = np.array([(mu, a) for _, mu, a in CELLS if a > 0]).T.copy()
    counts = _core.ReleasedCounts(released, len(released), 1, alpha)
    law = reference.CellLaw(released, rate, alpha)
    np.testing.assert_allclose(_core.expected_counts(counts, rate, 1), law.mean, rtol=1e-11)
    np.testing.assert_allclose(_core.log_likelihoods(counts, rate, 1), law.log_likelihood, rtol=1e-11)


def test_hidden_cells_have_no_likelihood_and_their_rate_as_expectation():
    counts = _core.ReleasedCounts(np.array([3, -4]), 1, 2, np.array([0.5]), np.array([0, 1], dtype=np.uint8))
    rates = np.array([1.0, 2.5])
    assert _core.expected_counts(counts, rates, 1)[1] == 2.5
    assert _core.log_likelihoods(counts, rates, 1)[1] == 0.0


@pytest.mark.parametrize("name", small_problems())
def test_rates_are_sums_of_products(name):
    model, _ = small_problems()[name]
    factors = model.draw_factors(np.random.default_rng(1))
    rates = _core.factor_rates(model.kind, list(model.extents), factors, 2)
    expected = model.rates(factors)
    if model.kind == "undirected":
        above = np.triu_indices(model.shape[0], 1)
        rates, expected = np.reshape(rates, model.shape)[above], expected[above]
    np.testing.assert_allclose(np.ravel(rates), np.ravel(expected), rtol=1e-13)


# What must not change a bit.


def larger_problems():
    """Return models with more rows than a block of work has, so that threads and splits matter."""
    return {
        "matrix": matrix(70, 40, 5, [(0.5, 1.0), (0.5, 1.0)]),
        "topics": matrix(70, 40, 5, [(0.5, 1.0), (0.5, None)]),
        "three modes": reference.Model("cp", (7, 11, 30), 4, [(0.7, 1.0)] * 3),
        "core, tied modes": tucker((12, 12, 20), (3, 3, 2), [(0.7, 1.0)] * 3, (0, 0, 1)),
        "directed": network("directed", 40, 4, [(0.5, 1.0), (0.5, 1.0)]),
        "undirected": network("undirected", 40, 4, [(0.5, 1.0), (0.5, 1.0)]),
    }


LARGER = larger_problems()
each_model = pytest.mark.parametrize("name", LARGER)
each_method = pytest.mark.parametrize("method", [*METHODS, "auto"])


def assert_same_state(one, other):
    assert one.iteration == other.iteration
    for a, b in zip([*one.factors(), *one.noise()], [*other.factors(), *other.noise()], strict=True):
        assert np.array_equal(a, b)


@each_method
@each_model
def test_number_of_threads_changes_no_bit(name, method):
    model = LARGER[name]
    released = some_release(model, 0.5)
    chains = [core_chain(model, released, 0.5, method) for _ in range(3)]
    for threads, chain in enumerate(chains, 1):
        chain.run(12, 3, threads)
    first, *others = chains
    kept = first.take()
    for other in others:
        assert_same_state(first, other)
        theirs = other.take()
        for key in ("kept", "log_likelihood", "total_rate", "total_count"):
            assert np.array_equal(kept[key], theirs[key])
        assert all(np.array_equal(a, b) for a, b in zip(kept["draws"], theirs["draws"], strict=True))
    assert kept["kept"].tolist() == [3, 6, 9, 12]
    assert len(kept["total_rate"]) == len(kept["total_count"]) == 12


@each_method
@each_model
def test_sums_of_parts_of_the_rows_continue_the_chain_bit_for_bit(name, method):
    model = LARGER[name]
    released = some_release(model, 0.5)
    whole, split = (core_chain(model, released, 0.5, method) for _ in range(2))
    rows = model.shape[0]
    for cuts in ([0, rows], [0, 1, rows], [0, rows // 3, rows // 3, rows - 5, rows]):
        whole.run(1, 0, 2)
        parts = [split.tally(a, b, 1) for a, b in pairwise(cuts)]
        split.advance([np.sum(part, axis=0) for part in zip(*parts, strict=True)], 1)
        assert_same_state(whole, split)


@each_method
@each_model
def test_stop_and_resume_changes_no_bit(name, method):
    model = LARGER[name]
    released = some_release(model, 0.5)
    straight, first, second = (core_chain(model, released, 0.5, method) for _ in range(3))
    straight.run(9, 0, 1)
    first.run(2, 0, 1)
    first.run(2, 0, 1)
    second.set_factors(first.factors())
    second.set_noise(first.noise())
    second.iteration = first.iteration
    second.run(5, 0, 2)
    assert_same_state(straight, second)


@each_method
@each_model
def test_values_of_hidden_cells_change_no_bit(name, method):
    plain = LARGER[name]
    hidden = np.random.default_rng(2).random(plain.shape) < 0.2
    model = type(plain)(plain.kind, plain.extents, plain.n_components, plain.priors, hidden)
    released = some_release(model, 0.5)
    other = np.where(hidden, -1000 - released, released)
    chains = [core_chain(model, values, 0.5, method) for values in (released, other)]
    for chain in chains:
        chain.run(6, 2, 1)
    assert_same_state(*chains)
    assert np.array_equal(*(chain.take()["log_likelihood"] for chain in chains))


@each_method
def test_hidden_last_row_is_as_good_as_absent(method):
    """Rows have their own streams, so the others see the same draws, up to the rounding of exposures."""
    plain = LARGER["matrix"]
    hidden = np.zeros(plain.shape, dtype=bool)
    hidden[-1] = True
    whole = matrix(70, 40, 5, [(0.5, 1.0), (0.5, 1.0)], hidden)
    small = matrix(69, 40, 5, [(0.5, 1.0), (0.5, 1.0)])
    released, factors = some_release(plain, 0.5), plain.draw_factors(np.random.default_rng(4))
    chains = [core_chain(whole, released, 0.5, method), core_chain(small, released[:-1], 0.5, method)]
    start_from(chains[0], factors)
    start_from(chains[1], [factors[0][:-1], factors[1]])
    for chain in chains:
        chain.run(2, 0, 1)
    (theta, phi), (theta_small, phi_small) = (chain.factors() for chain in chains)
    np.testing.assert_allclose(theta[:-1], theta_small, rtol=1e-9)
    np.testing.assert_allclose(phi, phi_small, rtol=1e-9)


@each_method
@pytest.mark.parametrize("name", ["directed", "undirected"])
def test_values_on_or_below_a_diagonal_change_no_bit(name, method):
    model = LARGER[name]
    released = some_release(model, 0.5)
    chains = [core_chain(model, r, 0.5, method) for r in (released, np.where(model.observed, released, 77))]
    for chain in chains:
        chain.run(6, 0, 1)
    assert_same_state(*chains)


@each_method
@each_model
def test_one_level_per_cell_equals_one_level_bit_for_bit(name, method):
    model = LARGER[name]
    released = some_release(model, 0.5)
    chains = [core_chain(model, released, alpha, method) for alpha in (0.5, np.full(model.shape, 0.5))]
    for chain in chains:
        chain.run(6, 0, 1)
    assert_same_state(*chains)


@each_method
def test_different_keys_give_different_chains(method):
    model = LARGER["matrix"]
    released = some_release(model, 0.5)
    chains = [core_chain(model, released, 0.5, method, key=key) for key in ((1, 2), (1, 3), (2, 2))]
    for chain in chains:
        chain.run(2, 0, 1)
    firsts = {float(chain.factors()[0][0, 0]) for chain in chains}
    assert len(firsts) == 3


def test_fixed_factors_stay():
    model = LARGER["matrix"]
    chain = core_chain(model, some_release(model, 0.5), 0.5, "collapsed", fixed=[False, True])
    before = [f.copy() for f in chain.factors()]
    chain.run(3, 0, 1)
    assert np.array_equal(chain.factors()[1], before[1])
    assert not np.array_equal(chain.factors()[0], before[0])


def test_kept_draws_are_emptied_when_taken_and_carry_their_likelihood_and_rate():
    model = LARGER["matrix"]
    released = some_release(model, 0.5)
    chain = core_chain(model, released, 0.5, "collapsed")
    chain.run(10, 4, 1)
    kept = chain.take()
    assert kept["kept"].tolist() == [4, 8]
    counts = released_counts(model, released, 0.5)
    for i in range(2):
        rates = _core.factor_rates("cp", [70, 40], [d[i] for d in kept["draws"]], 1)
        assert kept["log_likelihood"][i] == pytest.approx(_core.log_likelihoods(counts, rates, 1).sum(), rel=1e-12)
        assert kept["total_rate"][kept["kept"][i] - 1] == pytest.approx(rates.sum(), rel=1e-12)
    assert len(chain.take()["kept"]) == 0
    chain.run(3, 4, 1)
    assert chain.take()["kept"].tolist() == [12]


# No noise, and tiny noise.


@each_method
@each_model
def test_without_noise_every_sweep_has_the_released_counts(name, method):
    model = LARGER[name]
    released = np.abs(some_release(model, 0.5))
    chain = core_chain(model, released, 0.0, method)
    chain.run(5, 0, 1)
    assert np.all(chain.take()["total_count"] == released[model.observed].sum())
    tally = chain.tally(0, model.shape[0], 1)
    expected = model.sums(released[..., None] * np.ones(model.component_rates(chain.factors()).shape[-1]))
    if model.kind == "cp":
        assert np.array_equal(np.sum(np.reshape(tally[0], expected[0].shape), axis=1), expected[0][:, 0])


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tiny", [False, True])
def test_vanishing_noise_gives_the_posterior_without_noise(method, tiny):
    """At alpha 1e-4 a count differs from its release with a probability below 3e-4: below what a chain shows.

    The event method proposes 1 / alpha events for each that it keeps, so it has a larger alpha and fewer sweeps.
    """
    alpha, sweeps = (0.0, 10_000) if not tiny else (1e-3, 3000) if method == "event" else (1e-4, 10_000)
    model, released = matrix(1, 3, 2, [(np.array([[1.5, 0.8]]), 1), (1, 1)]), np.array([[5, 0, 1]])
    phi = np.array([[0.4, 1.5], [2.0, 0.3], [1.0, 1.0]])
    exact = reference.exact_by_quadrature(model, released, 0.0, [np.ones((1, 2)), phi], [(0, 0, 0), (0, 0, 1)], 120)
    chain = core_chain(model, released, alpha, method, key=(31, 4), fixed=[False, True])
    start_from(chain, [np.ones((1, 2)), phi])
    chain.run(200, 0, 1)
    chain.take()
    chain.run(sweeps, 2, 1)
    assert_means(chain.take()["draws"][0][:, 0, :], exact.factors[0][0], f"{method}, alpha {alpha}")


# Laws that do not depend on method, order of cells, or orientation.


@cache
def toy_series(method):
    model, released = toy()
    return total_rate_series(model, released, UNIT, method)


def total_rate_series(model, released, alpha, method, sweeps=3000):
    chain = core_chain(model, released, alpha, method, key=(13, 1))
    chain.run(1000, 0, 1)
    chain.take()
    chain.run(sweeps, 0, 1)
    return chain.take()["total_rate"]


def assert_same_mean(one, other, what):
    (a, s), (b, t) = batch_means(one, 50), batch_means(other, 50)
    z = abs(a - b) / np.hypot(s, t)
    print(f"{what}: {a:.3f} +- {s:.3f} and {b:.3f} +- {t:.3f}")
    assert z < stats.t.isf(FALSE_ALARM / 2, 98), what


def toy():
    model = matrix(12, 10, 2, [(0.8, 1.0), (0.8, 0.3)])
    return model, some_release(model, UNIT, seed=41)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS[1:])
def test_methods_agree_in_law(method):
    assert_same_mean(toy_series("collapsed"), toy_series(method), method)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
def test_order_of_rows_and_columns_and_transposition_change_nothing_in_law(method):
    _, released = toy()
    rng = np.random.default_rng(6)
    shuffled = released[rng.permutation(12)][:, rng.permutation(10)]
    turned = matrix(10, 12, 2, [(0.8, 0.3), (0.8, 1.0)])
    assert_same_mean(toy_series(method), total_rate_series(turned, shuffled.T, UNIT, method), method)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
def test_row_without_observed_cells_is_drawn_from_its_prior(method):
    hidden = np.zeros((3, 4), dtype=bool)
    hidden[1] = True
    model = matrix(3, 4, 2, [(1.3, 0.7), (1.0, 1.0)], hidden)
    chain = core_chain(model, some_release(model, 0.5), 0.5, method, key=(8, 8))
    chain.run(20_000, 1, 1)
    draws = chain.take()["draws"][0][:, 1, :]
    assert_continuous_fit(draws.ravel(), stats.gamma(1.3, scale=1 / 0.7).cdf)


# Input.


def test_cells_of_small_values_take_a_byte_each():
    values = np.random.default_rng(0).integers(-100, 100, 10_000)
    counts = _core.ReleasedCounts(values, 100, 100, np.array([0.5]))
    assert 10_000 <= counts.nbytes < 11_000
    values[17] = 10**9  # one large value does not widen all others
    assert _core.ReleasedCounts(values, 100, 100, np.array([0.5])).nbytes < 11_000


def test_large_values_are_drawn_like_small_ones():
    released = np.array([[10**6, -(10**6)], [127, -128], [128, -129]])
    model = matrix(3, 2, 1, [(1, 1), (1, 1)])
    chain = core_chain(model, released, 0.0 + 1e-3, "collapsed", fixed=[True, True])
    start_from(chain, [np.array([[1e6], [127.0], [128.0]]), np.ones((2, 1))])
    by_row = np.asarray(chain.tally(0, 3, 1)[0]).ravel()
    # At alpha 1e-3 a positive cell stays within a few of its release; the others are Poisson(alpha rate).
    assert abs(by_row[0] - (10**6 + 10**3)) < 200
    assert abs(by_row[1] - 127) <= 8
    assert abs(by_row[2] - 128) <= 8


def test_negative_release_without_noise_is_refused_by_name_and_index():
    values = np.array([1, 2, -3, 4])
    with pytest.raises(ValueError, match=r"`released`.*-3.*\(1, 0\)"):
        _core.ReleasedCounts(values, 2, 2, np.array([0.0]))
    with pytest.raises(ValueError, match=r"`released`.*-3.*\(1, 0\)"):
        _core.ReleasedCounts(values, 2, 2, np.array([0.5, 0.5, 0.0, 0.5]))
    _core.ReleasedCounts(values, 2, 2, np.array([0.0]), np.array([0, 0, 1, 0], dtype=np.uint8))


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, math.nan, math.inf])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        _core.ReleasedCounts(np.array([1, 2]), 1, 2, np.array([alpha]))


@pytest.mark.parametrize("prior", [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_priors_outside_their_range_are_refused(prior):
    counts = _core.ReleasedCounts(np.array([1, 2]), 1, 2, np.array([0.5]))
    pair = tuple(np.array([p]) for p in prior)
    good = (np.ones(1), np.ones(1))
    with pytest.raises(ValueError):
        _core.GibbsChain(counts, "cp", [1, 2], 1, [pair, good], "collapsed", (1, 2))


def test_interrupted_run_keeps_the_last_whole_sweep():
    model = LARGER["matrix"]
    released = some_release(model, 0.5)
    chain, straight = (core_chain(model, released, 0.5, "collapsed") for _ in range(2))

    class Stop(Exception):
        pass

    def progress(done, total):
        raise Stop

    with pytest.raises(Stop):
        chain.run(10**5, 10, 1, progress)
    done = chain.iteration
    assert 0 < done < 10**5
    straight.run(done, 10, 1)
    assert_same_state(chain, straight)
    assert np.array_equal(chain.take()["kept"], straight.take()["kept"])


def test_empty_table_gives_the_prior():
    model = matrix(0, 3, 2, [(1, 1), (1.5, 2.0)])
    chain = core_chain(model, np.zeros((0, 3)), 0.5, "collapsed")
    chain.run(4000, 1, 1)
    assert_continuous_fit(chain.take()["draws"][1].ravel(), stats.gamma(1.5, scale=0.5).cdf)


def test_state_survives_a_round_trip_through_json_numbers():
    """Factors are doubles without hidden parts: printed with 17 digits they continue the same chain."""
    model = LARGER["matrix"]
    released = some_release(model, 0.5)
    one, two = (core_chain(model, released, 0.5, "collapsed") for _ in range(2))
    one.run(3, 0, 1)
    two.set_factors([np.array(json.loads(json.dumps(f.tolist()))) for f in one.factors()])
    two.iteration = one.iteration
    for chain in (one, two):
        chain.run(2, 0, 1)
    assert_same_state(one, two)
