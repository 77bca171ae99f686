"""Fits that keep their runs in a file on the way, and go on from it after any stop, bit for bit."""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

import quincunx
from quincunx import _check, _core
from quincunx._inference import _archive
from quincunx._inference._runs import Arrays, Problem, Run, S
from quincunx._npz import open_npz, write_npz
from quincunx._types import Array, Facts
from quincunx.errors import CheckpointError, TooLargeError

FORMAT = 1
#: Writing takes this share of the time at the most, whatever the interval.
_SAVING = 0.05


class Pause:
    """Ends a drive after some seconds: what one task of an executor does of a fit that is kept."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        #: Keys of the runs that have come to their end.
        self.ended: set[tuple[int, int]] = set()
        #: Iterations that the fit had done before.
        self.done = 0
        self._due = time.monotonic() + interval

    def is_due(self) -> bool:
        """Say whether the time is over."""
        return time.monotonic() >= self._due

    def save(self, runs: Sequence[Run]) -> bool:
        """Take runs as far as they came; say whether they are to go on."""
        return False


class Checkpoint(Pause):
    """The file of a fit, held by this process alone until `close`.

    Parameters
    ----------
    path : str
    interval : float
        Seconds between two writes.
    digest : str
        Of all that decides the fit: another's file is refused.

    Raises
    ------
    CheckpointError
        If another process works on it.
    """

    def __init__(self, path: str, interval: float, digest: str) -> None:
        super().__init__(interval)
        self.path, self._digest, self._first = path, digest, 0
        self._lock = _core.CheckpointLock(path)

    def load(self, problem: Problem[S], runs: Sequence[Run], schedule: S) -> list[Run]:
        """Return the runs of the file, or where there is none, those given, which are then written."""
        self._first = sum(run.iteration for run in runs)
        if not os.path.lexists(self.path):
            self._write(runs)
            return list(runs)
        try:
            with open_npz(self.path, self.path) as arrays:
                header = json.loads(str(arrays["checkpoint"]))
                if header["format"] != FORMAT:
                    raise ValueError(f"its format is {header['format']}, this version reads {FORMAT}")
                if header["digest"] != self._digest:
                    raise CheckpointError(
                        f"checkpoint {self.path}: belongs to another fit: to other data, parameters, random_state or "
                        f"another version ({header['quincunx']}; this is {quincunx.__version__}); name another file, "
                        "or remove it"
                    )
                found = [_archive.run_from(facts, f"run_{c}", arrays) for c, facts in enumerate(header["runs"])]
            self.ended = {run.key for run, ended in zip(found, header["ended"], strict=True) if ended}
            for run, fresh in zip(found, runs, strict=True):
                _check_run(run, fresh, problem)
            problem.samplers([run.without_draws() for run in found if run.state], schedule)
        except (CheckpointError, TooLargeError):
            raise
        except Exception as reason:
            words = str(reason).removeprefix(f"{self.path}: ")
            raise CheckpointError(
                f"checkpoint {self.path}: is damaged, or none of a fit ({words}); name another file, or remove it"
            ) from None
        self.done = sum(run.iteration for run in found) - self._first
        return found

    def save(self, runs: Sequence[Run]) -> bool:
        """Write the runs; a file that cannot be written is warned of, and the old one stays."""
        start = time.monotonic()
        self.ended |= {run.key for run in runs if run.converged}
        try:
            self._write(runs)
        except CheckpointError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        end = time.monotonic()
        self._due = end + max(self.interval, (end - start) / _SAVING if self.interval else 0)
        return True

    def _write(self, runs: Sequence[Run]) -> None:
        arrays: Arrays = {}
        header = {
            "format": FORMAT,
            "quincunx": quincunx.__version__,
            "digest": self._digest,
            "runs": [_archive.run_to(run, f"run_{c}", arrays) for c, run in enumerate(runs)],
            "ended": [run.key in self.ended for run in runs],
        }
        try:
            write_npz(self.path, arrays | {"checkpoint": np.array(json.dumps(header))}, ".checkpoint-")
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.path}: cannot be written: {error}") from error

    def close(self, *, remove: bool) -> None:
        """Let the file go, and remove it where it has served; a fit is not lost by that it cannot be."""
        if remove and (served := _SERVED.get()) is not None:
            served.append(self)
            return
        try:
            if remove:
                os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            warnings.warn(f"checkpoint {self.path}: cannot be removed: {error}", RuntimeWarning, stacklevel=2)
        finally:
            self._lock.release()


#: The files that have served, where they are to stay until what was found is elsewhere.
_SERVED: ContextVar[list[Checkpoint] | None] = ContextVar("served", default=None)


@contextmanager
def kept_until_the_end() -> Iterator[None]:
    """Remove the files of fits only at the end of the outermost of these blocks, and not at all if it fails."""
    if _SERVED.get() is not None:
        yield
        return
    served: list[Checkpoint] = []
    token, failed = _SERVED.set(served), True
    try:
        yield
        failed = False
    finally:
        _SERVED.reset(token)
        for file in served:
            file.close(remove=not failed)


def _check_run(run: Run, fresh: Run, problem: Problem[S]) -> None:
    """Refuse a run that no fit from this one has written; at what its state holds the samplers look."""
    kept, steps = run.kept, run.iteration
    if steps < fresh.iteration or (np.diff([0, *kept, steps + 1]) <= 0).any():
        raise ValueError("its iterations do not follow on each other")
    shapes = [(len(kept), *variable.shape) for variable in problem.variables]
    if (run.draws or len(kept)) and [part.shape for part in run.draws] != shapes:
        raise ValueError("its draws have other shapes")
    if any(len(values) != len(kept) for values in run.draw_statistics.values()) or any(
        len(values) != steps for values in run.step_statistics.values()
    ):
        raise ValueError("its statistics have other lengths")


def of_fit(
    keep: tuple[object, float], known: list[object], arrays: Arrays, runs: Sequence[Run], *, any_keys: bool
) -> Checkpoint:
    """Return the checkpoint of a fit: its file is told from others by all that is known of the fit, and its runs.

    With `any_keys` those of the runs do not count: where randomness is new in each process, the file's is taken.
    """
    path = _check.path(keep[0], "checkpoint") or ""
    interval = _check.interval(keep[1], "checkpoint_interval")
    begun: list[Facts] = []
    arrays = dict(arrays)
    for c, run in enumerate(runs):
        begun.append(_archive.run_to(run, f"run_{c}", arrays))
        if any_keys:
            begun[-1]["key"] = None
    header = [FORMAT, quincunx.__version__, *known, begun]
    return Checkpoint(path, 0.0 if interval is None else interval, _digest(header, arrays))


def _digest(header: list[object], arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256(json.dumps(header, sort_keys=True, default=str).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"\0{name} {array.dtype} {array.shape}\0".encode())
        found.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return found.hexdigest()
