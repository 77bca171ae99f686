"""How a long job may run: what public functions take one by one, checked once and handed on as one object."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Never, TypedDict

from quincunx import _check, _core
from quincunx._progress import Progress, reporting


class JobOptions(TypedDict, total=False):
    """What functions take by name as ``**options: Unpack[JobOptions]``; `_docs.assembled` shows the names to `help`."""

    threads: int | None
    memory_limit: int | None
    progress: Progress
    checkpoint: str | os.PathLike[str] | None
    checkpoint_interval: float | None
    executor: Executor | None


class Job:
    """Threads, memory, progress, checkpoint and executor of a job.

    The core reads what it needs of it: ``threads``, ``memory_limit``, ``report``, ``checkpoint`` and
    ``checkpoint_interval``.

    Parameters
    ----------
    threads : int, optional
        Threads to use; by default all this process may use. A task of an executor asks again where it runs.
    memory_limit : int, optional
        Bytes the job may use; by default what is available. A task of an executor asks again where it runs.
    progress : bool or callable, optional
        As in `reporting`.
    checkpoint : path, optional
        Where the job keeps its state.
    checkpoint_interval : float, optional
        Seconds between two checkpoints.
    executor : concurrent.futures.Executor, optional
        Where its tasks run.

    Raises
    ------
    ValueError, TypeError
        If one of them is not what it should be.
    """

    __slots__ = (
        "checkpoint",
        "checkpoint_interval",
        "executor",
        "memory_limit",
        "memory_limit_asked",
        "progress",
        "report",
        "threads",
        "threads_asked",
    )

    report: Callable[[int, int], object] | None

    def __init__(
        self,
        threads: int | None = None,
        memory_limit: int | None = None,
        progress: Progress = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float | None = None,
        executor: Executor | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            function = sys._getframe(1).f_code.co_qualname  # the caller took them unseen
            raise TypeError(f"{function}() got an unexpected keyword argument {next(iter(unknown))!r}")
        self.threads_asked = threads
        # What is not said is not checked: half a microsecond of a small count.
        self.threads = _core.available_threads() if threads is None else _check.threads(threads)
        self.memory_limit_asked = memory_limit
        self.memory_limit = _check.available_memory() if memory_limit is None else _check.memory_limit(memory_limit)
        self.progress = progress
        self.report = None
        self.checkpoint = None if checkpoint is None else _check.path(checkpoint, "checkpoint")
        self.checkpoint_interval = None
        if checkpoint_interval is not None:
            self.checkpoint_interval = _check.interval(checkpoint_interval, "checkpoint_interval")
            if checkpoint is None:
                raise ValueError("`checkpoint_interval` must be left out without `checkpoint`")
        self.executor = executor
        if executor is not None:
            _check.executor(executor)

    @contextmanager
    def reporting(self, description: str) -> Iterator[None]:
        """Set `report` while the job runs to what hears of its progress."""
        with reporting(self.progress, description) as self.report:
            yield
        self.report = None
