"""Standard families of graphs."""

from quincunx import _check, _core
from quincunx.graphs._graph import Graph
from quincunx.graphs._parts import graph_doc

#: Sizes beyond this are refused here, so that what the core gets fits a machine word.
_MOST = 2**32 - 1


@graph_doc
def path(n: int) -> Graph:
    """Return the path with `n` vertices, each joined to the next.

    {order}

    Examples
    --------
    >>> from quincunx.graphs import path
    >>> path(4).edges.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return Graph._trusted(*_core.grid([_check.whole(n, "n", maximum=_MOST)]))


def cycle(n: int, *, multigraph: bool = False) -> Graph:
    """Return the cycle with `n` vertices.

    Parameters
    ----------
    n : int
        Number of vertices, >= 3; also 1 (a loop) and 2 (a double edge) if `multigraph`.
    multigraph : bool, default False
        Whether loops and parallel edges are allowed.

    Returns
    -------
    Graph
        Vertex ``i`` is joined to ``i + 1``, and the last to the first.

    Raises
    ------
    TypeError
        If `n` is not a whole number.
    ValueError
        If `n` is less than 1, or less than 3 without `multigraph`, or at least ``2**32``.

    Examples
    --------
    >>> from quincunx.graphs import cycle
    >>> cycle(4).edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 0]]
    >>> cycle(2, multigraph=True).edges.tolist()
    [[0, 1], [1, 0]]
    """
    return _closed([_check.whole(n, "n", minimum=1, maximum=_MOST)], "n", multigraph)


@graph_doc
def complete(n: int) -> Graph:
    """Return the complete graph: every two of `n` vertices are joined.

    {order}
    TooLargeError
        If there is no memory for the edges.

    Examples
    --------
    >>> from quincunx.graphs import complete
    >>> complete(3).edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return Graph._trusted(*_core.complete(_check.whole(n, "n", maximum=_MOST)))


@graph_doc
def grid(*shape: int) -> Graph:
    """Return the grid with the given extents, in any number of dimensions.

    The vertices are the points ``(x_1, ..., x_d)`` with ``0 <= x_i < shape[i]``, numbered in C order; two are joined if
    they differ by one in one coordinate.

    Parameters
    ----------
    *shape : int
        Vertices along each axis, >= 0; at least one axis.

    {extents}
        If an extent is negative or there are ``2**32`` vertices or more.

    See Also
    --------
    quincunx.lattices.square : the same in two dimensions, with positions and boundaries.

    Examples
    --------
    >>> from quincunx.graphs import grid
    >>> grid(2, 3)
    <Graph: 6 vertices, 7 edges>
    >>> grid(2, 2, 2).degrees().tolist()
    [3, 3, 3, 3, 3, 3, 3, 3]
    """
    return Graph._trusted(*_core.grid(_extents(shape, 0)))


@graph_doc
def torus(*shape: int, multigraph: bool = False) -> Graph:
    """Return the grid with the given extents and every axis closed to a ring.

    Parameters
    ----------
    *shape : int
        Vertices along each axis, >= 3; also 1 (loops) and 2 (parallel edges) if `multigraph`. At least one axis.
    multigraph : bool, default False
        Whether loops and parallel edges are allowed.

    {extents}
        If an extent is less than 1, or less than 3 without `multigraph`, or there are ``2**32`` vertices or more.

    Examples
    --------
    >>> from quincunx.graphs import torus
    >>> torus(3, 4)
    <Graph: 12 vertices, 24 edges>
    """
    return _closed(_extents(shape, 1), "shape", multigraph)


@graph_doc
def hamming(length: int, alphabet_size: int) -> Graph:
    """Return the Hamming graph: words over an alphabet, joined when they differ in one position.

    The vertices are the ``alphabet_size**length`` words in lexicographic order: word ``w`` is the number with the
    digits ``w_1 ... w_length`` in base `alphabet_size`. With two letters this is the hypercube. Databases of `length`
    people with `alphabet_size` possible records each, joined when one record differs, form this graph.

    {words}

    Returns
    -------
    Graph
        With ``length (alphabet_size - 1)`` neighbors of each word.

    Raises
    ------
    TypeError
        If an argument is not a whole number.
    ValueError
        If an argument is too small, or there are ``2**32`` words or more.

    Examples
    --------
    >>> from quincunx.graphs import hamming
    >>> hamming(3, 2)
    <Graph: 8 vertices, 12 edges>
    >>> hamming(2, 3).neighbors(0).tolist()
    [1, 2, 3, 6]
    """
    length = _check.whole(length, "length", maximum=_MOST)
    alphabet_size = _check.whole(alphabet_size, "alphabet_size", minimum=1, maximum=_MOST)
    return Graph._trusted(*_core.hamming(length, alphabet_size))


def _extents(shape: tuple[int, ...], minimum: int) -> list[int]:
    if not shape:
        raise TypeError("`shape` must have at least one extent, got none")
    return [_check.whole(extent, "shape", minimum=minimum, maximum=_MOST) for extent in shape]


def _closed(shape: list[int], name: str, multigraph: bool) -> Graph:
    if not _check.flag(multigraph, "multigraph") and min(shape) < 3:
        found = shape[0] if name == "n" else tuple(shape)
        reason = "a loop arises" if min(shape) == 1 else "parallel edges arise"
        raise ValueError(f"`{name}` must be at least 3, else {reason} (see `multigraph`), got {found}")
    return Graph._trusted(*_core.torus(shape))
