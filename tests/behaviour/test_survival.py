"""A finished run survives every command but the one that says to replace it."""

import hashlib
import importlib
import shutil
import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.commands import COMMAND_TABLE
from rlcredit.run_folder.layout import RunFolder
from tests.small_runs import SMALL

pytestmark = pytest.mark.slow  # every command beside a finished run

FIT = [*SMALL[1:], "--trainer.logger=false", "--trainer.max_steps=2"]
RUN = Path("runs/grpo-seed0")

BROKEN = """
from rlcredit.credit.operator import CreditOperator


class Late(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        if rollout.mask.shape[1] > 30:
            raise RuntimeError("only real completions are so long")
        rollout.advantages = 2 * rollout.advantages
        return {}
"""
TASK = """
data:
  class_path: ReasoningGym
  init_args: {name: chain_sum, config: {min_terms: 3, max_terms: 3}, validation_size: 4, train_size: 16}
"""
CAMPAIGN = """
name: grpo-seed0
configs: [configs/tiny.yaml]
conditions: {a: configs/conditions/sepa_paper/c1_grpo.yaml, b: configs/conditions/baselines/rloo.yaml}
baseline: a
seeds: [0, 1]
steps: 3
primary: val/pass_at_1
effect: 0.1
exploratory: true
"""


def hashes(folder=RUN):
    """Identify every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def status(*words):
    """Return how a command ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["rlcredit", *words])
        try:
            if not COMMAND_TABLE[words[0]].runs:
                return run_lightning_command()
            module, function = COMMAND_TABLE[words[0]].runs.split(":")
            return getattr(importlib.import_module(module), function)(list(words[1:]))
        except SystemExit as ended:
            return ended.code


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A directory with a finished run, and files that some commands want."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert status("fit", *FIT) is None
        shutil.copy(RUN / "checkpoints" / "step=2.ckpt", "elsewhere.ckpt")
    for name, text in {"broken.py": BROKEN, "task.yaml": TASK, "again.yaml": CAMPAIGN}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def directory(finished, tmp_path, monkeypatch):
    """The same, to work in; afterwards the run is there again, at the same place, which its checkpoints name."""
    shutil.copytree(finished / "runs", tmp_path / "runs")
    monkeypatch.chdir(finished)
    yield finished
    shutil.rmtree("runs")
    shutil.move(tmp_path / "runs", "runs")


CASES = {
    "fit again": ("fit", *FIT),
    "fit, a typo in an operator": ("fit", *FIT, "--trainer.callbacks=GRRPO"),
    "fit, a typo and a replacement": ("fit", *FIT, "--trainer.callbacks=GRRPO", "--replace"),
    "fit, an operator that is in nobody's way": ("fit", *FIT, "--trainer.callbacks=HICRA", "--replace"),
    "fit, an unknown key": ("fit", *FIT, "--trainer.max_stepz=3", "--replace"),
    "fit, an unknown option": ("fit", *FIT, "--replaces"),
    "fit, no such policy": ("fit", *FIT, "--model.policy.path=policies/none", "--replace"),
    "fit, no such data": ("fit", *FIT, "--data.init_args.name=chain_some", "--replace"),
    "fit, too few questions": ("fit", *FIT, "--data.init_args.config.max_terms=1", "--replace"),
    "fit, replacing by a file": ("fit", *FIT, "--config={replace: true}"),
    "fit, the same place under another name": ("fit", *FIT, "--condition=b", f"--trainer.default_root_dir={RUN}"),
    "fit, its checkpoints": ("fit", *FIT, "--condition=b", f"--checkpoint.dirpath={RUN}/checkpoints"),
    "fit, from a checkpoint elsewhere": ("fit", *FIT, "--ckpt_path=elsewhere.ckpt"),
    "fit, from none": ("fit", *FIT, "--ckpt_path=none.ckpt", "--replace"),
    "fit, as another": ("fit", *FIT, "--trainer.callbacks=RLOO", "--ckpt_path=last"),
    "validate": (
        "validate",
        *FIT[:-2],
        "--data.init_args.validation_size=2",
        f"--ckpt_path={RUN}/checkpoints/last.ckpt",
    ),
    "explain": ("explain", *FIT),
    "explain, what it was": ("explain", f"--config={RUN}/config.yaml"),
    "try": ("try", f"--ckpt_path={RUN}", "--questions=1"),
    "sample": ("sample", f"--ckpt_path={RUN}", "--max_tokens=4", "1 + 1 = ?"),
    "evaluate": ("evaluate", "--tasks", "task.yaml", "--ckpt_path", f"{RUN}", "--out", "out", "--max_tokens", "4"),
    "evaluate, into it": ("evaluate", "--tasks", "task.yaml", "--ckpt_path", f"{RUN}", "--out", f"{RUN}"),
    "export": ("export", f"--ckpt_path={RUN}", "--out=exported", "--adapter_only"),
    "export, into it": ("export", f"--ckpt_path={RUN}", f"--out={RUN}/adapter"),
    "deliver": ("deliver", "runs"),
    "new": ("new", "operator", f"{RUN}/config.yaml"),
    "report": ("report", f"{RUN}"),
    "list": ("list", "operators: schedules"),
    "campaign": ("campaign", "again.yaml", "--out=runs", "--slots=0"),
    "card": ("card", "broken.Nothing", "--out=runs"),
}


def test_every_command_is_tried():
    assert {words[0] for words in CASES.values()} == {*COMMAND_TABLE}


@pytest.mark.parametrize("words", CASES.values(), ids=CASES.keys())
def test_a_finished_run_survives(words, directory, capsys):
    before = hashes()
    code = status(*words)
    assert "Traceback" not in capsys.readouterr().err
    assert before.items() <= hashes().items()
    if words[0] == "fit":
        assert code == 2
        assert hashes() == before


def test_the_refusal_says_what_lies_there_and_three_ways_on(directory, capsys):
    assert status("fit", *FIT) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: runs/grpo-seed0 holds a run of 2 of 2 steps, last written 20")
    for part in (
        "its adapter",
        "step=2.ckpt",
        "evaluations up to step 2",
        "--condition NAME",
        "--ckpt_path last",
        "--replace",
    ):
        assert part in said
    assert said.count("\n") == 1


def test_a_replacement_that_fails_leaves_the_run_beside_it_and_one_that_succeeds_removes_it(directory, capsys):
    before = hashes()
    with pytest.raises(RuntimeError, match="only real completions"):
        status("fit", *FIT, "--trainer.callbacks=[GRPO, broken.Late]", "--replace")
    assert hashes(RunFolder(RUN).former_run) == {name: each for name, each in before.items() if name != "lock"}
    assert status("fit", *FIT) == 2
    assert "a run that was to be replaced, in runs/grpo-seed0/former" in capsys.readouterr().err
    assert status("fit", *FIT, "--replace", "--trainer.callbacks=RLOO") is None
    assert not RunFolder(RUN).former_run.exists()
    assert {name for name in hashes() if "log" not in name} == before.keys()
    assert "RLOO" in (RUN / "config.yaml").read_text()


def test_a_finished_run_is_continued_without_loss(directory):
    before = hashes()
    assert status("fit", *FIT, "--ckpt_path=auto") is None
    kept = [name for name in before if name.startswith(("held_out/", "completions/")) or "safetensors" in name]
    assert {name: hashes()[name] for name in kept} == {name: before[name] for name in kept}


def test_going_back_says_what_it_removes(directory, capsys):
    assert status("fit", *FIT[:-1], "--trainer.max_steps=4", "--ckpt_path=last") is None
    before, back = hashes(), f"--ckpt_path={RUN}/checkpoints/step=2.ckpt"
    assert status("fit", *FIT[:-1], "--trainer.max_steps=4", back) == 2
    assert "holds step=4.ckpt, which a run that goes back to step 2 removes." in capsys.readouterr().err
    assert hashes() == before


def test_a_run_without_a_checkpoint_is_begun_anew(directory):
    folder = RunFolder(RUN)
    shutil.rmtree(folder.checkpoints)
    shutil.rmtree(folder.adapter)
    folder.evaluation_file(2).unlink()
    assert folder.describe_results() == []
    assert status("fit", *FIT) is None
    assert folder.describe_results() != []


def test_a_folder_of_something_else_is_not_written_to(directory, capsys):
    mine = Path("mine")
    (mine / "adapter").mkdir(parents=True)
    (mine / "config.yaml").write_text("mine: true")
    (mine / "adapter" / "plug.stl").write_text("mine")
    for more in ([], ["--replace"]):
        assert status("fit", *FIT, "--trainer.default_root_dir=mine", *more) == 2
        assert "mine is not the folder of a run, and holds adapter, config.yaml, which" in capsys.readouterr().err
    assert len(hashes(mine)) == 2
