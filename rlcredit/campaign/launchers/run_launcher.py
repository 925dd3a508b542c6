"""The interface of launchers, which start the runs of a campaign."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlcredit.campaign.resolved_condition import ResolvedCondition


class RunProcess(Protocol):
    """A run that has been started."""

    def poll(self) -> int | None:
        """Return the exit status, negative after a signal, or None while the run executes."""
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
        """Return where runs execute, for people."""
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


Share = Callable[["ResolvedCondition", int | None], RunLauncher]
"""Shares machines out among runs like this one, with so many threads each, if that is given."""

Opened = Callable[[Path, str | None, int | None], AbstractContextManager[Share]]
"""Opens machines for a campaign: its folder, the address of a cluster and the most runs at a time, if given."""
