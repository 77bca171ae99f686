"""The `Graph` type: vertices `0..n-1`, an array of edges, and labels that never leave Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._html import table_html
from quincunx._optional import require
from quincunx._types import Array, ByLabel
from quincunx.graphs._others import is_sparse, library_of, parts_of
from quincunx.graphs._parts import graph_doc

if TYPE_CHECKING:
    import igraph
    import networkx
    import pandas
    import rustworkx
    import scipy.sparse

IntArray: TypeAlias = npt.NDArray[np.int64]

#: The core numbers vertices in 32 bits.
_MOST_VERTICES = 2**32 - 1


@graph_doc
class Graph:
    """An undirected graph on the vertices ``0, ..., n-1``.

    The graph keeps its edges as they are given, in that order, with loops and parallel edges. It cannot be changed.
    Two graphs are equal if they have the same labels in the same order and the same edges, in any order and direction,
    each as many times.

    Parameters
    ----------
    n : int
        Number of vertices.
    edges : array_like of int, shape (m, 2), or iterable of pairs
        The two ends of each edge, vertices in ``0..n-1``. Copied.
    labels : sequence of hashable, optional
        A name for each vertex, all different; ``0..n-1`` if left out. Functions that answer in terms of vertices
        answer in these names.

    Raises
    ------
    TypeError
        If `n` or an end is not a whole number, or a label is not hashable.
    ValueError
        If `n` is negative or at least ``2**32``, an end is not a vertex, `edges` does not hold pairs, or the labels
        are not `n` different ones.

    See Also
    --------
    Graph.from_networkx, Graph.from_scipy, Graph.from_relation, quincunx.graphs.read_edges

    Examples
    --------
    >>> from quincunx.graphs import Graph
    >>> graph = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> graph
    <Graph: 4 vertices, 4 edges>
    >>> graph.neighbors(0)
    array([1, 3])
    """

    __slots__ = ("_canonical", "_edges", "_index", "_labels", "_num_vertices", "_rows")

    _num_vertices: int
    _edges: IntArray
    _labels: tuple[Hashable, ...] | None
    _canonical: bytes | None
    _index: dict[Hashable, int] | None
    _rows: tuple[IntArray, IntArray] | None

    def __init__(
        self, n: int, edges: npt.ArrayLike | Iterable[tuple[int, int]], labels: Iterable[Hashable] | None = None
    ) -> None:
        self._fill(*_checked(n, edges), labels)

    def _fill(self, n: int, edges: IntArray, labels: Iterable[Hashable] | None) -> None:
        edges.setflags(write=False)
        self._num_vertices = n
        self._edges = edges
        self._labels = _distinct(labels, n)
        self._canonical = self._index = self._rows = None

    @classmethod
    def _trusted(cls, n: int, edges: IntArray, labels: Iterable[Hashable] | None = None) -> Graph:
        """Take over arrays that are known to be right."""
        graph = cls.__new__(cls)
        graph._fill(n, edges, labels)
        return graph

    @classmethod
    def from_edges(
        cls, n: int, edges: npt.ArrayLike | Iterable[tuple[int, int]], labels: Iterable[Hashable] | None = None
    ) -> Graph:
        """Make a graph from its number of vertices and its edges, as the constructor does.

        Parameters
        ----------
        n, edges, labels
            As for the constructor.

        Returns
        -------
        Graph
            As the constructor makes it.

        Raises
        ------
        TypeError, ValueError
            As the constructor.

        Examples
        --------
        >>> from quincunx.graphs import Graph
        >>> Graph.from_edges(3, [(0, 1), (1, 2)], labels=["left", "middle", "right"]).labels
        ('left', 'middle', 'right')
        """
        return cls(n, edges, labels)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Graph:
        """Make a graph from an undirected networkx graph or multigraph.

        Vertices keep the order of ``graph.nodes`` and their names become the labels. Loops and parallel edges are kept,
        attributes are not.

        Parameters
        ----------
        graph : networkx.Graph or networkx.MultiGraph

        Returns
        -------
        Graph
            With the nodes as labels, in their order.

        Raises
        ------
        TypeError
            If `graph` is not a networkx graph.
        ValueError
            If it is directed.

        Examples
        --------
        >>> import networkx
        >>> from quincunx.graphs import Graph
        >>> Graph.from_networkx(networkx.petersen_graph())
        <Graph: 10 vertices, 15 edges>
        """
        return _from_library(graph, "networkx", "graph")

    @classmethod
    def from_rustworkx(cls, graph: rustworkx.PyGraph) -> Graph:
        """Make a graph from an undirected rustworkx graph.

        Vertices keep the order of the indices of the nodes, and edges that of theirs. The data of the nodes are the
        labels if they can be (hashable, all different, none of them `None`), else the indices. Loops and parallel
        edges are kept; data of edges are weights where a function has `weight=`.

        Parameters
        ----------
        graph : rustworkx.PyGraph

        Returns
        -------
        Graph
            With the data of the nodes, or their indices, as labels.

        Raises
        ------
        TypeError
            If `graph` is not a rustworkx graph.
        ValueError
            If it is directed.

        Examples
        --------
        >>> import rustworkx  # doctest: +SKIP
        >>> Graph.from_rustworkx(rustworkx.generators.hexagonal_lattice_graph(2, 2))  # doctest: +SKIP
        <Graph: 16 vertices, 19 edges>
        """
        return _from_library(graph, "rustworkx", "graph")

    @classmethod
    def from_igraph(cls, graph: igraph.Graph) -> Graph:
        """Make a graph from an undirected igraph graph.

        Vertices and edges keep their order; the attribute ``name`` of the vertices, where there is one, gives the
        labels. Loops and parallel edges are kept.

        Parameters
        ----------
        graph : igraph.Graph

        Returns
        -------
        Graph
            With the names as labels.

        Raises
        ------
        TypeError
            If `graph` is not an igraph graph.
        ValueError
            If it is directed, or two vertices have one name.

        Examples
        --------
        >>> import igraph  # doctest: +SKIP
        >>> Graph.from_igraph(igraph.Graph.Famous("petersen"))  # doctest: +SKIP
        <Graph: 10 vertices, 15 edges>
        """
        return _from_library(graph, "igraph", "graph")

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray | scipy.sparse.spmatrix) -> Graph:
        """Make a graph from the pattern of a sparse matrix.

        Vertices ``u`` and ``v`` are joined by one edge if ``A[u, v]`` or ``A[v, u]`` is stored and not zero: the
        pattern of ``A | A.T``, so that a triangular or otherwise one-sided matrix gives the same graph as the symmetric
        one. An entry on the diagonal is a loop. Values do not matter beyond being zero or not.

        Parameters
        ----------
        matrix : scipy.sparse array or matrix, shape (n, n)

        Returns
        -------
        Graph
            With an edge for each entry that is not zero.

        Raises
        ------
        TypeError
            If `matrix` is not a SciPy sparse array or matrix.
        ValueError
            If it is not square, or holds a NaN.

        Examples
        --------
        >>> import scipy.sparse
        >>> from quincunx.graphs import Graph
        >>> upper = scipy.sparse.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        >>> Graph.from_scipy(upper).edges.tolist()
        [[0, 1], [1, 2]]
        """
        return _from_scipy(matrix, "matrix")

    @classmethod
    def from_relation(cls, relation: npt.ArrayLike) -> Graph:
        """Make a graph from a table that says which vertices are adjacent, such as a dense adjacency matrix.

        Parameters
        ----------
        relation : array_like of bool or of 0 and 1, shape (n, n)
            Symmetric. A true entry on the diagonal is a loop.

        Returns
        -------
        Graph
            With an edge for each pair that is related.

        Raises
        ------
        TypeError
            If `relation` holds neither truth values nor numbers.
        ValueError
            If it is not square or not symmetric, or a number is neither 0 nor 1; the message names the first pair.

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.graphs import Graph
        >>> ages = np.array([30, 31, 33, 34])
        >>> Graph.from_relation(abs(ages[:, None] - ages) == 1).edges.tolist()
        [[0, 1], [2, 3]]
        """
        return _from_dense(relation, "relation")

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, source: Hashable = "source", target: Hashable = "target") -> Graph:
        """Make a graph from a table with one edge in each row.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            One row for each edge; further columns are not looked at.
        source, target : hashable
            The columns with the labels of the two ends.

        Returns
        -------
        Graph
            Its labels are the ends in the order in which they first occur, row by row.

        Raises
        ------
        TypeError
            If `frame` is not a DataFrame.
        ValueError
            If a column is missing, or an end is missing (NaN).

        Examples
        --------
        >>> import pandas
        >>> from quincunx.graphs import Graph
        >>> calls = pandas.DataFrame({"source": ["Ann", "Bea"], "target": ["Bea", "Cid"]})
        >>> Graph.from_pandas(calls).neighbors("Bea")
        ('Ann', 'Cid')
        """
        columns = getattr(frame, "columns", None)
        if columns is None:
            raise TypeError(f"`frame` must be a pandas.DataFrame, got {type(frame).__name__}")
        for name, column in (("source", source), ("target", target)):
            if column not in columns:
                raise ValueError(f"`{name}` must be a column of the table, got {column!r}; it has {list(columns)}")
        ends = list(zip(frame[source].to_list(), frame[target].to_list(), strict=True))
        numbers: dict[Hashable, int] = {}
        edges = np.empty((len(ends), 2), dtype=np.int64)
        for row, pair in enumerate(ends):
            for side, end in enumerate(pair):
                if end is None or end != end:
                    raise ValueError(f"`frame` must name both ends of each edge, got {pair!r} in row {row}")
                edges[row, side] = numbers.setdefault(end, len(numbers))
        return cls._trusted(len(numbers), edges, list(numbers))

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self._num_vertices

    @property
    def num_edges(self) -> int:
        """Number of edges, parallel ones counted one by one."""
        return len(self._edges)

    @property
    def edges(self) -> IntArray:
        """The ends of the edges, in the order given: read-only int64 array of shape ``(num_edges, 2)``."""
        return self._edges

    def __len__(self) -> int:
        return self._num_vertices

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        try:
            self.index(label)
        except ValueError:
            return False
        return True

    @property
    def nodes(self) -> Sequence[Hashable]:
        """The names of the vertices, as networkx calls them: the same as `labels`."""
        return self.labels

    @property
    def labels(self) -> Sequence[Hashable]:
        """The names of the vertices; ``range(n)`` if they have none of their own."""
        return range(self._num_vertices) if self._labels is None else self._labels

    def index(self, label: Hashable) -> int:
        """Return the vertex with a label.

        Parameters
        ----------
        label : hashable

        Returns
        -------
        int
            Its number.

        Raises
        ------
        ValueError
            If no vertex has this label.

        Examples
        --------
        >>> from quincunx.graphs import Graph
        >>> Graph(3, [(0, 1)], labels="abc").index("c")
        2
        """
        if self._index is None:
            self._index = {name: vertex for vertex, name in enumerate(self.labels)}
        try:
            return self._index[label]
        except (KeyError, TypeError):
            raise ValueError(f"`label` must be the label of a vertex, got {label!r}") from None

    def degrees(self) -> IntArray:
        """Return the number of edge ends at each vertex.

        Parallel edges count one by one and a loop counts twice, so that the degrees add up to twice the edges.

        Returns
        -------
        ndarray of int64, shape (num_vertices,)

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(4).degrees()
        array([1, 2, 2, 1])
        """
        _check.room(16 * self._num_vertices, "an array of degrees")
        return np.bincount(self._edges.ravel(), minlength=self._num_vertices).astype(np.int64, copy=False)

    def neighbors(self, v: Hashable) -> Any:
        """Return the distinct neighbors of a vertex in the order of the vertices, the vertex itself left out.

        Parameters
        ----------
        v : int or label
            A vertex in ``0..num_vertices-1``; its label in a graph with labels of its own.

        Returns
        -------
        ndarray of int64, or tuple of labels
            Read-only numbers; labels if the graph has labels of its own.

        Raises
        ------
        TypeError
            If `v` is not a whole number.
        ValueError
            If `v` is not a vertex, or not a label.

        Examples
        --------
        >>> from quincunx.graphs import Graph, cycle
        >>> cycle(5).neighbors(0)
        array([1, 4])
        >>> Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"]).neighbors("Bea")
        ('Ann', 'Cid')
        """
        found = self._row(self._vertex(v, "v"))
        return found if self._labels is None else tuple(self._labels[u] for u in found.tolist())

    def _vertex(self, v: Hashable, name: str) -> int:
        """Return the number of a vertex that a user named: by its label if the graph has labels of its own."""
        if self._labels is None:
            return _check.whole(v, name, minimum=0, maximum=self._num_vertices - 1)
        try:
            return self.index(v)
        except ValueError:
            raise ValueError(f"`{name}` must be the label of a vertex, got {v!r}") from None

    def _row(self, v: int) -> IntArray:
        if self._rows is None:
            ends = self._edges[self._edges[:, 0] != self._edges[:, 1]]
            # One key per direction of an edge: sorted, they are the rows of the adjacency matrix one after the other.
            both = np.concatenate([ends, ends[:, ::-1]])
            sources, targets = _pairs(np.unique(_keys(both, self._num_vertices)), self._num_vertices).T.copy()
            targets.setflags(write=False)
            self._rows = np.searchsorted(sources, np.arange(self._num_vertices + 1)), targets
        starts, targets = self._rows
        return targets[starts[v] : starts[v + 1]]

    def relabel(self, labels: Iterable[Hashable] | ByLabel[Hashable] | None) -> Graph:
        """Return the same graph with other names for its vertices.

        Parameters
        ----------
        labels : sequence of hashable, mapping or None
            A name for each vertex, or a mapping from old names to new ones (names it does not mention stay), or `None`
            for ``0..n-1``.

        Returns
        -------
        Graph
            The same vertices and edges.

        Raises
        ------
        TypeError
            If a label is not hashable.
        ValueError
            If the labels are not `num_vertices` different ones.

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(3).relabel({1: "center"}).labels
        (0, 'center', 2)
        """
        if isinstance(labels, Mapping):
            labels = [labels.get(label, label) for label in self.labels]
        return Graph._trusted(self._num_vertices, self._edges, labels)

    def subgraph(self, vertices: Iterable[Hashable] | npt.NDArray[np.bool_]) -> Graph:
        """Return the graph of some of the vertices and all edges between them.

        {chosen}

        Returns
        -------
        Graph
            Vertices keep their names, and vertices and edges their order: what had no labels has the numbers that were
            as labels. `relabel` with `None` numbers them anew.

        {unchosen}

        Examples
        --------
        >>> from quincunx.graphs import cycle
        >>> part = cycle(6).subgraph([1, 2, 3, 5])
        >>> part, part.labels
        (<Graph: 4 vertices, 2 edges>, (1, 2, 3, 5))
        """
        return self._piece(self._marked(vertices, "vertices"))

    def remove_vertices(self, vertices: Iterable[Hashable] | npt.NDArray[np.bool_]) -> Graph:
        """Return the graph without some of the vertices and the edges at them.

        {chosen}

        Returns
        -------
        Graph
            As `subgraph` of the other vertices.

        {unchosen}

        Examples
        --------
        >>> from quincunx.graphs import Graph
        >>> Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"]).remove_vertices(["Cid"]).labels
        ('Ann', 'Bea')
        """
        return self._piece(~self._marked(vertices, "vertices"))

    def _marked(self, vertices: Iterable[Hashable] | npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.bool_]:
        """Return which vertices a user named, by their labels or by a truth value for each."""
        if isinstance(vertices, np.ndarray) and vertices.dtype == np.bool_:
            if vertices.shape != (self._num_vertices,):
                raise ValueError(f"`{name}` must have shape ({self._num_vertices},), got {vertices.shape}")
            return vertices
        if isinstance(vertices, (str, bytes)) or not isinstance(vertices, Iterable):
            raise TypeError(f"`{name}` must hold vertices, got {type(vertices).__name__}")
        marks = np.zeros(self._num_vertices, dtype=np.bool_)
        marks[[self._vertex(v, name) for v in vertices]] = True
        return marks

    def _piece(self, kept: npt.NDArray[np.bool_]) -> Graph:
        numbers = np.flatnonzero(kept)
        edges = (np.cumsum(kept) - 1)[self._edges[kept[self._edges].all(axis=1)]]
        return Graph._trusted(len(numbers), edges, [self.labels[v] for v in numbers.tolist()])

    def to_networkx(self) -> networkx.Graph:
        """Convert to networkx; the nodes are the labels, in order.

        {networkx}

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> list(path(3).to_networkx().edges)
        [(0, 1), (1, 2)]
        """
        return self._to_networkx()

    def _to_networkx(self, attributes: Iterable[dict[str, Any]] | None = None) -> networkx.Graph:
        """Convert to networkx, with attributes of each edge."""
        networkx = require("networkx", "graph")
        parallel = len(np.unique(self._sorted_keys())) < len(self._edges)
        converted = networkx.MultiGraph() if parallel else networkx.Graph()
        labels = self.labels
        converted.add_nodes_from(labels)
        ends = ((labels[u], labels[v]) for u, v in self._edges.tolist())
        told = ends if attributes is None else ((u, v, more) for (u, v), more in zip(ends, attributes, strict=True))
        converted.add_edges_from(told)
        return converted

    def to_graph6(self) -> str:
        """Write the graph in the format graph6, or in sparse6 where there are loops or parallel edges, by networkx.

        Returns
        -------
        str
            One line without its end; labels are not in it.

        Raises
        ------
        ImportError
            If networkx is not installed.

        See Also
        --------
        quincunx.graphs.read_graph6

        Examples
        --------
        >>> from quincunx.graphs import cycle
        >>> cycle(5).to_graph6()
        'Dhc'
        """
        networkx = require("networkx", "graph")
        plain = self.relabel(None).to_networkx()
        simple = not plain.is_multigraph() and not (self._edges[:, 0] == self._edges[:, 1]).any()
        write = networkx.to_graph6_bytes if simple else networkx.to_sparse6_bytes
        return str(write(plain, header=False).decode().strip())

    def to_rustworkx(self) -> rustworkx.PyGraph:
        """Convert to rustworkx: vertices and edges keep their numbers, the data of the nodes are the labels.

        Returns
        -------
        rustworkx.PyGraph
            Its edges have no data.

        Raises
        ------
        ImportError
            If rustworkx is not installed.

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(3).to_rustworkx().edge_list()  # doctest: +SKIP
        EdgeList[(0, 1), (1, 2)]
        """
        converted = require("rustworkx", "rustworkx").PyGraph()
        converted.add_nodes_from(list(self.labels))
        converted.add_edges_from_no_data(list(map(tuple, self._edges.tolist())))
        return converted

    def to_igraph(self) -> igraph.Graph:
        """Convert to igraph: vertices and edges keep their numbers.

        Returns
        -------
        igraph.Graph
            With labels, where the graph has any of its own, as the attribute ``name`` of the vertices.

        Raises
        ------
        ImportError
            If igraph is not installed.

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(3).to_igraph().get_edgelist()  # doctest: +SKIP
        [(0, 1), (1, 2)]
        """
        converted = require("igraph", "igraph").Graph(self._num_vertices, self._edges.tolist())
        if self._labels is not None:
            converted.vs["name"] = list(self._labels)
        return converted

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the adjacency matrix.

        ``A[u, v]`` is the number of edges between ``u`` and ``v``; a loop adds 2 on the diagonal, so that the rows add
        up to the degrees.

        Returns
        -------
        scipy.sparse.csr_array of int64, shape (num_vertices, num_vertices)

        {memory}

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(3).to_scipy().toarray().tolist()
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        """
        from scipy.sparse import coo_array

        _check.room(16 * self._num_vertices + 80 * len(self._edges), "the adjacency matrix")
        rows = np.concatenate([self._edges[:, 0], self._edges[:, 1]])
        cols = np.concatenate([self._edges[:, 1], self._edges[:, 0]])
        shape = (self._num_vertices, self._num_vertices)
        return coo_array((np.ones(len(rows), dtype=np.int64), (rows, cols)), shape=shape).tocsr()

    def to_numpy(self) -> IntArray:
        """Return the adjacency matrix as a dense array, with the entries of `to_scipy`.

        Returns
        -------
        ndarray of int64, shape (num_vertices, num_vertices)

        {memory}

        Examples
        --------
        >>> from quincunx.graphs import path
        >>> path(3).to_numpy().tolist()
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        """
        _check.room(8 * self._num_vertices**2, "the dense matrix")
        matrix = np.zeros((self._num_vertices, self._num_vertices), dtype=np.int64)
        np.add.at(matrix, (self._edges[:, 0], self._edges[:, 1]), 1)
        np.add.at(matrix, (self._edges[:, 1], self._edges[:, 0]), 1)
        return matrix

    def _sorted_keys(self) -> npt.NDArray[np.uint64]:
        """Return the edges as numbers, without the order and direction they were given in."""
        return np.sort(_keys(np.sort(self._edges, axis=1), self._num_vertices))

    def _key(self) -> bytes:
        if self._canonical is None:
            self._canonical = self._sorted_keys().tobytes()
        return self._canonical

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        same_size = self._num_vertices == other._num_vertices and len(self._edges) == len(other._edges)
        return same_size and self._labels == other._labels and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self._num_vertices, self._labels, self._key()))

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[int, IntArray, tuple[Hashable, ...] | None]]:
        return Graph._trusted, (self._num_vertices, self._edges, self._labels)

    def _repr_html_(self) -> str:
        return table_html(
            "Graph", {"vertices": len(self), "edges": self.num_edges, "labels": shown_labels(self.labels)}
        )

    def __repr__(self) -> str:
        return f"<Graph: {counted(self._num_vertices, 'vertex', 'vertices')}, {counted(len(self._edges), 'edge')}>"


class _HasGraph(Protocol):
    """Something of ours that is a graph and more, such as a lattice."""

    def _as_graph(self) -> Graph: ...


#: What every function that takes a graph takes.
GraphLike: TypeAlias = (
    "Graph | _HasGraph | networkx.Graph | rustworkx.PyGraph | igraph.Graph | scipy.sparse.sparray "
    "| scipy.sparse.spmatrix | Array | tuple[int, Any]"
)


def as_graph(value: object, name: str = "graph") -> Graph:
    """Return the graph a user means, or raise with the argument's name.

    Takes a `Graph`, a lattice, an undirected graph of networkx, rustworkx or igraph, a SciPy sparse matrix (its
    pattern), a NumPy array of zeros and ones or a pair `(n, edges)`.
    """
    if isinstance(value, Graph):
        return value
    own = getattr(value, "_as_graph", None)
    if own is not None:
        graph: Graph = own()
        return graph
    library = library_of(value)
    if library is not None:
        return Graph._trusted(*parts_of(value, library, name))
    if is_sparse(value):
        return _from_scipy(value, name)
    if isinstance(value, np.ndarray):
        return _from_dense(value, name)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        if isinstance(value[0], (tuple, list)):
            raise TypeError(
                f"`{name}` must be a pair (n, edges), got edges alone: the number of vertices comes first, "
                "as in (3, [(0, 1), (1, 2)])"
            )
        return Graph._trusted(*_checked(*value))
    raise TypeError(
        f"`{name}` must be a Graph, a lattice, a networkx graph (rustworkx, igraph), a scipy.sparse matrix, "
        f"a square array or a pair (n, edges), got {type(value).__name__}"
        + (": a lattice by its name and size is quincunx.lattices.named(name, m, n)" if isinstance(value, str) else "")
    )


def shown_labels(labels: Sequence[Hashable], most: int = 6) -> str:
    """Return the first labels in words."""
    first = ", ".join(map(repr, labels[:most]))
    return f"{first}, ..." if len(labels) > most else first


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _checked(n: object, edges: object) -> tuple[int, IntArray]:
    """Return the number of vertices and a fresh array of edges, or raise."""
    n = _check.whole(n, "n", maximum=_MOST_VERTICES)
    if not isinstance(edges, (np.ndarray, Sequence)) and not hasattr(edges, "__array__"):
        if not isinstance(edges, Iterable):
            raise TypeError(f"`edges` must hold pairs of vertices, got {type(edges).__name__}")
        edges = list(edges)
    try:
        array = np.array(_check.counts(edges, "edges"))
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("`edges` must have shape (m, 2), got rows of different lengths") from None
    if array.size == 0 and array.ndim <= 2:
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"`edges` must have shape (m, 2), got {array.shape}")
    bad = (array >= n).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        rule = f"pairs of vertices in 0..{n - 1}" if n else "empty without vertices"
        raise ValueError(f"`edges` must be {rule}, got {tuple(array[row].tolist())} at row {row}")
    return n, array


def _distinct(labels: Iterable[Hashable] | None, n: int) -> tuple[Hashable, ...] | None:
    """Return n different labels, `None` if they are 0..n-1."""
    if labels is None:
        return None
    _check.fits(labels, "labels")
    names = tuple(name for name in labels)  # whatever length is claimed
    if len(names) != n:
        raise ValueError(f"`labels` must name {n} vertices, got {len(names)} labels")
    for name in names:
        try:
            hash(name)
        except TypeError:
            raise TypeError(f"`labels` must be hashable, got {type(name).__name__}") from None
    if len(set(names)) < n:
        seen: set[Hashable] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"`labels` must be different, got {twice!r} twice")
    plain = all(type(name) is int and name == vertex for vertex, name in enumerate(names))
    return None if plain else names


def _keys(edges: IntArray, n: int) -> npt.NDArray[np.uint64]:
    """Return one number per edge, `u*n + v`, which fits 64 bits because n is below 2**32."""
    ends = edges.astype(np.uint64)
    return ends[:, 0] * np.uint64(n) + ends[:, 1]


def _pairs(keys: npt.NDArray[np.uint64], n: int) -> IntArray:
    """Return the edges with these numbers."""
    return np.stack(np.divmod(keys, np.uint64(max(n, 1))), axis=1).astype(np.int64)


def _from_library(graph: object, wanted: str, name: str) -> Graph:
    """Return the graph of one library, named for messages."""
    library = library_of(graph)
    if library is None or library.name != wanted:
        raise TypeError(f"`{name}` must be {_AN.get(wanted, 'a')} {wanted} graph, got {type(graph).__name__}")
    return Graph._trusted(*parts_of(graph, library, name))


_AN = {"igraph": "an"}


def _from_dense(matrix: npt.ArrayLike, name: str) -> Graph:
    """Return the graph of a symmetric table of zeros and ones."""
    _check.fits(matrix, name)
    try:
        table = np.asarray(matrix)
    except ValueError:
        raise ValueError(f"`{name}` must be square, got rows of different lengths") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must hold truth values, got dtype {table.dtype}")
    neither = (table != 0) & (table != 1)
    if neither.any():
        u, v = (int(end) for end in np.argwhere(neither)[0])
        raise ValueError(f"`{name}` must hold truth values or 0 and 1, got {table[u, v]} at ({u}, {v})")
    table = table.astype(bool)
    wrong = table != table.T
    if wrong.any():
        u, v = (int(end) for end in np.argwhere(wrong)[0])
        raise ValueError(f"`{name}` must be symmetric, got {table[u, v]} at ({u}, {v}) and {table[v, u]} at ({v}, {u})")
    return Graph._trusted(len(table), np.argwhere(np.triu(table)).astype(np.int64))


def _from_scipy(matrix: object, name: str) -> Graph:
    if not is_sparse(matrix):
        raise TypeError(f"`{name}` must be a scipy.sparse array or matrix, got {type(matrix).__name__}")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {matrix.shape}")
    n = _check.whole(matrix.shape[0], name, maximum=_MOST_VERTICES)
    entries = matrix.tocoo()
    if entries.data.dtype.kind in "fc" and np.isnan(entries.data).any():
        raise ValueError(f"`{name}` must not hold NaN")
    stored = entries.data != 0
    rows, cols = entries.row[stored].astype(np.int64), entries.col[stored].astype(np.int64)
    ends = np.sort(np.stack([rows, cols], axis=1), axis=1)
    return Graph._trusted(n, _pairs(np.unique(_keys(ends, n)), n))
