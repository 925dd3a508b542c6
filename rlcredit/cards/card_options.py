"""The parser of ``rlcredit card``; it imports nothing of the stack."""

from pathlib import Path

from rlcredit.cards.budget import CARD_BUDGETS
from rlcredit.cli.shared_options import ENGINE_HELP, add_machine_options, add_mlflow_options, parse_temperature
from rlcredit.config.arguments import CommandParser, add_out_option, parse_path

USUAL_BASELINE = "GRPO"
"""Baseline unless another is named."""

USUAL_ORGANISM = "aligned"
"""Test policy unless another is named."""

USUAL_BUDGET = "quick"
"""Budget unless another is named."""


def make_card_parser() -> CommandParser:
    """Return the parser of ``rlcredit card``."""
    parser = CommandParser(
        "rlcredit card",
        "OPERATOR ...",
        "Judge credit operators: what each is, does, costs and teaches, beside a baseline and all others.",
        [
            "rlcredit card SEPA",
            "rlcredit card mine.py --budget standard",
            "rlcredit card --shipped",
            "rlcredit card SEPA --rollout batch.safetensors",
        ],
    )
    parser.add_argument(
        "conditions",
        nargs="*",
        metavar="OPERATOR",
        help="operator, condition (.yaml), or Python file with an operator",
    )
    measurement = parser.add_argument_group("what is measured")
    measurement.add_argument(
        "--shipped", action="store_true", help="every shipped operator that leads to credit, and a leaderboard of all"
    )
    measurement.add_argument(
        "--baseline",
        default=USUAL_BASELINE,
        metavar="OPERATOR",
        help=f"what they are compared with (default: {USUAL_BASELINE})",
    )
    measurement.add_argument(
        "--budget",
        choices=CARD_BUDGETS,
        help=f"size: one batch, minutes, an hour, a night (default: {USUAL_BUDGET})",
    )
    measurement.add_argument(
        "--organism",
        nargs="+",
        metavar="NAME",
        help=f"test policies: names, files, or `all` (default: {USUAL_ORGANISM})",
    )
    measurement.add_argument(
        "--engine",
        metavar="ENGINE",
        help=f"{ENGINE_HELP}; it samples the batch, not the runs (default: that of the policy)",
    )
    file_options = parser.add_argument_group("a batch from a file, instead of a test policy")
    file_options.add_argument(
        "--rollout", type=parse_path, metavar="FILE", help="batch that `Rollout.save` has written, from any trainer"
    )
    file_options.add_argument(
        "--tokenizer", metavar="NAME", help="tiny, folder or hub id; texts, where the batch has none"
    )
    file_options.add_argument(
        "--model", metavar="NAME", help="tiny, folder or hub id: policy whose gradient is compared"
    )
    file_options.add_argument("--adapter", type=parse_path, metavar="FOLDER", help="its adapter in PEFT's format")
    file_options.add_argument(
        "--temperature", type=parse_temperature, metavar="T", help="temperature of the batch, for --model (default: 1)"
    )
    output = parser.add_argument_group("output")
    add_out_option(output, "folder for cards and their runs", Path("cards"))
    add_mlflow_options(output, "cards")
    add_machine_options(
        parser.add_argument_group("machine"), "CPU threads per run, and of the measurement (default: 1)", 1
    )
    return parser
