"""Operators as a file lists them, read without the rest of a run's configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from rlcredit.cli.config_faults import explain_failures
from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import patch_jsonargparse
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.paths import find_config_file
from rlcredit.config.reader import Configuration
from rlcredit.config.strict_yaml import StrictYAMLLoader, shorten_name
from rlcredit.credit.catalogue import OPERATOR_PACKAGE, import_operators, list_operator_modules
from rlcredit.credit.contract import OperatorContract
from rlcredit.credit.operator import CreditOperator

SHIPPED_CONDITIONS = "configs/conditions"


def read_stack_file(source: str | Path) -> list[CreditOperator]:
    """Return the operators that a file lists under ``trainer.callbacks``, or under ``callbacks``; probes are left out.

    Args:
        source: File in YAML, or the name of a condition that ships, as ``sepa_paper/c8_maxrl_sepa``.

    Raises:
        FileNotFoundError: there is no such condition or file.
        ValueError: the file holds no list of operators.

    """
    file = _find_stack_file(str(source))
    content = yaml.load(file.read_text(encoding="utf-8"), Loader=StrictYAMLLoader)
    section = content.get("trainer", content) if isinstance(content, dict) else {}
    section = section.get("callbacks") if isinstance(section, dict) else None
    if not isinstance(section, list):
        raise ValueError(f"{shorten_name(str(source))} holds no list of operators. Put it under `trainer.callbacks`.")
    return make_operators(section, source)


def make_operators(entries: list[Any], source: str | Path) -> list[CreditOperator]:
    """Return the operators that the entries of a list name; probes are left out.

    Args:
        entries: Entries as ``trainer.callbacks`` has them.
        source: Where they come from, for messages.

    Raises:
        ValueError: an entry names no operator, or arguments that it does not have.

    """
    try:
        return read_operators([entry for entry in entries if not _names_probe(entry)])
    except ValueError as error:
        raise ValueError(f"{shorten_name(str(source))}: {error}") from None


class _Trainer:
    """Owner of the list, whose key messages name as those of a run do."""

    def __init__(self, callbacks: list[CreditOperator]) -> None: ...


def read_operators(entries: Sequence[Any]) -> list[CreditOperator]:
    """Return the operators of a list whose entries are instances, or written as in ``trainer.callbacks``.

    Args:
        entries: Entries; an instance stays as it is.

    Raises:
        ValueError: an entry names no operator, or arguments that it does not have.

    """
    for place, entry in enumerate(entries):
        _refuse_odd_entry(place, entry)
    patch_jsonargparse()
    import_operators(probes=any(map(_names_probe, entries)))
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--trainer.callbacks", type=list[CreditOperator])
    full_form: dict[str, Any] = {}
    try:
        full_form = expand_call_forms({"trainer": {"callbacks": list(entries)}}, {"trainer": _Trainer})
        return parser.instantiate_classes(parser.parse_object(full_form))["trainer.callbacks"]
    except ArgumentError as error:
        reason = explain_failures(str(error), Configuration(values=full_form), {"trainer": _Trainer})[0]
    except CallFormError as error:
        reason = str(error)
    raise ValueError(reason.replace("trainer.callbacks[", "stack["))


def _refuse_odd_entry(place: int, entry: object) -> None:
    """Refuse an entry that is neither an operator nor a text or mapping that may name one."""
    if isinstance(entry, type):
        raise ValueError(f"stack[{place}] is the class {entry.__name__}. Write {entry.__name__}() instead.")
    if not isinstance(entry, (str, Mapping, OperatorContract)):
        raise ValueError(f"stack[{place}] is {entry!r}, expected an operator, its name, or a call of it.")


def _names_probe(entry: object) -> bool:
    """Whether an entry names a probe that ships."""
    name = entry.get("class_path", "") if isinstance(entry, dict) else entry
    name = str(name).partition("(")[0].rpartition(".")[2].strip()
    probes = [module for module in list_operator_modules() if module.startswith(f"{OPERATOR_PACKAGE}.probes.")]
    return name.lower() in [module.rpartition(".")[2].replace("_", "") for module in probes]


def _find_stack_file(source: str) -> Path:
    """Return the file of a condition, or a file of the user."""
    names = [source, f"{SHIPPED_CONDITIONS}/{source.removesuffix('.yaml')}.yaml"]
    for name in names:
        if (file := Path(find_config_file(name))).is_file():
            return file
    raise FileNotFoundError(
        f"there is no file {shorten_name(source)}, and no condition of this name in {SHIPPED_CONDITIONS}. To name "
        'operators, pass a list, as ["GRPO", "GTPO(beta=0.1)"].'
    )
