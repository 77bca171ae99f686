"""The log-likelihood of each user: what criteria that leave one user out work on.

    log_likelihood[c, d, i] = log P(what user i released | parameters of draw d of chain c),  true values integrated out

Users who released the same thing under the same mechanism share one evaluation for each draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from quincunx import _check
from quincunx._core import LdpLikelihood
from quincunx._inference import Floats, Report
from quincunx.ldp._groups import Group, Users


def log_likelihoods(
    users: Sequence[Users],
    draws: Sequence[Floats],
    report: Report | None,
    likelihood: Callable[[Group], LdpLikelihood],
) -> Floats:
    """Return the log-likelihood of each user at each draw, of shape (n_chains, n_draws, n_users).

    `likelihood` makes that of a group, of all parameters.

    Raises
    ------
    TooLargeError
        If they do not fit into memory.
    """
    n_chains, n_draws = draws[0].shape[:2]
    naturals = np.concatenate([part.reshape(n_chains * n_draws, -1) for part in draws], axis=1)
    naturals = np.ascontiguousarray(naturals, dtype=np.float64)
    number = sum(len(index) for _, index in users)
    different = sum(len(groups) for groups, _ in users)
    what = f"a number for each of {number} users and {len(naturals)} draws"
    _check.room(8 * len(naturals) * (2 * number + different), what)
    done, columns = 0, []
    for groups, index in users:
        each = np.empty((len(groups), len(naturals)))
        for values, group in zip(each, groups, strict=True):
            core = likelihood(group)
            values[:] = [core.value(natural, False)[0] for natural in naturals]
            done += 1
            if report is not None:
                report(done, different)
        columns.append(each[index].T)
    return np.concatenate(columns, axis=1).reshape(n_chains, n_draws, number)
