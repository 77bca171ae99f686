"""Randomly triangulated grids: expected counts, annealed and quenched entropies.

Each of the ``m x n`` cells of a grid gets one diagonal, the first with probability p, the other with 1 - p.
"""

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._docs import assembled
from quincunx._rng import RandomSource, generator
from quincunx._types import Floats
from quincunx.entropy._profile import profile, sweep


class Interval(NamedTuple):
    """A proved interval of an entropy, in nats."""

    lower: float
    upper: float

    @property
    def growth_constant(self) -> "Interval":
        """The interval of its exponential."""
        # What `math.exp` errs by is below a unit in the last place.
        return Interval(_down(_down(math.exp(self.lower))), _up(_up(math.exp(self.upper))))


class QuenchedEntropy(NamedTuple):
    """The mean of ``ln Z / (m n)`` over triangulations, with its error.

    Attributes
    ----------
    mean : float
        The mean.
    standard_error : float
        Its standard error, 0 where all triangulations were summed; a proved bound of it where draws are too much alike.
    n_draws : int
        Triangulations drawn, or summed.
    exact : bool
        Whether all were summed.
    raw_standard_error : float
        The standard error without the control variates.
    """

    mean: float
    standard_error: float
    n_draws: int
    exact: bool
    raw_standard_error: float

    @property
    def growth_constant(self) -> float:
        """The exponential of the mean."""
        return math.exp(self.mean)


# Vertices of a column: 2**33 words are beyond any machine's memory, and 24 vertices have 121393.
_MOST_ROWS = 32
# All 2**16 triangulations of so many cells take 0.03 s and 10 MB; each cell more takes twice that.
_EXACT_CELLS = 16


#: What the functions of a size and a probability have in common.
_triangulated_doc = assembled(
    cells="""
    Parameters
    ----------
    m, n : int
        Cells along the two axes, >= 1.
    """,
    errors="""
    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a size is less than 1 or `p` is not in [0, 1].
    TooLargeError
        If a column has more than 32 cells, or too many states for this machine.
    """,
)


@_triangulated_doc
def expected_count(m: int, n: int, p: "int | float | Fraction" = Fraction(1, 2)) -> Fraction:
    """Return the expected number of independent sets of a randomly triangulated grid, exactly.

    Parameters
    ----------
    m, n : int
        Cells along the two axes, >= 1; the grid has ``(m+1)(n+1)`` vertices.
    p : int, float or Fraction, default 1/2
        The probability of the first diagonal. A float is the rational number it is.

    Returns
    -------
    Fraction

    {errors}

    Notes
    -----
    Cells are independent, so that the expectation is a product of expected transfer matrices; each is applied site by
    site to words without adjacent ones, with integer weights over the denominator of `p`.

    References
    ----------
    .. [1] Z. Zhang (2017), thesis, chapter 8.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from quincunx.entropy import expected_count
    >>> expected_count(1, 2, Fraction(1, 2))
    Fraction(27, 2)
    """
    m, n = _sizes(m, n)
    chance = _rational(p)
    a, b = chance.numerator, chance.denominator
    return Fraction(_integer_count(m, n, a, b - a, b), b ** (m * n))


def _integer_count(m: int, n: int, first: int, second: int, side: int) -> int:
    """Return the sum over triangulations with integer weights of the diagonals, `side` where neither counts."""
    shape = profile(m + 1)
    columns = np.ones(len(shape.front), dtype=object)
    weights = [first] * m, [second] * m
    for _ in range(n):
        columns = sweep(shape, columns, *weights, side if side != 1 else None)
    return int(columns.sum())


@_triangulated_doc
def expected_count_polynomial(m: int, n: int) -> list[int]:
    """Return the expected number of independent sets as a polynomial in ``u = p (1 - p)``.

    The expectation does not change under exchange of the diagonals, so it is a polynomial in u with integer
    coefficients, of degree at most ``m n / 2``; all that we computed are positive.

    {cells}

    Returns
    -------
    list of int
        The coefficient of ``u**k`` at place k. The constant term is the triangular lattice's count.

    Raises
    ------
    TypeError
        If a size is not a whole number.
    ValueError
        If a size is less than 1.
    TooLargeError
        If a column has more than 32 cells, or too many states for this machine.

    Notes
    -----
    The expectation is evaluated at the integers p = 1, 2, ..., where it is an integer, and interpolated exactly.

    References
    ----------
    .. [1] Z. Zhang (2017), thesis, chapter 8.

    Examples
    --------
    >>> from quincunx.entropy import expected_count_polynomial
    >>> expected_count_polynomial(2, 2)
    [42, 8, 2]
    >>> expected_count_polynomial(3, 3)
    [524, 200, 60, 13, 5]
    """
    m, n = _sizes(m, n)
    degree = m * n // 2
    _check.room(1000 * (degree + 1) + 16 * (degree + 1) ** 2, "the polynomial of so many cells")
    shape = profile(m + 1)
    points = list(range(1, degree + 2))
    # All points side by side: the last axis.
    columns = np.ones((len(shape.front), len(points)), dtype=object)
    p = np.array(points, dtype=object)
    for _ in range(n):
        columns = sweep(shape, columns, [p] * m, [1 - p] * m)
    values = [int(value) for value in columns.sum(axis=0)]
    return _interpolate([p * (1 - p) for p in points], values)


def _interpolate(nodes: list[int], values: list[int]) -> list[int]:
    """Return the integer coefficients of the polynomial with these values: Newton's form, then Horner."""
    differences = [Fraction(value) for value in values]
    for order in range(1, len(nodes)):
        for i in range(len(nodes) - 1, order - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order])
    coefficients = [Fraction(0)]
    for node, difference in zip(reversed(nodes), reversed(differences), strict=True):
        shifted = [Fraction(0), *coefficients]
        scaled = [*(node * c for c in coefficients), Fraction(0)]
        coefficients = [x - y for x, y in zip(shifted, scaled, strict=True)]
        coefficients[0] += difference
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients.pop()
    if any(c.denominator != 1 for c in coefficients):
        raise ArithmeticError("the expected count is no polynomial with integer coefficients: a bug in quincunx")
    return [int(c) for c in coefficients]


@_triangulated_doc
def annealed_entropy(m: int, n: int, p: float = 0.5) -> float:
    """Return the annealed entropy per cell, ``ln E[Z] / (m n)``.

    {cells}
    p : float, default 0.5
        The probability of the first diagonal.

    Returns
    -------
    float
        In nats per cell. The relative error is below ``1e-13``.

    {errors}

    Notes
    -----
    The thesis says "per site"; there are ``(m+1)(n+1)`` vertices, at m = 1 twice as many as cells.

    References
    ----------
    .. [1] Z. Zhang (2017), thesis, table 8.2.

    Examples
    --------
    >>> from quincunx.entropy import annealed_entropy
    >>> round(annealed_entropy(1, 100, 0.3), 12)
    0.789648435646
    """
    m, n = _sizes(m, n)
    p = _check.probability(p, "p")
    cells = m * n
    shape = profile(m + 1)
    columns, exponent = np.ones(len(shape.front)), 0
    for _ in range(n):
        columns = sweep(shape, columns, [p] * m, [1 - p] * m)
        shift = math.frexp(columns.max())[1]
        columns = np.ldexp(columns, -shift)
        exponent += shift
    return math.fsum([exponent * _LN2[0], exponent * _LN2[1], math.log(math.fsum(columns))]) / cells


# ln 2 in two parts, the first with so few bits that its products with exponents are exact.
_LN2 = (0.6931471803691238, 1.9082149292705877e-10)


def annealed_entropy_limit(m: int | None, p: float = 0.5, *, width: int = 18) -> Interval:
    """Return the annealed entropy per cell of an infinitely long grid, of m rows of cells or of all, as an interval.

    The interval is proved. For m rows it is that of ``ln(lambda) / m`` with the largest eigenvalue of the expected
    transfer matrix; for all rows that of the limit as both m and n grow, per cell or, there, per vertex.

    Parameters
    ----------
    m : int or None
        Rows of cells, >= 1; None for a grid that goes on in both directions.
    p : float, default 0.5
        The probability of the first diagonal.
    width : int, default 18
        For None the vertices round the widest ring, even, from 4 to 28.

    Returns
    -------
    Interval
        ``(lower, upper)``, rounded outwards, in nats per cell.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `m` is less than 1, `p` is not in [0, 1], or `width` is not even or out of its range.
    TooLargeError
        If a column has more than 32 cells, or too many states for this machine.

    Notes
    -----
    For any positive vector x the eigenvalue lies between the least and the greatest of ``(T x)_i / x_i`` (Collatz and
    Wielandt). Sums and products of numbers that are not negative err by at most ``2**-53`` each, relatively.

    For all rows let ``U_n`` be that eigenvalue for n vertices round a ring, ``V_n`` the one where p and 1 - p take
    turns round the ring. As the singular values of a matrix bound its eigenvalues (Weyl), for even l < n

        ``(U_n / V_l)**(1/(n - l)) <= kappa <= V_n**(1/n)``,

    which ``docs/mathematics/entropy.md`` proves. A width of 18 takes a second; two vertices more take three times as
    long and leave a tenth of the interval, whose width is 2e-9 for p = 1/2 and 6e-8 for p = 0 by then. From about
    24 on, at p near 0.1, the interval shrinks more slowly.

    References
    ----------
    .. [1] L. Collatz (1942), Einschliessungssatz fuer die charakteristischen Zahlen von Matrizen, Math. Z. 48.
    .. [2] Z. Zhang (2017), thesis, table 8.1.
    .. [3] H. Weyl (1949), Inequalities between the two kinds of eigenvalues of a linear transformation, Proc. Natl.
       Acad. Sci. USA 35.

    Examples
    --------
    >>> from quincunx.entropy import annealed_entropy_limit
    >>> lower, upper = annealed_entropy_limit(2, 0.5)
    >>> round(lower, 12), upper - lower < 1e-14
    (0.56777543927, True)

    With probability 0.3, for grids that grow in both directions:

    >>> lower, upper = annealed_entropy_limit(None, 0.3, width=14)
    >>> round(lower, 6), upper - lower < 3e-7
    (0.339197, True)
    """
    p = _check.probability(p, "p")
    width = _check.whole(width, "width", minimum=4, maximum=28)
    if width % 2:
        raise ValueError(f"`width` must be even, got {width}")
    if m is None:
        return _double_limit(p, width)
    m, _ = _sizes(m, m)
    lower, upper = _log_root([p] * m, [1 - p] * m, ring=False)
    return Interval(_down(lower / m), _up(upper / m))


def _double_limit(p: float, width: int) -> Interval:
    """Return the interval of ln kappa by rings of up to so many vertices."""
    _check.room(64 * round(0.73 * 1.6181 ** (width + 4)), f"a table for rings of {width} vertices")
    q = 1 - p
    uniform = _log_root([p] * width, [q] * width, ring=True)[0]
    turns = {n: _log_root([p, q] * (n // 2), [q, p] * (n // 2), ring=True)[1] for n in range(2, width + 1, 2)}
    lower = max(_down(uniform - turns[n]) / (width - n) for n in range(2, width, 2))
    return Interval(_down(lower), _up(turns[width] / width))


def _log_root(first: list[float], second: list[float], *, ring: bool) -> tuple[float, float]:
    """Return ends of the logarithm of the largest eigenvalue, from the chances of both diagonals of each cell.

    A ring is cut at one of its vertices, whose two copies are both occupied or both empty: the first and the last.
    """
    m = len(first)
    shape = profile(m + 1)
    inside = shape.ring if ring else np.ones(len(shape.front), dtype=bool)
    columns = inside.astype(np.float64)
    low = high = 1.0
    width = math.inf
    for _ in range(2000):
        image = np.where(inside, sweep(shape, columns, first, second), 0.0)
        ratios = image[inside] / columns[inside]
        low, high = float(ratios.min()), float(ratios.max())
        if not high / low - 1 < 0.9 * width:
            break
        width = high / low - 1
        columns = image / image.max()
    # A site takes a product and a sum, a rounded 1 - p and the last sum; the quotient and its own error come on top.
    slack = (5 * (m + 1) + 12) * 2.0**-53
    lower, upper = math.log(low * (1 - slack)), math.log(high * (1 + slack))
    return _down(_down(lower)), _up(_up(upper))


def _down(x: float) -> float:
    return math.nextafter(x, -math.inf)


def _up(x: float) -> float:
    return math.nextafter(x, math.inf)


@_triangulated_doc
def quenched_entropy(
    m: int, n: int, p: float = 0.5, *, n_draws: int = 4096, rng: RandomSource = None, exact: bool | None = None
) -> QuenchedEntropy:
    """Return the quenched entropy per cell, ``E[ln Z] / (m n)``.

    By Jensen's inequality it is at most the annealed entropy, which is what the thesis studies.

    {cells}
    p : float, default 0.5
        The probability of the first diagonal.
    n_draws : int, default 4096
        Triangulations to draw, >= 16.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the drawing starts.
    exact : bool, optional
        Whether to sum over all ``2**(m n)`` triangulations; by default where there are at most ``2**16``.

    Returns
    -------
    QuenchedEntropy
        Mean, standard error, and whether it is exact.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a size is less than 1, `p` is not in [0, 1], `n_draws` is less than 16, or `exact` asks for too many.
    TooLargeError
        If a column has more than 32 cells, or too many states for this machine, or `n_draws` of 800 bytes are too much.

    Notes
    -----
    Control variates are sums of products of neighboring diagonals (as signs), whose expectations are known: along rows,
    along columns, on both diagonals, around four cells. Their coefficients come from the sample by least squares, if
    for each of them 20 draws have two first diagonals more or less than the median; else the plain mean is returned.

    Where fewer than 20 draws have another number of first diagonals than the median, both standard errors are a bound
    of the true one, ``ln(4/3) sqrt(p (1 - p) / (m n n_draws))``: a diagonal bars at most a quarter of the independent
    sets, so that a cell moves ln Z by at most ln(4/3), and the variance is at most that of independent moves [2]_.

    References
    ----------
    .. [1] S. Asmussen and P. W. Glynn (2007), Stochastic Simulation, section V.2.
    .. [2] B. Efron and C. Stein (1981), The jackknife estimate of variance, Ann. Statist. 9.

    Examples
    --------
    >>> from quincunx.entropy import quenched_entropy
    >>> quenched = quenched_entropy(3, 3, 0.5)
    >>> round(9 * quenched.mean, 12), quenched.exact
    (6.358015596971, True)
    """
    m, n = _sizes(m, n)
    p = _check.probability(p, "p")
    n_draws = _check.whole(n_draws, "n_draws", minimum=16, maximum=10**9)
    source, cells = generator(rng), m * n
    exact = cells <= _EXACT_CELLS if exact is None else _check.flag(exact, "exact")
    if exact and cells > _EXACT_CELLS:
        raise ValueError(f"`exact` must be False for more than {_EXACT_CELLS} cells, got {cells}")
    if exact:
        codes = np.arange(2**cells)
        bits = (codes[:, None] >> np.arange(cells) & 1).astype(bool).reshape(-1, n, m)
        first = bits.sum(axis=(1, 2))
        weights = p**first * (1 - p) ** (cells - first)
        logs = np.concatenate([_log_counts(part) for part in np.array_split(bits, -(-len(bits) // 1024))])
        return QuenchedEntropy(math.fsum(weights * logs) / cells, 0.0, len(codes), True, 0.0)
    # As measured: each draw's logarithm and control variates, and what a fit by least squares makes of them.
    _check.room(32 * _BATCH * cells + 800 * n_draws, f"a sample of {n_draws} triangulations of {m} x {n} cells")
    logs_of, controls_of = [], []
    for start in range(0, n_draws, _BATCH):
        bits = source.random((min(_BATCH, n_draws - start), n, m)) < p
        logs_of.append(_log_counts(bits) / cells)
        controls_of.append(_controls(bits, p))
    logs, controls = np.concatenate(logs_of), np.concatenate(controls_of)
    away = abs(controls - np.median(controls, axis=0))
    told = (away > 0.5).sum(axis=0) >= _TELLING
    if not told[0]:
        bound = math.log(4 / 3) * math.sqrt(p * (1 - p) / cells / n_draws)
        return QuenchedEntropy(float(logs.mean()), bound, n_draws, False, bound)
    raw = float(logs.std(ddof=1)) / math.sqrt(n_draws)
    controls = controls[:, told]
    # Draws of one diagonal aside are few kinds, which controls fit without a rest: those of two or more must tell.
    if (away[:, 0] > 3).sum() < _TELLING * controls.shape[1]:
        controls = controls[:, :0]
    design = np.column_stack([np.ones(n_draws), controls])
    inverse = np.linalg.pinv(design, rcond=1e-10)
    coefficients = inverse @ logs
    rest = logs - design @ coefficients
    error = math.sqrt(float(rest @ rest) / (n_draws - design.shape[1]) * float(inverse[0] @ inverse[0]))
    error = max(error, 2.0**-50)  # the roundings of a fit without a rest
    return QuenchedEntropy(float(coefficients[0]), error, n_draws, False, raw)


# So many draws that are aside, for each control variate: fewer leave errors that are too small. By coverage on small
# grids with p from 0.001 to 0.97.
_TELLING = 20
# Triangulations side by side: their vectors stay in the cache.
_BATCH = 256


def _log_counts(bits: npt.NDArray[np.bool_]) -> Floats:
    """Return ln Z of triangulations, shape (samples, n, m)."""
    number, _, m = bits.shape
    shape = profile(m + 1)
    columns, logs = np.ones((len(shape.front), number)), np.zeros(number)
    # A diagonal forbids its own two ends: the first has weight 0 for one pair and 1 for the other.
    weights = np.ascontiguousarray(bits.transpose(1, 2, 0)).astype(np.float64)
    for column in weights:
        columns = sweep(shape, columns, column, 1 - column)
        most = columns.max(axis=0)
        columns /= most
        logs += np.log(most)
    logs += np.log(columns.sum(axis=0))
    return logs


def _controls(bits: npt.NDArray[np.bool_], p: float) -> Floats:
    """Return sums of products of neighboring signs less their expectations, shape (samples, controls)."""
    signs = 2.0 * bits - 1
    mean = 2 * p - 1
    a, b, c, d = signs[:, :-1, :-1], signs[:, :-1, 1:], signs[:, 1:, :-1], signs[:, 1:, 1:]
    products = [
        (signs, 1),
        (signs[:, :, :-1] * signs[:, :, 1:], 2),
        (signs[:, :-1] * signs[:, 1:], 2),
        (signs[:, :, :-2] * signs[:, :, 2:], 2),
        (signs[:, :-2] * signs[:, 2:], 2),
        (a * d, 2),
        (b * c, 2),
        (a * b * c, 3),
        (b * c * d, 3),
        (a * b * c * d, 4),
    ]
    if signs.shape[2] > 1:
        # The first and the last row of cells have fewer neighbors.
        products += [
            (signs[:, :, :1] * signs[:, :, 1:2], 2),
            (signs[:, :, -1:] * signs[:, :, -2:-1], 2),
            (signs[:, :-1, :1] * signs[:, 1:, :1], 2),
            (signs[:, :-1, -1:] * signs[:, 1:, -1:], 2),
        ]
    return np.column_stack([(product - mean**order).sum(axis=(1, 2)) for product, order in products])


def _sizes(m: int, n: int) -> tuple[int, int]:
    """Return both sizes, the lesser one first: a grid may be swept along either axis."""
    m, n = sorted((_check.whole(m, "m", minimum=1, maximum=2**31), _check.whole(n, "n", minimum=1, maximum=2**31)))
    if m > _MOST_ROWS:
        needed, limit = (8 * int(((1 + math.sqrt(5)) / 2) ** min(k + 4, 1400) / math.sqrt(5)) for k in (m, _MOST_ROWS))
        _check.room(needed, f"a column of {m} cells", limit)
    return m, n


def _rational(p: object) -> Fraction:
    if isinstance(p, (bool, str)) or not isinstance(p, (Rational, float, Decimal, np.floating)):
        raise TypeError(f"`p` must be a number, got {type(p).__name__}")
    value = _check.rational(p, "p")
    if not 0 <= value <= 1:
        raise ValueError(f"`p` must be in [0, 1], got {p if isinstance(p, float) else _check.shown(value)}")
    return value
