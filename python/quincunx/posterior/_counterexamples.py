"""Published statements about posterior sampling that are false, with figures worked out as they are asked for."""

import math
from dataclasses import dataclass

import numpy as np

from quincunx import _check
from quincunx._docs import sections
from quincunx.posterior._account import checked_trim
from quincunx.posterior._beta import BetaBernoulli
from quincunx.posterior._bounds import LipschitzConstants
from quincunx.posterior._gamma import ExponentialGamma, NormalPrecisionGamma
from quincunx.posterior._network import DiscreteBayesNet


@dataclass(frozen=True)
class Counterexample:
    """A statement of the literature and figures that refute it.

    Attributes
    ----------
    where : str
        Section of Zhang (2017).
    claim : str
        What is said there.
    claimed, found : float
        The figure claimed, and the one found where the claim should hold.
    right : str
        What holds instead, and is done here.
    """

    where: str
    claim: str
    claimed: float
    found: float
    right: str

    def __str__(self) -> str:
        return f"{self.where}: {self.claim}\n  claimed {self.claimed:.4g}, found {self.found:.4g}; right: {self.right}"


@sections
def naive_bayes_loss(features: int, n: int, trim: float) -> float:
    """Return a privacy loss that one draw of a naive Bayes posterior attains between two data sets of n records.

    All features are zero but those of one record, which is of class 0 with zeros, and of class 1 with ones in the
    neighbor. The posteriors of the class and of every feature given either class move apart; the loss is that of the
    worst corner of the parameters and of the worst number of further records in class 1.

    Parameters
    ----------
    features : int
        d binary features, at least 1.
    n : int
        Records, at least 1.
    trim : float
        Every probability lies in [trim, 1 - trim], with a uniform prior there.

    Returns
    -------
    float
        Approaches ``2 (d + 1) ln((1 - w) / w)`` for many records.

    {domain}

    Examples
    --------
    >>> import math
    >>> from quincunx.posterior import naive_bayes_loss
    >>> round(naive_bayes_loss(2, 50, math.exp(-1.5)), 2)  # the thesis claims 3
    6.68
    """
    from scipy.special import roots_legendre

    d, records = (_check.whole(x, name, minimum=1, maximum=2**53) for x, name in ((features, "features"), (n, "n")))
    w = checked_trim(trim)
    half = math.log((1 - w) / w)
    nodes, weights = roots_legendre(600)
    u = half * nodes
    log_t, log_s = -np.logaddexp(0, -u), -np.logaddexp(0, u)

    def log_mean(ones: int, zeros: int, p: int, q: int) -> float:
        """Return ln of the mean of t^p (1-t)^q under the posterior of ones and zeros."""
        logs = np.log(weights) + (ones + 1) * log_t + (zeros + 1) * log_s
        return float(np.logaddexp.reduce(logs + p * log_t + q * log_s) - np.logaddexp.reduce(logs))

    low, high = math.log(w), math.log1p(-w)
    found = []
    for k in sorted({*range(min(records, 40)), *np.geomspace(1, records, 60).astype(int).tolist()}):
        if k < records:
            zeros = records - k  # of class 0, before
            of_class = (high - low) - log_mean(k, zeros, 1, -1)  # t / (1 - t) more, at t = 1 - w
            given_zero = -low - log_mean(0, zeros, 0, -1)  # 1 / (1 - t) more, at t = 1 - w
            given_one = high - log_mean(0, k, 1, 0)  # t more, at t = 1 - w
            found.append(of_class + d * (given_zero + given_one))
    return max(found)


def counterexamples() -> tuple[Counterexample, ...]:
    """Return refutations of statements in the literature, worked out as they are asked for.

    Returns
    -------
    tuple of Counterexample
        With attributes `where`, `claim`, `claimed`, `found` and `right`; prints as two lines.

    Raises
    ------
    quincunx.errors.InternalError
        If the compiled module contradicts itself, which is a bug.

    References
    ----------
    .. [1] Z. Zhang (2017), doctoral thesis on privacy and Bayesian inference, chapters 3 and 4.

    Examples
    --------
    >>> from quincunx.posterior import counterexamples
    >>> print(counterexamples()[0])
    4.4.2: the naive Bayes sampler trimmed at exp(-epsilon/2) is 3-private (d = 16, 50 records)
      claimed 3, found 38.65; right: w = 1 / (1 + exp(epsilon / (2 (d + 1))))
    """
    found = [
        Counterexample(
            "4.4.2",
            "the naive Bayes sampler trimmed at exp(-epsilon/2) is 3-private (d = 16, 50 records)",
            3.0,
            naive_bayes_loss(16, 50, math.exp(-1.5)),
            "w = 1 / (1 + exp(epsilon / (2 (d + 1))))",
        ),
        Counterexample(
            "4.4.3",
            "L(w) = n (1 + 2 |w|_1 + d |w|_2) / (2 sigma^2) bounds difference quotients (n = d = W = sigma = 1)",
            2.0,
            _regression_quotient(),
            "(Y + X W) sqrt(1 + W^2) / sigma^2, or the range r / sigma^2 itself",
        ),
        Counterexample(
            "4.3.4",
            "densities of a Beta posterior change by at most sqrt(L) = 1.05 (n = 1000, w = 1/4)",
            math.sqrt(math.log(3)),
            _density_change(),
            "the exponential mechanism on the log-likelihood; densities on finite sets only",
        ),
        Counterexample(
            "3.6.4",
            "C = 1.064 for the normal precision (rate 2, [.1, .5], data to 5), one record",
            1.064,
            _normal_constant(),
            "C = max(sqrt(c2/c1) exp(c1 R^2/2), exp(c2 R^2/2)), R = B + |mu|, or the maximum itself",
        ),
        Counterexample(
            "3.3.1",
            "C of one record serves for 20 (exponential model, rate 2, [.5, 2])",
            ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1).lipschitz_constants(1).C,
            ExponentialGamma(1, 2, bounds=(0.5, 2), data_bound=1).lipschitz_constants(20).C,
            "C is that of the whole data set's likelihood",
        ),
        Counterexample(
            "4.2.9",
            "parities of naive Bayes with 16 features move by the number of parities, 34",
            34.0,
            float(_bayes(16).fourier_sensitivity()),
            "M = max_z #{g : <g, z> odd} = 2 d; the noise need not be larger",
        ),
        Counterexample(
            "4.4.2",
            "an untrimmed Beta posterior with a = 10 has a delta of 4.1e15 at epsilon 0 (n = 100)",
            4.1e15,
            BetaBernoulli(10, 10).delta(0.0, 100),
            "the exact hockey-stick divergence",
        ),
        Counterexample(
            "3.4.3, 4.3.3",
            "posteriors of neighbors diverge by M at most (Beta(10, 10), 10 records, delta .43): true, never the least",
            _divergence_constant(BetaBernoulli(10, 10).lipschitz_constants(10), 0.43),
            BetaBernoulli(10, 10).lipschitz_constants(10).kl_bound(),
            "2 C (L0 + 1/c) rho, below M max(rho, 1) at every rho; kappa is 2.45541",
        ),
    ]
    return tuple(found)


def _divergence_constant(constants: LipschitzConstants, delta: float, kappa: float = 4.91081) -> float:
    """Return the M of theorems 3.4.3 and 4.3.3 for rho below ``(1 - delta) c``, with the kappa printed there.

    Above ``2 C (L0 + 1/c)`` for every kappa above 2: the logarithms are not negative, as C >= 1, ``L0 (1 - delta) c >=
    0`` and what is added to the exponential of that is positive; and what L0 is multiplied by is above 2.
    """
    omega = 1.25643
    apart = math.exp(-omega * (1 - delta)) - math.exp(-omega)
    c, far = constants.c, constants.L0 * constants.c
    last = math.log(math.exp(-far * delta) / apart + math.exp(far * (1 - delta)))
    of_least = constants.L0 * (1 / (1 - math.exp(-omega)) + 1)
    return (kappa / c + of_least + math.log(constants.C) + last) * constants.C


def _bayes(features: int) -> DiscreteBayesNet:
    return DiscreteBayesNet([("y", i) for i in range(features)], {"y": 2} | dict.fromkeys(range(features), 2))


def _regression_quotient() -> float:
    """Return the largest difference quotient of (y - w x)^2 / 2 on a grid, |x|, |y|, |w| <= 1."""
    side = np.linspace(-1, 1, 41)
    x, y = np.meshgrid(side, side, indexing="ij")
    values = np.stack([(y - w * x) ** 2 / 2 for w in (-1.0, 1.0)])
    flat, points = values.reshape(2, -1), np.stack((x, y)).reshape(2, -1)
    best = 0.0
    for i in range(flat.shape[1]):
        apart = np.hypot(*(points - points[:, [i]]))
        near = apart > 0
        best = max(best, float((np.abs(flat - flat[:, [i]])[:, near] / apart[near]).max()))
    return best


def _density_change() -> float:
    t = np.linspace(0.25, 0.75, 20_001)
    best = 0.0
    for k in [*range(0, 1000, 50), *range(990, 1000)]:
        pair = []
        for ones in (k, k + 1):
            logs = ones * np.log(t) + (1000 - ones) * np.log1p(-t)
            density = np.exp(logs - logs.max())
            pair.append(density / np.trapezoid(density, t))
        best = max(best, float(np.abs(pair[0] - pair[1]).max()))
    return best


def _normal_constant() -> float:
    return NormalPrecisionGamma(1, 2, bounds=(0.1, 0.5), data_bound=5).lipschitz_constants(1).C
