"""Suggestions for misspelt keys, found among the names that are known."""

from typing import Any

from rlcredit.config.config_expansion import find_inner_hints
from rlcredit.config.reader import ENTRY_KEYS, KeyPath, Roots, read_arguments

MAX_PLACES = 3
"""Places of one name that are suggested; a name that more places have says nothing."""

MAX_DEPTH = 4
"""Classes inside of classes, as in model.policy.lora."""


def find_places_of_name(name: str, config: Any, roots: Roots) -> list[KeyPath]:
    """Return the shortest paths that have a parameter of exactly this name, if there are few.

    Example:
        >>> class Sampling:
        ...     def __init__(self, temperature: float) -> None: ...
        >>> class Module:
        ...     def __init__(self, sampling: Sampling, validation: Sampling) -> None: ...
        >>> find_places_of_name("temperature", {}, {"model": Module})
        [('model', 'sampling', 'temperature'), ('model', 'validation', 'temperature')]

    """
    level: list[tuple[KeyPath, Any, Any]] = [((), config, roots)]
    for _ in range(MAX_DEPTH):
        inner = [child for place in level for child in _list_children(*place)]
        if places := [path for path, _, _ in inner if path[-1] == name and len(path) > 1]:
            return places if len(places) <= MAX_PLACES else []
        level = inner
    return []


def _list_children(path: KeyPath, value: Any, hint: Any) -> list[tuple[KeyPath, Any, Any]]:
    """Return the paths, values and types of all that a place can hold."""
    settings = {"class_path": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
    prefix = (*path, "init_args") if "class_path" in settings else path
    arguments = read_arguments(settings)
    hints = find_inner_hints(settings, hint)
    return [((*prefix, key), arguments.get(key), inner) for key, inner in hints.items() if key not in ENTRY_KEYS]
