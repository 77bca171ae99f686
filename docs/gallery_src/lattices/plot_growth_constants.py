"""
Growth constants, enclosed
==========================

The number of independent sets of a lattice grows like ``kappa**n`` with its n vertices. Strips and rings enclose
``kappa`` between two eigenvalues, the closer the wider they are; trial vectors of corner tensors do the same on rings
of hundreds of sites, the closer the larger their bond dimension.
"""

import matplotlib.pyplot as plt

from quincunx.counting import random_independent_set
from quincunx.entropy import entropy_bounds
from quincunx.lattices import draw, four_eight_eight

# %%
# Left: the width of the certified interval against the number of lines round the ring. Right: the same against the bond
# dimension.

COLORS = {"king": "C0", "triangular": "C1", "square": "C2", "kagome": "C3", "4-8-8": "C4", "honeycomb": "C5"}

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
for lattice in ("king", "triangular", "square", "kagome", "4-8-8"):
    widths = range(4, 15, 2) if lattice != "4-8-8" else range(4, 11, 2)
    gaps = [float(entropy_bounds(lattice, width=width).growth_constant.width) for width in widths]
    left.semilogy(list(widths), gaps, "o-", color=COLORS[lattice], markersize=4, label=lattice)
for lattice in ("king", "square", "4-8-8", "honeycomb", "kagome"):
    sizes = range(4, 21, 4)
    gaps = [float(entropy_bounds(lattice, digits=40, bond_dimension=size).growth_constant.width) for size in sizes]
    right.semilogy(list(sizes), gaps, "o-", color=COLORS[lattice], markersize=4, label=lattice)
left.set(title="strips and rings (theorems A, A')", xlabel="lines round the ring", ylabel="width of the interval")
right.set(title="corner tensors (theorem D)", xlabel="bond dimension")
left.legend()
right.legend()

# %%
# What is counted: an independent set of the 4-8-8 lattice, drawn exactly uniformly, by counting what is left at each
# vertex.

lattice = four_eight_eight(6, 6)
chosen = random_independent_set(lattice, rng=5)
axes = draw(lattice, plt.subplots(figsize=(5.2, 5.2), layout="constrained")[1], independent_set=chosen)
axes.set_title(f"{len(chosen)} of {lattice.num_vertices} vertices")
plt.show()
