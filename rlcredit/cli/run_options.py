"""Help of ``rlcredit fit | validate | explain``: the options of rlcredit first, then those of Lightning's Trainer.

LightningCLI parses these commands. The parsers here only describe them, from the same signatures, without an import.
"""

import argparse

from rlcredit.cli.shared_options import DEFAULT_TRACKER
from rlcredit.cli.source_options import read_class_parameters
from rlcredit.config.arguments import CommandParser

OPTION_SECTIONS = {
    "policy (--model.policy)": ("model.policy", "rlcredit.policy.policy", "Policy"),
    "adapter (--model.policy.lora)": ("model.policy.lora", "rlcredit.policy.policy", "LoRA"),
    "completions in training (--model.sampling)": ("model.sampling", "rlcredit.decoding.sampling", "Sampling"),
    "training (--model)": ("model", "rlcredit.training.module", "PolicyModule"),
    "task (--data.init_args); each task has more, see --data.help TASK": (
        "data.init_args",
        "rlcredit.tasks.task",
        "Task",
    ),
    "checkpoints (--checkpoint), and what else Lightning's ModelCheckpoint takes": (
        "checkpoint",
        "rlcredit.outputs.checkpoints",
        "Checkpoints",
    ),
    "tables of completions (--completions)": ("completions", "rlcredit.outputs.completion_table", "CompletionTable"),
    "Lightning's Trainer (--trainer)": ("trainer", "lightning.pytorch.trainer.trainer", "Trainer"),
}
"""Titles of the sections of options, the key that they stand under, and the class that has them."""

CHECKPOINT_BASE = ("lightning.pytorch.callbacks.model_checkpoint", "ModelCheckpoint")
"""The class that describes the options of checkpoints."""

TRAINER_DEFAULTS = {
    "logger": {
        "class_path": "lightning.pytorch.loggers.MLFlowLogger",
        "init_args": {"experiment_name": "rlcredit", "tracking_uri": DEFAULT_TRACKER},
    },
    "max_epochs": -1,
    "log_every_n_steps": 1,
    "val_check_interval": 20,
    "check_val_every_n_epoch": None,
    "num_sanity_val_steps": 0,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "use_distributed_sampler": False,
    "deterministic": True,
}
"""Defaults that differ from Lightning's."""

LINKED_PARAMETERS = {"seed", "unsafe_scorers"}
"""Parameters that options of the run set."""

_MAX_DESCRIPTION = 150
"""Characters of a description; a longer one is in docs/reference/configuration.md."""


def make_fit_parser() -> CommandParser:
    """Return a parser that describes ``rlcredit fit``."""
    parser = CommandParser(
        "rlcredit fit",
        "--config FILE ...",
        "Train a policy, and evaluate it on held-out questions before, between and after.",
        [
            "rlcredit fit --config configs/tiny.yaml",
            "rlcredit fit --config configs/tiny.yaml --config configs/conditions/systems/erpo.yaml --out runs/mine",
            "rlcredit fit --config configs/tiny.yaml --ckpt_path last",
        ],
    )
    run = _add_run_options(parser)
    run.add_argument(
        "--ckpt_path",
        metavar="PATH|last|auto",
        help="checkpoint or run folder to go on from; last: newest of this run; auto: that, or else a new run",
    )
    run.add_argument(
        "--replace", action="store_true", help="replace the run in this folder once the new one has a checkpoint"
    )
    _add_sections(parser)
    return parser


def make_validate_parser() -> CommandParser:
    """Return a parser that describes ``rlcredit validate``."""
    parser = CommandParser(
        "rlcredit validate",
        "--config FILE ...",
        "Ask the held-out questions once, of an untrained policy or of a checkpoint.",
        ["rlcredit validate --config configs/tiny.yaml --ckpt_path last"],
    )
    run = _add_run_options(parser)
    run.add_argument("--ckpt_path", metavar="PATH|last", help="checkpoint or run folder; last: newest of this run")
    _add_sections(parser)
    return parser


def make_explain_parser() -> CommandParser:
    """Return a parser that describes ``rlcredit explain``."""
    parser = CommandParser(
        "rlcredit explain",
        "--config FILE ...",
        "Check a configuration, and print it as a program; nothing is loaded.",
        ["rlcredit explain --config configs/tiny.yaml --show_prompt"],
    )
    run = _add_run_options(parser)
    run.add_argument(
        "--show_prompt",
        action="store_true",
        help="print one prompt as the model reads it, and how answers are judged; reads the tokenizer",
    )
    _add_sections(parser)
    return parser


def _add_run_options(parser: CommandParser) -> argparse._ArgumentGroup:
    run = parser.add_argument_group("run")
    run.add_argument(
        "-c",
        "--config",
        action="append",
        metavar="FILE",
        help="configuration, several times if need be: later files and options win",
    )
    run.add_argument("--condition", metavar="NAME", help="name of the condition, for run and folder")
    run.add_argument("--seed_everything", metavar="N", help="seed of the run (default: 0)")
    run.add_argument("--out", metavar="FOLDER", help="run folder (default: runs/CONDITION-seedN)")
    run.add_argument("--mlflow", metavar="URI|env|none", help=f"tracker; none: no record (default: {DEFAULT_TRACKER})")
    run.add_argument("--threads", metavar="N", help="CPU threads (default: what PyTorch chooses)")
    run.add_argument(
        "--unsafe_scorers",
        metavar="true|false",
        help="use scorers that evaluate answers even where no sandbox can hold them (default: false)",
    )
    run.add_argument("--print_config", action="store_true", help="print the merged configuration, and stop")
    return run


def _add_sections(parser: CommandParser) -> None:
    """Add the options of the classes that a configuration makes."""
    checkpoints = {parameter.name: parameter.description for parameter in read_class_parameters(*CHECKPOINT_BASE)}
    for title, (key, module, name) in OPTION_SECTIONS.items():
        group = parser.add_argument_group(title)
        if key == "data.init_args":
            group.add_argument("--data", metavar="TASK", help="class of the task; `rlcredit list tasks` names them")
        for parameter in read_class_parameters(module, name):
            if parameter.name in LINKED_PARAMETERS:
                continue
            sentence = parameter.description or (checkpoints.get(parameter.name, "") if key == "checkpoint" else "")
            value = TRAINER_DEFAULTS.get(parameter.name, parameter.default) if key == "trainer" else parameter.default
            default = f" (default: {value})" if value not in ("", "None", None) and not isinstance(value, dict) else ""
            excerpt = (
                sentence
                if len(sentence) <= _MAX_DESCRIPTION
                else f"{sentence[:_MAX_DESCRIPTION].rpartition(' ')[0]} .."
            )
            text = f"{excerpt[:1].lower()}{excerpt[1:]}{default}".strip().replace("%", "%%")
            group.add_argument(f"--{key}.{parameter.name}", metavar="", help=text or argparse.SUPPRESS)
