"""Bounds by strips and rings that grow until the digits are proved, or what is proved stops growing."""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from quincunx import _check, _units
from quincunx._progress import reporting
from quincunx.entropy._face_rings import best_ends, face_ring_bounds, face_widths
from quincunx.entropy._gas import HELD, EntropyBounds, Gas
from quincunx.entropy._matching_rings import matching_ring_bounds
from quincunx.entropy._models import FaceModel
from quincunx.entropy._numbers import Enclosure
from quincunx.entropy._strips import Base, Mirrors, Proof, base_of, clique_bounds, mirrors_of, ring_bounds
from quincunx.errors import TooLargeError
from quincunx.lattices._registry import LATTICES

#: Seconds that strips and rings may be forecast to take; and those of a round from which a forecast is good.
TIME_LIMIT = 300.0
TIMED = 0.25


def by_strips(
    gas: Gas, width: int | None, power: int | None, boundary: float | None, precision: str | None, time_limit: float
) -> EntropyBounds:
    """Return bounds by strips and rings, of the given width or of growing ones."""
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
    limit = time_limit if width is None and gas.digits is not None else math.inf
    return _narrowed(gas, "strips and rings", widths, prove, 0.7, limit)


def _narrowed(
    gas: Gas, what: str, widths: list[int], prove: Callable[[int], Proof], least: float, limit: float
) -> EntropyBounds:
    """Return what growing widths prove, until the digits are reached or an interval is not `least` times as wide."""
    start = time.perf_counter()
    best: Enclosure | None = None
    rounds: list[_Round] = []
    with reporting(gas.progress, what) as report:
        for done, lines in enumerate(widths):
            if report is not None:
                report(done, len(widths))
            _refuse_long(gas.name, gas.wanted, rounds, widths[done:], limit)
            began = time.process_time()
            try:
                lower, upper, theorem, evidence = prove(lines)
                found = Enclosure(lower, upper)
            except TooLargeError:
                if best is None:
                    raise
                break
            rounds.append(_Round(lines, float(found.width), evidence["states"], time.process_time() - began))
            better = best is None or found.width < best.width
            if better:
                proof = theorem, "ring", evidence | {"width": lines, "seconds": time.perf_counter() - start}
            # Proved intervals may be cut with one another; the evidence of the narrowest stands for all.
            shrinks = best is None or float(found.width) <= float(best.width) * least
            best = found if best is None else Enclosure(max(found.lower, best.lower), min(found.upper, best.upper))
            if best.digits >= gas.wanted or not (better and shrinks):
                break
    assert best is not None
    return gas.bounds(best, *proof)


def _cliques(gas: Gas, base: Base, width: int | None, precision: str) -> tuple[list[int], Callable[[int], Proof]]:
    """Return the columns of inserted cliques to try, and what proves bounds by so many."""
    if gas.activity != 1:
        raise ValueError(f"`activity` must be 1 for {gas.name!r}: theorem B is proved for it alone, got {gas.activity}")
    widths = list(range(2, 13 if gas.digits is None else 31))
    if width is not None:
        widths = [_check.whole(width, "width", minimum=2, maximum=40)]
    return widths, lambda columns: clique_bounds(base, columns, precision)


def _matchings(
    gas: Gas, width: int | None, power: int | None, boundary: float | None, precision: str
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
    gas: Gas, mirrors: Mirrors, width: int | None, power: int | None, boundary: float | None, precision: str
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
    width: float
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


def faces_by_rings(gas: Gas, model: FaceModel, factor: Fraction, width: int | None, power: int | None) -> EntropyBounds:
    """Return bounds by rings and strips of the given number of columns or of growing ones."""
    gas.check("rings of a face model", HELD["double"], "for rings of a face model")
    widths = face_widths(model, long=gas.digits is not None)
    power = _power(power)
    if width is not None:
        fitting = face_widths(model, long=True)[-1]
        widths = [_check.whole(width, "width", minimum=2, maximum=fitting)]
        if width % 2:
            raise ValueError(f"`width` must be even: theorem A' says nothing about odd rings, got {width}")
    ends = best_ends(model)
    prove = lambda columns: face_ring_bounds(model, columns, power, ends, factor)  # noqa: E731
    return _narrowed(gas, "rings", widths, prove, 0.9, math.inf)
