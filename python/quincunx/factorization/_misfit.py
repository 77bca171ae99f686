"""Whether a fit fits: what its noise would have to be, and what releases drawn anew look like.

Were the model true, the noise that a fit sees in some cells, sum (released - E[count | released]), would be a mean over
laws of noise, and so no wider than noise itself:

    P(|sum| > 6 sqrt(V + c |sum|)) <= 2 exp(-18) = 3e-8,  V = sum 2 alpha / (1 - alpha)^2,  c = max(1/3, 1 / -ln alpha).

That is Bernstein's inequality: E exp(t noise) <= exp(V t^2 / 2 (1 - c t)), and by Jensen's inequality so is it for
conditional means and for their means over draws, however many. It holds for cells chosen beforehand; the largest
releases are compared with the largest of releases drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._html import table_html
from quincunx._types import Floats
from quincunx.factorization._data import Data
from quincunx.factorization._dispersion import Shapes
from quincunx.factorization._groups import State, replicate
from quincunx.factorization._posterior import Posterior

#: Standard deviations beyond which a sum is off, with a chance of 3e-8 by the inequality above; and how much more than
#: the model cells must vary to be said to, which is beside a log-likelihood that is off as well, and not tuned.
_LIMIT, _DISPERSED = 6.0, 2.0
#: Releases drawn anew: one for two thousand passes of the fit over its cells, within these bounds. The check then takes
#: .7 % of the time of a default fit to the network of Enron.
_FEWEST, _MOST = 2, 6
#: The most cells that releases are drawn anew for: more would tell of smaller misfits and cost as much more.
_CELLS = 1 << 18
#: Cells that there is a number for each of at a time: a hundred megabytes (`working_memory`), whatever the table.
_BLOCK = 1 << 20
#: For an ascent the share of cells that its iterations are of so many, so that the check takes about 1 % of them; but
#: so many cells always.
_ITERATIONS, _LEAST = 5000, 1 << 12


@dataclass(frozen=True, eq=False, repr=False)
class Misfit:
    """How far the counts that a fit expects are from what was released, in standard deviations of the noise.

    Sums of noise are over the observed cells that carry some; where none does, what is said of them is NaN.

    Attributes
    ----------
    released, expected : float
        The sum of the release over all observed cells, and the posterior mean of that of the counts behind it.
    total : float
        Their difference, ``sum (released - E[count | released])``, over the standard deviation of the noise of the sum.
    top : float
        The same in the 1 % of cells with the largest releases, less what it is in releases drawn from the fit: where a
        release is large, its noise is likely to be.
    margins : tuple of ndarray
        The same for each row, each column, ...: one array for each axis of the data.
    beyond : tuple of float
        The share of each axis's sums that are off.
    dispersion : float
        The squared distance of the release from the rates, over that of releases drawn from the fit.
    log_likelihood : float
        The log-likelihood of the release less that of releases drawn from the fit, over its standard deviation.
    complaint : str or None
        What is off, in words.

    Notes
    -----
    A sum s of noise of variance V is off if ``abs(s) > 6 sqrt(V + c abs(s))`` with c the larger of 1/3 and
    ``1 / -log(alpha)``: beyond 6, and somewhat further where so few cells are added that the law of their sum is wider
    than the normal one. With data from the model that has a chance of at most ``2 exp(-18) = 3e-8`` for each sum. Where
    counts are released without noise there is no such sum; they are judged, as all are, by dispersion, which is off
    above 2 if `log_likelihood` is below -6.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonFactorization
    >>> from quincunx.privacy import privatize
    >>> counts = np.random.default_rng(1).poisson(5.0, (30, 20))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonFactorization(2, inference="vi", max_iter=5000, tol=1e-5, random_state=0).fit(release)
    >>> abs(model.misfit_.total) < 6, model.misfit_.complaint
    (True, None)
    """

    released: float
    expected: float
    total: float
    top: float
    margins: tuple[Floats, ...]
    beyond: tuple[float, ...]
    dispersion: float
    log_likelihood: float
    complaint: str | None

    def summary(self) -> dict[str, float]:
        """Return the numbers by name, of each axis the share of sums that are off.

        Returns
        -------
        dict
            ``released``, ``expected``, ``total``, ``top``, ``beyond_0``, ``beyond_1``, ..., ``dispersion``,
            ``log_likelihood``.

        Examples
        --------
        >>> from quincunx.factorization import Misfit
        >>> list(Misfit(90.0, 80.0, 1.5, 0.4, (), (0.0, 0.1), 1.0, 0.2, None).summary())
        ['released', 'expected', 'total', 'top', 'beyond_0', 'beyond_1', 'dispersion', 'log_likelihood']
        """
        first = {name: getattr(self, name) for name in ("released", "expected", "total", "top")}
        axes = {f"beyond_{axis}": share for axis, share in enumerate(self.beyond)}
        return first | axes | {name: getattr(self, name) for name in ("dispersion", "log_likelihood")}

    def __repr__(self) -> str:
        return f"Misfit({', '.join(f'{name}={value:.6g}' for name, value in self.summary().items())})"

    def _repr_html_(self) -> str:
        return table_html("Misfit", {name: f"{value:.6g}" for name, value in self.summary().items()})


@dataclass(frozen=True, eq=False)
class _Noise:
    """What the noise of some sums would have to be, its variances, and the `c` of its tails."""

    seen: Floats
    variance: Floats
    tail: float

    @property
    def z(self) -> Floats:
        """In standard deviations; NaN where there is no noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.variance > 0, self.seen / np.sqrt(self.variance), np.nan)

    @property
    def off(self) -> npt.NDArray[np.bool_]:
        """True where it is no noise."""
        size = np.abs(self.seen)
        return (self.variance > 0) & (size > _LIMIT * np.sqrt(self.variance + self.tail * size))


def working_memory(cells: int, cols: int) -> int:
    """Return the bytes that `misfit` works with: a dozen numbers for each cell that it looks at at a time."""
    return 100 * min(cells, max(_BLOCK, cols))


def misfit(posterior: Posterior, threads: int | None) -> Misfit:
    """Return how far a fit is from its data, by a few of its draws and a release drawn anew for each."""
    used, problem = _check.threads(threads), posterior.problem
    data = problem.data
    iterations = sum(run.iteration for run in posterior.runs)
    number = max(_FEWEST, min(_MOST, iterations // 2000))
    cells = _looked_at(data, 1.0 if posterior.sampled else iterations / _ITERATIONS)
    part, chosen = _part(data, cells), posterior.far_apart(number)
    rates, sums = _over_rows(posterior, [state for state, _ in chosen], cells, used)
    logs, spread = np.zeros(()), 0.0
    means = np.zeros((2, 4))  # of the release, and of those drawn anew
    for draw, (state, rng) in enumerate(chosen if len(cells) else ()):
        here, before = rates[draw], logs
        again = np.clip(replicate(problem, state, here, rng, cells), -(2**53), 2**53)  # as large as a release may be
        for place, release in enumerate((part, replace(part, values=again[None]))):
            logs, judged = _judged(release, here, problem.shapes_at(state, cells), used)
            means[place] += np.array(judged) / number
        if draw:
            spread += float(((logs - before) ** 2).sum()) / (2 * number - 2)
    released, noise, variance = sums[0].sum(axis=1).tolist()
    sums_to = released - noise
    if posterior.sampled and not problem.imputes:  # else the counts of a sweep have those of cells held out among them
        sums_to = float(posterior.statistic("total_count").mean())

    wider = 1 + 1 / number  # as the mean of what is drawn anew is over few draws
    tail = max(1 / 3, -1 / float(np.log(data.alpha.max()))) if variance else 0.0
    (top, of_top, squares, log), (drawn_top, drawn_of_top, drawn_squares, drawn_log) = means
    total = _Noise(np.array(released - sums_to), np.array(variance), tail)
    largest = _Noise(np.array(top - drawn_top), np.array(max(of_top, drawn_of_top) * wider), tail)
    margins = [_Noise(seen, of_margin, tail) for seen, of_margin in _margins(sums, data.shape)]
    # That a cell's log-likelihood is less than -x has a chance near exp(-x).
    likely = _Noise(np.array(log - drawn_log), np.array(spread * wider), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        dispersion = float(squares / drawn_squares)

    said = [f"expected counts sum to {_against(sums_to, released, total)} of the noise"] if total.off else []
    if largest.off:
        where = _largest(part)
        there = float(part.values[0][where].sum(dtype=np.float64))
        said.append(f"in the {len(where)} largest of {len(cells)} releases to {_against(there - top, there, largest)}")
    for axis, margin in enumerate(margins):
        if margin.off.any():
            labels = data.axes[axis].labels if data.axes else None
            said.append(
                f"{margin.off.sum()} of {margin.off.size} sums along axis {axis} are off, {_most(margin, labels)}"
            )
    if dispersion > _DISPERSED and likely.off and log < drawn_log:
        said.append(f"squared distances from the rates are {dispersion:.2g} times what the model has")
    return Misfit(
        released,
        sums_to,
        float(total.z),
        float(largest.z),
        tuple(margin.z for margin in margins),
        tuple(float(margin.off.mean()) for margin in margins),
        dispersion,
        float(likely.z),
        "; ".join(said) or None,
    )


def _over_rows(
    posterior: Posterior, draws: Sequence[State], cells: npt.NDArray[np.intp], threads: int
) -> tuple[Floats, tuple[Floats, Floats]]:
    """Return the rates of some cells in each draw, and sums over all cells, of each row and of each column.

    They are of the release, the noise that a fit sees, and the variances of noise, for observed cells. Some rows are
    gone through after others: a number for each cell would be many times the memory of the release.
    """
    problem, data = posterior.problem, posterior.problem.data
    cols = data.shape[-1]
    number, step = data.values.size // max(cols, 1), max(1, _BLOCK // max(cols, 1))
    rates, of_rows, of_columns = np.empty((len(draws), len(cells))), np.zeros((3, number)), np.zeros((3, cols))
    ascent = [] if posterior.sampled else list(posterior.states())
    for first in range(0, number, step):
        rows = first, min(first + step, number)
        inside = slice(*np.searchsorted(cells, [cols * row for row in rows]))
        part = data.of_rows(slice(*rows))
        expected = np.zeros(part.values.size)
        for draw, state in enumerate(draws):
            all_rates = problem.rates(state, threads, rows)
            rates[draw, inside] = all_rates[cells[inside] - cols * first]
            if posterior.sampled:
                expected += posterior.expected_given(part, state, None, all_rates, threads, rows) / len(draws)
        for state, at_logs in ascent:
            expected += posterior.expected_given(part, state, at_logs, None, threads, rows) / len(ascent)
        variances = np.where(part.observed, noise_variances(part), 0.0)
        noise = np.where(variances > 0, part.values - expected.reshape(part.shape), 0.0)
        for i, table in enumerate((np.where(part.observed, part.values, 0), noise, variances)):
            of_rows[i, slice(*rows)] = table.sum(axis=1, dtype=np.float64)
            of_columns[i] += table.sum(axis=0, dtype=np.float64)
    return rates, (of_rows, of_columns)


def _margins(sums: tuple[Floats, Floats], shape: tuple[int, ...]) -> list[tuple[Floats, Floats]]:
    """Return for each axis the noise and the variances of its sums, from sums of rows and columns of the table."""
    of_rows, of_columns = sums[0].reshape(-1, *shape[:-1]), sums[1]
    axes = range(1, len(shape))
    of_axes = [of_rows.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    return [(noise, variances) for _, noise, variances in (*of_axes, of_columns)]


def noise_variances(data: Data) -> Floats:
    """Return the variance of the noise, of the shape of the ratios."""
    return 2 * data.alpha / (1 - data.alpha) ** 2


def _looked_at(data: Data, share: float) -> npt.NDArray[np.intp]:
    """Return places of observed cells: all of them, or a share, or so many that their releases are soon drawn anew."""
    size, rng = data.values.size, np.random.default_rng(data.values.size)
    number = size if data.held_out is None else size - int(np.count_nonzero(data.held_out))
    most = min(_CELLS, max(_LEAST, int(share * number)))
    if number <= most:
        return np.flatnonzero(data.observed)
    if 32 * number < size:  # so few that all their places take less memory than places of which some are observed
        return np.flatnonzero(data.observed)[np.unique(rng.integers(0, number, most))]
    chosen = np.unique(rng.integers(0, size, most * size // number))
    return chosen if data.held_out is None else chosen[~data.held_out.reshape(-1)[chosen]]


def _part(data: Data, cells: npt.NDArray[np.intp]) -> Data:
    """Return some cells as data of one row."""
    alpha = data.alpha.reshape(-1)[cells][None] if data.alpha.ndim else data.alpha
    return Data(data.values.reshape(-1)[cells][None], alpha, None)


def _judged(release: Data, rates: Floats, shapes: Shapes | None, threads: int) -> tuple[Floats, tuple[float, ...]]:
    """Return the log-likelihood of each cell of a release, and four sums.

    The noise in its largest cells, the variance there, squared distances from the rates, and the log-likelihood.
    """
    logs = _core.log_likelihoods(release.counts, rates, threads, shapes)
    squares = float(((release.values[0] - rates) ** 2).sum())
    top, noise, variance = _largest(release), 0.0, 0.0
    if len(top):
        largest, those = _part(release, top), None if shapes is None else (shapes[0], shapes[1][top])
        expected = _core.expected_counts(largest.counts, rates[top], threads, those)
        noise = float((largest.values[0] - expected).sum())
        variance = float(np.broadcast_to(noise_variances(largest), largest.shape).sum())
    return logs, (noise, variance, squares, float(logs.sum()))


def _largest(release: Data) -> npt.NDArray[np.intp]:
    """Return where in a row the largest 1 % of what carries noise are."""
    noisy = np.flatnonzero(np.broadcast_to(release.alpha, release.shape)[0])
    number = -(-len(noisy) // 100)
    order = np.argpartition(release.values[0][noisy], -number) if number else noisy
    return noisy[order[len(noisy) - number :]]


def _against(expected: float, released: float, noise: _Noise) -> str:
    share = abs(expected - released) / (abs(released) or 1.0)
    less = f"{share:.0%} {'less' if expected < released else 'more'}"
    return f"{expected:.0f}, the release to {released:.0f}: {less}, {abs(noise.z):.0f} standard deviations"


def _most(margin: _Noise, labels: Sequence[object] | None) -> str:
    worst = int(np.argmax(np.where(margin.off, np.abs(margin.z), 0.0)))
    name = worst if labels is None else repr(labels[worst])
    return f"most at {name} by {abs(margin.z[worst]):.0f} standard deviations"


#: What is computed of a release, given the rates behind it and the variances that Poisson counts and noise then have.
STATISTICS = {
    "total": lambda values, rates, variances: values.sum(),
    "zeros": lambda values, rates, variances: (values == 0).mean(),
    "max": lambda values, rates, variances: values.max(),
    "dispersion": lambda values, rates, variances: ((values - rates) ** 2).sum() / max(variances.sum(), 1e-100),
}


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveCheck:
    """A release beside those drawn from a fit, by statistics of the observed cells.

    Attributes
    ----------
    observed : dict of float
        Each statistic of the release; of one that depends on the rates (dispersion) the mean over the draws.
    replicated : dict of ndarray of float64, shape (n_draws,)
        Each statistic of releases drawn anew, one for each draw.
    p_values : dict of float
        For each the share of draws whose own release has a larger one; draws that are even count half. Near 0 or 1 the
        model does not make such releases.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonFactorization
    >>> from quincunx.privacy import privatize
    >>> counts = np.random.default_rng(1).poisson(5.0, (30, 20))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonFactorization(2, inference="vi", max_iter=5000, tol=1e-5, random_state=0).fit(release)
    >>> check = model.check_predictive(n_draws=100)
    >>> check.observed["total"] == float(release.values.sum()), check.replicated["max"].shape
    (True, (100,))
    >>> {name for name, p in check.p_values.items() if not 0.01 < p < 0.99}
    set()
    """

    observed: dict[str, float]
    replicated: dict[str, Floats]
    p_values: dict[str, float]

    def __repr__(self) -> str:
        parts = (f"{name}={self.observed[name]:.6g} (p = {p:.3g})" for name, p in self.p_values.items())
        return f"PredictiveCheck({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = {name: f"{self.observed[name]:.6g}, p = {p:.3g}" for name, p in self.p_values.items()}
        return table_html("Predictive check", rows)


def predictive_check(posterior: Posterior, names: Sequence[str], number: int, threads: int | None) -> PredictiveCheck:
    """Return statistics of the release and of as many drawn anew."""
    data, used = posterior.problem.data, _check.threads(threads)
    _check.room(64 * data.values.size, "a release of all cells drawn anew")
    cells = np.flatnonzero(data.observed)
    if not len(cells):
        raise ValueError("`mask` must leave a cell at least, got all held out")
    part = _part(data, cells)
    values, noise = part.values[0].astype(np.float64), noise_variances(part)
    _check.room(16 * len(names) * number, "statistics of so many draws")
    found = np.empty((2, len(names), number))
    for draw, (state, rng) in enumerate(posterior.far_apart(number)):
        here = posterior.problem.rates(state, used)[cells]
        again = replicate(posterior.problem, state, here, rng, cells)
        for place, release in enumerate((values, again.astype(np.float64))):
            found[place, :, draw] = [STATISTICS[name](release, here, here + noise) for name in names]
    chances = (found[1] > found[0]).mean(axis=1) + (found[1] == found[0]).mean(axis=1) / 2
    return PredictiveCheck(
        dict(zip(names, found[0].mean(axis=1).tolist(), strict=True)),
        dict(zip(names, found[1], strict=True)),
        dict(zip(names, chances.tolist(), strict=True)),
    )
