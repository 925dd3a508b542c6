"""All that rlcredit replaces in jsonargparse beyond its public interface: one name.

Another version may lack it, and then saved configurations name classes by the shortest path that leads to them;
``tests/rlcredit/config/test_jsonargparse_patches.py`` says so.
"""

import importlib
import inspect
from typing import Any

import jsonargparse._util as util

import rlcredit

_find_import_path = util.resolved_import_paths.get  # pyright: ignore[reportPrivateImportUsage]


def patch_written_class_paths() -> None:
    """Have configurations name a class by the room that it is in, though ``rlcredit`` gives it too.

    jsonargparse writes the shortest path that leads to a class; without this saved configurations change with every
    name that becomes public.
    """
    util.resolved_import_paths.get = lambda instance: _find_import_path(instance) or find_path_in_room(instance)


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
