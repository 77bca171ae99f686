"""Trees, dimers, matchings, spectra and constants of lattices: ratios beside peers, and the targets one by one.

Run with `python benches/bench_lattice_statistics.py` (about two minutes); `--full` adds the largest cases and the long
runs of peers, `--only TEXT` picks the lines whose name contains it. Peers are optional: `pip install quincunx[bench]`.

Both sides of a ratio are called in one process, in turns, results compared first; a time is the least processor time of
several rounds. A target is called as a user calls it, in a process of its own: time from the call to the integer, and
the peak of the resident memory above what it was at the start. It holds if the wall time or the processor time does: on
a busy machine the latter is the wall time of a quiet one, or more.
"""

import importlib.util
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from measuring import arguments, forget_peak, in_a_fresh_process, keep, print_build, seconds, status
from quincunx import counting, entropy, graphs, lattices, spectra

square = lattices.square

# Peers.


def flint_trees(graph: Any) -> int:
    from flint import fmpz_mat

    matrix = graph.to_scipy().toarray()
    laplacian = np.diag(matrix.sum(axis=1)) - matrix
    return int(fmpz_mat(laplacian[1:, 1:].tolist()).det())


def networkx_trees(lattice: Any) -> float:
    import networkx

    return float(networkx.number_of_spanning_trees(lattice.to_networkx()))


def networkx_insertion(lattice: Any) -> int:
    import networkx

    subdivided = networkx.Graph()
    for number, (u, v) in enumerate(lattice.edges.tolist()):
        subdivided.add_edge(("vertex", u), ("edge", number))
        subdivided.add_edge(("edge", number), ("vertex", v))
    return int(networkx.line_graph(subdivided).number_of_edges())


def networkx_resistances(lattice: Any) -> float:
    import networkx

    return float(networkx.effective_graph_resistance(lattice.to_networkx()))


def rustworkx_honeycomb() -> int:
    from rustworkx.generators import hexagonal_lattice_graph

    return int(hexagonal_lattice_graph(100, 100).num_edges() // 10**4)


def networkx_colorings(graph: Any) -> int:
    import networkx
    import sympy

    return int(networkx.chromatic_polynomial(graph.to_networkx()).subs(sympy.Symbol("x"), 4))


def networkx_tutte(graph: Any) -> int:
    import networkx
    import sympy

    return int(networkx.tutte_polynomial(graph.to_networkx()).subs({sympy.Symbol("x"): 2, sympy.Symbol("y"): 3}))


def netket_kagome(size: int) -> int:
    from netket.graph import Kagome

    return int(Kagome([size, size], pbc=True).n_edges)


def dense_energy(lattice: Any) -> float:
    return float(abs(np.linalg.eigvalsh(lattice.graph.to_scipy().toarray().astype(float))).sum())


def first_vertex_first(lattice: Any) -> int:
    """Match the first free vertex with each neighbor in turn: perfect matchings one by one."""
    around: list[list[int]] = [[] for _ in range(lattice.num_vertices)]
    for u, v in lattice.edges.tolist():
        around[u].append(v)
        around[v].append(u)

    def rest(free: int) -> int:
        if not free:
            return 1
        v = (free & -free).bit_length() - 1
        free ^= 1 << v
        return sum(rest(free ^ 1 << u) for u in around[v] if free >> u & 1)

    return rest((1 << lattice.num_vertices) - 1)


def same(ours: Any, theirs: Any) -> bool:
    """Compare a peer's result: floats by the digits they have."""
    return abs(float(ours) - theirs) <= 1e-9 * abs(theirs) if isinstance(theirs, float) else bool(ours == theirs)


class Pair(NamedTuple):
    """What is measured beside a peer: the peer's package, its program and ours."""

    name: str
    peer: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]
    rounds: int = 1
    #: The ratio asked for.
    target: float | None = None
    #: Whether only `--full` has it.
    long: bool = False


def pairs() -> list[Pair]:
    trees = counting.count_spanning_trees
    grids = {size: square(size, size) for size in (6, 10, 20, 30)}
    torus, inserted = lattices.honeycomb(30, 30, "torus"), lattices.named("3-6-24", 8, 8, "torus")
    whole = graphs.complete(120)
    found = [
        Pair(
            f"trees of the {size} x {size} square by elimination",
            "flint",
            lambda size=size: flint_trees(grids[size].graph),  # type: ignore[misc]
            lambda size=size: trees(grids[size], method="elimination", threads=1),  # type: ignore[misc]
            rounds,
            target,
        )
        for size, rounds, target in ((10, 5, None), (20, 2, None), (30, 1, 200.0))
    ]
    return [
        *found,
        Pair(
            "trees of the 30 x 30 square as called",
            "flint",
            lambda: flint_trees(grids[30].graph),
            lambda: trees(grids[30], threads=1),
            target=200.0,
            long=True,
        ),
        Pair(
            "trees of the complete graph on 120 vertices",
            "flint",
            lambda: flint_trees(whole),
            lambda: trees(whole, threads=1),
            2,
        ),
        Pair(
            "trees of the 10 x 10 square (theirs a float)",
            "networkx",
            lambda: networkx_trees(grids[10]),
            lambda: trees(grids[10], threads=1),
            3,
        ),
        Pair(
            "perfect matchings of the 6 x 6 square",
            "plain Python",
            lambda: first_vertex_first(grids[6]),
            lambda: counting.count_perfect_matchings(grids[6]),
            3,
        ),
        Pair(
            "chromatic polynomial of the 3 x 3 square (theirs networkx on sympy)",
            "sympy",
            lambda: networkx_colorings(square(3, 3)),
            lambda: sum(c * 4**k for k, c in enumerate(counting.chromatic_polynomial(square(3, 3), threads=1))),
        ),
        Pair(
            "Tutte polynomial of the 3 x 4 square (theirs networkx on sympy)",
            "sympy",
            lambda: networkx_tutte(square(3, 4)),
            lambda: counting.tutte_polynomial(square(3, 4), threads=1)(2, 3),
        ),
        Pair(
            "clique insertion of a honeycomb torus of 30 x 30 cells",
            "networkx",
            lambda: networkx_insertion(torus),
            lambda: lattices.clique_insert(torus).num_edges,
            3,
        ),
        Pair(
            "kagome torus of 30 x 30 cells, built",
            "netket",
            lambda: netket_kagome(30),
            lambda: len(lattices.kagome(30, 30, "torus").edges),
            3,
        ),
        Pair(
            "kagome torus of 100 x 100 cells, built",
            "netket",
            lambda: netket_kagome(100),
            lambda: len(lattices.kagome(100, 100, "torus").edges),
            long=True,
        ),
        Pair(
            "free honeycomb of about 30,000 edges, built (theirs without positions)",
            "rustworkx",
            rustworkx_honeycomb,
            lambda: (len(lattices.honeycomb(101, 101).edges) + 1000) // 10**4,
            5,
        ),
        Pair(
            "energy of the 3-6-24 torus of 8 x 8 cells",
            "numpy",
            lambda: dense_energy(inserted),
            lambda: spectra.energy(inserted),
        ),
        Pair(
            "Kirchhoff index of the 20 x 20 square, a float",
            "networkx",
            lambda: networkx_resistances(grids[20]),
            lambda: spectra.kirchhoff_index(grids[20]),
            2,
        ),
        Pair(
            "the same, ours exact",
            "networkx",
            lambda: networkx_resistances(grids[20]),
            lambda: spectra.kirchhoff_index(grids[20], exact=True),
            2,
        ),
    ]


class Target(NamedTuple):
    """What is called, in how many seconds and bytes at the most, and whether only `--full` has it."""

    call: Callable[[], Any]
    wall: float | None = None
    memory: float | None = None
    long: bool = False


def targets() -> dict[str, Target]:
    trees, perfect = counting.count_spanning_trees, counting.count_perfect_matchings
    planar = lattices.triangulated_grid(99, 99, 0.5, rng=1)
    named, draw = lattices.named, counting.random_perfect_matching
    found = {
        "trees, square 1000 x 1000, 1 thread": Target(lambda: trees(square(1000, 1000), threads=1), 6.0),
        "trees, its torus, 1 thread": Target(lambda: trees(square(1000, 1000, "torus"), threads=1), 4.0),
        "trees, square 100 x 100 by elimination": Target(
            lambda: trees(square(100, 100), method="elimination"), 6.0, 100e6
        ),
        "trees, triangulated grid of 10^4 vertices": Target(lambda: trees(planar), 6.0, 100e6),
        "trees, honeycomb cylinder, 70 x 70 cells": Target(
            lambda: trees(lattices.honeycomb(70, 70, "cylinder")), 6.0, 100e6
        ),
        "trees, kagome torus, 200 x 200 cells": Target(lambda: trees(lattices.kagome(200, 200, "torus")), long=True),
        "dimers, honeycomb torus, 60 x 60 cells": Target(lambda: perfect(lattices.honeycomb(60, 60, "torus")), 15.0),
        "dimers, square 1000 x 1000": Target(lambda: perfect(square(1000, 1000)), long=True),
        "dimers, triangulated grid of 10^4 vertices": Target(lambda: perfect(planar), long=True),
        "dimers, modified bathroom, 14 x 14": Target(lambda: perfect(named("modified-bathroom", 14, 14))),
        "matchings, square 16 x 16": Target(lambda: counting.count_matchings(square(16, 16)), 1.0),
        "matchings, square 22 x 22": Target(lambda: counting.count_matchings(square(22, 22)), long=True),
        "matching polynomial, square 12 x 12": Target(lambda: counting.matching_polynomial(square(12, 12))),
        "chromatic polynomial, square 12 x 12, 1 thread": Target(
            lambda: counting.chromatic_polynomial(square(12, 12), threads=1), 10.0
        ),
        "Tutte polynomial, square 8 x 8, 1 thread": Target(lambda: counting.tutte_polynomial(square(8, 8), threads=1)),
        "Potts, 3 states, square 12 x 12, 1 thread": Target(
            lambda: counting.potts_partition_function(square(12, 12), 3, 1, threads=1)
        ),
        "kagome torus, 100 x 100 cells, built": Target(lambda: lattices.kagome(100, 100, "torus").edges, 3e-3),
        "energy, 3-6-24 torus of 10^5 cells": Target(lambda: spectra.energy(named("3-6-24", 316, 317, "torus")), 10.0),
        "Kirchhoff index, exact, square 50 x 50": Target(lambda: spectra.kirchhoff_index(square(50, 50), exact=True)),
        "random dimers, square 32 x 32": Target(lambda: draw(square(32, 32), rng=1)),
        "random dimers, honeycomb torus, 8 x 8": Target(lambda: draw(lattices.honeycomb(8, 8, "torus"), rng=1)),
        "random tree, square 200 x 200": Target(lambda: counting.random_spanning_tree(square(200, 200), rng=1)),
    }
    for name in ("square", "triangular", "honeycomb", "kagome", "4-8-8", "king", "martini", "3-12-12", "3-6-24"):
        found[f"tree constant, {name}"] = Target(lambda name=name: entropy.spanning_tree_entropy(name), 0.2)
    for name in ("square", "triangular", "honeycomb", "kagome", "4-8-8", "martini", "3-12-12"):
        found[f"dimer constant, {name}"] = Target(lambda name=name: entropy.dimer_entropy(name), 0.2)
    grid = square(8, 8)
    found["dimers, square 8 x 8"] = Target(lambda: perfect(grid), 5e-5)
    return found


# Measures.


def measured(call: Callable[[], Any]) -> dict[str, float]:
    """Return the least wall time of a call, what it took of the processor then, and the peak of its memory."""
    counting.count_spanning_trees(square(3, 3))  # the library is there
    before = forget_peak()
    start = time.perf_counter(), time.process_time()
    call()
    best = (time.perf_counter() - start[0], time.process_time() - start[1])
    peak = status("VmHWM") - before
    for _ in range(0 if best[0] > 1 else 3 if best[0] > 1e-3 else 300):
        start = time.perf_counter(), time.process_time()
        call()
        best = min(best, (time.perf_counter() - start[0], time.process_time() - start[1]))
    return {"wall": best[0], "processor": best[1], "peak": max(0, peak)}


# What is printed.


def print_ratios(full: bool, only: str) -> None:
    print(f"{'peer over quincunx':80} {'peer':>9} {'ours':>9} {'ratio':>8}")
    for name, peer, theirs, ours, rounds, target, long in pairs():
        title = f"{name}, {peer}"
        if only not in title or (long and not full):
            continue
        if peer in ("flint", "networkx", "netket", "rustworkx", "sympy") and importlib.util.find_spec(peer) is None:
            print(f"{title:80} not installed")
            continue
        if not same(found := ours(), expected := theirs()):
            print(f"{title:80} the sides disagree: {str(found)[:30]} and {str(expected)[:30]}")
            continue
        best = [float("inf")] * 2
        for _ in range(rounds):
            for side, call in enumerate((theirs, ours)):
                start, repeats = time.process_time(), 0
                while repeats == 0 or time.process_time() - start < 0.02:
                    call()
                    repeats += 1
                best[side] = min(best[side], (time.process_time() - start) / repeats)
        line = f"{title:80} {seconds(best[0]):>9} {seconds(best[1]):>9} {best[0] / best[1]:7.3g}x"
        if target is not None:
            line += f"  target >= {target:g}: {'holds' if best[0] >= target * best[1] else 'MISSED'}"
        print(line, flush=True)
        keep(name, best[1], {peer: best[0]})
    print()


def print_targets(full: bool, only: str) -> None:
    print(f"{'target':44} {'wall':>9} {'processor':>10} {'memory':>9}")
    for name, (_, wall, memory, long) in targets().items():
        if only not in name or (long and not full):
            continue
        found = in_a_fresh_process(__file__, name)
        if "failed" in found:
            print(f"{name:44} failed: {found['failed']}", flush=True)
            continue
        line = f"{name:44} {seconds(found['wall']):>9} {seconds(found['processor']):>10} {found['peak'] / 1e6:6.0f} MB"
        if wall is not None:
            # On a busy machine the processor time bounds the wall time of a quiet one.
            least = min(found["wall"], found["processor"])
            line += f"  target <= {seconds(wall)}: {'holds' if least <= wall else 'MISSED'}"
        if memory is not None:
            line += f"; <= {memory / 1e6:.0f} MB: {'holds' if found['peak'] <= memory else 'MISSED'}"
        print(line, flush=True)
    print()


def main() -> None:
    full = "the largest cases and long runs of peers, too"
    options = arguments(__doc__, quick=None, full=full, only="lines").parse_args()
    if options.child:
        print(json.dumps(measured(targets()[json.loads(options.child)].call)))
        return
    print_build()
    print_ratios(options.full, options.only)
    print_targets(options.full, options.only)


if __name__ == "__main__":
    main()
