"""The server process that imports what runs need and forks at each request from ``forks``.

python -m rlcredit.campaign.fork_server module ...

"""

import contextlib
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.frozen_imports import freeze_imports
from rlcredit.campaign.process_identity import end_with_parent, take_parent_pid
from rlcredit.config.paths import prefer_own_callbacks

_REQUEST_BYTES = 2**17
"""Bytes of the largest one; the environment is in it."""


def run_fork_server_command() -> None:
    """Serve fork requests; in a fork, execute the requested command."""
    end_with_parent(take_parent_pid())
    with socket.socket(fileno=os.dup(0)) as requests:
        with open(os.devnull, encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 0)
        _import_modules(sys.argv[1:])
        request = _serve_fork_requests(requests)
    _become_command(*request)


def _import_modules(modules: Sequence[str]) -> None:
    """Import modules without starting a thread, since no thread would survive in a fork."""
    prefer_own_callbacks()  # the working directory comes first on the path
    from rlcredit.cli.quiet_libraries import silence_libraries  # noqa: PLC0415

    silence_libraries()  # before MLflow is imported
    with freeze_imports():  # memory that is shared is not written to for being looked at
        for module in modules:
            importlib.import_module(module)


def _serve_fork_requests(requests: socket.socket) -> tuple[list[str], str, dict[str, str]]:
    """Fork at each request; in a fork, return the requested command."""
    server = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a watcher has ended, so that none stays a zombie
    while True:
        request, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 3)
        if not request:
            sys.exit()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            end_with_parent(server)
            line, *ends = files
            watcher = os.getpid()
            if pid := os.fork():
                _report_exit_status(pid, *files)
            os.setpgid(0, 0)
            end_with_parent(watcher)
            os.close(line)
            for end, number in zip(ends, (1, 2), strict=True):
                os.dup2(end, number)
                os.close(end)
            return tuple(json.loads(request))
        for file in files:
            os.close(file)


def _report_exit_status(pid: int, line: int, output: int, errors: int) -> None:
    """Send the pid of a fork, and later its exit status."""
    os.close(output)
    os.close(errors)
    with contextlib.suppress(OSError):  # it has done so itself, or has ended
        os.setpgid(pid, pid)
    with socket.socket(fileno=line) as answers, contextlib.suppress(BrokenPipeError):
        answers.send(str(pid).encode())
        answers.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become_command(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Execute a command as if Python had been started with it."""
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
    run_fork_server_command()
