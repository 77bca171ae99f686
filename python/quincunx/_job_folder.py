"""The folder of a long job: what its files say, how the job stands, and that in words."""

import contextlib
import datetime
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from quincunx import _units
from quincunx._npz import write_whole
from quincunx._types import Facts

#: Of `job.json`: another number for what this version cannot read.
FORMAT = 1
#: Events of the log that a run consists of, and the numbers that each has.
_SPENT = ("seconds_since_start", "cpu", "bytes")
_NUMBERS: dict[str, tuple[str, ...]] = {"start": ("pid",), "step": ("done", "total", *_SPENT)}
_NUMBERS |= dict.fromkeys(("stop", "done", "failed"), _SPENT)


class Status(NamedTuple):
    """How a job stands."""

    state: str
    share: float | None
    left_seconds: float | None
    facts: Facts


class Folder:
    """A folder with a job.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not os.fspath(folder):  # of a variable of a shell that is not set: the folder that one is in
            raise ValueError("`dir` must not be empty")
        self.folder = os.path.abspath(folder)

    def path(self, name: str) -> str:
        """Return the path of a file in it."""
        return os.path.join(self.folder, name)

    def write(self, name: str, facts: Facts) -> None:
        """Write a file, wholly or not at all."""
        content = json.dumps(facts, indent=1).encode() + b"\n"
        write_whole(self.path(name), lambda file: file.write(content), ".job-", ".json")

    def _read(self, name: str) -> Facts | None:
        try:
            with open(self.path(name), encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError as reason:
            raise ValueError(f"`dir` must hold a job, got a damaged {self.path(name)}: {reason}") from None
        wanted: dict[str, type | tuple[type, ...]] = {"command": list, "inputs": dict, "quincunx": str, "folder": str}
        wanted["forecast"] = (dict, type(None))
        if name == "result.json":
            wanted = {"value": dict, "verified": list, "cpu_seconds": (int, float), "bytes": int, "command": str}
        if (
            not isinstance(found, dict)
            or found.get("value") == {}
            or any(not isinstance(found.get(key, ...), kind) for key, kind in wanted.items())
        ):
            raise ValueError(f"`dir` must hold a job, got a damaged {self.path(name)}: it has no {', '.join(wanted)}")
        return found

    @property
    def facts(self) -> Facts:
        """What the job is."""
        found = self._read("job.json")
        if found is None:
            raise ValueError(f"`dir` must hold a job, got {self.folder} without a job.json")
        if found.get("format") != FORMAT or not all(isinstance(word, str) for word in found["command"]):
            raise ValueError(f"`dir` must hold a job of format {FORMAT}, got {found.get('format')!r}")
        return found

    @property
    def command(self) -> str:
        """The command line that starts it."""
        return shlex.join(["quincunx", *self.facts["command"]])

    @property
    def result(self) -> Facts | None:
        """The result, if it is done."""
        return self._read("result.json")

    def log(self, event: str, *, strict: bool = False, **facts: object) -> None:
        """Add a line to the log; where that cannot be, a job that runs goes on."""
        line = json.dumps({"event": event, "time": now(), **facts})
        try:
            with open(self.path("log.jsonl"), "a+b") as file:
                torn = file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n"
                file.write(b"\n" * bool(torn) + line.encode() + b"\n")
        except OSError:
            if strict:
                raise

    def runs(self) -> list[list[Facts]]:
        """Return the lines of the log, run by run; one that a crash tore is left out."""
        found: list[list[Facts]] = []
        with (
            contextlib.suppress(FileNotFoundError),
            open(self.path("log.jsonl"), encoding="utf-8", errors="replace") as file,
        ):
            for line in file:
                try:
                    entry = json.loads(line)
                    event = entry["event"]
                    whole = [entry[name] + 0 for name in _NUMBERS.get(event, ())]
                except (ValueError, KeyError, TypeError):
                    continue
                if event == "start" and whole[0] > 0:
                    found.append([])
                if found and event in _NUMBERS:
                    found[-1].append(entry)
        return found

    def status(self) -> Status:
        """Say how the job stands: done, running, stopped, failed, killed, or unknown where its host is another."""
        facts, runs, result = self.facts, self.runs(), self.result
        last = runs[-1] if runs else [{}]
        start, end = last[0], last[-1]
        alive = _is_alive(start) if runs else False
        state = {"stop": "stopped", "failed": "failed"}.get(end.get("event", ""), "killed" if runs else "begun")
        if result is not None:
            state, alive = "done", False
        elif alive is None and state == "killed":
            state = "unknown"
        elif alive and state == "killed":
            state = "running"
        steps = [entry for run in runs for entry in run if entry["event"] == "step"]
        share = left = None
        if steps and steps[-1]["total"]:
            share = 1.0 if state == "done" else steps[-1]["done"] / steps[-1]["total"]
        here = [entry for entry in last if entry["event"] == "step"] if runs else []
        if len(here) > 1 and state == "running":
            first, newest = here[0], here[-1]
            rate = (newest["done"] - first["done"]) / max(
                newest["seconds_since_start"] - first["seconds_since_start"], 1e-9
            )
            left = (newest["total"] - newest["done"]) / rate if rate > 0 else None
        saved = None
        with contextlib.suppress(OSError):
            saved = _iso(os.stat(self.path("state.ckpt")).st_mtime)
        known = {
            "command": self.command,
            "state": state,
            "done": steps[-1]["done"] if steps else None,
            "total": steps[-1]["total"] if steps else None,
            "left_seconds": left,
            "forecast": facts.get("forecast"),
            **spent_in(runs),
            "last_checkpoint": saved,
            "last_line": end.get("time"),
            "host": start.get("host"),
            "pid": start.get("pid"),
            "alive": alive,
            "starts": len(runs),
            "reason": end.get("reason"),
        }
        return Status(state, share, left, known)


def spent_in(runs: list[list[Facts]]) -> Facts:
    """Return what the runs of a log have taken together: seconds, those of processors, and the most memory."""
    return {
        "wall_seconds": round(sum(run[-1].get("seconds_since_start", 0.0) for run in runs), 3),
        "cpu_seconds": round(sum(run[-1].get("cpu", 0.0) for run in runs), 3),
        "bytes": max((run[-1].get("bytes", 0) for run in runs), default=0),
    }


def in_words(status: Status) -> dict[str, object]:
    """Return how a job stands as people read it."""
    facts = status.facts
    times = f"{_units.in_time(facts['wall_seconds'])}, {_units.in_time(facts['cpu_seconds'])} of processors"
    words: dict[str, object] = {"command": facts["command"], "state": status.state}
    if facts["reason"]:
        words["reason"] = facts["reason"]
    if status.share is not None:
        words["done"] = f"{100 * status.share:.3g} %"
    if status.left_seconds is not None:
        words["left"] = f"about {_units.in_time(status.left_seconds)} at the rate of this start"
    words |= {
        "forecast": forecast_in_words(facts["forecast"]),
        "spent": times,
        "memory": _units.in_bytes(facts["bytes"]),
    }
    words["last checkpoint"] = facts["last_checkpoint"] or "none"
    alive = {True: "alive", False: "gone", None: "unknown from here"}[facts["alive"]]
    words["process"] = (
        f"{facts['pid']} on {facts['host']}, {alive}; started {facts['starts']} time{'s' * (facts['starts'] != 1)}"
    )
    return words


def listed(folder: str) -> Iterator[tuple[str, Status | str]]:
    """Yield the folders below one that hold a job, by name, with how each stands or what is wrong with it."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if os.path.lexists(os.path.join(entry.path, "job.json")))
    for name in names:
        try:
            yield name, Folder(os.path.join(folder, name)).status()
        except (ValueError, OSError) as error:
            yield name, str(error)


def record(job: Folder) -> Facts:
    """Return the result of a count in the form of the table of records."""
    result = job.result
    if result is None or "count" not in result["value"]:
        raise ValueError("`dir` must hold a count that is done, to be a record")
    value = result["value"]
    size = value.get("size")
    extents = [int(part) for part in size.lower().split("x")] if size else []
    row = {
        "size": extents[0] if len(set(extents)) == 1 else size,
        "count": value["count"],
        "command": result["command"],
    }
    return {value.get("lattice") or "graph": [row | {
        "user_seconds": round(result["cpu_seconds"]),
        "bytes": result["bytes"],
        "verified": result["verified"],
    }]}  # fmt: skip


def spoken(value: Facts) -> str:
    """Return a value as it is printed: a count alone, a coefficient a line, else name and value."""
    if "count" in value:
        return str(value["count"])
    if "coefficients" in value:
        return "\n".join(value["coefficients"])

    def lines(facts: Facts, before: str = "") -> Iterator[tuple[str, object]]:
        for name, part in facts.items():
            if isinstance(part, dict):
                yield from lines(part, f"{before}{name} ")
            else:
                yield before + name, part

    named = list(lines(value))
    width = max(len(name) for name, _ in named)
    return "\n".join(f"{name:<{width}}  {part}" for name, part in named)


def forecast_in_words(forecast: Facts | None) -> str:
    if forecast is None:
        return "none for this verb; `quincunx job status` has the rate"
    words = f"{forecast['engine']}, {_units.in_bytes(forecast['bytes'])}, about {_units.in_time(forecast['seconds'])}"
    return ", ".join([f"{words}, {forecast['primes']} primes", *([forecast["of"]] if "of" in forecast else [])])


# Processes and times.


def birth_of(pid: int) -> int | None:
    """Return when a process of this host was started, in ticks since its boot, where Linux says it; of a dead one 0."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *figures = file.read().rpartition(")")[2].split()
            return 0 if state in "ZX" else int(figures[18])  # dead, also where no parent has asked for it
    except (OSError, ValueError, IndexError):
        return None


def _is_alive(start: Facts) -> bool | None:
    """Say whether the process of a start line lives; None where its host is another, or cannot be asked."""
    if start.get("host") != socket.gethostname() or sys.platform == "win32":
        return None
    try:
        os.kill(start["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    birth = birth_of(start["pid"])
    return birth is None or (birth > 0 and start.get("birth") in (None, birth))


def now() -> str:
    return _iso(time.time())


def _iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
