"""Embeddings of new rows, the components being known: coordinate ascent on each row by itself.

    q(embedding[k]) = Gamma(shape, rate),  shape = prior shape + sum_v E[y_v] g_vk / G_v,
    rate = prior rate + sum_v components[k, v],  g_vk = exp(E log embedding[k]) components[k, v],  G_v = sum_k g_vk,

the sums over observed cells and E[y_v] that of the two-piece Poisson law at the rate G_v. A row starts from its own
total, and is done when it stands still, whatever the others do.
"""

import numpy as np
import numpy.typing as npt

from quincunx import _core
from quincunx._inference import Floats
from quincunx.factorization._data import Data
from quincunx.factorization._dispersion import Shapes

# Rounds of iterations until no entry of a row moves by more than this, relative to the row's largest.
_ROUNDS, _ITERATIONS, _TOLERANCE = 50, 10, 1e-4
#: The shape of a gamma law so narrow that it stands for a known number.
_KNOWN = 1e15


def infer_rows(
    data: Data, components: Floats, prior: tuple[Floats, Floats], shapes: Shapes | None, threads: int
) -> Floats:
    """Return the expected embedding of each row of the data; the prior is that of one row, or one number.

    Of overdispersed counts the shapes are told: one for all, or those of the columns.
    """
    rows, (width, cols) = len(data.values), components.shape
    table = Data(
        data.values.reshape(rows, cols),
        data.alpha.reshape(rows, cols) if data.alpha.ndim else data.alpha,
        None if data.held_out is None else data.held_out.reshape(rows, cols),
    )
    known = np.ascontiguousarray(np.maximum(components.T, 1e-200))
    totals = np.maximum(np.where(table.observed, table.values, 0).sum(axis=1, dtype=np.float64), 1.0)
    shape = prior[0] + np.repeat(totals[:, None] / width, width, axis=1)
    rate = np.broadcast_to(prior[1] + known.sum(axis=0), (rows, width)).copy()
    found: Floats = shape / rate
    here = np.arange(rows)  # the rows that the ascent works on
    ascent = _ascent(table, known, prior, shapes, (shape, rate))
    for _ in range(_ROUNDS):
        ascent.run(_ITERATIONS, 0.0, threads)
        shape, rate = ascent.factors()[0]
        now = shape / rate
        moving = np.abs(now - found[here]).max(axis=1) > _TOLERANCE * now.max(axis=1)
        found[here] = now
        if not moving.all():
            here, shape, rate = here[moving], shape[moving], rate[moving]
            if not len(here):
                break
            ascent = _ascent(_rows_of(table, here), known, prior, shapes, (shape, rate))
    return found


def _ascent(
    table: Data,
    known: Floats,
    prior: tuple[Floats, Floats],
    of_counts: Shapes | None,
    laws: tuple[Floats, Floats],
) -> _core.CoordinateAscent:
    """Return an ascent over the rows of a table that goes on from given gamma laws."""
    shape, rate = laws
    shapes, rates = (np.broadcast_to(part, shape.shape).copy().reshape(-1) for part in prior)
    priors = [(shapes, rates), (np.ones(1), np.ones(1))]
    extents, width = [len(shape), len(known)], known.shape[1]
    ascent = _core.CoordinateAscent(table.counts, "cp", extents, width, priors, "collapsed", (0, 0), [False, True])
    if of_counts is not None:
        ascent.set_dispersion(of_counts)
    ascent.set_factors([(shape, rate), (np.full(known.shape, _KNOWN), _KNOWN / known)])
    return ascent


def _rows_of(table: Data, chosen: npt.NDArray[np.intp]) -> Data:
    return Data(
        table.values[chosen],
        table.alpha[chosen] if table.alpha.ndim else table.alpha,
        None if table.held_out is None else table.held_out[chosen],
    )


def row_prior(part: Floats, rows: int, width: int) -> Floats:
    """Return the prior of a row to come: the number itself, what all rows share, or where they differ their mean."""
    if part.size == 1:
        return part
    table = part.reshape(rows, width)
    row: Floats = table[0] if (table == table[0]).all() else table.mean(axis=0)
    return row
