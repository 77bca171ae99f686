"""Known answers: values by direct sums in multiple precision, confirmed by a second program."""

import json
from pathlib import Path

import numpy as np
import pytest

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

KNOWN = json.loads((Path(__file__).parents[1] / "known" / "distributions.json").read_text())
FAMILIES = {
    "bessel": Bessel,
    "skellam": Skellam,
    "two_piece_poisson": TwoPiecePoisson,
    "two_sided_geometric": TwoSidedGeometric,
}


@pytest.mark.parametrize(("name", "question"), [(f, q) for f in FAMILIES for q in KNOWN[f]])
def test_known_answers_are_met_to_twelve_digits(name, question):
    for *arguments, expected in KNOWN[name][question]:
        if question in ("pmf", "logpmf", "cdf"):
            *parameters, k = arguments
            found = getattr(FAMILIES[name](*parameters), question)(k)
        else:
            found = getattr(FAMILIES[name](*arguments), question)()
        # Known to 14 digits at least, some to 13.
        assert found == pytest.approx(expected, rel=1e-12, abs=0), (name, question, arguments)


def test_points_where_others_underflow_are_finite():
    assert Skellam(1e-3, 2.0).logpmf(300) == pytest.approx(-3489.233, abs=1e-3)
    assert Skellam(0.0, 1.0).logpmf(0) == -1.0
    assert Skellam(0.0, 0.0).pmf(np.array([-1, 0, 1])).tolist() == [0.0, 1.0, 0.0]
    assert Bessel(3, 1e-300).logpmf(2) == pytest.approx(4 * np.log(0.5e-300) - np.log(2 * 4 * 5), rel=1e-15)


def test_tied_masses_give_the_larger_mode():
    # n (n + order) = argument^2 / 4 in whole numbers: equal masses at n - 1 and n
    law = Bessel(order=0, argument=2.0)
    assert law.pmf(0) == pytest.approx(law.pmf(1), rel=1e-15)
    assert law.mode() == 1
    assert Bessel(order=3, argument=4.0).mode() == 1
    assert Bessel(order=3, argument=np.nextafter(4.0, 0.0)).mode() == 0
    assert Skellam(3.0, 0.0).mode() == 3
    assert Skellam(0.0, 3.0).mode() == -2


def test_release_of_zero_or_less_is_a_thinned_poisson_count():
    thinned = Skellam(0.37 * 1.25, 0.0)
    k = np.arange(20)
    for released in (0, -2, -1000):
        law = TwoPiecePoisson(released, 1.25, 0.37)
        np.testing.assert_allclose(law.pmf(k), thinned.pmf(k), rtol=1e-14)
        assert law.variance() == pytest.approx(0.37 * 1.25, rel=1e-15)


def test_no_noise_means_the_release_is_the_count():
    law = TwoPiecePoisson(7, 3.0, 0.0)
    assert law.pmf(np.array([6, 7, 8])).tolist() == [0.0, 1.0, 0.0]
    assert (law.mean(), law.variance(), law.entropy(), law.mode(), law.sample(rng=1)) == (7.0, 0.0, 0.0, 7, 7)
    # and its likelihood is the Poisson mass
    assert law.log_marginal() == pytest.approx(Skellam(3.0, 0.0).logpmf(7), rel=1e-14)
    assert law.log_marginal(gradient=True)[1] == pytest.approx(7 / 3 - 1, rel=1e-14)
    assert TwoSidedGeometric(alpha=0.0).pmf(0) == 1.0


def test_probability_ends_give_the_ends_of_the_support():
    assert Bessel(2, 3.0).icdf([0.0, 1.0]).tolist() == [0.0, np.inf]
    assert Skellam(2.0, 3.0).icdf([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert Skellam(2.0, 0.0).iccdf([1.0, 0.0]).tolist() == [0.0, np.inf]
    assert TwoPiecePoisson(4, 1.0, 0.0).icdf([0.0, 0.5, 1.0]).tolist() == [4.0, 4.0, 4.0]
