"""What a node of a Ray cluster does for a campaign.

Ray imports this module in a process of its own on every node, so it imports neither torch nor Lightning.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import ray

from rlcredit.campaign.run_process import POLLED, VISIBLE, start_run_process
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.run_folder.layout import RunFolder


def find_node_problem(working: Path, shared: Path, expected: Mapping[str, str]) -> str | None:
    """Return why runs cannot start on this node, or None if they can; change to the working directory.

    Args:
        working: Directory of the command; paths of a campaign start there.
        shared: File or folder that the command has made.
        expected: Versions on the machine where the command was given.

    """
    try:
        os.chdir(working)
    except OSError:
        return f"there is no directory {working}. The command's must be on a file system that all nodes share"
    if not shared.exists():
        return f"there is no {shared.parent} with what was written there. All nodes must share its file system"
    here = read_code_versions()
    if different := [f"{name} is {here[name]}, not {value}" for name, value in expected.items() if here[name] != value]:
        return f"{', '.join(different)}. Install the same"
    return None


def run_fit_on_node(
    folder: Path, args: Sequence[str], environment: Mapping[str, str], working: Path, expected: Mapping[str, str]
) -> int:
    """Run ``rlcredit fit`` on this node until it ends or this task is cancelled; return its exit status.

    Args:
        folder: Folder of the run, which exists.
        args: Arguments of ``rlcredit fit``.
        environment: Environment variables added to those of the node.
        working: Working directory of the command.
        expected: Versions on the machine where the command was given.

    Raises:
        ValueError: runs cannot go here.

    """
    if problem := find_node_problem(working, folder, expected):
        raise ValueError(f"{problem}.")
    context = ray.get_runtime_context()
    with RunFolder(folder).log.open("a", encoding="utf-8") as log:
        print(f"on node {context.get_node_id()} of {os.uname().nodename}", file=log)
    gpus = ",".join(context.get_accelerator_ids()["GPU"])
    process = start_run_process(folder, args, {**environment, VISIBLE: gpus})
    try:
        while (status := process.poll()) is None:
            time.sleep(POLLED)
    finally:
        process.kill()
    return status
