"""Accounting by range: divergences, distances and error bounds that follow from the range of a log-likelihood ratio.

The *range* of two data sets is R = sup g - inf g, g the difference of their log-likelihoods over the support of the
prior. Their posteriors' log density ratio lies in an interval of length R around 0 (T1), so that R is a pure epsilon.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from quincunx import _check
from quincunx._docs import assembled
from quincunx.errors import InsecureGuaranteeWarning
from quincunx.posterior._parts import posterior_doc
from quincunx.privacy import PrivacyGuarantee, Relation, ReplaceOne, _relations


def _guarantee(g: object) -> PrivacyGuarantee:
    if not isinstance(g, PrivacyGuarantee):
        raise TypeError(f"`g` must be a PrivacyGuarantee, got {type(g).__name__}")
    return g


@posterior_doc
def kl_bound(g: PrivacyGuarantee) -> float:
    """Bound the Kullback-Leibler divergence between the outputs for two neighbors (T2, T3), in nats.

    ``min(epsilon, epsilon**2 / 8)`` for a range-bounded guarantee: the log density ratio lies in an interval of length
    epsilon that contains 0, and Hoeffding's lemma bounds its mean. N samples add up. Without a bounded range
    ``epsilon tanh(epsilon / 2)``, or the zero-concentrated level.

    {of_releases}
        Infinite if nothing is known.

    {no_guarantee}

    Examples
    --------
    >>> from quincunx.posterior import kl_bound
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> kl_bound(PrivacyGuarantee(1.0, range_bounded=True))
    0.125
    >>> round(kl_bound(PrivacyGuarantee(1.0)), 6)
    0.462117
    """
    known = _guarantee(g).kl_divergence()
    return min(known, g.epsilon) if g.delta == 0 else known


@posterior_doc
def tv_bound(g: PrivacyGuarantee) -> float:
    """Bound the total variation distance between the outputs for two neighbors (T2).

    ``tanh(epsilon / 4)`` for a range-bounded guarantee, ``tanh(epsilon / 2)`` for a pure one of which no more is known.

    {of_releases}
        In [0, 1].

    {no_guarantee}

    Examples
    --------
    >>> from quincunx.posterior import tv_bound
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> round(tv_bound(PrivacyGuarantee(1.0, range_bounded=True)), 10)
    0.2449186624
    """
    kl = kl_bound(g)
    pinsker = min(math.sqrt(kl / 2), math.sqrt(-math.expm1(-kl)))
    return min(1.0, _guarantee(g).total_variation(), pinsker * (1 + 1e-15))


@posterior_doc
def min_samples_to_distinguish(g: PrivacyGuarantee, err: float) -> float:
    """Return how many releases a test needs at least to tell two neighbors apart (T11).

    Any test from n independent releases with both error probabilities at most `err` has
    ``n >= log(1 / (4 err)) / KL`` (Bretagnolle and Huber).

    Parameters
    ----------
    g : PrivacyGuarantee
        Of one release.
    err : float
        In (0, 1/4).

    Returns
    -------
    float
        The bound, not rounded to a whole number; infinite where neighbors have the same law.

    {domain}

    Examples
    --------
    >>> from quincunx.posterior import min_samples_to_distinguish
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> round(min_samples_to_distinguish(PrivacyGuarantee(0.1, range_bounded=True), 0.05), 2)
    1287.55
    """
    error = _check.real(err, "err")
    if not 0 < error < 0.25:
        raise ValueError(f"`err` must be in (0, 1/4), got {error}")
    kl = kl_bound(g)
    return math.log(1 / (4 * error)) / kl if kl else math.inf


@posterior_doc
def le_cam_lower_bound(g: PrivacyGuarantee, *, n_samples: int = 1, distance: float = 1.0) -> float:
    """Bound from below the error with which any method estimates a data set from releases (T12).

    For two neighbors at `distance` in a metric of data sets, every estimator has an expected distance of at least
    ``(distance / 2) (1 - TV)`` for one of them, where
    ``TV <= min(tanh(n epsilon / 4), sqrt(n KL / 2), sqrt(1 - exp(-n KL)))`` (Le Cam's two points).

    Parameters
    ----------
    g : PrivacyGuarantee
        Of one release; without a bounded range ``tanh(n epsilon / 2)`` stands instead.
    n_samples : int
        Releases.
    distance : float
        Between the two data sets, > 0.

    Returns
    -------
    float
        In the unit of `distance`.

    {domain}

    Examples
    --------
    >>> from quincunx.posterior import le_cam_lower_bound
    >>> from quincunx.privacy import PrivacyGuarantee
    >>> round(le_cam_lower_bound(PrivacyGuarantee(1.0, range_bounded=True), distance=2.0), 6)
    0.755081
    """
    n = _check.whole(n_samples, "n_samples", minimum=1, maximum=2**63)
    size = _check.real(distance, "distance", positive=True)
    kl = n * kl_bound(g)
    found = [1.0, math.sqrt(kl / 2) if kl < math.inf else 1.0, math.sqrt(-math.expm1(-kl))]
    if g.delta == 0:
        found.append(math.tanh(n * g.epsilon / (4 if g.range_bounded else 2)))
    else:
        found.append(n * g.total_variation())
    return 0.5 * size * (1 - min(found))


@posterior_doc
def query_error_bound(*, n_samples: int, n_responses: int, n_queries: int, beta: float) -> float:
    """Bound the error of all answers that are chosen from one private sample (T8).

    With N draws of a posterior, a finite set of K responses, T queries fixed in advance (or chosen adaptively from T)
    and utilities in [0, 1]: with probability ``1 - beta`` each answer's posterior expected utility is within
    ``2 sqrt(log(2 K T / beta) / (2 N))`` of the best (Hoeffding's inequality for all pairs at once).

    Parameters
    ----------
    n_samples, n_responses, n_queries : int
        N, K and T, at least 1.
    beta : float
        In (0, 1).

    Returns
    -------
    float
        Utility lost at most; a number above 1 says nothing.

    {domain}

    Examples
    --------
    >>> from quincunx.posterior import query_error_bound
    >>> round(query_error_bound(n_samples=1000, n_responses=10, n_queries=5, beta=0.05), 6)
    0.123296
    """
    n = _check.whole(n_samples, "n_samples", minimum=1, maximum=2**63)
    k = _check.whole(n_responses, "n_responses", minimum=1)
    t = _check.whole(n_queries, "n_queries", minimum=1)
    rate = _check.open_probability(beta, "beta")
    return 2 * math.sqrt((math.log(2 * k * t) - math.log(rate)) / (2 * n))


@assembled(
    draws="""
    Parameters
    ----------
    distance : float
        How far the data sets are apart, > 0.
    n_samples : int
        How many draws are released.
    """
)
@dataclass(frozen=True)
class LipschitzConstants:
    """Constants of a prior and a family whose log-likelihood is Lipschitz with a random constant.

    The least Lipschitz constant l(theta) in the data has ``P[l <= L] >= 1 - exp(-c (L - L0))`` under the prior for all
    ``L >= L0``, and C is the largest ratio of the likelihood *of the whole data set* to its marginal.

    Parameters
    ----------
    c : float
        > 0.
    L0 : float
        >= 0.
    C : float
        >= 1; grows with the number of records.

    Raises
    ------
    ValueError, TypeError
        If a constant lies outside its domain.

    Examples
    --------
    >>> from quincunx.posterior import LipschitzConstants
    >>> LipschitzConstants(c=2.0, L0=0.5, C=1.5).kl_bound(distance=1.0)
    3.0
    """

    c: float
    L0: float
    C: float

    def __post_init__(self) -> None:
        _check.real(self.c, "c", positive=True)
        _check.nonnegative(self.L0, "L0")
        if _check.real(self.C, "C") < 1:
            raise ValueError(f"`C` must be at least 1, got {self.C}")

    def kl_bound(self, *, distance: float = 1.0, n_samples: int = 1) -> float:
        """Return ``2 C (L0 + 1/c) distance`` per sample, a bound of the divergence between posteriors (T4).

        {draws}

        Returns
        -------
        float
            In nats.
        """
        n = _check.whole(n_samples, "n_samples", minimum=1, maximum=2**63)
        return n * 2 * self.C * (self.L0 + 1 / self.c) * _check.real(distance, "distance", positive=True)

    def tv_bound(self, *, distance: float = 1.0, n_samples: int = 1) -> float:
        """Return ``min(1, sqrt(KL / 2))``: it grows as the root of the number of samples (T5).

        {draws}

        Returns
        -------
        float
            In [0, 1].
        """
        return min(1.0, math.sqrt(self.kl_bound(distance=distance, n_samples=n_samples) / 2))

    def delta_guarantee(
        self, *, distance: float = 1.0, n_samples: int = 1, relation: Relation = ReplaceOne()
    ) -> PrivacyGuarantee:
        """Return ``(0, TV)``, by `tv_bound`: for study, as it warns where delta says nothing.

        Parameters
        ----------
        distance, n_samples
            As for `tv_bound`.
        relation : Relation
            What neighbors at that distance are called.

        Returns
        -------
        PrivacyGuarantee
            Of which `is_meaningful` is false where delta is above 1/1000, with an `InsecureGuaranteeWarning`.

        Raises
        ------
        ValueError
            If the bound is 1.
        """
        delta = self.tv_bound(distance=distance, n_samples=n_samples)
        if delta >= 1:
            raise ValueError(f"`distance` must be so small that delta is below 1, got {distance} with delta {delta}")
        return _warned(PrivacyGuarantee(0, delta, relation=_relations.check(relation)))

    def guarantee(self, L: float, *, distance: float = 1.0, relation: Relation = ReplaceOne()) -> PrivacyGuarantee:
        """Return ``((L + C (L0 + 1/c)) distance, C exp(-c (L - L0)))``, for any ``L >= L0`` (T6).

        Parameters
        ----------
        L : float
            Where the prior is cut in the argument, >= L0.
        distance : float
            Between the data sets, in the metric that the constants are about.
        relation : Relation
            What neighbors at that distance are called.

        Returns
        -------
        PrivacyGuarantee
            For study: where the prior is restricted to ``l <= L`` the pure guarantee by the range is better.

        Raises
        ------
        ValueError
            If L is below L0, or delta would reach 1.
        """
        level = _check.real(L, "L")
        if level < self.L0:
            raise ValueError(f"`L` must be at least L0 = {self.L0}, got {level}")
        delta = self.C * math.exp(-self.c * (level - self.L0))
        if delta >= 1:
            raise ValueError(f"`L` must be so large that delta is below 1, got {level} with delta {delta}")
        size = _check.real(distance, "distance", positive=True)
        epsilon = (level + self.C * (self.L0 + 1 / self.c)) * size
        return _warned(PrivacyGuarantee(epsilon, delta, relation=_relations.check(relation)))


def _warned(g: PrivacyGuarantee) -> PrivacyGuarantee:
    if not g.is_meaningful:
        said = f"a delta of {g.delta:.3g} guarantees nothing: one record in {math.ceil(1 / g.delta)} may be published"
        warnings.warn(said, InsecureGuaranteeWarning, stacklevel=3)
    return g


def prior_change_bounds(eta: float) -> tuple[float, float]:
    """Bound how far posteriors lie apart whose priors differ by little (T10).

    If ``abs(log(xi1 / xi2)) <= eta`` everywhere, the posteriors have a divergence of at most ``min(2 eta, eta**2 / 2)``
    and an L1 distance of at most ``2 tanh(eta / 2)``, for every data set.

    Parameters
    ----------
    eta : float
        >= 0.

    Returns
    -------
    (float, float)
        The bounds of the divergence, in nats, and of the L1 distance.

    Raises
    ------
    ValueError, TypeError
        If eta is negative or not finite.

    Examples
    --------
    >>> from quincunx.posterior import prior_change_bounds
    >>> tuple(round(bound, 6) for bound in prior_change_bounds(0.1))
    (0.005, 0.099917)
    """
    size = _check.nonnegative(eta, "eta")
    return min(2 * size, size * size / 2), 2 * math.tanh(size / 2)


def regret_bound(total_variation: float) -> float:
    """Bound the expected utility lost by deciding with another posterior (T9): ``2 TV``, for utilities in [0, 1].

    Parameters
    ----------
    total_variation : float
        Between the two posteriors, in [0, 1]; for a prior restricted to a set it is the posterior mass outside (T7).

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        If the distance lies outside [0, 1].

    Examples
    --------
    >>> from quincunx.posterior import regret_bound
    >>> regret_bound(0.125)
    0.25
    """
    return min(1.0, 2 * _check.probability(total_variation, "total_variation"))


_hockey_stick_doc = assembled(
    level="""
    Parameters
    ----------
    epsilon : float
        Privacy level, >= 0.
    """,
    records="""
    n : int
        Records, public; one may be replaced.
    """,
)


@_hockey_stick_doc
def beta_hockey_stick(epsilon: float, a: float, b: float, n: int, *, temper: float = 1.0) -> float:
    """Return the exact delta of one sample from an untrimmed Beta posterior of n bits.

    Between the posteriors of k and of k + 1 ones, ``p0 = Beta(a + k, b + n - k)`` and ``p1 = Beta(a + k + 1, b + n - k
    - 1)``, the log density ratio grows with the parameter, so that both hockey-stick divergences are differences of two
    incomplete beta functions; delta is the largest over k and both directions.

    {level}
    a, b : float
        Of the Beta prior, > 0.
    {records}
    temper : float
        The power of the likelihood, > 0.

    Returns
    -------
    float
        Off by some 1e-11 of it and some 1e-15, from SciPy's incomplete beta functions; not rounded outwards.

    {domain}

    Notes
    -----
    Four incomplete beta functions for each k, in one vectorized pass.

    Examples
    --------
    >>> from quincunx.posterior import beta_hockey_stick
    >>> round(beta_hockey_stick(1.0, 10, 10, 100) * 1e4, 9)
    7.314402708
    """
    from scipy import special

    level = min(
        _check.nonnegative(epsilon, "epsilon"), 700.0
    )  # the divergence falls with epsilon, and e**epsilon is a double
    first, second = _check.real(a, "a", positive=True), _check.real(b, "b", positive=True)
    tau = _check.real(temper, "temper", positive=True)
    records = _check.whole(n, "n", minimum=0, maximum=2**53)
    if records == 0:
        return 0.0
    _check.room(80 * records, "a divergence for each count of the records")
    k = np.arange(records, dtype=np.float64)
    a0, b0 = first + tau * k, second + tau * (records - k)
    a1, b1 = a0 + tau, b0 - tau
    shift = special.betaln(a1, b1) - special.betaln(a0, b0)
    # log p1/p0 = tau logit(t) - shift, which passes +-epsilon at these points.
    with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
        up, down = special.expit(-(level + shift) / tau), special.expit((shift - level) / tau)
        # Of 1 - t, for t may be 1 where a law with small b has much of its mass.
        one = special.betainc(b1, a1, up) - math.exp(level) * special.betainc(b0, a0, up)
        other = special.betainc(a0, b0, down) - math.exp(level) * special.betainc(a1, b1, down)
    return float(min(1.0, max(np.nanmax(one), np.nanmax(other), 0.0)))


@_hockey_stick_doc
def gamma_hockey_stick(epsilon: float, shape: float, rate: float, n: int, *, data_bound: float) -> float:
    """Return the exact delta of one sample from an untrimmed Gamma posterior of n records of an exponential law.

    The posterior is ``Gamma(shape + n, rate + sum x)``. Replacing a record of [0, data_bound] changes the rate by at
    most `data_bound`, relatively most where the sum of the others is 0; the divergences grow with the ratio of the
    rates.

    {level}
    shape, rate : float
        Of the Gamma prior, > 0.
    {records}
    data_bound : float
        To which records are clipped, > 0.

    Returns
    -------
    float
        From SciPy's incomplete gamma functions; not rounded outwards.

    {domain}

    Examples
    --------
    >>> from quincunx.posterior import gamma_hockey_stick
    >>> round(gamma_hockey_stick(1.0, 1.0, 20.0, 10, data_bound=1.0), 8)
    9e-07
    """
    from scipy import special

    level = min(_check.nonnegative(epsilon, "epsilon"), 700.0)  # as in `beta_hockey_stick`
    records = _check.whole(n, "n", minimum=0, maximum=2**53)
    total = _check.real(shape, "shape", positive=True) + records
    least = _check.real(rate, "rate", positive=True)
    most = least + _check.real(data_bound, "data_bound", positive=True)
    if records == 0:
        return 0.0
    if not least < most < math.inf:
        raise ValueError(f"`data_bound` must change `rate` in doubles, got {data_bound} beside {rate}")
    # log of Gamma(total, least) over Gamma(total, most) at t: total ln(least/most) + (most - least) t, increasing.
    shift = total * math.log(least / most)
    width = most - least
    up, down = (level - shift) / width, (-level - shift) / width
    one = special.gammaincc(total, least * up) - math.exp(level) * special.gammaincc(total, most * up)
    other = 0.0
    if down > 0:
        other = special.gammainc(total, most * down) - math.exp(level) * special.gammainc(total, least * down)
    return float(min(1.0, max(one, other, 0.0)))
