"""Code that a configuration names: the modules behind its class paths with all that they import, and what it says."""

import ast
import contextlib
import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from rlcredit.config.call_form import CallFormError, expand_call_form
from rlcredit.config.module_source import (
    INSTALLATION_FOLDERS,
    is_standard_library,
    locate_module,
    resolve_import_origin,
)

_SHIPPED_PACKAGES = ("rlcredit", "callbacks")
"""Packages that are ours, wherever they lie."""


def walk_config_texts(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a configuration, with the key under which it stands.

    Example:
        >>> list(walk_config_texts({"policy": {"path": "tiny"}, "callbacks": ["GRPO", {"class_path": "mine.Halved"}]}))
        [('path', 'tiny'), ('callbacks', 'GRPO'), ('class_path', 'mine.Halved')]

    """
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from walk_config_texts(value, name)
    elif isinstance(content, list):
        for value in content:
            yield from walk_config_texts(value, key)
    elif isinstance(content, str):
        yield key, content


def find_dotted_paths(content: Any) -> Iterator[str]:
    """Yield the texts of a configuration that may be dotted paths.

    Example:
        >>> list(find_dotted_paths({"callbacks": ["GRPO", {"class_path": "mine.Halved", "init_args": {"at": "0.5"}}]}))
        ['mine.Halved']
        >>> list(find_dotted_paths(["mine.Summed(first=mine.Halved(at=1))"]))
        ['mine.Summed', 'mine.Halved']

    """
    for _, word in walk_config_texts(content):
        with contextlib.suppress(CallFormError):
            meaning = expand_call_form(word)
            yield from find_dotted_paths([meaning]) if meaning != word else ()
        if "." in word and all(part.isidentifier() for part in word.split(".")):
            yield word


def trace_imported_modules(paths: Iterable[str]) -> dict[str, Path]:
    """Return the modules behind dotted paths, and those that they import, at their top or later, and so on.

    Python's own and those that were installed from elsewhere are left out. Nothing is imported.

    Args:
        paths: Dotted paths of modules, or of names in them; one that leads nowhere adds nothing.

    Returns:
        Their files by their names, sorted.

    """
    modules = dict[str, Path]()
    queue = list(paths)
    while queue:
        spec, names = _find_traceable_spec(queue.pop())
        if spec is None:
            continue
        queue += _list_lazy_paths(spec, names)
        if spec.name in modules or not (spec.origin or "").endswith(".py"):
            continue
        modules[spec.name] = Path(str(spec.origin))
        packages = spec.name.split(".")[:-1]
        queue += [*(".".join(packages[:depth]) for depth in range(1, len(packages) + 1)), *_list_imported_paths(spec)]
    return dict(sorted(modules.items()))


def trace_user_modules(paths: Iterable[str]) -> dict[str, Path]:
    """Return the modules of :func:`trace_imported_modules` that do not come with rlcredit."""
    return {
        name: file
        for name, file in trace_imported_modules(paths).items()
        if name.partition(".")[0] not in _SHIPPED_PACKAGES
    }


def fingerprint_modules(modules: Mapping[str, Path]) -> dict[str, str]:
    """Identify what each of some modules does: comments, layout and docstrings count for nothing.

    Of rlcredit's own modules that counts which was there at the first look: this process has imported them.

    Args:
        modules: Files by the names of their modules.

    """
    return {
        name: _hash_statements(file, 0 if name.partition(".")[0] in _SHIPPED_PACKAGES else _read_change_time(file))
        for name, file in modules.items()
    }


def _find_traceable_spec(path: str) -> tuple[ModuleSpec | None, list[str]]:
    """Return the deepest module on a path, if it counts, and the names that remain behind it."""
    top = path.partition(".")[0]
    if not top or is_standard_library(path):
        return None, []
    try:
        return locate_module(path) if _is_traceable(locate_module(top)[0]) else (None, [])
    except (ImportError, ValueError, AttributeError):
        return None, []


def _is_traceable(top: ModuleSpec | None) -> bool:
    """Whether a module or package is ours, or one's own; asked of the top, so that no installed package is entered."""
    if top is None:
        return False
    places = [top.origin or "", *(top.submodule_search_locations or ())]
    return top.name in _SHIPPED_PACKAGES or all(INSTALLATION_FOLDERS.isdisjoint(Path(place).parts) for place in places)


def _list_imported_paths(spec: ModuleSpec) -> Iterator[str]:
    """Yield the dotted path of everything that a module imports, anywhere in it, save what it gives lazily."""
    file, lazy = Path(str(spec.origin)), _find_lazy_imports(spec)
    for node in _find_import_statements(file, _read_change_time(file)):
        if node in lazy:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif origin := resolve_import_origin(spec, node):
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _list_lazy_paths(spec: ModuleSpec, names: Sequence[str]) -> list[str]:
    """Return the module that defines the first of some names, if the package gives it lazily."""
    aliases = [(node.module, alias.name) for node in _find_lazy_imports(spec) for alias in node.names]
    return [f"{module}.{name}" for module, name in aliases if name in names[:1]]


def _find_lazy_imports(spec: ModuleSpec) -> tuple[ast.ImportFrom, ...]:
    """Return the imports that a package of ours shows to a type checker, and makes when a name is first used."""
    if spec.name.partition(".")[0] not in _SHIPPED_PACKAGES or spec.submodule_search_locations is None:
        return ()
    file = Path(str(spec.origin))
    return _find_type_checking_imports(file, _read_change_time(file))


@functools.cache
def _find_import_statements(file: Path, version: int) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(
        node for node in ast.walk(_parse_version(file, version)) if isinstance(node, ast.Import | ast.ImportFrom)
    )


@functools.cache
def _find_type_checking_imports(file: Path, version: int) -> tuple[ast.ImportFrom, ...]:
    blocks = [node for node in _parse_version(file, version).body if isinstance(node, ast.If)]
    checking_blocks = [
        block for block in blocks if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
    ]
    return tuple(node for block in checking_blocks for node in block.body if isinstance(node, ast.ImportFrom))


@functools.cache
def _parse_version(file: Path, _version: int) -> ast.Module:
    return _parse_source(file)


def _parse_source(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return ast.Module([], [])


def _read_change_time(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else -1


@functools.cache
def _hash_statements(file: Path, _version: int) -> str:
    """Return a hash of a module's statements, written anew without docstrings."""
    tree = _parse_source(file)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [statement for statement in body if not _is_docstring(statement)]  # pyright: ignore[reportAttributeAccessIssue]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def _is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is nothing but a text, as docstrings of classes, functions and attributes are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
