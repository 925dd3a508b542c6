"""Code that a configuration names: the modules behind its class paths with all that they import, and what it says."""

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from rlcredit.inputs.source import located, of_python

SHIPPED = ("rlcredit", "callbacks")
"""Packages that are ours, wherever they lie."""

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of what others have made."""


def words(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a configuration, with the key under which it stands.

    Example:
        >>> list(words({"policy": {"path": "tiny"}, "callbacks": ["GRPO", {"class_path": "mine.Halved"}]}))
        [('path', 'tiny'), ('callbacks', 'GRPO'), ('class_path', 'mine.Halved')]

    """
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from words(value, name)
    elif isinstance(content, list):
        for value in content:
            yield from words(value, key)
    elif isinstance(content, str):
        yield key, content


def named(content: Any) -> Iterator[str]:
    """Yield the texts of a configuration that may be dotted paths.

    Example:
        >>> list(named({"callbacks": ["GRPO", {"class_path": "mine.Halved", "init_args": {"at": "0.5"}}]}))
        ['mine.Halved']

    """
    for _, word in words(content):
        if "." in word and all(part.isidentifier() for part in word.split(".")):
            yield word


def modules(paths: Iterable[str]) -> dict[str, Path]:
    """Return the modules behind dotted paths, and those that they import, at their top or later, and so on.

    Python's own and those that were installed from elsewhere are left out. Nothing is imported.

    Args:
        paths: of modules, or of what is in them; one that leads nowhere adds nothing.

    Returns:
        Their files by their names, sorted.

    """
    reached = dict[str, Path]()
    queue = list(paths)
    while queue:
        spec = _spec(queue.pop())
        if spec is None or spec.name in reached or not _counts(spec):
            continue
        reached[spec.name] = Path(str(spec.origin))
        queue += [spec.name.rpartition(".")[0], *_imports(spec)]
    return dict(sorted(reached.items()))


def own(paths: Iterable[str]) -> dict[str, Path]:
    """Return those of :func:`modules` that do not come with rlcredit."""
    return {name: file for name, file in modules(paths).items() if name.partition(".")[0] not in SHIPPED}


def meanings(reached: Mapping[str, Path]) -> dict[str, str]:
    """Identify what each of some modules does: comments, layout and docstrings count for nothing.

    Args:
        reached: files by the names of their modules.

    """
    return {name: _meaning(file, file.stat().st_mtime_ns) for name, file in reached.items()}


def _spec(path: str) -> ModuleSpec | None:
    if not path or of_python(path):
        return None
    try:
        return located(path)[0]
    except (ImportError, ValueError):
        return None


def _counts(spec: ModuleSpec) -> bool:
    if not spec.origin or not spec.origin.endswith(".py"):
        return False
    return spec.name.partition(".")[0] in SHIPPED or INSTALLED.isdisjoint(Path(spec.origin).parts)


def _imports(spec: ModuleSpec) -> Iterator[str]:
    """Yield the dotted path of everything that a module imports, anywhere in it."""
    package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
    for node in ast.walk(_parsed(Path(str(spec.origin)))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return ast.Module([], [])


@functools.cache
def _meaning(file: Path, _changed: int) -> str:
    """Return a hash of a module's statements, its docstrings left out."""
    tree = _parsed(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _documented(node):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
