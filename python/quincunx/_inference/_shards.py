"""Shards: parts of a problem that stay where they are, and whose methods are called together, round after round.

A `Backend` makes a shard of each part by a function of the room's (`Make`), calls a method of all of them, and returns
what they return in their order. What is added up of it must not depend on how many shards there are: whole numbers, and
sums of floating point without rounding (`exact`). A shard that is lost with its worker is heard of as `ShardLost`:
`restore` then makes it anew elsewhere, and takes all of them back to the states that `remember` asked for.
"""

import pickle
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from quincunx import _check, _core
from quincunx._executors import WARN_AFTER, no_worker
from quincunx._types import Array, Floats
from quincunx.errors import TooLargeError

# Seconds between two looks at whether a worker is still there. Not tuned: each asks Dask's scheduler, and what is lost
# is heard of so much later.
_LOOK = 2.0


class Shard(Protocol):
    """A part of a problem; has other methods too, those that `Backend.call` is told to call."""

    def state(self) -> Any:
        """Return a copy of all that a shard made anew of its part needs to continue from here."""

    def restore(self, state: Any) -> None:
        """Continue from a state."""


#: Makes a shard of a part, given how many threads it may use.
Make: TypeAlias = Callable[[Any, int], Shard]


class ShardLost(Exception):
    """A worker is gone, and a shard with it."""


class Backend(Protocol):
    """Where shards are; leaving it as a context closes it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    @property
    def number(self) -> int:
        """How many shards there had best be."""

    def start(self, make: Make, parts: Sequence[Any], sizes: Sequence[int]) -> None:
        """Make a shard of each part, which will take so many bytes where it is; `TooLargeError` before any work.

        A part can have a `block`, something that Dask computes; it is told to `take` it where the shard is.
        """

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards with the same arguments, and return what each of them returns."""

    def each(self, method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards, each with its own arguments."""

    def remember(self, own: object) -> None:
        """Remember the states of all shards as they are, and what the caller needs to go back with them, or nothing."""

    def restore(self) -> Any:
        """Take all shards back to what was remembered last, lost ones made anew; return what the caller gave then."""


class Host(ABC):
    """Something else than a client of Dask or a number where shards can be."""

    @abstractmethod
    def backend(self, threads: int | None) -> Backend:
        """Return it as the backend of one problem."""


def _is_dask(client: object) -> bool:
    module = sys.modules.get("distributed")
    return module is not None and isinstance(client, module.Client)


def current(client: Any) -> AbstractContextManager[Any]:
    """Have a client of Dask be that of all arrays and actors; there may be others, or it may not be the default."""
    return client.as_current() if _is_dask(client) else nullcontext()


def backend(client: Any, threads: int | None) -> Backend:
    """Return where a `client` has shards: a client of Dask, ranks of MPI, or a number of shards in this process."""
    if _is_dask(client):
        if client.asynchronous:
            raise ValueError("`client` must not be asynchronous")
        return DaskActors(client, threads)
    if isinstance(client, (int, np.integer)) and not isinstance(client, bool):
        return Local(_check.whole(client, "client", minimum=1), threads)
    if isinstance(client, Host):
        return client.backend(threads)
    where = "a distributed.Client, MPIShards or a number of shards"
    raise TypeError(f"`client` must be {where}, got {type(client).__name__}")


def total(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays of whole numbers, in integers of eight bytes."""
    first, *others = parts
    found = first.astype(np.int64)
    for other in others:
        found += other.astype(np.int64, copy=False)
    return found


def exact(parts: Iterable[Array]) -> Floats:
    """Return the sums, rounded once, of sums without rounding that shards have, each of shape (n_sums, limbs)."""
    return _core.exact_sums(total(parts))


def narrow(counts: Array) -> Array:
    """Return counts in the smallest integers that hold them, to be sent."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


class Local:
    """Shards in this process, one after the other: the reference, and a way to try parts out."""

    def __init__(self, number: int, threads: int | None) -> None:
        self.number, self._threads = number, _check.threads(threads)
        self._shards: list[Shard] = []
        self._saved: tuple[list[Any], Any] = ([], None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._shards, self._saved = [], ([], None)

    def start(self, make: Make, parts: Sequence[Any], sizes: Sequence[int]) -> None:
        """Make a shard of each part."""
        if (needed := sum(sizes)) > (limit := _check.available_memory()):
            raise TooLargeError(f"all shards need about {needed} bytes, and {limit} are available", needed, limit)
        self._shards = [make(part, self._threads) for part in parts]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards."""
        return [getattr(shard, method)(*arguments) for shard in self._shards]

    def each(self, method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards, each with its own arguments."""
        return [getattr(shard, method)(*own) for shard, own in zip(self._shards, arguments, strict=True)]

    def remember(self, own: object) -> None:
        """Remember the states of all shards."""
        self._saved = self.call("state"), own  # in one step: an interrupt finds it wholly done or not at all

    def restore(self) -> Any:
        """Take all shards back."""
        states, own = self._saved
        self.each("restore", [(state,) for state in states])
        return own


def _sendable(error: Exception) -> Exception:
    """Return an exception, or one that says the same where it would not arrive: whoever waits for it would go on."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


class Remote:
    """A shard in another process, or what its making raised; an exception of it is a result.

    Of the states that it was to remember it has the last two: the last one may not have been heard of by all shards.
    """

    def __init__(self, make: Callable[[], Shard]) -> None:
        self._states: dict[int, Any] = {}
        self._shard: Any = None
        self.failed: Exception | None = None
        try:
            self._shard = make()
        except Exception as error:
            self.failed = _sendable(error)

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Call a method of the shard, or one of the two below; say whether all was well, and what came of it."""
        try:
            if self.failed is not None:
                raise self.failed
            where = self if method in ("remember", "restore") else self._shard
            return True, getattr(where, method)(*arguments)
        except Exception as error:
            return False, _sendable(error)

    def remember(self, number: int) -> Any:
        """Keep a copy of the state under a number, and return it."""
        before = {number - 1: self._states[number - 1]} if number - 1 in self._states else {}
        self._states = before | {number: self._shard.state()}
        return self._states[number]

    def restore(self, number: int, state: Any = None) -> None:
        """Go back to the copy under a number, or to a state that is given."""
        if state is not None:
            self._states = {number: state}
        self._shard.restore(self._states[number])


class _Actor:
    """A shard where Dask has it: what crosses is bytes, for arrays that Dask hands on may be misaligned."""

    def __init__(self, make: Make, part: bytes, threads: int | None, block: Any) -> None:
        own = sys.modules["distributed"].get_worker().state.nthreads

        def made() -> Shard:
            whole = pickle.loads(part)
            if block is not None:
                whole.take(block)
            return make(whole, own if threads is None else threads)

        self._remote = Remote(made)

    def call(self, method: str, arguments: bytes) -> bytes:
        """Call a method of the shard."""
        try:
            return pickle.dumps(self._remote.call(method, pickle.loads(arguments)), 5)
        except Exception as error:
            return pickle.dumps((False, error), 5)


class DaskActors:
    """Shards as actors of Dask, one for each worker; states are remembered by the workers and by the client."""

    def __init__(self, client: Any, threads: int | None) -> None:
        self._client, self._threads = client, threads
        self._make: Make
        self._parts: Sequence[Any] = ()
        self._sizes: Sequence[int] = ()
        self._actors: list[Any] = []
        self._places: list[str | None] = []
        self._saved: tuple[int, list[Any], Any] = (0, [], None)
        self._spread = 0  # workers with shards, while none was lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._actors = []  # which lets the workers forget them

    @property
    def number(self) -> int:
        """One shard for each worker."""
        return max(1, len(self._limits()))

    def _limits(self) -> dict[str, int]:
        """Return the bytes that each worker may use; none are there without a scheduler."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            here = self._client.nthreads()
        except (OSError, TimeoutError):
            return {}
        return {address: workers.get(address, {}).get("memory_limit") or sys.maxsize for address in sorted(here)}

    def start(self, make: Make, parts: Sequence[Any], sizes: Sequence[int]) -> None:
        """Make a shard of each part, the largest first, where most memory is left."""
        self._make, self._parts, self._sizes = make, parts, sizes
        self._actors, self._places = [None] * len(parts), [None] * len(parts)
        self._spread = 0
        self._wait()
        self._place(range(len(parts)))

    def _place(self, lost: Iterable[int]) -> None:
        """Make shards where most memory is left."""
        left = self._limits()
        for place, size in zip(self._places, self._sizes, strict=True):
            if place in left:
                left[place] -= size
        number = {address: self._places.count(address) for address in left}
        places: dict[int, str] = {}
        for i in sorted(lost, key=lambda i: -self._sizes[i]):
            address = max(left, key=lambda address: (-number[address], left[address], address))
            if self._sizes[i] > left[address]:
                address = max(left, key=lambda address: left[address])
            if (needed := self._sizes[i]) > (limit := left[address]):
                raise TooLargeError(
                    f"a shard needs about {needed} bytes, and no worker has more than {limit} left: give more workers, "
                    "or more memory to each",
                    needed,
                    max(0, limit),
                )
            left[address] -= needed
            number[address] += 1
            places[i] = address
        made = {}
        for i, address in places.items():
            part = self._client.scatter(pickle.dumps(self._parts[i], 5), workers=[address], hash=False)
            block = getattr(self._parts[i], "block", None)
            if block is not None:
                block = self._client.compute(block, workers=[address], allow_other_workers=True)
            made[i] = self._client.submit(
                _Actor, self._make, part, self._threads, block, actor=True, workers=[address], pure=False
            )
            self._places[i] = address
        self._spread = max(self._spread, len(set(self._places) - {None}))
        for i, future in made.items():
            self._actors[i] = self._result(future, i)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards; the arguments are packed once."""
        packed = pickle.dumps(arguments, 5)
        return self._all(method, [packed] * len(self._actors))

    def each(self, method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards, each with its own arguments."""
        return self._all(method, [pickle.dumps(own, 5) for own in arguments])

    def _all(self, method: str, packed: Sequence[bytes]) -> list[Any]:
        futures = []
        for i, own in enumerate(packed):
            try:
                futures.append(self._actors[i].call(method, own))
            except RuntimeError as error:
                self._places[i] = None
                raise ShardLost(str(error)) from error
        found = []
        for i, future in enumerate(futures):
            well, result = pickle.loads(self._result(future, i))
            if not well:
                raise result
            found.append(result)
        return found

    def _result(self, future: Any, i: int) -> Any:
        """Wait for something of a shard for as long as its worker is there."""
        while True:
            try:
                return future.result(timeout=_LOOK)
            except TimeoutError:
                if self._places[i] not in self._limits():
                    raise ShardLost(f"the worker {self._places[i]} is gone") from None
            except Exception as error:  # of Dask's; it may say so of a worker that is there again
                self._places[i] = None
                raise ShardLost(f"{type(error).__name__}: {error}") from error

    def remember(self, own: object) -> None:
        """Remember the states of all shards, there and here."""
        number = self._saved[0] + 1
        self._saved = number, self.call("remember", number), own

    def restore(self) -> Any:
        """Make what is lost anew; the others go back to their own copies."""
        self._wait()
        here = self._limits()
        lost = [i for i, place in enumerate(self._places) if place not in here]
        for i in lost:
            self._actors[i] = self._places[i] = None
        self._place(lost)
        number, states, own = self._saved
        self.each("restore", [(number, state if i in lost else None) for i, state in enumerate(states)])
        return own

    def _wait(self) -> None:
        """Wait for as many workers as there are shards, or were: some time for the last, and longer for the first."""
        start, warned = time.monotonic(), False
        wanted = max(1, self._spread)
        while (found := len(self._limits())) < wanted:
            seconds = time.monotonic() - start
            if found and seconds >= WARN_AFTER:
                return
            warned = no_worker(seconds, f"{len(self._parts)} shards to place", warned)
            time.sleep(0.1)
