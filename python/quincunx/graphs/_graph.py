"""The `Graph` type: vertices `0..n-1`, an array of edges, and labels that never leave Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._html import table_html
from quincunx._tables import axes, is_sparse, refuse_other_order
from quincunx._types import Array, ByLabel, Ints
from quincunx.graphs._conversions import Conversions
from quincunx.graphs._edges import checked_edges, keys_of, pairs_of
from quincunx.graphs._others import library_of, parts_of, parts_of_sparse, parts_of_table
from quincunx.graphs._parts import graph_doc

if TYPE_CHECKING:
    import igraph
    import networkx
    import rustworkx
    import scipy.sparse

IntArray: TypeAlias = Ints


@graph_doc
class Graph(Conversions):
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

    __slots__ = ()

    def __init__(
        self, n: int, edges: npt.ArrayLike | Iterable[tuple[int, int]], labels: Iterable[Hashable] | None = None
    ) -> None:
        self._fill(*checked_edges(n, edges), labels)

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
        if isinstance(label, (bool, np.bool_)) and not self._has_truth_values():  # True == 1 is no name of vertex 1
            raise ValueError(f"`label` must be the label of a vertex, got {label!r}")
        if self._index is None:
            self._index = {name: vertex for vertex, name in enumerate(self.labels)}
        try:
            return self._index[label]
        except (KeyError, TypeError):
            raise ValueError(f"`label` must be the label of a vertex, got {label!r}") from None

    def _has_truth_values(self) -> bool:
        return self._labels is not None and any(isinstance(name, (bool, np.bool_)) for name in self._labels)

    def degrees(self) -> Ints:
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

    def _row(self, v: int) -> Ints:
        if self._rows is None:
            ends = self._edges[self._edges[:, 0] != self._edges[:, 1]]
            # One key per direction of an edge: sorted, they are the rows of the adjacency matrix one after the other.
            both = np.concatenate([ends, ends[:, ::-1]])
            sources, targets = pairs_of(np.unique(keys_of(both, self._num_vertices)), self._num_vertices).T.copy()
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
        return self._piece(self._marked(vertices))

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
        return self._piece(~self._marked(vertices))

    def _marked(self, vertices: Iterable[Hashable] | npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which vertices a user named, by their labels or by a truth value for each."""
        if isinstance(vertices, (str, bytes, Mapping)) or not isinstance(vertices, Iterable):
            raise TypeError(f"`vertices` must hold vertices, got {type(vertices).__name__}")
        if not isinstance(vertices, (np.ndarray, range, Set)):
            names = next((axis.labels for axis in axes(vertices)), None) or ()
            vertices = tuple(v for v in vertices)  # whatever length is claimed
            is_mask = len(vertices) == self._num_vertices and all(isinstance(v, (bool, np.bool_)) for v in vertices)
            if is_mask and not self._has_truth_values():
                rule = "`vertices` must have its truth values in the order of the vertices"
                refuse_other_order(names, self.labels, rule)
                vertices = np.array(vertices, dtype=np.bool_)
        if isinstance(vertices, np.ndarray) and vertices.dtype == np.bool_:
            _check.refuse_masked(vertices, "vertices")
            if vertices.shape != (self._num_vertices,):
                raise ValueError(f"`vertices` must have shape ({self._num_vertices},), got {vertices.shape}")
            return vertices
        chosen = np.zeros(self._num_vertices, dtype=np.bool_)
        chosen[[self._vertex(v, "vertices") for v in vertices]] = True
        return chosen

    def _piece(self, chosen: npt.NDArray[np.bool_]) -> Graph:
        numbers = np.flatnonzero(chosen)
        edges = (np.cumsum(chosen) - 1)[self._edges[chosen[self._edges].all(axis=1)]]
        return Graph._trusted(len(numbers), edges, [self.labels[v] for v in numbers.tolist()])

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

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[int, Ints, tuple[Hashable, ...] | None]]:
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
    "| scipy.sparse.spmatrix | Array | tuple[int, object]"
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
        return Graph._trusted(*parts_of_sparse(value, name))
    if isinstance(value, np.ndarray):
        return Graph._trusted(*parts_of_table(value, name))
    if isinstance(value, (tuple, list)) and len(value) == 2:
        if isinstance(value[0], (tuple, list)):
            raise TypeError(
                f"`{name}` must be a pair (n, edges), got edges alone: the number of vertices comes first, "
                "as in (3, [(0, 1), (1, 2)])"
            )
        return Graph._trusted(*checked_edges(*value))
    raise TypeError(
        f"`{name}` must be a Graph, a lattice, a networkx graph (rustworkx, igraph), a scipy.sparse matrix, "
        f"a square array or a pair (n, edges), got {type(value).__name__}"
        + (": a lattice by its name and size is quincunx.lattices.named(name, m, n)" if isinstance(value, str) else "")
    )


def shown_labels(labels: Sequence[Hashable]) -> str:
    """Return the first labels in words."""
    first = ", ".join(map(repr, labels[:6]))
    return f"{first}, ..." if len(labels) > 6 else first


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"
