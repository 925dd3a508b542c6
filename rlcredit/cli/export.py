"""``rlcredit export``: the trained policy as a plain model that transformers reads, or its adapter alone."""

import argparse
import shlex
from collections.abc import Sequence

import torch

from rlcredit.base.exit_status import FINISHED
from rlcredit.base.files import write_folder_atomically
from rlcredit.base.messages import print_message
from rlcredit.cli.command_options import make_export_parser
from rlcredit.cli.policy_arguments import NamedPolicy, load_named_policy, run_or_refuse
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.policy.export import MergedWeights, export_policy


def run_export_command(args: Sequence[str]) -> int:
    """Export a policy; return 0, or 2 if refused."""
    silence_libraries()
    parsed, options = make_export_parser().parse_known_args(args)
    command = shlex.join(["rlcredit", "export", *args])
    return run_or_refuse(lambda: _export_named_policy(parsed, options, command))


def _export_named_policy(args: argparse.Namespace, options: Sequence[str], command: str) -> int:
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise ValueError(f"--out: {args.out} is there already. Name another folder.")
    if not (args.ckpt_path or args.adapter):
        raise ValueError(
            "nothing trained is named. Give --ckpt_path (a checkpoint, or the folder of a run) or --adapter."
        )
    found = load_named_policy(args, options)
    if args.adapter_only:
        with write_folder_atomically(args.out) as unfinished:
            found.policy.save_adapter(unfinished)
            found.policy.save_tokenizer(unfinished)
        print(f"adapter of {found.name} written to {args.out}")
        return FINISHED
    _warn_of_rounding(found, args.dtype)
    export_policy(
        found.policy, args.out, args.dtype, _make_generation_settings(found), _describe_origin(found, command)
    )
    print(f"{found.name} written to {args.out}, {args.dtype}")
    return FINISHED


def _make_generation_settings(found: NamedPolicy) -> dict[str, float | bool]:
    """Return settings with which ``generate`` samples from the optimised policy, if a run records its temperature."""
    if found.task is None:
        return {}
    return {"do_sample": True, "temperature": found.sampling.temperature, "top_p": 1.0, "top_k": 0}


def _describe_origin(found: NamedPolicy, command: str) -> dict[str, str]:
    task, facts = found.task, {"command": f"`{command}`"}
    if task is None:
        return facts
    known = {"steps": found.step, "task": type(task).__name__, "temperature": f"{found.sampling.temperature:g}"}
    return {**{name: str(value) for name, value in known.items() if value is not None}, **facts}


def _warn_of_rounding(found: NamedPolicy, dtype: str) -> None:
    if dtype != "float32":
        lost = MergedWeights(found.policy).rounding_error_share(getattr(torch, dtype))
        print_message(
            f"warning: rounding to {dtype} changes the weights by {lost:.1%} of what training did; another policy."
        )
    policy = found.policy
    if policy.dtype != "float32" or policy.quantization:
        held = f"{policy.quantization} weights, computed in {policy.dtype}" if policy.quantization else policy.dtype
        print_message(
            f"The policy was trained with {held}; what is written is the same weights, exact, with another rounding."
        )
