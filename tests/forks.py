"""Commands as forks of one process that has imported what they need: they begin at once, where imports take seconds.

How ``python`` starts a command is left to the tests of campaigns, terminals and two processes.
"""

import functools
import os
import signal
import threading
from contextlib import chdir
from pathlib import Path

import pytest

from rlcredit.campaign import forks

ROOT = Path(__file__).parents[1]
TESTED = (
    *("rlcredit.cli.deliver", "mlflow", "alembic", "mlflow.tracing.otel.otel_archival"),
    *("mlflow.utils.name_utils", "reasoning_gym", "bitsandbytes"),
    *("transformers.models.qwen3.modeling_qwen3", "transformers.models.bloom.modeling_bloom"),
)


class CommandFork(forks.ForkedProcess):
    """A command in a process of its own; it is used as a ``subprocess.Popen`` is.

    Args:
        words: ``-m`` and a module, or a script, and what it is given.
        cwd: where it runs.
        environment: all of its environment.

    """

    def __init__(self, words, cwd, environment) -> None:
        self.told = ["", ""]
        server = _start_fork_server()
        ours, ends = zip(os.pipe(), os.pipe())
        with chdir(cwd):
            super().__init__(server.fork([*map(str, words)], environment, *ends).line)
        for end in ends:
            os.close(end)
        self.readers = [threading.Thread(target=self._read, args=each, daemon=True) for each in enumerate(ours)]
        for reader in self.readers:
            reader.start()

    @property
    def returncode(self):
        return self.poll()

    def _read(self, place, end):
        with open(end, errors="replace") as pipe:
            self.told[place] = pipe.read()

    def send_signal(self, number):
        os.kill(self.pid, number)

    def communicate(self, timeout=None):
        """Return output and errors when the process, and whatever it has started, has closed them."""
        for reader in self.readers:
            reader.join(timeout)
            if reader.is_alive():
                self.send_signal(signal.SIGKILL)
                self.wait()
                raise TimeoutError(f"Process {self.pid} goes on after {timeout} s.")
        self.wait()
        return tuple(self.told)


@functools.cache
def _start_fork_server():
    path = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch, chdir(ROOT):
        patch.setenv("PYTHONPATH", path)
        patch.setenv("OMP_NUM_THREADS", "1")
        return forks.ForkServer((*forks.FORK_IMPORTS, *TESTED))
