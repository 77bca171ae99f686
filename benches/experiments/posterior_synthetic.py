"""Errors of marginals of synthetic records: two selections of marginals beside independent columns, on real records.

Census records (Adult, 48842 of them, its 15 columns binned at declared edges to domains of 2 to 42 values) and sessions
of a news portal (Kosarak, 505217 of them, whether each of its 10 most visited pages is in one); made records where
the files are not there. The error of a marginal is its total variation distance, half the L1 distance of the tables of
shares; averaged over all marginals of one, two and three columns, and over the repeats: of a tree of pairs (MST), of
marginals selected round by round (AIM, of all pairs), and of independent columns whose one-way tables have
the whole budget; the first and last without noise, too, which is what the shape of the law and the draws leave.

    python benches/experiments/posterior_synthetic.py [--quick] [--repeats 5] [--data FOLDER]
"""

import argparse
import gzip
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA

from quincunx.posterior import synthesize

DELTA = 1e-9
EDGES = {
    0: np.arange(20, 90, 5),
    2: np.arange(50_000, 1_000_000, 50_000),
    4: np.arange(2, 17),
    10: np.array([1, 2000, 3000, 4000, 5000, 7000, 10_000, 20_000]),
    11: np.array([1, 1500, 1800, 2000, 2500]),
    12: np.arange(5, 100, 5),
}


def census(folder: Path) -> tuple[Any, list[int]]:
    """Codes of the census records, and how many values each column has."""
    rows = []
    for part in ("train", "test"):
        with gzip.open(folder / f"adult_{part}.csv.gz", "rt") as file:
            rows += [line.strip().rstrip(".").split(", ") for line in file if line.strip()]
    codes, sizes = [], []
    for place, column in enumerate(zip(*rows, strict=True)):
        if place in EDGES:
            codes.append(np.digitize(np.array(column, dtype=float), EDGES[place]))
            sizes.append(len(EDGES[place]) + 1)
        else:
            labels = {label: code for code, label in enumerate(sorted(set(column)))}  # those of the documentation
            codes.append(np.array([labels[label] for label in column]))
            sizes.append(len(labels))
    return np.stack(codes, axis=1), sizes


def sessions(folder: Path, pages: int = 10) -> tuple[Any, list[int]]:
    """Whether each of the most visited pages is in a session."""
    with gzip.open(folder / "kosarak_5_25_item_counts.csv.gz", "rt") as file:
        items = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=pages, dtype=np.int64)[:, 0]
    place = {str(item): number for number, item in enumerate(items)}
    with gzip.open(folder / "kosarak_5_25.txt.gz", "rt") as file:
        lines = [{place[item] for item in line.split() if item in place} for line in file]
    records = np.zeros((len(lines), pages), dtype=np.int64)
    for row, found in enumerate(lines):
        records[row, list(found)] = 1
    return records, [2] * pages


def made(records: int = 20_000) -> tuple[Any, list[int]]:
    """Records of a chain of columns."""
    rng, sizes = np.random.default_rng(0), [4, 6, 3, 8, 2, 5]
    found = np.zeros((records, len(sizes)), dtype=np.int64)
    for place, size in enumerate(sizes):
        keep = rng.random(records) < (0.8 if place else 0.0)
        found[:, place] = np.where(keep, found[:, place - 1] % size, rng.integers(0, size, records))
    return found, sizes


def error(data: Any, found: Any, sizes: list[int], columns: int) -> float:
    """Mean total variation distance of the marginals of so many columns."""
    distances = []
    for chosen in itertools.combinations(range(len(sizes)), columns):
        shape = [sizes[i] for i in chosen]
        one, two = (
            np.bincount(np.ravel_multi_index(part[:, chosen].T, shape), minlength=int(np.prod(shape))) / len(part)
            for part in (data, found)
        )
        distances.append(np.abs(one - two).sum() / 2)
    return float(np.mean(distances))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="made records and one repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the records")
    options = parser.parse_args()
    tables = {}
    for name, read, file in (
        ("Adult", census, "adult_train.csv.gz"),
        ("Kosarak, 10 pages", sessions, "kosarak_5_25.txt.gz"),
    ):
        if not options.quick and (options.data / file).exists():
            tables[name] = read(options.data)
        elif not options.quick:
            print(f"{name} is skipped: there is no {options.data / file}")
    tables = tables or {"made records": made()}
    repeats = 1 if options.quick else options.repeats
    epsilons = [1.0] if options.quick else options.epsilons
    for name, (data, sizes) in tables.items():
        domain = dict(enumerate(sizes))
        print(f"{name}: {len(data)} records of {len(sizes)} columns; delta {DELTA:g} where epsilon has none")
        print(f"{'epsilon':>16} {'law':>8} {'seconds':>8}   errors of 1, 2 and 3 columns")
        levels = [*((epsilon, DELTA) for epsilon in epsilons), (epsilons[-1], 0.0), (1e6, 0.0)]
        for epsilon, delta in levels:
            kinds = [("tree", "mst", None), ("none", "mst", [])]
            if delta and epsilon < 1e6:
                kinds.insert(1, ("rounds", "aim", None))
            for kind, mechanism, workload in kinds:
                errors, start = [], time.process_time()
                for seed in range(repeats):
                    law = synthesize(
                        data, epsilon, delta, domain=domain, mechanism=mechanism, workload=workload, insecure_seed=seed
                    )
                    drawn = law.sample(rng=seed).to_numpy()
                    errors.append([error(data, drawn, sizes, columns) for columns in (1, 2, 3)])
                seconds = (time.process_time() - start) / repeats
                label = "no noise" if epsilon == 1e6 else f"{epsilon:g}" + ("" if delta else ", pure")
                numbers = " ".join(f"{value:.4f}" for value in np.mean(errors, axis=0))
                print(f"{label:>16} {kind:>8} {seconds:8.1f}   {numbers}", flush=True)


if __name__ == "__main__":
    main()
