"""Regression from private records against LDP-SGD: figures 4 (wine, linear) and 5 (adult, logistic) of the paper.

All preprocessing comes from a public split, the first tenth of the rows shuffled with seed 0, which takes no further
part: standardization, principal components to 5 dimensions, division by the 99 % norm. Rows are clipped to the unit
ball, together with a constant coordinate of 1/2 for the intercept. Rates of descent are tuned on the public split.

wine:  6497 red and white wines (made ones where the files are not there), y = (quality - 6)/1.5 clipped to [-2, 2];
       root mean square error of predicted quality on a fifth of the rows.
adult: 48842 records of a census, income above 50K; the area under the curve on a fifth of the rows. Noisy inputs of
       10^4 rows with half of epsilon on the label (composed exactly), noisy moments of all, LDP-SGD on the 10^4.

Beside them the fit that sees the same records without noise, and a constant. Said at the end is where learning starts:
from which epsilon on a method beats the constant by two standard errors of the difference.

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


class Task:
    """What the two figures differ in."""

    def __init__(self, name):
        self.name = name
        if name == "wine":
            self.judge, self.kind, self.higher = quality_error, "linear", False
            self.cls, self.bounds = ldp.LinearRegression, {"x_bound": 1.0, "y_bound": 2.0}
            self.moved = sensitivity.linear_regression(1.0, 2.0)
        else:
            self.judge, self.kind, self.higher = area, "logistic", True
            self.cls, self.bounds = ldp.LogisticRegression, {"x_bound": 1.0}
            self.moved = sensitivity.logistic_regression(1.0)

    def told(self, y):
        """What the answers are to the methods."""
        return np.clip((y - 6) / 1.5, -2, 2) if self.name == "wine" else y


def with_noise(task, epsilon, rate, train, test, few, settings, seed, inputs):
    """The figure of merit of each private method for one split; of noisy inputs where they are asked for."""
    (x, y), (x_test, y_test), found = train, test, {}
    moments = getattr(statistics, task.kind)(x, task.told(y), **task.bounds)
    mechanism = GaussianMechanism(epsilon, DELTA, sensitivity=task.moved)
    model = task.cls(kind="statistics", priors=PRIORS, random_state=seed, **settings)
    model.fit(mechanism.release(moments, insecure_seed=seed))
    found["moments"] = task.judge(x_test @ model.coef_, y_test)
    x_few, y_few = x[:few], task.told(y[:few])
    if inputs:
        records, label = noise_of_inputs(epsilon)
        model = task.cls((records, label), fit_intercept=True, priors=PRIORS, random_state=seed, **short(settings))
        model.fit(records.release(x_few[:, :-1], insecure_seed=seed + 1), label.release(y_few, insecure_seed=seed + 2))
        found["inputs"] = task.judge(x_test[:, :-1] @ model.coef_, y_test)
    how = {"epsilon": epsilon, "delta": DELTA, "learning_rate": rate, "random_state": seed, "insecure_seed": seed}
    found["LDP-SGD"] = task.judge(x_test @ ldp.LDPSGD(task.kind, **how).fit(x_few, y_few).coef_, y_test)
    return found


def without_noise(task, public, train, test, few, settings, seed):
    """The same of the fit that sees the records, and of one answer for all, by the public split: it learns nothing."""
    (x, y), (x_test, y_test) = train, test
    model = task.cls(priors=PRIORS, random_state=seed, **short(settings)).fit(x[:few], task.told(y[:few]))
    constant = np.full(len(y_test), task.told(public[1]).mean())
    return {"without noise": task.judge(x_test @ model.coef_, y_test), "constant": task.judge(constant, y_test)}


def short(settings):
    """Chains of what takes long."""
    return {name: min(300, number) for name, number in settings.items()}


def run(name, data, repeats, epsilons, few=10_000, draws=500, of_inputs=None):
    """Rows of (epsilon, results by method): of noisy inputs, which take longest, for the first repeats if so wanted."""
    task, (public, (X, y)) = Task(name), prepared(*data)
    settings = {"n_warmup": draws, "n_draws": draws}
    rates = {}
    for epsilon in epsilons:  # public records, one rate for all repeats
        descent = ldp.LDPSGD(task.kind, epsilon=epsilon, delta=DELTA, random_state=0)
        rates[epsilon] = descent.tune(public[0], task.told(public[1])).learning_rate
    found = {epsilon: {} for epsilon in epsilons}
    for repeat in range(repeats):
        order, seed = np.random.default_rng(1000 + repeat).permutation(len(X)), 10 * repeat
        train, test = ((X[part], y[part]) for part in np.split(order, [len(X) * 4 // 5]))
        common = without_noise(task, public, train, test, few, settings, seed)
        for epsilon in epsilons:
            inputs = name == "adult" and (of_inputs is None or repeat < of_inputs)
            results = with_noise(task, epsilon, rates[epsilon], train, test, few, settings, seed, inputs)
            for method, value in (results | common).items():
                found[epsilon].setdefault(method, []).append(value)
    return list(found.items())


def learning_starts(rows, higher):
    """For each private method the epsilon from which on it beats the constant by two standard errors, or None.

    Of paired differences, on the same test rows; the standard error is that of splits and noise.
    """
    starts = {}
    for method in (name for name in rows[0][1] if name not in ("without noise", "constant")):
        start = None
        for epsilon, found in rows:
            values = np.array(found[method])
            gains = (values - found["constant"][: len(values)]) * (1 if higher else -1)
            error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
            better = gains.mean() > 2 * error
            start = (epsilon if start is None else start) if better else None
        starts[method] = start
    return starts


def descents(task, data, repeats, epsilons, few=10_000):
    """Rows of (epsilon, learning rate, results of LDP-SGD, its results without noise in groups of the same size)."""
    (X, y), task, rows = prepared(*data)[1], Task(task), []
    for epsilon, rate in itertools.product(epsilons, (0.01, 0.1, 1.0, 3.0)):
        # At an epsilon of 10^4 the noise is nothing; the factor keeps the groups as large as they were.
        levels, found = ({"epsilon": epsilon}, {"epsilon": 1e4, "group_factor": (1e4 / epsilon) ** 2}), ([], [])
        for repeat in range(repeats):
            order = np.random.default_rng(1000 + repeat).permutation(len(X))
            train, test = order[: len(X) * 4 // 5][:few], order[len(X) * 4 // 5 :]
            for level, results in zip(levels, found, strict=True):
                how = {"delta": DELTA, "learning_rate": rate, "random_state": repeat, "insecure_seed": repeat}
                weights = ldp.LDPSGD(task.kind, **level, **how).fit(X[train], task.told(y[train])).coef_
                results.append(task.judge(X[test] @ weights, y[test]))
        rows.append((epsilon, rate, *found))
    return rows


def main():
    parser = arguments(__doc__, quick="few records, repeats and draws", data="files")
    parser.add_argument("task", choices=["wine", "adult"])
    parser.add_argument("--repeats", type=int, help="by default 30, quick 2")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--inputs", type=int, help="repeats of noisy inputs (adult), by default all")
    parser.add_argument("--descent", action="store_true", help="LDP-SGD alone, by learning rate and without noise")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    *data, origin = load(options.task, options.data)
    repeats, few, draws = (2, 500, 200) if options.quick else (30, 10_000, 500)
    repeats = options.repeats or repeats
    what = "root mean square error" if options.task == "wine" else "area under the curve"
    print(f"{origin}, {repeats} repeats: {what} on test rows, mean (standard deviation)")
    if options.descent:
        print(f"{'epsilon':>8}{'learning rate':>18}{'LDP-SGD':>18}{'without noise':>18}")
        for epsilon, rate, *found in descents(options.task, data, repeats, options.epsilons, few):
            cells = (f"{np.mean(values):.4f} ({np.std(values):.4f})" for values in found)
            print(f"{epsilon:>8}{rate:>18}" + "".join(f"{cell:>18}" for cell in cells))
        return
    rows = run(options.task, data, repeats, options.epsilons, few, draws, options.inputs)
    methods = [name for name in ("moments", "inputs", "LDP-SGD", "without noise", "constant") if name in rows[0][1]]
    print(f"{'epsilon':>8}" + "".join(f"{method:>18}" for method in methods))
    for epsilon, found in rows:
        cells = (f"{np.mean(found[m]):.4f} ({np.std(found[m]):.4f})" for m in methods)
        print(f"{epsilon:>8}" + "".join(f"{cell:>18}" for cell in cells))
    starts = learning_starts(rows, Task(options.task).higher)
    told = (f"{name} {'at none' if start is None else f'from {start:g}'}" for name, start in starts.items())
    print("better than the constant by two standard errors, epsilon: " + ", ".join(told))
    if "inputs" in methods and options.inputs is not None and options.inputs < repeats:
        print(f"inputs: {options.inputs} repeats")
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
