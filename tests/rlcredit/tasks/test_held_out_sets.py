"""Several held-out sets: each asked by its own task, with noise and metrics of its own."""

import json
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer

from rlcredit.decoding.sampling import Sampling
from rlcredit.outputs.held_out import HeldOutVerdicts
from rlcredit.supervision.progress import StepLines
from rlcredit.tasks import PromptBatch, Records
from rlcredit.tasks.held_out_sets import FAR_APART, HeldOutSet
from rlcredit.training.module import PolicyModule

ASKED = "State the final answer to the following arithmetic problem: {} + {} ="


def table(path, first, count=6):
    rows = [f"{ASKED.format(first, n)},{first + n}" for n in range(count)]
    path.write_text("\n".join(["question,answer", *rows]))
    return path


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(Path("train.csv"), 1, 9)
    table(Path("own.csv"), 2)
    table(Path("other.csv"), 3, 5)
    for name, more in {"same": "own.csv", "other": "other.csv, held_out_completions: 3, held_out_k: 2"}.items():
        arguments = f"{{train_split: null, validation_split: train, path: {more}}}"
        Path(f"{name}.yaml").write_text(f"data: {{class_path: Records, init_args: {arguments}}}")
    return tmp_path


def evaluated(policy, folder, pass_k=4, **arguments):
    """Evaluate once; return what was logged, and the file of verdicts."""
    module = PolicyModule(policy, validation=Sampling(completions=4, max_tokens=32), pass_k=pass_k)
    task = Records("train.csv", "own.csv", prompts_per_step=2, **arguments)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = Trainer(default_root_dir=folder, callbacks=[HeldOutVerdicts(), StepLines()], **quiet)
    trainer.validate(module, task, verbose=False)
    verdicts = json.loads((folder / "held_out" / "step_000000.json").read_text())
    return trainer.callback_metrics, verdicts


def test_every_set_has_its_own_metrics_noise_and_completions(files, policy, capsys):
    metrics, verdicts = evaluated(policy, files / "a", held_out={"same": "same.yaml", "other": "other.yaml"})
    _, alone = evaluated(policy, files / "b")
    assert "sets" not in alone
    assert alone["right"] == verdicts["right"], "what is asked beside them does not touch the task's own questions"
    assert {name for name in verdicts["metrics"] if name.count("/") == 1} == set(alone["metrics"])
    same, other = verdicts["sets"]["same"], verdicts["sets"]["other"]
    assert same["questions_sha256"] == verdicts["questions_sha256"] != other["questions_sha256"]
    assert same["right"] != verdicts["right"], "the same questions, drawn by other noise"
    assert {len(row) for row in same["right"]} == {4}
    assert {len(row) for row in other["right"]} == {3}
    assert (same["numbers"], other["numbers"]) == (list(range(6)), list(range(5)))
    for prefix, rows in {"val": verdicts["right"], "val/same": same["right"], "val/other": other["right"]}.items():
        assert metrics[f"{prefix}/pass_at_1"] == pytest.approx(torch.tensor(rows).float().mean().item())
        for quantity in ("pass_at_k", "unjudged", "completion_length", "entropy"):
            assert f"{prefix}/{quantity}" in metrics
    solved = torch.tensor(other["right"]).sum(-1)
    assert metrics["val/other/pass_at_k"] == pytest.approx((1 - (3 - solved) * (2 - solved) / 6).mean().item())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("    0 steps")[0] for line in lines] == [
        "held out after",
        "same after",
        "other after",
        "held out after",
    ]
    assert [line.rpartition("pass@")[2][0] for line in lines] == ["4", "4", "2", "4"]


def test_a_run_may_ask_the_sets_of_others_only(files, policy):
    metrics, verdicts = evaluated(policy, files / "a", held_out={"other": "other.yaml"}, validation_size=0)
    assert "val/other/pass_at_1" in metrics
    assert not {"val/pass_at_1", "val/pass_at_k"} & set(metrics)
    assert (verdicts["numbers"], verdicts["right"]) == ([], [])
    assert len(verdicts["sets"]["other"]["right"]) == 5


def test_questions_held_out_by_nobody_are_trained_on(files):
    task = Records("train.csv", held_out={"other": "other.yaml"}, validation_size=0, prompts_per_step=2)
    task.setup()
    assert (len(task.train_set), task.held_out_set, len(task.others["other"].held_out_set)) == (9, [], 5)


def test_noise_is_named_by_the_number_of_the_set():
    task = Records("train.csv")
    prompts = PromptBatch([0, 7], ["a", "b"], [])
    assert HeldOutSet("", 0, task).shift_noise_numbers(prompts).numbers == [0, 7]
    assert HeldOutSet("x", 2, task).shift_noise_numbers(prompts).numbers == [2 * FAR_APART, 7 + 2 * FAR_APART]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"held_out": {"other": "othr.yaml"}}, "data.init_args.held_out.other: othr.yaml: there is no such file"),
        ({"held_out": {"a/b": "other.yaml"}}, "data.init_args.held_out: 'a/b' cannot name a folder. Write letters"),
        ({"validation_size": 0}, "data.init_args.validation_size: expected a number from 1 on, got 0"),
        ({"held_out_completions": 0}, "data.init_args.held_out_completions: expected a number from 1 on, got 0"),
        ({"held_out_k": 0}, "data.init_args.held_out_k: expected a number from 1 on, got 0"),
    ],
)
def test_sets_that_cannot_be_asked_are_refused(files, arguments, message):
    with pytest.raises(ValueError, match=message):
        Records("train.csv", **arguments)


def test_a_k_beyond_the_completions_is_refused():
    task = Records("train.csv", held_out_completions=3, held_out_k=4)
    with pytest.raises(
        ValueError, match=r"data.init_args.held_out_k of the held-out set 'x' is 4, " r"but only 3 completions"
    ):
        HeldOutSet("x", 1, task).choose_k(2, 8)
    assert HeldOutSet("x", 1, Records("train.csv")).choose_k(2, 8) == 2
