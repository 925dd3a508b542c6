"""Worker processes; a request takes bounded time and reads a bounded, numbered answer, whatever the worker does."""

import contextlib
import os
import pickle
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlcredit.verification.worker_process import ANSWER, REQUEST, Answer

START_TIMEOUT = 120.0
"""Seconds."""

PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONHOME")
"""Environment variables of the trainer that reach a worker: no token, no password, no home."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_LONGEST_LOOK = 0.5
"""Seconds between two looks at a worker that count as waiting; beyond them the trainer itself stood still."""


class WorkerError(Exception):
    """The process died, or sent something other than an answer."""


class RequestTimeoutError(WorkerError):
    """The process has used up the time of its request, computing or asleep."""


class StalledWorkerError(WorkerError):
    """The system has stopped the process, or gives it no processor."""


class WorkerTemplate:
    """A process that has made a judge, and of which every worker is a copy.

    It starts when it is made, in the background, and never sees an answer.

    Args:
        make: Importable function; called in the process with ``arguments``, it returns what answers requests.
        arguments: Arguments of ``make``.

    """

    def __init__(self, make: Callable[..., Callable[..., Answer]], *arguments: Any) -> None:
        self.socket, child = socket.socketpair()
        self.socket.settimeout(START_TIMEOUT)
        # -P: nothing is imported from the folder where the trainer happens to run.
        command = [
            sys.executable,
            "-P",
            "-m",
            "rlcredit.verification.worker_process",
            str(child.fileno()),
            str(os.getpid()),
        ]
        with child:
            self.process = subprocess.Popen(
                command,
                pass_fds=[child.fileno()],
                env=build_worker_environment(),
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C reaches the trainer alone
            )
        self.stop = weakref.finalize(self, _end_process, self.process, self.socket)
        content = pickle.dumps((make, arguments))
        with contextlib.suppress(OSError):  # it has died; whoever wants a copy will notice
            self.socket.sendall(REQUEST.pack(0, 0.0, len(content)) + content)

    def request_copy(self) -> socket.socket:
        """Ask for a copy, and return the connection to it; closed at the other end if there will be none."""
        connection, child = socket.socketpair()
        with child, contextlib.suppress(OSError):
            socket.send_fds(self.socket, [b"\0"], [child.fileno()])
        return connection

    def has_ended(self) -> bool:
        """Whether the process can no longer fork."""
        return self.process.poll() is not None


class JudgeWorker:
    """A process that answers one request at a time, with numbers or None.

    Before its first request it is locked (:mod:`rlcredit.verification.sandbox`).

    Args:
        template: Process that the worker is a copy of.

    """

    def __init__(self, template: WorkerTemplate) -> None:
        self.template = template  # a copy does not outlive it
        self.socket = template.request_copy()
        self.socket.setblocking(False)
        self.process = WorkerProcess()
        self.stop = weakref.finalize(self, _end_process, self.process, self.socket)
        self.ready = False
        self._begin_request(0, limit=START_TIMEOUT, patience=START_TIMEOUT)

    def send_request(self, *request: Any, limit: float, patience: float, answers: int = 1) -> None:
        """Send a request, or as much of it as fits; :meth:`receive_answers` sends the rest.

        Args:
            request: Arguments for what ``make`` has returned.
            limit: Seconds that the request may compute or sleep.
            patience: Seconds that it may do neither at a stretch.
            answers: Number of answers that it has.

        """
        content = pickle.dumps(request)
        # A random number: a worker cannot answer a request before it has received it.
        self._begin_request(secrets.randbits(64), limit, patience, answers)
        self.unsent = REQUEST.pack(self.number, limit, len(content)) + content
        with contextlib.suppress(WorkerError):  # raised again by `receive_answers`
            self._send_unsent()

    def _begin_request(self, number: int, limit: float, patience: float, answers: int = 1) -> None:
        self.number, self.limit, self.patience = number, limit, patience
        self.expected = answers * ANSWER.size
        self.seen = time.monotonic()
        self.waited = self.slept = self.known = self.still = 0.0
        self.computed = self.process.read_processor_seconds()
        self.unsent = b""
        self.busy = True

    def receive_answers(self) -> list[float | None] | None:
        """Return the answers if they have come; None before.

        Raises:
            WorkerError: if it will not come.

        """
        self._send_unsent()
        # Before anything is received: one that has answered sleeps too.
        asleep = not self.unsent and self.process.is_asleep()
        try:
            content = self.socket.recv(self.expected + ANSWER.size)
        except BlockingIOError:
            self._note_activity(asleep)
            return None
        except OSError:
            raise WorkerError from None
        if len(content) != self.expected:
            raise WorkerError
        answered = list(ANSWER.iter_unpack(content))
        if not self.busy or any(number != self.number for number, _, _ in answered):
            raise WorkerError
        if not self.ready:
            self.process.attach_process(int(answered[0][2]))
        self.busy, self.ready = False, True
        return [score if has_score else None for _, has_score, score in answered]

    def is_silent(self) -> bool:
        """Whether an idle worker is silent, as it should be: neither closed nor talking unasked."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def measure_used_seconds(self) -> float:
        """Return the seconds that it has computed or slept over the request; its clock where the system tells none."""
        return (
            (self.process.read_processor_seconds() - self.computed) + self.slept
            if sys.platform == "linux"
            else self.waited
        )

    def _note_activity(self, asleep: bool) -> None:
        """Note what a busy worker does, and give it up when it has done so for too long."""
        now = time.monotonic()
        passed, self.seen = min(now - self.seen, _LONGEST_LOOK), now
        self.waited += passed
        self.slept += passed * asleep
        used = self.measure_used_seconds()
        self.still = 0.0 if used > self.known else self.still + passed
        self.known = used
        if used > self.limit:
            raise RequestTimeoutError
        if self.still > self.patience:
            raise StalledWorkerError

    def _send_unsent(self) -> None:
        while self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return
            except OSError:
                raise WorkerError from None


class WorkerProcess:
    """The process of a worker, which is a child of its template: known by what it says before it is locked."""

    def __init__(self) -> None:
        self.pid = self.descriptor = 0

    def attach_process(self, pid: int) -> None:
        """Open a process by number; the number may be reused once it has ended."""
        self.pid = pid
        with contextlib.suppress(AttributeError, OSError):  # no Linux, or one that has ended
            self.descriptor = os.pidfd_open(pid)

    def read_processor_seconds(self) -> float:
        """Return its processor seconds; 0 where the system does not tell."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2) if self.pid else 0.0  # clock_getcpuclockid(3)
        except OSError:
            return 0.0

    def is_asleep(self) -> bool:
        """Whether it waits of its own accord: neither running, nor ready to, nor stopped, nor waiting for a disk."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
        except OSError:
            return False

    def kill(self) -> None:
        """End the process if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            if self.descriptor:
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
            elif self.pid:
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended, at most a second."""
        if self.descriptor:
            ended = select.poll()
            ended.register(self.descriptor, select.POLLIN)
            ended.poll(1000)
            os.close(self.descriptor)
        self.descriptor = self.pid = 0


def build_worker_environment() -> dict[str, str]:
    """Return the environment of a worker."""
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    return {**variables, **ONE_THREAD, "PYTHONPATH": path}


def _end_process(process: "subprocess.Popen[bytes] | WorkerProcess", parent: socket.socket) -> None:
    process.kill()
    process.wait()
    parent.close()
