"""What type checkers are told of a result is what comes back: mypy reads this file, and pytest runs it."""

from fractions import Fraction
from typing import assert_type

import numpy as np
import numpy.typing as npt
import pytest

from quincunx import counting, graphs, spectra
from quincunx.counting._hard_core import FloatResult, FloatResults
from quincunx.lattices import square

LATTICE = square(2, 2)


def test_weights_make_fractions() -> None:
    assert assert_type(counting.count_spanning_trees(LATTICE, threads=1), int) == 4
    assert assert_type(counting.count_perfect_matchings(LATTICE, weight=None, method="fkt"), int) == 2
    halves = ["1/2"] * 4
    assert assert_type(counting.count_spanning_trees(LATTICE, weight=halves), int | Fraction) == Fraction(1, 2)
    assert assert_type(counting.count_perfect_matchings(LATTICE, weight=halves), int | Fraction) == Fraction(1, 2)


def test_modes_and_several_activities_of_hard_core() -> None:
    assert assert_type(counting.hard_core(LATTICE, 2, memory_limit=10**8), int | Fraction) == 17
    assert isinstance(assert_type(counting.hard_core(LATTICE, "1/2", mode="float"), FloatResult), FloatResult)
    assert isinstance(assert_type(counting.hard_core(LATTICE, [1, 2], mode="log"), FloatResults), FloatResults)
    assert assert_type(counting.hard_core(graphs.cycle(4), {0: 2}), int | Fraction) == 9
    found = assert_type(counting.hard_core(LATTICE, [1, 2], per_vertex=False), npt.NDArray[np.object_])
    assert found.tolist() == [7, 17]


def test_exact_resistances_are_fractions() -> None:
    assert assert_type(spectra.kirchhoff_index(LATTICE, exact=True), Fraction) == 5
    assert isinstance(assert_type(spectra.average_resistance(LATTICE), float), float)
    assert assert_type(spectra.resistance_distance(graphs.path(3), 0, 2, exact=True), Fraction) == 2


def test_options_of_jobs_are_checked_by_name_and_type() -> None:
    counting.count_matchings(LATTICE, threads=1, checkpoint=None)
    with pytest.raises(TypeError):
        counting.count_matchings(LATTICE, thread=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        counting.count_matchings(LATTICE, threads="two")  # type: ignore[call-overload]
