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
from rlcredit.campaign.launchers.ray_launcher import (
    NODE_CALL_SECONDS,
    call_on_node,
    list_cluster_nodes,
    make_ray_launcher,
)
from rlcredit.campaign.launchers.run_launcher import LauncherFactory
from rlcredit.outputs.code_versions import read_code_versions

ANSWER_SECONDS = 30.0
"""Seconds that a cluster has to answer."""

_CONNECT_SCRIPT = """
import logging, ray, sys
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""


@contextmanager
def open_ray_cluster(root: Path, address: str | None, slots: int | None) -> Iterator[LauncherFactory]:
    """Connect to a Ray cluster whose nodes share the folder of the campaign.

    Args:
        root: Folder of the campaign.
        address: Address of the cluster, HOST:PORT; the one that Ray finds by itself if None.
        slots: Runs at a time, if given.

    Raises:
        ValueError: the cluster does not answer, or has a node where runs cannot go.

    """
    cluster_address = address or "auto"
    _refuse_silent_cluster(cluster_address)
    handler = signal.getsignal(signal.SIGTERM)
    ray.init(cluster_address, log_to_driver=False, logging_level=logging.ERROR)
    signal.signal(signal.SIGTERM, handler)  # ray.init has replaced it
    try:
        refuse_unfit_nodes(root)
        yield partial(make_ray_launcher, slots)
    finally:
        ray.shutdown()


def _refuse_silent_cluster(address: str) -> None:
    """Refuse an address at which no cluster answers; a second process asks, because Ray would retry forever."""
    command = [sys.executable, "-c", _CONNECT_SCRIPT, address]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"no Ray cluster answers at {address} within {ANSWER_SECONDS:g} s. Check --address.") from None
    except subprocess.CalledProcessError as error:
        *_, message = error.stderr.strip().splitlines()
        raise ValueError(f"cannot connect to a Ray cluster at {address}: {message}") from None


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
        return ray.get(reference, timeout=NODE_CALL_SECONDS)
    except RayError as error:
        return str(error).strip().splitlines()[-1]
