"""Numbers of independent sets by branching on a vertex: slow, short, and independent of the package."""

from tests.counting.counting_oracle import branching


def count(lattice):
    """Return the number of independent sets; a vertex with a loop is never chosen."""
    return branching(lattice.num_vertices, lattice.edges.tolist())
