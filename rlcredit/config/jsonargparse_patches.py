"""All that rlcredit replaces in jsonargparse, or reads of it beyond its public interface.

Written for jsonargparse 4.53. Every entry says what it changes, and what breaks without it; another version may break
each of them, and ``tests/rlcredit/config/test_jsonargparse_patches.py`` says which.
"""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jsonargparse
import jsonargparse._typehints as typehints
import jsonargparse._util as util
from jsonargparse import ArgumentParser, Namespace, get_loader, set_loader
from yaml import YAMLError

import rlcredit
from rlcredit.config.call_form import CallFormError, expand_call_form
from rlcredit.config.error_messages import MARK


class _Originals:
    """What jsonargparse itself does where something is replaced."""

    import_object: Callable[..., Any] = staticmethod(typehints.import_object)  # pyright: ignore[reportPrivateImportUsage]
    discard: Callable[..., None] = staticmethod(typehints.discard_init_args_on_class_path_change)  # pyright: ignore[reportPrivateImportUsage]
    find_import_path: Callable[[Any], str | None] = staticmethod(util.resolved_import_paths.get)  # pyright: ignore[reportPrivateImportUsage]
    adapt_path: Callable[..., Any] = staticmethod(typehints.adapt_subconfig_path)  # pyright: ignore[reportPrivateImportUsage]
    load_yaml: Callable[[str], Any] = staticmethod(get_loader("yaml"))


def import_unchecked(path: str, *args: Any, **kwargs: Any) -> Any:
    """Import what a dotted path names as jsonargparse does."""
    return _Originals.import_object(path, *args, **kwargs)


def patch_class_import(import_checked: Callable[..., Any]) -> None:
    """Have another function import everything that a configuration names.

    Without it a configuration runs code of every module it names before anything can refuse it. A mapping
    where anything is accepted stays a mapping, even one with a ``class_path``.

    Args:
        import_checked: Function that imports what a path names or raises a ValueError.

    Raises:
        ValueError: this version of jsonargparse imports by another function.

    """
    jsonargparse.set_parsing_settings(instantiate_subclass_spec_in_any=False)
    typehints.import_object = import_checked  # pyright: ignore[reportPrivateImportUsage]
    _refuse_unpatched_import()


@functools.cache
def _refuse_unpatched_import() -> None:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--named", type=Callable)
    try:
        parser.parse_object({"named": "os.getcwd"})
    except jsonargparse.ArgumentError:
        return
    raise ValueError(
        f"jsonargparse {jsonargparse.__version__} imports what a configuration names without asking rlcredit first. "
        "Install the version that pyproject.toml asks for: pip install 'jsonargparse[signatures]>=4.53,<4.54'."
    )


def patch_yaml_loader(check: Callable[[str], None], error: type[ValueError]) -> None:
    """Have a function check every YAML text before it is read, files inside files and values of flags included.

    Without it a key given twice replaces the first silently, and a text that grows when it is read fills the memory.

    Args:
        check: Function that raises an error for a text that is refused.
        error: Class of these errors.

    """

    def load(text: str) -> Any:
        check(text)
        return _strip_class_paths(_Originals.load_yaml(text))

    set_loader("yaml", load, exceptions=(YAMLError, error))


def _strip_class_paths(node: Any) -> Any:
    """Return the content of a configuration without blanks around the class paths in it."""
    if isinstance(node, list):
        return [_strip_class_paths(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value.strip() if key == "class_path" and isinstance(value, str) else _strip_class_paths(value)
        for key, value in node.items()
    }


def patch_call_form() -> None:
    """Have an entry in call form read as a class with its arguments wherever a class is expected, blanks left out.

    jsonargparse asks there whether a text is the path of a file. Without this ``GTPO(beta=0.2)`` is no class.
    """

    def adapt(value: Any, typehint: Any, adapt_kwargs: dict[str, Any]) -> Any:
        try:
            expanded = expand_call_form(value.strip()) if isinstance(value, str) else value
        except CallFormError as error:
            raise ValueError(f"{MARK}{error}") from None
        if expanded == value:
            return _Originals.adapt_path(value, typehint, adapt_kwargs)
        return typehints.adapt_typehints(expanded, typehint, **adapt_kwargs)  # pyright: ignore[reportPrivateImportUsage]

    typehints.adapt_subconfig_path = adapt  # pyright: ignore[reportPrivateImportUsage]


def patch_argument_carryover(base: type) -> None:
    """Have arguments of one class carried over to another only where they mean the same.

    jsonargparse carries over whatever the new class has under the same name; without this ``name: chain_sum`` of one
    task becomes the ``name`` of a repository's configuration in another.

    Args:
        base: Base class; classes derived from it are treated so, others as jsonargparse does.

    """

    def discard(parser_or_action: Any, before: Any, now: Any) -> None:
        _Originals.discard(parser_or_action, before, now)
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


def patch_written_class_paths() -> None:
    """Have configurations name a class by the room that it is in, though ``rlcredit`` gives it too.

    jsonargparse writes the shortest path that leads to a class; without this saved configurations change with every
    name that becomes public.
    """
    util.resolved_import_paths.get = lambda instance: (
        _Originals.find_import_path(instance) or find_path_in_room(instance)
    )


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


def list_options(parser: Any) -> Iterator[str]:
    """Yield the options of a parser and of its subcommands; without it no message could suggest a misspelt one."""
    for action in parser._actions:
        yield from action.option_strings
        for sub in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from (option for nested in sub._actions for option in nested.option_strings)
