"""Unit cells: the sites and bonds that a lattice repeats."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quincunx import _check, _core
from quincunx.errors import TooLargeError
from quincunx.graphs._edges import refuse_unordered
from quincunx.lattices._bonds import Bond, Surroundings, Vector, unlisted
from quincunx.lattices._registry import LATTICES, registered

if TYPE_CHECKING:
    import numpy.typing as npt

#: What classes of bonds are told apart by.
Color: TypeAlias = int | str

#: Clique insertion of named cells that have a name themselves.
_INSERTED = {row.inserted_into: row.name for row in LATTICES.values() if row.inserted_into}

# A cell is held as Python tuples: more of them would be a lattice of its own.
_MOST_TUPLES = 2**18
# Steps that are asked for, and numbers of shells: a cell that grows is refused for its size long before.
_MOST_TIMES = 1000


class UnitCell:
    """The part of a lattice that repeats.

    Site ``s`` of cell ``(i, j)`` lies at ``i*a1 + j*a2 + offset[s]``. A bond ``(u, v, (dx, dy))`` joins site ``u`` of
    each cell ``(i, j)`` to site ``v`` of cell ``(i+dx, j+dy)``; each edge of the infinite lattice is listed once.
    A unit cell cannot be changed; two are equal if their numbers and colors are.

    Parameters
    ----------
    basis_vectors : array_like, shape (2, 2)
        The vectors ``a1`` and ``a2`` from a cell to the next along the first and the second axis.
    site_offsets : array_like, shape (num_sites, 2)
        Where the sites are, seen from their cell.
    bonds : iterable of (int, int, (int, int))
        From site, to site, cells from one to the other.
    colors : sequence of int or str, optional
        The color of each bond: a label of its class, such as ``"J1"``. By default each has color 0.

    Raises
    ------
    TypeError
        If an argument does not have this form.
    ValueError
        If a number is not finite, the basis vectors are dependent, there is no site, or a bond names a site that is not
        there, joins a site to itself, or is listed twice (also in reverse), or there is not one color for each.

    Examples
    --------
    A square lattice in which every second diagonal of the checkerboard is a bond:

    >>> from quincunx.lattices import Lattice, UnitCell
    >>> cell = UnitCell(
    ...     basis_vectors=[(1, 1), (1, -1)],
    ...     site_offsets=[(0, 0), (1, 0)],
    ...     bonds=[(0, 1, (0, 0)), (1, 0, (1, 0)), (1, 0, (0, 1)), (1, 0, (1, 1)), (0, 0, (1, 0))],
    ... )
    >>> Lattice(cell, (4, 4), "torus").graph.degrees().tolist()[:2]
    [6, 4]
    """

    __slots__ = ("_basis_vectors", "_below", "_bonds", "_colors", "_kind", "_site_offsets")

    _basis_vectors: tuple[Vector, Vector]
    _site_offsets: tuple[Vector, ...]
    _bonds: tuple[Bond, ...]
    _kind: str | None
    #: None where each bond has color 0.
    _colors: tuple[Color, ...] | None
    #: The cell that cliques were inserted into, where this one is made so.
    _below: UnitCell | None

    def __init__(
        self,
        basis_vectors: npt.ArrayLike,
        site_offsets: npt.ArrayLike,
        bonds: Iterable[tuple[int, int, Sequence[int]]],
        colors: Sequence[Color] | None = None,
    ) -> None:
        basis = _vectors(basis_vectors, "basis_vectors")
        if len(basis) != 2:
            raise ValueError(f"`basis_vectors` must have shape (2, 2), got {len(basis)} vectors")
        cell = (basis[0], basis[1]), tuple(_vectors(site_offsets, "site_offsets")), tuple(map(_bond, _listed(bonds)))
        _core.check_cell(cell)
        self._basis_vectors, self._site_offsets, self._bonds = cell
        self._kind = self._below = None
        self._colors = None if colors is None else _colored(colors, len(self._bonds))

    @classmethod
    def _from_core(
        cls,
        parts: _core._CellOut,
        kind: str | None,
        below: UnitCell | None = None,
        colors: tuple[Color, ...] | None = None,
    ) -> UnitCell:
        cell = cls.__new__(cls)
        cell._below, cell._colors = below, colors
        (a1, a2), offsets, bonds = parts
        cell._basis_vectors = (a1[0], a1[1]), (a2[0], a2[1])
        cell._site_offsets = tuple((x, y) for x, y in offsets)
        cell._bonds = tuple(bonds)
        cell._kind = kind
        return cell

    @classmethod
    def named(cls, kind: str) -> UnitCell:
        """Return the unit cell of a lattice of the field.

        Parameters
        ----------
        kind : str
            Any name of a lattice in the table of `quincunx.lattices.named`.

        Returns
        -------
        UnitCell
            Its `kind` is the first of the lattice's names.

        Raises
        ------
        TypeError
            If `kind` is not a str.
        ValueError
            If there is no such cell.

        Examples
        --------
        >>> from quincunx.lattices import UnitCell
        >>> UnitCell.named("honeycomb").bonds
        ((0, 1, (0, 0)), (1, 0, (1, 0)), (1, 0, (0, 1)))
        """
        return named_cell(registered(kind, "kind"))

    @property
    def basis_vectors(self) -> tuple[Vector, Vector]:
        """The vectors from a cell to its neighbors along the two axes."""
        return self._basis_vectors

    @property
    def site_offsets(self) -> tuple[Vector, ...]:
        """Where the sites are, seen from their cell."""
        return self._site_offsets

    @property
    def bonds(self) -> tuple[Bond, ...]:
        """The bonds: from site, to site, cells between."""
        return self._bonds

    @property
    def colors(self) -> tuple[Color, ...]:
        """The color of each bond."""
        return self._colors or (0,) * self.num_bonds

    @property
    def num_sites(self) -> int:
        """Number of sites."""
        return len(self._site_offsets)

    @property
    def num_bonds(self) -> int:
        """Number of bonds."""
        return len(self._bonds)

    @property
    def kind(self) -> str | None:
        """The name `UnitCell.named` knows this cell by, `None` for others."""
        return self._kind

    def degrees(self) -> list[int]:
        """Return the number of bonds at each site of the infinite lattice.

        Returns
        -------
        list of int

        Examples
        --------
        >>> from quincunx.lattices import UnitCell
        >>> UnitCell.named("king").degrees()
        [8]
        """
        degrees = [0] * self.num_sites
        for u, v, _ in self._bonds:
            degrees[u] += 1
            degrees[v] += 1
        return degrees

    def add_bonds(
        self,
        bonds: Iterable[tuple[int, int, Sequence[int]]] | None = None,
        *,
        shell: int | Iterable[int] | None = None,
        vectors: npt.ArrayLike | None = None,
        color: Color | None = None,
    ) -> UnitCell:
        """Return the unit cell with more bonds: listed ones, those of a length, or those along some vectors.

        Parameters
        ----------
        bonds : iterable of (int, int, (int, int)), optional
            As for the cell itself.
        shell : int or iterable of int, optional
            Which distance of two sites of the infinite lattice is bridged, as its number in rising order: 1 is the
            smallest, 2 that of next-nearest neighbors.
        vectors : array_like, shape (n, 2), optional
            Displacements: all sites are joined of which one is such a vector from the other, either way.
        color : int or str, optional
            The color of the new bonds. By default the next whole number above those in use, and the next one for each
            further shell.

        Returns
        -------
        UnitCell
            The bonds of this cell, with their colors, then the new ones. What `shell` or `vectors` name a second time
            stays as it is. The cell has no name, whatever it is equal to.

        Raises
        ------
        TypeError
            If not exactly one of `bonds`, `shell` and `vectors` is given, or one has another form.
        ValueError
            If a shell is less than 1, a vector leads to no site, no bond is new, or the bonds are not those of a cell.
        TooLargeError
            If bonds have to be looked for among more than ``2**22`` pairs of sites.

        Examples
        --------
        The king's graph is the square lattice with next-nearest neighbors, the triangular lattice has half of them, and
        a chain with two kinds of bonds is

        >>> from quincunx.lattices import Lattice, UnitCell
        >>> square = UnitCell.named("square")
        >>> square.add_bonds(shell=2).bonds
        ((0, 0, (1, 0)), (0, 0, (0, 1)), (0, 0, (1, -1)), (0, 0, (1, 1)))
        >>> square.add_bonds(vectors=[(1, -1)]).degrees()
        [6]
        >>> chain = UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0))], ["J1"])
        >>> chain.add_bonds(vectors=[(2, 0)], color="J2").colors
        ('J1', 'J2')
        """
        if sum(way is not None for way in (bonds, shell, vectors)) != 1:
            raise TypeError("exactly one of `bonds`, `shell` and `vectors` must be given")
        if bonds is not None:
            found = [[_bond(bond) for bond in _listed(bonds)]]
        elif shell is not None:
            shells = shell if isinstance(shell, Iterable) and not isinstance(shell, str) else [shell]
            wanted = list(dict.fromkeys(_check.whole(k, "shell", minimum=1, maximum=_MOST_TIMES) for k in shells))
            found = [unlisted(ring, self._bonds) for ring in self._surroundings().shells(wanted)] if wanted else []
        else:
            found = [unlisted(self._surroundings().along(_vectors(vectors, "vectors")), self._bonds)]
        found = [more for more in found if more]
        if not found:
            name = "bonds" if bonds is not None else "shell" if shell is not None else "vectors"
            raise ValueError(f"`{name}` must name a bond that is not there, got none")
        following = _following(self.colors)
        new = [following + i if color is None else color for i, more in enumerate(found) for _ in more]
        every = itertools.chain(self._bonds, *found)
        return UnitCell(self._basis_vectors, self._site_offsets, every, [*self.colors, *new])

    def clique_insert(self, k: int = 1, *, color: Color | None = None) -> UnitCell:
        """Return the unit cell with a clique inserted at each site, `k` times.

        Bond ``b`` gives the sites ``2b`` at its start and ``2b+1`` at its end. These two are joined, and so are any two
        at the same site. Isolated sites vanish.

        Parameters
        ----------
        k : int, default 1
            How many times, >= 0.
        color : int or str, optional
            The color of the bonds of the cliques. By default the next whole number above those in use, and the next one
            for each further insertion; but 0 where all bonds have that.

        Returns
        -------
        UnitCell
            With a site for each end of a bond. The bonds of this cell, with their colors, then those of the cliques.

        Raises
        ------
        TypeError
            If `k` is not a whole number, or `color` is no color.
        ValueError
            If `k` is negative, nothing is left, or there would be ``2**32`` sites or more.
        TooLargeError
            If there would be more than ``2**18`` sites or bonds; graphs of finite lattices may have more.

        See Also
        --------
        quincunx.lattices.clique_insert : the same for graphs.

        Examples
        --------
        >>> from quincunx.lattices import UnitCell
        >>> UnitCell.named("honeycomb").clique_insert().num_sites
        6
        >>> chain = UnitCell([(1, 0), (0, 1)], [(0, 0)], [(0, 0, (1, 0))], ["link"])
        >>> chain.clique_insert(color="clique").colors
        ('link', 'clique')
        """
        k = _check.whole(k, "k", maximum=2**32 - 1)
        if color is not None:
            _colored([color], 1)
        cell = self
        while k and color is None and cell._kind in _INSERTED:
            cell, k = named_cell(_INSERTED[cell._kind]), k - 1
        if k == 0:
            return cell
        degrees = cell.degrees()
        k = k if max(degrees, default=0) > 1 else 1  # more leave what is left as it is
        sites, bonds = _core.clique_insertion_size(np.array(degrees, dtype=np.int64), k)
        if sites < 2**32:
            _refuse_large("cell after clique insertion", sites, bonds)
        whole = _core.clique_insert_cell(cell._parts(), k)  # refused before anything is made
        below = cell if k == 1 else UnitCell._from_core(_core.clique_insert_cell(cell._parts(), k - 1), None)
        return UnitCell._from_core(whole, None, below, cell._clique_colors(k, color))

    def _clique_colors(self, k: int, color: Color | None) -> tuple[Color, ...] | None:
        """Return the colors after `k` insertions, each of which puts the bonds of its cliques after those before."""
        if color is None and self._colors is None:
            return None
        colors, degrees = list(self.colors), np.array(self.degrees(), dtype=np.int64)
        for times in range(1, k + 1):
            new = _following(colors) if color is None else color
            colors += [new] * (_core.clique_insertion_size(degrees, times)[1] - len(colors))
        return _colored(colors, len(colors))

    def _inserted_into(self) -> UnitCell | None:
        """Return the cell that cliques were inserted into to make this one, if it was made so."""
        base = LATTICES[self._kind].inserted_into if self._kind else None
        return self._below if base is None else named_cell(base)

    def line_graph(self, k: int = 1) -> UnitCell:
        """Return the unit cell of the line graph, `k` times over: a site in the middle of each bond.

        Two sites are joined if their bonds share an end. The site of a bond belongs to the cell the bond starts in.

        Parameters
        ----------
        k : int, default 1
            How many times, >= 0.

        Returns
        -------
        UnitCell
            Site ``b`` is bond ``b``, so that the colors of the bonds are now those of the sites, in that order. The
            bonds are pairs of bond ends at a site, ``sum(d*(d-1)/2)`` over the degrees; they are new and have color 0.

        Raises
        ------
        TypeError
            If `k` is not a whole number.
        ValueError
            If `k` is negative or nothing is left.
        TooLargeError
            If there would be more than ``2**18`` sites or bonds.

        See Also
        --------
        quincunx.graphs.line_graph : the same for graphs.

        Examples
        --------
        >>> from quincunx.lattices import UnitCell
        >>> kagome = UnitCell.named("honeycomb").line_graph()
        >>> kagome.num_sites, kagome.degrees()
        (3, [4, 4, 4])
        """
        cell = self
        for _ in range(_check.whole(k, "k", maximum=_MOST_TIMES)):
            cell = cell._line_graph()
        return cell

    def _line_graph(self) -> UnitCell:
        _refuse_large("line graph", self.num_bonds, sum(d * (d - 1) // 2 for d in self.degrees()))
        # At each site its bonds, each with the cell it starts in as seen from the site's.
        ends: list[list[tuple[int, int, int]]] = [[] for _ in range(self.num_sites)]
        for bond, (u, v, (dx, dy)) in enumerate(self._bonds):
            ends[u].append((bond, 0, 0))
            ends[v].append((bond, -dx, -dy))
        pairs = (pair for around in ends for pair in itertools.combinations(around, 2))
        bonds = [(a, b, (bx - ax, by - ay)) for (a, ax, ay), (b, bx, by) in pairs]
        return UnitCell(self._basis_vectors, self._middles(), bonds)

    def subdivide(self, k: int = 1) -> UnitCell:
        """Return the subdivided unit cell: a new site in the middle of each bond, `k` times.

        Parameters
        ----------
        k : int, default 1
            How many times, >= 0. A bond becomes a path of ``2**k`` bonds.

        Returns
        -------
        UnitCell
            The sites of this cell, then site ``s + b`` in the middle of bond ``b``, in the cell the bond starts in.
            Both halves of a bond have its color.

        Raises
        ------
        TypeError
            If `k` is not a whole number.
        ValueError
            If `k` is negative.
        TooLargeError
            If there would be more than ``2**18`` sites or bonds.

        See Also
        --------
        quincunx.graphs.subdivide : the same for graphs.

        Examples
        --------
        >>> from quincunx.lattices import UnitCell
        >>> lieb = UnitCell.named("square").subdivide()
        >>> lieb.degrees()
        [4, 2, 2]
        """
        times = _check.whole(k, "k", maximum=_MOST_TIMES)
        _refuse_large("subdivision", self.num_sites + self.num_bonds * (2**times - 1), self.num_bonds * 2**times)
        cell = self
        for _ in range(times if self._bonds else 0):
            s = cell.num_sites
            halves = [
                half
                for bond, (u, v, offset) in enumerate(cell._bonds)
                for half in ((u, s + bond, (0, 0)), (s + bond, v, offset))
            ]
            colors = [color for color in cell.colors for _ in range(2)]
            cell = UnitCell(cell._basis_vectors, [*cell._site_offsets, *cell._middles()], halves, colors)
        return cell

    def _middles(self) -> list[Vector]:
        """Where the middles of the bonds are, seen from the cell they start in."""
        (ax, ay), (bx, by) = self._basis_vectors
        middles = []
        for u, v, (dx, dy) in self._bonds:
            (ux, uy), (vx, vy) = self._site_offsets[u], self._site_offsets[v]
            middles.append(((ux + vx + dx * ax + dy * bx) / 2, (uy + vy + dx * ay + dy * by) / 2))
        return middles

    def _surroundings(self) -> Surroundings:
        return Surroundings(self._basis_vectors, self._site_offsets)

    def _passing(self) -> list[bool]:
        """Return for each bond whether it passes over a site; of a cell that is as large as a lattice none is said."""
        try:
            return self._surroundings().passing(self._bonds)
        except TooLargeError:
            return [False] * self.num_bonds

    def _parts(self) -> tuple[tuple[Vector, Vector], tuple[Vector, ...], tuple[Bond, ...]]:
        return self._basis_vectors, self._site_offsets, self._bonds

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnitCell):
            return NotImplemented
        return (self._parts(), self._colors) == (other._parts(), other._colors)

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[object, ...]:
        if self._kind:
            return named_cell, (self._kind,)
        return UnitCell._from_core, (self._parts(), None, self._below, self._colors)

    def __repr__(self) -> str:
        if self._kind:
            return f"UnitCell.named({self._kind!r})"
        return f"<UnitCell: {self.num_sites} sites, {self.num_bonds} bonds>"


@functools.cache
def named_cell(kind: str) -> UnitCell:
    """Return the unit cell with a name, always the same object."""
    return UnitCell._from_core(LATTICES[kind].cell, kind)


def _refuse_large(what: str, sites: int, bonds: int) -> None:
    if (largest := max(sites, bonds)) > _MOST_TUPLES:
        raise TooLargeError(
            f"the {what} of the cell has {sites} sites and {bonds} bonds, at most {_MOST_TUPLES} are made",
            200 * largest,
            200 * _MOST_TUPLES,
        )


def _listed(value: object) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"`bonds` must hold (from, to, (dx, dy)), got {type(value).__name__}")
    _check.fits(value, "bonds")
    return list(value)


def _bond(value: Any) -> Bond:
    try:
        u, v, (dx, dy) = value
    except (TypeError, ValueError):
        raise TypeError(f"`bonds` must hold (from, to, (dx, dy)), got {value!r}") from None
    step = [_check.whole(d, "bonds", minimum=-(2**20), maximum=2**20) for d in (dx, dy)]
    site = [_check.whole(s, "bonds", maximum=2**32 - 1) for s in (u, v)]
    return site[0], site[1], (step[0], step[1])


def _colored(colors: Sequence[Color], bonds: int) -> tuple[Color, ...] | None:
    """Return the colors of so many bonds, `None` where all are 0."""
    if isinstance(colors, (str, bytes)) or not isinstance(colors, Iterable):
        raise TypeError(f"`colors` must hold an int or str for each bond, got {type(colors).__name__}")
    refuse_unordered(colors, "colors")
    found = tuple(color.item() if isinstance(color, np.generic) else color for color in colors)
    if len(found) != bonds:
        raise ValueError(f"`colors` must hold one for each of the {bonds} bonds, got {len(found)}")
    for color in found:
        if isinstance(color, bool) or not isinstance(color, (int, str)):
            raise TypeError(f"`colors` must be ints or strs, got {color!r}")
        if isinstance(color, int) and not -(2**63) <= color < 2**63:
            raise ValueError(f"`colors` must be less than 2**63 in size, got {_check.shown(color)}")
    return found if any(color != 0 for color in found) else None


def _following(colors: Iterable[Color]) -> int:
    """Return the next whole number above the colors in use."""
    return max((number for number in colors if isinstance(number, int)), default=-1) + 1


def _vectors(value: Any, name: str) -> list[Vector]:
    try:
        rows = [(x, y) for x, y in value]
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must hold vectors with two components, got {value!r}") from None
    return [(_check.real(x, name), _check.real(y, name)) for x, y in rows]
