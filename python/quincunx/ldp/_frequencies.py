"""Shares of categories as numbers, not as a posterior: unbiased, made consistent, or of the greatest likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Floats
from quincunx._progress import Progress, reporting
from quincunx.errors import ConvergenceWarning
from quincunx.ldp._groups import Group
from quincunx.ldp._histogram import HistogramModel
from quincunx.ldp._noise import MechanismLike, noise_of, split
from quincunx.ldp._problem import Block, likelihood
from quincunx.privacy._categorical import on_simplex
from quincunx.privacy._supports import SupportNoise
from quincunx.privacy.noise import (
    GeneralizedRandomizedResponseNoise,
    MemoizedUnaryEncodingNoise,
    UnaryEncodingNoise,
)


def _norm_mul(found: Floats) -> Floats:
    positive = np.maximum(found, 0.0)
    return np.asarray(positive / positive.sum() if positive.any() else np.full(len(found), 1 / len(found)))


def _norm_cut(found: Floats) -> Floats:
    """Return the largest positive estimates, as many as sum to at most one, or the largest alone."""
    order = np.argsort(-found, kind="stable")
    kept = np.maximum(found[order], 0.0)
    kept[1:][np.cumsum(kept)[1:] > 1 + 4 * len(found) * np.finfo(float).eps] = 0.0  # sums are rounded
    shares = np.empty(len(found))
    shares[order] = kept
    return shares


#: What is done to unbiased estimates, by the names of Wang et al. (2020).
RULES: dict[str, Callable[[Floats], Floats]] = {
    "unbiased": lambda found: found,
    "base-pos": lambda found: np.maximum(found, 0.0),
    "norm": lambda found: np.asarray(found + (1 - found.sum()) / len(found)),
    "norm-mul": _norm_mul,
    "norm-cut": _norm_cut,
    "norm-sub": on_simplex,
}


def estimate_frequencies(
    released: npt.ArrayLike,
    method: Literal[
        "unbiased", "base-pos", "base-cut", "norm", "norm-mul", "norm-cut", "norm-sub", "likelihood"
    ] = "norm-sub",
    *,
    data: Literal["rows", "repeated"] = "rows",
    mechanism: MechanismLike = None,
    significance: float = 0.05,
    tolerance: float = 0.01,
    max_iter: int = 1000,
    progress: Progress = False,
) -> Floats:
    """Return estimates of the shares of categories, without a posterior.

    Parameters
    ----------
    released : Release, array_like or list of these
        What users told by UnaryEncoding, GeneralizedRandomizedResponse, SubsetSelection, LocalHashing or
        HadamardResponse. Lists, and summaries for `HistogramModel`, are for the likelihood alone.
    method : str
        What is done to the unbiased estimates [1]_:

        - "unbiased": nothing; they may be negative, and sum to 1 only by chance;
        - "base-pos": what is negative becomes 0;
        - "base-cut": what is below the threshold of `significance` becomes 0;
        - "norm": the same is added to each, so that they sum to 1;
        - "norm-mul": what is negative becomes 0, the others are multiplied so that they sum to 1;
        - "norm-cut": the largest are kept as long as they sum to at most 1, the others become 0;
        - "norm-sub": the same is added to each and what is then negative becomes 0, so that they sum to 1. That is the
          projection on the simplex, the nearest shares by Euclid.

        "likelihood" is the greatest likelihood among all shares, by iterative Bayesian updates [2]_.
    data : {"rows", "repeated"}
        "repeated" for several reports of each user, as `HistogramModel` takes them, whose likelihood is the joint one.
        The unbiased estimates are the mean of those of all reports either way, an array of shape (n, reports, ...).
    mechanism : optional
        Of data that are no Release.
    significance : float
        In (0, 1), of "base-cut": the probability that any of k categories that nobody has is above the threshold, by a
        normal law and a bound of their sum.
    tolerance : float
        Of "likelihood": the log-likelihood, in nats of all users, is at most so far below the greatest.
    max_iter : int
        Updates at the most.
    progress : bool or callable
        As everywhere: of the updates, of which few may be needed.

    Returns
    -------
    ndarray of float64, shape (k,)
        In the order of the declaration.

    Raises
    ------
    ValueError, TypeError
        If the reports are not those of such a mechanism, or there are none.

    Warns
    -----
    ConvergenceWarning
        If the tolerance is not reached.

    Notes
    -----
    An update is ``theta_x (n + g_x - theta g) / n`` for the gradient g of the log-likelihood, which is the mean of the
    posterior shares of users; it never lowers the likelihood. Every third step extrapolates from the last two [3]_,
    where that raises it. The log-likelihood is concave, so that no shares are better by more than ``max(g) - theta g``:
    there it stops. A step costs one pass over the different reports.

    References
    ----------
    .. [1] T. Wang, M. Lopuhaa-Zwakenberg, Z. Li, B. Skoric and N. Li (2020), Locally differentially private frequency
       estimation with consistency, NDSS.
    .. [2] D. Agrawal and C. C. Aggarwal (2001), On the design and quantification of privacy preserving data mining
       algorithms, PODS.
    .. [3] R. Varadhan and C. Roland (2008), Simple and globally convergent methods for accelerating the convergence of
       any EM algorithm, Scand. J. Statist. 35, scheme S3.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import estimate_frequencies
    >>> from quincunx.privacy import LocalHashing
    >>> x = np.repeat([0, 1, 2], [7000, 3000, 0])
    >>> release = LocalHashing(2.0, 3).release(x, insecure_seed=1)
    >>> for method in ("unbiased", "norm-sub", "likelihood"):
    ...     shares = estimate_frequencies(release, method)
    ...     print(method, bool(np.abs(shares - [0.7, 0.3, 0]).max() < 0.05), bool(shares.min() >= 0))
    unbiased True False
    norm-sub True True
    likelihood True True
    """
    word = _check.one_of(method, "method", (*RULES, "base-cut", "likelihood"))
    form = _check.one_of(data, "data", ("rows", "repeated"))
    level, most = _check.open_probability(significance, "significance"), _check.whole(max_iter, "max_iter", minimum=1)
    within = _check.real(tolerance, "tolerance", positive=True)
    if word == "likelihood":
        model = HistogramModel(data=form)
        groups = model._groups(released, mechanism, True)
        size = len(model._categories(groups))
        if not any(group.number for group in groups):
            raise ValueError("`released` must hold at least one report")
        return _most_likely(groups, size, within, most, progress)
    if split(released) is not None:
        raise ValueError(f'`released` must be one release for "{word}"; "likelihood" takes several')
    found, variances = _unbiased(released, mechanism)
    if word != "base-cut":
        return RULES[word](found)
    from scipy import special

    above = -special.ndtri(level / len(found))
    return np.where(found < above * np.sqrt(variances), 0.0, found)


def _unbiased(released: npt.ArrayLike, mechanism: MechanismLike) -> tuple[Floats, Floats]:
    """Return the unbiased estimates, and their variances where nobody has the category."""
    noise = noise_of(released, mechanism, None, HistogramModel._known, "estimate_frequencies")
    if noise is None:
        raise ValueError("`mechanism` must be given where `released` is no Release")
    if isinstance(noise, SupportNoise):
        found, users = noise.estimated(released, "released")
        return found, noise.variances_of_none(on_simplex(found), users)
    if isinstance(noise, UnaryEncodingNoise):
        found, p, q = noise.rows(released, "released"), noise.one_probability, noise.zero_probability
        rows = found.reshape(-1, found.shape[-1])
        told, users = rows.sum(axis=0, dtype=np.int64), len(rows)
        if users and isinstance(noise, MemoizedUnaryEncodingNoise) and found.ndim == 3:  # reports of permanent rows
            nobody = noise.variances_of(np.zeros(len(told)), found.shape[0], found.shape[1])
            return np.asarray((told / users - q) / (p - q)), nobody
    else:
        assert isinstance(noise, GeneralizedRandomizedResponseNoise)
        codes, p, q = noise.declared.encode(released, "released"), noise.keep_probability, noise.other_probability
        told, users = np.bincount(codes.reshape(-1), minlength=len(noise.declared)), codes.size
    if not users:
        raise ValueError("`released` must hold at least one report")
    return np.asarray((told / users - q) / (p - q)), np.full(len(told), q * (1 - q) / (users * (p - q) ** 2))


def _most_likely(groups: Sequence[Group], size: int, tolerance: float, max_iter: int, progress: Progress) -> Floats:
    """Return the shares of the greatest likelihood, by updates that are extrapolated."""
    core = likelihood(groups, [Block("simplex", "dirichlet", [1.0] * size)])

    users = float(sum(group.number for group in groups))

    def looked(theta: Floats) -> tuple[float, Floats, float]:
        """Return the log-likelihood, the shares after an update, and by how much others may be better."""
        value, slope = core.value(theta, True)
        assert slope is not None
        mean = theta @ slope
        # The sum over users of P(z | x) / P(z): the gradient, and what probabilities without theta add to it.
        updated = theta * np.maximum(slope + (users - mean), 0.0)
        return value, updated / updated.sum(), float(slope.max() - mean)

    theta = np.full(size, 1 / size)
    value, first, gap = looked(theta)
    with reporting(progress, "updates") as report:
        for step in range(max_iter):
            if gap <= tolerance:
                return theta
            if report is not None:
                report(step, max_iter)
            _, second, _ = looked(first)
            change, bend = first - theta, second - 2 * first + theta
            far = min(float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), 1e-300), 1e100)
            leap = np.maximum(theta + 2 * far * change + far**2 * bend, second / 16)
            leap /= leap.sum()
            found = looked(leap)
            if found[0] < value:
                leap, found = second, looked(second)
            theta, (value, first, gap) = leap, found
    warnings.warn(
        f"the log-likelihood may be {gap:.3g} nats below the greatest after {max_iter} updates: raise `max_iter`",
        ConvergenceWarning,
        stacklevel=3,
    )
    return theta
