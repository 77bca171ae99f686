"""A user's own family on a grid: its account by formulas, its law by quadrature and draws, what it refuses."""

import math
import pickle
from statistics import assert_discrete_fit

import mpmath
import numpy as np
import pytest
from scipy import stats

from quincunx.posterior import BetaBernoulli, ExponentialGamma, GridModel, QueryAnswerer, _grid
from quincunx.privacy import AddRemove, ReplaceOne


def bernoulli(p, x):
    return np.where(x == 1, np.log(p), np.log1p(-p))


def normal(mean, x):
    return -((x - mean) ** 2) / 2


MEANS, POINTS = np.linspace(-1, 2, 31), np.linspace(-3, 3, 61)
NORMAL = GridModel(normal, MEANS, POINTS)


@pytest.mark.parametrize("trim", [0.05, 0.2, 0.4])
def test_bits_have_the_range_of_the_trimmed_beta_model(trim):
    model, conjugate = GridModel(bernoulli, np.linspace(trim, 1 - trim, 21), [0, 1]), BetaBernoulli(1, 1, trim=trim)
    for relation in (ReplaceOne(), AddRemove()):
        expected = conjugate.guarantee(relation=relation).epsilon
        assert model.guarantee(relation=relation).epsilon == pytest.approx(expected, rel=1e-8)
    assert model.guarantee().zcdp == pytest.approx(model.guarantee().epsilon ** 2 / 8)


def test_epsilon_is_the_range_of_differences_by_formula():
    # Normal means: (t - t') (x - x') at the ends. Exponential rates: the same. Student's t: no formula, all pairs.
    assert NORMAL.guarantee().epsilon == pytest.approx(3 * 6, rel=1e-8)
    rates = GridModel(lambda t, x: np.log(t) - t * x, np.geomspace(0.5, 3, 40), np.linspace(0, 1, 30))
    assert rates.guarantee().epsilon == pytest.approx(2.5, rel=1e-8)
    conjugate = ExponentialGamma(1, 2, bounds=(0.5, 3), data_bound=1)
    assert rates.guarantee().epsilon == pytest.approx(conjugate.guarantee().epsilon, rel=1e-8)
    assert rates.guarantee(relation=AddRemove()).epsilon == pytest.approx(
        conjugate.guarantee(relation=AddRemove()).epsilon, rel=1e-6
    )
    degrees, points = np.linspace(1, 9, 7), np.linspace(-5, 5, 11)
    for grid, data in ((degrees, points), (points + 6, degrees)):  # more records than parameters, and fewer
        table = np.array([stats.t.logpdf(data, df) for df in grid])
        pairs = [table[:, i] - table[:, j] for i in range(len(data)) for j in range(len(data))]
        model = GridModel(lambda df, x: stats.t.logpdf(x, df), grid, data)
        assert model.guarantee().epsilon == pytest.approx(max(np.ptp(pair) for pair in pairs), rel=1e-8)
        added = np.ptp(table, axis=0).max()
        assert model.guarantee(relation=AddRemove()).epsilon == pytest.approx(added, rel=1e-8)


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemove()])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 17.0])
def test_a_calibrated_model_spends_what_is_asked_and_no_more(epsilon, relation):
    model = NORMAL.calibrate(epsilon, relation=relation)
    spent = model.guarantee(relation=relation)
    assert spent.exact_epsilon <= epsilon
    assert model.temper <= 1
    if model.temper < 1:
        assert spent.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert model.calibrate(epsilon, relation=relation) == model
    assert NORMAL.calibrate(100.0) == NORMAL != NORMAL.calibrate(1.0)
    sample = model.posterior([0.5, 1.0]).sample(3, relation=relation)
    assert sample.guarantee == 3 * spent
    assert QueryAnswerer(sample).guarantee == sample.guarantee


@pytest.mark.parametrize("temper", [1.0, 0.07])
def test_the_law_is_that_of_the_log_likelihoods(temper):
    # In 30 digits, with a prior; data are among the records, so that only the rounding by 2^-30 differs.
    prior, data = -np.abs(MEANS) * 2, np.array([0.3, -1.2, 2.5, 2.5, -3.0])
    found = GridModel(normal, MEANS, POINTS, log_prior=prior, temper=temper).posterior(data)
    with mpmath.workdps(30):
        weights = [
            mpmath.exp(p - temper * sum((mpmath.mpf(x) - t) ** 2 for x in data.tolist()) / 2)
            for t, p in zip(MEANS.tolist(), prior.tolist(), strict=True)
        ]
        shares = np.array([float(w / sum(weights)) for w in weights])
    np.testing.assert_allclose(found.probabilities, shares, rtol=1e-6)
    assert found.mean() == pytest.approx(shares @ MEANS, rel=1e-6)
    assert found.variance() == pytest.approx(shares @ MEANS**2 - (shares @ MEANS) ** 2, rel=1e-6)


def test_a_fine_grid_has_the_moments_of_the_continuous_posterior():
    ends = np.linspace(0.1, 0.9, 2001)
    model = GridModel(bernoulli, (ends[1:] + ends[:-1]) / 2, [0, 1])
    bits = [1] * 7 + [0] * 3
    found, conjugate = model.posterior(bits), BetaBernoulli(1, 1, trim=0.1).posterior(bits)
    assert found.mean() == pytest.approx(conjugate.mean(), rel=1e-4)
    assert found.variance() == pytest.approx(conjugate.variance(), rel=1e-3)


@pytest.mark.parametrize("piece", [_grid.PIECE, 700])
@pytest.mark.parametrize("private", [True, False])
def test_draws_have_the_law_of_the_fractions(private, piece, monkeypatch):
    # Chi-square with a false-alarm rate of 1e-6; drawn in one piece, and in pieces of 100.
    monkeypatch.setattr(_grid, "PIECE", piece)
    found = GridModel(normal, np.linspace(-1, 1, 7), POINTS, temper=0.3).posterior([0.4, -0.1, 0.2])
    how = {"insecure_seed": 5} if private else {"private": False, "rng": 5}
    drawn = found.sample(20_000, **how).values
    places = np.searchsorted(found.model.parameters, drawn)
    assert_discrete_fit(np.bincount(places, minlength=7), found.probabilities)


def test_parameters_may_be_vectors_and_records_numbers_of_a_list():
    # Pairs (x, y) in a list, and a line y = a + b x with noise.
    pairs = [(x, y) for x in (-1, 0, 1) for y in (-2, -1, 0, 1, 2)]
    x, y = np.array(pairs).T
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9)), axis=-1).reshape(-1, 2)

    def line(t, number):
        i = number.astype(int)
        return -((y[i] - t[0] - t[1] * x[i]) ** 2) / 2

    model = GridModel(line, grid, range(len(pairs)))
    data = [pairs.index((i, i)) for i in (-1, 0, 1)] * 40
    found = model.posterior(data)
    assert found.mean() == pytest.approx([0, 1], abs=0.1)
    assert found.sample(2).values.shape == (2, 2)
    assert found.variance().shape == (2,)
    spread = [
        np.ptp([(line(t, np.array([i])) - line(t, np.array([j])))[0] for t in grid])
        for i in range(15)
        for j in range(i)
    ]
    assert model.guarantee().epsilon == pytest.approx(max(spread), rel=1e-8)


def test_data_are_moved_to_the_nearest_record_each_by_itself():
    model = GridModel(bernoulli, [0.2, 0.7], [0.0, 1.0])
    expected = model.posterior([0, 0, 1, 1, 0]).probabilities
    assert model.posterior([-5, 0.5, 0.51, math.inf, math.nan]).probabilities == pytest.approx(expected)
    assert model.posterior([]).probabilities == pytest.approx([0.5, 0.5])
    uneven = GridModel(normal, [0.0, 1.0], [0.0, 1.0, 10.0])
    assert uneven.posterior([5.6]).probabilities.tolist() == uneven.posterior([10]).probabilities.tolist()
    assert uneven.posterior([5.5]).probabilities.tolist() == uneven.posterior([1]).probabilities.tolist()


def test_the_function_sees_declared_records_only_and_is_not_kept():
    seen = []

    def family(t, x):
        seen.append(x.tolist())
        return normal(t, x)

    model = GridModel(family, [0.0, 0.5, 1.0], [0.0, 2.0])
    assert seen == [[0.0, 2.0]] * 3
    model.calibrate(0.5).posterior([0.1, 1.7]).sample(2)
    assert len(seen) == 3
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(ValueError, match="read-only"):
        model.parameters[0] = 5.0


def test_large_differences_are_drawn_and_tempered():
    far = np.linspace(-1e6, 1e6, 11)
    model = GridModel(normal, far, far)
    assert model.guarantee().epsilon == pytest.approx(4e12, rel=1e-8)
    assert set(model.posterior([4e5]).sample(50).values) == {4e5}
    assert model.calibrate(1.0).guarantee().epsilon == pytest.approx(1.0)
    alike = GridModel(lambda t, x: 0 * x, [0.0, 1.0], [0.0, 1.0])
    assert alike.guarantee().epsilon == 0
    assert alike.calibrate(0.1) == alike


def test_what_nothing_bounds_is_refused_in_words():
    for make, words in [
        (lambda: GridModel(bernoulli, [0.0, 0.5], [0, 1]), r"got -inf at 0\.0 for the record 1\.0"),
        (lambda: GridModel(lambda t, x: np.log(x - t), [0.0, 0.5], [0.2, 1]), r"got nan at 0\.5 for the record 0\.2"),
        (
            lambda: GridModel(lambda t, x: x[:1], [0.0, 0.5], [0, 1]),
            r"a number for each of 2 records, got shape \(1,\)",
        ),
        (lambda: GridModel(lambda t, x: t * x * 1e300, [-1e8, 1e8], [0, 0.9]), "differ by less than"),
        (lambda: GridModel(normal, [0.5], [0, 1]), "`parameters` must have shape"),
        (lambda: GridModel(normal, [0.5, math.nan], [0, 1]), "`parameters`"),
        (lambda: GridModel(normal, [0.5, 1], [1]), "`records` must have shape"),
        (lambda: GridModel(normal, [0.5, 1], [1, 1]), "`records` must increase"),
        (lambda: GridModel(normal, [0.5, 1], [0, 1], log_prior=[0]), r"`log_prior` must have shape \(2,\)"),
        (lambda: GridModel(normal, [0.5, 1], [0, 1], log_prior=[0, -math.inf]), "`log_prior`"),
        (lambda: GridModel(normal, [0.5, 1], [0, 1], temper=1e-30), "`temper` must be between"),
        (lambda: GridModel(normal, [0.5, 1], [0, 1], log_prior=[0, -1e9], temper=1e-8), "`temper` must be larger"),
        (lambda: NORMAL.guarantee(relation=ReplaceOne(2)), "`relation` must be"),
        (lambda: NORMAL.calibrate(0.0), "`epsilon` must be positive"),
        (lambda: NORMAL.calibrate(1e-12), "`epsilon` must be at least .* for these log-likelihoods, got 1e-12"),
        (lambda: NORMAL.posterior([[0.0]]), "`data` must have one axis"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(TypeError, match="`data` must hold numbers"):
        NORMAL.posterior(["a"])
