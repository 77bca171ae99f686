"""Gibbs sampling beside variational inference on private topic models: time and error.

    python benches/experiments/topic_mcmc_vi.py [--quick | --full] [--data FOLDER] [--picture FILE]

A 1000 x 1000 matrix of counts of rank 50, drawn from the model, is released at eps / N = 1. Error: mean |posterior mean
rate - true rate| over all cells. The variational paper reports 7500 sweeps of the earlier program in 1.67 hours with an
error of 0.36, and its own scheme in 5 minutes with 0.52, on data of its own; those are quoted, not measured here.
`--full` runs 7500 sweeps, too; the default is 1000. Then the same on words in the subject lines of Enron's mails, by
sender (`enron156_sender_word_counts.csv.gz` in the folder of QUINCUNX_DATA), with a tenth of the cells held out:
mean |rate - count|, which nothing at all would win where most counts are zero, and mean ln p(count | rate), which not.

Source: A. Schofield, A. Schein, Z. S. Wu and H. Wallach (2018), A variational inference approach for locally private
inference of Poisson factorization models, appendix E.
"""

import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, counted, plotting, save
from scipy.stats import poisson

from quincunx.distributions import TwoSidedGeometric
from quincunx.errors import ConvergenceWarning
from quincunx.factorization import PoissonFactorization

VARIATIONAL = ("collapsed", "bessel-mean", "published")


def fits(rank: int, prior: dict[str, Any], sweeps: int, iterations: int) -> list[tuple[str, PoissonFactorization]]:
    """Return the fits to compare; the papers' sampler has a tenth of the sweeps, for its time per sweep."""
    thin = max(1, sweeps // 300)
    gibbs = {"n_warmup": 2 * sweeps // 3, "thin": thin, "n_draws": max(sweeps // 3 // thin, 1), "n_chains": 1}
    short = {"n_warmup": 2 * sweeps // 30, "thin": 1, "n_draws": max(sweeps // 30, 1), "n_chains": 1}
    made = [
        ("Gibbs, auto", PoissonFactorization(rank, random_state=4, **prior, **gibbs)),
        ("Gibbs, bessel", PoissonFactorization(rank, method="bessel", random_state=4, **prior, **short)),
    ]
    for method in VARIATIONAL:
        how = {"inference": "vi", "method": method, "max_iter": iterations, "n_chains": 1, "tol": 1e-6}
        made.append((f"variational, {method}", PoissonFactorization(rank, random_state=4, **prior, **how)))
    return made


def synthetic(size: int, rank: int, sweeps: int, iterations: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    shape, mean = 0.1, 0.49
    rate = shape * math.sqrt(rank / mean)
    theta, phi = rng.gamma(shape, 1 / rate, (size, rank)), rng.gamma(shape, 1 / rate, (rank, size))
    rates = theta @ phi
    released = rng.poisson(rates) + TwoSidedGeometric(epsilon_per_unit=1.0).sample(rates.shape, rng=rng)
    print(f"{size} x {size}, rank {rank}, mean rate {rates.mean():.3f}, eps / N = 1")
    print(f"{'method':24} {'iterations':>10} {'seconds':>8} {'ms each':>8} {'error':>7} {'total rate':>10}")
    found = []
    for name, model in fits(rank, {"prior_shape": shape, "prior_rate": rate}, sweeps, iterations):
        start = time.perf_counter()
        model.fit(released, alpha=math.exp(-1))
        taken = time.perf_counter() - start
        error = float(np.abs(model.rates_ - rates).mean())
        share = float(model.rates_.sum() / rates.sum())
        found.append({"name": name, "seconds": taken, "error": error, "share": share})
        each = 1e3 * taken / model.n_iter_
        print(f"{name:24} {model.n_iter_:10} {taken:8.1f} {each:8.1f} {error:7.4f} {share:10.1%}", flush=True)
    print(f"{'a mean for every cell':24} {'':10} {'':8} {'':8} {np.abs(rates.mean() - rates).mean():7.4f}")
    print(
        "published, other data: Gibbs 7500 sweeps, 6012 s, error 0.36; variational 100 iterations, 300 s, error 0.52\n"
    )
    return found


def enron(folder: Path) -> Any:
    """Return counts of words in the subject lines by sender, or None where the file is not there."""
    source = folder / "enron156_sender_word_counts.csv.gz"
    if (columns := counted(source, "Enron")) is None:
        return None
    sender, word, times = columns
    counts = np.zeros((sender.max() + 1, word.max() + 1), dtype=np.int64)
    counts[sender, word] = times
    return counts[counts.any(axis=1)][:, counts.any(axis=0)]


def words(counts: Any, rank: int, sweeps: int, iterations: int) -> None:
    rng = np.random.default_rng(3)
    held_out = rng.random(counts.shape) < 0.1
    released = counts + TwoSidedGeometric(epsilon_per_unit=1.0).sample(counts.shape, rng=rng)
    print(f"Enron, {counts.shape[0]} senders x {counts.shape[1]} words, mean count {counts.mean():.3f}, eps / N = 1")
    print(f"{'method':24} {'iterations':>10} {'seconds':>8} {'observed':>9} {'held out':>9} {'ln p held out':>14}")
    for name, model in fits(rank, {"prior_shape": 0.1, "prior_rate": 1.0}, sweeps, iterations):
        start = time.perf_counter()
        model.fit(released, alpha=math.exp(-1), mask=held_out)
        taken = time.perf_counter() - start
        errors = [model.heldout_error(counts, mask) for mask in (~held_out, held_out)]
        line = f"{name:24} {model.n_iter_:10} {taken:8.1f} {errors[0]:9.4f} {errors[1]:9.4f}"
        print(f"{line} {log_mass(counts, model.rates_, held_out):14.4f}", flush=True)
    for name, rate in (("zero everywhere", 0.0), ("a mean for every cell", counts[~held_out].mean())):
        errors = [np.abs(counts - rate)[cells].mean() for cells in (~held_out, held_out)]
        line = f"{name:24} {'':10} {'':8} {errors[0]:9.4f} {errors[1]:9.4f}"
        print(f"{line} {log_mass(counts, np.full(counts.shape, rate), held_out):14.4f}")
    print()


def log_mass(counts: Any, rates: Any, cells: Any) -> float:
    """Mean of ln p(count | rate) over some cells, at the posterior mean of the rate."""
    return float(poisson.logpmf(counts[cells], rates[cells]).mean())


def main() -> None:
    parser = arguments(__doc__, data="Enron counts")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a small matrix and few sweeps")
    size.add_argument("--full", action="store_true", help="as many sweeps as the paper")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.quick:
        found = synthetic(40, 4, 100, 20)
    else:
        found = synthetic(1000, 50, 7500 if options.full else 1000, 100)
        counts = enron(options.data)
        if counts is not None:
            words(counts, 20, 1000, 100)
    if options.picture:
        draw_picture(options.picture, found)


def draw_picture(target: str, found: list[dict[str, Any]]) -> None:
    if (pyplot := plotting()) is None:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for result in found:
        axes.semilogx(result["seconds"], result["error"], "o")
        axes.annotate(result["name"], (result["seconds"], result["error"]), textcoords="offset points", xytext=(6, 4))
    axes.set(xlabel="seconds", ylabel="mean |rate - true rate|", title="private topic model, eps / N = 1")
    axes.margins(x=0.3)
    save(figure, target)


if __name__ == "__main__":
    main()
