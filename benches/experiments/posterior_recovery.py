"""How well private posteriors find the true counts and factors: the figure of the 2018 workshop paper, with numbers.

    python benches/experiments/posterior_recovery.py [--quick] [--picture FILE]

Counts come from a matrix of rank 5 whose factors are Gamma(shape 0.25, scale 4), and are released at alpha = 0.1, 0.25,
0.5, 0.9 (the paper calls alpha "epsilon"; the privacy loss per unit is ln 1 / alpha). First, chains that know only the
release: draws of the true counts against the truth. Second, chains that also know the true components, so that labels
cannot switch: by how much a draw of the embedding differs from the truth, sweep by sweep. That knowledge is a prior of
shape 1e9, so narrow that the components stay where they are; it is a check of the sampler and protects nobody.

Source: A. Schein, Z. S. Wu, M. Zhou and H. Wallach (2018), Locally private Bayesian inference for count models,
appendix D.
"""

import time
import warnings
from typing import Any

import numpy as np
from common import arguments, plotting, save

from quincunx.distributions import TwoPiecePoisson, TwoSidedGeometric
from quincunx.errors import ConvergenceWarning
from quincunx.factorization import PoissonFactorization

ALPHAS = (0.1, 0.25, 0.5, 0.9)
SHAPE, RATE, RANK = 0.25, 0.25, 5
NARROW = 1e9


def divergence(truth: Any, found: Any) -> Any:
    """Mean KL divergence of Poisson counts with these rates, per entry, over the last two axes."""
    found = np.maximum(found, 1e-300)
    part = np.where(truth > 0, truth * np.log(np.maximum(truth, 1e-300) / found), 0.0)
    return (part - truth + found).mean(axis=(-2, -1))


def true_counts(model: PoissonFactorization, released: Any, alpha: float, rng: np.random.Generator) -> Any:
    """Return a draw of the counts for each kept draw of the factors: (draws, rows, columns)."""
    draws = model.draws_
    rates = np.einsum("tdk,tkv->tdv", draws["embedding"][0], draws["components"][0])
    return np.stack([TwoPiecePoisson(released=released, rate=rate, alpha=alpha).sample(rng=rng) for rate in rates])


def main() -> None:
    parser = arguments(__doc__, quick="a small matrix and few sweeps")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    size, sweeps = (20, 200) if options.quick else (100, 4000)
    rng = np.random.default_rng(2018)
    theta, phi = rng.gamma(SHAPE, 1 / RATE, (size, RANK)), rng.gamma(SHAPE, 1 / RATE, (RANK, size))
    counts = rng.poisson(theta @ phi)
    chosen = rng.choice(counts.size, 25, replace=False)
    thin = max(1, sweeps // 250)
    common = {"n_chains": 1, "random_state": 1}
    print(f"{size} x {size}, rank {RANK}, mean count {counts.mean():.2f}, {sweeps} sweeps")
    print(
        "counts: mean distance of release and of posterior mean to the truth; share of true counts within the central"
    )
    print("90 % of the draws; mean posterior probability of the true count")
    print(f"{'alpha':>6} {'loss':>6} {'release':>8} {'posterior':>9} {'inside':>7} {'P(true)':>8} {'seconds':>8}")
    histograms, traces = None, {}
    for alpha in ALPHAS:
        noise = TwoSidedGeometric(alpha=alpha).sample(counts.shape, rng=rng)
        released = counts + noise
        start = time.perf_counter()
        model = PoissonFactorization(
            RANK,
            prior_shape=SHAPE,
            prior_rate=RATE,
            n_warmup=sweeps // 4,
            n_draws=3 * sweeps // 4 // thin,
            thin=thin,
            **common,
        ).fit(released, alpha=alpha)
        taken = time.perf_counter() - start
        draws = true_counts(model, released, alpha, rng)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="inverted_cdf")
        print(
            f"{alpha:6g} {-np.log(alpha):6.3f} {np.abs(noise).mean():8.3f} "
            f"{np.abs(model.expected_counts_ - counts).mean():9.3f} {((low <= counts) & (counts <= high)).mean():7.1%} "
            f"{(draws == counts).mean():8.3f} {taken:8.1f}",
            flush=True,
        )
        if alpha == 0.5:
            histograms = draws.reshape(len(draws), -1)[:, chosen]
        known = PoissonFactorization(
            RANK,
            prior_shape=(SHAPE, NARROW),
            prior_rate=(RATE, NARROW / np.maximum(phi, 1e-200)),
            n_warmup=0,
            n_draws=sweeps,
            thin=1,
            **common,
        ).fit(released, alpha=alpha)
        traces[alpha] = divergence(theta, known.draws_["embedding"][0])
    marks = [mark for mark in (1, 3, 10, 30, 100, 300, 1000, 3000) if mark <= sweeps]
    print("\nembedding, true components known: KL divergence of a draw per entry, in nats, after so many sweeps")
    print(f"{'alpha':>6} " + "".join(f"{mark:>9}" for mark in marks) + f"{'last half':>11}")
    for alpha, trace in traces.items():
        ends = "".join(f"{trace[mark - 1]:9.4f}" for mark in marks)
        print(f"{alpha:6g} {ends}{trace[sweeps // 2 :].mean():11.4f}")
    if options.picture:
        print()
        draw_picture(options.picture, histograms, counts.ravel()[chosen], traces)


def draw_picture(target: str, histograms: Any, truth: Any, traces: dict[float, Any]) -> None:
    if (pyplot := plotting()) is None:
        return
    figure = pyplot.figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    left.suptitle("draws of 25 counts at alpha = 0.5, the truth in red")
    for axes, draws, true in zip(left.subplots(5, 5).flat, histograms.T, truth, strict=True):
        axes.hist(draws, bins=np.arange(draws.min(), draws.max() + 2) - 0.5, color="0.6")
        axes.axvline(true, color="red")
        axes.set_yticks([])
    axes = right.subplots()
    for alpha, trace in traces.items():
        axes.loglog(np.arange(1, len(trace) + 1), trace, label=f"alpha = {alpha:g}")
    axes.set(xlabel="sweep", ylabel="KL divergence to the true embedding, per entry (nats)")
    axes.legend()
    save(figure, target)


if __name__ == "__main__":
    main()
