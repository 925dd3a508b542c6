"""The parser of ``rlcredit evaluate``; it imports nothing of the stack."""

import argparse

from rlcredit.cli.shared_options import (
    CHECKPOINT_HELP,
    ENGINE_HELP,
    add_machine_options,
    add_mlflow_options,
)
from rlcredit.config.allowed_values import SEED_COUNT
from rlcredit.config.arguments import CommandParser, add_out_option, make_count_parser, parse_path

ALL_QUESTIONS = "all"
"""Every question there is; for generated ones, as many as the task's default."""

DEFAULT_TEMPERATURE, DEFAULT_COMPLETIONS = 0.7, 4
"""What validation in training draws with, unless a configuration says otherwise."""


def make_evaluation_parser() -> CommandParser:
    """Return the parser of ``rlcredit evaluate``."""
    parser = CommandParser(
        "rlcredit evaluate",
        "--tasks FILE ...",
        "Have policies answer the held-out questions of tasks: pass@k, maj@k, intervals, paired verdicts.",
        ["rlcredit evaluate --tasks configs/tasks/chain_sum_3_5.yaml --ckpt_path runs/grpo-seed0 --against base"],
    )
    questions = parser.add_argument_group("questions")
    questions.add_argument(
        "--tasks", nargs="+", type=parse_path, required=True, metavar="FILE", help="task files (docs/howto/evaluate.md)"
    )
    questions.add_argument(
        "--questions",
        type=_parse_question_count,
        metavar="N|all",
        help="questions of each task, from the first (default: as many as the task file says)",
    )
    questions.add_argument(
        "--unsafe_scorers",
        action="store_true",
        help="use scorers that evaluate answers even where no sandbox can hold them",
    )
    _add_evaluated_policies(parser)
    _add_drawing_options(parser)
    comparison = parser.add_argument_group("comparison")
    comparison.add_argument(
        "--against", metavar="base|PATH", help="what they are compared with (default: the first of them)"
    )
    comparison.add_argument(
        "--margin",
        type=_parse_margin,
        default=0.01,
        metavar="M",
        help="difference of pass@1 that would not matter (default: 0.01)",
    )
    output = parser.add_argument_group("output")
    add_out_option(output, "folder in which answers are kept, and go on (default: one in evaluations/)")
    add_mlflow_options(output, "evaluation")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", metavar="DEVICE", help="cpu, cuda or cuda:1 (default: a GPU if there is one)")
    machine.add_argument(
        "--batch_size",
        type=make_count_parser(),
        default=128,
        metavar="N",
        help="completions at a time: memory and speed (default: 128)",
    )
    add_machine_options(
        machine, "CPU threads while decoding; 1 repeats bit for bit (default: 1)", default=1, slots=False
    )
    return parser


def _add_evaluated_policies(parser: CommandParser) -> None:
    policy = parser.add_argument_group("policies")
    for flag, help_text in (
        ("ckpt_path", f"{CHECKPOINT_HELP}, or NAME=PATH"),
        ("adapter", "adapters in PEFT's format, or NAME=PATH"),
    ):
        policy.add_argument(
            f"--{flag}", nargs="+", action="extend", dest="trained", default=[], metavar="PATH", help=help_text
        )
    policy.add_argument(
        "--model",
        metavar="NAME",
        help="tiny, folder, hub id, or file with model.policy (default: that of the checkpoint or adapter)",
    )
    policy.add_argument(
        "--model_args",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="arguments of the policy, such as dtype=bfloat16",
    )


def _add_drawing_options(parser: CommandParser) -> None:
    completions = parser.add_argument_group("completions")
    completions.add_argument(
        "--completions",
        type=make_count_parser(),
        metavar="N",
        help=f"completions per question (default: K, or {DEFAULT_COMPLETIONS})",
    )
    completions.add_argument(
        "--k", type=make_count_parser(), metavar="K", help="largest k of pass@k and maj@k (default: N)"
    )
    completions.add_argument(
        "--temperature",
        type=_parse_temperature_or_zero,
        metavar="T",
        help=f"temperature; 0 is --greedy (default: {DEFAULT_TEMPERATURE})",
    )
    completions.add_argument(
        "--top_p", type=float, metavar="P", help="share of the probability that the likeliest tokens drawn from have"
    )
    completions.add_argument(
        "--top_k", type=make_count_parser(), metavar="K", help="number of likeliest tokens drawn from"
    )
    completions.add_argument(
        "--greedy", action="store_true", help="likeliest token each time; one completion per question"
    )
    completions.add_argument("--engine", metavar="ENGINE", help=f"{ENGINE_HELP} (default: InProcessEngine)")
    completions.add_argument(
        "--max_tokens",
        type=make_count_parser(),
        default=128,
        metavar="N",
        help="length at which a completion is cut (default: 128)",
    )
    completions.add_argument(
        "--seed",
        type=make_count_parser(0, SEED_COUNT - 1),
        default=0,
        metavar="N",
        help="seed of the sampling noise, the same for every policy (default: 0)",
    )


def _parse_question_count(text: str) -> int | str:
    return ALL_QUESTIONS if text == ALL_QUESTIONS else make_count_parser(2)(text)


def _parse_temperature_or_zero(text: str) -> float:
    return _parse_bounded_float(text, 0, None)


def _parse_margin(text: str) -> float:
    if not 0 < (value := _parse_bounded_float(text, 0, 1)) < 1:
        raise argparse.ArgumentTypeError(f"expected a proportion between 0 and 1 (0.01 is one point), got {text!r}.")
    return value


def _parse_bounded_float(text: str, minimum: float, maximum: float | None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not minimum <= value <= (float("inf") if maximum is None else maximum) or value == float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from {minimum:g}, got {text!r}.")
    return value
