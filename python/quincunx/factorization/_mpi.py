"""Shards on the ranks of an MPI program: each serves those that lie with it until the first one has done its work.

A round is a broadcast of what is called, a scatter where shards have arguments of their own, and a gather of what they
return. All of the first rank's go through one thread, so that a Ctrl-C between two of them leaves none out, and the
next one waits until the last has ended. MPI ends all ranks where one is lost: nothing is made anew here.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from quincunx import _check
from quincunx._inference._shards import Host, Make, Remote
from quincunx.errors import TooLargeError

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

#: What is called: the method, arguments of all shards, and whether each has its own.
_Message: TypeAlias = tuple[str, tuple[Any, ...], bool]
#: What a rank answers for each of its shards: number, whether all was well, and the result or the exception.
_Answer: TypeAlias = list[tuple[int, bool, Any]]


class MPIShards:
    """The ranks of an MPI program, which have a part of the rows of a fit each: a context that all ranks enter.

    The first rank gets something that `fit` takes for a `client`. The others get None, and that only when the first one
    leaves: until then they work for it. The draws of chains are those of one process, bit for bit.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        It is duplicated, so that no other message gets between.

    Raises
    ------
    TypeError
        If `comm` is not a communicator.

    Notes
    -----
    Started as ``mpiexec -n 128 python program.py``, or by ``srun``. What is sent out goes along MPI's trees. A rank
    that is lost ends the program, as MPI has it; ``fit(checkpoint=)`` goes on from the last one, with other ranks if
    need be. Ranks of one machine share its memory, which is looked at before a fit, and its processors: set
    ``threads=``, or have MPI bind each to some.

    Examples
    --------
    ::

        from mpi4py import MPI
        from quincunx.factorization import MPIShards, PoissonFactorization

        model = PoissonFactorization(50, threads=4, random_state=1)
        with MPIShards(MPI.COMM_WORLD) as client:
            if client is not None:
                model.fit(["part-000.npz", "part-001.npz"], client=client, checkpoint="fit.ckpt").save("model.npz")
    """

    def __init__(self, comm: Intracomm) -> None:
        if not all(hasattr(comm, name) for name in ("bcast", "scatter", "gather", "Dup")):
            raise TypeError(f"`comm` must be a communicator of mpi4py, got {type(comm).__name__}")
        self._comm = comm
        self._first: _FirstRank | None = None

    def __enter__(self) -> Host | None:
        comm = self._comm.Dup()
        if comm.rank == 0:
            self._first = _FirstRank(comm)
            return self._first
        # An interrupt is for the first rank, which says what becomes of it.
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
        try:
            rank = _Rank(comm)
            while rank.answer() is not None:
                pass
        finally:
            if main:
                signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
            comm.Free()
        return None

    def __exit__(self, *error: object) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None


class _Rank:
    """What a rank has: its shards, by their numbers."""

    def __init__(self, comm: Intracomm) -> None:
        self._comm = comm
        self._shards: dict[int, Remote] = {}

    def answer(self, message: _Message | None = None, own: list[Any] | None = None) -> list[_Answer] | None:
        """Take part in a round, or hear that there are no more: None.

        The first rank has the message and the shards' own arguments, and gets the answers. What fails on the way would
        leave the other ranks waiting, and ends the program.
        """
        try:
            if (message := self._comm.bcast(message)) is None:
                return None
            method, arguments, each_its_own = message
            given = self._comm.scatter(own) if each_its_own else None
            return self._comm.gather(self._call(method, arguments, given)) or []
        except BaseException:
            traceback.print_exc()
            self._comm.Abort(1)
            raise

    def _call(self, method: str, arguments: tuple[Any, ...], own: list[tuple[int, Any]] | None) -> _Answer:
        """Call a method of all shards, or make them."""
        if method == "start":
            make, threads = arguments
            return self._start(make, threads, own or [])
        calls = [(i, arguments) for i in self._shards] if own is None else own
        answers = [(i, *self._shards[i].call(method, given)) for i, given in calls]
        if method == "remember":  # where it is: nobody else could make it anew
            answers = [(i, well, None if well else error) for i, well, error in answers]
        return answers

    def _start(self, make: Make | None, threads: int | None, own: list[tuple[int, Any]]) -> _Answer:
        """Make the shards of a fit in the place of those before; without `make` there are none."""
        self._shards = {}
        if make is None:
            return []
        from mpi4py.MPI import COMM_TYPE_SHARED

        machine, limit = self._comm.Split_type(COMM_TYPE_SHARED), _check.available_memory()
        needed = machine.allreduce(sum(size for _, (_, size) in own))
        words = (
            f"shards of the ranks of a machine need about {needed} bytes, and {limit} are available: give more machines"
        )
        machine.Free()
        if needed > limit:
            return [(i, False, TooLargeError(words, needed, limit)) for i, _ in own]
        self._shards = {i: Remote(partial(make, part, _check.threads(threads))) for i, (part, _) in own}
        return [(i, shard.failed is None, shard.failed) for i, shard in self._shards.items()]


class _FirstRank(Host):
    """The first rank, which has all ranks do something."""

    def __init__(self, comm: Intracomm) -> None:
        self.number = int(comm.size)
        self._comm, self._rank = comm, _Rank(comm)
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "quincunx-mpi")

    def backend(self, threads: int | None) -> MPIRanks:
        """Return the ranks as the backend of a fit."""
        return MPIRanks(self, threads)

    def close(self) -> None:
        """Let the other ranks go on with the program."""
        self._run(self._rank.answer)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        self._comm.Free()

    def round(self, method: str, arguments: tuple[Any, ...], own: Sequence[Any] | None = None) -> list[Any]:
        """Have a method called of all shards, and return what each of them returns.

        With `own`, shard i, which is with rank i modulo their number, has its own arguments.
        """
        answers = self._run(self._ask, (method, arguments, own is not None), own)
        found = sorted((answer for of_rank in answers for answer in of_rank), key=lambda answer: answer[0])
        for _, well, result in found:
            if not well:
                raise result
        return [result for _, _, result in found]

    def _run(self, function: Any, *arguments: Any) -> Any:
        if self._thread is None:
            raise ValueError("`client` must be used before the context of MPIShards is left")
        return self._thread.submit(function, *arguments).result()

    def _ask(self, message: _Message, own: Sequence[Any] | None) -> Any:
        numbered = list(enumerate(own or ()))
        return self._rank.answer(message, [numbered[rank :: self.number] for rank in range(self.number)])


class MPIRanks:
    """All ranks as the backend of one fit."""

    def __init__(self, first: _FirstRank, threads: int | None) -> None:
        self._first, self._threads = first, threads
        self.number = first.number
        self._saved: tuple[int, Any] = (0, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._first.round("start", (None, None))

    def start(self, make: Make, parts: Sequence[Any], sizes: Sequence[int]) -> None:
        """Make a shard of each part."""
        self._first.round("start", (make, self._threads), list(zip(parts, sizes, strict=True)))

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards."""
        return self._first.round(method, arguments)

    def each(self, method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards, each with its own arguments."""
        return self._first.round(method, (), list(arguments))

    def remember(self, own: Any) -> None:
        """Remember the states of all shards, where they are."""
        number = self._saved[0] + 1
        self._first.round("remember", (number,))
        self._saved = number, own

    def restore(self) -> Any:
        """Take all shards back."""
        number, own = self._saved
        self._first.round("restore", (number,))
        return own
