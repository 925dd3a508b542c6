"""Parameters of classes, read from their source: a help text needs no import of what it describes."""

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docstring_parser import parse


class SourceParameter(NamedTuple):
    """A parameter of a class as its source says it.

    Attributes:
        name: Name of the parameter.
        default: Default value as Python writes it; empty if it has none, or one that only an import would tell.
        description: First sentence of what the docstring says, empty if it says nothing.

    """

    name: str
    default: str
    description: str


def read_class_parameters(module: str, name: str) -> Iterator[SourceParameter]:
    """Yield the named parameters of a class, in the order of its signature.

    Args:
        module: Module that defines the class.
        name: Name of the class.

    Example:
        >>> [each.name for each in read_class_parameters("rlcredit.decoding.sampling", "Sampling")][:2]
        ['completions', 'max_tokens']

    """
    cls = next(node for node in _parse_module(module).body if isinstance(node, ast.ClassDef) and node.name == name)
    constructor = next(
        (node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None
    )
    texts = [ast.get_docstring(cls) or "", (constructor and ast.get_docstring(constructor)) or ""]
    descriptions = {argument.arg_name: argument.description or "" for text in texts for argument in parse(text).params}
    pairs = _list_fields(cls) if constructor is None else _list_arguments(constructor)
    for parameter, default in pairs:
        default_text = _render_default(default, _parse_module(module))
        yield SourceParameter(parameter, default_text, _shorten_description(descriptions.get(parameter, "")))


def _list_fields(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield name and default of the fields of a dataclass."""
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _list_arguments(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    arguments = function.args
    parameters = arguments.args[1:]
    defaults = [*[None] * (len(parameters) - len(arguments.defaults)), *arguments.defaults]
    yield from ((parameter.arg, default) for parameter, default in zip(parameters, defaults, strict=True))
    yield from (
        (parameter.arg, default) for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    )


def _render_default(default: ast.expr | None, module: ast.Module) -> str:
    """Return a default in Python's words; a constant of the module by its value, any other name not at all."""
    if isinstance(default, ast.Name):
        values = [
            node.value
            for node in module.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == default.id
        ]
        return ast.unparse(values[0]) if values and isinstance(values[0], ast.Constant) else ""
    return ast.unparse(default) if default else ""


def _shorten_description(text: str) -> str:
    """Return the first sentence of a description, on one line, without its stop and without marks of Sphinx."""
    line = re.sub(r":\w+:`~?([^`]*)`", r"\1", " ".join(text.split()).replace("``", ""))
    for stop in (". ", "; ", " Default: "):
        line = line.partition(stop)[0]
    return line.removesuffix(".")


@functools.cache
def _parse_module(module: str) -> ast.Module:
    """Parse the source of a module, of which only the first package is looked up."""
    package, *inner = module.split(".")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0], *inner).with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
