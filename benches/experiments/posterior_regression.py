"""Test error of private linear regression against the prior precision and against epsilon (figure 4.2 of Zhang 2017).

The first picture: precision b, W = 10 / sqrt(b), sigma = 1, one draw of the posterior; the epsilon of each is
quadratic in W above
W = 1, not proportional to it. The second: W = 1, the likelihood tempered to epsilon. Data: a synthetic census (370
000 rows,
7 normal and 6 binary columns and a constant, rows of norm at most 1, coefficients of norm .9, residual deviation .2), a
tenth for training, and scikit-learn's diabetes set. Least squares and the mean stand beside; diffprivlib where
installed.

Run: python benches/experiments/posterior_regression.py [--draws 50] [--quick] [--picture FILE]
"""

import argparse

import numpy as np
from common import plotting

from quincunx.posterior import BallRegression

PRECISIONS = [1.0, 10.0, 100.0, 1e3, 1e4]
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]


def census(rows=370_000, seed=0):
    """The synthetic census: rows and responses, split into training and test."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        (rng.standard_normal((rows, 7)), rng.random((rows, 6)) < np.arange(1, 7) / 10, np.ones(rows))
    ).astype(float)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    w = rng.standard_normal(14)
    w *= 0.9 / np.linalg.norm(w)
    y = np.clip(X @ w + 0.2 * rng.standard_normal(rows), -1, 1)
    cut = rows // 10
    return X[:cut], y[:cut], X[cut:], y[cut:]


def diabetes(seed=0):
    """scikit-learn's set with an intercept, rows of norm at most 1, responses in [-1, 1]."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack((X / 0.2, np.ones(len(X)))) / 2
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    y = (y - 25) / (346 - 25) * 2 - 1
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:221], order[221:]
    return X[train], y[train], X[test], y[test]


def error(w, X, y):
    return float(np.mean((X @ w - y) ** 2))


def by_precision(data, draws):
    """Epsilon and test errors of single draws, for each prior precision."""
    X, y, X_test, y_test = data
    found = []
    for b in PRECISIONS:
        model = BallRegression(10 / np.sqrt(b), 1.0, 1.0, 1.0, b)
        values = model.posterior(X, y).sample(draws).values  # each draw is one release of its own
        found.append((b, model.guarantee().epsilon, [error(w, X_test, y_test) for w in values]))
    return found


def by_epsilon(data, draws, radius):
    """Test errors of single draws of the posterior tempered to each epsilon."""
    X, y, X_test, y_test = data
    found = []
    for epsilon in EPSILONS:
        model = BallRegression(radius, 1.0, 1.0, 1.0, 1.0).calibrate(epsilon)
        values = model.posterior(X, y).sample(draws).values
        found.append((epsilon, [error(w, X_test, y_test) for w in values]))
    return found


def by_diffprivlib(data, repeats):
    """diffprivlib's regression with bounds (-1, 1), or nothing."""
    try:
        from diffprivlib.models import LinearRegression
    except ImportError as reason:
        print(f"diffprivlib is not compared: {reason}")
        return []
    X, y, X_test, y_test = data
    found = []
    for epsilon in EPSILONS:
        errors = []
        for _ in range(repeats):
            model = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
            errors.append(float(np.mean((model.predict(X_test) - y_test) ** 2)))
        found.append((epsilon, errors))
    return found


def said(errors):
    low, middle, high = np.percentile(errors, [25, 50, 75])
    return f"{np.mean(errors):.4f} ({low:.4f} {middle:.4f} {high:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--rows", type=int, default=370_000)
    parser.add_argument("--quick", action="store_true", help="few repeats")
    parser.add_argument("--picture", help="where the picture goes")
    options = parser.parse_args()
    if options.quick:
        options.draws, options.rows = 5, 5000
    pictures = {}
    for name, data in {"census": census(options.rows), "diabetes": diabetes()}.items():
        X, y, X_test, y_test = data
        least = error(np.linalg.lstsq(X, y, rcond=None)[0], X_test, y_test)
        mean = float(np.mean((y_test - y.mean()) ** 2))
        print(
            f"\n{name}: {len(y)} rows to train; least squares {least:.4f}, mean {mean:.4f}; "
            "mean error (quartiles) of a draw"
        )
        first = by_precision(data, options.draws)
        for b, epsilon, errors in first:
            print(f"  precision {b:>7g}, W {10 / np.sqrt(b):<6.3g} epsilon {epsilon:<8.4g} {said(errors)}")
        for radius in (0.3, 1.0, 3.0):
            second = by_epsilon(data, options.draws, radius)
            for epsilon, errors in second:
                ratio = np.mean(errors) / least
                print(f"  W {radius:<4g} epsilon {epsilon:<6g} {said(errors)}  {ratio:.3f} of least squares")
            pictures[name, radius] = second
        for epsilon, errors in by_diffprivlib(data, 5):
            print(f"  diffprivlib epsilon {epsilon:<6g} {said(errors)}")
        pictures[name] = first, least, mean
    if options.picture and (pyplot := plotting()):
        figure, axes = pyplot.subplots(2, 2, figsize=(9, 7))
        for row, name in zip(axes, ("census", "diabetes"), strict=True):
            first, least, mean = pictures[name]
            row[0].errorbar([b for b, _, _ in first], [np.mean(e) for _, _, e in first], marker="o")
            for b, epsilon, e in first:
                row[0].annotate(f"{epsilon:.3g}", (b, np.mean(e)), fontsize=7)
            row[0].set(xscale="log", yscale="log", xlabel="prior precision (epsilon beside)", ylabel=f"{name}: error")
            for radius in (0.3, 1.0, 3.0):
                second = pictures[name, radius]
                row[1].plot([e for e, _ in second], [np.mean(v) for _, v in second], marker="o", label=f"W = {radius}")
            for ax in row:
                ax.axhline(least, color="black", linewidth=0.8)
                ax.axhline(mean, color="gray", linewidth=0.8, linestyle=":")
            row[1].set(xscale="log", xlabel="epsilon")
            row[1].legend()
        figure.tight_layout()
        figure.savefig(options.picture, dpi=150)


if __name__ == "__main__":
    main()
