"""The worker's side: make the judge, then fork; each copy is locked and answers requests."""

import contextlib
import gc
import importlib
import io
import os
import pickle
import pkgutil
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from typing import Any

from rlcredit.verification import sandbox
from rlcredit.verification.fault_attribution import describe_error
from rlcredit.verification.process_tree import adopt_orphans, set_death_signal, watch_parent, watch_worker
from rlcredit.verification.worker_replies import Outcome, Reply, pack_reply

REQUEST_HEADER = struct.Struct("<QdI")
"""Number, processor seconds it may take, bytes that follow; those are pickled, by the trainer for the worker only."""

Answer = float | None | Iterator[tuple[int, Reply]]
"""A number, or none; replies with their places where a request asks for several."""

Make = Callable[..., Callable[..., Answer]]
"""Function that makes a judge in the process that asks it."""

WORKER_GRACE_SECONDS = 1.0
"""Seconds after its time at which a worker ends itself, if nothing else has ended it."""


class DiscardedText(io.TextIOBase):
    """A stream that keeps nothing: a locked process may not write, and an answer that prints is not at fault."""

    def writable(self) -> bool:
        """Whether text may be written: always."""
        return True

    def write(self, text: str) -> int:
        """Discard the text, and return the number of its characters."""
        return len(text)


class LateImportBlocker(MetaPathFinder):
    """Refuse imports in a locked process, so that they count as any other error of an answer."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Refuse the module if it is likely to exist: part of a package that is there, or of Python."""
        top = fullname.partition(".")[0]
        if (top != fullname and top in sys.modules) or top in sys.stdlib_module_names:
            raise sandbox.LateImportError(fullname)


def serve_worker_copies(descriptor: int, parent: int) -> None:
    """Receive a factory, and become a worker on every socket that is sent; runs in the main thread.

    A locked judge is made once, before its copies, and its process never sees an answer: a copy takes milliseconds,
    where imports take seconds. What is not locked is made by its one worker, and this process watches that.
    """
    control, own_pid = socket.socket(fileno=descriptor), os.getpid()
    sandbox.keep_one_file(descriptor)
    adopt_orphans()
    make, arguments, is_locked = pickle.loads(
        _receive_bytes(descriptor, REQUEST_HEADER.unpack(_receive_bytes(descriptor, REQUEST_HEADER.size))[2])
    )
    if is_locked:
        sys.stdout = sys.stderr = DiscardedText()  # before the judge is imported, which may keep them
    set_death_signal(parent, signal.SIGKILL if is_locked else signal.SIGTERM)
    prepare = partial(_make_judge, make, arguments)
    if is_locked:
        if not (watcher := os.fork()):
            watch_parent(own_pid, control)
        judge = prepare()
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)
        prepare = lambda: judge  # noqa: E731  (a copy has it already)
        gc.collect()
        gc.freeze()  # what collections do not touch stays shared
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies that have ended
    while True:
        message, workers, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            os._exit(0)  # the trainer is gone
        if not (worker := os.fork()):
            os.setsid()
            set_death_signal(own_pid)
            os.dup2(workers[0], descriptor)
            os.close(workers[0])
            serve_requests(descriptor, prepare, is_locked)
        os.close(workers[0])
        if not is_locked:
            watch_worker(worker, control)


def _make_judge(make: Make, arguments: Sequence[Any]) -> Callable[..., Answer] | str:
    """Return the judge, or what is wrong with it."""
    own_pid = os.getpid()
    try:
        judge = make(*arguments)
    except BaseException as error:  # noqa: BLE001  (importing runs the user's code)
        return describe_error(error)
    if os.getpid() != own_pid:
        os._exit(0)  # a process that importing has forked
    return judge


def serve_requests(descriptor: int, prepare: Callable[[], Callable[..., Answer] | str], locked: bool) -> None:
    """Say this process's number, get the judge, lock the process, and answer until the other end closes.

    Args:
        descriptor: Connection to the trainer.
        prepare: Function that returns the judge, or what is wrong with it.
        locked: Whether the process is locked before its first request.

    """
    own_pid = os.getpid()
    _send_reply(descriptor, 0, 0, Reply([float(own_pid)]))
    if not locked:
        adopt_orphans()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    judge = prepare()
    if isinstance(judge, str):
        _send_reply(descriptor, 0, 1, Reply((), judge, Outcome.BROKEN))
        os._exit(0)
    if locked and sandbox.can_lock_process():
        sandbox.lock_process(descriptor)
        sys.meta_path.insert(0, LateImportBlocker())
    elif locked and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (sandbox.MAX_WORKER_BYTES, sandbox.MAX_WORKER_BYTES))
    _send_reply(descriptor, 0, 1, Reply([float(getattr(judge, "is_asynchronous", False))]))
    while True:
        number, seconds, size = REQUEST_HEADER.unpack(_receive_bytes(descriptor, REQUEST_HEADER.size))
        arguments = pickle.loads(_receive_bytes(descriptor, size))
        signal.setitimer(signal.ITIMER_PROF, (seconds + WORKER_GRACE_SECONDS) * locked)
        answer = judge(*arguments)
        replies = answer if isinstance(answer, Iterator) else [(0, Reply([answer]))]
        for place, reply in replies:
            if not locked and os.getpid() != own_pid:
                os._exit(0)  # a process that the function has forked, and that came back from it
            _send_reply(descriptor, number, place, reply)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _send_reply(descriptor: int, number: int, place: int, reply: Reply) -> None:
    content = pack_reply(number, place, reply)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    except OSError:
        os._exit(0)  # the trainer is gone, or the function has closed what is not its own


def _receive_bytes(descriptor: int, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = os.read(descriptor, size - len(content))
        if not part:
            os._exit(0)  # the trainer is gone
        content += part
    return bytes(content)


def import_submodules(package: str, leave_out: Collection[str]) -> None:
    """Import all modules that a library would otherwise import in the middle of an answer.

    Args:
        package: Dotted path of the package; it exists.
        leave_out: Last names of modules, and of packages with all that is in them, that no answer needs.

    """
    root = importlib.import_module(package)
    for module in pkgutil.iter_modules(getattr(root, "__path__", ())):
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
