"""Graphs: the `Graph` type, its conversions, and the standard families."""

from quincunx.graphs._families import complete, cycle, grid, hamming, path, torus
from quincunx.graphs._graph import Graph
from quincunx.graphs._read import read_edges

__all__ = ["Graph", "complete", "cycle", "grid", "hamming", "path", "read_edges", "torus"]
