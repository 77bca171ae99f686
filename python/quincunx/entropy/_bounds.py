"""Certified bounds of growth constants."""

import math
import time
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from quincunx import _check, _core, _units
from quincunx._progress import Progress, reporting
from quincunx.entropy._numbers import positive_rational, root_above, root_below
from quincunx.entropy._strips import BASES, MIRRORS, clique_bounds, ring_bounds
from quincunx.entropy._windows import WIDTHS, window_intervals
from quincunx.errors import TooLargeError
from quincunx.lattices import Lattice, UnitCell, named

#: Lattices whose row operator is a product of small tensors and whose even rings bound from above.
CORNER = ("square", "king", "4-8-8", "honeycomb", "kagome")

#: What is proved without being asked for more.
DEFAULT_DIGITS = 14

#: Decimals that an arithmetic can hold, roundings of wide strips included.
HELD = {"double": 14, "double-double": 28, "exact": 28}

#: Seconds that strips and rings may be forecast to take; and those of a round from which a forecast is good.
TIME_LIMIT = 300.0
TIMED = 0.25

#: The largest bond dimension: beyond it single products take so long that an interrupt would not be heard in time.
MOST_BONDS = 160


@dataclass(frozen=True)
class EntropyBounds:
    """A certified interval of a growth constant per vertex, with its evidence.

    Attributes
    ----------
    lower, upper : Decimal
        The ends: the constant is at least `lower` and at most `upper`. They are rounded outwards.
    lattice : str
        The lattice.
    activity : Fraction
        The weight of an occupied vertex.
    theorem : str
        The theorem the interval rests on, as ``docs/mathematics/entropy.md`` names it.
    method : str
        How it was found.
    evidence : dict
        What the theorem was applied to: rings, widths or bond dimension, enclosures, time.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> bounds = entropy_bounds("4-8-8", digits=18)
    >>> bounds.certified[:20]
    '1.549560101335769447'
    >>> bounds.digits >= 18
    True
    """

    lower: Decimal
    upper: Decimal
    lattice: str
    activity: Fraction
    theorem: str
    method: str
    evidence: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def width(self) -> Decimal:
        """The distance of the ends."""
        return self.upper.copy_abs() - self.lower if self.upper == self.lower else _difference(self.upper, self.lower)

    @property
    def digits(self) -> int:
        """Decimals that are proved: the ends differ by at most ``10**-digits``."""
        width = self.width
        if width == 0:
            return -int(self.lower.as_tuple().exponent)
        digits = -width.adjusted()
        return digits if width <= Decimal((0, (1,), -digits)) else digits - 1

    @property
    def certified(self) -> str:
        """The digits both ends have in common: a prefix of the constant."""
        places = max(-int(self.lower.as_tuple().exponent), -int(self.upper.as_tuple().exponent))
        lower, upper = (f"{end:.{places}f}" for end in (self.lower, self.upper))
        same = next((i for i, pair in enumerate(zip(lower, upper, strict=False)) if pair[0] != pair[1]), len(lower))
        return lower[:same].rstrip(".") if len(lower) == len(upper) else ""

    def __contains__(self, value: object) -> bool:
        number = Fraction(value)  # type: ignore[call-overload]
        return bool(Fraction(self.lower) <= number <= Fraction(self.upper))

    def __str__(self) -> str:
        return f"[{self.lower:f}, {self.upper:f}]"


def _difference(upper: Decimal, lower: Decimal) -> Decimal:
    """Return an exact difference: the default context would round it."""
    from decimal import Context

    return Context(prec=2000).subtract(upper, lower)


def entropy_bounds(
    lattice: "str | Lattice | UnitCell",
    *,
    activity: "int | float | Fraction | Decimal" = 1,
    digits: int | None = None,
    method: Literal["auto", "corner", "ring", "window"] = "auto",
    width: int | None = None,
    power: int | None = None,
    boundary_activity: float | None = None,
    precision: Literal["double", "double-double", "exact"] | None = None,
    bond_dimension: int | None = None,
    max_bond_dimension: int = 128,
    time_limit: float = TIME_LIMIT,
    progress: Progress = None,
) -> EntropyBounds:
    r"""Bound the growth constant of the hard-core lattice gas per vertex, with proof.

    The constant is ``kappa = lim Z(G)**(1/n)`` over growing pieces ``G`` of ``n`` vertices, where ``Z`` is the number
    of independent sets, or their sum weighted by ``activity**size``. Both ends are proved; nothing is fitted.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        The lattice, by name or as an object of which only the unit cell matters: ``"square"``, ``"king"``, ``"4-8-8"``,
        ``"honeycomb"``, ``"kagome"``, ``"triangular"``, ``"triangular-kagome"``, ``"3-12-12"``, ``"3-6-24"``,
        ``"3-6-12-48"``, ``"modified-bathroom"``, ``"martini"``, or any unit cell.
    activity : int, float, Fraction or Decimal, default 1
        The weight of an occupied vertex, > 0. A float is the rational number it is.
    digits : int, optional
        Decimals to prove: the effort is raised until the ends differ by at most ``10**-digits``, or memory ends; at
        most 60 by corner tensors, 28 by strips and rings, 14 by windows. By default what takes a few seconds, up to 14.
    method : {"auto", "corner", "ring", "window"}, default "auto"
        ``"corner"``: trial vectors of corner tensors on a long ring, for the first five. ``"ring"``: strips and rings
        by transfer operators, for all names but the martini lattice. ``"window"``: the sites around a cell, for any
        unit cell. ``"auto"`` takes the first that can; a width asks for strips and rings.
    width : int, optional
        Mirror lines round the largest ring, even (4-8-8: octagons; king: columns), and of the widest strip.
        For 3-12-12, 3-6-24, 3-6-12-48 and the modified bathroom lattice the columns of cliques; for windows the sites
        of the frontier. By default it grows until `digits` are proved, or what is proved stops growing.
    power : int, optional
        The power of Rayleigh's quotient, the lines between the two strips; 1 by default. The thesis's king bound has 4.
    boundary_activity : float, optional
        The factor of activity on the outer lines of strips, any number > 0; searched for by default, 1 in the thesis.
    precision : {"double", "double-double", "exact"}, optional
        The arithmetic of strips and rings: they hold 14, 28 and 28 decimals. ``"exact"`` proves in integers what it
        found in double-doubles. By default the first that holds `digits`.
    bond_dimension : int, optional
        The bond dimension of the trial vector, in place of growing ones.
    max_bond_dimension : int, default 128
        Where growing ends; the interval then has fewer digits than asked for, and ``evidence["reached"]`` says so.
    time_limit : float, default 300
        Seconds of processor time that strips and rings may take for `digits`: narrow ones forecast what these will
        take, and a longer job, or one wider than 40 lines or 30 columns, is refused with the digits that are within
        reach. Infinity for no limit.
    progress : bool or callable, optional
        Whether a long job may be interrupted by, or shown by, a function of ``(done, total)``.

    Returns
    -------
    EntropyBounds
        With `lower` and `upper` as `decimal.Decimal`, rounded outwards.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If no theorem bounds the constant of the lattice by this method, a number is out of its range, the precision
        cannot hold the digits, they are not within `time_limit`, or the activity is so near a transition, or beyond
        one, that no spectral gap can be proved.
    TooLargeError
        If the strips of the given width do not fit into memory.

    Notes
    -----
    The row operator of a ring of n letters is real symmetric, and its largest eigenvalue bounds ``kappa**n`` from above
    (theorem E; A' for the king's lattice). A trial vector that is a trace of small matrices gives Rayleigh's lower and
    Temple's upper bound (theorem D) at a cost of the bond dimension cubed, whatever n. It comes from power
    steps in doubles (up to 24 digits) or double-doubles; it needs no proof. Everything proved about it is computed in
    integers, except bounds on norms that need few digits, which carry bounds on their errors. 14 digits take a few
    hundredths to tenths of a second.

    Strips and rings rest on theorems A, A' and B, windows on theorem C: time and memory grow exponentially with their
    width.

    References
    ----------
    .. [1] G. Temple (1928), The theory of Rayleigh's principle as applied to continuous systems, Proc. R. Soc. A 119.
    .. [2] R. J. Baxter (1999), Planar lattice gases with nearest-neighbor exclusion, Ann. Comb. 3, 191-203.
    .. [3] Y. Chan and A. Rechnitzer (2014), Upper bounds on the growth rates of independent sets in two dimensions via
       corner transfer matrices, Linear Algebra Appl. 555.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> bounds = entropy_bounds("square", digits=20)
    >>> bounds.certified[:22]
    '1.50304808247533226432'
    >>> bounds.theorem
    'D and E'
    """
    kind, cell = kind_of(lattice), cell_of(lattice)
    fugacity = positive_rational(activity, "activity")
    if time_limit != math.inf:
        time_limit = _check.real(time_limit, "time_limit", positive=True)
    wanted = DEFAULT_DIGITS if digits is None else _check.whole(digits, "digits", minimum=1, maximum=60)
    _check.one_of(method, "method", ["auto", "corner", "ring", "window"])
    strips = kind in MIRRORS or kind in BASES
    if method == "auto":
        method = "corner" if kind in CORNER and width is None else "ring" if strips else "window"
    if precision is not None:
        _check.one_of(precision, "precision", list(HELD))
        if method != "ring":
            raise ValueError(f"`precision` must be left out for the method {method!r}, got {precision!r}")
    if method != "corner" and bond_dimension is not None:
        raise ValueError(f"`bond_dimension` must be left out for the method {method!r}, got {bond_dimension!r}")
    if method == "ring":
        if not strips:
            known = sorted({*MIRRORS, *BASES})
            raise ValueError(f"`lattice` must be one of {', '.join(known)}: no theorem bounds {kind!r} by strips")
        if precision is None:
            precision = "double" if digits is None or wanted < 13 else "double-double"
        if digits is not None and wanted > HELD[precision]:
            raise ValueError(f"`digits` must be at most {HELD[precision]} in {precision} arithmetic, got {wanted}")
        widest = None if digits is not None else 12 if kind in BASES else 22
        limit = math.inf if digits is None else time_limit
        return _by_strips(kind, fugacity, wanted, width, power, boundary_activity, precision, widest, limit, progress)
    if method == "window":
        if power is not None or boundary_activity is not None:
            raise ValueError("`power` and `boundary_activity` must be left out for the method 'window'")
        if digits is not None and wanted > HELD["double"]:
            raise ValueError(f"`digits` must be at most {HELD['double']} for windows, got {wanted}")
        widest = None if digits is not None else 20
        return _by_windows(kind, cell, fugacity, wanted, width, widest, progress)
    if any(value is not None for value in (width, power, boundary_activity)):
        raise ValueError("`width`, `power` and `boundary_activity` must be left out for the method 'corner'")
    if bond_dimension is not None:
        bond_dimension = _check.whole(bond_dimension, "bond_dimension", minimum=3, maximum=MOST_BONDS)
    max_bond_dimension = _check.whole(max_bond_dimension, "max_bond_dimension", minimum=3, maximum=MOST_BONDS)
    if kind not in CORNER:
        raise ValueError(f"`lattice` must be one of {', '.join(CORNER)}: no theorem bounds {kind!r} by corner tensors")
    start = time.perf_counter()
    rounds = corner_rounds(
        kind, fugacity, wanted, bond_dimension, max_bond_dimension, estimate=False, progress=progress
    )
    last = min(rounds, key=lambda entry: float(entry["gap"]))
    places = max(math.ceil(-math.log10(last["gap"])), 1) + 2
    unit = 1 << last["precision"]
    bounds = EntropyBounds(
        lower=root_below(Fraction(last["lower"], unit), last["sites"], places),
        upper=root_above(Fraction(last["upper"], unit), last["sites"], places),
        lattice=kind,
        activity=fugacity,
        theorem="D and A'" if kind == "king" else "D and E",
        method="corner",
        evidence={
            "bond_dimension": last["bond_dimension"],
            "ring": last["ring"],
            "torus_rows": last["rows"],
            "second_eigenvalue": last["second"],
            "relative_gap": last["gap"],
            "rounds": [(entry["bond_dimension"], entry["gap"]) for entry in rounds],
            "steps": last["steps"],
            "seconds": time.perf_counter() - start,
        },
    )
    bounds.evidence["reached"] = bounds.digits >= wanted
    return bounds


def _by_strips(
    kind: str,
    activity: Fraction,
    wanted: int,
    width: int | None,
    power: int | None,
    boundary: float | None,
    precision: str,
    widest: int | None,
    time_limit: float,
    progress: Progress,
) -> EntropyBounds:
    """Return bounds by strips and rings, of the given width or of growing ones."""
    cliques = kind in BASES
    if width is not None:
        width = _check.whole(width, "width", minimum=2 if cliques else 4, maximum=40)
        if not cliques and width % 2:
            theorem = "A" if MIRRORS[kind].lines == 2 else "A'"
            raise ValueError(f"`width` must be even: theorem {theorem} says nothing about odd rings, got {width}")
    if cliques and (power is not None or boundary is not None):
        raise ValueError(f"`power` and `boundary_activity` must be left out for {kind!r}, whose strips have theorem B")
    if cliques and activity != 1:
        raise ValueError(f"`activity` must be 1 for {kind!r}: theorem B is proved for it alone, got {activity}")
    if not 1e-9 <= activity <= 10**9:
        raise ValueError(f"`activity` must be between 1e-9 and 1e9 for strips and rings, got {float(activity)}")
    power = 1 if power is None else _check.whole(power, "power", minimum=1, maximum=39)
    if boundary is not None:
        boundary = _check.real(boundary, "boundary_activity", positive=True)
        if not 1e-6 <= boundary <= 1e6:
            raise ValueError(f"`boundary_activity` must be between 1e-6 and 1e6, got {boundary}")
    start = time.perf_counter()
    growing = range(2, (widest or 30) + 1) if cliques else range(4, (widest or 40) + 1, 2)
    widths = [width] if width is not None else list(growing)
    best: EntropyBounds | None = None
    rounds: list[_Round] = []
    with reporting(progress, "strips and rings") as report:
        for done, lines in enumerate(widths):
            if report is not None:
                report(done, len(widths))
            if width is None:
                _refuse_long(kind, wanted, rounds, widths[done:], time_limit)
            began = time.process_time()
            try:
                if cliques:
                    lower, upper, theorem, evidence = clique_bounds(kind, lines, precision)
                else:
                    lower, upper, theorem, evidence = ring_bounds(kind, lines, power, boundary, activity, precision)
            except TooLargeError:
                if best is None:
                    raise
                break
            if not cliques:
                boundary = evidence["boundary_activity"] if lines >= 8 and width is None else boundary
            evidence |= {"width": lines, "seconds": time.perf_counter() - start}
            found = EntropyBounds(lower, upper, kind, activity, theorem, "ring", evidence)
            rounds.append(_Round(lines, found.width, evidence["states"], time.process_time() - began))
            # Proved intervals may be cut with one another; the last one's evidence stands for all.
            if best is not None:
                better = found.width < best.width
                lower, upper = max(found.lower, best.lower), min(found.upper, best.upper)
                if not better or found.width > best.width * Decimal("0.7"):
                    best = replace(found if better else best, lower=lower, upper=upper)
                    break
                found = replace(found, lower=lower, upper=upper)
            best = found
            if best.digits >= wanted:
                break
    assert best is not None
    best.evidence["reached"] = best.digits >= wanted
    return best


class _Round(NamedTuple):
    """What strips and rings of a width proved, and in how many seconds."""

    lines: int
    width: Decimal
    states: int
    seconds: float


def _refuse_long(kind: str, wanted: int, rounds: list[_Round], ahead: list[int], limit: float) -> None:
    """Refuse digits that are farther than the widths ahead, or than a time limit, going on as the last rounds went.

    Each round divides the interval by the same factor, about, and takes longer as its states are more.
    """
    if len(rounds) < 3 or rounds[-1].seconds < TIMED or limit == math.inf:
        return
    earlier, last = rounds[-2:]
    shrink = math.log10(earlier.width / last.width)
    if not shrink > 0.1:
        return  # it has stopped shrinking, and ends by itself
    growth = last.states / earlier.states
    proved = -math.log10(last.width)
    rounds_left = math.ceil((wanted - proved) / shrink)
    spent = sum(entry.seconds for entry in rounds)
    ends = [spent]
    for step in range(1, rounds_left + 1):
        ends.append(ends[-1] + last.seconds * growth**step)
    if rounds_left <= len(ahead) and ends[-1] <= limit:
        return
    reach = max(step for step, seconds in enumerate(ends) if step <= len(ahead) and (step == 0 or seconds <= limit))
    lines = last.lines + rounds_left * (last.lines - earlier.lines)
    raise ValueError(
        f"`digits` must be at most {math.floor(proved + reach * shrink)} for {kind!r} by strips and rings within a "
        f"`time_limit` of {_units.in_time(limit)}, got {wanted}, which would take {lines} of at most "
        f"{ahead[-1]} lines and about {_units.in_time(ends[-1])}"
    )


def _by_windows(
    kind: str,
    cell: UnitCell | None,
    activity: Fraction,
    wanted: int,
    width: int | None,
    widest: int | None,
    progress: Progress,
) -> EntropyBounds:
    """Return bounds by windows about a cell, of the given width or of growing ones."""
    if cell is None:
        raise ValueError(f"`lattice` must repeat a unit cell, got {kind!r}")
    if width is not None:
        width = _check.whole(width, "width", minimum=1, maximum=60)
    if not 1e-9 <= activity <= 10**9:
        raise ValueError(f"`activity` must be between 1e-9 and 1e9 for windows, got {float(activity)}")
    widths = tuple(w for w in WIDTHS if widest is None or w <= widest) if width is None else (width,)

    def interval(lower: Decimal, upper: Decimal) -> EntropyBounds:
        return EntropyBounds(lower, upper, kind, activity, "C", "window")

    with reporting(progress, "windows") as report:
        lower, upper, evidence = window_intervals(
            cell, activity, widths, lambda low, high: interval(low, high).digits >= wanted, report
        )
    bounds = replace(interval(lower, upper), evidence=evidence)
    bounds.evidence["reached"] = bounds.digits >= wanted
    return bounds


def cell_of(lattice: object) -> UnitCell | None:
    """Return the unit cell of a lattice that is given by name or as an object, if it has one."""
    if isinstance(lattice, UnitCell):
        return lattice
    if isinstance(lattice, Lattice) and lattice.unit_cell is not None:
        return lattice.unit_cell
    kind = {"4-8-8": "truncated-square"}.get(kind_of(lattice), kind_of(lattice))
    return None if "aztec" in kind else UnitCell.named(kind)


def kind_of(lattice: object) -> str:
    """Return the name of a lattice that is given by name or as an object."""
    if isinstance(lattice, str):
        word = "-".join(lattice.lower().replace("_", " ").replace("-", " ").replace(".", " ").split())
        kind = "aztec-diamond" if word == "aztec-diamond" else named(lattice, 3, 3).kind
    elif isinstance(lattice, (Lattice, UnitCell)):
        kind = lattice.kind
    else:
        raise TypeError(f"`lattice` must be a name, a Lattice or a UnitCell, got {type(lattice).__name__}")
    if kind is None:
        return "a lattice without a name"
    return {"truncated-square": "4-8-8"}.get(kind, kind)


def corner_rounds(
    kind: str,
    activity: Fraction,
    digits: int,
    bond_dimension: int | None,
    max_bond_dimension: int,
    *,
    estimate: bool,
    progress: Progress,
    pair: Fraction = Fraction(1),
) -> list[dict[str, Any]]:
    """Return the rounds of growing bond dimensions."""
    # Every constant is below 1 + activity, and a gap of kappa**sites is so many times that of kappa.
    sites = {"4-8-8": 4, "honeycomb": 2, "kagome": 3, "square-diagonal": 2, "honeycomb-rows": 4}.get(kind, 1)
    gap = 0.8 * sites * 10.0**-digits / (1 + float(activity))
    weights = (activity.numerator, activity.denominator, float(activity))
    with reporting(progress, "corner tensors") as report:
        return _core.corner_bounds(
            kind,
            weights,
            pair=(pair.numerator, pair.denominator, float(pair)),
            gap=gap,
            bond_dimension=bond_dimension,
            max_bond_dimension=max_bond_dimension,
            estimate=estimate,
            progress=report,
        )
