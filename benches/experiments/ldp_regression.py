"""Regression from private records against LDP-SGD: figures 4 (wine, linear) and 5 (adult, logistic) of the paper.

All preprocessing comes from a public split, the first tenth of the rows shuffled with seed 0, which takes no further
part: standardization, principal components to 5 dimensions, division by the 99 % norm. Rows are clipped to the unit
ball, together with a constant coordinate of 1/2 for the intercept. Rates of descent are tuned on the public split.

wine:  6497 red and white wines (made ones where the files are not there), y = (quality - 6)/1.5 clipped to [-2, 2];
       root mean square error of predicted quality on a fifth of the rows.
adult: 48842 records of a census, income above 50K; the area under the curve on a fifth of the rows. Noisy inputs of
       10^4 rows with half of epsilon on the label (composed exactly), noisy moments of all, LDP-SGD on the 10^4.

Run: python benches/experiments/ldp_regression.py wine|adult [--quick] [--repeats 30] [--data FOLDER] [--picture FILE]
     python benches/experiments/ldp_regression.py adult --descent [--quick]    what decides about LDP-SGD
"""

import csv
import gzip
import itertools
import warnings

import numpy as np
from common import arguments, plotting, save
from scipy import optimize, stats

from quincunx import ldp
from quincunx.ldp import statistics
from quincunx.ldp.priors import HalfNormal
from quincunx.privacy import GaussianMechanism, RandomizedResponse, sensitivity

DELTA = 1e-5
CONSTANT = 0.5
DIMENSION = 5
#: The inputs lie in the unit ball, which is public: their scales are below 1.
PRIORS = {"scales": HalfNormal(0.5)}


def made(task, rows=4000, seed=1):
    """Data of the form of the files."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 11)) @ rng.normal(size=(11, 11))
    score = X @ rng.normal(size=11) / 12
    if task == "wine":
        return X, np.clip(np.round(5.8 + 0.6 * score + 0.6 * rng.normal(size=rows)), 3, 9)
    return X, (rng.random(rows) < 1 / (1 + np.exp(1 - 2 * score))).astype(float)


def wine(folder):
    """Features and qualities of red and white wines."""
    parts = []
    for name in ("winequality_red.csv.gz", "winequality_white.csv.gz"):
        with gzip.open(folder / name, "rt") as file:
            parts.append(np.loadtxt(file, delimiter=",", skiprows=1))
    rows = np.concatenate(parts)
    return rows[:, :-1], rows[:, -1]


def adult(folder):
    """Features of the census, categories as indicators, and whether the income is above 50K."""
    rows = []
    for name in ("adult_train.csv.gz", "adult_test.csv.gz"):
        with gzip.open(folder / name, "rt") as file:
            rows += [[field.strip() for field in row] for row in csv.reader(file) if len(row) == 15]
    numbers = np.array([[float(row[k]) for k in (0, 4, 10, 11, 12)] for row in rows])
    numbers[:, 2:4] = np.log1p(numbers[:, 2:4])
    columns = [numbers]
    for k in (9, 8, 5, 6):
        values = np.array([row[k] for row in rows])
        columns.append((values[:, None] == np.unique(values)).astype(float))
    return np.column_stack(columns), np.array([float(row[14].startswith(">50K")) for row in rows])


def load(task, folder):
    """The data, and where they come from."""
    read, first = (wine, "winequality_red.csv.gz") if task == "wine" else (adult, "adult_train.csv.gz")
    there = (folder / first).exists()
    return (*read(folder), task) if there else (*made(task), f"made data, as there is no {folder / first}")


def prepared(X, y):
    """The public and the private part of the data, in the unit ball."""
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    public = len(X) // 10
    centre, spread = X[:public].mean(axis=0), X[:public].std(axis=0)
    Z = (X - centre) / np.where(spread > 0, spread, 1.0)
    components = np.linalg.svd(Z[:public], full_matrices=False)[2][:DIMENSION]
    Z = Z @ components.T
    Z /= np.quantile(np.linalg.norm(Z[:public], axis=1), 0.99)
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1)
    Z = np.column_stack([Z * np.sqrt(1 - CONSTANT**2), np.full(len(Z), CONSTANT)])
    return (Z[:public], y[:public]), (Z[public:], y[public:])


def noise_of_inputs(epsilon):
    """Randomized response with half of epsilon, and normal noise so that both together have exactly epsilon."""
    label = RandomizedResponse(epsilon / 2)
    radius = np.sqrt(1 - CONSTANT**2)

    def excess(log_sigma):
        records = GaussianMechanism(sigma=np.exp(log_sigma), radius=radius, dimension=DIMENSION)
        return np.log((label.guarantee & records.guarantee).delta_at(epsilon)) - np.log(DELTA)

    simple = GaussianMechanism(epsilon / 2, DELTA, radius=radius, dimension=DIMENSION).sigma
    sigma = np.exp(optimize.brentq(excess, np.log(simple / 3), np.log(simple * 1.01), xtol=1e-9)) * (1 + 1e-8)
    return GaussianMechanism(sigma=sigma, radius=radius, dimension=DIMENSION), label


def area(scores, labels):
    """The area under the curve of true against false positives."""
    ones = labels > 0.5
    ranks = stats.rankdata(scores)
    return (ranks[ones].sum() - ones.sum() * (ones.sum() + 1) / 2) / (ones.sum() * (~ones).sum())


def quality_error(scores, quality):
    """The root mean square error of predicted qualities."""
    return np.sqrt(np.mean((6 + 1.5 * scores - quality) ** 2))


def one(task, epsilon, public, train, test, few, settings, seed):
    """The figure of merit of each method for one split."""
    if task == "wine":
        judge, kind, told = quality_error, "linear", lambda y: np.clip((y - 6) / 1.5, -2, 2)
        cls, bounds = ldp.LinearRegression, {"x_bound": 1.0, "y_bound": 2.0}
        moved = sensitivity.linear_regression(1.0, 2.0)
    else:
        judge, kind, told = area, "logistic", lambda y: y
        cls, bounds = ldp.LogisticRegression, {"x_bound": 1.0}
        moved = sensitivity.logistic_regression(1.0)
    (x, y), (x_test, y_test), found = train, test, {}
    moments = getattr(statistics, kind)(x, told(y), **bounds)
    mechanism = GaussianMechanism(epsilon, DELTA, sensitivity=moved)
    model = cls(kind="statistics", priors=PRIORS, random_state=seed, **settings)
    model.fit(mechanism.release(moments, insecure_seed=seed))
    found["moments"] = judge(x_test @ model.coef_, y_test)
    x_few, y_few = x[:few], told(y[:few])
    if task == "adult":
        records, label = noise_of_inputs(epsilon)
        model = cls((records, label), fit_intercept=True, priors=PRIORS, random_state=seed, **settings)
        model.fit(records.release(x_few[:, :-1], insecure_seed=seed + 1), label.release(y_few, insecure_seed=seed + 2))
        found["inputs"] = judge(x_test[:, :-1] @ model.coef_, y_test)
    descent = ldp.LDPSGD(kind, epsilon=epsilon, delta=DELTA, random_state=seed, insecure_seed=seed)
    descent.tune(public[0], told(public[1]))
    found["LDP-SGD"] = judge(x_test @ descent.fit(x_few, y_few).coef_, y_test)
    short = settings | {"n_warmup": min(300, settings["n_warmup"]), "n_draws": min(300, settings["n_draws"])}
    model = cls(priors=PRIORS, random_state=seed, **short).fit(x_few, y_few)
    found["without noise"] = judge(x_test @ model.coef_, y_test)
    # What a method has to beat that learns nothing: one answer for all, by the public split.
    found["constant"] = judge(np.full(len(y_test), told(public[1]).mean()), y_test)
    return found


def run(task, data, repeats, epsilons, few=10_000, draws=1000):
    """Rows of (epsilon, results by method)."""
    public, (X, y) = prepared(*data)
    settings = {"n_warmup": draws, "n_draws": draws}
    rows = []
    for epsilon in epsilons:
        found = {}
        for repeat in range(repeats):
            order = np.random.default_rng(1000 + repeat).permutation(len(X))
            cut = len(X) * 4 // 5
            train, test = order[:cut], order[cut:]
            results = one(task, epsilon, public, (X[train], y[train]), (X[test], y[test]), few, settings, 10 * repeat)
            for method, value in results.items():
                found.setdefault(method, []).append(value)
        rows.append((epsilon, found))
    return rows


def descents(task, data, repeats, epsilons, few=10_000):
    """Rows of (epsilon, learning rate, results of LDP-SGD, its results without noise in groups of the same size)."""
    (X, y), kind, rows = prepared(*data)[1], "linear" if task == "wine" else "logistic", []
    judge, told = (quality_error, lambda y: np.clip((y - 6) / 1.5, -2, 2)) if task == "wine" else (area, lambda y: y)
    for epsilon, rate in itertools.product(epsilons, (0.01, 0.1, 1.0, 3.0)):
        # At an epsilon of 10^4 the noise is nothing; the factor keeps the groups as large as they were.
        levels, found = ({"epsilon": epsilon}, {"epsilon": 1e4, "group_factor": (1e4 / epsilon) ** 2}), ([], [])
        for repeat in range(repeats):
            order = np.random.default_rng(1000 + repeat).permutation(len(X))
            train, test = order[: len(X) * 4 // 5][:few], order[len(X) * 4 // 5 :]
            for level, results in zip(levels, found, strict=True):
                how = {"delta": DELTA, "learning_rate": rate, "random_state": repeat, "insecure_seed": repeat}
                weights = ldp.LDPSGD(kind, **level, **how).fit(X[train], told(y[train])).coef_
                results.append(judge(X[test] @ weights, y[test]))
        rows.append((epsilon, rate, *found))
    return rows


def main():
    parser = arguments(__doc__, quick="few records, repeats and draws", data="files")
    parser.add_argument("task", choices=["wine", "adult"])
    parser.add_argument("--repeats", type=int, help="by default 30, quick 2")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--descent", action="store_true", help="LDP-SGD alone, by learning rate and without noise")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    *data, origin = load(options.task, options.data)
    repeats, few, draws = (2, 500, 200) if options.quick else (30, 10_000, 1000)
    repeats = options.repeats or repeats
    what = "root mean square error" if options.task == "wine" else "area under the curve"
    print(f"{origin}, {repeats} repeats: {what} on test rows, mean (standard deviation)")
    if options.descent:
        print(f"{'epsilon':>8}{'learning rate':>18}{'LDP-SGD':>18}{'without noise':>18}")
        for epsilon, rate, *found in descents(options.task, data, repeats, options.epsilons, few):
            cells = (f"{np.mean(values):.4f} ({np.std(values):.4f})" for values in found)
            print(f"{epsilon:>8}{rate:>18}" + "".join(f"{cell:>18}" for cell in cells))
        return
    rows = run(options.task, data, repeats, options.epsilons, few, draws)
    methods = list(rows[0][1])
    print(f"{'epsilon':>8}" + "".join(f"{method:>18}" for method in methods))
    for epsilon, found in rows:
        cells = (f"{np.mean(found[m]):.4f} ({np.std(found[m]):.4f})" for m in methods)
        print(f"{epsilon:>8}" + "".join(f"{cell:>18}" for cell in cells))
    if options.picture and (pyplot := plotting()):
        figure, axes = pyplot.subplots()
        for method in methods:
            means, spreads = (np.array([f(row[1][method]) for row in rows]) for f in (np.mean, np.std))
            axes.errorbar([row[0] for row in rows], means, spreads, marker=".", label=method)
        axes.set(xscale="log", xlabel="epsilon", ylabel=what, title=origin)
        axes.legend()
        save(figure, options.picture)


if __name__ == "__main__":
    main()
