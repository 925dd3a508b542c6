"""What a configuration describes: the class behind each of its places, and what that class accepts."""

import contextlib
import inspect
import itertools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pydoc import locate
from typing import Any

import yaml

Roots = Mapping[str, type]
"""The class behind each top-level key of a configuration."""


def paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every key in a configuration."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths(value, (*path, key))


def class_at(path: Sequence[str | int], given: Any, roots: Roots) -> type | None:
    """Return the class that a place in a configuration describes: by its ``class_path``, else by its type."""
    if not path or path[0] not in roots:
        return None
    cls, node = roots[str(path[0])], given.get(path[0], {})
    cls = _named(node, cls)
    for part in path[1:]:
        node = _inside(node, part)
        if part != "init_args" and not isinstance(part, int):
            cls = _first_class(_hints(cls).get(str(part)))
        if cls is None:
            return None
        cls = _named(node, cls)
    return cls


def _inside(node: Any, part: str | int) -> Any:
    if isinstance(node, list) and isinstance(part, int):
        return node[part]
    return node.get(part, {}) if isinstance(node, dict) else {}


def _named(node: Any, base: type) -> type:
    name = node if isinstance(node, str) else node.get("class_path") if isinstance(node, dict) else None
    matches = [cls for cls in subclasses(base) if cls.__name__ == name]
    return matches[0] if matches else found if isinstance(found := locate(name or ""), type) else base


def subclasses(base: type) -> Iterator[type]:
    """Yield every class derived from ``base`` that has been imported."""
    for cls in type.__subclasses__(base):
        yield cls
        yield from subclasses(cls)


def parameters(cls: type) -> list[str]:
    """Return the parameters of a class, those it passes on to its bases included."""
    names: dict[str, None] = {}
    for owner in cls.__mro__:
        own = inspect.signature(owner.__init__).parameters.values() if "__init__" in vars(owner) else []
        names.update(
            {
                p.name: None
                for p in own
                if p.name not in ("self", "params") and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            }
        )
        if own and not any(p.kind is p.VAR_KEYWORD for p in own):
            break
    return list(names)


def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls.__init__)


def _first_class(hint: Any) -> type | None:
    """Return the first class inside unions, lists and callables that configurations can describe."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return hint if hint is not types.NoneType else None
    for inner in (
        reversed(typing.get_args(hint)) if typing.get_origin(hint) is not typing.Union else typing.get_args(hint)
    ):
        for candidate in inner if isinstance(inner, list) else [inner]:
            if (found := _first_class(candidate)) is not None:
                return found
    return None


def merged_configs(args: Sequence[str]) -> dict[str, Any]:
    """Read what a command line configures: files and flags, later over earlier; lists replace, ``key+`` appends."""
    merged: dict[str, Any] = {}
    words = list(itertools.chain.from_iterable(_flag_and_value(arg) for arg in args))
    for flag, value in itertools.pairwise([*words, ""]):
        if flag in ("-c", "--config"):
            with contextlib.suppress(OSError, yaml.YAMLError):
                content = yaml.safe_load(Path(value).read_text(encoding="utf-8"))
                _merge(merged, content if isinstance(content, dict) else {})
        elif flag.startswith("--") and "." in flag:
            nested: Any = value
            for part in reversed(flag.removeprefix("--").rstrip("+").split(".")):
                nested = {part: nested}
            _merge(merged, nested)
    return merged


def _flag_and_value(arg: str) -> list[str]:
    flag, equals, value = arg.partition("=")
    return [flag, value] if arg.startswith("--") and equals else [arg]


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        name = str(key).removesuffix("+")
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        elif name != key and isinstance(into.get(name), list):
            into[name] = into[name] + (value if isinstance(value, list) else [value])
        elif not isinstance(into.get(name), list) or not isinstance(value, str):
            into[name] = value
