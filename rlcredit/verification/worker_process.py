"""The worker's side: make the judge, then fork; each copy is locked and answers requests."""

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import pkgutil
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.abc import MetaPathFinder
from typing import Any

from rlcredit.verification import sandbox

REQUEST = struct.Struct("<QdI")
"""Number, processor seconds it may take, bytes that follow; those are pickled, by the trainer for the worker only."""

ANSWER = struct.Struct("<Q?d")
"""Number, whether there is an answer, the answer; one after the other where a request has several answers. Nothing that
a worker says is ever unpickled."""

Answer = float | list[float | None] | None
"""A number, or none; several where the request asks for several."""

GRACE = 1.0
"""Processor seconds after its time at which a worker ends itself, if nothing else has ended it."""


class LateImportError(Exception):
    """A module is imported in the middle of an answer; a locked process cannot read it from disk.

    No ImportError: a library would take the module for missing, and go another way than it does elsewhere.
    """


class LateImportBlocker(MetaPathFinder):
    """Refuse imports in a locked process, so that they count as any other error of an answer."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Refuse the module if it is likely to exist: part of a package that is there, or of Python."""
        top = fullname.partition(".")[0]
        if (top != fullname and top in sys.modules) or top in sys.stdlib_module_names:
            raise LateImportError(fullname)


def serve_worker_copies(descriptor: int, parent: int) -> None:
    """Receive a factory, make the judge, and become a worker on every socket that is sent; runs in the main thread.

    The process itself never sees an answer. A copy takes milliseconds, where imports take seconds.
    """
    _die_with_parent(parent)
    make, arguments = pickle.loads(
        _receive_bytes(descriptor, REQUEST.unpack(_receive_bytes(descriptor, REQUEST.size))[2])
    )
    answer = make(*arguments)
    gc.collect()
    gc.freeze()  # what collections do not touch stays shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies that have ended
    control, own = socket.socket(fileno=descriptor), os.getpid()
    while True:
        sent, workers, _, _ = socket.recv_fds(control, 1, 1)
        if not sent:
            os._exit(0)  # the trainer is gone
        if not os.fork():
            _die_with_parent(own)
            os.dup2(workers[0], descriptor)
            os.close(workers[0])
            serve_requests(descriptor, answer)
        os.close(workers[0])


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not outlive the thread that started it
        if os.getppid() != parent:
            os._exit(0)  # the parent died before the line above


def serve_requests(descriptor: int, answer: Callable[..., Answer]) -> None:
    """Send this process's number, lock it, and answer until the other end closes."""
    _send_answer(descriptor, 0, float(os.getpid()))
    if sandbox.can_lock_process():
        sandbox.lock_process(descriptor)
        sys.meta_path.insert(0, LateImportBlocker())
    elif sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (sandbox.MEMORY, sandbox.MEMORY))
    while True:
        number, seconds, size = REQUEST.unpack(_receive_bytes(descriptor, REQUEST.size))
        arguments = pickle.loads(_receive_bytes(descriptor, size))
        signal.setitimer(signal.ITIMER_PROF, seconds + GRACE)
        answered = answer(*arguments)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _send_answer(descriptor, number, answered)


def _send_answer(descriptor: int, number: int, answer: Answer) -> None:
    scores = answer if isinstance(answer, list) else [answer]
    try:
        os.write(descriptor, b"".join(ANSWER.pack(number, score is not None, score or 0.0) for score in scores))
    except BrokenPipeError:
        os._exit(0)  # the trainer is gone


def _receive_bytes(descriptor: int, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = os.read(descriptor, size - len(received))
        if not part:
            os._exit(0)  # the trainer is gone
        received += part
    return bytes(received)


def import_submodules(package: str, leave_out: Collection[str]) -> None:
    """Import all modules that a library would otherwise import in the middle of an answer.

    Args:
        package: Dotted path of the package; it exists.
        leave_out: Last names of modules, and of packages with all that is in them, that no answer needs.

    """
    found = importlib.import_module(package)
    for module in pkgutil.iter_modules(getattr(found, "__path__", ())):
        if module.name not in leave_out:
            with contextlib.suppress(ImportError):
                import_submodules(f"{package}.{module.name}", leave_out)


def warm_up_judge(answer: Callable[..., Any], requests: Sequence[tuple[Any, ...]]) -> Callable[..., Any]:
    """Return ``answer`` after it has answered some requests, so that its late imports have happened."""
    for request in requests:
        answer(*request)
    return answer


if __name__ == "__main__":
    serve_worker_copies(int(sys.argv[1]), int(sys.argv[2]))
