"""What is done on a node of a cluster."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import ray

from rlcredit.campaign.process import POLLED, VISIBLE, start_run_process
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tracking.versions import read_code_versions


def find_node_problem(working: Path, shared: Path, expected: Mapping[str, str]) -> str | None:
    """Say why runs cannot go here, None if they can; enter the working directory.

    Args:
        working: directory of the command; paths of a campaign start there.
        shared: a file or folder that the command has made.
        expected: versions where the command was given.

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
        folder: of the run; it exists.
        args: of ``rlcredit fit``.
        environment: beside that of the node.
        working: directory of the command.
        expected: versions where the command was given.

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
