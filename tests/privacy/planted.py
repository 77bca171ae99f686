"""Planted false claims: tempting rules of privacy accounting, each with a strategy that breaks it.

A strategy is a tree: a mechanism for two data sets, and what follows after each outcome. Its delta is enumerated; it is
drawn for the audit.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import mpmath
import numpy as np

from quincunx.privacy import GeometricMechanism, PrivacyGuarantee


@dataclass(frozen=True)
class Noise:
    """A leaf: Gaussian noise whose mean is u standard deviations larger for x."""

    u: float

    def promise(self, delta):
        """Return the guarantee of this release, its figures at some delta."""
        return PrivacyGuarantee.of_gaussian(1 / self.u, delta)


@dataclass(frozen=True)
class Node:
    """Outcomes with their probabilities for x and for y, and what follows each; and what the release promises."""

    outcomes: tuple
    epsilon: float = 0.0
    delta: float = 0.0

    @staticmethod
    def of(*outcomes, epsilon=0.0, delta=0.0):
        return Node(tuple((p, q, rest[0] if rest else None) for p, q, *rest in outcomes), epsilon, delta)

    def promise(self, delta):
        """Return the guarantee of this release alone."""
        return PrivacyGuarantee(self.epsilon, self.delta)


def response(epsilon, after_one=None, after_zero=None):
    """Randomized response: x says 1, y says 0."""
    keep = 1 / (1 + math.exp(-epsilon))
    return Node.of((keep, 1 - keep, after_one), (1 - keep, keep, after_zero), epsilon=epsilon)


def bit(one, loss, after_one=None, after_zero=None):
    """A bit that is 1 with probability `one` for x, and with a loss there."""
    other = one * math.exp(-loss)
    level = max(loss, -math.log((1 - one) / (1 - other)))
    return Node.of((one, other, after_one), (1 - one, 1 - other, after_zero), epsilon=level)


def failure(delta):
    """Nothing, but with probability delta everything."""
    return Node.of((delta, 0.0), (0.0, delta), (1 - delta, 1 - delta), delta=delta)


def ranged(t, width=1.0, after_one=None, after_zero=None):
    """The bit whose losses are t and t - width."""
    other = (1 - math.exp(t - width)) / (math.exp(t) - math.exp(t - width))
    return Node.of((other * math.exp(t), other, after_one), ((1 - other) * math.exp(t - width), 1 - other, after_zero))


def gaussian_profile(epsilon, u):
    """P(B) - exp(epsilon) Q(B) at its largest, for normal laws u apart; epsilon of any sign."""
    return float(mpmath.ncdf(u / 2 - epsilon / u) - mpmath.exp(epsilon) * mpmath.ncdf(-u / 2 - epsilon / u))


def strategy_delta(node, epsilon, p=1.0, q=1.0):
    """Enumerate the outcomes: the largest of P(B) - exp(epsilon) Q(B)."""
    if isinstance(node, Noise):
        if q == 0:
            return p
        return p * gaussian_profile(epsilon - math.log(p / q), node.u) if p else 0.0
    if node is None:
        return max(p - math.exp(epsilon) * q, 0.0)
    return math.fsum(strategy_delta(rest, epsilon, p * a, q * b) for a, b, rest in node.outcomes)


def strategy_draws(node, for_x, size, rng):
    """Draw the log-likelihood ratio of `size` runs, and return them; those of impossible outcomes are infinite."""
    if node is None:
        return np.zeros(size)
    if isinstance(node, Noise):
        z = rng.standard_normal(size) + (node.u if for_x else 0.0)
        return node.u * z - node.u**2 / 2
    chances = np.array([outcome[0 if for_x else 1] for outcome in node.outcomes])
    counts = rng.multinomial(size, chances / chances.sum())
    parts = []
    for (p, q, rest), count in zip(node.outcomes, counts, strict=True):
        loss = math.inf if q == 0 else -math.inf if p == 0 else math.log(p / q)
        parts.append(loss + strategy_draws(rest, for_x, count, rng))
    draws = np.concatenate(parts)
    rng.shuffle(draws)
    return draws


@dataclass(frozen=True)
class Claim:
    """A claimed (epsilon, delta) of a strategy, and the delta that it really has."""

    name: str
    epsilon: float
    delta: float
    strategy: Node
    truth: float  # as published

    @cached_property
    def exact(self):
        return strategy_delta(self.strategy, self.epsilon)

    def mechanism(self, seed):
        """Return the function (data, size) that draws the ratio, which is all that an adversary needs."""
        rng = np.random.default_rng(seed)
        return lambda for_x, size: strategy_draws(self.strategy, for_x, size, rng)


def repeat(epsilon, times, after_zero, at_the_end):
    """Randomized response up to `times` times, until a 0; `after_zero(k)` follows the k-th if it is one."""
    node = at_the_end
    for k in range(times, 0, -1):
        node = response(epsilon, node, after_zero(k))
    return node


def zcdp_delta(rho, epsilon):
    """Least bound over orders a > 1 of exp((a-1)(a rho - epsilon)) (1 - 1/a)**a / (a - 1)."""
    logs = np.linspace(-8, 12, 400_001)
    a = 1 + np.exp(logs)
    return float(np.exp(((a - 1) * (a * rho - epsilon) + a * np.log1p(-1 / a) - logs).min()))


SAVING = 0.074**2 / 2
F3 = Claim(
    "F3 the better of zCDP and basic sums with delta in both",
    0.3,
    0.01,
    repeat(0.074, 4, lambda k: failure(0.01), Noise(math.sqrt(2 * (0.016207616162090441 - 4 * SAVING)))),
    0.012095326,
)
LITTLE = 0.019**2 / 2
F4 = Claim(
    "F4 the sum of deltas and the zCDP bound of the path at hand",
    0.1,
    0.001,
    repeat(
        0.019,
        4,
        lambda k: failure(0.001 - zcdp_delta(k * LITTLE, 0.1)),
        Noise(math.sqrt(2 * (0.0011820521662361 - 4 * LITTLE))),
    ),
    0.00116224450,
)
F5 = Claim("F5 Renyi at some order", 1.0, 0.01, response(0.05, bit(0.632089, 0.98), bit(0.053778, 1.18)), 0.0127699528)


def _adapted(spent):
    """The ranged bit that is worst where `spent` of .25 is lost already."""
    grid = np.linspace(0, 1, 20_001)[1:-1]
    deltas = [strategy_delta(ranged(t), 0.25 - spent) for t in grid]
    return ranged(grid[int(np.argmax(deltas))])


F6 = Claim(
    "F6 bounded range with one fixed interval",
    0.25,
    0.21605,
    ranged(0.5, 1.0, _adapted(0.5), _adapted(-0.5)),
    0.22092727017690812606,
)
UP = ((6 / 7, 3 / 7), (1 / 7, 4 / 7))  # losses ln 2 and -ln 4
DOWN = ((4 / 7, 1 / 7), (3 / 7, 6 / 7))  # losses ln 4 and -ln 2
F7 = Claim(
    "F7 tied signs where parts oppose",
    math.log(3),
    13 / 49,
    Node.of(*((*outcome, Node.of(*DOWN)) for outcome in UP)),
    15 / 49,
)
F12 = Claim(
    "F12 exact composition as a filter", 1.0, 0.1, response(0.5, response(0.768112264), failure(0.1)), 0.13775406681364
)
STRATEGIES = [F3, F4, F5, F6, F7, F12]

HALF = GeometricMechanism(alpha=0.5)


def subsampled(present, size):
    """F10: a record kept with probability 1/4 says yes with 3/4 or 1/12; if it is absent, yes with 1/4."""
    rng = np.random.default_rng()
    kept = rng.random(size) < 0.25
    return (rng.random(size) < np.where(kept, 3 / 4 if present else 1 / 12, 1 / 4)).astype(int)
