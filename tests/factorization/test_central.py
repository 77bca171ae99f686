"""The central model: whole statistics, noise of its law, and without noise the ascent that is known."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma
from tests.statistics import assert_discrete_fit

from quincunx.errors import TooLargeError
from quincunx.factorization import CentralPoissonFactorization, PoissonFactorization
from quincunx.factorization._central import MOST_PARTS, expected_statistics, responsibilities
from quincunx.privacy import Budget, DataMetric, DiscreteGaussianMechanism, gaussian_delta, noise, privatize


def made(shape=(60, 50), rank=2, seed=1):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 4.0, (shape[0], rank)) @ rng.gamma(0.5, 4.0, (rank, shape[1]))
    return rates, rng.poisson(rates)


WEIGHTS = st.sampled_from([1e-150, 1e-100, 1e-20, 1e-3, 0.1, 0.3, 1 / 3, 0.7, 1.0])


@given(
    st.integers(1, 6).flatmap(
        lambda k: st.tuples(*(st.lists(st.tuples(*[WEIGHTS] * k), min_size=1, max_size=4) for _ in range(2)))
    ),
    st.sampled_from([1, 32, 1000, MOST_PARTS]),
)
def test_parts_of_a_unit_are_not_negative_and_add_up(weights, parts):
    rows, columns = (np.array(table).T for table in weights)
    shares = np.stack(list(responsibilities(rows, columns, parts)))
    assert shares.min() >= 0
    assert (shares.sum(axis=0) == parts).all()
    exact = rows[:, :, None] * columns[:, None, :]
    assert np.abs(shares - parts * exact / exact.sum(axis=0)).max() <= 1 + 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, 1e-320])
def test_weights_without_parts_are_refused(bad):
    with pytest.raises(ValueError, match="positive and finite"):
        list(responsibilities(np.full((2, 1), bad), np.full((2, 3), min(bad, 1e-10)), 32))


@pytest.mark.parametrize("prior", [1e-100, 1e-30, 0.1, 1e30, 1e100])
@pytest.mark.parametrize("name", ["prior_shape", "prior_rate"])
def test_a_unit_moves_every_statistic_of_a_fit_by_no_more_than_its_parts(name, prior, monkeypatch):
    # The tables that a fit releases, with those of a neighbor by the weights that the same releases lead to.
    counts, seen = np.random.default_rng(1).poisson(2.0, (4, 3)), []
    counts[1], counts[:, 2] = 0, 0

    def recorded(table, weights, axis, parts):
        for cell in np.ndindex(table.shape):
            more = table.copy()
            more[cell] += 1
            moved = expected_statistics(more, weights, axis, parts) - expected_statistics(table, weights, axis, parts)
            seen.append((moved.min() >= 0, moved.sum() == parts))
        return expected_statistics(table, weights, axis, parts)

    monkeypatch.setattr("quincunx.factorization._central.expected_statistics", recorded)
    model = CentralPoissonFactorization(3, random_state=1, epsilon=50.0, n_iter=4, **{name: prior}).fit(counts)
    assert np.isfinite(model.rates_).all()
    assert len(seen) == 8 * 12
    assert np.all(seen)


@pytest.mark.parametrize("columns", [7, 2**19])
def test_statistics_are_sums_by_rows_and_by_columns(columns):
    # The wider table is worked on in blocks of two rows.
    rng = np.random.default_rng(0)
    counts = rng.poisson(2.0, (5, columns))
    weights = [rng.random((2, 5)), rng.random((2, columns))]
    shares = np.stack(list(responsibilities(*weights, 100)))
    for axis, other in ((0, 2), (1, 1)):
        assert (expected_statistics(counts, weights, axis, 100) == (shares * counts).sum(axis=other)).all()


def ascent(counts, start, rounds, shape, rate):
    """Coordinate ascent without noise, written down in one line for each factor."""
    theta, phi = start
    means, logs = [theta, phi], [np.log(theta), np.log(phi)]
    for _ in range(rounds):
        for axis in (0, 1):
            share = np.exp(logs[0][:, :, None] + logs[1][:, None, :])
            sums = (counts * share / share.sum(axis=0)).sum(axis=2 - axis)
            b = rate + means[1 - axis].sum(axis=1, keepdims=True)
            means[axis], logs[axis] = (shape + sums) / b, digamma(shape + sums) - np.log(b)
    return means


def test_without_noise_it_is_coordinate_ascent():
    _, counts = made()
    model = CentralPoissonFactorization(3, epsilon=1e12, n_iter=15, prior_shape=0.3, prior_rate=0.2, random_state=5)
    assert model.noise_sd < 1e-5
    model.fit(counts)
    source = np.random.default_rng(5)
    start = [source.exponential(size=(3, length)) for length in counts.shape]
    embedding, components = ascent(counts, start, 15, 0.3, 0.2)
    assert np.abs(model.embedding_ - embedding.T).max() < 0.01
    assert np.abs(model.components_ - components).max() < 0.01
    assert np.abs(model.rates_ - embedding.T @ components).max() < 0.01


def test_at_a_large_epsilon_it_comes_to_the_fit_of_true_counts():
    rates, counts = made()
    model = CentralPoissonFactorization(2, epsilon=1e12, n_iter=400, random_state=1).fit(counts)
    known = PoissonFactorization(2, inference="vi", noise="none", n_chains=3, max_iter=5000, random_state=1).fit(counts)
    # Both end at optima that are local: of four starts the errors were between .480 and .508.
    assert np.abs(model.rates_ - rates).mean() < 1.1 * np.abs(known.rates_ - rates).mean()


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_noise_of_the_statistics_has_its_law(epsilon):
    # Of no counts and one component the first table is noise alone, of which the part below 0 is cut off. The first
    # factor is known but for its rate, which the start fixes.
    rows = 200_000
    model = CentralPoissonFactorization(1, epsilon=epsilon, n_iter=1, prior_shape=2.0, random_state=3, insecure_seed=7)
    parts, variance, _ = model._noise()
    start = np.random.default_rng(3)
    start.exponential(size=(1, rows))
    rate = 1.0 + start.exponential(size=(1, 2)).sum()
    found = (model.fit(np.zeros((rows, 2), dtype=int)).embedding_[:, 0] * rate - 2.0) * parts
    drawn = np.rint(found).astype(int)
    assert np.abs(found - drawn).max() < 1e-3
    # Bins of a tenth of a deviation, the first of which has all up to 0.
    law = noise.DiscreteGaussianNoise(float(variance))
    width = max(1, int(model.noise_sd * parts / 10))
    edges = np.arange(0, 41 * width, width)
    points = np.arange(1, edges[-1] + 1)
    mass = np.add.reduceat(np.exp(law.log_likelihood(points, 0)), edges[:-1])
    zero = 0.5 + 0.5 * float(np.exp(law.log_likelihood(0, 0)))
    seen = np.bincount(np.minimum(-(-drawn // width), 41), minlength=42)
    assert_discrete_fit(seen, np.array([zero, *mass, 1 - zero - mass.sum()]))


def test_the_level_is_the_largest_that_is_private_and_noise_has_it():
    for epsilon, delta, n, n_iter in [(1.0, 1e-6, 1, 10), (0.1, 1e-9, 4, 3), (20.0, 1e-3, 1, 50), (0.02, 1e-6, 1, 20)]:
        model = CentralPoissonFactorization(5, epsilon=epsilon, delta=delta, n=n, n_iter=n_iter)
        assert (model.guarantee.epsilon, model.guarantee.delta) == (epsilon, delta)
        assert model.guarantee.relation == DataMetric("l1", n)
        assert model.guarantee.numerics == "exact"
        # The levels of 2 n_iter tables, each moved by n; a billionth is what whole numbers of 2^-20 leave.
        assert model.rho == pytest.approx(2 * n_iter * n**2 / (2 * model.noise_sd**2), rel=1e-12)
        assert model.guarantee.zcdp == model.rho
        more = DiscreteGaussianMechanism(variance=1000.0, delta=delta).guarantee
        assert more.delta > 0
        assert model.guarantee.epsilon_at(delta) <= epsilon < 1.001 * model.guarantee.epsilon_at(delta)
        # Normal noise with the same level, which one component comes near to, has a loss of that size: not below.
        assert gaussian_delta(epsilon, 1.0, float(np.sqrt(2 * model.rho))) <= delta


def test_a_guarantee_is_spent_before_and_stays_with_the_fit():
    _, counts = made((10, 8))
    model = CentralPoissonFactorization(2, epsilon=1.0, random_state=1)
    budget = Budget(1.5, 1e-5, relation=DataMetric("l1", 1))
    budget.spend(model)
    assert budget.spent().epsilon == 1.0
    model.fit(counts)
    assert model.guarantee_ == model.guarantee
    model.epsilon = 5.0
    assert (model.guarantee_.epsilon, model.guarantee.epsilon) == (1.0, 5.0)
    seeded = CentralPoissonFactorization(2, insecure_seed=1).fit(counts)
    assert seeded.guarantee_.numerics == "insecure"


def test_noise_is_new_in_each_fit_and_step_unless_it_is_seeded():
    _, counts = made((10, 8))
    same = {"random_state": 1}
    one, two = (CentralPoissonFactorization(2, **same).fit(counts).rates_ for _ in range(2))
    assert (one != two).all()
    one, two = (CentralPoissonFactorization(2, insecure_seed=4, **same).fit(counts).rates_ for _ in range(2))
    assert (one == two).all()
    assert (CentralPoissonFactorization(2, insecure_seed=5, **same).fit(counts).rates_ != one).all()


def test_counts_of_any_kind_are_read_and_progress_is_told():
    _, counts = made((10, 8))
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    told = []
    expected = CentralPoissonFactorization(2, random_state=1, insecure_seed=1).fit(counts)
    for table in (counts.tolist(), counts.astype(float), pandas.DataFrame(counts), sparse.csr_array(counts)):
        model = CentralPoissonFactorization(
            2, random_state=1, insecure_seed=1, n_iter=10, progress=lambda done, total: told.append((done, total))
        )
        assert (model.fit(table).rates_ == expected.rates_).all()
    assert told[-20:] == [(i, 20) for i in range(1, 21)]
    assert expected.get_params()["n_iter"] == 10
    many = [
        CentralPoissonFactorization(1, random_state=1, insecure_seed=1, n_iter=number).fit(counts)
        for number in (100, np.int8(100))
    ]
    assert (many[0].rates_ == many[1].rates_).all()
    assert expected.n_features_in_ == 8


@pytest.mark.parametrize(
    ("parameters", "counts", "words"),
    [
        ({}, [[1, -1]], "`counts` must"),
        ({}, [[0.5]], "`counts` must"),
        ({}, [1, 2], r"`counts` must have shape \(n_rows, n_features\), got \(2,\)"),
        ({}, np.zeros((0, 3), dtype=int), "`counts` must have shape"),
        ({}, [[2**40, 1]], r"a total of at most 2\*\*40"),
        ({}, [[2**62] * 4], r"a total of at most 2\*\*40"),
        ({"n_components": 0}, [[1]], "`n_components`"),
        ({"epsilon": 0.0}, [[1]], "`epsilon`"),
        ({"epsilon": 1e-5}, [[1]], "`epsilon` must need noise of a variance of at most 1e10"),
        ({"delta": 0.0}, [[1]], "`delta`"),
        ({"delta": 1.0}, [[1]], "`delta`"),
        ({"n": 0}, [[1]], "`n`"),
        ({"n_iter": 0}, [[1]], "`n_iter`"),
        ({"prior_shape": 0.0}, [[1]], "`prior_shape`"),
        ({"prior_rate": -1.0}, [[1]], "`prior_rate`"),
        ({"prior_shape": 5e-309}, [[1]], r"`prior_shape` must be in \[1e-100, 1e100\], got 5e-309"),
        ({"prior_rate": 1e308}, [[1]], r"`prior_rate` must be in \[1e-100, 1e100\], got 1e\+308"),
        ({"random_state": -1}, [[1]], "`random_state`"),
        ({"insecure_seed": -1}, [[1]], "`insecure_seed`"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_noise(parameters, counts, words, monkeypatch):
    monkeypatch.setattr(CentralPoissonFactorization, "_released", None)
    with pytest.raises(ValueError, match=words):
        CentralPoissonFactorization(**parameters).fit(counts)


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(TooLargeError, match="the factors"):
        CentralPoissonFactorization(2**50).fit([[1, 2]])


@pytest.mark.parametrize("epsilon", [np.float32(0.5), Fraction(1, 2), Decimal("0.1"), Fraction(1, 10)])
def test_levels_of_any_kind_are_those_in_doubles(epsilon):
    model = CentralPoissonFactorization(2, epsilon=epsilon, delta=np.float32(1e-6))
    assert model.guarantee.exact_epsilon == Fraction(float(epsilon))
    assert model.guarantee.delta == float(np.float32(1e-6))


def test_a_release_is_refused():
    with pytest.raises(TypeError, match="`counts` must be counts without noise, got a Release"):
        CentralPoissonFactorization().fit(privatize([[1, 2]], epsilon=1.0))
