"""What may be spent, and what has been."""

import threading
from collections.abc import Hashable
from fractions import Fraction

from quincunx import _check
from quincunx.privacy import _rational, _relations
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._relations import Relation, ReplaceOne

#: A limit is understood up to this relative rounding, so that ten times 0.1 fit into 1.
SLACK = 1 + Fraction(1, 2**46)


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


class Budget:
    """The limit of what releases about one user may promise together.

    A total fits if its sum of (epsilon, delta) does, or if its exact composition does at the limit's delta.

    Parameters
    ----------
    epsilon : float
        Limit of the total epsilon, > 0.
    delta : float
        Limit of the total delta, in [0, 1).
    relation : ReplaceOne, AddRemove or DataMetric
        The only relation that is accepted.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain.

    Notes
    -----
    May be shared by threads. Ask *before* releasing: spend first, then release.

    Examples
    --------
    >>> from quincunx.privacy import Budget, PrivacyGuarantee
    >>> budget = Budget(1.0)
    >>> for _ in range(10):
    ...     _ = budget.spend(PrivacyGuarantee(0.1), user="ada")
    >>> budget.spend(PrivacyGuarantee(0.1), user="grace").epsilon
    0.1
    >>> round(budget.remaining("grace"), 12)
    0.9
    """

    def __init__(self, epsilon: float, delta: float = 0.0, *, relation: Relation = ReplaceOne()) -> None:  # noqa: B008
        self.epsilon = _check.real(epsilon, "epsilon", positive=True)
        self.delta = float(_rational.fraction(delta, "delta", below_one=True))
        self.relation = _relations.check(relation)
        self._spent: dict[Hashable, PrivacyGuarantee] = {}
        self._lock = threading.Lock()

    def spend(self, guarantee: object, *, user: Hashable = None) -> PrivacyGuarantee:
        """Count a release, or refuse it.

        Parameters
        ----------
        guarantee : PrivacyGuarantee, or anything with an attribute `guarantee`
            What the release promises: a guarantee, a mechanism or a `Release`.
        user : hashable
            Whose budget it is; without it there is one account.

        Returns
        -------
        PrivacyGuarantee
            The user's new total.

        Raises
        ------
        BudgetExceeded
            If the total would pass the limit; nothing is counted then.
        TypeError
            If the relation is another one.
        """
        guarantee = getattr(guarantee, "guarantee", guarantee)
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"`guarantee` must be a PrivacyGuarantee or have one, got {type(guarantee).__name__}")
        if guarantee.relation != self.relation:
            raise TypeError(f"`guarantee` must be about {self.relation}, got {guarantee.relation}")
        with self._lock:
            before = self._spent.get(user)
            total = guarantee if before is None else before & guarantee
            if not self._fits(total):
                limit = f"of at most {self.epsilon:g} at delta {self.delta:g}"
                raise BudgetExceeded(f"epsilon {self._level(total):.6g} {limit}: not released")
            self._spent[user] = total
            return total

    def spent(self, user: Hashable = None) -> PrivacyGuarantee | None:
        """Return a user's total so far, None if nothing was spent.

        Parameters
        ----------
        user : hashable
            Whose budget it is.

        Returns
        -------
        PrivacyGuarantee or None
            The composition of all that was counted.
        """
        with self._lock:
            return self._spent.get(user)

    def remaining(self, user: Hashable = None) -> float:
        """Return the epsilon that is left, at the limit's delta.

        Parameters
        ----------
        user : hashable
            Whose budget it is.

        Returns
        -------
        float
            The limit minus the total's epsilon, at least 0.
        """
        total = self.spent(user)
        return self.epsilon if total is None else max(self.epsilon - self._level(total), 0.0)

    def _level(self, total: PrivacyGuarantee) -> float:
        if self.delta == 0 and not total.is_pure:
            return float("inf")
        sums = total.epsilon if total.exact_delta <= Fraction(self.delta) * SLACK else float("inf")
        return min(sums, total.epsilon_at(self.delta))

    def _fits(self, total: PrivacyGuarantee) -> bool:
        level = self._level(total)
        return level < float("inf") and Fraction(level) <= Fraction(self.epsilon) * SLACK
