"""Posterior of a network's probabilities given noisy tables or parities of the same records: chains over these records.

The records are independent with the network's probabilities, whose rows are Dirichlet; each released cell is the count
of the records that are in it plus two-sided geometric noise, or each released parity its coefficient plus noise. A
chain has the records and the probabilities: a sweep draws every category of every record given all else, then the
probabilities given the counts. The core's files `posterior/records.rs` and `parities.rs` have the formulas.

Source: N. Ju, J. Awan, R. Gong, V. Rao (2022), Data augmentation MCMC for Bayesian inference from privatized data.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from quincunx import _check, _core
from quincunx._inference import complaint_of
from quincunx._inference._runs import keys
from quincunx._progress import Progress, reporting
from quincunx._rng import RandomSource, generator
from quincunx._types import Array, Floats, Ints
from quincunx.posterior import _account
from quincunx.posterior._measuring import MOST_RECORDS, geometric_variance, total_of
from quincunx.posterior._network_posterior import Fitted, drawn, exponent_of, pseudo_count, source_of
from quincunx.posterior._records import Nodes
from quincunx.posterior._structure import Structure
from quincunx.privacy import PrivacyGuarantee, ReplaceOne
from quincunx.privacy._relations import Relation


class Noisy(Fitted, Protocol):
    """A network that was fitted with noise."""

    guarantee: PrivacyGuarantee
    mechanism: str
    noisy_counts: dict[Hashable, Array] | None
    coefficients: dict[int, Fraction] | None


class RecordChains(NamedTuple):
    """Draws of all chains, one after the other, and the scalars that chains are judged by."""

    cpds: dict[Hashable, Floats]
    counts: dict[Hashable, Ints]
    #: By name, each of shape (n_chains, n_draws).
    scalars: dict[str, Floats]

    def complaint(self, mechanism: str) -> str | None:
        """Return the words for chains that disagree, are short, or keep to one place where noise is on parities."""
        for name, values in self.scalars.items():
            still = (values == values[:, :1]).all(axis=1) & (values[:, 0] > 0) & (values.shape[1] > 1)
            if mechanism != "laplace" and name.startswith("distance") and still.any():
                chains = f"{still.sum()} of {len(still)} chains"
                return f"the {name} is the same in all draws of {chains}: they may be far from where others would be"
        return complaint_of(self.scalars, "raise `n_draws`, `n_warmup` or `thin`")


def sample_records(
    fitted: Noisy,
    prior: object,
    n_records: object,
    chains: tuple[object, object, object, object],
    progress: Progress,
    rng: RandomSource,
) -> RecordChains:
    """Run chains over records: `PrivateBayesNet.posterior` describes it."""
    net, guarantee, mechanism, coefficients = fitted.net, fitted.guarantee, fitted.mechanism, fitted.coefficients
    noisy_counts = fitted.noisy_counts
    assert noisy_counts is not None
    pseudo = pseudo_count(prior)
    number, warmup, draws, thin = (
        _check.whole(value, name, minimum=least, maximum=2**32)
        for value, name, least in zip(chains, ("n_chains", "n_warmup", "n_draws", "thin"), (1, 0, 1, 1), strict=True)
    )
    relation = _account.relation_of(guarantee.relation)
    replaced = isinstance(relation, ReplaceOne)
    given = None if n_records is None else _check.whole(n_records, "n_records", maximum=MOST_RECORDS)
    if coefficients is None:
        tables = {node: np.asarray(noisy_counts[node]).astype(np.int64) for node in net.measured}
        lone = net._lone(relation)
        public = (int(tables[lone[0]].sum()), f"the sum of the table of {lone[0]!r}") if lone else None
        exponent, parities = exponent_of(net, guarantee), None
        variance = geometric_variance(exponent)
        seen = float(total_of([(table.astype(np.float64), variance) for table in tables.values()]))
    else:
        tables, lone, exponent = {}, (), 0.0
        public = (int(coefficients[0]), "which replacing records leaves public") if replaced else None
        parities = _parities(net, coefficients, mechanism, guarantee.epsilon, relation)
        seen = float(coefficients[0])
    known = _known(given, public)
    rows = min(max(0, round(seen)), MOST_RECORDS) if known is None else known
    cells = [math.prod(net._shape(node)) for node in net.nodes]
    # Draws are held by the core, once more in one piece, and by node.
    _check.room(3 * 16 * number * draws * (sum(cells) + len(cells)), "an array of draws")
    _check.room((8 + 4 * number) * rows * len(cells) + 24 * number * rows, "the records of the chains")
    source = generator(rng)
    # Chains start from draws given each table alone, which lie farther apart than those given all of them.
    if coefficients is None:
        starts = drawn(net, noisy_counts, guarantee, number, prior, None, source)
    else:
        starts = _scattered(net, noisy_counts, mechanism, guarantee.epsilon, relation, (number, pseudo), source)
    records = [
        fitted._with({node: table[chain] for node, table in starts.items()})._codes(rows, source).astype(np.uint16)
        for chain in range(number)
    ]
    released, noisy = _cells(net, tables, lone)
    # The concentration of a row is the prior's of the table that the node is read from, summed.
    widths = {node: math.prod(net._shape(source_of(net, node))) for node in net.nodes}
    concentrations = [pseudo * widths[node] / size for node, size in zip(net.nodes, cells, strict=True)]
    with reporting(progress, "chains over records") as report:
        theta, counts, likelihoods, distances = _core.sample_records(
            (list(net._sizes.values()), [[net._columns[p] for p in net.parents[node]] for node in net.nodes]),
            released,
            noisy,
            concentrations,
            exponent,
            parities,
            [codes.reshape(-1) for codes in records],
            keys(source, number),
            (warmup, draws, thin),
            known is not None,
            min(number, _core.available_threads()),
            report,
        )
    found = RecordChains(_by_node(net, theta, cells), _by_node(net, counts, cells), {})
    for name, values in (("log-likelihood", likelihoods), ("distance", distances)):
        columns = values.reshape(number, draws, len(cells))
        for place, node in enumerate(net.nodes):
            if name != "distance" or parities is not None or node in tables:
                found.scalars[f"{name} of {node}"] = columns[:, :, place]
    if known is None:
        every = found.counts[net.nodes[0]]
        found.scalars["number of records"] = every.reshape(number, draws, -1).sum(axis=2).astype(np.float64)
    return found


def _known(given: int | None, public: tuple[int, str] | None) -> int | None:
    """Return the number of records if it is given, or was released as it is, which `public` has with the reason."""
    if public is None:
        return given
    if given not in (None, public[0]):
        raise ValueError(f"`n_records` must be {public[0]}, {public[1]}, got {given}")
    return public[0]


def _parities(
    net: Structure, coefficients: Mapping[int, Fraction], mechanism: str, epsilon: float, relation: Relation
) -> tuple[list[list[int]], list[float], float, bool]:
    """Return what the core takes of noisy parities: sets of columns, releases, the exponent of the noise and its norm.

    About records that are replaced the noise is of the numbers of odd records, which a coefficient moves by twice.
    """
    replaced, largest = isinstance(relation, ReplaceOne), mechanism == "fourier_linf"
    masks = [mask for mask in net._masks if mask or not replaced]
    sets = [[column for column in range(len(net.nodes)) if mask >> column & 1] for mask in masks]
    exponent = epsilon if largest else epsilon / net.fourier_sensitivity(relation)
    return sets, [float(coefficients[mask]) for mask in masks], exponent / (2 if replaced else 1), largest


def _scattered(
    net: Structure,
    noisy_counts: Mapping[Hashable, Array],
    mechanism: str,
    epsilon: float,
    relation: Relation,
    chains: tuple[int, float],
    source: np.random.Generator,
) -> dict[Hashable, Floats]:
    """Draw probabilities that start chains: of each table's cells, as far apart as their noise."""
    number, pseudo = chains
    found = {}
    for node in net.nodes:
        table = np.asarray(noisy_counts[node], dtype=np.float64)
        deviation = net.cell_deviation(node, mechanism, epsilon, relation)
        cells = np.maximum(table + deviation * source.standard_normal((number, *table.shape)), 0.0)
        rates = source.standard_gamma(pseudo + cells)
        found[node] = rates / rates.sum(axis=-1, keepdims=True)
    return found


def _cells(net: Structure, tables: Mapping[Hashable, Ints], lone: Nodes) -> tuple[Ints, Array]:
    """Return the releases of all cells, and which cells were released: the zeros of a lone binary node were not."""
    released, noisy = [], []
    for node in net.nodes:
        table = tables.get(node, np.zeros(net._shape(node), dtype=np.int64)).reshape(-1).copy()
        seen = np.full(table.size, node in tables)
        if node in lone:
            table[0], seen[0] = 0, False
        released.append(table)
        noisy.append(seen)
    return np.concatenate(released), np.concatenate(noisy)


def _by_node(net: Structure, values: Array, cells: list[int]) -> dict[Hashable, Array]:
    """Return draws of all cells, a table for each node."""
    parts = np.split(values.reshape(-1, sum(cells)), np.cumsum(cells)[:-1], axis=1)
    return {
        node: np.ascontiguousarray(part).reshape(-1, *net._shape(node))
        for node, part in zip(net.nodes, parts, strict=True)
    }
