"""Memory: what needs too much is refused with both figures, and never ends the process.

The attacks run in processes with a small address space, where every reservation that is not asked for first would fail.
"""

import json
import re
import subprocess
import sys

import pytest

from quincunx import _check, _core, counting, lattices
from quincunx.errors import TooLargeError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address spaces are limited as on Linux")

# Each line is refused in an address space of two gigabytes, most of them with any memory there is.
ATTACKS = """
counting.count_independent_sets((4 * 10**9, []), memory_limit=10**6)
counting.count_independent_sets((10**9, []), memory_limit=10**6)
counting.count_independent_sets((10**5, []), memory_limit=10**6)
counting.count_independent_sets((3 * 10**7, []))
counting.estimate_cost((4 * 10**9, []))
counting.estimate_cost((10**9, []), memory_limit=10**6)
counting.estimate_cost(lattices.square(36, 36, "torus"), memory_limit=10**6)
counting.independence_polynomial(lattices.square(2, 10**7))
counting.independence_number((10**9, []))
counting.hard_core((10**9, []), 2, mode="log")
counting.count_matchings((10**9, []))
counting.count_perfect_matchings(lattices.king(30, 30))
counting.count_perfect_matchings(lattices.square(10**5, 10**5))
counting.count_spanning_trees((10**9, []))
counting.count_spanning_trees(lattices.square(10**5, 10**5))
counting.random_independent_set((10**9, []))
counting.random_spanning_tree((10**9, []))
counting.random_perfect_matching((10**9, []))
counting.occupation_probabilities((10**9, []))
counting.edge_probabilities((10**9, []))
graphs.automorphism_group((4 * 10**9, [(0, 1)]))
graphs.automorphism_group((10**8, []))
graphs.distances((10**6, []), memory_limit=2**62)
graphs.distances(path(30000))
graphs.sphere_sizes(path(30000))
graphs.sphere_sizes(path(1000), memory_limit=10**6)
graphs.is_distance_degree_regular((10**9, []))
graphs.automorphism_group(path(60000)).orbitals().labels()
graphs.automorphism_group(graphs.cycle(30000)).transversal(0)
graphs.complete(10**6)
graphs.path(4 * 10**9)
graphs.Graph(10**5, []).to_numpy()
lattices.square(10**5, 10**5).graph
lattices.clique_insert(lattices.king(200, 200), 7)
lattices.king(4, 4).clique_insert(7)
leakage.randomized_response(10**9, 1.0)
leakage.randomized_response(20000, 1.0)
leakage.geometric_channel(10**9, 1.0)
leakage.distance_channel(graphs.cycle(40000), 1.0)
distributions.Skellam(3.0, 3.0).sample(10**9)
distributions.Bessel(3, 3.0).sample((10**5, 10**5))
distributions.Skellam(np.ones((10**5, 1)), 1.0).pmf(np.zeros((1, 10**5)))
privacy.UnaryEncoding(1.0, 10**6).release(np.zeros(10**4, dtype=int))
factorization.PoissonFactorization(2000, inference="vi").fit(np.ones((20000, 300), dtype=int), alpha=0.5)
factorization.PoissonFactorization(10**7).fit(np.ones((20, 30), dtype=int), alpha=0.5)
""".strip().splitlines()

PROGRAM = """
import json, sys
import numpy as np
import scipy.optimize, sklearn.base
from quincunx import counting, distributions, factorization, graphs, lattices, leakage, privacy
import resource

def path(n):
    return (n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))

limit = int(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
for attack in sys.stdin.read().splitlines():
    try:
        eval(attack)
        outcome = ["returned"]
    except BaseException as error:
        outcome = [type(error).__name__, str(error), getattr(error, "needed", None), getattr(error, "limit", None)]
    print(json.dumps([attack, *outcome]), flush=True)
"""


def outcomes(python, attacks, limit):
    process = python(PROGRAM, str(limit), stdin=subprocess.PIPE)
    printed, complaints = process.communicate("\n".join(attacks), timeout=120)
    found = [json.loads(line) for line in printed.splitlines()]
    assert process.returncode == 0, f"after {found[-1:]}: {complaints[-500:]}"
    return found


def test_what_does_not_fit_is_refused_with_both_figures(python):
    """In one process, which is still there at the end."""
    for attack, kind, message, needed, limit in outcomes(python, ATTACKS, 2 << 30):
        assert kind == "TooLargeError", (attack, kind, message)
        assert needed > limit >= 1, attack
        assert str(needed) in message or "needs more than" in message, attack


@pytest.mark.slow
@pytest.mark.parametrize("repeat", range(50))
def test_in_any_address_space_a_job_ends_or_is_refused(python, repeat):
    """Sizes around what fits: neither a crash nor a bare MemoryError of a library below."""
    size = 1000 + 977 * repeat
    attacks = [
        f"graphs.distances(path({size}))",
        f"graphs.sphere_sizes(path({size}))",
        f"leakage.randomized_response({size}, 1.0)",
        f"distributions.Skellam(3.0, 3.0).sample({1000 * size})",
        f"privacy.UnaryEncoding(1.0, {size}).release(np.zeros({size}, dtype=int))",
        f"counting.count_independent_sets(({30 * size}, []))",
        f"graphs.automorphism_group(path({30 * size}))",
    ]
    for attack, *outcome in outcomes(python, attacks, 600 << 20):
        assert outcome[0] in ("returned", "TooLargeError"), (attack, outcome)


LIMITED = """
import resource
from quincunx import _check, _core
before = _core.available_memory()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
import time; time.sleep(1.1)
print(before, _check.memory_limit(None))
"""


def test_the_default_limit_honours_the_address_space(output):
    before, after = map(int, output(LIMITED).split())
    assert after <= 1 << 30 < before or before < 1 << 30
    assert after > 1 << 28


def test_the_default_limit_is_that_of_the_core():
    # An answer is kept for a second, which may end between the two calls.
    assert any(_check.available_memory() == _core.available_memory() > 1 << 20 for _ in range(5))


def test_room_is_refused_in_both_figures():
    _check.room(100, "a test")
    _check.room(100, "a test", 100)
    with pytest.raises(TooLargeError, match="a test needs 101 bytes, the limit is 100 bytes") as caught:
        _check.room(101, "a test", 100)
    assert (caught.value.needed, caught.value.limit) == (101, 100)
    with pytest.raises(TooLargeError, match="a test needs more than"):
        _check.room(10**10000, "a test")


WIDE = """
counting.count_independent_sets(lattices.square(60, 60), memory_limit=10**9)
counting.count_independent_sets(lattices.square(500, 500), memory_limit=10**9)
counting.count_independent_sets(lattices.square(60, 60, "torus"), memory_limit=10**8)
counting.count_independent_sets(lattices.square(37, 37, "torus"), memory_limit=10**8)
counting.count_independent_sets(lattices.square(31, 31, "torus"), memory_limit=10**6)
counting.count_independent_sets(lattices.square(57, 57), memory_limit=10**9)
counting.count_independent_sets(lattices.triangular(60, 60), memory_limit=10**9)
counting.count_independent_sets(lattices.king(80, 80, "torus"), memory_limit=10**8)
counting.count_independent_sets(lattices.king(300, 300), memory_limit=10**9)
counting.count_independent_sets(lattices.four_eight_eight(60, 60), memory_limit=10**9)
counting.count_independent_sets(lattices.four_eight_eight(60, 60, "cylinder"), memory_limit=10**9)
counting.count_independent_sets(lattices.kagome(40, 40), memory_limit=10**9)
counting.count_matchings(lattices.square(60, 60), memory_limit=10**9)
counting.hard_core(lattices.square(60, 60), 2, memory_limit=10**9)
counting.hard_core(lattices.square(60, 60), 0.5, mode="log", memory_limit=10**9 + 1)
counting.independence_polynomial(lattices.square(60, 60), memory_limit=10**9)
""".strip().splitlines()


@pytest.mark.parametrize("attack", WIDE)
def test_the_limit_of_a_refusal_is_the_caller_s_however_early_the_forecast_ends(attack):
    limit = next(limit for word, limit in LIMITS.items() if f"memory_limit={word})" in attack)
    with pytest.raises(TooLargeError) as caught:
        eval(attack, {"counting": counting, "lattices": lattices})
    assert caught.value.limit == limit < caught.value.needed, str(caught.value)
    assert f"the limit is {limit} bytes" in str(caught.value)
    needed = "at least 2^127" if caught.value.needed == 2**127 else str(caught.value.needed)
    assert re.search(rf"needs? {re.escape(needed)} bytes", str(caught.value))


LIMITS = {"10**9": 10**9, "10**8": 10**8, "10**6": 10**6, "10**9 + 1": 10**9 + 1}


VI = {"inference": "vi", "max_iter": 2}
FITS = {
    "gibbs": {},
    "event": {"method": "event"},
    "bessel": {"method": "bessel"},
    "two chains": {"n_chains": 2},
    "vi": VI,
    "overdispersed": {"likelihood": "negative_binomial"},
    "overdispersed by rows": {"likelihood": "negative_binomial", "dispersion": "row"},
    "overdispersed vi": {"likelihood": "negative_binomial"} | VI,
}

PEAK = """
import gc, json, os, sys, warnings
import numpy as np
from quincunx import _check
from quincunx.errors import TooLargeError
from quincunx.factorization import PoissonFactorization, _chains, _misfit

def status(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

def fit(release, **settings):
    how = {"n_chains": 1, "n_warmup": 1, "n_draws": 1, "thin": 1, "random_state": 1, "threads": 1} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PoissonFactorization(5, **how).fit(release, alpha=0.3)

def peak(settings):
    # Overdispersed counts take thirty times the bytes a cell, and the time.
    rows = 6000 if "likelihood" not in settings else 700 if settings.get("inference") == "vi" else 1000
    if rows == 1000:
        _misfit._BLOCK = 1 << 16  # beside few cells the check would take most
    release = np.random.default_rng(1).integers(-2, 4, (rows, 1000), dtype=np.int8)
    fit(release[:200], **settings)
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    fit(release, **settings)
    taken = status("VmHWM") - before - release.size  # its copy is made before the forecast
    _check.available_memory = lambda: 0 if sys._getframe(1).f_code.co_name == "_forecast" else available()
    try:
        fit(release, **settings)
    except TooLargeError as error:
        print(json.dumps([taken, error.needed]), flush=True)

available, _chains.BEFORE = _check.available_memory, 1  # one iteration with less noise, in the same memory
fit(np.ones((20, 10), dtype=np.int8))  # what is loaded is loaded for all
for settings in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        peak(settings)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def peaks():
    """What fits take and what is forecast, each in a child of one process."""
    command = [sys.executable, "-c", PEAK, json.dumps(list(FITS.values()))]
    lines = subprocess.run(command, capture_output=True, timeout=240, check=True, text=True).stdout.splitlines()
    return dict(zip(FITS, map(json.loads, lines), strict=True))


@pytest.mark.parametrize("case", FITS)
def test_the_forecast_of_a_fit_is_what_it_takes(case, peaks):
    """At least that, and at most as much again and some megabytes; it was seven times as much."""
    taken, needed = peaks[case]
    assert taken < needed + (4 << 20)
    sampled = "likelihood" in FITS[case] and "inference" not in FITS[case]
    assert needed < 2 * taken + (8 << 20 if sampled else 32 << 20)
