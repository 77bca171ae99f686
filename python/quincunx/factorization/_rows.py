"""Embeddings of rows, the laws of the components being given: coordinate ascent on each row by itself.

    q(embedding[k]) = Gamma(shape, rate),  shape = prior shape + sum_v E[y_v] g_vk / G_v,
    rate = prior rate + sum_v E components[k, v],  G_v = sum_k g_vk,
    g_vk = exp(E log embedding[k] + E log components[k, v]),

the sums over observed cells and E[y_v] that of the two-piece Poisson law at the rate G_v. A row starts from its own
total, and is done when it stands still, whatever the others do.
"""

import numpy as np

from quincunx import _core
from quincunx._types import Floats
from quincunx.factorization._data import Data
from quincunx.factorization._dispersion import Shapes

#: Rounds of iterations until no entry of a row moves by more than this, relative to the row's largest. Not tuned: rows
#: that move slowly end after 500 iterations, and a smaller tolerance takes more of them.
_ROUNDS, _ITERATIONS, _TOLERANCE = 50, 10, 1e-4
#: The shape of a gamma law so narrow that it stands for a known number: its mean and exp E log, whose logarithms are
#: 1 / (2 shape) apart, differ by less than a rounding.
_KNOWN = 1e15

#: Shapes and rates of gamma laws, or of their priors.
Laws = tuple[Floats, Floats]


def infer_rows(data: Data, components: Floats, prior: Laws, shapes: Shapes | None, threads: int) -> Floats:
    """Return the expected embedding of each row of the data; the prior is that of one row, or one number.

    Of overdispersed counts the shapes are told: one for all, or those of the columns.
    """
    rows, cols = len(data.values), components.shape[1]
    table = Data(
        data.values.reshape(rows, cols),
        data.alpha.reshape(rows, cols) if data.alpha.ndim else data.alpha,
        None if data.held_out is None else data.held_out.reshape(rows, cols),
    )
    known = np.ascontiguousarray(np.maximum(components.T, 1e-200))
    priors = [(prior[0].reshape(-1), prior[1].reshape(-1)), (np.ones(1), np.ones(1))]
    shape, rate = laws_of_rows(table, (np.full(known.shape, _KNOWN), _KNOWN / known), priors, shapes, threads=threads)
    return shape / rate


def laws_of_rows(
    table: Data,
    columns: Laws,
    priors: list[Laws],
    of_counts: Shapes | None = None,
    *,
    threads: int,
    start: Laws | None = None,
    rounds: int = _ROUNDS,
    tolerance: float = _TOLERANCE,
) -> Laws:
    """Return shapes and rates of the laws of each row's embedding, given those of the components (n_columns, width).

    Priors are those of rows and columns; that of rows is one number, of one row, or has an entry for each.
    """
    rows, width = len(table.values), columns[0].shape[1]
    own = [np.broadcast_to(part.reshape(-1, width) if part.size > 1 else part, (rows, width)) for part in priors[0]]
    if start is None:
        totals = np.maximum(np.where(table.observed, table.values, 0).sum(axis=1, dtype=np.float64), 1.0)
        exposure = (columns[0] / columns[1]).sum(axis=0)
        start = own[0] + totals[:, None] / width, own[1] + exposure
    shape, rate = (np.array(part) for part in start)
    before = shape / rate
    here = np.arange(rows)  # the rows that the ascent works on
    ascent = ascent_of_rows(table, columns, priors, of_counts, (shape, rate))
    for _ in range(rounds):
        ascent.settle(_ITERATIONS, threads)
        shape[here], rate[here] = ascent.factors()[0]
        now = shape[here] / rate[here]
        moving = np.abs(now - before[here]).max(axis=1) > tolerance * now.max(axis=1)
        before[here] = now
        if not moving.all():
            here = here[moving]
            if not len(here):
                break
            left = [(own[0][here], own[1][here]), priors[1]]
            ascent = ascent_of_rows(table.of_rows(here), columns, left, of_counts, (shape[here], rate[here]))
    return shape, rate


def flat_priors(priors: list[Laws]) -> list[Laws]:
    """Return priors as the core takes them, entry after entry."""
    return [(np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)) for a, b in priors]


def ascent_of_rows(
    table: Data, columns: Laws, priors: list[Laws], of_counts: Shapes | None, laws: Laws
) -> _core.CoordinateAscent:
    """Return an ascent over the rows of a table that goes on from given laws, those of the columns being fixed."""
    shape, width = laws[0].shape, columns[0].shape[1]
    a, b = (np.broadcast_to(part.reshape(-1, width) if part.size > 1 else part, shape) for part in priors[0])
    flat = flat_priors([(a, b), priors[1]])
    extents = [shape[0], len(columns[0])]
    ascent = _core.CoordinateAscent(table.counts, "cp", extents, width, flat, "collapsed", (0, 0), [False, True])
    if of_counts is not None:
        ascent.set_dispersion(of_counts)
    ascent.set_factors([laws, columns])
    return ascent


def row_prior(part: Floats, width: int) -> Floats:
    """Return the prior of a row to come: the number itself, what all rows share, or where they differ their mean."""
    if part.size == 1:
        return part
    table = part.reshape(-1, width)
    row: Floats = table[0] if (table == table[0]).all() else table.mean(axis=0)
    return row
