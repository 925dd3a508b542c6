"""The options of a run, from the signatures and docstrings of the classes that a configuration makes."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docstring_markdown import parse_parameters, render_one_line

import rlcredit.cli.application  # it imports every engine
import rlcredit.tasks
from rlcredit.cli.run_options import TRAINER_DEFAULTS
from rlcredit.decoding.engine import Engine
from rlcredit.outputs.checkpoints import Checkpoints
from rlcredit.outputs.completion_table import CompletionTable
from rlcredit.pages.tables import Table
from rlcredit.tasks import Task
from rlcredit.training.module import PolicyModule

LINKED_ARGUMENTS = {"seed"}
"""Arguments that ``seed_everything`` sets."""


def render_options() -> str:
    """Return the options of ``model``, ``data``, ``trainer``, ``checkpoint`` and ``completions``."""
    tasks = [kind for kind in map(vars(rlcredit.tasks).get, rlcredit.tasks.__all__) if inspect.isclass(kind)]
    parts = [render_option_section("model", PolicyModule), *render_nested_sections("model", PolicyModule)]
    parts += [render_option_section(f"model.engine: {kind.__name__}", kind) for kind in find_concrete_classes(Engine)]
    parts += [render_option_section("data, every task", Task)]
    parts += [
        render_option_section(f"data: {kind.__name__}", kind)
        for kind in tasks
        if issubclass(kind, Task) and kind is not Task
    ]
    parts += [
        render_option_section("checkpoint", Checkpoints),
        render_option_section("completions", CompletionTable),
        render_trainer_options(),
    ]
    return "\n\n".join(parts)


def render_option_section(title: str, kind: type) -> str:
    """Return the options of a class as a table below its first sentence."""
    descriptions = {
        p.arg_name: render_one_line(p.description or "") for p in parse_parameters(inspect.getdoc(kind) or "")
    }
    signature = inspect.signature(kind)
    rows = [
        [f"`{name}`", format_type(parameter.annotation), format_default(parameter.default), descriptions.get(name, "")]
        for name, parameter in signature.parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name not in LINKED_ARGUMENTS
    ]
    head = f"## {title}\n\n{render_one_line((inspect.getdoc(kind) or '').split(chr(10) * 2)[0])}"
    return f"{head}\n\n{Table(['option', 'type', 'default', 'what it is'], rows).to_markdown()}" if rows else head


def render_nested_sections(title: str, kind: type) -> Iterator[str]:
    """Return the sections of the classes that are made for the arguments of another."""
    shown_classes: set[type] = set()
    for name, parameter in inspect.signature(kind).parameters.items():
        for cls in (parameter.annotation, *typing.get_args(parameter.annotation)):
            if inspect.isclass(cls) and cls.__module__.startswith("rlcredit.") and not inspect.isabstract(cls):
                if cls not in shown_classes:
                    yield from (
                        render_option_section(f"{title}.{name}", cls),
                        *render_nested_sections(f"{title}.{name}", cls),
                    )
                shown_classes.add(cls)


def find_concrete_classes(base: type) -> list[type]:
    """Return the classes of rlcredit that can be made, among those derived from one."""
    classes = {kind for child in base.__subclasses__() for kind in (child, *find_concrete_classes(child))}
    concrete = [kind for kind in classes if kind.__module__.startswith("rlcredit.") and not inspect.isabstract(kind)]
    return sorted(concrete, key=lambda kind: kind.__name__)


def render_trainer_options() -> str:
    """Return the defaults that rlcredit sets for Lightning's trainer."""
    rows = [[f"`{name}`", format_default(value)] for name, value in TRAINER_DEFAULTS.items() if name != "logger"]
    return "\n\n".join(
        [
            "## trainer",
            "All arguments of [Lightning's Trainer](https://lightning.ai/docs/pytorch/stable/common/trainer.html). "
            "`callbacks` is the stack. These defaults are rlcredit's own:",
            Table(["option", "default"], rows).to_markdown(),
        ]
    )


def format_type(annotation: Any) -> str:
    """Return a type as one would write it.

    Example:
        >>> format_type(int | None), format_type(typing.Literal["auto"] | None), format_type(str | list[str])
        ('int or null', '`auto` or null', 'str or list of str')

    """
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(format_type, arguments))
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (list, tuple):
        return f"list of {format_type(arguments[0])}"
    if origin is collections.abc.Callable:
        return format_type(arguments[-1])
    if origin is dict:
        return "mapping"
    return {types.NoneType: "null", Path: "path"}.get(annotation) or getattr(annotation, "__name__", str(annotation))


def format_default(value: Any) -> str:
    """Return a default as a configuration would write it."""
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or isinstance(value, bool):
        return str(value if value is None else str(value).lower()).replace("None", "null")
    text = repr(value) if isinstance(value, str) else getattr(value, "__name__", str(value))
    return f"`{text}`"
