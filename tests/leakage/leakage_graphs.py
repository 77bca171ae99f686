"""Graphs with known answers at e^epsilon = 2 and the uniform prior, by brute-force programs and by hand."""

from fractions import Fraction as F

import networkx as nx
from networkx.generators.atlas import graph_atlas_g

from quincunx.graphs import Graph, complete, cycle, grid, hamming, path


def rook():
    return nx.cartesian_product(nx.complete_graph(4), nx.complete_graph(4))


def shrikhande():
    steps = [(0, 1), (1, 0), (1, 1)]
    edges = [(4 * a + b, 4 * ((a + i) % 4) + (b + j) % 4) for a in range(4) for b in range(4) for i, j in steps]
    return 16, edges


TWO_SQUARES = (8, [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)])
DIAMOND = (4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
RIGID = (6, [(0, 2), (1, 2), (1, 3), (1, 4), (2, 4), (3, 5)])
FORK = (6, [(0, 1), (1, 2), (1, 4), (1, 5), (2, 3)])

#: name: graph, order of its group, orbits, rank, best utility, smallest and largest 1 / r_a
GRAPHS = {
    "H(2,3)": (hamming(2, 3), 72, 1, 3, F(1, 4), None),
    "Q3": (hamming(3, 2), 48, 1, 4, F(8, 27), None),
    "C5": (cycle(5), 10, 1, 3, F(2, 5), None),
    "C6": (cycle(6), 12, 1, 4, F(8, 21), None),
    "C7": (cycle(7), 14, 1, 4, F(4, 11), None),
    "K4": (complete(4), 24, 1, 2, F(2, 5), None),
    "Petersen": (nx.petersen_graph(), 120, 1, 3, F(1, 4), None),
    "Paley(13)": (nx.paley_graph(13).to_undirected(), 78, 1, 3, F(2, 11), None),
    "4x4 rook": (rook(), 1152, 1, 3, F(4, 25), None),
    "Shrikhande": (shrikhande(), 192, 1, 4, F(4, 25), None),
    "P3": (path(3), 2, 2, 5, F(5, 9), (F(1, 2), F(4, 7))),
    "P4": (path(4), 2, 2, 8, F(1, 2), (F(4, 9), F(8, 15))),
    "P5": (path(5), 2, 3, 13, F(7, 15), (F(2, 5), F(16, 31))),
    "K1,3": (nx.star_graph(3), 6, 2, 5, F(1, 2), (F(2, 5), F(1, 2))),
    "K2,3": (nx.complete_bipartite_graph(2, 3), 12, 2, 6, F(2, 5), (F(4, 11), F(2, 5))),
    "diamond": (DIAMOND, 4, 2, 6, F(3, 7), (F(2, 5), F(4, 9))),
    "rigid": (RIGID, 1, 6, 36, F(5, 12), (F(1, 3), F(16, 33))),
    "fork": (FORK, 6, 4, 17, F(7, 18), (F(4, 13), F(8, 17))),
    "2 C4": (TWO_SQUARES, 128, 1, 4, F(4, 9), None),
    "Q4": (hamming(4, 2), 384, 1, 5, F(16, 81), None),
    "5x5 grid": (grid(5, 5), 8, 6, 91, F(7, 15) ** 2, None),
}


def small_connected_graphs():
    """All connected graphs with at most 6 vertices: 143 of them."""
    plain = (graph for graph in graph_atlas_g() if 0 < len(graph) <= 6 and nx.is_connected(graph))
    return [Graph.from_networkx(graph) for graph in plain]
