"""The graphs of the automorphism bench: each a number of vertices and an edge array."""

import itertools
import random
from collections.abc import Iterable

import networkx as nx
import numpy as np

Edges = tuple[int, np.ndarray]


def _edges(n: int, pairs: Iterable[tuple[int, int]]) -> Edges:
    return n, np.array(sorted({(min(p), max(p)) for p in pairs}), dtype=np.int64).reshape(-1, 2)


def hamming(u: int, v: int) -> Edges:
    """Return H(u, v): words of length `u` over `v` symbols, joined where they differ in one place."""
    return _edges(
        v**u,
        (
            (h, h + (t - h // v**i % v) * v**i)
            for h in range(v**u)
            for i in range(u)
            for t in range(v)
            if t > h // v**i % v
        ),
    )


def regular(degree: int, n: int) -> Edges:
    """Return a random regular graph."""
    return _edges(n, nx.random_regular_graph(degree, n, seed=degree).edges)


def paley(p: int) -> Edges:
    """Return the Paley graph of a prime p = 1 mod 4."""
    squares = {x * x % p for x in range(1, p)}
    return _edges(p, ((a, b) for a in range(p) for b in range(a + 1, p) if (b - a) % p in squares))


def johnson(n: int, k: int) -> Edges:
    """Return J(n, k): k-subsets of n points, joined where they share k - 1."""
    words = {s: i for i, s in enumerate(itertools.combinations(range(n), k))}
    return _edges(
        len(words),
        (
            (i, words[tuple(sorted((set(s) - {x}) | {y}))])
            for s, i in words.items()
            for x in s
            for y in range(n)
            if y not in s
        ),
    )


def latin_square(n: int) -> Edges:
    """Return the graph of a random Latin square: cells joined in the same row, column or symbol."""
    square = _jacobson_matthews(n, seed=n)
    lines: list[list[int]] = [[] for _ in range(3 * n)]
    for r, c in itertools.product(range(n), repeat=2):
        for line in (r, n + c, 2 * n + square[r][c]):
            lines[line].append(r * n + c)
    return _edges(n * n, (pair for line in lines for pair in itertools.combinations(line, 2)))


def _jacobson_matthews(n: int, seed: int) -> list[list[int]]:
    """Walk n^3 proper steps of Jacobson and Matthews (1996) from the cyclic square."""
    rng = random.Random(seed)
    cube = {(r, c, (r + c) % n): 1 for r in range(n) for c in range(n)}
    line = {}
    for r, c, s in cube:
        for axis, key in enumerate(((c, s), (r, s), (r, c))):
            line.setdefault((axis, *key), set()).add((r, c, s))

    def add(cell: tuple[int, int, int], by: int) -> None:
        value = cube.get(cell, 0) + by
        r, c, s = cell
        for axis, key in enumerate(((c, s), (r, s), (r, c))):
            (line[(axis, *key)].add if value == 1 else line[(axis, *key)].discard)(cell)
        if value:
            cube[cell] = value
        else:
            cube.pop(cell, None)

    improper = None
    steps = 0
    while steps < n**3 or improper:
        if improper is None:
            while True:
                cell = (rng.randrange(n), rng.randrange(n), rng.randrange(n))
                if cube.get(cell, 0) == 0:
                    break
        else:
            cell = improper
        r, c, s = cell
        r1 = rng.choice([x[0] for x in line[(0, c, s)]])
        c1 = rng.choice([x[1] for x in line[(1, r, s)]])
        s1 = rng.choice([x[2] for x in line[(2, r, c)]])
        for x, y, z in ((r, c, s), (r, c1, s1), (r1, c, s1), (r1, c1, s)):
            add((x, y, z), 1)
        for x, y, z in ((r1, c, s), (r, c1, s), (r, c, s1), (r1, c1, s1)):
            add((x, y, z), -1)
        improper = (r1, c1, s1) if cube.get((r1, c1, s1), 0) < 0 else None
        steps += 1
    square = [[0] * n for _ in range(n)]
    for r, c, s in cube:
        square[r][c] = s
    return square


def cai_furer_immerman(n: int) -> Edges:
    """Return the Cai-Furer-Immerman graph over a random cubic graph on n vertices."""
    base = nx.random_regular_graph(3, n, seed=n)
    names: dict[tuple, int] = {}
    pairs = []
    for v in base:
        for subset in [s for k in (0, 2) for s in itertools.combinations(sorted(base[v]), k)]:
            for w in base[v]:
                pairs.append(((v, subset), (v, w, w in subset)))
    for v, w in base.edges:
        pairs += [((v, w, bit), (w, v, bit)) for bit in (False, True)]
    return _edges(10 * n, ((names.setdefault(a, len(names)), names.setdefault(b, len(names))) for a, b in pairs))


def torus(*shape: int, diagonal: bool = False) -> Edges:
    """Return the torus of this shape, with one diagonal per square if asked."""
    index = np.arange(np.prod(shape)).reshape(shape)
    pairs = [np.stack([index, np.roll(index, -1, axis)], -1).reshape(-1, 2) for axis in range(len(shape))]
    if diagonal:
        pairs.append(np.stack([index, np.roll(index, (-1, -1), (0, 1))], -1).reshape(-1, 2))
    return _edges(index.size, map(tuple, np.concatenate(pairs)))


def projective_plane(q: int) -> Edges:
    """Return the points and lines of the plane over a prime field, joined where they meet."""
    points = [(1, a, b) for a in range(q) for b in range(q)] + [(0, 1, a) for a in range(q)] + [(0, 0, 1)]
    array = np.array(points)
    return 2 * len(points), np.argwhere(array @ array.T % q == 0) + np.array([0, len(points)])


GRAPHS = {
    "H(8,2)": lambda: hamming(8, 2),
    "H(10,2)": lambda: hamming(10, 2),
    "H(12,2)": lambda: hamming(12, 2),
    "H(2,64)": lambda: hamming(2, 64),
    "H(4,8)": lambda: hamming(4, 8),
    "random 3-regular 4096": lambda: regular(3, 4096),
    "random 8-regular 4096": lambda: regular(8, 4096),
    "Paley(1009)": lambda: paley(1009),
    "J(12,4)": lambda: johnson(12, 4),
    "Latin square n=20": lambda: latin_square(20),
    "Latin square n=30": lambda: latin_square(30),
    "CFI over cubic 20": lambda: cai_furer_immerman(20),
    "CFI over cubic 50": lambda: cai_furer_immerman(50),
    "CFI over cubic 100": lambda: cai_furer_immerman(100),
    "torus 64x64": lambda: torus(64, 64),
    "torus 16^3": lambda: torus(16, 16, 16),
    "triangular torus 64": lambda: torus(64, 64, diagonal=True),
    "1000 squares": lambda: _edges(4000, ((v, v // 4 * 4 + (v + 1) % 4) for v in range(4000))),
    "plane of order 13": lambda: projective_plane(13),
}
