"""Long jobs in folders: what stops them, what goes on, and what is said of them."""

import contextlib
import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import quincunx
from quincunx import _executors, _job_checks, _job_folder, cli, lattices
from quincunx.counting import count_independent_sets, count_spanning_trees, independence_polynomial
from quincunx.counting._records import records
from quincunx.factorization import PoissonFactorization
from quincunx.privacy import privatize

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and processes as on Unix")

LONG = ["count", "independent-sets", "square", "22x1000", "--threads", "1", "--checkpoint-interval", "0.02"]
SMALL = ["count", "independent-sets", "square", "8x8"]


@pytest.fixture(scope="module")
def long_count():
    """The count of `LONG` without a stop: a job of seconds, so that even a busy machine sees its checkpoints."""
    return count_independent_sets(lattices.square(22, 1000))


@pytest.fixture
def job(python):
    """Return a function that starts `quincunx job ...` as a program of its own."""
    return lambda *words, **how: python(None, "-m", "quincunx", "job", *map(str, words), **how)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "job"


def written(folder):
    """When the checkpoint of a job was written that holds something, in nanoseconds, or 0."""
    state = folder / "state.ckpt"
    return state.stat().st_mtime_ns if state.exists() and state.stat().st_size > 100 else 0


def saved(folder, process, before=0):
    """Wait until a process has written a checkpoint of a job, after the one that was there `before`."""
    until = time.monotonic() + 60
    while written(folder) <= before:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


def events(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


# From the start to the result.


def test_a_job_prints_its_forecast_and_then_what_its_command_prints(run, folder):
    status, out, err = run("job", "start", *SMALL, "--dir", folder)
    assert (status, out) == (0, "660647962955\n")
    assert err.startswith("quincunx: forecast: ")
    assert sorted(os.listdir(folder)) == ["job.json", "log.jsonl", "result.json"]
    facts = json.loads((folder / "job.json").read_text())
    assert facts["command"] == ["job", "start", *SMALL, "--dir", str(folder)]
    assert facts["quincunx"] == quincunx.__version__
    assert facts["forecast"]["primes"] >= 2
    result = json.loads((folder / "result.json").read_text())
    assert result["value"]["count"] == "660647962955"
    assert result["cpu_seconds"] > 0
    assert result["bytes"] > 1 << 20
    assert [entry["event"] for entry in events(folder)] == ["start", "done"]
    assert events(folder)[0]["pid"] == os.getpid()
    assert run("job", "result", folder) == (0, "660647962955\n", "")
    assert json.loads(run("job", "result", folder, "--json")[1]) == result
    assert run("job", "resume", folder) == (0, "660647962955\n", "")
    assert len(events(folder)) == 2  # nothing was done again


def test_every_verb_with_a_checkpoint_is_a_job():
    kept = {name for name, verb in cli.VERBS.items() if "checkpoint" in verb.parameters and "job" not in name}
    assert kept == set(cli.JOBS)
    for name in cli.JOBS:
        assert "json" in signature(cli.VERBS[name].function).parameters


def test_a_polynomial_an_entropy_and_a_graph_are_jobs_too(run, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n1,2\n2,0\n2,3\n")
    trees = ["count", "spanning-trees", "--edges", edges]
    assert run("job", "start", *trees, "--dir", tmp_path / "trees")[:2] == (0, "3\n")
    expected = "".join(f"{number}\n" for number in independence_polynomial(lattices.king(4, 4)))
    polynomial = ["count", "independent-sets", "king", "4x4", "--polynomial"]
    assert run("job", "start", *polynomial, "--dir", tmp_path / "polynomial")[:2] == (0, expected)
    status, out, _ = run("job", "start", "entropy", "square", "--digits", "4", "--dir", tmp_path / "entropy")
    assert status == 0
    lower, upper = (float(line.split()[-1]) for line in out.splitlines() if line.startswith(("entropy l", "entropy u")))
    assert lower <= 0.407495101260688 <= upper < lower + 1e-4
    assert run("job", "list", tmp_path)[1].split() == ["entropy", "done", "polynomial", "done", "trees", "done"]


# Stops.


def test_signals_save_and_end_with_status_75_and_an_interrupt_with_130(job, folder, long_count):
    words, before = ["start", *LONG, "--dir", folder], 0
    for name, status, reason in [
        ("SIGTERM", 75, "SIGTERM"),
        ("SIGUSR1", 75, "SIGUSR1"),
        ("SIGINT", 130, "KeyboardInterrupt"),
    ]:
        process = job(*words)
        saved(folder, process, before)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (status, "")
        if status == 75:
            assert f"{name}: what is finished is saved" in err
        else:
            assert err.endswith("quincunx: interrupted\n")
        assert (events(folder)[-1]["event"], events(folder)[-1]["reason"]) == ("stop", reason)
        words, before = ["resume", folder], written(folder)
    process = job(*words)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, f"{long_count}\n", "")
    assert json.loads((folder / "result.json").read_text())["starts"] == 4
    assert not (folder / "state.ckpt").exists()


def test_a_job_killed_again_and_again_has_the_same_result(run, job, folder, long_count):
    moments, words = random.Random(5), ["start", *LONG, "--dir", folder]
    for _ in range(3):
        before = written(folder)
        process = job(*words)
        saved(folder, process, before)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        status = json.loads(run("job", "status", folder, "--json")[1])
        assert (status["state"], status["alive"]) == ("killed", False)
        words = ["resume", folder]
    assert job(*words).communicate(timeout=120)[0] == f"{long_count}\n"
    assert [entry["event"] for entry in events(folder) if entry["event"] != "step"] == [*["start"] * 4, "done"]


def test_a_job_is_seen_and_stopped_from_another_terminal(run, job, folder):
    process = job("start", *LONG, "--dir", folder)
    saved(folder, process)
    status = json.loads(run("job", "status", folder, "--json")[1])
    assert (status["state"], status["alive"], status["pid"]) == ("running", True, process.pid)
    assert status["host"] == socket.gethostname()
    assert status["last_checkpoint"] is not None
    assert "running" in run("job", "list", folder.parent)[1]
    assert run("job", "stop", folder) == (0, "stopped\n", "")
    process.communicate(timeout=60)
    assert process.returncode == 75
    status, out, err = run("job", "stop", folder)
    assert (status, out) == (2, "")
    assert "must hold a job that runs, got one that is stopped" in err
    assert run("job", "result", folder)[0] == 2
    assert "that is stopped" in run("job", "result", folder)[2]


def test_two_starts_at_once_are_one_job(job, run, folder):
    first = job("start", *LONG, "--dir", folder)
    saved(folder, first)
    for words in (["start", *SMALL, "--dir", folder], ["resume", folder]):
        status, out, err = run("job", *words)
        assert (status, out) == (2, "")
        assert f"is in use by process {first.pid}" in err
    first.kill()
    first.communicate(timeout=60)
    several = [job("start", *SMALL, "--dir", folder.parent / "other") for _ in range(4)]
    ends = [(process.communicate(timeout=60)[0], process.returncode) for process in several]
    assert sorted(ends, key=lambda end: end[1]) == [("660647962955\n", 0), *[("", 2)] * 3]


def test_steps_are_logged_with_their_time_and_memory(job, folder, run):
    words = ["count", "independent-sets", "square", "22x1500", "--threads", "1"]
    process = job("start", *words, "--dir", folder)
    until = time.monotonic() + 120
    while (
        not folder.exists()
        or sum(entry["event"] == "step" for part in _job_folder.Folder(folder).runs() for entry in part) < 2
    ):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    told = json.loads(run("job", "status", folder, "--json")[1])
    assert 0 < told["done"] < told["total"]
    assert told["left_seconds"] > 0
    assert "at the rate of this start" in run("job", "status", folder)[1]
    process.terminate()
    process.communicate(timeout=60)
    steps = [entry for entry in events(folder) if entry["event"] == "step"]
    assert all(entry["seconds"] >= 1 and entry["bytes"] > 1 << 20 and entry["cpu"] > 0 for entry in steps)
    assert all(before["done"] < after["done"] for before, after in itertools.pairwise(steps))


# What is refused, and how.


def test_a_folder_has_one_job(run, folder):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    before = (folder / "result.json").read_bytes()
    status, out, err = run("job", "start", *SMALL, "--dir", folder)
    assert (status, out) == (2, "")
    assert f"`quincunx job resume {folder}` goes on with the one there" in err
    assert (folder / "result.json").read_bytes() == before


@pytest.mark.parametrize("left", ["result.json", "state.ckpt", "log.jsonl", "model.npz"])
def test_what_is_left_of_another_job_is_no_part_of_a_new_one(run, folder, left):
    """Such as its result, which would be printed as that of the new one."""
    folder.mkdir()
    (folder / left).write_text("")
    status, out, err = run("job", "start", *SMALL, "--dir", folder)
    assert (status, out) == (2, "")
    assert f"`--dir` must hold nothing of another job, got {left}" in err
    assert not (folder / "job.json").exists()


def test_changed_input_is_refused(run, tmp_path, folder):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n1,2\n")
    assert run("job", "start", "count", "matchings", "--edges", edges, "--dir", folder)[0] == 0
    (folder / "result.json").unlink()
    edges.write_text("0,1\n1,2\n2,3\n")
    status, out, err = run("job", "resume", folder)
    assert (status, out) == (2, "")
    assert f"whose input is as it was: {edges} has changed" in err
    edges.write_text("0,1\n1,2\n")
    assert run("job", "resume", folder)[:2] == (0, "3\n")
    edges.unlink()  # what is done needs no input
    assert run("job", "resume", folder) == (0, "3\n", "")
    assert run("job", "verify", folder)[0] == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_no_input_of_a_job(run, tmp_path, folder):
    """It was empty once its digest was taken, so that an empty graph was counted."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    status, out, err = run("job", "start", "count", "matchings", "--edges", pipe, "--dir", folder)
    assert (status, out) == (2, "")
    assert f"`--edges` must be a file, which a job can read again when it goes on, got {pipe}" in err
    assert not folder.exists()


def test_inputs_are_found_from_anywhere(run, tmp_path, folder, monkeypatch):
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    monkeypatch.chdir(tmp_path)
    assert run("job", "start", "count", "matchings", "--edges", "edges.csv", "--dir", "job")[0] == 0
    (folder / "result.json").unlink()
    monkeypatch.chdir("/")
    assert run("job", "resume", folder)[:2] == (0, "3\n")
    # The file of a scheduler is that of the terminal which goes on.
    (folder / "result.json").unlink()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    (tmp_path / "there" / "scheduler.json").write_text("{}")
    asked = []
    monkeypatch.setattr(_executors, "dask_client", lambda where: asked.append(where) or contextlib.nullcontext())
    assert run("job", "resume", folder, "--dask", "scheduler.json")[:2] == (0, "3\n")
    assert asked == [str(tmp_path / "there" / "scheduler.json")]


def test_another_version_is_said(run, folder):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    (folder / "result.json").unlink()
    facts = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps(facts | {"quincunx": "0.0.1"}))
    status, out, err = run("job", "resume", folder)
    assert (status, out) == (0, "660647962955\n")
    assert f"begun by version 0.0.1, goes on by {quincunx.__version__}" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["start", "cuont", "independent-sets", "square", "8x8"], "did you mean 'count'?"),
        (
            ["start", "privatize", "counts.csv"],
            "invalid choice: 'privatize' (choose from 'count', 'entropy', 'factorize')",
        ),
        (["strat", *SMALL], "did you mean 'start'?"),
        (["start", *SMALL], "the following arguments are required: --dir"),
        (["start", *SMALL, "--dir", ""], "`--dir` must not be empty"),
        (["resume", ""], "`dir` must not be empty"),
        (["start", *SMALL, "--dir", "D", "--checkpoint=state"], "unrecognized arguments: --checkpoint=state"),
        (["start", "factorize", "released.npz", "--dir", "D", "--out=model.npz"], "unrecognized arguments: --out"),
        (["start", "count", "independent-sets", "squaer", "8x8", "--dir", "D"], "did you mean 'square'?"),
        (["start", "count", "independent-sets", "--edges", "-", "--dir", "D"], "can read again when it goes on, got -"),
        (["start", "count", "independent-sets", "--edges", "missing.csv", "--dir", "D"], "missing.csv"),
        (
            ["start", "count", "independent-sets", "king", "30x30", "--memory", "1M", "--dir", "D"],
            "the limit is 1048576",
        ),
        (
            ["start", *SMALL, "--notify", "'", "--dir", "D"],
            '`--notify` must be a command, got "\'": No closing quotation',
        ),
        (["status", "D"], "must hold a job, got"),
        (["resume", "D"], "must hold a job, got"),
        (["stop", "D"], "must hold a job, got"),
        (["result", "D"], "must hold a job, got"),
        (["verify", "D"], "must hold a job, got"),
        (["list", "D"], "No such file"),
    ],
)
def test_what_is_no_job_is_refused_in_one_sentence_and_leaves_nothing(run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("job", *words)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": 1, "command": [3], "inputs": {}, "quincunx": "0"}',
        '{"format": 1, "command": ["job", "start"], "inputs": {}, "quincunx": "0", "folder": "/"}',
        '{"format": 1, "command": ["job", "start"], "inputs": {}, "quincunx": "0", "forecast": null}',
        "nonsense",
        '{"command": "rm -rf"}',
    ],
)
def test_a_forged_job_is_refused(run, folder, content):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    (folder / "job.json").write_text(content)
    for words in (["status"], ["resume"], ["stop"], ["verify"]):
        status, out, err = run("job", *words, folder)
        assert (status, out) == (2, "")
        assert "`dir` must hold a job" in err
    assert "damaged" in run("job", "list", folder.parent)[1]


def test_a_job_of_another_verb_is_not_run(run, folder, tmp_path):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    facts = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(
        json.dumps(facts | {"command": ["budget", "open", str(tmp_path / "l"), "--epsilon", "1"]})
    )
    (folder / "result.json").unlink()
    status, _, err = run("job", "resume", folder)
    assert status == 2
    assert "`dir` must hold a job, got one of the command budget open" in err
    assert not (tmp_path / "l").exists()


def test_a_torn_or_forged_log_is_read_as_far_as_it_goes(run, folder):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    (folder / "result.json").unlink()
    with (folder / "log.jsonl").open("a") as log:
        log.write(
            '[]\n{"event": "start"}\n{"event": "step", "done": "x"}\n{"event": "start", "pid": -1}\n{"event": "sta'
        )
    assert run("job", "status", folder)[0] == 0
    assert run("job", "resume", folder)[:2] == (0, "660647962955\n")
    assert len(_job_folder.Folder(folder).runs()) == 2  # the line after the torn one is whole
    (folder / "result.json").unlink()
    with (folder / "log.jsonl").open("ab") as log:
        log.write(b"\xff\n")  # no text
    assert run("job", "resume", folder)[:2] == (0, "660647962955\n")
    (folder / "result.json").write_text('{"value": {}, "verified": []}')
    for verb in ("verify", "result", "resume"):
        status, _, err = run("job", verb, folder)
        assert status == 2
        assert "got a damaged" in err
    (folder.parent / "other" / "job.json").mkdir(parents=True)
    assert run("job", "list", folder.parent)[0] == 0


def test_a_result_is_kept_where_the_log_is_lost(run, folder, monkeypatch):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    (folder / "result.json").unlink()
    whole = _job_folder.Folder.log

    def lost(job, event, **facts):
        whole(job, event, **facts)
        (folder / "log.jsonl").unlink()

    monkeypatch.setattr(_job_folder.Folder, "log", lost)
    assert run("job", "resume", folder)[:2] == (0, "660647962955\n")
    assert json.loads((folder / "result.json").read_text())["value"]["count"]


@pytest.mark.skipif(_job_folder.birth_of(os.getpid()) is None, reason="the system does not tell when a process began")
def test_a_dead_process_that_nobody_waited_for_is_no_running_job(job, folder):
    process = job("start", *LONG, "--dir", folder)
    saved(folder, process)
    process.kill()
    deadline = time.monotonic() + 30
    while _job_folder.birth_of(process.pid) != 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _job_folder.Folder(folder).status().state == "killed"
    process.communicate(timeout=60)


def test_a_process_of_another_machine_is_not_judged(run, job, folder):
    process = job("start", *LONG, "--dir", folder)
    saved(folder, process)
    process.kill()
    process.communicate(timeout=60)
    log = folder / "log.jsonl"
    log.write_text(log.read_text().replace(json.dumps(socket.gethostname()), '"elsewhere"'))
    assert json.loads(run("job", "status", folder, "--json")[1])["state"] == "unknown"
    assert "got one of elsewhere: stop it there" in run("job", "stop", folder)[2]


def test_another_process_of_the_same_number_is_not_the_job(run, folder):
    """Numbers of processes come again: the time of their start tells them apart."""
    if _job_folder.birth_of(os.getpid()) is None:
        pytest.skip("the system does not say when a process was started")
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    (folder / "result.json").unlink()
    start = {"event": "start", "host": socket.gethostname(), "pid": os.getpid(), "birth": 1}
    (folder / "log.jsonl").write_text(json.dumps(start) + "\n")
    assert json.loads(run("job", "status", folder, "--json")[1])["state"] == "killed"
    assert run("job", "stop", folder)[0] == 2


def test_a_folder_that_cannot_be_made_or_written_is_said_before_the_work(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert run("job", "start", *SMALL, "--dir", tmp_path / "file" / "job")[0] == 2
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir()
        closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
        assert run("job", "start", *SMALL, "--dir", closed)[0] == 2


def test_a_full_disk_loses_no_line_that_matters(run, folder, monkeypatch):
    """A step that cannot be logged is left out; a result that cannot be written is an error."""
    log = _job_folder.Folder.log

    def full(self, event, *, strict=False, **facts):
        if strict:
            log(self, event, strict=strict, **facts)

    monkeypatch.setattr(_job_folder.Folder, "log", full)
    assert run("job", "start", *SMALL, "--dir", folder)[:2] == (0, "660647962955\n")
    monkeypatch.undo()
    write = _job_folder.Folder.write

    def refused(self, name, facts):
        if name == "result.json":
            raise OSError(28, "No space left on device")
        write(self, name, facts)

    monkeypatch.setattr(_job_folder.Folder, "write", refused)
    status, out, err = run("job", "start", *SMALL, "--dir", folder.parent / "other")
    assert (status, out) == (2, "")
    assert "No space left" in err
    assert "660647962955" in err  # nothing else has it


# Verification.


@pytest.mark.parametrize(
    "words",
    [
        ["independent-sets", "square", "6x7"],
        ["independent-sets", "square", "5x5", "--polynomial"],
        ["independent-sets", "4-8-8", "3x3", "--boundary", "torus"],
        ["spanning-trees", "king", "5x5"],
        ["perfect-matchings", "square", "6x6"],
        ["matchings", "triangular", "4x4", "--polynomial"],
    ],
    ids=" ".join,
)
def test_a_count_is_verified_in_other_ways_and_a_wrong_one_is_found_out(run, folder, words):
    assert run("job", "start", "count", *words, "--dir", folder)[0] == 0
    status, out, _ = run("job", "verify", folder)
    assert status == 0
    assert "vertices renumbered at random" in out
    assert ("a prime that had no part in it" in out) == (words[0] == "independent-sets")
    result = json.loads((folder / "result.json").read_text())
    assert set(out.splitlines()) <= set(result["verified"])
    value = result["value"]
    if "count" in value:
        value["count"] = str(int(value["count"]) + 1)
    else:
        value["coefficients"][1] = str(int(value["coefficients"][1]) + 1)
    (folder / "result.json").write_text(json.dumps(result))
    status, out, err = run("job", "verify", folder)
    assert (status, out) == (1, "")
    assert "contradicts the result" in err


def test_a_count_that_takes_no_primes_is_verified_by_none(run, folder):
    """Of 49 vertices there is no perfect matching, which no residue says."""
    assert run("job", "start", "count", "perfect-matchings", "square", "7x7", "--dir", folder)[:2] == (0, "0\n")
    assert json.loads(run("job", "result", folder, "--json")[1])["verified"] == []


def test_an_entropy_is_verified_by_another_method(run, folder):
    assert run("job", "start", "entropy", "square", "--digits", "4", "--dir", folder)[0] == 0
    status, out, _ = run("job", "verify", folder)
    assert status == 0
    assert "by strips and rings of 8 lines" in out
    result = json.loads((folder / "result.json").read_text())
    result["value"]["entropy"] |= {"lower": "0.41", "upper": "0.42"}
    (folder / "result.json").write_text(json.dumps(result))
    assert run("job", "verify", folder)[0] == 1


def test_an_entropy_by_strips_is_not_verified_by_strips(run, folder):
    """Near a transition, where corner tensors prove nothing, and the same method gave a second opinion."""
    refused = run("job", "start", "entropy", "square", "--width", "6", "--dir", folder)
    assert "unrecognized arguments: --width" in refused[2]
    assert not folder.exists()
    assert run("job", "start", "entropy", "square", "--activity", "8", "--digits", "1", "--dir", folder)[0] == 0
    status, out, err = run("job", "verify", folder)
    assert (status, out) == (2, "")
    assert "strips and rings gave the bounds themselves: corner tensors prove no spectral gap" in err


def test_an_argument_that_is_refused_at_the_start_leaves_no_job(run, folder):
    refused = run("job", "start", "entropy", "triangular", "--digits", "4", "--dir", folder)
    assert "`checkpoint` must be left out for the method 'ring'" in refused[2]
    assert list(folder.iterdir()) == []
    assert run("job", "start", "entropy", "square", "--digits", "4", "--dir", folder)[0] == 0


@pytest.mark.filterwarnings("ignore")
def test_jobs_go_on_with_or_without_dask(run, job, folder, tmp_path, long_count):
    distributed = pytest.importorskip("distributed")
    release = tmp_path / "release.npz"
    privatize(np.random.default_rng(1).poisson(2, (300, 8)), epsilon=1.0, insecure_seed=1).save(release)
    fit = ["factorize", release, "--components", "2", "--warmup", "4", "--draws", "4", "--chains", "1", "--seed", "1"]
    alone = json.loads(run(*fit, "--json")[1])
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        where = cluster.scheduler_address
        status, out, _ = run("job", "start", *SMALL, "--dask", where, "--dir", folder)
        assert (status, out) == (0, "660647962955\n")
        assert run(*fit, "--dask", where, "--json")[1] == json.dumps(alone) + "\n"
        refused = run(*fit[:2], "--inference", "vi", "--method", "bessel-mean", "--dask", where)
        assert refused[2].startswith("quincunx: `--dask` must be None but for")
        # What was begun here and stopped goes on there.
        begun = tmp_path / "begun"
        process = job("start", *LONG, "--dir", begun)
        saved(begun, process)
        process.terminate()
        assert process.wait(timeout=60) == 75
        assert run("job", "resume", begun, "--dask", where)[:2] == (
            0,
            f"{long_count}\n",
        )
    assert run("job", "resume", folder)[:2] == (0, "660647962955\n")
    status, _, err = run(*SMALL, "--dask", "no-such-file.json")
    assert status == 2
    assert "`--dask` must be the address of a scheduler that answers, or its file, got 'no-such-file.json'" in err
    entropy = tmp_path / "entropy"
    assert run("job", "start", "entropy", "square", "--digits", "4", "--dir", entropy)[0] == 0
    assert "`--dask` must be left out: entropy runs in one process" in run("job", "resume", entropy, "--dask", where)[2]


def test_a_record_is_a_row_of_the_table_of_records(run, folder):
    assert run("job", "start", *SMALL, "--dir", folder)[0] == 0
    row = json.loads(run("job", "result", folder, "--record")[1])["square"][0]
    assert set(row) <= set(records()["square"][0])
    assert (row["size"], row["count"]) == (8, "660647962955")
    assert "not allowed with argument --record" in run("job", "result", folder, "--record", "--json")[2]
    words = shlex.split(row["command"])
    shutil.rmtree(folder)
    assert run(*words[1:])[:2] == (0, "660647962955\n")


# Fits.


@pytest.fixture
def release(tmp_path):
    rng = np.random.default_rng(1)
    found = privatize(rng.poisson(rng.gamma(0.5, 1.0, (30, 20))), epsilon=1.0, insecure_seed=3)
    found.save(tmp_path / "released.npz")
    return found


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning")
def test_a_fit_is_a_job_and_the_model_lies_in_its_folder(run, job, folder, tmp_path, release):
    words = ["--components", "2", "--warmup", "200", "--draws", "8000", "--chains", "2", "--seed", "1", "--thin", "1"]
    words = ["factorize", tmp_path / "released.npz", *words, "--checkpoint-interval", "0.05", "--threads", "1"]
    process = job("start", *words, "--dir", folder)
    saved(folder, process)
    process.kill()
    process.communicate(timeout=60)
    before = written(folder)
    process = job("resume", folder)
    saved(folder, process, before)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode in (75, 0)
    status, out, _ = run("job", "resume", folder)
    assert status == 0
    assert "log_likelihood" in out
    whole = PoissonFactorization(2, n_warmup=200, n_draws=8000, thin=1, n_chains=2, random_state=1).fit(release)
    found = PoissonFactorization.load(folder / "model.npz")
    for name, draws in whole.draws_.items():
        np.testing.assert_array_equal(found.draws_[name], draws)
    assert run("job", "verify", folder)[0] == 2


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning", "ignore::quincunx.errors.MisfitWarning")
def test_the_state_of_a_fit_stays_until_its_result_is_written(run, folder, tmp_path, release, monkeypatch, capsys):
    def full(job, name, value, whole=_job_folder.Folder.write):
        if name == "result.json":
            raise OSError("no room")
        whole(job, name, value)

    words = ["factorize", tmp_path / "released.npz", "--warmup", "20", "--draws", "30", "--seed", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(_job_folder.Folder, "write", full)
        status, _, err = run("job", "start", *words, "--dir", folder)
    assert (status, "no room" in err) == (2, True)
    assert (folder / "state.ckpt").exists()
    first = PoissonFactorization.load(folder / "model.npz").embedding_
    assert run("job", "resume", folder)[0] == 0
    assert not (folder / "state.ckpt").exists()
    np.testing.assert_array_equal(PoissonFactorization.load(folder / "model.npz").embedding_, first)


def test_a_fit_that_goes_on_names_the_options_that_it_was_told(run, folder, tmp_path, release):
    words = ["factorize", tmp_path / "released.npz", "--warmup", "2", "--draws", "3", "--seed", "1"]
    said = run("job", "start", *words, "--dir", folder)[2].splitlines()[-1]
    assert "`--draws`" in said
    (folder / "result.json").unlink()
    (folder / "model.npz").unlink()
    assert run("job", "resume", folder)[2].splitlines() == [said]


# At the end, and in schedulers.


NOTE = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + '\\n')"


def test_a_command_at_the_end_hears_how_it_ended_and_has_no_shell(run, folder, tmp_path):
    note = tmp_path / "note; touch $(echo oops)"
    command = shlex.join([sys.executable, "-c", NOTE, str(note)])
    assert run("job", "start", *SMALL, "--dir", folder, "--notify", command)[0] == 0
    assert note.read_text() == f"{folder} done\n"
    assert not (tmp_path / "oops").exists()
    status, out, err = run("job", "start", *SMALL, "--dir", tmp_path / "other", "--notify", "no-such-command")
    assert (status, out) == (0, "660647962955\n")
    assert "--notify: " in err


def script_of(page, marker):
    """Return the block of a page of the docs that holds a word."""
    text = (Path(__file__).parent.parent / "docs" / page).read_text()
    (block,) = [block for block in text.split("```")[1::2] if marker in block]
    return block.partition("\n")[2]


@pytest.fixture
def command(tmp_path):
    """Return an environment in which `quincunx` is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "quincunx"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m quincunx "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_script_for_slurm_is_queued_again_until_it_is_done(tmp_path, command, long_count):
    """A scheduler of a few lines: it signals what `srun` runs, as Slurm does, and starts the script again if asked."""
    script = script_of("command_line.md", "#SBATCH")
    given = "square 22x1000 --checkpoint-interval 0.02 --threads 1"
    assert "king 43x43 --memory 14G" in script
    (tmp_path / "job.sh").write_text(script.replace("king 43x43 --memory 14G", given))
    srun = 'test "$SRUN_CPUS_PER_TASK" = 2 || exit 9; echo $$ > task; exec "$@"'
    for name, text in {"scontrol": "echo $* >> requeued", "srun": srun}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    folder, ends = tmp_path / "king43", []
    for sent in (signal.SIGUSR1, signal.SIGTERM, None):
        given = command | {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2"}
        how = {"cwd": tmp_path, "env": given, "stdout": subprocess.PIPE, "text": True}
        before = written(folder)
        script = subprocess.Popen(["bash", "job.sh"], **how)
        if sent is not None:
            saved(folder, script, before)
            os.kill(int((tmp_path / "task").read_text()), sent)
        out, _ = script.communicate(timeout=120)
        ends.append((script.returncode, out))
    assert ends == [(75, ""), (75, ""), (0, f"{long_count}\n")]
    assert (tmp_path / "requeued").read_text() == "requeue 7\n" * 2


def test_the_rule_for_snakemake_makes_its_file(tmp_path, command):
    rule = script_of("command_line.md", "rule count:")
    assert "king 43x43 --memory 14G" in rule
    rule = rule.replace("king 43x43 --memory 14G", "square 8x8")
    (tmp_path / "Snakefile").write_text(rule)
    if shutil.which("snakemake") is None:
        words = dict(re.findall(r'(\w+)[:=] ?"(.*?)"', rule))
        program = words["shell"].replace("{params.dir}", words["dir"]).replace("{params.what}", words["what"])
        for _ in range(2):  # the second time it goes on, and finds all done
            done = subprocess.run(
                ["bash", "-c", program], cwd=tmp_path, env=command, capture_output=True, text=True, check=True
            )
            assert done.stdout == "660647962955\n"
    else:
        subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, env=command, check=True)
    assert json.loads((tmp_path / "king43" / "result.json").read_text())["value"]["count"] == "660647962955"


def test_spanning_trees_of_any_length_are_verified(run, folder):
    """Numbers of more than 4300 digits, which Python does not read at once."""
    assert run("job", "start", "count", "spanning-trees", "square", "20x600", "--dir", folder)[0] == 0
    text = json.loads((folder / "result.json").read_text())["value"]["count"]
    assert len(text) > 4300
    assert _job_checks._whole(text) == count_spanning_trees(lattices.square(20, 600))
