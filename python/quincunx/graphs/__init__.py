"""Graphs: the `Graph` type, its conversions, the standard families, distances and automorphism groups."""

from quincunx.graphs._automorphisms import AutomorphismGroup, automorphism_group
from quincunx.graphs._derived import line_graph, subdivide
from quincunx.graphs._distances import distances, induced_graph, is_distance_degree_regular, sphere_sizes, spheres
from quincunx.graphs._families import complete, cycle, grid, hamming, path, torus
from quincunx.graphs._files import read_dimacs, read_graph6
from quincunx.graphs._graph import Graph
from quincunx.graphs._lps import lps_graph
from quincunx.graphs._orbitals import Orbitals
from quincunx.graphs._read import read_edges

__all__ = [
    "AutomorphismGroup",
    "Graph",
    "Orbitals",
    "automorphism_group",
    "complete",
    "cycle",
    "distances",
    "grid",
    "hamming",
    "induced_graph",
    "is_distance_degree_regular",
    "line_graph",
    "lps_graph",
    "path",
    "read_dimacs",
    "read_edges",
    "read_graph6",
    "sphere_sizes",
    "spheres",
    "subdivide",
    "torus",
]
