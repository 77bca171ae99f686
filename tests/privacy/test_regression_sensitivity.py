"""Sensitivities of regression statistics: known values, and no pair of records beyond them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx.privacy import sensitivity


def svec(matrix):
    rows, columns = np.triu_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2))


def statistics(x, y, cross, square):
    return np.concatenate([svec(np.outer(x, x)), math.sqrt(cross) * y * x, [math.sqrt(square) * y * y]])


def test_the_published_linear_formula_is_too_large():
    published = lambda y: math.sqrt(1.5 * y**4 + 2 * y**2 + 2)  # noqa: E731
    assert published(1) == pytest.approx(math.sqrt(5.5))
    assert sensitivity.linear_regression(1, 1) == pytest.approx(math.sqrt(4.5))
    assert published(2) == pytest.approx(math.sqrt(34))
    assert sensitivity.linear_regression(1, 2) == pytest.approx(math.sqrt(22))


@given(st.floats(0.3, 3), st.floats(0.3, 3), st.floats(0.1, 5), st.floats(0.1, 5), st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_no_pair_of_records_in_three_dimensions_exceeds_the_bound(radius, response, cross, square, seed):
    rng = np.random.default_rng(seed)
    bound = sensitivity.linear_regression(radius, response, ratios=(cross, square))
    logistic = sensitivity.logistic_regression(radius, ratio=cross)
    for _ in range(50):
        x = rng.normal(size=(2, 3))
        x *= radius * rng.choice([1, rng.random()], size=(2, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
        y = response * rng.choice([1, -1, rng.random()], size=2)
        moved = statistics(x[0], y[0], cross, square) - statistics(x[1], y[1], cross, square)
        assert np.linalg.norm(moved) <= bound
        signs = rng.choice([-1, 1], size=2)
        step = [np.concatenate([s * v, math.sqrt(cross) * svec(np.outer(v, v))]) for s, v in zip(signs, x, strict=True)]
        assert np.linalg.norm(step[0] - step[1]) <= logistic


@given(st.floats(0.3, 3), st.floats(0.3, 3), st.floats(0.01, 5), st.floats(0.01, 5), st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_pairs_of_records_on_a_line_come_close_and_never_exceed(radius, response, cross, square, seed):
    rng = np.random.default_rng(seed)
    bound = sensitivity.linear_regression(radius, response, ratios=(cross, square), dimension=1)
    assert bound <= sensitivity.linear_regression(radius, response, ratios=(cross, square)) * (1 + 1e-15)
    # each of the four numbers at its bound, at zero, or anywhere
    anywhere = rng.random((4, 200_000))
    x, u, y, v = np.where(rng.random((4, 200_000)) < 0.6, np.round(anywhere), anywhere)
    x, u, y, v = radius * x, -radius * u, response * y, response * v
    moved = np.hypot.reduce([x**2 - u**2, cross**0.5 * (y * x - v * u), square**0.5 * (y**2 - v**2)])
    assert 0.99 * bound < moved.max() <= bound
    logistic = sensitivity.logistic_regression(radius, ratio=cross, dimension=1)
    assert 0.99 * logistic < np.hypot(x - u, cross**0.5 * (x**2 - u**2)).max() <= logistic


def test_records_of_two_or_more_dimensions_have_one_sensitivity():
    for dimension in (2, 7, None):
        assert sensitivity.linear_regression(1, 2, dimension=dimension) == sensitivity.linear_regression(1, 2)
        assert sensitivity.logistic_regression(2, dimension=dimension) == sensitivity.logistic_regression(2)


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="`dimension` must be at least 1, got 0"):
        sensitivity.linear_regression(1, 1, dimension=0)
    with pytest.raises(TypeError, match="`dimension`"):
        sensitivity.logistic_regression(1, dimension=1.5)
    for bad in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="`radius`"):
            sensitivity.linear_regression(bad, 1)
        with pytest.raises(ValueError, match="`response`"):
            sensitivity.linear_regression(1, bad)
        with pytest.raises(ValueError, match="`ratios`"):
            sensitivity.linear_regression(1, 1, ratios=(1, bad))
        with pytest.raises(ValueError, match="`ratio`"):
            sensitivity.logistic_regression(1, ratio=bad)
    with pytest.raises(TypeError, match="`ratios`"):
        sensitivity.linear_regression(1, 1, ratios=3)
