"""Exact jobs: a plan's residues computed here or by an executor, with a checkpoint, and put together once."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from quincunx import _check, _core
from quincunx._executors import Listen, Tasks, memory_of_task, this_worker, workers
from quincunx._job import Job
from quincunx.errors import CheckpointError, InternalError, TooLargeError, WorkerError

# The method that finds integers without primes: there is nothing to share out.
INTEGERS = "tree decomposition over the integers"
# Nanoseconds of one operation of jobs too large to be tried, one thread, measured on machines of the last years.
RATES = {
    "known": 1.0,
    "product of cosines": 6.0,
    "strips round a cylinder": 4.0,
    "Kasteleyn elimination": 0.08,
    "four Pfaffians": 0.5,
    "even subgraphs": 6.0,
    "frontier": 0.8,
    "tree decomposition": 0.7,
    "set partitions": 0.3,
    INTEGERS: 1.0,
}
# Checkpoints of a job on an executor, where no interval is given, take this share of its time at the most.
_SAVING = 0.05


def solve(make_plan: Callable[[Job], _core.ExactPlan], description: str, job: Job) -> tuple[list[int], _core.ExactPlan]:
    """Return the integers of a job and its plan.

    A checkpoint of an executor's job can be gone on with here, and the other way round.
    """
    plan = _plan(make_plan, job)
    if job.executor is None and _kept_by_parts(plan, job):
        with ThreadPoolExecutor(1) as job.executor, job.reporting(description):
            return _Gathering(plan, description, job).integers(), plan
    if job.executor is None and job.progress is None:
        return plan.solve(job), plan  # a tenth of the time of a small count is saved
    with job.reporting(description):
        if job.executor is None or plan.method[0] == INTEGERS:
            return plan.solve(job), plan
        return _Gathering(plan, description, job).integers(), plan


def forecast(plan: _core.ExactPlan) -> float:
    """Return the seconds of a plan on one thread by the rate of its method."""
    engine, _, work = plan.method
    return work * RATES[engine] * 1e-9 * (1 if engine == INTEGERS else plan.primes)


def log(number: int | Fraction) -> float:
    """Return the natural logarithm of a number above 0, rounded once."""
    over, under = number.as_integer_ratio()
    if abs(over - under) * 10**32 < under:
        return (over - under) / under  # the next term is too small for a double
    shift = 300 + under.bit_length() - over.bit_length()
    scaled = (over << max(shift, 0)) // (under << max(-shift, 0))
    with localcontext(Context(prec=100)):
        return float(Decimal(scaled).ln() - shift * Decimal(2).ln())


def _plan(make_plan: Callable[[Job], _core.ExactPlan], job: Job) -> _core.ExactPlan:
    """Plan within the memory of the job, or, where that is a worker's matter, as if there were enough."""
    try:
        return make_plan(job)
    except TooLargeError:
        if job.executor is None or job.memory_limit_asked is not None:
            raise
    return make_plan(Job(threads=job.threads_asked, memory_limit=_check.MOST_MEMORY))


def _kept_by_parts(plan: _core.ExactPlan, job: Job) -> bool:
    """Say whether there is a checkpoint of this job by an executor whose tasks were parts of a sum."""
    if job.checkpoint is None or plan.parts == 1 or not os.path.exists(job.checkpoint):
        return False
    try:
        plan.load(job.checkpoint, True)
    except CheckpointError:
        return False
    return True


def residues_of(
    plan: _core.ExactPlan,
    start: int,
    stop: int,
    part: int,
    threads: int | None,
    memory_limit: int | None,
    listen: Listen,
) -> tuple[str, list[int]]:
    """Compute a part of the residues of a group of primes, one task of an executor, and say where.

    What is None is resolved where it runs.
    """
    job = Job(threads=threads, memory_limit=memory_of_task(memory_limit))
    job.report = listen
    return this_worker(), plan.residues(start, stop, part, job)


def _group(plan: _core.ExactPlan, workers: int | None, whole: bool = False) -> int:
    """Return how many primes a task has: those that are done together, fewer where workers would have none.

    One worker has all of them if the job may be lost `whole`: half of them may then be enough to find the others.
    """
    if whole and workers == 1 and plan.parts == 1:
        return plan.primes
    group = plan.side_by_side
    while group > 1 and -(-plan.primes // group) * plan.parts < (workers or 1):
        group //= 2
    return group


class _Gathering:
    """The residues of a job on an executor, by prime and part, and where each was computed."""

    def __init__(self, plan: _core.ExactPlan, description: str, job: Job) -> None:
        self._plan, self._job, self._checkpoint = plan, job, job.checkpoint
        self._name = "-".join(description.lower().replace(",", "").split())
        self._found: dict[tuple[int, int], list[int]] = {}
        self._where: dict[tuple[int, int], str] = {}
        self._on_disk = 0

    def integers(self) -> list[int]:
        """Return the integers, from what a checkpoint holds onwards."""
        lock = None if self._checkpoint is None else _core.CheckpointLock(self._checkpoint)
        try:
            self._load()
            self._compute(range(self._plan.primes), self._job.report)
            try:
                integers = self._combined()
            except InternalError as error:
                integers = self._corrected(error)
            self._remove()
        finally:
            if lock is not None:
                lock.release()
        return integers

    def _combined(self) -> list[int]:
        return self._plan.combine(self._values(self._plan.primes), self._job)

    def _corrected(self, contradiction: InternalError) -> list[int]:
        """Trace one wrong residue by a second spare prime, count it again, and return the integers.

        `Plan::wrong_prime` of the core has the proof: of one prime with wrong values it is the right one.
        """
        plan, spare = self._plan, self._plan.primes
        self._compute(range(spare, spare + 1))
        moduli = plan.moduli()
        wrong = plan.wrong_prime(self._values(spare + 1), self._job)
        if wrong is None:
            self._remove()
            raise self._refusal(
                f"{contradiction}; residues modulo two or more of {spare + 1} primes are wrong, so that none can be "
                f"distinguished from the right ones: {self._origins(range(spare + 1))}"
            ) from contradiction
        origin = self._origins(range(wrong, wrong + 1))
        message = f"the residue modulo {moduli[wrong]} was wrong, all others agree; it is counted again: {origin}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        for part in range(plan.parts):
            del self._found[wrong, part]
        self._save()
        self._compute(range(wrong, wrong + 1))
        try:
            return self._combined()
        except InternalError as error:
            self._remove()
            raise self._refusal(
                f"{error}; the residue modulo {moduli[wrong]} was wrong twice, all others agree: first {origin}, then "
                f"{self._origins(range(wrong, wrong + 1))}"
            ) from error

    def _refusal(self, reason: str) -> Exception:
        if self._resumed:
            return CheckpointError(
                f"checkpoint {self._checkpoint}: held residues of no one number, so it was damaged or forged "
                f"({reason}); remove it"
            )
        return ValueError(f"`residues` must belong to one number: {reason}")

    def _origins(self, primes: range) -> str:
        """Say where the residues modulo each of these primes were computed."""
        by_origin: dict[str, list[int]] = {}
        for prime in primes:
            for origin in {self._where[prime, part]: None for part in range(self._plan.parts)}:
                by_origin.setdefault(origin, []).append(prime)
        said = [f"prime {', '.join(map(str, those))} by {origin}" for origin, those in by_origin.items()]
        return "; ".join(said)

    def _compute(self, primes: range, report: Callable[[int, int], object] | None = None) -> None:
        """Compute what is missing of these primes, a task a group of primes and a part."""
        plan, job = self._plan, self._job
        assert job.executor is not None
        size = _group(plan, workers(job.executor), job.checkpoint is None and job.progress is None)
        groups = [
            (group, part)
            for part in range(plan.parts)
            for group in _groups([prime for prime in primes if (prime, part) not in self._found], size)
        ]
        calls = [
            (plan, group.start, group.stop, part, job.threads_asked, job.memory_limit_asked) for group, part in groups
        ]
        tasks = Tasks(job.executor, residues_of, calls, [self._named(group, part) for group, part in groups])
        due, interval = time.monotonic(), job.checkpoint_interval
        try:
            with tasks:
                for place, result in tasks:
                    self._keep(*groups[place], result)
                    if report is not None:
                        report(len(self._found), plan.primes * plan.parts)
                    if (start := time.monotonic()) >= due:
                        self._save()
                        end = time.monotonic()
                        due = end + ((end - start) / _SAVING if interval is None else interval)
        except BaseException as error:
            for place, result in tasks.ended():
                self._keep(*groups[place], result)
            self._save()
            if isinstance(error, WorkerError):
                raise WorkerError(f"{error}; {self._saved()}") from error
            raise

    def _named(self, group: range, part: int) -> str:
        """Name a task."""
        digits, more = len(str(self._plan.primes - 1)), len(str(self._plan.parts - 1))
        of_sum = "" if self._plan.parts == 1 else f"-part-{part:0{more}d}"
        return f"{self._name}-prime-{group.start:0{digits}d}{of_sum}"

    def _keep(self, group: range, part: int, result: tuple[str, list[int]]) -> None:
        (origin, residues), each = result, self._plan.values
        for i, prime in enumerate(group):
            self._found[prime, part], self._where[prime, part] = residues[i * each : (i + 1) * each], origin

    def _values(self, primes: int) -> list[int]:
        """Return the values modulo so many primes, the parts of each added up."""
        if self._plan.parts == 1:
            return [residue for prime in range(primes) for residue in self._found[prime, 0]]
        by_part = [[self._found[prime, part] for part in range(self._plan.parts)] for prime in range(primes)]
        moduli = self._plan.moduli()
        return [
            sum(of_parts) % modulus
            for parts, modulus in zip(by_part, moduli, strict=False)
            for of_parts in zip(*parts, strict=True)
        ]

    @property
    def _resumed(self) -> bool:
        return any(origin == self._of_checkpoint for origin in self._where.values())

    @property
    def _of_checkpoint(self) -> str:
        return f"the checkpoint {self._checkpoint}"

    def _load(self) -> None:
        """Take what a checkpoint holds: residues, or their parts."""
        if self._checkpoint is None:
            return
        plan, parts = self._plan, self._plan.parts
        try:
            saved = plan.load(self._checkpoint, True)
        except CheckpointError:
            if parts == 1:
                raise
            whole = plan.load(self._checkpoint, False)
            # The first part is all there is, the others are nothing.
            saved = [value if part == 0 or value is None else 0 for value in whole for part in range(parts)]
        each = plan.values
        for i in range(plan.primes * parts):
            values = [value for value in saved[i * each : (i + 1) * each] if value is not None]
            if len(values) == each:
                self._found[divmod(i, parts)] = values
                self._where[divmod(i, parts)] = self._of_checkpoint
        self._on_disk = len(self._found)

    def _save(self) -> None:
        """Write what is known of the plan's own primes, unless that is all."""
        units = [(prime, part) for prime in range(self._plan.primes) for part in range(self._plan.parts)]
        known = sum(unit in self._found for unit in units)
        if self._checkpoint is not None and known < len(units):
            missing: list[int | None] = [None] * self._plan.values
            values = [value for unit in units for value in self._found.get(unit, missing)]
            self._plan.save(self._checkpoint, True, values)
            self._on_disk = known

    def _remove(self) -> None:
        """Remove the checkpoint of a job that has ended."""
        if self._checkpoint is not None:
            self._plan.save(self._checkpoint, True, [])

    def _saved(self) -> str:
        if self._checkpoint is None:
            return "nothing is saved, for there is no `checkpoint`"
        what = "residues" if self._plan.parts == 1 else "parts of residues"
        total = self._plan.primes * self._plan.parts
        return (
            f"{self._on_disk} of {total} {what} are saved in {self._checkpoint}, and the same call goes on from there"
        )


def _groups(primes: list[int], size: int) -> Iterator[range]:
    """Yield ranges of at most so many neighboring primes."""
    start = 0
    for i in range(1, len(primes) + 1):
        if i == len(primes) or i - start == size or primes[i] != primes[i - 1] + 1:
            yield range(primes[start], primes[i - 1] + 1)
            start = i
