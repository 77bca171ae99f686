"""The linear program of the best private channel, reduced by symmetry.

Maximize ``sum_x,w c[x, w] M[x, w]`` over channels M with ``M[h, w] <= exp(epsilon) M[l, w]`` for neighbors h, l. The
feasible set is convex and invariant, so if the objective is invariant under a group too, an optimum is constant on
orbits of pairs: one variable for each, one equation for each orbit of inputs, one inequality for each pair of orbits
that occur above each other at an edge.

The variables are scaled by what they are where the channel falls by exp(-epsilon) a step, but not below a floor: the
solver passes over coefficients below 1e-9 and errs by its tolerances in units of the scaled variables. A low floor
makes the values precise, a high one the multipliers, so programs are solved again while there is a gap between what
the values are worth and what the multipliers prove.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quincunx._types import Floats, Ints
from quincunx.errors import ConvergenceError
from quincunx.leakage._solver import Deadline, linear_program

IntVector = Ints

#: Least share of a row that the scale of a variable stands for, and the tolerances of values and of multipliers.
_ATTEMPTS = ((1e-6, 1e-10, 1e-10), (1e-2, 1e-8, 1e-10), (1e-2, 1e-7, 1e-7), (1e-4, 1e-7, 1e-7))
#: Relative gaps: solved to the end, and worth an answer at all.
_CLOSED, _OPEN = 1e-10, 1e-6


@dataclass(frozen=True)
class Program:
    """A reduced program: variable j stands for all pairs with label j."""

    #: Objective, in units of M.
    objective: Floats
    #: The orbit of inputs each variable belongs to, and how many outputs of a row have this variable.
    row: IntVector
    count: Floats
    #: Pairs (i, j) of variables with M_i <= exp(epsilon) M_j.
    below: IntVector
    above: IntVector
    #: Distance between input and output: the scale of a variable is exp(-epsilon * distance).
    distance: Floats


@dataclass(frozen=True)
class Solution:
    """Values of the variables that satisfy everything, what they are worth, and what nothing can exceed."""

    values: Floats
    utility: float
    dual_bound: float


def hamming_program(length: int, alphabet_size: int) -> Program:
    """Return the program of a Hamming graph with a uniform prior: variable d stands for the pairs at distance d."""
    d = np.arange(length + 1)
    count = np.ones(length + 1, dtype=np.float64)
    for i in range(length):
        count[i + 1] = count[i] * (length - i) * (alphabet_size - 1) / (i + 1)
    objective = np.zeros(length + 1)
    objective[0] = 1.0
    return Program(
        objective=objective,
        row=np.zeros(length + 1, dtype=np.int64),
        count=count,
        below=np.concatenate([d[:-1], d[1:]]),
        above=np.concatenate([d[1:], d[:-1]]),
        distance=np.arange(length + 1.0),
    )


def graph_program(
    labels: npt.NDArray[np.integer],
    orbits: IntVector,
    columns: IntVector,
    edges: IntVector,
    weights: Floats,
    distance: Floats,
) -> Program:
    """Return the program for labelled pairs (input, output).

    `labels` has a label for each pair, `orbits` an orbit for each input, `columns` an output of each orbit of outputs;
    `weights` are the objective's coefficients and `distance` the scales, one for each pair.
    """
    rank = int(labels.max()) + 1
    flat = labels.ravel()
    objective = np.zeros(rank)
    np.add.at(objective, flat, weights.ravel())
    first = np.unique(flat, return_index=True)[1]
    representatives = np.unique(orbits, return_index=True)[1]
    row = orbits[first // labels.shape[1]]
    count = np.zeros(rank)
    for representative in representatives:
        count += np.bincount(labels[representative], minlength=rank)
    ends = edges[edges[:, 0] != edges[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    pairs = [np.empty(0, dtype=np.int64)]
    for column in columns:
        names = labels[:, column].astype(np.int64)
        pairs.append(np.unique(names[both[:, 0]] * rank + names[both[:, 1]]))
    below, above = np.divmod(np.unique(np.concatenate(pairs)), rank)
    distinct = below != above
    return Program(objective, row, count, below[distinct], above[distinct], distance.ravel()[first])


def solve(program: Program, epsilon: float, end: Deadline, proved: Callable[[Floats], float] | None = None) -> Solution:
    """Solve a program by HiGHS, and repair the answer to obey every inequality and the multipliers to bound it.

    `proved` may give another bound, from the prices of the rows.
    """
    best: Solution | None = None
    bound = np.inf
    for attempt in _ATTEMPTS:
        try:
            values, found = _attempt(program, epsilon, end, *attempt, proved)
        except ArithmeticError:  # not solved at these tolerances
            continue
        utility = float(program.objective @ values)
        if np.isfinite(utility) and (best is None or utility > best.utility):
            best = Solution(values, utility, np.inf)
        bound = min(bound, found if np.isfinite(found) else np.inf)
        if best is not None and bound - best.utility <= _CLOSED * bound:
            break
    if best is None or not bound - best.utility <= _OPEN * bound:
        known = (
            "" if best is None else f": the best channel found is worth {best.utility:.6g}, the bound is {bound:.6g}"
        )
        raise ConvergenceError(f"the linear program was not solved to a relative {_OPEN:g}{known}")
    return Solution(best.values, best.utility, bound)


def _attempt(
    program: Program,
    epsilon: float,
    end: Deadline,
    floor: float,
    primal: float,
    dual: float,
    proved: Callable[[Floats], float] | None,
) -> tuple[Floats, float]:
    """Return values that satisfy everything, and a bound of the objective."""
    from scipy.sparse import csr_array

    n, inequalities = len(program.objective), len(program.below)
    rows = int(program.row.max()) + 1
    falling = np.exp(-epsilon * program.distance)
    total = np.bincount(program.row, weights=program.count * falling, minlength=rows)
    scale = np.maximum(falling / total[program.row], floor / program.count)
    # M_i <= e^epsilon M_j with M = scale z, divided by e^epsilon times the scale of the right side.
    left = np.exp(-epsilon) * (scale[program.below] / scale[program.above])
    each = np.arange(inequalities)
    upper = csr_array(
        (
            np.concatenate([left, -np.ones(inequalities)]),
            (np.concatenate([each, each]), np.concatenate([program.below, program.above])),
        ),
        shape=(inequalities, n),
    )
    equal = csr_array((program.count * scale, (program.row, np.arange(n))), shape=(rows, n))
    gain = program.objective * scale
    unit = float(gain.max()) or 1.0
    found = linear_program(
        end,
        c=-gain / unit,
        A_ub=upper if inequalities else None,
        b_ub=np.zeros(inequalities) if inequalities else None,
        A_eq=equal,
        b_eq=np.ones(rows),
        options={"primal_feasibility_tolerance": primal, "dual_feasibility_tolerance": dual},
    )
    values = _feasible(program, np.maximum(found.x, 0.0) * scale, epsilon, rows)
    multipliers = unit * np.maximum(-found.marginals, 0.0) if inequalities else np.zeros(0)
    # For any multipliers >= 0 the largest reduced gain per unit of a row bounds what the row can bring.
    reduced = (gain - upper.T @ multipliers) / (program.count * scale)
    bounds = np.full(rows, -np.inf)
    np.maximum.at(bounds, program.row, reduced)
    bound = float(bounds.sum())
    return values, bound if proved is None else min(bound, proved(-unit * found.prices))


def _feasible(program: Program, values: Floats, epsilon: float, rows: int) -> Floats:
    """Make rows sum to 1 and mix in as much of the uniform channel as the worst violated inequality needs."""
    sums = np.bincount(program.row, weights=program.count * values, minlength=rows)
    if not sums.min() > 0:
        raise ArithmeticError("the solver left a row empty")
    values = values / sums[program.row]
    outputs = np.bincount(program.row, weights=program.count, minlength=rows)[0]
    factor = np.exp(epsilon)
    excess = values[program.below] - factor * values[program.above]
    worst = float(excess.max(initial=0.0))
    if worst <= 0:
        return values
    share = worst / (worst + np.expm1(epsilon) / outputs)
    mixed: Floats = (1 - share) * values + share / outputs
    return mixed
