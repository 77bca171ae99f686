"""Private and ordinary posteriors of the shares of ten pages: figure 2 of the paper.

11000 clicks on the ten most visited pages of Kosarak (its counts in `kosarak_5_25_item_counts.csv.gz`; made ones where
they are not there), drawn with a fixed seed and told by unary encoding. Each coordinate's mean absolute difference
between the distribution functions of the private posterior (of its draws) and of the ordinary one (a Beta law), on a
thousand points of the unit interval, averaged over the repeats.
Run: python benches/experiments/ldp_kosarak.py [--quick] [--repeats 50] [--data FOLDER] [--picture FILE]
"""

import gzip
import warnings

import numpy as np
from common import arguments, plotting, save
from scipy import stats

from quincunx import ldp
from quincunx.privacy import UnaryEncoding

GRID = np.linspace(0, 1, 1001)


def shares(folder):
    """Shares of the ten most visited pages among their visits, and where they come from."""
    path = folder / "kosarak_5_25_item_counts.csv.gz"
    if path.exists():
        with gzip.open(path, "rt") as file:
            counts = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=10)[:, 1]
        return counts / counts.sum(), "Kosarak"
    made = 1 / np.arange(1, 11) ** 0.8
    return made / made.sum(), f"made shares, as there is no {path}"


def run(theta, repeats, epsilons, clicks=11_000, draws=1000, seed=0):
    """Rows of (epsilon, mean difference of each coordinate)."""
    x = np.random.default_rng(seed).choice(len(theta), clicks, p=theta)
    counts = np.bincount(x, minlength=len(theta))
    ordinary = stats.beta(1 + counts[:, None], len(theta) - 1 + clicks - counts[:, None]).cdf(GRID)
    rows = []
    for epsilon in epsilons:
        found = np.zeros(len(theta))
        for repeat in range(repeats):
            released = UnaryEncoding(epsilon, len(theta)).release(x, insecure_seed=seed + repeat)
            model = ldp.HistogramModel(n_warmup=draws, n_draws=draws, random_state=repeat).fit(released)
            sample = np.sort(model.draws_["theta"].reshape(-1, len(theta)), axis=0)
            private = [np.searchsorted(column, GRID, side="right") / len(sample) for column in sample.T]
            found += np.mean(np.abs(private - ordinary), axis=1)
        rows.append((epsilon, found / repeats))
    return rows


def main():
    parser = arguments(__doc__, quick="few repeats and draws", data="counts")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    theta, origin = shares(options.data)
    repeats, draws = (2, 200) if options.quick else (options.repeats, 1000)
    rows = run(theta, repeats, options.epsilons, draws=draws)
    print(f"{origin}, {repeats} repeats: mean absolute difference of distribution functions, in thousandths")
    print(f"{'epsilon':>8}" + "".join(f"{f'page {k + 1}':>9}" for k in range(len(theta))) + f"{'all':>9}")
    for epsilon, found in rows:
        print(f"{epsilon:>8}" + "".join(f"{1e3 * f:>9.2f}" for f in found) + f"{1e3 * found.mean():>9.2f}")
    if options.picture and (pyplot := plotting()):
        figure, axes = pyplot.subplots()
        axes.plot([row[0] for row in rows], [row[1] for row in rows], ".-")
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="mean absolute difference")
        axes.set_title(f"private and ordinary posteriors, {origin}")
        save(figure, options.picture)


if __name__ == "__main__":
    main()
