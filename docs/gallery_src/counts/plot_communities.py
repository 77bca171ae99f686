"""
Communities behind a noisy network
==================================

Sixty people in three communities write mails. The table of who wrote to whom is released with noise, and a blockmodel
that knows the law of the noise infers what was sent from the release alone.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from quincunx.errors import ConvergenceWarning
from quincunx.factorization import PoissonBlockmodel
from quincunx.privacy import privatize

warnings.simplefilter("ignore", ConvergenceWarning)  # short chains, for a picture

# %%
# True counts, their release at epsilon 0.5 for a mail, and the expected counts given the release.

rng = np.random.default_rng(3)
community = np.repeat([0, 1, 2], 20)
rate = np.array([[6.0, 0.3, 0.6], [0.3, 4.0, 0.2], [1.5, 0.2, 5.0]])[community][:, community]
counts = rng.poisson(rate * np.outer(rng.gamma(3, 1 / 3, 60), rng.gamma(3, 1 / 3, 60)))
np.fill_diagonal(counts, 0)
release = privatize(counts, epsilon=0.5, insecure_seed=3)  # made data: nobody is protected
model = PoissonBlockmodel(3, likelihood="negative_binomial", n_warmup=300, n_draws=200, n_chains=2, random_state=0).fit(
    release
)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
panels = {"true counts": counts, "released": release.values, "expected, given the release": model.expected_counts_}
for ax, (title, values) in zip(axes, panels.items(), strict=True):
    image = ax.imshow(values, cmap="RdBu_r", vmin=-15, vmax=15)
    ax.set(title=title, xticks=[], yticks=[])
figure.colorbar(image, ax=axes, shrink=0.8)
truth, off = counts.astype(float), ~np.eye(60, dtype=bool)
for name, values in list(panels.items())[1:]:
    print(f"{name}: root mean square error {np.sqrt(((values - truth)[off] ** 2).mean()):.2f}")

plt.show()
