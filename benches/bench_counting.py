"""Public calls of `quincunx.counting` beside BDDs, ZDDs and a brute force; and the project's targets, one by one.

Run with `python benches/bench_counting.py --quick` (ratios at small sizes, under a minute) or `--full` (all targets:
an hour of a peer's and our work, up to 7 GB). `--only TEXT` picks the lines whose name contains it, `--moonshot` adds
the 45 x 45 square. Peers are optional: `pip install oxidd graphillion`.

A ratio comes from one process in which both sides take turns, as the least processor time of several rounds; a memory
ratio from the peak of a fresh process for each side, above what was resident when it began. A job of the second part
has a fresh process too. `user s` is the user time of all threads; `rate` is additions of one residue per user second,
`of limit` that rate over the additions of 64-bit words that a thread does out of its nearest caches (`a += b` over
256 kB, by NumPy, in the same process; reductions, moves and multiplications of a kernel are not counted); `forecast`
is what `estimate_cost` promised over what was measured, of memory and of wall time.
"""

import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from measuring import (
    additions_per_second,
    arguments,
    forget_peak,
    in_a_fresh_process,
    keep,
    print_build,
    seconds,
    status,
    verdict,
)
from quincunx import _core, _job, lattices
from quincunx.counting import (
    count_independent_sets,
    count_matchings,
    estimate_cost,
    hard_core,
    independence_polynomial,
    independent_set_table,
)

GIB = 1 << 30

# Both sides' programs. A peer gets the lattice as edges with vertices row by row, which is its good order.


def quincunx_count(lattice: Any) -> int:
    return count_independent_sets(lattice)


def oxidd_count(lattice: Any) -> int:
    """Build a BDD row by row from below, one clause per vertex: it is out, or its later neighbors are."""
    from oxidd.bdd import BDDManager

    n = lattice.num_vertices
    manager = BDDManager(1 << 22 if n <= 256 else 1 << 26, 1 << 20 if n <= 256 else 1 << 24, 1)
    manager.add_vars(n)
    out = [manager.not_var(vertex) for vertex in range(n)]
    later: list[list[int]] = [[] for _ in range(n)]
    for u, v in lattice.edges.tolist():
        later[min(u, v)].append(max(u, v))
    sets = manager.true()
    for vertex in reversed(range(n)):
        others = manager.true()
        for neighbor in later[vertex]:
            others = others & out[neighbor]
        sets = sets & (out[vertex] | others)
    return int(sets.sat_count(n))


def graphillion_count(lattice: Any) -> int:
    from graphillion import VertexSetSet

    VertexSetSet.set_universe(list(range(lattice.num_vertices)))
    return int(VertexSetSet.independent_sets([(u, v) for u, v in lattice.edges.tolist()]).len())


def brute_force_count(lattice: Any) -> int:
    """Look at all subsets of at most 25 vertices."""
    sets = np.arange(1 << lattice.num_vertices, dtype=np.uint32)
    independent = np.ones(len(sets), dtype=bool)
    for u, v in lattice.edges.tolist():
        independent &= sets & (1 << u | 1 << v) != (1 << u | 1 << v)
    return int(independent.sum())


SIDES: dict[str, Callable[[Any], int]] = {
    "quincunx": quincunx_count,
    "oxidd": oxidd_count,
    "graphillion": graphillion_count,
    "numpy": brute_force_count,
}

#: What peers are compared on: the peer, the lattice, its extents, rounds, and whether `--quick` has it.
PAIRS: list[tuple[str, str, int, int, int, bool]] = [
    ("numpy", "square", 3, 3, 9, True),
    ("oxidd", "square", 3, 3, 9, True),
    ("graphillion", "square", 3, 3, 9, True),
    ("numpy", "square", 4, 5, 5, True),
    ("oxidd", "square", 10, 10, 5, True),
    ("graphillion", "square", 8, 8, 5, True),
    ("oxidd", "4-8-8", 6, 6, 5, True),
    ("oxidd", "square", 14, 14, 3, True),
    ("graphillion", "square", 12, 12, 1, True),
    ("graphillion", "square", 14, 14, 1, False),
    ("oxidd", "4-8-8", 12, 12, 1, False),
    ("oxidd", "square", 20, 20, 1, False),
]


def lattice_of(kind: str, rows: int, cols: int) -> Any:
    lattice = lattices.named(kind, rows, cols)
    lattice.edges  # noqa: B018 -- made once, for no side to pay for
    return lattice


# Measures.


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def peak_above_start(job: Callable[[], object]) -> int:
    """Run a job; return by how much the resident memory rose at its peak."""
    before = forget_peak()
    job()
    return status("VmHWM") - before


def least_times(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Return the least time of each call; they take turns, each several times where one is too short for the clock."""
    repeats = []
    for call in calls:
        start = time.process_time()
        call()
        taken = time.process_time() - start
        repeats.append(1 if taken > 0.02 else min(int(0.05 / max(taken, 1e-7)) + 1, 20_000))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            # Processor time of all threads: its clock is finer than that of user time alone.
            start = time.process_time()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / repeats[i])
    return best


def child(task: dict[str, Any]) -> dict[str, Any]:
    """Do one task and say what it took."""
    if task["task"] == "ratio":
        lattice = lattice_of(*task["lattice"])
        counts = [SIDES[side](lattice) for side in task["sides"]]
        if len(set(counts)) != 1:
            raise AssertionError(f"the sides disagree: {counts}")
        calls = [lambda side=side: SIDES[side](lattice) for side in task["sides"]]
        return {"seconds": least_times(calls, task["rounds"]), "count": str(counts[0])}
    if task["task"] == "memory":
        lattice = lattice_of(*task["lattice"])
        importlib.import_module({"numpy": "numpy", "quincunx": "quincunx.counting"}.get(task["side"], task["side"]))
        count_independent_sets(lattices.square(3, 3))
        return {"peak": peak_above_start(lambda: SIDES[task["side"]](lattice))}
    return measured_job(task["name"])


# Targets.


def band_graph(n: int, width: int) -> tuple[int, Any]:
    """Return a random graph in which each vertex has neighbors up to `width` places on, and one at just that distance.

    Taken in their order, the vertices with neighbors to come are `width` at a time: the frontier has that width.
    """
    random = np.random.default_rng(24)
    edges = {(v, v + width) for v in range(n - width)}
    for v in range(n):
        edges |= {(v, min(v + int(step), n - 1)) for step in random.integers(1, width, 2) if v + 1 < n}
    return n, np.array(sorted((u, v) for u, v in edges if u != v))


def partial_k_tree(k: int, n: int) -> tuple[int, Any]:
    """Return a random graph of treewidth k: each new vertex is joined to a clique, a fifth of the edges is left out."""
    random = np.random.default_rng(5)
    cliques = [tuple(range(k))]
    edges = [(u, v) for v in range(k) for u in range(v)]
    for v in range(k, n):
        clique = cliques[random.integers(len(cliques))]
        edges += [(u, v) for u in clique]
        out = random.integers(k)
        cliques.append((*clique[:out], *clique[out + 1 :], v))
    return n, np.array(edges)[random.random(len(edges)) > 0.2]


def random_graph(n: int, probability: float) -> tuple[int, Any]:
    """Return a graph each of whose edges is there with a probability."""
    upper = np.triu(np.random.default_rng(6).random((n, n)) < probability, 1)
    return n, np.argwhere(upper)


def shuffled(graph: tuple[int, Any]) -> tuple[int, Any]:
    order = np.random.default_rng(7).permutation(graph[0])
    return graph[0], order[graph[1]]


def count_job(graph: Any, **how: Any) -> tuple[Callable[[], object], Callable[[], Any]]:
    return lambda: count_independent_sets(graph, **how), lambda: estimate_cost(graph, **how)


def matchings_job(graph: Any) -> tuple[Callable[[], object], None]:
    return lambda: count_matchings(graph), None


def polynomial_job(graph: Any) -> tuple[Callable[[], object], None]:
    return lambda: independence_polynomial(graph), None


def hard_core_job(graph: Any, activity: Any) -> tuple[Callable[[], object], None]:
    return lambda: hard_core(graph, activity), None


def all_tables() -> object:
    return [independent_set_table("4-8-8", 10, boundary=boundary) for boundary in ("free", "cylinder", "torus")]


SIX = {"memory_limit": 6 * GIB}
BAND = band_graph(500, 24)

#: Name; job and forecast; target in user seconds; in wall seconds; in bytes; whether `--quick` has it.
Job = tuple[tuple[Callable[[], object], Callable[[], Any] | None], float | None, float | None, int | None, bool]
JOBS: dict[str, Job] = {
    "square 24 x 24": (count_job(lattices.square(24, 24)), None, None, None, True),
    "square 12 x 14 torus": (count_job(lattices.square(12, 14, "torus")), None, None, None, True),
    "king 20 x 20": (count_job(lattices.king(20, 20)), None, None, None, True),
    "triangular 20 x 20": (count_job(lattices.triangular(20, 20)), None, None, None, True),
    "4-8-8 14 x 14": (count_job(lattices.four_eight_eight(14, 14)), None, None, None, True),
    "kagome 8 x 8": (count_job(lattices.kagome(8, 8)), None, None, None, True),
    "band graph, 200 vertices, frontier 16": (count_job(band_graph(200, 16)), None, None, None, True),
    "partial 5-tree, 1000 vertices": (count_job(partial_k_tree(5, 1000)), None, 0.02, None, True),
    "the same, 10000 vertices": (count_job(partial_k_tree(5, 10000)), None, 0.3, None, True),
    "partial 12-tree, 300 vertices": (count_job(partial_k_tree(12, 300)), None, 0.05, None, True),
    "matchings, partial 5-tree, 1000 vertices": (matchings_job(partial_k_tree(5, 1000)), None, 0.05, None, True),
    "gnp(100, .3)": (count_job(random_graph(100, 0.3)), None, 0.044, None, True),
    "gnp(120, .5)": (count_job(random_graph(120, 0.5)), None, 0.0066, None, True),
    "polynomial, square 10 x 10": (polynomial_job(lattices.square(10, 10)), None, None, None, True),
    "three 4-8-8 tables to 10 x 10": ((all_tables, None), None, 1.0, None, True),
    "square 30 x 30": (count_job(lattices.square(30, 30)), 2.0, None, None, False),
    "4-8-8 18 x 18": (count_job(lattices.four_eight_eight(18, 18)), 0.7, None, None, False),
    "4-8-8 20 x 20": (count_job(lattices.four_eight_eight(20, 20)), 5.0, None, None, False),
    "4-8-8 22 x 22": (count_job(lattices.four_eight_eight(22, 22)), 30.0, None, None, False),
    "square 34 x 34": (count_job(lattices.square(34, 34), threads=1), 1.0, None, None, False),
    "square 34 x 34 in 125 MB": (
        count_job(lattices.square(34, 34), threads=1, memory_limit=125_000_000),
        2.0,
        None,
        125_000_000,
        False,
    ),
    "square 37 x 37": (count_job(lattices.square(37, 37), **SIX), 5.0, None, 6 * GIB, False),
    "square 39 x 39": (count_job(lattices.square(39, 39), memory_limit=10 * GIB), 16.0, None, 10 * GIB, False),
    "square 40 x 40": (count_job(lattices.square(40, 40), memory_limit=14 * GIB), 40.0, None, 14 * GIB, False),
    "band graph, 500 vertices, frontier 24": (
        count_job(BAND, order=range(500)),
        None,
        45.0,
        None,
        False,
    ),
    "the same, shuffled, no order given": (count_job(shuffled(BAND)), None, 45.0, None, False),
    "polynomial, square 16 x 16": (polynomial_job(lattices.square(16, 16)), None, 5.0, None, False),
    "polynomial, square 20 x 20": (polynomial_job(lattices.square(20, 20)), None, 120.0, None, False),
    "hard core at 7/5, square 28 x 28": (hard_core_job(lattices.square(28, 28), "7/5"), None, None, None, False),
    "square 26 x 26 cylinder": (count_job(lattices.square(26, 26, "cylinder")), None, None, None, False),
    "king 24 x 24 cylinder": (count_job(lattices.king(24, 24, "cylinder")), None, None, None, False),
}
MOONSHOT: dict[str, Job] = {
    "square 45 x 45": (count_job(lattices.square(45, 45), memory_limit=20 * GIB), None, 600.0, 20 * GIB, False),
}


def measured_job(name: str) -> dict[str, Any]:
    (job, forecast), *_ = (JOBS | MOONSHOT)[name]
    count_independent_sets(lattices.square(16, 16))  # the pool is there
    promised = forecast() if forecast else None
    start, wall = user_seconds(), time.perf_counter()
    peak = peak_above_start(job)
    answer = {"user": user_seconds() - start, "wall": time.perf_counter() - wall, "peak": peak}
    if promised:
        answer |= {"engine": promised.engine, "rate": promised.additions / max(answer["user"], 1e-4)}
        answer |= {"of_limit": answer["rate"] / additions_per_second()}
        answer |= {"bytes_ratio": promised.bytes / max(peak, 1), "wall_ratio": promised.seconds / answer["wall"]}
    return answer


# What is printed.


def amount(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def print_ratios(full: bool, only: str) -> None:
    print(f"{'peer over quincunx':52} {'peer':>10} {'quincunx':>10} {'time':>8} {'memory':>8}")
    for peer, kind, rows, cols, rounds, quick in PAIRS:
        name = f"{kind} {rows} x {cols} beside {peer}"
        if only not in name or not (quick or full):
            continue
        if peer != "numpy" and importlib.util.find_spec(peer) is None:
            print(f"{name:52} {peer} is not installed: pip install {peer}")
            continue
        where = (kind, rows, cols)
        task = {"task": "ratio", "lattice": where, "rounds": rounds}
        if rounds > 1:
            times = in_a_fresh_process(__file__, task | {"sides": [peer, "quincunx"]})
        else:
            # A peer that has worked for seconds leaves threads behind, whose time would be counted as ours.
            alone = [in_a_fresh_process(__file__, task | {"sides": [side]}) for side in (peer, "quincunx")]
            times = next((side for side in alone if "failed" in side), None) or {
                "seconds": [side["seconds"][0] for side in alone]
            }
            if "failed" not in times and alone[0]["count"] != alone[1]["count"]:
                times = {"failed": f"the sides disagree: {alone[0]['count']} and {alone[1]['count']}"}
        peaks = [
            in_a_fresh_process(__file__, {"task": "memory", "lattice": where, "side": side})
            for side in (peer, "quincunx")
        ]
        failed = [answer["failed"] for answer in (times, *peaks) if "failed" in answer]
        if failed:
            print(f"{name:52} failed: {failed[0]}")
            continue
        theirs, ours = times["seconds"]
        # A page or two of our own memory is below what the system tells.
        high, low = peaks[0]["peak"], max(peaks[1]["peak"], 4096)
        line = f"{name:52} {seconds(theirs):>10} {seconds(ours):>10} {theirs / ours:7.0f}x {high / low:7.0f}x"
        if name == "square 20 x 20 beside oxidd":
            line += f"  time: {verdict(theirs / ours, 1000, False)}; memory: {verdict(high / low, 100, False)}"
        print(line, flush=True)
        keep(f"independent sets, {kind} {rows} x {cols}", ours, {peer: theirs})
    print()


def print_jobs(jobs: dict[str, Job], only: str) -> None:
    print(f"{'job':40} {'user s':>8} {'wall s':>8} {'peak':>8} {'rate':>8} {'of limit':>8}  {'forecast':>13}")
    for name, (_, user, wall, memory, _) in jobs.items():
        if only not in name:
            continue
        found = in_a_fresh_process(__file__, {"task": "job", "name": name})
        if "failed" in found:
            print(f"{name:40} failed: {found['failed']}", flush=True)
            continue
        line = f"{name:40} {found['user']:8.3f} {found['wall']:8.3f} {amount(found['peak']):>8}"
        if "rate" in found:
            # Below a few megabytes the memory of the program itself decides.
            memory_ratio = f"{found['bytes_ratio']:5.2f}" if found["peak"] > 1 << 23 else "    -"
            line += f" {found['rate']:8.2g} {found['of_limit']:8.0%}  {memory_ratio}, {found['wall_ratio']:5.2f}x"
        else:
            line += f" {'-':>8} {'-':>8}  {'-':>13}"
        for measured, target, what in ((found["user"], user, "user"), (found["wall"], wall, "wall")):
            if target is not None:
                line += f"  {what} {verdict(measured, target)}"
        if memory is not None:
            line += f"  GiB {verdict(round(found['peak'] / GIB, 2), memory / GIB)}"
        print(line, flush=True)
        keep(name, found["user"])
    print()


def print_overhead() -> None:
    """Print what a call costs above the bare work, and what an import costs beside NumPy's."""
    lattice = lattices.square(2, 2)
    problem, job = ("square", 2, 2, "free"), _job.Job(threads=1, memory_limit=1 << 40)
    public, bare = least_times(
        [
            lambda: count_independent_sets(lattice),
            lambda: _core.plan_independent_sets(problem, "count", job).solve(job),
        ],
        9,
    )
    costs = f"{1e6 * public:.2f} us, of which compiled {1e6 * bare:.2f} us"
    print(f"a call on the 2 x 2 square: {costs}  {verdict(1e6 * public, 10)}")
    program = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    times: dict[str, list[float]] = {"numpy": [], "quincunx": [], "quincunx.counting": []}
    for _ in range(11):
        for module, taken in times.items():
            command = [sys.executable, "-c", program.format(module)]
            taken.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    numpy, alone, room = (statistics.median(taken) for taken in times.values())
    print(
        f"import numpy: {1e3 * numpy:.0f} ms; import quincunx: {alone / numpy:.2f} of it  {verdict(alone / numpy, 1.5)}"
    )
    print(f"import quincunx.counting: {room / numpy:.2f} of import numpy\n")


def main() -> None:
    parser = arguments(__doc__, quick="small sizes only", full="every target", only="lines")
    parser.add_argument("--moonshot", action="store_true", help="the 45 x 45 square, too")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(json.loads(options.child))))
        return
    print_build()
    if not options.only:
        print_overhead()
    print_ratios(options.full, options.only)
    jobs = {name: job for name, job in JOBS.items() if options.full or job[-1]}
    print_jobs(jobs | (MOONSHOT if options.moonshot else {}), options.only)


if __name__ == "__main__":
    main()
