"""Judgements in a process of their own, killed when they hang."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
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
        self.process: subprocess.Popen[bytes] | None = None

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
        # Not multiprocessing: its children import the main module again, and with it all of torch and Lightning.
        self.pipe, theirs = Pipe()
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env={**os.environ, **path})
        theirs.close()
        self.pipe.send((self.make, self.arguments))
        self.end = weakref.finalize(self, _end, self.process, self.pipe)
        try:
            ready = self.pipe.poll(START_TIMEOUT) and self.pipe.recv()
        except EOFError:
            ready = False
        if not ready:
            self.stop()
            raise RuntimeError(f"The process of {self.make.__module__}.{self.make.__name__} did not start.")
        return self.pipe


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    process.kill()
    process.wait()
    pipe.close()


def serve(pipe: Connection) -> None:
    """Receive what answers, then answer until the pipe closes; runs in the worker's main thread."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not outlive a killed parent
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    make, arguments = pipe.recv()
    answer = make(*arguments)
    pipe.send(True)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(answer(*pipe.recv()))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
