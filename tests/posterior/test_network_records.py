"""Chains over the records that all noisy tables of a network count: exact laws by enumeration, calibration, coverage."""

import itertools
import math
import warnings
from collections import Counter

import numpy as np
import pytest
from tests.posterior.test_network_posterior import geometric
from tests.statistics import FALSE_ALARM, assert_discrete_fit, assert_share

from quincunx.errors import ConvergenceWarning
from quincunx.posterior import DiscreteBayesNet, PrivateBayesNet
from quincunx.privacy import AddRemove, PrivacyGuarantee, ReplaceOne

PAIR = DiscreteBayesNet([("x", "y")], {"x": 2, "y": 2})
CHAIN = DiscreteBayesNet([("x", "y"), ("y", "z")], {"x": 2, "y": 2, "z": 2})
COMMON = DiscreteBayesNet([("x", "y"), ("x", "z")], {"z": 2, "x": 2, "y": 2})
COLLIDER = DiscreteBayesNet([("x", "z"), ("y", "z")], {"x": 2, "y": 2, "z": 2})
THREE = DiscreteBayesNet([], {"x": 3})
BESIDE = DiscreteBayesNet([("x", "y")], {"w": 2, "x": 2, "y": 2})  # the ones of w alone are released

#: Cells of a measured table that are summed to one of a node that is read from it, where there are several.
SUMMED = {(net, "x"): 2 for net in (PAIR, CHAIN, COMMON, BESIDE)} | {(COLLIDER, "x"): 4, (COLLIDER, "y"): 4}


def released(net, tables, exponent, relation=None):
    """A fitted network of these noisy tables of the nodes measured, with that exponent of the noise."""
    relation = ReplaceOne() if relation is None else relation
    epsilon = exponent * net.count_sensitivity(relation)
    return PrivateBayesNet(
        net,
        counts={},
        cpds={node: np.full(net._shape(node), 1 / net._sizes[node]) for node in net.nodes},
        guarantee=PrivacyGuarantee(epsilon, relation=relation),
        mechanism="laplace",
        consistent=False,
        noisy_counts={node: np.array(table) for node, table in tables.items()},
        coefficients=None,
    )


def tables_of(net, records):
    """The tables of all families, record by record."""
    found = {node: np.zeros(net._shape(node), dtype=int) for node in net.nodes}
    for record in records:
        for node, table in found.items():
            table[tuple(record[net.nodes.index(other)] for other in net.family(node))] += 1
    return found


def dirichlet_multinomial(counts, concentration):
    """The logarithm of the chance of a sequence with these counts."""
    total = math.lgamma(concentration * len(counts)) - math.lgamma(concentration * len(counts) + sum(counts))
    return total + sum(math.lgamma(concentration + n) - math.lgamma(concentration) for n in counts)


def law_of_tables(net, tables, exponent, prior, sizes, lone=()):
    """The posterior of the tables of all families: (of their bytes, its mass), with the tables.

    Every multiset of so many records is enumerated, with the multinomial number of its sequences. A pair has the
    Dirichlet law of all cells of its one table; else rows have the concentrations that `posterior` documents.
    """
    masses, seen = Counter(), {}
    codes = list(itertools.product(*[range(net._sizes[node]) for node in net.nodes]))
    for size in sizes:
        for records in itertools.combinations_with_replacement(codes, size):
            found = tables_of(net, records)
            log = math.lgamma(size + 1) - sum(math.lgamma(n + 1) for n in Counter(records).values())
            if net is PAIR:
                log += dirichlet_multinomial(found["y"].reshape(-1).tolist(), prior)
            else:
                rows = [(node, row.tolist()) for node in net.nodes for row in found[node].reshape(-1, net._sizes[node])]
                log += sum(dirichlet_multinomial(row, prior * SUMMED.get((net, node), 1)) for node, row in rows)
            for node in tables:
                away = abs(found[node] - np.array(tables[node])).reshape(-1)
                log -= exponent * away[1 if node in lone else 0 :].sum()
            key = b"".join(found[node].tobytes() for node in net.nodes)
            masses[key] += math.exp(log)
            seen[key] = found
    whole = sum(masses.values())
    return {key: mass / whole for key, mass in masses.items()}, seen


CASES = {
    "three categories": (THREE, {"x": [4, -1, 2]}, 0.7, 1.0, 6, None),
    "a pair": (PAIR, {"y": [[3, 1], [-2, 4]]}, 0.3, 1.0, 6, None),
    "a pair, weak prior": (PAIR, {"y": [[5, 0], [0, 3]]}, 0.5, 0.3, 5, None),
    "a chain": (CHAIN, {"y": [[2, 1], [0, 1]], "z": [[-1, 2], [3, 1]]}, 0.4, 1.0, 5, None),
    "a chain, tables far apart": (CHAIN, {"y": [[9, -7], [0, 1]], "z": [[-1, 2], [12, -5]]}, 0.2, 2.0, 4, None),
    "a common cause": (COMMON, {"y": [[2, 1], [0, 1]], "z": [[-1, 2], [3, 1]]}, 0.6, 0.5, 4, None),
    "a collider": (COLLIDER, {"z": [[[1, 2], [0, 1]], [[0, 3], [-2, 1]]]}, 0.5, 1.0, 4, None),
    "a lone binary node": (BESIDE, {"w": [1, 3], "y": [[2, 1], [-1, 1]]}, 0.5, 1.0, 4, ("w",)),
    "records unknown": (PAIR, {"y": [[3, 1], [-2, 4]]}, 0.9, 1.0, None, None),
    "records of a chain unknown": (CHAIN, {"y": [[1, 0], [0, 1]], "z": [[0, 1], [1, -1]]}, 1.2, 1.0, None, None),
}


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_records_follow_their_posterior(case):
    """Tables of all families beside the enumeration of all records; means of probabilities. False alarm 1e-6 each."""
    net, tables, exponent, prior, size, lone = CASES[case]
    law, seen = law_of_tables(net, tables, exponent, prior, [size] if size else range(14 - 2 * len(tables)), lone or ())
    relation = ReplaceOne() if size else AddRemove()
    found = released(net, tables, exponent, relation).posterior(
        1500, prior=prior, consistent=True, n_records=size, n_warmup=200, thin=40, rng=3
    )
    drawn = Counter(b"".join(found.counts[node][i].tobytes() for node in net.nodes) for i in range(len(found)))
    assert drawn.keys() - law.keys() == set() or not size
    assert_discrete_fit([drawn[key] for key in law], list(law.values()))
    for node in net.nodes:
        rows = prior * SUMMED.get((net, node), 1)
        given = {key: (counts[node] + rows) for key, counts in seen.items()}
        mean = sum(mass * given[key] / given[key].sum(axis=-1, keepdims=True) for key, mass in law.items())
        error = found.cpds[node].std(axis=0) / math.sqrt(len(found))
        assert (abs(found.cpds[node].mean(axis=0) - mean) < 5.5 * error).all(), node
