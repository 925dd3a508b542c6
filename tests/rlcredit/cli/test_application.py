"""The command line, end to end: real configurations, real runs, real kills."""

import csv
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from safetensors.torch import load_file
from torch.testing import assert_close

from rlcredit.cli.application import run_lightning_command
from rlcredit.config.strict_yaml import read_yaml
from rlcredit.preflight import memory
from tests.forks import CommandFork
from tests.shipped_conditions import GROUP_CASES
from tests.slow_cases import mark_others_slow

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
TINY = CONFIGS / "tiny.yaml"
SHORT = [
    *("--model.sampling.completions=4", "--model.sampling.max_tokens=48", "--data.init_args.prompts_per_step=2"),
    *("--data.init_args.train_size=8", "--data.init_args.validation_size=8", "--trainer.val_check_interval=2"),
    "--threads=1",
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])


def explained(capsys, *configs):
    run_lightning_command(["explain", *(f"--config={config}" for config in configs)])
    return capsys.readouterr().out


@pytest.mark.parametrize("condition", GROUP_CASES)
def test_every_condition_explains_itself_on_the_tiny_policy(capsys, condition, tmp_path):
    text = explained(capsys, TINY, condition)
    assert f"condition  {condition.stem}\n" in text
    assert list(tmp_path.iterdir()) == []


MODELS = sorted((CONFIGS / "models").glob("*.yaml"))


@pytest.mark.parametrize("model", mark_others_slow(MODELS, fast=3), ids=lambda path: path.stem)
def test_every_model_explains_itself_without_weights(capsys, model, monkeypatch):
    header = model.read_text().partition("\nmodel:")[0]
    (stated,) = re.findall(r"\((\d+) GiB\)", header)
    monkeypatch.setattr(memory, "find_memory_share", lambda device, processes: (int(stated) * 2**30, "the GPU"))
    policy = read_yaml(model)["model"]["policy"]
    (below,) = re.findall(r"--config configs/(\w+\.yaml) --config configs/models", header)
    configs = (CONFIGS / below, model, CONFIGS / "conditions" / "caps" / "maxrl_cap2.yaml")
    path = policy["path"].replace("policies/smollm2", "HuggingFaceTB/SmolLM2-135M-Instruct")
    run_lightning_command(["explain", *(f"--config={config}" for config in configs), f"--model.policy.path={path}"])
    text = capsys.readouterr().out
    assert f"{path}, {policy.get('quantization', policy['dtype'])}" in text
    assert f"LoRA rank {policy['lora']['rank']}" in text
    assert f"the GPU has {stated}.0 GiB" in text  # refused where one completion did not fit


def test_explain_prints_the_program(capsys):
    text = explained(capsys, TINY, CONFIGS / "conditions" / "caps" / "maxrl_cap2.yaml")
    assert text.endswith(
        "stack, from top to bottom, for rewards in [0, 1]\n"
        "      REINFORCE                  rewards -> advantages, at most 1   (before any operator)\n"
        "   0  MaxRL(eps=1e-06)           correct, judged -> advantages, at most 15   binary rewards only   "
        "arXiv:2602.02710\n"
        "   1  AdvantageClip(limit=2.0)   advantages -> advantages, at most 2\n"
    )


def test_explain_warns_of_a_cap_that_cannot_be_reached(capsys):
    text = explained(capsys, TINY, CONFIGS / "conditions" / "caps" / "grpo_cap5.yaml")
    assert text.endswith(
        "warning: AdvantageClip(limit=5) changes nothing: with rewards in [0, 1] and 16 completions per prompt, "
        "|A| <= 0.9375 above it. Lower the limit, or remove it.\n"
    )


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (
            "trainer: {callbacks: [{class_path: AdvantageClip, init_args: {limt: 2}}]}",
            "trainer.callbacks[0].init_args.limt: `AdvantageClip` has no parameter `limt`. "
            "Did you mean `limit`? It accepts limit.",
        ),
        (
            "trainer: {callbacks: [GRPO, GRRPO]}",
            "trainer.callbacks[1]: no class `GRRPO`. Did you mean `GRPO`? `rlcredit list` ",
        ),
        (
            "trainer: {max_stepz: 3}",
            "trainer.max_stepz: `Trainer` has no parameter `max_stepz`. Did you mean `max_steps`?",
        ),
        ("trainr: {max_steps: 3}", "trainr: no such key. Did you mean `trainer`?"),
        (
            "model: {samplng: {completions: 3}}",
            "model.samplng: `PolicyModule` has no parameter `samplng`. Did you mean `sampling`? docs/reference",
        ),
        (
            "model: {policy: {lor: {rank: 3}}}",
            "model.policy.lor: `Policy` has no parameter `lor`. Did you mean `lora`? It accepts path, lora, ",
        ),
        (
            "data: {init_rgs: {name: chain_sum}}",
            "data.init_args.init_rgs: `ReasoningGym` has no parameter `init_rgs`. Did you mean `init_args`? docs",
        ),
        (
            "trainer: {callbacks: [{class_path: GTPO, init_agrs: {beta: 0.5}}]}",
            "trainer.callbacks[0].init_agrs: no such key. Did you mean `init_args`?",
        ),
        (
            "data: {init_args: {prompt_per_step: 3}}",
            "data.init_args.prompt_per_step: `ReasoningGym` has no parameter `prompt_per_step`. "
            "Did you mean `prompts_per_step`?",
        ),
        (
            "model: {sampling: {temprature: 1}}",
            "model.sampling.temprature: `Sampling` has no parameter `temprature`. Did you mean `temperature`? "
            "It accepts completions, max_tokens, temperature, top_p, top_k.",
        ),
        (
            "model: {optimizer: {class_path: torch.optim.AdamW, init_args: {lrr: 1}}}",
            "model.optimizer.init_args.lrr: `AdamW` has no parameter `lrr`. Did you mean `lr`?",
        ),
        ("model: {pass_k: many}", "model.pass_k: expected a whole number, got 'many'."),
        (
            "model: {optimizer: {class_path: torch.optim.AdamW, init_args: {lr: fast}}}",
            "model.optimizer.init_args.lr: expected a number, got 'fast'.",
        ),
        (
            "model: {lr: 0.1}",
            "model.lr: `PolicyModule` has no parameter `lr`. Did you mean `model.optimizer.init_args.lr`? docs/",
        ),
        ("model: {policy: {dtype: fp8}}", "model.policy.dtype: expected float32, bfloat16 or float16, got 'fp8'."),
        ("trainer: {precision: fp8}", "trainer.precision: expected 32-true, bf16-mixed or 16-mixed, got 'fp8'."),
        (
            "trainer: {precision: bf16-true}",
            "trainer.precision: bf16-true would hold the adapter in as many bits; it learns in float32",
        ),
        (
            "trainer:\n  callbacks:\n    - GRPO\n      - GTPO\n",
            "trainer.callbacks[0]: YAML reads `GRPO - GTPO` as one entry, because `- GTPO` is indented further than "
            "`- GRPO`. Indent both alike.",
        ),
        (
            "trainer:\n  callbacks:\n    - class_path: GTPO\n    init_args: {beta: 1}\n",
            "overlay.yaml: line 4: not YAML: expected <block end>, but found '?'. Indent the keys of one mapping, and",
        ),
        ("trainer:\ncallbacks: [GRPO]\n", "trainer: is empty. Indent what belongs to it, or remove it."),
        ("model: {sampling: {top_p: 0.9}}", "model.sampling.top_p: expected 1, got 0.9."),
        (
            "model: {pass_k: 9}",
            "model.pass_k is 9, but only 4 completions are drawn. Raise model.validation.completions.",
        ),
        ("data: {class_path: ReasonGym}", "data: no class `ReasonGym`. Did you mean `ReasoningGym`?"),
        ("trainer: {accumulate_grad_batches: 2}", "trainer.accumulate_grad_batches is 2; credit is assigned to whole"),
        (
            "trainer: {callbacks: [{class_path: AdvantageClip, init_args: {limit: -1}}]}",
            "AdvantageClip expects limit > 0, got -1.0.",
        ),
        (
            "trainer: {callbacks: [GRPO, {class_path: GTPO, beta: 0.5}]}",
            "trainer.callbacks[1]: write GTPO(beta=0.5).",
        ),
        (
            "trainer: {callbacks: [GRPO: {normalize_std: true}]}",
            "trainer.callbacks[0]: write GRPO(normalize_std=true).",
        ),
        (
            "trainer: {callbacks: [GRPO(true)]}",
            "trainer.callbacks[0]: `true` has no name. Write GRPO(normalize_std=tr",
        ),
        ("trainer: {callbacks: [GRPO, GTPO(beta=0.1]}", "trainer.callbacks[1]: `GTPO(beta=0.1` has no closing parenth"),
        (
            "trainer: {callbacks: [GTPO(betta=0.1)]}",
            "trainer.callbacks[0].init_args.betta: `GTPO` has no parameter `be",
        ),
        (
            "trainer: {callbacks: [GTPO(beta=high)]}",
            "trainer.callbacks[0].init_args.beta: expected a number, got 'high'.",
        ),
        (
            "trainer: {callbacks: ['GTPO(beta=1, beta=2)']}",
            "trainer.callbacks[0]: GTPO.beta is given twice.",
        ),
        ("trainer: {callbacks: [GTOP(beta=1)]}", "trainer.callbacks[0]: no class `GTOP`. Did you mean `GTPO`?"),
        (
            "trainer:\n  callbacks:\n    - Delight(eta={share: 0.5})\n",
            "trainer.callbacks[0]: YAML reads `Delight(eta",
        ),
        (
            "model: {loss: KLPenalty(loss=GSPO(hgh=1))}",
            "model.loss.init_args.loss.init_args.hgh: `GSPO` has no parameter",
        ),
        ("model: {loss: GSPOO}", "model.loss: no class `GSPOO`. Did you mean `GSPO`? `rlcredit list` names all; "),
        (
            "model: {loss: {class_path: TEPO, init_args: {bta: 1}}}",
            "model.loss.init_args.bta: `TEPO` has no parameter `bta`. Did you mean `beta`? It accepts low, high, beta,",
        ),
        ("model: {updates_per_rollout: 3}", "trainer.max_steps is 100 and ends inside a rollout; it counts updates."),
        (
            "{model: {updates_per_rollout: 8}, trainer: {max_steps: 104}}",
            "checkpoint.every_n_train_steps is 20; a checkpoint inside a rollout cannot be continued. Choose a multi",
        ),
        (
            "trainer: {callbacks: [SoftOverlong, MaxRL]}",
            "SoftOverlong writes `rewards`, which nothing below it reads. Remove SoftOverlong from the stack",
        ),
        ("callbacks: [GRPO]", "callbacks: no such key. A stack is written under trainer: {callbacks: [...]}."),
        ("trainer: {callbacks: [{class_path: PassAtK, init_args: {k: 17}}]}", "PassAtK needs 1 <= k <= 16 completions"),
        ("trainer: {callbacks: [GRPO, MaxRL]}", "MaxRL overwrites the `advantages` of GRPO before anything uses it."),
    ],
)
def test_a_mistake_gets_one_readable_message(capsys, tmp_path, overlay, message):
    (tmp_path / "overlay.yaml").write_text(overlay)
    with pytest.raises(SystemExit) as stop:
        run_lightning_command(["explain", f"--config={TINY}", "--config=overlay.yaml"])
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model.optimizer.lr=fast"], "model.optimizer.init_args.lr: expected a number, got 'fast'."),
        (["--config=nowhere.yaml"], "nowhere.yaml: there is no such file."),
        (
            ["--model.sampling.temprature=1"],
            "model.sampling.temprature: `Sampling` has no parameter `temprature`. Did you mean `temperature`?",
        ),
        (["--data.init_args.nme=x"], "data.init_args.nme: `ReasoningGym` has no parameter `nme`. Did you mean `name`?"),
        (
            ["--data.init_args.path=sums.csv"],  # a key that model.policy has, too
            "data.init_args.path: `ReasoningGym` has no parameter `path`. GSM8K, MATH, Records have",
        ),
        (["--data=Records"], "data.init_args.path: missing, and Records needs it."),
        (
            ["--data=Records", "--data.path=q.jsonl", "--data.answers=some"],
            "data.init_args.answers: expected any or all, got 'some'.",
        ),
        (["--data=sums.csv"], "data: sums.csv is a table, no task. Say --data Records --data.init_args.path sums.csv"),
        (
            ["--data=Records", "--data.path=q.jsonl"],
            "data.init_args.path: q.jsonl cannot be read (No such file or directory).",
        ),
        (["--data=Records", "--data.path=~/q.jsonl"], "q.jsonl cannot be read (No such file or directory)."),
        (["--data.init_args.name=chain_sums"], "reasoning-gym has no data set 'chain_sums'. Close names: chain_sum,"),
        (
            ["--data.init_args.config.min_term=4"],
            "data.init_args.config: `chain_sum` has no parameter `min_term`. Did you mean `min_terms`? It accepts",
        ),
        (
            ["--data.init_args.prompts_per_step=0"],
            "data.init_args.prompts_per_step: expected a number from 1 on, got 0.",
        ),
        (["--model.policy.lora.rank=-3"], "LoRA expects rank >= 1, got -3."),
        (
            ["--trainer.val_check_interval=0.5"],
            "trainer.val_check_interval: expected a number of steps, got 0.5.",
        ),
    ],
)
def test_a_mistake_on_the_command_line_gets_one_too(capsys, arguments, message):
    with pytest.raises(SystemExit):
        run_lightning_command(["explain", f"--config={TINY}", *arguments])
    assert message in capsys.readouterr().err


def test_a_malformed_file_stops_the_run_before_it_begins(capsys, tmp_path):
    (tmp_path / "train.jsonl").write_text('{"prompt": "2+2"}\n')
    (tmp_path / "data.yaml").write_text("data: {class_path: Records, init_args: {path: train.jsonl}}")
    with pytest.raises(SystemExit):
        run_lightning_command(
            [
                "fit",
                f"--config={CONFIGS / 'conditions' / 'sepa_paper' / 'c1_grpo.yaml'}",
                "--config=data.yaml",
                "--trainer.logger=false",
            ]
        )
    assert (
        "train.jsonl, line 1: no column is called `answer`, `final_answer`, `ground_truth`; found ['prompt']"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "mlruns").exists()


class Kill(Callback):
    """End the process without a word, as a machine that loses power does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer, *args) -> None:
        if trainer.global_step == self.step and os.environ.get("MAY_KILL"):
            os.kill(os.getpid(), signal.SIGKILL)


def database(folder):
    """By its whole path: MLflow keeps the connection that it made for a relative one in another folder."""
    return f"sqlite:///{folder}/mlflow.db"


def adapter(name):
    return load_file(f"runs/{name}-seed0/adapter/adapter_model.safetensors")


def adapter_weights(folder):
    return load_file(folder / "adapter" / "adapter_model.safetensors")


def run(*arguments, **environment):
    """Run the command in a process of its own; return its exit status and its errors."""
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    words = ["-m", "rlcredit", "fit", f"--config={TINY}", *SHORT, *arguments]
    fork = CommandFork(words, Path.cwd(), {**os.environ, **path, **environment})
    _, errors = fork.communicate()
    return fork.returncode, errors


@pytest.mark.usefixtures("mlflow_database")
@pytest.mark.slow
def test_a_killed_run_ends_as_one_that_was_never_killed(tmp_path):
    """Four steps are an epoch: one kill is continued inside an epoch, the other from its last batch."""
    from mlflow import MlflowClient

    every = ["--trainer.max_steps=6", "--checkpoint.every_n_train_steps=2"]
    for step in (3, 5):
        kill = f'{{"class_path": "tests.rlcredit.cli.test_application.Kill", "init_args": {{"step": {step}}}}}'
        (tmp_path / f"kill{step}.yaml").write_text(f"trainer: {{callbacks: [GRPO, {kill}]}}")
        killed = [f"--config=kill{step}.yaml", f"--condition=killed_{step}", *every]
        assert run(*killed, MAY_KILL="1")[0] == -signal.SIGKILL
        status, errors = run(*killed, "--ckpt_path=last")
        assert status == 0, errors
    assert run("--condition=whole", *every)[0] == 0
    whole = adapter("whole")
    for other in (adapter("killed_3"), adapter("killed_5")):
        assert whole.keys() == other.keys()
        assert all(torch.equal(whole[name], other[name]) for name in whole)
    client = MlflowClient(database(tmp_path))
    runs = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["killed_3-seed0", "killed_5-seed0", "whole-seed0"]
    assert {run.info.status for run in runs} == {"FINISHED"}


@pytest.mark.parametrize(
    ("file", "is_told"), [("trainer: {callbacks: [GRPO]}", False), ("trainer: {max_steps: 5}", True)]
)
def test_a_flag_is_lost_where_a_later_file_sets_the_same_and_nowhere_else(capsys, tmp_path, file, is_told):
    (tmp_path / "later.yaml").write_text(file)
    run_lightning_command(["explain", f"--config={TINY}", "--trainer.max_steps=3", "--config=later.yaml"])
    said = "warning: --trainer.max_steps has no effect: later.yaml:1 sets it again."
    assert capsys.readouterr().err.startswith(said) == is_told


@pytest.mark.parametrize(("stack", "is_told"), [("null", True), ("[EntropyCollapse]", True), ("[GRPO]", False)])
def test_a_run_without_operators_says_what_its_credit_is(capsys, stack, is_told):
    words = [f"--trainer.callbacks={stack}", "--trainer.max_steps=1", "--trainer.logger=false"]
    run_lightning_command(["fit", f"--config={TINY}", *SHORT, *words])
    assert ("the stack has no operator: credit is the reward (REINFORCE)" in capsys.readouterr().err) == is_told


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow_database")
def test_a_run_leaves_everything_in_mlflow(capsys, tmp_path):
    import yaml
    from mlflow import MlflowClient
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    named = ["--seed_everything=7", "--completions.rows=4", "--checkpoint.every_n_train_steps=1"]
    store = f"--trainer.logger.init_args.tracking_uri={database(tmp_path)}"
    run_lightning_command(["fit", f"--config={TINY}", *SHORT, "--trainer.max_steps=3", *named, store])
    said = capsys.readouterr().out.splitlines()
    assert said[-6].startswith("held out after    3 steps: pass@1")
    assert said[-5].startswith("held out: pass@1 ")
    assert said[-4] == "results are in runs/grpo-seed7, the adapter in runs/grpo-seed7/adapter"
    assert said[-3] == "open runs/grpo-seed7/heatmap/step_000002.html in a browser to see its credit"
    opened = f"mlflow ui --backend-store-uri {database(tmp_path)}"
    assert said[-2] == f"in MLflow: run grpo-seed7 of experiment tiny, {opened}"
    assert said[-1].startswith("its page: http://127.0.0.1:5000/#/experiments/")
    client = MlflowClient(database(tmp_path))
    (found,) = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    assert found.info.run_name == "grpo-seed7"
    assert found.info.status == "FINISHED"
    tags = found.data.tags
    assert (tags["condition"], tags["seed"]) == ("grpo", "7")
    assert {"git_commit", "version.torch", "version.lightning", "version.transformers"} <= set(tags)

    parameters = found.data.params
    assert {parameters[name] for name in ("optimizer.lr", "GRPO.normalize_std", "task.name")} == {
        *("0.0005", "False", "chain_sum")
    }
    assert parameters["stack"] == "GRPO(normalize_std=False)"
    assert (tags["held_out.step"], float(tags["held_out.pass_at_1"])) == (
        "3",
        pytest.approx(found.data.metrics["val/pass_at_1"], abs=1e-4),
    )
    assert [line[:10] for line in tags["mlflow.note.content"].splitlines()[2:]] == ["| 0 steps ", "| 3 steps "]

    expected = {
        *("train/solve_rate", "train/reward", "train/loss", "train/completion_length", "train/truncated"),
        *("train/unjudged", "train/zero_variance", "train/zero_variance_all_right", "train/zero_variance_all_wrong"),
        *("train/entropy", "train/surprisal", "train/surprisal_p90", "train/kl_sampler", "train/ratio_min"),
        *("train/ratio_max", "train/gradient_norm", "train/tokens_per_second", "time/rollout", "time/verify"),
        *("time/credit", "time/update", "val/pass_at_1", "val/pass_at_k", "credit/GRPO/advantage_max"),
    }
    assert expected <= set(found.data.metrics)
    steps = {name: [m.step for m in client.get_metric_history(found.info.run_id, name)] for name in expected}
    assert {tuple(steps[name]) for name in expected if not name.startswith("val/")} == {(0, 1, 2)}
    assert steps["val/pass_at_1"] == [0, 2, 3]
    # One call writes one timestamp: all metrics of a step went out together.
    trained = [name for name in expected if not name.startswith("val/")]
    written = {m.timestamp for name in trained for m in client.get_metric_history(found.info.run_id, name)}
    assert len(written) == 3

    artifacts = {path.path for path in client.list_artifacts(found.info.run_id)}
    assert {"config.yaml", "learning_curve.png", "adapter", "completions"} <= artifacts
    folder = Path("runs/grpo-seed7")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["seed_everything"] == 7
    assert config["model"]["sampling"]["temperature"] == 0.7
    assert config["trainer"]["default_root_dir"] is None
    run_lightning_command(["explain", f"--config={folder / 'config.yaml'}"])  # what was executed can be executed again

    again, rloo = ["fit", f"--config={folder / 'config.yaml'}"], CONFIGS / "conditions" / "baselines" / "rloo.yaml"
    with pytest.raises(SystemExit):
        run_lightning_command([*again, "--ckpt_path=last", f"--config={rloo}", "--condition=grpo"])
    assert (
        "was made with stack 'GRPO(normalize_std=False)', but the configuration says 'RLOO'" in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        run_lightning_command([*again, "--ckpt_path=last", "--condition=other"])
    assert "there is no checkpoint runs/other-seed7/checkpoints/last.ckpt" in capsys.readouterr().err
    run_lightning_command([*again, "--ckpt_path=last", "--trainer.max_steps=4"])
    (found,) = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    assert [m.step for m in client.get_metric_history(found.info.run_id, "train/loss")] == [0, 1, 2, 3]
    table = json.loads((folder / "completions" / "step_000000.json").read_text())
    assert len(table) == 4
    for record in table:
        assert len(record["tokens"]) == len(record["advantages"])
        assert "".join(record["tokens"]) == record["completion"]
        assert "State the final answer" in record["prompt"]

    base = AutoModelForCausalLM.from_pretrained(ROOT / "rlcredit" / "tiny")
    learned = PeftModel.from_pretrained(base, folder / "adapter").state_dict()
    assert any("lora_B" in name and weight.abs().sum() > 0 for name, weight in learned.items())
    tokenizer = AutoTokenizer.from_pretrained(folder / "adapter")
    assert tokenizer.apply_chat_template([{"role": "user", "content": "1 + 1"}], tokenize=False)
    card = (folder / "adapter" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: peft\ntags: ")
    for row in (
        "base | `tiny`, embedded in rlcredit",
        "run | grpo-seed7",
        "steps | 4",
        "stack | GRPO(normalize_std=False)",
    ):
        assert f"| {row} |" in card
    assert all(weight.dtype == torch.float32 for weight in adapter_weights(folder).values())
    saved = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
    assert all("lora_" in name for name in saved["state_dict"])


MEASURED = """
trainer:
  logger: {class_path: lightning.pytorch.loggers.CSVLogger, init_args: {save_dir: "."}}
  callbacks:
    - {class_path: MonteCarloCredit, init_args: {samples: 4}}
    - {class_path: GradientProbe, init_args: {every_n_steps: 1}}
    - {class_path: GTPO, init_args: {beta: 0.5}}
    - {class_path: CounterfactualProbe, init_args: {stacks: {grpo: [GRPO]}, every_n_steps: 1}}
    - {class_path: NoiseFloor, init_args: {every_n_steps: 1, draws: 20}}
"""


@pytest.mark.slow
def test_two_processes_learn_and_measure_what_one_does():
    Path("measured.yaml").write_text(MEASURED)
    args = ["--config=measured.yaml", "--trainer.max_steps=3", "--data.init_args.prompts_per_step=4"]
    args += ["--model.optimizer=torch.optim.SGD", f"--model.optimizer.lr={(rate := 0.1)}"]  # weights tell the gradient
    both = ["--trainer.devices=2", "--trainer.strategy=ddp"]
    one = run("--condition=one", *args, "--trainer.logger.init_args.name=one")
    two = run("--condition=two", *args, "--trainer.logger.init_args.name=two", *both)
    assert one[0] == two[0] == 0, one[1] + two[1]
    theirs = adapter("two")
    for name, weight in adapter("one").items():
        assert_close(theirs[name], weight, atol=rate * 1e-6, rtol=0)
        assert "lora_A" in name or weight.abs().max() > 100 * rate * 1e-6, name
    found = [measured(Path(name) / "version_0" / "metrics.csv") for name in ("one", "two")]
    assert found[0].keys() == found[1].keys()
    compared = [name for name in found[0] if "Probe/raw_" in name or "_vs_" in name or "_selection_" in name]
    assert len(compared) > 6
    for name in compared:
        assert found[1][name] == pytest.approx(found[0][name], rel=2e-3, abs=2e-2), name
    assert any("NoiseFloor" in name for name in found[0])
    tables = [Path(f"runs/{name}-seed0/completions/step_000000.json") for name in ("one", "two")]
    ours, theirs = ({record["completion"] for record in json.loads(path.read_text())} for path in tables)
    assert theirs <= ours


def measured(path):
    """The last value of every metric of a probe."""
    with path.open() as lines:
        return {name: float(v) for row in csv.DictReader(lines) for name, v in row.items() if v and "probe/" in name}
