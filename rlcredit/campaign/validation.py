"""What the keys of a campaign file may hold."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlcredit.files import is_existing_file
from rlcredit.inputs.found import find_config_file
from rlcredit.inputs.limits import SEEDS
from rlcredit.inputs.names import validate_folder_name
from rlcredit.inputs.strict_yaml import shorten_name

PRIMARY = ("val/pass_at_1", "val/pass_at_k")
"""Shares of held-out questions, of which more is better; a metric of training batches depends on their prompts."""

RESERVED = ("report", "ledger.json", "lock", "settings.yaml", "timings.json")
"""Files and folders of a campaign that no condition may be named like."""

ELSEWHERE = {
    "trainer.max_steps": "`steps`",
    "seed_everything": "`seeds`",
    "condition": "the names under `conditions`",
    "trainer.default_root_dir": "`name`, condition and seed",
    "checkpoint.dirpath": "`name`, condition and seed",
    "threads": "the option --threads",
    "ckpt_path": "the runs themselves: an interrupted one is continued",
}
"""Settings that a campaign makes itself, and what it takes them from."""


@dataclasses.dataclass(frozen=True)
class ComparisonFamily:
    """Comparisons that answer one question; p-values are adjusted for all of them together.

    Args:
        baseline: the condition that the others are compared with.
        conditions: the others.

    """

    baseline: str
    conditions: tuple[str, ...]


def parse_declared_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in the types that a declaration has.

    Raises:
        ValueError: names the key, the value, and the repair.

    """
    values = {key: CHECKS[key](key, value) for key, value in content.items()}
    named = {"baseline": [values["baseline"]]}
    for name, family in values.get("families", {}).items():
        named[f"families.{name}"] = [family.baseline, *family.conditions]
    for key, names in named.items():
        if unknown := [name for name in names if name not in values["conditions"]]:
            declared = ", ".join(values["conditions"])
            raise ValueError(f"{key}: there is no condition {unknown[0]!r}. There are {declared}.")
    return values


def _parse_files(key: str, value: Any) -> tuple[str, ...]:
    files = [value] if isinstance(value, str) else value
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise ValueError(f"{key}: expected a file or a list of files, got {value!r}.")
    for file in files:
        if not is_existing_file(Path(find_config_file(file))):
            raise ValueError(f"{key}: there is no file {shorten_name(file)}; paths start in {Path.cwd()}.")
    return tuple(files)


def _parse_conditions(key: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{key}: expected names and their overlays, got {value!r}.")
    for name in value:
        if name in RESERVED:
            raise ValueError(f"{key}: {name} is a file of the campaign itself. Give the condition another name.")
    return {validate_folder_name(key, name): _parse_files(f"{key}.{name}", files) for name, files in value.items()}


def _parse_families(key: str, value: Any) -> dict[str, ComparisonFamily]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: expected names and what is compared, got {value!r}.")
    for name in value:
        if not isinstance(name, str) or not name.isprintable() or set(name) & set("<>|[]#"):
            raise ValueError(f"{key}: {name!r} is a heading: one line, without < > | [ ] #.")
    return {name: _parse_family(f"{key}.{name}", family) for name, family in value.items()}


def _parse_family(key: str, value: Any) -> ComparisonFamily:
    if not isinstance(value, dict) or set(value) != {"baseline", "conditions"}:
        raise ValueError(f"{key}: expected {{baseline: NAME, conditions: [NAME, ...]}}, got {value!r}.")
    baseline, names = value["baseline"], value["conditions"]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in [baseline, *names]):
        raise ValueError(f"{key}: expected names of conditions, at least one of them to compare, got {value!r}.")
    if len({baseline, *names}) <= len(names):
        raise ValueError(f"{key}: a condition occurs twice. Remove one.")
    return ComparisonFamily(baseline, tuple(names))


def _parse_seeds(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(type(seed) is int and 0 <= seed < SEEDS for seed in value):
        raise ValueError(f"{key}: expected a list of numbers from 0 to {SEEDS - 1}, got {value!r}.")
    if repeated := [seed for seed, count in Counter(value).items() if count > 1]:
        raise ValueError(f"{key}: {repeated[0]} occurs twice; the same run counted twice is no evidence. Remove one.")
    return tuple(value)


def _parse_steps(key: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{key}: expected a number of optimizer steps, at least 1, got {value!r}.")
    return value


def _parse_primary(key: str, value: Any) -> str:
    if value not in PRIMARY:
        raise ValueError(f"{key}: expected a held-out metric, one of {', '.join(PRIMARY)}, got {value!r}.")
    return value


def _parse_positive_number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{key}: expected a number above 0 in the unit of the primary metric, got {value!r}.")
    return float(value)


def _parse_optional_number(key: str, value: Any) -> float | None:
    return None if value is None else _parse_positive_number(key, value)


def _parse_bool(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key}: expected true or false, got {value!r}.")
    return value


def _parse_settings(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key}: expected dotted keys and their values, got {value!r}.")
    for name in value:
        if name.removesuffix("+") in ELSEWHERE:
            raise ValueError(f"{key}: {name} follows from {ELSEWHERE[name.removesuffix('+')]}. Remove it here.")
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": validate_folder_name,
    "configs": _parse_files,
    "conditions": _parse_conditions,
    "baseline": validate_folder_name,
    "families": _parse_families,
    "seeds": _parse_seeds,
    "steps": _parse_steps,
    "primary": _parse_primary,
    "effect": _parse_positive_number,
    "deviation": _parse_optional_number,
    "exploratory": _parse_bool,
    "settings": _parse_settings,
}
