"""Which spends a budget accepts when each may be chosen in the light of what came before.

A filter's kind, limit and split of delta are fixed when it is opened. On every path of choices:

* ``"sum"``: the sums of epsilon and of delta keep the limits;
* ``"zcdp"``: failures sum to at most Df and rho to at most rho*, where ``B(rho*; epsilon) <= delta - Df``;
* ``"gaussian"``: failures as before, and squared ratios u**2 sum to at most U**2, where the Gaussian profile at U is at
  most ``delta - Df``.

The last two also accept while the epsilons alone sum to the limit, with the same Df. Sums are whole multiples of a unit
far below the limit, each cost rounded upwards.

Whitehouse, Ramdas, Rogers and Wu (2023), Fully-adaptive composition in differential privacy, ICML.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from quincunx import _core
from quincunx._types import Facts
from quincunx.privacy import _rational
from quincunx.privacy._calibration import gaussian_sigma
from quincunx.privacy._composition import worse
from quincunx.privacy._curves import Approx, surviving
from quincunx.privacy._guarantee import PrivacyGuarantee

KINDS = ("sum", "zcdp", "gaussian")
#: A limit is understood up to this relative rounding, so that ten times 0.1 fit into 1, and Gaussian noise that was
#: calibrated for the whole limit (its sigma is within 1e-14 of the exact one) fits into it.
SLACK = 1 + Fraction(1, 2**44)
#: Sums are kept to this many bits below the limit: 2**54 costs are rounded by less than the slack.
BITS = 100


class BudgetExceeded(Exception):
    """A release would take a user's total past the limit; it was not counted.

    Examples
    --------
    >>> from quincunx.privacy import Budget, BudgetExceeded, PrivacyGuarantee
    >>> try:
    ...     Budget(1.0).spend(PrivacyGuarantee(2.0))
    ... except BudgetExceeded as error:
    ...     print(error)
    epsilon 2 of at most 1 at delta 0: not released
    """

    __module__ = "quincunx.privacy"  # where users find it


@dataclass(frozen=True)
class Cost:
    """What one release costs, as exact numbers.

    `cost` is what the filter adds up beside: the zero-concentrated level but for the failure, or the squared ratio of
    Gaussian noise that is at least as revealing.
    """

    epsilon: Fraction
    delta: Fraction
    failure: Fraction = Fraction(0)  # probability of an unbounded loss
    pure: Fraction | None = None  # epsilon but for the failure, None if no bound of the loss is known
    cost: Fraction | None = None
    numerics: str = "exact"


#: The sums of an account, by the names that a cost has for what is added.
SUMS = ("epsilon", "delta", "failure", "pure", "cost")


@dataclass(frozen=True)
class Account:
    """What was spent, in the units of a filter."""

    spends: int = 0
    epsilon: int = 0
    delta: int = 0
    failure: int = 0
    pure: int | None = 0
    cost: int | None = 0
    numerics: str = "exact"


def cost_of(guarantee: PrivacyGuarantee, kind: str) -> Cost:
    """Return what a release costs: the one place that reads a guarantee's parts."""
    sums = Cost(guarantee.exact_epsilon, guarantee.exact_delta, numerics=guarantee.numerics)
    if kind == "sum":
        return sums
    survival = Fraction(1)
    pures: list[Fraction | None] = []
    costs: list[Fraction | None] = []
    for part in guarantee.parts:
        curve, count = part.curve, part.count
        if kind == "zcdp":
            survival *= 1 - part.failure
            cost, pure = part.rho, None if part.curve.failure and not part.failure else curve.pure
        else:
            survival *= surviving(curve.failure, count)
            cost, pure = part.ratio, curve.pure
        if isinstance(curve, Approx) and (kind == "gaussian" or part.failure):
            pure = curve.epsilon
        if kind == "gaussian" and cost is None and pure is not None:
            cost = pure_square(pure) * count
        pures.append(None if pure is None else pure * count)
        costs.append(cost)
    return replace(sums, failure=1 - survival, pure=_summed(pures), cost=_summed(costs))


def _summed(parts: list[Fraction | None]) -> Fraction | None:
    """Return a sum, None if a part of it is not known."""
    known = [part for part in parts if part is not None]
    return sum(known, Fraction(0)) if len(known) == len(parts) else None


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return at least ``epsilon tanh(epsilon / 2)``, the zero-concentrated level of a pure release."""
    plain = epsilon**2 / 2
    if not Fraction(1, 10**6) < epsilon < 700:
        return plain if epsilon < 1 else min(plain, epsilon)
    level = _rational.upwards(epsilon)
    return min(plain, Fraction(level * math.tanh(level / 2)) * (1 + Fraction(1, 2**48)))


def pure_square(epsilon: Fraction) -> Fraction:
    """Return at least u**2, u the ratio of Gaussian noise that has randomized response for a function of it.

    ``u = 2 Phi^-1(1 / (1 + exp(-epsilon)))``: at u the total variation is that of randomized response. It is rounded up
    by 2**-30, relative, where the errors of the two functions of the last lines are below 2**-39.
    """
    if epsilon < Fraction(1, 10**6):  # erf(z) >= 2 z (1 - z**2 / 3) / sqrt(pi)
        return epsilon**2 * Fraction(math.pi / 2) * (1 + Fraction(1, 2**30))
    if epsilon > 700:
        return Fraction(10**6) * epsilon  # beyond every limit
    level = _rational.upwards(epsilon)

    def reaches(z: float) -> bool:
        return math.erf(z) >= math.tanh(level / 2) if level < 1 else math.erfc(z) <= 2 / (1 + math.exp(level))

    below, above = 0.0, math.sqrt(level)  # erfc(sqrt(e)) <= exp(-e) <= 2 / (1 + exp(e)); for e < 1 as well
    while below < (middle := (below + above) / 2) < above:
        below, above = (below, middle) if reaches(middle) else (middle, above)
    return 8 * Fraction(above * (1 + 2.0**-30)) ** 2


@dataclass(frozen=True)
class Share:
    """A part of what a budget has left, as exact numbers: what releases may cost that are calibrated to it.

    `rho` is the zero-concentrated level, half the square of the ratio of Gaussian noise, None where a budget sums
    epsilons; `epsilon` the level of a pure release that costs no more; `delta` what releases with a delta may have.

    Examples
    --------
    >>> from quincunx.privacy import Budget
    >>> Budget(1.0).split([3, 1])[0]
    Share(epsilon=Fraction(3, 4), delta=Fraction(0, 1), rho=None)
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None


@dataclass(frozen=True)
class Filter:
    """A limit of what may be spent, and the rule by which it is kept."""

    epsilon: float
    delta: float
    kind: str = "sum"
    failure: float = 0.0

    def __post_init__(self) -> None:
        if self.kind != "sum" and not 0 <= self.failure < self.delta:
            raise ValueError(
                f"`failure` must be at least 0 and below `delta` for filter={self.kind!r}, "
                f"got {self.failure} with delta = {self.delta}"
            )
        if self.kind == "gaussian":
            self.most_cost()  # which refuses levels that no such noise has

    @cached_property
    def _limits(self) -> dict[str, Fraction]:
        limits = {"epsilon": Fraction(self.epsilon) * SLACK, "delta": Fraction(self.delta) * SLACK}
        if self.kind != "sum":
            limits |= {"failure": Fraction(self.failure) * SLACK, "cost": self.most_cost()}
        return limits

    def most_cost(self) -> Fraction:
        """Return rho* or U**2, not above the exact one."""
        level = _rational.downwards(Fraction(self.epsilon) * SLACK)
        room = _rational.downwards(Fraction(self.delta) * SLACK - Fraction(self.failure))
        if self.kind == "gaussian":
            return 1 / Fraction(gaussian_sigma(level, room)) ** 2
        below, above = 0.0, 1.0
        while _core.zcdp_delta(above, level) <= room and above < 1e300:
            below, above = above, 2 * above
        while below < (middle := (below + above) / 2) < above:
            below, above = (middle, above) if _core.zcdp_delta(middle, level) <= room else (below, middle)
        return Fraction(below)

    @cached_property
    def _shifts(self) -> dict[str, int]:
        """For each sum the k of its unit 2**-k; a limit of 0 has a unit below every float."""
        shifts = {}
        for name in ("epsilon", "delta", "cost"):
            limit = self._limits.get(name, Fraction(0))
            size = limit.numerator.bit_length() - limit.denominator.bit_length() if limit else -1200
            shifts[name] = max(BITS - size, 0)
        return shifts | {"pure": shifts["epsilon"], "failure": shifts["delta"]}

    @cached_property
    def _most(self) -> dict[str, int]:
        """The limits in whole units, rounded downwards."""
        limits = self._limits
        limits |= {"pure": limits["epsilon"]}
        return {name: math.floor(limit * 2 ** self._shifts[name]) for name, limit in limits.items()}

    def amount(self, name: str, units: int) -> Fraction:
        """Return a sum of an account as an exact number."""
        return Fraction(units, 2 ** self._shifts[name])

    def after(self, account: Account, cost: Cost) -> Account:
        """Return an account with a cost added, or raise if that would pass the limit."""
        if cost.numerics == "insecure":
            raise BudgetExceeded("noise from a known seed protects nothing: not released")
        return self.accepted(self.added(account, cost))

    def accepted(self, total: Account) -> Account:
        """Return an account that keeps the limit, or raise."""
        most = self._most
        simple = total.pure is not None and total.pure <= most["pure"]
        beyond = ""
        if self.kind == "sum":
            if total.epsilon > most["epsilon"]:
                found = self._shown("epsilon", total.epsilon)
                beyond = f"epsilon {found} of at most {self.epsilon:g} at delta {self.delta:g}"
            elif total.delta > most["delta"]:
                beyond = f"delta {self._shown('delta', total.delta)} of at most {self.delta:g}"
        elif total.failure > most["failure"]:
            beyond = f"failures of probability {self._shown('failure', total.failure)} of at most {self.failure:g}"
        elif not simple and (total.cost is None or total.cost > most["cost"]):
            name = "rho" if self.kind == "zcdp" else "squared ratio"
            found = "unknown" if total.cost is None else self._shown("cost", total.cost)
            beyond = f"{name} {found} of at most {float(self._limits['cost']):.6g}"
        if beyond:
            raise BudgetExceeded(f"{beyond}: not released")
        return total

    def _shown(self, name: str, units: int) -> str:
        return f"{float(self.amount(name, units)):.6g}"

    def added(self, account: Account, cost: Cost) -> Account:
        """Return an account with a cost, whatever the limit."""
        sums: Facts = {}
        for name in SUMS:
            before, part = getattr(account, name), getattr(cost, name)
            if before is None or part is None:
                sums[name] = None
                continue
            if part < 0:
                raise ValueError(f"`guarantee` must have figures of at least 0, got {name} = {float(part)}")
            sums[name] = before - (-part.numerator << self._shifts[name]) // part.denominator
        numerics = worse(account.numerics, cost.numerics)
        return replace(account, spends=account.spends + 1, numerics=numerics, **sums)

    def room(self, account: Account) -> float:
        """Return about the largest epsilon of a pure release that would be accepted, to 14 digits, and it would be."""
        sums, left = account.epsilon if self.kind == "sum" else account.pure, 0.0
        if sums is not None:
            left = max(float(Fraction(self.epsilon) - self.amount("epsilon", sums)), 0.0)
            left = float(f"{left:.14g}")  # 0.2 and not 0.19999999999999996: it moves by less than the slack
        if self.kind == "sum" or account.cost is None:
            return left
        return max(left, self._pure(self._limits["cost"] - self.amount("cost", account.cost)))

    def _pure(self, rest: Fraction) -> float:
        """Return the largest epsilon, but for rounding downwards, of a pure release that costs no more."""
        cost = pure_rho if self.kind == "zcdp" else pure_square
        below, above = 0.0, 2 * self.epsilon + 1
        for _ in range(60):
            middle = (below + above) / 2
            below, above = (middle, above) if cost(Fraction(middle)) <= rest else (below, middle)
        return below

    def shares(self, account: Account, weights: list[Fraction]) -> list[Share]:
        """Return parts of what is left, in proportion to weights: whole units, so that together they are no more."""
        total = sum(weights, Fraction(0))

        def parts(name: str, limit: Fraction) -> list[Fraction]:
            used = getattr(account, name)
            shift = self._shifts[name]
            left = 0 if used is None else max(math.floor(limit * 2**shift) - used, 0)
            return [Fraction(math.floor(left * weight / total), 2**shift) for weight in weights]

        if self.kind == "sum":
            figures = zip(parts("epsilon", Fraction(self.epsilon)), parts("delta", Fraction(self.delta)), strict=True)
            return [Share(epsilon, delta, None) for epsilon, delta in figures]
        costs = zip(parts("cost", self._limits["cost"]), parts("failure", Fraction(self.failure)), strict=True)
        rho = 1 if self.kind == "zcdp" else 2  # the squared ratio of Gaussian noise is twice its level
        return [Share(Fraction(self._pure(cost)), delta, cost / rho) for cost, delta in costs]
