"""The interface of launchers, which start the runs of a campaign, and how a command line names one."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rlcredit.config.paths import extend_import_path

if TYPE_CHECKING:
    from rlcredit.campaign.resolved_condition import ResolvedCondition


class RunProcess(Protocol):
    """A run that has been started."""

    def poll(self) -> int | None:
        """Return the exit status, negative after a signal, or None while the run executes."""
        ...

    def ask_to_stop(self) -> None:
        """Ask the run to stop, which it does once it has saved its last complete step; do not wait for that."""
        ...

    def kill(self) -> None:
        """Kill the run and all processes it has started, and wait until they have ended."""
        ...


class RunLauncher(Protocol):
    """Interface of an object that starts runs.

    Attributes:
        label: Name of the kind of place, by which measured times are kept.
        threads: CPU threads per run.

    """

    label: str
    threads: int

    @property
    def slots(self) -> int:
        """Return the number of runs that may execute at a time now."""
        ...

    @property
    def description(self) -> str:
        """Return the description of the machines, for people."""
        ...

    def start_run(self, folder: Path, args: Sequence[str], environment: Mapping[str, str]) -> RunProcess:
        """Start ``rlcredit fit``.

        Args:
            folder: Folder of the run; its output is appended to the log there.
            args: Arguments of ``rlcredit fit``.
            environment: Environment variables added to those of the machine.

        """
        ...

    def end_leftover_run(self, record: Path) -> None:
        """Kill the run that wrote this process record, if it still executes."""
        ...


LauncherFactory = Callable[["ResolvedCondition", int | None], RunLauncher]
"""Returns a launcher for runs of a condition; the second argument is the threads per run, if they are given."""

MachineOpener = Callable[[Path, str | None, int | None], AbstractContextManager[LauncherFactory]]
"""Opens machines for a campaign: its folder, the address of a cluster and the most runs at a time, if given."""

_SHIPPED_OPENERS = {
    "local": "rlcredit.campaign.launchers.local_launcher.open_local_machine",
    "ray": "rlcredit.campaign.launchers.ray_cluster.open_ray_cluster",
}


def load_machine_opener(name: str) -> MachineOpener:
    """Return the function that opens machines.

    Args:
        name: ``local``, ``ray``, or the dotted path of a function of one's own.

    Raises:
        ValueError: there is no such function, or Ray is not installed.

    Example:
        >>> load_machine_opener("local").__name__
        'open_local_machine'
        >>> load_machine_opener("slurm")
        Traceback (most recent call last):
        ValueError: --launcher slurm: expected local, ray, or MODULE.FUNCTION of your own.

    """
    module_name, _, function = _SHIPPED_OPENERS.get(name, name).rpartition(".")
    if not module_name:
        raise ValueError(f"--launcher {name}: expected {', '.join(_SHIPPED_OPENERS)}, or MODULE.FUNCTION of your own.")
    extend_import_path([])
    try:
        return getattr(importlib.import_module(module_name), function)
    except ModuleNotFoundError as error:
        if error.name == "ray":
            raise ValueError("--launcher ray needs Ray. Install it: pip install 'rlcredit[cluster]'.") from None
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"--launcher {name}: there is no module {error.name} here or installed.") from None
    except AttributeError:
        raise ValueError(f"--launcher {name}: {module_name} has no function {function}.") from None
