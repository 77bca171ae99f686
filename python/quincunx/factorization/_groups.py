"""The groups of a DataTree that have an entry for each cell and draw: log-likelihoods, and releases drawn anew.

    log_likelihood[c, d, i] = log P(released[i] | rate[i] of draw d of chain c),  the counts before noise summed out
    posterior_predictive    = Poisson(rate) or negative binomial + two-sided geometric noise of the ratio of that cell

Cells that were held out have no likelihood. Where there are such, the axes of the cells become one, ``cell``, with the
coordinates of the cells beside it; loo and waic then leave out one released count at a time.
"""

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Array, Floats, Ints
from quincunx.errors import TooLargeError
from quincunx.factorization._chains import Problem

#: The draws of a run: for each factor an array (n_draws, *shape) as it lies in the core.
Tables = list[Floats]
#: A draw of all variables.
State = list[Floats]
#: The largest rate that counts are drawn at: what is drawn is an integer of 64 bits, noise and all.
_MOST = 2.0**62


def refuse_large(problem: Problem, runs: list[Tables], groups: int) -> None:
    """Refuse groups that would not fit into memory, with what each draw costs."""
    draws = sum(len(tables[0]) for tables in runs)
    needed, limit = 8 * problem.data.values.size * (draws * groups + 4), _check.available_memory()
    if needed > limit:
        raise TooLargeError(
            f"a number for each of {problem.data.values.size} cells and {draws} draws needs about {needed} bytes, "
            f"and {limit} are available: take fewer draws",
            needed,
            limit,
        )


def log_likelihood(problem: Problem, runs: list[Tables], threads: int) -> Floats:
    """Return the log-likelihood of each observed cell, of shape (chain, draw, *cells) or (chain, draw, cell)."""
    data, observed = problem.data, problem.data.observed.reshape(-1)
    number = min(len(tables[0]) for tables in runs)
    found = np.empty((len(runs), number, int(observed.sum())))
    for chain, tables in enumerate(runs):
        for draw in range(number):
            state = [table[draw] for table in tables]
            each = _core.log_likelihoods(data.counts, problem.rates(state, threads), threads, problem.shapes(state))
            found[chain, draw] = each if each.size == found.shape[2] else each[observed]
    return found if data.held_out is not None else found.reshape(len(runs), number, *data.shape)


def cell_labels(problem: Problem, coords: dict[str, Array]) -> dict[str, Array]:
    """Return where the observed cells lie, by the name of each axis."""
    places = np.nonzero(problem.data.observed)
    return {
        name: coords[name][place] if name in coords else place
        for name, place in zip(problem.layout.cells, places, strict=True)
    }


def predictive(problem: Problem, runs: list[Tables], keys: list[tuple[int, int]], threads: int) -> Ints:
    """Return a release drawn anew for each draw, of shape (chain, draw, *cells); by the key of each run."""
    number, shape = min(len(tables[0]) for tables in runs), problem.data.shape
    found = np.empty((len(runs), number, *shape), dtype=np.int64)
    for chain, (tables, key) in enumerate(zip(runs, keys, strict=True)):
        rng = stream(key)
        for draw in range(number):
            state = [table[draw] for table in tables]
            released = replicate(problem, state, problem.rates(state, threads), rng)
            found[chain, draw] = problem.layout.mirrored(released.reshape(shape))
    return found


def stream(key: tuple[int, int]) -> np.random.Generator:
    """Return the stream of random numbers that the releases of a run are drawn anew from."""
    return np.random.default_rng([*key, 0x70726564])  # "pred"


def replicate(
    problem: Problem, state: State, rates: Floats, rng: np.random.Generator, cells: npt.NDArray[np.intp] | None = None
) -> Ints:
    """Return a release drawn anew of all or some cells, which have these rates in a draw."""
    alpha = problem.data.alpha.reshape(-1)
    if cells is None:
        cells = np.arange(rates.size)
    elif alpha.size > 1:
        alpha = alpha[cells]
    if problem.dispersion is not None:
        dispersion = problem.dispersion_at(state, cells)
        rates = rates * (rng.standard_gamma(1 / dispersion) * dispersion)
    drawn = rng.poisson(np.minimum(rates, _MOST))
    if alpha.any():  # the difference of two geometric numbers
        each = np.broadcast_to(1 - alpha, drawn.shape)
        drawn = drawn + (rng.geometric(each) - rng.geometric(each))
    return drawn
