"""Wide open square lattices, counted one prime at a time: the same integers as by whole rows, whatever the way."""

import functools
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial

import pytest
from tests.interrupts import Stopped

from quincunx import lattices
from quincunx.counting import (
    combine_residues,
    count_independent_sets,
    estimate_cost,
    hard_core,
    independence_polynomial,
    primes,
    residue,
)
from quincunx.counting._records import records
from quincunx.errors import TooLargeError

SIZES = [(24, 24), (25, 24), (25, 25), (26, 25)]  # both parities of rows and of width
RECORDS = [(lattice, record) for lattice in ("square", "king") for record in records()[lattice]]


def by_whole_rows(lattice):
    """Count by residues modulo other primes, from the operator between whole rows."""
    moduli = primes(estimate_cost(lattice).primes)
    return combine_residues([(modulus, residue(lattice, modulus)) for modulus in moduli])


def least_memory(job, **how):
    with pytest.raises(TooLargeError) as refused:
        job(memory_limit=1, **how)
    return refused.value.needed


def has_the_residue_of_whole_rows(value, lattice, activity, modulus):
    """Tell whether an exact value is congruent to one from the operator between whole rows, modulo another prime."""
    value, activity = Fraction(value), Fraction(activity)
    point = activity.numerator * pow(activity.denominator, -1, modulus) % modulus
    return (value.numerator - residue(lattice, modulus, activity=point) * value.denominator) % modulus == 0


def stopping(heard):
    """Return a progress that keeps what it hears, and stops a job when three tenths are done."""

    def stop(done, total):
        heard.append((done, total))
        if done > 0.3 * total:
            raise Stopped

    return stop


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_half_of_the_states_and_primes_give_the_count_by_whole_rows(rows, cols):
    lattice = lattices.square(rows, cols)
    assert estimate_cost(lattice).engine == "square reflection"
    count = count_independent_sets(lattice, threads=1)
    assert count == by_whole_rows(lattice)
    assert count == count_independent_sets(lattices.square(cols, rows))


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_neither_memory_nor_threads_change_the_count(rows, cols):
    lattice = lattices.square(rows, cols)
    counts = set()
    for threads in (1, 2, 3):
        least = least_memory(partial(count_independent_sets, lattice), threads=threads)
        whole = estimate_cost(lattice, threads=threads)
        short = estimate_cost(lattice, threads=threads, memory_limit=least)
        assert short.bytes == least < whole.bytes
        counts.add(count_independent_sets(lattice, threads=threads))
        counts.add(count_independent_sets(lattice, threads=threads, memory_limit=least))
    assert len(counts) == 1


SQUARES = [(24, 24), (25, 25), (26, 26), (27, 27), (28, 28)]
WIDER = [(27, 26), (28, 27), (29, 28), (29, 29), (30, 29), (30, 30), (31, 30), *((n, n) for n in range(33, 38))]


@pytest.mark.parametrize(("rows", "cols"), [*SQUARES, *(pytest.param(*size, marks=pytest.mark.slow) for size in WIDER)])
def test_counts_have_the_residues_of_whole_rows(rows, cols):
    lattice, modulus = lattices.square(rows, cols), primes(1)[0]
    assert count_independent_sets(lattice) % modulus == residue(lattice, modulus)


ACTIVITIES = [0, 1, 2, -1, Fraction(7, 5), Fraction(-1, 3), Fraction(10**30 + 1, 10**30)]


@pytest.mark.parametrize(
    ("rows", "cols", "activities"),
    [
        *((rows, cols, ACTIVITIES) for rows, cols in [(16, 16), (17, 16), (17, 17), (18, 17)]),
        (24, 23, [0, 1, -1]),
        pytest.param(24, 23, ACTIVITIES, marks=pytest.mark.slow),
    ],
    ids=lambda given: str(given) if isinstance(given, int) else f"{len(given)} activities",
)
def test_partition_functions_have_the_residues_of_whole_rows(rows, cols, activities):
    lattice, modulus = lattices.square(rows, cols), primes(1)[0]
    for activity in activities:
        value = hard_core(lattice, activity)
        assert has_the_residue_of_whole_rows(value, lattice, activity, modulus), activity
        assert value == hard_core(lattices.square(cols, rows), activity, threads=3)


@pytest.mark.parametrize("boundary", ["free", "cylinder"])
def test_neither_memory_nor_threads_change_a_partition_function(boundary):
    lattice, activity = lattices.square(17, 16, boundary), Fraction(-9, 7)
    exact = hard_core(lattice, activity, threads=1)
    for threads in (1, 2, 3):
        least = least_memory(partial(hard_core, lattice, activity), threads=threads)
        assert least < 2**20
        assert hard_core(lattice, activity, threads=threads, memory_limit=least) == exact


def test_polynomials_sum_to_the_count_and_have_the_values_of_the_partition_function():
    for rows, cols in [(16, 16), (18, 17)]:
        lattice = lattices.square(rows, cols)
        coefficients = independence_polynomial(lattice)
        vertices, edges = rows * cols, 2 * rows * cols - rows - cols
        assert len(coefficients) == (vertices + 1) // 2 + 1
        # Pairs and triples without an edge: paths of three vertices have two edges.
        degrees = [4 - (r in (0, rows - 1)) - (c in (0, cols - 1)) for r in range(rows) for c in range(cols)]
        paths = sum(math.comb(degree, 2) for degree in degrees)
        triples = math.comb(vertices, 3) - edges * (vertices - 2) + paths
        assert coefficients[:4] == [1, vertices, math.comb(vertices, 2) - edges, triples]
        # Both colors of a chessboard, or the one with more squares.
        assert coefficients[-1] == (2 if vertices % 2 == 0 else 1)
        assert sum(coefficients) == count_independent_sets(lattice)
        for activity in (2, Fraction(-1, 3)):
            value = sum(coefficient * activity**size for size, coefficient in enumerate(coefficients))
            assert value == hard_core(lattice, activity)


def test_a_stopped_polynomial_keeps_its_finished_values(tmp_path):
    lattice, state = lattices.square(17, 16), tmp_path / "state"
    coefficients, heard = independence_polynomial(lattice), []
    with pytest.raises(Stopped):
        independence_polynomial(lattice, checkpoint=state, checkpoint_interval=0, threads=1, progress=stopping(heard))
    assert state.exists()
    resumed = []
    again = independence_polynomial(lattice, checkpoint=state, progress=lambda done, total: resumed.append(done))
    assert again == coefficients
    assert resumed[-1] == heard[-1][1]
    with ThreadPoolExecutor(2) as pool:
        assert independence_polynomial(lattice, executor=pool) == coefficients


LEVELS = """
from quincunx import lattices
from quincunx.counting import count_independent_sets
print([count_independent_sets(lattices.square(rows, cols), threads=1) for rows, cols in [(24, 24), (25, 25)]])
"""


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_level_of_vector_instructions_gives_the_same_count(level, monkeypatch):
    monkeypatch.setenv("QUINCUNX_SIMD", level)
    found = subprocess.run([sys.executable, "-c", LEVELS], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == [count_independent_sets(lattices.square(n, n)) for n in (24, 25)]


@pytest.mark.parametrize(("rows", "cols"), [(24, 24), (25, 24), (13, 25), (40, 25)])
def test_cylinders_have_the_residues_of_whole_rings(rows, cols):
    lattice, modulus = lattices.square(rows, cols, "cylinder"), primes(1)[0]
    assert estimate_cost(lattice).engine == "square reflection"
    count = count_independent_sets(lattice, threads=1)
    assert count % modulus == residue(lattice, modulus)
    least = least_memory(partial(count_independent_sets, lattice), threads=3)
    assert count == count_independent_sets(lattice, threads=3, memory_limit=least)
    for activity in (2, Fraction(-1, 3)):
        assert has_the_residue_of_whole_rows(hard_core(lattice, activity), lattice, activity, modulus)


def test_cylinders_lie_between_their_pieces():
    # To close a lattice adds edges, and a cylinder without one of its columns is an open lattice.
    count = count_independent_sets(lattices.square(24, 24, "cylinder"))
    assert count_independent_sets(lattices.square(24, 23)) < count < count_independent_sets(lattices.square(24, 24))


def test_a_stopped_job_keeps_finished_primes_and_an_executor_goes_on(tmp_path):
    lattice, state = lattices.square(60, 26), tmp_path / "state"
    count, heard = count_independent_sets(lattice), []
    try:
        count_independent_sets(lattice, checkpoint=state, checkpoint_interval=0, threads=1, progress=stopping(heard))
    except Stopped:
        assert state.exists()
        resumed = []
        again = count_independent_sets(
            lattice, checkpoint=state, threads=2, progress=lambda done, total: resumed.append(done)
        )
        assert again == count
        # At most the prime in hand is done again.
        assert resumed[-1] == heard[-1][1]
    assert not state.exists()
    with ThreadPoolExecutor(2) as pool:
        assert count_independent_sets(lattice, executor=pool, checkpoint=state) == count


def test_long_strips_have_the_counts_of_their_transposes():
    for rows, cols in [(24, 31), (24, 70), (27, 40)]:
        lattice, turned = lattices.square(rows, cols), lattices.square(cols, rows)
        assert count_independent_sets(lattice) == count_independent_sets(turned)
    strip = lattices.square(24, 40)
    assert count_independent_sets(strip, threads=2) == by_whole_rows(strip)


@functools.cache
def logarithms(lattice):
    made, sizes = {"square": (lattices.square, (24, 27, 30)), "king": (lattices.king, (22, 25, 28))}[lattice]
    return {n: Decimal(count_independent_sets(made(n, n))).ln(Context(prec=40)) for n in sizes}


@pytest.mark.parametrize(
    ("lattice", "record"), RECORDS, ids=[f"{lattice}-{record['size']}" for lattice, record in RECORDS]
)
def test_records_continue_the_logarithms_of_smaller_sizes(lattice, record):
    # log Z = a n^2 + b n + c and a rest that halves with every size, 2e-11 in third differences at 30; of kings larger.
    with localcontext(prec=40):
        logs = logarithms(lattice)
        n, expected = record["size"], Decimal(0)
        for own in logs:
            others = [other for other in logs if other != own]
            expected += logs[own] * math.prod(Decimal(n - other) / Decimal(own - other) for other in others)
        rest = Decimal({"square": "1e-8", "king": "1e-4"}[lattice])
        assert abs(expected - Decimal(record["count"]).ln()) < rest
    assert len(record["verified"]) >= 2


@pytest.mark.parametrize(("lattice", "vertices", "rest"), [("square", 1, "1e-14"), ("4-8-8", 4, "1e-28")])
def test_records_go_on_by_the_growth_constant_that_corner_tensors_prove(lattice, vertices, rest, known):
    # The second difference of log Z - a n^2 with a = ln kappa for each vertex of a cell, of which b n + c and all but
    # 1.6e-15 or 2.5e-29 are gone.
    with localcontext(prec=50):
        twice = 2 * vertices * Decimal(known("entropy")["intervals"][lattice][0]).ln()
        logs = [Decimal(record["count"]).ln() for record in records()[lattice]]
        assert len(logs) >= 3
        for before, middle, after in zip(logs, logs[1:], logs[2:], strict=False):
            assert abs(before - 2 * middle + after - twice) < Decimal(rest)
