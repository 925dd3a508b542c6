"""Options that no configuration has, refused before anything is imported."""

import pytest

from rlcredit.cli.commands import load_parser
from rlcredit.cli.startup import read_configuration_or_exit
from rlcredit.cli.unknown_options import explain_unknown_option

STACK = ["--config=configs/tiny.yaml", "--config=configs/conditions/sepa_paper/c2_grpo_gtpo.yaml"]


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--trainr.max_steps", "--trainer.max_steps"),
        ("--trainer.max_step", "--trainer.max_steps"),
        ("--model.samplng.completions", "--model.sampling.completions"),
        ("--modle.samplng.completion", "--model.sampling.completions"),
        ("--model.sampling.temprature", "--model.sampling.temperature"),
        ("--model.policy.lor.rank", "--model.policy.lora.rank"),
        ("--completions.every_step", "--completions.every_n_steps"),
        ("--model.lr", "--model.optimizer.init_args.lr"),
        ("--lr", "--model.optimizer.init_args.lr"),
        ("--steps", "--trainer.max_steps"),
        ("--max-steps", "--trainer.max_steps"),
        ("--max-tokens", "--model.sampling.max_tokens` or `--model.validation.max_tokens"),
        ("--batch_size", "--data.init_args.prompts_per_step"),
        ("--num-generations", "--model.sampling.completions"),
        ("--trainer.epochs", "--trainer.max_steps"),
        ("--model.policy.lora.r", "--model.policy.lora.rank"),
        ("--precision", "--trainer.precision"),
        ("--treads", "--threads"),
        ("--GTPO.beta", "--trainer.callbacks.GTPO.beta"),
        ("--GTPO.bta", "--trainer.callbacks.GTPO.beta"),
        ("--gtop.beta", "--trainer.callbacks.GTPO.beta"),
        ("--beta", "--trainer.callbacks.GTPO.beta"),
        ("--model.temperature", "--model.sampling.temperature` or `--model.validation.temperature"),
    ],
)
def test_an_option_that_does_not_exist_is_answered_by_the_one_that_is_meant(flag, meant, capsys):
    with pytest.raises(SystemExit) as stop:
        read_configuration_or_exit(["fit", *STACK, f"{flag}=1"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"error: {flag}: no such option. Did you mean `{meant}`?\n"


@pytest.mark.parametrize("flag", ["--jobs", "--nothing.like.it", "--jobs.trainer"])
@pytest.mark.parametrize("command", ["fit", "validate", "explain"])
def test_one_that_resembles_nothing_is_answered_by_where_all_are_listed(flag, command, capsys):
    with pytest.raises(SystemExit):
        read_configuration_or_exit([command, *STACK, flag, "3"])
    assert (
        f"{flag}: no such option. `rlcredit {command} --help` lists those that there are.\n" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("word", "option"),
    [("--model=Qwen/Qwen3-0.6B", "--model.policy.path"), ("--completions=8", "--model.sampling.completions")],
)
def test_a_value_in_place_of_a_group_is_answered_by_the_option_that_takes_it(word, option, capsys):
    with pytest.raises(SystemExit):
        read_configuration_or_exit(["fit", *STACK, word])
    assert option in capsys.readouterr().err


def test_two_unknown_options_are_not_suggested_for_each_other():
    values = {"zzz": {"max_step": 1}, "zzzz": {"max_step": 1}}
    sentence = explain_unknown_option(["--zzz.max_step=1", "--zzzz.max_step=1"], values, load_parser("fit"))
    assert sentence is not None
    assert "zzzz" not in sentence


@pytest.mark.parametrize(
    "word",
    [
        "--trainer.callbacks+=GRPO",
        "--trainer.callbacks.GTPO.beta=0.2",
        "--trainer.logger.init_args.run_name=a",
        "--model.optimizer.lr=1e-4",
        "--model.validation.completions=4",
        "--data.config.max_terms=4",
        "--data.init_args.anything=4",
        "--checkpoint.save_top_k=4",
        "--weights_only=true",
        "--print_config",
    ],
)
def test_what_a_configuration_may_have_passes(word):
    assert explain_unknown_option([*STACK, word], {}, load_parser("fit")) is None


@pytest.mark.parametrize("stack", [None, "GRPO", ["gtpo", "lib.Mine", {"class_path": "callbacks.GTPO"}, 3]])
def test_a_stack_that_nobody_can_read_is_left_to_those_who_tell_why(stack):
    sentence = explain_unknown_option(["--jobs=1"], {"trainer": {"callbacks": stack}}, load_parser("fit"))
    assert sentence == "--jobs: no such option. `rlcredit fit --help` lists those that there are."
