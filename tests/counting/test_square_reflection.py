"""Wide open square lattices, counted one prime at a time: the same integers as by whole rows, whatever the way."""

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from pathlib import Path

import pytest

from quincunx import lattices
from quincunx.counting import combine_residues, count_independent_sets, estimate_cost, primes, residue
from quincunx.errors import TooLargeError

SIZES = [(24, 24), (25, 24), (25, 25), (26, 25)]  # both parities of rows and of width
RECORDS = json.loads((Path(__file__).parents[1] / "known" / "records.json").read_text())["square"]


def by_whole_rows(lattice):
    """Count by residues modulo other primes, from the operator between whole rows."""
    moduli = primes(estimate_cost(lattice).primes)
    return combine_residues([(modulus, residue(lattice, modulus)) for modulus in moduli])


def least_memory(lattice, **how):
    with pytest.raises(TooLargeError) as refused:
        count_independent_sets(lattice, memory_limit=1, **how)
    return refused.value.needed


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
        least = least_memory(lattice, threads=threads)
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


class Stopped(Exception):
    pass


def test_a_stopped_job_keeps_finished_primes_and_an_executor_goes_on(tmp_path):
    lattice, state = lattices.square(60, 26), tmp_path / "state"
    count, heard = count_independent_sets(lattice), []

    def stop(done, total):
        heard.append((done, total))
        if done > 0.3 * total:
            raise Stopped

    try:
        count_independent_sets(lattice, checkpoint=state, checkpoint_interval=0, threads=1, progress=stop)
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
    for rows, cols in [(24, 31), (24, 120), (27, 60)]:
        lattice, turned = lattices.square(rows, cols), lattices.square(cols, rows)
        assert count_independent_sets(lattice) == count_independent_sets(turned)
    strip = lattices.square(24, 40)
    assert count_independent_sets(strip, threads=2) == by_whole_rows(strip)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["size"]))
def test_records_continue_the_logarithms_of_smaller_sizes(record):
    # log Z = a n^2 + b n + c and a rest that halves with every size, 2e-11 in third differences at 30.
    with localcontext(prec=40):
        logs = {n: Decimal(count_independent_sets(lattices.square(n, n))).ln() for n in (24, 27, 30)}
        n, expected = record["size"], Decimal(0)
        for own in logs:
            others = [other for other in logs if other != own]
            expected += logs[own] * math.prod(Decimal(n - other) / Decimal(own - other) for other in others)
        assert abs(expected - Decimal(record["count"]).ln()) < Decimal("1e-8")
    assert len(record["verified"]) >= 2
