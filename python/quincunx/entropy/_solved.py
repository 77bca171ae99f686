"""Models that were solved in closed form, to a thousand digits: a table of them, and the series behind it.

"Solved" is neither "proved" nor "estimated": the formula is that of the source, and its evaluation has bounded errors.
Everything is computed in decimals with more digits than are asked for, of sums and products whose terms are positive or
fall geometrically, so that what is left out and what is rounded stay below the last digit that is returned.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

from quincunx import _check
from quincunx.entropy._jensen import Constant
from quincunx.entropy._numbers import positive_rational
from quincunx.lattices import Lattice, UnitCell
from quincunx.lattices._named import unit_cell_of
from quincunx.lattices._registry import LATTICES

#: The logarithm of a growth constant, and its derivative by that of the activity.
Values: TypeAlias = tuple[Decimal, Decimal]

Number = TypeVar("Number", Fraction, Decimal)

#: Digits beyond those asked for: of sums of up to a million terms, and of what follows from them.
_GUARD = 25
#: Terms of a series near a transition; 400000 take a second or two.
_MOST_TERMS = 400_000
#: The nearest to its transition that hard hexagons are solved numerically, in ln z.
_NEAREST = Decimal("1e-60")


@dataclass(frozen=True)
class SolvedEntropy:
    """The entropy per vertex of a solved model, in nats.

    Attributes
    ----------
    value : Decimal
        The entropy ``ln kappa``, rounded to `digits` decimals.
    growth_constant : Decimal
        The growth constant kappa, rounded likewise.
    digits : int
        Decimals of both; the error is less than one unit of the last, if the source is right.
    lattice : str
        The lattice.
    model : str
        The model.
    activity : Fraction or Decimal or None
        The activity; the value of the critical one, rounded, where that was asked for; None for a model without one.
    density : Decimal or None
        ``d ln(kappa) / d ln(activity)`` with half of the digits: occupied vertices, or pairs of equal neighbors, per
        vertex.
    source : str
        Who solved it, and what the solution rests on.
    method : str
        Always ``"solved"``.

    Examples
    --------
    >>> from quincunx.entropy import solved_entropy
    >>> ice = solved_entropy("square", model="six-vertex", digits=30)
    >>> ice.growth_constant, ice.method
    (Decimal('1.539600717839002038691063414672'), 'solved')
    """

    value: Decimal
    growth_constant: Decimal
    digits: int
    lattice: str
    model: str
    activity: Fraction | Decimal | None
    density: Decimal | None
    source: str
    method: str = "solved"


class Solution(NamedTuple):
    """A row of the table: a model on a lattice, who solved it, and how to evaluate it."""

    model: str
    lattice: str
    source: str
    #: Of the activity; of None for the critical one, or where the model has no activity.
    evaluate: Callable[[Fraction | None], Values]
    #: The critical activity, for a model that has activities.
    critical: Callable[[], Decimal] | None = None


def solved_entropy(
    lattice: "str | Lattice | UnitCell",
    *,
    model: str = "independent-sets",
    activity: "int | float | Fraction | Decimal | str" = 1,
    digits: int = 50,
) -> SolvedEntropy:
    """Return the entropy per vertex of a model that was solved in closed form, to a thousand digits.

    The result is called solved, not proved: its formula is that of a paper, some of whose derivations rest on
    assumptions that `source` names. Tests compare each with intervals, finite tori or transfer matrices of our own.

    Parameters
    ----------
    lattice : str, Lattice or UnitCell
        A lattice by name, or an object of such a lattice; only the unit cell matters.
    model : str, default "independent-sets"
        ``"independent-sets"``: hard hexagons, on the triangular lattice. ``"ising"``: two spins, `activity` for each
        pair of equal neighbors, on the square, triangular and honeycomb lattice. ``"dimers"``: perfect matchings on
        large tori of the square, honeycomb and martini lattice, of line graphs and clique insertions of cubic lattices.
        ``"spanning-trees"``: on the square, triangular and honeycomb lattice, their line graphs and clique insertions.
        ``"six-vertex"``: Eulerian orientations of the square lattice, square ice; ``"twenty-vertex"``: of the
        triangular one. ``"3-colorings"``: of the vertices, square and kagome; ``"4-colorings"``: triangular.
    activity : int, float, Fraction, Decimal or "critical", default 1
        The weight of an occupied vertex, or of a pair of equal neighbors (``exp(2 K)`` in Ising's model), > 0. A float
        is the rational number it is; ``"critical"`` is the transition itself: ``(11 + 5 sqrt(5))/2`` for hard hexagons.
    digits : int, default 50
        Decimals of the results, from 1 to 1000.

    Returns
    -------
    SolvedEntropy
        The value with its `growth_constant`, `density` and `source`.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the model is not solved on the lattice, or has no activity, or `activity` is so near the transition that the
        series takes more than 400000 terms, or, triangular Ising, so small that it diverges.

    Notes
    -----
    Hard hexagons are Baxter's infinite products, with those of Joyce for the low densities, at the x that gives z.
    Ising's free energies are series in the closed walks of a lattice, ``<ln(1 - w phi)> = -sum p_n w**n / n`` with the
    probabilities p_n of return. Both take milliseconds for 50 digits, more near a transition.

    References
    ----------
    .. [1] R. J. Baxter (1980), Hard hexagons: exact solution, J. Phys. A 13.
    .. [2] G. S. Joyce (1988), On the hard-hexagon model and the theory of modular functions, Phil. Trans. R. Soc. A
       325.
    .. [3] R. M. F. Houtappel (1950), Order-disorder in hexagonal lattices, Physica 16.
    .. [4] E. H. Lieb (1967), Residual entropy of square ice, Phys. Rev. 162.

    Examples
    --------
    >>> from quincunx.entropy import solved_entropy
    >>> solved_entropy("triangular", digits=40).growth_constant
    Decimal('1.3954859724793027352295006635668880689541')
    >>> critical = solved_entropy("triangular", activity="critical", digits=20)
    >>> critical.growth_constant, critical.density
    (Decimal('2.31440030186434044185'), Decimal('0.2763932023'))
    """
    kind = unit_cell_of(lattice).kind or "a lattice without a name"
    if not isinstance(model, str):
        raise TypeError(f"`model` must be a str, got {type(model).__name__}")
    word = "-".join(model.lower().replace("_", " ").split())
    digits = _check.whole(digits, "digits", minimum=1, maximum=1000)
    solution = _solution(word, kind)
    weight = None if isinstance(activity, str) else positive_rational(activity, "activity")
    if isinstance(activity, str) and activity != "critical":
        raise ValueError(f"`activity` must be a positive number or 'critical', got {activity!r}")
    if solution.critical is None and weight != 1:
        raise ValueError(f"`activity` must be 1 for {word!r}, which has none, got {activity!r}")
    # Growth constants have digits in front of the point too.
    whole = 0 if weight is None else 4 * max(len(str(math.ceil(weight))), len(str(math.ceil(1 / weight))))
    with localcontext(Context(prec=digits + _GUARD + whole, rounding=ROUND_HALF_EVEN)):
        log, density = solution.evaluate(weight if solution.critical else None)
        unit = Decimal((0, (1,), -digits))
        return SolvedEntropy(
            value=log.quantize(unit),
            growth_constant=log.exp().quantize(unit),
            digits=digits,
            lattice=kind,
            model=word,
            activity=solution.critical().quantize(unit) if solution.critical and weight is None else weight,
            density=density.quantize(Decimal((0, (1,), -(digits // 2)))) if solution.critical else None,
            source=solution.source,
        )


def _solution(model: str, kind: str) -> Solution:
    """Return the row of a model on a lattice."""
    for row in SOLUTIONS:
        if (row.model, row.lattice) == (model, kind):
            return row
    derived = {"spanning-trees": (tree_log, TREES), "dimers": (dimer_log, DIMERS)}
    known = sorted({row.model for row in SOLUTIONS} | set(derived))
    if model not in known:
        raise ValueError(f"`model` must be one of {', '.join(known)}, got {model!r}{_check.meant(model, known)}")
    evaluate, source = derived.get(model, (lambda name: None, ""))
    with localcontext(Context(prec=9)):
        lattices = [name for name in LATTICES if evaluate(name) is not None]
    lattices += [row.lattice for row in SOLUTIONS if row.model == model]
    if kind not in lattices:
        raise ValueError(f"`lattice` must be one of {', '.join(lattices)} for {model!r}, got {kind!r}")
    return Solution(model, kind, source, lambda _: _constant(evaluate(kind)))


def _constant(log: Decimal | None) -> Values:
    assert log is not None
    return log, Decimal(0)


# Trees and dimers: what the registry and the rules for line graphs and inserted cliques know.

#: Their sources.
TREES = "R. Shrock, F. Y. Wu (2000), Spanning trees on graphs and lattices in d dimensions, J. Phys. A 33; a theorem"
DIMERS = "P. W. Kasteleyn (1961), The statistics of dimers on a lattice, Physica 27; a theorem, by F. Y. Wu's review"


def tree_log(kind: str) -> Decimal | None:
    """Return the entropy of spanning trees per vertex, where it has a closed form, in the current precision."""
    if (row := LATTICES.get(kind)) is None:
        return None
    if row.tree_entropy is not None:
        return _clausen_multiple(*row.tree_entropy)
    if (base := row.inserted_into or row.line_graph_of) is None or (log := tree_log(base)) is None:
        return None
    r = UnitCell.named(base).degrees()[0]
    if row.inserted_into:
        return (log + (Decimal(r) / 2 - 1) * Decimal(r * (r + 2)).ln()) / r
    return (2 * log + (r - 2) * Decimal(2 * r).ln()) / r


def dimer_log(kind: str) -> Decimal | None:
    """Return the entropy of dimers per vertex, where it has a closed form, in the current precision."""
    if (row := LATTICES.get(kind)) is None:
        return None
    if row.dimer_entropy is not None:
        return _clausen_multiple(*row.dimer_entropy) / 2
    for base, part in ((row.line_graph_of, 3), (row.inserted_into, 6)):
        if base is not None and set(UnitCell.named(base).degrees()) == {3}:
            return Decimal(2).ln() / part
    return None


def closed(log: Callable[[str], Decimal | None], kind: str, times: float, source: str) -> Constant | None:
    """Return a multiple of such an entropy in doubles, rounded twice, where there is a closed form."""
    with localcontext(Context(prec=30)):
        value = log(kind)
    return None if value is None else Constant(float(value) * times, 2.0**-52 * abs(float(value) * times), source)


def _clausen_multiple(a: int, b: int, k: int) -> Decimal:
    return Decimal(a) / b * _clausen(k) / _pi()


def _clausen(k: int) -> Decimal:
    """Return Clausen's function at pi/2 (Catalan's constant) or pi/3.

    The integral of ``arcsin(x)/x`` up to ``sin t`` is ``t ln(2 sin t) + Cl(2 t)/2``, and its series has positive terms.
    """
    sine = {2: Decimal("0.5").sqrt(), 3: Decimal("0.5")}[k]
    square, power, total, n = sine * sine, sine, Decimal(0), 0
    while power > _epsilon():  # powers have the coefficients of arcsin's series times (2 n + 1)
        total += power / (2 * n + 1) ** 2
        n += 1
        power *= square * (2 * n - 1) / (2 * n)
    return 2 * total - _pi() / k * (2 * sine).ln()


def _pi() -> Decimal:
    """Return pi by arithmetic and geometric means (Gauss, Salamin, Brent)."""
    a, b, t, p = Decimal(1), Decimal("0.5").sqrt(), Decimal("0.25"), 1
    while abs(a - b) > _epsilon():
        a, b, before = (a + b) / 2, (a * b).sqrt(), a
        t -= p * (a - before) ** 2
        p *= 2
    return (a + b) ** 2 / (4 * t)


def _epsilon() -> Decimal:
    """Return what is below the last digit of a number of about one in the current precision."""
    return Decimal((0, (1,), 2 - _precision()))


def _precision() -> int:
    with localcontext() as context:
        return context.prec


# Hard hexagons: for -1 < x < 0 the densities below the transition, for 0 < x < 1 those above it.

#: Exponents of 1 - x**n by n modulo 5 and modulo 30: of z / abs(x)**+-1, and of kappa (/ x**(-1/3) above).
_FIFTH = [0, 5, -5, -5, 5]
_BELOW = [[2, 2, -3, -3, 2][n % 5] + [-2, -1, 1, 2, 1, -1][n % 6] for n in range(30)]
_ABOVE = [[2, -3, 2, 2, -3][n % 5] + [-2, 1, 1][n % 3] for n in range(30)]


def _hexagons(activity: Fraction | None) -> Values:
    if activity is None:
        root = Decimal(5).sqrt()
        return (27 * (25 + 11 * root) / 250).ln() / 2, (5 - root) / 10
    below = activity * activity - 11 * activity - 1 < 0
    with localcontext() as context:
        context.prec += 100
        far = abs(_decimal(activity).ln() - _hexagons_transition().ln())
    if far < _NEAREST:
        raise ValueError(f"`activity` must be 'critical', or {_NEAREST} from the transition in its logarithm at least")
    with localcontext() as context:
        # The distance from the transition loses its leading digits, and the density has an infinite slope there.
        context.prec += 2 * max(0, -far.adjusted())
        far = abs(_decimal(activity).ln() - _hexagons_transition().ln())
        # Newton's method in ln s, s = -ln abs(x), for ln of the distance: concave, about -c/s near the transition.
        v = (far + 1 if far > 1 else (2 if below else 8) / (4 - far.ln())).ln()
        enough = 10**10 * _epsilon() * max(far, Decimal(1))
        for _ in range(200):
            s = v.exp()
            x, sign = (-(-s).exp(), -1) if below else ((-s).exp(), 1)
            log, slope = _product(x, [-sign * e for e in _FIFTH])
            log, slope = log + sign * s, slope - sign
            distance = abs(log - _hexagons_transition().ln())
            if abs(distance - far) < enough:
                break
            step = (distance.ln() - far.ln()) * distance / (s * abs(slope))
            v -= max(min(step, Decimal("0.5")), Decimal("-0.5"))  # a longer one would end where no distance is seen
        else:
            raise ArithmeticError("hard hexagons did not converge: a bug in quincunx")
        # The density is at most 1/3, so that ln kappa errs by at most a third of what is left of the distance.
        kappa, derivative = _product(x, _BELOW if below else _ABOVE)
        if not below:
            kappa, derivative = kappa + s / 3, derivative - Decimal(1) / 3
        return kappa, derivative / slope


def _hexagons_transition() -> Decimal:
    return (11 + 5 * Decimal(5).sqrt()) / 2


def _product(x: Decimal, exponents: Sequence[int]) -> Values:
    """Return the logarithm of the product of ``(1 - x**n)**e[n]`` with periodic e, and x times its derivative."""
    top, bottom, slope, power, n = Decimal(1), Decimal(1), Decimal(0), x, 1
    smallest = _epsilon() * (1 - abs(x)) ** 2 / 1000
    while abs(power) * n > smallest:
        factor, e = 1 - power, exponents[n % len(exponents)]
        if e > 0:
            top *= factor**e
        elif e < 0:
            bottom *= factor**-e
        slope -= e * n * power / factor
        power *= x
        n += 1
    return top.ln() - bottom.ln(), slope


# Ising's model: ln kappa = factor ln P(y) + share <ln(1 - w phi)> with y = exp(2 K), w = N(y)/D(y), and phi the mean of
# exp(i k step) over the steps of a walk.


class _Ising(NamedTuple):
    """Ising's model on a lattice; coefficients of polynomials in y come by ascending powers."""

    factor: Fraction
    inside: list[int]
    share: Fraction
    numerator: list[int]
    denominator: list[int]
    #: The lattice that is walked on, and the generator of its probabilities of return.
    walked: str
    returns: Callable[[], Iterator[Decimal]]
    critical: Callable[[], Decimal]

    def values(self, activity: Fraction | None) -> Values:
        """Return ln kappa and the pairs of equal neighbors per vertex, of None at the transition."""
        y = self.critical() if activity is None else _decimal(activity)
        inside, slope = _polynomial(self.inside, y)
        factor, share = _decimal(self.factor), _decimal(self.share)
        log, density = factor * inside.ln(), factor * slope / inside * y
        if activity is None:
            # w = 1, where w is stationary: the mean is that of the spanning trees' determinant.
            trees = tree_log(self.walked)
            assert trees is not None
            return log + share * (trees - Decimal(UnitCell.named(self.walked).degrees()[0]).ln()), density
        top, bottom = _polynomial(self.numerator, activity), _polynomial(self.denominator, activity)
        w, change = top[0] / bottom[0], (top[1] * bottom[0] - top[0] * bottom[1]) / bottom[0] ** 2
        mean, by_w = _mean_log(w, self.returns())
        return log + share * mean, density + share * by_w * _decimal(change) * y


def _polynomial(coefficients: Sequence[int], y: Number) -> tuple[Number, Number]:
    """Return the value of a polynomial and that of its derivative."""
    value = slope = 0 * y
    for c in reversed(coefficients):
        value, slope = value * y + c, slope * y + value
    return value, slope


def _mean_log(w: Fraction, returns: Iterator[Decimal]) -> Values:
    """Return the mean of ``ln(1 - w phi)``, and its derivative by w, from the walk's probabilities of return."""
    if abs(w) >= 1:
        raise ValueError("`activity` must be nearer to 1: the series in closed walks diverges")
    gap = float(1 - abs(w))
    terms = 2.4 * _precision() / (-math.log1p(-gap) if gap < 1 else math.inf) if gap > 0 else math.inf
    if terms > _MOST_TERMS:
        raise ValueError(
            f"`activity` must be farther from the transition, which is activity='critical': the series would take "
            f"{terms:.1e} terms, more than {_MOST_TERMS}"
        )
    step, power, mean, slope, n = _decimal(w), Decimal(1), Decimal(0), Decimal(0), 0
    # Probabilities are at most 1, so that what is left out is at most a power over 1 - abs(w).
    smallest = _epsilon() * _decimal(1 - abs(w)) / 10
    while abs(power) > smallest:
        n += 1
        chance = next(returns)
        slope -= chance * power
        power *= step
        mean -= chance * power / n
    return mean, slope


def _square_returns() -> Iterator[Decimal]:
    """Yield the probabilities that a walk on the square lattice is back after 1, 2, ... steps."""
    chance = Decimal(1)
    for m in range(1, _MOST_TERMS):
        yield Decimal(0)
        chance *= (Decimal(2 * m - 1) / (2 * m)) ** 2
        yield chance


def _triangular_returns() -> Iterator[Decimal]:
    """Yield those of the triangular lattice, by the recurrence of its closed walks (OEIS A002898)."""
    a, b, c = Decimal(1), Decimal(0), Decimal(0)
    for n in range(1, 2 * _MOST_TERMS):
        k = n - 1
        a, b, c = (n * k * a + 4 * k * k * b + (n - 2) * k * c) / (6 * n * n), a, b
        yield a


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _ising(lattice: str, source: str, model: _Ising) -> Solution:
    return Solution("ising", lattice, source, model.values, model.critical)


_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
_SQUARE = _Ising(
    Fraction(1),
    [1, 0, 1],
    _HALF,
    [0, -4, 0, 4],
    [1, 0, 2, 0, 1],
    "square",
    _square_returns,
    lambda: 1 + Decimal(2).sqrt(),
)
_TRIANGULAR = _Ising(
    _HALF,
    [0, 0, 3, 0, 0, 0, 1],
    _HALF,
    [-6, 0, 6],
    [3, 0, 0, 0, 1],
    "triangular",
    _triangular_returns,
    lambda: Decimal(3).sqrt(),
)
_HONEYCOMB = _Ising(
    _QUARTER,
    [1, 0, 3, 8, 3, 0, 1],
    _QUARTER,
    [0, 6, 0, -12, 0, 6],
    [1, 0, 3, 8, 3, 0, 1],
    "triangular",
    _triangular_returns,
    lambda: 2 + Decimal(3).sqrt(),
)


# The other constants, and the table.


def _ice(_: Fraction | None) -> Values:
    return _constant(3 * (Decimal(4) / 3).ln() / 2)


def _triangular_ice(_: Fraction | None) -> Values:
    return _constant((3 * Decimal(3).sqrt() / 2).ln())


def _three_colored_edges(_: Fraction | None) -> Values:
    """Return the entropy of the honeycomb's edges in three colors per hexagon, ln of ``3 Gamma(1/3)**3 / (4 pi**2)``.

    ``Gamma(1/3)**3 = 2**(7/3) pi K / 3**(1/4)`` with the elliptic integral K of modulus sin(pi/12), which is pi over
    twice the arithmetic-geometric mean of 1 and cos(pi/12).
    """
    a, b = Decimal(1), (2 + Decimal(3).sqrt()).sqrt() / 2
    while abs(a - b) > _epsilon():
        a, b = (a + b) / 2, (a * b).sqrt()
    return _constant((3 / (8 * a)).ln() + 7 * Decimal(2).ln() / 3 - Decimal(3).ln() / 4)


def _three_colored_kagome(_: Fraction | None) -> Values:
    # Edges of the honeycomb are vertices of the kagome lattice, three to a hexagon.
    log, none = _three_colored_edges(None)
    return log / 3, none


_LIEB = "E. H. Lieb (1967), Residual entropy of square ice, Phys. Rev. 162; a theorem"
_COLORS = "R. J. Baxter (1970), Colorings of a hexagonal lattice, J. Math. Phys. 11; by a Bethe ansatz, not a theorem"
_HOUTAPPEL = "R. M. F. Houtappel (1950), Order-disorder in hexagonal lattices, Physica 16; a theorem"

#: The models. What differs between lattices by a rule, trees and dimers, stands in the registry.
SOLUTIONS = (
    Solution(
        "independent-sets",
        "triangular",
        "R. J. Baxter (1980), Hard hexagons: exact solution, J. Phys. A 13, and G. S. Joyce (1988), On the hard-hexagon"
        " model and the theory of modular functions, Phil. Trans. R. Soc. A 325; the derivation assumes analyticity",
        _hexagons,
        _hexagons_transition,
    ),
    _ising("square", "L. Onsager (1944), Crystal statistics I, Phys. Rev. 65; a theorem", _SQUARE),
    _ising("triangular", _HOUTAPPEL, _TRIANGULAR),
    _ising("honeycomb", _HOUTAPPEL, _HONEYCOMB),
    Solution("six-vertex", "square", _LIEB, _ice),
    Solution("3-colorings", "square", _LIEB + "; vertices in three colors are square ice (A. Lenard)", _ice),
    Solution(
        "twenty-vertex",
        "triangular",
        "R. J. Baxter (1969), F model on a triangular lattice, J. Math. Phys. 10; by a Bethe ansatz, not a theorem",
        _triangular_ice,
    ),
    Solution("4-colorings", "triangular", _COLORS, _three_colored_edges),
    Solution("3-colorings", "kagome", _COLORS, _three_colored_kagome),
)
