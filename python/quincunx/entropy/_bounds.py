"""Certified bounds of entropies and growth constants of lattice gases, matchings and face models."""

import math
import os
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from quincunx import _check
from quincunx._job import Job
from quincunx._progress import Progress, reporting
from quincunx._types import Facts
from quincunx.entropy._by_width import TIME_LIMIT, by_strips, faces_by_rings
from quincunx.entropy._corner import MOST_BONDS, by_corner, corner_theorem, narrowest, no_gap
from quincunx.entropy._gas import HELD, EntropyBounds, Gas
from quincunx.entropy._models import Equivalent, FaceModel, easier, model_of, normalized
from quincunx.entropy._numbers import Enclosure, positive_rational, root_above, root_below
from quincunx.entropy._strips import base_of, mirrors_of
from quincunx.entropy._windows import WIDTHS, window_intervals
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of
from quincunx.lattices._registry import LATTICES


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
    gas = Gas(unit_cell_of(lattice), fugacity, digits, progress, name, may_be_empty=faces is None)
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
    # Whatever method then asks for them.
    max_bond_dimension = _check.whole(max_bond_dimension, "max_bond_dimension", minimum=3, maximum=MOST_BONDS)
    if not (isinstance(time_limit, float) and time_limit == math.inf):
        time_limit = _check.real(time_limit, "time_limit", positive=True)
    _check.one_of(method, "method", ["auto", *_OPTIONS])
    if faces is not None:
        return _of_faces(gas, easier(faces), method, asked, max_bond_dimension, job)
    if name == "matchings" and (corner_theorem(gas) is None or method == "window"):
        return _by_line_graph(gas, method, asked | {"time_limit": time_limit}, max_bond_dimension)
    falls_back = False
    if method == "auto":
        has_strips = gas.model == "matchings" or mirrors_of(gas.cell.kind) or base_of(gas.cell.kind)
        method = "corner" if corner_theorem(gas) and width is None else "ring" if has_strips else "window"
        falls_back = method == "corner" and bond_dimension is None
    for name, value in asked.items():
        if value is not None and name not in _OPTIONS[method]:
            raise ValueError(f"`{name}` must be left out for the method {method!r}, got {value!r}")
    if method == "corner":
        try:
            bounds = by_corner(gas, bond_dimension, max_bond_dimension, job)
        except ValueError as error:
            if not falls_back or "spectral gap" not in str(error):
                raise
            lacked = no_gap(error)
            try:
                bounds = by_strips(gas, width, power, boundary_activity, precision, time_limit)
            except ValueError as refusal:
                raise ValueError(f"{refusal}; {lacked}") from None
            bounds.evidence["corner"] = lacked
    elif method == "ring":
        bounds = by_strips(gas, width, power, boundary_activity, precision, time_limit)
    else:
        bounds = _by_windows(gas, width)
    bounds.evidence["reached"] = bounds.growth_constant.digits >= gas.wanted
    return bounds


#: The methods, and the arguments that each alone has.
_OPTIONS = {
    "corner": ("bond_dimension", "checkpoint", "checkpoint_interval"),
    "ring": ("width", "power", "boundary_activity", "precision"),
    "window": ("width",),
}


def _by_windows(gas: Gas, width: int | None) -> EntropyBounds:
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


def _by_line_graph(gas: Gas, method: str, asked: Facts, max_bond_dimension: int) -> EntropyBounds:
    """Return bounds of matchings as independent sets of the line graph, which may be a lattice of the field."""
    line = next((name for name, row in LATTICES.items() if row.line_graph_of == gas.name), None)
    if not gas.cell.bonds:
        raise ValueError(f"`lattice` must have bonds, got {gas.cell!r}")
    cell = unit_cell_of(line) if line else gas.cell.line_graph()
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
    gas: Gas, equivalent: Equivalent, method: str, asked: Facts, max_bond_dimension: int, job: Job
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
            bounds = narrowest(gas, *how, "D and A'", Fraction(1), faces, scale * factor)
        except ValueError as error:
            if "spectral gap" not in str(error):
                raise
            refused = no_gap(error)
            if method == "corner" or asked["bond_dimension"] is not None:
                raise ValueError(f"`model` must have a spectral gap, got {model!r}: {refused}") from None
            corner = False
    if not corner:
        bounds = faces_by_rings(gas, model if sides else model.transposed(), factor, width, power)
    if refused is not None:
        bounds.evidence["corner"] = refused
    if because is not None:
        bounds.evidence["equivalent"] = f"{because}: {factor} times the constant of {model.name}"
    bounds.evidence["reached"] = bounds.growth_constant.digits >= gas.wanted
    return bounds
