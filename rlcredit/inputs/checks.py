"""The configuration of a command line, checked before it is parsed and again after."""

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jsonargparse import Namespace, get_loader, set_loader
from yaml import YAMLError

from rlcredit.inputs import strict_yaml
from rlcredit.inputs.class_paths import guard, refuse_misplaced
from rlcredit.inputs.limits import SEEDS, THREADS
from rlcredit.inputs.names import folder_name
from rlcredit.inputs.passwords import refuse_passwords
from rlcredit.inputs.precision import refuse_precision
from rlcredit.inputs.schema import Roots, merged_configs, words
from rlcredit.inputs.special import refuse_special

GROUPS = ("trainer", "model", "checkpoint", "completions")
"""Keys whose value is a mapping of settings, or a file that holds one."""


_NUMBER = re.compile(r"[-+]?\d[\d_:.]*")
"""What YAML may read as a number, be it in base sixty."""


def given(args: Sequence[str]) -> dict[str, Any]:
    """Return what files and flags configure, merged; afterwards class paths and texts are checked when read.

    Args:
        args: of the command line.

    Raises:
        ValueError: with the place and the repair.

    """
    guard()
    _guard_texts()
    for flag, value in itertools.pairwise(["", *words(args)]):
        refuse_passwords(value, flag)
        refuse_special(value, flag)
        if value.startswith(("{", "[")) or _NUMBER.fullmatch(value):
            with contextlib.suppress(strict_yaml.NotYAMLError):  # a plain text may begin like YAML
                strict_yaml.loaded(value, flag)
    merged = merged_configs(args)
    refuse_passwords(merged)
    refuse_special(merged)
    if str(merged.get("seed_everything")).lower() in ("true", "false", "yes", "no", "on", "off"):
        raise ValueError("seed_everything: expected a number; a seed that nobody knows cannot be used again.")
    for key in GROUPS:
        if not isinstance(merged.get(key, {}), (dict, str)):
            if merged[key] is None:
                raise ValueError(f"{key}: holds nothing. Indent what belongs to it, or remove it. {_REPAIRS[key]}")
            raise ValueError(f"{key}: expected a mapping of settings, got {_shown(merged[key])}. {_REPAIRS[key]}")
    if isinstance(trainer := merged.get("trainer"), dict):
        refuse_precision(trainer.get("precision"))
    return merged


_REPAIRS = {
    "trainer": "Write trainer: {max_steps: 100}.",
    "model": "Write model: {loss: GSPO}.",
    "checkpoint": "A run always keeps checkpoints; checkpoint: {every_n_train_steps: 20} says how often.",
    "completions": "A run always keeps completions; completions: {rows: 4} says how many.",
}


def _shown(value: Any) -> str:
    return {list: "a list", bool: str(value).lower(), type(None): "null"}.get(type(value), repr(value)[:80])


def _guard_texts() -> None:
    """Have every text checked that is read as YAML: files inside of files, and values of flags."""
    plain = get_loader("yaml")
    if plain is not _checked_text:
        _Loader.plain = staticmethod(plain)
        set_loader("yaml", _checked_text, exceptions=(YAMLError, strict_yaml.UnreadableError))


class _Loader:
    """The loader that is guarded."""

    plain: Any


def _checked_text(text: str) -> Any:
    try:
        refuse_special(strict_yaml.loaded(text))
    except strict_yaml.UnreadableError:
        raise
    except ValueError as error:
        raise strict_yaml.UnreadableError(str(error)) from None
    return _Loader.plain(text)


def refuse_replacing_files(given: Mapping[str, Any]) -> None:
    """Refuse a file that asks to replace what lies in the folder of a run: it would ask again at every start.

    Args:
        given: what files and flags configure, merged; flags are texts.

    Raises:
        ValueError: with the repair.

    """
    if isinstance(given.get("replace"), bool):
        raise ValueError("replace: a file would replace one run after another. Say --replace on the command line.")


def refuse_values(config: Namespace, roots: Roots) -> None:
    """Refuse values that a parser accepts but no run could start with.

    Args:
        config: parsed, nothing of it instantiated.
        roots: the class behind each top-level key.

    Raises:
        ValueError: with the place and the repair.

    """
    for key in GROUPS:
        if not isinstance(config[key], Namespace):
            raise ValueError(f"{key}: expected a mapping of settings, got {_shown(config[key])}. {_REPAIRS[key]}")
    refuse_passwords(config.as_dict())
    refuse_precision(config.trainer.precision)  # also where a file in place of the group says it
    folder_name("condition", config.condition)
    seed, threads = config.seed_everything, config.threads
    if type(seed) is not int or not 0 <= seed < SEEDS:
        raise ValueError(f"seed_everything: expected a number from 0 to {SEEDS - 1}, got {_shown(seed)}.")
    if threads is not None and not 1 <= threads <= THREADS:
        raise ValueError(f"threads: expected a number from 1 to {THREADS}, or null for torch's choice, got {threads}.")
    for key in ("trainer", "model", "data", "checkpoint", "completions"):
        refuse_misplaced(config.get(key), roots[key], key)
