"""Communities in a network of private counts: our posteriors beside a naive and a non-private one.

    python benches/experiments/community_detection.py [--quick] [--only TEXT] [--communities C ...] [--levels L ...]
        [--picture FILE]

A tenth of the cells is held out. For C communities and each privacy level, a blockmodel is fitted to the counts
themselves (non-private), to the release as if it were the counts (naive: what is negative becomes 0), and to the
release with its noise in the model, counts being Poisson (private) or negative binomial (overdispersed).
Reconstruction error, as in the paper: mean |posterior mean rate - true count| over the observed cells; held-out error:
the same over those held out. A mean absolute error rewards rates that are too small where most counts are zero. So
beside it: root mean square of expected count - true count over the observed cells, and their sum over the true one
(expected counts of the first two models are the values that they were given); in the cells held out the mean of
ln E p(true count | draw). A second table has the observed cells by their true counts: the sums of the release and of
what each model expects. Each fit has three chains, of which a single one may stay in a lesser mode. Three networks:
one drawn from a blockmodel, and the messages among 156 employees of Enron and among 184 addresses there, read from
`enron156_counts.csv.gz` and `enron184_counts.csv.gz` in the folder of QUINCUNX_DATA where they are there.

Source: A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for count
models, and its appendix 1.1 (C = 5, 10, 20).
"""

import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, counted, plotting, save

from quincunx.datasets import make_network
from quincunx.distributions import TwoSidedGeometric
from quincunx.factorization import PoissonBlockmodel

SIZES = (0, 1, 3, 10, 50)
METHODS = ("non-private", "naive", "private", "overdispersed")


def enron(folder: Path, actors: int) -> Any:
    """Return the messages between so many of them, or None where the file is not there."""
    source = folder / f"enron{actors}_counts.csv.gz"
    if (columns := counted(source, f"Enron {actors}")) is None:
        return None
    sender, receiver, messages = columns
    first = min(sender.min(), receiver.min())
    counts = np.zeros((actors, actors), dtype=np.int64)
    counts[sender - first, receiver - first] = messages
    np.fill_diagonal(counts, 0)  # messages to oneself
    return counts


def compare(
    name: str, counts: Any, communities: tuple[int, ...], levels: tuple[float, ...], sweeps: int
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2019)
    held_out = rng.random(counts.shape) < 0.1
    noises = {level: TwoSidedGeometric(epsilon_per_unit=level).sample(counts.shape, rng=rng) for level in levels}
    off = ~np.eye(len(counts), dtype=bool)
    print(f"{name}: {len(counts)} actors, mean count {counts[off].mean():.3f}, {(counts[off] > 0).mean():.1%} positive")
    observed, held = ~held_out & off, held_out & off
    heads = f"{'reconstruction':>14} {'held out':>9} {'RMSE':>7} {'total':>6} {'ln p':>8} {'seconds':>8}"
    print(f"{'C':>3} {'eps/N':>6} {'method':13} {heads}")
    results: list[dict[str, Any]] = []
    for width in communities:
        for level in (None, *levels):
            for method in METHODS:
                if (method == "non-private") != (level is None):
                    continue
                thin = max(1, sweeps // 200)
                model = PoissonBlockmodel(
                    width,
                    prior_shape=0.1,
                    prior_rate=1.0,
                    likelihood="negative_binomial" if method == "overdispersed" else "poisson",
                    noise={"non-private": "none", "naive": "naive"}.get(method, "geometric"),
                    n_warmup=sweeps // 2,
                    n_draws=sweeps // 2 // thin,
                    thin=thin,
                    n_chains=3,
                    random_state=3,
                )
                start = time.perf_counter()
                if level is None:
                    model.fit(counts, mask=held_out)
                elif method == "naive":
                    model.fit(counts + noises[level], mask=held_out)
                else:
                    model.fit(counts + noises[level], alpha=np.exp(-level), mask=held_out)
                taken = time.perf_counter() - start
                errors = [model.heldout_error(counts, mask) for mask in (observed, held)]
                expected = model.expected_counts_[observed]
                result = {"C": width, "level": level, "method": method, "errors": errors, "expected": expected}
                results.append(result)
                spread = np.sqrt(((expected - counts[observed]) ** 2).mean())
                total = expected.sum() / counts[observed].sum()
                shown = "-" if level is None else f"{level:g}"
                line = f"{width:3} {shown:>6} {method:13} {errors[0]:14.4f} {errors[1]:9.4f} {spread:7.3f} {total:6.3f}"
                print(f"{line} {model.heldout_log_probability(counts):8.3f} {taken:8.1f}", flush=True)
    print()
    for width in communities:
        for level in levels:
            of_models = {r["method"]: r["expected"] for r in results if (r["C"], r["level"]) == (width, level)}
            print(f"Counts of {name} by size of the true count, C = {width}, eps/N = {level:g}")
            print_sizes(counts[observed], {"release": (counts + noises[level])[observed], **of_models})
    return results


def print_sizes(true: Any, estimates: dict[str, Any]) -> None:
    """Print sums of true counts and of their estimates by size of the true count, and the estimates' errors."""
    print(f"| true count | cells | true | {' | '.join(estimates)} |")
    print("|---" * (3 + len(estimates)) + "|")
    rows = [f"{first} to {end - 1}" for first, end in pairwise(SIZES)] + [f"{SIZES[-1]} and more"]
    sizes = np.digitize(true, SIZES) - 1
    for size, label in enumerate([*rows, "all"]):
        chosen = (sizes == size) | (label == "all")
        sums = [f"{estimate[chosen].sum():.0f}" for estimate in (true, *estimates.values())]
        print(f"| {label.removesuffix(' to 0')} | {chosen.sum()} | {' | '.join(sums)} |")
    for label, error in (("RMSE", lambda d: np.sqrt((d**2).mean())), ("MAE", lambda d: abs(d).mean())):
        print(f"| {label} | | | {' | '.join(f'{error(e - true):.3f}' for e in estimates.values())} |")
    print()


def main() -> None:
    parser = arguments(__doc__, quick="a small network and few sweeps", data="Enron counts")
    parser.add_argument("--only", default="", metavar="TEXT", help="networks whose name contains this")
    parser.add_argument("--communities", type=int, nargs="+", default=[5, 10, 20], metavar="C", help="numbers of them")
    levels = [3.0, 2.0, 1.0, 0.5]
    parser.add_argument("--levels", type=float, nargs="+", default=levels, metavar="L", help="epsilons per count")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # short chains, and models that do not fit
    rng = np.random.default_rng(0)
    if options.quick:
        found = {"drawn network": compare("drawn network", make_network(25, 3, rng=rng).counts, (3,), (2.0, 0.5), 100)}
    else:
        how = (tuple(options.communities), tuple(options.levels), 1000)
        networks = {
            "drawn network": make_network(100, 5, rng=rng).counts,
            **{f"Enron {n}": enron(options.data, n) for n in (156, 184)},
        }
        found = {
            name: compare(name, counts, *how)
            for name, counts in networks.items()
            if counts is not None and options.only in name
        }
    if options.picture:
        draw_picture(options.picture, found)


def draw_picture(target: str, found: dict[str, list[dict[str, Any]]]) -> None:
    if (pyplot := plotting()) is None:
        return
    widths = sorted({result["C"] for results in found.values() for result in results})
    figure, grid = pyplot.subplots(
        2 * len(found), len(widths), figsize=(4 * len(widths), 6 * len(found)), squeeze=False, layout="constrained"
    )
    for i, (name, results) in enumerate(found.items()):
        for j, width in enumerate(widths):
            for k, what in enumerate(("reconstruction error", "held-out error")):
                axes = grid[2 * i + k, j]
                for method, color in zip(METHODS, ("0.4", "tab:orange", "tab:blue", "tab:green"), strict=True):
                    mine = [r for r in results if r["C"] == width and r["method"] == method]
                    if method == "non-private":
                        axes.axhline(mine[0]["errors"][k], color=color, linestyle="--", label=method)
                    else:
                        levels, errors = [r["level"] for r in mine], [r["errors"][k] for r in mine]
                        axes.plot(levels, errors, "o-", color=color, label=method)
                axes.set(xlabel="epsilon / N (privacy grows to the right)", ylabel=what, title=f"{name}, C = {width}")
                axes.set_yscale("log")
                axes.invert_xaxis()
    grid[0, 0].legend()
    save(figure, target)


if __name__ == "__main__":
    main()
