"""Certified bounds of entropies and growth constants of lattice gases, matchings and face models."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

from quincunx import _check, _core, _units
from quincunx._job import Job
from quincunx._progress import Progress, reporting
from quincunx._types import Facts
from quincunx.entropy._face_rings import best_ends, face_ring_bounds, face_widths
from quincunx.entropy._matching_rings import matching_ring_bounds
from quincunx.entropy._models import Equivalent, FaceModel, easier, model_of, normalized
from quincunx.entropy._numbers import Enclosure, log_above, log_below, positive_rational, root_above, root_below
from quincunx.entropy._strips import Base, Mirrors, Proof, base_of, clique_bounds, mirrors_of, ring_bounds
from quincunx.entropy._windows import WIDTHS, window_intervals
from quincunx.errors import TooLargeError
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of
from quincunx.lattices._registry import LATTICES

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
class EntropyBounds(Enclosure):
    """A certified interval of an entropy per vertex, in nats, with its evidence.

    Attributes
    ----------
    lower, upper : Decimal
        The ends: the entropy is at least `lower` and at most `upper`. They are rounded outwards.
    growth_constant : Enclosure
        The interval of the growth constant per vertex, of which the entropy is the logarithm.
    lattice : str
        The lattice.
    activity : Fraction
        The weight of what the model counts: occupied vertices, dimers.
    theorem : str
        The theorem the interval rests on, as ``docs/mathematics/entropy.md`` names it.
    method : str
        How it was found.
    evidence : dict
        What the theorem was applied to: rings, widths or bond dimension, enclosures, time.
    model : str
        What lives on the lattice.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> bounds = entropy_bounds("4-8-8", digits=18)
    >>> bounds.certified[:19], bounds.growth_constant.certified[:20]
    ('0.43797108506090129', '1.549560101335769447')
    """

    growth_constant: Enclosure
    lattice: str
    activity: Fraction
    theorem: str
    method: str
    evidence: Facts = field(default_factory=dict, compare=False)
    model: str = "independent-sets"


def entropy_bounds(
    lattice: "str | Lattice | UnitCell",
    *,
    model: "str | FaceModel" = "independent-sets",
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
    checkpoint: "str | os.PathLike[str] | None" = None,
    checkpoint_interval: float | None = None,
) -> EntropyBounds:
    r"""Bound the entropy of a lattice model per vertex, and its growth constant, with proof.

    The entropy is ``ln kappa``, and the growth constant ``kappa = lim Z(G)**(1/n)`` over growing pieces ``G`` of ``n``
    vertices, where ``Z`` is the number of independent sets, or their sum weighted by ``activity**size``, or that of
    another model. Both ends are proved; nothing is fitted.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        The lattice, by name or as an object of which only the unit cell matters: ``"square"``, ``"king"``, ``"4-8-8"``,
        ``"honeycomb"``, ``"kagome"``, ``"triangular"``, ``"triangular-kagome"``, ``"3-12-12"``, ``"3-6-24"``,
        ``"3-6-12-48"``, ``"modified-bathroom"``, ``"martini"``, or any unit cell.
    model : str or FaceModel, default "independent-sets"
        ``"matchings"`` on any lattice (monomers and dimers); on the square lattice ``"widom-rowlinson"``, ``"ising"``
        (no field, the activity ``exp(2 J / T)``) or a `FaceModel` with weights of its own.
    activity : int, float, Fraction or Decimal, default 1
        The weight of an occupied vertex, of a dimer, of a particle of either kind, or of a pair of neighbors alike in
        the Ising model, > 0. A float is the rational number it is.
    digits : int, optional
        Decimals of the growth constant to prove: the effort is raised until both its ends have them, or memory ends; at
        most 60 by corner tensors, 28 by strips and rings, 14 by windows. By default what takes a few seconds, up to 14.
        The entropy has as many or, where its ends lie about a round number, fewer: its own `digits` say how many.
    method : {"auto", "corner", "ring", "window"}, default "auto"
        ``"corner"``: trial vectors of corner tensors on a long ring, for the first five. ``"ring"``: strips and rings
        by transfer operators, for all names but the martini lattice. ``"window"``: the sites around a cell, for any
        unit cell. ``"auto"`` takes the first that can; a width asks for strips and rings. Where corner tensors prove
        no gap, near a transition and beyond it, it goes on to strips and rings, and ``evidence["corner"]`` says why.
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
        Whether a long job may be interrupted by, or shown by, a function of ``(done, total)``: for corner tensors
        tenths of the digits that are proved.
    checkpoint : path, optional
        Where a job of corner tensors keeps its state, as `quincunx.counting.count_independent_sets` does: called again
        after a stop, even by ``kill -9``, it goes on from there and gives the same interval. It is written at
        intervals between two power steps, and when the job is stopped; a proof that was cut off begins again. The
        file is removed at the end.
    checkpoint_interval : float, optional
        Seconds between two checkpoints; by default 30, and more where writing takes long.

    Returns
    -------
    EntropyBounds
        With `lower` and `upper` in nats as `decimal.Decimal`, rounded outwards, and `growth_constant` likewise.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If no theorem bounds the constant of the lattice or model by this method, a number is out of its range, the
        precision cannot hold the digits, they are not within `time_limit`, or corner tensors, which were asked for,
        prove no spectral gap at the activity.
    TooLargeError
        If the strips of the given width do not fit into memory.
    CheckpointError
        If the checkpoint cannot be written, is damaged, or belongs to another job.

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
    .. [3] Y. Chan and A. Rechnitzer (2018), Upper bounds on the growth rates of hard squares and related models via
       corner transfer matrices, Linear Algebra Appl. 555.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> bounds = entropy_bounds("square", digits=20)
    >>> bounds.growth_constant.certified[:22]
    '1.50304808247533226432'
    >>> bounds.theorem
    'D and E'
    """
    fugacity = positive_rational(activity, "activity")
    name, faces = model_of(model, fugacity)
    gas = _Gas(unit_cell_of(lattice), fugacity, digits, progress, name)
    asked = {
        "width": width,
        "power": power,
        "boundary_activity": boundary_activity,
        "precision": precision,
        "bond_dimension": bond_dimension,
        "checkpoint": checkpoint,
        "checkpoint_interval": checkpoint_interval,
    }
    job = Job(checkpoint=checkpoint, checkpoint_interval=checkpoint_interval)
    if digits is not None:
        gas = gas._replace(digits=_check.whole(digits, "digits", minimum=1, maximum=60))
    _check.one_of(method, "method", ["auto", *_OPTIONS])
    if faces is not None:
        return _of_faces(gas, easier(faces), method, asked, max_bond_dimension, job)
    if name == "matchings" and (_theorem(gas) is None or method == "window"):
        return _by_line_graph(gas, method, asked | {"time_limit": time_limit}, max_bond_dimension)
    falls_back = False
    if method == "auto":
        has_strips = gas.model == "matchings" or mirrors_of(gas.cell.kind) or base_of(gas.cell.kind)
        method = "corner" if _theorem(gas) and width is None else "ring" if has_strips else "window"
        falls_back = method == "corner" and bond_dimension is None
    for name, value in asked.items():
        if value is not None and name not in _OPTIONS[method]:
            raise ValueError(f"`{name}` must be left out for the method {method!r}, got {value!r}")
    if method == "corner":
        try:
            bounds = _by_corner(gas, bond_dimension, max_bond_dimension, job)
        except ValueError as error:
            if not falls_back or "spectral gap" not in str(error):
                raise
            lacked = _lacked(error)
            try:
                bounds = _by_strips(gas, width, power, boundary_activity, precision, time_limit)
            except ValueError as refusal:
                raise ValueError(f"{refusal}; {lacked}") from None
            bounds.evidence["corner"] = lacked
    elif method == "ring":
        bounds = _by_strips(gas, width, power, boundary_activity, precision, time_limit)
    else:
        bounds = _by_windows(gas, width)
    bounds.evidence["reached"] = bounds.growth_constant.digits >= gas.wanted
    return bounds


def _lacked(error: ValueError) -> str:
    """Return what corner tensors did not prove, in words."""
    return f"corner tensors prove no spectral gap at these weights: {str(error).partition(', where ')[2]}"


#: The methods, and the arguments that each alone has.
_OPTIONS = {
    "corner": ("bond_dimension", "checkpoint", "checkpoint_interval"),
    "ring": ("width", "power", "boundary_activity", "precision"),
    "window": ("width",),
}


class _Gas(NamedTuple):
    """What is bounded: a model on a lattice, to how many digits."""

    cell: UnitCell
    activity: Fraction
    digits: int | None
    progress: Progress
    model: str = "independent-sets"

    @property
    def name(self) -> str:
        """The lattice's name."""
        return self.cell.kind or "a lattice without a name"

    @property
    def wanted(self) -> int:
        """The digits to prove."""
        return DEFAULT_DIGITS if self.digits is None else self.digits

    def bounds(self, kappa: Enclosure, theorem: str, method: str, evidence: Facts) -> EntropyBounds:
        """Return what was proved."""
        ends = log_below(kappa.lower), log_above(kappa.upper)
        return EntropyBounds(*ends, kappa, self.name, self.activity, theorem, method, evidence, self.model)

    def check(self, method: str, held: int, arithmetic: str) -> None:
        """Refuse what a method of doubles or double-doubles does not reach."""
        if self.digits is not None and self.digits > held:
            raise ValueError(f"`digits` must be at most {held} {arithmetic}, got {self.digits}")
        if not 1e-9 <= self.activity <= 10**9:
            raise ValueError(f"`activity` must be between 1e-9 and 1e9 for {method}, got {float(self.activity)}")


def tensors_of(kind: str | None, model: str) -> list[tuple[int, str | None]]:
    """Return sites and theorem of each row operator of a lattice."""
    row = LATTICES.get(kind or "")
    return [] if row is None else row.matching_tensors if model == "matchings" else row.row_tensors


def _theorem(gas: _Gas) -> str | None:
    """Return the theorem by which rings bound what corner tensors estimate, for a lattice that has one."""
    tensors = tensors_of(gas.cell.kind, gas.model)
    return tensors[0][1] if tensors else None


def _by_corner(gas: _Gas, bond_dimension: int | None, max_bond_dimension: int, job: Job) -> EntropyBounds:
    """Return bounds by corner tensors, of the given bond dimension or of growing ones."""
    if (theorem := _theorem(gas)) is None:
        known = ", ".join(name for name in LATTICES if any(tensors_of(name, gas.model)[:1]))
        raise ValueError(f"`lattice` must be one of {known}: no theorem bounds {gas.name!r} by corner tensors")
    return _narrowest(gas, bond_dimension, max_bond_dimension, job, f"D and {theorem}", gas.activity, gas.model)


def _narrowest(
    gas: _Gas,
    bond_dimension: int | None,
    max_bond_dimension: int,
    job: Job,
    theorem: str,
    activity: Fraction,
    model: "str | _core._Faces",
    factor: Fraction = Fraction(1),
) -> EntropyBounds:
    """Return what the round of the smallest gap proved, times a factor."""
    if bond_dimension is not None:
        bond_dimension = _check.whole(bond_dimension, "bond_dimension", minimum=3, maximum=MOST_BONDS)
    max_bond_dimension = _check.whole(max_bond_dimension, "max_bond_dimension", minimum=3, maximum=MOST_BONDS)
    start = time.perf_counter()
    rounds = corner_rounds(
        gas.name,
        activity,
        gas.wanted,
        bond_dimension,
        max_bond_dimension,
        estimate=False,
        progress=gas.progress,
        job=job,
        model=model,
        factor=factor,
    )
    last = min(rounds, key=lambda entry: float(entry["gap"]))
    evidence = {
        "bond_dimension": last["bond_dimension"],
        "ring": last["ring"],
        "torus_rows": last["rows"],
        "second_eigenvalue": last["second"],
        "relative_gap": last["gap"],
        "rounds": [(entry["bond_dimension"], entry["gap"]) for entry in rounds],
        "steps": last["steps"],
        "seconds": time.perf_counter() - start,
    }
    return gas.bounds(_enclosed(last, factor), theorem, "corner", evidence)


def _enclosed(entry: "_core._CornerRound", factor: Fraction) -> Enclosure:
    """Return the interval of the growth constant that a round proved, times a factor."""
    unit = 1 << entry["precision"]
    lower, upper = (factor * Fraction(entry[end] or 0, unit) for end in ("lower", "upper"))
    size = math.log10(upper) if upper < 1 else 0.0
    places = max(math.ceil(-math.log10(entry["gap"]) - size), 1) + 2
    return Enclosure(root_below(lower, entry["sites"], places), root_above(upper, entry["sites"], places))


def _by_strips(
    gas: _Gas, width: int | None, power: int | None, boundary: float | None, precision: str | None, time_limit: float
) -> EntropyBounds:
    """Return bounds by strips and rings, of the given width or of growing ones."""
    if time_limit != math.inf:
        time_limit = _check.real(time_limit, "time_limit", positive=True)
    if precision is None:
        precision = "double" if gas.digits is None or gas.digits < 13 else "double-double"
    _check.one_of(precision, "precision", list(HELD))
    gas.check("strips and rings", HELD[precision], f"in {precision} arithmetic")
    if gas.model == "matchings":
        widths, prove = _matchings(gas, width, power, boundary, precision)
    elif base := base_of(gas.cell.kind):
        if power is not None or boundary is not None:
            raise ValueError(f"`power` and `boundary_activity` must be left out for {gas.name!r}: it has theorem B")
        widths, prove = _cliques(gas, base, width, precision)
    elif mirrors := mirrors_of(gas.cell.kind):
        widths, prove = _rings(gas, mirrors, width, power, boundary, precision)
    else:
        known = ", ".join(name for name in sorted(LATTICES) if mirrors_of(name) or base_of(name))
        raise ValueError(f"`lattice` must be one of {known}: no theorem bounds {gas.name!r} by strips")
    start = time.perf_counter()
    best: Enclosure | None = None
    rounds: list[_Round] = []
    with reporting(gas.progress, "strips and rings") as report:
        for done, lines in enumerate(widths):
            if report is not None:
                report(done, len(widths))
            if width is None and gas.digits is not None:
                _refuse_long(gas.name, gas.wanted, rounds, widths[done:], time_limit)
            began = time.process_time()
            try:
                lower, upper, theorem, evidence = prove(lines)
                found = Enclosure(lower, upper)
            except TooLargeError:
                if best is None:
                    raise
                break
            rounds.append(_Round(lines, found.width, evidence["states"], time.process_time() - began))
            better = best is None or found.width < best.width
            if better:
                proof = theorem, "ring", evidence | {"width": lines, "seconds": time.perf_counter() - start}
            # Proved intervals may be cut with one another; the evidence of the narrowest stands for all.
            shrinks = best is None or found.width <= best.width * Decimal("0.7")
            best = found if best is None else Enclosure(max(found.lower, best.lower), min(found.upper, best.upper))
            if best.digits >= gas.wanted or not (better and shrinks):
                break
    assert best is not None
    return gas.bounds(best, *proof)


def _cliques(gas: _Gas, base: Base, width: int | None, precision: str) -> tuple[list[int], Callable[[int], Proof]]:
    """Return the columns of inserted cliques to try, and what proves bounds by so many."""
    if gas.activity != 1:
        raise ValueError(f"`activity` must be 1 for {gas.name!r}: theorem B is proved for it alone, got {gas.activity}")
    widths = list(range(2, 13 if gas.digits is None else 31))
    if width is not None:
        widths = [_check.whole(width, "width", minimum=2, maximum=40)]
    return widths, lambda columns: clique_bounds(base, columns, precision)


def _matchings(
    gas: _Gas, width: int | None, power: int | None, boundary: float | None, precision: str
) -> tuple[list[int], Callable[[int], Proof]]:
    """Return the columns of cells to try, and what proves bounds of matchings by so many."""
    if boundary is not None:
        boundary = _check.real(boundary, "boundary_activity", positive=True)
    most = 25 if gas.digits is not None else 13 if gas.cell.num_sites == 1 else 9
    widths = _even_widths("E", width, range(4, most, 2))
    steps = _power(power)
    return widths, lambda columns: matching_ring_bounds(gas.cell, columns, steps, boundary, gas.activity, precision)


def _even_widths(theorem: str, width: int | None, widths: range) -> list[int]:
    """Return the widths to try: those of a range, or the one that is asked for."""
    if width is None:
        return list(widths)
    if _check.whole(width, "width", minimum=4, maximum=40) % 2:
        raise ValueError(f"`width` must be even: theorem {theorem} says nothing about odd rings, got {width}")
    return [width]


def _power(power: int | None) -> int:
    return 1 if power is None else _check.whole(power, "power", minimum=1, maximum=39)


def _rings(
    gas: _Gas, mirrors: Mirrors, width: int | None, power: int | None, boundary: float | None, precision: str
) -> tuple[list[int], Callable[[int], Proof]]:
    """Return the mirror lines to try, and what proves bounds by rings and strips of so many."""
    widths = _even_widths(mirrors.theorem, width, range(4, 23 if gas.digits is None else 41, 2))
    steps = _power(power)
    if boundary is not None:
        boundary = _check.real(boundary, "boundary_activity", positive=True)
        if not 1e-6 <= boundary <= 1e6:
            raise ValueError(f"`boundary_activity` must be between 1e-6 and 1e6, got {boundary}")

    def prove(lines: int) -> Proof:
        nonlocal boundary
        found = ring_bounds(mirrors, lines, steps, boundary, gas.activity, precision)
        if lines >= 8:
            boundary = found[3]["boundary_activity"]  # that of wider strips is no better
        return found

    return widths, prove


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


def _by_windows(gas: _Gas, width: int | None) -> EntropyBounds:
    """Return bounds by windows about a cell, of the given width or of growing ones."""
    gas.check("windows", HELD["double"], "for windows")
    if width is not None:
        width = _check.whole(width, "width", minimum=1, maximum=60)
    widths = (width,) if width is not None else tuple(w for w in WIDTHS if w <= 20 or gas.digits is not None)

    with reporting(gas.progress, "windows") as report:
        lower, upper, evidence = window_intervals(
            gas.cell, gas.activity, widths, lambda low, high: Enclosure(low, high).digits >= gas.wanted, report
        )
    return gas.bounds(Enclosure(lower, upper), "C", "window", evidence)


def _by_line_graph(gas: _Gas, method: str, asked: Facts, max_bond_dimension: int) -> EntropyBounds:
    """Return bounds of matchings as independent sets of the line graph, which may be a lattice of the field."""
    line = next((name for name, row in LATTICES.items() if row.line_graph_of == gas.name), None)
    cell = unit_cell_of(line) if line else gas.cell.line_graph()
    if cell.num_sites == 0:
        raise ValueError(f"`lattice` must have bonds, got {gas.cell!r}")
    if method == "auto" and line is None:
        method = "window"
    exponent = Fraction(cell.num_sites, gas.cell.num_sites)
    most = {"window": HELD["double"], "ring": HELD["exact"]}.get(method, 60)
    for more in (1, 3) if asked["checkpoint"] is None else (3,):  # a file keeps one job
        digits = None if gas.digits is None else min(gas.digits + more, max(most, gas.digits))
        found = entropy_bounds(
            cell,
            activity=gas.activity,
            digits=digits,
            method=method,  # type: ignore[arg-type]
            max_bond_dimension=max_bond_dimension,
            progress=gas.progress,
            **asked,
        )
        ends = found.growth_constant
        places = -int(ends.lower.as_tuple().exponent)
        low, high = (Fraction(end) ** exponent.numerator for end in (ends.lower, ends.upper))
        kappa = Enclosure(root_below(low, exponent.denominator, places), root_above(high, exponent.denominator, places))
        if kappa.digits >= gas.wanted or digits is None or not found.evidence["reached"]:
            break
    evidence = found.evidence | {"line_graph": found.lattice, "bonds_per_vertex": exponent.as_integer_ratio()}
    evidence["reached"] = kappa.digits >= gas.wanted
    return gas.bounds(kappa, found.theorem, found.method, evidence)


def _of_faces(
    gas: _Gas, equivalent: Equivalent, method: str, asked: Facts, max_bond_dimension: int, job: Job
) -> EntropyBounds:
    """Return bounds of a face model, by corner tensors if both of its mirrors hold, or by rings if one does."""
    model, factor, because = equivalent
    if gas.name != "square":
        raise ValueError(f"`lattice` must be 'square' for a model of faces, got {gas.name!r}")
    sides, heights = model.mirrors
    if not (sides or heights):
        raise ValueError(
            "`model` must have weights that stay what they are if left and right are exchanged, faces[a, b, c, d] = "
            "faces[b, a, d, c] and bonds[0] symmetric, or above and below, faces[a, b, c, d] = faces[c, d, a, b] and "
            f"bonds[1] symmetric: no theorem bounds the others, got {model!r}"
        )
    if method == "window":
        raise ValueError("`method` must be 'auto', 'corner' or 'ring' for a model of faces, got 'window'")
    if method == "corner" and not (sides and heights):
        missing = "left and right" if heights else "above and below"
        raise ValueError(f"`model` must be the same with {missing} exchanged for corner tensors, got {model!r}")
    width, power = asked["width"], asked["power"]
    corner = method == "corner" or (method == "auto" and sides and heights and width is None)
    allowed = _OPTIONS["corner"] if corner else ("width", "power")
    for name, value in asked.items():
        if value is not None and name not in allowed:
            raise ValueError(f"`{name}` must be left out here, got {value!r}")
    refused = None
    if corner:
        try:
            faces, scale = normalized(model)
            how = asked["bond_dimension"], max_bond_dimension, job
            bounds = _narrowest(gas, *how, "D and A'", Fraction(1), faces, scale * factor)
        except ValueError as error:
            if "spectral gap" not in str(error):
                raise
            refused = _lacked(error)
            if method == "corner" or asked["bond_dimension"] is not None:
                raise ValueError(f"`model` must have a spectral gap, got {model!r}: {refused}") from None
            corner = False
    if not corner:
        bounds = _faces_by_rings(gas, model if sides else model.transposed(), factor, width, power)
    if refused is not None:
        bounds.evidence["corner"] = refused
    if because is not None:
        bounds.evidence["equivalent"] = f"{because}: {factor} times the constant of {model.name}"
    bounds.evidence["reached"] = bounds.growth_constant.digits >= gas.wanted
    return bounds


def _faces_by_rings(
    gas: _Gas, model: FaceModel, factor: Fraction, width: int | None, power: int | None
) -> EntropyBounds:
    """Return bounds by rings and strips of the given number of columns or of growing ones."""
    gas.check("rings of a face model", HELD["double"], "for rings of a face model")
    widths = face_widths(model, long=gas.digits is not None)
    power = _power(power)
    if width is not None:
        fitting = face_widths(model, long=True)[-1]
        widths = [_check.whole(width, "width", minimum=2, maximum=fitting)]
        if width % 2:
            raise ValueError(f"`width` must be even: theorem A' says nothing about odd rings, got {width}")
    start = time.perf_counter()
    ends = best_ends(model)
    best: Enclosure | None = None
    with reporting(gas.progress, "rings") as report:
        for done, columns in enumerate(widths):
            if report is not None:
                report(done, len(widths))
            lower, upper, theorem, evidence = face_ring_bounds(model, columns, power, ends, factor)
            found = Enclosure(lower, upper)
            shrinks = best is None or found.width <= best.width * Decimal("0.9")
            if best is None or found.width < best.width:
                proof = theorem, "ring", evidence | {"width": columns, "seconds": time.perf_counter() - start}
            best = found if best is None else Enclosure(max(lower, best.lower), min(upper, best.upper))
            if best.digits >= gas.wanted or not shrinks:
                break
    assert best is not None
    return gas.bounds(best, *proof)


def corner_rounds(
    lattice: str,
    activity: Fraction,
    digits: int,
    bond_dimension: int | None,
    max_bond_dimension: int,
    *,
    estimate: bool,
    progress: Progress,
    job: Job | None = None,
    form: int = 0,
    pair: Fraction = Fraction(1),
    model: "str | _core._Faces" = "independent-sets",
    factor: Fraction = Fraction(1),
) -> "list[_core._CornerRound]":
    """Return the rounds of growing bond dimensions, by the first or another form of a lattice's row operator.

    They are kept where a job says so. A face model is that of `normalized`, with the factor of its constants.
    """
    if isinstance(model, str):
        # Every constant is below 1 + activity, that of matchings below 1 + 2 activity, as a vertex has at most two
        # later neighbors; and a gap of kappa**sites is so many times that of kappa.
        sites, _ = tensors_of(lattice, model)[form]
        gap = 0.8 * sites * 10.0**-digits / (1 + (2 if model == "matchings" else 1) * float(activity))
    else:
        # Divided by its scale, no constant is above the number of letters.
        size = math.log10(model[0] * factor.numerator) - math.log10(factor.denominator)
        gap = max(min(0.8 * 10.0 ** (-digits - size), 0.1), 1e-90)
    with reporting(progress, "corner tensors") as report:
        return _core.corner_bounds(
            lattice,
            form,
            _parts(activity),
            model=model,
            pair=_parts(pair),
            factor=None if isinstance(model, str) else _parts(factor),
            gap=gap,
            bond_dimension=bond_dimension,
            max_bond_dimension=max_bond_dimension,
            estimate=estimate,
            digits=None if estimate else digits,  # estimates have no ends to compare decimals of
            checkpoint=None if job is None else job.checkpoint,
            checkpoint_interval=None if job is None else job.checkpoint_interval,
            progress=report,
        )


def _parts(number: Fraction) -> tuple[int, int, float]:
    return number.numerator, number.denominator, float(number)
