"""What a node of a Ray cluster does for a campaign.

Ray imports this module in a process of its own on every node, so it imports neither torch nor Lightning.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import ray

from rlcredit.campaign.run_process import GPU_VARIABLE, POLL_SECONDS, start_run_process, stop_processes
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.run_folder.layout import RunFolder


def find_node_problem(directory: Path, marker: Path, versions: Mapping[str, str]) -> str | None:
    """Return why runs cannot start on this node, or None if they can; change to the working directory.

    Args:
        directory: Directory of the command; paths of a campaign start there.
        marker: File or folder that the command has made.
        versions: Versions on the machine where the command was given.

    """
    try:
        os.chdir(directory)
    except OSError:
        return f"there is no directory {directory}. The command's must be on a file system that all nodes share"
    if not marker.exists():
        return f"there is no {marker.parent} with what was written there. All nodes must share its file system"
    node_versions = read_code_versions()
    if differences := [
        f"{name} is {node_versions[name]}, not {value}"
        for name, value in versions.items()
        if node_versions[name] != value
    ]:
        return f"{', '.join(differences)}. Install the same"
    return None


def run_fit_on_node(
    folder: Path, args: Sequence[str], environment: Mapping[str, str], directory: Path, versions: Mapping[str, str]
) -> int:
    """Run ``rlcredit fit`` on this node until it ends or this task is cancelled; return its exit status.

    Args:
        folder: Folder of the run, which exists.
        args: Arguments of ``rlcredit fit``.
        environment: Environment variables added to those of the node.
        directory: Working directory of the command.
        versions: Versions on the machine where the command was given.

    Raises:
        ValueError: runs cannot go here.

    """
    if problem := find_node_problem(directory, folder, versions):
        raise ValueError(f"{problem}.")
    context = ray.get_runtime_context()
    with RunFolder(folder).log.open("a", encoding="utf-8") as log:
        print(f"on node {context.get_node_id()} of {os.uname().nodename}", file=log)
    gpus = ",".join(context.get_accelerator_ids()["GPU"])
    process = start_run_process(folder, args, {**environment, GPU_VARIABLE: gpus})
    try:
        while (status := process.poll()) is None:
            time.sleep(POLL_SECONDS)
    finally:
        stop_processes([process])
    return status
