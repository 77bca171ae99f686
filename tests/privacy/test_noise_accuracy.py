"""Accuracies and intervals: never below the confidence, and the least, against exact arithmetic and by draws."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.statistics import FALSE_ALARM

from quincunx import privacy
from quincunx.privacy import noise

CONFIDENCES = [1e-12, 0.05, 0.5, 0.9, 0.95, 1 - 1e-9, 1 - 2.0**-53]
DRAWS = 100_000


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "law",
    [
        *(noise.GeometricNoise(exponent=Fraction(word)) for word in (2.0**-62, 1e-9, "1/5", "7/3", 1024)),
        *(noise.GeometricNoise(alpha) for alpha in (1e-300, 0.3, 0.999, 1 - 2.0**-50)),
        privacy.GeometricMechanism(0.3, n=2).noise,
        privacy.GeometricMechanism(scale=1e9).noise,
    ],
    ids=repr,
)
def test_the_accuracy_of_geometric_noise_is_the_least(law, confidence):
    k = law.accuracy(confidence)
    with mpmath.workdps(150):
        if law.exponent is None:
            alpha = mpmath.mpf(law.alpha)
        else:
            alpha = mpmath.exp(-mpmath.mpf(law.exponent.numerator) / law.exponent.denominator)
        within = lambda k: 1 - 2 * alpha ** (k + 1) / (1 + alpha)  # noqa: E731
        assert within(k) >= mpmath.mpf(confidence)
        assert k == 0 or within(k - 1) < mpmath.mpf(confidence)


@pytest.mark.parametrize("alpha", [0.5, 0.25, 0.875, 0.96875])
@pytest.mark.parametrize("confidence", CONFIDENCES[:-1])
def test_the_accuracy_of_geometric_noise_is_the_least_by_sums_of_fractions(alpha, confidence):
    ratio, k = Fraction(alpha), noise.GeometricNoise(alpha).accuracy(confidence)
    mass = (1 - ratio) / (1 + ratio)
    total, found = mass, 0
    while total < Fraction(confidence):
        found += 1
        total += 2 * mass * ratio**found
    assert k == found


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("variance", [0.002, 0.2, 1.0, 4.5, 1e3, 3e6, 1e10])
def test_the_accuracy_of_discrete_gaussian_noise_is_the_least(variance, confidence):
    k = noise.DiscreteGaussianNoise(variance).accuracy(confidence)
    with mpmath.workdps(50):
        v, c = mpmath.mpf(variance), mpmath.mpf(confidence)
        density = lambda j: mpmath.exp(-j * j / (2 * v))  # noqa: E731

        def beyond(k):
            if variance <= 1e3:
                return mpmath.fsum(density(mpmath.mpf(j)) for j in range(k + 1, k + 60 + int(14 * math.sqrt(variance))))
            # The rule of midpoints: its next term is (k / v)^4 of this, relative.
            at = k + mpmath.mpf(1) / 2
            return mpmath.sqrt(mpmath.pi * v / 2) * mpmath.erfc(at / mpmath.sqrt(2 * v)) - at / v * density(at) / 24

        whole = 1 + 2 * beyond(0)
        assert 2 * beyond(k) <= (1 - c) * whole
        assert k == 0 or 2 * beyond(k - 1) > (1 - c) * whole


def within_of_grid(cdf, step, offset, reach, rounded_first):
    """P(|z - x| <= a), x and a in steps, where x is rounded to the grid before the noise, or the sum after it."""
    first, last = mpmath.ceil(offset - reach), mpmath.floor(offset + reach)
    if rounded_first:  # noise of whole steps
        place = mpmath.nint(offset)
        return cdf(last - place) - cdf(first - place - 1)
    half = mpmath.mpf(1) / 2
    return cdf((last + half - offset) * step) - cdf((first - half - offset) * step)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "mechanism",
    [
        privacy.LaplaceMechanism(1.0, -5, 5),
        privacy.LaplaceMechanism(1e-6, 0, 1),
        privacy.LaplaceMechanism(1, 1e15, 1e15 + 1),
        privacy.LaplaceMechanism(50.0, -1e-200, 1e-200),
        privacy.LaplaceMechanism(0.5, sensitivity=2.0),
        privacy.LaplaceMechanism(30.0, sensitivity=1e200),
        privacy.GaussianMechanism(sigma=0.75, sensitivity=1.0),
        privacy.GaussianMechanism(1.0, 1e-300, sensitivity=1e-200),
        privacy.GaussianMechanism(sigma=1e150, radius=1.0),
    ],
    ids=repr,
)
def test_the_accuracy_on_a_grid_is_never_below_and_hardly_above_the_least(mechanism, confidence):
    law = mechanism.noise
    a = law.accuracy(confidence)
    with mpmath.workdps(60):
        step = mpmath.mpf(law.step)
        rounded_first = isinstance(law, noise.LaplaceNoise) and law.lower is not None
        if rounded_first:
            alpha = mpmath.exp(-step / mpmath.mpf(law.scale))

            def cdf(k):  # of two-sided geometric noise
                return 1 - alpha ** (k + 1) / (1 + alpha) if k >= 0 else alpha ** (-k) / (1 + alpha)
        elif isinstance(law, noise.LaplaceNoise):

            def cdf(t):
                t = t / mpmath.mpf(law.scale)
                return 1 - mpmath.exp(-t) / 2 if t >= 0 else mpmath.exp(t) / 2
        else:

            def cdf(t):
                return mpmath.ncdf(t / mpmath.mpf(law.sigma))

        offsets = [mpmath.mpf(part) for part in (0, 0.5, -0.5, 0.3, 0.4999, 2.0**-30, -0.1)]
        reach = mpmath.mpf(a) / step
        for offset in offsets:
            assert within_of_grid(cdf, step, offset, reach, rounded_first) >= mpmath.mpf(confidence)
        less = reach * (1 - mpmath.mpf(2) ** -44) - mpmath.mpf(3) / 2
        assert min(within_of_grid(cdf, step, offset, less, rounded_first) for offset in offsets) < confidence


def test_ideal_noise_has_its_quantiles():
    for confidence in CONFIDENCES:
        with mpmath.workdps(40):
            c = mpmath.mpf(confidence)
            quantile = (
                mpmath.findroot(
                    lambda t, c=c: mpmath.erf(t / mpmath.sqrt(2)) - c, math.sqrt(-2 * math.log1p(-confidence))
                )
                if confidence < 0.99
                else mpmath.sqrt(2) * mpmath.erfinv(c)
            )
            for exact, found in [
                (3 * quantile, noise.GaussianNoise(3.0).accuracy(confidence)),
                (-2 * mpmath.log(1 - c), noise.LaplaceNoise(2.0).accuracy(confidence)),
            ]:
                assert exact <= found <= exact * (1 + 1e-12)


MECHANISMS = [
    (privacy.GeometricMechanism(0.4, n=1), np.full(DRAWS, 7)),
    (privacy.GeometricMechanism(2.0, lower=-3, upper=9), np.arange(DRAWS) % 13 - 3),
    (privacy.DiscreteGaussianMechanism(variance=30), np.full(DRAWS, -5)),
    (privacy.DiscreteGaussianMechanism(variance=2.5, lower=0, upper=4), np.arange(DRAWS) % 5),
    (privacy.LaplaceMechanism(1.0, -5, 5), np.linspace(-5, 5, DRAWS)),
    (privacy.LaplaceMechanism(1.0, sensitivity=3.0), np.linspace(-5, 5, DRAWS)),
    (privacy.GaussianMechanism(sigma=2.0, radius=1.0), np.linspace(-1, 1, DRAWS)),
    (
        privacy.GaussianMechanism(sigma=2.0, radius=9.0, dimension=2, scales=[1.0, 5.0]),
        np.linspace(-4, 4, DRAWS).reshape(-1, 2),
    ),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("mechanism", "x"), MECHANISMS, ids=lambda part: repr(part)[:40])
def test_intervals_of_releases_hold_the_private_numbers_as_often_as_they_say(mechanism, x):
    """A share below the confidence by 5.5 deviations comes once in 10^7; at .5 an error of .9 % is seen."""
    assert FALSE_ALARM >= 1e-7
    for confidence in (0.5, 0.9, 0.999):
        release = mechanism.release(x, insecure_seed=9)
        lower, upper = release.interval(confidence)
        assert lower.shape == upper.shape == release.shape
        share = np.mean((lower <= x) & (x <= upper))
        slack = 5.5 * math.sqrt(confidence * (1 - confidence) / DRAWS)
        assert share >= confidence - slack
        plain = np.abs(release.values - x) <= mechanism.accuracy(confidence)
        assert np.array_equal((lower <= x) & (x <= upper), plain) or mechanism.noise.facts().get("lower") is not None
        if isinstance(mechanism.noise, (noise.LaplaceNoise, noise.GaussianNoise)):
            assert plain.mean() <= confidence + slack
        else:
            assert np.mean(np.abs(release.values - x) <= mechanism.accuracy(confidence) - 1) < confidence + slack


def test_intervals_lie_within_the_bounds_and_follow_the_shape():
    lower, upper = (
        privacy.GeometricMechanism(1.0, lower=0, upper=5).release([0, 5, 3] * 50, insecure_seed=1).interval(0.9)
    )
    assert lower.dtype == upper.dtype == np.int64
    assert lower.min() >= 0
    assert upper.max() <= 5
    assert (lower <= upper).all()
    lower, upper = privacy.GaussianMechanism(sigma=3.0, radius=1.0).release(np.zeros(50), insecure_seed=1).interval()
    assert (lower >= -1).all()
    assert (upper <= 1).all()
    each = privacy.privatize([[1, 2], [3, 4]], epsilon=[[1.0, 2.0], [0.5, 4.0]], insecure_seed=1)
    found = each.noise.accuracy(0.9)
    alone = [
        [privacy.GeometricMechanism(epsilon, n=1).accuracy(0.9) for epsilon in row] for row in [[1.0, 2.0], [0.5, 4.0]]
    ]
    assert found.tolist() == alone
    assert np.array_equal(each.interval(0.9)[1] - each.values, found)
    assert np.array_equal(each[1].interval(0.9)[0], each.values[1] - found[1])
    masked = privacy.privatize(np.ma.array([3, 4], mask=[0, 1]), epsilon=1.0)
    assert masked.interval()[0].mask.tolist() == [False, True]
    z = [2**63 - 1, 2**62, 5, -(2**62), -(2**63)]
    for bounds in ((None, None), (-7, 2**61)):
        low, high = (end or 2**62 * sign for end, sign in zip(bounds, (-1, 1), strict=True))
        for law in (noise.GeometricNoise(exponent=2.0**-60, lower=bounds[0], upper=bounds[1]),
                    noise.GeometricNoise(0.5, *bounds)):  # fmt: skip
            a, (lower, upper) = law.accuracy(1 - 1e-9), law.interval(z, 1 - 1e-9)
            assert lower.tolist() == [min(max(value - a, low), high) for value in z]
            assert upper.tolist() == [min(max(value + a, low), high) for value in z]
    scaled = privacy.GaussianMechanism(sigma=1.0, radius=1.0, dimension=2, scales=[1.0, 3.0])
    assert scaled.accuracy(0.9).round(4).tolist() == [1.6449, 4.9346]


@pytest.mark.parametrize(
    ("mechanism", "instead"),
    [
        (privacy.RandomizedResponse(1.0), "estimate"),
        (privacy.GeneralizedRandomizedResponse(1.0, 3), "estimate"),
        (privacy.UnaryEncoding(1.0, 3), "estimate"),
        (privacy.HadamardResponse(1.0, 3), "estimate"),
        (privacy.ExponentialMechanism(1.0, sensitivity=1.0), "utility_bound"),
    ],
    ids=repr,
)
def test_what_adds_no_noise_refuses_and_says_what_serves_instead(mechanism, instead):
    release = mechanism.release([[0.0, 1.0]] if instead == "utility_bound" else [0, 1], insecure_seed=1)
    for call in (mechanism.accuracy, release.interval, mechanism.noise.accuracy):
        with pytest.raises(TypeError, match=instead):
            call(0.9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 1.5, math.nan, math.inf])
@pytest.mark.parametrize("mechanism", [mechanism for mechanism, _ in MECHANISMS], ids=lambda m: m.noise.kind)
def test_a_confidence_is_a_probability(mechanism, confidence):
    with pytest.raises(ValueError, match="`confidence`"):
        mechanism.accuracy(confidence)
    with pytest.raises(ValueError, match="without its noise"):
        privacy.Release([1.0], privacy.PrivacyGuarantee(1.0)).interval()
