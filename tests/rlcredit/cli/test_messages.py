"""Messages of many wrong configurations, held to one rule: key, value, place and repair, on one line that is read."""

import re
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.startup import read_configuration_or_exit

LONGEST = 200

WRONG_FLAGS = [
    ("--trainer.accelerator=gpuu", "trainer.accelerator", "gpuu"),
    ("--trainer.accelerator=tpu", "trainer.accelerator", "tpu"),
    ("--trainer.accelerator=hpu", "trainer.accelerator", "hpu"),
    ("--trainer.strategy=dpp", "trainer.strategy", "dpp"),
    ("--trainer.devices=0", "trainer.devices", "0"),
    ("--trainer.precision=bf17", "trainer.precision", "bf17"),
    ("--trainer.max_steps=ten", "trainer.max_steps", "ten"),
    ("--trainer.max_steps=-5", "trainer.max_steps", "-5"),
    ("--trainer.val_check_interval=0.5", "trainer.val_check_interval", "0.5"),
    ("--trainer.learning_rate=1", "trainer.learning_rate", ""),
    ("--trainer.logger=MLFlow", "trainer.logger", "MLFlow"),
    ("--trainer.callbacks=GPRO", "trainer.callbacks", "GPRO"),
    ("--trainer.callbacks=[GTPO(beta=-1)]", "beta", "-1"),
    ("--trainer.callbacks=[GTPO(beta=x)]", "trainer.callbacks[0].init_args.beta", "x"),
    ("--trainer.callbacks=[GTPO(betta=1)]", "trainer.callbacks[0].init_args.betta", "`GTPO`"),
    ("--trainer.callbacks=[GTPO(]", "trainer.callbacks[0]", "GTPO("),
    ("--trainer.callbacks=[{GTPO: {beta: 0.1}}]", "trainer.callbacks[0]", "GTPO(beta=0.1)"),
    ("--model.sampling.temperature=0", "model.sampling.temperature", "0"),
    ("--model.sampling.temperature=hot", "model.sampling.temperature", "hot"),
    ("--model.validation.temperature=-1", "model.validation.temperature", "-1"),
    ("--model.sampling.completions=0", "model.sampling.completions", "0"),
    ("--model.sampling.completions=1.5", "model.sampling.completions", "1.5"),
    ("--model.sampling.top_p=0.9", "model.sampling.top_p", "0.9"),
    ("--model.policy.dtype=float8", "model.policy.dtype", "float8"),
    ("--model.loss=GSP", "model.loss", "`GSP`"),
    ("--model.optimizer=torch.nn.Linear", "model.optimizer", "torch.nn.Linear"),
    ("--model.engine=VLLM", "model.engine", "VLLM"),
    ("--model.pass_k=99", "model.pass_k", "99"),
    ("--model.sampler.completions=4", "model.sampler.completions", ""),
    ("--data=ReasoningGim", "data", "ReasoningGim"),
    ("--data=table.csv", "data", "table.csv"),
    ("--data.init_args.prompts_per_step=0", "prompts_per_step", "0"),
    ("--data.init_args.dataset=chain_summ", "data.init_args.dataset", "`ReasoningGym`"),
    ("--completions.rows=0", "completions.rows", "0"),
    ("--seed_everything=true", "seed_everything", "true"),
    ("--seed_everything=-1", "seed_everything", "-1"),
    ("--threads=0", "threads", "0"),
    ("--condition=a/b", "condition", "a/b"),
    ("--temperature=0.5", "temperature", ""),
    ("--mlflow=http://ann:secret@host", "tracking_uri", "password"),
    ("--config=chain_sum_3_5.yaml", "chain_sum_3_5.yaml", "configs/tasks/chain_sum_3_5.yaml"),
    ("--config=configs/tyni.yaml", "configs/tyni.yaml", "configs/tiny.yaml"),
    ("--config=", "--config", ""),
    ("--out=", "--out", ""),
    ("stray", "stray", ""),
]
"""A word of a command line, the key that its message names, and the value or name in it."""

WRONG_FILES = [
    ("", "wrong.yaml", "empty"),
    ("# a comment\n", "wrong.yaml", "empty"),
    ("- GRPO\n", "wrong.yaml", "a list"),
    ("condition: no\n", "condition", "`no`"),
    ("condition: on\n", "condition", "`on`"),
    ("data: {class_path: ReasoningGym, init_args: {instruction: no}}\n", "data.init_args.instruction", "`no`"),
    ("model: {policy: {path: off}}\n", "model.policy.path", "`off`"),
    ("trainer:\ncallbacks: [GRPO]\n", "trainer", "empty"),
    ("trainer: {max_steps: 1, max_steps: 2}\n", "wrong.yaml", "max_steps"),
    ("trainr: {max_steps: 3}\n", "trainr", "`trainer`"),
    ("data: {class_path: ReasoningGym, init_arg: {name: gcd}}\n", "data.init_arg", "`init_args`"),
    ("data: {class_path: ReasoningGym, init_args: [1]}\n", "data.init_args", "[1]"),
]
"""The content of a configuration file, the key that its message names, and the value or name in it."""


def run_command(words):
    """Run a command as it is run: its words are read once before the imports."""
    read_configuration_or_exit(words)
    run_lightning_command(words)


def read_message(capsys, *words):
    """Return what a refused command says."""
    with pytest.raises(SystemExit) as stop:
        run_command(["explain", "--config=configs/tiny.yaml", *words])
    assert stop.value.code == 2
    return capsys.readouterr().err


def hold_to_the_rule(message, key, value):
    assert message.startswith("error: "), message
    assert message.count("\n") == 1, message
    assert len(message.strip()) <= LONGEST, (len(message), message)
    assert key in message
    assert value in message
    sentences = re.findall(r"[.?!](?= |$)", message.strip())
    assert len(sentences) >= 2 or re.search(r"expected|Did you mean|[Ss]ay|[Ww]rite", message), message


@pytest.mark.parametrize(("word", "key", "value"), WRONG_FLAGS, ids=[word for word, _, _ in WRONG_FLAGS])
def test_a_wrong_flag_is_refused_with_key_value_and_repair_in_one_line(word, key, value, capsys):
    hold_to_the_rule(read_message(capsys, word), key, value)


@pytest.mark.parametrize(("text", "key", "value"), WRONG_FILES, ids=[text or "nothing" for text, _, _ in WRONG_FILES])
def test_a_wrong_file_is_refused_with_key_value_and_repair_in_one_line(text, key, value, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(text)
    message = read_message(capsys, "--config=wrong.yaml")
    hold_to_the_rule(message, key, value)
    assert message.startswith("error: wrong.yaml:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainer:\n  max_steps: ten\n", "wrong.yaml:2: trainer.max_steps: expected a whole number, got 'ten'."),
        ("model:\n  loss: GSP\n", "wrong.yaml:2: model.loss: no class `GSP`. Did you mean `GSPO`?"),
        (
            "trainer:\n  callbacks:\n    - GRPO\n    - GTPO(beta=x)\n",
            "wrong.yaml:4: trainer.callbacks[1].init_args.beta: ",
        ),
        (
            "trainer:\n  callbacks+:\n    - GTPO(beta=x)\n",
            "wrong.yaml:3: trainer.callbacks[1].init_args.beta: expected",
        ),
        (
            "trainer:\n  callbacks:\n    - GRPO\n    - GTPO(0.2)\n",
            "wrong.yaml:4: trainer.callbacks[1]: `0.2` has no name.",
        ),
        ("trainer:\n  callbacks:\n    - GTPO(beta=-1)\n", "wrong.yaml:3: GTPO expects beta >= 0, got -1"),
        (
            "data:\n  init_args:\n    prompts_per_step: 0\n",
            "wrong.yaml:3: data.init_args.prompts_per_step: expected a number from 1",
        ),
        ("seed_everything: 1\nthreads: 0\n", "wrong.yaml:2: threads: expected a number from 1 to 1024"),
        (
            "model:\n  sampling:\n    temperature: 0\n",
            "wrong.yaml:3: model.sampling.temperature: expected a number above",
        ),
        ("model:\n  loss: os.getcwd\n", "wrong.yaml:2: model.loss: `os.getcwd` is Python's own;"),
        ("data.init_args.nam: x\n", "wrong.yaml:1: data.init_args.nam: `ReasoningGym` has no parameter `nam`."),
    ],
    ids=lambda text: text,
)
def test_a_wrong_value_in_a_file_is_named_with_its_line(text, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(text)
    assert read_message(capsys, "--config=wrong.yaml").startswith(f"error: {message}")


def test_a_flag_that_replaces_a_value_of_a_file_names_itself(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("right.yaml").write_text("trainer: {max_steps: 3}\n")
    message = read_message(capsys, "--config=right.yaml", "--trainer.max_steps=ten")
    assert message == "error: trainer.max_steps: expected a whole number, got 'ten'.\n"


OWN_OPERATORS = """
from rlcredit import CreditOperator


class Misspelt(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        rollout.advantage = rollout.advantages * 2
        return {}


class Unnamed(CreditOperator, reads="advantages", writes="advantages"):
    def assing(self, rollout):
        return {}


class Bare(CreditOperator, reads="advantages", writes="advantages"):
    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def assign(self, rollout):
        rollout.advantages = rollout.advantages * self.strength
        return {}
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--trainer.callbacks=[GRPO, own_slips.Misspelt]"],
            "Misspelt sets `advantage`, which rollouts do not have. Did you mean `advantages`?",
        ),
        (["--trainer.callbacks=[GRPO, own_slips.Unnamed]"], "Unnamed has no method `assign`. Did you mean `assing`?"),
        (["--trainer.callbacks=[GRPO GTPO]"], "no class `GRPO GTPO`. Put a comma between two entries of a list."),
        (["--data=Record", "--data.init_args.path=q.csv"], "data: no class `Record`. Did you mean `Records`?"),
        (
            ["--trainer.callbacks=[GRPO, GTPO, HICRA]", "--trainer.callbacks.gtpo.beta=0.3"],
            "trainer.callbacks: no entry is `gtpo`. Did you mean `GTPO`?",
        ),
        (
            ["--trainer.callbacks=[GRPO, GTPO, HICRA]", "--trainer.callbacks.GTPO=0.3"],
            "Name its argument too, as --trainer.callbacks.GTPO.ARGUMENT VALUE.",
        ),
        (
            ["--trainer.callbacks=[GRPO, GTPO]", "--trainer.callbacks.GTPO.beta=-0.3"],
            "--trainer.callbacks.GTPO.beta: GTPO expects beta >= 0, got -0.3.",
        ),
        (["--trainer.callbacks=[GRPO, SEPA]", "--trainer.callbacks.SEPA.beta=0.3"], "`SEPA` takes no arguments."),
        (["--mlflow=off"], "--mlflow: expected an address, env or none, got off. Did you mean `none`?"),
        (["--config=campaign.yaml"], "campaign.yaml:1: conditions: this file declares a campaign."),
    ],
)
def test_a_slip_of_a_newcomer_is_named_with_its_repair(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("own_slips.py").write_text(OWN_OPERATORS)
    Path("campaign.yaml").write_text("conditions: {a: []}\nbaseline: a\n")
    assert said in read_message(capsys, *words)


def test_an_operator_need_not_call_the_constructor_of_its_class(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("own_bare.py").write_text(OWN_OPERATORS)
    words = ["explain", "--config=configs/tiny.yaml", "--trainer.callbacks=[GRPO, own_bare.Bare(strength=2.0)]"]
    run_lightning_command(words)
    assert "Bare(strength=2.0)" in capsys.readouterr().out


def test_all_faults_of_a_configuration_are_told_at_once(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(
        "trainer:\n  callbacks: [GRPO, GTPO(betta=0.1), None]\n  max_steps: ten\nmodel: {los: x}\n"
    )
    faults = read_message(capsys, "--config=configs/tiny.yaml", "--config=wrong.yaml").splitlines()
    places = [
        "2: trainer.callbacks[1].init_args.betta",
        "2: trainer.callbacks[2]",
        "3: trainer.max_steps",
        "4: model.los",
    ]
    assert [re.match(r"error: wrong.yaml:(\d+: [\w.\[\]]+)", fault)[1] for fault in sorted(faults)] == places


def test_blanks_around_names_are_left_out(capsys, tmp_path):
    (tmp_path / "blanks.yaml").write_text(
        "condition: ' mine '\ndata: {class_path: ' ReasoningGym '}\n"
        "trainer: {callbacks: [' GRPO', 'GTPO(beta=0.1) ']}\n"
    )
    run_lightning_command(["explain", "--config=configs/tiny.yaml", f"--config={tmp_path / 'blanks.yaml'}"])
    shown = capsys.readouterr().out
    assert re.search(r"^condition +mine$", shown, re.MULTILINE)
    assert re.search(r"0  GRPO", shown)
    assert re.search(r"1  GTPO\(beta=0.1", shown)
