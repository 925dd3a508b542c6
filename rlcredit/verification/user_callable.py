"""Import a user's function or class by name, in the process that will call it."""

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


def import_user_callable(path: str, folder: str, signature: str) -> Callable[..., Any]:
    """Import a function, or instantiate a class without arguments.

    Args:
        path: Dotted path of the function or class.
        folder: Folder where modules may lie too; the working directory of the run.
        signature: How it is to be called, for the message.

    Raises:
        Exception: whatever importing raises.
        TypeError: it cannot be called.

    """
    sys.path.append(folder)
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    function = found() if inspect.isclass(found) else found
    if not callable(function):
        raise TypeError(f"it is not a function, and its instances cannot be called; expected {signature}")
    return function
