"""Which arguments survive where one file names another class than the file before it, and how a class is written."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import jsonargparse._typehints as typehints
import jsonargparse._util as util
from jsonargparse import Namespace

import rlcredit


class _OriginalDiscard:
    """The function that is replaced."""

    plain: Callable[..., None] = staticmethod(typehints.discard_init_args_on_class_path_change)  # pyright: ignore[reportPrivateImportUsage]


def patch_argument_carryover(base: type) -> None:
    """Have arguments of one class carried over to another only where they mean the same.

    jsonargparse carries over whatever the new class has under the same name: ``name: chain_sum`` of one class would be
    the ``name`` of a repository's configuration in another.

    Args:
        base: Base class; classes derived from it are treated so, others as jsonargparse does.

    """

    def discard(parser_or_action: Any, before: Any, now: Any) -> None:
        _OriginalDiscard.plain(parser_or_action, before, now)
        if isinstance(before, Namespace) and "init_args" in before and before["class_path"] != now["class_path"]:
            old, new = (_import_subclass(value["class_path"], base) for value in (before, now))
            for key in list(vars(before.init_args)) if old and new else ():
                if find_declaring_class(old, key) is not find_declaring_class(new, key):
                    before.init_args.pop(key)

    typehints.discard_init_args_on_class_path_change = discard  # pyright: ignore[reportPrivateImportUsage]


def find_declaring_class(cls: type, parameter: str) -> type | None:
    """Return the class that an argument belongs to: the nearest of a class and its bases that declares it."""
    declaring = (each for each in cls.__mro__ if "__init__" in vars(each))
    return next((each for each in declaring if parameter in inspect.signature(each.__init__).parameters), None)


def _import_subclass(path: Any, base: type) -> Any:
    """Return what a class path names, if it is derived from the base."""
    if not isinstance(path, str):
        return None
    try:
        cls = typehints.import_object(typehints.resolve_class_path_by_name(base, path))  # pyright: ignore[reportPrivateImportUsage]
    except (ImportError, ValueError, AttributeError):
        return None  # the parser says so
    return cls if inspect.isclass(cls) and issubclass(cls, base) else None


class _OriginalPaths:
    """The function that is replaced."""

    plain: Callable[[Any], str | None] = staticmethod(util.resolved_import_paths.get)  # pyright: ignore[reportPrivateImportUsage]


def patch_written_class_paths() -> None:
    """Have configurations name a class by the room that it is in, though ``rlcredit`` gives it too.

    jsonargparse writes the shortest path that leads to a class. Saved configurations would change with every name
    that becomes public.
    """
    util.resolved_import_paths.get = lambda instance: _OriginalPaths.plain(instance) or find_path_in_room(instance)


def find_path_in_room(value: Any) -> str | None:
    """Return the shortest path to a public class of rlcredit that begins with a room; None for anything else.

    Example:
        >>> from rlcredit import ReasoningGym, Sampling
        >>> find_path_in_room(ReasoningGym), find_path_in_room(Sampling), find_path_in_room(dict)
        ('rlcredit.tasks.ReasoningGym', 'rlcredit.decoding.sampling.Sampling', None)

    """
    if not (inspect.isclass(value) and value.__module__.startswith("rlcredit.") and value.__name__ in rlcredit.__all__):
        return None
    parts = value.__module__.split(".")
    places = (".".join(parts[:depth]) for depth in range(2, len(parts) + 1))
    return next(
        f"{place}.{value.__name__}"
        for place in places
        if getattr(importlib.import_module(place), value.__name__, None) is value
    )
