"""The launcher for a Ray cluster: each run is a Ray task that starts its own process."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rlcredit.campaign.launchers.cluster_nodes import (
    ClusterNode,
    cluster_capacity,
    describe_nodes,
    describe_run_needs,
    most_threads_per_run,
)
from rlcredit.campaign.launchers.node_tasks import run_fit_on_node
from rlcredit.campaign.process_identity import kill_recorded_process
from rlcredit.campaign.resolved_condition import ResolvedCondition
from rlcredit.campaign.slots import count_run_gpus
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.run_folder.layout import RunFolder

NODE_CALL_SECONDS = 60.0
"""Seconds that a node has to do something small."""

_CANCEL_SECONDS = 10.0
"""Seconds that a run has to end before its task is killed."""


HEARTBEAT_SECONDS = 5.0
"""Seconds between two looks at the node of this machine."""


class ClusterHeartbeat:
    """Regular checks that this machine is still connected to the cluster; Ray itself would wait forever."""

    def __init__(self) -> None:
        self.looked = 0.0
        self.lost = False

    def refuse_lost_cluster(self) -> None:
        """Check the connection, unless it was checked a few seconds ago.

        Raises:
            ValueError: the connection has died, so the state of the runs is unknown.

        """
        if time.monotonic() - self.looked < HEARTBEAT_SECONDS:
            return
        if ray.get_runtime_context().get_node_id() not in {node.identity for node in list_cluster_nodes()}:
            self.lost = True
            raise ValueError(
                "Ray's process on this machine (raylet) has died. Start Ray again; the same command then goes on with "
                "what is missing."
            )
        self.looked = time.monotonic()


_CLUSTER_HEARTBEAT = ClusterHeartbeat()


class RayTask:
    """A run that executes in the cluster, or waits for free resources.

    Args:
        reference: Ray's reference of the task.
        log: Log file of the run.

    """

    def __init__(self, reference: ray.ObjectRef, log: Path) -> None:
        self.reference, self.log = reference, log
        self.status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the run executes; a run whose task was lost counts as killed.

        Raises:
            ValueError: nothing will be heard of it.

        """
        _CLUSTER_HEARTBEAT.refuse_lost_cluster()
        if self.status is None and ray.wait([self.reference], timeout=0)[0]:
            try:
                self.status = ray.get(self.reference)
            except RayError as error:
                with self.log.open("a", encoding="utf-8") as log:
                    print(str(error).strip(), file=log)
                self.status = -signal.SIGKILL
        return self.status

    def ask_to_stop(self) -> None:
        """Cancel the task, which stops the run; runs in a lost cluster end by themselves."""
        if not _CLUSTER_HEARTBEAT.lost:
            ray.cancel(self.reference)

    def kill(self) -> None:
        """Cancel the task and wait for its end; runs in a lost cluster end by themselves."""
        if _CLUSTER_HEARTBEAT.lost:
            return
        self.ask_to_stop()
        if not ray.wait([self.reference], timeout=_CANCEL_SECONDS)[0]:
            ray.cancel(self.reference, force=True)
            ray.wait([self.reference], timeout=_CANCEL_SECONDS)


class RayLauncher:
    """Start runs wherever the cluster has free resources.

    Args:
        max_slots: Runs at a time; as many as the cluster holds if None.
        threads: CPU threads per run, each a CPU of a node.
        devices: GPUs per run.

    """

    label = "OnRay"

    def __init__(self, max_slots: int | None, threads: int, devices: int) -> None:
        self.most, self.threads, self.devices = max_slots, threads, devices

    @property
    def slots(self) -> int:
        """Return the number of runs that may execute now; it changes as nodes join and leave."""
        _CLUSTER_HEARTBEAT.refuse_lost_cluster()
        capacity = cluster_capacity(list_cluster_nodes(), self.threads, self.devices)
        return min(capacity, self.most or capacity)

    @property
    def description(self) -> str:
        """Return the description of the cluster, for people."""
        address = ray.get_runtime_context().gcs_address
        return f"Ray at {address}: {describe_nodes(list_cluster_nodes(), self.threads, self.devices)}"

    def start_run(self, folder: Path, args: Sequence[str], environment: Mapping[str, str]) -> RayTask:
        """Start a run; Ray chooses the node, and which of its GPUs the run sees."""
        folder.mkdir(parents=True, exist_ok=True)
        run_environment = {**environment, "OMP_NUM_THREADS": str(self.threads)}
        remote = ray.remote(run_fit_on_node).options(
            num_cpus=self.threads, num_gpus=self.devices, max_retries=0, scheduling_strategy="SPREAD"
        )
        return RayTask(
            remote.remote(folder, args, run_environment, Path.cwd(), read_code_versions()), RunFolder(folder).log
        )

    def end_leftover_run(self, record: Path) -> None:
        """Ask every node to kill a run left over from an earlier campaign process; the node that runs it does so."""
        if record.exists():
            references = [call_on_node(node, kill_recorded_process, record.resolve()) for node in list_cluster_nodes()]
            ray.wait(references, num_returns=len(references), timeout=NODE_CALL_SECONDS)


def make_ray_launcher(most: int | None, resolution: ResolvedCondition, threads: int | None) -> RayLauncher:
    """Return a launcher that divides the cluster among runs like this one.

    Raises:
        ValueError: no node has room for a run.

    """
    devices = count_run_gpus(resolution)
    launcher = RayLauncher(most, threads or most_threads_per_run(list_cluster_nodes(), devices, most), devices)
    if not launcher.slots:
        raise ValueError(
            f"no node of the cluster has {describe_run_needs(launcher.threads, devices)} for a run. "
            "Lower --threads or trainer.devices, or add a node."
        )
    return launcher


def list_cluster_nodes() -> list[ClusterNode]:
    """Return the nodes of the cluster that are alive."""
    nodes = []
    for description in ray.nodes():
        if description["Alive"]:
            cpus, gpus = (int(description["Resources"].get(kind, 0)) for kind in ("CPU", "GPU"))
            nodes.append(ClusterNode(description["NodeManagerAddress"], description["NodeID"], cpus, gpus))
    return nodes


def call_on_node(node: ClusterNode, function: Callable[..., Any], *arguments: Any) -> ray.ObjectRef:
    """Call a function on a node even if runs occupy all its CPUs; return the reference of the result."""
    strategy = NodeAffinitySchedulingStrategy(node.identity, soft=False)
    return ray.remote(function).options(num_cpus=0, max_retries=0, scheduling_strategy=strategy).remote(*arguments)
