"""What the time of a single call tells of its data: each mechanism on two neighbors that differ as much as they may.

    python benches/experiments/privacy_time.py [--pairs N] [ROW ...]

One call on either neighbor, in random order, again and again; the figure is the area under the ROC curve (AUC) of the
test "slower than t", or of its opposite. Beside it stands the largest AUC that *any* single observation of an (epsilon,
delta) private mechanism can have. By Wasserman and Zhou, all of its errors satisfy

    beta >= max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)),

two lines that meet at alpha = beta = a = (1 - delta) / (1 + e^epsilon); below them lies the area of a trapezoid and of
a triangle, a (1 - delta + a) / 2 + a (1 - delta - a) / 2 = a (1 - delta), so

    AUC <= 1 - (1 - delta)^2 / (1 + e^epsilon),

which randomized response attains for delta = 0 with its probability of the truth, e^epsilon / (1 + e^epsilon). A time
should tell nothing, AUC 1/2: the limit is there for output and time together. The last rows draw in doubles by
rejection, and promise nothing about time. Noise of the machine moves an AUC towards 1/2; the standard deviation of N
pairs is .41 / sqrt(N) there.

Sources: L. Wasserman, S. Zhou (2010), A statistical framework for differential privacy; J. Jin, E. McMurtry, B.
Rubinstein, O. Ohrimenko (2022), Are we there yet? Timing and floating-point attacks on differential privacy systems.
"""

import argparse
import functools
import gc
import math
import time

import numpy as np
from scipy.stats import rankdata

from quincunx import posterior, privacy


def largest_auc(epsilon, delta):
    """The largest AUC of an observation of an (epsilon, delta) private output."""
    return 1 - (1 - delta) ** 2 / (1 + math.exp(epsilon))


def auc(one, other, pairs, rng):
    """AUC of the time of single calls, and the two medians in microseconds."""
    times = np.empty((2, pairs))
    jobs = (one, other)
    for job in jobs:
        job()
    gc.disable()
    try:
        for pair in range(pairs):
            first = int(rng.integers(2))
            for which in (first, 1 - first):
                start = time.perf_counter_ns()
                jobs[which]()
                times[which, pair] = time.perf_counter_ns() - start
    finally:
        gc.enable()
    above = rankdata(times.ravel())[:pairs].sum() - pairs * (pairs + 1) / 2
    share = above / pairs**2
    return max(share, 1 - share), *np.median(times, axis=1) / 1e3


def cases():
    """Rows: (call, one data set, another), each call a release with a guarantee."""
    flat = np.zeros(1000)
    peak = np.eye(1, 1000)[0]
    counts = np.full((300, 10), 1)
    outside = np.concatenate([[[50] * 10], counts[1:]])
    privatize = functools.partial(privacy.privatize, epsilon=1.0, record_bound=20)
    exponential = privacy.ExponentialMechanism(1.0, sensitivity=1.0)
    rows = {
        "exponential, 1000 scores": (exponential.release, flat, peak),
        "exponential, flat and steep": (exponential.release, flat, -np.arange(1000.0)),
        "geometric": (privacy.GeometricMechanism(1.0, lower=0, upper=10**6).release, [0], [10**6]),
        "Laplace": (privacy.LaplaceMechanism(1.0, -1, 1).release, [-1.0], [1.0]),
        "Laplace, 0 and 2^-1074": (privacy.LaplaceMechanism(1.0, -1, 1).release, [0.0], [5e-324]),
        "Gaussian": (privacy.GaussianMechanism(1.0, 1e-6, sensitivity=1).release, [0.0], [-1 / 3]),
        "discrete Gaussian": (privacy.DiscreteGaussianMechanism(1.0, 1e-6, sensitivity=1).release, [0], [1]),
        "randomized response": (privacy.RandomizedResponse(1.0).release, [0], [1]),
        "generalized response, k = 10": (privacy.GeneralizedRandomizedResponse(1.0, 10).release, [0], [9]),
        "unary encoding, k = 1000": (privacy.UnaryEncoding(1.0, 1000).release, [0], [999]),
        "privatize, a row outside": (privatize, counts, outside),
        "privatize, all rows outside": (privatize, counts, 5 * counts),
    }

    def drawn(model):
        return lambda x: model.posterior(x).sample(1)

    beta = posterior.BetaBernoulli(1, 1, trim=0.05)
    dirichlet = posterior.DirichletCategorical([1.0] * 4, trim=0.05)
    decay = posterior.ExponentialGamma(1.0, 1.0, bounds=(0.5, 2.0), data_bound=1.0)
    bits = np.zeros(1000, dtype=np.int64)
    half = np.arange(1000) % 2
    one_bit = (np.arange(1000) == 0).astype(np.int64)
    rows |= {
        "Beta": (drawn(beta), bits, one_bit),
        "Beta, no ones and half": (drawn(beta), bits, half),
        "Gamma": (drawn(decay), np.zeros(1000), one_bit.astype(float)),
        "Dirichlet": (drawn(dirichlet), bits, one_bit),
        "Dirichlet, one category and all": (drawn(dirichlet), bits, np.arange(1000) % 4),
    }
    network = posterior.DiscreteBayesNet([("a", "b")], {"a": 2, "b": 2})
    table = np.zeros((1000, 2), dtype=np.int64)
    changed = np.concatenate([[[1, 1]], table[1:]])
    for mechanism in ("laplace", "fourier_l1", "fourier_linf", "posterior_sample", "map"):
        rows[f"network, {mechanism}"] = (
            lambda x, how=mechanism: network.fit_private(x, epsilon=1.0, mechanism=how),
            table,
            changed,
        )
    normal = posterior.MultivariateNormalMean(np.eye(3), radius=1.0, data_bound=1.0).calibrate(1.0)
    wishart = posterior.MultivariateNormalPrecision(4.0, np.eye(2), radius=300.0, data_bound=0.5).calibrate(1.0)
    points, first = np.zeros((100, 3)), np.eye(1, 300).reshape(100, 3)
    rows |= {
        "normal on a ball, in doubles": (drawn(normal), points, points + first),
        "Wishart on a ball, in doubles": (drawn(wishart), points[:, :2], points[:, :2] + 0.5 * first[:, :2]),
    }
    return rows


def measure(row, pairs, rng):
    """AUC, the largest that the guarantee allows, and the two medians."""
    call, one, other = cases()[row]
    guarantee = call(one).guarantee
    return (
        auc(lambda: call(one), lambda: call(other), pairs, rng),
        largest_auc(float(guarantee.epsilon), float(guarantee.delta)),
    )


def table(rows, pairs):
    """Print the areas of some rows, or of all."""
    rng = np.random.default_rng(1)
    print(f"{'AUC of the time of a single call':<34}{'AUC':>8}{'allowed':>9}{'us':>12}{'us':>12}")
    for row in rows or cases():
        (found, one, other), allowed = measure(row, pairs, rng)
        print(f"{row:<34}{found:>8.3f}{allowed:>9.3f}{one:>12.1f}{other:>12.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--pairs", type=int, default=2000)
    options = parser.parse_args()
    table(options.rows, options.pairs)


if __name__ == "__main__":
    main()
