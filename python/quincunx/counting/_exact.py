"""Exact jobs: a plan's residues computed here or by an executor, with a checkpoint, and put together once."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, as_completed

from quincunx import _core
from quincunx._job import Job
from quincunx.errors import CheckpointError, InternalError

# Primes in one task of an executor: the lanes of the widest vector unit.
_GROUP = 8
# The method that finds integers without primes: there is nothing to share out.
INTEGERS = "tree decomposition over the integers"
# Seconds between two checkpoints of a job on an executor.
_INTERVAL = 30.0


def solve(make_plan: Callable[[Job], _core.ExactPlan], description: str, job: Job) -> tuple[list[int], _core.ExactPlan]:
    """Return the integers of a job and its plan.

    A checkpoint of an executor's job can be gone on with here, and the other way round.
    """
    plan = make_plan(job)
    resumed = job.checkpoint is not None and os.path.exists(job.checkpoint)
    if job.executor is None and job.progress is None:
        return plan.solve(job), plan  # a tenth of the time of a small count is saved
    with job.reporting(description):
        if job.executor is None or plan.method[0] == INTEGERS:
            return plan.solve(job), plan
        residues = _gather(plan, job)
    try:
        return plan.combine(residues, job), plan
    except InternalError as error:
        if resumed:
            raise CheckpointError(
                f"checkpoint {job.checkpoint}: held residues of no one number, so it was damaged or forged ({error}); "
                "remove it"
            ) from error
        raise ValueError(f"`residues` must belong to one number: {error}") from error


def residues_of(plan: _core.ExactPlan, start: int, stop: int, threads: int | None, memory_limit: int) -> list[int]:
    """Compute the residues of a group of primes: one task of an executor. `threads` is resolved where the task runs."""
    return plan.residues(start, stop, Job(threads=threads, memory_limit=memory_limit))


def _gather(plan: _core.ExactPlan, job: Job) -> list[int]:
    """Return the residues of all primes, from what a checkpoint holds onwards, one task a group of primes."""
    lock = None if job.checkpoint is None else _core.CheckpointLock(job.checkpoint)
    try:
        return _gather_alone(plan, job)
    finally:
        if lock is not None:
            lock.release()


def _gather_alone(plan: _core.ExactPlan, job: Job) -> list[int]:
    """Return the residues of all primes, once the checkpoint is this job's alone."""
    assert job.executor is not None
    checkpoint, report = job.checkpoint, job.report
    interval = _INTERVAL if job.checkpoint_interval is None else job.checkpoint_interval
    found: dict[int, list[int]] = {}
    groups = {start: min(start + _GROUP, plan.primes) for start in range(0, plan.primes, _GROUP)}
    width = 1
    if checkpoint is not None:
        kept = plan.load(checkpoint)
        width = len(kept) // plan.primes
        for start, stop in groups.items():
            part = [residue for residue in kept[start * width : stop * width] if residue is not None]
            if len(part) == (stop - start) * width:
                found[start] = part

    def save() -> None:
        if checkpoint is not None:
            missing = {start: [None] * ((stop - start) * width) for start, stop in groups.items()}
            plan.save(checkpoint, [residue for part in (missing | found).values() for residue in part])

    futures: dict[Future[list[int]], int] = {}
    try:
        for start, stop in groups.items():
            if start not in found:
                task = job.executor.submit(residues_of, plan, start, stop, job.threads_asked, job.memory_limit)
                futures[task] = start
        saved = time.monotonic()
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            if report is not None:
                report(len(found), len(groups))
            if time.monotonic() - saved >= interval:
                save()
                saved = time.monotonic()
    except BaseException:
        for future, start in futures.items():
            if not future.cancel() and future.done() and future.exception() is None:
                found[start] = future.result()
        save()
        raise
    residues = [residue for start in groups for residue in found[start]]
    save()
    return residues
