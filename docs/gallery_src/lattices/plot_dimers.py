"""
Random dimers, and where they freeze
====================================

Uniform perfect matchings, drawn exactly by coupling from the past: the order in the corners of an Aztec diamond is none
of the sampler's making.
"""

import matplotlib.pyplot as plt

from quincunx import lattices, spectra
from quincunx.counting import random_perfect_matching

# %%
# An Aztec diamond is frozen outside its arctic circle; a square is not.

figure, axes = plt.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
for ax, lattice in zip(axes, [lattices.aztec_diamond(16), lattices.square(24, 24)], strict=True):
    lattices.draw(lattice, ax, matching=random_perfect_matching(lattice, rng=1))
    ax.set_title(f"{lattice.name}, {lattice.num_vertices} vertices")

# %%
# The densities of states of the honeycomb and of its first clique insertions: gaps open, and flat bands at 0 and -2
# take a growing share.

figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained", sharey=True)
for ax, name in zip(axes, ["honeycomb", "3-12-12", "3-6-24"], strict=True):
    points, density = spectra.density_of_states(lattices.named(name, 48, 48, "torus"), 400, broadening=0.03)
    ax.fill_between(points, density, alpha=0.6)
    ax.set(title=name, xlabel="eigenvalue", ylim=(0, 1.5))
plt.show()
