"""The kinds of input that are fuzzed: how a valid one is made, and which command reads a changed one."""

import dataclasses
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml
from fuzz_mutations import damage_bytes, dump_as_yaml_or_json, mutate_content

from rlcredit.base.files import file_sha256
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.cli.application import CreditCLI, run_credit_cli
from rlcredit.report.report_command import run_report_command as report
from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tasks import Records

ROOT = Path(__file__).parents[2]
TINY = ROOT / "configs" / "tiny.yaml"
CONDITION = ROOT / "configs" / "conditions" / "sepa_variants" / "grpo_sepa_hicra.yaml"
Attempt = Callable[[], int | None]


class CheckOnlyCLI(CreditCLI):
    """The command line up to the moment at which a run would begin."""

    def run_subcommand(self, subcommand: str) -> None:
        """Do not begin."""


@dataclasses.dataclass(frozen=True)
class FuzzedInput:
    """A kind of input.

    Args:
        name: Name in the table.
        share: Share of all inputs.
        prepared: Function that makes a sound input, and what lies around it, in the working directory.
        attempt: Function that changes the input, and returns what a command line does with it.

    """

    name: str
    share: float
    prepared: Callable[[Path], Any]
    attempt: Callable[[Any, random.Random], Attempt]


def catch_refusal(call: Callable[[], object]) -> Attempt:
    """Return what a command line does around a function: print its refusal, and say 2."""

    def attempt() -> int | None:
        try:
            call()
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return None

    return attempt


def write_mutated_config(name: str, content: Any, rng: random.Random) -> Path:
    """Write a changed configuration, one in four of them as a damaged text."""
    path = Path(name)
    text = dump_as_yaml_or_json(mutate_content(content, rng)).encode()
    path.write_bytes(damage_bytes(dump_as_yaml_or_json(content).encode(), rng) if rng.random() < 0.25 else text)
    return path


def write_mutated_json(path: Path, content: Any, rng: random.Random) -> None:
    """Write a changed JSON file, three in ten of them damaged besides."""
    lines = json.dumps(mutate_content(content, rng), default=str).encode()
    path.write_bytes(damage_bytes(lines, rng) if rng.random() < 0.3 else lines)


def make_sound_config(folder: Path) -> dict[str, Any]:
    """Return a whole configuration that trains."""
    content = yaml.safe_load(TINY.read_text())
    overlay = yaml.safe_load(CONDITION.read_text())
    content["trainer"] |= overlay["trainer"] | {"max_steps": 20, "logger": False}
    content["model"]["loss"] = {"class_path": "KLPenalty", "init_args": {"loss": "GSPO", "beta": 0.1}}
    content["model"]["engine"] = {"class_path": "InProcessEngine", "init_args": {"threads": 1}}
    content["model"]["scheduler"] = {"class_path": "torch.optim.lr_scheduler.StepLR", "init_args": {"step_size": 5}}
    content["data"]["init_args"] |= {"train_size": 64, "validation_size": 8}
    content |= {"seed_everything": 0, "checkpoint": {"every_n_train_steps": 20}, "completions": {"rows": 4}}
    return content


def make_config_attempt(command: str) -> Callable[[Any, random.Random], Attempt]:
    """Return an attempt to give a changed configuration to a command."""

    def attempt(content: Any, rng: random.Random) -> Attempt:
        write_mutated_config("fuzzed.yaml", content, rng)
        return lambda: _check_arguments([command, "--config=fuzzed.yaml"])

    return attempt


def _check_arguments(arguments: list[str]) -> None:
    run_credit_cli(arguments, CheckOnlyCLI)


def try_mutated_flags(content: Any, rng: random.Random) -> Attempt:
    """Give a changed value of a sound configuration as a flag."""
    Path("sound.yaml").write_text(dump_as_yaml_or_json(content))
    key = rng.choice(("trainer", "model", "data", "checkpoint", "completions"))
    section = mutate_content(content[key], rng)
    arguments = (
        [f"--{key}.{name}={json.dumps(value, default=str)}" for name, value in section.items()]
        if isinstance(section, dict)
        else []
    )
    return lambda: _check_arguments(["explain", "--config=sound.yaml", *arguments])


def make_sound_questions(folder: Path) -> list[dict[str, Any]]:
    """Return questions, enough to hold some out."""
    return [{"prompt": f"{number} + 1 =", "answer": number + 1, "level": 3} for number in range(60)]


def try_mutated_questions(content: Any, rng: random.Random) -> Attempt:
    """Read a changed file of questions."""
    lines = "".join(json.dumps(line, default=str) + "\n" for line in mutate_content(content, rng)).encode()
    Path("train.jsonl").write_bytes(damage_bytes(lines, rng) if rng.random() < 0.6 else lines)
    return catch_refusal(lambda: Records("train.jsonl").setup())


def make_sound_campaign(folder: Path) -> dict[str, Any]:
    """Return a campaign file, with the files that it names."""
    for name in ("base.yaml", "a.yaml", "b.yaml"):
        Path(name).touch()
    return {
        **{"name": "x", "configs": ["base.yaml"], "conditions": {"a": "a.yaml", "b": ["b.yaml"]}, "baseline": "a"},
        **{"seeds": [0, 1], "steps": 10, "primary": "val/pass_at_1", "effect": 0.02, "deviation": None},
        **{"exploratory": True, "settings": {"trainer.val_check_interval": 5}},
        "families": {"all": {"baseline": "a", "conditions": ["b"]}},
    }


def try_mutated_campaign(content: Any, rng: random.Random) -> Attempt:
    """Read a changed campaign file."""
    write_mutated_config("campaign.yaml", content, rng)
    return catch_refusal(lambda: read_declaration(Path("campaign.yaml")))


def make_finished_campaign(folder: Path) -> dict[str, Any]:
    """Leave a finished campaign behind, and return its ledger."""
    config = {
        "data": {"class_path": "ReasoningGym", "init_args": {"name": "chain_sum"}},
        "model": {"validation": {"completions": 2}, "pass_k": 2},
        "trainer": {"logger": False},
    }
    content = {**make_sound_campaign(folder), "conditions": {"a": ("a.yaml",), "b": ("b.yaml",)}}
    del content["families"]
    declaration = CampaignDeclaration(**content).to_json()
    ledger: dict[str, Any] = {"declaration": declaration, "configs": {"a": config, "b": config}, "cells": {}}
    for name in ("a/seed0", "b/seed0", "a/seed1", "b/seed1"):
        entry = {"state": "finished", "seconds": 1.0, "attempts": 1, "differences": [], "executed_sha256": "1" * 64}
        entry |= {"versions": {"git_commit": "1" * 40}, "metrics": {}, "held_out_sha256": {}}
        for step in (0, 10):
            metrics = {"val/pass_at_1": 0.5, "val/pass_at_k": 0.75, "val/entropy": 0.1, "val/completion_length": 9.0}
            evaluation = {"step": step, "metrics": metrics, "numbers": [0, 1, 2, 3], "questions_sha256": "2" * 64}
            path = RunFolder(Path("campaigns/x") / name).evaluation_file(step)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**evaluation, "right": [[1, 1], [0, 1], [1, 0], [0, 0]]}))
            entry["metrics"][str(step)], entry["held_out_sha256"][str(step)] = metrics, file_sha256(path)
        ledger["cells"][name] = entry
    return ledger


def try_mutated_campaign_record(content: Any, rng: random.Random) -> Attempt:
    """Report a campaign whose ledger has changed."""
    write_mutated_json(Path("campaigns/x/ledger.json"), content, rng)
    return _report_finished_campaign


def try_mutated_evaluation(content: Any, rng: random.Random) -> Attempt:
    """Report a campaign one of whose held-out files has changed before the ledger recorded it."""
    ledger = make_finished_campaign(Path())
    path = RunFolder("campaigns/x/b/seed1").evaluation_file(10)
    write_mutated_json(path, json.loads(path.read_text()), rng)
    ledger["cells"]["b/seed1"]["held_out_sha256"]["10"] = file_sha256(path)
    Path("campaigns/x/ledger.json").write_text(json.dumps(ledger))
    return _report_finished_campaign


def _report_finished_campaign() -> int:
    with tempfile.TemporaryDirectory() as elsewhere:
        return report(["campaigns/x", "--out", elsewhere])


def make_sound_checkpoint(folder: Path) -> dict[str, Any]:
    """Return a checkpoint, and leave a sound configuration beside it."""
    Path("sound.yaml").write_text(dump_as_yaml_or_json(make_sound_config(folder)))
    return {
        "state_dict": {"policy.lm.lora_A": torch.zeros(2, 2)},
        **{"global_step": 0, "epoch": 0, "parameters": {}, "run_name": "grpo-seed0", "mlflow_run_id": "1"},
        "hyper_parameters": {"optimizer": {"class_path": "os.system", "init_args": {"command": "touch canary"}}},
    }


def try_mutated_checkpoint(content: Any, rng: random.Random) -> Attempt:
    """Continue from a changed checkpoint."""
    with Path("x.ckpt").open("w+b") as file:
        write_sealed_checkpoint(content if rng.random() < 0.6 else mutate_content(content, rng), file)
    if rng.random() < 0.6:
        Path("x.ckpt").write_bytes(damage_bytes(Path("x.ckpt").read_bytes(), rng))
    return lambda: _check_arguments(["fit", "--config=sound.yaml", "--ckpt_path=x.ckpt"])


def copy_embedded_policy(folder: Path) -> dict[str, Any]:
    """Copy the embedded policy, and return its description."""
    shutil.copytree(ROOT / "rlcredit" / "tiny", "policy")
    Path("sound.yaml").write_text(dump_as_yaml_or_json(make_sound_config(folder)))
    return json.loads(Path("policy/config.json").read_text())


def try_mutated_policy_config(content: Any, rng: random.Random) -> Attempt:
    """Begin with a policy whose description has changed."""
    write_mutated_json(Path("policy/config.json"), content, rng)
    return lambda: _check_arguments(["fit", "--config=sound.yaml", "--model.policy.path=policy"])


KINDS = (
    FuzzedInput("configuration, explain", 0.10, make_sound_config, make_config_attempt("explain")),
    FuzzedInput("configuration, fit", 0.06, make_sound_config, make_config_attempt("fit")),
    FuzzedInput("flags, explain", 0.04, make_sound_config, try_mutated_flags),
    FuzzedInput("questions (JSONL)", 0.30, make_sound_questions, try_mutated_questions),
    FuzzedInput("campaign file", 0.25, make_sound_campaign, try_mutated_campaign),
    FuzzedInput("ledger, report", 0.13, make_finished_campaign, try_mutated_campaign_record),
    FuzzedInput("held-out file, report", 0.06, make_finished_campaign, try_mutated_evaluation),
    FuzzedInput("checkpoint, fit", 0.03, make_sound_checkpoint, try_mutated_checkpoint),
    FuzzedInput("policy's config.json, fit", 0.03, copy_embedded_policy, try_mutated_policy_config),
)
