"""The lattices that have a name in the field."""

from quincunx import _check, _core
from quincunx._docs import assembled
from quincunx.lattices._box import CLOSED, MOST, Boundary, checked_twist, closed_axes
from quincunx.lattices._cut import aztec_diamond, four_eight_eight, generalized_aztec
from quincunx.lattices._lattice import Lattice
from quincunx.lattices._registry import LATTICES, registered
from quincunx.lattices._unit_cell import UnitCell, named_cell

PBC = tuple[bool, bool] | None


def _of(what: str, multigraph: str = "") -> str:
    """Return the sections of a lattice of so many cells, or vertices, along each axis."""
    return f"""
    Parameters
    ----------
    m, n : int
        {what} along the first and the second axis, >= 1.
    boundary, pbc, twist, multigraph
        As for `square`.{multigraph}

    Returns
    -------
    Lattice

    Raises
    ------
    TypeError, ValueError
        As `Lattice`.
    """


#: What all lattices of cells have in common, those with one vertex in a cell, and those that are simple in all sizes.
_of_cells = assembled(
    cells=_of("Cells"), vertices=_of("Vertices"), simple=_of("Cells", " No size makes a loop or parallel edges.")
)


def _build(kind: str, m: int, n: int, boundary: str, pbc: PBC, twist: int, multigraph: bool) -> Lattice:
    # The first test of each kind lets the common case through in tens of nanoseconds.
    if type(m) is not int or not 0 < m <= MOST:
        m = _check.whole(m, "m", minimum=1, maximum=MOST)
    if type(n) is not int or not 0 < n <= MOST:
        n = _check.whole(n, "n", minimum=1, maximum=MOST)
    if pbc is None and type(boundary) is str and boundary in CLOSED:
        closed = CLOSED[boundary]
    else:
        closed = closed_axes(boundary, pbc)
    if type(twist) is not int or twist != 0:
        twist = checked_twist(twist, (m, n), closed)
    cell = named_cell(kind)
    # The bonds of every named cell reach the next cell at most: from extent 3 on they cannot meet round the other side.
    if not _check.flag(multigraph, "multigraph") and ((closed[0] and m < 3) or (closed[1] and n < 3)):
        _core.check_simple(cell._parts(), (m, n), closed, twist)
    return Lattice._make(cell, (m, n), closed, twist)


def square(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the square lattice of ``m x n`` vertices.

    Parameters
    ----------
    m, n : int
        Vertices along the first and the second axis, >= 1.
    boundary : {"free", "cylinder", "torus"}, default "free"
        Whether no axis is closed, the second (`n` is the circumference), or both.
    pbc : (bool, bool), optional
        Which axes are closed, in place of `boundary`.
    twist : int, default 0
        On a torus, how far the first coordinate moves once round the second axis: ``(i, j + n) = (i + twist, j)``.
    multigraph : bool, default False
        Whether the loops (extent 1) and parallel edges (extent 2) of small closed axes are allowed.

    Returns
    -------
    Lattice

    Raises
    ------
    TypeError, ValueError
        As `Lattice`.

    Examples
    --------
    >>> from quincunx.lattices import square
    >>> square(2, 2).edges.tolist()
    [[0, 2], [0, 1], [1, 3], [2, 3]]
    >>> square(3, 4, "torus").num_edges
    24
    """
    return _build("square", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def king(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the king's lattice of ``m x n`` vertices: the square lattice with both diagonals of each square.

    Also known as the square lattice with crossed diagonals, or with Moore neighborhoods.

    {vertices}

    Examples
    --------
    >>> from quincunx.lattices import king
    >>> king(8, 8).num_edges
    210
    """
    return _build("king", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def triangular(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the triangular lattice of ``m x n`` vertices.

    To the square lattice it adds the diagonals from ``(i+1, j)`` to ``(i, j+1)``. The other choice, from ``(i, j)`` to
    ``(i+1, j+1)``, is the mirror image in the first axis: the same graph up to the names of the vertices, under each
    boundary.

    {vertices}

    Examples
    --------
    >>> from quincunx.lattices import triangular
    >>> triangular(2, 2).edges.tolist()
    [[0, 2], [0, 1], [1, 3], [2, 3], [2, 1]]
    """
    return _build("triangular", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def honeycomb(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the honeycomb (hexagonal) lattice of ``m x n`` cells of 2 vertices.

    {cells}

    Examples
    --------
    >>> from quincunx.lattices import honeycomb
    >>> honeycomb(4, 4, "torus")
    <Lattice 'honeycomb': 4 x 4 cells, torus, 32 vertices>
    """
    return _build("honeycomb", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def kagome(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the kagome (3-6-3-6) lattice of ``m x n`` cells of 3 vertices, the line graph of the honeycomb.

    {cells}

    Examples
    --------
    >>> from quincunx.lattices import kagome
    >>> kagome(3, 3, "torus").num_edges
    54
    """
    return _build("kagome", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def triangular_kagome(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the triangular kagome lattice of ``m x n`` cells of 9 vertices.

    Each triangle of the kagome lattice has a vertex more in the middle of each side, and these three are joined. It is
    the line graph of the 3-12-12 lattice.

    {cells}

    Examples
    --------
    >>> from quincunx.lattices import triangular_kagome
    >>> set(triangular_kagome(3, 3, "torus").graph.degrees().tolist())
    {4}
    """
    return _build("triangular-kagome", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def martini(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the martini lattice of ``m x n`` cells of 4 vertices.

    A triangle takes the place of every second vertex of the honeycomb.

    {cells}

    Examples
    --------
    >>> from quincunx.lattices import martini
    >>> martini(3, 3, "torus").num_edges
    54
    """
    return _build("martini", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def truncated_square(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the truncated square (4-8-8) lattice of ``m x n`` cells of 4 vertices.

    Whole cells are repeated, so on an open axis the outermost diamonds keep their outward tips. The section of whole
    octagons, without these, is `four_eight_eight`; on a torus both are the same graph, numbered in another order.

    {simple}

    Examples
    --------
    >>> from quincunx.lattices import four_eight_eight, truncated_square
    >>> truncated_square(3, 3).num_vertices, four_eight_eight(2, 2).num_vertices
    (36, 24)
    """
    return _build("4-8-8", m, n, boundary, pbc, twist, multigraph)


@_of_cells
def truncated_hexagonal(
    m: int, n: int, boundary: Boundary = "free", *, pbc: PBC = None, twist: int = 0, multigraph: bool = False
) -> Lattice:
    """Return the truncated hexagonal (3-12-12) lattice of ``m x n`` cells of 6 vertices.

    This is the honeycomb with a triangle in place of each vertex: ``honeycomb(m, n, boundary).clique_insert()``.

    {simple}

    Examples
    --------
    >>> from quincunx.lattices import honeycomb, truncated_hexagonal
    >>> truncated_hexagonal(3, 3) == honeycomb(3, 3).clique_insert()
    True
    """
    return _build("3-12-12", m, n, boundary, pbc, twist, multigraph)


def named(
    name: str,
    m: int,
    n: int | None = None,
    boundary: Boundary = "free",
    *,
    pbc: PBC = None,
    twist: int = 0,
    multigraph: bool = False,
) -> Lattice:
    """Return a lattice by the name it has in the field.

    Case does not matter, and words may be separated by a space, a hyphen or an underscore.

    ======================  ==================================================================  ======================
    name                    other names                                                         function
    ======================  ==================================================================  ======================
    ``square``              ``4-4-4-4``                                                         `square`
    ``king``                ``moore``, ``crossed-square``                                       `king`
    ``triangular``          ``3-3-3-3-3-3``                                                     `triangular`
    ``honeycomb``           ``hexagonal``, ``6-6-6``                                            `honeycomb`
    ``kagome``              ``3-6-3-6``, ``trihexagonal``                                       `kagome`
    ``triangular-kagome``                                                                       `triangular_kagome`
    ``martini``                                                                                 `martini`
    ``4-8-8``               ``truncated-square``, ``bathroom``, ``square-octagon``              `four_eight_eight`
    ``3-12-12``             ``truncated-hexagonal``                                             `truncated_hexagonal`
    ``3-6-24``              (honeycomb, cliques inserted twice)                                 `clique_insert`
    ``3-6-12-48``           (honeycomb, cliques inserted three times)                           `clique_insert`
    ``modified-bathroom``   (square, cliques inserted: 4-8-8 with crossed small squares)        `clique_insert`
    ``aztec-diamond``                                                                           `aztec_diamond`
    ``generalized-aztec``                                                                       `generalized_aztec`
    ======================  ==================================================================  ======================

    Parameters
    ----------
    name : str
        The name.
    m, n : int
        The sizes, as the lattice's own function takes them. An Aztec diamond has only `m`, its order.
    boundary : {"free", "cylinder", "torus"}, default "free"
        Whether no axis is closed, the second, or both. Aztec diamonds are free.
    pbc : (bool, bool), optional
        Which axes are closed, in place of `boundary`. Not for 4-8-8 and Aztec diamonds.
    twist : int, default 0
        On a torus, how far the first coordinate moves once round the second axis. Not for Aztec diamonds.
    multigraph : bool, default False
        Whether loops and parallel edges of small closed axes are allowed.

    Returns
    -------
    Lattice
        The same that its own function makes.

    Raises
    ------
    TypeError
        If `name` is not a str, or a size is not a whole number or is missing.
    ValueError
        If there is no lattice of that name, a size is less than 1, or the lattice does not have the boundary or twist.

    Examples
    --------
    >>> from quincunx.lattices import named
    >>> named("4-8-8", 20, 20, "torus")
    <Lattice '4-8-8': 20 x 20 octagons, torus, 1600 vertices>
    >>> named("hexagonal", 3, 3)
    <Lattice 'honeycomb': 3 x 3 cells, free, 18 vertices>
    """
    kind = registered(name, also=_REGIONS)
    _check.flag(multigraph, "multigraph")
    if kind == "aztec-diamond":
        if n is not None:
            raise TypeError(f"an Aztec diamond has one size, its order, got `n` = {n!r}")
        _only_free(kind, boundary, pbc, twist)
        return aztec_diamond(m)
    if n is None:
        raise TypeError(f"`n` must be given for the lattice {kind!r}")
    if kind == "generalized-aztec":
        _only_free(kind, boundary, pbc, twist)
        return generalized_aztec(m, n)
    if LATTICES[kind].cut and not _check.whole(twist, "twist", minimum=None):
        if pbc is not None:
            raise ValueError(f"`pbc` must be left out for the lattice {kind!r}, which has `boundary`")
        return four_eight_eight(m, n, boundary)
    return _build(kind, m, n, boundary, pbc, twist, multigraph)


def _only_free(kind: str, boundary: str, pbc: PBC, twist: int) -> None:
    if _check.whole(twist, "twist", minimum=None):
        raise ValueError(f"`twist` must be 0 for the lattice {kind!r}, got {twist}")
    if closed_axes(boundary, pbc) != (False, False):
        raise ValueError(
            f"`boundary` must be 'free' for the lattice {kind!r}, got {boundary if pbc is None else pbc!r}"
        )


#: Finite regions that are named as lattices are.
_REGIONS = ("aztec-diamond", "generalized-aztec")

#: The names `named` knows, without the aliases.
NAMES = (*LATTICES, *_REGIONS)


def unit_cell_of(lattice: "str | UnitCell | Lattice") -> UnitCell:
    """Return the unit cell of a lattice that is given by name or as an object of any size."""
    if isinstance(lattice, str):
        return named_cell(registered(lattice, "lattice"))
    if isinstance(lattice, Lattice):
        # Sections that are cut along lines of their own have a cell all the same.
        cell = named_cell(lattice.kind) if lattice.kind in LATTICES else lattice.unit_cell
    else:
        cell = lattice
    if not isinstance(cell, UnitCell):
        given = repr(lattice) if isinstance(lattice, Lattice) else type(lattice).__name__
        raise TypeError(f"`lattice` must be a name, a UnitCell or a Lattice that repeats one, got {given}")
    return cell
