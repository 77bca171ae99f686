"""Automorphism groups of graphs, and the orbits of a group on vertices and on pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._html import table_html
from quincunx._types import Ints
from quincunx.errors import TooLargeError
from quincunx.graphs._graph import Graph, GraphLike, as_graph, counted
from quincunx.graphs._orbitals import Orbitals
from quincunx.graphs._parts import graph_doc

#: The core numbers points in 32 bits.
_MOST = 2**32 - 1


@graph_doc
def automorphism_group(
    graph: GraphLike, colors: npt.ArrayLike | None = None, *, time_limit: float | None = None
) -> AutomorphismGroup:
    """Return the group of all automorphisms of a graph.

    An automorphism is a permutation of the vertices that maps edges to edges and others to others; with `colors` it
    also maps each vertex to one of the same color. Loops and the multiplicities of edges are ignored.

    {graph}
    colors : array_like of int, shape (n,), optional
        Whole numbers >= 0.
    time_limit : float, optional
        Seconds after which to give up.

    Returns
    -------
    AutomorphismGroup
        Acts on ``0..n-1``, the positions of the vertices; it knows their labels, in which
        `AutomorphismGroup.orbit_sets` and `AutomorphismGroup.cycles` answer.

    Raises
    ------
    TypeError
        If `graph` is no graph, or an argument is of a wrong type.
    ValueError
        If `colors` does not hold one whole number for each vertex, or `time_limit` is not positive.
    TimeoutError
        If the time is over before the search is.

    See Also
    --------
    AutomorphismGroup.hamming : the group of a Hamming graph without a search.

    Notes
    -----
    Individualization and refinement with automorphism pruning [1]_, on one thread. Graphs of 10,000 vertices with much
    symmetry take milliseconds, as do large sparse ones with little; strongly regular graphs and graphs of finite
    geometries are hard for every method of this kind. Ctrl-C is answered.

    References
    ----------
    .. [1] B. D. McKay and A. Piperno (2014), Practical graph isomorphism, II, J. Symbolic Comput. 60.

    Examples
    --------
    >>> from quincunx.graphs import automorphism_group, cycle, hamming
    >>> automorphism_group(cycle(6))
    <AutomorphismGroup: order 12 on 6 points>
    >>> automorphism_group(cycle(6), colors=[1, 0, 0, 1, 0, 0]).order
    4
    >>> automorphism_group(hamming(10, 2)).order == 2**10 * 3628800
    True
    """
    graph = as_graph(graph)
    if colors is not None:
        colors = _check.counts(colors, "colors")
        if colors.shape != (graph.num_vertices,):
            raise ValueError(f"`colors` must have shape ({graph.num_vertices},), got {colors.shape}")
        colors = np.unique(colors, return_inverse=True)[1].reshape(-1)
    if time_limit is not None:
        time_limit = _check.real(time_limit, "time_limit", positive=True)
    core = _core.PermutationGroup.of_graph(graph.num_vertices, graph.edges, colors, time_limit)
    return AutomorphismGroup._of(core, graph._labels)


@graph_doc
class AutomorphismGroup:
    """A group of permutations of ``0, ..., n-1``, such as the automorphisms of a graph.

    Made by `automorphism_group`, `AutomorphismGroup.from_generators` or `AutomorphismGroup.hamming`. A permutation is
    an array `p` that takes `v` to ``p[v]``. The group cannot be changed; it can be pickled.

    Attributes
    ----------
    num_points : int
        Number of points.
    generators : ndarray of int64, shape (k, num_points)
        Permutations that generate the group, one in each row; `cycles` lists only what they move.
    order : int
        Exact number of elements.
    orbits : ndarray of int64, shape (num_points,)
        For each point the number of its orbit; orbits are numbered by their first points.
    labels : sequence
        The names of the points: the labels of the graph that the group was found for.
    is_transitive : bool
        Whether there is at most one orbit.
    base : tuple of int
        Points of which only the identity fixes all.
    rank : int
        Number of orbits on ordered pairs.

    Notes
    -----
    A group that comes from a search or a family knows its order. For one from generators the order is worked out when
    it is first asked for, by a randomized Schreier-Sims method whose result is then proved.

    Examples
    --------
    >>> from quincunx.graphs import AutomorphismGroup, path, automorphism_group
    >>> group = automorphism_group(path(3))
    >>> group.order, group.orbits.tolist(), group.rank
    (2, [0, 1, 0], 5)
    >>> group.generators
    array([[2, 1, 0]])
    """

    __slots__ = ("_group", "_labels")

    _group: _core.PermutationGroup
    _labels: tuple[Hashable, ...] | None

    def __init__(self) -> None:
        raise TypeError(
            "an AutomorphismGroup is made by automorphism_group, AutomorphismGroup.from_generators "
            "or AutomorphismGroup.hamming"
        )

    @classmethod
    def _of(cls, core: _core.PermutationGroup, labels: tuple[Hashable, ...] | None = None) -> AutomorphismGroup:
        group = cls.__new__(cls)
        group._group, group._labels = core, labels
        return group

    @classmethod
    def from_generators(cls, n: int, generators: npt.ArrayLike, *, graph: GraphLike | None = None) -> AutomorphismGroup:
        """Return the group that some permutations generate.

        Parameters
        ----------
        n : int
            Number of points.
        generators : array_like of int, shape (k, n)
            One permutation in each row; ``k = 0`` gives the trivial group.
        graph : Graph, lattice, networkx graph, SciPy sparse matrix or pair (n, edges), optional
            A graph that the generators must be automorphisms of.

        Returns
        -------
        AutomorphismGroup
            Of all their products.

        Raises
        ------
        TypeError
            If an argument is of a wrong type.
        ValueError
            If a row is not a permutation of ``0..n-1``, or not an automorphism of `graph`; the message names the row
            and the first wrong entry or edge.

        Examples
        --------
        >>> from quincunx.graphs import AutomorphismGroup
        >>> AutomorphismGroup.from_generators(4, [[1, 2, 3, 0], [1, 0, 2, 3]])
        <AutomorphismGroup: order 24 on 4 points>
        """
        n = _check.whole(n, "n", maximum=_MOST)
        images = _check.counts(generators, "generators", minimum=None)
        if images.size == 0 and (images.ndim < 2 or not images.shape[0]):
            images = np.empty((0, n), dtype=np.int64)
        if images.ndim != 2 or images.shape[1] != n:
            raise ValueError(f"`generators` must have shape (k, {n}), got {images.shape}")
        edges = None
        if graph is not None:
            graph = as_graph(graph)
            if graph.num_vertices != n:
                raise ValueError(f"`graph` must have {counted(n, 'vertex', 'vertices')}, got {graph.num_vertices}")
            edges = graph.edges
        return cls._of(_core.PermutationGroup.of_images(n, images, edges), None if graph is None else graph._labels)

    @classmethod
    def hamming(cls, length: int, alphabet_size: int) -> AutomorphismGroup:
        """Return the group of all automorphisms of a Hamming graph, without a search.

        The wreath product of the symmetric groups on the letters and on the places: order
        ``factorial(alphabet_size)**length * factorial(length)`` for two letters or more.

        {words}

        Returns
        -------
        AutomorphismGroup
            Acts on the vertices of ``quincunx.graphs.hamming(length, alphabet_size)``; at most five generators.

        Raises
        ------
        TypeError
            If an argument is not a whole number.
        ValueError
            If an argument is too small.
        quincunx.errors.TooLargeError
            For more than ``2**26`` words.

        Examples
        --------
        >>> from quincunx.graphs import AutomorphismGroup
        >>> group = AutomorphismGroup.hamming(3, 2)
        >>> group.order, group.rank
        (48, 4)
        """
        length = _check.whole(length, "length", maximum=_MOST)
        alphabet_size = _check.whole(alphabet_size, "alphabet_size", minimum=1, maximum=_MOST)
        return cls._of(_core.PermutationGroup.of_hamming(length, alphabet_size))

    @property
    def num_points(self) -> int:
        """Number of points."""
        return self._group.points

    @property
    def generators(self) -> Ints:
        """Permutations that generate the group, shape (k, num_points)."""
        needed = 8 * self._group.points * self._group.generator_count
        limit = _check.memory_limit(None)
        if needed > limit:
            raise TooLargeError(
                f"the array of generators needs {needed} bytes, the limit is {limit} bytes; `cycles()` lists the "
                "points that move",
                needed,
                limit,
            )
        return self._group.generators()

    @property
    def order(self) -> int:
        """Exact number of elements."""
        return self._group.order()

    @property
    def orbits(self) -> Ints:
        """For each point the number of its orbit."""
        return self._group.orbits()

    @property
    def labels(self) -> Sequence[Hashable]:
        """The names of the points: those of the graph's vertices, else ``range(num_points)``."""
        return range(self.num_points) if self._labels is None else self._labels

    def orbit_sets(self) -> list[list[Hashable]]:
        """Return the orbits as lists of labels.

        Returns
        -------
        list of list
            One list for each orbit, in the order of `orbits`; labels in the order of the points.

        Examples
        --------
        >>> from quincunx.graphs import Graph, automorphism_group
        >>> trio = Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"])
        >>> automorphism_group(trio).orbit_sets()
        [['Ann', 'Cid'], ['Bea']]
        """
        sets: list[list[Hashable]] = []
        for label, orbit in zip(self.labels, self.orbits.tolist(), strict=True):
            if orbit == len(sets):
                sets.append([])
            sets[orbit].append(label)
        return sets

    def cycles(self) -> list[list[tuple[Hashable, ...]]]:
        """Return the generators as products of disjoint cycles of labels, fixed points left out.

        Returns
        -------
        list of list of tuple
            One list of cycles for each row of `generators`.

        Notes
        -----
        Time and memory are those of the points moved, where `generators` has an entry for every point: a random graph
        of a million vertices with mean degree 6 has 2600 generators that move two points each, an array of 20.7 GB.

        Examples
        --------
        >>> from quincunx.graphs import Graph, automorphism_group
        >>> trio = Graph(3, [(0, 1), (1, 2)], labels=["Ann", "Bea", "Cid"])
        >>> automorphism_group(trio).cycles()
        [[('Ann', 'Cid')]]
        """
        _, moves, lengths, *_ = self._group.state()
        names = self.labels
        found: list[list[tuple[Hashable, ...]]] = []
        rest = iter(moves.tolist())
        for length in lengths.tolist():
            # The points that it moves, rising, each with its image.
            images = dict(itertools.islice(rest, length))
            cycles = []
            for start in list(images):
                if start not in images:
                    continue
                cycle, point = [start], images.pop(start)
                while point != start:
                    cycle.append(point)
                    point = images.pop(point)
                cycles.append(tuple(names[point] for point in cycle))
            found.append(cycles)
        return found

    @property
    def is_transitive(self) -> bool:
        """Whether there is at most one orbit."""
        return self._group.is_transitive()

    @property
    def base(self) -> tuple[int, ...]:
        """Points of which only the identity fixes all."""
        return tuple(self._group.base().tolist())

    @property
    def rank(self) -> int:
        """Number of orbits on ordered pairs of points."""
        return self._group.rank(_check.memory_limit(None))

    def contains(self, permutation: npt.ArrayLike) -> bool:
        """Tell whether a permutation belongs to the group.

        Parameters
        ----------
        permutation : array_like of int, shape (num_points,)
            The images of all points.

        Returns
        -------
        bool
            Whether the group holds it.

        Raises
        ------
        TypeError
            If `permutation` does not hold whole numbers.
        ValueError
            If it is not a permutation of the points; the message names the first wrong entry.

        Examples
        --------
        >>> from quincunx.graphs import automorphism_group, cycle
        >>> group = automorphism_group(cycle(4))
        >>> group.contains([1, 2, 3, 0]), group.contains([1, 0, 2, 3])
        (True, False)
        """
        images = _check.counts(permutation, "permutation")
        if images.shape != (self.num_points,):
            raise ValueError(f"`permutation` must have shape ({self.num_points},), got {images.shape}")
        return self._group.contains(images)

    def __contains__(self, permutation: npt.ArrayLike) -> bool:
        return self.contains(permutation)

    def stabilizer(self, v: Hashable) -> AutomorphismGroup:
        """Return the subgroup that fixes a point.

        {point}

        Returns
        -------
        AutomorphismGroup
            The elements that keep the point where it is.

        {no_point}

        Examples
        --------
        >>> from quincunx.graphs import automorphism_group, cycle
        >>> stabilizer = automorphism_group(cycle(6)).stabilizer(0)
        >>> stabilizer.order, stabilizer.orbits.tolist()
        (2, [0, 1, 2, 3, 2, 1])
        """
        return AutomorphismGroup._of(self._group.stabilizer(self._point(v)), self._labels)

    def transversal(self, v: Hashable) -> tuple[Ints, Ints]:
        """Return the orbit of a point, with a group element for each of its points.

        {point}

        Returns
        -------
        points : ndarray of int64, shape (m,)
            The orbit of `v`, rising.
        elements : ndarray of int64, shape (m, num_points)
            Row `i` is an element of the group that takes `v` to ``points[i]``.

        {no_point}
        quincunx.errors.TooLargeError
            If the rows do not fit into memory.

        Examples
        --------
        >>> from quincunx.graphs import automorphism_group, path
        >>> points, elements = automorphism_group(path(3)).transversal(2)
        >>> points, elements
        (array([0, 2]), array([[2, 1, 0],
               [0, 1, 2]]))
        """
        return self._group.transversal(self._point(v), _check.memory_limit(None))

    def orbitals(self, *, memory_limit: int | None = None) -> Orbitals:
        """Return the orbits of the group on ordered pairs of points.

        Parameters
        ----------
        memory_limit : int, optional
            Bytes that may be used; what is available if left out.

        Returns
        -------
        Orbitals
            Those of ordered pairs, each with its number and size.

        Raises
        ------
        quincunx.errors.TooLargeError
            For more than 65536 points, or if two bytes for each pair are more than `memory_limit`.

        Notes
        -----
        The group is never listed: one vertex orbit and one stabilizer at a time, ``O(n**2)`` in all.

        Examples
        --------
        >>> from quincunx.graphs import automorphism_group, path
        >>> orbitals = automorphism_group(path(3)).orbitals()
        >>> orbitals.labels()
        array([[0, 1, 2],
               [3, 4, 3],
               [2, 1, 0]], dtype=int32)
        """
        return Orbitals._of(
            self._group.orbitals(_check.memory_limit(memory_limit)), (AutomorphismGroup.orbitals, (self,))
        )

    def _point(self, v: Hashable) -> int:
        return Graph._trusted(self.num_points, np.empty((0, 2), dtype=np.int64), self._labels)._vertex(v, "v")

    def __reduce__(self) -> tuple[Callable[..., AutomorphismGroup], tuple[object, ...]]:
        return _restored, (self._labels, *self._group.state())

    def _repr_html_(self) -> str:
        return table_html(
            "AutomorphismGroup",
            {
                "order": _check.shown(self.order),
                "points": self.num_points,
                "orbits": int(self.orbits.max(initial=-1)) + 1,
            },
        )

    def __repr__(self) -> str:
        if self.num_points <= 1000 or self._group.is_order_known:
            return f"<AutomorphismGroup: order {_check.shown(self.order)} on {counted(self.num_points, 'point')}>"
        return f"<AutomorphismGroup: on {counted(self.num_points, 'point')}>"


def _restored(labels: tuple[Hashable, ...] | None, *state: *_core._GroupState) -> AutomorphismGroup:
    return AutomorphismGroup._of(_core.PermutationGroup.from_state(*state), labels)
