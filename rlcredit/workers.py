"""Judgements in a process of their own, killed when they hang."""

import contextlib
import ctypes
import multiprocessing
import resource
import signal
import sys
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

MEMORY = 8 * 2**30
"""Bytes of address space that a judgement may take."""

START_TIMEOUT = 120.0


class Worker:
    """A process that answers one request at a time.

    Whatever a request does there (hang, grow, die), the caller gets an answer or None within the timeout.

    Args:
        make: importable function; called in the process with ``arguments``, it returns what answers requests.
        arguments: of ``make``.

    """

    def __init__(self, make: Callable[..., Callable[..., Any]], *arguments: Any) -> None:
        self.make, self.arguments = make, arguments
        self.pipe: Connection | None = None
        self.end: Callable[[], Any] | None = None
        self.process: SpawnProcess | None = None

    def ask(self, *request: Any, timeout: float) -> Any:
        """Return the answer, or None if it took longer than ``timeout`` seconds or the process died."""
        pipe = self.pipe or self._start()
        try:
            pipe.send(request)
            if pipe.poll(timeout):
                return pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass  # the process died of the request
        self.stop()
        return None

    def stop(self) -> None:
        """End the process; the next request starts another."""
        if self.end is not None:
            self.end()
        self.pipe = self.end = self.process = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.make, self.arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.end = weakref.finalize(self, _end, self.process, self.pipe)
        try:
            ready = self.pipe.poll(START_TIMEOUT) and self.pipe.recv()
        except EOFError:
            ready = False
        if not ready:
            self.stop()
            raise RuntimeError(f"The process of {self.make.__module__}.{self.make.__name__} did not start.")
        return self.pipe


def _end(process: SpawnProcess, pipe: Connection) -> None:
    process.kill()
    process.join()
    pipe.close()


def _serve(pipe: Connection, make: Callable[..., Callable[..., Any]], arguments: tuple[Any, ...]) -> None:
    """Answer until the pipe closes; runs in the worker's main thread."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not outlive a killed parent
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answer = make(*arguments)
    pipe.send(True)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(answer(*pipe.recv()))
