"""Synthetic records from private marginals: a law that is a network of their columns, and its draws."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from quincunx import _check
from quincunx._categories import Categories, CategoriesLike
from quincunx._rng import RandomSource, generator
from quincunx._types import ByLabel, DataFrame, Floats, Ints
from quincunx.posterior._junction_tree import Columns
from quincunx.posterior._network import DiscreteBayesNet, PrivateBayesNet
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Nodes, marginal
from quincunx.privacy import PrivacyGuarantee, Release

#: Categories of a column that are distinguished, as tuples of codes.
Groups: TypeAlias = "tuple[tuple[int, ...], ...]"


@posterior_doc
class SyntheticBayesNet(PrivateBayesNet):
    """A law of records that was fitted to private marginals: everything in it may be published.

    `synthesize`, `fit_marginals` and the releases of `MarginalTree` and `AdaptiveMarginals` make it. It is a Bayesian
    network in which the parents of a column lie in the family of one before it: at most one parent with `MarginalTree`,
    the cliques of a junction tree else. What `PrivateBayesNet` does with its conditional probabilities this does too.

    Attributes
    ----------
    edges : tuple of (parent, child)
        Those of the network; with `MarginalTree` the pairs of columns that were selected and measured.
    marginals : dict
        Of tuple of columns to `Release`: what was measured, with the law of its noise, and of what was measured again
        the last, with the least noise. The axis of a column alone has its categories; the axes of several columns are
        their `groups`.
    groups : dict
        Of column to tuple of tuples of codes: categories too rare to be distinguished from the noise are one group, the
        last.
    n_records : int
        The number of records: public with `ReplaceOne`, a noisy one with `AddRemove`.
    counts : dict
        Of node to float64 array, axes (parents, node): expected records of the law.

    Examples
    --------
    >>> from quincunx.posterior import synthesize
    >>> records = [["dry", "dry"], ["rain", "wet"]] * 500
    >>> domain = {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]}
    >>> made = synthesize(records, 2.0, domain=domain)
    >>> made.edges, made.n_records
    ((('sky', 'road'),), 1000)
    >>> made.sample(rng=0).shape
    (1000, 2)
    """

    PUBLISHED: ClassVar[dict[str, str]] = {
        **PrivateBayesNet.PUBLISHED,
        **dict.fromkeys(("net", "edges", "marginals", "groups", "n_records"), "noise"),
    }

    def __init__(
        self,
        net: DiscreteBayesNet,
        *,
        cpds: dict[Hashable, Floats],
        guarantee: PrivacyGuarantee,
        n_records: int,
        marginals: Mapping[Nodes, Release],
        groups: Mapping[Hashable, Groups],
        mechanism: str = "mst",
    ) -> None:
        if not isinstance(net, DiscreteBayesNet):
            raise TypeError(f"`net` must be a DiscreteBayesNet, got {type(net).__name__}")
        shapes = {node: net._shape(node) for node in net.nodes}
        if not isinstance(cpds, dict) or {node: np.shape(table) for node, table in cpds.items()} != shapes:
            raise TypeError(f"`cpds` must be arrays by node, of the shapes {shapes}")
        for name, mapping in (("marginals", marginals), ("groups", groups)):
            if not isinstance(mapping, Mapping):
                raise TypeError(f"`{name}` must be a mapping, got {type(mapping).__name__}")
        number = _check.whole(n_records, "n_records", minimum=1)
        counts: dict[Hashable, Floats] = {}
        for node in net._order:
            parents = net.parents[node]
            above = np.array(float(number))
            if parents:
                wide = next((other for other in reversed(counts) if {*parents} <= {*net.family(other)}), None)
                if wide is None:
                    raise TypeError(f"`net` must have the parents of {node!r} in one family before it")
                above = marginal(counts[wide], net.family(wide), parents)
            counts[node] = above[..., None] * cpds[node]
        super().__init__(
            net,
            counts={node: counts[node] for node in net.nodes},
            cpds=cpds,
            guarantee=guarantee,
            mechanism=mechanism,
        )
        self.edges = tuple((parent, node) for node in net._order for parent in net.parents[node])
        self.marginals = dict(marginals)
        self.groups = dict(groups)
        self.n_records = number

    def __repr__(self) -> str:
        figures = f"n_records={self.n_records}, guarantee={self.guarantee}"
        return f"SyntheticBayesNet({len(self.net.nodes)} columns, {len(self.edges)} edges, {figures})"

    def sample(self, size: int | None = None, *, rng: RandomSource = None, stratified: bool = True) -> Ints | DataFrame:
        """Draw synthetic records.

        Parameters
        ----------
        size : int, optional
            Records; by default `n_records`.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of randomness: synthetic records need no protection beyond that of the fit.
        stratified : bool
            Whether the records are drawn together: each record has the fitted law, and within the records that share
            a parent's category the number of each category is its expectation, rounded up or down at random. So tables
            of the records are nearer to those of the law. False: independent records.

        Returns
        -------
        pandas.DataFrame
            A column for each of the domain, in its order: labels as categoricals, codes as int64. Without pandas an
            array of objects.

        {domain}

        Notes
        -----
        About 0.2 s for a million records of one column.

        Examples
        --------
        >>> from quincunx.posterior import synthesize
        >>> made = synthesize([[0, 0], [1, 2]] * 50, 3.0, domain={"a": 2, "b": 3})
        >>> made.sample(3, rng=0).columns.tolist()
        ['a', 'b']
        """
        count = self.n_records if size is None else _check.whole(size, "size", maximum=2**48)
        together, source = _check.flag(stratified, "stratified"), generator(rng)
        _check.room(8 * count * (len(self.net.nodes) + 8), "the table of records")
        codes = self._stratified(count, source) if together else self._codes(count, source)
        return self._table(codes, frame=True)

    def _stratified(self, count: int, source: np.random.Generator) -> Ints:
        """Draw records together, as codes: in each stratum ``floor(c_k + u) - floor(c_(k-1) + u)`` of category k.

        c are the partial sums of the expected numbers and u is uniform, so that the expectation is the law's and no
        number is off by one or more; which records of the stratum get which category is a random permutation.
        """
        records = np.zeros((count, len(self.net.nodes)), dtype=np.int64, order="F")  # columns are written in any order
        for node in self.net._order:
            parents = self.net.parents[node]
            order = source.permutation(count)
            sizes = np.array([count])
            if parents:
                shape = [self.net._sizes[parent] for parent in parents]
                above = np.ravel_multi_index([records[:, self.net._columns[parent]] for parent in parents], shape)
                sizes = np.bincount(above, minlength=math.prod(shape))
                short = above.astype(np.uint16) if len(sizes) <= 2**16 else above  # sorted by digits, without comparing
                order = order[np.argsort(short[order], kind="stable")]
            shares = np.cumsum(self.cpds[node].reshape(len(sizes), -1), axis=1)
            sums = np.floor(shares * sizes[:, None] + source.random((len(sizes), 1))).astype(np.int64)
            sums[:, -1] = sizes  # the shares sum to one but for roundings
            sums = np.minimum(sums, sizes[:, None])
            numbers = np.diff(sums, axis=1, prepend=0)
            codes = np.broadcast_to(np.arange(numbers.shape[1]), numbers.shape)
            records[order, self.net._columns[node]] = np.repeat(codes.reshape(-1), numbers.reshape(-1))
        return records


def domain_of(domain: ByLabel[CategoriesLike]) -> DiscreteBayesNet:
    """Return the network without edges of the columns of a domain."""
    if not isinstance(domain, Mapping):
        raise TypeError(f"`domain` must be a mapping by column, got {type(domain).__name__}")
    if not domain:
        raise ValueError("`domain` must name at least one column, got none")
    declared = {name: Categories.of(each, f"domain[{name!r}]", maximum=2**16) for name, each in domain.items()}
    return DiscreteBayesNet([], declared)


def of_conditionals(
    found: Iterable[tuple[int, Columns, Floats]],
    net: DiscreteBayesNet,
    guarantee: PrivacyGuarantee,
    n_records: int,
    marginals: Mapping[Nodes, Release],
    mechanism: str,
    groups: Sequence[Groups] | None = None,
    shares: Sequence[Floats] | None = None,
) -> SyntheticBayesNet:
    """Return a network of conditional probabilities (column, its parents, table): the column's axis is the last.

    Axes are those of groups of categories, of which each category has a share; by default each is its own group.
    """
    names, edges, cpds = net.nodes, [], {}
    if groups is None or shares is None:
        groups = [tuple((code,) for code in range(net._sizes[name])) for name in names]
        shares = [np.ones(net._sizes[name]) for name in names]
    places = [group_of(each) for each in groups]
    for column, parents, table in found:
        edges += [(names[parent], names[column]) for parent in parents]
        # The node's own axis first: rows of a group of parents stay equal bit for bit.
        own = table[..., places[column]] * shares[column]
        own /= own.sum(axis=-1, keepdims=True)
        cpds[column] = own[np.ix_(*(places[parent] for parent in parents))] if parents else own
    return SyntheticBayesNet(
        DiscreteBayesNet(edges, net.categories),
        cpds={names[column]: cpds[column] for column in sorted(cpds)},
        guarantee=guarantee,
        n_records=n_records,
        marginals=marginals,
        groups=dict(zip(names, groups, strict=True)),
        mechanism=mechanism,
    )


def group_of(groups: Groups) -> Ints:
    """Return the group of each category."""
    found = np.zeros(sum(len(group) for group in groups), dtype=np.int64)
    for place, group in enumerate(groups):
        found[list(group)] = place
    return found


def fraction_of(value: float) -> Fraction:
    """Return the simple fraction that a float rounds to, if it does not lie above: 1/10 for 0.1."""
    exact = Fraction(value)
    simple = exact.limit_denominator(10**6)
    return simple if simple <= exact and float(simple) == value else exact
