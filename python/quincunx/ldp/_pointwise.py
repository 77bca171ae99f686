"""The log-likelihood of each user: what criteria that leave one user out work on.

    log_likelihood[c, d, i] = log P(what user i told | parameters of draw d of chain c),  the true values integrated out

Users who told the same thing under the same mechanism share one evaluation for each draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats, Report
from quincunx.ldp._problem import Part, likelihood

#: Where the numbers of users are among the arguments of a constructor.
_NUMBERS = {"plain": 1, "rectified": 1, "whole": 4, "tractable": 0}

#: Groups of one user each, and which of them each user is.
Users = tuple[list[Part], npt.NDArray[np.intp]]


def users_of(part: Part, told: Any) -> Users:
    """Return what users told, each thing once, and which of them each user told.

    Raises
    ------
    ValueError
        If the part is a sum over users.
    """
    name, arguments = part
    if name in _NUMBERS:
        at = _NUMBERS[name]
        values, index = np.unique(arguments[at], return_inverse=True)
        one = [(name, (*arguments[:at], values[i : i + 1], *arguments[at + 1 :])) for i in range(len(values))]
        return one, index.reshape(-1)
    if name == "bits":
        keep = arguments[2]
        bits = _check.categories(told, "released", 2).reshape(-1)
        return [("bits", (1.0, 0.0, keep)), ("bits", (0.0, 1.0, keep))], bits.astype(np.intp)
    if name == "categories":
        counts, *noise = arguments
        one = [(name, ([float(row) for row in rows], *noise)) for rows in np.eye(len(counts))]
        return one, _check.categories(told, "released", len(counts)).astype(np.intp)
    if name == "rows":
        rows, weights, p, q = arguments
        patterns, index = np.unique(rows, axis=0, return_inverse=True)
        index = index.reshape(-1)
        if weights is not None:
            index = np.repeat(index, weights.astype(np.intp))
        return [(name, (patterns[i : i + 1], None, p, q)) for i in range(len(patterns))], index
    raise ValueError("`released` must be what each user told: a sum over users has no likelihood of one of them")


def log_likelihoods(groups: Sequence[Users], draws: Sequence[Floats], report: Report | None) -> Floats:
    """Return the log-likelihood of each user at each draw, of shape (n_chains, n_draws, n_users).

    Raises
    ------
    TooLargeError
        If they do not fit into memory.
    """
    n_chains, n_draws = draws[0].shape[:2]
    naturals = np.concatenate([part.reshape(n_chains * n_draws, -1) for part in draws], axis=1)
    naturals = np.ascontiguousarray(naturals, dtype=np.float64)
    users = sum(len(index) for _, index in groups)
    different = sum(len(parts) for parts, _ in groups)
    what = f"a number for each of {users} users and {len(naturals)} draws"
    _check.room(8 * len(naturals) * (2 * users + different), what)
    done, columns = 0, []
    for parts, index in groups:
        each = np.empty((len(parts), len(naturals)))
        for values, part in zip(each, parts, strict=True):
            core = likelihood([part], naturals.shape[1])
            values[:] = [core.value(natural, False)[0] for natural in naturals]
            done += 1
            if report is not None:
                report(done, different)
        columns.append(each[index].T)
    return np.concatenate(columns, axis=1).reshape(n_chains, n_draws, users)
