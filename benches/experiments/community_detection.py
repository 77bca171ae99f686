"""Communities in a network of private counts: our posterior beside a naive and a non-private one.

    python benches/experiments/community_detection.py [--quick] [--data FOLDER] [--picture FILE]

A tenth of the cells is held out. For C communities and each privacy level, a blockmodel is fitted to the counts
themselves (non-private), to the release as if it were the counts (naive: what is negative becomes 0), and to the
release with its noise in the model (private). Reconstruction error: mean |posterior mean rate - true count| over the
observed cells; held-out error: the same over those held out; and there the mean of ln p(true count | posterior mean
rate). Each fit has three chains, of which a single one may stay in a lesser mode. Two networks: one drawn from a
blockmodel, and the messages among 156 employees of Enron, read from `enron156_counts.csv.gz` in ../shared/data where
it is there.

Source: A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for count
models, and its appendix 1.1 (C = 5, 10, 20).
"""

import argparse
import csv
import gzip
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import poisson

from quincunx.distributions import TwoSidedGeometric
from quincunx.errors import ConvergenceWarning
from quincunx.factorization import PoissonBlockmodel

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
METHODS = ("non-private", "naive", "private")


def drawn_network(actors: int, communities: int, rng: np.random.Generator) -> Any:
    """Return counts of a blockmodel with assortative communities: heavy-tailed, a few counts per pair."""
    members = rng.gamma(0.3, 1.0, (actors, communities))
    between = rng.gamma(0.5, 0.2, (communities, communities)) + np.diag(rng.gamma(4.0, 1.0, communities))
    counts = rng.poisson(members @ between @ members.T)
    np.fill_diagonal(counts, 0)
    return counts


def enron(folder: Path) -> Any:
    """Return the messages between employees, or None where the file is not there."""
    source = folder / "enron156_counts.csv.gz"
    if not source.is_file():
        print(f"Enron is skipped: there is no {source}\n")
        return None
    with gzip.open(source, "rt") as lines:
        rows = [[int(x) for x in row] for row in csv.reader(lines) if row[0].isdigit()]
    sender, receiver, messages = np.array(rows).T
    first = min(sender.min(), receiver.min())
    actors = max(sender.max(), receiver.max()) - first + 1
    counts = np.zeros((actors, actors), dtype=np.int64)
    counts[sender - first, receiver - first] = messages
    return counts


def compare(
    name: str, counts: Any, communities: tuple[int, ...], levels: tuple[float, ...], sweeps: int
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2019)
    held_out = rng.random(counts.shape) < 0.1
    observed = ~held_out
    noises = {level: TwoSidedGeometric(epsilon_per_unit=level).sample(counts.shape, rng=rng) for level in levels}
    off = ~np.eye(len(counts), dtype=bool)
    print(f"{name}: {len(counts)} actors, mean count {counts[off].mean():.3f}, {(counts[off] > 0).mean():.1%} positive")
    print(f"{'C':>3} {'eps/N':>6} {'method':12} {'reconstruction':>14} {'held out':>9} {'ln p':>8} {'seconds':>8}")
    results = []
    for width in communities:
        for level in (None, *levels):
            for method in METHODS:
                if (method == "non-private") != (level is None):
                    continue
                thin = max(1, sweeps // 200)
                noise = {"non-private": "none", "naive": "naive", "private": "geometric"}[method]
                model = PoissonBlockmodel(
                    width,
                    prior_shape=0.1,
                    prior_rate=1.0,
                    noise=noise,
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
                errors = [model.heldout_error(counts, mask) for mask in (observed, held_out)]
                results.append({"C": width, "level": level, "method": method, "errors": errors})
                shown = "-" if level is None else f"{level:g}"
                cells = held_out & off
                mass = poisson.logpmf(counts[cells], model.rates_[cells]).mean()
                line = f"{width:3} {shown:>6} {method:12} {errors[0]:14.4f} {errors[1]:9.4f}"
                print(f"{line} {mass:8.3f} {taken:8.1f}", flush=True)
    print()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small network and few sweeps")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the Enron counts")
    parser.add_argument("--picture", default="community_detection.png", help="where the picture goes")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(0)
    if options.quick:
        found = {"drawn network": compare("drawn network", drawn_network(25, 3, rng), (3,), (2.0, 0.5), 100)}
    else:
        how = ((5, 10, 20), (3.0, 2.0, 1.0, 0.5), 1000)
        found = {"drawn network": compare("drawn network", drawn_network(100, 5, rng), *how)}
        messages = enron(options.data)
        if messages is not None:
            found["Enron"] = compare("Enron", messages, *how)
    draw_picture(Path(options.picture), found)


def draw_picture(target: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    widths = sorted({result["C"] for results in found.values() for result in results})
    figure, grid = pyplot.subplots(
        2 * len(found), len(widths), figsize=(4 * len(widths), 6 * len(found)), squeeze=False, layout="constrained"
    )
    for i, (name, results) in enumerate(found.items()):
        for j, width in enumerate(widths):
            for k, what in enumerate(("reconstruction error", "held-out error")):
                axes = grid[2 * i + k, j]
                for method, color in zip(METHODS, ("0.4", "tab:orange", "tab:blue"), strict=True):
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
    figure.savefig(target, dpi=120)
    print(f"picture: {target}")


if __name__ == "__main__":
    main()
