"""Checks of the configuration before and after it is parsed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from rlcredit.config.allowed_values import MAX_THREADS, SEED_COUNT, refuse_unfit_precision, validate_folder_name
from rlcredit.config.class_paths import refuse_misplaced_class
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.reader import Roots

_SETTING_GROUPS = ("trainer", "model", "checkpoint", "completions")
"""Keys whose value is a mapping of settings, or a file that holds one."""


def refuse_unusable_groups(values: Mapping[str, Any]) -> None:
    """Refuse what a parser would not name: a group of settings that is none, and a seed that is no number.

    Args:
        values: Values of files and flags, merged.

    Raises:
        ValueError: with the place and the repair.

    """
    if {"conditions", "baseline"} <= values.keys():
        raise ValueError("conditions: this file declares a campaign. Say `rlcredit campaign` and its name.")
    if str(values.get("seed_everything")).lower() in ("true", "false", "yes", "no", "on", "off"):
        value = _describe_value(values["seed_everything"])
        raise ValueError(f"seed_everything: expected a number, got {value}. With one, the run can be repeated.")
    _refuse_table_as_task(values.get("data"))
    for key in _SETTING_GROUPS:
        value = values.get(key, {})
        if value is None:
            raise ValueError(f"{key}: is empty. Indent what belongs to it, or remove it.")
        is_file_or_call = isinstance(value, str) and (Path(value).suffix in (".yaml", ".yml") or "(" in value)
        if not (isinstance(value, dict) or is_file_or_call):
            raise ValueError(f"{key}: expected a mapping of settings, got {_describe_value(value)}. {_REPAIRS[key]}")
    if isinstance(trainer := values.get("trainer"), dict):
        refuse_unfit_precision(trainer.get("precision"))
    if "replace" in values:
        raise ValueError("replace: in a file it would replace a run at every start. Say --replace on the command line.")


_REPAIRS = {
    "trainer": "Write trainer: {max_steps: 100}.",
    "model": "Write model: {loss: GSPO}; a policy is named by --model.policy.path.",
    "checkpoint": "A run always keeps checkpoints; checkpoint: {every_n_train_steps: 20} says how often.",
    "completions": "A run always keeps completions; completions: {rows: 4} says how many. "
    "Answers to a question: --model.sampling.completions.",
}


def _refuse_table_as_task(data: Any) -> None:
    """Refuse a data file that is named as the task itself."""
    suffix = Path(data).suffix.lower() if isinstance(data, str) else ""
    if not suffix:
        return
    from rlcredit.tasks.record_sources import FILE_READERS  # noqa: PLC0415

    if suffix in FILE_READERS:
        raise ValueError(f"data: {data} is a table, no task. Say --data Records --data.init_args.path {data}")


def _describe_value(value: Any) -> str:
    return {list: "a list", bool: str(value).lower(), type(None): "null"}.get(type(value), repr(value)[:80])


def refuse_unusable_values(config: Namespace, roots: Roots) -> None:
    """Refuse values that a parser accepts but that no run could start with.

    Args:
        config: Configuration, parsed, nothing of it instantiated.
        roots: Class behind each top-level key.

    Raises:
        ValueError: with the place and the repair.

    """
    for key in _SETTING_GROUPS:
        if not isinstance(config[key], Namespace):
            raise ValueError(
                f"{key}: expected a mapping of settings, got {_describe_value(config[key])}. {_REPAIRS[key]}"
            )
    refuse_passwords(config.as_dict())
    refuse_unfit_precision(config.trainer.precision)  # also where a file in place of the group says it
    config.condition = validate_folder_name("condition", config.condition.strip())
    seed, threads = config.seed_everything, config.threads
    if type(seed) is not int or not 0 <= seed < SEED_COUNT:
        raise ValueError(f"seed_everything: expected a number from 0 to {SEED_COUNT - 1}, got {_describe_value(seed)}.")
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise ValueError(
            f"threads: expected a number from 1 to {MAX_THREADS}, or null for torch's choice, got {threads}."
        )
    for key in ("trainer", "model", "data", "checkpoint", "completions"):
        refuse_misplaced_class(config.get(key), roots[key], key)
