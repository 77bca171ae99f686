"""
Randomly triangulated grids
===========================

Each cell of a grid gets one of its two diagonals, the first with probability p. The annealed entropy per cell,
``ln E[Z] / (m n)``, is a function of ``p (1 - p)`` alone. Drawn against Shannon's entropy H(p) it looks like a line
(figure 8.4 of Z. Zhang's thesis, 2017): it is none. The mean of ``ln Z``, the quenched entropy, is smaller.
"""

import matplotlib.pyplot as plt
import numpy as np

from quincunx.entropy import annealed_entropy, quenched_entropy

# %%
# Figure 8.4: p = 0.1, 0.2, ..., 0.9, and what the line of least squares through these nine leaves.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
fine = np.linspace(0.02, 0.5, 60)


def shannon(p):
    """Return H(p) in nats."""
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


for m in (2, 5, 11):
    coarse = np.arange(1, 10) / 10
    seen = np.array([annealed_entropy(m, 100, p) for p in coarse])
    slope, intercept = np.polyfit(shannon(coarse), seen, 1)
    curve = np.array([annealed_entropy(m, 100, p) for p in fine])
    (line,) = left.plot(shannon(fine), curve - curve[-1], label=f"m = {m}")
    left.plot(shannon(coarse), seen - curve[-1], "o", color=line.get_color(), markersize=4)
    right.plot(shannon(fine), curve - slope * shannon(fine) - intercept, color=line.get_color())
left.set(title="annealed entropy, n = 100", xlabel="H(p), nats", ylabel="nats per cell, less that of p = 1/2")
right.set(title="less the line of nine values", xlabel="H(p), nats")
left.legend()

# %%
# Annealed and quenched, grids of 3 x 3 cells: the second by summing over all 512 triangulations.

axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")[1]
chances = np.linspace(0.0, 1.0, 21)
axes.plot(chances, [annealed_entropy(3, 3, p) for p in chances], label="annealed")
axes.plot(chances, [quenched_entropy(3, 3, p).mean for p in chances], "--", label="quenched")
axes.set(xlabel="p", ylabel="entropy per cell, nats")
axes.legend()
plt.show()
