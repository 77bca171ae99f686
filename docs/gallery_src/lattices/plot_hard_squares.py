"""
Hard squares, from a state to the growth constant
=================================================

Particles on a square lattice, no two on neighboring sites: random states drawn exactly at growing activity, and the
growth constant of their number from tori, which settle, and from certified bounds, which prove.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from quincunx import counting, lattices
from quincunx.entropy import entropy_bounds

# %%
# Three states of 16 x 16 sites. A particle weighs z: the larger z is, the larger are the pieces in which every other
# site is taken. Even sites are blue and odd ones are red.

box = lattices.square(16, 16)
places = box.positions[:, ::-1]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, activity in zip(axes, (0.5, 3, 12), strict=True):
    state = np.asarray(counting.random_independent_set(box, activity, rng=4))
    odd = np.rint(places[state].sum(axis=1)).astype(int) % 2
    ax.scatter(*places[state].T, s=38, c=np.where(odd, "#c2410c", "#0e7490"))
    ax.set(aspect="equal", title=f"z = {activity}: {len(state)} of 256 sites", xticks=[], yticks=[])

# %%
# The growth constant of n x n tori, as n grows, and the width of the certified interval by decimals asked for.

sizes = range(4, 17, 2)
tori = [math.exp(math.log(counting.count_independent_sets(lattices.square(n, n, "torus"))) / n**2) for n in sizes]
limit = float(entropy_bounds("square", digits=20).growth_constant.lower)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogy(list(sizes), [abs(value - limit) for value in tori], "o-", label="torus of n x n sites")
ax.axhline(1e-20, color="C1", label="proved: 20 decimals")
ax.set(xlabel="n", ylabel="distance from the growth constant")
ax.legend()
plt.show()
