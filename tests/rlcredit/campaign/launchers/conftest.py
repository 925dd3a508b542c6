"""Fixtures: a cluster of Ray on this machine, and what shares it out."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.rlcredit.campaign.launchers.two_nodes import Nodes, two_nodes

os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0")  # Ray keeps to 127.0.0.1


@pytest.fixture(scope="session")
def cluster() -> Iterator[Nodes]:
    with two_nodes() as started:
        yield started


@pytest.fixture
def nodes(cluster) -> Nodes:
    """Two nodes that live."""
    return cluster.complete()


@pytest.fixture(scope="session")
def connection(cluster, tmp_path_factory) -> Iterator[Callable[..., object]]:
    """What shares the cluster out, in this process; the cluster keeps what SIGTERM did before and does now."""
    from rlcredit.campaign.launchers.ray_cluster import open_ray_cluster

    cluster.sigterm = [signal.getsignal(signal.SIGTERM)]
    with open_ray_cluster(tmp_path_factory.mktemp("root"), cluster.address, None) as share:
        cluster.sigterm.append(signal.getsignal(signal.SIGTERM))
        yield share
