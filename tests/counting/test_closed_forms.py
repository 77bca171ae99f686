"""Closed forms and laws of trees and matchings, each beside counts of other origin.

Products of cosines are taken here in sixty digits and more, which the package never does; random regular graphs come
from networkx.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quincunx import lattices
from quincunx.counting import count_matchings, count_perfect_matchings, count_spanning_trees
from quincunx.graphs import Graph, cycle, line_graph, subdivide
from quincunx.lattices import clique_insert
from quincunx.spectra import energy, kirchhoff_index, spectrum

EXTENTS = [(1, 2), (2, 2), (2, 3), (3, 3), (4, 3), (3, 5), (6, 5), (7, 4), (9, 9)]


def whole(product):
    """The integer next to a product, which it must be to many digits."""
    assert abs(product - mpmath.nint(product)) < mpmath.mpf(10) ** -30 * (1 + abs(product))
    return int(mpmath.nint(product))


@pytest.mark.parametrize(("m", "n"), EXTENTS)
def test_trees_of_square_lattices_are_products_of_chebyshev_polynomials(m, n):
    with mpmath.workdps(120):
        x = [2 - mpmath.cos(mpmath.pi * j / n) for j in range(1, n)]
        free = mpmath.fprod(mpmath.chebyu(m - 1, y) for y in x)
        around = [2 - mpmath.cos(2 * mpmath.pi * j / n) for j in range(1, n)]
        cylinder = n * mpmath.fprod(mpmath.chebyu(m - 1, y) for y in around)
        torus = mpmath.mpf(m) / n * mpmath.fprod(2 * mpmath.chebyt(m, y) - 2 for y in around)
        expected = [whole(free), whole(cylinder), whole(torus * n) // n]
    boundaries = ("free", "cylinder", "torus")
    for method in ("product", "elimination"):
        found = [count_spanning_trees(lattices.square(m, n, b, multigraph=True), method=method) for b in boundaries]
        assert found == expected


@pytest.mark.parametrize(("m", "n"), EXTENTS)
def test_dimers_of_free_squares_are_kasteleyns_product(m, n):
    with mpmath.workdps(120):
        across = [4 * mpmath.cos(mpmath.pi * i / (m + 1)) ** 2 for i in range(1, (m + 1) // 2 + 1)]
        along = [4 * mpmath.cos(mpmath.pi * j / (n + 1)) ** 2 for j in range(1, (n + 1) // 2 + 1)]
        expected = whole(mpmath.fprod(a + b for a, b in itertools.product(across, along)))
    for method in ("product", "fkt", "frontier"):
        assert count_perfect_matchings(lattices.square(m, n), method=method) == expected


SWEEP = ["square", "triangular", "honeycomb", "kagome", "4-8-8", "3-12-12", "martini", "triangular-kagome"]


@pytest.mark.parametrize("name", SWEEP)
def test_dimers_of_every_small_extent_and_boundary_by_two_methods(name):
    cases = 0
    for extent in itertools.product((2, 3, 4), repeat=2):
        if name in ("triangular-kagome", "3-12-12") and min(extent) > 2:
            continue  # the frontier is wide; the core's own sweep has them
        for boundary in ("free", "cylinder", "torus"):
            lattice = lattices.named(name, *extent, boundary, multigraph=True)
            drawn = count_perfect_matchings(lattice, method="pfaffian")
            assert drawn == count_perfect_matchings(lattice, method="frontier"), (extent, boundary)
            cases += 1
    assert cases >= 15


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("boundary", ["free", "cylinder", "torus"])
def test_dimers_of_insertions_of_the_honeycomb_are_powers_of_two(size, k, boundary):
    cut = {"free": 2 * size, "cylinder": size, "torus": 0}[boundary]
    base = lattices.honeycomb(size, size, boundary, multigraph=True)
    assert count_perfect_matchings(base.clique_insert(k)) == 2 ** (3 ** (k - 1) * size * size + 1 - cut)


@pytest.mark.parametrize("n", range(1, 9))
def test_dimers_of_aztec_diamonds_are_powers_of_two(n):
    assert count_perfect_matchings(lattices.aztec_diamond(n)) == 2 ** (n * (n + 1) // 2)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_trees_of_insertions_have_their_closed_form(k):
    for base, r in ((lattices.honeycomb(2, 2, "torus", multigraph=True), 3), (lattices.square(3, 3, "torus"), 4)):
        n = base.num_vertices
        exponent = int(n * Fraction(r - 2, 2) * Fraction(r**k - 1, r - 1))
        expected = r ** (exponent - k) * (r + 2) ** (exponent + k) * count_spanning_trees(base)
        assert count_spanning_trees(clique_insert(base, k)) == expected


@st.composite
def regular_graphs(draw):
    r = draw(st.integers(2, 5))
    n = draw(st.integers(r + 1, 9).filter(lambda n: n * r % 2 == 0))
    return r, Graph.from_networkx(networkx.random_regular_graph(r, n, seed=draw(st.integers(0, 10**6))))


@given(regular_graphs())
@settings(derandomize=True, deadline=None, max_examples=25)
def test_laws_of_insertions_of_random_regular_graphs(case):
    r, graph = case
    n, m = graph.num_vertices, graph.num_edges
    inserted = clique_insert(graph)
    trees = count_spanning_trees(graph)
    if trees == 0:
        assert count_spanning_trees(inserted) == 0
        return
    assert count_spanning_trees(inserted) * r == Fraction(r) ** (m - n) * (r + 2) ** (m - n + 1) * trees
    line = line_graph(graph)
    assert count_spanning_trees(line) * 2 * r == 2 ** (m - n + 2) * Fraction(r) ** (m - n) * trees
    below = kirchhoff_index(graph, exact=True)
    assert kirchhoff_index(inserted, exact=True) == r * (r + 2) * below + Fraction(
        n * n * (r - 2) * (r + 1) + r * n, r + 2
    )
    roots = sum(math.sqrt(max(0.0, r * r + 4 * (x + 1))) for x in spectrum(graph).tolist())
    assert energy(inserted) == pytest.approx(roots + (r - 2) * n, rel=1e-6)
    if m <= 14:
        count = count_perfect_matchings(inserted, method="frontier")
        assert count == count_perfect_matchings(line_graph(subdivide(graph)), method="frontier")
        assert count == count_perfect_matchings(inserted, method="even-subgraphs")
        assert r > 3 or count == 2 ** (m - n + 1)


@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_trees_by_deletion_and_contraction_and_matchings_by_an_edge(data):
    n = data.draw(st.integers(2, 7))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = data.draw(st.lists(ends, min_size=1, max_size=12))
    (u, v), rest = edges[0], edges[1:]
    if u != v:
        low, high = min(u, v), max(u, v)
        name = [low if w == high else w - (w > high) for w in range(n)]
        contracted = [(name[a], name[b]) for a, b in rest]
        assert count_spanning_trees((n, edges)) == count_spanning_trees((n, rest)) + count_spanning_trees(
            (n - 1, contracted)
        )
        kept = [w for w in range(n) if w not in (u, v)]
        place = {w: i for i, w in enumerate(kept)}
        without = [(place[a], place[b]) for a, b in rest if a in place and b in place]
        for count in (count_matchings, count_perfect_matchings):
            assert count((n, edges)) == count((n, rest)) + count((n - 2, without))


def test_independent_sets_of_a_line_graph_are_the_matchings():
    from quincunx.counting import count_independent_sets

    for graph in (lattices.square(4, 4), lattices.honeycomb(3, 3, "torus"), cycle(9)):
        assert count_matchings(graph) == count_independent_sets(line_graph(graph))
