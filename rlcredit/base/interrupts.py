"""Interrupts by signals: raised also where Python cannot raise anything, and never by the end of a process."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from opcode import opmap
from types import FrameType
from typing import NoReturn

from rlcredit.base.exit_status import signal_exit_status
from rlcredit.base.process_end import end_process

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end any command."""

RETRY_SECONDS = 0.02
"""Seconds after which an interrupt that Python has swallowed is raised again."""


class SignalInterrupt(BaseException):
    """A signal has told the run to stop; no ``except Exception`` catches this.

    Args:
        number: Number of the signal.

    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.status = signal_exit_status(number)


def read_signal_number(interrupt: BaseException) -> int:
    """Return the number of the signal behind a :class:`SignalInterrupt`, or behind a :class:`KeyboardInterrupt`."""
    return interrupt.number if isinstance(interrupt, SignalInterrupt) else next(iter(interrupt.args), signal.SIGINT)


def is_signal(error: BaseException) -> bool:
    """Whether a signal has raised an exception; the code that was running may have raised it itself, by ``raise``.

    Example:
        >>> is_signal(SignalInterrupt(15)), is_signal(KeyboardInterrupt(2)), is_signal(SystemExit(2))
        (True, True, False)

    """
    if not isinstance(error, KeyboardInterrupt) or error.args:
        return isinstance(error, SignalInterrupt) or (
            isinstance(error, KeyboardInterrupt) and error.args[0] in ENDING_SIGNALS
        )
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_code.co_code[trace.tb_lasti] != opmap["RAISE_VARARGS"]


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
        error = unraisable.exc_value
        if not isinstance(error, interrupt) or threading.current_thread() is not threading.main_thread():
            hook(unraisable)
            return
        signal.signal(signal.SIGALRM, lambda *_: raise_again(error))
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)

    sys.unraisablehook = retry
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if signal.getsignal(signal.SIGALRM) is not handler:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)


def await_retry() -> None:
    """Let an interrupt be raised that is about to be raised again, before SIGALRM has another handler."""
    seconds, _ = signal.getitimer(signal.ITIMER_REAL)
    if seconds:
        time.sleep(seconds + RETRY_SECONDS)


@contextmanager
def raise_interrupts(*numbers: signal.Signals, last: bool = False) -> Iterator[None]:
    """Raise :class:`KeyboardInterrupt` with the number of a signal, so that what was begun is taken back.

    A second one, of any of these kinds, ends the process without waiting for that. A signal that the process was told
    to ignore stays ignored.

    Args:
        numbers: Signals that are heeded.
        last: Whether the process ends afterwards: then nothing disturbs its end, and it ends with its own status.

    """
    handlers = {number: signal.getsignal(number) for number in numbers}
    active_numbers = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        for signal_number in active_numbers:
            signal.signal(signal_number, _exit_at_once)
        raise KeyboardInterrupt(number)

    try:
        for number in active_numbers:
            signal.signal(number, interrupt)
        with retry_swallowed(KeyboardInterrupt, _raise_same):
            yield
    finally:
        for number in active_numbers:
            signal.signal(number, signal.SIG_IGN if last else handlers[number])


def _exit_at_once(number: int, frame: FrameType | None) -> NoReturn:
    end_process(signal_exit_status(number))


def _raise_same(error: BaseException) -> NoReturn:
    raise error.with_traceback(None)
