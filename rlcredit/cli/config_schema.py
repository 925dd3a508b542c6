"""The schema of a configuration: the class at each key, and the values that it accepts."""

import contextlib
import functools
import itertools
import operator
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.config.class_paths import find_named_class
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.strict_yaml import UnreadableError, parse_yaml, read_yaml, shorten_name

Roots = Mapping[str, type]
"""The class behind each top-level key of a configuration."""


def walk_key_paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every key in a configuration."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from walk_key_paths(value, (*path, key))


def find_class_at(path: Sequence[str | int], config: Any, roots: Roots) -> type | None:
    """Return the class at a place in a configuration: by its ``class_path``, else by its type."""
    if not path or path[0] not in roots:
        return None
    cls, node = roots[str(path[0])], config.get(path[0], {})
    cls = _find_node_class(node, cls)
    for part in path[1:]:
        node = _enter_node(node, part)
        if part != "init_args" and not isinstance(part, int):
            cls = _find_first_class(_read_init_hints(cls).get(str(part)))
        if cls is None:
            return None
        cls = _find_node_class(node, cls)
    return cls


def find_value_at(path: Sequence[str | int], config: Any) -> Any:
    """Return the value at a place in a configuration; None if there is none."""
    return functools.reduce(lambda node, part: _enter_node(node, part) if node is not None else None, path, config)


def describe_allowed_values(path: Sequence[str | int], config: Any, roots: Roots) -> str | None:
    """Describe the values that a place accepts, if they are few words or a number; None for a class, list or mapping.

    Args:
        path: Keys and indices that lead to the place.
        config: Content of the configuration files, merged.
        roots: Class behind each top-level key.

    """
    owner = find_class_at(path[:-1], config, roots)
    hint = None if owner is None or owner.__module__ == "builtins" else _read_init_hints(owner).get(str(path[-1]))
    found: dict[str, None] = {}
    for part in _flatten_union(hint):
        if typing.get_origin(part) is typing.Literal:
            found |= dict.fromkeys(map(str, typing.get_args(part)))
        elif part in (float, int):
            found["a number" if part is float else "a whole number"] = None
        elif part is not types.NoneType and getattr(part, "__name__", "") != "Tensor":
            return None
    names = [name for name in found if name != "a whole number" or "a number" not in found]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names) or None


def _flatten_union(hint: Any) -> Iterator[Any]:
    """Yield the members of a union, including those of nested unions; the type itself if it is no union."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for inner in typing.get_args(hint):
            yield from _flatten_union(inner)
    else:
        yield hint


def _enter_node(node: Any, part: str | int) -> Any:
    if isinstance(node, list) and isinstance(part, int):
        return node[part]
    return node.get(part, {}) if isinstance(node, dict) else {}


def _find_node_class(node: Any, base: type) -> type:
    named = find_named_class(node.get("class_path") if isinstance(node, dict) else node, (base,))
    return base if named is None else named


def _read_init_hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls.__init__)


def _find_first_class(hint: Any) -> type | None:
    """Return the first class inside unions, lists and callables that a configuration can describe."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return hint if hint is not types.NoneType else None
    for inner in (
        reversed(typing.get_args(hint)) if typing.get_origin(hint) is not typing.Union else typing.get_args(hint)
    ):
        for candidate in inner if isinstance(inner, list) else [inner]:
            if (cls := _find_first_class(candidate)) is not None:
                return cls
    return None


def merge_configs(args: Sequence[str], roots: Roots) -> dict[str, Any]:
    """Read what a command line configures: files and flags, later over earlier; lists replace, ``key+`` appends.

    Args:
        args: Arguments of the command line.
        roots: Class behind each top-level key; where there is none, call forms are not expanded.

    Raises:
        ValueError: a file that cannot be read as one.

    """
    merged: dict[str, Any] = {}
    for flag, value in itertools.pairwise([*split_flags_from_values(args), ""]):
        if flag in ("-c", "--config"):
            _merge_in_place(merged, expand_call_forms(_read_config_source(value), roots))
        elif flag.startswith("--"):
            nested = _read_flag_value(value)
            for part in reversed(flag.removeprefix("--").split(".")):
                nested = {part: nested}
            _merge_in_place(merged, expand_call_forms(nested, roots))
    return merged


def _read_flag_value(value: str) -> Any:
    """Return the list or mapping that a flag gives; every other value stays a text."""
    with contextlib.suppress(UnreadableError):
        return parse_yaml(value) if value.startswith(("[", "{")) else value
    return value


def _read_config_source(source: str) -> dict[str, Any]:
    """Return the content of a file, or of the text given in its place."""
    if not source.strip():
        raise ValueError("--config: its value is missing. Name a file, as `--config configs/tiny.yaml`.")
    inline = source.lstrip().startswith("{") or "\n" in source
    content = parse_yaml(source, "--config") if inline else read_yaml(Path(source))
    if content is None:
        raise ValueError(f"{shorten_name(source)}: is empty. Write what it is to change, such as `threads: 2`.")
    if not isinstance(content, dict):
        kind = {list: "a list", str: "a text"}.get(type(content), repr(content))
        raise ValueError(
            f"{shorten_name(source)}: a configuration is a mapping of keys, got {kind}. Write `key: value` lines."
        )
    for path in walk_key_paths(content):
        if isinstance(value := _read_existing_value(content, path), str) and "\0" in value:
            where = ".".join(map(str, path))
            raise ValueError(
                f"{shorten_name(source)}: {where}: contains a null byte, which no name or path may. Remove it."
            )
        if not isinstance(path[-1], str) and isinstance(_read_existing_value(content, path[:-1]), dict):
            where = ".".join(map(str, path))
            raise ValueError(
                f"{shorten_name(source)}: {where}: keys must be texts, got {path[-1]!r}. Put quotes around it."
            )
    return content


def _read_existing_value(node: Any, path: Sequence[str | int]) -> Any:
    return functools.reduce(operator.getitem, path, node)


def split_flags_from_values(args: Sequence[str]) -> list[str]:
    """Return a command line with each flag separated from its value.

    Example:
        >>> split_flags_from_values(["fit", "--threads=2"])
        ['fit', '--threads', '2']

    """
    parts = [arg.partition("=") if arg.startswith("--") else (arg, "", "") for arg in args]
    return [word for flag, equals, value in parts for word in ((flag, value) if equals else (flag,))]


def _merge_in_place(into: dict[str, Any], update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        name = str(key).removesuffix("+")
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge_in_place(into[name], value)
        elif name != key and isinstance(into.get(name), list):
            into[name] = into[name] + (value if isinstance(value, list) else [value])
        elif not isinstance(into.get(name), list) or not isinstance(value, str):
            into[name] = value
