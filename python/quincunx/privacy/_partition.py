"""Parallel composition inside an account: releases that each see one block of a declared partition of the records."""

import os
import threading
from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from typing import NoReturn

from quincunx import _check
from quincunx._docs import assembled
from quincunx._types import Facts
from quincunx.privacy._book import Book
from quincunx.privacy._composition import worse
from quincunx.privacy._filters import SUMS, Account, BudgetExceeded, cost_of
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._privacy_map import Shift
from quincunx.privacy._relations import AddRemove, DataMetric, NoGuarantee, ReplaceOne
from quincunx.privacy._together import parallel, spread


@assembled(
    block="""
    Parameters
    ----------
    block : hashable
        Which one.
    """,
    errors="""
    Raises
    ------
    ValueError, RuntimeError
        As for `spend`.
    """,
)
class Partition:
    """Blocks of the records with an account each, the largest of which a budget pays; `Budget.partition` makes it.

    Examples
    --------
    >>> from quincunx.privacy import AddRemove, Budget, PrivacyGuarantee
    >>> budget, half = Budget(1.0, relation=AddRemove()), PrivacyGuarantee(0.5, relation=AddRemove())
    >>> regions = budget.partition(["north", "south"])
    >>> for region in regions.blocks:
    ...     _ = regions.spend(region, half)
    >>> budget.remaining()
    0.5
    """

    def __init__(self, budget: Book, blocks: Iterable[Hashable], by: object, user: Hashable) -> None:
        if not isinstance(budget, Book):
            raise TypeError(f"`budget` must be a Budget, got {type(budget).__name__}")
        _check.fits(blocks, "blocks")
        self._accounts: dict[Hashable, Account] = {}
        for name in () if isinstance(blocks, (str, bytes)) else blocks:
            if name in self._accounts:
                raise ValueError(f"`blocks` must be names that are all different, got {name!r} twice")
            self._accounts[name] = Account()
        if not self._accounts:
            raise ValueError(f"`blocks` must be names, at least one, got {blocks!r}")
        if getattr(budget.relation, "records", 1) > 1:
            raise NoGuarantee(f"no rule is known for {budget.relation}: its records may lie in several blocks")
        self.by = _check.one_of(by, "by", ("value", "key"))
        self._budget, self._user = budget, user
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def blocks(self) -> tuple[Hashable, ...]:
        """The names of the blocks."""
        return tuple(self._accounts)

    def spend(self, block: Hashable, guarantee: object) -> PrivacyGuarantee:
        """Count a release that sees one block, or refuse it.

        Parameters
        ----------
        block : hashable
            Whose records it sees.
        guarantee : PrivacyGuarantee, or anything with an attribute `guarantee`
            Of the release. Where a replaced record may move to another block it must be about ``AddRemove()``.

        Returns
        -------
        PrivacyGuarantee
            The sums of the block's epsilons and deltas, about the relation of the budget.

        Raises
        ------
        BudgetExceeded
            If the largest of the blocks would pass the limit; nothing is counted then.
        NoGuarantee, TypeError
            If the guarantee is about another relation.
        ValueError
            If the partition has no such block.
        RuntimeError
            In a forked child: parent and child would each count to the largest alone.
        """
        self._account(block)
        rule, found = self._budget._rule, self._about_budget(guarantee)
        if found.numerics == "insecure":
            raise BudgetExceeded("noise from a known seed protects nothing: not released")
        with self._lock:
            spreads = self._spreads(found)
            if spreads and isinstance(found.relation, DataMetric):
                found = spread(found, len(self._accounts))
            cost = cost_of(found, rule.kind)
            mine = rule.added(self._accounts[block], cost)
            if not spreads:  # all blocks may be touched at once: the budget pays for this beside them
                self._budget._record(self._user, found, lambda account: rule.after(account, cost))
                return self._budget._total(mine)
            before = reduce(_larger, self._accounts.values())
            after = _larger(before, mine)
            self._budget._record(self._user, found, lambda account: rule.accepted(_risen(account, before, after)))
            self._accounts[block] = mine
            return self._budget._total(mine)

    def spent(self, block: Hashable) -> PrivacyGuarantee | None:
        """Return the sums of a block's epsilons and deltas so far, None if nothing was spent.

        {block}

        Returns
        -------
        PrivacyGuarantee or None
            About the relation of the budget.

        {errors}
        """
        account = self._account(block)
        return self._budget._total(account) if account.spends else None

    def remaining(self, block: Hashable) -> float:
        """Return the epsilon that is left to a block, about the relation of the budget.

        {block}

        Returns
        -------
        float
            What the budget has left, and how far the block is below the largest.

        {errors}
        """
        with self._lock:
            largest, own = reduce(_larger, self._accounts.values()), self._account(block)
            return self._budget._rule.room(_risen(self._budget._ledger.read(self._user), largest, own))

    def _account(self, block: Hashable) -> Account:
        if os.getpid() != self._process:
            raise RuntimeError("a partition belongs to the process that made it")
        if block not in self._accounts:
            known = list(self._accounts)
            raise ValueError(
                f"`block` must be one of the partition, {known}, got {block!r}{_check.meant(block, known)}"
            )
        return self._accounts[block]

    def _about_budget(self, guarantee: object) -> PrivacyGuarantee:
        """Return what one block says of the budget's relation."""
        found = getattr(guarantee, "guarantee", guarantee)
        if self._budget.relation == ReplaceOne() and self.by == "value" and isinstance(found, PrivacyGuarantee):
            if found.relation != AddRemove():
                raise NoGuarantee(
                    f"a replaced record may move to another block: `guarantee` must be about AddRemove(), "
                    f"got {found.relation}"
                )
            # Two steps: it leaves a block and enters another, or does both in one, which the largest bounds.
            found = parallel([found], relation=ReplaceOne())
        return self._budget._checked(found)

    def _spreads(self, guarantee: PrivacyGuarantee) -> bool:
        """Whether neighbors differ in one block only, or what they cost grows in proportion to the distance or faster.

        A distance d of arrays is spread over the blocks. With l1, d is the sum of the blocks' distances; a cost T with
        T(d) / d not falling, as of epsilon and levels of concentration of noise that follows l1, sums to at most the
        largest. With l2 the same holds for squares.
        """
        relation = self._budget.relation
        if not isinstance(relation, DataMetric):
            return True
        follows = all(
            isinstance(part.privacy_map, Shift) and part.curve.adds_by == relation.metric for part in guarantee.parts
        )
        return follows and (guarantee.is_pure if self._budget.filter == "sum" else True)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a partition cannot be pickled or copied: both would count to the largest block alone")


def _larger(one: Account, other: Account) -> Account:
    """Return an account that is at least each of two in every sum."""
    numerics = worse(one.numerics, other.numerics)
    return Account(max(one.spends, other.spends), numerics=numerics, **_sums(max, one, other))


def _risen(account: Account, before: Account, after: Account) -> Account:
    """Return an account where one thing in its sums has become another."""
    numerics = worse(account.numerics, after.numerics)
    sums = _sums(lambda whole, old, new: whole + new - old, account, before, after)
    return Account(account.spends + 1, numerics=numerics, **sums)


def _sums(rule: Callable[..., int], *accounts: Account) -> Facts:
    """Return what a rule makes of each sum of accounts; what is unknown in one of them stays so."""
    found = {name: [getattr(account, name) for account in accounts] for name in SUMS}
    return {name: None if None in parts else rule(*parts) for name, parts in found.items()}
