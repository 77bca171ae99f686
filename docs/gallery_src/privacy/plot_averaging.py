"""
A channel averaged over symmetries, and what a private answer is worth
======================================================================

Averaging a channel over the automorphisms of a graph makes it constant on orbits of pairs and never less private. On a
grid of 3 x 3 the group has the order 8: corners, edges and the center stay apart, and so do their entries on the
diagonal.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from quincunx.graphs import grid, path
from quincunx.leakage import Channel, plot_symmetrization, plot_utility

# %%
# A noisy channel on the grid before and after. Inputs are sorted by orbits, which white lines separate.

graph = grid(3, 3)
rows = np.random.default_rng(7).gamma(2.0, size=(9, 9)) + 6 * np.eye(9)
result = Channel(rows, normalize=True).symmetrize(graph)
plot_symmetrization(result)
print(result)

# %%
# The best utility of a private answer on a path of six, with the bound that holds for every graph, and with the prior
# that a counting query over five people induces.

axes = plot_utility(path(6), np.linspace(0, 4, 41))
plot_utility(path(6), np.linspace(0, 4, 41), [math.comb(5, k) / 32 for k in range(6)], ax=axes)
plt.show()
