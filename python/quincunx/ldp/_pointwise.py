"""The log-likelihood of each user: what criteria that leave one user out work on.

    log_likelihood[c, d, i] = log P(what user i told | parameters of draw d of chain c),  the true values integrated out

Users who told the same thing under the same mechanism share one evaluation for each draw.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quincunx import _check
from quincunx._inference import Floats, Report
from quincunx.ldp._parts import Users, likelihood


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
