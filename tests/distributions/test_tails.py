"""Tails of every law at all scales of its parameters, subnormal ones included, against multiple precision."""

import itertools
import math

import mass_oracle as oracle
import mpmath as mp
import numpy as np
import pytest

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

SCALES = [5e-324, 1e-310, 1e-300, 1e-160, 1e-130, 1e-80, 1e-17, 1e-10, 1e-6, 1e-3, 0.5, 1.0, 1.9, 2.1, 6.0, 40.0, 900.0]
LEAST = mp.mpf(2) ** -1074


def check_tails(law, k, lower, upper):
    """Probabilities to 1e-13, and what an error of 4e-15 of the shorter tail's logarithm makes; so their logarithms."""
    accuracy = 1e-13 - 4e-15 * mp.log(min(lower, upper))
    for log, value, exact, other in (
        (law.logcdf(k), law.cdf(k), lower, upper),
        (law.logccdf(k), law.ccdf(k), upper, lower),
    ):
        size = mp.log(exact) if exact < 0.5 else mp.log1p(-other)
        where = f"{law}, k = {k}: {log!r}, {value!r} for {mp.nstr(size, 20)}, {mp.nstr(exact, 20)}"
        assert abs(log - size) <= min(accuracy * -size, 1e-13 - 4e-15 * size) + LEAST, where
        assert abs(value - exact) <= (1e-13 - 4e-15 * size) * exact + LEAST, where


def check_quantiles(law, k, upper, before):
    """The first value whose upper tail is at most p: k, for p between the tail at k and the one before."""
    if upper < before * mp.mpf("0.999") and before > 1e-300:
        p = float(mp.sqrt(max(upper, mp.mpf("1e-305")) * before))
        if upper * (1 + mp.mpf("1e-12")) < p < before * (1 - mp.mpf("1e-12")):
            assert law.iccdf(p) == k, f"{law}: {p} at {k}"


def sums(log_mass, least, most):
    """P(X <= k) and P(X > k) for all k of a range that holds all but nothing of the mass."""
    masses = [mp.exp(log_mass(k)) for k in range(least, most + 1)]
    lower, upper = [mp.mpf(0)], [mp.mpf(0)]
    for mass in masses:
        lower.append(lower[-1] + mass)
    for mass in reversed(masses):
        upper.append(upper[-1] + mass)
    return {least + i: (lower[i + 1], upper[len(masses) - 1 - i]) for i in range(len(masses))}


def beyond(mean, variance, deviations=14):
    return int(mean + deviations * math.sqrt(variance)) + 40


ORDERS = [0, 1, 5, 60, 10**5]


@pytest.mark.parametrize("argument", SCALES)
def test_bessel_tails(argument):
    for order in ORDERS:
        law = Bessel(order, argument)
        middle = float(law.mean())
        most = beyond(middle, float(law.variance()))
        with mp.workdps(40):
            tails = sums(lambda n: oracle.log_bessel_mass(n, order, argument), 0, most)  # noqa: B023
            places = {0, 1, 2, 3, int(middle), int(middle) + 1, int(0.8 * middle), int(1.2 * middle) + 5}
            for k in sorted(places):
                check_tails(law, k, *tails[k])
                check_quantiles(law, k, tails[k][1], tails[k - 1][1] if k else mp.mpf(1))


def test_the_reported_bessel_tails():
    assert Bessel(0, 1e-10).ccdf(0) == pytest.approx(2.5e-21, rel=1e-13)
    assert Bessel(0, 1e-300).logccdf(0) == pytest.approx(-1382.937350, rel=1e-9)
    assert Bessel(5, 1e-6).ccdf(0) == pytest.approx(1e-12 / 24, rel=1e-12)
    assert Bessel(0, 1e-10).iccdf(1e-22) == 1
    assert Bessel(0, 1e-10).iccdf(3e-21) == 0


@pytest.mark.parametrize("plus", [0.0, *SCALES])
def test_skellam_tails(plus):
    minuses = [0.0, *SCALES[::3], 1.0, 6.0] if plus < 100 else [0.0, SCALES[0], 1e-17, 1.9, 40.0]
    for minus in minuses:
        law = Skellam(plus, minus)
        if plus == minus == 0.0:
            assert (law.cdf(0), law.ccdf(0), law.cdf(-1)) == (1.0, 0.0, 0.0)
            continue
        middle, most = plus - minus, beyond(0.0, plus + minus, deviations=10)
        least, most = int(middle) - most, int(middle) + most

        def log_mass(k):
            with mp.workdps(40):
                if minus == 0 or plus == 0:  # noqa: B023
                    rate, count = (plus, k) if minus == 0 else (minus, -k)  # noqa: B023
                    if count < 0:
                        return mp.ninf
                    return count * mp.log(mp.mpf(rate)) - rate - mp.loggamma(count + 1)
                return oracle.log_skellam_mass(k, plus, minus)  # noqa: B023

        with mp.workdps(40):
            tails = sums(log_mass, least, most)
            for k in sorted({-2, -1, 0, 1, 2, int(middle), int(middle) + 3} & set(range(least, most))):
                lower, upper = tails[k]
                if lower == 0:
                    assert (law.cdf(k), law.ccdf(k)) == (0.0, 1.0)
                elif upper == 0:
                    assert (law.cdf(k), law.ccdf(k)) == (1.0, 0.0)
                else:
                    check_tails(law, k, lower, upper)
                    check_quantiles(law, k, upper, tails[k - 1][1] if k > least else mp.mpf(1))


def test_two_sided_geometric_tails():
    decays = [1e-16, 1e-12, 1e-6, 1e-3, 0.1, 0.7, 1.0, 5.0, 40.0, 700.0, 5000.0]
    for law, e in [(TwoSidedGeometric(epsilon_per_unit=decay), mp.mpf(decay)) for decay in decays] + [
        (TwoSidedGeometric(alpha), -mp.log(mp.mpf(alpha))) for alpha in (5e-324, 1e-300, 0.3, 1 - 2.0**-53)
    ]:
        for k in (-(10**6), -3, -2, -1, 0, 1, 2, 10**6):
            with mp.workdps(60):
                far = mp.exp(-e * (k + 1 if k >= 0 else -k)) / (1 + mp.exp(-e))
                check_tails(law, k, *((1 - far, far) if k >= 0 else (far, 1 - far)))


RATES = [5e-324, 1e-310, 1e-160, 1e-20, 1e-6, 0.3, 3.0, 70.0]
ALPHAS = [5e-324, 1e-300, 1e-20, 1e-3, 0.4, 0.95, 1 - 1e-12]


@pytest.mark.parametrize("released", [-3, 0, 1, 5, 60])
def test_two_piece_poisson_tails(released):
    # Every second pair for an odd release, the others for an even one.
    for i, j in itertools.product(range(len(RATES)), range(len(ALPHAS))):
        if (i + j + released) % 2:
            continue
        rate, alpha = RATES[i], ALPHAS[j]
        law = TwoPiecePoisson(released, rate, alpha)
        most = max(beyond(2 * rate, 2 * rate), released + 60)
        with mp.workdps(60):
            weights = [mp.exp(oracle.log_two_piece_weight(y, released, rate, alpha)) for y in range(most)]
            total = mp.fsum(weights)
            tails = sums(lambda y: mp.log(weights[y] / total), 0, most - 1)  # noqa: B023
            for k in sorted({0, 1, 2, 3, max(released - 1, 0), max(released, 0), released + 7, int(law.mean())}):
                if k >= 0:
                    check_tails(law, k, *tails[k])
                    check_quantiles(law, k, tails[k][1], tails[k - 1][1] if k else mp.mpf(1))


@pytest.mark.parametrize(
    ("released", "rate", "alpha"),
    [
        (2 * 10**8, 1e7 / 7, 1 / 70),
        (10**8, 1e7 / 7, 1 / 70),
        (99_990_000, 1e7 / 7, 1 / 70),
        (10**8, 3e8 / 7, 0.9),
        (3 * 10**8, 1e9 / 3, 0.9),
        (3 * 10**8, 1e9 / 3, 0.8999),
        (10**12, 1e12 / 3, 1 / 3),
        (10**15, 1e15 / 7, 1 / 70),
        (1000, 1e15 / 7, 1 / 70),
        (10**8, 1e8, 1 - 1e-9),
    ],
)
def test_log_masses_of_large_counts_keep_their_accuracy(released, rate, alpha):
    law = TwoPiecePoisson(released, rate, alpha)
    mean, sigma = float(law.mean()), float(law.standard_deviation())
    worst = 0
    with mp.workdps(60):
        try:
            total = oracle.log_two_piece_total(released, rate, alpha) if mean < 1.5e8 else None
        except mp.libmp.NoConvergence:
            total = None
        base = int(mean)
        for z in (-30, -8, -3, -1, -0.1, 0, 0.2, 1, 2.5, 8, 30):
            y = int(mean + z * sigma)
            exact = oracle.log_two_piece_weight(y, released, rate, alpha)
            if total is None:  # against the mass at the middle: the normalizer drops out
                reference = oracle.log_two_piece_weight(base, released, rate, alpha)
                error = (law.logpmf(y) - law.logpmf(base)) - (exact - reference)
                size = max(1, -law.logpmf(y), -law.logpmf(base)) * 2
            else:
                error, size = law.logpmf(y) - (exact - total), max(1, total - exact)
            worst = max(worst, abs(error) / size)
    print(f"{law}: {float(worst):.2e}")
    assert worst <= 4e-15


def integrated_tail(log_mass, k, sigma):
    """Sum of a smooth log-concave mass beyond k: the integral from k + 1/2, and two of Gauss's corrections."""
    start, step = mp.mpf(k) + mp.mpf(1) / 2, mp.mpf(sigma)
    ends = [start + step * i / 2 for i in range(31)]
    whole = mp.quad(lambda x: mp.exp(log_mass(x)), ends, method="gauss-legendre", maxdegree=4)
    far, near, back, beyond = (mp.exp(log_mass(start + step)) for step in (1.5, 0.5, -0.5, -1.5))
    return whole + (near - back) / 24 - mp.mpf(17) / 5760 * (far - 3 * near + 3 * back - beyond)


@pytest.mark.parametrize("size", [1e6, 1e8, 1e11, 1e15])
@pytest.mark.parametrize("z", [0.3, 2.0, 6.0])
def test_tails_of_large_counts(size, z):
    """Places beyond 2**30 have coarse fractions, which an integral over them must not feel."""
    sigma = math.sqrt(size)
    k = int(size + z * sigma)
    with mp.workdps(45):
        rate = mp.mpf(size)

        def poisson(x):
            return x * mp.log(rate) - rate - mp.loggamma(x + 1)

        exact = integrated_tail(poisson, k, sigma)
        check_tails(Skellam(size, 0.0), k, 1 - exact, exact)
        check_tails(Skellam(0.0, size), -k - 1, exact, 1 - exact)
        # A two-piece law whose mode lies in its upper piece, of the same rate.
        law = TwoPiecePoisson(3, size / 0.5, 0.5)
        check_tails(law, k, 1 - exact, exact)
        argument = 2 * size
        if size <= 1e11:
            bessel = integrated_tail(large_bessel(mp.mpf(argument)), k, sigma)
            check_tails(Bessel(0, argument), k, 1 - bessel, bessel)


def large_bessel(argument):
    """The function of n that is ln of (a/2)^(2n) / (n!^2 I_0(a)) for a large argument."""
    series = mp.nsum(lambda j: mp.rf(mp.mpf(1) / 2, j) ** 2 / (mp.factorial(j) * (2 * argument) ** j), [0, 4])
    log_whole = argument - mp.log(2 * mp.pi * argument) / 2 + mp.log(series)
    log_half = mp.log(argument / 2)
    return lambda n: 2 * n * log_half - 2 * mp.loggamma(n + 1) - log_whole


def test_logarithmic_quantiles_of_the_steps_themselves_are_those_steps():
    places = np.arange(-6.0, 9.0)
    for law in (Skellam(3.0, 2.0), TwoSidedGeometric(0.5)):
        assert (law.ilogcdf(law.logcdf(places)) == places).all()
        assert (law.ilogccdf(law.logccdf(places)) == places).all()


def test_the_ends_of_wide_laws_are_found_without_a_walk():
    law = Skellam(1e15, 1e15)  # the search for an end of it took longer than anybody waits
    assert (law.ilogccdf(0.0), law.ilogcdf(0.0), law.ilogcdf(-np.inf), law.ilogccdf(-np.inf)) == (
        -np.inf,
        np.inf,
        -np.inf,
        np.inf,
    )
    both = law.ilogccdf([0.0, math.log(0.5)])
    assert both[0] == -np.inf
    assert abs(both[1]) <= 1


def test_a_skellam_tail_has_the_same_bits_alone_and_in_an_array():
    rates = np.array([0.0, 1e-200, 0.003, 0.1, 1.0, 9.0, 22.0, 70.0, 500.0, 3e3, 2e4, 1e6])
    plus, minus = (column.ravel() for column in np.meshgrid(rates, rates))
    spread = np.random.default_rng(1).normal(size=plus.size)
    points = np.round(plus - minus + 4 * spread * np.sqrt(plus + minus + 1))
    for function in ("cdf", "ccdf", "logcdf", "logccdf"):
        together = getattr(Skellam(plus, minus), function)(points)
        turned = getattr(Skellam(plus[::-1], minus[::-1]), function)(points[::-1])
        alone = [getattr(Skellam(*law), function)(k) for *law, k in zip(plus, minus, points, strict=True)]
        assert np.array_equal(together, turned[::-1])
        assert together.tolist() == alone


LAST = 2**53


def far_tail(law, rates, k):
    """ln P(X > k) of a Skellam law far above its mode, its masses summed as a geometric series by their first ratio."""
    plus, minus = (mp.mpf(rate) for rate in rates)
    with mp.workdps(60):
        above = mp.mpf(k + 1)
        half = mp.sqrt((above + 1) ** 2 + 4 * plus * minus)
        ratio = 2 * plus / (above + 1 + half)
        h = mp.sqrt(above**2 + 4 * plus * minus)
        up, down = (h + above) / 2, (h - above) / 2
        deviances = sum(
            n * mp.log(n / rate) - n + rate if n > 0 else rate for n, rate in ((up, plus), (down, minus)) if rate > 0
        )
        return -deviances - mp.log(2 * mp.pi * h) / 2 - mp.log1p(-ratio)


def assert_tails_are_all(law, places):
    """Both tails at each place are probabilities that sum to one."""
    for k in places:
        assert 0.0 <= law.cdf(k) <= 1.0
        assert 0.0 <= law.ccdf(k) <= 1.0
        assert law.cdf(k) + law.ccdf(k) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    "rates",
    [
        (0.1, 0.2),
        (1e5, 1e5),
        (1e5, 3.0),
        (2.0**40, 2.0**50),
        (2.0**53, 2.0**53),
        (LAST - 4e14, 5.0),
        (30.0, 0.0),
        (0.0, 3e7),
    ],
)
def test_tails_at_the_last_numbers_end(rates):
    law, mirrored = Skellam(*rates), Skellam(*rates[::-1])
    assert_tails_are_all(law, (-LAST, 1 - LAST, 0, LAST - 1, LAST))
    for k in (LAST - 1, LAST):
        if rates[0] == 0.0:
            assert law.logccdf(k) == mirrored.logcdf(-k - 1 if k < LAST else -k) == -math.inf
            continue
        exact = far_tail(law, rates, k)
        assert abs(law.logccdf(k) - exact) <= -4e-15 * exact
        if k < LAST:
            assert mirrored.logcdf(-k - 1) == law.logccdf(k)


def test_tails_about_a_mean_at_the_last_number():
    # P(X > r) of a Poisson law of rate r is 1/2 - (2/3) p(r) up to O(r^(-3/2)); a second rate moves the mean.
    mass = 1 / math.sqrt(2 * math.pi * LAST)
    for law in (Skellam(2.0**53, 0.0), Skellam(2.0**53, 1e-3)):
        shift = 1e-3 if law.rate_minus else 0.0
        for k, above in ((LAST, -2 / 3), (LAST - 1, 1 / 3)):
            assert abs(law.ccdf(k) - (0.5 + (above - shift) * mass)) < 2e-13
            assert law.logccdf(k) == pytest.approx(math.log(law.ccdf(k)), rel=1e-14)


def test_other_laws_end_at_the_last_number():
    laws = [
        Bessel(0, 2.0),
        Bessel(100, 1e5),
        Bessel(2**53, 2.0**53),
        TwoSidedGeometric(0.5),
        TwoSidedGeometric(1 - 2.0**-53),
    ]
    laws += [TwoPiecePoisson(released, rate, 0.3) for released in (0, 5, LAST) for rate in (0.0, 2.0, 1e5, 2.0**53)]
    for law in laws:
        assert_tails_are_all(law, (-LAST, 0, LAST - 1, LAST))


@pytest.mark.parametrize("end", [2**53, 2**53 - 1, -(2**53), 1 - 2**53])
def test_tails_at_the_ends_of_whole_numbers_are_answered(end):
    # Beyond 2**53 a number and its neighbor are the same double: a sum from there on ends all the same.
    laws = [Skellam(a, b) for a in (0.0, 1e-3, 30.0, 1e5, 1e12) for b in (1e-3, 25.0, 1e5, 1e12)]
    for law in (*laws, TwoSidedGeometric(epsilon_per_unit=0.1), TwoSidedGeometric(epsilon_per_unit=1e-12)):
        below, above = float(law.cdf(end)), float(law.ccdf(end))
        assert {below, above} == {0.0, 1.0} or 0 <= min(below, above) < 1e-3
        assert (below > above) == (end > 0)


def test_quantiles_beyond_the_last_numbers_are_the_last_numbers():
    for law in (Skellam(0.0, 2.0**53), Skellam(2.0**53, 0.0), Skellam(2.0**53, 2.0**53)):
        for p in (1e-300, 1e-9, 0.5, 1 - 1e-9):
            for k in (law.icdf(p), law.iccdf(p)):
                assert -LAST <= k <= LAST
    assert Skellam(0.0, 2.0**53).icdf(1e-9) == -LAST
    assert Skellam(2.0**53, 0.0).icdf(1 - 1e-9) == LAST
