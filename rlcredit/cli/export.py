"""``rlcredit export``: the trained policy as a plain model that transformers reads, or its adapter alone."""

import argparse
import json
import shlex
from collections.abc import Sequence
from typing import Any

import torch

from rlcredit.base.exit_status import FINISHED
from rlcredit.base.files import write_folder_atomically
from rlcredit.base.messages import print_message
from rlcredit.cli.command_options import make_export_parser
from rlcredit.cli.policy_arguments import NamedPolicy, load_named_policy, run_or_refuse
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.config import strict_yaml
from rlcredit.outputs.adapter import CARD_PARAMETERS
from rlcredit.outputs.code_versions import describe_code_versions, read_code_versions
from rlcredit.outputs.held_out import describe_held_out_change
from rlcredit.policy.export import MergedWeights, export_policy


def run_export_command(args: Sequence[str]) -> int:
    """Export a policy; return 0, or 2 if refused."""
    silence_libraries()
    namespace, options = make_export_parser().parse_known_args(args)
    command = shlex.join(["rlcredit", "export", *args])
    return run_or_refuse(lambda: _export_named_policy(namespace, options, command))


def _export_named_policy(args: argparse.Namespace, options: Sequence[str], command: str) -> int:
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise ValueError(f"--out: {args.out} is there already. Name another folder.")
    if not (args.ckpt_path or args.adapter):
        raise ValueError(
            "nothing trained is named. Give --ckpt_path (a checkpoint, or the folder of a run) or --adapter."
        )
    choice = load_named_policy(args, options)
    if args.adapter_only:
        with write_folder_atomically(args.out) as folder:
            choice.policy.save_adapter(folder)
            choice.policy.save_tokenizer(folder)
        print(f"adapter of {choice.name} written to {args.out}")
        return FINISHED
    _warn_of_rounding(choice, args.dtype)
    export_policy(
        choice.policy, args.out, args.dtype, _make_generation_settings(choice), _describe_origin(choice, command)
    )
    print(f"{choice.name} written to {args.out}, {args.dtype}")
    return FINISHED


def _make_generation_settings(choice: NamedPolicy) -> dict[str, float | bool]:
    """Return settings with which ``generate`` samples from the optimised policy, if a run records its temperature."""
    if choice.task is None:
        return {}
    return {"do_sample": True, "temperature": choice.sampling.temperature, "top_p": 1.0, "top_k": 0}


def _describe_origin(choice: NamedPolicy, command: str) -> dict[str, str]:
    """Return the facts of the card: condition, seed and parameters as far as the run has left them, and the command."""
    facts: dict[str, Any] = {}
    if choice.task is not None:
        facts = {"task": type(choice.task).__name__, "temperature": f"{choice.sampling.temperature:g}"}
    if choice.run is not None and choice.run.parameters.is_file():
        config = strict_yaml.read_yaml(choice.run.config)
        parameters = json.loads(choice.run.parameters.read_text(encoding="utf-8"))
        facts = {"condition": config.get("condition"), "seed": config.get("seed_everything")}
        facts |= {name: parameters.get(name) for name in CARD_PARAMETERS}
    held_out = choice.run and describe_held_out_change(choice.run, choice.step)
    facts |= {"steps": choice.step, "held-out pass@1": held_out, "command": f"`{command}`"}
    facts["made with"] = describe_code_versions(read_code_versions())
    return {name: str(value) for name, value in facts.items() if value is not None}


def _warn_of_rounding(choice: NamedPolicy, dtype: str) -> None:
    if dtype != "float32":
        share = MergedWeights(choice.policy).rounding_error_share(getattr(torch, dtype))
        print_message(
            f"warning: rounding to {dtype} changes the weights by {share:.1%} of what training did. Leave out "
            "--dtype to keep them exact."
        )
    policy = choice.policy
    if policy.dtype != "float32" or policy.quantization:
        weights = f"{policy.quantization} weights, computed in {policy.dtype}" if policy.quantization else policy.dtype
        print_message(
            f"The policy was trained with {weights}; the export holds its merged weights in {dtype}, so that "
            "log-probabilities may differ."
        )
