"""What tests of categories share: every report that a mechanism can make."""

import itertools

import numpy as np

from quincunx import privacy


def all_reports(mechanism, functions=3):
    """All reports of one user, of local hashing the values of some functions; and the share of these among all."""
    law, k = mechanism.noise, mechanism.categories
    if isinstance(mechanism, privacy.LocalHashing):
        drawn = np.random.default_rng(3).integers(0, (2**31 - 1) ** 2, functions)
        pairs = itertools.product(drawn.tolist(), range(mechanism.buckets))
        return np.array(list(pairs)), functions / (2**31 - 1) ** 2
    if isinstance(mechanism, privacy.GeneralizedRandomizedResponse):
        return np.arange(k), 1.0
    if isinstance(mechanism, privacy.HadamardResponse):
        return np.arange(law.blocks * law.columns), 1.0
    size = getattr(mechanism, "size", None)
    rows = itertools.product((0, 1), repeat=k)
    return np.array([row for row in rows if size in (None, sum(row))], dtype=np.uint8), 1.0
