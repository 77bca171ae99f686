"""Posterior of a network's conditional probabilities, given the noisy tables that were released.

The counts n of a measured table are Poisson of rates lambda ~ Gamma(a, b), so that lambda over its sum is Dirichlet;
the release of a cell is n plus two-sided geometric noise. Then cells are independent given the release: n has the mass
proportional to Gamma(a + n) / n! (1 + b)^-n exp(-exponent |release - n|), of which draws are made exactly, and lambda
given n is Gamma(a + n, 1 + b). There is no chain, and nothing to converge.

Sources: O. Williams and F. McSherry (2010), Probabilistic inference and differential privacy, for the posterior given
the noise; N. L. Zhang and D. Poole (1994), A simple approach to Bayesian network computations, for queries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from quincunx import _check
from quincunx._rng import RandomSource, generator
from quincunx._types import Array, ByLabel, DataTree, Floats, Ints
from quincunx.posterior import _account
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Nodes, marginal
from quincunx.posterior._structure import Structure
from quincunx.privacy import PrivacyGuarantee

# Noise beyond exp(-this) is not looked for: a double has none of it.
_REACH = 45.0
# Bytes of one cell's law: a second.
_MOST = 1 << 28
# Numbers of a table at once: some milliseconds.
_BLOCK = 1 << 20


class Fitted(Protocol):
    """A network that takes other probabilities."""

    @property
    def net(self) -> Structure: ...

    def _with(self, cpds: dict[Hashable, Floats]) -> Self: ...

    def _codes(self, count: int, source: np.random.Generator) -> Ints: ...


F = TypeVar("F", bound=Fitted)


@posterior_doc
class NetworkPosterior(Generic[F]):
    """Draws of all conditional probabilities of a network, made by `PrivateBayesNet.posterior`.

    They are independent, or those of chains over the records that all tables count, one chain after the other.

    Attributes
    ----------
    fitted : PrivateBayesNet
        Whose tables they are drawn from. Draws cost no privacy.
    cpds : dict
        Of node to float64 array with axes (draw, parents in edge order, node); sums over the last axis are 1.
    counts : dict or None
        Of node to int64 array with the same axes: the table of the records at each draw, of chains over records. Tables
        that share nodes agree on them.
    n_chains : int
        Chains that the draws are of; 1 where they are independent.

    Examples
    --------
    >>> from quincunx.posterior import DiscreteBayesNet
    >>> net = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
    >>> fitted = net.fit_private([["dry", "dry"], ["rain", "wet"]] * 500, epsilon=1.0, mechanism="laplace")
    >>> found = fitted.posterior(2000, rng=1)
    >>> wet = found.query(["sky"], given={"road": "wet"})[:, 1]
    >>> bool(np.quantile(wet, 0.05) > 0.9)
    True
    """

    def __init__(
        self,
        fitted: F,
        cpds: dict[Hashable, Floats],
        counts: dict[Hashable, Ints] | None = None,
        scalars: Mapping[str, Floats] | None = None,
    ) -> None:
        self.fitted = fitted
        self.cpds = cpds
        self.counts = counts
        self._scalars = dict(scalars or {})
        self.n_chains = len(next(iter(self._scalars.values()))) if self._scalars else 1

    def __repr__(self) -> str:
        chains = f" from {self.n_chains} chains" if self._scalars else ""
        return f"NetworkPosterior({len(self)} draws of {len(self.cpds)} nodes{chains})"

    def __len__(self) -> int:
        return len(next(iter(self.cpds.values())))

    def interval(self, node: Hashable, probability: float = 0.9) -> Floats:
        """Return equal-tailed credible intervals of a node's conditional probabilities.

        {node}
        probability : float
            Of each interval, in (0, 1).

        Returns
        -------
        ndarray of float64, shape (2, categories of each parent, categories)
            Lower and upper ends.

        Raises
        ------
        ValueError
            If there is no such node, or `probability` is outside.
        """
        self.fitted.net.family(node)
        level = _check.open_probability(probability, "probability")
        return np.quantile(self.cpds[node], [(1 - level) / 2, (1 + level) / 2], axis=0)

    def query(self, nodes: Iterable[Hashable], given: ByLabel[Hashable] | None = None) -> Floats:
        """Return the joint law of some nodes given others, for each draw, without approximation.

        {query}

        Returns
        -------
        ndarray of float64, shape (n_draws, categories of each node)
            Sums over all axes but the first are 1.

        {no_query}

        Notes
        -----
        Nodes that are neither asked for nor given, nor above any of those, are left out; the others are eliminated, the
        one with the smallest table next. Time grows with the largest table: exponentially in the treewidth.
        """
        return joint(self.fitted.net, self.cpds, nodes, given)

    def network(self, draw: int) -> F:
        """Return one draw as a network: to sample from, or to convert.

        Parameters
        ----------
        draw : int
            Which.

        Returns
        -------
        PrivateBayesNet
            With the probabilities of the draw, and no counts.

        Raises
        ------
        ValueError
            If there is no such draw.
        """
        place = _check.whole(draw, "draw", maximum=len(self) - 1)
        return self.fitted._with({node: table[place].copy() for node, table in self.cpds.items()})

    def diagnostics(self) -> dict[str, tuple[float, float]]:
        """Return R-hat and the bulk effective sample size of what chains over records are judged by.

        Returns
        -------
        dict
            Of name to (R-hat, draws): the log-likelihood of the records at each node, the distance of each measured
            table, or of the parities within a family, from what was released, and the number of records where that is
            drawn. Empty for independent draws. Of single probabilities ArviZ's functions say it, given `to_datatree`.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        """
        from quincunx._inference._diagnostics import diagnose

        return diagnose(self._scalars) if self._scalars else {}

    def to_datatree(self) -> DataTree:
        """Return the draws as ArviZ has them, by chains, dimensions by the names of the nodes.

        Returns
        -------
        xarray.DataTree
            With a variable for each node, and its categories as coordinates.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        ValueError
            If nodes have the same name as others, or as an axis.
        """
        from quincunx._inference._datatree import datatree

        net = self.fitted.net
        names = {node: str(node) for node in net.nodes}
        taken = ["chain", "draw", *names.values(), *(f"{name}_category" for name in names.values())]
        if len(set(taken)) < len(taken):
            raise ValueError(f"nodes must have names apart from one another and from those of axes, got {taken}")
        dims = {names[node]: [f"{names[other]}_category" for other in net.family(node)] for node in net.nodes}
        coords = {
            f"{names[node]}_category": net._declared[node].decode(np.arange(net._sizes[node])) for node in net.nodes
        }
        tables = {names[node]: table.reshape(self.n_chains, -1, *table.shape[1:]) for node, table in self.cpds.items()}
        how = (
            "independent draws given noisy tables" if self.counts is None else "chains over the records of noisy tables"
        )
        return datatree({"posterior": tables}, dims, coords, {"inference": how})


def joint(
    net: Structure, cpds: Mapping[Hashable, Floats], nodes: Iterable[Hashable], given: ByLabel[Hashable] | None
) -> Floats:
    """Return the joint law of some nodes given others, for each draw: `NetworkPosterior.query` describes it."""
    n_draws = len(next(iter(cpds.values())))
    if not isinstance(given, Mapping | None):
        raise TypeError(f"`given` must be a mapping of nodes to categories, got {type(given).__name__}")
    # One more than there are is one twice; what says to have 2**60 is not believed.
    wanted, known = list(itertools.islice(nodes, len(net.nodes) + 1)), dict(given or {})
    for node in (*wanted, *known):
        net.family(node)
    if len({*wanted, *known}) < len(wanted) + len(known):
        raise ValueError(f"`nodes` and `given` must be different nodes, got {wanted} and {list(known)}")
    codes = {
        node: int(net._declared[node].encode(np.array([category], dtype=object), f"given[{node!r}]")[0])
        for node, category in known.items()
    }
    above = set[Hashable]()
    todo = [*wanted, *known]
    while todo:
        if (node := todo.pop()) not in above:
            above.add(node)
            todo += net.parents[node]
    tables: list[tuple[Nodes, Floats]] = [((), np.ones(n_draws))]  # of no node at all
    tables += [_sliced(net.family(node), cpds[node], codes) for node in net.nodes if node in above]
    shape = tuple(net._sizes[node] for node in wanted)
    _check.room(8 * n_draws * math.prod(shape), "the answer")
    found = np.empty((n_draws, *shape))
    some = max(1, _BLOCK // max(table[0].size for _, table in tables))
    for start in range(0, n_draws, some):  # between blocks an interrupt is heard
        part = [(axes, table[start : start + some]) for axes, table in tables]
        found[start : start + some] = _eliminated(part, wanted, net._sizes)
    sums: Floats = found.reshape(n_draws, -1).sum(axis=1).reshape(-1, *[1] * len(wanted))
    if not sums.all():
        raise ValueError(f"`given` must have a probability above 0 in every draw, got {known}")
    return found / sums


def drawn(
    net: Structure,
    noisy_counts: Mapping[Hashable, Array],
    guarantee: PrivacyGuarantee,
    n_draws: object,
    prior: object,
    total: object,
    rng: RandomSource,
) -> dict[Hashable, Floats]:
    """Draw from the posterior given noisy counts: `PrivateBayesNet.posterior` describes it."""
    lone = net._lone(guarantee.relation)
    count = _check.whole(n_draws, "n_draws", minimum=1)
    pseudo = pseudo_count(prior)
    tables = {node: np.asarray(noisy_counts[node]).astype(np.int64) for node in net.measured}
    if total is None:
        expected = max(1.0, float(np.mean([table.sum() for table in tables.values()])))
    else:
        expected = _within(total, "total", 1.0, 2.0**53)
    exponent = exponent_of(net, guarantee)
    _check.room(8 * count * sum(math.prod(net._shape(node)) for node in net.nodes), "an array of draws")
    source = generator(rng)
    widest = {node: source_of(net, node) for node in net.nodes}
    cpds: dict[Hashable, Floats] = {}
    for measured, table in tables.items():
        if measured in lone:
            ones = _counts(table[1:], count, (pseudo, 0.0), exponent, source, int(table.sum()))
            counts = np.concatenate([table.sum() - ones, ones], axis=1)
        else:
            rate = pseudo * table.size / expected
            counts = _counts(table.reshape(-1), count, (pseudo, rate), exponent, source)
        rates = np.empty(counts.shape)
        some = max(1, _BLOCK // table.size)
        for start in range(0, count, some):
            rates[start : start + some] = source.standard_gamma(pseudo + counts[start : start + some])
        rates = rates.reshape(count, *table.shape)
        draw = object()  # an axis that is no node
        for node in (node for node, origin in widest.items() if origin == measured):
            sums = marginal(rates, (draw, *net.family(measured)), (draw, *net.family(node)))
            cpds[node] = sums / sums.sum(axis=-1, keepdims=True)
    return {node: cpds[node] for node in net.nodes}


def exponent_of(net: Structure, guarantee: PrivacyGuarantee) -> float:
    """Return the exponent of the noise on each cell."""
    return guarantee.epsilon / net.count_sensitivity(_account.relation_of(guarantee.relation))


def pseudo_count(prior: object) -> float:
    """Return a pseudo-count of a cell: smaller ones would make rates of empty cells vanish in doubles."""
    return _within(prior, "prior", 0.1, 1e3)


def _within(value: object, name: str, least: float, greatest: float) -> float:
    number = _check.real(value, name)
    if not least <= number <= greatest:
        raise ValueError(f"`{name}` must be in [{least:g}, {greatest:g}], got {value}")
    return number


def source_of(net: Structure, node: Hashable) -> Hashable:
    """Return the measured node whose table has that of `node` in the fewest cells."""
    return min(net._wider(node), key=lambda other: math.prod(net._shape(other)))


def _counts(
    released: Ints,
    n_draws: int,
    prior: tuple[float, float],
    exponent: float,
    source: np.random.Generator,
    records: int | None = None,
) -> Ints:
    """Draw the counts of cells given their releases, shape (n_draws, cells).

    The prior has a shape and a rate; where the number of records is known, the cell and what it leaves have the shape.
    """
    from scipy.special import gammaln

    (shape, rate), down = prior, exponent - math.log1p(prior[1])
    # A mass n^(shape - 1) exp(-n) is below exp(-45) of its greatest from 45 + 3 shape on.
    reach = _REACH + 3 * shape
    above = math.ceil(reach / exponent)
    below = math.ceil(min(reach / down, 2.0**62)) if down > 0 else 2**62  # a strong prior is not kept from zero
    lows = np.maximum(released - below, 0)
    length = int((np.maximum(released, 0) + above - lows).max()) + 1
    if records is not None:
        length = min(length, records + 1)
        lows = np.clip(lows, 0, records + 1 - length)
    _check.room(8 * 4 * length, "the law of a cell", _MOST)
    found = np.empty((n_draws, len(released)), dtype=np.int64)
    block = max(1, _BLOCK // max(length, n_draws))
    for start in range(0, len(released), block):  # between blocks an interrupt is heard
        some, low = released[start : start + block], lows[start : start + block]
        n = low[:, None] + np.arange(length)
        log = gammaln(shape + n) - gammaln(n + 1.0) - n * math.log1p(rate) - exponent * np.abs(some[:, None] - n)
        if records is not None:
            log += gammaln(shape + records - n) - gammaln(records - n + 1.0)
        sums = np.cumsum(np.exp(log - log.max(axis=1, keepdims=True)), axis=1)
        uniform = source.random((n_draws, len(some))) * sums[:, -1]
        for cell, (first, cumulative) in enumerate(zip(low, sums, strict=True)):
            found[:, start + cell] = first + np.searchsorted(cumulative, uniform[:, cell], side="right")
    return found


def _sliced(axes: Nodes, table: Floats, codes: Mapping[Hashable, int]) -> tuple[Nodes, Floats]:
    """Return a table at the categories that are given."""
    where = tuple(codes.get(axis, slice(None)) for axis in axes)
    return tuple(axis for axis in axes if axis not in codes), table[(slice(None), *where)]


def _eliminated(tables: list[tuple[Nodes, Floats]], wanted: list[Hashable], sizes: Mapping[Hashable, int]) -> Floats:
    """Return the product of tables to a factor, summed over all axes but the draws and those wanted, in order."""
    left = {axis for axes, _ in tables for axis in axes} - set(wanted)

    def scope(axis: Hashable) -> Nodes:
        return tuple(dict.fromkeys(one for axes, _ in tables if axis in axes for one in axes))

    while left:
        axis = min(left, key=lambda one: math.prod(sizes[other] for other in scope(one)))
        others = tuple(one for one in scope(axis) if one != axis)
        touched = [(axes, table) for axes, table in tables if axis in axes]
        tables = [(axes, table) for axes, table in tables if axis not in axes]
        tables.append((others, _product(touched, others, sizes)))
        left.remove(axis)
    return _product(tables, tuple(wanted), sizes)


def _product(tables: list[tuple[Nodes, Floats]], wanted: Nodes, sizes: Mapping[Hashable, int]) -> Floats:
    """Return the product of tables summed over all axes but the draws and those wanted, of each draw to a factor."""
    axes: Nodes = ()
    found: Floats = np.ones(len(tables[0][1]))
    tables = sorted(tables, key=lambda each: each[1].size)
    for left, (own, table) in zip(reversed(range(len(tables))), tables, strict=True):
        every = tuple(dict.fromkeys((*axes, *own)))
        kept = every if left else wanted
        _check.room(8 * len(found) * math.prod(sizes[axis] for axis in kept), "a table of the query")
        places = {axis: place for place, axis in enumerate(every, 1)}
        one, other, both = ([0, *[places[axis] for axis in some]] for some in (axes, own, kept))
        found, axes = np.einsum(found, one, table, other, both), kept  # type: ignore[arg-type]
        # Each draw by its largest number, which a long product would lose.
        top = found.reshape(len(found), -1).max(axis=1).reshape(-1, *[1] * len(axes))
        found = found / np.where(top > 0, top, 1)
    return found
