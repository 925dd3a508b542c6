"""Clusters that are not there, and nodes where runs cannot go: one readable line each."""

import os
import re
from pathlib import Path

import pytest

from rlcredit.campaign.campaign_command import run_campaign_command
from tests.forks import CommandFork

ROOT = Path(__file__).parents[4]
CAMPAIGN = "configs/campaigns/tiny_smoke.yaml"


@pytest.fixture
def refused(monkeypatch, tmp_path, capfd):
    """Say how the shipped campaign is refused."""
    monkeypatch.chdir(ROOT)

    def refuse(*words):
        assert run_campaign_command([CAMPAIGN, f"--out={tmp_path}", *words]) == 2
        return capfd.readouterr().err

    return refuse


WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
from rlcredit.campaign.campaign_command import run_campaign_command
sys.exit(run_campaign_command(sys.argv[1:]))
"""


@pytest.mark.slow
def test_ray_is_missed_only_when_it_is_asked_for(tmp_path):
    (tmp_path / "without_ray.py").write_text(WITHOUT_RAY)
    words = [tmp_path / "without_ray.py", CAMPAIGN, f"--out={tmp_path}", "--launcher=ray"]
    fork = CommandFork(words, ROOT, dict(os.environ))
    _, err = fork.communicate()
    assert fork.returncode == 2
    assert err == "error: --launcher ray needs Ray. Install it: pip install 'rlcredit[cluster]'.\n"


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_not_waited_for(refused, monkeypatch):
    from rlcredit.campaign.launchers import ray_cluster

    monkeypatch.setattr(ray_cluster, "ANSWER_SECONDS", 4.0)
    said = refused("--launcher=ray", "--address=127.0.0.1:1")
    assert said == "error: no Ray cluster answers at 127.0.0.1:1 within 4 s. Check --address.\n"


def test_an_address_that_is_none_says_so(refused):
    said = refused("--launcher=ray", "--address=nonsense")
    assert re.fullmatch(r"error: cannot connect to a Ray cluster at nonsense: .*nonsense.*\n", said)


def test_an_address_without_a_cluster_is_a_mistake(refused):
    assert refused("--address=10.0.0.1:6379") == "error: --address 10.0.0.1:6379 is for clusters. Add --launcher ray.\n"


@pytest.mark.slow
def test_a_folder_that_a_node_does_not_see_is_refused(nodes, connection, tmp_path, monkeypatch):
    from rlcredit.campaign.launchers.ray_cluster import refuse_unfit_nodes

    refuse_unfit_nodes(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Path, "touch", lambda path: None)  # what is written here does not arrive there
    with pytest.raises(ValueError, match=f"runs cannot go to node 127.0.0.1: there is no {tmp_path} with what was"):
        refuse_unfit_nodes(tmp_path)


@pytest.mark.slow
def test_a_node_with_other_versions_is_refused(nodes, connection, tmp_path, monkeypatch):
    from rlcredit.campaign.launchers import ray_cluster

    here = ray_cluster.read_code_versions()
    monkeypatch.setattr(ray_cluster, "read_code_versions", lambda: {**here, "version.torch": "1.0"})
    told = f"version.torch is {re.escape(here['version.torch'])}, not 1.0. Install the same."
    with pytest.raises(ValueError, match=told):
        ray_cluster.refuse_unfit_nodes(tmp_path)


@pytest.mark.slow
def test_what_sigterm_does_is_not_changed(cluster, connection):
    """Ray would put another handler there, and a campaign that is told to end would not say that it was interrupted."""
    before, now = cluster.sigterm
    assert now is before
