"""What each replaced function of jsonargparse does, beside what jsonargparse does without it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import jsonargparse._typehints as typehints
import jsonargparse._util as util
import pytest
from jsonargparse import ArgumentError, ArgumentParser, get_loader, set_loader
from jsonargparse._loaders_dumpers import get_loader_exceptions
from jsonargparse._util import get_import_path
from yaml import YAMLError

import rlcredit
from rlcredit.cli.application import run_lightning_command
from rlcredit.config import jsonargparse_patches, strict_yaml
from rlcredit.config.class_paths import import_class_path
from rlcredit.config.jsonargparse_patches import (
    find_declaring_class,
    import_unchecked,
    list_options,
    patch_argument_carryover,
    patch_call_form,
    patch_class_import,
    patch_written_class_paths,
    patch_yaml_loader,
)
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
    originals = jsonargparse_patches._Originals
    monkeypatch.setattr(typehints, "import_object", originals.import_object)
    monkeypatch.setattr(typehints, "discard_init_args_on_class_path_change", originals.discard)
    monkeypatch.setattr(typehints, "adapt_subconfig_path", originals.adapt_path)
    monkeypatch.setattr(util.resolved_import_paths, "get", originals.find_import_path)
    before, errors = get_loader("yaml"), get_loader_exceptions("yaml")
    set_loader("yaml", originals.load_yaml, exceptions=(YAMLError,))
    yield
    set_loader("yaml", before, exceptions=errors)


def test_without_the_import_a_function_of_python_is_named_by_a_configuration(unpatched):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--named", type=Callable)
    assert parser.parse_object({"named": "os.getcwd"}).named is os.getcwd
    patch_class_import(import_class_path)
    with pytest.raises(ArgumentError, match="is Python's own"):
        parser.parse_object({"named": "os.getcwd"})
    assert import_unchecked("os.getcwd") is os.getcwd


def test_without_the_loader_the_first_of_two_equal_keys_disappears(unpatched):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--steps", type=int)
    assert parser.parse_string("steps: 1\nsteps: 2").steps == 2
    patch_yaml_loader(strict_yaml.parse_yaml, strict_yaml.UnreadableError)
    with pytest.raises(ArgumentError, match="steps occurs twice"):
        parser.parse_string("steps: 1\nsteps: 2")


def test_without_the_carryover_an_argument_changes_its_meaning(unpatched):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--data", type=Task)
    arguments = ["--data=ReasoningGym", "--data.name=chain_sum", "--data=GSM8K"]
    assert parser.parse_args(arguments).data.init_args.name == "chain_sum"
    patch_argument_carryover(Task)
    assert parser.parse_args(arguments).data.init_args.name == "main"


def test_without_the_written_paths_a_public_name_replaces_the_room(unpatched):
    assert get_import_path(Sampling) == "rlcredit.Sampling"
    patch_written_class_paths()
    assert get_import_path(Sampling) == "rlcredit.decoding.sampling.Sampling"


def test_the_options_of_a_parser_and_of_its_commands_are_listed():
    parser, inner = ArgumentParser(), ArgumentParser()
    inner.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_subcommands().add_subcommand("fit", inner)
    assert {"--seed", "--steps"} <= set(list_options(parser))


def test_without_the_call_form_an_entry_with_arguments_is_no_class(unpatched):
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--data", type=Task)
    parser.add_argument("--text", type=str)
    with pytest.raises(ArgumentError, match="Expected a dot import path"):
        parser.parse_args(["--data=GSM8K(name=main)"])
    patch_call_form()
    parsed = parser.parse_args(["--data=GSM8K(name=socratic)", "--text=GSM8K(name=socratic)"])
    assert parsed.data == parser.parse_object({"data": {"class_path": "GSM8K", "init_args": {"name": "socratic"}}}).data
    assert parsed.text == "GSM8K(name=socratic)"
    with pytest.raises(ArgumentError, match=r"GSM8K\.name is given twice"):
        parser.parse_args(["--data=GSM8K(name=1, name=2)"])
