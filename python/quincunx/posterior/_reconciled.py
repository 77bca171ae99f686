"""Tables of a network's families that agree with one another, fitted to noisy ones that do not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from quincunx import _check
from quincunx._types import Array, Floats
from quincunx.posterior._junction_tree import conditional
from quincunx.posterior._law_fit import NoisyMarginal, fit_law
from quincunx.posterior._measuring import geometric_variance, total_of
from quincunx.posterior._network_posterior import exponent_of
from quincunx.posterior._structure import Structure
from quincunx.privacy import PrivacyGuarantee


def reconciled(
    net: Structure, noisy_counts: Mapping[Hashable, Array], guarantee: PrivacyGuarantee, n_records: int | None
) -> tuple[dict[Hashable, Floats], dict[Hashable, Floats]]:
    """Return expected counts and conditional probabilities: `PrivateBayesNet.reconcile` describes it."""
    variance = geometric_variance(exponent_of(net, guarantee))
    lone = net._lone(guarantee.relation)
    tables = []
    for node in net.measured:
        places = [net._columns[other] for other in net.family(node)]
        values = noisy_counts[node].astype(np.float64).transpose(np.argsort(places))
        twice = 2 if node in lone else 1  # one error, in two cells
        tables.append(NoisyMarginal(tuple(sorted(places)), values, twice * variance))
    if n_records is None:
        total = total_of([(table.values, table.variance) for table in tables])
    else:
        total = _check.whole(n_records, "n_records", minimum=1)
    law = fit_law([net._sizes[node] for node in net.nodes], tables, total).law
    counts, cpds = {}, {}
    for node in net.nodes:
        places = [net._columns[other] for other in net.family(node)]
        scope = tuple(sorted(places))
        joint = law.marginal(scope).transpose([scope.index(place) for place in places])
        counts[node], cpds[node] = total * joint, conditional(joint)
    return counts, cpds
