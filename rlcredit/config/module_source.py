"""Where a dotted path leads, or why nowhere: no module is imported, so none of its code runs."""

import ast
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from rlcredit.base.messages import find_closest_name

INSTALLATION_FOLDERS = {"site-packages", "dist-packages"}
"""Folders of what others have made."""

_MAX_LISTED_NAMES = 20
"""Names of a module that a message lists."""

CALLBACKS_PACKAGE = "callbacks"
"""The package of ours whose name people's own folders have too."""


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
    return importlib.util.find_spec(name) if name.isidentifier() else None  # finders of others may fail at odd names


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


def is_standard_library(path: str) -> bool:
    """Whether a dotted path leads into the standard library.

    Example:
        >>> is_standard_library("os.path.join"), is_standard_library("torch.optim.AdamW")
        (True, False)

    """
    return path.partition(".")[0] in sys.stdlib_module_names


def explain_missing_name(path: str, error: BaseException, is_wanted: Callable[[object], bool]) -> str | None:
    """Return the reason why a dotted path leads nowhere, with names that exist; None if importing its module failed.

    Args:
        path: Dotted path that could not be imported.
        error: What importing it raised.
        is_wanted: Whether a member of the module is of the kind that the path should name.

    """
    module, names = locate_module(path)
    if module is None or (isinstance(error, ModuleNotFoundError) and path.startswith(f"{error.name}.")):
        name = str(error.name) if isinstance(error, ModuleNotFoundError) else path.partition(".")[0]
        closest_name = find_closest_name(name, [file.stem for file in Path().glob("*.py")])
        suggestion = f", but `{closest_name}`" if closest_name else ""
        return f"there is no module `{name}`, in the working directory or installed{suggestion}"
    loaded_module = sys.modules.get(module.name)
    if loaded_module is None or not names or hasattr(loaded_module, names[0]):
        return None
    members = {name: member for name, member in vars(loaded_module).items() if not name.startswith("_")}
    own_names = [name for name, member in members.items() if getattr(member, "__module__", None) == module.name]
    candidates = [name for name in own_names if is_wanted(members[name])]
    closest_name = find_closest_name(names[0], candidates, 0.5)
    candidates.sort(key=lambda name: name != closest_name)
    listing = f", only {', '.join(candidates[:_MAX_LISTED_NAMES])}" if candidates else ""
    return f"the module {module.name} has no `{names[0]}`{listing} ({module.origin})"


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
