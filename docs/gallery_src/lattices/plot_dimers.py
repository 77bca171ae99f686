"""
Random dimers, and where they freeze
====================================

Uniform perfect matchings, drawn exactly by coupling from the past: the order in the corners of an Aztec diamond is none
of the sampler's making.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from quincunx import lattices, spectra
from quincunx.counting import random_perfect_matching

# %%
# A domino lies or stands, and its first end is even or odd: four kinds, four colors. The corners of an Aztec diamond
# are frozen, each in one color, up to the arctic circle; a square is not frozen anywhere.

COLORS = np.array(["#d1495b", "#edae49", "#00798c", "#30638e"])


def draw_dimers(ax, lattice, rng):
    """Draw a random perfect matching with a color for each kind of domino."""
    ends = lattice.positions[lattice.edges[random_perfect_matching(lattice, rng=rng)]][:, :, ::-1]
    lying = ends[:, 0, 0] != ends[:, 1, 0]
    odd = np.rint(ends.min(axis=1).sum(axis=1)).astype(int) % 2
    ax.add_collection(LineCollection(list(ends), colors=COLORS[2 * lying + odd], linewidths=3, capstyle="projecting"))
    ax.autoscale()
    ax.set(aspect="equal", title=f"{lattice.name}, {lattice.num_vertices} vertices")
    ax.axis("off")


figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for ax, lattice in zip(axes, [lattices.aztec_diamond(32), lattices.square(40, 40)], strict=True):
    draw_dimers(ax, lattice, rng=1)

# %%
# The densities of states of the honeycomb and of its first clique insertions: gaps open, and flat bands take a growing
# share, 0, 1/3 and 5/9. Those at 0 and -2 have 1/3 after any insertion, others come from those of the lattice below.

figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained", sharey=True)
for ax, name in zip(axes, ["honeycomb", "3-12-12", "3-6-24"], strict=True):
    points, density = spectra.density_of_states(lattices.named(name, 48, 48, "torus"), 400, broadening=0.03)
    ax.fill_between(points, density, alpha=0.6)
    ax.set(title=name, xlabel="eigenvalue", ylim=(0, 1.5))
plt.show()
