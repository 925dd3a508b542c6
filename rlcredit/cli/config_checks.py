"""Checks of the configuration before and after it is parsed."""

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jsonargparse import Namespace

from rlcredit.base.files import refuse_special_files
from rlcredit.cli.config_schema import Roots, merge_configs, split_flags_from_values
from rlcredit.config import strict_yaml
from rlcredit.config.allowed_values import SEEDS, THREADS, refuse_unfit_precision, validate_folder_name
from rlcredit.config.class_paths import patch_jsonargparse, refuse_misplaced_class
from rlcredit.config.jsonargparse_patches import patch_yaml_loader
from rlcredit.config.passwords import refuse_passwords

GROUPS = ("trainer", "model", "checkpoint", "completions")
"""Keys whose value is a mapping of settings, or a file that holds one."""


_NUMBER = re.compile(r"[-+]?\d[\d_:.]*")
"""What YAML may read as a number, be it in base sixty."""


def read_checked_config(args: Sequence[str], roots: Roots) -> dict[str, Any]:
    """Return the merged configuration of files and flags; from then on class paths and texts are checked when read.

    Args:
        args: Arguments of the command line.
        roots: Class behind each top-level key; empty while they are not imported, and call forms stay as they are.

    Raises:
        ValueError: with the place and the repair.

    """
    patch_jsonargparse()
    patch_yaml_loader(_check_text, strict_yaml.UnreadableError)
    for flag, value in itertools.pairwise(["", *split_flags_from_values(args)]):
        refuse_passwords(value, flag)
        refuse_special_files(value, flag)
        if value.startswith(("{", "[")) or _NUMBER.fullmatch(value):
            with contextlib.suppress(strict_yaml.NotYAMLError):  # a plain text may begin like YAML
                strict_yaml.parse_yaml(value, flag)
    merged = merge_configs(args, roots)
    refuse_passwords(merged)
    refuse_special_files(merged)
    if str(merged.get("seed_everything")).lower() in ("true", "false", "yes", "no", "on", "off"):
        value = _describe_value(merged["seed_everything"])
        raise ValueError(f"seed_everything: expected a number, got {value}. With one, the run can be repeated.")
    for key in GROUPS:
        if not isinstance(merged.get(key, {}), (dict, str)):
            if merged[key] is None:
                raise ValueError(f"{key}: is empty. Indent what belongs to it, or remove it. {_REPAIRS[key]}")
            raise ValueError(
                f"{key}: expected a mapping of settings, got {_describe_value(merged[key])}. {_REPAIRS[key]}"
            )
    if isinstance(trainer := merged.get("trainer"), dict):
        refuse_unfit_precision(trainer.get("precision"))
    return merged


_REPAIRS = {
    "trainer": "Write trainer: {max_steps: 100}.",
    "model": "Write model: {loss: GSPO}.",
    "checkpoint": "A run always keeps checkpoints; checkpoint: {every_n_train_steps: 20} says how often.",
    "completions": "A run always keeps completions; completions: {rows: 4} says how many.",
}


def _describe_value(value: Any) -> str:
    return {list: "a list", bool: str(value).lower(), type(None): "null"}.get(type(value), repr(value)[:80])


def _check_text(text: str) -> None:
    try:
        refuse_special_files(strict_yaml.parse_yaml(text))
    except strict_yaml.UnreadableError:
        raise
    except ValueError as error:
        raise strict_yaml.UnreadableError(str(error)) from None


def refuse_replace_in_file(given: Mapping[str, Any]) -> None:
    """Refuse a file that contains ``replace``: it would replace a run at every start.

    Args:
        given: Content of files and flags, merged; flags are texts.

    Raises:
        ValueError: with the repair.

    """
    if isinstance(given.get("replace"), bool):
        raise ValueError("replace: in a file it would replace a run at every start. Say --replace on the command line.")


def refuse_unusable_values(config: Namespace, roots: Roots) -> None:
    """Refuse values that a parser accepts but that no run could start with.

    Args:
        config: Configuration, parsed, nothing of it instantiated.
        roots: Class behind each top-level key.

    Raises:
        ValueError: with the place and the repair.

    """
    for key in GROUPS:
        if not isinstance(config[key], Namespace):
            raise ValueError(
                f"{key}: expected a mapping of settings, got {_describe_value(config[key])}. {_REPAIRS[key]}"
            )
    refuse_passwords(config.as_dict())
    refuse_unfit_precision(config.trainer.precision)  # also where a file in place of the group says it
    config.condition = validate_folder_name("condition", config.condition.strip())
    seed, threads = config.seed_everything, config.threads
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise ValueError(f"seed_everything: expected a number from 0 to {SEEDS - 1}, got {_describe_value(seed)}.")
    if threads is not None and not 1 <= threads <= THREADS:
        raise ValueError(f"threads: expected a number from 1 to {THREADS}, or null for torch's choice, got {threads}.")
    for key in ("trainer", "model", "data", "checkpoint", "completions"):
        refuse_misplaced_class(config.get(key), roots[key], key)
