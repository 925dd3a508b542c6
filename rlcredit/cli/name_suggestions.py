"""Suggestions for misspelt keys, found by following their path from the top of a configuration."""

import difflib
from collections.abc import Sequence
from typing import Any

from rlcredit.config.class_paths import find_expected_classes, find_named_class, list_parameter_names
from rlcredit.config.config_expansion import find_inner_hints
from rlcredit.config.reader import ENTRY_KEYS, Roots

Names = tuple[str | int, ...]
"""Where something lies in a configuration: keys of mappings and places in lists."""


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


def find_class_at(path: Names, config: Any, roots: Roots) -> type | None:
    """Return the class at a place in a configuration: by its ``class_path``, else by its type."""
    hint: Any = roots
    node, owner = config, None
    for part in path:
        if not isinstance(part, int):
            hint = find_inner_hints(node if isinstance(node, dict) else {}, hint).get(part)
        if isinstance(node, list) and isinstance(part, int):
            node = node[part]
        else:
            node = node.get(part) if isinstance(node, dict) else None
        if part not in ENTRY_KEYS:
            bases = find_expected_classes(hint)
            named = node.get("class_path") if isinstance(node, dict) else node
            owner = find_named_class(named, bases) or next(iter(bases), None)
    return owner


def find_unknown_name(path: Names, config: Any, roots: Roots) -> tuple[int, Sequence[str]] | None:
    """Return the position of the first unknown name on a path and the names accepted there; None if all are known."""
    for place, part in enumerate(path):
        known = list_known_names(path[:place], config, roots)
        if known is None:
            return None
        if isinstance(part, str) and part not in known:
            return place, known
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
        place, known = slip
        name = find_closest_name(str(corrected[place]), known)
        if name is None:
            corrected = corrected[:place]
            break
        corrected = (*corrected[:place], name, *corrected[place + 1 :])
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
            for p in list_parameter_names(owner)
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


def list_known_names(path: Names, config: Any, roots: Roots) -> Sequence[str] | None:
    """Return the names that may follow a path; None if any name may."""
    if not path:
        return list(roots)
    owner = find_class_at(path, config, roots)
    if owner is None:
        return None
    return list_parameter_names(owner) if path[-1] == "init_args" else [*list_parameter_names(owner), *ENTRY_KEYS]
