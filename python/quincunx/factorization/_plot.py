"""Pictures of a fit: its components as bars, its chains as lines."""

from collections.abc import Hashable
from typing import TypeAlias

import numpy as np

from quincunx._optional import require, several_axes
from quincunx._types import Axes, SeveralAxes
from quincunx.factorization._misfit import PredictiveCheck
from quincunx.factorization._posterior import Posterior

#: What weighs most in a component: labels and shares.
Top: TypeAlias = list[tuple[Hashable, float]]


def _axes(ax: "SeveralAxes | None", number: int, size: tuple[float, float], cols: int) -> list[Axes]:
    """Return the axes to draw on, those of the user or new ones."""
    if ax is None:
        cols = min(cols, number)
        rows = -(-number // cols)
        figure = (size[0] * cols, size[1] * rows)
        grid = (
            require("matplotlib.pyplot", "plot")
            .subplots(rows, cols, figsize=figure, squeeze=False, layout="constrained")[1]
            .ravel()
        )
        for spare in grid[number:]:
            spare.set_axis_off()
        return list(grid[:number])
    return several_axes(ax, number, f"hold {number} axes")


def plot_components(tops: list[Top], ax: "SeveralAxes | None") -> list[Axes]:
    """Draw for each component the shares of what weighs most in it."""
    length = max(len(top) for top in tops)
    axes = _axes(ax, len(tops), (3.0, 0.6 + 0.22 * length), 4)
    for k, (axis, top) in enumerate(zip(axes, tops, strict=True)):
        axis.barh(range(len(top)), [share for _, share in top], color=f"C{k % 10}")
        axis.set_yticks(range(len(top)), [str(label) for label, _ in top], parse_math=False)
        axis.invert_yaxis()
        axis.set_title(f"component {k}")
        axis.set_xlabel("share")
    return axes


def plot_predictive_check(check: PredictiveCheck, ax: "SeveralAxes | None") -> list[Axes]:
    """Draw the statistics of releases drawn anew, and where that of the release lies."""
    axes = _axes(ax, len(check.observed), (3.0, 2.5), 4)
    for axis, (name, drawn) in zip(axes, check.replicated.items(), strict=True):
        axis.hist(drawn, bins=30, color="C0")
        axis.axvline(check.observed[name], color="C1")
        axis.set_title(f"p = {check.p_values[name]:.3g}")
        axis.set_xlabel(name)
    return axes


def plot_trace(posterior: Posterior, ax: "SeveralAxes | None") -> list[Axes]:
    """Draw what does not depend on labels, sweep by sweep."""
    if not posterior.sampled:
        (axis,) = axes = _axes(ax, 1, (6.0, 3.0), 1)
        for run in posterior.with_draws:
            axis.plot(np.arange(1, len(run.elbo) + 1), run.elbo)
        axis.set_xlabel("iteration")
        axis.set_ylabel("bound in nats")
        return axes
    axes = _axes(ax, 2, (6.0, 3.0), 2)
    for chain, run in enumerate(posterior.with_draws):
        axes[0].plot(np.arange(1, len(run.total_rate) + 1), run.total_rate, linewidth=0.8, label=f"chain {chain}")
        axes[1].plot(run.kept, run.log_likelihood, linewidth=0.8, label=f"chain {chain}")
    for axis, name in zip(axes, ("total rate", "log-likelihood in nats"), strict=True):
        axis.set_xlabel("sweep")
        axis.set_ylabel(name)
    if len(posterior.with_draws) > 1:
        axes[0].legend()
    return axes
