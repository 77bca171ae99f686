"""Where a budget keeps its accounts: in this process, or in an SQLite file that outlives it.

A transaction reads an account, decides, and writes it. In a file it takes the write lock first and ends with a commit
that is on disk, so that processes, threads and forks never decide on the same remainder, and a spend that was accepted
is there after a crash.

The file alone is the ledger: SQLite keeps a rollback journal, so that every accepted spend is in the file itself and a
copy of it has them all. (A write-ahead log would hold the last ones in a second file, which copies leave behind.) The
journal beside it is of use only to the next opening, after a process that was killed within a spend.
"""

import json
import os
import pathlib
import pickle
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from quincunx.privacy._composition import NUMERICS
from quincunx.privacy._filters import Account

APPLICATION = 0x51585042  # "QXPB"
FORMAT = 1
T = TypeVar("T")
PATIENCE = 0.05  # seconds between attempts to get the lock: in between, signals are handled

#: Where Linux lists the kind of each file system.
MOUNTS = "/proc/self/mountinfo"
#: Kinds whose files other hosts may write; beside these every kind that a program serves ("fuse").
SHARED = frozenset(
    "9p afs beegfs ceph cifs coda davfs drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs prl_fs pvfs2 "
    "smb2 smb3 smbfs vboxsf virtiofs".split()
)

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


class MemoryLedger:
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


class FileLedger:
    """Accounts in an SQLite file."""

    def __init__(self, path: str, limits: dict[str, object] | None, timeout: float, allow_network: bool) -> None:
        self.path, self.timeout, self.allow_network = os.path.abspath(path), timeout, allow_network
        kind = kind_of_file_system(self.path)
        if not allow_network and (kind in SHARED or re.fullmatch(r"fuse(?!\.fuse-overlayfs$)(\..*)?", kind)):
            raise OSError(
                f"{self.path} is on a file system of kind {kind}, where the locks of two hosts may not hold and both "
                "would spend the same remainder: keep the ledger on a disk of one host, or say `allow_network=True` "
                "if no two hosts use it at a time"
            )
        self._local = threading.local()
        self._place: tuple[int, int] | None = None  # device and inode of the file that was opened
        self._last = 0  # number of the last spend through this handle
        if limits is not None and not os.path.lexists(self.path):
            self._create(limits)
        elif not os.path.exists(self.path):
            raise FileNotFoundError(f"there is no ledger {self.path}; a new one needs `epsilon`")
        if not os.path.isfile(self.path):
            raise ValueError(f"{self.path}: it is not a file, so it cannot keep a ledger")
        with self._transaction() as connection:
            self.limits = self._limits(connection)

    def _create(self, limits: dict[str, object]) -> None:
        """Make a ledger in its place, whole or not at all, unless another process was faster."""
        for left in (self.path + "-journal", self.path + "-wal"):
            if os.path.exists(left) and _has_content(left):
                raise FileExistsError(f"{left} is left of a ledger that is gone: put that back, or remove the rest")
        folder, name = os.path.split(self.path)
        handle, draft = tempfile.mkstemp(prefix=f".{name}-", dir=folder)  # readable by its owner only
        os.close(handle)
        try:
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode=OFF").fetchall()
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("BEGIN")
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO limits VALUES (?)", (json.dumps(limits),))
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
                connection.execute("COMMIT")
            finally:
                connection.close()
            os.link(draft, self.path)  # fails where there is a file
        except FileExistsError:
            pass
        except (sqlite3.OperationalError, OSError) as reason:
            raise OSError(f"the ledger {self.path} cannot be made: {reason}") from reason
        finally:
            os.unlink(draft)
        _flush_folder(folder)

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection: SQLite forbids to carry one through a fork."""
        if getattr(self._local, "process", None) != os.getpid():
            self._refuse_replaced()
            connection = self._patiently(self._connect)
            self._local.connection, self._local.process = connection, os.getpid()
            self._local.keeper = _Keeper(connection)
            if self._place is None:
                self._place = self._found()
        return self._local.connection  # type: ignore[no-any-return]

    def _connect(self) -> sqlite3.Connection:
        """Return a connection to a ledger, whose file has no write-ahead log from now on."""
        # Closed by whichever thread collects it, hence no check of threads; none is used by two.
        connection = sqlite3.connect(
            pathlib.Path(self.path).as_uri() + "?mode=rw",
            uri=True,
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            found = tuple(
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            )
            if found != (APPLICATION, FORMAT):
                empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
                more = ", which is empty, as are some copies of ledgers that are open" if empty else ""
                raise ValueError(
                    f"`path` must be a ledger of format {FORMAT} written by quincunx, got {self.path}{more}"
                )
            # The journal stays, with its head zeroed and flushed: an unlinked one might come back after a power cut.
            mode = connection.execute("PRAGMA journal_mode=PERSIST").fetchone()[0]
            if mode != "persist":
                raise OSError(f"the ledger {self.path} keeps a journal of kind {mode!r}, so that copies forget spends")
            # Each commit flushes the journal's pages, then their number, then the file, then the zeroed head, and none
            # can go: the pages before the file is touched, to undo it; the number by itself, since of pages half
            # written the rest may be older ones, which the sampled checksum may pass; the file before the head, or
            # nothing could undo what is half written; the head, or the next opening undoes what was accepted.
            connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()  # a lock of its own would block others
            raise
        return connection

    def _found(self) -> tuple[int, int] | None:
        """Return which file is at the path now."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _refuse_replaced(self) -> None:
        """Refuse to go on where the path leads to another file than the one that is open, or to none."""
        if self._place is not None and self._found() != self._place:
            raise FileNotFoundError(
                f"the ledger that was opened at {self.path} is gone, deleted or replaced: not released; "
                "`Budget.open` opens what is there now"
            )

    def _patiently(self, work: Callable[[], T]) -> T:
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
                self._refuse_replaced()
                yield connection
                self._patiently(lambda: connection.execute("COMMIT"))
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._refuse_replaced()  # what was written to a file that is gone is not released
        except sqlite3.OperationalError as reason:
            self._refuse_replaced()
            raise OSError(f"the ledger {self.path}: {reason}") from reason
        except sqlite3.DatabaseError as reason:
            raise ValueError(f"`path` must be a ledger written by quincunx, got {self.path}: {reason}") from reason

    def _limits(self, connection: sqlite3.Connection) -> dict[str, object]:
        """Return the limits of a ledger that is whole: a copy that was made within a spend may not be."""
        flaw = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        text = connection.execute("SELECT text FROM limits").fetchone()
        try:
            if flaw != "ok":
                raise ValueError(flaw)
            stored: dict[str, object] = json.loads(text[0])
        except (TypeError, ValueError) as reason:
            raise ValueError(f"`path` must be a ledger written by quincunx, got {self.path}: {reason}") from reason
        return stored

    def change(self, user: Hashable, note: Callable[[], str], decide: Callable[[Account], Account]) -> Account:
        """Put what `decide` makes of an account in its place, on disk; if it raises, nothing changes."""
        key = named(user)
        with self._transaction() as connection:
            account = decide(self._account(connection, key))
            connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", (key, json.dumps(vars(account))))
            row = (key, time.time(), note())
            number = connection.execute("INSERT INTO spends (user, seconds, text) VALUES (?, ?, ?)", row).lastrowid
            assert number is not None
            if number <= self._last:
                raise OSError(
                    f"the ledger {self.path} has forgotten spends that were counted, as an older copy put in its place "
                    "would: not released"
                )
        self._last = max(self._last, number)  # of two threads one may put back the other's: it is less strict then
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


def kind_of_file_system(path: str) -> str:
    """Return what Linux calls the file system of a path, as in "ext4" or "nfs4"; no words where it says nothing."""
    real, best, kind = os.path.join(os.path.realpath(path), ""), "", ""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
                point = os.path.join(point, "")
                if real.startswith(point) and len(point) >= len(best):  # of two at one place the later one
                    best, kind = point, after.split(" ")[0]
    except OSError:
        pass
    return kind


def _has_content(path: str) -> bool:
    """Say whether a journal is more than an empty file or a zeroed head."""
    with open(path, "rb") as file:
        return any(file.read(28))


def _flush_folder(path: str) -> None:
    """Have the names in a folder on disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
        if not user.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in user):
            raise ValueError(f"`user` must be words that a file can hold, got {user!r}")
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
