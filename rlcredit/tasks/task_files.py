"""Task files: YAML with ``data: {class_path, init_args}`` and nothing else."""

import inspect
import re
from pathlib import Path
from typing import Any, TypeVar

from jsonargparse import ArgumentError, ArgumentParser

from rlcredit.base.messages import suggest_name
from rlcredit.config import strict_yaml
from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import (
    import_class_path,
    is_listed_class,
    list_parameter_names,
    patch_jsonargparse,
    walk_subclasses,
)
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.error_messages import REFUSAL_MARK
from rlcredit.config.paths import find_config_file

TaskType = TypeVar("TaskType")

TASK_ERRORS = (ArgumentError, ValueError, TypeError, LookupError, AttributeError, ImportError, OSError)
"""Errors that parsers and constructors of tasks raise for a wrong value."""

_UNKNOWN = re.compile(r"does not accept option '(?:data\.)?(\w+)")
_REQUIRED = re.compile(r"are required: data\.(\w+)")
_WRONG = re.compile(r"Parser key \"data\.(\w+)[\w.]*\":")


def read_task(path: str | Path, base: type[TaskType], /, **overrides: Any) -> TaskType:
    """Return the task that a file describes; its questions are not read yet.

    Args:
        path: Path of the file; one of those that come with rlcredit where the working directory has none.
        base: Base class of tasks.
        overrides: Arguments of the task that replace those in the file.

    Raises:
        ValueError: names the file, the key, and what it accepts.

    """
    patch_jsonargparse()
    content = strict_yaml.read_yaml(Path(find_config_file(str(path))))
    file_name = strict_yaml.shorten_name(path)
    try:
        content = expand_call_forms(content, {"data": base})
    except CallFormError as error:
        raise ValueError(f"{file_name}: {error}") from None
    if not isinstance(content, dict) or set(content) != {"data"} or not isinstance(content["data"], dict):
        raise ValueError(
            f"{file_name}: a task file holds `data: {{class_path: ..., init_args: ...}}` and nothing else."
        )
    entry = content["data"]
    name, arguments = entry.get("class_path"), entry.get("init_args") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict) or set(entry) - {"class_path", "init_args"}:
        raise ValueError(f"{file_name}: data: expected class_path and init_args, got {', '.join(map(str, entry))}.")
    try:
        cls = _find_task_class(name, base)
        parser = ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(cls, "data")
        namespace: Any = parser.parse_object({"data": {**arguments, **overrides}})
        return parser.instantiate_classes(namespace)["data"]
    except TASK_ERRORS as error:
        raise ValueError(f"{file_name}: {_explain_parser_error(str(error), base, name, arguments)}") from None


def _find_task_class(name: str, base: type[TaskType]) -> type[TaskType]:
    """Return the class of a class path: short for those of the project, dotted for any other."""
    classes = {cls.__name__: cls for cls in walk_subclasses(base) if not inspect.isabstract(cls)}
    cls = classes.get(name) or (import_class_path(name) if "." in name else None)
    if not (inspect.isclass(cls) and issubclass(cls, base)):
        names = sorted(name for name, kind in classes.items() if is_listed_class(kind))
        raise ValueError(f"data.class_path: there is no task `{name}`. There are {', '.join(names)}.")
    return cls


def _explain_parser_error(message: str, base: type, name: str, arguments: dict[str, Any]) -> str:
    """Return a parser's error in plain words, or the task's own message."""
    if REFUSAL_MARK in message:
        return f"data.class_path: {message.partition(REFUSAL_MARK)[2].splitlines()[0]}"
    if match := _UNKNOWN.search(message):
        parameters = sorted(list_parameter_names(_find_task_class(name, base)))
        suggestion = suggest_name(match[1], parameters)
        return (
            f"data.init_args.{match[1]}: {name} has no such parameter.{suggestion} It accepts {', '.join(parameters)}."
        )
    if match := _REQUIRED.search(message):
        return f"data.init_args.{match[1]} is missing; {name} needs it."
    if match := _WRONG.search(message):
        return f"data.init_args.{match[1]}: cannot be {arguments.get(match[1])!r}."
    return " ".join(message.split())
