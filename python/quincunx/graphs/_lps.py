"""The Ramanujan graphs of Lubotzky, Phillips and Sarnak."""

import itertools
import math
import warnings

import numpy as np

from quincunx import _check
from quincunx.graphs._graph import Graph


def lps_graph(p: int, q: int) -> Graph:
    """Return the Ramanujan graph X^{p,q} of Lubotzky, Phillips and Sarnak.

    The Cayley graph of PSL(2, q), if p is a square modulo q, or of PGL(2, q), which is then bipartite, with the
    ``p + 1`` generators that are the integer quaternions of norm p. Every nontrivial eigenvalue has absolute value at
    most ``2*sqrt(p)``, so that its algebraic connectivity is at least ``p + 1 - 2*sqrt(p)``, for every q.

    Parameters
    ----------
    p, q : int
        Distinct odd primes. It is simple if ``q > 2*sqrt(p)``; below a warning is given, and loops and parallel edges
        are kept.

    Returns
    -------
    Graph
        Regular of degree ``p + 1``, with ``q*(q*q - 1)/2`` or ``q*(q*q - 1)`` vertices; vertex 0 is the identity.

    Raises
    ------
    TypeError
        If a number is not whole.
    ValueError
        If they are not distinct odd primes, or there would be more than ten million edges.

    References
    ----------
    .. [1] A. Lubotzky, R. Phillips, P. Sarnak (1988), Ramanujan graphs, Combinatorica 8.

    Examples
    --------
    >>> from quincunx.graphs import lps_graph
    >>> lps_graph(3, 5)
    <Graph: 120 vertices, 240 edges>
    """
    p, q = (_check.whole(value, name, minimum=3, maximum=2**20) for value, name in ((p, "p"), (q, "q")))
    for value, name in ((p, "p"), (q, "q")):
        if value % 2 == 0 or any(value % d == 0 for d in range(3, math.isqrt(value) + 1, 2)):
            raise ValueError(f"`{name}` must be an odd prime, got {value}")
    if p == q:
        raise ValueError(f"`p` and `q` must be different, got {p} twice")
    square = pow(p, (q - 1) // 2, q) == 1
    size = q * (q * q - 1) // (2 if square else 1)
    if size * (p + 1) > 2 * 10**7:
        raise ValueError(f"`q` must be so small that there are at most 10**7 edges, got {q}")
    if q * q <= 4 * p:
        warnings.warn(
            f"`q` must be above 2*sqrt(p) for a simple graph, got {q}: parallel edges may arise",
            UserWarning,
            stacklevel=2,
        )
    generators = _generators(p, q)
    return _cayley(generators, q, size)


def _generators(p: int, q: int) -> np.ndarray:
    """Return the matrices of the quaternions of norm p modulo q, an even number of them paired with their inverses."""
    side = math.isqrt(p)
    axis = range(-side, side + 1)
    odd = p % 4 == 1
    found = []
    for a in itertools.product(axis, repeat=4):
        if sum(x * x for x in a) != p or (a[0] % 2 == 1) != odd or any((x % 2 == 0) != odd for x in a[1:]):
            # For p = 1 mod 4 the first is odd, for p = 3 mod 4 it is even; the others are of the other parity.
            continue
        leading = next(x for x in a if x)
        if (a[0] > 0) if a[0] else (leading > 0):
            found.append(a)
    assert len(found) == p + 1
    x, y = next((x, y) for x in range(q) for y in range(q) if (x * x + y * y + 1) % q == 0)
    rows = [[[a + b * x + d * y, -b * y + c + d * x], [-b * y - c + d * x, a - b * x - d * y]] for a, b, c, d in found]
    return np.array(rows, dtype=np.int64) % q


def _normalized(matrices: np.ndarray, q: int, inverse: np.ndarray) -> np.ndarray:
    """Return one number for each matrix up to scalars: its first nonzero entry in the first row is made 1."""
    flat = matrices.reshape(-1, 4)
    lead = np.where(flat[:, 0] != 0, flat[:, 0], flat[:, 1])
    flat = flat * inverse[lead][:, None] % q
    keys: np.ndarray = ((flat[:, 0] * q + flat[:, 1]) * q + flat[:, 2]) * q + flat[:, 3]
    return keys


def _cayley(generators: np.ndarray, q: int, size: int) -> Graph:
    """Walk the group from the identity and join each element to its products."""
    inverse = np.array([pow(x, -1, q) if x else 0 for x in range(q)], dtype=np.int64)
    keys = _normalized(np.eye(2, dtype=np.int64)[None], q, inverse)
    number = {int(keys[0]): 0}
    layer = np.eye(2, dtype=np.int64)[None]
    sources, targets = [], []
    while len(layer):
        products = np.einsum("nij,gjk->ngik", layer, generators) % q
        keys = _normalized(products, q, inverse)
        base = len(number) - len(layer)
        fresh = []
        for place, key in enumerate(keys.tolist()):
            if key not in number:
                number[key] = len(number)
                fresh.append(place)
            targets.append(number[key])
        sources.append(np.repeat(np.arange(base, base + len(layer)), len(generators)))
        layer = products.reshape(-1, 2, 2)[fresh]
    if len(number) != size:
        raise ValueError(f"`p` and `q` must generate a group of {size} elements, got {len(number)}")
    arcs = np.stack([np.concatenate(sources), np.array(targets)], axis=1)
    # Each edge is walked from both ends; a loop twice from its one.
    loops = arcs[arcs[:, 0] == arcs[:, 1]]
    return Graph(size, np.concatenate([arcs[arcs[:, 0] < arcs[:, 1]], loops[::2]]))
