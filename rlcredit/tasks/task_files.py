"""Task files: YAML with ``data: {class_path, init_args}`` and nothing else."""

import difflib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from rlcredit.config import strict_yaml
from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import import_class_path, patch_jsonargparse
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.error_messages import REFUSAL_MARK
from rlcredit.config.paths import find_config_file
from rlcredit.tasks.task import Task

REFUSED = (ArgumentError, ValueError, TypeError, LookupError, AttributeError, ImportError, OSError)
"""Errors that parsers and constructors of tasks raise for a wrong value."""

_UNKNOWN = re.compile(r"does not accept option '(?:data\.)?(\w+)")
_REQUIRED = re.compile(r"are required: data\.(\w+)")
_WRONG = re.compile(r"Parser key \"data\.(\w+)[\w.]*\":")


def read_task(path: str | Path, /, **overrides: Any) -> Task:
    """Return the task that a file describes; its questions are not read yet.

    Args:
        path: Path of the file; one of those that come with rlcredit where the working directory has none.
        overrides: Arguments of the task that replace those in the file.

    Raises:
        ValueError: names the file, the key, and what it accepts.

    """
    patch_jsonargparse()
    content = strict_yaml.read_yaml(Path(find_config_file(str(path))))
    where = strict_yaml.shorten_name(path)
    try:
        content = expand_call_forms(content, {"data": Task})
    except CallFormError as error:
        raise ValueError(f"{where}: {error}") from None
    if not isinstance(content, dict) or set(content) != {"data"} or not isinstance(content["data"], dict):
        raise ValueError(f"{where}: a task file holds `data: {{class_path: ..., init_args: ...}}` and nothing else.")
    entry = content["data"]
    name, written = entry.get("class_path"), entry.get("init_args") or {}
    if not isinstance(name, str) or not isinstance(written, dict) or set(entry) - {"class_path", "init_args"}:
        raise ValueError(f"{where}: data: expected class_path and init_args, got {', '.join(map(str, entry))}.")
    try:
        cls = _find_task_class(name)
        parser = ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(cls, "data")
        parsed: Any = parser.parse_object({"data": {**written, **overrides}})
        return parser.instantiate_classes(parsed)["data"]
    except REFUSED as error:
        raise ValueError(f"{where}: {_explain_parser_error(str(error), name, written)}") from None


def _find_task_class(name: str) -> type[Task]:
    """Return the class of a class path: short for those of the project, dotted for any other."""
    known = {cls.__name__: cls for cls in _iterate_task_classes(Task) if not inspect.isabstract(cls)}
    cls = known.get(name) or (import_class_path(name) if "." in name else None)
    if not (inspect.isclass(cls) and issubclass(cls, Task)):
        offered = sorted(each for each in known if known[each].__module__.startswith("rlcredit."))
        raise ValueError(f"data.class_path: there is no task `{name}`. There are {', '.join(offered)}.")
    return cls


def _explain_parser_error(message: str, name: str, arguments: dict[str, Any]) -> str:
    """Return a parser's error in plain words, or the task's own message."""
    if REFUSAL_MARK in message:
        return f"data.class_path: {message.partition(REFUSAL_MARK)[2].splitlines()[0]}"
    if match := _UNKNOWN.search(message):
        known = sorted(set(_list_task_parameters(_find_task_class(name))))
        close = difflib.get_close_matches(match[1], known, n=1)
        meant = f" Did you mean `{close[0]}`?" if close else ""
        return f"data.init_args.{match[1]}: {name} has no such parameter.{meant} It accepts {', '.join(known)}."
    if match := _REQUIRED.search(message):
        return f"data.init_args.{match[1]} is missing; {name} needs it."
    if match := _WRONG.search(message):
        return f"data.init_args.{match[1]}: cannot be {arguments.get(match[1])!r}."
    return " ".join(message.split())


def _iterate_task_classes(base: type[Task]) -> Iterator[type[Task]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _iterate_task_classes(cls)


def _list_task_parameters(cls: type[Task]) -> Iterator[str]:
    """Yield the parameters of a class and those of the tasks that it is derived from."""
    for owner in cls.__mro__:
        if issubclass(owner, Task) and "__init__" in vars(owner):
            yield from (name for name in inspect.signature(owner.__init__).parameters if name not in ("self", "kwargs"))
