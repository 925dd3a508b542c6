"""Errors of the command line for people: which key, what was given, what is allowed, what was probably meant."""

import difflib
import inspect
import itertools
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pydoc import locate
from typing import Any, NoReturn

import yaml
from lightning.pytorch.cli import LightningArgumentParser

Roots = Mapping[str, type]
"""The class behind each top-level key of a configuration."""

LISTED = 20
"""Longest list of what is allowed that is still read."""

_BOILERPLATE = re.compile(r"Expected a <class 'NoneType'>|Not a valid subclass|Expected a path but|Does not validate")


class ReadableParser(LightningArgumentParser):
    """A parser whose errors are one message, not a page of usage."""

    roots: typing.ClassVar[Roots] = {}
    given: typing.ClassVar[dict[str, Any]] = {}  # read before parsing: while it parses, the working directory changes

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print what is wrong and how to repair it, and leave with status 2."""
        print(f"error: {readable(message, self.given, self.roots, list(self._options()))}", file=sys.stderr)
        sys.exit(2)

    def _options(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings
            for sub in action.choices.values() if isinstance(action.choices, dict) else ():
                yield from (option for nested in sub._actions for option in nested.option_strings)


def readable(message: str, given: Mapping[str, Any], roots: Roots, options: Sequence[str]) -> str:
    """Say in one sentence or two what a parser's message means.

    Args:
        message: as jsonargparse wrote it.
        given: the configuration files, merged.
        roots: the class behind each top-level key.
        options: that the command line knows.

    """
    if found := re.search(r"(?:Option|option) '([\w.]+)'", message):
        return _unknown_key(found[1], given, roots)
    if found := re.search(r"unrecognized arguments: (\S+)", message):
        name = found[1].partition("=")[0]
        return f"{name}: no such option.{_meant(name, options)}"
    key = found[1] if (found := re.search(r'Parser key "([\w.]+)"', message)) else ""
    if found := re.search(
        r"(?:Expected a dot import path string: |has no attribute ['\"]|No module named ')([\w.]+)", message
    ):
        return _unknown_class(key, found[1], given, roots)
    if found := re.search(r"Expected an? (?:<class ')?([^.\n]+?)'?>?\. Got value: (.*)", message):
        return f"{key}: expected {found[1]}, got {found[2]!r}."
    return _essence(key, message)


def _essence(key: str, message: str) -> str:
    """Keep the lines that say something: the message of an operator's own ValueError, above all."""
    lines = [line.strip().removeprefix("- ") for line in message.splitlines() if not _BOILERPLATE.search(line)]
    errors = lines[lines.index("Errors:") + 1 :] if "Errors:" in lines else lines
    kept = [line for line in errors if line and not line.startswith(("Given value", "Subtypes", "Parser key"))]
    kept = kept or [re.sub(r"\s+", " ", message)]
    return f"{key}: {kept[0]}" if key and not kept[0].startswith("Parser key") else kept[0]


def _unknown_key(name: str, given: Mapping[str, Any], roots: Roots) -> str:
    parts = tuple(name.split("."))
    leaf = parts[-1]
    path = next((path for path in _paths(given) if path[-len(parts) :] == parts), parts)
    owner = _class_at(path[:-1], given, roots)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if owner is None:
        return f"{path[0]}: no such key.{_meant(str(path[0]), list(roots))}"
    allowed = _parameters(owner)
    listed = f" It accepts {', '.join(allowed)}." if len(allowed) <= LISTED else ""
    return f"{where}: {owner.__name__} has no parameter `{leaf}`.{_meant(leaf, allowed)}{listed}"


def _unknown_class(key: str, name: str, given: Mapping[str, Any], roots: Roots) -> str:
    base = _class_at(tuple(key.split(".")), {}, roots)
    known = sorted({cls.__name__ for cls in _subclasses(base) if _ours(cls)}) if base else []
    listed = f" Known here: {', '.join(known)}; any other class by its dotted path." if known else ""
    return f"{key}: no class `{name}`.{_meant(name, known)}{listed}"


def _ours(cls: type) -> bool:
    """Offer what people put into configurations, not every class that happens to be imported."""
    rooms = ("callbacks.", "rlcredit.losses", "rlcredit.tasks.", "torch.optim.")
    hidden = cls.__name__.startswith("_") or cls.__module__ in ("callbacks.base", "torch.optim.swa_utils")
    return cls.__module__.startswith(rooms) and not hidden


def _meant(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean `{close[0]}`?" if close else ""


def _paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every key in a configuration."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _class_at(path: Sequence[str | int], given: Any, roots: Roots) -> type | None:
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
    matches = [cls for cls in _subclasses(base) if cls.__name__ == name]
    return matches[0] if matches else found if isinstance(found := locate(name or ""), type) else base


def _subclasses(base: type) -> Iterator[type]:
    for cls in type.__subclasses__(base):
        yield cls
        yield from _subclasses(cls)


def _parameters(cls: type) -> list[str]:
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
    """Read the configuration files named on a command line, later over earlier; lists replace."""
    merged: dict[str, Any] = {}
    names = [value for flag, value in itertools.pairwise(args) if flag in ("-c", "--config")]
    for name in [*names, *(arg.partition("=")[2] for arg in args if arg.startswith("--config="))]:
        try:
            with open(name, encoding="utf-8") as file:
                _merge(merged, yaml.safe_load(file) or {})
        except (OSError, yaml.YAMLError):
            continue
    return merged


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
