"""Which test holds the draws of each public sampler against their law, and those of samplers without a room's own.

Each test states its false-alarm rate, 1e-6 unless it says otherwise, and has fixed seeds.
"""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests import hostile
from tests.statistics import FALSE_ALARM, assert_continuous_fit, assert_discrete_fit

from quincunx import lattices, posterior
from quincunx.ldp import priors

HERE = Path(__file__).parent
CENTRAL = "factorization/test_central.py test_noise_of_the_statistics_has_its_law"
ESTIMATORS = "factorization/test_joint_distribution.py test_a_sweep_leaves_the_joint_distribution_invariant"
NOISE = "privacy/test_noise_mechanisms.py test_integer_noise_fits_its_likelihood"
REAL_NOISE = "privacy/test_noise_mechanisms.py test_laplace_and_gaussian_noise_fit_their_laws"
RESPONSES = "privacy/test_response_mechanisms.py test_responses_fit_their_likelihood"
SUPPORTS = "privacy/test_supports.py test_reports_fit_their_likelihood"
LAWS = "distributions/test_draws.py test_draws_fit_their_law"
NETWORKS = "posterior/test_posterior_laws.py test_cube_noise_has_its_law"
RECORDS = "posterior/test_synthetic_records.py test_selected_trees_have_the_probabilities_of_the_mechanism"
BALL = "test_samplers.py test_normal_draws_in_a_ball_have_their_law"
MODELS = "ldp/test_models.py test_models_are_calibrated"
REGRESSIONS = "ldp/test_ldp_estimators.py test_regressions_are_calibrated"
#: Every public function, method and class that takes randomness, and where its draws are tested: for a class that draws
#: by others' means, the test of those.
TESTS = {
    "counting.random_independent_set": "counting/test_random_objects.py test_every_independent_set_has_its_probability",
    "counting.random_perfect_matching": "counting/test_random_objects.py test_every_perfect_matching_is_equally_likely",
    "counting.random_spanning_tree": "counting/test_random_objects.py test_every_spanning_tree_is_equally_likely",
    "datasets.make_counts": "datasets/test_made.py test_factors_and_counts_of_a_factorization_have_their_laws",
    "datasets.make_network": "datasets/test_made.py test_parts_and_counts_of_a_network_have_their_laws",
    "datasets.make_survey": "datasets/test_made.py test_answers_have_the_shares_of_the_documented_tables",
    "distributions.Bessel.sample": LAWS,
    "distributions.Skellam.sample": LAWS,
    "distributions.TwoPiecePoisson.sample": LAWS,
    "distributions.TwoSidedGeometric.sample": LAWS,
    "entropy.quenched_entropy": "entropy/test_triangulated.py test_sampled_quenched_means_agree_with_exact_ones",
    "factorization.CentralPoissonFactorization": CENTRAL,
    "factorization.CrossValidation": ESTIMATORS,
    "factorization.PoissonBlockmodel": ESTIMATORS,
    "factorization.PoissonDynamics": "factorization/test_dynamics.py test_sweeps_leave_the_joint_law_as_it_is",
    "factorization.PoissonFactorization": ESTIMATORS,
    "factorization.PoissonTensorFactorization": ESTIMATORS,
    "factorization.cross_validate": ESTIMATORS,
    "lattices.triangulated_grid": "test_samplers.py test_diagonals_of_grids_are_independent",
    "ldp.BernoulliModel": MODELS,
    "ldp.ExponentialModel": MODELS,
    "ldp.GaussianModel": MODELS,
    "ldp.GeometricModel": MODELS,
    "ldp.HistogramModel": "ldp/test_ldp_estimators.py test_shares_by_chains_are_those_of_the_conjugate_posterior",
    "ldp.LDPSGD": REAL_NOISE,
    "ldp.LinearRegression": REGRESSIONS,
    "ldp.LogisticRegression": REGRESSIONS,
    "ldp.MultivariateNormalModel": "ldp/test_vectors.py test_vectors_are_calibrated",
    "ldp.PoissonModel": MODELS,
    "ldp.TractableModel": "ldp/test_ldp_estimators.py test_tractable_models_are_calibrated",
    "ldp.calibration": MODELS,
    "ldp.priors.Beta.sample": "test_samplers.py test_priors_are_drawn_from",
    "ldp.priors.Gamma.sample": "test_samplers.py test_priors_are_drawn_from",
    "ldp.priors.HalfNormal.sample": "test_samplers.py test_priors_are_drawn_from",
    "ldp.priors.LogNormal.sample": "test_samplers.py test_priors_are_drawn_from",
    "ldp.priors.Normal.sample": "test_samplers.py test_priors_are_drawn_from",
    "posterior.BallPosterior.sample": BALL,
    "posterior.ConjugatePosterior.sample": "posterior/test_posterior_laws.py test_beta_draws_follow_the_trimmed_law",
    "posterior.DirichletPosterior.sample": "posterior/test_posterior_laws.py test_dirichlet_draws_of_three_categories",
    "posterior.DiscreteBayesNet.fit_private": NETWORKS,
    "posterior.GridPosterior.sample": "posterior/test_grid_models.py test_draws_have_the_law_of_the_fractions",
    "posterior.AdaptiveMarginals.release": "posterior/test_adaptive_marginals.py test_choices_have_the_probabilities",
    "posterior.MarginalTree.release": RECORDS,
    "posterior.PosteriorSampleRegressor": BALL,
    "posterior.PrivateBayesNet.posterior": "posterior/test_network_posterior.py test_ranks_of_the_truth_are_uniform",
    "posterior.PrivateBayesNet.sample": "posterior/test_posterior_laws.py test_records_sampled_from_a_network_follow",
    "posterior.PrivateBernoulliNB": NETWORKS,
    "posterior.PrivateCategoricalNB": NETWORKS,
    "posterior.SyntheticBayesNet.posterior": "posterior/test_network_posterior.py test_what_has_no_answer_is_refused",
    "posterior.SyntheticBayesNet.sample": "posterior/test_synthetic_records.py test_each_record_has_the_fitted_law",
    "posterior.WishartPosterior.sample": "test_samplers.py test_wishart_draws_have_their_law",
    "privacy.DiscreteGaussianMechanism.release": NOISE,
    "posterior.synthesize": RECORDS,
    "privacy.ExponentialMechanism.release": "posterior/test_posterior_laws.py test_exponential_mechanism_draws_its_law",
    "privacy.GaussianMechanism.release": REAL_NOISE,
    "privacy.GeneralizedRandomizedResponse.release": RESPONSES,
    "privacy.GeometricMechanism.release": NOISE,
    "privacy.HadamardResponse.release": SUPPORTS,
    "privacy.LaplaceMechanism.release": REAL_NOISE,
    "privacy.LocalHashing.release": "privacy/test_supports.py test_hashes_and_thresholds_fit_their_likelihood",
    "privacy.MemoizedUnaryEncoding.memoize": "privacy/test_memoized.py test_permanent_rows_and_their_reports_have",
    "privacy.MemoizedUnaryEncoding.release": "privacy/test_memoized.py test_a_release_has_the_law_of_one_report",
    "privacy.MemoizedUnaryEncoding.report": "privacy/test_memoized.py test_permanent_rows_and_their_reports_have",
    "privacy.RandomizedResponse.release": RESPONSES,
    "privacy.SubsetSelection.release": SUPPORTS,
    "privacy.UnaryEncoding.release": "privacy/test_response_mechanisms.py test_rows_fit_their_likelihood",
    "privacy.privatize": NOISE,
    "privacy.quantile": "privacy/test_quantile.py test_draws_follow_the_law",
}


def takes_randomness(function):
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return not names.keys().isdisjoint(("rng", "random_state", "insecure_seed"))


def test_every_public_sampler_has_a_test_of_its_draws():
    found = set()
    for name, thing in hostile.public_names():
        members = inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else []
        found |= {f"{name}.{member}" for member, method in members if member[0] != "_" and takes_randomness(method)}
        found |= {name} if callable(thing) and takes_randomness(thing) else set()
    assert found == TESTS.keys()
    for place in sorted(set(TESTS.values())):
        file, function = place.split()
        text = (HERE / file).read_text()
        assert re.search(rf"^def {function}", text, re.MULTILINE), place


@pytest.mark.parametrize(
    ("prior", "law"),
    [
        (priors.Normal(1.5, 0.25), stats.norm(1.5, 0.25)),
        (priors.HalfNormal(3.0), stats.halfnorm(scale=3.0)),
        (priors.LogNormal(0.5, 0.8), stats.lognorm(0.8, scale=np.exp(0.5))),
        (priors.Gamma(0.7, 4.0), stats.gamma(0.7, scale=0.25)),
        (priors.Beta(0.5, 2.5), stats.beta(0.5, 2.5)),
    ],
    ids=lambda side: type(side).__name__,
)
def test_priors_are_drawn_from(prior, law):
    rng = np.random.default_rng(31)
    assert_continuous_fit([prior.sample(rng) for _ in range(20_000)], law.cdf)


@pytest.mark.parametrize("p", [0.5, 0.15])
def test_diagonals_of_grids_are_independent(p):
    rng = np.random.default_rng(32)
    seen = np.zeros(16)
    for _ in range(8_000):
        seen[lattices.triangulated_grid(2, 2, p=p, rng=rng).diagonals.ravel() @ [8, 4, 2, 1]] += 1
    ones = np.array([number.bit_count() for number in range(16)])
    assert_discrete_fit(seen, p**ones * (1 - p) ** (4 - ones))
    together = lattices.triangulated_grid(2, 1, p, size=8_001, rng=rng)
    bits = np.array([grid.diagonals.ravel() for grid in together])
    pairs = np.hstack([bits[:-1], bits[1:]])[::2] @ [8, 4, 2, 1]
    assert_discrete_fit(np.bincount(pairs, minlength=16), p**ones * (1 - p) ** (4 - ones))


def draws_of(found, size):
    """Draws with a guarantee, and those without."""
    yield found.sample(size, insecure_seed=33).values
    yield found.sample(size, private=False, rng=34).values


@pytest.mark.parametrize("radius", [0.6, 1.0, 3.0])
def test_normal_draws_in_a_ball_have_their_law(radius):
    data = np.array([[0.5, -0.2, 0.1], [0.9, 0.3, 0.0]])
    # Of equal precisions: the distance from the origin is noncentral chi-square, cut off.
    found = posterior.MultivariateNormalMean(np.eye(3), radius=radius, data_bound=1.0).posterior(data)
    rate = found.precision[0, 0]
    assert np.allclose(found.precision, rate * np.eye(3))
    law = stats.ncx2(3, rate * (found.mean**2).sum())
    for values in draws_of(found, 20_000):
        assert_continuous_fit(
            rate * (values**2).sum(axis=1), lambda x: np.minimum(law.cdf(x) / law.cdf(rate * radius**2), 1)
        )
    # Of different ones: along each axis of the precision, the rest integrated over the chord.
    model = posterior.MultivariateNormalMean([[3.0, 1.0], [1.0, 1.0]], radius=radius, data_bound=1.0)
    found = model.posterior(data[:, :2])
    rates, axes = np.linalg.eigh(found.precision)
    mean = axes.T @ found.mean
    grid = radius * np.sin(np.linspace(-np.pi / 2, np.pi / 2, 20_001))
    chord = np.sqrt(np.maximum(radius**2 - grid**2, 0))
    for i in range(2):
        other = stats.norm(mean[1 - i], rates[1 - i] ** -0.5)
        density = np.exp(-rates[i] * (grid - mean[i]) ** 2 / 2) * (other.cdf(chord) - other.cdf(-chord))
        below = np.concatenate([[0], np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2)])
        for values in draws_of(found, 20_000):
            assert (np.linalg.norm(values, axis=1) <= radius * (1 + 1e-12)).all()
            assert_continuous_fit(values @ axes[:, i], lambda x, b=below: np.interp(x, grid, b / b[-1]))


def test_wishart_draws_have_their_law():
    scale = [[2.0, 0.5], [0.5, 1.0]]
    data = [[0.6, 0.1], [-0.3, 0.8], [0.2, 0.2]]
    whole = posterior.MultivariateNormalPrecision(4.5, scale, radius=1e6, data_bound=1.0).posterior(data)
    inverse = np.linalg.inv(whole.scale)
    for values in draws_of(whole, 20_000):
        assert_continuous_fit(values[:, 0, 0] / whole.scale[0, 0], stats.chi2(whole.dof).cdf)
        assert_continuous_fit(np.linalg.inv(values)[:, 1, 1] ** -1 * inverse[1, 1], stats.chi2(whole.dof - 1).cdf)
        assert_continuous_fit(np.einsum("ij,nji->n", inverse, values), stats.chi2(2 * whole.dof).cdf)
    # In a ball that cuts off about half: beside SciPy's draws, by two samples of Kolmogorov and Smirnov.
    theirs = stats.wishart(whole.dof, whole.scale).rvs(40_000, random_state=35)
    radius = float(np.median(np.linalg.norm(theirs, axis=(1, 2))))
    theirs = theirs[np.linalg.norm(theirs, axis=(1, 2)) <= radius]
    cut = posterior.MultivariateNormalPrecision(4.5, scale, radius=radius, data_bound=1.0).posterior(data)
    for values in draws_of(cut, 20_000):
        for what in (np.linalg.det, lambda x: np.trace(x, axis1=1, axis2=2), lambda x: x[:, 0, 1]):
            assert stats.ks_2samp(what(values), what(theirs)).pvalue > FALSE_ALARM
