"""The launcher for this machine: as many runs at a time as there are GPUs, or else cores."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlcredit.campaign import slots
from rlcredit.campaign.launchers.run_launcher import LauncherFactory, RunProcess
from rlcredit.campaign.process_identity import kill_recorded_process
from rlcredit.campaign.resolved_condition import ResolvedCondition
from rlcredit.campaign.run_process import can_fork_runs, start_run_process


class LocalLauncher:
    """Start runs as processes of this machine.

    Args:
        environments: Environment variables of each slot.
        forking: Whether runs are forked from one process where they can be, which saves each some seconds of imports.

    """

    label = "Local"

    def __init__(self, environments: Sequence[Mapping[str, str]], *, forking: bool = False) -> None:
        self.environments = environments
        self.forking = forking and all(map(can_fork_runs, environments))
        self.threads = int(environments[0]["OMP_NUM_THREADS"])
        self.processes: dict[int, RunProcess] = {}

    @property
    def slots(self) -> int:
        """Return the number of runs that may execute at a time."""
        return len(self.environments)

    @property
    def description(self) -> str:
        """Return the description of the machine, for people."""
        return f"this machine; threads of a run: {self.threads}"

    def start_run(self, folder: Path, args: Sequence[str], environment: Mapping[str, str]) -> RunProcess:
        """Start a run in a free slot."""
        busy = {slot for slot, process in self.processes.items() if process.poll() is None}
        slot = next(slot for slot in range(self.slots) if slot not in busy)
        run_environment = {**self.environments[slot], **environment}
        self.processes[slot] = start_run_process(folder, args, run_environment, as_fork=self.forking)
        return self.processes[slot]

    def end_leftover_run(self, record: Path) -> None:
        """Kill a run left over from an earlier campaign process."""
        kill_recorded_process(record)


@contextmanager
def open_local_machine(root: Path, address: str | None, slot_count: int | None) -> Iterator[LauncherFactory]:
    """Return a function that makes launchers for this machine.

    Args:
        root: Folder of the campaign.
        address: None; this machine needs none.
        slot_count: Runs at a time, if given.

    Raises:
        ValueError: an address is given.

    """

    def make_launcher(resolution: ResolvedCondition, threads: int | None) -> LocalLauncher:
        environments = slots.make_slot_environments(
            slots.group_slot_gpus(resolution), slot_count, threads, slots.count_usable_cores()
        )
        return LocalLauncher(environments, forking=True)

    if address is not None:
        raise ValueError(f"--address {address} is for clusters. Add --launcher ray.")
    yield make_launcher
