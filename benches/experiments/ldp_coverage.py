"""Coverage of central posterior intervals: the figures 1 (normal), 11 (exponential) and 10 (histogram) of the paper.

Parameters come from the priors, users and noise from the model; an interval of level p must hold the truth in a share p
of the repeats, at every epsilon. Figure 1: N = 5000, bounds -5 and 5, mu ~ N(0, 2), sigma ~ Gamma(2, 1); figure 11:
N = 1000, bound 5, rate ~ Gamma(2, 2); figure 10: N = 1000, 6 categories, Dirichlet(1), unary encoding.
Run: python benches/experiments/ldp_coverage.py [--only "figure 1"] [--repeats 500] [--picture coverage.png]
"""

import warnings

import numpy as np
from common import arguments, plotting, save
from scipy import stats

from quincunx import ldp
from quincunx.ldp.priors import Gamma, Normal
from quincunx.privacy import LaplaceMechanism, UnaryEncoding

LEVELS = (0.5, 0.7, 0.9, 0.95)


def models(epsilon):
    """The figure, its model and its number of users."""
    priors = {"mu": Normal(0, 2), "sigma": Gamma(2, 1)}
    few = {"n_chains": 1, "n_draws": 1}
    yield "figure 1", ldp.GaussianModel(LaplaceMechanism(epsilon, -5, 5), priors=priors, **few), 5000
    yield "figure 11", ldp.ExponentialModel(LaplaceMechanism(epsilon, 0, 5), **few), 1000
    yield "figure 10", ldp.HistogramModel(UnaryEncoding(epsilon, 6), n_chains=1, n_warmup=300, n_draws=600), 1000


def run(repeats, epsilons, seed=0, only=None):
    """Rows of (figure, epsilon, parameter, shares covered, within binomial bounds at 1e-6), of one figure or of all."""
    rows = []
    for epsilon in epsilons:
        for figure, model, n in models(epsilon):
            if only not in (None, figure):
                continue
            found = ldp.calibration(model, n_repeats=repeats, n=n, levels=LEVELS, rng=seed)
            for name, shares in found.coverage.items():
                pairs = zip(shares, LEVELS, strict=True)
                tails = [stats.binomtest(round(s * repeats), repeats, p).pvalue for s, p in pairs]
                rows.append((figure, epsilon, name, shares, min(tails) > 1e-6 and found.passed))
    return rows


def main():
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["figure 1", "figure 10", "figure 11"], help="one of the figures")
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1.0, 2.0, 4.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = run(options.repeats, options.epsilons, only=options.only)
    print(f"{'':<12}{'epsilon':>8} {'parameter':<12}" + "".join(f"{level:>8.0%}" for level in LEVELS))
    for figure, epsilon, name, shares, fine in rows:
        verdict = "" if fine else "   NOT CALIBRATED"
        print(f"{figure:<12}{epsilon:>8} {name:<12}" + "".join(f"{s:>8.3f}" for s in shares) + verdict)
    if options.picture and (pyplot := plotting()):
        figure, axes = pyplot.subplots()
        for level, column in zip(LEVELS, np.array([row[3] for row in rows]).T, strict=True):
            axes.plot([row[1] for row in rows], column, ".", label=f"{level:.0%}")
            axes.axhline(level, lw=0.5)
        axes.set(xscale="log", xlabel="epsilon", ylabel="share of intervals that hold the truth")
        axes.legend()
        save(figure, options.picture)


if __name__ == "__main__":
    main()
