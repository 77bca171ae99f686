"""Long jobs in folders: a command of the command line with its checkpoint, log, forecast and result in one place.

A folder holds ``job.json`` (the command, the version, digests of what it reads, the forecast), ``state.ckpt`` while
there is something to go on with, ``log.jsonl`` (a line for each start, step and end) and at last ``result.json``, for a
fit also ``model.npz``. One process at a time works on it, which a lock says. `SIGTERM` and `SIGUSR1` save and end with
exit status 75, by which schedulers know that a job is to be started again.
"""

import contextlib
import datetime
import hashlib
import json
import os
import secrets
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from inspect import Parameter
from types import FrameType
from typing import Annotated, NamedTuple, Never

import quincunx
from quincunx import _child, _core, _units
from quincunx._npz import write_whole
from quincunx._progress import reporting
from quincunx._types import Facts
from quincunx._verbs import Verb, named, read_as
from quincunx.errors import TooLargeError

#: Exit status of a job that was told to stop and saved: EX_TEMPFAIL of sysexits.h.
STOPPED = 75
#: Parameters of verbs that a job gives itself, or that make no job: what `--estimate` asks for takes moments.
_OWN = ("checkpoint", "out", "json", "estimate")
_FORMAT = 1
#: Events of the log that a run consists of, and the numbers that each has.
_SPENT = ("seconds_since_start", "cpu", "bytes")
_NUMBERS: dict[str, tuple[str, ...]] = {"start": ("pid",), "step": ("done", "total", *_SPENT)}
_NUMBERS |= dict.fromkeys(("stop", "done", "failed"), _SPENT)
#: A step is logged when a hundredth of the job is done, but not more often than each second, and each minute.
_SHARE, _SOONEST, _LATEST = 0.01, 1.0, 60.0
#: Seconds that `stop` waits for a process to save, and a command at the end may take.
_PATIENCE = 60.0
#: A recount by another way is done if it is forecast to take no longer than so many seconds, or twice the job's.
_SHORT = 60.0
#: A count of more states than these is not begun again on the bare graph, where there are as many at the least.
_MOST_STATES = 2_000_000
#: How many primes beyond those of a count one is drawn from to verify it.
_BEYOND = 64


class _Stop(KeyboardInterrupt):
    """A signal asked the job to save and end."""


def _options(
    *,
    dir: Annotated[str | os.PathLike[str], "the folder of the job, which is made"],
    notify: Annotated[str | None, "a command to run at the end, without a shell, with DIR and done, stopped or failed"],
) -> Never:
    """Stand for the options of every job."""
    raise NotImplementedError


class Started(Verb):
    """A verb that runs in a folder.

    Parameters
    ----------
    verb : Verb
        One that takes a `checkpoint`.
    """

    def __init__(self, verb: Verb) -> None:
        takes = {name: make for name, make in verb.takes.items() if name not in _OWN}
        super().__init__(verb.where, verb.help, like=verb.like, takes=takes, exclusive=verb.exclusive)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Those of the verb that a job does not give itself, and the job's."""
        taken = Verb(self.where, self.help, like=self.like, takes=self.takes).parameters
        parts = {name: parameter for name, parameter in taken.items() if name not in _OWN} | dict(named(_options))
        return parts | {"notify": parts["notify"].replace(default=None)}

    def values(self, options: Facts) -> Facts:
        """Return the folder, what is read with its digest, and the arguments of the verb."""
        given = dict(options)
        own = {"dir": given.pop("dir"), "notify": given.pop("notify")}
        inputs = {}
        for name, value in given.items():
            if read_as(self.parameters[name]).get("metavar") == "FILE" and value is not None:
                path = os.fspath(value)
                if path == "-":
                    raise ValueError(f"`{name}` must be a file, which a job can read again when it goes on, got -")
                with open(path, "rb") as file:
                    inputs[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return own | {"inputs": inputs, "given": super().values(given)}

    def call(self, values: Facts, *, progress: bool) -> object:
        """Start the job in this process."""
        return run(self, progress=progress, **values)


def run(
    verb: Started,
    *,
    dir: str | os.PathLike[str],
    notify: str | None,
    inputs: dict[str, str],
    given: Facts,
    progress: bool,
    resume: bool = False,
) -> str | int:
    """Start or go on with the job of a verb; return what is printed, or the exit status of a stop.

    Raises
    ------
    ValueError
        If there is a job in the folder already, or to go on with another than the one there.
    CheckpointError
        If another process works in it.
    """
    folder = os.path.abspath(dir)
    words = shlex.split(notify) if notify else []
    forecast = None if resume else _forecast(verb.words, given)
    os.makedirs(folder, exist_ok=True)
    lock = _core.CheckpointLock(os.path.join(folder, "job"))
    try:
        job = Folder(folder)
        if resume:
            facts = job.facts
            if facts["inputs"] != inputs:
                changed = [path for path in inputs if inputs[path] != facts["inputs"].get(path)]
                raise ValueError(f"`dir` must hold a job whose input is as it was: {', '.join(changed)} has changed")
            if facts["quincunx"] != quincunx.__version__:
                old, new = facts["quincunx"], quincunx.__version__
                print(f"quincunx: begun by version {old}, goes on by {new}, if that reads its state", file=sys.stderr)
            if job.result is not None:
                return spoken(job.result["value"])
        else:
            if os.path.lexists(job.path("job.json")):
                raise ValueError(
                    f"`dir` must not hold a job yet: `quincunx job resume {dir}` goes on with the one there"
                )
            facts = {
                "format": _FORMAT,
                "command": list(verb.words),
                "quincunx": quincunx.__version__,
                "folder": os.getcwd(),
                "inputs": inputs,
                "forecast": forecast,
                "begun": _now(),
            }
            job.write("job.json", facts)
            print(f"quincunx: forecast: {_forecast_in_words(forecast)}", file=sys.stderr)
        return _Run(job, verb, given, words, progress)()
    finally:
        lock.release()


class _Run:
    """One run of a job, from its start line in the log to its end."""

    def __init__(self, job: "Folder", verb: Started, given: Facts, notify: Sequence[str], progress: bool) -> None:
        self._job, self._verb, self._given, self._notify, self._progress = job, verb, given, notify, progress
        self._start = self._last = time.monotonic()
        self._done = self._total = self._logged = 0
        self._asked: str | None = None
        self._show: Callable[[int, int], object] | None = None

    def __call__(self) -> str | int:
        host, pid = socket.gethostname(), os.getpid()
        self._job.log("start", host=host, pid=pid, birth=_birth(pid), quincunx=quincunx.__version__, strict=True)
        with self._signals():
            try:
                value = self._value()
                facts = self._finished(value)
            except BaseException as error:
                stopped = isinstance(error, KeyboardInterrupt)
                event = "stop" if stopped else "failed"
                self._job.log(
                    event, reason=self._asked or f"{type(error).__name__}: {error}".strip(": "), **self._spent()
                )
                self._tell("stopped" if stopped else "failed")
                if not isinstance(error, _Stop):
                    raise
                saved = (
                    "what is finished is saved" if os.path.exists(self._job.path("state.ckpt")) else "nothing was done"
                )
                print(f"quincunx: {self._asked}: {saved}; `quincunx job resume` goes on", file=sys.stderr)
                return STOPPED
        self._tell("done")
        return spoken(facts["value"])

    def _value(self) -> Facts:
        given = self._given | {"checkpoint": self._job.path("state.ckpt"), "json": True}
        if "out" in named(self._verb.function):
            given["out"] = self._job.path("model.npz")
        with reporting(self._progress, "job") as self._show:
            value: Facts = json.loads(self._verb.function(**given, progress=self._hear))
            return value

    def _finished(self, value: Facts) -> Facts:
        """Write the result."""
        self._job.log("done", **self._spent())
        runs = self._job.runs()
        facts = {
            "value": value,
            "verified": list(_verified_inside(self._job.facts, value)),
            "command": self._job.command,
            "quincunx": quincunx.__version__,
            "host": runs[-1][0]["host"],
            "starts": len(runs),
            "wall_seconds": round(sum(run[-1].get("seconds_since_start", 0.0) for run in runs), 3),
            "cpu_seconds": round(sum(run[-1].get("cpu", 0.0) for run in runs), 3),
            "bytes": max(run[-1].get("bytes", 0) for run in runs),
        }
        self._job.write("result.json", facts)
        return facts

    def _hear(self, done: int, total: int) -> None:
        """Log a step once in a while, and stop where a signal asked for it."""
        self._done, self._total = done, total
        if self._show is not None:
            self._show(done, total)
        now = time.monotonic()
        ahead = done - self._logged >= _SHARE * total and now - self._last >= _SOONEST
        if ahead or now - self._last >= _LATEST:
            self._job.log("step", done=done, total=total, seconds=round(now - self._last, 3), **self._spent())
            self._last, self._logged = now, done
        if self._asked is not None and done < total:
            raise _Stop

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Have signals save and end the job; what is done already is not given up for one."""

        def asked(number: int, frame: FrameType | None) -> None:
            again, self._asked = self._asked is not None, signal.Signals(number).name
            if not again and not 0 < self._total <= self._done:
                raise _Stop

        known = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]
        if threading.current_thread() is not threading.main_thread():
            known = []
        before = {number: signal.signal(number, asked) for number in known}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _spent(self) -> Facts:
        times = os.times()
        peak = 0
        with contextlib.suppress(ImportError):
            import resource

            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        cpu = round(times.user + times.system + times.children_user + times.children_system, 3)
        return {"seconds_since_start": round(time.monotonic() - self._start, 3), "cpu": cpu, "bytes": peak}

    def _tell(self, state: str) -> None:
        """Run the command that was asked for; what it does is its own matter."""
        if not self._notify:
            return
        try:
            _child.command([*self._notify, self._job.folder, state], _PATIENCE)
        except OSError as error:
            print(f"quincunx: --notify: {error}", file=sys.stderr)
            self._job.log("notify", reason=str(error))


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
        wanted: dict[str, type] = {"command": list, "inputs": dict, "quincunx": str}
        if name == "result.json":
            wanted = {"value": dict, "verified": list}
        if not isinstance(found, dict) or any(not isinstance(found.get(key), kind) for key, kind in wanted.items()):
            raise ValueError(f"`dir` must hold a job, got a damaged {self.path(name)}: it has no {', '.join(wanted)}")
        return found

    @property
    def facts(self) -> Facts:
        """What the job is."""
        found = self._read("job.json")
        if found is None:
            raise ValueError(f"`dir` must hold a job, got {self.folder} without a job.json")
        if found.get("format") != _FORMAT or not all(isinstance(word, str) for word in found["command"]):
            raise ValueError(f"`dir` must hold a job of format {_FORMAT}, got {found.get('format')!r}")
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
        line = json.dumps({"event": event, "time": _now(), **facts})
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
        with contextlib.suppress(FileNotFoundError), open(self.path("log.jsonl"), encoding="utf-8") as file:
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
        told = {
            "command": self.command,
            "state": state,
            "done": steps[-1]["done"] if steps else None,
            "total": steps[-1]["total"] if steps else None,
            "left_seconds": left,
            "forecast": facts.get("forecast"),
            "wall_seconds": round(sum(run[-1].get("seconds_since_start", 0.0) for run in runs), 3),
            "cpu_seconds": round(sum(run[-1].get("cpu", 0.0) for run in runs), 3),
            "bytes": max((run[-1].get("bytes", 0) for run in runs), default=0),
            "last_checkpoint": saved,
            "last_line": end.get("time"),
            "host": start.get("host"),
            "pid": start.get("pid"),
            "alive": alive,
            "starts": len(runs),
            "reason": end.get("reason"),
        }
        return Status(state, share, left, told)


def in_words(status: Status) -> dict[str, object]:
    """Return how a job stands as people read it."""
    facts = status.facts
    times = f"{_units.in_time(facts['wall_seconds'])}, {_units.in_time(facts['cpu_seconds'])} of processors"
    told: dict[str, object] = {"command": facts["command"], "state": status.state}
    if facts["reason"]:
        told["reason"] = facts["reason"]
    if status.share is not None:
        told["done"] = f"{100 * status.share:.3g} %"
    if status.left_seconds is not None:
        told["left"] = f"about {_units.in_time(status.left_seconds)} at the rate of this start"
    told |= {
        "forecast": _forecast_in_words(facts["forecast"]),
        "spent": times,
        "memory": _units.in_bytes(facts["bytes"]),
    }
    told["last checkpoint"] = facts["last_checkpoint"] or "none"
    alive = {True: "alive", False: "gone", None: "unknown from here"}[facts["alive"]]
    told["process"] = (
        f"{facts['pid']} on {facts['host']}, {alive}; started {facts['starts']} time{'s' * (facts['starts'] != 1)}"
    )
    return told


def listed(folder: str) -> Iterator[tuple[str, Status | str]]:
    """Yield the folders below one that hold a job, by name, with how each stands or what is wrong with it."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if os.path.lexists(os.path.join(entry.path, "job.json")))
    for name in names:
        try:
            yield name, Folder(os.path.join(folder, name)).status()
        except ValueError as error:
            yield name, str(error)


def stop(dir: str | os.PathLike[str]) -> str:
    """Ask the process of a job to save and end, and wait until it has; return how it stands then.

    Raises
    ------
    ValueError
        If none runs, or not on this host.
    """
    job = Folder(dir)
    status = job.status()
    if status.state == "unknown":
        raise ValueError(f"`dir` must hold a job of this host, got one of {status.facts['host']}: stop it there")
    if status.state != "running":
        raise ValueError(f"`dir` must hold a job that runs, got one that is {status.state}")
    os.kill(status.facts["pid"], signal.SIGTERM)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        time.sleep(0.05)
        if (now := job.status()).state != "running" or now.facts["starts"] != status.facts["starts"]:
            return now.state
    raise ValueError(f"`dir` must hold a job that saves within {_PATIENCE:.0f} s of a SIGTERM; it is still at it")


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

    told = list(lines(value))
    width = max(len(name) for name, _ in told)
    return "\n".join(f"{name:<{width}}  {part}" for name, part in told)


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


# Forecasts and verifications: what the library offers of each verb.


def _verb(words: Sequence[str]) -> str:
    return words[2]  # of `job start VERB ...`


def _forecast(words: Sequence[str], given: Facts) -> Facts | None:
    """Return what a count would take; of other verbs there is no forecast."""
    if _verb(words) != "count":
        return None
    from quincunx import counting

    limits = {"threads": given["threads"], "memory_limit": given["memory_limit"]}
    cost = counting.estimate_cost(given["on"].graph, given["what"], **limits)
    return vars(cost) | {"of": "the count alone, without the polynomial"} if given["polynomial"] else vars(cost)


def _forecast_in_words(forecast: Facts | None) -> str:
    if forecast is None:
        return "none for this verb; `quincunx job status` has the rate"
    told = f"{forecast['engine']}, {_units.in_bytes(forecast['bytes'])}, about {_units.in_time(forecast['seconds'])}"
    return ", ".join([f"{told}, {forecast['primes']} primes", *([forecast["of"]] if "of" in forecast else [])])


def _verified_inside(facts: Facts, value: Facts) -> Iterator[str]:
    """Yield what was verified on the way to a result."""
    forecast = facts["forecast"]
    if forecast is not None and forecast["primes"] > 1 and "of" not in forecast:
        yield f"a spare prime, one of {forecast['primes']}"
    elif "evidence" in value:
        yield f"proved: {value['theorem']}"


def verify(verb: Started, job: Folder, given: Facts, progress: bool) -> list[str]:
    """Compute a result once more, by other ways, and add to it what agreed; return that.

    Raises
    ------
    ValueError
        If the job is not done, or there is no other way that is short enough.
    quincunx.errors.InternalError
        If a way disagrees: a bug, or a fault of the machine on which one of them was computed.
    """
    result = job.result
    if result is None:
        raise ValueError("`dir` must hold a job that is done")
    ways = {"count": _count_again, "entropy": _entropy_again}.get(_verb(verb.words))
    if ways is None:
        raise ValueError(f"`dir` must hold a count or an entropy: of `{_verb(verb.words)}` there is no other way")
    agreed, reasons = [], []
    limit = max(_SHORT, 2 * result["cpu_seconds"])
    for way in ways(given, result["value"], job.facts["forecast"], limit, progress):
        try:
            agreed.append(way())
        except (TooLargeError, ValueError) as reason:
            reasons.append(str(reason))
    if not agreed:
        raise ValueError(f"`dir` must hold a result that can be had in another way: {'; '.join(reasons)}")
    lines = [line for line in agreed if line not in result["verified"]]
    job.write("result.json", result | {"verified": [*result["verified"], *lines]})
    job.log("verified", ways=agreed, not_done=reasons)
    return agreed + [f"not done: {reason}" for reason in reasons]


_Ways = Iterator[Callable[[], str]]


def _count_again(given: Facts, value: Facts, forecast: Facts | None, limit: float, progress: bool) -> _Ways:
    """Yield a residue modulo a prime that served nowhere, and a count of the graph with its vertices renumbered."""
    import numpy as np

    from quincunx import counting
    from quincunx.graphs import Graph

    graph, what = given["on"].graph, given["what"]
    limits = {"threads": given["threads"], "memory_limit": given["memory_limit"]}
    numbers = value["coefficients"] if given["polynomial"] else [value["count"]]
    found = [_whole(text) for text in numbers]

    def residue() -> str:
        used = 0 if forecast is None else forecast["primes"]
        prime = counting.primes(used + _BEYOND)[used + secrets.randbelow(_BEYOND)]
        activity = 1 + secrets.randbelow(2**50) if given["polynomial"] else 1
        again = counting.residue(graph, prime, activity=activity, **limits)
        there = 0
        for number in reversed(found):
            there = (there * activity + number) % prime
        at = f" at activity {activity}" if given["polynomial"] else ""
        _agree(again == there, f"the residue modulo {prime}{at}")
        rows = ", over whole rows where the count had halves" if forecast and "reflection" in forecast["engine"] else ""
        return f"the residue modulo {prime}{at}, a prime that had no part in it, by `counting.residue`{rows}"

    def renumbered() -> str:
        if forecast is not None and forecast["states"] > _MOST_STATES:
            raise ValueError("a count of the graph with its vertices renumbered would need more states by far")
        size, edges = int(graph.num_vertices), np.asarray(graph.edges)
        order = np.random.default_rng(secrets.randbits(128)).permutation(size)
        other = Graph(size, order[edges][secrets.SystemRandom().sample(range(len(edges)), len(edges))])
        cost = counting.estimate_cost(other, what, **limits)
        needed = _units.in_time(cost.seconds)
        if cost.seconds > limit:
            raise ValueError(f"a count of the graph with its vertices renumbered would take {needed}")
        by_size = {"independent-sets": "independence_polynomial", "matchings": "matching_polynomial"}
        name = by_size[what] if given["polynomial"] else f"count_{what.replace('-', '_')}"
        again = getattr(counting, name)(other, progress=progress, **limits)
        _agree((list(again) if given["polynomial"] else [again]) == found, "the count of the graph renumbered")
        return f"a whole count of the graph with its vertices renumbered at random, by {cost.engine}"

    if what == "independent-sets":
        yield residue
    yield renumbered


def _entropy_again(given: Facts, value: Facts, forecast: object, limit: float, progress: bool) -> _Ways:
    """Yield bounds by the other of two methods, which must have a number in common with those of the job."""
    from decimal import Decimal

    from quincunx import entropy

    def bounds() -> str:
        how: Facts = {name: given[name] for name in ("model", "activity")}
        how |= {"width": 8} if given["width"] is None else {"digits": 6}
        again = entropy.entropy_bounds(given["lattice"], **how, progress=progress, time_limit=limit)
        lower, upper = (Decimal(value["entropy"][side]) for side in ("lower", "upper"))
        other = Decimal(f"{again.lower:f}"), Decimal(f"{again.upper:f}")
        _agree(lower <= other[1] and other[0] <= upper, f"the bounds {other[0]} and {other[1]}")
        way = "strips and rings of 8 lines" if given["width"] is None else "corner tensors, to 6 digits"
        return f"bounds {other[0]} and {other[1]} by {way}, which have numbers in common with those here"

    yield bounds


def _agree(same: bool, what: str) -> None:
    if not same:
        from quincunx.errors import InternalError

        raise InternalError(f"{what} contradicts the result: a fault of a machine, or a bug")


def _whole(text: str) -> int:
    """Read an int of any length; Python itself refuses more than 4300 digits."""
    number = 0
    for start in range(0, len(text), 4000):
        part = text[start : start + 4000]
        number = number * 10 ** len(part) + int(part)
    return number


# Processes and times.


def _birth(pid: int) -> int | None:
    """Return when a process of this host was started, in ticks since its boot, where Linux says it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
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
    birth = _birth(start["pid"])
    return birth is None or start.get("birth") is None or birth == start["birth"]


def _now() -> str:
    return _iso(time.time())


def _iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
