"""Where a dotted path leads, read off the source: no module is imported, so none of its code runs."""

import ast
import builtins
import functools
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of what others have made."""

CALLBACKS = "callbacks"
"""The package of ours whose name people's own folders have too."""

LINKS = 8
"""How many modules in a row may pass a name on."""


def locate_module(path: str) -> tuple[ModuleSpec | None, list[str]]:
    """Return the deepest module on a path and the names that remain behind it.

    Example:
        >>> module, rest = locate_module("json.decoder.JSONDecoder.decode")
        >>> module.name, rest
        ('json.decoder', ['JSONDecoder', 'decode'])

    """
    parts = path.split(".")
    spec = _find_top_module(parts[0])
    for place, part in enumerate(parts[1:], start=1):
        inner = _find_submodule(spec, part) if spec else None
        if inner is None:
            return spec, parts[place:]
        spec = inner
    return spec, []


def _find_top_module(name: str) -> ModuleSpec | None:
    if name in sys.modules:
        return sys.modules[name].__spec__ or ModuleSpec(name, None)
    return importlib.util.find_spec(name)


def _find_submodule(spec: ModuleSpec, part: str) -> ModuleSpec | None:
    name = f"{spec.name}.{part}"
    if name in sys.modules:
        return sys.modules[name].__spec__
    if hasattr(sys.modules.get(spec.name), part) or spec.submodule_search_locations is None:
        return None
    folders = list(spec.submodule_search_locations)
    inner = PathFinder.find_spec(part, folders)
    if inner is None:
        return None
    inner.name = name
    if inner.origin is None:  # a namespace package would look up its path through its parent, which is not imported
        inner.submodule_search_locations = [str(Path(folder) / part) for folder in folders]
    return inner


def find_definition(module: ModuleSpec, name: str, links: int = LINKS) -> tuple[ModuleSpec, Definition | None] | None:
    """Return where a name of a module is defined and how; nothing where its source defines no such class or function.

    Args:
        module: Module, located but not imported.
        name: Name that is bound at the top of the module, or imported there from another one.
        links: Number of further modules that may pass the name on.

    Returns:
        The module and the definition; no definition where that module has been imported and can be asked itself.

    """
    if module.name in sys.modules:
        return (module, None) if hasattr(sys.modules[module.name], name) else None
    for node in _list_module_statements(module):
        if isinstance(node, Definition) and node.name == name:
            return module, node
    for node in _list_module_statements(module) if links else ():
        if isinstance(node, ast.ImportFrom) and (source := _find_import_source(module, node)):
            passed_on = [
                alias.name for alias in node.names if alias.name == "*" or (alias.asname or alias.name) == name
            ]
            for original in passed_on:
                if resolved := find_definition(source, name if original == "*" else original, links - 1):
                    return resolved
    return None


def list_class_names(module: ModuleSpec) -> list[str]:
    """Return the names of the classes that are defined at the top of a module, as its source says."""
    return [node.name for node in _list_module_statements(module) if isinstance(node, ast.ClassDef)]


def find_syntax_problem(module: ModuleSpec) -> str | None:
    """Say where the source of a module is no Python; None where it is, or where there is no source."""
    if not module.origin or not module.origin.endswith(".py"):
        return None
    try:
        ast.parse(Path(module.origin).read_bytes())
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        said = error.msg if isinstance(error, SyntaxError) else error
        return f"{type(error).__name__}: {said} ({Path(module.origin).name}{line})"
    return None


def has_only_python_bases(module: ModuleSpec, cls: ast.ClassDef) -> bool:
    """Whether all that a class is visibly derived from is Python's own: then it is of no type of ours."""
    return all(_is_python_base(module, base) for base in cls.bases)


def _is_python_base(module: ModuleSpec, base: ast.expr) -> bool:
    root = next((node.id for node in ast.walk(base) if isinstance(node, ast.Name)), "")
    for node in _list_module_statements(module):
        if isinstance(node, ast.ClassDef) and node.name == root:
            return has_only_python_bases(module, node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) == root:
                    origin = alias.name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
                    return is_standard_library(origin)
    return hasattr(builtins, root)


def is_standard_library(path: str) -> bool:
    """Whether a dotted path leads into the standard library.

    Example:
        >>> is_standard_library("os.path.join"), is_standard_library("torch.optim.AdamW")
        (True, False)

    """
    return path.partition(".")[0] in sys.stdlib_module_names


def resolve_import_origin(module: ModuleSpec, node: ast.ImportFrom) -> str | None:
    """Return the dotted path that an import takes its names from; None where it reaches above the top.

    Args:
        module: Module in which the import stands.
        node: Syntax node of the import.

    """
    package = module.name if module.submodule_search_locations is not None else module.name.rpartition(".")[0]
    try:
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:
        return None


def _find_import_source(module: ModuleSpec, node: ast.ImportFrom) -> ModuleSpec | None:
    """Return the module that an import takes its names from."""
    spec, rest = locate_module(origin) if (origin := resolve_import_origin(module, node)) else (None, [])
    return None if rest else spec


def _list_module_statements(module: ModuleSpec) -> Sequence[ast.stmt]:
    return _parse_statements(module.origin) if module.origin and module.origin.endswith(".py") else ()


@functools.cache
def _parse_statements(file: str) -> Sequence[ast.stmt]:
    """Return the statements of a source that run when it is imported, those under `if` and `try` among them."""
    try:
        return tuple(_flatten_statements(ast.parse(Path(file).read_bytes()).body))
    except (SyntaxError, ValueError, OSError):
        return ()


def _flatten_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            for part in (node.body, node.orelse, *([node.finalbody] if isinstance(node, ast.Try) else [])):
                yield from _flatten_statements(part)
            for handler in node.handlers if isinstance(node, ast.Try) else ():
                yield from _flatten_statements(handler.body)
