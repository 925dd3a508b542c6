"""What a file of somebody else's makes a library do, tried where it can be ended."""

import contextlib
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRIAL_MEMORY = 4
"""GiB that a trial may take, beyond what is taken already."""

_NO_MEMORY = 3
"""Exit status of a trial."""


def find_resource_excess(attempt: Callable[[], Any], seconds: float) -> str | None:
    """Name the resource of which an attempt takes too much; None if there is none.

    It is made in a copy of this process, which the system ends in the middle of whatever library. What it returns or
    raises is lost: whoever makes it in earnest gets that.

    Args:
        attempt: Function to try; it needs no other thread than its own.
        seconds: Processor seconds that the attempt may take, and three times as many by the clock.

    Example:
        >>> find_resource_excess(lambda: 1 + 1, 1.0), find_resource_excess(lambda: [][0], 1.0)
        (None, None)
        >>> find_resource_excess(lambda: bytes(2**40), 1.0)
        'more than 4 GiB of memory'

    """
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # there may be other threads
        copy = os.fork()
    if not copy:
        _run_attempt_and_exit(attempt, seconds)
    _, status = os.waitpid(copy, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
        return f"longer than {seconds:g} s"
    return f"more than {TRIAL_MEMORY} GiB of memory" if status else None


def _run_attempt_and_exit(attempt: Callable[[], Any], seconds: float) -> None:
    """Make the attempt in silence, and end this process."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 3 * seconds)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(nowhere, standard)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + TRIAL_MEMORY * 2**30
        with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    status = 0
    try:
        attempt()
    except Exception as error:  # noqa: BLE001  (raised in earnest later, but for this)
        status = _NO_MEMORY * (MemoryError in (type(error), type(error.__context__)))
    finally:
        os._exit(status)
