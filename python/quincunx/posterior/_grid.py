"""A user's own family on a grid of parameters, for records of a declared set: exact draws and an exact account."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._docs import sections
from quincunx._types import Array, Floats, Ints
from quincunx.posterior import _account
from quincunx.posterior._account import ONE
from quincunx.posterior._parts import posterior_doc
from quincunx.privacy import PrivacyGuarantee, ReplaceOne, _rational
from quincunx.privacy._law import ReadOnly
from quincunx.privacy._relations import Relation

#: Steps of the grid of log-likelihoods in the largest difference of a record, as a power of two.
BITS = 30
#: Sums of all records, and priors, in steps.
LARGEST = 2**60
#: Scores that are handed to the sampler together.
PIECE = 2**22


@dataclass(frozen=True, eq=False, repr=False)
class GridPosterior(_account.Drawn):
    """A posterior on the grid of a `GridModel`, ready to be released by sampling.

    Attributes
    ----------
    model : GridModel
        Where it comes from.
    n : int
        Records.
    units : ndarray of int64, shape (n_parameters,)
        Prior and log-likelihood of all records, in steps.
    probabilities : ndarray of float64, shape (n_parameters,)
        Of the parameters, to floating-point rounding; draws have the exact ones.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import GridModel
    >>> rates = np.linspace(0.5, 6, 56)
    >>> model = GridModel(lambda rate, y: y * np.log(rate) - rate, rates, records=range(13))
    >>> posterior = model.posterior([2, 5, 3, 0, 4])
    >>> round(float(posterior.mean()), 3), round(float(posterior.variance()), 3)  # of Gamma(15, 5): 3, .6
    (2.997, 0.591)
    """

    model: GridModel
    n: int
    units: Ints

    @cached_property
    def probabilities(self) -> Floats:
        """The probabilities of the parameters, to floating-point rounding; draws have the exact ones."""
        weights = np.exp((self.units - self.units.max()) * float(self.model._exponent))
        shares = np.asarray(weights / weights.sum())
        shares.flags.writeable = False
        return shares

    def mean(self) -> Floats:
        """Return the mean of the law that is drawn from.

        Returns
        -------
        ndarray of float64
            Of the shape of a parameter.
        """
        return np.asarray(self.probabilities @ self.model.parameters)

    def variance(self) -> Floats:
        """Return the variance of the law that is drawn from, of each coordinate.

        Returns
        -------
        ndarray of float64
            Of the shape of a parameter.
        """
        return np.asarray(self.probabilities @ (self.model.parameters - self.mean()) ** 2)

    def _draw(self, count: int, relation: Relation, words: list[int] | None) -> Array:
        k, exponent = len(self.units), self.model._exponent
        _check.room(16 * count * (1 + self.model.parameters[0].size), "the draws")
        chosen = np.empty(count, np.int64)
        each = max(1, PIECE // k)
        for number, first in enumerate(range(0, count, each)):
            size = min(each, count - first)
            own = None if words is None else [words[0] ^ number, words[1]]
            scores = np.tile(self.units, size)
            chosen[first : first + size] = _core.choose(scores, k, exponent.numerator, exponent.denominator, own)
        return self.model.parameters[chosen]

    def _simulate(self, count: int, relation: Relation, source: np.random.Generator) -> Array:
        return self.model.parameters[source.choice(len(self.units), size=count, p=self.probabilities)]

    def __repr__(self) -> str:
        return f"<GridPosterior: {len(self.units)} parameters, {self.n} records>"


@sections
@posterior_doc
class GridModel(ReadOnly):
    """A family of one's own, by its log-likelihood, on a finite grid of parameters; records are of a declared set.

    A draw is the parameter t with probability proportional to ``prior(t) exp(temper sum_i l(t, x_i))``: the exponential
    mechanism with the log-likelihood as its score. All that the account needs is looked at beforehand, without data:
    one record in the place of another changes the logarithm of a probability by ``temper (l(t, x') - l(t, x))`` and a
    constant, and the largest range of these differences over the grid, of all pairs of records, is epsilon.

    Parameters
    ----------
    log_likelihood : function
        ``log_likelihood(t, records)`` for one parameter and all records at once: a number for each record. What depends
        on the record alone may be left out. Called once for each parameter, here and never again.
    parameters : array_like of float, shape (n_parameters,) or (n_parameters, d)
        The grid, at least two: numbers, or vectors.
    records : array_like of float, shape (n_records,)
        What a record may be, at least two numbers that increase. Data are moved to the nearest of them. Records of
        several numbers have the numbers of a list of them, as do labels.
    log_prior : array_like of float, shape (n_parameters,), optional
        Logarithms of prior weights, which need not sum to 1; uniform if left out. Parameters without weight are to be
        left out of the grid.
    temper : float
        The power > 0 of the likelihood; `calibrate` finds that of an epsilon.

    Attributes
    ----------
    parameters, records : ndarray of float64
        As declared, read-only.
    temper : float
        The power used: at most the one asked for, by a part in 10**9 at the most.

    Raises
    ------
    ValueError, TypeError
        If a log-likelihood is not finite, for then nothing bounds epsilon, or an argument lies outside its domain.
    quincunx.errors.TooLargeError
        If the table of all parameters and records does not fit into memory.

    Notes
    -----
    Log-likelihoods are rounded to ``2**-30`` of the largest difference that a record makes, before anything is drawn or
    accounted for, and so is the prior: the account is about the rounded ones and in whole numbers, as the draws are, so
    that no rounding is outside of it. It takes the smaller of ``n_parameters`` and ``n_records`` passes over the table,
    about 1 ns for each entry; a draw takes some 30 ns for each parameter.

    References
    ----------
    .. [1] C. Dimitrakakis, B. Nelson, Z. Zhang, A. Mitrokotsa and B. Rubinstein (2017), Differential privacy for
       Bayesian inference through posterior sampling, J. Mach. Learn. Res. 18.
    .. [2] Y.-X. Wang, S. Fienberg and A. Smola (2015), Privacy for free: posterior sampling and stochastic gradient
       Monte Carlo, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import GridModel
    >>> degrees = np.linspace(1, 30, 59)  # of freedom, of Student's t; data are in [-8, 8]
    >>> from scipy import stats
    >>> model = GridModel(lambda df, x: stats.t.logpdf(x, df), degrees, records=np.linspace(-8, 8, 161))
    >>> round(model.guarantee().epsilon, 4)
    13.713
    >>> private = model.calibrate(1.0)
    >>> sample = private.posterior([0.3, -1.2, 2.5, 0.1]).sample(3)
    >>> round(sample.guarantee.epsilon, 6), sample.values.shape
    (3.0, (3,))
    """

    def __init__(
        self,
        log_likelihood: Callable[[Floats, Floats], npt.ArrayLike],
        parameters: npt.ArrayLike,
        records: npt.ArrayLike,
        *,
        log_prior: npt.ArrayLike | None = None,
        temper: float = 1.0,
    ) -> None:
        self.parameters = _declared(parameters, "parameters", (1, 2))
        self.records = _declared(records, "records", (1,))
        if not (np.diff(self.records) > 0).all():
            raise ValueError("`records` must increase")
        k = len(self.parameters)
        self._log_prior = np.zeros(k) if log_prior is None else _check.reals(log_prior, "log_prior").copy()
        if self._log_prior.shape != (k,):
            raise ValueError(f"`log_prior` must have shape ({k},), got {self._log_prior.shape}")
        _check.room(40 * k * len(self.records), "the table of log-likelihoods")
        table = np.empty((k, len(self.records)))
        for row, parameter in zip(table, self.parameters, strict=True):
            row[:] = _finite(log_likelihood, parameter, self.records)
        self._step, self._units = _whole(table)
        self._ranges = {kind: reach(self._units) for kind, reach in (("replaced", _replaced), ("added", _added))}
        self._set(Fraction(_check.real(temper, "temper", positive=True)))

    def _set(self, temper: Fraction) -> None:
        """Set the power of the likelihood, and the prior in steps of that."""
        exponent = temper * self._step
        if not Fraction(1, LARGEST) <= exponent <= LARGEST:
            ends = [float(end / self._step) for end in (Fraction(1, LARGEST), Fraction(LARGEST))]
            raise ValueError(f"`temper` must be between {ends[0]} and {ends[1]} here, got {float(temper)}")
        self._exponent = _rational.largest_below(exponent, _rational.LARGEST // max(1, -(-exponent // 1)))
        self.temper = float(self._exponent / self._step)
        prior = (self._log_prior - self._log_prior.max()) / float(self._exponent)
        if not (prior >= -LARGEST).all():
            raise ValueError(f"`temper` must be larger for this `log_prior`, got {float(temper)}")
        self._prior = np.rint(prior).astype(np.int64)

    def guarantee(self, n: int | None = None, *, relation: Relation = ONE) -> PrivacyGuarantee:
        """Return the guarantee of one draw from the posterior, whatever the number of records.

        Parameters
        ----------
        n : int, optional
            Records, as for other models: epsilon does not depend on it.
        relation : ReplaceOne or AddRemove
            Which neighbors it is about.

        Returns
        -------
        PrivacyGuarantee
            Range-bounded, exact.

        {domain}
        """
        about = _account.relation_of(relation)
        if n is not None:
            _check.whole(n, "n", maximum=2**53)
        reach = self._ranges["replaced" if isinstance(about, ReplaceOne) else "added"]
        return _account.ranged(self._exponent * reach, about)

    def calibrate(self, epsilon: float, *, relation: Relation = ONE) -> Self:
        """Return the model tempered so that one draw spends at most epsilon.

        Parameters
        ----------
        epsilon : float
            Target, > 0.
        relation : ReplaceOne or AddRemove
            Which neighbors it is about.

        Returns
        -------
        GridModel
            With a `temper` of at most the present one.

        {domain}

        Examples
        --------
        >>> import math
        >>> import numpy as np
        >>> from quincunx.posterior import GridModel
        >>> model = GridModel(lambda p, x: np.where(x == 1, np.log(p), np.log1p(-p)), [0.2, 0.5, 0.8], records=[0, 1])
        >>> round(model.guarantee().epsilon, 9), round(2 * math.log(0.8 / 0.2), 9)
        (2.772588722, 2.772588722)
        >>> round(model.calibrate(0.5).temper, 6), model.calibrate(5.0).temper
        (0.180337, 1.0)
        """
        level = Fraction(_check.real(epsilon, "epsilon", positive=True))
        known = self.guarantee(relation=relation)
        model = copy.copy(self)
        if known.exact_epsilon > level:
            exponent = self._exponent * level / known.exact_epsilon
            if exponent * LARGEST < 1:
                least = float(known.exact_epsilon / self._exponent / LARGEST)
                raise ValueError(f"`epsilon` must be at least {least:.3g} for these log-likelihoods, got {epsilon}")
            model._set(exponent / self._step)
        return model

    def posterior(self, data: npt.ArrayLike) -> GridPosterior:
        """Return the posterior given records.

        Parameters
        ----------
        data : array_like of float, shape (n,)
            Each is moved to the nearest of `records` by itself, the lower of two, NaN to the lowest, without a warning.

        Returns
        -------
        GridPosterior
            To draw from, with its guarantee.

        Raises
        ------
        TypeError, ValueError
            If `data` does not hold numbers along one axis, or more than 2**29 of them.
        """
        values = _account.records(data, float(self.records[0]), float(self.records[-1]))
        if len(values) > LARGEST >> (BITS + 1):
            raise ValueError(f"`data` must hold at most {LARGEST >> (BITS + 1)} records, got {len(values)}")
        above = np.clip(np.searchsorted(self.records, values), 1, len(self.records) - 1)
        lower = values - self.records[above - 1] <= self.records[above] - values
        counts = np.bincount(above - lower, minlength=len(self.records))
        return GridPosterior(self, len(values), self._prior + self._units @ counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GridModel):
            return NotImplemented
        names = ("parameters", "records", "_units", "_log_prior", "_step", "_exponent")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self._exponent, self.parameters.shape, self.records.shape))

    def __repr__(self) -> str:
        own = f"{len(self.parameters)} parameters, {len(self.records)} records, temper {self.temper:.6g}"
        return f"<GridModel: {own}, epsilon {self.guarantee().epsilon:.6g}>"


def _declared(values: npt.ArrayLike, name: str, axes: tuple[int, ...]) -> Floats:
    """Return at least two numbers or vectors as they are declared, read-only."""
    found = _check.reals(values, name).copy()
    if found.ndim not in axes or len(found) < 2 or not found.size:
        shape = "(k,) or (k, d)" if 2 in axes else "(k,)"
        raise ValueError(f"`{name}` must have shape {shape} with k >= 2, got {found.shape}")
    found.flags.writeable = False
    return found


def _finite(function: Callable[[Floats, Floats], npt.ArrayLike], parameter: Floats, records: Floats) -> Floats:
    """Return the log-likelihoods of all records, or say where there is none."""
    with np.errstate(all="ignore"):
        row = np.asarray(function(parameter, records))
    if row.dtype.kind not in "biuf" or row.shape not in ((), records.shape):
        raise ValueError(
            f"`log_likelihood` must return a number for each of {len(records)} records, got shape {row.shape}"
        )
    row = np.broadcast_to(row, records.shape).astype(np.float64)
    if not (good := np.isfinite(row)).all():
        place = int(np.argmin(good))
        raise ValueError(
            "`log_likelihood` must be finite for all parameters and records, so that epsilon is: "
            f"got {row[place]} at {parameter} for the record {records[place]}"
        )
    return row


def _whole(table: Floats) -> tuple[Fraction, Ints]:
    """Return a step, a power of two, and log-likelihoods in steps, each record's less its largest."""
    with np.errstate(over="ignore"):
        less = table - table.max(axis=0)
    far = float(-less.min())
    if not far < 2.0**900:
        raise ValueError(f"`log_likelihood` must differ by less than 2**900 between parameters, got {far}")
    exponent = int(np.frexp(max(far, 2.0**-20))[1]) - BITS
    return Fraction(2) ** exponent, np.rint(np.ldexp(less, -exponent)).astype(np.int64)


def _replaced(units: Ints) -> int:
    """Return the largest range over parameters of the difference of two records: over pairs of either, the fewer."""
    table = units if units.shape[0] <= units.shape[1] else np.ascontiguousarray(units.T)
    best = 0
    for number, row in enumerate(table[:-1]):
        difference = table[number + 1 :] - row
        best = max(best, int((difference.max(axis=1) - difference.min(axis=1)).max()))
    return best


def _added(units: Ints) -> int:
    """Return the largest range over parameters of one record."""
    return int((units.max(axis=0) - units.min(axis=0)).max())
