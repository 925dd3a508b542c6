"""A real campaign: planned, killed in the middle of a run, started again, finished."""

import json
import os
import re
import shlex
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from lightning.pytorch import Callback
from safetensors.torch import load_file

from rlcredit.campaign.campaign_command import run_campaign_command
from rlcredit.campaign.declaration import CampaignDeclaration, HeldOutChoice
from rlcredit.campaign.execution import refuse_fixed_questions
from rlcredit.report.report_command import run_report_command as report
from tests.forks import CommandFork
from tests.processes import await_end

ROOT = Path(__file__).parents[3]
KILL = "tests.rlcredit.campaign.test_campaign.KillCampaign"
SMALL = {
    "data.init_args.validation_size": 8,
    "data.init_args.train_size": 8,
    "data.init_args.prompts_per_step": 2,
    "model.sampling.completions": 4,
    "model.sampling.max_tokens": 48,
    "trainer.val_check_interval": 5,
    "checkpoint.every_n_train_steps": 5,
}


class KillCampaign(Callback):
    """Kill the campaign that this run belongs to, and then try to go on."""

    def on_train_batch_start(self, trainer, *args) -> None:
        if trainer.global_step == 7 and os.environ.get("MAY_KILL"):
            os.kill(campaign_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)


def campaign_of(pid):
    """Return the pid of the process that has started the fork server whose fork has forked a run."""
    for _ in range(3):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def command(*words, **environment):
    """Return exit status, output and errors of a command."""
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    fork = CommandFork(["-m", "rlcredit", *words], Path.cwd(), {**os.environ, **path, **environment})
    out, err = fork.communicate()
    return fork.returncode, out, err


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """The shipped campaign, smaller, with a condition that may kill it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "kill.yaml").write_text(f"trainer: {{callbacks+: [{{class_path: {KILL}}}]}}")
    declaration = yaml.safe_load((ROOT / "configs" / "campaigns" / "tiny_smoke.yaml").read_text())
    overlays = [declaration["conditions"]["maxrl_sepa"], "kill.yaml"]
    declaration.update(settings=SMALL, conditions={**declaration["conditions"], "maxrl_sepa": overlays})
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump(declaration))
    return declaration


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow_database")
def test_a_killed_campaign_ends_as_one_that_was_never_killed(campaign, tmp_path, capsys):
    from mlflow import MlflowClient

    root = tmp_path / "campaigns" / "tiny_smoke"
    status, _, err = command("campaign", "campaign.yaml", "--slots=1", "--threads=1", MAY_KILL="1")
    assert status == -signal.SIGKILL, err
    known = json.loads((root / "ledger.json").read_text())["cells"]
    assert {name: spec["state"] for name, spec in known.items()} == {
        "grpo/seed0": "finished",
        "maxrl_sepa/seed0": "running",
    }
    process = json.loads((root / "maxrl_sepa" / "seed0" / "process.json").read_text())
    await_end(process)  # the run dies with its campaign; it would sleep longer before it went on
    before = files(root / "grpo" / "seed0")

    changed = {**campaign, "effect": 0.5}
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(changed))
    assert run_campaign_command(["changed.yaml"]) == 2
    assert "declaration.effect: was 0.02, is now 0.5\n" in capsys.readouterr().err

    status, out, err = command("campaign", "campaign.yaml", "--slots=2")
    assert status == 0, out + err
    assert "1 of 4 runs are finished." in out
    assert "continues  maxrl_sepa/seed0\n" in out
    assert "measuring" not in out  # it is remembered
    assert files(root / "grpo" / "seed0") == before
    specs = json.loads((root / "ledger.json").read_text())["cells"]
    assert {(spec["state"], *spec["differences"]) for spec in specs.values()} == {("finished",)}
    assert {name: spec["attempts"] for name, spec in specs.items()} == {
        "grpo/seed0": 1,
        "maxrl_sepa/seed0": 2,
        "grpo/seed1": 1,
        "maxrl_sepa/seed1": 1,
    }
    assert all(list(spec["metrics"]) == ["0", "5", "10"] for spec in specs.values())

    # The interrupted run, made again from what was declared for it, without interruption.
    declared = root / "maxrl_sepa" / "seed0" / "declared.yaml"
    status, _, err = command(
        "fit", f"--config={declared}", "--trainer.default_root_dir=whole", "--trainer.logger=false"
    )
    assert status == 0, err
    folders = (tmp_path / "whole", declared.parent)
    ours, theirs = (load_file(folder / "adapter" / "adapter_model.safetensors") for folder in folders)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours.keys() | theirs.keys())
    assert held_out(folders[0]) == held_out(folders[1])

    # Pairs are pairs: the same prompts and the same noise in both conditions of a seed, others in another seed.
    first = {name: sampled(root / name) for name in specs}
    assert first["grpo/seed0"] == first["maxrl_sepa/seed0"]
    assert first["grpo/seed1"] == first["maxrl_sepa/seed1"]
    assert first["grpo/seed0"] != first["grpo/seed1"]

    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    (parent,) = (run for run in runs if run.info.run_name == "tiny_smoke")
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert sorted(run.data.tags["cell"] for run in children) == sorted(specs)
    assert {run.info.status for run in runs} == {"FINISHED"}

    # What it found: nothing, of two pairs.
    assert report(["campaign.yaml"]) == 0
    said, *facts, page = capsys.readouterr().out.strip().splitlines()
    assert said.startswith("maxrl_sepa against grpo: could not decide: ")
    assert any(fact.startswith("  largest possible lead: ") for fact in facts)
    assert "groups without variance, training" in Path(page).read_text()
    assert "report/report.html" in {file.path for file in client.list_artifacts(parent.info.run_id, "report")}


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow_database")
def test_runs_of_a_killed_campaign_with_a_budget_end_where_they_would_have_ended(campaign, tmp_path, capsys):
    root, budget = tmp_path / "campaigns" / "tiny_smoke", {"decoded_tokens": 2400, "evaluations": 3}
    del campaign["steps"]
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump({**campaign, "budget": budget}))
    status, out, err = command("campaign", "campaign.yaml", "--slots=1", "--threads=1", MAY_KILL="1")
    assert status == -signal.SIGKILL, err
    assert "runs       2 conditions x 2 seeds = 4 runs of 2,400 decoded tokens, 1 at a time\n" in out
    assert re.search(r"run of +takes +steps, about +a step +an evaluation\n", out)
    status, out, err = command("campaign", "campaign.yaml", "--slots=2")
    assert status == 0, out + err
    assert "1 of 4 runs are finished." in out
    assert "continues  maxrl_sepa/seed0\n" in out
    specs = json.loads((root / "ledger.json").read_text())["cells"]
    assert {(spec["state"], *spec["differences"]) for spec in specs.values()} == {("finished",)}
    for spec in specs.values():
        counted = [tokens["decoded"] for tokens in spec["tokens"].values()]
        assert [tokens * 3 // 2400 for tokens in counted] == [0, 1, 2, 3]
        assert spec["primary"] == list(spec["metrics"].values())[-1]["val/pass_at_1"]

    declared = root / "maxrl_sepa" / "seed0" / "declared.yaml"
    words = ("--trainer.default_root_dir=whole", "--trainer.logger=false")
    status, _, err = command("fit", f"--config={declared}", *words)
    assert status == 0, err
    folders = (tmp_path / "whole", declared.parent)
    ours, theirs = (load_file(folder / "adapter" / "adapter_model.safetensors") for folder in folders)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours.keys() | theirs.keys())
    assert held_out(folders[0]) == held_out(folders[1])
    ours, theirs = (counted_tokens(folder) for folder in folders)
    assert ours == theirs

    before = files(root / "grpo" / "seed1")
    assert run_campaign_command(["campaign.yaml", "--plan"]) == 0
    assert report(["campaign.yaml"]) == 0
    assert "## Tokens" in (root / "report" / "report.md").read_text()
    (root / "ledger.json").unlink()  # what is finished is taken over from its checkpoints
    assert command("campaign", "campaign.yaml", "--slots=2")[0] == 0
    assert (
        json.loads((root / "ledger.json").read_text())["cells"]["grpo/seed1"]["metrics"]
        == (specs["grpo/seed1"]["metrics"])
    )
    held = [path for path in before if path.parent.name == "held_out"]
    assert {path: before[path] for path in held} == {path: path.stat().st_mtime_ns for path in held}


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow_database")
def test_every_seed_may_have_held_out_questions_of_its_own_that_its_pairs_share(campaign, tmp_path):
    own = {"questions": "by_seed", "draws": "by_seed"}
    small = {**SMALL, "trainer.val_check_interval": 2, "checkpoint.every_n_train_steps": 2}
    (tmp_path / "campaign.yaml").write_text(
        yaml.safe_dump({**campaign, "steps": 2, "held_out": own, "settings": small})
    )
    status, out, err = command("campaign", "campaign.yaml", "--slots=2", "--threads=1")
    assert status == 0, out + err
    root = tmp_path / "campaigns" / "tiny_smoke"
    asked = {
        (name, seed): json.loads((root / name / f"seed{seed}" / "held_out" / "step_000002.json").read_text())
        for name in ("grpo", "maxrl_sepa")
        for seed in (0, 1)
    }
    hashes = {key: content["questions_sha256"] for key, content in asked.items()}
    assert hashes["grpo", 0] == hashes["maxrl_sepa", 0] != hashes["grpo", 1] == hashes["maxrl_sepa", 1]
    first, second = (
        json.loads((root / name / "seed1" / "held_out" / "step_000000.json").read_text())
        for name in ("grpo", "maxrl_sepa")
    )
    assert first["right"] == second["right"]
    cells = json.loads((root / "ledger.json").read_text())["cells"].values()
    assert [cell["differences"] for cell in cells] == [[]] * 4
    assert report(["campaign.yaml"]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow_database")
def test_printed_commands_make_the_runs_that_the_campaign_takes_over(campaign, tmp_path, capsys):
    small = {**SMALL, "trainer.val_check_interval": 2, "checkpoint.every_n_train_steps": 2}
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump({**campaign, "steps": 2, "settings": small}))
    assert run_campaign_command(["campaign.yaml", "--print-commands", "--threads=1"]) == 0
    output = capsys.readouterr()
    assert "campaign   tiny_smoke, declaration " in output.err
    lines = output.out.splitlines()
    assert len(lines) == 4
    assert json.loads(Path("campaigns/tiny_smoke/ledger.json").read_text())["cells"] == {}
    for line in (lines[0], lines[0]):
        variable, program, *words = shlex.split(line)
        assert program == "rlcredit"
        name, _, value = variable.partition("=")
        status, _, err = command(*words, **{name: value})
        assert status == 0, err
    status, out, err = command("campaign", "campaign.yaml", "--slots=2")
    assert status == 0, out + err
    assert "continues  grpo/seed0\n" in out
    assert "begins     maxrl_sepa/seed1\n" in out
    cells = json.loads(Path("campaigns/tiny_smoke/ledger.json").read_text())["cells"].values()
    assert [(cell["state"], cell["attempts"], cell["differences"]) for cell in cells] == [("finished", 1, [])] * 4
    assert run_campaign_command(["campaign.yaml", "--print-commands"]) == 0
    assert capsys.readouterr().out == ""


def test_questions_of_a_task_that_does_not_generate_them_cannot_differ_by_seed():
    made = {"baseline": "grpo", "seeds": (0,), "steps": 1, "primary": "val/pass_at_1", "effect": 0.1}
    declaration = CampaignDeclaration("x", (), {"grpo": ()}, **made, held_out=HeldOutChoice("by_seed"))
    fixed = SimpleNamespace(leaves={"data": {"init_args": {}}}, task=SimpleNamespace())
    with pytest.raises(ValueError, match="by_seed needs a task that generates its questions, but grpo asks"):
        refuse_fixed_questions(declaration, {"grpo": fixed})
    generated = SimpleNamespace(leaves={"data": {"init_args": {"generator_seed": 0}}})
    refuse_fixed_questions(declaration, {"grpo": generated})


def counted_tokens(folder):
    """Return the counts of every step of a run's record."""
    entries = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    return [
        (entry["step"], name, value)
        for entry in entries
        for name, value in entry.get("metrics", {}).items()
        if name.startswith("tokens/")
    ]


def held_out(folder):
    return [path.read_text() for path in sorted(folder.glob("held_out/*.json"))]


def sampled(folder):
    table = json.loads((folder / "completions" / "step_000000.json").read_text())
    return [(record["prompt"], record["completion"]) for record in table]


def test_a_seed_is_the_same_first_policy_in_every_condition(fit):
    from callbacks.episode.grpo import GRPO
    from callbacks.episode.maxrl import MaxRL

    grpo, maxrl = (fit(steps=1, lr=0.0, stack=[kind()], completions=4).adapter for kind in (GRPO, MaxRL))
    assert any(weight.abs().sum() > 0 for weight in grpo.values())
    assert all(torch.equal(grpo[name], maxrl[name]) for name in grpo.keys() | maxrl.keys())
