"""A limit with the accounts that count to it, which a budget and its partitions have in common."""

import json
from collections.abc import Callable, Hashable
from fractions import Fraction

from quincunx.privacy._filters import Account, Filter
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._ledger import FileLedger, MemoryLedger
from quincunx.privacy._relations import Relation


class Book:
    """A limit as a filter, the relation it is about, and the ledger of its accounts."""

    def _set(self, rule: Filter, relation: Relation, ledger: "MemoryLedger | FileLedger") -> None:
        self.epsilon, self.delta, self.filter, self.failure = rule.epsilon, rule.delta, rule.kind, rule.failure
        self.relation = relation
        self._rule, self._ledger = rule, ledger

    def _record(self, user: Hashable, guarantee: PrivacyGuarantee, decide: Callable[[Account], Account]) -> Account:
        return self._ledger.change(user, lambda: json.dumps(guarantee.to_dict()), decide)

    def _checked(self, guarantee: object) -> PrivacyGuarantee:
        found = getattr(guarantee, "guarantee", guarantee)
        if not isinstance(found, PrivacyGuarantee):
            raise TypeError(f"`guarantee` must be a PrivacyGuarantee or have one, got {type(found).__name__}")
        if found.relation != self.relation:
            raise TypeError(f"`guarantee` must be about {self.relation}, got {found.relation}")
        return found

    def _total(self, account: Account) -> PrivacyGuarantee:
        epsilon, delta = (self._rule.amount(name, getattr(account, name)) for name in ("epsilon", "delta"))
        delta = min(delta, 1 - Fraction(1, 2**53))
        return PrivacyGuarantee(epsilon, delta, relation=self.relation, numerics=account.numerics)
