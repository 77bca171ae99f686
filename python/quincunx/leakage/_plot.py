"""Pictures: a channel before and after averaging, and utility against the privacy level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _optional
from quincunx._docs import sections
from quincunx._optional import require
from quincunx.graphs._graph import GraphLike
from quincunx.leakage import _checks
from quincunx.leakage._bounds import utility_bound
from quincunx.leakage._channel import MOST_NAMES
from quincunx.leakage._mechanisms import optimal_mechanism
from quincunx.leakage._symmetrization import Symmetrization

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@sections
def plot_symmetrization(
    symmetrization: Symmetrization, ax: Sequence[Axes] | None = None, *, cmap: str = "viridis"
) -> Sequence[Axes]:
    """Draw a channel before and after averaging, inputs sorted by orbits.

    Lines separate the orbits of inputs, so that the average is seen to be made of blocks.

    Parameters
    ----------
    symmetrization : Symmetrization
        What `Channel.symmetrize` returned.
    ax : two matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.
    cmap : str
        Name of the color map.

    {several_axes}
    TypeError
        If `symmetrization` is not a Symmetrization.
    ValueError
        If `ax` is not two of them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from quincunx.graphs import path
    >>> from quincunx.leakage import geometric_channel, plot_symmetrization
    >>> axes = plot_symmetrization(geometric_channel(5, 0.5).symmetrize(path(5)))
    >>> [axis.get_title() for axis in axes]
    ['before', 'after']
    """
    if not isinstance(symmetrization, Symmetrization):
        raise TypeError(f"`symmetrization` must be a Symmetrization, got {type(symmetrization).__name__}")
    pyplot = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
    axes = _optional.several_axes(ax, 2, "be two axes")
    orbits = symmetrization.orbits
    order = np.argsort(orbits, kind="stable")
    square = symmetrization.trace is not None
    columns = order if square else np.arange(symmetrization.channel.n_outputs)
    ends = np.cumsum(np.bincount(orbits))[:-1] - 0.5
    largest = float(symmetrization.original.matrix.max())
    small: dict[str, Any] = {"fontsize": 8, "parse_math": False}
    for axis, channel, title in zip(
        axes, (symmetrization.original, symmetrization.channel), ("before", "after"), strict=True
    ):
        image = axis.imshow(channel.matrix[np.ix_(order, columns)], vmin=0, vmax=largest, cmap=cmap, aspect="auto")
        for end in ends:
            axis.axhline(end, color="white", linewidth=1.2)
            if square:
                axis.axvline(end, color="white", linewidth=1.2)
        if len(order) <= MOST_NAMES:
            axis.set_yticks(range(len(order)), [str(channel.inputs[x]) for x in order], **small)
            if square:
                axis.set_xticks(range(len(order)), [str(channel.outputs[x]) for x in order], **small)
        axis.set_title(title)
        axis.set_xlabel("output")
    axes[0].set_ylabel("input, by orbits")
    axes[1].figure.colorbar(image, ax=axes, label="probability")
    return axes


@sections
def plot_utility(
    graph: GraphLike, epsilons: npt.ArrayLike, prior: npt.ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the best utility on a graph against the privacy level, with its bound.

    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
    epsilons : array_like of float
        Privacy levels in nats.
    prior : array_like of float, shape (n,), optional
        Uniform if left out. The bound, which holds for the uniform prior, is drawn for that one only.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.

    {axes}
    TypeError, ValueError
        If an argument lies outside its domain.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from quincunx.graphs import path
    >>> from quincunx.leakage import plot_utility
    >>> ax = plot_utility(path(5), [0.1, 0.5, 1.0, 2.0])
    >>> [line.get_label() for line in ax.lines]
    ['best utility', 'bound of the weakest vertex']
    """
    graph = _checks.graph_on(graph)
    _check.fits(epsilons, "epsilons")
    asked = list(epsilons) if isinstance(epsilons, (list, tuple)) else np.atleast_1d(np.asarray(epsilons))
    levels = [_checks.level(epsilon, "epsilons") for epsilon in asked]
    best = [optimal_mechanism(graph, level, prior).utility for level in levels]
    ax = _optional.axes(ax)
    color, name = ("C0", "best utility") if prior is None else ("C2", "best utility for the prior")
    ax.plot(levels, best, color=color, label=name)
    if prior is None:
        bounds = [float(utility_bound(graph, level)) for level in levels]
        ax.plot(levels, bounds, color="C3", linestyle="--", label="bound of the weakest vertex")
    ax.set_xlabel("epsilon in nats")
    ax.set_ylabel("chance of a right guess")
    ax.legend()
    return ax
