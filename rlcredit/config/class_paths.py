"""Which classes and functions a configuration may name; none of them is called before its place accepts it."""

import contextlib
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonargparse

from rlcredit.config.error_messages import REFUSAL_MARK, describe_exception
from rlcredit.config.jsonargparse_patches import patch_written_class_paths
from rlcredit.config.module_source import CALLBACKS_PACKAGE, explain_missing_name, is_standard_library, locate_module

_STANDARD_REASON = "is Python's own; there is no operator, task, loss, optimizer, scheduler or logger in its library."


class ClassPathError(ImportError, ValueError):
    """A path that no place of a configuration accepts; parsers catch the one base or the other."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{REFUSAL_MARK}`{path}` {reason}")


def patch_jsonargparse() -> None:
    """Have jsonargparse import nothing of Python's own library, and make no class where anything is accepted.

    It writes the class paths that rlcredit documents.
    """
    jsonargparse.set_parsing_settings(
        instantiate_subclass_spec_in_any=False, import_path_denylist=sorted(sys.stdlib_module_names)
    )
    patch_written_class_paths()


def import_class_path(path: Any) -> Any:
    """Import what a configuration names.

    Raises:
        ClassPathError: it is Python's own, or cannot be imported.

    """
    if is_standard_library(path):
        raise ClassPathError(path, _STANDARD_REASON)
    module, _, name = path.rpartition(".")
    try:
        member = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # the module is somebody else's, and its code may raise anything
        raise ClassPathError(path, _explain_failed_import(path, error)) from error
    if is_standard_library(getattr(member, "__module__", None) or type(member).__module__):
        raise ClassPathError(path, _STANDARD_REASON)
    return member


def is_dotted_path(path: Any) -> bool:
    """Whether a value may be the dotted path of a class or function."""
    return isinstance(path, str) and "." in path and all(part.isidentifier() for part in path.split("."))


def _explain_failed_import(path: str, error: BaseException) -> str:
    """Say why a dotted path leads nowhere: no such module, nothing of that name in it, or what its import raises."""
    module, _ = locate_module(path)
    if (
        module is not None
        and module.name == CALLBACKS_PACKAGE
        and (obstacle := _find_shadowed_callbacks(sys.modules[CALLBACKS_PACKAGE]))
    ):
        return f"is looked for in rlcredit's own package `{CALLBACKS_PACKAGE}`. Rename {obstacle}."
    return f"cannot be imported: {explain_missing_name(path, error, inspect.isclass) or describe_exception(error)}."


def _find_shadowed_callbacks(ours: types.ModuleType) -> Path | None:
    """Return the folder or module of the same name in the working directory, if it is not ours."""
    candidates = (Path.cwd() / CALLBACKS_PACKAGE, Path.cwd() / f"{CALLBACKS_PACKAGE}.py")
    return next((path for path in candidates if path.exists() and not path.samefile(ours.__path__[0])), None)


def instantiate_described_class(description: Any, base: type, key: str) -> Any:
    """Return the object that a class and its arguments describe, as a configuration has them.

    Args:
        description: Mapping with ``class_path`` and perhaps ``init_args``.
        base: Class that it must be of.
        key: Name of the place, for messages.

    Raises:
        ArgumentError: it is no such description.
        ValueError: it names something else than a class of this base.

    """
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(base, key)
    config = parser.parse_object({key: description})
    refuse_misplaced_class(config[key], base, key)
    return parser.instantiate_classes(config)[key]


def refuse_misplaced_class(config: Any, hint: Any, key: str = "") -> None:
    """Refuse what a parser accepts and would call: a function, or any class in a place for callables.

    Args:
        config: Configuration as it was read or parsed, not instantiated; what it names is imported.
        hint: Type of the place; for a group of arguments, their class.
        key: Dotted key of the place.

    Raises:
        ValueError: names the place and what it accepts.

    """
    if isinstance(config, list):
        for place, value in enumerate(config):
            refuse_misplaced_class(value, hint, f"{key}[{place}]")
    bases = tuple(find_hint_classes(hint))
    is_path = is_dotted_path(config) and find_expected_classes(hint)
    mapping = {"class_path": config} if is_path else _view_as_mapping(config)
    owner, arguments, inner_key = next(iter(bases), None), mapping, key
    if isinstance(path := mapping.get("class_path"), str):
        owner = _load_class_or_function(path, bases, key)
        if owner is None:
            return  # a name that no class has, which a parser refuses
        _refuse_wrong_class(path, owner, bases, key)
        inner_key = f"{key}.init_args"
    if "class_path" in mapping or "init_args" in mapping:
        arguments = {**_view_as_mapping(mapping.get("init_args")), **_view_as_mapping(mapping.get("dict_kwargs"))}
    hints = collect_argument_hints(owner)
    for name, value in arguments.items():
        if (inner := hints.get(name, hint if owner is None else Any)) is not Any:  # there, mappings stay mappings
            refuse_misplaced_class(value, inner, f"{inner_key}.{name}")


def _load_class_or_function(path: str, bases: Sequence[type], key: str) -> Any:
    """Return the class or function of a class path; None for a short name that no class has."""
    if not is_dotted_path(path):
        return find_named_class(path, bases)
    try:
        return import_class_path(path)
    except ClassPathError as error:
        raise ValueError(f"{key}: {str(error).removeprefix(REFUSAL_MARK)}") from error


def _refuse_wrong_class(path: str, owner: Any, bases: tuple[type, ...], key: str) -> None:
    """Hold a class, or what a function says it returns, against the types of its place."""
    result = owner if inspect.isclass(owner) else collect_argument_hints(owner).get("return")
    if not any(issubclass(cls, bases) for cls in find_hint_classes(result)):
        alternatives = " or ".join(dict.fromkeys(f"`{base.__name__}`" for base in bases)) or "class with arguments"
        raise ValueError(
            f"{key}: `{path}` is no {alternatives}, and no function that says it returns one. Name another class."
        )
    if reason := explain_abstract_class(owner, path):
        raise ValueError(f"{key}: {reason}")


def explain_abstract_class(owner: Any, path: str) -> str | None:
    """Return the methods that a class must still define, with the repair; None for a class that has them all.

    Args:
        owner: Class or function.
        path: Name of the class in a configuration.

    """
    members = inspect.getmembers(owner)
    missing_names = [f"`{name}`" for name, member in members if getattr(member, "__isabstractmethod__", False)]
    if not missing_names:
        return None
    return f"the class `{path}` lacks {' and '.join(missing_names)}. Define what it lacks, or name another class."


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


def find_expected_classes(hint: Any) -> tuple[type, ...]:
    """Return the classes of a place; none where a plain text is accepted as well, or for settings by name."""
    if isinstance(hint, Mapping) or str in flatten_union(hint):
        return ()
    return tuple(cls for cls in find_hint_classes(hint) if not is_standard_library(cls.__module__))


def flatten_union(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, those of unions inside it too; the type itself if it is none."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return (hint,)
    return tuple(member for inner in typing.get_args(hint) for member in flatten_union(inner))


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


def load_named_class(name: Any, bases: Sequence[type]) -> type | None:
    """Return the class that a short name or a dotted path means, its module imported if need be; None for no class."""
    cls = find_named_class(name, bases)
    if cls is None and is_dotted_path(name):
        with contextlib.suppress(ClassPathError):
            cls = import_class_path(name)
    return cls if isinstance(cls, type) else None


def explain_failed_class_path(path: str) -> str:
    """Return why a dotted path names no class, with the repair."""
    try:
        member = import_class_path(path)
    except ClassPathError as error:
        return str(error).removeprefix(REFUSAL_MARK)
    return f"`{path}` is a {type(member).__name__}, no class. Name a class."


def find_declaring_class(cls: type, parameter: str) -> type | None:
    """Return the class that an argument belongs to: the nearest of a class and its bases that declares it."""
    declaring = (owner for owner in cls.__mro__ if "__init__" in vars(owner))
    return next((owner for owner in declaring if parameter in inspect.signature(owner.__init__).parameters), None)


def _find_imported_class(path: str) -> type | None:
    """Return the class at a dotted path in a module that is already imported; a message imports nothing."""
    module, _, name = path.rpartition(".")
    member = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return member if isinstance(member, type) else None


def walk_subclasses(base: type) -> Iterator[type]:
    """Yield all imported classes derived from ``base``."""
    for cls in type.__subclasses__(base):
        yield cls
        yield from walk_subclasses(cls)


def is_listed_class(cls: type) -> bool:
    """Whether messages offer a class; configurations of recorded runs may name more."""
    return vars(cls).get("is_listed", True)


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
