"""Commands as forks of a process that has imported what they need, so that they start without imports.

A fork is a process of its own, with status, signals, folder, environment and output of its own; what runs in it is the
module or the script itself. It ends with the server, and the server with the process that has started it.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from rlcredit.campaign.process_identity import PARENT_VARIABLE

FORK_IMPORTS = ("rlcredit.cli.application", "peft", "mlflow.store.tracking.sqlalchemy_store", "reasoning_gym", "git")
"""What a run needs, or most do."""


class ForkedProcess:
    """A command that runs in a fork.

    Args:
        line: Socket on which the fork reports its pid, and later its exit status.

    """

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._pid: int | None = None
        self._status: int | None = None

    @property
    def pid(self) -> int:
        """Process id, available once the fork has started; 0 if it never started."""
        while self._pid is None:
            self._receive_status()
        return self._pid

    def poll(self) -> int | None:
        """Return the exit status, negative after a signal, or None while the command runs."""
        while self._status is None and select.select([self.line], [], [], 0)[0]:
            self._receive_status()
        return self._status

    def wait(self) -> int:
        """Wait for the command to end, and return its exit status."""
        while self._status is None:
            self._receive_status()
        return self._status

    def ask_to_stop(self) -> None:
        """Ask the command to stop, and do not wait for that."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the command and all processes it has started, and wait until they have ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()

    def _receive_status(self) -> None:
        word = self.line.recv(16)
        if not word:  # its server has been killed, and it with it
            self._pid, self._status = self._pid or 0, -signal.SIGKILL
        elif self._pid is None:
            self._pid = int(word)
        else:
            self._status = int(word)
        if self._status is not None:
            self.line.close()


class ForkServer:
    """The server process from which commands are forked.

    Args:
        modules: Modules that the server imports before it forks.

    """

    def __init__(self, modules: Sequence[str] = FORK_IMPORTS) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "rlcredit.campaign.fork_server", *modules],
                stdin=theirs.fileno(),
                env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
                start_new_session=True,  # Ctrl-C reaches the campaign alone
            )
        atexit.register(self.close)

    @property
    def is_alive(self) -> bool:
        """Whether the server can still fork."""
        return self.popen.poll() is None

    def fork(self, words: Sequence[str], environment: Mapping[str, str], output: int, errors: int) -> ForkedProcess:
        """Start a command in the current directory as a fork.

        Args:
            words: `-m` and a module, or a script, and what it is given.
            environment: Environment of the command, complete.
            output: File descriptor of its output.
            errors: File descriptor of its errors.

        """
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([list(words), os.getcwd(), dict(environment)]).encode()
        with theirs, contextlib.suppress(BrokenPipeError):  # it has ended, as the line will say
            socket.send_fds(self.requests, [request], [theirs.fileno(), output, errors])
        return ForkedProcess(line)

    def close(self) -> None:
        """End the server and all its forks."""
        self.requests.close()
        self.popen.kill()
        self.popen.wait()


_started: list[ForkServer] = []


def ensure_fork_server() -> ForkServer:
    """Return the fork server of this process, starting it at first use or when it has ended."""
    if not _started or not _started[-1].is_alive:
        _started.append(ForkServer())
    return _started[-1]
