"""Budgets in a file: shared by processes and forks, killed at any moment, never over the limit, nothing lost."""

import json
import os
import pickle
import random
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

HUNDREDTH = PrivacyGuarantee(0.01)


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
    for file in (other, text):
        before = file.read_bytes()
        for limit in (None, 1.0):
            with pytest.raises(ValueError, match="`path` must be a ledger"):
                Budget.open(file, limit)
        if file is text:
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
    monkeypatch.setattr("quincunx.privacy._budget._words", lambda guarantee: 1 / 0)
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
    assert budget._books._connection().execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL: a commit is flushed
    budget.spend(HUNDREDTH)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM spends").fetchone()[0] == 1
    other.close()


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
    assert main(["budget", "spend", str(path), "--epsilon", "0.25", "--delta", "1e-7"]) == 0
    capsys.readouterr()
    assert main(["budget", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "ada: 1 spends, epsilon 0.75, delta 0, remaining 0.25" in shown
    assert "(all): 1 spends, epsilon 0.25, delta 1e-07, remaining 0.75" in shown
    assert main(["budget", "show", str(path), "--user", "ada", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["accounts"] == [{"user": "ada", "spends": 1, "epsilon": 0.75, "delta": 0.0, "remaining": 0.25}]
    assert main(["budget", "show", str(path), "--user", "grace"]) == 2
    assert main(["budget", "show", str(path) + ".absent"]) == 2
