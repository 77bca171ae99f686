"""The energy of a graph, the sum of the absolute values of its eigenvalues; its density on periodic lattices."""

from typing import NamedTuple

import numpy as np

from quincunx import _check
from quincunx._types import Floats
from quincunx.graphs._graph import GraphLike
from quincunx.graphs._weights import NOT_SAID, Unweighted, Weight, weights_of
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of
from quincunx.lattices._registry import below_insertions
from quincunx.spectra._bloch import _blocks, eigenvalues

# Wave vectors along an axis for clique insertions: the error of the rule is below 1e-20, see `energy_density`.
_ANALYTIC = 64
# Wave vectors along an axis in the finest grid, 24 doubled six times: 2.4 million matrices. Larger cells end sooner.
_FINEST = 1536
# A relative change that is rounding, and how far powers of two may be from whole ones: not tuned.
_ROUNDING, _REGULAR = 4e-15, 0.1


class EnergyDensity(NamedTuple):
    """An energy per vertex and its error: proved for the square lattice and clique insertions, else an estimate."""

    value: float
    error: float


def energy(graph: "GraphLike", *, weight: "Weight | Unweighted" = NOT_SAID) -> float:
    """Compute the energy of a graph: the sum of the absolute values of the eigenvalues of its adjacency matrix.

    Parameters
    ----------
    graph, weight
        As in `spectrum`.

    Returns
    -------
    float
        With a relative error near 1e-14; 1e-13 where most eigenvalues of a dense graph of 2000 vertices are zero.

    Raises
    ------
    TypeError, ValueError, TooLargeError
        As `spectrum`.

    Notes
    -----
    A clique insertion of a regular lattice on a torus takes the spectrum of the lattice below, by `clique_spectrum`.

    References
    ----------
    .. [1] I. Gutman (1978), The energy of a graph.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.spectra import energy
    >>> round(energy(lattices.truncated_hexagonal(3, 4, "torus")), 12)
    106.696436614676
    """
    weights = weights_of(graph, weight)
    if weights is None and isinstance(graph, Lattice) and all(graph.pbc) and (found := below_insertions(graph.kind)):
        base, times = UnitCell.named(found[0].name), found[1]
        values = eigenvalues(Lattice(base, graph.extent, "torus", twist=graph.twist, multigraph=True))
        return _inserted_energy(values, sum(base.degrees()) // base.num_sites, times)
    return float(abs(eigenvalues(graph, weights=weights)).sum())


def _inserted_energy(values: Floats, r: int, times: int) -> float:
    """Energy after `times` insertions: ``sum of sqrt(r**2 + 4*(x + 1)) + (r - 2)*n`` of the last but one spectrum."""
    from quincunx.spectra._connectivity import clique_spectrum

    below = clique_spectrum(np.clip(values, -r, r), r, times - 1)
    return float(np.sqrt(np.maximum(r * r + 4 * (below + 1), 0)).sum() + (r - 2) * len(below))


def energy_density(lattice: str | UnitCell | Lattice) -> EnergyDensity:
    """Compute the energy per vertex of an infinite periodic lattice, with an error.

    Parameters
    ----------
    lattice : str, UnitCell or Lattice
        The name of a lattice, its unit cell, or a lattice of whole cells (its extent does not matter).

    Returns
    -------
    EnergyDensity
        The pair ``(value, error)``. The error is proved for the square lattice and the named clique insertions; for
        others it is an estimate, from the changes between grids.

    Raises
    ------
    TypeError, ValueError
        If `lattice` is none of these, or a bond reaches beyond 48 cells.

    Notes
    -----
    The mean of ``|eigenvalues|`` over the Brillouin zone by the trapezoid rule, shifted off the symmetric points and
    doubled until it stands still: geometric where no band touches zero; where one does in points (honeycomb) the rule
    converges like ``N**-3`` and is extrapolated. Where one is zero along a curve (triangular, king) changes are
    irregular: the value is that of the finest grid, its error near 1e-6.

    Clique insertions take the bands of the lattice below. Their integrand is analytic and at most M in a strip
    ``|Im k| <= a`` around each axis, so that N points on each axis err by at most ``4*M/(exp(a*N) - 1)``. Inserted k
    times in the honeycomb, ``a = 0.8`` and ``M = 5.2 * 2**k``: with ``s**2 = 3 + 2*cos(x) + 2*cos(y) + 2*cos(x + y)``,
    at most ``5 + 4*cosh(a) < (13/4)**2`` in the strip, every root in ``sqrt(13 + 4*s) + sqrt(13 - 4*s)`` and its likes
    is of a number with positive real part. Inserted in the square lattice, ``sqrt(20 + 8*cos(x) + 8*cos(y))`` has
    ``a = 0.8`` and ``M = 6.3``. What is left is rounding.

    Examples
    --------
    >>> from quincunx.spectra import energy_density
    >>> value, error = energy_density("3-12-12")
    >>> abs(value - 1.482490305996258760) < 1e-14, error < 1e-13
    (True, True)
    """
    cell = unit_cell_of(lattice)
    if cell.kind == "square":
        return EnergyDensity(16 / np.pi**2, 4e-16)
    inserted = below_insertions(cell.kind)
    base = UnitCell.named(inserted[0].name) if inserted else cell
    r = sum(base.degrees()) // base.num_sites
    if inserted:
        bands = _bands(base, _ANALYTIC)
        value = _inserted_energy(bands.ravel(), r, inserted[1]) / (bands.size * r ** inserted[1])
        return EnergyDensity(value, _ROUNDING * value)
    means: list[float] = []
    size, reach = 24, max((abs(d) for *_, step in cell.bonds for d in step), default=0)
    while size < 8 * reach:  # else a bond may go on from point to point of the grid by whole turns
        size *= 2
    if size > _FINEST // 4:
        raise ValueError(f"`lattice` must have bonds to cells at most {_FINEST // 32} away, got one to {reach}")
    while size <= _FINEST and (size * size * base.num_sites**2 <= 1 << 23 or len(means) < 3):
        bands = _bands(base, size)
        means.append(float(abs(bands).mean()))
        size *= 2
        if len(means) > 1 and abs(means[-1] - means[-2]) <= _ROUNDING * means[-1]:
            return EnergyDensity(means[-1], 4 * _ROUNDING * means[-1])
    return _extrapolated(means)


def _extrapolated(means: list[float]) -> EnergyDensity:
    """Richardson's extrapolation of means on doubled grids, as long as three changes fall by one power of two.

    Where bands are zero along a curve changes come and go, below something that falls like ``N**-2`` or faster.
    """
    table, power = np.array(means), 2.0
    best = EnergyDensity(means[-1], np.inf)
    while len(table) > 1:
        changes = np.diff(table)[::-1]
        error = float((abs(changes) * 2.0 ** (-power * np.arange(len(changes)))).max())
        if error >= best.error:
            break
        best = EnergyDensity(float(table[-1]), error)
        with np.errstate(all="ignore"):
            powers = np.log2(changes[1:3] / changes[:2])
            power = float(np.round(powers).max(initial=0))
            regular = len(powers) == 2 and power >= 1 and (abs(powers - power) < _REGULAR).all()
        if not regular:
            break
        table = table[1:] + np.diff(table) / (2**power - 1)
    return EnergyDensity(best.value, best.error + _ROUNDING * abs(best.value))


def _bands(cell: UnitCell, size: int) -> Floats:
    """Eigenvalues on a grid of wave vectors that avoids the symmetric points."""
    axis = 2 * np.pi * (np.arange(size) + 0.5) / size
    waves = np.stack(np.meshgrid(axis[: size // 2], axis, indexing="ij"), axis=-1).reshape(-1, 2)
    if cell.kind == "honeycomb":
        s = abs(1 + np.exp(1j * waves[:, 0]) + np.exp(1j * waves[:, 1]))
        return np.stack([s, -s])
    return np.asarray(np.linalg.eigvalsh(_blocks(cell, waves, False)), dtype=np.float64)


def density_of_states(
    graph: "GraphLike",
    bins: int = 100,
    *,
    weight: "Weight | Unweighted" = NOT_SAID,
    broadening: float | None = None,
    laplacian: bool = False,
) -> tuple[Floats, Floats]:
    """Compute the density of the eigenvalues, per vertex.

    Parameters
    ----------
    graph : Lattice, Graph, networkx.Graph, scipy.sparse array or pair (n, edges)
        As in `spectrum`; a torus of many cells for a smooth curve.
    bins : int, default 100
        Bins of the histogram, or points of the curve, >= 1.
    weight : None, str or sequence of number, optional
        The weight of each edge, as in `spectrum`.
    broadening : float, optional
        If given, each eigenvalue is a Gaussian of this standard deviation instead of a bar; between 1e-300 and 1e300.
    laplacian : bool, default False
        Whether the eigenvalues are those of the Laplacian.

    Returns
    -------
    (ndarray, ndarray) of float64
        Without broadening the ``bins + 1`` edges and the `bins` densities; with it `bins` points and the densities
        there. The density has integral one.

    Raises
    ------
    ValueError
        If the graph has no vertex, or an argument is out of range.
    TypeError, TooLargeError
        As `spectrum`.

    Examples
    --------
    >>> from quincunx import lattices
    >>> from quincunx.spectra import density_of_states
    >>> edges, density = density_of_states(lattices.kagome(12, 12, "torus"), 30)
    >>> round(float((density * (edges[1:] - edges[:-1])).sum()), 12)
    1.0
    """
    count = _check.whole(bins, "bins", minimum=1, maximum=10**7)
    width = None if broadening is None else _check.real(broadening, "broadening", positive=True)
    if width is not None and not 1e-300 <= width <= 1e300:
        raise ValueError(f"`broadening` must lie between 1e-300 and 1e300, got {width}")
    values = eigenvalues(graph, laplacian, weights_of(graph, weight))
    if not len(values):
        raise ValueError("`graph` must have a vertex, got a graph without vertices")
    if width is None:
        try:
            with np.errstate(over="raise"):
                density, edges = np.histogram(values, bins=count, density=True)
        except (ValueError, FloatingPointError) as error:
            rule = f"few enough for eigenvalues from {values.min()} to {values.max()}, or `broadening` given"
            raise ValueError(f"`bins` must be {rule}, got {count}") from error
        return edges, density
    points = np.linspace(values.min() - 5 * width, values.max() + 5 * width, count)
    total: Floats = np.zeros(count)
    with np.errstate(over="ignore"):  # far from an eigenvalue of a narrow bar there is nothing
        for part in np.array_split(values, max(1, len(values) * count >> 22)):
            total += np.exp(-(((points[:, None] - part) / width) ** 2) / 2).sum(axis=1)
    return points, total / (len(values) * width * np.sqrt(2 * np.pi))
