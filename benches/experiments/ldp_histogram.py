"""A posterior mean of shares against the projected estimator: the papers' figures 3 and 9.

theta = (.7, .2, .1), unary encoding; root mean square error over categories and repeats, the share of answers with a
share of exactly 0 or 1 ("trivial"), and of answers in the wrong order.
Run: python benches/experiments/ldp_histogram.py [--repeats 50] [--picture FILE]
"""

import warnings

import numpy as np
from common import arguments, plotting, save

from quincunx import ldp
from quincunx.privacy import UnaryEncoding

THETA = np.array([0.7, 0.2, 0.1])


def run(repeats, epsilons, sizes, seed=0):
    """Rows of (epsilon, n, error, trivial, mis-ordered) of the posterior mean and of the projection."""
    rng = np.random.default_rng(seed)
    rows = []
    for epsilon in epsilons:
        mechanism = UnaryEncoding(epsilon, 3)
        for n in sizes:
            answers = {"posterior": [], "projected": []}
            for repeat in range(repeats):
                released = mechanism.release(rng.choice(3, n, p=THETA), insecure_seed=seed + repeat)
                model = ldp.HistogramModel(n_chains=1, n_draws=1, random_state=0).fit(released)
                answers["posterior"].append(model.posterior_mean_["theta"])
                answers["projected"].append(mechanism.estimate(released, simplex=True))
            found = []
            for shares in map(np.array, answers.values()):
                error = np.sqrt(np.mean((shares - THETA) ** 2))
                trivial = np.mean(((shares <= 0) | (shares >= 1)).any(axis=1))
                wrong = np.mean(~((shares[:, 0] > shares[:, 1]) & (shares[:, 1] > shares[:, 2])))
                found.append((error, trivial, wrong))
            rows.append((epsilon, n, *found))
    return rows


def main():
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000, 3000, 10_000])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':>17}{'posterior mean':^26}{'projected estimator':^26}")
    print(f"{'epsilon':>8}{'N':>9}" + f"{'error':>10}{'trivial':>8}{'order':>8}" * 2)
    rows = run(options.repeats, options.epsilons, options.sizes)
    for epsilon, n, ours, theirs in rows:
        print(f"{epsilon:>8}{n:>9}" + "".join(f"{e:>10.4f}{t:>8.2f}{w:>8.2f}" for e, t, w in (ours, theirs)))
    if options.picture and (pyplot := plotting()):
        figure, panels = pyplot.subplots(3, 1, sharex=True, figsize=(6, 8), layout="constrained")
        for i, epsilon in enumerate(options.epsilons):
            chosen = [row for row in rows if row[0] == epsilon]
            for place, name, style in ((2, "posterior mean", "o-"), (3, "projected", "s--")):
                for k, ax in enumerate(panels):
                    label = f"{name}, epsilon {epsilon:g}"
                    ax.plot(options.sizes, [row[place][k] for row in chosen], style, color=f"C{i}", label=label)
        panels[0].set(xscale="log", yscale="log", ylabel="root mean square error")
        panels[1].set(ylabel="share of trivial answers")
        panels[2].set(ylabel="share in the wrong order", xlabel="users")
        panels[0].legend(fontsize=7)
        save(figure, options.picture)


if __name__ == "__main__":
    main()
