"""A real campaign on two nodes: killed in the middle of both runs, started again, finished."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
import yaml
from lightning.pytorch import Callback

from rlcredit.campaign.process_identity import read_start_time
from tests.forks import CommandFork
from tests.processes import await_end

ROOT = Path(__file__).parents[4]
HOLD = "tests.rlcredit.campaign.launchers.test_ray_campaign.Hold"
SMALL = {
    "data.init_args.validation_size": 8,
    "data.init_args.train_size": 8,
    "data.init_args.prompts_per_step": 2,
    "model.sampling.completions": 4,
    "model.sampling.max_tokens": 48,
    "trainer.val_check_interval": 2,
    "checkpoint.every_n_train_steps": 2,
}


class Hold(Callback):
    """Stay before the fourth step as long as a file is there."""

    def on_train_batch_start(self, trainer, *args) -> None:
        while trainer.global_step == 3 and Path("hold").exists():
            time.sleep(0.05)


def declared(folder):
    """Declare two runs, and hold them."""
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "hold.yaml").write_text(f"trainer: {{callbacks+: [{{class_path: {HOLD}}}]}}")
    (folder / "hold").touch()
    declaration = yaml.safe_load((ROOT / "configs" / "campaigns" / "tiny_smoke.yaml").read_text())
    conditions = {"grpo": [declaration["conditions"]["grpo"], "hold.yaml"]}
    declaration.update(steps=4, settings=SMALL, conditions=conditions)
    (folder / "campaign.yaml").write_text(yaml.safe_dump(declaration))
    return folder / "campaigns" / "tiny_smoke"


def begun(folder, address):
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    words = ["campaign", "campaign.yaml", "--launcher=ray", f"--address={address}"]
    return CommandFork(["-m", "rlcredit", *words], folder, {**os.environ, **path})


def status(folder):
    path = folder / "status.json"
    return json.loads(path.read_text())["step"] if path.exists() else 0


@pytest.mark.slow
def test_a_killed_command_leaves_nothing_in_the_cluster_and_goes_on(nodes, tmp_path, mlflow_database):
    from mlflow import MlflowClient

    root = declared(tmp_path)
    names = ("grpo/seed0", "grpo/seed1")
    folders = [root / name for name in names]
    killed = begun(tmp_path, nodes.address)
    while not all(status(folder) == 3 for folder in folders):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.1)
    records = [json.loads((folder / "process.json").read_text()) for folder in folders]
    assert [read_start_time(record["pid"]) for record in records] == [record["started"] for record in records]
    killed.send_signal(signal.SIGKILL)
    said, _ = killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert f"where      Ray at {nodes.address}: 2 nodes hold 1 run each; a run takes 1 CPU\n" in said
    for record in records:  # the cluster ends the runs, which would go on holding
        await_end(record)

    (tmp_path / "hold").unlink()
    done = begun(tmp_path, nodes.address)
    said, err = done.communicate()
    assert done.returncode == 0, said + err
    assert all(f"continues  {name}\n" in said for name in names)
    assert "measuring" not in said
    specs = json.loads((root / "ledger.json").read_text())["cells"]
    assert {name: (spec["state"], spec["attempts"]) for name, spec in specs.items()} == dict.fromkeys(
        names, ("finished", 2)
    )
    assert [spec["differences"] for spec in specs.values()] == [[], []]
    assert [list(spec["metrics"]) for spec in specs.values()] == 2 * [["0", "2", "4"]]
    assert [path.name for path in root.iterdir() if path.name.startswith(".")] == []

    visited = [re.findall(r"^on node (\w+) ", (folder / "log.txt").read_text(), re.MULTILINE) for folder in folders]
    assert [len(each) for each in visited] == [2, 2]
    assert all(one != other for one, other in zip(*visited))  # both times, each run had a node of its own

    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    (parent,) = (run for run in runs if run.info.run_name == "tiny_smoke")
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert sorted(run.data.tags["cell"] for run in children) == sorted(names)
    assert {run.info.status for run in runs} == {"FINISHED"}
