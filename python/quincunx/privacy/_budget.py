"""What may be spent, and what has been."""

import os
import threading
from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Literal, NoReturn

from quincunx import _check
from quincunx._docs import assembled
from quincunx._html import table_html
from quincunx._types import Facts
from quincunx.privacy import _rational, _relations
from quincunx.privacy._book import Book
from quincunx.privacy._composition import counted
from quincunx.privacy._filters import (
    KINDS,
    Account,
    BudgetExceeded,
    Cost,
    Filter,
    Share,
    cost_of,
    pure_rho,
    pure_square,
)
from quincunx.privacy._guarantee import PrivacyGuarantee
from quincunx.privacy._guarantee_json import relation_from_json, relation_to_json
from quincunx.privacy._ledger import FileLedger, MemoryLedger
from quincunx.privacy._partition import Partition
from quincunx.privacy._relations import Relation, ReplaceOne

#: So many users a notebook shows one by one.
_SHOWN = 20


@assembled(
    user="""
    Parameters
    ----------
    user : hashable
        Whose budget it is.
    """,
    errors="""
    Raises
    ------
    ValueError, RuntimeError
        As for `spend`.
    """,
)
class Budget(Book):
    """The limit of what releases about one user may guarantee together.

    Whatever is spent, and however each release is chosen in the light of earlier ones, all releases together are
    (epsilon, delta)-private. Which spends are accepted is the `filter`:

    ========== ======================================================== ==========================================
    filter     accepts                                                  for
    ========== ======================================================== ==========================================
    "sum"      while the epsilons sum to epsilon and the deltas to      few releases, of any kind
               delta
    "zcdp"     while rho sums to rho*, the level that is (epsilon,      many releases with Gaussian or discrete
               delta - failure)-private, or the epsilons to epsilon     Gaussian noise, posterior samples
    "gaussian" while (sensitivity / sigma)**2 sums to that of the       many releases with Gaussian noise
               Gaussian noise that is (epsilon, delta - failure)-
               private, or the epsilons to epsilon
    ========== ======================================================== ==========================================

    Exact composition holds for what was announced in advance only: see `plan`.

    Parameters
    ----------
    epsilon : float
        Limit of the total epsilon, > 0.
    delta : float
        Limit of the total delta, in [0, 1).
    relation : ReplaceOne, AddRemove or DataMetric
        The only relation that is accepted.
    filter : {"sum", "zcdp", "gaussian"}
        The rule, fixed from now on.
    failure : float
        Of the last two, the part of delta that is kept for releases with a delta of their own, in [0, delta).

    {domain}

    Notes
    -----
    May be shared by threads; a forked child is refused, since parent and child would spend the same remainder (`open`
    serves both). Ask *before* releasing: spend first, then release. Limits are understood up to 2**-44, relative.

    References
    ----------
    .. [1] J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu (2023), Fully-adaptive composition in differential privacy,
       ICML.

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

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        relation: Relation = ReplaceOne(),
        filter: Literal["sum", "zcdp", "gaussian"] = "sum",
        failure: float = 0.0,
    ) -> None:
        self._set(_filter(epsilon, delta, filter, failure), _relations.check(relation), MemoryLedger())

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        relation: Relation | None = None,
        filter: Literal["sum", "zcdp", "gaussian"] | None = None,
        failure: float | None = None,
        timeout: float = 60.0,
        allow_network: bool = False,
    ) -> "Budget":
        """Open a budget whose accounts are in a file, or make one.

        One transaction per spend: an accepted spend is on disk before `spend` returns. Processes, threads and forks of
        one host may share the file, and any of them may be killed. The file alone is the ledger: a copy that is made
        between two spends knows them all. A handle whose file was deleted, replaced or overwritten by an older copy
        refuses to spend.

        Parameters
        ----------
        path : path
            An SQLite file, on a disk of this host. It is made, readable by its owner only, if it is not there.
        epsilon, delta, relation, filter, failure
            As for the class. A new file needs `epsilon`; what is given must agree with what an old one says.
        timeout : float
            Seconds to wait for others that hold the file.
        allow_network : bool
            Whether the file may lie on a network file system (nfs, cifs, 9p, sshfs and their like; seen on Linux only),
            where locks of two hosts may not hold: True promises that no two hosts use it at a time.

        Returns
        -------
        Budget
            Its users are None, str, bytes, whole numbers and tuples of these.

        Raises
        ------
        ValueError, TypeError
            If an argument lies outside its domain, differs from the file's, or the file is no ledger.
        OSError
            If the file cannot be read or written, is on a network file system, or, when spending, is no longer the one
            that was opened; TimeoutError if it was locked all the time.

        Notes
        -----
        A spend takes about a millisecond, most of it the disk's, which is asked to flush four times; opening reads the
        whole file, about 50 ms for 100,000 spends. A process that is killed between the commit and its release has
        spent without releasing, never the other way round. One that is killed *within* a spend leaves its journal
        beside the file, of the same name with "-journal" behind it: the next opening uses it, so until then the two
        belong together.

        Examples
        --------
        >>> import os, tempfile
        >>> from quincunx.privacy import Budget, PrivacyGuarantee
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "study.budget")
        ...     _ = Budget.open(path, 1.0).spend(PrivacyGuarantee(0.25), user="ada")
        ...     Budget.open(path).remaining("ada")
        0.75
        """
        given: dict[str, object] = {"epsilon": epsilon, "delta": delta, "filter": filter, "failure": failure}
        given["relation"] = None if relation is None else relation_to_json(_relations.check(relation))
        limits = None
        if epsilon is not None:
            rule = _filter(epsilon, delta or 0.0, filter or "sum", failure or 0.0)
            limits = {"epsilon": rule.epsilon, "delta": rule.delta, "filter": rule.kind, "failure": rule.failure}
            limits["relation"] = given["relation"] or relation_to_json(ReplaceOne())
        seconds, shared = _check.nonnegative(timeout, "timeout"), _check.flag(allow_network, "allow_network")
        ledger = FileLedger(str(_check.path(path, "path")), limits, seconds, shared)
        try:
            names = ("epsilon", "delta", "filter", "failure")
            rule = _filter(*(ledger.limits[name] for name in names))
            about = relation_from_json(ledger.limits["relation"])
        except (KeyError, TypeError, ValueError) as reason:
            raise ValueError(f"`path` must be a ledger written by quincunx, got {ledger.path}") from reason
        for name, value in given.items():
            if value is None:
                continue
            wanted = value if name in ("filter", "relation") else _check.real(value, name)
            if wanted != ledger.limits[name]:
                raise ValueError(f"`{name}` must be that of the ledger, {ledger.limits[name]}, got {wanted}")
        budget = cls.__new__(cls)
        budget._set(rule, about, ledger)
        return budget

    @property
    def path(self) -> str | None:
        """Where the accounts are, None for this process."""
        return self._ledger.path if isinstance(self._ledger, FileLedger) else None

    def spend(self, guarantee: object, *, user: Hashable = None) -> PrivacyGuarantee:
        """Count a release, or refuse it.

        Parameters
        ----------
        guarantee : PrivacyGuarantee, or anything with an attribute `guarantee`
            The guarantee of the release: a guarantee, a mechanism or a `Release`.
        user : hashable
            Whose budget it is; without it there is one account. Must be equal to a copy of itself.

        Returns
        -------
        PrivacyGuarantee
            The sums of the user's epsilons and deltas: an account, as `spent` says.

        Raises
        ------
        BudgetExceeded
            If the total would pass the limit, or the noise came from a known seed; nothing is counted then.
        TypeError
            If the relation is another one.
        ValueError
            If the user names no account.
        RuntimeError
            In a forked child, if the accounts are in memory.
        """
        found = self._checked(guarantee)
        cost = cost_of(found, self.filter)
        return self._total(self._record(user, found, lambda account: self._rule.after(account, cost)))

    def plan(self, guarantees: Iterable[object], *, user: Hashable = None, delta: float | None = None) -> "Plan":
        """Announce releases and count them all at once, by their exact composition.

        Exact composition holds for a list of releases that is fixed beforehand; their order, and whether each is made
        at all, may still depend on earlier ones. Counted is the list's epsilon at `delta`, and `delta`; its sums or
        ratios instead, where they fit. What was announced is taken up in this process only, also with a ledger.

        Parameters
        ----------
        guarantees : iterable of PrivacyGuarantee, mechanism or Release
            What is announced.
        user : hashable
            Whose budget it is.
        delta : float, optional
            The part of the limit's delta that the plan uses; by default all that is left for releases with a delta.

        Returns
        -------
        Plan
            Its `spend` takes what was announced, once each.

        Raises
        ------
        BudgetExceeded
            If the plan would pass the limit; nothing is counted then.
        ValueError, TypeError
            If nothing is announced, or an argument lies outside its domain.

        Examples
        --------
        >>> from quincunx.privacy import Budget, RandomizedResponse
        >>> bit, budget = RandomizedResponse(0.1), Budget(1.5, 0.001)
        >>> plan = budget.plan([bit] * 18)  # the epsilons sum to 1.8
        >>> round(budget.spent().epsilon, 3)
        1.081
        >>> plan.spend(bit)
        >>> len(plan.left)
        17
        """
        slots = [self._checked(guarantee) for guarantee in guarantees]
        if not slots:
            raise ValueError("`guarantees` must hold at least one, got none")
        total = reduce(and_, slots)
        share = None if delta is None else _rational.fraction(delta, "delta", below_one=True)

        def decide(account: Account) -> Account:
            if share is None:
                try:
                    return self._rule.after(account, cost_of(total, self.filter))
                except BudgetExceeded:
                    if total.numerics == "insecure":
                        raise
            return self._rule.after(account, self._exact_cost(total, account, share))

        self._record(user, total, decide)
        return Plan(slots)

    def partition(
        self, blocks: Iterable[Hashable], *, by: Literal["value", "key"] = "value", user: Hashable = None
    ) -> Partition:
        """Declare a partition of the records: releases that each see one block cost what the largest block does.

        Parameters
        ----------
        blocks : iterable of hashable
            Their names. The partition is declared beforehand, without looking at the data.
        by : {"value", "key"}
            What decides the block of a record: its own private value, or a public key that no neighbor changes.
        user : hashable
            Whose budget it is.

        Returns
        -------
        Partition
            Its ``spend(block, guarantee)`` adds to this budget how much the largest block has grown, whatever the
            filter. Accounts of blocks are kept in this process only, also with a ledger: a new partition counts anew.

        Raises
        ------
        NoGuarantee
            If the relation is about several records.
        ValueError, TypeError
            If the blocks have no names or equal ones.

        Notes
        -----
        ================== ===== ================================================================================
        relation           by    what is counted for the largest
        ================== ===== ================================================================================
        ``AddRemove()``    any   its releases: a neighbor has one record more or less, which is in one block
        ``ReplaceOne()``   value its releases' guarantees about ``AddRemove()`` in two steps: a record may leave one
                                 block for another, or change within its own
        ``ReplaceOne()``   key   its releases
        `DataMetric`       any   its releases with noise that follows the metric; others are summed over the blocks
        ================== ===== ================================================================================

        Each limit holds along every path of choices: for any two neighbors only the releases of the blocks where they
        differ count, and their sums are at most the largest.

        Examples
        --------
        >>> from quincunx.privacy import AddRemove, Budget, PrivacyGuarantee
        >>> one, moving = PrivacyGuarantee(0.25, relation=AddRemove()), Budget(1.0)
        >>> ages = moving.partition(range(10))
        >>> for age in ages.blocks:
        ...     _ = ages.spend(age, one)
        >>> moving.remaining(), ages.remaining(3)
        (0.5, 0.5)
        """
        return Partition(self, blocks, by, user)

    def split(self, weights: Iterable[float], *, user: Hashable = None) -> list[Share]:
        """Split what is left in proportion to weights, for releases that are calibrated to their share.

        Nothing is counted: spend each share's release as ever.

        Parameters
        ----------
        weights : iterable of float or Fraction
            One for each share, > 0.
        user : hashable
            Whose budget it is.

        Returns
        -------
        list of Share
            Of exact numbers that sum to at most what is left. ``filter="sum"`` splits epsilon and delta; the others
            the level `rho` (Gaussian noise of deviation ``sensitivity / sqrt(2 rho)`` costs it) and the delta for
            failures, and say the `epsilon` of a pure release that costs no more.

        Raises
        ------
        ValueError, TypeError
            If a weight is not positive and finite, or there are none.
        RuntimeError
            As for `spend`.

        Examples
        --------
        >>> from quincunx.privacy import Budget, PrivacyGuarantee
        >>> budget = Budget(1.0, 1e-6)
        >>> budget.spend(PrivacyGuarantee(0.25)).epsilon
        0.25
        >>> for share in budget.split([1, 2]):
        ...     print(float(share.epsilon), budget.spend(PrivacyGuarantee(share.epsilon, share.delta)).epsilon)
        0.25 0.5
        0.5 1.0
        """
        _check.fits(weights, "weights")
        given = [_rational.fraction(weight, "weights") for weight in weights]
        if not given or min(given) == 0:
            raise ValueError(f"`weights` must be positive numbers, at least one, got {[float(w) for w in given]}")
        return self._rule.shares(self._ledger.read(user), given)

    def _exact_cost(self, total: PrivacyGuarantee, account: Account, share: Fraction | None) -> Cost:
        """Return an announced total as one release: its exact epsilon at a part of the delta, and that part."""
        name, limit = ("delta", self.delta) if self.filter == "sum" else ("failure", self.failure)
        left = max(Fraction(limit) - self._rule.amount(name, getattr(account, name)), Fraction(0))
        part = _rational.downwards(left if share is None else share)
        if part == 0 and not total.is_pure:
            raise BudgetExceeded(f"no delta is left of {limit:g}, and the plan needs one: not released")
        epsilon = total.epsilon_at(part)
        if not epsilon < float("inf"):
            raise BudgetExceeded(f"the plan has no epsilon at delta {part:g}: not released")
        level, failure = Fraction(epsilon), Fraction(part)
        cost_of_pure = {"zcdp": pure_rho, "gaussian": pure_square}.get(self.filter)
        cost = None if cost_of_pure is None else cost_of_pure(level)
        return Cost(level, failure, failure, level, cost, total.numerics)

    def spent(self, user: Hashable = None) -> PrivacyGuarantee | None:
        """Return the sums of a user's epsilons and deltas so far, None if nothing was spent.

        An account and not a guarantee of its own: of releases chosen in the light of one another, the guarantee is the
        limit. (Where delta is 0 the sum of epsilons is one, too.)

        {user}

        Returns
        -------
        PrivacyGuarantee or None
            With the sums of all that was counted; a delta of 1 or more is shown as the last float below 1.

        {errors}
        """
        account = self._ledger.read(user)
        return self._total(account) if account.spends else None

    def remaining(self, user: Hashable = None) -> float:
        """Return the epsilon that is left.

        {user}

        Returns
        -------
        float
            About the largest epsilon of a pure release that would be accepted.

        {errors}
        """
        return self._rule.room(self._ledger.read(user))

    def accounts(self) -> list[Facts]:
        """Return all accounts.

        Returns
        -------
        list of dict
            For each user in words: `user`, `spends`, the sums `epsilon` and `delta`, and what is `remaining`.

        Raises
        ------
        RuntimeError
            As for `spend`.
        """
        return [
            {
                "user": user,
                "spends": account.spends,
                "epsilon": _rational.upwards(self._rule.amount("epsilon", account.epsilon)),
                "delta": _rational.upwards(self._rule.amount("delta", account.delta)),
                "remaining": self._rule.room(account),
            }
            for user, account in self._ledger.users()
        ]

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {"epsilon": self.epsilon, "delta": self.delta, "rule": self.filter}
        rows |= {"relation": self.relation, "accounts": "in memory" if self.path is None else self.path}
        for row in (accounts := self.accounts())[:_SHOWN]:
            name = row["user"] or "all"
            rows[f"{name}, spent"] = f"{row['epsilon']:.6g} in {row['spends']} releases, {row['remaining']:.6g} left"
        if len(accounts) > _SHOWN:
            rows["and"] = f"{len(accounts) - _SHOWN} users more"
        return table_html("Budget", rows)

    def __repr__(self) -> str:
        rule = "" if self.filter == "sum" else f", filter={self.filter!r}, failure={self.failure}"
        where = "" if self.path is None else f", path={self.path!r}"
        return f"Budget({self.epsilon}, {self.delta}, relation={self.relation}{rule}{where})"

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self._ledger, FileLedger):
            return Budget._reopen, (self._ledger.path, self._ledger.timeout, self._ledger.allow_network)
        raise TypeError(
            "a Budget in memory cannot be pickled or copied: two copies would spend the same remainder; "
            "`Budget.open(path)` keeps its accounts in a file that many may share"
        )

    @staticmethod
    def _reopen(path: str, timeout: float, allow_network: bool) -> "Budget":
        return Budget.open(path, timeout=timeout, allow_network=allow_network)


class Plan:
    """Releases that were announced and counted; `Budget.plan` makes it.

    Examples
    --------
    >>> from quincunx.privacy import Budget, PrivacyGuarantee
    >>> plan = Budget(1.0).plan([PrivacyGuarantee(0.25), PrivacyGuarantee(0.5)])
    >>> plan.spend(PrivacyGuarantee(0.5))
    >>> plan.left
    [PrivacyGuarantee(epsilon=0.25, delta=0.0, relation=ReplaceOne(), numerics='exact')]
    """

    def __init__(self, slots: list[PrivacyGuarantee]) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def left(self) -> list[PrivacyGuarantee]:
        """What was announced and not yet spent."""
        with self._lock:
            return list(self._slots)

    def spend(self, guarantee: object) -> None:
        """Take up one of the announced releases.

        Parameters
        ----------
        guarantee : PrivacyGuarantee, or anything with an attribute `guarantee`
            With the same parts as one that was announced, and as many of each.

        Raises
        ------
        BudgetExceeded
            If no equal one is left.
        RuntimeError
            In a forked child: parent and child would both use what was announced once.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a plan belongs to the process that made it")
        found = getattr(guarantee, "guarantee", guarantee)
        with self._lock:
            keys = [_multiset(slot) for slot in self._slots]
            if not isinstance(found, PrivacyGuarantee) or _multiset(found) not in keys:
                raise BudgetExceeded(f"{found} was not announced, or is used up: not released")
            del self._slots[keys.index(_multiset(found))]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a plan cannot be pickled or copied: both would use what was announced once")


def _filter(epsilon: object, delta: object, kind: object, failure: object) -> Filter:
    """Return a filter of checked parameters."""
    return Filter(
        _check.real(epsilon, "epsilon", positive=True),
        float(_rational.fraction(delta, "delta", below_one=True)),
        _check.one_of(kind, "filter", KINDS),
        float(_rational.fraction(failure, "failure", below_one=True)),
    )


def _multiset(guarantee: PrivacyGuarantee) -> tuple[object, ...]:
    """Return what tells two guarantees apart: their parts, and how many there are of each."""
    return guarantee.relation, guarantee.numerics, frozenset(counted(guarantee.parts).items())
