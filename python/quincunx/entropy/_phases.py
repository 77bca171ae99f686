"""Phase diagrams with proof: pressure and density along an axis of activities, by convexity between and beside points.

With t = ln z the pressure ln kappa is convex: it is a limit of ``ln Z / n``, and ln Z of a sum of powers of z with
coefficients >= 0 is. Its slope is the density. So intervals at points bound it between them, by chords from above and
by tangents from below, and the slopes at them, by quotients of differences.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from quincunx import _check, _optional
from quincunx._progress import Progress, reporting
from quincunx._types import Facts, Floats
from quincunx.counting import count_perfect_matchings, independence_number
from quincunx.entropy._bounds import entropy_bounds
from quincunx.entropy._gas import EntropyBounds
from quincunx.entropy._numbers import positive_rational
from quincunx.entropy._parts import entropy_doc
from quincunx.entropy._triangulated import Interval
from quincunx.errors import TooLargeError
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Decimals of all that is computed from the ends of intervals, and what it errs by at the most.
_PRECISION, _ERROR = 70, Decimal("1e-30")
#: Where corner tensors prove nothing by then, at a transition's edge, they hardly do so in a hundred times the time.
_MOST_BONDS = 32
#: Parts of the way from one activity to the next in pictures: more are smoother and take longer; not tuned.
_STEPS = 8
#: Cliques that are looked at for a largest one: any bounds the density.
_MOST_CLIQUES = 10_000
#: Only intervals as narrow as this are worth two more beside them, for the density.
_NARROW = Decimal("1e-6")


class _Point(NamedTuple):
    """An interval of the pressure at t = ln z."""

    t: Decimal
    lower: Decimal
    upper: Decimal


class _Limits(NamedTuple):
    """What is known of a model at any activity."""

    #: The density is at most this.
    most: Decimal
    #: So many vertices or edges can be occupied or not, each for itself.
    free: Decimal

    def floor(self, t: Decimal) -> Decimal:
        """Return a lower bound of the pressure."""
        return self.free * (1 + t.exp()).ln()


@entropy_doc
@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Proved intervals of the pressure and the density of a lattice model along an axis of activities.

    Attributes
    ----------
    lattice, model : str
        The lattice and the model.
    activities : ndarray of float64, shape (n,)
        The activities, rising.
    pressure_lower, pressure_upper : ndarray of float64, shape (n,)
        Ends of ``ln kappa`` in nats per vertex, rounded outwards.
    density_lower, density_upper : ndarray of float64, shape (n,)
        Ends of ``d ln(kappa) / d ln(activity)``, occupied vertices per vertex; at a kink, of both its slopes.
    theorems : tuple of str, length n
        The theorem at each activity; "convexity" where only other activities say something.
    reasons : tuple of (str or None), length n
        What stood against narrow intervals by corner tensors, where it did; None elsewhere.

    Examples
    --------
    >>> from quincunx.entropy import phase_diagram
    >>> diagram = phase_diagram("square", [0.5, 1, 1.5])
    >>> bool((diagram.density_upper - diagram.density_lower < 1e-6).all())
    True
    >>> pressure, density = diagram.at(0.7)
    >>> pressure.lower < 0.331841 < pressure.upper, density.upper - density.lower < 0.06
    (True, True)
    """

    lattice: str
    model: str
    activities: Floats
    pressure_lower: Floats
    pressure_upper: Floats
    density_lower: Floats
    density_upper: Floats
    theorems: tuple[str, ...]
    reasons: tuple[str | None, ...]
    _points: tuple[_Point, ...] = field(repr=False)
    _limits: _Limits = field(repr=False)

    def at(self, activity: "int | float | Fraction | Decimal") -> tuple[Interval, Interval]:
        """Return the intervals of pressure and density at any activity, by convexity.

        Parameters
        ----------
        activity : int, float, Fraction or Decimal
            The activity, > 0.

        Returns
        -------
        tuple of Interval
            Pressure and density.

        {activity_errors}

        Examples
        --------
        >>> from quincunx.entropy import phase_diagram
        >>> pressure, density = phase_diagram("king", [0.9, 1.1]).at(1)
        >>> pressure.lower < 0.294640 < pressure.upper
        True
        """
        ((pressure, density),) = self._at([_log(positive_rational(activity, "activity"))])
        return pressure, density

    def _at(self, times: list[Decimal]) -> list[tuple[Interval, Interval]]:
        """Return the intervals of pressure and density at some t = ln z, rising: points of which nothing is known."""
        with localcontext(Context(prec=_PRECISION)):
            unknown = [_Point(t, self._limits.floor(t), Decimal("Infinity")) for t in times]
            points = _merged([*self._points, *unknown])
            pressures, densities = _closed(points, self._limits)
        wanted = set(times)
        return [
            (_outward(*pressures[i]), _outward(*densities[i])) for i, point in enumerate(points) if point.t in wanted
        ]

    def plot(
        self, ax: "Axes | None" = None, *, quantity: Literal["density", "pressure"] = "density", color: str = "C0"
    ) -> "Axes":
        """Draw both ends of the density or the pressure over the activity, and what lies between them.

        Where corner tensors proved nothing the points are hollow. Between the activities both ends are those of `at`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default new axes.
        quantity : {"density", "pressure"}, default "density"
            What to draw.
        color : str, default "C0"
            The color of both lines.

        {axes}
        ValueError
            If `quantity` is another word.
        TypeError
            If `ax` is not a matplotlib axes.

        Examples
        --------
        >>> from quincunx.entropy import phase_diagram
        >>> ax = phase_diagram("square", [0.5, 1, 2, 4, 8]).plot()  # doctest: +SKIP
        """
        _check.one_of(quantity, "quantity", ["density", "pressure"])
        axes: Axes = _optional.axes(ax)
        ends = getattr(self, f"{quantity}_lower"), getattr(self, f"{quantity}_upper")
        hollow = np.array([reason is not None for reason in self.reasons])
        # Between activities the ends are no straight lines: what is proved there is computed.
        logs = np.log(self.activities)
        parts = np.linspace(0, 1, _STEPS, endpoint=False)
        grid = np.unique(np.concatenate([*(a + (b - a) * parts for a, b in itertools.pairwise(logs)), logs[-1:]]))
        between = np.array([pair[quantity == "density"] for pair in self._at([Decimal.from_float(t) for t in grid])])
        between[~np.isfinite(between)] = np.nan
        axes.fill_between(np.exp(grid), *between.T, color=color, alpha=0.25, linewidth=0)
        for end, line in zip(ends, between.T, strict=True):
            axes.plot(np.exp(grid), line, color=color, linewidth=0.8)
            axes.plot(self.activities[~hollow], end[~hollow], "o", color=color, markersize=3)
            axes.plot(self.activities[hollow], end[hollow], "o", color=color, markersize=3, fillstyle="none")
        axes.set_xscale("log")
        axes.set_xlabel("activity")
        axes.set_ylabel({"density": "density", "pressure": "pressure in nats"}[quantity])
        axes.set_title(f"{self.lattice}, {self.model}")
        return axes


def phase_diagram(
    lattice: "str | Lattice | UnitCell",
    activities: "Sequence[int | float | Fraction | Decimal] | Floats",
    *,
    model: str = "independent-sets",
    progress: Progress = None,
) -> PhaseDiagram:
    """Bound the pressure and the density of a lattice model along an axis of activities, with proof.

    At each activity the pressure ``ln kappa`` is bounded by `entropy_bounds`. As it is convex in ``ln z``, intervals of
    different activities bound one another and the slopes, the density. Nothing is interpolated or fitted; an interval
    that no theorem narrows stays wide.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        As for `entropy_bounds`.
    activities : array_like, shape (n,)
        The activities, positive and different; floats are the rational numbers they are.
    model : str, default "independent-sets"
        Or "matchings": the models of `entropy_bounds` that have an activity.
    progress : bool or callable, optional
        As for `entropy_bounds`; steps are activities.

    Returns
    -------
    PhaseDiagram
        Arrays of ends, with theorems and reasons; `PhaseDiagram.at` bounds any other activity.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an activity is not positive or comes twice, there is none, or the model is not known.

    Notes
    -----
    Where an interval is narrower than 1e-6, those of two activities beside it, nearer than their digits allow to tell
    more, give the density with about half of its digits. The pressure is also at least that of a periodic set whose
    vertices are chosen freely; for lattices of one site in a cell, where every vertex lies in a clique, the density is
    at most one over its size. Up to three times the time of `entropy_bounds` for each activity: a tenth of a second
    for hard squares below activity 1, seconds near their transition. Bond dimensions end at 32.

    References
    ----------
    .. [1] R. B. Griffiths (1972), Rigorous results and theorems, in Phase Transitions and Critical Phenomena 1.

    Examples
    --------
    >>> from quincunx.entropy import phase_diagram
    >>> diagram = phase_diagram("square", [0.1, 1])
    >>> print(*diagram.density_lower.round(6), *diagram.density_upper.round(6))
    0.068679 0.226571 0.068679 0.226571
    """
    cell = unit_cell_of(lattice)
    if not isinstance(model, str):
        raise TypeError(f"`model` must be a str, got {type(model).__name__}")
    with localcontext(Context(prec=_PRECISION)):
        limits = _MODELS[_check.one_of(model, "model", list(_MODELS))](cell)
    if not hasattr(activities, "__iter__"):
        raise TypeError(f"`activities` must be a sequence of numbers, got {type(activities).__name__}")
    axis = sorted(positive_rational(activity, "activities") for activity in activities)
    if not axis or len(set(axis)) < len(axis):
        raise ValueError(f"`activities` must be different numbers, at least one, got {activities!r}")
    options: Facts = {"max_bond_dimension": _MOST_BONDS}
    if model != "independent-sets":
        options["model"] = model
    points: list[_Point] = []
    theorems: list[str] = []
    reasons: list[str | None] = []

    def point(z: Fraction) -> EntropyBounds:
        bounds = entropy_bounds(lattice, activity=z, **options)
        points.append(_Point(_log(z), bounds.lower, bounds.upper))
        return bounds

    with reporting(progress, "activities") as report, localcontext(Context(prec=_PRECISION)):
        for done, z in enumerate(axis):
            try:
                bounds = point(z)
            except (ValueError, TooLargeError) as error:
                points.append(_Point(_log(z), limits.floor(_log(z)), Decimal("Infinity")))
                theorems.append("convexity")
                reasons.append(str(error))
            else:
                theorems.append(bounds.theorem)
                reasons.append(bounds.evidence.get("corner"))
                if bounds.width < _NARROW:
                    nearest = 1 + Fraction(1, 10 ** min(8, -bounds.width.adjusted() // 2))
                    for beside in (z / nearest, z * nearest):
                        with contextlib.suppress(ValueError, TooLargeError):  # they have more digits than z
                            point(beside)
            if report is not None:
                report(done + 1, len(axis))
        points = _merged(points)
        wanted = {_log(z) for z in axis}
        places = [i for i, point in enumerate(points) if point.t in wanted]
        pressures, densities = _closed(points, limits)
    ends = np.array([[*_outward(*pressures[i]), *_outward(*densities[i])] for i in places])
    columns = np.where(np.isfinite(ends), ends, np.nan).T
    return PhaseDiagram(
        lattice=cell.kind or "a lattice without a name",
        model=model,
        activities=np.array([float(z) for z in axis]),
        pressure_lower=columns[0],
        pressure_upper=columns[1],
        density_lower=columns[2],
        density_upper=columns[3],
        theorems=tuple(theorems),
        reasons=tuple(reasons),
        _points=tuple(points),
        _limits=limits,
    )


def _log(z: Fraction) -> Decimal:
    with localcontext(Context(prec=_PRECISION)):
        return (Decimal(z.numerator) / z.denominator).ln()


def _outward(lower: Decimal, upper: Decimal) -> Interval:
    """Return doubles outside of two ends and of what these err by."""
    down, up = (Context(prec=_PRECISION, rounding=rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    ends = float(down.subtract(lower, _ERROR)), float(up.add(upper, _ERROR))
    return Interval(math.nextafter(ends[0], -math.inf), math.nextafter(ends[1], math.inf))


def _merged(points: list[_Point]) -> list[_Point]:
    """Return the points by rising t, intervals at the same t cut with one another."""
    found: dict[Decimal, _Point] = {}
    for point in sorted(points):
        same = found.setdefault(point.t, point)
        found[point.t] = _Point(point.t, max(same.lower, point.lower), min(same.upper, point.upper))
    return list(found.values())


def _closed(
    points: list[_Point], limits: _Limits
) -> tuple[list[tuple[Decimal, Decimal]], list[tuple[Decimal, Decimal]]]:
    """Return the intervals of pressure and slope that follow from all of them for a convex function, by rising t."""
    count, t = len(points), [point.t for point in points]
    lower = [max(point.lower, limits.floor(point.t)) for point in points]
    upper = [point.upper for point in points]
    # The slope is between 0 and its largest value.
    for i in range(1, count):
        upper[i] = min(upper[i], upper[i - 1] + limits.most * (t[i] - t[i - 1]))
    for i in range(count - 2, -1, -1):
        upper[i] = min(upper[i], upper[i + 1])
    upper = _hull(t, upper)
    for _ in range(2):
        low, high = [Decimal(0)] * count, [limits.most] * count
        for i in range(count):
            for j in range(i):
                low[i] = max(low[i], (lower[i] - upper[j]) / (t[i] - t[j]))
                high[j] = min(high[j], (upper[i] - lower[j]) / (t[i] - t[j]))
        for i in range(1, count):
            low[i] = max(low[i], low[i - 1])
        for i in range(count - 2, -1, -1):
            high[i] = min(high[i], high[i + 1])
        for i in range(1, count):
            lower[i] = max(lower[i], lower[i - 1] + low[i - 1] * (t[i] - t[i - 1]))
        for i in range(count - 2, -1, -1):
            lower[i] = max(lower[i], lower[i + 1] - high[i + 1] * (t[i + 1] - t[i]))
    return list(zip(lower, upper, strict=True)), list(zip(low, high, strict=True))


def _hull(t: list[Decimal], values: list[Decimal]) -> list[Decimal]:
    """Return the largest convex function below some values."""
    corners: list[int] = []
    for i in range(len(t)):
        if not values[i].is_finite():
            continue
        while len(corners) > 1:
            j, k = corners[-2:]
            if (values[k] - values[j]) * (t[i] - t[j]) < (values[i] - values[j]) * (t[k] - t[j]):
                break
            corners.pop()
        corners.append(i)
    found = list(values)
    for j, k in itertools.pairwise(corners):
        for i in range(j + 1, k):
            found[i] = values[j] + (values[k] - values[j]) * (t[i] - t[j]) / (t[k] - t[j])
    return found


def _limits_of_sets(cell: UnitCell) -> _Limits:
    """Return what is known of independent sets: of a periodic one, and of cliques."""
    side = 6 if cell.num_sites == 1 else 2  # two and three divide it
    torus = Lattice(cell, (side, side), "torus", multigraph=True)
    packed = Decimal(independence_number(torus).size) / torus.num_vertices
    if cell.num_sites > 1:
        return _Limits(Decimal(1), packed)
    return _Limits(1 / Decimal(_clique({step for _, _, (x, y) in cell.bonds for step in ((x, y), (-x, -y))})), packed)


def _clique(steps: set[tuple[int, int]]) -> int:
    """Return the size of a clique of vertices that differ by steps: of a largest one, if that is soon found."""
    largest, open_ends = 1, [(1, sorted(step for step in steps if step > (0, 0)))]  # from its first vertex on
    for _ in range(_MOST_CLIQUES):
        if not open_ends:
            break
        size, free = open_ends.pop()
        largest = max(largest, size)
        if size + len(free) > largest:
            (x, y), *rest = free
            open_ends += [(size, rest), (size + 1, [(u, v) for u, v in rest if (u - x, v - y) in steps])]
    return largest


def _limits_of_matchings(cell: UnitCell) -> _Limits:
    """Return what is known of matchings: each edge takes two vertices, and those of a periodic perfect one are free."""
    half = Decimal("0.5")
    # With one site in a cell every second edge along a line of equal bonds.
    perfect = (
        cell.bonds if cell.num_sites == 1 else count_perfect_matchings(Lattice(cell, (2, 2), "torus", multigraph=True))
    )
    return _Limits(half, half if perfect else Decimal(0))


#: What is known of each model at any activity; a model of `entropy_bounds` is one more entry.
_MODELS: dict[str, Callable[[UnitCell], _Limits]] = {
    "independent-sets": _limits_of_sets,
    "matchings": _limits_of_matchings,
}
