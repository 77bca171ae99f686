"""
A sigmoid and its Chebyshev polynomials
=======================================

Regression under local privacy needs the mean of a sigmoid over a normal linear predictor. A polynomial of order 2
would make it a matter of moments, but on a symmetric interval the second Chebyshev coefficient of a sigmoid is exactly
0, for a sigmoid is odd about 1/2: what is left is a straight line that leaves the unit interval. `quincunx.ldp`
therefore integrates the sigmoid itself. After figures 6 and 7 of T. Kulkarni et al. (2021), Locally differentially
private Bayesian inference.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.polynomial import chebyshev

from quincunx.ldp import LogisticRegression
from quincunx.privacy import GaussianMechanism, RandomizedResponse


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# %%
# Coefficients on intervals of growing width: those of even order, from 2 on, are rounding errors.

widths = np.linspace(0.5, 12, 47)
nodes = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
coefficients = np.array([chebyshev.chebfit(nodes, sigmoid(w * nodes), 7) for w in widths])
print("largest coefficient of order 2:", f"{np.abs(coefficients[:, 2]).max():.0e}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
for order in range(1, 6):
    left.plot(widths, coefficients[:, order], label=f"order {order}")
left.set(title="Chebyshev coefficients of a sigmoid", xlabel="half width of the interval")
left.legend()
right_x = np.linspace(-8, 8, 401)
line = 0.5 + coefficients[np.searchsorted(widths, 3.0), 1] / 3 * right_x
right.plot(right_x, sigmoid(right_x), label="sigmoid")
right.plot(right_x, line, label="polynomial of order 2 on [-3, 3]")
right.axhspan(0, 1, alpha=0.1)
right.set(title="The polynomial is a line", xlabel="linear predictor")
right.legend()

# %%
# The difference of the means over centred inputs, which figure 6 shows against the dimension, does not see this: both
# means are 1/2 for every dimension, since sigmoid and line are odd about it. The mean difference at each input does.

rng = np.random.default_rng(0)
print("dimension, difference of means, mean difference")
for d in (1, 2, 5, 10):
    found = []
    for _ in range(50):
        root = rng.normal(size=(d, d))
        score = rng.normal(size=(1000, d)) @ root @ rng.normal(size=d)
        gap = sigmoid(score) - (0.5 + coefficients[np.searchsorted(widths, 3.0), 1] / 3 * score)
        found.append((abs(gap.mean()), np.abs(gap).mean()))
    print(f"{d:>9} {np.mean(found, axis=0)[0]:20.3f} {np.mean(found, axis=0)[1]:16.3f}")

# %%
# What it does to a likelihood: a label told by randomized response with epsilon 4, an input told with little noise. The
# probability by the line turns negative; the one by the integral does not.

flip = RandomizedResponse(4.0)
model = LogisticRegression((GaussianMechanism(sigma=0.05, sensitivity=1.0), flip))
x = np.linspace(-8, 8, 161)
joint = {
    label: [model.log_likelihood([[z]], [label], coefficients=[1.0], covariance=[[9.0]]) for z in x] for label in (0, 1)
}
exact = 1 / (1 + np.exp(np.array(joint[0]) - np.array(joint[1])))
slope = coefficients[np.searchsorted(widths, 3.0), 1] / 3
by_line = (1 - flip.keep_probability) + (2 * flip.keep_probability - 1) * (0.5 + slope * x)

axes = plt.subplots(figsize=(6.0, 3.2), layout="constrained")[1]
axes.plot(x, exact, label="exact")
axes.plot(x, by_line, label="polynomial of order 2")
axes.axhline(0, color="black", lw=0.5)
axes.set(xlabel="told input", ylabel="P(told label = 1)")
axes.legend()
plt.show()
