"""Budgets: what fits, for whom, and what is refused."""

import math
import threading

import pytest

from quincunx.privacy import (
    AddRemove,
    Budget,
    BudgetExceeded,
    GaussianMechanism,
    PrivacyGuarantee,
    RandomizedResponse,
)


def test_ten_tenths_fit_into_one_and_an_eleventh_does_not():
    for tenth in (PrivacyGuarantee(0.1), RandomizedResponse(0.1)):
        budget = Budget(1.0)
        for _ in range(10):
            budget.spend(tenth)
        assert budget.spent().epsilon == pytest.approx(1)
        with pytest.raises(BudgetExceeded, match="not released"):
            budget.spend(tenth)
        assert budget.spent().epsilon == pytest.approx(1)
        assert budget.remaining() == pytest.approx(0, abs=1e-12)


def test_users_have_their_own_accounts():
    budget = Budget(1.0)
    budget.spend(PrivacyGuarantee(0.9), user="ada")
    budget.spend(PrivacyGuarantee(0.9), user="grace")
    with pytest.raises(BudgetExceeded):
        budget.spend(PrivacyGuarantee(0.2), user="ada")
    assert budget.spent("emmy") is None
    assert budget.remaining("emmy") == 1.0


def test_what_fits_by_exact_composition_is_accepted():
    noise = GaussianMechanism(0.5, 1e-6, sensitivity=1)
    budget = Budget(1.0, 1e-6)
    budget.spend(noise)
    budget.spend(noise)  # the sums would be (1, 2e-6)
    budget.spend(noise)  # and (1.5, 3e-6)
    assert budget.spent().epsilon > 1
    assert budget.spent().epsilon_at(1e-6) <= 1
    with pytest.raises(BudgetExceeded):
        budget.spend(9 * noise.guarantee)


def test_a_pure_budget_refuses_a_delta():
    with pytest.raises(BudgetExceeded):
        Budget(1.0).spend(PrivacyGuarantee(0.1, 1e-9))


def test_threads_cannot_overspend():
    budget, accepted = Budget(1.0), []

    def spend():
        for _ in range(20):
            try:
                budget.spend(PrivacyGuarantee(0.05))
                accepted.append(1)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == 20


def test_bad_input_is_refused_by_name():
    for bad in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="`epsilon`"):
            Budget(bad)
    for bad in (-0.1, 1, math.nan):
        with pytest.raises(ValueError, match="`delta`"):
            Budget(1.0, bad)
    with pytest.raises(TypeError, match="`guarantee`"):
        Budget(1.0).spend(0.5)
    with pytest.raises(TypeError, match="AddRemove"):
        Budget(1.0).spend(PrivacyGuarantee(0.1, relation=AddRemove()))
