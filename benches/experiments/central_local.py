"""Private factorization in the local and in the central model at the same epsilon: what a trusted curator would gain.

    python benches/experiments/central_local.py [--quick] [--sizes 100 400] [--repeats 1] [--picture FILE]

Counts come from a matrix of rank 5 whose factors are Gamma(shape 0.25, scale 4), as in the workshop paper of 2018. All
methods protect one unit of one count, and differ in from whom:

- local: every cell is released with two-sided geometric noise, (epsilon, 0), and nobody sees the counts. "private" has
  the noise in its model, "naive" takes what is not negative for the counts;
- central: a curator sees the counts, and releases the expected sufficient statistics of variational Bayes in each round
  with noise, (epsilon, 1e-6) for all rounds together (VIPS). How many rounds pay is not known before: of 5, 10, 20 and
  40 the one of least error is shown, chosen by the true rates, which favors it and is not private.

Printed are the mean absolute error of the rates, and the log-probability per cell, in nats, of a second table of counts
drawn from the same rates, at the rates found. Beside them the same of the fit that sees the counts without noise, of
the true rates, and of one mean for all cells.

Source of what is central: M. Park, J. Foulds, K. Chaudhuri and M. Welling (2020), Variational Bayes in private settings
(VIPS), J. Artificial Intelligence Research 68.
"""

import warnings
from typing import Any

import numpy as np
from common import arguments, plotting, save
from scipy import stats

from quincunx.errors import ConvergenceWarning, MisfitWarning
from quincunx.factorization import CentralPoissonFactorization, PoissonFactorization
from quincunx.privacy import privatize

SHAPE, RATE, RANK = 0.25, 0.25, 5
DELTA = 1e-6
ROUNDS = (5, 10, 20, 40)
PRIOR = {"prior_shape": SHAPE, "prior_rate": RATE}


def local(release: Any, noise: str, sweeps: int, seed: int) -> Any:
    """Return the rates that one chain finds."""
    how = {"n_chains": 1, "n_warmup": sweeps, "n_draws": sweeps // 4, "thin": 4, "random_state": seed}
    return PoissonFactorization(RANK, noise=noise, **PRIOR, **how).fit(release).rates_


def central(counts: Any, epsilon: float, rounds: int, seed: int) -> Any:
    """Return the rates that so many rounds find; made counts, so that a seed harms nobody."""
    how = {"epsilon": epsilon, "delta": DELTA, "n_iter": rounds, "random_state": seed, "insecure_seed": seed}
    return CentralPoissonFactorization(RANK, **PRIOR, **how).fit(counts).rates_


def judged(rates: Any, truth: Any, fresh: Any) -> tuple[float, float]:
    """Return the error of rates, and the log-probability of counts that they were not shown."""
    return float(np.abs(rates - truth).mean()), float(stats.poisson.logpmf(fresh, np.maximum(rates, 1e-10)).mean())


def one(size: int, epsilons: list[float], sweeps: int, seed: int) -> dict[Any, tuple[float, float]]:
    """Return what each method comes to on one table of counts: by name, and by epsilon where it has one."""
    rng = np.random.default_rng((2018, size, seed))
    truth = rng.gamma(SHAPE, 1 / RATE, (size, RANK)) @ rng.gamma(SHAPE, 1 / RATE, (RANK, size))
    counts, fresh = rng.poisson(truth), rng.poisson(truth)
    found = {
        "true rates": truth,
        "no noise": local(counts, "none", sweeps, seed),
        "one mean": np.full(truth.shape, counts.mean()),
    }
    for epsilon in epsilons:
        release = privatize(counts, epsilon=epsilon, insecure_seed=seed)
        found["private", epsilon] = local(release, "geometric", sweeps, seed)
        found["naive", epsilon] = local(release, "naive", sweeps, seed)
        tried = [central(counts, epsilon, rounds, seed) for rounds in ROUNDS]
        found["central", epsilon] = min(tried, key=lambda rates: np.abs(rates - truth).mean())
    return {name: judged(rates, truth, fresh) for name, rates in found.items()}


def main() -> None:
    parser = arguments(__doc__, quick="a small matrix and few sweeps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--sweeps", type=int, default=400, help="of a chain, before and after it is warm")
    options = parser.parse_args()
    for kind in (ConvergenceWarning, MisfitWarning):
        warnings.simplefilter("ignore", kind)
    sizes, repeats, sweeps = options.sizes, options.repeats, options.sweeps
    epsilons = options.epsilons
    if options.quick:
        sizes, repeats, sweeps, epsilons = [40], 1, 100, [0.5, 2.0]
    methods = ("private", "naive", "central")
    print("one unit of one count is protected: local from everybody, (epsilon, 0); central from all but the curator,")
    print(f"(epsilon, {DELTA:g}); central by the best of {ROUNDS} rounds, judged by the truth")
    curves: dict[int, Any] = {}
    for size in sizes:
        runs = [one(size, epsilons, sweeps, seed) for seed in range(repeats)]
        mean = {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
        curves[size] = mean
        print(f"{size} x {size}, rank {RANK}, averages of {repeats}; without privacy, error and log-probability:")
        print("  " + "; ".join(f"{name} {mean[name][0]:.3f} {mean[name][1]:.3f}" for name in mean if name in NAMES))
        print(f"{'':>8} {'mean absolute error':>29} {'log-probability':>29}")
        print(f"{'epsilon':>8} " + " ".join(f"{name:>9}" for name in (*methods, *methods)))
        for epsilon in epsilons:
            cells = [mean[name, epsilon][part] for part in (0, 1) for name in methods]
            print(f"{epsilon:8g} " + " ".join(f"{value:9.3f}" for value in cells), flush=True)
    if options.picture and (pyplot := plotting()):
        figure, axes = pyplot.subplots(2, len(sizes), figsize=(4.5 * len(sizes), 6.5), squeeze=False)
        for column, size in zip(axes.T, sizes, strict=True):
            for part, (ax, label) in enumerate(zip(column, ("mean absolute error", "log-probability"), strict=True)):
                for style, name in zip(("o-", "x--", "s-"), methods, strict=True):
                    ax.plot(epsilons, [curves[size][name, e][part] for e in epsilons], style, label=name)
                ax.axhline(curves[size]["no noise"][part], color="gray", linestyle=":", label="no noise")
                ax.axhline(curves[size]["one mean"][part], color="gray", linestyle="-.", label="one mean")
                ax.set(xscale="log", xlabel="epsilon", ylabel=label, title=f"{size} x {size}")
            column[0].set_yscale("log")
            column[1].set_ylim(bottom=min(curves[size]["one mean"][1], -4) - 0.5)
        axes[0, 0].legend()
        figure.tight_layout()
        save(figure, options.picture)


NAMES = ("true rates", "no noise", "one mean")

if __name__ == "__main__":
    main()
