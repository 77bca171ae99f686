"""Independent sets the slow way, three times over, and partial k-trees: sharing nothing with the package."""

import functools

import numpy as np


def all_subsets(n, edges):
    """Return the numbers of independent sets by size, over all subsets of at most 22 vertices."""
    assert n <= 22
    sets = np.arange(1 << n, dtype=np.uint32)
    independent = np.ones(len(sets), dtype=bool)
    for pair in {1 << u | 1 << v for u, v in edges}:
        independent &= sets & pair != pair
    return np.trim_zeros(np.bincount(np.bitwise_count(sets[independent])), "b").tolist()


def branching(n, edges):
    """Return the number of independent sets: those without a vertex, and those with it."""
    closed, looped = [1 << v for v in range(n)], 0
    for u, v in edges:
        closed[u] |= 1 << v
        closed[v] |= 1 << u
        looped |= (u == v) << u

    @functools.cache
    def sets(free):
        if not free:
            return 1
        lowest = free & -free
        return sets(free ^ lowest) + sets(free & ~closed[lowest.bit_length() - 1])

    return sets((1 << n) - 1 & ~looped)


def frontier_sums(n, edges, activity=1):
    """Return the partition function: sums by what is occupied among the vertices that still have neighbors to come."""
    before, last = [0] * n, list(range(n))
    for u, v in edges:
        u, v = min(u, v), max(u, v)
        before[v] |= 1 << u
        last[u] = max(last[u], v)
    forget = [0] * n
    for v in range(n):
        forget[last[v]] |= 1 << v
    sums = {0: 1}
    for v in range(n):
        after = {}
        for occupied, total in sums.items():
            without = occupied & ~forget[v]
            after[without] = after.get(without, 0) + total
            # A loop makes a vertex its own neighbor before it.
            if not before[v] & (occupied | 1 << v):
                with_it = (occupied | 1 << v) & ~forget[v]
                after[with_it] = after.get(with_it, 0) + activity * total
        sums = after
    return sum(sums.values())


def value(coefficients, activity):
    """Return a polynomial's value."""
    total = 0
    for coefficient in reversed(coefficients):
        total = total * activity + coefficient
    return total


def partial_k_tree(k, n, seed, dropped=0.2):
    """Return a graph of treewidth k: each new vertex is joined to a random k-clique, and some edges are left out."""
    rng = np.random.default_rng(seed)
    cliques, edges = [tuple(range(k))], [(u, v) for v in range(k) for u in range(v)]
    for v in range(k, n):
        clique = cliques[rng.integers(len(cliques))]
        edges += [(u, v) for u in clique]
        out = rng.integers(k)
        cliques.append((*clique[:out], *clique[out + 1 :], v))
    return n, np.array(edges)[rng.random(len(edges)) >= dropped]
