"""The structure of discrete Bayesian networks: families, counts, parities, and their sensitivities."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from quincunx import _check, _core, _optional, _tables
from quincunx._categories import Categories, CategoriesLike
from quincunx._summary import Summary
from quincunx._types import Array, Axes, ByLabel, NetworkX
from quincunx.errors import TooLargeError
from quincunx.posterior import _account
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Codes, Counts, FamilyTables, Nodes, PackedRecords, Records, marginal
from quincunx.privacy import AddRemove, ReplaceOne
from quincunx.privacy._relations import Relation

#: A family of that many parents has 2**25 cells at the least, half of the most cells of a table: half a gigabyte of
#: doubles.
MOST_PARENTS = 24
MOST_CELLS = 2**26
Edges: TypeAlias = "NetworkX | Iterable[tuple[Hashable, Hashable]]"
#: How negative cells are dealt with.
Nonneg: TypeAlias = str | tuple[str, float]


@posterior_doc
class Structure:
    """The graph and the categories of a `DiscreteBayesNet`: its tables, their sums and how far neighbors move them."""

    def __init__(self, edges: "Edges", categories: ByLabel[CategoriesLike]) -> None:
        if not isinstance(categories, Mapping):
            raise TypeError(f"`categories` must be a mapping by node, got {type(categories).__name__}")
        self._declared: dict[Hashable, Categories] = {
            node: Categories.of(declared, f"categories[{node!r}]", maximum=2**16)
            for node, declared in categories.items()
        }
        if not self._declared:
            raise ValueError("`categories` must name at least one node, got none")
        self.categories: dict[Hashable, int | Nodes] = {node: found.declared for node, found in self._declared.items()}
        self.nodes: Nodes = tuple(self._declared)
        self._sizes: dict[Hashable, int] = {node: len(found) for node, found in self._declared.items()}
        lists: dict[Hashable, list[Hashable]] = {node: [] for node in self.nodes}
        for parent, child in _edges(edges, self._sizes):
            if parent in lists[child]:
                raise ValueError(f"`edges` must differ, got {parent!r} -> {child!r} twice")
            lists[child].append(parent)
        self.parents: dict[Hashable, Nodes] = {node: tuple(found) for node, found in lists.items()}
        for node, found in self.parents.items():
            if len(found) > MOST_PARENTS:
                raise ValueError(f"`edges` must give each node at most 24 parents, got {len(found)} of {node!r}")
        self._order = _topological(self.nodes, self.parents)

    def __repr__(self) -> str:
        edges = sum(len(found) for found in self.parents.values())
        return f"DiscreteBayesNet({len(self.nodes)} nodes, {edges} edges)"

    @cached_property
    def _columns(self) -> dict[Hashable, int]:
        return {node: place for place, node in enumerate(self.nodes)}

    @property
    def is_binary(self) -> bool:
        """Whether every node has two categories."""
        return all(size == 2 for size in self._sizes.values())

    def family(self, node: Hashable) -> Nodes:
        """Return the parents of a node, in the order of the edges, and the node.

        {node}

        Returns
        -------
        tuple
            The axes of its tables.

        Raises
        ------
        ValueError
            If there is no such node.
        """
        if node not in self.parents:
            raise ValueError(f"`node` must be one of {list(self.nodes)}, got {node!r}{_check.meant(node, self.nodes)}")
        return (*self.parents[node], node)

    def _shape(self, node: Hashable) -> tuple[int, ...]:
        return tuple(self._sizes[other] for other in self.family(node))

    def _checked_cells(self) -> None:
        for node in self.nodes:
            _check.room(8 * math.prod(self._shape(node)), f"the table of {node!r}", 8 * MOST_CELLS)

    @cached_property
    def measured(self) -> Nodes:
        """The nodes whose families are measured: those contained in no other's."""
        families = {node: frozenset(self.family(node)) for node in self.nodes}
        found: list[Hashable] = []
        for node in self.nodes:
            mine = families[node]
            later = self.nodes[self._columns[node] + 1 :]
            inside = any(mine < families[other] for other in self.nodes) or any(mine == families[o] for o in later)
            if not inside:
                found.append(node)
        return tuple(found)

    def _lone(self, relation: Relation) -> Nodes:
        """Return the binary nodes measured alone of which only the ones are, as the number of records is public."""
        replaced = isinstance(_account.relation_of(relation), ReplaceOne)
        return tuple(node for node in self.measured if replaced and self._shape(node) == (2,))

    def _wider(self, node: Hashable) -> Nodes:
        """Return the measured nodes whose families have that of a node."""
        family = set(self.family(node))
        return tuple(other for other in self.measured if family <= set(self.family(other)))

    # Data.

    def _data(self, data: Any) -> "Codes":
        """Return the codes of records; a value that is none of the declared categories is refused with its place."""
        if isinstance(data, Codes):
            return data
        if isinstance(data, (PackedRecords, Summary)):
            raise TypeError(f"`data` must be records one by one, got {type(data).__name__}")
        named = hasattr(data, "columns") and hasattr(data, "to_numpy")  # pandas and polars
        known = () if named else _tables.axes(data)
        if named or (len(known) == 2 and known[1].labels is not None):
            columns = list(data.columns) if named else list(known[1].labels or ())
            found = Counter(columns)
            if missing := [node for node in self.nodes if node not in found]:
                raise ValueError(f"`data` must have the columns {list(self.nodes)}, got none of {missing}")
            if several := [node for node in self.nodes if found[node] > 1]:
                raise ValueError(f"`data` must have the columns {list(self.nodes)} once, got {several[0]!r} again")
            table = data
            if not named and not _tables.is_arrow(data):
                table = dict(zip(columns, _check.unmasked(data, "data").T, strict=True))
            parts = [np.asarray(table[node]) for node in self.nodes]
            return self._coded(parts, [f"data[{node!r}]" for node in self.nodes])
        array = _check.unmasked(data, "data")
        if isinstance(data, (list, tuple)) and array.dtype.kind == "U":
            array = np.asarray(data, dtype=object)  # of words and numbers together NumPy made words
        width = len(self.nodes)
        if array.ndim == 1 and array.size == 0:
            array = array.reshape(0, width)
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError(f"`data` must have shape (n, {width}), got {array.shape}")
        if not self._labelled and array.dtype.kind in "biu":
            codes = array.view(np.uint8) if array.dtype == np.bool_ and array.flags.c_contiguous else array
            sizes = list(self._sizes.values())
            fits = codes.max(initial=0) < min(sizes) or (codes.max(axis=0, initial=0) < sizes).all()
            if fits and (codes.dtype.kind != "i" or codes.min(initial=0) >= 0):
                kind = np.uint8 if codes.dtype in (np.bool_, np.uint8) else np.int64
                return Codes(_check.laid_out(codes, kind).reshape(-1), len(codes))
        names = [f"data[:, {place}] ({node!r})" for place, node in enumerate(self.nodes)]
        return self._coded(list(array.T), names)

    def _coded(self, columns: list[Array], names: list[str]) -> "Codes":
        declared = self._declared.values()
        codes = [found.encode(column, name) for found, column, name in zip(declared, columns, names, strict=True)]
        return Codes(np.stack(codes, axis=1, dtype=np.int64, casting="unsafe").reshape(-1), len(codes[0]))

    @property
    def _labelled(self) -> bool:
        return any(found.labels is not None for found in self._declared.values())

    def count_tables(self, data: Records, nodes: Iterable[Hashable] | None = None) -> dict[Hashable, Counts]:
        """Count the families of nodes, without any protection.

        Parameters
        ----------
        data : array_like, shape (n, n_nodes), DataFrame or PackedRecords
            Records: a category of each node.
        nodes : iterable, optional
            Whose families; all of them if not given.

        Returns
        -------
        dict
            Of node to int64 array with axes (parents in edge order, node).

        {shaped}
        """
        _check.fits(nodes, "nodes")
        wanted = list(self.nodes if nodes is None else nodes)
        return self._tables(data, wanted)[0]

    def _tables(self, data: Records, wanted: list[Hashable]) -> tuple[dict[Hashable, Counts], int]:
        self._checked_cells()
        if isinstance(data, Summary):
            return self._of_summary(data, wanted), data.n
        families = [[self._columns[other] for other in self.family(node)] for node in wanted]
        if isinstance(data, PackedRecords):
            if data.width != len(self.nodes) or not self.is_binary:
                raise ValueError(f"`data` must be {len(self.nodes)} columns of binary nodes, got {data.width} columns")
            if data.names not in (None, self.nodes):  # which are packed in their order
                raise ValueError(f"`data` must be packed of the columns {list(self.nodes)}, got {list(data.names)}")
            tables, rows = data._bits.count(families), data.rows
        else:
            flat, rows = self._data(data)
            if self.is_binary:
                tables = _core.PackedBits(flat, len(self.nodes)).count(families)
            else:
                tables = _core.count_families(flat, list(self._sizes.values()), families)
        shaped = {node: table.reshape(self._shape(node)) for node, table in zip(wanted, tables, strict=True)}
        return shaped, rows

    # Summaries.

    def summarize(self, data: Records, *, unsafe: bool = False) -> Summary:
        """Return the tables that are measured, without any protection, so that parts of the records can be added.

        Noise is added once, by `fit_private`, to the sum.

        Parameters
        ----------
        data
            As for `count_tables`; a summary is returned as it is.
        unsafe : bool
            Whether the summary may be pickled: it holds exact counts of the records.

        Returns
        -------
        Summary
            To be added to others and given to `fit_private`.

        {shaped}

        Examples
        --------
        >>> from quincunx.posterior import DiscreteBayesNet
        >>> net = DiscreteBayesNet([("A", "B")], {"A": 2, "B": 2})
        >>> summary = net.summarize([[0, 1]] * 30) + net.summarize([[1, 1]] * 20)
        >>> summary == net.summarize([[0, 1], [1, 1]] * 20 + [[0, 1]] * 10), summary.n
        (True, 50)
        >>> net.fit_private(summary, 1.0).guarantee.epsilon
        1.0
        """
        if isinstance(data, Summary):
            self._of_summary(data, [])
            return data
        tables, rows = self._tables(data, list(self.measured))
        return Summary(self._summarized_as(), (FamilyTables(rows, tuple(tables.values())),), unsafe)

    def _summarized_as(self) -> str:
        families = {node: self.parents[node] for node in self.nodes}
        return f"DiscreteBayesNet({families!r}, {self.categories!r})"

    def _of_summary(self, summary: Summary, wanted: list[Hashable]) -> dict[Hashable, Counts]:
        """Return the tables of nodes, those within others as their sums."""
        if summary.model != self._summarized_as():
            raise ValueError("`data` must be a summary for this network, got one for another")
        parts = [part for part in summary.parts if isinstance(part, FamilyTables)]
        if not parts:
            return {node: np.zeros(self._shape(node), np.int64) for node in wanted}
        found = dict(zip(self.measured, parts[0].tables, strict=True))
        tables = {}
        for node in wanted:
            wider = self._wider(node)[0]
            tables[node] = marginal(found[wider], self.family(wider), self.family(node))
        return tables

    # Sensitivities.

    def count_sensitivity(self, relation: Relation = _account.ONE) -> int:
        """Return the L1 sensitivity of the tables that are measured.

        {neighbors}

        Returns
        -------
        int
            Replacing a record moves two cells of each table (one, of a lone binary node, of which only the ones are
            counted); adding one moves one.

        Raises
        ------
        ValueError
            If the relation is another.
        """
        cells = 2 if isinstance(_account.relation_of(relation), ReplaceOne) else 1
        return cells * len(self.measured) - len(self._lone(relation))

    def fourier_closure(self) -> tuple[frozenset[Hashable], ...]:
        """Return the sets of nodes whose parities determine all families: their subsets, the empty one included.

        Returns
        -------
        tuple of frozenset
            The empty set first, then by size.

        Raises
        ------
        ValueError
            If a node is not binary: the transform is for binary variables.
        """
        return tuple(frozenset(node for node in self.nodes if mask >> self._columns[node] & 1) for mask in self._masks)

    @cached_property
    def _masks(self) -> tuple[int, ...]:
        if not self.is_binary:
            raise ValueError("the Fourier mechanisms are for binary variables, got nodes of more categories")
        found = {0}
        for node in self.measured:
            bits = [1 << self._columns[other] for other in self.family(node)]
            if len(bits) > 20:
                raise TooLargeError(f"the parities of {node!r} need {8 << len(bits)} bytes", 8 << len(bits), 8 << 20)
            subsets = [0]
            for bit in bits:
                subsets += [mask | bit for mask in subsets]
            found.update(subsets)
        return tuple(sorted(found, key=lambda mask: (mask.bit_count(), mask)))

    def fourier_sensitivity(self, relation: Relation = _account.ONE) -> int:
        """Return how much the parity counts q change in sum (L1) between neighbors.

        {neighbors}

        Returns
        -------
        int
            For `ReplaceOne` ``M = max_z #{g : parity of g and z odd}`` up to 20 nodes, else its bound, the number of
            parities but the empty one. For `AddRemove` the number of all parities, of the coefficients themselves.

        Raises
        ------
        ValueError
            If the relation is another, or a node is not binary.
        """
        if isinstance(_account.relation_of(relation), AddRemove):
            return len(self._masks)
        if len(self.nodes) > 20:
            return len(self._masks) - 1
        return _core.parity_sensitivity(list(self._masks), len(self.nodes))

    def coefficients(self, data: Records) -> dict[frozenset[Hashable], int]:
        """Return the integer Walsh-Hadamard coefficients ``sum over records of (-1)**parity``, without any protection.

        Parameters
        ----------
        data
            As for `count_tables`.

        Returns
        -------
        dict
            Of set of nodes to int, for the sets of `fourier_closure`.

        Raises
        ------
        ValueError, TypeError
            If `data` does not fit, or a node is not binary.
        """
        found = self._coefficients(data)[0]
        return dict(zip(self.fourier_closure(), (found[mask] for mask in self._masks), strict=True))

    def _coefficients(self, data: Records) -> tuple[dict[int, int], int]:
        masks = self._masks
        tables, rows = self._tables(data, list(self.measured))
        found: dict[int, int] = {}
        for node, table in tables.items():
            values = _core.walsh_transform(table.reshape(-1)).tolist()
            found.update(zip(self._family_masks(node), values, strict=True))
        assert len(found) == len(masks)
        return found, rows

    def _family_masks(self, node: Hashable) -> list[int]:
        """Return the masks of a family's transform in its order: the node is the lowest bit of an index."""
        masks = [0]
        for other in reversed(self.family(node)):
            bit = 1 << self._columns[other]
            masks += [mask | bit for mask in masks]
        return masks

    def cell_deviation(
        self, node: Hashable, mechanism: str, epsilon: float, relation: Relation = _account.ONE
    ) -> float:
        """Return the predicted standard deviation of a cell of a node's table, which does not depend on data.

        {node}
        mechanism : {"laplace", "fourier_l1", "fourier_linf"}
            That adds noise.
        epsilon : float
            Level, > 0.
        relation : ReplaceOne or AddRemove
            About which neighbors.

        Returns
        -------
        float
            In records; for noise in real numbers, which that of whole numbers approaches.

        {domain}
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        width = len(self.family(node))
        if _check.one_of(mechanism, "mechanism", ("laplace", "fourier_l1", "fourier_linf")) == "laplace":
            return math.sqrt(2) * self.count_sensitivity(relation) / level
        replaced = isinstance(_account.relation_of(relation), ReplaceOne)
        terms = 2**width - (1 if replaced else 0)
        factor = 2.0 if replaced else 1.0  # noise of q counts twice in c
        dimension = len(self._masks) - (1 if replaced else 0)
        if mechanism == "fourier_l1":
            one = math.sqrt(2) * self.fourier_sensitivity(relation) / level
        else:
            one = math.sqrt((dimension + 1) * (dimension + 2) / 3) / level
        return factor * 2.0**-width * math.sqrt(terms) * one

    def to_networkx(self) -> NetworkX:
        """Return the graph as a networkx.DiGraph with a node attribute `categories`.

        Returns
        -------
        networkx.DiGraph
        """
        graph = _optional.require("networkx", "graph").DiGraph()
        graph.add_nodes_from((node, {"categories": declared}) for node, declared in self.categories.items())
        graph.add_edges_from((parent, node) for node in self.nodes for parent in self.parents[node])
        return graph

    def draw(self, ax: "Axes | None" = None) -> Axes:
        """Draw the graph in layers from the roots, with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where; new ones if not given.

        {axes}
        """
        networkx = _optional.require("networkx", "graph")
        ax = _optional.axes(ax)
        graph = self.to_networkx()
        depth: dict[Hashable, int] = {}
        for node in self._order:
            depth[node] = max((depth[parent] + 1 for parent in self.parents[node]), default=0)
            graph.nodes[node]["layer"] = depth[node]
        places = networkx.multipartite_layout(graph, subset_key="layer", align="horizontal")
        places = {node: (x, -y) for node, (x, y) in places.items()}
        networkx.draw_networkx(graph, places, ax=ax, node_color="white", edgecolors="black", node_size=900)
        ax.set_axis_off()
        return ax


def _edges(edges: "Edges", known: Mapping[Hashable, int]) -> list[tuple[Hashable, Hashable]]:
    """Return the edges of a list, a networkx graph or a pgmpy model."""
    if hasattr(edges, "edges"):
        if hasattr(edges, "is_directed") and not edges.is_directed():
            raise ValueError("`edges` must be a directed graph, got an undirected one")
        alone = [node for node in getattr(edges, "nodes", ()) if node not in known]
        if alone:
            raise ValueError(f"`categories` must name every node, got none for {alone[0]!r}")
        edges = edges.edges() if callable(edges.edges) else edges.edges
    found = []
    for edge in edges:
        try:
            parent, child = edge
        except (TypeError, ValueError):
            raise ValueError(f"`edges` must be pairs of parent and child, got {edge!r}") from None
        for node in (parent, child):
            if node not in known:
                raise ValueError(f"`categories` must name every node, got none for {node!r}")
        found.append((parent, child))
    return found


def _topological(nodes: Nodes, parents: dict[Hashable, Nodes]) -> Nodes:
    """Return the nodes, parents before children, or raise."""
    order: list[Hashable] = []
    placed: set[Hashable] = set()
    waiting = list(nodes)
    while waiting:
        ready = [node for node in waiting if all(parent in placed for parent in parents[node])]
        if not ready:
            raise ValueError(f"`edges` must have no cycle, got one among {waiting}")
        order += ready
        placed.update(ready)
        waiting = [node for node in waiting if node not in placed]
    return tuple(order)
