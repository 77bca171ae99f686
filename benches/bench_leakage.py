"""Leakage beside its peers, as ratios: averaging and a memory copy, measures and `qif`, programs and NumPy.

Run ``python benches/bench_leakage.py``; ``--small`` leaves out the matrices of 512 MiB. Peers run in the same process
(``pip install quincunx[peers]``; those that are missing are left out). Each figure is the least processor time of a few
runs, all threads together, which a busy machine disturbs less than wall time; averages say the wall time as well.
"""

import math
import sys
import time

import numpy as np

from measuring import keep
from quincunx import _core
from quincunx.graphs import AutomorphismGroup, automorphism_group, grid, hamming, torus
from quincunx.leakage import Channel, geometric_channel, optimal_mechanism

try:
    import qif
except ImportError:
    qif = None


def best(work, repeats=3):
    """The least processor time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def say(name, seconds, target="", **others):
    beside = "   ".join(f"{peer} {other:.4g} s ({other / seconds:.3g} x ours)" for peer, other in others.items())
    print(f"{name:<58} {seconds:10.4f} s   {target:<28} {beside}", flush=True)
    keep(name.strip(), seconds, others)


def beside_qif(what, work, repeats=3):
    """What qif takes for the same, by its name: nothing where it is not installed or fails, which is said."""
    if qif is None:
        return {}
    try:
        return {"qif": best(work, repeats)}
    except Exception as reason:
        print(f"   (qif's {what}: {type(reason).__name__}: {str(reason).splitlines()[0][:90]})")
        return {}


def random_rows(n, seed=0):
    rows = np.random.default_rng(seed).random((n, n))
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def beside_a_copy(name, channel, make, limit, threads, repeats=5):
    """A whole call of `symmetrize`, labels included, in turn with a copy of the matrix by one thread."""
    out = np.zeros(channel.matrix.shape)
    for count in threads:
        figures = []
        for _ in range(repeats):
            for work in (
                lambda: np.copyto(out, channel.matrix),
                lambda count=count: channel.symmetrize(make(), out=out, threads=count),
            ):
                cpu, wall = time.process_time(), time.perf_counter()
                work()
                figures.append((time.process_time() - cpu, time.perf_counter() - wall))
        copied, ours = np.min(figures[::2], axis=0), np.min(figures[1::2], axis=0)
        ratios = f"{ours[0] / copied[0]:.2f} x memcpy, wall {ours[1] / copied[1]:.2f}{f' ({limit})' if limit else ''}"
        print(f"{name + f', {count} thr':<58} {ours[0]:10.4f} s   {ratios:<28} memcpy {copied[0]:.4g} s", flush=True)


def averaging(length, side, threads):
    """Averaging over H(length, 2) and a square torus."""
    n = 2**length
    channel, graph = Channel(random_rows(n)), hamming(length, 2)
    group = AutomorphismGroup.hamming(length, 2)
    images = group.generators
    beside_a_copy(f"average over the graph H({length},2)", channel, lambda: graph, 3, threads)
    beside_a_copy("average over its group", channel, lambda: group, 3, threads)
    beside_a_copy(
        f"average over {len(images)} generators of it, labels made",
        channel,
        lambda: AutomorphismGroup.from_generators(n, images),
        6,
        threads,
    )
    if length <= 12:
        labels = group.orbitals().labels().ravel()

        def plain():
            return (np.bincount(labels, weights=channel.matrix.ravel()) / np.bincount(labels))[labels]

        say("   the same by NumPy's bincount, labels given", best(plain, 1))
    n = side * side
    channel = Channel(channel.matrix[:n, :n], normalize=True)
    for name, graph in ((f"torus {side}x{side}", torus(side, side)), (f"grid {side}x{side}", grid(side, side))):
        group = automorphism_group(graph)
        limit = 6 if "torus" in name else None
        beside_a_copy(f"average over the group of the {name}, labels made", channel, lambda g=group: g, limit, threads)


def averaging_by_listing():
    """What is done without orbitals: to list the group, or to find the components of the graph of all pairs."""
    graph = hamming(4, 2)
    channel, others = Channel(random_rows(16)), {}
    try:
        import networkx as nx

        peer = graph.to_networkx()

        def listed():
            matcher = nx.isomorphism.GraphMatcher(peer, peer)
            maps = [[g[v] for v in range(16)] for g in matcher.isomorphisms_iter()]
            return sum(channel.matrix[np.ix_(p, p)] for p in maps) / len(maps)

        others["networkx"] = best(listed, 1)
    except ImportError:
        pass
    say("average over Q4", best(lambda: channel.symmetrize(graph, threads=1), 20), **others)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = 256
    images = AutomorphismGroup.hamming(8, 2).generators
    channel = Channel(random_rows(n))

    def paired():
        ends = np.concatenate([(p[:, None] * n + p).ravel() for p in images])
        starts = np.tile(np.arange(n * n), len(images))
        labels = connected_components(coo_array((np.ones(len(ends)), (starts, ends)), shape=(n * n, n * n)))[1]
        return (np.bincount(labels, weights=channel.matrix.ravel()) / np.bincount(labels))[labels]

    group = AutomorphismGroup.from_generators(n, images)
    say("average over generators of Q8", best(lambda: channel.symmetrize(group, threads=1), 10), scipy=best(paired, 2))


def programs():
    """The reduced program of the 12-cube."""
    graph = hamming(12, 2)
    optimal_mechanism(graph, 1.0, method="linear program")
    ours = best(lambda: optimal_mechanism(graph, math.log(2), method="linear program"), 20)
    found = optimal_mechanism(graph, math.log(2), method="linear program")
    say(f"reduced program of Q12, {found.variables} variables", ours, f"{ours / 0.010:.2f} x 10 ms")
    full = best(lambda: optimal_mechanism(hamming(4, 2), math.log(2), method="linear program", use_symmetry=False), 2)
    reduced = best(lambda: optimal_mechanism(hamming(4, 2), math.log(2), method="linear program"), 5)
    n, distance = 16, hamming_table(4)
    loss = 1 - np.eye(n)

    def peer():
        def metric(a, b):
            return distance[a, b] * math.log(2)

        prior = qif.probab.uniform(n)
        return qif.mechanism.d_privacy.min_loss_given_d(prior, n, metric, lambda w, x: loss[int(w), int(x)])

    say("reduced program of Q4", reduced, unreduced=full, **beside_qif("program", peer, 1))


def hamming_table(length):
    n = 2**length
    return np.array([[(a ^ b).bit_count() for b in range(n)] for a in range(n)], dtype=float)


def plain_level(matrix, edges):
    """The privacy level, edge by edge."""
    logs = np.log(matrix)
    return max(np.abs(logs[u] - logs[v]).max() for u, v in edges)


def levels(threads):
    """The privacy level on H(12,2) and on a path."""
    for length in (10, 12):
        graph = hamming(length, 2)
        channel = Channel(random_rows(2**length))
        for count in threads:
            ours = best(lambda c=channel, g=graph, t=count: c.dp_epsilon(g, threads=t))
            others = {}
            if length == 10:
                others["numpy"] = best(lambda c=channel, g=graph: plain_level(c.matrix, g.edges), 1)
            say(
                f"dp_epsilon on H({length},2), {count} thr",
                ours,
                f"{ours / 0.1:.2f} x 0.1 s" if length == 12 else "",
                **others,
            )
    n = 200
    channel = geometric_channel(n, 0.5)
    path = (n, [(i, i + 1) for i in range(n - 1)])
    ours = best(lambda: channel.dp_epsilon(path))
    others = beside_qif(
        "level", lambda: qif.measure.d_privacy.smallest_epsilon(channel.matrix, lambda a, b: abs(a - b)), 1
    )
    say("dp_epsilon on a path of 200", ours, **others)


def capacities():
    """Certified Shannon capacity of the truncated geometric channel."""
    for n in (100, 400):
        channel = geometric_channel(n, math.log(2))
        ours = best(lambda channel=channel: channel.shannon_capacity(1e-7), 5)
        others = beside_qif(
            "capacity", lambda channel=channel: qif.measure.shannon.add_capacity(channel.matrix, 1e-7), 1
        )
        target = f"{ours / 0.020:.2f} x 20 ms" if n == 400 else ""
        say(f"certified capacity within 1e-7, n = {n}", ours, target, **others)
        found = channel.shannon_capacity()
        finer = best(lambda channel=channel: channel.shannon_capacity(), 5)
        say(f"   within 1e-9, {found.iterations} steps", finer, f"{finer / 0.020:.2f} x 20 ms" if n == 400 else "")
    n = 2000
    channel, prior = Channel(random_rows(n)), np.full(n, 1 / n)
    others = {"numpy": best(lambda: (prior[:, None] * channel.matrix).max(axis=0).sum())}
    others |= beside_qif("vulnerability", lambda: qif.measure.bayes_vuln.posterior(prior, channel.matrix))
    say(f"Bayes vulnerability, n = {n}", best(channel.bayes_vulnerability), **others)


def main():
    threads = sorted({1, _core.available_threads()})
    print(f"threads {threads}, qif {'not installed' if qif is None else 'installed'}")
    capacities()
    programs()
    levels(threads)
    averaging_by_listing()
    averaging(11, 32, threads)
    if "--small" not in sys.argv:
        averaging(13, 90, threads)


if __name__ == "__main__":
    main()
