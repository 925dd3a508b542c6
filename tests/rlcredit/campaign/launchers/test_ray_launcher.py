"""Runs on two nodes by a stand-in: some crash, some lose their node, some are interrupted."""

import json
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlcredit.campaign import child_process, process_identity
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.launchers import ray_launcher
from rlcredit.campaign.launchers.cluster_nodes import ClusterNode
from rlcredit.campaign.launchers.local_launcher import LocalLauncher
from rlcredit.campaign.run_spec import RunSpec, list_run_specs
from rlcredit.campaign.run_view import RunEventLines
from rlcredit.campaign.scheduler import RunScheduler

STAND_IN = """
import json, os, pathlib, sys, time
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
folder, condition = pathlib.Path(words["trainer.default_root_dir"]), words["condition"]
name = f"{condition}{words['seed_everything']}"
tried = folder.parent / f"tried_{folder.name}"
before = tried.read_text() if tried.exists() else ""
tried.write_text(before + "x")
seen = {key: os.environ.get(key) for key in ("NODE", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}
(folder / "seen.json").write_text(json.dumps(seen))
if name == "bad0" or (name == "bad1" and not before):
    sys.exit("CUDA out of memory, or so")
(folder / "begun").touch()
while condition == "meets" and len(list(folder.parent.glob("*/begun"))) < 2:
    time.sleep(0.05)
while condition == "waits" and not before and not pathlib.Path(f"go_{name}").exists():
    time.sleep(0.05)
(folder / "held_out").mkdir()
for step in (0, 2):
    outcome = {"step": step, "metrics": {"val/pass_at_1": step / 4}}
    outcome |= {"numbers": [0], "questions_sha256": "0", "right": [[1]]}
    (folder / "held_out" / f"step_{step:06d}.json").write_text(json.dumps(outcome))
executed = {"seed_everything": int(words["seed_everything"]), "threads": 1, "lr": 0.1}
executed["trainer"] = {"default_root_dir": words["trainer.default_root_dir"]}
if name == "good1":
    del executed["lr"]
(folder / "config.yaml").write_text(json.dumps(executed))
(folder / "parameters.json").write_text(json.dumps({"stack": condition}))
"""
CPU = SimpleNamespace(trainer=SimpleNamespace(accelerator=None))


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """What makes the scheduler of a campaign whose runs find the stand-in in the place of rlcredit."""
    package = tmp_path / "stand_in" / "rlcredit"
    (package / "campaign").mkdir(parents=True)
    for module in (child_process, process_identity):
        shutil.copy(module.__file__, package / "campaign")
    for place in (package, package / "campaign"):
        (place / "__init__.py").touch()
    (package / "__main__.py").write_text(STAND_IN)
    monkeypatch.chdir(tmp_path)
    parent = SimpleNamespace(
        child_environment=lambda spec: {"PYTHONPATH": str(package.parent)}, kill_open_attempts=lambda spec: None
    )

    def make(launcher, root, *conditions):
        declaration = CampaignDeclaration(
            "x", (), dict.fromkeys(conditions, ()), conditions[0], (0, 1), 2, "val/pass_at_1", 0.02
        )
        leaves = {"seed_everything": 9, "threads": 9, "lr": 0.1, "trainer": {}}
        kinds = {name: SimpleNamespace(leaves=leaves, parameters={"stack": name}) for name in conditions}
        Path(root).mkdir()
        return RunScheduler(
            declaration, kinds, [0, 2], launcher, Path("settings.yaml"), CampaignRecord(Path(root)), parent
        )

    return make


def through(scheduler, view=None):
    scheduler.run_missing(list_run_specs(scheduler.declaration, scheduler.ledger.path.parent), view or RunEventLines())
    return scheduler.ledger.content["cells"]


def seen(root, condition, seed):
    return json.loads((Path(root) / condition / f"seed{seed}" / "seen.json").read_text())


def runs_on(root, condition):
    return [seen(root, condition, seed)["NODE"] for seed in (0, 1)]


class Once(RunEventLines):
    """Do something once, as soon as both runs of a condition have begun."""

    def __init__(self, folder, act) -> None:
        self.folder, self.act, self.done = Path(folder), act, False

    def redraw(self) -> None:
        if not self.done and len(list(self.folder.glob("*/begun"))) == 2:
            self.done = True
            self.act()


@pytest.mark.slow
def test_two_runs_go_on_at_a_time_on_two_nodes(scheduler, nodes, connection):
    """Each waits for the other, and a node has room for one."""
    launcher = connection(CPU, None)
    assert (launcher.slots, launcher.threads) == (2, 1)
    assert launcher.description == f"Ray at {nodes.address}: 2 nodes hold 1 run each; a run takes 1 CPU"
    states = {name: spec["state"] for name, spec in through(scheduler(launcher, "root", "meets")).items()}
    assert states == {"meets/seed0": "finished", "meets/seed1": "finished"}
    assert sorted(runs_on("root", "meets")) == ["one", "two"]
    assert seen("root", "meets", 0)["OMP_NUM_THREADS"] == "1"
    assert seen("root", "meets", 0)["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.slow
def test_crashes_and_the_ledger_are_those_of_this_machine(scheduler, nodes, connection, capsys):
    known = {}
    for root, launcher in {
        "ray": connection(CPU, None),
        "local": LocalLauncher(2 * [{"OMP_NUM_THREADS": "1"}]),
    }.items():
        ledger = through(scheduler(launcher, root, "good", "bad"))
        assert {name: (spec["state"], spec["attempts"]) for name, spec in ledger.items()} == {
            "good/seed0": ("finished", 1),
            "bad/seed0": ("failed", 2),
            "good/seed1": ("finished", 1),
            "bad/seed1": ("finished", 2),
        }
        assert ledger["bad/seed0"]["status"] == 1
        assert ledger["good/seed1"]["differences"] == ["lr: declared 0.1, executed nothing"]
        own = ("seconds", "finished", "declared_sha256", "executed_sha256")  # times, and a folder in the configuration
        known[root] = {
            name: {key: value for key, value in spec.items() if key not in own} for name, spec in ledger.items()
        }
        assert "    CUDA out of memory, or so\n" in capsys.readouterr().out
    assert known["ray"] == known["local"]


@pytest.mark.slow
def test_a_run_whose_node_dies_is_tried_again_on_another(scheduler, nodes, connection, capsys):
    first, lost = [], {}

    def strike():
        lost.update(json.loads(Path("root/waits/seed0/process.json").read_text()))
        first.extend(runs_on("root", "waits"))
        nodes.die(first[0])
        Path("go_waits1").touch()

    known = through(scheduler(connection(CPU, None), "root", "waits"), Once("root/waits", strike))
    assert sorted(first) == ["one", "two"]
    assert runs_on("root", "waits") == [first[1], first[1]]
    assert {name: (spec["state"], spec["attempts"]) for name, spec in known.items()} == {
        "waits/seed0": ("finished", 2),
        "waits/seed1": ("finished", 1),
    }
    assert "crashed    waits/seed0   status -9" in capsys.readouterr().out
    assert "node it was running on is dead" in Path("root/waits/seed0/log.txt").read_text()
    assert process_identity.read_start_time(lost["pid"]) != lost["started"]
    while connection(CPU, None).slots == 2:  # for the cluster to notice
        time.sleep(0.05)
    assert connection(CPU, None).slots == 1


@pytest.mark.slow
def test_what_is_interrupted_leaves_no_process_in_the_cluster(scheduler, nodes, connection):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        through(scheduler(connection(CPU, None), "root", "waits"), Once("root/waits", interrupt))
    for seed in (0, 1):
        record = json.loads(Path(f"root/waits/seed{seed}/process.json").read_text())
        assert record["machine"] == process_identity.identify_machine()
        assert process_identity.read_start_time(record["pid"]) is None


@pytest.mark.slow
def test_every_node_is_asked_to_end_what_was_left(scheduler, nodes, connection, tmp_path):
    """A run whose task is gone while it goes on, as after a cut network."""
    launcher, folder = connection(CPU, None), RunSpec("waits", 0, tmp_path).folder
    given = [f"--trainer.default_root_dir={folder}", "--condition=waits", "--seed_everything=0"]
    package = {"PYTHONPATH": str(tmp_path / "stand_in")}
    scheduler(launcher, "root", "waits")
    process = LocalLauncher([{"OMP_NUM_THREADS": "1"}]).start_run(folder, given, package)
    while not (folder / "begun").exists():
        time.sleep(0.05)
    launcher.end_leftover_run(folder / "process.json")
    assert process.popen.wait(1) == -signal.SIGKILL


@pytest.mark.slow
def test_a_run_with_a_gpu_goes_where_one_is_and_sees_only_that(scheduler, nodes, connection):
    from rlcredit.campaign.launchers.ray_launcher import RayLauncher

    launcher = RayLauncher(None, 1, 1)
    assert launcher.slots == 1
    assert launcher.description.endswith("1 node holds 1 run; a run takes 1 CPU and 1 GPU")
    through(scheduler(launcher, "root", "good"))
    assert seen("root", "good", 0) == {"NODE": "two", "CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_what_no_node_can_hold_is_refused(nodes, connection):
    with pytest.raises(ValueError, match=r"no node of the cluster has 2 CPUs for a run\. Lower --threads"):
        connection(CPU, 2)


def test_a_machine_that_has_left_the_cluster_is_noticed(monkeypatch):
    context = SimpleNamespace(get_node_id=lambda: "here")
    monkeypatch.setattr(ray_launcher.ray, "get_runtime_context", lambda: context)
    alive = [ClusterNode("10.0.0.1", "here", 1, 0), ClusterNode("10.0.0.2", "there", 1, 0)]
    monkeypatch.setattr(ray_launcher, "list_cluster_nodes", lambda: alive)
    pulse = ray_launcher.ClusterHeartbeat()
    pulse.refuse_lost_cluster()
    del alive[0]
    pulse.refuse_lost_cluster()  # a moment later nobody looks
    pulse.looked -= ray_launcher.HEARTBEAT_SECONDS
    with pytest.raises(ValueError, match=r"raylet\) has died\. Start Ray again"):
        pulse.refuse_lost_cluster()
