"""
Skellam and two-sided geometric noise
=====================================

Two-sided geometric noise is a Skellam count whose two rates are drawn anew from an exponential law of mean
``alpha / (1 - alpha)``. With fixed rates the Skellam law may lean to one side and lie away from zero; the two-sided
geometric law is symmetric about zero and has heavier tails: it is the discrete form of the Laplace law. After figure 2
of the supplement to A. Schein et al. (2019), Locally private Bayesian inference for count models.
"""

import matplotlib.pyplot as plt
import numpy as np

from quincunx.distributions import Skellam, TwoSidedGeometric

# %%
# Left: the Skellam law for three pairs of rates. Right: the two-sided geometric law for three ratios.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
values = np.arange(-15, 16)
for i, (plus, minus) in enumerate([(1.0, 1.0), (10.0, 5.0), (1.0, 8.0)]):
    left.plot(
        values, Skellam(plus, minus).pmf(values), "o-", color=f"C{i}", markersize=3, label=f"rates {plus:g}, {minus:g}"
    )
for i, alpha in enumerate([0.25, 0.5, 0.75]):
    right.plot(
        values, TwoSidedGeometric(alpha).pmf(values), "o-", color=f"C{i}", markersize=3, label=f"alpha {alpha:g}"
    )
left.set(title="Skellam", xlabel="value", ylabel="probability")
right.set(title="two-sided geometric", xlabel="value")
left.legend()
right.legend()

# %%
# The theorem behind the picture, by simulation: Skellam counts at exponential rates have the two-sided geometric law.

alpha, size = 0.75, 200_000
rates = np.random.default_rng(1).exponential(alpha / (1 - alpha), (2, size))
noise = Skellam(rates[0], rates[1]).sample(rng=2)
seen = np.bincount(noise[abs(noise) <= 15] + 15, minlength=31) / size

axes = TwoSidedGeometric(alpha).plot_pmf(plt.subplots(figsize=(6.0, 3.2), layout="constrained")[1])
axes.plot(values, seen, "_", color="black", markersize=9, label="Skellam counts at exponential rates")
axes.legend()
plt.show()
