"""Tasks of a job on an executor: they have names, end with their job, and are never waited for in silence.

What an executor is differs little: Dask's alone knows its workers while they come and go, so that more can be said.
"""

import contextlib
import os
import pickle
import queue
import socket
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeAlias, TypeVar

from quincunx._check import available_memory
from quincunx._optional import require
from quincunx.errors import WorkerError

R = TypeVar("R")
#: A future of an executor, or one of Dask, which answers to the same names.
Handle: TypeAlias = Future[Any]
#: The arguments of a task.
Call: TypeAlias = tuple[object, ...]
#: What a task calls while it works; it raises once the job has ended.
Listen: TypeAlias = Callable[[int, int], object]

# Seconds between two looks for workers, without one until a warning, and until an error.
_LOOK = 1.0
WARN_AFTER = 10.0
GIVE_UP_AFTER = 300.0
# Seconds for the first try to get a result from Dask.
_PATIENCE = 5.0
# Seconds for an answer of Dask's scheduler.
_ANSWER = 30.0
# The share of a Dask worker's memory at which it is paused, unless it says another.
_PAUSE = 0.8


@contextlib.contextmanager
def dask_client(scheduler: str | None) -> Iterator[Any]:
    """Connect to Dask's scheduler, by its address or the file that it wrote; None where there is none."""
    if scheduler is None:
        yield None
        return
    distributed = require("distributed", "dask")
    where = {"scheduler_file" if os.path.exists(scheduler) else "address": scheduler}
    try:
        client = distributed.Client(**where, timeout=_ANSWER)
    except (OSError, TypeError, ValueError) as reason:
        message = f"`dask` must be the address of a scheduler that answers, or its file, got {scheduler!r}: {reason}"
        raise ValueError(message) from None
    with client:
        yield client


def workers(executor: Executor) -> int | None:
    """Return how many tasks run side by side, one at the least; None where the executor does not say it."""
    if (client := _client(executor)) is not None:
        return max(1, int(sum(client.nthreads().values())))
    found = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    return found if isinstance(found, int) else None


def memory_of_task(limit: int | None) -> int:
    """Return the bytes that the task which asks may use: the limit, or its part of what its worker or machine has."""
    if limit is not None:
        return limit
    if (worker := _worker()) is None or not (whole := worker.memory_manager.memory_limit):
        return available_memory()
    until = getattr(worker.memory_manager, "memory_pause_fraction", None) or _PAUSE
    left = int(until * whole) - worker.monitor.get_process_memory()
    return max(1, min(available_memory(), int(left // worker.state.nthreads)))


def this_worker() -> str:
    """Return what tells the worker that runs the task of this thread, or the process, from others."""
    if (worker := _worker()) is not None:
        return f"worker {worker.address}"
    return f"process {os.getpid()} on {socket.gethostname()}"


def no_worker(seconds: float, left: str, warned: bool) -> bool:
    """Warn once that there has been no worker for so long, and give up in the end; return whether it has been said."""
    if seconds >= GIVE_UP_AFTER:
        raise WorkerError(f"no worker for {seconds:.0f} s, with {left}")
    if seconds >= WARN_AFTER and not warned:
        message = f"no worker for {seconds:.0f} s: waiting for one, {GIVE_UP_AFTER:.0f} s at the most"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return True
    return warned


class Tasks(Generic[R]):
    """The tasks of one job, a context: leaving it by an exception ends those that wait and those that run.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    function : callable
        Called with the arguments of a task and a `Listen`, which it has to call while it works.
    calls : sequence of tuple
        The arguments of each task.
    names : sequence of str
        What Dask shows of each task; a token of the job is added.
    """

    def __init__(
        self, executor: Executor, function: Callable[..., R], calls: Sequence[Call], names: Sequence[str]
    ) -> None:
        self._job = uuid.uuid4().hex[:8]
        self._calls, self._names = calls, names
        self._stop = os.path.join(tempfile.gettempdir(), f"quincunx-stop-{self._job}")
        self._where = _Pool(executor) if _client(executor) is None else _Dask(executor)
        self._task = _Task(function, self._stop, self._where.packs)
        self._places: dict[Handle, int] = {}
        self._left: set[Handle] = set()

    def __enter__(self) -> Self:
        try:
            for place, (call, name) in enumerate(zip(self._calls, self._names, strict=True)):
                future = self._where.submit(self._task, self._task.packed(call), f"quincunx-{name}-{self._job}")
                self._places[future] = place
        except BaseException as error:
            self._end()
            if isinstance(error, BrokenExecutor):
                raise _gone(error) from error
            raise
        finally:
            self._left = set(self._places)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._end()

    def __iter__(self) -> Iterator[tuple[int, R]]:
        """Yield the place and the result of each task as they end."""
        lost: float | None = None
        warned = False
        while self._left:
            some = False
            for future in self._where.first(self._left):
                with contextlib.suppress(_NotYet):
                    result = self._result(future)
                    self._left.discard(future)
                    some = True
                    yield self._places[future], result
            if some or self._where.has_workers():
                lost = None
                continue
            lost = time.monotonic() if lost is None else lost
            warned = no_worker(time.monotonic() - lost, f"{len(self._left)} tasks to do", warned)

    def ended(self) -> Iterator[tuple[int, R]]:
        """Yield the place and the result of each task that has ended well, of those that were not yielded yet."""
        for future in self._left:
            if future.done() and not future.cancelled():
                with contextlib.suppress(Exception):
                    yield self._places[future], self._result(future)

    def _result(self, future: Handle) -> R:
        name = self._names[self._places[future]]
        try:
            result: R = self._where.result(future)
        except WorkerError as error:
            raise WorkerError(f"the task {name} was given up: {error}") from error
        except BrokenExecutor as error:
            raise _gone(error) from error
        except CancelledError as error:
            raise WorkerError(f"the task {name} was cancelled where it ran, or its scheduler is gone") from error
        return result

    def _end(self) -> None:
        """Cancel what waits, and tell what runs: by a file, while it runs."""
        running = self._where.cancel([future for future in self._places if not future.done()])
        if not running:
            return

        def ended(future: Handle) -> None:
            running.discard(future)
            if not running:
                with contextlib.suppress(OSError):
                    os.remove(self._stop)

        with contextlib.suppress(OSError), open(self._stop, "xb"):
            pass
        for future in tuple(running):
            future.add_done_callback(ended)


def _gone(error: BrokenExecutor) -> WorkerError:
    return WorkerError(f"the workers are gone: {error}")


class _NotYet(Exception):
    """A result was lost with its worker before it was here; it is being made again."""


class _Pool:
    """Any executor."""

    packs = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._ended: queue.SimpleQueue[Handle] = queue.SimpleQueue()

    def submit(self, task: "_Task", call: Call, key: str) -> Handle:
        future: Handle = self._executor.submit(task, *call)
        future.add_done_callback(self._ended.put)
        return future

    def first(self, futures: set[Handle]) -> Iterable[Handle]:
        """Wait for a moment, or until something has ended, and return what has."""
        # `concurrent.futures.wait` takes every future's lock: one that Ctrl-C leaves taken stops the executor for ever.
        try:
            return [self._ended.get(timeout=_LOOK)]
        except queue.Empty:
            return []

    def result(self, future: Handle) -> Any:
        return future.result()

    def has_workers(self) -> bool:
        """Say whether there is a worker, as far as the executor can tell."""
        return True

    def cancel(self, futures: list[Handle]) -> set[Handle]:
        """Cancel what has not ended; return what runs on until it is told otherwise."""
        return {future for future in futures if not future.cancel() and not future.done()}


class _Dask(_Pool):
    """A client of Dask, past the futures of its executor: those lose a result that is made on a worker that dies."""

    # What Dask hands on of arrays may be misaligned, and was refused by the core; what it hands on of bytes is not.
    packs = True

    def __init__(self, executor: Executor) -> None:
        self._client, self._how = _client(executor), getattr(executor, "_kwargs", {})
        self._patience: dict[Handle, float] = {}

    def submit(self, task: "_Task", call: Call, key: str) -> Handle:
        future: Handle = self._client.submit(task, *call, **self._how | {"key": key, "pure": False})
        return future

    def first(self, futures: set[Handle]) -> Iterable[Handle]:
        with contextlib.suppress(TimeoutError, CancelledError):
            sys.modules["distributed"].wait(list(futures), timeout=_LOOK, return_when="FIRST_COMPLETED")
        return sorted((future for future in futures if future.done()), key=lambda one: one.status != "error")  # type: ignore[attr-defined]

    def result(self, future: Handle) -> Any:
        # What is lost with its worker is waited for in turns with the others, longer each time: it may be large.
        patience = self._patience[future] = min(2 * self._patience.get(future, _PATIENCE / 2), GIVE_UP_AFTER)
        try:
            return pickle.loads(future.result(timeout=patience))
        except sys.modules["distributed.scheduler"].KilledWorker as error:
            last, times = error.last_worker.address, error.allowed_failures + 1
            words = f"{times} workers in a row died of it, the last at {last}; their logs say why, often it is memory"
            raise WorkerError(words) from error
        except TimeoutError:
            if future.done() and patience == GIVE_UP_AFTER:
                raise
            raise _NotYet from None

    def has_workers(self) -> bool:
        try:
            return bool(self._client.nthreads(callback_timeout=_ANSWER))
        except (OSError, TimeoutError):
            return False  # nor is there a scheduler

    def cancel(self, futures: list[Handle]) -> set[Handle]:
        with contextlib.suppress(Exception):
            self._client.cancel(futures)
        return set()  # workers hear of it by themselves


@dataclass(frozen=True)
class _Task:
    """A function where it is run for a job."""

    function: Callable[..., object]
    stop: str
    packs: bool

    def packed(self, call: Call) -> Call:
        """Return arguments as they are sent."""
        return (pickle.dumps(call, 5),) if self.packs else call

    def __call__(self, *call: Any) -> object:
        """Do the task."""
        if not self.packs:
            return self.function(*call, self._listen())
        return pickle.dumps(self.function(*pickle.loads(call[0]), self._listen()), 5)

    def _listen(self) -> Listen:
        worker = _worker()
        key = None if worker is None else worker.get_current_task()

        def listen(done: int, total: int) -> None:
            state = None if worker is None else worker.state.tasks.get(key)
            if (state is not None and state.state == "cancelled") or os.path.exists(self.stop):
                raise CancelledError("the job of this task has ended")

        return listen


def _client(executor: Executor) -> Any:
    """Return the client of Dask that an executor belongs to, if it does."""
    module = sys.modules.get("distributed.cfexecutor")
    return executor._client if module is not None and isinstance(executor, module.ClientExecutor) else None


def _worker() -> Any:
    """Return the worker of Dask that runs the task of this thread, if one does."""
    module = sys.modules.get("distributed.worker")
    state = None if module is None else getattr(module.thread_state, "execution_state", None)
    return None if state is None else state["worker"]
