"""Long calls of compiled libraries that hear no signal, where the caller's thread can be interrupted."""

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Result = TypeVar("Result")
P = ParamSpec("P")

# Seconds between two moments at which Python looks at its signals.
_LOOK = 0.05
# Entries of an array that takes tens of milliseconds at the most.
_SMALL = 300 * 300
# The name of the threads that calls are made on.
_NAME = "quincunx-aside"


def aside(function: Callable[P, Result], *arguments: P.args, **how: P.kwargs) -> Result:
    """Call a function of arrays apart (see `apart`) if one of them is large; for small ones as it is."""
    sizes = [getattr(argument, "size", 0) for argument in arguments]
    return apart(function, *arguments, **how) if max(sizes, default=0) > _SMALL else function(*arguments, **how)


def apart(function: Callable[P, Result], *arguments: P.args, **how: P.kwargs) -> Result:
    """Call a function on a thread of its own and wait for it where an interrupt is answered.

    For functions that let the interpreter go while they work, such as those of LAPACK. After an interrupt the work goes
    on unseen to its end, and its result is dropped: there is no other way to stop it. The process ends after that, or
    at the next interrupt. Off the main thread, which alone hears signals, the function is called as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments, **how)
    outcome: list[Result] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(function(*arguments, **how))
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name=_NAME, daemon=True).start()
    while not done.wait(_LOOK):
        pass
    if failure:
        raise failure[0]
    return outcome[0]


@atexit.register
def _leave() -> None:
    """Wait for calls under way: libraries that are unloaded in the middle of one wait for themselves, for ever.

    A process that an interrupt ends does not wait, nor does one that is interrupted again.
    """
    under_way = [thread for thread in threading.enumerate() if thread.name == _NAME and thread.is_alive()]
    if not under_way:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # closed, or none at all
                stream.flush()
        os.kill(os.getpid(), signal.SIGINT)
    for thread in under_way:
        thread.join()
