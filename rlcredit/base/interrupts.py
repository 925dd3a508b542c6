"""Interrupts by signals, raised also if they come where Python cannot raise anything."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

RETRY = 0.02
"""Seconds after which an interrupt that Python has swallowed is raised again."""


@contextmanager
def retry_swallowed(interrupt: type[BaseException], raise_again: Callable[[BaseException], None]) -> Iterator[None]:
    """Raise an interrupt again that came in a finalizer, a callback of a weak reference or of the garbage collector.

    Python goes on after such an exception and prints a traceback; nothing is printed here. SIGALRM and its timer are
    used, once an interrupt has been swallowed.

    Args:
        interrupt: Kind of exception that a signal handler raises.
        raise_again: What is called soon afterwards with the swallowed exception, from a signal handler.

    """
    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGALRM)

    def retry(unraisable: "sys.UnraisableHookArgs") -> None:
        swallowed = unraisable.exc_value
        if not isinstance(swallowed, interrupt) or threading.current_thread() is not threading.main_thread():
            hook(unraisable)
            return
        signal.signal(signal.SIGALRM, lambda *_: raise_again(swallowed))
        signal.setitimer(signal.ITIMER_REAL, RETRY)

    sys.unraisablehook = retry
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if signal.getsignal(signal.SIGALRM) is not handler:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)


@contextmanager
def raise_interrupts(*numbers: signal.Signals) -> Iterator[None]:
    """Raise :class:`KeyboardInterrupt` with the number of a signal, so that what was begun is taken back.

    A second one of its kind does not wait for that. A signal that the process was told to ignore stays ignored.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _raise_interrupt)
    try:
        with retry_swallowed(KeyboardInterrupt, _raise_same):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt(number)


def _raise_same(swallowed: BaseException) -> NoReturn:
    raise swallowed.with_traceback(None)
