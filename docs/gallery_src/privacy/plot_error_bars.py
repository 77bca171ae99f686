"""
Error bars, with and without a trusted office
=============================================

Shares of four categories among 5000 people at epsilon 1. An office that holds the records adds noise to four counts;
without one, each person answers with noisy bits. The law of the noise is public in both cases, so both have honest
error bars: the second ones are wider.
"""

import matplotlib.pyplot as plt
import numpy as np

from quincunx import ldp, privacy

# %%
# Intervals of 95 % for each share. The seeds are for the picture: they protect nobody.

LABELS = ["school", "college", "master", "doctor"]
people = np.random.default_rng(5).choice(LABELS, 5000, p=[0.55, 0.3, 0.11, 0.04])
truth = np.array([(people == label).mean() for label in LABELS])

office = privacy.GeometricMechanism(1.0, n=2)  # one record replaced changes two counts by one
table = office.release([int((people == label).sum()) for label in LABELS], insecure_seed=1)
width = table.noise.accuracy(0.95)

encoding = privacy.UnaryEncoding(1.0, LABELS)
model = ldp.HistogramModel(random_state=0).fit(encoding.release(people, insecure_seed=1))
low, high = model.quantile("theta", [0.025, 0.975])
middle = model.posterior_mean_["theta"]

at = np.arange(4)
axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")[1]
axes.errorbar(at - 0.12, table.values / 5000, width / 5000, fmt="o", capsize=4, label="an office adds noise")
axes.errorbar(at + 0.12, middle, [middle - low, high - middle], fmt="s", capsize=4, label="each person adds noise")
axes.plot(at, truth, "k_", markersize=26, label="truth")
axes.set(xticks=at, xticklabels=LABELS, ylabel="share")
axes.legend()

# %%
# What any observer may learn of one person from a bit: odds change by a factor of at most exp(epsilon).

epsilon = np.linspace(0.1, 5, 50)
axes = plt.subplots(figsize=(6, 3.2), layout="constrained")[1]
for prior in (0.01, 0.1, 0.5):
    axes.plot(epsilon, prior * np.exp(epsilon) / (1 - prior + prior * np.exp(epsilon)), label=f"prior {prior:g}")
axes.set(xlabel="epsilon", ylabel="largest posterior probability", ylim=(0, 1))
axes.legend()
plt.show()
