"""Known answers: accounts by 30-digit quadrature over all data sets, profiles, constants, sensitivities."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import optimize, special, stats

from quincunx import posterior
from quincunx.posterior import (
    BallRegression,
    BetaBernoulli,
    DirichletCategorical,
    DiscreteBayesNet,
    ExponentialGamma,
    LaplaceGamma,
    MultivariateNormalMean,
    NormalPrecisionGamma,
    _counterexamples,
)
from quincunx.privacy import AddRemove, PrivacyGuarantee


@pytest.mark.parametrize(
    ("a", "b", "n", "w", "tau", "exact"),
    [
        (1, 1, 50, 0.25, 1, 2.1202635362),
        (1, 1, 10, 0.25, 1, 1.8607878246),
        (1, 1, 1, 0.25, 1, 1.0986122887),
        (2, 3, 20, 0.2, 1, 2.5416831656),
        (1, 1, 50, 0.05, 0.3, 1.5418021596),
    ],
)
def test_beta_accounts_are_the_known_ones(a, b, n, w, tau, exact):
    model = BetaBernoulli(a, b, trim=w, temper=tau)
    assert model.guarantee(n).epsilon == pytest.approx(exact, abs=1e-10)
    assert model.guarantee(n).epsilon <= model.guarantee().epsilon
    assert model.guarantee().epsilon == pytest.approx(2 * tau * math.log((1 - w) / w), rel=1e-9)
    assert model.guarantee(relation=AddRemove()).epsilon == pytest.approx(tau * math.log((1 - w) / w), rel=1e-9)


@pytest.mark.parametrize(("n", "exact"), [(1, 1.0135373081), (10, 1.2515019969), (100, 1.4794023947)])
def test_exponential_accounts_are_the_known_ones(n, exact):
    model = ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1)
    assert model.guarantee(n).epsilon == pytest.approx(exact, abs=1e-10)
    assert model.guarantee().epsilon == pytest.approx(1.5, rel=1e-13)


def brute_beta(a, b, n, w, tau):
    """The largest log ratio over all k and both ends, by 30 digits."""
    with mpmath.workdps(30):
        w = mpmath.mpf(w)

        def log_z(k):
            return mpmath.log(
                mpmath.quad(lambda t: t ** (a - 1 + tau * k) * (1 - t) ** (b - 1 + tau * (n - k)), [w, 0.5, 1 - w])
            )

        z = [log_z(k) for k in range(n + 1)]
        odds = tau * mpmath.log((1 - w) / w)
        return float(max(odds + abs(z[k + 1] - z[k]) for k in range(n)))


@pytest.mark.parametrize(("a", "b", "n", "w", "tau"), [(0.5, 3, 4, 0.1, 1), (4, 1, 3, 0.4, 2.5), (1, 1, 6, 0.02, 0.5)])
def test_beta_accounts_agree_with_quadrature_over_all_data_sets(a, b, n, w, tau):
    found = BetaBernoulli(a, b, trim=w, temper=tau).guarantee(n).epsilon
    exact = brute_beta(a, b, n, w, tau)
    assert exact - 1e-13 <= found <= exact + 1e-9


def brute_gamma(a0, rate, low, high, c1, c2, n, tau, power):
    """Over sums of n - 1 records at many places and a record moving from end to end."""
    with mpmath.workdps(25):

        def log_z(s):
            return mpmath.log(mpmath.quad(lambda t: t ** (a0 - 1 + tau * n * power) * mpmath.exp(-s * t), [c1, 1, c2]))

        found = mpmath.mpf(0)
        for i in range(5):
            others = rate + tau * (n - 1) * (low + (high - low) * i / mpmath.mpf(4))
            d = log_z(others + tau * high) - log_z(others + tau * low)
            found = max(found, -tau * c1 * (high - low) - d, tau * c2 * (high - low) + d)
        return float(found)


@pytest.mark.parametrize(
    ("model", "low", "high", "power"),
    [
        (ExponentialGamma(1.5, 2, bounds=(0.5, 3), data_bound=1.2, temper=0.7), 0, 1.2, 1),
        (LaplaceGamma(1, 2, bounds=(0.5, 2), data_bound=0.5, mean=3), 2.5, 3.5, 1),
        (LaplaceGamma(2, 1, bounds=(0.2, 2), data_bound=1, mean=0.5), 0, 1.5, 1),
        (NormalPrecisionGamma(1, 1, bounds=(0.5, 2), data_bound=1, mean=-0.5), 0, 1.125, 0.5),
        (NormalPrecisionGamma(1, 1, bounds=(0.5, 2), data_bound=1, mean=-2), 0.5, 4.5, 0.5),
    ],
)
@pytest.mark.parametrize("n", [1, 4])
def test_gamma_accounts_agree_with_quadrature(model, low, high, power, n):
    exact = brute_gamma(model.a0, model.rate, low, high, *model.bounds, n, model.temper, power)
    found = model.guarantee(n).epsilon
    assert exact - 1e-12 <= found <= exact + 1e-8
    assert model.guarantee().epsilon == pytest.approx(model.temper * (model.bounds[1] - model.bounds[0]) * (high - low))


def test_a_mean_outside_the_data_needs_the_true_ends_of_the_statistic():
    # Taking [0, 2B] for [2.5, 3.5] claims less than the truth.
    right = brute_gamma(1, 1, 2.5, 3.5, 0.5, 4, 1, 1, 1)
    wrong = brute_gamma(1, 1, 0, 1, 0.5, 4, 1, 1, 1)
    assert wrong < right - 0.1
    assert LaplaceGamma(1, 1, bounds=(0.5, 4), data_bound=0.5, mean=3).guarantee(1).epsilon == pytest.approx(right)


def test_hockey_sticks_are_the_known_ones():
    found = [posterior.beta_hockey_stick(*case) for case in [(1, 10, 10, 100), (2, 1, 1, 100), (0.7, 3, 3, 10)]]
    assert found == pytest.approx([7.31440270848e-4, 0.0653061018822, 0.0743521651275], rel=1e-10)
    for a, n in [(26.9545, 100), (24.4571, 1000)]:
        assert posterior.beta_hockey_stick(1, a, a, n) == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "a", "b", "n", "temper", "delta"),
    [(8, 0.5, 0.01, 5, 0.1, 0.32197), (3, 3, 0.01, 5, 0.1, 0.53043), (30, 1, 0.1, 10, 1, 0.0379948)],
)
def test_hockey_sticks_hold_where_the_parameter_rounds_to_one(epsilon, a, b, n, temper, delta):
    # Deltas to the digits given by integrals with sixty digits; zeros and ones may change their names.
    found = [posterior.beta_hockey_stick(epsilon, *sides, n, temper=temper) for sides in ((a, b), (b, a))]
    assert found == pytest.approx([delta] * 2, rel=1e-5)
    assert found[0] == pytest.approx(found[1], rel=1e-10)


def test_hockey_sticks_agree_with_quadrature():
    a, b, n, epsilon = 2.5, 1.5, 4, 0.6
    t = np.linspace(0, 1, 400_001)[1:-1]
    found = 0.0
    for k in range(n):
        p, q = stats.beta(a + k + 1, b + n - k - 1).pdf(t), stats.beta(a + k, b + n - k).pdf(t)
        for one, other in [(p, q), (q, p)]:
            found = max(found, np.trapezoid(np.maximum(one - math.exp(epsilon) * other, 0), t))
    assert posterior.beta_hockey_stick(epsilon, a, b, n) == pytest.approx(found, rel=1e-6)
    shape, rate, bound = 3.0, 2.0, 0.7
    t = np.linspace(0, 30, 400_001)
    p, q = stats.gamma(5, scale=1 / rate).pdf(t), stats.gamma(5, scale=1 / (rate + bound)).pdf(t)
    found = max(np.trapezoid(np.maximum(x - math.exp(0.2) * y, 0), t) for x, y in [(p, q), (q, p)])
    assert posterior.gamma_hockey_stick(0.2, shape, rate, 2, data_bound=bound) == pytest.approx(found, rel=1e-6)
    # No other sum of the records does worse.
    for others in (0.3, 0.7):
        worse = stats.gamma(5, scale=1 / (rate + others)), stats.gamma(5, scale=1 / (rate + others + bound))
        p, q = (law.pdf(t) for law in worse)
        assert max(np.trapezoid(np.maximum(x - math.exp(0.2) * y, 0), t) for x, y in [(p, q), (q, p)]) < found


def test_constants_of_the_second_assumption_are_the_known_ones():
    assert BetaBernoulli(2, 2).lipschitz_constants(10).c == pytest.approx(0.75)
    assert BetaBernoulli(2, 2).lipschitz_constants(10).C == pytest.approx(26)
    assert BetaBernoulli(4, 4).lipschitz_constants(100).c == pytest.approx(1.09375)
    assert BetaBernoulli(4, 4).lipschitz_constants(100).C == pytest.approx(147446, rel=1e-5)
    model = ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1)
    assert model.lipschitz_constants(1).c == pytest.approx(2.10479, abs=1e-5)
    assert model.lipschitz_constants(1).L0 == 0.5
    assert [model.lipschitz_constants(n).C for n in (1, 5, 20)] == pytest.approx([2.1705947, 13.92, 82.2], rel=1e-3)


def test_ranges_of_the_other_models_are_the_known_ones():
    ranges = [BallRegression(W, 1, 1, 1, 1).guarantee().epsilon for W in (0.5, 1, 2, 3)]
    assert ranges == pytest.approx([2, 4, 9, 16])
    halved = BallRegression(2, 1, 1, 1, 1).guarantee(relation=AddRemove()).epsilon
    assert halved == pytest.approx(4.5)
    assert DirichletCategorical([1, 1, 1], trim=0.1).guarantee(7).epsilon == pytest.approx(2 * math.log(8))
    assert MultivariateNormalMean(np.eye(3), 2.0, 0.5).guarantee().epsilon == pytest.approx(4)
    tree = DirichletCategorical([1] * 5, trim=0.2, prior="beta_tree").guarantee().epsilon
    assert tree == pytest.approx(2 * 3 * math.log(4))


def test_divergences_and_tests_are_the_known_ones():
    def ranged(epsilon):
        return PrivacyGuarantee(epsilon, range_bounded=True)

    found = [posterior.tv_bound(ranged(epsilon)) for epsilon in (0.1, 1, 4)]
    assert found == pytest.approx([0.0249947930, 0.2449186624, 0.7615941560], abs=1e-10)
    assert posterior.kl_bound(ranged(0.1)) == pytest.approx(0.00125)
    assert posterior.kl_bound(ranged(10)) <= 10
    assert posterior.min_samples_to_distinguish(ranged(0.1), 0.05) == pytest.approx(1287.55, abs=0.01)
    assert posterior.min_samples_to_distinguish(ranged(1), 0.01) == pytest.approx(25.751, abs=1e-3)
    hundred = 100 * ranged(0.1)
    assert hundred.epsilon == pytest.approx(10)
    assert hundred.epsilon_at(1e-6) == pytest.approx(2.4190931769, abs=1e-8)


def test_the_constants_of_theorem_343_are_the_printed_ones_but_for_a_half():
    # omega solves e^x = 1 + 2 x, also by Lambert's function; kappa is twice the least x / (1 - e^-x)^2.
    with mpmath.workdps(30):
        omega = -mpmath.mpf(1) / 2 - mpmath.lambertw(-mpmath.exp(-mpmath.mpf(1) / 2) / 2, -1).real
        least = omega / (1 - mpmath.exp(-omega)) ** 2
    found = optimize.minimize_scalar(lambda x: x / (1 - math.exp(-x)) ** 2, bounds=(0.5, 3), method="bounded")
    assert round(float(omega), 5) == 1.25643
    assert found.fun == pytest.approx(float(least), rel=1e-12)
    assert round(2 * float(least), 5) == 4.91081


@pytest.mark.parametrize("c", [0.2, 1.762, 30.0])
@pytest.mark.parametrize("least", [0.0, 0.7, 12.0])
@pytest.mark.parametrize("ratio", [1.0, 5.0, 1e6])
@pytest.mark.parametrize("delta", [0.05, 0.43, 0.99])
def test_the_m_of_theorems_343_and_433_is_above_the_bound_that_replaces_it(c, least, ratio, delta):
    constants = posterior.LipschitzConstants(c, least, ratio)
    with mpmath.workdps(30):
        omega, e = mpmath.mpf("1.25643"), mpmath.exp
        logs = mpmath.log(ratio) + mpmath.log(
            e(-least * delta * c) / (e(-omega * (1 - delta)) - e(-omega)) + e(least * (1 - delta) * c)
        )
        parts = [kappa / c + least * (1 / (1 - e(-omega)) + 1) + logs for kappa in (4.91081, 2.45541)]
    printed, mended = (float(part * ratio) for part in parts)
    assert _counterexamples._divergence_constant(constants, delta) == pytest.approx(printed, rel=1e-12)
    for rho in (0.1, 0.5, 1.0, 3.0):
        if rho < (1 - delta) * c:
            assert constants.kl_bound(distance=rho) < mended * max(rho, 1) < printed * max(rho, 1)


def test_the_divergence_of_the_example_is_below_both_bounds():
    # The exact divergences of all neighbors, by the closed form of Beta laws; 1 is below (1 - .43) c.
    example = next(one for one in posterior.counterexamples() if one.where.startswith("3.4.3"))
    assert (1 - 0.43) * BetaBernoulli(10, 10).lipschitz_constants(10).c > 1

    def divergence(a, b, other_a, other_b):
        value = special.betaln(other_a, other_b) - special.betaln(a, b) + (a - other_a) * special.digamma(a)
        return value + (b - other_b) * special.digamma(b) + (other_a + other_b - a - b) * special.digamma(a + b)

    pairs = [(k, k + step) for k in range(11) for step in (-1, 1) if 0 <= k + step <= 10]
    largest = max(divergence(10 + k, 20 - k, 10 + j, 20 - j) for k, j in pairs)
    assert largest < example.found < example.claimed


NETWORKS = {
    "bayes 1": ([("Y", "X0")], 4, 2),
    "bayes 16": ([("Y", f"X{i}") for i in range(16)], 34, 32),
    "chain 4": ([(i, i + 1) for i in range(3)], 8, 5),
    "chain 6": ([(i, i + 1) for i in range(5)], 12, 8),
    "two parents": ([(0, 2), (1, 2)], 8, 4),
    "diamond": ([(0, 1), (0, 2), (1, 3), (2, 3)], 11, 7),
    "asia": (["AT", "SL", "SB", "TE", "LE", "EX", "ED", "BD"], 21, 14),
}


@pytest.mark.parametrize(("edges", "closure", "sensitivity"), NETWORKS.values(), ids=NETWORKS)
def test_closures_and_sensitivities_are_the_known_ones(edges, closure, sensitivity):
    net = DiscreteBayesNet(edges, {node: 2 for edge in edges for node in edge})
    assert len(net.fourier_closure()) == closure
    assert net.fourier_sensitivity() == sensitivity
    assert net.fourier_sensitivity(AddRemove()) == closure
    assert frozenset() == net.fourier_closure()[0]


def test_independent_nodes_have_one_parity_each():
    net = DiscreteBayesNet([], {node: 2 for node in "abcde"})
    assert (len(net.fourier_closure()), net.fourier_sensitivity(), net.count_sensitivity()) == (6, 5, 5)


def test_predicted_deviations_are_the_known_ones():
    for d, linf in [(4, 5.24), (16, 17.25), (64, 65.20)]:
        net = DiscreteBayesNet([("Y", f"X{i}") for i in range(d)], {"Y": 2} | {f"X{i}": 2 for i in range(d)})
        assert net.cell_deviation("X0", "fourier_linf", 1.0) == pytest.approx(linf, rel=2e-3)
        assert net.cell_deviation("X0", "laplace", 1.0) == pytest.approx(math.sqrt(2) * 2 * d)
    net = DiscreteBayesNet([("Y", f"X{i}") for i in range(16)], {"Y": 2} | {f"X{i}": 2 for i in range(16)})
    assert net.cell_deviation("X0", "fourier_l1", 1.0) == pytest.approx(39.19, abs=0.01)
    clique = DiscreteBayesNet([(0, 1), (0, 2), (1, 2)], {0: 2, 1: 2, 2: 2})
    assert clique.cell_deviation(2, "laplace", 1.0) == pytest.approx(2.83, abs=0.01)
    assert clique.cell_deviation(2, "fourier_linf", 1.0) == pytest.approx(3.24, abs=0.01)


RECORDS = ["000", "011", "111", "101", "110", "111", "010"]  # bit 0 (the last letter) is Y


def test_the_worked_example_has_its_coefficients_and_tables():
    net = DiscreteBayesNet([("Y", "X1"), ("Y", "X2")], {"Y": 2, "X1": 2, "X2": 2})
    data = [[int(word[2]), int(word[1]), int(word[0])] for word in RECORDS]
    masks = {sum(1 << "Y X1 X2".split().index(node) for node in g): c for g, c in net.coefficients(data).items()}
    assert masks == {0: 7, 1: -1, 2: -3, 3: 1, 4: -1, 5: 3}
    tables = net.count_tables(data)
    # Axes are (Y, X); the example lists (X, Y).
    assert tables["X1"].T.ravel().tolist() == [1, 1, 2, 3]
    assert tables["X2"].T.ravel().tolist() == [2, 1, 1, 3]


def test_the_worked_example_with_noise_has_its_tables():
    from quincunx.posterior._mechanisms import _table

    net = DiscreteBayesNet([("Y", "X1"), ("Y", "X2")], {"Y": 2, "X1": 2, "X2": 2})
    noisy = {g: Fraction(c) for g, c in {0: 7, 1: -3, 2: 1, 3: 1, 4: -3, 5: -3}.items()}
    half = Fraction(1, 2)
    assert _table(net, "Y", noisy).tolist() == [2, 5]
    assert _table(net, "X1", noisy).T.ravel().tolist() == [3 * half, 5 * half, half, 5 * half]
    assert _table(net, "X2", noisy).T.ravel().tolist() == [-half, 5 * half, 5 * half, 5 * half]


def test_directions_that_no_record_tells_of_are_flat():
    """Equal columns without a prior: the law of their difference is the ball's alone, and draws end at once."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 0.5, (40, 3))
    x[:, 2] = x[:, 0]
    posterior = BallRegression(1.0, 1.0, 1, 1, 0.0).calibrate(1.0).posterior(x, x[:, 0])
    draws = posterior.sample(4000, insecure_seed=1).values
    difference = (draws[:, 0] - draws[:, 2]) / np.sqrt(2)
    # Given the other two coordinates it is uniform between the ends that the ball leaves.
    others = (draws[:, 0] + draws[:, 2]) ** 2 / 2 + draws[:, 1] ** 2
    uniform = (1 + difference / np.sqrt(1 - others)) / 2
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    assert np.isfinite(posterior.mean).all()
    assert np.abs(posterior.mean).max() < 1e3
