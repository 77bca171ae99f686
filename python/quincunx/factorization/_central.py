"""Poisson factorization by private variational Bayes in the central model (VIPS).

Of counts ``y[d, v] ~ Poisson(sum_k embedding[d, k] components[k, v])`` coordinate ascent needs two tables of expected
sufficient statistics, in turns: with responsibilities ``phi[d, v, k]``, proportional to ``exp(E ln embedding[d, k] +
E ln components[k, v])`` and summing to one over k,

    S[d, k] = sum_v y[d, v] phi[d, v, k],    embedding[d, k]  ~ Gamma(shape + S[d, k], rate + sum_v E components[k, v])
    T[k, v] = sum_d y[d, v] phi[d, v, k],    components[k, v] ~ Gamma(shape + T[k, v], rate + sum_d E embedding[d, k])

Here each table is released with discrete Gaussian noise before it is used, so that `phi` is a function of what was
released before. Given that, both tables are linear in y: one more unit in cell (d, v) adds ``phi[d, v]`` to one row of
S, or to one column of T, and nothing else. As `phi` is not negative and sums to one, its Euclidean norm is at most 1,
and n units move a table by at most n. With noise of variance V each table has the zero-concentrated level
``n**2 / (2 V)``, and of tables chosen in the light of those before the levels add up.

This needs both factors to be released. Were the embedding kept by the curator, as the proportions of topics are where
only topics are published, a unit of a count would move `phi` at all other counts of its row, and what moves T were
bounded by the total of the row alone.

In whole numbers, so that the noise is exact and rounding is within the account: of G parts of a unit, component k has
those between ``G (phi[0] + ... + phi[k-1])`` and ``G (phi[0] + ... + phi[k])``, both to the nearest whole number. These
are not negative and sum to G, so the same bound holds with G in place of 1, whatever rounding `phi` has.

Source: M. Park, J. Foulds, K. Chaudhuri and M. Welling (2020), Variational Bayes in private settings (VIPS), J.
Artificial Intelligence Research 68, of which this is the scheme without batches. The argument for it is the one above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._docs import sections
from quincunx._inference import Parametrized, parameters
from quincunx._progress import Progress, reporting
from quincunx._rng import RandomSource, generator
from quincunx._types import Floats, Ints
from quincunx.factorization._data import Counts
from quincunx.privacy import DataMetric, PrivacyGuarantee, Release, _rational
from quincunx.privacy._curves import Zcdp
from quincunx.privacy._discrete_gaussian import LARGEST_DRAWN, DiscreteGaussian, largest_rho, variance_for
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._privacy_map import Declared
from quincunx.privacy._release import marked, seed_words

#: A unit of a count is so many parts, or fewer, down to the least, where noise on so many has too large a variance.
MOST_PARTS, LEAST_PARTS = 2**16, 2**5
#: No table has a larger total, so that its parts, with noise, fit 64 bits.
MOST_UNITS = 2**40
_ENDS = 2**61
#: Weights of responsibilities are not below this, so that no product of two vanishes.
_LEAST_WEIGHT = 1e-150
#: Cells that are worked on at once.
_BLOCK = 2**20


@sections
@parameters
class CentralPoissonFactorization(Parametrized):
    """Poisson factorization of true counts, by variational Bayes whose every step is released with noise (VIPS).

    For a trusted curator who has the counts, where `PoissonFactorization` sees a release of them alone: the *central*
    model. What is fitted is ``count[d, v] ~ Poisson(sum_k embedding[d, k] components[k, v])`` with gamma priors, by
    `n_iter` rounds of coordinate ascent. In each the expected sufficient statistics of the embedding, and then those of
    the components, get discrete Gaussian noise before they are used [1]_.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    epsilon : float, default=1.0
        Privacy level of the whole fit, > 0.
    delta : float, default=1e-6
        In (0, 1).
    n : int, default=1
        By how many units the counts of neighbors may differ in all, as in `privatize`. With twice the largest total of
        a row whole rows are protected.
    n_iter : int, default=10
        Rounds of ascent. They are fixed before, as each is paid for: the variance of the noise is proportional to them.
    prior_shape, prior_rate : float, default=0.1 and 1.0
        Shape and rate of the gamma priors of both factors, in [1e-100, 1e100].
    random_state : int, SeedSequence, Generator or None
        Seeds where the ascent starts, which is public; it has no part in the noise.
    insecure_seed : int, optional
        Makes the noise repeatable, for tests: what is released with it protects nobody.
    progress : bool or callable, default=False
        `True` shows a bar; a function is called as ``progress(done, total)``.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        Of a fit with these parameters, to be spent before it: of ``DataMetric("l1", n)``.
    rho : float
        Its zero-concentrated level, the largest that is (epsilon, delta)-private.
    noise_sd : float
        Standard deviation of the noise in each statistic, in counts.
    guarantee_ : PrivacyGuarantee
        That of what was fitted: of all that follows.
    embedding_ : ndarray of shape (n_rows, n_components)
        Posterior mean of the rows' shares.
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the components.
    rates_ : ndarray of shape (n_rows, n_features)
        ``embedding_ @ components_``; computed when asked for.
    n_features_in_ : int
        Columns.

    Notes
    -----
    The noise is not in the model: what it makes of the statistics below 0 is set to 0, and the posterior is taken as if
    the rest were true. All tables together are one part of the guarantee, of which the levels of `2 n_iter` tables add
    up. A statistic is a sum over a row or a column, and its noise does not depend on how many cells that has, where the
    noise of local releases adds up: the central model gains as tables grow (`benches/experiments/central_local.py`).

    ``n_rows n_features n_components`` steps of 60 ns, twice in each round, in NumPy. They do not depend on the counts,
    nor does the time.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri and M. Welling (2020), Variational Bayes in private settings (VIPS), Journal
       of Artificial Intelligence Research 68.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import CentralPoissonFactorization
    >>> from quincunx.privacy import Budget
    >>> rng = np.random.default_rng(1)
    >>> rates = rng.gamma(0.5, 4.0, (60, 2)) @ rng.gamma(0.5, 4.0, (2, 50))
    >>> model = CentralPoissonFactorization(2, epsilon=2.0, random_state=1)
    >>> budget = Budget(3.0, 1e-5, relation=model.guarantee.relation)
    >>> budget.spend(model).epsilon
    2.0
    >>> model = model.fit(rng.poisson(rates))
    >>> bool(abs(model.rates_ - rates).mean() < 0.5 * abs(rates.mean() - rates).mean())
    True
    """

    PUBLISHED: ClassVar[dict[str, str]] = {  # as for `PosteriorEstimator`
        "components_": "noise",
        "embedding_": "noise",
        "rates_": "noise",
        "n_features_in_": "shape",
        "guarantee_": "declared",
    }

    n_components: int = field(default=10, kw_only=False)
    epsilon: float = 1.0
    delta: float = 1e-6
    n: int = 1
    n_iter: int = 10
    prior_shape: float = 0.1
    prior_rate: float = 1.0
    random_state: RandomSource = None
    insecure_seed: int | None = None
    progress: Progress = False
    guarantee_: PrivacyGuarantee = field(init=False)
    embedding_: Floats = field(init=False)
    components_: Floats = field(init=False)

    def _level(self) -> tuple[float, float]:
        """Return epsilon and delta in doubles, which are those that are accounted for."""
        return _check.real(self.epsilon, "epsilon", positive=True), _check.open_probability(self.delta, "delta")

    def _noise(self) -> tuple[int, Fraction, Fraction]:
        """Return the parts of a unit, the variance of their noise, and the zero-concentrated level of all tables."""
        level = self._level()
        units = _check.whole(self.n, "n", minimum=1)
        tables = 2 * _check.whole(self.n_iter, "n_iter", minimum=1)
        share = Fraction(largest_rho(*level)) / tables
        parts = MOST_PARTS
        while parts > LEAST_PARTS and (units * parts) ** 2 > 2 * share * (LARGEST_DRAWN - 1):
            parts //= 2
        squared = (units * parts) ** 2
        variance = variance_for(share, squared)
        return parts, variance, tables * DiscreteGaussian(variance, 1, Fraction(squared)).rho

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The guarantee of a fit with these parameters."""
        _, _, rho = self._noise()
        relation = DataMetric("l1", self.n)
        known = Declared(Zcdp(rho), relation, f"counts that differ by at most {self.n} in all", whole=True)
        epsilon, delta = map(Fraction, self._level())
        made = guarantee_of(known, relation, delta, epsilon=epsilon)
        return marked(made, self.insecure_seed)

    @property
    def rho(self) -> float:
        """The zero-concentrated level of a fit with these parameters."""
        return _rational.upwards(self._noise()[2])

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise in each statistic, in counts."""
        parts, variance, _ = self._noise()
        return math.sqrt(variance) / parts

    def fit(self, counts: Counts, y: object = None) -> Self:
        """Fit the model to private counts, and release it.

        Parameters
        ----------
        counts : array_like, data frame or sparse array, of shape (n_rows, n_features)
            The true counts, without noise, of at most 2**40 in all. Each fit is a release of its own.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not what it should be, or the noise would have a variance above 1e10 in
            1/32 of a count.
        TooLargeError
            If the factors do not fit into the available memory.
        """
        if isinstance(counts, Release):
            raise TypeError("`counts` must be counts without noise, got a Release: PoissonFactorization is for those")
        number = _check.whole(self.n_components, "n_components", minimum=1)
        shape, rate = _prior(self.prior_shape, "prior_shape"), _prior(self.prior_rate, "prior_rate")
        seed_words(self.insecure_seed)
        guarantee = self.guarantee
        parts, variance, _ = self._noise()
        table = _check.counts(_tables.array(counts, "counts"), "counts")
        if table.ndim != 2 or not table.size:
            raise ValueError(f"`counts` must have shape (n_rows, n_features), got {table.shape}")
        if table.sum(dtype=np.float64) > MOST_UNITS:
            raise ValueError("`counts` must have a total of at most 2**40, got more")
        _check.room(48 * number * sum(table.shape), "the factors")
        steps = 2 * int(self.n_iter)  # in a NumPy integer of a byte twice a number may be less
        source = generator(self.random_state, "random_state")
        # Rows and columns alike: means and weights of responsibilities, of shape (n_components, length).
        means = [source.exponential(size=(number, length)) for length in table.shape]
        weights = [np.maximum(mean, _LEAST_WEIGHT) for mean in means]
        with reporting(self.progress, "tables") as report:
            for step in range(steps):
                axis = step % 2
                noisy = self._released(expected_statistics(table, weights, axis, parts), variance, step)
                shapes = shape + np.maximum(noisy, 0) / parts
                rates = rate + means[1 - axis].sum(axis=1, keepdims=True)
                means[axis] = shapes / rates
                weights[axis] = _weights(shapes, rates)
                if report is not None:
                    report(step + 1, steps)
        self.guarantee_ = guarantee
        self.embedding_ = np.ascontiguousarray(means[0].T)
        self.components_ = means[1]
        self.n_features_in_ = table.shape[1]
        return self

    def _released(self, statistics: Ints, variance: Fraction, step: int) -> Ints:
        """Return a table with noise: all that a step sees of the counts."""
        sampler = _core.WholeSampler.discrete_gaussian(variance.numerator, variance.denominator)
        noisy: Ints = sampler.add(statistics.reshape(-1), -_ENDS, _ENDS, seed_words(self.insecure_seed, step))
        return noisy.reshape(statistics.shape)

    @property
    def rates_(self) -> Floats:
        """``embedding_ @ components_``."""
        return np.asarray(self.embedding_ @ self.components_)


def _prior(value: float, name: str) -> float:
    """Return a parameter of a prior within bounds between which all weights are finite."""
    number = _check.real(value, name)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(f"`{name}` must be in [1e-100, 1e100], got {number}")
    return number


def _weights(shapes: Floats, rates: Floats) -> Floats:
    """Return ``exp(E ln x)`` of gamma laws, the largest of each row or column being 1."""
    from scipy.special import digamma

    logarithms: Floats = digamma(shapes) - np.log(rates)
    return np.asarray(np.maximum(np.exp(logarithms - logarithms.max(axis=0)), _LEAST_WEIGHT))


def responsibilities(rows: Floats, columns: Floats, parts: int) -> Iterator[Ints]:
    """Yield for each component its parts of a unit of each cell: whole numbers of at least 0 whose sum is `parts`.

    The weights of rows and columns have shapes (n_components, n_rows) and (n_components, n_columns), and no product
    of two is 0. The bound on what a unit moves rests on that, so that others are refused.
    """
    # Sums are added up in the same order twice: no partial sum is above the whole, and the last one is equal to it.
    total = np.zeros((rows.shape[1], columns.shape[1]))
    for row, column in zip(rows, columns, strict=True):
        total += np.multiply.outer(row, column)
    if not ((total > 0) & (total < np.inf)).all():
        raise ValueError("weights of responsibilities must be positive and finite")
    partial, before = np.zeros_like(total), np.zeros(total.shape, dtype=np.int64)
    for row, column in zip(rows, columns, strict=True):
        partial += np.multiply.outer(row, column)
        until = np.rint(partial / total * parts).astype(np.int64)
        yield until - before
        before = until


def expected_statistics(counts: npt.NDArray[np.int64], weights: list[Floats], axis: int, parts: int) -> Ints:
    """Return the sums over rows (axis 0) or columns (axis 1) of counts by components, in parts of a unit."""
    rows, columns = weights
    found = np.zeros(weights[axis].shape, dtype=np.int64)
    size = max(1, _BLOCK // counts.shape[1])
    for start in range(0, len(counts), size):
        block = slice(start, start + size)
        for k, share in enumerate(responsibilities(rows[:, block], columns, parts)):
            share *= counts[block]
            if axis == 0:
                found[k, block] = share.sum(axis=1)
            else:
                found[k] += share.sum(axis=0)
    return found
