"""Options that several commands have, each with one name and one meaning."""

import argparse
from pathlib import Path

from rlcredit.config.allowed_values import MAX_THREADS
from rlcredit.config.arguments import make_count_parser, parse_path
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.run_folder.layout import RunFolder

DEFAULT_TRACKER = "sqlite:///mlflow.db"
"""Tracker of every command, unless one is named: a database in the working directory."""

NO_MLFLOW, MLFLOW_OF_ENVIRONMENT = "none", "env"
"""What ``--mlflow`` says beside an address."""

CHECKPOINT_HELP = "checkpoint, run folder, or adapter folder"

ENGINE_HELP = "engine that decodes, such as 'VLLMServer(url=\"http://127.0.0.1:8000\")'"


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a policy."""
    policy = parser.add_argument_group("policy, by one of")
    policy.add_argument("--ckpt_path", type=parse_path, metavar="PATH", help=CHECKPOINT_HELP)
    policy.add_argument("--adapter", type=parse_path, metavar="FOLDER", help="adapter in PEFT's format")
    policy.add_argument("--model", metavar="NAME", help="tiny, folder or hub id; with --adapter, its base model")
    policy.add_argument(
        "--config",
        action="append",
        metavar="FILE",
        help="configuration, several times if need be; options of `fit` may follow. It names the untrained policy, or "
        "that of the checkpoint or adapter beside it",
    )
    prompt = parser.add_argument_group("prompt, without a configuration")
    prompt.add_argument("--raw", action="store_true", help="raw text, for base models")
    prompt.add_argument("--thinking", choices=("on", "off"), help="enable_thinking of the chat template")


def add_sampling_options(parser: argparse.ArgumentParser, completions: int) -> None:
    """Add the options for sampling and showing completions."""
    group = parser.add_argument_group("completions")
    description = f"completions per question (default: {completions})"
    group.add_argument("--completions", type=make_count_parser(), default=completions, metavar="N", help=description)
    group.add_argument(
        "--temperature",
        type=parse_temperature,
        metavar="T",
        help="temperature (default: that of the configuration, or 0.7)",
    )
    group.add_argument(
        "--max_tokens",
        type=make_count_parser(),
        metavar="N",
        help="length at which a completion is cut (default: that of the configuration, or 128)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the sampling noise (default: 0)")
    group.add_argument("--engine", metavar="ENGINE", help=f"{ENGINE_HELP} (default: that of the configuration)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--colour",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours of tokens; in a terminal, if auto (default: auto)",
    )
    output.add_argument("--html", type=parse_page_path, metavar="FILE", help="page that loads nothing")


def add_mlflow_options(group: argparse._ActionsContainer, experiment: str) -> None:
    """Add the options that say where a record is delivered."""
    description = f"tracker; env: that of MLFLOW_TRACKING_URI; none: no record (default: {DEFAULT_TRACKER})"
    group.add_argument("--mlflow", default=DEFAULT_TRACKER, metavar="URI|env|none", help=description)
    group.add_argument(
        "--experiment", default=experiment, metavar="NAME", help=f"experiment in MLflow (default: {experiment})"
    )


def add_machine_options(
    group: argparse._ActionsContainer, threads: str, default: int | None = None, *, slots: bool = True
) -> None:
    """Add the options that say how much of the machine is used."""
    if slots:
        description = "runs at a time (default: as many as there are GPUs, else cores)"
        group.add_argument("--slots", type=make_count_parser(), metavar="N", help=description)
    group.add_argument("--threads", type=make_count_parser(1, MAX_THREADS), default=default, metavar="N", help=threads)


def parse_temperature(text: str) -> float:
    """Return a temperature above 0."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        repair = " For the likeliest token each time, use `rlcredit evaluate --greedy`." if value == 0 else ""
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text[:40]!r}.{repair}")
    return value


def parse_page_path(text: str) -> Path:
    """Return the path of an HTML page; an existing page is overwritten, no other file and nothing of a run."""
    page = parse_path(text)
    if page.suffix.lower() not in (".html", ".htm"):
        raise argparse.ArgumentTypeError(f"a page is a file that ends in .html, got {shorten_name(text)}.")
    if page.exists() and any(RunFolder(folder).has_begun_run for folder in page.absolute().parents):
        raise argparse.ArgumentTypeError(f"{shorten_name(text)} belongs to a run. Name another file.")
    return page
