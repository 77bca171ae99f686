"""Bounds by corner tensors: trial vectors of growing bond dimension on a long ring, theorems D and E."""

import math
import time
from fractions import Fraction

from quincunx import _check, _core
from quincunx._job import Job
from quincunx._progress import Progress, reporting
from quincunx.entropy._gas import EntropyBounds, Gas
from quincunx.entropy._numbers import Enclosure, root_above, root_below
from quincunx.lattices._registry import LATTICES

#: The largest bond dimension: beyond it single products take so long that an interrupt would not be heard in time.
MOST_BONDS = 160


def tensors_of(kind: str | None, model: str) -> list[tuple[int, str | None]]:
    """Return sites and theorem of each row operator of a lattice."""
    row = LATTICES.get(kind or "")
    return [] if row is None else row.matching_tensors if model == "matchings" else row.row_tensors


def corner_theorem(gas: Gas) -> str | None:
    """Return the theorem by which rings bound what corner tensors estimate, for a lattice that has one."""
    tensors = tensors_of(gas.cell.kind, gas.model)
    return tensors[0][1] if tensors else None


def by_corner(gas: Gas, bond_dimension: int | None, max_bond_dimension: int, job: Job) -> EntropyBounds:
    """Return bounds by corner tensors, of the given bond dimension or of growing ones."""
    if (theorem := corner_theorem(gas)) is None:
        known = ", ".join(name for name in LATTICES if any(tensors_of(name, gas.model)[:1]))
        raise ValueError(f"`lattice` must be one of {known}: no theorem bounds {gas.name!r} by corner tensors")
    return narrowest(gas, bond_dimension, max_bond_dimension, job, f"D and {theorem}", gas.activity, gas.model)


def narrowest(
    gas: Gas,
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


def no_gap(error: ValueError) -> str:
    """Return what corner tensors did not prove, in words."""
    return f"corner tensors prove no spectral gap at these weights: {str(error).partition(', where ')[2]}"


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
