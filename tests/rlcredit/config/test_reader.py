"""Files and flags become one mapping, and every value keeps its place."""

import re

import pytest

from rlcredit.cli.application import CONFIG_ROOTS
from rlcredit.config.reader import read_configuration
from rlcredit.credit.catalogue import import_operators

import_operators()


def read(*words):
    return read_configuration(["fit", *words], CONFIG_ROOTS).values


def entry(name, /, **arguments):
    return {"class_path": name, "init_args": arguments}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--threads=2", "--threads", "3"], {"threads": "3"}),
        (
            ["--config={trainer: {max_steps: 1e3, devices: 1}}", "--trainer.devices=2"],
            {"trainer": {"max_steps": 1000.0, "devices": "2"}},
        ),
        (["--config={condition: 2026-11-27}"], {"condition": "2026-11-27"}),
        (["--config={trainer.max_steps: 3}"], {"trainer": {"max_steps": 3}}),
        (["--trainer.callbacks=[GRPO]", "--trainer.callbacks=[MaxRL]"], {"trainer": {"callbacks": ["MaxRL"]}}),
        (
            ["--trainer.callbacks=[GRPO]", "--trainer.callbacks+=GTPO(beta=0.2)"],
            {"trainer": {"callbacks": ["GRPO", entry("GTPO", beta=0.2)]}},
        ),
        (
            ["--config={trainer: {callbacks: GRPO}}", "--config={trainer: {callbacks+: [GTPO]}}"],
            {"trainer": {"callbacks": ["GRPO", "GTPO"]}},
        ),
        (["--trainer.callbacks+=GRPO"], {"trainer": {"callbacks": ["GRPO"]}}),
        (
            ["--trainer.callbacks=[GRPO, GTPO]", "--trainer.callbacks.beta=0.3"],
            {"trainer": {"callbacks": ["GRPO", entry("GTPO", beta="0.3")]}},
        ),
        (
            [
                "--trainer.callbacks=[GRPO, GTPO(beta=0.2), HICRA]",
                "--trainer.callbacks.GTPO.beta=0.3",
                "--trainer.callbacks.GRPO.normalize_std=true",
            ],
            {"trainer": {"callbacks": [entry("GRPO", normalize_std="true"), entry("GTPO", beta="0.3"), "HICRA"]}},
        ),
        (
            ["--trainer.callbacks=[GRPO, GTPO(beta=0.2)]", "--config={trainer.callbacks.GTPO.beta: 0.3}"],
            {"trainer": {"callbacks": ["GRPO", entry("GTPO", beta=0.3)]}},
        ),
        (
            ["--trainer.callbacks=[callbacks.tokens.gtpo.GTPO, HICRA]", "--trainer.callbacks.GTPO.beta=0.3"],
            {"trainer": {"callbacks": [entry("callbacks.tokens.gtpo.GTPO", beta="0.3"), "HICRA"]}},
        ),
        (
            ["--data=ReasoningGym(name=gcd)", "--data.prompts_per_step=4"],
            {"data": entry("ReasoningGym", name="gcd", prompts_per_step="4")},
        ),
        (
            ["--data=ReasoningGym(name=gcd, prompts_per_step=4)", "--data=GSM8K"],
            {"data": entry("GSM8K", prompts_per_step=4)},
        ),
        (["--data=ReasoningGym(name=gcd)", "--data=ReasoningGym"], {"data": entry("ReasoningGym", name="gcd")}),
        (
            ["--data=ReasoningGym(config={a: 1, b: 2})", "--data.init_args.config={a: 3}"],
            {"data": entry("ReasoningGym", config={"a": 3})},
        ),
        (
            ["--data=ReasoningGym(config={a: 1, b: 2})", "--data.init_args.config.a=3"],
            {"data": entry("ReasoningGym", config={"a": 3, "b": 2})},
        ),
        (
            ["--model.optimizer=torch.optim.AdamW(lr=0.1, amsgrad=true)", "--model.optimizer=torch.optim.SGD"],
            {"model": {"optimizer": entry("torch.optim.SGD", lr=0.1)}},
        ),
        (
            ["--trainer.logger.init_args.tracking_uri=null"],
            {"trainer": {"logger": {"init_args": {"tracking_uri": "null"}}}},
        ),
        (
            ["--config={model: {policy: {path: tiny, lora: {rank: 8}}}}", "--model.policy.lora.rank=4"],
            {"model": {"policy": {"path": "tiny", "lora": {"rank": "4"}}}},
        ),
    ],
    ids=str,
)
def test_later_words_win(words, values):
    assert read(*words) == values


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--trainer.callbacks.GTP.beta=1", "trainer.callbacks: no entry is `GTP`. Did you mean `GTPO`?"),
        (
            "--trainer.callbacks.SEPA.beta=1",
            "trainer.callbacks: no entry is `SEPA`. It has GRPO, GTPO. "
            "To add one, say --trainer.callbacks+='SEPA(...)'.",
        ),
        (
            "--trainer.callbacks.GTPO.beta=1",
            "trainer.callbacks: 2 entries are `GTPO`. Change the one you mean in a file.",
        ),
    ],
)
def test_an_entry_that_is_not_there_once_cannot_be_changed(flag, message):
    stack = "[GRPO, GTPO, GTPO]" if "2" in message else "[GRPO, GTPO(beta=0.2)]"
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}$"):
        read(f"--trainer.callbacks={stack}", flag)


def test_a_file_stands_for_a_group_or_a_class(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "loss.yaml").write_text("KLPenalty(beta=0.1)")
    (tmp_path / "folder" / "model.yaml").write_text("loss: loss.yaml")
    assert read("--model=folder/model.yaml") == {"model": {"loss": entry("KLPenalty", beta=0.1)}}
    with pytest.raises(ValueError, match=r"^nowhere\.yaml: there is no such file\."):
        read("--model=nowhere.yaml")


def test_an_alias_of_a_file_is_changed_at_one_place_alone():
    values = read(
        "--config={model: {sampling: &same {max_tokens: 8}, validation: *same}}", "--model.sampling.max_tokens=4"
    )
    assert values == {"model": {"sampling": {"max_tokens": "4"}, "validation": {"max_tokens": 8}}}


def test_every_value_keeps_the_place_that_wrote_it_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(
        "threads: 1\ntrainer:\n  max_steps: 3\n  callbacks:\n    - GRPO\n    - GTPO(beta=0.2)\n"
    )
    (tmp_path / "b.yaml").write_text("trainer:\n  callbacks+:\n    - MaxRL\n")
    configuration = read_configuration(["fit", "--config=a.yaml", "--config=b.yaml", "--threads=2"], CONFIG_ROOTS)
    places = {
        ("threads",): "--threads",
        ("trainer", "max_steps"): "a.yaml:3",
        ("trainer", "callbacks", 1, "init_args", "beta"): "a.yaml:6",
        ("trainer", "callbacks", 2): "b.yaml:3",
        ("model", "loss"): "",
    }
    assert {path: configuration.find_origin(path) for path in places} == places


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stray"], "stray: no such argument. Options begin with --"),
        (["my/stack.yaml"], "my/stack.yaml: no such argument. Say `--config my/stack.yaml`."),
        (["--trainer.max_steps"], "--trainer.max_steps: its value is missing. Say it, as `--trainer.max_steps VALUE`."),
        (["--print_confg"], "--print_confg: no such option. Did you mean `--print_config`?"),
        (["--config"], "--config: its value is missing. Say it, as `--config VALUE`."),
        (
            ["--trainer.callbacks=mine.py"],
            "trainer.callbacks: mine.py is a Python file. Name a class in it",
        ),
        (["--replace=yes"], "--replace: takes no value. Say `--replace` alone."),
        (["--show_prompt"], "--show_prompt: an option of explain alone. Leave it out."),
    ],
    ids=str,
)
def test_a_word_that_is_no_flag_with_its_value_is_refused(words, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read(*words)


def test_a_saved_setting_whose_place_another_took_is_passed_over_at_its_default_only(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("model:\n  micro_batch_size: null\n  seed: 3\n")
    assert read_configuration(["fit", f"--config={file}"], CONFIG_ROOTS).values["model"] == {"seed": 3}
    file.write_text("model:\n  micro_batch_size: 4\n")
    assert read_configuration(["fit", f"--config={file}"], CONFIG_ROOTS).values["model"] == {"micro_batch_size": 4}


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        (["--condition=mine", "--config={condition: theirs}"], {"--condition": "--config"}),
        (["--condition=theirs", "--config={condition: theirs}"], {}),
        (["--config={condition: theirs}", "--condition=mine"], {}),
        (["--trainer.max_steps=3", "--trainer.max_steps=4"], {}),
        (["--trainer.max_steps=3", "--config={trainer: {callbacks: [GRPO]}}"], {}),
        (["--model.policy.lora.rank=3", "--config={model: {policy: {lora: {alpha: 8}}}}"], {}),
        (["--trainer.max_steps=3", "--config={trainer: {max_steps: 4}}"], {"--trainer.max_steps": "--config"}),
        (["--data=GSM8K", "--config={data: {class_path: ReasoningGym}}"], {"--data": "--config"}),
        (
            ["--data.config.a=1", "--config={data: {class_path: ReasoningGym, init_args: {config: {b: 2}}}}"],
            {"--data.config.a": "--config"},
        ),
    ],
)
def test_a_flag_that_a_later_file_replaces_is_named(words, lost):
    assert read_configuration(["fit", *words], CONFIG_ROOTS).lost_flags == lost
