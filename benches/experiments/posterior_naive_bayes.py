"""Accuracy of private naive Bayes against epsilon, for every mechanism (figure 4.1 of Zhang 2017, corrected).

Per repeat: a class with probability 1/2, 16 binary features with probabilities uniform on (0, 1) given each class, 1000
records, 50 of them for training, posterior means of uniform priors, accuracy on the other 950. Everything is pure
epsilon under
replacing one record, but for the thesis's own sampler, whose line says what it really spends.

Run: python benches/experiments/posterior_naive_bayes.py [--repeats 400] [--quick] [--picture FILE]
"""

import argparse
import math

import numpy as np
from common import plotting

from quincunx.posterior import BetaBernoulli, DiscreteBayesNet, naive_bayes_loss

D, RECORDS, TRAINING = 16, 1000, 50
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
NET = DiscreteBayesNet([("y", i) for i in range(D)], {"y": 2} | dict.fromkeys(range(D), 2))
MECHANISMS = {
    "Laplace": {"mechanism": "laplace", "smooth": 0.0},
    "Fourier L1, clip": {"mechanism": "fourier_l1", "smooth": 0.0},
    "Fourier L-inf, clip": {"mechanism": "fourier_linf", "smooth": 0.0},
    "Fourier L-inf, clip, smoothing 1": {"mechanism": "fourier_linf", "smooth": 1.0},
    "thesis's Fourier (shift ln 10)": {"mechanism": "fourier_l1", "smooth": 0.0, "nonneg": "fixed_shift"},
    "posterior sample": {"mechanism": "posterior_sample"},
    "private MAP": {"mechanism": "map"},
}


def problem(rng):
    """Records of one repeat: training and test."""
    theta = rng.random((2, D))
    y = rng.integers(0, 2, RECORDS)
    x = rng.random((RECORDS, D)) < theta[y]
    data = np.column_stack((y, x)).astype(np.int64)
    return data[:TRAINING], data[TRAINING:]


def accuracy(prior, tables, test):
    """Share of the classes found; tables have the axes (feature, class)."""
    x = test[:, 1:]
    joint = np.log(prior) + x @ np.log(tables) + (1 - x) @ np.log1p(-tables)
    return float((joint.argmax(axis=1) == test[:, 0]).mean())


def of_network(fitted, test):
    tables = np.array([fitted.cpds[i][:, 1] for i in range(D)])
    return accuracy(fitted.cpds["y"], np.clip(tables, 1e-12, 1 - 1e-12), test)


def of_counts(train, test):
    """No privacy: posterior means."""
    y = train[:, 0]
    sums = np.array([train[y == c, 1:].sum(axis=0) for c in (0, 1)])
    sizes = np.bincount(y, minlength=2)
    return accuracy((sizes + 1) / (sizes.sum() + 2), ((sums + 1) / (sizes[:, None] + 2)).T, test)


def of_thesis(train, test, epsilon):
    """The sampler of section 4.4.2, trimmed at exp(-epsilon / 2), whatever that spends; None where nothing is left."""
    w = math.exp(-epsilon / 2)
    if w >= 0.5 or w < 1e-12:
        return None
    model = BetaBernoulli(1, 1, trim=w)
    y = train[:, 0]
    prior = model.posterior(y).sample(1).values[0]
    tables = [[model.posterior(train[y == c, 1 + i]).sample(1).values[0] for c in (0, 1)] for i in range(D)]
    return accuracy(np.array([1 - prior, prior]), np.array(tables), test)


def diffprivlib_model(epsilon):
    """diffprivlib's Gaussian naive Bayes with bounds (0, 1), or None."""
    try:
        from diffprivlib.models import GaussianNB
    except ImportError:
        return None
    return GaussianNB(epsilon=epsilon, bounds=(0, 1), priors=None)


def of_private_pgm(train, test, epsilon, rng):
    """private-pgm's mirror descent from noisy (class, feature) tables, or None."""
    try:
        from mbi import Dataset, Domain, LinearMeasurement, estimation
    except ImportError:
        return None
    import pandas as pd

    names = ["y", *(f"x{i}" for i in range(D))]
    frame = Dataset(pd.DataFrame(train, columns=names), Domain(names, [2] * (D + 1)))
    scale = 2 * D / epsilon
    measured = []
    for name in names[1:]:
        table = frame.project(("y", name)).datavector()
        measured.append(LinearMeasurement(table + rng.laplace(0, scale, table.size), ("y", name), stddev=scale))
    model = estimation.mirror_descent(frame.domain, measured, iters=500, known_total=len(train))
    tables = [np.asarray(model.project(("y", name)).datavector()).reshape(2, 2) for name in names[1:]]
    tables = [np.maximum(table, 0) + 1 for table in tables]
    prior = tables[0].sum(axis=1) / tables[0].sum()
    return accuracy(prior, np.array([table[:, 1] / table.sum(axis=1) for table in tables]), test)


def run(repeats, epsilons, seed=0, sampler_repeats=None):
    """Accuracies by row and epsilon: lists of one figure per repeat."""
    rng = np.random.default_rng(seed)
    found = {}

    def add(row, epsilon, value):
        if value is not None:
            found.setdefault((row, epsilon), []).append(value)

    for repeat in range(repeats):
        train, test = problem(rng)
        add("not private", None, of_counts(train, test))
        for epsilon in epsilons:
            for row, how in MECHANISMS.items():
                slow = how["mechanism"] in ("posterior_sample", "map")
                if not slow or repeat < (sampler_repeats or repeats):
                    add(row, epsilon, of_network(NET.fit_private(train, epsilon, **how), test))
            if repeat < (sampler_repeats or repeats):
                add("thesis's sampler (not epsilon)", epsilon, of_thesis(train, test, epsilon))
            if repeat < 12:
                add("private-pgm", epsilon, of_private_pgm(train, test, epsilon, rng))
            model = diffprivlib_model(epsilon)
            if model is not None and repeat < 100:
                fitted = model.fit(train[:, 1:], train[:, 0])
                add("diffprivlib GaussianNB", epsilon, float((fitted.predict(test[:, 1:]) == test[:, 0]).mean()))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--sampler-repeats", type=int, default=100)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--picture", help="where the picture goes")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.sampler_repeats, options.epsilons = 3, 1, [1.0, 10.0]
    found = run(options.repeats, options.epsilons, sampler_repeats=options.sampler_repeats)
    plain = found.pop(("not private", None))
    print(f"not private: {np.mean(plain):.4f}, standard error {np.std(plain) / math.sqrt(len(plain)):.4f}")
    print(f"{'epsilon':<36}" + "".join(f"{epsilon:>16g}" for epsilon in options.epsilons))
    rows = list(dict.fromkeys(row for row, _ in found))
    for row in rows:
        cells = []
        for epsilon in options.epsilons:
            values = found.get((row, epsilon))
            error = 0 if values is None else np.std(values) / math.sqrt(len(values))
            cells.append("-" if values is None else f"{np.mean(values):.3f} +- {error:.4f}")
        print(f"{row:<36}" + "".join(f"{cell:>16}" for cell in cells))
    spent = []
    for epsilon in options.epsilons:
        w = math.exp(-epsilon / 2)
        spent.append("-" if not 1e-12 < w < 0.5 else f"{naive_bayes_loss(D, TRAINING, w):.1f}")
    print(f"{'what the thesis sampler really spends':<36}" + "".join(f"{cell:>16}" for cell in spent))
    if options.picture and (pyplot := plotting()):
        _, ax = pyplot.subplots(figsize=(7, 5))
        for row in rows:
            points = [
                (epsilon, np.mean(found[row, epsilon])) for epsilon in options.epsilons if (row, epsilon) in found
            ]
            style = ":" if "thesis" in row else "-"
            ax.plot(*zip(*points, strict=True), style, marker="o", label=row)
        ax.axhline(np.mean(plain), color="black", linewidth=0.8, label="not private")
        ax.set(xscale="log", xlabel="epsilon", ylabel="accuracy")
        ax.legend(fontsize=7)
        ax.figure.savefig(options.picture, dpi=150)


if __name__ == "__main__":
    main()
