"""Graphs from and to what others have: graphs of other libraries, tables, matrices and data frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._optional import require
from quincunx._types import Facts, Ints
from quincunx.graphs._edges import EdgeList
from quincunx.graphs._others import library_of, parts_of, parts_of_frame, parts_of_sparse, parts_of_table
from quincunx.graphs._parts import graph_doc

if TYPE_CHECKING:
    import igraph
    import networkx
    import pandas
    import rustworkx
    import scipy.sparse


@graph_doc
class Conversions(EdgeList):
    """Ways into a graph and out of it."""

    __slots__ = ()

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Self:
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
        return cls._of_library(graph, "networkx")

    @classmethod
    def from_rustworkx(cls, graph: rustworkx.PyGraph) -> Self:
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
        return cls._of_library(graph, "rustworkx")

    @classmethod
    def from_igraph(cls, graph: igraph.Graph) -> Self:
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
        return cls._of_library(graph, "igraph")

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray | scipy.sparse.spmatrix) -> Self:
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
        return cls._trusted(*parts_of_sparse(matrix, "matrix"))

    @classmethod
    def from_relation(cls, relation: npt.ArrayLike) -> Self:
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
        return cls._trusted(*parts_of_table(relation, "relation"))

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, source: Hashable = "source", target: Hashable = "target") -> Self:
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
            If `frame` is not a DataFrame, or an end is not hashable.
        ValueError
            If a column is missing or several, or an end is missing (NaN).

        Examples
        --------
        >>> import pandas
        >>> from quincunx.graphs import Graph
        >>> calls = pandas.DataFrame({"source": ["Ann", "Bea"], "target": ["Bea", "Cid"]})
        >>> Graph.from_pandas(calls).neighbors("Bea")
        ('Ann', 'Cid')
        """
        return cls._trusted(*parts_of_frame(frame, source, target))

    @classmethod
    def _of_library(cls, graph: object, wanted: str) -> Self:
        """Return the graph of one library, named for messages."""
        library = library_of(graph)
        if library is None or library.name != wanted:
            article = "an" if wanted == "igraph" else "a"
            raise TypeError(f"`graph` must be {article} {wanted} graph, got {type(graph).__name__}")
        return cls._trusted(*parts_of(graph, library, "graph"))

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

    def _to_networkx(self, attributes: Iterable[Facts] | None = None) -> networkx.Graph:
        """Convert to networkx, with attributes of each edge."""
        networkx = require("networkx", "graph")
        parallel = len(np.unique(self._sorted_keys())) < len(self._edges)
        converted = networkx.MultiGraph() if parallel else networkx.Graph()
        labels = self.labels
        converted.add_nodes_from(labels)
        ends = ((labels[u], labels[v]) for u, v in self._edges.tolist())
        edges = ends if attributes is None else ((u, v, more) for (u, v), more in zip(ends, attributes, strict=True))
        converted.add_edges_from(edges)
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
        if self._num_vertices == 1 and len(self._edges):  # a 0 for each loop, then ones; networkx takes two bits a loop
            bits = "0" * len(self._edges) + "1" * (-len(self._edges) % 6)
            return ":@" + "".join(chr(63 + int(bits[i : i + 6], 2)) for i in range(0, len(bits), 6))
        plain = type(self)._trusted(self._num_vertices, self._edges).to_networkx()
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

    def to_numpy(self) -> Ints:
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
