"""Where a budget keeps its accounts: in this process, or in an SQLite file that outlives it.

A transaction reads an account, decides, and writes it. In a file it takes the write lock first and ends with a commit
that is on disk, so that processes, threads and forks never decide on the same remainder, and a spend that was accepted
is there after a crash.
"""

import json
import os
import pickle
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from quincunx.privacy._filters import Account
from quincunx.privacy._guarantee import NUMERICS

APPLICATION = 0x51585042  # "QXPB"
FORMAT = 1
PATIENCE = 0.05  # seconds between attempts to get the lock: in between, signals are handled

#: Connections that came through a fork are kept to the end: SQLite forbids to use them, or to close them, here.
_CARRIED: list[sqlite3.Connection] = []


class _Keeper:
    """Closes a connection with its thread, where it was opened."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.process = connection, os.getpid()

    def __del__(self, getpid: Callable[[], int] = os.getpid, carried: list[sqlite3.Connection] = _CARRIED) -> None:
        if getpid() == self.process:
            self.connection.close()
        else:
            carried.append(self.connection)


SCHEMA = (
    "CREATE TABLE limits (text TEXT NOT NULL)",
    "CREATE TABLE accounts (user TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE spends (number INTEGER PRIMARY KEY, user TEXT NOT NULL, seconds REAL NOT NULL, text TEXT NOT NULL)",
)


class Memory:
    """Accounts of this process; a forked child has none."""

    def __init__(self) -> None:
        self._accounts: dict[Hashable, Account] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def _own(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "a Budget in memory belongs to the process that made it: parent and child would spend the same "
                "remainder; `Budget.open(path)` serves both"
            )

    def change(self, user: Hashable, note: Callable[[], str], decide: Callable[[Account], Account]) -> Account:
        """Put what `decide` makes of an account in its place; if it raises, nothing changes."""
        self._own()
        key = _checked(user)
        with self._lock:
            account = decide(self._accounts.get(key, Account()))
            self._accounts[key] = account
            return account

    def read(self, user: Hashable) -> Account:
        """Return an account."""
        self._own()
        key = _checked(user)
        with self._lock:
            return self._accounts.get(key, Account())

    def users(self) -> list[tuple[str, Account]]:
        """Return all accounts, users as words."""
        self._own()
        with self._lock:
            return [("" if user is None else str(user), account) for user, account in self._accounts.items()]


def _checked(user: Hashable) -> Hashable:
    """Return a user that names one account: one that is equal to a copy of itself, as a NaN is not."""
    if user is None or type(user) in (str, int, bytes, bool):
        return user
    try:
        same = bool(pickle.loads(pickle.dumps(user)) == user) and hash(user) == hash(user)
    except Exception:
        same = False
    if not same:
        raise ValueError(f"`user` must be hashable and equal to a copy of itself, to have one account, got {user!r}")
    return user


class File:
    """Accounts in an SQLite file."""

    def __init__(self, path: str, limits: dict[str, Any] | None, timeout: float) -> None:
        self.path, self.timeout = os.path.abspath(path), timeout
        self._local = threading.local()
        if limits is not None and not os.path.lexists(self.path):
            try:  # nobody else may read who was asked; no link is followed
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                pass
        elif not os.path.exists(self.path):
            raise FileNotFoundError(f"there is no ledger {self.path}; a new one needs `epsilon`")
        if not os.path.isfile(self.path):
            raise ValueError(f"{self.path}: it is not a file, so it cannot keep a ledger")
        self.limits = self._create_or_read(limits)

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection: SQLite forbids to carry one through a fork."""
        if getattr(self._local, "process", None) != os.getpid():
            if not os.path.exists(self.path):
                raise FileNotFoundError(f"the ledger {self.path} is gone")
            # Closed by whichever thread collects it, hence no check of threads; none is used by two.
            connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None, check_same_thread=False)
            self._local.connection, self._local.process = connection, os.getpid()
            self._local.keeper = _Keeper(connection)
            self._patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchall())
            connection.execute("PRAGMA synchronous=FULL")
        return self._local.connection  # type: ignore[no-any-return]

    def _patiently(self, work: Callable[[], Any]) -> Any:
        """Do what may find the file locked, again and again until the time is over."""
        end = time.monotonic() + self.timeout
        wait = 0.0002
        while True:
            try:
                return work()
            except sqlite3.OperationalError as reason:
                if not _is_busy(reason):
                    raise
                if time.monotonic() > end:
                    raise TimeoutError(f"the ledger {self.path} was locked for {self.timeout:g} seconds") from None
            time.sleep(wait)
            wait = min(2 * wait, PATIENCE)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._connection()
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield connection
                self._patiently(lambda: connection.execute("COMMIT"))
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as reason:
            raise OSError(f"the ledger {self.path}: {reason}") from reason
        except sqlite3.DatabaseError as reason:
            raise ValueError(f"`path` must be a ledger written by quincunx, got {self.path}: {reason}") from reason

    def _create_or_read(self, limits: dict[str, Any] | None) -> dict[str, Any]:
        with self._transaction() as connection:
            empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if empty and limits is not None:
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO limits VALUES (?)", (json.dumps(limits),))
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
                return limits
            found = tuple(
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            )
            if found != (APPLICATION, FORMAT):
                raise ValueError(f"`path` must be a ledger of format {FORMAT} written by quincunx, got {self.path}")
            text = connection.execute("SELECT text FROM limits").fetchone()
            try:
                stored: dict[str, Any] = json.loads(text[0])
            except (TypeError, ValueError) as reason:
                raise ValueError(f"`path` must be a ledger written by quincunx, got {self.path}") from reason
            return stored

    def change(self, user: Hashable, note: Callable[[], str], decide: Callable[[Account], Account]) -> Account:
        """Put what `decide` makes of an account in its place, on disk; if it raises, nothing changes."""
        key = named(user)
        with self._transaction() as connection:
            account = decide(self._account(connection, key))
            connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", (key, json.dumps(asdict(account))))
            connection.execute("INSERT INTO spends (user, seconds, text) VALUES (?, ?, ?)", (key, time.time(), note()))
        return account

    def read(self, user: Hashable) -> Account:
        """Return an account."""
        key = named(user)
        with self._transaction() as connection:
            return self._account(connection, key)

    def users(self) -> list[tuple[str, Account]]:
        """Return all accounts, users as words."""
        with self._transaction() as connection:
            keys = [row[0] for row in connection.execute("SELECT user FROM accounts ORDER BY user")]
            return [(_shown(key), self._account(connection, key)) for key in keys]

    def _account(self, connection: sqlite3.Connection, key: str) -> Account:
        row = connection.execute("SELECT text FROM accounts WHERE user = ?", (key,)).fetchone()
        if row is None:
            return Account()
        try:
            account = Account(**json.loads(row[0]))
            sums = (
                account.spends,
                account.epsilon,
                account.delta,
                account.failure,
                account.pure or 0,
                account.cost or 0,
            )
            if account.numerics not in NUMERICS or any(type(part) is not int or part < 0 for part in sums):
                raise ValueError("a sum is negative or no whole number")
        except (TypeError, ValueError) as reason:
            raise ValueError(f"`path` must be a ledger written by quincunx, got {self.path}: {reason}") from reason
        return account


def _is_busy(reason: sqlite3.OperationalError) -> bool:
    return (reason.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _shown(key: str) -> str:
    """Return a user for a list: words as they are, anything else as it is kept."""
    return key[1:] if key[:1] in ("s", "i") else key


def named(user: Hashable) -> str:
    """Return the words under which a file keeps a user; equal users have equal words, others not."""
    if user is None:
        return ""
    if isinstance(user, str):
        return "s" + user
    if isinstance(user, bytes):
        return "b" + user.hex()
    if isinstance(user, tuple):
        return json.dumps([named(part) for part in user])
    try:
        return f"i{int(user.__index__())}"  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        kinds = "None, a str, bytes, a whole number or a tuple of these"
        raise TypeError(f"`user` of a ledger must be {kinds}, got {type(user).__name__}") from None
