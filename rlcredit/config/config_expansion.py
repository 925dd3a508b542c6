"""Configurations as they are read before a parser knows them, with every entry in call form expanded."""

import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import is_existing_file
from rlcredit.config.call_form import CALL_START, QUOTING_ADVICE, CallFormError, expand_call_form
from rlcredit.config.class_paths import (
    collect_argument_hints,
    find_expected_classes,
    find_named_class,
    flatten_union,
    list_parameter_names,
)
from rlcredit.config.strict_yaml import read_yaml


def expand_call_forms(value: Any, hint: Any, key: str = "", *, folder: Path | None = None) -> Any:
    """Return a configuration in which every call form is expanded that stands where a class is expected.

    Args:
        value: Configuration, or a part of it, as it was read.
        hint: Type of its place; for a mapping of settings, their types by name.
        key: Dotted key of its place.
        folder: Folder in which the name of a file stands for its content where a class is expected; None if it
            stands for nothing.

    Raises:
        CallFormError: names the place, the entry, and the repair.

    Example:
        >>> from lightning.pytorch import Callback
        >>> expand_call_forms({"name": "F(x=1)", "callbacks": ["F(x=1)"]}, {"name": str, "callbacks": list[Callback]})
        {'name': 'F(x=1)', 'callbacks': [{'class_path': 'F', 'init_args': {'x': 1}}]}

    """
    if isinstance(value, list):
        return [expand_call_forms(item, hint, f"{key}[{place}]", folder=folder) for place, item in enumerate(value)]
    bases = find_expected_classes(hint)
    if isinstance(value, str) and bases and folder is not None:
        file = folder / value.strip()
        if file.suffix == ".py":
            raise CallFormError(f"{key}: {value} is a Python file. Name a class in it, as {file.stem}.NAME.")
        if file.suffix in (".yaml", ".yml", ".json") or is_existing_file(file):
            return expand_call_forms(read_yaml(file), hint, key, folder=file.parent)
    if isinstance(value, str) and bases:
        try:
            value = expand_call_form(value.strip(), _list_named_parameters(value, bases))
        except CallFormError as error:
            raise CallFormError(f"{key}: {error}") from None
    if not isinstance(value, dict):
        return value
    if isinstance(path := value.get("class_path"), str):
        value["class_path"] = path.strip()
    if bases and (split := next((name for name in map(str, value) if CALL_START.match(name)), None)):
        raise CallFormError(f"{key}: YAML reads `{split}: ...` as a mapping. {QUOTING_ADVICE}")
    hints = find_inner_hints(value, hint)
    return {
        name: expand_call_forms(
            item, hints.get(bare := str(name).removesuffix("+")), f"{key}.{bare}".lstrip("."), folder=folder
        )
        for name, item in value.items()
    }


def _list_named_parameters(text: str, bases: Sequence[type]) -> Sequence[str]:
    cls = find_named_class(text.partition("(")[0].strip(), bases) if "(" in text else None
    return [] if cls is None else list_parameter_names(cls)


def find_inner_hints(value: Mapping[Any, Any], hint: Any) -> Mapping[str, Any]:
    """Return the types of what a mapping holds, by name."""
    if isinstance(hint, Mapping):
        return hint
    for part in flatten_union(hint):
        if typing.get_origin(part) in (dict, Mapping):
            return dict.fromkeys(map(str, value), typing.get_args(part)[1])
    bases = find_expected_classes(hint)
    owner = find_named_class(value.get("class_path"), bases) or next(iter(bases), None)
    hints = collect_argument_hints(owner)
    return {**hints, "init_args": hints, "dict_kwargs": hints} if hints else {}
