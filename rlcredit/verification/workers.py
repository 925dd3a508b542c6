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
from pathlib import Path
from typing import Any

from rlcredit.verification.process_tree import CROWD_FAULT, end_process_tree
from rlcredit.verification.worker_process import REQUEST_HEADER, Make
from rlcredit.verification.worker_replies import ForgedReplyError, Reply, take_replies

START_TIMEOUT = 120.0
"""Seconds."""

PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONHOME")
"""Environment variables of the trainer that reach a worker: no token, no password, no home."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_PIECE = 2**20
"""Bytes that are read at a time."""

_PATIENCE = 10.0
"""Seconds in which a template that watches its worker ends what that has started."""

_LONGEST_LOOK = 0.5
"""Seconds between two looks at a worker that count as waiting; beyond them the trainer itself stood still."""


class WorkerError(Exception):
    """The process died, or sent something other than a reply; with what is known of it."""


class RequestTimeoutError(WorkerError):
    """The process has used up the time of its request, computing or asleep."""


class StalledWorkerError(WorkerError):
    """The system has stopped the process, or gives it no processor."""


class UnmadeJudgeError(WorkerError):
    """The judge could not be made, and would not be at another try."""


ENDED_FAULT = "it has ended its process, or closed files that are not its own"
FORGED_FAULT = "it has written into files that are not its own"


class WorkerTemplate:
    """A process that makes a judge, and of which every worker is a copy; a judge that is not locked has one.

    It starts when it is made, in the background, and never sees an answer.

    Args:
        make: Importable function; called in the process with ``arguments``, it returns what answers requests.
        arguments: Arguments of ``make``.
        locked: Whether workers are locked before their first request (:mod:`rlcredit.verification.sandbox`). If not,
            the judge may do what the trainer may, and has its environment.

    """

    def __init__(self, make: Make, *arguments: Any, locked: bool = True) -> None:
        self.locked = locked
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
                env=build_worker_environment(locked),
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C reaches the trainer alone
            )
        self.measured = WorkerProcess()
        self.measured.attach_process(self.process.pid)
        self.stop = weakref.finalize(self, _end_template, self.process, self.measured, self.socket, locked)
        content = pickle.dumps((make, arguments, locked))
        with contextlib.suppress(OSError):  # it has died; whoever wants a copy will notice
            self.socket.sendall(REQUEST_HEADER.pack(0, 0.0, len(content)) + content)

    def request_copy(self) -> socket.socket:
        """Ask for a copy, and return the connection to it; closed at the other end if there will be none."""
        connection, child = socket.socketpair()
        with child, contextlib.suppress(OSError):
            socket.send_fds(self.socket, [b"\0"], [child.fileno()])
        return connection

    def has_ended(self) -> bool:
        """Whether the process can no longer fork."""
        return self.process.poll() is not None

    def explain_end(self) -> str:
        """Return why a copy may have ended."""
        message = b""
        if select.select([self.socket], (), (), 0)[0]:
            with contextlib.suppress(OSError):
                message = self.socket.recv(len(CROWD_FAULT), socket.MSG_PEEK)
        return CROWD_FAULT if message == CROWD_FAULT.encode() else ENDED_FAULT


class JudgeWorker:
    """A process that answers one request at a time, with a reply to each of its calls.

    Args:
        template: Process that the worker is a copy of.
        start_seconds: Seconds that the judge may compute or sleep while it is made.

    """

    def __init__(self, template: WorkerTemplate, start_seconds: float = START_TIMEOUT) -> None:
        self.template = template  # a copy does not outlive it
        self.socket = template.request_copy()
        self.socket.setblocking(False)
        own_process = WorkerProcess()
        self.stop = weakref.finalize(self, _end_process, own_process, self.socket)
        self.own, self.process = own_process, template.measured  # which makes the judge, until a copy says who it is
        self.ready = self.is_asynchronous = False
        self._begin_request(0, limit=start_seconds, patience=start_seconds, calls=2)

    def send_request(self, *request: Any, limit: float, patience: float, calls: int = 1) -> None:
        """Send a request, or as much of it as fits; :meth:`receive_replies` sends the rest.

        Args:
            request: Arguments for what ``make`` has returned.
            limit: Seconds that the request may compute or sleep.
            patience: Seconds that it may do neither at a stretch.
            calls: Number of replies to it.

        """
        content = pickle.dumps(request)
        # A random number: a worker cannot answer a request before it has received it.
        self._begin_request(secrets.randbits(64), limit, patience, calls)
        self.unsent = REQUEST_HEADER.pack(self.number, limit, len(content)) + content
        with contextlib.suppress(WorkerError):  # raised again by `receive_replies`
            self._send_unsent()

    def _begin_request(self, number: int, limit: float, patience: float, calls: int) -> None:
        self.number, self.limit, self.patience = number, limit, patience
        self.replies: list[Reply | None] = [None] * calls
        self.received = bytearray()
        self.seen = time.monotonic()
        self.waited = self.slept = self.known = self.still = 0.0
        self.computed = self.process.read_processor_seconds()
        self.unsent = b""
        self.busy = True

    def receive_replies(self) -> bool:
        """Read the bytes that have come; return whether all replies have.

        Raises:
            WorkerError: if they will not come; ``replies`` holds those that have.

        """
        self._send_unsent()
        # Before anything is received: one that has answered sleeps too.
        asleep, has_ended = not self.unsent and self.process.is_asleep(), self.process.has_ended()
        try:
            content = self.socket.recv(_PIECE)
        except BlockingIOError:
            if has_ended:
                raise WorkerError(self.template.explain_end()) from None
            self._note_activity(asleep)
            return False
        except OSError:
            content = b""
        if not content or not self.busy:
            raise WorkerError(self.template.explain_end())
        self.received += content
        self._take_replies()
        self.busy = None in self.replies
        return not self.busy

    def _take_replies(self) -> None:
        """Take the whole replies from what has come.

        Raises:
            WorkerError: it is none, or says that there is no judge.

        """
        try:
            new_replies = take_replies(self.received, self.number)
        except ForgedReplyError:
            raise WorkerError(FORGED_FAULT) from None
        for place, reply in new_replies:
            if place >= len(self.replies) or self.replies[place] is not None:
                raise WorkerError(FORGED_FAULT)
            self.replies[place] = reply
            if not self.ready:
                self._begin_life(place, reply)
        if self.received and None not in self.replies:
            raise WorkerError(FORGED_FAULT)

    def _begin_life(self, place: int, reply: Reply) -> None:
        """Learn which process the worker is, and then that its judge is made."""
        if not reply.values:
            raise UnmadeJudgeError(reply.fault)
        if place == 0:
            self.process = self.own
            self.process.attach_process(int(reply.values[0] or 0))
            self.computed = self.process.read_processor_seconds()
        else:
            self.ready, self.is_asynchronous = True, bool(reply.values[0])

    def is_silent(self) -> bool:
        """Whether an idle worker is silent, as it should be: neither closed nor talking unasked."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return not self.process.has_ended()
        except OSError:
            return False
        return False

    def measure_used_seconds(self) -> float:
        """Return the seconds that it has computed or slept over the request.

        By its clock where the system tells neither, and where a function may compute on many processors at a time.
        """
        if sys.platform != "linux" or (self.ready and not self.template.locked):
            return self.waited
        return (self.process.read_processor_seconds() - self.computed) + self.slept

    def _note_activity(self, asleep: bool) -> None:
        """Note what a busy worker does, and give it up when it has done so for too long."""
        clock = time.monotonic()
        seconds, self.seen = min(clock - self.seen, _LONGEST_LOOK), clock
        self.waited += seconds
        self.slept += seconds * asleep
        used_seconds = self.measure_used_seconds()
        self.still = 0.0 if used_seconds > self.known else self.still + seconds
        self.known = used_seconds
        if used_seconds > self.limit:
            raise RequestTimeoutError(f"it took longer than {self.limit:g} s")
        if self.still > self.patience:
            raise StalledWorkerError("it stood still")

    def _send_unsent(self) -> None:
        while self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return
            except OSError:
                raise WorkerError(self.template.explain_end()) from None


class WorkerProcess:
    """The process of a worker, which is a child of its template: known by what it says before it is locked."""

    def __init__(self) -> None:
        self.pid = self.descriptor = 0

    def attach_process(self, pid: int) -> None:
        """Open a process by number; the number may be reused once it has ended."""
        if self.descriptor:
            os.close(self.descriptor)
        self.pid, self.descriptor = pid, 0
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

    def has_ended(self) -> bool:
        """Whether it has ended, whoever still holds its connection; False where the system does not tell."""
        return bool(self.descriptor and select.select([self.descriptor], (), (), 0)[0])

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
            waiter = select.poll()
            waiter.register(self.descriptor, select.POLLIN)
            waiter.poll(1000)
            os.close(self.descriptor)
        self.descriptor = self.pid = 0


def build_worker_environment(locked: bool = True) -> dict[str, str]:
    """Return the environment of a worker: the trainer's own if it is not locked, with Python's path made absolute."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    if not locked:
        return {**os.environ, "PYTHONPATH": path}
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**variables, **ONE_THREAD, "PYTHONPATH": path}


def _end_process(process: WorkerProcess, parent: socket.socket) -> None:
    process.kill()
    process.wait()
    parent.close()


def _end_template(
    process: "subprocess.Popen[bytes]", worker_process: WorkerProcess, parent: socket.socket, locked: bool
) -> None:
    """End a template and what is below it; one that watches its worker does so itself, if it can."""
    if not locked:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    if process.poll() is None:
        end_process_tree(process.pid)
        process.wait()
    worker_process.wait()
    parent.close()
