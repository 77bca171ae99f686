"""Clipped numbers with Gaussian noise: laws by quadrature and by sums, their integral, many users, and fits."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from quincunx import _core, ldp, privacy

REALS = {
    "gaussian": [(0.7, 1.8), (-9.0, 2.0), (4.9, 0.05), (0.0, 40.0)],
    "exponential": [(0.2,), (3.0,), (40.0,)],
}
COUNTS = {"poisson": [(0.3,), (4.0,), (30.0,)], "geometric": [(0.05,), (0.6,)], "bernoulli": [(0.02,), (0.7,)]}
BOUNDS = {
    "gaussian": (-5.0, 5.0),
    "exponential": (0.0, 5.0),
    "poisson": (1.0, 7.0),
    "geometric": (0.0, 6.0),
    "bernoulli": (0.0, 1.0),
}
CASES = [(family, at) for family, points in (REALS | COUNTS).items() for at in points]


def clipped(family, z, sd, bounds=None, exact=True):
    z = np.atleast_1d(np.asarray(z, dtype=float))
    return _core.LdpLikelihood.clipped(family, z, bounds or BOUNDS[family], sd, exact)


def value(family, z, at, sd, bounds=None, exact=True):
    return clipped(family, z, sd, bounds, exact).value(np.array(at), False)[0]


def by_quadrature(family, z, at, sd):
    """The density of a release, by adaptive quadrature in twenty digits of what is clipped and what is not."""
    low, high = BOUNDS[family]
    z, sd = mpmath.mpf(z), mpmath.mpf(sd)

    def noise(x):
        return mpmath.npdf(z, x, sd)

    if family == "exponential":
        (rate,) = at
        rate = mpmath.mpf(rate)
        inside, atoms = lambda x: rate * mpmath.exp(-rate * x), (0, mpmath.exp(-rate * high))
        centre, width = z - rate * sd**2, sd
    else:
        mean, spread = (mpmath.mpf(v) for v in at)
        inside = lambda x: mpmath.npdf(x, mean, spread)  # noqa: E731
        atoms = mpmath.ncdf(low, mean, spread), mpmath.ncdf(-high, -mean, spread)
        centre, width = (mean * sd**2 + z * spread**2) / (sd**2 + spread**2), spread * sd / mpmath.hypot(spread, sd)
    where = [centre + k * width for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)]
    where += [end for k in (2, 5, 8, 11) for end in (low + (high - low) / 2**k, high - (high - low) / 2**k)]
    cuts = [low, *sorted(cut for cut in where if low < cut < high), high]
    top = min(max(centre, low), high)
    peak = inside(top) * noise(top)  # for the tolerance of the rule, which is absolute
    total = peak * mpmath.quad(lambda x: inside(x) * noise(x) / peak, cuts)
    return mpmath.log(total + atoms[0] * noise(low) + atoms[1] * noise(high))


@pytest.mark.parametrize(("family", "at"), [case for case in CASES if case[0] in REALS])
@pytest.mark.parametrize("sd", [0.1, 1.0, 20.0])
def test_densities_are_those_of_brute_force_quadrature(family, at, sd):
    with mpmath.workdps(20):
        for z in (-7.0, -0.5, 0.7, 4.9, 6.0):
            expected = float(by_quadrature(family, z, at, sd))
            assert value(family, z, at, sd) == pytest.approx(expected, rel=1e-12, abs=1e-12), (z, at, sd)


@pytest.mark.parametrize(("family", "at"), [case for case in CASES if case[0] in COUNTS])
@pytest.mark.parametrize("sd", [0.1, 1.0, 20.0])
def test_counts_are_those_of_scipy_summed_over_all_true_values(family, at, sd):
    law = {
        "poisson": lambda t: stats.poisson(t),
        "geometric": lambda t: stats.geom(t, loc=-1),
        "bernoulli": lambda t: stats.bernoulli(t),
    }[family](*at)
    low, high = BOUNDS[family]
    x = np.arange(low, high + 1)
    mass = law.pmf(x)
    mass[0], mass[-1] = law.cdf(low), law.sf(high - 1)
    for z in (-0.3, 0.0, 0.4, 1.0, 6.6):
        if abs(z - np.clip(z, low, high)) < 30 * sd:
            expected = math.log(np.sum(mass * stats.norm.pdf(z, x, sd)))
            assert value(family, z, at, sd) == pytest.approx(expected, rel=1e-11, abs=1e-11), (z, at, sd)


@pytest.mark.parametrize(("family", "at"), CASES)
@pytest.mark.parametrize("sd", [0.1, 1.0, 20.0])
def test_densities_integrate_to_one(family, at, sd):
    """By the trapezoidal rule, exact to exp(-2 pi^2 9) for what is smoothed by noise three steps wide."""
    low, high = BOUNDS[family]
    step = sd / 3
    z = np.arange(low - 10 * sd, high + 10 * sd, step)
    total = step * math.fsum(math.exp(value(family, each, at, sd)) for each in z)
    assert total == pytest.approx(1, abs=1e-10)


def test_without_bounds_a_normal_number_stays_normal_and_an_exponential_one_is_modified():
    z = np.array([-3.0, 0.1, 2.5, 40.0])
    free = (-np.inf, np.inf)
    expected = stats.norm(0.7, math.hypot(1.8, 2.0)).logpdf(z).sum()
    assert value("gaussian", z, (0.7, 1.8), 2.0, free) == pytest.approx(expected, rel=1e-13)
    expected = stats.exponnorm(1 / (0.5 * 2.0), scale=2.0).logpdf(z).sum()
    assert value("exponential", z, (0.5,), 2.0, free) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("family", "at"), CASES)
@pytest.mark.parametrize("sd", [0.1, 1.0, 20.0])
def test_nodes_have_the_likelihood_of_all_users(family, at, sd):
    rng = np.random.default_rng(5)
    low, high = BOUNDS[family]
    draw = {
        "gaussian": rng.normal,
        "exponential": lambda rate, n: rng.exponential(1 / rate, n),
        "poisson": rng.poisson,
        "geometric": lambda p, n: rng.geometric(p, n) - 1,
        "bernoulli": lambda p, n: rng.random(n) < p,
    }[family]
    z = np.clip(np.asarray(draw(*at, 20_000), float), low, high) + rng.normal(0, sd, 20_000)
    for factor in (1.0, 1.1):
        point = np.array([min(v * factor, 1.0) if family == "bernoulli" else v * factor for v in at])
        full, slope = clipped(family, z, sd).value(point, True)
        found, other = clipped(family, z, sd, exact=False).value(point, True)
        assert found == pytest.approx(full, abs=5e-9)
        assert other == pytest.approx(slope, rel=1e-9, abs=1e-7)


N = 20_000
FITS = {
    "gaussian": (ldp.GaussianModel, lambda rng: rng.normal(0.7, 1.8, N), {"mu": 0.7, "sigma": 1.8}),
    "exponential": (ldp.ExponentialModel, lambda rng: rng.exponential(1 / 0.8, N), {"rate": 0.8}),
    "poisson": (ldp.PoissonModel, lambda rng: rng.poisson(2.3, N), {"rate": 2.3}),
    "geometric": (ldp.GeometricModel, lambda rng: rng.geometric(0.4, N) - 1, {"probability": 0.4}),
    "bernoulli": (ldp.BernoulliModel, lambda rng: rng.random(N) < 0.4, {"probability": 0.4}),
}


@pytest.mark.parametrize("family", FITS)
def test_releases_are_fitted(family):
    """The truth is within five deviations: a false alarm of 6e-7 at each of six numbers."""
    model, draw, truth = FITS[family]
    lower, upper = BOUNDS[family]
    mechanism = privacy.GaussianMechanism(2.0, 1e-5, lower=lower, upper=upper)
    private = draw(np.random.default_rng(3)).astype(float)
    fitted = model(random_state=0).fit(mechanism.release(private, insecure_seed=1))
    for name, exact in truth.items():
        assert abs(fitted.posterior_mean_[name] - exact) < 5 * fitted.posterior_sd_[name]


def test_noises_stand_side_by_side_and_a_radius_is_a_pair_of_bounds():
    x = np.random.default_rng(0).normal(0.7, 1.8, 200)
    laplace = privacy.LaplaceMechanism(1.0, -5, 5).release(x, insecure_seed=1)
    normal = privacy.GaussianMechanism(1.0, 1e-5, lower=-5, upper=5).release(x, insecure_seed=1)
    ball = privacy.GaussianMechanism(1.0, 1e-5, radius=5)
    assert ball.sigma == privacy.GaussianMechanism(1.0, 1e-5, lower=-5, upper=5).sigma
    model, at = ldp.GaussianModel(), {"mu": 0.5, "sigma": 2.0}
    assert model.log_likelihood(normal, **at) == model.log_likelihood(normal.values, mechanism=ball, **at)
    both = model.log_likelihood([laplace, normal], **at)
    assert both == pytest.approx(model.log_likelihood(laplace, **at) + model.log_likelihood(normal, **at), rel=1e-13)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m: ldp.PoissonModel(m(sensitivity=1.0)).fit([1.0]), "`mechanism` must have bounds"),
        (lambda m: ldp.PoissonModel(m(lower=0, upper=1.5)).fit([1.0]), "whole bounds for counts"),
        (lambda m: ldp.PoissonModel(privacy.LaplaceMechanism(1.0, 0, 2.0**70)).fit([1.0]), r"counts, up to 2\*\*53"),
        (lambda m: ldp.PoissonModel(m(lower=0, upper=2**17)).fit([1.0]), r"at most 2\*\*16"),
        (lambda m: ldp.ExponentialModel(m(lower=1, upper=2)).fit([1.0]), "`lower` must be at most 0"),
        (lambda m: ldp.GaussianModel(m(radius=1.0, dimension=2)).fit([1.0]), "no `dimension`"),
        (lambda m: ldp.GaussianModel(m(lower=0, upper=1)).summarize([1.0]), "no summary of numbers with normal noise"),
        (lambda m: ldp.GaussianModel(m(lower=0, upper=1)).fit([math.nan]), "`released`"),
    ],
)
def test_what_has_no_likelihood_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call(lambda **settings: privacy.GaussianMechanism(1.0, 1e-5, **settings))
