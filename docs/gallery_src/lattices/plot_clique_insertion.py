"""
The honeycomb, 3-12-12 and 3-6-24 lattices with three boundaries
================================================================

Figures 6.1 to 6.3 of Z. Zhang (2017). Cliques inserted in the honeycomb make the 3-12-12 lattice, inserted once more
the 3-6-24 lattice. An edge that goes round is drawn as two dotted halves with one name: a1, a2, ... round the first
axis, b1, b2, ... round the second.
"""

import matplotlib.pyplot as plt

from quincunx import lattices
from quincunx.counting import (
    count_perfect_matchings,
    count_spanning_trees,
    random_perfect_matching,
    random_spanning_tree,
)

BOUNDARIES = ["torus", "cylinder", "free"]


def three(name, rows, cols):
    """Draw a lattice with each boundary, and write its numbers of trees and dimers below."""
    _, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for ax, boundary in zip(axes, BOUNDARIES, strict=True):
        lattice = lattices.named(name, rows, cols, boundary)
        lattices.draw(lattice, ax, wrap_labels=True)
        trees, dimers = count_spanning_trees(lattice), count_perfect_matchings(lattice)
        ax.set_title(f"{name}, {boundary}\n{trees:.3e} trees, {dimers} dimer coverings", fontsize=9)


# %%
# Figure 6.1: the honeycomb of 3 x 3 cells as a torus, a cylinder and a free piece. On the cylinder each of the three
# rings has two dimer coverings, which makes 8, on the free piece there is one: boundaries decide.

three("honeycomb", 3, 3)

# %%
# Figure 6.2: the 3-12-12 lattice. It was inserted into first and cut afterwards, so that the free piece has as many
# vertices as the torus, 54. Cut first and inserted afterwards it would have 42.

three("3-12-12", 3, 3)
honeycomb = lattices.honeycomb(3, 3)
print(honeycomb.clique_insert().num_vertices, lattices.clique_insert(honeycomb).num_vertices)

# %%
# Figure 6.3: the 3-6-24 lattice.

three("3-6-24", 2, 2)

# %%
# A uniform perfect matching and a uniform spanning tree of the 3-12-12 torus, exactly drawn.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
lattice = lattices.truncated_hexagonal(4, 4, "torus")
lattices.draw(lattice, axes[0], matching=random_perfect_matching(lattice, rng=2017))
lattices.draw(lattice, axes[1], tree=random_spanning_tree(lattice, rng=2017))
plt.show()
