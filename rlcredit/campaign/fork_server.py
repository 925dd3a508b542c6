"""Commands as forks of one process that has imported what they need: none spends its first seconds on imports.

A fork is a process of its own, with status, signals, folder, environment and output of its own; what runs in it is the
module or the script itself. It ends with the server, and the server with the process that has started it.

python -m rlcredit.campaign.fork_server module ...

"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.campaign.pids import PARENT, bound

IMPORTED = ("rlcredit.command_line.cli", "peft", "mlflow.store.tracking.sqlalchemy_store")
"""What a run needs."""

REQUEST = 2**17
"""Bytes of the largest one; the environment is in it."""


class Fork:
    """A command in a fork.

    Args:
        line: on which its pid is told, and then its exit status.

    """

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.told: list[int] = []

    @property
    def pid(self) -> int:
        """Its pid, as soon as it has one."""
        while not self.told:
            self._hear()
        return self.told[0]

    def poll(self) -> int | None:
        """Return the exit status, negative after a signal, None while it goes on."""
        while len(self.told) < 2 and select.select([self.line], [], [], 0)[0]:
            self._hear()
        return self.told[1] if len(self.told) == 2 else None

    def wait(self) -> int:
        """Return the exit status as soon as there is one."""
        while len(self.told) < 2:
            self._hear()
        return self.told[1]

    def kill(self) -> None:
        """End it and all it has started, and wait until it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()

    def _hear(self) -> None:
        if word := self.line.recv(16):
            self.told.append(int(word))
        else:  # its server has been killed, and it with it
            self.told = [*self.told[:1], *[0][len(self.told) :], -signal.SIGKILL]
        if len(self.told) == 2:
            self.line.close()


class ForkServer:
    """The process that is forked.

    Args:
        modules: that it imports.

    """

    def __init__(self, modules: Sequence[str] = IMPORTED) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "rlcredit.campaign.fork_server", *modules],
                stdin=theirs.fileno(),
                env={**os.environ, PARENT: str(os.getpid())},
                start_new_session=True,  # Ctrl-C reaches the campaign alone
            )
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """Whether it can be forked."""
        return self.popen.poll() is None

    def fork(self, words: Sequence[str], environment: Mapping[str, str], out: int, err: int) -> Fork:
        """Start a command in the current directory.

        Args:
            words: `-m` and a module, or a script, and what it is given.
            environment: all of its environment.
            out: the file that it writes to.
            err: and the one for errors.

        """
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([list(words), os.getcwd(), dict(environment)]).encode()
        with theirs, contextlib.suppress(BrokenPipeError):  # it has ended, as the line will say
            socket.send_fds(self.requests, [request], [theirs.fileno(), out, err])
        return Fork(line)

    def close(self) -> None:
        """End it, and what it has forked."""
        self.requests.close()
        self.popen.kill()
        self.popen.wait()


@functools.cache
def _servers() -> list[ForkServer]:
    return []


def fork_server() -> ForkServer:
    """Return the server of this process; it is started when it is first asked for, and anew if it has ended."""
    if not _servers() or not _servers()[-1].alive:
        _servers().append(ForkServer())
    return _servers()[-1]


def main() -> None:
    """Serve; in a fork, be what was asked for."""
    bound()
    with socket.socket(fileno=os.dup(0)) as requests:
        with open(os.devnull, encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 0)
        _import(sys.argv[1:])
        asked = _served(requests)
    _become(*asked)


def _import(modules: Sequence[str]) -> None:
    """Import, and start no thread: none would live on in a fork."""
    from rlcredit.command_line.quiet import quiet  # noqa: PLC0415

    quiet()  # before MLflow is imported
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # memory that is shared is not written to for being looked at


def _served(requests: socket.socket) -> tuple[list[str], str, dict[str, str]]:
    """Fork at every request; return in the fork, with what it is asked to be."""
    server = os.getpid()
    while True:
        request, files, _, _ = socket.recv_fds(requests, REQUEST, 3)
        if not request:
            sys.exit()
        if os.fork() == 0:
            bound(server)
            line, *ends = files
            watcher = os.getpid()
            if pid := os.fork():
                _watch(pid, *files)
            os.setpgid(0, 0)
            bound(watcher)
            os.close(line)
            for end, number in zip(ends, (1, 2), strict=True):
                os.dup2(end, number)
                os.close(end)
            return tuple(json.loads(request))
        for file in files:
            os.close(file)


def _watch(pid: int, line: int, out: int, err: int) -> None:
    """Tell the number of a process, and how it ends."""
    os.close(out)
    os.close(err)
    with contextlib.suppress(OSError):  # it has done so itself, or has ended
        os.setpgid(pid, pid)
    with socket.socket(fileno=line) as told, contextlib.suppress(BrokenPipeError):
        told.send(str(pid).encode())
        told.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be a command as if Python had been started with it."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if words[0] == "-m":
        sys.path[0], sys.argv = directory, words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0], sys.argv = str(Path(words[0]).parent), words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
