"""Embeddings of new rows, the components being known: coordinate ascent on each row by itself.

    q(embedding[k]) = Gamma(shape, rate),  shape = prior shape + sum_v E[y_v] g_vk / G_v,
    rate = prior rate + sum_v components[k, v],  g_vk = exp(E log embedding[k]) components[k, v],  G_v = sum_k g_vk,

the sums over observed cells and E[y_v] that of the two-piece Poisson law at the rate G_v. A row starts from its own
total, and is done when it stands still, whatever the others do.
"""

import numpy as np

from quincunx import _core
from quincunx.factorization._data import Data
from quincunx.factorization._layout import Floats

# Rounds of iterations until no entry of a row moves by more than this, relative to the row's largest.
_ROUNDS, _ITERATIONS, _TOLERANCE = 60, 10, 1e-6
#: The shape of a gamma law so narrow that it stands for a known number.
_KNOWN = 1e15


def infer_rows(data: Data, components: Floats, prior: tuple[Floats, Floats], threads: int) -> Floats:
    """Return the expected embedding of each row of the data; the prior is that of one row, or one number."""
    rows, (width, cols) = len(data.values), components.shape
    table = Data(
        data.values.reshape(rows, cols),
        data.alpha.reshape(rows, cols) if data.alpha.ndim else data.alpha,
        None if data.hidden is None else data.hidden.reshape(rows, cols),
    )
    shapes, rates = (np.broadcast_to(part, (rows, width)).copy() for part in prior)
    known = np.maximum(components.T, 1e-200)
    priors = [(shapes.reshape(-1), rates.reshape(-1)), (np.ones(1), np.ones(1))]
    ascent = _core.CoordinateAscent(table.counts, "cp", [rows, cols], width, priors, "collapsed", (0, 0), [False, True])
    totals = np.maximum(np.where(table.observed, table.values, 0).sum(axis=1, dtype=np.float64), 1.0)
    shape, rate = shapes + totals[:, None] / width, rates + known.sum(axis=0)
    ascent.set_factors([(shape, rate), (np.full(known.shape, _KNOWN), _KNOWN / known)])
    found: Floats = shape / rate
    before, moving = found.copy(), np.ones(rows, dtype=bool)
    for _ in range(_ROUNDS):
        ascent.run(_ITERATIONS, 0.0, threads)
        shape, rate = ascent.factors()[0]
        now = shape / rate
        found[moving] = now[moving]
        moving &= np.abs(now - before).max(axis=1) > _TOLERANCE * now.max(axis=1)
        if not moving.any():
            break
        before = now
    return found


def row_prior(part: Floats, rows: int, width: int) -> Floats:
    """Return the prior of a row to come: the number itself, what all rows share, or where they differ their mean."""
    if part.size == 1:
        return part
    table = part.reshape(rows, width)
    row: Floats = table[0] if (table == table[0]).all() else table.mean(axis=0)
    return row
