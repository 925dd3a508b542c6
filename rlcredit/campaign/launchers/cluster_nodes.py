"""The capacity of cluster nodes for runs."""

import dataclasses
from collections import Counter
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class ClusterNode:
    """A cluster node and its free resources.

    Args:
        name: Address of the node, for people.
        identity: Identifier that no other node has.
        cpus: CPUs that runs may use.
        gpus: GPUs that runs may use.

    """

    name: str
    identity: str
    cpus: int
    gpus: int

    def run_capacity(self, threads: int, devices: int) -> int:
        """Return the number of runs that the node can hold.

        Example:
            >>> node = ClusterNode("10.0.0.1", "a1", cpus=8, gpus=3)
            >>> [node.run_capacity(threads, devices) for threads, devices in ((2, 0), (2, 1), (4, 1))]
            [4, 3, 2]

        """
        return min([self.cpus // threads, *([self.gpus // devices] if devices else [])])


def cluster_capacity(nodes: Sequence[ClusterNode], threads: int, devices: int) -> int:
    """Return the number of runs that all nodes together can hold."""
    return sum(node.run_capacity(threads, devices) for node in nodes)


def most_threads_per_run(nodes: Sequence[ClusterNode], devices: int, slots: int | None) -> int:
    """Return the largest number of threads per run that does not reduce the number of parallel runs.

    Args:
        nodes: Nodes of the cluster.
        devices: GPUs per run; 0 if it uses none.
        slots: Runs at a time; as many as there are GPUs, or else cores, if None.

    Example:
        >>> nodes = [ClusterNode("10.0.0.1", "a1", cpus=8, gpus=2), ClusterNode("10.0.0.2", "b2", cpus=6, gpus=2)]
        >>> [most_threads_per_run(nodes, 0, slots) for slots in (None, 2, 3)]
        [1, 6, 4]
        >>> [most_threads_per_run(nodes, 1, slots) for slots in (None, 2)]
        [3, 6]

    """
    capacity = cluster_capacity(nodes, 1, devices)
    runs = min(slots or capacity, capacity)
    choices = range(max((node.cpus for node in nodes), default=1), 1, -1)
    return next((threads for threads in choices if cluster_capacity(nodes, threads, devices) >= runs), 1)


def describe_nodes(nodes: Sequence[ClusterNode], threads: int, devices: int) -> str:
    """Describe in words how many runs each node holds.

    Example:
        >>> nodes = [ClusterNode("10.0.0.1", "a1", 1, 0)]
        >>> nodes += [ClusterNode("10.0.0.2", "b2", 8, 2), ClusterNode("10.0.0.3", "c3", 8, 2)]
        >>> describe_nodes(nodes, threads=2, devices=0)
        '2 nodes hold 4 runs each; a run takes 2 CPUs'
        >>> describe_nodes(nodes, threads=1, devices=1)
        '2 nodes hold 2 runs each; a run takes 1 CPU and 1 GPU'

    """
    counts = Counter(node.run_capacity(threads, devices) for node in nodes)
    parts = []
    for runs, count in sorted(counts.items()):
        subject, suffix = ("1 node holds", "") if count == 1 else (f"{count} nodes hold", " each")
        if runs:
            parts.append(f"{subject} {_format_count(runs, 'run')}{suffix}")
    return f"{', '.join(parts) or 'no node holds a run'}; a run takes {describe_run_needs(threads, devices)}"


def describe_run_needs(threads: int, devices: int) -> str:
    """Describe in words the resources that a run needs on a node."""
    return _format_count(threads, "CPU") + (f" and {_format_count(devices, 'GPU')}" if devices else "")


def _format_count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
