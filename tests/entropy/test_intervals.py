"""The file of proved intervals: proved again by a program of another kind, which refuses what is not so."""

import copy
import functools
import importlib.util
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from quincunx import graphs, lattices
from quincunx.counting import count_independent_sets, hard_core
from quincunx.entropy import _intervals

TESTS = Path(__file__).resolve().parents[1]
ROOT3 = math.sqrt(3)


@pytest.fixture(scope="module")
def checker():
    """Return the module of the program that knows nothing of ours; what a trial vector proves is found once."""
    of = importlib.util.spec_from_file_location("check_intervals", TESTS / "check_intervals.py")
    module = importlib.util.module_from_spec(of)
    of.loader.exec_module(module)
    ends, found = module.ends, {}

    def once(entry):
        facts = json.dumps({key: value for key, value in entry.items() if key not in ("lower", "upper")})
        return found[facts] if facts in found else found.setdefault(facts, ends(entry))

    module.ends = once
    return module


def rectangular_torus(cell, sites, columns, rows):
    """Return the graph of unit distances on a torus of rectangular cells."""
    sides = cell[0] * columns, cell[1] * rows
    places = [(x + cell[0] * i, y + cell[1] * j) for i in range(columns) for j in range(rows) for x, y in sites]

    def apart(p, q):
        return math.hypot(*(abs(a - b - side * round((a - b) / side)) for a, b, side in zip(p, q, sides, strict=True)))

    pairs = [(i, j) for i in range(len(places)) for j in range(i) if apart(places[i], places[j]) < 1.01]
    return graphs.Graph(len(places), pairs)


TORI = {
    "square": lattices.square(4, 5, "torus"),
    "king": lattices.king(4, 5, "torus"),
    "4-8-8": lattices.four_eight_eight(4, 3, "torus"),
    "honeycomb": rectangular_torus((ROOT3, 3), [(0, 0), (0, 1), (ROOT3 / 2, 1.5), (ROOT3 / 2, 2.5)], 2, 5),
    "kagome": rectangular_torus(
        (2, 2 * ROOT3), [(0, 0), (1, 0), (0.5, ROOT3 / 2), (1, ROOT3), (0, ROOT3), (1.5, 1.5 * ROOT3)], 3, 2
    ),
}


@pytest.mark.parametrize("name", [*TORI, "matchings of square", "matchings of 4-8-8"])
def test_the_checker_knows_each_lattice_by_its_tori(checker, name):
    """Its weights are its own: the same count as of the lattice's graph, at two activities."""
    lattice = name.removeprefix("matchings of ")
    graph = TORI[lattice] if lattice == name else TORI[lattice].line_graph()
    letters = {"4-8-8": 3, "kagome": 3}.get(lattice, 5)
    for z in (Fraction(1), Fraction(2, 3)):
        matrix = np.array(checker.torus(name, z, 4), dtype=object)
        unit = math.lcm(*(entry.denominator for entry in matrix.flat))
        matrix = np.frompyfunc(int, 1, 1)(unit * matrix)
        power = functools.reduce(np.dot, [matrix] * (letters - 1))
        found = Fraction((power * matrix.T).sum(), unit**letters)  # the trace of their product
        assert found == (count_independent_sets(graph) if z == 1 else hard_core(graph, z))


def is_quick(entry):
    """Return whether the program takes a second or two for an entry."""
    return "trial" not in entry or (
        entry["bond_dimension"] == 3
        and entry["lattice"] != "honeycomb"
        and (entry["lattice"], entry["model"], entry["activity"]) != ("square", "matchings", "1")
    )


def test_short_intervals_of_the_file_are_proved_again(checker, known):
    entries = [entry for entry in known("intervals")["intervals"] if is_quick(entry)]
    assert checker.check(entries) == (10, 5)


@pytest.mark.slow
def test_every_interval_of_the_file_is_proved_again_or_lies_beside_one_that_is(checker, known):
    entries = known("intervals")["intervals"]
    again, beside = checker.check(entries)
    assert again == sum("trial" in entry for entry in entries) == 16
    assert beside == len({checker.operator_of(entry) for entry in entries if "trial" in entry}) == 7
    sets = {entry["lattice"] for entry in entries if entry["model"] == "independent-sets"}
    assert sets == set(known("entropy")["intervals"])


def entry_of(known, lattice):
    entries = known("intervals")["intervals"]
    return copy.deepcopy(next(entry for entry in entries if entry["lattice"] == lattice and "trial" in entry))


@pytest.mark.parametrize("lattice", ["square", "king", "kagome"])
def test_the_checker_refuses_what_was_changed(checker, known, lattice):
    entry = entry_of(known, lattice)
    assert checker.check([entry]) == (1, 0)
    width = Decimal(entry["upper"]) - Decimal(entry["lower"])
    # An end moved inwards by a fifth of the interval.
    for end, share in (("lower", Decimal("0.2")), ("upper", Decimal("-0.2"))):
        with pytest.raises(ValueError, match="proves"):
            checker.check([entry | {end: str(Decimal(entry[end]) + share * width)}])
    with pytest.raises(ValueError, match="order"):
        checker.check([entry | {"lower": entry["upper"], "upper": entry["lower"]}])
    # An integer of the trial vector changed by a thousandth of the largest.
    trial = copy.deepcopy(entry["trial"])
    trial["steps"][0][-1][0][0] += 1 << (trial["bits"] - 10)
    with pytest.raises(ValueError, match="proves"):
        checker.check([entry | {"trial": trial}])
    # Another lattice's interval, and one beside that has nothing in common with it.
    other = entry_of(known, "king" if lattice == "square" else "square")
    with pytest.raises(ValueError, match="proves"):
        checker.check([entry | {"lower": other["lower"], "upper": other["upper"]}])
    far = {key: value for key, value in entry.items() if key != "trial"}
    far |= {"lower": str(Decimal(entry["upper"]) + width), "upper": str(Decimal(entry["upper"]) + 2 * width)}
    with pytest.raises(ValueError, match="no number in common"):
        checker.check([entry, far])


def test_the_file_holds_what_the_command_writes(known):
    """Bit for bit on machines whose doubles round alike, else an interval that overlaps."""
    for kept in known("intervals")["intervals"]:
        if "trial" not in kept:
            continue
        fresh = _intervals.proved(kept["lattice"], kept["model"], Fraction(kept["activity"]), kept["asked"])
        assert fresh.keys() == kept.keys()
        ends = [Decimal(entry[end]) for entry in (kept, fresh) for end in ("lower", "upper")]
        assert ends[0] <= ends[3]
        assert ends[2] <= ends[1]
        assert ends[3] - ends[2] == pytest.approx(ends[1] - ends[0], rel=Decimal("0.01"))


def test_the_longest_intervals_meet_those_that_were_kept_before(known):
    entries = known("intervals")["intervals"]
    for lattice, (lower, upper) in known("entropy")["intervals"].items():
        record = next(
            e for e in entries if (e["lattice"], e["model"]) == (lattice, "independent-sets") and "trial" not in e
        )
        assert Decimal(record["lower"]) <= Decimal(upper)
        assert Decimal(lower) <= Decimal(record["upper"])
