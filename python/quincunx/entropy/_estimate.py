"""Estimates of entropies by corner tensors, without a certificate of the upper end."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from quincunx import _check, _core
from quincunx._progress import Progress
from quincunx.entropy._corner import MOST_BONDS, corner_rounds, tensors_of
from quincunx.entropy._gas import DEFAULT_DIGITS
from quincunx.entropy._models import FaceModel, easier, model_of, normalized
from quincunx.entropy._numbers import log_below, positive_rational, root_below, zeros
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of
from quincunx.lattices._registry import LATTICES

#: From this activity on the square lattice's two sublattices get tensors of their own; its transition is near 3.796.
_STAGGERED = Fraction(3)


@dataclass(frozen=True)
class EntropyEstimate:
    """An estimate of an entropy per vertex, in nats, with its convergence.

    Attributes
    ----------
    value : Decimal
        The estimate, rounded to the decimals that were asked for.
    growth_constant : Decimal
        The growth constant, of which it is the logarithm, rounded likewise.
    digits : int
        Decimals of both that the convergence speaks for, at most those asked for; nothing is proved.
    lattice : str
        The lattice.
    activity : Fraction
        The weight of an occupied vertex.
    next_neighbor_weight : Fraction
        The weight of an occupied pair of next neighbors; 1 but for the square lattice.
    density : float
        Occupied vertices, or dimers, per vertex, ``d ln(kappa) / d ln(activity)``; NaN for a model of faces.
    sublattice_densities : tuple of float
        The same for each sublattice that has tensors of its own; they differ beyond a transition.
    susceptibility : float
        ``d density / d ln(activity)``, the variance of the number of occupied vertices per vertex; NaN if it was not
        asked for.
    correlation_length : float
        Of the trial vector along a row, in letters of the row operator.
    convergence : list of (int, Decimal, float)
        Bond dimension, estimate with more decimals, by Rayleigh's principle not above the entropy, and the square of
        the largest Schmidt value that was cut.
    spectrum : tuple of float
        Schmidt values of the last trial vector, falling, from 1, those that were cut included.
    seconds : float
        Time taken.
    model : str
        What lives on the lattice.

    Examples
    --------
    >>> from quincunx.entropy import entropy_estimate
    >>> entropy_estimate("triangular", digits=12).digits >= 12
    True
    """

    value: Decimal
    growth_constant: Decimal
    digits: int
    lattice: str
    activity: Fraction
    next_neighbor_weight: Fraction
    density: float
    sublattice_densities: tuple[float, ...]
    susceptibility: float
    correlation_length: float
    convergence: list[tuple[int, Decimal, float]]
    spectrum: tuple[float, ...] = field(repr=False)
    seconds: float = field(compare=False)
    model: str = "independent-sets"


def entropy_estimate(
    lattice: "str | Lattice | UnitCell",
    *,
    model: "str | FaceModel" = "independent-sets",
    digits: int | None = None,
    activity: "int | float | Fraction | Decimal" = 1,
    next_neighbor_weight: "int | float | Fraction | Decimal" = 1,
    sublattices: int | None = None,
    susceptibility: bool = False,
    max_bond_dimension: int = 128,
    progress: Progress = None,
) -> EntropyEstimate:
    """Estimate the entropy of the hard-core lattice gas per vertex, and its growth constant, by corner tensors.

    The same trial vectors as in `entropy_bounds`, here also for the triangular lattice, of whose rings no theorem is
    known that would give the other side. The result is an estimate: its digits are those that the cut of its trial
    vector lets one expect.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        One of ``"square"``, ``"king"``, ``"4-8-8"``, ``"honeycomb"``, ``"kagome"``, ``"triangular"``; for matchings
        ``"square"``, ``"4-8-8"`` or ``"honeycomb"``, for models of faces ``"square"``.
    model : str or FaceModel, default "independent-sets"
        As for `entropy_bounds`; weights of faces must be the same with above and below exchanged.
    digits : int, optional
        Decimals of the growth constant that the bond dimension is raised for, 14 by default.
    activity : int, float, Fraction or Decimal, default 1
        The weight of an occupied vertex, or as for `entropy_bounds`, > 0.
    next_neighbor_weight : int, float, Fraction or Decimal, default 1
        Square lattice only: the weight of each pair of occupied vertices across a diagonal, > 0. Small weights lead to
        the king's lattice; 1/2 is the annealed model of random diagonals.
    sublattices : {1, 2}, optional
        Square lattice only: whether all vertices have the same tensors, or each sublattice its own. By default two from
        activity 3 on, so that the estimate is right on both sides of the transition.
    susceptibility : bool, default False
        Whether to compute the susceptibility too, from four more estimates.
    max_bond_dimension : int, default 128
        Where growing ends.
    progress : bool or callable, optional
        As for `entropy_bounds`.

    Returns
    -------
    EntropyEstimate
        The value with its digits and the correlation length.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the lattice has no such row operator, a number is out of its range, or the leading eigenvalue is not alone:
        at a transition, or beyond one where the sublattices differ and share their tensors.

    Notes
    -----
    The spectrum falls slowly near a transition, so its tail is returned with each estimate. With two sublattices a row
    holds the sites of one, in diagonal order, and those of the other are summed over between two rows. The density is a
    derivative at fixed tensors, to which Rayleigh's quotient is stationary; the susceptibility is the second difference
    of estimates with 22 digits at five activities a thousandth apart, good for 9 to 10 digits, or to 1e-16.

    References
    ----------
    .. [1] R. J. Baxter (1980), Hard hexagons: exact solution, J. Phys. A 13.
    .. [2] T. Nishino and K. Okunishi (1996), Corner transfer matrix renormalization group method, J. Phys. Soc. Jpn.
       65.

    Examples
    --------
    Hard hexagons, whose constant Baxter found in closed form:

    >>> from quincunx.entropy import entropy_estimate
    >>> str(entropy_estimate("triangular", digits=16).growth_constant)[:17]
    '1.395485972479302'

    Beyond the transition of hard squares the sublattices differ:

    >>> ordered = entropy_estimate("square", activity=6, digits=8)
    >>> print(*(round(density, 3) for density in ordered.sublattice_densities))
    0.839 0.007
    """
    kind = unit_cell_of(lattice).kind or "a lattice without a name"
    fugacity = positive_rational(activity, "activity")
    pair = positive_rational(next_neighbor_weight, "next_neighbor_weight")
    _check.flag(susceptibility, "susceptibility")
    wanted = DEFAULT_DIGITS if digits is None else _check.whole(digits, "digits", minimum=1, maximum=60)
    max_bond_dimension = _check.whole(max_bond_dimension, "max_bond_dimension", minimum=3, maximum=MOST_BONDS)
    name, faces = model_of(model, fugacity)
    if faces is not None:
        name = "a model of faces"  # whatever it is called
    line = next((line for line, row in LATTICES.items() if row.line_graph_of == kind), None)
    if name == "matchings" and not tensors_of(kind, name) and tensors_of(line, "independent-sets"):
        known = [kind]
    elif faces is not None:
        known = ["square"]
    else:
        known = [lattice for lattice in LATTICES if tensors_of(lattice, name)]
    if kind not in known:
        raise ValueError(f"`lattice` must be one of {', '.join(known)}, got {kind!r}")
    if sublattices is not None:
        sublattices = _check.whole(sublattices, "sublattices", minimum=1, maximum=2)
    if (kind != "square" or name != "independent-sets") and (pair != 1 or sublattices == 2):
        raise ValueError(f"`next_neighbor_weight` and `sublattices` must be 1 for {name} on {kind!r}")
    if pair != 1 and sublattices == 2:
        raise ValueError(f"`next_neighbor_weight` must be 1 for two sublattices, got {pair}")
    if sublattices is None:
        staggered = kind == "square" and name == "independent-sets" and pair == 1 and fugacity >= _STAGGERED
        sublattices = 2 if staggered else 1
    if faces is not None and not faces.mirrors[1]:
        raise ValueError(f"`model` must be the same with above and below exchanged, got {model!r}")
    equivalent = None if faces is None else easier(faces)
    # Of what kind the tensors are, and the power and the factor that lead from their constant to the model's.
    own, exponent, factor = kind, Fraction(1), Fraction(1)
    if name == "matchings" and not tensors_of(kind, name):
        own, name = str(line), "independent-sets"
        exponent = Fraction(unit_cell_of(own).num_sites, unit_cell_of(kind).num_sites)
    weights: str | _core._Faces = name
    if equivalent is not None:
        weights, factor = normalized(equivalent.model)
        factor *= equivalent.factor
    start = time.perf_counter()

    def rounds_at(z: Fraction, wanted: int) -> "list[_core._CornerRound]":
        return corner_rounds(
            own,
            z,
            wanted,
            None,
            max_bond_dimension,
            estimate=True,
            progress=progress,
            form=sublattices - 1,
            pair=pair,
            model=weights,
            factor=factor,
        )

    rounds = rounds_at(fugacity if faces is None else Fraction(1), wanted + 1)
    kappas = [_value(entry, wanted + 6, exponent, factor) for entry in rounds]
    values = [log_below(kappa) for kappa in kappas]
    # Growth constants have hundreds of digits in front of the point at the largest activities.
    context, unit = Context(prec=2000), Decimal((0, (1,), -wanted))
    last = rounds[-1]
    # What was cut, squared, is what the variational value of a letter misses, up to a factor of a few dozen.
    scale = 1 + float(fugacity) if faces is None else float(faces.letters * factor)
    missed = last["cut"] * scale * float(exponent) / (0.8 * last["sites"])
    agreed = math.floor(-math.log10(max(missed, 1e-300))) - 1
    density = float(exponent) * last["density"] / last["sites"] if faces is None else math.nan
    one = (density,) if sublattices == 1 else (last["occupied"], 2 * density - last["occupied"])
    return EntropyEstimate(
        value=values[-1].quantize(unit, context=context),
        growth_constant=kappas[-1].quantize(unit, context=context),
        digits=max(min(agreed, wanted), 0),
        lattice=kind,
        activity=fugacity,
        next_neighbor_weight=pair,
        density=density,
        sublattice_densities=tuple(sorted(one, reverse=True)),
        susceptibility=(
            float(exponent) * _second_difference(rounds_at, fugacity) if susceptibility and faces is None else math.nan
        ),
        correlation_length=-1 / math.log(last["decay"]) if 0 < last["decay"] < 1 else 0.0,
        convergence=[
            (entry["bond_dimension"], value, entry["cut"]) for entry, value in zip(rounds, values, strict=True)
        ],
        spectrum=tuple(last["spectrum"]),
        seconds=time.perf_counter() - start,
        model=model_of(model, fugacity)[0],
    )


def _second_difference(rounds_at: "Callable[[Fraction, int], list[_core._CornerRound]]", activity: Fraction) -> float:
    """Return the second derivative of ln kappa by ln z, of fourth order in the step."""
    digits, step = 22, Decimal("0.001")
    with localcontext(Context(prec=60)):
        logs = []
        for k in (-2, -1, 0, 1, 2):
            z = activity * Fraction((k * step).exp()).limit_denominator(10**40)
            entry = rounds_at(z, digits)[-1]
            # The logarithm of the root, from that of its power.
            value = Decimal(int(entry["lower"])) / Decimal(1 << entry["precision"])
            logs.append(value.ln() / entry["sites"])
        weights = (-1, 16, -30, 16, -1)
        return float(sum(w * log for w, log in zip(weights, logs, strict=True)) / (12 * step * step))


def _value(entry: "_core._CornerRound", places: int, exponent: Fraction, factor: Fraction) -> Decimal:
    kappa_sites = Fraction(entry["lower"], 1 << entry["precision"])
    power = kappa_sites**exponent.numerator * factor ** (entry["sites"] * exponent.denominator)
    degree = entry["sites"] * exponent.denominator
    return root_below(power, degree, places + zeros(power, degree))
