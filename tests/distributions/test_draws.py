"""Draws: goodness of fit in every regime, addressed streams, threads, and arrays given by the caller."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.statistics import assert_draws_follow

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

# Order and argument, a row for each regime: few, more and most terms of the series; a thinned Poisson count by a small
# rate, and by a large order; the two long series, and rejection by products, across the end of the table, and beyond.
BESSEL = [
    *[(0, 0.1), (0, 1.0), (1, 2.0), (2, 1.0), (3, 1.9)],
    *[(0, 2.1), (0, 4.8), (5, 3.0), (3, 4.0)],
    *[(0, 5.0), (1, 7.9), (10, 6.0)],
    *[(100, 10.0), (200, 20.0), (10**10, 1e5)],
    *[(300, 40.0), (1000, 120.0), (10**5, 1000.0), (10**10, 3e5)],
    *[(0, 8.1), (4, 15.9), (1, 30.0), (10, 20.0), (1000, 39.9)],
    *[(0, 40.1), (50, 100.0), (1001, 130.0), (0, 1400.0)],
    *[(700, 100.0), (1000, 1000.0), (10**5, 2000.0)],
    *[(0, 1e4), (10**6, 1e5), (0, 1e8)],
]
SKELLAM = [
    *[(0.3, 0.1), (9.9, 10.1), (30.0, 2.0), (1e3, 1e3), (5.0, 0.0), (0.0, 12.0), (1e6, 3.0)],
    # Around the rates from which whole parts come from a table, from two, and from none.
    *[(3.99, 0.0), (4.0, 4.5), (63.99, 64.0), (64.5, 127.99), (700.3, 0.0), (1023.99, 1024.0)],
    *[(1100.0, 0.0), (3e4, 1500.0), (1e9, 0.0)],
]
GEOMETRIC = [5.0, 1.0, 0.1, 1e-3, 1e-7]
# A thinned Poisson count; sequential search; a proposal of the lower piece, of the upper piece; the joint.
CELLS = [
    *[(0, 3.0, 0.5), (-4, 60.0, 0.4)],
    *[(3, 0.5, math.exp(-1)), (10, 4.0, 0.9), (1, 0.01, 0.3), (15, 15.0, 0.97)],
    *[(100, 20.0, 0.5), (1000, 890.0, 0.9)],
    *[(1, 100.0, 0.01), (100, 300.0, 0.5), (1000, 1200.0, 0.99)],
    *[
        (100, 100.0, 0.5),
        (100, 95.0, 0.9),
        (16, 16.0, 0.01),
        (10**6, 1e6, 0.999),
        (5000, 4990.0, 0.9999),
        (40, 17.0, 0.2),
    ],
]
LAWS = [
    *(Bessel(*parameters) for parameters in BESSEL),
    *(Skellam(*parameters) for parameters in SKELLAM),
    *(TwoSidedGeometric(epsilon_per_unit=decay) for decay in GEOMETRIC),
    *(TwoPiecePoisson(*parameters) for parameters in CELLS),
]
sizes = pytest.mark.parametrize(
    "size", [60_000, pytest.param(4_000_000, marks=pytest.mark.slow)], ids=["quick", "long"]
)


@pytest.mark.statistical
@sizes
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_draws_fit_their_law(law, size):
    """False alarm 1e-6 each. Sees a distribution function off by 0.01, and in the long form by 0.0015."""
    assert_draws_follow(law.sample(size, rng=20261120), law)


@pytest.mark.statistical
def test_draws_of_a_mixed_array_fit_law_by_law():
    """All regimes side by side in one array, in an order that mixes them within every group of cells."""
    orders, arguments = (np.array(column) for column in zip(*BESSEL, strict=True))
    draws = Bessel(orders, arguments).sample(30_000, rng=3)
    for column, (order, argument) in enumerate(BESSEL):
        assert_draws_follow(draws[:, column], Bessel(order, argument))


@pytest.mark.statistical
def test_draws_of_a_mixed_skellam_array_fit_law_by_law():
    """Searches side by side, tables, rejection among them, on one side and on both. False alarm 1e-6 for each of 16."""
    plus, minus = (np.array(column) for column in zip(*SKELLAM, strict=True))
    draws = Skellam(plus, minus).sample(30_000, rng=4)
    for column, rates in enumerate(SKELLAM):
        assert_draws_follow(draws[:, column], Skellam(*rates))


def test_a_skellam_element_does_not_depend_on_its_neighbors():
    plus, minus = (np.array(column) for column in zip(*SKELLAM, strict=True))
    together = Skellam(np.tile(plus, 700), np.tile(minus, 700)).sample(rng=5)
    assert np.array_equal(together, Skellam(plus, minus).sample(700, rng=5).ravel())
    assert np.array_equal(together[:1000], Skellam(np.tile(plus, 143), np.tile(minus, 143)).sample(rng=5)[:1000])
    one, two, three = (Skellam(plus, minus).sample(7000, rng=9, threads=threads) for threads in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_a_table_made_again_gives_the_same_draws():
    """More laws than tables are kept; between two uses of the first one its table is given up."""
    first = Skellam(3.0, 1.5).sample(5000, rng=1)
    for rate in range(1, 40):
        Skellam(rate / 8, 1.0).sample(2000, rng=1)
    assert np.array_equal(first, Skellam(3.0, 1.5).sample(5000, rng=1))


@pytest.mark.parametrize("rates", [(0.02, 0.0), (2.0, 30.0), (1e5, 1e3)], ids=repr)
def test_fewer_draws_from_a_table_are_the_first_of_more(rates):
    """A draw has sixteen bits of a word, and the few that need more take them in their order within a block."""
    law = Skellam(*rates)
    many = law.sample(60_000, rng=12, threads=2)
    for size in (40_001, 36_866, 35_000):
        assert np.array_equal(law.sample(size, rng=12, threads=3), many[:size])
    assert many[:4096].tolist() != many[4096:8192].tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("rates", [(0.02, 0.0), (0.0, 1.0), (40.0, 35.0), (3e4, 1e5)], ids=repr)
def test_draws_from_a_table_fit_in_all_their_places(rates):
    """Sums over the four draws of a word, too, which share nothing. False alarm 1e-6 for each of two tests by law."""
    plus, minus = rates
    draws = Skellam(plus, minus).sample(400_000, rng=13)
    assert_draws_follow(draws, Skellam(plus, minus))
    assert_draws_follow(draws.reshape(-1, 4).sum(axis=1), Skellam(4 * plus, 4 * minus))


def test_one_draw_is_the_first_of_an_array():
    for law in LAWS:
        assert law.sample(rng=11) == law.sample(5, rng=11)[0]


def test_an_element_does_not_depend_on_its_neighbors():
    orders, arguments = (np.array(column) for column in zip(*BESSEL, strict=True))
    together = Bessel(np.tile(orders, 40), np.tile(arguments, 40)).sample(rng=5)
    assert np.array_equal(together, Bessel(orders, arguments).sample(40, rng=5).ravel())
    # a law alone at every place gives there what it gives among others
    for i, (order, argument) in enumerate(BESSEL):
        alone = Bessel(order, argument).sample(together.size, rng=5)
        assert np.array_equal(alone[i :: len(BESSEL)], together[i :: len(BESSEL)])


@pytest.mark.parametrize(
    "law", [Bessel([0, 5, 0], [1.0, 40.0, 3e4]), Skellam(2.0, 30.0), TwoSidedGeometric(0.5)], ids=repr
)
def test_threads_give_the_same_bits(law):
    one, two, three = (law.sample(40_000, rng=9, threads=threads) for threads in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_masses_do_not_depend_on_threads(monkeypatch):
    law, values = Skellam(20.0, 15.0), np.arange(-5000, 5000)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("QUINCUNX_NUM_THREADS", threads)
        results.append(law.logpmf(values))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def stream_cases():
    return {repr(law): law.sample(8, rng=1).tolist() for law in LAWS}


def test_streams_are_pinned():
    """A change of these values is allowed, with the mark *values* in the list of changes."""
    known = json.loads((Path(__file__).parents[1] / "known" / "streams.json").read_text())
    assert stream_cases() == known["distributions"]


def test_a_generator_advances_once_per_call():
    first, second = np.random.default_rng(4), np.random.default_rng(4)
    Bessel(0, 1.0).sample(10, rng=first)
    Skellam(100.0, 3.0).sample((20, 30), rng=second)
    assert first.random() == second.random()


def test_draws_go_to_the_given_array_or_nowhere():
    law = Skellam([1.0, 50.0], 2.0)
    out = np.full((3, 2), -99)
    assert law.sample(3, rng=8, out=out) is out
    assert np.array_equal(out, law.sample(3, rng=8))
    frozen = np.zeros((3, 2), dtype=np.int64)
    frozen.flags.writeable = False
    for bad in (np.zeros((2, 3), dtype=np.int64), np.zeros((3, 2)), np.zeros((2, 3), dtype=np.int64).T, frozen):
        with pytest.raises(ValueError, match="`out` must be a writable C-contiguous int64 array of shape"):
            law.sample(3, rng=8, out=bad)
        assert not bad.any()
    with pytest.raises(TypeError, match="`out` must be an array"):
        law.sample(3, out=[1, 2, 3])


def test_shapes_of_draws_come_before_those_of_parameters():
    assert isinstance(Bessel(0, 1.0).sample(rng=1), int)
    assert Bessel(0, 1.0).sample(4, rng=1).shape == (4,)
    assert Bessel([[0], [1]], [1.0, 2.0, 3.0]).sample((5, 4), rng=1).shape == (5, 4, 2, 3)
    assert Bessel(0, 1.0).sample((0, 3), rng=1).shape == (0, 3)
    assert Bessel(np.zeros(0, dtype=int), 1.0).sample(7, rng=1).shape == (7, 0)
