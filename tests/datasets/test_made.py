"""Samples are of the laws that their docstrings tell, and the same for the same seed."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from tests.statistics import FALSE_ALARM, assert_continuous_fit, assert_discrete_fit

from quincunx import datasets

NODES = np.polynomial.legendre.leggauss(400)


def assert_poisson(counts, rates):
    """Sums of counts and of their squared deviations are those of Poisson counts; false-alarm rate 1e-6 each."""
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert abs((counts - rates).sum()) < limit * np.sqrt(rates.sum())
    gaps, spread = (counts - rates) ** 2 - rates, rates + 2 * rates**2
    assert abs(gaps.sum()) < limit * np.sqrt(spread.sum())


def test_factors_and_counts_of_a_factorization_have_their_laws():
    found = datasets.make_counts(800, 600, 3, shape=0.7, rng=5)
    assert np.linalg.matrix_rank(found.rates) == 3
    assert_poisson(found.counts, found.rates)

    # One rate of one component is a product of two gamma variables of mean 1.
    def cdf(rates):
        law = stats.gamma(0.7, scale=1 / 0.7)
        ends = np.unique(np.concatenate([[0], np.quantile(rates, np.linspace(0, 1, 40))]))
        known = [integrate.quad(lambda u, r=r: law.cdf(r / law.ppf(u)), 0, 1, limit=400)[0] for r in ends[1:]]
        return np.interp(rates, ends, [0, *known])

    chance = np.random.default_rng(6)
    rates = np.sort([datasets.make_counts(1, 1, 1, shape=0.7, rng=chance).rates[0, 0] for _ in range(4000)])
    points = rates[99::100]
    exact = cdf(points)
    share = np.arange(100, 4001, 100) / 4000
    assert np.max(np.abs(exact - share)) < np.sqrt(np.log(2 / FALSE_ALARM) / 2 / 4000)


def test_parts_and_counts_of_a_network_have_their_laws():
    found = datasets.make_network(300, 200, rng=7)
    off = ~np.eye(300, dtype=bool)
    assert_poisson(found.counts[off], (found.members @ found.between @ found.members.T)[off])
    assert not found.counts.diagonal().any()
    assert_continuous_fit(found.members.ravel(), stats.gamma(0.3).cdf)
    inside = np.eye(200, dtype=bool)
    assert_continuous_fit(found.between[~inside], stats.gamma(0.5, scale=0.2).cdf)
    points, weights = (NODES[0] + 1) / 2, NODES[1] / 2  # of the smaller part's distribution function
    small = stats.gamma(0.5, scale=0.2).ppf(points)
    assert_continuous_fit(found.between[inside], lambda x: stats.gamma(4).cdf(x[:, None] - small) @ weights)


def test_answers_have_the_shares_of_the_documented_tables():
    pytest.importorskip("pandas")
    records, categories = datasets.make_survey(40_000, rng=8)
    age = {"18-34": 0.3, "35-54": 0.4, "55+": 0.3}
    education = {"18-34": (0.3, 0.4, 0.3), "35-54": (0.4, 0.35, 0.25), "55+": (0.6, 0.25, 0.15)}
    income = {"school": (0.5, 0.4, 0.1), "college": (0.3, 0.5, 0.2), "university": (0.1, 0.4, 0.5)}
    moves = {"18-34": 0.4, "35-54": 0.2, "55+": 0.05}
    seen = records.value_counts().to_dict()
    counts, shares = [], []
    for answers in itertools.product(*categories.values()):
        a, e, i, m = answers
        share = education[a][categories["education"].index(e)] * income[e][categories["income"].index(i)]
        counts.append(seen.get(answers, 0))
        shares.append(age[a] * share * (moves[a] if m == "yes" else 1 - moves[a]))
    assert sum(counts) == 40_000
    assert sum(shares) == pytest.approx(1)
    assert_discrete_fit(counts, shares)


@pytest.mark.parametrize("make", [datasets.make_counts, datasets.make_network])
def test_the_same_seed_gives_the_same_sample(make):
    assert all(np.array_equal(one, other) for one, other in zip(make(), make(), strict=True))
    assert not np.array_equal(make(rng=1)[0], make(rng=2)[0])


def test_samples_are_small():
    with pytest.raises(ValueError, match="`n_rows` must be between 1 and 1000, got 1001"):
        datasets.make_counts(1001)
    with pytest.raises(ValueError, match=r"`shape` must be at least 0\.001, got 0\.0001"):
        datasets.make_counts(shape=0.0001)
    assert datasets.make_counts(1000, 1000, 1000, shape=0.001).rates.max() < 2.0**62
