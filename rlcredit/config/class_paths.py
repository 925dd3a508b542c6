"""Which classes and functions a configuration may name; what it may not is refused before its code runs."""

import ast
import contextlib
import difflib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonargparse

from rlcredit.config.error_messages import MARK, describe_exception
from rlcredit.config.jsonargparse_patches import (
    import_unchecked,
    patch_call_form,
    patch_class_import,
    patch_written_class_paths,
)
from rlcredit.config.module_source import (
    CALLBACKS,
    find_definition,
    find_syntax_problem,
    has_only_python_bases,
    is_standard_library,
    list_class_names,
    locate_module,
)

STANDARD = "is Python's own; there is no operator, task, loss, optimizer, scheduler or logger in its library."


MOST = 20
"""Classes of a module that a message lists."""


class ClassPathError(ImportError, ValueError):
    """A path that no place of a configuration accepts; parsers catch the one base or the other."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{MARK}`{path}` {reason}")


def patch_jsonargparse() -> None:
    """Have every class path checked before jsonargparse imports it, however it was written, in call form too.

    Raises:
        ValueError: this version of jsonargparse imports by another function.

    """
    patch_class_import(import_class_path)
    patch_call_form()
    patch_written_class_paths()


def import_class_path(path: Any, *args: Any, **kwargs: Any) -> Any:
    """Import what a configuration names, unless it is refused."""
    refuse_invalid_class_path(path)
    try:
        obj = import_unchecked(path, *args, **kwargs)
    except (Exception, SystemExit) as error:  # the module is somebody else's, and its code may raise anything
        if not _is_dotted_path(path):
            raise
        raise ClassPathError(path, _explain_failed_import(path, error)) from error
    if is_standard_library(getattr(obj, "__module__", None) or type(obj).__module__):
        raise ClassPathError(path, STANDARD)
    return obj


def refuse_invalid_class_path(path: Any) -> None:
    """Refuse a dotted path that cannot name what a configuration describes; nothing is imported for this check.

    Args:
        path: Path as it was written; one that is no dotted path is left to the parser.

    Raises:
        ClassPathError: it is Python's own, or the source says that there is no such class or annotated function.

    """
    if not _is_dotted_path(path):
        return
    if is_standard_library(path):
        raise ClassPathError(path, STANDARD)
    module, rest = locate_module(path)
    if module is None or module.name in sys.modules:
        return
    if problem := find_syntax_problem(module):
        raise ClassPathError(path, f"cannot be imported: {problem}.")
    if len(rest) != 1:
        raise ClassPathError(path, "is no class or function at the top of a module.")
    if (resolved := find_definition(module, rest[0])) is None:
        known = _suggest_classes(rest[0], list_class_names(module))
        raise ClassPathError(path, f"is neither a class nor a function in the source of {module.name}.{known}")
    where, node = resolved
    if isinstance(node, ast.ClassDef) and has_only_python_bases(where, node):
        raise ClassPathError(path, "is derived from nothing that a configuration describes.")
    if isinstance(node, ast.FunctionDef) and node.returns is None:
        raise ClassPathError(path, "is a function that does not say what it returns. Annotate it.")


def _is_dotted_path(path: Any) -> bool:
    return isinstance(path, str) and "." in path and all(part.isidentifier() for part in path.split("."))


def _explain_failed_import(path: str, error: BaseException) -> str:
    """Say why a dotted path leads nowhere: no such module, nothing of that name in it, or what its import raises."""
    module, rest = locate_module(path)
    if module is None or (isinstance(error, ModuleNotFoundError) and path.startswith(f"{error.name}.")):
        name = str(error.name) if isinstance(error, ModuleNotFoundError) else path.partition(".")[0]
        return f"cannot be imported: there is no module `{name}`, in the working directory or installed."
    known = sys.modules.get(module.name)
    if known is None or not rest or hasattr(known, rest[0]):
        return f"cannot be imported: {describe_exception(error)}."
    if module.name == CALLBACKS and (beside := _find_shadowed_callbacks(known)):
        return f"is looked for in rlcredit's own package `{CALLBACKS}`. Rename {beside}."
    classes = [
        name for name, value in vars(known).items() if inspect.isclass(value) and value.__module__ == module.name
    ]
    return f"is nothing that the module {module.name} has ({module.origin}).{_suggest_classes(rest[0], classes)}"


def _find_shadowed_callbacks(ours: types.ModuleType) -> Path | None:
    """Return the folder or module of the same name in the working directory, if it is not ours."""
    candidates = (Path.cwd() / CALLBACKS, Path.cwd() / f"{CALLBACKS}.py")
    return next((path for path in candidates if path.exists() and not path.samefile(ours.__path__[0])), None)


def _suggest_classes(name: str, classes: Sequence[str]) -> str:
    """Name the classes of a module, the one that was meant first."""
    public = [each for each in classes if not each.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1, cutoff=0.5)
    meant = f" Did you mean `{close[0]}`?" if close else ""
    return f"{meant} Its classes: {', '.join(public[:MOST])}." if public else meant


def instantiate_described_class(described: Any, base: type, key: str) -> Any:
    """Return the object that a class and its arguments describe, as a configuration has them.

    Args:
        described: Mapping with ``class_path`` and perhaps ``init_args``.
        base: Class that it must be of.
        key: Name of the place, for messages.

    Raises:
        ArgumentError: it is no such description.
        ValueError: it names something else than a class of this base.

    """
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(base, key)
    config = parser.parse_object({key: described})
    refuse_misplaced_class(config[key], base, key)
    return parser.instantiate_classes(config)[key]


def refuse_misplaced_class(config: Any, hint: Any, key: str = "") -> None:
    """Refuse what a parser accepts and would call: a function, or any class in a place for callables.

    Args:
        config: Configuration, parsed and not instantiated; what it names has been imported.
        hint: Type of the place; for a group of arguments, their class.
        key: Dotted key of the place.

    Raises:
        ValueError: names the place and what it accepts.

    """
    if isinstance(config, list):
        for place, value in enumerate(config):
            refuse_misplaced_class(value, hint, f"{key}[{place}]")
    mapping = _view_as_mapping(config)
    owner, arguments, inside = next(find_hint_classes(hint), None), mapping, key
    if isinstance(path := mapping.get("class_path"), str):
        owner = import_unchecked(path)
        _refuse_wrong_class(path, owner, tuple(find_hint_classes(hint)), key)
        inside = f"{key}.init_args"
        arguments = {**_view_as_mapping(mapping.get("init_args")), **_view_as_mapping(mapping.get("dict_kwargs"))}
    hints = collect_argument_hints(owner)
    for name, value in arguments.items():
        if (inner := hints.get(name, hint if owner is None else Any)) is not Any:  # there, mappings stay mappings
            refuse_misplaced_class(value, inner, f"{inside}.{name}")


def _refuse_wrong_class(path: str, owner: Any, bases: tuple[type, ...], key: str) -> None:
    """Hold a class, or what a function says it returns, against the types of its place."""
    result = owner if inspect.isclass(owner) else collect_argument_hints(owner).get("return")
    if not any(issubclass(cls, bases) for cls in find_hint_classes(result)):
        wanted = " or ".join(base.__name__ for base in bases) or "no class with arguments"
        raise ValueError(f"{key}: `{path}` is not what this place accepts: {wanted}.")


def _view_as_mapping(config: Any) -> Mapping[str, Any]:
    mapping = vars(config) if isinstance(config, jsonargparse.Namespace) else config
    return mapping if isinstance(mapping, Mapping) else {}


def collect_argument_hints(owner: Any) -> dict[str, Any]:
    """Return the types of the arguments of a class, its bases' among them, or of a function."""
    inits = [cls.__init__ for cls in reversed(owner.__mro__)] if inspect.isclass(owner) else [owner] if owner else []
    hints: dict[str, Any] = {}
    for init in inits:
        with contextlib.suppress(NameError, TypeError):
            hints.update(typing.get_type_hints(init))
    return hints


def find_hint_classes(hint: Any) -> Iterator[type]:
    """Yield the classes that a place accepts: inside unions and lists, and what a callable returns."""
    arguments = typing.get_args(hint)
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        yield from () if hint.__module__ == "builtins" else (hint,)
    elif typing.get_origin(hint) is Callable:
        yield from find_hint_classes(arguments[-1]) if arguments else ()
    else:
        for argument in arguments:
            yield from find_hint_classes(argument)


def find_named_class(name: Any, bases: Sequence[type]) -> type | None:
    """Return the class that a short name or a dotted path means; None unless its module has been imported.

    Args:
        name: Name as it was written; anything but a text names no class.
        bases: Classes one of which a short name is derived from.

    """
    if not isinstance(name, str):
        return None
    short = (cls for base in bases for cls in walk_subclasses(base) if cls.__name__ == name)
    return next(short, None) or _find_imported_class(name)


def _find_imported_class(path: str) -> type | None:
    """Return the class at a dotted path in a module that is already imported; a message imports nothing."""
    module, _, name = path.rpartition(".")
    named = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return named if isinstance(named, type) else None


def walk_subclasses(base: type) -> Iterator[type]:
    """Yield all imported classes derived from ``base``."""
    for cls in type.__subclasses__(base):
        yield cls
        yield from walk_subclasses(cls)


def list_parameter_names(cls: type) -> list[str]:
    """Return the parameters of a class, including those passed on to its bases."""
    names: dict[str, None] = {}
    for owner in cls.__mro__:
        parameters = inspect.signature(owner.__init__).parameters.values() if "__init__" in vars(owner) else []
        names.update(
            {
                p.name: None
                for p in parameters
                if p.name not in ("self", "params") and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            }
        )
        if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return list(names)
