"""Time the search for automorphisms beside nauty (pynauty), BLISS (python-igraph), sympy and networkx, in one run.

    python benches/bench_automorphisms.py [--repeat 5] [--limit 20] [--only text]

Each graph is given to every peer in the peer's own form, made beforehand; quincunx gets its `Graph` and includes its
own conversion. Times are processor seconds, the best of the repetitions, interleaved. Every peer runs in a process of
its own that is given up after the limit. Orders are compared: a peer with another order than ours is marked. Peers
that are not installed are left out with a note.
"""

import argparse
import importlib.util
import math
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from automorphism_graphs import GRAPHS
from measuring import keep


def ours(n: int, edges: np.ndarray) -> Callable[[], float]:
    from quincunx.graphs import Graph, automorphism_group

    graph = Graph(n, edges)

    def run() -> float:
        order = automorphism_group(graph).order
        return math.log10(order)

    return run


def nauty(n: int, edges: np.ndarray) -> Callable[[], float]:
    import pynauty

    adjacency: dict[int, list[int]] = {v: [] for v in range(n)}
    for u, v in edges.tolist():
        adjacency[u].append(v)
    graph = pynauty.Graph(n, adjacency_dict=adjacency)

    def run() -> float:
        _, mantissa, exponent, _, _ = pynauty.autgrp(graph)
        return math.log10(mantissa) + exponent

    return run


def bliss(n: int, edges: np.ndarray) -> Callable[[], float]:
    import igraph

    graph = igraph.Graph(n=n, edges=edges.tolist())
    return lambda: math.log10(graph.count_automorphisms(sh="fl"))


def networkx(n: int, edges: np.ndarray) -> Callable[[], float]:
    import networkx as nx

    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(n))
    return lambda: math.log10(sum(1 for _ in nx.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter()))


def sympy(n: int, edges: np.ndarray) -> Callable[[], float]:
    """Only the order from generators: sympy has no search."""
    from sympy.combinatorics import Permutation, PermutationGroup

    from quincunx.graphs import automorphism_group

    generators = [Permutation(row) for row in automorphism_group((n, edges)).generators.tolist()]
    return lambda: math.log10(int(PermutationGroup(generators or [Permutation(n - 1)]).order()))


PEERS = {"nauty": ("pynauty", nauty), "BLISS": ("igraph", bliss)}
SLOW_PEERS = {"networkx": ("networkx", networkx), "sympy": ("sympy", sympy)}


def _serve(make: Callable[..., Callable[[], float]], n: int, edges: np.ndarray, pipe: Any) -> None:
    run = make(n, edges)
    pipe.send(None)
    while pipe.recv():
        start = time.process_time()
        log_order = run()
        pipe.send((time.process_time() - start, log_order))


class Runner:
    """One program on one graph, in a process that can be given up."""

    def __init__(self, make: Callable[..., Callable[[], float]], n: int, edges: np.ndarray, limit: float) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_serve, args=(make, n, edges, theirs), daemon=True)
        self.process.start()
        self.limit = limit
        self.best = math.inf
        self.log_order = math.nan
        self.alive = self.pipe.poll(120)
        if self.alive:
            self.pipe.recv()

    def run(self) -> None:
        if not self.alive:
            return
        self.pipe.send(True)
        if not self.pipe.poll(self.limit):
            self.alive = False
            self.process.terminate()
            return
        seconds, self.log_order = self.pipe.recv()
        self.best = min(self.best, seconds)

    def close(self) -> None:
        if self.alive:
            self.pipe.send(False)
        self.process.join()


def measure(
    name: str,
    peers: dict[str, Callable[..., Callable[[], float]]],
    n: int,
    edges: np.ndarray,
    repeat: int,
    limit: float,
) -> dict[str, float]:
    """Return the seconds of each program, infinite beyond the limit."""
    runners = {peer: Runner(make, n, edges, limit) for peer, make in {"quincunx": ours, **peers}.items()}
    for _ in range(repeat):
        for runner in runners.values():
            runner.run()
    for peer, runner in runners.items():
        runner.close()
        if runner.alive and not math.isclose(runner.log_order, runners["quincunx"].log_order, abs_tol=1e-6):
            print(f"{name}: {peer} finds another order, 10**{runner.log_order:.6f}")
    return {peer: runner.best for peer, runner in runners.items()}


def shown(seconds: float, ours: float) -> str:
    """Print a time and its ratio to ours."""
    return f"{'>limit':>9}{'':8}" if math.isinf(seconds) else f"{seconds:9.5f}{seconds / ours:7.2f}x"


def installed(peers: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return the peers that can be imported."""
    for peer, (module, _) in peers.items():
        if importlib.util.find_spec(module) is None:
            print(f"{peer} is left out: `pip install {module}` to compare")
    return {peer: make for peer, (module, make) in peers.items() if importlib.util.find_spec(module)}


def main() -> None:
    """Print the table of times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a peer is given up")
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    arguments = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    peers = installed(PEERS)
    print(f"{'graph':24}{'vertices':>9}{'edges':>8}{'quincunx':>10}  " + "".join(f"{peer:>17}" for peer in peers))
    ratios: dict[str, list[float]] = {peer: [] for peer in peers}
    worst = 0.0
    for name, make in GRAPHS.items():
        if arguments.only not in name:
            continue
        n, edges = make()
        seconds = measure(name, peers, n, edges, arguments.repeat, arguments.limit)
        mine = seconds.pop("quincunx")
        print(
            f"{name:24}{n:9}{len(edges):8}{mine:10.5f}  " + "".join(shown(t, mine) for t in seconds.values()),
            flush=True,
        )
        for peer, time_of_peer in seconds.items():
            if math.isfinite(time_of_peer):
                ratios[peer].append(time_of_peer / mine)
        keep(f"{name}, {n} vertices", mine, {peer: t for peer, t in seconds.items() if math.isfinite(t)})
        worst = max(worst, mine / min(seconds.values(), default=math.inf))
    for peer, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{peer}: {mean:.2f} times our time in geometric mean over the {len(values)} graphs it finished")
    print(f"at worst {worst:.2f} times the time of the best peer")
    slow = installed(SLOW_PEERS)
    if not arguments.only and slow:
        from quincunx.graphs import hamming

        for u, v in ((3, 2), (4, 2), (2, 4)):
            graph = hamming(u, v)
            seconds = measure(f"H({u},{v})", slow, graph.num_vertices, graph.edges, 2, arguments.limit)
            print(f"H({u},{v}): " + ", ".join(f"{peer} {t:.5f} s" for peer, t in seconds.items()))


if __name__ == "__main__":
    main()
