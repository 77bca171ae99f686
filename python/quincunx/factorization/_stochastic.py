"""Stochastic variational inference of a matrix: the laws of the components follow batches of rows.

Step t takes a batch B of the D rows, finds the laws of their embeddings given those of the components (`laws_of_rows`),
and moves the latter by a share rho of the way to where they would be if all rows were like these:

    shape[v, k] <- (1 - rho) shape[v, k] + rho (prior shape + D / b sum_{d in B} E[y_dvk]),
    rate[v, k] <- (1 - rho) rate[v, k] + rho (prior rate + D / b sum_{d in B} E embedding[d, k]),
    rho = (t + offset)^-decay,  t = 0, 1, ...

b being the mean number of rows in the batches of a pass, so that all rows weigh the same; the second sum over rows
whose cell v is observed; Dirichlet laws have no rates. E[y] is that of coordinate ascent, the noise summed out. So a
batch of all rows with rho = 1 is one iteration of coordinate ascent whose rows are at their optimum. Sources: M. D.
Hoffman, D. M. Blei, C. Wang and J. Paisley (2013), Stochastic variational inference, JMLR 14 (natural gradients, steps,
rho); for gamma laws of Poisson counts P. Gopalan, J. M. Hofman and D. M. Blei (2015), Scalable recommendation with
hierarchical Poisson factorization, UAI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._inference import Arrays, Report, Run, Schedule, Single
from quincunx._types import Floats
from quincunx.factorization._data import Data
from quincunx.factorization._parts import Parts
from quincunx.factorization._rows import Laws, ascent_of_rows, flat_priors, laws_of_rows

#: Rounds of ten iterations that the rows of a batch get at the most, and how still they are then. So fits end within
#: .01 nats a cell of coordinate ascent's, as `tests/factorization/test_stochastic.py` asks; more were not tried.
_ROUNDS, _TOLERANCE = 3, 1e-3


@dataclass(frozen=True)
class Batches:
    """How the rows are gone through.

    Attributes
    ----------
    size : int
        Rows of a batch, at the most: the rows at hand are divided as evenly as they can be.
    offset, decay : float
        Step t is ``(t + offset)**-decay`` of the way.
    total : int
        The rows that the data at hand are taken for a sample of.
    seen : int
        The rows that were seen, these included.
    """

    size: int
    offset: float
    decay: float
    total: int
    seen: int


class StochasticSampler(Single):
    """Passes over batches that continue a run; its state is ``shape_i``, ``rate_i``, and ``seen``: steps and rows.

    An iteration is a pass over all rows, in an order that the run's key and its number decide. What a pass is judged by
    is the mean of its batches' estimates of the bound, each at the laws that the batch found, scaled to all rows.
    """

    def __init__(
        self, data: Data, width: int, priors: list[Laws], batches: Batches, run: Run, schedule: Schedule
    ) -> None:
        self._data, self._width, self._of_factors, self._batches = data, width, priors, batches
        self._run, self._schedule = run, schedule
        self._threads = _check.threads(schedule.threads)

    @property
    def iteration(self) -> int:
        """Passes done."""
        return self._run.iteration

    def advance(self, steps: int, report: Report | None) -> bool:
        """Do a number of passes; say whether the tolerance was met. An interrupt leaves the last whole pass."""
        for done in range(steps):
            self._run = self._passed(report, done, steps)
            met = self._schedule.settled(self._run.step_statistics["elbo"])
            if met or not self.left:
                # The laws of rows are those that their last batch found; now they follow the components.
                self._run = replace(self._run, converged=met, state=self._run.state | self._rows_at_the_end())
                return met
        return False

    def statistics(self) -> dict[str, float | None]:
        """Return what a callback is told of the last pass."""
        return {"elbo": float(self._run.step_statistics["elbo"][-1])}

    def results(self) -> list[Run]:
        """Return the run as far as it came."""
        return [self._run]

    def _priors(self, rows: npt.NDArray[np.intp]) -> list[Laws]:
        """Return the priors of some rows, and of the columns."""
        of_rows, of_columns = self._of_factors
        shape, rate = (part if part.size == 1 else part.reshape(-1, self._width)[rows] for part in of_rows)
        return [(shape, rate), of_columns]

    def _rows_at_the_end(self) -> Arrays:
        state, found = self._run.state, []
        columns = state["shape_1"], state["rate_1"]
        for data, (first, last) in map(self._part, range(self._n_parts)):
            rows = np.arange(first, last)
            start = state["shape_0"][rows], state["rate_0"][rows]
            found.append(laws_of_rows(data, columns, self._priors(rows), threads=self._threads, start=start))
        return dict(zip(("shape_0", "rate_0"), map(np.concatenate, zip(*found, strict=True)), strict=True))

    @property
    def _n_parts(self) -> int:
        return len(self._data.paths) if isinstance(self._data, Parts) else 1

    def _part(self, i: int) -> tuple[Data, tuple[int, int]]:
        """Return rows that are in memory together, and which they are: all, or those of a file."""
        data = self._data
        return (
            (data.part(i, data.edges[i]), data.edges[i]) if isinstance(data, Parts) else (data, (0, len(data.values)))
        )

    def _in_batches(self, rng: np.random.Generator) -> Iterator[tuple[Data, npt.NDArray[np.intp]]]:
        """Yield batches and their rows, all rows once."""
        for part in rng.permutation(self._n_parts):
            data, (first, last) = self._part(int(part))
            order = rng.permutation(last - first)
            for rows in np.array_split(order, -(-len(order) // self._batches.size)):
                yield data.of_rows(np.sort(rows)), first + np.sort(rows)

    @property
    def _number(self) -> int:
        """Batches of a pass."""
        of_parts = self._data.rows if isinstance(self._data, Parts) else self._data.shape[:1]
        return sum(-(-rows // self._batches.size) for rows in of_parts)

    def _passed(self, report: Report | None, done: int, steps: int) -> Run:
        """Return the run after one more pass."""
        run, batches, number = self._run, self._batches, self._number
        t = int(run.state["seen"][0]) if "seen" in run.state else 0
        columns = (run.state["shape_1"], run.state["rate_1"]) if "shape_1" in run.state else None
        found = np.empty((2, self._data.shape[0], self._width))
        bounds = []
        rng = np.random.default_rng([*run.key, run.iteration])
        for place, (batch, rows) in enumerate(self._in_batches(rng)):
            priors = self._priors(rows)
            if columns is None:
                columns = self._first(batch, priors)
            laws = laws_of_rows(batch, columns, priors, threads=self._threads, rounds=_ROUNDS, tolerance=_TOLERANCE)
            scale, rho = batches.total * number / self._data.shape[0], (t + batches.offset) ** -batches.decay
            columns, bound = step(batch, columns, priors, laws, scale, rho, self._threads)
            bounds.append(bound)
            found[:, rows] = laws
            t += 1
            if report is not None:
                report(done * number + place + 1, steps * number)
        assert columns is not None
        state = {"shape_0": found[0], "rate_0": found[1], "shape_1": columns[0], "rate_1": columns[1]}
        state["seen"] = np.array([t, batches.seen])
        earlier = run.step_statistics.get("elbo", np.empty(0))
        statistics = {"elbo": np.append(earlier, np.mean(bounds))}
        return replace(run, iteration=run.iteration + 1, state=state, step_statistics=statistics)

    def _first(self, batch: Data, priors: list[Laws]) -> Laws:
        """Return the laws of the components that an ascent of the first batch would start from."""
        extents, flat, key = list(batch.shape), flat_priors(priors), self._run.key
        ascent = _core.CoordinateAscent(batch.counts, "cp", extents, self._width, flat, "collapsed", key)
        return ascent.factors()[1]


def step(
    batch: Data, columns: Laws, priors: list[Laws], laws: Laws, scale: float, rho: float, threads: int
) -> tuple[Laws, float]:
    """Return the laws of the components after a batch with given laws of its rows, and the bound's estimate before.

    The scale is the number of all rows over that of a batch in the mean.
    """
    ascent = ascent_of_rows(batch, columns, priors, None, laws)
    counts, exposures, bound = ascent.statistics(1, threads)
    estimate = scale * bound - ascent.divergence(1)
    shape, rate = columns
    shape = (1 - rho) * shape + rho * (_table(priors[1][0], shape) + scale * counts)
    if not priors[1][1].size:  # Dirichlet laws, whose rates are sums of shapes
        return (shape, np.broadcast_to(shape.sum(axis=0), shape.shape).copy()), estimate
    rate = (1 - rho) * rate + rho * (_table(priors[1][1], rate) + scale * exposures)
    return (shape, rate), estimate


def _table(part: Floats, like: Floats) -> Floats:
    """Return a part of the components' prior, one number or one for each entry, as it goes with a table of laws."""
    return part if part.size == 1 else part.reshape(like.shape)
