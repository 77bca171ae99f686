"""Progress: what a user may give as `progress`, and the function the core calls."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int, int], object] | None


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Callable[[int, int], object] | None]:
    """Yield the function that hears ``(done, total)``, or None.

    `True` shows a bar on standard error, made by tqdm; a callable is called as it is, about twenty times a second, and
    an exception it raises stops the work and comes back to the caller.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError("a progress bar needs tqdm: pip install 'quincunx[progress]'") from None
        with tqdm(total=1, desc=description, unit=" steps", file=sys.stderr, leave=False) as bar:

            def show(done: int, total: int) -> None:
                if total:
                    bar.total, bar.unit_scale = total, total >= 1_000_000
                    bar.update(done - bar.n)

            yield show
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"`progress` must be None, True or a function of (done, total), got {type(progress).__name__}")
