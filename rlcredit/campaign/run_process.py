"""A run as a process of this machine, spawned or forked."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rlcredit.campaign.forks import ensure_fork_server
from rlcredit.campaign.launchers.run_launcher import RunProcess
from rlcredit.campaign.process_identity import PARENT_VARIABLE, RECORD_VARIABLE
from rlcredit.campaign.run_spec import build_run_command
from rlcredit.run_folder.layout import RunFolder

GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 0.1
"""Seconds between two looks at a run."""


STOP_SECONDS = 30.0
"""Seconds that runs have to stop; a step or an evaluation may go on for twenty of them."""


def stop_processes(processes: Sequence[RunProcess]) -> None:
    """Have runs save their last complete steps and end; kill those that take too long, with what they have started."""
    try:
        for process in processes:
            process.ask_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and any(process.poll() is None for process in processes):
            time.sleep(POLL_SECONDS)
    finally:
        for process in processes:
            process.kill()


def start_run_process(
    folder: Path, args: Sequence[str], environment: Mapping[str, str], *, as_fork: bool = False
) -> RunProcess:
    """Start a run whose process ends with this one.

    Args:
        folder: Folder of the run; its output is appended to the log there.
        args: Arguments of ``rlcredit fit``.
        environment: Environment variables added to those of this process.
        as_fork: Whether the run is started as a fork, see :func:`can_fork_runs`.

    """
    folder.mkdir(parents=True, exist_ok=True)
    run = RunFolder(folder)
    environment = {**os.environ, **environment, RECORD_VARIABLE: str(run.process.resolve())}
    with run.log.open("ab") as log:
        if as_fork:
            return ensure_fork_server().fork(build_run_command(args)[1:], environment, log.fileno(), log.fileno())
        return SpawnedProcess(build_run_command(args), environment, log)


def prepare_forks() -> None:
    """Have the server of forks import what runs need meanwhile, where runs of this machine will be forked."""
    if can_fork_runs(os.environ):
        ensure_fork_server()


def can_fork_runs(environment: Mapping[str, str]) -> bool:
    """Whether runs can be forked: on Linux and without a GPU, whose context a fork cannot share."""
    return sys.platform == "linux" and GPU_VARIABLE not in environment


class SpawnedProcess:
    """A command whose process ends with this one.

    Args:
        words: Words of the command line.
        environment: Environment of the command, complete.
        log: Open file that the command writes to.

    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> None:
        self.popen = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**environment, PARENT_VARIABLE: str(os.getpid())},
            start_new_session=True,  # Ctrl-C reaches the campaign alone
        )

    def poll(self) -> int | None:
        """Return the exit status, or None while the run executes."""
        return self.popen.poll()

    def ask_to_stop(self) -> None:
        """Ask the run to stop, and do not wait for that."""
        self.popen.terminate()

    def kill(self) -> None:
        """Kill the run and all processes it has started, and wait until they have ended."""
        if self.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
