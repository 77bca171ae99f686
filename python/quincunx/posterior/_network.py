"""Discrete Bayesian networks, what a private fit of one may publish, and the posterior of its probabilities."""

import warnings
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quincunx import _check
from quincunx._optional import installed, require
from quincunx._progress import Progress
from quincunx._rng import RandomSource, generator
from quincunx._types import Array, Axes, ByLabel, DataFrame, Facts, Floats, Ints, NetworkX
from quincunx.errors import ConvergenceWarning
from quincunx.posterior import _account
from quincunx.posterior._mechanisms import fit
from quincunx.posterior._network_posterior import NetworkPosterior, drawn, joint
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._reconciled import reconciled
from quincunx.posterior._records import Records
from quincunx.posterior._structure import Nonneg, Structure
from quincunx.privacy import PrivacyGuarantee
from quincunx.privacy._relations import Relation

# Records drawn at once: some milliseconds.
_BLOCK = 1 << 18


@posterior_doc
class DiscreteBayesNet(Structure):
    """A directed acyclic graph over discrete variables, to be fitted to private data.

    Parameters
    ----------
    edges : iterable of (parent, child), networkx.DiGraph or pgmpy model
        The graph. The order in which a node's edges appear is the order of its parents.
    categories : mapping of node to int or sequence
        What each node may be, declared and never inferred from data: a number k for the codes 0..k-1, or labels. Its
        order is that of the data's columns; nodes without edges are those that appear only here.

    Attributes
    ----------
    nodes : tuple
        In the order of the columns.
    categories : dict
        Of node to number of categories, or tuple of labels.
    parents : dict
        Of node to tuple of parents.

    Raises
    ------
    ValueError, TypeError
        If the graph has a cycle, a repeated edge, a node without categories or one with more than 24 parents.

    Examples
    --------
    >>> from quincunx.posterior import DiscreteBayesNet
    >>> net = DiscreteBayesNet([("Y", "X1"), ("Y", "X2")], {"Y": 2, "X1": 2, "X2": 2})
    >>> net.count_sensitivity(), net.fourier_sensitivity(), len(net.fourier_closure())
    (4, 4, 6)
    >>> data = [[0, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, 0]]
    >>> fitted = net.fit_private(data, epsilon=1.0)
    >>> fitted.guarantee.epsilon, fitted.cpds["X1"].shape
    (1.0, (2, 2))
    >>> words = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
    >>> words.count_tables([["dry", "dry"], ["rain", "wet"], ["rain", "ice"]])["road"]
    array([[1, 0, 0],
           [0, 1, 1]])
    """

    def fit_private(
        self,
        data: Records,
        epsilon: float,
        mechanism: str = "auto",
        *,
        relation: Relation = _account.ONE,
        nonneg: Nonneg | None = None,
        smooth: float = 1.0,
        trim: float | None = None,
        insecure_seed: int | None = None,
    ) -> "PrivateBayesNet":
        """Fit the network's conditional probabilities with a guarantee.

        Parameters
        ----------
        data : array_like, shape (n, n_nodes), DataFrame, PackedRecords or Summary
            Records, or their sum; columns in the order of `categories`, or by name. One that is none of the categories
            declared is refused with its place, before anything is drawn or spent.
        epsilon : float
            Privacy level, > 0.
        mechanism : {"auto", "laplace", "fourier_l1", "fourier_linf", "posterior_sample", "map"}
            Noise on counts; noise on parities by the L1 or the L-infinity norm (binary nodes); one draw of the
            posterior on trimmed parameters; the exponential mechanism on the log-likelihood, which sharpens to its
            maximum. "auto" takes the smallest predicted error of a cell, which does not depend on the data.
        relation : ReplaceOne or AddRemove
            Who is protected. With `AddRemove` the number of records is private, too.
        nonneg : {"clip", "min_shift", "project"} or ("fixed_shift", t), optional
            How negative cells are dealt with, after the noise; by default "clip". Where "auto" draws there are none.
        smooth : float
            Each measured table's cells get ``smooth`` times its predicted cell deviation before probabilities are
            formed.
        trim : float, optional
            Of "map": each probability is at least this; by default 1/(4 K) for a node of K categories.
        insecure_seed : int, optional
            Makes the fit repeatable, for tests: the guarantee then says that it protects nobody.

        Returns
        -------
        PrivateBayesNet
            With `cpds`, `counts`, `guarantee`, `consistent`.

        {domain}
        TooLargeError
            If a table would be larger than 2**26 cells.
        """
        found = fit(self, data, epsilon, mechanism, relation, nonneg, smooth, trim, insecure_seed)
        return PrivateBayesNet(self, **found)


@posterior_doc
class PrivateBayesNet:
    """A fitted network: everything in it may be published.

    Attributes
    ----------
    net : DiscreteBayesNet
        The structure.
    cpds : dict
        Of node to float64 array with axes (parents in edge order, node); sums over the last axis are 1. Posterior means
        with a pseudo-count of 1 per cell where counts were released, else what was drawn.
    counts : dict
        Of node to array of exact Fractions with the same axes, after the treatment of negative cells; empty where
        probabilities were drawn.
    noisy_counts : dict or None
        The same before that treatment.
    coefficients : dict or None
        Of bit mask of columns to Fraction: the noisy Walsh-Hadamard coefficients of a Fourier mechanism.
    guarantee : PrivacyGuarantee
        Of the whole fit.
    mechanism : str
        What was used, never "auto".
    consistent : bool
        Whether tables that share nodes agree on them: false once clipping changed a table or smoothing differs between
        families, or where tables were measured apart.

    Examples
    --------
    >>> from quincunx.posterior import DiscreteBayesNet
    >>> net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 3})
    >>> fitted = net.fit_private([[0, 0], [1, 2], [1, 1]] * 200, epsilon=5.0)
    >>> fitted.sample(4, rng=1).shape
    (4, 2)
    >>> bool(fitted.log_likelihood([[1, 2], [0, 0]]) < 0)
    True
    """

    #: Where each attribute comes from, as for estimators; with `AddRemove` nothing else depends on the records' number.
    PUBLISHED: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("net", "mechanism", "guarantee"), "declared"),
        **dict.fromkeys(("cpds", "counts", "noisy_counts", "coefficients", "consistent"), "noise"),
    }

    def __init__(
        self,
        net: DiscreteBayesNet,
        *,
        cpds: dict[Hashable, Floats],
        guarantee: PrivacyGuarantee,
        mechanism: str,
        consistent: bool = True,
        counts: dict[Hashable, Array] | None = None,
        noisy_counts: dict[Hashable, Array] | None = None,
        coefficients: dict[int, Fraction] | None = None,
    ) -> None:
        if not isinstance(cpds, dict) or not all(isinstance(table, np.ndarray) for table in cpds.values()):
            raise TypeError(f"`cpds` must be arrays by node, got {type(cpds).__name__}")
        self.net = net
        self.counts = {} if counts is None else counts
        self.cpds = cpds
        self.guarantee = guarantee
        self.mechanism = mechanism
        self.consistent = consistent
        self.noisy_counts = noisy_counts
        self.coefficients = coefficients
        for table in cpds.values():
            table.flags.writeable = False

    def __repr__(self) -> str:
        figures = f"mechanism={self.mechanism!r}, epsilon={self.guarantee.epsilon}, consistent={self.consistent}"
        return f"PrivateBayesNet({len(self.net.nodes)} nodes, {figures})"

    def sample(self, size: int = 1, *, rng: RandomSource = None) -> "Ints | DataFrame":
        """Draw synthetic records.

        Parameters
        ----------
        size : int
            Records.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of randomness: synthetic records need no protection beyond that of the fit.

        Returns
        -------
        ndarray of int64, shape (size, n_nodes), or pandas.DataFrame
            Columns in the order of the categories; where labels were declared a data frame with the names of the nodes
            and labels, as categoricals (without pandas an array of objects).

        {domain}
        """
        count = _check.whole(size, "size", maximum=2**48)
        source = generator(rng)
        _check.room(8 * count * (len(self.net.nodes) + 3), "the table of records")
        return self._table(self._codes(count, source), frame=self.net._labelled)

    def _codes(self, count: int, source: np.random.Generator) -> Ints:
        """Draw records one by one, as codes."""
        records = np.zeros((count, len(self.net.nodes)), dtype=np.int64)
        for node in self.net._order:
            cumulative = np.cumsum(self.cpds[node], axis=-1)
            for start in range(0, count, _BLOCK):  # between blocks an interrupt is heard
                some = records[start : start + _BLOCK]
                sums = cumulative[tuple(some[:, self.net._columns[parent]] for parent in self.net.parents[node])]
                sums = np.broadcast_to(sums, (len(some), self.net._sizes[node]))
                uniform = source.random(len(some))
                some[:, self.net._columns[node]] = (uniform[:, None] >= sums[:, :-1]).sum(axis=1)
        return records

    def _table(self, records: Ints, *, frame: bool) -> "Ints | DataFrame":
        """Return records as they are, or as a data frame with the declared labels, where there are any."""
        if not frame:
            return records
        drawn = {node: (found, records[:, place]) for place, (node, found) in enumerate(self.net._declared.items())}
        if (pandas := installed("pandas")) is None:
            return np.stack([found.decode(codes).astype(object) for found, codes in drawn.values()], axis=1)
        return pandas.DataFrame(
            {
                node: codes if found.labels is None else pandas.Categorical.from_codes(codes, categories=found.labels)
                for node, (found, codes) in drawn.items()
            }
        )

    def to_pandas(self, node: Hashable) -> DataFrame:
        """Return the conditional probabilities of a node as a table with the categories of its family.

        {node}

        Returns
        -------
        pandas.DataFrame or pandas.Series
            A row for each configuration of the parents, a column for each category; of a node without parents a series.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If there is no such node.

        Examples
        --------
        >>> from quincunx.posterior import DiscreteBayesNet
        >>> net = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
        >>> fitted = net.fit_private([["dry", "dry"], ["rain", "wet"]] * 500, epsilon=2.0)
        >>> fitted.to_pandas("road").loc["rain"].idxmax()
        'wet'
        >>> fitted.sample(3, rng=0).columns.tolist()
        ['sky', 'road']
        """
        pandas = require("pandas", "pandas")
        *parents, columns = [
            pandas.Index(self.net._declared[other].decode(np.arange(self.net._sizes[other])), name=other)
            for other in self.net.family(node)
        ]
        table = self.cpds[node].reshape(-1, len(columns))
        if not parents:
            return pandas.Series(table[0], index=columns, name="probability")
        rows = parents[0] if len(parents) == 1 else pandas.MultiIndex.from_product(parents)
        return pandas.DataFrame(table, index=rows, columns=columns)

    def _record_log_likelihood(self, data: Records) -> Floats:
        flat, rows = self.net._data(data)
        table = flat.reshape(rows, len(self.net.nodes)).astype(np.int64)
        total = np.zeros(rows)
        for node in self.net.nodes:
            cells = tuple(table[:, self.net._columns[other]] for other in self.net.family(node))
            with np.errstate(divide="ignore"):
                total += np.log(self.cpds[node])[cells]
        return total

    def log_likelihood(self, data: Records) -> float:
        """Return the total log-likelihood of records, in nats.

        Parameters
        ----------
        data : array_like, shape (n, n_nodes) or DataFrame
            Records: a declared category of each node.

        Returns
        -------
        float
            In nats, the sum over records.

        {shaped}
        """
        return float(self._record_log_likelihood(data).sum())

    def query(self, nodes: Iterable[Hashable], given: ByLabel[Hashable] | None = None) -> Floats:
        """Return the joint law of some nodes given others, by the fitted probabilities.

        {query}

        Returns
        -------
        ndarray of float64, shape (categories of each node,)
            Its sum is 1.

        {no_query}

        Notes
        -----
        As `NetworkPosterior.query`, which has intervals.

        Examples
        --------
        >>> from quincunx.posterior import DiscreteBayesNet
        >>> net = DiscreteBayesNet([("sky", "road")], {"sky": ["dry", "rain"], "road": ["dry", "wet", "ice"]})
        >>> fitted = net.fit_private([["dry", "dry"], ["rain", "wet"]] * 500, epsilon=1.0)
        >>> bool(fitted.query(["sky"], given={"road": "wet"})[1] > 0.9)
        True
        """
        found: Floats = joint(self.net, {node: table[None] for node, table in self.cpds.items()}, nodes, given)[0]
        return found

    def posterior(
        self,
        n_draws: int = 1000,
        *,
        prior: float = 1.0,
        total: float | None = None,
        consistent: bool = False,
        n_records: int | None = None,
        n_chains: int = 4,
        n_warmup: int = 1000,
        thin: int = 1,
        progress: Progress = None,
        rng: RandomSource = None,
    ) -> "NetworkPosterior[PrivateBayesNet]":
        """Draw from the posterior of the conditional probabilities, given what was released and its noise.

        Parameters
        ----------
        n_draws : int
            Independent draws: each is exact. With `consistent`, draws of each chain.
        prior : float
            Pseudo-count of each cell, in [0.1, 1000]: probabilities of a measured table have a Dirichlet law of this
            concentration.
        total : float, optional
            Expected number of records, at least 1, by which the prior of counts is scaled; by default the mean sum of
            the noisy tables. It matters where cells have fewer records than noise. Not with `consistent`.
        consistent : bool
            Whether all tables are taken to count the same records, by chains over these records: narrower intervals
            where tables share nodes, in more time. Noise on parities is known by chains alone.
        n_records : int, optional
            The number of records, where it is public; by default it is drawn with the others, from a flat prior, if
            the release does not have it. With `consistent`.
        n_chains, n_warmup, thin : int
            Chains, sweeps of each that are not kept, and sweeps to a draw, with `consistent`.
        progress : bool or callable
            True for a bar on standard error, or a function of (sweeps done, of all), with `consistent`.
        rng : None, int, SeedSequence, BitGenerator or Generator
            Source of randomness: nothing but the release is looked at, so draws cost no privacy.

        Returns
        -------
        NetworkPosterior
            Draws by node, with intervals, conditional queries, networks and a DataTree.

        Warns
        -----
        ConvergenceWarning
            If chains over records disagree or have too few effective draws: `NetworkPosterior.diagnostics`.

        Raises
        ------
        ValueError
            If the mechanism added no noise, or to parities and `consistent` is false, a number is outside its range,
            `total` is given with `consistent` or `n_records` without.
        TooLargeError
            If the draws need more memory than is available, or the noise is so wide that a cell may have had any of
            eight million counts.

        Notes
        -----
        By default given is each table with its own noise: that tables which share nodes were counted from the same
        records is not made use of, so intervals are wider than those of the joint model. A node whose family lies
        within others is read from the smallest of their tables. Time grows with cells times (draws + 90 / exponent of
        the noise).

        With `consistent` the target is the law of records and probabilities given all tables [1]_. Rows of a measured
        table have the concentration `prior`; those of a node that is read from a wider table have `prior` times the
        cells of that table which one of its own is the sum of. So a complete graph, which has one measured table, has
        the same prior of probabilities either way, and the same posterior given the number of records; by default that
        number has a negative binomial prior about `total`, with `consistent` it is known or has a flat prior. Chains
        start from draws of the default, or from the tables that noisy parities say, scattered as their noise. A sweep
        takes some 80 ns for each record and node, 60 ms for 48842 records of 15 nodes; chains run side by side. It
        redraws records and probabilities in turn, and moves probabilities together with the records that follow them
        [2]_, so that chains go on where noise is much wider than the square root of counts; the warning says where they
        were too short. With parities a sweep takes some nanoseconds more for each record, node and parity with this
        node (``"fourier_l1"``) or parity at all (``"fourier_linf"``), and as much again for moves. Noise on parities
        that is narrow would hold chains where they are: it narrows during the first half of the warm-up, and chains
        whose parities stay as far from the release in all draws are warned of.

        References
        ----------
        .. [1] N. Ju, J. Awan, R. Gong, V. Rao (2022), Data augmentation MCMC for Bayesian inference from privatized
           data, NeurIPS 35.
        .. [2] Y. Yu, X.-L. Meng (2011), To center or not to center: that is not the question, Journal of Computational
           and Graphical Statistics 20.

        Examples
        --------
        >>> from quincunx.posterior import DiscreteBayesNet
        >>> net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2})
        >>> fitted = net.fit_private([[0, 0], [0, 1], [1, 1]] * 100, epsilon=1.0, mechanism="laplace", insecure_seed=1)
        >>> low, high = fitted.posterior(4000, rng=1).interval("B")[:, 1, 1].round(2).tolist()
        >>> 0.85 < low < high <= 1
        True
        >>> joint = fitted.posterior(500, consistent=True, n_records=300, n_warmup=200, rng=1)
        >>> joint.n_chains, len(joint), set(joint.counts["B"].sum(axis=(1, 2)).tolist())
        (4, 2000, {300})
        """
        if self.noisy_counts is None:
            raise ValueError(
                "the posterior given the noise is known where noise was added to counts or parities; "
                f"got {self.mechanism!r}"
            )
        if _check.flag(consistent, "consistent"):
            if total is not None:
                raise ValueError(f"`total` is for tables taken alone; with `consistent` give `n_records`, got {total}")
            from quincunx.posterior._network_records import sample_records

            chains = n_chains, n_warmup, n_draws, thin
            found = sample_records(self, prior, n_records, chains, progress, rng)
            if (message := found.complaint(self.mechanism)) is not None:
                warnings.warn(message, ConvergenceWarning, stacklevel=2)
            return NetworkPosterior(self, *found)
        if n_records is not None:
            raise ValueError(f"`n_records` is for `consistent=True`, got {n_records}")
        if self.coefficients is not None:
            raise ValueError(
                f"`consistent` must be True for parities, which are of all tables, got False with {self.mechanism!r}"
            )
        cpds = drawn(self.net, self.noisy_counts, self.guarantee, n_draws, prior, total, rng)
        return NetworkPosterior(self, cpds)

    def reconcile(self, *, n_records: int | None = None) -> "PrivateBayesNet":
        """Return the network whose tables agree with one another, fitted to all noisy tables at once.

        Parameters
        ----------
        n_records : int, optional
            The number of records, where it is public; by default what the noisy tables say.

        Returns
        -------
        PrivateBayesNet
            With `counts` of one law of all nodes, as floats, `cpds` that follow from them, and `consistent` true.
            Nothing but the release is looked at, so it costs no privacy.

        Raises
        ------
        ValueError
            If the mechanism is not ``"laplace"``: parities are consistent as they are.
        TooLargeError
            If the junction tree of the families needs more memory than there is.

        Notes
        -----
        Tables that share nodes were counted from the same records, so that each knows something of the others': their
        counts are those of one law of records, fitted to all noisy tables as `fit_marginals` does it. Time grows with
        the cells of the junction tree: exponentially in the treewidth.

        Examples
        --------
        >>> from quincunx.posterior import DiscreteBayesNet
        >>> net = DiscreteBayesNet([("A", "B"), ("A", "C")], {"A": 2, "B": 2, "C": 2})
        >>> fitted = net.fit_private([[0, 0, 1], [1, 1, 0]] * 99, epsilon=1.0, mechanism="laplace", insecure_seed=1)
        >>> agreed = fitted.reconcile()
        >>> fitted.consistent, agreed.consistent
        (False, True)
        >>> bool(abs(agreed.counts["B"].sum(axis=1) - agreed.counts["C"].sum(axis=1)).max() < 1e-9)
        True
        """
        if self.mechanism != "laplace" or self.noisy_counts is None:
            raise ValueError(f"tables that need to agree are those of the mechanism 'laplace', got {self.mechanism!r}")
        counts, cpds = reconciled(self.net, self.noisy_counts, self.guarantee, n_records)
        return PrivateBayesNet(
            self.net,
            counts={**counts},
            cpds=cpds,
            guarantee=self.guarantee,
            mechanism=self.mechanism,
            noisy_counts=self.noisy_counts,
        )

    def _with(self, cpds: dict[Hashable, Floats]) -> "PrivateBayesNet":
        """Return the same network with other probabilities, which were drawn."""
        return PrivateBayesNet(self.net, cpds=cpds, guarantee=self.guarantee, mechanism=self.mechanism)

    def to_networkx(self) -> NetworkX:
        """Return a networkx.DiGraph whose nodes carry `categories` and `cpd`.

        Returns
        -------
        networkx.DiGraph
        """
        graph = self.net.to_networkx()
        for node in self.net.nodes:
            graph.nodes[node]["cpd"] = self.cpds[node]
        return graph

    def to_pgmpy(self) -> NetworkX:
        """Return a pgmpy DiscreteBayesianNetwork with the same tables.

        Returns
        -------
        pgmpy.models.DiscreteBayesianNetwork

        Raises
        ------
        ImportError
            If pgmpy is not installed.
        """
        models, factors = require("pgmpy.models", "pgmpy"), require("pgmpy.factors.discrete", "pgmpy")
        found = models.DiscreteBayesianNetwork()
        found.add_nodes_from(self.net.nodes)
        found.add_edges_from((parent, node) for node in self.net.nodes for parent in self.net.parents[node])
        for node in self.net.nodes:
            size, parents = self.net._sizes[node], list(self.net.parents[node])
            values = self.cpds[node].reshape(-1, size).T
            more: Facts = {}
            if parents:
                more = {"evidence": parents, "evidence_card": [self.net._sizes[p] for p in parents]}
            if self.net._labelled:
                family = {other: self.net._declared[other] for other in self.net.family(node)}
                more["state_names"] = {other: a.decode(np.arange(len(a))).tolist() for other, a in family.items()}
            found.add_cpds(factors.TabularCPD(node, size, values.tolist(), **more))
        return found

    def draw(self, ax: "Axes | None" = None) -> Axes:
        """Draw the graph: `DiscreteBayesNet.draw`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        {axes}
        """
        return self.net.draw(ax)
