"""Counts of lattices of every extent at which another kernel, ring or way of the same kernel begins, by the frontier.

The frontier takes the edges of the graph one by one in a given order and knows of no lattice: all it shares with the
kernels is arithmetic modulo a prime.
"""

import itertools

import pytest

from quincunx import lattices
from quincunx.counting import count_independent_sets, estimate_cost, primes, residue
from quincunx.errors import TooLargeError

SPARE = primes(200)[-1]  # a modulus of no count of this size
SECONDS = 1.0  # the longest count, and the longest of the frontier
EXTENTS = {"square": (12, 30), "king": (12, 30), "triangular": (12, 30), "4-8-8": (5, 16), "kagome": (3, 9)}
CELLS = [
    (kind, boundary, n)
    for kind, (least, most) in EXTENTS.items()
    for boundary in ("free", "cylinder", "torus")
    for n in range(least, most + 1)
]


def short(forecast):
    try:
        return forecast().seconds <= SECONDS
    except TooLargeError:
        return False


def agree(kind, boundary, rows, cols):
    """Compare a lattice's count, on one thread and two and in little memory, with the frontier's; None if too long."""
    lattice = lattices.named(kind, rows, cols, boundary)
    order = range(lattice.num_vertices)
    if not short(lambda: estimate_cost(lattice)) or not short(lambda: estimate_cost(lattice, order=order)):
        return None
    expected = residue(lattice, SPARE, order=order)
    states = 8 * estimate_cost(lattice, threads=1).states
    found = {
        "two threads": count_independent_sets(lattice, threads=2) % SPARE,
        "a residue": residue(lattice, SPARE),
    }
    for lanes in (1, 2, 5, 9):
        try:
            count = count_independent_sets(lattice, threads=1, memory_limit=states * lanes)
        except TooLargeError:
            continue
        found[f"memory of {lanes}"] = count % SPARE
    return {way for way, value in found.items() if value != expected}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kind", "boundary", "cols"), CELLS)
def test_counts_around_every_threshold_are_those_of_the_frontier(kind, boundary, cols):
    lengths = {cols - 1, cols, cols + 1, cols + 2, 2 * cols + 1, 40}
    wrong = {rows: agree(kind, boundary, rows, cols) for rows in sorted(lengths)}
    compared = [rows for rows, ways in wrong.items() if ways is not None]
    print(f"{kind} {boundary} {cols}: {len(compared)} lengths compared")
    assert not {rows: ways for rows, ways in wrong.items() if ways}
    if not compared:
        pytest.skip("the frontier takes longer")


@pytest.mark.parametrize(
    ("kind", "boundary", "cols"),
    [*itertools.product(("square", "king"), ("free", "torus"), (12,)), ("square", "free", 17)],
)
def test_counts_on_two_sides_of_a_threshold_are_those_of_the_frontier(kind, boundary, cols):
    for rows in (cols, cols + 1):
        assert agree(kind, boundary, rows, cols) == set()
