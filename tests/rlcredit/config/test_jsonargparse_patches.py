"""The one name that is replaced in jsonargparse, and what it writes without that; arguments that tasks share."""

import sys
from pathlib import Path

import jsonargparse._util as util
import pytest
from jsonargparse._util import get_import_path

import rlcredit
from rlcredit.cli.application import run_lightning_command
from rlcredit.config import jsonargparse_patches
from rlcredit.config.class_paths import find_declaring_class
from rlcredit.config.jsonargparse_patches import patch_written_class_paths
from rlcredit.decoding.sampling import Sampling
from rlcredit.tasks import GSM8K, JSONL, MATH, HubDataset, ReasoningGym, Records, Task

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])


@pytest.mark.parametrize(
    ("config", "arguments", "task"),
    [
        ("tiny.yaml", ["--data=GSM8K"], "GSM8K(path='openai/gsm8k', name='main', "),
        ("tiny.yaml", ["--config=gsm8k.yaml"], "GSM8K(path='openai/gsm8k', name='main', "),
        (
            "tiny.yaml",
            ["--data=GSM8K", "--data.init_args.name=socratic"],
            "GSM8K(path='openai/gsm8k', name='socratic', ",
        ),
        (
            "tiny.yaml",
            ["--data.init_args.name=gcd", "--data.init_args.config=null"],
            "ReasoningGym(name='gcd', config={}, ",
        ),
        (
            "base.yaml",
            ["--data=JSONL", "--data.init_args.train=x.jsonl"],
            "JSONL(train=PosixPath('x.jsonl'), validation=None)",
        ),
    ],
)
def test_another_task_begins_with_its_own_arguments(capsys, tmp_path, config, arguments, task):
    (tmp_path / "gsm8k.yaml").write_text("data: {class_path: GSM8K}")
    lines = [f'{{"question": "{number} + 1", "answer": "{number + 1}"}}' for number in range(40)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    run_lightning_command(["explain", f"--config={CONFIGS / config}", *arguments])
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("task"))
    assert said.removeprefix("task").strip().startswith(task)
    prompts = 8 if config == "tiny.yaml" else 16
    assert said.endswith(f"{prompts} prompts per step"), "what every task has is kept"


def test_an_argument_belongs_to_the_class_that_declares_it():
    assert find_declaring_class(GSM8K, "name") is GSM8K
    assert find_declaring_class(MATH, "revision") is HubDataset
    assert find_declaring_class(JSONL, "question") is find_declaring_class(Records, "question") is Records
    assert find_declaring_class(ReasoningGym, "instruction") is find_declaring_class(Records, "instruction") is Task
    assert find_declaring_class(GSM8K, "nothing") is None


def test_a_name_that_is_public_changes_no_path_that_is_written():
    patch_written_class_paths()
    classes = [named for named in map(rlcredit.__getattr__, rlcredit.__all__) if isinstance(named, type)]
    written = {cls.__name__: get_import_path(cls) for cls in classes}
    assert {name: written[name] for name in ("Policy", "LoRA", "ReasoningGym", "Records", "RunRecord", "Sampling")} == {
        "Policy": "rlcredit.policy.Policy",
        "LoRA": "rlcredit.policy.LoRA",
        "ReasoningGym": "rlcredit.tasks.ReasoningGym",
        "Records": "rlcredit.tasks.Records",
        "RunRecord": "rlcredit.record.RunRecord",
        "Sampling": "rlcredit.decoding.sampling.Sampling",
    }
    assert not [path for path in written.values() if path.count(".") < 2]


def test_a_configuration_may_use_the_public_name(tmp_path, capsys):
    (tmp_path / "public.yaml").write_text(
        "model: {policy: {class_path: rlcredit.Policy, init_args: {dtype: bfloat16}}}"
    )
    run_lightning_command(["explain", f"--config={CONFIGS / 'tiny.yaml'}", "--config=public.yaml"])
    assert "tiny, bfloat16, LoRA rank 16" in capsys.readouterr().out


@pytest.fixture
def unpatched(monkeypatch):
    """jsonargparse as it is without rlcredit; what commands have replaced comes back after the test."""
    monkeypatch.setattr(util.resolved_import_paths, "get", jsonargparse_patches._find_import_path)


def test_without_the_written_paths_a_public_name_replaces_the_room(unpatched):
    assert get_import_path(Sampling) == "rlcredit.Sampling"
    patch_written_class_paths()
    assert get_import_path(Sampling) == "rlcredit.decoding.sampling.Sampling"
