"""The command line of an evaluation, and the request that it makes."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.config.allowed_values import SEEDS, THREADS, validate_folder_name
from rlcredit.config.arguments import CommandParser, parse_path
from rlcredit.config.class_paths import patch_jsonargparse
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.strict_yaml import parse_yaml
from rlcredit.decoding.token_filters import make_token_filter
from rlcredit.evaluation.evaluated_policies import (
    BASE,
    EvaluatedPolicy,
    find_trained_policy,
    make_base_policy,
    override_policy_settings,
    strip_adapter,
)
from rlcredit.evaluation.evaluation_request import EvaluationRequest, SamplingParameters
from rlcredit.evaluation.question_sets import ALL, read_question_set

TEMPERATURE, COMPLETIONS = 0.7, 4
"""What validation in training draws with, unless a configuration says otherwise."""


def make_evaluation_parser() -> argparse.ArgumentParser:
    """Return the parser of ``rlcredit evaluate``."""
    command = CommandParser(
        "rlcredit evaluate",
        description="Have policies answer the held-out questions of tasks: pass@k, maj@k, intervals, paired verdicts.",
    )
    add = command.add_argument
    add(
        "--tasks",
        nargs="+",
        type=parse_path,
        required=True,
        metavar="FILE",
        help="task files (docs/howto/evaluate.md)",
    )
    add("--model", help="tiny, a folder, a hub id, or a file with model.policy; that of the adapters if absent")
    add(
        "--model_args",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="arguments of the policy, such as dtype=bfloat16",
    )
    for flag, what in (("adapter", "folders in PEFT's format"), ("ckpt", "checkpoints"), ("run", "folders of runs")):
        add(
            f"--{flag}",
            nargs="+",
            action="extend",
            dest="trained",
            default=[],
            metavar="PATH",
            help=f"{what}; or NAME=PATH",
        )
    add("--against", metavar="base|PATH", help="what they are compared with; the first of them if absent")
    add(
        "--completions",
        type=_make_integer_parser(1),
        metavar="N",
        help="completions per question; 4 if neither this nor --k is given",
    )
    add("--k", type=_make_integer_parser(1), help="largest k of pass@k and maj@k; N if absent")
    add("--temperature", type=_parse_temperature, metavar="T", help="0.7 if absent; 0 is --greedy")
    add("--top_p", type=float, metavar="P", help="draw from the likeliest tokens with this share of the probability")
    add("--top_k", type=_make_integer_parser(1), metavar="K", help="draw from the K likeliest tokens")
    add("--greedy", action="store_true", help="take the likeliest token; one completion per question")
    add(
        "--max_tokens",
        type=_make_integer_parser(1),
        default=128,
        metavar="N",
        help="length at which a completion is cut",
    )
    add(
        "--questions",
        type=_parse_question_count,
        metavar="N|all",
        help="questions of each task, from the first; as many as the task file says if absent",
    )
    add(
        "--seed",
        type=_make_integer_parser(0, SEEDS - 1),
        default=0,
        help="seed of the noise, the same for every policy",
    )
    add(
        "--margin",
        type=_parse_margin,
        default=0.01,
        metavar="M",
        help="difference of pass@1 that would not matter, 0.01",
    )
    add(
        "--batch_size",
        type=_make_integer_parser(1),
        default=128,
        metavar="N",
        help="completions at a time: memory and speed",
    )
    add(
        "--threads",
        type=_make_integer_parser(1, THREADS),
        default=1,
        help="CPU threads while decoding; 1 repeats bit for bit",
    )
    add("--device", type=_parse_device, help="cpu, cuda or cuda:1; a GPU if there is one")
    add("--out", type=parse_path, metavar="FOLDER", help="where it is kept, and goes on; in evaluations/ if absent")
    add(
        "--mlflow",
        default="sqlite:///mlflow.db",
        metavar="URI",
        help="`env` for MLFLOW_TRACKING_URI, `none` for no run",
    )
    add("--experiment", default="evaluation", metavar="NAME", help="in MLflow")
    add("--unsafe_scorers", action="store_true", help="judge also where the system cannot lock a process in")
    return command


def build_evaluation_request(options: argparse.Namespace) -> EvaluationRequest:
    """Return the request of a command line; questions are read, weights are not.

    Raises:
        ValueError: with the flag, or the file, and the repair.

    """
    patch_jsonargparse()
    refuse_passwords({name: str(value) for name, value in vars(options).items()})
    sampling, policies = _read_sampling_options(options), _list_evaluated_policies(options)
    names = Counter(file.stem for file in options.tasks)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"--tasks: {repeated[0]} occurs twice, and tasks are named after their files. Rename one.")
    sets = [read_question_set(file, options.questions, options.unsafe_scorers) for file in options.tasks]
    return EvaluationRequest(sets, policies, sampling, options.margin)


def _read_sampling_options(options: argparse.Namespace) -> SamplingParameters:
    greedy = options.greedy or options.temperature == 0
    make_token_filter(options.top_k, options.top_p, greedy)  # refuses values
    completions = options.completions or options.k or (1 if greedy else COMPLETIONS)
    return SamplingParameters(
        completions,
        options.k or completions,
        options.max_tokens,
        options.temperature or (1.0 if greedy else TEMPERATURE),
        options.top_p,
        options.top_k,
        greedy,
        options.seed,
    )


def _list_evaluated_policies(options: argparse.Namespace) -> list[EvaluatedPolicy]:
    """Return the policies to evaluate, the one that others are compared with first."""
    who = [_parse_policy_argument(text, options.model) for text in options.trained]
    if not who and options.model is None:
        raise ValueError("--model: no policy is named. Name a model, an adapter, a checkpoint or a run.")
    if options.against == BASE:
        bases = [strip_adapter(each) for each in who] or [make_base_policy(options.model)]
        models = {str(each.build_policy().path) for each in bases}
        if len(models) > 1:
            raise ValueError(
                f"--against base: these policies have several base models, {', '.join(sorted(models))}. Name a path."
            )
        if not who:
            raise ValueError(
                "--against base: there is no policy to compare with it. Name an --adapter, a --ckpt or a --run."
            )
        who.insert(0, bases[0])
    elif options.against:
        who.insert(0, _parse_policy_argument(options.against, options.model))
    arguments = _parse_model_args(options.model_args)
    return _number_repeated_names(
        [override_policy_settings(each, arguments) for each in who or [make_base_policy(options.model)]]
    )


def _parse_policy_argument(text: str, model: str | None) -> EvaluatedPolicy:
    """Return the policy of a path, or of ``NAME=PATH``."""
    name, equals, rest = text.partition("=")
    if not equals or "/" in name or Path(text).exists():
        return find_trained_policy(parse_path(text), model)
    return find_trained_policy(parse_path(rest), model, validate_folder_name("NAME=PATH", name))


def _number_repeated_names(policies: Sequence[EvaluatedPolicy]) -> list[EvaluatedPolicy]:
    """Number the names that occur more than once."""
    seen: Counter[str] = Counter()
    named = []
    for each in policies:
        seen[each.name] += 1
        named.append(each if seen[each.name] == 1 else replace(each, name=f"{each.name}-{seen[each.name]}"))
    return named


def _parse_model_args(texts: Sequence[str]) -> dict[str, Any]:
    """Return the content of ``--model_args`` as nested mappings.

    Example:
        >>> _parse_model_args(["dtype=bfloat16", "lora.rank=8"])
        {'dtype': 'bfloat16', 'lora': {'rank': 8}}

    """
    arguments: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"--model_args: {text!r} is not KEY=VALUE.")
        inner = arguments
        *outer, last = key.split(".")
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = parse_yaml(value, f"--model_args {key}")
    return arguments


def _make_integer_parser(least: int, most: int | None = None) -> Any:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            limits = f"from {least} on" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a number {limits}, got {text!r}.")
        return int(text)

    return number


def _parse_question_count(text: str) -> int | str:
    return ALL if text == ALL else _make_integer_parser(2)(text)


def _parse_temperature(text: str) -> float:
    return _parse_bounded_float(text, 0, None)


def _parse_margin(text: str) -> float:
    if not 0 < (value := _parse_bounded_float(text, 0, 1)) < 1:
        raise argparse.ArgumentTypeError(f"expected a proportion between 0 and 1 (0.01 is one point), got {text!r}.")
    return value


def _parse_bounded_float(text: str, least: float, most: float | None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= (float("inf") if most is None else most) or value == float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from {least:g}, got {text!r}.")
    return value


def _parse_device(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"expected cpu, cuda or cuda:1, got {text!r}.") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(f"there is no {text}; this machine has {torch.cuda.device_count()} of them.")
    return device
