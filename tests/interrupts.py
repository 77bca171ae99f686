"""An interrupt at a given moment of a call, and how long its answer takes."""

import contextlib
import gc
import signal
import threading
import time

from quincunx.errors import TooLargeError


@contextlib.contextmanager
def uncollected():
    """Run a block, or a decorated test, without the garbage collector.

    An interrupt that arrives in a callback of the collector is lost, and Hypothesis has one: Python says so, no more.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@uncollected()
def interrupted_after(call, delay):
    """Seconds from an interrupt to its answer, and those of the processor; None if the call was done before."""
    main, sent, done = threading.main_thread().ident, [], threading.Event()

    def fire():
        if not done.wait(delay):
            sent.extend((time.perf_counter(), time.process_time()))
            signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=fire)
    thread.start()
    try:
        with contextlib.suppress(TooLargeError, ValueError):  # the end of some
            call()
        done.set()
        thread.join()  # an interrupt that was late arrives here
        time.sleep(0)
    except KeyboardInterrupt:
        answered = time.perf_counter(), time.process_time()
        done.set()
        thread.join()
        return answered[0] - sent[0], answered[1] - sent[1]
    finally:
        done.set()
    return None


class Stopped(Exception):
    """Raised by the progress function of a test."""


def stop_after(share):
    """Return a progress function that stops a job once this share of it is done."""

    def progress(done, total):
        if done > share * total:
            raise Stopped

    return progress
