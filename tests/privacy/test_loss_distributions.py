"""Renyi curves and laws of privacy losses, in and out, beside the guarantee itself and beside dp_accounting."""

import math

import numpy as np
import pytest
from tests.privacy.test_curves import CASES, SHARP, excess

from quincunx.privacy import (
    AddRemove,
    GaussianMechanism,
    LaplaceMechanism,
    LossDistribution,
    PrivacyGuarantee,
    ReplaceOne,
    subsampled,
)

ORDERS = [1.25, 1.5, 1.75, *range(2, 65), 80, 96, 128, 256]


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("step", [0.3, 0.01])
def test_a_law_of_losses_is_nowhere_below_its_guarantee(kind, step):
    guarantee, laws = CASES[kind]
    tail = 1e-9 if guarantee.delta == 0 else max(2 * guarantee.delta, 1e-9)
    law = guarantee.to_loss_distribution(step, tail=tail)
    for epsilon in np.linspace(0, guarantee.epsilon_at(tail) * 1.1, 23):
        # Of a level or of some orders alone the law may know more than the bound, as a profile is convex.
        least = max(excess(p, q, epsilon) for one in laws for p, q in (one, one[::-1]))
        kept = guarantee.delta_at(epsilon)
        assert (kept if SHARP.get(kind) else least) * (1 - 1e-12) <= law.delta_at(epsilon) <= kept + step / 3 + tail
    assert math.fsum(law.masses) + law.infinite == pytest.approx(1, abs=1e-10)
    assert (law.masses >= 0).all()


@pytest.mark.parametrize("kind", sorted(set(CASES) - {"approx", "zcdp", "renyi"}))
def test_a_law_of_losses_comes_back_and_composes(kind):
    guarantee = CASES[kind][0]
    again = PrivacyGuarantee.of_loss_distribution(guarantee.to_loss_distribution(0.01), delta=1e-6)
    for times in (1, 4):
        for delta in (1e-6, 1e-3):
            least = (times * guarantee).epsilon_at(delta)
            if kind in ("outcomes", "subsampled", "ranged"):  # both directions bounded at once, or compositions bounded
                assert (times * again).epsilon_at(delta) >= least * (1 - 1e-3)
            else:
                assert least * (1 - 1e-9) <= (times * again).epsilon_at(delta) <= least * 1.01 + 0.02 * times


def test_a_law_of_large_losses_comes_back():
    pure = (PrivacyGuarantee(epsilon) for epsilon in (20.0, 25.0, 34.0, 300.0))
    for guarantee in (*pure, *(PrivacyGuarantee.of_gaussian(sigma, 1e-6) for sigma in (0.1, 0.2))):
        back = PrivacyGuarantee.of_loss_distribution(guarantee.to_loss_distribution(0.1), delta=1e-6)
        assert back.epsilon == pytest.approx(guarantee.epsilon, abs=0.1)
        for epsilon in (0.0, 10.0, 19.9):
            assert -1e-12 <= back.delta_at(epsilon) - guarantee.delta_at(epsilon) < 1e-7


def test_renyi_curves_come_back_and_compose():
    gaussian = PrivacyGuarantee.of_gaussian(3.0, 1e-6)
    told = PrivacyGuarantee.of_renyi(ORDERS, [gaussian.renyi(order) for order in ORDERS], 1e-6)
    concentrated = PrivacyGuarantee.of_zcdp(1 / 18, 1e-6)  # the same at all orders
    for times in (1, 10, 100):
        for delta in (1e-9, 1e-6, 1e-3):
            one, other = (times * told).epsilon_at(delta), (times * concentrated).epsilon_at(delta)
            assert other * (1 - 1e-12) <= one <= other * 1.05
            assert (times * told).delta_at(one) <= delta * (1 + 1e-9)
    mixed, known = told & PrivacyGuarantee(0.5), concentrated & PrivacyGuarantee(0.5)
    assert (
        (gaussian & PrivacyGuarantee(0.5)).epsilon_at(1e-6) <= mixed.epsilon_at(1e-6) <= 1.05 * known.epsilon_at(1e-6)
    )
    for order in (1.1, 1.3, 2.5, 70.0, 256.0):
        assert gaussian.renyi(order) * (1 - 1e-12) <= told.renyi(order) <= gaussian.renyi(order) * 1.3
    assert told.renyi(257.0) == math.inf
    assert told.kl_divergence() == pytest.approx(1.25 / 18)
    assert PrivacyGuarantee.from_dict(told.to_dict()) == told


def test_bad_curves_are_refused_by_name():
    for name, arguments in [
        ("orders", ([2, 1.5], [0.1, 0.2], 1e-6)),
        ("orders", ([1, 2], [0.1, 0.2], 1e-6)),
        ("orders", ([], [], 1e-6)),
        ("divergences", ([2, 3], [0.1], 1e-6)),
        ("divergences", ([2, 3], [0.1, -0.2], 1e-6)),
        ("delta", ([2, 3], [0.1, 0.2], 0)),
    ]:
        with pytest.raises(ValueError, match=f"`{name}`"):
            PrivacyGuarantee.of_renyi(*arguments)
    for name, arguments in [
        ("masses", ([0.1, 0.2], [0.5])),
        ("masses", ([0.1, 0.2], [0.5, 0.1])),
        ("masses", ([-3.0, 0.2], [0.5, 0.5])),  # under Q they would sum to more than one
        ("masses", ([0.1, 0.2], [1.5, -0.5])),
    ]:
        with pytest.raises(ValueError, match=f"`{name}`"):
            PrivacyGuarantee.of_loss_distribution(*arguments)
    with pytest.raises(ValueError, match="`step`"):
        PrivacyGuarantee(1.0).to_loss_distribution(1e-7)
    with pytest.raises(ValueError, match="`tail`"):
        PrivacyGuarantee(1.0, 1e-3).to_loss_distribution(tail=1e-9)


def test_a_law_for_a_replaced_record_bounds_both_directions():
    losses, masses = [math.log(2), -math.log(4)], [6 / 7, 1 / 7]
    free = PrivacyGuarantee.of_loss_distribution(losses, masses, relation=ReplaceOne())
    tied = PrivacyGuarantee.of_loss_distribution(losses, masses, relation=AddRemove())
    assert (2 * free).delta_at(math.log(3)) == pytest.approx(17 / 49, rel=1e-6)
    assert (2 * tied).delta_at(math.log(3)) == pytest.approx(13 / 49, rel=1e-6)


def test_dp_accounting_finds_the_same():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", reason="dp_accounting is not installed")
    from dp_accounting import rdp
    from dp_accounting.pld import pld_pmf

    theirs = {
        "gaussian": pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3),
        "laplace": pld.from_laplace_mechanism(1.5, value_discretization_interval=1e-3),
    }
    ours = {
        "gaussian": GaussianMechanism(sigma=2.0, sensitivity=1, relation=AddRemove()).guarantee,
        "laplace": LaplaceMechanism(1 / 1.5, sensitivity=1, relation=AddRemove()).guarantee,
    }
    for kind, guarantee in ours.items():
        law = guarantee.to_loss_distribution(1e-3)
        dense = pld_pmf.DensePLDPmf(1e-3, law.lowest, law.masses, law.infinite, pessimistic_estimate=True)
        both = pld.PrivacyLossDistribution(dense)
        for times in (1, 20):
            exact = (times * guarantee).epsilon_at(1e-5)
            assert exact * (1 - 1e-4) <= both.self_compose(times).get_epsilon_for_delta(1e-5) <= exact * 1.003 + 1e-3
            assert exact == pytest.approx(theirs[kind].self_compose(times).get_epsilon_for_delta(1e-5), rel=2e-3)
    batch = subsampled(PrivacyGuarantee.of_gaussian(1.0, 1e-6, relation=AddRemove()), 0.01)
    accountant = rdp.RdpAccountant(orders=list(range(2, 64)))
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000))
    told = PrivacyGuarantee.of_renyi(range(2, 64), [1000 * batch.renyi(a) for a in range(2, 64)], 1e-5)
    assert told.epsilon == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-6)


def test_a_law_says_what_it_holds():
    law = PrivacyGuarantee(1.0).to_loss_distribution(0.25)
    assert isinstance(law, LossDistribution)
    assert law.losses[[0, -1]].tolist() == [-1.0, 1.0]
    assert law.masses[[0, -1]] == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)], abs=1e-12)


def test_losses_that_no_double_holds_are_refused_in_words():
    for guarantee in (1500 * PrivacyGuarantee(1.0), PrivacyGuarantee.of_gaussian(0.03, 1e-6)):
        with pytest.raises(ValueError, match="`tail` must be a delta at an epsilon of at most 700"):
            guarantee.to_loss_distribution(step=0.5)
    assert PrivacyGuarantee(1.0).to_loss_distribution(step=709.0).delta_at(0.5) > 0.4
    for epsilon, step in ((1.0, 710.0), (600.0, 500.0), (1.0, 1e308)):
        with pytest.raises(ValueError, match=r"`step` must have multiples from .* to 709, got"):
            PrivacyGuarantee(epsilon).to_loss_distribution(step=step)
    with pytest.raises(ValueError, match="`tail` must be a delta"):
        PrivacyGuarantee(0.5, 1e-3).to_loss_distribution(step=0.05, tail=1e-8)
    response = [1 / (1 + math.e), math.e / (1 + math.e)]
    known, more = (
        PrivacyGuarantee.of_loss_distribution([*rest, -1.0, 1.0], [0.0] * len(rest) + response, delta=1e-6)
        for rest in ([], [-1000.0])
    )
    assert known == more
    with pytest.raises(ValueError, match="`losses` must be at least -700"):
        PrivacyGuarantee.of_loss_distribution([-1000.0, 1.0], [0.5, 0.5], delta=1e-6)


def test_orders_beyond_those_of_a_random_subset_are_left_out():
    noise = subsampled(GaussianMechanism(1.0, 1e-5, sensitivity=1.0, relation=AddRemove()).guarantee, 0.01)
    curve = [[2.0, 8.0], [0.1, 0.4]]
    few = PrivacyGuarantee.of_renyi(*curve, 1e-5, relation=AddRemove()) & noise
    more = PrivacyGuarantee.of_renyi([2.0, 8.0, 20_000.0], [0.1, 0.4, 900.0], 1e-5, relation=AddRemove()) & noise
    assert more.delta_at(1.0) == few.delta_at(1.0) < 1
    assert more.epsilon_at(1e-4) == few.epsilon_at(1e-4) < math.inf
    assert more.kl_divergence() == few.kl_divergence()
