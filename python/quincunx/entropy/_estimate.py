"""Estimates of growth constants by corner tensors, without a certificate of the upper end."""

import math
import time
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from quincunx import _check
from quincunx._progress import Progress
from quincunx.entropy._bounds import DEFAULT_DIGITS, corner_rounds, kind_of
from quincunx.entropy._numbers import positive_rational, root_below
from quincunx.lattices import Lattice, UnitCell

#: Lattices with a row operator that is a product of small tensors.
ESTIMATED = ("square", "king", "4-8-8", "honeycomb", "kagome", "triangular")


@dataclass(frozen=True)
class EntropyEstimate:
    """An estimate of a growth constant per vertex, with its convergence.

    Attributes
    ----------
    value : Decimal
        The estimate. By Rayleigh's principle it is not above the constant.
    digits : int
        Decimals that the convergence speaks for; nothing is proved.
    lattice : str
        The lattice.
    activity : Fraction
        The weight of an occupied vertex.
    density : float
        Occupied vertices per vertex, ``d ln(kappa) / d ln(activity)``.
    correlation_length : float
        Of the trial vector along a row, in letters of the row operator.
    convergence : list of (int, Decimal, float)
        Bond dimension, estimate, and the square of the largest Schmidt value that was cut.
    spectrum : tuple of float
        Schmidt values of the last trial vector, falling, from 1, those that were cut included.
    seconds : float
        Time taken.

    Examples
    --------
    >>> from quincunx.entropy import entropy_estimate
    >>> entropy_estimate("triangular", digits=12).digits >= 12
    True
    """

    value: Decimal
    digits: int
    lattice: str
    activity: Fraction
    density: float
    correlation_length: float
    convergence: list[tuple[int, Decimal, float]]
    spectrum: tuple[float, ...] = field(repr=False)
    seconds: float = field(compare=False)


def entropy_estimate(
    lattice: "str | Lattice | UnitCell",
    *,
    digits: int | None = None,
    activity: "int | float | Fraction | Decimal" = 1,
    max_bond_dimension: int = 96,
    progress: Progress = None,
) -> EntropyEstimate:
    """Estimate the growth constant of the hard-core lattice gas per vertex by corner tensors.

    The same trial vectors as in `entropy_bounds`, here also for the triangular lattice, of whose rings no theorem is
    known that would give the other side. The result is an estimate: its digits are those that two rounds agree on.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        ``"square"``, ``"king"``, ``"4-8-8"``, ``"honeycomb"``, ``"kagome"`` or ``"triangular"``.
    digits : int, optional
        Decimals wanted, 14 by default.
    activity : int, float, Fraction or Decimal, default 1
        The weight of an occupied vertex, > 0.
    max_bond_dimension : int, default 96
        Where growing ends.
    progress : bool or callable, optional
        As for `entropy_bounds`.

    Returns
    -------
    EntropyEstimate

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the lattice has no such row operator, a number is out of its range, or the leading eigenvalue is not alone:
        at a transition, or beyond one, where the sublattices differ and one tensor for all sites is not right.

    Notes
    -----
    The spectrum falls slowly near a transition, so its tail is returned with each estimate.

    References
    ----------
    .. [1] R. J. Baxter (1980), Hard hexagons: exact solution, J. Phys. A 13.
    .. [2] T. Nishino and K. Okunishi (1996), Corner transfer matrix renormalization group method, J. Phys. Soc. Jpn.
       65.

    Examples
    --------
    Hard hexagons, whose constant Baxter found in closed form:

    >>> from quincunx.entropy import entropy_estimate
    >>> str(entropy_estimate("triangular", digits=16).value)[:17]
    '1.395485972479302'
    """
    kind = kind_of(lattice)
    fugacity = positive_rational(activity, "activity")
    wanted = DEFAULT_DIGITS if digits is None else _check.whole(digits, "digits", minimum=1, maximum=60)
    max_bond_dimension = _check.whole(max_bond_dimension, "max_bond_dimension", minimum=3, maximum=512)
    if kind not in ESTIMATED:
        raise ValueError(f"`lattice` must be one of {', '.join(ESTIMATED)}, got {kind!r}")
    start = time.perf_counter()
    rounds = corner_rounds(kind, fugacity, wanted, None, max_bond_dimension, estimate=True, progress=progress)
    values = [_value(entry, wanted + 6) for entry in rounds]
    last = rounds[-1]
    # What was cut, squared, is what the variational value misses, up to a factor of a few dozen.
    agreed = math.floor(-math.log10(max(last["cut"], 1e-300))) - 1
    return EntropyEstimate(
        value=values[-1],
        digits=min(agreed, wanted + 6),
        lattice=kind,
        activity=fugacity,
        density=last["density"] / last["sites"] if kind in ("square", "king", "triangular") else math.nan,
        correlation_length=-1 / math.log(last["decay"]) if 0 < last["decay"] < 1 else 0.0,
        convergence=[
            (entry["bond_dimension"], value, entry["cut"]) for entry, value in zip(rounds, values, strict=True)
        ],
        spectrum=tuple(last["spectrum"]),
        seconds=time.perf_counter() - start,
    )


def _value(entry: dict[str, Any], places: int) -> Decimal:
    return root_below(Fraction(entry["lower"], 1 << entry["precision"]), entry["sites"], places)
