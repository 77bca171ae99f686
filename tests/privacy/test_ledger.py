"""Budgets in a file: shared by processes and forks, killed at any moment, never over the limit, nothing lost."""

import json
import os
import pickle
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest

from quincunx.cli import main
from quincunx.privacy import AddRemove, Budget, BudgetExceeded, DataMetric, GaussianMechanism, PrivacyGuarantee
from quincunx.privacy._filters import Filter

HUNDREDTH = PrivacyGuarantee(0.01)


SPENDER = """
import sys
from quincunx.privacy import Budget, BudgetExceeded, PrivacyGuarantee
budget = Budget.open(sys.argv[1], timeout=300.0)
part = PrivacyGuarantee(float(sys.argv[3]))
for i in range(int(sys.argv[2])):
    try:
        budget.spend(part, user=i % 2)
        sys.stdout.write("a")
    except BudgetExceeded:
        sys.stdout.write("r")
    sys.stdout.flush()
print("e")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.budget"


def test_accounts_outlive_the_budget(path):
    budget = Budget.open(path, 1.0, 1e-6, relation=AddRemove())
    budget.spend(PrivacyGuarantee(0.25, 1e-7, relation=AddRemove()), user="ada")
    again = Budget.open(path)
    assert (again.epsilon, again.delta, again.relation, again.filter) == (1.0, 1e-6, AddRemove(), "sum")
    assert again.spent("ada") == budget.spent("ada")
    assert (again.spent("ada").epsilon, again.spent("ada").delta) == (0.25, pytest.approx(1e-7))
    with pytest.raises(BudgetExceeded):
        again.spend(PrivacyGuarantee(0.8, relation=AddRemove()), user="ada")
    assert again.accounts()[0]["spends"] == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert repr(again).endswith(f"path={str(path)!r})")
    for relation in (DataMetric("l1", 3), DataMetric("l2", 0.5)):
        other = path.with_name(str(relation.radius))
        Budget.open(other, 1.0, relation=relation)
        assert Budget.open(other).relation == relation


def test_limits_of_an_old_ledger_are_not_changed(path):
    Budget.open(path, 1.0, 1e-6, filter="gaussian", failure=1e-7)
    Budget.open(path, 1.0, 1e-6, filter="gaussian", failure=1e-7).spend(GaussianMechanism(0.5, 1e-7, sensitivity=1))
    others = {"epsilon": 2.0, "delta": 1e-5, "filter": "zcdp", "failure": 2e-7, "relation": AddRemove()}
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"`{name}` must be that of the ledger"):
            Budget.open(path, **{name: other})
    with pytest.raises(FileNotFoundError, match="needs `epsilon`"):
        Budget.open(path.with_suffix(".absent"))


def test_a_budget_with_a_file_is_pickled_and_shared(path):
    budget = Budget.open(path, 1.0)
    twin = pickle.loads(pickle.dumps(budget))
    budget.spend(PrivacyGuarantee(0.75))
    with pytest.raises(BudgetExceeded):
        twin.spend(PrivacyGuarantee(0.75))


def test_users_are_told_apart_by_kind(path):
    budget = Budget.open(path, 1.0)
    users = [None, "", "1", 1, b"1", ("1",), (1,), ((1, "x"), None), "s1", "i1"]
    for user in users:
        budget.spend(PrivacyGuarantee(1.0), user=user)
    assert len(budget.accounts()) == len(users)
    for bad in (1.5, float("nan"), object(), (1, float("nan")), frozenset()):
        with pytest.raises(TypeError, match="`user`"):
            budget.spend(PrivacyGuarantee(0.1), user=bad)
    with pytest.raises(BudgetExceeded):
        budget.spend(PrivacyGuarantee(0.5), user=True)  # equal to 1


def test_what_is_no_ledger_is_refused(path, tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE limits (text TEXT)")
    connection.close()
    text = tmp_path / "text.budget"
    text.write_text("epsilon = 1\n" * 100)
    logged = tmp_path / "logged.db"
    with sqlite3.connect(logged) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE limits (text TEXT)")
    connection.close()
    empty = tmp_path / "empty.budget"
    empty.touch()
    for file in (other, text, logged, empty):
        before = file.read_bytes()
        for limit in (None, 1.0):
            with pytest.raises(ValueError, match="`path` must be a ledger"):
                Budget.open(file, limit)
        assert file.read_bytes() == before
    with pytest.raises(OSError, match="absent"):
        Budget.open(tmp_path / "absent" / "x", 1.0)


@pytest.mark.parametrize(
    "forged",
    [
        {"epsilon": -5},
        {"epsilon": 0.5},
        {"spends": "1"},
        {"numerics": "best"},
        {"delta": -1},
        {"unknown": 1},
        {"cost": True},
        {"epsilon": None},
    ],
    ids=str,
)
def test_forged_accounts_are_refused(path, forged):
    budget = Budget.open(path, 1.0)
    budget.spend(HUNDREDTH)
    with sqlite3.connect(path) as connection:
        stored = json.loads(connection.execute("SELECT text FROM accounts").fetchone()[0])
        connection.execute("UPDATE accounts SET text = ?", (json.dumps(stored | forged),))
    connection.close()
    with pytest.raises(ValueError, match="`path` must be a ledger"):
        budget.spend(HUNDREDTH)


def test_nothing_is_written_where_a_spend_is_refused_or_breaks(path, monkeypatch):
    budget = Budget.open(path, 1.0)
    budget.spend(PrivacyGuarantee(0.5))
    with pytest.raises(BudgetExceeded):
        budget.spend(PrivacyGuarantee(0.75))
    monkeypatch.setattr("quincunx.privacy._book.json.dumps", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        budget.spend(PrivacyGuarantee(0.25))
    monkeypatch.undo()
    assert budget.accounts()[0]["spends"] == 1
    assert budget.spent().epsilon == 0.5
    budget.spend(PrivacyGuarantee(0.5))


def test_a_locked_file_is_waited_for_and_not_for_ever(path):
    budget = Budget.open(path, 1.0, timeout=0.2)
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError, match=r"locked for 0.2 seconds"):
        budget.spend(HUNDREDTH)
    threading.Timer(0.05, lambda: holder.execute("ROLLBACK")).start()
    budget.spend(HUNDREDTH)
    holder.close()


def test_a_spend_is_on_disk_before_it_is_accepted(path):
    budget = Budget.open(path, 1.0)
    assert budget._ledger._connection().execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL: a commit is flushed
    budget.spend(HUNDREDTH)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM spends").fetchone()[0] == 1
    other.close()


def copied(path, number):
    """Copy the file of a ledger and nothing else."""
    copy = path.with_name(f"copy{number}")
    shutil.copyfile(path, copy)
    return copy


def test_a_copy_of_the_file_alone_knows_every_spend(path):
    budget = Budget.open(path, 1.0)
    spent = 0
    for size in (1, 7, 40, 80):  # beyond a page, and several
        for _ in range(size):
            budget.spend(PrivacyGuarantee(1 / 256), user=spent % 3)
            spent += 1
        copy = Budget.open(copied(path, spent), 1.0)
        assert copy.accounts() == budget.accounts()
        assert sum(row["spends"] for row in copy.accounts()) == spent


def test_a_copy_after_a_kill_knows_every_accepted_spend(path):
    Budget.open(path, 1.0)
    rng = random.Random(3)
    accepted = 0
    for run in range(3):
        command = [sys.executable, "-c", SPENDER, str(path), "100000", "1e-9"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(rng.randrange(1, 30)):
                process.stdout.read(1)
                accepted += 1
            process.kill()
            accepted += len(process.stdout.read())
        try:
            copy = Budget.open(copied(path, run))
        except ValueError:  # killed while it wrote the file
            pass
        else:
            assert sum(row["spends"] for row in copy.accounts()) >= accepted
        assert sum(row["spends"] for row in Budget.open(path).accounts()) >= accepted


@pytest.mark.slow
def test_a_thousand_spends_are_in_a_copy_after_a_kill(path):
    Budget.open(path, 1.0)
    command = [sys.executable, "-c", SPENDER + "sys.stdin.read()", str(path), "1000", "1e-9"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "a" * 1000 + "e\n"
        process.kill()
    assert sum(row["spends"] for row in Budget.open(copied(path, 0)).accounts()) == 1000


#: What versions before wrote: a log beside the file, which the last to close it clears; this one never does.
LOGGER = """
import json, os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
assert connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal"
for line in sys.argv[2:]:
    connection.execute(line)
os._exit(0)
"""


def test_a_ledger_with_a_write_ahead_log_is_converted(path):
    Budget.open(path, 1.0).spend(PrivacyGuarantee(0.25), user="ada")
    with sqlite3.connect(path) as connection:
        account = connection.execute("SELECT text FROM accounts").fetchone()[0]
    connection.close()
    change = f"INSERT INTO accounts VALUES ('sgrace', '{account}')"
    subprocess.run([sys.executable, "-c", LOGGER, str(path), change], check=True)
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size
    assert path.read_bytes()[18:20] == b"\2\2"
    budgets = [None] * 4

    def opened(number):
        budgets[number] = Budget.open(path)

    threads = [threading.Thread(target=opened, args=(number,)) for number in range(len(budgets))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert path.read_bytes()[18:20] == b"\1\1"
    assert not (log.exists() and log.stat().st_size)  # the file alone says all; of four that close one may leave a name
    for budget in budgets:
        budget.spend(PrivacyGuarantee(0.125), user="grace")
    assert Budget.open(copied(path, 0)).remaining("grace") == 0.25


def test_a_copy_without_its_log_is_not_taken_for_an_empty_file(path):
    statements = ["CREATE TABLE limits (text TEXT NOT NULL)", "INSERT INTO limits VALUES ('{}')"]
    subprocess.run([sys.executable, "-c", LOGGER, str(path), *statements], check=True)
    copy = copied(path, 0)
    with pytest.raises(ValueError, match="which is empty, as are some copies of ledgers"):
        Budget.open(copy, 1.0)
    assert copy.read_bytes() == path.read_bytes()


def test_a_damaged_ledger_is_refused(path):
    budget = Budget.open(path, 1.0)
    for user in range(60):  # several pages
        budget.spend(HUNDREDTH, user=user)
    content = path.read_bytes()
    size = 4096
    refused = 0
    for page in range(1, len(content) // size):
        torn = path.with_name("torn")
        torn.write_bytes(content[: page * size] + bytes(size) + content[(page + 1) * size :])
        with pytest.raises(ValueError, match="`path` must be a ledger"):
            Budget.open(torn)
        refused += 1
    assert refused > 5


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere"))


def made_anew(path):
    path.unlink()
    Budget.open(path, 1.0)


def replaced_by_a_copy(path):
    os.replace(copied(path, 0), path)


def linked_elsewhere(path):
    made = path.with_name("another")
    Budget.open(made, 1.0)
    path.unlink()
    path.symlink_to(made)


@pytest.mark.parametrize("change", [deleted, moved, made_anew, replaced_by_a_copy, linked_elsewhere])
@pytest.mark.parametrize("where", ["here", "in a thread", "in a child", "at the commit"])
def test_a_file_that_was_deleted_or_replaced_is_noticed_before_the_next_spend(path, change, where, monkeypatch):
    budget = Budget.open(path, 1.0)
    budget.spend(PrivacyGuarantee(0.75))
    words = []

    def spend():
        for work in (lambda: budget.spend(PrivacyGuarantee(0.125)), budget.remaining, budget.accounts):
            with pytest.raises(FileNotFoundError, match="is gone, deleted or replaced"):
                work()
            words.append("refused")

    if where == "at the commit":  # after the first look, in the middle of a spend
        decide = Filter.after

        def meanwhile(*arguments):
            change(path)
            return decide(*arguments)

        monkeypatch.setattr(Filter, "after", meanwhile)
        with pytest.raises(FileNotFoundError, match="is gone, deleted or replaced"):
            budget.spend(PrivacyGuarantee(0.125))
        monkeypatch.undo()
        spend()
    elif where == "here":
        change(path)
        spend()
    elif where == "in a thread":
        change(path)
        thread = threading.Thread(target=spend)
        thread.start()
        thread.join()
    else:
        change(path)
        child = os.fork()
        if child == 0:
            try:
                spend()
            finally:
                os._exit(0 if len(words) == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        words = ["refused"] * 3
    assert words == ["refused"] * 3
    if path.exists():  # what is there now lost nothing to the old handle
        assert Budget.open(path).remaining() in (0.25, 1.0)
        Budget.open(path).spend(PrivacyGuarantee(0.125))


def test_an_older_copy_in_place_of_a_ledger_is_noticed(path):
    budget = Budget.open(path, 1.0)
    budget.spend(PrivacyGuarantee(0.25))
    copy = copied(path, 0)
    budget.spend(PrivacyGuarantee(0.5))
    shutil.copyfile(copy, path)  # the same inode
    with pytest.raises(OSError, match="has forgotten spends"):
        budget.spend(PrivacyGuarantee(0.5))
    assert Budget.open(path).remaining() == 0.75


def test_a_ledger_is_made_whole_or_not_at_all(path, monkeypatch):
    for left in ("-journal", "-wal"):
        beside = path.with_name(path.name + left)
        beside.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(20))
        with pytest.raises(FileExistsError, match="put that back"):
            Budget.open(path, 1.0)
        beside.unlink()
    monkeypatch.setattr(os, "link", lambda *names: (_ for _ in ()).throw(PermissionError(1, "no links here")))
    with pytest.raises(OSError, match=r"cannot be made: .*no links here"):
        Budget.open(path, 1.0)
    monkeypatch.undo()
    assert os.listdir(path.parent) == []
    Budget.open(path, 1.0)
    assert os.listdir(path.parent) == [path.name]


KINDS = {
    "nfs": True, "nfs4": True, "cifs": True, "smb3": True, "9p": True, "fuse.sshfs": True, "fuse.rclone": True,
    "fuse": True, "virtiofs": True, "ext4": False, "xfs": False, "btrfs": False, "tmpfs": False, "overlay": False,
    "zfs": False, "fuseblk": False, "fuse.fuse-overlayfs": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [*((kind, "share") for kind in KINDS), ("nfs", "my share"), ("cifs", "share\\"), ("ext4", "a\tb")]
)
def test_a_network_file_system_is_refused_or_allowed_by_name(tmp_path, monkeypatch, kind, name):
    folder = tmp_path / name
    (folder / "deep").mkdir(parents=True)
    point = str(folder).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {point} rw,relatime shared:7 - autofs host rw\n"
        f"3 1 0:10 / {point} rw,relatime shared:7 - {kind} host:/share rw\n4 1 0:11 / {point}/dee rw - ext4 x rw\n"
    )
    monkeypatch.setattr("quincunx.privacy._ledger.MOUNTS", str(mounts))
    place = folder / "deep" / "study.budget"
    link = tmp_path / "link.budget"
    link.symlink_to(place)
    if KINDS[kind]:
        with pytest.raises(OSError, match=f"file system of kind {kind}, .*allow_network=True"):
            Budget.open(place, 1.0)
        assert not place.exists()
    budget = Budget.open(place, 1.0, allow_network=KINDS[kind])
    pickle.loads(pickle.dumps(budget)).spend(HUNDREDTH)
    if KINDS[kind]:
        with pytest.raises(OSError, match="file system of kind"):
            Budget.open(link)
    Budget.open(tmp_path / "local.budget", 1.0)
    if KINDS[kind]:
        assert main(["budget", "spend", str(place), "--epsilon", "0.25"]) == 2
        assert main(["budget", "spend", str(place), "--epsilon", "0.25", "--allow-network"]) == 0
        assert main(["budget", "show", str(place), "--allow-network"]) == 0
        assert main(["budget", "open", str(place), "--epsilon", "1", "--allow-network"]) == 0
    with pytest.raises(TypeError, match="`allow_network` must be True or False"):
        Budget.open(place, allow_network="yes")


def check_kills(path, processes, spends, kills, seed):
    """Each account has room for fewer spends than are tried; some processes are killed on the way."""
    room = processes * spends // 4  # for each of two accounts, of processes * spends / 2 tried
    part = 1 / room
    Budget.open(path, 1.0)
    rng = random.Random(seed)
    command = [sys.executable, "-c", SPENDER, str(path), str(spends), repr(part)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(processes)]
    victims = rng.sample(running, kills)
    while Budget.open(path).spent(0) is None:  # they are at it
        time.sleep(0.01)
    for victim in victims:
        time.sleep(rng.random() * 0.3)
        victim.send_signal(signal.SIGKILL)
    said = [process.communicate(timeout=600)[0] for process in running]
    accepted = sum(words.count("a") for words in said)
    budget = Budget.open(path)
    counted = sum(row["spends"] for row in budget.accounts())
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT count(*) FROM spends").fetchone()[0]
    connection.close()
    print(f"{processes} x {spends}, {kills} killed: {accepted} told as accepted, {counted} counted, room {2 * room}")
    assert accepted <= counted == rows <= accepted + kills  # one on its way in each that was killed
    for account in (0, 1):
        assert budget.spent(account).epsilon <= 1 + 1e-12
    assert all(words.endswith("e\n") for words, process in zip(said, running, strict=True) if process not in victims)
    return counted, room


def test_killed_processes_neither_overspend_nor_lose_what_was_accepted(path):
    check_kills(path, 3, 40, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_eight_processes_killed_at_random(path, seed):
    counted, room = check_kills(path, 8, 200, 4, seed)
    print(counted, room)


def test_forks_and_threads_share_one_remainder(path, output):
    assert (
        output(
            """
import os, sys, threading
from quincunx.privacy import Budget, BudgetExceeded, PrivacyGuarantee
budget = Budget.open(sys.argv[1], 1.0, timeout=300.0)
budget.spend(PrivacyGuarantee(0.01))
def work():
    for _ in range(20):
        try:
            budget.spend(PrivacyGuarantee(0.0625))
        except BudgetExceeded:
            pass
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    children.append(child)
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print(budget.spent().epsilon)
""",
            str(path),
        ).strip()
        == "0.9475"
    )  # .01 and 15 sixteenths, whoever spent them


def test_the_command_line_opens_spends_and_shows(path, capsys):
    assert main(["budget", "open", str(path), "--epsilon", "1", "--delta", "1e-6"]) == 0
    assert main(["budget", "spend", str(path), "--epsilon", "0.75", "--user", "ada"]) == 0
    assert capsys.readouterr().out.endswith("remaining  0.25\n")
    assert main(["budget", "spend", str(path), "--epsilon", "0.5", "--user", "ada"]) == 3
    assert "epsilon 1.25 of at most 1 at delta 1e-06: not released" in capsys.readouterr().err
    assert main(["budget", "spend", str(path), "--epsilon", "0.25", "--user", ""]) == 2  # "$user", not set
    assert "`--user` must not be empty" in capsys.readouterr().err
    assert main(["budget", "spend", str(path), "--epsilon", "0.25", "--delta", "1e-7"]) == 0
    capsys.readouterr()
    assert main(["budget", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "ada: 1 spends, epsilon 0.75, delta 0, remaining 0.25" in shown
    assert "(all): 1 spends, epsilon 0.25, delta 1e-07, remaining 0.75" in shown
    assert main(["budget", "show", str(path), "--user", "ada", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["accounts"] == [{"user": "ada", "spends": 1, "epsilon": 0.75, "delta": 0.0, "remaining": 0.25}]
    assert main(["budget", "spend", str(path), "--epsilon", "0.8", "--user", "emmy"]) == 0
    assert main(["budget", "show", str(path), "--user", "emmy", "--json"]) == 0
    assert '"remaining": 0.2}' in capsys.readouterr().out
    assert main(["budget", "show", str(path), "--user", "grace"]) == 2
    assert main(["budget", "show", str(path) + ".absent"]) == 2


@pytest.mark.parametrize("user", ["\ud800", "ada\udfff", ("ada", "\udc80")])
def test_users_without_a_form_in_a_file_are_refused_by_name(tmp_path, user):
    budget = Budget.open(tmp_path / "ledger", 1.0)
    with pytest.raises(ValueError, match="`user` must be words that a file can hold"):
        budget.spend(PrivacyGuarantee(0.5), user=user)
    assert not budget.accounts()
