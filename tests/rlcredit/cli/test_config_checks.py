"""Values that used to end in a traceback, or in silence, on the real command line."""

import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command

TINY = Path(__file__).parents[3] / "configs" / "tiny.yaml"
SCHEDULER = '--config={"model": {"scheduler": {"class_path": "torch.optim.lr_scheduler.%s", "init_args": %s}}}'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--seed_everything=-1", "seed_everything: expected a number from 0 to 4294967295, got -1."),
        (
            f"--seed_everything={2**63}",
            "seed_everything: expected a number from 0 to 4294967295, got 9223372036854775808.",
        ),
        (
            "--seed_everything=true",
            "seed_everything: expected a number, got ",
        ),
        (
            "--config={seed_everything: true}",
            "seed_everything: expected a number, got ",
        ),
        ("--trainer.max_steps=1:59:59", "YAML reads 1:59:59 as a number in base sixty."),
        (f"--trainer.max_steps={'9' * 400}", "a number of 400 digits; none needs more than 60. Shorten it."),
        (
            "--data.init_args.train_size=1000000000000",
            "data.init_args.train_size: 1,000,000,000,000 questions take more than the ",
        ),
        ("--threads=0", "threads: expected a number from 1 to 1024, or null for torch's choice, got 0."),
        (
            f"--threads={2**31}",
            "threads: expected a number from 1 to 1024, or null for torch's choice, got 2147483648.",
        ),
        (
            "--config={checkpoint: false}",
            "checkpoint: expected a mapping of settings, got false. A run always keeps checkpoints;",
        ),
        (
            "--config={trainer: [1]}",
            "trainer: expected a mapping of settings, got a list. Write trainer: {max_steps: 1",
        ),
        ("--config={model: [1]}", "model: expected a mapping of settings, got a list."),
        ("--config={completions: [1]}", "completions: expected a mapping of settings, got a list."),
        ("--config={1: 2}", "{1: 2}: 1: keys must be texts, got 1. Put quotes around it."),
        ("--config={condition: a, condition: b}", "--config: line 1: condition occurs twice; the second would replace"),
        ("--model.sampling={completions: 2, completions: 4}", "--model.sampling: line 1: completions occurs twice"),
        (
            "--trainer.callbacks=" + "[" * 5000,
            "--trainer.callbacks: line 1: nested more than 40 deep. Write it flatter.",
        ),
        ("--config=" + "x" * 300, "cannot be read (File name too long)."),
        ("--config=/", "/: a folder, and no file. Name a file in it."),
        ("--config=a\0b", "a\\0b: cannot be read (embedded null byte)."),
        (
            "--condition=../../x",
            "condition: '../../x' cannot name a folder. Write letters, digits, `.`, `_` and `-`, a letter",
        ),
        ("--condition=", "condition: '' cannot name a folder"),
        ('--config={trainer: "a\\0b"}', "trainer: contains a null byte, which no name or path may. Remove it."),
        ("--config={data: {class_path: {a: 1}, init_args: {x: 1}}}", "data"),
        ("--condition=" + "x" * 300, "names a folder: at most 100 characters, got 300."),
        (
            "--model.engine={class_path: InProcessEngine, init_args: {threads: 2147483648}}",
            "InProcessEngine expects 1 to 1024 threads, got 2147483648.",
        ),
        (
            "--model.sampling.max_tokens=1000000000",
            "model.sampling.max_tokens: 128 completions of 1,000,000,000 tokens ta",
        ),
        (
            "--model.validation.max_tokens=1000000000",
            "model.validation.max_tokens: 256 completions of 1,000,000,000 toke",
        ),
        (
            "--model.optimizer.init_args.capturable=true",
            "model.optimizer: AssertionError: If capturable=True, params and",
        ),
        ("--model.optimizer.init_args.lr=-1", "model.optimizer.init_args.lr: expected a number above 0, got -1."),
        (
            "--model.sampling.completions=1",
            "model.sampling.completions: GRPO gives no credit to groups of 1.",
        ),
        ("--model.optimizer=torch.optim.SparseAdam", "SparseAdam does not support dense gradients"),
        (SCHEDULER % ("StepLR", '{"step_size": 0}'), "model.scheduler: ZeroDivisionError: integer modulo by zero"),
        ("--trainer.devices=foo", "`devices` selected with `CPUAccelerator` should be an int > 0."),
        ("--trainer.accelerator=tpu", "trainer.accelerator: expected one of this machine, got 'tpu'"),
    ],
    ids=lambda text: text[:40],
)
@pytest.mark.parametrize("command", ["explain", "fit"])
def test_it_is_refused_in_one_sentence_and_leaves_nothing(capsys, tmp_path, command, argument, message):
    with pytest.raises(SystemExit) as stop:
        run_lightning_command([command, f"--config={TINY}", argument])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("lora", "message"),
    [
        (
            "{targets: [q_proj, nope]}",
            "model.policy.lora.targets: no linear layer is called 'nope'. There are down_proj, ",
        ),
        ("{targets: '('}", "model.policy.lora.targets: '(' is no pattern"),
        ("{targets: []}", "model.policy.lora.targets: [] names no linear layer. There are"),
        ("{rank: 1000000000}", "model.policy.lora.rank: an adapter of rank 1,000,000,000 takes "),
    ],
)
def test_an_adapter_for_no_layer_is_refused_before_the_run_begins(capsys, tmp_path, lora, message):
    with pytest.raises(SystemExit) as stop:
        run_lightning_command(["fit", f"--config={TINY}", f"--config={{model: {{policy: {{lora: {lora}}}}}}}"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["trainer.logger.init_args.tracking_uri", "model.policy.path", "condition", "nonsense"])
def test_a_password_is_refused_and_not_printed(capsys, tmp_path, key):
    Path("overlay.yaml").write_text(f"{key}: http://ann:SECRET@host")
    for argument in (f"--{key}=http://ann:SECRET@host", "--config=overlay.yaml"):
        with pytest.raises(SystemExit) as stop:
            run_lightning_command(["fit", f"--config={TINY}", argument])
        captured = capsys.readouterr()
        assert stop.value.code == 2
        assert "Remove it, or set MLFLOW_TRACKING_URI and --mlflow env (tracking_uri: null)." in captured.err
        assert "SECRET" not in captured.err + captured.out
    assert [path.name for path in tmp_path.iterdir()] == ["overlay.yaml"]
