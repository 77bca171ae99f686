"""Every figure and table of the five documents that the package follows, by one command.

    python benches/experiments/reproduce.py --list
    python benches/experiments/reproduce.py --into FOLDER [NAME ...] [--quick] [--data FOLDER]

A row of `ROWS` is a figure, a table or a number: what it shows, what is printed of it, where ours differs and why, and
how it is made. Names may have wildcards (``zhang-2017-*``). For each row a JSON file with what was found, the commit
and the day, and its pictures, go into the folder. Quick forms have few repeats or small data and take seconds; full
ones are those of the documents. ``--svg`` draws the pictures of the docs as small SVG texts, in forms that are as full
as minutes allow. Real data are read from ``--data`` or the folder that QUINCUNX_DATA names; where a file is not there,
the row runs on made data and says so. ``--page`` prints the page of the docs, ``--collect FOLDER`` the
results of full forms as lines of JSON: `reproduced.jsonl` beside this file has those that were made last.
"""

import argparse
import contextlib
import datetime
import difflib
import fnmatch
import html
import io
import itertools
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import quincunx
from quincunx import counting, lattices

HERE = Path(__file__).resolve().parent
GALLERY = HERE.parents[1] / "docs" / "gallery_src"
DOCUMENTS = {
    "schein-2018": "A. Schein et al. (2018), Locally private Bayesian inference for count models (workshop paper)",
    "schein-2019": "A. Schein et al. (2019), Locally private Bayesian inference for count models (supplement)",
    "schofield-2018": "A. Schofield et al. (2018), A variational inference approach for locally private inference",
    "kulkarni-2021": "T. Kulkarni et al. (2021), Locally differentially private Bayesian inference",
    "zhang-2017": "Z. Zhang (2017), Privacy in Bayesian networks and problems in lattice models (thesis)",
}


@dataclass
class Job:
    """One row being made: where its pictures go, which form ("quick", "full" or "svg"), where data lie."""

    name: str
    folder: Path
    form: str
    data: Path
    pictures: list[str] = field(default_factory=list)

    @property
    def quick(self) -> bool:
        return self.form == "quick"

    def picture(self, part: str = "") -> Path:
        """Return the path of a new picture."""
        path = self.folder / f"{self.name}{part}.{'svg' if self.form == 'svg' else 'png'}"
        self.pictures.append(path.name)
        return path


@dataclass(frozen=True)
class Row:
    """A figure, a table or a number of a document."""

    item: str
    what: str
    #: Returns what was found, as JSON has it, or is None where a row is not made, for the reason in `differs`.
    make: Callable[[Job], dict[str, Any]] | None
    printed: str = "a picture without numbers"
    differs: str = ""
    #: What a comparison comes to, in a few words.
    verdict: str = "as printed"
    #: Seconds of one core for the quick and the full form, measured once: half of the rows take a second at the most.
    cost: tuple[float, float] = (1, 1)
    #: Files of real data that the full form reads.
    data: tuple[str, ...] = ()


def script(
    name: str, full: str = "", quick: str = "--quick", svg: str | None = None, reads: bool = False
) -> Callable[[Job], dict[str, Any]]:
    """Return what runs an experiment of this folder, by form, and keeps the lines that it prints."""

    def make(job: Job) -> dict[str, Any]:
        arguments = shlex.split({"quick": quick, "full": full, "svg": full if svg is None else svg}[job.form])
        files = ["--picture", str(job.picture()), *(["--data", str(job.data)] if reads else [])]
        lines = _lines(HERE / f"{name}.py", arguments + files)
        return {"command": shlex.join([f"{name}.py", *arguments]), "lines": lines}

    return make


def coverage(figure: str, svg: str) -> Callable[[Job], dict[str, Any]]:
    """Return what runs the experiment of coverage for one figure, with these options in the pictures of the docs."""
    only = f"--only '{figure}'"
    return script("ldp_coverage", full=only, quick=f"{only} --repeats 10 --epsilons 1", svg=f"{only} {svg}")


def gallery(name: str, number: int = 1) -> Callable[[Job], dict[str, Any]]:
    """Return what runs an example of the gallery and keeps one of its pictures, and its lines."""

    def make(job: Job) -> dict[str, Any]:
        from matplotlib import pyplot

        pyplot.close("all")
        lines = _lines(next(GALLERY.rglob(f"{name}.py")), [])
        pyplot.figure(number).savefig(job.picture(), dpi=100)
        return {"lines": lines}

    return make


def _lines(path: Path, arguments: list[str]) -> list[str]:
    """Run a script in this process and return the lines it prints."""
    said, before = io.StringIO(), (sys.argv, sys.path)
    sys.argv, sys.path = [path.name, *arguments], [str(path.parent), *sys.path]
    try:
        with contextlib.redirect_stdout(said), warnings.catch_warnings(action="ignore"):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path = before
    return [line.rstrip() for line in said.getvalue().splitlines() if line.strip() and "picture:" not in line]


def _axes(rows: int, columns: int, size: tuple[float, float]) -> Any:
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def small_topics(job: Job) -> dict[str, Any]:
    """Twenty documents of twenty words and three topics, by variational inference: the panels a to e."""
    from quincunx.factorization import PoissonFactorization
    from quincunx.privacy import privatize

    rng = np.random.default_rng(18)
    theta, phi = rng.gamma(0.5, 2.0, (20, 3)), rng.gamma(0.5, 2.0, (3, 20))
    rates = theta @ phi
    counts = rng.poisson(rates)
    release = privatize(counts, epsilon=1.0, insecure_seed=18)  # made counts: nobody is protected
    errors = {}
    for method in ("published", "bessel-mean", "collapsed"):
        model = PoissonFactorization(
            3, prior_shape=0.5, prior_rate=0.5, inference="vi", method=method, max_iter=500, n_chains=3, random_state=1
        ).fit(release)
        errors[method] = float(np.abs(model.rates_ - rates).mean())
    figure, axes = _axes(1, 5, (15, 3.2))
    panels = {
        "a: true rates": rates,
        "b: true counts": counts,
        "c: released": release.values,
        "d: inferred rates": model.rates_,
        "e: |d - a|": np.abs(model.rates_ - rates),
    }
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        ax.imshow(values, cmap="viridis", vmin=0, vmax=rates.max())
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig(job.picture(), dpi=100)
    return {
        "mean rate": float(rates.mean()),
        "cells not zero": {
            "counts": int((counts != 0).sum()),
            "released": int((release.values != 0).sum()),
        },
        "mean absolute error of the rates": errors,
        "of one mean for all cells": float(np.abs(rates - rates.mean()).mean()),
    }


def bessel_triangle(job: Job) -> dict[str, Any]:
    """The triangle behind sqrt(a^2 + (v+1)^2) - sqrt(a^2 + v^2) < 1, and mean less mode of Bessel laws."""
    from quincunx.distributions import Bessel

    figure, axes = _axes(1, 2, (9, 3.6))
    a, v = 4.0, 2.0
    axes[0, 0].plot([0, a, a, 0], [0, 0, v, 0], "C0")
    axes[0, 0].plot([a, a, 0], [v, v + 1, 0], "C1")
    for x, y, words in ((a / 2, -0.25, "a"), (a + 0.1, v / 2, "v"), (a + 0.1, v + 0.5, "1")):
        axes[0, 0].text(x, y, words)
    axes[0, 0].set(aspect="equal", title="sides of the upper triangle")
    axes[0, 0].axis("off")
    arguments = np.linspace(0.01, 40, 400)
    largest = 0.0
    for order in (0, 1, 5, 20):
        gaps = np.array([float(law.mean()) - float(law.mode()) for law in (Bessel(order, x) for x in arguments)])
        largest = max(largest, float(np.abs(gaps).max()))
        axes[0, 1].plot(arguments, gaps, label=f"order {order}")
    axes[0, 1].set(title="mean less mode of Bessel laws", xlabel="argument", ylim=(-1.05, 1.05))
    axes[0, 1].legend()
    figure.savefig(job.picture(), dpi=100)
    sides = np.array([np.hypot(arguments, n + 1) - np.hypot(arguments, n) for n in (0, 1, 5, 20)])
    return {"largest |mean - mode|": largest, "largest difference of sides": float(sides.max())}


def section(boundary: str) -> Callable[[Job], dict[str, Any]]:
    """Return what draws the section of 3 x 4 octagons, on the torus with the edges that it identifies."""

    def make(job: Job) -> dict[str, Any]:
        figure, axes = _axes(1, 1, (5.5, 4.2))
        lattice = lattices.four_eight_eight(3, 4, boundary)
        lattices.draw(lattice, axes[0, 0], wrap_labels=True)
        figure.savefig(job.picture(), dpi=100)
        return {"vertices": lattice.num_vertices, "edges": lattice.num_edges}

    return make


# Figure 7.2's set, line by line.
COLUMNS_7_2 = "100010 0101 1010 001001 0010 0101 100110 0000 1111 000000 0100 0011 011000"


def printed_set(job: Job) -> dict[str, Any]:
    """The independent set of figure 7.2, from its vectors, and one of the largest."""
    lattice = lattices.four_eight_eight(3, 4)
    lines = columns(lattice)
    taken = "".join(COLUMNS_7_2.split())
    chosen = [v for v, bit in zip(itertools.chain(*lines), taken, strict=True) if bit == "1"]
    best = counting.independence_number(lattice)
    figure, axes = _axes(1, 2, (11, 4.2))
    for ax, members, title in zip(
        axes[0], (chosen, best.example), ("the set of figure 7.2", "one of the largest"), strict=True
    ):
        lattices.draw(lattice, ax, independent_set=members)  # which refuses what is not independent
        ax.set_title(f"{title}: {len(members)} of {lattice.num_vertices} vertices")
    figure.savefig(job.picture(), dpi=100)
    return {
        "vertices of the printed set": len(chosen),
        "independent": True,
        "largest sets have": len(best.example),
        "independent sets": counting.count_independent_sets(lattice),
    }


def columns(lattice: Any, axis: int = 1) -> list[list[int]]:
    """The vertices of a lattice line by line along an axis."""
    along, across = lattice.positions[:, axis].round(6), lattice.positions[:, 1 - axis]
    return [sorted(np.flatnonzero(along == at).tolist(), key=lambda v: across[v]) for at in np.unique(along)]


def thesis_table(boundary: str) -> Callable[[Job], dict[str, Any]]:
    """Return what counts the entries of a table of chapter 7 and compares them with those printed."""

    def make(job: Job) -> dict[str, Any]:
        table = counting.independent_set_table("4-8-8", 5 if job.quick else 9, boundary=boundary, compare="thesis")
        wrong = {f"{m}, {n}": [str(printed), str(table[m, n])] for (m, n), printed in sorted(table.wrong.items())}
        return {"compared": len(table.published), "wrong": len(wrong), "printed and right": wrong}

    return make


def triangulated_table(which: str) -> Callable[[Job], dict[str, Any]]:
    """Return what computes a table of chapter 8 and compares its entries with those printed."""

    def make(job: Job) -> dict[str, Any]:
        from quincunx.entropy import _tables

        printed, limit = (_tables.LIMITS, True) if which == "8.1" else (_tables.HUNDREDS, False)
        if job.quick:
            printed = "\n".join(printed.strip().splitlines()[:5])
        wrong = _tables.wrong_entries(printed, limit=limit)
        rows = _tables.printed(printed)
        told = {
            f"m = {m}, p = {p}": [rows[m - 1][_tables.PROBABILITIES.index(p)], f"{value:.14f}"]
            for (m, p), value in wrong.items()
        }
        return {"compared": sum(map(len, rows)), "wrong": len(wrong), "printed and right": told}

    return make


def summary_table(job: Job) -> dict[str, Any]:
    """The deviation of a cell in table 4.1, 16 features at epsilon 1: as printed, as mended, and as drawn."""
    from quincunx.posterior import DiscreteBayesNet

    d, repeats = 16, 10 if job.quick else 200
    network = DiscreteBayesNet([("y", i) for i in range(d)], dict.fromkeys(["y", *range(d)], 2))
    data = np.random.default_rng(41).integers(0, 2, (400, d + 1))
    true = [np.bincount(2 * data[:, 0] + data[:, 1 + i], minlength=4).reshape(2, 2) for i in range(d)]
    drawn = {}
    for mechanism in ("laplace", "fourier_l1", "fourier_linf"):
        fits = (network.fit_private(data, 1.0, mechanism, insecure_seed=seed) for seed in range(repeats))
        gaps = [np.asarray(fit.noisy_counts[i], dtype=float) - true[i] for fit in fits for i in range(d)]
        drawn[mechanism] = round(float(np.std(gaps)), 2)
    mended = {
        "laplace": np.sqrt(2) * 2 * d,
        "fourier_l1": np.sqrt(3) / 4 * 2 * np.sqrt(2) * 2 * d,
        "fourier_linf": np.sqrt(3) / 4 * 2 * np.sqrt((2 * d + 2) * (2 * d + 3) / 3),
    }
    return {
        "printed, counts and Fourier alike": round(float(np.sqrt(2) * 2 * (d + 1)), 2),
        "mended": {name: round(float(value), 2) for name, value in mended.items()},
        f"drawn, {repeats} releases": drawn,
    }


def cell_types(job: Job) -> dict[str, Any]:
    """The two ways to triangulate a cell."""
    figure, axes = _axes(1, 2, (5, 2.6))
    for ax, diagonal, title in zip(axes[0], (1, 0), ("with probability p", "with probability 1 - p"), strict=True):
        lattices.draw(lattices.triangulated_grid(1, 1, diagonals=[[diagonal]]), ax).margins(0.1)
        ax.set_title(title)
    figure.savefig(job.picture(), dpi=100)
    return {"types": 2}


def samples(m: int) -> Callable[[Job], dict[str, Any]]:
    """Return what draws all triangulations of a strip of m cells, with the number of independent sets of each."""

    def make(job: Job) -> dict[str, Any]:
        figure, axes = _axes(2 ** (m - 2), 4, (8, 1.6 * 2 ** (m - 2)))
        found = {}
        for ax, diagonals in zip(axes.flat, itertools.product((1, 0), repeat=m), strict=True):
            grid = lattices.triangulated_grid(m, 1, diagonals=np.array(diagonals)[:, None])
            lattices.draw(grid, ax).margins(0.1)
            sets = counting.count_independent_sets(grid)
            weight = "p" * sum(diagonals) + "q" * (m - sum(diagonals))
            ax.set_title(f"{weight}: {sets} sets", fontsize=8)
            found["".join(map(str, diagonals))] = sets
        figure.savefig(job.picture(), dpi=100)
        return {"samples": len(found), "independent sets": found}

    return make


def triple_step(job: Job) -> dict[str, Any]:
    """The matrices T_21, T_22, T_2 and B_2 of section 7.2."""
    free = lattices.four_eight_eight(2, 1)
    first, second, third = counting.transfer_matrices(free, columns(free)).matrices
    ring = lattices.four_eight_eight(1, 2, "cylinder")
    outer, *inner, last = columns(ring, 0)
    layers = [outer[1:] + outer[:1], *inner, last[1:] + last[:1]]
    a, b, c = counting.transfer_matrices(ring, layers).matrices
    return {
        "T_21": first.tolist(),
        "T_22": second.tolist(),
        "T_2": (first @ second @ third).tolist(),
        "B_2": (a @ b @ c).tolist(),
    }


def expected_matrix(job: Job) -> dict[str, Any]:
    """The four matrices of two triangulated cells and their mean at p = .3, of section 8.2."""
    found: dict[str, Any] = {}
    mean = np.zeros((5, 5))
    for diagonals in itertools.product((1, 0), repeat=2):
        grid = lattices.triangulated_grid(2, 1, diagonals=np.array(diagonals)[:, None])
        (matrix,) = counting.transfer_matrices(grid, columns(grid)).matrices
        found["".join(map(str, diagonals))] = matrix.tolist()
        mean += np.prod([0.3 if diagonal else 0.7 for diagonal in diagonals]) * matrix
    return {"samples": found, "mean": mean.round(12).tolist()}


def chebyshev_product(job: Job) -> dict[str, Any]:
    """The polynomial of order 2 on [-3, 3]; every quadratic term of figure 7 has b2 as a factor."""
    from numpy.polynomial import chebyshev

    nodes = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    b0, b1, b2 = chebyshev.cheb2poly(chebyshev.chebfit(nodes, 1 / (1 + np.exp(-3 * nodes)), 2))
    return {"b0": round(float(b0), 6), "b1": round(float(b1 / 3), 6), "b2": abs(round(float(b2 / 9), 12))}


def chebyshev_means(job: Job) -> dict[str, Any]:
    """Means of a sigmoid and of its polynomial over normal inputs in the unit ball, by dimension, 50 runs each."""
    rng = np.random.default_rng(6)
    slope = chebyshev_product(job)["b1"]
    dimensions, runs = range(1, 11), 10 if job.quick else 50
    of_means, at_inputs = [], []
    for d in dimensions:
        root, found = rng.normal(size=(d, d)), []
        for _ in range(runs):
            x = rng.normal(size=(1000, d)) @ root.T
            x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
            score = x @ rng.normal(size=d)
            gap = 1 / (1 + np.exp(-score)) - (0.5 + slope * score)
            found.append((abs(gap.mean()), np.abs(gap).mean()))
        means = np.mean(found, axis=0)
        of_means.append(round(float(means[0]), 5))
        at_inputs.append(round(float(means[1]), 5))
    figure, axes = _axes(1, 1, (6, 3.6))
    axes[0, 0].plot(dimensions, of_means, "o-", label="difference of the means, as in the paper")
    axes[0, 0].plot(dimensions, at_inputs, "s-", label="mean difference at each input")
    axes[0, 0].set(xlabel="dimension", ylabel="sigmoid and polynomial of order 2")
    axes[0, 0].legend()
    figure.savefig(job.picture(), dpi=100)
    return {"difference of means": of_means, "mean difference": at_inputs}


def priors(job: Job) -> dict[str, Any]:
    """What the docstring of each model says of its priors."""
    from quincunx import ldp

    found = {}
    for name in ("GaussianModel", "ExponentialModel", "HistogramModel", "LinearRegression", "LogisticRegression"):
        text = (getattr(ldp, name).__doc__ or "").splitlines()
        start = next(i for i, line in enumerate(text) if line.strip().startswith("priors :"))
        indent = len(text[start]) - len(text[start].lstrip())
        after = [len(line) - len(line.lstrip()) > indent or not line.strip() for line in text[start + 1 :]]
        end = start + 1 + after.index(False)
        found[name] = " ".join(line.strip() for line in text[start + 1 : end] if line.strip())
    return found


ENRON = ("enron156_counts.csv.gz", "enron184_counts.csv.gz")
ROWS: dict[str, Row] = {
    "schein-2019-figure-1": Row(
        "figure 1",
        "communities in networks of private counts, C = 5, 10, 20: reconstruction and held-out error against privacy",
        script("community_detection", svg="--quick", reads=True),
        differs="a network drawn from the model, and Enron's where its files are given; beside the three methods a "
        "fourth with overdispersed counts, and measures that zeros do not win",
        verdict="agrees on drawn networks; Enron's misfit",
        cost=(4, 3600),
        data=ENRON,
    ),
    "schein-2019-figure-2": Row(
        "figure 2",
        "Skellam laws and two-sided geometric laws",
        gallery("plot_skellam_geometric"),
        verdict="agrees",
    ),
    "schein-2018-figure-1": Row(
        "figure 1",
        "histograms of draws of 25 counts; divergence of the embedding by sweep, true components known",
        script("posterior_recovery"),
        differs="what the paper calls epsilon is the ratio alpha of the noise: its .1, .25, .5, .9 are losses of "
        "2.303, 1.386, .693, .105 per unit",
        verdict="agrees; epsilon means another thing",
        cost=(3, 67),
    ),
    "schein-2018-section-5": Row(
        "the comparison of section 5",
        "the local model beside private variational Bayes in the central model (VIPS), rank 5, by epsilon",
        script("central_local", svg="--sizes 100"),
        printed="left for the future",
        differs="both protect one unit of one count, the central model not from its curator; it has those of 5, 10, 20 "
        "and 40 rounds that come nearest to the true rates",
        verdict="the local model is nearer the true rates at these sizes",
        cost=(4, 300),
    ),
    "schofield-2018-proof-c": Row(
        "the figure in appendix C",
        "a triangle, for the distance of two hypotenuses",
        bessel_triangle,
        differs="beside it what it serves: mean and mode of a Bessel law differ by less than 1, for small means by all",
        verdict="agrees",
    ),
    "schofield-2018-figure-1": Row(
        "figure 1",
        "20 documents, 20 words, 3 topics: true rates, counts, release, inferred rates, errors",
        small_topics,
        printed="mean absolute error .507 of the rates",
        differs="the law of the example's parameters is not printed: the error is in their units, and ours is another",
        verdict="not comparable: units are not printed",
        cost=(1, 3),
    ),
    "schofield-2018-validation": Row(
        "appendix E",
        "Gibbs sampling and variational inference on 1000 x 1000 counts of rank 50",
        script("topic_mcmc_vi", full="--full", svg="--quick", reads=True),
        printed="Gibbs 7500 sweeps, 1.67 h, error .36; variational 100 iterations, 5 minutes, error .52",
        differs="the law of the parameters is not printed, and times are of another machine",
        verdict="not comparable: units are not printed",
        cost=(1, 1500),
        data=("enron156_sender_word_counts.csv.gz",),
    ),
    "kulkarni-2021-figure-1": Row(
        "figure 1",
        "coverage of posterior intervals of a normal law, N = 5000",
        coverage("figure 1", "--repeats 30"),
        differs="parameters are drawn from their priors anew in each repeat, where shares are exactly the levels",
        verdict="intervals hold their levels",
        cost=(2, 900),
    ),
    "kulkarni-2021-figure-2": Row(
        "figure 2",
        "ten pages of Kosarak: private and ordinary posteriors",
        script("ldp_kosarak", svg="--repeats 5", reads=True),
        differs="the 11000 clicks are not published: ours are drawn from the ten most visited pages with a fixed seed",
        verdict="nearer the ordinary posterior as epsilon grows",
        cost=(2, 400),
        data=("kosarak_5_25_item_counts.csv.gz",),
    ),
    "kulkarni-2021-figure-3": Row(
        "figure 3",
        "shares .7, .2, .1: error of posterior means and of projected estimates, trivial and mis-ordered answers",
        script("ldp_histogram", full="--epsilons 0.25 0.5", quick="--repeats 3 --epsilons 0.5 --sizes 100 300"),
        verdict="agrees",
        cost=(1, 4),
    ),
    "kulkarni-2021-figure-4": Row(
        "figure 4",
        "linear regression on wine: error against epsilon",
        script("ldp_regression", full="wine", quick="wine --quick --epsilons 1", svg="wine --repeats 10", reads=True),
        differs="preprocessing by a public tenth; beside the methods an answer that is the same for all, which the "
        "paper has not. In 30 repeats moments never beat it, LDP-SGD does from epsilon 4 on, by two standard errors. "
        "The noise of moments is added once per user, as the local model asks: sums of an input times the quality are "
        "at most 308 in size over 4678 users, and have noise of standard deviation 1197 at epsilon 1 and 193 at 8",
        verdict="moments do not learn up to epsilon 8, LDP-SGD from 4 on",
        cost=(3, 370),
        data=("winequality_red.csv.gz", "winequality_white.csv.gz"),
    ),
    "kulkarni-2021-figure-5": Row(
        "figure 5",
        "logistic regression on adult: area under the curve against epsilon",
        script("ldp_regression", full="adult", quick="adult --quick --epsilons 8", svg="adult --quick", reads=True),
        differs="preprocessing by a public tenth; the sigmoid is integrated, not replaced by a polynomial; beside "
        "the methods a constant, of area .5. In 30 repeats moments of all users have area .73 at epsilon .5 and .88 "
        "at 8, where no noise has .88; noisy inputs of 10,000 users .47, no better than the constant, to .86, "
        "LDP-SGD on the same .55 to .84. In the picture two repeats, whose noise for LDP-SGD was nearly the same, "
        "and 500 records for all methods but that of moments. LDP-SGD is uneven for want of records and repeats, not "
        "by its learning rate: with 500 records, over 30 repeats, its area is .52 (standard deviation .20) at "
        "epsilon .5 and .61 to .64 (.19 to .21) at 8 for all rates from .01 to 3, and .87 without the noise; with "
        "10,000, over 10 repeats, it is .51 to .55 (.19 to .20) at 1 and .78 to .82 (.06 to .14) at 8 "
        "(`ldp_regression.py adult --descent`)",
        verdict="moments come near what has no noise as epsilon grows, and learn from .5 on by two standard errors; "
        "LDP-SGD does from 1 on, noisy inputs from 2 on",
        cost=(11, 1500),
        data=("adult_train.csv.gz", "adult_test.csv.gz"),
    ),
    "kulkarni-2021-figure-6": Row(
        "figure 6",
        "a sigmoid and its polynomial of order 2 over normal inputs, by dimension",
        chebyshev_means,
        differs="differences of means vanish by symmetry; the mean difference at each input is drawn beside them",
        verdict="agrees, for a reason not told",
    ),
    "kulkarni-2021-figure-7": Row(
        "figure 7",
        "the polynomial of order 2 written out for three dimensions",
        chebyshev_product,
        printed="a formula with b0, b1, b2",
        differs="b2 is 0, for a sigmoid is odd about 1/2: of ten terms four are left",
        verdict="six of ten terms are 0",
    ),
    "kulkarni-2021-figure-8": Row(
        "figure 8",
        "priors of the models",
        priors,
        printed="families of laws; numbers for the regressions alone",
        differs="scales are half-normal: a normal law of signed scales has 2^d modes",
        verdict="other scales",
    ),
    "kulkarni-2021-figure-9": Row(
        "figure 9",
        "as figure 3, other privacy levels",
        script("ldp_histogram", full="--epsilons 1 2", quick="--repeats 3 --epsilons 1 --sizes 100 300"),
        verdict="agrees",
        cost=(1, 3),
    ),
    "kulkarni-2021-figure-10": Row(
        "figure 10",
        "coverage of posterior intervals of six shares, N = 1000",
        coverage("figure 10", "--repeats 30 --epsilons 0.25 1 4"),
        differs="as figure 1",
        verdict="intervals hold their levels",
        cost=(1, 1800),
    ),
    "kulkarni-2021-figure-11": Row(
        "figure 11",
        "coverage of posterior intervals of an exponential law, N = 1000",
        coverage("figure 11", "--repeats 60"),
        differs="as figure 1",
        verdict="intervals hold their levels",
        cost=(1, 4),
    ),
    "zhang-2017-table-4.1": Row(
        "table 4.1",
        "privacy and utility of the mechanisms of chapter 4",
        summary_table,
        printed="formulas",
        differs="noise on Fourier coefficients and on counts comes out alike, not exponentially apart",
        verdict="mended",
        cost=(1, 8),
    ),
    "zhang-2017-figure-4.1": Row(
        "figure 4.1",
        "accuracy of private naive Bayes against epsilon",
        script("posterior_naive_bayes", svg="--repeats 40 --sampler-repeats 5"),
        differs="the thesis's sampler spends 38.65 where it claims 3; trimmed right, it is below the noise on counts",
        verdict="wrong in print: more is spent",
        cost=(1, 900),
    ),
    "zhang-2017-figure-4.2": Row(
        "figure 4.2",
        "error of private linear regression against the prior's precision",
        script("posterior_regression"),
        differs="a synthetic census of the same shape: the microdata may not be passed on; epsilon is quadratic in W",
        verdict="the same shape, on made data",
        cost=(2, 13),
    ),
    "zhang-2017-figure-6.1": Row(
        "figure 6.1", "the honeycomb as a torus", gallery("plot_clique_insertion"), cost=(1, 2)
    ),
    "zhang-2017-figure-6.2": Row(
        "figure 6.2", "the 3-12-12 lattice with three boundaries", gallery("plot_clique_insertion", 2), cost=(2, 1)
    ),
    "zhang-2017-figure-6.3": Row(
        "figure 6.3", "the 3-6-24 lattice with three boundaries", gallery("plot_clique_insertion", 3), cost=(1, 1)
    ),
    "zhang-2017-figure-7.1": Row(
        "figure 7.1",
        "a section of the 4-8-8 lattice",
        section("free"),
        differs="its faces are octagons, not hexagons",
        verdict="as printed, other words",
    ),
    "zhang-2017-figure-7.2": Row(
        "figure 7.2", "an independent set of 3 x 4 octagons", printed_set, printed="the set as 13 vectors"
    ),
    "zhang-2017-figure-7.3": Row(
        "figure 7.3", "the section with the edges that are identified", section("torus"), cost=(1, 1)
    ),
    "zhang-2017-matrices-7.2": Row(
        "matrices of section 7.2",
        "transfer matrices T_21, T_22, T_2, B_2",
        triple_step,
        printed="four matrices",
        differs="nothing: all are as printed",
    ),
    "zhang-2017-table-7.1": Row(
        "table 7.1",
        "independent sets of 4-8-8 sections, free",
        thesis_table("free"),
        printed="57 numbers",
        differs="18 are wrong: floating point beyond 2^53",
        verdict="18 of 57 wrong in print",
    ),
    "zhang-2017-table-7.2": Row(
        "table 7.2",
        "independent sets of 4-8-8 sections, cylinder",
        thesis_table("cylinder"),
        printed="58 numbers",
        differs="22 are wrong, three of them by a digit lost or too many",
        verdict="22 of 58 wrong in print",
    ),
    "zhang-2017-table-7.3": Row(
        "table 7.3",
        "independent sets of 4-8-8 sections, torus",
        thesis_table("torus"),
        printed="62 numbers",
        differs="22 are wrong, some differently in the two halves of the table",
        verdict="22 of 62 wrong in print",
    ),
    "zhang-2017-figure-8.1": Row("figure 8.1", "the two ways to triangulate a cell", cell_types),
    "zhang-2017-figure-8.2": Row("figure 8.2", "all triangulations of two cells", samples(2)),
    "zhang-2017-figure-8.3": Row("figure 8.3", "all triangulations of three cells", samples(3)),
    "zhang-2017-matrices-8.2": Row(
        "matrices of section 8.2",
        "transfer matrices of two triangulated cells and their mean at p = .3",
        expected_matrix,
        printed="five matrices",
        differs="nothing, up to the direction in which rows are counted",
    ),
    "zhang-2017-table-8.1": Row(
        "table 8.1",
        "annealed entropy per cell of long grids",
        triangulated_table("8.1"),
        printed="33 numbers",
        differs="three are wrong, by one unit of the last digit",
        verdict="3 of 33 wrong in print",
        cost=(1, 2),
    ),
    "zhang-2017-table-8.2": Row(
        "table 8.2",
        "annealed entropy per cell of 100 columns",
        triangulated_table("8.2"),
        printed="33 numbers",
        differs="two are wrong, by one unit of the last digit",
        verdict="2 of 33 wrong in print",
    ),
    "zhang-2017-figure-8.4": Row(
        "figure 8.4",
        "annealed entropy against Shannon's",
        gallery("plot_triangulated_grids"),
        printed="strongly correlated, with lines of least squares",
        differs="nothing is linear: what the line leaves is drawn beside it",
        verdict="correlated, but not linear",
        cost=(2, 2),
    ),
}


def document_of(name: str) -> str:
    """Return the key of the document of a row."""
    return next(key for key in DOCUMENTS if name.startswith(key))


def chosen_rows(patterns: list[str]) -> list[str]:
    """Return the names that match, all without patterns."""
    found = []
    for pattern in patterns or ["*"]:
        matching = [name for name in ROWS if fnmatch.fnmatch(name, pattern)]
        if not matching:
            near = difflib.get_close_matches(pattern, ROWS, 1)
            raise SystemExit(
                f"no row is called {pattern!r}: " + (f"did you mean {near[0]!r}?" if near else "see --list")
            )
        found += [name for name in matching if name not in found]
    return found


def reproduce(name: str, folder: Path, *, form: str, data: Path) -> dict[str, Any]:
    """Make one row: its pictures and a JSON file in the folder, and return what the file has."""
    row = ROWS[name]
    assert row.make is not None
    missing = [file for file in row.data if not (data / file).is_file()]
    job = Job(name, folder, form, data)
    start, used = time.perf_counter(), time.process_time()
    found = row.make(job)
    if form == "svg":
        for picture in job.pictures:
            shrink(folder / picture, found.get("command", ""))
    result = {
        "name": name,
        "document": DOCUMENTS[document_of(name)],
        "item": row.item,
        "what": row.what,
        "printed": row.printed,
        "differs": row.differs,
        "form": form,
        "found": found,
        "pictures": job.pictures,
        "files that were not there": missing,
        "seconds": round(time.perf_counter() - start, 2),
        "seconds of processors": round(time.process_time() - used, 2),
        "version": quincunx.__version__,
        "commit": commit(),
        "day": datetime.date.today().isoformat(),
    }
    partial = folder / f".{name}.json"
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.replace(folder / f"{name}.json")
    return result


def shrink(picture: Path, command: str) -> None:
    """Make an SVG of matplotlib's smaller: short numbers, styles and names told once; its title is the command."""
    text = picture.read_text()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<\?xml.*?\?>|<!DOCTYPE.*?>", "", text, flags=re.DOTALL)
    text = re.sub(r"-?\d+\.\d\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
    used = set(re.findall(r"#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", text)
    for i, name in enumerate(sorted(set(re.findall(r' id="([^"]*)"', text)))):
        text = text.replace(f'"{name}"', f'"i{i}"').replace(f"#{name}", f"#i{i}")
    styles = sorted(set(re.findall(r'style="([^"]*)"', text)))
    for i, style in enumerate(styles):
        text = text.replace(f'style="{style}"', f'class="s{i}"')
    rules = "".join(f".s{i}{{{style.replace(': ', ':').replace('; ', ';')}}}" for i, style in enumerate(styles))
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text).replace("> <", "><").replace(" />", "/>").replace(' "', '"')
    while re.search(r"<g>(<[^g/][^>]*/>)?</g>|<defs></defs>", text):
        text = re.sub(r"<g>(<[^g/][^>]*/>)?</g>|<defs></defs>", r"\1", text)
    text = re.sub(r' ?([MLQCz]) ?(?=[^"<>]*"[^<>]*/>)', r"\1", text)
    joined = r'(<path d="[^"]*)"((?: clip-path="[^"]*")? class="s\d+"/>)<path d="([^"]*)"\2'
    while (shorter := re.sub(joined, r'\1\3"\2', text)) != text:
        text = shorter
    title = f"<title>{html.escape(command, quote=False)}</title><style>*{{stroke-linejoin:round}}{rules}</style>"
    picture.write_text(re.sub(r"(<svg[^>]*>)", lambda head: head[1] + title, text, count=1).strip() + "\n")


def collected(folder: Path) -> list[str]:
    """Return the results of full forms in a folder, a line of JSON for each, in the order of the rows."""
    files = [folder / f"{name}.json" for name in ROWS]
    results = [json.loads(file.read_text()) for file in files if file.is_file()]
    return [json.dumps(result) for result in results if result["form"] == "full"]


def commit() -> str | None:
    """Return the commit of this clone, with a plus where files differ from it, or None outside of one."""
    told = subprocess.run(
        ["git", "-C", str(HERE), "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or None


PAGE = """# Every figure and table, again

`benches/experiments/reproduce.py` makes the figures and tables of the five documents that the package follows:
pictures, and a JSON file for each with what was found, the commit and the day. This page is its table of rows, by
`--page`. Under each picture stand the verdict, what is printed, where ours differs, and the name for the command.

```console
$ python benches/experiments/reproduce.py --list
$ python benches/experiments/reproduce.py --into results --quick
$ python benches/experiments/reproduce.py --into results "zhang-2017-table-*"
```

Quick forms have few repeats or small data; times are seconds of processors, quick and full. `reproduced.jsonl`, beside
the script, keeps the results of full forms with their commit and day; times of full forms that are not in it are
estimates. The pictures here (`--svg`) are of full forms, or of forms of minutes, whose command stands below them. Real
data are read from the folder that `--data` or `QUINCUNX_DATA` names: a row whose files are not there runs on made data,
and its result says so. What is wrong in print has [a page](wrong-in-print.md) of its own.
"""
PICTURES = HERE.parents[1] / "docs" / "reproduced"


def page() -> str:
    """Return the page of the docs: a card for each row, by document."""
    results = {line["name"]: line for line in map(json.loads, (HERE / "reproduced.jsonl").read_text().splitlines())}
    lines = PAGE.splitlines()
    for key, title in DOCUMENTS.items():
        lines += ["", f"## {title}", "", "::::{grid} 1 1 2 2", ":gutter: 2", ":class-container: reproduced", ""]
        for name, row in ROWS.items():
            if document_of(name) == key:
                lines += card(name, row, results.get(name))
        lines.append("::::")
    return "\n".join(lines) + "\n"


def card(name: str, row: Row, kept: dict[str, Any] | None) -> list[str]:
    """Return the card of a row: its picture, verdict, command, times, and what a full form found."""
    lines = [f":::{{grid-item-card}} {row.item[0].upper()}{row.item[1:]}"]
    picture, command = PICTURES / f"{name}.svg", ""
    if picture.is_file():
        lines += [f":img-top: reproduced/{picture.name}", f":img-alt: {row.what}"]
        command = html.unescape(re.findall("<title>(.*?)</title>", picture.read_text())[0])
    verdict = row.verdict[0].upper() + row.verdict[1:]
    lines += [
        "",
        row.what,
        "",
        f"**{verdict}.** In print: {row.printed}." + (f" Ours: {row.differs}." * bool(row.differs)),
        "",
    ]
    if kept:
        lines += [
            f"```{{dropdown}} Found, commit {kept['commit']}",
            *("    " + line for line in told(kept["found"])),
            "```",
            "",
        ]
    links = [f"[picture](reproduced/{picture.name})"] * picture.is_file() + [f"by `{command}`"] * bool(command)
    costs = f"{row.cost[0]:g} s quick, {row.cost[1]:g} s full"
    return [*lines, f"`reproduce.py --into results {name}`: {'; '.join([costs, *links])}", ":::", ""]


def told(found: dict[str, Any]) -> list[str]:
    """Return the lines of a result."""
    if "lines" in found:
        return list(found["lines"]) or ["no numbers"]
    text = json.dumps(found, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda flat: re.sub(r"\s*\n\s*", " ", flat[0]), text).splitlines()[1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows, by name or with wildcards (default: all)")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where pictures and JSON files go")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--quick", action="store_true", help="few repeats, small data")
    forms.add_argument("--svg", action="store_true", help="the small pictures of the docs")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="real data (default: the folder of QUINCUNX_DATA)")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--collect", type=Path, metavar="FOLDER", help="print the results of full forms, one a line")
    parser.add_argument("--page", action="store_true", help="print the page of the docs")
    options = parser.parse_args()
    if options.page:
        print(page(), end="")
        return
    if options.collect:
        if not options.collect.is_dir():
            parser.error(f"--collect must name a folder of results, got {options.collect}")
        print("\n".join(collected(options.collect)))
        return
    names = chosen_rows(options.names)
    if options.list:
        for name in names:
            row = ROWS[name]
            print(f"{name:<26} {row.item}: {row.what}" + ("" if row.make else f" (not made: {row.differs})"))
        return
    if options.into is None:
        parser.error("--into must name the folder for pictures and JSON files")
    import matplotlib

    matplotlib.use("agg")
    if options.svg:
        matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "quincunx", "font.sans-serif": ["DejaVu Sans"]}
    try:
        options.into.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # of which there is a file, say
        parser.error(f"--into must name a folder that is there or can be made: {error}")
    data = options.data or Path(os.environ.get("QUINCUNX_DATA") or options.into / "no data")
    form = "quick" if options.quick else "svg" if options.svg else "full"
    for name in names:
        if ROWS[name].make is None:
            print(f"{name:<26} not made: {ROWS[name].differs}")
            continue
        result = reproduce(name, options.into, form=form, data=data)
        lost = result["files that were not there"]
        print(f"{name:<26} {result['seconds']:>8.1f} s" + (f"  without {', '.join(lost)}" if lost else ""), flush=True)


if __name__ == "__main__":
    main()
