"""Suggestions for misspelt keys, found by following their path from the top of a configuration."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlcredit.cli.config_schema import Roots, find_class_at
from rlcredit.config.class_paths import list_parameter_names
from rlcredit.config.module_source import is_standard_library

Names = tuple[str | int, ...]
"""Where something lies in a configuration: keys of mappings and places in lists."""

ENTRY = ("class_path", "init_args", "dict_kwargs")
"""The keys of a class with its arguments."""


class UnknownName(NamedTuple):
    """The first unknown name on a path.

    Attributes:
        place: Position of the name on the path.
        owner: Class that does not know the name; None at the top of a configuration.
        known: Names that would be accepted there.

    """

    place: int
    owner: type | None
    known: Sequence[str]


def find_closest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the most similar name, ignoring case; None if no name is similar.

    Example:
        >>> find_closest_name("samplng", ["scheduler", "sampling"]), find_closest_name("gtpo", ["GTPO"])
        ('sampling', 'GTPO')
        >>> find_closest_name("x", ["sampling"]) is None
        True

    """
    if name in known:
        return name
    lowered = {each.lower(): each for each in known}
    return next((lowered[each] for each in difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)), None)


def find_unknown_name(path: Names, config: Any, roots: Roots) -> UnknownName | None:
    """Return the first unknown name on a path; None if all are known or any name is allowed."""
    for place, part in enumerate(path):
        owner = find_class_at(path[:place], config, roots)
        known = _list_known_names(path[:place], owner, roots)
        if known is None:
            return None
        if isinstance(part, str) and part not in known:
            return UnknownName(place, owner, known)
    return None


def repair_path(path: Names, config: Any, roots: Roots) -> Names | None:
    """Return a path with its misspelt names corrected, as far as names are known.

    Args:
        path: Path as it was written.
        config: Content of the configuration files, merged.
        roots: Class behind each top-level key.

    Example:
        >>> class Sampling:
        ...     def __init__(self, completions: int) -> None: ...
        >>> repair_path(("sampler", "completion"), {}, {"sampling": Sampling})
        ('sampling', 'completions')

    """
    corrected = path
    while slip := find_unknown_name(corrected, config, roots):
        name = find_closest_name(str(corrected[slip.place]), slip.known)
        if name is None:
            corrected = corrected[: slip.place]
            break
        corrected = (*corrected[: slip.place], name, *corrected[slip.place + 1 :])
    return corrected if corrected and corrected != path[: len(corrected)] else None


MOST = 3
"""Places of one name that are suggested; a name that more places have says nothing."""

DEEPEST = 4
"""Classes inside of classes, as in model.policy.lora."""


def find_places_of_name(name: str, config: Any, roots: Roots) -> list[Names]:
    """Return the shortest paths that have a parameter of exactly this name, if there are few.

    Example:
        >>> class Sampling:
        ...     def __init__(self, temperature: float) -> None: ...
        >>> class Module:
        ...     def __init__(self, sampling: Sampling, validation: Sampling) -> None: ...
        >>> find_places_of_name("temperature", {}, {"model": Module})
        [('model', 'sampling', 'temperature'), ('model', 'validation', 'temperature')]

    """
    level: list[Names] = [(root,) for root in roots]
    for _ in range(DEEPEST):
        owners = [(path, find_class_at(path, config, roots)) for path in level]
        inner = [
            (*path, *_find_arguments_key(path, config), p)
            for path, owner in owners
            if owner
            for p in _list_own_parameters(owner)
        ]
        if found := [path for path in inner if path[-1] == name]:
            return found if len(found) <= MOST else []
        level = inner
    return []


def _find_arguments_key(path: Names, config: Any) -> Names:
    """Return the key between a class and its arguments."""
    node: Any = config
    for part in path:
        node = node.get(part, {}) if isinstance(node, dict) else {}
    return ("init_args",) if isinstance(node, dict) and "class_path" in node else ()


def _list_own_parameters(owner: type) -> Sequence[str]:
    return () if is_standard_library(owner.__module__) else list_parameter_names(owner)


def _list_known_names(path: Names, owner: type | None, roots: Roots) -> Sequence[str] | None:
    """Return the names that may follow a path; None if any name may."""
    if not path:
        return list(roots)
    if owner is None or owner.__module__ == "builtins":
        return None
    return list_parameter_names(owner) if path[-1] == "init_args" else [*list_parameter_names(owner), *ENTRY]
