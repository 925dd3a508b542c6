"""How a command line names a launcher, and the messages for names that are none."""

import re
import sys

import pytest

from rlcredit.campaign.launchers.run_launcher import load_machine_opener


def test_a_function_beside_the_command_opens_machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "my_machines.py").write_text("def open_machines(root, address, slots):\n    return address\n")
    assert load_machine_opener("my_machines.open_machines")(tmp_path, "10.0.0.1:1", None) == "10.0.0.1:1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("slurm", "--launcher slurm: expected local, ray, or MODULE.FUNCTION of your own."),
        ("no_such.thing", "--launcher no_such.thing: there is no module no_such here or installed."),
        ("json.no_such", "--launcher json.no_such: json has no function no_such."),
    ],
)
def test_a_launcher_that_is_none_is_named(name, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_machine_opener(name)


def test_ray_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "rlcredit.campaign.launchers.ray_cluster", raising=False)
    monkeypatch.delitem(sys.modules, "rlcredit.campaign.launchers.node_tasks", raising=False)
    with pytest.raises(ValueError, match=r"--launcher ray needs Ray\. Install it: pip install 'rlcredit\[cluster\]'\."):
        load_machine_opener("ray")
