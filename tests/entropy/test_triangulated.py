"""Randomly triangulated grids: exact expectations, tables 8.1 and 8.2, quenched means."""

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from quincunx import _check, counting, lattices
from quincunx.entropy import (
    _tables,
    _triangulated,
    annealed_entropy,
    annealed_entropy_limit,
    entropy_estimate,
    expected_count,
    expected_count_polynomial,
    quenched_entropy,
)
from quincunx.entropy._numbers import positive_rational
from quincunx.errors import TooLargeError

POLYNOMIALS = {
    (1, 1): [6],
    (1, 2): [13, 2],
    (1, 3): [28, 5],
    (2, 2): [42, 8, 2],
    (2, 3): [126, 34, 10, 2],
    (3, 3): [524, 200, 60, 13, 5],
    (4, 4): [13322, 8222, 4074, 1590, 591, 214, 67, 16, 2],
}


@pytest.mark.parametrize(("size", "coefficients"), POLYNOMIALS.items())
def test_expected_counts_are_the_known_polynomials_of_the_product_of_both_chances(size, coefficients):
    assert expected_count_polynomial(*size) == coefficients
    assert expected_count_polynomial(*size[::-1]) == coefficients


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9), (2, 2), (2, 3), (2, 4), (3, 3)]
)
def test_polynomials_agree_with_all_triangulations(size):
    m, n = size
    totals = {}
    for bits in itertools.product([0, 1], repeat=m * n):
        grid = lattices.triangulated_grid(m, n, diagonals=np.reshape(bits, size))
        totals[sum(bits)] = totals.get(sum(bits), 0) + counting.count_independent_sets(grid)
    p = Fraction(2, 7)
    mean = sum(total * p**k * (1 - p) ** (m * n - k) for k, total in totals.items())
    u = p * (1 - p)
    assert mean == sum(c * u**k for k, c in enumerate(expected_count_polynomial(m, n))) == expected_count(m, n, p)


@pytest.mark.parametrize("size", [(2, 5), (3, 7), (6, 4)])
def test_a_certain_diagonal_gives_the_triangular_lattice(size):
    m, n = size
    count = counting.count_independent_sets(lattices.triangular(m + 1, n + 1))
    assert expected_count(m, n, 0) == expected_count(m, n, 1) == count == expected_count_polynomial(m, n)[0]
    assert annealed_entropy(m, n, 0) == pytest.approx(math.log(count) / (m * n), rel=1e-14)


def test_degree_symmetry_and_a_float_as_the_fraction_it_is():
    polynomial = expected_count_polynomial(5, 3)
    assert len(polynomial) - 1 <= 7
    assert min(polynomial) > 0
    assert expected_count(5, 3, 0.3) == expected_count(3, 5, Fraction(0.3)) == expected_count(5, 3, 1 - Fraction(0.3))


def dense_limit():
    """Return the limit for m = 2, p = 0.3 from the printed kind of matrix, by an independent program."""
    with mpmath.workdps(40):
        p = mpmath.mpf(3) / 10
    words = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)]

    def entry(v, w):
        if any(a & b for a, b in zip(v, w, strict=True)):
            return mpmath.mpf(0)
        return p ** sum(v[i + 1] & w[i] for i in range(2)) * (1 - p) ** sum(v[i] & w[i + 1] for i in range(2))

    with mpmath.workdps(40):
        values = mpmath.eig(mpmath.matrix([[entry(v, w) for w in words] for v in words]), left=False, right=False)
        return mpmath.nstr(mpmath.log(max(abs(value) for value in values)) / 2, 30)


def test_the_sixty_six_printed_numbers_are_right_but_five_last_digits():
    hundreds = _tables.wrong_entries(_tables.HUNDREDS, limit=False)
    assert {place: f"{value:.14f}" for place, value in hundreds.items()} == {
        (4, 0.5): "0.45941235502239",
        (8, 0.9): "0.39685644356715",
    }
    # The same from the exact expectation.
    with localcontext(Context(prec=40)):
        exact = expected_count(4, 100, Fraction(1, 2))
        entropy = (Decimal(exact.numerator).ln() - Decimal(exact.denominator).ln()) / 400
    assert abs(entropy - hundreds[4, 0.5]) < Decimal("1e-35")
    wrong = _tables.wrong_entries(_tables.LIMITS, limit=True)
    assert list(wrong) == [(2, 0.3), (7, 0.5), (11, 0.9)]
    assert abs(wrong[2, 0.3] - Decimal(str(dense_limit()))) < Decimal("1e-25")
    assert f"{wrong[11, 0.9]:.14f}" == "0.37637657279851"
    assert _tables.tables().count("printed") == 5


def ring_matrix(words, chances):
    """Return the expected transfer matrix between columns on a ring, from the chance of each cell's first diagonal."""
    size = len(chances)
    allowed = [w for w in words if not any(w[i] & w[(i + 1) % size] for i in range(size))]

    def entry(v, w):
        if any(a & b for a, b in zip(v, w, strict=True)):
            return Fraction(0)
        value = Fraction(1)
        for i, p in enumerate(chances):
            value *= p if v[(i + 1) % size] & w[i] else 1
            value *= 1 - p if v[i] & w[(i + 1) % size] else 1
        return value

    return np.array([[entry(v, w) for w in allowed] for v in allowed], dtype=object)


def power_trace(matrix, times):
    product = np.identity(len(matrix), dtype=object)
    for _ in range(times):
        product = product.dot(matrix)
    return np.trace(product)


@pytest.mark.parametrize(("around", "rows"), [(3, 2), (4, 2), (5, 4), (4, 6), (2, 4)])
def test_a_torus_is_the_same_along_both_axes_with_one_chance_and_with_both_in_turns(around, rows):
    p = Fraction(2, 7)
    wide, high = (list(itertools.product([0, 1], repeat=n)) for n in (around, rows))
    matrix = ring_matrix(wide, [p] * around)
    assert power_trace(matrix, rows) == power_trace(ring_matrix(high, [p] * rows), around)
    # The squared singular values: the transposed matrix has the other chance.
    turns = power_trace(matrix.dot(matrix.T), rows // 2)
    assert turns == power_trace(ring_matrix(high, [p, 1 - p] * (rows // 2)), around)
    assert turns >= power_trace(matrix, rows)


@pytest.mark.parametrize("p", [0.0, 0.03, 0.3, 0.5, 0.8, 1.0])
def test_double_limits_lie_between_exact_counts_of_finite_grids_and_agree_with_their_quotients(p):
    narrow, wide = (annealed_entropy_limit(None, p, width=width) for width in (8, 16))
    assert narrow.lower < wide.lower < wide.upper < narrow.upper
    assert wide.upper - wide.lower < 1e-6
    assert annealed_entropy_limit(None, 1 - p, width=8) == pytest.approx(narrow, abs=1e-14)
    logs = {}
    for n in range(5, 11):
        for m in (n - 1, n):
            count = expected_count(m, n, p)
            logs[m, n] = log = math.log(count.numerator) - math.log(count.denominator)
            # Taking edges away at the seams, or putting an empty row and column there.
            assert (m + 1) * (n + 1) * wide.lower < log < (m + 2) * (n + 2) * wide.upper
    # What a corner adds: its distance falls seven to ten times with every two cells.
    corners = [logs[n, n] - 2 * logs[n - 1, n] + logs[n - 1, n - 1] - wide.lower for n in (6, 8, 10)]
    assert corners[0] > 6 * corners[1] > 36 * corners[2] > 0
    assert corners[2] < 2e-5


def test_double_limits_hold_what_other_methods_find():
    hexagons = annealed_entropy_limit(None, 1.0, width=20)
    assert hexagons.lower < math.log(1.395485972479302735229500663566888) < hexagons.upper
    both = annealed_entropy_limit(None, 0.5)
    assert both.upper - both.lower < 2e-9
    assert both.lower < entropy_estimate("square", next_neighbor_weight=Fraction(1, 2)).value < both.upper
    # The ring with one chance alone is no bound: the oblique ring of hard hexagons.
    dense = ring_matrix(list(itertools.product([0, 1], repeat=6)), [0] * 6).astype(float)
    assert math.log(max(abs(np.linalg.eigvals(dense)))) / 6 < hexagons.lower


@pytest.mark.parametrize("chances", [[0.3] * 5, [0.3, 0.7] * 3, [1.0, 0.0], [0.9, 0.1, 0.9, 0.1]])
def test_roots_of_rings_are_those_of_dense_matrices(chances):
    words = list(itertools.product([0, 1], repeat=len(chances)))
    dense = ring_matrix(words, chances).astype(float)
    low, high = _triangulated._log_root(chances, [1 - p for p in chances], ring=True)
    root = math.log(max(abs(np.linalg.eigvals(dense))))
    assert low <= high < low + 1e-13
    assert root == pytest.approx(low, abs=1e-13)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_limits_are_enclosed_and_long_grids_come_near(p):
    for m in (1, 4, 9):
        lower, upper = annealed_entropy_limit(m, p)
        assert lower < upper < lower + 1e-13
        long = annealed_entropy(m, 1000, p)
        longer = annealed_entropy(m, 2000, p)
        assert lower - 1e-12 < 2 * longer - long < upper + 1e-11


def test_figure_8_4_has_the_slopes_of_the_study_and_is_not_a_line():
    """Slope, intercept and R^2 of the annealed entropy on H(p) in nats; a finer grid of p lowers R^2."""
    chances = np.arange(1, 10) / 10
    shannon = -chances * np.log(chances) - (1 - chances) * np.log1p(-chances)
    for m, expected in ((1, (0.030421, 0.771170, 0.99828)), (11, (0.013888, 0.376791, 0.99706))):
        line = stats.linregress(shannon, [annealed_entropy(m, 100, p) for p in chances.tolist()])
        assert (round(line.slope, 6), round(line.intercept, 6), round(line.rvalue**2, 5)) == expected


def test_exact_quenched_means_are_those_of_the_study():
    cases = [(3, 3, 0.5, 6.358015596971217), (3, 3, 0.3, 6.342101043851430), (2, 2, 0.5, 3.786055049188944)]
    for m, n, p, value in cases:
        found = quenched_entropy(m, n, p)
        assert found.exact
        assert found.standard_error == 0
        assert found.mean * m * n == pytest.approx(value, abs=1e-13)
        assert found.mean < annealed_entropy(m, n, p)


@pytest.mark.statistical
@pytest.mark.parametrize(("m", "n", "p"), [(3, 3, 0.5), (1, 12, 0.3), (2, 7, 0.8)])
def test_sampled_quenched_means_agree_with_exact_ones(m, n, p):
    # False-alarm rate 1e-6 each: 4.9 standard errors, and a little for their own error.
    exact = quenched_entropy(m, n, p)
    drawn = quenched_entropy(m, n, p, n_draws=3000, rng=5, exact=False)
    assert not drawn.exact
    assert abs(drawn.mean - exact.mean) < 5.1 * drawn.standard_error
    assert drawn.standard_error < drawn.raw_standard_error


@pytest.mark.statistical
@pytest.mark.parametrize("n_draws", [16, 64, 256, pytest.param(1024, marks=pytest.mark.slow)])
@pytest.mark.parametrize("p", [0.005, 0.02, 0.1, 0.3, 0.5, 0.97])
def test_standard_errors_cover_the_quenched_mean_whether_diagonals_are_rare_or_not(p, n_draws):
    # At most 2 in 100 are beyond three of them. False-alarm rate 1e-6 for the table.
    exact = quenched_entropy(3, 3, p).mean
    draws = [quenched_entropy(3, 3, p, n_draws=n_draws, rng=seed, exact=False) for seed in range(200)]
    beyond = sum(abs(found.mean - exact) > 3 * found.standard_error for found in draws)
    assert beyond <= stats.binom.isf(1e-6 / 24, len(draws), 0.02)


def test_where_draws_are_alike_the_standard_error_is_a_bound_that_holds_in_all_grids():
    first, second = (quenched_entropy(10, 10, 1e-6, n_draws=4096, rng=seed) for seed in (1, 2))
    assert abs(first.mean - second.mean) < first.standard_error == first.raw_standard_error < 5e-7
    cells = 12
    bits = (np.arange(2**cells)[:, None] >> np.arange(cells) & 1).astype(bool)
    logs = _triangulated._log_counts(bits.reshape(-1, 4, 3))
    assert max(abs(logs - logs[np.arange(2**cells) ^ 1 << k]).max() for k in range(cells)) < math.log(4 / 3)
    for p in (0, 1e-6, 0.02, 0.3, 0.5, 0.97, 1):
        weights = np.where(bits, p, 1 - p).prod(axis=1)
        variance = weights @ (logs - weights @ logs) ** 2 / cells**2
        bound = quenched_entropy(4, 3, p, n_draws=16, rng=0, exact=False).standard_error
        assert variance / 16 <= bound**2 <= p * (1 - p) / cells / 16 * math.log(4 / 3) ** 2 * (1 + 1e-12)


def test_draws_repeat_with_their_seed():
    assert quenched_entropy(4, 9, rng=3, n_draws=64) == quenched_entropy(4, 9, rng=3, n_draws=64)


def test_bad_arguments_are_named():
    for function in (expected_count, annealed_entropy, quenched_entropy):
        with pytest.raises(ValueError, match="`m`"):
            function(0, 2)
        with pytest.raises(ValueError, match="`p`"):
            function(2, 2, 1.5)
        with pytest.raises(ValueError, match="`p`"):
            function(2, 2, float("nan"))
        with pytest.raises(TypeError, match="`n`"):
            function(2, 2.5)
    for p in (Decimal("1e-99999999"), Decimal(1) + Decimal("1e-20")):
        with pytest.raises(ValueError, match="`p`"):
            expected_count(2, 2, p)
    with pytest.raises(ValueError, match="`m`"):
        annealed_entropy_limit(-1)
    for width in (2, 7, 30):
        with pytest.raises(ValueError, match="`width`"):
            annealed_entropy_limit(None, width=width)
    with pytest.raises(TypeError, match="`width`"):
        annealed_entropy_limit(2, width="wide")
    with pytest.raises(ValueError, match="n_draws"):
        quenched_entropy(5, 5, n_draws=3)
    with pytest.raises(ValueError, match="exact"):
        quenched_entropy(5, 5, exact=True)
    with pytest.raises(TypeError, match="rng"):
        quenched_entropy(2, 2, rng="seed")
    for function in (lambda: expected_count(200, 200), lambda: annealed_entropy_limit(33)):
        with pytest.raises(TooLargeError, match=r"a column of \d+ cells needs .*\d+ bytes, the limit is"):
            function()


def test_draws_that_are_too_many_for_the_memory_are_refused_before_the_first(monkeypatch):
    monkeypatch.setattr(_check, "available_memory", lambda: 2**26)
    with pytest.raises(TooLargeError, match="a sample of 200000 triangulations of 2 x 9 cells needs 1601"):
        quenched_entropy(2, 9, n_draws=200_000)
    assert quenched_entropy(2, 9, n_draws=64, rng=1).n_draws == 64


def test_integers_of_numpy_are_integers():
    assert expected_count(8, 8, np.int64(1)) == expected_count(8, 8, 1)
    found = positive_rational(np.int64(3), "activity")
    assert found == 3
    assert type(found.numerator) is int
