"""Exact jobs: a plan's residues computed here or by an executor, with a checkpoint, and put together once."""

import os
import time
from collections.abc import Callable, Iterator

from quincunx import _check, _core
from quincunx._executors import Listen, Tasks, memory_of_task, workers
from quincunx._job import Job
from quincunx.errors import CheckpointError, InternalError, TooLargeError, WorkerError

# The method that finds integers without primes: there is nothing to share out.
INTEGERS = "tree decomposition over the integers"
# Checkpoints of a job on an executor, where no interval is given, take this share of its time at the most.
_SAVING = 0.05


def solve(make_plan: Callable[[Job], _core.ExactPlan], description: str, job: Job) -> tuple[list[int], _core.ExactPlan]:
    """Return the integers of a job and its plan.

    A checkpoint of an executor's job can be gone on with here, and the other way round.
    """
    plan = _plan(make_plan, job)
    resumed = job.checkpoint is not None and os.path.exists(job.checkpoint)
    if job.executor is None and job.progress is None:
        return plan.solve(job), plan  # a tenth of the time of a small count is saved
    with job.reporting(description):
        if job.executor is None or plan.method[0] == INTEGERS:
            return plan.solve(job), plan
        residues = _gather(plan, description, job)
    try:
        return plan.combine(residues, job), plan
    except InternalError as error:
        if resumed:
            raise CheckpointError(
                f"checkpoint {job.checkpoint}: held residues of no one number, so it was damaged or forged ({error}); "
                "remove it"
            ) from error
        raise ValueError(f"`residues` must belong to one number: {error}") from error


def _plan(make_plan: Callable[[Job], _core.ExactPlan], job: Job) -> _core.ExactPlan:
    """Plan within the memory of the job, or, where that is a worker's matter, as if there were enough."""
    try:
        return make_plan(job)
    except TooLargeError:
        if job.executor is None or job.memory_limit_asked is not None:
            raise
    return make_plan(Job(threads=job.threads_asked, memory_limit=_check.MOST_MEMORY))


def residues_of(
    plan: _core.ExactPlan, start: int, stop: int, threads: int | None, memory_limit: int | None, listen: Listen
) -> list[int]:
    """Compute the residues of a group of primes: one task of an executor. What is None is resolved where it runs."""
    job = Job(threads=threads, memory_limit=memory_of_task(memory_limit))
    job.report = listen
    return plan.residues(start, stop, job)


def _group(plan: _core.ExactPlan, workers: int) -> int:
    """Return how many primes a task has: those that are done together, fewer where workers would have none."""
    group = plan.side_by_side
    while group > 1 and -(-plan.primes // group) < workers:
        group //= 2
    return group


def _gather(plan: _core.ExactPlan, description: str, job: Job) -> list[int]:
    """Return the residues of all primes, from what a checkpoint holds onwards, one task a group of primes."""
    lock = None if job.checkpoint is None else _core.CheckpointLock(job.checkpoint)
    try:
        return _gather_alone(plan, description, job)
    finally:
        if lock is not None:
            lock.release()


def _gather_alone(plan: _core.ExactPlan, description: str, job: Job) -> list[int]:
    """Return the residues of all primes, once the checkpoint is this job's alone."""
    assert job.executor is not None
    found: dict[int, list[int]] = {}
    width = 1
    if job.checkpoint is not None:
        kept = plan.load(job.checkpoint)
        width = len(kept) // plan.primes
        for prime in range(plan.primes):
            part = [residue for residue in kept[prime * width : (prime + 1) * width] if residue is not None]
            if len(part) == width:
                found[prime] = part

    def keep(group: range, residues: list[int]) -> None:
        each = len(residues) // len(group)
        found.update({prime: residues[i * each : (i + 1) * each] for i, prime in enumerate(group)})

    def save() -> None:
        if job.checkpoint is not None:
            missing: list[int | None] = [None] * width
            plan.save(job.checkpoint, [value for prime in range(plan.primes) for value in found.get(prime, missing)])

    size = _group(plan, workers(job.executor))
    groups = list(_groups([prime for prime in range(plan.primes) if prime not in found], size))
    calls = [(plan, group.start, group.stop, job.threads_asked, job.memory_limit_asked) for group in groups]
    name = "-".join(description.lower().replace(",", "").split())
    digits = len(str(plan.primes - 1))
    tasks = Tasks(job.executor, residues_of, calls, [f"{name}-prime-{group.start:0{digits}d}" for group in groups])
    due, interval = time.monotonic(), job.checkpoint_interval
    try:
        with tasks:
            for place, residues in tasks:
                keep(groups[place], residues)
                if job.report is not None:
                    job.report(len(found), plan.primes)
                if (start := time.monotonic()) >= due:
                    save()
                    end = time.monotonic()
                    due = end + ((end - start) / _SAVING if interval is None else interval)
    except BaseException as error:
        for place, residues in tasks.ended():
            keep(groups[place], residues)
        save()
        if isinstance(error, WorkerError):
            raise WorkerError(f"{error}; {_saved(len(found), plan.primes, job.checkpoint)}") from error
        raise
    save()
    return [residue for prime in range(plan.primes) for residue in found[prime]]


def _groups(primes: list[int], size: int) -> Iterator[range]:
    """Yield ranges of at most so many neighboring primes."""
    start = 0
    for i in range(1, len(primes) + 1):
        if i == len(primes) or i - start == size or primes[i] != primes[i - 1] + 1:
            yield range(primes[start], primes[i - 1] + 1)
            start = i


def _saved(done: int, primes: int, checkpoint: str | None) -> str:
    if checkpoint is None:
        return "nothing is saved, for there is no `checkpoint`"
    return f"{done} of {primes} residues are saved in {checkpoint}, and the same call goes on from there"
