"""Connect to a Ray cluster, and check its nodes before a run goes there."""

import logging
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import ray
from ray.exceptions import RayError

from rlcredit.campaign.launchers.node_tasks import find_node_problem
from rlcredit.campaign.launchers.ray_launcher import ASKED, call_on_node, list_cluster_nodes, make_ray_launcher
from rlcredit.campaign.launchers.run_launcher import LauncherFactory
from rlcredit.outputs.code_versions import read_code_versions

ANSWER = 30.0
"""Seconds that a cluster has to answer."""

CONNECT = """
import logging, ray, sys
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""


@contextmanager
def open_ray_cluster(root: Path, address: str | None, most: int | None) -> Iterator[LauncherFactory]:
    """Connect to a Ray cluster whose nodes share the folder of the campaign.

    Args:
        root: Folder of the campaign.
        address: Address of the cluster, HOST:PORT; the one that Ray finds by itself if None.
        most: Runs at a time, if given.

    Raises:
        ValueError: the cluster does not answer, or has a node where runs cannot go.

    """
    chosen = address or "auto"
    _refuse_silent_cluster(chosen)
    handler = signal.getsignal(signal.SIGTERM)
    ray.init(chosen, log_to_driver=False, logging_level=logging.ERROR)
    signal.signal(signal.SIGTERM, handler)  # ray.init has replaced it
    try:
        refuse_unfit_nodes(root)
        yield partial(make_ray_launcher, most)
    finally:
        ray.shutdown()


def _refuse_silent_cluster(address: str) -> None:
    """Refuse an address at which no cluster answers; a second process asks, because Ray would retry forever."""
    command = [sys.executable, "-c", CONNECT, address]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=ANSWER)
    except subprocess.TimeoutExpired:
        raise ValueError(f"no Ray cluster answers at {address} within {ANSWER:g} s. Check --address.") from None
    except subprocess.CalledProcessError as error:
        *_, last = error.stderr.strip().splitlines()
        raise ValueError(f"cannot connect to a Ray cluster at {address}: {last}") from None


def refuse_unfit_nodes(root: Path) -> None:
    """Check that every node with CPUs has what a run needs.

    Args:
        root: Folder of the campaign.

    Raises:
        ValueError: a node does not share the folder or the working directory, or has other versions.

    """
    root.mkdir(parents=True, exist_ok=True)
    marker = root.resolve() / f".shared-{uuid.uuid4().hex}"
    marker.touch()
    try:
        workers = [node for node in list_cluster_nodes() if node.cpus]
        references = [
            call_on_node(node, find_node_problem, Path.cwd(), marker, read_code_versions()) for node in workers
        ]
        for node, reference in zip(workers, references, strict=True):
            if problem := _await_node_problem(reference):
                raise ValueError(f"runs cannot go to node {node.name}: {problem}.")
    finally:
        marker.unlink(missing_ok=True)


def _await_node_problem(reference: ray.ObjectRef) -> str | None:
    """Return the problem that ``find_node_problem`` found on a node, or the error that prevented the check."""
    try:
        return ray.get(reference, timeout=ASKED)
    except RayError as error:
        return str(error).strip().splitlines()[-1]
