"""Log-likelihoods against forty-digit arithmetic, gradients against multiple precision, laws that hold for all data."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from quincunx import _core, ldp, privacy
from quincunx.ldp import priors, statistics


def gaussian(z, mu, sigma, scale, gradient=False, bounds=(-5.0, 5.0)):
    part = _core.LdpLikelihood.rectified("gaussian", np.atleast_1d(z).astype(float), bounds, scale, True)
    value, slope = part.value(np.array([mu, sigma], dtype=float), gradient)
    return (value, slope) if gradient else value


@pytest.mark.parametrize(
    ("z", "sigma", "mu", "scale", "expected"),
    [
        (0.3, 1.8, 0.7, 10.0, -3.1365617109831023),
        (-9.0, 1.8, 0.7, 10.0, -3.9492940630498151),
        (20.0, 1.8, 0.7, 10.0, -4.9103230718392684),
        (4.0, 6.0, 0.7, 0.125, -2.8568531578146),
        (0.5, 3.0, 0.0, 0.02, -2.0314829159745),
    ],
)
def test_gaussian_model(z, sigma, mu, scale, expected):
    assert gaussian(z, mu, sigma, scale) == pytest.approx(expected, abs=2e-13)


def test_gaussian_gradients_of_the_document():
    assert gaussian(0.3, 0.7, 1.8, 10.0, True)[1] == pytest.approx([-0.0157145222686, -0.0698989072121], abs=1e-12)
    assert gaussian(-9.0, 0.7, 1.8, 10.0, True)[1] == pytest.approx([-0.0993251925273, 0.0188890847933], abs=1e-12)


def precise_gaussian(z, mu, sigma, scale, a=-5, b=5):
    """Sum of the four terms in multiple precision."""
    z, mu, sigma, s = (mpmath.mpf(v) for v in (z, mu, sigma, scale))
    r, x = sigma / s, min(max(z, a), b)
    at = [(v - mu) / sigma for v in (a, x, b)]
    ncdf = mpmath.ncdf
    total = ncdf(at[0]) * mpmath.exp(-abs(z - a) / s) + ncdf(-at[2]) * mpmath.exp(-abs(z - b) / s)
    total += mpmath.exp(-(z - mu) / s + r * r / 2) * (ncdf(at[1] - r) - ncdf(at[0] - r))
    total += mpmath.exp((z - mu) / s + r * r / 2) * (ncdf(-at[1] - r) - ncdf(-at[2] - r))
    return mpmath.log(total / (2 * s))


@pytest.mark.parametrize(
    ("z", "mu", "sigma", "scale"),
    [
        (0.3, 0.7, 1.8, 10),
        (2, 0, 1, 0.05),
        (4, 0.7, 6, 0.125),
        (-3, 8, 0.4, 1),
        (1.2, 1, 0.01, 5),
        (9, -40, 3, 2),
        (0.5, 0, 30, 0.5),
    ],
)
def test_gaussian_gradients_agree_with_multiple_precision(z, mu, sigma, scale):
    with mpmath.workdps(120):
        value = precise_gaussian(z, mu, sigma, scale)
        by_mu = mpmath.diff(lambda m: precise_gaussian(z, m, sigma, scale), mu, h=mpmath.mpf(10) ** -60)
        by_sigma = mpmath.diff(lambda t: precise_gaussian(z, mu, t, scale), sigma, h=mpmath.mpf(10) ** -60)
        exact = [float(value), float(by_mu), float(by_sigma)]
    found, slope = gaussian(z, mu, sigma, float(scale), True)
    assert found == pytest.approx(exact[0], rel=1e-12)
    assert slope == pytest.approx(exact[1:], rel=1e-8, abs=1e-13)


def test_error_functions_lose_in_doubles_what_the_positive_form_keeps():
    """Equation 28 in print: not a number at (z, sigma, eps) = (4, 6, 80), off by 70 at (2, 1, 200)."""

    def printed(z, mu, sigma, s, a=-5.0, b=5.0):
        r, at = sigma / s, (np.array([a, z, b]) - mu) / sigma
        low, _, high = special.erf(at / 2**0.5)
        (up, upper, _), (_, down, lower) = special.erf((at - r) / 2**0.5), special.erf((at + r) / 2**0.5)
        total = (1 + low) * np.exp((a - z) / s) + (1 - high) * np.exp((z - b) / s)
        total += np.exp(r * r / 2 - (z - mu) / s) * (upper - up) + np.exp(r * r / 2 + (z - mu) / s) * (lower - down)
        return np.log(total / (4 * s))

    assert printed(0.3, 0.7, 1.8, 10.0) == pytest.approx(gaussian(0.3, 0.7, 1.8, 10.0), abs=1e-12)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(printed(4.0, 0.7, 6.0, 10 / 80))
    assert round(gaussian(2.0, 0.0, 1.0, 10 / 200) - printed(2.0, 0.0, 1.0, 10 / 200)) == 70


def precise_exponential(z, rate, upper, scale):
    """The density over the integral of the noise, in closed form."""
    z, upper, scale = (mpmath.mpf(v) for v in (z, upper, scale))
    x, less, more = min(max(z, 0), upper), 1 / scale - rate, 1 / scale + rate
    total = mpmath.exp(-abs(z - upper) / scale - rate * upper)
    total += rate * mpmath.exp(-z / scale) * mpmath.expm1(less * x) / less
    return total + rate * mpmath.exp(z / scale) * (mpmath.exp(-more * x) - mpmath.exp(-more * upper)) / more


def precise_whole(family, z, theta, lower, upper, kernel):
    """The sum over all true values, with noise of a density or mass."""

    def below(x):  # P(X < x)
        if family == "poisson":
            return sum(mpmath.exp(-theta) * theta**k / mpmath.factorial(k) for k in range(x))
        return 1 - (1 - theta) ** x if family == "geometric" else mpmath.mpf(x > 0) * (1 - theta) + theta * (x > 1)

    ends = [mpmath.mpf(0), *(below(x) for x in range(lower + 1, upper + 1)), mpmath.mpf(1)]
    masses = [after - before for before, after in itertools.pairwise(ends)]
    return sum(mass * kernel(z - x) for x, mass in enumerate(masses, start=lower))


def decaying(decay):
    """Laplace or geometric noise, but for its constant."""
    return lambda away: mpmath.exp(-mpmath.mpf(decay) * abs(away))


def normal(sd):
    """Normal noise."""
    return lambda away: mpmath.npdf(mpmath.mpf(away) / mpmath.mpf(sd)) / mpmath.mpf(sd)


def between(low, high):
    """Normal probability of an interval, also of one far out in the right tail."""
    return mpmath.ncdf(-low) - mpmath.ncdf(-high) if low > 0 else mpmath.ncdf(high) - mpmath.ncdf(low)


def precise_clipped(z, mean, spread, low, high, sd):
    """A normal variable, clipped and told with normal noise."""
    z, sd = mpmath.mpf(z), mpmath.mpf(sd)
    both = mpmath.sqrt(spread**2 + sd**2)
    centre, width = (mean * sd**2 + z * spread**2) / both**2, spread * sd / both
    total = normal(both)(z - mean) * between((low - centre) / width, (high - centre) / width)
    total += normal(sd)(z - low) * mpmath.ncdf((low - mean) / spread)
    return total + normal(sd)(z - high) * mpmath.ncdf((mean - high) / spread)


def precise_clipped_exponential(z, rate, upper, sd):
    """An exponential variable, clipped and told with normal noise."""
    z, sd = mpmath.mpf(z), mpmath.mpf(sd)
    centre = z - rate * sd**2
    total = rate * mpmath.exp(rate * (rate * sd**2 / 2 - z)) * between(-centre / sd, (upper - centre) / sd)
    return total + normal(sd)(z - upper) * mpmath.exp(-rate * upper)


def precise_tractable(z, t1, t2, low, high, sd):
    """The same by the normal law's natural parameters."""
    return precise_clipped(z, -t1 / (2 * t2), 1 / mpmath.sqrt(-2 * t2), low, high, sd)


def slopes(density, at):
    """Derivatives of the logarithm of a density, which may be far smaller than its rounding in doubles."""
    h = mpmath.mpf(10) ** -40
    at = [mpmath.mpf(value) for value in at]
    found = []
    for i in range(len(at)):
        ends = [density(*at[:i], at[i] + step, *at[i + 1 :]) for step in (h, -h)]
        found.append((ends[0] - ends[1]) / (h * (ends[0] + ends[1])))  # their mean is as near as the slope is
    return found


def saturated():
    """Likelihoods of one release that theta hardly moves, and some that it does, with their densities."""
    likelihood = _core.LdpLikelihood
    for scale, z, mu, sigma in itertools.product(
        (0.02, 0.2, 3.0, 1e4), (-7.0, 0.0, 4.9), (-300.0, -9.0, 0.7, 6.0, 10.0), (0.05, 0.5, 40.0)
    ):
        part = likelihood.rectified("gaussian", np.array([z]), (-5.0, 5.0), scale, True)
        yield part, (mu, sigma), lambda *at, z=z, s=scale: mpmath.exp(precise_gaussian(z, *at, s))
    for upper, scale, z, rate in itertools.product(
        (1.0, 5.0), (0.02, 5.0, 1e3), (-3.0, 1e-3, 0.9, 20.0), (1e-9, 0.2, 49, 1e7)
    ):
        part = likelihood.rectified("exponential", np.array([z]), (0.0, upper), scale, True)
        yield part, (rate,), lambda rate, z=z, b=upper, s=scale: precise_exponential(z, rate, b, s)
    for family, thetas in {
        "poisson": (1e-6, 2.3, 300.0),
        "geometric": (1e-9, 0.3, 1 - 1e-9),
        "bernoulli": (1e-9, 0.3, 1 - 1e-9),
    }.items():
        bounds = (0, 1) if family == "bernoulli" else (2, 9)
        for noise, decay, z, theta in itertools.product(
            ("geometric", "laplace", "gaussian"), (1e-5, 0.2, 40.0), (-3.0, 1.0, 2.5, 12.0), thetas
        ):
            if noise == "geometric" and z % 1:
                continue
            if noise == "gaussian":
                part = likelihood.clipped(family, np.array([z]), bounds, 1 / decay, True)
            else:
                part = likelihood.whole(family, noise, decay, bounds, np.array([z]), True)
            kernel = normal(1 / decay) if noise == "gaussian" else decaying(decay)
            yield part, (theta,), lambda theta, how=(family, z), b=bounds, k=kernel: precise_whole(*how, theta, *b, k)
    for sd, z, mu, sigma in itertools.product(
        (0.02, 0.2, 3.0, 1e4), (-7.0, 0.3, 4.9), (-300.0, -9.0, 0.7, 6.0, 10.0), (0.05, 0.5, 40.0, 1e5)
    ):
        part = likelihood.clipped("gaussian", np.array([z]), (-5.0, 5.0), sd, True)
        yield part, (mu, sigma), lambda *at, z=z, s=sd: precise_clipped(z, *at, -5, 5, s)
    for upper, sd, z, rate in itertools.product(
        (1.0, 5.0, np.inf), (0.02, 5.0, 1e3), (-3.0, 1e-3, 0.9, 20.0), (1e-9, 0.2, 49, 1e7)
    ):
        part = likelihood.clipped("exponential", np.array([z]), (-np.inf, upper), sd, True)
        yield part, (rate,), lambda rate, z=z, b=upper, s=sd: precise_clipped_exponential(z, rate, mpmath.mpf(b), s)
    for sd, z, mean, spread in itertools.product((0.2, 3.0, 30.0), (-7.0, 0.0, 4.9), (-40.0, 0.7, 10.0), (0.5, 2.0)):
        part = likelihood.tractable(np.array([z]), [1.0], (-np.inf, np.inf), (-5.0, 5.0), sd, True)
        natural = (mean / spread**2, -0.5 / spread**2)
        yield part, natural, lambda *at, z=z, sd=sd: precise_tractable(z, *at, -5, 5, sd)


def test_slopes_of_saturated_likelihoods_are_right_to_eight_digits():
    known = _core.LdpLikelihood.rectified("gaussian", np.array([0.0]), (-5.0, 5.0), 0.2, True)
    assert known.value(np.array([10.0, 0.5]), True)[1][0] == pytest.approx(-5.04301515581402e-23, rel=1e-12)
    count = 0
    with mpmath.workdps(140):  # 40 for the steps, and 98 for eight of the smallest slope
        for part, at, density in saturated():
            for found, exact in zip(part.value(np.array(at, dtype=float), True)[1], slopes(density, at), strict=True):
                if abs(exact) > 1e-90:
                    count += 1
                    assert abs(found / exact - 1) < 1e-8, (at, found, mpmath.nstr(exact, 12))
    assert count > 1000


@pytest.mark.parametrize(
    ("z", "rate", "upper", "scale", "expected"),
    [
        (1, 0.7, 5, 5, -2.4766386698516205),
        (-3, 0.7, 5, 5, -3.1507305487656205),
        (9, 0.7, 5, 5, -3.7898451084254706),
        (2, 0.2, 5, 5, -2.65322641811831),
        (2, 3, 5, 1, -2.2968820635756147),
    ],
)
def test_exponential_model(z, rate, upper, scale, expected):
    part = _core.LdpLikelihood.rectified("exponential", np.array([float(z)]), (0.0, float(upper)), float(scale), True)
    value, slope = part.value(np.array([rate], dtype=float), True)
    assert value == pytest.approx(expected, abs=2e-13)
    h = 1e-6
    up, down = (part.value(np.array([rate + step]), False)[0] for step in (h, -h))
    assert slope[0] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    ("mu", "sigma", "scale"), [(0.7, 1.8, 10.0), (0.7, 6.0, 0.125), (4.9, 0.05, 2.0), (-9.0, 2.0, 1.0)]
)
def test_the_gaussian_density_integrates_to_one(mu, sigma, scale):
    inside = integrate.quad(
        lambda z: math.exp(gaussian(z, mu, sigma, scale)),
        -5,
        5,
        epsabs=1e-12,
        limit=400,
        points=[mu] if abs(mu) < 5 else None,
    )[0]
    outside = scale * (math.exp(gaussian(-5.0, mu, sigma, scale)) + math.exp(gaussian(5.0, mu, sigma, scale)))
    assert inside + outside == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("sigma", "mu"), [(1.5, 1.0), (0.5, 0.0), (0.1, 2.0), (0.01, 2.0), (1e-4, 0.0), (30.0, -4.0)])
@pytest.mark.parametrize("scale", [20.0, 10.0, 1.0])
def test_compressed_users_have_the_likelihood_of_all_users(sigma, mu, scale):
    rng = np.random.default_rng(1)
    z = np.clip(rng.normal(1, 1.5, 5000), -5, 5) + rng.laplace(0, scale, 5000)
    parts = [_core.LdpLikelihood.rectified("gaussian", z, (-5.0, 5.0), scale, exact) for exact in (True, False)]
    (full, full_slope), (fast, fast_slope) = (part.value(np.array([mu, sigma]), True) for part in parts)
    assert fast == pytest.approx(full, abs=1e-8)
    assert fast_slope == pytest.approx(full_slope, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("family", ["poisson", "geometric", "bernoulli"])
def test_whole_numbers_agree_with_the_sum_over_all_true_values(family):
    model = {"poisson": ldp.PoissonModel, "geometric": ldp.GeometricModel, "bernoulli": ldp.BernoulliModel}[family]
    mechanism = privacy.GeometricMechanism(1.5, lower=1 if family == "poisson" else 0, upper=6)
    lower, upper = mechanism.lower, mechanism.upper
    name, theta = ("rate", 2.3) if family == "poisson" else ("probability", 0.3)
    law = {
        "poisson": stats.poisson(theta),
        "geometric": stats.geom(theta, loc=-1),
        "bernoulli": stats.bernoulli(theta),
    }[family]
    x = np.arange(lower, upper + 1)
    mass = law.pmf(x)
    mass[0], mass[-1] = law.cdf(lower), law.sf(upper - 1)
    for z in (-3, 0, 1, 2, 4, 6, 9):
        expected = np.log(np.sum(mass * np.exp(mechanism.log_likelihood(z, x))))
        value, slope = model(mechanism).log_likelihood([z], gradient=True, **{name: theta})
        assert value == pytest.approx(expected, abs=1e-11)
        h = 1e-6
        ends = [model(mechanism).log_likelihood([z], **{name: theta + step}) for step in (h, -h)]
        assert slope[name] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-8)


def test_counts_with_laplace_noise_agree_with_the_sum_over_all_true_values():
    mechanism = privacy.LaplaceMechanism(2.0, 0, 6)
    x = np.arange(7)
    mass = stats.poisson(2.3).pmf(x)
    mass[-1] = stats.poisson(2.3).sf(5)
    z = np.array([-2.5, 0.0, 0.25, 3.0, 3.7, 6.0, 8.1])
    kernel = np.exp(-np.abs(z[:, None] - x) / mechanism.scale) / (2 * mechanism.scale)
    assert ldp.PoissonModel(mechanism).log_likelihood(z, rate=2.3) == pytest.approx(
        np.log(kernel @ mass).sum(), abs=1e-11
    )


def test_unary_encoding():
    model = ldp.HistogramModel(privacy.UnaryEncoding(0.7, 4))
    theta = [0.5, 0.2, 0.2, 0.1]
    assert model.log_likelihood([[1, 0, 1, 0]], theta=theta) == pytest.approx(-2.7664301704330017, abs=1e-12)
    assert model.log_likelihood([[0, 0, 0, 0]], theta=theta) == pytest.approx(-1.902705327216319, abs=1e-12)


@pytest.mark.parametrize("variant", ["optimal", "symmetric"])
@pytest.mark.parametrize("k", [2, 3, 9])
def test_rows_patterns_and_enumeration_agree(variant, k):
    mechanism = privacy.UnaryEncoding(0.9, k, variant)
    theta = np.random.default_rng(k).dirichlet(np.ones(k))
    rows = np.array(list(itertools.product([0, 1], repeat=k)), dtype=np.uint8)
    model = ldp.HistogramModel(mechanism)
    each = np.array([model.log_likelihood(row[None], theta=theta) for row in rows])
    assert np.exp(each).sum() == pytest.approx(1, abs=1e-12)
    mixture = np.exp(mechanism.log_likelihood(rows[:, None, :], np.arange(k))) @ theta
    assert each == pytest.approx(np.log(mixture), abs=1e-12)
    counts = np.random.default_rng(1).integers(0, 5, len(rows))
    patterns = ldp.HistogramModel(mechanism, data="patterns")
    value, slope = patterns.log_likelihood(rows, counts=counts, gradient=True, theta=theta)
    repeated = model.log_likelihood(np.repeat(rows, counts, axis=0), gradient=True, theta=theta)
    assert value == pytest.approx(counts @ each, rel=1e-12)
    assert value == pytest.approx(repeated[0], rel=1e-12)
    assert slope["theta"] == pytest.approx(repeated[1]["theta"], rel=1e-10)


def test_column_sums_have_the_dense_normal_likelihood():
    k, n = 5, 2000
    mechanism = privacy.UnaryEncoding(1.0, k)
    rng = np.random.default_rng(2)
    theta = rng.dirichlet(np.ones(k))
    p, q = mechanism.one_probability, mechanism.zero_probability
    mu = q + (p - q) * theta
    covariance = n * (np.diag(mu * (1 - mu) + (p - q) ** 2 * theta**2) - (p - q) ** 2 * np.outer(theta, theta))
    sums = np.round(n * mu + rng.normal(0, 10, k))
    model = ldp.HistogramModel(mechanism, data="counts")
    value, slope = model.log_likelihood(sums, n=n, gradient=True, theta=theta)
    assert value == pytest.approx(stats.multivariate_normal(n * mu, covariance).logpdf(sums), rel=1e-11)
    h = 1e-6
    for i in range(k - 1):
        step = h * (np.eye(k)[i] - np.eye(k)[-1])
        ends = [model.log_likelihood(sums, n=n, theta=theta + sign * step) for sign in (1, -1)]
        assert slope["theta"][i] - slope["theta"][-1] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_generalized_randomized_response():
    mechanism = privacy.GeneralizedRandomizedResponse(1.0, 4)
    theta = np.array([0.4, 0.3, 0.2, 0.1])
    z = np.array([0, 0, 3, 2])
    expected = np.log(np.exp(mechanism.log_likelihood(z[:, None], np.arange(4))) @ theta).sum()
    assert ldp.HistogramModel(mechanism).log_likelihood(z, theta=theta) == pytest.approx(expected, abs=1e-12)


def test_generic_family():
    g, interval = [0.3, 0.1, 0.5], (-2.0, 3.0)
    cases = [
        ((0, 0.4, -0.8), 1, 0.3819025816325702),
        ((0.1, 0.4, -0.8), 2, 0.2686599005963682),
        ((0, -1, 0.3), 0.5, 0.4732211403727507),
    ]
    for h, sd, expected in cases:
        value, slope = ldp.tractable_log_density(0.9, g, h, interval, sd, gradient=True)
        assert math.exp(value) == pytest.approx(expected, rel=1e-13)
        for i in range(3):
            ends = [
                ldp.tractable_log_density(0.9, g, np.array(h) + sign * 1e-6 * np.eye(3)[i], interval, sd)
                for sign in (1, -1)
            ]
            assert slope[i] == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-9)
    with pytest.raises(ValueError, match="h2 below"):
        ldp.tractable_log_density(0.0, [1.0], [0.0, 0.0, 0.6], (0.0, math.inf), 1.0)


def test_linear_regression_on_noisy_records():
    model = ldp.LinearRegression(
        (privacy.GaussianMechanism(sigma=0.8, sensitivity=1.0), privacy.GaussianMechanism(sigma=0.6, sensitivity=1.0))
    )
    parameters = {"coefficients": [0.7, -0.2], "residual_sd": 0.4, "covariance": [[1, 0.3], [0.3, 0.5]]}
    value = model.log_likelihood([[0.5, -1.0]], [0.3], **parameters)
    assert value == pytest.approx(-3.495953877195566, abs=1e-12)
    check_gradient(lambda **p: model.log_likelihood([[0.5, -1.0], [0.1, 2.0]], [0.3, 1.0], **p), parameters)


def check_gradient(likelihood, parameters):
    """Central differences; a covariance moves symmetrically, as in tr(G dS)."""
    _, slope = likelihood(gradient=True, **parameters)
    h = 1e-5
    for name, value in parameters.items():
        value = np.asarray(value, dtype=float)
        for index in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[index] = h
            factor = 1.0
            if name == "covariance" and index[0] != index[1]:
                step[index[::-1]] = h
                factor = 2.0
            ends = [likelihood(**parameters | {name: value + sign * step}) for sign in (1, -1)]
            assert np.asarray(slope[name])[index] * factor == pytest.approx(
                (ends[0] - ends[1]) / (2 * h), rel=2e-6, abs=1e-6
            ), (name, index)


def test_linear_regression_on_noisy_moments():
    total = statistics.svec([[25.0, 12, 3], [12, 30, -14], [3, -14, 50]])
    # svec orders (00, 01, 02, 11, 12, 22); the blocks are xx, yx, yy.
    total = total[[0, 1, 3, 2, 4, 5]]
    model = ldp.LinearRegression(
        privacy.GaussianMechanism(sigma=3.0, sensitivity=1.0), kind="statistics", noise_ratios=(2, 1)
    )
    parameters = {"coefficients": [0.5, -1.0], "residual_sd": 0.4, "covariance": [[0.3, 0.1], [0.1, 0.2]]}
    value, slope = model.log_likelihood(total, n=100, gradient=True, **parameters)
    assert value == pytest.approx(-26.20204741056053, abs=1e-11)
    assert slope["coefficients"] == pytest.approx([0.06209041, -0.49056745], abs=1e-8)
    assert slope["residual_sd"] == pytest.approx(1.3458271487, abs=1e-9)
    expected = np.array([[-0.4762197382, -0.3322230903], [-0.3322230903, 2.3699308905]])
    assert slope["covariance"] == pytest.approx(expected, abs=1e-9)


def moments(parameters, ratios):
    """Mean and covariance per user of [svec(x x'), sqrt c1 y x, sqrt c2 y^2], dense, by Isserlis."""
    theta, residual, s = (np.asarray(parameters[name]) for name in ("coefficients", "residual_sd", "covariance"))
    d = len(theta)
    b = np.vstack([np.eye(d), theta])
    c = b @ s @ b.T
    c[d, d] += residual**2
    pairs = [(i, j) for i in range(d) for j in range(i, d)] + [(i, d) for i in range(d)] + [(d, d)]
    weights = [1.0 if i == j else math.sqrt(2) for i, j in pairs[: d * (d + 1) // 2]]
    weights += [math.sqrt(ratios[0])] * d + [math.sqrt(ratios[1])]
    mean = np.array([w * c[i, j] for w, (i, j) in zip(weights, pairs, strict=True)])
    covariance = np.array(
        [
            [w * v * (c[i, k] * c[j, m] + c[i, m] * c[j, k]) for v, (k, m) in zip(weights, pairs, strict=True)]
            for w, (i, j) in zip(weights, pairs, strict=True)
        ]
    )
    return mean, covariance


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (2.0, 1.0), (1.0, 1.5), (0.5, 3.0)])
def test_moments_of_any_noise_ratios_have_the_dense_normal_likelihood(ratios):
    rng = np.random.default_rng(3)
    d, n, sigma = 3, 50, 2.0
    parameters = {
        "coefficients": rng.normal(size=d),
        "residual_sd": 0.7,
        "covariance": np.cov(rng.normal(size=(d, 20))),
    }
    mean, covariance = moments(parameters, ratios)
    covariance += sigma**2 * np.eye(len(mean))
    total = n * mean + np.sqrt(n) * rng.normal(size=len(mean)) * 3
    model = ldp.LinearRegression(
        privacy.GaussianMechanism(sigma=sigma, sensitivity=1.0), kind="statistics", noise_ratios=ratios
    )
    value = model.log_likelihood(total, n=n, **parameters)
    assert value == pytest.approx(stats.multivariate_normal(n * mean, n * covariance).logpdf(total), rel=1e-11)
    check_gradient(lambda **p: model.log_likelihood(total, n=n, **p), parameters)


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (0.5, 3.0)])
@pytest.mark.parametrize("scales", [(1.0, 8.0, 1.0), (0.5, 0.25, 3.0), (2.0, 2.0, 0.1)])
def test_moments_have_the_deviation_that_their_mechanism_gives_each_of_them(scales, ratios):
    rng = np.random.default_rng(6)
    d, n, sigma = 2, 40, 1.5
    parameters = {"coefficients": rng.normal(size=d), "residual_sd": 0.7, "covariance": np.diag([1.0, 0.5])}
    mean, covariance = moments(parameters, ratios)
    each = np.repeat(scales, [d * (d + 1) // 2, d, 1])
    covariance += np.diag((sigma * each) ** 2)
    mechanism = privacy.GaussianMechanism(sigma=sigma, radius=9.0, scales=each, dimension=len(each))
    total = n * mean + np.sqrt(n) * rng.normal(size=len(mean)) * 3
    model = ldp.LinearRegression(mechanism, kind="statistics", noise_ratios=ratios)
    value = model.log_likelihood(total, n=n, **parameters)
    assert value == pytest.approx(stats.multivariate_normal(n * mean, n * covariance).logpdf(total), rel=1e-11)
    check_gradient(lambda **p: model.log_likelihood(total, n=n, **p), parameters)
    release = mechanism.release(np.outer(np.ones(7), mean), insecure_seed=1)
    of_release = ldp.LinearRegression(kind="statistics", noise_ratios=ratios).log_likelihood(release, **parameters)
    expected = stats.multivariate_normal(7 * mean, 7 * covariance).logpdf(release.values.sum(axis=0))
    assert of_release == pytest.approx(expected, rel=1e-11)


def test_records_have_the_deviation_that_their_mechanism_gives_each_coordinate():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    scales, parameters = np.array([1.0, 6.0, 0.5]), {"coefficients": [0.5, -1.0, 0.2], "covariance": np.eye(3)}
    records = privacy.GaussianMechanism(sigma=0.7, radius=9.0, dimension=3, scales=scales)
    told = records.release(x, insecure_seed=3)
    point = parameters | {"residual_sd": 0.4}
    for given in (told, told.values):
        own = (records, None) if given is told.values else None
        value = ldp.LinearRegression(own).log_likelihood(given, y, **point)
        theta = np.asarray(point["coefficients"])
        joint = np.block([[np.eye(3), theta[:, None]], [theta[None], theta @ theta + 0.4**2]])
        joint[range(3), range(3)] += (0.7 * scales) ** 2
        expected = stats.multivariate_normal(np.zeros(4), joint).logpdf(np.column_stack([told.values, y])).sum()
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda m: ldp.LinearRegression(m(1, 1, 2, 1, 1, 1), kind="statistics").log_likelihood(
                np.ones(6), n=3, coefficients=[1, 1], residual_sd=1.0, covariance=np.eye(2)
            ),
            "same deviation for each product of x and x",
        ),
        (
            lambda m: ldp.LogisticRegression(m(1, 2, 1, 1, 1), kind="statistics").log_likelihood(
                np.ones(5), n=3, coefficients=[1, 1], covariance=np.eye(2)
            ),
            "same deviation for each product of x and y",
        ),
        (lambda m: ldp.LinearRegression(m(1, 1), kind="statistics").fit(np.ones(6), n=3), "6 scales"),
        (lambda m: ldp.LinearRegression((m(1, 2), None)).fit(np.ones((4, 3)), np.ones(4)), "3 scales"),
        (lambda m: ldp.LinearRegression((None, m(1, 2))).fit(np.ones((4, 3)), np.ones(4)), "same deviation"),
        (
            lambda m: ldp.TractableModel(m(1, 2)).fit([0.5, 0.5]),
            "no `dimension`, which TractableModel does not know, got 2",
        ),
        (
            lambda _: ldp.TractableModel(privacy.GaussianMechanism(sigma=1.0, sensitivity=1.0, scales=[1.0, 2.0])).fit(
                [0.5, 0.5]
            ),
            "same deviation",
        ),
        (
            lambda _: ldp.GaussianModel().fit(privacy.Release([1.0], privacy.PrivacyGuarantee(1.0))),
            "without it",
        ),
        (
            lambda _: ldp.TractableModel().fit(
                privacy.GaussianMechanism(1.0, radius=1.0, dimension=2).release([[0.5, 0.5]])
            ),
            "dimension",
        ),
    ],
)
def test_noise_that_a_model_has_no_place_for_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call(lambda *scales: privacy.GaussianMechanism(sigma=1.0, radius=9.0, scales=scales, dimension=len(scales)))


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        (0.5, 0.1, 0.6197048768664),
        (1, 1, 0.6967346701436833),
        (2, 4, 0.7752002453966636),
        (-1, 10, 0.3911130073963015),
        (3, 30, 0.6986769821721187),
        (100, 4900, 0.923367328521327636),  # expanded from here on; forty digits by quadrature over the logistic law
        (-200, 1e4, 0.0227678963075371737),
        (1e6, 1e12, 0.841344746068144923),
        (-3, 1e30, 0.499999999999998803),
    ],
)
def test_logistic_normal_integral(mean, variance, expected):
    assert _core.ldp_logistic_normal(mean, variance)[0] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("mean", "variance"), [(-126, 68.7), (-100, 64), (-500, 4000), (-40, 1), (-30, 0.01), (-8, 9)])
def test_logistic_normal_integrals_keep_their_digits_in_deep_tails(mean, variance):
    with mpmath.workdps(40):
        root = mpmath.sqrt(variance)
        ends = [mpmath.mpf(t) for t in range(-40, 100, 5)]
        right = mpmath.quad(lambda t: mpmath.npdf(t) / (1 + mpmath.exp(-mean - root * t)), ends)
    assert _core.ldp_logistic_normal(mean, variance)[0] == pytest.approx(float(right), rel=1e-11)


def test_logistic_likelihoods_go_on_beyond_their_table():
    # Without noise P(1) is the sigmoid: its logarithm at means about the table's end at 60, beside a far one.
    model = ldp.LogisticRegression()
    parameters = {"coefficients": np.array([1.0]), "covariance": np.array([[1.0]])}
    for mean in (-59.97, -60.0, -60.01, -60.03, -60.04, -60.05, -60.0624, -60.0626, -61.0, -80.0):
        found = model.log_likelihood(np.array([[mean], [-100.0]]), [1, 1], **parameters)
        inputs = stats.norm.logpdf([mean, -100.0]).sum()
        assert found - inputs == pytest.approx(mean - 100, abs=1e-9)


def test_logistic_normal_integral_is_expanded_where_it_was_summed():
    # Either side of 64 deviations, and the derivatives by differences and by the heat equation.
    for z in (-9.0, -3.0, -0.4, 0.0, 1.0, 4.0):
        below, above = (_core.ldp_logistic_normal(z * root, root**2) for root in (64 - 1e-7, 64 + 1e-7))
        assert below == pytest.approx(above, abs=2e-10)
        here, there = (_core.ldp_logistic_normal(80 * z + h, 6400.0) for h in (-0.5, 0.5))
        middle = _core.ldp_logistic_normal(80 * z, 6400.0)
        assert there[0] - here[0] == pytest.approx(middle[1], abs=1e-7)
        assert there[1] - here[1] == pytest.approx(middle[2], abs=1e-9)
        more, less = (_core.ldp_logistic_normal(80 * z, 6400.0 + h)[0] for h in (1.0, -1.0))
        assert more - less == pytest.approx(middle[2], abs=1e-10)


@pytest.mark.parametrize("size", [1.0, 300.0, 1e6])
@pytest.mark.parametrize("sigma", [0.05, 0.5, 3.0])
def test_logistic_regression_on_noisy_records(sigma, size):
    # Coefficients of any size, as a sampler tries them: memory and time are bounded.
    rng = np.random.default_rng(4)
    d, n = 2, 30
    x, y = rng.normal(size=(n, d)) * 2, rng.integers(0, 2, n)
    flip = privacy.RandomizedResponse(1.0)
    model = ldp.LogisticRegression((privacy.GaussianMechanism(sigma=sigma, sensitivity=1.0), flip))
    parameters = {"coefficients": size * np.array([1.5, -0.8]), "covariance": np.array([[1.0, 0.3], [0.3, 0.5]])}
    s, theta = parameters["covariance"], parameters["coefficients"]
    k = s + sigma**2 * np.eye(d)
    expected = stats.multivariate_normal(np.zeros(d), k).logpdf(x).sum()
    b = np.linalg.solve(k, s @ theta)
    variance = theta @ s @ theta - theta @ s @ b
    for row, label in zip(x, y, strict=True):
        e = _core.ldp_logistic_normal(float(row @ b), float(variance))[0]
        p = flip.keep_probability
        expected += math.log(p * e + (1 - p) * (1 - e)) if label else math.log((1 - p) * e + p * (1 - e))
    assert model.log_likelihood(x, y, **parameters) == pytest.approx(expected, abs=1e-8)
    check_gradient(lambda **p: model.log_likelihood(x, y, **p), parameters)


@pytest.mark.parametrize(
    ("size", "scales"), [(1.0, None), (1.0, (1.0, 4.0)), (1.0, (3.0, 0.5)), (35.0, None), (36.0, None), (1e9, None)]
)
def test_logistic_regression_on_noisy_moments(size, scales):
    # Coefficients of any size here, too: the deviation of x . coefficients is 63 at 35 and 65 at 36.
    rng = np.random.default_rng(5)
    d, n, sigma, ratio = 3, 200, 2.0, 0.7
    theta, s = size * np.array([1.0, -2.0, 0.5]), np.cov(rng.normal(size=(d, 20)))
    a = s @ theta
    v = theta @ a
    with mpmath.workdps(50):

        def expected(slope):
            weighed = lambda t: slope(mpmath.tanh(t / 2) ** 2) * mpmath.npdf(t, 0, mpmath.sqrt(v))  # noqa: E731
            return float(mpmath.quad(weighed, mpmath.linspace(-100, 100, 21)))

        k1, k3 = expected(lambda g2: (1 - g2) / 2), expected(lambda g2: (1 - g2) * (3 * g2 - 1) / 4)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    w = np.sqrt(ratio) * np.array([1.0 if i == j else math.sqrt(2) for i, j in pairs])
    mean = np.concatenate([k1 * a, w * np.array([s[i, j] for i, j in pairs])])
    top = s - k1**2 * np.outer(a, a)
    cross = (
        np.array(
            [[k1 * (s[i, k] * a[j] + s[j, k] * a[i]) + k3 * a[i] * a[j] * a[k] for i, j in pairs] for k in range(d)]
        )
        * w
    )
    bottom = np.array([[s[i, k] * s[j, m] + s[i, m] * s[j, k] for k, m in pairs] for i, j in pairs]) * np.outer(w, w)
    each = None if scales is None else np.repeat(scales, [d, d * (d + 1) // 2])
    covariance = np.block([[top, cross], [cross.T, bottom]])
    covariance += np.diag(np.full(len(mean), sigma**2) if each is None else (sigma * each) ** 2)
    total = n * mean + 30 * rng.normal(size=len(mean))
    model = ldp.LogisticRegression(
        privacy.GaussianMechanism(sigma=sigma, sensitivity=1.0, scales=each), kind="statistics", noise_ratio=ratio
    )
    parameters = {"coefficients": theta, "covariance": s}
    value = model.log_likelihood(total, n=n, **parameters)
    assert value == pytest.approx(stats.multivariate_normal(n * mean, n * covariance).logpdf(total), rel=1e-10)
    check_gradient(lambda **p: model.log_likelihood(total, n=n, **p), parameters)


def test_statistics_are_scaled_second_moments():
    x, y = np.array([[0.6, 0.0, 0.3]]), np.array([0.5])
    told = statistics.linear(x, y, x_bound=1.0, y_bound=1.0, noise_ratios=(4.0, 9.0))[0]
    assert told == pytest.approx([*statistics.svec(np.outer(x, x)), *(2 * 0.5 * x[0]), 3 * 0.25])
    clipped = statistics.linear(x * 100, y * 100, x_bound=1.0, y_bound=2.0)[0]
    assert clipped[0] + clipped[3] + clipped[5] == pytest.approx(1.0)
    assert clipped[-1] == pytest.approx(4.0)


@pytest.mark.parametrize("b", [0.05, 0.1, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("a", [0.05, 0.1, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("data", [[1] * 3, [0] * 3, [1, 0, 1], [1] * 100])
def test_posteriors_of_bits_are_beta_laws_however_much_mass_lies_at_an_end(data, a, b):
    model = ldp.BernoulliModel(priors={"probability": priors.Beta(a, b)}).fit(data)
    ones = sum(data)
    law = stats.beta(a + ones, b + len(data) - ones)
    evidence = special.betaln(a + ones, b + len(data) - ones) - special.betaln(a, b)
    assert model.posterior_mean_["probability"] == pytest.approx(law.mean(), abs=1e-9 * law.std())
    assert model.posterior_sd_["probability"] == pytest.approx(law.std(), rel=1e-9)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-9)


@pytest.mark.parametrize("shape", [0.01, 0.05, 0.5])
def test_posteriors_of_rates_are_gamma_laws_however_near_zero(shape):
    model = ldp.PoissonModel(priors={"rate": priors.Gamma(shape, 1.0)}).fit([0, 0])
    assert model.posterior_mean_["rate"] == pytest.approx(shape / 3, rel=1e-9)
    assert model.log_evidence_ == pytest.approx(-shape * math.log(3), abs=1e-9)


@pytest.mark.parametrize("sd", [1.0, 2.0, 2.5, 3.0, 3.5, 4.0])
def test_moments_of_heavy_tails_are_those_of_a_sum_over_the_logarithm(sd):
    # The square of the rate times its density is largest at the logarithm 2 sd^2, where the density is tiny.
    mechanism, released = privacy.GeometricMechanism(0.01, lower=0, upper=3), [1, -50, 40]
    model = ldp.PoissonModel(mechanism, priors={"rate": priors.LogNormal(0, sd)}, inference="quadrature").fit(released)
    u = np.linspace(-60, 80, 200_001)
    rates, alpha = np.exp(u), math.exp(-0.01 / 3)
    masses = [*(stats.poisson.pmf(count, rates) for count in range(3)), stats.poisson.sf(2, rates)]
    likelihoods = [sum(mass * alpha ** abs(z - count) for count, mass in enumerate(masses)) for z in released]
    weights = np.prod(likelihoods, axis=0) * np.exp(-0.5 * (u / sd) ** 2)
    mean = rates @ weights / weights.sum()
    deviation = math.sqrt(rates**2 @ weights / weights.sum() - mean**2)
    assert model.posterior_mean_["rate"] == pytest.approx(mean, rel=1e-9)
    assert model.posterior_sd_["rate"] == pytest.approx(deviation, rel=1e-9)
