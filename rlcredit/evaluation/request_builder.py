"""The request that the options of an evaluation make."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlcredit.cli.engine_text import build_engine
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.arguments import parse_path
from rlcredit.config.class_paths import patch_jsonargparse
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.strict_yaml import parse_yaml
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.evaluation.evaluate_options import DEFAULT_COMPLETIONS, DEFAULT_TEMPERATURE
from rlcredit.evaluation.evaluated_policies import (
    BASE_NAME,
    EvaluatedPolicy,
    find_trained_policy,
    make_base_policy,
    override_policy_settings,
    strip_adapter,
)
from rlcredit.evaluation.evaluation_request import EvaluationRequest, SamplingParameters
from rlcredit.evaluation.question_sets import read_question_set


def build_evaluation_request(options: argparse.Namespace) -> EvaluationRequest:
    """Return the request of a command line; questions are read, weights are not.

    Raises:
        ValueError: with the flag, or the file, and the repair.

    """
    patch_jsonargparse()
    refuse_passwords({name: str(value) for name, value in vars(options).items()})
    sampling, policies = _read_sampling_options(options), _list_evaluated_policies(options)
    names = Counter(file.stem for file in options.tasks)
    if duplicates := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"--tasks: {duplicates[0]} occurs twice, and tasks are named after their files. Rename one.")
    sets = [read_question_set(file, options.questions, options.unsafe_scorers) for file in options.tasks]
    engine = build_engine(options.engine) if options.engine else InProcessEngine(options.batch_size, options.threads)
    for policy in policies:
        engine.refuse_run(policy.build_policy(), 1)
    return EvaluationRequest(sets, policies, sampling, options.margin, engine)


def _read_sampling_options(options: argparse.Namespace) -> SamplingParameters:
    greedy = options.greedy or options.temperature == 0
    TokenFilter(options.top_k, options.top_p, greedy)  # refuses values
    completions = options.completions or options.k or (1 if greedy else DEFAULT_COMPLETIONS)
    return SamplingParameters(
        completions,
        options.k or completions,
        options.max_tokens,
        options.temperature or (1.0 if greedy else DEFAULT_TEMPERATURE),
        options.top_p,
        options.top_k,
        greedy,
        options.seed,
    )


def _list_evaluated_policies(options: argparse.Namespace) -> list[EvaluatedPolicy]:
    """Return the policies to evaluate, the one that others are compared with first."""
    policies = [_parse_policy_argument(text, options.model) for text in options.trained]
    if not policies and options.model is None:
        raise ValueError("no policy is named. Name one with --ckpt_path, --adapter or --model.")
    if options.against == BASE_NAME:
        bases = [strip_adapter(policy) for policy in policies] or [make_base_policy(options.model)]
        models = {str(policy.build_policy().path) for policy in bases}
        if len(models) > 1:
            raise ValueError(
                f"--against base: these policies have several base models, {', '.join(sorted(models))}. Name a path."
            )
        if not policies:
            raise ValueError(
                "--against base: there is no policy to compare with it. Name a --ckpt_path or an --adapter."
            )
        policies.insert(0, bases[0])
    elif options.against:
        policies.insert(0, _parse_policy_argument(options.against, options.model))
    arguments = _parse_model_args(options.model_args)
    return _number_repeated_names(
        [override_policy_settings(policy, arguments) for policy in policies or [make_base_policy(options.model)]]
    )


def _parse_policy_argument(text: str, model: str | None) -> EvaluatedPolicy:
    """Return the policy of a path, or of ``NAME=PATH``."""
    name, equals, path = text.partition("=")
    if not equals or "/" in name or Path(text).exists():
        return find_trained_policy(parse_path(text), model)
    return find_trained_policy(parse_path(path), model, validate_folder_name("NAME=PATH", name))


def _number_repeated_names(policies: Sequence[EvaluatedPolicy]) -> list[EvaluatedPolicy]:
    """Number the names that occur more than once."""
    counts: Counter[str] = Counter()
    numbered_policies = []
    for policy in policies:
        counts[policy.name] += 1
        numbered_policies.append(
            policy if counts[policy.name] == 1 else replace(policy, name=f"{policy.name}-{counts[policy.name]}")
        )
    return numbered_policies


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
        *outer, leaf = key.split(".")
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[leaf] = parse_yaml(value, f"--model_args {key}")
    return arguments


def parse_device(text: str) -> torch.device:
    """Return a device that this machine has.

    Raises:
        ValueError: it has none of this name; with those that it has.

    """
    try:
        device = torch.device(text)
    except RuntimeError:
        raise ValueError(f"--device: expected cpu, cuda or cuda:1, got {text!r}.") from None
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        devices = f"has {count} of them" if count else "has no GPU that PyTorch can use; say --device cpu"
        raise ValueError(f"--device: there is no {text}; this machine {devices}.")
    return device
