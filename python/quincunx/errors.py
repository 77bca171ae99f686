"""What quincunx raises beyond Python's own exceptions."""

from concurrent.futures import BrokenExecutor

__all__ = [
    "CheckpointError",
    "ConvergenceError",
    "ConvergenceWarning",
    "InsecureGuaranteeWarning",
    "InternalError",
    "MisfitWarning",
    "TooLargeError",
    "WorkerError",
]


#: A forecast of the core that ended before it was counted out: all that is known is that the limit is passed.
_UNCOUNTED = 2**128 - 1


class TooLargeError(MemoryError):
    """A job needs more memory than it may use; raised before any of it is allocated.

    Attributes
    ----------
    needed : int
        Bytes the job would need; at the least, where a forecast ends as soon as it is past the limit.
    limit : int
        Bytes it may use.
    """

    def __init__(self, message: str, needed: int = 0, limit: int = 0) -> None:
        if needed >= _UNCOUNTED:
            message, needed = message.replace(str(needed), f"more than {limit}"), limit + 1
        super().__init__(message)
        self.needed = needed
        self.limit = limit

    def __reduce__(self) -> tuple[type, tuple[str, int, int]]:
        return type(self), (str(self), self.needed, self.limit)


class CheckpointError(OSError):
    """A checkpoint cannot be read or written, or belongs to another job."""


class ConvergenceError(ArithmeticError):
    """An iteration ended without reaching its tolerance, so there is no answer to give."""


class ConvergenceWarning(UserWarning):
    """An iteration ended early; the answer is there, less accurate than asked for."""


class InsecureGuaranteeWarning(UserWarning):
    """A guarantee was stated whose delta is so large that it guarantees nothing."""


class MisfitWarning(UserWarning):
    """A model does not fit its data; what it says of them is off by more than it says itself."""


class WorkerError(BrokenExecutor):
    """The workers of an executor are gone, or a task ended one after the other; says what is saved of the job."""


class InternalError(RuntimeError):
    """A result contradicts its own check: a bug in quincunx or a fault of the machine, never of the input."""
