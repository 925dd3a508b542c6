"""The commands of rlcredit in the order of a study, and the help that lists them."""

import functools
import importlib
from collections.abc import Sequence
from typing import NamedTuple

from rlcredit.config.arguments import CONFIG_KEYS, FILE_OPTIONS, CommandParser, join_alternatives


class Command(NamedTuple):
    """A command.

    Attributes:
        group: Group that it stands in.
        summary: What it does, after its name.
        options: Module and function that make its parser; the module imports nothing of the stack.
        runs: Module and function that run it with its arguments; empty if LightningCLI does.
        is_configured: Whether options of a configuration may follow its own.

    """

    group: str
    summary: str
    options: str
    runs: str = ""
    is_configured: bool = False


COMMAND_TABLE = {
    "list": Command(
        "prepare",
        "name what a configuration can name: operators, losses, tasks, files",
        "rlcredit.cli.command_options:make_list_parser",
        "rlcredit.cli.listing:run_list_command",
    ),
    "new": Command(
        "prepare",
        "write a file to start from: a working operator",
        "rlcredit.cli.command_options:make_new_parser",
        "rlcredit.cli.new_operator:run_new_command",
    ),
    "explain": Command(
        "prepare",
        "check a configuration, and print it as a program",
        "rlcredit.cli.run_options:make_explain_parser",
    ),
    "try": Command(
        "prepare",
        "answer a few training questions before anything is trained",
        "rlcredit.cli.command_options:make_try_parser",
        "rlcredit.cli.question_trial:run_try_command",
        is_configured=True,
    ),
    "fit": Command(
        "train",
        "train a policy, or go on with a run that was interrupted",
        "rlcredit.cli.run_options:make_fit_parser",
    ),
    "validate": Command(
        "train",
        "ask the held-out questions once",
        "rlcredit.cli.run_options:make_validate_parser",
    ),
    "campaign": Command(
        "train",
        "run conditions x seeds as a file declares them",
        "rlcredit.campaign.campaign_options:make_campaign_parser",
        "rlcredit.campaign.campaign_command:run_campaign_command",
    ),
    "report": Command(
        "compare",
        "say what a campaign has found",
        "rlcredit.report.report_options:make_report_parser",
        "rlcredit.report.report_command:run_report_command",
    ),
    "card": Command(
        "compare",
        "judge a credit operator beside a baseline and all others",
        "rlcredit.cards.card_options:make_card_parser",
        "rlcredit.cards.card_command:run_card_command",
    ),
    "evaluate": Command(
        "compare",
        "have policies answer the held-out questions of task files",
        "rlcredit.evaluation.evaluate_options:make_evaluation_parser",
        "rlcredit.evaluation.evaluate_command:run_evaluate_command",
    ),
    "sample": Command(
        "use",
        "ask a policy one question, and print every token's cost",
        "rlcredit.cli.command_options:make_sample_parser",
        "rlcredit.cli.sample:run_sample_command",
        is_configured=True,
    ),
    "export": Command(
        "use",
        "write a trained policy as a plain model",
        "rlcredit.cli.command_options:make_export_parser",
        "rlcredit.cli.export:run_export_command",
        is_configured=True,
    ),
    "deliver": Command(
        "use",
        "bring the records of runs to MLflow that it has not received",
        "rlcredit.cli.command_options:make_deliver_parser",
        "rlcredit.cli.deliver:run_deliver_command",
    ),
}
"""Commands by name; only the modules of the one that is asked for are imported."""

FIRST_RUN = "rlcredit fit --config configs/tiny.yaml"


def render_help() -> str:
    """Return the help of the command line: all commands in their groups."""
    lines = ["usage: rlcredit COMMAND [options]", ""]
    lines += ["Credit assignment in reinforcement learning with verifiable rewards, as stacks of callbacks.", ""]
    lines += [f"  {FIRST_RUN}"]
    for group in dict.fromkeys(command.group for command in COMMAND_TABLE.values()):
        lines += ["", f"{group}:"]
        lines += [
            f"  {name:<10} {command_row.summary}"
            for name, command_row in COMMAND_TABLE.items()
            if command_row.group == group
        ]
    lines += [""]
    lines += ["  rlcredit COMMAND --help                 what a command does, and its options"]
    lines += ["  rlcredit --version                      versions of rlcredit and what it stands on"]
    lines += ["  source <(rlcredit --completion bash)    completion of commands and options; the same for zsh"]
    lines += ["  rlcredit --completion fish | source     and for fish"]
    return "\n".join(lines)


@functools.cache
def load_parser(name: str) -> CommandParser:
    """Return the parser of a command, which is made once; nothing of the stack is imported."""
    module, function = COMMAND_TABLE[name].options.split(":")
    return getattr(importlib.import_module(module), function)()


def find_foreign_option(name: str, words: Sequence[str]) -> str | None:
    """Return a sentence on the first option that other commands have, and not this one; None if there is none.

    Args:
        name: Name of the command.
        words: Words that follow it.

    Example:
        >>> find_foreign_option("fit", ["--config", "configs/tiny.yaml", "--budget", "quick"])
        '--budget: an option of `card`, not of `fit`. Leave it out.'

    """
    parser, command = load_parser(name), COMMAND_TABLE[name]
    own_keys = CONFIG_KEYS if command.is_configured or not command.runs else ()
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        key = option[2:]
        is_own = option in parser.options or key in own_keys
        is_part = "." in key or any(name.endswith(f".{key}") for name in parser.options)
        if is_own or is_part or (parser.places and option in FILE_OPTIONS.values()):
            continue  # known, or refused with a better repair
        if owners := [f"`{owner}`" for owner in COMMAND_TABLE if option in load_parser(owner).options]:
            return f"{option}: an option of {join_alternatives(owners)}, not of `{name}`. Leave it out."
    return None
