"""Long jobs in folders: a command of the command line with its checkpoint, log, forecast and result in one place.

A folder holds ``job.json`` (the command, the version, digests of what it reads, the forecast), ``state.ckpt`` while
there is something to go on with, ``log.jsonl`` (a line for each start, step and end) and at last ``result.json``, for a
fit also ``model.npz``. One process at a time works on it, which a lock says. `SIGTERM` and `SIGUSR1` save and end with
exit status 75, by which schedulers know that a job is to be started again.
"""

import contextlib
import hashlib
import json
import os
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
from typing import Annotated, Never

import quincunx
from quincunx import _child, _core
from quincunx._inference._checkpoint import kept_until_the_end
from quincunx._job_folder import FORMAT, Folder, birth_of, forecast_in_words, now, spent_in, spoken
from quincunx._progress import reporting
from quincunx._types import Facts
from quincunx._verbs import Verb, named, read_as

#: Exit status of a job that was told to stop and saved: EX_TEMPFAIL of sysexits.h.
STOPPED = 75
#: Parameters of verbs that a job gives itself, or that make no job: estimates take moments, strips keep no checkpoint.
_OWN = ("checkpoint", "out", "json", "estimate", "width")
#: What a job keeps in its folder besides `job.json`.
_KEPT = ("state.ckpt", "log.jsonl", "result.json", "model.npz")
#: A step is logged when a hundredth of the job is done, but not more often than each second, and each minute.
_SHARE, _SOONEST, _LATEST = 0.01, 1.0, 60.0
#: Seconds that `stop` waits for a process to save, and a command at the end may take.
_PATIENCE = 60.0


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
        super().__init__(verb.where, verb.help, like=verb.like, takes=takes, exclusive=verb.exclusive, idle=verb.idle)

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
                if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
                    raise ValueError(f"`{name}` must be a file, which a job can read again when it goes on, got {path}")
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
    job = Folder(dir)
    try:
        words = shlex.split(notify or "")
    except ValueError as error:
        raise ValueError(f"`notify` must be a command, got {notify!r}: {error}") from None
    forecast = None if resume else _forecast(verb.words, given)
    os.makedirs(job.folder, exist_ok=True)
    lock = _core.CheckpointLock(job.path("job"))
    try:
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
            if left := [name for name in _KEPT if os.path.lexists(job.path(name))]:
                raise ValueError(f"`dir` must hold nothing of another job, got {', '.join(left)}: remove it first")
            facts = {
                "format": FORMAT,
                "command": list(verb.words),
                "quincunx": quincunx.__version__,
                "folder": os.getcwd(),
                "inputs": inputs,
                "forecast": forecast,
                "begun": now(),
            }
            job.write("job.json", facts)
            print(f"quincunx: forecast: {forecast_in_words(forecast)}", file=sys.stderr)
        first = _Run(job, verb, given, words, progress)
        try:
            return first()
        except (TypeError, ValueError):
            if not (resume or first._total):  # a wrong argument, with which no job can go on
                for name in ("job.json", "log.jsonl"):
                    os.unlink(job.path(name))
            raise
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
        self._job.log("start", host=host, pid=pid, birth=birth_of(pid), quincunx=quincunx.__version__, strict=True)
        with self._signals():
            try:
                with kept_until_the_end():
                    facts = self._finished(self._value())
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
        # What a log has lost is not needed: this run knows what it spent itself.
        self._job.log("done", **self._spent())
        runs = self._job.runs() or [[self._spent()]]
        facts = {
            "value": value,
            "verified": list(_verified_inside(self._job.facts, value)),
            "command": self._job.command,
            "quincunx": quincunx.__version__,
            "host": socket.gethostname(),
            "starts": len(runs),
            **spent_in(runs),
        }
        try:
            self._job.write("result.json", facts)
        except OSError:  # the state of a count is gone, so that nothing else has it
            print(f"quincunx: result.json could not be written; it holds\n{json.dumps(facts)}", file=sys.stderr)
            raise
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


def _verified_inside(facts: Facts, value: Facts) -> Iterator[str]:
    """Yield what was verified on the way to a result."""
    forecast = facts["forecast"]
    if forecast is not None and forecast["primes"] > 1 and "of" not in forecast and forecast["engine"] != "known":
        yield f"a spare prime, one of {forecast['primes']}"
    elif "evidence" in value:
        yield f"proved: {value['theorem']}"
